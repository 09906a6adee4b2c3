"""Connections to a host by name: each of its addresses in turn, looked up in a thread that nobody waits for."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from kwire.net.address import Address
from kwire.net.posting import post
from kwire.net.waiting import turn


async def dial(
    host: str, port: int, seconds: float, check: Callable[[Address], None] | None = None, **options: Any
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address of a host that answers; the options are those of asyncio.open_connection.

    seconds: the time that the caller gives to all; each address but the last has a share of it, as one that is down
    may say nothing. check: called with each address before it is tried. Raises what asyncio.open_connection raises; an
    error of TLS at the first address; what check raises; ValueError.
    """
    if "\0" in host:  # a broker's metadata names it; a resolver would ask for what is before it
        raise ValueError("a host name with a NUL")
    *others, last = await _addresses(host)
    for address in others:
        if check is not None:
            check(Address(address, port))
        try:
            async with asyncio.timeout(turn(seconds)):
                return await asyncio.open_connection(address, port, **options)
        except ssl.SSLError:
            raise
        except OSError:  # TimeoutError too
            continue
    if check is not None:
        for address in [last] if _is_ip(last) else await _by_loop(last):
            check(Address(address, port))
    return await asyncio.open_connection(last, port, **options)


async def _addresses(host: str) -> list[str]:
    """The IP addresses of a host, in the order in which to try them; at least one. Raises OSError, ValueError."""
    if _is_ip(host):
        return [host]
    loop = asyncio.get_running_loop()
    if getattr(type(loop), "getaddrinfo", None) is not asyncio.BaseEventLoop.getaddrinfo:  # one of its own
        return [host]
    answer: asyncio.Future[list[Any]] = loop.create_future()

    def set_answer(error: BaseException | None, found: list[Any]) -> None:
        if answer.done():  # cancelled
            return
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)

    def look_up() -> None:
        error, found = None, list[Any]()
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except BaseException as failed:
            error = failed
        post(loop, partial(set_answer, error, found))

    try:  # not the loop's executor: asyncio.run, and Python's end, wait for its threads, and a resolver may be slow
        start_new_thread(look_up, ())
    except RuntimeError:
        raise OSError(errno.EAGAIN, "no thread can be started to look up the host") from None
    found = await answer
    if not found:
        raise OSError("the host has no address")
    return list(dict.fromkeys(_numeric(*row[4]) for row in found))


async def _by_loop(host: str) -> list[str]:
    """The addresses of a host that the loop itself looks up when it connects; [] where it raises an error then."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [_numeric(*row[4]) for row in found]


def _numeric(address: str, port: int, flow: int = 0, scope: int = 0) -> str:
    """The text of an address, with the number of its interface if it is valid only there (IPv6 link-local)."""
    return f"{address}%{scope}" if scope else address


def _is_ip(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError, ValueError):
            socket.inet_pton(family, host)
            return True
    return False
