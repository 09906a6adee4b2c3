"""Replayed records: as Kafka's own classes replay them, and one error for what fits nothing before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import kwire
from kwire import messages as m
from kwire.errors import KwireError
from kwire.schema import record_types
from kwire.storage.metadata import ClusterImage, MetadataLogError, replay
from kwire.storage.metadata.replay import Replay
from kwire.storage.metadata.tables import Tables
from tests.storage.metadata.records import RELEASE, Cluster, canonicals, framed, image_of, newest, write_log
from tools.kafka.images import ImageOracle
from tools.kafka.maven import MissingTool

TOPIC, OTHER = UUID(int=77), UUID(int=78)


@pytest.mark.java
def test_random_records_give_the_image_that_kafka_has() -> None:
    try:
        oracle = ImageOracle(RELEASE)
    except MissingTool as missing:
        pytest.fail(str(missing), pytrace=False)
    seen: set[str] = set()
    with oracle:
        for seed in range(40):
            records = list(Cluster(seed).records(250))
            seen |= {type(record).__name__ for record in records}
            frames = [kwire.encode_metadata_record(record, newest(record)) for record in records]
            written = oracle.write(frames, 33, eligible=True, each=True)
            assert written.losses == []
            assert canonicals(framed(image_of(records))) == canonicals(written.records), f"seed {seed}"
    assert len(seen) == 23, sorted(seen)


@pytest.mark.quick
def test_every_type_of_record_is_replayed_or_refused_by_name() -> None:
    refused = set()
    for row in record_types("metadata").values():
        tables = Tables()
        try:
            Replay(tables)(getattr(m, row.value)())
        except kwire.UnsupportedVersionError as error:
            assert row.value in str(error)
            refused.add(row.value)
        except MetadataLogError as error:
            assert row.value in str(error)
    assert refused == {"AccessControlRecord"}
    with pytest.raises(kwire.UnsupportedVersionError, match="QuotaRecord"):
        Replay(Tables())(m.QuotaRecord())


def topic(**changes: Any) -> list[Any]:
    partition = {"partition_id": 0, "topic_id": TOPIC, "replicas": (1, 2), "isr": (1,), "leader": 1, **changes}
    return [m.TopicRecord(name="t", topic_id=TOPIC), m.PartitionRecord(**partition)]


BROKER = m.RegisterBrokerRecord(broker_id=1, broker_epoch=5)
BAD = [
    ([m.FenceBrokerRecord(id=1, epoch=5)], "FenceBrokerRecord of broker 1, which is not registered"),
    ([BROKER, m.UnfenceBrokerRecord(id=1, epoch=6)], "UnfenceBrokerRecord of broker 1: expected its epoch 5, found 6"),
    ([BROKER, m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=2)], "expected -1, 0 or 1, found 2"),
    ([BROKER, m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, in_controlled_shutdown=-1)],
     "expected 0 or 1, found -1"),
    ([m.PartitionRecord(topic_id=TOPIC)], f"PartitionRecord of topic id {TOPIC}, which does not exist"),
    ([m.RemoveTopicRecord(topic_id=TOPIC)], f"RemoveTopicRecord of topic id {TOPIC}"),
    ([*topic(), m.PartitionChangeRecord(topic_id=TOPIC, partition_id=1)], "t-1, which does not exist"),
    (topic(directories=(OTHER,)), r"t-0: expected as many directories as replicas \(2\), found 1"),
    ([*topic(directories=(OTHER, OTHER)), m.PartitionChangeRecord(topic_id=TOPIC, partition_id=0, replicas=(1,))],
     r"t-0: expected as many directories as replicas \(1\), found 2"),
    (topic(leader_recovery_state=2), "unknown leader recovery state 2"),
    ([*topic(), m.PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader_recovery_state=3)],
     "unknown leader recovery state 3"),
    ([m.ClearElrRecord(topic_name="t")], "ClearElrRecord of topic 't', which does not exist"),
    ([m.RemoveAccessControlEntryRecord(id=OTHER)],
     f"RemoveAccessControlEntryRecord of id {OTHER}, which does not exist"),
    ([m.EndTransactionRecord()], "EndTransactionRecord without a BeginTransactionRecord"),
    ([m.AbortTransactionRecord()], "AbortTransactionRecord without a BeginTransactionRecord"),
    ([m.BeginTransactionRecord(), m.BeginTransactionRecord()], "in an open metadata transaction"),
    ([m.FeatureLevelRecord(name="metadata.version", feature_level=0)], "unknown level 0"),
]  # fmt: skip


@pytest.mark.quick
@pytest.mark.parametrize(("records", "reason"), BAD, ids=range(len(BAD)))
def test_a_record_that_fits_nothing_before_it_is_one_error(records: list[Any], reason: str) -> None:
    with pytest.raises(MetadataLogError, match=reason):
        image_of(records)


@pytest.mark.quick
def test_what_transactions_hide() -> None:
    begin, end, abort = m.BeginTransactionRecord(name="x"), m.EndTransactionRecord(), m.AbortTransactionRecord()
    one, two = m.ConfigRecord(resource_type=2, resource_name="a", name="k", value="1"), m.NoOpRecord()
    assert image_of([begin, one]).configs == {}
    assert image_of([begin, one, abort]).configs == {}
    assert image_of([begin, one, two, end]).configs == {(2, "a"): {"k": "1"}}
    assert image_of([begin, one, abort, begin, end, one]).configs == {(2, "a"): {"k": "1"}}
    with pytest.raises(KwireError, match="not registered"):  # what an ended one holds is checked at its end
        image_of([begin, m.FenceBrokerRecord(id=1), end])
    assert image_of([begin, m.FenceBrokerRecord(id=1), abort]).brokers == {}


@pytest.mark.quick
def test_a_transaction_does_not_grow_without_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(replay, "MOST_WAITING", 3)
    records = [m.BeginTransactionRecord(), *[m.NoOpRecord()] * 3, m.EndTransactionRecord()]
    assert image_of(records)
    folder = write_log(tmp_path, [m.BeginTransactionRecord(), *[m.NoOpRecord()] * 4])
    with pytest.raises(kwire.LimitError, match=r"\.log: too many records in an open metadata transaction"):
        ClusterImage.read(folder)


@pytest.mark.quick
def test_a_topic_that_is_removed_takes_its_configs_along() -> None:
    config = m.ConfigRecord(resource_type=2, resource_name="t", name="k", value="1")
    broker = m.ConfigRecord(resource_type=4, resource_name="t", name="k", value="1")
    image = image_of([*topic(), config, broker, m.RemoveTopicRecord(topic_id=TOPIC)])
    assert image.topics == {} and image.configs == {(4, "t"): {"k": "1"}}
    again = image_of([*topic(), m.RemoveTopicRecord(topic_id=TOPIC), m.TopicRecord(name="t", topic_id=OTHER)])
    assert again.topics["t"].id == OTHER and again.topics["t"].partitions == {}


@pytest.mark.quick
def test_features_are_removed_and_kraft_version_is_none_of_them() -> None:
    level = m.FeatureLevelRecord
    image = image_of([level(name="group.version", feature_level=1), level(name="kraft.version", feature_level=1),
                      level(name="share.version", feature_level=1), m.RemoveFeatureLevelRecord(name="share.version"),
                      level(name="metadata.version", feature_level=25), level(name="group.version")])
    assert image.features == {"metadata.version": 25} and image.metadata_version == 25


@pytest.mark.quick
def test_clearing_eligible_replicas_is_linear() -> None:
    """20,000 records that clear all of 5,000 partitions: each partition is looked at once, not once a record."""
    records = [m.TopicRecord(name="t", topic_id=TOPIC)]
    records += [m.PartitionRecord(partition_id=number, topic_id=TOPIC, replicas=(1,), isr=(1,), leader=1,
                                  last_known_elr=(1,)) for number in range(5000)]
    records += [m.ClearElrRecord()] * 20_000
    partitions = image_of(records).topics["t"].partitions
    assert {(one.last_known_elr, one.partition_epoch) for one in partitions.values()} == {(None, 0)}
