"""Is the cost a record the same from 1 MiB to 1 GiB? python -m benchmarks.flat [WAY ...] [--sizes 1 16 128 1024].

W1 repeated to each size is read in each way: bytes in one call as columns, as views and as objects, and a LogSegment of
a file in the page cache. The sizes take turns, so that a busy machine slows all alike; a ratio is taken within a round.
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

MOST = 1.2  # times what a record costs at the least size
SLICE = 0.03  # seconds that a size is read for in one round, at least


def objects(batches: object) -> None:
    """Each record of each batch, by a Python loop."""
    for batch in batches:  # type: ignore[attr-defined]
        for _ in batch:
            pass


def pieces(segment: LogSegment) -> None:
    """A segment as columns in bounded memory."""
    for _ in segment.column_batches():
        pass


# way -> (what it reads: "bytes" or "file", how)
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
    """W1 cut or repeated to about size bytes; how many records."""
    found, records, length = [], 0, 0
    pairs = list(zip(W1.batches(), map(len, W1.rows()), strict=True))
    while length < size:
        for batch, count in pairs:
            if found and length + len(batch) > size:
                return b"".join(found), records
            found.append(batch)
            length += len(batch)
            records += count
    return b"".join(found), records


def passes(read: Callable[[], object]) -> float:
    """Nanoseconds of one pass, the median of as many as fill a slice."""
    taken: list[float] = []
    while sum(taken) < SLICE * 1e9:
        start = time.perf_counter_ns()
        read()
        taken.append(time.perf_counter_ns() - start)
    return statistics.median(taken)


def measure(way: str, sizes: list[int], rounds: int, folder: Path) -> list[tuple[float, list[float]]]:
    """For each size (MiB): nanoseconds a record of the very first pass, and of each round."""
    kind, how = WAYS[way]
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
    found: list[list[float]] = [[] for _ in sizes]
    for given, records in inputs:
        start = time.perf_counter_ns()
        how(given)
        first.append((time.perf_counter_ns() - start) / records)
    for _ in range(rounds):
        for i, (given, records) in enumerate(inputs):
            how(given)  # its memory is that of this size, not of the one before
            found[i].append(passes(lambda given=given: how(given)) / records)
    return list(zip(first, found, strict=True))


def spread(numbers: list[float], digits: int) -> str:
    return f"{statistics.median(numbers):.{digits}f}  ({min(numbers):.{digits}f}..{max(numbers):.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ways", nargs="*", help=" ".join(WAYS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[1, 16, 128, 1024], help="MiB, the least first")
    parser.add_argument("--rounds", type=int, default=5)
    told = parser.parse_args()
    shown = Table(title="Nanoseconds a record")
    for head in ("way", "MiB", "first pass", "later passes", f"times that of {told.sizes[0]} MiB", f"<= {MOST}"):
        shown.add_column(head, justify="left" if head == "way" else "right")
    with tempfile.TemporaryDirectory() as folder:
        for way in told.ways or WAYS:
            found = measure(way, told.sizes, told.rounds, Path(folder))
            for size, (first, rounds) in zip(told.sizes, found, strict=True):
                ratios = [taken / base for taken, base in zip(rounds, found[0][1], strict=True)]
                holds = "[green]yes" if statistics.median(ratios) <= MOST else "[red]NO"
                shown.add_row(way, str(size), f"{first:.1f}", spread(rounds, 1), spread(ratios, 2), holds)
    Console().print(shown)


if __name__ == "__main__":
    main()
