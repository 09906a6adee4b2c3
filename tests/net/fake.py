"""Fake brokers: asyncio servers on loopback that answer as a test says, and a check for leaked tasks and sockets."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import kwire
from kwire import messages, schema
from kwire.codec.frames import FrameReader, Request

HOST = "127.0.0.1"
Ranges = dict[str, tuple[int, int]]


class Server:
    """A server that hands each connection to one function; closes with `async with`."""

    def __init__(self, serve: Callable[..., Awaitable[None]], port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.serve, self.port, self.tls = serve, port, tls
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._accept, HOST, self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.drop()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def drop(self) -> None:
        """Loses all connections."""
        for writer in self._writers:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._writers.add(writer)
        self._tasks.add(task)
        try:
            await self.serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)
            self._tasks.discard(task)


def api_versions(ranges: Ranges, **more: Any) -> Any:
    row = messages.ApiVersionsResponse.ApiVersion
    keys = [row(api_key=schema.api(name).key, min_version=v[0], max_version=v[1]) for name, v in ranges.items()]
    return messages.ApiVersionsResponse(api_keys=keys, **more)


def finalized(levels: dict[str, int], epoch: int) -> dict[str, Any]:
    """Fields of an ApiVersions response: finalized levels with their epoch."""
    key = messages.ApiVersionsResponse.FinalizedFeatureKey
    rows = [key(name=name, max_version_level=level, min_version_level=level) for name, level in levels.items()]
    return {"finalized_features": rows, "finalized_features_epoch": epoch}


def of_release(release: str) -> Ranges:
    """The API versions of a release, as its brokers advertise them."""
    return {row.name: (row.min_version, row.max_stable_version) for row in schema.apis(release)}


class Broker(Server):
    """Answers ApiVersions with its ranges, as 2.4 and newer do (old=True: as those before), the rest by a function.

    answer(request) -> message, bytes (a frame as it is), None (no answer); requests: what came. levels, epoch: the
    finalized feature levels that it tells of.
    """

    def __init__(
        self, ranges: Ranges, answer: Callable[[Request], Any] = lambda _: None, *, old: bool = False,
        levels: dict[str, int] | None = None, epoch: int | None = None, **keywords: Any,
    ) -> None:  # fmt: skip
        super().__init__(self.talk, **keywords)
        self.levels = levels or {}
        self.epoch = (-1 if levels is None else 1) if epoch is None else epoch
        self.ranges, self.answer, self.old = ranges, answer, old
        self.requests: list[Request] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        while data := await reader.read(1 << 16):
            for frame in frames.feed(data):
                request = kwire.decode_request(frame)
                self.requests.append(request)
                answer = self.negotiate(request) if request.name == "ApiVersions" else self.answer(request)
                if isinstance(answer, Awaitable):
                    answer = await answer
                if answer is None:
                    continue
                version = request.version
                if request.name == "ApiVersions" and getattr(answer, "error_code", 0) == 35:
                    version = 0
                if not isinstance(answer, bytes):
                    answer = kwire.encode_response(answer, version, correlation_id=request.correlation_id)
                writer.write(kwire.pack_frame(answer))

    def negotiate(self, request: Request) -> Any:
        low, high = self.ranges["ApiVersions"]
        if low <= request.version <= high:
            return api_versions(self.ranges, **(finalized(self.levels, self.epoch) if request.version >= 3 else {}))
        return api_versions({} if self.old else {"ApiVersions": (low, high)}, error_code=35)


def sockets() -> set[str]:
    """Open sockets of this process, by inode."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
    return {target for target in found if target.startswith("socket:")}


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a test's coroutine; fail if it leaks a task or a socket."""

    async def counted() -> Any:
        before, tasks = sockets(), asyncio.all_tasks()
        result = await work
        for _ in range(100):  # a peer's transport closes its socket some rounds of the loop later
            left, leaked = asyncio.all_tasks() - tasks, sockets() - before
            if not left and not leaked:
                break
            await asyncio.sleep(0.01)
        assert not left, left
        assert not leaked, f"a socket was leaked: {leaked}"
        return result

    return asyncio.run(counted())


@contextmanager
def serving(*servers: Server) -> Iterator[None]:
    """Servers in a loop and thread of their own, for tests that block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def wait(work: Coroutine[Any, Any, Any]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(20)

    try:
        for server in servers:
            wait(server.__aenter__())
        yield
    finally:
        for server in servers:
            wait(server.__aexit__())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def in_a_child(work: Callable[[], bytes]) -> bytes:
    """The result of work in a child of fork, which is ended after 20 seconds."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            signal.alarm(20)
            os.write(writes, work())
        except BaseException as error:
            os.write(writes, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        output = pipe.read()
    _, status = os.waitpid(child, 0)
    assert not status, f"the child was ended by signal {status}, it wrote {output!r}"
    return output


def cluster_answer(*brokers: Server, controller: int = 1, rack: str | None = None) -> Callable[[Request], Any]:
    """Answers Metadata with these brokers (ids from 1), and each other request with nothing."""

    def answer(request: Request) -> Any:
        if request.name != "Metadata":
            return None
        row = messages.MetadataResponse.MetadataResponseBroker
        rows = [row(node_id=i, host=HOST, port=b.port, rack=rack) for i, b in enumerate(brokers, 1)]
        if request.version == 0:
            return messages.MetadataResponse(brokers=[row(node_id=r.node_id, host=r.host, port=r.port) for r in rows])
        return messages.MetadataResponse(brokers=rows, controller_id=controller)

    return answer


def cluster(*ranges: Ranges, **keywords: Any) -> list[Broker]:
    """Brokers whose Metadata lists each other."""
    brokers = [Broker(one, **keywords) for one in ranges]
    for broker in brokers:
        broker.answer = cluster_answer(*brokers)
    return brokers
