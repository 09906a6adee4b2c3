"""The small files beside segments: producer snapshots, the leader epoch checkpoint, partition.metadata."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from kwire.errors import DecodeError, LimitError, UnsupportedVersionError
from kwire.storage.places.filesystem import located, open_file, plain
from kwire.storage.side_files.uuids import uuid_from_text, uuid_text
from kwire_c.crc32c import crc32c

MOST_BYTES = 64 << 20  # of a producer snapshot: one of a million producers has 52 MB
MOST_TEXT = 1 << 20  # bytes of the text files, which have a few lines
T = TypeVar("T")
_ENTRY = Struct(">qhiqiqiq")


class ProducerState(NamedTuple):
    """A producer's state as the broker keeps it (ProducerStateEntry). timestamp in milliseconds; -1: unknown."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int


class LeaderEpoch(NamedTuple):
    """A leader epoch and the first offset written in it (EpochEntry)."""

    epoch: int
    start_offset: int


class PartitionOffset(NamedTuple):
    """A line of an offset checkpoint: of recovery points, high watermarks, log starts or the cleaner."""

    topic: str
    partition: int
    offset: int


class PartitionMetadata(NamedTuple):
    """The content of a partition.metadata file (KIP-516)."""

    version: int
    topic_id: UUID


def read_producer_snapshot(
    path: str | os.PathLike[str], options: dict[str, Any] | None = None
) -> list[ProducerState]:
    """The producers in a .snapshot file (ProducerStateManager, version 1).

    Raises DecodeError (.file) for damaged bytes, a wrong CRC-32C included, LimitError for more than 64 MiB,
    UnsupportedVersionError for another version.
    """
    return [ProducerState(*entry) for entry in producer_entries(*_content(path, options))]


def producer_entries(data: bytes, name: str) -> Iterator[tuple[int, ...]]:
    """The entries in the bytes of a .snapshot file, as ProducerState has them. name: of the file, for errors.

    Raises as read_producer_snapshot, before the first entry.
    """
    if len(data) < 10:
        raise located(DecodeError(f"producer snapshot of {len(data)} bytes: its header alone has 10", offset=0), name)
    version = int.from_bytes(data[:2], "big", signed=True)
    if version != 1:
        reason = f"unknown producer snapshot version {version}, expected 1"
        raise located(UnsupportedVersionError(reason, needed=version, offered=(1, 1)), name)
    body = memoryview(data)[6:]
    stored, count = int.from_bytes(data[2:6], "big"), int.from_bytes(body[:4], "big", signed=True)
    if crc32c(body) != stored:
        reason = f"checksum does not match: stored {stored:#010x}, computed {crc32c(body):#010x}"
        raise located(DecodeError(reason, offset=2), name)
    if count < 0 or len(data) - 10 != count * _ENTRY.size:
        reason = f"expected {count} entries of {_ENTRY.size} bytes after the header, found {len(data) - 10} bytes"
        raise located(DecodeError(reason, offset=6), name)
    return _ENTRY.iter_unpack(body[4:])


def producer_snapshot_damage(data: bytes) -> str | None:
    """What Kafka says of the bytes of a damaged .snapshot file (CorruptSnapshotException), None if it reads them."""
    version = int.from_bytes(data[:2], "big", signed=True)
    count = int.from_bytes(data[6:10], "big", signed=True)
    if len(data) >= 2 and version != 1:
        return f"Snapshot failed schema validation: Snapshot contained an unknown file version {version}"
    if len(data) < 10 or count < 0 or len(data) - 10 < count * _ENTRY.size:
        return (f"Snapshot failed schema validation: expected {max(0, count)} entries of {_ENTRY.size} bytes after the "
                f"header of 10 bytes, found {len(data)} bytes in all")
    stored, computed = int.from_bytes(data[2:6], "big"), crc32c(memoryview(data)[6:])
    if stored == computed:
        return None
    return f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"


def ongoing_transactions(data: bytes, name: str, most: int) -> dict[int, int]:
    """First offset by producer id of the transactions that go on, in the bytes of a .snapshot file.

    name: of the file, for errors. Raises as read_producer_snapshot, and LimitError for more than `most`.
    """
    found: dict[int, int] = {}
    for entry in producer_entries(data, name):
        if entry[-1] >= 0:
            found[entry[0]] = entry[-1]
            if len(found) > most:
                reason = "too many transactions in a producer snapshot"
                raise located(LimitError(reason, limit=most, needed=len(found), offset=None), name)
    return found


def producer_snapshot(producers: Iterable[ProducerState]) -> bytes:
    """The bytes of a .snapshot file with these producers, in that order (ProducerStateManager, version 1)."""
    entries = [_ENTRY.pack(*state) for state in producers]
    body = len(entries).to_bytes(4, "big") + b"".join(entries)
    return b"\0\1" + crc32c(body).to_bytes(4, "big") + body


def read_leader_epochs(path: str | os.PathLike[str], options: dict[str, Any] | None = None) -> list[LeaderEpoch]:
    """The entries of a leader-epoch-checkpoint file; none for an empty file.

    Raises DecodeError (.file) for a malformed file, LimitError for more than 1 MiB.
    """
    lines, name = _lines(path, options)

    def entry(row: list[str]) -> LeaderEpoch:
        epoch, offset = row
        return LeaderEpoch(_number(epoch), _number(offset, 64))

    return _checkpoint(lines, name, "leader epoch checkpoint", "epoch offset", entry)


