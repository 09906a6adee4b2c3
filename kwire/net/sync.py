"""A connection without async: its event loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack
from weakref import WeakSet

from kwire.net.address import Address
from kwire.net.api_versions import NodeApiVersions
from kwire.net.connection import Connection, Options
from kwire.net.errors import BrokerConnectionError

if TYPE_CHECKING:
    from kwire_c.message_class import RequestMessage

T = TypeVar("T")


class SyncConnection:
    """A connection to one broker, without async; see Connection. Made by connect_sync(); opened by `with`.

    Threads may share it. Where Python ends, its thread does not run any more: in a finalizer that runs then, close()
    does nothing and every other call raises RuntimeError.
    """

    def __init__(self, where: str | Address, **keywords: Unpack[Options]) -> None:
        self._connection = Connection(where, **keywords)
        self._begin()
        _ALL.add(self)

    def _begin(self) -> None:
        """Start without a loop."""
        self._ending = threading.RLock()  # held until a loop has ended: no other starts before
        self._guard = threading.RLock()  # protects _loop; nothing waits while it is held
        self._left: _Loop | None = None  # the loop that close() took
        self._loop: _Loop | None = None

    def __repr__(self) -> str:
        if not hasattr(self, "_connection"):
            return "<kwire.net.SyncConnection, not made>"
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

    def __del__(self) -> None:
        """End the thread of a connection that was not closed, as of one that an interrupt took from its `with`."""
        if hasattr(self, "_loop") and not sys.is_finalizing():
            self._left = self._loop or self._left
            self._end(lambda ended: None)

    @property
    def address(self) -> Address:
        """The broker's host and port."""
        return self._connection.address

    @property
    def is_open(self) -> bool:
        """As Connection.is_open."""
        return self._connection.is_open

    @property
    def api_versions(self) -> NodeApiVersions:
        """As Connection.api_versions."""
        return self._connection.api_versions

    @property
    def versions(self) -> dict[str, tuple[int, int]]:
        """As Connection.versions."""
        return self._connection.versions

    @property
    def levels(self) -> dict[str, int]:
        """As Connection.levels."""
        return self._connection.levels

    @property
    def levels_epoch(self) -> int:
        """As Connection.levels_epoch."""
        return self._connection.levels_epoch

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

    def version_for(self, message: RequestMessage[object]) -> int:
        """As Connection.version_for."""
        return self._connection.version_for(message)

    def open(self) -> None:
        """Connect, negotiate and authenticate; as Connection.open."""
        self._run(self._connection.open())

    def send(self, message: RequestMessage[T], version: int | None = None, *, timeout: float | None = None) -> T:
        """Send a request and return the response message; as Connection.send."""
        self._connection.refuse_closed()  # before a thread is started
        return self._run(self._connection.send(message, version, timeout=timeout))

    def refresh(self) -> None:
        """Ask the broker again for its API versions and the finalized levels; as Connection.refresh."""
        self._connection.refuse_closed()
        self._run(self._connection.refresh())

    def close(self) -> None:
        """Close the connection and end its thread; requests of other threads in flight fail.

        Raises RuntimeError in a callback of this connection, and in a finalizer that runs inside another of its calls.
        """
        if sys.is_finalizing():
            return
        self._refuse_deadlock()
        closed = list[asyncio.Task[None]]()
        with self._ending:
            with self._guard:  # one statement: an interrupt leaves the loop in one of the two attributes
                loop, self._left, self._loop = self._loop, self._loop or self._left, None
            self._end(closed.append)
            if loop is not None:
                _get(loop.gone)
        for task in closed:
            task.result()

    def _end(self, ended: Callable[[asyncio.Task[None]], object]) -> None:
        """Begin to end the loop that close() took; again where an interrupt came between, which changes nothing."""
        if self._left is None:
            return
        work = self._connection.close()
        try:
            self._left.post(partial(self._left.begin, work, ended, self._left.end))
        except RuntimeError:  # the loop is closed
            work.close()

    def _refuse_deadlock(self) -> None:
        """Raise RuntimeError where the call would wait for ever.

        That is in the loop's own thread, inside another call, and where Python ends and no other thread runs.
        """
        if sys.is_finalizing():
            raise RuntimeError("Python ends: the connection's thread does not run any more")
        if getattr(_SERVED, "connection", None) is self._connection:
            raise RuntimeError("deadlock: a callback of this connection calls the connection, which waits for it")
        if self._guard._is_owned() or self._ending._is_owned():  # type: ignore[attr-defined]
            raise RuntimeError("deadlock: a finalizer calls the connection inside another of its calls")

    def _post(self, work: Coroutine[Any, Any, Any], ended: Callable[[asyncio.Task[Any]], object]) -> _Loop:
        """Start work in the loop, which is made if there is none."""
        with self._guard:
            if self._loop is not None:
                self._loop.post(partial(self._loop.begin, work, ended))
                return self._loop
        with self._ending, self._guard:
            if self._loop is None:
                loop = _Loop(self._connection)
                try:
                    self._loop = loop
                    start_new_thread(loop.serve, ())
                except RuntimeError:
                    self._loop = None
                    loop.close()
                    reason = "no thread can be started for the connection"
                    raise BrokerConnectionError(reason, address=str(self.address)) from None
                except BaseException:  # KeyboardInterrupt: the thread may or may not run
                    self._loop = None
                    loop.post(loop.stop)
                    raise
            self._loop.post(partial(self._loop.begin, work, ended))
            return self._loop

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work in the loop and return its result."""
        ended: SimpleQueue[asyncio.Task[T]] = SimpleQueue()
        try:
            self._refuse_deadlock()
            loop = self._post(work, ended.put)
        except (RuntimeError, BrokerConnectionError):
            work.close()
            raise
        try:
            task = _get(ended)
        except BaseException:  # KeyboardInterrupt: nobody waits for the work any more
            with suppress(RuntimeError):  # the loop is closed
                loop.post(partial(loop.cancel, work))
            raise
        if task.cancelled():
            raise BrokerConnectionError("the connection was closed", address=str(self.address))
        return task.result()


def _get(queue: SimpleQueue[T]) -> T:
    """The next item of a queue. Waits in short turns: a signal just before a wait is handled only after it."""
    while True:
        with suppress(Empty):
            return queue.get(timeout=0.5)


_SERVED = threading.local()  # .connection: the one whose loop this thread runs


class _Loop:
    """An event loop for a thread of its own, and its tasks.

    Waiting uses SimpleQueue and start_new_thread, which are written in C: an interrupt inside a Future, a Condition or
    Thread.start can leave their locks held, so that the loop waits for ever, or released twice. The tasks are kept
    here because asyncio.all_tasks() may miss one while other threads start others.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.gone: SimpleQueue[None] = SimpleQueue()  # gets an item when the thread ends
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[Coroutine[Any, Any, Any], asyncio.Task[Any]] = {}
        self.post, self.stop, self.close = self._loop.call_soon_threadsafe, self._loop.stop, self._loop.close

    def serve(self) -> None:
        """Run the loop in this thread until it is stopped."""
        _SERVED.connection = self._connection
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()
            self.gone.put(None)

    def begin(
        self, work: Coroutine[Any, Any, Any], ended: Callable[[asyncio.Task[Any]], object],
        then: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        """Start work, in the loop. Its exception is always retrieved, even if its caller no longer waits."""
        task = self._tasks[work] = self._loop.create_task(work)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        task.add_done_callback(lambda done: self._tasks.pop(work))
        task.add_done_callback(ended)
        task.add_done_callback(lambda done: then())

    def cancel(self, work: Coroutine[Any, Any, Any]) -> None:
        """Cancel work that has not ended, in the loop."""
        if work in self._tasks:
            self._tasks[work].cancel()

    def end(self) -> None:
        """Cancel all tasks, in the loop, then stop it."""
        running = {*self._tasks.values(), *asyncio.all_tasks(self._loop)}
        for task in running:
            task.cancel()
        if running:
            asyncio.gather(*running, return_exceptions=True).add_done_callback(lambda _: self.stop())
        else:
            self.stop()


_ALL: WeakSet[SyncConnection] = WeakSet()


def _forget_threads() -> None:
    """Run in a child of fork: the parent's threads do not exist here, whatever locks they held."""
    for connection in list(_ALL):
        connection._begin()


os.register_at_fork(after_in_child=_forget_threads)


def connect_sync(where: str | Address, **keywords: Unpack[Options]) -> SyncConnection:
    """A connection to the broker at "host:9092", for `with`; the keywords are those of connect()."""
    return SyncConnection(where, **keywords)
