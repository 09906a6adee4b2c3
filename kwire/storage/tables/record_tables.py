"""Records of segments as Arrow batches, written to a file or a partitioned dataset of Parquet, Arrow IPC or CSV."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from glob import escape, glob
from itertools import groupby
from types import NoneType
from typing import IO, TYPE_CHECKING, Any, Protocol

from kwire.codec.arguments import check_int, check_progress, check_type
from kwire.errors import LimitError
from kwire.output import new_file, new_folder
from kwire.storage.reading.read_plan import ReadPlans
from kwire_c.printable import printable, storable

if TYPE_CHECKING:
    from kwire.storage.reading.segment import LogSegment

FIELDS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")
FORMATS = ("parquet", "csv", "arrow", "arrows")  # arrow: an IPC file, arrows: an IPC stream
COMPRESSIONS = {
    "parquet": ("zstd", "snappy", "gzip", "lz4", "none"), "csv": ("none", "gzip"), "arrow": ("none", "zstd", "lz4"),
    "arrows": ("none", "zstd", "lz4"),
}  # fmt: skip
PARTITION_COLUMNS = ("topic", "partition", "date", "hour")
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
MOST_FOLDERS = 10_000  # of a dataset
_GROUP_BYTES = 64 << 20  # that are kept before they are written
_SMALL_BYTES = 128 << 10  # of a batch that is copied to be kept: its columns have 4 KiB at least for each buffer
_PIECE_BYTES = 8 << 10  # of the objects of one batch that is kept
_OPEN_FILES = 64
_READ_ROWS = 32_768
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_MOST_MS = 253_402_300_800_000  # the year 10000, which no calendar has
_MOST_CSV_MS = 971_890_963_200_000  # the year 32768, which Arrow's text of times does not have
_ESCAPED = frozenset('"#%\'*/:=?\\{[]^\x7f')  # in names of folders, as Hive and Spark escape them


class Writer(Protocol):
    """Writes a file of records. rows: the records that were added."""

    rows: int

    def add(self, batch: Any) -> None:
        """Write a pyarrow.RecordBatch of the schema, or keep it until there are enough for a row group."""

    def close(self) -> None:
        """Write what was kept, and the footer of the format."""


def import_pyarrow(what: str) -> Any:
    """The module pyarrow. what: needs it, for the error. Raises ImportError, which names the extra to install."""
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise ImportError(f"{what} needs pyarrow: pip install 'kwire[arrow]'") from error
    return pyarrow


def record_schema() -> Any:
    """The pyarrow.Schema of records with the topic and partition of their segment."""
    import pyarrow as pa

    return pa.schema([
        ("topic", pa.dictionary(pa.int32(), pa.string())), ("partition", pa.int32()), ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")), ("timestamp_type", pa.dictionary(pa.int8(), pa.string())),
        ("key", pa.binary()), ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ])  # fmt: skip


class Tables:
    """Turns batches of FIELDS into batches of record_schema(), which share one dictionary of topics."""

    def __init__(self, segments: Sequence[LogSegment]) -> None:
        import pyarrow as pa

        self.schema = record_schema()
        names = sorted({segment.topic for segment in segments if segment.topic is not None})
        self._numbers = {name: number for number, name in enumerate(names)}
        self._topics = pa.array([storable(name) for name in names], pa.string())
        self._kinds = pa.array(["none", "create", "log_append"])

    def labelled(self, segment: LogSegment, batch: Any) -> Any:
        """A pyarrow.RecordBatch of FIELDS with the topic and partition of its segment."""
        import pyarrow as pa
        from pyarrow import compute

        count, number = len(batch), None if segment.topic is None else self._numbers[segment.topic]
        kinds = pa.DictionaryArray.from_arrays(
            compute.add(batch["timestamp_type"], pa.scalar(1, pa.int8())), self._kinds)
        topic = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(number, pa.int32()), count), self._topics)
        partition = pa.repeat(pa.scalar(segment.partition, pa.int32()), count)
        rest = [batch[name].cast(self.schema.field(name).type) for name in ("key", "value", "headers")]
        return pa.record_batch(
            [topic, partition, batch["offset"], batch["timestamp"], kinds, *rest], schema=self.schema)


def record_batches(
    segments: Iterable[LogSegment],
    tables: Tables,
    *,
    rows: int = _READ_ROWS,
    progress: Callable[[int], None] | None = None,
    bad: Callable[[Any], None] | None = None,
    plans: ReadPlans | None = None,
    **wanted: Any,
) -> Iterator[Any]:
    """The records of segments as pyarrow.RecordBatches of record_schema(). bad, wanted: as for write_parquet().

    plans: shared by calls that read segments of the same partitions.
    """
    import pyarrow as pa

    plans = ReadPlans() if plans is None else plans
    for segment in segments:
        pieces = segment.column_batches(
            FIELDS, rows=min(rows, _READ_ROWS), progress=progress, **plans.options(segment, wanted))
        for columns in pieces:
            if bad is not None:
                for one in columns.bad:
                    bad(one)
            for batch in pa.RecordBatchReader.from_stream(columns):
                yield tables.labelled(segment, batch)


def _in_range(
    segments: Sequence[LogSegment], wanted: dict[str, Any], progress: Callable[[int], None] | None
) -> Iterator[LogSegment]:
    """Those that may hold offsets of the range, by the names in their logs; the others are done without a look."""
    from kwire.storage.reading.directory import in_range

    logs = {id(segment.log): segment.log.segments for segment in segments}.values()
    start, end = wanted.get("start_offset"), wanted.get("end_offset")
    chosen = {id(segment) for log in logs for segment in in_range(log, start, end)}
    for segment in segments:
        if id(segment) in chosen:
            yield segment
        elif progress is not None:
            progress(segment.size)


def _inputs(segments: Sequence[LogSegment], wanted: dict[str, Any]) -> list[str]:
    """The local files that are read for records of segments."""
    inputs = [path for segment in segments for path in segment.files]
    if wanted.get("committed"):  # markers of its transactions may be in other segments, or snapshots tell of them
        logs = {id(segment.log): segment.log for segment in segments}
        inputs += [path for log in logs.values() for segment in log.segments for path in segment.files]
        for folder in {os.path.dirname(path) for path in inputs}:
            inputs += glob(os.path.join(escape(folder), "*.snapshot"))
    return inputs


def check_rows(rows: int) -> int:
    """The rows of a row group, 1 at least: with 0 there is no end. Raises ValueError, TypeError."""
    rows = check_int(rows, "rows")
    if rows < 1:
        raise ValueError(f"rows must be at least 1, not {rows}")
    return rows


def write_table(
    segments: Sequence[LogSegment],
    output: str,
    form: str,
    *,
    compression: str | None = None,
    rows: int = 131_072,
    partition_by: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
    force: bool = False,
    bad: Callable[[Any], None] | None = None,
    **wanted: Any,
) -> dict[str, int]:
    """Write the records of segments to one file; return {"rows", "size"}. form: one of FORMATS.

    Columns, keywords and errors are those of write_parquet(). compression: one of COMPRESSIONS[form], by default zstd
    for Parquet and none for the others. CSV: key and value are text; where they are not UTF-8 they are empty, and
    key_base64 and value_base64 have the bytes; headers are JSON, [["name", "value"], ...]; null is an empty field (so
    is a timestamp past the year 32767), an empty text is "". Raises ValueError for an unknown form or compression.
    """
    check_type(form, str, "form", "a str")
    check_progress(progress)
    if form not in FORMATS:
        raise ValueError(f"form must be one of {', '.join(FORMATS)}, not {form!r}")
    rows = check_rows(rows)
    import_pyarrow(f"{output}: writing {form}")
    written = write_file(
        segments, output, form, compression=compression, rows=rows, partition_by=partition_by, progress=progress,
        force=force, bad=bad, **wanted)
    written.pop("row_groups", None)
    return written


def write_file(
    segments: Sequence[LogSegment],
    output: str,
    form: str,
    *,
    compression: str | None,
    rows: int,
    partition_by: Sequence[str],
    progress: Callable[[int], None] | None,
    force: bool,
    bad: Callable[[Any], None] | None,
    **wanted: Any,
) -> dict[str, int]:
    """Write the file or dataset of write_parquet() and write_table(); for Parquet the result has "row_groups"."""
    check_type(compression, (str, NoneType), "compression", "a str")
    if compression not in (None, *COMPRESSIONS[form]):
        raise ValueError(f"compression of {form} must be one of {', '.join(COMPRESSIONS[form])}, not {compression!r}")
    check_type(partition_by, (list, tuple), "partition_by", "a list of names")
    if partition_by:
        return write_dataset(
            segments, output, partition_by, form=form, rows=rows, compression=compression, progress=progress, bad=bad,
            **wanted)
    tables = Tables(segments)
    most = rows if form == "parquet" else _READ_ROWS
    with new_file(output, inputs=_inputs(segments, wanted), force=force) as file, Counted(file) as counted:
        writer = _writer(counted, form, tables.schema, compression, rows)
        chosen = _in_range(segments, wanted, progress)
        for batch in record_batches(chosen, tables, rows=most, progress=progress, bad=bad, **wanted):
            writer.add(batch)
        writer.close()
    groups = {"row_groups": writer.count} if isinstance(writer, RowGroups) else {}
    return {"rows": writer.rows, **groups, "size": counted.size}


def _writer(file: Counted, form: str, schema: Any, compression: str | None, rows: int) -> Writer:
    if form == "parquet":
        return RowGroups(file, schema, compression or "zstd", rows)
    if form == "csv":
        return _Csv(file, schema, compression)
    return _Ipc(file, schema, compression, form)


class Counted:
    """A binary file that counts the bytes written to it. After the with block, writes go nowhere.

    (A writer that was left by an exception writes the end of its format when it is collected.)
    """

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file: IO[bytes] | None = file
        self.size = 0

    def __enter__(self) -> Counted:
        return self

    def __exit__(self, *_: object) -> None:
        self._file = None

    def write(self, data: Any) -> int:
        """Write bytes."""
        if self._file is not None:
            self._file.write(data)
        self.size += len(data)
        return len(data)

    def writable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """The bytes written."""
        return self.size

    def flush(self) -> None:
        """Flush the file."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Nothing: the file is closed by whom it belongs to."""


