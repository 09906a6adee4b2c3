"""readCommitted in tasks: planned without reading the log, and read once."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from kwire.spark.options import parse
from kwire.spark.reader import SegmentReader
from tests.storage.making import Log, batch, in_transaction, marker, producer_snapshot, write_segment
from tests.storage.test_committed import counted

pytestmark = pytest.mark.quick
SCHEMA = StructType([StructField("offset", LongType())])


def reader(path: Path, **options: Any) -> SegmentReader:
    return SegmentReader(parse({"path": str(path), "readCommitted": "true"} | options), SCHEMA)


def test_planning_reads_next_to_nothing_for_read_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = 0
    for number in range(4):
        parts = []
        for at in range(base, base + 400, 4):
            parts += [in_transaction(at, 1 + at % 3, 3, size=300)]
            if at % 40 == 0:
                parts.append(marker(at + 3, 1 + at % 3, True))
        if number:
            producer_snapshot(tmp_path / "t-0", base, {1: base - 40, 2: base - 44, 3: base - 48})
        write_segment(tmp_path / "t-0", base, parts)
        base += 400
    found = counted(monkeypatch)
    plain = len(list(reader(tmp_path, readCommitted="false", partitionBytes="40000").partitions()))
    without = dict(found)
    tasks = reader(tmp_path, partitionBytes="40000").partitions()
    assert len(tasks) == plain > 4
    read = {kind: count - without.get(kind, 0) - without.get(kind, 0) for kind, count in found.items()}
    assert {kind: count for kind, count in read.items() if count} == {
        ".log": 64, "00000000000000001200.log": 64, "pieces": 1}  # are these zeros that a broker has preallocated?
    assert not {".txnindex", ".snapshot"} & set(found)


def test_tasks_agree_and_are_small(tmp_path: Path) -> None:
    for seed in range(6):
        log = Log(tmp_path / str(seed) / "t-0", random.Random(seed), segments=12)
        for size in ("1", "300", "1000000"):
            one = reader(log.folder.parent, partitionBytes=size)
            plans = [pickle.dumps(task) for task in one.partitions()]
            assert max(map(len, plans)) < 1000 * (12 if size == "1000000" else 1)
            log_grows = in_transaction(log.end, 1)
            with open(log.paths[-1], "ab") as file:
                file.write(log_grows)
            found = []
            for plan in plans:
                for rows in one.read(pickle.loads(plan)):
                    found += rows["offset"].to_pylist()
            assert found == log.visible
            with open(log.paths[-1], "r+b") as file:
                file.truncate(log.paths[-1].stat().st_size - len(log_grows))


@pytest.mark.parametrize("zeros", [0, 5000])
def test_tasks_agree_on_a_transaction_that_ends_between_them(zeros: int, tmp_path: Path) -> None:
    """In a segment that a broker has preallocated, too: its size does not tell where it ended."""
    write_segment(tmp_path / "t-0", 0, [batch(0), in_transaction(3, 1)], indexes=False)
    path = write_segment(tmp_path / "t-0", 10, [in_transaction(10, 1), batch(13)], indexes=False)
    data = path.read_bytes()
    path.write_bytes(data + bytes(zeros))
    one, found = reader(tmp_path, partitionBytes="1"), []
    for task in one.partitions():
        for rows in one.read(task):
            found += rows["offset"].to_pylist()
        with path.open("r+b") as file:
            file.seek(len(data))
            file.write(marker(16, 1, True))
    assert found == [0, 1, 2, 13, 14, 15]
