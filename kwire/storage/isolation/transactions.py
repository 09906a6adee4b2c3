"""Which batches of a partition belong to aborted or open transactions, by markers in the data and by .txnindex."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kwire.errors import LimitError
from kwire.storage.batches.batch_header import checksum_holds
from kwire.storage.batches.scanner import OUT_OF_ORDER, Scanner
from kwire.storage.places.filesystem import located
from kwire_c.log_scan import next_marked
from kwire_c.record_batch import BATCH_FORMAT, CONTROL_FLAG, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, TRANSACTIONAL_FLAG

if TYPE_CHECKING:
    from kwire.storage.batches.scanner import Window
    from kwire.storage.places.filesystem import File
    from kwire.storage.side_files.indexes import AbortedTransaction

MOST_PRODUCERS, MOST_ABORTED = 500_000, 2_000_000  # in one segment, in one partition: about 300 MiB of memory
ABORT, COMMIT = 0, 1  # types of transaction markers (ControlRecordType)
_FIRST_READ = 64 << 10  # bytes of a look for a marker, which is near as a rule; it doubles
_fields = Struct(BATCH_FORMAT).unpack_from


class Transactions(NamedTuple):
    """The transactions that read_committed leaves out of a part of a partition; plain data, pickles, small.

    aborted: (producer id, first offset, offset of the abort marker, or of the last batch where the marker's is out of
    order), ascending; a batch whose own offset is out of order is a range of its own;
    open: (producer id, first offset) of transactions without a marker, ascending: all transactional batches of that
    producer from that offset on are left out.
    """

    aborted: Sequence[tuple[int, int, int]] = ()
    open: Sequence[tuple[int, int]] = ()

    def hides(self, producer_id: int, base_offset: int) -> bool:
        """Does a transactional batch of this producer at this base offset belong to an aborted or open transaction?"""
        return self.state(producer_id, base_offset) != "committed"

    def state(self, producer_id: int, base_offset: int) -> str:
        """"committed", "aborted" or "open": of the transaction of a batch of this producer at this base offset."""
        at = bisect_right(self.aborted, (producer_id, base_offset, 1 << 63)) - 1
        if at >= 0:
            producer, first, last = self.aborted[at]
            if producer == producer_id and first <= base_offset <= last:
                return "aborted"
        at = bisect_right(self.open, (producer_id, base_offset)) - 1
        return "open" if at >= 0 and self.open[at][0] == producer_id else "committed"


class FirstMarkers:
    """The first transaction marker of each producer in a segment; reads no further than needed, and remembers.

    limit: bytes of the segment that count, None: all.
    """

    def __init__(self, file: File, limit: int | None = None) -> None:
        self._markers: dict[int, tuple[int, int]] = {}
        self.in_order: list[tuple[int, tuple[int, int]]] = []  # (producer, marker) as read; some perhaps twice
        self._at: int | None = 0  # the bytes before it were read; None: the whole segment was
        self._file, self._limit = file, limit

    def of(self, producer: int) -> tuple[int, int] | None:
        """(offset, type) of the producer's first marker, None if there is none."""
        at = self._at
        if producer not in self._markers and at is not None:
            self._read_to(producer, at)
        return self._markers.get(producer)

    def _read_to(self, producer: int, start: int) -> None:
        """Read on from a byte; other threads may do the same at the same time."""
        for window in _scanner(self._file, start, self._limit):
            for _, _, offset, writer, kind in transactional(window, self._limit):
                if kind is not None and writer not in self._markers:
                    self.in_order.append((writer, (offset, kind)))
                    self._markers[writer] = (offset, kind)  # last: if it is interrupted before, both are noted again
            bounded(len(self._markers), self._file, "producers with transactions in one segment", MOST_PRODUCERS)
            self._at = window.end
            if producer in self._markers:
                return
        self._at = None


class HasMarkers(Protocol):
    """The part of a segment that LaterMarkers needs."""

    @property
    def first_markers(self) -> FirstMarkers:
        """The first transaction marker of each producer in it."""


