"""The tables beside the messages: what a release says goes in, and what did not change is not written again."""

from __future__ import annotations

import re
from typing import Any

from kwire.schema.definitions import Versions
from tools.schema.layout import line, table_text

Table = dict[str, Any]


def order(release: str) -> tuple[int, ...]:
    """Sorts releases ("3.9", "0.10.2.2") and metadata versions ("3.9-IV0") by their numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", release))


# releases.json: {"releases": {release: patch}, "apis": {key: {"name", "enum", "changes": [row, ...]}}}


def put_release(table: Table, release: str, patch: str, apis: Table, requests: dict[int, Table]) -> None:
    """Put a release's APIs in. apis: from ApiKeys, by key; requests: its request schemas, by key."""
    rows = {key: dict(_rows(table, api)) for key, api in table["apis"].items()}
    names = {key: (api["name"], api["enum"]) for key, api in table["apis"].items()}
    newest = all(order(release) >= order(other) for other in table["releases"])
    table["releases"][release] = patch
    table["releases"] = dict(sorted(table["releases"].items(), key=lambda item: order(item[0])))
    named = order(release) >= (2, 2)  # before that ApiKeys has names of its own
    for key, entry in apis.items():
        if key not in names or (newest and named):
            for other, row in rows.get(key, {}).items():
                if row["versions"] != "none":
                    own = row.get("name", names[key][0])
                    plain = {what: value for what, value in row.items() if what != "name"}
                    rows[key][other] = plain if own == entry["name"] else {**plain, "name": own}
            names[key] = (entry["name"], entry["enum"])
        row = _api_row(entry, requests.get(int(key), {}))
        if entry["name"] != names[key][0]:
            row["name"] = entry["name"]
        rows.setdefault(key, {})[release] = row
    table["apis"] = {}
    for key in sorted(names, key=int):
        changes: list[Table] = []
        for name in table["releases"]:
            row = rows[key].get(name, {"versions": "none"})
            if not changes and row["versions"] == "none":
                continue
            if not changes or changes[-1] | {"release": name} != {"release": name, **row}:
                changes.append({"release": name, **row})
        if changes:
            table["apis"][key] = {"name": names[key][0], "enum": names[key][1], "changes": changes}


def api_ranges(table: Table) -> dict[str, dict[str, Versions]]:
    """Key -> release -> the versions of that API, of the releases that have it."""
    return {
        key: {
            release: Versions.parse(row["versions"]) for release, row in _rows(table, api) if row["versions"] != "none"
        }
        for key, api in table["apis"].items()
    }


def _rows(table: Table, api: Table) -> list[tuple[str, Table]]:
    rows, now = [], {"versions": "none"}
    changes = {row["release"]: {key: value for key, value in row.items() if key != "release"} for row in api["changes"]}
    for release in table["releases"]:
        now = changes.get(release, now)
        rows.append((release, now))
    return rows


def _api_row(entry: Table, request: Table) -> Table:
    if entry.get("removed"):
        return {"versions": "none"}
    low, high = entry["min"], entry["max"]
    row: Table = {"versions": str(low) if low == high else f"{low}-{high}"}
    if entry.get("unstable"):
        row["stable"] = entry["maxStable"]
    if request.get("deprecatedVersions"):
        row["deprecated"] = request["deprecatedVersions"]
    if request.get("listeners"):
        row["listeners"] = request["listeners"]
    for key in ("forwardable", "clusterAction"):
        if entry.get(key):
            row[key] = True
    return row


def releases_text(table: Table) -> str:
    """The text of releases.json."""
    head = table_text({"releases": table["releases"]}, 2).rstrip()[:-2].rstrip()
    body = []
    for key, api in table["apis"].items():
        rows = ",\n".join("   " + line(row) for row in api["changes"])
        body.append(f'  "{key}": {{"name": {line(api["name"])}, "enum": {line(api["enum"])}, "changes": [\n{rows}]}}')
    return head + ',\n "apis": {\n' + ",\n".join(body) + "\n }\n}\n"


# metadata_versions.json: {"releases": {release: bounds}, "levels": {name: {"level", ..., "sets": what it changes}}}


def put_metadata(table: Table, release: str, levels: Table, bounds: Table) -> None:
    """Put a release's metadata versions in. A method that it lacks keeps the answer of the last release that had it."""
    can: Table = {}
    rows: Table = {}
    for name, row in table["levels"].items():
        can = {**can, **row["sets"]}
        rows[name] = {**row, "can": can}
    for name, told in levels.items():
        row = rows.get(name, {"first": release, "last": release, "can": {}})
        if order(release) >= order(row["last"]):
            row = {**row, **{key: told[key] for key in ("level", "changed", "release")}, "last": release}
            row["can"] = {**row["can"], **told["can"]}
        else:
            row = {**row, "can": {**told["can"], **row["can"]}}
        row["first"] = min(row["first"], release, key=order)
        rows[name] = row
    before: Table = {}
    table["levels"] = {}
    for name in sorted(rows, key=lambda item: (max(0, rows[item]["level"]), order(item))):
        row = rows[name]
        table["levels"][name] = {
            **{key: row[key] for key in ("level", "changed", "release", "first", "last")},
            "sets": {
                key: value for key, value in sorted(row["can"].items()) if key not in before or before[key] != value
            },
        }
        before = {**before, **row["can"]}
    production = bounds.get("latestProduction", bounds.get("latest"))
    table["releases"][release] = {
        "minimum": bounds.get("MINIMUM_VERSION", bounds.get("MINIMUM_KRAFT_VERSION")),
        "bootstrap_minimum": bounds.get("MINIMUM_VERSION", bounds.get("MINIMUM_BOOTSTRAP_VERSION")),
        "default": production,
        "testing": bounds.get("latestTesting", production),
    }
    table["releases"] = dict(sorted(table["releases"].items(), key=lambda item: order(item[0])))


# errors.json: {code: {"name", "message", "since", and "retriable", "invalidMetadata" where they are true}}


def put_errors(table: Table, release: str, errors: Table, newest: bool) -> None:
    """Put a release's error codes in."""
    for code, told in errors.items():
        row = table.get(code)
        if row is None or newest:
            row = {key: told[key] for key in ("name", "message")} | {"since": (row or {}).get("since", release)}
            row |= {kind: True for kind in ("retriable", "invalidMetadata") if told[kind]}
        row["since"] = min(row["since"], release, key=order)
        table[code] = row
    for code, row in sorted(table.items(), key=lambda item: int(item[0])):
        del table[code]
        table[code] = row
