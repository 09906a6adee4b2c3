"""The end of a partition that one committed read goes by, however long the read takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kwire.storage.batches.preallocated import ends_in_zeros, written_end
from kwire.storage.computed_once import once
from kwire.storage.isolation.planned_log import PlannedLog, PlannedSegment, names_beside
from kwire.storage.places.filesystem import SpooledFile, is_url, shown

if TYPE_CHECKING:
    from kwire.storage.places.discovery import SegmentFile
    from kwire.storage.reading.segment import LogSegment

_HEAD = 64  # bytes where a batch begins that are not all zeros


class ReadPlan:
    """Where the log of a partition ended when a committed read of it began.

    Each transaction that is read by one plan is given whole or not at all, though a broker writes meanwhile: what comes
    after the end does not count. segments: of the partition, in order; asked for when they are needed. end: bytes of
    the last one that count, None: all, as in a store, where objects do not grow. own: end is that of the segment with
    this path; the last one then ends where it does when the segments are asked for. It pickles, for reads in other
    processes.
    """

    def __init__(
        self, segments: Callable[[], Sequence[LogSegment]], end: int | None, own: str | None = None
    ) -> None:
        self._find, self.end, self._own = segments, end, own

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("_segments", "end", "_own", "_last_ends")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    @once
    def _segments(self) -> list[LogSegment]:
        found = list(self._find())
        if self._own is not None and self.end is not None and _goes_on(found[0], self.end):
            return found[:1]  # it was the last one: those after it begin after the end
        return found

    @once
    def _last_ends(self) -> tuple[int | None, int | None]:
        """Size and end of the last segment, as written() gives them."""
        last = self._segments[-1]
        return (None, self.end) if self._own in (None, last.path) else written(last)

    @once
    def _numbers(self) -> dict[str, int]:
        return {segment.path: number for number, segment in enumerate(self._segments)}

    @classmethod
    def as_listed(cls, segments: Sequence[LogSegment], files: Sequence[SegmentFile]) -> ReadPlan:
        """A plan that ends where a listing of the segments says, as LogEnd.of(files) does for those who read ranges."""
        last = files[-1]
        return cls(lambda: segments, None if is_url(last.path) or last.size < 0 else last.size)

    def find_end(self) -> None:
        """Find the segments now, and where the last one ends."""
        self._last_ends  # noqa: B018 (computed once)

    def end_of(self, segment: LogSegment) -> int | None:
        """The bytes of a segment of the partition that count, None: all. Raises ValueError for another partition's."""
        if self.end is None or segment.path == self._own:
            return self.end
        return self._last_ends[1] if self.number_of(segment) == len(self._numbers) - 1 else None

    def number_of(self, segment: LogSegment) -> int:
        """The number of a segment in the log. Raises ValueError if it is not of the partition."""
        number = self._numbers.get(segment.path)
        if number is None:
            raise ValueError(f"transactions: {shown(segment.path)} is not a segment of the plan's partition")
        return number

    def knows_no_more_than(self, segments: Callable[[], Sequence[LogSegment]]) -> bool:
        """Is what was read for it so far still right? segments: finds those that there are now."""
        if "_segments" not in vars(self):
            return True
        now = segments()
        if [one.path for one in now] != [*self._numbers]:
            return False
        return now[-1].path == self._own or written(now[-1], self._last_ends)[1] == self._last_ends[1]

    @once
    def log(self) -> PlannedLog:
        """The log up to that end. What was read of it is remembered."""
        names: dict[str, dict[str, int]] = {}
        planned = []
        for segment in self._segments:
            folder = _folder(segment.path)
            if folder not in names:
                names[folder] = names_beside(segment.path, segment.options)
            planned.append(PlannedSegment(
                segment.path, segment.base_offset, segment.file, names[folder], segment.options,
                self.end_of(segment)))
        first = self._segments[0]
        return PlannedLog(planned, names[_folder(first.path)], first.options)


class ReadPlans:
    """One plan for each partition that a read goes through, made at the first of its segments.

    bounded: as LogSegment.plan_when_needed().
    """

    def __init__(self, bounded: bool = True) -> None:
        self._bounded = bounded
        self._plans: dict[int, tuple[object, ReadPlan]] = {}  # with what keeps the id

    def options(self, segment: LogSegment, options: dict[str, Any]) -> dict[str, Any]:
        """Keywords to read a segment with: by the plan of its partition, if only committed records are read."""
        if not options.get("committed") or options.get("transactions") is not None:
            return options
        return {**options, "transactions": self.of(segment)}

    def of(self, segment: LogSegment) -> ReadPlan:
        """The plan of the partition of a segment."""
        shared = segment.partition_segments or segment
        if id(shared) not in self._plans:
            self._plans[id(shared)] = shared, segment.plan_when_needed(self._bounded)
        return self._plans[id(shared)][1]


def written(
    segment: LogSegment, known: tuple[int | None, int | None] | None = None, listed: int | None = None
) -> tuple[int | None, int | None]:
    """The size of the last segment of a partition, and the bytes that are written in it now; None: it does not grow.

    known: what it said before. While zeros are where the next batch goes, a preallocated segment is not read again.
    listed: its size that counts, whatever it is now.
    """
    if _is_fixed(segment):
        return None, None
    try:
        size = segment.size if listed is None else listed
        if known is not None and known[0] == size and known[1] is not None and known[1] < size and not any(
                segment.file.read(known[1], min(size, known[1] + _HEAD))):
            return known
        end = written_end(segment.file, 0, size)
    except OSError:  # removed since it was listed, or may not be read: reading it raises the error
        return None, None
    return size, size if end is None else end


def _goes_on(segment: LogSegment, end: int) -> bool:
    """Was more written into a segment after its end?"""
    with suppress(OSError):
        return any(segment.file.read(end, end + _HEAD))
    return False


def is_preallocated(segment: LogSegment) -> bool:
    """May a broker write into the last segment of a partition without a change of its size?"""
    with suppress(OSError):
        return not _is_fixed(segment) and ends_in_zeros(segment.file, segment.size)
    return False


def _is_fixed(segment: LogSegment) -> bool:
    return is_url(segment.path) or isinstance(segment.file, SpooledFile)


def _folder(path: str) -> str:
    return path[: path.rfind("/") + 1]
