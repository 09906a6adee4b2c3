"""Large segments: memory stays bounded, positions past 2 GiB are read with and without an index."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from struct import pack, pack_into

import pyarrow as pa
import pytest

import kwire
from kwire.storage import LogSegment
from tests.storage.making import batch, offsets

MIB = 1 << 20
LIMIT = 300 * MIB

READ = """
import sys
from kwire.storage import LogSegment
segment, how = LogSegment(sys.argv[1]), sys.argv[2]
count = 0
if how == "batches":
    for one in segment.batches():
        count += len(one)
        first = next(iter(one))
elif how == "records":
    for one in segment.read(end_offset=int(sys.argv[3])):
        count += 1
elif how == "keep":
    for one in segment.batches(errors="keep"):
        count += len(one)
elif how == "verify":
    assert not segment.verify()[:0]
else:
    held = []
    for one in segment.column_batches(views=how == "views"):
        count += len(one)
        held = [*held[-2:], one]
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(count, int(peak.split()[1]) * 1024)
"""


def make(path: Path, size: int) -> int:
    """A segment of about `size` bytes by repetition, every codec, 16 KiB and 1 MiB batches; returns its records."""
    maker = random.Random(7)
    words = [maker.randbytes(20) for _ in range(50)]
    blocks, rows = bytearray(), 0
    for at, codec in enumerate(["none"] * 60 + ["gzip", "snappy", "lz4", "zstd"] * 5):
        count = 140 if at % 20 else 9000
        records = [(rows + one, b"key%07d" % one, b"".join(maker.choices(words, k=5))) for one in range(count)]
        blocks += kwire.build_batch(records, base_offset=rows, codec=codec)
        rows += count
    times = -(-size // len(blocks))
    with path.open("wb") as file:
        for _ in range(times):
            file.write(blocks)
    return rows * times


def read(path: Path, how: str, *more: str) -> tuple[int, int]:
    run = subprocess.run(
        [sys.executable, "-c", READ, str(path), how, *more],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(kwire.__file__).parents[1],
    )
    count, peak = run.stdout.split()
    return int(count), int(peak)


@pytest.mark.parametrize("size", [1024 * MIB, pytest.param(10 * 1024 * MIB, marks=pytest.mark.soak)])
def test_memory_does_not_follow_the_size(tmp_path: Path, size: int) -> None:
    path = tmp_path / f"{0:020}.log"
    rows = make(path, size)
    try:
        for how in ("batches", "keep", "columns", "views"):
            count, peak = read(path, how)
            assert count == rows
            assert peak < LIMIT, f"{how}: {peak / MIB:.0f} MiB"
    finally:
        path.unlink()


def test_batches_that_decompress_a_thousandfold(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    one = kwire.build_batch([(at, None, bytes(1 << 20)) for at in range(16)], codec="zstd")
    assert len(one) < 100_000
    path.write_bytes(one * 100)
    for how in ("batches", "keep", "columns", "views"):
        count, peak = read(path, how)
        assert count == 1600
        assert peak < LIMIT, f"{how}: {peak / MIB:.0f} MiB"


def sparse(path: Path) -> list[int]:
    """Batches of 800 MiB of zeros, three of them, then small ones; returns their positions."""
    positions, at = [], 0
    huge = (800 << 20) + 123
    with path.open("wb") as file:
        for base in range(3):
            head = bytearray(kwire.build_batch([(base, None, b"")], base_offset=base)[:61])
            pack_into(">i", head, 8, huge - 12)
            file.seek(at)
            file.write(head)
            positions.append(at)
            at += huge
        for base in (3, 6, 9):
            file.seek(at)
            file.write(batch(base))
            positions.append(at)
            at += len(batch(base))
    return positions


@pytest.mark.quick
@pytest.mark.parametrize("indexed", [False, True])
def test_positions_past_2_gib(tmp_path: Path, indexed: bool) -> None:
    path = tmp_path / f"{0:020}.log"
    positions = sparse(path)
    assert os.stat(path).st_blocks * 512 < MIB
    if indexed:  # of the first 2 GiB, as Kafka's positions are 32 bit and signed
        path.with_suffix(".index").write_bytes(pack(">ii", 1, positions[1]))
    segment = LogSegment(path)
    assert positions[3] > 1 << 31
    assert [one.position for one in segment.headers()] == positions
    assert segment.seek(7) == positions[4]
    assert offsets(segment.read(start_offset=4)) == list(range(4, 12))
    assert [one.position for one in segment.batches(positions[3])] == positions[3:]
    columns = segment.columns(("offset", "batch_position"), start_offset=3)
    assert sorted(set(pa.table(columns)["batch_position"].to_pylist())) == positions[3:]
    assert [one.start for one in segment.split(900 << 20)] == [0, positions[3]]  # the checksums of zeros are wrong
    assert segment.tail is None


@pytest.mark.quick
def test_a_hole_is_one_bad_region(tmp_path: Path) -> None:
    path = tmp_path / "hole.log"
    after = 256 * MIB + 77
    with path.open("wb") as file:
        file.write(batch(0))
        file.seek(after)
        file.write(batch(3))
    segment = LogSegment(path)
    batches = list(segment.batches(errors="keep", max_batch_bytes=MIB))
    assert [one.position for one in batches] == [0, len(batch(0)), after]
    assert isinstance(batches[1], kwire.BadBatch)
