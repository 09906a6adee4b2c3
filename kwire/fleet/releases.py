"""What a node of a release offers: API versions, features and levels, from kwire.schema alone."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kwire import schema
from kwire.schema import api_keys
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage.formatting.levels import effective_levels
from kwire.storage.formatting.rules import rules_of

FIRST_KRAFT = "3.3"  # the first release whose KRaft is for production: nodes of it and later are KRaft brokers
FIRST_PREVIEW = "2.8"  # the first release with KRaft as a preview
_PRODUCE_FROM_0 = "4.0"  # KAFKA-18659: Produce is advertised from version 0, for librdkafka
_ANSWERS_ITS_RANGE = "2.4"  # KIP-511: an ApiVersions version that it lacks is answered with its own range
_KNOWS_API_VERSIONS = "0.10.0"  # KIP-35
_QUORUM, _ENABLES_QUORUM = range(52, 56), "2.8"  # Vote to DescribeQuorum: 2.7 has them, and does not offer them
# KIP-714: advertised by brokers with a telemetry plug-in only
_TELEMETRY = (api_keys.GET_TELEMETRY_SUBSCRIPTIONS, api_keys.PUSH_TELEMETRY)


class Offer(NamedTuple):
    """What brokers of a release offer.

    release: "3.9"; ranges: (minimum, maximum) by API key, as advertised; usable: as decoded (Produce 0 to 2 of 4.x are
    advertised, and refused; telemetry is answered, and not advertised); features: supported (minimum, maximum) by name,
    {} of software that does not know them; levels: the finalized ones that a cluster of this release begins with;
    is_kraft: whether its nodes are KRaft brokers, else they use ZooKeeper; controller_ranges: as ranges, of a KRaft
    controller; forwardable: the keys of the APIs that brokers forward to it (KIP-590).
    """

    release: str
    ranges: dict[int, tuple[int, int]]
    usable: dict[int, tuple[int, int]]
    features: dict[str, tuple[int, int]]
    levels: dict[str, int]
    is_kraft: bool
    controller_ranges: dict[int, tuple[int, int]]
    forwardable: frozenset[int]

    @property
    def is_silent(self) -> bool:
        """Whether ApiVersions is never answered (0.9)."""
        return not schema.is_at_least(self.release, _KNOWS_API_VERSIONS)

    @property
    def answers_its_range(self) -> bool:
        """Whether an ApiVersions version that it lacks is answered with its own range (KIP-511)."""
        return schema.is_at_least(self.release, _ANSWERS_ITS_RANGE)

    def at_least(self, release: str) -> bool:
        """Whether this is that release or a later one."""
        return schema.is_at_least(self.release, release)


def offer(release: str, first_kraft: str = FIRST_KRAFT) -> Offer:
    """What brokers of a release offer ("0.9.0" to the newest). Raises UnsupportedVersionError, TypeError.

    first_kraft: the first release whose nodes are KRaft brokers: FIRST_PREVIEW for those of the preview too.
    """
    return _offer(schema.release_name(release), first_kraft)


@lru_cache(None)
def _offer(name: str, first_kraft: str) -> Offer:
    kraft = schema.is_at_least(name, first_kraft)
    usable = _served(name, "broker" if kraft else "zkBroker")
    ranges = {key: span for key, span in usable.items() if key not in _TELEMETRY}
    if schema.is_at_least(name, _PRODUCE_FROM_0):
        ranges[api_keys.PRODUCE] = (0, usable[api_keys.PRODUCE][1])
    if not kraft:
        return Offer(name, ranges, usable, {}, {}, False, {}, frozenset())
    controller = _served(name, "controller")
    forwardable = frozenset(row.key for row in schema.apis(name) if row.forwardable)
    if not schema.is_at_least(name, FIRST_KRAFT):
        return Offer(name, ranges, usable, {}, {}, True, controller, forwardable)
    rules = rules_of(name)
    default = schema.metadata_version(schema.metadata_bounds(name).default)
    supported = {
        feature.name: (feature.minimum, feature.maximum) for feature in schema.features(name).values()
        if feature.maximum > 0}
    supported.setdefault(METADATA_VERSION, (1, default.level))
    levels = effective_levels(default, {}, rules.formatter, False, rules)
    return Offer(name, ranges, usable, supported, levels, True, controller, forwardable)


def _served(release: str, listener: str) -> dict[int, tuple[int, int]]:
    """The stable versions of the APIs that a listener serves, by key."""
    return {
        row.key: (row.min_version, row.max_stable_version) for row in schema.apis(release)
        if (not row.listeners or listener in row.listeners) and row.max_stable_version >= 0
        and (row.key not in _QUORUM or schema.is_at_least(release, _ENABLES_QUORUM))
    }
