"""The pure parts of the generator of record batches."""

from __future__ import annotations

import random

import pytest

import kwire
from tools.vectors import records

pytestmark = pytest.mark.quick


def test_rows_are_the_same_in_every_run() -> None:
    for magic in (0, 1, 2):
        first, again = (records.rows(random.Random("seed"), 20, 100, magic, gaps=True) for _ in range(2))
        assert first == again
        offsets = [row["offset"] for row in first]
        assert offsets == sorted(set(offsets)) and offsets[0] == 100
        assert any(row["headers"] for row in first) == (magic == 2)


def test_payloads_of_other_writers_are_read() -> None:
    rows = [(1_700_000_000_000, b"key-%d" % i, b"value " * 40, []) for i in range(6)]
    plain = kwire.build_batch(rows)
    for name, (codec, payload) in records.payloads(plain[records.PAYLOAD_AT :]).items():
        (batch,) = kwire.read_batches(records.with_payload(plain, codec, payload))
        assert [(r.key, r.value) for r in batch] == [(key, value) for _, key, value, _ in rows], name


def test_long_values_are_told_by_digest() -> None:
    assert records.short(None) is None and records.short("00ff") == "00ff"
    assert records.short("00" * 5000)["len"] == 5000
    assert records.control({"typeId": 1, "type": "COMMIT", "coordinatorEpoch": 7}, "00000001") == {
        "typeId": 1, "type": "COMMIT", "keyVersion": 0, "coordinatorEpoch": 7, "valueVersion": 0,
    }  # fmt: skip
