"""An event loop in a thread of its own: how a Fleet or a Proxy runs for code that is not async."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
import threading
from _thread import start_new_thread
from collections.abc import Awaitable, Callable
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

from kwire.net.posting import post

T = TypeVar("T")
_TURN = 0.5  # seconds: a signal just before a wait is handled only after it
_UNBORN = 2.0  # seconds after which a thread that was interrupted before it began does not begin any more


class LoopThread:
    """A loop that runs from start() to end().

    begin: run in the loop at first; finish: run there at last, if begin came to its end. Both run in the thread: a
    KeyboardInterrupt of the caller, who only waits for them, leaves nothing half begun or half finished.

    Waiting uses SimpleQueue and start_new_thread, which are written in C: an interrupt inside a Condition or
    Thread.start can leave their locks held.
    """

    def __init__(self, begin: Callable[[], Awaitable[Any]], finish: Callable[[], Awaitable[Any]]) -> None:
        self._begin, self._finish, self._process = begin, finish, os.getpid()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread_id: int | None = None
        self._is_ending, self.has_ended = False, False
        self._asked = asyncio.Event()  # to end
        self._begun: SimpleQueue[BaseException | None] = SimpleQueue()
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()

    @property
    def is_here(self) -> bool:
        """Whether this process has the thread: a child of fork has not."""
        return os.getpid() == self._process

    def start(self) -> None:
        """Start the thread, and wait until begin has come to its end. Raises what it raises; then end() it.

        Raises OSError where no thread can be started; RuntimeError in a finalizer that runs where Python ends, as the
        thread would not run any more.
        """
        if sys.is_finalizing():
            raise RuntimeError("Python ends: no thread runs any more")
        try:
            start_new_thread(self._serve, ())
        except RuntimeError:
            self.has_ended = True
            raise OSError(errno.EAGAIN, "no thread can be started for the loop") from None
        error = self._get(self._begun)
        if error is not None:
            raise error

    def call(self, work: Callable[[], T]) -> T:
        """Run a function in the loop, from any thread; what it returns or raises.

        After the end, and in a finalizer that runs where Python ends: in this thread.

        Raises ValueError in a child of fork, where there is no loop.
        """
        if not self.is_here:
            raise ValueError(f"it runs in the process {self._process}, of which this one is a fork")
        loop = self._loop
        if loop is None or threading.get_ident() == self._thread_id or sys.is_finalizing():
            return work()
        done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

        def run() -> None:
            try:
                done.put((work(), None))
            except BaseException as error:
                done.put((None, error))

        post(loop, run)
        while True:
            ended = self.has_ended
            try:
                value, error = done.get(timeout=0 if ended else _TURN)
            except Empty:
                if ended:
                    return work()
                continue
            if error is not None:
                raise error
            result: T = value
            return result

    def end(self) -> None:
        """Finish, and wait for it. Raises what finish raises. Does nothing in a child of fork and where Python ends."""
        if not self.is_here or self.has_ended or sys.is_finalizing():
            return
        self._is_ending = True
        if self._loop is not None:
            post(self._loop, self._asked.set)
        error = self._get(self._ended, None if self._thread_id is not None else _UNBORN)
        self.has_ended = True
        if error is not None:
            raise error

    @staticmethod
    def _get(queue: SimpleQueue[BaseException | None], seconds: float | None = None) -> BaseException | None:
        """The next item of a queue; None after so many seconds."""
        while True:
            try:
                return queue.get(timeout=_TURN if seconds is None else seconds)
            except Empty:
                if seconds is not None:
                    return None

    def _serve(self) -> None:
        self._thread_id = threading.get_ident()
        error: BaseException | None = None
        try:
            loop = asyncio.SelectorEventLoop()
            try:
                loop.run_until_complete(self._live())
            finally:
                _close(loop)
        except BaseException as caught:
            error = caught
        finally:
            self.has_ended = True
            self._begun.put(error or RuntimeError("the loop was ended while it began"))
            self._ended.put(error)

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self._is_ending:
            return
        begin, asked = asyncio.ensure_future(self._begin()), asyncio.ensure_future(self._asked.wait())
        await asyncio.wait((begin, asked), return_when=asyncio.FIRST_COMPLETED)
        if not begin.done():
            begin.cancel()
            await asyncio.wait((begin,))
        failed = None if begin.cancelled() else begin.exception()
        self._begun.put(failed)
        if begin.cancelled() or failed is not None:
            asked.cancel()
            return
        await asked
        await self._finish()


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """As asyncio.Runner ends a loop; that asks for the current thread, and one made in C would be listed for ever."""
    try:
        if left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.wait(left))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


class InThread:
    """A context manager: what is entered as `async with` in a loop runs in a thread as `with`."""

    _thread: LoopThread | None = None

    async def __aenter__(self) -> Self:
        """Begin."""
        raise NotImplementedError

    async def _close(self) -> None:
        """End."""
        raise NotImplementedError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise ValueError(f"the {type(self).__name__} runs already")
        self._thread = LoopThread(self.__aenter__, self._close)
        try:
            self._thread.start()
            return self
        except BaseException:
            self._end_thread()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._thread is None:
                raise ValueError(f"the {type(self).__name__} does not run")
            self._end_thread()
        except BaseException:  # Ctrl-C: what ends goes on ending
            self._end_thread()
            raise

    def _end_thread(self) -> None:
        thread = self._thread
        if thread is not None:
            try:
                thread.end()
            finally:
                if thread.has_ended or not thread.is_here:
                    self._thread = None

    def _in_loop(self, work: Callable[[], T]) -> T:
        """What work returns, run in the loop, from any thread."""
        thread = self._thread
        return work() if thread is None else thread.call(work)
