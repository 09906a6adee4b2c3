"""`kwire log ls`: the topics, partitions and segments of a log directory, by names, indexes and a few bytes."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kwire.cli.selectors import check_not_output, segments_at, selected, without_side_files
from kwire.cli.terminal import amount, counted, print_json, terminal_columns, when
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage.reading.segment_summaries import PartitionSummary

_LEFT = ("topic", "partition", "segment", "codec")  # columns of text
_DROPPED = ("codec", "first time (UTC)", "segments", "partitions", "records", "last time (UTC)")  # in this order


class TopicSummary(NamedTuple):
    """The partitions of a topic together. records: at most, by the offsets; timestamps: milliseconds."""

    topic: str | None
    partitions: int
    segments: int
    bytes: int | None
    records: int | None
    first_timestamp: int | None
    last_timestamp: int | None


@click.command()
@selected
@click.option("--topics", "by_topic", is_flag=True, help="One row for each topic instead of each partition.")
@click.option("--segments", "by_segment", is_flag=True, help="One row for each segment.")
@click.option("--sort", type=click.Choice(("name", "size", "time")), default="name", show_default=True,
              help="The order of the rows; size and time: largest and newest first.")
@click.option("--json", "as_lines", is_flag=True,
              help="One JSON object a line; next_offset is after the last record, times are ms.")
def ls(paths: tuple[str, ...], topics: tuple[str, ...], partitions: tuple[int, ...], by_topic: bool, by_segment: bool,
       sort: str, as_lines: bool) -> None:
    """List topics, partitions and segments with their offsets, sizes and times.

    Nothing is read but listings, the last entries of indexes, the header of the first batch, and the headers of the
    last batches of a partition: the number of records comes from the offsets (a compacted log has fewer). On a terminal
    that is too narrow columns are left out in this order: the codec, the first time, the numbers of segments,
    partitions and records, the last time.
    """
    if "-" in paths:
        raise click.UsageError("standard input has no listing: name files and folders")
    if by_topic and by_segment:
        raise click.UsageError("--topics and --segments cannot be used together")
    from kwire.storage.reading.segment_summaries import following, summarize_partitions, summarize_segments

    groups = _discovered(paths, topics, partitions)
    rows: list[Any]
    if by_segment:
        rows = summarize_segments([pair for group in groups for pair in following(group)])
    else:
        rows = summarize_partitions(groups)
        rows = _topics(rows) if by_topic else rows
    if sort != "name":
        rows.sort(key=lambda row: -((row.bytes if sort == "size" else row.last_timestamp) or 0))
    if as_lines:
        for row in rows:
            print_json(row._asdict())
        return
    if rows:  # else segments came between two listings, or all are gone since
        _print_rows(rows)
    files = [file for group in groups for file in group]
    topic_names = {group[0].topic for group in groups}
    print(f"{counted(len(topic_names), 'topic')}, {counted(len(groups), 'partition')}, "
          f"{counted(len(files), 'segment')}, {amount(sum(max(file.stored, 0) for file in files))}", file=sys.stderr)


def _discovered(paths: Sequence[str], topics: Sequence[str], partitions: Sequence[int]) -> list[list[Any]]:
    """The segments of each partition, in order."""
    from kwire.storage.places.discovery import by_partition, discover
    from kwire.storage.places.filesystem import is_url
    from kwire.storage.places.path_patterns import PatternError
    from kwire.storage.places.selection import Selection

    try:
        files = discover(without_side_files(paths), selection=Selection(topics, partitions))
    except (FileNotFoundError, LookupError, PatternError):
        files = []
    for file in files:
        if file.stored < 0 and file.size < 0 and not is_url(file.path):
            raise click.UsageError(f"{printable(file.path)} is a pipe, which has no listing: name files and folders")
    if not files or any(file.base_offset < 0 for file in files):
        segments_at(paths, topics, partitions)  # raises the error that says what there is
    check_not_output([file.path for file in files])
    return list(by_partition(files).values())


def _topics(rows: Sequence[PartitionSummary]) -> list[TopicSummary]:
    groups: dict[str | None, list[PartitionSummary]] = {}
    for row in rows:
        groups.setdefault(row.topic, []).append(row)
    return [
        TopicSummary(topic, len(group), sum(row.segments for row in group), _sum([row.bytes for row in group]),
                     _sum([row.records for row in group]),
                     min((row.first_timestamp for row in group if row.first_timestamp is not None), default=None),
                     max((row.last_timestamp for row in group if row.last_timestamp is not None), default=None))
        for topic, group in groups.items()
    ]


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _cells(row: Any) -> dict[str, str]:
    """Name of a column -> its cell in the row of a topic, a partition or a segment."""
    cells: dict[str, str] = {}
    is_topic, is_segment = hasattr(row, "partitions"), hasattr(row, "codec")
    name = "-" if row.topic is None else printable(row.topic)
    if is_topic:
        cells |= {"topic": name, "partitions": f"{row.partitions:,}"}
    else:
        file = printable(row.path.rpartition("/")[2]) or "-"
        cells["partition"] = file if row.partition is None else f"{name}-{row.partition}"
    cells |= {"segment": file} if is_segment else {"segments": f"{row.segments:,}"}
    if not is_topic:
        start, end = row.base_offset, row.next_offset
        cells["offsets"] = "-" if start is None or end is None or end <= start else f"{start}..{end - 1}"
    cells |= {
        "records": "-" if row.records is None else f"{row.records:,}",
        "size": "-" if row.bytes is None else amount(row.bytes),
        "first time (UTC)": _time(row.first_timestamp), "last time (UTC)": _time(row.last_timestamp),
    }  # fmt: skip
    if is_segment:
        cells["codec"] = row.codec or "-"
    return cells


def _time(milliseconds: int | None) -> str:
    return "-" if milliseconds is None else re.sub(r"\.\d{3}$", "", when(milliseconds))


def _print_rows(rows: Sequence[Any]) -> None:
    table = [_cells(row) for row in rows]
    widths = {name: max(len(name), *(len(row[name]) for row in table)) for name in table[0]}
    if sys.stdout.isatty():
        most = terminal_columns()
        for name in _DROPPED:
            if sum(widths.values()) + 2 * (len(widths) - 1) <= most:
                break
            widths.pop(name, None)
        first = next(iter(widths))
        rest = sum(widths.values()) + 2 * (len(widths) - 1) - widths[first]
        widths[first] = max(8, min(widths[first], most - rest))
    write = sys.stdout.write
    for row in ({name: name for name in widths}, *table):
        cells = (_fitted(row[name], width, name in _LEFT) for name, width in widths.items())
        write("  ".join(cells).rstrip() + "\n")


def _fitted(text: str, width: int, left: bool) -> str:
    text = text if len(text) <= width else text[: width - 1] + "…"
    return f"{text:{'<' if left else '>'}{width}}"
