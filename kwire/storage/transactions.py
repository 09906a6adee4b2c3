"""Which batches of a partition belong to aborted or open transactions, by markers in the data and by .txnindex."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kwire.storage.scan import Scanner, checksum_holds
from kwire.storage.source import located
from kwire_c.failure import LimitError
from kwire_c.scan import next_marked

if TYPE_CHECKING:
    from kwire.storage.indexes import AbortedTransaction
    from kwire.storage.scan import Window
    from kwire.storage.source import Source

MOST_PRODUCERS, MOST_ABORTED = 500_000, 2_000_000  # in one segment: some 300 MiB of memory
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_ABORT, _COMMIT = 0, 1
_fields = Struct(">qi4xb4xh20xq").unpack_from  # base offset, length, magic, attributes, producer id


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

    def __init__(self, source: Source) -> None:
        self._found: dict[int, tuple[int, int]] = {}
        self._at: int | None = 0  # what stands in front of it was read; None: all was
        self._source = source

    def of(self, producer: int) -> tuple[int, int] | None:
        """(offset, type) of the producer's first marker, None if there is none."""
        at = self._at
        if producer not in self._found and at is not None:
            self._read_to(producer, at)
        return self._found.get(producer)

    def _read_to(self, producer: int, start: int) -> None:
        """Read on from a byte; other threads may do the same, and go as far or farther."""
        for window in Scanner(self._source, start):
            for at, end, base, attributes, one in _marked(window):
                if attributes & _CONTROL and one not in self._found:
                    kind = marker_type(window.data[at:end])
                    if kind in (_ABORT, _COMMIT):
                        self._found[one] = (base, kind)
            _bounded(self._found, self._source, "producers with transactions", MOST_PRODUCERS)
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

    What was found answers for every segment from the asking one up to where it stands, so that a partition is gone
    through once, however many of its segments ask.
    """

    def __init__(self, segments: Sequence[HasMarkers]) -> None:
        self._segments = segments
        # producer -> asked behind, stands in, marker
        self._last: dict[int, tuple[int, int, tuple[int, int] | None]] = {}

    def behind(self, number: int, producer: int) -> tuple[int, int] | None:
        """(offset, type) of the producer's first marker in the segments behind that number, None if there is none."""
        asked, found, marker = self._last.get(producer, (-1, -1, None))
        if not asked <= number < found:
            found, marker = len(self._segments), None
            for later in range(number + 1, len(self._segments)):
                marker = self._segments[later].first_markers.of(producer)
                if marker is not None:
                    found = later
                    break
            self._last[producer] = number, found, marker
        return marker


class AbortedByIndex:
    """The entries of .txnindex files, found by producer and offsets."""

    def __init__(self, entries: Iterable[AbortedTransaction]) -> None:
        ranges: dict[int, list[tuple[int, int]]] = {}
        for entry in entries:
            ranges.setdefault(entry.producer_id, []).append((entry.first_offset, entry.last_offset))
        self._ranges = {producer: _joined(sorted(found)) for producer, found in ranges.items()}

    def __contains__(self, producer: int) -> bool:
        return producer in self._ranges

    def of(self, producer: int, first: int, last: int) -> Iterator[tuple[int, int]]:
        """(first offset, offset of the abort marker) of the producer's transactions that touch [first, last]."""
        found = self._ranges.get(producer, ())
        at = bisect_left(found, first, key=lambda one: one[1])
        while at < len(found) and found[at][0] <= last:
            yield found[at]
            at += 1


def find_transactions(
    source: Source,
    start: int,
    end: int | None,
    later: Callable[[int], tuple[int, int] | None],
    listed: AbortedByIndex,
) -> Transactions:
    """The transactions that the batches in bytes [start, end) of source belong to.

    Looks for their markers behind end too, and then in the later segments of the partition: later gives the first
    marker (offset, type) of a producer in them. listed: what their .txnindex files and that of source say; an entry
    counts unless the markers in the data contradict it. Raises LimitError where more than MOST_PRODUCERS are there.
    """
    size = source.size()
    end = size if end is None else end
    pending: dict[int, int] = {}  # producer -> first offset seen of its running transaction
    aborted: list[tuple[int, int, int]] = []
    markers: dict[int, array[int]] = {}  # of producers that are listed: twice the offset, and one for a commit
    touched: dict[int, tuple[int, int]] = {}  # producer -> its first and last transactional batch in the range

    def settle(producer: int, offset: int, kind: int) -> None:
        if producer in listed and offset >= 0:
            markers.setdefault(producer, array("Q")).append(offset << 1 | (kind == _COMMIT))
        first = pending.pop(producer, None)
        if first is not None and kind == _ABORT:
            aborted.append((producer, first, offset))

    for window in Scanner(source, start, end):
        for at, behind, base, attributes, producer in _marked(window):
            if attributes & _CONTROL:
                kind = marker_type(window.data[at:behind])
                if kind in (_ABORT, _COMMIT):
                    settle(producer, base, kind)
            else:
                pending.setdefault(producer, base)
                touched[producer] = (touched.get(producer, (base, base))[0], base)
        _bounded(touched, source, "producers with transactions", MOST_PRODUCERS)
        _bounded(aborted, source, "aborted transactions", MOST_ABORTED)
    if pending and end < size:
        _settle_behind(Scanner(source, end), pending, settle)
    for producer in list(pending):
        marker = later(producer)
        if marker is not None:
            settle(producer, *marker)
    for producer, (low, high) in touched.items():
        if producer not in listed:
            continue
        seen = sorted(markers.get(producer, ()))
        for first, last in listed.of(producer, low, high):
            at = bisect_left(seen, first << 1)  # a marker inside contradicts, and a commit at its end
            inside = at < len(seen) and seen[at] < last << 1
            at = bisect_left(seen, last << 1 | 1, at)
            if not inside and not (at < len(seen) and seen[at] == last << 1 | 1):
                aborted.append((producer, first, last))
    return Transactions(_merged(aborted), sorted(pending.items()))


def _bounded(known: Sized, source: Source, what: str, most: int) -> None:
    """Refuses more producers, or aborted transactions, than memory is for."""
    if len(known) > most:
        raise located(LimitError(f"too many {what} in one segment", limit=most, needed=len(known)), source.path)


def _settle_behind(
    scanner: Scanner, pending: dict[int, int], settle: Callable[[int, int, int], None]
) -> None:
    """Read on behind a range until nothing is pending."""
    for window in scanner:
        for at, end, base, attributes, producer in _marked(window):
            if attributes & _CONTROL:
                kind = marker_type(window.data[at:end])
                if kind in (_ABORT, _COMMIT):
                    settle(producer, base, kind)
                    if not pending:
                        return


def _marked(window: Window) -> Iterator[tuple[int, int, int, int, int]]:
    """(start, end, base offset, attributes, producer id) of the transactional batches in a window."""
    data = window.data if window.bad is None else memoryview(b"")
    at = next_marked(data, 0, _TRANSACTIONAL)
    while at >= 0:
        base, length, _, attributes, producer = _fields(data, at)
        end = at + 12 + length
        yield at, end, base, attributes, producer
        at = next_marked(data, end, _TRANSACTIONAL)


def marker_type(batch: memoryview) -> int:
    """The type in a control batch (0 abort, 1 commit, ...; ControlRecordType), -1 where the batch is damaged."""
    try:
        at = _skip_varint(batch, 61) + 1  # the record's length and attributes
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
