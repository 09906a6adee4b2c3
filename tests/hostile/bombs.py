"""Batches of a few kilobytes that unpack to half a gigabyte, and what reading one costs: run as a child of the test."""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable
from typing import Any

import cramjam

import kwire
from kwire.compression import compress
from tests.hostile import inputs

SIZE = 512 << 20  # bytes that a bomb unpacks to, as far as a codec lets it be made
MIB = bytes(1 << 20)


def _gzip() -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return b"".join(packer.compress(MIB) for _ in range(SIZE >> 20)) + packer.flush()


def _lz4() -> bytes:
    """One frame whose blocks are all the same: the independent block of 64 KiB of zeros, again and again."""
    frame = bytes(cramjam.lz4.compress(bytes(64 << 10)))
    whole = bytes(compress("lz4", bytes(64 << 10)))
    block = whole[7:-4] if len(whole) < len(frame) + 64 else frame[7:-4]
    return whole[:7] + block * (SIZE >> 16) + whole[-4:]


def _snappy() -> bytes:
    """The framing of Kafka's clients: one block of 8 MiB again and again."""
    block = bytes(cramjam.snappy.compress_raw(bytes(8 << 20)))
    head = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    return head + (struct.pack(">i", len(block)) + block) * (SIZE >> 23)


def _zstd_one_frame() -> bytes:
    packer = cramjam.zstd.Compressor(level=3)
    for _ in range(SIZE >> 20):
        packer.compress(MIB)
    return bytes(packer.finish())


BOMBS: dict[str, tuple[int, Callable[[], bytes]]] = {
    "gzip": (1, _gzip),
    "gzip members": (1, lambda: zlib_member() * (SIZE >> 24)),
    "snappy blocks": (2, _snappy),
    "snappy declared": (2, lambda: b"\xff\xff\xff\xff\x0f\x00\x00"),  # 4 GiB, in its 5 bytes of length
    "lz4": (3, _lz4),
    "zstd": (4, _zstd_one_frame),
    "zstd frames": (4, lambda: bytes(cramjam.zstd.compress(bytes(16 << 20))) * (SIZE >> 24)),
}


def zlib_member() -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(bytes(16 << 20)) + packer.flush()


def batch(codec: int, payload: bytes, magic: int, count: int = 1) -> bytes:
    """A valid header and the payload."""
    if magic == 2:
        head = bytearray(kwire.build_batch([(0, None, None)])[:61])
        head[22] = codec
        struct.pack_into(">i", head, 57, count)
        whole = head + payload
    else:
        body = bytes([magic, codec]) + (bytes(8) if magic else b"") + struct.pack(">ii", -1, len(payload)) + payload
        whole = bytearray(16) + body
    return bytes(inputs.with_checksum(inputs.with_length(whole)))


FULL = 64 << 20  # what max_batch_bytes lets a batch unpack to


def swarm(magic: int) -> bytes:
    """A compressed batch of a few kilobytes that unpacks to as many records as fit in the limit, all empty."""
    if magic == 2:
        record = bytes([12, 0, 0, 0, 1, 1, 0])  # 7 bytes: null key, null value
        count = FULL // len(record)
        return batch(4, bytes(cramjam.zstd.compress(record * count)), 2, count)
    entry = kwire.build_batch([(0, None, None)], magic=magic)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return batch(1, packer.compress(entry * (FULL // len(entry))) + packer.flush(), magic)


def count_twice(data: bytes, errors: str) -> int:
    """How many records each batch has, by its length and by two loops."""
    total = 0
    for found in kwire.read_batches(data, errors=errors):  # type: ignore[arg-type]
        counts = {sum(1 for _ in found), len(found), sum(1 for _ in found)}
        total += counts.pop()
        assert not counts
    return total


READERS: dict[str, Callable[[Any], Any]] = {
    "records": lambda data: [list(found) for found in kwire.read_batches(data)],
    "loops": lambda data: count_twice(data, "raise"),
    "loops, keep": lambda data: count_twice(data, "keep"),
    "columns": lambda data: kwire.columns(data),
    "views": lambda data: kwire.columns(data, views=True),
    "offsets": lambda data: kwire.columns(data, fields=["offset"]),
}


def peak() -> int:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def main(name: str, magic: int, reader: str) -> None:
    """Prints the error's name and the growth of memory in bytes while the bomb was read."""
    if name == "swarm":
        codec, data = (4, swarm(2)) if magic == 2 else (1, swarm(magic))
    else:
        codec, make = BOMBS[name]
        data = batch(codec, make(), magic)
    for found in kwire.read_batches(kwire.build_batch([(0, b"k", b"v" * 1000)], codec=kwire_name(codec), magic=magic)):
        list(found)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak counts from here
    before = peak()
    try:
        found = READERS[reader](data)
        print(found if name == "swarm" else "no error", end=" ")
    except kwire.KwireError as error:
        print(type(error).__name__, end=" ")
    print(peak() - before, len(data))


def kwire_name(codec: int) -> str:
    return ("none", "gzip", "snappy", "lz4", "zstd")[codec]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
