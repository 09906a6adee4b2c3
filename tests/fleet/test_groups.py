"""Groups: rebalances of the classic protocol under a clock that the test moves, and those of KIP-848."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from kwire import messages
from kwire.fleet import Fleet, ManualClock
from kwire.fleet.cluster import partition_of
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
    answers: list[Any] = []
    with connect_sync(fleet.bootstrap) as other:
        thread = threading.Thread(target=lambda: answers.append(joined(other)))
        thread.start()
        while beat(connection, first.member_id, 1) != E.REBALANCE_IN_PROGRESS:
            pass
        again = join(connection, first.member_id)
        thread.join(10)
        (second,) = answers
        assert again.generation_id == second.generation_id == 2
        assert {one.member_id for one in again.members} == {first.member_id, second.member_id} and not second.members
        parts = {first.member_id: b"1", second.member_id: b"2"}
        assert sync(connection, first.member_id, 2, **parts).assignment == b"1"
        assert sync(other, second.member_id, 2).assignment == b"2"
    assert sync(connection, first.member_id, 1).error_code == E.ILLEGAL_GENERATION


def test_a_silent_member_is_removed_by_the_clock(fleet: Fleet, connection: SyncConnection) -> None:
    first = joined(connection)
    sync(connection, first.member_id, 1)
    fleet.advance(9)
    assert beat(connection, first.member_id, 1) == 0
    fleet.advance(11)
    assert beat(connection, first.member_id, 1) == E.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("group", "partition"), [
    ("g", 3), ("zzzzzz", 14), ("polygenelubricants", 0),  # hash codes 103, -685785664, Integer.MIN_VALUE
])
def test_the_partition_that_has_a_group(group: str, partition: int) -> None:
    """Utils.abs(groupId.hashCode) % 50: abs, not the lower 31 bits."""
    assert partition_of(group) == ("__consumer_offsets", partition)


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
    assert (first.error_code, first.member_epoch, assigned(first)) == (0, 1, [0, 1, 2, 3])
    second = consumer_beat(connection, b, 0, **start)
    assert assigned(second) == []  # the other one has them all, still
    told = consumer_beat(connection, a, 1, **owns(0, 1, 2, 3))
    assert told.member_epoch == 1 and len(assigned(told) or ()) == 2
    kept = assigned(told) or []
    assert assigned(consumer_beat(connection, b, second.member_epoch)) is None  # not given up yet: nothing new
    released = consumer_beat(connection, a, 1, **owns(*kept))
    assert released.member_epoch == 2
    gained = consumer_beat(connection, b, second.member_epoch)
    assert sorted([*kept, *(assigned(gained) or [])]) == [0, 1, 2, 3]
    assert consumer_beat(connection, b, 1).error_code == E.FENCED_MEMBER_EPOCH
    assert consumer_beat(connection, "nobody", 1).error_code == E.UNKNOWN_MEMBER_ID
    assert consumer_beat(connection, b, -1).member_epoch == -1
    assert assigned(consumer_beat(connection, a, 2, **owns(*kept))) == [0, 1, 2, 3]
    fleet.advance(46)
    assert consumer_beat(connection, a, 3).error_code == E.UNKNOWN_MEMBER_ID


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
