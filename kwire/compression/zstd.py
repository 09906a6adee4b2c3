"""zstd as zstd-jni's ZstdInputStream reads it; no frame can make it allocate more than its output."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from kwire.compression import unusable
from kwire.errors import CorruptBatchError, EncodeError, LimitError
from kwire_c.containers import Room, ZstdFrames
from kwire_c.printable import brief

zstandard: Any
_Error: Any
try:
    import zstandard

    LIBRARY = f"zstandard {zstandard.__version__}"
    _Error = zstandard.ZstdError
except ImportError as error:
    zstandard = None
    try:
        import cramjam
    except ImportError as other:
        raise unusable(
            "zstd", "cramjam or zstandard; neither is installed: pip install cramjam (or 'kwire[fast]')", error, other
        ) from None

    LIBRARY = f"cramjam {cramjam.__version__}"
    _Error = cramjam.DecompressionError

_MIN_LEVEL, _MAX_LEVEL, _DEFAULT_LEVEL = -131072, 22, 3
_MAX_KEPT = 4 << 20  # a context of level 22 takes 700 MiB, and one that streams a frame keeps a copy of its window


class _Local(threading.local):
    """The contexts of a thread: creating one takes as long as decompressing a small batch. Large ones are not kept."""

    def __init__(self) -> None:
        self.decompress = zstandard.ZstdDecompressor().decompress if zstandard is not None else _cramjam
        self.streaming: Any = None  # while there is none, or it is in use
        self.compressor: tuple[int, Any] = (_DEFAULT_LEVEL, None)  # of the level that was used last


def _cramjam(frame: Any, room: int) -> Any:
    out = Room(room)
    return out.take(cramjam.zstd.decompress_into(frame, out.part(0, room)))


_local = _Local()


def decompress(data: Any, limit: int, magic: int) -> Any:
    """The content of all frames. Skippable frames are skipped; checksums and declared sizes are checked."""
    if magic < 2:
        raise CorruptBatchError(f"magic {magic} does not support zstd")
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
            _check_memory(error)
            if room < most:
                raise _too_large(limit, None) from None
            raise CorruptBatchError(f"zstd: {error}") from None
        if start == 0 and stop == end:
            return part
        whole += part
    return whole


def _check_memory(error: Exception) -> None:
    """Raise MemoryError for libzstd's error of a failed allocation."""
    if "not enough memory" in str(error):
        raise MemoryError(f"zstd: {error}") from None


def _too_large(limit: int, needed: int | None) -> LimitError:
    return LimitError("zstd: the batch decompresses to more than the limit", limit=limit, needed=needed)


def _streamed(frame: Any, most: int, limit: int, written: int) -> Any:
    """The content of a truncated frame, or of one without content (its checksum is checked): at most `most` bytes."""
    room = min(most, limit - written)
    out = bytearray(room + 1)
    done = _read(frame, out) if zstandard is not None else _cramjam_read(frame, out)
    if done > room:
        raise _too_large(limit, None)
    del out[done:]
    return out


def _read(frame: Any, out: bytearray) -> int:
    """Decompress the frame into out, as far as it goes; the bytes written."""
    # taken while it is in use: a signal handler, or a finalizer, may decompress in the middle of it
    streaming, _local.streaming = _local.streaming or zstandard.ZstdDecompressor(), None
    with streaming.stream_reader(frame) as reader:
        done = int(reader.readinto(out))
    if streaming.memory_size() <= _MAX_KEPT:
        _local.streaming = streaming
    return done


def _cramjam_read(frame: Any, out: bytearray) -> int:
    """_read with cramjam, whose error for a frame that ends early comes after it has written what there is."""
    frame = bytes(frame)  # the second time it must be the same
    try:
        return int(cramjam.zstd.decompress_into(frame, out))
    except _Error as error:
        if str(error) != "incomplete frame":
            raise
    grown = cramjam.Buffer()  # which says how much was written: not more than fits into out
    with suppress(_Error):
        cramjam.zstd.decompress_into(frame, grown)
    grown.seek(0)
    return int(grown.readinto(out))


def compress(data: Any, level: int | None, magic: int) -> bytes:
    """One frame that declares its content size, compressed at level -131072 to 22."""
    if magic < 2:
        raise EncodeError(f"zstd needs magic 2, not {magic}", path="codec")
    if level is None:
        level = _DEFAULT_LEVEL
    elif not (isinstance(level, int) and _MIN_LEVEL <= level <= _MAX_LEVEL):
        raise EncodeError(f"zstd levels are {_MIN_LEVEL} to {_MAX_LEVEL}, got {brief(level)}", path="level")
    if zstandard is None:
        return bytes(cramjam.zstd.compress(data, level))
    last, compressor = _local.compressor
    if last != level or compressor is None:
        compressor = zstandard.ZstdCompressor(level=level)
    try:
        packed: bytes = compressor.compress(data)
    except _Error as error:  # nothing else can fail
        _check_memory(error)
        raise
    _local.compressor = level, compressor if compressor.memory_size() <= _MAX_KEPT else None
    return packed
