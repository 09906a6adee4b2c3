"""The fields of requests and responses as older releases have them, where names or layout are others today.

kwire/schema/older_fields.json has, for each such message, [{"first", "last", "fields"}, ...]: the releases, and the
fields with what the layout and the names are: name, type, versions, nullableVersions, taggedVersions, tag, fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kwire.schema.definitions import LAST_VERSION, Versions
from tools.schema.merge import Definition, shape
from tools.schema.tables import order

Table = dict[str, list[dict[str, Any]]]
_RANGES = ("versions", "nullableVersions", "taggedVersions")


def put(table: Table, ranges: Mapping[str, Versions], definitions: tuple[Definition | None, Definition, Definition],
        release: str) -> None:
    """Put in what a release says of a message.

    ranges: release -> the versions of the API there, of all known releases that have it, ascending;
    definitions: the one before this release, what this release's schema says, and both merged.
    """
    old, own, merged = definitions
    key = merged["name"]
    said: dict[str, list[Definition]] = {}
    if old is not None:
        first, last = old["releases"]
        said = {one: limited(old["fields"], versions) for one, versions in ranges.items()
                if order(first) <= order(one) <= order(last)}
    for row in table.pop(key, ()):
        said |= {one: row["fields"] for one in said if order(row["first"]) <= order(one) <= order(row["last"])}
    said[release] = limited(own["fields"], ranges[release])
    rows: list[dict[str, Any]] = []
    before = ""
    for one in sorted(said, key=order):
        if _differs(said[one], merged["fields"], ranges[one].all()):
            if rows and rows[-1]["last"] == before and rows[-1]["fields"] == said[one]:
                rows[-1]["last"] = one
            else:
                rows.append({"first": one, "last": one, "fields": said[one]})
        before = one
    if rows:
        table[key] = rows


def _differs(fields: list[Definition], today: list[Definition], versions: Iterable[int]) -> bool:
    return any(shape(fields, version) != shape(today, version) for version in versions)


def limited(fields: list[Definition], versions: Versions) -> list[Definition]:
    """Fields with their names and layout only, for these versions; ranges that reach the last one are left open."""
    rows = []
    for field in fields:
        row: Definition = {"name": field["name"], "type": field["type"]}
        for key in _RANGES:
            part = Versions.parse(field.get(key)).overlap(versions)
            if part:
                row[key] = str(Versions(part.low, LAST_VERSION) if part.high == versions.high else part)
        if "versions" not in row:
            continue
        if "taggedVersions" in row:
            row["tag"] = field["tag"]
        if "fields" in field:
            row["fields"] = limited(field["fields"], versions)
        rows.append(row)
    return rows
