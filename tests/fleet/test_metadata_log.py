"""The metadata log of a fleet: in memory and in a folder it is one log, and a start replays it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire import messages
from kwire.fleet import Fleet, ManualClock
from kwire.fleet.controller.metadata_log import MOST_SNAPSHOTS, MetadataLog
from kwire.fleet.disk.metadata_store import MetadataStore
from kwire.fleet.errors import ApiError
from kwire.net import connect_sync
from kwire.schema.error_codes import ErrorCode
from kwire.storage import ClusterImage, SegmentWriter
from kwire.storage.formatting.snapshots import quorum_snapshot
from kwire.storage.metadata.metadata_log import FOLDER
from kwire.storage.side_files.uuids import uuid_text
from tests.fleet.test_apis import batch, produce
from tests.fleet.test_disk_storage import Producer, killed
from tests.fleet.test_kip_778 import OK, UNSAFE_DOWNGRADE, update

pytestmark = pytest.mark.quick
M = messages
ID = UUID(int=77)
LEVEL = "metadata.version"


def apart(image: ClusterImage) -> list[Any]:
    """What an image says but for what belongs to a run: registrations, voters' ports."""
    return [
        record for _, record in image.tables
        if type(record).__name__ not in ("RegisterBrokerRecord", "RegisterControllerRecord")]


@contextmanager
def full_disk() -> Iterator[None]:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as disk:
        disk.setattr("kwire.storage.writing.segment_writer._Segment.append", full)
        yield


def set_configs(connection: Any, kind: int, name: str, **configs: str) -> int:
    request = M.IncrementalAlterConfigsRequest
    answer = connection.send(request(resources=[request.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[
            request.AlterableConfig(name=key, config_operation=0, value=value) for key, value in configs.items()])]))
    return int(answer.responses[0].error_code)


def create_acls(connection: Any, *names: str) -> list[int]:
    request = M.CreateAclsRequest
    answer = connection.send(request(creations=[
        request.AclCreation(
            resource_type=2, resource_name=name, resource_pattern_type=3, principal="User:a", host="*", operation=3,
            permission_type=3) for name in names]))
    return [row.error_code for row in answer.results]


def acls(connection: Any) -> list[str]:
    answer = connection.send(M.DescribeAclsRequest(
        resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, principal_filter=None,
        host_filter=None, operation=1, permission_type=1))
    return [row.resource_name for row in answer.resources]


def broker_configs(connection: Any, name: str) -> dict[str, str]:
    request = M.DescribeConfigsRequest
    answer = connection.send(request(resources=[request.DescribeConfigsResource(
        resource_type=4, resource_name=name, configuration_keys=None)]))
    return {row.name: row.value for row in answer.results[0].configs}


@pytest.mark.parametrize("release", ["2.0", "2.8", "3.3", "4.4"])
@pytest.mark.parametrize("is_killed", [False, True], ids=["closed", "killed"])
def test_what_it_holds_is_there_at_the_next_start(tmp_path: Path, release: str, is_killed: bool) -> None:
    folder = tmp_path / "data"
    is_kraft = release >= "3.3"
    with Fleet(release, data=folder, topics={"t": 2}) as fleet, connect_sync(fleet.bootstrap) as connection:
        assert create_acls(connection, "one", "two", "one") == [0, 0, 0]
        request = M.DeleteAclsRequest
        connection.send(request(filters=[request.DeleteAclsFilter(
            resource_type_filter=2, resource_name_filter="one", pattern_type_filter=3, operation=1,
            permission_type=1, principal_filter=None, host_filter=None)]))
        if "IncrementalAlterConfigs" in connection.versions:
            assert set_configs(connection, 4, "1", **{"log.cleaner.threads": "2"}) == 0
            assert set_configs(connection, 4, "", **{"log.cleaner.threads": "3"}) == 0
            assert set_configs(connection, 2, "t", **{"retention.ms": "9"}) == 0
        before = broker_configs(connection, "1"), broker_configs(connection, ""), fleet.cluster.topics["t"].configs
        producer = Producer(connection, "x").id if is_kraft else 0
        image = fleet.image if is_kraft else None
        if is_killed:
            folder = killed(folder, tmp_path)
    with Fleet(release, data=folder) as fleet, connect_sync(fleet.bootstrap) as connection:
        assert acls(connection) == ["two"]
        after = broker_configs(connection, "1"), broker_configs(connection, ""), fleet.cluster.topics["t"].configs
        assert after == before
        if image is not None:
            assert apart(fleet.image) == apart(image) and fleet.image.offset > image.offset
            assert fleet.image.epoch == image.epoch + 1 and fleet.image.kraft_version == image.kraft_version
            assert len(fleet.image.acls) == 1 and not fleet.image.brokers[1].fenced
            assert Producer(connection, "y").id > producer
        assert create_acls(connection, "one") == [0] and acls(connection) == ["two", "one"]


