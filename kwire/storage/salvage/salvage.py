"""Salvage: what is valid in a damaged segment, partition or log directory, as clean segments with fresh indexes."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from struct import pack_into
from types import NoneType
from typing import Any, NamedTuple

from kwire.codec.arguments import check_progress, check_type
from kwire.codec.json import from_json
from kwire.codec.records import read_batches
from kwire.errors import CorruptBatchError, DecodeError, KwireError, LimitError, WrongFileError
from kwire.output import access_of, check_local, give_access, is_same, new_folder, scratch_folder, sync_folder
from kwire.schema.definitions import message
from kwire.storage.batches.batch_header import base_offset_at, examine, parse_header
from kwire.storage.batches.scanner import OBJECT_BYTES, OUT_OF_ORDER, Scanner, Window
from kwire.storage.places.discovery import (
    SegmentFile,
    beside,
    discover,
    is_without_gaps,
    offset_in_name,
    parsed_offset,
    place_of,
    unfinished_swaps,
)
from kwire.storage.places.filesystem import is_url, located, plain
from kwire.storage.places.selection import ExactSelection, Selection, choice_of
from kwire.storage.reading.directory import Partition
from kwire.storage.reading.segment import LogSegment
from kwire.storage.salvage.offset_order import OffsetBounds, judge
from kwire.storage.side_files.checkpoints import (
    MOST_TEXT,
    LeaderEpoch,
    ProducerState,
    leader_epoch_checkpoint,
    offset_checkpoint,
    read_leader_epochs,
    read_offset_checkpoint,
    read_partition_metadata,
    read_producer_snapshot,
    small_file,
)
from kwire.storage.side_files.meta_properties import META_PROPERTIES, MetaProperties
from kwire.storage.side_files.raft_snapshots import check_raft_snapshot
from kwire.storage.writing.producer_states import ProducerStates
from kwire.storage.writing.segment_recovery import base_offset_of
from kwire.storage.writing.segment_writer import INDEX_INTERVAL_BYTES, SegmentWriter
from kwire_c.printable import brief, printable
from kwire_c.record_batch import CODEC_MASK, LOG_OVERHEAD, MAGIC_OFFSET, RECORD_BATCH_OVERHEAD, SMALLEST_BATCHES

MOST_LISTED = 10_000  # lost regions, and repaired batches, of a partition that are listed one by one
_MOST_BYTES = (1 << 31) - 1  # of a segment, and offsets in it
_SEGMENT_FILES = (".log", ".index", ".timeindex", ".txnindex")
# batches, and their bytes, without a leader epoch after one whose epoch is not decided
_MOST_HELD, _MOST_HELD_BYTES = 1000, 32 << 20
_FRESH = (".index", ".timeindex", ".txnindex", ".snapshot")  # written from what is in the log
# not copied, so that the broker that starts on the result checks all of it
_UNTRUE = (".kafka_cleanshutdown", "recovery-point-offset-checkpoint", ".lock")


class Loss(NamedTuple):
    """Bytes that were lost. path: the file; position: the byte in it; size: bytes.

    first_offset, last_offset: the offsets that were in them, at most (-1: unknown, both: none that is known).
    """

    path: str
    position: int
    size: int
    first_offset: int
    last_offset: int
    reason: str

    def __str__(self) -> str:
        offsets = "" if self.first_offset < 0 else (
            f", offsets from {self.first_offset} on" if self.last_offset < 0
            else f", offset {self.first_offset}" if self.last_offset == self.first_offset
            else f", offsets {self.first_offset} to {self.last_offset}")
        return printable(f"{self.path}, byte {self.position}: {self.size} bytes lost{offsets}: {self.reason}")

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON; an offset that is not known is None."""
        return {
            **self._asdict(), "first_offset": None if self.first_offset < 0 else self.first_offset,
            "last_offset": None if self.last_offset < 0 else self.last_offset,
        }  # fmt: skip


