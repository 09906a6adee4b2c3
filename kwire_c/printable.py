"""Untrusted text made safe to show: control characters drive a terminal, format characters hide or reorder text."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text with characters that are not printable escaped as \x1b, \u202e or \U000e0001.

    Not printable (str.isprintable) are control and format characters, line ends and lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else _escaped(ord(sign)) for sign in text)


def storable(text: str) -> str:
    r"""The text without lone surrogates, which UTF-8 cannot encode: \udcff, from a file name, is escaped."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def brief(value: object) -> str:
    """The repr of a value for an error text, at most 80 characters, also of what Python cannot convert."""
    if isinstance(value, int) and not -(1 << 64) < value < 1 << 64:
        return "a number past 64 bits"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a container of such an integer, or of too many containers
        return f"<{type(value).__name__}>"
    return printable(text if len(text) <= 80 else f"{text[:79]}…")  # a class of the caller's has any repr