def test_it_is_the_log_in_the_folder(tmp_path: Path) -> None:
    """Offsets, epochs, records: fleet.image is what anybody reads there."""
    with Fleet("4.4", 3, data=tmp_path) as fleet:
        for number in range(3):
            fleet.cluster.create_topic(f"t{number}", 3, 3)
        fleet.nodes[1].stop()
        fleet.nodes[0].stop()  # the active controller
        fleet.nodes[0].start()
        read, mine = ClusterImage.read(tmp_path / "node-1"), fleet.image
        assert (read, read.offset, read.epoch, read.timestamp) == (mine, mine.offset, mine.epoch, mine.timestamp)
        assert mine.epoch == 2 and mine.brokers[2].fenced and not mine.brokers[1].fenced
        for topic in mine.topics.values():
            for index, record in topic.partitions.items():
                (home,) = record.isr  # where the log is
                assert home == record.replicas[0]
                assert record.leader_epoch == fleet.cluster.partition(topic.name, index).leader_epoch
    read = ClusterImage.read(tmp_path / "node-1")
    assert all(record.fenced for record in read.brokers.values())
    text = (tmp_path / "node-3" / ".kafka_cleanshutdown").read_text()
    assert text == f'{{"version":0,"brokerEpoch":{read.brokers[3].broker_epoch}}}'


def test_the_voter_of_a_folder_is_the_node_that_has_the_log(tmp_path: Path) -> None:
    with Fleet("4.4", 3, data=tmp_path, roles=["broker", "controller", "broker,controller"]) as fleet:
        (voter,) = fleet.image.voters
        assert (voter.voter_id, voter.endpoints[0].port) == (2, fleet.nodes[1].controller_port)
        assert f"directory.id={uuid_text(voter.voter_directory_id)}" in (
            tmp_path / "node-2" / "meta.properties").read_text()
    assert not (tmp_path / "node-1" / FOLDER).exists() and (tmp_path / "node-2" / FOLDER).exists()


ROLES = ["controller", "broker", "controller", "broker"]


