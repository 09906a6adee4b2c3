"""Options and schemas: tests that need no JVM."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from kwire.spark.options import EARLIEST, LATEST, parse
from kwire.spark.partitions import Pushed, SegmentRange, folder_of, ranges
from kwire.spark.schema import check_source_schema, source_schema
from kwire.spark.stream import SegmentStreamReader
from kwire.storage import scanner
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
        ({"path": "x", "kind": "captur"}, "kind"),
        ({"path": "x", "kind": "offsets"}, "not supported yet"),
        ({"path": "x", "kind": "capture", "topic": "t"}, 'topic applies to kind "records" only'),
        ({"path": "x", "mode": "LENIENT"}, 'mode must be one of FAILFAST, PERMISSIVE, DROPMALFORMED, not "LENIENT"'),
        ({"path": "x", "partition": "one"}, 'partition: "one" is not an integer'),
        ({"path": "x", "partition": "-1"}, "partition must be at least 0, not -1"),
        ({"path": "x", "includeHeaders": "yes"}, 'includeHeaders must be true or false, not "yes"'),
        ({"path": "x", "startingOffsets": "5"}, "startingOffsets"),
        ({"path": "x", "startingOffsets": '{"a": 5}'}, "startingOffsets"),
        ({"path": "x", "endingOffsets": '{"a": {"0": -3}}'}, "endingOffsets"),
        ({"path": "x", "startingTimestamp": "now"}, "startingTimestamp"),
        ({"path": "x", "partitionBytes": "0"}, "partitionBytes"),
        ({"path": "x", "openCostBytes": "-1"}, "openCostBytes"),
        ({"path": "x", "minPartitions": "0"}, "minPartitions must be at least 1"),
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
    with pytest.raises(ValueError, match='unknown column "offsets"; the columns are key, '):
        check_source_schema(StructType([StructField("offsets", LongType())]))
    with pytest.raises(ValueError, match='column "offset" has type bigint, not string'):
        check_source_schema(StructType([StructField("offset", StringType())]))


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
    assert len(ranges(parse({"path": str(tmp_path), "partitionBytes": "300"}), Pushed())) > 10
    size = path.stat().st_size
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    (task,) = ranges(parse({"path": str(tmp_path), "partitionBytes": "300"}), Pushed())
    assert (task.start, task.end) == (0, size)


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
    assert reached[str(path.parent)] == {"segment": path.name, "position": path.stat().st_size, "offset": 120}
    assert len(passes) < 5


def test_secrets_of_a_url_are_in_no_task_and_no_offset_of_a_stream() -> None:
    from kwire.storage import SegmentFile
    from kwire.storage.bounds import Bounds

    file = SegmentFile("s3://u:hunter2@b/t-0/0.log?X-Amz-Signature=SECRET", "t", 0, 0, 9)
    texts = [repr(SegmentRange(file, 0, 9, True, Bounds(), None)), repr(file), folder_of(file.path)]
    assert not any("hunter2" in text or "SECRET" in text for text in texts)
    assert folder_of(file.path) == "s3://b/t-0"
