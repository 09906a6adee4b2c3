"""kwire's batches and records in the words that Kafka's classes used in the vectors, so that both can be compared."""

from __future__ import annotations

import hashlib
from typing import Any

TIMESTAMP_TYPES = {"none": "NoTimestampType", "create": "CreateTime", "log_append": "LogAppendTime"}
LONG = 4096  # values over this many bytes stand in the vectors as {"len", "sha256"}


def value(data: Any) -> Any:
    """A key, value or header value (bytes-like or None) as hex, or as length and digest when it is long."""
    if data is None:
        return None
    data = bytes(data)
    if len(data) > LONG:
        return {"len": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return data.hex()


def whole(told: Any) -> Any:
    """A value as told in hex, in the form that value() gives."""
    return value(bytes.fromhex(told)) if isinstance(told, str) else told


def record(one: Any, magic: int) -> dict[str, Any]:
    """A kwire Record."""
    told = {
        "offset": one.offset,
        "timestamp": one.timestamp,
        "timestampType": TIMESTAMP_TYPES[one.timestamp_type],
        "sequence": one.sequence,
        "key": value(one.key),
        "value": value(one.value),
        "headers": [[key, value(data)] for key, data in one.headers],
    }
    if magic == 2:
        told["attributes"] = (one.attributes + 128) % 256 - 128
    return told


def batch(one: Any) -> dict[str, Any]:
    """A kwire RecordBatch without its records."""
    told = {
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
        told |= {
            "attributes": one.attributes & 0xFFFF,
            "rawBaseTimestamp": one.base_timestamp,
            "count": one.count,
            "lastOffsetDelta": one.last_offset - one.base_offset,
        }
    return told


def wanted_batch(told: dict[str, Any]) -> dict[str, Any]:
    """What Kafka told of a batch, less what kwire has no word for."""
    names = [
        "baseOffset", "lastOffset", "sizeInBytes", "magic", "crc", "compression", "timestampType", "maxTimestamp",
        "producerId", "producerEpoch", "baseSequence", "partitionLeaderEpoch", "isTransactional", "isControlBatch",
        "deleteHorizonMs", "isValid",
    ]  # fmt: skip
    if told["magic"] == 2:
        names += ["attributes", "rawBaseTimestamp", "count", "lastOffsetDelta"]
    chosen = {name: told[name] for name in names}
    if "attributes" in chosen:
        chosen["attributes"] &= 0xFFFF
    return chosen


def wanted_record(told: dict[str, Any], magic: int) -> dict[str, Any]:
    """What Kafka told of a record, in the form of record()."""
    chosen = {
        name: told[name] for name in ("offset", "timestamp", "timestampType", "sequence")
    } | {
        "key": whole(told["key"]),
        "value": whole(told["value"]),
        "headers": [[key, whole(data)] for key, data in told["headers"]],
    }  # fmt: skip
    if magic == 2:
        chosen["attributes"] = told["attributes"]
    return chosen


def check(one: Any, told: dict[str, Any]) -> None:
    """Asserts that a kwire RecordBatch is what Kafka told of it, header and records."""
    assert batch(one) == wanted_batch(told)
    records = [record(r, one.magic) for r in one]
    wanted = [wanted_record(r, one.magic) for r in told["records"]]
    if records != wanted:  # the first difference says more than a dump of both
        assert len(records) == len(wanted)
        for got, want in zip(records, wanted, strict=True):
            assert got == want


def sound(told: dict[str, Any]) -> bool:
    """Whether Kafka took the whole batch: checksum, both ways of iterating, every key and value readable.

    Of a compressed batch without records the iterator reads nothing, as kwire; the streaming one begins to unpack.
    """
    return (
        told["ensureValid"] == "ok" and told["iterate"] == "ok"
        and (told["streaming"] == "ok" or not told["records"])
        and not any("error" in record for record in told["records"])
    )  # fmt: skip
