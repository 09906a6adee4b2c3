"""A fleet's data in a folder: it goes on after a close and after a kill, and nobody else's data is touched."""

from __future__ import annotations

import os
import re
import resource
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire import messages
from kwire.fleet import Fleet, ManualClock
from kwire.fleet.cluster import partition_for
from kwire.fleet.coordinators.consumer_groups import ConsumerGroup
from kwire.fleet.disk.node_folder import NodeFolder
from kwire.fleet.errors import ApiError
from kwire.net import SyncConnection, connect_sync
from kwire.schema.error_codes import ErrorCode
from kwire.storage import ClusterImage, LogDirectory, SegmentWriter, read_leader_epochs, read_partition_metadata
from kwire.storage.side_files.checkpoints import read_offset_checkpoint
from tests.fleet.test_apis import batch, fetch, produce, values

pytestmark = pytest.mark.quick
E = ErrorCode
M = messages


@contextmanager
def running(folder: Path, release: str = "4.4", **more: Any) -> Iterator[tuple[Fleet, SyncConnection]]:
    with Fleet(release, data=folder, clock=ManualClock(), **more) as fleet, connect_sync(fleet.bootstrap) as connection:
        yield fleet, connection


def killed(folder: Path, tmp_path: Path) -> Path:
    """What a fleet that was killed now would leave."""
    copy = tmp_path / f"killed{len(list(tmp_path.iterdir()))}"
    shutil.copytree(folder, copy)
    return copy


def commit(
    connection: Any, offset: int, group: str = "g", topic: str = "t", expected: int = E.NONE, metadata: str = "m"
) -> None:
    request = M.OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[
        M.OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[
            M.OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=0, committed_offset=offset, committed_metadata=metadata)])])
    (row,) = connection.send(request, 8).topics
    assert row.partitions[0].error_code == expected


def committed(connection: Any, group: str = "g", topic: str = "t", stable: bool = True) -> tuple[int, int]:
    """(offset, error code)."""
    if connection.versions["OffsetFetch"][1] < 8:
        row = M.OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
        found = connection.send(M.OffsetFetchRequest(group_id=group, require_stable=stable, topics=[row]), 7).topics
    else:
        of_group = M.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[
            M.OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])])
        found = connection.send(M.OffsetFetchRequest(require_stable=stable, groups=[of_group]), 8).groups[0].topics
    (row,) = found[0].partitions
    return row.committed_offset, row.error_code


class Producer:
    """A transactional producer, request by request."""

    def __init__(self, connection: Any, name: str) -> None:
        self.connection, self.name, self.sequence = connection, name, 0
        made = connection.send(M.InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=800_000), 4)
        assert made.error_code == E.NONE
        self.id, self.epoch = made.producer_id, made.producer_epoch

    def write(self, *texts: str, topic: str = "t") -> Any:
        row = M.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0])
        self.connection.send(M.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name, v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch, v3_and_below_topics=[row]), 3)
        data = batch(*texts, producer_id=self.id, producer_epoch=self.epoch, base_sequence=self.sequence,
                     transactional=True)
        version = min(11, self.connection.versions["Produce"][1])
        answer = produce(self.connection, data, topic=topic, version=version, transactional_id=self.name)
        self.sequence += len(texts)
        return answer

    def commit_offset(self, offset: int, group: str = "g") -> None:
        own = {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch, "group_id": group}
        assert self.connection.send(M.AddOffsetsToTxnRequest(**own), 3).error_code == E.NONE
        row = M.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name="t", partitions=[
            M.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)])
        answer = self.connection.send(M.TxnOffsetCommitRequest(**own, topics=[row]), 3)
        assert answer.topics[0].partitions[0].error_code == E.NONE

    def end(self, commit: bool) -> int:
        request = M.EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=commit)
        return int(self.connection.send(request, 3).error_code)


