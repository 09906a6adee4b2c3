"""A node: a listener that answers as brokers of one release do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable
from typing import Any

from kwire.codec.frames import FrameReader, Request, decode_request, decode_request_header, encode_response, pack_frame
from kwire.errors import KwireError
from kwire.fleet.apis import HANDLERS, Call
from kwire.fleet.apis.metadata import ranges
from kwire.fleet.cluster import ClusterState
from kwire.fleet.faults import Faults
from kwire.fleet.fetch_sessions import FetchSessions
from kwire.fleet.refusals import refusal
from kwire.fleet.releases import offer
from kwire.schema import api_keys
from kwire.schema.error_codes import ErrorCode

_READ_BYTES = 1 << 18


class Connection:
    """One connection of a client to a node."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.host, self.port = (writer.get_extra_info("peername") or ("", 0))[:2]
        self.closing = False

    def close(self) -> None:
        """End it after what is being answered."""
        self.closing = True


class Node:
    """A broker of a fleet. id: from 1 on; release: "3.9"; host, port: where it listens."""

    def __init__(
        self, cluster: ClusterState, node_id: int, release: str, faults: Faults, *, host: str = "127.0.0.1",
        port: int = 0, tls: ssl.SSLContext | None = None, rack: str | None = None,
    ) -> None:
        self.cluster, self.id, self.host, self.port, self.rack = cluster, node_id, host, port, rack
        self.offer = offer(release)
        self._faults, self._tls = faults, tls
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[Any], Connection] = {}
        self.fetch_sessions = FetchSessions()

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
        return self._server is not None

    async def start(self) -> None:
        """Listen; on the same port again after stop(). Raises OSError."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=self._tls, backlog=1024)
            self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close the listener and all connections; the partitions that it led get other leaders."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        self.cluster.elect()
        await self.drop_connections()
        await server.wait_closed()
        self.fetch_sessions = FetchSessions()

    async def drop_connections(self) -> None:
        """Close all connections of clients, as brokers do when their ranges change."""
        tasks = list(self._connections)
        for task, connection in self._connections.items():
            connection.writer.transport.abort()
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = self._connections[task] = Connection(writer)
        try:
            await self._converse(reader, connection)
        except (OSError, asyncio.CancelledError, asyncio.IncompleteReadError):
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
                if connection.closing:
                    await connection.writer.drain()
                    return

    async def _answer(self, frame: bytes, connection: Connection) -> None:
        """Answer one request: the next one is read after it, as Kafka's socket server does."""
        request = self._decoded(frame, connection)
        if request is None:
            return
        outcome = self._faults.before(request, self)
        if outcome.error is not None:
            answer = refusal(request, outcome.error)
        else:
            answer = await self._handled(request, connection)
        self._faults.record(request, self, outcome, answer is not None)
        if answer is not None:
            data = pack_frame(encode_response(answer, request.version, correlation_id=request.correlation_id))
            await self._faults.send(outcome, data, connection)

    async def _handled(self, request: Request, connection: Connection) -> Any:
        handler = HANDLERS.get(request.api_key)
        if handler is None:
            return refusal(request, ErrorCode.UNSUPPORTED_VERSION)
        answer = handler(Call(self, connection, request))
        return await answer if isinstance(answer, Awaitable) else answer

    def _decoded(self, frame: bytes, connection: Connection) -> Request | None:
        """The request, if the release has its version; else what Kafka does: an answer (KIP-511), silence or the end."""
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

