"""A file, a pipe or standard input as the argument of a command, decompressed if it is gzip."""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

import click

from kwire.errors import DecodeError, LimitError
from kwire.output import check_standard_output

MOST_UNPACKED = 1 << 30  # bytes of a gzip stream: commands may hold all of them
_PIECE = 1 << 20  # bytes that are read at a time
MOST_HELD = 1 << 30  # bytes of one message, line or JSON value: /dev/zero never ends
_GZIP = b"\x1f\x8b\x08"
_PAYLOAD = re.compile(r"(?:(?:0x|\\x)?[0-9a-fA-F]{2}[\s:,]*)+$|\s*[{\[]|[A-Za-z0-9+/]+={1,2}$")  # hex, JSON, base64


class InputFile(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A binary file to read: a path, a pipe, - for standard input; what begins as gzip does is decompressed.

    Reading raises DecodeError for damaged gzip, LimitError for more than 1 GiB in it.
    """

    name = "filename"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> IO[bytes]:
        """The open file; its name is the path."""
        if not isinstance(value, str | os.PathLike):
            return value  # type: ignore[no-any-return]
        path = os.fspath(value)
        if path == "-":
            if sys.stdin is None:
                self.fail("standard input is closed", param, ctx)
            check_standard_output(["-"])
            with suppress(OSError, ValueError):  # if it does not wait for bytes (O_NONBLOCK), they seem to be at an end
                os.set_blocking(sys.stdin.fileno(), True)
            return unpacked(sys.stdin.buffer, "standard input")
        try:
            file = open(path, "rb")  # noqa: SIM115 - until the command ends
        except OSError as error:
            hint = " (the bytes themselves? they go to standard input)" if _PAYLOAD.match(path) else ""
            from kwire.storage.places.filesystem import shown

            self.fail(f"{shown(path)!r}: {error.strerror}{hint}", param, ctx)
        check_standard_output([path])
        if ctx is not None:
            ctx.call_on_close(file.close)
        return unpacked(file, path)


def unpacked(file: IO[bytes], name: str) -> IO[bytes]:
    """The file, decompressed if it is gzip."""
    stream: Any = file if hasattr(file, "peek") else io.BufferedReader(file)
    packed = stream.peek(len(_GZIP)).startswith(_GZIP)
    return io.BufferedReader(_Gunzip(stream, name)) if packed else stream


def whole(file: IO[bytes]) -> bytes:
    """All bytes of the input. Raises LimitError for more than 1 GiB."""
    pieces, left = [], MOST_HELD
    while piece := file.read(_PIECE):  # read(n) takes n bytes of memory before it knows how many there are
        left -= len(piece)
        if left < 0:
            raise LimitError("the input holds too many bytes for one message", limit=MOST_HELD)
        pieces.append(piece)
    return b"".join(pieces)


def lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of the input. Raises LimitError for one of more than 1 GiB."""
    while line := file.readline(MOST_HELD + 1):
        if len(line) > MOST_HELD:
            raise LimitError("a line holds too many bytes", limit=MOST_HELD)
        yield line


class _Gunzip(io.RawIOBase):
    """The content of a gzip stream; name: that of its file."""

    def __init__(self, packed: Any, name: str) -> None:
        self.name, self._stream, self._unpacked = name, gzip.GzipFile(fileobj=packed), 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer. Raises DecodeError, LimitError."""
        try:
            data = self._stream.read1(len(buffer))
            self._unpacked += len(data)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            reason = f"the gzip stream is damaged: {' '.join(str(error).split())}"
            raise DecodeError(reason, what=self.name) from None
        if self._unpacked > MOST_UNPACKED:
            raise LimitError(f"{self.name}: the gzip stream holds too many bytes", limit=MOST_UNPACKED)
        buffer[: len(data)] = data
        return len(data)
