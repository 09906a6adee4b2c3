"""The memory of Spark's Python workers and planners while they read a large segment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.storage.test_large import LIMIT, MIB, make

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def python_workers() -> dict[int, int]:
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


@pytest.mark.parametrize("size", [256 * MIB, pytest.param(10 * 1024 * MIB, marks=pytest.mark.soak)])
def test_workers_do_not_grow_with_the_segment(spark: SparkSession, tmp_path: Path, size: int) -> None:
    folder = tmp_path / "large-0"
    folder.mkdir()
    path = folder / f"{0:020}.log"
    rows = make(path, size)
    try:
        frame = spark.read.format("kwire").load(str(folder))
        found = frame.selectExpr("count(*)", "sum(length(value))", "max(partition)").first()
        peaks = python_workers()
        assert found is not None and tuple(found) == (rows, 100 * rows, 0)
        assert len(peaks) > 2
        assert max(peaks.values()) < LIMIT, {pid: f"{peak / MIB:.0f} MiB" for pid, peak in peaks.items()}
        print(f"{size / MIB:.0f} MiB, {rows:,} rows: {max(peaks.values()) / MIB:.0f} MiB at most")
    finally:
        path.unlink()
