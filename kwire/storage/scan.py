"""Hops over batch headers without decoding: boundaries, byte ranges, windows, and the search for the next sound batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kwire.storage.source import Source

WINDOW_BYTES = 32 << 20


class BatchHeader(NamedTuple):
    """One batch as its fixed header tells it (magic 0 and 1: one entry or compressed wrapper); nothing is decoded or checked.

    position and size are bytes in the file. Magic 0 and 1 know no base_offset for compressed wrappers: it is then the
    last offset. What a format lacks is -1. Times are milliseconds; crc is unsigned.
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
    count: int

    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...
    @property
    def codec(self) -> str: ...


class ByteRange(NamedTuple):
    """Bytes [start, end) of a segment, cut where batches begin; first_offset: base offset of its first batch (-1 unknown)."""

    start: int
    end: int
    first_offset: int


class Window(NamedTuple):
    """A piece of a segment that begins and ends at batch boundaries. position: its first byte in the file.

    bad: None, or why these bytes are no batches (data is then the damaged region, offset the last offset before it + 1).
    """

    position: int
    data: memoryview
    bad: str | None = None
    offset: int = -1


def headers(source: Source, start: int = 0, end: int | None = None) -> Iterator[BatchHeader]:
    """The headers of the batches that begin in bytes [start, end) of source; start must be a batch boundary.

    Stops before a torn tail or trailing zeros. Raises CorruptBatchError where a length cannot be trusted.
    """
    raise NotImplementedError


def cut(source: Source, partition_bytes: int, index: object = None) -> list[ByteRange]:
    """Cuts a segment at batch boundaries into ranges of about partition_bytes (at least one batch each).

    Through the entries of an OffsetIndex where they check out (header, length, CRC), else by hopping over headers. Bytes
    whose length cannot be trusted stay in one range with what stands before them. Covers all bytes of the file.
    """
    raise NotImplementedError


def resync(source: Source, position: int, end: int | None = None) -> int | None:
    """The byte of the next sound batch (magic, length, CRC) at or behind position, None if there is none before end."""
    raise NotImplementedError
