"""One connection of a client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kwire.fleet.errors import ApiError
from kwire.fleet.users import Exchange


class Connection:
    """One connection of a client to a node. seen: called with all that is sent to the client."""

    def __init__(self, writer: asyncio.StreamWriter, seen: Callable[[bytes], None] | None = None) -> None:
        self.writer, self._seen = writer, seen
        peer = writer.get_extra_info("peername") or ("", 0)
        self.host, self.port = str(peer[0]), int(peer[1])
        self.closing = self.answering = False
        self.principal: str | None = None  # who was let in
        self.exchange: Exchange | None = None  # of SASL, under way
        self.raw_sasl = False  # SaslHandshake 0: what follows are tokens without headers

    def write(self, data: bytes) -> None:
        """Send bytes to the client."""
        self.writer.write(data)
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

    def close(self) -> None:
        """End it after what is being answered."""
        self.closing = True
