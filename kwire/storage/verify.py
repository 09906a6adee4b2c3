"""Checks a segment, a partition and their indexes, and says what is wrong with them, in order of the bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.codec.records import BadBatch
from kwire.storage.discovery import beside
from kwire.storage.pieces import SegmentBatches
from kwire_c.failure import KwireError

if TYPE_CHECKING:
    from kwire.storage.indexed import IndexedSegment
    from kwire.storage.indexes import OffsetIndex, TimeIndex, TransactionIndex


class Finding(NamedTuple):
    """One thing that is wrong.

    path: the file; position: byte in it (-1 where none fits); offset: Kafka offset (-1 where none fits);
    kind: "batch" (checksum, damage), "offsets", "timestamps", "tail", "index", "timeindex", "txnindex", "epochs" or
    "segments".
    """

    path: str
    position: int
    offset: int
    kind: str
    message: str

    def __str__(self) -> str:
        place = (f", byte {self.position}" if self.position >= 0 else "") + (
            f", offset {self.offset}" if self.offset >= 0 else ""
        )
        return f"{self.path}{place}: {self.kind}: {self.message}"


def verify_segment(segment: IndexedSegment, progress: Callable[[int], None] | None = None) -> list[Finding]:
    """What is wrong with one segment and the indexes beside it; every record is read. progress: takes bytes done."""
    found: list[Finding] = []
    checks: list[Any] = [_Batches(segment, found)]
    if segment.index is not None:
        checks.append(_Index(segment, segment.index, found))
    if segment.time_index is not None:
        checks.append(_TimeIndex(segment, segment.time_index, found))
    if segment.transaction_index is not None:
        checks.append(_TransactionIndex(segment, segment.transaction_index, found))
    iterator = SegmentBatches(segment, errors="keep")
    for batch in iterator:
        if progress is not None:
            progress(len(batch.raw) if isinstance(batch, BadBatch) else batch.size)
        error = getattr(batch, "error", None)
        if error is not None:
            found.append(Finding(segment.path, batch.position, getattr(error, "offset", -1), "batch", _reason(error)))
            continue
        for check in checks:
            check.batch(batch)
    if iterator.tail is not None:
        position, left = iterator.tail
        zeros = not any(segment.source.read(position, position + 64))
        what = "zeros, as Kafka allocates ahead" if zeros else "of a batch that is not complete"
        found.append(Finding(segment.path, position, -1, "tail", f"{left} bytes {what}"))
    for check in checks:
        check.end()
    return found


def verify_partition(
    segments: Sequence[IndexedSegment], progress: Callable[[int], None] | None = None
) -> list[Finding]:
    """What is wrong in any segment of a partition, or between them. progress: takes bytes done since the last call."""
    found: list[Finding] = []
    previous: tuple[IndexedSegment, int] | None = None
    for segment in segments:
        found += verify_segment(segment, progress)
        last = -1
        try:
            for header in segment.headers():
                if last < 0 and previous is not None and header.magic == 2 and header.base_offset <= previous[1]:
                    message = f"begins at {header.base_offset}, {previous[0].path} reaches {previous[1]}"
                    found.append(Finding(segment.path, 0, header.base_offset, "segments", message))
                last = max(last, header.last_offset)
        except KwireError:
            pass  # found above
        if last >= 0:
            previous = (segment, last)
    return found


def _reason(error: Any) -> str:
    return str(getattr(error, "reason", error))


class _Batches:
    """Offsets, timestamps and leader epochs of the batches themselves."""

    def __init__(self, segment: IndexedSegment, found: list[Finding]) -> None:
        self.segment, self.found = segment, found
        self.last = -1
        self.epoch = -1

    def report(self, batch: Any, kind: str, message: str) -> None:
        self.found.append(Finding(self.segment.path, batch.position, batch.base_offset, kind, message))

    def batch(self, batch: Any) -> None:
        base, last = batch.base_offset, batch.last_offset
        if base <= self.last:
            self.report(batch, "offsets", f"base offset {base} goes back: offset {self.last} was there before")
        if last < base:
            self.report(batch, "offsets", f"last offset {last} is below base offset {base}")
        named = self.segment.named_offset
        if named is not None and base < named and self.last < 0:
            self.report(batch, "offsets", f"base offset {base} is below the segment's own, {named}")
        self.last = max(self.last, last)
        if batch.partition_leader_epoch >= 0:
            if batch.partition_leader_epoch < self.epoch:
                self.report(batch, "epochs", f"leader epoch {batch.partition_leader_epoch} comes after {self.epoch}")
            self.epoch = max(self.epoch, batch.partition_leader_epoch)
        _, largest, misplaced = batch.extent()
        if misplaced >= 0:
            offset = next(islice(batch, misplaced, None)).offset
            self.report(batch, "offsets", f"record {misplaced} has offset {offset}, out of place in [{base}, {last}]")
        elif len(batch) and batch.magic and batch.timestamp_type == "create" and largest != batch.max_timestamp:
            message = f"largest timestamp is {largest}, the batch says {batch.max_timestamp}"
            self.report(batch, "timestamps", message)

    def end(self) -> None: ...


class _Index:
    """The .index: every entry points to a batch, and its offset ends one there."""

    def __init__(self, segment: IndexedSegment, index: OffsetIndex, found: list[Finding]) -> None:
        self.path = beside(segment.path, ".index")
        self.found = found
        self.rest = sorted(((position, offset) for offset, position in index.entries), reverse=True)
        self.active: tuple[int, int] | None = None
        if index.damage:
            found.append(Finding(self.path, -1, -1, "index", index.damage))

    def report(self, entry: tuple[int, int], message: str) -> None:
        position, offset = entry
        self.found.append(Finding(self.path, -1, offset, "index", f"entry ({offset}, {position}) {message}"))

    def batch(self, batch: Any) -> None:
        while self.rest and self.rest[-1][0] < batch.position:
            self.report(self.rest.pop(), "points to no batch")
        while self.rest and self.rest[-1][0] == batch.position:
            self._close()
            self.active = self.rest.pop()
            if batch.base_offset > self.active[1]:
                self.report(self.active, f"points to a batch that begins at offset {batch.base_offset}")
                self.active = None
        if self.active and batch.last_offset >= self.active[1]:
            if batch.last_offset > self.active[1] and batch.magic == 2:
                self._close()
            self.active = None

    def _close(self) -> None:
        if self.active:
            self.report(self.active, "disagrees: no batch from there on ends at that offset")

    def end(self) -> None:
        self._close()
        for entry in reversed(self.rest):
            self.report(entry, "points to no batch")


class _TimeIndex:
    """The .timeindex: an entry holds the largest timestamp so far, and the offset of the batch that has it."""

    def __init__(self, segment: IndexedSegment, index: TimeIndex, found: list[Finding]) -> None:
        self.path = beside(segment.path, ".timeindex")
        self.found = found
        self.rest = sorted(((offset, time) for time, offset in index.entries), reverse=True)
        self.largest = -1
        if index.damage:
            found.append(Finding(self.path, -1, -1, "timeindex", index.damage))

    def batch(self, batch: Any) -> None:
        self.largest = max(self.largest, batch.max_timestamp)
        while self.rest and self.rest[-1][0] <= batch.last_offset:
            offset, time = self.rest.pop()
            if time != self.largest:
                message = f"entry ({time}, {offset}) disagrees: the largest timestamp up to there is {self.largest}"
                self.found.append(Finding(self.path, -1, offset, "timeindex", message))

    def end(self) -> None:
        for offset, time in reversed(self.rest):
            message = f"entry ({time}, {offset}) points behind the last offset"
            self.found.append(Finding(self.path, -1, offset, "timeindex", message))


class _TransactionIndex:
    """The .txnindex: entries stand for abort markers, and abort markers of transactions seen have an entry."""

    def __init__(self, segment: IndexedSegment, index: TransactionIndex, found: list[Finding]) -> None:
        self.path = beside(segment.path, ".txnindex")
        self.found = found
        self.entries = {(entry.last_offset, entry.producer_id): entry for entry in index.entries}
        self.unseen = sorted(self.entries, reverse=True)
        self.running: set[int] = set()
        if index.damage:
            found.append(Finding(self.path, -1, -1, "txnindex", index.damage))

    def report(self, offset: int, message: str) -> None:
        self.found.append(Finding(self.path, -1, offset, "txnindex", message))

    def batch(self, batch: Any) -> None:
        aborts = False
        if batch.is_transactional and batch.is_control:
            aborts = any((record.key or b"")[2:4] == b"\0\0" for record in batch)
            listed = (batch.last_offset, batch.producer_id) in self.entries
            if aborts and batch.producer_id in self.running and not listed:
                self.report(batch.last_offset, f"the abort of producer {batch.producer_id} has no entry")
            self.running.discard(batch.producer_id)
        elif batch.is_transactional:
            self.running.add(batch.producer_id)
        while self.unseen and self.unseen[-1][0] <= batch.last_offset:
            offset, producer = self.unseen.pop()
            if offset >= batch.base_offset and not (aborts and producer == batch.producer_id):
                self.report(offset, f"no abort marker of producer {producer} stands at that offset")

    def end(self) -> None:
        for offset, producer in reversed(self.unseen):
            self.report(offset, f"the entry of producer {producer} points behind the last offset")
