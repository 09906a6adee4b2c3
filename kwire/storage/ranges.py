"""What part of a segment is wanted, by offsets and timestamps, asked of windows, batches and records."""

from __future__ import annotations

from typing import Any, NamedTuple

from kwire.storage.scan import Window, parse_header


class Range(NamedTuple):
    """Offsets and timestamps (ms) that are wanted, ends exclusive; None: no bound."""

    start_offset: int | None = None
    end_offset: int | None = None
    start_timestamp: int | None = None
    end_timestamp: int | None = None

    def is_behind(self, batch: Any) -> bool:
        """Does the batch, and all after it, stand behind the range?"""
        return self.end_offset is not None and batch.base_offset >= self.end_offset

    def is_behind_header(self, window: Window) -> bool:
        """Does the window's first batch stand behind the range? (Wrappers of magic 0 and 1 cannot tell.)"""
        if self.end_offset is None:
            return False
        first = parse_header(window.data, 0, window.position)
        return first.magic == 2 and first.base_offset >= self.end_offset

    def misses(self, batch: Any) -> bool:
        """Has the batch, by its header, no record in the range?"""
        return (
            (self.start_offset is not None and batch.last_offset < self.start_offset)
            or (self.start_timestamp is not None and batch.max_timestamp < self.start_timestamp)
            or self.is_behind(batch)
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
