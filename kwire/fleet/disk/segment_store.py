"""The batches of a partition's log on disk: segments with indexes, as a broker has them, through SegmentWriter."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from kwire.errors import CorruptBatchError
from kwire.fleet.disk.node_folder import NodeWriter
from kwire.fleet.disk.whole_files import write_whole
from kwire.fleet.errors import ApiError, StorageErrors, certainly
from kwire.fleet.logs.batch_store import PIECE_BYTES, BatchStore, Entry, Segment, entries_in, size_of_first
from kwire.fleet.logs.partition_log import Aborted, PartitionLog
from kwire.fleet.logs.producer_state import Producer, WrittenBatch
from kwire.schema.error_codes import ErrorCode
from kwire.storage.places.discovery import beside
from kwire.storage.side_files.checkpoints import LeaderEpoch, leader_epoch_checkpoint, read_leader_epochs
from kwire.storage.side_files.indexes import AbortedTransaction, OffsetIndex, TimeIndex, TransactionIndex, aborted_entry
from kwire.storage.writing import index_writer

EPOCHS_FILE = "leader-epoch-checkpoint"
MOST_SEGMENT = (1 << 31) - 1
_HEAD_BYTES = 4096  # that are read at least: a batch's length is in them
_LONGEST_NAME = 255  # bytes of a file's name
_LONGEST_STEM = 200  # of a topic in the name of a folder beside its own; only one is there at a time
_KINDS = (".log", ".index", ".timeindex", ".txnindex")
_SWAP = ".swap"  # what a cleaner has written, and what is not yet in its place (Kafka's UnifiedLog.SWAP_FILE_SUFFIX)


class SegmentFiles(Segment):
    """A segment on disk. Its indexes are kept in memory: about 16 bytes for 4 KiB of the log."""

    def __init__(self, path: str, base_offset: int, interval: int) -> None:
        super().__init__(base_offset)
        self.path, self._interval = path, interval
        self._offsets, self._positions = array("q"), array("q")  # of a batch: its last offset, where it begins
        self._times, self._time_offsets = array("q"), array("q")  # the largest timestamp up to an offset
        self._since = 0

    @classmethod
    def opened(cls, path: str, base_offset: int, interval: int) -> SegmentFiles:
        """A segment that is there, with the indexes beside it. Raises OSError."""
        made = cls(path, base_offset, interval)
        made.size = os.path.getsize(path)
        for offset, position in OffsetIndex(_content(path, ".index"), base_offset).entries:
            made._offsets.append(offset)
            made._positions.append(position)
        for time, offset in TimeIndex(_content(path, ".timeindex"), base_offset).entries:
            made._times.append(time)
            made._time_offsets.append(offset)
        if made._times:
            made.largest_timestamp = made._times[-1]
        first = next(made.entries(base_offset, PIECE_BYTES), None)
        if first is not None:
            made.first_timestamp = first.max_timestamp
        return made

    def aborted(self) -> Sequence[AbortedTransaction]:
        """The entries of its .txnindex. Raises OSError."""
        return TransactionIndex(_content(self.path, ".txnindex")).entries

    def _keep(self, entry: Entry, largest: int) -> None:
        """As Segment's. Who looks something up reads _offsets and _times: they grow last."""
        since = self._since
        if since > self._interval:
            if not self._times or largest > self._times[-1]:
                self._time_offsets.append(entry.last_offset)
                self._times.append(largest)
            self._positions.append(self.size)
            self._offsets.append(entry.last_offset)
            since = 0
        self._since = since + len(entry.data)

    def entries(self, offset: int, most: int) -> Iterator[Entry]:
        """As Segment's; the file is read in pieces, from the place that the index says."""
        at = bisect_right(self._offsets, offset) - 1
        position = self._positions[at] if at >= 0 else 0
        wanted = min(max(most, _HEAD_BYTES) + min(self._interval, PIECE_BYTES), MOST_SEGMENT)
        with StorageErrors(self.path), open(self.path, "rb", buffering=0) as file:
            while position < self.size:
                wanted = min(wanted, self.size - position)
                piece = os.pread(file.fileno(), wanted, position)
                if len(piece) < wanted:
                    raise CorruptBatchError("the file ends here", position=position + len(piece))
                end = position
                for entry in entries_in(piece):
                    end += len(entry.data)
                    if entry.last_offset >= offset:
                        yield entry
                wanted = PIECE_BYTES
                if end == position:  # not one whole batch
                    wanted = size_of_first(piece)
                    if not len(piece) < wanted <= self.size - position:
                        raise CorruptBatchError("a batch that is not whole", position=position)
                position = end

    def near(self, timestamp: int) -> int:
        """As Segment's, by the time index."""
        at = bisect_left(self._times, timestamp) - 1
        return self._time_offsets[at] if at >= 0 else self.base_offset

    def remove(self, kinds: Sequence[str] = (*_KINDS, ".snapshot")) -> None:
        """Delete its files, with the producer snapshot at its beginning. Raises OSError."""
        for kind in kinds:
            with suppress(FileNotFoundError):
                os.unlink(beside(self.path, kind))


