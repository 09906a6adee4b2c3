"""What a Produce request carries before version 3: message sets, of several magics, cut, invalid; as brokers answer.

The answers are those of real brokers (1.1.1, 2.0.1, 2.1.1, 2.2.2, 2.3.1, 2.4.1, 2.7.2, 2.8.2, 3.9.1).
"""

from __future__ import annotations

import pytest

import kwire
from kwire import messages
from kwire.fleet import Fleet
from tests.fleet.dialogue import Client, produce

pytestmark = pytest.mark.quick


def entries(magic: int, codec: str = "none") -> bytes:
    return kwire.build_batch([(1_700_000_000_000 + at, b"k", b"v") for at in range(2)], magic=magic, codec=codec)


TWO = {
    "2, 1": entries(2) + entries(1), "2, 0": entries(2) + entries(0), "2, 2": entries(2) + entries(2),
    "1, 2": entries(1) + entries(2), "1, 0": entries(1) + entries(0), "gzip": entries(1, "gzip") + entries(1, "gzip"),
    "1, gzip": entries(1) + entries(1, "gzip"),
}  # fmt: skip
ONE = {"1": entries(1), "2": entries(2), "cut": entries(1)[:16], "magic 5": entries(2)[:16] + b"\5" + entries(2)[17:]}
NONE, CORRUPT, INVALID = 0, 2, 87
ANSWERS = [  # release, version of Produce, what, answer
    ("1.1", 3, "1", "closed"), ("2.2", 3, "1", CORRUPT), ("2.8", 3, "1", INVALID),
    ("2.0", 1, "cut", NONE), ("2.2", 1, "cut", "closed"), ("2.8", 1, "cut", NONE),
    ("1.1", 1, "magic 5", CORRUPT), ("2.2", 1, "magic 5", "closed"), ("2.8", 1, "magic 5", CORRUPT),
    ("1.1", 3, "magic 5", "closed"), ("3.9", 1, "2", NONE),
]  # fmt: skip


def asked(fleet: Fleet, records: bytes, version: int) -> tuple[int | str, int]:
    """(error code or "closed", base offset)."""
    client = Client(fleet.bootstrap)
    answer = client.ask(produce(records, version, "t", None), version)
    client.socket.close()
    if answer == "closed":
        return "closed", -1
    assert isinstance(answer.message, messages.ProduceResponse)
    (topic,) = answer.message.responses
    (row,) = topic.partition_responses
    return row.error_code, row.base_offset


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("release", ["1.1", "2.3", "2.4", "3.9"])
def test_two_batches(release: str, name: str) -> None:
    """They become one batch of magic 2; from 2.4 on they are refused, but for entries of one magic."""
    with Fleet(release, topics={"t": 1}) as fleet:
        expected = (NONE, 0) if release in ("1.1", "2.3") else (INVALID, -1)
        assert asked(fleet, TWO[name], 1) == expected
        assert asked(fleet, entries(0) + entries(0), 0) == (NONE, 4 if expected[0] == NONE else 0)
        offsets = [record.offset for record in fleet.records("t", 0)]
        assert offsets == list(range(8 if expected[0] == NONE else 4))


@pytest.mark.parametrize(("release", "version", "name", "expected"), ANSWERS)
def test_one_batch(release: str, version: int, name: str, expected: int | str) -> None:
    with Fleet(release, topics={"t": 1}) as fleet:
        has_records = expected == NONE and name != "cut"
        assert asked(fleet, ONE[name], version) == (expected, 0 if has_records else -1)
        assert len(fleet.records("t", 0)) == (2 if has_records else 0)
