"""How the segments of a read become tasks: packed, cut, in order, small when they are sent."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kwire.errors import CorruptBatchError, KwireError
from kwire.spark.options import parse
from kwire.spark.packing import Portion, ReadTask, SegmentRange, cuts, packed, task_bytes
from kwire.spark.partitions import Pushed, tasks
from kwire.spark.reader import read_task
from kwire.spark.schema import source_schema
from kwire.spark.stream import SegmentStreamReader
from kwire.storage import SegmentFile
from tests.spark.logs import batch, damaged, segment
from tests.spark.test_modes import rows_of
from tests.storage.making import START, write_segment
from tests.storage.making import batch as made

MIB = 1 << 20

PLAN = """
import os, resource, sys, time
from kwire.spark.options import parse
from kwire.spark.partitions import Pushed, tasks
before = time.process_time()
made = tasks(parse({"path": sys.argv[1]}), Pushed())
print(sum(len(task.ranges) for task in made), time.process_time() - before,
      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def portions(*sizes: int, topic: str = "t") -> list[Portion]:
    """Segments of these sizes, in order of offsets."""
    return [
        Portion(size, SegmentRange(SegmentFile(f"/logs/{topic}-0/{base:020}.log", topic, 0, base, size), 0, size, True))
        for base, size in enumerate(sizes)
    ]


def numbers(tasks: list[ReadTask]) -> list[list[int]]:
    return [[part.file.base_offset for part in task.ranges] for task in tasks]


def planned(path: Path, **options: Any) -> list[ReadTask]:
    return tasks(parse({"path": str(path), **{name: str(value) for name, value in options.items()}}), Pushed())


@pytest.mark.quick
def test_small_segments_share_a_task_up_to_partition_bytes_and_the_cost_of_opening_them() -> None:
    options = parse({"path": "x"})
    made = packed(portions(*[2000] * 10_000), options)
    assert {len(task.ranges) for task in made[:-1]} == {32}  # 128 MiB / 4 MiB, as Spark packs its own files
    assert len(made) == 313 and list(chain(*numbers(made))) == list(range(10_000))
    free = packed(portions(*[2000] * 10_000), parse({"path": "x", "openCostBytes": "0"}))
    assert len(free) == 1


@pytest.mark.quick
def test_big_portions_come_first_and_each_task_reads_in_order_of_offsets() -> None:
    options = parse({"path": "x", "partitionBytes": "100m", "openCostBytes": "10m"})
    made = packed(portions(*(MIB * size for size in (5, 90, 20, 10, 100, 45, 1))), options)
    assert numbers(made) == [[1], [4], [0, 2, 3], [5, 6]]


@pytest.mark.quick
def test_min_partitions_makes_tasks_smaller_but_not_below_the_open_cost() -> None:
    given = {"path": "x", "partitionBytes": "128m", "openCostBytes": "4m"}
    files = portions(*[12 * MIB] * 10)
    assert task_bytes(files, parse(given)) == 128 * MIB
    assert task_bytes(files, parse(given | {"minPartitions": "5"})) == 32 * MIB
    assert task_bytes(files, parse(given | {"minPartitions": "1"})) == 128 * MIB
    assert task_bytes(files, parse(given | {"minPartitions": "100000"})) == 4 * MIB
    assert task_bytes([], parse(given | {"minPartitions": "3", "openCostBytes": "0"})) == 1


@pytest.mark.quick
def test_a_large_segment_is_cut_evenly_and_wholly() -> None:
    [whole] = portions(1000)
    assert list(cuts(whole, 1000)) == [whole]
    pieces = list(cuts(whole, 400))
    assert [(part.start, part.end, part.last) for _, part in pieces] == [
        (0, 333, True), (333, 666, True), (666, 1000, True)]
    assert [size for size, _ in pieces] == [333, 333, 334]
    [huge] = portions(1 << 40)
    assert len(list(cuts(huge, 1))) == 10_000
    unknown = Portion(1 << 40, whole.part._replace(end=None))
    assert list(cuts(unknown, 1000)) == [unknown]


@pytest.mark.quick
def test_a_task_is_small_when_it_is_sent() -> None:
    parts = [part for _, part in portions(*range(10_000, 11_700), topic="a-topic-with-a-long-name")]
    task = ReadTask(parts)
    sent = pickle.dumps(task)
    assert len(sent) < 40 * len(parts)
    assert pickle.loads(sent).ranges == task.ranges
    assert "..." in repr(task) and len(repr(task)) < 400


@pytest.mark.quick
def test_a_plan_reads_the_wanted_segments_in_few_tasks(tmp_path: Path) -> None:
    for base in range(0, 300, 3):
        segment(tmp_path / "t-0", base, batch(base))
    segment(tmp_path / "t-0", 300)
    [task] = planned(tmp_path, openCostBytes=0)
    assert numbers([task]) == [list(range(0, 300, 3))]
    assert len(planned(tmp_path)) == 4
    assert len(planned(tmp_path, minPartitions=50)) == 50
    [task] = planned(tmp_path, startingOffsets=json.dumps({"t": {"0": 7}}), endingOffsets=json.dumps({"t": {"0": 10}}))
    assert numbers([task]) == [[6, 9]]
    assert planned(tmp_path, startingOffsets="latest") == []


@pytest.mark.quick
def test_a_few_offsets_of_a_large_segment_are_one_task(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, *(batch(base, 100, codec="none") for base in range(0, 20_000, 100)))
    segment(tmp_path / "t-0", 20_000, batch(20_000))
    size = (tmp_path / "t-0" / f"{0:020}.log").stat().st_size
    assert len(planned(tmp_path, partitionBytes=size // 8)) >= 8
    few = {"startingOffsets": json.dumps({"t": {"0": 9_000}}), "endingOffsets": json.dumps({"t": {"0": 9_100}})}
    [task] = planned(tmp_path, partitionBytes=size // 8, **few)
    assert [(part.start, part.end) for part in task.ranges] == [(0, size)]
    rows = rows_of(tmp_path, partitionBytes=str(size // 8), **few)
    assert [row["offset"] for row in rows] == list(range(9_000, 9_100))


@pytest.mark.quick
def test_large_segments_before_the_start_timestamp_are_no_tasks(tmp_path: Path) -> None:
    for base in range(0, 90, 30):
        write_segment(tmp_path / "t-0", base, [made(at) for at in range(base, base + 30, 3)], every=1)
    wanted = {"startingTimestamp": START + 10 * 62}
    assert [part.file.base_offset for task in planned(tmp_path, **wanted) for part in task.ranges] == [0, 30, 60]
    cut = {**wanted, "partitionBytes": 100, "openCostBytes": 1}
    assert {part.file.base_offset for task in planned(tmp_path, **cut) for part in task.ranges} == {60}
    assert [row["offset"] for row in rows_of(tmp_path, **{name: str(value) for name, value in cut.items()})] == [
        *range(62, 90)]
    early = {**cut, "startingTimestamp": START + 10 * 100}
    assert planned(tmp_path, **early) == []
    damage = bytearray((last := tmp_path / "t-0" / f"{60:020}.log").read_bytes())
    damage[-3] ^= 1
    last.write_bytes(damage)
    with pytest.raises(CorruptBatchError):
        rows_of(tmp_path, **{name: str(value) for name, value in early.items()})


@pytest.mark.quick
def test_rows_of_many_segments_come_in_few_batches_with_their_own_topic_and_file(tmp_path: Path) -> None:
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    from kwire.spark.source import KwireDataSource

    for partition in range(2):
        for base in range(0, 600, 3):
            segment(tmp_path / f"t{partition}-{partition}", base, batch(base))
    schema = StructType([StructField("topic", StringType()), StructField("offset", LongType()),
                         StructField("source", StringType())])
    reader = KwireDataSource({"path": str(tmp_path), "openCostBytes": "0"}).reader(schema)
    [task] = reader.partitions()
    batches = list(reader.read(task))
    assert len(batches) == 1
    rows = [tuple(row.values()) for row in batches[0].to_pylist()]
    assert rows == [
        (f"t{number}", base + at, f"{tmp_path}/t{number}-{number}/{base:020}.log")
        for number in range(2) for base in range(0, 600, 3) for at in range(3)
    ]


@pytest.mark.quick
def test_an_error_names_the_file_of_its_range_and_each_torn_tail_is_told(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, batch(0))
    bad = segment(tmp_path / "t-0", 3, batch(3), damaged(batch(6), 75), batch(9), batch(12)[:-5])
    torn = segment(tmp_path / "u-0", 0, batch(0), batch(3)[:-1])
    size, end = len(batch(3)), len(batch(3) + batch(6) + batch(9))
    assert len(planned(tmp_path)) == 1
    with pytest.raises(Exception, match=f" at {bad}, offset 6, byte {size}$"):
        rows_of(tmp_path)
    with pytest.warns(RuntimeWarning, match="torn tail") as told:
        rows = rows_of(tmp_path, mode="PERMISSIVE")
    assert [str(bad) in str(one.message) for one in told] == [True, False] and str(torn) in str(told[1].message)
    texts = [row["_corrupt_record"] for row in rows if row["_corrupt_record"]]
    assert [text.rpartition(" at ")[2] for text in texts] == [
        f"{bad}, offset 6, byte {size}", f"{bad}, offset -1, byte {end}",
        f"{torn}, offset -1, byte {len(batch(0))}"]
    assert [row["offset"] for row in rows if not row["_corrupt_record"]] == [
        0, 1, 2, 3, 4, 5, 9, 10, 11, 0, 1, 2]


@pytest.mark.soak
def test_100_000_segments_are_planned_in_20_s_of_cpu_and_500_mib(tmp_path: Path) -> None:
    for folder in range(1000):
        place = tmp_path / f"a-topic-with-a-name-{folder}"
        place.mkdir()
        for base in range(0, 100_000, 1000):
            for kind in (".log", ".index", ".timeindex"):
                (place / f"{base:020}{kind}").write_bytes(b"x")
    done = subprocess.run([sys.executable, "-c", PLAN, str(tmp_path)], capture_output=True, text=True, check=True)
    ranges, cpu, memory = map(float, done.stdout.split())
    assert ranges == 100_000 and cpu < 20 and memory < 500


@pytest.mark.quick
def test_small_batches_that_wait_are_given_before_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stream may go on after data loss: what was read before it is not lost."""
    path = segment(tmp_path / "t-0", 0, batch(0))
    task = ReadTask([SegmentRange(SegmentFile(str(path), "t", 0, 0, path.stat().st_size), 0, 1, False)])

    def batches(*_: object) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"offset": [1, 2]})
        yield pa.RecordBatch.from_pydict({"offset": [3]})
        raise CorruptBatchError("the object was truncated", position=9)

    monkeypatch.setattr("kwire.spark.reader._read_range", batches)
    lenient = parse({"path": str(tmp_path), "failOnDataLoss": "false"})
    with pytest.warns(RuntimeWarning, match="was truncated while it was read"):
        [joined] = SegmentStreamReader(lenient, source_schema(False, False)).read(task)
    assert joined.to_pydict() == {"offset": [1, 2, 3]}
    with pytest.raises(KwireError, match="was truncated while it was read"):
        list(SegmentStreamReader(parse({"path": str(tmp_path)}), source_schema(False, False)).read(task))


@pytest.mark.quick
def test_a_piece_of_a_segment_that_became_smaller_is_not_read_as_if_nothing_had_happened(tmp_path: Path) -> None:
    """Compaction moves records to bytes that other tasks read, perhaps before it."""
    path = segment(tmp_path / "t-0", 0, *(batch(3 * number) for number in range(9)))
    options = parse({"path": str(tmp_path), "partitionBytes": str(path.stat().st_size // 3), "openCostBytes": "0"})
    first, *_ = pieces = tasks(options, Pushed())
    assert len(pieces) > 2
    path.write_bytes(b"".join(batch(3 * number) for number in range(9) if number != 1))
    with pytest.raises(CorruptBatchError, match=r"was truncated to \d+ bytes, or compacted, after bytes 0"):
        list(read_task(first, options, source_schema(False, False)))


def test_the_records_of_many_small_segments_take_little_memory(tmp_path: Path) -> None:
    """What waits to be joined is as large as its records: each segment took 30 KiB or more for 10,000 rows."""
    for partition in range(1000):
        segment(tmp_path / f"t-{partition}", 0, batch(0, 1))
    code = f"""if True:
        from pathlib import Path
        from kwire.spark.options import parse
        from kwire.spark.packing import ReadTask
        from kwire.spark.partitions import Pushed, tasks
        from kwire.spark.reader import read_task
        from kwire.spark.schema import source_schema
        options = parse({{"path": {str(tmp_path)!r}, "openCostBytes": "0"}})
        def rows(ranges):
            return [made.num_rows for made in read_task(ReadTask(ranges), options, source_schema(False, False))]
        def most():  # not ru_maxrss: it begins with that of the process that started this one
            lines = Path("/proc/self/status").read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
        [task] = tasks(options, Pushed())
        assert rows(task.ranges[:100]) == [100]
        before = most()
        assert rows(task.ranges) == [1000]
        assert most() - before < 10 << 10, most() - before
    """
    subprocess.run([sys.executable, "-c", code], check=True)
