"""Hops over batch headers without decoding: boundaries, windows, the search for the next valid batch.

Which batches are of the log, and what is damage, read with verify=True and search=True (errors="keep"):

- The first begins at byte 0, and where one ends the next one begins, if its header is valid and its checksum holds.
  (One whose offsets are out of order, while those of the batches before and after it are not, is damage too: its base
  offset, which no checksum protects, is wrong.)
- Anything else begins a bad region. It ends at the next batch of the log, or where a batch with a wrong checksum ends
  by its own length, if a header follows there.
- The next batch of the log after damage is the first valid one from which a chain of valid batches with ascending
  offsets goes on for CHAIN_BYTES or to the end of the file (where there is none, the longest chain). Before that one, a
  piece between two damages is of the log if its offsets are ascending, above those of the damaged batch (as far as its
  header says them) and below those of that next batch (or of the first one after it that is above the damage: copies
  may be before that, in a value that ends there), for more than half of its bytes. A batch in the value of a record is
  not of the log: its chain ends with the value, and its offsets are not between the two; and none inside a valid batch.
- Batches of that chain that repeat those before the damage are left out (a copy was resumed too early), unless there
  are more than _REPEATED_BYTES of them in a chain that lacks no offset for twice CHAIN_BYTES: these are read again, as
  they are where no damage is before them.

So what is damage depends on the bytes before it only up to the batch of the log before it. A reader that begins in
the middle (guessed=True) begins further back, at a chain of valid batches that goes on for twice CHAIN_BYTES (or at
byte 0), and comes to the same batches and the same regions as one that has read everything from byte 0. For ranges of
0.5 to 11 MiB _REPEATED_BYTES further back is enough where such a chain lacks no offset: one that begins in a value has
other offsets than those after it, and of one that repeats batches no more than that is left out.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from kwire.codec.arguments import check_int, check_ints
from kwire.errors import CorruptBatchError, DecodeError
from kwire.shared_iterator import shared
from kwire.storage.batches.batch_header import (
    BatchHeader,
    Place,
    ZerosTo,
    base_offset_at,
    checksum_holds,
    end_of_zeros,
    examine,
    parse_header,
    stored_checksum,
)
from kwire.storage.places.filesystem import is_url, located
from kwire_c.crc32c import crc32c
from kwire_c.log_scan import CHECKSUM, UNKNOWN_OFFSET, find_header, hop, hop_valid
from kwire_c.record_batch import (
    ATTRIBUTES_OFFSET,
    HEADER_UP_TO_MAGIC,
    MAGIC_OFFSET,
    RECORD_BATCH_OVERHEAD,
    SMALLEST_BATCHES,
)

if TYPE_CHECKING:
    from kwire.storage.places.filesystem import File

# bytes read at a time: few enough that they are still in the CPU's caches when they are decoded
WINDOW_BYTES = 5 << 18
KEPT_BYTES = 32 << 20  # where the bytes are kept (views): few large buffers, which can have huge pages
OBJECT_BYTES = 1 << 18  # for records as objects: a single record keeps that much in memory
FIRST_BYTES = 1 << 14  # read at first by a read of a few records; each read after it is twice as large
CHAIN_BYTES = 1 << 19  # of valid batches, one after the other: more than are in the value of a record
_BACK_BYTES = CHAIN_BYTES + (1 << 16)  # before a guessed byte, where the search for a batch begins
_REPEATED_BYTES = 18 << 10  # of batches that are there twice, which may be left out: more than most batches
_WRONG_CHECKSUM = "checksum does not match"
_NOTHING_FOLLOWS = "checksum does not match, and no batch follows at the end that its length gives"
OUT_OF_ORDER = "out of order"  # in the reason of a batch whose base offset is wrong
_LAST_OFFSET_DELTA = slice(ATTRIBUTES_OFFSET + 2, ATTRIBUTES_OFFSET + 6)
_COUNT = slice(RECORD_BATCH_OVERHEAD - 4, RECORD_BATCH_OVERHEAD)
_REGION_BYTES = 1 << 20  # of a bad region that a window holds
_ZEROS = 64  # no header has so many
_SEARCH_BYTES = 64 << 10, 8 << 20  # that a search reads at a time: at first, at most
_FAR_OFFSETS = 1 << 40  # no batch is so far above the one before it, whatever the cleaner removed
_MOST_REREAD = 10  # times that a batch is read again which changes while it is read
_PAST_END = 4 << 10  # bytes after the end of a range that are read at a time
_TRIAL = 1 << 14  # cost of one candidate that is not a batch, in bytes of checksum
_SHARES = 48, 16  # bytes that searches may cost for each one of the file: for pieces, for whole chains
_PIECE_COST = 4 << 20  # bytes of checksum that the search for a piece between two damages may cost, and 8 times its way


class Window(NamedTuple):
    """Bytes [position, end) of a segment. bad is None: whole batches, one after the other; data holds them all.

    bad is a text: a region without valid batches, and why it is bad; data holds its first bytes, offset is the base
    offset at its beginning (-1 if unreadable), after the last offset before it (-1 if unknown), and follower the header
    of the next batch of the log (None at the end).
    """

    position: int
    end: int
    data: memoryview
    bad: str | None = None
    offset: int = -1
    after: int = -1
    follower: BatchHeader | None = None


_NOTHING = memoryview(b"")


def is_valid(file: File, position: int, size: int) -> bool:
    """Is there a batch at position with a valid header and checksum, followed by the end, zeros, or another header?"""
    file = file.held()
    place = examine(file, position, size)
    if place.kind != "batch" or not holds_at(file, position, place.size):
        return False
    following = position + place.size
    return following == size or examine(file, following, size).kind != "bad"


def holds_at(file: File, position: int, size: int, view: memoryview = _NOTHING, at: int = 0) -> bool:
    """checksum_holds for a batch in the file, in pieces: a batch may be larger than memory.

    view: bytes of the file that are in memory; position is its byte `at`.
    """
    if at + size <= len(view):
        return checksum_holds(view[at : at + size])
    if size <= WINDOW_BYTES:
        return checksum_holds(file.view(position, position + size))
    head = file.read(position, position + RECORD_BATCH_OVERHEAD)
    if len(head) < RECORD_BATCH_OVERHEAD:  # the file was truncated meanwhile
        return False
    at, crc = (ATTRIBUTES_OFFSET, crc32c) if head[MAGIC_OFFSET] == 2 else (MAGIC_OFFSET, zlib.crc32)
    value = 0
    while at < size:
        piece = min(size, at + WINDOW_BYTES)
        value = crc(file.view(position + at, position + piece), value)
        at = piece
    return value == stored_checksum(head)


class _Buffer:
    """A part of a file in memory: `view`, from byte `begin` on.

    piece: bytes read at a time; it doubles with each read, up to `most`. end: what is after it is read only if loaded.
    zeros_to: as end_of_zeros. checked: a batch of more than KEPT_BYTES is loaded only if its checksum holds, which is
    computed piece by piece: a damaged length would cost up to 2 GiB of memory.
    """

    def __init__(
        self, file: File, size: int, end: int, piece: int, most: int, zeros_to: ZerosTo, checked: bool = True
    ) -> None:
        self.file, self.size, self.end, self.piece, self._most = file, size, end, piece, max(piece, most)
        self._zeros_to, self._checked = zeros_to, checked
        self.view, self.begin = _NOTHING, 0

    def load(self, at: int, room: int) -> None:
        """Read until the `room` bytes at `at` are in memory, as far as the file goes."""
        wanted = min(self.size, at + room)
        if self.begin <= at and wanted <= self.begin + len(self.view):
            return
        if wanted > self.end + HEADER_UP_TO_MAGIC:  # of a batch that goes past the end, or of many small ones after it
            wanted += _PAST_END
        wanted = min(self.size, max(wanted, min(at + self.piece, self.end + HEADER_UP_TO_MAGIC)))
        # the beginning of a batch is not read twice
        rest = self.view[at - self.begin :] if self.begin <= at else _NOTHING
        self.view = _NOTHING
        self.view = self.file.view(at + len(rest), wanted, rest)
        self.begin = at
        self.piece = min(2 * self.piece, self._most)

    def load_only(self, at: int, end: int) -> None:
        """Read bytes [at, end) and nothing more."""
        self.view, self.begin = self.file.view(at, end), at

    def extend_to(self, at: int) -> None:
        """Read what is before the bytes in memory, from `at` on, so that those are not read again."""
        if at < self.begin <= at + self._most:
            self.view, self.begin = memoryview(b"".join((self.file.view(at, self.begin), self.view))), at

    def at(self, position: int) -> memoryview:
        """The bytes in memory from position on, which was loaded."""
        return self.view[position - self.begin :]

    def has_changed(self, at: int) -> bool:
        """Has the file other bytes now than those in memory of the batch at a position? Then these are dropped."""
        if not self.begin <= at < self.begin + len(self.view):
            return False
        held = self.at(at)
        place = examine(self.file, at, self.size, held, 0, self._zeros_to)
        held = held[: place.size if place.kind == "batch" else HEADER_UP_TO_MAGIC]
        if self.file.read(at, at + len(held)) == held:
            return False
        self.view, self.begin = _NOTHING, at
        return True

    def examine(self, at: int) -> Place:
        """What is at a position."""
        self.load(at, HEADER_UP_TO_MAGIC)
        return self.judged(at, examine(self.file, at, self.size, self.view, at - self.begin, self._zeros_to))

    def judged(self, at: int, place: Place) -> Place:
        """What is at a position by its header, bad if it is a batch that is too large to load unchecked."""
        if place.kind == "batch" and place.size > KEPT_BYTES and self._checked and not holds_at(
            self.file, at, place.size
        ):
            return place._replace(kind="bad", reason=_WRONG_CHECKSUM)
        return place


class Scanner:
    """Windows of whole batches over bytes [start, end) of a file; at the end, tail is (position, bytes left) or None.

    It begins at byte start, and ends before the first batch or bad region at or after end. guessed=True: start may be
    any byte, it begins with the first batch or bad region at or after it. size: bytes of the file that are of the log,
    None: all; nothing after them is read. anchor: as is_append takes it; if it is
    right, reading begins there, and what is before start is left out; else as without an anchor.
    window_bytes: most bytes of a window, but at least one batch; rows: about the rows of a window (0: no limit);
    verify=True: only batches whose checksum holds, and whose offsets are in order, are in windows that are not bad;
    search=False: a bad region goes to the end, without a search for the next valid batch. These four may be changed
    between windows. checked=False: also batches of more than KEPT_BYTES may have a wrong checksum; heads: only the head
    of such a batch is loaded, and is its window. read_bytes: bytes of the file read at a time, but at least one batch;
    with first_bytes so many the first time, and each time twice as many. Windows of one read share its buffer, which is
    freed with the last of them.
    """

    def __init__(
        self,
        file: File,
        start: int = 0,
        end: int | None = None,
        *,
        size: int | None = None,
        window_bytes: int = KEPT_BYTES,
        rows: int = 0,
        search: bool = True,
        verify: bool = False,
        read_bytes: int = WINDOW_BYTES,
        first_bytes: int | None = None,
        guessed: bool = False,
        anchor: tuple[int, int, int] | None = None,
        checked: bool = True,
        heads: bool = False,
    ) -> None:
        if start < 0:
            raise located(DecodeError(f"invalid file position {start}", offset=start), file.path)
        self.tail: tuple[int, int] | None = None
        self.tail_is_zeros = False  # as a broker preallocates them; else the tail is a torn batch
        self.last = -1  # offset of the last batch before what comes next, -1 if unknown
        self.looked_far = False  # near the guessed byte there was damage, so that begin() read more than it does else
        self.window_bytes, self.rows, self.search, self.verify = window_bytes, rows, search, verify
        self._guessed, self._anchor, self._heads = guessed, anchor, heads
        self._file = file.held()
        self._size = self._file.size() if size is None else min(size, self._file.size())
        self._end = self._size if end is None else min(end, self._size)
        self._at = start = min(start, self._size)  # past the end: it was truncated since that byte was chosen
        self._previous = UNKNOWN_OFFSET  # of the batch that ends at self._at, whether it is in order or not
        self._reread = (-1, 0)  # the batch that was read again last, and how often
        self._resync = _Resync(self._file, start, self._size)
        self._buffer = _Buffer(
            self._file, self._size, self._end, first_bytes or read_bytes, read_bytes, self._resync.zeros_to,
            checked)

    def __iter__(self) -> Iterator[Window]:
        self.begin()
        yield from self._windows(self._end)

    @property
    def ended(self) -> bool:
        """Has it reached the end of its bytes?"""
        return self._at >= self._end

    def begin(self) -> int:
        """The byte at which reading goes on: at first that of the first batch or bad region, the size if none."""
        start, guessed, anchor = self._at, self._guessed, self._anchor
        self._guessed, self._anchor = False, None
        if anchor is None and not guessed:
            return start
        wanted, self.search, self.verify = (self.search, self.verify), True, True
        found = False
        if anchor is not None and self.is_append(*anchor):
            self._go_to(anchor[0])
            # where reading goes on after damage, a piece between two damages must be judged as from byte 0
            sure = anchor[0] + 2 * CHAIN_BYTES if guessed or wanted[0] else 0
            found = self._walk(start, sure, tail=True) and self._is_chain(sure, tail=True)
        if guessed and not found:
            self._look_back(start)
        elif not found:
            self._go_to(start)
        self.search, self.verify = wanted
        return self._at

    def _go_to(self, position: int) -> None:
        self._at, self._previous, self.last = position, UNKNOWN_OFFSET, -1

    def is_append(self, position: int, offset: int, until: int = 0) -> bool:
        """Do valid batches begin at position, of which one ends at offset, as an index says? What is read is kept.

        until: valid batches go on, in order, to the one that ends at or after that offset (or so far that they cannot
        be in a value).
        """
        done, room, previous, ended = 0, HEADER_UP_TO_MAGIC, -1, False
        while 0 <= position + done < self._size and done < 2 * CHAIN_BYTES:
            self._buffer.load(position, room)
            data = self._buffer.at(position)
            place = self._buffer.judged(position + done, examine(self._file, position + done, self._size, data, done))
            room = done + place.size + HEADER_UP_TO_MAGIC
            if place.kind != "batch":
                return False
            self._buffer.load(position, room)
            data = self._buffer.at(position)[done:]
            hopped = hop_valid(data, 1, 0, self._size - position - done, UNKNOWN_OFFSET)[0]
            if not hopped or not previous < place.offset:
                return False
            previous = parse_header(data, 0, 0).last_offset
            ended = ended or offset in (previous, -1)
            if previous >= max(offset, until):
                return ended
            done += hopped
        return ended and (position + done >= self._size or done >= 2 * CHAIN_BYTES)

    def _look_back(self, goal: int) -> None:
        """Go to the first batch or bad region at or after goal, from a batch before it that is surely of the log."""
        if CHAIN_BYTES <= self._end - goal < 20 * _BACK_BYTES and self._looked_near(goal):
            return
        back = _BACK_BYTES
        while back < goal:
            start = goal - back
            self._resync.reach(start)
            self._buffer.extend_to(start)
            self._buffer.load(start, HEADER_UP_TO_MAGIC)
            if self._in_zeros(start, goal):
                self._go_to(self._end)
                return
            first = self._resync.first(start, goal, self._buffer.at(start), back)
            if first is not None:
                self._go_to(first)
                sure = first + 2 * CHAIN_BYTES
                if self._walk(goal, sure) and self._is_chain(sure):
                    return
            back *= 4
            self.looked_far = True
        self._resync.reach(0)
        self._go_to(0)
        self._walk(goal, 0)

    def _looked_near(self, goal: int) -> bool:
        """Go to the first batch at or after goal, if valid batches from a little before it on have all offsets."""
        near = max(2 * _REPEATED_BYTES, (self._end - goal) // 28)
        start = goal - near
        if start <= 0:
            return False
        self._resync.reach(start)
        self._buffer.load_only(start, goal)
        if self._in_zeros(start, goal):
            self._go_to(self._end)
            return True
        first = self._resync.first(start, goal - _REPEATED_BYTES, self._buffer.at(start), near)
        if first is None:
            return False
        self._go_to(first)
        sure = first + 2 * CHAIN_BYTES
        return self._walk(goal, sure, gaps=False) and self._is_chain(sure, gaps=False)

    def _in_zeros(self, start: int, goal: int) -> bool:
        """Are there only zeros from start, which is in memory, to the end of a range that begins at goal?

        Nothing begins in it then: a value of zeros, a preallocated rest of the file and damage begin before that.
        """
        view = self._buffer.at(start)
        return goal < self._end and view[:_ZEROS] == bytes(_ZEROS) and view == bytes(len(view)) and (
            end_of_zeros(self._file, start + len(view), self._end) >= self._end)

    def _walk(self, goal: int, sure: int, tail: bool = False, gaps: bool = True) -> bool:
        """Go on to the first batch or bad region at or after goal; False: there is damage before byte sure.

        tail: a torn batch or zeros at the end of the file are no damage; gaps: missing offsets are none.
        """
        previous = -1
        for window in self._windows(goal):
            if window.position < sure:
                found = _ascending(window, previous, gaps)
                if found is None:
                    return False
                previous = found
            del window
        end, self.tail = self.tail, None  # it begins before goal, so that it is not of this range
        return tail or end is None or end[0] >= sure

    def _is_chain(self, sure: int, tail: bool = False, gaps: bool = True) -> bool:
        """Do valid batches in order follow from here to byte sure, or to the end of the file?

        tail: a torn batch or zeros may be at the end of the file; gaps: offsets may be missing.
        """
        at, done, room, previous = self._at, 0, sure - self._at, self.last
        while at + done < min(sure, self._size):
            self._buffer.load(at, room + HEADER_UP_TO_MAGIC)
            data = self._buffer.at(at)
            hopped = hop_valid(data[done:], sure - at - done, 0, self._size - at - done, UNKNOWN_OFFSET, False)[0]
            found = _ascending(Window(at + done, at + done + hopped, data[done : done + hopped]), previous, gaps)
            if found is None:
                return False
            previous = found
            done += hopped
            if at + done < min(sure, self._size):
                place = self._buffer.judged(
                    at + done, examine(self._file, at + done, self._size, data, done, self._resync.zeros_to))
                if tail and place.kind == "torn":
                    return self._resync.next(at + done, previous) is None
                if place.kind != "batch" or done + place.size <= room:
                    return tail and place.kind == "zeros"
                room = done + place.size
        return True

    def _windows(self, end: int) -> Iterator[Window]:
        """Go on, up to the first batch or bad region at or after end."""
        buffer, place = self._buffer, None
        while self._at < end:
            at = self._at
            place = place or buffer.examine(at)
            if place.kind != "batch":
                yield from self._not_a_batch(at, place)
                place = None
                continue
            if self._heads and place.size > KEPT_BYTES:
                after = at + place.size
                follows = after >= self._size or (buffer.examine(after).kind == "batch" and after <= end)
                if follows or holds_at(self._file, at, place.size):
                    self._at, self._previous, self.last = after, UNKNOWN_OFFSET, -1
                    yield Window(at, after, self._file.view(at, at + RECORD_BATCH_OVERHEAD))
                else:
                    yield from self._not_a_batch(at, place._replace(kind="bad", reason=_NOTHING_FOLLOWS))
                place = None
                continue
            buffer.load(at, max(place.size + HEADER_UP_TO_MAGIC, min(buffer.piece // 2, end - at)))
            data = buffer.at(at)
            if self.verify:
                yield from self._valid(at, data, place, end)
                place = None
                continue
            done, last = hop(data[: max(place.size, self.window_bytes)], end - at, self.rows)
            if not done:  # valid for examine, but not for hop
                raise located(CorruptBatchError("unreadable batch", position=at), self._file.path)
            data = data[:done]
            place = None
            if at + done < self._size:
                place = buffer.examine(at + done)
                if (place.kind != "batch" or at + done > end) and not checksum_holds(data[last:]):
                    if last:
                        yield Window(at, at + last, data[:last])
                    place = Place("bad", 0, _NOTHING_FOLLOWS, base_offset_at(data, last))
                    yield from self._not_a_batch(at + last, place)
                    place = None
                    continue
            self._at, self._previous, self.last = at + done, UNKNOWN_OFFSET, -1
            yield Window(at, at + done, data)
            del data

    def _valid(self, at: int, data: memoryview, place: Place, end: int) -> Iterator[Window]:
        """The valid batches from `at` on, or if there is none, what is wrong with the first one."""
        room = max(place.size + HEADER_UP_TO_MAGIC, self.window_bytes)
        done, _, last, why = hop_valid(data[:room], end - at, self.rows, self._size - at, self._previous)
        if done:
            self._at, self._previous, self.last = at + done, last, last
            yield Window(at, at + done, data[:done])
        elif why == CHECKSUM:
            yield from self._not_a_batch(at, place._replace(kind="bad", reason=_WRONG_CHECKSUM))
        elif why is None:  # it has changed meanwhile
            raise located(CorruptBatchError("unreadable batch", position=at), self._file.path)
        else:
            after, follower = self.last, self._header(at + place.size)
            self._at, self._previous = at + place.size, parse_header(data, 0, at).last_offset
            reason = f"base offset is {OUT_OF_ORDER}"
            yield Window(at, self._at, data[: min(place.size, _REGION_BYTES)], reason, place.offset, after, follower)

    def _not_a_batch(self, at: int, place: Place) -> Iterator[Window]:
        """What is at `at` if it is not a valid batch: a torn tail, zeros to the end, or a bad region to skip.

        Nothing if a broker has written it in the meantime, as it does where a preallocated segment has zeros.
        """
        if place.kind == "bad" and self._is_written(at):
            self._at = at
            return
        self._at = self._size
        if place.kind == "zeros":
            self.tail, self.tail_is_zeros = (at, self._size - at), True
            return
        torn = place.kind == "torn"
        # a torn batch is the tail only if no batch follows in the whole file, past the end of the range too
        following = None
        if self.search or torn:
            following = self._resync.next(at, self.last)
        if torn and following is None:
            self.tail, self.tail_is_zeros = (at, self._size - at), False
            return
        reason = f"batch goes past the end ({place.reason}), but a valid batch follows" if torn else place.reason
        end = self._size if following is None else following
        own = at + place.size  # where it ends by its own length, if that may be right
        follower = None if following is None else self._header(following)
        if not torn and 0 < place.size < self._size - at and own < end and self._may_end(own, place.offset, follower):
            end = own
            place_after = examine(self._file, own, self._size, zeros_to=self._resync.zeros_to)
            if place_after.kind == "batch":
                self._resync.spend(place_after.size)
                follower = self._header(own) if holds_at(self._file, own, place_after.size) else follower
        self._at, self._previous = end, UNKNOWN_OFFSET
        data = self._file.view(at, min(end, at + _REGION_BYTES))
        yield Window(at, end, data, reason, place.offset, self.last, follower)

    def _is_written(self, at: int) -> bool:
        """Has the batch at a position changed since it was read? It is read again then, a few times at most."""
        if is_url(self._file.path):  # an object is replaced, never changed
            return False
        position, times = self._reread
        times = times + 1 if position == at else 0
        self._reread = at, times
        return times < _MOST_REREAD and self._buffer.has_changed(at)

    def _may_end(self, position: int, offset: int, follower: BatchHeader | None) -> bool:
        """May a batch with that base offset end at position, by the header there and the next batch of the log?"""
        place = examine(self._file, position, self._size, zeros_to=self._resync.zeros_to)
        if follower is not None:
            return place.kind == "batch" and offset < place.offset < follower.base_offset
        return place.offset > offset if place.kind in ("batch", "torn") else (
            place.kind == "zeros" and place.size >= HEADER_UP_TO_MAGIC)

    def _header(self, position: int) -> BatchHeader | None:
        """The header at position, None if it is not all there."""
        head = memoryview(self._file.read(position, min(self._size, position + RECORD_BATCH_OVERHEAD)))
        if len(head) <= MAGIC_OFFSET or len(head) < SMALLEST_BATCHES[min(2, head[MAGIC_OFFSET])]:
            return None
        return parse_header(head, 0, position)


def _ascending(window: Window, last: int, gaps: bool = True) -> int | None:
    """The last offset of a window, None if it is bad, or its offsets are not ascending, from above last on.

    gaps=False: None too if offsets are missing between batches, or may be (magic 0 and 1).
    """
    if window.bad is not None:
        return None
    for header in window_headers(window):
        if header.base_offset <= last or not (gaps or (header.magic == 2 and last in (-1, header.base_offset - 1))):
            return None
        last = header.last_offset
    return last


class _Chain(NamedTuple):
    """Valid batches one after the other: (position, base offset, last offset) of each; end: the byte after them.

    whole: there are CHAIN_BYTES of them, or they go to the end of the file.
    """

    batches: list[tuple[int, int, int]]
    end: int
    whole: bool

    @property
    def start(self) -> int:
        """Its first byte."""
        return self.batches[0][0]

    @property
    def size(self) -> int:
        """Bytes of it."""
        return self.end - self.start

    def begin(self, low: int, own_end: int, first: int, claimed: int) -> int:
        """The number of its first batch that is of the log, after damage.

        low: the last offset before the damage; own_end, first, claimed: the end of the damaged batch and its first and
        last offset, as its header says. A chain may begin in a value that holds whole batches and go on after it (in
        magic 0 and 1, and where a header's value is the last of the batch).
        """
        place = 0
        for at in range(1, len(self.batches)):
            base, before = self.batches[at][1], self.batches[place][1]
            if base <= self.batches[at - 1][2] and (low < base < before or before <= low < base):
                place = at  # what came before is not before it in the log
        own = next((at for at, batch in enumerate(self.batches) if batch[0] == own_end), None)
        if own is None and first == low + 1:  # its length is wrong: where its offsets end, then
            own = next((at for at, batch in enumerate(self.batches) if batch[1] == claimed + 1), None)
        if own is not None and own > place and self.batches[place][1] <= claimed < self.batches[own][1]:
            place = own
        return place

    def consecutive(self, place: int) -> int:
        """The number of the first batch from which no offset is missing up to that of number place."""
        while place and self.batches[place - 1][2] + 1 == self.batches[place][1]:
            place -= 1
        return place

    def fitting(self, begin: int, high: int) -> int:
        """The bytes from position begin on whose offsets are ascending, and below high."""
        last, end = -1, begin
        for at, (position, base, final) in enumerate(self.batches):
            if position >= begin:
                if not last < base <= final < high:
                    break
                last, end = final, self.batches[at + 1][0] if at + 1 < len(self.batches) else self.end
        return end - begin


class _Resync:
    """The search for the next batch of the log after damage; all searches of one pass share one budget."""

    def __init__(self, file: File, start: int, size: int) -> None:
        self._file, self._size = file, size
        # bytes that may be searched without success for pieces, and for whole chains, so that crafted input cannot make
        # the search slow
        self._start, self._budgets = start, [share * (size - start) + (4 * share << 20) for share in _SHARES]
        self._zeros = (0, 0)  # the range of zeros that was looked at last
        self._consecutive = (-1, -1)  # the end of the chain that _consecutive_to was asked for last, and its answer
        self._damage, self._spent = 0, 0  # where the search began, bytes of checksum that it cost
        # the next whole chain from that byte on; if there is none, the longest ones, each longer than those after it
        self._from = size + 1
        self._chains: list[_Chain] = []

    def reach(self, start: int) -> None:
        """Go back: a search that began there could cost more."""
        for chains, share in enumerate(_SHARES):
            self._budgets[chains] += share * max(0, self._start - start)
        self._start = min(start, self._start)

    def zeros_to(self, file: File, position: int, size: int) -> int:
        """end_of_zeros, which is remembered: many damaged batches may end at the same zeros."""
        first, end = self._zeros
        if not first <= position < end:
            end = end_of_zeros(file, position, size)
            self._zeros = (position, end)
            if end < size:
                self.spend(end - position, chains=True)
                self.spend(end - position)
        return end

    def spend(self, size: int, chains: bool = False) -> None:
        """Count bytes whose checksum was computed in vain: a bad batch may go over many others."""
        self._budgets[chains] -= size

    def next(self, position: int, last: int) -> int | None:
        """The byte of the first batch of the log after the damage at position; last: the last offset before that."""
        base, claimed, size = self._claim(position)
        self.spend(size)
        if self._budgets[False] < 0:
            return None
        chain = self._next_chain(position + 1, last)
        stop, high, low = self._size, UNKNOWN_OFFSET, last
        if chain is not None:
            stop, high = self._begin(chain, chain.begin(last, position + size if size else -1, base, claimed))
            least = max(last, base if size else -1)
            if high <= least:  # it begins with copies, as in a value: pieces are before what comes after these
                self.spend(chain.size)
                high = next((one for _, one, _ in self.follow(chain.start).batches if one > least), UNKNOWN_OFFSET)
            low = last if last < high else -1
        if low < base <= claimed < high and (base == low + 1 or (size and self._goes_on(position + size))):
            low = claimed
        due = claimed + 1 if last < base <= claimed else -1  # a piece from there on is of the log, whatever follows
        at: int | None = position
        self._damage, self._spent = position, 0
        while at is not None and (at := self._candidate(at + 1, stop, low=low + 1, high=high - 1)) is not None:
            piece = self.follow(at)
            if not piece.batches:  # it has changed meanwhile
                continue
            if (end := self._end_around(position + 1, at)) is not None:
                at = end - 1
                continue
            if piece.batches[0][1] == due:
                return at
            begin, base = piece.batches[piece.begin(low, -1, 0, -1)][:2]
            if base > low and 2 * piece.fitting(begin, high) > piece.end - at:
                return begin
            at = max(at, piece.end - 1)
        return None if chain is None else stop

    def _end_around(self, position: int, at: int) -> int | None:
        """Where the valid batch ends that begins in [position, at) and holds byte `at`, None if there is none."""
        found: int | None = position - 1
        while found is not None and (found := self._candidate(found + 1, at, followed=True)) is not None:
            end = found + examine(self._file, found, self._size).size
            if end > at:
                return end
            found = end - 1
        return None

    def first(self, position: int, end: int, view: memoryview, near: int | None = None) -> int | None:
        """The byte of the first valid batch in [position, end), whether it is of the log or not.

        near: _candidate's; then one that ends after the view is not checked, which the caller does as it goes on.
        """
        return self._candidate(position, end, view, followed=True, near=near)

    def _begin(self, chain: _Chain, place: int) -> tuple[int, int]:
        """(position, base offset) of the batch with which the log goes on in a chain: of number place, or before it.

        Before it is a reader that begins in the middle (_looked_near) could not see that these batches are there twice.
        """
        first = chain.consecutive(len(chain.batches) - 1)
        start = chain.batches[first][0]
        if chain.batches[place][0] - start > _REPEATED_BYTES:
            end = self._consecutive_to(chain)
            if end >= start + 2 * CHAIN_BYTES or (end == self._size and end >= start + CHAIN_BYTES):
                place = first
        return chain.batches[place][:2]

    def _consecutive_to(self, chain: _Chain) -> int:
        """The byte to which batches without a missing offset follow the last one of a chain, as far as that matters."""
        if self._consecutive[0] != chain.end:
            before, end = chain.batches[-1], chain.end
            while end < chain.start + 3 * CHAIN_BYTES:
                more = self.follow(end)
                batches = [before, *more.batches]
                missing = [batch[0] for last, batch in pairwise(batches) if last[2] + 1 != batch[1]]
                if missing or not more.batches:
                    end = min([*missing, more.end])
                    break
                before, end = batches[-1], more.end
            self._consecutive = (chain.end, end)
        return self._consecutive[1]

    def _goes_on(self, position: int) -> bool:
        """Is there the end of the file, a header, or zeros to the end?"""
        return position == self._size or (
            examine(self._file, position, self._size, zeros_to=self.zeros_to).kind in ("batch", "zeros"))

    def _claim(self, position: int) -> tuple[int, int, int]:
        """(base offset, last offset, size) of the damaged batch at position, as its header says."""
        head = memoryview(self._file.read(position, min(self._size, position + RECORD_BATCH_OVERHEAD)))
        if len(head) < RECORD_BATCH_OVERHEAD:
            return -1, -1, 0
        base = base_offset_at(head, 0)
        place = examine(self._file, position, self._size, head, 0)
        delta = 0 if head[MAGIC_OFFSET] < 2 else int.from_bytes(head[_LAST_OFFSET_DELTA], "big", signed=True)
        if not 0 < int.from_bytes(head[_COUNT], "big") <= delta + 1:  # not both can be right
            delta = 0
        return base, base + max(0, delta), place.size if place.kind == "batch" else 0

    def _next_chain(self, position: int, low: int) -> _Chain | None:
        """The first whole chain at or after position. Where there is none, the longest one, above low if one is."""
        if position < self._from or (self._chains and self._chains[0].whole and self._chains[0].start < position):
            self._find_chains(position)
        while self._chains and self._chains[0].start < position:
            self._chains.pop(0)
        return next((chain for chain in self._chains if chain.batches[0][1] > low), next(iter(self._chains), None))

    def _find_chains(self, position: int) -> None:
        self._from, self._chains = position, []
        at: int | None = position
        while at is not None and (at := self._candidate(at, self._size, followed=True)) is not None:
            chain = self.follow(at, chains=True)
            if not chain.batches:  # it has changed meanwhile
                at += 1
                continue
            if chain.whole:
                self._chains = [chain]
                return
            while self._chains and self._chains[-1].size < chain.size:
                self._chains.pop()
            self._chains.append(chain._replace(batches=chain.batches[:1]))
            at = max(at + 1, chain.end)

    def follow(self, start: int, chains: bool = False) -> _Chain:
        """The chain of valid batches from start on. chains: it is searched for a whole one."""
        batches: list[tuple[int, int, int]] = []
        at, stop = start, min(self._size, start + CHAIN_BYTES)
        buffer = _Buffer(self._file, self._size, stop, *_SEARCH_BYTES, self.zeros_to)
        while at < stop:
            place = buffer.examine(at)
            if place.kind != "batch":
                self.spend(place.size if place.reason == _WRONG_CHECKSUM else 0, chains)
                break
            buffer.load(at, place.size + HEADER_UP_TO_MAGIC)
            data = buffer.at(at)
            done = hop_valid(data, stop - at, 0, self._size - at, UNKNOWN_OFFSET, False)[0]
            if not done:
                self.spend(place.size, chains)
                break
            for header in window_headers(Window(at, at + done, data[:done])):
                batches.append((header.position, header.base_offset, header.last_offset))
            at += done
        return _Chain(batches, at, at >= stop and bool(batches))

    def _candidate(
        self,
        position: int,
        end: int,
        view: memoryview | None = None,
        *,
        low: int = 0,
        high: int = UNKNOWN_OFFSET,
        followed: bool = False,
        near: int | None = None,
    ) -> int | None:
        """The byte of the next valid batch in [position, end) with a base offset in [low, high].

        view: bytes from position on, already in memory; followed: after it is the end, or another header or zeros may
        be; near: after one of more bytes than that, the end or a batch with an offset not far above its own must be
        (what only looks like a batch may claim 2 GiB, over which the checksum would be computed).
        """
        file, size = self._file, self._size
        span, most = _SEARCH_BYTES
        while position < end:
            if view is None or len(view) < HEADER_UP_TO_MAGIC:
                # of the zeros before data only the last may be the beginning of a header
                position = max(position, file.after_hole(position) - HEADER_UP_TO_MAGIC)
                view = file.view(position, min(size, position + span))
                span = min(2 * span, most)
            at, stop = -1, min(len(view) - HEADER_UP_TO_MAGIC + 1, end - position)
            while (at := find_header(view, at + 1, stop, size - position, low, high, followed)) >= 0:
                here = position + at
                place = examine(file, here, size, view, at, self.zeros_to)
                if place.kind != "batch":
                    continue
                if followed:
                    wanted = self._is_followed(here, place, view, at, near)
                else:
                    self._spent += place.size
                    wanted = self._spent <= _PIECE_COST + 8 * (here - self._damage)
                cost = _TRIAL + (place.size if wanted else 0)
                if cost > self._budgets[followed]:
                    return None
                # where near is given, the caller checks what it is given: a large batch is not read twice
                known = near is not None and at + place.size > len(view)
                if wanted and (known or holds_at(file, here, place.size, view, at)):
                    self._spent = 0
                    return here
                self._budgets[followed] -= cost
            if position + len(view) >= size:
                return None
            position += max(1, len(view) - HEADER_UP_TO_MAGIC + 1)
            view = None
        return None

    def _is_followed(self, position: int, place: Place, view: memoryview, at: int, near: int | None) -> bool:
        """Does what may follow a batch come after this one, which is byte `at` of view? near: as in _candidate."""
        file, size, following = self._file, self._size, position + place.size
        if following == size:
            return True
        if near is not None and place.size > near:
            return _may_follow(place, file, following, size)
        return examine(file, following, size, view, at + place.size, self.zeros_to).kind != "bad"


class RegionSearch:
    """The search for valid batches in bad regions of a file, of the log or not; all searches share one budget."""

    def __init__(self, file: File) -> None:
        self._file, self._size = file, file.size()
        self._resync = _Resync(file, 0, self._size)

    def chains(self, start: int, end: int) -> Iterator[list[tuple[int, int, int]]]:
        """(position, base offset, last offset) of valid batches one after the other, for each chain in [start, end).

        The batch that begins at start by its header is skipped with all that is in it.
        """
        place = examine(self._file, start, self._size)
        at: int | None = start + max(1, place.size if place.kind == "batch" else 0)
        while at is not None and (at := self._resync.first(at, end, _NOTHING)) is not None:
            chain = self._resync.follow(at)
            ends = [*(batch[0] for batch in chain.batches[1:]), chain.end]
            batches = [batch for batch, until in zip(chain.batches, ends, strict=False) if until <= end]
            if batches:
                yield batches
            at = max(at + 1, chain.end)

    def follow(self, start: int) -> list[tuple[int, int, int]]:
        """The valid batches from start on, one after the other; no more than CHAIN_BYTES of them."""
        return self._resync.follow(start).batches


def _may_follow(place: Place, file: File, position: int, size: int) -> bool:
    """Does a header at position have an offset not far above that of the batch before it?"""
    head = memoryview(file.read(position, position + HEADER_UP_TO_MAGIC))
    if len(head) < HEADER_UP_TO_MAGIC or not 0 < base_offset_at(head, 0) - place.offset < _FAR_OFFSETS:
        return False
    return examine(file, position, size, head, 0).kind in ("batch", "torn")


def resync(file: File, position: int, end: int | None = None) -> int | None:
    """The byte of the next valid batch (magic, length, CRC) at or after position, None if there is none before end."""
    if not hasattr(file, "held"):
        raise TypeError(f"file must be a File, as LogSegment.file, not {type(file).__name__}")
    check_ints(end=end)
    position = check_int(position, "position")
    if position < 0:
        raise located(DecodeError(f"invalid file position {position}", offset=position), file.path)
    file = file.held()
    size = file.size()
    return _Resync(file, position, size).first(position, size if end is None else min(end, size), _NOTHING)


@shared
def headers(file: File, start: int = 0, end: int | None = None) -> Iterator[BatchHeader]:
    """The headers of the batches that begin in bytes [start, end) of the file; start must be a batch boundary.

    Stops before a torn tail or trailing zeros. Raises CorruptBatchError (.file .position) at bytes that are not a
    batch.
    """
    for window in Scanner(file, start, end, search=False, checked=False, heads=True):
        if window.bad is not None:
            raise located(CorruptBatchError(window.bad, position=window.position, offset=window.offset), file.path)
        yield from window_headers(window)


def window_headers(window: Window) -> Iterator[BatchHeader]:
    """The headers of the batches in one window; positions are bytes in the file."""
    at, data, position = 0, window.data, window.position
    while at < len(data):
        header = parse_header(data, at, position + at)
        yield header
        at += header.size
