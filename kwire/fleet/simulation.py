"""Seeded simulation: clients and a fleet in one event loop without sockets, on a clock that jumps from event to event.

    async def work(simulation):
        async with Fleet("4.4", clock=simulation.clock, seed=simulation.seed) as fleet:
            fleet.fault("Produce", close=True, probability=0.1)
            ...

    simulate(work, seed=7)                # the same events in the same order, every time
    simulate_all(work, seeds=range(1000)) # a failing schedule is named, with what replays it

An hour of timeouts passes in milliseconds. Any code that uses asyncio's streams or connections runs in it unchanged, as
long as it does not block and takes no randomness from elsewhere.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar, cast

from kwire.errors import KwireError
from kwire.fleet.clock import Clock

T = TypeVar("T")
START = 1_700_000_000.0  # what the simulated clocks say at the beginning, seconds since 1970
LATENCY = (0.0001, 0.005)  # seconds that bytes are under way
_FIRST_PORT = 20_000
_APART = 1e-6  # seconds
_CUT = 0.05  # how often bytes arrive in two parts


class SimulationError(KwireError):
    """A schedule that failed, or in which everything waits for ever. seed: of the schedule, None if it is not known."""

    def __init__(self, message: str, seed: int | None = None) -> None:
        super().__init__(message)
        self.seed = seed


class LoopClock(Clock):
    """The clock of a simulation: it follows the simulated loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> float:
        """Seconds since 1970."""
        return START + self._loop.time()

    def elapsed(self) -> float:
        """Seconds of the simulation."""
        return self._loop.time()


class Simulation:
    """What the simulated code may use. seed; random: seeded by it; clock: for the Fleet; loop."""

    def __init__(self, seed: int, loop: SimulatedLoop) -> None:
        self.seed, self.loop = seed, loop
        self.random, self.clock = random.Random(seed), LoopClock(loop)


def simulate(work: Callable[[Simulation], Awaitable[T]], seed: int = 0, latency: tuple[float, float] = LATENCY) -> T:
    """Run work in a simulation. latency: least and most seconds that bytes are under way.

    Raises what work raises, and SimulationError if all of it waits for something that cannot come.
    """
    with asyncio.Runner(loop_factory=lambda: SimulatedLoop(seed, latency)) as runner:
        loop = cast(SimulatedLoop, runner.get_loop())

        async def main() -> T:
            return await work(Simulation(seed, loop))

        return runner.run(main())


def simulate_all(
    work: Callable[[Simulation], Awaitable[Any]], seeds: Iterable[int], latency: tuple[float, float] = LATENCY
) -> int:
    """Run work with each seed; how many schedules there were.

    Raises SimulationError for the first one that fails: its text is a script that replays it.
    """
    done = 0
    for seed in seeds:
        try:
            simulate(work, seed, latency)
        except Exception as error:
            name = getattr(work, "__qualname__", "work")
            script = (
                f"from kwire.fleet import simulate; from {work.__module__} import {name}; "
                f"simulate({name}, seed={seed}, latency={latency!r})")
            raise SimulationError(
                f"seed {seed} failed: {type(error).__name__}: {error}; replay it: python -c '{script}'", seed
            ) from error
        done += 1
    return done


