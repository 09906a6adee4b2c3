"""Proxy: faults between clients and a real cluster."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from random import Random
from typing import Any

from kwire import messages, schema
from kwire.capture.exchange import Direction
from kwire.capture.recorder import Recorder
from kwire.capture.tap import connected, reason
from kwire.codec.arguments import check_ints, check_type
from kwire.codec.frames import (
    FrameReader,
    Request,
    decode_request,
    decode_response,
    encode_response,
    pack_frame,
)
from kwire.errors import DecodeError, KwireError, LimitError, UnsupportedVersionError
from kwire.fleet.clock import Clock
from kwire.fleet.connection import Connection
from kwire.fleet.faults import Fault, Faults, Outcome
from kwire.fleet.loop_thread import InThread
from kwire.fleet.refusals import refusal
from kwire.net.address import Address, address
from kwire.net.listening import ACCEPTED_AT_ONCE, close_server, leads_to, let_clients_wait, naming
from kwire.net.streams import here, there, write
from kwire.schema import Field, api_keys
from kwire.schema.error_codes import ErrorCode

MOST_LISTENERS = 1_000  # one a broker, and a host at which clients reach this proxy
MOST_NAMES = 100_000  # of topic ids that are kept, for faults by topic
MOST_WAITING = 64 << 20  # bytes of the requests of a connection that wait for their responses
_OVERHEAD = 1024  # bytes that one of them costs beside its own
_READ_BYTES = 1 << 18
_HOST = "127.0.0.1"
_LAST_BYTES = 30.0  # seconds that each side may take to read them
_IDS = "node_id", "broker_id", "leader_id"  # fields beside the address of a broker
_SIZE_BYTES = 4  # of the size that begins a frame


@dataclass
class _Line:
    """A client's connection and the one to its broker. is_raw: what passes has no frames."""

    broker: Address
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    answers: asyncio.StreamReader
    upstream: asyncio.StreamWriter
    is_raw: bool = False


@dataclass
class _Asked:
    """A request that waits for its response.

    size: the bytes that it counts for; request: without its message, None if it could not be read; answer: one made
    here, b"" for none.
    """

    size: int
    request: Request | None
    outcome: Outcome
    answer: bytes | None = None

    @classmethod
    def of(cls, frame: bytes, request: Request | None, outcome: Outcome, answer: bytes | None = None) -> _Asked:
        """Without the request's message, whose objects may take many times the bytes of the frame."""
        kept = None if request is None else Request(request.header, _NO_MESSAGE, request.header_version)
        return cls(len(frame) + len(answer or b"") + _OVERHEAD, kept, outcome, answer)


_NO_MESSAGE = messages.RequestHeader()


class _OwnAddressError(OSError):
    """An address leads to a listener of the proxy itself. broker: the one that the listener leads to."""

    def __init__(self, broker: Address) -> None:
        super().__init__("it is where the proxy itself listens")
        self.broker = broker


class _Pipeline:
    """The requests of a connection that wait for their responses, oldest first."""

    def __init__(self) -> None:
        self._asked: deque[_Asked] = deque()
        self._bytes, self._taken = 0, asyncio.Event()
        self.turn = asyncio.Lock()  # held while one of them is answered: a later one may be answered here at once

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


