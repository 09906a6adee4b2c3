"""Leaders that are elected, replicas that move, and where the data is: by the wire, as Kafka's tools ask for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwire import messages
from kwire.fleet import Fleet
from kwire.net import SyncConnection, connect_sync
from kwire.schema.error_codes import ErrorCode
from tests.fleet.test_apis import batch, produce

pytestmark = pytest.mark.quick
E = ErrorCode
PREFERRED, UNCLEAN = 0, 1
M = messages


def elect(connection: SyncConnection, *partitions: int, kind: int = PREFERRED) -> dict[int, tuple[int, str | None]]:
    """Partition of t -> (error code, text); no partition: all of all topics."""
    row = M.ElectLeadersRequest.TopicPartitions(topic="t", partitions=list(partitions))
    answer: Any = connection.send(
        M.ElectLeadersRequest(election_type=kind, topic_partitions=[row] if partitions else None, timeout_ms=1000))
    assert answer.error_code == 0
    return {one.partition_id: (one.error_code, one.error_message)
            for topic in answer.replica_election_results for one in topic.partition_result}


def reassign(connection: SyncConnection, replicas: list[int] | None, partition: int = 0, **more: Any) -> int:
    """The error code."""
    request = M.AlterPartitionReassignmentsRequest
    row = request.ReassignablePartition(partition_index=partition, replicas=replicas)
    answer: Any = connection.send(request(
        topics=[request.ReassignableTopic(name="t", partitions=[row])], timeout_ms=1000, **more))
    return int(answer.responses[0].partitions[0].error_code)


def three(**more: Any) -> Fleet:
    return Fleet("4.4", 3, **more)


def test_the_first_replica_leads_again() -> None:
    with three() as fleet, connect_sync(fleet.nodes[1].address) as connection:
        fleet.cluster.create_topic("t", 2, 2)
        partition = fleet.cluster.partition("t", 0)
        assert elect(connection, 0, 1, 9) == {
            0: (E.ELECTION_NOT_NEEDED, E.ELECTION_NOT_NEEDED.message),
            1: (E.ELECTION_NOT_NEEDED, E.ELECTION_NOT_NEEDED.message),
            9: (E.UNKNOWN_TOPIC_OR_PARTITION, "No such partition as t-9")}
        fleet.nodes[0].stop()
        assert elect(connection, 0)[0][0] == E.PREFERRED_LEADER_NOT_AVAILABLE
        assert elect(connection, 0, kind=UNCLEAN)[0][0] == E.ELECTION_NOT_NEEDED
        fleet.nodes[0].start()
        assert (partition.leader, partition.leader_epoch) == (2, 1)
        assert elect(connection) == {0: (E.NONE, None)}  # of all, those that needed it
        assert (partition.leader, partition.leader_epoch) == (1, 2)
        known = next(iter(fleet.image.topics.values())).partitions[0]
        assert (known.leader, known.leader_epoch, sorted(known.isr)) == (1, 2, [1, 2])


@pytest.mark.parametrize(("release", "code"), [("2.3", E.NONE), ("2.4", E.ELECTION_NOT_NEEDED)])
def test_an_election_that_nobody_needs(release: str, code: ErrorCode) -> None:
    with Fleet(release, topics={"t": 1}) as fleet, connect_sync(fleet.bootstrap) as connection:
        row = M.ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0])
        answer: Any = connection.send(M.ElectLeadersRequest(topic_partitions=[row]), 0)
        assert answer.replica_election_results[0].partition_result[0].error_code == code


@pytest.mark.parametrize("release", ["2.4", "3.9", "4.4"])
def test_a_partition_that_is_named_often_is_elected_once(release: str) -> None:
    """Its row has a text that is longer than what asks for it."""
    with Fleet(release, topics={"t": 1}) as fleet, connect_sync(fleet.bootstrap) as connection:
        row = M.ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0, 9] * 50)
        answer: Any = connection.send(M.ElectLeadersRequest(topic_partitions=[row], timeout_ms=1000), 1)
        found = [(one.partition_id, one.error_code)
                 for topic in answer.replica_election_results for one in topic.partition_result]
        assert found == [(0, E.ELECTION_NOT_NEEDED), (9, E.UNKNOWN_TOPIC_OR_PARTITION)]


def test_nobody_can_lead_without_a_replica() -> None:
    with three() as fleet, connect_sync(fleet.nodes[1].address) as connection:
        fleet.cluster.create_topic("t", 1, 1)
        fleet.nodes[0].stop()
        assert elect(connection, 0, kind=UNCLEAN)[0][0] == E.ELIGIBLE_LEADERS_NOT_AVAILABLE
        assert elect(connection)[0][0] == E.PREFERRED_LEADER_NOT_AVAILABLE


@pytest.mark.parametrize(("version", "epoch", "code"), [
    (10, -1, E.NOT_LEADER_OR_FOLLOWER), (12, 1, E.FENCED_LEADER_EPOCH), (12, -1, E.NONE)])
def test_a_fetch_that_waits_learns_of_the_new_leader(version: int, epoch: int, code: ErrorCode) -> None:
    """From version 11 on any replica answers, unless the client has told which epoch it knows (KIP-392, KIP-320)."""
    with Fleet("3.9", 3) as fleet:
        fleet.cluster.create_topic("t", 1, 2)
        fleet.nodes[0].stop()
        fleet.nodes[0].start()
        part = M.FetchRequest.FetchPartition(
            partition=0, current_leader_epoch=epoch, fetch_offset=0, partition_max_bytes=1 << 20)
        request = M.FetchRequest(
            max_wait_ms=60_000 if code else 1000, min_bytes=1, max_bytes=1 << 20,
            topics=[M.FetchRequest.FetchTopic(topic="t", partitions=[part])])
        codes = []

        def wait() -> None:
            with connect_sync(fleet.nodes[1].address) as connection:
                answer: Any = connection.send(request, version)
                codes.append(answer.responses[0].partitions[0].error_code)

        waiting = threading.Thread(target=wait)
        waiting.start()
        log = fleet.cluster.partition("t", 0).log
        while not log.watchers:
            assert waiting.is_alive()
        with connect_sync(fleet.nodes[0].address) as connection:
            assert elect(connection, 0) == {0: (E.NONE, None)}
        waiting.join(30)
        assert codes == [code]


def asked(address: str, request: Any, version: int | None = None) -> Any:
    """The answer of one node."""
    with connect_sync(address) as connection:
        return connection.send(request, version)


def test_which_replicas_answer() -> None:
    """Fetch from version 11 on: any of 2.4 and later (KIP-392). ListOffsets: the leader, to a client of its epoch."""
    part = M.FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch = M.FetchRequest(topics=[M.FetchRequest.FetchTopic(topic="t", partitions=[part])])
    unknown = M.ListOffsetsRequest.ListOffsetsPartition(current_leader_epoch=5, timestamp=-1)
    offsets = M.ListOffsetsRequest(topics=[M.ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[unknown])])
    producers = M.DescribeProducersRequest(
        topics=[M.DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0])])
    for release, versions in ("2.3", (10, 11)), ("2.4", (10, 11)), ("3.9", (10, 12)):
        with Fleet(release, 3) as fleet:
            fleet.cluster.create_topic("t", 1, 2)
            addresses = [node.address for node in fleet.nodes]
            with connect_sync(addresses[0]) as connection:
                produce(connection, batch("a"), version=7)
            old, new = ([asked(one, fetch, version).responses[0].partitions[0] for one in addresses]
                        for version in versions)
            assert [row.error_code for row in old] == [E.NONE, E.NOT_LEADER_OR_FOLLOWER, E.NOT_LEADER_OR_FOLLOWER]
            follower = E.NOT_LEADER_OR_FOLLOWER if release == "2.3" else E.NONE
            assert [row.error_code for row in new] == [E.NONE, follower, E.NOT_LEADER_OR_FOLLOWER]
            assert follower or new[1].records == new[0].records != b""
            assert [asked(one, offsets, 4).topics[0].partitions[0].error_code for one in addresses] == [
                E.UNKNOWN_LEADER_EPOCH, E.UNKNOWN_LEADER_EPOCH, E.NOT_LEADER_OR_FOLLOWER]
            if release == "3.9":
                assert [asked(one, producers).topics[0].partitions[0].error_code for one in addresses] == [
                    E.NONE, E.NONE, E.NOT_LEADER_OR_FOLLOWER]


def test_with_zookeeper_only_the_controller_makes_topics() -> None:
    """Brokers of KRaft forward to it."""
    row = M.CreateTopicsRequest.CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    move = M.AlterPartitionReassignmentsRequest
    requests: list[tuple[Any, Callable[[Any], int]]] = [
        (M.CreateTopicsRequest(topics=[row]), lambda answer: answer.topics[0].error_code),
        (M.CreatePartitionsRequest(topics=[M.CreatePartitionsRequest.CreatePartitionsTopic(
            name="t", count=2, assignments=None)]), lambda answer: answer.results[0].error_code),
        (M.ElectLeadersRequest(topic_partitions=None), lambda answer: max(
            (one.error_code for row in answer.replica_election_results for one in row.partition_result), default=0)),
        (move(topics=[move.ReassignableTopic(name="t", partitions=[move.ReassignablePartition(replicas=[3])])]),
         lambda answer: answer.error_code),
        (M.ListPartitionReassignmentsRequest(), lambda answer: answer.error_code),
        (M.AlterUserScramCredentialsRequest(deletions=[
            M.AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="u", mechanism=1)]),
         lambda answer: answer.results[0].error_code % E.RESOURCE_NOT_FOUND),
        (M.DeleteTopicsRequest(topic_names=["t"]), lambda answer: answer.responses[0].error_code)]
    for release, code in ("2.8", E.NOT_CONTROLLER), ("3.9", E.NONE):
        with Fleet(release, 3, topics={"t": 1}) as fleet:
            assert fleet.cluster.controller_id == 1
            for request, code_of in requests:
                version = 5 if isinstance(request, M.DeleteTopicsRequest) else None
                assert code_of(asked(fleet.nodes[1].address, request, version)) == code, (release, request)
                if code:
                    assert code_of(asked(fleet.nodes[0].address, request, version)) == E.NONE, (release, request)


def test_a_topic_whose_brokers_are_all_down_is_refused() -> None:
    assignment = M.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=[3])
    more = M.CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=2, assignments=[
        M.CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=[3])])
    with three(topics={"t": 1}) as fleet, connect_sync(fleet.nodes[0].address) as connection:
        fleet.nodes[2].stop()
        made: Any = connection.send(M.CreateTopicsRequest(topics=[M.CreateTopicsRequest.CreatableTopic(
            name="new", num_partitions=-1, replication_factor=-1, assignments=[assignment])]))
        grown: Any = connection.send(M.CreatePartitionsRequest(topics=[more]))
        text = ("All brokers specified in the manual partition assignment for partition {} are fenced or in controlled "
                "shutdown.")
        for row, index in (made.topics[0], 0), (grown.results[0], 1):
            assert (row.error_code, row.error_message) == (E.INVALID_REPLICA_ASSIGNMENT, text.format(index))
        assert "new" not in fleet.cluster.topics and len(fleet.cluster.topics["t"].partitions) == 1


def test_replicas_move_at_once() -> None:
    with three(topics={"t": 1}) as fleet, connect_sync(fleet.nodes[0].address) as connection:
        partition = fleet.cluster.partition("t", 0)
        produce(connection, batch("a"))
        assert reassign(connection, [1, 2]) == E.NONE
        assert (partition.replicas, partition.leader, partition.leader_epoch) == ([1, 2], 1, 0)
        assert reassign(connection, [3, 2]) == E.NONE  # its leader goes
        assert (partition.replicas, partition.leader, partition.leader_epoch) == ([3, 2], 3, 1)
        answer: Any = connection.send(M.ListPartitionReassignmentsRequest(topics=None))
        assert (answer.error_code, answer.topics) == (E.NONE, [])
        assert reassign(connection, None) == E.NO_REASSIGNMENT_IN_PROGRESS
        assert reassign(connection, [3], allow_replication_factor_change=False) == E.INVALID_REPLICATION_FACTOR
        for wrong in ([], [9], [3, 3]):
            assert reassign(connection, wrong) == E.INVALID_REPLICA_ASSIGNMENT
        assert reassign(connection, [3], partition=7) == E.UNKNOWN_TOPIC_OR_PARTITION
        known = next(iter(fleet.image.topics.values())).partitions[0]
        assert (known.replicas, known.leader, known.isr) == ((3, 2), 3, (3, 2))
        assert produce(connection, batch("b")).error_code == E.NOT_LEADER_OR_FOLLOWER
    assert [record.value for record in fleet.records("t")] == [b"a"]


def test_in_a_folder_the_first_replica_stays(tmp_path: Path) -> None:
    with three(data=tmp_path / "data", topics={"t": 1}) as fleet, connect_sync(fleet.nodes[0].address) as connection:
        produce(connection, batch("a"))
        assert reassign(connection, [2, 1]) == E.INVALID_REPLICA_ASSIGNMENT
        assert reassign(connection, [1, 3]) == E.NONE
    with three(data=tmp_path / "data") as fleet:
        partition = fleet.cluster.partition("t", 0)
        assert (partition.replicas, partition.leader) == ([1, 3], 1)
        assert [record.value for record in fleet.records("t")] == [b"a"]


def test_what_the_disk_refuses_does_not_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    with three(data=tmp_path / "data", topics={"t": 2}) as fleet, connect_sync(fleet.nodes[0].address) as connection:
        partition = fleet.cluster.partition("t", 0)
        with monkeypatch.context() as disk:
            disk.setattr("kwire.fleet.disk.metadata_store.MetadataStore.append", full)
            assert reassign(connection, [1, 2]) == E.KAFKA_STORAGE_ERROR
            assert (partition.replicas, partition.leader, partition.leader_epoch) == ([1], 1, 0)
        assert reassign(connection, [1, 2]) == E.NONE
        assert partition.replicas == [1, 2]


def log_dirs(connection: SyncConnection, topics: dict[str, list[int]] | None = None, version: int | None = None) -> Any:
    row = M.DescribeLogDirsRequest.DescribableLogDirTopic
    answer: Any = connection.send(M.DescribeLogDirsRequest(topics=None if topics is None else [
        row(topic=name, partitions=indexes) for name, indexes in topics.items()]), version)
    (found,) = answer.results
    return found


def sizes(found: Any) -> dict[str, dict[int, int]]:
    return {topic.name: {one.partition_index: one.partition_size for one in topic.partitions} for topic in found.topics}


def test_log_dirs_of_each_replica() -> None:
    with three() as fleet, connect_sync(fleet.nodes[0].address) as connection:
        fleet.cluster.create_topic("t", 2, 2)
        data = batch("a", "b")
        produce(connection, data)
        found = log_dirs(connection)
        assert sizes(found) == {"t": {0: len(data)}} and (found.total_bytes, found.usable_bytes) == (-1, -1)
        assert sizes(log_dirs(connection, {"t": [1], "u": [0]})) == {}
        with connect_sync(fleet.nodes[1].address) as other:
            assert sizes(log_dirs(other)) == {"t": {0: len(data), 1: 0}}
            assert sizes(log_dirs(other, {"t": [1]})) == {"t": {1: 0}}


def test_log_dirs_of_a_folder(tmp_path: Path) -> None:
    with three(data=tmp_path / "data", topics={"t": 1}) as fleet, connect_sync(fleet.nodes[0].address) as connection:
        produce(connection, batch("a"))
        found = log_dirs(connection)
        (log,) = (tmp_path / "data/node-1/t-0").glob("*.log")
        assert found.log_dir == os.fspath(tmp_path / "data/node-1") and sizes(found) == {"t": {0: log.stat().st_size}}
        assert 0 < found.usable_bytes <= found.total_bytes


@pytest.mark.parametrize(("release", "names"), [("2.5", []), ("2.8", ["t"]), ("3.6", ["t"]), ("3.7", [])])
def test_topics_without_an_asked_partition_are_named_by_some_releases(release: str, names: list[str]) -> None:
    with Fleet(release, topics={"t": 1}) as fleet, connect_sync(fleet.bootstrap) as connection:
        assert list(sizes(log_dirs(connection, {"other": [0]}))) == names


@pytest.mark.parametrize("on_disk", [False, True])
def test_of_two_moves_of_a_partition_the_last_one_counts(on_disk: bool, tmp_path: Path) -> None:
    data = tmp_path / "data" if on_disk else None
    with three(data=data) as fleet, connect_sync(fleet.nodes[0].address) as connection:
        fleet.cluster.create_topic("t", 1, 2)
        partition = fleet.cluster.partition("t", 0)
        first, *others = partition.replicas
        third = ({1, 2, 3} - {first, *others}).pop()
        request = M.AlterPartitionReassignmentsRequest
        rows = [request.ReassignablePartition(partition_index=0, replicas=[first, node])
                for node in (third, *others, third)]
        connection.send(request(topics=[request.ReassignableTopic(name="t", partitions=rows)], timeout_ms=1000))
        (known,) = (one.partitions[0] for one in fleet.image.topics.values())
        assert partition.replicas == list(known.replicas) == [first, third]
        assert partition.leader_epoch == known.leader_epoch == 1
    with three(data=data) as fleet:
        assert not on_disk or fleet.cluster.partition("t", 0).replicas == [first, third]


def test_replicas_that_are_all_down_are_those_in_sync() -> None:
    with three() as fleet, connect_sync(fleet.nodes[0].address) as connection:
        fleet.cluster.create_topic("t", 1, 1)
        here = fleet.cluster.partition("t", 0).replicas[0]
        gone = next(node for node in fleet.nodes[1:] if node.id != here)
        gone.stop()
        assert reassign(connection, [gone.id]) == 0
        (known,) = (one.partitions[0] for one in fleet.image.topics.values())
        assert (list(known.replicas), list(known.isr), known.leader) == ([gone.id], [gone.id], -1)
