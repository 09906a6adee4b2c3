"""One connection of a client."""

from __future__ import annotations

import asyncio

from kwire.fleet.users import Exchange


class Connection:
    """One connection of a client to a node."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        peer = writer.get_extra_info("peername") or ("", 0)
        self.host, self.port = str(peer[0]), int(peer[1])
        self.closing = False
        self.principal: str | None = None  # who was let in
        self.exchange: Exchange | None = None  # of SASL, under way
        self.raw_sasl = False  # SaslHandshake 0: what follows are tokens without headers

    def close(self) -> None:
        """End it after what is being answered."""
        self.closing = True
