"""ClusterImage: its content by name, as JSON without secrets, and what changed between two."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire import messages as m
from kwire.storage import ClusterImage, LogSegment
from kwire.storage.metadata import DowngradeError, metadata_log
from kwire.storage.metadata.replay import Replay
from tests.storage.metadata.records import Cluster, framed, image_of, newest

pytestmark = pytest.mark.quick

LAST = 254  # the last offset of the newest golden snapshot of one node


def folder(golden: Path, name: str = "kafka-4.3.0/data1") -> Path:
    return golden / "data" / name / metadata_log.FOLDER


def test_what_a_golden_cluster_has(golden: Path) -> None:
    image = ClusterImage.read(folder(golden), LAST)
    assert (image.offset, image.epoch, image.timestamp) == (LAST, 1, 1795225711671)
    assert image.metadata_version == 30 and image.kraft_version == 1 and image.next_producer_id == 1000
    assert image.features == {"metadata.version": 30, "group.version": 1, "transaction.version": 2,
                              "eligible.leader.replicas.version": 1, "share.version": 1}
    assert [voter.voter_id for voter in image.voters] == [1] and [*image.controllers] == [1]
    broker = image.brokers[1]
    assert (broker.fenced, broker.broker_epoch, len(broker.log_dirs), broker.cordoned_log_dirs) == (False, 20, 1, [])
    assert len(image.topics) == 17 and sum(len(topic.partitions) for topic in image.topics.values()) == 41
    topic = image.topics["__consumer_offsets"]
    assert image.topics_by_id[topic.id] == topic and topic.partitions[0].leader == 1
    assert image.configs[4, ""] == {"message.max.bytes": "2000000", "min.insync.replicas": "1"}
    assert image.quotas[("user", None),] == {"request_percentage": 50.0}
    assert {acl.principal for acl in image.acls.values()} == {"User:alice", "User:bob", "User:dave"}
    assert {*image.scram} == {("admin", 1), ("alice", 1), ("bob", 2)} and len(image.delegation_tokens) == 1
    assert "secret" not in repr(image) and repr(image).startswith("ClusterImage(offset=254, epoch=1, ")


def test_three_nodes(golden: Path) -> None:
    images = [ClusterImage.read(folder(golden, f"kafka-4.3.0-3nodes/data{node}"), 370) for node in (1, 2, 3)]
    assert images[0] == images[1] == images[2] and [*images[0].brokers] == [1, 2, 3] == sorted(images[0].controllers)
    assert len(images[0].voters) == 3


def test_json_has_everything_but_secrets(golden: Path) -> None:
    image = ClusterImage.read(folder(golden), LAST)
    value = image.to_json()
    text = json.dumps(value)
    assert json.loads(text) == value
    for record in image.scram.values():
        for secret in (record.salt, record.stored_key, record.server_key):
            assert base64.b64encode(secret).decode() not in text and secret.hex() not in text
    assert value["scram"]["bob"] == {"SCRAM-SHA-512": {
        "salt": "(redacted)", "storedKey": "(redacted)", "serverKey": "(redacted)", "iterations": 8192}}
    assert value["topics"]["alpha-gzip"]["partitions"][1]["replicas"] == [1]
    assert value["topics"]["alpha-gzip"]["topicId"] == "ct7SLgSpRWaprLAkeJy8Yw"
    assert value["configs"]["topic"]["alpha-none"] == {"retention.ms": "86400000"}
    assert value["configs"]["group"] == {"alpha-share": {"share.auto.offset.reset": "earliest"}}
    assert {"entity": {"user": None}, "values": {"request_percentage": 50.0}} in value["quotas"]
    assert value["metadata_version"] == "4.3-IV0" and value["features"]["metadata.version"] == 30
    assert value["brokers"][0]["logDirs"] and value["voters"][0]["voterId"] == 1
    configs = image_of([
        m.ConfigRecord(resource_type=4, resource_name="1", name=name, value="hunter2")
        for name in ("listener.name.sasl.plain.sasl.jaas.config", "ssl.key.password", "ssl.keystore.key")
    ] + [m.ConfigRecord(resource_type=99, resource_name="1", name="a", value="shown")])  # fmt: skip
    assert "hunter2" not in json.dumps(configs.to_json())
    assert configs.to_json()["configs"]["99"] == {"1": {"a": "shown"}}


def test_no_repr_has_a_secret(golden: Path) -> None:
    image = ClusterImage.read(folder(golden), LAST)
    texts = [repr(image), repr(image.downgrade(7, unsafe=True)), repr(ClusterImage().diff(image)),
             repr(image.diff(ClusterImage()))]
    with pytest.raises(DowngradeError) as caught:
        image.downgrade(7)
    texts += [repr(caught.value), str(caught.value), repr(caught.value.losses)]
    assert "UserScramCredentialRecord({'name': 'bob', 'mechanism': 2, 'salt': '(redacted)'" in texts[1]
    for record in image.scram.values():
        for secret in (record.salt, record.stored_key, record.server_key):
            for form in (repr(secret)[2:-1], base64.b64encode(secret).decode()):
                assert not [text for text in texts if form in text]


def test_json_of_an_empty_image() -> None:
    value = ClusterImage().to_json()
    assert value["offset"] == -1 and value["metadata_version"] is None and value["topics"] == {}


def between(golden: Path, first: int, last: int) -> list[Any]:
    """The metadata records of the golden log from one offset to another (inclusive)."""
    segment = LogSegment(folder(golden) / f"{0:020d}.log")
    return [kwire.decode_metadata_record(record.value)[0]
            for record in segment.read(start_offset=first, end_offset=last + 1)]


def touched(record: Any) -> set[Any]:
    """The keys of what a record changes, None for a type that changes nothing of the image."""
    match type(record).__name__:
        case "TopicRecord" | "RemoveTopicRecord":
            return {record.topic_id}
        case "PartitionRecord" | "PartitionChangeRecord":
            return {(record.topic_id, record.partition_id)}
        case "ConfigRecord":
            return {(record.resource_type, record.resource_name, record.name)}
        case "FeatureLevelRecord":
            return {record.name}
        case "RegisterBrokerRecord" | "BrokerRegistrationChangeRecord" | "UnregisterBrokerRecord":
            return {record.broker_id}
        case "RegisterControllerRecord":
            return {record.controller_id}
        case "AccessControlEntryRecord" | "RemoveAccessControlEntryRecord":
            return {record.id}
        case "UserScramCredentialRecord" | "RemoveUserScramCredentialRecord":
            return {(record.name, record.mechanism)}
        case "DelegationTokenRecord" | "RemoveDelegationTokenRecord":
            return {record.token_id}
        case "ProducerIdsRecord":
            return {()}
        case "ClientQuotaRecord":
            entity = tuple(sorted((part.entity_type, part.entity_name) for part in record.entity))
            return {(entity, record.key)}
        case _:
            return set()


@pytest.mark.parametrize(("first", "last"), [(94, 176), (176, 254), (94, 254)])
def test_the_diff_of_two_golden_snapshots_is_the_records_between_them(golden: Path, first: int, last: int) -> None:
    before, after = (ClusterImage.read(next(folder(golden).glob(f"*{offset + 1}-*1.checkpoint")))
                     for offset in (first, last))
    records = between(golden, first + 1, last)
    changes = before.diff(after)
    keys = {change.key for change in changes}
    assert len(keys) == len(changes) > 10
    all_touched = set().union(*map(touched, records))
    assert keys <= all_touched
    # what was touched without a change was there for a while only, or is as before
    replayed = copy.deepcopy(before)
    replay = Replay(replayed.tables)
    for record in records:
        replay(record)
    assert replayed == after and replayed.diff(after) == []
    created = {key for record in records if type(record).__name__ == "TopicRecord" for key in touched(record)}
    removed = {key for record in records if type(record).__name__ == "RemoveTopicRecord" for key in touched(record)}
    assert {change.key for change in changes if change.record == "TopicRecord" and change.kind == "added"} == (
        created - removed)
    back = after.diff(before)
    assert {(change.key, change.before is None) for change in back} == {
        (change.key, change.after is None) for change in changes}


def test_kinds_and_fields_of_changes() -> None:
    topic = UUID(int=5)
    start = [m.TopicRecord(name="t", topic_id=topic), m.ConfigRecord(resource_type=2, resource_name="t", name="a",
                                                                    value="1"),
             m.PartitionRecord(partition_id=0, topic_id=topic, replicas=(1, 2), isr=(1,), leader=1)]
    before = image_of(start)
    after = image_of([*start, m.PartitionChangeRecord(partition_id=0, topic_id=topic, isr=(1, 2)),
                      m.ConfigRecord(resource_type=2, resource_name="t", name="a", value=None),
                      m.FeatureLevelRecord(name="group.version", feature_level=1)])
    found = {(change.kind, change.record): change for change in before.diff(after)}
    assert found.keys() == {
        ("changed", "PartitionRecord"), ("removed", "ConfigRecord"), ("added", "FeatureLevelRecord")}
    assert found["changed", "PartitionRecord"].fields == {"isr": ((1,), (1, 2)), "partition_epoch": (-1, 0)}
    assert found["removed", "ConfigRecord"].key == (2, "t", "a") and found["removed", "ConfigRecord"].fields == {}
    assert before != after and before == image_of(start) and before != "text"
    tagged = image_of(start)
    tagged.topics["t"].record.unknown_tags = {4: b"x"}
    assert [change.fields for change in before.diff(tagged)] == [{"unknown_tags": ({}, {4: b"x"})}]


def test_the_order_of_endpoints_is_no_change() -> None:
    point = m.RegisterBrokerRecord.BrokerEndpoint
    points = [point(name="A", host="h", port=1), point(name="B", host="h", port=2)]
    one, other = (image_of([m.RegisterBrokerRecord(broker_id=1, end_points=given, log_dirs=dirs)]) for given, dirs in (
        (points, (UUID(int=7), UUID(int=8))), (points[::-1], (UUID(int=8), UUID(int=7)))))
    assert one == other
    assert one != image_of([m.RegisterBrokerRecord(broker_id=1, end_points=points[:1])])


def test_a_large_image_costs_what_its_records_cost(tmp_path: Path) -> None:
    """20,000 partitions of a topic, written and read again: the same records, in batches."""
    topic = UUID(int=6)
    image = image_of([m.TopicRecord(name="t", topic_id=topic)])
    replay = Replay(image.tables)
    for number in range(20_000):
        replay(m.PartitionRecord(partition_id=number, topic_id=topic, replicas=(1, 2, 3), isr=(1, 2, 3), leader=1))
    again = ClusterImage.read(image.write_snapshot(tmp_path))
    assert len(again.topics["t"].partitions) == 20_000 and next(iter(image.diff(again)), None) is None


def test_records_of_all_kinds_survive_a_snapshot(tmp_path: Path) -> None:
    image = image_of(list(Cluster(11).records(400)), offset=399, epoch=4, timestamp=7)
    assert ClusterImage.read(image.write_snapshot(tmp_path)) == image
    assert {newest(record) >= version for record, version in image.records()} == {True}
    assert framed(ClusterImage.read(tmp_path)) == framed(image)
