"""The windows of a range, each with the transactional batches in it that read_committed leaves out."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kwire.storage.isolation import transactions
from kwire.storage.isolation.transactions import ABORT, COMMIT, bounded, transactional

if TYPE_CHECKING:
    from collections.abc import Callable

    from kwire.storage.batches.scanner import Window
    from kwire.storage.isolation.planned_log import PlannedLog
    from kwire.storage.places.filesystem import File

AHEAD_BYTES = 16 << 20  # of windows that wait until the transactions in them have ended
_FEW = 1000  # runs that are not worth to be gone through


class _Run:
    """Batches of an undecided transaction, one after the other in the file: between are other producers', no damage.

    first, last: the bytes where the first and the last of them begin; base: the base offset of the last; entry: that of
    the .txnindex around all of them (first, last offset), or None.
    """

    __slots__ = ("base", "entry", "first", "last")

    def __init__(self, position: int, base: int, entry: tuple[int, int] | None) -> None:
        self.first = self.last = position
        self.base, self.entry = base, entry


class CommittedWindows:
    """Decides which transactional batches of a range of a segment read_committed leaves out, while it is read.

    The data of the range decides where it can: windows wait, up to AHEAD_BYTES, until the markers of their
    transactions have been read, so that each byte is read once. What it leaves open, the planned log tells. A batch is
    known by where it is in the file: no checksum covers its base offset. locate gives that log and the number of the
    segment in it; it is called at the first transactional batch. scan gives the windows of the range again, as they are
    read, from the beginning of one on.
    """

    def __init__(
        self, file: File, locate: Callable[[], tuple[PlannedLog, int]], scan: Callable[[int], Iterable[Window]]
    ) -> None:
        self._file, self._locate, self._scan = file, locate, scan
        self._log: PlannedLog | None = None
        self._number = 0
        self._reached = 0  # the byte up to which the range was looked through
        self._whole = 0  # the end of the last whole batch before that
        self._damaged = -1  # the end of the last bad region before that
        # where the last window that is not bad begins: what is damage after it does not depend on what is before it
        self._looked = 0
        # by producer, in order of their first undecided batches: each window asks for the first (of a dict, those that
        # were removed before it are gone through for that)
        self._pending: OrderedDict[int, list[_Run]] = OrderedDict()
        self._ended: dict[int, int] = {}  # producer in the .txnindex -> offset of its last marker
        self._hidden: dict[int, list[tuple[int, int, str]]] = {}  # producer -> first and last byte of runs, why
        self._count, self._enough = 0, _FEW  # of runs, pending and hidden; at which those that are past are dropped

    def state(self, producer_id: int, position: int) -> str:
        """"committed", "aborted" or "open": of the transaction of the batch at a byte, in the window given last."""
        runs = self._hidden.get(producer_id, ())
        at = bisect_right(runs, position, key=lambda run: run[0]) - 1
        return runs[at][2] if at >= 0 and position <= runs[at][1] else "committed"

    def decided(self, windows: Iterable[Window]) -> Iterator[Window]:
        """The windows in order, each once all its batches are decided. Raises LimitError for too many producers."""
        waiting: deque[Window] = deque()
        ahead = end = 0
        for window in windows:
            end = window.end
            self.look(window)
            waiting.append(window)
            ahead += len(window.data)
            del window
            while waiting and (ahead > AHEAD_BYTES or self._is_decided(waiting[0])):
                if not self._is_decided(waiting[0]):
                    self._decide_first(waiting[0])
                ahead -= len(waiting[0].data)
                self._drop_before(waiting[0].position)
                yield waiting.popleft()
        self._decide_all(end)
        while waiting:
            yield waiting.popleft()

    def _is_decided(self, window: Window) -> bool:
        runs = next(iter(self._pending.values()), None)
        return runs is None or runs[0].first >= window.end

    def look(self, window: Window) -> None:
        """Note the transactional batches of a window, and settle the transactions that end in it.

        In order; those that were looked at are passed over. decided() does it for what it is given: for what is left
        out in between the caller has to.
        """
        if window.end <= self._reached:
            return
        if window.bad is not None:
            self._damaged = window.end
        else:
            self._looked, self._whole = window.position, window.end
        for start, end, base, producer, kind in transactional(window):
            if start < self._reached:
                continue
            if self._log is None:
                self._log, self._number = self._locate()
            segment = self._log.segments[self._number]
            if kind is None:
                entry = segment.aborted.at(producer, base)
                if entry is not None and self._ended.get(producer, -1) >= entry[0]:
                    entry = None  # a marker in it contradicts it
                runs = self._pending.setdefault(producer, [])
                if runs and runs[-1].entry == entry and runs[-1].last >= self._damaged:
                    runs[-1].last, runs[-1].base = start, base
                else:
                    runs.append(_Run(start, base, entry))
                    self._count += 1
            elif segment.limit is None or end <= segment.limit:
                own = segment.aborted.at(producer, base) if kind == ABORT else None
                self._settle(producer, kind, own if own is not None and own[1] == base else None, base)
                if producer in segment.aborted:
                    self._ended[producer] = base
        self._reached = window.end
        bounded(len(self._pending), self._file, "producers with transactions in one segment",
                transactions.MOST_PRODUCERS)
        bounded(self._count, self._file, "aborted transactions in one segment", transactions.MOST_ABORTED)

    def _settle(
        self, producer: int, kind: int | None, own: tuple[int, int] | None = None, offset: int | None = None
    ) -> None:
        """Decide the batches of a producer. kind: of the marker that ends them, None: open; offset: of the marker.

        own: the entry of the transaction that was aborted. Where there was damage since, batches before it are of
        another one, whose marker was damaged: it was committed, or an entry is around them.
        """
        for run in self._pending.pop(producer, ()):
            listed = run.entry is not None and (
                offset is None or run.entry[1] < offset or (run.entry[1] == offset and kind == ABORT))
            is_before = own is not None and run.base < own[0] and run.first < self._damaged
            if listed or (kind != COMMIT and not is_before):
                why = "aborted" if listed or kind is not None else "open"
                self._hidden.setdefault(producer, []).append((run.first, run.last, why))
            else:
                self._count -= 1

    def _decide(self, asked: dict[int, int], position: int | None) -> bool:
        """Settle pending transactions by what the log says; False if the heads of the range would have to tell."""
        assert self._log is not None
        segment = self._log.segments[self._number]
        rest = None if position is None else (self._file, position)
        outcomes = self._log.outcomes(self._number, asked, rest)
        for producer, kind in outcomes.items():
            own = None
            if kind == ABORT and self._damaged >= 0 and segment.index_is_whole:
                own = self._log.entry(self._number, producer, asked[producer])
            self._settle(producer, kind, own)
        return len(outcomes) == len(asked)

    def _decide_first(self, first: Window) -> None:
        """Decide the batches of the window that waited longest: by the log, or by the heads of the whole range."""
        asked = {}
        for producer, runs in self._pending.items():
            if runs[0].first >= first.end:
                break
            asked[producer] = runs[-1].base
        if not self._decide(asked, None):
            for window in self._scan(self._looked):
                self.look(window)
            self._decide_all(self._reached)

    def _decide_all(self, end: int) -> None:
        """Decide all that is pending before a byte. The data may go on after damage at which the range ends."""
        asked = {producer: runs[-1].base for producer, runs in self._pending.items() if runs[0].first < end}
        if asked:
            self._decide(asked, self._whole)

    def _drop_before(self, position: int) -> None:
        """Drop the runs before a byte, once they are many."""
        if self._count < self._enough:
            return
        left = {producer: [run for run in runs if run[1] >= position] for producer, runs in self._hidden.items()}
        self._hidden = {producer: runs for producer, runs in left.items() if runs}
        self._count = sum(map(len, self._hidden.values())) + sum(map(len, self._pending.values()))
        self._enough = 2 * self._count + _FEW
