"""A peer's words in an error: never with a secret in them, however it echoes what it was sent."""

from __future__ import annotations

import base64
import urllib.parse
from collections.abc import Iterable

MOST = 300  # characters of a peer's words
_PIECE = 4  # characters of a secret that may stand in other words by chance
LEFT_OUT = "(the broker's words are left out: they repeat the credentials)"


def quoted(text: str, secrets: Iterable[str]) -> str:
    """A peer's words as one line of at most 300 characters; LEFT_OUT where any piece of a secret stands in them."""
    line = " ".join(text.split())
    found = {text, line, urllib.parse.unquote(text)}
    if any(piece in form for secret in secrets for piece in _pieces(secret) for form in found):
        return LEFT_OUT
    return line[:MOST]


def _pieces(secret: str) -> set[str]:
    """Every four characters of a secret, plain and as base64 and hex write it; a shorter one whole."""
    data = secret.encode("utf-8", "replace")
    forms = [secret, data.hex(), *(base64.b64encode(data[skip:]).decode().rstrip("=") for skip in range(3))]
    return {
        form[at : at + _PIECE] for form in forms if form for at in range(max(1, len(form) - _PIECE + 1))
    }
