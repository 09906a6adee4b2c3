"""to_json and from_json: messages as Kafka's *JsonConverter classes write them; json_text: as its tools print them."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from math import isfinite
from typing import Any

from kwire_c.json import from_json, to_json

__all__ = ["from_json", "json_text", "to_json"]

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_ESCAPE = re.compile(r"\\(?:u00[01][0-9a-f]|.)")


def json_text(value: Any) -> str:
    """A JSON value as Jackson's JsonNode.toString writes it, which is what Kafka's tools print: on one line.

    Characters outside of ASCII are as they are; doubles are as Java's Double.toString writes them ("1.0E7").
    """
    if _has_double(value):
        return _text(value)
    text = _ENCODE(value)
    return _upper(text) if "\\u00" in text else text


def _has_double(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        return any([_has_double(item) for item in value.values()])
    if kind is list:
        return any([_has_double(item) for item in value])
    return kind is float


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(name)}:{_text(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, float):
        return _java_double(value) if isfinite(value) else f'"{_java_double(value)}"'
    return _upper(_ENCODE(value))


def _upper(text: str) -> str:
    """JSON with the hex digits of escapes in upper case, as Jackson has them."""
    return _ESCAPE.sub(lambda sign: "\\u" + sign[0][2:].upper() if sign[0][1] == "u" else sign[0], text)


def _java_double(value: float) -> str:
    """A double as java.lang.Double.toString writes it: 100.0, 1.0E7, 1.0E-4, NaN, -Infinity."""
    if not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = Decimal(repr(value))
    if len(shortest.as_tuple().digits) == 1:
        shortest = Decimal(f"{value:.1e}")  # of two digits, the nearest: 4.9E-324
    sign, digits, exponent = shortest.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0")
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{exponent + len(digits) - 1}"
