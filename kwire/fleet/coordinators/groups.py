"""Classic consumer groups: membership, generations, assignments and committed offsets (Kafka's GroupCoordinator)."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import NamedTuple

from kwire.fleet.clock import Clock, Timer
from kwire.fleet.errors import ApiError, certainly
from kwire.schema.error_codes import ErrorCode

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = "Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"
TopicPartition = tuple[str, int]
_INITIAL_DELAY = 3.0  # seconds: group.initial.rebalance.delay.ms


class CommittedOffset(NamedTuple):
    """A committed offset. leader_epoch: -1 if not said; timestamp: milliseconds; order: larger than of those before."""

    offset: int
    leader_epoch: int
    metadata: str
    timestamp: int
    order: int


COMMIT_ORDER = count()  # of all commits, in which they came


def newer(
    offsets: Mapping[TopicPartition, CommittedOffset], known: Mapping[TopicPartition, CommittedOffset]
) -> dict[TopicPartition, CommittedOffset]:
    """Those of a transaction after which nothing else was committed (OffsetAndMetadata.recordOffset)."""
    return {one: offset for one, offset in offsets.items() if one not in known or known[one].order < offset.order}


@dataclass(eq=False)
class Member:
    """A member of a group. protocols: (name, metadata) as it prefers them; times are those of Clock.elapsed."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: float
    rebalance_timeout: float
    protocols: list[tuple[str, bytes]]
    assignment: bytes = b""
    deadline: float = 0.0
    joined: asyncio.Future[None] | None = field(default=None, repr=False)
    synced: asyncio.Future[None] | None = field(default=None, repr=False)

    def metadata(self, protocol: str) -> bytes:
        """What it said of a protocol."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def refuse(self, code: ErrorCode, member_id: str) -> None:
        """Answer what it waits for with an error, and JoinGroup with that id."""
        for waiting in (self.joined, self.synced):
            if waiting is not None and not waiting.done():
                waiting.set_exception(ApiError(code, member_id=member_id))


class CommittedOffsets:
    """The offsets that a group committed, those of ongoing transactions apart.

    kept: called with offsets (None: forgotten), and the producer's (id, epoch) in a transaction, before they count.
    """

    def __init__(self) -> None:
        self.kept: Callable[..., None] = lambda offsets, producer=None: None
        self.offsets: dict[TopicPartition, CommittedOffset] = {}
        self.old_offsets: dict[TopicPartition, int] = {}  # by OffsetCommit 0, as ZooKeeper keeps them
        self.pending_offsets: dict[int, dict[TopicPartition, CommittedOffset]] = {}  # by producer id

    def commit(self, offsets: dict[TopicPartition, CommittedOffset]) -> None:
        """Keep offsets."""
        counts = partial(self.offsets.update, offsets)
        self.kept(offsets)
        certainly(counts)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the offsets of partitions, and with them those of ongoing transactions."""
        asked = dict.fromkeys(partitions)
        known = set[TopicPartition]().union(*(  # in the time of the fewer, of each
            asked.keys() & offsets.keys() for offsets in (self.offsets, *self.pending_offsets.values())))
        gone = dict.fromkeys(one for one in asked if one in known)

        def forgotten() -> None:
            for offsets in (self.offsets, *self.pending_offsets.values()):
                for one in gone.keys() & offsets.keys():  # in the time of the fewer
                    del offsets[one]

        self.kept(gone)
        certainly(forgotten)

    def forget_topic(self, name: str, partitions: int) -> None:
        """Forget the offsets of a topic that has so many partitions: in the time of them or of all offsets."""
        count = len(self.offsets) + sum(map(len, self.pending_offsets.values()))
        self.forget([one for one in self.partitions() if one[0] == name] if count < partitions else
                    [(name, index) for index in range(partitions)])

    def partitions(self) -> set[TopicPartition]:
        """The partitions that have an offset, also one of an ongoing transaction."""
        return set(self.offsets).union(*self.pending_offsets.values())

    def commit_pending(
        self, producer_id: int, producer_epoch: int, offsets: dict[TopicPartition, CommittedOffset]
    ) -> None:
        """Keep offsets of a transaction until it ends (KIP-98)."""
        def wait() -> None:
            self.pending_offsets.setdefault(producer_id, {}).update(offsets)

        self.kept(offsets, (producer_id, producer_epoch))
        certainly(wait)

    def end_transaction(self, producer_id: int, commit: bool) -> None:
        """A transaction has ended: its offsets count, if no later ones were committed, or never were."""
        offsets = self.pending_offsets.get(producer_id, {})
        if commit:
            self.offsets.update(newer(offsets, self.offsets))
        self.pending_offsets.pop(producer_id, None)

    def pending_partitions(self) -> set[TopicPartition]:
        """The partitions that have an offset of an ongoing transaction (require_stable, KIP-447)."""
        return set().union(*self.pending_offsets.values())


