"""A node: listeners that answer as brokers and controllers of one release do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from kwire.codec.frames import FrameReader, Request, decode_request, decode_request_header, encode_response, pack_frame
from kwire.errors import KwireError
from kwire.fleet.apis import CONTROLLER_HANDLERS, FINISHED, HANDLERS, Call
from kwire.fleet.apis.metadata import ranges
from kwire.fleet.cluster import ClusterState
from kwire.fleet.connection import Connection
from kwire.fleet.controller.rules import Kip778
from kwire.fleet.errors import ApiError
from kwire.fleet.faults import Faults
from kwire.fleet.fetch_sessions import FetchSessions
from kwire.fleet.refusals import refusal
from kwire.fleet.releases import offer
from kwire.fleet.users import Users
from kwire.net.listening import ACCEPTED_AT_ONCE, close_server, let_clients_wait
from kwire.schema import api_keys
from kwire.schema.error_codes import ErrorCode
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage.metadata.image import ClusterImage

T = TypeVar("T")
_READ_BYTES = 1 << 18
_MOST_UNREAD = 1 << 16  # bytes that a client may leave unread before its next request is read
BOTH_ROLES = frozenset({"broker", "controller"})


class Node:
    """A node of a fleet: a broker, a controller, or both. id: from 1 on; release: "3.9"; host, port: of the broker.

    roles: as in process.roles. controller_port: of its controller, 0 if it has none. refused: why the controller
    refused its registration; reason: why it terminated.
    """

    def __init__(
        self, cluster: ClusterState, node_id: int, release: str, faults: Faults, *, host: str = "127.0.0.1",
        port: int = 0, tls: ssl.SSLContext | None = None, rack: str | None = None,
        users: Users | None = None, roles: frozenset[str] = BOTH_ROLES, rules: Kip778,
    ) -> None:
        self.cluster, self.id, self.host, self.rack = cluster, node_id, host, rack
        self.faults, self.users, self._roles, self._rules = faults, users, roles, rules
        self.offer = offer(release, rules.first_kraft)
        self._clients = Listener(self, port, tls, HANDLERS)
        self._controllers = Listener(self, 0, tls, CONTROLLER_HANDLERS)
        self.fetch_sessions = FetchSessions()
        self._held_back: tuple[object, frozenset[int]] = None, frozenset()  # at what the level allows
        self.refused: str | None = None
        self.reason: str | None = None
        self.in_loop: Callable[[Callable[[], None]], None] = lambda work: work()  # how to run something in the loop

    def __repr__(self) -> str:
        state = "" if self.alive else f", down: {self.reason}" if self.reason else ", down"
        return f"Node({self.id}, {self.release}, {self.address}{state}{', fenced' * (self.alive and self.fenced)})"

    @property
    def release(self) -> str:
        """The release that it speaks as."""
        return self.offer.release

    @property
    def is_broker(self) -> bool:
        """Whether it is a broker: clients connect to it."""
        return "broker" in self._roles

    @property
    def is_controller(self) -> bool:
        """Whether it is a controller of the quorum; with ZooKeeper there are none."""
        return "controller" in self._roles and self.cluster.controller.kraft

    @property
    def port(self) -> int:
        """Where the broker listens, 0 before it was started."""
        return self._clients.port

    @property
    def address(self) -> str:
        """host:port of the broker."""
        return f"{self.host}:{self.port}"

    @property
    def controller_port(self) -> int:
        """Where the controller listens, 0 if there is none."""
        return self._controllers.port

    @property
    def controller_address(self) -> str:
        """host:port of the controller, which takes what kafka-features sends with --bootstrap-controller."""
        return f"{self.host}:{self.controller_port}"

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._clients.is_open or self._controllers.is_open

    @property
    def levels(self) -> dict[str, int]:
        """The finalized feature levels that it knows, {} of software without features; level 0 is left out."""
        return dict(self.cluster.levels) if self.offer.features else {}

    @property
    def fenced(self) -> bool:
        """Whether it may not serve: a node that is down, or whose registration the controller refused."""
        if not (self.alive and self.is_broker):
            return True
        return self.cluster.controller.kraft and not self.cluster.controller.is_in_service(self)

    @property
    def image(self) -> ClusterImage:
        """The metadata as it is now: a kwire.storage.ClusterImage. Raises ValueError with ZooKeeper."""
        if not self.cluster.controller.kraft:
            raise ValueError(f"Kafka {self.release} keeps its metadata in ZooKeeper: there is no image of it")
        return self._in_loop(self.cluster.controller.log.image)

    @property
    def snapshots(self) -> dict[str, bytes]:
        """The snapshots of the metadata log: name, as Kafka's OFFSET-EPOCH.checkpoint, -> content, oldest first.

        With data= they are files of the folder: while the fleet runs.
        """
        return self._in_loop(lambda: self.cluster.controller.log.snapshots)

    @property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """The versions that its broker says it has, by API key: forwarded APIs as the active controller has them."""
        controller = self.cluster.controller
        if not controller.kraft:
            return self.offer.ranges
        active = controller.active
        held = self.held_back
        forwarded = self._rules.forwarded_ranges(self.offer, None if active is None else active.offer)
        return {key: span for key, span in forwarded.items() if key not in held}

    @property
    def held_back(self) -> frozenset[int]:
        """The keys of the APIs that wait for a higher metadata.version."""
        if not self.cluster.controller.kraft:
            return frozenset()
        can = self.cluster.controller.log.can
        if can is not self._held_back[0]:
            self._held_back = can, self._rules.held_back_apis(can)
        return self._held_back[1]

    @property
    def peers(self) -> dict[int, dict[str, int]]:
        """Id of another broker -> the versions of the requests that it sends to it ({"Fetch": 17})."""
        controller = self.cluster.controller
        return {
            other.id: self._rules.versions_between_brokers(controller.log.can, self.offer, other.offer)
            for other in self.cluster.alive() if other is not self and controller.kraft}

    def negotiated(self) -> tuple[object, ...]:
        """What a client has learned of it by ApiVersions when it connected: its ranges, and the metadata.version."""
        return self.ranges, self.cluster.levels.get(METADATA_VERSION)

    def _in_loop(self, work: Callable[[], T]) -> T:
        """What work returns, run where the nodes run."""
        found: list[T] = []
        self.in_loop(lambda: found.append(work()))
        return found[0]

    def start(self) -> None:
        """Listen; after stop() on the same port again. Raises OSError if the port is taken."""
        self.in_loop(self._start)

    def stop(self) -> None:
        """Close the listeners and all connections; the partitions that it led get other leaders."""
        self.in_loop(self._stop)

    def upgrade(self, release: str) -> None:
        """Stop, and start again as a later release. Raises ValueError if it is not later, UnsupportedVersionError.

        A node that does not support the finalized levels terminates, or stays fenced if it is no controller.
        """
        if not offer(release).at_least(self.release):
            raise ValueError(f"upgrade from {self.release} to {release}: expected a later release")
        self._restart(release)

    def downgrade(self, release: str) -> None:
        """Stop, and start again as an earlier release. Raises ValueError if it is not, UnsupportedVersionError.

        A node that does not support the finalized levels terminates, or stays fenced if it is no controller.
        """
        if not self.offer.at_least(offer(release).release):
            raise ValueError(f"downgrade from {self.release} to {release}: expected an earlier release")
        self._restart(release)

    def _restart(self, release: str) -> None:
        def restart() -> None:
            self._stop()
            self.offer = offer(release, self._rules.first_kraft)
            self._start()

        self.in_loop(restart)

    def _start(self) -> None:
        if self.alive:
            return
        self.reason = self.refused = None
        if self.is_broker:
            self._clients.open(self.host, self.offer.usable)
        if self.is_controller:
            try:
                self._controllers.open(self.host, self.offer.controller_ranges)
            except BaseException:
                self._clients.close(True)
                raise
        self.faults.note("started", node=self.id, release=self.release)
        self._changes_state(self.cluster.controller.node_started)

    def _stop(self, at_once: bool = True) -> None:
        if not self.alive:
            return
        self._clients.close(at_once)
        self._controllers.close(at_once)
        self.fetch_sessions = FetchSessions()
        self.faults.note("stopped", node=self.id)
        self._changes_state(self.cluster.controller.node_stopped)

    def _changes_state(self, change: Callable[[Node], None]) -> None:
        """Let the controller know of it: partitions get leaders, other nodes' clients learn their new ranges."""
        change(self)
        self.cluster.elect()

    def terminate(self, reason: str) -> None:
        """End, as a process does that cannot go on, after what is being answered. In the loop of the fleet."""
        self.reason = reason
        self._stop(at_once=False)

    def drop_connections(self) -> None:
        """End all connections of clients, as brokers do when their ranges change; after what is being answered."""
        if dropped := self._clients.drop_connections():
            self.faults.note("connections dropped", node=self.id, connections=dropped)

    async def closed(self) -> None:
        """Wait until all connections have ended, after stop()."""
        await self._clients.closed()
        await self._controllers.closed()


