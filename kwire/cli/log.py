"""`kwire log`: shows, counts, verifies and converts log segments."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.damage import SKIP, STOP, Damage, on_error
from kwire.cli.log_export import PARTITION_BY, check_output
from kwire.cli.root import LazyGroup
from kwire.cli.selectors import names_of, selection, span
from kwire.cli.terminal import amount, console, counted, print_json, progress, table, when
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage import LogDirectory, LogSegment


@click.group(cls=LazyGroup, lazy={
    "dump": ("kwire.cli.dump_log:dump", "Print files of a log as kafka-dump-log does."),
    "export": ("kwire.cli.log_export:export", "Write records as Parquet, CSV or Arrow: one file, or a dataset."),
    "ls": ("kwire.cli.log_ls:ls", "List topics, partitions and segments with their offsets, sizes and times."),
    "show": ("kwire.cli.log_show:show", "Show records (or batches) by ascending offset, partition by partition."),
    "salvage": ("kwire.cli.salvage:salvage", "Write what is valid in damaged segments as clean ones."),
    "whatif": ("kwire.cli.whatif:whatif", "Measure the size that batches would have with each codec and level."),
})
def log() -> None:
    """Log segments: files, partition folders, log directories, globs, or fsspec URLs such as s3://.

    Only the .log files are needed; indexes beside them are used if they are valid.
    """


def segment_name(segment: Any) -> str:
    """topic-partition, or the file's name where that is unknown."""
    if segment.topic is None:
        from kwire.storage.places.filesystem import shown

        return printable(shown(str(segment.path)).rpartition("/")[2])
    return printable(segment.topic if segment.partition is None else f"{segment.topic}-{segment.partition}")


# stats


@log.command()
@selection
@click.option("--json", "as_value", is_flag=True, help="One JSON object: totals, and each segment in \"parts\".")
@click.option("--plot", type=click.Path(dir_okay=False), metavar="FILE",
              help="Also plot the statistics to this PNG, SVG or PDF file; - is a PNG on standard output, alone.")
@click.option("--force", is_flag=True, help="Overwrite an existing plot.")
@click.option("--segments", "by_segment", is_flag=True, help="One row for each segment instead of each partition.")
@on_error(SKIP)
def stats(
    directory: LogDirectory, as_value: bool, plot: str | None, force: bool, by_segment: bool, on_error: str
) -> int:
    """Show batches, records, codecs, compression ratio, sizes, producers and timestamps.

    Control records (transaction markers and others) are counted apart: they are not among the records. What a broker
    deletes meanwhile is noted on standard error, and is not counted.
    """
    from kwire.storage.reading.stats import merged, segment_stats

    if plot:
        from kwire.cli.plot import check, draw

        check(plot, as_value)
    segments = directory.segments
    damage = Damage(on_error)
    parts = []
    with progress("reading", _size(directory)) as advance:
        for segment in segments:
            try:
                parts.append(segment_stats(segment, advance, errors=damage.errors, bad=damage.take))
            except FileNotFoundError:
                _note_gone(segment)
                continue
            damage.tail(segment, segment.known_tail)
    total = merged(parts)
    if plot:
        inputs = [path for segment in segments for path in segment.files]
        draw(total, parts, plot, names_of(directory), inputs=inputs, force=force)
        print(f"plot written to {printable(plot)}", file=sys.stderr)
    if as_value:
        print_json({**total.to_json(), "parts": [part.to_json() for part in parts]}, indent=2)
    elif plot != "-":
        rows = parts if by_segment else [
            merged(part, topic=part[0].topic, partition=part[0].partition, path=part[0].path)
            for part in _grouped(parts)
        ]
        _print_stats(total, rows, by_segment)
    return 1 if damage.finish() else 0


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
            "codecs": " ".join(row.data_codecs) or "-", "first time (UTC)": when(row.min_timestamp)[:19],
            "last time (UTC)": when(row.max_timestamp)[:19],
        }  # fmt: skip
        return [name, *(known[column] for column in columns[1:])]

    listed = []
    for row in rows:
        name = segment_name(row)
        if by_segment and row.topic:
            name = f"{name} {printable(row.path.rpartition('/')[2])}"
        listed.append(cells(name, row))
    several = [cells(f"{total.segments} segments", total)] if len(rows) > 1 else []
    out.print(table("", columns, listed, several))
    if total.batches and out.width < 110:
        out.print(f"{when(total.min_timestamp)} to {when(total.max_timestamp)} (UTC)\n")

    listed = [
        [name, f"{codec.batches:,}", f"{codec.records:,}", amount(codec.stored), amount(codec.plain),
         f"{codec.ratio:.2f}"]
        for name, codec in sorted(total.codecs.items())
    ]
    out.print(table("Codecs", ["codec", "batches", "records", "stored", "uncompressed", "ratio"], listed))

    if total.producers:
        ranked = sorted(total.producers.items(), key=lambda item: (-item[1].records, item[0]))
        listed = []
        for number, producer in ranked[:10]:
            epochs = " ".join(map(str, producer.epochs[:6])) + (" …" if len(producer.epochs) > 6 else "")
            counts = [f"{count:,}" for count in (producer.batches, producer.records, producer.transactional)]
            listed.append(["others" if number < 0 else str(number), epochs, *counts])
        if len(ranked) > 10:
            remaining = sum(producer.records for _, producer in ranked[10:])
            listed.append([f"{len(ranked) - 10} more", "", "", f"{remaining:,}", ""])
        out.print(table("Producers", ["producer id", "epochs", "batches", "records", "transactional"], listed))

    most = max(total.sizes.values(), default=1)
    listed = [
        [f"up to {amount(bucket)}", f"{count:,}", "█" * max(1, round(30 * count / most))]
        for bucket, count in sorted(total.sizes.items())
    ]
    out.print(table("Batch sizes", ["batch size", "batches", ""], listed))
    for count, text in (
        (total.control_records, f"control records in {total.control_batches:,} batches ({amount(total.control_size)}) "
                                "are not counted as records."),
        (total.transactional_batches, "batches are transactional."),
        (total.tail, "bytes after the last complete batch."),
    ):
        if count:
            out.print(f"{count:,} {text}")


