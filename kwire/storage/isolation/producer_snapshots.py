"""The producer snapshots of a partition: when its transactions were ongoing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any

from kwire.errors import KwireError
from kwire.storage.isolation import transactions
from kwire.storage.side_files.checkpoints import ongoing_transactions, small_file

_KEPT = 64  # snapshots that stay in memory, with at most MOST_PRODUCERS transactions


class ProducerSnapshots:
    """The producer snapshots of a partition, each read when needed.

    A broker takes one when it rolls a segment, at the base offset of the new one, and when it shuts down. files: offset
    -> (path, bytes; -1: not known). One that is damaged, too large or gone is left out, as is one that too_new(offset)
    says, after it was read, to tell of more than is asked about.
    """

    def __init__(self, files: dict[int, tuple[str, int]], options: dict[str, Any] | None,
                 too_new: Callable[[int], bool]) -> None:
        self._files, self._options, self._too_new = files, options, too_new
        self._offsets = sorted(files)
        self._kept: dict[int, dict[int, int]] = {}

    def newest(self) -> tuple[int, dict[int, int]] | None:
        """(offset, first offsets of the transactions ongoing there by producer id) of the newest; None: there is none.
        """
        while self._offsets:
            offset = self._offsets[-1]
            ongoing = self._ongoing(offset)
            if ongoing is not None:
                return offset, ongoing
        return None

    def around(self, producer: int, offset: int) -> tuple[int | None, int | None]:
        """How long the producer's transaction around an offset went on: the offsets of two snapshots.

        (the first in which it has ended, the last in which it goes on), None where there is no such snapshot.
        """
        while True:
            try:
                return self._search(self._offsets, producer, offset)
            except _LeftOut:  # and again without it
                continue

    def _search(self, offsets: list[int], producer: int, offset: int) -> tuple[int | None, int | None]:

        def ended(at: int) -> bool:
            ongoing = self._ongoing(offsets[at])
            if ongoing is None:
                raise _LeftOut
            return not 0 <= ongoing.get(producer, -1) <= offset

        first = bisect_right(offsets, offset)
        if first == len(offsets):
            return None, None
        if ended(first):  # as nearly always
            return offsets[first], None
        if not ended(len(offsets) - 1):  # a transaction that hangs, or is still going on
            return None, offsets[-1]
        at = first + bisect_left(range(first, len(offsets)), True, key=ended)
        return offsets[at], offsets[at - 1]

    def _ongoing(self, offset: int) -> dict[int, int] | None:
        """The transactions ongoing at a snapshot's offset; None, and it is left out from then on, if unreadable."""
        kept = self._kept.get(offset)
        if kept is not None:
            return kept
        most = transactions.MOST_PRODUCERS
        path, size = self._files[offset]
        found: dict[int, int] | None
        try:
            found = ongoing_transactions(small_file(path, self._options, size), path, most)
        except (KwireError, FileNotFoundError, PermissionError):
            found = None
        if found is None or self._too_new(offset):
            self._offsets = [one for one in self._offsets if one != offset]
            return None
        if len(self._kept) >= _KEPT or sum(map(len, [*self._kept.values()])) + len(found) > most:
            self._kept = {}
        self._kept[offset] = found
        return found


class _LeftOut(Exception):
    """A snapshot was unreadable, and is no more in the list."""
