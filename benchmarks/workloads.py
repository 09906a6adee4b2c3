"""The input of all contestants: made from a seed, the same on every machine."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import kwire

START = 1_700_000_000_000
WORDS = [f"{kind}-{i}" for kind in ("user", "order", "page", "click", "eu-west", "product") for i in range(60)]


@dataclass(frozen=True)
class Workload:
    """Record batches of one kind: sizes of value, key and batch (in bytes, before compression), headers, codec."""

    name: str
    value: int
    key: int
    headers: int = 0
    codec: str = "none"
    batch: int = 16 << 10
    total: int = 8 << 20  # bytes of uncompressed batches in one pass

    def rows(self) -> list[list[tuple[Any, ...]]]:
        """The records of each batch as build_batch takes them. Values are text that compresses about like JSON."""
        return _rows(self)

    def batches(self) -> list[bytes]:
        """The record batches, with offsets ascending from 0."""
        return _batches(self)

    def data(self) -> bytes:
        """All batches as one buffer."""
        return b"".join(self.batches())

    def records(self) -> int:
        """The number of records in a pass."""
        return sum(len(rows) for rows in self.rows())


@cache
def _rows(work: Workload) -> list[list[tuple[Any, ...]]]:
    dice = random.Random(f"{work.value}/{work.key}/{work.headers}/{work.batch}")
    size = work.value + work.key + 10 + work.headers * 20
    per_batch = max(1, work.batch // size)
    rows, now = [], START
    for _ in range(max(1, work.total // (per_batch * size))):
        batch = []
        for _ in range(per_batch):
            text = ",".join(dice.choices(WORDS, k=work.value // 6 + 1)) + f"{dice.getrandbits(64):x}"
            value = text.encode()[-work.value :].rjust(work.value, b" ")
            key = f"k{dice.getrandbits(64):020d}".encode()[: work.key].ljust(work.key, b".")
            headers = [(f"header-{i}", f"{dice.getrandbits(32):08x}".encode()) for i in range(work.headers)]
            batch.append((now, key, value, headers))
            now += dice.randrange(3)
        rows.append(batch)
    return rows


@cache
def _batches(work: Workload) -> list[bytes]:
    batches, offset = [], 0
    for rows in work.rows():
        batches.append(kwire.build_batch(rows, codec=work.codec, base_offset=offset))
        offset += len(rows)
    return batches


W1 = Workload("W1", value=100, key=10)
W2 = Workload("W2", value=1024, key=10, headers=2)
# 1 MiB of rows, new objects as in a producer; 8 MiB of rows as objects do not fit the CPU's caches
W4 = [*(replace(work, total=1 << 20) for work in (W1, W2)), replace(W2, name="W2 8 MiB")]
W3 = [
    Workload(f"W3 {codec} {name}", value=100, key=10, codec=codec, batch=size)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    for size, name in ((16 << 10, "16 KiB"), (1 << 20, "1 MiB"))
]
ALL = {work.name: work for work in (W1, W2, *W3)}
