"""The log of a partition up to a planned end, and how the transactions end that a part of it leaves open.

The cheapest that knows decides: the .txnindex of a segment (its absence beside an .index says that the segment has no
aborted transaction), producer snapshots, and at last the markers, by the heads of batches. What is damaged or missing
is left out.
"""

from __future__ import annotations

import os
import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.errors import KwireError
from kwire.storage.batches.scanner import Scanner
from kwire.storage.computed_once import once
from kwire.storage.isolation import transactions
from kwire.storage.isolation.producer_snapshots import ProducerSnapshots
from kwire.storage.isolation.transactions import (
    ABORT,
    COMMIT,
    AbortedByIndex,
    FirstMarkers,
    LaterMarkers,
    read_markers,
    transactional,
)
from kwire.storage.places.discovery import beside, offset_in_name, parsed_offset
from kwire.storage.places.filesystem import is_url, open_file, open_folder, open_unnamed
from kwire.storage.side_files.checkpoints import small_file
from kwire.storage.side_files.indexes import TransactionIndex

if TYPE_CHECKING:
    from kwire.storage.places.discovery import SegmentFile
    from kwire.storage.places.filesystem import File
    from kwire.storage.side_files.indexes import AbortedTransaction

_KEPT = 4  # planned logs of a process, and segments of each whose markers stay in memory


class LogEnd(NamedTuple):
    """Where the log of a partition ended when a read of it was planned; plain data, pickles, small.

    All that read ranges of the partition with the same LogEnd agree on the end of each transaction, whenever they
    look: nothing counts that was written after it. base_offset: of the last segment, by its name (-1 if it has none);
    size: bytes of it (-1: not known). plan: a number of each plan's own, whatever random.seed() was given, so that what
    a process remembers of a log is not taken for that of another plan.
    """

    base_offset: int
    size: int
    plan: int

    @classmethod
    def of(cls, files: Sequence[SegmentFile]) -> LogEnd:
        """The end of the log of a partition, whose segments these are, in order."""
        return cls(files[-1].base_offset, files[-1].size, secrets.randbits(62))


class PlannedSegment:
    """A segment of a planned log: its markers and its .txnindex, read when needed.

    limit: bytes of it that count, None: all. names: file name -> bytes of what is in its folder.
    """

    def __init__(self, path: str, base_offset: int, file: File, names: dict[str, int],
                 options: dict[str, Any] | None, limit: int | None = None) -> None:
        self.path, self.base_offset, self.file, self.limit = path, base_offset, file, limit
        self._names, self._options = names, options

    @once
    def first_markers(self) -> FirstMarkers:
        """The first transaction marker of each producer in it, read as far as needed."""
        return FirstMarkers(self.file, self.limit)

    @once
    def aborted(self) -> AbortedByIndex:
        """The aborted transactions by its .txnindex."""
        return AbortedByIndex(self.entries)

    @property
    def entries(self) -> Sequence[AbortedTransaction]:
        """The entries of its .txnindex; none if that is missing or damaged, or tells of more than was planned."""
        return self._index or ()

    @property
    def index_is_whole(self) -> bool:
        """Does the .txnindex, or its absence, tell all aborted transactions whose markers are in the segment?"""
        return self._index is not None

    @once
    def _index(self) -> Sequence[AbortedTransaction] | None:
        name, place = self.path.rpartition("/")[2], beside(self.path, ".txnindex")
        size = self._names.get(beside(name, ".txnindex"))
        if size is None:  # a pipe, a folder or a link that leads nowhere is in its place, but not in the list
            is_missing = is_url(place) or not os.path.lexists(place)
            return () if is_missing and beside(name, ".index") in self._names else None
        try:
            index = TransactionIndex(small_file(place, self._options, size))
        except (KwireError, FileNotFoundError, PermissionError):
            return None
        if index.damage or self.has_grown():
            return None
        return index.entries

    def has_grown(self) -> bool:
        """Is it larger now than it was planned, or gone? Indexes and snapshots may then tell more than the plan has."""
        if self.limit is None:
            return False
        try:
            return open_unnamed(self.path, self._options).size() != self.limit
        except FileNotFoundError:
            return True