@pytest.mark.parametrize("is_killed", [False, True], ids=["closed", "killed"])
def test_controllers_apart_from_brokers(tmp_path: Path, is_killed: bool) -> None:
    folder = tmp_path / "data"
    with Fleet("4.4", 4, data=folder, roles=ROLES, topics={"t": 2}) as fleet:
        one, _, three, _ = fleet.nodes
        assert [fleet.cluster.partition("t", index).leader for index in (0, 1)] == [2, 4]
        with connect_sync(fleet.nodes[1].address) as connection:
            assert produce(connection, batch("a")).error_code == 0
            producer = Producer(connection, "x")
            assert producer.write("b").error_code == 0 == producer.end(commit=True)
            one.stop()
            assert fleet.controller is three and create_acls(connection, "while one is down") == [0]
            three.stop()
            assert fleet.controller is None
            request = M.CreateTopicsRequest(topics=[
                M.CreateTopicsRequest.CreatableTopic(name="u", num_partitions=1, replication_factor=1)])
            assert connection.send(request).topics[0].error_code == ErrorCode.NOT_CONTROLLER
            assert produce(connection, batch("c")).error_code == 0  # brokers go on
            three.start()
            one.start()
            assert connection.send(request).topics[0].error_code == 0
        assert [node.id for node in fleet.nodes if (folder / f"node-{node.id}" / FOLDER).exists()] == [1]
        image = fleet.image
        assert set(image.brokers) == {2, 4} and set(image.controllers) == {1, 3} and image.epoch == 3
        if is_killed:
            folder = killed(folder, tmp_path)
    with Fleet("4.4", 4, data=folder, roles=ROLES) as fleet:
        assert apart(fleet.image) == apart(image) and not any(one.fenced for one in fleet.image.brokers.values())
        assert [record.value for record in fleet.records("t")] == [b"a", b"b", b"c"]
        with connect_sync(fleet.nodes[1].address) as connection:
            assert acls(connection) == ["while one is down"]
            assert Producer(connection, "x").epoch == producer.epoch + 1
        fleet.nodes[1].stop()
        assert fleet.cluster.partition("t", 0).leader == -1 == fleet.image.topics["t"].partitions[0].leader
        assert fleet.image.brokers[2].fenced
    assert ClusterImage.read(folder / "node-1").topics["t"].partitions[0].isr == (2,)
    with pytest.raises(kwire.KwireError, match=r"replicas on the nodes \[[24]\], the fleet's brokers are \[1, 3\]"):
        Fleet("4.4", 4, data=folder, roles=["broker", "controller"] * 2).__enter__()


def test_a_raised_kraft_version_is_kept(tmp_path: Path) -> None:
    with Fleet("4.4", data=tmp_path, levels={"kraft.version": 0}) as fleet:
        assert "kraft.version" not in fleet.nodes[0].levels and fleet.image.voters == ()
        assert update(fleet, 1, feature="kraft.version") == (OK, None)
        assert (fleet.image.kraft_version, len(fleet.image.voters)) == (1, 1)
    with Fleet("4.4", data=tmp_path) as fleet:
        assert fleet.nodes[0].levels["kraft.version"] == 1 and fleet.image.kraft_version == 1


def test_what_a_lossy_downgrade_lost_does_not_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Fleet("3.9", data=folder, topics={"t": 1}, rules="kip-778") as fleet:
        fleet.cluster.controller.log.append(M.UserScramCredentialRecord(name="u", mechanism=1, iterations=4096))
        assert update(fleet, 10, UNSAFE_DOWNGRADE) == (OK, None)  # 3.5-IV2 brought the users
        assert fleet.image.scram == {} == fleet.image.controllers
        names = [*fleet.nodes[0].snapshots]
        assert len(names) == 2  # right before the change, and of what is left
        assert update(fleet, 21) == (OK, None)
        image = fleet.image
        assert ClusterImage.read(folder / "node-1") == image and set(image.controllers) == {1}  # it registered again
        copy = killed(folder, tmp_path)
    with Fleet("3.9", data=copy, rules="kip-778") as fleet:
        assert fleet.image.scram == {} and apart(fleet.image) == apart(image)
        assert [*fleet.nodes[0].snapshots] == names  # that before the next change is the second one


def test_old_snapshots_of_a_folder_are_deleted(tmp_path: Path) -> None:
    with Fleet("4.4", data=tmp_path, rules="kip-778", levels={LEVEL: 31}) as fleet:
        for number in range(MOST_SNAPSHOTS + 3):
            fleet.cluster.controller.change_levels({LEVEL: 30 + number % 2})
        names = [*fleet.nodes[0].snapshots]
    found = sorted(path.name for path in (tmp_path / "node-1" / FOLDER).glob("*.checkpoint"))
    assert found == names and len(found) == MOST_SNAPSHOTS
    with Fleet("4.4", data=tmp_path, rules="kip-778") as fleet:
        assert [*fleet.nodes[0].snapshots] == names and fleet.image.metadata_version == 30


