"""Hops over batch headers without decoding: boundaries, windows, the search for the next valid batch."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kwire.errors import CorruptBatchError, DecodeError
from kwire.shared_iterator import shared
from kwire.storage.batch_header import (
    BatchHeader,
    Place,
    base_offset_at,
    checksum_holds,
    end_of_zeros,
    examine,
    parse_header,
    stored_checksum,
)
from kwire.storage.filesystem import located
from kwire_c.crc32c import crc32c
from kwire_c.log_scan import find_header, hop
from kwire_c.record_batch import (
    ATTRIBUTES_OFFSET,
    HEADER_UP_TO_MAGIC,
    MAGIC_OFFSET,
    RECORD_BATCH_OVERHEAD,
)

if TYPE_CHECKING:
    from kwire.storage.filesystem import File

# bytes read at a time: few enough that they are still in the CPU's caches when they are decoded
WINDOW_BYTES = 5 << 18
KEPT_BYTES = 32 << 20  # where the bytes are kept (views): few large buffers, which can have huge pages
OBJECT_BYTES = 1 << 18  # for records as objects: a single record keeps that much in memory
_REGION_BYTES = 1 << 20  # of a bad region that a window holds
_SEARCH_BYTES = 64 << 10, 8 << 20  # that a search reads at a time: at first, at most
_TRIAL = 1 << 14  # cost of one candidate that is not a batch, in bytes of checksum


class Window(NamedTuple):
    """Bytes [position, end) of a segment. bad is None: whole batches, one after the other; data holds them all.

    bad is a text: a region without valid batches, and why it is bad; data holds its first bytes, offset is the base
    offset at its beginning (-1 if unreadable).
    """

    position: int
    end: int
    data: memoryview
    bad: str | None = None
    offset: int = -1


def is_valid(file: File, position: int, size: int) -> bool:
    """Is there a batch at position with a valid header and checksum, followed by the end, zeros, or another header?"""
    file = file.held()
    place = examine(file, position, size)
    if place.kind != "batch" or not _holds_at(file, position, place.size):
        return False
    following = position + place.size
    return following == size or examine(file, following, size).kind != "bad"


def _holds_at(file: File, position: int, size: int) -> bool:
    """checksum_holds for a batch in the file, in pieces: a batch may be larger than memory."""
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


class Scanner:
    """Windows of whole batches over bytes [start, end) of a file; at the end, tail is (position, bytes left) or None.

    window_bytes: most bytes of a window, but at least one batch; rows: about the rows of a window (0: no limit).
    search=False: a bad region goes to the end, without a search for the next valid batch. read_bytes: bytes of the
    file read at a time, but at least one batch; windows of one read share its buffer, which is freed with the last of
    them. window_bytes, rows and read_bytes may be changed between windows.
    """

    def __init__(
        self,
        file: File,
        start: int = 0,
        end: int | None = None,
        *,
        window_bytes: int = KEPT_BYTES,
        rows: int = 0,
        search: bool = True,
        read_bytes: int = WINDOW_BYTES,
    ) -> None:
        if start < 0:
            raise located(DecodeError(f"invalid file position {start}", offset=start), file.path)
        self.tail: tuple[int, int] | None = None
        self.window_bytes, self.rows = window_bytes, rows
        self._file, self._search, self.read_bytes = file.held(), search, read_bytes
        self._size = self._file.size()
        self._end = self._size if end is None else min(end, self._size)
        self._at = start
        self._resync = _Resync(self._file, start, self._size)
        self._view, self._begin = memoryview(b""), start  # a part of the file and its first byte

    def _load(self, at: int, room: int) -> None:
        """Read until the `room` bytes at `at` are in memory."""
        if at + room <= self._begin + len(self._view):
            return
        wanted = min(self._size, max(at + room, min(at + self.read_bytes, self._end + HEADER_UP_TO_MAGIC)))
        rest = self._view[max(0, at - self._begin) :]  # the beginning of a batch: it is not read twice
        self._view = memoryview(b"")
        self._view = self._file.view(at + len(rest), wanted, rest)
        self._begin = at

    def _examine(self, at: int) -> Place:
        self._load(at, min(HEADER_UP_TO_MAGIC, self._size - at))
        return examine(self._file, at, self._size, self._view, at - self._begin)

    def __iter__(self) -> Iterator[Window]:
        place = None
        while self._at < self._end:
            at = self._at
            place = place or self._examine(at)
            if place.kind != "batch":
                yield from self._not_a_batch(at, place)
                place = None
                continue
            self._load(at, max(place.size, min(self.read_bytes // 2, self._end - at)))
            data = self._view[at - self._begin :]
            done, last = hop(data[: max(place.size, self.window_bytes)], self._end - at, self.rows)
            if not done:  # valid for examine, but not for hop
                raise located(CorruptBatchError("unreadable batch", position=at), self._file.path)
            data = data[:done]
            place = None
            if at + done < self._size:
                place = self._examine(at + done)
                if (place.kind != "batch" or at + done > self._end) and not checksum_holds(data[last:]):
                    if last:
                        yield Window(at, at + last, data[:last])
                    reason = "checksum does not match, and no batch follows at the end that its length gives"
                    place = Place("bad", 0, reason, base_offset_at(data, last))
                    yield from self._not_a_batch(at + last, place)
                    place = None
                    continue
            self._at = at + done
            yield Window(at, at + done, data)
            del data

    def _not_a_batch(self, at: int, place: Place) -> Iterator[Window]:
        """What is at `at` if it is not a batch: a torn tail, zeros to the end, or a bad region to skip."""
        self._at = self._size
        if place.kind == "zeros":
            self.tail = (at, self._size - at)
            return
        torn = place.kind == "torn"
        # a torn batch is the tail only if no batch follows in the whole file, past the end of the range too
        following = None
        if self._search or torn:
            view = self._view[at + 1 - self._begin :] if at >= self._begin else None
            following = self._resync.next(at + 1, self._size if torn else self._end, view)
        if torn and following is None:
            self.tail = (at, self._size - at)
            return
        reason = f"batch goes past the end ({place.reason}), but a valid batch follows" if torn else place.reason
        self._at = self._end if following is None else min(following, self._end)
        yield Window(at, self._at, self._file.view(at, min(self._at, at + _REGION_BYTES)), reason, place.offset)


class _Resync:
    """The search for the next valid batch in a file; all searches of one pass share one budget."""

    def __init__(self, file: File, start: int, size: int) -> None:
        self._file, self._size = file, size
        # bytes that may be searched without success, so that crafted input cannot make the search slow
        self._budget = 64 * (size - start) + (256 << 20)
        self._zeros = (0, 0)  # a range of zeros that does not reach the end of the file

    def _zeros_to(self, file: File, position: int, size: int) -> int:
        first, end = self._zeros
        if not first <= position < end:
            end = end_of_zeros(file, position, size)
            self._budget -= end - position
            if end == size:
                return size
            self._zeros = (position, end)
        return end

    def next(self, position: int, end: int, view: memoryview | None = None) -> int | None:
        """The byte of the next valid batch in [position, end); view: bytes from position on, already in memory."""
        file, size = self._file, self._size
        span, most = _SEARCH_BYTES
        while position < end:
            if view is None or len(view) < HEADER_UP_TO_MAGIC:
                view = file.view(position, min(size, position + span))
                span = min(2 * span, most)
            at, stop = -1, min(len(view) - HEADER_UP_TO_MAGIC + 1, end - position)
            while (at := find_header(view, at + 1, stop, size - position)) >= 0:
                here = position + at
                place = examine(file, here, size, view, at, self._zeros_to)
                if place.kind != "batch":
                    continue
                following = here + place.size
                followed = following == size or (
                    examine(file, following, size, view, at + place.size, self._zeros_to).kind != "bad")
                cost = _TRIAL + (place.size if followed else 0)
                if cost > self._budget:
                    return None
                if followed and _holds_at(file, here, place.size):
                    return here
                self._budget -= cost
            if position + len(view) >= size:
                return None
            position += max(1, len(view) - HEADER_UP_TO_MAGIC + 1)
            view = None
        return None


def resync(file: File, position: int, end: int | None = None) -> int | None:
    """The byte of the next valid batch (magic, length, CRC) at or after position, None if there is none before end."""
    if position < 0:
        raise located(DecodeError(f"invalid file position {position}", offset=position), file.path)
    file = file.held()
    size = file.size()
    return _Resync(file, position, size).next(position, size if end is None else min(end, size))


@shared
def headers(file: File, start: int = 0, end: int | None = None) -> Iterator[BatchHeader]:
    """The headers of the batches that begin in bytes [start, end) of the file; start must be a batch boundary.

    Stops before a torn tail or trailing zeros. Raises CorruptBatchError (.file .position) at bytes that are not a
    batch.
    """
    for window in Scanner(file, start, end, search=False):
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
