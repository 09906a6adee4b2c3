"""gzip as java.util.zip.GZIPInputStream reads it: concatenated members, each with its checksum."""

from __future__ import annotations

import zlib
from typing import Any

from kwire.errors import CorruptBatchError, EncodeError, LimitError
from kwire_c.printable import brief

_inflater: Any
_crc32: Any
_Error: Any
try:
    from isal import __version__ as _version
    from isal import isal_zlib

    LIBRARY = f"isal {_version}"
    _inflater, _crc32, _Error = isal_zlib.decompressobj, isal_zlib.crc32, isal_zlib.error
except ImportError:
    LIBRARY = f"zlib {zlib.ZLIB_RUNTIME_VERSION}"
    _inflater, _crc32, _Error = zlib.decompressobj, zlib.crc32, zlib.error

_PLAIN = b"\x1f\x8b\x08\x00"  # magic, deflate, no optional header fields
_PLAIN_SIZE = 10  # of a header that starts so
_STEP = 4 << 20  # zlib copies the output of a call once more, so large outputs are taken in steps; and large inputs
_CHUNK = 64 << 10
_SOURCE = 8 << 10  # what GzipCompression has GZIPInputStream read at a time
_TRAILER = 8
_FHCRC, _FEXTRA, _FNAME, _FCOMMENT = 2, 4, 8, 16


def decompress(data: Any, limit: int, magic: int) -> bytes | bytearray:
    """The content of all members. Bytes after a member that are not a gzip header are ignored, as in Java."""
    if bytes(data[:4]) != _PLAIN or len(data) > _STEP:  # an inflater copies the rest of its input at each step
        return _members(memoryview(data), limit)
    inflater = _inflater(31)
    out = _inflate(inflater, data, limit + 1)
    if len(out) > limit:
        raise _too_large(limit)
    if not inflater.eof:
        raise CorruptBatchError("gzip: the stream ends early")
    rest = len(inflater.unused_data)
    if rest:
        return _members(memoryview(data), limit, out, len(data) - rest)
    return out


def _too_large(limit: int) -> LimitError:
    return LimitError("gzip: the batch decompresses to more than the limit", limit=limit)


def _inflate(inflater: Any, data: Any, room: int) -> bytes | bytearray:
    """The output of the stream, at most room bytes."""
    try:
        first: bytes = inflater.decompress(data, min(room, _STEP))
        if inflater.eof or len(first) < _STEP:
            return first
        out = bytearray(first)
        while not inflater.eof and len(out) < room:
            part = inflater.decompress(inflater.unconsumed_tail, min(room - len(out), _STEP))
            if not part and not inflater.eof:
                break
            out += part
        return out
    except _Error as error:
        raise CorruptBatchError(f"gzip: {error}") from None


def _members(data: memoryview, limit: int, head: bytes | bytearray | None = None, at: int = 0) -> bytes | bytearray:
    """The content of the members. head: that of the first, which ends at byte `at`; None: it is still to be read."""
    whole, start = bytearray(head or b""), _PLAIN_SIZE
    if head is None:
        start = _header(data)
        at = _member(data, start, whole, limit)
    source = start  # up to where GZIPInputStream has read its source, which it does in steps once a header is read
    while True:
        steps = -(-max(at - _TRAILER - source, 0) // _SOURCE)
        source = min(source + steps * _SOURCE, len(data))
        # it looks for another member only if it has read more than 18 bytes after the trailer, or can read more
        if source - at <= 18 and max(source, at) == len(data):
            return whole
        try:
            start = at + _header(data[at:])
        except CorruptBatchError:
            return whole
        source = max(source, start)
        at = _member(data, start, whole, limit)


def _member(data: memoryview, at: int, whole: bytearray, limit: int) -> int:
    """Append the output of the deflate stream at byte `at` to whole; return where its trailer ends.

    The input is passed in chunks: an inflater copies the input that it does not use, and members may be many and small.
    """
    inflater = _inflater(-15)
    checksum = size = 0
    tail: Any = b""
    try:
        while not inflater.eof:
            if not tail:
                tail = data[at : at + _CHUNK]
                at += len(tail)
            part = inflater.decompress(tail, min(limit - len(whole) + 1, _STEP))
            if not part and not tail and not inflater.eof:
                raise CorruptBatchError("gzip: the stream ends early")
            whole += part
            if len(whole) > limit:
                raise _too_large(limit)
            checksum = _crc32(part, checksum)
            size += len(part)
            tail = inflater.unconsumed_tail
    except _Error as error:
        raise CorruptBatchError(f"gzip: {error}") from None
    at -= len(inflater.unused_data)
    trailer = data[at : at + _TRAILER]
    if len(trailer) < _TRAILER:
        raise CorruptBatchError("gzip: the stream ends early")
    if int.from_bytes(trailer[:4], "little") != checksum:
        raise CorruptBatchError("gzip: wrong checksum in the trailer")
    if int.from_bytes(trailer[4:8], "little") != size & 0xFFFFFFFF:
        raise CorruptBatchError("gzip: wrong length in the trailer")
    return at + _TRAILER


def _header(data: memoryview) -> int:
    """The size of the header, after which the deflate stream starts. Reserved flags are ignored, as in Java."""
    if len(data) < 10:
        raise CorruptBatchError("gzip: the header ends early")
    if data[0] != 0x1F or data[1] != 0x8B:
        raise CorruptBatchError("gzip: wrong magic bytes")
    if data[2] != 8:
        raise CorruptBatchError(f"gzip: unsupported compression method {data[2]}")
    flags, at = data[3], 10
    if flags & _FEXTRA:
        if len(data) < at + 2:
            raise CorruptBatchError("gzip: the header ends early")
        at += 2 + int.from_bytes(data[at : at + 2], "little")
    for flag in (_FNAME, _FCOMMENT):
        if flags & flag:
            at = _past_zero(data, at)
    if flags & _FHCRC:
        if len(data) < at + 2:
            raise CorruptBatchError("gzip: the header ends early")
        if int.from_bytes(data[at : at + 2], "little") != zlib.crc32(data[:at]) & 0xFFFF:
            raise CorruptBatchError("gzip: wrong header checksum")
        at += 2
    if at > len(data):
        raise CorruptBatchError("gzip: the header ends early")
    return at


def _past_zero(data: memoryview, at: int) -> int:
    """The position after the next zero byte, or past the end if there is none."""
    while at < len(data):
        zero = bytes(data[at : at + _CHUNK]).find(0)
        if zero >= 0:
            return at + zero + 1
        at += _CHUNK
    return len(data) + 1


def compress(data: Any, level: int | None, magic: int) -> bytes:
    """One gzip member, compressed at level 1 to 9; None and -1 are zlib's default."""
    if level is None:
        level = -1
    elif not (isinstance(level, int) and (1 <= level <= 9 or level == -1)):
        raise EncodeError(f"gzip levels are 1 to 9, or -1 for the default, got {brief(level)}", path="level")
    if len(data) <= _STEP:
        return zlib.compress(data, level, 31)
    view, packer = memoryview(data), zlib.compressobj(level, zlib.DEFLATED, 31)
    parts = [packer.compress(view[at : at + _STEP]) for at in range(0, len(view), _STEP)]  # signals come in between
    return b"".join([*parts, packer.flush()])
