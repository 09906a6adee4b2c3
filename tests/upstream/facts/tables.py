"""How the tables beside the messages stand on disk: releases, metadata versions, errors; only changes are written."""

from __future__ import annotations

from typing import Any

from tests.upstream.facts.layout import line, table_text

Rows = dict[str, dict[str, Any]]


def order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def api_row(entry: dict[str, Any]) -> dict[str, Any]:
    """What a release says of an API, without what all releases say alike."""
    if entry.get("removed"):
        return {"versions": "none"}
    low, high = entry["min"], entry["max"]
    row: dict[str, Any] = {"versions": str(low) if low == high else f"{low}-{high}"}
    if entry.get("unstable"):
        row["stable"] = entry["maxStable"]
    if entry.get("deprecatedVersions"):
        row["deprecated"] = entry["deprecatedVersions"]
    for key in ("listeners", "forwardable", "clusterAction"):
        if entry.get(key):
            row[key] = entry[key]
    return row


def releases_text(sources: dict[str, str], apis: dict[str, Rows]) -> str:
    """releases.json: which patch release each one was read from, and each API's row at every release that changed it.

    sources: release -> patch release, rising; apis: release -> api key -> entry.
    """
    names = {
        int(key): (row["name"], row["enum"])
        for release in sources
        for key, row in apis[release].items()
        if "name" in row
    }
    history: dict[int, list[dict[str, Any]]] = {key: [] for key in sorted(names)}
    for release in sources:
        for key, past in history.items():
            entry = apis[release].get(str(key), {"removed": True})
            row = api_row(entry)
            if "name" in entry and entry["name"] != names[key][0]:
                row["name"] = entry["name"]
            if past and {**past[-1], "release": release} == {"release": release, **row}:
                continue
            if past or row["versions"] != "none":
                past.append({"release": release, **row})
    head = table_text({"releases": sources}, 2).rstrip()[:-2].rstrip()
    body = []
    for key in history:
        name, enum = names[key]
        rows = ",\n".join("   " + line(row) for row in history[key])
        body.append(f'  "{key}": {{"name": {line(name)}, "enum": {line(enum)}, "changes": [\n{rows}]}}')
    return head + ',\n "apis": {\n' + ",\n".join(body) + "\n }\n}\n"


def metadata_versions_text(table: dict[str, Any]) -> str:
    """metadata_versions.json: each level with what it sets anew, and each release's own bounds."""
    names = {enum: row["name"] for enum, row in table["versions"].items()}
    last: dict[str, Any] = {}
    levels = {}
    for enum, row in table["versions"].items():
        can = {
            key: None if isinstance(value, str) and value.startswith("EXC:") else value
            for key, value in table["recordAndRequestVersions"].get(enum, {}).items()
        }
        levels[row["name"]] = {
            "level": row["level"], "changed": row["didMetadataChange"], "release": row["line"],
            "first": row["in"][0], "last": row["in"][1],
            "sets": {key: value for key, value in can.items() if last.get(key) != value or key not in last},
        }
        last.update(can)
    releases = {}
    for release, row in table["perRelease"].items():
        production = row.get("latestProduction()", row.get("latest()"))
        releases[release] = {
            "minimum": names[row.get("MINIMUM_VERSION", row.get("MINIMUM_KRAFT_VERSION"))],
            "bootstrap_minimum": names[row.get("MINIMUM_VERSION", row.get("MINIMUM_BOOTSTRAP_VERSION"))],
            "default": names[production],
            "testing": names[row.get("latestTesting()", production)],
        }
    return table_text({"releases": releases, "levels": levels}, 2)


def errors_text(table: dict[str, Any]) -> str:
    """errors.json: code -> name, message, the first release that has it, and its kinds where they are true."""
    rows = {}
    for code in sorted(table, key=int):
        row = table[code]
        rows[code] = {"name": row["name"], "message": row["message"], "since": row["since"]}
        rows[code] |= {kind: True for kind in ("retriable", "invalidMetadata") if row[kind]}
    return table_text(rows, 1)
