"""Metadata versions and the other features, as each release has them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from kwire.schema import files
from kwire.schema.history import release_name, releases
from kwire_c.errors import UnsupportedVersionError
from kwire_c.printable import brief


class MetadataVersion(NamedTuple):
    """One metadata.version.

    level: the number that brokers speak of (-1 before KRaft); name: "4.3-IV0"; release: "4.3"; changed: whether the
    metadata records changed with it; first, last: the releases whose jars have it (3.3 is the first one looked at);
    can: what it allows, by the names of Kafka's MetadataVersion ({"partitionRecordVersion": 2, "isElrSupported": True,
    ...}; a method that later releases lost keeps its last answer).
    """

    level: int
    name: str
    release: str
    changed: bool
    first: str
    last: str
    can: dict[str, Any]


class MetadataBounds(NamedTuple):
    """The metadata versions of one release, by name: the lowest it runs with, the lowest it formats with, the default
    and the highest (which is not yet stable where it is above the default)."""

    minimum: str
    bootstrap_minimum: str
    default: str
    testing: str


class FeatureLevel(NamedTuple):
    """One level of a feature: name "TV_2", level 2, the metadata version it comes with, what it needs."""

    name: str
    level: int
    bootstrap_metadata_version: str
    dependencies: dict[str, int]


class FeatureRange(NamedTuple):
    """A feature of a release: minimum and maximum are the stable levels, testing the highest of all."""

    name: str
    minimum: int
    maximum: int
    testing: int
    levels: tuple[FeatureLevel, ...]


@lru_cache(None)
def _metadata() -> dict[str, Any]:
    table: dict[str, Any] = files.load("metadata_versions.json")
    return table


@lru_cache(None)
def _all_levels() -> tuple[MetadataVersion, ...]:
    can: dict[str, Any] = {}
    rows = []
    for name, row in _metadata()["levels"].items():
        can = {**can, **row["sets"]}
        rows.append(
            MetadataVersion(row["level"], name, row["release"], row["changed"], row["first"], row["last"], can)
        )
    return tuple(rows)


def metadata_versions(release: str | None = None, old: bool = False) -> tuple[MetadataVersion, ...]:
    """All metadata versions, rising: level, name, release, changed and what they allow.

    release: only those that this release's jars have (3.3 or later). old=True: also what inter.broker.protocol.version
    named before KRaft ("0.8.0" to "3.0-IV0"), whose level is -1.
    """
    rows = _all_levels() if old else tuple(row for row in _all_levels() if row.level > 0)
    if release is None:
        return rows
    at = releases().index(_kraft(release))
    return tuple(row for row in rows if releases().index(row.first) <= at <= releases().index(row.last))


def metadata_version(wanted: int | str) -> MetadataVersion:
    """The metadata version of a level (25) or name ("4.0-IV3"; "4.0" is the last of its line).

    Raises UnsupportedVersionError.
    """
    for row in _all_levels()[::-1]:
        if wanted in (row.name, row.release) or (wanted == row.level and row.level > 0):
            return row
    raise UnsupportedVersionError(f"no metadata.version {brief(wanted)}", needed=wanted)


def metadata_bounds(release: str | None = None) -> MetadataBounds:
    """The metadata versions that a release runs and formats with (3.3 or later; default the newest)."""
    return MetadataBounds(**_metadata()["releases"][_kraft(release)])


def features(release: str | None = None) -> dict[str, FeatureRange]:
    """The features of a release by name, metadata.version first (3.3 or later; default the newest release)."""
    at = _kraft(release)
    levels, bounds = {row.name: row for row in metadata_versions(at)}, metadata_bounds(at)
    found = {
        "metadata.version": FeatureRange(
            "metadata.version", levels[bounds.minimum].level, levels[bounds.default].level,
            levels[bounds.testing].level,
            tuple(FeatureLevel(row.name, row.level, row.name, {}) for row in levels.values()),
        )
    }
    for name, told in files.load("features.json").get(at, {}).items():
        found[name] = FeatureRange(
            name, told["minimumProduction"], told["latestProduction"], told["latestTesting"],
            tuple(
                FeatureLevel(item["name"], item["level"], item["bootstrapMetadataVersion"], item["dependencies"])
                for item in told["levels"]
            ),
        )
    return found


def _kraft(release: str | None) -> str:
    name = releases()[-1] if release is None else release_name(release)
    if name not in _metadata()["releases"]:
        raise UnsupportedVersionError(f"Kafka {name} has no metadata.version: 3.3 is the first one known", needed=name)
    return name
