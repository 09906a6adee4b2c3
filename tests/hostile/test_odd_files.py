"""In the place of each file of a log directory something else: a pipe, a device, a link to itself, a folder, zeros.

Whoever reads the directory gets a value or an error of kwire's or of files; nobody waits for a pipe that he did not
name, and nobody reads a device to its end.
"""

from __future__ import annotations

import io
import os
import random
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire.cli import main as command
from kwire.spark.source import KwireDataSource
from kwire.storage import ClusterImage, LogDirectory, LogSegment, read_side_file, salvage_log, storage_info, whatif
from kwire.storage.formatting import Formatter, FormatterError, ServerConfig
from tests.storage import making
from tests.storage.metadata.records import Cluster, write_log

pytestmark = pytest.mark.quick

HANG = 10  # seconds
ID = "AAAAAAAAAAAAAAAAAAAAAQ"
CONFIG = {
    "process.roles": "controller", "node.id": "1", "controller.listener.names": "C", "listeners": "C://localhost:9093",
    "controller.quorum.voters": "1@localhost:9093",
}  # fmt: skip


def zeros(path: str) -> None:
    with open(path, "wb") as file:
        file.truncate(300 << 20)


def bind(path: str) -> None:
    here = os.getcwd()
    os.chdir(os.path.dirname(path))  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.basename(path))
    finally:
        os.chdir(here)


ODD: dict[str, Callable[[str], object]] = {
    "pipe": os.mkfifo, "device": lambda path: os.symlink("/dev/zero", path), "folder": os.mkdir,
    "itself": lambda path: os.symlink(path, path), "nowhere": lambda path: os.symlink("/nowhere/x", path),
    "socket": bind, "zeros": zeros, "memory": lambda path: os.symlink("/proc/self/mem", path),
}  # fmt: skip
MORE = (
    "t-0/00000000000000000000.snapshot", "t-0/00000000000000000000.txnindex", "t-0/00000000000000009999.log",
    "t-0/00000000000000000000.log.gz", "t-1", "bootstrap.checkpoint", ".lock", ".kafka_cleanshutdown",
    "__cluster_metadata-0/00000000000000000003-0000000001.checkpoint",
)  # fmt: skip


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log directory with every kind of file."""
    top = tmp_path_factory.mktemp("logs")
    made = making.Log(top / "t-0", random.Random(3), segments=3, batches=6)
    making.aborted_index(made.paths[1], [])
    for name, text in (
        ("t-0/leader-epoch-checkpoint", "0\n1\n0 0\n"), ("t-0/partition.metadata", f"version: 0\ntopic_id: {ID}\n"),
        *((f"{kind}-checkpoint", "0\n1\nt 0 3\n") for kind in (
            "replication-offset", "log-start-offset", "recovery-point-offset", "cleaner-offset")),
        ("meta.properties", f"version=1\nnode.id=1\ncluster.id={ID}\ndirectory.id=AAAAAAAAAAAAAAAAAAAABQ\n"),
    ):  # fmt: skip
        (top / name).write_text(text)
    write_log(top, [*Cluster(1).records(40)])
    (top / "__cluster_metadata-0/quorum-state").write_text('{"leaderId":1,"leaderEpoch":2,"data_version":0}')
    return top


def files(top: Path) -> list[str]:
    return sorted({*(str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()), *MORE})


@contextmanager
def soon(what: str) -> Iterator[None]:
    """AssertionError if the block takes long."""

    def ring(*_: object) -> None:
        raise AssertionError(f"{what} hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(HANG)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def spark(kind: str, top: Path) -> None:
    """What Spark's source reads of it, without Spark."""
    source = KwireDataSource({"path": str(top), "kind": kind})
    reader = source.reader(source.schema())
    with suppress(ValueError):  # no such topic
        for part in reader.partitions():
            for _ in reader.read(part):
                pass


def readers(top: Path, out: Path) -> dict[str, Callable[[], object]]:
    """Name -> what reads the directory."""
    part, meta = top / "t-0", top / "__cluster_metadata-0"
    first = part / f"{0:020}.log"

    def segments() -> None:
        for partition in LogDirectory(top).partitions:
            partition.ongoing_transactions()
            for one in partition.segments:
                one.stats(), one.seek(5), one.transactions(), one.verify(), one.tail
                [record.offset for record in one.read(committed=True)]

    def side_files() -> None:
        for path in top.rglob("*"):
            if path.is_file():
                with suppress(kwire.KwireError, OSError):
                    read_side_file(path)

    def formatted() -> None:
        Formatter(ServerConfig(CONFIG | {"log.dirs": f"{top},{out / 'new'}"}), ID, ignore_formatted=True).run()

    made: dict[str, Callable[[], object]] = {
        "segments": segments, "side files": side_files, "formatted": formatted,
        "lone segment": lambda: list(LogSegment(first).read(committed=True)),
        "storage info": lambda: storage_info(ServerConfig(CONFIG | {"log.dirs": str(top)})),
        "whatif": lambda: whatif(LogDirectory(top).segments),
        "image": lambda: ClusterImage.read(top), "image of the folder": lambda: ClusterImage.read(meta),
    }  # fmt: skip
    for what in (top, part, first, meta):
        made[f"salvage {what.name}"] = lambda what=what: salvage_log(what)
        made[f"salvage {what.name} to"] = lambda what=what: salvage_log(what, out / what.name)
    for kind in ("records", "metadata"):
        made[f"spark {kind}"] = lambda kind=kind: spark(kind, top)
    for line in (
        ("log", "show", top, "--json"), ("log", "stats", top), ("log", "verify", top), ("log", "dump", part),
        ("log", "dump", first.with_suffix(".index")), ("log", "dump", first.with_suffix(".timeindex")),
        ("log", "show", part, "--batches"), ("snapshot", "show", top), ("log", "salvage", top),
    ):  # fmt: skip
        made[f"kwire {' '.join(map(str, line))}"] = lambda line=line: run(line)
    return made


def run(line: tuple[Any, ...]) -> None:
    """A command: it ends with a code of its own."""
    assert command([str(word) for word in line]) in (0, 1, 2)


def attempt(what: str, work: Callable[[], object]) -> str | None:
    """What is wrong, None if nothing is."""
    try:
        with soon(what), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            work()
    except (kwire.KwireError, OSError, FormatterError):
        return None
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{what}: {type(error).__name__}: {str(error)[:200]} ({os.path.basename(last.filename)}:{last.lineno})"
    return None


@pytest.mark.parametrize("odd", ODD)
def test_in_the_place_of_a_file(odd: str, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    dice = random.Random(f"{odd} {os.environ.get('KWIRE_SEED', 1)}")
    share = float(os.environ.get("KWIRE_SHARE", 0.06))
    broken: list[str] = []
    for name in files(sample):
        top, out = tmp_path / "logs", tmp_path / "out"
        shutil.rmtree(top, ignore_errors=True), shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(sample, top)
        out.mkdir()
        place = top / name
        place.unlink(missing_ok=True)
        ODD[odd](str(place))
        for what, work in readers(top, out).items():
            named = what.endswith(f"/{name}") or (name == f"t-0/{0:020}.log" and what.startswith(("lone", "salvage 0")))
            if named or dice.random() > share:
                continue
            found = attempt(f"{what}, where {name} is {odd}", work)
            broken += [] if found is None else [found.replace(str(tmp_path), "")]
        broken += [f"{path} is left" for path in out.rglob("*.partial")]
    assert not broken, "\n".join(broken)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
