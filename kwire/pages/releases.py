"""What a release's page says of each API: its names there, its notes, its fields, what is deprecated and since when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kwire import schema
from kwire.pages.notation import default_text
from kwire.schema import Api, Field, Message, Note, Versions


class FieldOfRelease(NamedTuple):
    """A field as a release has it: depth, its name there, type, and the versions of the release that have it.

    today: the name that the newest release gives it, "" if it is the same.
    """

    depth: int
    name: str
    type: str
    versions: str
    nullable: str
    tagged: str
    default: str
    about: str
    today: str


class MessageOfRelease(NamedTuple):
    """A request or response as a release has it.

    notes: those in the release's own schema; later: those of the last release that has the message, on all versions,
    if they say more or say it in other words.
    """

    name: str
    newest: str
    notes: tuple[Note, ...]
    later: tuple[Note, ...]
    fields: tuple[FieldOfRelease, ...]


class ApiOfRelease(NamedTuple):
    """An API as a release has it. deprecated: (versions, the release that deprecated them), ascending."""

    api: Api
    deprecated: tuple[tuple[Versions, str], ...]
    messages: tuple[MessageOfRelease, ...]


def api_of_release(api: Api, release: str) -> ApiOfRelease:
    """All that the page of a release says of one of its APIs; no messages before 2.2, whose schemas are unknown."""
    known = release in schema.releases()
    names = (api.request, api.response) if known else ()
    return ApiOfRelease(api, tuple(_deprecated(api, release)), tuple(_message(name, api, release) for name in names))


def _deprecated(api: Api, release: str) -> Iterator[tuple[Versions, str]]:
    """Ranges of versions deprecated in a release, with the first release in which they were."""
    since: dict[int, str] = {}
    for earlier, row in schema.api_by_release(api.key):
        if row and schema.is_at_least(release, earlier):
            for version in api.deprecated.overlap(row.deprecated).all():
                since.setdefault(version, earlier)
    start = None
    for version in api.deprecated.all():
        start = version if start is None else start
        if since.get(version + 1) != since[version]:
            yield Versions(start, version), since[version]
            start = None


def _message(name: str, api: Api, release: str) -> MessageOfRelease:
    own, newest = schema.version_notes(name, release), schema.version_notes(name, schema.message(name).releases[1])
    here = {note.text for note in own}
    later = newest if any(note.text not in here for note in newest) else ()
    message, renamed = schema.message_of_release(name, release)
    fields = (_field(path, field, message, renamed.get(path, "")) for path, field in message.walk())
    return MessageOfRelease(message.name, name, own, later, tuple(fields))


def _field(path: str, field: Field, message: Message, today: str) -> FieldOfRelease:
    return FieldOfRelease(
        path.count("."), field.json_name, field.type, _of(field.versions, message.valid_versions),
        _of(field.nullable_versions, field.versions), str(field.tag) if field.tagged_versions else "",
        default_text(field, bool(field.nullable_versions)), field.about, today,
    )


def _of(part: Versions, whole: Versions) -> str:
    """A range of versions, "" if there is none: "all" where it is the whole, "3+" where it reaches its end."""
    if not part:
        return ""
    if part == whole:
        return "all"
    return f"{part.low}+" if part.high == whole.high and part.low != part.high else str(part)
