"""readStream.format("kwire"): growing and rolling segments, restarts, limits, deletions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kwire
from kwire.spark.options import parse
from kwire.spark.schema import source_schema
from kwire.spark.stream import SegmentStreamReader
from tests.spark.logs import batch, damaged, marker, segment, transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZE = len(batch(0))


class Query:
    """The reader as Spark drives it: offsets through JSON, a new reader object after each restart."""

    def __init__(self, path: Path, **options: str) -> None:
        self.options = parse({"path": str(path), **options})
        self.at: Any = None
        self.restart()

    def restart(self) -> None:
        self.reader = SegmentStreamReader(self.options, source_schema(False, self.options.mode == "PERMISSIVE"))
        self.limit = self.reader.getDefaultReadLimit()

    def rows(self) -> list[Any]:
        start = self.reader.initialOffset() if self.at is None else self.at
        end = self.reader.latestOffset(start, self.limit)
        tasks = self.reader.partitions(start, end)
        if end == start:
            assert not tasks
        self.at = end
        return [row for task in tasks for part in self.reader.read(task) for row in part.to_pylist()]

    def offsets(self) -> list[int]:
        return [row["offset"] for row in self.rows()]


def append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


@pytest.mark.quick
@pytest.mark.parametrize("restart", [False, True])
def test_segments_grow_and_roll(tmp_path: Path, restart: bool) -> None:
    first = segment(tmp_path / "t-0", 0, batch(0))
    query = Query(tmp_path)
    seen = query.offsets()
    steps = [
        lambda: append(first, batch(3)),
        lambda: append(first, batch(6)[:50]),
        lambda: append(first, batch(6)[50:]),
        lambda: (append(first, batch(9)), segment(tmp_path / "t-0", 12, batch(12))),
        lambda: None,
        lambda: segment(tmp_path / "t-0", 15, batch(15)),
        lambda: segment(tmp_path / "t-0", 18),
        lambda: append(tmp_path / "t-0" / f"{18:020d}.log", batch(18)),
    ]
    counts = []
    for step in steps:
        step()
        if restart:
            query.restart()
        found = query.offsets()
        counts.append(len(found))
        seen += found
    assert seen == list(range(21))
    assert counts == [3, 0, 3, 6, 0, 3, 0, 3]


@pytest.mark.quick
def test_new_partitions_and_topics_appear(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, batch(0))
    query = Query(tmp_path)
    assert query.offsets() == [0, 1, 2]
    segment(tmp_path / "t-1", 0, batch(0, 1))
    segment(tmp_path / "u-0", 0, batch(0, 1))
    assert query.offsets() == [0, 0]
    assert query.offsets() == []


@pytest.mark.quick
def test_the_same_batch_again_after_a_crash(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0))
    query = Query(tmp_path)
    start = query.at or query.reader.initialOffset()
    end = query.reader.latestOffset(start)
    append(path, batch(3))
    segment(tmp_path / "t-0", 6, batch(6))
    query.restart()
    parts = [part for task in query.reader.partitions(start, end) for part in query.reader.read(task)]
    assert [row["offset"] for part in parts for row in part.to_pylist()] == [0, 1, 2]


@pytest.mark.quick
def test_starting_offsets(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3))
    query = Query(tmp_path, startingOffsets="latest")
    assert query.offsets() == []
    append(path, batch(6))
    segment(tmp_path / "u-0", 0, batch(0, 1))  # a new partition is read from its beginning
    assert query.offsets() == [6, 7, 8, 0]
    assert Query(tmp_path, startingOffsets='{"t": {"0": 4}, "u": {"0": -1}}').offsets() == [4, 5, 6, 7, 8]


@pytest.mark.quick
def test_max_bytes_per_trigger(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, *(batch(n * 3) for n in range(10)))
    segment(tmp_path / "t-0", 30, batch(30))
    query = Query(tmp_path, maxBytesPerTrigger=str(3 * SIZE))
    counts = []
    while found := query.offsets():
        counts.append(len(found))
    assert sum(counts) == 33 and counts[:3] == [9, 9, 9]
    assert Query(tmp_path, maxBytesPerTrigger="1").offsets() == [0, 1, 2]


@pytest.mark.quick
def test_deleted_segments(tmp_path: Path) -> None:
    first = segment(tmp_path / "t-0", 0, batch(0))
    segment(tmp_path / "t-0", 3, batch(3))
    query = Query(tmp_path, maxBytesPerTrigger=str(SIZE))
    assert query.offsets() == [0, 1, 2]
    first.unlink()  # read to its end: nothing is lost
    assert query.offsets() == [3, 4, 5]
    (tmp_path / "t-0" / f"{3:020d}.log").unlink()
    segment(tmp_path / "t-0", 9, batch(9))
    lenient = Query(tmp_path, failOnDataLoss="false")
    lenient.at = query.at
    with pytest.raises(kwire.KwireError, match=r"t-0/0+3\.log was deleted.*offsets 6\.\.8 are lost.*failOnDataLoss"):
        query.offsets()
    with pytest.warns(RuntimeWarning, match=r"offsets 6\.\.8 are lost"):
        assert lenient.offsets() == [9, 10, 11]


@pytest.mark.quick
def test_a_truncated_segment_is_reported(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3))
    query = Query(tmp_path)
    query.offsets()
    path.write_bytes(batch(0))
    with pytest.raises(kwire.KwireError, match=f"was truncated to {SIZE} bytes after {2 * SIZE} had been read"):
        query.offsets()


@pytest.mark.quick
def test_a_torn_segment_holds_its_partition(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3)[:-9])
    segment(tmp_path / "t-0", 6, batch(6))
    query = Query(tmp_path)
    with pytest.warns(RuntimeWarning, match=f"torn batch at byte {SIZE} .*waits"):
        assert query.offsets() == [0, 1, 2]
    append(path, batch(3)[-9:])
    assert query.offsets() == [3, 4, 5, 6, 7, 8]


@pytest.mark.quick
def test_committed_waits_for_open_transactions(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), transaction(3, 1), batch(5, 1))
    query = Query(tmp_path, readCommitted="true")
    assert query.offsets() == [0, 1, 2]
    append(path, transaction(6, 2) + marker(8, 2, False))
    assert query.offsets() == []
    segment(tmp_path / "t-0", 9, marker(9, 1, True), batch(10, 1))
    query.restart()
    assert query.offsets() == [3, 4, 5, 10]


@pytest.mark.quick
def test_damage_in_a_stream(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), damaged(batch(3), 75), batch(6))
    with pytest.raises(kwire.CorruptBatchError, match=f"at {path}, offset 3, byte {SIZE}"):
        Query(tmp_path).offsets()
    assert Query(tmp_path, mode="DROPMALFORMED").offsets() == [0, 1, 2, 6, 7, 8]
    path.write_bytes(batch(0) + b"\x7fjunk" * 100)
    query = Query(tmp_path, mode="PERMISSIVE")
    assert query.offsets() == [0, 1, 2]
    append(path, batch(3))
    found = query.rows()
    assert sum(row["_corrupt_record"] is not None for row in found) == 1
    assert sorted(row["offset"] for row in found if row["_corrupt_record"] is None) == [3, 4, 5]
    path.write_bytes(batch(0) + b"\x7fjunk" * 100)
    with pytest.raises(kwire.CorruptBatchError, match=f"byte {SIZE}"):
        Query(tmp_path).offsets()


def run(spark: SparkSession, path: Path, state: Path, name: str, **options: str) -> list[int]:
    """A query over all data, from its checkpoint on; returns the offsets that all runs wrote."""
    stream = spark.readStream.format("kwire").options(**options).load(str(path))
    query = (
        stream.writeStream.format("parquet").option("path", str(state / name)).trigger(availableNow=True)
        .option("checkpointLocation", str(state / f"{name}.checkpoint")).start()
    )
    assert query.awaitTermination(180)
    return sorted(row.offset for row in spark.read.parquet(str(state / name)).select("offset").collect())


def test_a_query_restarts_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    first = segment(logs / "t-0", 0, batch(0))
    assert run(spark, logs, tmp_path, "out") == [0, 1, 2]
    append(first, batch(3) + batch(6)[:40])
    assert run(spark, logs, tmp_path, "out") == list(range(6))
    append(first, batch(6)[40:])
    segment(logs / "t-0", 9, batch(9))
    assert run(spark, logs, tmp_path, "out") == list(range(12))
    assert run(spark, logs, tmp_path, "out") == list(range(12))
    assert run(spark, logs, tmp_path, "few", maxBytesPerTrigger=str(SIZE)) == list(range(12))


def test_a_running_query_follows_a_growing_segment(spark: SparkSession, tmp_path: Path) -> None:
    path = segment(tmp_path / "logs" / "t-0", 0, batch(0))
    stream = spark.readStream.format("kwire").load(str(tmp_path / "logs"))
    query = stream.writeStream.format("memory").queryName("growing").start()
    try:
        query.processAllAvailable()
        append(path, batch(3))
        segment(tmp_path / "logs" / "t-0", 6, batch(6))
        query.processAllAvailable()
        assert sorted(row.offset for row in spark.table("growing").collect()) == list(range(9))
    finally:
        query.stop()
