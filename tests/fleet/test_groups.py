"""Groups: rebalances of the classic protocol under a clock that the test moves, and those of KIP-848."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from kwire import messages
from kwire.fleet import Fleet, ManualClock
from kwire.fleet.clock import Clock
from kwire.fleet.cluster import partition_for
from kwire.fleet.coordinators import consumer_groups
from kwire.fleet.coordinators.assignors import ASSIGNORS, Partition, Subscriber, assign
from kwire.fleet.coordinators.consumer_groups import ConsumerGroup, ConsumerMember, Said
from kwire.fleet.coordinators.groups import CommittedOffsets, Member
from kwire.net import SyncConnection, connect_sync
from kwire.schema.error_codes import ErrorCode as E

pytestmark = pytest.mark.quick
M: Any = messages


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet("4.4", topics={"t": 4}, clock=ManualClock()) as fleet:
        yield fleet


@pytest.fixture
def connection(fleet: Fleet) -> Iterator[SyncConnection]:
    with connect_sync(fleet.bootstrap) as connection:
        yield connection


def join(connection: Any, member: str = "") -> Any:
    protocol = M.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"x")
    return connection.send(M.JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=20_000, member_id=member,
        protocol_type="consumer", protocols=[protocol]))


def sync(connection: Any, member: str, generation: int, **assignments: bytes) -> Any:
    row = M.SyncGroupRequest.SyncGroupRequestAssignment
    return connection.send(M.SyncGroupRequest(
        group_id="g", generation_id=generation, member_id=member, protocol_type="consumer", protocol_name="range",
        assignments=[row(member_id=name, assignment=data) for name, data in assignments.items()]))


def beat(connection: Any, member: str, generation: int) -> int:
    return int(connection.send(M.HeartbeatRequest(
        group_id="g", generation_id=generation, member_id=member)).error_code)


def joined(connection: Any) -> Any:
    asked = join(connection)
    assert asked.error_code == E.MEMBER_ID_REQUIRED
    return join(connection, asked.member_id)


def test_a_second_member_makes_the_first_join_again(fleet: Fleet, connection: SyncConnection) -> None:
    first = joined(connection)
    assert (first.generation_id, first.leader) == (1, first.member_id)
    assert sync(connection, first.member_id, 1, **{first.member_id: b"all"}).assignment == b"all"
    assert beat(connection, first.member_id, 1) == 0
    with connect_sync(fleet.bootstrap) as other, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(joined, other)
        while beat(connection, first.member_id, 1) != E.REBALANCE_IN_PROGRESS:
            pass
        again = join(connection, first.member_id)
        second = answer.result(10)
        assert again.generation_id == second.generation_id == 2
        assert {one.member_id for one in again.members} == {first.member_id, second.member_id} and not second.members
        parts = {first.member_id: b"1", second.member_id: b"2"}
        assert sync(connection, first.member_id, 2, **parts).assignment == b"1"
        assert sync(other, second.member_id, 2).assignment == b"2"
    assert sync(connection, first.member_id, 1).error_code == E.ILLEGAL_GENERATION


def join_static(connection: Any, *protocols: str, version: int = 9) -> Any:
    """Join as the instance i, which has no member id yet; range and sticky by default."""
    row = M.JoinGroupRequest.JoinGroupRequestProtocol
    return connection.send(M.JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=20_000, member_id="", group_instance_id="i",
        protocol_type="consumer",
        protocols=[row(name=name, metadata=b"x") for name in protocols or ("range", "sticky")]), version)


def beat_static(connection: Any, member: str, generation: int) -> int:
    return int(connection.send(M.HeartbeatRequest(
        group_id="g", generation_id=generation, member_id=member, group_instance_id="i")).error_code)


def test_a_classic_static_member_comes_back(fleet: Fleet, connection: SyncConnection) -> None:
    """Without a rebalance (KIP-345), and without an assignment of the leader (KIP-814 in version 9)."""
    first = join_static(connection)
    assert (first.generation_id, first.leader, first.skip_assignment) == (1, first.member_id, False)
    sync(connection, first.member_id, 1, **{first.member_id: b"all"})
    again = join_static(connection)
    assert (again.generation_id, again.leader, again.skip_assignment) == (1, again.member_id, True)
    assert again.member_id != first.member_id and [one.member_id for one in again.members] == [again.member_id]
    assert sync(connection, again.member_id, 1).assignment == b"all"
    assert beat_static(connection, first.member_id, 1) == E.FENCED_INSTANCE_ID
    old = join_static(connection, version=8)
    assert (old.generation_id, old.leader, list(old.members)) == (1, again.member_id, [])
    assert join_static(connection, "sticky", "range").generation_id == 2  # another protocol is elected
    assert join_static(connection, "sticky", "range").generation_id == 3  # the assignment was not there yet


def test_before_2_6_a_static_member_comes_back_before_the_assignment_without_a_rebalance() -> None:
    with Fleet("2.4", topics={"t": 1}) as fleet, connect_sync(fleet.bootstrap) as connection:
        first = join_static(connection, version=5)
        assert beat_static(connection, first.member_id, 1) == E.REBALANCE_IN_PROGRESS
        again = join_static(connection, version=5)
        assert (again.generation_id, again.leader, list(again.members)) == (1, first.member_id, [])


@contextmanager
def second_that_joins(fleet: Fleet, connection: SyncConnection) -> Iterator[tuple[Any, Future[Any]]]:
    """(a static member that has to join again, what a second one is answered): that one has joined at the end."""
    static = join_static(connection)
    sync(connection, static.member_id, 1)
    with connect_sync(fleet.bootstrap) as other, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(joined, other)
        while beat_static(connection, static.member_id, 1) != E.REBALANCE_IN_PROGRESS:
            pass
        yield static, answer
        answer.result(10)


def test_a_static_member_comes_back_while_others_wait(fleet: Fleet, connection: SyncConnection) -> None:
    """It is in the next generation like them, and is answered with them."""
    with second_that_joins(fleet, connection) as (_, answer):
        again = join_static(connection)
    second = answer.result()
    assert again.generation_id == second.generation_id == 2
    assert again.leader == again.member_id
    assert {one.member_id for one in again.members} == {again.member_id, second.member_id}


def test_a_static_member_that_leads_does_not_come_back(fleet: Fleet, connection: SyncConnection) -> None:
    """It stays in the group for its session, and another one leads."""
    with second_that_joins(fleet, connection) as (static, answer):
        for _ in range(3):
            fleet.advance(7)
            beat_static(connection, static.member_id, 1)
    second = answer.result()
    assert (second.generation_id, second.leader) == (2, second.member_id)
    assert {one.member_id for one in second.members} == {static.member_id, second.member_id}


def test_a_group_whose_static_members_do_not_come_back_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever rebalance timeout they asked for: it waits for one that joins, or for the end of their sessions."""
    row, gone = M.JoinGroupRequest.JoinGroupRequestProtocol, M.LeaveGroupRequest.MemberIdentity

    def join_as(instance: str) -> Any:
        return connection.send(M.JoinGroupRequest(
            group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=0, member_id="", group_instance_id=instance,
            protocol_type="consumer", protocols=[row(name="range", metadata=b"x")]))

    waits: list[float] = []
    sleep = Clock.sleep
    monkeypatch.setattr(Clock, "sleep", lambda self, seconds: waits.append(seconds) or sleep(self, seconds))
    with Fleet("4.4", topics={"t": 1}) as fleet, connect_sync(fleet.bootstrap) as connection:
        first = join_as("i")
        sync(connection, first.member_id, 1)
        assert join_as("j").generation_id == 2  # i does not join again
        connection.send(M.LeaveGroupRequest(group_id="g", members=[gone(group_instance_id="j")]))
        waits.clear()
        time.sleep(0.3)
        assert beat_static(connection, first.member_id, 2) == E.REBALANCE_IN_PROGRESS and len(waits) < 10
        assert join_as("i").generation_id == 3


