"""The offsets and timestamps that a read is bounded by, asked of segments, windows, batches and records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from kwire.storage.batch_header import parse_header
from kwire.storage.scanner import Window

T = TypeVar("T")


class Bounds(NamedTuple):
    """Offsets and timestamps (ms) that are wanted: starts inclusive, ends exclusive; None: no bound."""

    start_offset: int | None = None
    end_offset: int | None = None
    start_timestamp: int | None = None
    end_timestamp: int | None = None

    @property
    def empty(self) -> bool:
        """Can no record pass?"""
        return _crossed(self.start_offset, self.end_offset) or _crossed(self.start_timestamp, self.end_timestamp)

    def narrowed(self, other: Bounds) -> Bounds:
        """Return what passes both."""
        return Bounds(
            _tighter(max, self.start_offset, other.start_offset),
            _tighter(min, self.end_offset, other.end_offset),
            _tighter(max, self.start_timestamp, other.start_timestamp),
            _tighter(min, self.end_timestamp, other.end_timestamp),
        )

    def select(self, items: Sequence[T], first_offset: Callable[[T], int]) -> list[T]:
        """Those that may hold offsets in them, of segments or byte ranges in order; first_offset: -1 where unknown."""
        firsts = [first_offset(item) for item in items]
        return [
            item
            for item, first, following in zip(items, firsts, [*firsts[1:], -1], strict=True)
            if (self.end_offset is None or first < max(self.end_offset, 0))
            and (self.start_offset is None or not 0 <= following <= self.start_offset)
        ]

    def is_past(self, batch: Any) -> bool:
        """Does the batch, and all after it, lie past them?"""
        return self.end_offset is not None and batch.base_offset >= self.end_offset

    def is_past_header(self, window: Window) -> bool:
        """Does the window's first batch lie past them? (Wrappers of magic 0 and 1 cannot tell.)"""
        if self.end_offset is None:
            return False
        first = parse_header(window.data, 0, window.position)
        return first.magic == 2 and first.base_offset >= self.end_offset

    def misses(self, batch: Any) -> bool:
        """Has the batch, by its header, no record in the range?"""
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


NO_BOUNDS = Bounds()


def _crossed(start: int | None, end: int | None) -> bool:
    return start is not None and end is not None and start >= end


def _tighter(choose: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return choose(one, other)
