"""What kafka-dump-log prints of a segment, written from kwire's batches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kwire

TIMESTAMPS = {"none": "NoTimestampType", "create": "CreateTime", "log_append": "LogAppendTime"}
MARKERS = {"LEADER_CHANGE": "LeaderChange:", "SNAPSHOT_HEADER": "SnapshotHeader", "SNAPSHOT_FOOTER": "SnapshotFooter",
           "KRAFT_VERSION": "KRaftVersion", "KRAFT_VOTERS": "KRaftVoters"}  # fmt: skip


def truth(value: bool) -> str:
    """A bool as Java prints it."""
    return "true" if value else "false"


def text(data: Any) -> str:
    """As Java decodes UTF-8: U+FFFD for what is none, one for a surrogate."""
    return re.sub(rb"\xed[\xa0-\xbf][\x80-\xbf]", b"\xef\xbf\xbd", bytes(data)).decode("utf8", "replace")


def last_sequence(batch: Any) -> int:
    """The sequence of the last record, which wraps after 2^31 - 1."""
    if batch.base_sequence == -1:
        return -1
    return int(batch.base_sequence + batch.last_offset - batch.base_offset) % 2**31


def batch_line(batch: Any) -> str:
    """The line of a batch."""
    if batch.magic == 2:
        horizon = "OptionalLong.empty" if batch.delete_horizon is None else f"OptionalLong[{batch.delete_horizon}]"
        start = (
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count} "
            f"baseSequence: {batch.base_sequence} lastSequence: {last_sequence(batch)} "
            f"producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch} "
            f"partitionLeaderEpoch: {batch.partition_leader_epoch} isTransactional: {truth(batch.is_transactional)} "
            f"isControl: {truth(batch.is_control)} deleteHorizonMs: {horizon}"
        )
    else:
        start = f"offset: {batch.last_offset}"
    return (
        f"{start} position: {batch.position} {TIMESTAMPS[batch.timestamp_type]}: {batch.max_timestamp} "
        f"size: {batch.size} magic: {batch.magic} compresscodec: {batch.codec} crc: {batch.crc} "
        f"isvalid: {truth(batch.is_valid())}"
    )


def record_line(record: Any, batch: Any, contents: bool) -> str:
    """A record of any format; magic 0 and 1 without the tool's "isValid: true crc: N" (see without_inner_crc)."""
    key, value = (-1 if data is None else len(data) for data in (record.key, record.value))
    sizes = f"keySize: {key} valueSize: {value}"
    line = f"| offset: {record.offset} {TIMESTAMPS[record.timestamp_type]}: {record.timestamp} {sizes}"
    if batch.magic == 2:
        line += f" sequence: {record.sequence} headerKeys: [{','.join(key for key, _ in record.headers)}]"
    if batch.is_control:
        return line + control(record)
    if contents and record.key is not None:
        line += f" key: {text(record.key)}"
    if contents and record.value is not None:
        line += f" payload: {text(record.value)}"
    return line


def control(record: Any) -> str:
    """What is printed of a control record."""
    if record.control_type in ("COMMIT", "ABORT"):
        return f" endTxnMarker: {record.control_type} coordinatorEpoch: {record.control.coordinator_epoch}"
    version = int.from_bytes(bytes(record.value)[:2], "big")
    told = json.dumps(kwire.to_json(record.control, version), separators=(",", ":"), ensure_ascii=False)
    return f" {MARKERS[record.control_type]} {told}"


def lines(data: Any, *, records: bool, contents: bool) -> Iterator[str]:
    """The lines behind "Dumping FILE" and the start offset."""
    for batch in kwire.read_batches(data, verify_crc=False):
        yield batch_line(batch)
        if records:
            for record in batch:
                yield record_line(record, batch, contents)


def start_line(path: Path) -> str:
    """The line that says what kind of file it is."""
    if path.name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot"
    if path.suffix == ".checkpoint":
        found = re.fullmatch(r"(\d+)-(\d+)", path.stem)
        assert found is not None, path
        return f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}"
    return f"Log starting offset: {int(path.stem)}"


def without_inner_crc(told: str) -> str:
    """The tool's text less what kwire has no word for: validity and CRC of entries of magic 0 and 1."""
    return re.sub(r"^(\| .*? valueSize: -?\d+) isValid: true crc: \d+", r"\1", told, flags=re.MULTILINE)
