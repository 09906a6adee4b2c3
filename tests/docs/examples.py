"""The code blocks of README.md and docs/: which there are, how they are run, and whether they print what is shown.

    python -m tests.docs.examples [PAGE...]             run them, and list what differs
    python -m tests.docs.examples --write [PAGE...]     the same, and write what they printed into the pages
    python -m tests.docs.examples --not-run             list those that are not run, with the reason

A page is run from top to bottom in an empty folder, in which `tests` and `examples` are those of the checkout, and
`logs` and `captures` are what the tutorial unpacks. localhost:9092 is a broker of the newest release.

    ```console          lines after "$ " are commands of bash (">" goes on with one), the others what they print
    ```python           code; what it prints is in the ```text block right after it, or it prints nothing. An error
                        is shown as Python does, from "Traceback (most recent call last):" on
    ```json and others  a text; with <!-- file: NAME --> it is written to that file

"..." matches anything, in a line or as lines. Comments before a block: <!-- exit: 1 --> (its commands end with 1),
<!-- before: COMMAND --> (is run first), <!-- not run: REASON -->. <!-- not run on this page: REASON --> is for all.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Self

from tools import places
from tools.kafka import broker
from tools.places import ROOT

ADDRESS = "localhost:9092"  # of the broker in the examples
UNPACKS = "tests/data/golden.tar.xz"  # in a page that makes its own folder of logs
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCE = re.compile(r"^( *)(`{3,})(\S*).*$")
_NOTE = re.compile(r"^ *<!-- (not run|exit|file|before): (.*?) -->$")
_WHOLE_PAGE = re.compile(r"^<!-- not run on this page: (.*?) -->$", re.M)
_MARK = "--- end of command ---"


@dataclass
class Block:
    """A code block: first and last are the lines of its fences, counted from 0."""

    kind: str
    first: int
    last: int
    indent: str
    lines: list[str]
    notes: dict[str, str] = field(default_factory=dict)
    output: Block | None = None  # the text block that says what a python block prints
    is_output: bool = False

    @property
    def is_run(self) -> bool:
        """Whether it is code that runs."""
        return self.kind in ("console", "python") and "not run" not in self.notes


@dataclass
class Difference:
    """What a block shows and what it printed. lines: those of the page that show it (from, to)."""

    page: Path
    lines: tuple[int, int]
    code: str
    shown: list[str]
    printed: list[str]
    problem: str = ""

    def __str__(self) -> str:
        text = [f"{self.page.relative_to(ROOT)}, line {self.lines[0] + 1}: {self.problem or 'prints something else'}",
                *(f"    {line}" for line in self.code.splitlines()), "shown:", *(f"    {line}" for line in self.shown),
                "printed:", *(f"    {line}" for line in self.printed)]  # fmt: skip
        return "\n".join(text)


def blocks_of(page: Path) -> list[Block]:
    """The code blocks of a page in order; directives of MyST, ```{name}, are none."""
    text = page.read_text(encoding="utf-8")
    everywhere = _WHOLE_PAGE.search(text)
    found: list[Block] = []
    notes: dict[str, str] = {}
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        note, fence = _NOTE.match(lines[at]), _FENCE.match(lines[at])
        if note:
            notes[note[1]] = note[2]
        elif fence:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == fence[2]), 0)
            assert end, f"{page.name}, line {at + 1}: a code block without an end"
            if fence[3].startswith("{"):
                notes, at = {}, end + 1
                continue
            inside = [line.removeprefix(fence[1]) for line in lines[at + 1 : end]]
            found.append(Block(fence[3], at, end, fence[1], inside, notes))
            if everywhere:
                notes["not run"] = everywhere[1]
            notes, at = {}, end
        elif lines[at].strip():
            notes = {}
        at += 1
    for one, after in pairwise(found):
        if one.kind == "python" and after.kind == "text" and not any(map(str.strip, lines[one.last + 1 : after.first])):
            one.output, after.is_output = after, True
    return found


def commands_of(block: Block) -> list[tuple[str, list[str], int]]:
    """The commands of a console block: (what bash gets, the lines shown after it, the first of these in the page)."""
    found: list[tuple[str, list[str], int]] = []
    for number, line in enumerate(block.lines, block.first + 1):
        if line.startswith("$ "):
            found.append((line[2:], [], number + 1))
        elif found and line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [], number + 1)
        else:
            assert found, f"line {number + 1}: a console block begins with a command, after \"$ \""
            found[-1][1].append(line)
    return found


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether printed is what is shown; "..." in what is shown is any text, as a line any number of lines."""
    parts = []
    for line in shown:
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*")
        else:
            parts.append(".*".join(re.escape(piece) for piece in line.rstrip().split("...")) + r"\n")
    return re.fullmatch("".join(parts), "".join(f"{line.rstrip()}\n" for line in printed)) is not None


class Runner:
    """Runs pages. One Python process has all python blocks, so that Spark starts once; a broker starts when needed."""

    def __init__(self) -> None:
        self._things = ExitStack()
        self._folder = Path(self._things.enter_context(tempfile.TemporaryDirectory(prefix="kwire-docs-")))
        command = self._folder / "bin" / "kwire"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kwire "$@"\n')
        command.chmod(0o755)
        for name in ("python", "python3"):
            (command.parent / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
            (command.parent / name).chmod(0o755)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._things.close()

    def differences(self, page: Path) -> Iterator[Difference]:
        """Run a page; what differs from what it shows."""
        blocks = blocks_of(page)
        running = [block for block in blocks if block.is_run]
        if not running:
            return
        folder = self._place(blocks)
        real = self._broker if any(ADDRESS in line for block in running for line in block.lines) else ADDRESS

        def lines(text: str) -> list[str]:
            text = text.replace(real, ADDRESS).replace("127.0.0.1:" + real.partition(":")[2], ADDRESS)
            return [line.rstrip() for line in text.replace(str(folder), "").rstrip().splitlines()]

        for block in blocks:
            if "file" in block.notes:
                (folder / block.notes["file"]).write_text("\n".join([*block.lines, ""]).replace(ADDRESS, real))
            if not block.is_run:
                continue
            before = block.notes.get("before", ":").replace(ADDRESS, real)
            if block.kind == "python":
                if before != ":":
                    self._bash(before, folder)
                printed = lines(self._python(str(page), folder, "\n".join(block.lines).replace(ADDRESS, real)))
                shown, place = [], (block.last + 1, block.last + 1)
                if block.output:
                    shown, place = block.output.lines, (block.output.first + 1, block.output.last)
                if not matches(shown, printed):
                    problem = "" if block.output or not printed else "prints, and no text block after it shows what"
                    yield Difference(page, place, "\n".join(block.lines), shown, printed, problem)
                continue
            commands = commands_of(block)
            script = "\n".join(f'{command}\ncode=$?; echo; echo "{_MARK} $code"' for command, _, _ in commands)
            parts = re.split(rf"\n?{_MARK} (\d+)\n", self._bash(f"{before}\n{script.replace(ADDRESS, real)}", folder))
            expected = int(block.notes.get("exit", "0"))
            for (command, shown, first), printed_text, code in zip(commands, parts[::2], parts[1::2], strict=False):
                printed = lines(printed_text)
                problem = f"ends with {code}, not {expected}" if int(code) != expected else ""
                if problem or not matches(shown, printed):
                    yield Difference(page, (first, first + len(shown)), command, shown, printed, problem)
            if len(parts) < 2 * len(commands) + 1:
                yield Difference(page, (block.first, block.first), "", [], lines(parts[-1]), "ends the shell")

    def _place(self, blocks: list[Block]) -> Path:
        folder = self._folder / "page"  # one for all: Spark's processes stay in the folder in which they started
        folder.mkdir(exist_ok=True)
        for left in folder.iterdir():
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink()
        for name in ("tests", "examples"):
            (folder / name).symlink_to(ROOT / name)
        if not any(UNPACKS in line for block in blocks if block.is_run for line in block.lines):
            (folder / "logs").symlink_to(places.golden())
            (folder / "captures").symlink_to(self._captures)
        return folder

    def _bash(self, script: str, folder: Path) -> str:
        done = subprocess.run(["bash", "-c", script], cwd=folder, env=self._environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)  # fmt: skip
        return done.stdout

    def _python(self, page: str, folder: Path, code: str) -> str:
        worker = self._worker
        assert worker.stdin
        assert worker.stdout
        worker.stdin.write(json.dumps([page, str(folder), code]) + "\n")
        worker.stdin.flush()
        answer = worker.stdout.readline()
        assert answer, "the process of the python blocks has ended"
        return str(json.loads(answer))

    @cached_property
    def _environment(self) -> dict[str, str]:
        spark = ("spark.ui.enabled=false", "spark.driver.memory=700m", "spark.ui.showConsoleProgress=false",
                 "spark.log.level=ERROR", "spark.sql.shuffle.partitions=2", "spark.driver.host=127.0.0.1",
                 f"spark.sql.warehouse.dir={self._folder / 'warehouse'}")  # fmt: skip
        path = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        return {**os.environ, "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": ":".join(path),
                "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONWARNINGS": "ignore", "TZ": "UTC", "COLUMNS": "100",
                "NO_COLOR": "1",
                "PYSPARK_SUBMIT_ARGS": " ".join([*(f"--conf {one}" for one in spark), "pyspark-shell"])}  # fmt: skip

    @cached_property
    def _captures(self) -> Path:
        folder = self._folder / "captures"
        with tarfile.open(places.DATA / "pcap.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        return folder

    @cached_property
    def _worker(self) -> subprocess.Popen[str]:
        return self._things.enter_context(_ended(subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("python_blocks.py"))], cwd=self._folder, text=True,
            env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )))  # fmt: skip

    @cached_property
    def _broker(self) -> str:
        options = broker.Options("4.4.0", self._folder / "broker", heap="256m", c1=True)
        return self._things.enter_context(broker.start(options)).bootstrap


@contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    try:
        yield process
    finally:
        process.communicate(timeout=60)  # its stdin closes: it ends


def write(page: Path, found: list[Difference]) -> None:
    """Put what was printed into the page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for one in sorted(found, key=lambda one: one.lines, reverse=True):
        first, last = one.lines
        if one.problem.startswith("prints, and") and not one.printed[0].startswith("Traceback"):
            lines[first:last] = ["", "```text", *one.printed, "```"]
        elif not one.problem and not any(line.startswith("Traceback") for line in one.printed):
            lines[first:last] = one.printed
    page.write_text("\n".join([*lines, ""]), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--not-run", action="store_true")
    given = parser.parse_args(arguments)
    pages = [page.resolve() for page in given.pages] or PAGES
    if given.not_run:
        for page in pages:
            for block in blocks_of(page):
                if "not run" in block.notes:
                    print(f"{page.relative_to(ROOT)}:{block.first + 1}: {block.notes['not run']}")
        return 0
    code, began = 0, time.monotonic()
    with Runner() as runner:
        for page in pages:
            found = list(runner.differences(page))
            for one in found:
                print(one, end="\n\n", flush=True)
            if given.write and found:
                write(page, found)
            code |= bool(found)
            print(f"{page.relative_to(ROOT)}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} s of CPU", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