# verify


@log.command()
@selection
@click.option("--json", "as_value", is_flag=True, help="One JSON object with the findings.")
@click.pass_context
def verify(ctx: click.Context, directory: LogDirectory, as_value: bool) -> None:
    """Check every batch, record and index entry. The exit code is 1 if anything is wrong.

    What a broker deletes meanwhile is noted on standard error, and is no finding.
    """
    from kwire.storage.reading.verify import verify_partition

    findings = []
    segments = len(directory.segments)

    def gone(segment: LogSegment) -> None:
        nonlocal segments
        segments -= 1
        _note_gone(segment)

    with progress("verifying", _size(directory)) as advance:
        for partition in directory:
            findings += verify_partition(partition.segments, advance, gone)
    if as_value:
        rows = [finding._asdict() for finding in findings]
        print_json({"segments": segments, "findings": rows}, indent=2)
    else:
        for finding in findings:
            print(finding)
        counts = counted(segments, "segment"), counted(len(findings), "finding")
        print(", ".join(counts), file=sys.stderr)
    ctx.exit(1 if findings else 0)


def _note_gone(segment: LogSegment) -> None:
    from kwire.storage.places.filesystem import shown

    print(f"kwire: {printable(shown(segment.path))}: deleted since its folder was listed", file=sys.stderr)


def _size(directory: LogDirectory) -> int:
    """Bytes of the segments that are there, for the bar."""
    size = 0
    for segment in directory.segments:
        with suppress(FileNotFoundError):
            size += segment.size
    return size


# to-parquet


@log.command("to-parquet")
@selection
@span
@click.option("-o", "--output", type=click.Path(),
              help="The Parquet file. Default: the last of several PATHs if it is - or ends in .parquet, else a name "
                   "after the first PATH.")
@PARTITION_BY
@click.option("--control", is_flag=True, help="Also write control records.")
@click.option("--compression", type=click.Choice(["zstd", "snappy", "gzip", "lz4", "none"]), default="zstd",
              show_default=True, help="The compression codec of the Parquet file.")
@click.option("--rows", type=click.IntRange(1, 1 << 31), default=131072, show_default=True,
              help="Maximum rows in a row group.")
@click.option("--json", "as_value", is_flag=True, help="Print what was written as one JSON object.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@on_error(STOP)
def to_parquet(directory: LogDirectory, output: str, as_value: bool, on_error: str, **options: Any) -> int:
    """Write records to one Parquet file: topic, partition, offset, timestamp, timestamp_type, key, value, headers.

    The file appears under its name when it is complete: where --on-error stops, there is none. An existing file is
    kept, unless --force; - is standard output.
    """
    from kwire.storage.tables.parquet import write_parquet

    check_output(output, options["partition_by"], as_value, options["force"])
    damage = Damage(on_error)
    with progress("converting", sum(segment.size for segment in directory.segments)) as advance:
        written = write_parquet(
            directory.segments, output, progress=advance, errors=damage.errors, bad=damage.take, **options)
    for segment in directory.segments:
        damage.tail(segment, segment.known_tail)
    if as_value:
        print_json({"output": output, **written})
    else:
        summary = f"{written['rows']:,} rows, {amount(written['size'])} written to {printable(output)}"
        print(summary, file=sys.stderr)
    return 1 if damage.finish() else 0
