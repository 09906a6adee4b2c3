"""Messages to damage: the vectors of every pair (message, version), and filled ones made from the schema."""

from __future__ import annotations

import random
import uuid
from collections import defaultdict
from functools import cache
from typing import Any

import kwire
from kwire import messages, schema
from tests.codec import vectors

Pair = tuple[str, int]
LONGEST = 2000  # bytes of a sample: longer ones take long and are damaged in few places
BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
TEXTS = ("", "t", "topic-1", "ключ", "\U0001f600", "n" * 127, "n" * 130)


def number(kind: str, dice: random.Random) -> int:
    bits = BITS[kind]
    value = dice.choice((0, 1, 127, 128, 1 << bits - 1, (1 << bits) - 1, dice.getrandbits(bits))) & (1 << bits) - 1
    return value if kind.startswith("u") or value < 1 << bits - 1 else value - (1 << bits)


def value(message: str, kind: str, fields: tuple[schema.Field, ...], version: int, dice: random.Random) -> Any:
    """A random value of one type, no array."""
    if fields:
        return filled(message, getattr(getattr(messages, message), kind), fields, version, dice)
    if kind in BITS:
        return number(kind, dice)
    if kind == "string":
        return dice.choice(TEXTS)
    if kind == "uuid":
        return uuid.UUID(int=dice.getrandbits(128))
    if kind == "bool":
        return dice.random() < 0.5
    if kind == "float64":
        return dice.random()
    return dice.randbytes(dice.choice((0, 1, 20, 128)))


def filled(message: str, cls: Any, fields: tuple[schema.Field, ...], version: int, dice: random.Random) -> Any:
    """An instance with a random value in most fields that the version has."""
    values: dict[str, Any] = {}
    for field in fields:
        if version not in field.versions or (version in field.tagged_versions and dice.random() < 0.3):
            continue
        if version in field.nullable_versions and dice.random() < 0.2:
            values[field.snake_name] = None
        elif field.is_array:
            count = dice.choice((0, 1, 1, 2, 3))
            values[field.snake_name] = [
                value(message, field.element, field.fields, version, dice) for _ in range(count)
            ]
        else:
            values[field.snake_name] = value(message, field.type, field.fields, version, dice)
    if version in schema.message(message).flexible_versions and dice.random() < 0.3:
        values["unknown_tags"] = {dice.randrange(30, 20000): dice.randbytes(dice.randrange(9)) for _ in range(2)}
    return cls(**values)


@cache
def _vectors() -> dict[Pair, list[bytes]]:
    found = defaultdict(list)
    for name in vectors.KINDS:
        for vector in vectors.messages(name):
            if len(vector["hex"]) <= 2 * LONGEST:
                found[schema.canonical(vector["message"]), vector["version"]].append(bytes.fromhex(vector["hex"]))
    return found


@cache
def pairs() -> tuple[Pair, ...]:
    """Every (message, version) of the schema."""
    definitions = [schema.message(name) for name in sorted(schema.message_names())]
    return tuple((item.name, version) for item in definitions for version in item.valid_versions.all())


@cache
def samples(pair: Pair) -> tuple[bytes, ...]:
    """Valid messages of a pair: those that Kafka wrote, and eight filled at random."""
    name, version = pair
    dice = random.Random(f"{name} {version}")
    cls, fields = getattr(messages, name), schema.message(name).fields
    made = [kwire.encode(filled(name, cls, fields, version, dice), version) for _ in range(8)]
    return tuple(dict.fromkeys((*_vectors().get(pair, ()), *made)))
