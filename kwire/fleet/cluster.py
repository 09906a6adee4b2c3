"""The state that the nodes of a fleet share: topics, partitions, groups, transactions, as the metadata log holds it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from kwire.fleet.clock import Clock
from kwire.fleet.errors import ApiError
from kwire.fleet.group_coordinator import GroupCoordinator
from kwire.fleet.partition_log import MAX_MESSAGE_BYTES, PartitionLog
from kwire.fleet.transactions import Participant, TransactionCoordinator
from kwire.schema.error_codes import ErrorCode
from kwire.storage.discovery import is_topic_name
from kwire.storage.java import java_hash
from kwire.storage.uuids import uuid_text

if TYPE_CHECKING:
    from kwire.fleet.node import Node

OFFSETS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
INTERNAL_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
INTERNAL_PARTITIONS = 50  # offsets.topic.num.partitions, transaction.state.log.num.partitions


@dataclass
class Partition:
    """A partition: its log, and who leads it. replicas, isr: ids of nodes."""

    index: int
    log: PartitionLog
    replicas: list[int]
    leader: int
    leader_epoch: int = 0

    def __repr__(self) -> str:
        return f"Partition({self.index}, leader={self.leader}, end_offset={self.log.end_offset})"


@dataclass
class Topic:
    """A topic."""

    name: str
    id: uuid.UUID
    partitions: list[Partition] = field(default_factory=list)
    configs: dict[str, str] = field(default_factory=dict)

    @property
    def is_internal(self) -> bool:
        """Whether it is one of Kafka's own topics."""
        return self.name in INTERNAL_TOPICS

    @property
    def replication_factor(self) -> int:
        """Replicas of each partition."""
        return len(self.partitions[0].replicas)


