"""Reads the message schemas that Kafka's jars carry and writes each in one form."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

from kwire.schema.definitions import NO_VERSIONS, PRIMITIVES, Versions
from tools.schema import version_notes

# Kafka reads its schemas with comments, and one of them has a comma too many
_STRING_OR_LOOSE = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*)*[\]}])', re.DOTALL)
_FOLDERS = {
    "kafka-metadata": "metadata", "kafka-raft": "raft", "kafka-storage": "storage", "kafka-storage-api": "storage",
    "kafka-group-coordinator": "group", "kafka-transaction-coordinator": "transaction",
    "kafka-share-coordinator": "share", "kafka-streams": "streams",
}

Definition = dict[str, Any]


def texts_of(jars: dict[str, Path]) -> dict[str, dict[str, str]]:
    """Module -> file in its jar -> text, of every schema in the jars."""
    found: dict[str, dict[str, str]] = {}
    for module, path in jars.items():
        with zipfile.ZipFile(path) as jar:
            names = [name for name in jar.namelist() if re.search(r"(^|/)(message|metadata)/\w+\.json$", name)]
            found[module] = {name: jar.read(name).decode() for name in names}
    return {module: files for module, files in found.items() if files}


def read_texts(texts: dict[str, dict[str, str]]) -> dict[str, tuple[str, Definition]]:
    """Message name -> (folder, definition) of every schema, under the name that its release gives it."""
    found: dict[str, tuple[str, Definition]] = {}
    for module, files in texts.items():
        for text in files.values():
            schema = _parsed(text)
            if schema.get("validVersions") == "none" or "fields" not in schema:
                continue  # removed from this release: its file stays for the key alone
            definition = one_form(schema, coordinator=module)
            if definition is not None:
                found[definition["name"]] = (_folder(module, definition), definition)
    return found


def comments_of(texts: dict[str, dict[str, str]]) -> dict[str, dict[str, list[str]]]:
    """Message name -> what the comments of its schema say (version_notes.of_text), for each message of read_texts."""
    every = [text for files in texts.values() for text in files.values()]
    return {_parsed(text)["name"]: version_notes.of_text(text) for text in every}


def _parsed(text: str) -> Definition:
    plain = _STRING_OR_LOOSE.sub(lambda match: match[1] or "", text)
    schema, _ = json.JSONDecoder().raw_decode(plain.lstrip())  # one file has a brace too many
    return dict(schema)


def read_jars(jars: dict[str, Path]) -> dict[str, tuple[str, Definition]]:
    """Message name -> (folder, definition) of every schema in the jars."""
    return read_texts(texts_of(jars))


def _folder(module: str, definition: Definition) -> str:
    name = definition["name"]
    if definition["type"] in ("request", "response"):
        return "api"
    if definition["type"] == "header":
        return "header"
    if module in _FOLDERS:
        return _FOLDERS[module]
    if module.startswith("kafka_"):  # the broker, before its parts became modules
        return "transaction" if name.startswith("TransactionLog") else "raft" if name == "QuorumStateData" else "group"
    return "data"


def one_form(schema: Definition, coordinator: str) -> Definition | None:
    """A schema as kwire has it: structs in place, versions cut to those of their parents, text defaults.

    A coordinator's key from before 4.1 has its type for a version: it gets the form that later releases have.
    """
    definition: Definition = {"name": schema["name"], "type": schema["type"]}
    valid, own_key = schema["validVersions"], schema.get("apiKey")
    at = "coordinator" in coordinator or coordinator.startswith("kafka_")
    if at and schema["type"] == "data" and schema["name"].endswith("Key"):
        if Versions.parse(valid).low != Versions.parse(valid).high:
            return None  # OffsetCommitKey 0-1: two types in one, later LegacyOffsetCommitKey and OffsetCommitKey
        definition["type"], own_key, valid = "coordinator-key", int(valid), "0"
        schema = {**schema, "fields": [{**field, "versions": "0"} for field in schema["fields"]]}
    elif at and schema["type"] == "data" and schema["name"].endswith("Value"):
        definition["type"] = "coordinator-value"
    if own_key is not None:
        definition["apiKey"] = own_key
    if schema.get("listeners"):
        definition["listeners"] = [name for name in ("zkBroker", "broker", "controller") if name in schema["listeners"]]
    definition["validVersions"] = valid
    definition["flexibleVersions"] = schema.get("flexibleVersions", "none")
    if schema.get("deprecatedVersions"):
        definition["deprecatedVersions"] = schema["deprecatedVersions"]
    if schema.get("latestVersionUnstable"):
        definition["latestVersionUnstable"] = True
    shared = {item["name"]: item for item in schema.get("commonStructs", ())}
    # a struct that is written out once may be used again by name
    _collect(schema["fields"], shared)
    definition["fields"] = [_field(item, Versions.parse("0+"), shared) for item in schema["fields"]]
    return definition


def _collect(fields: list[Definition], shared: dict[str, Definition]) -> None:
    for field in fields:
        if field.get("fields"):
            shared.setdefault(field["type"].removeprefix("[]"), field)
            _collect(field["fields"], shared)


def _field(field: Definition, parent: Versions, shared: dict[str, Definition]) -> Definition:
    # a field without versions has those at which it is tagged
    versions = Versions.parse(field.get("versions", field.get("taggedVersions"))).overlap(parent)
    out: Definition = {"name": field["name"], "type": field["type"], "versions": str(versions)}
    nullable = Versions.parse(field.get("nullableVersions")).overlap(versions)
    tagged = Versions.parse(field.get("taggedVersions")).overlap(versions)
    if nullable:
        out["nullableVersions"] = str(nullable)
    if tagged:
        out["taggedVersions"], out["tag"] = str(tagged), int(field["tag"])
    default = field.get("default")
    if default is not None and default != "":
        out["default"] = str(default).lower() if isinstance(default, bool) else str(default)
    for key in ("ignorable", "mapKey", "zeroCopy"):
        if field.get(key) in (True, "true"):
            out[key] = True
    for key in ("entityType", "flexibleVersions"):
        if key in field:
            out[key] = field[key]
    if field.get("about"):
        out["about"] = " ".join(field["about"].split())
    element = field["type"].removeprefix("[]")
    if element not in PRIMITIVES:
        inner = field.get("fields") or shared[element]["fields"]
        rows = [_field(item, versions, shared) for item in inner]
        out["fields"] = [row for row in rows if Versions.parse(row["versions"]) != NO_VERSIONS]
    return out
