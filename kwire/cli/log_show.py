"""`kwire log show`: records, those of internal topics decoded, batches, and the files beside segments."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.damage import STOP, Damage, on_error
from kwire.cli.log import segment_name
from kwire.cli.selectors import segments_at, segments_in, selected, span, without_side_files
from kwire.cli.show_records import Filter, Output, Records
from kwire.cli.terminal import BATCH_FIELDS, print_json, when
from kwire.codec.json import json_text
from kwire.codec.records import BadBatch
from kwire.output import check_standard_output
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage import LogDirectory, SegmentFile, SideFile

_MOST_NAMED = 5  # partitions in which nothing was found
_ALIGNED = 10_000  # entries of a file whose columns are as wide as the widest of them


@click.command()
@selected
@span
@click.option("-n", "--limit", type=click.IntRange(0, (1 << 63) - 1), help="Stop after this many.")
@click.option("--tail", type=click.IntRange(0, (1 << 63) - 1), metavar="N",
              help="Only the last N records of each partition.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is appended, until interrupted.")
@click.option("--key", "keys", multiple=True, metavar="KEY",
              help="Only records with this key: text, or 0x and hex digits (may be repeated: any of them).")
@click.option("--grep", metavar="REGEX", help="Only records in whose key or value this regular expression is found.")
@click.option("--header", "headers", multiple=True, metavar="NAME[=VALUE]",
              help="Only records with this header (may be repeated: all of them).")
@click.option("--control", is_flag=True, help="Also show control records (transaction markers, leader changes, ...).")
@click.option("--raw", is_flag=True, help="Show records of internal topics as bytes, not decoded.")
@click.option("--batches", is_flag=True, help="Show batches instead of records.")
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a line; bytes that are not UTF-8 as base64.")
@click.option("--format", "form", metavar="FORMAT",
              help="Print each record so, as kcat -f: %t topic, %p partition, %o offset, %T timestamp (ms), %k key, "
                   "%s value, %K and %S their bytes (-1: null), %R as %S in 4 bytes, %h headers, %%; \\n \\t \\xNN.")
@click.option("--arrow", is_flag=True, help="Write an Arrow IPC stream.")
@click.option("--width", type=click.IntRange(4, 1 << 30),
              help="Maximum characters of a value.  [default: what the terminal has room for; else no limit]")
@on_error(STOP)
@click.pass_context
def show(ctx: click.Context, /, paths: tuple[str, ...], topics: tuple[str, ...], partitions: tuple[int, ...],
         batches: bool, as_lines: bool, form: str | None, arrow: bool, width: int | None, follow: bool,
         tail: int | None, **options: Any) -> None:
    """Show records (or batches) by ascending offset, partition by partition.

    On a terminal each record is one line of its width. What does not fit is cut or left out in this order: the
    milliseconds, half of the key, the partition (it gets a line of its own), the date, the time, the key. In a pipe or
    a file nothing is cut, and the columns are always the same. Control characters are shown as \\x1b; only --format
    writes the bytes as they are, and not to a terminal.

    Records of internal topics (__consumer_offsets, __transaction_state, __share_group_state, __remote_log_metadata,
    __cluster_metadata and its snapshots) are shown decoded; --topic gives the topic of a file outside of its folder,
    if its first records do not tell. A record that cannot be decoded is shown as it is; if it is malformed, the exit
    code is 1.

    Other files of a log directory that are named are shown entry by entry: .index, .timeindex, .txnindex, .snapshot,
    checkpoints, partition.metadata, meta.properties, quorum-state.
    """
    groups = [(beside, list(group)) for beside, group in groupby(paths, _is_beside)]
    chosen = {"--batches": batches, "--json": as_lines, "--format": form is not None, "--arrow": arrow}
    forms = [name for name, given in chosen.items() if given and not (name == "--json" and batches)]
    if len(forms) > 1:
        raise click.UsageError(f"{' and '.join(forms)} cannot be used together")
    records = _records(options)
    of_records = {"--key, --grep and --header": bool(records.wanted), "--tail": tail is not None, "--follow": follow,
                  "--format": form is not None}
    selecting = [name for name, given in of_records.items() if given]
    if selecting and (batches or any(beside for beside, _ in groups)):
        raise click.UsageError(f"{selecting[0]} select{'s' * ('and' not in selecting[0])} records, not "
                               f"{'batches' if batches else 'the entries of other files'}")
    if batches and any(beside for beside, _ in groups):
        raise click.UsageError("--batches shows segments, not the files beside them")
    if arrow and len(groups) > 1:
        raise click.UsageError("--arrow writes one table: name segments, or other files of one kind")
    if arrow and (follow or tail is not None):
        raise click.UsageError("--arrow cannot be used with --tail or --follow")
    # all are found, and none of them is standard output, before anything is written
    check_standard_output(path for beside, group in groups if beside for path in group)
    directories = [None if beside else segments_at(group, topics, partitions) for beside, group in groups]
    for (_, group), directory in zip(groups, directories, strict=True):
        before = records.left
        if directory is None:
            _show_side_files(group, records, as_lines, arrow)
            continue
        if batches:
            _show_batches(directory, records, as_lines)
        elif arrow:
            _write_arrow(directory, records)
        else:
            _show_records(directory, group, topics, partitions, records, as_lines, form, width, follow, tail)
        if records.left == before and before and tail != 0:
            _note_nothing(group, topics, partitions, "batches" if batches else "records")
    for path, text in records.failures.items():
        print(f"kwire: {path}: {text}", file=sys.stderr)
    ctx.exit(1 if records.damage.finish() or records.damaged else 0)


def _records(options: dict[str, Any]) -> Records:
    wanted = Filter(options.pop("keys"), options.pop("grep"), options.pop("headers"))
    damage = Damage(options.pop("on_error"))
    return Records(options.pop("limit"), options.pop("control"), options.pop("raw"), options, wanted, damage)


def _is_beside(path: str) -> bool:
    from kwire.storage import side_file_kind

    return side_file_kind(path) is not None


def _shown(path: str) -> str:
    from kwire.storage.places.filesystem import shown

    return printable(shown(path))


def _note_nothing(paths: Sequence[str], topics: tuple[str, ...], partitions: tuple[int, ...], what: str) -> None:
    """Say on stderr that nothing was found, and what there is, partition by partition."""
    from kwire.storage import discover
    from kwire.storage.places.discovery import by_partition
    from kwire.storage.places.selection import Selection

    groups: list[list[SegmentFile]] = []
    try:
        found = discover(without_side_files(paths), selection=Selection(topics, partitions))
    except (OSError, LookupError):  # deleted meanwhile
        found = []
    for files in by_partition(found).values():
        groups += [files] if files[0].base_offset >= 0 else ([file] for file in files)
    if not groups:
        return print(f"kwire: no {what} found", file=sys.stderr)
    more = f" and {len(groups) - _MOST_NAMED:,} more" if len(groups) > _MOST_NAMED else ""
    names = ", ".join(_extent(files) for files in groups[:_MOST_NAMED])
    print(f"kwire: no {what} found in {names}{more}", file=sys.stderr)


def _extent(files: list[SegmentFile]) -> str:
    """The name of a log, with its offsets and timestamps where they are known."""
    from kwire.storage.reading.segment_summaries import summarize_partitions

    file = files[0]
    name = _shown(file.path) if file.topic is None else printable(f"{file.topic}-{file.partition}")
    log = next(iter(summarize_partitions([files])), None)
    if log is None:
        return f"{name} (deleted meanwhile)"
    if log.base_offset is None or log.next_offset is None or not log.records:
        return f"{name} (empty)" if log.bytes == 0 else name
    times = [when(time) for time in (log.first_timestamp, log.last_timestamp) if time is not None]
    span = f", {' to '.join(times)} UTC" if times else ""
    return f"{name} (offsets {log.base_offset} to {log.next_offset - 1}{span})"


def _show_records(
    directory: LogDirectory, paths: list[str], topics: tuple[str, ...], partitions: tuple[int, ...], records: Records,
    as_lines: bool, form: str | None, width: int | None, follow: bool, tail: int | None,
) -> None:
    from kwire.cli.record_lines import Format, JsonLines, Lines, Table, table_layout
    from kwire.storage import discover
    from kwire.storage.places.filesystem import SpooledFile
    from kwire.storage.places.selection import Selection

    lines: Lines = JsonLines()
    if form is not None:
        lines = Format(form)
    elif not as_lines:
        lines = Table(table_layout(directory.segments), width)
    for segment in directory.segments if follow else ():
        if isinstance(segment.file, SpooledFile) and segment.file.once:
            raise click.UsageError(f"--follow reads files that grow: {_shown(segment.path)} is a pipe")
    output = Output(lines, records)
    if follow:
        chosen = Selection(topics, partitions, strict=False)  # they may be deleted, and made again
        output.follow(lambda: discover(without_side_files(paths), selection=chosen), tail)
    elif tail is not None:
        output.show_last(directory, tail)
    else:
        for segment in segments_in(directory, records.span):
            output.show(segment)


# batches


def _show_batches(directory: LogDirectory, rows: Records, as_lines: bool) -> None:
    from kwire.storage.reading.bounds import Bounds

    span = dict(rows.span)
    if span.pop("committed"):
        raise click.UsageError("--committed selects records and cannot be used with --batches")
    bounds = Bounds(**span)

    def found() -> Iterator[tuple[Any, Any]]:
        for segment in segments_in(directory, rows.span):
            held = segment.held()
            batches = held.batches(held.start_of(bounds), errors=rows.damage.errors)
            for batch in batches:
                if isinstance(batch, BadBatch):
                    rows.damage.take(batch)
                    continue
                if bounds.is_past(batch):
                    break
                if not bounds.misses(batch):
                    yield segment, batch
            rows.damage.tail(segment, batches.tail)

    write = sys.stdout.write
    if not as_lines:
        write(f"{'partition':24} {'position':>12} {'size':>10} {'offsets':>21} {'count':>7} m codec  "
              f"{'max timestamp (UTC)':23}  {'producer':>8}  flags\n")
    for segment, batch in islice(found(), rows.left):
        rows.left -= 1
        if as_lines:
            print_json({
                "topic": segment.topic, "partition": segment.partition, "path": _shown(segment.path),
                **{name: getattr(batch, name) for name in BATCH_FIELDS},
            })
            continue
        flags = " ".join(
            name for name, present in (
                ("transactional", batch.is_transactional), ("control", batch.is_control),
                ("log-append-time", batch.timestamp_type == "log_append"),
                (f"delete-horizon {batch.delete_horizon}", batch.delete_horizon is not None),
            ) if present
        )
        producer = "-" if batch.producer_id < 0 else str(batch.producer_id)
        write(f"{segment_name(segment):24} {batch.position:>12} {batch.size:>10} "
              f"{f'{batch.base_offset}..{batch.last_offset}':>21} {batch.count:>7} {batch.magic} {batch.codec:6} "
              f"{when(batch.max_timestamp):23}  {producer:>8}  {flags}".rstrip() + "\n")


# files beside segments


def _show_side_files(paths: Sequence[str], rows: Records, as_lines: bool, arrow: bool) -> None:
    from kwire.storage import read_side_file

    files = []
    for path in paths:
        file = read_side_file(path)
        if file.damage is not None:
            rows.failures[_shown(path)], rows.damaged = file.damage, True
        if arrow:
            files.append(file)
        elif as_lines:
            for row in _entries(file, rows):
                print_json({"path": _shown(path), "kind": file.kind, **dict(zip(file.columns, row, strict=True))})
        else:
            _print_side_file(file, rows)
    if arrow:
        from kwire.cli import arrow_stream

        if len({file.kind for file in files}) > 1:
            raise click.UsageError("--arrow writes one table: name files of one kind")
        arrow_stream.write_side_files(files, partial(_entries, rows=rows))


def _entries(file: SideFile, rows: Records) -> Iterator[tuple[Any, ...]]:
    """The entries of a file beside segments that are in the range of offsets and timestamps, up to the limit."""
    checks = [
        (file.columns.index(column), rows.span[f"start_{column}"], rows.span[f"end_{column}"])
        for column in ("offset", "timestamp") if column in file.columns
    ]
    for row in file.rows:
        if all((start is None or row[at] >= start) and (end is None or row[at] < end) for at, start, end in checks):
            if not rows.left:
                return
            rows.left -= 1
            yield row


def _print_side_file(file: SideFile, rows: Records) -> None:
    zeros = f", {file.padding:,} more of zeros" if file.padding else ""
    count = len(file.rows)
    sys.stdout.write(f"{_shown(file.path)}: {file.kind}, {count:,} {'entry' if count == 1 else 'entries'}{zeros}\n")
    entries = ([_cell(column, value) for column, value in zip(file.columns, row, strict=True)]
               for row in _entries(file, rows))
    first = list(islice(entries, _ALIGNED))
    if first:
        table = [list(file.columns), *first]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for line in chain(table, entries):
            cells = (f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True))
            sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _cell(column: str, value: Any) -> str:
    if column == "timestamp":
        return when(value)
    return printable(value if isinstance(value, str) else json_text(value))


# Arrow


def _write_arrow(directory: LogDirectory, rows: Records) -> None:
    from kwire.cli import arrow_stream

    segments = segments_in(directory, rows.span)
    internal = {rows.kind(segment) is not None for segment in directory.segments}
    if len(internal) > 1:
        raise click.UsageError("--arrow writes one table: choose internal topics or others by --topic, or use --raw")
    if True not in internal:
        arrow_stream.write_records(segments, rows.pieces)
    elif rows.control:
        raise click.UsageError("--control cannot be used with --arrow where records are decoded")
    else:
        arrow_stream.write_decoded(
            (segment, record) for segment in segments for record in rows.decoded(segment))
