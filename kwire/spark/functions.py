"""Record batches in RDDs and binary columns to rows: the functions for mapPartitions and mapInArrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from kwire.codec.records import BadBatch, read_batches
from kwire.defaults import MAX_BATCH_BYTES, RECORD_FIELDS
from kwire.errors import CorruptBatchError, LimitError
from kwire.spark.options import DECODING_MODES, one_of
from kwire.spark.payloads import located, payload_of, row_batches
from kwire.spark.schema import CORRUPT, check_fields, fields_schema, is_binary
from kwire.spark.worker import settle

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

OUTPUTS = ("tuple", "row", "arrow")
TIMESTAMP_TYPES = {"none": -1, "create": 0, "log_append": 1}
_KEPT_BYTES = 32 << 20  # of kept columns in one Arrow batch, about

# fields that are the same for all records of a batch
_OF_BATCH: dict[str, Callable[[Any], Any]] = {
    "timestamp_type": lambda batch: TIMESTAMP_TYPES[batch.timestamp_type],
    "producer_id": attrgetter("producer_id"),
    "producer_epoch": attrgetter("producer_epoch"),
    "partition_leader_epoch": attrgetter("partition_leader_epoch"),
    "batch_position": attrgetter("position"),
    "codec": attrgetter("codec"),
    "is_control": attrgetter("is_control"),
}


class RecordDecoder:
    """The callable that decode_records returns: takes the items of one RDD partition. It pickles."""

    def __init__(self, fields: Iterable[str], output: str, mode: str, control: bool, max_batch_bytes: int) -> None:
        self.fields = check_fields(fields)
        self.output = one_of("output", output, OUTPUTS)
        self.permissive = one_of("mode", mode, DECODING_MODES) == "PERMISSIVE"
        self.control = control
        self.max_batch_bytes = max_batch_bytes

    def __call__(self, items: Iterable[Any]) -> Iterator[Any]:
        """Decode the payloads of one partition, lazily."""
        settle()
        payloads = map(payload_of, items)
        if self.output == "arrow":
            return (batch for batch, _ in row_batches(payloads, self.fields, self.permissive, self.control,
                                                      self.max_batch_bytes))
        rows = self._tuples(payloads)
        if self.output == "tuple":
            return rows
        return map(_RowMaker((*self.fields, CORRUPT) if self.permissive else self.fields), rows)

    def _tuples(self, payloads: Iterator[Any]) -> Iterator[tuple[Any, ...]]:
        shared = [_OF_BATCH.get(name) for name in self.fields]
        values = [attrgetter(name) for name in self.fields]
        whole = attrgetter(*self.fields) if len(self.fields) > 1 and not any(shared) else None
        blank = (None,) * len(self.fields)
        for number, payload in enumerate(payloads):
            if payload is None:
                continue
            batches = read_batches(payload, errors="keep" if self.permissive else "raise",
                                         max_batch_bytes=self.max_batch_bytes)
            try:
                for batch in batches:
                    if isinstance(batch, BadBatch):
                        yield (*blank, str(located(batch.error, number)))
                    elif batch.is_control and not self.control:
                        continue
                    elif whole is not None and not self.permissive:
                        yield from map(whole, batch)
                    else:
                        parts = [repeat(of_batch(batch)) if of_batch else map(own, batch)
                                 for of_batch, own in zip(shared, values, strict=True)]
                        if self.permissive:
                            parts.append(repeat(None))
                        # what counts the rows comes first: last in zip, its end would take one value from the others;
                        # where no field is of the records these are decoded nevertheless: a header may lie
                        count = batch if all(shared) else range(len(batch))
                        yield from (row[1:] for row in zip(count, *parts, strict=False))
            except (CorruptBatchError, LimitError) as error:
                raise located(error, number) from None


class _RowMaker:
    def __init__(self, names: Sequence[str]) -> None:
        from pyspark.sql import Row

        self.make = Row(*names)

    def __call__(self, values: tuple[Any, ...]) -> Any:
        return self.make(*values)


def decode_records(
    fields: Iterable[str] = RECORD_FIELDS,
    output: str = "tuple",
    mode: str = "FAILFAST",
    *,
    control: bool = False,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> RecordDecoder:
    """Return a picklable callable for rdd.mapPartitions over record batches.

    An item of the RDD is bytes (or any buffer), or a row or tuple with one binary column; it holds any number of
    batches, as a fetch response or a segment does; a partial last batch is left out, None gives no rows.

    fields: names as in kwire.columns; output: "tuple" (values in the order of fields, timestamps int milliseconds),
    "row" (the same as pyspark Rows) or "arrow" (pyarrow.RecordBatches of about 10,000 rows, timestamps in
    microseconds, UTC); mode: "FAILFAST" raises CorruptBatchError or LimitError for a bad batch, "PERMISSIVE" gives one
    row for it, null except the reason in _corrupt_record, the last item; control: give control records too;
    max_batch_bytes: what one batch may decompress to. Raises ValueError for an unknown name.
    """
    return RecordDecoder(fields, output, mode, control, max_batch_bytes)


class _ColumnDecoder:
    """The function that records() gives to mapInArrow: record rows for a binary column, with the kept columns.

    columns: the names of those that it is given; it takes them by their places, as PySpark passes no names with dots.
    """

    def __init__(self, decoder: RecordDecoder, columns: list[str], payload: str, keep: tuple[str, ...]) -> None:
        self.decoder, self.columns, self.payload, self.keep = decoder, columns, payload, keep

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        settle()
        decoder = self.decoder
        for batch in batches:
            payloads = _buffers(batch.column(self.columns.index(self.payload)), self.payload)
            kept = [batch.column(self.columns.index(name)) for name in self.keep]
            repeats = _Repeats(kept)
            for rows, numbers in row_batches(payloads, decoder.fields, decoder.permissive, decoder.control,
                                             decoder.max_batch_bytes, numbered=bool(kept)):
                names = [*self.keep, *rows.schema.names]
                if numbers is None:
                    yield pa.RecordBatch.from_arrays(rows.columns, names=names) if names else rows
                    continue
                for start, stop in repeats.pieces(numbers):
                    arrays = [column.take(numbers.slice(start, stop - start)) for column in kept]
                    columns = rows.slice(start, stop - start).columns
                    yield pa.RecordBatch.from_arrays([*arrays, *columns], names=names)


class _Repeats:
    """The sizes of kept values, which are repeated for each record of their payload."""

    def __init__(self, kept: list[pa.Array]) -> None:
        self.kept = kept
        self.sizes: pa.Array | None = None  # of the values of each payload, when they are first needed

    def pieces(self, numbers: pa.Array) -> Iterator[tuple[int, int]]:
        """Yield the ranges of rows whose kept values are about _KEPT_BYTES, one row at least. numbers: of the payloads.

        A large value, or many records, would take gigabytes, or more than a column can hold.
        """
        import pyarrow.compute as pc

        rows, start, size = len(numbers), 0, 0
        if rows * sum(column.nbytes for column in self.kept) > _KEPT_BYTES:
            if self.sizes is None:
                self.sizes = reduce(pc.add, map(_sizes, self.kept))
            sizes = self.sizes.take(numbers)
            for row, more in enumerate(sizes.to_pylist() if pc.sum(sizes).as_py() > _KEPT_BYTES else ()):
                if size and size + more > _KEPT_BYTES:
                    yield start, row
                    start, size = row, 0
                size += more
        yield start, rows


def _sizes(column: pa.Array) -> pa.Array:
    """The bytes of each value of an Arrow column, about."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types, kind = pa.types, column.type
    if types.is_binary(kind) or types.is_string(kind) or types.is_large_binary(kind) or types.is_large_string(kind):
        return pc.fill_null(pc.binary_length(column), 0).cast(pa.int64())
    return pa.array([column.slice(at, 1).nbytes for at in range(len(column))], pa.int64())


