"""Messages and frames in RDDs and binary columns to JSON, rows and struct columns."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql import types as spark

from kwire import schema
from kwire.codec.frames import Response, decode_request, decode_request_header, decode_response
from kwire.codec.json import to_json
from kwire.codec.message_columns import columns_of
from kwire.codec.messages import decode
from kwire.errors import KwireError
from kwire.spark.options import DECODING_MODES, one_of
from kwire.spark.payloads import payload_of
from kwire.spark.schema import CORRUPT

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
    """The error with a text that says which payload of the partition."""
    error.args = (f"payload {number}: {error}",)
    return error


class MessageDecoder:
    """What decode_messages returns: call it with the items of one RDD partition. It pickles."""

    def __init__(self, message: str, version: int, output: str, mode: str, lenient: bool) -> None:
        facts = schema.message(message)
        self.message, self.version, self.lenient = facts.name, facts.check(version), lenient
        self.output = one_of("output", output.lower(), ("json", "row"))
        self.permissive = one_of("mode", mode.upper(), DECODING_MODES) == "PERMISSIVE"

    def __call__(self, items: Iterable[Any]) -> Iterator[Any]:
        """Decode the payloads of one partition, lazily."""
        made = self._json if self.output == "json" else _RowMaker(self.message, self.version)
        blank = None if self.output == "json" else made(None)
        for number, item in enumerate(items):
            payload = payload_of(item)
            if payload is None:
                continue
            try:
                value = made(decode(self.message, self.version, payload, lenient=self.lenient))
            except KwireError as error:
                if not self.permissive:
                    raise _located(error, number) from None
                yield self._marked(blank, f"payload {number}: {error}")
                continue
            yield self._marked(value, None) if self.permissive else value

    def _json(self, message: Any) -> str:
        return json.dumps(to_json(message, self.version), ensure_ascii=False)

    def _marked(self, value: Any, reason: str | None) -> Any:
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
            one = self._of_struct(field.fields)
        elif field.element == "uuid":
            one = _uuid_text
        else:
            one = list if field.is_array else _same
            return lambda value: None if value is None else one(value)
        if field.is_array:
            return lambda value: None if value is None else [one(item) for item in value]
        return lambda value: None if value is None else one(value)


def _same(value: Any) -> Any:
    return value


def _uuid_text(value: UUID) -> str:
    return urlsafe_b64encode(value.bytes)[:22].decode()


def decode_messages(
    message: str, version: int, output: str = "json", mode: str = "FAILFAST", *, lenient: bool = False
) -> MessageDecoder:
    """Return a picklable callable for rdd.mapPartitions over payloads of one message each.

    An item of the RDD is bytes (or any buffer), or a row or tuple with one binary column; None gives nothing.
    output: "json" (str, as to_json) or "row" (pyspark Rows of the version's fields); mode: "FAILFAST" raises
    DecodeError with the number of the payload, "PERMISSIVE" gives (json, reason) tuples, or rows with _corrupt_record
    last: one of the two is null. Raises UnsupportedVersionError, ValueError for an unknown name.
    """
    return MessageDecoder(message, version, output, mode, lenient)


class FrameDecoder:
    """What decode_frames returns: call it with the items of one RDD partition. It pickles."""

    def __init__(self, kind: str, mode: str, api: int | str | None, version: int | None, lenient: bool) -> None:
        self.kind = one_of("kind", kind.lower(), ("request", "response"))
        self.permissive = one_of("mode", mode.upper(), DECODING_MODES) == "PERMISSIVE"
        if (api is None) != (version is None) or (api is not None and kind == "request"):
            raise ValueError("api and version go together, and with responses")
        self.api, self.version, self.lenient = api, version, lenient

    def __call__(self, items: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Decode the frames of one partition, lazily."""
        one = self._request if self.kind == "request" else self._response if self.api is None else self._answer
        for number, item in enumerate(items):
            if item is None:
                continue
            try:
                row = one(item)
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
        seen = decode_request(payload, lenient=self.lenient)
        value = json.dumps(to_json(seen.message, seen.version), ensure_ascii=False)
        return seen.api_key, seen.version, seen.correlation_id, seen.client_id, value

    def _answer(self, item: Any) -> tuple[Any, ...] | None:
        payload = payload_of(item)
        if payload is None:
            return None
        seen = decode_response(payload, api=self.api, version=self.version, lenient=self.lenient)
        return self._told(seen, None)

    def _response(self, item: Any) -> tuple[Any, ...] | None:
        if not isinstance(item, tuple) or len(item) != 2:
            raise TypeError("a pair is needed: the response frame and the header of its request")
        frame, head = (payload_of(part) if part is not None else None for part in item)
        if frame is None or head is None:
            return None
        header = decode_request_header(head)
        return self._told(decode_response(frame, header, lenient=self.lenient), header.client_id)

    def _told(self, seen: Response, client_id: str | None) -> tuple[Any, ...]:
        value = json.dumps(to_json(seen.message, seen.version), ensure_ascii=False)
        return seen.api_key, seen.version, seen.correlation_id, client_id, value


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
    and version, where client_id is None. mode: "FAILFAST" raises, "PERMISSIVE" adds the reason as the last item, with
    null before it where a frame is bad. Raises ValueError for an unknown name.
    """
    return FrameDecoder(kind, mode, api, version, lenient)


def from_wire(
    column: Column | str, message: str, version: int, mode: str = "FAILFAST", *, lenient: bool = False
) -> Column:
    """Return a struct Column with the messages in a binary column: the fields of that version in snake_case.

    Null gives null. uuid is a string as in JSON, uint16 int, uint32 long, int8 tinyint, records binary; unknown tags
    are left out. mode: "FAILFAST" fails the job with the reason, "PERMISSIVE" gives a null struct for a bad payload.
    Raises UnsupportedVersionError, ValueError for an unknown name.
    """

    facts = schema.message(message)
    permissive = one_of("mode", mode.upper(), DECODING_MODES) == "PERMISSIVE"
    return _struct_column(column, facts.name, facts.check(version), permissive, lenient)


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

    def __call__(self, payloads: pa.Array) -> pa.Array:
        """A struct a payload."""
        there = [(at, value.as_buffer()) for at, value in enumerate(payloads) if value.is_valid]
        columns = columns_of(
            self.message, self.version, [data for _, data in there], lenient=self.lenient, errors="keep"
        )
        if columns.bad and not self.permissive:
            row = columns.bad[0]
            raise KwireError(f"row {there[row.number][0]} of its Arrow batch: {row.error}")
        bad = {row.number for row in columns.bad}
        rows: list[int | None] = [None] * len(payloads)
        number = 0
        for which, (at, _) in enumerate(there):
            if which not in bad:
                rows[at] = number
                number += 1
        return _as_spark(pa.array(columns["message"])).take(pa.array(rows, pa.int64()))


def _struct_column(column: Any, message: str, version: int, permissive: bool, lenient: bool) -> Column:
    """The struct Column of a binary column: by arrow_udf where Spark has it, else by pandas_udf."""
    from pyspark.sql import functions

    kind = _spark_type(pa.array(columns_of(message, version, [])["message"]).type)
    reader = StructReader(message, version, permissive, lenient)
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
