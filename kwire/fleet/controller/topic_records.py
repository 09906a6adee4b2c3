"""What the state of a fleet's topics is in the metadata log.

holders: the replicas of a partition that have its log (Storage.holders); up: the nodes that are up. Of the log's
partitions only holders lead and are in sync: it says what a broker finds that starts on the same data.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kwire import messages
from kwire.storage.metadata.tables import MIGRATING

if TYPE_CHECKING:
    from kwire.fleet.cluster import Partition, Topic

TOPIC, BROKER = 2, 4  # ConfigResource.Type
_UNASSIGNED = UUID(int=1)  # DirectoryId
_NO_LEADER, _NO_LEADER_CHANGE = -1, -2  # LeaderConstants


def topic_created(topic: Topic) -> Iterator[Any]:
    """The records of a new topic, without those of its partitions."""
    yield messages.TopicRecord(name=topic.name, topic_id=topic.id)
    yield from configs_changed(TOPIC, topic.name, {}, topic.configs)


def partition_created(topic: Topic, partition: Partition, holders: list[int]) -> Any:
    """The record of a new partition."""
    leader = partition.leader if partition.leader in holders else _NO_LEADER
    return messages.PartitionRecord(
        topic_id=topic.id, partition_id=partition.index, replicas=partition.replicas, isr=holders, leader=leader,
        leader_epoch=partition.leader_epoch, partition_epoch=0)


def topic_deleted(topic: Topic) -> Any:
    """The record that removes a topic."""
    return messages.RemoveTopicRecord(topic_id=topic.id)


def partition_changed(partition: Partition, known: Any, holders: list[int], up: set[int]) -> Any | None:
    """What is new of a partition's replicas, leader and in-sync ones, None if nothing is. known: its PartitionRecord.

    The last replica in sync stays there when it goes down: it is the one that has all records.
    """
    able = [node for node in holders if node in up]
    in_sync = able or [node for node in known.isr if node in holders][:1] or holders[:1]
    leader = partition.leader if partition.leader in holders else next(iter(able), _NO_LEADER)
    epochs = partition.leader_epoch - known.leader_epoch
    moved, directories = None, None
    if partition.replicas != [*known.replicas]:
        moved = partition.replicas
        if any(directory != MIGRATING for directory in known.directories):  # a real broker has had the folder
            places = dict(zip(known.replicas, known.directories, strict=True))
            directories = [places.get(node, _UNASSIGNED) for node in moved]
    if epochs not in (0, 1):  # epochs that the log has never got: the disk was full
        record = copy.copy(known)
        record.isr, record.leader = in_sync, leader
        record.replicas = partition.replicas
        if moved is not None and known.directories:
            record.directories = directories or [MIGRATING] * len(moved)
        record.leader_epoch, record.partition_epoch = partition.leader_epoch, known.partition_epoch + 1
        return record
    if not epochs and moved is None and in_sync == [*known.isr]:
        return None
    return messages.PartitionChangeRecord(
        topic_id=known.topic_id, partition_id=partition.index, isr=in_sync, replicas=moved, directories=directories,
        leader=leader if epochs else _NO_LEADER_CHANGE)


def configs_changed(
    resource_type: int, name: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[Any]:
    """The records of a resource's configs that were set (value) or removed (null)."""
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield messages.ConfigRecord(
                resource_type=resource_type, resource_name=name, name=key, value=after.get(key))
