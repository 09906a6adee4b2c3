"""Options, schemas and pushed filters: what needs no JVM."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import datasource
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from kwire.spark.options import EARLIEST, LATEST, parse
from kwire.spark.plan import Bounds, Pushed
from kwire.spark.pushdown import push
from kwire.spark.shape import check_source_schema, source_schema
from kwire.spark.source import KwireDataSource

pytestmark = pytest.mark.quick


def test_defaults() -> None:
    found = parse({"path": "/logs"})
    assert (found.paths, found.mode, found.starting, found.ending) == (("/logs",), "FAILFAST", EARLIEST, LATEST)
    assert not found.read_committed and not found.include_headers
    assert found.partition_bytes == 128 << 20 and found.max_batch_bytes == 64 << 20


def test_names_and_values_in_any_case() -> None:
    found = parse({"PATH": "/logs", "ReadCommitted": "TRUE", "MODE": "permissive", "startingoffsets": "Latest",
                   "topic": "a, b", "partition": "1,2", "partitionBytes": "2m"})
    assert found.read_committed and found.mode == "PERMISSIVE" and found.starting == LATEST
    assert found.topics == ("a", "b") and found.partitions == (1, 2) and found.partition_bytes == 2 << 20


def test_offsets_by_json() -> None:
    found = parse({"path": "x", "startingOffsets": '{"a": {"0": 23, "1": -2}}', "endingOffsets": '{"a": {"0": -1}}'})
    assert found.start_of("a", 0) == 23 and found.start_of("a", 1) == EARLIEST
    assert found.start_of("b", 0) == EARLIEST and found.end_of("a", 0) == LATEST and found.end_of(None, None) == LATEST


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "path is missing"),
        ({"path": "x", "startingOffset": "5"}, 'did you mean "startingOffsets"'),
        ({"path": "x", "kind": "captur"}, "kind"),
        ({"path": "x", "kind": "capture"}, "not there yet"),
        ({"path": "x", "mode": "LENIENT"}, "mode"),
        ({"path": "x", "partition": "one"}, "partition"),
        ({"path": "x", "partition": "-1"}, "partition"),
        ({"path": "x", "includeHeaders": "yes"}, "includeHeaders"),
        ({"path": "x", "startingOffsets": "5"}, "startingOffsets"),
        ({"path": "x", "startingOffsets": '{"a": 5}'}, "startingOffsets"),
        ({"path": "x", "endingOffsets": '{"a": {"0": -3}}'}, "endingOffsets"),
        ({"path": "x", "startingTimestamp": "now"}, "startingTimestamp"),
        ({"path": "x", "partitionBytes": "0"}, "partitionBytes"),
        ({"path": "x", "storageOptions": "[]"}, "storageOptions"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse(options)


def test_schema_of_spark_kafka_source() -> None:
    assert source_schema(False, False).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    both = source_schema(True, True)
    assert both.names[-2:] == ["headers", "_corrupt_record"]
    assert both["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"


def test_user_schema_is_checked() -> None:
    check_source_schema(StructType([StructField("offset", LongType(), False)]))
    check_source_schema(StructType([StructField("timestamp", TimestampType())]))
    with pytest.raises(ValueError, match='"offsets" is unknown'):
        check_source_schema(StructType([StructField("offsets", LongType())]))
    with pytest.raises(ValueError, match='"offset" is bigint, the schema says string'):
        check_source_schema(StructType([StructField("offset", StringType())]))


def test_reader_pickles_with_its_pushed_filters(tmp_path: Any) -> None:
    reader = KwireDataSource({"path": str(tmp_path), "pushFilters": "true"}).reader(source_schema(False, False))
    # what Spark asks while pushdown is off
    assert reader.pushFilters.__func__ is datasource.DataSourceReader.pushFilters
    left = list(reader.pushFilters([datasource.EqualTo(("offset",), 7), datasource.EqualTo(("key",), b"k")]))
    assert left == [datasource.EqualTo(("key",), b"k")]
    assert pickle.loads(pickle.dumps(reader)).pushed.bounds == Bounds(7, 8)


NOON = datetime(2024, 1, 1, 12, 0, 0, 500, UTC)
NOON_MS = 1704110400000


@pytest.mark.parametrize(
    ("one", "left", "exact"),
    [
        (datasource.GreaterThan(("offset",), 4), Pushed(bounds=Bounds(start_offset=5)), True),
        (datasource.GreaterThanOrEqual(("offset",), 4), Pushed(bounds=Bounds(start_offset=4)), True),
        (datasource.LessThan(("offset",), 4), Pushed(bounds=Bounds(end_offset=4)), True),
        (datasource.LessThanOrEqual(("offset",), 4), Pushed(bounds=Bounds(end_offset=5)), True),
        (datasource.In(("offset",), [9, 4]), Pushed(bounds=Bounds(4, 10)), False),
        (datasource.In(("partition",), [1, 2]), Pushed(partitions=frozenset({1, 2})), True),
        (datasource.EqualTo(("topic",), "a"), Pushed(topics=frozenset({"a"})), True),
        (datasource.EqualTo(("timestamp",), NOON), Pushed(bounds=Bounds(None, None, NOON_MS, NOON_MS + 1)), False),
        (datasource.GreaterThan(("timestamp",), NOON), Pushed(bounds=Bounds(start_timestamp=NOON_MS)), False),
        (datasource.LessThanOrEqual(("timestamp",), NOON), Pushed(bounds=Bounds(end_timestamp=NOON_MS + 1)), False),
        (datasource.GreaterThan(("partition",), 1), Pushed(), False),
        (datasource.IsNotNull(("offset",)), Pushed(), False),
        (datasource.EqualTo(("headers", "key"), "a"), Pushed(), False),
        (datasource.Not(datasource.EqualTo(("offset",), 4)), Pushed(), False),
    ],
)
def test_pushed_filters(one: Any, left: Pushed, exact: bool) -> None:
    assert push(Pushed(), one) == (left, exact)


def test_pushed_filters_narrow_each_other() -> None:
    pushed = push(Pushed(), datasource.GreaterThan(("offset",), 4))[0]
    pushed = push(pushed, datasource.LessThan(("offset",), 9))[0]
    assert pushed.bounds == Bounds(5, 9)
    assert push(pushed, datasource.LessThan(("offset",), 5))[0].bounds.empty
