"""Summaries of segments by their names, indexes and a few bytes: offsets, sizes, times; no record is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.storage.places.discovery import SideFiles, in_threads
from kwire.storage.places.filesystem import is_url, open_file, shown
from kwire.storage.reading.segment import open_listed
from kwire.storage.reading.segment_ends import end_of, first_header, last_timestamp
from kwire_c.printable import storable

if TYPE_CHECKING:
    from kwire.storage.batches.batch_header import BatchHeader
    from kwire.storage.places.discovery import SegmentFile

_MOST_OFFSET = (1 << 63) - 1


class SegmentSummary(NamedTuple):
    """The summary of a segment, by its name, its indexes and a few batch headers.

    The headers are those of the first batch and, for the last segment of a partition, of the last batches. None: not
    known without reading more. next_offset: the base offset of the next segment, else the offset after the last batch;
    records: at most, by the offsets (a compacted log has fewer); timestamps: milliseconds; bytes: as stored; codec,
    magic: of the first batch.
    """

    topic: str | None
    partition: int | None
    path: str
    base_offset: int | None
    next_offset: int | None
    bytes: int | None
    records: int | None
    first_timestamp: int | None
    last_timestamp: int | None
    codec: str | None
    magic: int | None
    has_index: bool
    has_timeindex: bool
    has_txnindex: bool


class PartitionSummary(NamedTuple):
    """The summary of a partition, by those of its segments. topic, partition: None where unknown; path: its folder."""

    topic: str | None
    partition: int | None
    path: str
    segments: int
    base_offset: int | None
    next_offset: int | None
    bytes: int | None
    records: int | None
    first_timestamp: int | None
    last_timestamp: int | None


def following(files: Sequence[SegmentFile]) -> list[tuple[SegmentFile, int]]:
    """The segments of a partition in order, each with the base offset of the next one, -1 for the last one."""
    return [*((file, after.base_offset) for file, after in pairwise(files)), *((file, -1) for file in files[-1:])]


def summarize(
    file: SegmentFile, following: int = -1, *, heads: bool = False, options: dict[str, Any] | None = None
) -> SegmentSummary:
    """The summary of a segment. following: the base offset of the next one, -1 for the last one or where not known.

    last_timestamp is that of the last entry of the .timeindex. heads: also take those of the batches whose headers are
    read for next_offset, if one is later. Raises OSError where the file cannot be read.
    """
    beside = file.beside or SideFiles()
    base, end = file.base_offset, following
    header, first, last = None, None, None
    if file.size >= 0:  # else all of it would have to be read
        segment = open_listed(file, options)
        header = first_header(segment)
        last = _time(last_timestamp(segment))
        if header is not None:
            first = _first_time(header)
            base = header.base_offset if base < 0 else base
            if end < 0:
                ended = end_of(segment)
                if ended is not None:
                    end = ended[0]
                    last = _time(max(ended[1], -1 if last is None else last)) if heads else last
    known = 0 <= end <= _MOST_OFFSET  # a damaged header may say more
    return SegmentSummary(
        None if file.topic is None else storable(file.topic), file.partition, storable(shown(file.path)),
        base if base >= 0 else None, end if known else None, file.stored if file.stored >= 0 else None,
        end - base if known and 0 <= base <= end else None, first, last,
        None if header is None else header.codec, None if header is None else header.magic,
        beside.offset_index >= 0, beside.time_index >= 0, beside.transaction_index >= 0,
    )  # fmt: skip


def summarize_segments(
    files: Sequence[tuple[SegmentFile, int]], *, heads: bool = True, options: dict[str, Any] | None = None
) -> list[SegmentSummary]:
    """The summary of each of many segments, as following() gives them; those that are gone since are left out.

    heads: as of summarize().
    """
    def row(file: tuple[SegmentFile, int]) -> SegmentSummary | None:
        try:
            return summarize(*file, heads=heads, options=options)
        except FileNotFoundError:
            return None

    return [found for found in in_threads(row, files) if found is not None]


def summarize_partitions(
    partitions: Sequence[Sequence[SegmentFile]], *, options: dict[str, Any] | None = None
) -> list[PartitionSummary]:
    """A summary of each partition. Only its first segment and its last one with records are opened.

    Segments that are gone since they were listed do not count; a partition without others is left out.
    """
    def row(files: Sequence[SegmentFile]) -> PartitionSummary | None:
        while files:
            try:
                return _partition(files, options)
            except FileNotFoundError:
                left = [file for file in files if _is_there(file.path, options)]
                if len(left) == len(files):
                    raise
                files = left
        return None

    return [found for found in in_threads(row, partitions) if found is not None]


def _is_there(path: str, options: dict[str, Any] | None) -> bool:
    if not is_url(path):
        return os.path.exists(path)
    try:
        open_file(path, options).size()
    except FileNotFoundError:
        return False
    return True


def _partition(files: Sequence[SegmentFile], options: dict[str, Any] | None) -> PartitionSummary:
    written = [file for file in files if file.size] or files[:1]  # a segment that was rolled may be empty
    last = summarize(written[-1], heads=True, options=options)
    first = last if written[-1] is files[0] else summarize(*following(files[:2])[0], options=options)
    end = last.next_offset
    if files[-1].size == 0 and files[-1].base_offset >= 0:  # rolled, and nothing written yet
        end = files[-1].base_offset
    sizes = [file.stored for file in files]
    base = first.base_offset
    return PartitionSummary(
        first.topic, first.partition, storable(shown(files[0].path.rpartition("/")[0])), len(files), base, end,
        sum(sizes) if min(sizes) >= 0 else None, end - base if base is not None and end is not None and end >= base
        else None, first.first_timestamp, last.last_timestamp,
    )


def _first_time(header: BatchHeader) -> int | None:
    """The first record's timestamp, None where the header does not have it."""
    if header.count < 0 or header.delete_horizon is not None:
        return None
    return _time(header.max_timestamp if header.timestamp_type == "log_append" else header.base_timestamp)


def _time(milliseconds: int | None) -> int | None:
    return None if milliseconds is None or milliseconds < 0 else milliseconds
