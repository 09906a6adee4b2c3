"""readStream.format("kwire"): follows a directory in which segments grow and roll, by (segment, position)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from kwire.errors import KwireError
from kwire.spark.options import EARLIEST, LATEST, Options
from kwire.spark.packing import Portion, SegmentRange, packed
from kwire.spark.partitions import by_partition, folder_of, opened
from kwire.spark.reader import read_task
from kwire.spark.selection import check_chosen, segments
from kwire.spark.worker import in_one_line
from kwire.storage import LogSegment, SegmentFile
from kwire.storage.bounds import Bounds
from kwire.storage.filesystem import shown
from kwire.storage.planned_log import LogEnd
from kwire.storage.scanner import Scanner, window_headers
from kwire_c.printable import printable

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.0 and 4.1

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Placeholder for the interface that this Spark lacks."""

    class ReadAllAvailable:  # type: ignore[no-redef]
        """Placeholder for the read limit that this Spark lacks."""

    @dataclass
    class ReadMaxBytes:  # type: ignore[no-redef]
        """Placeholder for the read limit that this Spark lacks."""

        max_bytes: int

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

# folder -> {"segment": file name, "position": byte after the last batch read, "offset": of the next record}
Offset = dict[str, dict[str, Any]]


class SegmentStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a streaming query. Its offsets name, for every partition folder, a segment and a byte in it.

    Only whole batches are read: a torn batch waits for its rest. The reader goes on to the next segment when one ends
    with a whole batch. With readCommitted nothing is read past the first open transaction.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options, self.schema = options, schema
        self.frozen: dict[str, int] | None = None
        self.reached: Offset = {}
        self.warned: set[tuple[str, int]] = set()
        self.stable: dict[str, tuple[int, int | None]] = {}

    @in_one_line
    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query starts: at the beginning, or at the end of partitions that start at "latest"."""
        check_chosen(segments(self.options), self.options)
        start: Offset = {}
        for files in self._partitions():
            if self.options.start_of(files[0].topic, files[0].partition) == LATEST:
                reached = self._advance(files, None, None)
                if reached is not None:
                    start[folder_of(files[0].path)] = reached
        return start

    @in_one_line
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Return the end of the whole batches, at most the limit's bytes after start.

        Spark 4.0 and 4.1 pass neither start nor limit, and with availableNow take one result as the end of all data:
        maxBytesPerTrigger is not applied with them.
        """
        before: Offset = self.reached if start is None else start
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        end = dict(before)
        partitions = list(self._partitions())
        for number, files in enumerate(partitions):
            folder = folder_of(files[0].path)
            # bytes that earlier partitions left unused go to later ones
            share = None if most is None else max(most // (len(partitions) - number), 1)
            reached = self._advance(files, before.get(folder), share)
            if reached is None:
                continue
            end[folder] = reached
            if most is not None:
                most = max(most - self._between(files, before.get(folder), reached), 0)
        self.reached = dict(sorted(end.items()))
        return self.reached

    def getDefaultReadLimit(self) -> Any:
        """Return maxBytesPerTrigger as Spark's read limit (Spark 4.2 and newer)."""
        most = self.options.max_bytes_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxBytes(most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the segments and their sizes of this moment as the end of the query (Spark 4.2 and newer)."""
        self.frozen = {file.path: file.size for file in segments(self.options)}

    @in_one_line
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks of one micro-batch: byte ranges between two offsets."""
        self.reached = end
        portions: list[Portion] = []
        for files in self._partitions(frozen=False):
            folder = folder_of(files[0].path)
            if folder in end and start.get(folder) != end[folder]:
                portions.extend(self._portions(files, start.get(folder), end[folder]))
        return list(packed(portions, self.options))

    @in_one_line
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task. Runs in a worker."""
        return read_task(partition, self.options, self.schema)

    def _partitions(self, frozen: bool = True) -> Iterator[list[SegmentFile]]:
        files = segments(self.options)
        if frozen and self.frozen is not None:
            known = self.frozen
            files = [file._replace(size=min(file.size, known[file.path])) for file in files if file.path in known]
        return by_partition(files)

    def _resume(self, files: list[SegmentFile], at: dict[str, Any] | None) -> tuple[int, int]:
        """Return the number of the segment to go on with and the byte in it. Raises KwireError if data was lost."""
        if at is None:
            return 0, 0
        names = [_name(file) for file in files]
        if at["segment"] in names:
            number = names.index(at["segment"])
            if at["position"] <= files[number].size:
                return number, at["position"]
            file = files[number]
            self._lost(f"{shown(file.path)} was truncated to {file.size} bytes after {at['position']} had been read")
            return (number + 1, 0) if number + 1 < len(files) else (number, files[number].size)
        number = next((number for number, name in enumerate(names) if name > at["segment"]), len(files))
        if number == len(files):
            return number, 0
        first = files[number].base_offset
        if first > at["offset"]:
            self._lost(
                f"{folder_of(files[0].path)}/{at['segment']} was deleted before it was read to its end: "
                f"offsets {at['offset']}..{first - 1} are lost, the next segment begins at offset {first}"
            )
        return number, 0

    def _lost(self, text: str) -> None:
        if self.options.fail_on_data_loss:
            raise KwireError(f'{text} (set option failOnDataLoss to "false" to go on after the lost data)')
        if (text, 0) not in self.warned:
            self.warned.add((text, 0))
            warnings.warn(printable(text), RuntimeWarning, stacklevel=2)

    def _advance(self, files: list[SegmentFile], at: dict[str, Any] | None, most: int | None) -> dict[str, Any] | None:
        """Return the end of the whole batches from a point on; most: bytes, but at least one batch is read."""
        number, position = self._resume(files, at)
        reached = at
        left = most
        while number < len(files):
            file = files[number]
            end, offset = self._whole_end(file, position, left, number + 1 < len(files))
            if end > position:
                if offset is None:  # only a bad region
                    offset = reached["offset"] if reached else file.base_offset
                reached = {"segment": _name(file), "position": end, "offset": offset}
            if left is not None:
                left -= end - position
            if end < file.size or (left is not None and left <= 0):
                break
            number, position = number + 1, 0
        return reached

    def _whole_end(self, file: SegmentFile, position: int, most: int | None, closed: bool) -> tuple[int, int | None]:
        """Return the byte after the last batch to read of a segment, and the offset after it (None: unchanged)."""
        segment = opened(file, self.options)
        limit = self._last_stable(segment, file) if self.options.read_committed else None
        end, offset = position, None
        for window in Scanner(segment.file, position, file.size):
            if window.bad is not None:
                if window.end == file.size:  # no valid batch follows
                    if closed or self.options.mode == "FAILFAST":
                        return file.size, offset
                    break
                end = window.end
                continue
            for header in window_headers(window):
                if header.position + header.size > file.size:
                    break
                if limit is not None and header.last_offset >= limit:
                    return end, offset
                end, offset = header.position + header.size, header.last_offset + 1
                if most is not None and end - position >= most:
                    return end, offset
        if end < file.size:
            self._warn_torn(file, end, closed)
        return end, offset

    def _warn_torn(self, file: SegmentFile, position: int, closed: bool) -> None:
        if closed and (file.path, position) not in self.warned:
            self.warned.add((file.path, position))
            warnings.warn(
                printable(f"{shown(file.path)} has a torn batch at byte {position} of {file.size}, though later "
                          "segments exist: its partition waits for the rest"), RuntimeWarning, stacklevel=2)

    def _last_stable(self, segment: LogSegment, file: SegmentFile) -> int | None:
        """Return the first offset of the oldest open transaction (the last stable offset), None if none is open."""
        cached = self.stable.get(file.path)
        if cached is None or cached[0] != file.size or cached[1] is not None:
            first = min((offset for _, offset in segment.transactions().open), default=None)
            self.stable[file.path] = cached = (file.size, first)
        return cached[1]

    def _between(self, files: list[SegmentFile], start: dict[str, Any] | None, end: dict[str, Any]) -> int:
        return sum(last - first for _, first, last in self._byte_ranges(files, start, end))

    def _byte_ranges(
        self, files: list[SegmentFile], start: dict[str, Any] | None, end: dict[str, Any]
    ) -> Iterator[tuple[SegmentFile, int, int]]:
        """Yield (segment, first byte, byte after the last) between two points of a partition."""
        number, position = self._resume(files, start)
        for file in files[number:]:
            if _name(file) == end["segment"]:
                if end["position"] > position:
                    yield file, position, end["position"]
                return
            if file.size > position:
                yield file, position, file.size
            position = 0
        self._lost(f"{folder_of(files[0].path)}/{end['segment']} was deleted before it was read")

    def _portions(
        self, files: list[SegmentFile], start: dict[str, Any] | None, end: dict[str, Any]
    ) -> Iterator[Portion]:
        bounds = self._bounds(files[0])
        log_end = LogEnd.of(files) if self.options.read_committed else None
        for file, first, last in self._byte_ranges(files, start, end):
            marks = [first, last]
            if last - first > self.options.partition_bytes:
                spans = opened(file, self.options).split(self.options.partition_bytes)
                marks[1:1] = [span.start for span in spans if first < span.start < last]
            for begin, finish in pairwise(marks):
                yield Portion(finish - begin, SegmentRange(file, begin, finish, False, bounds, log_end))

    def _bounds(self, file: SegmentFile) -> Bounds:
        start = self.options.start_of(file.topic, file.partition)
        end = self.options.end_of(file.topic, file.partition)
        return Bounds(
            start if start >= 0 else None,
            end if end >= 0 else (-1 if end == EARLIEST else None),
            self.options.starting_timestamp,
            self.options.ending_timestamp,
        )


def _name(file: SegmentFile) -> str:
    return str(shown(file.path).rsplit("/", 1)[-1])
