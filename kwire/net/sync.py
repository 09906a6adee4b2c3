"""A connection without async: its event loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Coroutine
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack
from weakref import WeakSet

from kwire.codec.arguments import check_seconds
from kwire.held_lock import holding
from kwire.net.address import Address
from kwire.net.api_versions import NodeApiVersions
from kwire.net.connection import Connection, Options
from kwire.net.errors import BrokerConnectionError, BrokerTimeoutError
from kwire.net.posting import post

if TYPE_CHECKING:
    from kwire_c.message_class import RequestMessage

T = TypeVar("T")
_TURN = 0.5  # seconds: a signal just before a wait is handled only after it
_PATIENCE = 5.0  # seconds after which asyncio has lost a task, for lack of memory; a close takes one


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
        at_the_end = sys is None or sys.is_finalizing()  # Python has set the module's own names to None by then
        if hasattr(self, "_loop") and not at_the_end:
            self._left = self._loop or self._left
            self._end()

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
        self._run(self._connection.open(), self._connection.timeout)

    def send(self, message: RequestMessage[T], version: int | None = None, *, timeout: float | None = None) -> T:
        """Send a request and return the response message; as Connection.send."""
        self._connection.refuse_closed()  # before a thread is started
        seconds = self._connection.timeout if timeout is None else check_seconds(timeout, "timeout")
        return self._run(self._connection.send(message, version, timeout=timeout), seconds)

    def refresh(self) -> None:
        """Ask the broker again for its API versions and the finalized levels; as Connection.refresh."""
        self._connection.refuse_closed()
        self._run(self._connection.refresh(), self._connection.timeout)

    def close(self) -> None:
        """Close the connection and end its thread; requests of other threads in flight fail.

        Raises RuntimeError in a callback of this connection, and in a finalizer that runs inside another of its calls.
        """
        if sys.is_finalizing():
            return
        self._refuse_deadlock()
        closing = holding(self._ending, self._close)
        task = None if closing is None else closing.task
        if task is not None and task.done() and not task.cancelled():
            task.result()

    def _close(self) -> _Call[None] | None:
        """End the loop, if there is one, and wait for it."""
        loop = holding(self._guard, self._take)
        closing = self._end()
        if loop is not None and closing is not None:
            loop.wait(closing)
        return closing

    def _take(self) -> _Loop | None:
        """Take the loop out of use, in one statement: an interrupt leaves it in one of the two attributes.

        Again, where close() was interrupted, the same loop.
        """
        self._left, self._loop = self._loop or self._left, None
        return self._left

    def _end(self) -> _Call[None] | None:
        """Begin to end the loop that close() took; again where an interrupt came between, which changes nothing."""
        if self._left is None:
            return None
        closing = _Call(self._connection.close())
        if not self._left.post(partial(self._left.begin, closing, self._left.end)):
            closing.work.close()
        return closing

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

    def _post(self, call: _Call[Any]) -> _Loop:
        """Start a call in the loop, which is made if there is none."""
        def in_new_one() -> _Loop:
            return holding(self._guard, lambda: self._asked(call) or self._begun(call))

        return holding(self._guard, lambda: self._asked(call)) or holding(self._ending, in_new_one)

    def _asked(self, call: _Call[Any]) -> _Loop | None:
        """The loop that runs, after it was asked to begin a call; None if none does."""
        loop = self._loop
        if loop is None or loop.has_ended:
            return None
        loop.ask(call)
        return loop

    def _begun(self, call: _Call[Any]) -> _Loop:
        """A loop that was made, and asked to begin a call."""
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
        loop.ask(call)
        return loop

    def _drop(self, work: Coroutine[Any, Any, Any]) -> None:
        """End work that nobody waits for: in the loop, if there is one, which may be at it."""
        loop = self._loop or self._left
        if loop is None or not loop.post(partial(loop.drop, work)):
            work.close()

    def _run(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Run work in the loop and return its result. seconds: its timeout; it may ask twice."""
        call = _Call(work)
        try:
            self._refuse_deadlock()
        except BaseException:
            work.close()
            raise
        try:
            loop = self._post(call)
        except BaseException:  # also KeyboardInterrupt, MemoryError, RecursionError: the loop may have it or not
            self._drop(work)
            raise
        try:
            task = call.wait(2 * seconds + _PATIENCE, partial(loop.ask, call))
        except BaseException as error:  # KeyboardInterrupt: nobody waits for the work any more
            self._drop(work)
            if isinstance(error, TimeoutError):
                raise BrokerTimeoutError(f"no end within {seconds:g} s", address=str(self.address)) from None
            raise
        if task.cancelled():
            raise self._connection.was_closed()
        return task.result()


