"""The windows of a range, each with the transactional batches in it that read_committed leaves out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kwire.storage.isolation import transactions
from kwire.storage.isolation.transactions import (
    ABORT,
    COMMIT,
    Transactions,
    bounded,
    find_transactions,
    transactional,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from kwire.storage.batches.scanner import Window
    from kwire.storage.isolation.planned_log import PlannedLog
    from kwire.storage.places.filesystem import File

AHEAD_BYTES = 16 << 20  # of windows that wait until the transactions in them have ended
_LAST_OFFSET = (1 << 63) - 1


class _Waiting:
    """A window, how many of its batches are undecided, and those to leave out: (producer id, base offset) -> why."""

    def __init__(self, window: Window) -> None:
        self.window, self.undecided = window, 0
        self.hidden: dict[tuple[int, int], str] = {}


class _Batch(NamedTuple):
    """An undecided batch: its window, base offset, and the entry of the .txnindex around it (first, last offset)."""

    waiting: _Waiting
    base: int
    entry: tuple[int, int] | None


class CommittedWindows:
    """Decides which transactional batches of a range of a segment read_committed leaves out, while it is read.

    The data of the range decides where it can: windows wait, up to AHEAD_BYTES, until the markers of their
    transactions have been read, so that each byte is read once. What it leaves open, the planned log tells. locate
    gives that log and the number of the segment in it; it is called at the first transactional batch. end: the byte
    after the range.
    """

    def __init__(self, file: File, end: int | None, locate: Callable[[], tuple[PlannedLog, int]]) -> None:
        self._file, self._end, self._locate = file, end, locate
        self._log: PlannedLog | None = None
        self._number = 0
        self._pending: dict[int, list[_Batch]] = {}  # by producer, in order of their first undecided batches
        self._ended: dict[int, int] = {}  # producer in the .txnindex -> offset of its last marker
        self._hidden: dict[tuple[int, int], str] = {}  # in the window given last
        self._rest: Transactions | None = None  # of the rest of the range, if its windows would have had to wait long

    def state(self, producer_id: int, base_offset: int) -> str:
        """"committed", "aborted" or "open": of the transaction of a batch of the window given last."""
        if self._rest is not None:
            return self._rest.state(producer_id, base_offset)
        return self._hidden.get((producer_id, base_offset), "committed")

    def decided(self, windows: Iterable[Window]) -> Iterator[Window]:
        """The windows in order, each once all its batches are decided. Raises LimitError for too many producers."""
        waiting: deque[_Waiting] = deque()
        ahead = reached = 0
        for window in windows:
            reached = window.end
            if self._rest is not None:
                yield window
                del window
                continue
            waiting.append(self._look(window))
            ahead += len(window.data)
            del window
            while waiting and (not waiting[0].undecided or ahead > AHEAD_BYTES or self._rest is not None):
                if waiting[0].undecided and self._rest is None:
                    self._decide_first(waiting[0])
                else:
                    ahead -= len(waiting[0].window.data)
                    yield self._next(waiting)
        if self._pending:
            asked = {producer: batches[-1].base for producer, batches in self._pending.items()}
            self._decide(asked, reached)
        while waiting:
            yield self._next(waiting)

    def _next(self, waiting: deque[_Waiting]) -> Window:
        first = waiting.popleft()
        self._hidden = first.hidden
        return first.window

    def _look(self, window: Window) -> _Waiting:
        """Note the transactional batches of a window, and settle the transactions that end in it."""
        waiting = _Waiting(window)
        for end, base, producer, kind in transactional(window):
            if self._log is None:
                self._log, self._number = self._locate()
            segment = self._log.segments[self._number]
            if kind is None:
                entry = segment.aborted.at(producer, base)
                if entry is not None and self._ended.get(producer, -1) >= entry[0]:
                    entry = None  # a marker in it contradicts it
                self._pending.setdefault(producer, []).append(_Batch(waiting, base, entry))
                waiting.undecided += 1
            elif segment.limit is None or end <= segment.limit:
                self._settle(producer, kind, base)
                if producer in segment.aborted:
                    self._ended[producer] = base
        bounded(len(self._pending), self._file, "producers with transactions in one segment",
                transactions.MOST_PRODUCERS)
        return waiting

    def _settle(self, producer: int, kind: int | None, offset: int | None = None) -> None:
        """Decide the batches of a producer. kind: of the marker that ends them, None: open; offset: of the marker."""
        for waiting, base, entry in self._pending.pop(producer, ()):
            listed = entry is not None and (
                offset is None or entry[1] < offset or (entry[1] == offset and kind == ABORT))
            if listed or kind != COMMIT:
                waiting.hidden[producer, base] = "aborted" if listed or kind is not None else "open"
            waiting.undecided -= 1

    def _decide(self, asked: dict[int, int], position: int | None) -> bool:
        """Settle pending transactions by what the log says; False if the heads of the range would have to tell."""
        assert self._log is not None
        rest = None if position is None else (self._file, position)
        outcomes = self._log.outcomes(self._number, asked, rest)
        for producer, kind in outcomes.items():
            self._settle(producer, kind)
        return len(outcomes) == len(asked)

    def _decide_first(self, first: _Waiting) -> None:
        """Decide the batches of the window that waited longest: by the log, or by the heads of the whole range."""
        asked = {}
        for producer, batches in self._pending.items():
            if batches[0].waiting is not first:
                break
            asked[producer] = batches[-1].base
        if self._decide(asked, None):
            return
        log, number = self._log, self._number
        assert log is not None

        def after(
            pending: dict[int, int], newest: dict[int, int], position: int
        ) -> Iterator[tuple[int, int, int]]:
            asked = {producer: newest[producer] for producer in pending}
            for producer, kind in log.outcomes(number, asked, (self._file, position)).items():
                if kind is not None:
                    yield producer, _LAST_OFFSET, kind

        self._rest = find_transactions(
            self._file, first.window.position, self._end, after,
            lambda: log.segments[number].aborted, log.segments[number].limit)
        self._pending.clear()
