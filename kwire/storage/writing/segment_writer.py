"""SegmentWriter: the segments of a partition, their indexes and producer snapshots, written as a broker writes them."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakSet

from kwire.codec.arguments import byte_view, can_iterate, check_each, check_int, check_ints, check_type
from kwire.codec.records import read_batches
from kwire.errors import CorruptBatchError
from kwire.output import disown, make_folders, sync_folder, write_new
from kwire.storage.places.discovery import is_topic_name
from kwire.storage.places.filesystem import located, shown
from kwire.storage.side_files.checkpoints import ProducerState, producer_snapshot
from kwire.storage.side_files.indexes import AbortedTransaction, aborted_entry
from kwire.storage.writing.index_writer import IndexWriter
from kwire.storage.writing.locks import check_no_broker, locked_folder, unlock_folder
from kwire.storage.writing.producer_states import ProducerStates
from kwire.storage.writing.segment_recovery import MOST_RELATIVE, Recovered, base_offset_of, recovered
from kwire_c.printable import brief

if TYPE_CHECKING:
    from typing_extensions import Buffer

SEGMENT_BYTES = 1 << 30  # segment.bytes, a broker's default
INDEX_INTERVAL_BYTES = 4096  # index.interval.bytes
_MOST_BYTES = (1 << 31) - 1  # of a segment
_MOST_OFFSET = (1 << 63) - 1
_P = ParamSpec("_P")
_T = TypeVar("_T")


def _one_at_a_time(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """A method of a SegmentWriter for one thread at a time; a call that ends in the middle of a change closes it.

    Raises ValueError where another thread is at it, or in the child of a fork.
    """

    @wraps(method)
    def call(*args: _P.args, **keywords: _P.kwargs) -> _T:
        writer: Any = args[0]
        if writer._process != os.getpid():
            raise ValueError("the SegmentWriter belongs to the process that forked this one")
        try:
            writer._turns.pop()
        except IndexError:
            raise ValueError("another thread is writing with the SegmentWriter") from None
        try:
            return method(*args, **keywords)
        except BaseException:
            if writer._midst:
                writer.__exit__(*sys.exc_info())
            raise
        finally:
            writer._turns.append(True)

    return call


class SegmentWriter:
    """Writes a partition, batch by batch: .log, .index, .timeindex, .txnindex, and a .snapshot at a roll and close.

    folder: the partition's own, if its name is topic-partition, else the log directory, in which that one is made. The
    bytes are those of a broker of release 4.1 or later with the same settings: index entries by batch
    (LogSegment.append), the last time index entry when a segment is rolled or closed
    (LogSegment.onBecomeInactiveSegment, close), an aborted transaction when its marker comes (UnifiedLog.append).
    leader-epoch-checkpoint and partition.metadata are the broker's, not written.

    A partition that has segments is recovered as a broker does at its start, and goes on at its end
    (kwire.storage.writing.segment_recovery): a torn tail is cut off, indexes that are missing or were not closed are
    made again. What is closed and whole stays as it is, byte for byte. Raises CorruptBatchError (.file) for damage with
    valid batches after it, which `kwire log salvage` takes out; nothing has changed then.

    base_offset: of the first segment, that of the first batch by default. segment_bytes (Kafka's segment.bytes): a
    batch that would make the segment larger begins a new one; index_interval_bytes: Kafka's index.interval.bytes.
    producers: what the snapshot at base_offset says of the producers; it is written too. These two are for a partition
    without segments (FileExistsError). sync: force the bytes to disk at roll and close. A context manager; left by an
    exception it only closes its files.

    One writer at a time has a folder: a second one, or one beside a broker that runs, is an OSError. It is for one
    thread at a time: another one gets a ValueError meanwhile, as does the child of a fork. A call that ends in the
    middle of a change (by Ctrl-C, or because the disk is full) closes the writer; what was written before stays. The
    indexes may then lack what is due for the last batch, as after an unclean shutdown of a broker; the next writer
    makes them again.
    """

    _is_outside = True  # of the broker that holds the log directory's .lock, which must be none

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
        base_offset = _checked_offset(base_offset)
        partition, segment_bytes = check_int(partition, "partition"), check_int(segment_bytes, "segment_bytes")
        index_interval_bytes = check_int(index_interval_bytes, "index_interval_bytes")
        _check_name(topic, partition)
        if base_offset is not None and base_offset < 0:
            raise ValueError(f"base_offset must not be negative, got {brief(base_offset)}")
        if not 0 < segment_bytes <= _MOST_BYTES:
            raise ValueError(f"segment_bytes must be 1 to {_MOST_BYTES}, got {segment_bytes}")
        if index_interval_bytes < 0:
            raise ValueError(f"index_interval_bytes must not be negative, got {index_interval_bytes}")
        name, folder = f"{topic}-{partition}", os.fspath(folder)
        if "://" in folder and not os.path.isdir(folder):
            raise FileNotFoundError(2, "is a URL: segments are written to local paths only", shown(folder))
        self.folder = folder if os.path.basename(os.path.abspath(folder)) == name else os.path.join(folder, name)
        self.topic, self.partition = topic, partition
        self._segment_bytes, self._interval, self._sync = segment_bytes, index_interval_bytes, sync
        self._next, self._snapshot_at = base_offset, base_offset or 0
        known = () if producers is None else producers
        known = tuple(known) if can_iterate(known) else known
        check_each(known, ProducerState, "producers", "ProducerStates")
        self._producers = ProducerStates(known)
        self._active: _Segment | None = None
        self._closed = False
        self._turns, self._process = [True], os.getpid()  # turns: taken by the one thread that writes
        self._midst = False  # of a change: the files, or what is known of them, are not whole
        if self._is_outside:
            for place in (os.path.abspath(self.folder), os.path.realpath(self.folder)):  # it may be a link
                check_no_broker(os.path.dirname(place))
        if sync:
            make_folders(self.folder)
        else:
            os.makedirs(self.folder, exist_ok=True)
        held = locked_folder(self.folder, "another SegmentWriter writes there")
        try:
            self._unlock = weakref.finalize(self, unlock_folder, held, self._process)
        except BaseException:
            unlock_folder(held, self._process)
            raise
        try:
            self._open(base_offset is not None or producers is not None)
            if producers is not None and self.next_offset:
                self._write_snapshot()
        except BaseException:
            self._unlock()
            raise

    def _open(self, is_new: bool) -> None:
        """Go on at the end of the segments that are there. is_new: there must be none."""
        names = os.listdir(self.folder)
        if not any(name.endswith(".log") for name in names):
            other = next((name for name in sorted(names) if name.endswith((".log.gz", ".log.swap"))), None)
            if other is not None:  # what is written now would hide it, and a broker would replace it by the .swap
                kind = "compressed" if other.endswith(".gz") else "that an interrupted compaction left"
                raise FileExistsError(17, f"is a segment {kind}: a new log may not begin beside it",
                                      os.path.join(self.folder, other))
            return
        if is_new:
            raise FileExistsError(17, "has segments already: base_offset and producers are for one that has none",
                                  self.folder)
        found = recovered(self.folder, self._interval, self._sync)
        self._next, self._snapshot_at, self._producers = found.next_offset, found.snapshot_at, found.producers
        self._active = _Segment(self.folder, found.base_offset, self._interval, found)

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

    @property
    def producers(self) -> list[ProducerState]:
        """The producers at the end of the log, as a snapshot has them."""
        return self._producers.in_order()

    @_one_at_a_time
    def append(self, data: Buffer) -> None:
        """Write one or more whole batches (any buffer), with ascending offsets after those written before.

        Nothing is written if one of them is damaged or out of order: CorruptBatchError. OSError: what was written of
        the last batch is taken back, else the writer is closed. LimitError for more than a million producers.
        """
        self._check_open()
        last, view = self.next_offset - 1, byte_view(data, "data")
        batches = []
        for batch in read_batches(view, strict_tail=True):
            base = base_offset_of(batch)
            if batch.last_offset < base or base <= last:
                reason = f"offsets {base} to {batch.last_offset} are not after offset {last}"
                raise located(CorruptBatchError(reason, position=batch.position, offset=base), self.folder)
            if batch.last_offset - base > MOST_RELATIVE:  # compressed, of magic 0 or 1: no segment can hold it
                reason = f"last offset {batch.last_offset} is more than {MOST_RELATIVE} after the first one"
                raise located(CorruptBatchError(reason, position=batch.position, offset=base), self.folder)
            if batch.last_offset == _MOST_OFFSET:  # a log that ends there has no end offset, and cannot go on
                reason = f"no offset is left after {_MOST_OFFSET}"
                raise located(CorruptBatchError(reason, position=batch.position, offset=base), self.folder)
            last = batch.last_offset
            batches.append(batch)
        for batch in batches:
            self._append(batch, view[batch.position : batch.position + batch.size])

    def _append(self, batch: Any, data: memoryview) -> None:
        self._midst = True
        if self._next is None:
            self._next = self._snapshot_at = base_offset_of(batch)
        segment = self._active or self._opened(self.next_offset)
        self._active = segment
        if segment.is_full_for(len(data), batch.last_offset, self._segment_bytes):
            segment = self._roll(base_offset_of(batch))
        try:
            segment.append(batch, data)
        except OSError:
            self._midst = not segment.is_whole
            raise
        self._next = batch.last_offset + 1
        aborted = self._producers.add(batch)
        if aborted is not None:
            segment.add_aborted(aborted)
        self._midst = False

    @_one_at_a_time
    def roll(self, base_offset: int | None = None) -> None:
        """End the segment and begin the next one; base_offset: of it, the next offset at least, which is the default.

        As in UnifiedLog.roll, a producer snapshot is taken at its base offset. A segment that is still empty is not
        ended; if base_offset is larger than its own, it begins there instead.
        """
        self._check_open()
        base_offset = _checked_offset(base_offset)
        base = max(base_offset or 0, self.next_offset)
        self._midst = True
        if self._active is None:
            self._next = self._next if base_offset is None else base
        elif self._active.size:
            self._roll(base)
        elif base > self._active.base_offset:
            self._active.remove()
            self._next, self._active = base, self._opened(base)
        self._midst = False

    def _roll(self, base: int) -> _Segment:
        assert self._active is not None
        self._active.close(self._sync)
        self._active = None
        self._next = base
        self._take_snapshot()
        self._active = self._opened(base)
        if self._sync:
            sync_folder(self.folder)
        return self._active

    @_one_at_a_time
    def flush(self) -> None:
        """Hand all bytes to the operating system, so that readers see them."""
        self._check_open()
        if self._active is not None:
            self._active.flush()

    @_one_at_a_time
    def close(self) -> None:
        """End the last segment, and take a producer snapshot at the end of the log as a clean shutdown does.

        A partition without a batch gets one empty segment. Closing twice does nothing.
        """
        if self._closed:
            return
        if self._active is None:
            self._active = self._opened(self.next_offset)
        self._closed = True
        try:
            self._active.close(self._sync)
            self._take_snapshot()
            if self._sync:
                sync_folder(self.folder)
        finally:
            self._unlock()

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif not self._closed:
            self._closed = True
            try:
                if self._active is not None:
                    self._active.abandon()
            finally:
                self._unlock()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the SegmentWriter is closed")

    def _opened(self, base: int) -> _Segment:
        return _Segment(self.folder, base, self._interval)

    def _take_snapshot(self) -> None:
        """ProducerStateManager.takeSnapshot: one for each offset at most."""
        if self.next_offset <= self._snapshot_at:
            return
        self._snapshot_at = self.next_offset
        self._write_snapshot()

    def _write_snapshot(self) -> None:
        path = os.path.join(self.folder, f"{self.next_offset:020}.snapshot")
        write_new(path, producer_snapshot(self._producers.in_order()), sync=self._sync)


class _Segment:
    """One segment that is being written. recovered: what is in its files already; None: they are made."""

    def __init__(self, folder: str, base: int, interval: int, recovered: Recovered | None = None) -> None:
        self.base_offset = base
        self._stem = os.path.join(folder, f"{base:020}")
        self.path = self._stem + ".log"
        self._mode = "xb" if recovered is None else "ab"
        self._files: list[IO[bytes]] = []
        _ALL.add(self)
        self._aborted: IO[bytes] | None = None
        try:
            self._log = self._opened(".log", buffering=0)
            index, times = self._opened(".index"), self._opened(".timeindex")
        except OSError:
            self.abandon()
            raise
        if recovered is None:
            self._indexes = IndexWriter(base, interval, index, times)
        else:
            self._indexes = recovered.indexes
            self._indexes.go_on(index, times)

    def _opened(self, kind: str, buffering: int = -1) -> IO[bytes]:
        file: IO[bytes] = open(self._stem + kind, self._mode, buffering=buffering)  # noqa: SIM115 - abandon() closes it
        self._files.append(file)
        return file

    @property
    def size(self) -> int:
        """Bytes of the .log file."""
        return self._indexes.size

    def is_full_for(self, size: int, last_offset: int, most: int) -> bool:
        """Must a batch of that size begin a new segment (LogSegment.shouldRoll)?"""
        return self.is_too_far(last_offset) or (self.size > 0 and (self.size + size > most or self._indexes.is_full))

    def is_too_far(self, last_offset: int) -> bool:
        """Does the offset not fit into the int32 of an index entry?"""
        return last_offset - self.base_offset > MOST_RELATIVE

    @property
    def is_whole(self) -> bool:
        """Does the .log file have the batches that are known, and no more?"""
        return os.fstat(self._log.fileno()).st_size == self.size

    def append(self, batch: Any, data: Any) -> None:
        """Write one batch, and the index entries that are due before it."""
        _write(self._log, data, self.size)
        self._indexes.add(batch, len(data))

    def add_aborted(self, entry: AbortedTransaction) -> None:
        """Add an entry to the .txnindex, which is made with its first entry."""
        if self._aborted is None:
            self._aborted = self._opened(".txnindex")
        self._aborted.write(aborted_entry(entry))

    def flush(self) -> None:
        """Hand the bytes of all files to the operating system."""
        for file in self._files:
            try:
                file.flush()
            except OSError as error:
                error.filename = error.filename or file.name
                raise

    def close(self, sync: bool) -> None:
        """End the segment: its last time index entry, then its files, which NFS and FUSE may write only now."""
        self._indexes.add_time()
        try:
            for file in self._files:
                try:
                    file.flush()
                    if sync:
                        os.fsync(file.fileno())
                    file.close()
                except OSError as error:
                    error.filename = error.filename or file.name
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


_ALL: WeakSet[_Segment] = WeakSet()


def _disown_all() -> None:
    """Run in a child of fork: index entries that are buffered are the parent's to write."""
    disown(file for segment in list(_ALL) for file in segment._files)


os.register_at_fork(after_in_child=_disown_all)


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


def _checked_offset(base_offset: int | None) -> int | None:
    """A base offset that a caller gave. Raises TypeError for what is no integer, ValueError for one past 63 bits."""
    check_ints(base_offset=base_offset)
    if base_offset is None:
        return None
    offset = check_int(base_offset, "base_offset")
    if offset > _MOST_OFFSET:
        raise ValueError(f"base_offset must be at most {_MOST_OFFSET}, got {brief(offset)}")
    return offset


def _check_name(topic: str, partition: int) -> None:
    """Is it a name that Kafka allows (Topic.validate)? Raises ValueError."""
    if not is_topic_name(topic):
        raise ValueError(f"invalid topic {topic[:300]!r}: letters, digits, '.', '_' and '-', 249 at most")
    if not 0 <= partition <= MOST_RELATIVE:
        raise ValueError(f"invalid partition {partition}: 0 to {MOST_RELATIVE}")
