"""The plan of one read, made by the driver: which byte ranges of which segments, and which records of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from pyspark.sql.datasource import InputPartition

from kwire.errors import CorruptBatchError
from kwire.spark.options import EARLIEST, LATEST, Options
from kwire.spark.selection import check_chosen, check_offsets, segments
from kwire.storage import LogSegment, Partition, SegmentFile, Transactions
from kwire.storage.bounds import NO_BOUNDS, Bounds
from kwire.storage.filesystem import shown
from kwire_c.printable import printable


class SegmentRange(InputPartition):
    """One task: bytes [start, end) of a segment; last: the segment ended there when the read was planned.

    offsets and timestamps (milliseconds) bound the records, inclusive at the start, exclusive at the end; None: no
    bound. transactions: those that readCommitted leaves out, None if everything is read.
    """

    def __init__(self, file: SegmentFile, start: int, end: int, last: bool, bounds: Bounds,
                 transactions: Transactions | None) -> None:
        super().__init__(None)
        self.file, self.start, self.end, self.last = file, start, end, last
        self.bounds, self.transactions = bounds, transactions

    def __repr__(self) -> str:
        return f"SegmentRange({printable(shown(self.file.path))}, bytes {self.start}..{self.end})"


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


def by_partition(files: Iterable[SegmentFile]) -> Iterator[list[SegmentFile]]:
    """Yield the segments of one folder at a time, in order of offsets."""
    for _, group in groupby(files, key=lambda file: (file.topic, file.partition, folder_of(file.path))):
        yield list(group)


def folder_of(path: str) -> str:
    """Return the folder of a file, as a path or a URL without its secrets."""
    path = shown(path)
    return path.rsplit("/", 1)[0] if "/" in path else ""


def ranges(options: Options, pushed: Pushed) -> list[SegmentRange]:
    """Return the tasks of a batch read. Raises ValueError or FileNotFoundError where the options choose nothing."""
    chosen = segments(options)
    check_chosen(chosen, options)
    check_offsets(chosen, options)
    tasks: list[SegmentRange] = []
    for files in by_partition(chosen):
        if not pushed.reads(files[0]):
            continue
        bounds = partition_bounds(options, files).narrowed(pushed.bounds)
        if bounds.empty:
            continue
        segments_of = dict(zip(files, Partition(files, options.storage_options).segments, strict=True))
        for file in bounds.select(files, lambda file: file.base_offset):
            tasks.extend(_segment_ranges(file, segments_of[file], bounds, options))
    return tasks


def partition_bounds(options: Options, files: list[SegmentFile]) -> Bounds:
    """Return the bounds that the options set on one partition; LATEST at the start is resolved to the log's end."""
    topic, partition = files[0].topic, files[0].partition
    start: int | None = options.start_of(topic, partition)
    end: int | None = options.end_of(topic, partition)
    if start == LATEST:
        start = log_end(files, options)
    if start == EARLIEST:
        start = None
    if end == EARLIEST:
        end = -1
        start = 0 if start is None else start
    elif end == LATEST:
        end = None
    return Bounds(start, end, options.starting_timestamp, options.ending_timestamp)


def opened(file: SegmentFile, options: Options) -> LogSegment:
    """Return a segment to read, in a worker or in the driver."""
    return LogSegment(file.path, topic=file.topic, partition=file.partition, options=options.storage_options)


def log_end(files: list[SegmentFile], options: Options) -> int:
    """Return the offset after the last whole batch of a partition."""
    for file in reversed(files):
        end: int = -1
        with suppress(CorruptBatchError):  # the tasks read what follows, or raise
            for header in opened(file, options).headers():
                end = int(header.last_offset) + 1
        if end >= 0:
            return end
    return max(int(files[-1].base_offset), 0)


def _segment_ranges(
    file: SegmentFile, segment: LogSegment, bounds: Bounds, options: Options
) -> Iterator[SegmentRange]:
    if not segment.size:
        return
    hidden = segment.transactions() if options.read_committed else None
    # each task would decompress a .gz again: so it is one task
    spans = segment.split(segment.size if file.size < 0 else options.partition_bytes)
    for span in bounds.select(spans, lambda span: span.first_offset):
        yield SegmentRange(file, span.start, span.end, span is spans[-1], bounds, hidden)
