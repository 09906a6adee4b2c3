"""Values for every field of a message, as the JSON that Kafka's *JsonConverter reads: made from the schema by seed."""

from __future__ import annotations

import base64
import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kwire.schema import Versions

Schema = dict[str, Any]

INTEGERS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
TEXTS = (
    "", "a", "topic-1", "localhost", "/127.0.0.1", "__consumer_offsets", "group.A_b-9", "consumer-1-7c9e", "x y z",
    "User:CN=kwire,OU=å", "rack-α", "Жизнь", "日本語トピック", "שלום", "😀🚀", "mixed ñ 中 𝄞 end", "\0nul\0",
    "tab\tnl\nquote\"back\\slash", "\uffff\ufffd\x80\u07ff\u0800", "\U00010000\U0010ffff",
)  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# above every tag that a later release may define, so that the bytes keep their meaning
UNKNOWN_TAGS = (100, 127, 128, 1000, 16383, 16384, 2_097_151, 2_097_152, 2_147_483_646)
BUDGET = 60  # structs in the arrays of one message
NULL, TAGGED = 0.2, 0.7  # chance of a null where one is allowed, of a tagged field that is set


def json_name(name: str) -> str:
    """The key in JSON: Kafka's field name with a small first letter."""
    return name[0].lower() + name[1:]


def at(versions: str | None, version: int) -> bool:
    """Whether a schema's range has a version."""
    return version in Versions.parse(versions)


def fields_at(schema: Schema, version: int) -> list[Schema]:
    """The fields that a version has."""
    return [field for field in schema.get("fields", ()) if at(field["versions"], version)]


def walk(schema: Schema, version: int) -> Iterator[Schema]:
    """Every field that a version has, at any depth."""
    for field in fields_at(schema, version):
        yield field
        yield from walk(field, version)


def is_array(field: Schema) -> bool:
    """Whether it is an array."""
    return bool(field["type"].startswith("[]"))


def element(field: Schema) -> Schema:
    """An array's element as a field of its own."""
    return {**field, "type": field["type"].removeprefix("[]"), "nullableVersions": "none", "default": None}


def nullable(field: Schema, version: int) -> bool:
    """Whether a version allows null."""
    return at(field.get("nullableVersions"), version)


def tagged(field: Schema, version: int) -> bool:
    """Whether a version writes it as a tagged field."""
    return at(field.get("taggedVersions"), version)


def base64_of(data: bytes) -> str:
    """Bytes in JSON."""
    return base64.b64encode(data).decode()


def uuid_text(number: int) -> str:
    """A uuid in JSON."""
    return base64.urlsafe_b64encode(uuid.UUID(int=number).bytes).decode().rstrip("=")


def default(field: Schema, version: int) -> Any:
    """What a new message has in a field."""
    text, kind = field.get("default"), field["type"]
    if text == "null":
        return None
    if is_array(field):
        return []
    if field.get("fields"):
        return defaults(field, version)
    if kind == "bool":
        return text == "true"
    if kind in INTEGERS:
        return int(text or "0", 0)
    if kind == "float64":
        return float(text or 0)
    if kind == "uuid":
        return uuid_text(0)
    if kind == "records":
        return None if nullable(field, version) else ""
    return text or ""


def defaults(schema: Schema, version: int) -> dict[str, Any]:
    """A message or struct with every field at its default."""
    return {json_name(field["name"]): default(field, version) for field in fields_at(schema, version)}


def other(field: Schema, version: int) -> Any:
    """A small value that is not the default."""
    kind = field["type"]
    if is_array(field):
        inner = element(field)
        return [defaults(inner, version) if inner.get("fields") else other(inner, version)]
    if field.get("fields"):
        value = defaults(field, version)
        first = fields_at(field, version)[0]
        return {**value, json_name(first["name"]): other(first, version)}
    if kind == "bool":
        return field.get("default") != "true"
    if kind in INTEGERS:
        return 2 if default(field, version) == 1 else 1
    if kind == "float64":
        return 2.0 if default(field, version) == 1 else 1.0
    if kind == "uuid":
        return uuid_text((1 << 64) + 2)
    return "xé" if kind == "string" else base64_of(b"x\xff")


class Kind(NamedTuple):
    """One kind of vector: its number, and whether it asks for nulls, long values or unknown tags."""

    name: str
    idx: int


def kinds(schema: Schema, version: int) -> list[Kind]:
    """The kinds that a version of a message can have."""
    rows = [Kind("default", 0), *(Kind("random", idx) for idx in range(5))]
    inside = list(walk(schema, version))
    if any(nullable(field, version) for field in inside):
        rows += [Kind("null", 0), Kind("null", 1)]
    if any(lengthy(field) for field in inside):
        rows += [Kind("long", 0), Kind("long", 1)]
    if at(schema["flexibleVersions"], version):
        rows += [Kind("unknown_tags", 0), Kind("unknown_tags", 1)]
    return rows


def lengthy(field: Schema) -> bool:
    """Whether a value of it, or of its elements, can be long."""
    return field["type"].removeprefix("[]") in ("string", "bytes")


