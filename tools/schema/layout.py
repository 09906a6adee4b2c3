"""How the definitions are written: one file a pair of messages, one field a line, so that a change reads as a diff."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools import places

ROOT = places.ROOT / "kwire" / "schema"
# in that folder, not written by the importer: made by tools.storage, and by hand
OTHERS = ("broker_configs.json", "storage_help.json", "sections.json")

# file of a message: the ending that its name loses, and its place in the file
_PARTS = {
    "request": ("Request", "request"),
    "response": ("Response", "response"),
    "coordinator-key": ("Key", "key"),
    "coordinator-value": ("Value", "value"),
}


def place(message: dict[str, Any], folder: str) -> tuple[str, str]:
    """(file under kwire/schema, part of it) where a message of that folder stands."""
    ending, part = _PARTS.get(message["type"], ("", "message"))
    if folder in ("group", "share", "transaction") and part == "message":  # a value whose schema forgot its type
        ending, part = "Value", "value"
    name = message["name"]
    return f"{folder}/{name.removesuffix(ending) if ending else name}.json", part


def line(value: Any) -> str:
    """A value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def field_lines(fields: list[dict[str, Any]], indent: str) -> list[str]:
    """Fields, each on a line of its own."""
    lines = []
    for index, field in enumerate(fields):
        end = "" if index == len(fields) - 1 else ","
        plain = {key: value for key, value in field.items() if key != "fields"}
        if field.get("fields"):
            inner = field_lines(field["fields"], indent + " ")
            lines.append(f'{indent}{line(plain)[:-1]}, "fields": [')
            lines += inner[:-1]
            lines.append(f"{inner[-1]}]}}{end}")
        else:
            lines.append(f"{indent}{line(plain)}{end}")
    return lines


def message_text(parts: dict[str, dict[str, Any]]) -> str:
    """The text of one file of messages."""
    blocks = []
    for part in sorted(parts, key=("request", "response", "key", "value", "message").index):
        message = parts[part]
        rows = [f"  {line(key)}: {line(value)}," for key, value in message.items() if key != "fields"]
        fields = field_lines(message["fields"], "   ")
        body = ["  \"fields\": [", *fields, "  ]"] if fields else ["  \"fields\": []"]
        blocks.append("\n".join([f" {line(part)}: {{", *rows, *body, " }"]))
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def table_text(table: Any, depth: int) -> str:
    """JSON with the first `depth` levels broken into lines and the rest on one line each."""

    def render(value: Any, left: int, indent: str) -> str:
        if left == 0 or not isinstance(value, (dict, list)) or not value:
            return line(value)
        inner = indent + " "
        if isinstance(value, dict):
            rows = [f"{inner}{line(str(key))}: {render(item, left - 1, inner)}" for key, item in value.items()]
            return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
        return "[\n" + ",\n".join(inner + render(item, left - 1, inner) for item in value) + f"\n{indent}]"

    return render(table, depth, "") + "\n"


def index_of(messages: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """name -> [file, part, type, api key, versions] for every message."""
    rows = {}
    for name in sorted(messages):
        folder, message = messages[name]
        file, part = place(message, folder)
        rows[name] = [file, part, message["type"], message.get("apiKey"), message["validVersions"]]
    return rows


def message_texts(messages: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, str]:
    """File -> text, of every message file and the index."""
    files: dict[str, dict[str, dict[str, Any]]] = {}
    for folder, message in messages.values():
        file, part = place(message, folder)
        files.setdefault(file, {})[part] = message
    texts = {file: message_text(parts) for file, parts in sorted(files.items())}
    return texts | {"index.json": table_text(index_of(messages), 1)}


def write_texts(texts: dict[str, str], root: Path = ROOT) -> list[str]:
    """Write what differs from what stands on disk; return the names of those files."""
    changed = []
    for file, text in sorted(texts.items()):
        path = root / file
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            changed.append(file)
    return changed
