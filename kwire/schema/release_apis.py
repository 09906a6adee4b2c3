"""The APIs and API versions of each release."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from kwire.errors import UnsupportedVersionError
from kwire.schema import files
from kwire.schema.definitions import NO_VERSIONS, Versions, message
from kwire.suggestions import did_you_mean
from kwire_c.printable import brief

_RELEASE = re.compile(r"(0\.\d+\.\d+|[1-9]\d*\.\d+)(\.\d+)?")


class Api(NamedTuple):
    """One API of a release or, from apis() without a release, of all releases together.

    key: int16; name: "Fetch"; min_version, max_version: both ends included; flexible_from: the first flexible version
    or None; deprecated: deprecated versions (Versions, false if there are none); unstable: whether max_version is not
    yet stable in the release; max_stable_version: the highest stable version (-1 if there is none); listeners:
    "broker" "controller" "zkBroker", () before 2.8; forwardable, cluster_action: as in ApiKeys; known_as: the name of
    the API in the release ("Offsets" before 1.0).
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
        """Whether only brokers and controllers send it, so that its versions change with their upgrade.

        True if it needs CLUSTER_ACTION or only controllers serve it. APIs that both brokers and controllers serve
        (UpdateFeatures, DescribeQuorum) are for admin tools.
        """
        serving = set(self.listeners)
        return serving == {"controller"} or (self.cluster_action and not {"broker", "controller"} <= serving)

    def request_header_version(self, version: int) -> int:
        """The RequestHeader version for a request of this version: 0, 1 or 2."""
        return message(self.request).header_version(version)

    def response_header_version(self, version: int) -> int:
        """The ResponseHeader version for a response of this version: 0 or 1."""
        return message(self.response).header_version(version)


@lru_cache(None)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = files.load("releases.json")
    return table


def releases(*, old: bool = False) -> tuple[str, ...]:
    """The known releases, ascending: ("2.2", "2.3", ...).

    With old=True those before 2.2 come first ("0.9.0", ... "2.1"), of which only the version ranges are known.
    """
    names = tuple(_table()["releases"])
    return names if old else names[names.index("2.2") :]


def patch_release(release: str) -> str:
    """The patch release from which the schema of a release was read: "3.9" -> "3.9.2"."""
    return str(_table()["releases"][release_name(release)])


def release_name(text: str) -> str:
    """The release of a name or patch release: "3.9", "3.9.1" and "3.9.2" are "3.9"; "0.10.2.2" is "0.10.2".

    Raises UnsupportedVersionError for an unknown release, TypeError for what is no text.
    """
    if not isinstance(text, str):
        raise TypeError(f'release must be a str, as "3.9", not {brief(text)}')
    match = _RELEASE.fullmatch(text)
    if match is None or match[1] not in _table()["releases"]:
        known = releases(old=True)
        raise UnsupportedVersionError(
            f"unknown Kafka release {brief(text)}: known releases are {known[0]} to {known[-1]}"
            f"{_near(text, known)}",
            needed=text, offered=(known[0], known[-1]),
        )
    return match[1]


def _near(text: str, known: tuple[str, ...]) -> str:
    """As did_you_mean(): of "4" the releases 4.0 to the newest, of "v4.4" and "kafka-4.4" the release 4.4."""
    number = text.lower().removeprefix("kafka").lstrip("-_ v")
    minors = [name for name in known if name.startswith(f"{number}.")]
    return f" (did you mean one of {', '.join(minors)}?)" if minors else did_you_mean(number, known)


def apis(release: str | None = None) -> tuple[Api, ...]:
    """The APIs of a release ("0.9.0" to the newest; "3.9.1" is "3.9"), by ascending key.

    Without a release: all APIs, each with the versions of all releases. Raises UnsupportedVersionError for an unknown
    release.
    """
    return _all_apis() if release is None else _apis(release_name(release))


def api(name: str | int, release: str | None = None) -> Api:
    """The API with this name or key, of a release or of all releases together.

    Older names work ("AlterIsr"). Raises UnsupportedVersionError if the release lacks it.
    """
    wanted: str | int = name
    if isinstance(name, str):
        wanted = _old_names().get(name, name)
    for row in apis(release):
        if wanted in (row.key, row.name):
            return row
    what = f"API {brief(name)}" if isinstance(name, str) else f"API key {brief(name)}"
    near = did_you_mean(name, [row.name for row in apis(release)]) if isinstance(name, str) else ""
    lacking = f"unknown {what}" if release is None else f"Kafka {release} has no {what}"
    raise UnsupportedVersionError(lacking + near, api=name)


def api_by_release(key: int) -> tuple[tuple[str, Api | None], ...]:
    """(release, the API with this key in that release, or None), of all releases from "0.9.0" on, ascending."""
    if not isinstance(key, int):
        raise TypeError(f"key must be an int, not {type(key).__name__}")
    return _api_by_release(key)


@lru_cache(None)
def _api_by_release(key: int) -> tuple[tuple[str, Api | None], ...]:
    return tuple(
        (release, next((row for row in apis(release) if row.key == key), None)) for release in releases(old=True)
    )


def is_at_least(release: str, other: str) -> bool:
    """Whether a release is that one or a later one. Raises UnsupportedVersionError for an unknown one."""
    places = _places()
    try:
        return places[release] >= places[other]
    except (KeyError, TypeError):
        return places[release_name(release)] >= places[release_name(other)]


@lru_cache(None)
def _places() -> dict[str, int]:
    return {name: place for place, name in enumerate(releases(old=True))}


def release_after(release: str) -> str | None:
    """The next release ("3.9" -> "4.0"), None for the newest. Raises UnsupportedVersionError."""
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
    definition = message(f"{name}Request")
    flexible = definition.valid_versions.overlap(definition.flexible_versions)
    return flexible.low if flexible else None


@lru_cache(None)
def _apis(release: str) -> tuple[Api, ...]:
    rows = []
    for key, entry in _table()["apis"].items():
        row: dict[str, Any] = {"versions": "none"}
        for change in entry["changes"]:
            if is_at_least(release, change["release"]):
                row = change
        versions = Versions.parse(row["versions"])
        if not versions:
            continue
        flexible = _first_flexible(entry["name"])
        rows.append(
            Api(
                int(key), entry["name"], versions.low, versions.high,
                None if flexible is None or flexible > versions.high else max(flexible, versions.low),
                Versions.parse(row.get("deprecated")), "stable" in row, row.get("stable", versions.high),
                tuple(row.get("listeners", ())), row.get("forwardable", False), row.get("clusterAction", False),
                row.get("name", entry["name"]),
            )
        )
    return tuple(rows)


@lru_cache(None)
def _all_apis() -> tuple[Api, ...]:
    newest = {row.key: row for row in _apis(releases()[-1])}
    rows = []
    for key, entry in _table()["apis"].items():
        row = newest.get(int(key))
        changes = entry["changes"]
        if row is None:  # removed: as in the last release that had it
            last = max(index for index, change in enumerate(changes) if change["versions"] != "none")
            row = next(item for item in _apis(changes[last]["release"]) if item.key == int(key))
        request = message(entry["name"] + "Request")
        versions = request.valid_versions
        flexible = versions.overlap(request.flexible_versions)
        rows.append(
            row._replace(
                min_version=versions.low, max_version=versions.high,
                flexible_from=flexible.low if flexible else None, deprecated=request.deprecated_versions,
                known_as=entry["name"],
            )
        )
    return tuple(rows)
