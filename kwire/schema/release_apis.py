"""Which release speaks which versions of which API."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from kwire.errors import UnsupportedVersionError
from kwire.schema import files
from kwire.schema.definitions import NO_VERSIONS, Versions, message
from kwire_c.printable import brief

_RELEASE = re.compile(r"(0\.\d+\.\d+|[1-9]\d*\.\d+)(\.\d+)?")


class Api(NamedTuple):
    """One API as a release has it, or (of apis() without a release) as all releases together have it.

    key: int16; name: "Fetch"; min_version, max_version: both ends included; flexible_from: the first flexible version
    or None; deprecated: versions that the release calls deprecated (Versions, false when there are none); unstable:
    whether max_version is not yet stable there; max_stable_version: the highest stable one (-1 when none is);
    listeners: "broker" "controller" "zkBroker", () before 2.8 did tell; forwardable, cluster_action: as in ApiKeys;
    known_as: the name that the release itself has for it ("Offsets" before 1.0).
    """

    key: int
    name: str
    min_version: int
    max_version: int
    flexible_from: int | None
    deprecated: Versions = NO_VERSIONS
    unstable: bool = False
    max_stable_version: int = -1
    listeners: tuple[str, ...] = ()
    forwardable: bool = False
    cluster_action: bool = False
    known_as: str = ""

    @property
    def versions(self) -> Versions:
        """min_version to max_version as a range."""
        return Versions(self.min_version, self.max_version)

    @property
    def request(self) -> str:
        """The name of its request message."""
        return f"{self.name}Request"

    @property
    def response(self) -> str:
        """The name of its response message."""
        return f"{self.name}Response"

    @property
    def between_brokers(self) -> bool:
        """Whether brokers and controllers alone send it: it goes with their upgrade.

        It needs the permission CLUSTER_ACTION, or controllers alone answer it; but what both brokers and controllers
        answer (UpdateFeatures, DescribeQuorum) is for admin tools.
        """
        answering = set(self.listeners)
        return answering == {"controller"} or (self.cluster_action and not {"broker", "controller"} <= answering)

    def request_header_version(self, version: int) -> int:
        """The version of RequestHeader in front of a request of that version: 0, 1 or 2."""
        return message(self.request).header_version(version)

    def response_header_version(self, version: int) -> int:
        """The version of ResponseHeader in front of a response of that version: 0 or 1."""
        return message(self.response).header_version(version)


@lru_cache(None)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = files.load("releases.json")
    return table


def releases(old: bool = False) -> tuple[str, ...]:
    """The releases that kwire knows, rising: ("2.2", "2.3", ...).

    With old=True those before 2.2 come first ("0.9.0", ... "2.1"): of them only the ranges are known.
    """
    names = tuple(_table()["releases"])
    return names if old else names[names.index("2.2") :]


def patch_release(release: str) -> str:
    """The patch release that the facts of a release were read from: "3.9" -> "3.9.2"."""
    return str(_table()["releases"][release_name(release)])


def release_name(text: str) -> str:
    """The release of that name: "3.9", "3.9.1" and "3.9.2" are all "3.9"; "0.10.2.2" is "0.10.2".

    Raises UnsupportedVersionError for one that the facts lack.
    """
    found = _RELEASE.fullmatch(text)
    if found is None or found[1] not in _table()["releases"]:
        known = releases(old=True)
        raise UnsupportedVersionError(
            f"no facts of a Kafka release {brief(text)}: there are {known[0]} to {known[-1]}",
            needed=text, offered=(known[0], known[-1]),
        )
    return found[1]


def apis(release: str | None = None) -> tuple[Api, ...]:
    """The APIs of a release ("3.9" or "3.9.1"), by rising key; without one, all APIs with all versions that any has.

    Raises UnsupportedVersionError for a release that the facts lack. An old release's ranges count from "0.9.0" on.
    """
    return _all_apis() if release is None else _apis(release_name(release))


def api(name: str | int, release: str | None = None) -> Api:
    """The API of that name or key, in a release or in all together.

    Older names work ("AlterIsr"). Raises UnsupportedVersionError where it lacks one.
    """
    wanted: str | int = name
    if isinstance(name, str):
        wanted = _old_names().get(name, name)
    for row in apis(release):
        if wanted in (row.key, row.name):
            return row
    place = "no Kafka release that kwire knows" if release is None else f"Kafka {release}"
    raise UnsupportedVersionError(
        f"{place} has no API {'' if isinstance(name, str) else 'with key '}{brief(name)}", api=name
    )


@lru_cache(None)
def api_by_release(key: int) -> tuple[tuple[str, Api | None], ...]:
    """(release, the API with that key as that release has it, or None), of all releases from "0.9.0" on, rising."""
    return tuple(
        (release, next((row for row in apis(release) if row.key == key), None)) for release in releases(old=True)
    )


def release_after(release: str) -> str | None:
    """The release that came next ("3.9" -> "4.0"), None for the newest. Raises UnsupportedVersionError."""
    names = releases(old=True)
    place = names.index(release_name(release)) + 1
    return names[place] if place < len(names) else None


@lru_cache(None)
def _old_names() -> dict[str, str]:
    return {
        old.removesuffix("Request"): new.removesuffix("Request")
        for old, new in files.renames()["messages"].items()
        if old.endswith("Request")
    }


def _first_flexible(name: str) -> int | None:
    facts = message(f"{name}Request")
    both = facts.valid_versions.overlap(facts.flexible_versions)
    return both.low if both else None


@lru_cache(None)
def _apis(release: str) -> tuple[Api, ...]:
    known = releases(old=True)
    rows = []
    for key, facts in _table()["apis"].items():
        row: dict[str, Any] = {"versions": "none"}
        for change in facts["changes"]:
            if known.index(change["release"]) <= known.index(release):
                row = change
        versions = Versions.parse(row["versions"])
        if not versions:
            continue
        flexible = _first_flexible(facts["name"])
        rows.append(
            Api(
                int(key), facts["name"], versions.low, versions.high,
                None if flexible is None or flexible > versions.high else max(flexible, versions.low),
                Versions.parse(row.get("deprecated")), "stable" in row, row.get("stable", versions.high),
                tuple(row.get("listeners", ())), row.get("forwardable", False), row.get("clusterAction", False),
                row.get("name", facts["name"]),
            )
        )
    return tuple(rows)


@lru_cache(None)
def _all_apis() -> tuple[Api, ...]:
    newest = {row.key: row for row in _apis(releases()[-1])}
    rows = []
    for key, facts in _table()["apis"].items():
        row = newest.get(int(key))
        changes = facts["changes"]
        if row is None:  # gone: as the last release that had it
            last = max(index for index, change in enumerate(changes) if change["versions"] != "none")
            row = next(item for item in _apis(changes[last]["release"]) if item.key == int(key))
        request = message(facts["name"] + "Request")
        versions = request.valid_versions
        flexible = versions.overlap(request.flexible_versions)
        rows.append(
            row._replace(
                min_version=versions.low, max_version=versions.high,
                flexible_from=flexible.low if flexible else None, deprecated=request.deprecated_versions,
                known_as=facts["name"],
            )
        )
    return tuple(rows)
