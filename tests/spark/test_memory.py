"""The memory of Spark's Python workers and planners while they read a large segment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

import kwire
from tests.storage.test_large import LIMIT, MIB, make

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def begun() -> dict[int, int]:
    """Process id -> bytes of workers that are used again: they keep memory for the next call, as other tests left it.

    From now on the kernel counts their peaks again.
    """
    for pid in peaks():
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peaks()


def peaks() -> dict[int, int]:
    """Process id -> VmHWM in bytes of the Python processes that Spark started."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        try:
            if "pyspark.daemon" in process.cmdline():
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
                found[process.pid] = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
        except (psutil.NoSuchProcess, FileNotFoundError, StopIteration):
            continue
    return found


def growth(begun: dict[int, int]) -> int:
    """Bytes by which the largest Python worker grew at most; of a new one all."""
    now = peaks()
    assert len(now) > 1  # the daemon, and workers
    return max(peak - begun.get(pid, 0) for pid, peak in now.items())


@pytest.mark.parametrize("size", [256 * MIB, pytest.param(10 * 1024 * MIB, marks=pytest.mark.soak)])
def test_workers_do_not_grow_with_the_segment(
    spark: SparkSession, tmp_path: Path, begun: dict[int, int], size: int
) -> None:
    folder = tmp_path / "large-0"
    folder.mkdir()
    path = folder / f"{0:020}.log"
    rows = make(path, size)
    try:
        frame = spark.read.format("kwire").load(str(folder))
        found = frame.selectExpr("count(*)", "sum(length(value))", "max(partition)").first()
        grown = growth(begun)
        assert found is not None and tuple(found) == (rows, 100 * rows, 0)
        assert grown < LIMIT, f"{grown / MIB:.0f} MiB"
        print(f"{size / MIB:.0f} MiB, {rows:,} rows: {grown / MIB:.0f} MiB at most")
    finally:
        path.unlink()


def counted(spark: SparkSession, folder: Path) -> tuple[int, ...]:
    """(rows, bytes of values) of a read."""
    found = spark.read.format("kwire").load(str(folder)).selectExpr(
        "count(*)", "sum(length(value))", "max(topic)", "max(timestamp)").first()
    assert found is not None
    return tuple(found)[:2]


def test_a_batch_of_two_million_records(spark: SparkSession, tmp_path: Path, begun: dict[int, int]) -> None:
    rows = 2_000_000
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(
        kwire.build_batch((1000 + at, None, b"value %d" % (at % 10)) for at in range(rows)))
    assert counted(spark, tmp_path) == (rows, 7 * rows)
    assert (grown := growth(begun)) < LIMIT, f"{grown / MIB:.0f} MiB"


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.soak)])
def test_many_small_segments(
    spark: SparkSession, tmp_path: Path, begun: dict[int, int], count: int
) -> None:
    for number in range(count):
        folder = tmp_path / f"t{number // 100}-0"
        folder.mkdir(exist_ok=True)
        base = number % 100 * 20
        (folder / f"{base:020}.log").write_bytes(
            kwire.build_batch([(1000, None, b"value")] * 20, base_offset=base))
    assert counted(spark, tmp_path) == (20 * count, 100 * count)
    assert (grown := growth(begun)) < LIMIT, f"{grown / MIB:.0f} MiB"
