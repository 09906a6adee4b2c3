"""Messages and frames in RDDs and binary columns to JSON, rows and struct columns."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as spark

from kwire import schema
from kwire.codec.frames import Response, decode_request, decode_request_header, decode_response
from kwire.codec.json import message_json
from kwire.codec.message_columns import columns_of
from kwire.codec.messages import decode
from kwire.errors import KwireError
from kwire.spark.options import DECODING_MODES, one_of
from kwire.spark.payloads import payload_of
from kwire.spark.schema import CORRUPT, is_binary
from kwire.storage.side_files.uuids import uuid_text

if TYPE_CHECKING:
    from pyspark.sql import Column

_UUID = pa.binary(16)
_SPARK = {
    pa.bool_(): spark.BooleanType(), pa.int8(): spark.ByteType(), pa.int16(): spark.ShortType(),
    pa.uint16(): spark.IntegerType(), pa.int32(): spark.IntegerType(), pa.uint32(): spark.LongType(),
    pa.int64(): spark.LongType(), pa.float64(): spark.DoubleType(), pa.string(): spark.StringType(),
    pa.binary(): spark.BinaryType(), _UUID: spark.StringType(),
}
_WIDENED = {pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}


def _located(error: KwireError, number: int) -> KwireError:
    """The error with the number of the payload in its text."""
    error.args = (f"payload {number}: {error}",)
    return error


class MessageDecoder:
    """The callable that decode_messages returns: takes the items of one RDD partition. It pickles."""

    def __init__(self, message: str, version: int, output: str, mode: str, lenient: bool) -> None:
        definition = schema.message(message)
        self.message, self.version, self.lenient = definition.name, definition.check(version), lenient
        self.output = one_of("output", output, ("json", "row"))
        self.permissive = one_of("mode", mode, DECODING_MODES) == "PERMISSIVE"

    def __call__(self, items: Iterable[Any]) -> Iterator[Any]:
        """Decode the payloads of one partition, lazily."""
        convert = self._json if self.output == "json" else _RowMaker(self.message, self.version)
        blank = None if self.output == "json" else convert(None)
        for number, item in enumerate(items):
            payload = payload_of(item)
            if payload is None:
                continue
            try:
                value = convert(decode(self.message, self.version, payload, lenient=self.lenient))
            except KwireError as error:
                if not self.permissive:
                    raise _located(error, number) from None
                yield self._with_reason(blank, f"payload {number}: {error}")
                continue
            yield self._with_reason(value, None) if self.permissive else value

    def _json(self, message: Any) -> str:
        return message_json(message, self.version)

    def _with_reason(self, value: Any, reason: str | None) -> Any:
        if self.output == "json":
            return value, reason
        from pyspark.sql import Row

        return Row(*value.__fields__, CORRUPT)(*value, reason)


class _RowMaker:
    """Messages of one version as pyspark Rows: snake_case names, uuids as in JSON, unknown tags left out."""

    def __init__(self, message: str, version: int) -> None:
        self.version = version
        self.make = self._of_struct(schema.message(message).fields)

    def __call__(self, value: Any) -> Any:
        return self.make(value)

    def _of_struct(self, fields: tuple[schema.Field, ...]) -> Callable[[Any], Any]:
        from pyspark.sql import Row

        chosen = [field for field in fields if self.version in field.versions]
        row = Row(*[field.snake_name for field in chosen])
        parts = [(field.snake_name, self._of_field(field)) for field in chosen]

        def made(value: Any) -> Any:
            return row(*[None if value is None else part(getattr(value, name)) for name, part in parts])

        return made

    def _of_field(self, field: schema.Field) -> Callable[[Any], Any]:
        if field.struct:
            convert = self._of_struct(field.fields)
        elif field.element == "uuid":
            convert = uuid_text
        else:
            convert = list if field.is_array else _same
            return lambda value: None if value is None else convert(value)
        if field.is_array:
            return lambda value: None if value is None else [convert(item) for item in value]
        return lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value


def decode_messages(
    message: str, version: int, output: str = "json", mode: str = "FAILFAST", *, lenient: bool = False
) -> MessageDecoder:
    """Return a picklable callable for rdd.mapPartitions over payloads of one message each.

    An item of the RDD is bytes (or any buffer), or a row or tuple with one binary column; None gives no row.
    output: "json" (str, as to_json) or "row" (pyspark Rows of the version's fields); mode: "FAILFAST" raises
    DecodeError with the number of the payload, "PERMISSIVE" gives (json, reason) tuples with None for one of the two,
    or rows with _corrupt_record last. Raises UnsupportedVersionError for an unknown message or version, ValueError for
    an unknown output or mode.
    """
    return MessageDecoder(message, version, output, mode, lenient)


class FrameDecoder:
    """The callable that decode_frames returns: takes the items of one RDD partition. It pickles."""

    def __init__(self, kind: str, mode: str, api: int | str | None, version: int | None, lenient: bool) -> None:
        self.kind = one_of("kind", kind, ("request", "response"))
        self.permissive = one_of("mode", mode, DECODING_MODES) == "PERMISSIVE"
        if (api is None) != (version is None) or (api is not None and kind == "request"):
            raise ValueError('api and version must be given together, and only with kind="response"')
        self.api, self.version, self.lenient = api, version, lenient

    def __call__(self, items: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Decode the frames of one partition, lazily."""
        row_of = self._request if self.kind == "request" else self._pair if self.api is None else self._response
        for number, item in enumerate(items):
            if item is None:
                continue
            try:
                row = row_of(item)
            except KwireError as error:
                if not self.permissive:
                    raise _located(error, number) from None
                yield (None, None, None, None, None, f"payload {number}: {error}")
                continue
            if row is not None:
                yield (*row, None) if self.permissive else row

    def _request(self, item: Any) -> tuple[Any, ...] | None:
        payload = payload_of(item)
        if payload is None:
            return None
        request = decode_request(payload, lenient=self.lenient)
        value = message_json(request.message, request.version)
        return request.api_key, request.version, request.correlation_id, request.client_id, value

    def _response(self, item: Any) -> tuple[Any, ...] | None:
        payload = payload_of(item)
        if payload is None:
            return None
        response = decode_response(payload, api=self.api, version=self.version, lenient=self.lenient)
        return self._row(response, None)

    def _pair(self, item: Any) -> tuple[Any, ...] | None:
        if not isinstance(item, tuple) or len(item) != 2:
            raise TypeError("expected a pair (response frame, header of its request)")
        frame, head = (payload_of(part) if part is not None else None for part in item)
        if frame is None or head is None:
            return None
        header = decode_request_header(head)
        return self._row(decode_response(frame, header, lenient=self.lenient), header.client_id)

    def _row(self, response: Response, client_id: str | None) -> tuple[Any, ...]:
        value = message_json(response.message, response.version)
        return response.api_key, response.version, response.correlation_id, client_id, value


def decode_frames(
    kind: str = "request",
    mode: str = "FAILFAST",
    *,
    api: int | str | None = None,
    version: int | None = None,
    lenient: bool = False,
) -> FrameDecoder:
    """Return a picklable callable for rdd.mapPartitions over frames (header and body, without the 4-byte size).

    It gives tuples (api_key, version, correlation_id, client_id, json). kind: "request" takes frames; "response" takes
    pairs (response frame, bytes of the request's header or its whole frame), or frames alone with api (key or name)
    and version: client_id is then None. mode: "FAILFAST" raises KwireError for a bad frame, "PERMISSIVE" adds the
    reason as the last item, after None for all others. Raises ValueError for an unknown kind or mode.
    """
    return FrameDecoder(kind, mode, api, version, lenient)


def from_wire(
    column: Column | str, message: str, version: int, mode: str = "FAILFAST", *, lenient: bool = False
) -> Column:
    """Return a struct Column with the messages in a binary column: the fields of that version in snake_case.

    Null gives null. uuid is a string as in JSON, uint16 int, uint32 long, int8 tinyint, records binary; unknown tags
    are left out. mode: "FAILFAST" fails the job with the reason, "PERMISSIVE" gives a null struct for a bad payload.
    Raises UnsupportedVersionError for an unknown message or version, ValueError for an unknown mode.
    """

    definition = schema.message(message)
    permissive = one_of("mode", mode, DECODING_MODES) == "PERMISSIVE"
    return _struct_column(column, definition.name, definition.check(version), permissive, lenient)


def _spark_type(kind: pa.DataType) -> spark.DataType:
    """Spark's type for a column of columns_of."""
    if pa.types.is_struct(kind):
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return spark.StructType([spark.StructField(field.name, _spark_type(field.type)) for field in fields])
    if pa.types.is_list(kind):
        return spark.ArrayType(_spark_type(kind.value_type))
    return _SPARK[kind]


def _as_spark(array: pa.Array) -> pa.Array:
    """The array in Spark's types: uuids as text, unsigned numbers widened."""
    kind = array.type
    if pa.types.is_struct(kind):
        if not kind.num_fields:  # from_arrays would make it empty
            return array
        parts = [_as_spark(array.field(at)) for at in range(kind.num_fields)]
        names = [kind.field(at).name for at in range(kind.num_fields)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(parts, names=names, mask=mask)
    if pa.types.is_list(kind):
        values = _as_spark(array.values)
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, values, mask=mask)
    if kind == _UUID:
        return pa.array(
            [None if value is None else urlsafe_b64encode(value)[:22].decode() for value in array.to_pylist()],
            pa.string(),
        )
    return array.cast(_WIDENED[kind]) if kind in _WIDENED else array


class StructReader:
    """Payloads of one message and version to a struct array; null and (permissive) bad ones are null. It pickles."""

    def __init__(self, message: str, version: int, permissive: bool, lenient: bool) -> None:
        self.message, self.version, self.permissive, self.lenient = message, version, permissive, lenient

    @staticmethod
    def _payloads(column: pa.Array) -> Iterable[Any]:
        if pa.types.is_null(column.type):
            return [None] * len(column)
        if not is_binary(column.type):
            raise TypeError(f"from_wire: the column has type {column.type}; messages need a binary column")
        return (value.as_buffer() if value.is_valid else None for value in column)

    def __call__(self, payloads: pa.Array) -> pa.Array:
        """One struct for each payload."""
        present = [(at, data) for at, data in enumerate(self._payloads(payloads)) if data is not None]
        columns = columns_of(
            self.message, self.version, [data for _, data in present], lenient=self.lenient, errors="keep"
        )
        if columns.bad and not self.permissive:
            row = columns.bad[0]
            raise KwireError(f"row {present[row.number][0]} of the Arrow batch: {row.error}")
        bad = {row.number for row in columns.bad}
        rows: list[int | None] = [None] * len(payloads)
        number = 0
        for index, (at, _) in enumerate(present):
            if index not in bad:
                rows[at] = number
                number += 1
        return _as_spark(pa.array(columns["message"])).take(pa.array(rows, pa.int64()))


def _struct_column(column: Any, message: str, version: int, permissive: bool, lenient: bool) -> Column:
    """The struct Column of a binary column: by arrow_udf where Spark has it, else by pandas_udf."""
    from pyspark.sql import functions

    kind = _spark_type(pa.array(columns_of(message, version, [])["message"]).type)
    reader = StructReader(message, version, permissive, lenient)
    payload = functions.col(column) if isinstance(column, str) else column
    if hasattr(functions, "arrow_udf"):

        def read(payloads: pa.Array) -> pa.Array:
            return reader(payloads)

        by_arrow: Column = functions.arrow_udf(read, kind)(payload)
        return by_arrow

    import pandas as pd

    def read_series(payloads: Any) -> Any:
        # a pandas DataFrame cannot hold a null struct; a list of one struct can be null
        rows = reader(pa.array(payloads, pa.binary())).to_pylist()
        return pd.Series([None if row is None else [row] for row in rows])

    from pyspark.sql.pandas import functions as pandas_functions

    make: Any = pandas_functions.pandas_udf
    read_all = make(read_series, spark.ArrayType(kind), pandas_functions.PandasUDFType.SCALAR)
    by_pandas: Column = read_all(payload).getItem(0)
    return by_pandas
