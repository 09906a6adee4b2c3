"""Which batches of a partition belong to aborted or open transactions, by markers in the data and by .txnindex."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kwire.storage.scan import Scanner, checksum_holds
from kwire_c.scan import next_marked

if TYPE_CHECKING:
    from kwire.storage.indexes import AbortedTransaction
    from kwire.storage.scan import Window
    from kwire.storage.source import Source

_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_ABORT, _COMMIT = 0, 1
_fields = Struct(">qi4xb4xh20xq").unpack_from  # base offset, length, magic, attributes, producer id


class Transactions(NamedTuple):
    """What read_committed needs to know of a piece of a partition; plain data, pickles, small.

    aborted: (producer id, first offset, offset of the abort marker) in order;
    open: (producer id, first offset) of transactions without a marker: that producer's transactional batches from there
    on are left out.
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
        return any(producer == producer_id and base_offset >= first for producer, first in self.open)


class FirstMarkers:
    """The first transaction marker of each producer in a segment; reads no further than it is asked, and remembers."""

    def __init__(self, source: Source) -> None:
        self._found: dict[int, tuple[int, int]] = {}
        self._windows: Iterator[Window] | None = None
        self._source = source

    def of(self, producer: int) -> tuple[int, int] | None:
        """(offset, type) of the producer's first marker, None if there is none."""
        if self._windows is None:
            self._windows = iter(Scanner(self._source))
        while producer not in self._found:
            window = next(self._windows, None)
            if window is None:
                return None
            for at, end, base, attributes, one in _marked(window):
                if attributes & _CONTROL and one not in self._found:
                    kind = marker_type(window.data[at:end])
                    if kind in (_ABORT, _COMMIT):
                        self._found[one] = (base, kind)
        return self._found[producer]


def find_transactions(
    source: Source,
    start: int,
    end: int | None,
    later: Sequence[FirstMarkers],
    listed: Iterable[AbortedTransaction],
) -> Transactions:
    """The transactions that the batches in bytes [start, end) of source belong to.

    Looks for their markers behind end too, and in the later segments of the partition, as far as needed. listed: the
    entries of their .txnindex files; an entry counts unless the markers in the data contradict it.
    """
    size = source.size()
    end = size if end is None else end
    pending: dict[int, int] = {}  # producer -> first offset seen of its running transaction
    aborted: list[tuple[int, int, int]] = []
    markers: dict[int, list[tuple[int, int]]] = {}
    touched: dict[int, tuple[int, int]] = {}  # producer -> its first and last transactional batch in the range

    def settle(producer: int, offset: int, kind: int) -> None:
        markers.setdefault(producer, []).append((offset, kind))
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
    if pending and end < size:
        _settle_behind(Scanner(source, end), pending, settle)
    for producer in list(pending):
        for segment in later:
            marker = segment.of(producer)
            if marker is not None:
                settle(producer, *marker)
                break
    for entry in listed:
        first, last = touched.get(entry.producer_id, (0, -1))
        if entry.last_offset < first or entry.first_offset > last:
            continue
        seen = markers.get(entry.producer_id, ())
        if not any(
            entry.first_offset <= offset < entry.last_offset or (offset == entry.last_offset and kind == _COMMIT)
            for offset, kind in seen
        ):
            aborted.append((entry.producer_id, entry.first_offset, entry.last_offset))
    return Transactions(_merged(aborted), sorted(pending.items()))


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
