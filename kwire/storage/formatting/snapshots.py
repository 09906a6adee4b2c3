"""The snapshot files of a formatted directory, byte for byte as Kafka's writers make them."""

from __future__ import annotations

import time
from typing import Any

from kwire import messages
from kwire.codec.messages import encode
from kwire.codec.record_serdes import encode_metadata_record
from kwire.codec.records import build_batch
from kwire.storage.formatting.levels import BootstrapMetadata

_HEADER, _FOOTER, _KRAFT_VERSION, _VOTERS = 3, 4, 5, 6  # ControlRecordType


def bootstrap_checkpoint(metadata: BootstrapMetadata) -> bytes:
    """The content of bootstrap.checkpoint (BootstrapDirectory, BatchFileWriter)."""
    return _snapshot([(_HEADER, messages.SnapshotHeaderRecord())], metadata)


def quorum_snapshot(
    kraft_version: int, voters: Any | None, metadata: BootstrapMetadata | None, timestamp: int | None = None
) -> bytes:
    """The content of the metadata log's first snapshot, 00000000000000000000-0000000000.checkpoint.

    voters: a VotersRecord, None without a dynamic quorum; metadata: up to 4.3 None, as it is in bootstrap.checkpoint;
    timestamp: milliseconds, by default now. Source: Formatter.writeBoostrapSnapshot, RecordsSnapshotWriter.
    """
    now = int(time.time() * 1000) if timestamp is None else timestamp
    controls: list[tuple[int, Any]] = [(_HEADER, messages.SnapshotHeaderRecord(last_contained_log_timestamp=now))]
    if kraft_version > 0:
        controls.append((_KRAFT_VERSION, messages.KRaftVersionRecord(kraft_version=kraft_version)))
        if voters is not None:
            controls.append((_VOTERS, voters))
    return _snapshot(controls, metadata, now)


def _snapshot(
    controls: list[tuple[int, Any]], metadata: BootstrapMetadata | None, timestamp: int | None = None
) -> bytes:
    """A batch of control records, a batch of metadata records, a batch with the footer."""
    now = int(time.time() * 1000) if timestamp is None else timestamp
    data = _control_batch(controls, 0, now)
    offset = len(controls)
    if metadata is not None:
        rows = [(now, None, encode_metadata_record(record, version)) for record, version in metadata.records]
        data += build_batch(rows, base_offset=offset, partition_leader_epoch=0)
        offset += len(rows)
    return data + _control_batch([(_FOOTER, messages.SnapshotFooterRecord())], offset, now)


def _control_batch(records: list[tuple[int, Any]], offset: int, now: int) -> bytes:
    rows = [(now, b"\0\0" + number.to_bytes(2, "big"), encode(message, 0)) for number, message in records]
    return build_batch(rows, base_offset=offset, partition_leader_epoch=0, control=True)