class LaterMarkers:
    """The first marker of a producer after a segment of a partition.

    Markers read once are noted by producer, so that a partition is read once, however many segments and producers are
    looked up.
    """

    def __init__(self, segments: Sequence[HasMarkers]) -> None:
        self._segments = segments
        self._turn = Lock()  # never waited for: in the child of a fork it may stay locked for ever
        self._begin(0)

    def _begin(self, number: int) -> None:
        """Drop all notes, and go on at that segment."""
        self._first, self._next, self._taken = number, number, 0  # segments noted: from, to; markers noted of the next
        self._noted: dict[int, list[tuple[int, tuple[int, int]]]] = {}  # producer -> segments, markers

    def after(self, number: int, producer: int) -> tuple[int, int] | None:
        """(offset, type) of the producer's first marker in the segments after that number, None if there is none."""
        if not self._turn.acquire(blocking=False):  # another thread uses the notes: look without them
            markers = (segment.first_markers.of(producer) for segment in self._segments[number + 1 :])
            return next(filter(None, markers), None)
        complete = False
        try:
            marker = self._noted_after(number, producer)
            complete = True
            return marker
        finally:
            if not complete:
                self._begin(0)
            self._turn.release()

    def _noted_after(self, number: int, producer: int) -> tuple[int, int] | None:
        if not self._first <= number + 1 <= self._next:
            self._begin(number + 1)
        noted = self._noted.get(producer, [])
        at = bisect_right(noted, number, key=lambda note: note[0])
        if at < len(noted):
            return noted[at][1]
        while self._next < len(self._segments):
            markers = self._segments[self._next].first_markers
            first = markers.of(producer)
            for other, marker in markers.in_order[self._taken :]:
                self._taken += 1
                notes = self._noted.setdefault(other, [])
                if not notes or notes[-1][0] < self._next:
                    notes.append((self._next, marker))
            if first is not None:
                return first
            self._next, self._taken = self._next + 1, 0
        return None


class AbortedByIndex:
    """The entries of .txnindex files, found by producer and offset."""

    def __init__(self, entries: Iterable[AbortedTransaction]) -> None:
        ranges: dict[int, list[tuple[int, int]]] = {}
        for entry in entries:
            ranges.setdefault(entry.producer_id, []).append((entry.first_offset, entry.last_offset))
        self._ranges = {producer: _joined(sorted(unsorted)) for producer, unsorted in ranges.items()}

    def __contains__(self, producer: int) -> bool:
        return producer in self._ranges

    def at(self, producer: int, offset: int) -> tuple[int, int] | None:
        """(first offset, offset of the abort marker) of the producer's transaction around that offset, or None."""
        ranges = self._ranges.get(producer, ())
        at = bisect_right(ranges, offset, key=lambda first_last: first_last[0]) - 1
        return ranges[at] if at >= 0 and offset <= ranges[at][1] else None


class _Producer:
    """What a part of a segment has of one producer, in the order of the bytes.

    No checksum covers the base offset of a batch or marker. One that is out of order tells nothing of those beside it.
    last: the offset seen last, before: the one before it, of batches and markers that are in order. first: of the first
    such batch of the ongoing transaction, None: there is none; odd: of its batches that are out of order. ended: the
    number of the aborted range that ends at the marker `last`, None: it is no such one; until: of the last batch in it.
    entry: of the .txnindex, around the last batch.
    """

    __slots__ = ("before", "ended", "entry", "first", "last", "odd", "until")

    def __init__(self) -> None:
        self.before = self.last = self.until = -1
        self.first: int | None = None
        self.ended: int | None = None
        self.odd: list[int] = []
        self.entry = (0, -1)