def _kept(batch: Any) -> tuple[Any, int]:
    """The batch to keep, a small one in memory of its own size, and the bytes that it takes."""
    import pyarrow as pa

    if len(batch) and batch.nbytes < _SMALL_BYTES:
        (batch,) = pa.Table.from_batches([batch, batch.slice(0, 0)]).combine_chunks().to_batches()
    return batch, batch.nbytes + _PIECE_BYTES


class RowGroups:
    """A Parquet file. Batches are kept until they fill a row group. count: row groups written; nbytes: bytes kept."""

    def __init__(self, file: Counted, schema: Any, compression: str, rows: int) -> None:
        from pyarrow import parquet

        self._writer = parquet.ParquetWriter(file, schema, compression=compression)
        self._schema, self._most = schema, rows
        self._held: list[Any] = []
        self._waiting = self.nbytes = 0
        self.rows = self.count = 0

    def add(self, batch: Any) -> None:
        """See Writer."""
        start = 0
        while start < len(batch):
            piece, size = _kept(batch.slice(start, self._most - self._waiting))
            start += len(piece)
            self._held.append(piece)
            self._waiting += len(piece)
            self.nbytes += size
            self.rows += len(piece)
            if self._waiting >= self._most or self.nbytes >= _GROUP_BYTES:
                self.flush()

    def flush(self) -> None:
        """Write what is kept as a row group."""
        import pyarrow as pa

        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held, self._schema), row_group_size=self._waiting)
            self.count += 1
            self._held.clear()
            self._waiting = self.nbytes = 0

    def close(self) -> None:
        """See Writer."""
        self.flush()
        self._writer.close()


