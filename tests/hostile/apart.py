"""Cases that may hang or kill their process: each in a child, which goes on with the next as long as it lives."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import kwire
from tests.hostile.sanitized import ROOT

PATIENCE = int(os.environ.get("KWIRE_PATIENCE", 300))  # seconds for a case


class Unexpected(Exception):
    """What came is not what had to come."""


def expect(holds: bool, found: Any) -> None:
    """Raises Unexpected, with what was found, where it does not hold."""
    if not holds:
        raise Unexpected(str(found)[:500])


def refused(work: Callable[[], Any]) -> bool:
    """Whether an error of kwire's comes."""
    try:
        work()
    except kwire.KwireError:
        return True
    return False


def _resident(what: str) -> int:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(what))


def peak() -> int:
    """The most bytes that were resident since fresh_peak."""
    return _resident("VmHWM")


def fresh_peak() -> int:
    """Bytes that are resident now; peak counts from here."""
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _resident("VmRSS")


_notes: list[str] = []


def note(text: str) -> None:
    """A message about the running case."""
    _notes.append(text)


def child(one: Callable[[str], None]) -> int:
    """Runs the cases that the arguments name; a line for each that ended: its name, what broke (or null), a note."""
    for name in sys.argv[2:]:
        print(name, file=sys.stderr, flush=True)
        signal.alarm(PATIENCE)  # whose default action ends the process
        began, broken = time.process_time(), None
        try:
            one(name)
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            broken = f"{type(error).__name__}: {str(error)[:500]} ({os.path.basename(last.filename)}:{last.lineno})"
        signal.alarm(0)
        spent = f"{time.process_time() - began:8.2f} s  {name} {' '.join(_notes)}"
        _notes.clear()
        print(json.dumps([name, broken, spent]), flush=True)
    return 0


def run(module: str, names: list[str], seconds: float) -> dict[str, str | None]:
    """Name -> what broke, of the cases that began within the seconds."""
    found: dict[str, str | None] = {}
    left, until = list(names), time.monotonic() + seconds
    while left and time.monotonic() < until:
        with subprocess.Popen([sys.executable, "-m", module, "--child", *left], cwd=ROOT, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            for line in process.stdout:
                name, broken, spent = json.loads(line)
                found[name] = broken
                left.remove(name)
                if os.environ.get("KWIRE_VERBOSE"):
                    print(spent, file=sys.stderr, flush=True)
                if time.monotonic() > until:
                    process.kill()
            errors = process.stderr.read() if process.stderr else ""
        if left and process.returncode and (time.monotonic() < until or process.returncode == -signal.SIGALRM):
            name = left.pop(0)
            how = "hangs" if process.returncode == -signal.SIGALRM else f"died ({process.returncode})"
            found[name] = f"{how} {errors[-800:]}"
    return found


def report(found: dict[str, str | None]) -> int:
    """Prints what broke; the exit code."""
    broken = {name: what for name, what in found.items() if what is not None}
    for name, what in broken.items():
        print(f"{name}: {what}")
    print(f"{len(found)} cases: {len(broken)} broken")
    return 1 if broken else 0


def sample(name: str) -> None:
    """Cases that hang, die, fail and work, to see that they are distinguished."""
    if name == "hangs":
        signal.pause()
    elif name == "dies":
        os.abort()
    expect(name != "fails", "so it does")


if __name__ == "__main__":
    sys.exit(child(sample))
