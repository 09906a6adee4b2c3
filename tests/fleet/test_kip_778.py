"""KIP-778 sentence by sentence: each test is named by its sentence, which the text above it quotes."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

import kwire
from kwire import messages, schema
from kwire.fleet import Fleet
from kwire.fleet.controller.metadata_log import MOST_SNAPSHOTS
from kwire.fleet.controller.rules import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE
from kwire.fleet.node import Node
from kwire.net import connect_sync
from kwire.schema.error_codes import ErrorCode
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage.metadata import ClusterImage
from tests.cli.features_cases import kwire_features

pytestmark = [pytest.mark.quick, pytest.mark.checkout]
OK, REFUSED = ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION
CONTROLLERS = ["controller"] * 3


def kip(*arguments: Any, **keywords: Any) -> Fleet:
    return Fleet(*arguments, rules="kip-778", **keywords)


def update(
    where: str | Fleet, level: int, kind: int = UPGRADE, *, feature: str = METADATA_VERSION, dry_run: bool = False
) -> tuple[ErrorCode, str | None]:
    """Ask for a level, by the newest version of UpdateFeatures; the answer's error code and text."""
    request = messages.UpdateFeaturesRequest
    row = request.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
    address = where if isinstance(where, str) else where.bootstrap or where.bootstrap_controllers
    with connect_sync(address.split(",")[0]) as connection:
        answer: Any = connection.send(request(feature_updates=[row], validate_only=dry_run))
    results = [answer, *answer.results]
    return next(((ErrorCode(one.error_code), one.error_message) for one in results if one.error_code), (OK, None))


def asked(address: str) -> Any:
    """The answer to ApiVersions 3 on a new connection."""
    with connect_sync(address) as connection:
        return connection.send(
            messages.ApiVersionsRequest(client_software_name="t", client_software_version="1"), version=3)


def finalized(address: str) -> dict[str, tuple[int, int]]:
    return {row.name: (row.min_version_level, row.max_version_level) for row in asked(address).finalized_features}


def advertised(address: str) -> dict[str, tuple[int, int]]:
    names = {row.key: row.name for row in schema.apis()}
    return {names[row.api_key]: (row.min_version, row.max_version) for row in asked(address).api_keys}


def happened(fleet: Fleet, event: str) -> list[dict[str, Any]]:
    return [one for one in fleet.events if one["event"] == event]


def is_closed(client: socket.socket) -> bool:
    """Whether the other side has ended a connection: else it answers once more."""
    request = messages.ApiVersionsRequest(client_software_name="t", client_software_version="1")
    try:
        client.sendall(kwire.pack_frame(kwire.encode_request(request, 3)))
        return client.recv(1) == b""
    except ConnectionError:
        return True


def write_level(fleet: Fleet, level: int) -> None:
    """A level that the controller has not checked: what a node meets when it is in the log all the same."""
    node = fleet.nodes[0]
    node.in_loop(lambda: fleet.cluster.controller.change_levels({METADATA_VERSION: level}))


# Public interfaces


# "Define new KIP-584 feature flag metadata.version. (...) In ZK mode, this feature flag is ignored."
def test_in_zk_mode_this_feature_flag_is_ignored() -> None:
    with kip("2.7") as fleet:  # before the first preview of KRaft
        assert finalized(fleet.bootstrap) == {} and fleet.nodes[0].levels == {}
        with pytest.raises(ValueError, match="ZooKeeper"):
            _ = fleet.nodes[0].image


# "Remove the concept of a minimum finalized version from feature flags. (...) The finalized version will simply be the
# version specified by the operator"
def test_the_finalized_version_is_the_version_specified_by_the_operator() -> None:
    with kip(levels={METADATA_VERSION: 30}) as fleet:
        assert finalized(fleet.bootstrap)[METADATA_VERSION] == (30, 30)
        assert update(fleet, 32) == (OK, None)
        assert finalized(fleet.bootstrap)[METADATA_VERSION] == (32, 32)


# "UpdateFeaturesRequest (...) listeners: zkBroker, broker, controller <-- New listener controller for KRaft"
def test_update_features_is_taken_by_the_controllers_listener() -> None:
    with kip(levels={METADATA_VERSION: 30}) as fleet:
        assert update(fleet.nodes[0].controller_address, 31) == (OK, None)
        assert fleet.nodes[0].levels[METADATA_VERSION] == 31


# "New Field DryRun" and "Validate this downgrade, but do not perform it."
def test_dry_run_validates_but_does_not_perform() -> None:
    with kip(levels={METADATA_VERSION: 30}) as fleet:
        before = fleet.nodes[0].image
        assert update(fleet, 33, dry_run=True) == (OK, None)
        assert update(fleet, 29, SAFE_DOWNGRADE, dry_run=True)[0] == REFUSED
        assert (fleet.nodes[0].image, fleet.nodes[0].image.offset) == (before, before.offset)
        assert fleet.nodes[0].snapshots == {}


