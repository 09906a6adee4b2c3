"""Where a segment ends, found by a few small reads at its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from kwire.errors import CorruptBatchError
from kwire.storage.discovery import beside
from kwire.storage.filesystem import open_file
from kwire.storage.scanner import resync

if TYPE_CHECKING:
    from kwire.storage.segment import LogSegment

_FIRST_SPAN = 32 << 10  # bytes at the end of a segment that are looked at first
_ENTRY = 8  # bytes of an entry of a .index


def end_offset(segment: LogSegment) -> int | None:
    """The offset after the last whole batch of a segment, None if it has no batch.

    Read are the headers from the last entry of the .index on, or from the first batch in a piece at the end that grows
    until it holds one.
    """
    for start in _starts(segment):
        end = None
        with suppress(CorruptBatchError):
            for header in segment.headers(start):
                end = int(header.last_offset) + 1
        if end is not None:
            return end
    return None


def _starts(segment: LogSegment) -> Iterator[int]:
    """Positions of batches, further and further from the end."""
    size = segment.size
    indexed = _last_indexed(segment)
    if 0 < indexed < size:
        yield indexed
    span = _FIRST_SPAN
    while span < size:
        position = resync(segment.file, size - span)
        if position is not None:
            yield position
        span *= 16
    if size:
        yield 0


def _last_indexed(segment: LogSegment) -> int:
    """The position in the last entry of the .index; 0 where there is none, or zeros that Kafka preallocated."""
    size = -1 if segment.beside is None else segment.beside.offset_index
    if size < _ENTRY:
        return 0
    with suppress(FileNotFoundError):
        at = size // _ENTRY * _ENTRY
        index = open_file(beside(segment.path, ".index"), segment.options, size)
        return int.from_bytes(index.read(at - _ENTRY // 2, at), "big")
    return 0