class Maker:
    """Makes one message. unknown: path -> {tag: data}, what it put in as unknown tags."""

    def __init__(self, name: str, schema: Schema, version: int, kind: Kind, batches: list[bytes]) -> None:
        self.schema, self.version, self.kind, self.batches = schema, version, kind, batches
        self.dice = random.Random(f"{name} {version} {kind.name} {kind.idx}")
        self.budget, self.unknown = BUDGET, dict[str, dict[int, bytes]]()
        self.large = kind == ("long", 1)  # the one large value is still to come

    def message(self) -> dict[str, Any]:
        """The JSON of the message."""
        if self.kind.name == "default":
            return defaults(self.schema, self.version)
        return self._struct(self.schema, "", 0)

    def _struct(self, schema: Schema, path: str, depth: int) -> dict[str, Any]:
        value = {}
        for field in fields_at(schema, self.version):
            key = json_name(field["name"])
            always = self.kind.name in ("null", "long")
            if tagged(field, self.version) and not always and self.dice.random() > TAGGED:
                value[key] = default(field, self.version)
            else:
                value[key] = self._value(field, f"{path}.{key}" if path else key, depth)
        self._tags(schema, value, path)
        return value

    def _tags(self, schema: Schema, value: dict[str, Any], path: str) -> None:
        if self.kind.name != "unknown_tags" or (path and self.dice.random() > 0.5):
            return
        if schema.get("flexibleVersions") and not at(schema["flexibleVersions"], self.version):
            return
        chosen = sorted(self.dice.sample(UNKNOWN_TAGS, self.dice.choice((1, 1, 2, 3))))
        data = {tag: self.dice.randbytes(self.dice.choice((0, 1, 4, 20, 200))) for tag in chosen}
        self.unknown[path] = data
        value["_unknownTags"] = {str(tag): base64_of(one) for tag, one in data.items()}

    def _value(self, field: Schema, path: str, depth: int) -> Any:
        if nullable(field, self.version) and self._wants_null(field):
            return None
        if is_array(field):
            return self._array(field, path, depth)
        if field.get("fields"):
            return self._struct(field, path, depth + 1)
        made: Callable[[], Any] = getattr(self, f"_{field['type']}", None) or (lambda: self._number(field["type"]))
        return made()

    def _wants_null(self, field: Schema) -> bool:
        if self.kind.name == "long":
            return False
        if self.kind.name == "null":
            has_structs = bool(field.get("fields"))
            return self.kind.idx == 0 or not has_structs
        return self.dice.random() < NULL

    def _array(self, field: Schema, path: str, depth: int) -> list[Any]:
        inner = element(field)
        if inner.get("fields"):
            least = 1 if self.kind.name in ("null", "long") else 0
            count = max(least, min(self.dice.randrange(4 - min(depth, 2)), self.budget))
            self.budget -= count
        elif self.kind.name == "long":
            count = 130 if self.kind.idx == 0 else 2
        else:
            count = self.dice.randrange(4)
        return [self._value(inner, f"{path}[{i}]", depth) for i in range(count)]

    def _number(self, kind: str) -> int:
        bits = INTEGERS[kind]
        low, high = (0, (1 << bits) - 1) if kind.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)
        choice = self.dice.randrange(8)
        fixed = (0, 1, 5, max(low, -1), low, high)
        if choice < len(fixed):
            return fixed[choice]
        return self.dice.randrange(1000) & high if choice == 6 else self.dice.randint(low, high)

    def _bool(self) -> bool:
        return self.dice.random() < 0.5

    def _float64(self) -> float:
        return self.dice.choice((0.0, 1.0, -1.5, 1e300, 5e-324, self.dice.uniform(-1e6, 1e6)))

    def _uuid(self) -> str:
        return uuid_text(self.dice.choice((0, 1, (1 << 128) - 1, self.dice.getrandbits(128))))

    def _string(self) -> str:
        if self.kind.name == "long":
            if self.large:
                self.large = False
                return self._letters(self.dice.choice((16383, 16384, 32766, 32767)))
            if self.kind.idx == 0:
                return self.dice.choice(("é" * 64, self._letters(self.dice.choice((127, 128, 130, 255, 256)))))
            return self._letters(self.dice.choice((125, 126, 127)))
        if self.dice.random() < 0.2:
            return f"s{self.dice.getrandbits(32):08x}"
        return self.dice.choice(TEXTS)

    def _letters(self, size: int) -> str:
        start = self.dice.randrange(len(LETTERS))
        return (LETTERS[start:] + LETTERS * (size // len(LETTERS) + 1))[:size]

    def _bytes(self) -> str:
        if self.kind.name == "long":
            size = self.dice.choice((126, 127, 128))
            if self.large:
                self.large = False
                size = self.dice.choice((16383, 16384, 32767, 70000))
            return base64_of((bytes(range(256)) * (size // 256 + 1))[:size])
        return base64_of(self.dice.randbytes(self.dice.choice((0, 1, 3, 20, 40))))

    def _records(self) -> str:
        return base64_of(self.dice.choice([b"", *self.batches]))
