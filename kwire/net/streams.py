"""Streams of asyncio or uvloop whose connection has ended, before those who use them know."""

from __future__ import annotations

import asyncio
import os
from errno import ECONNRESET

from kwire.net.address import Address


def write(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Write, or drop the data where the connection has ended: drain and reads say so.

    asyncio does so itself; of uvloop a RuntimeError would come.
    """
    if not writer.is_closing():
        writer.write(data)


def write_eof(writer: asyncio.StreamWriter) -> None:
    """End this direction, unless the connection has ended. Raises OSError."""
    if not writer.is_closing():
        writer.write_eof()


def here(writer: asyncio.StreamWriter) -> Address:
    """This side's address. Raises OSError if the connection has ended."""
    return _end_of(writer, "sockname")


def there(writer: asyncio.StreamWriter) -> Address:
    """The other side's address. Raises OSError if the connection has ended."""
    return _end_of(writer, "peername")


def _end_of(writer: asyncio.StreamWriter, which: str) -> Address:
    try:
        found = writer.get_extra_info(which)
    except AttributeError:  # uvloop asks the socket, which is no more
        found = None
    if not found:
        raise ConnectionResetError(ECONNRESET, os.strerror(ECONNRESET))
    return Address(*found[:2])
