"""Many small (or few large) buffers of record batches as Arrow batches of about 10,000 rows."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from operator import length_hint
from struct import Struct
from typing import Any

import pyarrow as pa

from kwire.codec import record_columns
from kwire.codec.records import BadBatch, read_batches
from kwire.defaults import BATCH_ROWS
from kwire.errors import CorruptBatchError, KwireError, LimitError
from kwire.spark.schema import arrow_schema, as_spark_array, fields_schema
from kwire_c.record_batch import CODEC_MASK, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD

# a group ends at this many bytes, and reading it after so many decompressed ones: large values and high compression
# stay small in memory
GROUP_BYTES = 8 << 20
GROUP_PACKED_BYTES = 512 << 10
_fields = Struct(">8xi4xb4xh34xi").unpack_from  # of a batch of magic 2: length, magic, attributes, count
BYTES_A_LEGACY_ROW = 100  # estimate: a compressed wrapper does not have its record count


def payload_of(item: Any) -> Any:
    """Return the buffer in an item of an RDD: itself, or the only column of a row. Raises TypeError."""
    if isinstance(item, tuple):
        if len(item) != 1:
            raise TypeError(f"expected a row with one binary column, found {len(item)} columns")
        item = item[0]
    if item is None or isinstance(item, (bytes, bytearray, memoryview)):
        return item
    try:
        return memoryview(item)
    except TypeError:
        raise TypeError(f"expected record batches as bytes, found {type(item).__name__}") from None


def located(error: Any, number: int, shift: int = 0) -> Any:
    """Return error with the number of the payload and the place in it in its text; shift: added to the byte."""
    corrupt = isinstance(error, CorruptBatchError)
    position = (error.position if corrupt else error.offset) + shift
    place = f"payload {number}, {f'offset {error.offset}, ' if corrupt else ''}byte {position}"
    if corrupt:
        error.position = position
    else:
        error.offset = position
    error.args = (f"{error.reason} at {place}",)
    return error


class _Piece:
    """Whole batches of one payload. number: of the payload in the partition; shift: their first byte in it."""

    __slots__ = ("data", "number", "shift")

    def __init__(self, number: int, shift: int, data: memoryview | bytes) -> None:
        self.number, self.shift, self.data = number, shift, data


def _groups(payloads: Iterable[Any]) -> Iterator[list[_Piece]]:
    """Pieces for about 10,000 rows at a time, split between batches; after a bad header the payload is not split."""
    group: list[_Piece] = []
    room = 1.0
    for number, payload in enumerate(payloads):
        if payload is None:
            continue
        if type(payload) is bytes and len(payload) >= RECORD_BATCH_OVERHEAD:
            length, magic, attributes, count = _fields(payload)
            if length + LOG_OVERHEAD == len(payload) and magic == 2:  # one batch, as most payloads: no walk over it
                group.append(_Piece(number, 0, payload))
                room -= _share(count, len(payload), attributes & CODEC_MASK)
                if room <= 0:
                    yield group
                    group, room = [], 1.0
                continue
        data = memoryview(payload).cast("B")
        start = at = 0
        try:
            for batch in read_batches(data, verify_crc=False):
                if room <= 0:  # only here, where another header is: the length of a damaged batch may be wrong
                    group.append(_Piece(number, start, data[start:at]))
                    yield group
                    group, room, start = [], 1.0, at
                size = batch.size
                at += size
                packed = batch.codec != "none"
                rows = size // BYTES_A_LEGACY_ROW if packed and batch.magic < 2 else len(batch)
                room -= _share(rows, size, packed)
            end = at
        except KwireError:
            end = len(data)
        if end > start:
            group.append(_Piece(number, start, data[start:end]))
        if room <= 0:
            yield group
            group, room = [], 1.0
    if group:
        yield group


def _share(rows: int, size: int, packed: int) -> float:
    """What a batch takes of the room of a group."""
    by_rows, by_size = rows / BATCH_ROWS, size / (GROUP_PACKED_BYTES if packed else GROUP_BYTES)
    return by_rows if by_rows > by_size else by_size


def row_batches(
    payloads: Iterable[Any],
    fields: tuple[str, ...],
    permissive: bool,
    control: bool,
    max_batch_bytes: int,
    numbered: bool = False,
) -> Iterator[tuple[pa.RecordBatch, pa.Array | None]]:
    """Arrow batches of the fields in Spark's types, and (numbered) for each row the number of its payload."""
    schema = arrow_schema(fields_schema(fields, permissive))
    maker = _Maker(fields, schema, permissive, control, max_batch_bytes, numbered)
    for group in _groups(payloads):
        while group:
            try:
                rows, numbers, group = maker.rows(group)
            except (CorruptBatchError, LimitError):
                yield from maker.one_by_one(group)
                break
            for at in range(0, rows.num_rows, 2 * BATCH_ROWS) if rows.num_rows > 2 * BATCH_ROWS else (0,):
                size = 2 * BATCH_ROWS
                if rows.num_rows:
                    yield rows.slice(at, size), None if numbers is None else numbers.slice(at, size)


