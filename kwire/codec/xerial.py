"""snappy as snappy-java reads and writes it: xerial's block framing, or one raw block."""

from __future__ import annotations

from typing import Any

from kwire_c.failure import CorruptBatchError, EncodeError, LimitError, MissingCodecError

try:
    import cramjam
except ImportError:
    raise MissingCodecError("snappy needs cramjam, which is not installed: pip install cramjam") from None

LIBRARY = f"cramjam {cramjam.__version__}"

MAGIC = b"\x82SNAPPY\x00"
_HEADER = MAGIC + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")  # version, lowest compatible version
_BLOCK = 32 * 1024  # SnappyOutputStream's default
_MAX_CHUNK = 512 * 1024 * 1024  # SnappyInputStream's
_into, _raw, _Error = cramjam.snappy.decompress_raw_into, cramjam.snappy.compress_raw, cramjam.DecompressionError


def decompress(data: Any, limit: int, magic: int) -> Any:
    """All blocks in one piece. Without xerial's header the whole is one raw block, as in SnappyInputStream."""
    if len(data) < 16 or bytes(data[:8]) != MAGIC:
        if len(data) == 0:
            raise CorruptBatchError("snappy: no bytes at all")
        size = _declared(data, 0, len(data))
        if size > limit:
            raise _too_large(limit, size)
        out = bytearray(size)
        _block(data, out, size)
        return out
    return _framed(memoryview(data), limit)


def _too_large(limit: int, needed: int) -> LimitError:
    return LimitError("snappy: the batch decompresses to more than the limit", limit=limit, needed=needed)


def _declared(data: Any, at: int, end: int) -> int:
    """The size that a raw block declares; refused where so few bytes cannot give it."""
    size = shift = 0
    for position in range(at, min(at + 5, end)):
        byte = data[position]
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            # a copy of 64 bytes takes 3, so nothing grows more than that; int: Java reads the size as one
            if size > 0x7FFFFFFF or size > (end - at) * 22:
                raise CorruptBatchError(f"snappy: {end - at} bytes cannot hold the declared {size}")
            return int(size)
        shift += 7
    raise CorruptBatchError("snappy: bad declared size")


def _block(data: Any, out: Any, size: int) -> None:
    try:
        done = _into(data, out)
    except _Error as error:
        raise CorruptBatchError(f"snappy: {error}") from None
    if done != size:
        raise CorruptBatchError(f"snappy: a block of {done} bytes declares {size}")


def _framed(data: memoryview, limit: int) -> Any:
    blocks, total, end = [], 0, len(data)
    _version(data, 0)
    at = 16
    while end - at >= 4:  # fewer bytes end the stream without a word, as in Java
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        if data[at : at + 4] == MAGIC[:4]:  # concatenated streams
            if end - at < 16:
                raise CorruptBatchError("snappy: a concatenated header ends early")
            if data[at : at + 8] != MAGIC:
                break
            _version(data, at)
            at += 16
            continue
        at += 4
        if size < 0 or size > _MAX_CHUNK or size > end - at:
            raise CorruptBatchError(f"snappy: a block of {size} bytes, {end - at} left")
        plain = _declared(data, at, at + size)
        total += plain
        if total > limit:
            raise _too_large(limit, total)
        blocks.append((at, at + size, plain))
        at += size
    out = bytearray(total)
    view, done = memoryview(out), 0
    for start, stop, plain in blocks:
        _block(data[start:stop], view[done : done + plain], plain)
        done += plain
    return out


def _version(data: memoryview, at: int) -> None:
    if int.from_bytes(data[at + 8 : at + 12], "big", signed=True) < 1:
        raise CorruptBatchError("snappy: incompatible version of the framing")


def compress(data: Any, level: int | None, magic: int) -> bytes:
    """Blocks of 32 KiB in xerial's framing, as SnappyOutputStream writes them."""
    if level is not None:
        raise EncodeError(f"snappy has no levels, got {level!r}", path="level")
    view, parts = memoryview(data), [_HEADER]
    for at in range(0, len(view), _BLOCK):
        block = bytes(_raw(view[at : at + _BLOCK]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)
