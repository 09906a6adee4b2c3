"""Small payloads that would decompress to gigabytes, one or more of each codec."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import cramjam
import lz4.block
import zstandard

import kwire
from kwire_c.codecs import CODECS as NAMES

MIB = 1 << 20
GIB = 1 << 30


def gzip_bomb() -> bytes:
    """2.1 MB to 2 GiB, in one member."""
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    piece = stream.compress(bytes(MIB)) + stream.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + piece * 2048 + b"\x03\0" + bytes(8)


def gzip_members() -> bytes:
    """2,048 members of 1 MiB."""
    return zlib.compress(bytes(MIB), 9, 31) * 2048


def gzip_with_a_name() -> bytes:
    """The same stream after a header with an optional field, which takes another path."""
    return gzip_bomb().replace(b"\x1f\x8b\x08\0", b"\x1f\x8b\x08\x08", 1).replace(b"\xff", b"\xffname\0", 1)


def zstd_unstated() -> bytes:
    """65,553 bytes to 2 GiB: 16,384 blocks of one repeated byte."""
    block = (128 * 1024 << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (128 * 1024 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * 16383 + last


def zstd_stated() -> bytes:
    """The same, with the content's size in the frame's header."""
    return b"\x28\xb5\x2f\xfd\xc0\x58" + (2 * GIB).to_bytes(8, "little") + zstd_unstated()[6:]


def zstd_lying() -> bytes:
    """2 GiB in blocks whose size is not declared; the header says 1 MiB."""
    return b"\x28\xb5\x2f\xfd\x80\x58" + MIB.to_bytes(4, "little") + _compressed_blocks()


def zstd_compressed_blocks() -> bytes:
    """2 GiB in compressed blocks: only decompressing tells their size."""
    return b"\x28\xb5\x2f\xfd\x00\x58" + _compressed_blocks()


def _compressed_blocks() -> bytes:
    # the literals are one repeated byte (RLE, size in 20 bits), no sequences
    literals = (1 | 3 << 2 | 128 * 1024 - 1 << 4).to_bytes(3, "little") + b"a" + b"\0"
    head = len(literals) << 3 | 2 << 1
    return (head.to_bytes(3, "little") + literals) * 16383 + (head | 1).to_bytes(3, "little") + literals


def zstd_frames() -> bytes:
    """256 frames of 8 MiB."""
    return zstandard.ZstdCompressor(level=3, write_content_size=False).compress(b"ab" * (4 * MIB)) * 256


def zstd_window() -> bytes:
    """A window of 2 GiB for a few bytes: refused, as Kafka does; never allocated."""
    return b"\x28\xb5\x2f\xfd\x00" + bytes((21 << 3,)) + b"\x09\0\0a"


def lz4_bomb() -> bytes:
    """8.4 MB to 2 GiB: 512 blocks of 4 MiB."""
    block = lz4.block.compress(bytes(4 * MIB), store_size=False)
    return b"\x04\x22\x4d\x18\x60\x70\x73" + (len(block).to_bytes(4, "little") + block) * 512 + bytes(4)


def snappy_declared() -> bytes:
    """Seven bytes that declare 4 GiB."""
    return b"\xff\xff\xff\xff\x0f\0a"


def snappy_raw() -> bytes:
    """One raw block of 512 MiB."""
    return bytes(cramjam.snappy.compress_raw(bytes(512 * MIB)))


def snappy_blocks() -> bytes:
    """Xerial's framing, 4,096 blocks of 512 KiB."""
    block = bytes(cramjam.snappy.compress_raw(bytes(MIB // 2)))
    return b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + (len(block).to_bytes(4, "big") + block) * 4096


def snappy_block_declared() -> bytes:
    """A framed block of seven bytes that declares 4 GiB."""
    return b"\x82SNAPPY\0\0\0\0\1\0\0\0\1" + b"\0\0\0\7" + snappy_declared()


def batch(codec: str, payload: bytes) -> bytes:
    """A valid batch of magic 2 with one record and this payload."""
    checked = (
        NAMES.index(codec).to_bytes(2, "big") + bytes(4) + bytes(16) + b"\xff" * 14 + (1).to_bytes(4, "big") + payload
    )
    head = bytes(4) + b"\2" + kwire.crc32c(checked).to_bytes(4, "big")
    return bytes(8) + (len(head) + len(checked)).to_bytes(4, "big") + head + checked


# name -> (codec, what makes it, the error it must give)
BOMBS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "gzip": ("gzip", gzip_bomb, "LimitError"),
    "gzip-members": ("gzip", gzip_members, "LimitError"),
    "gzip-with-a-name": ("gzip", gzip_with_a_name, "LimitError"),
    "zstd-unstated": ("zstd", zstd_unstated, "LimitError"),
    "zstd-stated": ("zstd", zstd_stated, "LimitError"),
    "zstd-lying": ("zstd", zstd_lying, "CorruptBatchError"),
    "zstd-compressed-blocks": ("zstd", zstd_compressed_blocks, "LimitError"),
    "zstd-frames": ("zstd", zstd_frames, "LimitError"),
    "zstd-window": ("zstd", zstd_window, "CorruptBatchError"),
    "lz4": ("lz4", lz4_bomb, "LimitError"),
    "snappy-declared": ("snappy", snappy_declared, "LimitError"),
    "snappy-raw": ("snappy", snappy_raw, "LimitError"),
    "snappy-blocks": ("snappy", snappy_blocks, "LimitError"),
    "snappy-block-declared": ("snappy", snappy_block_declared, "LimitError"),
}
