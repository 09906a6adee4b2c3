"""The log of a partition: batches with offsets, epochs, producers, transactions (Kafka's UnifiedLog)."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from struct import Struct
from typing import Any, NamedTuple

from kwire.codec.records import build_batch, read_batches
from kwire.errors import CorruptBatchError, KwireError, LimitError, MissingCodecError
from kwire.fleet.errors import ApiError, InvalidRecordsError, certainly
from kwire.fleet.logs.batch_store import BatchStore, Data, Entry
from kwire.fleet.logs.log_settings import LogSettings
from kwire.fleet.logs.producer_state import ProducerStates, WrittenBatch, sequence_after
from kwire.schema.error_codes import ErrorCode

EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL = -2, -1, -3, -4  # ListOffsetsRequest
LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -5, -6  # of tiered storage, which a fleet has not
_OFFSET_AND_EPOCH_AT, _EPOCH_AT = Struct(">q"), 12
_epoch = Struct(">i")
_MARKER = attrgetter("last_offset")
_NO_TIMESTAMP = -1


class Aborted(NamedTuple):
    """An aborted transaction: its first offset, that of its marker, the last stable offset after it (AbortedTxn)."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Appended(NamedTuple):
    """What an append did: the base offset, and the log append time in milliseconds, -1 if the producer's time stays."""

    base_offset: int
    log_append_time: int


class AppendRules(NamedTuple):
    """What a release asks of a batch. before, after: as LogSettings.timestamp_limits.

    takes_stamped: LogAppendTime of a producer too, if its times are within the limits; begins_at_zero,
    refuses_unknown: as ProducerStates.check has them (KIP-890; before KIP-360).
    """

    before: int = (1 << 63) - 1
    after: int = (1 << 63) - 1
    takes_stamped: bool = False
    begins_at_zero: bool = False
    refuses_unknown: bool = False


_NO_RULES = AppendRules()
MOST_REASONS = 10_000  # records of a batch of which an answer says what is wrong with them


