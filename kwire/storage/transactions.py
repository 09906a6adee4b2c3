"""Which batches of a partition belong to aborted or open transactions, by markers in the data and by .txnindex."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kwire.errors import LimitError
from kwire.storage.batch_header import checksum_holds
from kwire.storage.filesystem import located
from kwire.storage.scanner import Scanner
from kwire_c.log_scan import next_marked
from kwire_c.record_batch import BATCH_FORMAT, CONTROL_FLAG, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD, TRANSACTIONAL_FLAG

if TYPE_CHECKING:
    from kwire.storage.filesystem import File
    from kwire.storage.indexes import AbortedTransaction, TransactionIndex
    from kwire.storage.scanner import Window

MOST_PRODUCERS, MOST_ABORTED = 500_000, 2_000_000  # in one segment, in one partition: some 300 MiB of memory
_ABORT, _COMMIT = 0, 1
_fields = Struct(BATCH_FORMAT).unpack_from


class Transactions(NamedTuple):
    """What read_committed needs to know of a piece of a partition; plain data, pickles, small.

    aborted: (producer id, first offset, offset of the abort marker), ascending;
    open: (producer id, first offset) of transactions without a marker, ascending: that producer's transactional batches
    from there on are left out.
    """

    aborted: Sequence[tuple[int, int, int]] = ()
    open: Sequence[tuple[int, int]] = ()

    def hides(self, producer_id: int, base_offset: int) -> bool:
        """Does a transactional batch of this producer at this base offset belong to an aborted or open transaction?"""
        at = bisect_right(self.aborted, (producer_id, base_offset, 1 << 63)) - 1
        if at >= 0:
            producer, first, last = self.aborted[at]
            if producer == producer_id and first <= base_offset <= last:
                return True
        at = bisect_right(self.open, (producer_id, base_offset)) - 1
        return at >= 0 and self.open[at][0] == producer_id


class FirstMarkers:
    """The first transaction marker of each producer in a segment; reads no further than it is asked, and remembers."""

    def __init__(self, file: File) -> None:
        self._found: dict[int, tuple[int, int]] = {}
        self.in_order: list[tuple[int, tuple[int, int]]] = []  # what was found: producer, marker; some perhaps twice
        self._at: int | None = 0  # what stands in front of it was read; None: all was
        self._file = file

    def of(self, producer: int) -> tuple[int, int] | None:
        """(offset, type) of the producer's first marker, None if there is none."""
        at = self._at
        if producer not in self._found and at is not None:
            self._read_to(producer, at)
        return self._found.get(producer)

    def _read_to(self, producer: int, start: int) -> None:
        """Read on from a byte; other threads may do the same, and go as far or farther."""
        for window in Scanner(self._file, start):
            for at, end, base, attributes, one in _marked(window):
                if attributes & CONTROL_FLAG and one not in self._found:
                    kind = marker_type(window.data[at:end])
                    if kind in (_ABORT, _COMMIT):
                        self._found[one] = (base, kind)
                        self.in_order.append((one, (base, kind)))
            _bounded(len(self._found), self._file, "producers with transactions in one segment", MOST_PRODUCERS)
            self._at = window.end
            if producer in self._found:
                return
        self._at = None


class HasMarkers(Protocol):
    """A segment."""

    @property
    def first_markers(self) -> FirstMarkers:
        """The first transaction marker of each producer in it."""


