"""A fleet's data in a folder: a Kafka log directory for each node, from which a broker, or a fleet, starts again.

    FOLDER/node-1/topic-0/         segments, indexes, producer snapshots, leader-epoch-checkpoint, partition.metadata
    FOLDER/node-1/                 meta.properties, .lock, checkpoints
    FOLDER/node-1/__cluster_metadata-0/    the metadata log, in the folder of the first controller
    FOLDER/metadata/__cluster_metadata-0/  the same where the nodes are of releases with ZooKeeper

A partition is in the folder of its first replica alone: one copy serves all replicas, as in memory.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Mapping, Set
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kwire.errors import KwireError
from kwire.fleet.cluster import (
    INTERNAL_PARTITIONS,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    ClusterState,
    Partition,
    Topic,
    partition_for,
)
from kwire.fleet.controller.rules import supports
from kwire.fleet.controller.topic_records import TOPIC as TOPIC_CONFIGS
from kwire.fleet.coordinators.groups import CommittedOffset, TopicPartition
from kwire.fleet.coordinators.transactions import Participant, Transaction
from kwire.fleet.disk.coordinator_records import (
    group_row,
    offset_rows,
    read_offsets,
    read_transactions,
    transaction_row,
)
from kwire.fleet.disk.metadata_store import TOPIC, MetadataStore
from kwire.fleet.disk.node_folder import NodeFolder
from kwire.fleet.disk.segment_store import SegmentStore, delete_folder, renamed
from kwire.fleet.disk.whole_files import write_whole
from kwire.fleet.errors import ApiError, StorageErrors
from kwire.fleet.logs.log_settings import LogSettings
from kwire.fleet.logs.partition_log import PartitionLog, epochs_from
from kwire.fleet.storage import LogPlace, Storage
from kwire.schema.error_codes import ErrorCode
from kwire.schema.feature_levels import KRAFT_VERSION
from kwire.storage.metadata.tables import Topic as TopicRecords
from kwire.storage.places.discovery import is_topic_name, place_of
from kwire.storage.side_files.meta_properties import META_PROPERTIES, MetaProperties
from kwire.storage.writing.locks import locked_folder, unlock_folder

if TYPE_CHECKING:
    from kwire.fleet.node import Node

_NODE, _METADATA = re.compile(r"node-[1-9][0-9]*"), "metadata"
_METADATA_LOG = "__cluster_metadata-0"
_DEEPEST = 2  # FOLDER/node-1/topic-0
_OFFSETS_EPOCH = "2.1"  # the first release whose offset commits have leader epochs
_TRANSACTION_VERSION = "transaction.version"
_LAST_EPOCH = 1 << 30  # of leaders: some are left for those to come


class DiskStorage(Storage):
    """The data of a fleet in a folder. levels: the feature levels that the fleet was given, which must be the folder's.

    The bytes go to the operating system with each batch: a fleet that is killed goes on without loss, a machine that
    is switched off may lose the last ones.
    """

    def __init__(self, folder: str | os.PathLike[str], levels: Mapping[str, int]) -> None:
        if not os.fspath(folder):  # os.path.abspath("") is the current folder
            raise FileNotFoundError(errno.ENOENT, "the name of the data folder is empty", "")
        self.folder, self._wanted = os.path.abspath(os.fspath(folder)), dict(levels)
        self._lock, self._process = -1, os.getpid()
        self._nodes: dict[int, NodeFolder] = {}
        self._metadata: MetadataStore | None = None
        self._cluster: ClusterState | None = None
        self._is_whole = False  # all of the folder was read

    # begin and end

    def open(self, cluster: ClusterState) -> None:
        """Take the folder, and let the metadata log go on with what is in it.

        Raises FileExistsError if the folder holds something else, OSError if another fleet or a broker has it or it
        cannot be read, KwireError for damage, and if the fleet's nodes or levels are not those of the folder.
        """
        _check_folder(self.folder)
        os.makedirs(self.folder, exist_ok=True)
        self._lock, self._process = locked_folder(self.folder, "another Fleet has it"), os.getpid()
        _check_files(self.folder)
        self._nodes = {
            node.id: NodeFolder(os.path.join(self.folder, f"node-{node.id}"), node.id, node.offer)
            for node in cluster.nodes}
        self._lock_nodes()
        self._cluster = cluster
        place = self._metadata_place(cluster)
        self._metadata = MetadataStore(place, self._lock_nodes)
        self._identify(cluster, place)
        for node in self._nodes.values():
            node.make(cluster.cluster_id)
        self._lock_nodes()
        cluster.clear_topics()
        cluster.groups.groups.clear()
        log = cluster.controller.log
        log.open(self._metadata)
        if log.epoch > _LAST_EPOCH:
            raise KwireError(
                f"{self.folder}: the epoch {log.epoch} of the metadata log: expected at most {_LAST_EPOCH}")
        if log.offset >= 0:
            self._check_levels(cluster, log.levels)
        brokers = {node.id for node in cluster.nodes if node.is_broker}
        for known in log.topics.values():
            self._check(known, brokers)

    def _lock_nodes(self) -> None:
        for node in self._nodes.values():
            if os.path.isdir(node.path):
                node.lock()

    def _metadata_place(self, cluster: ClusterState) -> str:
        """The folder with the metadata log: where it is, else where it belongs."""
        controllers = [node.id for node in self.voters(cluster.controller.voters())]
        first = [self._nodes[node].path for node in controllers]
        zookeeper = os.path.join(self.folder, _METADATA)
        for place in (zookeeper, *first, *(node.path for node in self._nodes.values())):
            if os.path.isdir(os.path.join(place, _METADATA_LOG)):
                return place
        place = next(iter(first), zookeeper)
        os.makedirs(place, exist_ok=True)
        return place

    def _identify(self, cluster: ClusterState, place: str) -> None:
        """The cluster id is in meta.properties beside the metadata log."""
        with suppress(FileNotFoundError):
            cluster.cluster_id = MetaProperties.read(place).cluster_id or cluster.cluster_id
            return
        if os.path.basename(place) == _METADATA:
            write_whole(os.path.join(place, META_PROPERTIES), MetaProperties(0, cluster.cluster_id, None).to_bytes())

    def restore(self, cluster: ClusterState) -> None:
        """As Storage's."""
        log = cluster.controller.log
        for known in log.topics.values():
            cluster.add_topic(Topic(known.name, known.id, configs=log.configs_of(TOPIC_CONFIGS, known.name)))
        self._put_aside(cluster)
        for known in log.topics.values():
            topic = cluster.topics[known.name]
            for index, record in sorted(known.partitions.items()):
                topic.partitions.append(self._opened(topic, index, record))
        cluster.transactions.restore(self._transactions(), log.next_producer_id)
        self._restore_groups(cluster)
        self._is_whole = True
        for group in cluster.groups.groups.values():  # killed while a topic was deleted: a new one may get its name
            with suppress(ApiError):  # of the disk
                group.forget([one for one in group.partitions() if one[0] not in cluster.topics])

    def _check(self, topic: TopicRecords, brokers: set[int]) -> None:
        """Can the fleet have this topic? Raises KwireError."""
        if not is_topic_name(topic.name):  # it becomes the name of a folder
            raise KwireError(f"{self.folder}: invalid topic {topic.name[:300]!r} in the metadata log")
        if sorted(topic.partitions) != list(range(len(topic.partitions))) or not topic.partitions:
            raise KwireError(f"{self.folder}: topic {topic.name} lacks a partition in the metadata log")
        for record in topic.partitions.values():
            if not record.replicas or not {*record.replicas, *record.isr} <= brokers:
                raise KwireError(
                    f"{self.folder}: topic {topic.name} has replicas on the nodes {list(record.replicas)}, the fleet's "
                    f"brokers are {sorted(brokers)}")
            if record.leader_epoch > _LAST_EPOCH:
                raise KwireError(
                    f"{self.folder}: topic {topic.name} has the leader epoch {record.leader_epoch} in the metadata "
                    f"log: expected at most {_LAST_EPOCH}")

    def _check_levels(self, cluster: ClusterState, levels: Mapping[str, int]) -> None:
        for node in cluster.nodes:
            lacks = [
                f"{name} {level}" for name, level in levels.items()
                if name != KRAFT_VERSION and not supports(node.offer.features, name, level)]
            if lacks:
                raise KwireError(
                    f"Kafka {node.release} does not support the finalized levels {', '.join(lacks)} of {self.folder}")
        for name, level in self._wanted.items():
            if name != KRAFT_VERSION and levels.get(name, 0) != level:
                raise KwireError(
                    f"{self.folder} has {name} at level {levels.get(name, 0)}, not {level}: levels= is for a new one")

    def _put_aside(self, cluster: ClusterState) -> None:
        """Delete the partitions that were being deleted; others that no topic has get Kafka's name of strays."""
        for node in self._nodes.values():
            for name in os.listdir(node.path):
                path = os.path.join(node.path, name)
                topic, _ = place_of(f"/{name}/x")
                if re.fullmatch(r".+\.[0-9a-f]{32}-delete", name) or name.endswith(".cleaned"):
                    shutil.rmtree(path, ignore_errors=True)
                elif topic not in (None, TOPIC, *cluster.topics) and os.path.isdir(path):
                    os.rename(path, renamed(path, "-stray"))
            node.forget_all_but(cluster.topics)

    def _opened(self, topic: Topic, index: int, record: Any) -> Partition:
        """A partition with its log. Its first replica has it, or of a real cluster's the first that is in sync."""
        home = record.replicas[0] if record.replicas[0] in record.isr or not record.isr else record.isr[0]
        replicas = [home, *(one for one in record.replicas if one != home)]
        node = self._nodes[home]
        node.name_topic(topic.name, index, topic.id)
        store = self._store(topic, index, node)
        log = store.open() or PartitionLog(store)
        log.settings = self._settings(topic)
        log.start_offset = max(log.start_offset, min(node.starts.get((topic.name, index), 0), log.end_offset))
        log.epochs = epochs_from(log.epochs, log.start_offset)
        leader_epoch = max(record.leader_epoch, log.epochs[-1][0] if log.epochs else 0)
        if record.leader != home:
            leader_epoch += 1
        return Partition(index, log, replicas, home, leader_epoch)

    def _store(self, topic: Topic, index: int, node: NodeFolder) -> SegmentStore:
        return SegmentStore(
            node.path, topic.name, index, interval=self._settings(topic).index_interval_bytes,
            started=lambda offset: node.keep_starts({(topic.name, index): offset}), reopened=node.lock)

    def _settings(self, topic: Topic) -> LogSettings:
        try:
            return LogSettings.of(topic.configs)
        except ValueError as error:
            raise KwireError(f"{self.folder}: a config of topic {topic.name}: {error}") from None

    def _transactions(self) -> dict[str, Transaction]:
        found: dict[str, Transaction] = {}
        for log in self._logs_of(TRANSACTIONS_TOPIC):
            found.update(read_transactions(log))
        return found

    def _restore_groups(self, cluster: ClusterState) -> None:
        for log in self._logs_of(OFFSETS_TOPIC):
            commits, pending, consumers = read_offsets(log)
            for group_id in consumers:
                cluster.groups.keep(cluster.groups.joined(group_id))
            for group_id, offsets in commits.items():
                if offsets:
                    cluster.groups.restored(group_id).offsets.update(offsets)
            for producer_id, groups in pending.items():
                for group_id, offsets in groups.items():
                    cluster.groups.restored(group_id).pending_offsets.setdefault(producer_id, {}).update(offsets)

    def _logs_of(self, name: str) -> list[PartitionLog]:
        assert self._cluster is not None
        topic = self._cluster.topics.get(name)
        logs = [] if topic is None else [partition.log for partition in topic.partitions]
        return [log for log in logs if log.end_offset > log.start_offset]

    def close(self) -> None:
        """A clean shutdown: segments, snapshots and checkpoints are whole. Raises OSError."""
        cluster, self._cluster = self._cluster, None
        try:
            if cluster is not None and self._is_whole:
                self._close(cluster)
            elif cluster is not None:
                for _, partition in cluster.all_partitions():
                    _store_of(partition).abandon()
                cluster.clear_topics()  # those that were read so far: the controller does not know them
        finally:
            self._is_whole = False
            if cluster is not None:
                cluster.controller.log.close()
            if self._metadata is not None:
                self._metadata.abandon()
            self._metadata = None
            for node in self._nodes.values():
                node.release()
            if self._lock >= 0:
                unlock_folder(self._lock, self._process)
                self._lock = -1

    def _close(self, cluster: ClusterState) -> None:
        ends: dict[int, dict[TopicPartition, int]] = {node: {} for node in self._nodes}
        failed: OSError | None = None
        for topic, partition in cluster.all_partitions():
            try:
                _store_of(partition).close()
                ends[partition.replicas[0]][topic.name, partition.index] = partition.log.end_offset
            except OSError as error:
                failed = failed or error
        assert self._metadata is not None
        log = cluster.controller.log
        epochs = {number: log.brokers[number].broker_epoch for number in self._nodes if number in log.brokers}
        log.close()
        self._metadata.close()
        if failed is not None:
            raise failed
        for number, node in self._nodes.items():
            node.end(ends[number], epochs.get(number, -1))

    # what changes

    def holders(self, replicas: list[int]) -> list[int]:
        """As Storage's: the first one, in whose folder the log is."""
        return replicas[:1]

    def voters(self, controllers: list[Node]) -> list[Node]:
        """As Storage's: the first one, in whose folder the metadata log is."""
        return controllers[:1]

    def directory_id(self, node_id: int) -> UUID | None:
        """As Storage's, from meta.properties."""
        return self._nodes[node_id].directory_id if node_id in self._nodes else None

    def place_of(self, node_id: int) -> LogPlace:
        """As Storage's: its folder. Raises ApiError, KAFKA_STORAGE_ERROR."""
        path = self._nodes[node_id].path
        with StorageErrors(path):
            usage = shutil.disk_usage(path)
        return LogPlace(path, usage.total, usage.free)

    def new_log(self, topic: Topic, index: int, home: int) -> PartitionLog:
        """As Storage's; nothing is written yet."""
        return PartitionLog(self._store(topic, index, self._nodes[home]))

    def partitions_added(self, topic: Topic, partitions: list[Partition]) -> None:
        """As Storage's: their folders, with the topic's id."""
        with StorageErrors(self.folder):
            for partition in partitions:
                node = self._nodes[partition.replicas[0]]
                folder = os.path.join(node.path, f"{topic.name}-{partition.index}")
                if os.path.isdir(folder):  # of a topic that was deleted, whose folder could not be removed
                    delete_folder(folder)
                node.name_topic(topic.name, partition.index, topic.id)

    def check_move(self, topic: Topic, partition: Partition, replicas: list[int]) -> None:
        """As Storage's: the first one stays, it has the folder."""
        home = partition.replicas[0]
        if replicas[0] != home:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{topic.name}-{partition.index} is in the folder of broker {home}: expected it as the first replica, "
                f"found {replicas[0]}")

    def partitions_removed(self, topic: Topic, partitions: list[Partition]) -> None:
        """As Storage's. What cannot be removed is put aside when the folder is opened again."""
        for node in self._nodes.values():
            with suppress(OSError):
                node.forget((topic.name, partition.index) for partition in partitions)
        for partition in partitions:
            with suppress(OSError):
                _store_of(partition).delete()

    def keep_starts(self, home: int, starts: Mapping[TopicPartition, int]) -> None:
        """As Storage's: in one file for all of them."""
        with StorageErrors(self.folder):
            self._nodes[home].keep_starts(starts)

    def offsets_committed(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset | None],
        producer: tuple[int, int] | None = None,
    ) -> None:
        """As Storage's."""
        if offsets:
            cluster = self._running()
            now = cluster.clock.now_ms()
            with_epoch = cluster.nodes[0].offer.at_least(_OFFSETS_EPOCH)
            self._append(OFFSETS_TOPIC, group_id, offset_rows(group_id, offsets, with_epoch, now), producer)

    def group_changed(self, group_id: str, is_consumer: bool) -> None:
        """As Storage's."""
        if self._is_whole:  # else it comes from there
            row = group_row(group_id, is_consumer, self._running().clock.now_ms())
            self._append(OFFSETS_TOPIC, group_id, [row], None)

    def group_deleted(self, group_id: str, partitions: list[TopicPartition], is_consumer: bool) -> None:
        """As Storage's: one batch."""
        now = self._running().clock.now_ms()
        rows = offset_rows(group_id, dict.fromkeys(partitions), False, now)
        if is_consumer:
            rows.append(group_row(group_id, False, now))
        if rows:
            self._append(OFFSETS_TOPIC, group_id, rows, None)

    def transaction_changed(self, transaction: Transaction) -> None:
        """As Storage's."""
        cluster = self._running()
        now = cluster.clock.now_ms()
        row = transaction_row(
            transaction, self.marked(transaction.participants), cluster.levels.get(_TRANSACTION_VERSION, 0) > 0, now)
        self._append(TRANSACTIONS_TOPIC, transaction.id, [row], None)

    def _running(self) -> ClusterState:
        if self._cluster is None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the fleet is closed")
        return self._cluster

    def _append(self, name: str, key: str, rows: list[Any], producer: tuple[int, int] | None) -> None:
        cluster = self._running()
        partition = cluster.partition(name, self._partition_for(name, key))
        partition.log.append_own(rows, partition.leader_epoch, cluster.clock.now_ms(), producer)

    def _partition_for(self, name: str, key: str) -> int:
        """The partition of an internal topic, which is made with its first record, for a group or transactional id."""
        cluster = self._running()
        if name not in cluster.topics:
            cluster.create_topic(name, INTERNAL_PARTITIONS)
        return partition_for(key, len(cluster.topics[name].partitions))

    def marked(self, participants: Set[Participant]) -> list[TopicPartition]:
        """As Storage's; a group's offsets are in a partition that gets a marker too."""
        return sorted({
            (OFFSETS_TOPIC, self._partition_for(OFFSETS_TOPIC, one)) if isinstance(one, str) else one
            for one in participants})


def _store_of(partition: Partition) -> SegmentStore:
    store = partition.log.store
    assert isinstance(store, SegmentStore)
    return store


def _check_folder(folder: str) -> None:
    """Is it new, empty, or of a fleet? Raises FileExistsError, OSError."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    strange = [name for name in names if not _NODE.fullmatch(name) and name != _METADATA]
    has_log = any(os.path.isdir(os.path.join(folder, name, _METADATA_LOG)) for name in names)
    if not has_log:
        strange += [name for name in names if _content(os.path.join(folder, name))]
    if strange:
        raise FileExistsError(
            errno.EEXIST, f"holds {strange[0]!r}: expected a new or empty folder, or one that a Fleet has made", folder)


def _check_files(folder: str) -> None:
    """Are there but files and folders in it, links to them included? To open a pipe would wait. Raises OSError."""
    for parent, folders, files in os.walk(folder):
        if parent.count(os.sep) - folder.count(os.sep) >= _DEEPEST:
            folders.clear()
        for name in files:
            path = os.path.join(parent, name)
            if not os.path.isfile(path) and os.path.exists(path):
                raise OSError(errno.EINVAL, "is neither a file nor a folder", path)


def _content(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except NotADirectoryError:
        return [path]
