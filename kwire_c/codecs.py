"""The compression codecs: their names, by their id in a batch's attributes."""

from __future__ import annotations

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def codec_name(number: int) -> str:
    """The name of the codec with this id; the id as text if it is unknown."""
    return CODECS[number] if number < len(CODECS) else str(number)
