"""What tests see of the reads of local files: the fixture reads counts them."""

from __future__ import annotations

from typing import NamedTuple


class Read(NamedTuple):
    """A read of a local file: the byte at which it begins, and how many bytes it gave."""

    start: int
    size: int


class Reads(list[Read]):
    """The reads so far, in order."""

    @property
    def bytes(self) -> int:
        """The bytes of all of them."""
        return sum(read.size for read in self)
