"""The header of one batch, read without decoding the batch: its fields, what is at a position, its checksum."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from kwire_c.codecs import codec_name
from kwire_c.crc32c import crc32c
from kwire_c.record_batch import (
    ATTRIBUTES_OFFSET,
    BATCH_FORMAT,
    CODEC_MASK,
    CONTROL_FLAG,
    CRC_OFFSET,
    DELETE_HORIZON_FLAG,
    HEADER_UP_TO_MAGIC,
    LEGACY_CRC_OFFSET,
    LEGACY_FORMAT,
    LOG_APPEND_FLAG,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAX_LENGTH,
    MIN_LENGTH,
    SMALLEST_BATCHES,
    TRANSACTIONAL_FLAG,
)

if TYPE_CHECKING:
    from kwire.storage.places.filesystem import File

ZerosTo = Callable[["File", int, int], int]  # (file, position, its size): as end_of_zeros

_ZEROS_READ = 64 << 10, 8 << 20  # bytes of zeros that are read at a time: at first, at most

_start = Struct(BATCH_FORMAT[:5]).unpack_from  # base offset, length, epoch (or checksum), magic
_v2 = Struct(BATCH_FORMAT).unpack_from
_legacy = Struct(LEGACY_FORMAT).unpack_from


class BatchHeader(NamedTuple):
    """The header of one batch (magic 0 and 1: of one entry or compressed wrapper message); nothing is decoded.

    position and size are bytes in the file. A compressed wrapper of magic 0 or 1 does not hold its base offset:
    base_offset is then the last offset. Fields that a format lacks are -1, as is the count of a wrapper. Timestamps
    are milliseconds; crc is unsigned.
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
        return self.magic == 2 and self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        """Does the batch hold control records (markers) instead of data?"""
        return self.magic == 2 and self.attributes & CONTROL_FLAG != 0

    @property
    def delete_horizon(self) -> int | None:
        """The time in milliseconds from which compaction may remove tombstones and markers (KIP-534), or None."""
        return self.base_timestamp if self.magic == 2 and self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def codec(self) -> str:
        """"none", "gzip", "snappy", "lz4", "zstd", or the number of an unknown codec as text."""
        return codec_name(self.attributes & CODEC_MASK)

    @property
    def timestamp_type(self) -> str:
        """"none" (magic 0), "create" or "log_append"."""
        return "none" if self.magic == 0 else "log_append" if self.attributes & LOG_APPEND_FLAG else "create"


class Place(NamedTuple):
    """What is at a position of a segment.

    kind: "batch", "torn" (goes past the end), "zeros" (to the end) or "bad"; size: bytes; reason: why it is
    torn or bad; offset: the base offset (-1 if unreadable).
    """

    kind: str
    size: int
    reason: str
    offset: int


def parse_header(data: memoryview, at: int, position: int) -> BatchHeader:
    """The header of the batch at byte `at` of data, which holds all of it; position: the position to report."""
    base, length, leader_epoch, magic = _start(data, at)
    if magic == 2:
        _, _, _, _, crc, attributes, delta, base_time, max_time, producer, epoch, sequence, count = _v2(data, at)
        return BatchHeader(position, LOG_OVERHEAD + length, 2, base, base + delta, leader_epoch, crc, attributes,
                           base_time, max_time, producer, epoch, sequence, count)
    _, _, crc, _, attributes, time = _legacy(data, at)
    time = time if magic == 1 else -1
    return BatchHeader(position, LOG_OVERHEAD + length, magic, base, base, -1, crc, attributes, time, time, -1, -1, -1,
                       -1 if attributes & CODEC_MASK else 1)


def end_of_zeros(file: File, position: int, size: int) -> int:
    """The byte where the zeros from position on end; size if they go to the end. Holes are not read."""
    room = _ZEROS_READ[0]
    while position < size:
        piece = file.read(position, min(size, position + room))
        if piece != bytes(len(piece)):
            return position + len(piece) - len(piece.lstrip(b"\0"))
        if not piece:  # truncated meanwhile, as a broker does when it closes a preallocated file
            return size
        position = file.after_hole(position + len(piece))
        room = min(2 * room, _ZEROS_READ[1])
    return size


def end_of_data(file: File) -> int:
    """The byte after the last one that is not zero, 0 if there is none: a preallocated segment ends in zeros.

    The last batch may end in zeros too: it begins before that byte, and may end after it. Holes are not read.
    """
    file = file.held()
    end, room = file.size(), _ZEROS_READ[0]
    while end:
        start = max(0, end - room)
        piece = file.read(start, end)
        if piece != bytes(len(piece)):
            return start + len(piece.rstrip(b"\0"))
        end, room = _before_hole(file, start), min(2 * room, _ZEROS_READ[1])
    return 0


def _before_hole(file: File, end: int) -> int:
    """The first byte of the hole that ends at byte `end`, or in which it is; the byte itself if there is none."""
    return bisect_left(range(end), True, key=lambda position: file.after_hole(position) >= end)


def examine(
    file: File,
    position: int,
    size: int,
    view: memoryview | None = None,
    at: int = 0,
    zeros_to: ZerosTo = end_of_zeros,
) -> Place:
    """What is at position of a file of `size` bytes, by its header.

    view: bytes of the file that are in memory; position is its byte `at`.
    """
    left = size - position
    head: memoryview | bytes = b"" if view is None else view[at : at + HEADER_UP_TO_MAGIC]
    if len(head) < min(HEADER_UP_TO_MAGIC, left):
        head = file.read(position, min(size, position + HEADER_UP_TO_MAGIC))
    if head and bytes(head) == bytes(len(head)) and zeros_to(file, position, size) == size:
        return Place("zeros", left, "zeros to the end of the file", -1)
    if len(head) < HEADER_UP_TO_MAGIC:
        return Place("torn", left, f"{left} bytes left, at least {HEADER_UP_TO_MAGIC} needed", -1)
    base, length, _, magic = _start(head, 0)
    if length < MIN_LENGTH:
        return Place("bad", left, f"batch length {length} is below {MIN_LENGTH}", base)
    if length > MAX_LENGTH:
        return Place("bad", left, f"batch length {length} is above {MAX_LENGTH}", base)
    if not 0 <= magic <= 2:
        return Place("bad", left, f"unknown magic {magic}", base)
    if length + LOG_OVERHEAD < SMALLEST_BATCHES[magic]:
        return Place("bad", left, f"batch length {length} is too small for magic {magic}", base)
    if length + LOG_OVERHEAD > left:
        return Place("torn", left, f"{left} bytes left, {length + LOG_OVERHEAD} needed", base)
    return Place("batch", length + LOG_OVERHEAD, "", base)


def stored_checksum(head: memoryview | bytes) -> int:
    """The checksum stored in a header: CRC-32C in magic 2, CRC-32 before."""
    at = CRC_OFFSET if head[MAGIC_OFFSET] == 2 else LEGACY_CRC_OFFSET
    return int.from_bytes(head[at : at + 4], "big")


def checksum_holds(data: memoryview) -> bool:
    """Does the checksum of the one batch in data match? CRC-32C in magic 2, CRC-32 before."""
    summed, crc = (ATTRIBUTES_OFFSET, crc32c) if data[MAGIC_OFFSET] == 2 else (MAGIC_OFFSET, zlib.crc32)
    return crc(data[summed:]) == stored_checksum(data)


def base_offset_at(data: memoryview, at: int) -> int:
    """The base offset of the batch at byte `at` of data."""
    return int(_start(data, at)[0])
