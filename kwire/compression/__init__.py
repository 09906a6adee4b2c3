"""Compression of record batches: one call per batch, capped while decompressing, accepting what Kafka accepts.

Each codec is in its own module, which is imported, with its library, at the first use of the codec.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from kwire.errors import CorruptBatchError, EncodeError, MissingCodecError
from kwire.suggestions import did_you_mean
from kwire_c.codecs import CODECS
from kwire_c.printable import brief
from kwire_c.record_batch import Block

Decompress = Callable[[Any, int, int], Any]
Compress = Callable[[Any, "int | None", int], bytes]

_MAX_LIMIT = (1 << 63) - 1  # the largest size that a library accepts


def unusable(codec: str, needs: str, *errors: ImportError) -> MissingCodecError:
    """The error of a codec none of whose libraries can be used. needs: what to install, if none is installed."""
    broken = [str(error) for error in errors if not isinstance(error, ModuleNotFoundError)]
    if broken:  # installed, but for another processor, damaged, or larger than the memory that is left
        return MissingCodecError(f"{codec}: its library cannot be loaded: {'; '.join(broken)}")
    return MissingCodecError(f"{codec} needs {needs}")


def decompress(codec: str | int, data: Any, *, limit: int, magic: int = 2) -> Any:
    """The decompressed records of a batch, as Kafka's Compression.wrapForInput reads them.

    codec: name or id (none 0, gzip 1, snappy 2, lz4 3, zstd 4); data: any contiguous buffer of bytes;
    limit: the most bytes of output (a negative one counts as 0); magic: the format of the batch, which decides how
    lz4's header checksum is computed.
    Returns bytes or a memoryview of memory that nothing else writes to; for codec none, data itself.
    Raises CorruptBatchError, LimitError (more output than limit; not for codec none), MissingCodecError; TypeError for
    what is no buffer, BufferError for one that is not contiguous.
    """
    view = _view(data)
    content = decompress_view(codec, view, limit=limit, magic=magic)
    return data if content is view else content


def decompress_view(codec: str | int, view: Any, *, limit: int, magic: int) -> Any:
    """decompress for bytes, or a memoryview of bytes, which is not checked again."""
    try:
        read = _decompress[codec]
    except KeyError:
        raise CorruptBatchError(f"unknown compression codec {brief(codec)}") from None
    return read(view, min(max(limit, 0), _MAX_LIMIT), magic)


def _view(data: Any) -> Any:
    """The bytes of an argument, whatever the items of its buffer are."""
    return data if type(data) is bytes else memoryview(Block(data))


def compress(codec: str | int, data: Any, *, level: int | None = None, magic: int = 2) -> bytes:
    """The records of a batch, compressed as Kafka's producer compresses them.

    codec: name or id; data: any contiguous buffer of bytes; level: gzip 1 to 9 (or -1, its default), lz4 1 to 17,
    zstd -131072 to 22, None for Kafka's default (KIP-390); with magic 0, lz4 gets the old header checksum, as in Kafka.
    Raises EncodeError for an unknown codec, a level out of range and zstd below magic 2; MissingCodecError; TypeError
    and BufferError as decompress.
    """
    try:
        write = _compress[codec]
    except KeyError:
        raise EncodeError(
            f"unknown compression codec {brief(codec)}{did_you_mean(codec, CODECS)}", path="codec") from None
    if isinstance(level, int):
        level = int.__index__(level)  # an int of the caller's class may compare as it likes
    return write(_view(data), level, magic)


def libraries() -> dict[str, str]:
    """Codec name -> the library that reads it and its version; "missing" if none can be loaded."""
    in_use = {"none": "none"}
    for name in CODECS[1:]:
        try:
            in_use[name] = import_module(f"kwire.compression.{name}").LIBRARY
        except MissingCodecError:
            in_use[name] = "missing"
    return in_use


def _none(data: Any, limit: int, magic: int) -> Any:
    return data


def _write_none(data: Any, level: int | None, magic: int) -> bytes:
    if level is not None:
        raise EncodeError(f"codec none has no levels, got level {brief(level)}", path="level")
    return bytes(data)


_decompress: dict[str | int, Decompress] = {"none": _none, 0: _none}
_compress: dict[str | int, Compress] = {"none": _write_none, 0: _write_none}


def _load(number: int, name: str) -> None:
    """Put functions into the tables that import the codec's module at first use and then replace themselves."""

    def first_read(data: Any, limit: int, magic: int) -> Any:
        module = import_module(f"kwire.compression.{name}")
        _decompress[name] = _decompress[number] = module.decompress
        return module.decompress(data, limit, magic)

    def first_write(data: Any, level: int | None, magic: int) -> bytes:
        module = import_module(f"kwire.compression.{name}")
        _compress[name] = _compress[number] = module.compress
        return bytes(module.compress(data, level, magic))

    _decompress[name] = _decompress[number] = first_read
    _compress[name] = _compress[number] = first_write


for _number, _name in enumerate(CODECS[1:], 1):
    _load(_number, _name)
