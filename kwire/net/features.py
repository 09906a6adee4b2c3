"""Features of a cluster, defined by the API versions (KIP-35's feature map) and the feature levels that they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from kwire import schema
from kwire.codec.arguments import check_type
from kwire.net.api_versions import api_key
from kwire.schema import NO_VERSIONS, Versions
from kwire.schema.definitions import LAST_VERSION
from kwire.schema.feature_levels import KRAFT_VERSION, METADATA_VERSION
from kwire.suggestions import did_you_mean
from kwire_c.printable import brief

Ranges = Mapping[str, tuple[int, int]] | Mapping[int, tuple[int, int]]  # API name or key -> (min, max)


@dataclass(frozen=True)
class Feature:
    """A feature, usable where each range it needs overlaps the supported one and each level it needs is finalized.

    needs: API name (or key) -> (min, max) version, both included; levels: name of a Kafka feature (KIP-584) -> the
    lowest finalized level, as in {"transaction.version": 2}; since: the KIP that introduced it; kraft_levels: as
    levels, but only for clusters that have a metadata.version. Those with ZooKeeper have none. Raises TypeError for
    other types.

    KIP-35's own example. Two brokers support (API key, min, max): B1 (0,0,3) (1,2,3); B2 (0,1,2) (1,0,3) (2,0,0):

    >>> from kwire.net.api_versions import intersection
    >>> state = intersection([{0: (0, 3), 1: (2, 3)}, {0: (1, 2), 1: (0, 3), 2: (0, 0)}])
    >>> {key: tuple(versions) for key, versions in state.items()}
    {0: (1, 2), 1: (2, 3)}
    >>> Feature("Feature1", needs={0: (3, 3), 1: (2, 3)}).usable(state)  # not all brokers support version 3 of key 0
    False
    >>> Feature("Feature2", needs={0: (0, 1), 1: (2, 3)}).usable(state)
    True

    The same versions at two finalized levels:

    >>> groups = Feature("groups", {"ConsumerGroupHeartbeat": (0, 1)}, levels={"group.version": 1})
    >>> [groups.usable({"ConsumerGroupHeartbeat": (0, 1)}, levels) for levels in ({}, {"group.version": 1})]
    [False, True]
    """

    name: str
    needs: Ranges = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    since: str | None = None
    kraft_levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("needs", "levels", "kraft_levels"):
            if not isinstance(getattr(self, name), Mapping):
                raise TypeError(f"{name} must be a mapping, not {brief(getattr(self, name))}")
        _check_ranges(self.needs, "needs")
        for feature, level in {**self.levels, **self.kraft_levels}.items():
            if not isinstance(feature, str) or not isinstance(level, int) or isinstance(level, bool):
                raise TypeError(f"levels must be feature -> level (int), not {brief(feature)} -> {brief(level)}")

    def usable(self, versions: Ranges, levels: Mapping[str, int] | None = None) -> bool:
        """Whether each range needed overlaps the supported one, and each finalized level is high enough.

        versions: API name or key -> (min, max); levels: feature -> finalized level, those left out are at 0. None: by
        the versions alone.
        """
        return not self.lacking(versions) and (levels is None or not self.lacking_levels(levels))

    def lacking(self, versions: Ranges) -> list[str | int]:
        """The needed APIs that versions lack, or have no needed version of."""
        _check_ranges(versions, "versions")
        offered = {_key(api): Versions(*span) for api, span in versions.items()}
        needed = {api: Versions(*span) for api, span in self.needs.items()}
        return [api for api, span in needed.items() if not span.overlap(offered.get(api_key(api), NO_VERSIONS))]

    def lacking_levels(self, levels: Mapping[str, int]) -> dict[str, int]:
        """Feature -> the level needed, for those whose finalized level is lower."""
        check_type(levels, Mapping, "levels", "a mapping of features to levels")
        needed = {**(self.kraft_levels if METADATA_VERSION in levels else {}), **self.levels}
        return {name: level for name, level in needed.items() if levels.get(name, 0) < level}


def _check_ranges(ranges: object, name: str) -> None:
    """Raise TypeError for what is no mapping of APIs to (min, max)."""
    check_type(ranges, Mapping, name, "a mapping of APIs to (min, max) versions")
    for api, versions in cast(Ranges, ranges).items():
        pair = versions if isinstance(versions, Sequence) else ()
        if not isinstance(api, str | int) or len(pair) != 2 or not all(isinstance(one, int) for one in pair):
            raise TypeError(f"{name} must be API -> (min, max) version, not {brief(api)} -> {brief(versions)}")


def _key(api: str | int) -> int:
    """As api_key, and the key in "UNKNOWN(97)"."""
    if isinstance(api, str) and api.startswith("UNKNOWN("):
        return int(api[8:-1])
    return api_key(api)


def feature(name: str) -> Feature:
    """The built-in feature of that name. Raises KeyError, whose text lists the known names."""
    if not isinstance(name, str) or name not in FEATURES:
        near = did_you_mean(name, FEATURES)
        raise KeyError(f"unknown feature {brief(name)}: expected one of {', '.join(FEATURES)}{near}")
    return FEATURES[name]


def _feature(
    name: str, since: str, *, levels: Mapping[str, int] | None = None, kraft_levels: Mapping[str, int] | None = None,
    **lowest: int,
) -> Feature:  # fmt: skip
    needs = {api: (low, LAST_VERSION) for api, low in lowest.items()}
    return Feature(name, needs, levels or {}, since, kraft_levels or {})


def _metadata(allows: str) -> dict[str, int]:
    """The lowest metadata.version for which this method of Kafka's MetadataVersion is true."""
    levels = (row.level for row in schema.metadata_versions() if row.can.get(allows))
    return {METADATA_VERSION: next(levels, _NO_LEVEL)}


