"""Writes the records of segments to a Parquet file, row group by row group, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any

from kwire.output import new_file
from kwire_c.printable import storable

if TYPE_CHECKING:
    from kwire.storage.segment import LogSegment

FIELDS = ("offset", "timestamp", "timestamp_type", "key", "value", "headers")
_GROUP_BYTES = 64 << 20


def write_parquet(
    segments: Sequence[LogSegment],
    output: str,
    *,
    rows: int = 131_072,
    compression: str = "zstd",
    progress: Callable[[int], None] | None = None,
    force: bool = False,
    bad: Callable[[Any], None] | None = None,
    **wanted: Any,
) -> dict[str, int]:
    """Write the records of segments to one Parquet file; return {"rows", "row_groups", "size"}.

    Columns: topic (dictionary), partition, offset, timestamp (ms, UTC), timestamp_type ("create", ...), key, value,
    headers. rows: of a row group (fewer if they reach 64 MiB); compression: Parquet's codec; wanted: range keywords,
    committed and control as LogSegment.column_batches. progress: called with the bytes done since the last call;
    bad: with each BadBatch, where errors="keep" is among the keywords. The
    file gets its name when it is complete; force: also if a file of that name exists ("-" is standard output). Raises
    ValueError for rows below 1, FileExistsError, OSError; ImportError that names the extra if pyarrow is missing.
    """
    if rows < 1:
        raise ValueError(f"rows must be at least 1, not {rows}")
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(f"{output}: writing Parquet needs pyarrow: pip install 'kwire[arrow]'") from error
    schema = record_schema()
    written = groups = waiting = waiting_bytes = 0
    held: list[Any] = []

    def flush(writer: Any) -> None:
        nonlocal groups, waiting, waiting_bytes, written
        if held:
            writer.write_table(pa.Table.from_batches(held, schema), row_group_size=waiting)
            groups, written = groups + 1, written + waiting
            held.clear()
            waiting = waiting_bytes = 0

    inputs = [path for segment in segments for path in segment.files]
    if wanted.get("committed"):  # markers of its transactions may be in other segments
        logs = {id(segment.log): segment.log for segment in segments}
        inputs += [path for log in logs.values() for segment in log.segments for path in segment.files]
    with new_file(output, inputs=inputs, force=force) as file:
        counted = _Counted(file)
        with parquet.ParquetWriter(counted, schema, compression=compression) as writer:
            for segment in segments:
                pieces = segment.column_batches(FIELDS, rows=min(rows, 32_768), progress=progress, **wanted)
                for columns in pieces:
                    if bad is not None:
                        for one in columns.bad:
                            bad(one)
                    for batch in pa.RecordBatchReader.from_stream(columns):
                        start = 0
                        while start < len(batch):
                            piece = with_labels(segment, batch.slice(start, rows - waiting), schema)
                            start += len(piece)
                            held.append(piece)
                            waiting += len(piece)
                            waiting_bytes += piece.nbytes
                            if waiting >= rows or waiting_bytes >= _GROUP_BYTES:
                                flush(writer)
            flush(writer)
    return {"rows": written, "row_groups": groups, "size": counted.size}


def record_schema() -> Any:
    """The pyarrow.Schema of records with the topic and partition of their segment."""
    import pyarrow as pa

    return pa.schema([
        ("topic", pa.dictionary(pa.int32(), pa.string())), ("partition", pa.int32()), ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")), ("timestamp_type", pa.dictionary(pa.int8(), pa.string())),
        ("key", pa.binary()), ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ])  # fmt: skip


def with_labels(segment: LogSegment, batch: Any, schema: Any) -> Any:
    """A pyarrow.RecordBatch of FIELDS as one of record_schema()."""
    import pyarrow as pa
    from pyarrow import compute

    count = len(batch)
    names = pa.array(["none", "create", "log_append"])
    kinds = pa.DictionaryArray.from_arrays(compute.add(batch["timestamp_type"], pa.scalar(1, pa.int8())), names)
    topic = pa.DictionaryArray.from_arrays(
        pa.repeat(pa.scalar(None if segment.topic is None else 0, pa.int32()), count), [storable(segment.topic or "")])
    partition = pa.repeat(pa.scalar(segment.partition, pa.int32()), count)
    rest = [batch[name].cast(schema.field(name).type) for name in ("key", "value", "headers")]
    return pa.record_batch([topic, partition, batch["offset"], batch["timestamp"], kinds, *rest], schema=schema)


class _Counted:
    """A binary file that counts the bytes written to it."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.size = file, 0

    def write(self, data: Any) -> int:
        self._file.write(data)
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None: ...
