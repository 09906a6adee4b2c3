"""The "kwire" data source: record batches in Kafka's log segments as rows, without a broker."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark.errors import AnalysisException

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
except ModuleNotFoundError as missing:
    raise ImportError(
        f'the format "kwire" needs Spark 4.0 or newer, not {pyspark.__version__}', name=missing.name) from missing

from kwire.spark.options import BATCH, INTERNAL_KINDS, LOG_KINDS, STREAM, Options, parse
from kwire.spark.schema import check_columns, check_source_schema, check_types, source_schema
from kwire.spark.worker import in_one_line, settle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, InputPartition
    from pyspark.sql.types import StructType

_READS_ONLY = ('the format "kwire" reads segments, it writes none: format("kafka") writes to a broker, '
               'format("parquet") to files')


class KwireDataSource(DataSource):
    """spark.read.format("kwire") and spark.readStream.format("kwire"); see register()."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "kwire"

    @in_one_line
    def schema(self) -> StructType:
        """Return the columns of Spark's own Kafka source, with headers and _corrupt_record if the options ask for them.

        For the kinds of internal topics: kwire.spark.internal_topics.COLUMNS; for "capture" and "segments" likewise.
        With the option columns only those.
        """
        options = self._parsed()
        permissive = options.mode == "PERMISSIVE"
        if options.kind == "capture":
            from kwire.spark.capture import capture_schema

            return capture_schema(permissive, options.columns)
        if options.kind == "segments":
            from kwire.spark.segments import segments_schema

            return segments_schema()
        if options.kind in INTERNAL_KINDS:
            from kwire.spark.internal_topics import internal_schema

            return internal_schema(options.kind, permissive, options.columns)
        return source_schema(options.include_headers, permissive, options.columns)

    @in_one_line
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query; schema: the requested columns."""
        options = self._parsed(BATCH)
        check_columns(schema, options.columns)
        if options.kind == "capture":
            from kwire.spark.capture import COLUMNS, CaptureReader

            check_types(schema, COLUMNS)
            return CaptureReader(options, schema)
        if options.kind == "segments":
            from kwire.spark.segments import COLUMNS, DescribeReader

            check_types(schema, COLUMNS)
            return DescribeReader(options, schema)
        from kwire.spark.reader import SegmentReader

        _check_log_schema(options, schema)
        return SegmentReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query; schema: the requested columns.

        It raises the error of wrong options or columns at its first call: PySpark loses one that is raised here.
        """
        from kwire.spark.stream import SegmentStreamReader

        try:
            options = self._parsed(STREAM)
            if options.kind not in LOG_KINDS:
                raise ValueError(f'option kind: streams support {", ".join(LOG_KINDS)} only, not "{options.kind}"')
            if options.max_bytes_per_trigger is not None and find_spec("pyspark.sql.streaming.datasource") is None:
                raise ValueError(f"option maxBytesPerTrigger: Spark {pyspark.__version__} gives a Python source no "
                                 "limit; Spark 4.2 and newer do")
            check_columns(schema, options.columns)
            _check_log_schema(options, schema)
        except ValueError as error:
            return _RefusedStream(error)
        return SegmentStreamReader(options, schema)

    @in_one_line
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Raise ValueError: nothing is written."""
        raise ValueError(_READS_ONLY)

    @in_one_line
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Raise ValueError: nothing is written."""
        raise ValueError(_READS_ONLY)

    def _parsed(self, query: str | None = None) -> Options:
        settle()  # Spark forks and keeps the planning processes, too
        options = parse(dict(self.options.items()), query)
        if options.push_filters:
            from kwire.spark.pushdown import check_pushdown

            check_pushdown()
        return options


def _check_log_schema(options: Options, schema: StructType) -> None:
    """Raise ValueError for a user's schema that a kind of record rows does not have."""
    if options.kind == "records":
        check_source_schema(schema)
        return
    from kwire.spark.internal_topics import COLUMNS

    check_types(schema, COLUMNS[options.kind])


class _RefusedStream(DataSourceStreamReader):
    """The reader of a stream that cannot be read: every call raises the reason."""

    def __init__(self, error: ValueError) -> None:
        self.error = error

    @in_one_line
    def initialOffset(self) -> dict[str, Any]:
        """Raise the error; the first call of a new query."""
        raise self.error

    @in_one_line
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Raise the error; the first call of a query that goes on from its checkpoint, or partitions()."""
        raise self.error

    @in_one_line
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Raise the error."""
        raise self.error

    def read(self, partition: InputPartition) -> Any:
        """Raise the error; not called, as there are no partitions."""
        raise self.error


def register(spark: SparkSession) -> None:
    """Register the format "kwire" with a session, for spark.read.format("kwire").load(path).

    Nothing to do where Spark has found it already, by the package pyspark_kwire beside this one.
    path: a segment, a partition folder, a log directory, a glob, or a comma list of these; local or an fsspec URL.
    Options, columns and modes: see docs/spark-source.md. The executors need kwire too (spark.archives on a cluster).
    """
    if not hasattr(spark, "dataSource"):
        raise TypeError(f"spark must be a SparkSession, not {type(spark).__name__}")
    try:
        spark.dataSource.register(KwireDataSource)
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def describe(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    """Return a DataFrame of the segments at a path, a row each; nothing is decoded.

    topic, partition, path; base_offset: by the name, else of the first batch; next_offset: where the next segment
    begins, of the last one the offset after its last whole batch; bytes: as stored; records: the offsets from base to
    next, more than its records where a topic is compacted or has transactions; first_timestamp: of the first record;
    last_timestamp: the largest one by the .timeindex; codec and magic: of the first batch; has_index, has_timeindex,
    has_txnindex: is there such a file. Null is what is not known without reading the segment: of a .gz, damage, a
    missing .timeindex.

    path: as for the format "kwire"; options: topic, partition, allowEmpty, storageOptions. The driver lists folders
    only, the executors read 61 bytes and an index entry of each segment, and a piece at the end of a partition's last
    one.
    Raises, when it is used, ValueError for an unknown option and for a topic or a partition that is not there,
    FileNotFoundError for a path without a segment; allowEmpty=True allows the last three.
    """
    register(spark)
    reader = spark.read.format("kwire").option("kind", "segments")
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load(path)