# "Three types are supported: 0 is NONE (no downgrade will be performed), 1 is SAFE, and 2 is UNSAFE."
@pytest.mark.parametrize(("kind", "lossless", "lossy"), [
    (UPGRADE, REFUSED, REFUSED), (SAFE_DOWNGRADE, OK, REFUSED), (UNSAFE_DOWNGRADE, OK, OK), (7, REFUSED, REFUSED)])
def test_three_types_of_downgrade_are_supported(kind: int, lossless: ErrorCode, lossy: ErrorCode) -> None:
    with kip("4.3", levels={METADATA_VERSION: 27}) as fleet:
        assert update(fleet, 25, kind)[0] == lossless
    with kip("4.3") as fleet:
        assert update(fleet, 29, kind)[0] == lossy  # 30 changed the records


# "UNSAFE_FEATURE_DOWNGRADE: indicates that a requested feature level downgrade cannot safely be performed" (it got no
# number)
def test_unsafe_feature_downgrade_is_named() -> None:
    with kip("4.3") as fleet:
        code, text = update(fleet, 29, SAFE_DOWNGRADE)
        assert code == REFUSED and text is not None and "from 30 to 29" in text and "UNSAFE_FEATURE_DOWNGRADE" in text


# "Keep this constructor for backwards compatibility: this(maxVersionLevel, DowngradeType.SAFE)"
@pytest.mark.parametrize(("rules", "allowed"), [("kip-778", OK), ("released", REFUSED)])
def test_allow_downgrade_of_version_0_is_a_safe_downgrade(rules: str, allowed: ErrorCode) -> None:
    def ask(level: int, allow_downgrade: bool) -> int:
        request = messages.UpdateFeaturesRequest
        row = request.FeatureUpdateKey(
            feature=METADATA_VERSION, max_version_level=level, allow_downgrade=allow_downgrade)
        answer: Any = connection.send(request(feature_updates=[row]), 0)
        return int(answer.error_code or answer.results[0].error_code)

    with Fleet("4.3", levels={METADATA_VERSION: 27}, rules=rules) as fleet, connect_sync(fleet.bootstrap) as connection:
        assert ask(25, False) == ask(22, True) == REFUSED  # 23 changed the records
        assert ask(25, True) == allowed


# A level may need a level of another feature, which came after KIP-778 (KIP-1022).
@pytest.mark.parametrize("rules", ["kip-778", "released"])
def test_a_level_needs_levels_of_other_features(rules: str) -> None:
    name = "eligible.leader.replicas.version"
    with Fleet("4.3", levels={METADATA_VERSION: 21, name: 0}, rules=rules) as fleet:
        code, text = update(fleet, 1, feature=name)
        assert code == REFUSED and "because it depends on metadata.version level 23" in str(text)
        assert update(fleet, 23) == (OK, None)
        assert update(fleet, 1, feature=name) == (OK, None)


# What was released of it: "Unsafe metadata downgrade is not supported in this version."
def test_released_controllers_refuse_unsafe_downgrades() -> None:
    with Fleet("4.3") as fleet:
        code, text = update(fleet, 29, UNSAFE_DOWNGRADE)
        assert code == REFUSED and str(text).endswith("Unsafe metadata downgrade is not supported in this version.")
        assert fleet.nodes[0].levels[METADATA_VERSION] == 30


# Bootstrapping


# "If it has not encountered a FeatureLevelRecord, it will read an initial value for this feature from its local file
# and generate a FeatureLevelRecord."
def test_the_initial_value_is_read_from_the_local_file() -> None:
    with kip(levels={METADATA_VERSION: 20}) as fleet:
        assert fleet.nodes[0].image.metadata_version == 20
        fleet.nodes[0].stop()
        fleet.nodes[0].start()  # it has encountered one now
        assert update(fleet, 21) == (OK, None)
        fleet.nodes[0].stop()
        fleet.nodes[0].start()
        assert fleet.nodes[0].image.metadata_version == 21


# "If no value has been specified by the operator, the tool will select the default value that has been defined for that
# version of the software."
@pytest.mark.parametrize(("release", "level"), [("3.3", 7), ("3.9", 21), ("4.3", 30), ("4.4", 33)])
def test_the_default_value_is_that_of_the_software(release: str, level: int) -> None:
    with kip(release) as fleet:
        assert fleet.nodes[0].levels[METADATA_VERSION] == level


# "One special case is when we are upgrading from an existing preview KRaft cluster. (...) The controller will
# automatically initialize metadata.version as 1."
@pytest.mark.parametrize("preview", ["2.8", "3.0", "3.2"])
def test_a_preview_cluster_is_initialized_as_1(preview: str) -> None:
    with kip(preview, topics={"t": 3}) as fleet:
        node = fleet.nodes[0]
        assert node.levels == {} and finalized(node.address) == {}  # the software does not know the feature
        node.upgrade("3.9")
        assert node.levels == {METADATA_VERSION: 1} and not node.fenced
        assert len(node.image.topics["t"].partitions) == 3


