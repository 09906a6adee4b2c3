"""Options and schemas: tests that need no JVM."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql.types import ArrayType, BinaryType, LongType, StringType, StructField, StructType, TimestampType

from kwire.spark import options as spark_options
from kwire.spark.capture import capture_schema
from kwire.spark.options import BATCH, EARLIEST, LATEST, NAMES, OF_OTHER_SOURCES, OPTIONS, STREAM, parse
from kwire.spark.packing import Portion, ReadTask, SegmentRange
from kwire.spark.partitions import Pushed, tasks
from kwire.spark.schema import HEADERS, check_columns, check_source_schema, source_schema
from kwire.spark.stream import SegmentStreamReader
from kwire.storage.batches import scanner
from tests.spark.logs import batch, segment

pytestmark = pytest.mark.quick


def test_defaults() -> None:
    options = parse({"path": "/logs"})
    assert (options.paths, options.mode, options.starting, options.ending) == (("/logs",), "FAILFAST", EARLIEST, LATEST)
    assert not options.read_committed and not options.include_headers
    assert options.partition_bytes == 128 << 20 and options.max_batch_bytes == 64 << 20
    assert options.open_cost_bytes == 4 << 20 and options.min_partitions is None and not options.allow_empty


def test_names_and_values_in_any_case() -> None:
    options = parse({"PATH": "/logs", "ReadCommitted": "TRUE", "MODE": "permissive", "startingoffsets": "Latest",
                   "topic": "a, b", "partition": "1,2", "partitionBytes": "2m", "openCostBytes": "0",
                   "minPartitions": "7", "allowEmpty": "true"})
    assert options.read_committed and options.mode == "PERMISSIVE" and options.starting == LATEST
    assert options.topics == ("a", "b") and options.partitions == (1, 2) and options.partition_bytes == 2 << 20
    assert options.open_cost_bytes == 0 and options.min_partitions == 7 and options.allow_empty


def test_offsets_by_json() -> None:
    options = parse({"path": "x", "startingOffsets": '{"a": {"0": 23, "1": -2}}', "endingOffsets": '{"a": {"0": -1}}'})
    assert options.start_of("a", 0) == 23 and options.start_of("a", 1) == EARLIEST
    assert options.start_of("b", 0) == EARLIEST
    assert options.end_of("a", 0) == LATEST and options.end_of(None, None) == LATEST


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "path is missing"),
        ({"path": "x", "startingOffset": "5"}, 'did you mean "startingOffsets"'),
        ({"path": "x", "zzz": "5"}, f'unknown option "zzz"; the options are {", ".join(NAMES)}$'),
        ({"path": "x", "\x1b[2J": "5"}, r'unknown option "\\x1b\[2j"'),
        ({"path": "x", "subscribePatern": "a"}, r'did you mean "subscribePattern" \(use a glob in the path'),
        ({"path": "x", "subscribe": "a"}, "option subscribe: use topic, a comma list"),
        ({"path": "x", "assign": "{}"}, "option assign: use topic and partition"),
        ({"path": "x", "kafka.bootstrap.servers": "h:1"}, "option kafka.bootstrap.servers: .* not from brokers"),
        ({"path": "x", "kafka.security.protocol": "SSL"}, "option kafka.security.protocol: .* not from brokers"),
        ({"path": "x", "maxOffsetsPerTrigger": "5"}, "use maxBytesPerTrigger"),
        ({"path": "x", "startingOffsetsByTimestamp": "{}"}, "use startingTimestamp"),
        ({"path": "x", "groupIdPrefix": "g"}, "without a consumer group"),
        ({"path": "x", "location": "y"}, 'unknown option "location"'),
        ({"path": "x", "topic": " ,"}, 'option topic is a comma list, and empty: " ,"'),
        ({"path": "x", "columns": ""}, "option columns is a comma list, and empty"),
        ({"path": "x", "kind": "captur"}, "kind"),
        ({"path": "x", "kind": "capture", "topic": "t"}, 'topic applies to the kinds records, .* segments only'),
        ({"path": "x", "mode": "LENIENT"}, 'mode must be one of FAILFAST, PERMISSIVE, DROPMALFORMED, not "LENIENT"'),
        ({"path": "x", "partition": "one"}, 'partition: "one" is not an integer'),
        ({"path": "x", "startingTimestamp": "2026-01-31"}, '"2026-01-31" is not a number of milliseconds since 1970'),
        ({"path": "x", "partition": "-1"}, "partition must be at least 0, not -1"),
        ({"path": "x", "includeHeaders": "yes"}, 'includeHeaders must be true or false, not "yes"'),
        ({"path": "x", "startingOffsets": "5"}, "startingOffsets"),
        ({"path": "x", "startingOffsets": '{"a": 5}'}, "startingOffsets"),
        ({"path": "x", "endingOffsets": '{"a": {"0": -3}}'}, "endingOffsets"),
        ({"path": "x", "startingTimestamp": "now"}, "startingTimestamp"),
        ({"path": "x", "partitionBytes": "0"}, "partitionBytes"),
        ({"path": "x", "openCostBytes": "-1"}, "openCostBytes must be at least 0"),
        ({"path": "x", "minPartitions": "0"}, "minPartitions must be at least 1"),
        ({"path": "x", "kind": "segments", "minPartitions": "2"}, 'minPartitions .* not to "segments"'),
        ({"path": "x", "storageOptions": "[]"}, "storageOptions"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        parse(options)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_refused_where_it_does_not_apply(name: str) -> None:
    values = {"kind": "records", "partition": "0", "mode": "FAILFAST", "paths": '["x"]', "storageOptions": "{}"}
    sizes = ("Bytes", "Partitions", "Trigger", "Timestamp")
    flags = ("includeHeaders", "readCommitted", "failOnDataLoss", "allowEmpty", "pushFilters")
    value = "1" if name.endswith(sizes) else "true" if name in flags else values.get(name, "latest")
    given = {"path": "x", name: value}
    known = OPTIONS[name]
    for query, there in ((BATCH, "streams"), (STREAM, "batch reads")):
        if query in known.queries:
            parse(given, query)
        else:
            with pytest.raises(ValueError, match=f"option {name} applies to {there} only"):
                parse(given, query)
    if name != "kind" and "capture" not in known.kinds:
        with pytest.raises(ValueError, match=f'option {name} applies to .* only, not to "capture"'):
            parse({**given, "kind": "capture"})
    elif name != "kind":
        parse({**given, "kind": "capture"})


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"path", "paths", "topic", "columns"}))
def test_values_are_escaped_in_errors(name: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse({"path": "x", name: "\x1b[31m\x9b\u202e"})
    assert str(caught.value).isprintable() and name in str(caught.value)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"path", "paths", "topic", "columns"}))
def test_long_values_are_cut_in_errors(name: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse({"path": "x", name: "?" * 100_000})
    assert len(str(caught.value)) < 500 and name in str(caught.value)


def test_names_of_other_sources_are_none_of_ours() -> None:
    ours = {name.lower() for name in NAMES}
    assert not ours & {name.lower() for name in OF_OTHER_SOURCES}
    for name, meaning in OF_OTHER_SOURCES.items():
        with pytest.raises(ValueError, match=f"option {name}: ") as caught:
            parse({"path": "x", name: "hunter2"})
        assert meaning in str(caught.value) and "hunter2" not in str(caught.value)


def test_what_spark_adds_to_the_options_of_a_table_is_left_out() -> None:
    assert parse({"path": "x", "provider": "kwire", "owner": "me", "location": "y"}).paths == ("x",)
    with pytest.raises(ValueError, match='unknown option "topics"; did you mean "topic"'):
        parse({"path": "x", "provider": "kwire", "topics": "t"})


def test_columns_are_chosen_by_name() -> None:
    assert source_schema(False, False, ["VALUE", "producer_id"]).simpleString() == (
        "struct<value:binary,producer_id:bigint>")
    assert source_schema(True, True, ["value"]).names == ["value", "_corrupt_record"]
    assert source_schema(False, True, ["_corrupt_record", "value"]).names == ["_corrupt_record", "value"]
    with pytest.raises(ValueError, match='unknown column "offsets"; the columns are key, '):
        source_schema(False, False, ["offsets"])
    with pytest.raises(ValueError, match='column "value" is named twice'):
        source_schema(False, False, ["value", "Value"])
    assert capture_schema(False, ["outcome"]).names == ["outcome"]
    with pytest.raises(ValueError, match='unknown column "value"; the columns are capture, '):
        capture_schema(False, ["value"])


def test_a_schema_that_is_not_the_option_columns_is_refused() -> None:
    schema = source_schema(False, False, ["offset", "value"])
    for columns in (None, ["value", "offset"], ["VALUE", "Offset"]):
        check_columns(schema, columns)
    with pytest.raises(ValueError, match='option columns is "value", but the schema has offset, value'):
        check_columns(schema, ["value"])


def test_schema_of_spark_kafka_source() -> None:
    assert source_schema(False, False).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    both = source_schema(True, True)
    assert both.names[-2:] == ["headers", "_corrupt_record"]
    assert both["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"


def test_an_older_spark_is_named() -> None:
    """PySpark 3.5 has no data sources in Python, and said only which module of its own is not there."""
    code = ('import sys; sys.modules["pyspark.sql.datasource"] = None\n'
            "import kwire.spark\n"
            "assert kwire.spark.decode_records\n"
            "kwire.spark.register")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert f'ImportError: the format "kwire" needs Spark 4.0 or newer, not {pyspark.__version__}' in ran.stderr


def test_user_schema_is_checked() -> None:
    check_source_schema(StructType([StructField("offset", LongType()), StructField("headers", HEADERS)]))
    check_source_schema(StructType([StructField("timestamp", TimestampType())]))
    with pytest.raises(ValueError, match='unknown column "offsets"; the columns are key, '):
        check_source_schema(StructType([StructField("offsets", LongType())]))
    with pytest.raises(ValueError, match='column "offset" has type bigint, not string'):
        check_source_schema(StructType([StructField("offset", StringType())]))
    offset = StructField("offset", LongType())
    for fields, text in (([], "the schema has no columns"), ([offset, offset], '"offset" is twice in the schema')):
        with pytest.raises(ValueError, match=text):
            check_source_schema(StructType(fields))
    for kind in (StructField("offset", LongType(), False), StructField("headers", HEADERS, False),
                 StructField("headers", ArrayType(HEADERS.elementType, False)), StructField("headers", ArrayType(
                     StructType([HEADERS.elementType["key"], StructField("value", BinaryType(), False)])))):
        with pytest.raises(ValueError, match=f'column "{kind.name}" may have nulls: leave NOT NULL out of the schema'):
            check_source_schema(StructType([kind]))


@pytest.mark.parametrize("name", ["startingOffsets", "endingOffsets", "storageOptions", "paths"])
def test_json_that_is_nested_too_deep_is_refused(name: str) -> None:
    given = {"path": "x", name: "[" * 100_000}
    if name == "paths":
        del given["path"]
        assert parse(given).paths == ("[" * 100_000,)
        return
    with pytest.raises(ValueError, match=name):
        parse(given)


def test_secrets_are_in_no_repr() -> None:
    options = parse({"path": "s3://u:hunter2@b/x", "storageOptions": '{"secret": "hunter2"}'})
    assert "hunter2" not in repr(options) and options.storage_options == {"secret": "hunter2"}


def test_a_gz_is_one_task_because_each_would_decompress_it(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, *(batch(3 * at) for at in range(50)))
    assert len(tasks(parse({"path": str(tmp_path), "partitionBytes": "300"}), Pushed())) > 10
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    [task] = tasks(parse({"path": str(tmp_path), "partitionBytes": "300"}), Pushed())
    [part] = task.ranges
    assert (part.start, part.end) == (0, None)


def test_a_stream_skips_bad_regions_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [b"\xff" * 90 + batch(6 * at) + batch(6 * at + 3) for at in range(20)]
    path = segment(tmp_path / "t-0", 0, *parts)
    passes: list[int] = []
    real = scanner.Scanner.__init__

    def begun(self: scanner.Scanner, *arguments: object, **options: object) -> None:
        passes.append(1)
        real(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(scanner.Scanner, "__init__", begun)
    wanted = parse({"path": str(tmp_path), "mode": "PERMISSIVE"})
    reached = SegmentStreamReader(wanted, source_schema(False, False)).latestOffset({})
    assert reached["topics"]["t"]["0"][:3] == [120, 0, path.stat().st_size]
    assert len(passes) < 5


def test_secrets_of_a_url_are_in_no_task_and_no_offset_of_a_stream() -> None:
    from kwire.storage import SegmentFile
    from kwire.storage.reading.bounds import Bounds

    file = SegmentFile("s3://u:hunter2@b/t-0/0.log?X-Amz-Signature=SECRET", "t", 0, 0, 9)
    part = SegmentRange(file, 0, 9, True, Bounds(), None)
    texts = [repr(part), repr(ReadTask([part])), repr(Portion(9, part)), repr(file)]
    assert not any("hunter2" in text or "SECRET" in text for text in texts)


def test_an_option_of_spark_without_a_value() -> None:
    given: Any = dict.fromkeys(spark_options.NAMES) | {"path": "/x"}
    assert spark_options.parse(given) == spark_options.parse({"path": "/x"})


@pytest.mark.quick
def test_nothing_is_written() -> None:
    from kwire.spark.source import KwireDataSource

    source = KwireDataSource({"path": "x"})
    for writer in (source.writer, source.streamWriter):
        with pytest.raises(ValueError, match="reads segments, it writes none"):
            writer(source.schema(), False)
