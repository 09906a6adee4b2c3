"""read_committed while a range is read: by its data, .txnindex, producer snapshots, and heads of what follows."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import pyarrow as pa
import pytest

from kwire.storage import LogDirectory, LogSegment, committed, discover
from kwire.storage.planned_log import LogEnd
from tests.storage.making import (
    Log,
)

pytestmark = pytest.mark.quick


def rows(segment: LogSegment, end: LogEnd | None, size: int) -> list[int]:
    """The offsets that read_committed gives, in ranges of about `size` bytes, each read as another task would."""
    found = []
    for one in segment.split(size):
        alone = LogSegment(segment.path)
        for piece in alone.column_batches(
            ("offset",), start=one.start, end=one.end, committed=True, transactions=end, rows=5
        ):
            found += pa.table(piece)["offset"].to_pylist()
    return found


def of_folder(folder: Path, size: int) -> list[int]:
    end: LogEnd = pickle.loads(pickle.dumps(LogEnd.of(discover(folder))))
    return [offset for path in sorted(folder.glob("*.log")) for offset in rows(LogSegment(path), end, size)]


def spoil(folder: Path, dice: random.Random) -> None:
    """Damage or delete some of the files beside the segments."""
    for path in sorted(folder.iterdir()):
        if path.suffix in (".txnindex", ".snapshot") and dice.random() < 0.4:
            data = bytearray(path.read_bytes())
            kind = dice.randrange(3)
            if kind == 0 and path.suffix == ".snapshot":
                path.unlink()
            elif kind == 0:  # without its .index, a missing .txnindex says nothing
                path.unlink()
                path.with_suffix(".index").unlink(missing_ok=True)
            elif kind == 1:  # in the middle of an entry
                path.write_bytes(data[: len(data) - dice.randrange(1, 8)])
            else:
                data[dice.randrange(2)] ^= 0x40  # the version
                path.write_bytes(data)


def check(folder: Path, seed: int) -> None:
    dice = random.Random(seed)
    log = Log(folder / "t-0", dice)
    whole = [offset for part in LogDirectory(folder)["t", 0].column_batches(("offset",), committed=True)
             for offset in pa.table(part)["offset"].to_pylist()]
    assert whole == log.visible
    assert [one.offset for one in LogDirectory(folder)["t", 0].read(committed=True)] == log.visible
    for size in (1, 200, 700, 1 << 20):
        assert of_folder(log.folder, size) == log.visible, size
    spoil(log.folder, dice)
    for size in (1, 300, 1 << 20):
        assert of_folder(log.folder, size) == log.visible, ("spoiled", size)
    for path in log.folder.iterdir():
        if path.suffix != ".log":
            path.unlink()
    for size in (1, 300, 1 << 20):
        assert of_folder(log.folder, size) == log.visible, ("heads", size)


@pytest.mark.parametrize("ahead", [0, 500, committed.AHEAD_BYTES])
@pytest.mark.parametrize("seed", range(8))
def test_indexes_snapshots_and_heads_give_the_same_rows(
    seed: int, ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed, "AHEAD_BYTES", ahead)
    check(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 500))
def test_many_logs_give_the_same_rows_every_way(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed, "AHEAD_BYTES", (0, 500, committed.AHEAD_BYTES)[seed % 3])
    check(tmp_path, seed)
