"""metadata.version and the other features of each release, with their levels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kwire.errors import UnsupportedVersionError
from kwire.schema import files
from kwire.schema.release_apis import release_name, releases
from kwire.suggestions import did_you_mean
from kwire_c.printable import brief

METADATA_VERSION, KRAFT_VERSION = "metadata.version", "kraft.version"


class MetadataVersion(NamedTuple):
    """One metadata.version.

    level: the feature level (-1 before KRaft); name: "4.3-IV0"; release: "4.3"; changed: whether it changes the
    metadata records; first, last: the releases whose jars have it (from 3.3 on); can: what it allows, by the methods of
    Kafka's MetadataVersion ({"partitionRecordVersion": 2, "isElrSupported": True, ...}; a method that a later release
    removed keeps its last value).
    """

    level: int
    name: str
    release: str
    changed: bool
    first: str
    last: str
    can: dict[str, Any]


class MetadataBounds(NamedTuple):
    """The metadata versions of a release, by name.

    minimum: the lowest it runs with; bootstrap_minimum: the lowest it formats with; default: the latest stable one;
    testing: the highest, which is unstable if it is above the default.
    """

    minimum: str
    bootstrap_minimum: str
    default: str
    testing: str


class FeatureLevel(NamedTuple):
    """One level of a feature: name "TV_2", level 2, its bootstrap metadata version, the feature levels it needs."""

    name: str
    level: int
    bootstrap_metadata_version: str
    dependencies: dict[str, int]


class FeatureRange(NamedTuple):
    """A feature of a release. minimum, maximum: of the stable levels; testing: the highest level of all."""

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
    """All metadata versions, ascending.

    release: only those that this release has (3.3 or later). old=True: also the values of inter.broker.protocol.version
    before KRaft ("0.8.0" to "3.0-IV0"), whose level is -1.
    """
    rows = _all_levels() if old else tuple(row for row in _all_levels() if row.level > 0)
    if release is None:
        return rows
    at = releases().index(_kraft(release))
    return tuple(row for row in rows if releases().index(row.first) <= at <= releases().index(row.last))


def metadata_version(wanted: int | str) -> MetadataVersion:
    """The metadata version with this level (25) or name ("4.0-IV3"; "4.0" is the last one of 4.0).

    Raises UnsupportedVersionError.
    """
    for row in _all_levels()[::-1]:
        if wanted in (row.name, row.release) or (wanted == row.level and row.level > 0):
            return row
    last = _all_levels()[-1]
    near = did_you_mean(wanted, [row.name for row in _all_levels()]) if isinstance(wanted, str) else ""
    expected = near or f": expected a level up to {last.level} or a name such as {last.name}"
    raise UnsupportedVersionError(f"unknown metadata.version {brief(wanted)}{expected}", needed=wanted)


def metadata_bounds(release: str | None = None) -> MetadataBounds:
    """The metadata versions that a release runs and formats with (3.3 or later; by default the newest release)."""
    return MetadataBounds(**_metadata()["releases"][_kraft(release)])


def features(release: str | None = None) -> dict[str, FeatureRange]:
    """The features of a release by name, metadata.version first (3.3 or later; by default the newest release)."""
    at = _kraft(release)
    levels, bounds = {row.name: row for row in metadata_versions(at)}, metadata_bounds(at)
    ranges = {
        METADATA_VERSION: FeatureRange(
            METADATA_VERSION, levels[bounds.minimum].level, levels[bounds.default].level,
            levels[bounds.testing].level,
            tuple(FeatureLevel(row.name, row.level, row.name, {}) for row in levels.values()),
        )
    }
    for name, feature in files.load("features.json").get(at, {}).items():
        ranges[name] = FeatureRange(
            name, feature["minimumProduction"], feature["latestProduction"], feature["latestTesting"],
            tuple(
                FeatureLevel(item["name"], item["level"], item["bootstrapMetadataVersion"], item["dependencies"])
                for item in feature["levels"]
            ),
        )
    return ranges


def unmet(needs: Mapping[str, int], levels: Mapping[str, int]) -> tuple[str, int] | None:
    """The first (feature, level) of what a level needs that is not there; None if all is (Feature.validateVersion)."""
    return next(((name, least) for name, least in needs.items() if levels.get(name, 0) < least), None)


def _kraft(release: str | None) -> str:
    name = releases()[-1] if release is None else release_name(release)
    if name not in _metadata()["releases"]:
        raise UnsupportedVersionError(f"Kafka {name} has no metadata.version: expected 3.3 or later", needed=name)
    return name
