"""Damaged and unusual bytes read by Kafka's classes and by kwire: the same batches, end and records."""

from __future__ import annotations

from typing import Any

import kwire
from tests.codec import as_kafka


def agree(data: bytes, vector: dict[str, Any]) -> bool:
    """Valid batches come first and are equal; the first bad one, or an invalid length, raises. Were all accepted?"""
    batches = vector["batches"]
    good = [as_kafka.accepted(batch) for batch in batches]
    first_bad = good.index(False) if False in good else len(good)
    accepted = first_bad == len(good) and vector["batchIteration"] == "ok"
    read: list[Any] = []
    try:
        for batch in kwire.read_batches(data):
            records = list(batch)
            read.append((batch, records))
    except kwire.KwireError as error:
        assert not accepted, f"Kafka accepts it, kwire refuses: {error}: {data.hex()}"
    else:
        assert accepted, f"Kafka refuses it ({vector['batchIteration'], batches}), kwire accepts it: {data.hex()}"
    assert len(read) == first_bad, data.hex()
    for (batch, records), want in zip(read, batches, strict=False):
        assert (batch.magic, batch.size, batch.is_valid()) == (want["magic"], want["sizeInBytes"], want["isValid"])
        assert [as_kafka.record(r, batch.magic) for r in records] == [
            as_kafka.wanted_record(r, batch.magic) for r in want["records"]
        ], data.hex()
    return accepted


def agree_without_checksum(data: bytes, vector: dict[str, Any]) -> None:
    """verify_crc=False reads of the first batch what Kafka's iterators, which ignore the CRC, read."""
    if not vector["batches"]:
        return
    want = vector["batches"][0]
    accepted = as_kafka.accepted({**want, "ensureValid": "ok"})
    try:
        batch = next(iter(kwire.read_batches(data, verify_crc=False)))
        records = [as_kafka.record(r, batch.magic) for r in batch]
    except kwire.KwireError as error:
        assert not accepted, f"Kafka accepts it, kwire refuses: {error}: {data.hex()}"
        return
    assert accepted, f"Kafka refuses it ({want}): {data.hex()}"
    assert batch.is_valid() == want["isValid"]
    assert records == [as_kafka.wanted_record(r, batch.magic) for r in want["records"]], data.hex()
