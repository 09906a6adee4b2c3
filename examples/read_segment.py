"""Read one log segment: check it, look at its batches, read its records, take columns.

    python examples/read_segment.py [SEGMENT]

SEGMENT is a .log file of a broker, a .gz of one, or a URL that fsspec knows (s3://...). By default the example writes
a small segment first, with three batches.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import kwire
from kwire.storage import LogSegment


def write_sample(folder: Path) -> Path:
    """Write a segment as a broker has it: batches one after the other, in a file named by its first offset."""
    path = folder / "orders-0" / f"{0:020d}.log"
    path.parent.mkdir()
    with path.open("wb") as file:
        for number, codec in enumerate(("none", "lz4", "zstd")):
            records = [(1700000000000 + i, b"customer-%d" % i, b'{"amount": %d}' % i) for i in range(100)]
            file.write(kwire.build_batch(records, codec=codec, base_offset=100 * number))
    return path


def show(path: str | Path) -> None:
    """Print what is in a segment."""
    segment = LogSegment(path)
    # The topic and the partition are in the name of the folder.
    print(f"{segment.topic}, partition {segment.partition}: {segment.size:,} bytes from offset {segment.base_offset}")

    # Checksums, offsets, indexes, transactions; nothing found is good. Errors in the middle do not stop it.
    print("findings:", segment.verify())

    # Batches: headers tell most, and nothing is decompressed until the records are read.
    for batch in segment.batches():
        print(f"batch at byte {batch.position}: offsets {batch.base_offset} to {batch.last_offset}, {batch.codec}")

    # Records, from an offset on. The index beside the segment is used where there is one. committed=True leaves out
    # aborted transactions.
    for record in segment.read(start_offset=segment.base_offset + 198, end_offset=segment.base_offset + 202,
                               committed=True):  # fmt: skip
        print(record.offset, record.timestamp, record.key, record.value)

    # Columns: Arrow arrays without a Python object for each record. pyarrow, polars and duckdb take them as they are.
    columns = segment.columns(["offset", "value"])
    print(len(columns), "rows of", ", ".join(columns.names))


def main() -> None:
    """Run the example."""
    if len(sys.argv) > 1:
        show(sys.argv[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        show(write_sample(Path(folder)))


if __name__ == "__main__":
    main()
