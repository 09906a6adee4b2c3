"""Metadata records as JSON values, without their secrets."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kwire.codec.json import to_json
from kwire.schema import message
from kwire_c.plan import message_of
from kwire_c.secrets import SECRET_SETTING

REDACTED = "(redacted)"
_SECRET_FIELDS = {"UserScramCredentialRecord": ("salt", "storedKey", "serverKey")}


def record_json(record: Any) -> dict[str, Any]:
    """A record as Kafka's JsonConverter has it in its newest version; secrets are "(redacted)"."""
    name = type(record).__name__
    value: dict[str, Any] = to_json(record, _newest(name))
    for field in _SECRET_FIELDS.get(name, ()):
        value[field] = REDACTED
    if name == "ConfigRecord" and record.value is not None and SECRET_SETTING.search(record.name):
        value["value"] = REDACTED
    return value


def field_json(record: Any, field: str) -> tuple[str, Any]:
    """(Kafka's name of a field, its JSON value) by its name in Python."""
    name = next(one.json_name for one in message_of(record).schema.fields if one.snake_name == field)
    return name, record_json(record).get(name)


@lru_cache(None)
def _newest(name: str) -> int:
    return message(name).valid_versions.high


def shown(record: Any) -> str:
    """A record for a repr: its type, and its JSON without secrets."""
    return "None" if record is None else f"{type(record).__name__}({record_json(record)})"