class LaterMarkers:
    """The segments of a partition in order, asked for the first marker of a producer behind one of them.

    The markers of all segments from the first that was asked behind are noted by producer, as far as it was needed, so
    that a partition is gone through once, however many segments and producers ask.
    """

    def __init__(self, segments: Sequence[HasMarkers]) -> None:
        self._segments = segments
        self._turn = Lock()  # nobody waits for it: a child of fork may have it held for ever
        self._begin(0)

    def _begin(self, number: int) -> None:
        """Have noted nothing, and go on at that segment."""
        self._first, self._next, self._taken = number, number, 0  # noted from, to; markers of the next one
        self._noted: dict[int, list[tuple[int, tuple[int, int]]]] = {}  # producer -> segments, markers

    def behind(self, number: int, producer: int) -> tuple[int, int] | None:
        """(offset, type) of the producer's first marker in the segments behind that number, None if there is none."""
        if not self._turn.acquire(blocking=False):  # another thread is at what is noted
            found = (segment.first_markers.of(producer) for segment in self._segments[number + 1 :])
            return next(filter(None, found), None)
        whole = False
        try:
            marker = self._noted_behind(number, producer)
            whole = True
            return marker
        finally:
            if not whole:
                self._begin(0)
            self._turn.release()

    def _noted_behind(self, number: int, producer: int) -> tuple[int, int] | None:
        if not self._first <= number + 1 <= self._next:
            self._begin(number + 1)
        noted = self._noted.get(producer, [])
        at = bisect_right(noted, number, key=lambda one: one[0])
        if at < len(noted):
            return noted[at][1]
        while self._next < len(self._segments):
            markers = self._segments[self._next].first_markers
            found = markers.of(producer)
            for other, marker in markers.in_order[self._taken :]:
                self._taken += 1
                places = self._noted.setdefault(other, [])
                if not places or places[-1][0] < self._next:
                    places.append((self._next, marker))
            if found is not None:
                return found
            self._next, self._taken = self._next + 1, 0
        return None


class HasIndex(Protocol):
    """A segment."""

    file: File

    @property
    def transaction_index(self) -> TransactionIndex | None:
        """Its .txnindex, None if missing."""


def listed_aborted(segments: Iterable[HasIndex]) -> Iterator[AbortedTransaction]:
    """The entries of all .txnindex files of a partition but damaged ones. Raises LimitError for over MOST_ABORTED."""
    count = 0
    for segment in segments:
        index = segment.transaction_index
        if index and not index.damage:
            count += len(index.entries)
            _bounded(count, segment.file, "aborted transactions in one partition", MOST_ABORTED)
            yield from index.entries


class AbortedByIndex:
    """The entries of .txnindex files, found by producer and offset."""

    def __init__(self, entries: Iterable[AbortedTransaction]) -> None:
        ranges: dict[int, list[tuple[int, int]]] = {}
        for entry in entries:
            ranges.setdefault(entry.producer_id, []).append((entry.first_offset, entry.last_offset))
        self._ranges = {producer: _joined(sorted(found)) for producer, found in ranges.items()}

    def __contains__(self, producer: int) -> bool:
        return producer in self._ranges

    def at(self, producer: int, offset: int) -> tuple[int, int] | None:
        """(first offset, offset of the abort marker) of the producer's transaction around that offset, or None."""
        found = self._ranges.get(producer, ())
        at = bisect_right(found, offset, key=lambda one: one[0]) - 1
        return found[at] if at >= 0 and offset <= found[at][1] else None


