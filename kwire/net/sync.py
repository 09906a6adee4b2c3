"""The same connection without async: its loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from types import TracebackType
from typing import Any, Unpack
from weakref import WeakSet

from kwire.net.address import Address
from kwire.net.api_versions import NodeApiVersions
from kwire.net.connection import Connection, Options
from kwire.net.errors import BrokerConnectionError


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
        self._thread: threading.Thread | None = None

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
    def api_versions(self) -> NodeApiVersions:
        """As Connection.api_versions."""
        return self._connection.api_versions

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
        with self._ending:
            with self._guard:
                loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            if loop is None or thread is None:
                return
            try:
                asyncio.run_coroutine_threadsafe(self._end(), loop).result()
            finally:
                loop.call_soon_threadsafe(loop.stop)
                thread.join()
                loop.close()

    async def _end(self) -> None:
        """Close the connection, and end what still runs in this loop."""
        await self._connection.close()
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _begun(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Have the loop do it; a loop that is there, or a new one."""
        with self._guard:
            if self._loop is not None:
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        with self._ending, self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name=repr(self), daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        future = self._begun(work)
        try:
            return future.result()
        except CancelledError:
            raise BrokerConnectionError("the connection was closed", address=str(self.address)) from None
        except BaseException:  # KeyboardInterrupt: the work must not go on unseen
            future.cancel()
            raise


_ALL: WeakSet[SyncConnection] = WeakSet()


def _forget() -> None:
    """In a child of fork: there are no threads of the parent here, whatever they held."""
    for connection in list(_ALL):
        connection._begin()


os.register_at_fork(after_in_child=_forget)


def connect_sync(where: str | Address, **keywords: Unpack[Options]) -> SyncConnection:
    """A connection to the broker at "host:9092", for `with`; the keywords are those of connect()."""
    return SyncConnection(where, **keywords)