class _Ipc:
    """An Arrow IPC file or stream."""

    def __init__(self, file: Counted, schema: Any, compression: str | None, form: str) -> None:
        from pyarrow import ipc

        options = ipc.IpcWriteOptions(compression=None if compression in (None, "none") else compression)
        self._writer = (ipc.new_file if form == "arrow" else ipc.new_stream)(file, schema, options=options)
        self.rows = 0

    def add(self, batch: Any) -> None:
        """See Writer."""
        self._writer.write_batch(batch)
        self.rows += len(batch)

    def close(self) -> None:
        """See Writer."""
        self._writer.close()


class _Csv:
    """A CSV file (RFC 4180) in UTF-8, with the names of the columns in its first line."""

    def __init__(self, file: Counted, schema: Any, compression: str | None) -> None:
        import pyarrow as pa
        from pyarrow import csv

        text = pa.string()
        fields = [(field.name, text if pa.types.is_dictionary(field.type) else field.type) for field in schema
                  if field.name not in ("key", "value", "headers")]
        names = ("key", "value", "headers", "key_base64", "value_base64")
        self._schema = pa.schema([*fields, *((name, text) for name in names)])
        self._packed = pa.CompressedOutputStream(pa.PythonFile(file, "w"), "gzip") if compression == "gzip" else None
        self._writer = csv.CSVWriter(file if self._packed is None else self._packed, self._schema)
        self.rows = 0

    def add(self, batch: Any) -> None:
        """See Writer. Raises LimitError for a record whose text exceeds what an Arrow column can hold."""
        import pyarrow as pa

        if len(batch) > 1 and batch.nbytes > _GROUP_BYTES:  # its text may be several times as long
            middle = len(batch) // 2
            self.add(batch.slice(0, middle))
            return self.add(batch.slice(middle))
        columns = {name: batch[name] for name in batch.schema.names}
        try:
            for name in ("key", "value"):
                columns[name], columns[f"{name}_base64"] = _texts(batch[name])
            columns["headers"] = _header_texts(batch["headers"])
        except pa.ArrowCapacityError:
            raise LimitError(f"the record at offset {batch['offset'][0]} has too many bytes for CSV",
                             limit=(1 << 31) - 1, offset=None) from None
        columns["timestamp"] = _times(batch["timestamp"])
        arrays = [columns[field.name].cast(field.type) for field in self._schema]
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
        self.rows += len(batch)

    def close(self) -> None:
        """See Writer."""
        self._writer.close()
        if self._packed is not None:
            self._packed.close()


