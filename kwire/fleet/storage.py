"""What a fleet keeps: nothing but memory here; kwire.fleet.disk.disk_storage keeps it in a folder.

The state of the cluster says here what has changed, before the change counts: an ApiError refuses it. What the metadata
log holds (topics, configs, levels) is not said here: the log has its own store.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kwire.fleet.coordinators.groups import CommittedOffset, TopicPartition
from kwire.fleet.logs.partition_log import PartitionLog

if TYPE_CHECKING:
    from kwire.fleet.cluster import ClusterState, Partition, Topic
    from kwire.fleet.coordinators.transactions import Participant, Transaction
    from kwire.fleet.node import Node


class LogPlace(NamedTuple):
    """Where a node's logs are: the folder's path, the bytes of its volume and those that are free, -1 if not known."""

    path: str
    total_bytes: int = -1
    usable_bytes: int = -1


class Storage:
    """A fleet's data in memory: each method is where a folder's storage writes. Those with an error raise ApiError."""

    def open(self, cluster: ClusterState) -> None:
        """Let the metadata log have what was kept. Raises OSError, KwireError."""

    def restore(self, cluster: ClusterState) -> None:
        """Let the cluster have the topics of the metadata log, and what was kept of their data.

        Raises OSError, KwireError.
        """

    def close(self) -> None:
        """The fleet ends. Raises OSError."""

    def holders(self, replicas: list[int]) -> list[int]:
        """Which of a partition's replicas have its log, as the metadata log says: all, one copy serves them."""
        return replicas

    def voters(self, controllers: list[Node]) -> list[Node]:
        """Which of the controllers have the metadata log, as it says itself: all."""
        return controllers

    def directory_id(self, node_id: int) -> UUID | None:
        """The id of a node's folder (KIP-858), None if it has none."""
        return None

    def place_of(self, node_id: int) -> LogPlace:
        """Where a node's logs are: in memory a folder that is not there. Raises ApiError."""
        return LogPlace(f"/memory/node-{node_id}")

    def new_log(self, topic: Topic, index: int, home: int) -> PartitionLog:
        """The log of a new partition. home: the id of the node that has it."""
        return PartitionLog()

    def partitions_added(self, topic: Topic, partitions: list[Partition]) -> None:
        """Partitions are to be there; after this their records are written, or partitions_removed() is called."""

    def check_move(self, topic: Topic, partition: Partition, replicas: list[int]) -> None:
        """May a partition have these replicas? Raises ApiError."""

    def partitions_removed(self, topic: Topic, partitions: list[Partition]) -> None:
        """Partitions are there no more. No error."""

    def keep_starts(self, home: int, starts: Mapping[TopicPartition, int]) -> None:
        """Logs of a node (home: its id) are to begin at other offsets, where begin_at() lets them begin after this."""

    def offsets_committed(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset | None],
        producer: tuple[int, int] | None = None,
    ) -> None:
        """A group commits offsets, None forgets one. producer: (id, epoch) of the transaction in which it does."""

    def group_changed(self, group_id: str, is_consumer: bool) -> None:
        """A group becomes one of KIP-848, or is none any more."""

    def group_deleted(self, group_id: str, partitions: list[TopicPartition], is_consumer: bool) -> None:
        """A group is there no more. partitions: whose offsets it has committed; is_consumer: it is one of KIP-848."""

    def transaction_changed(self, transaction: Transaction) -> None:
        """A transactional id is in another state."""

    def marked(self, participants: Set[Participant]) -> list[TopicPartition]:
        """The partitions that get a marker when a transaction of these participants ends."""
        return sorted(one for one in participants if not isinstance(one, str))
