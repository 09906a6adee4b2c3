"""Reads the ranges of a task in a worker, as Arrow batches of the exact schema that Spark asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader

from kwire.defaults import BATCH_ROWS
from kwire.errors import CorruptBatchError, LimitError, MissingCodecError
from kwire.spark.options import Options
from kwire.spark.packing import ReadTask, SegmentRange
from kwire.spark.partitions import Pushed, opened, tasks
from kwire.spark.pushdown import PushFilters
from kwire.spark.schema import CORRUPT, SOURCE_COLUMNS, arrow_schema, as_spark_array, repeated, without_empty_lists
from kwire.spark.worker import SentToWorkers, in_one_line, settle
from kwire.storage.places.filesystem import located, shown
from kwire_c.printable import printable, storable

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from kwire.spark.internal_topics import InternalShaper
    from kwire.storage import SegmentFile

Guard = Callable[[SegmentRange, Callable[[SegmentRange], Iterator[pa.RecordBatch]]], Iterator[pa.RecordBatch]]

_JOINED_BYTES = 16 << 20  # most bytes of small batches that are joined to one
_PIECES = 100  # that are joined at once: each takes up to 70 KiB, however few rows it has


class SegmentReader(SentToWorkers, DataSourceReader):
    """The reader of a batch query: the driver plans tasks, each worker reads the ranges of one at a time."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options, self.schema = options, schema
        self.pushed = Pushed()
        self.pushFilters = PushFilters(self)  # type: ignore[method-assign]

    @in_one_line
    def partitions(self) -> list[InputPartition]:
        """Return the tasks: byte ranges of segments. Runs in the driver."""
        return list(tasks(self.options, self.pushed))

    @in_one_line
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task. Runs in a worker."""
        return read_task(partition, self.options, self.schema)


def read_task(
    task: InputPartition, options: Options, schema: StructType, guarded: Guard | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one task, range by range, in Arrow batches of about 10,000.

    guarded: is given each range and what reads it, and yields the batches that it gives; it may go on after an error.
    In mode FAILFAST a bad batch raises CorruptBatchError or LimitError, with "REASON at FILE, offset N, byte N". A torn
    tail is a warning, and in mode PERMISSIVE a _corrupt_record row.
    """
    if not isinstance(task, ReadTask):  # Spark's own partition, for an empty list of tasks
        return
    settle()
    shaper = _shaper(options, schema)

    def read(part: SegmentRange) -> Iterator[pa.RecordBatch]:
        return _read_range(part, options, shaper)

    yield from _joined(
        batch for part in task.ranges for batch in (read(part) if guarded is None else guarded(part, read)))


def _shaper(options: Options, schema: StructType) -> _Shaper | InternalShaper:
    """What makes the rows of a kind."""
    if options.kind == "records":
        return _Shaper(arrow_schema(schema))
    from kwire.spark.internal_topics import InternalShaper

    return InternalShaper(options, schema)


