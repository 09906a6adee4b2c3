"""make demo: log segments that a real Kafka 4.3.0 broker wrote, read by Spark without a broker.

Prints some rows, a summary by topic and the throughput; writes demo-output/records.parquet and demo-output/records.png.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kwire.spark import java
from kwire.storage import LogDirectory
from tools.places import golden

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OUTPUT = Path("demo-output")
COPIES = 80  # of the largest topic's segments, for the throughput
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
console = Console(width=max(110, Console().width), highlight=False)


def session() -> SparkSession:
    """A session on all cores of this machine, with a progress bar where a person looks at it."""
    java.prepare()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYTHONWARNINGS"] = "ignore::FutureWarning"  # Spark's about pandas 3
    warnings.simplefilter("ignore", FutureWarning)
    from pyspark.sql import SparkSession

    import kwire.spark

    spark = (
        SparkSession.builder.master("local[*]").appName("kwire demo")
        .config("spark.ui.enabled", "false").config("spark.driver.memory", "1g").config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
        .config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    kwire.spark.register(spark)
    return spark


def plain(value: Any) -> str:
    """Bytes as text where they are text, else as hex; "null"."""
    if value is None:
        return "null"
    data = bytes(value)
    try:
        shown = data.decode()
    except UnicodeDecodeError:
        shown = data.hex(" ")
    return shown if shown.isprintable() else repr(shown)[1:-1]


def cell(value: Any, most: int = 26) -> str:
    """A value as a cell of a table, cut to length."""
    if value is None:
        return "[dim]null[/]"
    shown = plain(value)
    return escape(shown if len(shown) <= most else shown[: most - 1] + "…")


def print_rows(frame: DataFrame) -> None:
    """The first two rows of each topic."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    first = Window.partitionBy("topic").orderBy(f.col("headers").isNull(), "partition", "offset")
    rows = frame.withColumn("n", f.row_number().over(first)).where("n <= 2").orderBy("topic", "n").collect()
    title = "Rows: two of each topic alpha-…, aborted transactions left out"
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in ("topic", "part.", "offset", "time (UTC)", "key", "value", "headers"):
        table.add_column(name, justify="right" if name in ("part.", "offset") else "left", no_wrap=True)
    for row in rows:
        headers = " ".join(f"{header.key}={plain(header.value)}" for header in row.headers or [])
        table.add_row(row.topic.removeprefix("alpha-"), str(row.partition), str(row.offset),
                      f"{row.timestamp:%Y-%m-%d %H:%M}", cell(row.key, 12), cell(row.value),
                      cell(headers.encode() or None, 18))
    console.print(table)


def stored(logs: Iterable[Any]) -> tuple[dict[str, Counter[str]], dict[str, int]]:
    """For each topic: batches by codec, and bytes of batches; from the batch headers alone."""
    codecs: dict[str, Counter[str]] = {}
    sizes: Counter[str] = Counter()
    for partition in logs:
        for segment in partition:
            for header in segment.headers():
                if not header.is_control:
                    codecs.setdefault(partition.topic, Counter())[header.codec] += 1
                    sizes[partition.topic] += header.size
    return codecs, sizes


def summary(everything: DataFrame, committed: DataFrame) -> list[dict[str, Any]]:
    """Counts by topic, as Spark found them."""
    counts = (
        "count(*) as records", "count(distinct partition) as partitions", "count_if(value is null) as tombstones",
        "count_if(headers is not null) as with_headers",
        "sum(coalesce(length(key), 0) + coalesce(length(value), 0)) as bytes",
    )  # fmt: skip
    found = everything.groupBy("topic").agg(*map(_expression, counts)).orderBy("topic").collect()
    kept = {row.topic: row["count"] for row in committed.groupBy("topic").count().collect()}
    return [{**row.asDict(), "committed": kept.get(row.topic, 0)} for row in found]


def _expression(text: str) -> Any:
    from pyspark.sql import functions as f

    return f.expr(text)


def print_summary(topics: list[dict[str, Any]], codecs: dict[str, Counter[str]]) -> None:
    """One line a topic."""
    table = Table(title="By topic", title_justify="left", header_style="bold", show_footer=True)
    summed = ("partitions", "records", "tombstones", "with_headers", "bytes")
    totals = {name: sum(row[name] for row in topics) for name in summed}
    totals["aborted"] = sum(row["records"] - row["committed"] for row in topics)
    columns = {"topic": None, "partitions": "partitions", "records": "records", "tombstones": "tombstones",
               "with headers": "with_headers", "aborted": "aborted", "bytes": "bytes", "codecs": None}
    for name, key in columns.items():
        footer = "all" if name == "topic" else f"{totals[key]:,}" if key else ""
        table.add_column(name, footer, justify="right" if key else "left", no_wrap=True)
    for row in topics:
        used = [codec for codec in CODECS if codecs[row["topic"]][codec]]
        cells = [row["partitions"], row["records"], row["tombstones"], row["with_headers"],
                 row["records"] - row["committed"], row["bytes"]]
        table.add_row(row["topic"], *(f"{count:,}" if count else "[dim]0[/]" for count in cells),
                      "all five" if len(used) == len(CODECS) else " ".join(used))
    console.print(table)


