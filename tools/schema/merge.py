"""Puts what a release says into the definitions: the newest release that has a version tells what the version is."""

from __future__ import annotations

from typing import Any

from kwire.schema.definitions import LAST_VERSION, Versions
from tools.schema.tables import order

Definition = dict[str, Any]
_RANGES = ("versions", "nullableVersions", "taggedVersions")
_HEAD = (
    "name", "type", "apiKey", "listeners", "validVersions", "flexibleVersions", "deprecatedVersions",
    "latestVersionUnstable", "releases", "lastSource", "sharedStructs",
)


def merge_message(old: Definition | None, new: Definition, release: str) -> Definition:
    """The definition of a message with what a release says of it.

    old: the definition so far, or None; new: the schema of that release ("3.9") in that one form.
    """
    if old is None:
        return tidy({**new, "releases": [release, release]})
    first, last = old["releases"]
    offered = set(Versions.parse(new["validVersions"]).all())
    source = {version: last for version in Versions.parse(old["validVersions"]).all()}
    source |= {int(version): name for version, name in old.get("lastSource", {}).items()}
    if order(release) >= order(last):
        fresh, kept = offered, set(source) - offered
        head, tail, head_versions, tail_versions = new, old, fresh, kept
    else:  # an older release: it tells only of versions that nothing newer has
        fresh = {version for version in offered if version not in source or order(source[version]) < order(release)}
        head, tail, head_versions, tail_versions = old, new, set(source) - fresh, fresh
    source |= dict.fromkeys(fresh, release)
    first, last = min(first, release, key=order), max(last, release, key=order)
    out = {**head, "releases": [first, last]}
    out["lastSource"] = {str(version): name for version, name in sorted(source.items()) if name != last}
    out["validVersions"] = _range(set(source))
    out["flexibleVersions"] = str(
        _valid(head["flexibleVersions"], head_versions).span(_valid(tail["flexibleVersions"], tail_versions))
    )
    if out["flexibleVersions"] != "none":
        out["flexibleVersions"] = out["flexibleVersions"].partition("-")[0].removesuffix("+") + "+"
    deprecated = set(_valid_set(head.get("deprecatedVersions"), head_versions))
    deprecated |= set(_valid_set(tail.get("deprecatedVersions"), tail_versions))
    out["deprecatedVersions"] = _range(deprecated) if deprecated else None
    out["fields"] = _merge_fields(head["fields"], head_versions, tail["fields"], tail_versions)
    for definition, versions in ((head, head_versions), (tail, tail_versions)):
        for version in versions:
            if shape(out["fields"], version) != shape(definition["fields"], version):
                raise ValueError(f"version {version} would lose its layout: was a field renamed, or its type changed?")
    return tidy(out)


def shape(fields: list[Definition], version: int) -> list[Any]:
    """The layout of a version: name, type, null, tag and inner fields in the order of the bytes."""
    rows = []
    for field in fields:
        if version in Versions.parse(field["versions"]):
            tag = field["tag"] if version in Versions.parse(field.get("taggedVersions")) else -1
            nullable = version in Versions.parse(field.get("nullableVersions"))
            rows.append((tag, field["name"], field["type"], nullable, shape(field.get("fields", []), version)))
    return sorted(rows, key=lambda row: row[0])


def renamed(old: Definition, new: Definition) -> list[tuple[str, str, str]]:
    """(path of the parent, old JSON name, new JSON name) of fields that a newer schema seems to have renamed.

    That is: at a version that both have, another name with the same type at the same place of the layout.
    """
    both = Versions.parse(old["validVersions"]).overlap(Versions.parse(new["validVersions"]))
    found: dict[tuple[str, str, str], None] = {}

    def walk(before: list[Any], after: list[Any], path: str) -> None:
        if [(row[0], row[2]) for row in before] != [(row[0], row[2]) for row in after]:
            return  # another layout: not a matter of names
        names = {row[1] for row in before}, {row[1] for row in after}
        for (_, was, _, _, inner), (_, now, _, _, fresh) in zip(before, after, strict=True):
            old_name, new_name = (name[:1].lower() + name[1:] for name in (was, now))
            if old_name != new_name and was not in names[1] and now not in names[0]:
                found[path, old_name, new_name] = None
            walk(inner, fresh, f"{path}.{new_name}")

    for version in both.all():
        walk(shape(old["fields"], version), shape(new["fields"], version), new["name"])
    return list(found)


