"""Consumer groups of KIP-848: the broker assigns, heartbeats carry what changed (Kafka's ConsumerGroup)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from kwire.fleet.clock import Timer
from kwire.fleet.coordinators.assignors import ASSIGNORS, Assignment, Partition, Subscriber, assign
from kwire.fleet.coordinators.groups import CommittedOffsets
from kwire.fleet.coordinators.name_patterns import name_pattern
from kwire.fleet.errors import ApiError
from kwire.java_semantics import put_order
from kwire.schema.error_codes import ErrorCode

if TYPE_CHECKING:
    from kwire.fleet.cluster import ClusterState
    from kwire.fleet.releases import Offer

EMPTY, ASSIGNING, RECONCILING = "Empty", "Assigning", "Reconciling"  # states of groups
STABLE, UNREVOKED, UNRELEASED = "Stable", "Unrevoked", "Unreleased"  # of members (MemberState), the first of groups too
HEARTBEAT_MS, SESSION_MS = 5_000, 45_000  # group.consumer.heartbeat.interval.ms, group.consumer.session.timeout.ms
LEAVE, LEAVE_STATIC = -1, -2  # member epochs of those that leave
_AT_ONCE = 500  # topics that are matched before others are answered
_REFRESH = 10.0  # seconds between two looks for new topics that match expressions (REGEX_BATCH_REFRESH_MIN_INTERVAL_MS)


@dataclass(eq=False)
class ConsumerMember:
    """A member. assigned: what it may read, with the epochs in which it got them; revoking: what it must give up.

    topics, regex: what it subscribed to; deadline: of its session; late: when it must have given up, with its epoch.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rack_id: str | None = None
    topics: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: str = STABLE
    assigned: dict[Partition, int] = field(default_factory=dict)
    revoking: dict[Partition, int] = field(default_factory=dict)
    rebalance_timeout: float = -0.001
    deadline: float = 0.0
    late: tuple[float, int] | None = None

    def is_reconciled(self, epoch: int) -> bool:
        """Whether it has all of the assignment of an epoch."""
        return self.state == STABLE and self.epoch == epoch

    def check_epoch(self, epoch: int, owned: set[Partition] | None, rules: Rules) -> None:
        """May it go on with this epoch, its last one or the one before? Raises ApiError: FENCED_MEMBER_EPOCH."""
        if epoch == self.epoch or (epoch == 0 and rules.joins_again):
            return
        if epoch < self.epoch and epoch == self.previous_epoch and owned is not None and owned <= self.assigned.keys():
            return  # the answer with the new epoch was lost
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The consumer group member has a {'smaller' if epoch < self.epoch else 'greater'} member epoch ({epoch}) "
            f"than the one known by the group coordinator ({self.epoch}). The member must abandon all its partitions "
            "and rejoin.")


class Said(NamedTuple):
    """What a heartbeat says; None: as before. owned: what the member has, None if it does not say."""

    topics: frozenset[str] | None
    regex: str | None
    assignor: str | None
    owned: set[Partition] | None


class Rules(NamedTuple):
    """What differs from release to release.

    first_epoch: of a group that nobody has joined yet; joins_again: a member that is there may join, else only if the
    answer to its first request was lost; drops_unread: a member gives up what it does not read any more, whatever its
    target is; lost_regex_counts: a member that gave its expression up is a reason for a new epoch; shows_revoking: what
    it must give up is described; commits_of_before: a member commits in an epoch of before to what it had then
    (KIP-1251); assignor_counts: another assignor is a reason for a new epoch; assigns_nobody: so is a group that
    everybody left; counts_revocations: a member that gave up, and must give up more, is an epoch further.
    """

    first_epoch: int
    joins_again: bool
    drops_unread: bool
    lost_regex_counts: bool
    shows_revoking: bool
    commits_of_before: bool
    assignor_counts: bool
    assigns_nobody: bool
    counts_revocations: bool

    @classmethod
    def of(cls, offer: Offer) -> Rules:
        """Those of a release."""
        since_2, since_3, since_4 = (offer.at_least(release) for release in ("4.2", "4.3", "4.4"))
        return cls(
            first_epoch=int(since_3), joins_again=since_2, drops_unread=since_2, lost_regex_counts=since_2,
            shows_revoking=since_3, commits_of_before=since_3, assignor_counts=since_4, assigns_nobody=since_4,
            counts_revocations=not since_2)


