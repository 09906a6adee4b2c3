"""Errors of connections to brokers, all subclasses of KwireError."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.errors import KwireError, LimitError
from kwire_c.printable import printable

if TYPE_CHECKING:
    from kwire.schema import ErrorCode

__all__ = [
    "AuthenticationError",
    "BrokerConnectionError",
    "BrokerTimeoutError",
    "FrameSizeError",
    "RequestRefusedError",
]


class BrokerConnectionError(KwireError, ConnectionError):
    """The broker refused or closed the connection, is not a Kafka broker, or TLS failed. address: "host:port"."""

    def __init__(self, reason: str, *, address: str = "") -> None:
        self.reason, self.address = printable(reason), printable(address)
        KwireError.__init__(self, f"{address}: {reason}" if address else reason)


class BrokerTimeoutError(BrokerConnectionError, TimeoutError):
    """The broker did not answer in time.

    throttled: the seconds for which the broker reads nothing more from this client, which exceeds a quota (KIP-219), if
    that is why the request was not sent; else 0.
    """

    def __init__(self, reason: str, *, address: str = "", throttled: float = 0.0) -> None:
        super().__init__(reason, address=address)
        self.throttled = throttled


class AuthenticationError(BrokerConnectionError):
    """The broker refused the credentials or the mechanism, or could not prove that it knows the password (SCRAM)."""


class RequestRefusedError(BrokerConnectionError):
    """The broker does not say which brokers (or controllers) there are. code: the ErrorCode; text: the broker's."""

    def __init__(self, reason: str, code: ErrorCode, text: str, *, address: str = "") -> None:
        super().__init__(reason, address=address)
        self.code, self.text = code, printable(text)


class FrameSizeError(BrokerConnectionError, LimitError):
    """The broker sent the size of a frame larger than max_frame. limit, needed: bytes."""

    def __init__(self, reason: str, *, address: str = "", limit: int = 0, needed: int | None = None) -> None:
        BrokerConnectionError.__init__(self, reason, address=address)
        self.limit, self.needed, self.offset = limit, needed, 0
