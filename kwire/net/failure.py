"""What can go wrong with a broker: part of kwire's one family of errors."""

from __future__ import annotations

from kwire_c.errors import KwireError, LimitError
from kwire_c.printable import printable

__all__ = ["AuthenticationError", "BrokerConnectionError", "BrokerTimeoutError", "FrameSizeError"]


class BrokerConnectionError(KwireError, ConnectionError):
    """A broker that refuses, closes the connection, is not Kafka, or fails at TLS. address: "host:port"."""

    def __init__(self, reason: str, *, address: str = "") -> None:
        self.reason, self.address = printable(reason), printable(address)
        KwireError.__init__(self, f"{address}: {reason}" if address else reason)


class BrokerTimeoutError(BrokerConnectionError, TimeoutError):
    """A broker that did not answer in time."""


class AuthenticationError(BrokerConnectionError):
    """A broker that refuses the credentials or their mechanism, or that fails to prove itself (SCRAM)."""


class FrameSizeError(BrokerConnectionError, LimitError):
    """A broker that announces a frame above the connection's cap. limit, needed: bytes."""

    def __init__(self, reason: str, *, address: str = "", limit: int = 0, needed: int | None = None) -> None:
        BrokerConnectionError.__init__(self, reason, address=address)
        self.limit, self.needed, self.offset = limit, needed, 0
