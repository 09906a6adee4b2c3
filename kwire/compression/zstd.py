"""zstd frames as zstd-jni's ZstdInputStream reads them, none of which can ask for more memory than its output."""

from __future__ import annotations

import threading
from typing import Any

from kwire.errors import CorruptBatchError, EncodeError, LimitError, MissingCodecError
from kwire_c.containers import Room, ZstdFrames
from kwire_c.printable import brief

zstandard: Any
_Error: Any
try:
    import zstandard

    LIBRARY = f"zstandard {zstandard.__version__}"
    _Error = zstandard.ZstdError
except ImportError:
    zstandard = None
    try:
        import cramjam
    except ImportError:
        raise MissingCodecError(
            "zstd needs cramjam or zstandard, neither is installed: pip install cramjam (or 'kwire[fast]')"
        ) from None

    LIBRARY = f"cramjam {cramjam.__version__}"
    _Error = cramjam.DecompressionError

_MIN_LEVEL, _MAX_LEVEL, _DEFAULT_LEVEL = -131072, 22, 3


class _Local(threading.local):
    """One context a thread: a new one costs as much as a small batch."""

    def __init__(self) -> None:
        self.decompress = zstandard.ZstdDecompressor().decompress if zstandard is not None else _cramjam
        self.stream: Any = zstandard.ZstdDecompressor().stream_reader if zstandard is not None else None
        self.compressors: dict[int, Any] = {}


def _cramjam(frame: Any, room: int) -> Any:
    out = Room(room)
    return out.take(cramjam.zstd.decompress_into(frame, out.part(0, room)))


_local = _Local()


def decompress(data: Any, limit: int, magic: int) -> Any:
    """All frames' content in one piece; skippable frames are skipped, checksums and stated sizes are checked."""
    if magic < 2:
        raise CorruptBatchError(f"zstd in a batch of magic {magic}")
    whole, end = bytearray(), len(data)
    for start, stop, least, most, cut in ZstdFrames(data):
        done = len(whole)
        if done + least > limit:
            raise _too_large(limit, done + least)
        frame = data if stop - start == end else memoryview(data)[start:stop]
        room = min(most, limit - done)
        try:
            part = _local.decompress(frame, room) if room and not cut else _streamed(frame, most, limit, done)
        except _Error as error:
            if room < most:
                raise _too_large(limit, None) from None
            raise CorruptBatchError(f"zstd: {error}") from None
        if start == 0 and stop == end:
            return part
        whole += part
    return whole


def _too_large(limit: int, needed: int | None) -> LimitError:
    return LimitError("zstd: the batch decompresses to more than the limit", limit=limit, needed=needed)


def _streamed(frame: Any, most: int, limit: int, given: int) -> Any:
    """What a frame gives that holds no content (its checksum counts) or that is cut, at most that many bytes."""
    room = min(most, limit - given)
    if zstandard is None:
        return _cramjam(frame, room + 1)
    out = bytearray(room + 1)
    with _local.stream(frame) as reader:
        done = reader.readinto(out)
    if done > room:
        raise _too_large(limit, None)
    del out[done:]
    return out


def compress(data: Any, level: int | None, magic: int) -> bytes:
    """One frame, its size stated, at a level of -131072 to 22."""
    if magic < 2:
        raise EncodeError(f"zstd needs magic 2, not {magic}", path="codec")
    if level is None:
        level = _DEFAULT_LEVEL
    elif not (isinstance(level, int) and _MIN_LEVEL <= level <= _MAX_LEVEL):
        raise EncodeError(f"zstd levels are {_MIN_LEVEL} to {_MAX_LEVEL}, got {brief(level)}", path="level")
    if zstandard is None:
        return bytes(cramjam.zstd.compress(data, level))
    pack = _local.compressors.get(level)
    if pack is None:
        pack = _local.compressors[level] = zstandard.ZstdCompressor(level=level).compress
    packed: bytes = pack(data)
    return packed