class Proxy(InThread):
    """Stands before a cluster, with the verbs of Fleet: .bootstrap, .fault(...), .events.

    target: a broker, "host:port"; listen: where clients connect first ("127.0.0.1:0": any free port). A listener is
    opened for every broker that the cluster names, at the address at which the client reached this proxy, and the
    addresses in responses (Metadata, FindCoordinator, DescribeCluster, node endpoints) are replaced. What is not
    Kafka's (TLS, tokens of SASL without headers) is passed on as it is. record: the name of frame files, as of
    `kwire tap`, with all that clients sent and got. say: called with one line for what a user should know.
    keep_events: False leaves .events empty, for one that runs for long.

    A context manager, sync (in a thread of its own) or async. Raises ValueError for an address that is none, OSError if
    it cannot listen or write.
    """

    def __init__(
        self, target: str, listen: str = f"{_HOST}:0", *, seed: int = 0, clock: Clock | None = None,
        record: str | None = None, say: Callable[[str], None] = lambda line: None, keep_events: bool = True,
    ) -> None:
        check_ints(seed=seed)
        if clock is not None:
            check_type(clock, Clock, "clock", "a Clock")
        self._target, self._listen = address(target), address(listen, any_port=True)
        self._clock, self._record, self._say = clock or Clock(), record, say
        self._names: OrderedDict[uuid.UUID, str] = OrderedDict()  # whose first is found at once
        self._faults = Faults(self._clock, Random(seed), self._names.get, keep_events)
        self._ports: dict[tuple[Address, str], int] = {}  # (broker, host here) -> its port here
        self._brokers: dict[Address, Address] = {}  # where a listener is -> its broker
        self._nodes: dict[Address, int] = {}  # broker -> its node id, once it is known
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends = False
        self.recorder: Recorder | None = None

    def __repr__(self) -> str:
        return f"Proxy({self._target}, {self.bootstrap})"

    @property
    def bootstrap(self) -> str:
        """bootstrap.servers of the clients."""
        return str(self._listen)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What happened, oldest first."""
        return list(self._faults.events)

    def fault(self, api: str | None = None, *, error: str | int | ErrorCode | None = None, **what: Any) -> Fault:
        """Let requests fail by a rule, as Fleet.fault. With error= the request is not sent to the cluster."""
        return self._faults.add(api, error, **what)

    async def __aenter__(self) -> Proxy:
        self._ports.clear()
        self._brokers.clear()
        self._servers.clear()
        self._opening = asyncio.Lock()  # held while a listener for a broker is opened: clients ask at once
        self._ends = False
        self._listen = Address(self._listen.host, await self._open(self._target, self._listen))
        if self._record is not None:
            try:
                self.recorder = Recorder(self._record, self._say)
            except BaseException:
                await self._close()
                raise
        return self

    async def _close(self) -> None:
        self._ends = True
        for server in self._servers:
            close_server(server)
        for task in self._tasks:
            task.cancel()
        try:
            if self._tasks:
                await asyncio.wait(self._tasks)
        finally:
            if self.recorder is not None:
                await self.recorder.close()

    async def _open(self, broker: Address, at: Address) -> int:
        """The port of a listener for a broker, opened when the broker is first named."""
        if len(self._servers) >= MOST_LISTENERS:
            raise LimitError("too many brokers for a Proxy", limit=MOST_LISTENERS, offset=None)

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._ends:  # it was accepted just before
                writer.transport.abort()
                return

            def ended(task: asyncio.Task[None]) -> None:
                writer.transport.abort()  # also of a task that was cancelled before it began
                self._tasks.discard(task)

            task = asyncio.create_task(self._serve(broker, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(ended)

        # not start_serving: a cancellation would lose a server that listens
        with naming(at):
            server = await asyncio.start_server(accept, *at, backlog=ACCEPTED_AT_ONCE, start_serving=False)
        try:
            await server.start_serving()
            let_clients_wait(server)
        except BaseException:
            server.close()
            raise
        self._servers.append(server)
        self._brokers.update({Address(*one.getsockname()[:2]): broker for one in server.sockets})
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def _address_here(self, broker: Address, client: Connection) -> Address:
        """Where this client reaches a broker through this proxy."""
        host = here(client.writer).host
        if broker == self._target:
            return Address(host, self._listen.port)
        async with self._opening:
            if (broker, host) not in self._ports:
                self._ports[broker, host] = await self._open(broker, Address(host, 0))
        return Address(host, self._ports[broker, host])

    async def _serve(self, broker: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: asyncio.StreamWriter | None = None
        try:
            answers, upstream = await self._connected(broker)
        except (OSError, TimeoutError) as error:
            self._say(f"{broker}: {reason(error)}")
        except asyncio.CancelledError:
            pass  # the Proxy ends; asyncio would log it
        else:
            with contextlib.suppress(asyncio.CancelledError, OSError):  # the client has gone already
                await self._converse(_Line(broker, reader, writer, answers, upstream))
        finally:
            if upstream is not None:
                upstream.transport.abort()

    async def _connected(self, broker: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a broker. Raises OSError, TimeoutError.

        Where it names this proxy as its own address (advertised.listeners), the listener there tells the broker.
        """
        named = {broker}
        while True:
            try:
                return await connected(*broker, self._refuse_itself)
            except _OwnAddressError as own:
                broker = own.broker
                if broker in named:
                    raise
                named.add(broker)

    def _refuse_itself(self, address: Address) -> None:
        for listener, broker in self._brokers.items():
            if leads_to(address, listener):
                raise _OwnAddressError(broker)

    async def _converse(self, line: _Line) -> None:
        """Pass on both directions until one of them ends."""
        recorder = self.recorder
        recording = None if recorder is None else recorder.open(str(there(line.writer)), str(line.broker))

        def seen(direction: Direction, data: bytes) -> None:
            if recorder is not None and recording is not None:
                recorder.record(recording, direction, data)

        client = Connection(line.writer, partial(seen, "response"))
        asked = _Pipeline()
        both = {
            asyncio.ensure_future(self._forward(line, client, asked, partial(seen, "request"))),
            asyncio.ensure_future(self._return(line, client, asked)),
        }
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                try:
                    one.result()
                except OSError:
                    pass
                except KwireError as error:
                    self._say(f"{line.broker}: {error}")
            for one in both:
                one.cancel()
            for side in (line.writer, line.upstream):
                side.close()
            with contextlib.suppress(OSError, TimeoutError):  # who does not read keeps nothing
                async with asyncio.timeout(_LAST_BYTES):
                    await asyncio.gather(line.writer.wait_closed(), line.upstream.wait_closed(), return_exceptions=True)
        finally:
            for one in both:
                one.cancel()
            self._faults.forget(client)
            if recorder is not None and recording is not None:
                recorder.end(recording)

    async def _forward(
        self, line: _Line, client: Connection, asked: _Pipeline, seen: Callable[[bytes], None]
    ) -> None:
        """Requests, to the broker."""
        frames, begin = FrameReader(), b""
        while data := await line.reader.read(_READ_BYTES):
            seen(data)
            try:
                whole = frames.feed(data)
            except KwireError:
                if len(begin) >= _SIZE_BYTES:
                    raise
                line.is_raw, whole = True, []  # TLS, or anything else that has no frames
                write(line.upstream, begin + data)
            begin = begin if len(begin) >= _SIZE_BYTES else begin + data[:_SIZE_BYTES]
            for frame in whole:
                await self._forward_frame(line, client, asked, frame)
                if client.closing:
                    return
            if line.is_raw:
                await line.upstream.drain()
                while data := await line.reader.read(_READ_BYTES):
                    seen(data)
                    write(line.upstream, data)
                    await line.upstream.drain()

    async def _forward_frame(self, line: _Line, client: Connection, asked: _Pipeline, frame: bytes) -> None:
        node = self._node(line.broker)
        try:
            request: Request | None = decode_request(frame, lenient=True)
        except KwireError:
            request = None
        outcome = Outcome() if request is None else self._faults.before(request, node)
        if request is not None and outcome.error is not None:
            answer = pack_frame(encode_response(
                refusal(request, outcome.error), request.version, correlation_id=request.correlation_id))
            await asked.add(_Asked.of(frame, request, outcome, answer if request.has_response else b""))
            async with asked.turn:
                await self._answer_here(line, client, asked)
            return
        if request is None or request.has_response:
            await asked.add(_Asked.of(frame, request, outcome))
        else:
            self._faults.record(request, node, outcome, False)
        write(line.upstream, pack_frame(frame))
        await line.upstream.drain()

    async def _return(self, line: _Line, client: Connection, asked: _Pipeline) -> None:
        """Responses, to the client, in the order of their requests."""
        frames = FrameReader()
        while data := await line.answers.read(_READ_BYTES):
            if line.is_raw:
                client.write(data)
                await line.writer.drain()
                continue
            for frame in frames.feed(data):
                async with asked.turn:
                    one = asked.take()
                    if one.request is not None:
                        frame = await self._rewritten(frame, one.request, client)
                        self._faults.record(one.request, self._node(line.broker), one.outcome, True)
                    await self._faults.send(one.outcome, pack_frame(frame), client)
                    await self._answer_here(line, client, asked)
                if client.closing:
                    return

    async def _answer_here(self, line: _Line, client: Connection, asked: _Pipeline) -> None:
        """Send the answers made here whose turn it is."""
        while not client.closing and (one := asked.first) is not None and (answer := one.answer) is not None:
            asked.take()
            assert one.request is not None
            self._faults.record(one.request, self._node(line.broker), one.outcome, bool(answer))
            if answer:
                await self._faults.send(one.outcome, answer, client)
            else:
                client.close()  # acks 0: a broker's only way to say that it failed

    def _node(self, broker: Address) -> int:
        return self._nodes.get(broker, -1)

    async def _rewritten(self, frame: bytes, request: Request, client: Connection) -> bytes:
        """The response with the addresses here in place of the brokers', and no version that cannot be read here."""
        if not _names_brokers(request.name) and request.api_key != api_keys.API_VERSIONS:
            return frame
        try:
            response = decode_response(frame, request, lenient=True)
        except KwireError:
            return frame
        message: Any = response.message
        if request.api_key == api_keys.API_VERSIONS:
            for row in message.api_keys:
                row.max_version = min(row.max_version, _newest(row.api_key, row.max_version))
            return response.to_bytes()
        for row in _brokers_in(message, schema.message(f"{request.name}Response").fields, response.version):
            if row.port <= 0:
                continue
            broker = Address(row.host, row.port)
            node = next((value for name in _IDS if isinstance(value := getattr(row, name, None), int)), -1)
            row.host, row.port = await self._address_here(broker, client)
            if node >= 0:  # after it, as there are not more listeners than MOST_LISTENERS
                self._nodes[broker] = node
        if request.name == "Metadata" and response.version >= 10:
            self._names.update({topic.topic_id: topic.name for topic in message.topics if topic.name})
            while len(self._names) > MOST_NAMES:  # the oldest are forgotten
                self._names.popitem(last=False)
        return response.to_bytes()


