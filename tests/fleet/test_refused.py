"""Requests that are wrong in what they say, with the answers of real brokers (tests/fleet/dialogue.py has more)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import kwire
from kwire import messages
from kwire.fleet import Fleet, ManualClock
from kwire.net import SyncConnection, connect_sync
from kwire.schema.error_codes import ErrorCode as E
from kwire_c.crc32c import crc32c
from tests.fleet.dialogue import Client

pytestmark = pytest.mark.quick
M: Any = messages
CLIENT = uuid.UUID("3f0c8e1a-8a5d-4a7e-9d10-6f7f0b5c2e11")


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet("4.4", topics={"t": 2}, clock=ManualClock()) as fleet:
        yield fleet


@pytest.fixture
def client(fleet: Fleet) -> Client:
    return Client(fleet.bootstrap)


@pytest.fixture
def connection(fleet: Fleet) -> Iterator[SyncConnection]:
    with connect_sync(fleet.bootstrap) as connection:
        yield connection


def subscriptions(client: Client, of: uuid.UUID = CLIENT) -> Any:
    return client.ask(M.GetTelemetrySubscriptionsRequest(client_instance_id=of), 0).message


def push(client: Client, subscription: int, **more: Any) -> int:
    request = M.PushTelemetryRequest(client_instance_id=CLIENT, subscription_id=subscription, **more)
    return int(client.ask(request, 0).message.error_code)


def test_telemetry_is_answered_and_not_advertised(client: Client, connection: SyncConnection) -> None:
    assert "GetTelemetrySubscriptions" not in connection.versions
    answer = subscriptions(client)
    assert (answer.error_code, answer.client_instance_id, answer.push_interval_ms) == (0, CLIENT, 300_000)
    assert (answer.accepted_compression_types, answer.requested_metrics) == ((4, 3, 1, 2), [])
    assert subscriptions(client, uuid.UUID(int=0)).client_instance_id.version == 4


def test_the_subscription_id_is_that_of_a_real_broker(client: Client) -> None:
    """As 4.3.0 computed them."""
    for of, expected in (
        ("00000000-0000-0000-0000-00000000004d", -725132397), ("36bc9133-84c6-4766-86f2-569d325a4f44", -770337710),
        ("02f8fe11-3368-4fa7-a53f-2d9483514588", -1019641228),
    ):
        assert subscriptions(client, uuid.UUID(of)).subscription_id == expected


def test_telemetry_waits_for_its_interval(fleet: Fleet, client: Client) -> None:
    subscription = subscriptions(client).subscription_id
    assert subscriptions(client).error_code == E.THROTTLING_QUOTA_EXCEEDED
    assert push(client, subscription) == 0  # the first one after the subscriptions
    assert push(client, subscription) == E.THROTTLING_QUOTA_EXCEEDED
    fleet.advance(301)
    assert push(client, subscription, compression_type=9) == E.UNSUPPORTED_COMPRESSION_TYPE
    fleet.advance(301)
    assert push(client, subscription, metrics=b"m" * ((1 << 20) + 1)) == E.TELEMETRY_TOO_LARGE
    fleet.advance(301)
    assert push(client, subscription + 1) == E.UNKNOWN_SUBSCRIPTION_ID
    assert subscriptions(client).error_code == 0  # who does not know its subscription may ask at once
    assert push(client, subscription, terminating=True) == 0
    assert push(client, subscription) == E.INVALID_REQUEST
    assert client.ask(M.PushTelemetryRequest(), 0).message.error_code == E.INVALID_REQUEST


def fetch(client: Client, session: int, epoch: int, version: int, topics: Any = ()) -> Any:
    return client.ask(M.FetchRequest(
        max_wait_ms=0, min_bytes=0, session_id=session, session_epoch=epoch, topics=list(topics)), version).message


def test_a_session_keeps_to_names_or_ids(fleet: Fleet, client: Client) -> None:
    part = M.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)
    named = [M.FetchRequest.FetchTopic(topic="t", partitions=[part])]
    made = fetch(client, 0, 0, 12, named)
    assert made.error_code == 0 and made.session_id
    assert fetch(client, made.session_id, 1, 13).error_code == E.FETCH_SESSION_TOPIC_ID_ERROR
    assert fetch(client, made.session_id, 1, 12).error_code == 0


def test_a_session_ends_with_its_last_partition(client: Client) -> None:
    made = fetch(client, 0, 0, 12)
    assert made.session_id
    answer = fetch(client, made.session_id, 1, 12)
    assert (answer.error_code, answer.session_id) == (0, 0)
    assert fetch(client, made.session_id, 2, 12).error_code == E.FETCH_SESSION_ID_NOT_FOUND


def produce(client: Client, records: bytes, version: int = 9, **more: Any) -> Any:
    row = M.ProduceRequest.PartitionProduceData(index=0, records=records)
    request = M.ProduceRequest(acks=more.pop("acks", -1), timeout_ms=1000, topic_data=[
        M.ProduceRequest.TopicProduceData(name=more.pop("topic", "t"), partition_data=[row])], **more)
    answer = client.ask(request, version)
    return answer if isinstance(answer, str) else answer.message.responses[0].partition_responses[0].error_code


BATCH = kwire.build_batch([(1, b"k", b"v")])
TRANSACTIONAL = kwire.build_batch(
    [(1, b"k", b"v")], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)


@pytest.mark.parametrize(("release", "cut", "two", "unnamed"), [
    ("4.4", E.INVALID_RECORD, E.INVALID_RECORD, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ("2.2", "closed", E.CORRUPT_MESSAGE, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ("1.1", "closed", "closed", 0),
])
def test_batches_that_are_none(release: str, cut: Any, two: Any, unnamed: Any) -> None:
    with Fleet(release, topics={"t": 1}) as fleet:
        client = Client(fleet.bootstrap)
        assert produce(client, BATCH[:-3], 5) == cut
        assert produce(client, b"", 5) == cut
        assert produce(client, BATCH + BATCH, 5) == two
        assert produce(client, TRANSACTIONAL, 5) == unnamed
        assert produce(client, BATCH, 5, acks=5) == E.INVALID_REQUIRED_ACKS
        assert produce(client, BATCH, 5, acks=5, topic="none") == E.UNKNOWN_TOPIC_OR_PARTITION
        assert produce(client, BATCH + BATCH[:20], 5) == 0  # the part of a batch is ignored


def changed(at: int, new: bytes, batch: bytes = BATCH) -> bytes:
    """A batch with these bytes there; its checksum holds."""
    batch = batch[:at] + new + batch[at + len(new):]
    return batch[:17] + crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]


@pytest.mark.parametrize("batch", [
    kwire.build_batch([(1, b"k", b"v")], base_offset=7), changed(57, b"\0\0\0\2"), changed(57, b"\x80\0\0\1"),
    changed(23, b"\0\0\0\1"), changed(23, b"\x80\0\0\0"), kwire.build_batch([]), changed(61, b"\0"),
    changed(65, b"\x7e"), changed(62, b"\1" * 6),
], ids=["base offset", "2 records", "-1 records", "last offset", "last offset below", "none", "record size", "key size",
        "garbage"])
@pytest.mark.parametrize(("release", "code"), [("4.4", E.INVALID_RECORD), ("2.4", E.INVALID_RECORD),
                                               ("2.3", E.CORRUPT_MESSAGE), ("0.11.0", E.CORRUPT_MESSAGE)])
def test_batches_that_a_broker_refuses(release: str, code: int, batch: bytes) -> None:
    with Fleet(release, topics={"t": 1}) as fleet:
        assert produce(Client(fleet.bootstrap), batch, 3) == code
        assert fleet.records("t") == []


def test_a_batch_that_cannot_be_decompressed(client: Client) -> None:
    packed = kwire.build_batch([(1, b"k", b"v" * 100)], codec="gzip")
    assert produce(client, changed(61, b"\xff", packed)) == E.UNKNOWN_SERVER_ERROR


def test_a_commit_without_a_partition_makes_no_group(fleet: Fleet, connection: SyncConnection) -> None:
    row = M.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)

    def commit(group: str, topic: str, generation: int = -1, member: str = "", version: int = 9) -> int:
        answer: Any = connection.send(M.OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=[
                M.OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=[row])]), version)
        return int(answer.topics[0].partitions[0].error_code)

    assert commit("g", "none") == E.UNKNOWN_TOPIC_OR_PARTITION
    assert "g" not in fleet.cluster.groups.groups
    assert commit("g", "t", 3) == E.GROUP_ID_NOT_FOUND
    assert commit("g", "t", 3, version=8) == E.ILLEGAL_GENERATION
    assert commit("g", "t", -1, "somebody") == 0  # an empty group keeps offsets for anybody
    assert commit("", "t") == 0
    leave: Any = connection.send(M.LeaveGroupRequest(members=[M.LeaveGroupRequest.MemberIdentity(member_id="m")]))
    assert leave.error_code == E.INVALID_GROUP_ID


def test_configs_of_client_metrics_and_groups(connection: SyncConnection) -> None:
    request = M.IncrementalAlterConfigsRequest

    def alter(kind: int, name: str, key: str, value: str | None) -> tuple[int, str | None]:
        answer: Any = connection.send(request(resources=[request.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[request.AlterableConfig(name=key, value=value)])]))
        return answer.responses[0].error_code, answer.responses[0].error_message

    assert alter(16, "m", "interval.ms", "1000") == (0, None)
    assert alter(32, "g", "consumer.session.timeout.ms", "50000") == (0, None)
    assert alter(16, "", "metrics", "x") == (E.INVALID_REQUEST, "Subscription name can't be empty")
    assert alter(16, "m", "interval.ms", "5")[0] == E.INVALID_REQUEST
    assert alter(16, "m", "match", "client_id") == (E.INVALID_CONFIG, "Illegal client matching pattern: client_id")
    assert alter(32, "g", "retention.ms", "1") == (E.INVALID_CONFIG, "Unknown group config name: retention.ms")
    assert alter(4, "x", "a", "1") == (E.INVALID_REQUEST, "Node id must be an integer, but it is: x")
    assert alter(2, "t", "retention.ms", None) == (
        E.INVALID_REQUEST, "Null value not supported for : retention.ms")
    listed: Any = connection.send(M.ListConfigResourcesRequest(resource_types=[16, 32]))
    assert {(row.resource_type, row.resource_name) for row in listed.config_resources} == {(16, "m"), (32, "g")}
    asked = M.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=16, resource_name="m", configuration_keys=None)
    described: Any = connection.send(M.DescribeConfigsRequest(resources=[asked]))
    assert {row.name: row.value for row in described.results[0].configs} == {
        "interval.ms": "1000", "match": "", "metrics": ""}


@pytest.mark.parametrize(("release", "code", "why"), [
    ("3.3", E.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0, or -1 to use the default value."),
    ("2.8", E.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
])
def test_a_topic_without_partitions_and_replicas(release: str, code: int, why: str) -> None:
    topic = M.CreateTopicsRequest.CreatableTopic(name="u", num_partitions=0, replication_factor=0)
    with Fleet(release) as fleet, connect_sync(fleet.bootstrap) as connection:
        (row,) = connection.send(M.CreateTopicsRequest(topics=[topic], timeout_ms=1000)).topics
        assert (row.error_code, row.error_message) == (code, why)


def test_topics_that_are_named_twice_are_not_deleted(fleet: Fleet, connection: SyncConnection) -> None:
    kind = M.DeleteTopicsRequest.DeleteTopicState
    (topic,) = connection.send(M.MetadataRequest(topics=None)).topics
    by_name, by_id = kind(name="t"), kind(name=None, topic_id=topic.topic_id)
    for asked, why in (
        ([by_name, by_name], "Duplicate topic name."), ([by_id, by_id], "Duplicate topic id."),
        ([by_name, by_id], "The provided topic name maps to an ID that was already supplied."),
    ):
        (row,) = connection.send(M.DeleteTopicsRequest(topics=asked, timeout_ms=1000)).responses
        assert (row.error_code, row.error_message) == (E.INVALID_REQUEST, why)
    (row,) = connection.send(M.DeleteTopicsRequest(topics=[by_id], timeout_ms=1000)).responses
    assert (row.name, row.error_code) == ("t", 0)


@pytest.mark.parametrize(("release", "name", "value", "why"), [
    ("4.4", "segment.ms", "0", "0 for configuration segment.ms: Value must be at least 1"),
    ("1.1", "segment.ms", "0", None),
    ("4.4", "segment.bytes", "1000000", "1000000 for configuration segment.bytes: Value must be at least 1048576"),
    ("4.0", "segment.bytes", "1000000", None),
    ("3.9", "compression.zstd.level", "23",
     "23 for configuration compression.zstd.level: Value must be no more than 22"),
    ("3.9", "compression.gzip.level", "0",
     "0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1"),
    ("3.9", "compression.gzip.level", "-1", None),
    ("4.4", "min.cleanable.dirty.ratio", "2",
     "2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1"),
    ("4.4", "leader.replication.throttled.replicas", "0:1, 2",
     "[0:1, 2] for configuration leader.replication.throttled.replicas: leader.replication.throttled.replicas must be "
     "the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],"
     "..."),
    ("4.4", "leader.replication.throttled.replicas", "0:1, 1:2", None),
    ("4.4", "cleanup.policy", " compact , delete ", None),
    ("4.4", "cleanup.policy", "delete,x", "x for configuration cleanup.policy: String must be one of: compact, delete"),
    ("4.4", "preallocate", "TRUE", None),
    ("4.4", "min.cleanable.dirty.ratio", "1d", None),
    ("4.4", "min.cleanable.dirty.ratio", "0x1p-1", None),
    ("4.4", "min.cleanable.dirty.ratio", "nan",
     "nan for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE"),
    ("4.4", "min.cleanable.dirty.ratio", "0_1",
     "0_1 for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE"),
    ("2.0", "compression.type", "zstd",
     "zstd for configuration compression.type: String must be one of: uncompressed, snappy, lz4, gzip, producer"),
])
def test_values_of_configs(release: str, name: str, value: str, why: str | None) -> None:
    kind = M.CreateTopicsRequest
    topic = kind.CreatableTopic(name="u", num_partitions=1, replication_factor=1, configs=[
        kind.CreatableTopicConfig(name=name, value=value)])
    with Fleet(release) as fleet, connect_sync(fleet.bootstrap) as connection:
        row = connection.send(kind(topics=[topic], timeout_ms=1000), 2).topics[0]
        assert row.error_message == (f"Invalid value {why}" if why else None)


@pytest.mark.parametrize("release", ["3.6", "4.4"])
def test_there_is_no_tiered_storage(release: str) -> None:
    kind = M.CreateTopicsRequest
    with Fleet(release) as fleet, connect_sync(fleet.bootstrap) as connection:
        for value, code in (("true", E.INVALID_CONFIG), ("false", 0)):
            topic = kind.CreatableTopic(name="u", num_partitions=1, replication_factor=1, configs=[
                kind.CreatableTopicConfig(name="remote.storage.enable", value=value)])
            assert connection.send(kind(topics=[topic], timeout_ms=1000)).topics[0].error_code == code


@pytest.mark.parametrize(("release", "why"), [
    ("4.4", "Duplicate topic name."), ("2.8", "Duplicate topic in request.")])
def test_a_topic_that_is_named_twice_does_not_grow(release: str, why: str) -> None:
    kind = M.CreatePartitionsRequest
    with Fleet(release, topics={"t": 1, "u": 1}) as fleet, connect_sync(fleet.bootstrap) as connection:
        rows = connection.send(kind(timeout_ms=1000, topics=[
            kind.CreatePartitionsTopic(name=name, count=count, assignments=None)
            for name, count in (("t", 2), ("u", 2), ("t", 3))])).results
        assert {row.name: (row.error_code, row.error_message) for row in rows} == {
            "t": (E.INVALID_REQUEST, why), "u": (0, None)}
        assert len(rows) == 2 and len(fleet.cluster.topics["t"].partitions) == 1


@pytest.mark.parametrize(("release", "code", "why"), [
    ("4.4", E.INVALID_CONFIG, "Can't SUBTRACT to key retention.ms because its type is not LIST."),
    ("2.8", E.INVALID_REQUEST, "Config value subtract is not allowed for config key: retention.ms"),
])
def test_what_is_taken_from_a_config_that_is_no_list(release: str, code: int, why: str) -> None:
    kind = M.IncrementalAlterConfigsRequest
    resource = kind.AlterConfigsResource(resource_type=2, resource_name="t", configs=[
        kind.AlterableConfig(name="retention.ms", config_operation=3, value="1")])
    with Fleet(release, topics={"t": 1}) as fleet, connect_sync(fleet.bootstrap) as connection:
        row = connection.send(kind(resources=[resource])).responses[0]
        assert (row.error_code, row.error_message) == (code, why)


def test_assignments_of_a_new_topic(connection: SyncConnection) -> None:
    row = M.CreateTopicsRequest.CreatableTopic

    def create(*replicas: tuple[int, list[int]], partitions: int = -1) -> str:
        assignments = [M.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=at, broker_ids=ids)
                       for at, ids in replicas]
        answer: Any = connection.send(M.CreateTopicsRequest(timeout_ms=1000, validate_only=True, topics=[
            row(name="new", num_partitions=partitions, replication_factor=-1, assignments=assignments)]))
        return str(answer.topics[0].error_message)

    assert create((0, [1])) == "None"
    assert create((0, [1]), partitions=1).endswith("but numPartitions was not set to -1.")
    assert create((0, [1]), (0, [1])) == "Found multiple manual partition assignments for partition 0"
    assert create((0, [])) == "The manual partition assignment includes an empty replica list."
    assert create((0, [1, 1])) == "The manual partition assignment includes the broker 1 more than once."
    assert create((0, [6])) == "The manual partition assignment includes broker 6, but no such broker is registered."
    assert create((1, [1])) == "partitions should be a consecutive 0-based integer sequence"


@pytest.mark.parametrize(("release", "answer"), [
    ("2.5", (E.UNKNOWN_SERVER_ERROR, None)),
    ("2.6", (E.INVALID_REQUEST, "Null value not supported for topic configs : cleanup.policy,x")),
    ("3.2", (E.INVALID_REQUEST, "Null value not supported for topic configs : cleanup.policy,x")),
    ("4.4", (E.INVALID_CONFIG, "Null value not supported for topic configs: cleanup.policy,x")),
])
def test_a_topic_with_configs_without_values(release: str, answer: tuple[int, str | None]) -> None:
    """As the brokers of 2.5.1, 2.6.3, 3.2.3 and 3.9.1 answered."""
    kind = M.CreateTopicsRequest
    with Fleet(release) as fleet, connect_sync(fleet.bootstrap) as connection:
        [row] = connection.send(kind(timeout_ms=1000, topics=[kind.CreatableTopic(
            name="t", num_partitions=1, replication_factor=1,
            configs=[kind.CreatableTopicConfig(name=name, value=None) for name in ("cleanup.policy", "x")])])).topics
        listed: Any = connection.send(M.MetadataRequest(topics=None))
    assert ((row.error_code, row.error_message), listed.topics) == (answer, [])
