"""Many zstd frames in one batch: what they give together, and that an empty one costs next to nothing."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import zstandard

from kwire.compression import zstd

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
