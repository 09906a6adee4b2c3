"""kwire log: shows, counts, verifies and converts log segments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.terminal import LONG, Time, amount, as_json, as_text, console, print_json, progress, when
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage import LogDirectory, LogSegment


@click.group()
def log() -> None:
    """Log segments: files, partition folders, log directories, globs, or fsspec URLs such as s3://.

    Only the .log files are needed; indexes beside them are used where they are sound.
    """


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """The PATHs of a command and --topic and --partition, given to it as one LogDirectory."""

    @click.argument("paths", nargs=-1, required=True, metavar="PATH...")
    @click.option("--topic", "topics", multiple=True, help="Only this topic (may be repeated).")
    @click.option("--partition", "partitions", type=click.IntRange(0, (1 << 31) - 1), multiple=True,
                  help="Only this partition (may be repeated).")
    @wraps(command)
    def selecting(paths: tuple[str, ...], topics: tuple[str, ...], partitions: tuple[int, ...], **options: Any) -> Any:
        from kwire.storage import LogDirectory
        from kwire.storage.filesystem import shown

        if "output" in options and options["output"] is None:
            paths, options["output"] = _split_output(paths)
        found = LogDirectory(paths, topics=topics or None, partitions=partitions or None)
        if not found.segments:
            raise FileNotFoundError(f"{' '.join(map(shown, paths))}: no segments there")
        return command(found, **options)

    return selecting


def _split_output(paths: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The segments and the file to write: the last path where it ends in .parquet, else a name after the first one."""
    if len(paths) > 1 and paths[-1].endswith(".parquet"):
        return paths[:-1], paths[-1]
    name = paths[0].rstrip("/").rpartition("/")[2]
    return paths, (name.removesuffix(".log") or "log") + ".parquet"