def find_transactions(
    file: File,
    start: int,
    end: int | None,
    after: Callable[[dict[int, int], dict[int, int], int], Iterable[tuple[int, int, int]]],
    listed: Callable[[], AbortedByIndex],
    limit: int | None = None,
    size: int | None = None,
) -> Transactions:
    """The transactions that the batches in bytes [start, end) of the file belong to.

    after(pending, newest, position) gives markers (producer, offset, type) after the range, in order of offsets, of
    the pending producers at least; pending shrinks with each that is taken. newest: producer -> base offset of its
    last batch in the range, which is of its last transaction, as a marker in between may be damaged. listed: gives
    the entries of the .txnindex files, is called only if there are transactions; an entry counts unless the markers
    in the data contradict it. limit: markers that go past that byte do not count. size: bytes of the file that are
    read, None: all; it has to be that of who reads the range: a batch that is read and was not seen here counts as
    committed. Raises LimitError for more than MOST_PRODUCERS or MOST_ABORTED.
    """
    file = file.held()
    end = file.size() if end is None else end
    pending: dict[int, int] = {}  # producer -> first offset seen of its ongoing transaction
    newest: dict[int, int] = {}
    aborted: list[tuple[int, int, int]] = []
    markers: dict[int, array[int]] = {}  # of listed producers: 2 * offset, plus 1 for a commit
    producers: dict[int, _Producer] = {}  # with batches in the range
    around: set[tuple[int, int, int]] = set()  # the entries around batches
    odd_ones = 0  # batches of ongoing transactions that are out of order

    def leave_out(mine: _Producer, offset: int) -> None:
        nonlocal odd_ones
        mine.odd.append(offset)
        odd_ones += 1

    def in_order(producer: int, mine: _Producer, offset: int) -> bool:
        """Is the next offset of a producer in order? If the one before it is too large, that one was not."""
        if offset > mine.last:
            mine.before = mine.last
        elif offset <= mine.before:
            return False
        elif mine.ended is not None:  # the marker
            aborted[mine.ended] = (*aborted[mine.ended][:2], mine.until)
        elif mine.first is not None:
            leave_out(mine, mine.last)
            newest[producer] = mine.before
            mine.first = None if mine.first == mine.last else mine.first
        mine.last, mine.ended = offset, None
        return True

    def settle(producer: int, offset: int, kind: int) -> None:
        nonlocal odd_ones
        if offset >= 0 and producer in listed():
            markers.setdefault(producer, array("Q")).append(offset << 1 | (kind == COMMIT))
        mine = producers.get(producer)
        if mine is None:
            return
        is_last = offset >= 0 and in_order(producer, mine, offset)
        if pending.pop(producer, None) is not None and kind == ABORT:
            if mine.first is not None:
                mine.ended, mine.until = len(aborted) if is_last else None, newest[producer]
                aborted.append((producer, mine.first, offset if is_last else mine.until))
            aborted.extend((producer, odd, odd) for odd in mine.odd)
        odd_ones -= len(mine.odd)
        mine.first, mine.odd = None, []

    reached = start
    for window in Scanner(file, start, end, size=size):
        reached = window.end  # past end, if a batch begins before it and ends after it
        for _, _, base, producer, kind in transactional(window, limit):
            if kind is not None:
                settle(producer, base, kind)
                continue
            mine = producers.get(producer)
            if mine is None:
                mine = producers[producer] = _Producer()
            if not in_order(producer, mine, base):
                leave_out(mine, base)
                if producer not in pending:  # it begins after what was seen before, whatever its offset says
                    pending[producer] = newest[producer] = mine.last + 1
            else:
                newest[producer] = base
                if mine.first is None:
                    mine.first = pending[producer] = base
            first, last = mine.entry
            if not first <= base <= last and (entry := listed().at(producer, base)):
                mine.entry = entry
                around.add((producer, *entry))
        bounded(len(producers), file, "producers with transactions in one segment", MOST_PRODUCERS)
        bounded(len(aborted) + odd_ones, file, "aborted transactions in one segment", MOST_ABORTED)
    for marker in after(pending, newest, max(end, reached)):
        settle(*marker)
    for producer in pending:  # the batches after its first one are left out as open
        aborted.extend((producer, odd, odd) for odd in producers[producer].odd if odd < pending[producer])
    seen = {producer: sorted(unsorted) for producer, unsorted in markers.items()}
    for producer, first, last in around:
        ends = seen.get(producer, ())
        at = bisect_left(ends, first << 1)  # a marker inside the entry contradicts it, and a commit at its end does
        inside = at < len(ends) and ends[at] < last << 1
        at = bisect_left(ends, last << 1 | 1, at)
        if not inside and not (at < len(ends) and ends[at] == last << 1 | 1):
            aborted.append((producer, first, last))
    merged = _merged(aborted)
    bounded(len(merged), file, "aborted transactions in one segment", MOST_ABORTED)
    return Transactions(merged, sorted(pending.items()))


