"""What a ninth attack on the codec found."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy
import pytest

import kwire
from kwire import messages
from kwire.compression import compress, zstd

pytestmark = pytest.mark.quick


class Liar(int):
    """An int that says yes to every comparison."""

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return True

    __lt__ = __ge__ = __gt__ = __le__


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("magic", [77, 3, -1])
def test_a_magic_is_read_once(magic: int, codec: str) -> None:
    """It wrote 12 bytes past its memory, and batches of a magic that there is not."""
    with pytest.raises(kwire.EncodeError, match="magic"):
        kwire.build_batch([(0, b"k", b"v")], magic=Liar(magic), codec=codec)


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
@pytest.mark.parametrize("level", [99, 10**30, -(10**30)])
def test_a_level_is_read_once(level: int, codec: str) -> None:
    with pytest.raises(kwire.EncodeError, match="levels are"):
        compress(codec, b"abc" * 100, level=Liar(level))


def test_no_large_zstd_context_is_kept() -> None:
    """One of level 22 kept 700 MiB, for each thread and level."""
    for level in (3, 19):
        compress("zstd", b"abc" * 3_000_000, level=level)
        kept = zstd._local.compressor[1]
        assert kept is None or kept.memory_size() <= zstd._MAX_KEPT


_SHORT_OF_MEMORY = """
import os, resource
from kwire.compression import compress, decompress
compress("zstd", b"a"), decompress("zstd", compress("zstd", b"a"), limit=10)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
content = os.urandom(8 << 20)
resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), resource.RLIM_INFINITY))
try:
    compress("zstd", content, level=22)
except MemoryError:
    print("MemoryError")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS and /proc are Linux's")
def test_zstd_without_memory_raises_memory_error() -> None:
    """It raised ZstdError; in a decoder that was a corrupt batch."""
    done = subprocess.run([sys.executable, "-c", _SHORT_OF_MEMORY], capture_output=True, text=True, check=True)
    assert done.stdout == "MemoryError\n"


def test_a_decoder_without_memory_raises_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(frame: bytes, room: int) -> bytes:
        raise zstd._Error("decompression error: Allocation error : not enough memory")

    monkeypatch.setattr(zstd._local, "decompress", failing)
    with pytest.raises(MemoryError):
        zstd.decompress(compress("zstd", b"abc" * 100), 1000, 2)


FRAME = kwire.encode_request(messages.ApiVersionsRequest(client_software_name="a"), 3, correlation_id=7)
DATES: Any = numpy.frombuffer(FRAME + bytes(-len(FRAME) % 8), "M8[ms]")


def test_arrays_of_dates_are_read_as_their_bytes() -> None:
    assert kwire.decode_request(DATES, lenient=True) == kwire.decode_request(DATES.tobytes(), lenient=True)
    assert kwire.pack_frame(DATES) == kwire.pack_frame(DATES.tobytes())
    assert kwire.FrameReader().feed(numpy.zeros((3, 0), "u1")) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: kwire.decode("ApiVersionsRequest", 3, DATES, views=True),
        lambda: kwire.columns_of("ApiVersionsRequest", 3, [DATES]),
    ],
)
def test_what_cannot_be_viewed_is_refused(call: Any) -> None:
    with pytest.raises(BufferError, match="must be a contiguous buffer"):
        call()


SCALAR: Any = numpy.array(5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: kwire.build_batch(SCALAR),
        lambda: kwire.build_batch([SCALAR]),
        lambda: kwire.build_batch([(0, None, b"", SCALAR)]),
        lambda: kwire.build_batch([(0, None, b"", [SCALAR])]),
        lambda: kwire.build_batch([(numpy.zeros(2, "u1"), None, b"")]),
        lambda: kwire.build_batch([(0, None, b"", numpy.zeros(2, "u1"))]),
        lambda: messages.FetchRequest(max_wait_ms=numpy.zeros(2, "u1")),
        lambda: messages.FetchRequest.ForgottenTopic(partitions=SCALAR),
        lambda: messages.FetchRequest.ForgottenTopic(partitions=memoryview(b"abcd").cast("B", (2, 2))),
    ],
)
def test_arrays_in_the_wrong_place_are_named(call: Any) -> None:
    with pytest.raises(TypeError, match=r"record|header|expected|must be"):
        call()
