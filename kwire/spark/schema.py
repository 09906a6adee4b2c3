"""The columns of kwire's record rows, in Spark's and in Arrow's types."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as spark

from kwire.codec.arguments import can_iterate
from kwire.spark.options import as_typed
from kwire_c.arrow import microseconds, widened
from kwire_c.printable import printable

if TYPE_CHECKING:
    import pyarrow as pa

CORRUPT = "_corrupt_record"

HEADERS = spark.ArrayType(
    spark.StructType([spark.StructField("key", spark.StringType()), spark.StructField("value", spark.BinaryType())])
)

# data source column -> (Spark type, the field of kwire.columns that it is made from; None for a constant)
SOURCE_COLUMNS: dict[str, tuple[spark.DataType, str | None]] = {
    "key": (spark.BinaryType(), "key"),
    "value": (spark.BinaryType(), "value"),
    "topic": (spark.StringType(), None),
    "partition": (spark.IntegerType(), None),
    "offset": (spark.LongType(), "offset"),
    "timestamp": (spark.TimestampType(), "timestamp"),
    "timestampType": (spark.IntegerType(), "timestamp_type"),
    "headers": (HEADERS, "headers"),
    "producer_id": (spark.LongType(), "producer_id"),
    "producer_epoch": (spark.ShortType(), "producer_epoch"),
    "sequence": (spark.IntegerType(), "sequence"),
    "leader_epoch": (spark.IntegerType(), "partition_leader_epoch"),
    "source": (spark.StringType(), None),
    CORRUPT: (spark.StringType(), None),
}
DEFAULT_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

# field of kwire.columns -> Spark type, for the functions over binary columns
FIELD_TYPES: dict[str, spark.DataType] = {
    "offset": spark.LongType(),
    "timestamp": spark.TimestampType(),
    "timestamp_type": spark.ByteType(),
    "key": spark.BinaryType(),
    "value": spark.BinaryType(),
    "headers": HEADERS,
    "sequence": spark.IntegerType(),
    "producer_id": spark.LongType(),
    "producer_epoch": spark.ShortType(),
    "partition_leader_epoch": spark.IntegerType(),
    "batch_position": spark.LongType(),
    "codec": spark.StringType(),
    "is_control": spark.BooleanType(),
}


def source_schema(
    include_headers: bool, permissive: bool, columns: Sequence[str] | None = None
) -> spark.StructType:
    """Return the data source's schema if the user gives none; columns: those of the option columns."""
    default = [*DEFAULT_COLUMNS, *(["headers"] if include_headers else [])]
    kinds = {name: kind for name, (kind, _) in SOURCE_COLUMNS.items()}
    return chosen_schema(kinds, default if columns is None else columns, permissive)


def chosen_schema(kinds: Mapping[str, spark.DataType], columns: Sequence[str], permissive: bool) -> spark.StructType:
    """Return the schema of columns by their names, in any case; in mode PERMISSIVE with _corrupt_record.

    kinds: all columns of the source. Raises ValueError for an unknown column, and for one that is named twice.
    """
    written = {name.lower(): name for name in kinds}
    names = []
    for column in columns:
        name = written.get(column.lower())
        if name is None:
            raise ValueError(unknown_column(column, kinds))
        if name in names:
            raise ValueError(f'column "{name}" is named twice in {", ".join(columns)}')
        names.append(name)
    if permissive and CORRUPT not in names:
        names.append(CORRUPT)
    return spark.StructType([spark.StructField(name, kinds[name]) for name in names])


def unknown_column(name: str, known: Iterable[str]) -> str:
    """Return the text of an error: a column that a source does not have."""
    return f'unknown column "{as_typed(name)}"; the columns are {", ".join(known)}'


def check_columns(schema: spark.StructType, columns: Sequence[str] | None) -> None:
    """Raise ValueError for a user's schema that is not what the option columns asks for."""
    if columns is None:
        return
    asked, given = ({name.lower() for name in names} - {CORRUPT} for names in (columns, schema.names))
    if asked != given:
        raise ValueError(
            f'option columns is "{", ".join(columns)}", but the schema has {", ".join(schema.names)}: give one of them'
        )


def check_source_schema(schema: spark.StructType) -> None:
    """Raise ValueError for a user's schema with a column, or a type, that the source does not have."""
    check_types(schema, {name: kind for name, (kind, _) in SOURCE_COLUMNS.items()})