class _Call(Generic[T]):
    """Work in a loop, for whose end a thread waits.

    It waits in short turns: a signal just before a wait is handled only after it, and where memory is short a loop
    loses what it was asked, or the word that it is done.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.work = work
        self.task: asyncio.Task[T] | None = None
        self.error: MemoryError | BrokerConnectionError | None = None  # in place of what the task gives
        self.ended: SimpleQueue[object] = SimpleQueue()

    @property
    def has_begun(self) -> bool:
        """Whether the loop has taken it up."""
        return self.error is not None or self.task is not None

    @property
    def has_ended(self) -> bool:
        """Whether it is done, or will not be."""
        return self.error is not None or (self.task is not None and self.task.done())

    def wait(self, seconds: float, ask: Callable[[], object]) -> asyncio.Task[T]:
        """The task of the work, when it has ended. ask: asks the loop again to begin it.

        Raises its error; TimeoutError after so many seconds, as the task has lost its own timeout.
        """
        until = time.monotonic() + seconds
        while not self.has_ended:
            try:
                self.ended.get(timeout=_TURN)
            except Empty:
                if time.monotonic() > until:
                    raise TimeoutError from None
                ask()
        if self.error is not None:
            raise self.error
        assert self.task is not None
        return self.task


_SERVED = threading.local()  # .connection: the one whose loop this thread runs


class _Loop:
    """An event loop for a thread of its own, and its tasks.

    Waiting uses SimpleQueue and start_new_thread, which are written in C: an interrupt inside a Future, a Condition or
    Thread.start can leave their locks held, so that the loop waits for ever, or released twice. The tasks are kept
    here because asyncio.all_tasks() may miss one while other threads start others.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._gone: SimpleQueue[None] = SimpleQueue()  # gets an item when the thread ends
        self.has_ended = False  # also where it could not run, or what it ran ended the thread, as SystemExit does
        self.failure: BrokerConnectionError | None = None  # why the thread could not run the loop
        self._loop = asyncio.SelectorEventLoop()
        self._calls: dict[Coroutine[Any, Any, Any], _Call[Any]] = {}
        self.post, self.stop, self.close = partial(post, self._loop), self._loop.stop, self._loop.close

    def serve(self) -> None:
        """Run the loop in this thread until it is stopped.

        Where the loop itself finds no memory, which of its timers or events it has lost is not known: all tasks are
        cancelled, and it runs again.
        """
        failed: MemoryError | None = None
        try:
            while True:
                try:
                    _SERVED.connection = self._connection
                    if failed is not None:
                        for call in self._calls.values():
                            call.error = failed
                        self._cancel_all()
                    self._loop.run_forever()
                    break
                except MemoryError as error:
                    failed = error
        except RuntimeError as error:  # gevent's and eventlet's threads are greenlets, which share a running loop
            reason = f"the connection's thread cannot run its event loop: {error}"
            self.failure = BrokerConnectionError(reason, address=str(self._connection.address))
        finally:
            try:
                self._loop.close()
            finally:
                self.has_ended = True
                self._gone.put(None)

    def wait(self, closing: _Call[None]) -> None:
        """Wait until the thread has ended, which the end of a call is to bring about.

        asyncio loses the end of a task where it finds no memory: then the thread ends without it.
        """
        until = math.inf  # it has not begun: a callback of the user may run
        while not self.has_ended:
            try:
                self._gone.get(timeout=_TURN)
            except Empty:
                if until == math.inf and closing.has_begun:
                    until = time.monotonic() + _PATIENCE
                self.post(partial(self.begin, closing, self.end) if time.monotonic() < until else self._abandon)

    def begin(self, call: _Call[Any], then: Callable[[], object] = lambda: None) -> None:
        """Start a call, in the loop. Its exception is always retrieved, even if its caller no longer waits.

        then: called when it has ended. A second time it changes nothing, but that.
        """
        if call.has_ended:
            then()
        if call.has_begun:
            return
        try:
            self._calls[call.work] = call
            task = call.task = self._loop.create_task(call.work)
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            task.add_done_callback(lambda done: self._calls.pop(call.work))
            task.add_done_callback(call.ended.put)
            task.add_done_callback(lambda done: then())
        except MemoryError as error:
            call.error = error
            if call.task is not None:
                call.task.cancel()
            then()

    def ask(self, call: _Call[Any]) -> None:
        """Ask the loop to begin a call, again if it may have lost it; the call fails where the loop has ended."""
        if not self.post(partial(self.begin, call)) and not call.has_ended:
            call.error = self.failure or self._connection.was_closed()

    def drop(self, work: Coroutine[Any, Any, Any]) -> None:
        """Cancel work, in the loop, or close it if it was not begun."""
        call = self._calls.get(work)
        if call is None:
            work.close()
        elif call.task is not None:
            call.task.cancel()

    def end(self) -> None:
        """Cancel all tasks, in the loop, then stop it."""
        try:
            running = self._cancel_all()
            if running:
                asyncio.gather(*running, return_exceptions=True).add_done_callback(lambda _: self.stop())
                return
        except MemoryError:  # what is left goes with the loop
            pass
        self.stop()

    def _abandon(self) -> None:
        """Stop the loop, whatever runs in it."""
        self._connection.abort()
        for call in self._calls.values():
            call.error = self._connection.was_closed()
        self.stop()

    def _cancel_all(self) -> set[asyncio.Task[Any]]:
        running = {call.task for call in self._calls.values() if call.task is not None}
        running |= asyncio.all_tasks(self._loop)
        for task in running:
            task.cancel()
        return running


_ALL: WeakSet[SyncConnection] = WeakSet()


def _forget_threads() -> None:
    """Run in a child of fork: the parent's threads do not exist here, whatever locks they held."""
    for connection in list(_ALL):
        connection._begin()


os.register_at_fork(after_in_child=_forget_threads)


def connect_sync(where: str | Address, **keywords: Unpack[Options]) -> SyncConnection:
    """A connection to the broker at "host:9092", for `with`; the keywords are those of connect()."""
    return SyncConnection(where, **keywords)
