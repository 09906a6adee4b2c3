"""Consumer groups of KIP-848: the broker assigns, heartbeats carry what changed (Kafka's ConsumerGroup)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.fleet.clock import Timer
from kwire.fleet.errors import ApiError
from kwire.fleet.groups import CommittedOffsets, TopicPartition
from kwire.fleet.name_patterns import name_pattern
from kwire.schema.error_codes import ErrorCode

if TYPE_CHECKING:
    from kwire.fleet.cluster import ClusterState

EMPTY, STABLE, ASSIGNING, RECONCILING = "Empty", "Stable", "Assigning", "Reconciling"
ASSIGNORS = ("uniform", "range")  # group.consumer.assignors
HEARTBEAT_MS, SESSION_MS = 5_000, 45_000  # group.consumer.heartbeat.interval.ms, group.consumer.session.timeout.ms
LEAVE, LEAVE_STATIC = -1, -2  # member epochs of those that leave


@dataclass(eq=False)
class ConsumerMember:
    """A member. assigned: what it may read; revoking: what it must give up first; sent: what it was last sent."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rack_id: str | None = None
    topics: set[str] = field(default_factory=set)
    regex: str | None = None
    assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = -1
    assigned: set[TopicPartition] = field(default_factory=set)
    revoking: set[TopicPartition] = field(default_factory=set)
    sent: set[TopicPartition] | None = None
    rebalance_timeout: float = 45.0
    deadline: float = 0.0
    is_static_away: bool = False


