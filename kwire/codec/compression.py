"""Compression of record batches: one call a batch, capped while decompressing, with Kafka's own verdicts.

Each codec stands in a module of its own that is imported, with its library, at the codec's first use.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from kwire_c.codecs import CODECS
from kwire_c.errors import CorruptBatchError, EncodeError, MissingCodecError
from kwire_c.printable import brief

Decompress = Callable[[Any, int, int], Any]
Compress = Callable[[Any, "int | None", int], bytes]

_MOST = (1 << 63) - 1  # of bytes that a library can be told
_MODULES = {"gzip": "gzip_members", "snappy": "xerial", "lz4": "lz4_frame", "zstd": "zstd_frame"}


def decompress(codec: str | int, data: Any, *, limit: int, magic: int = 2) -> Any:
    """The plain bytes of a compressed batch's records, as Kafka's Compression.wrapForInput reads them.

    codec: name or id (none 0, gzip 1, snappy 2, lz4 3, zstd 4); data: any contiguous buffer of bytes;
    limit: the most bytes that may come out, 0 where it is below; magic: the batch's format, which decides on lz4's
    header checksum.
    Returns bytes or a memoryview of memory that nothing else writes to; for codec none, data itself.
    Raises CorruptBatchError, LimitError (more than limit comes out), MissingCodecError.
    """
    try:
        return _decompress[codec](data, min(max(limit, 0), _MOST), magic)
    except KeyError:
        raise CorruptBatchError(f"unknown compression codec {codec!r}") from None


def compress(codec: str | int, data: Any, *, level: int | None = None, magic: int = 2) -> bytes:
    """The records of a batch compressed as Kafka's producer writes them.

    codec: name or id; data: any contiguous buffer of bytes; level: gzip 1 to 9 (or -1, its default), lz4 1 to 17,
    zstd -131072 to 22, None for Kafka's default (KIP-390); magic: 0 writes lz4's old header checksum, as Kafka does.
    Raises EncodeError for an unknown codec, a level out of range and zstd below magic 2; MissingCodecError.
    """
    try:
        write = _compress[codec]
    except KeyError:
        raise EncodeError(f"unknown compression codec {codec!r}", path="codec") from None
    return write(data, level, magic)


def libraries() -> dict[str, str]:
    """Codec name -> the library in use for reading it, with its version; "missing" where none is installed."""
    found = {"none": "none"}
    for name, module in _MODULES.items():
        try:
            found[name] = import_module(f"kwire.codec.{module}").LIBRARY
        except MissingCodecError:
            found[name] = "missing"
    return found


def _none(data: Any, limit: int, magic: int) -> Any:
    return data


def _write_none(data: Any, level: int | None, magic: int) -> bytes:
    if level is not None:
        raise EncodeError(f"codec none has no levels, got {brief(level)}", path="level")
    return bytes(data)


_decompress: dict[str | int, Decompress] = {"none": _none, 0: _none}
_compress: dict[str | int, Compress] = {"none": _write_none, 0: _write_none}


def _load(number: int, name: str) -> None:
    """Puts stand-ins in the tables that import the codec's module at first use and then step aside."""

    def first_read(data: Any, limit: int, magic: int) -> Any:
        module = import_module(f"kwire.codec.{_MODULES[name]}")
        _decompress[name] = _decompress[number] = module.decompress
        return module.decompress(data, limit, magic)

    def first_write(data: Any, level: int | None, magic: int) -> bytes:
        module = import_module(f"kwire.codec.{_MODULES[name]}")
        _compress[name] = _compress[number] = module.compress
        return bytes(module.compress(data, level, magic))

    _decompress[name] = _decompress[number] = first_read
    _compress[name] = _compress[number] = first_write


for _number, _name in enumerate(CODECS[1:], 1):
    _load(_number, _name)
