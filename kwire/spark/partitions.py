"""What the driver decides for one read: which byte ranges of which segments, and what of them to leave out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from pyspark.sql.datasource import InputPartition

from kwire.errors import CorruptBatchError
from kwire.spark.options import EARLIEST, LATEST, Options
from kwire.storage import LogSegment, Partition, SegmentFile, Transactions, discover
from kwire.storage.bounds import NO_BOUNDS, Bounds
from kwire.storage.filesystem import shown
from kwire_c.printable import printable


class SegmentRange(InputPartition):
    """One task: bytes [start, end) of a segment; last: the segment ended there when the read was planned.

    offsets and timestamps (milliseconds) bound the records, inclusive at the start, exclusive at the end; None: no
    bound. transactions: what readCommitted leaves out, None when everything is read.
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
    """What pushed filters leave of the data: topics and partitions (None: all), and bounds on every record."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    bounds: Bounds = NO_BOUNDS

    def reads(self, file: SegmentFile) -> bool:
        """May rows of this segment pass?"""
        return (self.topics is None or file.topic in self.topics) and (
            self.partitions is None or file.partition in self.partitions)


def segments(wanted: Options) -> list[SegmentFile]:
    """Return the segments that the options choose, by topic, partition and base offset.

    Raises FileNotFoundError for a path where nothing is.
    """
    found: list[SegmentFile] = discover(
        list(wanted.paths), topics=wanted.topics, partitions=wanted.partitions, options=wanted.storage_options)
    return found


def by_partition(files: Iterable[SegmentFile]) -> Iterator[list[SegmentFile]]:
    """Yield the segments of one folder at a time, in order of offsets."""
    for _, group in groupby(files, key=lambda file: (file.topic, file.partition, folder_of(file.path))):
        yield list(group)


def folder_of(path: str) -> str:
    """Return the folder in front of a file's name, in a path or a URL, without what is secret in it."""
    path = shown(path)
    return path.rsplit("/", 1)[0] if "/" in path else ""


def ranges(wanted: Options, pushed: Pushed) -> list[SegmentRange]:
    """Return the tasks of a batch read."""
    tasks: list[SegmentRange] = []
    for files in by_partition(segments(wanted)):
        if not pushed.reads(files[0]):
            continue
        bounds = partition_bounds(wanted, files).narrowed(pushed.bounds)
        if bounds.empty:
            continue
        segments_of = dict(zip(files, Partition(files, wanted.storage_options).segments, strict=True))
        for file in bounds.select(files, lambda file: file.base_offset):
            tasks.extend(_segment_ranges(file, segments_of[file], bounds, wanted))
    return tasks


def partition_bounds(wanted: Options, files: list[SegmentFile]) -> Bounds:
    """Return the bounds that the options set on one partition; LATEST at the start is resolved to the log's end."""
    topic, partition = files[0].topic, files[0].partition
    start: int | None = wanted.start_of(topic, partition)
    end: int | None = wanted.end_of(topic, partition)
    if start == LATEST:
        start = log_end(files, wanted)
    if start == EARLIEST:
        start = None
    if end == EARLIEST:
        end = -1
        start = 0 if start is None else start
    elif end == LATEST:
        end = None
    return Bounds(start, end, wanted.starting_timestamp, wanted.ending_timestamp)


def opened(file: SegmentFile, wanted: Options) -> LogSegment:
    """Return a segment to read, in a worker or in the driver."""
    return LogSegment(file.path, topic=file.topic, partition=file.partition, options=wanted.storage_options)


def log_end(files: list[SegmentFile], wanted: Options) -> int:
    """Return the offset behind the last whole batch of a partition."""
    for file in reversed(files):
        end: int = -1
        with suppress(CorruptBatchError):  # what stands behind is read, or refused, by the tasks
            for header in opened(file, wanted).headers():
                end = int(header.last_offset) + 1
        if end >= 0:
            return end
    return max(int(files[-1].base_offset), 0)


def _segment_ranges(
    file: SegmentFile, segment: LogSegment, bounds: Bounds, wanted: Options
) -> Iterator[SegmentRange]:
    if not segment.size:
        return
    hidden = segment.transactions() if wanted.read_committed else None
    # each task would unpack a .gz once more
    spans = segment.split(segment.size if file.size < 0 else wanted.partition_bytes)
    for span in bounds.select(spans, lambda span: span.first_offset):
        yield SegmentRange(file, span.start, span.end, span is spans[-1], bounds, hidden)