@pytest.mark.parametrize("is_killed", [False, True], ids=["closed", "killed"])
def test_it_goes_on(tmp_path: Path, is_killed: bool) -> None:
    folder = tmp_path / "data"
    with running(folder, topics={"t": 2}) as (fleet, connection):
        cluster_id, topic_id = fleet.cluster.cluster_id, fleet.cluster.topics["t"].id
        assert produce(connection, batch("a", "b")).base_offset == 0
        assert produce(connection, batch("c", producer_id=7, producer_epoch=0, base_sequence=0)).base_offset == 2
        assert produce(connection, batch("x"), partition=1).base_offset == 0
        commit(connection, 2)
        gone, open_one = Producer(connection, "gone"), Producer(connection, "open")
        gone.write("aborted")
        open_one.write("pending")
        open_one.commit_offset(3)
        assert gone.end(commit=False) == E.NONE
        configs = fleet.cluster.topics["t"].configs
        fleet.cluster.apply_configs(fleet.cluster.topics["t"], {**configs, "max.message.bytes": "70000"})
        connection.send(M.CreatePartitionsRequest(topics=[
            M.CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=3, assignments=None)]))
        if is_killed:
            folder = killed(folder, tmp_path)
    with running(folder, topics={"t": 2}) as (fleet, connection):
        topic = fleet.cluster.topics["t"]
        assert (fleet.cluster.cluster_id, topic.id, len(topic.partitions)) == (cluster_id, topic_id, 3)
        assert topic.configs == {"max.message.bytes": "70000"}
        assert topic.partitions[0].log.settings.max_message_bytes == 70000
        assert values(fetch(connection, 0))[:3] == [b"a", b"b", b"c"]
        assert values(fetch(connection, 0, partition=1)) == [b"x"]
        row = fetch(connection, 0, isolation=1)
        assert (row.last_stable_offset, row.high_watermark) == (4, 6)  # a b c, aborted, pending, the marker
        assert [(one.producer_id, one.first_offset) for one in row.aborted_transactions] == [(gone.id, 3)]
        # what a producer sent before the restart is not written again
        again = produce(connection, batch("c", producer_id=7, producer_epoch=0, base_sequence=0))
        assert (again.error_code, again.base_offset) == (E.NONE, 2)
        wrong = produce(connection, batch("d", producer_id=7, producer_epoch=0, base_sequence=5))
        assert wrong.error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        # the open transaction is open, and the offsets that it committed wait for it
        assert committed(connection) == (-1, E.UNSTABLE_OFFSET_COMMIT)
        assert committed(connection, stable=False) == (2, E.NONE)
        open_one.connection = connection
        assert open_one.end(commit=True) == E.NONE
        assert committed(connection) == (3, E.NONE)
        assert fetch(connection, 0, isolation=1).last_stable_offset == 7
        # ids are not given out twice
        assert Producer(connection, "next").id > max(gone.id, open_one.id)
        new = connection.send(M.CreateTopicsRequest(topics=[
            M.CreateTopicsRequest.CreatableTopic(name="u", num_partitions=1, replication_factor=1)])).topics[0]
        assert new.error_code == E.NONE and new.topic_id != topic_id
    with running(folder) as (fleet, connection):
        assert committed(connection) == (3, E.NONE)
        assert set(fleet.cluster.topics) == {"t", "u", "__consumer_offsets", "__transaction_state"}


def test_the_folder_is_a_log_directory(tmp_path: Path) -> None:
    with running(tmp_path, topics={"t": 2}) as (fleet, connection):
        for text in "abc":
            produce(connection, batch(text))
        topic_id = fleet.cluster.topics["t"].id
    node = tmp_path / "node-1"
    (partition,) = (one for one in LogDirectory(node) if one.topic == "t")  # the other has no segment
    assert [record.value for record in partition.read()] == [b"a", b"b", b"c"]
    assert LogDirectory(node).verify() == []
    assert read_partition_metadata(node / "t-1" / "partition.metadata").topic_id == topic_id
    assert [tuple(one) for one in read_leader_epochs(node / "t-0" / "leader-epoch-checkpoint")] == [(0, 0)]
    ends = {(one.topic, one.partition): one.offset for one in read_offset_checkpoint(
        node / "replication-offset-checkpoint")}
    assert ends == {("t", 0): 3, ("t", 1): 0}
    image = ClusterImage.read(node)
    for record in image.topics["t"].partitions.values():  # a broker skips a leader whose partition epoch is below 0
        assert (record.leader, record.leader_epoch, record.partition_epoch, *record.isr) == (1, 0, 0, 1)
    assert image.topics["t"].id == topic_id and image.features == {
        name: level for name, level in fleet.cluster.levels.items() if name != "kraft.version"}
    text = (node / "meta.properties").read_text()
    assert f"cluster.id={fleet.cluster.cluster_id}" in text and "node.id=1" in text and "directory.id=" in text


@pytest.mark.parametrize("release", ["0.9.0", "2.8", "3.3"])
def test_folders_of_other_releases(tmp_path: Path, release: str) -> None:
    with Fleet(release, data=tmp_path, topics={"t": 1}) as fleet:
        fleet.cluster.partition("t", 0).log.append(list(kwire.read_batches(batch("a"))), 0, 1)
    is_kraft = release == "3.3"
    assert (tmp_path / "node-1" / "t-0" / "partition.metadata").exists() == is_kraft
    assert (tmp_path / "metadata").exists() != is_kraft
    text = (tmp_path / "node-1" / "meta.properties").read_text()
    assert ("node.id=1" in text and "cluster.id" in text) if is_kraft else (
        "broker.id=1" in text and "cluster.id" not in text)
    with Fleet(release, data=tmp_path) as again:
        assert [record.value for record in again.records("t")] == [b"a"]
        assert again.cluster.cluster_id == fleet.cluster.cluster_id


