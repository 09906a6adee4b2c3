"""Retention and compaction of a log, on request: what a broker's LogManager and Cleaner do in the background."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from operator import itemgetter
from typing import Any

from kwire.codec.records import build_batch, read_batches
from kwire.fleet.logs.batch_store import Segment
from kwire.fleet.logs.partition_log import Aborted, PartitionLog
from kwire.storage.side_files.indexes import AbortedTransaction

_MOST_OFFSETS = 1 << 31  # of a segment
_DIGEST_BYTES = 16  # of a key: as in Kafka's SkimpyOffsetMap, keys are known by a hash


def retain(log: PartitionLog, now: int) -> int:
    """Delete the oldest segments by retention.ms, retention.bytes and the start of the log; how many. now: ms.

    The active segment goes too if all of it is too old: it is ended first. Raises ApiError. Source:
    UnifiedLog.deleteOldSegments.
    """
    log.store.settle()
    before = len(log.store.segments)
    settings = log.settings
    if settings.deletes:
        _keep(log, _too_old(log, now))
        _keep(log, _too_many(log))
    log.begin_at(log.start_offset)
    return max(0, before - len(log.store.segments))


def _too_old(log: PartitionLog, now: int) -> int:
    """How many of the oldest segments have nothing that is younger than retention.ms."""
    limit = log.settings.retention_ms
    if limit < 0:
        return 0
    count = 0
    for segment in _with_batches(log):
        newest = segment.largest_timestamp if segment.largest_timestamp >= 0 else log.changed_at
        if segment.size and (newest < 0 or now - newest <= limit):
            break
        count += 1
    return count


def _too_many(log: PartitionLog) -> int:
    """How many of the oldest segments can go so that retention.bytes are left."""
    limit = log.settings.retention_bytes
    if limit < 0:
        return 0
    over = sum(segment.size for segment in log.store.segments) - limit
    count = 0
    for segment in _with_batches(log):
        if over < segment.size:
            break
        over -= segment.size
        count += 1
    return count


def _with_batches(log: PartitionLog) -> list[Segment]:
    """The segments, without an active one that is empty; of others compaction may have left nothing."""
    segments = log.store.segments
    return segments if not segments or segments[-1].size else segments[:-1]


def _keep(log: PartitionLog, gone: int) -> None:
    """Let the log begin after its oldest segments."""
    if not gone:
        return
    if gone == len(log.store.segments):
        log.roll()
    log.begin_at(max(log.start_offset, log.store.segments[gone].base_offset))


def compact(log: PartitionLog, now: int) -> int:
    """Keep the newest record of each key, in all that was written before this call; the bytes that it saved. now: ms.

    The active segment is ended first. Left alone is what follows the last stable offset, or is younger than
    min.compaction.lag.ms. Tombstones, and the markers of transactions without records, stay for delete.retention.ms
    from the first time that they are met. Raises ApiError. Source: Kafka's LogCleanerManager, Cleaner,
    MemoryRecords.filterTo.
    """
    log.roll()
    log.store.settle()
    segments = log.store.segments
    count = 0
    for at, segment in enumerate(segments[:-1]):
        lag = log.settings.min_compaction_lag_ms
        if segments[at + 1].base_offset > log.last_stable_offset or (
                lag > 0 and segment.largest_timestamp > now - lag):
            break
        count += 1
    if not count:
        return 0
    before = sum(map(_size, segments))
    cleaner = _Cleaner(log, segments[count].base_offset, now)
    groups = _groups(segments[: count + 1], log.settings.segment_bytes)
    for first, size in enumerate(groups):  # each one that was replaced is one segment
        end = log.store.segments[first + size].base_offset
        aborted: list[AbortedTransaction] = []
        log.store.replace(first, size, cleaner.cleaned(log.store.segments[first].base_offset, end, aborted), aborted)
    log.aborted = [one for one in log.aborted if one.last_offset >= cleaner.end or one in cleaner.kept]
    return before - sum(map(_size, log.store.segments))


def _size(segment: Segment) -> int:
    return segment.size


def _groups(segments: list[Segment], most: int) -> list[int]:
    """How many neighbours become one segment, the last of them left alone (Cleaner.groupSegmentsBySize).

    most: its bytes; its offsets must fit into an index.
    """
    groups, total, base = [0], 0, segments[0].base_offset
    for segment, following in pairwise(segments):
        if groups[-1] and (total + segment.size > most or following.base_offset - base > _MOST_OFFSETS):
            groups.append(0)
            total, base = 0, segment.base_offset
        groups[-1] += 1
        total += segment.size
    return groups


@dataclass
class _Ongoing:
    """An aborted transaction whose marker is still to come. was_met: is a batch of it there?"""

    transaction: Aborted
    was_met: bool = False


class _Cleaner:
    """One round over a log up to an offset. kept: the aborted transactions of which something is left."""

    def __init__(self, log: PartitionLog, end: int, now: int) -> None:
        self._log, self.end, self._now = log, end, now
        self._last_of_producers = {
            state.batches[-1].first_offset: producer for producer, state in log.producers.producers.items()
            if state.batches}
        self._without_batches = {
            producer: state.epoch for producer, state in log.producers.producers.items() if not state.batches}
        self._offsets = self._offset_map()
        self.kept: set[Aborted] = set()
        # the transactions of the part that is read: what is to come of the aborted ones, what has begun
        self._to_come = deque(sorted(self._aborted(), key=lambda one: one.first_offset))
        self._ongoing: dict[int, _Ongoing] = {}  # aborted ones, by producer id
        self._committed: set[int] = set()

    def _aborted(self) -> list[Aborted]:
        """The aborted transactions of which something may be there: the markers of some come later."""
        return [one for one in self._log.aborted if one.first_offset < self.end]

    def _batches(self, start: int, end: int) -> Iterator[Any]:
        for entry in self._log.store.entries(start, 1 << 20):
            if entry.base_offset >= end:
                return
            yield from read_batches(entry.data)

    def _offset_map(self) -> dict[bytes, int]:
        """Digest of a key -> the newest offset that has it; records of aborted transactions do not count."""
        found: dict[bytes, int] = {}
        aborted: dict[int, list[tuple[int, int]]] = {}
        for one in self._aborted():
            aborted.setdefault(one.producer_id, []).append((one.first_offset, one.last_offset))
        for batch in self._batches(self._log.start_offset, self.end):
            if batch.is_control or (batch.is_transactional and _is_in(
                    aborted.get(batch.producer_id, []), batch.base_offset)):
                continue
            for record in batch:
                if record.key is not None:
                    found[_digest(record.key)] = record.offset
        return found

    def cleaned(self, start: int, end: int, aborted: list[AbortedTransaction]) -> Iterator[bytes]:
        """The batches of a part of the log that stay; aborted: gets the transactions whose markers stay in it."""
        for batch in self._batches(start, end):
            made = self._kept(batch, aborted)
            if made is not None:
                yield made

    def _kept(self, batch: Any, aborted: list[AbortedTransaction]) -> bytes | None:
        """What is left of a batch, None for nothing (MemoryRecords.filterTo)."""
        empty = self._ended(batch, aborted) if batch.is_control else self._is_aborted(batch)
        horizon = batch.delete_horizon
        discard = empty and (not batch.is_control or (horizon is not None and horizon <= self._now))
        records = [] if discard else [one for one in batch if batch.is_control or self._stays(one, horizon)]
        has_tombstones = not batch.is_control and any(one.value is None for one in records)
        if horizon is None and ((empty and batch.is_control) or has_tombstones):
            horizon = self._now + self._log.settings.delete_retention_ms
        elif records and len(records) == batch.count:
            return bytes(batch.raw)
        if not records and not self._is_last(batch):
            return None
        return build_batch(
            records, codec=batch.codec if records else "none", base_offset=batch.base_offset,
            last_offset=batch.last_offset, base_timestamp=None if records else -1,
            max_timestamp=_largest(batch, records), timestamp_type=batch.timestamp_type,
            delete_horizon=horizon if records else None,
            producer_id=batch.producer_id, producer_epoch=batch.producer_epoch, base_sequence=batch.base_sequence,
            transactional=batch.is_transactional, control=batch.is_control,
            partition_leader_epoch=batch.partition_leader_epoch)

    def _stays(self, record: Any, horizon: int | None) -> bool:
        """Is it the newest of its key, and no tombstone whose time is over? Records without a key go."""
        if record.key is None or record.offset < self._offsets.get(_digest(record.key), -1):
            return False
        return record.value is not None or horizon is None or self._now < horizon

    def _is_last(self, batch: Any) -> bool:
        """Is it kept without records: it has a producer's last sequence or epoch, or ends what is compacted?"""
        if batch.last_offset + 1 == self.end:
            return True
        if batch.producer_id < 0:
            return False
        if batch.is_control:
            return bool(self._without_batches.get(batch.producer_id) == batch.producer_epoch)
        return bool(self._last_of_producers.get(batch.base_offset) == batch.producer_id)

    def _is_aborted(self, batch: Any) -> bool:
        """Is the batch of an aborted transaction (CleanedTransactionMetadata.onBatchRead)?"""
        self._begin(batch.last_offset)
        if not batch.is_transactional:
            return False
        found = self._ongoing.get(batch.producer_id)
        if found is None:
            self._committed.add(batch.producer_id)
            return False
        found.was_met = True
        return True

    def _begin(self, offset: int) -> None:
        """The aborted transactions that begin up to an offset are met (consumeAbortedTxnsUpTo)."""
        while self._to_come and self._to_come[0].first_offset <= offset:
            one = self._to_come.popleft()
            self._ongoing.setdefault(one.producer_id, _Ongoing(one))

    def _ended(self, batch: Any, aborted: list[AbortedTransaction]) -> bool:
        """Does a marker end a transaction of which no batch is there (CleanedTransactionMetadata.onControlBatchRead)?
        """
        self._begin(batch.last_offset)
        kind = next((record.control_type for record in batch), "ABORT")  # one without its record was cleaned before
        if kind == "COMMIT":
            was_met = batch.producer_id in self._committed
            self._committed.discard(batch.producer_id)
            return not was_met
        if kind != "ABORT":
            return False
        found = self._ongoing.pop(batch.producer_id, None)
        if found is None or not found.was_met:
            return True
        self.kept.add(found.transaction)
        aborted.append(AbortedTransaction(0, *found.transaction))
        return False


def _is_in(ranges: list[tuple[int, int]], offset: int) -> bool:
    """Is an offset in one of these ranges [first, last), which ascend and do not overlap?"""
    at = bisect_right(ranges, offset, key=itemgetter(0)) - 1
    return at >= 0 and offset < ranges[at][1]


def _largest(batch: Any, records: list[Any]) -> int:
    """The largest timestamp of what is left of a batch; of a batch with the broker's time that time."""
    if batch.timestamp_type == "log_append" or not records:
        return int(batch.max_timestamp)
    return int(max(record.timestamp for record in records))


def _digest(key: bytes) -> bytes:
    return key if len(key) <= _DIGEST_BYTES else blake2b(key, digest_size=_DIGEST_BYTES).digest()
