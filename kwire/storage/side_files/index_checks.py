"""An .index and a .timeindex compared with the log beside them, entry by entry, as kafka-dump-log does."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from struct import Struct, iter_unpack
from typing import NamedTuple

from kwire.errors import CorruptBatchError, LimitError, UnsupportedVersionError
from kwire.storage.batches.batch_header import BatchHeader
from kwire.storage.batches.file_batches import FileBatches, loaded
from kwire.storage.places.filesystem import File, located
from kwire.storage.side_files.indexes import MOST_BYTES, AbortedTransaction
from kwire_c.record_batch import SMALLEST_BATCHES

_MOST_KEPT = 1 << 20  # headers that are remembered
_SPARE_BYTES = 16 << 20  # of a small log, which may be read that often
_OFFSET_ENTRY, _TIME_ENTRY = Struct(">ii"), Struct(">qi")  # Kafka reads positions as signed numbers


class OffsetEntry(NamedTuple):
    """An entry of an .index and the last offset of the batch at its position (the same, if the index is valid)."""

    offset: int
    position: int
    log_offset: int


class TimeEntry(NamedTuple):
    """An entry of a .timeindex, and what the log has there.

    log_offset: last offset of the first batch that ends at or after the entry's offset, -1 if there is none;
    log_timestamp: the largest timestamp in that batch if it ends at that very offset, else None; previous: the
    timestamp of the entry before, -1 at the first one.
    """

    timestamp: int
    offset: int
    log_offset: int
    log_timestamp: int | None
    previous: int


def index_bytes(file: File) -> bytes:
    """The whole index. Raises LimitError (.file) for more than 64 MiB."""
    file = file.held()
    size = file.size()
    if size > MOST_BYTES:
        raise located(LimitError("too large for an index", limit=MOST_BYTES, needed=size), file.path)
    return file.read(0, size)


def offset_index_damage(data: bytes, base_offset: int, name: str) -> str | None:
    """Why a broker would rebuild the .index at startup (OffsetIndex.sanityCheck), or None. name: of the file."""
    width = _OFFSET_ENTRY.size
    count = len(data) // width
    last = base_offset + (_OFFSET_ENTRY.unpack_from(data, (count - 1) * width)[0] if count else 0)
    if last < base_offset:
        return (f"Corrupt index found, index file {name} has non-zero size but the last offset is {last} which is less "
                f"than the base offset {base_offset}")
    if len(data) % width:
        return f"Index file {name} is corrupt, found {len(data)} bytes which is neither positive nor a multiple of 8"
    return None


def time_index_damage(data: bytes, base_offset: int, name: str) -> str | None:
    """Why a broker would rebuild the .timeindex at startup (TimeIndex.sanityCheck), or None. name: of the file."""
    width = _TIME_ENTRY.size
    count = len(data) // width
    start = f"Corrupt time index found, time index file ({name}) has non-zero size but the last"
    if count:
        first, (last, offset) = _TIME_ENTRY.unpack_from(data)[0], _TIME_ENTRY.unpack_from(data, (count - 1) * width)
        if last < first:
            return f"{start} timestamp is {last} which is less than the first timestamp {first}"
        if offset < 0:
            return f"{start} offset is {base_offset + offset} which is less than the first offset {base_offset}"
    if len(data) % width:
        return (f"Time index file {name} is corrupt, found {len(data)} bytes which is neither positive nor a multiple "
                "of 12")
    return None


def offset_entries(data: bytes, base_offset: int, log: File, most: int) -> Iterator[OffsetEntry]:
    """The entries of an .index, each with the batch at its position; preallocated zeros after the first end it.

    most: bytes that a batch may have (--max-message-size). Raises CorruptBatchError (.file) where there is no batch.
    """
    log = log.held()
    for number, (relative, position) in enumerate(_pairs(_OFFSET_ENTRY, data)):
        if relative == 0 and number:
            return
        header = _batch_at(log, position, most)
        yield OffsetEntry(base_offset + relative, position, header.last_offset)


def time_entries(data: bytes, offset_index: bytes, base_offset: int, log: File) -> Iterator[TimeEntry]:
    """The entries of a .timeindex, each with the batch of its offset; preallocated zeros after the first end it.

    offset_index: the .index beside, by which the batch is found. Raises CorruptBatchError (.file), LimitError (.file)
    for damaged indexes that lead over the same batches again and again.
    """
    positions, walks = _Positions(offset_index, base_offset), _Walks(log.held())
    previous = -1
    for number, (timestamp, relative) in enumerate(_pairs(_TIME_ENTRY, data)):
        if relative == 0 and number:
            return
        offset = base_offset + relative
        found, position, end = walks.first(positions.below(offset), offset)
        if found != offset:
            yield TimeEntry(timestamp, offset, found, None, previous)
        else:
            yield TimeEntry(timestamp, offset, offset, walks.largest_timestamp(position, end), previous)
        previous = timestamp


def aborted_entries(file: File) -> list[AbortedTransaction]:
    """The entries of a .txnindex; bytes after the last whole one are left out.

    Kafka reads only the first byte of an entry's version. Raises UnsupportedVersionError (.file) where that is above 0,
    LimitError for more than 64 MiB. Source: Kafka's TransactionIndex and AbortedTxn.
    """
    data = index_bytes(file)
    entries = [AbortedTransaction(*entry) for entry in iter_unpack(">bxqqqq", data[: len(data) - len(data) % 34])]
    for entry in entries:
        if entry.version > 0:
            reason = f"Unexpected aborted transaction version {entry.version}, current version is 0"
            raise located(UnsupportedVersionError(reason, needed=entry.version, offered=(0, 0)), file.path)
    return entries


class _Walks:
    """The batches of a log from the positions on that an index gives, each header read once for a position."""

    def __init__(self, log: File) -> None:
        self.log = log
        # undamaged indexes need each header once, and the records of a batch at most once
        self._most = 4 * (log.size() // min(SMALLEST_BATCHES) + 1024)
        self._most_bytes = 4 * log.size() + _SPARE_BYTES
        self._read = self._read_bytes = 0
        self._walks: dict[int, tuple[array[int], array[int], FileBatches]] = {}  # by where they begin
        self._kept = 0

    def first(self, start: int, offset: int) -> tuple[int, int, int]:
        """(last offset, position, end) of the first batch from start on that ends at or after an offset; (-1, -1, -1).

        Raises CorruptBatchError for a position that is not in the log, and for what is no batch; LimitError.
        """
        if start not in self._walks:
            if self._kept > _MOST_KEPT:
                self._walks, self._kept = {}, 0
            self._walks[start] = array("q"), array("q"), FileBatches(self.log, start=_place(start, self.log))
        largest, ends, batches = self._walks[start]  # the largest offset up to each batch, the byte after it
        at = bisect_left(largest, offset)
        while at == len(largest):
            header = next(batches.headers(), None)
            if header is None:
                return -1, -1, -1
            self._read += 1
            if self._read > self._most:
                raise self._too_much(self._most)
            largest.append(max(header.last_offset, largest[-1]) if largest else header.last_offset)
            ends.append(header.position + header.size)
            self._kept += 1
            at += largest[at] < offset
        return largest[at], ends[at - 1] if at else start, ends[at]

    def largest_timestamp(self, start: int, end: int) -> int:
        """The largest timestamp of the records of the batch in bytes [start, end), -1 if none is above it.

        Raises CorruptBatchError, LimitError.
        """
        self._read_bytes += end - start
        if self._read_bytes > self._most_bytes:
            raise self._too_much(self._most_bytes)
        largest = -1
        for batch in FileBatches(self.log, end, start):
            largest = max(largest, max((record.timestamp for record in loaded(batch, self.log.path)), default=-1))
        return largest

    def _too_much(self, limit: int) -> LimitError:
        return located(LimitError("damaged indexes lead over the same batches again and again", limit=limit),
                       self.log.path)


class _Positions:
    """The positions in an .index by offset; padding at its end does not count."""

    def __init__(self, data: bytes, base_offset: int) -> None:
        pairs = list(_pairs(_OFFSET_ENTRY, data[: -(-len(data.rstrip(b"\0")) // 8) * 8]))
        self._base, self._offsets = base_offset, [relative for relative, _ in pairs]
        self._positions = [position for _, position in pairs]

    def below(self, offset: int) -> int:
        """The position of the last entry at or below offset, 0 if there is none."""
        at = bisect_right(self._offsets, offset - self._base)
        return self._positions[at - 1] if at else 0


def _pairs(layout: Struct, data: bytes) -> Iterator[tuple[int, int]]:
    yield from layout.iter_unpack(memoryview(data)[: len(data) - len(data) % layout.size])


def _place(position: int, log: File) -> int:
    """The position, if it is in the log."""
    size = log.size()
    if not 0 <= position <= size:
        reason = f"the index has position {position}, the log {size} bytes"
        raise located(CorruptBatchError(reason, position=position), log.path)
    return position


def _batch_at(log: File, position: int, most: int) -> BatchHeader:
    """The header of the batch at a position that an index gives."""
    batches = FileBatches(log, _place(position, log) + most, position)
    header = next(batches.headers(), None)
    if header is None:
        left = batches.end - position
        reason = f"the index points to it, but there is no whole batch in the {left} bytes from there on"
        raise located(CorruptBatchError(reason, position=position), log.path)
    return header
