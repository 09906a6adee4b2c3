"""The same connection without async: its loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from _thread import start_new_thread
from collections.abc import Callable, Coroutine
from contextlib import suppress
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Unpack
from weakref import WeakSet

from kwire.net.address import Address
from kwire.net.connection import Connection, Options
from kwire.net.failure import BrokerConnectionError
from kwire.net.offer import Offer


class SyncConnection:
    """One broker, without async. Made by connect_sync(); opened by `with`. Threads may share it; see Connection."""

    def __init__(self, where: str | Address, **keywords: Unpack[Options]) -> None:
        self._connection = Connection(where, **keywords)
        self._begin()
        _ALL.add(self)

    def _begin(self) -> None:
        """Have no loop yet."""
        self._ending = threading.Lock()  # held until a loop has ended: no other begins before
        self._guard = threading.Lock()  # of the two below; nothing is waited for while it is held
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gone: SimpleQueue[None] | None = None  # tells the end of its thread

    def __repr__(self) -> str:
        return repr(self._connection).replace("Connection", "SyncConnection", 1)

    def __enter__(self) -> SyncConnection:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> Address:
        """Host and port."""
        return self._connection.address

    @property
    def is_open(self) -> bool:
        """Whether the broker can be sent to without opening anew."""
        return self._connection.is_open

    @property
    def offer(self) -> Offer:
        """As Connection.offer."""
        return self._connection.offer

    @property
    def versions(self) -> dict[str, tuple[int, int]]:
        """API name -> (min, max) that the broker offers, both included."""
        return self._connection.versions

    @property
    def assumed(self) -> str | None:
        """As Connection.assumed."""
        return self._connection.assumed

    @property
    def tolerated(self) -> dict[str, int]:
        """As Connection.tolerated."""
        return self._connection.tolerated

    def newest(self, api: int | str) -> int:
        """As Connection.newest."""
        return self._connection.newest(api)

    def version_for(self, message: Any) -> int:
        """As Connection.version_for."""
        return self._connection.version_for(message)

    def open(self) -> None:
        """Connect, negotiate and authenticate, unless that is done."""
        self._run(self._connection.open())

    def send(self, message: Any, version: int | None = None, *, timeout: float | None = None) -> Any:
        """The broker's answer to a request; as Connection.send."""
        self._connection.refuse_closed()  # no thread is begun for that
        return self._run(self._connection.send(message, version, timeout=timeout))

    def close(self) -> None:
        """Close the connection and end its thread; what other threads have in flight fails."""
        loop = gone = None
        ending: list[asyncio.Task[None]] = []
        with self._ending:
            try:
                with self._guard:
                    loop, gone, self._loop, self._gone = self._loop, self._gone, None, None
            finally:  # whatever interrupts this: a loop that nobody has any more ends by itself
                if loop is not None:
                    loop.call_soon_threadsafe(lambda: ending.append(_kept(self._end())))
            if gone is not None:
                gone.get()
        for task in ending:
            task.result()

    async def _end(self) -> None:
        """Close the connection, and end what still runs in this loop, and the loop."""
        try:
            await self._connection.close()
        finally:
            running = asyncio.all_tasks() - {asyncio.current_task()}
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            asyncio.get_running_loop().stop()

    def _post(self, begin: Callable[[], object]) -> asyncio.AbstractEventLoop:
        """Have the loop call it; a loop that is there, or a new one."""
        with self._guard:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(begin)
                return self._loop
        with self._ending, self._guard:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                try:
                    self._loop, self._gone = loop, SimpleQueue()
                    start_new_thread(_serve, (loop, self._gone))
                except BaseException:  # KeyboardInterrupt: whether it runs is not known
                    self._loop = self._gone = None
                    loop.call_soon_threadsafe(loop.stop)
                    raise
            self._loop.call_soon_threadsafe(begin)
            return self._loop

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What the work gives, done in the loop.

        SimpleQueue and start_new_thread are C: an interrupt inside of a Future, a Condition or Thread.start can leave
        their locks taken, for which the loop would wait then, or released twice.
        """
        ended: SimpleQueue[asyncio.Task[Any]] = SimpleQueue()
        tasks: list[asyncio.Task[Any]] = []

        def begin() -> None:
            tasks.append(_kept(work))
            tasks[0].add_done_callback(ended.put)

        loop = self._post(begin)
        try:
            task = ended.get()
        except BaseException:  # KeyboardInterrupt: the work must not go on unseen
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise
        if task.cancelled():
            raise BrokerConnectionError("the connection was closed", address=str(self.address))
        return task.result()


_TASKS: set[asyncio.Task[Any]] = set()  # a loop alone does not keep its tasks


def _kept(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """A task of the running loop, kept until it is done; that it failed is seen, whether or not its caller waits."""
    task = asyncio.get_running_loop().create_task(work)
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


def _serve(loop: asyncio.AbstractEventLoop, gone: SimpleQueue[None]) -> None:
    """A thread's work: the loop, until it is stopped."""
    try:
        loop.run_forever()
    finally:
        loop.close()
        gone.put(None)


_ALL: WeakSet[SyncConnection] = WeakSet()


def _forget() -> None:
    """In a child of fork: there are no threads of the parent here, whatever they held."""
    for connection in list(_ALL):
        connection._begin()
    _TASKS.clear()


os.register_at_fork(after_in_child=_forget)


def connect_sync(where: str | Address, **keywords: Unpack[Options]) -> SyncConnection:
    """A connection to the broker at "host:9092", for `with`; the keywords are those of connect()."""
    return SyncConnection(where, **keywords)
