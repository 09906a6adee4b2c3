"""Segments read by pread beside a mapped file, in turns: python -m benchmarks.mapped [--rounds 15].

A mapped file that another process truncates ends the reader (SIGBUS), so kwire reads files by pread. This is what that
costs: CPU time by pread as a multiple of the CPU time over a mapping that is made for each pass, as the median of the
rounds with minimum and maximum. The segments are of W1 and W2 (benchmarks/workloads.py), 256 MiB, in the page cache.
"""

from __future__ import annotations

import argparse
import mmap
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks.workloads import W1, W2, Workload
from kwire.storage import LogSegment
from kwire.storage.places.filesystem import LocalFile

if TYPE_CHECKING:
    from typing_extensions import Buffer

SIZE = 256 << 20  # bytes of a segment
BAR = 1.1  # times the CPU time


class MappedFile(LocalFile):
    """A file whose views are those of a mapping, made for each pass."""

    def __init__(self, path: str, mapping: memoryview | None = None) -> None:
        super().__init__(path)
        self._mapping = mapping

    def held(self) -> MappedFile:
        if self._mapping is not None:
            return self
        with open(self.path, "rb") as file:
            return MappedFile(self.path, memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))

    def view(self, start: int, end: int, before: Buffer = b"") -> memoryview:
        mapping = self.held()._mapping
        assert mapping is not None
        return mapping[start - len(memoryview(before)) : end]

    def read(self, start: int, end: int) -> bytes:
        return bytes(self.view(start, end))

    def after_hole(self, position: int) -> int:
        return position


WAYS: dict[str, Callable[[LogSegment], object]] = {
    "columns": lambda segment: segment.columns(),
    "columns, views": lambda segment: segment.columns(views=True),
    "column_batches": lambda segment: deque(segment.column_batches(), 0),
    "column_batches of two fields": lambda segment: deque(segment.column_batches(["offset", "value"]), 0),
    "headers": lambda segment: deque(segment.headers(), 0),
    "records": lambda segment: deque(segment.read(), 0),
}


def segment_of(work: Workload, path: Path) -> None:
    """Write a segment of SIZE bytes: the batches of the workload, again and again, with ascending offsets."""
    offset = written = 0
    with path.open("wb") as file:
        while written < SIZE:
            for batch, rows in zip(work.batches(), work.rows(), strict=True):
                file.write(offset.to_bytes(8) + batch[8:])  # no checksum holds the base offset
                written += len(batch)
                offset += len(rows)


def cpu(way: Callable[[LogSegment], object], segment: LogSegment) -> float:
    """CPU seconds of one pass."""
    start = time.process_time()
    result = way(segment)
    del result
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=WAYS)
    arguments = parser.parse_args()
    table = Table(title=f"CPU time by pread, times that over a mapping (bar {BAR})")
    for heading in ("segment", "read as", "times", "MB/s by pread"):
        table.add_column(heading)
    with tempfile.TemporaryDirectory() as folder:
        for work in (W1, W2):
            path = Path(folder) / f"{work.name}.log"
            segment_of(work, path)
            read, mapped = LogSegment(path), LogSegment(path)
            mapped.file = MappedFile(str(path))
            for name, way in WAYS.items():
                if arguments.only not in (None, name):
                    continue
                times = [(cpu(way, read), cpu(way, mapped)) for _ in range(arguments.rounds + 1)][1:]
                ratios = [one / other for one, other in times]
                speed = path.stat().st_size / 1e6 / statistics.median(one for one, _ in times)
                spread = f"{statistics.median(ratios):.2f}  ({min(ratios):.2f}..{max(ratios):.2f})"
                table.add_row(work.name, name, spread, f"{speed:,.0f}")
            path.unlink()
    Console().print(table)


if __name__ == "__main__":
    main()