def test_nodes_have_folders_of_their_own(tmp_path: Path) -> None:
    with Fleet("4.4", 3, data=tmp_path, topics={"t": 3}) as fleet:
        for index in range(3):
            fleet.cluster.partition("t", index).log.append(list(kwire.read_batches(batch(f"{index}"))), 0, 1)
        fleet.nodes[1].stop()
        assert fleet.cluster.partition("t", 1).leader == -1  # it has one replica, which is down
        fleet.nodes[1].start()
        assert fleet.cluster.partition("t", 1).leader_epoch == 2
    assert [(tmp_path / f"node-{number}" / f"t-{number - 1}").is_dir() for number in (1, 2, 3)] == [True] * 3
    assert not (tmp_path / "node-2" / "t-0").exists()
    with Fleet("4.4", 3, data=tmp_path) as fleet:
        partition = fleet.cluster.partition("t", 1)
        assert (partition.leader, partition.leader_epoch) == (2, 2)
        assert [record.value for record in fleet.records("t", 1)] == [b"1"]
    with pytest.raises(kwire.KwireError, match=r"has replicas on the nodes \[3\], the fleet's brokers are \[1, 2\]"):
        Fleet("4.4", 2, data=tmp_path).__enter__()


def test_folders_of_another_cluster_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with Fleet("4.4", 2, data=tmp_path / name, seed=len(name) + (name == "two")):
            pass
    shutil.rmtree(tmp_path / "one" / "node-2")
    shutil.copytree(tmp_path / "two" / "node-2", tmp_path / "one" / "node-2")
    with pytest.raises(kwire.KwireError, match="is of node 2 of the cluster"):
        Fleet("4.4", 2, data=tmp_path / "one").__enter__()
    (tmp_path / "two" / "node-1" / "meta.properties").write_text("version=7\n")
    with pytest.raises(kwire.KwireError, match="version"):
        Fleet("4.4", 2, data=tmp_path / "two").__enter__()


def test_topics_are_deleted_with_their_folders(tmp_path: Path) -> None:
    with running(tmp_path, topics={"t": 1, "kept": 1}) as (fleet, connection):
        produce(connection, batch("old"))
        connection.send(M.DeleteTopicsRequest(topic_names=["t"]), 5)
        assert not (tmp_path / "node-1" / "t-0").exists()
        fleet.cluster.create_topic("t", 1)
        assert produce(connection, batch("new")).base_offset == 0
    (tmp_path / "node-1" / ("t-9." + "0" * 32 + "-delete")).mkdir()  # a kill in the middle of a deletion
    (tmp_path / "node-1" / "other-0").mkdir()  # and one before the folder got that name
    with running(tmp_path) as (fleet, connection):
        assert values(fetch(connection, 0)) == [b"new"]
        names = sorted(path.name for path in (tmp_path / "node-1").iterdir() if path.is_dir())
        assert [name.split(".")[0] for name in names] == ["__cluster_metadata-0", "kept-0", "other-0", "t-0"]
        assert names[2].endswith("-stray")


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    with running(tmp_path, topics={"t": 1}) as (_, connection):
        produce(connection, batch("a", "b", "c"))
        row = M.DeleteRecordsRequest.DeleteRecordsTopic(name="t", partitions=[
            M.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=2)])
        assert connection.send(M.DeleteRecordsRequest(topics=[row])).topics[0].partitions[0].low_watermark == 2
    (line,) = read_offset_checkpoint(tmp_path / "node-1" / "log-start-offset-checkpoint")
    assert tuple(line) == ("t", 0, 2)
    with running(tmp_path) as (_, connection):
        row = fetch(connection, 1)
        assert row.error_code == E.OFFSET_OUT_OF_RANGE
        assert fetch(connection, 2).log_start_offset == 2


