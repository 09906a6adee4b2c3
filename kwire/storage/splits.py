"""Splits a segment into byte ranges at batch boundaries, one for each task that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kwire.storage.batch_header import examine
from kwire.storage.scanner import KEPT_BYTES, Scanner

if TYPE_CHECKING:
    from kwire.storage.filesystem import File
    from kwire.storage.indexes import OffsetIndex


class ByteRange(NamedTuple):
    """Bytes [start, end) of a segment, at batch boundaries; first_offset: of its first batch (-1 unknown)."""

    start: int
    end: int
    first_offset: int


def split(file: File, partition_bytes: int, index: OffsetIndex | None = None) -> list[ByteRange]:
    """Split a segment at batch boundaries into ranges of about partition_bytes (at least one batch each).

    Through the entries of an OffsetIndex where they check out (header, length, CRC), else by hopping over headers.
    Bytes whose length cannot be trusted stay in one range with what stands before them. Covers all bytes of the file.
    """
    if partition_bytes < 1:
        raise ValueError(f"partition_bytes is {partition_bytes}: at least 1 is needed")
    file = file.held()
    size = file.size()
    if not size:
        return []
    edges = _index_edges(file, partition_bytes, size, index) or _scanned_edges(file, partition_bytes)
    places = [examine(file, edge, size) for edge in edges]
    return [
        ByteRange(edge, end, place.offset if place.kind == "batch" else -1)
        for edge, end, place in zip(edges, [*edges[1:], size], places, strict=True)
    ]


def _index_edges(file: File, partition_bytes: int, size: int, index: OffsetIndex | None) -> list[int]:
    """Boundaries by the index; none where it is missing, too coarse, or an entry points to no batch of its offset."""
    edges = [0]
    if index is None or not index.entries or size <= partition_bytes:
        return [0] if size <= partition_bytes else []
    while size - edges[-1] > partition_bytes:
        found = index.below_position(edges[-1] + partition_bytes)
        if found is None or found[1] <= edges[-1] or not index.points_right(file, found, size):
            return []
        edges.append(found[1])
    return edges


def _scanned_edges(file: File, partition_bytes: int) -> list[int]:
    edges = [0]
    scanner = Scanner(file, window_bytes=min(KEPT_BYTES, partition_bytes))
    for window in scanner:
        if window.bad is None and window.position > edges[-1] and window.end - edges[-1] > partition_bytes:
            edges.append(window.position)
        scanner.window_bytes = min(KEPT_BYTES, max(1, partition_bytes - (window.end - edges[-1])))
    return edges
