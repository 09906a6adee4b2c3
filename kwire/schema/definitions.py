"""The definition of a message: its versions and its fields with their types, defaults and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.errors import UnsupportedVersionError
from kwire.schema import api_keys, files
from kwire.suggestions import did_you_mean
from kwire_c.printable import brief

if TYPE_CHECKING:
    from kwire.schema.comments import Note

LAST_VERSION = 32767  # the high end of an open range such as "3+"
PRIMITIVES = frozenset(
    ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "float64", "uuid", "string", "bytes", "records")
)


class Versions(NamedTuple):
    """A range of versions, both ends included: "0-3", "4", "3+" (high is 32767) or "none" (empty, false)."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        """The range that a schema writes as "none", "4", "0-3" or "3+"."""
        if not text or text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(int(text[:-1]), LAST_VERSION)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.high == LAST_VERSION:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    def all(self) -> range:
        """Every version in the range, ascending."""
        return range(self.low, self.high + 1)

    def overlap(self, other: Versions) -> Versions:
        """The versions in both ranges."""
        both = Versions(max(self.low, other.low), min(self.high, other.high))
        return both if both else NO_VERSIONS

    def span(self, other: Versions) -> Versions:
        """The smallest range that covers both."""
        if not self or not other:
            return self or other
        return Versions(min(self.low, other.low), max(self.high, other.high))


NO_VERSIONS = Versions(0, -1)


class Field(NamedTuple):
    """One field of a message or of a struct in it, for all versions.

    name: Kafka's own ("FetchOffset"); snake_name: the attribute ("fetch_offset"); json_name: the key in JSON
    ("fetchOffset"); type: as in the schema ("int64", "[]int32", "FetchTopic", "[]FetchTopic"); default: as the schema
    writes it ("-1", "0x7fffffff", "null") or None; tag: None if the field is not tagged; old_names: (JSON name,
    versions) that older releases used; fields: those of its struct, () if it is not a struct.
    """

    name: str
    snake_name: str
    json_name: str
    type: str
    versions: Versions
    nullable_versions: Versions = NO_VERSIONS
    tagged_versions: Versions = NO_VERSIONS
    tag: int | None = None
    default: str | None = None
    ignorable: bool = False
    map_key: bool = False
    entity_type: str | None = None
    zero_copy: bool = False
    flexible_versions: Versions | None = None
    about: str = ""
    old_names: tuple[tuple[str, Versions], ...] = ()
    fields: tuple[Field, ...] = ()

    def __repr__(self) -> str:
        return f"<schema.Field {self.json_name}: {self.type}, versions {self.versions}>"

    @property
    def is_array(self) -> bool:
        """Whether its type starts with []."""
        return self.type.startswith("[]")

    @property
    def element(self) -> str:
        """The type without []: a primitive or the name of a struct."""
        return self.type.removeprefix("[]")

    @property
    def struct(self) -> str | None:
        """The name of its struct, None for primitives and arrays of them."""
        return None if self.element in PRIMITIVES else self.element

    @property
    def default_value(self) -> int | float | bool | str | bytes | tuple[()] | None:
        """The default as a Python value: 0, False, 0.0, "", b"" or () if the schema gives none.

        None: null, and also the defaults of uuid, records and struct fields (see default and type).
        """
        if self.is_array:
            return None if self.default == "null" else ()
        if self.default == "null" or self.type in ("records", "uuid") or self.struct:
            return None
        text = self.default or ""
        if self.type == "string":
            return text
        if self.type == "bytes":
            return b""
        if self.type == "bool":
            return text == "true"
        if self.type == "float64":
            return float(text or 0)
        return int(text or "0", 0)


class Message(NamedTuple):
    """The definition of a message (Kafka's schema of that name), for all versions of all releases.

    type: "request" "response" "header" "data" "metadata" "coordinator-key" "coordinator-value"; api_key: of the
    request, response or record type, or None; releases: the first and last that have it; last_source: (version, the
    release that defines it) for versions that the newest release lacks; shared_structs: structs used more than once.
    """

    name: str
    type: str
    api_key: int | None
    valid_versions: Versions
    flexible_versions: Versions
    fields: tuple[Field, ...]
    deprecated_versions: Versions = NO_VERSIONS
    latest_version_unstable: bool = False
    listeners: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    last_source: tuple[tuple[int, str], ...] = ()
    shared_structs: tuple[str, ...] = ()
    folder: str = ""

    def __repr__(self) -> str:
        number = "" if self.api_key is None else f" {self.api_key}"
        return (f"<schema.Message {self.name}: {self.type}{number}, versions {self.valid_versions}, "
                f"flexible {self.flexible_versions}, {len(self.fields)} fields>")

    def header_version(self, version: int) -> int:
        """The version of the header that precedes this request or response (ApiMessageType).

        Requests: 2 if flexible, else 1; 0 for ControlledShutdown v0. Responses: 1 if flexible, else 0; always 0 for
        ApiVersions. Raises ValueError for other messages.
        """
        flexible = version in self.flexible_versions
        if self.type == "request":
            return 0 if self.api_key == api_keys.CONTROLLED_SHUTDOWN and version == 0 else 1 + flexible
        if self.type == "response":
            return 0 if self.api_key == api_keys.API_VERSIONS else int(flexible)
        raise ValueError(f"{self.name} is neither a request nor a response: it has no header")

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the comments in Kafka's schema of it say, of all releases: see version_notes."""
        from kwire.schema.comments import version_notes

        return version_notes(self.name)

    def walk(self) -> Iterator[tuple[str, Field]]:
        """Every field with its path in JSON names ("topics.partitions.fetchOffset"), parents first."""

        def below(prefix: str, fields: tuple[Field, ...]) -> Iterator[tuple[str, Field]]:
            for field in fields:
                yield prefix + field.json_name, field
                yield from below(f"{prefix}{field.json_name}.", field.fields)

        return below("", self.fields)

    def structs(self) -> dict[str, tuple[Field, ...]]:
        """Struct name -> its fields, in order of first appearance.

        A struct that is used more than once has the union of its fields, each with the versions of all uses.
        """
        structs: dict[str, dict[str, Field]] = {}
        for _, field in self.walk():
            if field.struct is None:
                continue
            union = structs.setdefault(field.struct, {})
            for item in field.fields:
                seen = union.get(item.name)
                union[item.name] = item if seen is None else item._replace(
                    versions=seen.versions.span(item.versions),
                    nullable_versions=seen.nullable_versions.span(item.nullable_versions),
                    tagged_versions=seen.tagged_versions.span(item.tagged_versions),
                )
        return {name: tuple(union.values()) for name, union in structs.items()}

    def check(self, version: int) -> int:
        """The version itself. Raises TypeError if it is no int, UnsupportedVersionError if the message lacks it."""
        if not isinstance(version, int):
            raise TypeError(f"version must be an int, not {type(version).__name__}")
        if version not in self.valid_versions:
            raise UnsupportedVersionError(
                f"{self.name} supports versions {self.valid_versions}, not {brief(version)}",
                api=self.name, needed=(version, version), offered=tuple(self.valid_versions),
            )
        return version


def snake(name: str) -> str:
    """A field name in Kafka's snake_case: "V3AndBelowTopics" -> "v3_and_below_topics", "ISR" -> "isr"."""
    out: list[str] = []
    capital = True
    for letter in name:
        if letter.isupper():
            if not capital:
                out.append("_")
            out.append(letter.lower())
            capital = True
        else:
            out.append(letter)
            capital = False
    return "".join(out)


def field_of(
    entry: dict[str, Any], path: str = "", old: Mapping[str, Sequence[tuple[str, Versions]]] = MappingProxyType({})
) -> Field:
    """The Field of an entry in the JSON of the schema. path: of its parent; old: path -> the names it had."""
    name = entry["name"]
    json_name = name[:1].lower() + name[1:]
    here = f"{path}.{json_name}"
    flexible = entry.get("flexibleVersions")
    return Field(
        name, snake(name), json_name, entry["type"], Versions.parse(entry["versions"]),
        Versions.parse(entry.get("nullableVersions")), Versions.parse(entry.get("taggedVersions")),
        entry.get("tag"), entry.get("default"), entry.get("ignorable", False), entry.get("mapKey", False),
        entry.get("entityType"), entry.get("zeroCopy", False),
        None if flexible is None else Versions.parse(flexible),
        entry.get("about", ""), tuple(old.get(here, ())),
        tuple(field_of(item, here, old) for item in entry.get("fields", ())),
    )


def message_names(type: str | None = None) -> tuple[str, ...]:
    """The names of all messages, or of those of one type ("request", "metadata", ...)."""
    return tuple(name for name, row in files.index().items() if type in (None, row[2]))


def canonical(name: str) -> str:
    """The newest name of the message with this name or older name. Raises UnsupportedVersionError, TypeError."""
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of a message (str), not {brief(name)}")
    if name in files.index():
        return name
    newest = files.renames()["messages"].get(name)
    if newest is None:
        raise UnsupportedVersionError(f"unknown message {brief(name)}{did_you_mean(name, files.index())}", api=name)
    return str(newest)


def message(name: str) -> Message:
    """The definition of the message with this name ("FetchRequest") or older name ("AlterIsrRequest").

    Raises UnsupportedVersionError for an unknown name.
    """
    return _message(canonical(name))


@lru_cache(None)
def _message(name: str) -> Message:
    file, part = files.index()[name][:2]
    definition = files.pair(file)[part]
    old: dict[str, list[tuple[str, Versions]]] = {}
    for row in files.renames()["fields"]:
        if row["message"].partition(".")[0] == name:
            old.setdefault(f"{row['message']}.{row['new']}", []).append((row["old"], Versions.parse(row["versions"])))
    return Message(
        name, definition["type"], definition.get("apiKey"), Versions.parse(definition["validVersions"]),
        Versions.parse(definition["flexibleVersions"]),
        tuple(field_of(item, name, old) for item in definition["fields"]),
        Versions.parse(definition.get("deprecatedVersions")), definition.get("latestVersionUnstable", False),
        tuple(definition.get("listeners", ())), tuple(definition["releases"]),
        tuple((int(version), release) for version, release in definition.get("lastSource", {}).items()),
        tuple(definition.get("sharedStructs", ())), file.partition("/")[0],
    )
