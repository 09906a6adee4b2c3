"""CPU and wall time of counting many small segments: kwire's data source beside binaryFile and kwire.spark.records.

Run it from the top folder: python -m benchmarks.spark.small_segments [--segments 10000] [--rounds 3]
Each segment is one batch of 20 records; 100 of them a folder. CPU time is that of the driver, the JVM and all Python
workers together. All jobs run in one session, in turn, after one warm-up. Prints ratios with min..max over the rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

import kwire
import kwire.spark
from benchmarks.spark.spark_peers import cpu_seconds, in_own_workers, spent

RECORDS = 20


def write_segments(folder: Path, count: int) -> None:
    for number in range(count):
        inside = folder / f"t{number // 100}-0"
        inside.mkdir(exist_ok=True)
        base = number % 100 * RECORDS
        records = [(1_700_000_000_000 + at, b"key-%d" % at, b"v" * 60) for at in range(RECORDS)]
        (inside / f"{base:020}.log").write_bytes(kwire.build_batch(records, base_offset=base))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--segments", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]").appName("small segments").config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    )
    kwire.spark.register(spark)
    root = psutil.Process()
    taken: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_segments(Path(folder), arguments.segments)

        def binary_files() -> int:
            files = (
                spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(folder).select("content"))
            return kwire.spark.records(files, "content").count()

        jobs: dict[str, Callable[[], int]] = {
            "kwire": lambda: spark.read.format("kwire").load(folder).count(),
            "kwire, openCostBytes 64k":
                lambda: spark.read.format("kwire").option("openCostBytes", "64k").load(folder).count(),
            "binaryFile": binary_files,
        }
        for turn in range(arguments.rounds + 1):
            for name, job in jobs.items():
                cpu, wall = cpu_seconds(root), time.perf_counter()
                rows = in_own_workers(spark, name, job)
                assert rows == arguments.segments * RECORDS, (name, rows)
                if turn:
                    taken.setdefault(name, []).append((spent(cpu, cpu_seconds(root)), time.perf_counter() - wall))
        spark.stop()
    print(f"{arguments.segments:,} segments of {RECORDS} records, counted (median, min..max)")
    for name, times in taken.items():
        for number, clock in enumerate(("CPU", "wall")):
            each = [one[number] for one in times]
            ratios = [one[number] / other[number] for one, other in zip(times, taken["binaryFile"], strict=True)]
            print(f"  {name:26} {clock:4} {statistics.median(each):6.2f} s  {min(each):.2f}..{max(each):.2f}"
                  f"   {statistics.median(ratios):.2f}x binaryFile  ({min(ratios):.2f}..{max(ratios):.2f})")


if __name__ == "__main__":
    main()
