"""Round trips, levels, written formats, and what other libraries write."""

from __future__ import annotations

import array
import functools
import gzip
import random
import sys
import threading
import zlib
from types import FrameType
from typing import Any

import cramjam
import lz4.frame
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import isal_zlib

from kwire import CorruptBatchError, EncodeError, KwireError, LimitError, compression
from kwire.compression import compress, decompress, libraries, zstd
from kwire_c.codecs import CODECS as NAMES
from kwire_c.containers import Room, xxh32
from tests.signals import handled

pytestmark = pytest.mark.quick

CODECS = NAMES[1:]
TEXT = b"".join(b"record %d of a batch, " % i for i in range(20_000))  # some 400 KB, many blocks
texts = st.one_of(
    st.binary(max_size=2000),
    st.builds(lambda part, times: part * times, st.binary(min_size=1, max_size=40), st.integers(0, 20_000)),
)


def read(codec: str | int, data: Any, limit: int = 64 << 20, magic: int = 2) -> bytes:
    return bytes(decompress(codec, data, limit=limit, magic=magic))


@given(st.sampled_from(NAMES), st.integers(0, 2), texts)
@settings(max_examples=300, deadline=None)
def test_round_trip(codec: str, magic: int, text: bytes) -> None:
    if codec == "zstd":
        magic = 2
    packed = compress(codec, text, magic=magic)
    assert type(packed) is bytes
    assert read(codec, packed, magic=magic) == text
    assert read(NAMES.index(codec), memoryview(packed), magic=magic, limit=len(text)) == text


@given(st.sampled_from(CODECS), texts.filter(len), st.data())
@settings(max_examples=200, deadline=None)
def test_one_byte_less_is_a_limit_error(codec: str, text: bytes, data: st.DataObject) -> None:
    limit = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(LimitError) as caught:
        read(codec, compress(codec, text), limit=limit)
    assert caught.value.limit == limit
    assert caught.value.needed is None or limit < caught.value.needed <= len(text)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer(codec: str, kind: Any) -> None:
    assert read(codec, kind(compress(codec, kind(TEXT)))) == TEXT


@pytest.mark.parametrize("codec", CODECS)
def test_results_do_not_share_memory(codec: str) -> None:
    other = TEXT[::-1]
    for text, next_text in ((TEXT, other), (TEXT[:9000], other[:9000]), (b"ab", b"cd")):
        packed = bytearray(compress(codec, text))
        first = decompress(codec, packed, limit=1 << 20)
        packed[:] = bytes(len(packed))
        decompress(codec, compress(codec, next_text), limit=1 << 20)
        assert bytes(first) == text


@pytest.mark.parametrize("codec", CODECS)
def test_no_bytes_at_all(codec: str) -> None:
    """As Java: no bytes are an empty zstd stream, and an error elsewhere."""
    if codec == "zstd":
        assert read(codec, b"") == b""
    else:
        with pytest.raises(CorruptBatchError):
            read(codec, b"")


@pytest.mark.parametrize("codec", CODECS)
def test_every_cut_of_a_payload_is_a_kwire_error(codec: str) -> None:
    packed = compress(codec, TEXT[:3000])
    for size in range(1, len(packed)):
        if codec == "snappy" and 16 <= size < 20:
            assert read(codec, packed[:size]) == b""  # the framing without a block: fewer than 4 bytes end it
            continue
        with pytest.raises(CorruptBatchError):
            read(codec, packed[:size])


@pytest.mark.parametrize("codec", CODECS)
def test_every_changed_byte_gives_a_value_or_a_kwire_error(codec: str) -> None:
    packed = bytearray(compress(codec, TEXT[:400]))
    for at in range(len(packed)):
        for bit in range(8):
            packed[at] ^= 1 << bit
            for magic in (0, 2):
                try:
                    out = read(codec, packed, 5000, magic)
                    assert len(out) <= 5000
                except KwireError:
                    pass
            packed[at] ^= 1 << bit


