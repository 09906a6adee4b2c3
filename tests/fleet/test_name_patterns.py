"""Regular expressions of clients: what matches, what is refused, and that none takes long."""

from __future__ import annotations

import builtins
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from kwire import messages
from kwire.fleet import ApiError, Fleet
from kwire.fleet.coordinators.name_patterns import name_pattern
from kwire.net import connect_sync
from kwire.schema.error_codes import ErrorCode

pytestmark = pytest.mark.quick
EVIL = ("(a*)*b", "(a|a)*b", "(a|aa)+$", "(.*)*", "a*a*a*a*a*a*a*a*a*a*a*a*a*b", "(?:a?){40}a{40}", "((a+)+)+b")


@pytest.fixture(params=["re2", "re"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """With google-re2, and without it."""
    name_pattern.cache_clear()
    if request.param == "re2":
        assert importlib.util.find_spec("re2"), "google-re2 is not installed: pip install 'kwire[dev]'"
    else:
        real = builtins.__import__

        def imported(name: str, *rest: Any, **named: Any) -> Any:
            if name == "re2":
                raise ModuleNotFoundError(name)
            return real(name, *rest, **named)

        monkeypatch.delitem(sys.modules, "re2", raising=False)
        monkeypatch.setattr(builtins, "__import__", imported)
    yield request.param
    name_pattern.cache_clear()


def refused(expression: str) -> str | None:
    try:
        name_pattern(expression)
    except ApiError as error:
        assert error.code == ErrorCode.INVALID_REGULAR_EXPRESSION
        return error.message
    return None


@pytest.mark.parametrize(("expression", "name", "matches"), [
    ("t.*", "topic", True), ("t.*", "a-t", False), ("orders|bills", "bills", True), (r"a\.b", "a.b", True),
    (r"a\.b", "axb", False), ("[a-c]+-[0-9]{2}", "ab-12", True), ("(a|b)c", "bc", True), ("", "", True),
    (".*?x", "aax", True), ("(?:ab|c)d", "abd", True), ("^a$", "a", True),
])  # fmt: skip
def test_what_matches(engine: str, expression: str, name: str, matches: bool) -> None:
    assert bool(name_pattern(expression).fullmatch(name)) == matches


@pytest.mark.parametrize("expression", ["(", "[a", "*a", "a**", r"\1", "(?=a)b", "(?!a)b", "(?P<n>a", "\\", "(a", ")",
                                        "(?<=a)b", "a{2,1}", "(" * 30_000])  # fmt: skip
def test_what_is_refused(engine: str, expression: str) -> None:
    assert refused(expression)


@pytest.mark.parametrize("expression", EVIL)
def test_nothing_takes_long(engine: str, expression: str) -> None:
    """Python's re would not come to an end of these; without google-re2 they are refused."""
    if engine == "re2":
        assert name_pattern(expression).fullmatch("a" * 249) is None or not expression.endswith("b")
    else:
        assert "google-re2" in (refused(expression) or "")


def test_repeats_of_few_signs_are_quick_without_re2(engine: str) -> None:
    assert not name_pattern(".*.*b").fullmatch("a" * 249)


def test_a_client_is_answered(engine: str) -> None:
    """As Kafka: INVALID_REGULAR_EXPRESSION with a reason, of groups and of transactions."""
    with Fleet("4.4", topics={"orders": 1, "bills": 1}) as fleet, connect_sync(fleet.bootstrap) as connection:
        def subscribed(expression: str) -> Any:
            return connection.send(messages.ConsumerGroupHeartbeatRequest(
                group_id="g" + str(len(expression)), member_id="m", member_epoch=0, rebalance_timeout_ms=1000,
                subscribed_topic_regex=expression, topic_partitions=[]), 1)

        answer = subscribed("(")
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert answer.error_message.startswith("SubscribedTopicRegex `(` is not a valid regular expression: missing ")
        assert subscribed("or.*").assignment.topic_partitions == []  # it is resolved after the answer
        assert [len(one.partitions) for one in subscribed("or.*").assignment.topic_partitions] == [1]
        listed = connection.send(messages.ListTransactionsRequest(transactional_id_pattern="("), 2)
        assert listed.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