def find_transactions(
    file: File,
    start: int,
    end: int | None,
    later: Callable[[int], tuple[int, int] | None],
    listed: AbortedByIndex,
) -> Transactions:
    """The transactions that the batches in bytes [start, end) of the file belong to.

    Looks for their markers behind end too, and then in the later segments of the partition: later gives the first
    marker (offset, type) of a producer in them. listed: what their .txnindex files and that of the file say; an entry
    counts unless the markers in the data contradict it. Raises LimitError where more than MOST_PRODUCERS, or
    MOST_ABORTED, are there.
    """
    file = file.held()
    size = file.size()
    end = size if end is None else end
    pending: dict[int, int] = {}  # producer -> first offset seen of its running transaction
    aborted: list[tuple[int, int, int]] = []
    markers: dict[int, array[int]] = {}  # of producers that are listed: twice the offset, and one for a commit
    touched: dict[int, tuple[int, int]] = {}  # producer -> the entry around its last batch in the range, if any
    around: set[tuple[int, int, int]] = set()  # the entries around batches

    def settle(producer: int, offset: int, kind: int) -> None:
        if producer in listed and offset >= 0:
            markers.setdefault(producer, array("Q")).append(offset << 1 | (kind == _COMMIT))
        first = pending.pop(producer, None)
        if first is not None and kind == _ABORT:
            aborted.append((producer, first, offset))

    for window in Scanner(file, start, end):
        for at, behind, base, attributes, producer in _marked(window):
            if attributes & CONTROL_FLAG:
                kind = marker_type(window.data[at:behind])
                if kind in (_ABORT, _COMMIT):
                    settle(producer, base, kind)
            else:
                pending.setdefault(producer, base)
                first, last = touched.setdefault(producer, (0, -1))
                if not first <= base <= last and (entry := listed.at(producer, base)):
                    touched[producer] = entry
                    around.add((producer, *entry))
        _bounded(len(touched), file, "producers with transactions in one segment", MOST_PRODUCERS)
        _bounded(len(aborted), file, "aborted transactions in one segment", MOST_ABORTED)
    if pending and end < size:
        _settle_behind(Scanner(file, end), pending, settle)
    for producer in list(pending):
        marker = later(producer)
        if marker is not None:
            settle(producer, *marker)
    seen = {producer: sorted(found) for producer, found in markers.items()}
    for producer, first, last in around:
        mine = seen.get(producer, ())
        at = bisect_left(mine, first << 1)  # a marker inside contradicts, and a commit at its end
        inside = at < len(mine) and mine[at] < last << 1
        at = bisect_left(mine, last << 1 | 1, at)
        if not inside and not (at < len(mine) and mine[at] == last << 1 | 1):
            aborted.append((producer, first, last))
    merged = _merged(aborted)
    _bounded(len(merged), file, "aborted transactions in one segment", MOST_ABORTED)
    return Transactions(merged, sorted(pending.items()))


def _bounded(count: int, file: File, what: str, most: int) -> None:
    """Refuses more producers, or aborted transactions, than memory is for."""
    if count > most:
        raise located(LimitError(f"too many {what}", limit=most, needed=count), file.path)


def _settle_behind(
    scanner: Scanner, pending: dict[int, int], settle: Callable[[int, int, int], None]
) -> None:
    """Read on behind a range until nothing is pending."""
    for window in scanner:
        for at, end, base, attributes, producer in _marked(window):
            if attributes & CONTROL_FLAG:
                kind = marker_type(window.data[at:end])
                if kind in (_ABORT, _COMMIT):
                    settle(producer, base, kind)
                    if not pending:
                        return


def _marked(window: Window) -> Iterator[tuple[int, int, int, int, int]]:
    """(start, end, base offset, attributes, producer id) of the transactional batches in a window."""
    data = window.data if window.bad is None else memoryview(b"")
    at = next_marked(data, 0, TRANSACTIONAL_FLAG)
    while at >= 0:
        base, length, _, _, _, attributes, _, _, _, producer, *_ = _fields(data, at)
        end = at + LOG_OVERHEAD + length
        yield at, end, base, attributes, producer
        at = next_marked(data, end, TRANSACTIONAL_FLAG)


def marker_type(batch: memoryview) -> int:
    """The type in a control batch (0 abort, 1 commit, ...; ControlRecordType), -1 where the batch is damaged."""
    try:
        at = _skip_varint(batch, RECORD_BATCH_OVERHEAD) + 1  # the record's length and attributes
        at = _skip_varint(batch, _skip_varint(batch, at)) + 1  # deltas; a key of 4 bytes has a length of one byte
        if batch[at - 1] < 8 or not checksum_holds(batch):
            return -1
        return int.from_bytes(batch[at + 2 : at + 4], "big", signed=True)
    except IndexError:
        return -1


def _skip_varint(data: memoryview, at: int) -> int:
    while data[at] & 0x80:
        at += 1
    return at + 1


def _merged(ranges: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Sorted by producer, overlapping ones joined."""
    merged: list[tuple[int, int, int]] = []
    for producer, first, last in sorted(ranges):
        if merged and merged[-1][0] == producer and first <= merged[-1][2]:
            merged[-1] = (producer, merged[-1][1], max(last, merged[-1][2]))
        else:
            merged.append((producer, first, last))
    return merged


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of one producer, in order of their beginnings: overlapping ones, which no broker writes, joined."""
    joined: list[tuple[int, int]] = []
    for first, last in ranges:
        if joined and first <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined
