"""What the state of a fleet's topics is in the metadata log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kwire import messages

if TYPE_CHECKING:
    from kwire.fleet.cluster import Partition, Topic

TOPIC = 2  # ConfigResource.Type
_NO_LEADER_CHANGE = -2  # LeaderConstants


def topic_created(topic: Topic) -> Iterator[Any]:
    """The records of a new topic."""
    yield messages.TopicRecord(name=topic.name, topic_id=topic.id)
    yield from configs_changed(topic, {}, topic.configs)
    yield from partitions_created(topic, topic.partitions)


def partitions_created(topic: Topic, partitions: list[Partition]) -> Iterator[Any]:
    """The records of new partitions."""
    for one in partitions:
        yield messages.PartitionRecord(
            topic_id=topic.id, partition_id=one.index, replicas=one.replicas, isr=one.replicas, leader=one.leader,
            leader_epoch=one.leader_epoch)


def topic_deleted(topic: Topic) -> Iterator[Any]:
    """The record that removes a topic."""
    yield messages.RemoveTopicRecord(topic_id=topic.id)


def partition_changed(topic: Topic, partition: Partition, known: Any, up: set[int]) -> Iterator[Any]:
    """What is new of a partition's leader and in-sync replicas. known: its PartitionRecord; up: nodes that are up.

    The last replica in sync stays there when it goes down: it is the one that has all records.
    """
    in_sync = [node for node in partition.replicas if node in up] or [*known.isr][:1]
    moved = partition.leader != known.leader
    if moved or in_sync != [*known.isr]:
        yield messages.PartitionChangeRecord(
            topic_id=topic.id, partition_id=partition.index, isr=in_sync,
            leader=partition.leader if moved else _NO_LEADER_CHANGE)


def configs_changed(topic: Topic, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Any]:
    """The records of configs that were set (value) or removed (null)."""
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield messages.ConfigRecord(
                resource_type=TOPIC, resource_name=topic.name, name=name, value=after.get(name))
