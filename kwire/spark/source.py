"""The "kwire" data source: record batches in Kafka's log segments as rows, without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader

from kwire.spark.options import Options, parse
from kwire.spark.schema import check_source_schema, source_schema
from kwire.spark.worker import settle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from kwire.spark.stream import SegmentStreamReader


class KwireDataSource(DataSource):
    """spark.read.format("kwire") and spark.readStream.format("kwire"); see register for how to get it there."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "kwire"

    def schema(self) -> StructType:
        """Return the columns of Spark's own Kafka source, with headers and _corrupt_record where they are asked for.

        Those of captures are kwire.spark.capture.COLUMNS.
        """
        wanted = self._parsed()
        if wanted.kind == "capture":
            from kwire.spark.capture import capture_schema

            return capture_schema(wanted.mode == "PERMISSIVE")
        return source_schema(wanted.include_headers, wanted.mode == "PERMISSIVE")

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query; schema: the columns wanted."""
        wanted = self._parsed()
        if wanted.kind == "capture":
            from kwire.spark.capture import CaptureReader, check_capture_schema

            check_capture_schema(schema)
            return CaptureReader(wanted, schema)
        from kwire.spark.reader import SegmentReader

        check_source_schema(schema)
        return SegmentReader(wanted, schema)

    def streamReader(self, schema: StructType) -> SegmentStreamReader:
        """Return the reader of a streaming query; schema: the columns wanted."""
        from kwire.spark.stream import SegmentStreamReader

        wanted = self._parsed()
        if wanted.kind != "records":
            raise ValueError(f'option kind: a stream reads "records", not "{wanted.kind}"')
        check_source_schema(schema)
        return SegmentStreamReader(wanted, schema)

    def _parsed(self) -> Options:
        settle()  # the processes that plan are forked and kept, too
        return parse(dict(self.options.items()))


def register(spark: SparkSession) -> None:
    """Make the format "kwire" known to a session: spark.read.format("kwire").load(path) works from then on.

    path: a segment, a partition folder, a log directory, a glob, or a comma list of these; local or an fsspec URL.
    Options, columns and modes: see the README. The executors need kwire too (spark.archives on a cluster).
    """
    spark.dataSource.register(KwireDataSource)
