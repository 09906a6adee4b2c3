"""The files beside segments as rows: indexes, producer snapshots, checkpoints, meta.properties, quorum-state."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kwire.codec.json import json_fault
from kwire.errors import DecodeError, KwireError
from kwire.properties import parse_properties
from kwire.storage.places.file_kinds import SNIFFED, kind_by_content, kind_by_name
from kwire.storage.places.filesystem import is_url, located, open_file, plain
from kwire.storage.side_files import indexes
from kwire.storage.side_files.checkpoints import (
    MOST_TEXT,
    LeaderEpoch,
    PartitionOffset,
    ProducerState,
    producer_entries,
    read_leader_epochs,
    read_offset_checkpoint,
    read_partition_metadata,
    small_file,
)
from kwire.storage.side_files.uuids import uuid_text

_MOST_OFFSET = (1 << 63) - 1
_MOST_LEVELS = 100  # of JSON: a broker's quorum-state has three
_BASE = re.compile(r"\d{1,20}(?=\.)")


class SideFile(NamedTuple):
    """What is in a file beside segments. kind: "offset index", "producer snapshot", "leader epochs" and so on.

    columns: the names of what is in each row; offsets are absolute, timestamps in milliseconds. damage: what is wrong
    with the file, None if nothing; then rows has what could be read. padding: entries of zeros that Kafka preallocated
    in an index, which are no rows.
    """

    path: str
    kind: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    damage: str | None = None
    padding: int = 0


def side_file_kind(path: str | os.PathLike[str], options: dict[str, Any] | None = None) -> str | None:
    """What a file beside segments is: by its name, else by its first bytes. None for segments, folders, other files."""
    text = plain(path)
    if not is_url(text) and os.path.isdir(text):
        return None
    kind = kind_by_name(text)
    if kind is not None:
        return kind
    if text.endswith((".log", ".gz", ".checkpoint")) or is_url(text) or not os.path.isfile(text):
        return None
    return kind_by_content(open_file(text, options).read(0, SNIFFED))


def read_side_file(path: str | os.PathLike[str], options: dict[str, Any] | None = None) -> SideFile:
    """The rows of a file beside segments.

    Raises DecodeError (.file) for a file that is none or is damaged as a whole, LimitError for one that is too large,
    FileNotFoundError. Where single entries are wrong, .damage says so.
    """
    text = plain(path)
    kind = side_file_kind(path, options)
    if kind is None:
        raise located(DecodeError("expected an index, a producer snapshot or a checkpoint file"), text)
    try:
        return _READERS[kind](text, kind, options)
    except KwireError as error:
        raise located(error, text) from error.__cause__


def _offset_index(path: str, kind: str, options: dict[str, Any] | None) -> SideFile:
    base = _base_offset(path)
    index = indexes.OffsetIndex(_bytes(path, options), base)
    _check_offsets(base, index.entries, 0)
    return SideFile(path, kind, ("offset", "position"), index.entries, index.damage, index.padding)


def _time_index(path: str, kind: str, options: dict[str, Any] | None) -> SideFile:
    base = _base_offset(path)
    index = indexes.TimeIndex(_bytes(path, options), base)
    _check_offsets(base, index.entries, 1)
    return SideFile(path, kind, ("timestamp", "offset"), index.entries, index.damage, index.padding)


def _transaction_index(path: str, kind: str, options: dict[str, Any] | None) -> SideFile:
    index = indexes.TransactionIndex(_bytes(path, options))
    return SideFile(path, kind, indexes.AbortedTransaction._fields, index.entries, index.damage)


def _producer_snapshot(path: str, kind: str, options: dict[str, Any] | None) -> SideFile:
    states = [ProducerState(*entry) for entry in producer_entries(small_file(path, options), path)]
    return SideFile(path, kind, ProducerState._fields, states)


def _leader_epochs(path: str, kind: str, options: dict[str, Any] | None) -> SideFile:
    return SideFile(path, kind, LeaderEpoch._fields, read_leader_epochs(path, options))


def _offset_checkpoint(path: str, kind: str, options: dict[str, Any] | None) -> SideFile:
    return SideFile(path, kind, PartitionOffset._fields, read_offset_checkpoint(path, options))


def _partition_metadata(path: str, kind: str, options: dict[str, Any] | None) -> SideFile:
    version, topic_id = read_partition_metadata(path, options)
    return SideFile(path, kind, ("version", "topic_id"), [(version, uuid_text(topic_id))])


def _properties(path: str, kind: str, options: dict[str, Any] | None) -> SideFile:
    text = small_file(path, options, most=MOST_TEXT).decode("latin-1")
    try:
        properties = parse_properties(text)
    except ValueError as error:
        raise DecodeError(f"malformed {kind}: {error}") from None
    return SideFile(path, kind, ("name", "value"), list(properties.items()))


def _quorum_state(path: str, kind: str, options: dict[str, Any] | None) -> SideFile:
    try:
        state = json.loads(_text(path, options))
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"malformed {kind}: {json_fault(error)}") from None
    if not isinstance(state, dict):
        raise DecodeError(f"malformed {kind}: expected a JSON object")
    _check_json(state, kind)
    return SideFile(path, kind, ("name", "value"), list(state.items()))


_READERS: dict[str, Callable[[str, str, dict[str, Any] | None], SideFile]] = {
    "offset index": _offset_index, "time index": _time_index, "transaction index": _transaction_index,
    "producer snapshot": _producer_snapshot, "leader epochs": _leader_epochs, "offset checkpoint": _offset_checkpoint,
    "partition metadata": _partition_metadata, "meta.properties": _properties, "quorum state": _quorum_state,
}  # fmt: skip


def _check_json(value: Any, kind: str) -> None:
    """Raise DecodeError for too many levels, and for text that is no Unicode: neither can be written again."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [
            item for value in level if isinstance(value, dict | list)
            for item in (value if isinstance(value, list) else (*value, *value.values()))
        ]
        try:
            for item in level:
                if isinstance(item, str):
                    item.encode()
        except UnicodeEncodeError:
            raise DecodeError(f"malformed {kind}: a lone surrogate, which UTF-8 cannot encode") from None
    if level:
        raise DecodeError(f"malformed {kind}: too many levels")


def _check_offsets(base: int, entries: Sequence[tuple[int, int]], column: int) -> None:
    """Raise DecodeError for an offset of more than 63 bits: by the file's name, to which those in it are added."""
    if base <= _MOST_OFFSET - (1 << 31):  # those in the file are int32
        return
    largest = max((entry[column] for entry in entries), default=0)
    if largest > _MOST_OFFSET:
        raise DecodeError(f"offset {largest} is past the largest one there can be: a wrong name?")


def _base_offset(path: str) -> int:
    """The base offset in the name of an index, 0 if there is none."""
    found = _BASE.match(path.rpartition("/")[2])
    return int(found[0]) if found and int(found[0]) < 1 << 63 else 0


def _bytes(path: str, options: dict[str, Any] | None) -> bytes:
    return small_file(path, options, most=indexes.MOST_BYTES)


def _text(path: str, options: dict[str, Any] | None) -> str:
    data = small_file(path, options, most=MOST_TEXT)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError("not UTF-8 text", offset=error.start) from None
