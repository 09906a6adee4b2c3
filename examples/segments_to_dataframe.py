"""The log segments of Kafka brokers become a Spark DataFrame. No broker is asked, and no JVM of Kafka's.

    pip install '.[demo]'
    python examples/segments_to_dataframe.py [LOG_DIRECTORY] [--output FOLDER]

LOG_DIRECTORY is a broker's log.dirs folder, with one folder a partition (orders-0, orders-1, ...). By default it is the
one of a Kafka 4.3.0 broker that this repository has among its test data.

Prints the first records, a summary by topic and the throughput; writes records.parquet and records.png to FOLDER.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import tarfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw, ImageFont

import kwire.spark
from kwire.spark import java
from kwire.storage import LogDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

SAMPLE = Path(__file__).parents[1] / "tests" / "data" / "golden.tar.xz"


def sample_logs(folder: Path) -> Path:
    """Unpack the sample: a log directory that a Kafka 4.3.0 broker left when it stopped."""
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "data" / "kafka-4.3.0" / "data1"


def start_spark() -> SparkSession:
    """Start Spark on all cores of this machine, and make kwire's data source known to it."""
    # Only a script that must run on any machine needs these three lines: a Java that Spark can run on, workers with
    # the same Python as this one, and an address that a machine without a network has too.
    java.prepare()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[*]").appName("segments to DataFrame")
        .config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
        .config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    kwire.spark.register(spark)
    return spark


def read_topics(spark: SparkSession, logs: Path, **options: str) -> DataFrame:
    """Read all topics of a log directory but Kafka's own (__consumer_offsets, __transaction_state, ...)."""
    topics = sorted({str(partition.topic) for partition in LogDirectory(logs)})
    wanted = ",".join(topic for topic in topics if not topic.startswith("__"))
    return spark.read.format("kwire").option("topic", wanted).options(**options).load(str(logs))


def codecs_of(logs: Path) -> str:
    """Say how many batches each codec compressed. The batch headers tell: nothing is decompressed for it."""
    batches = Counter(
        header.codec for partition in LogDirectory(logs) for segment in partition for header in segment.headers()
    )
    return ", ".join(f"{codec} {count:,}" for codec, count in batches.most_common())


def print_throughput(spark: SparkSession, logs: Path, folder: Path) -> None:
    """Read the largest segment once more, copied until there is enough to do for every core."""
    largest = max((segment for log in LogDirectory(logs) for segment in log), key=lambda segment: segment.size)
    cores = spark.sparkContext.defaultParallelism
    for number in range(cores):
        path = folder / f"copy-{number}" / f"{0:020d}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(Path(largest.path).read_bytes() * (100_000_000 // cores // largest.size + 1))
    size = sum(path.stat().st_size for path in folder.glob("*/*.log"))
    copies = spark.read.format("kwire").schema("value binary").load(str(folder))
    totals = ("count(*) records", "sum(length(value)) bytes")
    copies.selectExpr(*totals).collect()  # the first query starts the Python workers
    began = time.perf_counter()
    records = copies.selectExpr(*totals).collect()[0].records
    seconds = time.perf_counter() - began
    shutil.rmtree(folder)
    print(f"Throughput: {records:,} records, {size / 1e6:,.0f} MB in {seconds:.2f} s on {cores} cores: "
          f"{records / seconds / 1e6:.2f} million records/s, {size / seconds / 1e6:,.0f} MB/s")  # fmt: skip


def draw(summary: list[Row], path: Path) -> None:
    """Draw the records by topic, on a logarithmic scale."""
    image = Image.new("RGB", (1080, 90 + 36 * len(summary)), "white")
    canvas, font = ImageDraw.Draw(image), ImageFont.load_default(20)
    canvas.text((30, 20), "Records by topic, as Spark read them from log segments", "black", ImageFont.load_default(24))
    most = max(math.log(row.records + 1) for row in summary)
    for number, row in enumerate(summary):
        top, end = 70 + 36 * number, 280 + 650 * math.log(row.records + 1) / most
        canvas.text((260, top + 14), row.topic, "black", font, anchor="rm")
        canvas.rectangle((280, top, end, top + 28), "#1f77b4")
        canvas.text((end + 10, top + 14), f"{row.records:,}", "black", font, anchor="lm")
    image.save(path)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="?", type=Path, metavar="LOG_DIRECTORY")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), metavar="FOLDER")
    arguments = parser.parse_args()
    output: Path = arguments.output
    output.mkdir(parents=True, exist_ok=True)
    logs: Path = arguments.logs or sample_logs(output / "logs")

    spark = start_spark()
    from pyspark.sql import functions as f

    # The columns are those of Spark's own Kafka source, so a query for a topic runs on its segments as it is.
    # Name the columns that you need: Spark does not tell a Python source which ones a query uses.
    everything = read_topics(spark, logs, columns="topic,partition,value")
    # Aborted transactions left out, as for a consumer with isolation.level=read_committed.
    committed = read_topics(spark, logs, includeHeaders="true", readCommitted="true")

    print(f"{logs}\nBatches by codec: {codecs_of(logs)}\n\nThe record at offset 10 of partition 0, of each topic:")
    # Spark filters the rows; the options startingOffsets and endingOffsets would narrow the read itself.
    committed.where("partition = 0 and offset = 10").selectExpr(
        "topic", "timestamp", "cast(key as string) key", "cast(value as string) value",
        "transform(headers, header -> header.key) header_keys",
    ).orderBy("topic").show(100, truncate=24)  # fmt: skip

    print("By topic:")
    summary = everything.groupBy("topic").agg(
        f.countDistinct("partition").alias("partitions"),
        f.count("*").alias("records"),
        f.count_if(f.col("value").isNull()).alias("tombstones"),
        f.sum(f.length("value")).alias("value_bytes"),
    ).join(committed.groupBy("topic").agg(f.count("*").alias("committed")), "topic").orderBy("topic")  # fmt: skip
    summary.show(100, truncate=False)

    # Write them for the tools that read Parquet, and a picture.
    parquet, picture = output / "records.parquet", output / "records.png"
    committed.write.mode("overwrite").partitionBy("topic").parquet(str(parquet))
    draw(summary.collect(), picture)
    print(f"Written: {parquet} ({spark.read.parquet(str(parquet)).count():,} records), {picture}")

    print_throughput(spark, logs, output / "copies")
    spark.stop()


if __name__ == "__main__":
    main()