def span(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a range of offsets and times, given to the command as keywords of read() and columns()."""

    @click.option("--start-offset", type=LONG, help="First offset.")
    @click.option("--end-offset", type=LONG, help="Offset to stop before.")
    @click.option("--start-timestamp", type=Time(), help="First time: milliseconds or ISO 8601.")
    @click.option("--end-timestamp", type=Time(), help="Time to stop before.")
    @click.option("--committed", is_flag=True, help="Leave out aborted and still open transactions.")
    @wraps(command)
    def spanning(*args: Any, **options: Any) -> Any:
        return command(*args, **options)

    return spanning


def _segments(found: LogDirectory) -> Iterator[LogSegment]:
    yield from found.segments


def _name(segment: Any) -> str:
    """topic-partition, or the file's name where that is unknown."""
    if segment.topic is None:
        from kwire.storage.filesystem import shown

        return printable(shown(str(segment.path)).rpartition("/")[2])
    return printable(segment.topic if segment.partition is None else f"{segment.topic}-{segment.partition}")


# show


@log.command()
@selection
@span
@click.option("--batches", is_flag=True, help="Batches instead of records.")
@click.option("-n", "--limit", type=click.IntRange(0, (1 << 63) - 1), help="Stop after so many.")
@click.option("--control", is_flag=True, help="Control records (transaction markers and the like) too.")
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a line; bytes that are no UTF-8 as base64.")
@click.option("--width", type=click.IntRange(4, 1 << 30), default=60, show_default=True, help="Characters of a value.")
def show(found: LogDirectory, batches: bool, limit: int | None, control: bool, as_lines: bool, width: int,
         **wanted: Any) -> None:
    """Records (or batches) in order of offsets, partition by partition."""
    if batches:
        _show_batches(found, limit, as_lines, wanted)
        return
    rows = ((segment, record) for segment in _segments(found) for record in segment.read(control=control, **wanted))
    write = sys.stdout.write
    if not as_lines:
        write(f"{'partition':24} {'offset':>10}  {'timestamp (UTC)':23}  {'key':20}  value\n")
    for segment, record in islice(rows, limit):
        kind = record.control_type
        if as_lines:
            print_json({
                "topic": segment.topic, "partition": segment.partition, "offset": record.offset,
                "timestamp": record.timestamp, "timestamp_type": record.timestamp_type, "key": as_json(record.key),
                "value": as_json(record.value), "headers": [[key, as_json(value)] for key, value in record.headers],
                **({} if record.sequence < 0 else {"sequence": record.sequence}),
                **({} if kind is None else {"control_type": kind}),
            })
            continue
        value = as_text(record.value, width) if kind is None else f"[{kind}]"
        headers = "".join(f" {printable(key)}={as_text(content, 20)}" for key, content in record.headers)
        write(f"{_name(segment):24} {record.offset:>10}  {when(record.timestamp):23}  {as_text(record.key, 20):20}  "
              f"{value}{' |' + headers if headers else ''}\n")


def _show_batches(found: LogDirectory, limit: int | None, as_lines: bool, wanted: dict[str, Any]) -> None:
    from kwire.storage.bounds import Bounds
    from kwire.storage.filesystem import shown

    if wanted.pop("committed"):
        raise click.UsageError("--committed selects records: it does not go with --batches")
    bounds = Bounds(**wanted)

    def rows() -> Iterator[tuple[Any, Any]]:
        for segment in _segments(found):
            for batch in segment.batches(segment.start_of(bounds)):
                if bounds.is_past(batch):
                    break
                if not bounds.misses(batch):
                    yield segment, batch

    write = sys.stdout.write
    if not as_lines:
        write(f"{'partition':24} {'position':>12} {'size':>10} {'offsets':>21} {'count':>7} m codec  "
              f"{'max timestamp (UTC)':23}  {'producer':>8}  flags\n")
    for segment, batch in islice(rows(), limit):
        if as_lines:
            print_json({
                "topic": segment.topic, "partition": segment.partition, "path": shown(segment.path),
                **{name: getattr(batch, name) for name in _BATCH_FIELDS},
            })
            continue
        flags = " ".join(
            name for name, there in (
                ("transactional", batch.is_transactional), ("control", batch.is_control),
                ("log-append-time", batch.timestamp_type == "log_append"),
                (f"delete-horizon {batch.delete_horizon}", batch.delete_horizon is not None),
            ) if there
        )
        producer = "-" if batch.producer_id < 0 else str(batch.producer_id)
        write(f"{_name(segment):24} {batch.position:>12} {batch.size:>10} "
              f"{f'{batch.base_offset}..{batch.last_offset}':>21} {batch.count:>7} {batch.magic} {batch.codec:6} "
              f"{when(batch.max_timestamp):23}  {producer:>8}  {flags}".rstrip() + "\n")


_BATCH_FIELDS = (
    "position", "size", "magic", "codec", "base_offset", "last_offset", "count", "partition_leader_epoch", "crc",
    "attributes", "timestamp_type", "base_timestamp", "max_timestamp", "is_transactional", "is_control",
    "delete_horizon", "producer_id", "producer_epoch", "base_sequence",
)  # fmt: skip


# stats


@log.command()
@selection
@click.option("--json", "as_value", is_flag=True, help="One JSON object: totals, and each segment in \"parts\".")
@click.option("--plot", type=click.Path(dir_okay=False), help="Draw the statistics to this PNG, SVG or PDF file.")
@click.option("--force", is_flag=True, help="Draw also where a file of that name is there.")
@click.option("--segments", "by_segment", is_flag=True, help="A row for each segment instead of each partition.")
def stats(found: LogDirectory, as_value: bool, plot: str | None, force: bool, by_segment: bool) -> None:
    """Batches, records, codecs, compression ratio, sizes, producers and times."""
    from kwire.storage.stats import merged, segment_stats

    segments = found.segments
    parts = []
    with progress("reading", sum(segment.size for segment in segments)) as advance:
        for segment in segments:
            parts.append(segment_stats(segment, advance))
    total = merged(parts)
    if plot:
        from kwire.cli.plot import draw

        draw(total, parts, plot, inputs=[path for one in segments for path in one.files], force=force)
        print(f"drawn to {printable(plot)}", file=sys.stderr)
    if as_value:
        print_json({**total.to_json(), "parts": [part.to_json() for part in parts]}, indent=2)
        return
    rows = parts if by_segment else [
        merged(part, topic=part[0].topic, partition=part[0].partition, path=part[0].path)
        for part in _grouped(parts)
    ]
    _print_stats(total, rows, by_segment)


def _grouped(parts: list[Any]) -> list[list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for part in parts:
        groups.setdefault((part.topic, part.partition, None if part.topic else part.path), []).append(part)
    return list(groups.values())


def _print_stats(total: Any, rows: list[Any], by_segment: bool) -> None:
    out = console()
    columns = ["segment" if by_segment else "partition", "offsets", "batches", "records", "size", "ratio"]
    columns += ["codecs"] * (out.width >= 140) + ["first time (UTC)", "last time (UTC)"] * (out.width >= 110)

    def cells(name: str, row: Any) -> list[str]:
        offsets = f"{row.first_offset}..{row.last_offset}" if row.first_offset >= 0 else "-"
        known = {
            "offsets": "" if row is total else offsets, "batches": f"{row.batches:,}", "records": f"{row.records:,}",
            "size": amount(row.size), "ratio": f"{row.ratio:.2f}" if row.batches else "-",
            "codecs": " ".join(sorted(row.codecs)) or "-", "first time (UTC)": when(row.min_timestamp)[:19],
            "last time (UTC)": when(row.max_timestamp)[:19],
        }  # fmt: skip
        return [name, *(known[column] for column in columns[1:])]

    listed = []
    for row in rows:
        name = _name(row)
        if by_segment and row.topic:
            name = f"{name} {printable(row.path.rpartition('/')[2])}"
        listed.append(cells(name, row))
    several = [cells(f"{total.segments} segments", total)] if len(rows) > 1 else []
    out.print(_table("", columns, listed, several))
    if total.batches and out.width < 110:
        out.print(f"{when(total.min_timestamp)} to {when(total.max_timestamp)} (UTC)\n")

    listed = [
        [name, f"{codec.batches:,}", f"{codec.records:,}", amount(codec.stored), amount(codec.plain),
         f"{codec.ratio:.2f}"]
        for name, codec in sorted(total.codecs.items())
    ]
    out.print(_table("Codecs", ["codec", "batches", "records", "stored", "uncompressed", "ratio"], listed))

    if total.producers:
        ranked = sorted(total.producers.items(), key=lambda item: (-item[1].records, item[0]))
        listed = []
        for number, one in ranked[:10]:
            epochs = " ".join(map(str, one.epochs[:6])) + (" …" if len(one.epochs) > 6 else "")
            counts = [f"{count:,}" for count in (one.batches, one.records, one.transactional)]
            listed.append(["others" if number < 0 else str(number), epochs, *counts])
        if len(ranked) > 10:
            listed.append([f"{len(ranked) - 10} more", "", "", f"{sum(one.records for _, one in ranked[10:]):,}", ""])
        out.print(_table("Producers", ["producer id", "epochs", "batches", "records", "transactional"], listed))

    most = max(total.sizes.values(), default=1)
    listed = [
        [f"up to {amount(bucket)}", f"{count:,}", "█" * max(1, round(30 * count / most))]
        for bucket, count in sorted(total.sizes.items())
    ]
    out.print(_table("Batch sizes", ["batch size", "batches", ""], listed))
    for count, what in (
        (total.control_records, f"control records in {total.control_batches:,} batches are not counted as records."),
        (total.transactional_batches, "batches are transactional."),
        (total.tail, "bytes stand behind the last whole batch."),
        (total.bad, "damaged batches are left out: see kwire log verify."),
    ):
        if count:
            out.print(f"{count:,} {what}")


_TEXT_COLUMNS = ("partition", "segment", "codecs", "codec", "epochs", "batch size", "")


def _table(title: str, columns: list[str], rows: list[list[str]], total: Sequence[list[str]] = ()) -> Any:
    """A rich table; only text columns shrink on a narrow terminal, numbers stay whole."""
    from rich import box
    from rich.table import Table

    made = Table(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(columns):
        text = column in _TEXT_COLUMNS
        width = max(len(cell) for cell in (column, *(row[at] for row in (*rows, *total))))
        made.add_column(column, justify="left" if text else "right", no_wrap=True, min_width=None if text else width)
    for row in rows:
        made.add_row(*row)
    for row in total:
        made.add_section()
        made.add_row(*row, style="bold")
    return made


# verify


@log.command()
@selection
@click.option("--json", "as_value", is_flag=True, help="One JSON object with the findings.")
@click.pass_context
def verify(ctx: click.Context, found: LogDirectory, as_value: bool) -> None:
    """Check every batch, record and index entry. Exit code 1 when anything is wrong."""
    from kwire.storage.verify import verify_partition

    findings = []
    with progress("verifying", sum(segment.size for segment in found.segments)) as advance:
        for partition in found:
            findings += verify_partition(partition.segments, advance)
    if as_value:
        print_json({"segments": len(found.segments), "findings": [finding._asdict() for finding in findings]}, indent=2)
    else:
        for finding in findings:
            print(finding)
        print(f"{len(found.segments)} segments, {len(findings)} findings", file=sys.stderr)
    ctx.exit(1 if findings else 0)


# to-parquet


@log.command("to-parquet")
@selection
@span
@click.option("-o", "--output", type=click.Path(dir_okay=False),
              help="The Parquet file; else the last PATH if it ends in .parquet, else one named after the first.")
@click.option("--control", is_flag=True, help="Control records too.")
@click.option("--compression", type=click.Choice(["zstd", "snappy", "gzip", "lz4", "none"]), default="zstd",
              show_default=True, help="Parquet's own codec.")
@click.option("--rows", type=click.IntRange(1, 1 << 31), default=131072, show_default=True,
              help="Most rows of a row group.")
@click.option("--json", "as_value", is_flag=True, help="Say what was written as one JSON object on stdout.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def to_parquet(found: LogDirectory, output: str, as_value: bool, **options: Any) -> None:
    """Write records to one Parquet file: topic, partition, offset, timestamp, timestamp_type, key, value, headers.

    The file gets its name when it is whole. A file that is there is kept, unless --force; - is standard output.
    """
    from kwire.storage.parquet import write_parquet

    if as_value and output == "-":
        raise click.UsageError("--json and --output - do not go together: both are standard output")

    with progress("converting", sum(segment.size for segment in found.segments)) as advance:
        written = write_parquet(found.segments, output, progress=advance, **options)
    if as_value:
        print_json({"output": output, **written})
    else:
        told = f"{written['rows']:,} rows, {amount(written['size'])} written to {printable(output)}"
        print(told, file=sys.stderr)
