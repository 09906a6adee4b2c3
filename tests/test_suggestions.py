"""The nearest known name, and what there is."""

from __future__ import annotations

import pytest

from kwire.suggestions import did_you_mean, there

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(("name", "known", "near"), [
    ("Fecth", ["Fetch", "Produce"], "Fetch"), ("metadatarequest", ["MetadataRequest"], "MetadataRequest"),
    ("ordrs", ["orders", "orders-eu"], "orders"), ("x", ["orders"], None), ("", ["orders"], None), ("a", [], None),
    (39, ["3.9", "4.0"], "3.9"), ("x" * 100_000, ["x" * 99_999], None),
])  # fmt: skip
def test_the_nearest(name: object, known: list[str], near: str | None) -> None:
    assert did_you_mean(name, known) == ("" if near is None else f' (did you mean "{near}"?)')


def test_what_is_shown_is_printable() -> None:
    assert did_you_mean("a\x1bb", ["a\x1bc"]) == ' (did you mean "a\\x1bc"?)'
    assert there(["a\x1b"], "topic") == "is 1 topic: a\\x1b"


def test_what_there_is() -> None:
    assert there([], "topic") == "is no topic"
    assert there([0, 1], "partition") == "are 2 partitions: 0, 1"
    assert there(range(1234), "entry", "entries") == "are 1,234 entries: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ..."


def test_the_shortest_that_begins_so_where_none_is_similar() -> None:
    names = ["FetchSnapshotRequest", "FetchRequest", "ShareFetchRequest"]
    assert did_you_mean("fetch", names) == ' (did you mean "FetchRequest"?)'
    assert did_you_mean("fe", names) == ""
