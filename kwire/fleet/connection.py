"""One connection of a client."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

from kwire.fleet.errors import ApiError
from kwire.fleet.users import Exchange
from kwire.net.listening import whole
from kwire.net.streams import there, write
from kwire.schema import api_keys


class Connection:
    """One connection of a client to a node. seen: called with all that is sent to the client."""

    def __init__(self, writer: asyncio.StreamWriter, seen: Callable[[bytes], None] | None = None) -> None:
        self.writer, self._seen = writer, seen
        self.host, self.port = "", 0
        with contextlib.suppress(OSError):  # it has ended already
            self.host, self.port = there(writer)
        self.closing = self.answering = False
        self.principal: str | None = None  # who was let in
        self.exchange: Exchange | None = None  # of SASL, under way
        self.telemetry: Any = None  # apis.telemetry.ClientTelemetry, once it asked for it
        self.said_versions = False  # ApiVersions was answered before it was let in
        self.raw_sasl = False  # SaslHandshake 0: what follows are tokens without headers
        self._waiting: asyncio.Task[Any] | None = None  # it makes an answer that comes later
        self._gone = False

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""
        write(self.writer, data)
        if self._seen is not None:
            self._seen(data)

    def authenticate(self, token: bytes) -> bytes:
        """One step of the exchange that is under way: the answer. After a failed one the connection ends: ApiError."""
        assert self.exchange is not None
        try:
            answer = self.exchange.step(token)
        except ApiError:
            self.close()
            raise
        if self.exchange.user is not None:
            self.principal, self.exchange = self.exchange.user, None
        return answer

    def may_ask(self, api_key: int) -> bool:
        """Whether a request is in its order before the client was let in (SaslServerAuthenticator)."""
        if self.exchange is not None:
            return api_key == api_keys.SASL_AUTHENTICATE
        return api_key == api_keys.SASL_HANDSHAKE or (api_key == api_keys.API_VERSIONS and not self.said_versions)

    @contextlib.contextmanager
    def waits(self) -> Iterator[None]:
        """While an answer is waited for: if the client goes, nobody does, and the task is cancelled."""
        self._waiting = task = asyncio.current_task()
        if self._gone and task is not None:
            task.cancel()
        try:
            yield
        finally:
            self._waiting = None

    def gone(self) -> None:
        """The client closed the connection, or its end of it."""
        self._gone = True
        if self._waiting is not None:
            self._waiting.cancel()

    def abort(self) -> None:
        """End it at once. It is shut down before it is closed: a child of fork has it too, and does not close it."""
        connected = self.writer.get_extra_info("socket")
        if connected is not None and connected.fileno() >= 0:  # else it has ended already
            with contextlib.suppress(OSError), whole(connected) as itself:
                itself.shutdown(socket.SHUT_RDWR)
        self.writer.transport.abort()

    def close(self) -> None:
        """End it after what is being answered."""
        self.closing = True
