"""Which batches of a partition belong to aborted or open transactions, by markers in the data and by .txnindex."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kwire.storage.scan import Scanner, checksum_holds
from kwire_c.scan import next_marked

if TYPE_CHECKING:
    from kwire.storage.indexes import AbortedTransaction
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


def find_transactions(
    source: Source,
    start: int,
    end: int | None,
    later: Iterable[Source],
    listed: Iterable[AbortedTransaction],
) -> Transactions:
    """The transactions that the batches in bytes [start, end) of source belong to.

    Looks for their markers behind end too, and in the later segments of the partition, as far as needed. listed: the
    entries of their .txnindex files; an entry counts unless the markers in the data contradict it.
    """
    end = source.size() if end is None else end
    pending: dict[int, int] = {}  # producer -> first offset seen of its running transaction
    aborted: list[tuple[int, int, int]] = []
    markers: dict[int, list[tuple[int, int]]] = {}
    touched: dict[int, tuple[int, int]] = {}  # producer -> its first and last transactional batch in the range
    stop = _follow(Scanner(source, start, end), pending, aborted, markers, touched, inside=True)
    if pending and end < source.size():
        stop = _follow(Scanner(source, end), pending, aborted, markers, touched, inside=False)
    if pending and not stop:
        for segment in later:
            if _follow(Scanner(segment), pending, aborted, markers, touched, inside=False):
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


def _follow(
    scanner: Scanner,
    pending: dict[int, int],
    aborted: list[tuple[int, int, int]],
    markers: dict[int, list[tuple[int, int]]],
    touched: dict[int, tuple[int, int]],
    *,
    inside: bool,
) -> bool:
    """Read on to the scanner's end; outside of the range only until nothing is pending: True when that is so."""
    for window in scanner:
        if window.bad is not None:
            continue
        for at, end, base, attributes, producer in _marked(window.data):
            if not attributes & _CONTROL:
                if inside:
                    pending.setdefault(producer, base)
                    touched[producer] = (touched.get(producer, (base, base))[0], base)
                continue
            kind = marker_type(window.data[at:end])
            if kind not in (_ABORT, _COMMIT):
                continue
            markers.setdefault(producer, []).append((base, kind))
            first = pending.pop(producer, None)
            if first is not None and kind == _ABORT:
                aborted.append((producer, first, base))
            if not inside and not pending:
                return True
    return False


def _marked(data: memoryview) -> Iterator[tuple[int, int, int, int, int]]:
    """(start, end, base offset, attributes, producer id) of the transactional ones among whole batches."""
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
