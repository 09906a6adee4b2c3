"""What the comments in Kafka's schemas say of messages and their versions ("Version 3 adds the transactional ID")."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from kwire.schema import files
from kwire.schema.definitions import LAST_VERSION, NO_VERSIONS, Versions, canonical, message
from kwire.schema.release_apis import is_at_least, release_name

# "Version 3", "Versions 1 and 2", "Version 1 and version 2", "Versions 0, 1, 2, and 3", "version 0 through 2"
_OPENING = re.compile(
    r"(?:(?P<on>Starting|Since|From) )?(?:(?:in|from|with) )?versions? (?P<list>\d+(?:(?:,| and|, and| or| to|"
    r" through| ?- ?|\s)+(?:version )?\d+)*\b)(?P<open> and (?:below|lower|above|higher|later|up)|\+)?",
    re.IGNORECASE,
)


class Note(NamedTuple):
    """A comment in the schema of a message.

    versions: those that it speaks of by its first words ("Version 5 and 6 are the same as version 3": 5-6), none for a
    comment on the message as a whole; text: as in the schema, on one line (the items of a list are lines that begin
    with "- " or a number); field: the path in JSON names of the field that it is about, "" for the message; since,
    until: the first and the last release whose schema has it, from 2.2 on.
    """

    versions: Versions
    text: str
    field: str
    since: str
    until: str

    def is_in(self, release: str) -> bool:
        """Whether the schema of a release, named as releases() does, has it."""
        return is_at_least(release, self.since) and is_at_least(self.until, release)


def version_notes(name: str, release: str | None = None) -> tuple[Note, ...]:
    """The notes on a message, in the order of its schema; with a release only those that its schema has.

    name: of the message ("FetchRequest"), also an older one; release: "2.2" to the newest; "3.9.1" is "3.9". Releases
    before 2.2 have no schemas, so no notes. Source: the comments in the JSON schemas of Kafka's jars.
    Raises UnsupportedVersionError for an unknown message or release.
    """
    notes = _notes(canonical(name))
    if release is None:
        return notes
    known = release_name(release)
    return tuple(note for note in notes if note.is_in(known))


@lru_cache(1)
def _table() -> dict[str, list[tuple[str, list[Any]]]]:
    """Message -> (path of a field or "", rows) of all that have notes."""
    table: dict[str, list[tuple[str, list[Any]]]] = {}
    for key, rows in files.load("version_notes.json").items():
        name, _, path = key.partition(".")
        table.setdefault(name, []).append((_json_path(path), rows))
    return table


@lru_cache(512)
def _notes(name: str) -> tuple[Note, ...]:
    first, last = message(name).releases
    notes = []
    for field, rows in _table().get(name, ()):
        for row in rows:
            text, since, until = (row, first, last) if isinstance(row, str) else (*row, last)[:3]
            notes.append(Note(opening_versions(text) if not field else NO_VERSIONS, text, field, since, until))
    return tuple(notes)


def opening_versions(text: str) -> Versions:
    """The versions that the first words of a note name, as a range; none if it begins otherwise."""
    match = _OPENING.match(text)
    if match is None:
        return NO_VERSIONS
    numbers = [int(number) for number in re.findall(r"\d+", match["list"])]
    low, high = min(numbers), max(numbers)
    if match["open"]:
        return Versions(0, high) if match["open"].endswith(("below", "lower")) else Versions(low, LAST_VERSION)
    return Versions(low, high)


def _json_path(path: str) -> str:
    return ".".join(name[:1].lower() + name[1:] for name in path.split("."))
