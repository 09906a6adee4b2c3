"""Where the batches of a partition's log are: in segments, here in memory (on disk: kwire.fleet.disk.segment_store)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter, itemgetter
from struct import Struct
from typing import Any, NamedTuple, TypeAlias

from kwire.errors import CorruptBatchError

PIECE_BYTES = 64 << 10  # that are read at a time where nothing says how much is wanted
# base offset, length after it, leader epoch, magic, CRC, attributes, last offset delta, base and largest timestamp
_HEAD = Struct(">qiibIhiqq")
_BEFORE_LENGTH_ENDS, _SMALLEST, _FIRST_MAGIC = 12, 61, 2

Data: TypeAlias = bytes | memoryview


class Entry(NamedTuple):
    """One batch of the log. data: as it is fetched; epoch: of the leader that wrote it; max_timestamp: milliseconds."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    epoch: int
    data: Data


def entries_in(data: Data) -> Iterator[Entry]:
    """The whole batches of magic 2 in data, in order; a partial last one is left. Raises CorruptBatchError."""
    view, at = memoryview(data), 0
    while len(view) - at >= _SMALLEST:
        base, length, epoch, magic, _, _, delta, _, largest = _HEAD.unpack_from(view, at)
        size = length + _BEFORE_LENGTH_ENDS
        if magic != _FIRST_MAGIC or size < _SMALLEST or delta < 0:
            raise CorruptBatchError(
                f"expected a batch of magic 2, found magic {magic}, {size} bytes, last offset delta {delta}",
                position=at, offset=base)
        if size > len(view) - at:
            return
        yield Entry(base, base + delta, largest, epoch, view[at : at + size])
        at += size


def size_of_first(data: Data) -> int:
    """How many bytes the batch has whose first ones these are."""
    return int.from_bytes(data[8:_BEFORE_LENGTH_ENDS], "big", signed=True) + _BEFORE_LENGTH_ENDS


class Segment:
    """A segment. size: bytes; first_timestamp: of its first batch, largest_timestamp: of all (ms), -1 if it has none.
    """

    def __init__(self, base_offset: int) -> None:
        self.base_offset, self.size = base_offset, 0
        self.first_timestamp = self.largest_timestamp = -1
        self._entries: list[tuple[Entry, int]] = []  # with the largest timestamp up to each

    def __repr__(self) -> str:
        return f"<Segment {self.base_offset}, {self.size} bytes>"

    def note(self, entry: Entry) -> None:
        """A batch was added at the end; after a MemoryError it was not."""
        size, largest = self.size + len(entry.data), max(self.largest_timestamp, entry.max_timestamp)
        first = self.first_timestamp if self.size else entry.max_timestamp
        self._keep(entry, largest)
        self.size, self.first_timestamp, self.largest_timestamp = size, first, largest

    def _keep(self, entry: Entry, largest: int) -> None:
        self._entries.append((entry, largest))

    def entries(self, offset: int, most: int) -> Iterator[Entry]:
        """The batches from the one with the offset on (or the first after it). most: bytes that may be wanted."""
        at = max(0, bisect_right(self._entries, offset, key=_base_offset) - 1)
        if at < len(self._entries) and self._entries[at][0].last_offset < offset:
            at += 1
        while at < len(self._entries):
            yield self._entries[at][0]
            at += 1

    def near(self, timestamp: int) -> int:
        """An offset at or before the first batch with a timestamp that is not smaller."""
        at = bisect_left(self._entries, timestamp, key=itemgetter(1))
        return self._entries[at][0].base_offset if at < len(self._entries) else self.base_offset


def _base_offset(kept: tuple[Entry, int]) -> int:
    return kept[0].base_offset


class BatchStore:
    """The segments of one log, in memory. Of them the last one, if any, is active: batches are added to it."""

    def __init__(self) -> None:
        self.segments: list[Any] = []

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    def add(self, entry: Entry) -> None:
        """Add a batch to the active segment. Raises ApiError, KAFKA_STORAGE_ERROR, and nothing was added then."""
        if not self.segments:
            self.segments.append(Segment(entry.base_offset))
        self.segments[-1].note(entry)

    def roll(self, base_offset: int) -> None:
        """End the active segment and begin the next one. Raises ApiError."""
        self.segments.append(Segment(base_offset))

    def entries(self, offset: int, most: int = PIECE_BYTES) -> Iterator[Entry]:
        """The batches from the one with the offset on, read as they are asked for. most: bytes that may be wanted.

        Raises ApiError, KAFKA_STORAGE_ERROR, if they cannot be read.
        """
        at = max(0, bisect_right(self.segments, offset, key=attrgetter("base_offset")) - 1)
        while at < len(self.segments):
            yield from self.segments[at].entries(offset, most)
            at += 1

    def near(self, timestamp: int) -> int | None:
        """An offset at or before the first batch with a timestamp that is not smaller; None: there is none."""
        segment = next((one for one in self.segments if one.largest_timestamp >= timestamp), None)
        return None if segment is None else segment.near(timestamp)

    def settle(self) -> None:
        """End what an error of the disk has stopped: then the segments are those that are there. Raises ApiError."""

    def drop(self, count: int) -> None:
        """Delete the oldest segments. Raises ApiError."""
        del self.segments[:count]

    def replace(self, first: int, count: int, batches: Iterable[bytes], aborted: list[Any]) -> None:
        """Replace some segments by one at the base offset of the first of them, with these batches.

        aborted: the aborted transactions whose markers are in it, as the .txnindex has them. Raises ApiError.
        """
        made = Segment(self.segments[first].base_offset)
        for data in batches:
            for entry in entries_in(data):
                made.note(entry)
        self.segments[first : first + count] = [made]

    def keep_epochs(self, epochs: list[tuple[int, int]]) -> None:
        """The leader epochs changed. Raises ApiError."""

    def keep_start(self, offset: int) -> None:
        """The start of the log changed. Raises ApiError."""
