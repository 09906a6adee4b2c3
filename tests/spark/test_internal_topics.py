"""Kinds "metadata", "offsets" and "transactions": equal to kafka-dump-log's texts, in every mode, batch and stream."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource

import kwire
from kwire import messages
from kwire.spark.options import BATCH, STREAM, parse
from kwire.spark.partitions import Pushed
from kwire.spark.source import KwireDataSource
from kwire.storage.reading.bounds import Bounds
from tests.spark.logs import marker
from tests.spark.test_source import read
from tests.storage import internal
from tests.storage.making import START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

quick = pytest.mark.quick
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")


def rows(path: Any, kind: str, schema: Any = None, **options: str) -> list[dict[str, Any]]:
    """The rows of a batch read, in this process; timestamps as milliseconds."""
    source = KwireDataSource({"path": str(path), "kind": kind, **options})
    reader = source.reader(source.schema() if schema is None else schema)
    found = []
    for task in reader.partitions():
        for part in reader.read(pickle.loads(pickle.dumps(task))):
            assert part.num_rows
            for row in part.to_pylist():
                found.append({name: _milliseconds(value) if isinstance(value, datetime) else value
                              for name, value in row.items()})
    return found


def _milliseconds(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def texts(topic: str) -> Iterator[internal.DecodedText]:
    for path, found in internal.decoded_texts().items():
        if path.parent.name.startswith(f"{topic}-") and path.suffix == ".log":
            yield from found


def expected(kind: str) -> list[tuple[Any, ...]]:
    """The rows of a kind by the texts of kafka-dump-log."""
    found: list[tuple[Any, ...]] = []
    if kind == "metadata":
        for text in texts("__cluster_metadata"):
            payload = json.loads(text.value)
            record = text.value.partition(',"data":')[2][:-1]
            found.append((text.offset, text.timestamp, payload["type"], payload["version"], record))
        return found
    for text in texts("__consumer_offsets" if kind == "offsets" else "__transaction_state"):
        key = json.loads(text.key or "")
        value = None if text.value == "<DELETE>" else json.loads(text.value)["data"]
        if kind == "transactions":
            places = value["transactionPartitions"]
            found.append((
                key["data"]["transactionalId"], value["producerId"], value["producerEpoch"],
                STATES[value["transactionStatus"]], value["transactionTimeoutMs"],
                None if places is None else [
                    {"topic": place["topic"], "partition": number} for place in places
                    for number in place["partitionIds"]]))
        elif key["type"] in "01":
            values = (None,) * 4 if value is None else (
                value["offset"], value["leaderEpoch"], value["metadata"], value["commitTimestamp"])
            found.append((*key["data"].values(), *values))
    return found


@quick
@pytest.mark.parametrize(("kind", "count"), [("metadata", 301), ("offsets", 36), ("transactions", 76)])
def test_rows_are_the_decoders_texts(golden: Path, kind: str, count: int) -> None:
    found = [tuple(row.values()) for row in rows(golden / "data/kafka-4.3.0/data1", kind)]
    assert len(found) == count
    assert sorted(found, key=str) == sorted(expected(kind), key=str)


def test_with_spark(spark: SparkSession, golden: Path, tmp_path: Path) -> None:
    log = golden / "data/kafka-4.3.0/data1"
    frame = read(spark, log, kind="metadata")
    assert frame.schema.simpleString() == (
        "struct<offset:bigint,timestamp:timestamp,type:string,version:int,record:string>")
    found = [(row.offset, _milliseconds(row.timestamp.astimezone(UTC)), *row[2:]) for row in frame.collect()]
    assert sorted(found) == sorted(expected("metadata"))
    frame = read(spark, log, kind="offsets")
    assert frame.schema.simpleString() == (
        "struct<group:string,topic:string,partition:int,offset:bigint,leader_epoch:int,metadata:string,"
        "commit_timestamp:timestamp>")
    found = [(*row[:6], row[6] and _milliseconds(row[6].astimezone(UTC))) for row in frame.collect()]
    assert sorted(found, key=str) == sorted(expected("offsets"), key=str)
    frame = read(spark, log, kind="transactions")
    assert frame.schema.simpleString() == (
        "struct<transactional_id:string,producer_id:bigint,producer_epoch:smallint,state:string,timeout_ms:int,"
        "partitions:array<struct<topic:string,partition:int>>>")
    found = [(*row[:5], None if row[5] is None else [place.asDict() for place in row[5]]) for row in frame.collect()]
    assert sorted(found, key=str) == sorted(expected("transactions"), key=str)
    frame = read(spark, log, "log_offset long, group string", kind="offsets")
    assert frame.columns == ["log_offset", "group"] and frame.first() is not None
    internal.write(tmp_path / "logs" / "__consumer_offsets-0", [internal.commit(at) for at in range(3)])
    stream = spark.readStream.format("kwire").option("kind", "offsets").load(str(tmp_path / "logs"))
    query = stream.writeStream.format("memory").queryName("commits").trigger(availableNow=True).start()
    query.awaitTermination(120)
    assert query.exception() is None
    assert [row.offset for row in spark.sql("SELECT * FROM commits").collect()] == [0, 1, 2]


@quick
@pytest.mark.parametrize("release", ["kafka-2.2.2", "kafka-2.8.2", "kafka-4.3.0-3nodes"])
def test_every_release(golden: Path, release: str) -> None:
    log = golden / "data" / release / "data1"
    found = rows(log, "offsets")
    commits = [row for row in found if row["offset"] is not None]
    assert len(commits) > 5 and all(row["offset"] >= 0 and row["commit_timestamp"] > START for row in commits)
    assert {row["state"] for row in rows(log, "transactions")} >= {"Empty", "Ongoing", "CompleteCommit"}


@quick
def test_snapshots_are_metadata(golden: Path) -> None:
    for name in ("__cluster_metadata-0/00000000000000000255-0000000001.checkpoint", "bootstrap.checkpoint"):
        path = golden / "data/kafka-4.3.0/data1" / name
        wanted = internal.decoded_texts()[path]
        assert [(row["offset"], f'{{"type":"{row["type"]}","version":{row["version"]},"data":{row["record"]}}}')
                for row in rows(path, "metadata")] == [(text.offset, text.value) for text in wanted]


def mixed(folder: Path) -> list[tuple[bytes | None, bytes | None]]:
    """Records of every sort: commits of all versions, tombstones, groups, unknown types."""
    group = kwire.encode_coordinator_record("group", messages.GroupMetadataKey(group="g"), None)
    records = [
        internal.commit(0, 0, type=0), internal.commit(1, 0), internal.commit(2, 1), internal.commit(3, 3), group,
        internal.commit(None), internal.commit(5, 4, partition=3), (b"\0\x63new", b"x"), internal.commit(7, 3)]
    internal.write(folder, records)
    return records


@quick
def test_other_types_are_no_rows(tmp_path: Path) -> None:
    mixed(tmp_path / "__consumer_offsets-0")
    found = rows(tmp_path, "offsets", columns="log_offset,offset,partition,source")
    assert [row["log_offset"] for row in found] == [0, 1, 2, 3, 5, 6, 8]
    assert [row["offset"] for row in found] == [0, 1, 2, 3, None, 5, 7]
    assert found[0]["source"].endswith(f"__consumer_offsets-0/{0:020}.log")


@quick
def test_columns_of_records_and_of_arrow_agree(tmp_path: Path) -> None:
    """The fast way, and that for records of old versions, on the same commits."""
    commits = [internal.commit(at if at % 5 else None, 3 + at % 2, group=f"g{at}é", partition=at) for at in range(500)]
    wanted = ("group", "topic", "partition", "offset", "leader_epoch", "metadata", "commit_timestamp", "log_partition",
              "log_offset", "log_timestamp", "source")
    internal.write(tmp_path / "fast" / "__consumer_offsets-2", commits)
    internal.write(tmp_path / "slow" / "__consumer_offsets-2", [*commits, internal.commit(1, 0)])
    fast = rows(tmp_path / "fast", "offsets", columns=",".join(wanted))
    slow = rows(tmp_path / "slow", "offsets", columns=",".join(wanted))[:-1]
    assert [{**row, "source": ""} for row in fast] == [{**row, "source": ""} for row in slow]
    assert len(fast) == 500 and fast[7]["log_timestamp"] == START + 7 and fast[0]["commit_timestamp"] is None


BAD = (internal.commit(9)[0], (internal.commit(9)[1] or b"")[:-1])


@quick
def test_modes(tmp_path: Path) -> None:
    records = [internal.commit(0), BAD, internal.commit(2), (None, b"x")]
    path = internal.write(tmp_path / "__consumer_offsets-4", records)
    place = f"at {path}, offset 1"
    with pytest.raises(kwire.DecodeError) as caught:
        rows(tmp_path, "offsets")
    assert str(caught.value).endswith(place) and "OffsetCommitValue v3 .commit_timestamp" in str(caught.value)
    kept = rows(tmp_path, "offsets", mode="PERMISSIVE")
    assert [row["offset"] for row in kept] == [0, None, 2, None]
    assert [row["group"] for row in kept] == ["g", None, "g", None]
    assert [row["_corrupt_record"] is None for row in kept] == [True, False, True, False]
    assert kept[1]["_corrupt_record"].endswith(place) and "without a key" in kept[3]["_corrupt_record"]
    assert [row["offset"] for row in rows(tmp_path, "offsets", mode="DROPMALFORMED")] == [0, 2]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    internal.write(tmp_path / "__consumer_offsets-4", [internal.commit(9)], base=4)
    path.write_bytes(data)
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        kept = rows(tmp_path, "offsets", mode=mode, columns="log_offset,offset,_corrupt_record")
        assert [row["offset"] for row in kept] == ([None, 9] if mode == "PERMISSIVE" else [9])
    with pytest.raises(kwire.CorruptBatchError, match="offset 0, byte 0"):
        rows(tmp_path, "offsets")


@quick
def test_metadata_that_cannot_be_decoded(tmp_path: Path) -> None:
    topic = kwire.encode_metadata_record(messages.TopicRecord(name="a\x01é"), 0)
    quota = kwire.encode_metadata_record(messages.ClientQuotaRecord(key="producer_byte_rate", value=1e7), 0)
    path = internal.write(tmp_path / "__cluster_metadata-0", [(None, topic), (None, b"\1\xff\1\0"), (None, quota)])
    with pytest.raises(kwire.UnsupportedVersionError) as caught:
        rows(tmp_path, "metadata")
    assert str(caught.value) == f"unknown metadata record type 255 at {path}, offset 1"
    first, bad, last = rows(tmp_path, "metadata", mode="PERMISSIVE")
    assert (first["record"], last["record"]) == (
        '{"name":"a\\u0001é","topicId":"AAAAAAAAAAAAAAAAAAAAAA"}',
        '{"entity":[],"key":"producer_byte_rate","value":1.0E7,"remove":false}')
    assert (bad["offset"], bad["timestamp"], bad["type"], bad["record"]) == (1, START + 1, None, None)
    assert [row["offset"] for row in rows(tmp_path, "metadata", mode="DROPMALFORMED")] == [0, 2]


@quick
def test_ranges_and_projection(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-1"
    for base in (0, 10, 20):
        internal.write(folder, [internal.commit(base + at) for at in range(10)], base=base)
    assert [list(row) for row in rows(tmp_path, "offsets", columns="offset,GROUP")] == [["offset", "group"]] * 30
    first, end = (json.dumps({"__consumer_offsets": {"1": offset}}) for offset in (7, 21))
    bounds = {"startingOffsets": first, "endingOffsets": end}
    assert [row["offset"] for row in rows(tmp_path, "offsets", **bounds)] == list(range(7, 21))
    found = rows(tmp_path, "offsets", startingTimestamp=str(START + 28))
    assert [row["offset"] for row in found] == [28, 29]
    assert [row["offset"] for row in rows(tmp_path, "offsets", partitionBytes="200")] == list(range(30))
    assert rows(tmp_path, "offsets", partition="2", allowEmpty="true") == []


@quick
def test_aborted_commits(tmp_path: Path) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    options: dict[str, Any] = {"producer_epoch": 0, "base_sequence": 0, "transactional": True}
    data = b"".join((
        kwire.build_batch([(START, *internal.commit(1))], base_offset=0, producer_id=1, **options), marker(1, 1, False),
        kwire.build_batch([(START, *internal.commit(2))], base_offset=2, producer_id=2, **options), marker(3, 2, True)))
    (folder / f"{0:020}.log").write_bytes(data)
    assert [row["offset"] for row in rows(tmp_path, "offsets")] == [1, 2]
    assert [row["offset"] for row in rows(tmp_path, "offsets", readCommitted="true")] == [2]


@quick
def test_times_that_no_calendar_has(tmp_path: Path) -> None:
    key, value = kwire.encode_coordinator_record(
        "group", messages.OffsetCommitKey(group="g", topic="t"),
        messages.OffsetCommitValue(offset=1, commit_timestamp=2**62), 3)
    internal.write(tmp_path / "__consumer_offsets-0", [(key, value)])
    assert rows(tmp_path, "offsets")[0]["commit_timestamp"] is None
    internal.write(tmp_path / "__consumer_offsets-0", [(key, value), internal.commit(None)])
    assert [row["commit_timestamp"] for row in rows(tmp_path, "offsets")] == [None, None]


@quick
def test_the_topic_of_a_copy(tmp_path: Path) -> None:
    path = internal.write(tmp_path / "copy", [internal.commit(4)])
    assert rows(path, "offsets", columns="offset,log_partition") == [{"offset": 4, "log_partition": None}]
    internal.write(tmp_path / "old-9", [internal.commit(5)])
    assert rows(tmp_path, "offsets", topic="old", columns="offset,log_partition") == [{"offset": 5, "log_partition": 9}]
    with pytest.raises(ValueError, match=r'kind "offsets": no topic "__consumer_offsets" in .*; there is 1 topic: old'):
        rows(tmp_path / "old-9", "offsets")
    with pytest.raises(ValueError, match='"offsets" reads __consumer_offsets or a copy of it, not __transaction_state'):
        parse({"path": "x", "kind": "offsets", "topic": "__transaction_state"})


@quick
def test_options_and_schemas() -> None:
    for kind in ("metadata", "offsets", "transactions"):
        for query in (BATCH, STREAM):
            parse({"path": "x", "kind": kind, "mode": "PERMISSIVE", "readCommitted": "true"}, query)
        with pytest.raises(ValueError, match=f'includeHeaders applies to kind "records" only, not to "{kind}"'):
            parse({"path": "x", "kind": kind, "includeHeaders": "true"})
        source = KwireDataSource({"path": "x", "kind": kind})
        names = source.schema().names
        permissive = KwireDataSource({"path": "x", "kind": kind, "mode": "PERMISSIVE"}).schema().names
        assert permissive == [*names, "_corrupt_record"]
        wrong = KwireDataSource({"path": "x"}).schema()
        with pytest.raises(ValueError, match=r'unknown column "key"; the columns are \w+'):
            source.reader(wrong)
        with pytest.raises(ValueError, match='unknown column "key"'):
            source.streamReader(wrong).initialOffset()
    with pytest.raises(ValueError, match="streams support records, metadata, offsets, transactions only"):
        KwireDataSource({"path": "x", "kind": "capture"}).streamReader(wrong).initialOffset()


@quick
def test_streams(tmp_path: Path) -> None:
    folder = tmp_path / "__transaction_state-0"
    internal.write(folder, [internal.transaction("a", 1, [("t", (0,))])])
    source = KwireDataSource({"path": str(tmp_path), "kind": "transactions"})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    ends = []
    for base in (1, 2):
        ends.append(reader.latestOffset())
        internal.write(folder, [internal.transaction("a", 4, [])], base=base)
    ends.append(reader.latestOffset())
    states = []
    for end in ends:
        parts = [part for task in reader.partitions(start, end) for part in reader.read(task)]
        states.append([state for part in parts for state in part["state"].to_pylist()])
        start = end
    assert states == [["Ongoing"], ["CompleteCommit"], ["CompleteCommit"]]


@quick
def test_pushed_filters_are_of_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(datasource, "EqualTo"):
        pytest.skip("this Spark pushes nothing to Python")
    monkeypatch.setattr(datasource.DataSourceReader, "pushLimit", lambda self, limit: False, raising=False)
    equal, above = datasource.EqualTo, datasource.GreaterThan
    filters = [equal(("offset",), 7), equal(("topic",), "t"), equal(("partition",), 1), above(("log_offset",), 4),
               equal(("log_partition",), 3)]
    source = KwireDataSource({"path": str(tmp_path), "kind": "offsets", "pushFilters": "true"})
    reader = source.reader(source.schema())
    assert list(reader.pushFilters(filters)) == filters[:3]
    assert reader.pushed == Pushed(partitions=frozenset({3}), bounds=Bounds(start_offset=5))  # type: ignore[attr-defined]
    source = KwireDataSource({"path": str(tmp_path), "kind": "metadata", "pushFilters": "true"})
    reader = source.reader(source.schema())
    assert list(reader.pushFilters(filters[:2])) == filters[1:2]
    assert reader.pushed == Pushed(bounds=Bounds(7, 8))  # type: ignore[attr-defined]


@quick
def test_batches_have_the_exact_schema(tmp_path: Path) -> None:
    mixed(tmp_path / "__consumer_offsets-0")
    source = KwireDataSource({"path": str(tmp_path), "kind": "offsets"})
    reader = source.reader(source.schema())
    [part] = [part for task in reader.partitions() for part in reader.read(task)]
    assert part.schema.field("commit_timestamp").type == pa.timestamp("us", "UTC")
    assert part.schema.field("partition").type == pa.int32()
