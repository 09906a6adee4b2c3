"""One .log file with what stands beside it: its size and tail, indexes, places by offset and time, transactions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from kwire.storage import cuts, indexes, scan
from kwire.storage.discovery import beside, later_segments, offset_in_name, place_of
from kwire.storage.ranges import Range
from kwire.storage.source import SpooledSource, is_url, open_source, plain, shown
from kwire.storage.transactions import (
    AbortedByIndex,
    FirstMarkers,
    LaterMarkers,
    Transactions,
    find_transactions,
    listed_aborted,
)

S = TypeVar("S", bound="IndexedSegment")
T = TypeVar("T")


class once(Generic[T]):
    """An attribute that a method makes at first use; threads that come together all get the first one's.

    functools.cached_property of Python 3.11 holds a lock meanwhile, of all objects together: in a child of fork nobody
    gives it back.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make, self.__doc__ = make, make.__doc__

    def __get__(self, owner: object, kind: type) -> T:
        """Asked where the object has no attribute of the name yet."""
        made: T = vars(owner).setdefault(self.make.__name__, self.make(owner))
        return made

    if TYPE_CHECKING:  # at run time it has none: what is set stands in the object

        def __set__(self, owner: object, value: T) -> None: ...


class SegmentLog(Generic[S]):
    """The segments of a partition in order, and what all of them together tell of transactions."""

    def __init__(self, segments: list[S]) -> None:
        self.segments = segments

    @once
    def markers(self) -> LaterMarkers:
        """Where the first marker of a producer behind a segment stands."""
        return LaterMarkers(self.segments)

    @once
    def aborted(self) -> AbortedByIndex:
        """What the .txnindex files say that are not damaged. Raises LimitError where they say too much."""
        return AbortedByIndex(listed_aborted(self.segments))


