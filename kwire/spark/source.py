"""The "kwire" data source: record batches in Kafka's log segments as rows, without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader

from kwire.spark.options import Options, parse
from kwire.spark.schema import check_columns, check_source_schema, source_schema
from kwire.spark.worker import settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from kwire.spark.stream import SegmentStreamReader


class KwireDataSource(DataSource):
    """spark.read.format("kwire") and spark.readStream.format("kwire"); see register()."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "kwire"

    def schema(self) -> StructType:
        """Return the columns of Spark's own Kafka source, with headers and _corrupt_record if the options ask for them.

        For kind "capture": kwire.spark.capture.COLUMNS; for kind "segments": kwire.spark.segments.COLUMNS.
        """
        options = self._parsed()
        if options.kind == "capture":
            from kwire.spark.capture import capture_schema

            return capture_schema(options.mode == "PERMISSIVE")
        if options.kind == "segments":
            from kwire.spark.segments import segments_schema

            return segments_schema()
        return source_schema(options.include_headers, options.mode == "PERMISSIVE")

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query; schema: the requested columns."""
        options = self._parsed()
        if options.kind == "capture":
            from kwire.spark.capture import COLUMNS, CaptureReader

            check_columns(schema, COLUMNS)
            return CaptureReader(options, schema)
        if options.kind == "segments":
            from kwire.spark.segments import COLUMNS, DescribeReader

            check_columns(schema, COLUMNS)
            return DescribeReader(options, schema)
        from kwire.spark.reader import SegmentReader

        check_source_schema(schema)
        return SegmentReader(options, schema)

    def streamReader(self, schema: StructType) -> SegmentStreamReader:
        """Return the reader of a streaming query; schema: the requested columns."""
        from kwire.spark.stream import SegmentStreamReader

        options = self._parsed()
        if options.kind != "records":
            raise ValueError(f'option kind: streams support "records" only, not "{options.kind}"')
        check_source_schema(schema)
        return SegmentStreamReader(options, schema)

    def _parsed(self) -> Options:
        settle()  # Spark forks and keeps the planning processes, too
        return parse(dict(self.options.items()))


def register(spark: SparkSession) -> None:
    """Register the format "kwire" with a session, for spark.read.format("kwire").load(path).

    path: a segment, a partition folder, a log directory, a glob, or a comma list of these; local or an fsspec URL.
    Options, columns and modes: see the README. The executors need kwire too (spark.archives on a cluster).
    """
    spark.dataSource.register(KwireDataSource)
