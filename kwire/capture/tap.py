"""The tap: a proxy that forwards every byte at once and unchanged, and records the frames that it can read."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from kwire.capture.exchange import Direction
from kwire.capture.recorder import Recorder, Recording
from kwire.net.address import Address
from kwire.net.dialing import dial
from kwire.net.listening import ACCEPTED_AT_ONCE, close_server, leads_to, let_clients_wait, naming
from kwire.net.streams import there, write, write_eof

_BLOCK = 1 << 16
_CONNECT = 30  # seconds


class Tap:
    """A recording proxy from one address to another.

    listen, target: (host, port); port 0 listens on a free port. name: of the frame files. say: called with one line for
    each event that a user should know. Use it as `async with Tap(...) as tap`; .address is where it listens, .recorder
    has the files. Raises OSError if it cannot listen or write.
    """

    def __init__(self, listen: tuple[str, int], target: tuple[str, int], name: str,
                 say: Callable[[str], None] = lambda line: None) -> None:
        self.listen, self.target, self.name, self.say = listen, target, name, say
        self.address = listen
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends = False

    async def __aenter__(self) -> Tap:
        # not start_serving: a cancellation would lose a server that listens
        with naming(Address(*self.listen)):
            self._server = await asyncio.start_server(
                self._accept, *self.listen, limit=_BLOCK, backlog=ACCEPTED_AT_ONCE, start_serving=False)
        self.address = self._server.sockets[0].getsockname()[:2]
        self._ends = False
        try:
            self.recorder = Recorder(self.name, self.say)
            try:
                await self._server.start_serving()
                let_clients_wait(self._server)
            except BaseException:
                await self.recorder.close()
                raise
        except BaseException:
            close_server(self._server)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ends = True
        close_server(self._server)
        for task in self._tasks:
            task.cancel()
        try:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            await self.recorder.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._ends:  # it was accepted just before
            writer.transport.abort()
            return

        def ended(task: asyncio.Task[None]) -> None:
            writer.transport.abort()  # also of a task that was cancelled before it began
            self._tasks.discard(task)

        task = asyncio.create_task(self._relay(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(ended)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until it ends."""
        try:
            client = str(there(writer))
            broker, to_broker = await connected(*self.target, self._refuse_itself)
        except (OSError, TimeoutError) as error:  # the client may have been reset at once
            self.say(f"{Address(*self.target)}: {reason(error)}")
            return
        recording = self.recorder.open(client, str(Address(*self.target)))
        pumps = [
            asyncio.create_task(self._pump(reader, to_broker, recording, "request")),
            asyncio.create_task(self._pump(broker, writer, recording, "response")),
        ]
        try:
            await asyncio.gather(*pumps)  # the first that fails ends both
            for side in (writer, to_broker):
                side.close()
                await side.wait_closed()
        except OSError:
            pass
        finally:
            for pump in pumps:
                pump.cancel()
            to_broker.transport.abort()
            self.recorder.end(recording)

    def _refuse_itself(self, broker: Address) -> None:
        """Raise OSError for an address that leads to the tap itself, which would connect again and again."""
        if any(leads_to(broker, Address(*one.getsockname()[:2])) for one in self._server.sockets):
            raise OSError("it is where the tap itself listens")

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, recording: Recording,
                    direction: Direction) -> None:
        """Forward bytes until the stream ends, no faster than the other side reads them."""
        while data := await reader.read(_BLOCK):
            write(writer, data)
            self.recorder.record(recording, direction, data)
            await writer.drain()
            await asyncio.sleep(0)  # let others run: read and drain may return at once
        with suppress(OSError):
            write_eof(writer)


async def connected(
    host: str, port: int, check: Callable[[Address], None] | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A proxy's connection to a broker. check: called with each address of the host before it is tried.

    Raises OSError, TimeoutError after 30 seconds, what check raises.
    """
    try:
        async with asyncio.timeout(_CONNECT):  # wait_for of Python 3.11 loses a cancellation in its last turn
            return await dial(host, port, _CONNECT, check, limit=_BLOCK)
    except (ValueError, OverflowError):  # a broker said a host name that IDNA refuses, or a port out of range
        raise OSError("invalid host name or port") from None


def reason(error: Exception) -> str:
    """Why a connection was not made, in the words of the operating system."""
    code = getattr(error, "errno", None)
    return os.strerror(code) if code else str(error) or f"no answer within {_CONNECT} s"