# "Metadata.version 1 is backwards compatible to KRaft at Apache Kafka 3.0. This allows for a straightforward downgrade
# path back to an earlier (preview) KRaft software version."
def test_level_1_allows_a_downgrade_to_preview_software() -> None:
    with kip("3.0", topics={"t": 1}) as fleet:
        node = fleet.nodes[0]
        node.upgrade("3.9")
        node.downgrade("3.0")
        assert node.alive and not node.fenced and "t" in node.image.topics
        node.upgrade("3.9")
        assert update(fleet, 4) == (OK, None)
        node.downgrade("3.0")
        assert not node.alive and "metadata.version 4 is not supported: expected 1 to 1" in repr(node)


# Nodes that cannot support a level


# "The controller will reject the registration request and the broker will remain fenced."
def test_registration_is_rejected_and_the_broker_remains_fenced() -> None:
    with kip(releases=["4.4", "4.4"], roles=["broker,controller", "broker"]) as fleet:
        broker = fleet.nodes[1]
        broker.downgrade("3.9")
        assert broker.alive and broker.fenced and fleet.image.brokers[2].fenced
        assert "does not support finalized version 33 of metadata.version" in str(broker.refused)
        with connect_sync(fleet.nodes[0].address) as connection:
            answer: Any = connection.send(messages.MetadataRequest(topics=None))
            assert [row.node_id for row in answer.brokers] == [1]


# "the current set of finalized features (which includes metadata.version)"
def test_registration_is_rejected_for_any_finalized_feature() -> None:
    levels = {METADATA_VERSION: 21, "transaction.version": 2}
    with kip(releases=["4.4", "3.9"], roles=["controller,broker", "broker"], levels=levels) as fleet:
        assert fleet.nodes[1].fenced and "2 of transaction.version" in str(fleet.nodes[1].refused)
        assert update(fleet, 0, SAFE_DOWNGRADE, feature="transaction.version") == (OK, None)
        assert update(fleet, 0, SAFE_DOWNGRADE, feature="group.version") == (OK, None)
        assert not fleet.nodes[1].fenced  # it tried again


# The same by the wire: BrokerRegistration, and heartbeats that unfence.
def test_registration_and_heartbeats_of_a_broker_on_the_controllers_listener() -> None:
    with kip() as fleet, connect_sync(fleet.nodes[0].controller_address) as connection:
        request = messages.BrokerRegistrationRequest

        def register(high: int, broker_id: int = 9) -> Any:
            features = [
                request.Feature(name=name, min_supported_version=0, max_supported_version=level)
                for name, level in fleet.nodes[0].levels.items() if name != METADATA_VERSION]
            row = request.Feature(name=METADATA_VERSION, min_supported_version=7, max_supported_version=high)
            return connection.send(request(
                broker_id=broker_id, cluster_id=fleet.cluster.cluster_id, features=[row, *features],
                listeners=[request.Listener(name="PLAINTEXT", host="h", port=1)], log_dirs=[UUID(int=1 << 90)]))

        def beat(epoch: int, want_fence: bool = False) -> Any:
            return connection.send(messages.BrokerHeartbeatRequest(
                broker_id=9, broker_epoch=epoch, current_metadata_offset=epoch, want_fence=want_fence))

        assert register(32).error_code == ErrorCode.UNSUPPORTED_VERSION
        assert register(33, broker_id=1).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
        epoch = register(33).broker_epoch
        assert fleet.image.brokers[9].fenced and epoch == fleet.image.offset
        assert beat(epoch + 1).error_code == ErrorCode.STALE_BROKER_EPOCH
        answer = beat(epoch)
        assert (answer.error_code, answer.is_caught_up, answer.is_fenced) == (0, True, False)
        assert not fleet.image.brokers[9].fenced
        assert beat(epoch, want_fence=True).is_fenced and fleet.image.brokers[9].fenced
        removed: Any = connection.send(messages.UnregisterBrokerRequest(broker_id=9))
        assert removed.error_code == 0 and 9 not in fleet.image.brokers


# "If this inactive controller encounters a FeatureLevelRecord for metadata.version that it cannot support, it should
# terminate."
def test_an_inactive_controller_terminates() -> None:
    with kip(releases=["4.4", "4.4", "3.9"], roles=CONTROLLERS) as fleet:
        assert fleet.controller is fleet.nodes[0] and fleet.nodes[2].alive
        assert update(fleet, 33) == (OK, None)
        assert [node.alive for node in fleet.nodes] == [True, True, False]
        assert fleet.controller is fleet.nodes[0] and fleet.cluster.controller.log.epoch == 1
        assert [one["node"] for one in happened(fleet, "terminated")] == [3]
        fleet.nodes[2].start()
        assert not fleet.nodes[2].alive
        fleet.nodes[2].upgrade("4.4")
        assert fleet.nodes[2].alive


