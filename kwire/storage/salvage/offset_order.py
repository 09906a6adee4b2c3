"""Which valid batches of a segment have a wrong base offset, which no checksum protects: as few as possible."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import pairwise
from typing import NamedTuple

from kwire.storage.batches.batch_header import examine, parse_header
from kwire.storage.batches.scanner import OBJECT_BYTES, OUT_OF_ORDER, RegionSearch, Scanner, window_headers
from kwire.storage.places.filesystem import File

_Batch = tuple[int, int, int]  # position, base offset, last offset
_WINDOW = 1024  # batches that are compared with each other; half of them are decided at a time


class OffsetBounds(NamedTuple):
    """What is known of a segment's offsets. low, high: between which they must be (high is exclusive).

    end: where its last batch is expected to end (the base offset of the next segment, a producer snapshot), or -1.
    """

    low: int
    high: int
    end: int


class Judged(NamedTuple):
    """The positions of valid batches that are left out, and of those in bad regions that are not.

    pieces: position of a bad region -> (first byte, byte after the last) of whole batches in it.
    """

    misplaced: set[int]
    pieces: dict[int, list[tuple[int, int]]]


def judge(file: File, bounds: OffsetBounds) -> Judged:
    """Which valid batches cannot be in a log together with the rest.

    The rest is the longest sequence of batches with ascending offsets; of equally long ones that in which more batches
    are in step: each begins where the one before ended, or where it ends if what was left out between them counts.

    The scanner compares a batch with its neighbours only: where a few misplaced batches are before damage, it takes
    all that is below their offsets after the damage for bad. Such a piece is of the log if it is longer than what it
    contradicts.
    """
    order, search = _Order(bounds), RegionSearch(file)
    pieces: dict[int, list[tuple[int, int]]] = {}
    damaged = -1  # the position of the last bad region
    for window in Scanner(file, verify=True, read_bytes=OBJECT_BYTES):
        if window.bad is None:
            for header in window_headers(window):
                order.add(header.position, header.base_offset, header.last_offset)
        elif OUT_OF_ORDER in window.bad:
            header = parse_header(window.data, 0, window.position)
            order.add(header.position, header.base_offset, header.last_offset)
        else:
            damaged = window.position
            after = [] if window.follower is None else search.follow(window.end)
            for chain in search.chains(window.position, window.end):
                if order.admits(chain, after):
                    for batch in chain:
                        order.add(*batch)
                    end = chain[-1][0] + examine(file, chain[-1][0], window.end).size
                    pieces.setdefault(window.position, []).append((chain[0][0], end))
    return Judged(order.ended(damaged), pieces)


class _Order:
    def __init__(self, bounds: OffsetBounds) -> None:
        self._bounds, self._before = bounds, bounds.low - 1  # the last offset that was decided
        self._batches: list[_Batch] = []  # (position, base offset, last offset) of those to decide
        self._newest = self._before
        self._ascending = True
        self._misplaced = array("q")

    def admits(self, chain: list[_Batch], after: list[_Batch]) -> bool:
        """Are more batches in a chain than it contradicts, before it and after?

        One that contradicts only what comes after it may be in the value of a record, unless what comes after it
        contradicts what is before, too. Batches whose offsets are outside of the segment contradict nothing.
        """
        (_, first, _), (_, _, last) = chain[0], chain[-1]
        ascending = all(before[2] < following[1] <= following[2] for before, following in pairwise(chain))
        if not (ascending and self._before < first and first <= last < self._bounds.high):
            return False
        in_order = not after or after[0][1] > self._newest
        high = after[0][1] if after and in_order else self._bounds.high
        earlier = sum(before >= first and base < high for _, base, before in self._batches)
        later = sum(self._bounds.low <= base <= last for _, base, _ in after)
        return earlier + later < len(chain) and (earlier > 0 or not in_order)

    def add(self, position: int, base: int, last: int) -> None:
        """Take the next batch, by the offsets of its first and last record."""
        if base < self._bounds.low or last < base or last >= self._bounds.high:
            self._misplaced.append(position)
            return
        self._ascending = self._ascending and base > self._newest
        self._newest = last
        self._batches.append((position, base, last))
        if len(self._batches) == _WINDOW:
            self._decide(_WINDOW // 2)

    def ended(self, damaged: int) -> set[int]:
        """The positions of the misplaced batches; after the last one was added. damaged: of the last bad region, or -1.
        """
        batches, end = self._batches, self._bounds.end
        if self._ascending and batches:
            at, _, before = batches[-2] if len(batches) > 1 else (-1, 0, self._before)
            position, base, last = batches[-1]
            # it has left a gap before it, and goes past the known end: but the log may have gone on from there, or
            # what was in the gap is damaged
            if before + 1 < base and before < end <= last and base != end and not at < damaged < position:
                batches.pop()
                self._misplaced.append(position)
        self._decide(len(batches))
        return set(self._misplaced)

    def _decide(self, count: int) -> None:
        """Decide the first `count` batches."""
        batches = self._batches
        if not self._ascending:
            kept = set(self._longest())
            self._misplaced.extend(batches[at][0] for at in range(count) if at not in kept)
            self._before = max((batches[at][2] for at in kept if at < count), default=self._before)
        elif count:
            self._before = batches[count - 1][2]
        del batches[:count]
        self._newest, self._ascending = self._before, True
        for _, base, last in batches:
            self._ascending = self._ascending and base > self._newest
            self._newest = last

    def _longest(self) -> list[int]:
        """The numbers of the batches in the longest sequence."""
        batches = self._batches
        lengths: list[tuple[int, int]] = []  # of the best sequence that ends with a batch: batches, those in step
        previous: list[int] = []  # the batch before it there, -1: none
        ends: list[int] = []  # the smallest last offset of a sequence of 1, 2, ... batches
        ending: list[int] = []  # the batch that it ends with
        most: list[int] = []  # the batch at the end of that with the most batches in step
        # a batch's base offset without the offsets of the window's batches before it: the same for batches in step
        steps: list[int] = []
        in_step: dict[int, int] = {}  # of a step, the best batch so far
        spans = 0
        for at, (_, base, last) in enumerate(batches):
            step, length, before, joints = base - spans, 0, -1, 0
            spans += last - base + 1
            if base > self._before:
                length = bisect_left(ends, base)
                other = in_step.get(step, -1)
                if length:
                    for one in (most[length - 1], other, ending[length - 1]):
                        if one >= 0 and lengths[one][0] == length and batches[one][2] < base:
                            count = lengths[one][1] + (steps[one] == step)
                            if before < 0 or count > joints:
                                before, joints = one, count
                else:
                    joints = int(step == self._before + 1)
                length += 1
                if length > len(ends):
                    ends.append(last)
                    ending.append(at)
                    most.append(at)
                else:
                    if last < ends[length - 1]:
                        ends[length - 1], ending[length - 1] = last, at
                    if joints > lengths[most[length - 1]][1]:
                        most[length - 1] = at
                if other < 0 or lengths[other] < (length, joints):
                    in_step[step] = at
            steps.append(step)
            lengths.append((length, joints))
            previous.append(before)
        best = max(range(len(lengths)), key=lambda at: (
            lengths[at][0], lengths[at][1] + (steps[at] + spans == self._bounds.end), -batches[at][2]))
        chosen = []
        while best >= 0 and lengths[best][0]:
            chosen.append(best)
            best = previous[best]
        return chosen