def check_types(schema: spark.StructType, columns: Mapping[str, spark.DataType]) -> None:
    """Raise ValueError for a user's schema without columns, or with one, or a type, that is not among columns.

    And for NOT NULL, with which Spark takes a null for a value: any column may be null, at least in mode PERMISSIVE.
    """
    if not schema.fields:
        raise ValueError(f"the schema has no columns: expected one at least of {', '.join(columns)}")
    for number, field in enumerate(schema.fields):
        if field.name in schema.names[:number]:  # Spark's Arrow reader fails at it
            raise ValueError(f'column "{as_typed(field.name)}" is twice in the schema')
        known = columns.get(field.name)
        if known is None:
            raise ValueError(unknown_column(field.name, columns))
        if field.dataType.simpleString() != known.simpleString():
            raise ValueError(
                f'column "{field.name}" has type {known.simpleString()}, not {field.dataType.simpleString()}'
            )
        if not _is_nullable(field):
            raise ValueError(f'column "{as_typed(field.name)}" may have nulls: leave NOT NULL out of the schema')


def _is_nullable(field: spark.StructField) -> bool:
    """Return whether a field of a schema may be null, and all within it."""
    kind = field.dataType
    if isinstance(kind, spark.ArrayType):
        return field.nullable and _is_nullable(spark.StructField("", kind.elementType, kind.containsNull))
    return field.nullable and (not isinstance(kind, spark.StructType) or all(map(_is_nullable, kind.fields)))


def fields_schema(fields: Iterable[str], permissive: bool) -> spark.StructType:
    """Return the Spark schema of fields of kwire.columns, with _corrupt_record at the end when permissive."""
    structs = [spark.StructField(name, FIELD_TYPES[name]) for name in fields]
    if permissive:
        structs.append(spark.StructField(CORRUPT, spark.StringType()))
    return spark.StructType(structs)


def check_fields(fields: Iterable[str]) -> tuple[str, ...]:
    """Return fields as a tuple. Raises ValueError for an unknown or duplicate one."""
    if isinstance(fields, str):
        raise ValueError(f'fields must be a list of names, not "{printable(fields)}"')
    if not can_iterate(fields):
        raise TypeError(f"fields must be a list of names, not {type(fields).__name__}")
    names = tuple(fields)
    for name in names:
        if not isinstance(name, str) or name not in FIELD_TYPES:
            raise ValueError(f'unknown field "{printable(str(name))}"; the fields are {", ".join(FIELD_TYPES)}')
    if len(set(names)) < len(names):
        raise ValueError(f"duplicate field in {', '.join(names)}")
    return names


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """Return the exact Arrow schema that Spark expects for a schema (timestamps in microseconds, UTC)."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)


def as_spark_array(column: Any, kind: pa.DataType) -> pa.Array:
    """Make a column of kwire.columns an Arrow array of the type that Spark expects.

    Timestamps that microseconds cannot hold become null.
    """
    import pyarrow as pa

    # pyarrow's own cast would import pyarrow.compute, which costs each new worker more time than the decoding
    if pa.types.is_timestamp(kind):
        column = microseconds(column)
    elif column.name == "timestamp_type" and pa.types.is_int32(kind):
        column = widened(column)
    values = pa.array(column)
    return values if values.type == kind else values.cast(kind)


def repeated(value: str | int | None, kind: pa.DataType, count: int) -> pa.Array:
    """Return an Arrow array that repeats a text, an int32 or null.

    Not by pyarrow.scalar: it imports pandas, which costs each new worker half a second.
    """
    import pyarrow as pa

    if value is None:
        return pa.nulls(count, kind)
    if isinstance(value, int):
        return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(array("i", [value]) * count)])
    text = value.encode()
    ends = array("i", range(0, (count + 1) * len(text), len(text))) if text else array("i", [0]) * (count + 1)
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(ends), pa.py_buffer(text * count)])


def without_empty_lists(array: pa.Array) -> pa.Array:
    """Make empty headers null, as Spark's Kafka source has them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    empty = pc.equal(pc.list_value_length(array), 0)
    return pa.ListArray.from_arrays(array.offsets, array.values, type=array.type, mask=empty)


def is_binary(kind: pa.DataType) -> bool:
    """Is an Arrow type one of the binary ones?"""
    import pyarrow as pa

    types = pa.types
    view = getattr(types, "is_binary_view", lambda _: False)
    return any(is_kind(kind) for is_kind in (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, view))
