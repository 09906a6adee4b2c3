"""Checks segments, partitions and their indexes, and lists what is wrong with them, in order of the bytes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.errors import CorruptBatchError, KwireError
from kwire.storage.batches.scanner import OUT_OF_ORDER
from kwire.storage.isolation.transactions import MOST_PRODUCERS
from kwire.storage.places.discovery import Listing, SideFiles, beside, is_without_gaps, parsed_offset, unfinished_swaps
from kwire.storage.places.filesystem import shown
from kwire.storage.reading.segment_reader import bytes_of
from kwire.storage.side_files.raft_snapshots import check_raft_snapshot
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage.reading.segment import LogSegment
    from kwire.storage.side_files.indexes import AbortedTransaction, OffsetIndex, TimeIndex, TransactionIndex

MOST_FINDINGS = 10_000  # of one segment, listed one by one
_RENAMING = 0.2  # seconds in which a broker that runs renames the segments that a compaction has written
_TURNS = 5  # of a segment whose files change meanwhile
_OF_KRAFT = ", and a metadata log is never compacted"


class Finding(NamedTuple):
    """One thing that is wrong.

    path: the file, without the secrets of a URL; position: byte in it (-1: none); offset: Kafka offset (-1: none);
    kind: "batch" (checksum, damage), "offsets", "timestamps", "tail", "index", "timeindex",
    "txnindex", "epochs", "segments" or "snapshot" (one of a metadata log that is not whole).
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
        return printable(f"{self.path}{place}: {self.kind}: {self.message}")


class Findings(list[Finding]):
    """A list of at most MOST_FINDINGS findings; .more counts those after them."""

    more = 0

    def add(self, finding: Finding) -> None:
        """Add a finding, or count it if the list is full."""
        finding = finding._replace(path=shown(finding.path))
        if len(self) < MOST_FINDINGS:
            self.append(finding)
        else:
            self.more += 1


def verify_segment(segment: LogSegment, progress: Callable[[int], None] | None = None) -> list[Finding]:
    """The findings in one segment and the indexes beside it; every record is read.

    At most MOST_FINDINGS, and one more with the number of those left out. progress: called with each batch's bytes.
    Where there are findings and a file has changed meanwhile, as when a broker puts a compacted segment in its place,
    its log and its indexes may not have been of one time: it is verified again, a few times at most.
    """
    findings: list[Finding] = []
    for turn in range(_TURNS):
        before = _state(segment)
        try:
            findings = _findings(segment, None if turn else progress)
        except CorruptBatchError as error:  # truncated while it was read
            findings = [Finding(shown(segment.path), error.position, -1, "batch", _reason(error))]
        if not findings or _state(segment) == before:
            break
        segment = _again(segment)
    return findings


def _state(segment: LogSegment) -> list[tuple[int, ...] | None]:
    """What tells that local files are others, or have other bytes."""
    def of(path: str) -> tuple[int, ...] | None:
        with suppress(OSError):
            found = os.stat(path)
            return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
        return None

    return [of(path) for path in segment.files]


def _again(segment: LogSegment) -> LogSegment:
    """The segment as it is now, with the indexes that are there now."""
    return type(segment)(
        segment.path, topic=segment.topic, partition=segment.partition, size=segment.size, beside=SideFiles(0, 0, 0))


def _findings(segment: LogSegment, progress: Callable[[int], None] | None) -> list[Finding]:
    """The findings in one segment, read once."""
    findings = Findings()
    checks: list[Any] = [_Batches(segment, findings)]
    if segment.index is not None:
        checks.append(_Index(segment, segment.index, findings))
    if segment.time_index is not None:
        checks.append(_TimeIndex(segment, segment.time_index, findings))
    if segment.transaction_index is not None:
        checks.append(_TransactionIndex(segment, segment.transaction_index, findings))
    iterator = segment.batches(errors="keep")
    for batch in iterator:
        if progress is not None:
            progress(bytes_of(batch))
        error = getattr(batch, "error", None)
        if error is not None:
            kind = "offsets" if OUT_OF_ORDER in _reason(error) else "batch"
            findings.add(Finding(segment.path, batch.position, getattr(error, "offset", -1), kind, _reason(error)))
            continue
        for check in checks:
            check.batch(batch)
    if iterator.tail is not None:
        position, left = iterator.tail
        zeros = not any(segment.file.read(position, position + 64))
        content = "zeros, as in a preallocated segment" if zeros else "of an incomplete batch"
        findings.add(Finding(segment.path, position, -1, "tail", f"{left} bytes {content}"))
    for check in checks:
        check.end()
    if findings.more:
        findings.append(Finding(shown(segment.path), -1, -1, "batch", f"{findings.more} more findings, not listed"))
    return findings


def verify_partition(
    segments: Sequence[LogSegment],
    progress: Callable[[int], None] | None = None,
    gone: Callable[[LogSegment], None] | None = None,
) -> list[Finding]:
    """The findings in all segments of a partition, and between them. progress: as of verify_segment.

    gone: called with each segment that was deleted meanwhile, which is passed over. Without it FileNotFoundError is
    raised.
    """
    findings: list[Finding] = []
    previous: tuple[LogSegment, int] | None = None
    for segment in segments:
        try:
            findings += verify_segment(segment, progress)
        except FileNotFoundError:
            if gone is None:
                raise
            gone(segment)
            previous = None
            continue
        named, last = segment.named_offset, -1
        if named is not None and previous is not None and named > previous[1] + 1 and is_without_gaps(segment.topic):
            message = f"begins at offset {named}, {shown(previous[0].path)} ends at {previous[1]}{_OF_KRAFT}"
            findings.append(Finding(shown(segment.path), -1, named, "segments", message))
        try:
            for header in segment.headers():
                if last < 0 and previous is not None and header.magic == 2 and header.base_offset <= previous[1]:
                    message = f"begins at offset {header.base_offset}, {shown(previous[0].path)} ends at {previous[1]}"
                    findings.append(Finding(shown(segment.path), 0, header.base_offset, "segments", message))
                last = max(last, header.last_offset)
        except (KwireError, FileNotFoundError):
            pass  # verify_segment has listed it, or it was deleted since
        if last >= 0:
            previous = (segment, last)
    if segments:
        findings += _swaps(segments[0])
        if is_without_gaps(segments[0].topic):
            findings += _snapshots(segments[0])
    return findings


def _names_beside(segment: LogSegment) -> tuple[str, list[str]]:
    """A segment's folder, with the slash after it, and the names of the files in it; none if it may not be listed."""
    folder = segment.path[: segment.path.rfind("/") + 1]
    try:
        entries = Listing(segment.options).entries(folder.rstrip("/") or folder or ".")
    except PermissionError:
        return folder, []
    return folder, [entry.path.rpartition("/")[2] for entry in entries if not entry.is_folder]


def _snapshots(segment: LogSegment) -> Iterator[Finding]:
    """The KRaft snapshots in a segment's folder that are not whole."""
    folder, names = _names_beside(segment)
    for name in names:
        if name.endswith(".checkpoint"):
            path = f"{folder}{name}"
            try:
                check_raft_snapshot(path, segment.options)
            except FileNotFoundError:  # deleted meanwhile
                continue
            except KwireError as error:
                yield Finding(shown(path), getattr(error, "position", -1) or -1, -1, "snapshot", _reason(error))


def _swaps(segment: LogSegment) -> Iterator[Finding]:
    """The segments of an interrupted compaction in a segment's folder, which are not read.

    A broker that runs renames them at once: what counts is there a moment later, too.
    """
    folder, names = _names_beside(segment)
    if unfinished_swaps(names):
        time.sleep(_RENAMING)
        left = _names_beside(segment)[1]
        names = [name for name in left if name in names or not name.endswith(".swap")]
    for name in unfinished_swaps(names):
        message = "a compaction was interrupted: a broker makes it a segment at its start; it is not read here"
        yield Finding(shown(f"{folder}{name}"), -1, parsed_offset(name.partition(".")[0]), "segments", message)


def _reason(error: Any) -> str:
    return str(getattr(error, "reason", error))


class _Batches:
    """Offsets, timestamps and leader epochs of the batches themselves."""

    def __init__(self, segment: LogSegment, findings: Findings) -> None:
        self.segment, self.findings = segment, findings
        self.last = -1
        self.epoch = -1

    def report(self, batch: Any, kind: str, message: str) -> None:
        self.findings.add(Finding(self.segment.path, batch.position, batch.base_offset, kind, message))

    def batch(self, batch: Any) -> None:
        base, last = batch.base_offset, batch.last_offset
        if base <= self.last:
            self.report(batch, "offsets", f"out of order: base offset {base} after offset {self.last}")
        if last < base:
            self.report(batch, "offsets", f"last offset {last} is below base offset {base}")
        named = self.segment.named_offset
        due = self.last + 1 if self.last >= 0 or named is None else named
        if base > due and is_without_gaps(self.segment.topic):
            self.report(batch, "offsets", f"offsets {due} to {base - 1} are missing{_OF_KRAFT}")
        if named is not None and base < named and self.last < 0:
            self.report(batch, "offsets", f"base offset {base} is below the segment's base offset {named}")
        self.last = max(self.last, last)
        if batch.partition_leader_epoch >= 0:
            if batch.partition_leader_epoch < self.epoch:
                self.report(batch, "epochs", f"leader epoch {batch.partition_leader_epoch} after {self.epoch}")
            self.epoch = max(self.epoch, batch.partition_leader_epoch)
        _, largest, misplaced = batch.extent()
        if misplaced >= 0:
            offset = next(islice(batch, misplaced, None)).offset
            self.report(batch, "offsets", f"record {misplaced} has offset {offset}, out of order in [{base}, {last}]")
        elif len(batch) and batch.magic and batch.timestamp_type == "create" and largest != batch.max_timestamp:
            message = f"max timestamp of the records is {largest}, of the batch header {batch.max_timestamp}"
            self.report(batch, "timestamps", message)

    def end(self) -> None: ...


class _Index:
    """The .index: every entry points to a batch, and its offset is the last one of a batch from there on."""

    def __init__(self, segment: LogSegment, index: OffsetIndex, findings: Findings) -> None:
        self.path = beside(segment.path, ".index")
        self.findings = findings
        self.entries = [] if index.damage else index.entries  # ascending, unless the index is damaged
        self.next = 0
        self.active: tuple[int, int] | None = None
        if index.damage:
            findings.add(Finding(self.path, -1, -1, "index", index.damage))

    def report(self, entry: tuple[int, int], message: str) -> None:
        position, offset = entry
        self.findings.add(Finding(self.path, -1, offset, "index", f"entry ({offset}, {position}) {message}"))

    def _entry(self) -> tuple[int, int] | None:
        """The next entry as (position, offset)."""
        if self.next == len(self.entries):
            return None
        offset, position = self.entries[self.next]
        return position, offset

    def batch(self, batch: Any) -> None:
        while (entry := self._entry()) and entry[0] < batch.position:
            self.next += 1
            self.report(entry, "does not point to a batch")
        if entry and entry[0] == batch.position:
            self._close()
            self.next += 1
            self.active = entry
            if batch.base_offset > entry[1]:
                self.report(entry, f"points to a batch that begins at offset {batch.base_offset}")
                self.active = None
        if self.active and batch.last_offset >= self.active[1]:
            if batch.last_offset > self.active[1] and batch.magic == 2:
                self._close()
            self.active = None

    def _close(self) -> None:
        if self.active:
            self.report(self.active, "does not match: no batch from that position on ends at that offset")

    def end(self) -> None:
        self._close()
        while entry := self._entry():
            self.next += 1
            self.report(entry, "does not point to a batch")


class _TimeIndex:
    """The .timeindex: an entry holds the max timestamp so far, and the offset of the batch that has it."""

    def __init__(self, segment: LogSegment, index: TimeIndex, findings: Findings) -> None:
        self.path = beside(segment.path, ".timeindex")
        self.findings = findings
        self.entries = [] if index.damage else index.entries
        self.next = 0
        self.largest = -1
        if index.damage:
            findings.add(Finding(self.path, -1, -1, "timeindex", index.damage))

    def batch(self, batch: Any) -> None:
        self.largest = max(self.largest, batch.max_timestamp)
        while self.next < len(self.entries) and self.entries[self.next][1] <= batch.last_offset:
            time, offset = self.entries[self.next]
            self.next += 1
            if time != self.largest:
                message = f"entry ({time}, {offset}) does not match: the max timestamp up to there is {self.largest}"
                self.findings.add(Finding(self.path, -1, offset, "timeindex", message))

    def end(self) -> None:
        for at in range(self.next, len(self.entries)):
            time, offset = self.entries[at]
            message = f"entry ({time}, {offset}) points past the last offset"
            self.findings.add(Finding(self.path, -1, offset, "timeindex", message))


class _TransactionIndex:
    """The .txnindex: every entry has its abort marker, and every abort marker of a transaction seen has an entry."""

    def __init__(self, segment: LogSegment, index: TransactionIndex, findings: Findings) -> None:
        self.path = beside(segment.path, ".txnindex")
        self.findings = findings
        self.entries = [] if index.damage else index.entries
        self.next = 0
        self.ongoing: set[int] = set()
        if index.damage:
            findings.add(Finding(self.path, -1, -1, "txnindex", index.damage))

    def report(self, offset: int, message: str) -> None:
        self.findings.add(Finding(self.path, -1, offset, "txnindex", message))

    def batch(self, batch: Any) -> None:
        aborts = False
        if batch.is_transactional and batch.is_control:
            aborts = any((record.key or b"")[2:4] == b"\0\0" for record in batch)
            until = self._upto(batch.last_offset, exactly=True)
            listed = any(entry.producer_id == batch.producer_id for entry in until)
            if aborts and batch.producer_id in self.ongoing and not listed:
                self.report(batch.last_offset, f"the abort marker of producer {batch.producer_id} has no entry")
            self.ongoing.discard(batch.producer_id)
        elif batch.is_transactional and len(self.ongoing) < MOST_PRODUCERS:  # those after them are not checked
            self.ongoing.add(batch.producer_id)
        for entry in self._upto(batch.last_offset):
            self.next += 1
            if entry.last_offset >= batch.base_offset and not (aborts and entry.producer_id == batch.producer_id):
                message = f"no abort marker of producer {entry.producer_id} at that offset"
                self.report(entry.last_offset, message)

    def _upto(self, offset: int, exactly: bool = False) -> Iterator[AbortedTransaction]:
        """The next entries whose marker is at or before an offset; exactly: at that offset."""
        at = self.next
        while at < len(self.entries) and self.entries[at].last_offset <= offset:
            if not exactly or self.entries[at].last_offset == offset:
                yield self.entries[at]
            at += 1

    def end(self) -> None:
        for entry in self.entries[self.next :]:
            self.report(entry.last_offset, f"the entry of producer {entry.producer_id} points past the last offset")