# "In the unlikely event that an active controller encounters an unsupported metadata.version, it should resign and
# terminate."
def test_an_active_controller_resigns_and_terminates() -> None:
    with kip(releases=["3.9", "4.4", "4.4"], roles=CONTROLLERS) as fleet:
        assert fleet.controller is fleet.nodes[0]
        assert update(fleet, 33) == (OK, None)  # a majority supports it
        assert not fleet.nodes[0].alive and fleet.controller is fleet.nodes[1]
        assert fleet.cluster.controller.log.epoch == 2 and fleet.nodes[1].levels[METADATA_VERSION] == 33


# "If a broker encounters an unsupported metadata.version, it should unregister itself and terminate."
def test_a_broker_unregisters_itself_and_terminates() -> None:
    with kip(releases=["4.4", "3.9"], roles=["controller,broker", "broker"], topics={"t": 2}) as fleet:
        assert not fleet.nodes[1].fenced
        write_level(fleet, 33)
        assert not fleet.nodes[1].alive and fleet.nodes[1].fenced
        assert set(fleet.image.brokers) == {1}
        assert happened(fleet, "terminated")[0]["reason"] == "metadata.version 33 is not supported: expected 1 to 21"


# "The active controller will check that the given version is compatible with at least a majority of the quorum."
def test_a_majority_of_the_quorum_must_support_a_version() -> None:
    with kip(releases=["4.4", "3.9", "3.9"], roles=CONTROLLERS) as fleet:
        code, text = update(fleet, 33)
        assert code == REFUSED and text is not None and "1 of the 3 controllers" in text
        fleet.nodes[1].upgrade("4.4")
        assert update(fleet, 33) == (OK, None)


# "Since it's possible for a minority of the quorum to be offline while committing a new metadata.version, we cannot
# require that all controller nodes support the version"
def test_a_minority_of_the_quorum_may_be_offline() -> None:
    with kip(releases=["4.4", "4.4", "3.9"]) as fleet:
        fleet.nodes[2].stop()
        assert update(fleet, 32) == (OK, None)
        fleet.nodes[2].start()  # it finds in the log what it cannot support
        assert not fleet.nodes[2].alive and fleet.nodes[2].fenced
        fleet.nodes[1].stop()
        code, text = update(fleet, 33)
        assert code == REFUSED and text is not None and "1 of the 3 controllers" in text


# What was released of it: every controller, whether or not it is online.
def test_released_controllers_require_all_registered_ones() -> None:
    with Fleet(releases=["4.4", "4.4", "3.9"], roles=CONTROLLERS) as fleet:
        assert str(update(fleet, 33)[1]).endswith("controller 3 only supports versions 1-21")
        fleet.nodes[2].stop()
        assert str(update(fleet, 33)[1]).endswith("controller 3 only supports versions 1-21")
        fleet.nodes[2].upgrade("4.4")
        assert update(fleet, 33) == (OK, None)
    with Fleet(releases=["3.9", "4.4", "4.4"], roles=CONTROLLERS) as fleet:
        assert str(update(fleet, 33)[1]).endswith("Local controller 1 only supports versions 1-21")


# Upgrades


# "As brokers and controllers upgrade to new software, their maximum supported metadata.version will increase
# automatically. However, the finalized version (...) will only be increased by an operator once all the nodes have
# upgraded."
def test_the_finalized_version_is_only_increased_once_all_nodes_have_upgraded() -> None:
    with kip("3.9", 3) as fleet:
        for node in fleet.nodes:
            code, text = update(fleet, 33)
            assert code == REFUSED and text is not None
            node.upgrade("4.4")
            supported = {row.name: row.max_version for row in asked(node.address).supported_features}
            assert supported[METADATA_VERSION] == 33 and node.levels[METADATA_VERSION] == 21
        assert update(fleet, 33) == (OK, None)
        assert not any(node.fenced for node in fleet.nodes)


# "It should be possible to perform many online upgrades without restarting any nodes."
def test_many_online_upgrades_without_restarting_any_nodes() -> None:
    with kip("4.4", 3, levels={METADATA_VERSION: 7}, topics={"t": 3}) as fleet:
        started = len(happened(fleet, "started"))
        epochs = []
        for level in range(8, 34):
            assert update(fleet, level) == (OK, None)
            assert fleet.nodes[2].levels[METADATA_VERSION] == level
            epochs.append(asked(fleet.nodes[1].address).finalized_features_epoch)
        assert len(happened(fleet, "started")) == started == 3
        assert epochs == sorted(set(epochs))


# "FeatureLevelRecord is written to the metadata log", and FinalizedFeaturesEpoch is its offset
def test_a_feature_level_record_is_written_to_the_metadata_log() -> None:
    with kip(levels={METADATA_VERSION: 30}) as fleet:
        before = fleet.image
        assert update(fleet, 31) == (OK, None)
        after = fleet.image
        assert after.offset == before.offset + 1 == asked(fleet.bootstrap).finalized_features_epoch
        (change,) = before.diff(after)
        assert type(change.after).__name__ == "FeatureLevelRecord"