def test_what_has_happened_waits_for_a_disk_that_is_full(tmp_path: Path) -> None:
    with Fleet("4.4", 2, data=tmp_path, topics={"t": 2}) as fleet:
        offset = fleet.image.offset
        with full_disk():
            fleet.nodes[1].stop()
            fleet.nodes[0].stop()
            fleet.nodes[0].start()  # a new epoch, a new registration
            assert fleet.image.brokers[2].fenced and not fleet.nodes[0].fenced
            with pytest.raises(ApiError) as caught:
                fleet.cluster.create_topic("v", 1)
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR and "v" not in fleet.image.topics
            assert not (tmp_path / "node-1" / "v-0").exists()
            with connect_sync(fleet.nodes[0].address) as connection:
                assert create_acls(connection, "a") == [ErrorCode.KAFKA_STORAGE_ERROR]
                assert acls(connection) == [] and not broker_configs(connection, "1")
                assert set_configs(connection, 4, "1", a="b") == ErrorCode.KAFKA_STORAGE_ERROR
                assert broker_configs(connection, "1") == {} and not fleet.image.configs
            assert ClusterImage.read(tmp_path / "node-1").offset == offset
        fleet.cluster.create_topic("v", 1)
        assert ClusterImage.read(tmp_path / "node-1") == fleet.image
        fleet.nodes[1].start()
    with Fleet("4.4", 2, data=tmp_path) as fleet:
        assert set(fleet.cluster.topics) == {"t", "v"}


def test_a_batch_that_was_written_but_refused_is_taken_back(tmp_path: Path) -> None:
    """The .log took it, the index did not: it must not be there after the next one."""
    with Fleet("4.4", data=tmp_path) as fleet:
        def full(*_: Any, **__: Any) -> Any:
            raise OSError(28, "No space left on device")

        with pytest.MonkeyPatch.context() as disk:
            disk.setattr("kwire.storage.writing.index_writer.IndexWriter.add", full)
            with pytest.raises(ApiError):
                fleet.cluster.create_topic("gone", 1)
        fleet.cluster.create_topic("t", 1)
        assert ClusterImage.read(tmp_path / "node-1") == fleet.image and set(fleet.image.topics) == {"t"}


def test_an_open_metadata_transaction_is_aborted(tmp_path: Path) -> None:
    """Of a controller that was killed while it migrated (KIP-866): what it had begun is not done."""
    with Fleet("4.4", data=tmp_path, topics={"t": 1}) as fleet:
        log = fleet.cluster.controller.log
        for record in (M.BeginTransactionRecord(name="migration"), M.TopicRecord(name="half", topic_id=ID)):
            log._take([(None, kwire.encode_metadata_record(record, 0))])
        log._store, store = None, log._store  # the rest of the run is not kept
        store.close()
    with Fleet("4.4", data=tmp_path) as fleet:
        fleet.cluster.create_topic("u", 1)
    assert set(ClusterImage.read(tmp_path / "node-1").topics) == {"t", "u"}


