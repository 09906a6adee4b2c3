"""The sessions of brokers that registered by the wire: each heartbeat is a sign of life (BrokerHeartbeatTracker)."""

from __future__ import annotations

import math
from collections.abc import Callable

from kwire.fleet.clock import Clock, Timer

SESSION_TIMEOUT = 9.0  # seconds: broker.session.timeout.ms


class BrokerSessions:
    """Calls ended(broker id) when a broker was silent for too long, by the fleet's clock."""

    def __init__(self, clock: Clock, ended: Callable[[int], None]) -> None:
        self._clock, self._ended = clock, ended
        self._ends: dict[int, float] = {}  # broker id -> when its session ends
        self._timer = Timer(clock, self._end_late)

    def touch(self, broker_id: int) -> None:
        """A broker lives: its session begins, or goes on."""
        self._ends[broker_id] = self._clock.elapsed() + SESSION_TIMEOUT
        self._timer.within(SESSION_TIMEOUT)

    def is_valid(self, broker_id: int) -> bool:
        """Whether a broker has a session that has not ended."""
        return self._ends.get(broker_id, -math.inf) > self._clock.elapsed()

    def forget(self, broker_id: int) -> None:
        """End a session without a word."""
        self._ends.pop(broker_id, None)

    def _end_late(self) -> float | None:
        now = self._clock.elapsed()
        for broker_id in [one for one, end in self._ends.items() if end <= now]:
            del self._ends[broker_id]
            self._ended(broker_id)
        return min(self._ends.values()) - now if self._ends else None

    def close(self) -> None:
        """End its timer."""
        self._ends.clear()
        self._timer.close()
