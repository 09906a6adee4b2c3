"""Signals: Ctrl-C as a command is imported, and those that stop a command which runs until it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kwire.cli.signals import stopped
from tests.cli.test_log import ROOT

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def hang_up() -> Iterator[None]:
    """SIGHUP as it is where no nohup is."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


async def _is_stopped(number: int) -> bool:
    stop = stopped()
    os.kill(os.getpid(), number)
    for _ in range(10):
        await asyncio.sleep(0.01)
    return stop.is_set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_of_them(number: int) -> None:
    assert asyncio.run(_is_stopped(number))


@pytest.mark.parametrize("module", ["kwire.cli.run", "click", "kwire.cli.root", "kwire.cli.log"])
def test_ctrl_c_while_modules_are_imported(module: str) -> None:
    program = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from kwire.cli import main\n"
        "sys.exit(main(['log', 'ls', '/nowhere']))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr.lstrip("\n")) == (130, "", "kwire: interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_what_the_caller_ignores(number: signal.Signals) -> None:
    """SIGHUP by nohup; but SIGINT is ignored in all that a script runs in the background, and stops a tap there too."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        assert asyncio.run(_is_stopped(number)) == (number == signal.SIGINT)
    finally:
        signal.signal(number, before)


def test_ctrl_c_as_python_ends() -> None:
    program = (
        "import atexit, runpy, signal, sys\n"
        "atexit.register(signal.raise_signal, signal.SIGINT)\n"
        "sys.argv = ['kwire', 'log', 'ls', '/nowhere']\n"
        "runpy.run_module('kwire', run_name='__main__')\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert ran.returncode == 2 and ran.stderr.startswith("kwire: ") and len(ran.stderr.splitlines()) == 1


def test_ctrl_c_again_as_the_first_is_told() -> None:
    program = (
        "import runpy, signal, sys\n"
        "class Told:\n"
        "    def write(self, text): raise KeyboardInterrupt\n"
        "    def flush(self): pass\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'kwire.cli.run':\n"
        "            sys.stderr = Told()\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "sys.argv = ['kwire', 'releases']\n"
        "runpy.run_module('kwire', run_name='__main__')\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (ran.returncode, ran.stderr) == (130, "")
