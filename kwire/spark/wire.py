"""The Column function behind from_wire: binary columns to struct columns in Spark's Arrow types."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, functions
from pyspark.sql import types as spark

import kwire

_UUID = pa.binary(16)
_SPARK = {
    pa.bool_(): spark.BooleanType(), pa.int8(): spark.ByteType(), pa.int16(): spark.ShortType(),
    pa.uint16(): spark.IntegerType(), pa.int32(): spark.IntegerType(), pa.uint32(): spark.LongType(),
    pa.int64(): spark.LongType(), pa.float64(): spark.DoubleType(), pa.string(): spark.StringType(),
    pa.binary(): spark.BinaryType(), _UUID: spark.StringType(),
}
_WIDENED = {pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}


def spark_type(kind: pa.DataType) -> spark.DataType:
    """Spark's type for a column of kwire.columns_of."""
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return spark.StructType([spark.StructField(field.name, spark_type(field.type)) for field in fields])
    if pa.types.is_list(kind):
        return spark.ArrayType(spark_type(kind.value_type))
    return _SPARK[kind]


def as_spark(array: pa.Array) -> pa.Array:
    """The array in Spark's types: uuids as text, unsigned numbers widened."""
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [as_spark(array.field(at)) for at in range(kind.num_fields)]
        names = [kind.field(at).name for at in range(kind.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(parts, names=names, mask=mask)
    if pa.types.is_list(kind):
        values = as_spark(array.values)
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, values, mask=mask)
    if kind == _UUID:
        return pa.array(
            [None if value is None else urlsafe_b64encode(value)[:22].decode() for value in array.to_pylist()],
            pa.string(),
        )
    return array.cast(_WIDENED[kind]) if kind in _WIDENED else array


class WireReader:
    """Payloads of one message and version to a struct array; null and (permissive) bad ones are null. It pickles."""

    def __init__(self, message: str, version: int, permissive: bool, lenient: bool) -> None:
        self.message, self.version, self.permissive, self.lenient = message, version, permissive, lenient

    def __call__(self, payloads: pa.Array) -> pa.Array:
        """A struct a payload."""
        there = [(at, value.as_buffer()) for at, value in enumerate(payloads) if value.is_valid]
        columns = kwire.columns_of(
            self.message, self.version, [data for _, data in there], lenient=self.lenient, errors="keep"
        )
        if columns.bad and not self.permissive:
            row = columns.bad[0]
            raise kwire.KwireError(f"row {there[row.number][0]} of its Arrow batch: {row.error}")
        bad = {row.number for row in columns.bad}
        rows: list[int | None] = [None] * len(payloads)
        number = 0
        for which, (at, _) in enumerate(there):
            if which not in bad:
                rows[at] = number
                number += 1
        return as_spark(pa.array(columns["message"])).take(pa.array(rows, pa.int64()))


def struct_column(column: Any, message: str, version: int, permissive: bool, lenient: bool) -> Column:
    """The struct Column of a binary column: by arrow_udf where Spark has it, else by pandas_udf."""
    kind = spark_type(pa.array(kwire.columns_of(message, version, [])["message"]).type)
    reader = WireReader(message, version, permissive, lenient)
    chosen = functions.col(column) if isinstance(column, str) else column
    if hasattr(functions, "arrow_udf"):

        def read(payloads: pa.Array) -> pa.Array:
            return reader(payloads)

        by_arrow: Column = functions.arrow_udf(read, kind)(chosen)
        return by_arrow

    import pandas as pd

    def read_series(payloads: Any) -> Any:
        # a frame cannot say that a whole struct is null, a list of one struct can
        rows = reader(pa.array(payloads, pa.binary())).to_pylist()
        return pd.Series([None if row is None else [row] for row in rows])

    from pyspark.sql.pandas import functions as pandas_functions

    make: Any = pandas_functions.pandas_udf
    read_all = make(read_series, spark.ArrayType(kind), pandas_functions.PandasUDFType.SCALAR)
    by_pandas: Column = read_all(chosen).getItem(0)
    return by_pandas
