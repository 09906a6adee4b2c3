"""Requests and responses as one release has them: its versions, its names, its fields."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kwire.schema import files
from kwire.schema.definitions import NO_VERSIONS, Field, Message, Versions, canonical, field_of, message
from kwire.schema.release_apis import api, is_at_least, release_name, releases


def message_name(name: str, release: str) -> str:
    """The name of a message in a release: "ListOffsetsRequest" is "ListOffsetRequest" up to 2.7.

    Raises UnsupportedVersionError for an unknown message or release.
    """
    newest, known = canonical(name), release_name(release)
    until = files.renames()["until"]
    rows = [(old, until[old]) for old, new in files.renames()["messages"].items() if new == newest]
    rows.sort(key=lambda row: releases(old=True).index(row[1]))
    return next((old for old, last in rows if is_at_least(last, known)), newest)


def message_of_release(name: str, release: str) -> tuple[Message, dict[str, str]]:
    """(a request or response as a release has it, {path of a field there: its name today, where that is another}).

    The message has the release's names and versions; its fields are those of the release, with the texts (about) and
    defaults of the newest release that has them. Paths are those of walk(). Releases before 2.2 have no schemas.
    Raises UnsupportedVersionError for an unknown message or release, and for a release that lacks the API.
    """
    newest, known = message(name), release_name(release)
    if newest.api_key is None or newest.type not in ("request", "response"):
        raise ValueError(f"{newest.name} is neither a request nor a response")
    versions = api(newest.api_key, known).versions
    renamed: dict[str, str] = {}
    rows = _older(newest.name, known)
    fields = newest.fields if rows is None else tuple(field_of(row) for row in rows)
    own = _with_texts(fields, newest.fields, versions, "", renamed)
    return newest._replace(name=message_name(newest.name, known), valid_versions=versions, fields=own), renamed


def _older(name: str, release: str) -> list[dict[str, Any]] | None:
    """The fields of a release where they are not those of the newest one."""
    for row in _table().get(name, ()):
        if is_at_least(release, row["first"]) and is_at_least(row["last"], release):
            fields: list[dict[str, Any]] = row["fields"]
            return fields
    return None


@lru_cache(1)
def _table() -> dict[str, list[dict[str, Any]]]:
    table: dict[str, list[dict[str, Any]]] = files.load("older_fields.json")
    return table


def _with_texts(
    fields: tuple[Field, ...], today: tuple[Field, ...], versions: Versions, path: str, renamed: dict[str, str]
) -> tuple[Field, ...]:
    """Fields cut to versions, with what the same fields of today have besides a layout."""
    same = _pairs(fields, today, versions)
    made = []
    for field in fields:
        part = field.versions.overlap(versions)
        if not part:
            continue
        here = f"{path}{field.json_name}"
        now = same.get(field)
        if now is not None and now.json_name != field.json_name:
            renamed[here] = now.json_name
        inner = _with_texts(field.fields, now.fields if now else (), part, f"{here}.", renamed)
        made.append(field._replace(
            versions=part, nullable_versions=field.nullable_versions.overlap(part) or NO_VERSIONS,
            tagged_versions=field.tagged_versions.overlap(part) or NO_VERSIONS, fields=inner,
            about=now.about if now else "", default=now.default if now else None,
            ignorable=bool(now and now.ignorable), map_key=bool(now and now.map_key),
        ))  # fmt: skip
    return tuple(made)


def _pairs(fields: tuple[Field, ...], today: tuple[Field, ...], versions: Versions) -> dict[Field, Field]:
    """Each field with what it is today: the one at its place where a version has the same types, or of its name."""
    pairs: dict[Field, Field] = {}
    for version in reversed(versions.all()):
        own, now = ([one for one in some if version in one.versions] for some in (fields, today))
        by_name = {one.name: one for one in now}
        alike = [(one.is_array, one.struct is None and one.type) for one in own] == [
            (one.is_array, one.struct is None and one.type) for one in now]
        kept = {one.name for one in own}
        for index, one in enumerate(own):
            if one.name in by_name:
                pairs.setdefault(one, by_name[one.name])
            elif alike and now[index].name not in kept:
                pairs.setdefault(one, now[index])
    return pairs