class PlannedLog:
    """The segments of a partition up to a planned end, in order of offsets. names: file name -> bytes in their folder.

    What was read of a file is remembered, however many ranges ask for it.
    """

    def __init__(self, segments: Sequence[PlannedSegment], names: dict[str, int],
                 options: dict[str, Any] | None) -> None:
        self.segments, self._names, self._options = segments, names, options
        self._bases = [segment.base_offset for segment in segments]
        self._numbers = {segment.path.rpartition("/")[2]: number for number, segment in enumerate(segments)}
        self._suffix = len(segments), AbortedByIndex(())  # the .txnindex files from that segment on
        self._told: tuple[tuple[int, int], tuple[list[PlannedSegment], bool]] = (-1, -1), ([], True)  # see _telling
        # segment and its bytes -> one of them, and the producers with markers after it
        self._ends: dict[tuple[int, int], tuple[int, set[int]]] = {}

    @once
    def _markers(self) -> LaterMarkers:
        return LaterMarkers(self.segments)

    @once
    def snapshots(self) -> ProducerSnapshots:
        """The producer snapshots beside the segments: after the first one's base offset, not after the planned end."""
        folder = self.segments[0].path.rpartition("/")[0]
        first, last = self._bases[0], self._bases[-1]
        rolled = min((base for base in map(offset_in_name, self._names) if base > last), default=1 << 63)
        files = {}
        for name, size in self._names.items():
            stem, _, kind = name.partition(".")
            offset = parsed_offset(stem)
            if kind == "snapshot" and first < offset <= rolled:
                files[offset] = (f"{folder}/{name}" if folder else name, size)
        end = self.segments[-1]
        return ProducerSnapshots(files, self._options, lambda offset: offset > last and end.has_grown())

    def ongoing(self) -> dict[int, int]:
        """First offset by producer id of the transactions without an end in the log.

        By the newest snapshot, and the heads of batches from the segment on in which it is. Raises LimitError for more
        than MOST_PRODUCERS.
        """
        newest = self.snapshots.newest()
        found = {} if newest is None else dict(newest[1])
        # batches before the snapshot, if it is inside of a segment, change nothing: their markers follow
        for segment in self.segments[0 if newest is None else self.number_of(newest[0]) :]:
            for window in Scanner(segment.file, 0, segment.limit):
                for _, end, base, producer, kind in transactional(window):
                    if segment.limit is not None and end > segment.limit:
                        break
                    if kind is None:
                        found.setdefault(producer, base)
                    else:
                        found.pop(producer, None)
                transactions.bounded(len(found), segment.file, "producers with transactions in one segment",
                                     transactions.MOST_PRODUCERS)
        return found

    def aborted(self) -> AbortedByIndex:
        """The aborted transactions by all .txnindex files. Raises LimitError if they are too many."""
        return self._aborted_from(0)

    def marker_after(self, number: int, producer: int) -> tuple[int, int] | None:
        """(offset, type) of the producer's first marker in the segments after that number, None if there is none."""
        return self._markers.after(number, producer)

    def number_of_file(self, name: str) -> int | None:
        """The number of the segment with that file name."""
        return self._numbers.get(name)

    def number_of(self, offset: int) -> int:
        """The number of the segment that holds an offset."""
        return max(0, bisect_right(self._bases, offset) - 1)

    def outcomes(
        self, number: int, pending: dict[int, int], rest: tuple[File, int] | None = None
    ) -> dict[int, int | None]:
        """How the transactions end that are ongoing at a byte of a segment, as far as that is known.

        pending: producer id -> offset of one of the transaction's batches before that byte. The result by producer:
        ABORT, COMMIT, or None for one without an end in the log. rest: the file that is read, held open, and that byte
        of it, from which heads are read if nothing else tells; None: without reading heads of this segment, producers
        for whom that would be needed are left out of the result. Raises LimitError for more than MOST_PRODUCERS or
        MOST_ABORTED.
        """
        found: dict[int, int | None] = {}
        here: dict[int, int] = {}
        for producer, given in pending.items():
            offset = self._inside(number, given)
            kind, since = self.by_files(number, producer, offset)
            if kind is not None:
                found[producer] = kind
            elif since > number:
                found[producer] = self._by_heads(since, producer, offset)
            else:
                here[producer] = offset
        if rest is not None and here:
            ends = self._ends_after(number, *rest, here)
            for producer, offset in here.items():
                kind = ends.get(producer)
                found[producer] = self._by_heads(number + 1, producer, offset) if kind is None else kind
        return found

    def entry(self, number: int, producer: int, offset: int) -> tuple[int, int] | None:
        """(first offset, offset of the abort marker) of the transaction around a batch of a segment, by .txnindex."""
        return self._aborted_from(number).at(producer, offset)

    def by_files(self, number: int, producer: int, offset: int) -> tuple[int | None, int]:
        """How a transaction ends by .txnindex files and producer snapshots; offset: of a batch, in that segment.

        (ABORT, COMMIT or None, number of the segment from which on the heads would have to tell).
        """
        offset = self._inside(number, offset)
        ended, ongoing = self.snapshots.around(producer, offset)
        since = number if ongoing is None else max(number, self.number_of(ongoing))
        if ended is None:
            if self.segments[number].aborted.at(producer, offset):
                return ABORT, since
            return None, since
        telling, whole = self._telling(since, bisect_left(self._bases, ended, number))
        if any(segment.aborted.at(producer, offset) for segment in telling):
            return ABORT, since
        return COMMIT if whole else None, since

    def _inside(self, number: int, offset: int) -> int:
        """The offset, or the nearest that the segment may have: no checksum covers those of batches."""
        offset = max(offset, self._bases[number])
        return offset if number + 1 == len(self._bases) else min(offset, self._bases[number + 1] - 1)

    def _telling(self, since: int, last: int) -> tuple[list[PlannedSegment], bool]:
        """The segments between two numbers that have aborted transactions, up to the first whose index is not whole.

        (those, is the index of all whole?). Remembered: many producers ask for the same ones.
        """
        key, found = self._told
        if key != (since, last):
            between = self.segments[since:last]
            end = next((at for at, segment in enumerate(between) if not segment.index_is_whole), len(between))
            found = [segment for segment in between[: end + 1] if segment.entries], end == len(between)
            self._told = (since, last), found
        return found

    def _by_heads(self, since: int, producer: int, offset: int) -> int | None:
        """ABORT, COMMIT or None by the segments from a number on: their indexes, then their markers."""
        if self._aborted_from(since).at(producer, offset):
            return ABORT
        marker = self._markers.after(since - 1, producer)
        return None if marker is None else marker[1]

    def _aborted_from(self, since: int) -> AbortedByIndex:
        """The aborted transactions by the .txnindex files of the segments from that number on, and of some before."""
        first, listed = self._suffix
        if since < first:
            listed = AbortedByIndex(self._entries(since))
            self._suffix = since, listed
        return listed

    def _entries(self, since: int) -> Iterator[AbortedTransaction]:
        count = 0
        for segment in self.segments[since:]:
            count += len(segment.entries)
            transactions.bounded(
                count, segment.file, "aborted transactions in one partition", transactions.MOST_ABORTED)
            yield from segment.entries

    def _ends_after(self, number: int, file: File, position: int, pending: Iterable[int]) -> dict[int, int]:
        """The kinds of the first markers after a byte of a segment, by producer. file: it, held open.

        Ranges of one segment ask one after the other: once its rest was read in vain, it is not read again for those
        who have no marker in it.
        """
        segment, size = self.segments[number], file.size()
        if segment.limit is not None:
            size = min(size, segment.limit)
        if size <= position:
            return {}
        known = self._ends.get((number, size))  # compaction may have put a file of another size there
        left = set(pending)
        if known is not None and position >= known[0]:
            left &= known[1]
        if not left:
            return {}
        found: dict[int, int] = {}
        seen: set[int] = set()
        for producer, _, kind in read_markers(file, position, segment.limit):
            seen.add(producer)
            transactions.bounded(len(seen), file, "producers with transactions in one segment",
                                 transactions.MOST_PRODUCERS)
            if producer in left:
                found[producer] = kind
                left.discard(producer)
                if not left:
                    return found
        if known is None or position < known[0]:
            if len(self._ends) >= _KEPT:
                self._ends = {}
            self._ends[number, size] = (position, seen)
        return found