def test_unknown_codecs() -> None:
    for codec in (5, 6, 7, -1, "brotli"):
        with pytest.raises(CorruptBatchError):
            decompress(codec, b"", limit=10)
        with pytest.raises(EncodeError):
            compress(codec, b"")


def test_zstd_needs_magic_2() -> None:
    packed = compress("zstd", b"text")
    for magic in (0, 1):
        with pytest.raises(CorruptBatchError):
            decompress("zstd", packed, limit=10, magic=magic)
        with pytest.raises(EncodeError):
            compress("zstd", b"text", magic=magic)


def test_libraries() -> None:
    found = libraries()
    assert tuple(found) == NAMES
    assert found["gzip"].startswith("isal ") and found["snappy"].startswith("cramjam ")
    assert found["lz4"].startswith("lz4 ") and found["zstd"].startswith("zstandard ")


LEVELS = {"gzip": (1, 9), "lz4": (1, 17), "zstd": (-131072, 22)}


@pytest.mark.parametrize("codec", LEVELS)
def test_levels(codec: str) -> None:
    low, high = LEVELS[codec]
    sizes = {}
    for level in {low, high, (low + high) // 2, 1, 9, None}:
        packed = compress(codec, TEXT[:100_000], level=level)
        assert read(codec, packed) == TEXT[:100_000]
        sizes[level] = len(packed)
    assert sizes[high] < sizes[low]
    for level in (low - 1, high + 1, 1.5, "9"):
        if (codec, level) == ("gzip", 0):
            continue
        with pytest.raises(EncodeError) as caught:
            compress(codec, b"text", level=level)  # type: ignore[arg-type]
        assert caught.value.path == "level"


def test_gzip_level_minus_1_is_the_default_and_0_is_refused() -> None:
    assert compress("gzip", TEXT, level=-1) == compress("gzip", TEXT)
    with pytest.raises(EncodeError):
        compress("gzip", TEXT, level=0)


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_codecs_without_levels(codec: str) -> None:
    with pytest.raises(EncodeError):
        compress(codec, b"text", level=1)


def test_what_is_written_for_lz4() -> None:
    """As Lz4BlockOutputStream: version 1, independent blocks of 64 KiB, no checksums, the end mark."""
    packed = compress("lz4", bytes(100_000))
    assert packed[:7].hex() == "04224d18604082" and packed[-4:] == bytes(4)
    assert compress("lz4", b"").hex() == "04224d1860408200000000"
    assert compress("lz4", b"x").hex() == "04224d186040820100008078" + "00000000"  # stored: it does not shrink
    assert compress("lz4", b"", magic=0)[6] == xxh32(bytes.fromhex("04224d186040")) >> 8 & 0xFF != 0x82
    assert compress("lz4", b"", magic=1) == compress("lz4", b"")
    assert lz4.frame.decompress(packed) == bytes(100_000)


def test_what_is_written_for_snappy() -> None:
    """As SnappyOutputStream: the header with versions 1 and 1, blocks of 32 KiB."""
    packed, at, sizes = compress("snappy", bytes(100_000)), 16, []
    assert packed[:16].hex() == "82534e41505059000000000100000001"
    while at < len(packed):
        size = int.from_bytes(packed[at : at + 4], "big")
        sizes.append(len(cramjam.snappy.decompress_raw(packed[at + 4 : at + 4 + size])))
        at += 4 + size
    assert sizes == [32768, 32768, 32768, 1696]
    assert compress("snappy", b"") == packed[:16]


def test_others_read_what_is_written() -> None:
    assert gzip.decompress(compress("gzip", TEXT)) == TEXT
    assert zstandard.ZstdDecompressor().decompress(compress("zstd", TEXT)) == TEXT
    assert bytes(cramjam.zstd.decompress(compress("zstd", TEXT))) == TEXT
    assert bytes(cramjam.lz4.decompress(compress("lz4", TEXT))) == TEXT


@pytest.mark.parametrize("text", [b"", b"x", TEXT], ids=["empty", "byte", "long"])
def test_what_others_write_is_read(text: bytes) -> None:
    streamed = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compressobj()
    written = {
        "gzip": [zlib.compress(text, 9, 31), isal_zlib.compress(text, 2, 31), gzip.compress(text),
                 bytes(cramjam.gzip.compress(text)), gzip.compress(text[:99]) + gzip.compress(text[99:])],
        "snappy": [bytes(cramjam.snappy.compress_raw(text))],
        "lz4": [lz4.frame.compress(text, block_linked=False, block_size=size, content_checksum=True,
                                   block_checksum=True) for size in range(4, 8)],
        "zstd": [bytes(cramjam.zstd.compress(text)), zstandard.ZstdCompressor(level=19).compress(text),
                 streamed.compress(text) + streamed.flush()],
    }  # fmt: skip
    for codec, payloads in written.items():
        for payload in payloads:
            assert read(codec, payload) == text, codec


def test_threads_have_their_own_contexts() -> None:
    """Eight threads, each its own texts, all codecs: the libraries release the GIL."""
    wrong: list[str] = []

    def work(number: int) -> None:
        texts = TEXT[number:], TEXT[: number + 9]
        mine = [(codec, text, compress(codec, text)) for codec in CODECS for text in texts]
        for _ in range(20):
            wrong.extend(codec for codec, text, packed in mine if read(codec, packed) != text)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_xxh32() -> None:
    """Against the checksum of the content that lz4's own library writes."""
    assert xxh32(b"") == 0x02CC5D05
    for size in (*range(1, 40), 1000, 4099):
        packed = lz4.frame.compress(TEXT[:size], content_checksum=True)
        assert xxh32(TEXT[:size]) == int.from_bytes(packed[-4:], "little")


def test_zstd_that_states_a_wrong_size() -> None:
    packed = bytearray(zstandard.ZstdCompressor().compress(bytes(1000)))
    assert packed[4] >> 6 == 1
    packed[5 + (not packed[4] & 0x20)] ^= 1
    with pytest.raises(CorruptBatchError):
        read("zstd", packed)


def test_zstd_with_a_dictionary_is_refused() -> None:
    words = zstandard.ZstdCompressionDict(TEXT[:5000], dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    packed = zstandard.ZstdCompressor(dict_data=words).compress(TEXT[100:4000])
    with pytest.raises(CorruptBatchError):
        read("zstd", packed)


@pytest.mark.parametrize("frame", [b"", bytes.fromhex("82534e41505059000000000100000001") + b"\0\0\0\6"])
def test_snappy_that_declares_what_its_bytes_cannot_give(frame: bytes) -> None:
    """30 MiB in six bytes: corrupt under the limit, too large above it; never allocated."""
    declared = frame + bytes.fromhex("8080800f") + b"\0a"
    with pytest.raises(CorruptBatchError):
        read("snappy", declared)
    with pytest.raises(LimitError) as caught:
        read("snappy", declared, limit=1 << 20)
    assert caught.value.needed == 15 << 21


def test_room() -> None:
    """The buffer that libraries fill: bounds are kept, what is taken is cut to size and taken once."""
    room = Room(10)
    room.part(0, 10)[:] = b"0123456789"
    for start, stop in ((-1, 2), (3, 2), (0, 11), (11, 11)):
        with pytest.raises(ValueError):
            room.part(start, stop)
    for size in (-1, 11):
        with pytest.raises(ValueError):
            room.take(size)
    assert room.take(4) == b"0123"
    with pytest.raises(ValueError):
        room.take(4)
    with pytest.raises(ValueError):
        room.part(0, 1)
    assert Room(0).take(0) == b"" == Room(5).take(0)
    with pytest.raises(ValueError):
        Room(-1)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("alone", [False, True])
def test_where_a_profiler_keeps_frames(codec: str, alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame that is kept keeps its local variables, views of the output among them: what is right stays right."""
    packed = compress(codec, TEXT)
    if alone:  # cramjam, without lz4 and zstandard
        monkeypatch.setattr("kwire.compression.lz4.lz4_block", None)
        monkeypatch.setattr("kwire.compression.zstd.cramjam", cramjam, raising=False)
        monkeypatch.setattr("kwire.compression.zstd._local.decompress", zstd._cramjam)
    kept: list[FrameType] = []
    sys.setprofile(lambda frame, event, argument: kept.append(frame))
    try:
        found = read(codec, packed)
    finally:
        sys.setprofile(None)
    assert found == TEXT and kept


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize(("end", "text"), [("f00078", b"x"), ("f0017879", b"xy"), ("f4000078", b"x"),
                                           ("f8000000 78", b"x"), ("fc00000000 78", b"x")])  # fmt: skip
def test_snappy_that_ends_in_a_short_literal_with_a_long_length(end: str, text: bytes, framed: bool) -> None:
    """As snappy-java reads it."""
    many = b"q" * 70
    for before, element in ((b"", ""), (b"abc", "08616263"), (b"abcabca", "086162630103"), (many, "f045" + many.hex())):
        content = before + text
        block = bytes((len(content),)) + bytes.fromhex(element + end)
        packed = compress("snappy", b"") + len(block).to_bytes(4, "big") + block if framed else block
        assert bytes(decompress("snappy", packed, limit=1 << 20)) == content
        for cut in (block[:-1], block + b"x", bytes((len(content) + 1,)) + block[1:]):
            packed = compress("snappy", b"") + len(cut).to_bytes(4, "big") + cut if framed else cut
            with pytest.raises(CorruptBatchError, match="snappy"):
                decompress("snappy", packed, limit=1 << 20)


def test_snappy_whose_blocks_change_between_two_looks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(compress("snappy", b"x" * 100_000))
    second = 20 + int.from_bytes(data[16:20], "big")

    def into(block: Any, room: Any) -> int:
        data[second : second + 4] = b"\xff" * 4
        return cramjam.snappy.decompress_raw_into(block, room)

    monkeypatch.setattr("kwire.compression.snappy._into", into)
    with pytest.raises(CorruptBatchError, match="snappy"):
        decompress("snappy", data, limit=1 << 20)


def test_a_block_of_lz4_is_not_taken_for_one_with_a_size_in_front(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of this end starts with 70 00 00 00; what follows is a block too, of other content."""
    end = b"\0\0\0\x12" + bytes(12) + b"p"
    assert read("lz4", compress("lz4", bytes(65536) + end)) == bytes(65536) + end
    block = bytes.fromhex("f001 0000 000000a625d3fd3159ec80808300")
    frame = compress("lz4", b"")[:7] + len(block).to_bytes(4, "little") + block + bytes(4)
    assert read("lz4", frame) == block[2:]
    monkeypatch.setattr("kwire.compression.lz4.lz4_block", None)
    assert read("lz4", frame) == block[2:]


def test_lz4_with_an_empty_block_before_others_is_refused() -> None:
    """Kafka reads on or not as the size of a read has it, so records after it would be lost without an error."""
    frame = compress("lz4", b"x")
    head, block, empty = frame[:7], frame[7:-4], b"\x01\0\0\0" + b"\0"
    assert read("lz4", head + block + empty + bytes(4)) == b"x"
    assert read("lz4", head + empty + bytes(4)) == b""
    for after in (block + bytes(4), empty + bytes(4)):
        with pytest.raises(CorruptBatchError, match="empty block before the end"):
            read("lz4", head + block + empty + after)
    with pytest.raises(CorruptBatchError, match="ends early"):
        read("lz4", head + block + empty)


def test_lz4_whose_block_goes_between_two_looks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        count, most, max_block = 1, 65536, 65536

        def __init__(self, data: Any, magic: int) -> None:
            pass

        def __next__(self) -> Any:
            raise StopIteration

    monkeypatch.setattr("kwire.compression.lz4.Lz4Blocks", Gone)
    with pytest.raises(CorruptBatchError, match="lz4"):
        decompress("lz4", compress("lz4", b"x" * 100), limit=1 << 20)


def test_large_gzip_goes_in_by_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """An inflater that is given all at once copies what it leaves over, at each step."""
    content = b"".join(bytes([i % 251]) * 7 for i in range(1 << 20))
    data, given = gzip.compress(content, 0), []
    assert len(data) > 4 << 20

    class Traced:
        def __init__(self, bits: int) -> None:
            self.inflater = isal_zlib.decompressobj(bits)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inflater, name)

        def decompress(self, piece: Any, most: int) -> Any:
            given.append(len(piece))
            return self.inflater.decompress(piece, most)

    monkeypatch.setattr("kwire.compression.gzip._inflater", Traced)
    assert decompress("gzip", data, limit=64 << 20) == content
    assert max(given) <= 64 << 10


def views(content: bytes) -> list[Any]:
    """Buffers of these bytes, whose length is a multiple of 16, with other items than bytes."""
    plain = np.frombuffer(content, "u1")
    return [
        memoryview(content).cast("b"), memoryview(content).cast("c"), memoryview(content).cast("i"), bytearray(content),
        array.array("q", content), plain.view("i8"), plain.view("M8[s]"), plain.reshape(2, -1),
        plain.view("i4").reshape(4, -1),
    ]


def test_large_gzip_is_written_in_pieces() -> None:
    """Signals come in between, and the bytes are those of one call: 100 MiB took four seconds."""
    content = random.Random(3).randbytes(1 << 20) * 9 + bytes(1 << 20)
    for level in (None, 1, 9):
        assert compress("gzip", content, level=level) == zlib.compress(content, level or -1, 31)

    assert handled(functools.partial(compress, "gzip", content * 2)) > 2


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("content", [random.Random(7).randbytes(160_000), bytes(160_000)], ids=["odd", "even"])
def test_the_bytes_of_an_array_are_compressed(codec: str, content: bytes) -> None:
    packed = compression.compress(codec, content)
    for view in views(content):
        assert compression.compress(codec, view) == packed
    assert compression.decompress(codec, packed, limit=len(content)) == content
    for ending in range(16):  # of what is written, some is a multiple of 16 too
        packed = compression.compress(codec, content + bytes(ending))
        if len(packed) % 16 == 0:
            break
    else:
        return
    for view in views(packed):
        if codec != "none":
            assert compression.decompress(codec, view, limit=1 << 20) == content + bytes(ending)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_no_buffer_is_not_compressed(codec: str) -> None:
    for value in (5, [1, 2], "abc", None, np.array([b"x"], dtype=object)):
        for call in (lambda value=value: compression.compress(codec, value),
                     lambda value=value: compression.decompress(codec, value, limit=10)):
            with pytest.raises(TypeError, match="data must be bytes or another buffer"):
                call()
    with pytest.raises(BufferError, match="data must be a contiguous buffer"):
        compression.compress(codec, memoryview(b"abcd")[::2])


def test_a_long_name_in_a_gzip_header() -> None:
    plain = gzip.compress(b"content")
    for size in (0, 65535, 65536, 200_000):
        named = plain[:3] + b"\x08" + plain[4:10] + b"n" * size + b"\0" + plain[10:]
        assert decompress("gzip", named, limit=100) == b"content"
    with pytest.raises(CorruptBatchError, match="header ends early"):
        decompress("gzip", plain[:3] + b"\x08" + plain[4:10] + b"n" * 200_000, limit=100)
