"""Bombs through the readers of batches: refused as too large, with little more memory than the limit."""

from __future__ import annotations

import subprocess
import sys
import zlib

import pytest

from kwire.compression import decompress
from tests.hostile.bombs import BOMBS
from tests.hostile.sanitized import ROOT

LIMIT = 64 << 20


def growth(name: str, magic: int, reader: str) -> tuple[str, int]:
    """What the child raised, and by how many bytes its memory grew at most."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.hostile.bombs", name, str(magic), reader],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2000:]
    error, grown, _ = ran.stdout.rsplit(" ", 2)
    return error, int(grown)


CASES = [
    *((name, 2, reader) for name in BOMBS for reader in ("records", "views")),
    *((name, magic, "columns") for name in ("gzip", "snappy blocks", "lz4") for magic in (0, 1)),
]


@pytest.mark.parametrize(("name", "magic", "reader"), CASES)
def test_a_bomb_is_refused_within_twice_the_limit(name: str, magic: int, reader: str) -> None:
    error, grown = growth(name, magic, reader)
    assert error == "LimitError"
    assert grown < 2 * LIMIT


@pytest.mark.parametrize("reader", ["loops", "loops, keep"])
@pytest.mark.parametrize(("magic", "smallest"), [(0, 26), (1, 34), (2, 7)])
def test_millions_of_records_in_a_small_batch_cost_what_they_unpack_to(magic: int, smallest: int, reader: str) -> None:
    """Heads of records are held by portions: kept for all of them they would take 48 bytes each."""
    read, grown = growth("swarm", magic, reader)
    assert int(read) == LIMIT // smallest
    assert grown < 1.25 * LIMIT


def test_members_that_are_many_cost_what_they_hold() -> None:
    """An inflater copies what follows its stream: 400,000 empty members would copy terabytes."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    member = packer.compress(b"") + packer.flush()
    assert len(decompress("gzip", member * 400_000, limit=10)) == 0
