"""The layouts of all messages as the inspector reads them: what decides the bytes and their names, and no texts."""

from __future__ import annotations

import json
from typing import Any

from kwire import schema
from kwire.schema import Field, Message


def layouts_script() -> str:
    """assets/layouts.js: sets window.kafkaLayouts = {message: layout}.

    A layout has type, key (of the API or record type), versions, flexible and fields; a field has name, type,
    versions, and where they say something nullable, tagged, tag, default, flexible and fields. Ranges of versions are
    as in Kafka's schemas ("3+", "0-4").
    """
    layouts = {name: _message(schema.message(name)) for name in schema.message_names()}
    return f"window.kafkaLayouts = {json.dumps(layouts, ensure_ascii=True, separators=(',', ':'))};\n"


def _message(message: Message) -> dict[str, Any]:
    return {
        "type": message.type, "key": message.api_key, "versions": str(message.valid_versions),
        "flexible": str(message.flexible_versions), "fields": [_field(field) for field in message.fields],
    }


def _field(field: Field) -> dict[str, Any]:
    row: dict[str, Any] = {"name": field.json_name, "type": field.type, "versions": str(field.versions)}
    if field.nullable_versions:
        row["nullable"] = str(field.nullable_versions)
    if field.tag is not None:
        row |= {"tagged": str(field.tagged_versions), "tag": field.tag}
    if field.default is not None:
        row["default"] = field.default
    if field.flexible_versions is not None:
        row["flexible"] = str(field.flexible_versions)
    if field.fields:
        row["fields"] = [_field(item) for item in field.fields]
    return row
