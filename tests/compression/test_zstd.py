"""Many zstd frames in one batch: what they give together, and that an empty one costs next to nothing."""

from __future__ import annotations

import random
import sys
import threading
from typing import Any

import cramjam
import pytest
import zstandard

import kwire
from kwire.compression import compress, zstd

pytestmark = pytest.mark.quick
EMPTY = zstandard.ZstdCompressor().compress(b"")
CHECKED = zstandard.ZstdCompressor(write_checksum=True).compress(b"")
UNSIZED = zstandard.ZstdCompressor(write_content_size=False).compress(b"")
FULL = zstandard.ZstdCompressor().compress(b"content")


@pytest.mark.parametrize("empty", [EMPTY, CHECKED, UNSIZED], ids=["plain", "checked", "unsized"])
def test_empty_frames_beside_others(empty: bytes) -> None:
    for frames, wanted in (
        (empty * 1000, b""), (empty * 3 + FULL + empty * 3 + FULL, b"content" * 2), (empty, b""),
        (FULL + empty, b"content"),
    ):  # fmt: skip
        assert bytes(zstd.decompress(frames, 1000, 2)) == wanted


@pytest.mark.parametrize("library", ["zstandard", "cramjam"])
def test_a_truncated_frame_after_a_whole_one(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its content up to there is read, as by Kafka; one that is damaged before that is refused."""
    if library == "cramjam":
        monkeypatch.setattr(zstd, "zstandard", None)
        monkeypatch.setattr(zstd, "cramjam", cramjam, raising=False)
        monkeypatch.setattr(zstd, "_Error", cramjam.DecompressionError)
        monkeypatch.setattr(zstd, "_local", zstd._Local())
    content = random.Random(1).randbytes(110_000).hex().encode()
    cut = zstandard.ZstdCompressor().compress(content)[:-10_000]
    read = bytes(zstd.decompress(FULL + cut, 1 << 20, 2))
    assert read == b"content" + content[: 128 << 10]  # its first block
    assert bytes(zstd.decompress(FULL + cut[:3], 1 << 20, 2)) == b"content"
    with pytest.raises(kwire.LimitError):
        zstd.decompress(FULL + cut, len(read) - 1, 2)
    damaged = bytearray(cut)
    damaged[20:60] = bytes(40)
    with pytest.raises(kwire.CorruptBatchError):
        zstd.decompress(FULL + damaged, 1 << 20, 2)


def test_a_signal_handler_that_decompresses() -> None:
    """One in the middle of a truncated frame left the context in its own: a valid batch was called corrupt."""
    contents = [random.Random(seed).randbytes(110_000).hex().encode() for seed in (1, 2)]
    batches = [FULL + zstandard.ZstdCompressor().compress(content)[:-10_000] for content in contents]
    wanted = [b"content" + content[: 128 << 10] for content in contents]
    read: list[bytes] = []

    def handle(frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ == "readinto":
            sys.setprofile(None)
            read.append(bytes(zstd.decompress(batches[1], 1 << 20, 2)))

    sys.setprofile(handle)
    try:
        read.append(bytes(zstd.decompress(batches[0], 1 << 20, 2)))
    finally:
        sys.setprofile(None)
    assert read == wanted[::-1]


def test_no_large_zstd_context_is_kept() -> None:
    """One of level 22 kept 700 MiB, for each thread and level."""
    for level in (3, 19):
        compress("zstd", b"abc" * 3_000_000, level=level)
        kept = zstd._local.compressor[1]
        assert kept is None or kept.memory_size() <= zstd._MAX_KEPT


def test_a_decoder_without_memory_raises_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(frame: bytes, room: int) -> bytes:
        raise zstd._Error("decompression error: Allocation error : not enough memory")

    monkeypatch.setattr(zstd._local, "decompress", failing)
    with pytest.raises(MemoryError):
        zstd.decompress(compress("zstd", b"abc" * 100), 1000, 2)


def test_a_context_serves_all_frames_of_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one for each empty frame took seconds a MiB."""
    made: list[int] = []
    inner = zstandard.ZstdDecompressor

    class Counted:
        """zstandard, with its decompressors counted."""

        def __getattr__(self, name: str) -> Any:
            if name == "ZstdDecompressor":
                made.append(1)
                return inner
            return getattr(zstandard, name)

    found: list[bytes] = []
    monkeypatch.setattr(zstd, "zstandard", Counted())
    thread = threading.Thread(target=lambda: found.append(bytes(zstd.decompress(EMPTY * 2000 + FULL, 100, 2))))
    thread.start()
    thread.join()
    assert found == [b"content"] and len(made) <= 2
