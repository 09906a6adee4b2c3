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
_MIN_LEVEL, _MAX_LEVEL, _DEFAULT_LEVEL = -131072, 22, 3


class _Local(threading.local):
    """One context a thread: a new one costs as much as a small batch."""

    def __init__(self) -> None:
        if zstandard is not None:
            self.decompress = zstandard.ZstdDecompressor().decompress
        self.compressors: dict[int, Any] = {}


_local = _Local()


def _one(frame: Any, room: int) -> Any:
    """The content of one frame, which is known to end within room bytes or is refused."""
    if zstandard is not None:
        return _local.decompress(frame, room) if room else b""
    out = bytearray(room)
    done = cramjam.zstd.decompress_into(frame, out)
    del out[done:]
    return out


def decompress(data: Any, limit: int, magic: int) -> Any:
    """All frames' content in one piece; skippable frames are skipped, checksums and stated sizes are checked."""
    if magic < 2:
        raise CorruptBatchError(f"zstd in a batch of magic {magic}")
    view, at, end, parts, done = memoryview(data), 0, len(data), [], 0
    while at < end:
        stop, least, most = _frame(view, at, end)
        if stop and most >= 0:
            if done + least > limit:
                raise _too_large(limit, done + least)
            room = min(most, limit - done)
            try:
                part = _one(data if stop - at == end else view[at:stop], room) if most else b""
            except _Error as error:
                if room < most:
                    raise _too_large(limit, None) from None
                raise CorruptBatchError(f"zstd: {error}") from None
            done += len(part)
            parts.append(part)
        at = stop
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int, needed: int | None) -> LimitError:
    return LimitError("zstd: the batch decompresses to more than the limit", limit=limit, needed=needed)


def _frame(view: memoryview, at: int, end: int) -> tuple[int, int, int]:
    """(position behind the frame, least and most bytes that it can give); most is -1 for a skippable frame."""
    word = int.from_bytes(view[at : at + 4], "little")
    if end - at < 8:
        raise CorruptBatchError("zstd: the stream ends early")
    if word & 0xFFFFFFF0 == 0x184D2A50:
        stop = at + 8 + int.from_bytes(view[at + 4 : at + 8], "little")
        if stop > end:
            raise CorruptBatchError("zstd: the stream ends early")
        return stop, 0, -1
    if word != 0xFD2FB528:
        raise CorruptBatchError("zstd: wrong magic bytes")
    flags = view[at + 4]
    single = flags & 0x20
    dictionary = (0, 1, 2, 4)[flags & 3]
    stated = (1 if single else 0, 2, 4, 8)[flags >> 6]
    position = at + 5
    if end - position < (not single) + dictionary + stated:
        raise CorruptBatchError("zstd: the stream ends early")
    window = 0
    if not single:
        exponent = 10 + (view[position] >> 3)
        window = (1 << exponent) + (1 << exponent - 3) * (view[position] & 7)
        position += 1
    position += dictionary
    content = -1
    if stated:
        content = int.from_bytes(view[position : position + stated], "little") + (256 if stated == 2 else 0)
        position += stated
    if single:
        window = content
    if window > _MAX_WINDOW:
        raise CorruptBatchError(f"zstd: a window of {window} bytes, at most {_MAX_WINDOW} are allowed")
    least = most = 0
    block_limit = min(window, _MAX_BLOCK)
    last = 0
    while not last:
        if end - position < 3:
            raise CorruptBatchError("zstd: the stream ends early")
        header = int.from_bytes(view[position : position + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        position += 3
        if kind == 2:
            most += block_limit
        elif kind < 2:
            least += size
            most += size
        else:
            raise CorruptBatchError("zstd: a block of a reserved type")
        position += 1 if kind == 1 else size
        if position > end:
            raise CorruptBatchError("zstd: the stream ends early")
    if flags & 4:
        position += 4
        if position > end:
            raise CorruptBatchError("zstd: the stream ends early")
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
