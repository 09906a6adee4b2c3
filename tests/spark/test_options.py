"""Options and schemas: what needs no JVM."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from kwire.spark.options import EARLIEST, LATEST, parse
from kwire.spark.schema import check_source_schema, source_schema

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
        ({"path": "x", "kind": "offsets"}, "not there yet"),
        ({"path": "x", "kind": "capture", "topic": "t"}, "topic"),
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