def _int64(numbers: list[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(array("q", numbers))])


class _Maker:
    def __init__(self, fields: tuple[str, ...], schema: pa.Schema, permissive: bool, control: bool,
                 max_batch_bytes: int, numbered: bool) -> None:
        self.fields, self.schema, self.permissive, self.numbered = fields, schema, permissive, numbered
        self.shifted = "batch_position" in fields
        needed = fields if fields else ("offset",)
        self.needed = (*needed, "source") if numbered or self.shifted else needed
        self.options: dict[str, Any] = {"control": control, "max_batch_bytes": max_batch_bytes, "budget": GROUP_BYTES}

    def rows(self, pieces: list[_Piece]) -> tuple[pa.RecordBatch, pa.Array | None, list[_Piece]]:
        """The rows of pieces, the numbers of their payloads, and the pieces that are left for another call."""
        inputs = iter([(piece.data, source, 0) for source, piece in enumerate(pieces)])
        total = sum([len(piece.data) for piece in pieces])
        columns = record_columns.gather_columns(inputs, self.needed, total=total, **self.options)
        rest = pieces[len(pieces) - length_hint(inputs) :]
        if columns.stopped is not None:
            piece = pieces[len(pieces) - len(rest) - 1]
            if columns.stopped < len(piece.data):
                part = memoryview(piece.data)[columns.stopped :]
                rest = [_Piece(piece.number, piece.shift + columns.stopped, part), *rest]
        with_source = len(self.needed) > len(self.fields) and "source" in self.needed
        source = pa.array(columns["source"]) if with_source else None
        arrays = []
        for name, field in zip(self.fields, self.schema, strict=False):
            values = as_spark_array(columns[name], field.type)
            if name == "batch_position":
                import pyarrow.compute as pc

                values = pc.add(values, _int64([piece.shift for piece in pieces]).take(source))
            arrays.append(values)
        if self.permissive:
            arrays.append(pa.nulls(len(columns), pa.string()))
        numbers = _int64([piece.number for piece in pieces]).take(source) if self.numbered else None
        if not arrays:  # from_arrays would make it empty
            return pa.RecordBatch.from_struct_array(pa.nulls(len(columns), pa.struct([]))), numbers, rest
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), numbers, rest

    def one_by_one(self, group: list[_Piece]) -> Iterator[tuple[pa.RecordBatch, pa.Array | None]]:
        """As rows(), batch by batch, for a group with a bad batch, which gives a row or raises its error."""
        for piece in group:
            for batch in read_batches(piece.data, errors="keep", max_batch_bytes=self.options["max_batch_bytes"]):
                if isinstance(batch, BadBatch):
                    error = located(batch.error, piece.number, piece.shift)
                    if not self.permissive:
                        raise error
                    arrays = [pa.nulls(1, field.type) for field in self.schema]
                    arrays[-1] = pa.array([str(error)], pa.string())
                    numbers = pa.array([piece.number], pa.int64()) if self.numbered else None
                    yield pa.RecordBatch.from_arrays(arrays, schema=self.schema), numbers
                    continue
                at = batch.position
                part = piece.data[at:at + batch.size]
                rows, numbers, _ = self.rows([_Piece(piece.number, piece.shift + at, part)])
                if rows.num_rows:
                    yield rows, numbers
