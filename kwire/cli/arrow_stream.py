"""Rows to standard output as an Arrow IPC stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kwire.cli.terminal import not_to_terminal
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage import LogSegment, SideFile


def write_decoded(records: Iterable[tuple[LogSegment, Any]]) -> None:
    """Write (segment, InternalRecord) as the table "records" of kwire.storage.internal_batches()."""
    from kwire.storage.internal.internal_tables import arrow_batches, record_row, table_schema

    schema = table_schema("records")
    _write(schema, arrow_batches(schema, (record_row(segment, record) for segment, record in records)))


def write_records(
    segments: Sequence[LogSegment],
    pieces: Callable[[LogSegment, Sequence[str]], Iterator[tuple[Any, Sequence[int] | None]]],
) -> None:
    """Write records as they are, with the columns of to-parquet.

    pieces: gives RecordColumns of a segment with these fields, and the numbers of the rows to write, None: all.
    """
    from kwire.storage.tables.record_tables import FIELDS, Tables

    pa = _pyarrow()
    tables = Tables(segments)

    def batches() -> Iterator[Any]:
        for segment in segments:
            for columns, rows in pieces(segment, FIELDS):
                table = pa.table(columns)
                for batch in (table if rows is None else table.take(pa.array(rows, pa.int64()))).to_batches():
                    yield tables.labelled(segment, batch)

    _write(tables.schema, batches())


def write_side_files(files: Sequence[SideFile], entries: Callable[[SideFile], Iterator[tuple[Any, ...]]]) -> None:
    """Write files of one kind as one table: path, and the columns of the kind. entries: those of a file to write."""
    from kwire.storage.places.filesystem import shown

    pa = _pyarrow()
    rows = [(shown(file.path), *row) for file in files for row in entries(file)]
    names = ("path", *files[0].columns)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    types = [_type(pa, name) for name in names]
    arrays = [
        pa.array([_text(str(value)) if kind == pa.string() else value for value in column], kind)
        for column, kind in zip(columns, types, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(zip(names, types, strict=True))))
    _write(batch.schema, iter([batch]))


def _text(text: str) -> str:
    """A text as it is, or with escapes if UTF-8 cannot encode it: a name of a file, or a value with a surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return printable(text)
    return text


def _type(pa: Any, column: str) -> Any:
    if column in ("path", "topic", "topic_id", "name", "value"):
        return pa.string()
    return pa.timestamp("ms", "UTC") if column == "timestamp" else pa.int64()


def _pyarrow() -> Any:
    from kwire.storage.tables.record_tables import import_pyarrow

    return import_pyarrow("--arrow")


def _write(schema: Any, batches: Iterator[Any]) -> None:
    pa = _pyarrow()
    not_to_terminal("-", "--arrow")
    sys.stdout.flush()
    with pa.ipc.new_stream(sys.stdout.buffer, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
