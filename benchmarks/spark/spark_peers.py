"""CPU time of Spark jobs over the same segments: kwire's data source and functions, aiokafka, Kafka in the JVM.

Run it from the top folder: python -m benchmarks.spark.spark_peers [--rows 2300000] [--rounds 3] [--only JOB ...]
[--conf KEY=VALUE ...]
CPU time is that of the driver, the JVM and all Python workers together. All jobs run in one session, warmed up, in
turn, each in its own Python workers. All give the same rows and compute the same aggregate:
  data source               the kwire format; counted, summed and compared by Spark
  JVM reader                Kafka's own classes, the same query
  prepared batches          Spark's own floor: a Python data source that yields the same Arrow batches, made before,
                            from memory-mapped files; the same query
  aiokafka to a DataFrame   mapPartitions reads the segments with aiokafka into tuples of the data source's seven
                            columns, createDataFrame; the same query
  aiokafka, plain numbers   the same with timestamps as numbers, which Spark itself turns into timestamps: cheaper
  aiokafka in Python        the same tuples, aggregated by the RDD
  arrow of segments         mapPartitions(decode_records(output="arrow")) over the segments; aggregated by batch
  aiokafka of payloads,     the same for an RDD of byte arrays, a batch each, cached, which Spark passes to Python: not
                            one of parallelize(), which serializes them into the tasks of each job
  arrow of payloads,
  tuples of payloads
  payloads                  Spark's own floor of these three: the byte arrays are passed, and counted
Prints ratios with min..max over the rounds and writes benchmarks/results/spark.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

import kwire
import kwire.spark
from kwire.spark.options import parse
from kwire.spark.partitions import Pushed, tasks
from kwire.spark.reader import read_task
from kwire.spark.schema import source_schema
from tools.kafka import maven
from tools.kafka.classes import class_path
from tools.kafka.oracle import NEWEST

HERE = Path(__file__).parent
PARTITIONS = 8
RECORDS_A_BATCH = 138  # about 16 KiB of W1: 10-byte keys, 100-byte values


def write_segments(folder: Path, rows: int) -> list[str]:
    """One segment in each of PARTITIONS folders: one batch repeated with ascending base offsets."""
    records = [(1_700_000_000_000 + i, b"key-%06d" % i, b"value %4d " % i + b"x" * 89) for i in range(RECORDS_A_BATCH)]
    batch = bytearray(kwire.build_batch(records))
    batches = rows // PARTITIONS // RECORDS_A_BATCH + 1
    paths = []
    for partition in range(PARTITIONS):
        partition_folder = folder / f"w1-{partition}"
        partition_folder.mkdir(parents=True)
        with open(partition_folder / f"{0:020d}.log", "wb") as file:
            for number in range(batches):
                struct.pack_into(">q", batch, 0, number * RECORDS_A_BATCH)
                file.write(batch)
        paths.append(file.name)
    return paths


class PreparedBatches(DataSource):
    """Yields the Arrow batches of the files in its path, one task a file."""

    @classmethod
    def name(cls) -> str:
        return "prepared"

    def schema(self) -> Any:
        return source_schema(False, False)

    def reader(self, schema: Any) -> DataSourceReader:
        return PreparedReader(self.options["path"])


class PreparedReader(DataSourceReader):
    """One task a file."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(str(path)) for path in sorted(Path(self.folder).glob("*.arrow"))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        file = pa.ipc.open_file(pa.memory_map(partition.value))
        yield from map(file.get_batch, range(file.num_record_batches))


def write_prepared(segments: str, folder: Path) -> None:
    """The batches that the kwire format yields for its tasks, a file a task."""
    options = parse({"path": segments})
    for number, task in enumerate(tasks(options, Pushed())):
        batches = read_task(task, options, source_schema(False, False))
        first = next(batches)
        with pa.ipc.new_file(folder / f"{number}.arrow", first.schema) as file:
            file.write_batch(first)
            for batch in batches:
                file.write_batch(batch)


def payloads_of(paths: Iterable[str]) -> Iterator[bytes]:
    for path in paths:
        data = Path(path).read_bytes()
        size = struct.unpack_from(">i", data, 8)[0] + 12
        yield from (data[at : at + size] for at in range(0, len(data), size))


