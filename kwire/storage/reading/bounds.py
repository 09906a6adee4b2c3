"""The range of offsets and timestamps that a read asks for, applied to segments, windows, batches and records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from kwire.codec.arguments import check_ints
from kwire.storage.batches.batch_header import BatchHeader, parse_header
from kwire.storage.batches.scanner import FIRST_BYTES, Window

T = TypeVar("T")


class Bounds(NamedTuple):
    """A range of offsets and timestamps (ms): starts inclusive, ends exclusive; None: no bound."""

    start_offset: int | None = None
    end_offset: int | None = None
    start_timestamp: int | None = None
    end_timestamp: int | None = None

    @property
    def empty(self) -> bool:
        """Is the range empty?"""
        return _crossed(self.start_offset, self.end_offset) or _crossed(self.start_timestamp, self.end_timestamp)

    def narrowed(self, other: Bounds) -> Bounds:
        """The intersection of two ranges."""
        return Bounds(
            _tighter(max, self.start_offset, other.start_offset),
            _tighter(min, self.end_offset, other.end_offset),
            _tighter(max, self.start_timestamp, other.start_timestamp),
            _tighter(min, self.end_timestamp, other.end_timestamp),
        )

    def select(self, items: Sequence[T], first_offset: Callable[[T], int]) -> list[T]:
        """The segments or byte ranges (in order) that may hold offsets of the range; first_offset: -1 where unknown."""
        firsts = [first_offset(item) for item in items]
        return [
            item
            for item, first, following in zip(items, firsts, [*firsts[1:], -1], strict=False)
            if (self.end_offset is None or first < max(self.end_offset, 0))
            and (self.start_offset is None or not 0 <= following <= self.start_offset)
        ]

    def is_past(self, batch: Any) -> bool:
        """Is the batch, and all after it, past the end offset?"""
        return self.end_offset is not None and batch.base_offset >= self.end_offset

    def is_past_header(self, window: Window) -> bool:
        """Is the window's first batch past the end offset? (False for magic 0 and 1: a wrapper has no base offset.)"""
        if self.end_offset is None:
            return False
        first = parse_header(window.data, 0, window.position)
        return first.magic == 2 and first.base_offset >= self.end_offset

    def may_begin(self, header: BatchHeader) -> bool:
        """May the batch have records at or after the start?"""
        return (self.start_offset is None or header.last_offset >= self.start_offset) and (
            self.start_timestamp is None or header.max_timestamp >= self.start_timestamp
        )

    def touches(self, window: Window) -> bool:
        """May the records of a bad region have been in the range? By the offsets of the batches before and after it.

        Their timestamps tell nothing: those of a log need not ascend.
        """
        return self.reaches(window.after) and (
            window.follower is None or self.start_offset is None or window.follower.base_offset > self.start_offset)

    def reaches(self, last: int) -> bool:
        """Is there an offset of the range after that one?"""
        return self.end_offset is None or last + 1 < self.end_offset

    def misses(self, batch: Any) -> bool:
        """Does the header of the batch show that it has no record in the range?"""
        return (
            (self.start_offset is not None and batch.last_offset < self.start_offset)
            or (self.start_timestamp is not None and batch.max_timestamp < self.start_timestamp)
            or self.is_past(batch)
        )

    def holds(self, batch: Any) -> bool:
        """Are all records of the batch in the range?"""
        if self.start_timestamp is not None or self.end_timestamp is not None:
            return False
        return (self.start_offset is None or batch.base_offset >= self.start_offset) and (
            self.end_offset is None or batch.last_offset < self.end_offset
        )

    def admits(self, record: Any) -> bool:
        """Is the record in the range?"""
        return (
            (self.start_offset is None or record.offset >= self.start_offset)
            and (self.end_offset is None or record.offset < self.end_offset)
            and (self.start_timestamp is None or record.timestamp >= self.start_timestamp)
            and (self.end_timestamp is None or record.timestamp < self.end_timestamp)
        )


def bounds_of(
    start_offset: int | None, end_offset: int | None, start_timestamp: int | None = None,
    end_timestamp: int | None = None,
) -> Bounds:  # fmt: skip
    """The range of these arguments. Raises TypeError for one that is no integer."""
    check_ints(start_offset=start_offset, end_offset=end_offset, start_timestamp=start_timestamp,
               end_timestamp=end_timestamp)
    return Bounds(start_offset, end_offset, start_timestamp, end_timestamp)


NO_BOUNDS = Bounds()


class RangeEnd:
    """Tells where a read of a range ends: after FIRST_BYTES of batches past its end offset, two at least, in a row.

    Not at the first of them, whose base offset may be wrong. count: batches past the end, without another since.
    """

    def __init__(self) -> None:
        self.count = self._bytes = 0

    def is_reached(self, is_past: bool, size: int) -> bool:
        """Count the next batch of so many bytes. Does the read end after it?"""
        self._bytes, self.count = (self._bytes + size, self.count + 1) if is_past else (0, 0)
        return self.count > 1 and self._bytes >= FIRST_BYTES


def _crossed(start: int | None, end: int | None) -> bool:
    return start is not None and end is not None and start >= end


def _tighter(choose: Callable[[int, int], int], first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return choose(first, second)
