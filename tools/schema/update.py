"""Reads releases into the definitions and says what changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from kwire.schema import record_types
from tools.schema import inputs, layout, merge, older_fields, schemas, tables, version_notes

CONTROL = {"-1", *map(str, record_types("control"))}  # -1: UNKNOWN, of Kafka's own enum alone


RENAMES = "kwire/schema/renames.json"


class Item(NamedTuple):
    """Something that is left to do by hand: in which file, and why."""

    file: str
    reason: str


class Renamed(ValueError):
    """A message has another name: nothing can be written before renames.json says so."""


class SchemaSet:
    """All definitions in memory: those of a folder, or none yet."""

    def __init__(self, root: Path, empty: bool = False) -> None:
        self.root = root
        read = {} if empty else {name: json.loads((root / f"{name}.json").read_text()) for name in _TABLES}
        self.renames = json.loads((layout.ROOT / "renames.json").read_text())
        self.releases = read.get("releases", {"releases": {}, "apis": {}})
        self.metadata = read.get("metadata_versions", {"releases": {}, "levels": {}})
        self.features = read.get("features", {})
        self.errors = read.get("errors", {})
        self.older_fields: older_fields.Table = read.get("older_fields", {})
        self.version_notes: version_notes.Rows = read.get("version_notes", {})
        self.messages: dict[str, tuple[str, dict[str, Any]]] = {}
        for name, row in read.get("index", {}).items():
            parts = json.loads((root / row[0]).read_text())
            self.messages[name] = (row[0].partition("/")[0], parts[row[1]])
        self.notes: list[str] = []
        self.checklist: list[Item] = []

    def take(self, patch: str, given: inputs.Input | None = None) -> None:
        """Put in what a patch release ("4.4.0") says; given: what its jars have, where that is not to be asked anew."""
        release = minor(patch)
        known = self.releases["releases"].get(release)
        if known and tables.order(known) > tables.order(patch):
            self.notes.append(f"{release} is known from {known}, which is newer than {patch}: nothing taken")
            return
        given = given or inputs.look(patch)
        missing, told = given.missing, given.classes
        newest = all(tables.order(release) >= tables.order(other) for other in self.releases["releases"])
        read = schemas.read_texts(given.texts) if tables.order(release) >= (2, 2) else {}
        requests = {one["apiKey"]: one for _, one in read.values() if one["type"] == "request"}
        tables.put_release(self.releases, release, patch, told["apis"], requests)
        comments = schemas.comments_of(given.texts)
        ranges = tables.api_ranges(self.releases)
        for name, (folder, message) in read.items():
            latest = self.renames["messages"].get(name, name)
            at, old = self.messages.get(latest, (folder, None))
            if old is not None and tables.order(release) >= tables.order(old["releases"][1]):
                self._note_renames(old, {**message, "name": latest})
            try:
                merged = merge.merge_message(old, {**message, "name": latest}, release)
            except ValueError as error:
                raise ValueError(f"{latest} of {patch}: {error}") from error
            self.messages[latest] = (at, merged)
            spans = (old["releases"] if old else None, merged["releases"])
            version_notes.put(
                self.version_notes, list(self.releases["releases"]), latest, spans, release, comments[name]
            )
            versions = ranges.get(str(message.get("apiKey")), {}) if at == "api" else {}
            if release in versions:
                older_fields.put(self.older_fields, versions, (old, message, merged), release)
            if old is None:
                self._note_same_key(folder, latest, message, patch)
        missing = [name for name in missing if name != "kafka-tools"]  # has no schemas
        if missing and tables.order(release) >= (2, 2):
            here = {folder for folder, _ in read.values()}
            kept = sorted({folder for folder, _ in self.messages.values()} - here)
            lost = f"; its {', '.join(kept)} messages stay as they were" if kept else ""
            self.notes.append(f"Maven Central lacks {', '.join(missing)} {patch}{lost}")
        if read:
            tables.put_errors(self.errors, release, told["errors"], newest)
        if "bounds" in told:
            tables.put_metadata(self.metadata, release, told["metadata_versions"], told["bounds"])
        if told.get("features"):
            self.features[release] = told["features"]
            self.features = dict(sorted(self.features.items(), key=lambda item: tables.order(item[0])))
        for number in sorted(set(told["control"]) - CONTROL):
            self.checklist.append(Item(
                "kwire/schema/record_type_ids.py",
                f"_CONTROL lacks the control record {number} {told['control'][number]}, and which message its value is",
            ))  # fmt: skip

    def _note_renames(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        known = {(row["message"], row["old"], row["new"]) for row in self.renames["fields"]}
        for path, was, now in merge.renamed(old, new):
            if (path, was, now) not in known:
                versions = merge.versions_of(old, new, f"{path}.{now}")
                row = {"message": path, "versions": versions, "old": was, "new": now, "until": old["releases"][1]}
                self.checklist.append(Item(RENAMES, f"a field has another name: {layout.line(row)}"))

    def _note_same_key(self, folder: str, name: str, new: dict[str, Any], patch: str) -> None:
        if folder != "api":
            return
        for other, (_, definitions) in self.messages.items():
            if other != name and (definitions.get("apiKey"), definitions["type"]) == (new["apiKey"], new["type"]):
                last = self.messages[other][1]["releases"][1]
                raise Renamed(f'{patch} seems to rename a message: put {layout.line({other: name})} into "messages" '
                              f'and {layout.line({other: last})} into "until" of {RENAMES}, and run this again')

    def texts(self) -> dict[str, str]:
        """File under kwire/schema -> text, of all files."""
        return {
            **layout.message_texts(self.messages),
            "releases.json": tables.releases_text(self.releases),
            "metadata_versions.json": layout.table_text(self.metadata, 2),
            "features.json": layout.table_text(self.features, 2),
            "errors.json": layout.table_text(self.errors, 1),
            "older_fields.json": layout.table_text(dict(sorted(self.older_fields.items())), 4),
            "version_notes.json": layout.table_text(version_notes.text(self.version_notes), 2),
            "renames.json": layout.table_text(self.renames, 2),
        }

    def changes(self) -> list[str]:
        """What differs from the folder, a line each: messages and fields by name, tables by their lines."""
        said: list[str] = []
        before = SchemaSet(self.root).messages if (self.root / "index.json").exists() else {}
        for name in sorted({*before, *self.messages}):
            said += compare(name, before.get(name, ("", {}))[1], self.messages.get(name, ("", {}))[1])
        for file, text in self.texts().items():
            path = self.root / file
            old = path.read_text().splitlines() if path.exists() else []
            if "/" not in file and file != "index.json":
                fresh = text.splitlines()
                said += [f"{file}: - {row.strip()}" for row in old if row not in set(fresh)]
                said += [f"{file}: + {row.strip()}" for row in fresh if row not in set(old)]
        return said

    def write(self) -> list[str]:
        """Write the files that differ; return their names."""
        return layout.write_texts(self.texts(), self.root)


_TABLES = ("index", "releases", "metadata_versions", "features", "errors", "older_fields", "version_notes")


def minor(patch: str) -> str:
    """"3.9.2" -> "3.9", "0.10.2.2" -> "0.10.2"."""
    found = re.fullmatch(r"(0\.\d+\.\d+|[1-9]\d*\.\d+)\.\d+", patch)
    if found is None:
        raise ValueError(f"{patch!r} is no patch release such as 4.4.0")
    return found[1]


def compare(name: str, old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What differs between two definitions of a message, a line each."""
    if not old or not new:
        definitions = new or old
        return [f"{name}: {'new' if new else 'gone'}, {definitions['type']} {definitions['validVersions']}"]
    said = [
        f"{name}: {key} {old.get(key)} -> {new.get(key)}"
        for key in new | old
        if key != "fields" and old.get(key) != new.get(key)
    ]
    before, after = dict(_flat(old["fields"])), dict(_flat(new["fields"]))
    for path in before | after:
        was, now = before.get(path), after.get(path)
        if was is None or now is None:
            row: dict[str, Any] = now or was or {}
            said.append(f"{name}.{path}: {'gone' if now is None else 'new'}, {row['type']} {row['versions']}")
            continue
        said += [
            f"{name}.{path}: {key} {was.get(key)} -> {now.get(key)}"
            for key in now | was
            if was.get(key) != now.get(key)
        ]
    if not said and list(before) != list(after):
        said.append(f"{name}: other order of fields")
    return said


def _flat(fields: list[dict[str, Any]], prefix: str = "") -> list[tuple[str, dict[str, Any]]]:
    rows = []
    for field in fields:
        rows.append((prefix + field["name"], {key: value for key, value in field.items() if key != "fields"}))
        rows += _flat(field.get("fields", []), f"{prefix}{field['name']}.")
    return rows