class PartitionLog:
    """The log of one partition. All of it is committed: a fleet's replicas are always in sync.

    store: its batches, in memory by default; settings: what the topic's configs say.
    """

    def __init__(self, store: BatchStore | None = None) -> None:
        self.store, self.settings = store or BatchStore(), LogSettings()
        self.start_offset = self.end_offset = 0
        self.changed_at = -1  # when it was last written to, milliseconds
        self.producers = ProducerStates()
        self.aborted: list[Aborted] = []
        self.epochs: list[tuple[int, int]] = []  # (leader epoch, its first offset), ascending
        self.watchers: dict[asyncio.Event, None] = {}  # set when something was appended

    @property
    def last_stable_offset(self) -> int:
        """The offset before which every transaction has ended."""
        first = self.producers.first_unstable()
        return self.end_offset if first is None else max(first, self.start_offset)

    def append(
        self, batches: list[Any], leader_epoch: int, now: int, rules: AppendRules = _NO_RULES
    ) -> Appended:
        """Append the RecordBatches that a producer sent, at least one, as the leader.

        Several, and one of magic 0 or 1, become one of magic 2. now: milliseconds. What the producer sent before is not
        written again. Raises ApiError: CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE and those
        of producers.
        """
        if len(batches) > 1 or batches[0].magic < 2:
            self._check_size(max(batch.size for batch in batches))
            batches = [*read_batches(self._converted(batches, now, rules))]
        return self._append(batches[0], leader_epoch, now, rules)

    def _converted(self, batches: list[Any], now: int, rules: AppendRules) -> bytes:
        """A message set as one batch of magic 2, in which the log is."""
        codecs = {batch.codec for batch in batches}
        try:
            for batch in batches:
                self._check_records(batch, now, rules)
            rows = [(r.own_timestamp, r.key, r.value, r.headers) for batch in batches for r in batch]
        except ApiError:
            raise
        except KwireError as error:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        if not rows:
            raise ApiError(ErrorCode.INVALID_RECORD, "Record batch has no records")
        return build_batch(rows, codec=codecs.pop() if len(codecs) == 1 else "none")

    def _check_records(self, batch: Any, now: int, rules: AppendRules) -> int:
        """Have the records keys and times that the topic takes (LogValidator.validateRecord)? Their largest time.

        Decompresses and reads all. Raises InvalidRecordsError, and KwireError for records that cannot be read.
        """
        smallest, largest, _ = batch.extent()
        skipped = batch.codec != "none" and self._codec(batch) == batch.codec  # whose keys and values Kafka skips
        timely = self.settings.log_append_time or (now - rules.before <= smallest and largest <= now + rules.after)
        stamped = batch.magic > 0 and batch.timestamp_type == "log_append"
        if timely and not stamped and not self.settings.compacts:
            return int(largest)
        reasons, count = list[tuple[int, str | None]](), 0
        for place, record in enumerate(batch):
            has_time = not self.settings.log_append_time and record.timestamp != _NO_TIMESTAMP
            is_late = not timely and has_time and not (
                _long(now - record.timestamp) <= rules.before and _long(record.timestamp - now) <= rules.after)
            is_keyless = self.settings.compacts and record.key is None
            if not (is_keyless or is_late or (stamped and not (has_time and rules.takes_stamped))):
                continue
            count += 1
            if count > MOST_REASONS:
                continue
            reason = None
            if not is_keyless:
                reason = (
                    f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. The "
                    f"timestamp should be within [{_long(now - rules.before)}, {_long(now + rules.after)}]"
                ) if is_late else (
                    f"Invalid timestamp type in message {_shown(record, skipped)}. Producer should not set timestamp "
                    "type to LogAppendTime.")
            reasons.append((place, reason))
        if reasons:
            raise InvalidRecordsError(reasons, count)
        return int(largest)

    def _check_size(self, size: int) -> None:
        if size > self.settings.max_message_bytes:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The record batch size in the append to the log is {size} bytes which exceeds the maximum "
                f"configured value of {self.settings.max_message_bytes}.")

    def _codec(self, batch: Any) -> str:
        """The codec with which a batch is written."""
        return self.settings.codec or str(batch.codec)

    def _append(self, batch: Any, leader_epoch: int, now: int, rules: AppendRules) -> Appended:
        data = batch.raw
        self._check_size(len(data))
        if not batch.is_valid():
            raise ApiError(ErrorCode.CORRUPT_MESSAGE)
        try:
            if batch.base_offset:
                raise ApiError(
                    ErrorCode.INVALID_RECORD, f"The base offset of a batch should be 0, but it is {batch.base_offset}")
            count = batch.last_offset + 1
            if batch.count != count or count < 1:
                raise ApiError(
                    ErrorCode.INVALID_RECORD, f"Inconsistent record count {batch.count} for offsets of {count} records")
            if batch.is_control:
                raise ApiError(ErrorCode.INVALID_RECORD, "Clients are not allowed to write control records")
            newest = self._check_records(batch, now, rules)
        except CorruptBatchError as error:
            packed = error.reason.startswith(f"{batch.codec}: ")  # what cannot be decompressed
            code = ErrorCode.UNKNOWN_SERVER_ERROR if packed else ErrorCode.INVALID_RECORD
            raise ApiError(code, str(error)) from error
        except (LimitError, MissingCodecError) as error:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        append_time = now if self.settings.log_append_time else -1
        codec = self._codec(batch)
        stamped = now if append_time >= 0 else newest
        if append_time >= 0 or codec != batch.codec or newest != batch.max_timestamp or (
                batch.timestamp_type == "log_append"):
            data = _rewritten(batch, codec, append_time)
            self._check_size(len(data))
        base = self.end_offset
        if batch.producer_id >= 0:
            first, last = batch.base_sequence, sequence_after(batch.base_sequence, count - 1)
            written = self.producers.check(
                batch.producer_id, batch.producer_epoch, first, last, transactional=batch.is_transactional,
                begins_at_zero=rules.begins_at_zero, refuses_unknown=rules.refuses_unknown)
            if written is not None:
                return Appended(written.first_offset, written.timestamp)
        appended = Appended(base, append_time)
        written_too: list[Callable[[], None]] = []
        if batch.producer_id >= 0:
            written_too.append(self.producers.adding(
                batch.producer_id, batch.producer_epoch, WrittenBatch(first, last, base, stamped),
                transactional=batch.is_transactional))
        self._add(data, base + count - 1, stamped, leader_epoch, now, written_too)
        return appended

    def append_own(
        self, rows: list[tuple[int, bytes, bytes | None]], leader_epoch: int, now: int,
        producer: tuple[int, int] | None = None,
    ) -> None:
        """Append what a coordinator writes: rows (timestamp, key, value) as one batch (AppendOrigin.COORDINATOR).

        producer: (id, epoch) of the transaction that the rows belong to. Raises ApiError.
        """
        producer_id, epoch = producer or (-1, -1)
        data = build_batch(rows, producer_id=producer_id, producer_epoch=epoch, transactional=producer is not None)
        base, newest = self.end_offset, max(timestamp for timestamp, _, _ in rows)
        then = [] if producer is None else [
            self.producers.adding(producer_id, epoch, WrittenBatch(-1, -1, base, newest), transactional=True)]
        self._add(data, base + len(rows) - 1, newest, leader_epoch, now, then)

    def append_marker(
        self, producer_id: int, epoch: int, commit: bool, coordinator_epoch: int, leader_epoch: int, now: int
    ) -> None:
        """Append the control batch that ends a transaction (EndTransactionMarker)."""
        key = b"\0\0\0\1" if commit else b"\0\0\0\0"
        value = b"\0\0" + coordinator_epoch.to_bytes(4, "big", signed=True)
        data = build_batch(
            [(now, key, value)], producer_id=producer_id, producer_epoch=epoch, transactional=True, control=True,
            timestamp_type="log_append" if self.settings.log_append_time else "create", max_timestamp=now)
        marker = self.end_offset
        first, ending = self.producers.ending(producer_id, epoch, coordinator_epoch, now)
        then = [ending]
        if first is not None and not commit:
            stable = self.producers.first_unstable(without=producer_id)
            then.append(partial(
                self.aborted.append, Aborted(producer_id, first, marker, marker + 1 if stable is None else stable)))
        self._add(data, marker, now, leader_epoch, now, then)

    def _add(
        self, data: bytes, last: int, max_timestamp: int, leader_epoch: int, now: int, then: list[Callable[[], None]],
    ) -> None:
        """Write a batch, and let it count: then what it changes is done. Raises ApiError, MemoryError, and nothing is.
        """
        base, end = self.end_offset, last + 1
        then.append(self.changed)
        steps = iter(then)
        stamped = bytearray(data)  # neither the offset nor the epoch is in the checksum
        _OFFSET_AND_EPOCH_AT.pack_into(stamped, 0, base)
        _epoch.pack_into(stamped, _EPOCH_AT, leader_epoch)
        if not self.epochs or self.epochs[-1][0] < leader_epoch:
            epochs = [*self.epochs, (leader_epoch, base)]
            self.store.keep_epochs(epochs)
            self.epochs = epochs
        if self._must_roll(len(stamped), max_timestamp, now):
            self.store.roll(base)
        self.store.add(Entry(base, last, max_timestamp, leader_epoch, bytes(stamped)))
        self.end_offset, self.changed_at = end, now
        for step in steps:
            certainly(step)

    def _must_roll(self, size: int, max_timestamp: int, now: int) -> bool:
        """Must a batch of that size begin a new segment (LogSegment.shouldRoll)? Its time: of the first batch."""
        active = self.store.segments[-1] if self.store.segments else None
        if active is None or not active.size:
            return False
        waited = max_timestamp - active.first_timestamp if active.first_timestamp >= 0 else now - self.changed_at
        return bool(active.size + size > self.settings.segment_bytes or waited > self.settings.segment_ms)

    def changed(self) -> None:
        """Wake the fetches that wait for this log."""
        for event in self.watchers:
            event.set()

    def read(self, offset: int, max_bytes: int, limit: int, at_least_one: bool, *, cut: bool = False) -> bytes:
        """The batches from the one with the offset on, up to the offset limit and max_bytes.

        at_least_one: the first batch even if it is larger; cut: after a first whole one the last one may be cut off, as
        brokers send it. Raises ApiError: OFFSET_OUT_OF_RANGE.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset >= limit:
            return b""
        chosen: list[Data] = []
        size = 0
        for entry in self.store.entries(offset, max_bytes):
            left = max_bytes - size
            if entry.base_offset >= limit or (left < len(entry.data) and not (
                    at_least_one if not chosen else cut and left > 0)):
                break
            chosen.append(entry.data if not chosen else entry.data[:left])
            size += len(entry.data)
        return b"".join(chosen)

    def aborted_in(self, first: int, end: int) -> list[Aborted]:
        """The aborted transactions with an offset in [first, end) (TransactionIndex.collectAbortedTxns)."""
        found = []
        for at in range(bisect_left(self.aborted, first, key=_MARKER), len(self.aborted)):
            one = self.aborted[at]
            if one.first_offset < end:
                found.append(one)
            if one.last_stable_offset >= end:
                break
        return found

    def find(self, timestamp: int) -> tuple[int, int, int]:
        """(offset, timestamp, leader epoch) of what ListOffsets asks for; -1, -1, -1 if there is none.

        timestamp: milliseconds, or EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL.
        """
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return self.start_offset, -1, self.epoch_of(self.start_offset)
        if timestamp == LATEST:
            return self.end_offset, -1, self.epochs[-1][0] if self.epochs else -1
        if timestamp == MAX_TIMESTAMP:  # also of what is deleted in the first segment, as UnifiedLog has it
            timestamp = max((one.largest_timestamp for one in self.store.segments), default=-1)
            return self.first_at(timestamp, 0) if timestamp >= 0 else (-1, -1, -1)
        return self.first_at(timestamp, self.start_offset) if timestamp >= 0 else (-1, -1, -1)

    def first_at(self, timestamp: int, start: int) -> tuple[int, int, int]:
        """As find, of the first record from start on whose timestamp is not smaller."""
        near = self.store.near(timestamp)
        if near is None:
            return -1, -1, -1
        for entry in self.store.entries(max(near, start)):
            if entry.max_timestamp < timestamp:
                continue
            (batch,) = read_batches(entry.data)
            for record in batch:
                if record.timestamp >= timestamp and record.offset >= start:
                    return record.offset, record.timestamp, entry.epoch
        return -1, -1, -1

    def epoch_of(self, offset: int) -> int:
        """The leader epoch in which an offset was or will be written, -1 if none was begun."""
        at = bisect_right([start for _, start in self.epochs], offset) - 1
        return self.epochs[at][0] if at >= 0 else -1

    def end_of_epoch(self, epoch: int, current: int) -> tuple[int, int]:
        """(the largest epoch not above this one, its end offset); -1, -1 if unknown (LeaderEpochFileCache).

        current: that of the leader, which begins where the log ends, if nothing was written in it yet.
        """
        if epoch == current:
            return current, self.end_offset
        begun = bool(self.epochs) and self.epochs[-1][0] >= current
        epochs = self.epochs if begun else [*self.epochs, (current, self.end_offset)]
        at = bisect_left(epochs, (epoch + 1, -1))
        if epoch == -1 or at >= len(epochs):
            return -1, -1
        if at == 0:
            return epoch, epochs[0][1]
        return epochs[at - 1][0], epochs[at][1]

    def start_by(self, offset: int) -> int:
        """Where the log begins when all before an offset is deleted (DeleteRecords); -1 is its end. Raises ApiError."""
        offset = self.end_offset if offset == -1 else offset
        if offset > self.end_offset or offset < 0:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return max(offset, self.start_offset)

    def delete_before(self, offset: int) -> int:
        """Move the start of the log; the new start. offset: as start_by(). Raises ApiError."""
        self.begin_at(self.start_by(offset))
        return self.start_offset

    def begin_at(self, offset: int) -> None:
        """Let the log begin at an offset that is not before its start; segments that end before it are deleted.

        The active segment stays. Raises ApiError.
        """
        if offset > self.start_offset:
            aborted = self.aborted[bisect_left(self.aborted, offset, key=_MARKER) :]
            epochs = epochs_from(self.epochs, offset)
            self.store.keep_start(offset)
            self.start_offset, self.aborted, self.epochs = offset, aborted, epochs
            try:
                self.store.keep_epochs(epochs)
                self._drop_segments()
            except (ApiError, MemoryError):  # it begins there; what is before it goes another time
                return
        self._drop_segments()

    def _drop_segments(self) -> None:
        self.store.settle()
        gone = bisect_right(self.store.segments, self.start_offset, key=attrgetter("base_offset")) - 1
        if gone > 0:
            self.store.drop(gone)

    def roll(self) -> None:
        """End the active segment, if it has batches, and begin the next one. Raises ApiError."""
        if self.store.segments and self.store.segments[-1].size:
            self.store.roll(self.end_offset)


def epochs_from(epochs: list[tuple[int, int]], offset: int) -> list[tuple[int, int]]:
    """The epochs of a log that begins at this offset (LeaderEpochFileCache.truncateFromStartAsyncFlush)."""
    before = [one for one in epochs if one[1] <= offset]
    return [(epoch, offset) for epoch, _ in before[-1:]] + [one for one in epochs if one[1] > offset]


def _rewritten(batch: Any, codec: str, append_time: int) -> bytes:
    """The batch with another codec, or with the broker's time (LogAppendTime), if that is not -1. Raises ApiError."""
    stamped = append_time >= 0
    try:
        return build_batch(
            [(record.own_timestamp, record.key, record.value, record.headers) for record in batch],
            codec=codec, producer_id=batch.producer_id, producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence, transactional=batch.is_transactional,
            timestamp_type="log_append" if stamped else "create", max_timestamp=append_time if stamped else None)
    except KwireError as error:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error


def _long(number: int) -> int:
    """The number as Java's long has it, which overflows."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _shown(record: Any, skipped: bool) -> str:
    """As DefaultRecord.toString. skipped: as PartialDefaultRecord's, of which key and value were skipped."""
    none = -1 if skipped else 0
    key, value = (none if content is None else len(content) for content in (record.key, record.value))
    return (
        f"{'Partial' if skipped else ''}DefaultRecord(offset={record.offset}, timestamp={record.timestamp}, "
        f"key={key} bytes, value={value} bytes)")
