"""Servers of asyncio or uvloop: their sockets, and what happens where the process runs out of files."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING

from kwire.net.address import Address

if TYPE_CHECKING:
    from _typeshed import HasFileno

# asyncio's backlog says how many clients wait, and how often a turn tries to accept one. Where no more files can be
# opened each try that fails begins a timer, which tries as often again a second later: with 100 no turn ever ends.
ACCEPTED_AT_ONCE = 1
_WAITING = 1024


@contextmanager
def naming(address: Address) -> Iterator[None]:
    """Name the address in the error of a host that is not known: the system's own does not."""
    try:
        yield
    except socket.gaierror as error:
        raise OSError(error.errno, error.strerror, str(address)) from None


def let_clients_wait(server: asyncio.Server) -> None:
    """Let clients wait at a server that was started with backlog=ACCEPTED_AT_ONCE. Raises OSError."""
    for one in server.sockets:
        with whole(one) as listener:
            listener.listen(_WAITING)


def leads_to(address: Address, listener: Address) -> bool:
    """Whether a connection to an IP address and port leads to what listens at another, which may be any of this host's.

    False for a host name.
    """
    if address.port != listener.port:
        return False
    try:
        wanted, here = ip_address(address.host), ip_address(listener.host)
    except ValueError:
        return False
    wanted, here = getattr(wanted, "ipv4_mapped", None) or wanted, getattr(here, "ipv4_mapped", None) or here
    if wanted.version != here.version:
        return False
    if wanted.is_unspecified:  # a connection to it leads to the loopback address
        wanted = ip_address("127.0.0.1" if wanted.version == 4 else "::1")
    return wanted == here or (here.is_unspecified and _is_of_this_host(str(wanted)))


def _is_of_this_host(ip: str) -> bool:
    try:
        with socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind((ip, 0))
    except OSError:
        return False
    return True


@contextmanager
def whole(one: HasFileno) -> Iterator[socket.socket]:
    """A transport's or server's socket with all methods, and no other descriptor: there may be none left."""
    itself = socket.socket(fileno=one.fileno())
    try:
        yield itself
    finally:
        itself.detach()


def close_server(server: asyncio.AbstractServer) -> None:
    """Accept no more clients, and close the server in the next turn of its loop.

    A client that was just accepted gets its transport in that turn. If the server is closed by then, asyncio fails
    without closing the client's socket (3.11 to 3.13: an assertion in Server._attach).
    """
    if not isinstance(server, asyncio.Server):  # in a simulation, and uvloop's, which has no such step
        server.close()
        return
    loop = server.get_loop()
    for one in server.sockets:
        loop.remove_reader(one)
    loop.call_soon(server.close)
