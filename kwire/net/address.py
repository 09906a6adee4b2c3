"""HOST:PORT as people write it."""

from __future__ import annotations

from typing import NamedTuple

from kwire.net.errors import BrokerConnectionError


class Address(NamedTuple):
    """A broker's host (name or IP address) and port; str() gives HOST:PORT, [HOST]:PORT for IPv6."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str) -> Address:
    """The address in "host:9092" or "[::1]:9092", also behind a listener's name ("SSL://host:9093").

    Raises BrokerConnectionError for anything else.
    """
    host, _, port = text.rpartition("://")[2].strip().rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    number = int(port) if len(port) < 10 and port.isascii() and port.isdigit() else 0
    if not bare or (":" in bare and bare == host) or not 0 < number < 65536:
        raise BrokerConnectionError(f"{text!r} is no broker's address: HOST:PORT is")
    return Address(bare, number)


def addresses(text: str) -> tuple[Address, ...]:
    """The addresses of a bootstrap list, "host:9092,other:9092"."""
    found = tuple(address(part) for part in text.split(",") if part.strip())
    return found or (address(text),)
