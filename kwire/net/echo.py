"""A peer's words in an error: never with a secret in them, however it echoes what it was sent."""

from __future__ import annotations

import base64
import html
import re
import urllib.parse
from collections.abc import Iterable

MOST = 300  # characters of a peer's words
_PIECE = 4  # characters of a secret that may stand in other words by chance
LEFT_OUT = "(the broker's words are left out: they repeat the credentials)"
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.S)  # of JSON, Java and Python
_NAMED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def quoted(text: str, secrets: Iterable[str]) -> str:
    """A peer's words as one line of at most 300 characters; LEFT_OUT where any piece of a secret stands in them."""
    line = " ".join(text.split())
    readings = {text, line, urllib.parse.unquote_plus(text), urllib.parse.unquote(text), html.unescape(text),
                _ESCAPE.sub(_unescaped, text)}  # fmt: skip
    folded = {reading.casefold() for reading in readings}
    for secret in secrets:
        plain, packed = _pieces(secret)
        if any(piece in reading for piece in plain for reading in folded):
            return LEFT_OUT
        if any(piece in reading for piece in packed for reading in readings):
            return LEFT_OUT
    return line[:MOST]


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    return chr(int(code, 16)) if code else _NAMED.get(found[3], found[3])


def _pieces(secret: str) -> tuple[set[str], set[str]]:
    """Every four characters of a secret, plain and in hex, whatever their case; and of its base64."""
    data = secret.encode("utf-8", "replace")
    plain = (secret.casefold(), data.hex(), data.decode("latin-1").casefold())
    packed = [base64.b64encode(data[skip:]).decode().rstrip("=") for skip in range(3)]
    return set().union(*map(_cut, plain)), set().union(*map(_cut, packed))


def _cut(form: str) -> set[str]:
    """Its pieces; a shorter one whole."""
    return {form[at : at + _PIECE] for at in range(max(1, len(form) - _PIECE + 1))} if form else set()
