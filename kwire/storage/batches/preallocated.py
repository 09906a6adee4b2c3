"""Segments that a broker has preallocated (log.preallocate): where what it has written ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.storage.batches.scanner import Scanner
from kwire.storage.places.filesystem import is_url

if TYPE_CHECKING:
    from kwire.storage.places.filesystem import File

_ZEROS = 64  # bytes at the end of a file in which there is room for a batch


def ends_in_zeros(file: File, size: int) -> bool:
    """May a broker write more into a segment of that size, which then stays (log.preallocate)? Not to a store."""
    if is_url(file.path) or size < _ZEROS:
        return False
    return not any(file.read(size - _ZEROS, size))


def written_end(file: File, position: int, size: int) -> int | None:
    """The end of what is in a preallocated segment now, from a byte on; None for any other, where its size tells.

    A batch that comes later may begin a transaction.
    """
    if not ends_in_zeros(file, size):
        return None
    end = position
    scanner = Scanner(file, position, size)
    for window in scanner:
        end = min(window.end, size)
    return end if scanner.tail_is_zeros else None
