"""The sessions of brokers that registered by the wire: each heartbeat is a sign of life (BrokerHeartbeatTracker)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kwire.fleet.clock import Clock

SESSION_TIMEOUT = 9.0  # seconds: broker.session.timeout.ms


class BrokerSessions:
    """Calls ended(broker id) when a broker was silent for too long, by the fleet's clock."""

    def __init__(self, clock: Clock, ended: Callable[[int], None]) -> None:
        self._clock, self._ended = clock, ended
        self._ends: dict[int, float] = {}  # broker id -> when its session ends
        self._timer: asyncio.Task[None] | None = None

    def touch(self, broker_id: int) -> None:
        """A broker lives: its session begins, or goes on."""
        self._ends[broker_id] = self._clock.now() + SESSION_TIMEOUT
        if self._timer is None or self._timer.done():
            self._timer = asyncio.ensure_future(self._end_late())

    def is_valid(self, broker_id: int) -> bool:
        """Whether a broker has a session that has not ended."""
        return self._ends.get(broker_id, -1.0) > self._clock.now()

    def forget(self, broker_id: int) -> None:
        """End a session without a word."""
        self._ends.pop(broker_id, None)

    async def _end_late(self) -> None:
        while self._ends:
            await self._clock.sleep(max(0.0, min(self._ends.values()) - self._clock.now()))
            now = self._clock.now()
            for broker_id in [one for one, end in self._ends.items() if end <= now]:
                del self._ends[broker_id]
                self._ended(broker_id)

    def close(self) -> None:
        """End its timer."""
        self._ends.clear()
        if self._timer is not None:
            self._timer.cancel()
