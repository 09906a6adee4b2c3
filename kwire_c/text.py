"""UTF-8 as Java reads it: bad bytes become U+FFFD, one for a whole surrogate."""

from __future__ import annotations

import codecs


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.start + 3]
    surrogate = len(bad) == 3 and bad[0] == 0xED and bad[1] >= 0xA0 and bad[2] & 0xC0 == 0x80 and bad[1] & 0xC0 == 0x80
    return "\ufffd", error.start + 3 if surrogate else error.end


codecs.register_error("kwire_java", _replace)


def decode_replacing(data: bytes) -> str:
    """The text of data; what is no UTF-8 becomes U+FFFD exactly where Java's String constructor puts it."""
    return data.decode("utf-8", "kwire_java")