def _buffers(column: Any, name: str) -> Iterator[Any]:
    """Buffers over the values of a column in any of Arrow's binary layouts; None for null."""
    if not is_binary(column.type):
        raise TypeError(f'column "{name}" has type {column.type}; record batches need a binary column')
    return (value.as_buffer() if value.is_valid else None for value in column)


def records(
    df: DataFrame,
    column: str,
    fields: Iterable[str] = RECORD_FIELDS,
    mode: str = "FAILFAST",
    keep: Iterable[str] = (),
    *,
    control: bool = False,
    max_batch_bytes: int = MAX_BATCH_BYTES,
) -> DataFrame:
    """Return a DataFrame with one row a record, for a DataFrame with record batches in a binary column.

    It works in batch queries and in Structured Streaming. column: its name; a null or an empty value gives no rows;
    fields: names as in kwire.columns, the columns of the result; keep: columns of df that are repeated for each
    record, before the fields; mode: as in decode_records; _corrupt_record is the last column, and the row of a bad
    batch has the kept columns. Raises ValueError for an unknown or duplicate name, TypeError for a column that is not
    binary.
    """
    from pyspark.sql.functions import col
    from pyspark.sql.types import BinaryType, StructType

    decoder = RecordDecoder(fields, "arrow", mode, control, max_batch_bytes)
    kept = (keep,) if isinstance(keep, str) else tuple(keep)
    schema = df.schema
    for name in (column, *kept):
        if name not in schema.names:
            raise ValueError(f'column "{name}" is not in the DataFrame; its columns are {", ".join(schema.names)}')
    if not isinstance(schema[column].dataType, BinaryType):
        raise TypeError(
            f'column "{column}" has type {schema[column].dataType.simpleString()}; record batches need a binary column'
        )
    result = fields_schema(decoder.fields, decoder.permissive)
    if len(set(kept)) < len(kept):
        raise ValueError(f"duplicate column in keep: {', '.join(kept)}")
    duplicates = set(kept) & set(result.names)
    if duplicates:
        raise ValueError(f"keep and fields both name {', '.join(sorted(duplicates))}; rename the DataFrame's column")
    shape = StructType([*(schema[name] for name in kept), *result.fields])
    columns = list(dict.fromkeys([column, *kept]))
    chosen = df.select(*(col("`" + name.replace("`", "``") + "`").alias(f"c{place}")
                         for place, name in enumerate(columns)))
    return chosen.mapInArrow(_ColumnDecoder(decoder, columns, column, kept), shape)
