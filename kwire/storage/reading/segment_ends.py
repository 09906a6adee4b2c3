"""The first and the last batch of a segment, found by a few small reads at its ends and in its indexes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from kwire.errors import CorruptBatchError
from kwire.storage.batches.batch_header import BatchHeader, examine, parse_header
from kwire.storage.batches.scanner import resync
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

    Read are the headers from the last entry of the .index on, or from the first batch in a piece at the end that grows
    until it holds one.
    """
    for start in _starts(segment):
        end, latest = None, -1
        with suppress(CorruptBatchError):
            for header in segment.headers(start):
                end, latest = int(header.last_offset) + 1, max(latest, header.max_timestamp)
        if end is not None:
            return end, latest
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
    return int.from_bytes(_last_entry(segment, ".index", 8)[4:], "big")


def _last_entry(segment: LogSegment, kind: str, width: int) -> bytes:
    """The last entry of an index beside a segment that was listed, empty where there is none."""
    size = -1 if segment.beside is None else segment.beside.of(kind)
    at = size // width * width
    if at <= 0:
        return b""
    try:
        return open_file(beside(segment.path, kind), segment.options, size).read(at - width, at)
    except FileNotFoundError:
        return b""