def test_the_first_members_wait_three_seconds_for_ids_that_were_given_out(
    fleet: Fleet, connection: SyncConnection
) -> None:
    """As with group.initial.rebalance.delay.ms; its client may never come."""
    assert join(connection).error_code == E.MEMBER_ID_REQUIRED
    with connect_sync(fleet.bootstrap) as other, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(joined, other)
        while not fleet.cluster.groups.classic("g").members:
            time.sleep(0.01)
        fleet.advance(3)
        assert answer.result(10).generation_id == 1


def test_members_leave_together(fleet: Fleet, connection: SyncConnection) -> None:
    """One that waits for the next generation, and an id that was given out; from 4.0 on at once."""
    first = joined(connection)
    sync(connection, first.member_id, 1, **{first.member_id: b"all"})
    given = join(connection).member_id
    with connect_sync(fleet.bootstrap) as other, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(join, other, first.member_id)
        while fleet.cluster.groups.classic("g").state != "PreparingRebalance":
            time.sleep(0.01)
        described = connection.send(M.DescribeGroupsRequest(groups=["g"])).groups[0].members
        assert [one.member_assignment for one in described] == [b"all"]  # the last one, from 4.0 on
        assert delete(connection) == E.NON_EMPTY_GROUP
        row = M.LeaveGroupRequest.MemberIdentity
        left = connection.send(M.LeaveGroupRequest(group_id="g", members=[
            row(member_id=given), row(member_id=first.member_id)]))
        refused = answer.result(10)
    assert [one.error_code for one in left.members] == [0, 0]
    assert (refused.error_code, refused.member_id) == (E.UNKNOWN_MEMBER_ID, "")
    assert fleet.cluster.groups.classic("g").state == "Empty"
    assert delete(connection) == 0


def delete(connection: Any) -> int:
    return int(connection.send(M.DeleteGroupsRequest(groups_names=["g"])).results[0].error_code)


def test_a_group_that_waits_for_an_id_is_not_empty(fleet: Fleet, connection: SyncConnection) -> None:
    first = joined(connection)
    sync(connection, first.member_id, 1)
    given = join(connection).member_id
    row = M.LeaveGroupRequest.MemberIdentity
    connection.send(M.LeaveGroupRequest(group_id="g", members=[row(member_id=first.member_id)]))
    assert delete(connection) == E.NON_EMPTY_GROUP
    connection.send(M.LeaveGroupRequest(group_id="g", members=[row(member_id=given)]))
    assert delete(connection) == 0


def test_a_silent_member_is_removed_by_the_clock(fleet: Fleet, connection: SyncConnection) -> None:
    first = joined(connection)
    sync(connection, first.member_id, 1)
    fleet.advance(9)
    assert beat(connection, first.member_id, 1) == 0
    fleet.advance(11)
    assert beat(connection, first.member_id, 1) == E.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("silent", ["leader", "follower"])