# "Only after increasing the metadata.version will these new RPCs and records be used", and "brokers will renegotiate
# compatible RPCs with other brokers through the ApiVersions workflow"
def test_brokers_renegotiate_compatible_rpcs_with_other_brokers() -> None:
    with kip(releases=["4.4", "3.9"], levels={METADATA_VERSION: 7}) as fleet:
        assert fleet.nodes[0].peers == {2: {
            "Fetch": 13, "ListOffsets": 7, "OffsetForLeaderEpoch": 4, "WriteTxnMarkers": 1}}
        assert update(fleet, 21) == (OK, None)
        assert fleet.nodes[0].peers[2]["Fetch"] == 17 == fleet.nodes[1].peers[1]["Fetch"]
        fleet.nodes[1].upgrade("4.4")
        assert fleet.nodes[0].peers[2]["Fetch"] == 17  # held back by the level
        assert update(fleet, 33) == (OK, None)
        assert fleet.nodes[0].peers[2]["Fetch"] == fleet.nodes[1].peers[1]["Fetch"] == 18


# "One example of this would be holding back a new RPC that has corresponding new metadata records."
def test_an_rpc_with_new_metadata_records_is_held_back() -> None:
    with kip(levels={METADATA_VERSION: 10}) as fleet, Fleet(levels={METADATA_VERSION: 10}) as released:
        assert "AlterUserScramCredentials" in advertised(released.bootstrap)
        assert "AlterUserScramCredentials" not in advertised(fleet.bootstrap)
        assert update(fleet, 11) == (OK, None)  # 3.5-IV2 has SCRAM
        assert "AlterUserScramCredentials" in advertised(fleet.bootstrap)


# "For forwarded APIs, the broker and controller's ApiVersions are intersected to determine maximal safe set of APIs to
# advertise."
@pytest.mark.parametrize("rules", ["kip-778", "released"])
def test_forwarded_apis_are_intersected(rules: str) -> None:
    with Fleet(releases=["3.9", "4.4"], rules=rules) as fleet:  # the active controller is the first
        broker = advertised(fleet.nodes[1].address)
        assert broker["UpdateFeatures"] == (0, 1) and broker["CreateTopics"] == (2, 7)
        assert broker["Fetch"] == (4, 18) and "UnregisterController" not in broker
        fleet.nodes[0].upgrade("4.4")
        assert advertised(fleet.nodes[1].address)["UpdateFeatures"] == (0, 2)


# "By closing the broker side of the connection, clients would be forced to reconnect and receive an updated set of
# ApiVersions."
@pytest.mark.parametrize(("rules", "closed"), [("kip-778", True), ("released", False)])
def test_connections_are_closed_at_a_change_of_ranges(rules: str, closed: bool) -> None:
    with Fleet(levels={METADATA_VERSION: 30}, rules=rules) as fleet:
        host, port = fleet.bootstrap.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            assert len(asked(fleet.bootstrap).api_keys) > 10  # now the first connection is served too
            assert update(fleet, 33) == (OK, None)  # the answer comes before the end
            assert is_closed(client) == closed
        assert bool(happened(fleet, "connections dropped")) == closed


# Downgrades


# "Only the downgrade from version >=4 to <=3 would be lossy": by the flags of the released versions
@pytest.mark.parametrize(("have", "level", "lossless"), [
    (33, 32, False), (32, 31, False), (31, 30, True), (30, 29, False), (27, 25, True), (25, 23, True), (23, 22, False),
    (21, 19, True), (21, 17, True), (17, 16, False)])
def test_a_downgrade_is_lossless_if_no_version_on_the_way_changed_the_records(
    have: int, level: int, lossless: bool
) -> None:
    with kip(levels={METADATA_VERSION: have}) as fleet:
        assert update(fleet, level, SAFE_DOWNGRADE)[0] == (OK if lossless else REFUSED)


# "When performing a lossless downgrade, no modifications are made to the metadata records."
def test_a_lossless_downgrade_makes_no_modifications() -> None:
    with kip(levels={METADATA_VERSION: 27}, topics={"t": 2}) as fleet:
        before = fleet.image
        assert update(fleet, 25, SAFE_DOWNGRADE) == (OK, None)
        (change,) = before.diff(fleet.image)
        assert (change.before.feature_level, change.after.feature_level) == (27, 25)  # type: ignore[union-attr]
        assert fleet.cluster.controller.losses == []


# "The snapshot (...) will exclude new record types and will write metadata records at the downgraded version (thereby
# excluding new fields)."
def test_a_lossy_downgrade_excludes_new_records_and_fields(tmp_path: Path) -> None:
    with kip("3.9", 3, topics={"t": 2}) as fleet:
        assert set(fleet.image.controllers) == {1, 2, 3}  # 3.7-IV0 brought their registrations
        assert update(fleet, 14, SAFE_DOWNGRADE)[0] == REFUSED
        assert update(fleet, 14, UNSAFE_DOWNGRADE) == (OK, None)
        image = fleet.image
        assert image.controllers == {} and image.metadata_version == 14 and "t" in image.topics
        assert {type(loss.record).__name__ for loss in fleet.cluster.controller.losses} == {"RegisterControllerRecord"}
        again = ClusterImage.read(image.write_snapshot(tmp_path))
        assert again == image and again.offset == image.offset


