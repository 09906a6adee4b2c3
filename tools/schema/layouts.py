"""Which layouts Kafka changed under an unchanged version number: tests/data/schema/layouts.json, from the jars.

    python -m tools.schema.layouts

A layout is what decides the bytes of a version: types in their order, nullability, flexible or not. Names do not, nor
does the set of tagged fields, which may grow: unknown tags are carried.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kwire import schema
from kwire.schema import Versions
from tools.places import DATA
from tools.schema import jars, schemas
from tools.schema.layout import table_text

FILE = DATA / "schema" / "layouts.json"
FIRST = "2.2"  # older jars have no schemas

Definition = dict[str, Any]
Layout = dict[str, Any]  # {"flexible": bool, "fields": [{"name", "type", "nullable", "tag", "fields"}, ...]}
Releases = dict[str, dict[str, Layout]]  # release -> "Message 0" -> its layout


def at(definition: Definition, version: int) -> Layout:
    """The layout of one version of a message, with the names for readers."""
    flexible = version in Versions.parse(definition["flexibleVersions"])
    return {"flexible": flexible, "fields": _fields(definition["fields"], version)}


def _fields(fields: list[Definition], version: int) -> list[Definition]:
    rows = []
    for field in fields:
        if version in Versions.parse(field["versions"]):
            row: Definition = {"name": field["name"], "type": field["type"].replace("records", "bytes")}
            if version in Versions.parse(field.get("nullableVersions")):
                row["nullable"] = True
            if version in Versions.parse(field.get("taggedVersions")):
                row["tag"] = field["tag"]
            if "flexibleVersions" in field:  # a text of the old form in a flexible header
                row["flexible"] = version in Versions.parse(field["flexibleVersions"])
            if "fields" in field:
                row["fields"] = _fields(field["fields"], version)
            rows.append(row)
    return rows


def bytes_of(layout: Layout) -> Any:
    """What of a layout decides the bytes: two layouts are the same if this is."""

    def plain(fields: list[Definition]) -> list[Any]:
        return [
            ("[]" * field["type"].startswith("[]") + "struct" if "fields" in field else field["type"],
             field.get("nullable"), field.get("flexible"), plain(field.get("fields", [])))
            for field in fields if "tag" not in field
        ]  # fmt: skip

    return layout["flexible"], plain(layout["fields"])


def of_release(patch: str) -> dict[str, Layout]:
    """The layout of every version of every message that a patch release's jars have."""
    found, _ = jars.resolve(patch)
    return of_messages(definition for _, definition in schemas.read_jars(found).values())


def of_messages(messages: Iterable[Definition]) -> dict[str, Layout]:
    """The layout of every version of messages."""
    return {
        f"{definition['name']} {version}": at(definition, version)
        for definition in messages
        for version in Versions.parse(definition["validVersions"]).all()
    }


def changed(releases: Releases) -> dict[str, dict[str, Layout]]:
    """ "Message 0" -> {"3.0 to 3.5": layout} of those with more than one layout, the oldest first.

    releases: from the oldest on.
    """
    table = {}
    for name in sorted({name for layouts in releases.values() for name in layouts}):
        spans: list[tuple[str, str, Layout]] = []
        for release, layouts in releases.items():
            if name in layouts:
                same = spans and bytes_of(spans[-1][2]) == bytes_of(layouts[name])
                first = spans.pop()[0] if same else release
                spans.append((first, release, layouts[name]))
        if len(spans) > 1:
            table[name] = {first if first == last else f"{first} to {last}": row for first, last, row in spans}
    return table


def put(table: dict[str, dict[str, Layout]], release: str, layouts: dict[str, Layout]) -> None:
    """Put the layouts of the next release into a table of changed()'s, for the versions that are in it."""
    for name, spans in table.items():
        if name in layouts:
            last = list(spans)[-1]
            if bytes_of(spans[last]) == bytes_of(layouts[name]):
                del spans[last]
                spans[f"{last.partition(' to ')[0]} to {release}"] = layouts[name]
            else:
                spans[release] = layouts[name]


def main() -> None:
    """Reads all known releases that have schemas, and writes the file."""
    known = schema.releases()
    releases = {name: of_release(schema.patch_release(name)) for name in known[known.index(FIRST) :]}
    FILE.write_text(table_text(changed(releases), 2))


if __name__ == "__main__":
    main()
