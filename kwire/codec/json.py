"""to_json and from_json: messages as Kafka's *JsonConverter classes write them; json_text: as its tools print them."""

from __future__ import annotations

import re
from decimal import Decimal
from json import JSONDecodeError, dumps, encoder  # not json.encoder: threads importing both can wait for each other
from math import isfinite
from typing import Any

from kwire_c.json import UNKNOWN, from_json, to_json

__all__ = ["from_json", "java_double", "json_fault", "json_text", "message_json", "to_json", "without_nan"]

_ESCAPE = re.compile(r"\\(?:u00[01][0-9a-f]|.)")


def json_text(value: Any, *, unknown_tags: bool = True) -> str:
    """A JSON value as Jackson's JsonNode.toString writes it, which is what Kafka's tools print: on one line.

    Characters outside of ASCII are as they are; doubles are as Double.toString of Java 19 and newer writes them
    ("1.0E7"): older ones write a digit too many of one in a hundred.
    unknown_tags=False: without those of messages, as Java leaves them out. Raises TypeError for what is no JSON value.
    """
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is int:
        return str(value)
    if kind is dict:
        return "{" + ",".join([
            f"{_quoted(name)}:{json_text(item, unknown_tags=unknown_tags)}" for name, item in value.items()
            if unknown_tags or name != UNKNOWN
        ]) + "}"
    if kind is list or kind is tuple:
        return "[" + ",".join([json_text(item, unknown_tags=unknown_tags) for item in value]) + "]"
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return java_double(value) if isfinite(value) else f'"{java_double(value)}"'
    raise TypeError(f"no JSON value: {kind.__name__}")


def json_fault(error: ValueError | RecursionError) -> str:
    """Why Python's json refuses a text, without what it advises programmers to do."""
    if isinstance(error, JSONDecodeError):
        return str(error)
    return "too many levels" if isinstance(error, RecursionError) else "a number of too many digits"


def message_json(message: Any, version: int) -> str:
    """A message as a line of JSON, of to_json's value. It is JSON for every reader: see without_nan."""
    value = to_json(message, version)
    try:
        return dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return dumps(without_nan(value), ensure_ascii=False)


def without_nan(value: Any) -> Any:
    """A JSON value with "NaN", "Infinity" and "-Infinity" for such doubles, as Jackson writes them; JSON has none."""
    kind = type(value)
    if kind is float and not isfinite(value):
        return java_double(value)
    if kind is dict:
        return {name: without_nan(item) for name, item in value.items()}
    if kind is list or kind is tuple:
        return [without_nan(item) for item in value]
    return value


def _quoted(text: str) -> str:
    quoted = encoder.encode_basestring(text)
    return _ESCAPE.sub(_upper, quoted) if "\\u00" in quoted else quoted


def _upper(found: re.Match[str]) -> str:
    """An escape with its hex digits in upper case, as Jackson has them."""
    escape = found[0]
    return "\\u" + escape[2:].upper() if escape[1] == "u" else escape


def java_double(value: float) -> str:
    """A double as java.lang.Double.toString writes it, of Java 19 and newer: 100.0, 1.0E7, 1.0E-4, NaN, -Infinity."""
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
