"""The API versions that one broker supports: from its ApiVersions response, or those of an assumed release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from kwire import schema
from kwire.schema import NO_VERSIONS, Versions, api_keys

# supported only by brokers with a metrics reporter that takes client telemetry (KIP-714)
TELEMETRY = frozenset((api_keys.GET_TELEMETRY_SUBSCRIPTIONS, api_keys.PUSH_TELEMETRY))


class FinalizedLevels(NamedTuple):
    """The finalized feature levels of a cluster, as of an epoch (KIP-584).

    levels: feature name -> level; brokers leave out those at 0. epoch: the offset of the metadata log up to which they
    hold, -1 if they are unknown (an old broker, or one that has not read the metadata yet).
    """

    levels: Mapping[str, int] = {}
    epoch: int = -1

    def level(self, feature: str) -> int:
        """The finalized level of a feature; 0 where it has none or is unknown, as Kafka's clients take it."""
        return self.levels.get(feature, 0)


class NodeApiVersions(NamedTuple):
    """The API versions and features that a broker supports, and where they come from.

    ranges: API key -> Versions (both ends included); assumed: the release whose table is used because the broker did
    not answer ApiVersions, or None; features: feature name -> (min, max) supported level; finalized: feature name ->
    finalized level, empty where the epoch is unknown; epoch: of the finalized levels, -1 where they are unknown.
    """

    ranges: Mapping[int, Versions]
    assumed: str | None = None
    features: Mapping[str, tuple[int, int]] = {}
    finalized: Mapping[str, int] = {}
    epoch: int = -1

    def __repr__(self) -> str:
        source = "negotiated" if self.assumed is None else f"assumed of release {self.assumed}"
        return f"<NodeApiVersions {source}: {len(self.ranges)} APIs, {len(self.features)} features, epoch {self.epoch}>"

    @property
    def finalized_levels(self) -> FinalizedLevels:
        """The finalized levels with their epoch."""
        return FinalizedLevels(self.finalized, self.epoch)

    def spoken(self, key: int) -> Versions:
        """The versions of an API in which requests can be sent, NO_VERSIONS where there are none.

        As the broker advertises them, except for Produce: 4.x advertises it from version 0 on so that old clients can
        negotiate, but does not support versions below 3 (KAFKA-18659).
        """
        offered = self.ranges.get(key, NO_VERSIONS)
        if key == api_keys.PRODUCE and self.ranges.get(api_keys.FETCH, NO_VERSIONS).low >= 4:
            return offered.overlap(Versions(3, offered.high))
        return offered

    def versions(self) -> dict[str, tuple[int, int]]:
        """API name -> (min, max), by ascending key; an API that no known release has is "UNKNOWN(97)"."""
        return {api_name(key): (span.low, span.high) for key, span in sorted(self.ranges.items())}


@lru_cache(None)
def _names() -> dict[int, str]:
    return {row.key: row.name for row in schema.apis()}


def api_name(key: int) -> str:
    """The newest name of an API, "UNKNOWN(97)" for a key that no known release has."""
    return _names().get(key, f"UNKNOWN({key})")


def api_key(api: int | str) -> int:
    """The key of an API given by key, name or an older name. Raises UnsupportedVersionError for an unknown name."""
    return api if isinstance(api, int) else schema.api(api).key


def is_broker_api(row: schema.Api) -> bool:
    """Whether brokers (and not only controllers) serve the API."""
    return not row.listeners or bool({"broker", "zkBroker"} & set(row.listeners))


@lru_cache(None)
def release_table(release: str, kind: str) -> Mapping[int, Versions]:
    """The stable versions that brokers of a release support, by API key.

    kind: "broker" (KRaft) or "zkBroker", where the release has both. Raises UnsupportedVersionError for an unknown
    release.
    """
    return {
        row.key: Versions(row.min_version, row.max_stable_version)
        for row in schema.apis(release)
        if (not row.listeners or kind in row.listeners)
        and row.key not in TELEMETRY and row.max_stable_version >= row.min_version
    }  # fmt: skip


def assumed_versions(release: str) -> NodeApiVersions:
    """The versions of a release ("0.9.0"), for a broker that does not answer ApiVersions.

    Raises UnsupportedVersionError for an unknown release.
    """
    name, order = schema.release_name(release), schema.releases(old=True)
    kind = "broker" if order.index(name) >= order.index("3.3") else "zkBroker"
    return NodeApiVersions(release_table(name, kind), assumed=name)


def newest_levels(known: Iterable[FinalizedLevels]) -> FinalizedLevels:
    """Of what several brokers say the levels with the newest epoch, as Kafka's ApiVersions combines them.

    >>> newest_levels([FinalizedLevels({"group.version": 1}, 7), FinalizedLevels({}, 9), FinalizedLevels()])
    FinalizedLevels(levels={}, epoch=9)
    """
    return max(known, key=lambda levels: levels.epoch, default=FinalizedLevels())


def intersection(tables: Iterable[Mapping[int, tuple[int, int]]]) -> dict[int, Versions]:
    """The versions that all tables have in common, by API key; an API without a common version is left out.

    KIP-35's own example, two brokers:

    >>> both = intersection([{0: (0, 3), 1: (2, 3)}, {0: (1, 2), 1: (0, 3), 2: (0, 0)}])
    >>> {key: str(versions) for key, versions in both.items()}
    {0: '1-2', 1: '2-3'}
    """
    common: dict[int, Versions] | None = None
    for table in tables:
        ranges = {key: Versions(*span) for key, span in table.items()}
        if common is None:
            common = ranges
        else:
            common = {key: span.overlap(ranges.get(key, NO_VERSIONS)) for key, span in common.items()}
    return {key: span for key, span in sorted((common or {}).items()) if span}