def _texts(column: Any) -> tuple[Any, Any]:
    """(the values of a binary column that are UTF-8, the others in base64), each with null elsewhere."""
    import pyarrow as pa

    try:
        return column.cast(pa.string()), pa.nulls(len(column), pa.string())
    except pa.ArrowInvalid:
        texts: list[str | None] = []
        packed: list[str | None] = []
        for value in column.to_pylist():
            try:
                texts.append(None if value is None else value.decode())
                packed.append(None)
            except UnicodeDecodeError:
                texts.append(None)
                packed.append(b64encode(value).decode())
        return pa.array(texts, pa.string()), pa.array(packed, pa.string())


def _times(column: Any) -> Any:
    """The timestamps that CSV can have, the others as null."""
    import pyarrow as pa
    from pyarrow import compute

    times = column.cast(pa.int64())
    known = compute.and_(compute.greater(times, -_MOST_CSV_MS), compute.less(times, _MOST_CSV_MS))
    return compute.if_else(known, column, pa.scalar(None, column.type))


def _header_texts(column: Any) -> Any:
    """The headers of each record as JSON, null for no headers; a value that is not UTF-8 is {"base64": ...}."""
    import pyarrow as pa

    if not len(column.flatten()):
        return pa.nulls(len(column), pa.string())
    rows = []
    for headers in column.to_pylist():
        pairs = [[header["key"], _json_value(header["value"])] for header in headers or ()]
        rows.append(json.dumps(pairs, ensure_ascii=False) if pairs else None)
    return pa.array(rows, pa.string())


