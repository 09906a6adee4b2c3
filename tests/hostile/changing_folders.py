"""A log directory that changes while it is read: python -m tests.hostile.changing_folders --seconds N [--seed S].

Each reader and command reads a partition of three segments with all files beside them. At one of its calls that list a
folder, open a file or read of it, something happens to one of the files: it is truncated, rewritten, replaced, deleted,
renamed, gets longer, or becomes a folder, a pipe, a device or a link to itself; or all files go. What must come is a
value, KwireError or OSError; of commands a code of docs/exit-codes.md. Nobody waits, no descriptor stays open, and no
partial output is left.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kwire
from kwire.cli import main as command
from kwire.storage import LogDirectory, LogSegment, discover, salvage_log
from kwire.storage.places import filesystem
from tests.hostile.rounds import numbers, run, seeded, watched
from tests.storage.making import aborted_index, batch, in_transaction, marker, producer_snapshot, write_segment

PATIENCE = 60.0
MOST_STEPS = (1, 2, 3, 12, 80)  # the change comes at most at so many calls


def made(folder: Path, dice: random.Random) -> Path:
    """A partition of three segments, with transactions."""
    offset = 0
    for _ in range(3):
        base, batches = offset, []
        for number in range(12):
            if number % 4 == 3:
                batches.append(marker(offset, 1, number % 2 == 0))
                offset += 1
            else:
                size = dice.choice((20, 3000, 40_000))
                batches.append(in_transaction(offset, 1, size=size) if number % 2 else batch(offset, size=size))
                offset += 3
        aborted_index(write_segment(folder, base, batches), [(1, base, base + 5, base)])
    producer_snapshot(folder, offset, {})
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    return folder


def replaced(path: Path, by: Callable[[Path], object]) -> None:
    """Something else under the name."""
    path.unlink()
    by(path)


def removed(path: Path) -> None:
    """All of the partition."""
    shutil.rmtree(path.parent)


CHANGES: dict[str, Callable[[Path, random.Random], object]] = {
    "truncated": lambda path, dice: os.truncate(path, dice.randrange(path.stat().st_size + 1)),
    "emptied": lambda path, _: os.truncate(path, 0),
    "rewritten": lambda path, dice: path.write_bytes(dice.randbytes(path.stat().st_size)),
    "replaced": lambda path, dice: replaced(path, lambda name: name.write_bytes(dice.randbytes(dice.randrange(5000)))),
    "deleted": lambda path, _: path.unlink(),
    "renamed": lambda path, _: path.rename(f"{path}.deleted"),
    "longer": lambda path, _: path.write_bytes(path.read_bytes() + batch(500, size=5000)),
    "zeros": lambda path, _: os.truncate(path, path.stat().st_size + 100_000),
    "a folder": lambda path, _: replaced(path, Path.mkdir),
    "a pipe": lambda path, _: replaced(path, os.mkfifo),
    "a loop": lambda path, _: replaced(path, lambda name: name.symlink_to(name.name)),
    "a device": lambda path, _: replaced(path, lambda name: name.symlink_to("/dev/zero")),
    "all gone": lambda path, _: removed(path),
}

def sought(segment: LogSegment) -> None:
    """Places in a segment."""
    segment.seek(15)
    segment.seek_time(1_700_000_000_150)
    segment.split(9000)
    segment.boundary(3000)
    segment.tail  # noqa: B018


READERS: dict[str, Callable[[str, str], object]] = {
    "discover": lambda folder, _: discover(folder),
    "read": lambda folder, _: list(LogDirectory(folder).read(committed=True)),
    "verify": lambda folder, _: LogDirectory(folder).verify(),
    "batches": lambda _, path: list(LogSegment(path).batches(errors="keep")),
    "columns": lambda _, path: LogSegment(path).columns(committed=True),
    "seek": lambda _, path: sought(LogSegment(path)),
    "transactions": lambda _, path: LogSegment(path).transactions(),
    "ends": lambda _, path: LogSegment(path).ends_before(1 << 50),
    "stats": lambda _, path: LogSegment(path).stats(),
    "salvage": lambda folder, _: salvage_log(folder, None),
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "log ls": (), "log show": (), "log show, last": ("--tail", "2"), "log show, committed": ("--committed",),
    "log show, range": ("--start-offset", "20", "--end-offset", "60"), "log stats": (), "log verify": (),
    "log whatif": (), "log to-parquet": ("--committed", "-o", "OUT.parquet"),
    "log export": ("--to", "csv", "-o", "OUT.csv"), "log salvage": ("-o", "OUT"),
}  # fmt: skip


class Meanwhile:
    """Calls work() at the n-th listing, opening or reading of files in a folder, once."""

    def __init__(self, folder: Path) -> None:
        self.left = 0
        self._folder = f"{folder}/"
        self._work: Callable[[], object] | None = None
        sys.addaudithook(self._audit)
        read_piece = vars(filesystem)["read_piece"]

        def counted(*arguments: Any) -> memoryview:
            self._step()
            piece: memoryview = read_piece(*arguments)
            return piece

        vars(filesystem)["read_piece"] = counted

    def at(self, step: int, work: Callable[[], object] | None) -> None:
        """Call it at that step from now on; None: never."""
        self.left, self._work = step, work

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir") and f"{arguments[0]}/".startswith(self._folder):
            self._step()

    def _step(self) -> None:
        self.left -= 1
        if self._work is not None and self.left <= 0:
            work, self._work = self._work, None
            with contextlib.suppress(FileNotFoundError):
                work()


def tried(name: str, folder: Path, out: Path) -> str:
    """What came of a reader or command."""
    if name in READERS:
        try:
            READERS[name](str(folder), str(folder / f"{0:020}.log"))
        except (kwire.KwireError, OSError) as error:
            return type(error).__name__
        return "a value"
    errors, text = io.StringIO(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    arguments = [word.replace("OUT", str(out / "o")) for word in COMMANDS[name]]
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(errors):
        code = command([*name.partition(",")[0].split(), *arguments, str(folder)])
    said = errors.getvalue()
    assert code in (0, 1, 2) and "Traceback" not in said, f"exit {code}, {said[-900:]}"
    return f"exit {code}"


def rounds(seconds: float, seed: int, least: int) -> Counter[str]:
    """Changes until the time is over, at least so many; what came of them."""
    counts = Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kwire-changing.") as top:
        place, out = Path(top, "in", "t-0"), Path(top, "out")
        meanwhile = Meanwhile(place.parent)
        for number in numbers(seconds, least):
            dice = random.Random(seed * 1_000_000 + number)
            for folder in (place.parent, out):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
            files = sorted(made(place, dice).iterdir())
            chosen = [path for path in files if path.suffix == ".log"] if dice.random() < 0.6 else files
            path, how, name = dice.choice(chosen), dice.choice([*CHANGES]), dice.choice([*READERS, *COMMANDS])
            step = dice.randint(1, dice.choice(MOST_STEPS))
            before = len(os.listdir("/proc/self/fd"))
            with watched(PATIENCE, f"{name}, {path.name} {how} at step {step}: --seed {seed}, round {number}"):
                meanwhile.at(step, lambda path=path, how=how, dice=dice: CHANGES[how](path, dice))  # type: ignore[misc]
                counts[tried(name, place, out)] += 1
                meanwhile.at(0, None)
                assert len(os.listdir("/proc/self/fd")) <= before + 1, "descriptors stay open"
                assert not [left for left in out.rglob("*") if "partial" in left.name], [*out.rglob("*")]
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Rounds until the time is over."""
    return run(seeded(__doc__), arguments, lambda given: rounds(given.seconds, given.seed, given.least),
               "changes of folders: nothing found")


if __name__ == "__main__":
    sys.exit(main())
