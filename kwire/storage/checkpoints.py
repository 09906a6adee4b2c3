"""The small files beside segments: producer snapshots, the leader epoch checkpoint, partition.metadata."""

from __future__ import annotations

import os
import re
from base64 import urlsafe_b64decode
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID

from kwire.errors import DecodeError, LimitError, UnsupportedVersionError
from kwire.storage.filesystem import located, open_file
from kwire_c.crc32c import crc32c

MOST_BYTES = 64 << 20  # of a snapshot: that of a million producers has 52 MB
MOST_TEXT = 1 << 20  # of the others, which have a few lines
_ENTRY = Struct(">qhiqiqiq")


class ProducerState(NamedTuple):
    """A producer as the broker remembers it (ProducerStateEntry). Times are milliseconds; what is unknown is -1."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_transaction_first_offset: int


class LeaderEpoch(NamedTuple):
    """From which offset on a leader epoch wrote the log."""

    epoch: int
    start_offset: int


class PartitionMetadata(NamedTuple):
    """What partition.metadata says (KIP-516)."""

    version: int
    topic_id: UUID


def read_producer_snapshot(
    path: str | os.PathLike[str], options: dict[str, Any] | None = None
) -> list[ProducerState]:
    """The producers in a .snapshot file (ProducerStateManager, version 1).

    Raises DecodeError (.file) for damaged bytes, a wrong CRC-32C included, LimitError for more than 64 MiB,
    UnsupportedVersionError for another version.
    """
    data, name = _content(path, options)
    if len(data) < 10:
        raise located(DecodeError(f"a producer snapshot needs 10 bytes, {len(data)} are there", offset=0), name)
    version = int.from_bytes(data[:2], "big", signed=True)
    if version != 1:
        raise located(UnsupportedVersionError(f"producer snapshot version {version}", needed=version, offered=(1, 1)),
                      name)
    stored, count = int.from_bytes(data[2:6], "big"), int.from_bytes(data[6:10], "big", signed=True)
    if crc32c(data[6:]) != stored:
        reason = f"checksum is {crc32c(data[6:]):#010x}, {stored:#010x} is stored"
        raise located(DecodeError(reason, offset=2), name)
    if count < 0 or len(data) - 10 != count * _ENTRY.size:
        reason = f"{count} entries of {_ENTRY.size} bytes do not fill the {len(data) - 10} bytes behind the head"
        raise located(DecodeError(reason, offset=6), name)
    return [ProducerState(*entry) for entry in _ENTRY.iter_unpack(data[10:])]


def read_leader_epochs(path: str | os.PathLike[str], options: dict[str, Any] | None = None) -> list[LeaderEpoch]:
    """The lines of a leader-epoch-checkpoint; none of an empty one.

    Raises DecodeError (.file) for another layout, LimitError for more than 1 MiB.
    """
    lines, name = _lines(path, options)
    if not lines:
        return []
    try:
        version, count = _number(lines[0]), _number(lines[1])
        epochs = [LeaderEpoch(*map(_number, line.split())) for line in lines[2:]]
    except (ValueError, IndexError, TypeError) as error:
        raise located(DecodeError(f"no leader epoch checkpoint: {error}"), name) from None
    if version != 0 or count != len(epochs):
        raise located(DecodeError(f"version {version}, {count} entries announced, {len(epochs)} found"), name)
    return epochs


def read_partition_metadata(path: str | os.PathLike[str], options: dict[str, Any] | None = None) -> PartitionMetadata:
    """The version and topic id of a partition.metadata.

    Raises DecodeError (.file) for another layout, LimitError for more than 1 MiB.
    """
    lines, name = _lines(path, options)
    values = dict(line.split(": ", 1) for line in lines if ": " in line)
    try:
        return PartitionMetadata(_number(values["version"]), UUID(bytes=urlsafe_b64decode(values["topic_id"] + "==")))
    except (ValueError, KeyError) as error:
        raise located(DecodeError(f"no partition metadata: {error}"), name) from None


def _number(text: str) -> int:
    if not re.fullmatch("-?[0-9]{1,19}", text):
        raise ValueError(f"{text[:40]!r} is no whole number")
    return int(text)


def _lines(path: str | os.PathLike[str], options: dict[str, Any] | None) -> tuple[list[str], str]:
    data, name = _content(path, options, MOST_TEXT)
    try:
        return data.decode().splitlines(), name
    except UnicodeDecodeError as error:
        raise located(DecodeError("not text", offset=error.start), name) from None


def _content(
    path: str | os.PathLike[str], options: dict[str, Any] | None, most: int = MOST_BYTES
) -> tuple[bytes, str]:
    """(the bytes of a small file, its path)."""
    file = open_file(path, options).held()
    size = file.size()
    if size > most:
        raise located(LimitError("no checkpoint is so large", limit=most, needed=size), file.path)
    return file.read(0, size), file.path
