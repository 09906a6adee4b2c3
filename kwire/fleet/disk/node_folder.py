"""The folder of a node: a Kafka log directory with its lock, meta.properties and checkpoints."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from uuid import UUID

from kwire.errors import KwireError
from kwire.fleet.coordinators.groups import TopicPartition
from kwire.fleet.disk.whole_files import write_whole
from kwire.fleet.releases import Offer
from kwire.storage.side_files.checkpoints import (
    PartitionOffset,
    offset_checkpoint,
    partition_metadata,
    read_offset_checkpoint,
)
from kwire.storage.side_files.meta_properties import META_PROPERTIES, MetaProperties
from kwire.storage.side_files.uuids import random_directory_id
from kwire.storage.writing.locks import LOCK_FILE, lock_as_broker, unlock_as_broker
from kwire.storage.writing.segment_writer import SegmentWriter

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
_STARTS = "log-start-offset-checkpoint"
_ENDS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")
_PARTITION_METADATA = "partition.metadata"
_FIRST_WITH_DIRECTORY_ID = "3.7"  # KIP-858


class NodeWriter(SegmentWriter):
    """A SegmentWriter of the node itself, which holds the .lock of its folder."""

    _is_outside = False


class NodeFolder:
    """The log directory of one node. starts: the offsets at which logs begin that do not begin at their first segment.

    directory_id: its id (KIP-858), None before 3.7.
    """

    def __init__(self, path: str, node_id: int, offer: Offer) -> None:
        self.path, self.id, self._offer = path, node_id, offer
        self.starts: dict[TopicPartition, int] = {}
        self.directory_id: UUID | None = None
        self._lock = -1

    def make(self, cluster_id: str) -> None:
        """Make what is missing of it, and read its checkpoints. Raises OSError, KwireError."""
        os.makedirs(self.path, exist_ok=True)
        path = os.path.join(self.path, META_PROPERTIES)
        if not os.path.exists(path):
            self._write(META_PROPERTIES, self._properties(cluster_id).to_bytes())
        found = MetaProperties.read(self.path)
        if found.node_id != self.id or found.cluster_id not in (None, cluster_id):
            raise KwireError(
                f"{self.path} is of node {found.node_id} of the cluster {found.cluster_id}: expected node {self.id} of "
                f"the cluster {cluster_id}")
        self.directory_id = found.directory_id
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self.path, CLEAN_SHUTDOWN))
        with suppress(FileNotFoundError):
            self.starts = {
                (one.topic, one.partition): one.offset
                for one in read_offset_checkpoint(os.path.join(self.path, _STARTS))}

    def _properties(self, cluster_id: str) -> MetaProperties:
        """Those of a KRaft broker; with ZooKeeper there is no cluster id: a broker of any ensemble takes the folder."""
        if not self._offer.is_kraft:
            return MetaProperties(0, None, self.id)
        directory = random_directory_id() if self._offer.at_least(_FIRST_WITH_DIRECTORY_ID) else None
        return MetaProperties(1, cluster_id, self.id, directory)

    def name_topic(self, topic: str, partition: int, topic_id: UUID) -> None:
        """Make the folder of a partition, with the topic's id in KRaft: there it has come with the topic. OSError."""
        folder = os.path.join(self.path, f"{topic}-{partition}")
        if not os.path.isdir(folder):  # a start that is still there is of another log
            self.forget([(topic, partition)])
        os.makedirs(folder, exist_ok=True)
        if self._offer.is_kraft:
            data, path = partition_metadata(topic_id), os.path.join(folder, _PARTITION_METADATA)
            with suppress(FileNotFoundError), open(path, "rb") as file:
                if file.read(len(data) + 1) == data:
                    return
            self._write(os.path.join(f"{topic}-{partition}", _PARTITION_METADATA), data)

    def lock(self) -> None:
        """Hold .lock, as a broker does that runs. Raises OSError if one does."""
        if self._lock < 0:
            self._lock = os.open(os.path.join(self.path, LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        lock_as_broker(self._lock, self.path)

    def keep_starts(self, changed: Mapping[TopicPartition, int]) -> None:
        """Logs begin at other offsets. Raises OSError."""
        if not changed.items() <= self.starts.items():
            starts = {**self.starts, **changed}
            self._write(_STARTS, _checkpoint(starts))
            self.starts = starts

    def forget_all_but(self, topics: Container[str]) -> None:
        """Topics were deleted while nobody kept it in mind. Raises OSError."""
        self.forget([one for one in self.starts if one[0] not in topics])

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions were deleted. Raises OSError."""
        gone = set(partitions)
        starts = {one: offset for one, offset in self.starts.items() if one not in gone}
        if len(starts) < len(self.starts):
            self._write(_STARTS, _checkpoint(starts))
            self.starts = starts

    def end(self, ends: Mapping[TopicPartition, int], broker_epoch: int) -> None:
        """A clean shutdown: the checkpoints of where the logs end, and the broker's last epoch. Raises OSError."""
        for name in _ENDS:
            self._write(name, _checkpoint(ends))
        self._write(_STARTS, _checkpoint(self.starts))
        self._write(CLEAN_SHUTDOWN, f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode())

    def release(self) -> None:
        """Let others have it."""
        if self._lock >= 0:
            unlock_as_broker(self._lock)
            self._lock = -1

    def _write(self, name: str, data: bytes) -> None:
        write_whole(os.path.join(self.path, name), data)


def _checkpoint(offsets: Mapping[TopicPartition, int]) -> bytes:
    return offset_checkpoint([PartitionOffset(*partition, offset) for partition, offset in offsets.items()])