@dataclass
class PartitionSalvage:
    """What became of one partition (or one segment). first_offset, next_offset: of what was kept; -1: nothing was.

    offsets_lost: at most so many, what compaction had removed included; more: lost regions that are not listed in lost;
    zeros: bytes after the last batches, as in preallocated segments, which were left out;
    repaired: (path, position) of batches whose leader epoch was out of order, and is now that of the batch before;
    epochs: the leader epochs of what was kept;
    open_transactions: (first offset, producer id) of transactions without a marker.
    """

    topic: str | None
    partition: int | None
    segments: int = 0
    batches: int = 0
    size: int = 0
    first_offset: int = -1
    next_offset: int = -1
    offsets_lost: int = 0
    bytes_lost: int = 0
    zeros: int = 0
    more: int = 0
    lost: list[Loss] = field(default_factory=list)
    repaired: list[tuple[str, int]] = field(default_factory=list)
    epochs: list[LeaderEpoch] = field(default_factory=list)
    open_transactions: list[tuple[int, int]] = field(default_factory=list)

    def add(self, loss: Loss) -> None:
        """Count a loss, and list it if the list is not full."""
        self.bytes_lost += loss.size
        if len(self.lost) < MOST_LISTED:
            self.lost.append(loss)
        else:
            self.more += 1

    def count(self, batch: Any, epoch: int | None, path: str) -> None:
        """Count a batch that was kept. epoch: the leader epoch that it was given, None: its own."""
        self.batches += 1
        self.size += batch.size
        self.first_offset = base_offset_of(batch) if self.first_offset < 0 else self.first_offset
        self.next_offset = batch.last_offset + 1
        if epoch is not None and len(self.repaired) < MOST_LISTED:
            self.repaired.append((path, batch.position))
        epoch = batch.partition_leader_epoch if epoch is None else epoch
        if epoch > (self.epochs[-1].epoch if self.epochs else -1) and len(self.epochs) < MOST_LISTED:
            self.epochs.append(LeaderEpoch(epoch, batch.base_offset))

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "topic": self.topic, "partition": self.partition, "segments": self.segments, "batches": self.batches,
            "bytes": self.size, "first_offset": None if self.first_offset < 0 else self.first_offset,
            "next_offset": None if self.next_offset < 0 else self.next_offset, "bytes_lost": self.bytes_lost,
            "offsets_lost": self.offsets_lost, "zeros": self.zeros, "regions_lost": len(self.lost) + self.more,
            "lost": [loss.to_json() for loss in self.lost],
            "repaired": [{"path": path, "position": position} for path, position in self.repaired],
            "open_transactions": [
                {"producer_id": producer, "first_offset": first} for first, producer in self.open_transactions],
        }  # fmt: skip


@dataclass
class Salvage:
    """The outcome of salvage_log(): each partition, lost files beside segments, and what was not copied (paths).

    target: where it was written, None if it was not.
    """

    target: str | None
    partitions: list[PartitionSalvage] = field(default_factory=list)
    files_lost: list[Loss] = field(default_factory=list)
    not_copied: list[str] = field(default_factory=list)

    @property
    def lost(self) -> list[Loss]:
        """All losses that are listed, in order of partitions."""
        return [*(loss for partition in self.partitions for loss in partition.lost), *self.files_lost]

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        kept = self.partitions
        return {
            "target": self.target, "batches": sum(one.batches for one in kept), "bytes": sum(one.size for one in kept),
            "regions_lost": sum(len(one.lost) + one.more for one in kept),
            "bytes_lost": sum(one.bytes_lost for one in kept), "offsets_lost": sum(one.offsets_lost for one in kept),
            "files_lost": [loss.to_json() for loss in self.files_lost], "not_copied": self.not_copied,
            "partitions": [one.to_json() for one in kept],
        }  # fmt: skip


