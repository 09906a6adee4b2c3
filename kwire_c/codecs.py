"""The names of the compression codecs, by the number in a batch's attributes."""

from __future__ import annotations

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def codec_name(number: int) -> str:
    """The codec's name; the number of an unknown one as text."""
    return CODECS[number] if number < len(CODECS) else str(number)