class _Waiting:
    """The selector of a simulated loop: nothing comes from outside, so that waiting is moving the clock."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise SimulationError("all tasks wait, and nothing is scheduled", self._loop.seed)
        self._loop.now += max(0.0, timeout)
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """An event loop whose time moves when all tasks wait, and whose connections are in memory."""

    def __init__(self, seed: int, latency: tuple[float, float] = LATENCY) -> None:
        super().__init__()
        self.seed, self.now, self.latency = seed, 0.0, latency
        self.random = random.Random(f"network {seed}")
        self.listeners: dict[tuple[str, int], SimulatedListener] = {}
        self._selector = _Waiting(self)
        self._next_port = _FIRST_PORT

    def time(self) -> float:
        """Seconds since the simulation began."""
        return self.now

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        """The host itself: names lead to what listens in memory."""
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))]

    def _process_events(self, event_list: list[Any]) -> None:
        return None

    def _write_to_self(self) -> None:
        return None

    def simulated_listener(self, host: str, port: int) -> SimulatedListener:
        """What listens in memory, as a listening socket does. Raises OSError if the port is taken."""
        if not port:
            self._next_port += 1
            port = self._next_port
        if (host, port) in self.listeners:
            raise OSError(98, f"address already in use: {host}:{port}")
        listener = self.listeners[host, port] = SimulatedListener(self, host, port)
        return listener

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.Protocol], host: Any = None, port: Any = None, *,
        sock: Any = None, **options: Any,
    ) -> Any:
        """Listen in memory."""
        listener = self.simulated_listener(host, port) if sock is None else sock
        listener.factory = protocol_factory
        return listener

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.Protocol], host: Any = None, port: Any = None, **options: Any
    ) -> Any:
        """Connect in memory. Raises ConnectionRefusedError where nobody listens."""
        await asyncio.sleep(self.delay())
        listener = self.listeners.get((host, port))
        if listener is None or listener.factory is None:
            raise ConnectionRefusedError(111, f"Connect call failed ('{host}', {port})")
        self._next_port += 1
        here = (host, self._next_port)
        client = SimulatedTransport(self, protocol_factory(), here, (host, port))
        server = SimulatedTransport(self, listener.factory(), (host, port), here)
        client.peer, server.peer = server, client
        for transport in (server, client):
            transport.protocol.connection_made(transport)
        return client, client.protocol

    def delay(self) -> float:
        """How long something is under way."""
        return self.random.uniform(*self.latency)


class SimulatedListener:
    """A listening socket, and its asyncio.Server, in memory."""

    def __init__(self, loop: SimulatedLoop, host: str, port: int) -> None:
        self._loop, self._address = loop, (host, port)
        self.factory: Callable[[], asyncio.Protocol] | None = None
        self.sockets = ()

    def getsockname(self) -> tuple[str, int]:
        """(host, port)."""
        return self._address

    async def start_serving(self) -> None:
        """It listens since it was made."""

    def shutdown(self, how: int) -> None:
        """Nothing: nobody else has it."""

    def close(self) -> None:
        """Listen no more."""
        if self._loop.listeners.get(self._address) is self:
            del self._loop.listeners[self._address]

    async def wait_closed(self) -> None:
        """It is closed at once."""


class _NoSocket:
    """What get_extra_info("socket") gives: options are taken, and mean nothing."""

    def setsockopt(self, *arguments: Any) -> None:
        return None

    def fileno(self) -> int:
        """-1, as of a closed socket: there is nothing to shut down."""
        return -1


class SimulatedTransport(asyncio.Transport):
    """One end of a connection in memory: bytes arrive in order, late, and now and then in two parts."""

    peer: SimulatedTransport

    def __init__(
        self, loop: SimulatedLoop, protocol: asyncio.Protocol, here: tuple[str, int], there: tuple[str, int]
    ) -> None:
        super().__init__({"sockname": here, "peername": there, "socket": _NoSocket()})
        self._loop, self.protocol = loop, protocol
        self._closed = self._paused = self._ended = False
        self._held = bytearray()
        self._arrival = 0.0  # of what was sent last

    def _send(self, receive: Callable[..., None], *arguments: Any) -> None:
        # never two at one time: the loop keeps no order among them
        self._arrival = max(self._arrival + _APART, self._loop.time() + self._loop.delay())
        self._loop.call_at(self._arrival, receive, *arguments)

    def write(self, data: Any) -> None:
        """Send bytes."""
        data = bytes(data)
        if self._closed or not data:
            return
        if len(data) > 1 and self._loop.random.random() < _CUT:
            at = self._loop.random.randrange(1, len(data))
            self._send(self.peer.receive, data[:at])
            data = data[at:]
        self._send(self.peer.receive, data)

    def receive(self, data: bytes) -> None:
        """Bytes arrived."""
        if self._closed:
            return
        if self._paused:
            self._held += data
        else:
            self.protocol.data_received(data)

    def end(self, error: Exception | None = None) -> None:
        """The other end closed."""
        self._ended = True
        if self._closed or self._held:
            return
        if error is None and not self.protocol.eof_received():
            self.close()
        elif error is not None:
            self._lose(error)

    def close(self) -> None:
        """Close after what was sent has arrived."""
        if not self._closed:
            self._send(self.peer.end)
            self._lose(None)

    def abort(self) -> None:
        """Close at once: the other end sees a reset."""
        if not self._closed:
            self._send(self.peer.end, ConnectionResetError(104, "Connection reset by peer"))
            self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        self._closed = True
        self._loop.call_soon(self.protocol.connection_lost, error)

    def is_closing(self) -> bool:
        """Whether it is closed."""
        return self._closed

    def pause_reading(self) -> None:
        """Hold what arrives."""
        self._paused = True

    def resume_reading(self) -> None:
        """Hand on what was held."""
        self._paused = False
        if self._held:
            data, self._held = bytes(self._held), bytearray()
            self._loop.call_soon(self.receive, data)
        if self._ended:
            self._loop.call_soon(self.end)

    def is_reading(self) -> bool:
        """Whether bytes are handed on."""
        return not self._paused and not self._closed

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The protocol."""
        return self.protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Change the protocol."""
        self.protocol = cast(asyncio.Protocol, protocol)

    def get_write_buffer_size(self) -> int:
        """Nothing is kept here."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is kept here."""

    def can_write_eof(self) -> bool:
        """It cannot be closed by half."""
        return False