@lru_cache(None)
def _names_brokers(api: str) -> bool:
    """Whether a response of the API has addresses of brokers."""
    return _has_address(schema.message(f"{api}Response").fields)


@lru_cache(10_000)
def _newest(key: int, there: int) -> int:
    """The newest version of an API that can be read here: brokers of a later release may have newer ones."""
    try:
        name = schema.api(key).name
    except UnsupportedVersionError:
        return there
    return schema.message(f"{name}Request").valid_versions.high if _names_brokers(name) else there


def _is_broker(fields: Iterable[Field]) -> bool:
    """Whether a struct has the address of a broker: with its id. Applications of Kafka Streams have one too."""
    names = {field.snake_name for field in fields}
    return names >= {"host", "port"} and not names.isdisjoint(_IDS)


def _has_address(fields: tuple[Field, ...]) -> bool:
    return _is_broker(fields) or any(_has_address(field.fields) for field in fields)


def _brokers_in(row: Any, fields: tuple[Field, ...], version: int) -> list[Any]:
    """The structs with the address of a broker in a message."""
    present = [field for field in fields if version in field.versions]
    rows = [row] if _is_broker(present) else []
    for field in present:
        if field.fields and _has_address(field.fields):
            value = getattr(row, field.snake_name)
            for one in (value or ()) if field.type.startswith("[]") else () if value is None else (value,):
                rows += _brokers_in(one, field.fields, version)
    return rows