def _json_value(value: bytes | None) -> Any:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value or b"").decode()}


# datasets


def write_dataset(
    segments: Sequence[LogSegment],
    output: str,
    partition_by: Sequence[str],
    *,
    form: str = "parquet",
    rows: int = 131_072,
    compression: str | None = None,
    progress: Callable[[int], None] | None = None,
    bad: Callable[[Any], None] | None = None,
    **wanted: Any,
) -> dict[str, int]:
    """Write the records of segments as a dataset: a folder of files, partitioned as by Hive and Spark.

    partition_by: topic, partition, date (of the timestamp, UTC) and hour (00 to 23), in any order, each once:
    topic=orders/date=2026-01-31/part-00000.parquet. Files do not have the columns topic and partition that are in the
    names of their folders. Where a record has no topic, partition or time, the name is __HIVE_DEFAULT_PARTITION__. The
    folder gets its name when it is complete; a folder of that name must not exist or be empty. Other keywords and
    errors are those of write_table();
    LimitError for more than 10,000 folders. Returns {"rows", "files", "size"}.
    """
    check_type(partition_by, (list, tuple), "partition_by", "a list of names")
    unknown = [name for name in partition_by if name not in PARTITION_COLUMNS]
    if unknown or len(set(partition_by)) < len(partition_by):
        raise ValueError(f"partition_by must be some of {', '.join(PARTITION_COLUMNS)}, each once, "
                         f"not {', '.join(printable(str(name)) for name in partition_by)}")
    rows = check_rows(rows)
    tables, plans = Tables(segments), ReadPlans()
    with new_folder(output) as folder:
        dataset = _Dataset(folder, partition_by, form, compression, rows, tables.schema)
        try:
            for segment in _in_range(segments, wanted, progress):
                labels = {"topic": segment.topic, "partition": segment.partition}
                for batch in record_batches(
                        [segment], tables, rows=rows, progress=progress, bad=bad, plans=plans, **wanted):
                    dataset.add(batch, labels)
            dataset.close()
        finally:
            dataset.abandon()
    return {"rows": dataset.rows, "files": dataset.files, "size": dataset.size}