class Listener:
    """A listener of a node: clients connect to it, and it answers them. port: where it listens, 0 before that.

    usable: the versions that it decodes, by API key; handlers: what answers them, by API key.
    """

    def __init__(
        self, node: Node, port: int, tls: ssl.SSLContext | None, handlers: Mapping[int, Callable[[Call], Any]]
    ) -> None:
        self.node, self.port, self.usable = node, port, dict[int, tuple[int, int]]()
        self._handlers, self._tls, self._faults = handlers, tls, node.faults
        self._listener: Any = None  # a listening socket, or a SimulatedListener
        self._server: asyncio.Server | None = None
        self._opening: asyncio.Task[None] | None = None
        self._served: Any = None  # the listener that became the server's own, which closes it
        self._connections: dict[asyncio.Task[Any], Connection] = {}

    @property
    def is_open(self) -> bool:
        """Whether it listens."""
        return self._listener is not None

    def open(self, host: str, usable: dict[int, tuple[int, int]]) -> None:
        """Listen; after close() on the same port again. Raises OSError if the port is taken."""
        self.usable = usable
        self._listener = _listen(host, self.port)
        self.port = self._listener.getsockname()[1]
        self._opening = asyncio.ensure_future(self._open(self._listener))

    async def _open(self, listener: Any) -> None:
        if listener is not self._listener:  # stopped before it was open
            return
        self._served = listener
        loop = asyncio.get_running_loop()
        # not start_serving: a cancellation would lose a server that listens
        server = await loop.create_server(
            lambda: _Protocol(self._accept, self._tls is not None), sock=listener, backlog=ACCEPTED_AT_ONCE,
            start_serving=False)
        try:
            await server.start_serving()
            if listener is self._listener:  # else it was stopped meanwhile, and another may have its port
                let_clients_wait(server)
        except BaseException:
            server.close()
            raise
        if listener is self._listener:
            self._server = server
        else:
            close_server(server)

    def close(self, at_once: bool) -> None:
        """Listen no more, and end all connections; at_once: also those on which a request is being answered."""
        listener, self._listener = self._listener, None
        if listener is None:
            return
        with contextlib.suppress(OSError):  # a child of fork has it too, and would go on listening
            listener.shutdown(socket.SHUT_RDWR)
        if self._server is not None:
            close_server(self._server)
        self._server = None
        if listener is not self._served:  # else its server closes it, at the latest when it is made
            listener.close()
        if at_once:
            self.abort_connections()
        else:
            self.drop_connections()

    def abort_connections(self) -> None:
        """End all connections at once."""
        for task, connection in self._connections.items():
            connection.abort()
            task.cancel()

    def drop_connections(self) -> int:
        """End all connections; those on which a request is being answered after the answer. How many there were."""
        for connection in self._connections.values():
            if connection.answering:
                connection.close()
            else:
                connection.abort()
        return len(self._connections)

    async def closed(self) -> None:
        """Wait until all connections have ended, after close()."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._connections:
            await asyncio.wait(list(self._connections))

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.is_open:  # it was accepted just before
            writer.transport.abort()
            return
        connection = Connection(writer)
        protocol = writer.transport.get_protocol()
        assert isinstance(protocol, _Protocol)
        protocol.ended = connection.gone

        def ended(task: asyncio.Task[None]) -> None:
            connection.abort()  # also of a task that was cancelled before it began
            self._connections.pop(task, None)
            self._faults.forget(connection)
            if not task.cancelled() and (error := task.exception()) is not None:
                task.get_loop().call_exception_handler(
                    {"message": "a connection of a client failed", "exception": error, "task": task})

        task = asyncio.create_task(self._serve(reader, connection))
        self._connections[task] = connection
        task.add_done_callback(ended)

    async def _serve(self, reader: asyncio.StreamReader, connection: Connection) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if self._tls is not None:  # here, and not by the server: so who never ends a handshake is a connection too
                with connection.waits():
                    await connection.writer.start_tls(self._tls)
            await self._converse(reader, connection)

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
                connection.answering = True
                await self._answer(frame, connection)
                connection.answering = False
                if connection.closing or connection.writer.transport.get_write_buffer_size() > _MOST_UNREAD:
                    await connection.writer.drain()
                if frame is not whole[-1]:
                    await asyncio.sleep(0)  # others' requests come between those that this client sent at once
                if connection.closing or connection.writer.is_closing():
                    return

    async def _answer(self, frame: bytes, connection: Connection) -> None:
        """Answer one request: the next one is read after it, as Kafka's socket server does."""
        if connection.raw_sasl and connection.exchange is not None:
            with contextlib.suppress(ApiError):  # it ends the connection
                connection.write(pack_frame(connection.authenticate(frame)))
            return
        request = self._decoded(frame, connection)
        if request is None:
            return
        if self.node.users is not None and connection.principal is None and not connection.may_ask(request.api_key):
            if connection.exchange is not None:
                late = self._packed(refusal(request, ErrorCode.ILLEGAL_SASL_STATE), request, connection)
                connection.write(late or b"")
            connection.close()
            return
        outcome = self._faults.before(request, self.node.id)
        if outcome.error is not None:
            answer = refusal(request, outcome.error) if request.has_response else None
            if answer is None:
                connection.close()  # acks 0: a broker's only way to say that it failed
        else:
            answer = await self._handled(request, connection)
        self._faults.record(request, self.node.id, outcome, answer is not None)
        data = None if answer is None else self._packed(answer, request, connection)
        if data is not None:
            await self._faults.send(outcome, data, connection)

    async def _handled(self, request: Request, connection: Connection) -> Any:
        handler = self._handlers.get(request.api_key)
        if handler is None or request.api_key in self.node.held_back:
            return refusal(request, ErrorCode.UNSUPPORTED_VERSION)
        try:
            answer = handler(Call(self.node, connection, request))
            if isinstance(answer, Awaitable):
                with contextlib.nullcontext() if request.api_key in FINISHED else connection.waits():
                    return await answer
            return answer
        except ApiError as error:  # what no row of the answer can say alone: the disk is full
            code = error.code
        except MemoryError as error:  # it may have happened: to refuse it would be wrong
            connection.close()
            self._failed(request, error)
            return None
        except Exception as error:
            code = self._failed(request, error)
        if request.has_response:
            return refusal(request, code)
        connection.close()
        return None

    def _failed(self, request: Request, error: Exception) -> ErrorCode:
        """The code for a request that cannot be handled (KafkaApis.handleError); the events have the reason."""
        reason = f"{type(error).__name__}: {error}"
        self._faults.note("failed", node=self.node.id, api=request.name, version=request.version, reason=reason)
        return ErrorCode.UNKNOWN_SERVER_ERROR

    def _packed(self, answer: Any, request: Request, connection: Connection) -> bytes | None:
        """The frame of an answer; None, and the end of the connection, if even its refusal cannot be written."""
        number = request.correlation_id
        try:
            try:
                return pack_frame(encode_response(answer, request.version, correlation_id=number))
            except KwireError as error:  # a text around a name of 32,767 bytes is too long for a string
                answer = refusal(request, self._failed(request, error))
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
        low, high = self.usable.get(key, (0, -1))
        if key == api_keys.API_VERSIONS and self.node.offer.is_silent:
            return None  # 0.9 neither answers nor closes
        if low <= version <= high:
            try:
                return decode_request(frame, lenient=True)
            except KwireError:
                pass
        elif key == api_keys.API_VERSIONS and header is not None:
            offered = {key: (low, high)} if self.node.offer.answers_its_range else {}
            answer = ranges(offered)
            answer.error_code = ErrorCode.UNSUPPORTED_VERSION
            data = pack_frame(encode_response(answer, 0, correlation_id=header.correlation_id))
            connection.write(data)
            return None
        connection.close()
        return None


class _Protocol(asyncio.StreamReaderProtocol):
    """A stream whose end is noticed while nobody reads it. held: nothing is read before TLS begins; ended: called then.
    """

    def __init__(
        self, accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None], held: bool
    ) -> None:
        super().__init__(asyncio.StreamReader(), accept)
        self._held = held
        self.ended: Callable[[], None] = lambda: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._held:
            cast(asyncio.ReadTransport, transport).pause_reading()
        super().connection_made(transport)

    def eof_received(self) -> bool | None:
        self.ended()
        return super().eof_received() and not self._held  # TLS cannot be closed by half: asyncio would log it

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended()
        super().connection_lost(exc)


def _listen(host: str, port: int) -> Any:
    """A listening socket; in a simulation one in memory. Raises OSError if the port is taken."""
    simulated = getattr(asyncio.get_running_loop(), "simulated_listener", None)
    return socket.create_server((host, port), backlog=1024) if simulated is None else simulated(host, port)