# A lossy downgrade below what another feature needs lowers that feature too, with a record of its own.
def test_a_lossy_downgrade_lowers_the_features_that_need_more() -> None:
    with kip() as fleet:
        assert fleet.nodes[0].levels["eligible.leader.replicas.version"] == 1
        assert update(fleet, 21, UNSAFE_DOWNGRADE) == (OK, None)
        assert "eligible.leader.replicas.version" not in fleet.nodes[0].levels
        assert "eligible.leader.replicas.version" not in finalized(fleet.bootstrap)


# "There may be tagged fields present in the metadata records from previous newer version, but these are transparently
# skipped over during record deserialization."
def test_tagged_fields_of_a_newer_version_are_skipped() -> None:
    name = b"metadata.version"
    record = bytes([1, 12, 0, len(name) + 1]) + name + b"\0\x15" + bytes([1, 99, 2]) + b"xx"  # tag 99
    known: Any = kwire.decode_metadata_record(record)[0]
    assert (known.name, known.feature_level) == (METADATA_VERSION, 21)
    with kip("3.9", levels={METADATA_VERSION: 20}) as fleet:
        def write() -> None:
            fleet.cluster.controller.log.append(known)

        fleet.nodes[0].in_loop(write)
        assert fleet.nodes[0].levels[METADATA_VERSION] == 21


# "Once the downgrade snapshot has been loaded by all nodes, a software downgrade is now possible."
def test_a_software_downgrade_is_possible_after_the_downgrade() -> None:
    with kip(levels={METADATA_VERSION: 33, "transaction.version": 0}) as fleet:
        for feature in ("share.version", "streams.version", "group.version"):
            assert update(fleet, 0, SAFE_DOWNGRADE, feature=feature) == (OK, None)
        node = fleet.nodes[0]
        assert update(fleet, 21, UNSAFE_DOWNGRADE) == (OK, None)
        node.downgrade("3.9")
        assert node.alive and not node.fenced and node.levels == {METADATA_VERSION: 21, "kraft.version": 1}


# Metadata version change implementation


# "We will write a snapshot to disk at the offset right before the metadata version change."
def test_a_snapshot_is_written_right_before_the_change(tmp_path: Path) -> None:
    with kip(levels={METADATA_VERSION: 30}, topics={"t": 5}) as fleet:
        node = fleet.nodes[0]
        before = node.image
        assert update(fleet, 33) == (OK, None)
        ((name, content),) = node.snapshots.items()
        assert name == f"{before.offset + 1:020d}-{before.epoch:010d}.checkpoint"
        (tmp_path / name).write_bytes(content)
        read = ClusterImage.read(tmp_path / name)
        assert (read, read.offset, read.metadata_version) == (before, before.offset, 30)
        assert happened(fleet, "levels")[0]["snapshot"] == name
        assert update(fleet, 0, SAFE_DOWNGRADE, feature="group.version") == (OK, None)
        assert list(node.snapshots) == [name]  # metadata.version alone


# "We will serialize the in-memory state to a series of records at the new metadata version."
def test_the_state_is_serialized_at_the_new_version() -> None:
    with kip(levels={METADATA_VERSION: 16}, topics={"t": 1}) as fleet:
        def versions() -> dict[str, int]:
            return {type(record).__name__: version for record, version in fleet.image.records()}

        assert versions()["PartitionRecord"] == 0
        assert update(fleet, 33) == (OK, None)
        assert versions()["PartitionRecord"] == 2 and versions()["RegisterBrokerRecord"] == 4


# "This relies on the property that MetadataDelta only contains changes. So if a specific topic doesn't change (...), it
# should not be present in MetadataDelta."
def test_a_change_over_10_000_topics_is_a_delta_of_one_record() -> None:
    with kip(levels={METADATA_VERSION: 30}) as fleet:
        def create_topics() -> None:
            for number in range(10_000):
                fleet.cluster.create_topic(f"t{number}", 1)

        fleet.nodes[0].in_loop(create_topics)
        before = fleet.image
        assert len(before.topics) == 10_000
        assert update(fleet, 33) == (OK, None)
        (event,) = happened(fleet, "levels")
        assert (event["records"], event["losses"]) == (1, 0)
        after = fleet.image
        assert after.offset == before.offset + 1 and len(before.diff(after)) == 1


# The workflows, step by step


class Step(NamedTuple):
    """A step, and what is there after it: the software of all nodes, or a level. None: a client is not told.

    offset: FinalizedFeaturesEpoch; epoch: of the active controller; apis: how many each broker offers; update_features,
    fetch: their ranges; snapshot: the new one.
    """

    change: str | int
    level: int | None
    offset: int
    epoch: int
    apis: int
    update_features: tuple[int, int] | None
    fetch: tuple[int, int]
    snapshot: str | None = None


