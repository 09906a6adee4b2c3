"""Writes the records of segments to a Parquet file or a partitioned dataset, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kwire.storage.tables.record_tables import check_rows, import_pyarrow, write_file

if TYPE_CHECKING:
    from kwire.storage.reading.segment import LogSegment


def write_parquet(
    segments: Sequence[LogSegment],
    output: str,
    *,
    rows: int = 131_072,
    compression: str = "zstd",
    partition_by: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
    force: bool = False,
    bad: Callable[[Any], None] | None = None,
    **wanted: Any,
) -> dict[str, int]:
    """Write the records of segments to one Parquet file; return {"rows", "row_groups", "size"}.

    Columns: topic (dictionary), partition, offset, timestamp (ms, UTC), timestamp_type ("create", ...), key, value,
    headers. rows: of a row group (fewer if they reach 64 MiB); compression: zstd, snappy, gzip, lz4 or none; wanted:
    range keywords, committed and control as LogSegment.column_batches. progress: called with the bytes done since the
    last call; bad: with each BadBatch, where errors="keep" is among the keywords. The file gets its name when it is
    complete; force: also if a file of that name exists ("-" is standard output). partition_by: a folder of that name
    instead, as write_dataset() has it; the result has "files" too. Raises ValueError for rows below 1 and for an
    unknown compression, FileExistsError, OSError; ImportError that names the extra if pyarrow is missing.
    """
    rows = check_rows(rows)
    import_pyarrow(f"{output}: writing Parquet")
    return write_file(
        segments, output, "parquet", compression=compression, rows=rows, partition_by=partition_by, progress=progress,
        force=force, bad=bad, **wanted)
