"""Other programs: errors hold their output, or name the package that installs a missing one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class RecipeError(Exception):
    """A wheel that cannot be made or is invalid; the text says why, and what to install if something is missing."""


class NotHereError(RecipeError):
    """A target whose CPython cannot be found on this machine; its wheel is skipped unless it was asked for by name."""


def need(command: str, package: str) -> str:
    """The path of a command, or RecipeError with the Debian package to install."""
    path = shutil.which(command)
    if path is None:
        raise RecipeError(f"{command} is missing: apt-get install -y {package}")
    return path


def environment(changes: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without Python's variables, with this Python's commands first on PATH, and changes."""
    dropped = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**kept, "PATH": path, **changes}


def run(command: Sequence[str | Path], cwd: Path | None = None, /, **changes: str) -> str:
    """Run a command with changes to its environment; return its output. RecipeError with its output if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=environment(changes), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, umask=0o022,  # files get the same modes for every user
    )  # fmt: skip
    if done.returncode:
        raise RecipeError(f"{' '.join(words)[:500]} exited with {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


def module(name: str, *words: str | Path, cwd: Path | None = None, **changes: str) -> str:
    """Run a module of the extra `wheels` with this Python; return its output. RecipeError if it is not installed."""
    try:
        return run([sys.executable, "-m", name, *words], cwd, **changes)
    except RecipeError as error:
        if f"No module named {name}" in str(error):
            raise RecipeError(f"{name} is missing: pip install 'kwire[wheels]'") from None
        raise
