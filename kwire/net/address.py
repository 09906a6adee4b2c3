"""Broker addresses: HOST:PORT, as in bootstrap.servers."""

from __future__ import annotations

from typing import NamedTuple

from kwire.net.errors import BrokerConnectionError
from kwire_c.printable import brief


class Address(NamedTuple):
    """A broker's host (name or IP address) and port; str() gives HOST:PORT, [HOST]:PORT for IPv6."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def address(text: str, *, any_port: bool = False) -> Address:
    """The address in "host:9092" or "[::1]:9092"; a listener's name before it ("SSL://host:9093") is ignored.

    any_port: also port 0, which means any free port to one that listens.
    Raises BrokerConnectionError for anything else.
    """
    if not isinstance(text, str):
        raise TypeError(f'where must be a str, as "host:9092", not {type(text).__name__}')
    host, _, port = text.rpartition("://")[2].strip().rpartition(":")
    name = host.removeprefix("[").removesuffix("]")
    number = int(port) if len(port) < 10 and port.isascii() and port.isdigit() else -1
    if (
        not name or (":" in name and name == host) or not (0 if any_port else 1) <= number < 65536
        or not _is_encodable(name) or _has_user_or_query(name)
    ):
        shown = "" if _has_user_or_query(text) else f" {brief(text)}"  # which may hold a password
        raise BrokerConnectionError(f"invalid broker address{shown}: expected HOST:PORT")
    return Address(name, number)


def _has_user_or_query(text: str) -> bool:
    """Whether a text looks like a URL with a user or a query, which no broker's address has."""
    return "@" in text or "?" in text


def _is_encodable(host: str) -> bool:
    """Whether a host can be asked for: of a name each label has 1 to 63 bytes, and none of them is 0."""
    if "\0" in host:  # a resolver would ask for what is before it
        return False
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return True


def addresses(text: str) -> tuple[Address, ...]:
    """The addresses in a list such as bootstrap.servers, "host:9092,other:9092". Raises BrokerConnectionError."""
    if not isinstance(text, str):
        raise TypeError(f'bootstrap must be a str, as "host:9092,other:9092", not {type(text).__name__}')
    parsed = tuple(address(part) for part in text.split(",") if part.strip())
    return parsed or (address(text),)