def test_a_member_that_sends_no_sync_group_is_removed(
    silent: str, fleet: Fleet, connection: SyncConnection
) -> None:
    """After the rebalance timeout, though it heartbeats (KAFKA-12890)."""
    with connect_sync(fleet.bootstrap) as other, ThreadPoolExecutor(2) as pool:
        ids = [join(one).member_id for one in (connection, other)]
        answers = [pool.submit(join, one, member) for one, member in zip((connection, other), ids, strict=True)]
        leader = answers[0].result(10).leader
        [follower] = {*ids} - {leader}
        assert answers[1].result(10).leader == leader
        gone, stays = (leader, follower) if silent == "leader" else (follower, leader)
        waiting = pool.submit(sync, other, stays, 1)
        for _ in range(3):
            assert beat(connection, gone, 1) == 0
            fleet.advance(8)
            if silent == "follower":
                assert waiting.result(10).error_code == 0
                beat(other, stays, 1)
        if silent == "leader":
            assert waiting.result(10).error_code == E.REBALANCE_IN_PROGRESS
        assert beat(connection, gone, 1) == E.UNKNOWN_MEMBER_ID
        again = join(other, stays)
    assert (again.error_code, again.generation_id, again.leader) == (0, 2, stays)


class SetClock(ManualClock):
    """One whose time of day is set, as by NTP or after a machine slept."""

    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


@pytest.mark.parametrize(("ahead", "beats"), [(3600.0, 3), (-3600.0, 0)])
def test_sessions_do_not_end_where_the_clock_is_set(ahead: float, beats: int) -> None:
    """Nor do they last longer: Kafka measures them with a clock that nobody sets (SystemTimer: Time.hiResClockMs)."""
    clock = SetClock()
    with Fleet("4.4", topics={"t": 4}, clock=clock) as fleet, connect_sync(fleet.bootstrap) as connection:
        first = joined(connection)
        sync(connection, first.member_id, 1)
        epoch = consumer_beat(connection, A, 0, **START).member_epoch
        clock.ahead = ahead
        for _ in range(beats):
            fleet.advance(9)
            assert beat(connection, first.member_id, 1) == 0
            assert consumer_beat(connection, A, epoch).error_code == 0
        fleet.advance(46)
        assert beat(connection, first.member_id, 1) == E.UNKNOWN_MEMBER_ID
        assert consumer_beat(connection, A, epoch).error_code == E.UNKNOWN_MEMBER_ID


def test_a_clock_of_the_users_own_needs_no_more_than_now_and_sleep() -> None:
    class Own(Clock):
        moved = ManualClock()

        def now(self) -> float:
            return self.moved.now()

        async def sleep(self, seconds: float) -> None:
            await self.moved.sleep(seconds)

    clock = Own()
    with Fleet("4.4", clock=clock) as fleet, connect_sync(fleet.bootstrap) as connection:
        first = joined(connection)
        sync(connection, first.member_id, 1)
        fleet._in_loop(partial(clock.moved.advance, 9))
        assert beat(connection, first.member_id, 1) == 0
        fleet._in_loop(partial(clock.moved.advance, 11))
        assert beat(connection, first.member_id, 1) == E.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("group", "partition"), [
    ("g", 3), ("zzzzzz", 14), ("polygenelubricants", 0),  # hash codes 103, -685785664, Integer.MIN_VALUE
])
def test_the_partition_that_has_a_group(group: str, partition: int) -> None:
    """Utils.abs(groupId.hashCode) % 50: abs, not the lower 31 bits."""
    assert partition_for(group) == partition


def consumer_beat(connection: Any, member: str, epoch: int, **more: Any) -> Any:
    return connection.send(M.ConsumerGroupHeartbeatRequest(group_id="n", member_id=member, member_epoch=epoch, **more))


def assigned(answer: Any) -> list[int] | None:
    return None if answer.assignment is None else sorted(
        index for row in answer.assignment.topic_partitions for index in row.partitions)


def test_kip_848(fleet: Fleet, connection: SyncConnection) -> None:
    a, b, topic = "a" * 22, "b" * 22, fleet.cluster.topics["t"].id
    start: dict[str, Any] = {
        "rebalance_timeout_ms": 9000, "topic_partitions": [], "subscribed_topic_names": ["t"]}

    def owns(*indexes: int) -> dict[str, Any]:
        rows = [M.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic, partitions=list(indexes))]
        return {"topic_partitions": rows if indexes else []}

    first = consumer_beat(connection, a, 0, **start)
    assert (first.error_code, first.member_epoch, assigned(first)) == (0, 2, [0, 1, 2, 3])
    second = consumer_beat(connection, b, 0, **start)
    assert assigned(second) == []  # the other one has them all, still
    told = consumer_beat(connection, a, 2, **owns(0, 1, 2, 3))
    assert told.member_epoch == 2 and len(assigned(told) or ()) == 2
    kept = assigned(told) or []
    assert assigned(consumer_beat(connection, b, second.member_epoch)) is None  # not given up yet: nothing new
    released = consumer_beat(connection, a, 2, **owns(*kept))
    assert released.member_epoch == 3
    gained = consumer_beat(connection, b, second.member_epoch)
    assert sorted([*kept, *(assigned(gained) or [])]) == [0, 1, 2, 3]
    assert consumer_beat(connection, b, 1).error_code == E.FENCED_MEMBER_EPOCH
    assert consumer_beat(connection, "nobody", 1).error_code == E.UNKNOWN_MEMBER_ID
    assert consumer_beat(connection, b, -1).member_epoch == -1
    assert assigned(consumer_beat(connection, a, 3, **owns(*kept))) == [0, 1, 2, 3]
    fleet.advance(46)
    assert consumer_beat(connection, a, 4).error_code == E.UNKNOWN_MEMBER_ID


START: dict[str, Any] = {"rebalance_timeout_ms": 9000, "topic_partitions": [], "subscribed_topic_names": ["t"]}
A, B = "a" * 22, "b" * 22


def consumers(fleet: Fleet) -> Any:
    return fleet.cluster.groups.consumer("n")


def test_a_member_that_gives_nothing_up_in_time_is_removed(fleet: Fleet, connection: SyncConnection) -> None:
    """Within its rebalance timeout (GroupMetadataManager.scheduleConsumerGroupRebalanceTimeout)."""
    consumer_beat(connection, A, 0, **START)
    consumer_beat(connection, B, 0, **START)
    assert len(assigned(consumer_beat(connection, A, 2)) or ()) == 2  # of four, and now it has 9 seconds
    fleet.advance(8)
    assert consumer_beat(connection, A, 2).error_code == 0
    fleet.advance(2)
    gone = consumer_beat(connection, A, 2)
    assert (gone.error_code, gone.error_message) == (E.UNKNOWN_MEMBER_ID, f"Member {A} is not a member of group n.")
    assert assigned(consumer_beat(connection, B, 3)) == [0, 1, 2, 3]


def test_the_answer_to_a_heartbeat_was_lost(fleet: Fleet, connection: SyncConnection) -> None:
    """It may be sent again in the epoch before, by a member that has no more than it was given."""
    consumer_beat(connection, A, 0, **START)
    fleet.cluster.create_topic("u", 2)
    assert consumer_beat(connection, A, 2, subscribed_topic_names=["t", "u"]).member_epoch == 3
    rows = [M.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=fleet.cluster.topics["t"].id, partitions=[0, 1])]
    assert consumer_beat(connection, A, 2, topic_partitions=rows).member_epoch == 3
    assert consumer_beat(connection, A, 2).error_code == E.FENCED_MEMBER_EPOCH
    rows[0].partitions = [9]
    assert consumer_beat(connection, A, 2, topic_partitions=rows).error_code == E.FENCED_MEMBER_EPOCH


def test_a_static_member_comes_back(fleet: Fleet, connection: SyncConnection) -> None:
    """After -2 another process takes its place and keeps what it has, without a new epoch."""
    me = {"instance_id": "i"}
    consumer_beat(connection, A, 0, **START, **me)
    refused = consumer_beat(connection, B, 0, **START, **me)
    assert (refused.error_code, refused.error_message) == (
        E.UNRELEASED_INSTANCE_ID, f"Static member {B} with instance id i cannot join the group because the instance id "
        f"is owned by {A} member.")
    assert consumer_beat(connection, A, -2, **me).member_epoch == -2
    assert consumers(fleet).state == "Reconciling"
    again = consumer_beat(connection, B, 0, **START, **me)
    assert (again.member_epoch, assigned(again)) == (2, [0, 1, 2, 3])
    fenced = consumer_beat(connection, A, 2, **me)
    assert fenced.error_code == E.FENCED_INSTANCE_ID
    assert list(consumers(fleet).members) == [B]
    consumer_beat(connection, B, -2, **me)
    fleet.advance(46)
    assert consumer_beat(connection, B, 2).error_code == E.UNKNOWN_MEMBER_ID
    assert consumers(fleet).state == "Empty"


def test_an_expression_is_resolved_after_the_answer(fleet: Fleet, connection: SyncConnection) -> None:
    """A topic that comes later is seen at a heartbeat, at the earliest ten seconds after the last look."""
    start = {**START, "subscribed_topic_names": None, "subscribed_topic_regex": "t.*"}
    assert assigned(consumer_beat(connection, A, 0, **start)) == []
    assert assigned(consumer_beat(connection, A, 1)) == [0, 1, 2, 3]
    fleet.cluster.create_topic("tt", 1)
    assert consumer_beat(connection, A, 2).member_epoch == 2
    fleet.advance(11)
    consumer_beat(connection, A, 2)
    assert len(assigned(consumer_beat(connection, A, 2)) or ()) == 5
    assert consumer_beat(connection, A, 3, subscribed_topic_regex="(").error_code == E.INVALID_REGULAR_EXPRESSION
    assert consumers(fleet).members[A].regex == "t.*"


def test_a_commit_in_an_epoch_of_before(fleet: Fleet, connection: SyncConnection) -> None:
    """From 4.3 on a member may commit to what it had in that epoch (KIP-1251)."""
    consumer_beat(connection, A, 0, **START)
    fleet.cluster.create_topic("u", 1)
    consumer_beat(connection, A, 2, subscribed_topic_names=["t", "u"])
    row = M.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)

    def codes(epoch: int, version: int = 9) -> list[int]:
        answer: Any = connection.send(M.OffsetCommitRequest(
            group_id="n", generation_id_or_member_epoch=epoch, member_id=A, topics=[
                M.OffsetCommitRequest.OffsetCommitRequestTopic(name=name, partitions=[row]) for name in "tu"]), version)
        return [topic.partitions[0].error_code for topic in answer.topics]

    assert codes(3) == [0, 0]
    assert codes(2) == [0, E.STALE_MEMBER_EPOCH]
    assert codes(4) == [E.STALE_MEMBER_EPOCH] * 2
    assert codes(3, 8) == [E.UNSUPPORTED_VERSION] * 2


@pytest.mark.parametrize(("release", "first", "again", "empty"), [
    ("4.0", 1, E.FENCED_MEMBER_EPOCH, 1), ("4.2", 1, 0, 1), ("4.3", 2, 0, 2), ("4.4", 2, 0, 3)])
def test_epochs_of_the_releases(release: str, first: int, again: int, empty: int) -> None:
    with Fleet(release, topics={"t": 1}) as fleet, connect_sync(fleet.bootstrap) as connection:
        assert consumer_beat(connection, A, 0, **START).member_epoch == first
        consumer_beat(connection, A, first, subscribed_topic_names=["t", "nobody"])
        consumer_beat(connection, A, first + 1, subscribed_topic_names=["t"])
        assert consumer_beat(connection, A, 0, **START).error_code == again
        group = consumers(fleet)
        consumer_beat(connection, A, -1)
        assert (group.epoch, group.assignment_epoch) == (first + 3, first + 2 + (empty == 3))


