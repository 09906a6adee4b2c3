"""lz4 frames as Kafka's Lz4BlockInputStream and Lz4BlockOutputStream read and write them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kwire.compression import unusable
from kwire.errors import CorruptBatchError, EncodeError, KwireError, LimitError
from kwire_c.containers import Lz4Blocks, Room, xxh32
from kwire_c.printable import brief

cramjam: Any
lz4_block: Any
_missing: list[ImportError] = []
try:
    import cramjam
except ImportError as error:
    cramjam = None
    _missing.append(error)
try:
    # lz4 is faster for a single block; cramjam decompresses many into one buffer without a copy
    import lz4.block
    from lz4.version import version as _version

    lz4_block = lz4.block
except ImportError as error:
    lz4_block, _version = None, ""
    _missing.append(error)
if cramjam is None and lz4_block is None:
    raise unusable(
        "lz4", "cramjam or lz4; neither is installed: pip install cramjam (or 'kwire[fast]')", *_missing)

LIBRARY = ", ".join([f"lz4 {_version}"] * bool(lz4_block) + ([f"cramjam {cramjam.__version__}"] if cramjam else []))
_ERRORS = (*((lz4_block.LZ4BlockError,) if lz4_block else ()), *((cramjam.DecompressionError,) if cramjam else ()))

_MAGIC = b"\x04\x22\x4d\x18"
_STORED = 0x80000000
_NO_BLOCK = (0, 0, False)  # if the bytes changed meanwhile: decompressing an empty block fails
_BLOCK = 64 * 1024
_DEFAULT_LEVEL = 9  # CompressionType.LZ4's default, the fast compressor; other levels use the high-compression one


def decompress(data: Any, limit: int, magic: int) -> Any:
    """The content of the first frame. Content size, content checksum and bytes after the end mark are ignored."""
    blocks = Lz4Blocks(data, int(magic != 0))
    out: bytes
    try:
        if blocks.count == 1:
            start, stop, stored = next(blocks, _NO_BLOCK)
            block = memoryview(data)[start:stop]
            out = bytes(block) if stored else _unpack(block, min(blocks.most, blocks.max_block))
        else:
            out = _many(memoryview(data), blocks, limit)
    except KwireError:
        raise
    except (*_ERRORS, ValueError) as error:  # ValueError: the bytes changed meanwhile, so their blocks do not fit
        raise CorruptBatchError(f"lz4: {error}") from None
    if len(out) > limit:
        raise _too_large(limit)
    return out


def _too_large(limit: int) -> LimitError:
    return LimitError("lz4: the batch decompresses to more than the limit", limit=limit)


def _many(view: memoryview, blocks: Lz4Blocks, limit: int) -> bytes:
    """The content of all blocks, in a buffer of at most limit bytes and one block."""
    largest, size, done = blocks.max_block, min(blocks.most, limit + blocks.max_block), 0
    room = Room(size)
    for start, stop, stored in blocks:
        block = view[start:stop]
        if stored or not cramjam:
            part = block if stored else _unpack(block, largest)
            room.part(done, done + len(part))[:] = part
            done += len(part)
        else:
            done += _into(block, room.part(done, min(done + largest, size)))
        if done > limit:
            raise _too_large(limit)
    return room.take(done)


def _unpack(block: Any, room: int) -> Any:
    """The content of one block; an error if it exceeds room bytes."""
    if lz4_block:
        return lz4_block.decompress(block, room)
    out = Room(room)
    return out.take(_into(block, out.part(0, room)))


def _into(block: Any, room: memoryview) -> int:
    """Decompress one block into room; the bytes written."""
    # without output_len cramjam may take a block's first four bytes for a size in front of it
    return int(cramjam.lz4.decompress_block_into(block, room, output_len=len(room)))


@lru_cache(4)
def _header(magic: int) -> bytes:
    # Kafka's first lz4 writer included the magic bytes in the checksum; brokers still expect that in magic 0
    checksum = xxh32(_MAGIC + b"\x60\x40" if magic == 0 else b"\x60\x40") >> 8 & 0xFF
    return _MAGIC + bytes((0x60, 0x40, checksum))


def compress(data: Any, level: int | None, magic: int) -> bytes:
    """One frame: version 1, independent blocks of 64 KiB, no checksums; incompressible blocks are stored."""
    if level is None:
        level = _DEFAULT_LEVEL
    elif not (isinstance(level, int) and 1 <= level <= 17):
        raise EncodeError(f"lz4 levels are 1 to 17, got {brief(level)}", path="level")
    view = memoryview(data)
    parts: list[Any] = [_header(magic)]
    for at in range(0, len(view), _BLOCK):
        block = view[at : at + _BLOCK]
        packed = _pack(block, level)
        if len(packed) >= len(block):
            parts += ((len(block) | _STORED).to_bytes(4, "little"), block)
        else:
            parts += (len(packed).to_bytes(4, "little"), packed)
    parts.append(b"\0\0\0\0")
    return b"".join(parts)


def _pack(block: Any, level: int) -> Any:
    options = {} if level == _DEFAULT_LEVEL else {"mode": "high_compression", "compression": level}
    if lz4_block:
        return lz4_block.compress(block, store_size=False, **options)
    return cramjam.lz4.compress_block(block, store_size=False, **options)