class _Dataset:
    """The files of a dataset. Up to 64 MiB of batches are kept, and up to 64 files are open, at a time."""

    def __init__(
        self, folder: str, partition_by: Sequence[str], form: str, compression: str | None, rows: int, schema: Any
    ) -> None:
        self._folder, self._by, self._form, self._compression = folder, partition_by, form, compression
        self._most = rows
        self._dropped = [schema.get_field_index(name) for name in partition_by if name in schema.names]
        for at in sorted(self._dropped, reverse=True):
            schema = schema.remove(at)
        self._schema = schema
        self._held: dict[str, list[Any]] = {}
        self._bytes: dict[str, int] = {}
        self._waiting = 0  # bytes of all folders
        self._counts: dict[str, int] = {}  # folder -> files that were begun
        self._open: dict[str, tuple[Writer, Counted, IO[bytes]]] = {}  # the one used last is the last
        self.rows = self.files = self.size = 0

    def add(self, batch: Any, labels: dict[str, Any]) -> None:
        """Add records of one topic and partition."""
        for times, part in self._by_time(batch):
            names = [f"{name}={_folder_name({**labels, **times}[name])}" for name in self._by]
            folder = "/".join(names)
            piece, size = _kept(part.select([field.name for field in self._schema]))
            self._held.setdefault(folder, []).append(piece)
            self._bytes[folder] = self._bytes.get(folder, 0) + size
            self._waiting += size
            self._counts.setdefault(folder, 0)
            if len(self._counts) > MOST_FOLDERS:
                raise LimitError(f"too many folders by {', '.join(self._by)}", limit=MOST_FOLDERS,
                                 needed=len(self._counts), offset=None)
            self.rows += len(piece)
        while self._waiting > _GROUP_BYTES:
            self._write(max(self._bytes, key=lambda folder: self._bytes[folder]))

    def _by_time(self, batch: Any) -> Iterator[tuple[dict[str, str | None], Any]]:
        """(date and hour, the rows of that time) of a batch."""
        import pyarrow as pa
        from pyarrow import compute

        if "date" not in self._by and "hour" not in self._by:
            yield {}, batch
            return
        unit = _HOUR_MS if "hour" in self._by else _DAY_MS
        times = batch["timestamp"].cast(pa.int64())
        known = compute.and_(compute.greater_equal(times, 0), compute.less(times, _MOST_MS))
        units = compute.if_else(known, compute.divide(times, unit), pa.scalar(None, pa.int64()))
        if "date" not in self._by:  # records of all days are in 24 folders
            units = compute.subtract(units, compute.multiply(compute.divide(units, 24), 24))
        order = compute.sort_indices(units)  # it is stable
        start = 0
        for number, run in groupby(units.take(order).to_pylist()):
            count = sum(1 for _ in run)
            moment = None if number is None else datetime.fromtimestamp(number * unit // 1000, UTC)
            yield {
                "date": None if moment is None else f"{moment:%Y-%m-%d}",
                "hour": None if moment is None else f"{moment:%H}",
            }, batch.take(order.slice(start, count))  # a copy: a slice would keep the whole batch
            start += count

    def _write(self, folder: str) -> None:
        """Write what is kept for a folder."""
        writer = self._writer_of(folder)
        for piece in self._held.pop(folder):
            writer.add(piece)
        self._waiting -= self._bytes.pop(folder)
        if isinstance(writer, RowGroups):
            writer.flush()

    def _writer_of(self, folder: str) -> Writer:
        opened = self._open.pop(folder, None)
        if opened is None:
            if len(self._open) >= _OPEN_FILES:
                self._finish(next(iter(self._open)))
            path = os.path.join(self._folder, folder)
            os.makedirs(path, exist_ok=True)
            packed = ".gz" if (self._form, self._compression) == ("csv", "gzip") else ""
            name = f"part-{self._counts[folder]:05}.{self._form}{packed}"
            file = open(os.path.join(path, name), "xb")  # noqa: SIM115 - until _finish
            counted = Counted(file)
            opened = _writer(counted, self._form, self._schema, self._compression, self._most), counted, file
            self._counts[folder] += 1
            self.files += 1
        self._open[folder] = opened
        return opened[0]

    def _finish(self, folder: str) -> None:
        writer, counted, file = self._open.pop(folder)
        with file, counted:
            writer.close()
        self.size += counted.size

    def close(self) -> None:
        """Write what is kept, and finish all files."""
        for folder in list(self._held):
            self._write(folder)
        for folder in list(self._open):
            self._finish(folder)

    def abandon(self) -> None:
        """Close the files that were not finished."""
        for _, counted, file in self._open.values():
            with file, counted:
                pass
        self._open.clear()


def _folder_name(value: Any) -> str:
    """A value as it is in the name of a folder: escaped as Hive does."""
    if value is None:
        return NULL_PARTITION
    text = storable(str(value))
    return "".join(f"%{ord(sign):02X}" if sign in _ESCAPED or sign < " " else sign for sign in text)
