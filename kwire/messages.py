"""Message classes, one a message for all versions, made from the schema at first use: kwire.messages.FetchRequest."""

from __future__ import annotations

from typing import Any

from kwire import schema
from kwire.errors import UnsupportedVersionError
from kwire.suggestions import did_you_mean
from kwire_c.plan import message_of


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        made = message_of(name).root
    except UnsupportedVersionError:
        near = did_you_mean(name, schema.message_names())
        raise AttributeError(f"no Kafka release has a message {name!r}{near}") from None
    globals()[name] = made
    return made


def __dir__() -> list[str]:
    return sorted(schema.message_names())