_NO_LEVEL = 32767  # of a method that no known release has


_ALL = (
    _feature("create-topics", "KIP-4", CreateTopics=0, DeleteTopics=0),
    _feature("timestamps", "KIP-32", Produce=2, Fetch=2),
    _feature("offsets-for-times", "KIP-79", ListOffsets=1),
    _feature("controller-in-metadata", "KIP-4", Metadata=1),
    _feature("headers", "KIP-82", Produce=3, Fetch=4),
    _feature("idempotent-producer", "KIP-98", InitProducerId=0, Produce=3),
    _feature(
        "transactions", "KIP-98",
        InitProducerId=0, AddPartitionsToTxn=0, AddOffsetsToTxn=0, EndTxn=0, TxnOffsetCommit=0, Produce=3,
    ),
    _feature("read-committed", "KIP-98", Fetch=4, ListOffsets=2),
    _feature("leader-epochs", "KIP-101", OffsetForLeaderEpoch=0),
    _feature("delete-records", "KIP-107", DeleteRecords=0),
    _feature("acls", "KIP-140", DescribeAcls=0, CreateAcls=0, DeleteAcls=0),
    _feature("describe-configs", "KIP-133", DescribeConfigs=0),
    _feature("alter-configs", "KIP-133", AlterConfigs=0),
    _feature("log-dirs", "KIP-113", DescribeLogDirs=0, AlterReplicaLogDirs=0),
    _feature("sasl-authenticate", "KIP-152", SaslAuthenticate=0),
    _feature("create-partitions", "KIP-195", CreatePartitions=0),
    _feature(
        "delegation-tokens", "KIP-48", CreateDelegationToken=0, DescribeDelegationToken=0,
        kraft_levels=_metadata("isDelegationTokenSupported"),
    ),
    _feature("delete-groups", "KIP-229", DeleteGroups=0),
    _feature("fetch-sessions", "KIP-227", Fetch=7),
    _feature("prefixed-acls", "KIP-290", CreateAcls=1, DescribeAcls=1, DeleteAcls=1),
    _feature("truncation-detection", "KIP-320", OffsetForLeaderEpoch=2, Fetch=9),
    _feature("zstd", "KIP-110", Produce=7, Fetch=10),
    _feature("sasl-reauthentication", "KIP-368", SaslAuthenticate=1),
    _feature("elect-preferred-leaders", "KIP-183", ElectLeaders=0),
    _feature("static-membership", "KIP-345", JoinGroup=5, SyncGroup=3, Heartbeat=3, OffsetCommit=7),
    _feature("fetch-from-followers", "KIP-392", Fetch=11),
    _feature("incremental-alter-configs", "KIP-339", IncrementalAlterConfigs=0),
    _feature("elect-unclean-leaders", "KIP-460", ElectLeaders=1),
    _feature("reassign-partitions", "KIP-455", AlterPartitionReassignments=0, ListPartitionReassignments=0),
    _feature("delete-offsets", "KIP-496", OffsetDelete=0),
    _feature("default-partitions", "KIP-464", CreateTopics=4),
    _feature("client-software-names", "KIP-511", ApiVersions=3),
    _feature("client-quotas", "KIP-546", DescribeClientQuotas=0, AlterClientQuotas=0),
    _feature("groups-by-state", "KIP-518", ListGroups=4),
    _feature(
        "scram-users", "KIP-554", DescribeUserScramCredentials=0, AlterUserScramCredentials=0,
        kraft_levels=_metadata("isScramSupported"),
    ),
    _feature("finalized-features", "KIP-584", UpdateFeatures=0, ApiVersions=3),
    _feature("describe-producers", "KIP-664", DescribeProducers=0),
    _feature("describe-transactions", "KIP-664", DescribeTransactions=0, ListTransactions=0),
    _feature("describe-cluster", "KIP-700", DescribeCluster=0),
    _feature("max-timestamp-offset", "KIP-734", ListOffsets=7),
    _feature("coordinators-together", "KIP-699", FindCoordinator=4),
    _feature("offsets-of-many-groups", "KIP-709", OffsetFetch=8),
    _feature("topic-ids", "KIP-516", Fetch=13, Metadata=12),
    _feature("describe-quorum", "KIP-595", DescribeQuorum=0),
    _feature("feature-downgrades", "KIP-778", UpdateFeatures=1),
    _feature("tiered-storage-offsets", "KIP-405", ListOffsets=8),
    _feature(
        "consumer-groups", "KIP-848", ConsumerGroupHeartbeat=0, ConsumerGroupDescribe=0, OffsetFetch=9,
        levels={"group.version": 1},
    ),
    _feature("groups-by-type", "KIP-848", ListGroups=5),
    _feature("client-telemetry", "KIP-714", GetTelemetrySubscriptions=0, PushTelemetry=0),
    _feature("describe-topic-partitions", "KIP-966", DescribeTopicPartitions=0),
    _feature("raft-voters", "KIP-853", AddRaftVoter=0, RemoveRaftVoter=0, levels={KRAFT_VERSION: 1}),
    _feature("server-side-regex", "KIP-848", ConsumerGroupHeartbeat=1, levels={"group.version": 1}),
    _feature(
        "transactions-v2", "KIP-890", EndTxn=5, Produce=12, TxnOffsetCommit=5, levels={"transaction.version": 2}
    ),
    _feature(
        "eligible-leader-replicas", "KIP-966", DescribeTopicPartitions=0,
        levels={"eligible.leader.replicas.version": 1},
    ),
    _feature(
        "share-groups", "KIP-932", ShareGroupHeartbeat=1, ShareGroupDescribe=1, ShareFetch=1, ShareAcknowledge=1,
        levels={"share.version": 1},
    ),
    _feature("list-config-resources", "KIP-1142", ListConfigResources=1),
    _feature(
        "streams-groups", "KIP-1071", StreamsGroupHeartbeat=0, StreamsGroupDescribe=0, levels={"streams.version": 1}
    ),
    _feature(
        "cordoned-log-dirs", "KIP-1066", IncrementalAlterConfigs=0, levels=_metadata("isCordonedLogDirsSupported")
    ),
    _feature("share-dead-letter-queues", "KIP-1191", ShareAcknowledge=1, levels={"share.version": 2}),
    _feature("cidr-acls", "KIP-1276", CreateAcls=0, levels=_metadata("isCidrAclSupported")),
    _feature(
        "unregister-controllers", "KIP-1312", UnregisterController=0,
        levels=_metadata("isControllerUnregistrationSupported"),
    ),
)

FEATURES: Mapping[str, Feature] = {row.name: row for row in _ALL}
"""The built-in features: name -> Feature, in the order in which Kafka introduced them."""


@lru_cache(None)
def levelled_apis() -> frozenset[int]:
    """The keys of the APIs of built-in features that need a finalized level."""
    rows = (row for row in FEATURES.values() if row.levels or row.kraft_levels)
    return frozenset(api_key(api) for row in rows for api in row.needs)
