"""Contestants: each loads a workload, runs passes over it on request, and measures itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks.messages import MessageWorkload
from benchmarks.workloads import Workload

Work = Workload | MessageWorkload


class Absent(Exception):
    """A peer that cannot run here; the text says why and how to install it."""


@dataclass(frozen=True)
class Slice:
    """The measurement of some passes: nanoseconds, items in a pass, and a check value of the work done."""

    wall: int
    cpu: int
    items: int
    check: int
    passes: int


class Contestant(Protocol):
    """A program that does kinds of work: decode, encode, crc32c-16k, crc32c-1m, message-decode, message-encode,
    message-columns."""

    name: str
    works: tuple[str, ...]

    def load(self, workload: Work, path: Path) -> None:
        """Load a workload; path is a file with its data."""

    def run(self, work: str, passes: int) -> Slice:
        """Do the work `passes` times."""

    def close(self) -> None:
        """End its processes."""


class InProcess:
    """A contestant in this Python: prepare(workload) gives a function that does one pass -> (items, check)."""

    def __init__(self, name: str, **works: Callable[[Any], Callable[[], tuple[int, int]]]) -> None:
        self.name = name
        self._works = {work.replace("_", "-"): prepare for work, prepare in works.items()}
        self.works = tuple(self._works)
        self._ready: dict[str, Callable[[], tuple[int, int]]] = {}
        self._workload: Work | None = None

    def load(self, workload: Work, path: Path) -> None:
        self._workload, self._ready = workload, {}

    def run(self, work: str, passes: int) -> Slice:
        if work not in self._ready:
            assert self._workload is not None
            self._ready[work] = self._works[work](self._workload)
        run_pass = self._ready[work]
        items_check = (0, 0)
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        for _ in range(passes):
            items_check = run_pass()
        return Slice(time.perf_counter_ns() - wall, time.process_time_ns() - cpu, *items_check, passes)

    def close(self) -> None:
        self._ready = {}


class Child:
    """A contestant in its own process, with the commands "load PATH" and "run WORK PASSES" on stdin and stdout."""

    def __init__(self, name: str, works: tuple[str, ...], command: list[str], warm_up: int = 0) -> None:
        self.name, self.works = name, works
        self._warm_up, self._warm = warm_up, set[Any]()
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._loaded = self._of = ""

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} exited with {self._process.wait()} at {line!r}")
        return answer.strip()

    def load(self, workload: Work, path: Path) -> None:
        self._loaded = workload.name
        self._of = f":{workload.message}:{workload.version}" if isinstance(workload, MessageWorkload) else ""
        self._ask(f"load {path}")

    def run(self, work: str, passes: int) -> Slice:
        if (self._loaded, work) not in self._warm:  # until its JIT compiler has finished
            self._warm.add((self._loaded, work))
            if self._warm_up:
                self._ask(f"run {work}{self._of} {self._warm_up}")
        wall, cpu, items, check = map(int, self._ask(f"run {work}{self._of} {passes}").split())
        return Slice(wall, cpu, items, check, passes)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def build_folder(name: str) -> Path:
    """A folder outside the tree for the output of a toolchain."""
    folder = Path(os.environ.get("KWIRE_CACHE", Path.home() / ".cache" / "kwire")) / "peers" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def tool(command: str, package: str) -> str:
    """The path of a build tool. Raises Absent with the package to install."""
    path = shutil.which(command)
    if path is None:
        raise Absent(f"{command} is missing: apt-get install -y {package}")
    return path


def build(command: list[str], cwd: Path, **environment: str) -> None:
    """Run a build. Raises Absent with the end of its output if it fails."""
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        raise Absent(f"{' '.join(command[:2])} failed: {(done.stderr or done.stdout)[-800:]}")
