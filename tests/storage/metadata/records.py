"""Metadata records for tests: random ones that a controller could write, and logs and snapshots made of records."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import kwire
from kwire import messages as m
from kwire.storage.metadata import ClusterImage, metadata_log
from kwire.storage.metadata.replay import Replay

RELEASE = "4.4.0"  # whose classes replay the random records
ELR = "eligible.leader.replicas.version"


def framed(image: ClusterImage) -> list[bytes]:
    """The records of an image as a snapshot has them."""
    return [kwire.encode_metadata_record(message, version) for message, version in image.records()]


def canonical(record: bytes) -> tuple[str, int, str]:
    """A framed record with what Kafka keeps in hash maps in one order."""
    message, version = kwire.decode_metadata_record(record)
    for field in ("end_points", "features"):
        if isinstance(getattr(message, field, None), list):
            setattr(message, field, sorted(getattr(message, field), key=lambda item: item.name))
    if hasattr(message, "entity"):
        message.entity = sorted(message.entity, key=lambda part: part.entity_type)
    for field in ("log_dirs", "cordoned_log_dirs"):
        if getattr(message, field, None):
            setattr(message, field, tuple(sorted(getattr(message, field))))
    return type(message).__name__, version, str(kwire.to_json(message, version))


def canonicals(records: Sequence[bytes]) -> list[tuple[str, int, str]]:
    """Framed records, sorted, each in one form."""
    return sorted(map(canonical, records))


def image_of(records: Sequence[Any], **attributes: Any) -> ClusterImage:
    """The image of messages, replayed one after the other."""
    image = ClusterImage(**attributes)
    replay = Replay(image.tables)
    for record in records:
        replay(kwire.decode_metadata_record(kwire.encode_metadata_record(record, newest(record)))[0])
    return image


def newest(record: Any) -> int:
    """The newest version of a record."""
    return kwire.schema.message(type(record).__name__).valid_versions.high


def batch(records: Sequence[Any], offset: int, epoch: int = 1, control: bool = False) -> bytes:
    """One batch of messages; control: of (control type, message)."""
    types = {"SNAPSHOT_HEADER": 3, "SNAPSHOT_FOOTER": 4, "KRAFT_VERSION": 5, "KRAFT_VOTERS": 6, "LEADER_CHANGE": 2}
    rows = [
        (1_700_000_000_000 + offset, b"\0\0" + types[record[0]].to_bytes(2, "big"), kwire.encode(record[1], 0))
        if control else (1_700_000_000_000 + offset, None, kwire.encode_metadata_record(record, newest(record)))
        for record in records
    ]  # fmt: skip
    return kwire.build_batch(rows, base_offset=offset, partition_leader_epoch=epoch, control=control)


def write_log(folder: Path, *groups: Sequence[Any], start: int = 0) -> Path:
    """A metadata log in one segment, a batch for each group of messages; the folder."""
    place = folder / metadata_log.FOLDER
    place.mkdir(parents=True, exist_ok=True)
    data, offset = b"", start
    for group in groups:
        data += batch(group, offset)
        offset += len(group)
    (place / f"{start:020d}.log").write_bytes(data)
    return folder


class Cluster:
    """Makes records that follow each other as a controller's do, by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._image = ClusterImage()
        self._replay = Replay(self._image.tables)

    def records(self, count: int, level: int = 33) -> Iterator[Any]:
        """That many messages, after the levels of the features and the registration of two brokers."""
        yield from self._given(m.FeatureLevelRecord(name="metadata.version", feature_level=level))
        yield from self._given(m.FeatureLevelRecord(name=ELR, feature_level=1))
        for broker in (1, 2):
            yield from self._given(self._register(broker))
        made = 4
        while made < count:
            for record in self._given(self._random.choice(self._makers)(self)):
                made += 1
                yield record

    def _given(self, record: Any) -> Iterator[Any]:
        if record is not None:
            frame = kwire.encode_metadata_record(record, newest(record))
            self._replay(kwire.decode_metadata_record(frame)[0])
            yield record

    def _uuid(self) -> UUID:
        return UUID(int=self._random.getrandbits(128))

    def _few(self) -> tuple[int, ...]:
        return tuple(self._random.sample(range(1, 6), self._random.randrange(4)))

    def _register(self, broker: int | None = None) -> Any:
        pick = self._random
        return m.RegisterBrokerRecord(
            broker_id=pick.randrange(1, 6) if broker is None else broker, incarnation_id=self._uuid(),
            broker_epoch=pick.randrange(1000), fenced=pick.random() < 0.5, rack=pick.choice([None, "r1"]),
            end_points=[m.RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host="h", port=9092)],
            features=[m.RegisterBrokerRecord.BrokerFeature(name="metadata.version", max_supported_version=33)],
            in_controlled_shutdown=pick.random() < 0.2, log_dirs=(self._uuid(),),
            cordoned_log_dirs=pick.choice([None, (), (self._uuid(),)]),
        )  # fmt: skip

    def _broker(self) -> Any:
        return self._random.choice([*self._image.brokers.values()]) if self._image.brokers else None

    def _unregister(self) -> Any:
        broker = self._broker()
        if broker is None or self._random.random() < 0.7:
            return None
        return m.UnregisterBrokerRecord(broker_id=broker.broker_id, broker_epoch=broker.broker_epoch)

    def _fence(self) -> Any:
        broker = self._broker()
        kind = self._random.choice([m.FenceBrokerRecord, m.UnfenceBrokerRecord])
        return None if broker is None else kind(id=broker.broker_id, epoch=broker.broker_epoch)

    def _change_broker(self) -> Any:
        broker, pick = self._broker(), self._random
        return None if broker is None else m.BrokerRegistrationChangeRecord(
            broker_id=broker.broker_id, broker_epoch=broker.broker_epoch, fenced=pick.choice([-1, 0, 1]),
            in_controlled_shutdown=pick.choice([0, 0, 1]), log_dirs=pick.choice([(), (self._uuid(),)]),
            cordoned_log_dirs=pick.choice([None, (), (self._uuid(),)]),
        )  # fmt: skip

    def _controller(self) -> Any:
        if self._random.random() < 0.3:
            return m.UnregisterControllerRecord(controller_id=self._random.randrange(1, 4))
        point = m.RegisterControllerRecord.ControllerEndpoint(name="CONTROLLER", host="h", port=9093)
        return m.RegisterControllerRecord(
            controller_id=self._random.randrange(1, 4), incarnation_id=self._uuid(), end_points=[point])

    def _topic(self) -> Any:
        free = [f"t{number}" for number in range(12) if f"t{number}" not in self._image.topics]
        return m.TopicRecord(name=self._random.choice(free), topic_id=self._uuid()) if free else None

    def _some_topic(self) -> Any:
        topics = [*self._image.topics_by_id.values()]
        return self._random.choice(topics) if topics else None

    def _remove_topic(self) -> Any:
        topic = self._some_topic()
        return None if topic is None or self._random.random() < 0.6 else m.RemoveTopicRecord(topic_id=topic.id)

    def _partition(self) -> Any:
        topic, pick = self._some_topic(), self._random
        replicas = tuple(pick.sample(range(1, 6), pick.randrange(1, 4)))
        return None if topic is None else m.PartitionRecord(
            partition_id=pick.randrange(4), topic_id=topic.id, replicas=replicas, isr=replicas[:1],
            removing_replicas=self._few(), adding_replicas=self._few(), leader=pick.choice([-1, *replicas]),
            leader_recovery_state=pick.randrange(2), leader_epoch=pick.randrange(9), partition_epoch=pick.randrange(9),
            directories=pick.choice([(), tuple(self._uuid() for _ in replicas)]),
            eligible_leader_replicas=pick.choice([None, self._few()]), last_known_elr=pick.choice([None, self._few()]),
        )  # fmt: skip

    def _change_partition(self) -> Any:
        topic, pick = self._some_topic(), self._random
        if topic is None or not topic.partitions:
            return None
        number = pick.choice([*topic.partitions])
        change = m.PartitionChangeRecord(
            partition_id=number, topic_id=topic.id, isr=pick.choice([None, self._few()]),
            leader=pick.choice([-2, -2, -1, 1, 2]), removing_replicas=pick.choice([None, self._few()]),
            adding_replicas=pick.choice([None, self._few()]), leader_recovery_state=pick.choice([-1, 0, 1]),
            eligible_leader_replicas=pick.choice([None, self._few()]), last_known_elr=pick.choice([None, self._few()]),
        )  # fmt: skip
        if pick.random() < 0.4:
            change.replicas = tuple(pick.sample(range(1, 6), pick.randrange(1, 4)))
            change.directories = pick.choice([(), tuple(self._uuid() for _ in change.replicas)])
        return change

    def _clear(self) -> Any:
        topic = self._some_topic()
        name = "" if topic is None or self._random.random() < 0.3 else topic.name
        return m.ClearElrRecord(topic_name=name) if self._random.random() < 0.3 else None

    def _config(self) -> Any:
        pick, topic = self._random, self._some_topic()
        kind, name = (4, pick.choice(["", "1"])) if topic is None or pick.random() < 0.5 else (2, topic.name)
        return m.ConfigRecord(resource_type=kind, resource_name=name, name=pick.choice("abc"),
                              value=pick.choice([None, "1", "2"]))

    def _quota(self) -> Any:
        pick, part = self._random, m.ClientQuotaRecord.EntityData
        entity = [part(entity_type="user", entity_name=pick.choice([None, "u"]))]
        if pick.random() < 0.5:
            entity.append(part(entity_type="client-id", entity_name="c"))
            pick.shuffle(entity)
        return m.ClientQuotaRecord(entity=entity, key=pick.choice("kl"), value=pick.random(),
                                   remove=pick.random() < 0.3)

    def _producer_ids(self) -> Any:
        return m.ProducerIdsRecord(broker_id=1, broker_epoch=2, next_producer_id=self._random.randrange(1000))

    def _acl(self) -> Any:
        acls = [*self._image.acls]
        if acls and self._random.random() < 0.4:
            return m.RemoveAccessControlEntryRecord(id=self._random.choice(acls))
        return m.AccessControlEntryRecord(
            id=self._uuid(), resource_type=2, resource_name="t", pattern_type=3, principal="User:x", host="*",
            operation=3, permission_type=3)

    def _scram(self) -> Any:
        name, mechanism = self._random.choice("xy"), self._random.randrange(1, 3)
        if self._random.random() < 0.3:
            return m.RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
        return m.UserScramCredentialRecord(
            name=name, mechanism=mechanism, salt=self._random.randbytes(8), stored_key=b"s", server_key=b"k",
            iterations=4096)

    def _token(self) -> Any:
        token = self._random.choice("pqr")
        if self._random.random() < 0.3:
            return m.RemoveDelegationTokenRecord(token_id=token)
        return m.DelegationTokenRecord(owner="User:x", requester="User:y", renewers=["User:z"], issue_timestamp=1,
                                       max_timestamp=2, expiration_timestamp=self._random.randrange(9), token_id=token)

    def _feature(self) -> Any:
        return m.FeatureLevelRecord(name=self._random.choice(["group.version", "share.version"]),
                                    feature_level=self._random.randrange(2))

    def _nothing(self) -> Any:
        return m.NoOpRecord()

    _makers = (
        _register, _unregister, _fence, _change_broker, _controller, _topic, _topic, _remove_topic, _partition,
        _partition, _change_partition, _change_partition, _clear, _config, _quota, _producer_ids, _acl, _scram, _token,
        _feature, _nothing,
    )  # fmt: skip
