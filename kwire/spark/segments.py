"""Kind "segments" (kwire.spark.describe): the segments at a path, a row each, for a look before they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kwire.spark.options import Options
from kwire.spark.partitions import by_partition, opened
from kwire.spark.schema import arrow_schema
from kwire.spark.selection import segments
from kwire.storage import BatchHeader, SegmentFile
from kwire.storage.discovery import SideFiles, in_threads
from kwire.storage.filesystem import shown
from kwire.storage.segment_ends import end_offset, first_header, last_timestamp
from kwire_c.printable import storable

COLUMNS: dict[str, spark.DataType] = {
    "topic": spark.StringType(),
    "partition": spark.IntegerType(),
    "path": spark.StringType(),
    "base_offset": spark.LongType(),
    "next_offset": spark.LongType(),
    "bytes": spark.LongType(),
    "records": spark.LongType(),
    "first_timestamp": spark.TimestampType(),
    "last_timestamp": spark.TimestampType(),
    "codec": spark.StringType(),
    "magic": spark.IntegerType(),
    "has_index": spark.BooleanType(),
    "has_timeindex": spark.BooleanType(),
    "has_txnindex": spark.BooleanType(),
}
_SEGMENTS_OF_A_TASK = 500
_DELETE_HORIZON = 0x40  # attribute: the base timestamp is not a record's
_MOST_OFFSET = 2**63 - 1
_MOST_MS = 2**63 // 1000 - 1  # that microseconds can hold


def segments_schema() -> spark.StructType:
    """Return the columns of kind "segments"."""
    return spark.StructType([spark.StructField(name, kind) for name, kind in COLUMNS.items()])


class DescribeTask(InputPartition):
    """One task: segments, each with the base offset of the one after it (-1: it is the last, or not known)."""

    def __init__(self, files: Sequence[tuple[SegmentFile, int]]) -> None:
        super().__init__(None)
        self.files = files

    def __repr__(self) -> str:
        return f"DescribeTask({len(self.files)} segments)"


class DescribeReader(DataSourceReader):
    """The reader of kind "segments"."""

    def __init__(self, options: Options, schema: spark.StructType) -> None:
        self.options, self.schema = options, schema

    def partitions(self) -> list[InputPartition]:
        """Return the tasks. Runs in the driver: it lists folders. Raises FileNotFoundError."""
        files: list[tuple[SegmentFile, int]] = []
        for group in by_partition(segments(self.options)):
            files += [(file, following.base_offset) for file, following in pairwise(group)]
            files.append((group[-1], -1))
        return [DescribeTask(files[at : at + _SEGMENTS_OF_A_TASK]) for at in range(0, len(files), _SEGMENTS_OF_A_TASK)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task, for many segments at a time. Runs in a worker."""
        if not isinstance(partition, DescribeTask):  # Spark's own partition, for an empty list of tasks
            return
        rows = in_threads(self._row, partition.files)
        schema = arrow_schema(self.schema)
        arrays = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _row(self, file_next: tuple[SegmentFile, int]) -> dict[str, Any]:
        file, following = file_next
        beside = file.beside or SideFiles()
        row: dict[str, Any] = dict.fromkeys(COLUMNS)
        row |= {
            "topic": None if file.topic is None else storable(file.topic), "partition": file.partition,
            "path": storable(shown(file.path)), "bytes": file.stored if file.stored >= 0 else None,
            "has_index": beside.offset_index >= 0, "has_timeindex": beside.time_index >= 0,
            "has_txnindex": beside.transaction_index >= 0,
        }  # fmt: skip
        base, end = file.base_offset, following
        if file.size >= 0:  # else all of it would have to be read
            segment = opened(file, self.options)
            header = first_header(segment)
            if header is not None:
                row |= {"codec": header.codec, "magic": header.magic, "first_timestamp": _first_time(header)}
                base = header.base_offset if base < 0 else base
            row["last_timestamp"] = _microseconds(last_timestamp(segment))
            if end < 0:
                end = -1 if header is None else end_offset(segment) or -1
        row["base_offset"] = base if base >= 0 else None
        if 0 <= end <= _MOST_OFFSET:  # a damaged header may say more
            row["next_offset"] = end
            row["records"] = end - base if 0 <= base <= end else None
        return row


def _first_time(header: BatchHeader) -> int | None:
    """The first record's timestamp in microseconds, None where the header does not have it."""
    if header.count < 0 or (header.magic == 2 and header.attributes & _DELETE_HORIZON):
        return None
    return _microseconds(header.max_timestamp if header.timestamp_type == "log_append" else header.base_timestamp)


def _microseconds(milliseconds: int | None) -> int | None:
    return None if milliseconds is None or not 0 <= milliseconds <= _MOST_MS else milliseconds * 1000
