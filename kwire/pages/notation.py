"""One version of a message as rows of a table, and in the notation of Kafka's protocol guide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kwire.schema import Field, Message

_COMPACT = frozenset(("string", "bytes", "records"))


class FieldRow(NamedTuple):
    """One field of one version of a message.

    depth: 0 for fields of the message itself; type: the type on the wire ("COMPACT_NULLABLE_STRING", "INT32",
    "FetchTopic", "COMPACT_ARRAY of FetchTopic"); tag: None unless tagged in this version.
    """

    depth: int
    path: str
    field: Field
    type: str
    nullable: bool
    tag: int | None
    default: str


def rows(message: Message, version: int) -> Iterator[FieldRow]:
    """The fields of a version, each before the fields inside it."""

    def below(prefix: str, depth: int, fields: tuple[Field, ...]) -> Iterator[FieldRow]:
        for field in fields:
            if version not in field.versions:
                continue
            tag = field.tag if version in field.tagged_versions else None
            nullable = version in field.nullable_versions
            yield FieldRow(
                depth, prefix + field.json_name, field, wire_type(message, field, version), nullable, tag,
                default_text(field, nullable),
            )
            yield from below(f"{prefix}{field.json_name}.", depth + 1, field.fields)

    return below("", 0, message.fields)


def default_text(field: Field, nullable: bool) -> str:
    """The default as in the schema, or the type's default for a field without one; "" for structs and arrays."""
    if field.default == "null" and not nullable:
        return ""
    if field.default is not None:
        return field.default
    if field.is_array or field.struct or field.type in ("records", "bytes"):
        return ""
    return {"bool": "false", "string": '""', "uuid": "zero", "float64": "0.0"}.get(field.type, "0")


def wire_type(message: Message, field: Field, version: int) -> str:
    """The type on the wire, named as in Kafka's protocol guide (org.apache.kafka.common.protocol.types.Type)."""
    flexible = version in (message.flexible_versions if field.flexible_versions is None else field.flexible_versions)
    compact = "COMPACT_" if flexible else ""
    nullable = "NULLABLE_" if version in field.nullable_versions else ""
    if field.is_array:
        element = field.element if field.struct else _plain(field.element, compact, "")
        return f"{compact}{nullable}ARRAY of {element}"
    return nullable.replace("_", " ").lower() + field.type if field.struct else _plain(field.type, compact, nullable)


def _plain(type: str, compact: str, nullable: str) -> str:
    if type in _COMPACT:
        return f"{compact}{nullable}{type.upper()}"
    return {"bool": "BOOLEAN"}.get(type, type.upper())


def grammar(message: Message, version: int) -> str:
    """A version in the notation of Kafka's protocol guide: "Fetch Request (Version: 12) => max_wait_ms ..."."""
    title = message.name
    for part in ("Request", "Response", "Header"):
        title = title.replace(part, f" {part}").strip()
    lines: list[str] = []

    def below(head: str, fields: tuple[Field, ...], depth: int) -> None:
        present = [field for field in fields if version in field.versions]
        plain = [field for field in present if version not in field.tagged_versions]
        tagged = [field for field in present if version in field.tagged_versions]
        names = [f"[{field.snake_name}]" if field.is_array else field.snake_name for field in plain]
        if version in message.flexible_versions:
            inside = ", ".join(f"{field.snake_name}<tag: {field.tag}>" for field in tagged)
            names.append(f"_tagged_fields({inside})" if inside else "_tagged_fields")
        lines.append("  " * depth + " ".join((f"{head} =>", *names)))
        for field in plain + tagged:
            if field.struct:
                below(field.snake_name, field.fields, depth + 1)
            else:
                kind = wire_type(message, field, version).rpartition(" of ")[2]
                lines.append("  " * (depth + 1) + f"{field.snake_name} => {kind}")

    below(f"{title} (Version: {version})", message.fields, 0)
    return "\n".join(lines)
