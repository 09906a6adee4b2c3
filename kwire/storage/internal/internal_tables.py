"""Internal topics as Arrow tables: every record with its JSON, committed offsets, transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from kwire.codec.arguments import check_int
from kwire.codec.json import json_text
from kwire.defaults import BATCH_ROWS
from kwire.shared_iterator import shared, unshared
from kwire.storage.internal.internal_topics import (
    InternalRecord,
    committed_offset,
    internal_kind,
    internal_segments,
    read_internal_topic,
    transaction_row,
)
from kwire_c.printable import brief, storable

if TYPE_CHECKING:
    import pyarrow

    from kwire.storage.reading.directory import LogDirectory, Partition
    from kwire.storage.reading.read_options import InternalOptions
    from kwire.storage.reading.segment import LogSegment

_MOST_ROWS = (1 << 31) - 1
_MOST_TEXT = 16 << 20  # characters in one batch: the JSON of a group may have a MiB, and be compressed to a few bytes
_SIGNS_OF_AN_ITEM = 64  # of a list, as if it were text
_TABLES = {"records": None, "offsets": "group", "transactions": "transaction"}  # table -> the one kind it is of


@shared
def internal_batches(
    log: LogSegment | Partition | LogDirectory,
    table: Literal["records", "offsets", "transactions"] = "records",
    *,
    rows: int = BATCH_ROWS,
    **options: Unpack[InternalOptions],
) -> Iterator[pyarrow.RecordBatch]:
    """The internal topics of a log as pyarrow.RecordBatches of about `rows` rows each, fewer after 16 MiB of text.

    table: "records": topic, partition, offset, timestamp, type, version, key, value (JSON of their fields), error;
    "offsets": the fields of CommittedOffset, of __consumer_offsets; "transactions": those of TransactionRow, of
    __transaction_state. options: as read_internal_topic. Raises as it does; ValueError for another table; ImportError
    that names the extra if pyarrow is missing.
    """
    most = check_int(rows, "rows")  # read once: it may be an object of any class
    if not 0 < most <= _MOST_ROWS:
        raise ValueError(f"rows must be from 1 to {_MOST_ROWS}, not {brief(rows)}")
    schema = table_schema(table)

    def found() -> Iterator[tuple[Any, ...]]:
        for segment in internal_segments(log, options.get("kind")):
            if _TABLES[table] in (None, internal_kind(segment) if (kind := options.get("kind")) is None else kind):
                for record in unshared(read_internal_topic(segment, **options)):
                    row = _ROWS[table](segment, record)
                    if row is not None:
                        yield row

    yield from arrow_batches(schema, found(), most)


def arrow_batches(schema: Any, rows: Iterable[Sequence[Any]], most: int = BATCH_ROWS) -> Iterator[Any]:
    """Rows as pyarrow.RecordBatches of at most `most` rows, fewer after _MOST_TEXT."""
    import pyarrow as pa

    for held in _pieces(rows, most):
        arrays = []
        for field, column in zip(schema, zip(*held, strict=True), strict=True):
            values: Sequence[Any] = column
            if pa.types.is_string(field.type):
                values = [None if value is None else storable(value) for value in column]
            arrays.append(pa.array(values, field.type))
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _pieces(rows: Iterable[Sequence[Any]], most: int) -> Iterator[list[Sequence[Any]]]:
    """The rows in lists of at most `most`, fewer after _MOST_TEXT."""
    held: list[Sequence[Any]] = []
    text = 0
    for row in rows:
        held.append(row)
        for value in row:
            if isinstance(value, str):
                text += len(value)
            elif isinstance(value, list):
                text += _SIGNS_OF_AN_ITEM * len(value)
        if len(held) >= most or text >= _MOST_TEXT:
            yield held
            held, text = [], 0
    if held:
        yield held


def table_schema(table: str) -> Any:
    """The pyarrow.Schema of a table. Raises ValueError for an unknown one, ImportError."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise ImportError("Arrow tables need pyarrow: pip install 'kwire[arrow]'") from error
    time, text, long = pa.timestamp("ms", "UTC"), pa.string(), pa.int64()
    schemas = {
        "records": [
            ("topic", text), ("partition", pa.int32()), ("offset", long), ("timestamp", time), ("type", text),
            ("version", pa.int32()), ("key", text), ("value", text), ("error", text),
        ],
        "offsets": [
            ("group", text), ("topic", text), ("partition", pa.int32()), ("offset", long), ("leader_epoch", pa.int32()),
            ("metadata", text), ("commit_timestamp", time),
        ],
        "transactions": [
            ("transactional_id", text), ("producer_id", long), ("producer_epoch", pa.int16()), ("state", text),
            ("timeout_ms", pa.int32()),
            ("partitions", pa.list_(pa.struct([("topic", text), ("partition", pa.int32())]))),
        ],
    }  # fmt: skip
    if not isinstance(table, str) or table not in schemas:
        raise ValueError(f"table must be one of {', '.join(schemas)}, not {brief(table)}")
    return pa.schema(schemas[table])


def record_row(segment: LogSegment, record: InternalRecord) -> tuple[Any, ...]:
    """A row of the table "records"; of a record that cannot be decoded, key and value are null."""
    error, key, data = record.error, record.key_json(), record.data()
    return (
        segment.topic, segment.partition, record.offset, record.timestamp, record.type, record.version,
        None if key is None else json_text(key["data"]), None if data is None else json_text(data),
        None if error is None else str(error),
    )  # fmt: skip


_ROWS: dict[str, Callable[[LogSegment, InternalRecord], tuple[Any, ...] | None]] = {
    "records": record_row,
    "offsets": lambda _, record: committed_offset(record),
    "transactions": lambda _, record: transaction_row(record),
}

