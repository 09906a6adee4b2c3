"""The clocks of a fleet: the system's, and one that tests move."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

from kwire.codec.arguments import check_seconds

_CROWD, _LATEST = 1000, 253_402_300_799.0  # the end of the year 9999, seconds since 1970
_AGAIN = 1.0  # seconds until a Timer rings again that had no memory
_SHORTEST = 0.05  # seconds between two rings of a Timer


class Clock:
    """The system's clock. All times of a fleet come from its clock: timestamps, timeouts, delays."""

    def now(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def now_ms(self) -> int:
        """Milliseconds since 1970, as Kafka's timestamps."""
        return int(self.now() * 1000)

    def latest_ms(self) -> int:
        """The latest time that a client may take for now: this clock's or, if it is later, the system's."""
        return max(self.now_ms(), int(time.time() * 1000))

    def elapsed(self) -> float:
        """Seconds of a monotonic clock, for sessions and waits: setting the system's clock does not end them.

        In a subclass with a sleep() of its own: now().
        """
        return time.monotonic() if type(self).sleep is Clock.sleep else self.now()

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
        self._now = check_seconds(start, "start")
        if not 0 <= self._now <= _LATEST:
            raise ValueError(f"start must be 0 to {_LATEST:.0f}, got {start}")
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._crowded = _CROWD

    def now(self) -> float:
        """Seconds since 1970."""
        return self._now

    def elapsed(self) -> float:
        """Seconds since 1970."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was moved so many seconds."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._sleepers, (self._now + max(0.0, seconds), next(self._order), woken))
        if len(self._sleepers) >= self._crowded:  # those that wait no more are forgotten
            self._sleepers = [one for one in self._sleepers if not one[2].done()]
            heapify(self._sleepers)
            self._crowded = max(_CROWD, 2 * len(self._sleepers))
        await woken

    def advance(self, seconds: float) -> None:
        """Move the clock, and wake in order those whose time has come. Of a fleet in a thread: Fleet.advance."""
        seconds = check_seconds(seconds, "seconds")
        if not 0 <= seconds <= _LATEST - self._now:
            raise ValueError(f"seconds must be 0 to {_LATEST - self._now:.0f}, got {seconds}")
        self._now += seconds
        while self._sleepers and self._sleepers[0][0] <= self._now:
            woken = heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)


class Timer:
    """Calls ring() when the earliest of the times has come that within() was given.

    ring: does what is due, and returns in how many seconds the next is, None if there is none. It is called in a task:
    not by within().
    """

    def __init__(self, clock: Clock, ring: Callable[[], float | None]) -> None:
        self._clock, self._ring = clock, ring
        self._due = 0.0
        self._task: asyncio.Task[None] | None = None

    def within(self, seconds: float) -> None:
        """Ring in so many seconds, or before."""
        when = self._clock.elapsed() + seconds
        if self._task is not None and not self._task.done():
            if when >= self._due:
                return
            self._task.cancel()
        self._due, self._task = when, asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while True:
            try:
                while (left := self._due - self._clock.elapsed()) > 0:
                    await self._clock.sleep(max(_SHORTEST, left))
                seconds = self._ring()
            except MemoryError:  # another time
                seconds = _AGAIN
            except Exception as error:  # what else is due must not wait for ever
                asyncio.get_running_loop().call_exception_handler({"message": "a timer failed", "exception": error})
                seconds = _AGAIN
            if seconds is None:
                return
            self._due = self._clock.elapsed() + max(seconds, _SHORTEST)

    def close(self) -> None:
        """Ring no more, until within() is called again."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
