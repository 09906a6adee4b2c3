"""Other programs: run with their output kept for when they fail, and named with what installs them when missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class RecipeError(Exception):
    """A wheel cannot be made or is not right; the text says why, and what to install where something is missing."""


class NotHereError(RecipeError):
    """A target whose CPython this machine has no way to get; its wheel is left out unless it was asked for by name."""


def need(command: str, package: str) -> str:
    """The path of a command, or RecipeError that names the Debian package that brings it."""
    found = shutil.which(command)
    if found is None:
        raise RecipeError(f"{command} is missing: apt-get install -y {package}")
    return found


def environment(changes: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without what leads Python astray, this Python's commands first, with changes."""
    astray = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in astray}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**kept, "PATH": path, **changes}


def run(command: Sequence[str | Path], cwd: Path | None = None, /, **changes: str) -> str:
    """Runs a command with these environment variables; its output. RecipeError with all it said if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=environment(changes), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, umask=0o022,  # what is packed has the same modes whoever does it
    )  # fmt: skip
    if done.returncode:
        raise RecipeError(f"{' '.join(words)[:500]} ends with {done.returncode}:\n{done.stdout[-6000:]}")
    return done.stdout


def module(name: str, *words: str | Path, cwd: Path | None = None, **changes: str) -> str:
    """Runs a module of the extra `wheels` with this Python; its output. RecipeError names what is not installed."""
    try:
        return run([sys.executable, "-m", name, *words], cwd, **changes)
    except RecipeError as error:
        if f"No module named {name}" in str(error):
            raise RecipeError(f"{name} is missing: pip install 'kwire[wheels]'") from None
        raise
