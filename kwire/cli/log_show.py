"""`kwire log show`: records, those of internal topics decoded, batches, and the files beside segments."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.damage import STOP, Damage, on_error
from kwire.cli.log import segment_name
from kwire.cli.selectors import segments_at, selected, span
from kwire.cli.terminal import as_json, as_text, print_json, when
from kwire.codec.control import control_json
from kwire.codec.json import json_text
from kwire.codec.records import BadBatch
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage import InternalRecord, LogDirectory, LogSegment, SideFile

    Shown = tuple[LogSegment, Any, InternalRecord | None]

_WIDTH = 60  # characters of a value that is not decoded
_ALIGNED = 10_000  # entries of a file whose columns are as wide as the widest of them
_BATCH_FIELDS = (
    "position", "size", "magic", "codec", "base_offset", "last_offset", "count", "partition_leader_epoch", "crc",
    "attributes", "timestamp_type", "base_timestamp", "max_timestamp", "is_transactional", "is_control",
    "delete_horizon", "producer_id", "producer_epoch", "base_sequence",
)  # fmt: skip


@click.command()
@selected
@span
@click.option("--batches", is_flag=True, help="Show batches instead of records.")
@click.option("-n", "--limit", type=click.IntRange(0, (1 << 63) - 1), help="Stop after this many.")
@click.option("--control", is_flag=True, help="Also show control records (transaction markers, leader changes, ...).")
@click.option("--raw", is_flag=True, help="Show records of internal topics as bytes, not decoded.")
@click.option("--json", "as_lines", is_flag=True, help="One JSON object a line; bytes that are not UTF-8 as base64.")
@click.option("--arrow", is_flag=True, help="Write an Arrow IPC stream.")
@click.option("--width", type=click.IntRange(4, 1 << 30),
              help=f"Maximum characters of a value.  [default: {_WIDTH}, decoded values in full]")
@on_error(STOP)
@click.pass_context
def show(ctx: click.Context, /, paths: tuple[str, ...], topics: tuple[str, ...], partitions: tuple[int, ...],
         batches: bool, limit: int | None, control: bool, raw: bool, as_lines: bool, arrow: bool, width: int | None,
         on_error: str, **span: Any) -> None:
    """Show records (or batches) by ascending offset, partition by partition.

    Records of internal topics (__consumer_offsets, __transaction_state, __share_group_state, __remote_log_metadata,
    __cluster_metadata and its snapshots) are shown decoded; --topic gives the topic of a file outside of its folder,
    if its first records do not tell. A record that cannot be decoded is shown as it is; if it is malformed, the exit
    code is 1.

    Other files of a log directory that are named are shown entry by entry: .index, .timeindex, .txnindex, .snapshot,
    checkpoints, partition.metadata, meta.properties, quorum-state.
    """
    groups = [(beside, list(group)) for beside, group in groupby(paths, _is_beside)]
    if arrow and (as_lines or batches):
        raise click.UsageError("--arrow cannot be used with --json or --batches")
    if batches and any(beside for beside, _ in groups):
        raise click.UsageError("--batches shows segments, not the files beside them")
    if arrow and len(groups) > 1:
        raise click.UsageError("--arrow writes one table: name segments, or other files of one kind")
    rows = _Rows(limit, control, raw, span, Damage(on_error))
    for beside, group in groups:
        if beside:
            _show_side_files(group, rows, as_lines, arrow)
        elif batches:
            _show_batches(segments_at(group, topics, partitions), rows, as_lines)
        elif arrow:
            _write_arrow(segments_at(group, topics, partitions), rows)
        else:
            _show_records(segments_at(group, topics, partitions), rows, as_lines, width)
    for path, text in rows.failures.items():
        print(f"kwire: {path}: {text}", file=sys.stderr)
    ctx.exit(1 if rows.damage.finish() or rows.damaged else 0)


def _is_beside(path: str) -> bool:
    from kwire.storage import side_file_kind

    return side_file_kind(path) is not None


class _Rows:
    """The rows that are wanted, and what could not be decoded. failures: file -> what is wrong; damaged: is it data?"""

    def __init__(
        self, limit: int | None, control: bool, raw: bool, span: dict[str, Any], damage: Damage
    ) -> None:
        self.left = sys.maxsize if limit is None else limit  # rows that may still be shown
        self.control, self.raw, self.span = control, raw, span
        self.failures: dict[str, str] = {}
        self.damaged = False
        self.damage = damage
        self._undecoded: dict[str, tuple[int, str]] = {}  # file -> records, the first one

    def taken(self, rows: Iterator[Any]) -> Iterator[Any]:
        """The rows, up to the limit."""
        for row in islice(rows, self.left):
            self.left -= 1
            yield row

    def kind(self, segment: LogSegment) -> str | None:
        """The kind of the records of an internal topic; None where bytes are shown."""
        from kwire.storage import internal_kind

        return None if self.raw else internal_kind(segment)

    def records(self, directory: LogDirectory) -> Iterator[Shown]:
        """The records that are wanted, each with its segment and, of an internal topic, decoded."""
        from kwire.storage import decode_internal_record

        def found() -> Iterator[Shown]:
            for segment in directory.segments:
                kind = self.kind(segment)
                for record in segment.read(control=self.control, errors=self.damage.errors, **self.span):
                    if isinstance(record, BadBatch):
                        self.damage.take(record)
                        continue
                    decoded = None
                    if kind is not None and record.control_type is None:
                        decoded = decode_internal_record(kind, record)
                    yield segment, record, decoded
                self.damage.tail(segment, segment.known_tail)

        for segment, record, decoded in self.taken(found()):
            if decoded is not None and decoded.error is not None:
                self._note(segment, decoded)
            yield segment, record, decoded

    def _note(self, segment: LogSegment, record: InternalRecord) -> None:
        name = _shown(segment.path)
        count, first = self._undecoded.get(name, (0, f"at offset {record.offset}: {record.error}"))
        self._undecoded[name] = count + 1, first
        self.failures[name] = f"{count + 1} record{'s' * (count > 0)} not decoded, the first {first}"
        self.damaged = self.damaged or not record.is_unknown

    def entries(self, file: SideFile) -> Iterator[tuple[Any, ...]]:
        """The entries of a file beside segments that are in the range of offsets and timestamps."""
        checks = [
            (file.columns.index(column), self.span[f"start_{column}"], self.span[f"end_{column}"])
            for column in ("offset", "timestamp") if column in file.columns
        ]
        return self.taken(row for row in file.rows if all(
            (start is None or row[at] >= start) and (end is None or row[at] < end) for at, start, end in checks))


def _shown(path: str) -> str:
    from kwire.storage.filesystem import shown

    return printable(shown(path))


# records


def _show_records(directory: LogDirectory, rows: _Rows, as_lines: bool, width: int | None) -> None:
    write = sys.stdout.write
    if not as_lines:
        write(f"{'partition':24} {'offset':>10}  {'timestamp (UTC)':23}  {'key':20}  value\n")
    for segment, record, decoded in rows.records(directory):
        if as_lines:
            print_json(_as_json(segment, record, decoded))
            continue
        key, value = _as_texts(record, decoded, width)
        headers = "".join(f" {printable(name)}={as_text(content, 20)}" for name, content in record.headers)
        write(f"{segment_name(segment):24} {record.offset:>10}  {when(record.timestamp):23}  {key:20}  "
              f"{value}{' |' + headers if headers else ''}\n")


def _as_texts(record: Any, decoded: InternalRecord | None, width: int | None) -> tuple[str, str]:
    """The key and the value as text."""
    if decoded is not None and decoded.error is None:
        key, data = decoded.key_json(), decoded.data()
        shown = f"{decoded.type}" if key is None else f"{decoded.type} {json_text(key['data'])}"
        value = "null" if data is None else printable(f"v{decoded.version} {json_text(data)}")
        return printable(shown), value[: width - 1] + "…" if width and len(value) > width else value
    if record.control_type is not None:
        message = _control_json(record)
        value = f"[{record.control_type}]" + ("" if message is None else f" {printable(json_text(message))}")
    else:
        value = as_text(record.value, width or _WIDTH)
    if decoded is not None:
        value += f" [not decoded: {decoded.error}]"
    return as_text(record.key, 20), value


def _as_json(segment: LogSegment, record: Any, decoded: InternalRecord | None) -> dict[str, Any]:
    readable = decoded if decoded is not None and decoded.error is None else None
    row: dict[str, Any] = {
        "topic": segment.topic, "partition": segment.partition, "offset": record.offset,
        "timestamp": record.timestamp, "timestamp_type": record.timestamp_type,
        "key": readable.key_json() if readable else as_json(record.key),
        "value": readable.value_json() if readable else as_json(record.value),
        "headers": [[key, as_json(value)] for key, value in record.headers],
    }  # fmt: skip
    if record.sequence >= 0:
        row["sequence"] = record.sequence
    if decoded is not None:
        row |= {"type": decoded.type, "version": decoded.version}
        if decoded.error is not None:
            row |= {"type_id": decoded.type_id, "error": str(decoded.error)}
    if record.control_type is not None:
        row |= {"control_type": record.control_type, "control": _control_json(record)}
    return row


def _control_json(record: Any) -> dict[str, Any] | None:
    """The message of a control record as kafka-dump-log shows it, None for one of an unknown type."""
    if record.control is None:
        return None
    return control_json(record.control, record.value)


# batches


def _show_batches(directory: LogDirectory, rows: _Rows, as_lines: bool) -> None:
    from kwire.storage.bounds import Bounds

    span = dict(rows.span)
    if span.pop("committed"):
        raise click.UsageError("--committed selects records and cannot be used with --batches")
    bounds = Bounds(**span)

    def found() -> Iterator[tuple[Any, Any]]:
        for segment in directory.segments:
            batches = segment.batches(segment.start_of(bounds), errors=rows.damage.errors)
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
    for segment, batch in rows.taken(found()):
        if as_lines:
            print_json({
                "topic": segment.topic, "partition": segment.partition, "path": _shown(segment.path),
                **{name: getattr(batch, name) for name in _BATCH_FIELDS},
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


def _show_side_files(paths: Sequence[str], rows: _Rows, as_lines: bool, arrow: bool) -> None:
    from kwire.storage import read_side_file

    files = []
    for path in paths:
        file = read_side_file(path)
        if file.damage is not None:
            rows.failures[_shown(path)], rows.damaged = file.damage, True
        if arrow:
            files.append(file)
        elif as_lines:
            for row in rows.entries(file):
                print_json({"path": _shown(path), "kind": file.kind, **dict(zip(file.columns, row, strict=True))})
        else:
            _print_side_file(file, rows)
    if arrow:
        from kwire.cli import arrow_stream

        if len({file.kind for file in files}) > 1:
            raise click.UsageError("--arrow writes one table: name files of one kind")
        arrow_stream.write_side_files(files, rows.entries)


def _print_side_file(file: SideFile, rows: _Rows) -> None:
    zeros = f", {file.padding:,} more of zeros" if file.padding else ""
    count = len(file.rows)
    sys.stdout.write(f"{_shown(file.path)}: {file.kind}, {count:,} {'entry' if count == 1 else 'entries'}{zeros}\n")
    entries = ([_cell(column, value) for column, value in zip(file.columns, row, strict=True)]
               for row in rows.entries(file))
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


def _write_arrow(directory: LogDirectory, rows: _Rows) -> None:
    from kwire.cli import arrow_stream

    internal = {rows.kind(segment) is not None for segment in directory.segments}
    if len(internal) > 1:
        raise click.UsageError("--arrow writes one table: choose internal topics or others by --topic, or use --raw")
    if True not in internal:
        rows.left = arrow_stream.write_records(
            directory.segments, rows.left, rows.damage.take, control=rows.control, errors=rows.damage.errors,
            **rows.span)
    elif rows.control:
        raise click.UsageError("--control cannot be used with --arrow where records are decoded")
    else:
        arrow_stream.write_decoded((segment, decoded) for segment, _, decoded in rows.records(directory))
