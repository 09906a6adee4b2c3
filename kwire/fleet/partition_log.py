"""The log of a partition: batches in memory, with offsets, epochs, producers, transactions (Kafka's UnifiedLog)."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Any, NamedTuple

from kwire.codec.records import build_batch, read_batches
from kwire.errors import KwireError
from kwire.fleet.errors import ApiError
from kwire.fleet.producer_state import ProducerStates, WrittenBatch, sequence_after
from kwire.schema.error_codes import ErrorCode

EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -2, -1, -3, -4, -5  # ListOffsetsRequest
MAX_MESSAGE_BYTES = 1_048_588  # max.message.bytes by default
_OFFSET_AND_EPOCH_AT, _EPOCH_AT = Struct(">q"), 12
_epoch = Struct(">i")


class Entry(NamedTuple):
    """One batch of the log. data: as it is fetched; epoch: of the leader that wrote it."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    epoch: int
    data: bytes


class Aborted(NamedTuple):
    """An aborted transaction: its first offset and that of its marker."""

    producer_id: int
    first_offset: int
    last_offset: int


class Appended(NamedTuple):
    """What an append did: the base offset, and the log append time in milliseconds, -1 if the producer's time stays."""

    base_offset: int
    log_append_time: int


class PartitionLog:
    """The log of one partition. All of it is committed: a fleet's replicas are always in sync.

    max_message_bytes: of one batch; log_append_time: whether batches get the broker's time (message.timestamp.type).
    """

    def __init__(self) -> None:
        self.max_message_bytes, self.log_append_time = MAX_MESSAGE_BYTES, False
        self.start_offset = self.end_offset = 0
        self.changed_at = -1  # when it was last written to, milliseconds
        self.producers = ProducerStates()
        self.aborted: list[Aborted] = []
        self.epochs: list[tuple[int, int]] = []  # (leader epoch, its first offset), ascending
        self.watchers: dict[asyncio.Event, None] = {}  # set when something was appended
        self._entries: list[Entry] = []
        self._bases: list[int] = []

    @property
    def last_stable_offset(self) -> int:
        """The offset before which every transaction has ended."""
        first = self.producers.first_unstable()
        return self.end_offset if first is None else first

    def append(self, batches: list[Any], leader_epoch: int, now: int, old: bool = False) -> Appended:
        """Append the RecordBatches that a producer sent, one (of magic 0 and 1: any number), as the leader.

        old: whether the request may carry magic 0 and 1; now: milliseconds. What the producer sent before is not
        written again. Raises ApiError: CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE and those of producers.
        """
        if not batches:
            raise ApiError(ErrorCode.INVALID_RECORD, "Record batch has no records")
        if batches[0].magic < 2:
            if not old:
                raise ApiError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
            (converted,) = read_batches(self._converted(batches))
            return self._append(converted, leader_epoch, now)
        if len(batches) > 1 and not old:
            raise ApiError(
                ErrorCode.INVALID_RECORD, "Produce requests with version 3 or later must have exactly one record batch")
        for batch in batches[:-1]:
            self._append(batch, leader_epoch, now)
        return self._append(batches[-1], leader_epoch, now)

    def _converted(self, batches: list[Any]) -> bytes:
        """Message sets of magic 0 and 1 as a batch of magic 2, in which the log is."""
        codecs = {batch.codec for batch in batches}
        rows = [(r.timestamp, r.key, r.value, r.headers) for batch in batches for r in batch]
        if not rows:
            raise ApiError(ErrorCode.INVALID_RECORD, "Record batch has no records")
        return build_batch(rows, codec=codecs.pop() if len(codecs) == 1 else "none")

    def _append(self, batch: Any, leader_epoch: int, now: int) -> Appended:
        data = batch.raw
        if len(data) > self.max_message_bytes:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The record batch size in the append to the log is {len(data)} bytes which exceeds the maximum "
                f"configured value of {self.max_message_bytes}.")
        try:
            if not batch.is_valid():
                raise ApiError(ErrorCode.CORRUPT_MESSAGE)
            count = batch.last_offset - batch.base_offset + 1
            if batch.count != count or count < 1:
                raise ApiError(
                    ErrorCode.INVALID_RECORD, f"Inconsistent record count {batch.count} for offsets of {count} records")
        except KwireError as error:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
        if batch.is_control:
            raise ApiError(ErrorCode.INVALID_RECORD, "Clients are not allowed to write control records")
        append_time = -1
        if self.log_append_time:
            append_time = now
            data = _with_append_time(batch, now)
        base = self.end_offset
        if batch.producer_id >= 0:
            first, last = batch.base_sequence, sequence_after(batch.base_sequence, count - 1)
            written = self.producers.check(batch.producer_id, batch.producer_epoch, first, last)
            if written is not None:
                return Appended(written.first_offset, written.timestamp)
            self.producers.add(
                batch.producer_id, batch.producer_epoch, WrittenBatch(first, last, base, batch.max_timestamp),
                transactional=batch.is_transactional)
        stamped = now if append_time >= 0 else batch.max_timestamp
        self._add(data, base + count - 1, stamped, leader_epoch, now)
        return Appended(base, append_time)

    def append_marker(
        self, producer_id: int, epoch: int, commit: bool, coordinator_epoch: int, leader_epoch: int, now: int
    ) -> None:
        """Append the control batch that ends a transaction (EndTransactionMarker)."""
        key = b"\0\0\0\1" if commit else b"\0\0\0\0"
        value = b"\0\0" + coordinator_epoch.to_bytes(4, "big", signed=True)
        data = build_batch(
            [(now, key, value)], producer_id=producer_id, producer_epoch=epoch, transactional=True, control=True)
        first = self.producers.end_transaction(producer_id, epoch, coordinator_epoch, now)
        if first is not None and not commit:
            self.aborted.append(Aborted(producer_id, first, self.end_offset))
        self._add(data, self.end_offset, now, leader_epoch, now)

    def _add(self, data: bytes, last: int, max_timestamp: int, leader_epoch: int, now: int) -> None:
        base, self.changed_at = self.end_offset, now
        stamped = bytearray(data)  # neither the offset nor the epoch is in the checksum
        _OFFSET_AND_EPOCH_AT.pack_into(stamped, 0, base)
        _epoch.pack_into(stamped, _EPOCH_AT, leader_epoch)
        self._entries.append(Entry(base, last, max_timestamp, leader_epoch, bytes(stamped)))
        self._bases.append(base)
        self.end_offset = last + 1
        if not self.epochs or self.epochs[-1][0] < leader_epoch:
            self.epochs.append((leader_epoch, base))
        self.changed()

    def changed(self) -> None:
        """Wake the fetches that wait for this log."""
        for event in self.watchers:
            event.set()

    def read(self, offset: int, max_bytes: int, limit: int, at_least_one: bool) -> bytes:
        """Whole batches from the one with the offset on, up to the offset limit and max_bytes.

        at_least_one: the first batch even if it is larger. Raises ApiError: OFFSET_OUT_OF_RANGE.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        chosen: list[bytes] = []
        size = 0
        for entry in self._entries[self._index(offset) :]:
            if entry.base_offset >= limit or (size + len(entry.data) > max_bytes and (chosen or not at_least_one)):
                break
            chosen.append(entry.data)
            size += len(entry.data)
        return b"".join(chosen)

    def _index(self, offset: int) -> int:
        """The place of the first batch that ends at the offset or after it."""
        at = max(0, bisect_right(self._bases, offset) - 1)
        return at + (at < len(self._entries) and self._entries[at].last_offset < offset)

    def aborted_in(self, first: int, end: int) -> list[Aborted]:
        """The aborted transactions with an offset in [first, end)."""
        return [one for one in self.aborted if one.last_offset >= first and one.first_offset < end]

    def find(self, timestamp: int) -> tuple[int, int, int]:
        """(offset, timestamp, leader epoch) of what ListOffsets asks for; -1, -1, -1 if there is none.

        timestamp: milliseconds, or EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL.
        """
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            return self.start_offset, -1, self.epoch_of(self.start_offset)
        if timestamp == LATEST:
            return self.end_offset, -1, self.epochs[-1][0] if self.epochs else -1
        kept = [entry for entry in self._entries if entry.last_offset >= self.start_offset]
        if timestamp == MAX_TIMESTAMP:
            largest = max((entry.max_timestamp for entry in kept), default=-1)
            return self._first_at(kept, largest) if largest >= 0 else (-1, -1, -1)
        if timestamp < 0:
            return -1, -1, -1
        return self._first_at(kept, timestamp)

    def _first_at(self, entries: list[Entry], timestamp: int) -> tuple[int, int, int]:
        for entry in entries:
            if entry.max_timestamp < timestamp:
                continue
            (batch,) = read_batches(entry.data)
            for record in batch:
                if record.timestamp >= timestamp and record.offset >= self.start_offset:
                    return record.offset, record.timestamp, entry.epoch
        return -1, -1, -1

    def epoch_of(self, offset: int) -> int:
        """The leader epoch in which an offset was or will be written, -1 if none was begun."""
        at = bisect_right([start for _, start in self.epochs], offset) - 1
        return self.epochs[at][0] if at >= 0 else -1

    def end_of_epoch(self, epoch: int, current: int) -> tuple[int, int]:
        """(the largest epoch not above this one, its end offset); -1, -1 if unknown (LeaderEpochFileCache)."""
        if epoch == current:
            return current, self.end_offset
        at = bisect_left(self.epochs, (epoch + 1, -1))
        if epoch < 0 or at >= len(self.epochs):
            return -1, -1
        if at == 0:
            return epoch, self.epochs[0][1]
        return self.epochs[at - 1][0], self.epochs[at][1]

    def delete_before(self, offset: int) -> int:
        """Move the start of the log (DeleteRecords); -1 is its end. The new start. Raises ApiError."""
        offset = self.end_offset if offset == -1 else offset
        if offset > self.end_offset or offset < 0:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset > self.start_offset:
            self.start_offset = offset
            gone = bisect_left([entry.last_offset for entry in self._entries], offset)
            del self._entries[:gone], self._bases[:gone]
            self.aborted = [one for one in self.aborted if one.last_offset >= offset]
            self.epochs = _epochs_from(self.epochs, offset)
        return self.start_offset


def _epochs_from(epochs: list[tuple[int, int]], offset: int) -> list[tuple[int, int]]:
    """The epochs of a log that begins at this offset (LeaderEpochFileCache.truncateFromStartAsyncFlush)."""
    before = [one for one in epochs if one[1] <= offset]
    return [(epoch, offset) for epoch, _ in before[-1:]] + [one for one in epochs if one[1] > offset]


def _with_append_time(batch: Any, now: int) -> bytes:
    """The batch with the broker's time (LogAppendTime)."""
    return build_batch(
        [(record.timestamp, record.key, record.value, record.headers) for record in batch],
        codec=batch.codec, timestamp_type="log_append", producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch, base_sequence=batch.base_sequence,
        transactional=batch.is_transactional, max_timestamp=now)
