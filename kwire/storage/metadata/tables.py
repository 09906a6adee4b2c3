"""The tables of a cluster image: one record for each thing that exists in the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kwire import messages
from kwire.schema.feature_levels import METADATA_VERSION

if TYPE_CHECKING:
    from kwire_c.message_class import Message

MIGRATING = UUID(int=0)  # of Kafka's DirectoryId: a replica whose directory is not known
Entity = tuple[tuple[str, str | None], ...]  # of a quota: (type, name or None for the default) in order


class Topic(NamedTuple):
    """A topic. record: its TopicRecord; partitions: partition -> PartitionRecord, whose epochs are the current ones."""

    record: messages.TopicRecord
    partitions: dict[int, messages.PartitionRecord]

    @property
    def name(self) -> str:
        """The topic's name."""
        return self.record.name

    @property
    def id(self) -> UUID:
        """The topic's id."""
        return self.record.topic_id


@dataclass(eq=False)
class Tables:
    """What exists in a cluster, by key; each value is the record that a snapshot has for it.

    features: name -> FeatureLevelRecord; brokers, controllers: id -> RegisterBrokerRecord, RegisterControllerRecord;
    topics: id -> Topic; topic_ids: name -> id; configs: (resource type, name) -> key -> ConfigRecord;
    quotas: entity -> key -> ClientQuotaRecord; acls: id -> AccessControlEntryRecord; scram: (user, mechanism) ->
    UserScramCredentialRecord; tokens: id -> DelegationTokenRecord; producer_ids: ProducerIdsRecord;
    zk_migration: ZkMigrationStateRecord (3.4 to 3.9).
    """

    features: dict[str, messages.FeatureLevelRecord] = field(default_factory=dict)
    zk_migration: messages.ZkMigrationStateRecord | None = None
    brokers: dict[int, messages.RegisterBrokerRecord] = field(default_factory=dict)
    controllers: dict[int, messages.RegisterControllerRecord] = field(default_factory=dict)
    topics: dict[UUID, Topic] = field(default_factory=dict)
    topic_ids: dict[str, UUID] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, messages.ConfigRecord]] = field(default_factory=dict)
    quotas: dict[Entity, dict[str, messages.ClientQuotaRecord]] = field(default_factory=dict)
    producer_ids: messages.ProducerIdsRecord | None = None
    acls: dict[UUID, messages.AccessControlEntryRecord] = field(default_factory=dict)
    scram: dict[tuple[str, int], messages.UserScramCredentialRecord] = field(default_factory=dict)
    tokens: dict[str, messages.DelegationTokenRecord] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[object, Message]]:
        """(key, record) of everything, in the order of Kafka's MetadataImage.write: metadata.version comes first."""
        yield from sorted(self.features.items(), key=lambda item: item[0] != METADATA_VERSION)
        if self.zk_migration is not None:
            yield (), self.zk_migration
        yield from self.brokers.items()
        yield from self.controllers.items()
        for topic_id, topic in self.topics.items():
            yield topic_id, topic.record
            for number, partition in topic.partitions.items():
                yield (topic_id, number), partition
        for resource, settings in self.configs.items():
            for name, setting in settings.items():
                yield (*resource, name), setting
        for entity, values in self.quotas.items():
            for name, value in values.items():
                yield (entity, name), value
        if self.producer_ids is not None:
            yield (), self.producer_ids
        yield from self.acls.items()
        yield from self.scram.items()
        yield from self.tokens.items()