def salvage_log(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    topics: Collection[str] | None = None,
    partitions: Collection[int] | None = None,
    selection: Selection | None = None,
    index_interval_bytes: int = INDEX_INTERVAL_BYTES,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Salvage:
    """Write what is valid in source as clean segments to target, and say what was lost.

    source: a segment, a partition folder, or a log directory (every topic-N folder in it; topics, partitions: only
    these; selection: instead of them, as people type it); local files, which are only read. Batches count that
    kwire.storage.batches.scanner finds by magic, length and checksum, with offsets in order and inside of their
    segment; their bytes stay as they are, but for a leader epoch that is out of order (it is not protected by the
    checksum), which becomes that of the batch before. Indexes and producer snapshots are made from the batches
    (SegmentWriter), as a broker does after an unclean shutdown.

    target: a new (or empty) folder of the same shape; for a segment also a name that ends in .log, beside which its
    indexes go; force replaces such a file. It appears when all is written and synced, until then nothing or the old
    one is there. None: nothing is written, only the outcome is given. Raises FileNotFoundError, FileExistsError,
    OSError, LimitError.
    """
    check_type(target, (str, os.PathLike, NoneType), "target", "a str or os.PathLike")
    check_progress(progress)
    source, target = plain(source), None if target is None else os.fspath(target)
    if target is not None:
        check_local(target)
    if is_url(source):
        raise located(WrongFileError("salvage reads local files: copy it first"), source)
    if not os.path.exists(source):
        os.stat(source)  # raises what is wrong
        raise FileNotFoundError(2, "No such file or directory", source)
    if target is not None and _is_inside(target, source):
        raise FileExistsError(17, "is in the folder that is read: choose another place", target)
    chosen = choice_of(topics, partitions, selection)
    topic, number = place_of(source if os.path.isfile(source) else os.path.join(source, "x"))
    if topic is not None and number is not None and not chosen.chosen({(topic, number)}):
        raise FileNotFoundError(2, "is not of the selected topics and partitions", source)
    run = _Salvage(Salvage(target), index_interval_bytes, progress or (lambda _: None))
    if not os.path.isdir(source):
        run.segment(LogSegment(source), target, force)
        return run.result
    with nullcontext() if target is None else new_folder(target) as folder:
        if _segments(source):
            run.partition(source, folder)
        else:
            run.directory(source, folder, chosen)
    return run.result


class _Salvage:
    """One run. result: its outcome so far. A folder that is None: nothing is written."""

    def __init__(self, result: Salvage, interval: int, progress: Callable[[int], None]) -> None:
        self.result, self._interval, self._progress = result, interval, progress

    def segment(self, segment: LogSegment, target: str | None, force: bool) -> None:
        """One segment, to a folder or to a name that ends in .log."""
        if segment.size > _MOST_BYTES:
            raise located(LimitError("larger than a segment", limit=_MOST_BYTES, needed=segment.size), segment.path)
        if target is None or not target.endswith(".log"):
            with nullcontext() if target is None else new_folder(target) as folder:
                self._rescued([segment], folder, segment.named_offset, alone=True)
            return
        link, target = target, os.path.realpath(target)  # a link is followed
        if not target.endswith(".log"):
            raise FileExistsError(17, "is a link to a file that does not end in .log", link)
        if is_same(segment.path, target) or (
            os.path.realpath(beside(target, "")) == os.path.realpath(beside(segment.path, ""))
        ):
            raise FileExistsError(17, "is the segment that is read: choose another place", target)
        _check_free(target, force)
        offset = offset_in_name(target)
        with scratch_folder(target, private=True) as folder:
            self._rescued([segment], folder, None if offset < 0 else offset, alone=True)
            _check_free(target, force)
            _put(folder, target)

    def partition(self, source: str, folder: str | None) -> None:
        """The folder of one partition, into an empty folder."""
        files = _segments(source)
        segments = Partition(files).segments
        report = self._rescued(segments, folder, segments[0].named_offset) if segments else None
        self._beside(source, folder, report, files)

    def directory(self, source: str, folder: str | None, chosen: ExactSelection | Selection) -> None:
        """A log directory, into an empty folder."""
        places: dict[str, tuple[str, int]] = {}
        for name in _listed(source):
            path = os.path.join(source, name)
            if os.path.isdir(path):
                topic, number = place_of(os.path.join(path, "segment"))
                if topic is None or number is None:
                    self.result.not_copied.append(path)
                else:
                    places[name] = topic, number
        wanted = chosen.chosen(set(places.values()))
        for name, place in places.items():
            if place in wanted:
                path = os.path.join(source, name)
                copy = None if folder is None else os.path.join(folder, name)
                if copy is not None:
                    os.mkdir(copy)
                self.partition(path, copy)
        if not wanted:
            which = " of the selected topics and partitions" if places else ""
            raise FileNotFoundError(2, f"no log segments found{which}", source)
        self._top_level(source, folder)

    def _rescued(
        self, segments: Sequence[LogSegment], folder: str | None, base_offset: int | None, alone: bool = False
    ) -> PartitionSalvage:
        """Write the valid batches of a partition into a folder. alone: they are not all of its segments."""
        first = segments[0]
        report = PartitionSalvage(first.topic, first.partition)
        self.result.partitions.append(report)
        known, high, end = _known(segments, alone)
        writer: SegmentWriter | _Nowhere
        if folder is None:
            writer = _Nowhere(known or ())
        else:
            inner = os.path.join(folder, "segments-0")  # a SegmentWriter writes into a folder of such a name
            writer = SegmentWriter(
                inner, "segments", 0, base_offset=base_offset, segment_bytes=_MOST_BYTES,
                index_interval_bytes=self._interval, producers=known)
        events = _Kept(segments, report, high, end, self._progress).events()
        with writer:
            for event, epoch in _with_epochs(events, _last_epoch(first.path)):
                if isinstance(event, LogSegment):
                    path = event.path
                    if event is not first:
                        writer.roll(event.base_offset)
                    continue
                if base_offset is not None and base_offset_of(event) < base_offset:
                    reason = f"offset {base_offset_of(event)} is below the base offset {base_offset} in the name of OUT"
                    raise located(CorruptBatchError(reason, position=event.position), path)
                writer.append(event.raw if epoch is None else _in_epoch(event.raw, epoch))
                report.count(event, epoch, path)
            report.open_transactions = writer.open_transactions
        if folder is None:
            return report
        names = os.listdir(inner)
        for name in names:
            os.rename(os.path.join(inner, name), os.path.join(folder, name))
        os.rmdir(inner)
        report.segments = sum(name.endswith(".log") for name in names)
        return report

    def _beside(
        self, source: str, folder: str | None, report: PartitionSalvage | None, files: Collection[SegmentFile]
    ) -> None:
        """Copy what is beside the segments of a partition, if it is whole. files: the segments that were read."""
        names, read = _listed(source), {os.path.basename(file.path) for file in files}
        swaps = unfinished_swaps(names)
        for name in names:
            path, copy = os.path.join(source, name), None if folder is None else os.path.join(folder, name)
            if not os.path.isfile(path):
                self.result.not_copied.append(path)
            elif name == "leader-epoch-checkpoint":
                if not self._copied(path, copy, _broker_epochs, lost=False) and report is not None:
                    _write(copy, leader_epoch_checkpoint(report.epochs))
            elif name == "partition.metadata":
                self._copied(path, copy, read_partition_metadata)
            elif name == "quorum-state":
                self._copied(path, copy, _check_quorum_state)
            elif name.endswith(".checkpoint"):
                self._copied(path, copy, check_raft_snapshot)
            elif name in swaps:
                reason = (f"a compaction was interrupted: a broker renames this file to {name.removesuffix('.swap')} "
                          "at its start, in place of the segments with its offsets; do so in a copy, and salvage that")
                self.result.files_lost.append(Loss(path, 0, os.path.getsize(path), -1, -1, reason))
            elif name not in read and not _is_made_again(name):
                self.result.not_copied.append(path)

    def _top_level(self, source: str, folder: str | None) -> None:
        """Copy the files of a log directory, with checkpoints that fit what was kept."""
        kept = {(one.topic, one.partition): one for one in self.result.partitions}
        for name in _listed(source):
            path, copy = os.path.join(source, name), None if folder is None else os.path.join(folder, name)
            if os.path.isdir(path):
                continue
            if not os.path.isfile(path):
                self.result.not_copied.append(path)
            elif name == "replication-offset-checkpoint":  # of high watermarks
                entries = self._read(path, read_offset_checkpoint) or []
                _write(copy, offset_checkpoint([
                    entry._replace(offset=min(entry.offset, kept[entry[:2]].next_offset))
                    for entry in entries if entry[:2] in kept and kept[entry[:2]].next_offset >= 0]))
            elif name == "log-start-offset-checkpoint":  # a broker deletes a log that ends before its start
                entries = self._read(path, read_offset_checkpoint) or []
                _write(copy, offset_checkpoint([
                    entry for entry in entries if entry[:2] in kept and entry.offset <= kept[entry[:2]].next_offset]))
            elif name == "cleaner-offset-checkpoint":
                self._copied(path, copy, read_offset_checkpoint)
            elif name.endswith(".checkpoint"):
                self._copied(path, copy, check_raft_snapshot)
            elif name == META_PROPERTIES:
                self._copied(path, copy, _check_meta_properties)
            elif name not in _UNTRUE:
                self.result.not_copied.append(path)

    def _copied(self, path: str, copy: str | None, check: Callable[[str], Any], *, lost: bool = True) -> bool:
        """Copy a file if check(path) raises no KwireError; else it is lost, or False is returned."""
        if self._read(path, check, lost=lost) is None:
            return False
        if copy is not None:
            shutil.copyfile(path, copy)
        return True

    def _read(self, path: str, read: Callable[[str], Any], *, lost: bool = True) -> Any:
        """What read(path) gives; True if that is None; None for a damaged file, which is listed as lost."""
        try:
            found = read(path)
            return True if found is None else found
        except KwireError as error:
            if lost:
                reason = str(getattr(error, "reason", error))
                self.result.files_lost.append(Loss(path, 0, os.path.getsize(path), -1, -1, reason))
            return None


class _Nowhere:
    """A SegmentWriter that writes nothing. known: the producers before the first batch."""

    def __init__(self, known: Sequence[ProducerState]) -> None:
        self._producers = ProducerStates(known)

    def __enter__(self) -> _Nowhere:
        return self

    def __exit__(self, *_: object) -> None: ...

    def append(self, data: Any) -> None:
        """Follow the producers only."""
        for batch in read_batches(data, verify_crc=False):
            self._producers.add(batch)

    def roll(self, base_offset: int) -> None:
        """Nothing."""

    @property
    def open_transactions(self) -> list[tuple[int, int]]:
        """As of a SegmentWriter."""
        return self._producers.open_transactions()


def _in_epoch(data: bytes, epoch: int) -> bytearray:
    """The bytes of a batch with another leader epoch, which is not in its checksum."""
    changed = bytearray(data)
    pack_into(">i", changed, LOG_OVERHEAD, epoch)
    return changed


class _Bad(NamedTuple):
    """A bad region that is not reported yet. first, last: offsets that its header claims, -1 where it does not."""

    path: str
    position: int
    size: int
    first: int
    last: int
    reason: str


class _Kept:
    """The batches of a partition that are kept; what is lost goes into the report.

    high: the offset before which the last segment must end; end: that of a producer snapshot after all segments, -1 if
    there is none.
    """

    def __init__(
        self, segments: Sequence[LogSegment], report: PartitionSalvage, high: int, end: int,
        progress: Callable[[int], None],
    ) -> None:
        self._segments, self._report, self._high, self._end, self._progress = segments, report, high, end, progress
        self._low = segments[0].named_offset or 0  # the first offset that may come next
        self._bad: list[_Bad] = []

    def events(self) -> Iterator[Any]:
        """Each segment, and after it its RecordBatches."""
        for number, segment in enumerate(self._segments):
            yield segment
            last = number + 1 == len(self._segments)
            high = self._high if last else self._segments[number + 1].base_offset
            self._low = max(self._low, segment.named_offset or 0)
            bounds = OffsetBounds(self._low, min(high, _limit(segment)), self._end if last else high)
            yield from self._batches(segment, bounds)
            if not last:
                self._settle_at(high, segment, segment.size)
        if self._end > self._low and not self._bad:
            reason = f"the log ends here, but a producer snapshot says that it went on to offset {self._end - 1}"
            self._bad.append(_Bad(segment.path, segment.size, 0, -1, -1, reason))
        self._settle(self._end if self._end > self._low else -1)

    def _batches(self, segment: LogSegment, bounds: OffsetBounds) -> Iterator[Any]:
        """The valid batches of a segment, but for those with a wrong base offset."""
        file = segment.file.held()
        wrong, pieces = judge(file, bounds)
        scanner = Scanner(file, verify=True, read_bytes=OBJECT_BYTES)
        for window in scanner:
            data = window.data
            if window.bad is not None and OUT_OF_ORDER in window.bad:  # by its neighbours alone
                data = file.view(window.position, window.end)
            elif window.bad is not None:
                # in a damaged wrapper that is the last one there may be whole messages, but not with their own offsets
                rest = file.size() if _is_last_wrapper(data, file.size() - window.position) else window.end
                if rest > window.end or window.position not in pieces:
                    self._add(segment, window.position, rest - window.position, window.bad, data)
                    self._progress(rest - window.position)
                    if rest > window.end:
                        return
                    continue
                yield from self._region(segment, window, pieces[window.position], wrong)
                data = memoryview(b"")
            yield from self._in_order(segment, window.position, data, wrong)
            self._progress(window.end - window.position)
        if scanner.tail is not None:
            position, left = scanner.tail
            head = file.view(position, min(position + left, position + RECORD_BATCH_OVERHEAD))
            if any(head):
                self._add(segment, position, left, "partial last batch", head)
            else:
                self._report.zeros += left

    def _in_order(self, segment: LogSegment, position: int, data: memoryview, wrong: set[int]) -> Iterator[Any]:
        """The batches in data, whose first byte is at position, that are not in wrong."""
        for batch in read_batches(data, position=position, verify_crc=False):
            base, reason = _base_offset(batch)
            if batch.position in wrong or base < self._low:
                reason = reason or f"base offset {base} is out of order"
                self._add(segment, batch.position, batch.size, reason, data[batch.position - position :])
            else:
                self._settle_at(base, segment, batch.position)
                self._low = batch.last_offset + 1
                yield batch

    def _region(
        self, segment: LogSegment, window: Window, pieces: list[tuple[int, int]], wrong: set[int]
    ) -> Iterator[Any]:
        """The batches in the pieces of a bad region."""
        file, at, reason = segment.file.held(), window.position, window.bad or ""
        for start, end in [*pieces, (window.end, window.end)]:
            if at < start:
                if at > window.position:
                    reason = examine(file, at, file.size()).reason or "checksum does not match"
                self._add(segment, at, start - at, reason, file.view(at, min(start, at + RECORD_BATCH_OVERHEAD)))
            yield from self._in_order(segment, start, file.view(start, end), wrong)
            at = end

    def _add(self, segment: LogSegment, position: int, size: int, reason: str, data: memoryview) -> None:
        first = last = -1
        if len(data) > MAGIC_OFFSET and data[MAGIC_OFFSET] == 2:
            first = max(-1, base_offset_at(data, 0))
        if first >= 0 and len(data) >= RECORD_BATCH_OVERHEAD:
            header = parse_header(data, 0, position)
            last = header.last_offset if header.count == header.last_offset - first + 1 else -1
        if len(self._bad) < MOST_LISTED:
            self._bad.append(_Bad(segment.path, position, size, first, last, reason))
        else:  # one after the other, without a batch between them
            self._bad[-1] = self._bad[-1]._replace(size=self._bad[-1].size + size, last=-1)

    def _settle_at(self, offset: int, segment: LogSegment, position: int) -> None:
        """Report the bad regions before an offset at which the log goes on; without one, missing offsets of KRaft's."""
        if offset > self._low and not self._bad and is_without_gaps(segment.topic):
            reason = "the log goes on after these, and a metadata log is never compacted"
            self._bad.append(_Bad(segment.path, position, 0, -1, -1, reason))
        self._settle(offset)

    def _settle(self, before: int) -> None:
        """Report the bad regions since the last batch that was kept; before: the first offset after them, or -1."""
        bad, self._bad = self._bad, []
        if not bad:
            return
        starts = [self._low]
        for one in bad[1:]:
            fits = starts[-1] < one.first and (before < 0 or one.first < before)
            starts.append(one.first if fits else starts[-1])
        end: int | None = before  # the first offset after the region, None: unknown
        if before < 0:
            end = bad[-1].last + 1 if bad[-1].first == starts[-1] <= bad[-1].last else None
        else:
            self._report.offsets_lost += max(0, before - self._low)
        losses = []
        for at in reversed(range(len(bad))):
            if at + 1 < len(bad) and starts[at + 1] > starts[at]:
                end = starts[at + 1]
            first, last = starts[at], -1 if end is None else end - 1
            if end is not None and end <= first:
                first = last = -1
            losses.append(Loss(bad[at].path, bad[at].position, bad[at].size, first, last, bad[at].reason))
        for loss in reversed(losses):
            self._report.add(loss)


def _base_offset(batch: Any) -> tuple[int, str]:
    """(the base offset of a batch, ""), or for a compressed message whose own offset is wrong (-1, why)."""
    try:
        return base_offset_of(batch), ""
    except CorruptBatchError as error:
        return -1, str(error.reason)


def _is_last_wrapper(data: memoryview, left: int) -> bool:
    """Does the header of a compressed message of magic 0 or 1 say that it has all the bytes left in the file?"""
    if len(data) < SMALLEST_BATCHES[1] or data[MAGIC_OFFSET] > 1:
        return False
    header = parse_header(data, 0, 0)
    return header.size == left and header.attributes & CODEC_MASK != 0


def _limit(segment: LogSegment) -> int:
    """The offset before which a segment must end: its index entries have an int32."""
    return (1 << 63) - 1 if segment.named_offset is None else segment.named_offset + (1 << 31)


def _with_epochs(events: Iterator[Any], newest: int | None) -> Iterator[tuple[Any, int | None]]:
    """Each event, and for a batch whose leader epoch is out of order the one that it must have.

    An epoch is out of order if it is below that of the batch before, or above that of the one after, which is not.
    newest: the leader epoch in which the log ends, None if it is not known.
    """
    epoch = -1  # of the batches before
    held = 0  # bytes of the batches that wait
    waiting: deque[Any] = deque()  # a batch whose epoch is not decided, and the events after it

    def decided(following: int | None) -> Iterator[tuple[Any, int | None]]:
        nonlocal epoch
        batch = waiting.popleft()
        own = batch.partition_leader_epoch
        right = epoch <= own and (following is None or own <= following or following < epoch)
        if right:
            epoch = own
        elif epoch < 0:  # the first batch
            epoch = -1 if following is None else following
        yield batch, None if right else epoch
        while waiting:
            yield waiting.popleft(), None

    for event in events:
        judged = not isinstance(event, LogSegment) and event.magic == 2 and event.partition_leader_epoch != -1
        if waiting and (judged or len(waiting) > _MOST_HELD or held > _MOST_HELD_BYTES):
            yield from decided(event.partition_leader_epoch if judged else None)
            held = 0
        if judged or waiting:
            waiting.append(event)
            held += 0 if isinstance(event, LogSegment) else event.size
        else:
            yield event, None
    if waiting:
        yield from decided(newest)


def _known(segments: Sequence[LogSegment], alone: bool) -> tuple[list[ProducerState] | None, int, int]:
    """What the files beside segments say: (producers before the first one, offset before which the last one must end,
    offset of the newest producer snapshot after all of them or -1).

    alone: there may be segments after these.
    """
    first, last = segments[0], segments[-1]
    if first.named_offset is None or last.named_offset is None:
        return None, (1 << 63) - 1, -1
    producers, high, end = None, (1 << 63) - 1, -1
    with suppress(KwireError, OSError):  # missing, as for the first segment of a log, or damaged: as if it were missing
        producers = read_producer_snapshot(_whole(beside(first.path, ".snapshot")))
    for name in _listed(os.path.dirname(first.path) or "."):
        stem, _, kind = name.removesuffix(".gz").partition(".")
        offset = int(stem) if stem.isascii() and stem.isdigit() and len(stem) == 20 else -1
        if kind == "log" and alone and offset > last.named_offset:
            high = min(high, offset)
        elif kind == "snapshot" and last.named_offset < offset < 1 << 63:
            end = max(end, offset)
    return producers, high, end if high == (1 << 63) - 1 else -1


def _broker_epochs(path: str) -> list[LeaderEpoch]:
    """The entries of a leader-epoch-checkpoint. Raises DecodeError for one that a broker refuses, LimitError.

    Source: LeaderEpochFileCache.assign.
    """
    epochs = read_leader_epochs(path)
    for entry in epochs:
        if min(entry) < 0:
            raise DecodeError(f"malformed leader epoch checkpoint: {tuple(entry)} is below 0")
    return epochs


def _last_epoch(segment: str) -> int | None:
    """The last leader epoch in the checkpoint beside a segment, None if there is none."""
    try:
        epochs = _broker_epochs(_whole(os.path.join(os.path.dirname(segment), "leader-epoch-checkpoint")))
    except (KwireError, OSError):
        return None
    return epochs[-1].epoch if epochs else None


def _whole(path: str) -> str:
    """The path, if a file is there. Raises FileNotFoundError; a pipe, which may never end, is none."""
    if not os.path.isfile(path):
        raise FileNotFoundError(2, "No such file or directory", path)
    return path


def _check_quorum_state(path: str) -> None:
    """Raise DecodeError unless a broker can read the file (FileQuorumStateStore); LimitError for more than 1 MiB."""
    data, state = small_file(path, None, most=MOST_TEXT), None
    with suppress(ValueError, RecursionError):
        state = json.loads(data)
    if not isinstance(state, dict):
        raise DecodeError("not a JSON object")
    version, known = state.pop("data_version", None), message("QuorumStateData").valid_versions
    if type(version) is not int or version not in known:
        raise DecodeError(f"data_version is {brief(version)}, expected {known}")
    from_json("QuorumStateData", version, state)


def _check_meta_properties(path: str) -> None:
    """Raise KwireError unless a broker finds its id, or its cluster's, in the file."""
    found = MetaProperties.read(os.path.dirname(path))
    if found.node_id is None and found.cluster_id is None:
        raise DecodeError("no broker.id and no cluster.id")


def _segments(folder: str) -> list[SegmentFile]:
    """The segments in a folder by base offset, not those in partition folders in it.

    One for each base offset: that with a name as Kafka writes it, of 20 digits; a .log counts, not its .log.gz.
    """
    found: dict[int, SegmentFile] = {}
    for file in discover(folder):
        if file.base_offset >= 0 and os.path.samefile(os.path.dirname(file.path) or ".", folder):
            is_kafkas = os.path.basename(file.path).removesuffix(".gz") == f"{file.base_offset:020}.log"
            if is_kafkas or file.base_offset not in found:
                found[file.base_offset] = file
    return list(found.values())


def _is_made_again(name: str) -> bool:
    """Is it an index or a producer snapshot, which are made from the batches?"""
    stem, kind = os.path.splitext(name.removesuffix(".gz"))
    return kind in _FRESH and parsed_offset(stem) >= 0


def _listed(folder: str) -> list[str]:
    return sorted(os.listdir(folder))


def _is_inside(path: str, folder: str) -> bool:
    """Is a path that may not exist yet in that folder (or the folder itself)?"""
    inner, outer = os.path.realpath(path), os.path.realpath(folder)
    return os.path.isdir(outer) and os.path.commonpath([inner, outer]) == outer


def _check_free(target: str, force: bool) -> None:
    """Raise OSError unless a segment and its indexes may be written there; force: files are replaced, nothing else."""
    for path in (beside(target, kind) for kind in _SEGMENT_FILES):
        if not os.path.lexists(path):
            continue
        if os.path.isdir(path):
            raise IsADirectoryError(21, "Is a directory", path)
        if not force:
            raise FileExistsError(17, "File exists (--force replaces it)", path)
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise FileExistsError(17, "is a link, a pipe or a device, not replaced", path)


def _put(folder: str, target: str) -> None:
    """Move the one segment in a folder to target, with its indexes beside it.

    Indexes that are there are removed first: whenever this is stopped, no index is of another segment.
    """
    names, of_log = _listed(folder), access_of(target)
    moves = {name[name.index(".") :]: name for name in names if not name.endswith(".snapshot")}
    for kind, name in moves.items():  # what replaces a private file is private
        access = access_of(beside(target, kind)) or of_log
        if access is not None:
            give_access(os.path.join(folder, name), access)
    for kind in _SEGMENT_FILES[1:]:
        with suppress(FileNotFoundError):
            os.unlink(beside(target, kind))
    for kind in _SEGMENT_FILES:
        if kind in moves:
            os.replace(os.path.join(folder, moves[kind]), beside(target, kind))
    sync_folder(os.path.dirname(os.path.abspath(target)))


def _write(path: str | None, data: bytes) -> None:
    if path is not None:
        with open(path, "xb") as file:
            file.write(data)
