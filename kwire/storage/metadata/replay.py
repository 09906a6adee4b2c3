"""Replays metadata records: each one changes the image as Kafka's MetadataDelta and MetadataBatchLoader do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from kwire.errors import LimitError, UnsupportedVersionError
from kwire.schema.feature_levels import KRAFT_VERSION, METADATA_VERSION
from kwire.storage.metadata.errors import MetadataLogError
from kwire.storage.metadata.tables import MIGRATING, Tables, Topic
from kwire_c.plan import message_of
from kwire_c.printable import brief

MOST_WAITING = 5_000_000  # records of one metadata transaction: the migration of a large cluster was one
_TOPIC = 2  # ConfigResource.Type
_NO_LEADER_CHANGE = -2  # LeaderConstants
_FENCING = {-1: False, 1: True}  # BrokerRegistrationFencingChange


class Replay:
    """Applies records to tables, in the order of the log. The tables own the records from then on.

    The records of a metadata transaction (KIP-866) wait for its end; those of an aborted or open one change nothing.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.waiting: list[Any] | None = None  # records of the open transaction
        self._with_elr: dict[UUID, set[int]] = {}  # partitions that have eligible or last known replicas
        self._handlers: dict[str, Callable[[Any], None]] = {
            "RegisterBrokerRecord": self._register_broker,
            "UnregisterBrokerRecord": self._unregister_broker,
            "FenceBrokerRecord": self._fence_broker,
            "UnfenceBrokerRecord": self._unfence_broker,
            "BrokerRegistrationChangeRecord": self._change_broker,
            "RegisterControllerRecord": self._register_controller,
            "UnregisterControllerRecord": self._unregister_controller,
            "TopicRecord": self._topic,
            "RemoveTopicRecord": self._remove_topic,
            "PartitionRecord": self._partition,
            "PartitionChangeRecord": self._change_partition,
            "ClearElrRecord": self._clear_elr,
            "ConfigRecord": self._config,
            "ClientQuotaRecord": self._quota,
            "ProducerIdsRecord": self._producer_ids,
            "AccessControlEntryRecord": self._acl,
            "RemoveAccessControlEntryRecord": self._remove_acl,
            "UserScramCredentialRecord": self._scram,
            "RemoveUserScramCredentialRecord": self._remove_scram,
            "DelegationTokenRecord": self._token,
            "RemoveDelegationTokenRecord": self._remove_token,
            "FeatureLevelRecord": self._feature,
            "RemoveFeatureLevelRecord": self._remove_feature,
            "ZkMigrationStateRecord": self._zk_migration,
            "NoOpRecord": self._nothing,
        }

    def __call__(self, record: Any) -> None:
        """Apply a record, or keep it until the end of its transaction.

        Raises MetadataLogError for a record that fits nothing before it, UnsupportedVersionError for a type that is
        not replayed. Source: MetadataBatchLoader.
        """
        name = type(record).__name__
        if name == "BeginTransactionRecord":
            if self.waiting is not None:
                raise MetadataLogError("BeginTransactionRecord in an open metadata transaction")
            self.waiting = []
        elif name in ("EndTransactionRecord", "AbortTransactionRecord"):
            if self.waiting is None:
                raise MetadataLogError(f"{name} without a BeginTransactionRecord before it")
            records, self.waiting = self.waiting, None
            for waiting in records if name == "EndTransactionRecord" else ():
                self._apply(waiting)
        elif self.waiting is not None:
            if len(self.waiting) == MOST_WAITING:
                raise LimitError("too many records in an open metadata transaction", limit=MOST_WAITING, offset=None)
            self.waiting.append(record)
        else:
            self._apply(record)

    def _apply(self, record: Any) -> None:
        name = type(record).__name__
        handler = self._handlers.get(name)
        if handler is None:
            known = message_of(record)
            raise UnsupportedVersionError(
                f"{name} (metadata record type {known.schema.api_key}) is not replayed: no release has it in its image",
                api=name)
        handler(record)

    def _nothing(self, record: Any) -> None:
        pass

    # brokers and controllers

    def _register_broker(self, record: Any) -> None:
        self.tables.brokers[record.broker_id] = record

    def _unregister_broker(self, record: Any) -> None:
        self.tables.brokers.pop(record.broker_id, None)

    def _broker(self, broker_id: int, epoch: int, name: str) -> Any:
        broker = self.tables.brokers.get(broker_id)
        if broker is None:
            raise MetadataLogError(f"{name} of broker {broker_id}, which is not registered")
        if broker.broker_epoch != epoch:
            raise MetadataLogError(
                f"{name} of broker {broker_id}: expected its epoch {broker.broker_epoch}, found {epoch}")
        return broker

    def _fence_broker(self, record: Any) -> None:
        self._broker(record.id, record.epoch, "FenceBrokerRecord").fenced = True

    def _unfence_broker(self, record: Any) -> None:
        self._broker(record.id, record.epoch, "UnfenceBrokerRecord").fenced = False

    def _change_broker(self, record: Any) -> None:
        name = "BrokerRegistrationChangeRecord"
        broker = self._broker(record.broker_id, record.broker_epoch, name)
        if record.fenced not in (-1, 0, 1):
            raise MetadataLogError(f"{name} .fenced: expected -1, 0 or 1, found {record.fenced}")
        if record.in_controlled_shutdown not in (0, 1):
            raise MetadataLogError(f"{name} .inControlledShutdown: expected 0 or 1, found "
                                   f"{record.in_controlled_shutdown}")
        broker.fenced = _FENCING.get(record.fenced, broker.fenced)
        if record.in_controlled_shutdown:
            broker.in_controlled_shutdown = True
        if record.log_dirs:
            broker.log_dirs = record.log_dirs
        if record.cordoned_log_dirs is not None:
            broker.cordoned_log_dirs = record.cordoned_log_dirs

    def _register_controller(self, record: Any) -> None:
        self.tables.controllers[record.controller_id] = record

    def _unregister_controller(self, record: Any) -> None:
        self.tables.controllers.pop(record.controller_id, None)

    # topics

    def _topic(self, record: Any) -> None:
        tables = self.tables
        tables.topics[record.topic_id] = Topic(record, {})
        tables.topic_ids[record.name] = record.topic_id
        self._with_elr.pop(record.topic_id, None)

    def _topic_of(self, record: Any) -> Topic:
        topic = self.tables.topics.get(record.topic_id)
        if topic is None:
            raise MetadataLogError(f"{type(record).__name__} of topic id {record.topic_id}, which does not exist")
        return topic

    def _remove_topic(self, record: Any) -> None:
        name = self._topic_of(record).name
        self.tables.topic_ids.pop(name, None)
        self.tables.configs.pop((_TOPIC, name), None)
        self._with_elr.pop(record.topic_id, None)
        del self.tables.topics[record.topic_id]  # last: after a MemoryError it can be done once more

    def _partition(self, record: Any) -> None:
        topic = self._topic_of(record)
        replicas = len(record.replicas)
        if not record.directories:
            record.directories = (MIGRATING,) * replicas
        elif len(record.directories) != replicas:
            raise self._odd_directories(record, topic, replicas, len(record.directories))
        self._check_recovery(record, topic, record.leader_recovery_state, (0, 1))
        topic.partitions[record.partition_id] = record
        self._note_elr(record)

    def _change_partition(self, record: Any) -> None:
        topic = self._topic_of(record)
        partition = topic.partitions.get(record.partition_id)
        if partition is None:
            raise MetadataLogError(
                f"PartitionChangeRecord of {topic.name}-{record.partition_id}, which does not exist")
        self._check_recovery(record, topic, record.leader_recovery_state, (-1, 0, 1))
        leader_epoch, partition_epoch = _next(partition.leader_epoch), _next(partition.partition_epoch)
        if record.replicas is not None or record.directories is not None:
            directories = partition.directories if record.directories is None else record.directories
            if record.replicas is not None:
                partition.replicas = record.replicas
            replicas = len(partition.replicas)
            if all(directory == MIGRATING for directory in directories):  # also those that are not given
                directories = (MIGRATING,) * replicas
            elif len(directories) != replicas:
                raise self._odd_directories(record, topic, replicas, len(directories))
            partition.directories = directories
        if record.isr is not None:
            partition.isr = record.isr
        if record.removing_replicas is not None:
            partition.removing_replicas = record.removing_replicas
        if record.adding_replicas is not None:
            partition.adding_replicas = record.adding_replicas
        if record.leader_recovery_state >= 0:
            partition.leader_recovery_state = record.leader_recovery_state
        if record.eligible_leader_replicas is not None or record.last_known_elr is not None:
            if record.eligible_leader_replicas is not None:
                partition.eligible_leader_replicas = record.eligible_leader_replicas
            if record.last_known_elr is not None:
                partition.last_known_elr = record.last_known_elr
            self._note_elr(partition)
        if record.leader != _NO_LEADER_CHANGE:
            partition.leader, partition.leader_epoch = record.leader, leader_epoch
        partition.partition_epoch = partition_epoch  # the epochs last: after a MemoryError all is done once more

    @staticmethod
    def _odd_directories(record: Any, topic: Topic, replicas: int, found: int) -> MetadataLogError:
        return MetadataLogError(
            f"{type(record).__name__} of {topic.name}-{record.partition_id}: expected as many directories as replicas "
            f"({replicas}), found {found}")

    @staticmethod
    def _check_recovery(record: Any, topic: Topic, state: int, allowed: tuple[int, ...]) -> None:
        if state not in allowed:
            raise MetadataLogError(f"{type(record).__name__} of {topic.name}-{record.partition_id}: "
                                   f"unknown leader recovery state {state}")

    def _note_elr(self, partition: Any) -> None:
        """Keep empty replicas as null, as Kafka writes them, and remember who has some: clearing is linear then."""
        partition.eligible_leader_replicas = partition.eligible_leader_replicas or None
        partition.last_known_elr = partition.last_known_elr or None
        if partition.eligible_leader_replicas or partition.last_known_elr:
            self._with_elr.setdefault(partition.topic_id, set()).add(partition.partition_id)

    def _clear_elr(self, record: Any) -> None:
        """Source: TopicDelta.maybeClearElr; each partition that had some gets a new partition epoch."""
        topics = [*self._with_elr]
        if record.topic_name:
            topic_id = self.tables.topic_ids.get(record.topic_name)
            if topic_id is None:
                raise MetadataLogError(f"ClearElrRecord of topic {brief(record.topic_name)}, which does not exist")
            topics = [topic_id]
        for topic_id in topics:
            for number in self._with_elr.get(topic_id, ()):
                partition = self.tables.topics[topic_id].partitions[number]
                if partition.eligible_leader_replicas or partition.last_known_elr:
                    partition.partition_epoch = _next(partition.partition_epoch)
                    partition.eligible_leader_replicas = partition.last_known_elr = None
            self._with_elr.pop(topic_id, None)

    # configs, quotas, access

    def _config(self, record: Any) -> None:
        configs, resource = self.tables.configs, (record.resource_type, record.resource_name)
        if record.value is not None:
            configs.setdefault(resource, {})[record.name] = record
        elif resource in configs:
            configs[resource].pop(record.name, None)
            if not configs[resource]:
                del configs[resource]

    def _quota(self, record: Any) -> None:
        quotas = self.tables.quotas
        entity = tuple(sorted(
            {part.entity_type: part.entity_name for part in record.entity}.items(),
            key=lambda part: (part[0], part[1] is not None, part[1] or ""),
        ))  # fmt: skip
        if not record.remove:
            quotas.setdefault(entity, {})[record.key] = record
        elif entity in quotas:
            quotas[entity].pop(record.key, None)
            if not quotas[entity]:
                del quotas[entity]

    def _producer_ids(self, record: Any) -> None:
        record.broker_id = record.broker_epoch = -1  # who got the last block is no part of the image
        self.tables.producer_ids = record if record.next_producer_id >= 0 else None

    def _acl(self, record: Any) -> None:
        self.tables.acls[record.id] = record

    def _remove_acl(self, record: Any) -> None:
        if self.tables.acls.pop(record.id, None) is None:
            raise MetadataLogError(f"RemoveAccessControlEntryRecord of id {record.id}, which does not exist")

    def _scram(self, record: Any) -> None:
        self.tables.scram[record.name, record.mechanism] = record

    def _remove_scram(self, record: Any) -> None:
        self.tables.scram.pop((record.name, record.mechanism), None)

    def _token(self, record: Any) -> None:
        self.tables.tokens[record.token_id] = record

    def _remove_token(self, record: Any) -> None:
        self.tables.tokens.pop(record.token_id, None)

    # features

    def _feature(self, record: Any) -> None:
        if record.name == KRAFT_VERSION:  # its level is in control records (KAFKA-18979)
            return
        if record.feature_level > 0:
            self.tables.features[record.name] = record
        elif record.name == METADATA_VERSION:
            raise MetadataLogError(f"FeatureLevelRecord of metadata.version: unknown level {record.feature_level}")
        else:
            self.tables.features.pop(record.name, None)

    def _remove_feature(self, record: Any) -> None:
        self.tables.features.pop(record.name, None)

    def _zk_migration(self, record: Any) -> None:
        self.tables.zk_migration = record


def _next(epoch: int) -> int:
    """An epoch plus one, as Java's int."""
    return epoch + 1 if epoch < 0x7FFFFFFF else -0x80000000