def _read_range(part: SegmentRange, options: Options, shaper: _Shaper | InternalShaper) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one range."""
    file, bounds = part.file, part.bounds
    segment = opened(file, options)
    shaper.take(file)
    pieces = segment.column_batches(
        shaper.fields,
        start=part.start,
        end=part.end,
        guessed=part.end is not None and not part.exact,
        rows=BATCH_ROWS,
        start_offset=bounds.start_offset,
        end_offset=bounds.end_offset,
        start_timestamp=bounds.start_timestamp,
        end_timestamp=bounds.end_timestamp,
        committed=options.read_committed,
        transactions=part.log_end,
        errors="raise" if options.mode == "FAILFAST" else "keep",
        max_batch_bytes=options.max_batch_bytes,
    )
    try:
        # compaction, too, makes a file smaller: pieces of it before and after would not be of one log
        planned = part.end if part.planned is not None else max(part.file.size, part.end or 0)
        if planned is not None and part.end is not None and segment.size < planned:
            reason = (f"the file was truncated to {segment.size} bytes, or compacted, after bytes "
                      f"{part.start}..{part.end} were planned")
            raise located(CorruptBatchError(reason, position=part.start), segment.path)
        for columns in pieces:
            yield from shaper.rows(columns)
            if options.mode == "PERMISSIVE" and columns.bad:
                yield shaper.bad([_place(bad.error, shown(file.path), bad.raw) for bad in columns.bad])
    except (CorruptBatchError, LimitError) as error:
        error.args = (_place(error, getattr(error, "file", None) or shown(file.path))[0],)
        raise
    except MissingCodecError as error:
        error.args = (f"{error} (needed for {shown(file.path)})",)
        raise
    # if the file has grown meanwhile, its tail is left to the next read
    tail = pieces.find_torn_tail() if part.last and (file.size < 0 or segment.size <= file.size) else None
    if tail is not None:
        position, left = tail
        reason = f"torn tail, the last {left} bytes are not a whole batch"
        warnings.warn(printable(f"{reason}: {shown(file.path)}, byte {position}"), RuntimeWarning, stacklevel=2)
        if options.mode == "PERMISSIVE":
            yield shaper.bad([(f"{reason} at {shown(file.path)}, offset -1, byte {position}", None)])


def _joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches, small ones that follow each other as one of about 10,000 rows: each costs Spark a message."""
    small: list[pa.RecordBatch] = []
    rows = size = pieces = 0
    for batch in batches:
        many = batch.num_rows > BATCH_ROWS // 2
        if small and (many or rows + batch.num_rows > BATCH_ROWS or size > _JOINED_BYTES):
            yield _one(small)
            small, rows, size, pieces = [], 0, 0, 0
        if many:
            yield batch
        else:
            small.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            pieces += 1
            if pieces == _PIECES:
                small[-_PIECES:], pieces = [_one(small[-_PIECES:])], 0
    if small:
        yield _one(small)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    [batch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


def _place(error: Any, path: str, raw: bytes = b"") -> tuple[str, int | None]:
    """The text for one bad batch, and its base offset (None if it cannot be read). raw: its bytes, if they are known.

    A LimitError has no base offset of its own.
    """
    corrupt = isinstance(error, CorruptBatchError)
    position = error.position if corrupt else error.offset
    offset = error.offset if corrupt else int.from_bytes(raw[:8], "big", signed=True) if len(raw) >= 8 else None
    known = "" if offset is None else f", offset {offset}"
    place = path if position is None else f"{path}{known}, byte {position}"
    return f"{error.reason} at {place}", offset if offset is not None and offset >= 0 else None


def _array(columns: Any, name: str, field: pa.Field) -> pa.Array:
    array = as_spark_array(columns[name], field.type)
    return without_empty_lists(array) if name == "headers" else array


class _Shaper:
    """Makes Arrow batches with the requested columns in order; constant columns are made once and sliced."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.inputs = [(field, SOURCE_COLUMNS[field.name][1]) for field in schema]
        fields = tuple(dict.fromkeys(name for _, name in self.inputs if name is not None))
        self.fields = fields or ("offset",)
        self.values: dict[str, Any] = {}
        self.repeated: dict[str, pa.Array] = {}

    def take(self, file: SegmentFile) -> None:
        """Set the segment that the rows from now on are of."""
        topic = None if file.topic is None else storable(file.topic)
        values = {"topic": topic, "partition": file.partition, "source": storable(shown(file.path)), CORRUPT: None}
        for name, value in values.items():
            if name not in self.values or self.values[name] != value:
                self.repeated.pop(name, None)
        self.values = values

    def rows(self, columns: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one piece of a segment: one Arrow batch, or slices of one that is large."""
        count = len(columns)
        size = BATCH_ROWS if count > 2 * BATCH_ROWS else count
        made = [None if name is None else _array(columns, name, field) for field, name in self.inputs]
        for start in range(0, count, size or 1):
            rows = min(size, count - start)
            arrays = [
                self._constant(field, rows) if array is None else array.slice(start, rows)
                for (field, _), array in zip(self.inputs, made, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def bad(self, reasons: list[tuple[str, int | None]]) -> pa.RecordBatch:
        """Return one row for each bad batch (reason, base offset): null except these and the constant columns."""
        offsets = [offset for _, offset in reasons]
        known = {"offset": offsets, CORRUPT: [printable(text) for text, _ in reasons]}
        arrays = []
        for field, name in self.inputs:
            if field.name in known:
                arrays.append(pa.array(known[field.name], field.type))
            else:
                count = len(reasons)
                arrays.append(self._constant(field, count) if name is None else pa.nulls(count, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _constant(self, field: pa.Field, count: int) -> pa.Array:
        made = self.repeated.get(field.name)
        if made is None or len(made) < count:
            made = self.repeated[field.name] = repeated(self.values[field.name], field.type, count)
        return made.slice(0, count) if len(made) > count else made
