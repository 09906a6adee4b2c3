"""Pipes for tests: each gives its bytes once, to one reader."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path


def pipe(path: Path, data: bytes, *, first: int = 0) -> Path:
    """A FIFO with a thread that writes data into it; first: bytes that are written on their own, before the rest."""
    os.mkfifo(path)

    def write() -> None:
        with suppress(BrokenPipeError), open(path, "wb", buffering=0) as file:
            if first:
                file.write(data[:first])
            rest = memoryview(data)[first:]
            while rest:
                rest = rest[file.write(rest) :]

    threading.Thread(target=write, daemon=True).start()
    return path