def versions_of(old: Definition, new: Definition, path: str) -> str:
    """The versions that a message had in which it has a field, by the field's path of JSON names in a newer schema."""
    fields: list[Definition] = new["fields"]
    field: Definition = {}
    for name in path.split(".")[1:]:
        field = next(one for one in fields if one["name"][:1].lower() + one["name"][1:] == name)
        fields = field.get("fields", [])
    return str(Versions.parse(field["versions"]).overlap(Versions.parse(old["validVersions"])))


def _valid_set(text: str | None, versions: set[int]) -> set[int]:
    return {version for version in versions if version in Versions.parse(text)}


def _valid(text: str | None, versions: set[int]) -> Versions:
    chosen = _valid_set(text, versions)
    return Versions(min(chosen), max(chosen)) if chosen else Versions.parse("none")


def _range(versions: set[int]) -> str:
    low, high = min(versions), max(versions)
    if len(versions) != high - low + 1:
        raise ValueError(f"versions with a gap: {sorted(versions)}")
    return str(Versions(low, high))


def _merge_fields(
    head: list[Definition], head_at: set[int], tail: list[Definition], tail_at: set[int]
) -> list[Definition]:
    """The fields of both, each for its own versions; a field that only the tail has stands where it stood there."""
    merged: list[Definition] = []
    older = {field["name"]: field for field in tail}
    for field in head:
        merged.append(_merge_field(field, head_at, older.get(field["name"]), tail_at))
    merged = [field for field in merged if field["versions"] != "none"]
    names = [field["name"] for field in head]
    for index, field in enumerate(tail):
        if field["name"] in names or not _valid(field["versions"], tail_at):
            continue
        before = [item["name"] for item in tail[:index]]
        at = max((place + 1 for place, item in enumerate(merged) if item["name"] in before), default=0)
        merged.insert(at, _merge_field(field, tail_at, None, set()))
    return merged


def _merge_field(field: Definition, at: set[int], other: Definition | None, other_at: set[int]) -> Definition:
    out = dict(field)
    for key in _RANGES:
        both = _valid(field.get(key), at).span(_valid((other or {}).get(key), other_at))
        out[key] = str(both)
    if other is not None and "tag" in other and "tag" not in out:
        out["tag"] = other["tag"]
    lacking = {version for version in other_at if version not in Versions.parse(out["versions"])}
    if other is not None and other.get("ignorable") and lacking:
        out["ignorable"] = True  # what the older versions, which lack the field, do with it
    if "fields" in field or (other and "fields" in other):
        out["fields"] = _merge_fields(field.get("fields", []), at, (other or {}).get("fields", []), other_at)
    return out


def tidy(definition: Definition) -> Definition:
    """A definition in its written form: keys in order, nothing empty, ranges up to the newest version left open."""
    highest = Versions.parse(definition["validVersions"]).high
    fields = [_tidy_field(field, highest) for field in definition["fields"]]
    shared = _shared(fields)
    rows = {**definition, "sharedStructs": shared}
    out = {key: rows[key] for key in _HEAD if rows.get(key) not in (None, {}, [])}
    return {**out, "fields": fields}


def _tidy_field(field: Definition, highest: int) -> Definition:
    out: Definition = {}
    for key in (
        "name", "type", *_RANGES, "tag", "default", "ignorable", "mapKey", "zeroCopy", "entityType",
        "flexibleVersions", "about",
    ):
        value = field.get(key)
        if key in _RANGES:
            range_ = Versions.parse(value)
            if range_ and range_.high >= highest:
                range_ = Versions(range_.low, LAST_VERSION)
            value = str(range_)
            if not range_:
                continue
        if value is not None:
            out[key] = value
    if "fields" in field:
        out["fields"] = [_tidy_field(item, highest) for item in field["fields"]]
    return out


def _shared(fields: list[Definition]) -> list[str]:
    """The structs that stand at more than one place, in order of their second appearance."""
    seen: list[str] = []

    def walk(rows: list[Definition]) -> None:
        for field in rows:
            if "fields" in field:
                seen.append(field["type"].removeprefix("[]"))
                walk(field["fields"])

    walk(fields)
    return list(dict.fromkeys(name for index, name in enumerate(seen) if name in seen[:index]))