def bounded(count: int, file: File, things: str, most: int) -> None:
    """Raise LimitError for more producers, or aborted transactions, than `most`."""
    if count > most:
        raise located(LimitError(f"too many {things}", limit=most, needed=count, offset=None), file.path)


def markers_after(
    file: File, end: int, pending: dict[int, int], later: Callable[[int], tuple[int, int] | None],
    limit: int | None = None,
) -> Iterator[tuple[int, int, int]]:
    """The markers after a range, up to byte limit, until none is pending, then those that later gives.

    See find_transactions.
    """
    if pending and end < (file.size() if limit is None else limit):
        for marker in read_markers(file, end, limit):
            yield marker
            if not pending:
                return
    for producer in list(pending):
        found = later(producer)
        if found is not None:
            yield producer, *found


def read_markers(file: File, start: int, limit: int | None = None) -> Iterator[tuple[int, int, int]]:
    """(producer id, offset, type) of the transaction markers from a byte of a file on, up to byte limit."""
    for window in _scanner(file, start, limit):
        for _, _, offset, producer, kind in transactional(window, limit):
            if kind is not None:
                yield producer, offset, kind


def _scanner(file: File, start: int, limit: int | None) -> Scanner:
    """A Scanner from a byte on that reads little at first: as a rule a marker is near."""
    return Scanner(file, start, limit, first_bytes=_FIRST_READ)


def transactional(window: Window, limit: int | None = None) -> Iterator[tuple[int, int, int, int, int | None]]:
    """(first byte, byte after it, base offset, producer id, kind) of the transactional batches in a window.

    kind: None for records, ABORT or COMMIT for a marker. Other control batches, and markers that go past byte limit,
    are left out. Of a batch with a wrong base offset only the marker counts: where it is in the log tells what it ends.
    """
    data, is_odd = window.data, window.bad is not None
    at = -1 if is_odd and OUT_OF_ORDER not in str(window.bad) else next_marked(data, 0, TRANSACTIONAL_FLAG)
    while at >= 0:
        base, length, _, _, _, attributes, _, _, _, producer, *_ = _fields(data, at)
        end = at + LOG_OVERHEAD + length
        if not attributes & CONTROL_FLAG:
            if not is_odd:
                yield window.position + at, window.position + end, base, producer, None
        elif limit is None or window.position + end <= limit:
            kind = marker_type(data[at:end])
            if kind in (ABORT, COMMIT):
                yield window.position + at, window.position + end, base, producer, kind
        at = next_marked(data, end, TRANSACTIONAL_FLAG)


def marker_type(batch: memoryview) -> int:
    """The type of a control batch (0 abort, 1 commit, ...; ControlRecordType), -1 if the batch is damaged."""
    try:
        at = _skip_varint(batch, RECORD_BATCH_OVERHEAD) + 1  # the record's length and attributes
        at = _skip_varint(batch, _skip_varint(batch, at)) + 1  # deltas; a key of 4 bytes has a length of one byte
        if batch[at - 1] < 8 or not checksum_holds(batch):
            return -1
        return int.from_bytes(batch[at + 2 : at + 4], "big", signed=True)
    except IndexError:
        return -1


def _skip_varint(data: memoryview, at: int) -> int:
    """The byte after a varint of at most 10 bytes. Raises IndexError for a longer one."""
    for end in range(at, at + 10):
        if not data[end] & 0x80:
            return end + 1
    raise IndexError


def _merged(ranges: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """(producer, first, last) sorted by producer, overlapping ones joined."""
    merged: list[tuple[int, int, int]] = []
    for producer, first, last in sorted(ranges):
        if merged and merged[-1][0] == producer and first <= merged[-1][2]:
            merged[-1] = (producer, merged[-1][1], max(last, merged[-1][2]))
        else:
            merged.append((producer, first, last))
    return merged


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """(first, last) of one producer, sorted: overlapping ones, which no broker writes, joined."""
    joined: list[tuple[int, int]] = []
    for first, last in ranges:
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined
