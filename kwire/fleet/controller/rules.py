"""The rules of metadata.version: those of KIP-778, sentence by sentence, and what the releases made of them.

Each rule is a method. Kip778 quotes the sentence that it follows; Released overrides the rules that Kafka shipped in
another way. What a rule decides about is the QuorumController, whose methods carry it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kwire import schema
from kwire.fleet.errors import ApiError
from kwire.fleet.releases import FIRST_KRAFT, FIRST_PREVIEW, Offer
from kwire.schema.error_codes import ErrorCode
from kwire.schema.feature_levels import KRAFT_VERSION, METADATA_VERSION
from kwire.storage.formatting.errors import FormatterError
from kwire.storage.formatting.levels import check_dependencies, feature_level
from kwire.storage.formatting.rules import rules_of
from kwire.storage.metadata.levels import is_lossless

if TYPE_CHECKING:
    from kwire.fleet.controller.controller import QuorumController
    from kwire.fleet.node import Node

Range = tuple[int, int]
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3  # FeatureUpdate.UpgradeType: KIP-778's NONE, SAFE and UNSAFE
DISABLED = (0, 0)  # the range of a feature that a node does not have

# API -> the method of MetadataVersion that says whether a level has its records
_NEEDS_RECORDS = {
    "DescribeUserScramCredentials": "isScramSupported", "AlterUserScramCredentials": "isScramSupported",
    "CreateDelegationToken": "isDelegationTokenSupported", "RenewDelegationToken": "isDelegationTokenSupported",
    "ExpireDelegationToken": "isDelegationTokenSupported", "DescribeDelegationToken": "isDelegationTokenSupported",
}
# RPC between brokers -> the method of MetadataVersion that says in which version it is sent at a level
_SENT_BY_LEVEL = {
    "Fetch": "fetchRequestVersion", "ListOffsets": "listOffsetRequestVersion",
    "OffsetForLeaderEpoch": "offsetForLeaderEpochRequestVersion", "WriteTxnMarkers": "writeTxnMarkersRequestVersion",
}


def unsupported(supported: Mapping[str, Range], levels: Mapping[str, int]) -> str | None:
    """Why a node cannot run at finalized levels; None if it can."""
    for feature, level in levels.items():
        if not supports(supported, feature, level):
            low, high = supported.get(feature, DISABLED)
            return f"{feature} {level} is not supported: expected {low} to {high}"
    return None


def supports(supported: Mapping[str, Range], feature: str, level: int) -> bool:
    """Whether a node with these levels supports one."""
    low, high = supported.get(feature, DISABLED)
    return low <= level <= high


def supported_by(offer: Offer) -> dict[str, Range]:
    """The levels that software supports.

    "We must ensure that metadata.version 1 is backwards compatible to KRaft at Apache Kafka 3.0": preview software,
    which does not know the feature, supports level 1 and no other.
    """
    return offer.features or {METADATA_VERSION: (1, 1)}


class Kip778:
    """The rules as KIP-778 has them."""

    name = "kip-778"
    first_kraft = FIRST_PREVIEW

    # bootstrapping

    def uses_metadata_version(self, oldest: Offer) -> bool:
        """ "This feature flag is only examined or initialized in KRaft mode. In ZK mode, this feature flag is ignored."

        oldest: of the nodes that a cluster begins with.
        """
        return oldest.is_kraft

    def initial_levels(self, active: Offer, local_file: Mapping[str, int] | None) -> dict[str, int]:
        """The levels that an active controller begins with that has found no FeatureLevelRecord in its log.

        "It will read an initial value for this feature from its local file and generate a FeatureLevelRecord."
        local_file: bootstrap.checkpoint, as kafka-storage format wrote it; None: a directory of a preview release has
        none. Preview software generates nothing.
        """
        if not active.features:
            return {}
        return self.preview_levels() if local_file is None else dict(local_file)

    def preview_levels(self) -> dict[str, int]:
        """ "When upgrading from an existing preview KRaft cluster (...) the controller will automatically initialize
        metadata.version as 1." """
        return {METADATA_VERSION: 1}

    # nodes that cannot support a level

    def registration_refusal(self, supported: Mapping[str, Range], levels: Mapping[str, int]) -> str | None:
        """Why a broker may not register; None if it may.

        "If (...) the controller determines that the broker cannot support the current set of finalized features (which
        includes metadata.version), the controller will reject the registration request and the broker will remain
        fenced."
        """
        for feature, level in levels.items():
            if feature != KRAFT_VERSION and not supports(supported, feature, level):
                low, high = supported.get(feature, DISABLED)
                return (f"Unable to register because the broker does not support finalized version {level} of "
                        f"{feature}. The broker wants a version between {low} and {high}, inclusive.")
        return None

    def inactive_controller_meets_unsupported_level(
        self, controller: QuorumController, node: Node, reason: str
    ) -> None:
        """ "If this inactive controller encounters a FeatureLevelRecord for metadata.version that it cannot support, it
        should terminate." """
        controller.terminate(node, reason)

    def active_controller_meets_unsupported_level(self, controller: QuorumController, node: Node, reason: str) -> None:
        """ "In the unlikely event that an active controller encounters an unsupported metadata.version, it should
        resign and terminate." """
        controller.resign(node)
        controller.terminate(node, reason)

    def broker_meets_unsupported_level(self, controller: QuorumController, node: Node, reason: str) -> None:
        """ "If a broker encounters an unsupported metadata.version, it should unregister itself and terminate." """
        controller.unregister_broker(node.id, certain=True)
        controller.terminate(node, reason)

    # what the controller validates

    def check_update(self, controller: QuorumController, active: Offer, update: Update) -> None:
        """ "The controller validates that the cluster can be upgraded to this version", or "safely downgraded".

        Raises ApiError.
        """
        if update.kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            raise update.refused("The controller does not support the given upgrade type.")
        if update.level < 0:
            raise update.refused("A feature version cannot be less than 0.")
        reason = self.quorum_refusal(controller, update.feature, update.level)
        reason = reason or self.broker_refusal(controller, update.feature, update.level)
        if reason is not None:
            raise update.refused(reason)
        self.check_downgrade_type(update)
        if update.feature == METADATA_VERSION:
            self.check_metadata_version(active, update)
        else:
            self.check_feature(active, update)

    def quorum_refusal(self, controller: QuorumController, feature: str, level: int) -> str | None:
        """Why the quorum cannot have a level; None if it can.

        "The active controller will check that the given version is compatible with at least a majority of the quorum.
        Since it's possible for a minority of the quorum to be offline while committing a new metadata.version, we
        cannot require that all controller nodes support the version."
        """
        voters = controller.voters()
        able = sum(one.alive and supports(supported_by(one.offer), feature, level) for one in voters)
        if able * 2 > len(voters):
            return None
        return (f"{able} of the {len(voters)} controllers of the quorum are online and support this level: "
                "expected a majority.")

    def broker_refusal(self, controller: QuorumController, feature: str, level: int) -> str | None:
        """Why the brokers cannot have a level; None if they can.

        "The 'finalized' version that can be used by the cluster will only be increased by an operator once all the
        nodes have upgraded": every broker that is in service must support it.
        """
        serving = (one for one in controller.registered_brokers() if not one[2])
        return _unable("Broker", ((broker_id, supported) for broker_id, supported, _ in serving), feature, level)

    def kind_of(self, allow_downgrade: bool) -> int:
        """ "Keep this constructor for backwards compatibility": AllowDowngrade of version 0 is a SAFE downgrade."""
        return SAFE_DOWNGRADE if allow_downgrade else UPGRADE

    def check_downgrade_type(self, update: Update) -> None:
        """ "Three types are supported: 0 is NONE (no downgrade will be performed), 1 is SAFE, and 2 is UNSAFE."

        Raises ApiError.
        """
        if update.level < update.have and update.kind == UPGRADE:
            raise update.refused("Can't downgrade the version of this feature without setting the upgrade type to "
                                 "either safe or unsafe downgrade.")
        if update.level > update.have and update.kind != UPGRADE:
            raise update.refused("Can't downgrade to a newer version.")

    def check_metadata_version(self, active: Offer, update: Update) -> None:
        """ "By default, the controller should not perform this kind of downgrade since crucial metadata may be lost.
        The addition of --unsafe (...) is meant to override this behavior."

        Raises ApiError; KIP-778's error code UNSAFE_FEATURE_DOWNGRADE never got a number, so it is
        INVALID_UPDATE_VERSION.
        """
        if not self.is_safe(update) and update.kind != UNSAFE_DOWNGRADE:
            raise ApiError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"Unsupported metadata.version downgrade from {update.have} to {update.level}. Refusing to perform the "
                "requested downgrade because it might delete metadata information (UNSAFE_FEATURE_DOWNGRADE).")

    def is_safe(self, update: Update) -> bool:
        """ "Developers must indicate if a newly introduced metadata.version is backwards compatible or not."

        A downgrade is lossless if every level that it leaves is.
        """
        return update.level >= update.have or is_lossless(update.have, update.level)

    def check_feature(self, active: Offer, update: Update) -> None:
        """The rules of the other features, which came after KIP-778: a level may need another feature's (KIP-1022).

        Raises ApiError.
        """
        if not active.at_least("4.0"):
            return
        known = schema.features(active.release).get(update.feature)
        if known is None:
            raise update.refused(f"Feature {update.feature} not found.")
        if update.feature == KRAFT_VERSION and update.level < update.have:
            raise update.refused("Can't downgrade the version of this feature.")
        try:
            wanted = feature_level(known, update.level, True)
            check_dependencies(update.feature, wanted, update.proposed, rules_of(active.release))
        except FormatterError as error:
            raise update.refused(str(error)) from None

    def knows_kraft_version(self, active: Offer) -> bool:
        """Whether the active controller knows the level of kraft.version, which came after KIP-778 (KIP-853)."""
        return True

    # what a change does

    def takes_snapshot_before_change(self) -> bool:
        """ "We will write a snapshot to disk at the offset right before the metadata version change." """
        return True

    def rewrites_state_at_change(self) -> bool:
        """ "We will serialize the in-memory state to a series of records at the new metadata version. We will publish
        the in-memory state at the new metadata version." """
        return True

    def lowers_dependent_features(self) -> bool:
        """A lossy downgrade lowers the features that need more than the new level, with records of their own."""
        return True

    def versions_between_brokers(self, can: Mapping[str, object], mine: Offer, theirs: Offer) -> dict[str, int]:
        """ "If a new metadata.version is seen, brokers will renegotiate compatible RPCs with other brokers through the
        ApiVersions workflow."

        can: what the level allows. The newest versions that both have, and that are not held back until the level is
        higher: "only after increasing the metadata.version will these new RPCs and records be used."
        """
        versions = {}
        for api, method in _SENT_BY_LEVEL.items():
            key = schema.api(api).key
            if key in mine.usable and key in theirs.usable:
                at_level = int(str(can.get(method, 0)))
                versions[api] = min(mine.usable[key][1], theirs.usable[key][1], at_level)
        return versions

    def forwarded_ranges(self, broker: Offer, active: Offer | None) -> dict[int, Range]:
        """ "For forwarded APIs, the broker and controller's ApiVersions are intersected to determine maximal safe set
        of APIs to advertise." active: of the active controller, None while there is none."""
        if active is None:
            return broker.ranges
        ranges = {}
        for key, (low, high) in broker.ranges.items():
            if key not in broker.forwardable:
                ranges[key] = (low, high)
                continue
            theirs = active.controller_ranges.get(key, (0, -1))
            both = (max(low, theirs[0]), min(high, theirs[1]))
            if both[0] <= both[1]:
                ranges[key] = both
        return ranges

    def held_back_apis(self, can: Mapping[str, object]) -> frozenset[int]:
        """ "One example of this would be holding back a new RPC that has corresponding new metadata records. We do not
        want brokers to start using this RPC until the controller can actually persist the new record type." """
        return frozenset(schema.api(name).key for name, method in _NEEDS_RECORDS.items() if not can.get(method))

    def drops_connections_at_change(self) -> bool:
        """ "By closing the broker side of the connection, clients would be forced to reconnect and receive an updated
        set of ApiVersions." """
        return True