def test_offsets_of_a_topic_that_was_being_deleted_are_not_those_of_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, copies = tmp_path / "data", list[Path]()
    with running(folder, topics={"t": 1, "u": 1}) as (fleet, connection):
        produce(connection, batch("1", "2", "3"))
        commit(connection, 3)
        commit(connection, 4, topic="u")
        going = fleet.cluster.groups.topic_deleted
        monkeypatch.setattr(
            fleet.cluster.groups, "topic_deleted", lambda *of: (copies.append(killed(folder, tmp_path)), going(*of)))
        connection.send(M.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    with running(copies[0]) as (fleet, connection):
        fleet.cluster.create_topic("t", 1)
        assert committed(connection) == (-1, 0) and committed(connection, topic="u") == (4, 0)
    with running(copies[0]) as (_, connection):
        assert committed(connection) == (-1, 0) and committed(connection, topic="u") == (4, 0)


def writes_of(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[Any]:
    """The arguments of each call of a method from now on."""
    real, calls = getattr(owner, name), list[Any]()

    def counted(*args: Any) -> Any:
        calls.append(args)
        return real(*args)

    monkeypatch.setattr(owner, name, counted)
    return calls


def test_the_starts_of_many_logs_are_kept_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row, of_topic = M.DeleteRecordsRequest.DeleteRecordsPartition, M.DeleteRecordsRequest.DeleteRecordsTopic
    with running(tmp_path, topics={"t": 30, "u": 1}) as (_, connection):
        for index in range(30):
            produce(connection, batch("1", "2"), partition=index)
        calls = writes_of(monkeypatch, NodeFolder, "_write")
        answer = connection.send(M.DeleteRecordsRequest(timeout_ms=1000, topics=[
            of_topic(name="t", partitions=[row(partition_index=index, offset=1) for index in range(30)]),
            of_topic(name="t", partitions=[row(partition_index=0, offset=2), row(partition_index=1, offset=3)]),
            of_topic(name="u", partitions=[row(partition_index=0, offset=-1)])]))
        assert [[(one.low_watermark, one.error_code) for one in topic.partitions] for topic in answer.topics] == [
            [(2, 0)] + [(1, 0)] * 29, [(2, 0), (-1, E.OFFSET_OUT_OF_RANGE)], [(0, 0)]]
        assert [name for _, name, _ in calls] == ["log-start-offset-checkpoint"]
        monkeypatch.setattr(NodeFolder, "_write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
        answer = connection.send(M.DeleteRecordsRequest(timeout_ms=1000, topics=[
            of_topic(name="t", partitions=[row(partition_index=index, offset=2) for index in (0, 1)])]))
        assert [(one.low_watermark, one.error_code) for one in answer.topics[0].partitions] == [
            (2, 0), (-1, E.KAFKA_STORAGE_ERROR)]
        monkeypatch.undo()
    with running(tmp_path) as (fleet, _):
        assert [one.log.start_offset for one in fleet.cluster.topics["t"].partitions] == [2] + [1] * 29


def test_partitions_join_a_transaction_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a request of n partitions does not write n^2 of them; what is refused has not joined."""
    with running(tmp_path, topics={"t": 30, "u": 1}) as (fleet, connection):
        made = connection.send(M.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
        data = batch("1", producer_id=made.producer_id, producer_epoch=made.producer_epoch, base_sequence=0,
                     transactional=True)
        of_topic, row = M.ProduceRequest.TopicProduceData, M.ProduceRequest.PartitionProduceData
        calls = writes_of(monkeypatch, fleet.cluster.storage, "transaction_changed")
        answer = connection.send(M.ProduceRequest(transactional_id="x", acks=-1, timeout_ms=1000, topic_data=[
            of_topic(name="t", partition_data=[row(index=index, records=data) for index in range(31)]),
            of_topic(name="u", partition_data=[row(index=0, records=b"no batch")])]), 12)
        codes = [one.error_code for topic in answer.responses for one in topic.partition_responses]
        assert codes == [0] * 30 + [E.UNKNOWN_TOPIC_OR_PARTITION, E.INVALID_RECORD]
        assert len(calls) == 1
        assert fleet.cluster.transactions.transactions["x"].participants == {("t", index) for index in range(30)}


def test_groups_are_deleted(tmp_path: Path) -> None:
    with running(tmp_path, topics={"t": 1}) as (_, connection):
        commit(connection, 1, "g")
        commit(connection, 2, "other")
        connection.send(M.DeleteGroupsRequest(groups_names=["g"]))
    with running(tmp_path) as (fleet, connection):
        assert set(fleet.cluster.groups.groups) == {"other"}
        assert committed(connection, "other") == (2, E.NONE)


def test_groups_of_kip_848_stay_so(tmp_path: Path) -> None:
    """Else a member's heartbeat after the restart would be a fatal GROUP_ID_NOT_FOUND: it shall join again."""

    def beat(connection: Any, group: str, epoch: int) -> Any:
        return connection.send(M.ConsumerGroupHeartbeatRequest(
            group_id=group, member_id="m", member_epoch=epoch, subscribed_topic_names=["t"],
            rebalance_timeout_ms=1000, topic_partitions=[]), 0)

    with running(tmp_path, topics={"t": 1}) as (fleet, connection):
        for group in ("g", "gone"):
            assert beat(connection, group, 0).error_code == E.NONE
            assert beat(connection, group, -1).error_code == E.NONE
        commit(connection, 5)
        assert beat(connection, "g", 0).error_code == E.NONE
        connection.send(M.DeleteGroupsRequest(groups_names=["gone"]))
    with running(tmp_path) as (fleet, connection):
        assert [type(group) for group in fleet.cluster.groups.groups.values()] == [ConsumerGroup]
        assert beat(connection, "g", 2).error_code == E.UNKNOWN_MEMBER_ID
        assert beat(connection, "g", 0).error_code == E.NONE
        assert committed(connection) == (5, E.NONE)


def test_levels_are_those_of_the_folder(tmp_path: Path) -> None:
    with Fleet("4.4", data=tmp_path, levels={"transaction.version": 1}) as fleet:
        fleet.cluster.controller.change_levels({"group.version": 0})
        levels = {name: level for name, level in fleet.cluster.levels.items() if level}
    with Fleet("4.4", data=tmp_path) as fleet:
        assert fleet.cluster.levels == levels
    with pytest.raises(kwire.KwireError, match=r"transaction\.version at level 1, not 2"):
        Fleet("4.4", data=tmp_path, levels={"transaction.version": 2}).__enter__()
    with pytest.raises(kwire.KwireError, match=r"Kafka 3\.9 does not support the finalized levels"):
        Fleet("3.9", data=tmp_path).__enter__()
    with pytest.raises(kwire.KwireError, match=r"Kafka 2\.8 does not support the finalized levels"):
        Fleet("2.8", data=tmp_path).__enter__()
    with Fleet("4.4", data=tmp_path) as fleet:  # the folder was let go each time
        assert fleet.cluster.levels == levels


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(FileExistsError, match=r"holds 'mine.txt': expected a new or empty folder") as caught:
        Fleet("4.4", data=tmp_path).__enter__()
    assert caught.value.filename == str(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    other = tmp_path / "other"
    (other / "node-1" / "thesis").mkdir(parents=True)
    with pytest.raises(FileExistsError, match="holds 'node-1'"):
        Fleet("4.4", data=other).__enter__()
    with pytest.raises(OSError, match="Not a directory"):
        Fleet("4.4", data=tmp_path / "mine.txt").__enter__()


def test_a_folder_needs_a_name() -> None:
    with pytest.raises(FileNotFoundError, match="the name of the data folder is empty"):
        Fleet("4.4", data="")


def test_one_fleet_at_a_time(tmp_path: Path) -> None:
    with Fleet("4.4", data=tmp_path, topics={"t": 1}) as fleet:
        with pytest.raises(OSError, match="another Fleet has it"):
            Fleet("4.4", data=tmp_path).__enter__()
        assert fleet.records("t") == []
        assert is_locked(tmp_path)
    with Fleet("4.4", data=tmp_path) as fleet:  # which opens the partitions and the metadata log again
        with pytest.raises(OSError, match=r"a Fleet of this process has locked it \(\.lock\)"):
            SegmentWriter(tmp_path / "node-1", "t", 0)
        with pytest.raises(OSError, match=r"a Fleet of this process has locked it \(\.lock\)"):
            SegmentWriter(tmp_path / "node-1", "other", 0)
        assert is_locked(tmp_path) and not (tmp_path / "node-1" / "other-0").exists()
    assert not is_locked(tmp_path)
    SegmentWriter(tmp_path / "node-1", "t", 0).close()


def is_locked(folder: Path) -> bool:
    """Does another process, as a broker that looks at .lock, see a lock?"""
    child = os.fork()
    if not child:
        import fcntl

        file = os.open(folder / "node-1" / ".lock", os.O_RDWR)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os._exit(7)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_full_disk_is_a_storage_error(tmp_path: Path) -> None:
    with running(tmp_path, topics={"t": 1, "u": 1}) as (fleet, connection):
        assert produce(connection, batch("a")).base_offset == 0
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))  # no file may become larger
        try:
            row = produce(connection, batch("b" * 300, producer_id=3, producer_epoch=0, base_sequence=0))
            assert (row.error_code, row.base_offset) == (E.KAFKA_STORAGE_ERROR, -1)
            created = connection.send(M.CreateTopicsRequest(topics=[
                M.CreateTopicsRequest.CreatableTopic(name="v", num_partitions=1, replication_factor=1)])).topics[0]
            assert created.error_code == E.KAFKA_STORAGE_ERROR and "v" not in fleet.cluster.topics
            assert values(fetch(connection, 0)) == [b"a"]
            commit(connection, 1, expected=E.KAFKA_STORAGE_ERROR, metadata="m" * 200)
            fleet.nodes[0].stop()
            fleet.nodes[0].start()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        with connect_sync(fleet.bootstrap) as another:
            again = produce(another, batch("b" * 300, producer_id=3, producer_epoch=0, base_sequence=0))
            assert (again.error_code, again.base_offset) == (E.NONE, 1)
            assert committed(another) == (-1, E.NONE)
        fleet.cluster.create_topic("v", 1)
    assert LogDirectory(tmp_path / "node-1").verify() == []
    with running(tmp_path) as (fleet, connection):
        assert [len(value or b"") for value in values(fetch(connection, 0))] == [1, 300]
        assert "v" in fleet.cluster.topics


def test_what_is_refused_is_not_done_and_can_be_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    with running(tmp_path, topics={"t": 1, "u": 1}) as (fleet, _):
        cluster, levels = fleet.cluster, fleet.cluster.levels
        with monkeypatch.context() as disk:
            disk.setattr("kwire.fleet.disk.metadata_store.MetadataStore.append", full)
            for refused in (
                    lambda: cluster.apply_configs(cluster.topics["t"], {"max.message.bytes": "7"}),
                    lambda: cluster.controller.change_levels({"group.version": 0}),
                    lambda: cluster.create_topic("v", 1)):
                with pytest.raises(ApiError):
                    refused()
        with monkeypatch.context() as disk:
            disk.setattr("kwire.fleet.disk.node_folder.NodeFolder.name_topic", full)
            with pytest.raises(ApiError):
                cluster.create_topic("w", 1)
        with monkeypatch.context() as disk:
            disk.setattr("kwire.fleet.disk.node_folder.NodeFolder.forget", full)
            cluster.delete_topic(cluster.topics["u"])
        assert set(cluster.topics) == {"t"} and not cluster.topics["t"].configs
        assert cluster.levels == levels
        cluster.controller.change_levels({"group.version": 0})
        cluster.create_topic("v", 1)
    image = ClusterImage.read(tmp_path / "node-1")
    assert {topic.name for topic in image.topics.values()} == {"t", "v"} and "group.version" not in image.features


def test_damage_is_an_error(tmp_path: Path) -> None:
    with running(tmp_path, topics={"t": 1}) as (_, connection):
        for text in "abc":
            produce(connection, batch(text))
    path = tmp_path / "node-1" / "t-0" / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    data[100] ^= 1  # in the second of three batches
    path.write_bytes(data)
    with pytest.raises(kwire.KwireError, match="salvage"):
        Fleet("4.4", data=tmp_path).__enter__()
    assert path.read_bytes() == data
    assert not (tmp_path / "node-1" / ".kafka_cleanshutdown").exists()  # a broker shall look at it too
    SegmentWriter(tmp_path / "node-1", "u", 0).close()  # and the folder was let go


@pytest.mark.parametrize("records", [
    [M.TopicRecord(name="../../evil", topic_id=uuid.UUID(int=5)),
     M.PartitionRecord(topic_id=uuid.UUID(int=5), replicas=[1], isr=[1], leader=1)],
    [M.TopicRecord(name="t", topic_id=uuid.UUID(int=5))],
    [M.TopicRecord(name="t", topic_id=uuid.UUID(int=5)),
     M.PartitionRecord(topic_id=uuid.UUID(int=5), partition_id=1, replicas=[1], isr=[1], leader=1)],
    [M.TopicRecord(name="t", topic_id=uuid.UUID(int=5)),
     M.PartitionRecord(topic_id=uuid.UUID(int=5), replicas=[], isr=[], leader=1)],
    [M.TopicRecord(name="t", topic_id=uuid.UUID(int=5)),
     M.PartitionRecord(topic_id=uuid.UUID(int=5), replicas=[-5], isr=[1], leader=1)],
    [M.TopicRecord(name="t", topic_id=uuid.UUID(int=5)),
     M.PartitionRecord(topic_id=uuid.UUID(int=5), replicas=[1], isr=[1], leader=1),
     M.ConfigRecord(resource_type=2, resource_name="t", name="segment.bytes", value="many")],
], ids=["path", "no-partition", "gap", "no-replica", "no-node", "config"])
def test_a_hostile_metadata_log(tmp_path: Path, records: list[Any]) -> None:
    with Fleet("4.4", data=tmp_path / "data") as fleet:
        fleet.cluster.controller.log.append(*records)
    with pytest.raises(kwire.KwireError, match=re.escape(str(tmp_path))):
        Fleet("4.4", data=tmp_path / "data").__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_fleet_may_be_entered_again(tmp_path: Path) -> None:
    fleet = Fleet("4.4", data=tmp_path, topics={"t": 2})
    for number in range(2):
        with fleet, connect_sync(fleet.bootstrap) as connection:
            assert produce(connection, batch("a")).base_offset == number
            assert len(fleet.cluster.topics["t"].partitions) == 2
    assert [record.value for record in fleet.records("t")] == [b"a", b"a"]  # read from the files


def delete_records(connection: Any, offset: int) -> None:
    row = M.DeleteRecordsRequest.DeleteRecordsTopic(name="t", partitions=[
        M.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset)])
    answer = connection.send(M.DeleteRecordsRequest(topics=[row]))
    assert answer.topics[0].partitions[0].low_watermark == offset


@pytest.mark.parametrize("between", ["nothing", "a restart", "a kill"])
def test_a_start_is_not_that_of_a_later_log(tmp_path: Path, between: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoint could not be written when the topic was deleted."""
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    def old_start(folder: Path) -> bool:
        return "t 0 10" in (folder / "node-1" / "log-start-offset-checkpoint").read_text()

    folder = tmp_path / "data"
    new = [b"new0", b"new1", b"new2", b"new3", b"new4"]

    def made_again(fleet: Fleet, connection: SyncConnection) -> None:
        fleet.cluster.create_topic("t", 1)
        assert produce(connection, batch(*(value.decode() for value in new))).base_offset == 0

    with running(folder, topics={"t": 1}) as (fleet, connection):
        produce(connection, batch(*"0123456789"))
        delete_records(connection, 10)
        with monkeypatch.context() as disk:
            disk.setattr("kwire.fleet.disk.node_folder.NodeFolder.forget", full)
            fleet.cluster.delete_topic(fleet.cluster.topics["t"])
        assert old_start(folder)
        if between == "a kill":
            folder = killed(folder, tmp_path)
        if between == "nothing":
            made_again(fleet, connection)
            assert not old_start(folder)
            assert values(fetch(connection, 0)) == new
    if between != "nothing":
        assert old_start(folder)
        with running(folder) as (fleet, connection):
            made_again(fleet, connection)
    assert not old_start(folder)
    with running(folder) as (_, connection):
        assert values(fetch(connection, 0)) == new
        assert fetch(connection, 0).log_start_offset == 0


def test_a_folder_that_could_not_be_removed_is_not_that_of_a_later_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither its records nor its start, also where nothing is written to the new topic before a start."""
    def failing(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    with running(tmp_path, topics={"t": 1}) as (fleet, connection):
        produce(connection, batch(*"0123456789"))
        delete_records(connection, 3)
        with monkeypatch.context() as disk:
            disk.setattr("kwire.fleet.disk.node_folder.NodeFolder.forget", failing)
            disk.setattr("kwire.fleet.disk.segment_store.os.rename", failing)
            fleet.cluster.delete_topic(fleet.cluster.topics["t"])
        assert (tmp_path / "node-1" / "t-0" / f"{0:020}.log").exists()
        fleet.cluster.create_topic("t", 1)
        assert values(fetch(connection, 0)) == []
    with running(tmp_path) as (fleet, connection):
        assert (fleet.cluster.partition("t", 0).log.end_offset, values(fetch(connection, 0))) == (0, [])
        assert produce(connection, batch("a", "b")).base_offset == 0
    with running(tmp_path) as (_, connection):
        assert values(fetch(connection, 0)) == [b"a", b"b"]


def test_a_start_of_a_log_that_is_gone_goes(tmp_path: Path) -> None:
    """A checkpoint of before the topic was deleted is there again."""
    starts = tmp_path / "node-1" / "log-start-offset-checkpoint"
    with running(tmp_path, topics={"t": 1, "kept": 1}) as (fleet, connection):
        produce(connection, batch("a", "b"))
        delete_records(connection, 2)
        before = starts.read_text()
        fleet.cluster.delete_topic(fleet.cluster.topics["t"])
    starts.write_text(before)
    with running(tmp_path):
        assert read_offset_checkpoint(starts) == []


LONG = "l" * 249


@pytest.mark.parametrize("name", ["l" * 213, "l" * 220, LONG])
def test_a_topic_with_a_long_name_is_deleted_with_its_folder(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LocalLog.logDirNameWithSuffixCappedLength: a file's name has at most 255 characters."""
    node, tail = tmp_path / "node-1", r"-0\.[0-9a-f]{32}-delete"

    def folders() -> list[str]:
        return [path.name for path in node.iterdir() if path.name.startswith("ll")]

    with running(tmp_path, topics={name: 1}) as (fleet, connection):
        produce(connection, batch("old"), topic=name)
        with monkeypatch.context() as disk:
            disk.setattr("kwire.fleet.disk.segment_store.shutil.rmtree", lambda *_, **__: None)  # a kill before it
            fleet.cluster.delete_topic(fleet.cluster.topics[name])
        (gone,) = folders()
        length = 255 - len("-0." + "0" * 32 + "-delete")
        assert re.fullmatch(tail, gone[min(len(name), length) :]) and set(gone.split("-")[0]) == {"l"}
    with running(tmp_path) as (fleet, connection):
        assert folders() == []
        fleet.cluster.create_topic(name, 1)
        produce(connection, batch("middle"), topic=name)
        fleet.cluster.delete_topic(fleet.cluster.topics[name])
        assert folders() == []
        fleet.cluster.create_topic(name, 1)
        assert values(fetch(connection, 0, topic=name)) == []
    with running(tmp_path) as (fleet, connection):
        assert values(fetch(connection, 0, topic=name)) == []
        assert produce(connection, batch("new"), topic=name).base_offset == 0


def test_strays_with_long_names_are_put_aside(tmp_path: Path) -> None:
    node = tmp_path / "node-1"
    with running(tmp_path, topics={"t": 1}):
        pass
    stray = node / f"{LONG}-12345"
    stray.mkdir()
    (stray / "partition.metadata").write_text("version: 0\n")
    for _ in range(2):  # the second start leaves it
        with running(tmp_path):
            pass
        (aside,) = (path for path in node.iterdir() if path.name.startswith("ll"))
        assert re.fullmatch(r"l{210}-12345\.[0-9a-f]{32}-stray", aside.name) and len(aside.name) == 255
        assert [path.name for path in aside.iterdir()] == ["partition.metadata"]


def end_marker(connection: Any, producer: Producer, group: str, commit: bool, partition: int | None = None) -> int:
    """What a coordinator writes into the partition that has a group's offsets; the error code."""
    kind = M.WriteTxnMarkersRequest
    index = partition_for(group) if partition is None else partition
    answer = connection.send(kind(markers=[kind.WritableTxnMarker(
        producer_id=producer.id, producer_epoch=producer.epoch, transaction_result=commit, coordinator_epoch=0,
        topics=[kind.WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=[index])])]), 1)
    return int(answer.markers[0].topics[0].partitions[0].error_code)


@pytest.mark.parametrize("partitions", [50, 1])
@pytest.mark.parametrize("commits", [True, False])
def test_a_marker_ends_what_waits_in_a_group(tmp_path: Path, commits: bool, partitions: int) -> None:
    """GroupCoordinator.onTransactionCompleted; a start reads the same. A real cluster's topic may have 1 partition."""
    expected = (5 if commits else 2, E.NONE)
    index = partition_for("g", partitions)
    with running(tmp_path, topics={"t": 1}) as (fleet, connection):
        fleet.cluster.create_topic("__consumer_offsets", partitions)
        commit(connection, 2)
        producer, other = Producer(connection, "x"), Producer(connection, "other")
        producer.commit_offset(5)
        other.commit_offset(9, "elsewhere")
        assert partition_for("elsewhere") != partition_for("g")
        assert committed(connection) == (-1, E.UNSTABLE_OFFSET_COMMIT)
        if partitions > 1:
            assert end_marker(connection, producer, "g", commits, (index + 1) % partitions) == E.NONE
            assert committed(connection) == (-1, E.UNSTABLE_OFFSET_COMMIT)  # it waits in another one
        assert end_marker(connection, producer, "g", commits, index) == E.NONE
        assert committed(connection) == expected
        assert committed(connection, "elsewhere") == (-1, E.UNSTABLE_OFFSET_COMMIT)
    with running(tmp_path) as (fleet, connection):
        assert committed(connection) == expected
        assert committed(connection, "elsewhere") == (-1, E.UNSTABLE_OFFSET_COMMIT)
        producer.connection = other.connection = connection
        assert producer.end(commit=not commits) == E.NONE  # too late
        assert other.end(commit=True) == E.NONE
        assert (committed(connection), committed(connection, "elsewhere")) == (expected, (9, E.NONE))


def test_the_timeout_of_a_transaction_is_kept_to_the_millisecond(tmp_path: Path) -> None:
    def described(connection: Any) -> int:
        answer = connection.send(M.DescribeTransactionsRequest(transactional_ids=["x"]), 0)
        return int(answer.transaction_states[0].transaction_timeout_ms)

    with running(tmp_path) as (_, connection):
        connection.send(M.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1001), 4)
        assert described(connection) == 1001
    for _ in range(2):
        with running(tmp_path) as (_, connection):
            assert described(connection) == 1001
