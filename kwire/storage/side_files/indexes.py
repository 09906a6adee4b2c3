"""The indexes beside a segment: .index (offset, position), .timeindex (time, offset), .txnindex (aborted)."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import eq
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.codec.arguments import check_int, check_type
from kwire.storage.batches.batch_header import examine
from kwire.storage.batches.scanner import is_valid

if TYPE_CHECKING:
    from kwire.storage.places.filesystem import File

OFFSET_ENTRY, TIME_ENTRY = ">iI", ">qi"
MOST_BYTES = 64 << 20  # of an index; Kafka's default is 10 MiB (segment.index.bytes)


_BLOCK_BYTES = 12 << 10  # of an index that a search reads at a time: whole entries of 8 and of 12 bytes
_ABORTED = Struct(">hqqqq")  # an entry of a .txnindex
_INTERVAL = 4096  # bytes of the log from one entry to the next, at least (index.interval.bytes)


class AbortedTransaction(NamedTuple):
    """An entry of a .txnindex (AbortedTxn): offsets of the first record and the abort marker; last stable offset."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def aborted_entry(entry: AbortedTransaction) -> bytes:
    """The bytes of an entry of a .txnindex."""
    return _ABORTED.pack(*entry)


class Entries(Sequence[tuple[int, int]]):
    """The entries of an index as pairs; add: what is added to the numbers of each pair. At most 12 bytes a pair."""

    def __init__(self, first: array[int], second: array[int], add: tuple[int, int]) -> None:
        self.first, self.second, self.add = first, second, add

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        return self.first[at] + self.add[0], self.second[at] + self.add[1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} entries>"


class OffsetIndex:
    """An .index: entries are (offset of the last record appended, position of the batch that the append began with).

    Zeros after the last entry (Kafka preallocates indexes) are left out. damage: why the file is corrupt, or None.
    """

    entries: Sequence[tuple[int, int]]

    def __init__(self, data: bytes, base_offset: int) -> None:
        self.damage = _wrong_size(data, 8)
        offsets, positions, self.padding = _columns(data, OFFSET_ENTRY, "iI")
        self.entries = Entries(offsets, positions, (base_offset, 0))
        self._base, self._offsets, self._positions = base_offset, offsets, positions
        at = _misplaced(offsets, positions)
        if at:
            self.damage = f"entry {self.entries[at]} is not larger than the entry before it, {self.entries[at - 1]}"
        if offsets and offsets[0] < 0:
            self.damage = f"entry {self.entries[0]} is below the segment's base offset {base_offset}"

    def below(self, offset: int) -> tuple[int, int] | None:
        """The last entry whose offset is <= offset: its batch, or a later one, holds the offset."""
        at = bisect_right(self._offsets, check_int(offset, "offset") - self._base)
        return self.entries[at - 1] if at else None

    def below_position(self, position: int) -> tuple[int, int] | None:
        """The last entry whose position is <= position."""
        at = bisect_right(self._positions, check_int(position, "position"))
        return self.entries[at - 1] if at else None

    def points_to_batch(self, file: File, entry: tuple[int, int], size: int) -> bool:
        """Does the entry point to a valid batch (header, CRC) whose base offset is not above the entry's offset?"""
        offset, position = entry
        file = file.held()
        return (
            self.damage is None
            and position < size
            and examine(file, position, size).offset <= offset
            and is_valid(file, position, size)
        )


