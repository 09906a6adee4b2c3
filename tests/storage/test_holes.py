"""Files with holes, as of preallocated segments: holes are not read, and what is read is what zeros would give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kwire
from kwire.cli import main
from kwire.storage import LogSegment, salvage_log
from kwire.storage.batches.batch_header import end_of_data, end_of_zeros
from kwire.storage.places import filesystem
from kwire_c.log_scan import read_piece
from tests.storage.making import batch

pytestmark = pytest.mark.quick

HUGE = (1 << 31) - 1
BLOCK = 4096
BATCHES = b"".join(batch(3 * at) for at in range(200))


def sparse(path: Path, size: int, *pieces: tuple[int, bytes]) -> Path:
    """A file of that size that has only these bytes, each at its position."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
        for at, piece in pieces:
            file.seek(at)
            file.write(piece)
    if filesystem.LocalFile(str(path)).after_hole(size - 1) < size and not pieces:
        pytest.skip("the file system does not tell of holes")
    return path


LAYOUTS = {
    "empty": [],
    "preallocated": [(0, BATCHES)],
    "damaged": [(0, BATCHES), (HUGE - len(batch(600)), batch(600))],
}


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails if much of a file of HUGE bytes is read."""
    sizes: list[int] = []

    def counted(*args: Any) -> memoryview:
        piece = read_piece(*args)
        sizes.append(len(piece))
        return piece

    monkeypatch.setattr(filesystem, "read_piece", counted)
    yield
    assert sum(sizes) < HUGE // 4  # 64 MiB of a bad region are kept


@pytest.mark.parametrize("layout", LAYOUTS)
def test_holes_are_not_read(
    layout: str, tmp_path: Path, bytes_read: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reading 2 GiB takes seconds."""
    path = sparse(tmp_path / "t-0" / f"{0:020}.log", HUGE, *LAYOUTS[layout])
    segment = LogSegment(path)
    rows = segment.stats().records
    assert rows == {"empty": 0, "preallocated": 600, "damaged": 603}[layout]
    assert segment.verify()
    assert segment.boundary(HUGE // 2 + 5) > 0
    assert segment.split(HUGE // 4)
    assert segment.seek(10_000) == HUGE
    salvage_log(str(path), None)
    for command in (["ls"], ["stats"], ["whatif"], ["verify"]):
        assert main(["log", *command, str(path)]) < 2
    capsys.readouterr()
    assert main(["log", "show", "--tail", "3", str(path)]) == 0
    assert capsys.readouterr().out.count("| h=") == (3 if rows else 0)


def test_the_ends_of_zeros_and_data(tmp_path: Path) -> None:
    """Holes are of whole blocks: around each of them there may be zeros that are no hole."""
    dice = Random(1)
    for number in range(300):
        size = dice.randrange(1, 40 * BLOCK)
        pieces = [(dice.randrange(size), b"\0" * dice.randrange(BLOCK) + b"x") for _ in range(dice.randrange(4))]
        path = sparse(tmp_path / str(number), size, *(pieces or [(0, b"\0")]))
        data = path.read_bytes()
        file = filesystem.LocalFile(str(path))
        assert end_of_data(file) == len(data.rstrip(b"\0"))
        for at in (0, dice.randrange(len(data)), len(data) - 1):
            left = data[at:].lstrip(b"\0")
            assert end_of_zeros(file, at, len(data)) == len(data) - len(left)


def read(path: Path) -> list[object]:
    """What readers find in a segment."""
    segment = LogSegment(path)
    found: list[object] = []
    for one in segment.batches(errors="keep"):
        raw = one.raw if isinstance(one, kwire.BadBatch) else one.base_offset
        found.append((one.position, raw))
    found += [segment.tail, segment.verify(), segment.boundary(segment.size // 2), segment.split(5 * BLOCK)]
    columns = segment.column_batches(("offset",), start=segment.size // 3, guessed=True, errors="keep")
    return [*found, *([*piece["offset"].to_numpy()] for piece in columns), end_of_data(segment.file)]


def test_a_hole_reads_as_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches near the borders of blocks, whose first bytes are zeros, and damaged ones that go over holes."""
    dice = Random(2)
    for number in range(60):
        pieces, offset = [], 0
        for at in sorted(dice.sample(range(40), dice.randrange(1, 6))):
            content = batch(offset, size=dice.choice([0, 20, 6000]))
            if dice.random() < 0.2:
                content = content[:8] + dice.randbytes(4) + content[12:]
            if dice.random() < 0.2:
                content += bytes(dice.randrange(20))
            offset += 3
            pieces.append((max(0, at * BLOCK - dice.choice([0, 0, 1, 5, 8, 11, 12, 16, 17, 18])), content))
        path = sparse(tmp_path / str(number) / f"{0:020}.log", 45 * BLOCK, *pieces)
        with_holes = read(path)
        with monkeypatch.context() as patch:
            patch.setattr(filesystem, "_SEEK_DATA", None)
            assert read(path) == with_holes, number
