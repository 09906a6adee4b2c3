"""The clocks of a fleet: the system's, and one that tests move."""

from __future__ import annotations

import asyncio
import time
from heapq import heappop, heappush
from itertools import count


class Clock:
    """The system's clock. All times of a fleet come from its clock: timestamps, timeouts, delays."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def now_ms(self) -> int:
        """Milliseconds since 1970, as Kafka's timestamps."""
        return int(self.now() * 1000)

    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds of this clock."""
        await asyncio.sleep(seconds)

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for an event, at most so many seconds of this clock; whether it is set."""
        if event.is_set() or seconds <= 0:
            return event.is_set()
        waiting, timer = asyncio.ensure_future(event.wait()), asyncio.ensure_future(self.sleep(seconds))
        try:
            await asyncio.wait((waiting, timer), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            timer.cancel()
        return event.is_set()


class ManualClock(Clock):
    """A clock that stands still until advance() moves it: for tests of timeouts. start: seconds since 1970."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        """Seconds since 1970."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was moved so many seconds."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._sleepers, (self._now + max(0.0, seconds), next(self._order), woken))
        await woken

    def advance(self, seconds: float) -> None:
        """Move the clock, and wake in order those whose time has come. Of a fleet in a thread: Fleet.advance."""
        if not seconds >= 0:  # NaN too
            raise ValueError(f"seconds must not be negative, got {seconds}")
        self._now += seconds
        while self._sleepers and self._sleepers[0][0] <= self._now:
            woken = heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)
