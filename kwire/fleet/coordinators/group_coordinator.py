"""The groups of a fleet, of both protocols (Kafka's GroupCoordinatorService)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kwire.fleet.coordinators.consumer_groups import ConsumerGroup
from kwire.fleet.coordinators.groups import EMPTY, Group
from kwire.fleet.errors import ApiError, certainly
from kwire.schema.error_codes import ErrorCode

if TYPE_CHECKING:
    from kwire.fleet.cluster import ClusterState


def check_group_id(group_id: str) -> None:
    """Only offsets may be committed, read and deleted with an empty id. Raises ApiError: INVALID_GROUP_ID."""
    if not group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID)


class GroupCoordinator:
    """The groups of a fleet. A group without members changes to the protocol of the member that comes."""

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.groups: dict[str, Group | ConsumerGroup] = {}

    def group(self, group_id: str) -> Group | ConsumerGroup:
        """A group. Raises ApiError: GROUP_ID_NOT_FOUND."""
        if group_id not in self.groups:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return self.groups[group_id]

    def classic(self, group_id: str) -> Group | None:
        """A classic group, None if there is none of that name."""
        group = self.groups.get(group_id)
        return group if isinstance(group, Group) else None

    def made(self, group_id: str) -> Group:
        """A classic group, made if it is not there. Raises ApiError: INCONSISTENT_GROUP_PROTOCOL."""
        known = self.groups.get(group_id)
        if isinstance(known, Group):
            return known
        if known is not None and known.members:
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        group = Group(group_id, self._cluster.clock)
        self._replace(known, group, group_id)
        return group

    def consumer(self, group_id: str) -> ConsumerGroup:
        """A group of KIP-848. Raises ApiError: GROUP_ID_NOT_FOUND."""
        known = self.group(group_id)
        if isinstance(known, ConsumerGroup):
            return known
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")

    def joined(self, group_id: str) -> ConsumerGroup:
        """The group that a consumer joins: a new one, which keep() keeps, where there is none, or an empty classic one.

        Raises ApiError: GROUP_ID_NOT_FOUND.
        """
        known = self.groups.get(group_id)
        if isinstance(known, ConsumerGroup):
            return known
        if known is not None and known.members:
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot upgrade classic group {group_id} to consumer group because the group does not use the "
                "consumer embedded protocol.")
        return ConsumerGroup(group_id, self._cluster)

    def keep(self, group: ConsumerGroup) -> None:
        """Keep the group that a consumer joined, in the place of an empty classic one."""
        known = self.groups.get(group.id)
        if known is not group:
            self._replace(known, group, group.id)

    def restored(self, group_id: str) -> Group | ConsumerGroup:
        """A group whose offsets were kept: classic, if nothing says that it is another."""
        return self.groups.get(group_id) or self.made(group_id)

    def _replace(self, old: Group | ConsumerGroup | None, new: Group | ConsumerGroup, group_id: str) -> None:
        if old is not None:
            new.offsets, new.old_offsets, new.pending_offsets = old.offsets, old.old_offsets, old.pending_offsets
        new.kept = partial(self._cluster.storage.offsets_committed, group_id)
        replaced = partial(self.groups.__setitem__, group_id, new)
        if isinstance(new, ConsumerGroup) or isinstance(old, ConsumerGroup):
            self._cluster.storage.group_changed(group_id, isinstance(new, ConsumerGroup))
        certainly(replaced)
        if old is not None:
            certainly(old.close)

    def new_member_id(self, client_id: str, instance_id: str | None) -> str:
        """An id for a new member: client.id (or group.instance.id), a dash and a random id, as Kafka's."""
        return f"{client_id if instance_id is None else instance_id}-{self._cluster.new_id()}"

    def delete(self, group_id: str) -> None:
        """Delete a group. Raises ApiError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP."""
        group = self.group(group_id)
        if group.members or group.state != EMPTY:  # it may wait for ids that were given out
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
        gone = partial(self.groups.pop, group_id, None)
        self._cluster.storage.group_deleted(group_id, list(group.partitions()), isinstance(group, ConsumerGroup))
        certainly(gone)
        certainly(group.close)

    def forget_offsets(self) -> None:
        """Forget what all groups have committed."""
        for group in self.groups.values():
            group.offsets, group.pending_offsets = {}, {}

    def topic_deleted(self, name: str, partitions: int) -> None:
        """Forget what groups have committed of a topic (Kafka's onPartitionsDeleted): a new one may get its name."""
        for group in self.groups.values():
            with suppress(ApiError):  # of the disk, which the next start reads: the topic is gone all the same
                group.forget_topic(name, partitions)

    def end_transaction(self, producer_id: int, commit: bool, group_ids: Iterable[str] | None) -> None:
        """A transaction of these groups has ended. None: those whose offsets were read again, whatever they are."""
        for group_id in list(self.groups) if group_ids is None else group_ids:
            if group_id in self.groups:
                self.groups[group_id].end_transaction(producer_id, commit)

    def close(self) -> None:
        """End all timers."""
        for group in self.groups.values():
            group.close()
