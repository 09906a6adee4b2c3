"""The plan of one read, made by the driver: which segments, which records of them, and in which tasks."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from kwire.errors import KwireError
from kwire.spark.options import EARLIEST, LATEST, Options
from kwire.spark.packing import Portion, ReadTask, SegmentRange, cuts, is_big, packed, task_bytes
from kwire.spark.selection import check_chosen, check_offsets, segments
from kwire.storage import LogSegment, SegmentFile
from kwire.storage.isolation.planned_log import LogEnd
from kwire.storage.places.discovery import by_partition, in_threads
from kwire.storage.reading.bounds import NO_BOUNDS, Bounds
from kwire.storage.reading.segment import as_written, open_listed

_BYTES_OF_A_RECORD = 4096  # as guessed where nothing is known of a segment's records


@dataclass(frozen=True)
class Pushed:
    """The result of pushed filters: topics and partitions to read (None: all), and bounds on every record."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    bounds: Bounds = NO_BOUNDS

    def reads(self, file: SegmentFile) -> bool:
        """May the segment have rows that pass the filters?"""
        return (self.topics is None or file.topic in self.topics) and (
            self.partitions is None or file.partition in self.partitions)


def tasks(options: Options, pushed: Pushed) -> list[ReadTask]:
    """Return the tasks of a batch read. Nothing is read for it but listings, and indexes for a start timestamp.

    With readCommitted the last 64 bytes of each local partition are read too: where they are zeros that a broker has
    preallocated, its last segment is, up to them.

    Raises ValueError or FileNotFoundError if the options choose nothing.
    """
    portions = _late_enough(_portions(options, pushed), options)
    most = task_bytes(portions, options)
    return packed((piece for portion in portions for piece in cuts(portion, most)), options, most)


def _portions(options: Options, pushed: Pushed) -> list[Portion]:
    """Return the segments that may have records of the read, in order of topic, partition and offset."""
    portions: list[Portion] = []
    chosen = segments(options)
    check_chosen(chosen, options)
    check_offsets(chosen, options)
    groups = [
        (files, bounds) for files in by_partition(chosen).values()
        if not (bounds := partition_bounds(options, files[0]).narrowed(pushed.bounds)).empty and pushed.reads(files[0])]
    log_ends = in_threads(
        lambda group: LogEnd.of(as_written(group[0])) if options.read_committed else None, groups)
    for (files, bounds), log_end in zip(groups, log_ends, strict=True):
        ends = {file: following.base_offset for file, following in pairwise(files)}
        for file in bounds.select(files, lambda file: file.base_offset):
            if file.size:
                own = LogEnd.of([file]) if log_end is not None and file.base_offset < 0 else log_end
                whole = SegmentRange(file, 0, None if file.size < 0 else file.size, True, bounds, own)
                portions.append(Portion(_bytes_read(file, ends.get(file, -1), bounds), whole))
    return portions


def _late_enough(portions: list[Portion], options: Options) -> list[Portion]:
    """Return the portions without big ones that end before the start timestamp, as their indexes say.

    Small ones are left to the tasks: many share one, and to look at one costs as much as to read it.
    """
    most = task_bytes(portions, options)
    asked = [
        portion for portion in portions
        if portion.part.bounds.start_timestamp is not None and portion.part.end is not None
        and is_big(portion.size, options, most)]
    early = {id(portion) for portion, ends in zip(asked, in_threads(
        lambda portion: _ends_early(portion.part, options), asked), strict=True) if ends}
    return [portion for portion in portions if id(portion) not in early]


def _ends_early(part: SegmentRange, options: Options) -> bool:
    """Return whether all records of a segment are before the start timestamp; what fails is left to the task."""
    with suppress(KwireError, OSError):
        return opened(part.file, options).ends_before(part.bounds.start_timestamp or 0)
    return False


def _bytes_read(file: SegmentFile, end_offset: int, bounds: Bounds) -> int:
    """Return about how many bytes of a segment the bounds leave, by the share of its offsets; a guess, for packing.

    end_offset: the base offset of the segment after it, -1 where that is not known.
    """
    size = max(file.size, file.stored, 0)
    first = max(bounds.start_offset or 0, file.base_offset)
    if end_offset <= file.base_offset:  # the last segment: only the number of offsets is known
        wanted = None if bounds.end_offset is None else bounds.end_offset - first
        return size if wanted is None else min(size, wanted * _BYTES_OF_A_RECORD)
    end = end_offset if bounds.end_offset is None else min(bounds.end_offset, end_offset)
    return min(size, -(-size * max(end - first, 0) // (end_offset - file.base_offset)))


def partition_bounds(options: Options, file: SegmentFile) -> Bounds:
    """Return the bounds that the options set on the partition of a segment.

    A batch read that begins at "latest", or ends at "earliest", is empty: nothing is read to find out where that is.
    """
    start, end = options.start_of(file.topic, file.partition), options.end_of(file.topic, file.partition)
    if start == LATEST or end == EARLIEST:
        return Bounds(0, 0)
    return Bounds(
        None if start == EARLIEST else start, None if end == LATEST else end, options.starting_timestamp,
        options.ending_timestamp)


def opened(file: SegmentFile, options: Options) -> LogSegment:
    """Return a segment to read, in a worker or in the driver; what the listing said is not asked again."""
    return open_listed(file, options.storage_options)