class Group(CommittedOffsets):
    """One group of the classic protocol, in which a member assigns."""

    def __init__(self, group_id: str, clock: Clock) -> None:
        super().__init__()
        self.id, self._clock = group_id, clock
        self.state, self.generation = EMPTY, 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self._joined: set[str] = set()  # ids of the members that wait for the next generation
        self._supported: Counter[str] = Counter()  # protocol -> how many members have it
        self.static: dict[str, str] = {}  # group.instance.id -> member id
        self.pending: dict[str, float] = {}  # ids that were given out, not joined yet (KIP-394) -> until when
        self._rebalance: asyncio.Task[None] | None = None
        self._expiry = Timer(clock, self._expire)
        self._unsynced: set[str] = set()  # ids of the members that have sent no SyncGroup in this generation
        self._sync_end = 0.0  # until when they may
        self._syncs = Timer(clock, self._drop_unsynced)

    # membership

    def member(self, member_id: str, instance_id: str | None = None) -> Member:
        """A member. Raises ApiError: FENCED_INSTANCE_ID, UNKNOWN_MEMBER_ID."""
        if instance_id is not None:
            known = self.static.get(instance_id)
            if known is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        if member_id not in self.members:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return self.members[member_id]

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Whether a member with these protocols can be in the group."""
        names = set(protocols)
        if not protocol_type or not names:
            return False
        return not self.members or (
            protocol_type == self.protocol_type and any(self._supported[name] == len(self.members) for name in names))

    def elected(self) -> str:
        """The protocol that most members prefer of those that all have."""
        common = {name for name, count in self._supported.items() if count == len(self.members)}
        votes = Counter(next(n for n, _ in member.protocols if n in common) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def add(self, member: Member) -> None:
        """Let a member in."""
        self.pending.pop(member.id, None)
        self.members[member.id] = member
        self._supported.update({name for name, _ in member.protocols})
        if member.instance_id is not None:
            self.static[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id
        self.touch(member)

    def replace(self, old: Member, member_id: str) -> Member:
        """A static member came back under a new id: it takes the place of the old one, which is fenced (KIP-345).

        Source: ClassicGroup.replaceStaticMember.
        """
        old.refuse(ErrorCode.FENCED_INSTANCE_ID, old.id)
        member = replace(old, id=member_id, joined=None, synced=None)
        del self.members[old.id]
        self.members[member_id] = member
        self._joined.discard(old.id)
        if old.id in self._unsynced:
            self._unsynced.remove(old.id)
            self._unsynced.add(member_id)
        if self.leader == old.id:
            self.leader = member_id
        if member.instance_id is not None:
            self.static[member.instance_id] = member_id
        self.touch(member)
        return member

    def prefer(self, member: Member, protocols: list[tuple[str, bytes]]) -> None:
        """A member has other protocols."""
        before = {name for name, _ in member.protocols}
        self._supported.subtract(before)
        member.protocols = protocols
        self._supported.update({name for name, _ in protocols})
        for name in before:
            if not self._supported[name]:  # nobody has it any more
                del self._supported[name]

    def _drop(self, member: Member) -> None:
        if self.members.pop(member.id, None) is not None:
            self.prefer(member, [])
        self._joined.discard(member.id)
        self._unsynced.discard(member.id)
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def remove(self, member: Member) -> None:
        """A member left or is late; what it waits for ends with UNKNOWN_MEMBER_ID."""
        self.take_out(member)
        self.settle()

    def take_out(self, member: Member) -> None:
        """Remove a member; settle comes next."""
        self._drop(member)
        if member.instance_id is not None and self.static.get(member.instance_id) == member.id:
            del self.static[member.instance_id]
        member.refuse(ErrorCode.UNKNOWN_MEMBER_ID, "")

    def settle(self) -> None:
        """Members have left: the others join again, or go on if all have."""
        if self.state in (STABLE, COMPLETING):
            self.prepare_rebalance()
        elif self.state == PREPARING:
            self._complete_if_all_joined()

    def touch(self, member: Member) -> None:
        """A member was heard of: its session lasts on."""
        member.deadline = self._clock.elapsed() + member.session_timeout
        self._expiry.within(member.session_timeout)

    def expect(self, member_id: str, session_timeout: float) -> None:
        """An id was given out: a rebalance waits for its member, no longer than a session (KIP-394)."""
        self.pending[member_id] = self._clock.elapsed() + session_timeout
        self._expiry.within(session_timeout)

    def expect_no_longer(self, member_id: str) -> None:
        """The member of an id that was given out does not come."""
        del self.pending[member_id]
        if self.state == PREPARING:
            self._complete_if_all_joined()

    def _expire(self) -> float | None:
        """Remove the members that are late; in how many seconds the next one may be, None if there is none."""
        now = self._clock.elapsed()
        for member_id in [one for one, deadline in self.pending.items() if deadline <= now]:
            self.expect_no_longer(member_id)
        for member in list(self.members.values()):
            waits = any(f is not None and not f.done() for f in (member.joined, member.synced))
            if member.deadline <= now and not waits:
                self.remove(member)
        deadlines = (*(member.deadline for member in self.members.values()), *self.pending.values())
        return min(deadlines) - now if deadlines else None

    # rebalances

    def prepare_rebalance(self) -> None:
        """All members must join again: until they have, or the longest rebalance timeout is over.

        The first ones of a group do not wait for those whose ids were given out longer than 3 s.
        """
        for member in self.members.values():
            if member.synced is not None and not member.synced.done():
                member.synced.set_exception(ApiError(ErrorCode.REBALANCE_IN_PROGRESS))
            member.synced = None
            if self.state == COMPLETING:
                member.assignment = b""
        most = _INITIAL_DELAY if self.state == EMPTY else math.inf
        self.state = PREPARING
        self._unsynced.clear()
        if self._rebalance is not None:
            self._rebalance.cancel()
        self._rebalance = asyncio.ensure_future(self._time_out(most))
        self._complete_if_all_joined()

    async def _time_out(self, most: float) -> None:
        longest = max((member.rebalance_timeout for member in self.members.values()), default=0.0)
        await self._clock.sleep(min(most, longest))
        for member in list(self.members.values()):
            if member.id not in self._joined and member.instance_id is None:
                self._drop(member)
        self._complete()

    def _complete_if_all_joined(self) -> None:
        if len(self._joined) == len(self.members) and not self.pending:
            self._complete()

    def _complete(self) -> None:
        """Begin the next generation with those that joined (GroupCoordinator.onCompleteJoin)."""
        if self.state != PREPARING:
            return
        if self._rebalance is not None and self._rebalance is not asyncio.current_task():
            self._rebalance.cancel()
        self._rebalance = None
        if self.members and self.leader not in self._joined:  # a static member that has not come back
            if not self._joined:  # until one joins, or the sessions of all are over
                return
            self.leader = next(member_id for member_id in self.members if member_id in self._joined)
        self.generation += 1
        if not self.members:
            self.state, self.protocol, self.leader = EMPTY, None, None
            return
        self.state, self.protocol = COMPLETING, self.elected()
        for member in self.members.values():
            self.touch(member)
            if member.joined is not None and not member.joined.done():
                member.joined.set_result(None)
            member.joined = None
        self._joined.clear()
        longest = max(member.rebalance_timeout for member in self.members.values())
        if longest > 0:
            self._unsynced = set(self.members)
            self._sync_end = self._clock.elapsed() + longest
            self._syncs.within(longest)

    def _drop_unsynced(self) -> float | None:
        """Remove the members that sent no SyncGroup within the longest rebalance timeout (KAFKA-12890)."""
        left = self._sync_end - self._clock.elapsed()
        if not self._unsynced or left > 0:
            return left if self._unsynced else None
        for member_id in list(self._unsynced):
            self.take_out(self.members[member_id])
        self.settle()
        return None

    async def join(self, member: Member) -> None:
        """Wait for the next generation. Raises ApiError."""
        if member.joined is None or member.joined.done():
            member.joined = asyncio.get_running_loop().create_future()
            self._joined.add(member.id)
        waiting = member.joined
        if self.state != PREPARING:
            self.prepare_rebalance()
        else:
            if self._rebalance is None:
                self._rebalance = asyncio.ensure_future(self._time_out(math.inf))
            self._complete_if_all_joined()
        await asyncio.shield(waiting)

    async def sync(self, member: Member, assignments: dict[str, bytes]) -> bytes:
        """The leader's assignment for a member. Raises ApiError: REBALANCE_IN_PROGRESS and others."""
        if self.state == PREPARING:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._unsynced.discard(member.id)
        if self.state == COMPLETING:
            if member.synced is None or member.synced.done():
                member.synced = asyncio.get_running_loop().create_future()
            waiting = member.synced
            if member.id == self.leader:
                self._assign(assignments)
            await asyncio.shield(waiting)
        self.touch(member)
        return member.assignment

    def _assign(self, assignments: dict[str, bytes]) -> None:
        self.state = STABLE
        for member in self.members.values():
            member.assignment = assignments.get(member.id, b"")
            if member.synced is not None and not member.synced.done():
                member.synced.set_result(None)

    def close(self) -> None:
        """End its timers."""
        self._expiry.close()
        self._syncs.close()
        if self._rebalance is not None:
            self._rebalance.cancel()