def print_throughput(spark: SparkSession, folder: Path) -> None:
    """The largest topic many times over, the columns of Spark's Kafka source."""
    data = b"".join(path.read_bytes() for path in sorted(folder.glob("alpha-seg-0/*.log")))
    cores = spark.sparkContext.defaultParallelism
    with tempfile.TemporaryDirectory(prefix="kwire-demo-") as copies:
        for number in range(cores):
            path = Path(copies, f"copies-{number}", f"{0:020d}.log")
            path.parent.mkdir()
            path.write_bytes(data * (COPIES // cores + 1))
        size = sum(path.stat().st_size for path in Path(copies).rglob("*.log"))
        frame = spark.read.format("kwire").load(copies)
        checks = ["count(*) as n", "sum(length(value)) as v", "max(offset) as o", "max(timestamp) as t"]
        frame.selectExpr(*checks).collect()
        began = time.perf_counter()
        found = frame.selectExpr(*checks).first()
        seconds = time.perf_counter() - began
    assert found is not None
    console.print(
        f"[bold]Throughput[/]: {found.n:,} records, {size / 1e6:,.0f} MB in {seconds:.2f} s on {cores} cores: "
        f"{found.n / seconds / 1e6:.2f} million records/s, {size / seconds / 1e6:,.0f} MB/s", soft_wrap=True)


def draw(topics: list[dict[str, Any]], codecs: dict[str, Counter[str]], sizes: dict[str, int], path: Path) -> None:
    """The picture: records by topic, and what each codec saves."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(13, 5.6), width_ratios=(3, 2), layout="constrained")
    figure.suptitle("Segments of a Kafka 4.3.0 broker, read by Spark through kwire", fontsize=14, x=0.01, ha="left")
    ordered = sorted(topics, key=lambda row: row["records"])
    left.barh([row["topic"] for row in ordered], [row["records"] for row in ordered], color="#3b6ea5")
    for y, row in enumerate(ordered):
        extra = {"tombstones": row["tombstones"], "aborted": row["records"] - row["committed"]}
        notes = ", ".join(f"{count:,} {name}" for name, count in extra.items() if count)
        left.annotate(f"{row['records']:,}" + (f"   ({notes})" if notes else ""), (row["records"], y), xytext=(4, 0),
                      textcoords="offset points", va="center", fontsize=9)
    left.set_xscale("log")
    left.set_xlim(1, max(row["records"] for row in ordered) * 3)
    left.set_title("Records by topic (log scale)", loc="left", fontsize=11)
    # topics of one codec alone, the same records in each: alpha-none, alpha-gzip, ...
    plain = {row["topic"]: row["bytes"] for row in topics}
    shown = [codec for codec in CODECS if set(codecs.get(f"alpha-{codec}", ())) == {codec}]
    on_disk = [100 * sizes[f"alpha-{codec}"] / plain[f"alpha-{codec}"] for codec in shown]
    bars = right.bar(shown, on_disk, color="#3b6ea5", width=0.6)
    right.bar_label(bars, [f"{value:.0f} %" for value in on_disk], padding=3, fontsize=9)
    right.axhline(100, color="#888888", linewidth=1, linestyle="--")
    right.set_ylim(0, max([*on_disk, 100]) * 1.15)
    right.set_title("Bytes of batches for 100 bytes of keys and values", loc="left", fontsize=11)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(length=0)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> None:
    """Run the demo."""
    folder = golden() / "data" / "kafka-4.3.0" / "data1"
    names = sorted({str(partition.topic) for partition in LogDirectory(folder)})
    names = [name for name in names if not name.startswith("__")]
    spark = session()
    reader = spark.read.format("kwire").option("topic", ",".join(names)).option("includeHeaders", "true")
    everything = reader.load(str(folder))
    committed = reader.option("readCommitted", "true").load(str(folder))
    place = f"{folder.parent.name}/{folder.name}"
    console.rule(f"[bold]kwire: {len(names)} topics of {place}, read by Spark {spark.version}")
    print_rows(committed)
    topics = summary(everything, committed)
    codecs, sizes = stored(LogDirectory(folder, topics=names))
    print_summary(topics, codecs)
    OUTPUT.mkdir(exist_ok=True)
    parquet, picture = OUTPUT / "records.parquet", OUTPUT / "records.png"
    shutil.rmtree(parquet, ignore_errors=True)
    committed.write.partitionBy("topic").parquet(str(parquet))
    draw(topics, codecs, sizes, picture)
    print_throughput(spark, folder)
    written = spark.read.parquet(str(parquet)).count()
    console.print(f"[bold]Written[/]: {parquet} ({written:,} records), {picture}")
    spark.stop()


if __name__ == "__main__":
    main()
