"""lz4 frames as Kafka's Lz4BlockInputStream and Lz4BlockOutputStream read and write them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kwire_c.failure import CorruptBatchError, EncodeError, LimitError, MissingCodecError

_plain: Any
_pack: Any
_Error: Any
try:
    import lz4.block
    from lz4.version import version as _version

    LIBRARY = f"lz4 {_version}"
    _Error = lz4.block.LZ4BlockError

    def _plain(block: Any, size: int) -> Any:
        return lz4.block.decompress(block, uncompressed_size=size)

    def _pack(block: Any, level: int | None) -> bytes:
        if level is None or level == 9:
            return lz4.block.compress(block, store_size=False)  # type: ignore[no-any-return]
        return lz4.block.compress(  # type: ignore[no-any-return]
            block, mode="high_compression", compression=level, store_size=False
        )
except ImportError:
    try:
        import cramjam
    except ImportError:
        raise MissingCodecError(
            "lz4 needs cramjam or lz4, neither is installed: pip install cramjam (or 'kwire[fast]')"
        ) from None

    LIBRARY = f"cramjam {cramjam.__version__}"
    _Error = cramjam.DecompressionError

    def _plain(block: Any, size: int) -> Any:
        out = bytearray(size)
        done = cramjam.lz4.decompress_block_into(block, out)
        del out[done:]
        return out

    def _pack(block: Any, level: int | None) -> bytes:
        if level is None or level == 9:
            return bytes(cramjam.lz4.compress_block(block, store_size=False))
        return bytes(
            cramjam.lz4.compress_block(block, mode="high_compression", compression=level, store_size=False)
        )


_MAGIC = b"\x04\x22\x4d\x18"
_STORED = 0x80000000
_BLOCK = 64 * 1024
_DEFAULT_LEVEL = 9  # CompressionType.LZ4: the fast compressor, other levels are the high-compression one's


def decompress(data: Any, limit: int, magic: int) -> Any:
    """The content of the first frame; what follows its end mark is not looked at, nor are content size and checksum."""
    view, end = memoryview(data), len(data)
    at, max_block, checked, content_checked = _descriptor(view, magic)
    parts, done = [], 0
    while True:
        if end - at < 4:
            raise CorruptBatchError("lz4: the stream ends early")
        size = int.from_bytes(view[at : at + 4], "little")
        stored, size, at = size & _STORED, size & ~_STORED, at + 4
        if size == 0:
            break
        if size > max_block:
            raise CorruptBatchError(f"lz4: a block of {size} bytes, at most {max_block} are allowed")
        if size > end - at:
            raise CorruptBatchError("lz4: the stream ends early")
        block = view[at : at + size]
        at += size
        part = block if stored else _block(block, max_block, limit, done)
        done += len(part)
        if done > limit:
            raise _too_large(limit, done)
        if checked:
            if end - at < 4 or int.from_bytes(view[at : at + 4], "little") != xxh32(block):
                raise CorruptBatchError("lz4: wrong checksum of a block")
            at += 4
        parts.append(part)
    if content_checked and end - at < 4:
        raise CorruptBatchError("lz4: the stream ends early")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int, needed: int | None) -> LimitError:
    return LimitError("lz4: the batch decompresses to more than the limit", limit=limit, needed=needed)


def _block(block: memoryview, max_block: int, limit: int, done: int) -> Any:
    try:
        return _plain(block, max_block)
    except _Error as error:
        raise CorruptBatchError(f"lz4: {error}") from None


def _descriptor(view: memoryview, magic: int) -> tuple[int, int, int, int]:
    """Position of the first block, largest block in bytes, whether blocks and content carry checksums."""
    if len(view) < 6:
        raise CorruptBatchError("lz4: the stream ends early")
    if view[:4] != _MAGIC:
        raise CorruptBatchError("lz4: wrong magic bytes")
    flags, size = view[4], view[5]
    if flags & 3:
        raise CorruptBatchError("lz4: reserved or dictionary bits are set")
    if flags >> 6 != 1:
        raise CorruptBatchError(f"lz4: version {flags >> 6} is unsupported")
    if not flags & 0x20:
        raise CorruptBatchError("lz4: dependent blocks are unsupported")
    if size & 0x8F:
        raise CorruptBatchError("lz4: reserved bits are set")
    if size < 0x40:
        raise CorruptBatchError(f"lz4: block size {size >> 4} is unsupported")
    end = 14 if flags & 8 else 6
    if len(view) <= end:
        raise CorruptBatchError("lz4: the stream ends early")
    if magic != 0 and view[end] != _header_checksum(bytes(view[4:end])):
        raise CorruptBatchError("lz4: wrong checksum of the header")
    return end + 1, 1 << (2 * (size >> 4) + 8), flags & 0x10, flags & 4


@lru_cache(256)
def _header_checksum(descriptor: bytes) -> int:
    return xxh32(descriptor) >> 8 & 0xFF


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


def xxh32(data: Any) -> int:
    """XXH32 with seed 0, the checksum of lz4's frames."""
    p1, p2, p3, p4, p5, mask = 2654435761, 2246822519, 3266489917, 668265263, 374761393, 0xFFFFFFFF
    at, end = 0, len(data)
    if end >= 16:
        lanes = [(p1 + p2) & mask, p2, 0, -p1 & mask]
        while end - at >= 16:
            for i in range(4):
                word = int.from_bytes(data[at : at + 4], "little")
                lanes[i] = _rotate((lanes[i] + word * p2) & mask, 13) * p1 & mask
                at += 4
        value = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & mask
    else:
        value = p5
    value = (value + end) & mask
    while end - at >= 4:
        value = _rotate((value + int.from_bytes(data[at : at + 4], "little") * p3) & mask, 17) * p4 & mask
        at += 4
    while at < end:
        value = _rotate((value + data[at] * p5) & mask, 11) * p1 & mask
        at += 1
    value = (value ^ value >> 15) * p2 & mask
    value = (value ^ value >> 13) * p3 & mask
    return value ^ value >> 16


def compress(data: Any, level: int | None, magic: int) -> bytes:
    """One frame: version 1, independent blocks of 64 KiB, no checksums; a block that does not shrink is stored."""
    if level is None:
        level = _DEFAULT_LEVEL
    elif not (isinstance(level, int) and 1 <= level <= 17):
        raise EncodeError(f"lz4 levels are 1 to 17, got {level!r}", path="level")
    # Kafka's first lz4 hashed the magic bytes too; brokers still expect that in magic 0
    checksum = _header_checksum(_MAGIC + b"\x60\x40" if magic == 0 else b"\x60\x40")
    view = memoryview(data)
    parts: list[Any] = [_MAGIC, b"\x60\x40", bytes((checksum,))]
    for at in range(0, len(view), _BLOCK):
        block = view[at : at + _BLOCK]
        packed = _pack(block, level)
        if len(packed) >= len(block):
            parts += ((len(block) | _STORED).to_bytes(4, "little"), block)
        else:
            parts += (len(packed).to_bytes(4, "little"), packed)
    parts.append(b"\0\0\0\0")
    return b"".join(parts)