def planned_log(path: str, end: LogEnd, options: dict[str, Any] | None) -> PlannedLog:
    """The log of the partition that a segment is in, up to its planned end; the same object for the same plan."""
    folder = path.rpartition("/")[0]
    for known, known_end, log in _PLANNED:
        if (known, known_end) == (folder, end):
            return log
    names = names_beside(path, options)
    segments = []
    for base, name in sorted((offset_in_name(name), name) for name in names):
        if not 0 <= base <= end.base_offset:
            continue
        full = f"{folder}/{name}" if folder else name
        limit = end.size if base == end.base_offset and end.size >= 0 else None
        segments.append(PlannedSegment(full, base, open_file(full, options, names[name]), names, options, limit))
    log = PlannedLog(segments, names, options)
    _PLANNED[:] = [*_PLANNED[1 - _KEPT :], (folder, end, log)]
    return log


_PLANNED: list[tuple[str, LogEnd, PlannedLog]] = []  # the last few


def names_beside(path: str, options: dict[str, Any] | None) -> dict[str, int]:
    """File name -> bytes (-1: not known) of the files in the folder that a segment is in.

    Not of a URL whose name has no offset: it may be signed, and its folder no folder.
    """
    if is_url(path) and offset_in_name(path) < 0:
        return {}
    folder = path.rpartition("/")[0] if "/" in path else "."
    try:
        entries = open_folder(folder, options).entries(folder)
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # a store may let us read, but not list
        return {}
    return {name.rpartition("/")[2]: size for name, is_folder, size in entries if not is_folder}
