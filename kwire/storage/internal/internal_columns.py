"""Committed offsets as Arrow columns, without a Python object for each record."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from kwire.codec.message_columns import MessageColumns, columns_of
from kwire.errors import KwireError
from kwire.schema.definitions import message

KEY_FIELDS = ("group", "topic", "partition")
VALUE_FIELDS = ("offset", "leader_epoch", "metadata", "commit_timestamp")
_KEY, _VALUE = "OffsetCommitKey", "OffsetCommitValue"
_TYPE = b"\0\1"  # at the beginning of a key
_TOMBSTONE, _ODD = -1, -2


class OffsetColumns:
    """The committed offsets among records of __consumer_offsets. rows: their numbers among the records, ascending.

    Columns are pyarrow.Arrays: group, topic, partition, offset, leader_epoch, metadata, commit_timestamp (int64,
    milliseconds); the last four are null in a tombstone.
    """

    def __init__(self, groups: list[tuple[list[int], MessageColumns, MessageColumns | None]]) -> None:
        self._groups = groups
        every = [row for rows, _, _ in groups for row in rows]
        self.rows = sorted(every)
        places = {row: at for at, row in enumerate(every)} if len(groups) > 1 else {}
        self._order = [places[row] for row in self.rows] if places else None

    def column(self, name: str) -> Any:
        """A column by its name."""
        import pyarrow as pa

        parts: list[Any] = []
        for rows, keys, values in self._groups:
            if name in KEY_FIELDS:
                parts.append(pa.array(keys[name]))
            else:
                parts.append(pa.nulls(len(rows)) if values is None else pa.array(values[name]))
        kind = next((part.type for part in parts if not pa.types.is_null(part.type)), pa.null())
        parts = [part if part.type == kind else pa.nulls(len(part), kind) for part in parts]
        whole = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return whole if self._order is None else whole.take(pa.array(self._order, pa.int64()))


def offset_columns(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> OffsetColumns | None:
    """The committed offsets of records, by the bytes of their keys and values; other records are left out.

    None where a record needs a look of its own: it cannot be decoded, or it is of an old version.
    """
    found: dict[int, list[int]] = {}
    for at, (key, value) in enumerate(zip(keys, values, strict=True)):
        kind = b"" if key is None else key[:2]
        if kind == _TYPE:
            version = _TOMBSTONE
            if value is not None:
                version = value[1] if len(value) > 1 and not value[0] else _ODD
            found.setdefault(version, []).append(at)
        elif len(kind) < 2 or kind == b"\0\0":
            return None
    if not found or not found.keys() <= _versions():
        return None
    groups = []
    try:
        for version, rows in found.items():
            decoded = None
            if version != _TOMBSTONE:
                decoded = columns_of(_VALUE, version, [(values[at] or b"")[2:] for at in rows], VALUE_FIELDS)
            groups.append((rows, columns_of(_KEY, 0, [(keys[at] or b"")[2:] for at in rows], KEY_FIELDS), decoded))
    except KwireError:
        return None
    return OffsetColumns(groups)


@cache
def _versions() -> frozenset[int]:
    """The versions of a value that have all of the fields."""
    value = message(_VALUE)
    fields = {field.snake_name: field.versions for field in value.fields}
    return frozenset(
        version for version in range(value.valid_versions.low, value.valid_versions.high + 1)
        if all(version in fields[name] for name in VALUE_FIELDS)
    ) | {_TOMBSTONE}