def leader_epoch_checkpoint(epochs: Sequence[LeaderEpoch]) -> bytes:
    """The bytes of a leader-epoch-checkpoint file (LeaderEpochCheckpointFile)."""
    return _written(epochs)


def read_offset_checkpoint(
    path: str | os.PathLike[str], options: dict[str, Any] | None = None
) -> list[PartitionOffset]:
    """The lines of one of the *-offset-checkpoint files of a log directory; none for an empty file.

    Raises DecodeError (.file) for a malformed file, LimitError for more than 64 MiB.
    """
    lines, name = _lines(path, options, MOST_BYTES)

    def entry(row: list[str]) -> PartitionOffset:
        topic, partition, offset = row
        return PartitionOffset(topic, _number(partition), _number(offset, 64))

    return _checkpoint(lines, name, "offset checkpoint", "topic partition offset", entry)


def offset_checkpoint(offsets: Sequence[PartitionOffset]) -> bytes:
    """The bytes of one of the *-offset-checkpoint files (OffsetCheckpointFile)."""
    return _written(offsets)


def _written(entries: Sequence[tuple[Any, ...]]) -> bytes:
    """A checkpoint file's bytes: its version, the number of entries, a line for each (CheckpointFile)."""
    lines = ["0", str(len(entries)), *(" ".join(map(str, entry)) for entry in entries)]
    return "".join(f"{line}\n" for line in lines).encode()


def _checkpoint(lines: list[str], name: str, what: str, columns: str, entry: Callable[[list[str]], T]) -> list[T]:
    """The entries of a checkpoint file. columns: what a line has; entry: one of the parts. Raises DecodeError."""
    if not lines:
        return []
    if len(lines) == 1:
        raise located(DecodeError(f"malformed {what}: expected the number of entries in line 2, found the end"), name)
    entries, width = [], len(columns.split())
    try:
        version, count = _number(lines[0]), _number(lines[1])
        for number, line in enumerate(lines[2:], 3):
            parts = line.split()
            if len(parts) != width:
                raise ValueError(f'expected "{columns}" in line {number}, found {line[:80]!r}')
            entries.append(entry(parts))
    except ValueError as error:
        raise located(DecodeError(f"malformed {what}: {error}"), name) from None
    if version != 0:
        raise located(DecodeError(f"unrecognized version {version} of the {what}, expected 0"), name)
    if count != len(entries):
        reason = f"expected {count} entries in the {what}, found {len(entries)}"
        raise located(DecodeError(reason), name)
    return entries


def read_partition_metadata(path: str | os.PathLike[str], options: dict[str, Any] | None = None) -> PartitionMetadata:
    """The version and topic id in a partition.metadata file.

    Raises DecodeError (.file) for what a broker refuses (PartitionMetadataFile), LimitError for more than 1 MiB.
    """
    lines, name = _lines(path, options)
    values = dict(line.split(": ", 1) for line in lines if ": " in line)
    try:
        metadata = PartitionMetadata(_number(values["version"]), uuid_from_text(values["topic_id"]))
    except KeyError as error:
        raise located(DecodeError(f"malformed partition metadata: {error.args[0]} is missing"), name) from None
    except ValueError as error:
        raise located(DecodeError(f"malformed partition metadata: {error}"), name) from None
    if metadata.version != 0:
        reason = f"unrecognized version {metadata.version} of the partition metadata, expected 0"
        raise located(DecodeError(reason), name)
    if not metadata.topic_id.int:
        raise located(DecodeError("malformed partition metadata: the topic id is zero"), name)
    return metadata


def partition_metadata(topic_id: UUID) -> bytes:
    """The content of a partition.metadata file."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def _number(text: str, bits: int = 32) -> int:
    """An int32, or what else Kafka's parser of these files reads. Raises ValueError."""
    if not re.fullmatch("-?[0-9]{1,19}", text):
        raise ValueError(f"{text[:40]!r} is not an integer")
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{text!r} is not an integer of {bits} bits")
    return value


def _lines(
    path: str | os.PathLike[str], options: dict[str, Any] | None, most: int = MOST_TEXT
) -> tuple[list[str], str]:
    data, name = _content(path, options, most)
    try:
        return data.decode().splitlines(), name
    except UnicodeDecodeError as error:
        raise located(DecodeError("not UTF-8 text", offset=error.start), name) from None


def _content(
    path: str | os.PathLike[str], options: dict[str, Any] | None, most: int = MOST_BYTES
) -> tuple[bytes, str]:
    """(the bytes of a small file, its path)."""
    return small_file(path, options, most=most), plain(path)


def small_file(
    path: str | os.PathLike[str], options: dict[str, Any] | None, size: int = -1, most: int = MOST_BYTES
) -> bytes:
    """The bytes of a file beside segments. size: as listed, -1: not known.

    Raises LimitError for more than `most`, DecodeError (.file) for fewer bytes than its size: a part of an index would
    be taken for all of it.
    """
    file = open_file(path, options, size).held()  # listed: it is no pipe, which would be waited for
    size = file.size() if size < 0 else size
    if size > most:
        raise located(LimitError("too large for a checkpoint file", limit=most, needed=size), file.path)
    data = file.read(0, size)
    if len(data) < size:
        raise located(DecodeError(f"expected {size} bytes, found {len(data)}: truncated while it was read"), file.path)
    return data
