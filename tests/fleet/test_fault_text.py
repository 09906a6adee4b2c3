"""Rules of faults as lines of text, as `kwire tap --fault` takes them."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.fleet import Fleet
from kwire.fleet.fault_text import read_fault
from kwire.schema.error_codes import ErrorCode

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(("text", "api", "what"), [
    ("Produce error=NOT_LEADER_OR_FOLLOWER times=3", "Produce",
     {"error": ErrorCode.NOT_LEADER_OR_FOLLOWER, "times": 3}),
    ("Fetch error=-1 topic='a b' client_id=c node=2 version=4", "Fetch",
     {"error": ErrorCode.UNKNOWN_SERVER_ERROR, "topic": "a b", "client_id": "c", "node": 2, "version": 4}),
    ("delay=0.5 probability=0.25", None, {"delay": 0.5, "probability": 0.25}),
    ("close", None, {"close": True}),
    ("Metadata half=true silent=false", "Metadata", {"half": True, "silent": False}),
    ("Heartbeat correlation=-7 slow=100 duplicate reorder garbage", "Heartbeat",
     {"correlation": -7, "slow": 100, "duplicate": True, "reorder": True, "garbage": True}),
])
def test_what_a_line_says(text: str, api: str | None, what: dict[str, Any]) -> None:
    rule = read_fault(text)
    assert (rule.api, rule.what) == (api, what)
    Fleet().fault(rule.api, **rule.what)


@pytest.mark.parametrize(("text", "reason"), [
    ("Produze close", 'unknown API \'Produze\' \\(did you mean "Produce"'),
    ("Produce halve", 'unknown word \'halve\' in a fault \\(did you mean "half"'),
    ("Produce error=NOT_LEADER", 'unknown error code \'NOT_LEADER\' \\(did you mean "NOT_LEADER_OR_FOLLOWER"'),
    ("Produce error=NONE", "unknown error code 'NONE'"),
    ("Produce error=999", "unknown error code 999"),
    ("Produce error", "unknown error code ''"),
    ("Produce times=3", "without an effect"),
    ("", "without an effect"),
    ("close close", "close is twice"),
    ("Produce close=maybe", "true or false"),
    ("Produce topic close", "expected topic=VALUE"),
    ("Produce 'close", "no closing quotation"),
    ("Produce delay=soon", "delay must be a number"),
    ("Produce delay=nan", "delay must be 0 to"),
    ("Produce delay=-1", "delay must be 0 to"),
    ("Produce correlation=99999999999 ", "correlation must be -2147483648 to 2147483647"),
    ("Produce close times=0", "times must be 1 to"),
    ("Produce close hits=3", "unknown word 'hits'"),
])
def test_what_is_no_rule(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        rule = read_fault(text)
        Fleet().fault(rule.api, **rule.what)


def test_a_topic_in_rows_of_groups_and_transactions() -> None:
    from kwire import messages
    from kwire.fleet.faults import topics_of

    offsets = messages.OffsetFetchRequest
    group = offsets.OffsetFetchRequestGroup(
        group_id="g", topics=[offsets.OffsetFetchRequestTopics(name="t", partition_indexes=[0])])
    assert topics_of(offsets(groups=[group]), lambda topic_id: None) == {"t"}