class SegmentStore(BatchStore):
    """The segments in a partition's folder.

    node: the folder of the node, a Kafka log directory; interval: index.interval.bytes; started: called with the new
    start of the log, to keep it; reopened: called when a folder was opened again after an error.
    """

    def __init__(
        self, node: str, topic: str, partition: int, *, interval: int, started: Callable[[int], None],
        reopened: Callable[[], None],
    ) -> None:
        super().__init__()
        self.folder = os.path.join(node, f"{topic}-{partition}")
        self._node, self._topic, self._partition, self._interval = node, topic, partition, interval
        self._started, self._reopened = started, reopened
        self._writer: NodeWriter | None = None
        self._is_closed = False
        self._unfinished: list[Callable[[], None]] = []  # steps of a swap that the disk has not taken yet

    def open(self) -> PartitionLog | None:
        """The log in the folder, recovered as a broker does; None if it has no segments. Raises OSError, KwireError."""
        if not os.path.isdir(self.folder):
            return None
        _complete_swaps(self.folder)
        if not any(name.endswith(".log") for name in os.listdir(self.folder)):
            return None
        self._writer = self._write()
        try:
            return self._restored(self._writer)
        except BaseException:
            self.abandon()
            raise

    def _restored(self, writer: NodeWriter) -> PartitionLog:
        self._list()
        log = PartitionLog(self)
        log.end_offset = writer.next_offset
        log.changed_at = int(os.path.getmtime(self.segments[-1].path) * 1000)
        log.start_offset = min(self.segments[0].base_offset, log.end_offset)
        log.producers.restore({state.producer_id: _producer(state) for state in writer.producers})
        log.aborted = [
            Aborted(one.producer_id, one.first_offset, one.last_offset, one.last_stable_offset)
            for segment in self.segments for one in segment.aborted()]
        log.epochs = self._epochs(log.start_offset, log.end_offset)
        return log

    def _list(self) -> None:
        bases = sorted(int(name[:-4]) for name in os.listdir(self.folder) if name.endswith(".log"))
        self.segments = [SegmentFiles.opened(self._path(base), base, self._interval) for base in bases]

    def _path(self, base_offset: int) -> str:
        return os.path.join(self.folder, f"{base_offset:020}.log")

    def _write(self, base_offset: int | None = None) -> NodeWriter:
        make = partial(
            NodeWriter, self._node, self._topic, self._partition, base_offset=base_offset,
            segment_bytes=MOST_SEGMENT, index_interval_bytes=self._interval, sync=False)
        try:
            return make()
        except OSError as error:
            if error.errno != errno.EMFILE or not _more_files():
                raise
            return make()

    def _epochs(self, start: int, end: int) -> list[tuple[int, int]]:
        """The leader epochs by the checkpoint; without it as the batches say."""
        with suppress(FileNotFoundError):
            kept = [tuple(one) for one in read_leader_epochs(os.path.join(self.folder, EPOCHS_FILE))]
            if kept or start == end:
                return [(epoch, offset) for epoch, offset in kept if offset <= end]
        epochs: list[tuple[int, int]] = []
        for entry in self.entries(start):
            if not epochs or entry.epoch > epochs[-1][0]:
                epochs.append((entry.epoch, entry.base_offset))
        return epochs

    def _opened(self, base_offset: int) -> NodeWriter:
        """The writer; after an error it is made again, which recovers the log."""
        if self._is_closed:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the fleet is closed")
        if self._writer is None:
            if self.segments:
                self.settle()
                self._take_back()
                self._writer = self._write()
                self._list()
                self._reopened()
            else:
                self._take_back()
                self._writer = self._write(base_offset)
        return self._writer

    def _take_back(self) -> None:
        """Take away what an append has left that was answered with an error: the producer sends it again."""
        end = self.segments[-1].base_offset if self.segments else -1
        with suppress(FileNotFoundError):  # a new partition, whose folder goes with it
            for name in os.listdir(self.folder):
                if name.endswith(".log") and int(name[:-4]) > end:
                    SegmentFiles(os.path.join(self.folder, name), int(name[:-4]), 0).remove()
            if self.segments:
                os.truncate(self.segments[-1].path, self.segments[-1].size)

    def add(self, entry: Entry) -> None:
        """As BatchStore's; the batch is handed to the operating system."""
        with StorageErrors(self.folder):
            writer = self._opened(entry.base_offset)
            if self.segments and writer.next_offset != entry.base_offset:  # recovered with less, or more, than was kept
                raise CorruptBatchError(f"the log ends at {writer.next_offset}", offset=entry.base_offset)
            try:
                writer.append(entry.data)
                assert writer.path is not None
                if not self.segments or self.segments[-1].path != writer.path:
                    self._begun(writer.path)
                self.segments[-1].note(entry)
            except BaseException:
                self._refuse()
                raise

    def roll(self, base_offset: int) -> None:
        """As BatchStore's."""
        with StorageErrors(self.folder):
            writer = self._opened(base_offset)
            try:
                writer.roll()
                assert writer.path is not None
                if self.segments[-1].path != writer.path:
                    self._begun(writer.path)
            except BaseException:
                self._refuse()
                raise

    def _refuse(self) -> None:
        """After an error: what is in the files is again what is known, now if it can be, else before the next batch."""
        certainly(self.abandon)
        try:  # noqa: SIM105 - suppress() takes memory
            certainly(self._take_back)
        except OSError:
            pass

    def _begun(self, path: str) -> None:
        self.segments.append(SegmentFiles(path, int(os.path.basename(path)[:-4]), self._interval))

    def abandon(self) -> None:
        """Close the files as they are, after an error; the next batch opens them again."""
        writer = self._writer
        if writer is not None:
            writer.__exit__(OSError, None, None)
            self._writer = None

    def entries(self, offset: int, most: int = PIECE_BYTES) -> Iterator[Entry]:
        """As BatchStore's."""
        self.settle()
        yield from super().entries(offset, most)

    def settle(self) -> None:
        """As BatchStore's: a swap, from the step on that failed."""
        with StorageErrors(self.folder):
            while self._unfinished:  # the last one is next
                certainly(self._unfinished[-1])
                self._unfinished.pop()

    def drop(self, count: int) -> None:
        """As BatchStore's."""
        with StorageErrors(self.folder):
            for _ in range(count):
                self.segments[0].remove()
                del self.segments[0]

    def replace(self, first: int, count: int, batches: Iterable[bytes], aborted: list[AbortedTransaction]) -> None:
        """As BatchStore's: written beside the segments, then swapped.

        A swap that the disk does not take is ended before the log is read again; after a kill by the next start.
        """
        self.settle()
        base, old = self.segments[first].base_offset, self.segments[first : first + count]
        scratch = os.path.join(self._node, f".{self._topic[:_LONGEST_STEM]}-{self._partition}.cleaned")
        # so few entries that an index is never full, which would begin another segment
        entries = index_writer.INDEX_BYTES // 20  # of 8 and 12 bytes
        interval = max(self._interval, sum(segment.size for segment in old) // entries)
        with StorageErrors(self.folder):
            shutil.rmtree(scratch, ignore_errors=True)
            try:
                with NodeWriter(
                        scratch, self._topic, self._partition, base_offset=base, segment_bytes=MOST_SEGMENT,
                        index_interval_bytes=interval, sync=False) as writer:
                    for batch in batches:
                        writer.append(batch)
                stem = os.path.join(writer.folder, f"{base:020}")
                if writer.path != stem + ".log":
                    raise CorruptBatchError(f"expected one segment at {base}, another one begins at {writer.path}")
                with open(stem + ".txnindex", "wb") as file:
                    file.write(b"".join(map(aborted_entry, aborted)))
                for kind in (".index", ".timeindex", ".txnindex", ".log"):  # the .log last: it says that all are there
                    os.replace(stem + kind, self._path(base)[:-4] + kind + _SWAP)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            path = self._path(base)
            self._unfinished = [
                partial(self._take_in, path, first, count), partial(_swap, path),
                *(segment.remove for segment in reversed(old[1:])), partial(old[0].remove, _KINDS)]
        self.settle()

    def _take_in(self, path: str, first: int, count: int) -> None:
        base = self.segments[first].base_offset
        self.segments[first : first + count] = [SegmentFiles.opened(path, base, self._interval)]

    def keep_epochs(self, epochs: list[tuple[int, int]]) -> None:
        """Write leader-epoch-checkpoint. Raises ApiError."""
        with StorageErrors(self.folder):
            os.makedirs(self.folder, exist_ok=True)
            data = leader_epoch_checkpoint([LeaderEpoch(*one) for one in epochs])
            write_whole(os.path.join(self.folder, EPOCHS_FILE), data)

    def keep_start(self, offset: int) -> None:
        """Write log-start-offset-checkpoint. Raises ApiError."""
        with StorageErrors(self.folder):
            self._started(offset)

    def close(self) -> None:
        """End the active segment, with the producer snapshot of a clean shutdown. Raises OSError."""
        self._is_closed = True
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def delete(self) -> None:
        """Delete the folder. Raises OSError."""
        self._is_closed = True
        self.abandon()
        with suppress(FileNotFoundError):
            delete_folder(self.folder)


def delete_folder(folder: str) -> None:
    """Delete a partition's folder, which gets Kafka's name of a deleted one first. Raises OSError."""
    gone = renamed(folder, "-delete")
    os.rename(folder, gone)
    shutil.rmtree(gone, ignore_errors=True)


def renamed(folder: str, suffix: str) -> str:
    """Kafka's name of a partition's folder that is set aside (LocalLog.logDirNameWithSuffixCappedLength)."""
    parent, _, name = folder.rpartition("/")
    topic, _, partition = name.rpartition("-")
    rest = f"-{partition}.{os.urandom(16).hex()}{suffix}"
    return f"{parent}/{topic[: _LONGEST_NAME - len(rest)]}{rest}"


def _producer(state: Any) -> Producer:
    """A producer by its entry in a snapshot: as after a broker's restart, only its last batch is known."""
    producer = Producer()
    producer.epoch, producer.coordinator_epoch = state.producer_epoch, state.coordinator_epoch
    producer.last_timestamp = state.timestamp
    if state.current_transaction_first_offset >= 0:
        producer.first_offset = state.current_transaction_first_offset
    if state.last_sequence >= 0:
        first = (state.last_sequence - state.offset_delta) & MOST_SEGMENT
        producer.batches.append(WrittenBatch(
            first, state.last_sequence, state.last_offset - state.offset_delta, state.timestamp))
    return producer


def _more_files() -> bool:
    """Let the process have as many open files as it may, as a JVM does; a partition needs four."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return True


def _complete_swaps(folder: str) -> None:
    """End what a cleaner that was killed began: segments that are written whole replace the old ones (LogLoader)."""
    names = set(os.listdir(folder))
    for name in sorted(names):
        if not re.fullmatch(r"[0-9]{20}\.log\.swap", name):
            continue
        path = os.path.join(folder, name.removesuffix(_SWAP))
        base = int(name[:20])
        last = base
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        for entry in entries_in(data):
            last = entry.last_offset
        for other in names:
            if re.fullmatch(r"[0-9]{20}\.log", other) and base < int(other[:20]) <= last:
                SegmentFiles(os.path.join(folder, other), int(other[:20]), 0).remove()
        SegmentFiles(path, base, 0).remove(_KINDS)
        _swap(path)
    for name in os.listdir(folder):
        if name.endswith(_SWAP):  # of one that is not whole
            os.unlink(os.path.join(folder, name))


def _swap(path: str) -> None:
    """Give the files of a cleaned segment their names; the .log, by which a restart finds them, last."""
    for kind in (".index", ".timeindex", ".txnindex", ".log"):
        with suppress(FileNotFoundError):
            os.replace(beside(path, kind) + _SWAP, beside(path, kind))
    with suppress(FileNotFoundError):
        if not os.path.getsize(beside(path, ".txnindex")):
            os.unlink(beside(path, ".txnindex"))


def _content(path: str, kind: str) -> bytes:
    return _read(beside(path, kind)) or b""


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