class IndexedSegment:
    """A segment as a file of batches, none of them decoded; see LogSegment."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        topic: str | None = None,
        partition: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.path = plain(path)
        self.options = options
        self.source = open_source(self.path, options)
        if isinstance(self.source, SpooledSource) and not self.source.once:
            os.stat(self.path)  # a .gz is unpacked when it is read
        else:
            self.source.size()
        place = place_of(self.path)
        self.topic = place[0] if topic is None else topic
        self.partition = place[1] if partition is None else partition
        self._tail: tuple[int, int] | bool | None = False
        self._number = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({shown(self.path)!r})"

    @property
    def files(self) -> list[str]:
        """The local files that it is read from, whether they are there or not: its own and the indexes beside it."""
        if is_url(self.path):
            return []
        return [self.path, *(beside(self.path, kind) for kind in (".index", ".timeindex", ".txnindex"))]

    @property
    def size(self) -> int:
        """Bytes of the .log file as it is now."""
        return self.source.size()

    @property
    def named_offset(self) -> int | None:
        """The base offset by the file's name, None where it is named otherwise."""
        offset = offset_in_name(self.path)
        return None if offset < 0 else offset

    @once
    def base_offset(self) -> int:
        """The offset that the file's name tells, else that of the first batch (0 where there is none)."""
        named = offset_in_name(self.path)
        if named >= 0:
            return named
        place = scan.examine(self.source, 0, self.size)
        return place.offset if place.kind == "batch" else 0

    @property
    def later(self) -> list[Self]:
        """The segments of the same partition behind this one, in order."""
        return self.log.segments[self._number + 1 :]

    @once
    def log(self) -> SegmentLog[Self]:
        """The partition from this segment on, unless a Partition has said what it is: see join."""
        return SegmentLog([self, *(
            type(self)(path, topic=self.topic, partition=self.partition, options=self.options)
            for path in later_segments(self.path, self.options)
        )])  # fmt: skip

    def join(self, log: SegmentLog[Self], number: int) -> None:
        """Be the segment of that number in a partition."""
        self.log, self._number = log, number

    @property
    def tail(self) -> tuple[int, int] | None:
        """(position, bytes left) of a partial last batch or of preallocated zeros, None if the file ends cleanly."""
        if self._tail is False:
            scanner = scan.Scanner(self.source)
            for _ in scanner:
                pass
            self._tail = scanner.tail
        return self._tail  # type: ignore[return-value]

    def note_tail(self, tail: tuple[int, int] | None) -> None:
        """Remember what a scan to the end found there."""
        self._tail = tail

    def _beside(self, kind: str) -> bytes | None:
        try:
            source = open_source(beside(self.path, kind), self.options)
            if isinstance(source, SpooledSource):  # a pipe, which nobody named: it may have no end
                return None
            source = source.held()
            return source.read(0, min(source.size(), indexes.MOST_BYTES + 1))
        except FileNotFoundError:
            return None

    @once
    def index(self) -> indexes.OffsetIndex | None:
        """The .index beside the segment, None if missing."""
        data = self._beside(".index")
        return None if data is None else indexes.OffsetIndex(data, self.base_offset)

    @once
    def time_index(self) -> indexes.TimeIndex | None:
        """The .timeindex beside the segment, None if missing."""
        data = self._beside(".timeindex")
        return None if data is None else indexes.TimeIndex(data, self.base_offset)

    @once
    def transaction_index(self) -> indexes.TransactionIndex | None:
        """The .txnindex beside the segment, None if missing."""
        data = self._beside(".txnindex")
        return None if data is None else indexes.TransactionIndex(data)

    def cut(self, partition_bytes: int) -> list[cuts.ByteRange]:
        """Byte ranges at batch boundaries that together cover the segment, each about partition_bytes."""
        return cuts.cut(self.source, partition_bytes, self.index)

    def headers(self, start: int = 0, end: int | None = None) -> Iterator[scan.BatchHeader]:
        """The headers of the batches in bytes [start, end), nothing decoded; start is a batch boundary.

        Raises CorruptBatchError (.file .position .offset .reason) where bytes are no batches.
        """
        return scan.headers(self.source, start, end)

    def seek(self, offset: int) -> int:
        """Position of the batch that holds the first record at or behind offset; .size if there is none."""
        return self._first(self._near(offset), lambda header: header.last_offset >= offset)

    def seek_time(self, timestamp: int) -> int:
        """Position of the first batch whose largest timestamp is >= timestamp (ms); .size if there is none."""
        return self._first(self._near_time(timestamp), lambda header: header.max_timestamp >= timestamp)

    def _first(self, start: int, wanted: Any) -> int:
        for window in scan.Scanner(self.source, start):
            if window.bad is None:
                for header in scan.window_headers(window):
                    if wanted(header):
                        return header.position
        return self.size

    def _near(self, offset: int) -> int:
        """A batch boundary at or before the one that holds offset: by the index where it checks out, else 0."""
        entry = self.index.below(offset) if self.index else None
        if entry and self.index and self.index.points_right(self.source, entry, self.size):
            return entry[1]
        return 0

    def _near_time(self, timestamp: int) -> int:
        """A batch boundary before which all timestamps are smaller: by both indexes where they check out, else 0."""
        index = self.time_index
        entry = index.before(timestamp) if index and index.damage is None else None
        if entry is None:
            return 0
        for window in scan.Scanner(self.source, self._near(entry[1])):
            for header in scan.window_headers(window) if window.bad is None else ():
                if header.last_offset >= entry[1]:
                    return header.position if header.max_timestamp == entry[0] else 0
        return 0

    def start_of(self, span: Range) -> int:
        """The position at which reading a range begins."""
        start = 0
        if span.start_offset is not None and span.start_offset > self.base_offset:
            start = self.seek(span.start_offset)
        if span.start_timestamp is not None:
            start = max(start, self.seek_time(span.start_timestamp))
        return start

    def transactions(self, start: int = 0, end: int | None = None) -> Transactions:
        """Aborted and open transactions of the batches in bytes [start, end); looks into later segments as needed."""
        log, number = self.log, self._number
        return find_transactions(
            self.source, start, end, lambda producer: log.markers.behind(number, producer), log.aborted)

    @once
    def first_markers(self) -> FirstMarkers:
        """The first transaction marker of each producer in this segment, as far as it was needed."""
        return FirstMarkers(self.source)
