"""--on-error: what a command does at a damaged batch, and the count of what it skipped."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.storage import LogSegment

STOP, SKIP, REPORT = "stop", "skip", "report"


def on_error(default: str) -> Callable[..., Any]:
    """Add --on-error to a command, which gets it as on_error."""
    return click.option(
        "--on-error", type=click.Choice((STOP, SKIP, REPORT)), default=default, show_default=True,
        help="At a damaged batch stop, skip it, or report it on stderr and skip it. What was skipped is counted at the "
             "end; the exit code is then 1.")


class Damage:
    """The damaged batches that a command met.

    errors: "raise" or "keep", for what reads; the bad batches of "keep" go to take(). At the end finish() prints the
    count, and says whether there was damage.
    """

    def __init__(self, on_error: str) -> None:
        self.errors = "raise" if on_error == STOP else "keep"
        self._report = on_error == REPORT
        self.count = self._bytes = 0
        self._empty = 0  # files without one whole batch

    def take(self, bad: Any) -> None:
        """Count a BadBatch, and report it if that is wanted."""
        from kwire.storage.reading.segment_reader import bytes_of

        self.count += 1
        self._bytes += bytes_of(bad)
        if self._report:
            self._say(str(bad.error))

    def tail(self, segment: LogSegment, tail: tuple[int, int] | None) -> None:
        """Note the partial last batch of a segment: (position, bytes). It is damage only where no batch is before it.

        Zeros, as in a preallocated segment, are nothing to note.
        """
        from kwire.storage.places.filesystem import shown

        if tail is None:
            return
        position, left = tail
        if any(segment.file.read(position, position + min(left, 64))):
            self._empty += position == 0
            self._say(f"{shown(segment.path)}, byte {position}: {left:,} bytes of an incomplete last batch")

    def finish(self) -> bool:
        """Print the count of what was skipped; return whether there was damage."""
        if self.count:
            what = "damaged batch or region" if self.count == 1 else "damaged batches or regions"
            self._say(f"{self.count:,} {what} skipped, {self._bytes:,} bytes")
        return self.count > 0 or self._empty > 0

    def _say(self, text: str) -> None:
        sys.stdout.flush()
        print(f"kwire: {printable(text)}", file=sys.stderr)