@pytest.mark.parametrize(("release", "further"), [("4.0", 1), ("4.1", 1), ("4.2", 0), ("4.4", 0)])
def test_a_member_that_gave_up_must_give_up_more(release: str, further: int) -> None:
    """Before 4.2 it is an epoch further then (CurrentAssignmentBuilder of 4.0.1 and 4.2.0)."""
    with Fleet(release, topics={"t": 4}) as fleet, connect_sync(fleet.bootstrap) as connection:
        epoch = consumer_beat(connection, A, 0, **START).member_epoch
        consumer_beat(connection, B, 0, **START)
        assert len(assigned(consumer_beat(connection, A, epoch)) or ()) == 2
        rows = [M.ConsumerGroupHeartbeatRequest.TopicPartitions(
            topic_id=fleet.cluster.topics["t"].id, partitions=sorted(
                index for _, index in consumers(fleet).members[A].assigned))]
        told = consumer_beat(connection, A, epoch, topic_partitions=rows, subscribed_topic_names=[])
        assert (told.member_epoch, assigned(told)) == (epoch + further, [])
        again = consumer_beat(connection, A, epoch, topic_partitions=rows)  # its answer was lost
        assert again.error_code == (E.FENCED_MEMBER_EPOCH if further else 0)


@pytest.mark.parametrize(("release", "kept"), [("3.9", False), ("4.0", True)])
def test_a_group_whose_last_offset_was_deleted(release: str, kept: bool) -> None:
    part = M.OffsetCommitRequest.OffsetCommitRequestPartition
    with Fleet(release, topics={"t": 2}) as fleet, connect_sync(fleet.bootstrap) as connection:
        connection.send(M.OffsetCommitRequest(
            group_id="o", generation_id_or_member_epoch=-1, member_id="", topics=[
                M.OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[
                    part(partition_index=index, committed_offset=1) for index in (0, 1)])]), 8)
        for index, there in ((9, True), (0, True), (1, kept)):
            row = M.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index)
            connection.send(M.OffsetDeleteRequest(group_id="o", topics=[
                M.OffsetDeleteRequest.OffsetDeleteRequestTopic(name="t", partitions=[row])]))
            assert ("o" in fleet.cluster.groups.groups) == there


def pending_offsets(connection: Any) -> None:
    """Offset 1 of partition 0 of t, committed by group o; 7 of partitions 0 to 2 of t in a transaction."""
    commit, pending = M.OffsetCommitRequest, M.TxnOffsetCommitRequest
    row = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    connection.send(commit(group_id="o", generation_id_or_member_epoch=-1, topics=[
        commit.OffsetCommitRequestTopic(name="t", partitions=[row])]), 8)
    connection.send(M.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
    connection.send(M.AddOffsetsToTxnRequest(transactional_id="x", producer_id=0, producer_epoch=0, group_id="o"), 3)
    rows = [pending.TxnOffsetCommitRequestPartition(partition_index=at, committed_offset=7) for at in range(3)]
    answer = connection.send(pending(
        transactional_id="x", group_id="o", producer_id=0, producer_epoch=0, generation_id_or_member_epoch=-1,
        topics=[pending.TxnOffsetCommitRequestTopic(name="t", partitions=rows)]), 3)
    assert [one.error_code for one in answer.topics[0].partitions] == [0, 0, 0]


def committed(connection: Any) -> dict[int, int]:
    """The offsets of group o, when the transaction has committed."""
    connection.send(M.EndTxnRequest(transactional_id="x", producer_id=0, producer_epoch=0, committed=True), 3)
    asked = M.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="o", topics=None)
    (group,) = connection.send(M.OffsetFetchRequest(require_stable=True, groups=[asked]), 9).groups
    return {one.partition_index: one.committed_offset for topic in group.topics for one in topic.partitions}


@pytest.mark.parametrize("version", [7, 8, 9])
def test_offsets_that_wait_are_looked_up_once(
    fleet: Fleet, connection: SyncConnection, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending_offsets(connection)
    looks, look = list[Any](), CommittedOffsets.pending_partitions
    monkeypatch.setattr(CommittedOffsets, "pending_partitions", lambda group: looks.append(group) or look(group))
    fetch = M.OffsetFetchRequest

    def asked(stable: bool) -> list[tuple[int, int]]:
        indexes = [0, 1, 2, 3] * 50
        if version == 7:
            rows = [fetch.OffsetFetchRequestTopic(name="t", partition_indexes=indexes)]
            topics = connection.send(fetch(group_id="o", require_stable=stable, topics=rows), version).topics
        else:
            of_group = fetch.OffsetFetchRequestGroup(group_id="o", topics=[
                fetch.OffsetFetchRequestTopics(name="t", partition_indexes=indexes)])
            (group,) = connection.send(fetch(require_stable=stable, groups=[of_group]), version).groups
            topics = group.topics
        return sorted({(one.partition_index, one.error_code or one.committed_offset) for one in topics[0].partitions})

    unstable = E.UNSTABLE_OFFSET_COMMIT
    assert asked(stable=True) == [(0, unstable), (1, unstable), (2, unstable), (3, -1)]
    assert asked(stable=False) == [(0, 1), (1, -1), (2, -1), (3, -1)]
    connection.send(M.EndTxnRequest(transactional_id="x", producer_id=0, producer_epoch=0, committed=True), 3)
    assert asked(stable=True) == [(0, 7), (1, 7), (2, 7), (3, -1)]
    assert len(looks) == 2


def not_searched(*_: Any) -> Any:
    raise AssertionError("all offsets are searched for those of one partition")


def test_an_offset_is_forgotten_without_a_look_at_all(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OffsetDelete of one partition costs the same in a group with many."""
    pending_offsets(connection)
    group = fleet.cluster.groups.groups["o"]
    kept = list[Any]()
    monkeypatch.setattr(group, "kept", kept.append)
    with monkeypatch.context() as patched:
        patched.setattr("kwire.fleet.coordinators.groups.CommittedOffsets.partitions", not_searched)
        delete = M.OffsetDeleteRequest
        answer = connection.send(delete(group_id="o", topics=[delete.OffsetDeleteRequestTopic(
            name="t", partitions=[delete.OffsetDeleteRequestPartition(partition_index=at) for at in (0, 1, 3)])]))
        assert (answer.error_code, [one.error_code for one in answer.topics[0].partitions]) == (0, [0, 0, 0])
    assert kept == [{("t", 0): None, ("t", 1): None}]
    assert group.offsets == {} and group.partitions() == {("t", 2)}


def test_a_topic_is_deleted_without_a_look_at_all_offsets(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else many topics and many offsets take the time of both."""
    pending_offsets(connection)
    group = fleet.cluster.groups.groups["o"]
    monkeypatch.setattr(CommittedOffsets, "partitions", not_searched)
    connection.send(M.DeleteTopicsRequest(topics=[M.DeleteTopicsRequest.DeleteTopicState(name="t")]), 6)
    assert not group.offsets and not group.pending_partitions()


def test_groups_are_looked_at_once_for_all_markers(fleet: Fleet, connection: SyncConnection) -> None:
    class Counted(dict[str, Any]):
        looks = 0

        def items(self) -> Any:
            self.looks += 1
            return super().items()

    pending_offsets(connection)
    fleet._in_loop(lambda: fleet.cluster.create_topic("__consumer_offsets", 50))
    groups = fleet.cluster.groups.groups = Counted(fleet.cluster.groups.groups)
    request = M.WriteTxnMarkersRequest
    topic = request.WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=[partition_for("o")] * 9)
    connection.send(request(markers=[request.WritableTxnMarker(
        producer_id=0, producer_epoch=0, transaction_result=True, topics=[topic])] * 9), 1)
    assert groups.looks == 1 and groups["o"].offsets["t", 2].offset == 7


def in_transaction(connection: Any, version: int, group: str = "n", **member: Any) -> Any:
    """The error code of a commit of t-0 in a transaction of x."""
    if version < 5:
        connection.send(M.AddOffsetsToTxnRequest(
            transactional_id="x", producer_id=0, producer_epoch=0, group_id=group), 3)
    request = M.TxnOffsetCommitRequest
    row = request.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    answer = connection.send(request(
        transactional_id="x", group_id=group, producer_id=0, producer_epoch=0, **member,
        topics=[request.TxnOffsetCommitRequestTopic(name="t", partitions=[row])]), version)
    return answer.topics[0].partitions[0].error_code


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_a_transaction_commits_offsets_of_a_consumer_group(
    fleet: Fleet, connection: SyncConnection, version: int
) -> None:
    """As 4.3.0 does: who says nothing of a member is a producer alone; a wrong epoch is ILLEGAL_GENERATION."""
    connection.send(M.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
    epoch = consumer_beat(
        connection, "a", 0, rebalance_timeout_ms=1000, topic_partitions=[], subscribed_topic_names=["t"]).member_epoch
    assert in_transaction(connection, version) == 0
    if version >= 3:
        for (member, generation, instance), code in {
            ("a", epoch, None): 0, ("a", epoch + 1, None): E.ILLEGAL_GENERATION, ("a", -1, None): E.ILLEGAL_GENERATION,
            ("b", epoch, None): E.UNKNOWN_MEMBER_ID, ("", -1, "i"): E.UNKNOWN_MEMBER_ID,
        }.items():
            assert in_transaction(
                connection, version, member_id=member, generation_id_or_member_epoch=generation,
                group_instance_id=instance) == code
    consumer_beat(connection, "a", -1)
    assert in_transaction(connection, version) == 0
    (group,) = connection.send(M.ListGroupsRequest(), 5).groups
    assert (group.group_id, group.group_type) == ("n", "consumer")  # as before: without members, too


def test_a_transaction_commits_while_a_group_is_to_be_assigned(fleet: Fleet, connection: SyncConnection) -> None:
    """As 4.3.0 does, which refuses other commits then; an instance that is not there is no member."""
    connection.send(M.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
    first = joined(connection)
    generation = {"generation_id_or_member_epoch": first.generation_id}
    assert in_transaction(connection, 3, "g", member_id=first.member_id, **generation) == 0
    assert in_transaction(connection, 3, "g", group_instance_id="i") == E.UNKNOWN_MEMBER_ID
    assert in_transaction(connection, 3, "g") == 0


def test_a_transaction_names_the_partitions_of_groups(fleet: Fleet, connection: SyncConnection) -> None:
    """Of those that __consumer_offsets has, each once."""
    fleet._in_loop(lambda: fleet.cluster.create_topic("__consumer_offsets", 2))
    connection.send(M.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
    for name in "abcd":
        connection.send(M.AddOffsetsToTxnRequest(
            transactional_id="x", producer_id=0, producer_epoch=0, group_id=name), 3)
    (row,) = connection.send(M.DescribeTransactionsRequest(transactional_ids=["x"]), 0).transaction_states
    assert [(topic.topic, list(topic.partitions)) for topic in row.topics] == [("__consumer_offsets", [0, 1])]


def test_others_are_answered_while_expressions_are_looked_up(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many expressions and many topics take the time of both."""
    turns = []

    async def turn(seconds: float) -> None:
        turns.append(seconds)
        await asyncio.sleep(seconds)

    topics = M.CreateTopicsRequest
    connection.send(topics(topics=[
        topics.CreatableTopic(name=f"n{at}", num_partitions=1, replication_factor=1) for at in range(2000)]), 7)
    ours: dict[str, Any] = {"rebalance_timeout_ms": 1000, "topic_partitions": []}
    for at in range(20):
        consumer_beat(connection, f"m{at}", 0, **ours, subscribed_topic_regex=f"n.*|{at}")
    fleet.advance(11)
    monkeypatch.setattr(consumer_groups, "asyncio", SimpleNamespace(sleep=turn))
    consumer_beat(connection, "m0", 0, **ours, subscribed_topic_regex="n.*|0")
    assert len(turns) >= 20 * 2000 // 500
    group = fleet.cluster.groups.groups["n"]
    assert isinstance(group, ConsumerGroup)
    assert all(len(group.subscribed(member)) == 2000 for member in group.members.values())
    assert len({id(names) for names in group._resolved.values()}) == 1  # the same topics are kept once


def test_a_client_that_goes_leaves_expressions_to_the_next() -> None:
    """While they are looked up its heartbeat is cancelled."""
    async def cancelled() -> None:
        async with Fleet("4.4", topics={"t": 1}) as fleet:
            group, member = ConsumerGroup("n", fleet.cluster), ConsumerMember("a", None, "", "")
            group.beat(member, Said(None, "t", None, set()))
            task = asyncio.ensure_future(group.resolve())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled() and not group.subscribed(member)
            await group.resolve()
            assert group.subscribed(member) == {"t"}
            group.close()

    asyncio.run(cancelled())


def test_protocols_that_nobody_has_are_forgotten(fleet: Fleet) -> None:
    def member(name: str, *protocols: str) -> Member:
        return Member(name, None, "c", "h", 10.0, 10.0, [(one, b"") for one in protocols])

    def all_of() -> None:
        group = fleet.cluster.groups.made("g")
        first, second = member("1", "a", "b", "b"), member("2", "b", "c")
        group.add(first)
        group.add(second)
        assert dict(group._supported) == {"a": 1, "b": 2, "c": 1}
        group.prefer(first, [("b", b""), ("d", b"")])
        assert dict(group._supported) == {"b": 2, "c": 1, "d": 1}
        for number in range(100):  # one that joins again and again
            group.prefer(first, [("b", b""), (f"x{number}", b"")])
        assert dict(group._supported) == {"b": 2, "c": 1, "x99": 1}
        assert group.elected() == "b"
        group.remove(first)
        assert dict(group._supported) == {"b": 1, "c": 1}
        group.remove(second)
        assert dict(group._supported) == {}

    fleet._in_loop(all_of)


@pytest.mark.parametrize("again", [False, True])
def test_a_deleted_offset_is_deleted_in_transactions_too(tmp_path: Path, again: bool) -> None:
    """OffsetMetadataManager.replay of a tombstone, of 4.4.0; also when the folder is read again."""
    delete = M.OffsetDeleteRequest
    with Fleet("4.4", topics={"t": 3}, data=tmp_path) as fleet, connect_sync(fleet.bootstrap) as connection:
        pending_offsets(connection)
        connection.send(delete(group_id="o", topics=[delete.OffsetDeleteRequestTopic(
            name="t", partitions=[delete.OffsetDeleteRequestPartition(partition_index=at) for at in (0, 1)])]))
        if not again:
            assert committed(connection) == {2: 7}
    with Fleet("4.4", data=tmp_path) as fleet, connect_sync(fleet.bootstrap) as connection:
        assert committed(connection) == {2: 7}


@pytest.mark.parametrize("again", [False, True])
def test_a_later_commit_is_not_undone_by_the_end_of_a_transaction(tmp_path: Path, again: bool) -> None:
    """OffsetMetadataManager.replayEndTransactionMarker: of 4.4.0."""
    commit = M.OffsetCommitRequest
    row = commit.OffsetCommitRequestPartition(partition_index=1, committed_offset=9)
    with Fleet("4.4", topics={"t": 3}, data=tmp_path) as fleet, connect_sync(fleet.bootstrap) as connection:
        pending_offsets(connection)
        connection.send(commit(group_id="o", generation_id_or_member_epoch=-1, topics=[
            commit.OffsetCommitRequestTopic(name="t", partitions=[row])]), 8)
        if not again:
            assert committed(connection) == {0: 7, 1: 9, 2: 7}
    with Fleet("4.4", data=tmp_path) as fleet, connect_sync(fleet.bootstrap) as connection:
        assert committed(connection) == {0: 7, 1: 9, 2: 7}


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("request_", [
    M.DeleteGroupsRequest(groups_names=["o"]), M.DeleteTopicsRequest(topics=[M.DeleteTopicsRequest.DeleteTopicState(
        name="t")])])
def test_what_waits_for_a_transaction_is_deleted_with_group_and_topic(
    tmp_path: Path, request_: Any, again: bool
) -> None:
    with Fleet("4.4", topics={"t": 3}, data=tmp_path) as fleet, connect_sync(fleet.bootstrap) as connection:
        pending_offsets(connection)
        connection.send(request_)
        if not again:
            assert committed(connection) == {}
    with Fleet("4.4", data=tmp_path) as fleet, connect_sync(fleet.bootstrap) as connection:
        assert committed(connection) == {}


def test_kip_848_needs_its_level() -> None:
    with Fleet("4.4", levels={"group.version": 0}) as fleet, connect_sync(fleet.bootstrap) as connection:
        request = M.ConsumerGroupHeartbeatRequest(
            group_id="n", member_id=str(uuid.UUID(int=1)), member_epoch=0, rebalance_timeout_ms=9,
            topic_partitions=[], subscribed_topic_names=["t"])
        answer: Any = connection.send(request)
        assert answer.error_code == E.UNSUPPORTED_VERSION


def test_a_member_that_never_comes_holds_nobody_up(fleet: Fleet, connection: SyncConnection) -> None:
    """An id that was given out is waited for as long as a session lasts (KIP-394)."""
    asked = join(connection)
    assert join(connection).error_code == E.MEMBER_ID_REQUIRED  # another one, which does not come
    answers: list[Any] = []
    other = threading.Thread(target=lambda: answers.append(join(connection, asked.member_id)))
    other.start()
    group = fleet.cluster.groups.made("g")
    while not any(member.joined for member in list(group.members.values())):
        time.sleep(0.001)
    assert not answers and len(group.pending) == 1
    fleet.advance(11)  # less than the rebalance timeout
    other.join(20)
    assert answers[0].error_code == 0 and not group.pending


def test_a_protocol_that_is_named_twice(fleet: Fleet, connection: SyncConnection) -> None:
    """It counts once: no member has the other ones of the group."""
    row = M.JoinGroupRequest.JoinGroupRequestProtocol

    def join_as(through: SyncConnection, member: str, *names: str) -> Any:
        return through.send(M.JoinGroupRequest(
            group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=20_000, member_id=member,
            protocol_type="consumer", protocols=[row(name=name) for name in names]))

    ids = [join_as(connection, "", "a").member_id for _ in range(2)]
    group = fleet.cluster.groups.made("g")
    with connect_sync(fleet.bootstrap) as other:
        first = threading.Thread(target=lambda: join_as(other, ids[0], "b", "a"))
        first.start()
        while not group.members:
            time.sleep(0.001)
        assert join_as(connection, ids[1], "a", "c", "c").protocol_name == "a"
        first.join(20)
    assert not [event for event in fleet.events if event["event"] == "failed"]


@pytest.mark.parametrize(("release", "left"), [("3.9", []), ("4.0", ["g"])])
def test_a_group_without_offsets_is_gone_up_to_3_9(release: str, left: list[str]) -> None:
    with Fleet(release, topics={"t": 2}) as fleet, connect_sync(fleet.bootstrap) as connection:
        part = messages.OffsetCommitRequest.OffsetCommitRequestPartition
        connection.send(messages.OffsetCommitRequest(
            group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=[
                messages.OffsetCommitRequest.OffsetCommitRequestTopic(
                    name="t", partitions=[part(partition_index=at, committed_offset=1) for at in (0, 1)])]), 8)
        for index, groups in ((0, ["g"]), (1, left)):
            connection.send(messages.OffsetDeleteRequest(group_id="g", topics=[
                messages.OffsetDeleteRequest.OffsetDeleteRequestTopic(name="t", partitions=[
                    messages.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index)])]))
            answer: Any = connection.send(messages.ListGroupsRequest())
            assert [group.group_id for group in answer.groups] == groups


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_each_partition_has_one_reader(assignor: str) -> None:
    """Of any members, topics and assignments before."""
    for seed in range(200):
        dice = random.Random(seed)
        counts = {UUID(int=at): dice.randint(0, 12) for at in range(1, 4)}
        members = {f"m{at}": Subscriber(None, frozenset(dice.sample(list(counts), dice.choice((1, 3, 3)))))
                   for at in range(dice.randint(1, 5))}
        target: dict[str, set[Partition]] = {}
        for _ in range(3):
            target = assign(assignor, members, counts, target)
            read = set[UUID]().union(*(one.topics for one in members.values()))
            assert sorted(one for mine in target.values() for one in mine) == [
                (topic, index) for topic, count in counts.items() if topic in read for index in range(count)], seed
            assert all(topic in members[name].topics for name, mine in target.items() for topic, _ in mine)
            members.pop(dice.choice(list(members)))
            members[f"new{len(members)}"] = Subscriber(None, frozenset(counts))


def test_a_member_that_takes_another_instance(fleet: Fleet, connection: SyncConnection) -> None:
    """The instance that it had is free."""
    more = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    for instance, epoch in (("A", 0), ("B", 0), ("B", -1)):
        consumer_beat(connection, "m1", epoch, instance_id=instance, **(more if epoch == 0 else {}))
    assert consumer_beat(connection, "m2", 0, instance_id="A", **more).error_code == 0


def test_offsets_of_a_deleted_topic_are_forgotten(tmp_path: Path) -> None:
    """Kafka's GroupCoordinator.onPartitionsDeleted: a new topic of that name begins without them, also later."""
    commit, make, remove = M.OffsetCommitRequest, M.CreateTopicsRequest, M.DeleteTopicsRequest
    row = commit.OffsetCommitRequestPartition
    asked = M.OffsetFetchRequest(groups=[M.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="o", topics=None)])

    def committed(connection: SyncConnection) -> Any:
        (group,) = connection.send(asked, 9).groups
        return [(one.name, [row.committed_offset for row in one.partitions]) for one in group.topics]

    with Fleet("4.0", topics={"t": 2, "u": 1}, data=tmp_path) as fleet, connect_sync(fleet.bootstrap) as connection:
        connection.send(commit(group_id="o", generation_id_or_member_epoch=-1, topics=[
            commit.OffsetCommitRequestTopic(name="t", partitions=[row(partition_index=1, committed_offset=7)]),
            commit.OffsetCommitRequestTopic(name="u", partitions=[row(partition_index=0, committed_offset=8)])]), 9)
        assert committed(connection) == [("t", [7]), ("u", [8])]
        connection.send(remove(topics=[remove.DeleteTopicState(name="t")], timeout_ms=1000))
        connection.send(make(topics=[make.CreatableTopic(name="t", num_partitions=2, replication_factor=1)]))
        assert committed(connection) == [("u", [8])]
    with Fleet("4.0", data=tmp_path) as fleet, connect_sync(fleet.bootstrap) as connection:
        assert committed(connection) == [("u", [8])]