# 2.8 is a preview: level 1 is initialized by 3.3. 55 of 3.9's 61 APIs and 71 of 4.4's 77 are there below the levels of
# SCRAM and delegation tokens. Each roll elects two controllers, and registers three brokers again. At 21 the
# three controllers register too.
UPGRADE_STEPS = (
    Step("2.8", None, 10, 1, 32, None, (0, 12)),
    Step("3.3", 1, 28, 3, 49, (0, 1), (0, 13)),
    Step(4, 4, 29, 3, 49, (0, 1), (0, 13), "00000000000000000029-0000000003.checkpoint"),
    Step("3.9", 4, 46, 5, 55, (0, 1), (0, 17)),
    Step(7, 7, 47, 5, 55, (0, 1), (0, 17), "00000000000000000047-0000000005.checkpoint"),
    Step("4.4", 7, 64, 7, 71, (0, 2), (4, 18)),
    Step(21, 21, 68, 7, 77, (0, 2), (4, 18), "00000000000000000065-0000000007.checkpoint"),
    Step(33, 33, 69, 7, 77, (0, 2), (4, 18), "00000000000000000069-0000000007.checkpoint"),
)
DOWNGRADE_STEPS = (
    Step(21, 21, 70, 7, 77, (0, 2), (4, 18), "00000000000000000070-0000000007.checkpoint"),
    Step(7, 7, 71, 7, 71, (0, 2), (4, 18), "00000000000000000071-0000000007.checkpoint"),
    Step("3.9", 7, 88, 9, 55, (0, 1), (0, 17)),
    Step(1, 1, 89, 9, 55, (0, 1), (0, 17), "00000000000000000089-0000000009.checkpoint"),
    Step("2.8", None, 106, 11, 32, None, (0, 12)),
)


def state(fleet: Fleet, step: Step) -> Step:
    """What all nodes show after a step."""
    answers = [asked(node.address) for node in fleet.nodes]
    assert all(answer == answers[0] for answer in answers)
    ranges, snapshots = advertised(fleet.nodes[0].address), [*fleet.nodes[0].snapshots]
    return Step(
        step.change, {row.name: row.max_version_level for row in answers[0].finalized_features}.get(METADATA_VERSION),
        answers[0].finalized_features_epoch, fleet.cluster.controller.log.epoch, len(ranges),
        ranges.get("UpdateFeatures"), ranges["Fetch"], snapshots[-1] if isinstance(step.change, int) else None)


def roll(fleet: Fleet, release: str, change: str) -> None:
    """Restart node by node with other software; clients are served by all of them all the time."""
    for node in fleet.nodes:
        getattr(node, change)(release)
        assert not any(one.fenced for one in fleet.nodes)
        with connect_sync(node.address) as connection:
            answer: Any = connection.send(messages.MetadataRequest(topics=None))
            assert len(answer.brokers) == 3 and {row.name for row in answer.topics} == {"t"}
            assert all(part.leader_id > 0 for row in answer.topics for part in row.partitions)


# "Operator performs rolling restart of cluster with a new software version. Operator increases metadata.version feature
# flag", from a preview cluster of 2.8 to 4.4; and "operator decreases metadata.version", then the software, back to it.
def test_the_rolling_upgrade_from_2_8_to_4_4_and_the_downgrade() -> None:
    with kip("2.8", 3, topics={"t": 3}) as fleet:
        for step in UPGRADE_STEPS:
            if isinstance(step.change, int):
                assert update(fleet, step.change) == (OK, None)
            elif step.change != "2.8":
                roll(fleet, step.change, "upgrade")
            assert state(fleet, step) == step
        for step in DOWNGRADE_STEPS:
            if isinstance(step.change, int):
                assert update(fleet, step.change, SAFE_DOWNGRADE)[0] == REFUSED
                assert update(fleet, step.change, UNSAFE_DOWNGRADE) == (OK, None)
            else:
                roll(fleet, step.change, "downgrade")
            assert state(fleet, step) == step
        assert len(fleet.image.topics["t"].partitions) == 3
        assert happened(fleet, "terminated") == happened(fleet, "registration refused") == []
        assert [one["snapshot"] for one in happened(fleet, "levels")] == [*fleet.nodes[0].snapshots]