def test_the_active_controller_fences_who_was_killed(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Fleet("4.4", 3, data=folder, topics={"t": 3}) as fleet:
        shutil.copytree(folder, tmp_path / "copy")
        assert not any(record.fenced for record in fleet.image.brokers.values())
    fleet = Fleet("4.4", 3, data=tmp_path / "copy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kwire.fleet.controller.controller.QuorumController._register", lambda *_: None)
        with fleet:  # nobody comes again
            assert [record.fenced for record in fleet.image.brokers.values()] == [False, True, True]


def test_leader_epochs_that_the_log_has_not_are_written(tmp_path: Path) -> None:
    """They are in leader-epoch-checkpoint: a kill lost the records of them."""
    with Fleet("4.4", data=tmp_path, topics={"t": 1}) as fleet:
        partition = fleet.cluster.partition("t", 0)
        partition.leader_epoch = 7
        with connect_sync(fleet.bootstrap) as connection:
            assert produce(connection, batch("a")).error_code == 0
    with Fleet("4.4", data=tmp_path) as fleet:
        assert fleet.cluster.partition("t", 0).leader_epoch == 7
        assert fleet.image.topics["t"].partitions[0].leader_epoch == 7
    assert ClusterImage.read(tmp_path / "node-1").topics["t"].partitions[0].leader_epoch == 7


def test_a_hostile_leader_epoch(tmp_path: Path) -> None:
    with Fleet("4.4", data=tmp_path, topics={"t": 1}) as fleet:
        known = fleet.image.topics["t"].partitions[0]
        known.leader_epoch = (1 << 31) - 1
        fleet.cluster.controller.log.append(known)
    with pytest.raises(kwire.KwireError, match="topic t has the leader epoch 2147483647"):
        Fleet("4.4", data=tmp_path).__enter__()


def test_a_folder_of_kafka_storage_format_or_of_an_early_fleet(tmp_path: Path) -> None:
    """One whose quorum is in the first snapshot, and whose log has levels and topics, but no registrations."""
    with Fleet("4.4", data=tmp_path, topics={"t": 1}, seed=5) as fleet:
        image = fleet.image
    folder = tmp_path / "node-1" / FOLDER
    shutil.rmtree(folder)
    folder.mkdir()
    voters = messages.VotersRecord(voters=list(image.voters))
    (folder / "00000000000000000000-0000000000.checkpoint").write_bytes(quorum_snapshot(1, voters, None, 1))
    kept = [(record, version) for record, version in image.records()
            if type(record).__name__ not in ("RegisterBrokerRecord", "RegisterControllerRecord")]
    with SegmentWriter(tmp_path / "node-1", "__cluster_metadata", 0) as writer:
        rows = [(1, None, kwire.encode_metadata_record(*one)) for one in kept]
        writer.append(kwire.build_batch(rows, partition_leader_epoch=1))
    for turn in (2, 3):
        with Fleet("4.4", data=tmp_path) as fleet:
            assert apart(fleet.image) == apart(image) and fleet.nodes[0].levels["kraft.version"] == 1
            assert (fleet.image.epoch, fleet.image.voters[0].voter_id) == (turn, 1) and not fleet.nodes[0].fenced


def test_a_hostile_epoch(tmp_path: Path) -> None:
    with Fleet("4.4", data=tmp_path) as fleet:
        fleet.cluster.controller.log.epoch = (1 << 31) - 1
        fleet.cluster.create_topic("t", 1)
    with pytest.raises(kwire.KwireError, match=r"the epoch 2147483647 of the metadata log: expected at most"):
        Fleet("4.4", data=tmp_path).__enter__()


def test_a_fleet_that_is_refused_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Fleet("4.4", data=folder, topics={"t": 1}):
        folder = killed(folder, tmp_path)
    before = {path: path.read_bytes() for path in folder.rglob("*.log")}
    for release in ("3.9", "2.8"):
        with pytest.raises(kwire.KwireError, match="does not support the finalized levels"):
            Fleet(release, data=folder).__enter__()
    assert {path: path.read_bytes() for path in folder.rglob("*.log")} == before


def test_it_is_closed_with_the_folder(tmp_path: Path) -> None:
    store = MetadataStore(str(tmp_path), lambda: None)
    log = MetadataLog(ManualClock())
    log.open(store)
    log.append(M.TopicRecord(name="t", topic_id=ID))
    log.close()
    log.append(M.RemoveTopicRecord(topic_id=ID))
    store.close()
    assert set(ClusterImage.read(tmp_path).topics) == {"t"} and not log.topics