class ConsumerGroup(CommittedOffsets):
    """One group."""

    def __init__(self, group_id: str, cluster: ClusterState) -> None:
        super().__init__()
        self.id, self._cluster = group_id, cluster
        self.epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.instances: dict[str, ConsumerMember] = {}  # the static members, by instance id
        self.target: dict[str, set[TopicPartition]] = {}
        self._counts: dict[str, int] = {}  # partitions of the topics that are read, when last assigned
        self._seen = -1  # of the cluster's changes of topics
        self._expiry = Timer(cluster.clock, self._expire)

    @property
    def state(self) -> str:
        """Empty, Stable or Reconciling; the assignment is made at once, so that Assigning is never seen."""
        if not self.members:
            return EMPTY
        settled = all(
            member.epoch == self.epoch and member.assigned == self.target.get(member.id, set())
            and not member.revoking for member in self.members.values())
        return STABLE if settled else RECONCILING

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for, else the first of the broker's."""
        asked = [member.assignor for member in self.members.values() if member.assignor]
        return max(set(asked), key=asked.count) if asked else ASSIGNORS[0]

    def member(self, member_id: str) -> ConsumerMember:
        """A member. Raises ApiError: UNKNOWN_MEMBER_ID."""
        if member_id not in self.members:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}.")
        return self.members[member_id]

    def subscribed(self, member: ConsumerMember) -> set[str]:
        """The topics that a member reads."""
        names = {name for name in member.topics if name in self._cluster.topics}
        if member.regex:
            pattern = name_pattern(member.regex)
            names |= {name for name in self._cluster.topics if pattern.fullmatch(name)}
        return names

    def join(self, member: ConsumerMember) -> None:
        """Let a member in."""
        self.members[member.id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member
        self.touch(member)
        self.changed()

    def remove(self, member: ConsumerMember) -> None:
        """A member left, or is late."""
        self.drop(member)
        self.changed()

    def drop(self, member: ConsumerMember) -> None:
        """Have a member no more, before another one takes its place."""
        self.members.pop(member.id, None)
        self.target.pop(member.id, None)
        if member.instance_id is not None and self.instances.get(member.instance_id) is member:
            del self.instances[member.instance_id]

    def touch(self, member: ConsumerMember) -> None:
        """A member was heard of."""
        member.deadline = self._cluster.clock.now() + SESSION_MS / 1000
        self._expiry.at(member.deadline)

    def _expire(self) -> float | None:
        now = self._cluster.clock.now()
        late = [one for one in self.members.values() if one.deadline <= now]
        for member in late:
            self.drop(member)
        if late:  # one assignment, however many they are
            self.changed()
        return min((one.deadline for one in self.members.values()), default=None)

    def changed(self) -> None:
        """Members or what they read changed: a new epoch with a new target assignment."""
        self.epoch += 1
        self._counts, self._seen = self._partition_counts(), self._cluster.topic_changes
        wanted = {member.id: self.subscribed(member) for member in self.members.values()}
        self.target = (_range if self.assignor == "range" else _uniform)(wanted, self._counts, self.target)

    def follow_topics(self) -> None:
        """Assign again if a topic came, went or grew."""
        if self._seen != self._cluster.topic_changes:
            self._seen = self._cluster.topic_changes
            if self._partition_counts() != self._counts:
                self.changed()

    def _partition_counts(self) -> dict[str, int]:
        topics = set().union(*map(self.subscribed, self.members.values())) if self.members else set()
        return {name: len(self._cluster.topics[name].partitions) for name in sorted(topics)}

    def reconcile(self, member: ConsumerMember, owned: set[TopicPartition] | None) -> None:
        """Bring a member nearer to its target: it gives up first, then gets what others gave up.

        owned: what it says that it has, None if it does not say. Source: CurrentAssignmentBuilder.
        """
        if member.revoking:
            if owned is None or owned & member.revoking:
                return
            member.revoking = set()
        target = self.target.get(member.id, set())
        gone = member.assigned - target
        if gone and (owned is None or owned & gone):
            member.assigned, member.revoking = member.assigned & target, gone
            return
        if target != member.assigned:
            taken = set().union(*(
                other.assigned | other.revoking for other in self.members.values() if other is not member))
            member.assigned = target - taken
        if member.epoch != self.epoch:
            member.previous_epoch, member.epoch = member.epoch, self.epoch

    def check_epoch(self, member_id: str, epoch: int) -> None:
        """May the member commit in this epoch? Raises ApiError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH."""
        if epoch < 0 and not member_id:
            if self.members:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            return
        if self.member(member_id).epoch != epoch:
            raise ApiError(ErrorCode.STALE_MEMBER_EPOCH)

    def close(self) -> None:
        """End its timer."""
        self._expiry.close()


Assignment = dict[str, set[TopicPartition]]


def _uniform(wanted: dict[str, set[str]], counts: dict[str, int], before: Assignment) -> Assignment:
    """As many partitions for each, and as many as possible stay where they are (UniformAssignor)."""
    target: Assignment = {member: set() for member in wanted}
    keepers = {partition: one for one in wanted for partition in before.get(one, ()) if partition[0] in wanted[one]}
    free = []
    for partition in [(topic, index) for topic, count in counts.items() for index in range(count)]:
        if partition in keepers:
            target[keepers[partition]].add(partition)
        else:
            free.append(partition)
    members = sorted(wanted)
    readers = {topic: [one for one in members if topic in wanted[one]] for topic in {topic for topic, _ in free}}
    for partition in free:
        if readers[partition[0]]:
            target[min(readers[partition[0]], key=lambda one: len(target[one]))].add(partition)
    _level(target, wanted)
    return target


def _level(target: Assignment, wanted: dict[str, set[str]]) -> None:
    """Move partitions until no two members differ by more than one where both read the topic."""
    moved = True
    while moved:
        moved = False
        for most in sorted(target, key=lambda one: -len(target[one])):
            if len(target[most]) - min(map(len, target.values())) < 2:
                break
            for least in sorted(target, key=lambda one: len(target[one])):
                if len(target[most]) - len(target[least]) < 2:
                    break
                partition = next((one for one in sorted(target[most]) if one[0] in wanted[least]), None)
                if partition is not None:
                    target[most].remove(partition)
                    target[least].add(partition)
                    moved = True
                    break


def _range(wanted: dict[str, set[str]], counts: dict[str, int], before: Assignment) -> Assignment:
    """Of each topic a run of partitions for each member (RangeAssignor)."""
    target: Assignment = {member: set() for member in wanted}
    for topic, count in counts.items():
        readers = sorted(member for member in wanted if topic in wanted[member])
        at = 0
        for number, member in enumerate(readers):
            share = count // len(readers) + (number < count % len(readers))
            target[member] |= {(topic, index) for index in range(at, at + share)}
            at += share
    return target
