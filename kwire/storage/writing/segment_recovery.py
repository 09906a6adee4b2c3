"""A partition's log opened again after a restart: as LogLoader and LogSegment.recover do it, for SegmentWriter.

The batches of the last segment are read, with their checksums. What follows the last valid one is a torn tail, which
is cut off, unless valid batches follow it: then it is damage, and an error (a broker would delete them, and fetch them
again from another one). Indexes are made again as the batches say if one is missing, or if the log was not closed: then
there is no producer snapshot at its end. Of the segments before the last one only the batches of those are read that
lack an index, or that come after the newest producer snapshot.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple

from kwire.codec.records import read_batches
from kwire.errors import CorruptBatchError, DecodeError, KwireError, LimitError
from kwire.output import new_file
from kwire.storage.batches.scanner import OBJECT_BYTES, OUT_OF_ORDER, Scanner
from kwire.storage.places.discovery import offset_in_name, parsed_offset
from kwire.storage.places.filesystem import located, open_unnamed
from kwire.storage.side_files import indexes
from kwire.storage.side_files.checkpoints import (
    MOST_BYTES,
    ProducerState,
    producer_snapshot,
    read_producer_snapshot,
    small_file,
)
from kwire.storage.side_files.indexes import OffsetIndex, TimeIndex, TransactionIndex, aborted_entry
from kwire.storage.writing.index_writer import IndexWriter
from kwire.storage.writing.producer_states import ProducerStates

MOST_RELATIVE = (1 << 31) - 1  # of an offset in a segment: an int32


class Recovered(NamedTuple):
    """A partition that a writer goes on with.

    base_offset: of the last segment; next_offset: after its last batch; indexes: of that segment; producers: at the
    end; snapshot_at: the offset of the newest producer snapshot.
    """

    base_offset: int
    next_offset: int
    indexes: IndexWriter
    producers: ProducerStates
    snapshot_at: int


def recovered(folder: str, interval: int, sync: bool) -> Recovered:
    """Recover the log in a partition's folder, which has segments. interval: index.interval.bytes; sync: to disk.

    Raises CorruptBatchError (.file) for damage that is no torn tail, before any file has changed; DecodeError for a
    .log file without an offset as its name, and for an index or a snapshot that is no file, LimitError for one that is
    too large (each before any file has changed), OSError.
    """
    bases = _base_offsets(folder)
    snapshots = _Snapshots(folder)
    first_broken = next(at for at, base in enumerate(bases) if base == bases[-1] or _lacks_an_index(folder, base))
    taken_at, states = snapshots.newest(bases[first_broken])
    producers = ProducerStates(states)
    first = max(0, bisect_right(bases, taken_at) - 1)
    changes: list[Callable[[], None]] = []
    found: list[_Segment] = []
    for at in range(first, len(bases)):
        is_last = at + 1 == len(bases)
        if is_last and bases[at] > max(taken_at, bases[0]) and snapshots.at(bases[at]) is None:
            changes.append(partial(_write_snapshot, folder, bases[at], producers.in_order(), sync))
            taken_at = bases[at]
        segment = _Segment(folder, bases[at], interval)
        try:
            segment.read(producers, taken_at, is_last, len(bases) == 1)
        except KwireError as error:
            raise located(error, segment.path) from None
        found.append(segment)
    last = found[-1]
    closed = snapshots.at(last.next_offset)
    for segment in found:
        if not segment.agrees(closed is not None or segment is not last):
            changes.append(partial(segment.write_indexes, sync))
    for change in changes:
        change()
    last.cut_off(sync)
    snapshots.remove_stray(bases, last.next_offset)
    if closed is not None:
        producers, taken_at = ProducerStates(closed), last.next_offset
    return Recovered(last.base_offset, last.next_offset, last.indexes, producers, max(taken_at, bases[0]))


class _Segment:
    """One segment that is read again. next_offset: after the last valid batch; indexes: as its batches say."""

    def __init__(self, folder: str, base: int, interval: int) -> None:
        self.base_offset = self.next_offset = base
        self._stem = os.path.join(folder, f"{base:020}")
        self.path = self._stem + ".log"
        self._contents = {kind: BytesIO() for kind in (".index", ".timeindex", ".txnindex")}
        self.indexes = IndexWriter(base, interval, self._contents[".index"], self._contents[".timeindex"])

    def read(self, producers: ProducerStates, taken_at: int, is_last: bool, is_only: bool) -> None:
        """Read the batches.

        taken_at: what producers hold already, up to this offset; is_last: it may have a tail; is_only: not all of it.
        """
        scanner = Scanner(open_unnamed(self.path).held(), verify=True, read_bytes=OBJECT_BYTES)
        bad = None
        for window in scanner:
            if bad is not None and window.bad is None:
                reason = (f"{bad.bad}, and valid batches follow at byte {window.position}: kwire log salvage writes "
                          "what is valid as a clean segment")
                raise CorruptBatchError(reason, position=bad.position, offset=bad.offset)
            if window.bad is not None:
                bad = bad or window
                if not is_last or OUT_OF_ORDER in window.bad:
                    raise CorruptBatchError(window.bad, position=window.position, offset=window.offset)
                continue
            for batch in read_batches(window.data, position=window.position, verify_crc=False):
                self._add(batch, producers, taken_at)
        if bad is not None and is_only and not self.indexes.size:
            raise CorruptBatchError(f"{bad.bad}, and no valid batch: not a segment?", position=0)
        if scanner.tail is not None and not is_last:
            reason = "the segment ends inside a batch, and others follow it"
            raise CorruptBatchError(reason, position=scanner.tail[0])
        self.indexes.add_time()

    def _add(self, batch: Any, producers: ProducerStates, taken_at: int) -> None:
        base = base_offset_of(batch)
        if base < self.next_offset or not base <= batch.last_offset <= self.base_offset + MOST_RELATIVE:
            reason = f"offsets {base} to {batch.last_offset} are not after offset {self.next_offset - 1}"
            raise CorruptBatchError(reason, position=batch.position, offset=base)
        self.indexes.add(batch, batch.size)
        self.next_offset = batch.last_offset + 1
        if batch.last_offset >= taken_at:
            aborted = producers.add(batch)
            if aborted is not None:
                self._contents[".txnindex"].write(aborted_entry(aborted))

    def agrees(self, closed: bool) -> bool:
        """Are the indexes those of the batches? closed: they may have been written with another interval."""
        there = {kind: _content(self._stem + kind) for kind in self._contents}
        index, times, aborted = there.values()
        if index is None or times is None:
            return False
        if all((there[kind] or b"") == content.getvalue() for kind, content in self._contents.items()):
            return True
        offsets, stamps = OffsetIndex(index, self.base_offset), TimeIndex(times, self.base_offset)
        known, found = TransactionIndex(aborted or b""), TransactionIndex(self._contents[".txnindex"].getvalue())
        if any(one.damage or one.padding for one in (offsets, stamps)) or known.damage:
            return False
        if not set(found.entries) <= set(known.entries):  # more entries: of batches that were deleted from the log
            return False
        newest = stamps.entries[-1][0] if stamps.entries else -1
        is_within = not offsets.entries or offsets.entries[-1][1] < self.indexes.size
        return closed and is_within and newest == self.indexes.last_timestamp

    def write_indexes(self, sync: bool) -> None:
        """Write the indexes as the batches say; a .txnindex only if it has entries."""
        for kind, content in self._contents.items():
            path = self._stem + kind
            if kind == ".txnindex" and not content.getvalue():
                with suppress(FileNotFoundError):
                    os.unlink(path)
                continue
            with new_file(path, force=True, sync=sync) as file:
                file.write(content.getbuffer())

    def cut_off(self, sync: bool) -> None:
        """Cut off what follows the last valid batch."""
        if os.path.getsize(self.path) == self.indexes.size:
            return
        with open(self.path, "r+b") as file:
            file.truncate(self.indexes.size)
            if sync:
                os.fsync(file.fileno())


class _Snapshots:
    """The producer snapshots in a folder, by offset. Raises DecodeError, LimitError (.file) for one not to be read."""

    def __init__(self, folder: str) -> None:
        self._paths: dict[int, str] = {}
        for name in os.listdir(folder):
            stem, _, kind = name.partition(".")
            if kind == "snapshot" and parsed_offset(stem) >= 0:
                path = self._paths[parsed_offset(stem)] = os.path.join(folder, name)
                _check_file(path, MOST_BYTES)

    def at(self, offset: int) -> list[ProducerState] | None:
        """The producers in the snapshot at an offset; None without it, and for a damaged one. Raises LimitError."""
        if offset not in self._paths:
            return None
        try:
            return read_producer_snapshot(self._paths[offset])
        except LimitError:
            raise
        except KwireError:
            return None

    def newest(self, offset: int) -> tuple[int, list[ProducerState]]:
        """The newest one at or below an offset that is not damaged: (its offset, the producers); (0, []) if none is."""
        for at in sorted(self._paths, reverse=True):
            states = self.at(at) if at <= offset else None
            if states is not None:
                return at, states
        return 0, []

    def remove_stray(self, bases: list[int], end: int) -> None:
        """Remove damaged ones, those after the end, and those that are neither at a segment's beginning nor the end.

        Source: ProducerStateManager.removeStraySnapshots, truncateAndReload.
        """
        for offset, path in self._paths.items():
            if offset > end or (offset < end and offset not in bases) or self.at(offset) is None:
                os.unlink(path)


def _write_snapshot(folder: str, offset: int, producers: list[ProducerState], sync: bool) -> None:
    """Write the producer snapshot at an offset, in the place of a damaged one."""
    with new_file(os.path.join(folder, f"{offset:020}.snapshot"), force=True, sync=sync) as file:
        file.write(producer_snapshot(producers))


def base_offset_of(batch: Any) -> int:
    """The base offset of a RecordBatch; of a compressed message of magic 0 or 1 too large to look into the last one.

    Raises CorruptBatchError for a compressed message whose own offset is wrong.
    """
    try:
        return int(batch.base_offset)
    except LimitError:
        return int(batch.last_offset)


def _base_offsets(folder: str) -> list[int]:
    """The base offsets of the segments in a folder, ascending. Raises DecodeError (.file) for another name."""
    bases = []
    for name in os.listdir(folder):
        if name.endswith(".log"):
            base = offset_in_name(name)
            if name != f"{base:020}.log":
                reason = "expected a base offset of 20 digits as the name of a segment"
                raise located(DecodeError(reason), os.path.join(folder, name))
            bases.append(base)
    return sorted(bases)


def _lacks_an_index(folder: str, base: int) -> bool:
    """Has a segment no .index or .timeindex, or a damaged .txnindex (LogSegment.sanityCheck)?"""
    stem = os.path.join(folder, f"{base:020}")
    aborted = _content(stem + ".txnindex")
    return not (os.path.exists(stem + ".index") and os.path.exists(stem + ".timeindex")) or (
        aborted is not None and TransactionIndex(aborted).damage is not None)


def _content(path: str) -> bytes | None:
    """The bytes of an index, None if it is not there. Raises DecodeError, LimitError (.file)."""
    _check_file(path, indexes.MOST_BYTES)
    try:
        return small_file(path, None, most=indexes.MOST_BYTES)
    except FileNotFoundError:
        return None


def _check_file(path: str, most: int) -> None:
    """Raise DecodeError (.file) for a pipe, device or folder: it may never end, and is not ours to replace.

    Raises LimitError (.file) for a file of more than `most` bytes. What is not there is right.
    """
    if os.path.isfile(path):
        size = os.path.getsize(path)
        if size > most:
            raise located(LimitError("too large for a file beside a segment", limit=most, needed=size), path)
    elif os.path.exists(path):
        raise located(DecodeError("is no file, but a pipe, a device or a folder: move it away"), path)
