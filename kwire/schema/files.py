"""The JSON files of the schema, each read at its first use."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import Any

_ROOT = os.path.dirname(__file__)


def load(name: str) -> Any:
    """The value in kwire/schema/NAME, read again at each call."""
    with open(os.path.join(_ROOT, name), "rb") as file:
        return json.load(file)


@lru_cache(16)
def pair(name: str) -> dict[str, dict[str, Any]]:
    """The parts of one message file ("request" and "response", "key" and "value", or "message")."""
    value: dict[str, dict[str, Any]] = load(name)
    return value


@lru_cache(None)
def index() -> dict[str, tuple[str, str, str, int | None, str]]:
    """Message name -> (file, part, type, api key, versions), of all messages."""
    return {name: tuple(row) for name, row in load("index.json").items()}


@lru_cache(None)
def renames() -> dict[str, Any]:
    """Names that later releases changed without changing the layout: {"messages": {old: new}, "fields": [...]}."""
    value: dict[str, Any] = load("renames.json")
    return value