def read_whole(paths: Iterator[str]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        yield Path(path).parent.name, Path(path).read_bytes()


def with_aiokafka(inputs: Iterator[tuple[str, bytes]]) -> Iterator[tuple[Any, ...]]:
    """Rows of the data source's seven columns, timestamps in milliseconds; inputs: (topic-partition, batches)."""
    from aiokafka.record import MemoryRecords

    for name, data in inputs:
        topic, _, partition = name.rpartition("-")
        number = int(partition)
        records = MemoryRecords(data)
        while records.has_next():
            batch = records.next_batch()
            assert batch is not None and batch.validate_crc()
            for record in batch:
                yield (record.key, record.value, topic, number, record.offset, record.timestamp, record.timestamp_type)


def with_times(rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The same rows with timestamps as a DataFrame's timestamp column needs them."""
    for *before, timestamp, kind in rows:
        yield (*before, datetime.fromtimestamp(timestamp / 1000), kind)


def rows_in_python(rows: Iterator[tuple[Any, ...]], key: int, value: int, offset: int) -> Iterator[tuple[int, ...]]:
    """(rows, bytes of keys, bytes of values, sum of offsets) of tuples; key, value, offset: their positions."""
    count = keys = values = offsets = 0
    for row in rows:
        count += 1
        keys += len(row[key])
        values += len(row[value])
        offsets += row[offset]
    yield count, keys, values, offsets


def arrow_in_python(batches: Iterator[Any]) -> Iterator[tuple[int, ...]]:
    import pyarrow.compute as pc

    for batch in batches:
        yield (batch.num_rows, pc.sum(pc.binary_length(batch["key"])).as_py(),
               pc.sum(pc.binary_length(batch["value"])).as_py(), pc.sum(batch["offset"]).as_py())


def summed(rdd: Any) -> int:
    return int(rdd.reduce(lambda left, right: tuple(a + b for a, b in zip(left, right, strict=True)))[0])


def cpu_seconds(root: psutil.Process) -> dict[int, float]:
    """CPU seconds of each process: driver, JVM, Python workers. pyspark.daemon does not wait for workers that end, so
    that nothing counts theirs: those that Spark ends after a minute are idle, and a job's own are there after it."""
    seconds = {}
    for process in [root, *root.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        seconds[process.pid] = times.user + times.system
    return seconds


def spent(before: dict[int, float], after: dict[int, float]) -> float:
    return sum(seconds - before.get(process, 0.0) for process, seconds in after.items())


def aggregated(frame: Any) -> int:
    from pyspark.sql import functions as f

    row = frame.agg(
        f.count("*"), f.sum(f.length("value")), f.sum(f.length("key")), f.max("offset"), f.max("timestamp"),
        f.max("topic"), f.sum("partition"), f.max("timestampType"),
    ).first()  # fmt: skip
    return int(row[0])


def jobs(spark: SparkSession, paths: list[str], prepared: str) -> dict[str, Callable[[], int]]:
    context = spark.sparkContext
    segments = context.parallelize(paths, len(paths))
    payloads = segments.mapPartitions(payloads_of).cache()
    folder = str(Path(paths[0]).parents[1])
    schema = "key binary, value binary, topic string, partition int, offset long, timestamp {}, timestampType int"
    decode = kwire.spark.decode_records
    jvm: Any = spark._jvm

    def in_the_jvm() -> int:
        from pyspark.sql import DataFrame

        names = context._gateway.new_array(jvm.java.lang.String, len(paths))
        for number, path in enumerate(paths):
            names[number] = path
        return aggregated(DataFrame(jvm.SegmentRows.read(spark._jsparkSession, names), spark))

    def aiokafka_rows() -> Any:
        return segments.mapPartitions(read_whole).mapPartitions(with_aiokafka)

    def aiokafka_to_a_frame() -> int:
        return aggregated(spark.createDataFrame(aiokafka_rows().mapPartitions(with_times), schema.format("timestamp")))

    def aiokafka_of_numbers() -> int:
        from pyspark.sql import functions as f

        frame = spark.createDataFrame(aiokafka_rows(), schema.format("long"))
        return aggregated(frame.withColumn("timestamp", f.timestamp_millis("timestamp")))

    def seven(rows: Any) -> int:
        return summed(rows.mapPartitions(lambda some: rows_in_python(some, 0, 1, 4)))

    return {
        "data source": lambda: aggregated(spark.read.format("kwire").load(folder)),
        "JVM reader": in_the_jvm,
        "prepared batches": lambda: aggregated(spark.read.format("prepared").load(prepared)),
        "aiokafka to a DataFrame": aiokafka_to_a_frame,
        "aiokafka, plain numbers": aiokafka_of_numbers,
        "aiokafka in Python": lambda: seven(aiokafka_rows()),
        "arrow of segments": lambda: summed(segments.mapPartitions(lambda some: (data for _, data in read_whole(some)))
                                            .mapPartitions(decode(output="arrow")).mapPartitions(arrow_in_python)),
        "aiokafka of payloads": lambda: seven(payloads.map(lambda data: ("w1-0", data)).mapPartitions(with_aiokafka)),
        "arrow of payloads":
            lambda: summed(payloads.mapPartitions(decode(output="arrow")).mapPartitions(arrow_in_python)),
        "tuples of payloads": lambda: summed(payloads.mapPartitions(decode())
                                             .mapPartitions(lambda some: rows_in_python(some, 2, 3, 0))),
        "payloads": lambda: RECORDS_A_BATCH * int(payloads.mapPartitions(lambda some: [sum(1 for _ in some)]).sum()),
    }


RATIOS = (
    ("data source", "aiokafka to a DataFrame"), ("data source", "aiokafka, plain numbers"),
    ("data source", "aiokafka in Python"), ("data source", "JVM reader"),
    ("prepared batches", "JVM reader"), ("data source", "prepared batches"),
    ("arrow of segments", "aiokafka in Python"), ("arrow of payloads", "aiokafka of payloads"),
    ("payloads", "aiokafka of payloads"), ("arrow of payloads", "payloads"),
    ("arrow of payloads", "aiokafka to a DataFrame"), ("tuples of payloads", "aiokafka of payloads"),
)


def in_own_workers(spark: SparkSession, name: str, job: Callable[[], int]) -> int:
    """Run a job in Python workers of its own: Spark reuses workers only for the same environment variables."""
    spark.sparkContext.environment["BENCHMARK_JOB"] = name
    return job()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--conf", nargs="*", default=[], metavar="KEY=VALUE", help="settings of Spark")
    arguments = parser.parse_args()
    kafka = class_path(NEWEST)
    import pyspark

    spark_jars = os.pathsep.join(map(str, sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))))
    classes = maven.compiled([HERE / "SegmentRows.java"], os.pathsep.join([kafka, spark_jars]), "segment-rows")
    clients = next(jar for jar in kafka.split(os.pathsep) if "kafka-clients" in jar)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder
    for setting in arguments.conf:
        builder = builder.config(*setting.split("=", 1))
    spark = (
        builder.master("local[2]").appName("kwire peers").config("spark.ui.enabled", "false")
        .config("spark.driver.extraClassPath", os.pathsep.join([str(classes), clients]))
        .config("spark.driver.memory", "6g").config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false").getOrCreate()
    )
    kwire.spark.register(spark)
    spark.dataSource.register(PreparedBatches)
    root = psutil.Process()
    taken: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = write_segments(Path(folder, "log"), arguments.rows)
        Path(folder, "prepared").mkdir()
        write_prepared(f"{folder}/log", Path(folder, "prepared"))
        every = jobs(spark, paths, f"{folder}/prepared")
        work = {name: job for name, job in every.items() if not arguments.only or name in arguments.only}
        rows = {name: in_own_workers(spark, name, job) for name, job in work.items()}  # warm up
        assert len(set(rows.values())) == 1, rows
        for _ in range(arguments.rounds):
            for name, job in work.items():
                before = cpu_seconds(root)
                in_own_workers(spark, name, job)
                taken.setdefault(name, []).append(spent(before, cpu_seconds(root)))
        spark.stop()
    count = next(iter(rows.values()))
    print(f"{count:,} rows; CPU seconds of driver, JVM and workers (median, min..max)")
    for name, seconds in taken.items():
        print(f"  {name:24} {statistics.median(seconds):7.2f}  {min(seconds):.2f}..{max(seconds):.2f}")
    ratios = {}
    for ours, theirs in RATIOS:
        if ours in taken and theirs in taken:
            each = [b / a for a, b in zip(taken[ours], taken[theirs], strict=True)]
            ratios[f"{ours} / {theirs}"] = each
            print(f"  {ours} is {statistics.median(each):.2f}x {theirs}  ({min(each):.2f}..{max(each):.2f})")
    results = HERE.parent / "results"
    results.mkdir(exist_ok=True)
    (results / "spark.json").write_text(json.dumps({"rows": count, "cpu_seconds": taken, "ratios": ratios}, indent=2))


if __name__ == "__main__":
    main()
