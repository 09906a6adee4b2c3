"""A node: a listener that answers as brokers of one release do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from kwire.codec.frames import FrameReader, Request, decode_request, decode_request_header, encode_response, pack_frame
from kwire.errors import KwireError
from kwire.fleet.apis import HANDLERS, Call
from kwire.fleet.apis.metadata import ranges
from kwire.fleet.cluster import ClusterState
from kwire.fleet.connection import Connection
from kwire.fleet.errors import ApiError
from kwire.fleet.faults import Faults
from kwire.fleet.fetch_sessions import FetchSessions
from kwire.fleet.refusals import refusal
from kwire.fleet.releases import offer
from kwire.fleet.users import Users
from kwire.schema import api_keys
from kwire.schema.error_codes import ErrorCode

_READ_BYTES = 1 << 18
_MOST_UNREAD = 1 << 16  # bytes that a client may leave unread before its next request is read
_BEFORE_SASL = (api_keys.API_VERSIONS, api_keys.SASL_HANDSHAKE, api_keys.SASL_AUTHENTICATE)


class Node:
    """A broker of a fleet. id: from 1 on; release: "3.9"; host, port: where it listens."""

    def __init__(
        self, cluster: ClusterState, node_id: int, release: str, faults: Faults, *, host: str = "127.0.0.1",
        port: int = 0, tls: ssl.SSLContext | None = None, rack: str | None = None,
        users: Users | None = None,
    ) -> None:
        self.cluster, self.id, self.host, self.port, self.rack = cluster, node_id, host, port, rack
        self.offer = offer(release)
        self._faults, self._tls, self.users = faults, tls, users
        self._listener: Any = None  # a listening socket, or what stands for one in a simulation
        self._server: asyncio.Server | None = None
        self._opening: asyncio.Task[None] | None = None
        self._served: Any = None  # the listener that became the server's own, which closes it
        self._connections: dict[asyncio.Task[Any], Connection] = {}
        self.fetch_sessions = FetchSessions()
        self.in_loop: Callable[[Callable[[], None]], None] = lambda work: work()  # how to run something in the loop

    def __repr__(self) -> str:
        return f"Node({self.id}, {self.release}, {self.address}{'' if self.alive else ', down'})"

    @property
    def release(self) -> str:
        """The release that it speaks as."""
        return self.offer.release

    @property
    def address(self) -> str:
        """host:port."""
        return f"{self.host}:{self.port}"

    @property
    def alive(self) -> bool:
        """Whether it listens."""
        return self._listener is not None

    @property
    def levels(self) -> dict[str, int]:
        """The finalized feature levels that it knows; level 0 is left out."""
        return dict(self.cluster.levels)

    @property
    def fenced(self) -> bool:
        """Whether it may not lead: a node that is down."""
        return not self.alive

    def start(self) -> None:
        """Listen; after stop() on the same port again. Raises OSError if the port is taken."""
        self.in_loop(self._start)

    def stop(self) -> None:
        """Close the listener and all connections; the partitions that it led get other leaders."""
        self.in_loop(self._stop)

    def upgrade(self, release: str) -> None:
        """Stop, and start again as a later release. Raises ValueError if it is not later, UnsupportedVersionError."""
        if not offer(release).at_least(self.release):
            raise ValueError(f"upgrade from {self.release} to {release}: expected a later release")
        self._restart(release)

    def downgrade(self, release: str) -> None:
        """Stop, and start again as an earlier release. Raises ValueError if it is not, UnsupportedVersionError."""
        if not self.offer.at_least(offer(release).release):
            raise ValueError(f"downgrade from {self.release} to {release}: expected an earlier release")
        self._restart(release)

    def _restart(self, release: str) -> None:
        lacks = [
            f"{name} {level}" for name, level in self.cluster.levels.items()
            if not _contains(offer(release).features.get(name, (0, 0)), level)]
        if lacks:
            raise ValueError(f"Kafka {release} does not support the finalized levels {', '.join(lacks)}")

        def restart() -> None:
            self._stop()
            self.offer = offer(release)
            self._start()

        self.in_loop(restart)

    def _start(self) -> None:
        if self._listener is not None:
            return
        self._listener = _listen(self.host, self.port)
        self.port = self._listener.getsockname()[1]
        self._opening = asyncio.ensure_future(self._open(self._listener))
        self.cluster.elect()
        self._faults.note("started", node=self.id, release=self.release)

    async def _open(self, listener: Any) -> None:
        if listener is not self._listener:  # stopped before it was open
            return
        self._served = listener
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Protocol(self._serve), sock=listener, ssl=self._tls)
        if listener is self._listener:
            self._server = server
        else:
            server.close()

    def _stop(self) -> None:
        listener, self._listener = self._listener, None
        if listener is None:
            return
        if self._server is not None:
            self._server.close()
        self._server = None
        if listener is not self._served:  # else its server closes it, at the latest when it is made
            listener.close()
        self.drop_connections()
        self.fetch_sessions = FetchSessions()
        self.cluster.elect()
        self._faults.note("stopped", node=self.id)

    def drop_connections(self) -> None:
        """Close all connections of clients, as brokers do when their ranges change."""
        for task, connection in self._connections.items():
            connection.writer.transport.abort()
            task.cancel()

    async def closed(self) -> None:
        """Wait until all connections have ended, after stop()."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._connections:
            await asyncio.wait(list(self._connections))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = self._connections[task] = Connection(writer)
        protocol = writer.transport.get_protocol()
        assert isinstance(protocol, _Protocol)
        protocol.ended = connection.gone
        try:
            await self._converse(reader, connection)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._connections.pop(task, None)
            self._faults.forget(connection)

    async def _converse(self, reader: asyncio.StreamReader, connection: Connection) -> None:
        frames = FrameReader()
        while not connection.closing:
            data = await reader.read(_READ_BYTES)
            if not data:
                return
            try:
                whole = frames.feed(data)
            except KwireError:
                return  # not Kafka, or a frame above the limit: the broker closes the connection
            for frame in whole:
                await self._answer(frame, connection)
                if connection.closing or connection.writer.transport.get_write_buffer_size() > _MOST_UNREAD:
                    await connection.writer.drain()
                if connection.closing or connection.writer.is_closing():
                    return

    async def _answer(self, frame: bytes, connection: Connection) -> None:
        """Answer one request: the next one is read after it, as Kafka's socket server does."""
        if connection.raw_sasl and connection.exchange is not None:
            with contextlib.suppress(ApiError):  # it ends the connection
                connection.writer.write(pack_frame(connection.authenticate(frame)))
            return
        request = self._decoded(frame, connection)
        if request is None:
            return
        if self.users is not None and connection.principal is None and request.api_key not in _BEFORE_SASL:
            connection.close()
            return
        outcome = self._faults.before(request, self.id)
        if outcome.error is not None:
            answer = refusal(request, outcome.error)
        else:
            answer = await self._handled(request, connection)
        self._faults.record(request, self.id, outcome, answer is not None)
        data = None if answer is None else self._packed(answer, request, connection)
        if data is not None:
            await self._faults.send(outcome, data, connection)

    async def _handled(self, request: Request, connection: Connection) -> Any:
        handler = HANDLERS.get(request.api_key)
        if handler is None:
            return refusal(request, ErrorCode.UNSUPPORTED_VERSION)
        try:
            answer = handler(Call(self, connection, request))
            if isinstance(answer, Awaitable):
                with connection.waits():
                    return await answer
            return answer
        except Exception as error:
            if request.has_response:
                return self._failed(request, error)
            connection.close()
            return None

    def _failed(self, request: Request, error: Exception) -> Any:
        """The answer to a request that cannot be handled (KafkaApis.handleError); the events have the reason."""
        reason = f"{type(error).__name__}: {error}"
        self._faults.note("failed", node=self.id, api=request.name, version=request.version, reason=reason)
        return refusal(request, ErrorCode.UNKNOWN_SERVER_ERROR)

    def _packed(self, answer: Any, request: Request, connection: Connection) -> bytes | None:
        """The frame of an answer; None, and the end of the connection, if even its refusal cannot be written."""
        number = request.correlation_id
        try:
            try:
                return pack_frame(encode_response(answer, request.version, correlation_id=number))
            except KwireError as error:  # a text around a name of 32,767 bytes is too long for a string
                answer = self._failed(request, error)
                return pack_frame(encode_response(answer, request.version, correlation_id=number))
        except KwireError:  # the name itself is too long, since what is not UTF-8 in it was replaced
            connection.close()
            return None

    def _decoded(self, frame: bytes, connection: Connection) -> Request | None:
        """The request, if the release has its version; else as Kafka: an answer (KIP-511), silence or the end."""
        header: Any
        try:
            header = decode_request_header(frame)
        except KwireError as error:
            header = getattr(error, "header", None)
        key = header.request_api_key if header is not None else int.from_bytes(frame[:2], "big", signed=True)
        version = header.request_api_version if header is not None else int.from_bytes(frame[2:4], "big", signed=True)
        low, high = self.offer.usable.get(key, (0, -1))
        if key == api_keys.API_VERSIONS and self.offer.is_silent:
            return None  # 0.9 neither answers nor closes
        if low <= version <= high:
            try:
                return decode_request(frame, lenient=True)
            except KwireError:
                pass
        elif key == api_keys.API_VERSIONS and header is not None:
            offered = {key: (low, high)} if self.offer.answers_its_range else {}
            answer = ranges(offered)
            answer.error_code = ErrorCode.UNSUPPORTED_VERSION
            data = pack_frame(encode_response(answer, 0, correlation_id=header.correlation_id))
            connection.writer.write(data)
            return None
        connection.close()
        return None


class _Protocol(asyncio.StreamReaderProtocol):
    """A stream whose end is noticed while nobody reads it. ended: called then."""

    def __init__(self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> None:
        super().__init__(asyncio.StreamReader(), serve)
        self.ended: Callable[[], None] = lambda: None

    def eof_received(self) -> bool | None:
        self.ended()
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended()
        super().connection_lost(exc)


def _listen(host: str, port: int) -> Any:
    """A listening socket; in a simulation its stand-in. Raises OSError if the port is taken."""
    simulated = getattr(asyncio.get_running_loop(), "simulated_listener", None)
    return socket.create_server((host, port), backlog=1024) if simulated is None else simulated(host, port)


def _contains(supported: tuple[int, int], level: int) -> bool:
    return supported[0] <= level <= supported[1]
