"""What the clients in Python share: the values of records, the lines of a consumer, and its end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable


def value(word: str, at: int) -> bytes:
    """The value of a record: its first word is its name."""
    return b"%s-%d some text that is long enough" % (word.encode(), at)


def say(values: Iterable[bytes]) -> None:
    """Print the names of records that were read, one a line."""
    lines = [one.split(b" ")[0].decode() for one in values]
    if lines:
        print("\n".join(lines), flush=True)


class End(threading.Event):
    """Set when standard input ends: a consumer then commits and leaves."""

    def __init__(self) -> None:
        super().__init__()
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self) -> None:
        sys.stdin.buffer.raw.read()  # type: ignore[attr-defined]
        self.set()