class ConsumerGroup(CommittedOffsets):
    """One group. epoch: of its members and of what they read; assignment_epoch: for which it was assigned."""

    def __init__(self, group_id: str, cluster: ClusterState) -> None:
        super().__init__()
        self.id, self._cluster = group_id, cluster
        self.epoch = self.assignment_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.target: Assignment = {}
        self._static: dict[str, str] = {}  # group.instance.id -> member id
        self._asked: tuple[str, frozenset[str]] | None = None  # what assignor and regexes give, None: look again
        self._resolved: dict[str, frozenset[str]] = {}  # expression -> topics that match
        self._resolved_at, self._resolved_of = 0.0, -1  # when, and of which change of topics
        self._resolves = False  # somebody does
        self._topics: dict[UUID, int] = {}  # those that are read, with their partitions, at the last look
        self._seen = -1  # of the cluster's changes of topics
        self._expiry = Timer(cluster.clock, self._expire)

    @property
    def rules(self) -> Rules:
        """Those of the node that coordinates it."""
        return Rules.of(self._cluster.coordinator_of(self.id).offer)

    @property
    def state(self) -> str:
        """Empty, Assigning, Reconciling or Stable."""
        if not self.members:
            return EMPTY
        if self.epoch > self.assignment_epoch:
            return ASSIGNING
        settled = all(member.is_reconciled(self.assignment_epoch) for member in self.members.values())
        return STABLE if settled else RECONCILING

    @property
    def assignor(self) -> str:
        """The assignor that most members ask for, else the first of the broker's."""
        return self._asked_for()[0]

    @property
    def regexes(self) -> frozenset[str]:
        """The expressions of all members."""
        return self._asked_for()[1]

    def _asked_for(self) -> tuple[str, frozenset[str]]:
        if self._asked is None:
            asked = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
            self._asked = (
                max(put_order(list(asked)), key=lambda name: asked[name], default=ASSIGNORS[0]),
                frozenset(member.regex for member in self.members.values() if member.regex))
        return self._asked

    def member(self, member_id: str) -> ConsumerMember:
        """A member. Raises ApiError: UNKNOWN_MEMBER_ID."""
        if member_id not in self.members:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}.")
        return self.members[member_id]

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """The member of a group.instance.id, None if there is none."""
        found = self._static.get(instance_id)
        return None if found is None else self.members.get(found)

    def member_of_instance(self, instance_id: str, member_id: str) -> ConsumerMember:
        """The member of a group.instance.id, if it is this one.

        Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
        """
        member = self.static_member(instance_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if member.id != member_id:
            raise ApiError(
                ErrorCode.FENCED_INSTANCE_ID,
                f"Static member {member_id} with instance id {instance_id} was fenced by member {member.id}.")
        return member

    def leaving(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        """The member that LeaveGroup names: by its id, or by its group.instance.id alone. Raises ApiError."""
        if instance_id is None:
            return self.member(member_id)
        static = self.static_member(instance_id)
        return self.member_of_instance(instance_id, member_id or ("" if static is None else static.id))

    def subscribed(self, member: ConsumerMember) -> set[str]:
        """The topics that a member reads."""
        return {
            name for name in (*member.topics, *self._resolved.get(member.regex, ())) if name in self._cluster.topics}

    def check_regex(self, regex: str) -> None:
        """May a member subscribe to an expression? One that somebody has is not compiled again.

        Raises ApiError: INVALID_REGULAR_EXPRESSION.
        """
        if regex and regex not in self.regexes:
            try:
                name_pattern(regex)
            except ApiError as error:
                raise ApiError(
                    error.code,
                    f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error.message}.") from None

    def returned(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """The member that takes the place of a static one which left for a while. It is not let in yet."""
        member = copy(old)
        member.id, member.epoch, member.previous_epoch = member_id, 0, 0
        return member

    def beat(self, member: ConsumerMember, said: Said) -> None:
        """A member is heard of, or joins.

        The group gets a new epoch if that changes what is read, a new assignment if it has a new epoch, and the member
        comes nearer to its part of it. Source: GroupMetadataManager.consumerGroupHeartbeat.
        """
        assignor = self.assignor
        self.epoch = self.epoch or self.rules.first_epoch
        self._let_in(member)
        named = said.topics is not None and said.topics != member.topics
        expressed = said.regex is not None and said.regex != member.regex
        known = expressed and (said.regex in self._resolved if said.regex else (
            self.rules.lost_regex_counts and bool(member.regex)))
        member.topics = member.topics if said.topics is None else said.topics
        if expressed or (said.assignor is not None and said.assignor != member.assignor):
            member.regex = member.regex if said.regex is None else said.regex
            member.assignor = member.assignor if said.assignor is None else said.assignor
            self._asked = None
            self._forget_unread()
        changed = named or known or not self.epoch or (self.rules.assignor_counts and assignor != self.assignor)
        if changed or self._seen != self._cluster.topic_changes:
            self._look(changed)
        if self.assignment_epoch < self.epoch:
            self._assign()
        if named or expressed or not member.is_reconciled(self.assignment_epoch):
            self._reconcile(member, said.owned, named or expressed)
        member.deadline = self._cluster.clock.elapsed() + SESSION_MS / 1000
        self._expiry.within(SESSION_MS / 1000)

    def _let_in(self, member: ConsumerMember) -> None:
        old = None if member.instance_id is None else self._static.get(member.instance_id)
        if old is not None and old != member.id:
            self.members.pop(old, None)
            self.target[member.id] = self.target.pop(old, set())
        if self.members.get(member.id) is not member:
            self.members[member.id], self._asked = member, None
        if member.instance_id is not None:
            self._static[member.instance_id] = member.id

    async def resolve(self) -> None:
        """Look which topics match the expressions, if one is new or, now and then, if topics changed.

        To be called after a heartbeat was answered: a coordinator does it later, too. Others are answered meanwhile.
        Source: GroupMetadataManager.maybeUpdateRegularExpressions, handleRegularExpressionsResult.
        """
        wanted = self.regexes
        now, changes = self._cluster.clock.elapsed(), self._cluster.topic_changes
        if not wanted or self._resolves or (self._resolved and now <= self._resolved_at + _REFRESH) or (
                wanted <= self._resolved.keys() and self._resolved_of == changes):
            return
        before, self._resolves, self._resolved_at = self._resolved_at, True, now
        try:
            found = await _matching(wanted, list(self._cluster.topics))
        except BaseException:  # its client is gone: the next heartbeat looks
            self._resolved_at = before
            raise
        finally:
            self._resolves = False
        found = {regex: topics for regex, topics in found.items() if regex in self.regexes}  # some may have left
        news = any(topics != self._resolved.get(regex, frozenset()) for regex, topics in found.items())
        self._resolved, self._resolved_of = found, changes
        self._look(changed=news)

    def _forget_unread(self) -> None:
        """Expressions that nobody subscribes to any more are resolved again by the next one."""
        self._resolved = {regex: topics for regex, topics in self._resolved.items() if regex in self.regexes}

    def _look(self, changed: bool) -> None:
        """At the topics that are read: a new epoch if they changed, or their readers did."""
        topics = self._read_topics()
        if changed or topics != self._topics:
            self.epoch += 1
        self._topics, self._seen = topics, self._cluster.topic_changes

    def _read_topics(self) -> dict[UUID, int]:
        names = set[str]().union(*map(self.subscribed, self.members.values()))
        topics = [self._cluster.topics[name] for name in sorted(names)]
        return {topic.id: len(topic.partitions) for topic in topics}

    def _assign(self) -> None:
        """Who is to read what (TargetAssignmentBuilder)."""
        members = {
            member.id: Subscriber(
                member.instance_id, frozenset(self._cluster.topics[name].id for name in self.subscribed(member)))
            for member in self.members.values()}
        self.target = assign(self.assignor, members, self._read_topics(), self.target)
        self.assignment_epoch = self.epoch

    def _reconcile(self, member: ConsumerMember, owned: set[Partition] | None, changed: bool) -> None:
        """Bring a member nearer to its target: it gives up first, then gets what others gave up.

        changed: whether it has just subscribed to other topics. Source: CurrentAssignmentBuilder.
        """
        if member.is_reconciled(self.assignment_epoch) or (
                member.state == UNREVOKED and _owns(owned, member.revoking)):
            if not changed or not self.rules.drops_unread:
                return
            self._drop_unread(member, owned)
        else:
            self._next_assignment(member, owned)
        member.late = None
        if member.state == UNREVOKED:
            member.late = self._cluster.clock.elapsed() + member.rebalance_timeout, member.epoch
            self._expiry.within(member.rebalance_timeout)

    def _drop_unread(self, member: ConsumerMember, owned: set[Partition] | None) -> None:
        """What it does not read any more it gives up at once (CurrentAssignmentBuilder.updateCurrentAssignment)."""
        read = self._ids_read(member)
        gone = {one: epoch for one, epoch in member.assigned.items() if one[0] not in read}
        if not gone:
            return
        member.assigned = {one: epoch for one, epoch in member.assigned.items() if one not in gone}
        revoking = member.revoking | gone
        if _owns(owned, revoking):
            member.state, member.revoking = UNREVOKED, revoking
        member.previous_epoch = member.epoch

    def _next_assignment(self, member: ConsumerMember, owned: set[Partition] | None) -> None:
        """CurrentAssignmentBuilder.computeNextAssignment."""
        target = self.target.get(member.id, set())
        if self.rules.drops_unread:
            read = self._ids_read(member)
            target = {one for one in target if one[0] in read}
        kept = {one: epoch for one, epoch in member.assigned.items() if one in target}
        gone = {one: epoch for one, epoch in member.assigned.items() if one not in target}
        if gone and _owns(owned, gone):
            member.previous_epoch = member.epoch
            member.epoch += self.rules.counts_revocations and member.state == UNREVOKED
            member.state, member.assigned, member.revoking = UNREVOKED, kept, gone
            return
        gained = target - kept.keys()
        unreleased = set[Partition]()
        for other in self.members.values() if gained else ():
            if other is not member:
                unreleased |= gained & other.assigned.keys() | gained & other.revoking.keys()
        gained -= unreleased
        member.assigned = kept | dict.fromkeys(gained, self.assignment_epoch)
        member.revoking = {}
        member.state = UNRELEASED if unreleased else STABLE
        member.previous_epoch, member.epoch = member.epoch, self.assignment_epoch

    def _ids_read(self, member: ConsumerMember) -> set[UUID]:
        return {self._cluster.topics[name].id for name in self.subscribed(member)}

    def leave_for_a_while(self, member: ConsumerMember) -> None:
        """A static member left, and comes back before its session is over."""
        member.previous_epoch, member.epoch, member.late = member.epoch, LEAVE_STATIC, None
        member.revoking, member.assigned = {}, dict.fromkeys(member.assigned, 0)

    def remove(self, members: Iterable[ConsumerMember]) -> None:
        """Members left, or are late: the others are assigned again at the next heartbeat."""
        gone = list(dict.fromkeys(members))
        for member in gone:
            del self.members[member.id]
            self.target.pop(member.id, None)
            if member.instance_id is not None and self._static.get(member.instance_id) == member.id:
                del self._static[member.instance_id]
        if gone:
            self._asked = None
            self._forget_unread()
            self._look(changed=True)
        if not self.members and self._cluster.alive() and self.rules.assigns_nobody:
            self.assignment_epoch = self.epoch

    def _expire(self) -> float | None:
        now = self._cluster.clock.elapsed()
        self.remove([
            one for one in self.members.values()
            if one.deadline <= now or (one.late is not None and one.late[0] <= now and one.late[1] == one.epoch)])
        times = [time for one in self.members.values() for time in (one.deadline, *(one.late or ())[:1])]
        return min(times) - now if times else None

    def check_commit(
        self, member_id: str, epoch: int, *, stale: ErrorCode, has_epochs: bool
    ) -> ConsumerMember | None:
        """May a member commit? The member, if its epoch is of before: that depends on the partition.

        stale: the error for another epoch; has_epochs: whether the version of the request can carry epochs.
        Raises ApiError: UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION, and the one of stale.
        Source: ConsumerGroup.validateOffsetCommit.
        """
        if epoch < 0 and not self.members:
            return None
        member = self.member(member_id)
        if not has_epochs:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        if epoch == member.epoch:
            return None
        if epoch > member.epoch or not self.rules.commits_of_before:
            raise ApiError(stale)
        return member

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """May a member read the committed offsets? Raises ApiError: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH."""
        if member_id is None and epoch < 0:
            return
        if self.member(member_id or "").epoch != epoch:
            raise ApiError(ErrorCode.STALE_MEMBER_EPOCH)

    def close(self) -> None:
        """End its timer."""
        self._expiry.close()


async def _matching(regexes: Iterable[str], topics: list[str]) -> dict[str, frozenset[str]]:
    """The topics that match each expression. Others are answered meanwhile."""
    found, known = {}, dict[frozenset[str], frozenset[str]]()
    for regex in regexes:
        match, names = name_pattern(regex).fullmatch, set[str]()
        for start in range(0, len(topics), _AT_ONCE):
            names.update(filter(match, topics[start : start + _AT_ONCE]))
            await asyncio.sleep(0)
        matching = frozenset(names)
        found[regex] = known.setdefault(matching, matching)  # many expressions of the same topics have them once
    return found


def _owns(owned: set[Partition] | None, partitions: Iterable[Partition]) -> bool:
    """Whether a member has any of these, or may have, since it does not say."""
    return owned is None or not owned.isdisjoint(partitions)
