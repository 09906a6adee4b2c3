"""What is damaged: the batches of every vector and the first batches of every golden segment."""

from __future__ import annotations

import gzip
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import cache

import kwire
from kwire.compression import compress, decompress
from tools import places

SMALL = 4096  # bytes: batches up to here are damaged everywhere, larger ones at chosen places


@cache
def vectors() -> tuple[tuple[str, bytes], ...]:
    """(name, bytes) of the 183 files that Kafka wrote and of the 247 odd cases."""
    with zipfile.ZipFile(places.VECTORS / "records.zip") as files:
        found = [(name, files.read(name)) for name in sorted(files.namelist())]
    with gzip.open(places.VECTORS / "records-corrupt.jsonl.gz", "rt") as lines:
        found += [(case["name"], bytes.fromhex(case["hex"])) for case in map(json.loads, lines)]
    assert len(found) == 183 + 247
    return tuple(found)


def spans(data: bytes) -> Iterator[tuple[int, int]]:
    """(position, size) of every batch by its length alone; what is left over comes last, as it is."""
    at = 0
    while at < len(data):
        size = len(data) - at
        if size >= 12:
            size = min(size, max(12, 12 + int(struct.unpack_from(">i", data, at + 8)[0])))
        yield at, size
        at += size


@cache
def batches() -> tuple[bytes, ...]:
    """Every distinct batch of the vectors, and of each golden segment the first three."""
    found: dict[bytes, None] = {}
    for _, data in vectors():
        for at, size in spans(data):
            found[data[at : at + size]] = None
    root = places.golden()
    for path in sorted(root.glob("**/*.log")):
        with open(path, "rb") as file:
            data = file.read(1 << 16)
        for (at, size), _ in zip(spans(data), range(3), strict=False):
            if 61 <= size <= 2 * SMALL:
                found[data[at : at + size]] = None
    return tuple(found)


@cache
def sources() -> tuple[bytes, ...]:
    """What mutations start from: small batches mostly, and whole small files of several batches."""
    small = [batch for batch in batches() if len(batch) <= SMALL]
    # a thousand alike entries of one file are one source, so that every other is taken as often
    shapes: dict[tuple[int, int], bytes] = {}
    for batch in small:
        shapes.setdefault((len(batch), zlib.crc32(batch[16:23])), batch)
    several = [data for _, data in vectors() if len(data) <= SMALL and len(list(spans(data))) > 1]
    return (*shapes.values(), *several)


def with_length(batch: bytes | bytearray) -> bytearray:
    """The batch with the length that it has."""
    fixed = bytearray(batch)
    if len(fixed) >= 12:
        struct.pack_into(">i", fixed, 8, len(fixed) - 12)
    return fixed


def with_checksum(batch: bytes | bytearray) -> bytearray:
    """The first batch in it with the checksum that its bytes have."""
    fixed = bytearray(batch)
    if len(fixed) < 26:
        return fixed
    end = 12 + struct.unpack_from(">i", fixed, 8)[0]
    if not 26 <= end <= len(fixed):
        end = len(fixed)
    if fixed[16] < 2:
        struct.pack_into(">I", fixed, 12, zlib.crc32(memoryview(fixed)[16:end]))
    elif end >= 61:
        struct.pack_into(">I", fixed, 17, kwire.crc32c(memoryview(fixed)[21:end]))
    return fixed


def unpacked(batch: bytes) -> tuple[int, bytes] | None:
    """Codec and decompressed payload of a compressed batch of magic 2; None for others and for what does not unpack."""
    if len(batch) <= 61 or batch[16] != 2 or not 1 <= batch[22] & 7 <= 4:
        return None
    try:
        return batch[22] & 7, bytes(decompress(batch[22] & 7, batch[61:], limit=1 << 20))
    except kwire.KwireError:
        return None


def packed(batch: bytes, codec: int, payload: bytes) -> bytearray:
    """The batch of magic 2 with another payload, compressed again."""
    return with_length(batch[:61] + bytes(compress(codec, payload)))
