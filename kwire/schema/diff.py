"""What changed in the protocol between two releases: APIs, versions, deprecations, fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kwire.schema.definitions import NO_VERSIONS, Field, Versions, message
from kwire.schema.release_apis import Api, apis


class VersionChange(NamedTuple):
    """Versions of one API that were added, removed or deprecated.

    api, key: of the API; versions: those concerned, both ends included; whole: whether the API itself was added or
    removed; unstable: the one of them that is unstable in the release, or None.
    """

    api: str
    key: int
    versions: Versions
    whole: bool = False
    unstable: int | None = None


class FieldChange(NamedTuple):
    """One field that differs between a version of a message and the version before it.

    version: the one with the change; path: in JSON names ("topics.partitions.fetchOffset"); change: "added"
    "removed" or "changed"; type: the field's; what: for "changed", what changed
    ("nullable", "no longer tagged", ...).
    """

    api: str
    message: str
    version: int
    path: str
    change: str
    type: str
    what: str = ""


class Difference(NamedTuple):
    """The changes from one release to another: added, removed and deprecated versions, and changed fields."""

    added: tuple[VersionChange, ...]
    removed: tuple[VersionChange, ...]
    deprecated: tuple[VersionChange, ...]
    fields: tuple[FieldChange, ...]


def difference(old: str, new: str) -> Difference:
    """What release `new` adds to `old`, what it removes, and what it newly deprecates.

    Either may be the newer one. fields: for each API that both have, the changes from the newest version of `old` to
    that of `new`; APIs that only one of them has are in added or removed only. Raises UnsupportedVersionError for an
    unknown release.
    """
    before = {api.key: api for api in apis(old)}
    after = {api.key: api for api in apis(new)}
    added: list[VersionChange] = []
    removed: list[VersionChange] = []
    deprecated: list[VersionChange] = []
    fields: list[FieldChange] = []
    for key in sorted(before | after):
        was, now = before.get(key), after.get(key)
        added.extend(_gained(was, now))
        removed.extend(_gained(now, was))
        if now:
            deprecated.extend(
                VersionChange(now.name, key, versions) for versions in _without(now.deprecated, was and was.deprecated)
            )
        if was and now:
            for name in (now.request, now.response):
                fields.extend(field_changes(now.name, name, was.max_version, now.max_version))
    return Difference(tuple(added), tuple(removed), tuple(deprecated), tuple(fields))


def field_changes(api: str, name: str, start: int, end: int) -> Iterator[FieldChange]:
    """The changes of each version of a message after `start`, up to `end`; downwards if end is below start.

    Raises UnsupportedVersionError for a message, or a version of it, that no release has.
    """
    definition = message(name)
    start, end = definition.check(start), definition.check(end)
    step = 1 if end > start else -1
    for version in range(start + step, end + step, step):
        was = {path: field for path, field in definition.walk() if version - step in field.versions}
        now = {path: field for path, field in definition.walk() if version in field.versions}
        for path, field in now.items():
            if path.rpartition(".")[0] in (was | {"": None}):  # a new struct's own fields are part of its addition
                what = None if path not in was else _changed(field, version - step, version)
                if path not in was or what:
                    change = "changed" if what else "added"
                    yield FieldChange(api, name, version, path, change, field.type, what or "")
        for path, field in was.items():
            if path not in now and path.rpartition(".")[0] in (now | {"": None}):
                yield FieldChange(api, name, version, path, "removed", field.type)


def _changed(field: Field, before: int, after: int) -> str:
    parts = []
    for name, versions in (("nullable", field.nullable_versions), ("tagged", field.tagged_versions)):
        if (before in versions) != (after in versions):
            parts.append(name if after in versions else f"no longer {name}")
    return ", ".join(parts)


def _gained(was: Api | None, now: Api | None) -> Iterator[VersionChange]:
    if now is None:
        return
    for versions in _without(now.versions, was and was.versions):
        unstable = now.max_version if now.unstable and now.max_version in versions else None
        yield VersionChange(now.name, now.key, versions, was is None, unstable)


def _without(versions: Versions, other: Versions | None) -> Iterator[Versions]:
    """The parts of a range that are not in the other: none, one or two ranges."""
    other = versions.overlap(other or NO_VERSIONS)
    if not other:
        if versions:
            yield versions
        return
    for part in (Versions(versions.low, other.low - 1), Versions(other.high + 1, versions.high)):
        if part:
            yield part
