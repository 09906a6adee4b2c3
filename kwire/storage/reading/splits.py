"""Splits a segment into byte ranges at batch boundaries, one for each task that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kwire.storage.batches.batch_header import examine
from kwire.storage.batches.scanner import KEPT_BYTES, Scanner

if TYPE_CHECKING:
    from kwire.storage.places.filesystem import File
    from kwire.storage.side_files.indexes import OffsetIndex


class ByteRange(NamedTuple):
    """Bytes [start, end) of a segment, at batch boundaries; first_offset: of its first batch (-1 unknown)."""

    start: int
    end: int
    first_offset: int


def split(file: File, partition_bytes: int, index: OffsetIndex | None = None) -> list[ByteRange]:
    """Split a segment at batch boundaries into ranges of about partition_bytes (at least one batch each).

    By the entries of an OffsetIndex if they are right (header, length, CRC), else by hopping over headers. A bad
    region stays in one range with the batches before it. The ranges cover all bytes of the file. Raises ValueError
    for partition_bytes below 1.
    """
    if partition_bytes < 1:
        raise ValueError(f"partition_bytes must be at least 1, not {partition_bytes}")
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
    """Boundaries by the index; none if it is missing, too coarse, or an entry does not point to the batch it names."""
    edges = [0]
    if index is None or not index.entries or size <= partition_bytes:
        return [0] if size <= partition_bytes else []
    while size - edges[-1] > partition_bytes:
        entry = index.below_position(edges[-1] + partition_bytes)
        if entry is None or entry[1] <= edges[-1] or not index.points_to_batch(file, entry, size):
            return []
        edges.append(entry[1])
    return edges


def _scanned_edges(file: File, partition_bytes: int) -> list[int]:
    edges = [0]
    scanner = Scanner(file, window_bytes=min(KEPT_BYTES, partition_bytes), verify=True)
    for window in scanner:
        if window.bad is None and window.position > edges[-1] and window.end - edges[-1] > partition_bytes:
            edges.append(window.position)
        scanner.window_bytes = min(KEPT_BYTES, max(1, partition_bytes - (window.end - edges[-1])))
    return edges
