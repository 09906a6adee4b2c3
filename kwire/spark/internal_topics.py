"""Kinds "metadata", "offsets" and "transactions" of the data source: records of internal topics decoded, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as spark

from kwire.codec.json import json_text
from kwire.spark.options import INTERNAL_KINDS
from kwire.spark.schema import CORRUPT, arrow_schema, chosen_schema, repeated
from kwire.storage.internal.internal_columns import KEY_FIELDS, VALUE_FIELDS, OffsetColumns, offset_columns
from kwire.storage.internal.internal_topics import (
    INTERNAL_TOPICS,
    InternalRecord,
    committed_offset,
    decode_parts,
    transaction_row,
)
from kwire.storage.places.filesystem import shown
from kwire_c.arrow import microseconds
from kwire_c.printable import printable, storable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kwire.spark.options import Options
    from kwire.storage import SegmentFile

_TOPIC_PARTITIONS = spark.ArrayType(spark.StructType([
    spark.StructField("topic", spark.StringType()), spark.StructField("partition", spark.IntegerType())]))

# where the record is in the internal topic, whose own columns have other meanings
_OF_THE_LOG: dict[str, spark.DataType] = {
    "log_partition": spark.IntegerType(),
    "log_offset": spark.LongType(),
    "log_timestamp": spark.TimestampType(),
    "source": spark.StringType(),
    CORRUPT: spark.StringType(),
}

# kind -> its columns; those from "source" or "log_partition" on are there if the user names them
COLUMNS: dict[str, dict[str, spark.DataType]] = {
    "metadata": {
        "offset": spark.LongType(),
        "timestamp": spark.TimestampType(),
        "type": spark.StringType(),
        "version": spark.IntegerType(),
        "record": spark.StringType(),
        "source": spark.StringType(),
        CORRUPT: spark.StringType(),
    },
    "offsets": {
        "group": spark.StringType(),
        "topic": spark.StringType(),
        "partition": spark.IntegerType(),
        "offset": spark.LongType(),
        "leader_epoch": spark.IntegerType(),
        "metadata": spark.StringType(),
        "commit_timestamp": spark.TimestampType(),
        **_OF_THE_LOG,
    },
    "transactions": {
        "transactional_id": spark.StringType(),
        "producer_id": spark.LongType(),
        "producer_epoch": spark.ShortType(),
        "state": spark.StringType(),
        "timeout_ms": spark.IntegerType(),
        "partitions": _TOPIC_PARTITIONS,
        **_OF_THE_LOG,
    },
}
_DEFAULT = {"metadata": 5, "offsets": 7, "transactions": 6}  # of the columns, so many

# the types of the records that a kind has rows of, as the first two bytes of their keys
_TYPES = {"offsets": (b"\0\0", b"\0\1"), "transactions": (b"\0\0",)}
_COMMITTED = (*KEY_FIELDS, *VALUE_FIELDS)
_MOST_MS = 2**63 // 1000 - 1  # that microseconds can hold


def internal_schema(kind: str, permissive: bool, columns: Sequence[str] | None = None) -> StructType:
    """Return the columns where the user's schema names none; columns: those of the option columns."""
    known = COLUMNS[kind]
    return chosen_schema(known, list(known)[: _DEFAULT[kind]] if columns is None else columns, permissive)


