"""The tasks of a read: byte ranges of segments, cut and packed so that each task has about as much to read."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from kwire.spark.options import Options
from kwire.storage import SegmentFile, Transactions
from kwire.storage.isolation.planned_log import LogEnd
from kwire.storage.places.filesystem import shown
from kwire.storage.reading.bounds import NO_BOUNDS, Bounds
from kwire.storage.reading.log_follower import Planned
from kwire_c.printable import printable
from kwire_c.record_batch import RECORD_BATCH_OVERHEAD

MOST_CUTS = 10_000  # ranges of one segment, however small partitionBytes is


class SegmentRange(NamedTuple):
    """Bytes [start, end) of a segment; end None: to the end of a file whose size is not known (a .gz).

    exact: start and end are boundaries of batches, else any bytes. last: a torn tail in the range is reported. bounds:
    on the records. log_end: where the log ended then, for readCommitted
    (a file without an offset in its name: what it leaves out); None: everything is read. planned: of a stream.
    """

    file: SegmentFile
    start: int
    end: int | None
    last: bool
    bounds: Bounds = NO_BOUNDS
    log_end: LogEnd | Transactions | None = None
    exact: bool = False
    planned: Planned | None = None

    def __repr__(self) -> str:
        end = "the end" if self.end is None else self.end
        return f"SegmentRange({printable(shown(self.file.path))}, bytes {self.start}..{end})"


class Portion(NamedTuple):
    """A segment, or a range of it, that is to be read. size: about the bytes that reading it takes."""

    size: int
    part: SegmentRange


class ReadTask(InputPartition):
    """What one task of Spark reads: ranges of segments, those of a partition in order of offsets. Pickles small."""

    def __init__(self, ranges: Iterable[SegmentRange]) -> None:
        super().__init__(None)
        self.ranges = tuple(ranges)

    def __repr__(self) -> str:
        return f"ReadTask({', '.join(map(repr, self.ranges[:3]))}{', ...' if len(self.ranges) > 3 else ''})"

    def __getstate__(self) -> bytes:
        return zlib.compress(pickle.dumps(self.ranges), 1)  # paths repeat themselves

    def __setstate__(self, state: bytes) -> None:
        super().__init__(None)
        self.ranges = pickle.loads(zlib.decompress(state))


def task_bytes(portions: Iterable[Portion], options: Options) -> int:
    """Return how many bytes a task should read, as Spark's own file sources count: an open file costs openCostBytes.

    partitionBytes, or less where minPartitions asks for more tasks, but not less than openCostBytes.
    """
    if options.min_partitions is None:
        return options.partition_bytes
    total = sum(portion.size + options.open_cost_bytes for portion in portions)
    return min(options.partition_bytes, max(options.open_cost_bytes, -(-total // options.min_partitions), 1))


def is_big(size: int, options: Options, most: int) -> bool:
    """Return whether two portions of that many bytes are too much for a task of `most` bytes."""
    return 2 * size + options.open_cost_bytes > most


def packed(portions: Iterable[Portion], options: Options, most: int | None = None) -> list[ReadTask]:
    """Return tasks of at most about `most` bytes (default: partitionBytes), big portions first, else in order.

    Small ones follow each other as they come.
    """
    most = options.partition_bytes if most is None else most
    alone: list[ReadTask] = []
    shared: list[list[SegmentRange]] = []
    cost = most + 1
    for size, part in portions:
        if is_big(size, options, most):
            alone.append(ReadTask([part]))
            continue
        if cost + size > most:
            shared.append([])
            cost = 0
        shared[-1].append(part)
        cost += size + options.open_cost_bytes
    return alone + [ReadTask(ranges) for ranges in shared]


def cuts(portion: Portion, most: int) -> Iterator[Portion]:
    """Yield a portion in pieces of equal size, at most about `most` bytes each.

    Nothing is read for it: a cut may be in the middle of a batch, and a worker begins at the first batch after it.
    """
    size, part = portion
    if part.end is None or size <= most:
        yield portion
        return
    length = part.end - part.start
    count = min(-(-length // max(most, RECORD_BATCH_OVERHEAD)), MOST_CUTS)
    edges = [part.start + length * number // count for number in range(count)] + [part.end]
    for start, end in pairwise(edges):
        yield Portion(end - start, part._replace(start=start, end=end, exact=False))