class ClusterState:
    """What the nodes of one fleet share. seed: of all that is random in it."""

    def __init__(self, clock: Clock, seed: int = 0) -> None:
        self.clock, self.random = clock, Random(seed)
        self.cluster_id = self.new_id_text()
        self.nodes: list[Node] = []
        self.controller_id = 1
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[uuid.UUID, Topic] = {}
        self._collisions: dict[str, str] = {}  # names of topics, by what is left when a dot is an underscore
        self.groups, self.transactions = GroupCoordinator(self), TransactionCoordinator(self)
        self.levels: dict[str, int] = {}  # finalized feature levels
        self.levels_epoch = -1
        self.acls: dict[Any, None] = {}  # Acl, in the order in which they came
        self.broker_configs: dict[str, dict[str, str]] = {}  # by node id as text, "" for all
        self.auto_create, self.default_partitions = True, 1

    def new_id(self) -> uuid.UUID:
        """A topic id or the like: random by the seed."""
        return uuid.UUID(int=self.random.getrandbits(128), version=4)

    def new_id_text(self) -> str:
        """An id in Kafka's text: 22 characters of URL-safe base64 (Uuid.toString), not beginning with a dash."""
        text = uuid_text(self.new_id())
        return text if not text.startswith("-") else self.new_id_text()

    def alive(self) -> list[Node]:
        """The nodes that are up, by id."""
        return [node for node in self.nodes if node.alive]

    def node(self, node_id: int) -> Node | None:
        """A node that is up."""
        return next((node for node in self.nodes if node.id == node_id and node.alive), None)

    def topic(self, name: str) -> Topic:
        """A topic by its name. Raises ApiError: INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION."""
        if name not in self.topics:
            check_topic_name(name)
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self.topics[name]

    def topic_of_id(self, topic_id: uuid.UUID) -> Topic:
        """A topic by its id. Raises ApiError: UNKNOWN_TOPIC_ID."""
        if topic_id not in self.topics_by_id:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        return self.topics_by_id[topic_id]

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """The name of a topic id, None if there is none."""
        known = self.topics_by_id.get(topic_id)
        return None if known is None else known.name

    def partition(self, topic: str, index: int) -> Partition:
        """A partition. Raises ApiError: UNKNOWN_TOPIC_OR_PARTITION."""
        known = self.topics.get(topic)
        if known is None or not 0 <= index < len(known.partitions):
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return known.partitions[index]

    def leads(self, node: Node, partition: Partition, epoch: int = -1) -> Partition:
        """The partition, if the node leads it and the client's leader epoch is its own. Raises ApiError."""
        if partition.leader != node.id:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if 0 <= epoch < partition.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        if epoch > partition.leader_epoch:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        return partition

    def create_topic(
        self, name: str, partitions: int = -1, replication_factor: int = -1,
        configs: Mapping[str, str] | None = None, assignments: Mapping[int, list[int]] | None = None,
        validate_only: bool = False,
    ) -> Topic:
        """Create a topic, with leaders spread over the nodes. Raises ApiError."""
        check_topic_name(name)
        if name in self.topics:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        other = self._collisions.get(name.replace(".", "_"))
        if other is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")
        partitions = self.default_partitions if partitions == -1 else partitions
        nodes = [node.id for node in self.alive()]
        replicas = min(3, len(nodes)) if replication_factor == -1 and name in INTERNAL_TOPICS else replication_factor
        replicas = 1 if replicas == -1 else replicas
        if not assignments:
            if partitions <= 0:
                raise ApiError(
                    ErrorCode.INVALID_PARTITIONS,
                    "Number of partitions was set to an invalid non-positive value.")
            if replicas <= 0:
                raise ApiError(
                    ErrorCode.INVALID_REPLICATION_FACTOR,
                    "Replication factor was set to an invalid non-positive value.")
            if replicas > len(nodes):
                raise ApiError(
                    ErrorCode.INVALID_REPLICATION_FACTOR,
                    f"Unable to replicate the partition {replicas} time(s): The target replication factor of "
                    f"{replicas} cannot be reached because only {len(nodes)} broker(s) are registered.")
        chosen = dict(assignments) if assignments else {
            index: [nodes[(index + at) % len(nodes)] for at in range(replicas)] for index in range(partitions)}
        if sorted(chosen) != list(range(len(chosen))):
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
        topic = Topic(name, self.new_id(), configs=dict(configs or {}))
        for index, ids in sorted(chosen.items()):
            self._check_replicas(ids)
            topic.partitions.append(Partition(index, self.new_log(topic), list(ids), ids[0]))
        if not validate_only:
            self.topics[name] = self.topics_by_id[topic.id] = topic
            self._collisions[name.replace(".", "_")] = name
        return topic

    def new_log(self, topic: Topic) -> PartitionLog:
        """The log of a new partition."""
        log = PartitionLog()
        _configure(log, topic)
        return log

    def apply_configs(self, topic: Topic) -> None:
        """The configs of a topic were changed."""
        for partition in topic.partitions:
            _configure(partition.log, topic)

    def set_levels(self, levels: dict[str, int]) -> None:
        """Finalize feature levels, in a new epoch; UpdateFeatures at last calls this."""
        self.levels, self.levels_epoch = levels, self.levels_epoch + 1

    def add_partitions(
        self, topic: Topic, count: int, assignments: list[list[int]] | None, validate_only: bool
    ) -> None:
        """Let a topic have so many partitions in all. Raises ApiError."""
        have = len(topic.partitions)
        if count <= have:
            reason = (
                f"Topic already has {have} partition(s)." if count == have else
                f"The topic {topic.name} currently has {have} partition(s); {count} would not be an increase.")
            raise ApiError(ErrorCode.INVALID_PARTITIONS, reason)
        if assignments is not None and len(assignments) != count - have:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {count - have} additional partition(s), but only {len(assignments)} assignment(s) "
                "were specified.")
        for ids in assignments or ():
            self._check_replicas(ids)
        if validate_only:
            return
        nodes = [node.id for node in self.alive()]
        for index in range(have, count):
            ids = assignments[index - have] if assignments else [
                nodes[(index + at) % len(nodes)] for at in range(min(topic.replication_factor, len(nodes)))]
            topic.partitions.append(Partition(index, self.new_log(topic), list(ids), ids[0]))

    def _check_replicas(self, ids: list[int]) -> None:
        """May a partition be on these nodes? Raises ApiError: INVALID_REPLICA_ASSIGNMENT."""
        if not ids or len(set(ids)) != len(ids) or not set(ids) <= {node.id for node in self.nodes}:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT)

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic; fetches that wait for it are answered."""
        del self.topics[topic.name], self.topics_by_id[topic.id], self._collisions[topic.name.replace(".", "_")]
        for partition in topic.partitions:
            partition.log.changed()

    def coordinator_of(self, key: str) -> Node:
        """The node that coordinates a group or a transactional id. Raises ApiError: COORDINATOR_NOT_AVAILABLE."""
        nodes = self.alive()
        if not nodes:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return nodes[_partition_for(key) % len(nodes)]

    def check_coordinator(self, node: Node, key: str) -> None:
        """Raises ApiError, NOT_COORDINATOR, if another node coordinates the key."""
        if self.coordinator_of(key) is not node:
            raise ApiError(ErrorCode.NOT_COORDINATOR)

    def elect(self) -> None:
        """Give each partition whose leader is down the next of its replicas that is up, in a new epoch; -1 if none."""
        up = {node.id for node in self.alive()}
        for partition in self._partitions():
            if partition.leader in up:
                continue
            leader = next((node for node in partition.replicas if node in up), -1)
            if leader != partition.leader:
                partition.leader, partition.leader_epoch = leader, partition.leader_epoch + 1
        if self.controller_id not in up:
            self.controller_id = min(up, default=-1)

    def _partitions(self) -> Iterator[Partition]:
        for topic in self.topics.values():
            yield from topic.partitions


def _configure(log: PartitionLog, topic: Topic) -> None:
    log.log_append_time = topic.configs.get("message.timestamp.type") == "LogAppendTime"
    log.max_message_bytes = int(topic.configs.get("max.message.bytes", MAX_MESSAGE_BYTES))


def check_topic_name(name: str) -> None:
    """Is it a name that Kafka allows (Topic.validate)? Raises ApiError: INVALID_TOPIC_EXCEPTION."""
    if not is_topic_name(name):
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION)


def partition_of(participant: Participant) -> tuple[str, int]:
    """The partition that takes part in a transaction: of a group, that of __consumer_offsets that has its offsets."""
    if isinstance(participant, str):
        return OFFSETS_TOPIC, _partition_for(participant)
    return participant


def _partition_for(key: str) -> int:
    """The partition of an internal topic for a group or transactional id: Utils.abs(hashCode), which is 0 for MIN."""
    value = java_hash(key)
    return 0 if value == 1 << 31 else min(value, (1 << 32) - value) % INTERNAL_PARTITIONS