class InternalShaper:
    """Makes Arrow batches of the requested columns from pieces of an internal topic's segments.

    A record that cannot be decoded raises its KwireError in mode FAILFAST, with "REASON at FILE, offset N"; PERMISSIVE
    gives a row with _corrupt_record, DROPMALFORMED drops it. Kinds "offsets" and "transactions" look at the records of
    their own types only.
    """

    fields = ("offset", "timestamp", "key", "value")

    def __init__(self, options: Options, schema: StructType) -> None:
        self.schema = arrow_schema(schema)
        self.kind, self.mode = options.kind, options.mode
        self.topic_kind = INTERNAL_TOPICS[INTERNAL_KINDS[options.kind]]
        self.types = _TYPES.get(self.kind, ())
        self.of_the_log = [name for name in ("log_partition", "log_offset", "log_timestamp", "source")
                           if name in self.schema.names]
        self.with_json = "record" in self.schema.names
        self.constants: dict[str, Any] = {}
        self.path = ""

    def take(self, file: SegmentFile) -> None:
        """Set the segment that the rows from now on are of."""
        self.path = shown(file.path)
        self.constants = {"log_partition": file.partition, "source": storable(self.path)}

    def rows(self, columns: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one piece of a segment, as one Arrow batch if there are any."""
        batch = self._decoded(columns) if len(columns) else None
        if batch is not None and batch.num_rows:
            yield batch

    def _decoded(self, columns: Any) -> pa.RecordBatch:
        offsets, times = (memoryview(columns[name]).cast("B").cast("q") for name in ("offset", "timestamp"))
        keys, values = (pa.array(columns[name]).to_pylist() for name in ("key", "value"))
        if self.kind == "offsets":
            decoded = offset_columns(keys, values)
            if decoded is not None:
                return self._committed(decoded, offsets, times)
        rows = []
        for offset, time, key, value in zip(offsets, times, keys, values, strict=True):
            row = self._row(offset, time, key, value)
            if row is not None:
                if self.of_the_log:
                    row |= {"log_offset": offset, "log_timestamp": time, **self.constants}
                rows.append(row)
        return self._batch(rows)

    def _committed(self, decoded: OffsetColumns, offsets: memoryview, times: memoryview) -> pa.RecordBatch:
        """Rows of kind "offsets" from columns, all of which could be decoded."""
        count = len(decoded.rows)
        arrays = []
        for field in self.schema:
            name = field.name
            if name in _COMMITTED:
                array = decoded.column(name)
                if pa.types.is_timestamp(field.type):
                    array = _microseconds(array.to_pylist(), field.type) if array.null_count else pa.array(
                        microseconds(array.buffers()[1].slice(8 * array.offset, 8 * count)))
                arrays.append(array if array.type == field.type else array.cast(field.type))
            elif name == "log_offset":
                arrays.append(pa.array([offsets[row] for row in decoded.rows], field.type))
            elif name == "log_timestamp":
                arrays.append(_microseconds([times[row] for row in decoded.rows], field.type))
            else:
                arrays.append(repeated(self.constants.get(name), field.type, count))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def bad(self, reasons: list[tuple[str, int | None]]) -> pa.RecordBatch:
        """Return one row for each bad batch (reason, base offset): null except these and the constant columns."""
        return self._batch([
            {"offset" if self.kind == "metadata" else "log_offset": offset, CORRUPT: printable(text), **self.constants}
            for text, offset in reasons
        ])

    def _batch(self, rows: list[dict[str, Any]]) -> pa.RecordBatch:
        arrays = []
        for field in self.schema:
            values: list[Any] = [row.get(field.name) for row in rows]
            if pa.types.is_timestamp(field.type):
                arrays.append(_microseconds(values, field.type))
                continue
            if pa.types.is_string(field.type):
                values = [None if value is None else storable(value) for value in values]
            arrays.append(pa.array(values, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _row(self, offset: int, time: int, key: Any, value: Any) -> dict[str, Any] | None:
        """The row of a record, None if it gives none."""
        if self.types and key is not None and len(key) >= 2 and key[:2] not in self.types:
            return None
        record = decode_parts(self.topic_kind, offset, time, key, value)
        if record.error is not None:
            return self._undecodable(record)
        if self.kind == "offsets":
            commit = committed_offset(record)
            return None if commit is None else commit._asdict()
        if self.kind == "transactions":
            transaction = transaction_row(record)
            return None if transaction is None else transaction._asdict()
        row = {"offset": offset, "timestamp": time, "type": record.type, "version": record.version}
        if self.with_json:
            row["record"] = json_text(record.data())
        return row

    def _undecodable(self, record: InternalRecord) -> dict[str, Any] | None:
        error = record.error
        assert error is not None
        text = f"{error} at {self.path}, offset {record.offset}"
        if self.mode == "FAILFAST":
            error.args = (text, *error.args[1:])
            raise error
        if self.mode == "DROPMALFORMED":
            return None
        row: dict[str, Any] = {CORRUPT: printable(text)}
        if self.kind == "metadata":
            row |= {"offset": record.offset, "timestamp": record.timestamp, "type": record.type}
        return row


def _microseconds(times: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """Timestamps from milliseconds; null where microseconds cannot hold them."""
    return pa.array([None if time is None or abs(time) > _MOST_MS else time * 1000 for time in times], kind)
