"""Text of others that is safe to show: terminals obey control characters, and hide or turn round what is there."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text with what is not a printable character written as \x1b, \u202e or \U000e0001.

    Printable is what str.isprintable says: neither control nor format characters, nor line ends, nor lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else _escaped(ord(sign)) for sign in text)


def storable(text: str) -> str:
    r"""The text as UTF-8 has it: what Python holds as \udcff, a byte of a file name that is none, is written so."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def brief(value: object) -> str:
    """A value for an error's text: at most 80 characters, and never a number whose digits Python refuses to write."""
    if isinstance(value, int) and not -(1 << 64) < value < 1 << 64:
        return "a number past 64 bits"
    try:
        text = repr(value)
    except ValueError:  # such a number inside of it
        return f"<{type(value).__name__}>"
    return text if len(text) <= 80 else f"{text[:79]}…"
