"""Odd bytes judged by Kafka's classes and by kwire: the same batches, the same end, the same records."""

from __future__ import annotations

from typing import Any

import kwire
from tests.codec import as_kafka


def agree(data: bytes, told: dict[str, Any]) -> bool:
    """Sound batches come first and equal; the first bad one, or a length that cannot be, raises. Were all taken?"""
    batches = told["batches"]
    good = [as_kafka.sound(batch) for batch in batches]
    first_bad = good.index(False) if False in good else len(good)
    accepted = first_bad == len(good) and told["batchIteration"] == "ok"
    read: list[Any] = []
    try:
        for batch in kwire.read_batches(data):
            records = list(batch)
            read.append((batch, records))
    except kwire.KwireError as error:
        assert not accepted, f"Kafka takes it, kwire refuses: {error}: {data.hex()}"
    else:
        assert accepted, f"Kafka refuses it ({told['batchIteration'], batches}), kwire takes it: {data.hex()}"
    assert len(read) == first_bad, data.hex()
    for (batch, records), want in zip(read, batches, strict=False):
        assert (batch.magic, batch.size, batch.is_valid()) == (want["magic"], want["sizeInBytes"], want["isValid"])
        assert [as_kafka.record(r, batch.magic) for r in records] == [
            as_kafka.wanted_record(r, batch.magic) for r in want["records"]
        ], data.hex()
    return accepted


def agree_without_checksum(data: bytes, told: dict[str, Any]) -> None:
    """verify_crc=False reads of the first batch what Kafka's iterators read, which do not look at it."""
    if not told["batches"]:
        return
    want = told["batches"][0]
    sound = as_kafka.sound({**want, "ensureValid": "ok"})
    try:
        batch = next(iter(kwire.read_batches(data, verify_crc=False)))
        records = [as_kafka.record(r, batch.magic) for r in batch]
    except kwire.KwireError as error:
        assert not sound, f"Kafka takes it, kwire refuses: {error}: {data.hex()}"
        return
    assert sound, f"Kafka refuses it ({want}): {data.hex()}"
    assert batch.is_valid() == want["isValid"]
    assert records == [as_kafka.wanted_record(r, batch.magic) for r in want["records"]], data.hex()
