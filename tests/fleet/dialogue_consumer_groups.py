"""Requests of KIP-848's groups, valid and not: ConsumerGroupHeartbeat and ConsumerGroupDescribe."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterable
from typing import Any

from kwire import messages
from tests.fleet.dialogue import Step, create, id_of_topic, versions_of, wait_for_groups

M = messages
LEAVE, LEAVE_STATIC = -1, -2
A, B, C, S, S2 = ("A" * 22, "B" * 22, "C" * 22, "S" * 22, "T" * 22)
# an answer that says so is asked for again: a coordinator assigns and resolves expressions a moment later
MOMENTS = 20


class Talk:
    """What the members of one group say. topics: name -> id."""

    def __init__(self, group: str, version: int, describe: int, topics: dict[str, uuid.UUID]) -> None:
        self.group, self.version, self.describe, self.topics = group, version, describe, topics
        self._epochs: dict[str, int] = {}

    def now(self, member: str) -> int:
        """The epoch that a member was last given."""
        return self._epochs.get(member, 0)

    def beat(self, label: str, member: str, epoch: int, owns: Any = None, **more: Any) -> Generator[Step, Any, Any]:
        """One heartbeat; owns: topic -> partitions. Its answer."""
        rows = None if owns is None else [
            M.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=self.topics.get(name, uuid.UUID(int=9)),
                                                            partitions=list(indexes))
            for name, indexes in owns.items()]
        group = more.pop("group", self.group)
        if self.version < 1:
            more.pop("subscribed_topic_regex", None)
        answer = yield f"{label} of {group}", M.ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, topic_partitions=rows, **more), self.version
        if answer is not None and not answer.error_code:
            self._epochs[answer.member_id] = answer.member_epoch
        return answer

    def join(
        self, label: str, member: str, names: Iterable[str] | None = ("kept",), **more: Any
    ) -> Generator[Step, Any, Any]:
        """A first heartbeat."""
        return (yield from self.beat(label, member, 0, {}, **{
            "rebalance_timeout_ms": 60_000, "subscribed_topic_names": None if names is None else list(names), **more}))

    def wait(self, member: str) -> Generator[Step, Any, None]:
        """Until its epoch is another one: what a coordinator does by itself takes it a moment."""
        before = self.now(member)
        for _ in range(MOMENTS):
            yield from self.beat("wait", member, before)
            if self.now(member) != before:
                break

    def described(self, label: str) -> Generator[Step, Any, None]:
        """ConsumerGroupDescribe in all versions."""
        for version in range(self.describe + 1):
            yield f"{label}: {self.group} described", M.ConsumerGroupDescribeRequest(group_ids=[self.group]), version


def consumer_groups(release: str) -> Generator[Step, Any, None]:
    """All of it, of a broker with group.version 1; needs the topics of no other dialogue."""
    has = versions_of(release)
    newest = has["CreateTopics"][-1]
    for name, count in (("kept", 4), ("other", 3), ("pattern-1", 2), ("pattern-2", 1)):
        yield "create", create(name, newest, count), newest
    topics = {}
    for name in ("kept", "other", "pattern-1", "pattern-2"):
        topics[name] = yield from id_of_topic(has, name)
    version = min(has["FindCoordinator"][-1], 4)
    for group in ("g", "nobody"):
        while True:
            answer = yield "wait", M.FindCoordinatorRequest(coordinator_keys=[group]), version
            if not answer.coordinators[0].error_code:
                break
    describe = has["ConsumerGroupDescribe"][-1]
    for version in has["ConsumerGroupHeartbeat"]:
        names = [f"{name}{version}" for name in (
            "bad", "one", "two", "static", "regex", "range", "empty", "switch", "both")]
        yield from wait_for_groups(has, *names)

        def talk(name: str, version: int = version) -> Talk:
            return Talk(f"{name}{version}", version, describe, topics)

        yield from _invalid(talk("bad"))
        yield from _one(talk("one"))
        yield from _two(talk("two"))
        yield from _static(talk("static"))
        yield from _range(talk("range"))
        yield from _switched(talk("switch"))
        yield from _empty(talk("empty"))
        yield from _classic(talk("both"), has)
        if version >= 1:
            yield from _regex(talk("regex"))
    for version in has["ConsumerGroupDescribe"]:
        yield "describe several", M.ConsumerGroupDescribeRequest(  # one twice: a fleet answers once (SECURITY.md)
            group_ids=["one0", "", "nobody"], include_authorized_operations=True), version
    for version in has["ListGroups"]:
        yield "list groups", M.ListGroupsRequest(), version
        if version >= 4:
            for states in (["stable"], ["Reconciling", "EMPTY"], ["nothing"]):
                yield f"list groups {states}", M.ListGroupsRequest(states_filter=states), version
        if version >= 5:
            for types in (["consumer"], ["Classic"], ["share"], ["nothing"]):
                yield f"list groups {types}", M.ListGroupsRequest(types_filter=types), version
    for version in has["DescribeGroups"]:
        yield "describe as classic", M.DescribeGroupsRequest(groups=["one0", "two0", "nobody"]), version
    for version in has["DeleteGroups"]:
        yield "delete", M.DeleteGroupsRequest(groups_names=["two0", "bad0", "nobody"]), version


def _invalid(t: Talk) -> Generator[Step, Any, None]:
    yield from t.join("no group", A, group="")
    yield from t.join("a blank group", A, group="  ")
    yield from t.join("no member", "")
    yield from t.join("no member and no group", "", group="")
    yield from t.beat("no member", "", 5)
    yield from t.beat("no member leaves", "", LEAVE)
    yield from t.beat("no member leaves for a while", "", LEAVE_STATIC)
    yield from t.join("no instance", A, instance_id="")
    yield from t.join("a blank instance", A, instance_id=" ")
    yield from t.join("no rack", A, rack_id="")
    yield from t.join("no rebalance timeout", A, rebalance_timeout_ms=-1)
    yield from t.beat("no partitions", A, 0, None, rebalance_timeout_ms=1000, subscribed_topic_names=["kept"])
    yield from t.beat("partitions", A, 0, {"kept": [0]}, rebalance_timeout_ms=1000, subscribed_topic_names=["kept"])
    yield from t.join("no topics", A, None)
    yield from t.beat("epoch -3", A, -3)
    yield from t.beat("a dynamic member leaves for a while", A, LEAVE_STATIC)
    yield from t.join("an unknown assignor", A, server_assignor="sticky")
    yield from t.beat("an unknown assignor of no member", A, 1, server_assignor="")
    if t.version >= 1:
        for regex in ("(", "[", "*", "a{5,2}", "\\", "a(?=b)", "a**", "[b-a]", "\\1", "(?P<n", "x{2000}"):
            yield from t.join(f"the expression {regex}", A, None, subscribed_topic_regex=regex)
            yield from t.beat(f"the expression {regex} of nobody", A, 1, subscribed_topic_regex=regex)
    for label, member, epoch, more in (
        ("nobody", A, 1, {}), ("nobody leaves", A, LEAVE, {}),
        ("nobody leaves for a while", A, LEAVE_STATIC, {"instance_id": "i"}),
        ("nobody of an instance", A, 1, {"instance_id": "i"}),
        ("nobody of an instance leaves", A, LEAVE, {"instance_id": "i"}),
    ):
        yield from t.beat(f"{label} of no group", member, epoch, **more)
    yield from t.join("a member of nothing", A, ("nobody",))
    yield from t.beat("goes on", A, t.now(A))
    for label, member, epoch, more in (
        ("nobody", B, 1, {}), ("nobody leaves", B, LEAVE, {}),
        ("nobody leaves for a while", B, LEAVE_STATIC, {"instance_id": "i"}),
        ("nobody of an instance", B, 1, {"instance_id": "i"}),
        ("nobody of an instance leaves", B, LEAVE, {"instance_id": "i"}),
        ("a member with an instance", A, t.now(A), {"instance_id": "i"}),
    ):
        yield from t.beat(label, member, epoch, **more)
    yield from t.beat("leaves", A, LEAVE)
    yield from t.beat("leaves twice", A, LEAVE)
    if t.version == 0:
        answer = yield from t.join("the coordinator names it", "")
        yield from t.beat("so it leaves", answer.member_id or "", LEAVE)


def _one(t: Talk) -> Generator[Step, Any, None]:
    yield from t.join("join", A, rack_id="r1")
    yield from t.described("joined")
    yield from t.beat("beat", A, t.now(A))
    yield from t.beat("beat with what it owns", A, t.now(A), {"kept": [0, 1, 2, 3]})
    yield from t.beat("beat with less", A, t.now(A), {"kept": [0]})
    yield from t.beat("beat with what nobody has", A, t.now(A), {"what": [0], "kept": [77]})
    yield from t.beat("late", A, t.now(A) - 1, {"kept": [0]})
    yield from t.beat("early", A, t.now(A) + 1)
    yield from t.beat("much too early", A, t.now(A) + 97, {"kept": [0, 1, 2, 3]})
    yield from t.beat("full request", A, t.now(A), {"kept": [0, 1, 2, 3]}, rebalance_timeout_ms=60_000,
                 subscribed_topic_names=["kept"])
    yield from t.beat("nearly full request", A, t.now(A), {"kept": [0, 1, 2, 3]}, rebalance_timeout_ms=60_000)
    yield from t.beat("another timeout", A, t.now(A), rebalance_timeout_ms=30_000)
    yield from t.beat("more topics", A, t.now(A), subscribed_topic_names=["kept", "other", "nobody", "other"])
    yield from t.described("more topics")
    yield from t.beat("the answer was lost", A, t.now(A) - 1, {"kept": [0, 1, 2, 3]})
    yield from t.beat("the answer was lost, owning none", A, t.now(A) - 1, {})
    yield from t.beat("the answer was lost, owning others", A, t.now(A) - 1, {"kept": [0, 9]})
    yield from t.beat("the answer was lost, owning nothing said", A, t.now(A) - 1)
    yield from t.beat(
        "as many topics in another order", A, t.now(A), subscribed_topic_names=["other", "nobody", "kept"])
    yield from t.beat("another assignor", A, t.now(A), server_assignor="range")
    yield from t.described("another assignor")
    yield from t.beat("fewer topics", A, t.now(A), {"kept": [0, 1, 2, 3], "other": [0, 1, 2]},
                      subscribed_topic_names=["other"])
    yield from t.described("fewer topics")
    yield from t.beat("not given up", A, t.now(A), {"kept": [0, 1, 2, 3], "other": [0, 1, 2]})
    yield from t.beat("a part given up", A, t.now(A), {"kept": [3], "other": [0, 1, 2]})
    yield from t.beat("given up", A, t.now(A), {"other": [0, 1, 2]})
    yield from t.described("given up")
    yield from t.join("joins again", A, ("other",))
    yield from t.beat("after it", A, t.now(A))
    yield from t.beat("no topics", A, t.now(A), subscribed_topic_names=[])
    yield from t.beat("no topics, given up", A, t.now(A), {})
    yield from t.described("no topics")
    yield from t.beat("after it", A, t.now(A))
    yield from t.beat("leaves in an old epoch", A, LEAVE)
    yield from t.described("left")
    yield from t.join("join again", A)
    yield from t.described("join again")


def _two(t: Talk) -> Generator[Step, Any, None]:
    yield from t.join("first", A)
    yield from t.join("second", B)
    yield from t.described("second")
    yield from t.beat("first must give up", A, t.now(A), {"kept": [0, 1, 2, 3]})
    yield from t.described("giving up")
    yield from t.beat("second waits", B, t.now(B), {})
    yield from t.beat("second says nothing", B, t.now(B))
    yield from t.beat("first again", A, t.now(A), {"kept": [0, 1, 2, 3]})
    answer = yield from t.beat(
        "first says what it has", A, t.now(A), {"kept": [0, 1, 2, 3]}, rebalance_timeout_ms=60_000,
        subscribed_topic_names=["kept"])
    keeps = [] if answer.assignment is None else sorted(
        index for row in answer.assignment.topic_partitions for index in row.partitions)
    yield from t.beat("first gave up", A, t.now(A), {"kept": keeps})
    yield from t.described("gave up")
    answer = yield from t.beat("second gets them", B, t.now(B))
    yield from t.described("got")
    yield from t.beat("first in its old epoch", A, t.now(A) - 1, {"kept": keeps})
    yield from t.beat("third", C, 0, {}, rebalance_timeout_ms=60_000, subscribed_topic_names=["kept", "other"])
    yield from t.described("third")
    yield from t.beat("third leaves", C, LEAVE)
    yield from t.described("third left")
    yield from t.beat("first after it", A, t.now(A))
    yield from t.beat("second after it", B, t.now(B))
    yield from t.beat("second leaves", B, LEAVE)
    yield from t.beat("second after it left", B, 3)
    yield from t.beat("first takes over", A, t.now(A))
    yield from t.beat("first takes over again", A, t.now(A))
    yield from t.described("alone")
    for commit in (9,):
        for label, epoch, member in (("", t.now(A), A), (" late", t.now(A) - 1, A), (" early", t.now(A) + 1, A),
                                     (" of nobody", 5, B), (" without a member", -1, ""), (" without an epoch", -1, A)):
            part = M.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
            yield f"commit{label} in {t.group}", M.OffsetCommitRequest(
                group_id=t.group, generation_id_or_member_epoch=epoch, member_id=member, topics=[
                    M.OffsetCommitRequest.OffsetCommitRequestTopic(name="kept", partitions=[part])]), commit
            rows = [M.OffsetFetchRequest.OffsetFetchRequestTopics(name="kept", partition_indexes=[0])]
            yield f"fetch offsets{label} in {t.group}", M.OffsetFetchRequest(groups=[
                M.OffsetFetchRequest.OffsetFetchRequestGroup(
                    group_id=t.group, member_id=member or None, member_epoch=epoch, topics=rows)]), commit
    for name in ("kept", "other", "nobody"):
        part = M.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
        yield f"delete offsets of {name} of {t.group}", M.OffsetDeleteRequest(group_id=t.group, topics=[
            M.OffsetDeleteRequest.OffsetDeleteRequestTopic(name=name, partitions=[part])]), 0


def _static(t: Talk) -> Generator[Step, Any, None]:
    me = {"instance_id": "i"}
    yield from t.join("static", S, **me)
    yield from t.join("another with its instance", S2, **me)
    yield from t.join("joins again without leaving", S, **me)
    yield from t.beat("beat", S, t.now(S), **me)
    yield from t.beat("beat without the instance", S, t.now(S))
    yield from t.beat("beat of another", S2, t.now(S), **me)
    yield from t.beat("beat with another instance", S, t.now(S), instance_id="j")
    yield from t.beat("another leaves", S2, LEAVE, **me)
    yield from t.beat("another leaves for a while", S2, LEAVE_STATIC, **me)
    yield from t.beat("early", S, t.now(S) + 3, **me)
    yield from t.join("dynamic", A)
    yield from t.beat("gives up", S, t.now(S), {"kept": [0, 1, 2, 3]}, **me)
    yield from t.beat("leaves for a while", S, LEAVE_STATIC, **me)
    yield from t.described("away")
    yield from t.beat("leaves for a while twice", S, LEAVE_STATIC, **me)
    yield from t.beat("beat while it is away", S, 2, **me)
    yield from t.beat("dynamic goes on", A, t.now(A), {})
    yield from t.join("comes back as another", S2, **me)
    yield from t.described("came back")
    yield from t.beat("the old one", S, 2, **me)
    yield from t.beat("the old one without instance", S, 2)
    yield from t.beat("the new one", S2, t.now(S2), **me)
    yield from t.beat("dynamic goes on", A, t.now(A))
    yield from t.beat("leaves for a while", S2, LEAVE_STATIC, **me)
    yield from t.join("comes back with other topics", S, ("other",), **me)
    yield from t.described("with other topics")
    yield from t.beat("dynamic goes on", A, t.now(A))
    yield from t.beat("dynamic goes on", A, t.now(A))
    yield from t.beat("leaves", S, LEAVE, **me)
    yield from t.described("left")
    yield from t.beat("leaves after it left", S, LEAVE, **me)
    yield from t.join("comes again", S2, **me)
    yield from t.beat("leaves without its instance", S2, LEAVE)
    yield from t.described("left without")
    yield from t.beat("leaves for a while without a member", "", LEAVE_STATIC, **me)


def _range(t: Talk) -> Generator[Step, Any, None]:
    yield from t.join("first", A, ("kept", "other"), server_assignor="range")
    yield from t.join("second", B, ("kept", "other"), server_assignor="range")
    yield from t.join("third", C, ("other",), server_assignor="uniform")
    yield from t.described("range")
    yield from t.beat("first", A, t.now(A), {"kept": [0, 1], "other": [0]})
    yield from t.beat("second", B, t.now(B), {})
    yield from t.beat("third", C, 0, {})
    yield from t.beat("second prefers another", B, t.now(B), server_assignor="uniform")
    yield from t.described("uniform")
    yield from t.beat("third leaves", C, LEAVE)
    yield from t.described("uniform for two")


def _switched(t: Talk) -> Generator[Step, Any, None]:
    """Topics that are made, grow and go while members read them."""
    yield from t.join("first", A, ("kept", f"later-{t.group}"))
    yield "create", create(f"later-{t.group}", 5, 2), 5
    yield from t.wait(A)
    yield from t.beat("a topic came", A, t.now(A))
    yield from t.described("a topic came")
    row = M.CreatePartitionsRequest.CreatePartitionsTopic(name=f"later-{t.group}", count=3, assignments=None)
    yield "partitions", M.CreatePartitionsRequest(timeout_ms=10_000, topics=[row]), 3
    yield from t.wait(A)
    yield from t.beat("a topic grew", A, t.now(A))
    yield from t.described("a topic grew")
    yield "delete", M.DeleteTopicsRequest(topic_names=[f"later-{t.group}"], timeout_ms=10_000), 5
    yield from t.wait(A)
    yield from t.beat("a topic went", A, t.now(A), {"kept": [0, 1, 2, 3]})
    yield from t.beat("a topic went for good", A, t.now(A))
    yield from t.described("a topic went")


def _empty(t: Talk) -> Generator[Step, Any, None]:
    yield from t.join("subscribed to nothing", A, ())
    yield from t.described("subscribed to nothing")
    yield from t.beat("goes on", A, t.now(A))
    yield from t.join("another", B, ())
    yield from t.beat("another goes on", B, t.now(B))
    yield from t.beat("subscribes", A, t.now(A), subscribed_topic_names=["kept"])
    yield from t.beat("another goes on", B, t.now(B))
    yield from t.described("subscribed")


def _regex(t: Talk) -> Generator[Step, Any, None]:
    yield from t.join("join", A, None, subscribed_topic_regex="pattern-.*")
    yield from t.wait(A)
    yield from t.beat("resolved", A, t.now(A))
    yield from t.described("resolved")
    yield from t.beat("another expression", A, t.now(A), {"pattern-1": [0, 1], "pattern-2": [0]},
                      subscribed_topic_regex="pattern-1")
    yield from t.wait(A)
    yield from t.described("another expression is resolved")
    yield from t.beat("has what it matches", A, t.now(A), {"pattern-1": [0, 1]})
    yield from t.join("the same expression", B, None, subscribed_topic_regex="pattern-1")
    yield from t.described("the same expression")
    yield from t.beat("with names", A, t.now(A), {"pattern-1": [0, 1]}, subscribed_topic_names=["kept"])
    yield from t.described("with names")
    yield from t.beat("no expression", A, t.now(A), {"pattern-1": [0, 1]}, subscribed_topic_regex="")
    yield from t.described("no expression")
    yield from t.beat("a bad expression", A, t.now(A), {"pattern-1": [0, 1]}, subscribed_topic_regex="(")
    yield from t.beat("another leaves", B, LEAVE)
    yield from t.join("an empty expression", C, None, subscribed_topic_regex="")
    yield from t.join("an empty expression and names", C, ("other",), subscribed_topic_regex="")
    yield from t.described("an empty expression")
    yield from t.beat("its names alone", C, t.now(C), subscribed_topic_names=["other", "kept"])


def _classic(t: Talk, has: dict[str, range]) -> Generator[Step, Any, None]:
    """The names of one group in both protocols."""
    version = has["JoinGroup"][-1]
    protocol = M.JoinGroupRequest.JoinGroupRequestProtocol(
        name="x", metadata=b"not a subscription")
    join = M.JoinGroupRequest(
        group_id=t.group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, member_id="", protocol_type="other",
        protocols=[protocol])
    answer = yield "classic join", join, version
    if answer.error_code == 79:
        join.member_id = answer.member_id
        answer = yield "classic join with its id", join, version
    yield from t.join("a consumer of a classic group", A)
    yield from t.beat("a beat of a classic group", A, t.now(A))
    yield from t.beat("leaves a classic group", A, LEAVE)
    leave = M.LeaveGroupRequest(
        group_id=t.group, members=[M.LeaveGroupRequest.MemberIdentity(member_id=answer.member_id)])
    yield "classic leave", leave, has["LeaveGroup"][-1]
    yield from t.join("a consumer of a group that was classic", A)
    yield from t.described("was classic")
    join.member_id = ""
    yield "classic join of a consumer group", join, version
    yield "classic heartbeat of a consumer group", M.HeartbeatRequest(
        group_id=t.group, generation_id=1, member_id=A), has["Heartbeat"][-1]
    yield "classic sync of a consumer group", M.SyncGroupRequest(
        group_id=t.group, generation_id=1, member_id=A, protocol_type="consumer", protocol_name="range"
    ), has["SyncGroup"][-1]
    yield "classic leave of a consumer group", M.LeaveGroupRequest(
        group_id=t.group, members=[M.LeaveGroupRequest.MemberIdentity(member_id=A)]), has["LeaveGroup"][-1]
    yield from t.described("after it")
