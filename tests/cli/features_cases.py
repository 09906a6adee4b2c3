"""Runs of `kwire features` and the recorded texts of kafka-features that they are compared with."""

from __future__ import annotations

import contextlib
import io
import json
import re
from functools import cache
from typing import Any

from kwire.cli import main
from tools import archives
from tools.features import ARCHIVE


@cache
def files() -> dict[str, bytes]:
    """The files of the archive."""
    return archives.read(ARCHIVE)


def rows(name: str) -> list[dict[str, Any]]:
    """The lines of one of its files."""
    return [json.loads(line) for line in files()[name].splitlines()]


def kwire_features(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `kwire features`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["features", *arguments])
    return code, out.getvalue(), err.getvalue()


def without_epoch(text: str) -> str:
    """The text without the epoch of the levels and the id of the controller that answered."""
    return re.sub(r"(Local controller|Broker) \d+", r"\1 N", re.sub(r"Epoch: \d+", "Epoch: N", text))
