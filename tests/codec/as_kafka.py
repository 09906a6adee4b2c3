"""kwire's batches and records in the form of the vectors, which Kafka's classes wrote, to compare them."""

from __future__ import annotations

import hashlib
from typing import Any

TIMESTAMP_TYPES = {"none": "NoTimestampType", "create": "CreateTime", "log_append": "LogAppendTime"}
LONG = 4096  # the vectors have values over this many bytes as {"len", "sha256"}


def value(data: Any) -> Any:
    """A key, value or header value (bytes-like or None) as hex, or as length and digest when it is long."""
    if data is None:
        return None
    data = bytes(data)
    if len(data) > LONG:
        return {"len": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return data.hex()


def whole(vector: Any) -> Any:
    """A value of the vectors, in hex or as length and digest, in the form of value()."""
    return value(bytes.fromhex(vector)) if isinstance(vector, str) else vector


def record(one: Any, magic: int) -> dict[str, Any]:
    """A kwire Record."""
    fields = {
        "offset": one.offset,
        "timestamp": one.timestamp,
        "timestampType": TIMESTAMP_TYPES[one.timestamp_type],
        "sequence": one.sequence,
        "key": value(one.key),
        "value": value(one.value),
        "headers": [[key, value(data)] for key, data in one.headers],
    }
    if magic == 2:
        fields["attributes"] = (one.attributes + 128) % 256 - 128
    return fields


def batch(one: Any) -> dict[str, Any]:
    """A kwire RecordBatch without its records."""
    fields = {
        "baseOffset": one.base_offset,
        "lastOffset": one.last_offset,
        "sizeInBytes": one.size,
        "magic": one.magic,
        "crc": one.crc,
        "compression": one.codec,
        "timestampType": TIMESTAMP_TYPES[one.timestamp_type],
        "maxTimestamp": one.max_timestamp,
        "producerId": one.producer_id,
        "producerEpoch": one.producer_epoch,
        "baseSequence": one.base_sequence,
        "partitionLeaderEpoch": one.partition_leader_epoch,
        "isTransactional": one.is_transactional,
        "isControlBatch": one.is_control,
        "deleteHorizonMs": one.delete_horizon,
        "isValid": one.is_valid(),
    }
    if one.magic == 2:
        fields |= {
            "attributes": one.attributes & 0xFFFF,
            "rawBaseTimestamp": one.base_timestamp,
            "count": one.count,
            "lastOffsetDelta": one.last_offset - one.base_offset,
        }
    return fields


def wanted_batch(vector: dict[str, Any]) -> dict[str, Any]:
    """A batch of the vectors, without the fields that kwire lacks."""
    names = [
        "baseOffset", "lastOffset", "sizeInBytes", "magic", "crc", "compression", "timestampType", "maxTimestamp",
        "producerId", "producerEpoch", "baseSequence", "partitionLeaderEpoch", "isTransactional", "isControlBatch",
        "deleteHorizonMs", "isValid",
    ]  # fmt: skip
    if vector["magic"] == 2:
        names += ["attributes", "rawBaseTimestamp", "count", "lastOffsetDelta"]
    chosen = {name: vector[name] for name in names}
    if "attributes" in chosen:
        chosen["attributes"] &= 0xFFFF
    return chosen


def wanted_record(vector: dict[str, Any], magic: int) -> dict[str, Any]:
    """A record of the vectors, in the form of record()."""
    chosen = {
        name: vector[name] for name in ("offset", "timestamp", "timestampType", "sequence")
    } | {
        "key": whole(vector["key"]),
        "value": whole(vector["value"]),
        "headers": [[key, whole(data)] for key, data in vector["headers"]],
    }  # fmt: skip
    if magic == 2:
        chosen["attributes"] = vector["attributes"]
    return chosen


def check(one: Any, vector: dict[str, Any]) -> None:
    """Assert that a kwire RecordBatch equals the batch of the vectors, header and records."""
    assert batch(one) == wanted_batch(vector)
    records = [record(r, one.magic) for r in one]
    wanted = [wanted_record(r, one.magic) for r in vector["records"]]
    if records != wanted:  # the first difference is easier to read than a dump of both
        assert len(records) == len(wanted)
        for got, want in zip(records, wanted, strict=True):
            assert got == want


def accepted(vector: dict[str, Any]) -> bool:
    """Whether Kafka accepted the whole batch: checksum, both ways of iterating, every key and value readable.

    The iterator reads nothing of a compressed batch without records, as kwire; the streaming one starts decompressing.
    """
    return (
        vector["ensureValid"] == "ok" and vector["iterate"] == "ok"
        and (vector["streaming"] == "ok" or not vector["records"])
        and not any("error" in record for record in vector["records"])
    )  # fmt: skip