def last_below(file: File, layout: str, column: int, value: int, log_bytes: int) -> tuple[int, int] | None:
    """The last entry of an .index or .timeindex file whose number in that column is below value, None if none is.

    layout: of an entry, as struct has it; numbers are those of the file (offsets are relative). log_bytes: of the
    segment. A few blocks of the file are read, not the whole: it may have 10 MiB, most of them preallocated zeros. What
    is returned must be checked in the log: a damaged index gives any entry. Raises OSError.
    """
    pair = Struct(layout)
    file = file.held()
    size = file.size()
    # entries before low are below value, entries from high on are not
    low, high = 0, 0 if size > MOST_BYTES else size // pair.size
    block = _BLOCK_BYTES // pair.size
    estimate = min(high, log_bytes // _INTERVAL + 1)
    if layout == OFFSET_ENTRY and column == 1:
        estimate = min(estimate, value // _INTERVAL, high * value // max(1, log_bytes))
    found, guessed = None, False
    while low < high:
        first = low
        if high - low > block:
            first = (low + high - block) // 2 if guessed else max(low, min(estimate, high) - block)
            guessed = first > low or guessed
        data = file.read(first * pair.size, min(first + block, high) * pair.size)
        entries = list(pair.iter_unpack(data[: len(data) - len(data) % pair.size]))
        below = 0
        while below < len(entries) and entries[below][column] < value and (any(entries[below]) or first + below == 0):
            below += 1
        if below == 0:
            if first == low:
                break
            high = first
        else:
            low, found = first + below, entries[below - 1]
            if below < len(entries):
                break
        guessed = guessed or first == low
    return found


class TimeIndex:
    """A .timeindex: entries are (max timestamp so far in ms, offset of the record or batch that has it)."""

    entries: Sequence[tuple[int, int]]

    def __init__(self, data: bytes, base_offset: int) -> None:
        self.damage = _wrong_size(data, 12)
        times, offsets, self.padding = _columns(data, TIME_ENTRY, "qi")
        self.entries = Entries(times, offsets, (0, base_offset))
        self._times = times
        at = _misplaced(times, offsets)
        if at:
            self.damage = f"entry {self.entries[at]} is not larger than the entry before it, {self.entries[at - 1]}"
        if offsets and offsets[0] < 0:
            self.damage = f"entry {self.entries[0]} is below the segment's base offset {base_offset}"

    def before(self, timestamp: int) -> tuple[int, int] | None:
        """The last entry whose timestamp is < timestamp: records from that time on are after its offset."""
        at = bisect_left(self._times, timestamp)
        return self.entries[at - 1] if at else None


class TransactionIndex:
    """A .txnindex: the transactions whose abort marker is in the segment, in order of their markers."""

    entries: Sequence[AbortedTransaction]

    def __init__(self, data: bytes) -> None:
        self.damage = _wrong_size(data, _ABORTED.size)
        usable = 0 if len(data) > MOST_BYTES else len(data) - len(data) % _ABORTED.size
        self.entries = [AbortedTransaction(*entry) for entry in _ABORTED.iter_unpack(data[:usable])]
        last = -1
        for entry in self.entries:
            if entry.version != 0 or not 0 <= entry.first_offset <= entry.last_offset or entry.producer_id < 0:
                self.damage = f"invalid entry {tuple(entry)}"
                break
            if entry.last_offset <= last:
                self.damage = f"entry {tuple(entry)} is not after offset {last} of the entry before it"
                break
            last = entry.last_offset


def _wrong_size(data: bytes, width: int) -> str | None:
    """What is wrong with the size of an index, or None. width: bytes of an entry. Raises TypeError for no bytes."""
    check_type(data, (bytes, bytearray), "data", "bytes")
    if len(data) > MOST_BYTES:
        return f"larger than {MOST_BYTES} bytes: not a Kafka index"
    return f"found {len(data)} bytes, which is not a multiple of {width}" if len(data) % width else None


def _columns(data: bytes, layout: str, kinds: str) -> tuple[array[int], array[int], int]:
    """The two columns of an index without preallocated zeros, and the number of entries that the zeros make.

    The entry of a segment's first batch may be all zeros itself (relative offset 0, position 0): it is kept if others
    follow it.
    """
    pair = Struct(layout)
    usable = 0 if len(data) > MOST_BYTES else len(data) - len(data) % pair.size
    filled = -(-len(data[:usable].rstrip(b"\0")) // pair.size)
    first, second = array(kinds[0]), array(kinds[1])
    for left, right in pair.iter_unpack(data[: filled * pair.size]):
        first.append(left)
        second.append(right)
    return first, second, usable // pair.size - filled


def _misplaced(first: array[int], second: array[int]) -> int:
    """The number of the first pair that is not larger than the one before it in both numbers; 0 if there is none."""
    for at in range(1, len(first)):
        if first[at] <= first[at - 1] or second[at] <= second[at - 1]:
            return at
    return 0
