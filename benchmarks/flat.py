"""Is the cost of a record the same from 1 MiB to 1 GiB? python -m benchmarks.flat [WAY ...] [--sizes 1 16 128 1024].

W1, repeated to each size, is read in each way: bytes in one call as columns, as views and as objects, and a LogSegment
of a file in the page cache. The sizes take turns, so that a busy machine slows all alike; a ratio is taken within a
round.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

import kwire
from benchmarks.workloads import W1
from kwire.storage import LogSegment

MOST = 1.2  # times the cost of a record at the smallest size
SLICE = 0.03  # least seconds that a size is read for in one round


def objects(batches: object) -> None:
    """Each record of each batch, by a Python loop."""
    for batch in batches:  # type: ignore[attr-defined]
        for _ in batch:
            pass


def pieces(segment: LogSegment) -> None:
    """A segment as columns in bounded memory."""
    for _ in segment.column_batches():
        pass


# way -> (its input: "bytes" or "file", the function that reads it)
WAYS: dict[str, tuple[str, Callable[..., object]]] = {
    "columns": ("bytes", lambda data: kwire.columns(data)),
    "views": ("bytes", lambda data: kwire.columns(data, views=True)),
    "objects": ("bytes", lambda data: objects(kwire.read_batches(data))),
    "segment-columns": ("file", lambda path: LogSegment(path).columns()),
    "segment-views": ("file", lambda path: LogSegment(path).columns(views=True)),
    "segment-pieces": ("file", lambda path: pieces(LogSegment(path))),
    "segment-objects": ("file", lambda path: objects(LogSegment(path).batches())),
}


def repeated(size: int) -> tuple[bytes, int]:
    """W1 shortened or repeated to about size bytes; the number of its records."""
    batches, records, length = [], 0, 0
    pairs = list(zip(W1.batches(), map(len, W1.rows()), strict=True))
    while length < size:
        for batch, count in pairs:
            if batches and length + len(batch) > size:
                return b"".join(batches), records
            batches.append(batch)
            length += len(batch)
            records += count
    return b"".join(batches), records


def passes(read: Callable[[], object]) -> float:
    """Nanoseconds of one pass: the median of the passes that fill a slice."""
    taken: list[float] = []
    while sum(taken) < SLICE * 1e9:
        start = time.perf_counter_ns()
        read()
        taken.append(time.perf_counter_ns() - start)
    return statistics.median(taken)


def measure(way: str, sizes: list[int], rounds: int, folder: Path) -> list[tuple[float, list[float]]]:
    """For each size (MiB): nanoseconds for a record in the first pass, and in each round."""
    kind, read = WAYS[way]
    inputs: list[tuple[object, int]] = []
    for size in sizes:
        data, records = repeated(size << 20)
        if kind == "file":
            path = folder / f"{size}.log"
            path.write_bytes(data)
            inputs.append((path, records))
        else:
            inputs.append((data, records))
        del data
    first: list[float] = []
    later: list[list[float]] = [[] for _ in sizes]
    for data_or_path, records in inputs:
        start = time.perf_counter_ns()
        read(data_or_path)
        first.append((time.perf_counter_ns() - start) / records)
    for _ in range(rounds):
        for i, (data_or_path, records) in enumerate(inputs):
            read(data_or_path)  # so that memory is that of this size, not of the one before
            later[i].append(passes(lambda given=data_or_path: read(given)) / records)
    return list(zip(first, later, strict=True))


def spread(numbers: list[float], digits: int) -> str:
    return f"{statistics.median(numbers):.{digits}f}  ({min(numbers):.{digits}f}..{max(numbers):.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", help=" ".join(WAYS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[1, 16, 128, 1024], help="in MiB, ascending")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    output = Table(title="Nanoseconds for a record")
    for head in ("way", "MiB", "first pass", "later passes", f"times that of {arguments.sizes[0]} MiB", f"<= {MOST}"):
        output.add_column(head, justify="left" if head == "way" else "right")
    with tempfile.TemporaryDirectory() as folder:
        for way in arguments.ways or WAYS:
            measured = measure(way, arguments.sizes, arguments.rounds, Path(folder))
            for size, (first, rounds) in zip(arguments.sizes, measured, strict=True):
                ratios = [taken / base for taken, base in zip(rounds, measured[0][1], strict=True)]
                holds = "[green]yes" if statistics.median(ratios) <= MOST else "[red]NO"
                output.add_row(way, str(size), f"{first:.1f}", spread(rounds, 1), spread(ratios, 2), holds)
    Console().print(output)


if __name__ == "__main__":
    main()
