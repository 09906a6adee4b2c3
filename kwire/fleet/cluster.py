"""The state that the nodes of a fleet share: topics, partitions, groups, transactions, as the metadata log holds it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property, partial
from random import Random
from typing import TYPE_CHECKING, Any

from kwire import messages
from kwire.fleet.clock import Clock
from kwire.fleet.controller import topic_records
from kwire.fleet.controller.controller import QuorumController
from kwire.fleet.coordinators.group_coordinator import GroupCoordinator
from kwire.fleet.coordinators.transactions import Participant, TransactionCoordinator
from kwire.fleet.errors import ApiError, certainly
from kwire.fleet.logs.log_settings import LogSettings
from kwire.fleet.logs.partition_log import PartitionLog
from kwire.fleet.storage import Storage
from kwire.java_semantics import java_hash
from kwire.schema import is_at_least
from kwire.schema.error_codes import ErrorCode
from kwire.storage.places.discovery import is_topic_name
from kwire.storage.side_files.uuids import uuid_text

if TYPE_CHECKING:
    from kwire.fleet.node import Node
    from kwire.fleet.users import Users

OFFSETS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
INTERNAL_TOPICS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
_SHARE_TOPIC, _FIRST_WITH_SHARE_TOPIC = "__share_group_state", "3.9"
MOST_PARTITIONS = 10_000  # of a request: ReplicationControlManager.MAX_PARTITIONS_PER_BATCH, here of all releases
TOO_MANY_PARTITIONS = "Excessively large number of partitions per request."
_LONGEST_NAME = 249
_SALT_BYTES = 16
INTERNAL_PARTITIONS = 50  # offsets.topic.num.partitions, transaction.state.log.num.partitions
_INTERNAL_CONFIGS = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}


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
    def replication_factor(self) -> int:
        """Replicas of each partition."""
        return len(self.partitions[0].replicas)


class NewPartitions:
    """The partitions that one request makes: MOST_PARTITIONS in all."""

    def __init__(self) -> None:
        self._left = MOST_PARTITIONS

    def take(self, count: int) -> None:
        """Make so many of them. Raises ApiError: POLICY_VIOLATION."""
        if count > self._left:
            raise ApiError(ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS)
        self._left -= max(count, 0)


class ClusterState:
    """What the nodes of one fleet share. seed: of all that is random in it."""

    def __init__(self, clock: Clock, seed: int = 0) -> None:
        self.clock, self.random = clock, Random(seed)
        self.cluster_id = self.new_id_text()
        self.storage = Storage()
        self.nodes: list[Node] = []
        self.controller: QuorumController
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[uuid.UUID, Topic] = {}
        self._users_in_zookeeper: dict[tuple[str, int], messages.UserScramCredentialRecord] = {}
        self.topic_changes = 0  # how often a topic came, went or grew
        self._collisions: dict[str, str] = {}  # names of topics, by what is left when a dot is an underscore
        self.groups, self.transactions = GroupCoordinator(self), TransactionCoordinator(self)
        self.auto_create, self.default_partitions = True, 1

    def new_id(self) -> uuid.UUID:
        """A topic id or the like: random by the seed."""
        return uuid.UUID(int=self.random.getrandbits(128), version=4)

    def new_id_text(self) -> str:
        """An id in Kafka's text: 22 characters of URL-safe base64 (Uuid.toString), not beginning with a dash."""
        text = uuid_text(self.new_id())
        return text if not text.startswith("-") else self.new_id_text()

    @property
    def controller_id(self) -> int:
        """The node that clients are given as the controller: the active one, if it is a broker too; -1 if none is."""
        active = self.controller.active
        if active is not None and active.is_broker:
            return active.id
        return min((node.id for node in self.alive()), default=-1)

    def check_controller(self, node: Node) -> None:
        """Raise ApiError, NOT_CONTROLLER, for a broker with ZooKeeper that is not the controller.

        Brokers of KRaft forward to the controller what only it can do.
        """
        if not self.controller.kraft and node.id != self.controller_id:
            raise ApiError(ErrorCode.NOT_CONTROLLER)

    @property
    def levels(self) -> dict[str, int]:
        """The finalized feature levels."""
        return self.controller.levels

    def alive(self) -> list[Node]:
        """The brokers that are up and not fenced, by id."""
        return [node for node in self.nodes if not node.fenced]

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

    def has_replica(self, node: Node, partition: Partition, epoch: int = -1) -> None:
        """Raise ApiError unless the node has a replica, and the client's leader epoch is the partition's."""
        if node.id not in partition.replicas:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if epoch != -1 and epoch < partition.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        if epoch > partition.leader_epoch:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def leads(self, node: Node, partition: Partition, epoch: int = -1) -> None:
        """Raise ApiError unless the node leads the partition, and the client's leader epoch is the partition's."""
        self.has_replica(node, partition, epoch)
        if partition.leader != node.id:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def create_topic(
        self, name: str, partitions: int = -1, replication_factor: int = -1,
        configs: Mapping[str, str] | None = None, assignments: Mapping[int, list[int]] | None = None,
        validate_only: bool = False,
    ) -> Topic:
        """Create a topic, with leaders spread over the nodes. configs: None for a broker's own.

        Raises ApiError.
        """
        self.controller.check_active()
        self.check_new_topic(name)
        partitions = self.default_partitions if partitions == -1 else partitions
        if partitions > MOST_PARTITIONS:
            raise ApiError(ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS)
        nodes = [node.id for node in self.alive()]
        own = configs is None and name in INTERNAL_TOPICS
        replicas = min(3, len(nodes)) if replication_factor == -1 and own else replication_factor
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
        topic = Topic(name, self._new_topic_id(), configs=dict(_INTERNAL_CONFIGS if own else configs or {}))
        for index, ids in sorted(chosen.items()):
            _check_replicas(ids, self.broker_ids)
            topic.partitions.append(self._new_partition(topic, index, list(ids), nodes))
        if not validate_only:
            taken_back = partial(self._remove_topic, topic)
            try:  # first here, where it can be taken back
                self.add_topic(topic)
                self._write_partitions(topic, topic.partitions, topic_records.topic_created(topic))
            except BaseException:
                certainly(taken_back)
                raise
        return topic

    def check_new_topic(self, name: str) -> None:
        """May a topic of this name be created? Raises ApiError: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS."""
        check_topic_name(name)
        if name in self.topics:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        other = self._collisions.get(name.replace(".", "_"))
        if other is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")

    def add_topic(self, topic: Topic) -> None:
        """Let a topic be there, without a record of it."""
        self.topic_changes += 1
        self.topics[topic.name] = self.topics_by_id[topic.id] = topic
        self._collisions[topic.name.replace(".", "_")] = topic.name

    def _remove_topic(self, topic: Topic) -> None:
        """Have a topic no more, without a record of it."""
        self.topics.pop(topic.name, None)
        self.topics_by_id.pop(topic.id, None)
        self._collisions.pop(topic.name.replace(".", "_"), None)

    def clear_topics(self) -> None:
        """Have no topics, without a record of it."""
        self.topic_changes += 1
        self.topics.clear()
        self.topics_by_id.clear()
        self._collisions.clear()

    def _write_partitions(self, topic: Topic, partitions: list[Partition], records: Iterable[Any] = ()) -> None:
        """Make partitions, in one batch of the metadata log with these records before theirs. Raises ApiError."""
        holders = self.storage.holders
        try:
            self.storage.partitions_added(topic, partitions)
            self.controller.log.append(*records, *(
                topic_records.partition_created(topic, one, holders(one.replicas)) for one in partitions))
        except BaseException:  # MemoryError too
            self.storage.partitions_removed(topic, partitions)
            raise

    def _new_topic_id(self) -> uuid.UUID:
        """An id that no topic has: a fleet that goes on has given out ids by the same seed before."""
        while (topic_id := self.new_id()) in self.topics_by_id:
            pass
        return topic_id

    def _new_partition(self, topic: Topic, index: int, replicas: list[int], up: Container[int]) -> Partition:
        log = self.storage.new_log(topic, index, replicas[0])
        log.settings = LogSettings.of(topic.configs)
        return Partition(index, log, replicas, next((node for node in replicas if node in up), -1))

    def apply_configs(self, topic: Topic, configs: Mapping[str, str]) -> None:
        """Let a topic have these configs. Raises ApiError."""
        kept, settings = dict(configs), LogSettings.of(configs)

        def apply() -> None:
            topic.configs = kept
            for partition in topic.partitions:
                partition.log.settings = settings

        self.set_configs_of(topic_records.TOPIC, topic.name, configs)
        certainly(apply)

    def configs_of(self, kind: int, name: str) -> dict[str, str]:
        """The configs that were set of a resource, by its ConfigResource.Type: of a broker, "" for all of them."""
        return self.controller.log.configs_of(kind, name)

    def set_configs_of(self, kind: int, name: str, configs: Mapping[str, str]) -> None:
        """Let a resource have these configs in the metadata log; a topic: apply_configs(). Raises ApiError."""
        self.controller.check_active()
        self.controller.log.append(*topic_records.configs_changed(kind, name, self.configs_of(kind, name), configs))

    def names_with_configs(self, kind: int) -> list[str]:
        """The names of the resources of a kind for which configs were set."""
        return self.controller.log.names_with_configs(kind)

    def add_partitions(
        self, topic: Topic, count: int, assignments: list[list[int]] | None, validate_only: bool
    ) -> None:
        """Let a topic have so many partitions in all. Raises ApiError."""
        self.controller.check_active()
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
            _check_replicas(ids, self.broker_ids)
        if validate_only:
            return
        nodes = [node.id for node in self.alive()]
        if not nodes and not assignments:
            raise ApiError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {topic.replication_factor} time(s): All brokers are currently "
                "fenced.")
        added = []
        for index in range(have, count):
            ids = assignments[index - have] if assignments else [
                nodes[(index + at) % len(nodes)] for at in range(min(topic.replication_factor, len(nodes)))]
            added.append(self._new_partition(topic, index, list(ids), nodes))
        grown = [*topic.partitions, *added]
        self.topic_changes += 1
        self._write_partitions(topic, added)
        topic.partitions = grown

    @cached_property
    def broker_ids(self) -> frozenset[int]:
        """The nodes that are brokers, up or not."""
        return frozenset(node.id for node in self.nodes if node.is_broker)

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic; fetches that wait for it are answered. Raises ApiError."""
        self.controller.check_active()
        self.topic_changes += 1
        steps: list[Callable[[], None]] = [
            partial(self._remove_topic, topic), partial(self.storage.partitions_removed, topic, topic.partitions)]
        steps += [partition.log.changed for partition in topic.partitions]
        if topic.name == OFFSETS_TOPIC:  # what coordinators kept in it goes with it
            steps.append(self.groups.forget_offsets)
        else:
            steps.append(partial(self.groups.topic_deleted, topic.name, len(topic.partitions)))
        if topic.name == TRANSACTIONS_TOPIC:
            steps.append(self.transactions.transactions.clear)
        each = iter(steps)
        self.controller.log.append(topic_records.topic_deleted(topic))
        for step in each:
            certainly(step)

    @property
    def scram(self) -> dict[tuple[str, int], messages.UserScramCredentialRecord]:
        """SCRAM credentials by user and mechanism: those of the metadata log, with ZooKeeper those made by the wire."""
        return self.controller.log.scram if self.controller.kraft else self._users_in_zookeeper

    def change_scram(self, *records: Any) -> None:
        """Keep UserScramCredentialRecords, forget those of RemoveUserScramCredentialRecords. Raises ApiError."""
        if self.controller.kraft:
            self.controller.log.append(*records)
            return
        for record in records:
            if isinstance(record, messages.UserScramCredentialRecord):
                self._users_in_zookeeper[record.name, record.mechanism] = record
            else:
                del self._users_in_zookeeper[record.name, record.mechanism]

    def coordinator_of(self, key: str) -> Node:
        """The node that coordinates a group or a transactional id. Raises ApiError: COORDINATOR_NOT_AVAILABLE."""
        nodes = self.alive()
        if not nodes:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return nodes[partition_for(key) % len(nodes)]

    def check_coordinator(self, node: Node, key: str) -> None:
        """Raises ApiError, NOT_COORDINATOR, if another node coordinates the key."""
        if self.coordinator_of(key) is not node:
            raise ApiError(ErrorCode.NOT_COORDINATOR)

    def partition_of(self, participant: Participant) -> tuple[str, int]:
        """The partition that takes part in a transaction: of a group, that of __consumer_offsets with its offsets."""
        if not isinstance(participant, str):
            return participant
        topic = self.topics.get(OFFSETS_TOPIC)
        return OFFSETS_TOPIC, partition_for(
            participant, INTERNAL_PARTITIONS if topic is None else len(topic.partitions))

    def elect(self) -> None:
        """Give each partition whose leader is down the next of its replicas that is up, in a new epoch; -1 if none."""
        log, holders = self.controller.log, self.storage.holders
        up = {node.id for node in self.alive()}
        changes = []
        for topic, partition in self.all_partitions():
            if partition.leader not in up:
                leader = next((node for node in partition.replicas if node in up), -1)
                if leader != partition.leader:
                    partition.leader, partition.leader_epoch = leader, partition.leader_epoch + 1
            known = log.topics[topic.id].partitions[partition.index]
            change = topic_records.partition_changed(partition, known, holders(partition.replicas), up)
            if change is not None:
                changes.append(change)
        log.note(*changes)

    def move(self, moves: Iterable[tuple[Topic, Partition, list[int], int]]) -> None:
        """Let each of these partitions have replicas and, of them, a leader, -1 for none. Raises ApiError.

        An epoch begins with a new leader, and where a replica goes; with ZooKeeper each time. Of two moves of a
        partition the last one counts.
        """
        self.controller.check_active()
        log, holders = self.controller.log, self.storage.holders
        up = {node.id for node in self.alive()}
        before, changes = [], []
        try:
            last = {(move[0].id, move[1].index): move for move in moves}
            for topic, partition, replicas, leader in last.values():
                before.append((partition, partition.replicas, partition.leader, partition.leader_epoch))
                goes = not {*partition.replicas} <= {*replicas}
                if leader != partition.leader or goes or not self.controller.kraft:
                    partition.leader_epoch += 1
                partition.replicas, partition.leader = replicas, leader
                known = log.topics[topic.id].partitions[partition.index]
                change = topic_records.partition_changed(partition, known, holders(replicas), up)
                if change is not None:
                    changes.append(change)
            log.append(*changes)
        except BaseException:  # MemoryError too
            for partition, replicas, leader, epoch in reversed(before):
                partition.replicas, partition.leader, partition.leader_epoch = replicas, leader, epoch
            raise
        for partition, *_ in before:
            partition.log.changed()

    def add_users(self, users: Users) -> None:
        """Let the metadata log have the SCRAM credentials of users, from the level on that has their records."""
        log = self.controller.log
        if self.controller.kraft and log.can.get("isScramSupported"):
            log.note(*users.new_records(lambda: self.random.randbytes(_SALT_BYTES)))

    def take_producer_ids(self, following: int) -> None:
        """Let the producer ids before this one be given away. Raises ApiError."""
        broker = next(iter(self.alive()), self.nodes[0])
        registered = self.controller.log.brokers.get(broker.id)
        self.controller.log.append(messages.ProducerIdsRecord(
            broker_id=broker.id, broker_epoch=0 if registered is None else registered.broker_epoch,
            next_producer_id=following))

    def all_partitions(self) -> Iterator[tuple[Topic, Partition]]:
        """Each partition, with its topic."""
        for topic in self.topics.values():
            for partition in topic.partitions:
                yield topic, partition


def _check_replicas(ids: list[int], brokers: Set[int]) -> None:
    """May a partition be on these nodes? Raises ApiError: INVALID_REPLICA_ASSIGNMENT."""
    if not ids or len(set(ids)) != len(ids) or not set(ids) <= brokers:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT)


def is_internal(name: str, release: str) -> bool:
    """Whether a topic of this name is one of Kafka's own (Topic.isInternal)."""
    return name in INTERNAL_TOPICS or (name == _SHARE_TOPIC and is_at_least(release, _FIRST_WITH_SHARE_TOPIC))


def shortened(name: str) -> str:
    """A name for the text of a row that a request may repeat: no longer than that of a topic, and a bit if it is."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."


def check_topic_name(name: str) -> None:
    """Is it a name that Kafka allows (Topic.validate)? Raises ApiError: INVALID_TOPIC_EXCEPTION."""
    if not is_topic_name(name):
        reason = (
            "the empty string is not allowed" if not name else f"'{name}' is not allowed" if name in (".", "..") else
            f"the length of '{name}' is longer than the max allowed length {_LONGEST_NAME}"
            if len(name) > _LONGEST_NAME else
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'")
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def partition_for(key: str, partitions: int = INTERNAL_PARTITIONS) -> int:
    """The partition of an internal topic for a group or transactional id: Utils.abs(hashCode), which is 0 for MIN."""
    value = java_hash(key)
    return 0 if value == 1 << 31 else min(value, (1 << 32) - value) % partitions
