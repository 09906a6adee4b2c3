"""Random bytes of a layout in tests/data/schema/layouts.json, written without kwire."""

from __future__ import annotations

from random import Random
from typing import Any

SIZES = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}


def sample(layout: dict[str, Any], random: Random) -> bytes:
    """One message, with small values most of the time, as real ones have them, and an element in every array."""
    return _struct(layout["fields"], layout["flexible"], random)


def _struct(fields: list[dict[str, Any]], flexible: bool, random: Random) -> bytes:
    written = [_value(field, field["type"], field.get("flexible", flexible), random)
               for field in fields if "tag" not in field]  # fmt: skip
    return b"".join(written) + b"\0" * flexible


def _value(field: dict[str, Any], kind: str, flexible: bool, random: Random) -> bytes:
    if kind == "bool":
        return bytes([random.getrandbits(1)])
    if kind in SIZES:
        size = SIZES[kind]
        small = random.randrange(10).to_bytes(size, "big")
        return random.choice([small, small, b"\xff" * size, random.randbytes(size)])
    if "fields" in field and not kind.startswith("[]"):
        return b"\1" * bool(field.get("nullable")) + _struct(field["fields"], flexible, random)
    width = 2 if kind == "string" else 4
    if field.get("nullable") and "fields" not in field and random.random() < 0.5:
        return b"\0" if flexible else b"\xff" * width
    if kind.startswith("[]"):
        count = random.choice([1, 1, 2, 3])
        one = kind.removeprefix("[]")
        content = b"".join(_value({**field, "nullable": False}, one, flexible, random) for _ in range(count))
    else:
        content = random.choice([b"", b"topic-a", b"kafka", random.randbytes(random.randrange(20)).hex().encode()])
        count = len(content)
    return (bytes([count + 1]) if flexible else count.to_bytes(width, "big")) + content
