"""Makes partitions for tests: batches, transaction markers, segments with the indexes that Kafka would write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from struct import pack
from typing import Any

import kwire

START = 1_700_000_000_000


def batch(base: int, count: int = 3, *, time: int | None = None, size: int = 20, **options: Any) -> bytes:
    """A batch of `count` records from offset base on; record N has value "v<N>..." and time START + N * 10."""
    first = START + base * 10 if time is None else time
    records = [
        (first + at * 10, b"k%d" % (base + at), (b"v%d" % (base + at)).ljust(size, b"."), [("h", b"%d" % at)])
        for at in range(count)
    ]
    return kwire.build_batch(records, base_offset=base, **options)


def marker(offset: int, producer: int, commit: bool, epoch: int = 0, *, time: int | None = None) -> bytes:
    """A control batch that ends a transaction."""
    record = (START + offset * 10 if time is None else time, pack(">hh", 0, int(commit)), pack(">hi", 0, 7))
    return kwire.build_batch(
        [record], base_offset=offset, producer_id=producer, producer_epoch=epoch, transactional=True, control=True
    )


def in_transaction(base: int, producer: int, count: int = 3, **options: Any) -> bytes:
    return batch(base, count, producer_id=producer, producer_epoch=0, base_sequence=base, transactional=True, **options)


def write_segment(folder: Path, base: int, batches: Iterable[bytes], *, every: int = 2, indexes: bool = True) -> Path:
    """Write a segment; an index entry at every `every`th batch but the first."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base:020}.log"
    data, index, times, largest = bytearray(), b"", b"", -1
    for number, content in enumerate(batches):
        header = next(iter(kwire.read_batches(content)))
        larger = header.max_timestamp > largest
        largest = max(largest, header.max_timestamp)
        if number and number % every == 0:
            index += pack(">ii", header.last_offset - base, len(data))
            if larger:
                times += pack(">qi", largest, header.last_offset - base)
        data += content
    path.write_bytes(data)
    if indexes:
        path.with_suffix(".index").write_bytes(index)
        path.with_suffix(".timeindex").write_bytes(times)
    return path


def aborted_index(path: Path, entries: Iterable[tuple[int, int, int, int]]) -> None:
    """Write a .txnindex: (producer id, first offset, last offset, last stable offset)."""
    path.with_suffix(".txnindex").write_bytes(b"".join(pack(">hqqqq", 0, *entry) for entry in entries))


def offsets(records: Iterable[Any]) -> list[int]:
    return [record.offset for record in records]


def producer_snapshot(folder: Path, offset: int, ongoing: Mapping[int, int]) -> Path:
    """Write the producer snapshot at an offset. ongoing: producer id -> first offset of its transaction, -1: none."""
    body = pack(">i", len(ongoing)) + b"".join(
        pack(">qhiqiqiq", producer, 0, 0, offset - 1, 0, START, 0, first) for producer, first in ongoing.items())
    path = folder / f"{offset:020}.snapshot"
    path.write_bytes(pack(">hI", 1, kwire.crc32c(body)) + body)
    return path


class Log:
    """A partition as a broker writes it, made at random: segments, indexes, snapshots; what read_committed gives.

    visible: the offsets of the records that are not in aborted or open transactions; open: those transactions.
    """

    def __init__(self, folder: Path, dice: Random, segments: int = 4, batches: int = 25, producers: int = 4) -> None:
        self.folder, self.visible, self.open = folder, [], {}
        self.paths: list[Path] = []
        offset, held = 0, {}
        known: dict[int, int] = {}
        for number in range(segments):
            base, parts, entries = offset, [], []
            if number:
                producer_snapshot(folder, base, known)
            for _ in range(dice.randint(1, batches)):
                producer, count = dice.randrange(producers), dice.randint(1, 3)
                if dice.random() < 0.2:
                    parts.append(batch(offset, count, size=dice.choice((5, 300))))
                    self.visible += range(offset, offset + count)
                elif producer in self.open and dice.random() < 0.35:
                    count, commit = 1, dice.random() < 0.5
                    parts.append(marker(offset, producer, commit))
                    first, rows = self.open.pop(producer), held.pop(producer)
                    known[producer] = -1
                    if commit:
                        self.visible += rows
                    else:
                        entries.append((producer, first, offset, offset + 1))
                else:
                    parts.append(in_transaction(offset, producer, count, size=dice.choice((5, 300))))
                    known[producer] = self.open.setdefault(producer, offset)
                    held.setdefault(producer, []).extend(range(offset, offset + count))
                offset += count
            self.paths.append(write_segment(folder, base, parts, every=dice.randint(1, 4)))
            if entries:
                aborted_index(self.paths[-1], entries)
        self.end = offset
        if dice.random() < 0.5:  # a clean shutdown
            producer_snapshot(folder, offset, known)
        self.visible.sort()
