"""Hops over batch headers without decoding: boundaries, windows, the search for the next sound batch."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kwire.shared_iterator import shared
from kwire.storage.source import located
from kwire_c.codecs import codec_name
from kwire_c.crc32c import crc32c
from kwire_c.failure import CorruptBatchError, DecodeError
from kwire_c.scan import find_header, hop

if TYPE_CHECKING:
    from kwire.storage.source import Source

# bytes read at a time: small enough that they are in the processor's caches when they are decoded
WINDOW_BYTES = 5 << 18
KEPT_BYTES = 32 << 20  # where they are kept as they are: in few pieces, for which there are huge pages
OBJECT_BYTES = 1 << 18  # for records as objects: one record that a user keeps keeps so much
_HEAD = 17  # bytes up to the magic, in every format
_HEAD_V2 = 61
_MINIMUM, _MAXIMUM = 14, (1 << 31) - 13  # other lengths are corrupt in every format
_SMALLEST = (26, 34, 61)  # bytes of the smallest batch of each magic
_ZEROS = bytes(1 << 16)
_REGION_BYTES = 1 << 20  # of a bad region, that much is shown
_SEARCH_BYTES = 64 << 10, 8 << 20  # that are looked through at a time: at first, at most
_TRIAL = 1 << 14  # what looking at one place in vain costs, in bytes of checksum

_start = Struct(">qiib").unpack_from  # base offset, length, epoch (or checksum), magic
_v2 = Struct(">qiibIhiqqqhii").unpack_from
_legacy = Struct(">qiIbBq").unpack_from


class BatchHeader(NamedTuple):
    """One batch as its header tells it (magic 0 and 1: one entry or compressed wrapper); nothing is decoded.

    position and size are bytes in the file. Magic 0 and 1 know no base_offset of compressed wrappers: it is then the
    last offset. What a format lacks is -1, as is the count of a wrapper. Times are milliseconds; crc is unsigned.
    """

    position: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    partition_leader_epoch: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]

    @property
    def is_transactional(self) -> bool:
        """Does the batch belong to a transaction?"""
        return self.magic == 2 and self.attributes & 0x10 != 0

    @property
    def is_control(self) -> bool:
        """Does the batch hold control records (markers) instead of data?"""
        return self.magic == 2 and self.attributes & 0x20 != 0

    @property
    def codec(self) -> str:
        """"none", "gzip", "snappy", "lz4", "zstd", or the number of an unknown codec as text."""
        return codec_name(self.attributes & 7)

    @property
    def timestamp_type(self) -> str:
        """"none" (magic 0), "create" or "log_append"."""
        return "none" if self.magic == 0 else "log_append" if self.attributes & 8 else "create"


class Window(NamedTuple):
    """Bytes [position, end) of a segment. bad None: whole batches, one behind the other, and data holds them all.

    bad a text: no batches that can be trusted, and why; data holds the region's first bytes, offset is the base offset
    that stands at its begin (-1 unreadable).
    """

    position: int
    end: int
    data: memoryview
    bad: str | None = None
    offset: int = -1


class Place(NamedTuple):
    """What stands somewhere: kind "batch", "torn" (goes past the end), "zeros" (to the end) or "bad"; size; why."""

    kind: str
    size: int
    reason: str
    offset: int


def parse_header(data: memoryview, at: int, position: int) -> BatchHeader:
    """The header of the batch at byte `at` of data, which holds all of it; position: what the header reports."""
    base, length, epoch, magic = _start(data, at)
    if magic == 2:
        _, _, _, _, crc, attributes, delta, base_time, max_time, producer, term, sequence, count = _v2(data, at)
        return BatchHeader(position, 12 + length, 2, base, base + delta, epoch, crc, attributes, base_time, max_time,
                           producer, term, sequence, count)
    _, _, crc, _, attributes, time = _legacy(data, at)
    time = time if magic == 1 else -1
    return BatchHeader(position, 12 + length, magic, base, base, -1, crc, attributes, time, time, -1, -1, -1,
                       -1 if attributes & 7 else 1)


def _zeros_to(source: Source, position: int, size: int) -> int:
    """Where the zeros from position on end, or less than a piece before that; size where they go to the end."""
    while position < size:
        piece = source.read(position, min(size, position + len(_ZEROS)))
        if piece != _ZEROS[: len(piece)]:
            return position
        if not piece:  # they were cut off meanwhile, as a broker does that closes a preallocated file
            return size
        position += len(piece)
    return size


def examine(
    source: Source,
    position: int,
    size: int,
    view: memoryview | None = None,
    at: int = 0,
    zeros_to: Callable[[Source, int, int], int] = _zeros_to,
) -> Place:
    """What stands at position of a file of `size` bytes, by its header. view: bytes of it, position is its byte at."""
    left = size - position
    head: memoryview | bytes = b"" if view is None else view[at : at + _HEAD]
    if len(head) < min(_HEAD, left):
        head = source.read(position, min(size, position + _HEAD))
    if head and bytes(head) == _ZEROS[: len(head)] and zeros_to(source, position, size) == size:
        return Place("zeros", left, "zeros to the end of the file", -1)
    if len(head) < _HEAD:
        return Place("torn", left, f"{left} bytes left, {_HEAD} needed at least", -1)
    base, length, _, magic = _start(head, 0)
    if length < _MINIMUM:
        return Place("bad", left, f"batch length {length} is below {_MINIMUM}", base)
    if length > _MAXIMUM:
        return Place("bad", left, f"batch length {length} is above {_MAXIMUM}", base)
    if not 0 <= magic <= 2:
        return Place("bad", left, f"unknown magic {magic}", base)
    if length + 12 < _SMALLEST[magic]:
        return Place("bad", left, f"batch length {length} is too small for magic {magic}", base)
    if length + 12 > left:
        return Place("torn", left, f"{left} bytes left, {length + 12} needed", base)
    return Place("batch", length + 12, "", base)


def checksum_holds(data: memoryview) -> bool:
    """Does the checksum of the one batch that data holds match? CRC-32C in magic 2, CRC-32 before."""
    if data[16] == 2:
        return bool(crc32c(data[21:]) == int.from_bytes(data[17:21], "big"))
    return zlib.crc32(data[16:]) == int.from_bytes(data[12:16], "big")


def is_sound(source: Source, position: int, size: int) -> bool:
    """Is there a batch at position whose header and checksum hold, and behind it the end, zeros, or another header?"""
    source = source.held()
    place = examine(source, position, size)
    if place.kind != "batch" or not _holds_at(source, position, place.size):
        return False
    behind = position + place.size
    return behind == size or examine(source, behind, size).kind != "bad"


def _holds_at(source: Source, position: int, size: int) -> bool:
    """checksum_holds of a batch in the file; one of magic 2 may be larger than memory."""
    if size <= WINDOW_BYTES:
        return checksum_holds(source.view(position, position + size))
    head = source.read(position, position + _SMALLEST[2])
    if len(head) < _SMALLEST[2]:  # the file was cut meanwhile
        return False
    at, crc = (21, crc32c) if head[16] == 2 else (16, zlib.crc32)
    value = 0
    while at < size:
        piece = min(size, at + WINDOW_BYTES)
        value = crc(source.view(position + at, position + piece), value)
        at = piece
    return value == int.from_bytes(head[17:21] if head[16] == 2 else head[12:16], "big")


class Scanner:
    """Windows of whole batches over bytes [start, end) of a source; at the end, tail is (position, bytes left) or None.

    window_bytes: at most that much a window, but at least a batch; rows: about that many rows a window (0: no limit);
    both may be changed between windows. search=False: a bad region goes to the end, without the search for the next
    sound batch. read_bytes: of the file are read at a time, at least a batch; the windows in a piece that was read
    share it, and it goes away with the last of them.
    """

    def __init__(
        self,
        source: Source,
        start: int = 0,
        end: int | None = None,
        *,
        window_bytes: int = KEPT_BYTES,
        rows: int = 0,
        search: bool = True,
        read_bytes: int = WINDOW_BYTES,
    ) -> None:
        if start < 0:
            raise located(DecodeError(f"position {start} is no byte of a file", offset=start), source.path)
        self.tail: tuple[int, int] | None = None
        self.window_bytes, self.rows = window_bytes, rows
        self._source, self._search, self._read_bytes = source.held(), search, read_bytes
        self._size = self._source.size()
        self._end = self._size if end is None else min(end, self._size)
        self._at = start
        self._resync = _Resync(self._source, start, self._size)
        self._view, self._begin = memoryview(b""), start  # a piece of the file and its first byte

    def _load(self, at: int, room: int) -> None:
        """Have the room bytes at `at` in view."""
        if at + room <= self._begin + len(self._view):
            return
        wanted = min(self._size, max(at + room, min(at + self._read_bytes, self._end + _HEAD)))
        rest = self._view[max(0, at - self._begin) :]  # the beginning of a batch: it is not read once more
        self._view = memoryview(b"")
        self._view = self._source.view(at + len(rest), wanted, rest)
        self._begin = at

    def _examine(self, at: int) -> Place:
        self._load(at, min(_HEAD, self._size - at))
        return examine(self._source, at, self._size, self._view, at - self._begin)

    def __iter__(self) -> Iterator[Window]:
        place = None
        while self._at < self._end:
            at = self._at
            place = place or self._examine(at)
            if place.kind != "batch":
                yield from self._strange(at, place)
                place = None
                continue
            self._load(at, max(place.size, min(self._read_bytes // 2, self._end - at)))
            data = self._view[at - self._begin :]
            done, last = hop(data[: max(place.size, self.window_bytes)], self._end - at, self.rows)
            if not done:  # a batch that the one and not the other takes for sound
                raise located(CorruptBatchError("no batch that can be read", position=at), self._source.path)
            data = data[:done]
            place = None
            if at + done < self._size:
                place = self._examine(at + done)
                if (place.kind != "batch" or at + done > self._end) and not checksum_holds(data[last:]):
                    if last:
                        yield Window(at, at + last, data[:last])
                    reason = "checksum does not match, and no batch follows where its length says"
                    place = Place("bad", 0, reason, _start(data, last)[0])
                    yield from self._strange(at + last, place)
                    place = None
                    continue
            self._at = at + done
            yield Window(at, at + done, data)
            del data

    def _strange(self, at: int, place: Place) -> Iterator[Window]:
        """A torn tail, zeros at the end, or a region to leap over."""
        self._at = self._size
        if place.kind == "zeros":
            self.tail = (at, self._size - at)
            return
        torn = place.kind == "torn"
        # a torn batch is one only where no batch follows in the whole file, behind a cut too
        following = None
        if self._search or torn:
            view = self._view[at + 1 - self._begin :] if at >= self._begin else None
            following = self._resync.next(at + 1, self._size if torn else self._end, view)
        if torn and following is None:
            self.tail = (at, self._size - at)
            return
        reason = f"length goes past the end ({place.reason}), yet a batch follows" if torn else place.reason
        self._at = self._end if following is None else min(following, self._end)
        yield Window(at, self._at, self._source.view(at, min(self._at, at + _REGION_BYTES)), reason, place.offset)


class _Resync:
    """The search for the next sound batch, again and again in one file; all of it together has one budget."""

    def __init__(self, source: Source, start: int, size: int) -> None:
        self._source, self._size = source, size
        # bytes that may be looked at in vain, so that crafted input cannot make this crawl
        self._budget = 64 * (size - start) + (256 << 20)
        self._zeros = (0, 0)  # where bytes are zeros that do not go to the end

    def _zeros_to(self, source: Source, position: int, size: int) -> int:
        first, behind = self._zeros
        if not first <= position < behind:
            behind = _zeros_to(source, position, size)
            self._budget -= behind - position
            if behind == size:
                return size
            self._zeros = (position, behind)
        return behind

    def next(self, position: int, end: int, view: memoryview | None = None) -> int | None:
        """The byte of the next sound batch in [position, end); view: bytes from position on that are there."""
        source, size = self._source, self._size
        span, most = _SEARCH_BYTES
        while position < end:
            if view is None or len(view) < _HEAD:
                view = source.view(position, min(size, position + span))
                span = min(2 * span, most)
            at, stop = -1, min(len(view) - _HEAD + 1, end - position)
            while (at := find_header(view, at + 1, stop, size - position)) >= 0:
                here = position + at
                place = examine(source, here, size, view, at, self._zeros_to)
                if place.kind != "batch":
                    continue
                behind = here + place.size
                followed = behind == size or (
                    examine(source, behind, size, view, at + place.size, self._zeros_to).kind != "bad")
                cost = _TRIAL + (place.size if followed else 0)
                if cost > self._budget:
                    return None
                if followed and _holds_at(source, here, place.size):
                    return here
                self._budget -= cost
            if position + len(view) >= size:
                return None
            position += max(1, len(view) - _HEAD + 1)
            view = None
        return None


def resync(source: Source, position: int, end: int | None = None) -> int | None:
    """The byte of the next sound batch (magic, length, CRC) at or behind position, None if there is none before end."""
    if position < 0:
        raise located(DecodeError(f"position {position} is no byte of a file", offset=position), source.path)
    source = source.held()
    size = source.size()
    return _Resync(source, position, size).next(position, size if end is None else min(end, size))


@shared
def headers(source: Source, start: int = 0, end: int | None = None) -> Iterator[BatchHeader]:
    """The headers of the batches that begin in bytes [start, end) of source; start must be a batch boundary.

    Stops before a torn tail or trailing zeros. Raises CorruptBatchError (.file .position) where bytes are no batches.
    """
    for window in Scanner(source, start, end, search=False):
        if window.bad is not None:
            raise located(CorruptBatchError(window.bad, position=window.position, offset=window.offset), source.path)
        yield from window_headers(window)


def window_headers(window: Window) -> Iterator[BatchHeader]:
    """The headers of the batches in one window; positions are those in the file."""
    at, data, position = 0, window.data, window.position
    while at < len(data):
        header = parse_header(data, at, position + at)
        yield header
        at += header.size
