"""The sections by which the protocol guide groups the APIs."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kwire.schema import files
from kwire.schema.release_apis import Api, api, apis


class Section(NamedTuple):
    """A section of the protocol guide: its title ("Consumer Groups") and its APIs, in the guide's order."""

    title: str
    apis: tuple[Api, ...]


@lru_cache(1)
def _table() -> dict[str, str]:
    """API, by its newest name -> title."""
    return {name: title for title, names in files.load("sections.json").items() for name in names}


def sections(release: str | None = None) -> tuple[Section, ...]:
    """The sections with the APIs of a release, or of all releases; a section without any is left out.

    An API that the table does not know is in "Other", the last. Raises UnsupportedVersionError for an unknown release.
    """
    by_name = {row.name: row for row in apis(release)}
    found: dict[str, list[Api]] = {}
    for name, title in _table().items():
        if name in by_name:
            found.setdefault(title, []).append(by_name.pop(name))
    if by_name:
        found["Other"] = list(by_name.values())
    return tuple(Section(title, tuple(rows)) for title, rows in found.items())


def section(name: str | int) -> str:
    """The title of the section of an API, by name or key. Raises UnsupportedVersionError for an unknown API."""
    return _table().get(api(name).name, "Other")
