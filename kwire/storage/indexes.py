"""The indexes beside a segment: .index (offset, position), .timeindex (time, offset), .txnindex (aborted)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from struct import iter_unpack
from typing import TYPE_CHECKING, NamedTuple

from kwire.storage.scan import examine, is_sound

if TYPE_CHECKING:
    from kwire.storage.source import Source


class AbortedTransaction(NamedTuple):
    """An entry of a .txnindex (AbortedTxn): offsets of the first record and the abort marker; last stable offset."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class OffsetIndex:
    """An .index: entries are (offset of the last record appended, position of the batch that the append began with).

    Zeros behind the last entry (Kafka allocates ahead) are left out. damage: why the file is not to be trusted, or
    None.
    """

    entries: Sequence[tuple[int, int]]

    def __init__(self, data: bytes, base_offset: int) -> None:
        usable = len(data) - len(data) % 8
        entries = [(base_offset + offset, position) for offset, position in iter_unpack(">iI", data[:usable])]
        entries, padded = _without_padding(entries, data[:usable], 8)
        self.entries = entries
        self.damage: str | None = None
        if usable < len(data):
            self.damage = f"{len(data)} bytes are no whole number of 8 byte entries"
        for (offset, position), (later, further) in pairwise(entries):
            if later <= offset or further <= position:
                self.damage = f"entry ({later}, {further}) does not rise above ({offset}, {position})"
                break
        if entries and entries[0][0] < base_offset:
            self.damage = f"entry {entries[0]} lies before the segment's base offset {base_offset}"
        self._offsets = [offset for offset, _ in entries]
        self._positions = [position for _, position in entries]
        self.padding = padded

    def below(self, offset: int) -> tuple[int, int] | None:
        """The last entry whose offset is <= offset: its batch, or a later one, holds the offset."""
        at = bisect_right(self._offsets, offset)
        return self.entries[at - 1] if at else None

    def below_position(self, position: int) -> tuple[int, int] | None:
        """The last entry whose position is <= position."""
        at = bisect_right(self._positions, position)
        return self.entries[at - 1] if at else None

    def points_right(self, source: Source, entry: tuple[int, int], size: int) -> bool:
        """Does the entry point to a sound batch (header, CRC) that does not begin behind the entry's offset?"""
        offset, position = entry
        return (
            self.damage is None
            and position < size
            and examine(source, position, size).offset <= offset
            and is_sound(source, position, size)
        )


class TimeIndex:
    """A .timeindex: entries are (largest timestamp so far in ms, offset of the record or batch that has it)."""

    entries: Sequence[tuple[int, int]]

    def __init__(self, data: bytes, base_offset: int) -> None:
        usable = len(data) - len(data) % 12
        entries = [(time, base_offset + offset) for time, offset in iter_unpack(">qi", data[:usable])]
        entries, padded = _without_padding(entries, data[:usable], 12)
        self.entries = entries
        self.padding = padded
        self.damage: str | None = None
        if usable < len(data):
            self.damage = f"{len(data)} bytes are no whole number of 12 byte entries"
        for (time, offset), (later, further) in pairwise(entries):
            if later <= time or further <= offset:
                self.damage = f"entry ({later}, {further}) does not rise above ({time}, {offset})"
                break
        if entries and entries[0][1] < base_offset:
            self.damage = f"entry {entries[0]} lies before the segment's base offset {base_offset}"

    def before(self, timestamp: int) -> tuple[int, int] | None:
        """The last entry whose timestamp is < timestamp: records from that time on stand behind its offset."""
        at = bisect_left(self.entries, (timestamp, -1))
        return self.entries[at - 1] if at else None


class TransactionIndex:
    """A .txnindex: the transactions whose abort marker stands in the segment, in order of their markers."""

    entries: Sequence[AbortedTransaction]

    def __init__(self, data: bytes) -> None:
        usable = len(data) - len(data) % 34
        self.entries = [AbortedTransaction(*entry) for entry in iter_unpack(">hqqqq", data[:usable])]
        self.damage: str | None = None
        if usable < len(data):
            self.damage = f"{len(data)} bytes are no whole number of 34 byte entries"
        for entry in self.entries:
            if entry.version != 0 or not 0 <= entry.first_offset <= entry.last_offset or entry.producer_id < 0:
                self.damage = f"impossible entry {tuple(entry)}"
                break


def _without_padding(entries: list[tuple[int, int]], data: bytes, width: int) -> tuple[list[tuple[int, int]], int]:
    """The entries less the zeros that Kafka allocated ahead, and how many those were.

    The entry of a segment's very first batch may be all zeros itself (offset 0 after the base, position 0): it stays
    when it stands first and others follow it.
    """
    kept = len(entries)
    stripped = len(data.rstrip(b"\0"))
    filled = -(-stripped // width)
    return entries[:filled], kept - filled
