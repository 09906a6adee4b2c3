"""SegmentWriter: the segments of a partition, their indexes and producer snapshots, written as a broker writes them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from struct import Struct
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from kwire.codec.arguments import byte_view, check_ints, check_type
from kwire.codec.records import read_batches
from kwire.errors import CorruptBatchError, LimitError
from kwire.output import sync_folder
from kwire.storage.checkpoints import ProducerState, producer_snapshot
from kwire.storage.filesystem import located
from kwire.storage.indexes import OFFSET_ENTRY, TIME_ENTRY, AbortedTransaction
from kwire.storage.producer_states import ProducerStates

if TYPE_CHECKING:
    from typing_extensions import Buffer

SEGMENT_BYTES = 1 << 30  # segment.bytes, a broker's default
INDEX_INTERVAL_BYTES = 4096  # index.interval.bytes
INDEX_BYTES = 10 << 20  # segment.index.bytes: an index that is full ends its segment
_MOST_BYTES = _MOST_RELATIVE = (1 << 31) - 1  # of a segment, and of an offset in it: both are int32
_offset_entry, _time_entry = Struct(OFFSET_ENTRY).pack, Struct(TIME_ENTRY).pack
_aborted = Struct(">hqqqq").pack


class SegmentWriter:
    """Writes a new partition, batch by batch: .log, .index, .timeindex, .txnindex, and a .snapshot at a roll and close.

    folder: the partition's own, if its name is topic-partition, else the log directory, in which that one is made; it
    must not hold segments yet (FileExistsError). The bytes are those of a broker of release 4.1 or later with the same
    settings: index entries by batch (LogSegment.append), the last time index entry when a segment is rolled or closed
    (LogSegment.onBecomeInactiveSegment, close), an aborted transaction when its marker comes (UnifiedLog.append).
    leader-epoch-checkpoint and partition.metadata are the broker's, not written.

    base_offset: of the first segment, that of the first batch by default. segment_bytes (Kafka's segment.bytes): a
    batch that would make the segment larger begins a new one; index_interval_bytes: Kafka's index.interval.bytes.
    producers: what the snapshot at base_offset says of the producers; it is written too. sync: force the bytes to disk
    at roll and close. A context manager; left by an exception it only closes its files.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        topic: str,
        partition: int,
        *,
        base_offset: int | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        index_interval_bytes: int = INDEX_INTERVAL_BYTES,
        producers: Iterable[ProducerState] | None = None,
        sync: bool = True,
    ) -> None:
        check_type(folder, (str, os.PathLike), "folder", "a str or os.PathLike")
        check_type(topic, str, "topic", "a str")
        check_ints(partition=partition, base_offset=base_offset, segment_bytes=segment_bytes,
                   index_interval_bytes=index_interval_bytes)
        _check_name(topic, partition)
        if base_offset is not None and base_offset < 0:
            raise ValueError(f"base_offset must not be negative, got {base_offset}")
        if not 0 < segment_bytes <= _MOST_BYTES:
            raise ValueError(f"segment_bytes must be 1 to {_MOST_BYTES}, got {segment_bytes}")
        if index_interval_bytes < 0:
            raise ValueError(f"index_interval_bytes must not be negative, got {index_interval_bytes}")
        name, folder = f"{topic}-{partition}", os.fspath(folder)
        self.folder = folder if os.path.basename(os.path.abspath(folder)) == name else os.path.join(folder, name)
        self.topic, self.partition = topic, partition
        self._segment_bytes, self._interval, self._sync = segment_bytes, index_interval_bytes, sync
        self._next, self._snapshot_at = base_offset, base_offset or 0
        self._producers = ProducerStates(producers or ())
        self._active: _Segment | None = None
        self._closed = False
        os.makedirs(self.folder, exist_ok=True)
        if any(entry.endswith(".log") for entry in os.listdir(self.folder)):
            raise FileExistsError(17, "has segments already", self.folder)
        if producers is not None and self.next_offset:
            self._write_snapshot()

    def __repr__(self) -> str:
        return f"SegmentWriter({self.folder!r})"

    @property
    def next_offset(self) -> int:
        """The offset after the last one written (the log end offset), or that of the first segment."""
        return self._next or 0

    @property
    def path(self) -> str | None:
        """The .log file that the next batch goes to, unless it begins a new one; None before the first batch."""
        return None if self._active is None else self._active.path

    @property
    def open_transactions(self) -> list[tuple[int, int]]:
        """(first offset, producer id) of the transactions without a marker so far, ascending."""
        return self._producers.open_transactions()

    def append(self, data: Buffer) -> None:
        """Write one or more whole batches (any buffer), with ascending offsets after those written before.

        Nothing is written if one of them is damaged or out of order: CorruptBatchError. OSError: what was written of
        the last batch is taken back. LimitError for more than a million producers.
        """
        self._check_open()
        last, view = self.next_offset - 1, byte_view(data, "data")
        batches = []
        for batch in read_batches(view, strict_tail=True):
            base = base_offset_of(batch)
            if batch.last_offset < base or base <= last:
                reason = f"offsets {base} to {batch.last_offset} are not after offset {last}"
                raise located(CorruptBatchError(reason, position=batch.position, offset=base), self.folder)
            last = batch.last_offset
            batches.append(batch)
        for batch in batches:
            self._append(batch, view[batch.position : batch.position + batch.size])

    def _append(self, batch: Any, data: memoryview) -> None:
        if self._next is None:
            self._next = self._snapshot_at = base_offset_of(batch)
        segment = self._active or self._opened(self.next_offset)
        self._active = segment
        if segment.is_full_for(len(data), batch.last_offset, self._segment_bytes):
            segment = self._roll(base_offset_of(batch))
        if segment.is_too_far(batch.last_offset):
            reason = f"last offset {batch.last_offset} is more than {_MOST_RELATIVE} after the first one"
            raise located(CorruptBatchError(reason, offset=base_offset_of(batch)), segment.path)
        segment.append(batch, data, self._interval)
        self._next = batch.last_offset + 1
        aborted = self._producers.add(batch)
        if aborted is not None:
            segment.add_aborted(aborted)

    def roll(self, base_offset: int | None = None) -> None:
        """End the segment and begin the next one; base_offset: of it, else the next offset.

        As in UnifiedLog.roll, a producer snapshot is taken at its base offset. A segment that is still empty is not
        ended; if base_offset is larger than its own, it begins there instead.
        """
        self._check_open()
        base = max(base_offset or 0, self.next_offset)
        if self._active is None:
            self._next = self._next if base_offset is None else base
        elif self._active.size:
            self._roll(base)
        elif base > self._active.base_offset:
            self._active.remove()
            self._next, self._active = base, self._opened(base)

    def _roll(self, base: int) -> _Segment:
        assert self._active is not None
        self._active.close(self._sync)
        self._active = None
        self._next = base
        self._take_snapshot()
        self._active = self._opened(base)
        return self._active

    def flush(self) -> None:
        """Hand all bytes to the operating system, so that readers see them."""
        self._check_open()
        if self._active is not None:
            self._active.flush()

    def close(self) -> None:
        """End the last segment, and take a producer snapshot at the end of the log as a clean shutdown does.

        A partition without a batch gets one empty segment. Closing twice does nothing.
        """
        if self._closed:
            return
        if self._active is None:
            self._active = self._opened(self.next_offset)
        self._closed = True
        self._active.close(self._sync)
        self._take_snapshot()
        if self._sync:
            sync_folder(self.folder)

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif not self._closed:
            self._closed = True
            if self._active is not None:
                self._active.abandon()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the SegmentWriter is closed")

    def _opened(self, base: int) -> _Segment:
        return _Segment(self.folder, base)

    def _take_snapshot(self) -> None:
        """ProducerStateManager.takeSnapshot: one for each offset at most."""
        if self.next_offset <= self._snapshot_at:
            return
        self._snapshot_at = self.next_offset
        self._write_snapshot()

    def _write_snapshot(self) -> None:
        path = os.path.join(self.folder, f"{self.next_offset:020}.snapshot")
        with open(path, "xb") as file:
            file.write(producer_snapshot(self._producers.in_order()))
            if self._sync:
                file.flush()
                os.fsync(file.fileno())


