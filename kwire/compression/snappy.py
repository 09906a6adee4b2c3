"""snappy as snappy-java reads and writes it: blocks in xerial's framing, or one raw block."""

from __future__ import annotations

from typing import Any

from kwire.compression import unusable
from kwire.errors import CorruptBatchError, EncodeError
from kwire_c.containers import Room, SnappyBlocks, snappy_shortened
from kwire_c.printable import brief

try:
    import cramjam
except ImportError as error:
    raise unusable("snappy", "cramjam, which is not installed: pip install cramjam", error) from None

LIBRARY = f"cramjam {cramjam.__version__}"

_HEADER = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2  # version, lowest compatible version
_BLOCK = 32 * 1024  # SnappyOutputStream's default
_into, _raw, _Error = cramjam.snappy.decompress_raw_into, cramjam.snappy.compress_raw, cramjam.DecompressionError


def decompress(data: Any, limit: int, magic: int) -> bytes:
    """The content of all blocks. Without xerial's header data is one raw block, as in SnappyInputStream."""
    if len(data) == 0:
        raise CorruptBatchError("snappy: empty payload")
    blocks = SnappyBlocks(data, limit)
    total = blocks.total
    room, view, done, whole = Room(total), memoryview(data), 0, True
    try:
        if blocks.count < 0:
            done = _unpack(view, room.part(0, total))
        for start, stop, size in blocks:
            whole = whole and _unpack(view[start:stop], room.part(done, done + size)) == size
            done += size
    except (_Error, ValueError) as error:  # ValueError: the bytes changed meanwhile, so their blocks do not fit
        raise CorruptBatchError(f"snappy: {error}") from None
    if not whole or done != total:
        raise CorruptBatchError("snappy: block size differs from the declared size")
    return room.take(total)


def _unpack(block: memoryview, room: memoryview) -> int:
    """Decompress one block into room; the bytes written."""
    try:
        return int(_into(block, room))
    except _Error:
        shortened = snappy_shortened(block)
        if shortened is None:
            raise
        return int(_into(shortened, room))


def compress(data: Any, level: int | None, magic: int) -> bytes:
    """Blocks of 32 KiB in xerial's framing, as SnappyOutputStream writes them."""
    if level is not None:
        raise EncodeError(f"snappy has no levels, got level {brief(level)}", path="level")
    view, parts = memoryview(data), [_HEADER]
    for at in range(0, len(view), _BLOCK):
        block = bytes(_raw(view[at : at + _BLOCK]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)
