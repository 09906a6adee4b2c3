"""What one broker offers: the ranges it answered to ApiVersions, or those of a release that is assumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from kwire import schema
from kwire.schema import NO_VERSIONS, Versions, api_keys

# offered only by brokers with a plugin for it
TELEMETRY = frozenset((api_keys.GET_TELEMETRY_SUBSCRIPTIONS, api_keys.PUSH_TELEMETRY))


class NodeApiVersions(NamedTuple):
    """The ranges that a broker speaks, and where they come from.

    ranges: API key -> Versions (both ends included); assumed: the release whose table stands in for an answer, or None;
    features: feature name -> (min, max) level supported; finalized: feature name -> level in force.
    """

    ranges: Mapping[int, Versions]
    assumed: str | None = None
    features: Mapping[str, tuple[int, int]] = {}
    finalized: Mapping[str, int] = {}

    def spoken(self, key: int) -> Versions:
        """The versions of an API that can be sent, NO_VERSIONS where there are none.

        As offered, but for Produce: 4.x offers it from 0 for old clients' sake, and has none below 3 (KAFKA-18659).
        """
        offered = self.ranges.get(key, NO_VERSIONS)
        if key == api_keys.PRODUCE and self.ranges.get(api_keys.FETCH, NO_VERSIONS).low >= 4:
            return offered.overlap(Versions(3, offered.high))
        return offered

    def versions(self) -> dict[str, tuple[int, int]]:
        """API name -> (min, max), by rising key; an API that the facts lack is "UNKNOWN(97)"."""
        return {api_name(key): (found.low, found.high) for key, found in sorted(self.ranges.items())}


@lru_cache(None)
def _names() -> dict[int, str]:
    return {row.key: row.name for row in schema.apis()}


def api_name(key: int) -> str:
    """The newest name of an API, "UNKNOWN(97)" where the facts lack the key."""
    return _names().get(key, f"UNKNOWN({key})")


def api_key(api: int | str) -> int:
    """The key of an API that is given by key, name or older name. Raises UnsupportedVersionError."""
    return api if isinstance(api, int) else schema.api(api).key


def is_broker_api(row: schema.Api) -> bool:
    """Whether brokers (and not only controllers) offer it."""
    return not row.listeners or bool({"broker", "zkBroker"} & set(row.listeners))


@lru_cache(None)
def release_table(release: str, kind: str) -> Mapping[int, Versions]:
    """What brokers of a release offer: API key -> stable versions.

    kind: "broker" (KRaft) or "zkBroker", where the release has both. Raises UnsupportedVersionError for one that the
    facts lack.
    """
    return {
        row.key: Versions(row.min_version, row.max_stable_version)
        for row in schema.apis(release)
        if (not row.listeners or kind in row.listeners)
        and row.key not in TELEMETRY and row.max_stable_version >= row.min_version
    }  # fmt: skip


def assumed_versions(release: str) -> NodeApiVersions:
    """The ranges of a release ("0.9.0"), for a broker that cannot be asked. Raises UnsupportedVersionError."""
    name, order = schema.release_name(release), schema.releases(old=True)
    kind = "broker" if order.index(name) >= order.index("3.3") else "zkBroker"
    return NodeApiVersions(release_table(name, kind), assumed=name)


def intersection(tables: Iterable[Mapping[int, tuple[int, int]]]) -> dict[int, Versions]:
    """The ranges that all have: API key -> Versions; an API without a common version is left out.

    KIP-35's own example, two brokers:

    >>> both = intersection([{0: (0, 3), 1: (2, 3)}, {0: (1, 2), 1: (0, 3), 2: (0, 0)}])
    >>> {key: str(versions) for key, versions in both.items()}
    {0: '1-2', 1: '2-3'}
    """
    found: dict[int, Versions] | None = None
    for table in tables:
        ranges = {key: Versions(*span) for key, span in table.items()}
        if found is None:
            found = ranges
        else:
            found = {key: span.overlap(ranges.get(key, NO_VERSIONS)) for key, span in found.items()}
    return {key: span for key, span in sorted((found or {}).items()) if span}
