"""Reads a segment in every way while it changes: python -m tests.storage.changing step PATH HOW ZEROS|race PATH."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import kwire
from kwire.storage import LogSegment
from kwire.storage.tables.parquet import write_parquet

SIZE = 16 << 10  # bytes of a value
COUNT = 200  # records
RACE = 4  # seconds of a race


def value(offset: int) -> bytes:
    """The value of the record at that offset."""
    return (b"%d." % offset) * (SIZE // len(b"%d." % offset))


def content(first: int, count: int, step: int = 5) -> bytes:
    """Batches of 80 KiB with `count` offsets from first on."""
    return b"".join(
        kwire.build_batch([(1_700_000_000_000 + at, b"k", value(at)) for at in range(base, base + step)],
                          base_offset=base)
        for base in range(first, first + count, step)
    )  # fmt: skip


def objects(segment: LogSegment) -> Iterator[list[int]]:
    """The offsets of each batch, read as objects; their values are checked."""
    for batch in segment.batches():
        records = list(batch)
        assert all(record.value == value(record.offset) for record in records)
        yield [record.offset for record in records]


def kept(segment: LogSegment) -> Iterator[list[int]]:
    for batch in segment.batches(errors="keep"):
        yield [] if isinstance(batch, kwire.BadBatch) else [record.offset for record in batch]


def pieces(views: bool) -> Callable[[LogSegment], Iterator[list[int]]]:
    def read(segment: LogSegment) -> Iterator[list[int]]:
        for columns in segment.column_batches(views=views, rows=20):
            yield checked(columns)

    return read


def checked(columns: Any) -> list[int]:
    table = pa.table(columns)
    offsets: list[int] = table["offset"].to_pylist()
    assert table["value"].cast(pa.binary()).to_pylist() == [value(offset) for offset in offsets]
    return offsets


def parquet(segment: LogSegment) -> list[int]:
    out = f"{segment.path}.parquet"
    try:
        rows = write_parquet([segment], out, force=True)["rows"]
        offsets: list[int] = pq.read_table(out)["offset"].to_pylist()
        assert len(offsets) == rows
        return offsets
    finally:
        Path(out).unlink(missing_ok=True)


def whole(read: Callable[[LogSegment], Any]) -> Callable[[LogSegment], Iterator[list[int]]]:
    """A reading that gives everything at once."""

    def once(segment: LogSegment) -> Iterator[list[int]]:
        result = read(segment)
        yield result if isinstance(result, list) and all(isinstance(item, int) for item in result) else []

    return once


STEPS: dict[str, Callable[[LogSegment], Iterator[list[int]]]] = {
    "batches": objects,
    "kept": kept,
    "records": lambda segment: ([record.offset] for record in segment.read()),
    "pieces": pieces(False),
    "views": pieces(True),
    "headers": lambda segment: ([header.base_offset] for header in segment.headers()),
}
WAYS: dict[str, Callable[[LogSegment], Iterator[list[int]]]] = STEPS | {
    "columns": whole(lambda segment: checked(segment.columns())),
    "columns views": whole(lambda segment: checked(segment.columns(views=True))),
    "columns kept": whole(lambda segment: checked(segment.columns(errors="keep"))),
    "committed": whole(lambda segment: checked(segment.columns(committed=True))),
    "verify": whole(lambda segment: [str(finding) for finding in segment.verify()]),
    "stats": whole(lambda segment: segment.stats().to_json()),
    "parquet": whole(parquet),
    "split": whole(lambda segment: segment.split(1 << 20)),
    "seek": whole(lambda segment: (segment.seek(150), segment.seek_time(1_700_000_000_150), segment.tail)),
}


def change(path: str, how: str, chance: int = 0) -> None:
    """One of the changes that a broker, or anything else, makes to a file that is being read."""
    size = os.path.getsize(path) if os.path.exists(path) else 0
    if how in ("cut", "emptied"):
        os.truncate(path, 0 if how == "emptied" else size * (37 + chance % 50) // 100)
    elif how == "grown":
        with open(path, "ab") as file:
            file.write(content(1000, 5))
    elif how == "closed":  # a preallocated file loses its zeros
        os.truncate(path, len(content(0, COUNT)))
    elif how == "replaced":
        Path(f"{path}.new").write_bytes(content(5000, 40))
        os.replace(f"{path}.new", path)
    elif how == "deleted":
        os.unlink(path)


def outcome(path: str, steps: Callable[[LogSegment], Iterator[list[int]]], meanwhile: Callable[[], None]) -> Any:
    """[the offsets that came, the kind of error, its text]; meanwhile is called after the first step."""
    came: list[int] = []
    try:
        for number, offsets in enumerate(steps(LogSegment(path))):
            came += offsets
            if number == 0:
                meanwhile()
    except (kwire.KwireError, FileNotFoundError) as error:
        named = error.filename if isinstance(error, FileNotFoundError) else getattr(error, "file", None)
        assert named == path or f"{path}: no such file" in str(error), (named, error)
        return [came, type(error).__name__, str(error)]
    return [came, None, ""]


def main() -> None:
    """Prints the outcomes, a line each; any other exception, or a signal, is for the caller to see."""
    if sys.argv[1] == "step":
        _, _, path, how, zeros = sys.argv
        for way, steps in STEPS.items():
            Path(path).write_bytes(content(0, COUNT) + bytes(int(zeros)))
            print(way, end=" ", flush=True)
            print(json.dumps(outcome(path, steps, lambda: change(path, how))), flush=True)
        return
    path, ended = sys.argv[2], time.monotonic() + RACE
    kinds: Counter[str] = Counter()
    print("begun", flush=True)
    for way in itertools.chain(WAYS, itertools.takewhile(lambda _: time.monotonic() < ended, itertools.cycle(WAYS))):
        Path(f"{path}.way").write_text(way)
        offsets, kind, _ = outcome(path, WAYS[way], lambda: None)
        assert all(at in range(COUNT) or at in range(1000, 1005) or at in range(5000, 5040) for at in offsets), offsets
        kinds[str(kind)] += 1
    print(json.dumps(kinds), flush=True)


if __name__ == "__main__":
    main()
