"""The snapshot files of a formatted directory, byte for byte as Kafka's writers make them."""

from __future__ import annotations

import time
from typing import Any

from kwire import messages
from kwire.codec.messages import encode
from kwire.codec.record_serdes import encode_metadata_record
from kwire.storage.formatting.levels import BootstrapMetadata
from kwire.storage.metadata.quorum import VERSION, VOTERS, Quorum
from kwire.storage.metadata.snapshots import snapshot_batches


def bootstrap_checkpoint(metadata: BootstrapMetadata) -> bytes:
    """The content of bootstrap.checkpoint (BootstrapDirectory, BatchFileWriter)."""
    return _snapshot(Quorum(), metadata, int(time.time() * 1000), 0)


def quorum_snapshot(
    kraft_version: int, voters: Any | None, metadata: BootstrapMetadata | None, timestamp: int | None = None
) -> bytes:
    """The content of the metadata log's first snapshot, 00000000000000000000-0000000000.checkpoint.

    voters: a VotersRecord, None without a dynamic quorum; metadata: up to 4.3 None, as it is in bootstrap.checkpoint;
    timestamp: milliseconds, by default now. Source: Formatter.writeBoostrapSnapshot, RecordsSnapshotWriter.
    """
    now = int(time.time() * 1000) if timestamp is None else timestamp
    values = {}
    if kraft_version > 0:
        values[VERSION] = encode(messages.KRaftVersionRecord(kraft_version=kraft_version), 0)
        if voters is not None:
            values[VOTERS] = encode(voters, 0)
    return _snapshot(Quorum(values=values), metadata, now, now)


def _snapshot(quorum: Quorum, metadata: BootstrapMetadata | None, now: int, last_timestamp: int) -> bytes:
    groups = []
    if metadata is not None:
        groups.append([encode_metadata_record(record, version) for record, version in metadata.records])
    return b"".join(snapshot_batches(quorum, groups, now, last_timestamp=last_timestamp))
