"""Log directories made for a test: batches built by kwire, in segments as a broker writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kwire

START = 1_700_000_000_000


def batch(base: int, count: int = 3, **options: Any) -> bytes:
    """A batch of count records from offset base on; record n is at START + n ms, key k<n>, value v<n>."""
    records = [(START + n, b"k%d" % n, b"v%d" % n) for n in range(base, base + count)]
    return kwire.build_batch(records, base_offset=base, **options)


def marker(base: int, producer_id: int, commit: bool) -> bytes:
    key = bytes([0, 0, 0, int(commit)])
    return kwire.build_batch([(START + base, key, bytes(6))], base_offset=base, producer_id=producer_id,
                             producer_epoch=0, transactional=True, control=True)


def transaction(base: int, producer_id: int, count: int = 2) -> bytes:
    return batch(base, count, producer_id=producer_id, producer_epoch=0, base_sequence=0, transactional=True)


def segment(folder: Path, base: int, *batches: bytes) -> Path:
    """A segment file named by its base offset."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


def damaged(data: bytes, at: int) -> bytes:
    """The same bytes with one changed."""
    changed = bytearray(data)
    changed[at] ^= 0xFF
    return bytes(changed)


def without_length(data: bytes) -> bytes:
    """A batch with length 0."""
    return data[:8] + bytes(4) + data[12:]
