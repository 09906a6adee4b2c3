"""The open transactions of a log as it was listed, before which a reader of committed records stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kwire.storage.computed_once import once
from kwire.storage.places.discovery import SegmentFile
from kwire.storage.reading.directory import Partition
from kwire.storage.reading.read_plan import ReadPlan
from kwire.storage.reading.segment import LogSegment


class OpenTransaction(NamedTuple):
    """A transaction without a marker, whose batches and all after them wait for it. timestamp: ms, of the batch."""

    producer_id: int
    first_offset: int
    timestamp: int = -1


class OpenTransactions:
    """Those of a partition up to the ends that its files were listed with: a marker that came later does not count.

    files: of the partition, in order. options: of the store. Nothing is read before it is asked; what is read for one
    answer serves all.
    """

    def __init__(self, files: Sequence[SegmentFile], options: dict[str, Any] | None = None) -> None:
        self.files, self._options = files, options

    @once
    def segments(self) -> list[LogSegment]:
        """The segments, opened."""
        return Partition(self.files, self._options).segments

    @once
    def _plan(self) -> ReadPlan:
        return ReadPlan.as_listed(self.segments, self.files)

    def oldest(self, number: int) -> OpenTransaction | None:
        """The oldest one in the segment of a number, by the markers in it and in those after it; None if none is."""
        found = self.segments[number].transactions(plan=self._plan).open
        oldest = min(found, key=lambda one: one[1], default=None)
        return None if oldest is None else OpenTransaction(*oldest)
