"""zstd frames as zstd-jni's ZstdInputStream reads them, none of which can ask for more memory than its output."""

from __future__ import annotations

import threading
from typing import Any

from kwire_c.failure import CorruptBatchError, EncodeError, LimitError, MissingCodecError

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

_MAX_WINDOW = (1 << 27) + 1  # ZSTD_d_windowLogMax's default, which Kafka's streams keep
_MAX_BLOCK = 128 * 1024
_SOURCE = _MAX_BLOCK + 3  # ZSTD_DStreamInSize, what ZstdInputStream reads at a time
_MAGIC = b"\x28\xb5\x2f\xfd"
_MIN_LEVEL, _MAX_LEVEL, _DEFAULT_LEVEL = -131072, 22, 3


class _EndsEarly(CorruptBatchError):
    """More bytes are needed for a frame than there are; most: what its whole blocks can give at most."""

    def __init__(self, most: int = 0) -> None:
        super().__init__("zstd: the stream ends early")
        self.most = most


class _Local(threading.local):
    """One context a thread: a new one costs as much as a small batch."""

    def __init__(self) -> None:
        self.decompress = zstandard.ZstdDecompressor().decompress if zstandard is not None else _cramjam
        self.compressors: dict[int, Any] = {}


def _cramjam(frame: Any, room: int) -> Any:
    out = bytearray(room)
    done = cramjam.zstd.decompress_into(frame, out)
    del out[done:]
    return out


_local = _Local()


def decompress(data: Any, limit: int, magic: int) -> Any:
    """All frames' content in one piece; skippable frames are skipped, checksums and stated sizes are checked."""
    if magic < 2:
        raise CorruptBatchError(f"zstd in a batch of magic {magic}")
    view, at, end, parts, done, cut = memoryview(data), 0, len(data), [], 0, False
    while at < end:
        try:
            stop, least, most = _frame(view, at, end)
        except _EndsEarly as early:
            # ZstdInputStream takes a cut frame for the end where another one ended in the same read of its source
            if at <= (end - 1) // _SOURCE * _SOURCE:
                raise CorruptBatchError(early.reason) from None
            stop, least, most, cut = end, 0, early.most or -1, True
        if most != -1:
            if done + least > limit:
                raise _too_large(limit, done + least)
            frame = data if stop - at == end else view[at:stop]
            room = min(most, limit - done)
            try:
                part = _local.decompress(frame, room) if room and not cut else _streamed(frame, most, limit - done)
            except _Error as error:
                if 0 < room < most:
                    raise _too_large(limit, None) from None
                raise CorruptBatchError(f"zstd: {error}") from None
            done += len(part)
            parts.append(part)
        at = stop
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int, needed: int | None) -> LimitError:
    return LimitError("zstd: the batch decompresses to more than the limit", limit=limit, needed=needed)


def _streamed(frame: Any, most: int, room: int) -> Any:
    """What a frame gives that holds no content (its checksum counts) or that is cut, at most that many bytes."""
    if zstandard is None:
        return _cramjam(frame, min(most, room) + 1)
    out = bytearray(min(most, room) + 1)
    done = zstandard.ZstdDecompressor().stream_reader(frame).readinto(out)
    if done > room:
        raise _too_large(room, None)
    del out[done:]
    return out


def _frame(view: memoryview, at: int, end: int) -> tuple[int, int, int]:
    """(position behind the frame, least and most bytes that it can give); most is -1 for a skippable frame."""
    magic = bytes(view[at : at + 4])
    if magic != _MAGIC[: end - at]:
        if magic[1:] != b"\x2a\x4d\x18"[: end - at - 1] or magic[0] >> 4 != 5:
            raise CorruptBatchError("zstd: wrong magic bytes")
        if end - at < 8:
            raise _EndsEarly
        stop = at + 8 + int.from_bytes(view[at + 4 : at + 8], "little")
        if stop > end:
            raise _EndsEarly
        return stop, 0, -1
    if end - at < 5:
        raise _EndsEarly
    flags = view[at + 4]
    single = flags & 0x20
    stated = (1 if single else 0, 2, 4, 8)[flags >> 6]
    position = at + 5 + (not single) + (0, 1, 2, 4)[flags & 3]
    if end - position < stated:
        raise _EndsEarly
    if flags & 8:
        raise CorruptBatchError("zstd: a reserved bit is set")
    content = -1
    if stated:
        content = int.from_bytes(view[position : position + stated], "little") + (256 if stated == 2 else 0)
        position += stated
    if single:
        window = content
    else:
        size = view[at + 5]
        window = ((1 << 10) + ((size & 7) << 7)) << (size >> 3)
    if window > _MAX_WINDOW:
        raise CorruptBatchError(f"zstd: a window of {window} bytes, at most {_MAX_WINDOW} are allowed")
    least = most = last = 0
    block_limit = min(window, _MAX_BLOCK)
    while not last:
        header = int.from_bytes(view[position : position + 3], "little")
        if end - position < 3:
            raise _EndsEarly(most)
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == 3 or size > block_limit:
            raise CorruptBatchError("zstd: a block of a reserved type or size")
        if kind < 2:
            least += size
        most += size if kind < 2 else block_limit
        position += 3 + (1 if kind == 1 else size)
        if position > end:
            raise _EndsEarly(most)
    position += flags & 4
    if position > end:
        raise _EndsEarly(most)
    if content >= 0:
        if content < least or content > most:
            raise CorruptBatchError(f"zstd: a frame that states {content} bytes gives {least} to {most}")
        least = most = content
    return position, least, most


def compress(data: Any, level: int | None, magic: int) -> bytes:
    """One frame, its size stated, at a level of -131072 to 22."""
    if magic < 2:
        raise EncodeError(f"zstd needs magic 2, not {magic}", path="codec")
    if level is None:
        level = _DEFAULT_LEVEL
    elif not (isinstance(level, int) and _MIN_LEVEL <= level <= _MAX_LEVEL):
        raise EncodeError(f"zstd levels are {_MIN_LEVEL} to {_MAX_LEVEL}, got {level!r}", path="level")
    if zstandard is None:
        return bytes(cramjam.zstd.compress(data, level))
    pack = _local.compressors.get(level)
    if pack is None:
        pack = _local.compressors[level] = zstandard.ZstdCompressor(level=level).compress
    packed: bytes = pack(data)
    return packed
