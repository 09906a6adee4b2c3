"""Compressed payloads as other clients may write them, whole, joined and damaged, from a seed."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator

import cramjam
import lz4.frame
import zstandard

from kwire import compression

XERIAL = b"\x82SNAPPY\x00"


class Writer:
    """Writes the same texts in every shape a codec has, chosen by a seeded generator."""

    def __init__(self, seed: int) -> None:
        self.random = rnd = random.Random(seed)
        self.texts = [
            b"", b"x", b"hello hello hello hello hello", rnd.randbytes(300), bytes(rnd.choices(b"abcd ", k=700)),
            bytes(3000), bytes(rnd.choices(b"abcdefgh", k=70_000)), rnd.randbytes(70_000),
        ]  # fmt: skip
        self._writers = {1: self.gzip, 2: self.snappy, 3: self.lz4, 4: self.zstd}

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def write(self, codec: int) -> bytes:
        return self._writers[codec](self.random.choice(self.texts))

    def gzip(self, text: bytes) -> bytes:
        """With every optional part of the header, reserved flags too."""
        packed = zlib.compress(text, self.random.randint(0, 9), 31)
        if self.chance(0.3):
            return packed
        head = bytearray(packed[:10])
        head[3] = flags = self.random.randrange(32) | self.random.choice([0, 0, 32, 128])
        if flags & 4:
            extra = self.random.randbytes(self.random.randrange(20))
            head += len(extra).to_bytes(2, "little") + extra
        if flags & 8:
            head += b"name\0"
        if flags & 16:
            head += b"comment\0"
        if flags & 2:
            head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
        return bytes(head) + packed[10:]

    def snappy(self, text: bytes) -> bytes:
        """Raw, or framed in blocks of several sizes, with empty blocks and joined streams."""
        if self.chance(0.3):
            return bytes(cramjam.snappy.compress_raw(text))
        version = self.random.choice([1, 1, 1, 2, 0, -1]).to_bytes(4, "big", signed=True)
        out = bytearray(XERIAL + version + b"\0\0\0\1")
        size = self.random.choice([1000, 32768, 100])
        for at in range(0, min(len(text), size * 5), size):
            block = bytes(cramjam.snappy.compress_raw(text[at : at + size]))
            out += len(block).to_bytes(4, "big") + block
            if self.chance(0.05):
                out += b"\0\0\0\1\0"
            if self.chance(0.1):
                out += XERIAL + b"\0\0\0\1\0\0\0\1"
        return bytes(out)

    def lz4(self, text: bytes) -> bytes:
        if self.chance(0.3):
            return compression.compress("lz4", text, magic=self.random.randrange(3))
        packed: bytes = lz4.frame.compress(
            text, block_linked=self.chance(0.1), block_size=self.random.choice([4, 5, 6, 7]),
            content_checksum=self.chance(0.3), block_checksum=self.chance(0.4), store_size=self.chance(0.4),
            compression_level=self.random.choice([0, 9]),
        )  # fmt: skip
        return packed

    def zstd(self, text: bytes) -> bytes:
        options = {"write_content_size": self.chance(0.5), "write_checksum": self.chance(0.4)}
        level = self.random.choice([1, 3, 19])
        if self.chance(0.3):
            window = self.random.choice([10, 12, 17, 20, 24, 27])
            parameters = zstandard.ZstdCompressionParameters.from_level(level, window_log=window, **options)
            packer = zstandard.ZstdCompressor(compression_params=parameters)
        else:
            packer = zstandard.ZstdCompressor(level=level, **options)
        if self.chance(0.5):
            return packer.compress(text)
        stream, out = packer.compressobj(), b""
        step = self.random.choice([len(text) + 1, 1000, len(text) // 2 + 1])
        for at in range(0, len(text), step):
            out += stream.compress(text[at : at + step])
            if self.chance(0.3):
                out += stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        return out + stream.flush()

    def skippable(self) -> bytes:
        content = self.random.randbytes(self.random.randrange(30))
        magic = bytes((0x50 + self.random.randrange(16),)) + b"\x2a\x4d\x18"
        return magic + len(content).to_bytes(4, "little") + content

    def damaged(self, payload: bytearray) -> None:
        """Appends, cuts, or changes a few bytes, most of them where the headers and trailers are."""
        rnd = self.random
        kind = rnd.random()
        if kind < 0.2:
            return
        if kind < 0.35:
            size = rnd.randrange(1, 30)
            payload += rnd.randbytes(size) if self.chance(0.7) else bytes(size)
        elif kind < 0.5:
            del payload[rnd.randrange(len(payload) + 1) :]
        else:
            for _ in range(rnd.choice([1, 1, 1, 2, 5])):
                if not payload:
                    return
                at = rnd.choice([
                    rnd.randrange(min(len(payload), 24)), rnd.randrange(len(payload)),
                    max(0, len(payload) - 1 - rnd.randrange(12)),
                ])  # fmt: skip
                change = rnd.randrange(4)
                if change == 0:
                    payload[at] = rnd.randrange(256)
                elif change == 1:
                    payload[at] ^= 1 << rnd.randrange(8)
                elif change == 2:
                    del payload[at]
                else:
                    payload.insert(at, rnd.choice([0, 255, rnd.randrange(256)]))


def damaged(seed: int, count: int) -> Iterator[tuple[int, int, bytes]]:
    """(codec, magic, payload), most of them damaged."""
    writer = Writer(seed)
    for _ in range(count):
        codec = writer.random.choice([1, 2, 3, 4])
        magic = 2 if codec == 4 else writer.random.choice([0, 1, 2, 2])
        payload = bytearray(writer.write(codec))
        while writer.chance(0.25):
            other = writer.skippable() if codec == 4 and writer.chance(0.4) else writer.write(codec)
            payload = payload + other if writer.chance(0.6) else bytearray(other) + payload
        writer.damaged(payload)
        yield codec, magic, bytes(payload)
