"""What a fleet keeps: nothing but memory here; kwire.fleet.disk_storage keeps it in a folder.

The state of the cluster says here what has changed, before the change counts: an ApiError refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kwire.fleet.groups import CommittedOffset, TopicPartition
from kwire.fleet.partition_log import PartitionLog

if TYPE_CHECKING:
    from kwire.fleet.cluster import ClusterState, Partition, Topic
    from kwire.fleet.transactions import Participant, Transaction


class Storage:
    """A fleet's data in memory: each method is where a folder's storage writes. Those with an error raise ApiError."""

    def open(self, cluster: ClusterState) -> None:
        """Let the cluster have what was kept. Raises OSError, KwireError."""

    def close(self) -> None:
        """The fleet ends. Raises OSError."""

    def new_log(self, topic: Topic, index: int, home: int) -> PartitionLog:
        """The log of a new partition. home: the id of the node that has it."""
        return PartitionLog()

    def topic_created(self, topic: Topic) -> None:
        """A topic is to be made."""

    def topic_deleted(self, topic: Topic) -> None:
        """A topic is to be deleted."""

    def partitions_added(self, topic: Topic, partitions: list[Partition]) -> None:
        """A topic is to have more partitions."""

    def configs_changed(self, topic: Topic) -> None:
        """A topic has other configs."""

    def levels_changed(self, levels: Mapping[str, int]) -> None:
        """Feature levels are finalized."""

    def leader_changed(self, topic: Topic, partition: Partition) -> None:
        """A partition is in a new leader epoch. No error."""

    def producer_ids(self, following: int) -> None:
        """The producer ids before this one may be given out."""

    def offsets_committed(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset | None],
        producer: tuple[int, int] | None = None,
    ) -> None:
        """A group commits offsets, None forgets one. producer: (id, epoch) of the transaction in which it does."""

    def transaction_changed(self, transaction: Transaction) -> None:
        """A transactional id is in another state."""

    def marked(self, participants: set[Participant]) -> list[TopicPartition]:
        """The partitions that get a marker when a transaction of these participants ends."""
        return sorted(one for one in participants if not isinstance(one, str))
