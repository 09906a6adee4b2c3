"""The first and the last batch of a segment, found by a few small reads at its ends and in its indexes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from kwire.errors import CorruptBatchError
from kwire.storage.batches.batch_header import BatchHeader, end_of_data, examine, parse_header
from kwire.storage.batches.preallocated import ends_in_zeros
from kwire.storage.batches.scanner import Scanner, window_headers
from kwire.storage.places.discovery import beside
from kwire.storage.places.filesystem import open_file
from kwire_c.record_batch import RECORD_BATCH_OVERHEAD

if TYPE_CHECKING:
    from kwire.storage.reading.segment import LogSegment

_FIRST_SPAN = 32 << 10  # bytes at the end of a segment that are looked at first


def first_header(segment: LogSegment) -> BatchHeader | None:
    """The header of the first batch of a segment, by one read of 61 bytes; None if there is none.

    The batch itself is not looked at: its checksum may be wrong.
    """
    size = segment.size
    head = memoryview(segment.file.read(0, min(size, RECORD_BATCH_OVERHEAD)))
    if len(head) < min(size, RECORD_BATCH_OVERHEAD):  # truncated meanwhile
        return None
    place = examine(segment.file, 0, size, head, zeros_to=lambda file, position, size: size)
    return parse_header(head, 0, 0) if place.kind == "batch" else None


def last_timestamp(segment: LogSegment) -> int | None:
    """The largest timestamp (ms) up to the last entry of the .timeindex; None where there is none, or zeros."""
    entry = _last_entry(segment, ".timeindex", 12)
    return None if not any(entry) else int.from_bytes(entry[:8], "big", signed=True)


def end_offset(segment: LogSegment) -> int | None:
    """The offset after the last whole batch of a segment, None if it has no batch."""
    end = end_of(segment)
    return None if end is None else end[0]


def end_of(segment: LogSegment) -> tuple[int, int] | None:
    """(offset after the last whole batch, largest timestamp of the last batches) of a segment, None if it has no batch.

    Read are the headers from the last entry of the .index on, or from the first batch of a piece at the end that grows
    until it holds one.
    """
    for scanner in _scanners(segment.held()):
        end, latest = None, -1
        with suppress(CorruptBatchError):  # truncated meanwhile
            for window in scanner:
                for header in window_headers(window) if window.bad is None else ():
                    end, latest = int(header.last_offset) + 1, max(latest, header.max_timestamp)
        if end is not None:
            return end, latest
    return None


def _scanners(segment: LogSegment) -> Iterator[Scanner]:
    """Scanners to the end, from batches of the log that are further and further from it; none in a record's value."""
    position, offset = _last_indexed(segment)
    if position > 0:
        indexed = _scanner(segment, position)
        if indexed.is_append(position, offset):
            yield indexed
    size = segment.size
    if ends_in_zeros(segment.file, size):
        size = end_of_data(segment.file)
    span = _FIRST_SPAN
    while span < size:
        yield _scanner(segment, segment.boundary(size - span))
        span *= 16
    if size:
        yield _scanner(segment, 0)


def _scanner(segment: LogSegment, start: int) -> Scanner:
    return Scanner(segment.file, start, checked=False, heads=True)


def _last_indexed(segment: LogSegment) -> tuple[int, int]:
    """(position, offset) by the last entry of the .index; zeros where there is none, or zeros that Kafka preallocated.
    """
    entry = _last_entry(segment, ".index", 8)
    relative, position = int.from_bytes(entry[:4], "big", signed=True), int.from_bytes(entry[4:], "big")
    return (position, segment.base_offset + relative) if position else (0, 0)


def _last_entry(segment: LogSegment, kind: str, width: int) -> bytes:
    """The last entry of an index beside a segment that was listed, empty where there is none."""
    size = -1 if segment.beside is None else segment.beside.of(kind)
    at = size // width * width
    if at <= 0:
        return b""
    try:
        entry = open_file(beside(segment.path, kind), segment.options, size).read(at - width, at)
    except FileNotFoundError:
        return b""
    return entry if len(entry) == width else b""  # truncated since
