"""spark.read.format("kwire"): rows, columns, selection, byte ranges and filters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import datasource

import kwire
from tests.spark.logs import START, batch, marker, segment, transaction

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, path: Any, schema: str | None = None, **options: Any) -> DataFrame:
    reader = spark.read.format("kwire")
    for name, value in options.items():
        reader = reader.option(name, value)
    return (reader.schema(schema) if schema else reader).load(str(path))


def offsets(frame: DataFrame) -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


def expected_rows(path: Path) -> list[tuple[Any, ...]]:
    """The rows of a segment by the object interface, which has oracle tests of its own."""
    folder = path.parent.name
    topic, partition = folder.rsplit("-", 1)
    kinds = {"none": -1, "create": 0, "log_append": 1}
    return [
        (record.key, record.value, topic, int(partition), record.offset, record.timestamp, kinds[entry.timestamp_type],
         [(key, value) for key, value in record.headers] or None)
        for entry in kwire.read_batches(path.read_bytes())
        if not entry.is_control
        for record in entry
    ]


def by_place(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[2:5]


@pytest.mark.parametrize("release", ["4.3.0", "2.2.2", "2.8.2"])
def test_a_log_directory_of_a_real_broker(spark: SparkSession, golden: Path, release: str) -> None:
    folder = golden / "data" / f"kafka-{release}" / "data1"
    frame = read(spark, folder, includeHeaders="true").selectExpr("*", "unix_millis(timestamp) as ms")
    rows = [tuple(row) for row in frame.select("key", "value", "topic", "partition", "offset", "ms", "timestampType",
                                               "headers").collect()]
    found = sorted(((*map(_bytes, row[:2]), *row[2:7], _pairs(row[7])) for row in rows), key=by_place)
    wanted = [row for path in sorted(folder.glob("*-*/*.log")) for row in expected_rows(path)]
    assert found == sorted(wanted, key=by_place)
    assert len(found) > 500


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def _pairs(headers: Any) -> Any:
    return None if headers is None else [(header.key, _bytes(header.value)) for header in headers]


@pytest.mark.parametrize("release", ["0.9.0.1", "0.10.2.2"])
def test_formats_before_magic_2(spark: SparkSession, golden: Path, release: str) -> None:
    paths = sorted((golden / "old-brokers" / release).rglob("*.log"))
    assert paths
    folder = paths[0].parents[1]
    rows = read(spark, folder).selectExpr("key", "value", "topic", "partition", "offset",
                                          "unix_millis(timestamp) as ms", "timestampType").collect()
    found = sorted((tuple(row) for row in rows), key=by_place)
    wanted = sorted((row[:7] for path in paths for row in expected_rows(path)), key=by_place)
    assert [(*map(_bytes, row[:2]), *row[2:]) for row in found] == wanted
    if release == "0.9.0.1":
        assert {row[5:7] for row in found} == {(-1, -1)}


def test_schema_and_columns_named_by_the_user(spark: SparkSession, tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0, 2, producer_id=7, producer_epoch=3, base_sequence=11,
                                              partition_leader_epoch=5))
    assert read(spark, path).columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert read(spark, path, includeHeaders=True).columns[-1] == "headers"
    schema = "source string, sequence int, producer_id long, producer_epoch short, leader_epoch int, offset long"
    rows = [tuple(row) for row in read(spark, path, schema).collect()]
    assert rows == [(str(path), 11, 7, 3, 5, 0), (str(path), 12, 7, 3, 5, 1)]
    assert read(spark, path, "topic string").distinct().collect()[0].topic == "t"
    with pytest.raises(Exception, match='unknown column "ofset"'):
        read(spark, path, "ofset long").collect()


def test_every_kind_of_path(spark: SparkSession, tmp_path: Path) -> None:
    first = segment(tmp_path / "a-0", 0, batch(0, 2))
    second = segment(tmp_path / "a-1", 10, batch(10, 2))
    other = segment(tmp_path / "b-0", 20, batch(20, 2))
    (tmp_path / "a-0" / "00000000000000000000.log.deleted").write_bytes(b"junk")
    (tmp_path / "a-0" / "00000000000000000000.index").write_bytes(b"")
    lone = tmp_path / "lone.bin"
    lone.write_bytes(batch(30, 1))
    assert offsets(read(spark, first)) == [0, 1]
    assert offsets(read(spark, second.parent)) == [10, 11]
    assert offsets(read(spark, tmp_path)) == [0, 1, 10, 11, 20, 21]
    assert offsets(read(spark, f"{tmp_path}/a-*")) == [0, 1, 10, 11]
    assert offsets(read(spark, f"{first},{other.parent}")) == [0, 1, 20, 21]
    assert offsets(read(spark, f"file://{tmp_path}", topic="a", partition="1")) == [10, 11]
    assert offsets(read(spark, tmp_path, topic="a,b", partition="0")) == [0, 1, 20, 21]
    row = read(spark, lone).first()
    assert (row.topic, row.partition, row.offset) == (None, None, 30)
    row = read(spark, lone, topic="x", partition="4").first()
    assert (row.topic, row.partition) == ("x", 4)
    assert offsets(spark.read.format("kwire").load([str(first), str(other)])) == [0, 1, 20, 21]
    assert offsets(spark.read.format("kwire").load([f"file:{first}", f"file://{other}"])) == [0, 1, 20, 21]
    assert offsets(read(spark, f"file:{tmp_path}/{{a-[^0],b-*}}/*.log")) == [10, 11, 20, 21]
    with pytest.raises(Exception, match="no such file"):
        read(spark, tmp_path / "nothing").collect()


def test_other_stores_by_url(spark: SparkSession, tmp_path: Path) -> None:
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        keys = {"endpoint_url": f"http://{host}:{port}", "key": "testing", "secret": "testing"}
        client = boto3.client("s3", region_name="us-east-1", endpoint_url=keys["endpoint_url"],
                              aws_access_key_id="testing", aws_secret_access_key="testing")
        client.create_bucket(Bucket="logs")
        for partition in (0, 1):
            client.put_object(Bucket="logs", Key=f"kafka/t-{partition}/{0:020d}.log", Body=batch(0) + batch(3))
        found = read(spark, "s3://logs/kafka", storageOptions=json.dumps(keys), partitionBytes=len(batch(0)))
        assert offsets(found) == sorted([0, 1, 2, 3, 4, 5] * 2) and found.rdd.getNumPartitions() == 4
    finally:
        server.stop()


def test_a_segment_in_byte_ranges(spark: SparkSession, tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, *(batch(n * 5, 5) for n in range(200)))
    size = len(batch(0, 5))
    frame = read(spark, tmp_path, partitionBytes=20 * size)
    assert 8 <= frame.rdd.getNumPartitions() <= 12
    assert offsets(frame) == list(range(1000))


def test_arrow_batches_of_about_ten_thousand_rows(tmp_path: Path) -> None:
    from kwire.spark.schema import source_schema
    from kwire.spark.source import KwireDataSource

    segment(tmp_path / "t-0", 0, *(batch(n * 100, 100) for n in range(350)))
    reader = KwireDataSource({"path": str(tmp_path)}).reader(source_schema(False, False))
    sizes = [part.num_rows for task in reader.partitions() for part in reader.read(task)]
    assert sum(sizes) == 35_000 and all(8_000 <= size <= 12_000 for size in sizes[:-1])


def test_offsets_and_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, batch(0, 5), batch(5, 5))
    segment(tmp_path / "t-0", 10, batch(10, 5), batch(15, 5))
    segment(tmp_path / "u-0", 0, batch(0, 5))

    def t(**options: Any) -> list[int]:
        return offsets(read(spark, tmp_path / "t-0", **options))

    assert t(startingOffsets=json.dumps({"t": {"0": 3}})) == list(range(3, 20))
    assert t(startingOffsets=json.dumps({"t": {"0": 12}}), endingOffsets=json.dumps({"t": {"0": 14}})) == [12, 13]
    assert t(endingOffsets=json.dumps({"t": {"0": 10}})) == list(range(10))
    assert t(startingOffsets="latest") == [] and t(endingOffsets="earliest") == []
    assert t(startingOffsets=json.dumps({"t": {"0": -1}})) == []
    whole = {"startingOffsets": json.dumps({"t": {"0": -2}}), "endingOffsets": json.dumps({"t": {"0": -1}})}
    assert t(**whole) == list(range(20))
    assert t(startingTimestamp=START + 7, endingTimestamp=START + 12) == [7, 8, 9, 10, 11]
    assert t(startingTimestamp=START + 99) == []
    # partitions that the JSON leaves out are read whole
    assert offsets(read(spark, tmp_path, startingOffsets=json.dumps({"t": {"0": 18}}))) == [0, 1, 2, 3, 4, 18, 19]


def test_committed(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    size = len(transaction(0, 1))
    segment(folder, 0, batch(0, 1), transaction(1, 1), transaction(3, 2), marker(5, 2, True), batch(6, 1))
    segment(folder, 7, transaction(7, 1), marker(9, 1, False), transaction(10, 1), marker(12, 1, True),
            transaction(13, 3))  # still open
    everything = [0, 1, 2, 3, 4, 6, 7, 8, 10, 11, 13, 14]
    kept = [0, 3, 4, 6, 10, 11]
    for cut in (128 << 20, size):
        assert offsets(read(spark, tmp_path, partitionBytes=cut)) == everything
        assert offsets(read(spark, tmp_path, partitionBytes=cut, readCommitted="true")) == kept
    first = read(spark, folder / f"{0:020d}.log", readCommitted="true")
    assert offsets(first) == [0, 3, 4, 6]  # the abort marker is in the next segment


def test_committed_is_what_a_real_broker_wrote(spark: SparkSession, golden: Path) -> None:
    folder = golden / "data" / "kafka-4.3.0" / "data1"
    every = read(spark, folder, topic="alpha-tx").count()
    committed = read(spark, folder, topic="alpha-tx", readCommitted="true")
    assert 0 < committed.count() < every
    for partition in (0, 1):
        aborted = set()
        pending: dict[int, list[int]] = {}
        for path in sorted((folder / f"alpha-tx-{partition}").glob("*.log")):
            for found in kwire.read_batches(path.read_bytes()):
                if found.is_control:
                    [record] = found
                    offsets_of = pending.pop(found.producer_id, [])
                    if record.key[3] == 0:
                        aborted.update(offsets_of)
                elif found.is_transactional:
                    pending.setdefault(found.producer_id, []).extend(record.offset for record in found)
        assert not set(offsets(committed.where(f"partition = {partition}"))) & aborted


@pytest.mark.parametrize("conf", ["false", "true"])
def test_filters(spark: SparkSession, tmp_path: Path, conf: str) -> None:
    for partition in (0, 1):
        segment(tmp_path / f"t-{partition}", 0, batch(0, 5), batch(5, 5), batch(10, 5))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", conf)
    frame = read(spark, tmp_path)
    try:
        assert offsets(frame.where("offset >= 6 and offset < 9 and partition = 1")) == [6, 7, 8]
        assert offsets(frame.where("offset in (1, 12) and topic = 't'")) == [1, 1, 12, 12]
        assert offsets(frame.where("topic = 'other'")) == []
        assert offsets(frame.where(f"timestamp > timestamp_millis({START + 12})")) == [13, 13, 14, 14]
        assert offsets(frame.where("key = cast('k3' as binary) or offset = 4")) == [3, 3, 4, 4]
        assert offsets(frame.where("partition = 0 and offset > 12")) == [13, 14]
        # what one query pushes must not reach the next, nor the other half of a union
        assert frame.count() == 30 and frame.where("offset = 1").union(frame).count() == 32
        if not hasattr(datasource.DataSourceReader, "pushLimit"):
            with pytest.raises(Exception, match=r"option pushFilters: Spark .* rows of an earlier one"):
                read(spark, tmp_path, pushFilters="true").count()
            return
        narrowed = read(spark, tmp_path, pushFilters="true")
        assert narrowed.where("partition = 1 and offset > 12").count() == 2 and narrowed.count() == 30
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_directory_without_segments_is_an_error_unless_it_may_be_empty(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(Exception, match=r"FileNotFoundError: .*no segments .*there is 1 entry: notes\.txt"):
        read(spark, tmp_path).collect()
    assert read(spark, tmp_path, allowEmpty="true").collect() == []
    segment(tmp_path / "t-0", 0)
    assert read(spark, tmp_path).collect() == []


def test_columns_are_those_of_the_option(spark: SparkSession, tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, batch(0, 3))
    frame = read(spark, tmp_path, columns="value, OFFSET")
    assert frame.columns == ["value", "offset"]
    assert [tuple(row) for row in frame.orderBy("offset").collect()] == [(b"v0", 0), (b"v1", 1), (b"v2", 2)]
    with pytest.raises(Exception, match=r'unknown column "ofset"; the columns are key, value'):
        read(spark, tmp_path, columns="ofset")
    with pytest.raises(Exception, match=r'option columns is "value", but the schema has offset'):
        read(spark, tmp_path, "offset long", columns="value").collect()


def test_sql_reads_a_temporary_view_and_says_why_a_table_is_not_read(spark: SparkSession, tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, batch(0, 3))
    options = f"path '{tmp_path}', columns 'offset', topic 't'"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING kwire OPTIONS ({options})")
    assert [row.offset for row in spark.sql("SELECT * FROM v WHERE offset > 0").collect()] == [1, 2]
    spark.sql(f"CREATE TABLE IF NOT EXISTS kwire_table USING kwire OPTIONS (path '{tmp_path}')")
    try:
        found = spark.sql("SELECT count(*) AS n FROM kwire_table").first().n
    except Exception as error:
        assert "use CREATE TEMPORARY VIEW name USING kwire OPTIONS (path '...')" in str(error)
    else:
        assert found == 3  # a Spark that gives a table's options to a Python source
    finally:
        spark.sql("DROP TABLE kwire_table")


def test_values_of_options_are_in_no_plan_progress_checkpoint_or_error(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment(tmp_path / "logs" / "t-0", 0, batch(0))
    secret = {"storageOptions": json.dumps({"token": "hunter2", "client_kwargs": {"password": "hunter2"}})}
    rows = spark.read.format("kwire").options(**secret).load(f"file://{tmp_path}/logs")
    for mode in ("extended", "formatted", "cost"):
        rows.where("offset > 0").explain(mode=mode)
    query = (
        spark.readStream.format("kwire").options(**secret).load(str(tmp_path / "logs")).writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True).start()
    )
    assert query.awaitTermination(120)
    query.explain(True)
    texts = [str(query.lastProgress), str(query.status), capsys.readouterr().out]
    texts += [path.read_text(errors="replace") for path in (tmp_path / "state").rglob("*") if path.is_file()]
    for url in ("memory://me:hunter2@h/none", "ftp://me:hunter2@127.0.0.1:1/none"):
        with pytest.raises(AnalysisException) as caught:
            spark.read.format("kwire").options(**secret).load(url).count()
        failing = spark.readStream.format("kwire").options(**secret).load(url).writeStream.format("noop").start()
        with pytest.raises(StreamingQueryException) as failed:
            failing.awaitTermination(120)
        texts += [str(caught.value), str(failed.value), str(failing.exception()), str(failing.lastProgress)]
    assert len(texts) > 10
    assert not any("hunter2" in text for text in texts)
