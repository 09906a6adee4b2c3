"""Commands that write, with a failure at each call that changes a file: python -m tests.hostile.failing_calls.

Each call to the system (write, fsync, rename, link, unlink, mkdir, ...) in turn fails, as on a full disk, or is where
Ctrl-C comes or the process is killed; a library that is loaded before Python (failing_calls.c) does it, in a child for
each. What must hold: the target is what it was or complete, and after a failure or Ctrl-C nothing else is left; the
exit code is not 0 unless the target is complete; the error is one line.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import hashlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from tests.hostile.sanitized import ROOT, before
from tools import places

HERE = Path(__file__).parent
ID = "AAAAAAAAAAAAAAAAAAAAAQ"


class Failure(NamedTuple):
    """What happens at a call: an errno, or a signal."""

    error: int = 0
    ending: int = 0


FAILURES = {
    "full disk": Failure(errno.ENOSPC), "bad disk": Failure(errno.EIO), "no permission": Failure(errno.EACCES),
    "Ctrl-C": Failure(ending=signal.SIGINT), "killed": Failure(ending=signal.SIGKILL),
}  # fmt: skip
COMMANDS = {
    "csv": ("log", "export", "IN/logs", "-o", "OUT/x.csv"),
    "forced": ("log", "export", "IN/logs", "-o", "OUT/old.csv", "--force"),
    "arrow": ("log", "export", "IN/logs", "-o", "OUT/x.arrow"),
    "parquet": ("log", "to-parquet", "IN/logs", "OUT/x.parquet"),
    "dataset": ("log", "export", "IN/logs", "-o", "OUT/set", "--partition-by", "topic,partition", "--to", "csv"),
    "salvage": ("log", "salvage", "IN/bad", "OUT/clean"),
    "downgrade": ("snapshot", "downgrade", "IN/meta", "OUT/x.checkpoint", "--metadata", "3.9", "--unsafe"),
    "format": ("storage", "format", "-c", "IN/server.properties", "-t", ID),
}


class Broken(AssertionError):
    """A command that left something half-written, or did not say what happened."""


class Ended(NamedTuple):
    """How a command ended. code: None where it was killed; calls: those that change files."""

    code: int | None
    calls: int
    error: str
    files: dict[str, str]


def library() -> Path:
    """failing_calls.c compiled; kept by content."""
    source = HERE / "failing_calls.c"
    target = places.cache() / f"failing-calls-{places.digest(source.read_bytes())}.so"
    if not target.exists():
        fresh = target.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", str(source), "-o",
                        str(fresh), "-ldl"], check=True)  # fmt: skip
        fresh.rename(target)
    return target


def inputs(folder: Path) -> None:
    """What the commands read."""
    from tests.storage.making import batch, write_segment
    from tests.storage.metadata.records import Cluster, write_log

    write_segment(folder / "logs" / "t-0", 0, [batch(base) for base in range(0, 30, 3)])
    path = write_segment(folder / "bad" / "t-0", 0, [batch(base) for base in range(0, 30, 3)])
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    write_log(folder / "meta", list(Cluster(1).records(60)))
    out = folder.parent / "out"
    (folder / "server.properties").write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:9093\n"
        "controller.listener.names=C\nlisteners=PLAINTEXT://:9092,C://:9093\n"
        f"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,C:PLAINTEXT\nlog.dirs={out}/kafka\n")


def files_of(folder: Path) -> dict[str, str]:
    """Every file and folder below a folder -> what is in it; names that a run makes up as one."""
    return {str(path.relative_to(folder)): "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))}


def ran(preloaded: Any, command: str, place: Path, number: int, failure: Failure) -> Ended:
    """One run of a command in a child."""
    from kwire.cli import main

    out = place / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    (out / "old.csv").write_bytes(b"old")
    words = [word.replace("IN/", f"{place}/in/").replace("OUT/", f"{out}/") for word in COMMANDS[command]]
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.alarm(60)
            text = io.StringIO()
            with redirect_stdout(io.StringIO()), redirect_stderr(text):
                preloaded.calls_begin(number, failure.error, failure.ending, 0)
                code = main(words)
            calls = preloaded.calls_end()
            os.write(writing, f"{code} {calls} {text.getvalue()[-3000:]}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        told = stream.read().decode()
    os.waitpid(child, 0)
    if not told:
        return Ended(None, 0, "", files_of(out))
    code_text, calls_text, error = told.split(" ", 2)
    return Ended(int(code_text), int(calls_text), error, files_of(out))


def judged(command: str, name: str, number: int, ended: Ended, before: dict[str, str], whole: Ended) -> None:
    """Raises Broken."""
    where = f"{command}, {name} at call {number}"
    seen = {path: content for path, content in ended.files.items()
            if not any(part.startswith(".") for part in Path(path).parts)}
    kept = all(seen.get(path) == content for path, content in before.items())
    if seen.keys() != before.keys() and seen.keys() != whole.files.keys():
        raise Broken(f"{where}: half-written: {sorted(seen)}")
    if ended.code is None:
        if name != "killed":
            raise Broken(f"{where}: the process ended")
        return
    if seen != ended.files:
        raise Broken(f"{where}: left behind: {sorted(ended.files.keys() - seen.keys())}")
    if ended.code == whole.code and "kwire: " not in ended.error:
        if seen.keys() != whole.files.keys() or _empty(seen) != _empty(whole.files):
            raise Broken(f"{where}: exit code {ended.code}, but not written")
        return
    if not kept and command != "forced":
        raise Broken(f"{where}: an older file has changed")
    if "Traceback" in ended.error or "unexpected" in ended.error or (ended.code != 0 and not ended.error.strip()):
        raise Broken(f"{where}: exit code {ended.code}: {ended.error[-600:]}")
    if name == "Ctrl-C" and ended.code != 130:
        raise Broken(f"{where}: exit code {ended.code}")


def _empty(files: dict[str, str]) -> set[str]:
    """The files of files_of() in which nothing is."""
    return {path for path, content in files.items() if content == hashlib.sha256(b"").hexdigest()}


def rounds(preloaded: Any, only: list[str], share: int) -> int:
    """How many runs there were: each command with each failure at every `share`th call. Raises Broken."""
    from kwire.cli import main

    count = 0
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        (place / "in").mkdir()
        inputs(place / "in")
        for command in only or COMMANDS:
            (place / "out").mkdir(exist_ok=True)
            words = [word.replace("IN/", f"{place}/in/").replace("OUT/", f"{place}/out/") for word in COMMANDS[command]]
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                main(words)  # imports what it needs once, here
            whole = ran(preloaded, command, place, 1 << 40, Failure())
            if whole.code not in (0, 1) or not whole.calls:
                raise Broken(f"{command}: {whole}")
            before = {"old.csv": hashlib.sha256(b"old").hexdigest()}
            for turn, (title, failure) in enumerate(FAILURES.items()):
                for number in range(turn % share, whole.calls, share):
                    judged(command, title, number, ran(preloaded, command, place, number, failure), before, whole)
                    count += 1
    return count


def preloaded() -> Any:
    """The library, in a process that was started with it."""
    found = ctypes.CDLL(str(library()))
    found.calls_begin.argtypes = ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_int
    found.calls_end.restype = ctypes.c_long
    return found


def run_preloaded(
    harness: str, about: str | None, choices: Collection[str], rounds: Callable[[Any, list[str], int], int],
    found: str, arguments: list[str] | None,
) -> int:
    """Run a harness, tests.hostile.HARNESS, with the library loaded before Python; found: what it says at its end."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], choices=choices)
    parser.add_argument("--share", type=int, default=1, help="Only every Nth call.")
    given = parser.parse_args(arguments)
    if str(library()) not in os.environ.get("LD_PRELOAD", ""):
        environment = os.environ | {"LD_PRELOAD": before(library())}
        command = [sys.executable, "-m", f"tests.hostile.{harness}", *sys.argv[1:]]
        return subprocess.run(command, env=environment, cwd=ROOT).returncode
    print(f"{rounds(preloaded(), given.only, given.share)} failures, {found}")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run it."""
    return run_preloaded("failing_calls", __doc__, COMMANDS, rounds, "nothing half-written", arguments)


if __name__ == "__main__":
    sys.exit(main())