class _Segment:
    """One segment that is being written."""

    def __init__(self, folder: str, base: int) -> None:
        self.base_offset, self.size = base, 0
        stem = os.path.join(folder, f"{base:020}")
        self.path, self._stem = stem + ".log", stem
        self._entries, self._time_entries = 0, 0
        self._since = 0  # bytes since the last entry of the .index
        self._largest, self._largest_at, self._written = -1, base, -1  # timestamps: so far, its offset, in the index
        self._files: list[IO[bytes]] = []
        try:
            self._log = self._opened(self.path, buffering=0)
            self._index, self._times = self._opened(stem + ".index"), self._opened(stem + ".timeindex")
        except OSError:
            self.abandon()
            raise
        self._aborted: IO[bytes] | None = None

    def _opened(self, path: str, buffering: int = -1) -> IO[bytes]:
        file: IO[bytes] = open(path, "xb", buffering=buffering)  # noqa: SIM115 - abandon() closes it
        self._files.append(file)
        return file

    def is_full_for(self, size: int, last_offset: int, most: int) -> bool:
        """Must a batch of that size begin a new segment (LogSegment.shouldRoll)?"""
        index_full = self._entries >= INDEX_BYTES // 8 or self._time_entries >= INDEX_BYTES // 12 - 1
        return self.is_too_far(last_offset) or (self.size > 0 and (self.size + size > most or index_full))

    def is_too_far(self, last_offset: int) -> bool:
        """Does the offset not fit into the int32 of an index entry?"""
        return last_offset - self.base_offset > _MOST_RELATIVE

    def append(self, batch: Any, data: Any, interval: int) -> None:
        """Write one batch, and the index entries that are due before it."""
        _write(self._log, data, self.size)
        if batch.max_timestamp > self._largest:
            self._largest, self._largest_at = batch.max_timestamp, batch.last_offset
        if self._since > interval:
            self._index.write(_offset_entry(batch.last_offset - self.base_offset, self.size))
            self._entries += 1
            self._add_time()
            self._since = 0
        self._since += len(data)
        self.size += len(data)

    def _add_time(self) -> None:
        """TimeIndex.maybeAppend: the largest timestamp so far, if it is larger than that of the last entry."""
        if self._largest > self._written:
            self._times.write(_time_entry(self._largest, self._largest_at - self.base_offset))
            self._written = self._largest
            self._time_entries += 1

    def add_aborted(self, entry: AbortedTransaction) -> None:
        """Add an entry to the .txnindex, which is made with its first entry."""
        if self._aborted is None:
            self._aborted = self._opened(self._stem + ".txnindex")
        self._aborted.write(_aborted(*entry))

    def flush(self) -> None:
        """Hand the bytes of all files to the operating system."""
        for file in self._files:
            file.flush()

    def close(self, sync: bool) -> None:
        """End the segment: its last time index entry, then its files."""
        self._add_time()
        try:
            for file in self._files:
                file.flush()
                if sync:
                    os.fsync(file.fileno())
        except OSError as error:
            error.filename = error.filename or self.path
            raise
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files as they are."""
        for file in self._files:
            with suppress(OSError):
                file.close()

    def remove(self) -> None:
        """Close and delete the files."""
        self.abandon()
        for file in self._files:
            os.unlink(file.name)


def _write(file: IO[bytes], data: Any, position: int) -> None:
    """Write all of data at the end of an unbuffered file of that many bytes, or nothing of it."""
    try:
        view = memoryview(data)
        while len(view):
            view = view[file.write(view) :]
    except OSError as error:
        with suppress(OSError):
            file.truncate(position)
            file.seek(position)
        error.filename = error.filename or file.name
        raise


def base_offset_of(batch: Any) -> int:
    """The base offset of a RecordBatch; of a compressed message of magic 0 or 1 too large to look into the last one.

    Raises CorruptBatchError for a compressed message whose own offset is wrong.
    """
    try:
        return int(batch.base_offset)
    except LimitError:
        return int(batch.last_offset)


def _check_name(topic: str, partition: int) -> None:
    """Is it a name that Kafka allows (Topic.validate)? Raises ValueError."""
    if not re.fullmatch("[a-zA-Z0-9._-]{1,249}", topic) or topic in (".", ".."):
        raise ValueError(f"invalid topic {topic[:300]!r}: letters, digits, '.', '_' and '-', 249 at most")
    if not 0 <= partition <= _MOST_RELATIVE:
        raise ValueError(f"invalid partition {partition}: 0 to {_MOST_RELATIVE}")