# "The addition of --unsafe in the kafka-features tool (...) is meant to override this behavior."
def test_the_tool_upgrades_and_downgrades_unsafely() -> None:
    with kip("4.3", levels={METADATA_VERSION: 29}) as fleet:
        def tool(*line: str) -> tuple[int, str]:
            code, out, _ = kwire_features("--as", "4.3", "--bootstrap-server", fleet.bootstrap, *line)
            return code, out.splitlines()[0]

        assert tool("upgrade", "--feature", "metadata.version=30") == (0, "metadata.version was upgraded to 30.")
        code, text = tool("downgrade", "--feature", "metadata.version=29")
        assert code == 1 and text.startswith("Could not downgrade metadata.version to 29.")
        unsafe = ("downgrade", "--feature", "metadata.version=29", "--unsafe")
        assert tool(*unsafe, "--dry-run") == (0, "metadata.version can be downgraded to 29.")
        assert fleet.nodes[0].levels[METADATA_VERSION] == 30
        assert tool(*unsafe) == (0, "metadata.version was downgraded to 29.")
        assert fleet.nodes[0].levels[METADATA_VERSION] == 29


@pytest.mark.parametrize(("keywords", "error"), [
    ({"rules": "kip"}, "rules must be 'released' or 'kip-778', not 'kip'"),
    ({"release": "4.4", "levels": {METADATA_VERSION: 99}}, "metadata.version 99 is not supported: expected 7 to 33"),
    ({"release": "2.8", "levels": {METADATA_VERSION: 1}}, "Kafka 2.8 has no feature levels"),
    ({"release": "2.8", "roles": ["broker,controller"]}, "roles= is for KRaft"),
    ({"release": "4.4", "roles": ["broker"]}, "at least one controller"),
    ({"release": "4.4", "roles": ["controller", "broker"]}, "for each of 1 nodes"),
    ({"release": "4.4", "roles": ["voter"]}, "roles must be")])
def test_wrong_arguments(keywords: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        Fleet(**keywords)


# A folder keeps the levels: the next fleet goes on at them, whatever its software's default is.
def test_a_folder_keeps_the_levels(tmp_path: Path) -> None:
    with kip("2.8", data=tmp_path, topics={"t": 1}) as fleet:
        fleet.nodes[0].upgrade("3.9")
        assert update(fleet, 14) == (OK, None)
    with kip("3.9", data=tmp_path) as fleet:
        image = fleet.image
        assert image.metadata_version == 14 and image.controllers == {} and list(image.topics) == ["t"]
        again = ClusterImage.read(image.write_snapshot(tmp_path / "snapshot"))
        assert again == image


def test_a_folder_keeps_the_levels_that_an_upgrade_brings(tmp_path: Path) -> None:
    with kip("2.8", data=tmp_path) as fleet:
        fleet.nodes[0].upgrade("3.9")
        levels = dict(fleet.cluster.levels)
        assert levels
    with kip("3.9", data=tmp_path) as fleet:
        assert {**fleet.cluster.levels, **levels} == fleet.cluster.levels and levels == {METADATA_VERSION: 1}


def test_without_a_controller_nothing_changes() -> None:
    with Fleet("4.4", 2, roles=["broker", "controller"], topics={}) as fleet:
        broker, controller = fleet.nodes
        assert not broker.fenced and broker.refused is None and fleet.controller is controller  # it tried again
        controller.stop()
        request = messages.CreateTopicsRequest
        topic = request.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        with connect_sync(broker.address) as connection:
            answer: Any = connection.send(request(topics=[topic]))
        assert answer.topics[0].error_code == ErrorCode.NOT_CONTROLLER and fleet.controller is None
        assert update(fleet, 32, SAFE_DOWNGRADE)[0] == ErrorCode.NOT_CONTROLLER
        broker.stop()
        broker.start()
        assert broker.fenced and broker.alive
        controller.start()
        assert not broker.fenced and fleet.controller is controller
        with connect_sync(broker.address) as connection:
            answer = connection.send(request(topics=[topic]))
        assert answer.topics[0].error_code == OK


def test_an_api_of_controllers_without_a_handler_answers_an_error() -> None:
    with kip() as fleet, connect_sync(fleet.nodes[0].controller_address) as connection:
        request = messages.FetchSnapshotRequest
        part = request.PartitionSnapshot(partition=0, snapshot_id=request.SnapshotId(end_offset=1, epoch=1))
        topic = request.TopicSnapshot(name="__cluster_metadata", partitions=[part])
        for version in range(connection.versions["FetchSnapshot"][1] + 1):
            answer: Any = connection.send(request(topics=[topic]), version)
            assert answer.topics[0].partitions[0].error_code == ErrorCode.UNSUPPORTED_VERSION


def test_old_snapshots_are_deleted() -> None:
    with kip(levels={METADATA_VERSION: 31}) as fleet:
        for number in range(MOST_SNAPSHOTS + 5):
            write_level(fleet, 30 + number % 2)
        names = [*fleet.nodes[0].snapshots]
        assert len(names) == MOST_SNAPSHOTS and names == sorted(names)


def test_nodes_show_why_they_are_down_or_fenced() -> None:
    with kip(releases=["4.4", "4.4"], roles=["controller,broker", "broker"]) as fleet:
        one: Node = fleet.nodes[1]
        one.downgrade("3.9")
        assert repr(one).endswith(", fenced)")
        one.stop()
        assert repr(one).endswith(", down)")