class Released(Kip778):
    """The rules as Kafka's releases have them, up to the newest."""

    name = "released"
    first_kraft = FIRST_KRAFT

    def quorum_refusal(self, controller: QuorumController, feature: str, level: int) -> str | None:
        """The active controller and all registered ones must support a level, offline ones too (from 3.7-IV0 on).

        Source: FeatureControlManager.reasonNotSupported.
        """
        active = controller.active
        assert active is not None
        reason = _unable("Local controller", [(active.id, supported_by(active.offer))], feature, level)
        if reason is not None or not controller.log.can.get("isControllerRegistrationSupported"):
            return reason
        others = [one for one in controller.registered_controllers() if one[0] != active.id]
        reason = _unable("controller", others, feature, level)
        if reason is not None:
            return reason
        known = {active.id, *(one[0] for one in others)}
        missing = next((one.id for one in controller.voters() if one.id not in known), None)
        return None if missing is None else f"controller {missing} has not registered, and may not support this feature"

    def kind_of(self, allow_downgrade: bool) -> int:
        """Controllers do not look at AllowDowngrade: version 0 never lowers a level."""
        return UPGRADE

    def broker_refusal(self, controller: QuorumController, feature: str, level: int) -> str | None:
        """All registered brokers must support a level, fenced ones too; up to 3.6 also know the feature."""
        active = controller.active
        assert active is not None
        brokers = [(broker_id, supported) for broker_id, supported, _ in controller.registered_brokers()]
        if not active.offer.at_least("3.7"):
            unknown = next((broker_id for broker_id, supported in brokers if feature not in supported), None)
            if unknown is not None:
                return f"Broker {unknown} does not support this feature."
        return _unable("Broker", brokers, feature, level)

    def check_metadata_version(self, active: Offer, update: Update) -> None:
        """A level that changed the records is never left: an unsafe downgrade is refused too.

        Raises ApiError. Source: FeatureControlManager.updateMetadataVersion.
        """
        bounds = schema.metadata_bounds(active.release)
        least = schema.metadata_version(bounds.bootstrap_minimum)
        if update.level < least.level:
            raise _invalid(f"Invalid metadata.version {update.level}. Unable to set a metadata.version less than "
                           f"{least.name}")
        if self.is_safe(update):
            return
        prefix = (
            f"Unsupported metadata.version downgrade from {update.have} to {update.level}."
            if active.at_least("4.2") else f"Invalid metadata.version {update.level}.")
        if update.kind == UNSAFE_DOWNGRADE:
            raise _invalid(f"{prefix} Unsafe metadata downgrade is not supported in this version.")
        advice = "" if active.at_least("3.7") else (
            " Retry using UNSAFE_DOWNGRADE if you want to force the downgrade to proceed.")
        raise _invalid(f"{prefix} Refusing to perform the requested downgrade because it might delete metadata "
                       f"information.{advice}")

    def knows_kraft_version(self, active: Offer) -> bool:
        """From 4.1 on; before, it took kraft.version for a level of its own, which nothing read (KAFKA-18979)."""
        return active.at_least("4.1")

    def takes_snapshot_before_change(self) -> bool:
        """Snapshots are made by size and age only."""
        return False

    def rewrites_state_at_change(self) -> bool:
        """A lossless change leaves the state as it is."""
        return False

    def lowers_dependent_features(self) -> bool:
        """No lossy downgrade, so nothing depends on what is left."""
        return False

    def held_back_apis(self, can: Mapping[str, object]) -> frozenset[int]:
        """None: the controller answers with an error what its level has no records for."""
        return frozenset()

    def drops_connections_at_change(self) -> bool:
        """Connections are kept: clients see new levels when they ask again."""
        return False


class Update:
    """A level that a feature shall get.

    have: the finalized one; kind: an UpgradeType; proposed: all levels as they are asked for.
    """

    def __init__(self, feature: str, level: int, kind: int) -> None:
        self.feature, self.level, self.kind = feature, level, kind
        self.have = 0
        self.proposed: Mapping[str, int] = {}

    def refused(self, reason: str) -> ApiError:
        """The error of a refused update, with the text of FeatureControlManager.invalidUpdateVersion."""
        return _invalid(f"Invalid update version {self.level} for feature {self.feature}. {reason}")


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_UPDATE_VERSION, text)


def _unable(what: str, nodes: Iterable[tuple[int, Mapping[str, Range]]], feature: str, level: int) -> str | None:
    """Why the first of these nodes that cannot have a level cannot (QuorumFeatures.reasonNotSupported)."""
    for node_id, supported in nodes:
        if not supports(supported, feature, level):
            low, high = supported.get(feature, DISABLED)
            if high == 0:
                return f"{what} {node_id} does not support this feature."
            return f"{what} {node_id} only supports versions {low}-{high}"
    return None


RULES: dict[str, Kip778] = {rules.name: rules for rules in (Released(), Kip778())}
