"""Follows the log of one partition: what became of the bytes that were read last, and which bytes are next."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import NamedTuple
from zlib import crc32

from kwire.errors import CorruptBatchError, KwireError
from kwire.storage.batches.batch_header import BatchHeader, end_of_zeros, examine
from kwire.storage.batches.preallocated import ends_in_zeros, written_end
from kwire.storage.batches.scanner import OBJECT_BYTES, WINDOW_BYTES, Scanner, Window, window_headers
from kwire.storage.computed_once import once
from kwire.storage.places.discovery import THREADS, SegmentFile
from kwire.storage.places.filesystem import File, is_url, open_unnamed, shown
from kwire.storage.reading.bounds import Bounds
from kwire.storage.reading.open_transactions import OpenTransaction
from kwire.storage.reading.segment import LogSegment
from kwire.storage.side_files.checkpoints import read_partition_metadata
from kwire_c.record_batch import HEADER_UP_TO_MAGIC, RECORD_BATCH_OVERHEAD

_WORTH_SKIPPING = 1 << 20  # bytes; a smaller piece is read, and no index asked for
_AHEAD_BYTES = 64 << 20  # of segments that are read ahead at the same time


class LogOffset(NamedTuple):
    """The offset that is due, and what was read before it (Kafka's LogOffsetMetadata, with marks of the bytes).

    segment: the base offset in the name of the file that was read last, else the name; None: nothing was read yet.
    position: the byte after what was read last, a batch or a damaged region of `size` bytes. mark, head: CRC-32 of the
    first bytes of that batch, and of the segment. log_start: where the log began when it was read from its beginning.
    crossed: bytes from the place before this one to this one, if they are in several segments, else 0. epoch: the
    leader epoch of that batch plus 1; 0: not known. With it a log that was truncated and written again shows (KIP-320).
    topic: CRC-32 of the topic id in partition.metadata (KIP-516); 0: not known. It distinguishes a log that
    was truncated from one that was made again.
    """

    offset: int
    segment: int | str | None = None
    position: int = 0
    size: int = 0
    mark: int = 0
    head: int = 0
    log_start: int = 0
    crossed: int = 0
    epoch: int = 0
    topic: int = 0

    @property
    def is_exact(self) -> bool:
        """Is the offset due that of the next batch? Else the bytes from position on may hold earlier records."""
        return self.size > 0 or self.segment == self.offset


class Planned(NamedTuple):
    """What is known of a range of a segment: the offsets in it, and the places where it begins and ends.

    before, until: None where no batch marks the place. size: of the file, which is not written to any more as others
    follow; None: not known.
    """

    offsets: Bounds
    before: LogOffset | None
    until: LogOffset | None
    size: int | None = None

    def begins(self, file: File, size: int) -> bool:
        """Are the bytes before the range those that were there?"""
        return self.before is None or (self.before.position <= size and has_mark(file, self.before))

    def ends(self, file: File, size: int) -> bool:
        """Are the bytes at its end those that were there, and the file not another one?"""
        if self.size is not None and size != self.size:  # the cleaner may have put later segments into it
            return False
        return self.until is None or (self.until.position <= size and has_mark(file, self.until))


class _Read(NamedTuple):
    """How far a segment was read: position, size, first bytes and leader epoch of the last batch, the offset due next.

    known: nothing damaged came after that offset. ended: nothing but a torn tail or zeros is left. head: the first
    bytes of the segment, None if they were not read. waits_for: the open transaction before which reading stopped.
    """

    position: int
    size: int
    first_bytes: bytes
    due: int
    known: bool
    ended: bool
    leader_epoch: int
    head: bytes | None
    waits_for: OpenTransaction | None


class LogFollower:
    """The segments of one partition, as they were listed, in order of offsets.

    name: the partition, for texts. open_segment: opens a file. lost is called with a text when records cannot be read
    any more, or may come twice, and may raise; warn with what is to be known. strict: damage at the end of the last
    segment is to be read (and raised), else it waits for a batch after it, as it always does before the zeros of a
    preallocated one: a broker may be writing it. first_open: the oldest open transaction from a segment of that number
    on, None if everything is to be read. unpacked: sizes of .gz files, remembered.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[SegmentFile],
        *,
        open_segment: Callable[[SegmentFile], LogSegment],
        lost: Callable[[str], None],
        warn: Callable[[str], None],
        strict: bool = True,
        first_open: Callable[[int], OpenTransaction | None] | None = None,
        unpacked: dict[str, int] | None = None,
    ) -> None:
        self.name, self.files = name, files
        self._unpacked = {} if unpacked is None else unpacked
        self._open, self._lost, self._warn = open_segment, lost, warn
        self._strict, self._first_open = strict, first_open
        self._segments: dict[int, LogSegment] = {}
        self._ahead: dict[int, Future[_Read]] = {}  # whole segments that are being read, by number
        self.waits_for: OpenTransaction | None = None

    def start(self, offset: int | None = None) -> LogOffset:
        """Where a new reader begins: at an offset, or (None) where the log does."""
        first = max(self._base(0), 0)
        return LogOffset(first, log_start=first) if offset is None else LogOffset(offset)

    def end(self) -> LogOffset:
        """The end of the whole batches of the last segment; reads it from the last entry of its index on."""
        last = len(self.files) - 1
        before, _ = self._around(last, 1 << 63)
        return self._begin(last) if before is None else self._after(last, before, before.last_offset + 1)

    def bytes_after(self, at: LogOffset) -> int:
        """The bytes of the segments after a place, by their sizes alone."""
        number = self._number(at.segment)
        if number is None:
            number, position = self._holder(at.offset) or 0, 0
        else:
            position = at.position
        return sum(self._size(later) for later in range(number, len(self.files))) - position

    def resume(self, at: LogOffset) -> LogOffset:
        """The place to read on at: `at` if its bytes are still there.

        Else where those records are now that are due, by offset; what is missing, or another log under the same name,
        is reported to lost, and what the cleaner did to warn.
        """
        if at.segment is None:
            return self._sought(at)
        if self._is_another_topic(at):
            return self._made_again("it has another topic id", at.offset)
        number = self._number(at.segment)
        if number is None or not self._holds(number, at):
            return self._moved(number, at)
        if not at.is_exact:  # perhaps some batches before the one with the offset due
            before, _ = self._around(number, at.offset)
            if before is not None and before.position >= at.position:
                at = at._replace(position=before.position + before.size)
        first = self._base(0)
        if 0 <= first < at.log_start:
            self._lost(f"{self.name}: segments with the offsets {first}..{at.log_start - 1} arrived after the log had "
                       f"been read from offset {at.log_start} on: they are not read")
            at = at._replace(log_start=first)
        return at

    def advance(self, at: LogOffset, most: int | None = None, pool: Executor | None = None) -> LogOffset:
        """The end of the whole batches from a place on; most: bytes (at least 1), reached by the last batch.

        Goes on to the next segment where one ends at its base offset. Stops before an open transaction (waits_for), and
        before offsets that are missing, which are reported to lost when nothing before them is left to read. A new
        reader whose offset is yet to come stays at its beginning: what becomes of the records before it is not its own.
        pool: reads the next segments meanwhile, as an object store takes its time for each; lost and warn may be called
        in its threads.
        """
        self.waits_for = None
        if self.is_at_end(at):
            return at
        begun = self.resume(at)
        try:
            reached = self._advanced(begun if begun == at else begun._replace(crossed=0), most, pool)
        finally:
            for read in self._ahead.values():
                read.cancel()
            self._ahead.clear()
        is_to_come = at.segment is None and not begun.is_exact and reached.offset == begun.offset
        return at if is_to_come and not self._ends_damaged(reached) else reached

    def _advanced(self, begun: LogOffset, most: int | None, pool: Executor | None) -> LogOffset:
        reached = begun
        number, position, due = self._number(begun.segment) or 0, begun.position, begun.offset
        left, crossed = most, 0
        while True:
            read = self._read(number, position, due, left)
            if read.position > position:
                known_head = reached.head if reached.segment == self._id(number) and reached.head else None
                head = known_head if read.head is None else crc32(read.head)
                reached = self._place(
                    number, read.position, read.size, read.first_bytes, read.leader_epoch, read.due, begun, head)
                if crossed:
                    reached = reached._replace(crossed=crossed + read.position)
            if left is not None:
                left -= read.position - position
            follower = number + 1
            if not read.ended or follower == len(self.files) or (left is not None and left <= 0):
                return reached
            whole, base = read.position == self._size(number), self._base(follower)
            if not whole and (base < 0 or base > read.due or not read.known):
                self._torn(number, read.position)
                return reached
            if base < 0 or not read.known:  # no offsets to compare
                due = max(base, read.due)
            elif base > read.due:
                if not self._crosses(number, reached, base, reached is not begun):
                    return reached
                due = base
            elif base < read.due:  # two copies of the log with other segments, or the offset due is yet to come
                if reached.size:
                    self._warn(f"{self.name}: {self._path(follower)} begins at offset {base}, though the segment "
                               f"before it ends at offset {read.due}: offsets {base}..{read.due - 1} are read once")
                if reached is begun:
                    reached = self._before(follower, read.due)._replace(log_start=begun.log_start)
                return reached
            else:
                due = base
            crossed += self._size(number) - position
            number, position = follower, 0
            if pool is not None:
                self._look_ahead(number, left, pool)

    def ranges(self, start: LogOffset, end: LogOffset) -> Iterator[tuple[SegmentFile, int, int, Bounds, Planned]]:
        """Yield (segment, first byte, byte after the last, offsets to keep, marks) of what is between two places.

        The bytes at both are compared with their marks; if those at the end are not what they were, lost is called, and
        the records are taken by offset. So it is if there are more or fewer bytes between them than there were.
        """
        if end.segment is None or (end.size == 0 and end.offset <= start.offset):  # another place, but nothing read
            return
        begun = self.resume(start)
        first, last = self._number(begun.segment) or 0, self._number(end.segment)
        until: int | None = None
        if last is None or not self._holds(last, end):
            self._changed(end, f"byte {end.position}")
            until = end.offset
            if isinstance(end.segment, int):  # what the next micro-batch will begin with is not of this one
                until = min(until, self.resume(end).offset)
                if until <= begun.offset:
                    return
            last = self._holder(until - 1)
            last = len(self.files) - 1 if last is None else last
        pieces = [
            (number, begun.position if number == first else 0,
             end.position if number == last and until is None else self._size(number))
            for number in range(first, last + 1)
        ]
        found = sum(stop - position for _, position, stop in pieces)
        if until is None and end.crossed and end != start and found != end.crossed:
            self._changed(end, f"{end.crossed} bytes before byte {end.position}, found {found}")
        for number, position, stop in pieces:
            least = begun.offset if number == first and not begun.is_exact else None
            if stop > position:
                yield self.files[number], position, stop, Bounds(least, until), Planned(
                    Bounds(begun.offset, end.offset), begun if number == first and begun.size else None,
                    end if number == last and end.size and until is None else None,
                    self.files[number].size if number < last and self.files[number].size >= 0 else None)

    def _changed(self, end: LogOffset, what: str) -> None:
        self._lost(f"{self.name}: the records before offset {end.offset} are not those that were there when the "
                   f"micro-batch was planned ({_named(end.segment)}, {what})")

    def is_at_end(self, at: LogOffset) -> bool:
        """Is nothing new there, by sizes, the topic id and the head of the batch that was read last?"""
        last = len(self.files) - 1
        return self._id(last) == at.segment and self._size(last) == at.position and not (
            0 <= self._base(0) < at.log_start) and not self._is_another_topic(at) and not self._is_rewritten(last, at)

    def _is_rewritten(self, number: int, at: LogOffset) -> bool:
        """Was a segment truncated and written again to the same size, or is it gone?

        Asked where partition.metadata is, which is read anyway: in other folders and in stores no broker truncates, and
        to open each of many partitions that have nothing new would take long.
        """
        if not at.size or not self._is_same_topic(at) or self.files[number].size < 0:
            return False
        try:
            return not has_mark(self._segment(number).file, at)
        except (FileNotFoundError, CorruptBatchError):
            return True

    @once
    def _topic(self) -> int:
        """The mark of the topic id; 0: not known, as in a store, where no broker truncates."""
        last = self.files[-1].path
        path = f"{last[: last.rfind('/') + 1]}partition.metadata"
        if is_url(path) or not os.path.isfile(path):  # a pipe would be waited for
            return 0
        try:
            return crc32(read_partition_metadata(path).topic_id.bytes)
        except (OSError, KwireError):
            return 0

    def _is_another_topic(self, at: LogOffset) -> bool:
        return at.topic != 0 and self._topic not in (0, at.topic)

    def _is_same_topic(self, at: LogOffset) -> bool:
        return at.topic != 0 and at.topic == self._topic

    # segments by number

    def _base(self, number: int) -> int:
        return self.files[number].base_offset

    def _id(self, number: int) -> int | str:
        file = self.files[number]
        return file.base_offset if file.base_offset >= 0 else _file_name(file)

    def _number(self, segment: int | str | None) -> int | None:
        return next((number for number in range(len(self.files)) if self._id(number) == segment), None)

    def _holder(self, offset: int) -> int | None:
        """The last segment that begins at or before an offset."""
        held = [number for number, file in enumerate(self.files) if file.base_offset <= offset]
        return held[-1] if held else None

    def _segment(self, number: int) -> LogSegment:
        opened = self._segments.get(number)
        if opened is None:
            opened = self._segments[number] = self._open(self.files[number])
        return opened

    def _size(self, number: int) -> int:
        path, size = self.files[number].path, self.files[number].size
        if size < 0:  # a .gz
            if path not in self._unpacked:
                self._unpacked[path] = self._segment(number).size
            size = self._unpacked[path]
        return size

    def _is_cut(self, number: int) -> bool:
        """Does a file hold more than is to be read of it (availableNow)? What is missing may be in the rest."""
        return 0 <= self.files[number].size < self.files[number].stored

    def _path(self, number: int) -> str:
        return shown(self.files[number].path)

    def _folder(self) -> str:
        return self._path(0).rpartition("/")[0]

    # places

    def _begin(self, number: int, offset: int | None = None) -> LogOffset:
        """The beginning of a segment."""
        return LogOffset(max(self._base(number), 0) if offset is None else offset, self._id(number))

    def _place(
        self, number: int, position: int, size: int, first_bytes: bytes, leader_epoch: int, offset: int,
        before: LogOffset, head: int | None = None,
    ) -> LogOffset:
        """The place after `size` bytes that end at position and begin with first_bytes."""
        if head is None:
            head = crc32(self._segment(number).file.read(0, min(RECORD_BATCH_OVERHEAD, self._size(number))))
        return LogOffset(offset, self._id(number), position, size, crc32(first_bytes), head, before.log_start,
                         epoch=max(leader_epoch, -1) + 1, topic=self._topic or before.topic)

    def _after(self, number: int, header: BatchHeader, offset: int, before: LogOffset | None = None) -> LogOffset:
        """The place after a batch."""
        first_bytes = self._segment(number).file.read(
            header.position, header.position + min(header.size, RECORD_BATCH_OVERHEAD))
        before = before or LogOffset(offset)
        end, epoch = header.position + header.size, header.partition_leader_epoch
        return self._place(number, end, header.size, first_bytes, epoch, offset, before)

    def _before(self, number: int, offset: int) -> LogOffset:
        """The place in a segment before the batch that holds an offset, or the next one: not exact."""
        before, _ = self._around(number, offset)
        place = self._begin(number, offset)
        return place if before is None else place._replace(position=before.position + before.size)

    def _holds(self, number: int, at: LogOffset) -> bool:
        """Are the bytes that were read last still where they were?"""
        if at.position > self._size(number):
            return False
        file = self._segment(number).file
        if at.size:
            return has_mark(file, at)
        if not 0 < at.position < self._size(number):
            return True
        return examine(file, at.position, self._size(number)).kind != "bad"  # a place without marks

    def _has_head(self, number: int | None, at: LogOffset) -> bool:
        """Does the segment begin with the batch that it began with?"""
        return number is not None and self._size(number) > 0 and at.head == crc32(
            self._segment(number).file.read(0, min(RECORD_BATCH_OVERHEAD, self._size(number))))

    def _sought(self, at: LogOffset) -> LogOffset:
        """The place of an offset at which nothing was read yet."""
        holder, first = self._holder(at.offset), self._base(0)
        if holder is None:
            self._deleted(at, first)
            return self._begin(0)._replace(log_start=at.log_start)
        if self._base(holder) < 0:
            place = self._begin(0, at.offset)
        elif self._base(holder) == at.offset:
            place = self._begin(holder)
        else:
            place = self._before(holder, at.offset)
        return place._replace(log_start=at.log_start)

    def _moved(self, number: int | None, at: LogOffset) -> LogOffset:
        """The place of an offset, if what was read before it is not where it was; number: of its segment, if any."""
        if isinstance(at.segment, str):
            return self._renamed(number, at)
        due, holder = at.offset, self._holder(at.offset)
        if holder is None:
            self._deleted(at, self._base(0))
            return self._begin(0)._replace(log_start=at.log_start)
        following = None
        if self._base(holder) == due:  # what was read was in a segment before it
            following = self._begin(holder)._replace(log_start=at.log_start)
            if holder == 0:  # it was deleted, and nothing else
                return following
            holder -= 1
        before, found = self._around(holder, due - 1)
        newest = found if found is not None and found.base_offset < due else before
        if newest is not None and 0 < at.epoch <= newest.partition_leader_epoch:  # the cleaner keeps epochs (KIP-320)
            what = (f"the batch of offsets {newest.base_offset}..{newest.last_offset} is of leader epoch "
                    f"{newest.partition_leader_epoch}, the records before offset {due} were of epoch {at.epoch - 1} "
                    "when they were read")
            head = next(self._headers(0), None) if number == 0 == self._base(0) else None
            nothing_left = head is not None and head[0].partition_leader_epoch >= at.epoch
            if nothing_left and not self._is_same_topic(at):
                return self._made_again(what, due)
            return self._rewritten(holder, what, at)
        if found is not None and found.base_offset < due:  # the batch of the offset that was read last
            place = self._after(holder, found, due, at)
            if (place.size, place.mark) == (at.size, at.mark) or (not at.size and found.last_offset == due - 1):
                return following or place  # the same bytes in another place: the cleaner removed others
            if found.last_offset == due - 1 and _is_cleaned(found):
                self._compacted(holder)
                return following or place
            batch = f"offset {due - 1} is in another batch (base offset {found.base_offset}, byte {found.position})"
            if self._is_same_topic(at) or self._has_head(number, at):
                return self._rewritten(holder, batch, at)
            return self._made_again(f"{batch}, and {_named(at.segment)} is another", due)
        if found is not None or (holder + 1 < len(self.files) and not self._is_cut(holder)):
            self._compacted(holder)
            if following is not None:
                return following
            if before is None:
                return self._begin(holder, due)._replace(log_start=at.log_start)
            return self._after(holder, before, due, at)
        end = max(self._base(holder), 0) if before is None else before.last_offset + 1
        is_emptied = number is not None and self._size(number) == 0 < self._base(number)
        if is_emptied or self._is_same_topic(at) or self._has_head(number, at):
            cut = f"the log was truncated, {_named(at.segment)} is gone" if number is None else (
                f"{self._path(number)} was truncated to {self._size(number)} bytes after {at.position} had been read")
            self._lost(f"{self.name}: {cut}: the log ends at offset {end}, expected offset {due} next")
            place = self._begin(holder) if before is None else self._after(holder, before, end, at)
            return place._replace(log_start=at.log_start)
        return self._made_again(f"the log ends at offset {end}", due)

    def _rewritten(self, number: int, what: str, at: LogOffset) -> LogOffset:
        due = min(at.offset, self.end().offset)  # it may not have come so far again
        self._lost(f"{self.name}: {self._path(number)} was truncated and written again: {what}; reading goes on at "
                   f"offset {due}")
        before, _ = self._around(number, due)
        if before is not None and before.last_offset + 1 == due:
            return self._after(number, before, due, at)
        return self._before(number, due)._replace(log_start=at.log_start)

    def _renamed(self, number: int | None, at: LogOffset) -> LogOffset:
        """The place to go on at if a file without a base offset in its name is gone, or has other bytes."""
        state = "is gone" if number is None else "has other bytes than those that were read"
        self._lost(f"{self.name}: the file {at.segment} {state}; expected offset {at.offset} in it next")
        later = (number for number, file in enumerate(self.files) if _file_name(file) > str(at.segment))
        following = next(later, None)
        return self.end() if following is None else self._begin(following)

    def _made_again(self, found: str, due: int) -> LogOffset:
        self._lost(f"{self.name} was deleted and made again: {found}; expected offset {due} of the log that was read. "
                   f"What was left of it is lost; {self._path(0)} is read from its beginning")
        return self.start()

    def _deleted(self, at: LogOffset, first: int) -> None:
        gone = "" if at.segment is None else f"{self._folder()}/{_named(at.segment)} was deleted with what followed: "
        self._lost(f"{self.name}: {gone}offsets {at.offset}..{first - 1} are lost, the next segment begins at offset "
                   f"{first}")

    def _compacted(self, number: int) -> None:
        self._warn(f"{self.name}: {self._path(number)} was rewritten by compaction since it was read: records that "
                   "were removed do not come")

    def _torn(self, number: int, position: int) -> None:
        self._warn(f"{self._path(number)} has a torn batch at byte {position} of {self._size(number)}, though later "
                   "segments exist: its partition waits for the rest")

    def _crosses(self, number: int, at: LogOffset, base: int, progressed: bool) -> bool:
        """May reading go on at the next segment, which begins at a later offset than the one that is due?"""
        due = at.offset
        segment = self._segment(number)
        if open_unnamed(segment.path, segment.options).size() != self._size(number):  # it has grown since it was listed
            return False
        gap = (f"{self.name}: offsets {due}..{base - 1} are not there: {self._path(number)} ends at offset {due}, the "
               f"next segment begins at offset {base}")
        if self._has_gaps(number) or self._has_gaps(number + 1):
            self._warn(f"{gap}: removed by compaction")
            return True
        if self._ends_damaged(at):
            self._warn(f"{gap}: the segment ends with damaged bytes, which were read")
            return True
        if progressed:  # what is before the gap is read first
            self._warn(f"{gap}; reading stops there")
            return False
        self._lost(f"{gap}: they were deleted, or compacted, before they were read, or were not copied yet")
        return True

    def _ends_damaged(self, at: LogOffset) -> bool:
        """Was a damaged region the last that was read before a place?"""
        number = self._number(at.segment)
        if number is None or not at.size:
            return False
        return examine(self._segment(number).file, at.position - at.size, at.position)[:2] != ("batch", at.size)

    # batches

    def _headers(self, number: int, start: int = 0) -> Iterator[tuple[BatchHeader, Window]]:
        """(header, window) of the whole batches from a byte on; damage is passed over."""
        size = self._size(number)
        for window in Scanner(self._segment(number).file, start, size):
            for header in window_headers(window) if window.bad is None else ():
                if header.position + header.size > size:
                    return
                yield header, window

    def _around(self, number: int, offset: int) -> tuple[BatchHeader | None, BatchHeader | None]:
        """The last batch of a segment that ends before an offset, and the first one that does not."""
        before = None
        segment = self._segment(number)
        index = segment.index
        entry = index.below(offset - 1) if index else None
        trusted = entry and index and entry[1] < self._size(number) and index.points_to_batch(
            segment.file, entry, segment.size)
        for header, _ in self._headers(number, entry[1] if entry and trusted else 0):
            if header.last_offset >= offset:
                return before, header
            before = header
        return before, None

    def _skipped_to(self, number: int, position: int, end: int) -> int:
        """The batch near an end of which the .index knows, so that the driver need not read all that comes before."""
        if end - position < _WORTH_SKIPPING or self._first_open is not None:
            return position
        segment = self._segment(number)
        index = segment.index
        entry = index.below_position(end - 1) if index else None
        if entry is None or entry[1] <= position or examine(segment.file, entry[1], self._size(number)).kind != "batch":
            return position
        return entry[1] if index and index.points_to_batch(segment.file, entry, segment.size) else position

    def _is_half_written(self, number: int, position: int) -> bool:
        """May a broker be writing what is at a byte into a preallocated segment? Only zeros are after it then."""
        segment, size = self._segment(number), self._size(number)
        if not ends_in_zeros(segment.file, size):
            return False
        place = examine(segment.file, position, size)
        end = position + (place.size if place.kind == "batch" else HEADER_UP_TO_MAGIC)
        return end < size and end_of_zeros(segment.file, end, size) == size

    def _has_gaps(self, number: int) -> bool:
        """Does a segment lack offsets, as only compacted ones do?"""
        due: int | None = self._base(number)
        for window in Scanner(self._segment(number).file, 0, self._size(number)):
            if window.bad is not None:
                due = None
                continue
            for header in window_headers(window):
                if _is_cleaned(header) or (due is not None and 0 <= due < header.base_offset and header.magic == 2):
                    return True
                due = header.last_offset + 1
        return False

    def _read(self, number: int, position: int, due: int, most: int | None) -> _Read:
        """Read the headers of a segment from a byte on, or take what was read ahead."""
        ahead = self._ahead.pop(number, None)
        if ahead is None or position or due != self._base(number):
            read = self._read_on(number, position, due, most)
        else:
            read = ahead.result()
        self.waits_for = read.waits_for
        return read

    def _look_ahead(self, number: int, most: int | None, pool: Executor) -> None:
        """Begin to read the segments from a number on that are to be read whole; most: bytes."""
        if number not in self._ahead and self._first_open is not None and self._first_open(number) is not None:
            return
        left = _AHEAD_BYTES if most is None else min(_AHEAD_BYTES, most - 1)
        for following in range(number, min(number + THREADS, len(self.files))):
            file = self.files[following]
            left -= file.size
            if file.base_offset < 0 or file.size < 0 or left < 0:
                return
            if following not in self._ahead:
                try:
                    self._ahead[following] = pool.submit(self._read_on, following, 0, file.base_offset, None)
                except RuntimeError:  # no thread can be started
                    return

    def _read_on(self, number: int, position: int, due: int, most: int | None) -> _Read:
        """Read the headers of a segment from a byte on."""
        size, closed = self._size(number), number + 1 < len(self.files)
        stop: OpenTransaction | None = None
        if self._first_open is not None:
            written = None if closed else written_end(self._segment(number).file, position, size)
            size = size if written is None else written
            stop = self._first_open(number)
        end, last, expected, epoch = position, 0, due, -1
        known = self._base(number) >= 0 or position > 0
        data, at = memoryview(b""), 0  # of the last batch
        head: bytes | None = None

        def read(ended: bool, waits_for: OpenTransaction | None = None) -> _Read:
            first_bytes = bytes(data[at : at + min(last, RECORD_BATCH_OVERHEAD)])
            return _Read(end, last, first_bytes, expected, known, ended, epoch, head, waits_for)

        start = self._skipped_to(number, position, size if most is None else min(size, position + most))
        if start > position:
            end, known = start, False
        read_bytes = WINDOW_BYTES if start == position else OBJECT_BYTES
        for window in Scanner(self._segment(number).file, start, size, read_bytes=read_bytes):
            if window.position == 0 and len(window.data) >= min(RECORD_BATCH_OVERHEAD, size):
                head = bytes(window.data[: min(RECORD_BATCH_OVERHEAD, size)])
            if window.bad is not None:
                if not closed and (
                    (window.end >= size and not self._strict) or self._is_half_written(number, window.position)
                ):
                    return read(True)
                data, at, end, last, known = window.data, 0, window.end, window.end - window.position, False
                epoch = -1
                continue
            for header in window_headers(window):
                if header.position + header.size > size:
                    return read(True)
                if stop is not None and header.last_offset >= stop.first_offset:
                    return read(False, stop._replace(timestamp=header.max_timestamp))
                if known and header.magic == 2 and header.base_offset > expected:
                    self._warn(f"{self.name}: offsets {expected}..{header.base_offset - 1} are not there, "
                               f"removed by compaction or damaged: {self._path(number)}, byte {header.position}")
                data, at = window.data, header.position - window.position
                end, last, epoch = header.position + header.size, header.size, header.partition_leader_epoch
                expected, known = max(expected, header.last_offset + 1), True
                if most is not None and end - position >= most:
                    return read(False)
        return read(True)


def is_of_change(error: FileNotFoundError | CorruptBatchError) -> bool:
    """Was a file deleted, or truncated while it was read? What became of it the next listing shows."""
    return isinstance(error, FileNotFoundError) or "truncated" in error.reason


def has_mark(file: File, at: LogOffset) -> bool:
    """Is the batch that was read last before a place still there? The place has a size."""
    start = at.position - at.size
    return crc32(file.read(start, start + min(at.size, RECORD_BATCH_OVERHEAD))) == at.mark


def _is_cleaned(header: BatchHeader) -> bool:
    """Has a batch fewer records than offsets, or the time of its delete horizon (KIP-534), as the cleaner leaves it?"""
    fewer = 0 <= header.count <= header.last_offset - header.base_offset
    return header.magic == 2 and (fewer or header.delete_horizon is not None)


def _named(segment: int | str | None) -> str:
    """The name of a segment's file."""
    return f"{segment:020d}.log" if isinstance(segment, int) else str(segment)


def _file_name(file: SegmentFile) -> str:
    return shown(file.path).rpartition("/")[2]
