"""Proxy: faults between clients and a real cluster."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from types import TracebackType
from typing import Any

from kwire import schema
from kwire.codec.arguments import check_type
from kwire.codec.frames import (
    FrameReader,
    Request,
    decode_request,
    decode_response,
    encode_response,
    pack_frame,
)
from kwire.errors import DecodeError, KwireError, LimitError
from kwire.fleet.clock import Clock
from kwire.fleet.connection import Connection
from kwire.fleet.faults import Fault, Faults, Outcome
from kwire.fleet.loop_thread import LoopThread
from kwire.fleet.refusals import refusal
from kwire.schema import Field
from kwire.schema.error_codes import ErrorCode

MOST_BROKERS = 1_000  # that get a listener
MOST_WAITING = 64 << 20  # bytes of the requests of a connection that wait for their responses
_READ_BYTES = 1 << 18
_HOST = "127.0.0.1"


@dataclass
class _Asked:
    """A request that waits for its response. request: None if it could not be read; answer: one made here."""

    size: int  # of its frame
    request: Request | None
    outcome: Outcome
    answer: bytes | None = None


class _Pipeline:
    """The requests of a connection that wait for their responses, oldest first."""

    def __init__(self) -> None:
        self._asked: deque[_Asked] = deque()
        self._bytes, self._taken = 0, asyncio.Event()

    @property
    def first(self) -> _Asked | None:
        """The one whose turn it is."""
        return self._asked[0] if self._asked else None

    async def add(self, one: _Asked) -> None:
        """Wait until there is room: what a broker does not answer is not read for ever."""
        while self._asked and self._bytes + one.size > MOST_WAITING:
            self._taken.clear()
            await self._taken.wait()
        self._asked.append(one)
        self._bytes += one.size

    def take(self) -> _Asked:
        """The first one. Raises DecodeError: a response that nobody waits for."""
        if not self._asked:
            raise DecodeError("response without a request")
        one = self._asked.popleft()
        self._bytes -= one.size
        self._taken.set()
        return one


class Proxy:
    """Stands before a cluster, with the verbs of Fleet: .bootstrap, .fault(...), .events.

    target: a broker, "host:port"; listen: where clients connect first ("127.0.0.1:0": any free port). A listener is
    opened for every broker that the cluster names, on loopback, and their addresses in responses (Metadata,
    FindCoordinator, DescribeCluster, node endpoints) are replaced. What cannot be read (TLS, tokens of SASL without
    headers) is passed on as it is. A context manager, sync (in a thread of its own) or async.
    """

    def __init__(self, target: str, listen: str = f"{_HOST}:0", *, seed: int = 0, clock: Clock | None = None) -> None:
        self._target, self._listen = _split(target), _split(listen)
        self._clock = clock or Clock()
        self._names: dict[uuid.UUID, str] = {}
        self._faults = Faults(self._clock, Random(seed), self._names.get)
        self._listeners: dict[tuple[str, int], tuple[str, int]] = {}  # broker -> its address here
        self._nodes: dict[tuple[str, int], int] = {}  # broker -> its node id, once it is known
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread: LoopThread | None = None

    def __repr__(self) -> str:
        return f"Proxy({':'.join(map(str, self._target))}, {self.bootstrap})"

    @property
    def bootstrap(self) -> str:
        """bootstrap.servers of the clients."""
        host, port = self._listeners.get(self._target, self._listen)
        return f"{host}:{port}"

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened, oldest first."""
        return list(self._faults.events)

    def fault(self, api: str | None = None, *, error: str | int | ErrorCode | None = None, **what: Any) -> Fault:
        """Let requests fail by a rule, as Fleet.fault. With error= the request is not sent to the cluster."""
        return self._faults.add(api, error, **what)

    async def __aenter__(self) -> Proxy:
        self._listeners.clear()
        self._servers.clear()
        await self._open(self._target, self._listen)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def __enter__(self) -> Proxy:
        if self._thread is not None:
            raise ValueError("the Proxy runs already")
        self._thread = LoopThread("kwire-proxy")
        try:
            self._thread.run(self.__aenter__())
        except BaseException:
            self._end_thread()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is None:
            raise ValueError("the Proxy does not run")
        try:
            self._thread.run(self.__aexit__(kind, error, trace))
        finally:
            self._end_thread()

    def _end_thread(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.end()

    async def _open(self, broker: tuple[str, int], at: tuple[str, int] = (_HOST, 0)) -> tuple[str, int]:
        """The address here of a broker; a listener is opened when it is first named."""
        if broker not in self._listeners:
            if len(self._listeners) >= MOST_BROKERS:
                raise LimitError("too many brokers for a Proxy", limit=MOST_BROKERS)

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await self._serve(broker, reader, writer)

            server = await asyncio.start_server(serve, *at)
            self._servers.append(server)
            host, port = server.sockets[0].getsockname()[:2]
            self._listeners.setdefault(broker, (host, port))
        return self._listeners[broker]

    async def _serve(
        self, broker: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        client = Connection(writer)
        upstream: asyncio.StreamWriter | None = None
        try:
            answers, upstream = await _connected(broker)
            asked = _Pipeline()
            both = {
                asyncio.ensure_future(self._forward(broker, reader, client, upstream, asked)),
                asyncio.ensure_future(self._return(broker, answers, client, asked)),
            }
            try:
                done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in both:
                    one.cancel()
            for one in done:
                one.result()
        except (OSError, KwireError, asyncio.CancelledError):
            pass
        finally:
            with contextlib.suppress(OSError, asyncio.CancelledError):  # the Proxy may end while it waits
                await asyncio.wait_for(writer.drain(), 1)
            writer.close()
            if upstream is not None:
                upstream.close()
            self._faults.forget(client)
            self._tasks.discard(task)

    async def _forward(
        self, broker: tuple[str, int], reader: asyncio.StreamReader, client: Connection,
        upstream: asyncio.StreamWriter, asked: _Pipeline,
    ) -> None:
        """Requests, to the broker."""
        frames = FrameReader()
        while data := await reader.read(_READ_BYTES):
            for frame in frames.feed(data):
                try:
                    request: Request | None = decode_request(frame, lenient=True)
                except KwireError:
                    request = None
                outcome = Outcome() if request is None else self._faults.before(request, self._node(broker))
                if request is not None and outcome.error is not None:
                    answer = pack_frame(encode_response(
                        refusal(request, outcome.error), request.version, correlation_id=request.correlation_id))
                    await asked.add(one := _Asked(len(frame), request, outcome, answer))
                    if asked.first is one:
                        await self._answer_here(broker, client, asked)
                    continue
                if request is None or request.has_response:
                    await asked.add(_Asked(len(frame), request, outcome))
                else:
                    self._faults.record(request, self._node(broker), outcome, False)
                upstream.write(pack_frame(frame))
                await upstream.drain()

    async def _return(
        self, broker: tuple[str, int], reader: asyncio.StreamReader, client: Connection, asked: _Pipeline
    ) -> None:
        """Responses, to the client, in the order of their requests."""
        frames = FrameReader()
        while data := await reader.read(_READ_BYTES):
            for frame in frames.feed(data):
                one = asked.take()
                if one.request is not None:
                    frame = await self._rewritten(frame, one.request)
                    self._faults.record(one.request, self._node(broker), one.outcome, True)
                await self._faults.send(one.outcome, pack_frame(frame), client)
                if client.closing:
                    return
                await self._answer_here(broker, client, asked)
        client.close()

    async def _answer_here(self, broker: tuple[str, int], client: Connection, asked: _Pipeline) -> None:
        """Send the answers made here whose turn it is."""
        while (one := asked.first) is not None and (answer := one.answer) is not None:
            asked.take()
            assert one.request is not None
            self._faults.record(one.request, self._node(broker), one.outcome, True)
            await self._faults.send(one.outcome, answer, client)

    def _node(self, broker: tuple[str, int]) -> int:
        return self._nodes.get(broker, -1)

    async def _rewritten(self, frame: bytes, request: Request) -> bytes:
        """The response with the addresses here in place of the brokers'."""
        if not _names_brokers(request.name):
            return frame
        try:
            response = decode_response(frame, request, lenient=True)
        except KwireError:
            return frame
        for row in _brokers_in(response.message, schema.message(f"{request.name}Response").fields, response.version):
            if row.port <= 0:
                continue
            broker = (row.host, row.port)
            node = next((value for name in ("node_id", "broker_id") if isinstance(
                value := getattr(row, name, None), int)), -1)
            if node >= 0:
                self._nodes[broker] = node
            row.host, row.port = await self._open(broker)
        if request.name == "Metadata" and response.version >= 10:
            metadata: Any = response.message
            self._names.update({topic.topic_id: topic.name for topic in metadata.topics if topic.name})
        return response.to_bytes()


async def _connected(broker: tuple[str, int]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a broker. Raises OSError, also for what a broker said that is no address."""
    try:
        return await asyncio.open_connection(*broker)
    except (ValueError, OverflowError):  # a host name that IDNA refuses, a port out of range
        raise OSError("invalid host name or port") from None


@lru_cache(None)
def _names_brokers(api: str) -> bool:
    """Whether a response of the API has addresses of brokers."""
    return _has_address(schema.message(f"{api}Response").fields)


def _has_address(fields: tuple[Field, ...]) -> bool:
    return {"host", "port"} <= {field.snake_name for field in fields} or any(
        _has_address(field.fields) for field in fields)


def _brokers_in(row: Any, fields: tuple[Field, ...], version: int) -> list[Any]:
    """The structs with a host and a port in a message."""
    present = [field for field in fields if version in field.versions]
    rows = [row] if {"host", "port"} <= {field.snake_name for field in present} else []
    for field in present:
        if field.fields and _has_address(field.fields):
            value = getattr(row, field.snake_name)
            for one in (value or ()) if field.type.startswith("[]") else () if value is None else (value,):
                rows += _brokers_in(one, field.fields, version)
    return rows


def _split(address: str) -> tuple[str, int]:
    check_type(address, str, "the address", 'a str, as "host:9092"')
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"invalid address {address!r}: expected host:port")
    return host.strip("[]"), int(port)
