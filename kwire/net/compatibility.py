"""The release of a broker, guessed from its API versions, and what a client of a release cannot do with a broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kwire import schema
from kwire.net.api_versions import TELEMETRY, NodeApiVersions, api_name, is_broker_api, release_table
from kwire.net.features import FEATURES
from kwire.schema import NO_VERSIONS, Versions, api_keys
from kwire.schema.feature_levels import METADATA_VERSION

Range = tuple[int, int]


class ReleaseMatch(NamedTuple):
    """The most likely releases of a broker.

    releases: the closest ones, ascending; apart: in how many APIs they differ from the broker (0: none); newer: whether
    the broker supports versions that no known release has.
    """

    releases: tuple[str, ...]
    apart: int
    newer: bool

    def __str__(self) -> str:
        names = " or ".join(self.releases)
        if self.newer:
            return f"newer than Kafka {self.releases[-1]}"
        return f"Kafka {names}" if not self.apart else f"like Kafka {names} ({self.apart} APIs differ)"


def match_release(api_versions: NodeApiVersions) -> ReleaseMatch:
    """The releases whose API versions are closest to those of a broker."""
    offered = {key: span for key, span in api_versions.ranges.items() if key not in TELEMETRY}
    offered[api_keys.PRODUCE] = api_versions.spoken(api_keys.PRODUCE)
    distances = {
        release: min(_distance(release_table(release, kind), offered) for kind in ("broker", "zkBroker"))
        for release in schema.releases(old=True)
    }
    least = min(distances.values())
    known = {row.key: row.versions for row in schema.apis()}
    newer = any(span.high > known.get(key, NO_VERSIONS).high for key, span in offered.items())
    best = tuple(release for release, distance in distances.items() if distance == least)
    return ReleaseMatch(best[-1:] if newer else best, least, newer)


def _distance(table: Mapping[int, Versions], offered: Mapping[int, Versions]) -> int:
    """In how many APIs two tables differ."""
    return sum(table.get(key) != offered.get(key) for key in table.keys() | offered.keys())


class Against(NamedTuple):
    """What a client of a release cannot do with a broker.

    unusable: API name -> (the client's range, the broker's or None): no version in common; older: API name -> (the
    client's newest version, the newest common one); features: built-in features of the client that the broker lacks,
    or whose level is not finalized.
    """

    release: str
    unusable: dict[str, tuple[Range, Range | None]]
    older: dict[str, Range]
    features: list[str]


def against(api_versions: NodeApiVersions, release: str) -> Against:
    """What a client of that release cannot do with a broker of these API versions.

    Raises UnsupportedVersionError for an unknown release.
    """
    release = schema.release_name(release)
    unusable: dict[str, tuple[Range, Range | None]] = {}
    older: dict[str, Range] = {}
    common: dict[str, Range] = {}
    client = {
        row.key: Versions(row.min_version, row.max_stable_version)
        for row in schema.apis(release)
        if is_broker_api(row) and not schema.api(row.key).between_brokers and row.key not in TELEMETRY
        and row.max_stable_version >= row.min_version
    }
    for key, span in client.items():
        offered = api_versions.spoken(key)
        both = span.overlap(offered)
        if not both:
            unusable[api_name(key)] = (span.low, span.high), (offered.low, offered.high) if offered else None
            continue
        common[api_name(key)] = both.low, both.high
        if both.high < span.high:
            older[api_name(key)] = span.high, both.high
    own = {api_name(key): (span.low, span.high) for key, span in client.items()}
    levels, newest = api_versions.finalized if api_versions.epoch >= 0 else None, _newest_metadata_version(release)
    features = [
        row.name for row in FEATURES.values()
        if row.usable(own) and row.levels.get(METADATA_VERSION, 0) <= newest and not row.usable(common, levels)
    ]
    return Against(release, unusable, older, features)


def _newest_metadata_version(release: str) -> int:
    """The newest metadata.version that a release knows, 0 for one before KRaft."""
    known = [row.level for row in schema.metadata_versions() if schema.is_at_least(release, row.first)]
    return max(known, default=0)
