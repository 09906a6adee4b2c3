"""Kind "segments" (kwire.spark.describe): the segments at a path, a row each, for a look before they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.datasource import DataSourceReader, InputPartition

from kwire.spark.options import Options
from kwire.spark.schema import arrow_schema
from kwire.spark.selection import check_chosen, segments
from kwire.spark.worker import in_one_line
from kwire.storage import SegmentFile
from kwire.storage.places.discovery import by_partition
from kwire.storage.reading.segment_summaries import SegmentSummary, following, summarize_segments

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

    @in_one_line
    def partitions(self) -> list[InputPartition]:
        """Return the tasks. Runs in the driver: it lists folders.

        Raises ValueError or FileNotFoundError if the options choose nothing.
        """
        files: list[tuple[SegmentFile, int]] = []
        chosen = segments(self.options)
        check_chosen(chosen, self.options)
        for group in by_partition(chosen).values():
            files += following(group)
        return [DescribeTask(files[at : at + _SEGMENTS_OF_A_TASK]) for at in range(0, len(files), _SEGMENTS_OF_A_TASK)]

    @in_one_line
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task, for many segments at a time; those that are gone have none. Runs in a worker."""
        if not isinstance(partition, DescribeTask):  # Spark's own partition, for an empty list of tasks
            return
        found = summarize_segments(partition.files, heads=False, options=self.options.storage_options)
        rows = list(map(_row, found))
        schema = arrow_schema(self.schema)
        arrays = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _row(summary: SegmentSummary) -> dict[str, Any]:
    return summary._asdict() | {
        "first_timestamp": _microseconds(summary.first_timestamp),
        "last_timestamp": _microseconds(summary.last_timestamp),
    }


def _microseconds(milliseconds: int | None) -> int | None:
    return None if milliseconds is None or milliseconds > _MOST_MS else milliseconds * 1000
