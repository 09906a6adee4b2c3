"""A fleet's folder that was damaged by hand: python -m tests.hostile.fleet_folders --seconds N [--seed S].

Files are truncated, changed (some with the right checksum), emptied, removed, replaced by a folder, a link to nothing
or to itself, a pipe; folders are removed or are of another cluster. A fleet then starts, with what is left, or says why
not: KwireError or OSError, of one line. It never takes long, and one that starts answers, and starts again.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import kwire
from kwire.fleet import Fleet
from kwire.net import connect_sync
from tests.hostile.fleet_disk import work
from tests.hostile.rounds import numbers, run, seeded, watched

PATIENCE = 60.0


def files_in(folder: Path) -> list[Path]:
    """Its files; of those that are alike, as the empty partitions of an internal topic, a few."""
    known = Counter[tuple[str, int]]()
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            kind = path.suffix or path.name, path.stat().st_size
            known[kind] += 1
            if known[kind] <= 3:
                found.append(path)
    return found


def with_checksum(data: bytearray) -> None:
    """Give the batches in a log the checksums of what they have now."""
    at = 0
    while at + 61 <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "big", signed=True) + 12
        if size < 61 or at + size > len(data):
            return
        data[at + 17 : at + 21] = kwire.crc32c(data[at + 21 : at + size]).to_bytes(4, "big")
        at += size


def damaged(folder: Path, dice: random.Random) -> str:
    """What was done to it."""
    path = dice.choice(files_in(folder))
    name = str(path.relative_to(folder))
    data = bytearray(path.read_bytes())
    how = dice.choice(("truncated", "changed", "changed", "changed", "resealed", "emptied", "removed", "a folder",
                       "a dead link", "a loop", "a pipe", "doubled", "without folder", "appended", "copied"))
    if how == "truncated" and data:
        path.write_bytes(data[: dice.randrange(len(data))])
    elif how in ("changed", "resealed") and data:
        for _ in range(dice.choice((1, 1, 3, 30))):
            data[dice.randrange(len(data))] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
        if how == "resealed":
            with_checksum(data)
        path.write_bytes(data)
    elif how == "emptied":
        path.write_bytes(b"")
    elif how == "appended":
        path.write_bytes(data + dice.choice((b"\0" * 100, b"\xff" * 30, b"no number here\n", dice.randbytes(200))))
    elif how == "doubled":
        path.write_bytes(data * 2)
    elif how == "copied":
        other = dice.choice(files_in(folder))
        name += f" from {other.relative_to(folder)}"
        path.write_bytes(other.read_bytes())
    elif how == "without folder":
        shutil.rmtree(path.parent)
    else:
        path.unlink()
        if how == "a folder":
            path.mkdir()
        elif how == "a dead link":
            path.symlink_to("nowhere")
        elif how == "a loop":
            path.symlink_to(path.name)
        elif how == "a pipe":
            os.mkfifo(path)
    return f"{name}: {how}"


def started(folder: Path) -> str:
    """The word "starts", or the class of the error that says why not."""
    try:
        with Fleet("4.4", data=folder, topics={"fresh": 1}) as fleet:
            for topic in fleet.cluster.topics.values():
                for partition in topic.partitions:
                    if partition.log.end_offset > partition.log.start_offset and not topic.name.startswith("__"):
                        with suppress(kwire.KwireError, OSError):
                            fleet.records(topic.name, partition.index)
            with connect_sync(fleet.bootstrap, timeout=20) as connection:
                assert connection.versions
    except (kwire.KwireError, OSError) as error:
        text = str(error)
        assert "\n" not in text and len(text) < 2000, text[:3000]
        return type(error).__name__
    return "starts"


def rounds(seconds: float, seed: int, least: int = 1) -> Counter[str]:
    """Damaged folders until the time is over, at least so many; what came of them."""
    counts = Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kwire-folders.") as name:
        whole, place = Path(name, "whole"), Path(name, "place")
        work(str(whole), lambda *_: None)
        for number in numbers(seconds, least):
            dice = random.Random(seed + number)
            shutil.copytree(whole, place)
            done = ""
            for _ in range(dice.choice((1, 1, 1, 2, 4))):
                if files_in(place):
                    done += damaged(place, dice) + "; "
            with watched(PATIENCE, f"{done}--seed {seed + number} --seconds 0"):
                first = started(place)
                counts[first] += 1
                if first == "starts":
                    again = started(place)
                    assert again == "starts", f"the second start: {again}"
            shutil.rmtree(place)
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Rounds until the time is over."""
    return run(seeded(__doc__), arguments, lambda given: rounds(given.seconds, given.seed, given.least),
               "damaged folders: nothing found")


if __name__ == "__main__":
    sys.exit(main())
