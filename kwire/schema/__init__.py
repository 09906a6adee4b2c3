"""The facts of the Kafka protocol and the only reader of them. Each file is read at its first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.schema.facts import NO_VERSIONS, Field, Message, Versions, canonical, message, message_names

_HOME = {
    **dict.fromkeys(
        ("NO_VERSIONS", "Field", "Message", "Versions", "canonical", "message", "message_names"), "kwire.schema.facts"
    ),
}

__all__ = ["NO_VERSIONS", "Field", "Message", "Versions", "canonical", "message", "message_names"]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'kwire.schema' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
