"""JoinGroup to LeaveGroup, OffsetCommit, OffsetFetch, OffsetDelete, ListGroups, DescribeGroups, DeleteGroups."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from kwire import messages
from kwire.codec.messages import decode
from kwire.errors import KwireError
from kwire.fleet import operations
from kwire.fleet.apis.registry import Call, answered, handles
from kwire.fleet.apis.transactions import no_member
from kwire.fleet.coordinators.consumer_groups import ConsumerGroup
from kwire.fleet.coordinators.group_coordinator import check_group_id
from kwire.fleet.coordinators.groups import (
    COMMIT_ORDER,
    COMPLETING,
    DEAD,
    EMPTY,
    PREPARING,
    STABLE,
    CommittedOffset,
    CommittedOffsets,
    Group,
    Member,
    TopicPartition,
)
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode

MIN_SESSION_MS, MAX_SESSION_MS = 6_000, 1_800_000  # group.min.session.timeout.ms, group.max.session.timeout.ms
MAX_METADATA_BYTES = 4096  # offset.metadata.max.bytes
_CONSUMER = "consumer"
_FIRST_IN_ANY_CASE = "3.8"  # states of groups that a client lists
_FIRST_WITH_SKIP_ASSIGNMENT = 9  # version of JoinGroup (KIP-814)
_ACCEPTS_HEARTBEAT_WHILE_COMPLETING = "2.7"  # a heartbeat before the assignment; before: join again
_REBALANCES_WHILE_COMPLETING = "2.6"  # a static member that comes back before the assignment is there
_GROUP_MUST_BE_THERE = 9  # version of OffsetCommit: a generation of no group is GROUP_ID_NOT_FOUND
_FIRST_TXN_WITH_MEMBERS = 3  # version of TxnOffsetCommit (KIP-447)
_FIRST_WITH_MEMBER_EPOCHS = 9  # version of OffsetCommit and OffsetFetch (KIP-848)
_NEW_COORDINATOR = "4.0"  # of KIP-848, for classic groups too
_KEEPS_WITHOUT_OFFSETS = "4.0"  # a group without members and offsets; before, it is gone with its last offset
Check = Callable[[TopicPartition], None]  # may this partition be committed to? Raises ApiError


def _instance(call: Call, since: int) -> str | None:
    value: str | None = call.message.group_instance_id if call.version >= since else None
    return value


@handles("JoinGroup")
async def join_group(call: Call) -> Any:
    """Join, or join again; answered when the next generation begins."""
    message, response = call.message, messages.JoinGroupResponse
    try:
        group, member, kept = await _join(call)
    except ApiError as error:
        return response(
            error_code=error.code, generation_id=-1 if call.node.offer.at_least("2.2") else 0,
            protocol_name=None if call.version >= 7 else "",
            member_id=message.member_id if error.member_id is None else error.member_id)
    row = response.JoinGroupResponseMember
    leads, leader = member.id == group.leader, group.leader
    if kept is not None and call.version < _FIRST_WITH_SKIP_ASSIGNMENT:  # else it would assign for nobody
        leads, leader = False, kept
    return response(
        generation_id=group.generation, protocol_type=group.protocol_type, protocol_name=group.protocol,
        leader=leader or "", member_id=member.id, skip_assignment=leads and kept is not None, members=[
            row(member_id=one.id, group_instance_id=one.instance_id, metadata=one.metadata(group.protocol or ""))
            for one in group.members.values()] if leads else [])


async def _join(call: Call) -> tuple[Group, Member, str | None]:
    """The group, the member, and the leader before it came back if the generation goes on. Raises ApiError."""
    message, coordinator = call.message, call.cluster.groups
    check_group_id(message.group_id)
    call.cluster.check_coordinator(call.node, message.group_id)
    if not MIN_SESSION_MS <= message.session_timeout_ms <= MAX_SESSION_MS:
        raise ApiError(ErrorCode.INVALID_SESSION_TIMEOUT)
    instance = _instance(call, 5)
    protocols = [(one.name, bytes(one.metadata)) for one in message.protocols]
    if message.member_id and coordinator.classic(message.group_id) is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    group = coordinator.made(message.group_id)
    if not group.supports(message.protocol_type, [name for name, _ in protocols]):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member_id = message.member_id
    rebalance = message.rebalance_timeout_ms if call.version >= 1 else message.session_timeout_ms
    if not member_id and instance is not None and instance in group.static:  # a static member came back (KIP-345)
        leader = group.leader
        member = group.replace(
            group.members[group.static[instance]], coordinator.new_member_id(call.request.client_id or "", instance))
        member.client_id, member.client_host = call.request.client_id or "", f"/{call.connection.host}"
        _said_again(group, member, message, rebalance, protocols)
        if call.node.offer.at_least(_REBALANCES_WHILE_COMPLETING):
            goes_on = group.state == STABLE and group.elected() == group.protocol
        else:
            goes_on = group.state in (STABLE, COMPLETING)
        if goes_on:
            return group, member, leader
        await group.join(member)
        return group, member, None
    if not member_id:
        member_id = coordinator.new_member_id(call.request.client_id or "", instance)
        if call.version >= 4 and instance is None:
            group.expect(member_id, message.session_timeout_ms / 1000)
            raise ApiError(ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    elif member_id not in group.pending:
        group.member(member_id, instance)
    known = group.members.get(member_id)
    if known is None:
        group.protocol_type = group.protocol_type if group.members else message.protocol_type
        member = Member(
            member_id, instance, call.request.client_id or "", f"/{call.connection.host}",
            message.session_timeout_ms / 1000, rebalance / 1000, protocols)
        group.add(member)
    else:
        member, same = known, known.protocols == protocols
        _said_again(group, member, message, rebalance, protocols)
        if same and (group.state == COMPLETING or (group.state == STABLE and member_id != group.leader)):
            return group, member, None  # it lost the answer, or asks once more: no new generation
    await group.join(member)
    return group, member, None


def _said_again(
    group: Group, member: Member, message: Any, rebalance_ms: int, protocols: list[tuple[str, bytes]]
) -> None:
    """A member that is in the group joins again: what it says now counts."""
    group.prefer(member, protocols)
    member.session_timeout, member.rebalance_timeout = message.session_timeout_ms / 1000, rebalance_ms / 1000
    group.touch(member)


def _current(call: Call, since_instance: int) -> tuple[Group, Member]:
    """The group and the member of a request with a generation. Raises ApiError."""
    message = call.message
    check_group_id(message.group_id)
    call.cluster.check_coordinator(call.node, message.group_id)
    group = call.cluster.groups.classic(message.group_id)
    if group is None or group.state == DEAD:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.member(message.member_id, _instance(call, since_instance))
    if message.generation_id != group.generation:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    return group, member


@handles("SyncGroup")
async def sync_group(call: Call) -> Any:
    """The leader brings the assignment, everybody gets its own."""
    message, response = call.message, messages.SyncGroupResponse
    try:
        if call.version >= 5 and None in (message.protocol_type, message.protocol_name):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        group, member = _current(call, 3)
        if call.version >= 5 and (message.protocol_type, message.protocol_name) != (
                group.protocol_type, group.protocol):
            raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        assignment = await group.sync(member, {one.member_id: bytes(one.assignment) for one in message.assignments})
        return response(protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=assignment)
    except ApiError as error:
        return response(error_code=error.code)


@handles("Heartbeat")
def heartbeat(call: Call) -> Any:
    """The member lives; REBALANCE_IN_PROGRESS says that it must join again."""
    response = messages.HeartbeatResponse
    try:
        group, member = _current(call, 3)
        group.touch(member)
        rebalances = group.state == PREPARING or (
            group.state == COMPLETING and not call.node.offer.at_least(_ACCEPTS_HEARTBEAT_WHILE_COMPLETING))
        return response(error_code=ErrorCode.REBALANCE_IN_PROGRESS if rebalances else ErrorCode.NONE)
    except ApiError as error:
        return response(error_code=error.code)


@handles("LeaveGroup")
def leave_group(call: Call) -> Any:
    """Members leave; several at once from version 3 on."""
    message, response = call.message, messages.LeaveGroupResponse
    asked = message.members if call.version >= 3 else [
        messages.LeaveGroupRequest.MemberIdentity(member_id=message.member_id)]
    rows = []
    try:
        if call.node.offer.at_least("2.0"):
            check_group_id(message.group_id)
        call.cluster.check_coordinator(call.node, message.group_id)
        known = call.cluster.groups.groups.get(message.group_id)
        of_consumers = known if isinstance(known, ConsumerGroup) else None
        gone = []
        classic = call.cluster.groups.classic(message.group_id)
        at_once = call.node.offer.at_least(_NEW_COORDINATOR)
        for one in asked:
            row = response.MemberResponse(member_id=one.member_id, group_instance_id=one.group_instance_id)
            try:
                if of_consumers is None:
                    _leave(classic, one, at_once)
                else:
                    gone.append(of_consumers.leaving(one.member_id, one.group_instance_id))
            except ApiError as error:
                row.error_code = error.code
            rows.append(row)
        if of_consumers is not None:
            of_consumers.remove(gone)
        elif classic is not None and at_once and not all(row.error_code for row in rows):
            classic.settle()
    except ApiError as error:
        return response(error_code=error.code)
    if call.version >= 3:
        return response(members=rows)
    return response(error_code=rows[0].error_code)


def _leave(group: Group | None, one: Any, at_once: bool) -> None:
    """One member leaves. at_once: the group is settled when all of the request have left. Raises ApiError."""
    if group is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    if one.member_id in group.pending:
        if at_once:
            del group.pending[one.member_id]
        else:
            group.expect_no_longer(one.member_id)
        return
    member_id = one.member_id
    if not member_id and one.group_instance_id is not None:
        member_id = group.static.get(one.group_instance_id, "")
    member = group.member(member_id, one.group_instance_id)
    if at_once:
        group.take_out(member)
    else:
        group.remove(member)


@handles("OffsetCommit")
def offset_commit(call: Call) -> Any:
    """Commit offsets, as a member or (generation -1) as one that assigns partitions itself."""
    message, response = call.message, messages.OffsetCommitResponse
    if call.version == 0:
        return _in_zookeeper(call)
    topics, group, kept = _taken(
        call, lambda: _committing(call, message.group_id, _instance(call, 7)), response.OffsetCommitResponseTopic,
        response.OffsetCommitResponsePartition, by_id_since=10, epoch_since=6)
    if group is not None:
        group.commit(kept)
    return response(topics=topics)


def _taken(
    call: Call, group_of: Callable[[], tuple[CommittedOffsets, Check]], topic_row: Any, partition_row: Any, *,
    by_id_since: int, epoch_since: int,
) -> tuple[list[Any], CommittedOffsets | None, dict[TopicPartition, CommittedOffset]]:
    """(the rows of the answer to a commit, the group if it takes any offset, the offsets that it takes).

    group_of: gives the group, and what looks at each partition, or raises ApiError; asked only if a partition is there
    (KafkaApis looks at them first).
    """
    kept: dict[TopicPartition, CommittedOffset] = {}
    asked: list[tuple[CommittedOffsets, Check] | ApiError] = []

    def group() -> tuple[CommittedOffsets, Check]:
        if not asked:
            try:
                asked.append(group_of())
            except ApiError as error:
                asked.append(error)
        if isinstance(asked[0], ApiError):
            raise asked[0]
        return asked[0]

    def take(topic: Any, one: Any, row: Any) -> None:
        named = _named(call, topic, one, by_id_since)
        check = group()[1]
        _check_metadata(one)
        check(named)
        kept[named] = _offset(call, one, epoch_since)

    topics = [
        topic_row(name=topic.name, topic_id=topic.topic_id, partitions=answered(
            topic.partitions, lambda one: partition_row(partition_index=one.partition_index), partial(take, topic)))
        for topic in call.message.topics if topic.partitions or topic.name not in call.cluster.topics]
    return topics, group()[0] if kept else None, kept


def _in_zookeeper(call: Call) -> Any:
    """OffsetCommit 0: without a group, into ZooKeeper; KRaft brokers refuse it."""
    response = messages.OffsetCommitResponse
    rows = []
    for topic in call.message.topics:
        results = []
        for one in topic.partitions:
            row = response.OffsetCommitResponsePartition(partition_index=one.partition_index)
            try:
                if call.node.offer.is_kraft:
                    known = topic.name in call.cluster.topics
                    raise ApiError(ErrorCode.UNSUPPORTED_VERSION if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                name, index = _named(call, topic, one, 10)
                _check_metadata(one)
                call.cluster.groups.made(call.message.group_id).old_offsets[name, index] = one.committed_offset
            except ApiError as error:
                row.error_code = error.code
            results.append(row)
        rows.append(response.OffsetCommitResponseTopic(name=topic.name, partitions=results))
    return response(topics=rows)


def _from_zookeeper(call: Call) -> Any:
    """OffsetFetch 0: what OffsetCommit 0 wrote."""
    response = messages.OffsetFetchResponse
    group = call.cluster.groups.groups.get(call.message.group_id)
    rows = []
    for topic in call.message.topics:
        results = []
        for index in topic.partition_indexes:
            row = response.OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, metadata="")
            try:
                if call.node.offer.is_kraft:
                    raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
                call.cluster.partition(topic.name, index)
                found = None if group is None else group.old_offsets.get((topic.name, index))
                if found is None:
                    raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                row.committed_offset = found
            except ApiError as error:
                row.error_code = error.code
            results.append(row)
        rows.append(response.OffsetFetchResponseTopic(name=topic.name, partitions=results))
    return response(topics=rows)


def _committing(call: Call, group_id: str, instance: str | None) -> tuple[CommittedOffsets, Check]:
    """The group of a commit, and what looks at each partition (OffsetMetadataManager.validateOffsetCommit).

    Raises ApiError.
    """
    call.cluster.check_coordinator(call.node, group_id)
    message = call.message
    in_transaction = call.request.name == "TxnOffsetCommit"
    since = _FIRST_TXN_WITH_MEMBERS if in_transaction else 1
    generation = message.generation_id_or_member_epoch if call.version >= since else -1
    member_id = message.member_id if call.version >= since else ""
    group = call.cluster.groups.groups.get(group_id)
    if group is None:
        if generation >= 0:
            gone = call.version >= _GROUP_MUST_BE_THERE and not in_transaction and call.node.offer.at_least("4.0")
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND if gone else ErrorCode.ILLEGAL_GENERATION)
        return call.cluster.groups.made(group_id), _any
    if in_transaction and generation < 0 and not member_id and instance is None:  # only its producer is known
        return group, _any
    if isinstance(group, ConsumerGroup):
        return group, _of_consumers(call, group, member_id, generation)
    if generation < 0 and group.state == EMPTY:
        return group, _any
    if generation < 0 and not member_id and instance is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = group.member(member_id, instance)
    if generation != group.generation:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    if in_transaction:
        return group, _any
    if group.state == COMPLETING:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
    group.touch(member)
    return group, _any


def _any(partition: TopicPartition) -> None:
    """Every partition may be committed to."""


def _of_consumers(call: Call, group: ConsumerGroup, member_id: str, epoch: int) -> Check:
    """What looks at each partition of a commit of a member of KIP-848. Raises ApiError."""
    in_transaction = call.request.name == "TxnOffsetCommit"
    stale = ErrorCode.ILLEGAL_GENERATION if in_transaction else ErrorCode.STALE_MEMBER_EPOCH
    member = group.check_commit(
        member_id, epoch, stale=stale, has_epochs=in_transaction or call.version >= _FIRST_WITH_MEMBER_EPOCHS)
    if member is None:
        return _any

    epochs = {**member.revoking, **member.assigned}

    def check(partition: TopicPartition) -> None:
        name, index = partition
        had = epochs.get((call.cluster.topics[name].id, index))
        if had is None or epoch < had:
            raise ApiError(stale)

    return check


def _named(call: Call, topic: Any, one: Any, by_id_since: int) -> tuple[str, int]:
    name = call.cluster.topic_of_id(topic.topic_id).name if call.version >= by_id_since else topic.name
    if call.node.offer.at_least("2.0"):
        call.cluster.partition(name, one.partition_index)
    elif name not in call.cluster.topics:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return name, one.partition_index


def _check_metadata(one: Any) -> None:
    if len((one.committed_metadata or "").encode()) > MAX_METADATA_BYTES:
        raise ApiError(ErrorCode.OFFSET_METADATA_TOO_LARGE)


def _offset(call: Call, one: Any, epoch_since: int) -> CommittedOffset:
    epoch = one.committed_leader_epoch if call.version >= epoch_since else -1
    return CommittedOffset(
        one.committed_offset, epoch, one.committed_metadata or "", call.cluster.clock.now_ms(), next(COMMIT_ORDER))


@handles("TxnOffsetCommit")
def txn_offset_commit(call: Call) -> Any:
    """Offsets that count when the transaction commits."""
    message, response = call.message, messages.TxnOffsetCommitResponse

    def group_of() -> tuple[CommittedOffsets, Check]:
        check_group_id(message.group_id)
        call.cluster.check_coordinator(call.node, message.group_id)
        if not message.transactional_id and call.node.offer.at_least("3.6"):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        call.cluster.transactions.verify(
            message.transactional_id, message.producer_id, message.producer_epoch, message.group_id,
            join=call.version >= 5, refusal=no_member(call, call.version >= 4))
        return _committing(call, message.group_id, _instance(call, 3))

    topics, group, kept = _taken(
        call, group_of, response.TxnOffsetCommitResponseTopic, response.TxnOffsetCommitResponsePartition,
        by_id_since=6, epoch_since=2)
    if group is not None:
        group.commit_pending(message.producer_id, message.producer_epoch, kept)
    return response(topics=topics)


@handles("OffsetFetch")
def offset_fetch(call: Call) -> Any:
    """Committed offsets; of several groups from version 8 on."""
    message, response = call.message, messages.OffsetFetchResponse
    if call.version == 0:
        return _from_zookeeper(call)
    looked = _Looked()
    if call.version >= 8:
        rows = []
        whole = set[str]()
        for asked in message.groups:
            if asked.topics is None and asked.group_id in whole:
                continue  # all offsets of a group: once
            if asked.topics is None:
                whole.add(asked.group_id)
            row = response.OffsetFetchResponseGroup(group_id=asked.group_id)
            try:
                call.cluster.check_coordinator(call.node, asked.group_id)
                if call.version >= _FIRST_WITH_MEMBER_EPOCHS:
                    group = call.cluster.groups.groups.get(asked.group_id)
                    if isinstance(group, ConsumerGroup):
                        group.check_fetch(asked.member_id, asked.member_epoch)
                row.topics = _fetched(
                    call, asked.group_id, asked.topics, looked, response.OffsetFetchResponseTopics,
                    response.OffsetFetchResponsePartitions)
            except ApiError as error:
                row.error_code = error.code
            rows.append(row)
        return response(groups=rows)
    try:
        topics = _fetched(
            call, message.group_id, message.topics, looked, response.OffsetFetchResponseTopic,
            response.OffsetFetchResponsePartition)
        return response(topics=topics)
    except ApiError as error:
        if call.version >= 2:
            return response(error_code=error.code)
        part = response.OffsetFetchResponsePartition
        return response(topics=[response.OffsetFetchResponseTopic(name=topic.name, partitions=[
            part(partition_index=index, committed_offset=-1, metadata="", error_code=error.code)
            for index in topic.partition_indexes]) for topic in message.topics])


class _Looked:
    """What one OffsetFetch has looked at: once each, as rows of a few bytes are answered with all their metadata."""

    def __init__(self) -> None:
        self._rows = set[tuple[str, str, uuid.UUID, int]]()
        self._pending: dict[str, set[TopicPartition]] = {}

    def is_new(self, group_id: str, name: str, topic_id: uuid.UUID, index: int) -> bool:
        """Whether a partition of a group was not answered before; now it is."""
        count = len(self._rows)
        self._rows.add((group_id, name, topic_id, index))
        return len(self._rows) > count

    def pending(self, group: CommittedOffsets, group_id: str) -> set[TopicPartition]:
        """The partitions of a group that have an offset of an ongoing transaction."""
        if group_id not in self._pending:
            self._pending[group_id] = group.pending_partitions()
        return self._pending[group_id]


def _fetched(
    call: Call, group_id: str, topics: Any, looked: _Looked, topic_row: Any, partition_row: Any
) -> list[Any]:
    """The rows of the topics of a group, of all of them (None) or of those that are named. Raises ApiError."""
    call.cluster.check_coordinator(call.node, group_id)
    group = call.cluster.groups.groups.get(group_id)
    offsets = {} if group is None else group.offsets
    by_id = call.version >= 10
    if topics is None:
        names: dict[str, list[int]] = {}
        for name, index in sorted(offsets):
            names.setdefault(name, []).append(index)
        wanted = [(name, _id(call, name), indexes) for name, indexes in names.items()]
    elif by_id:
        known = call.cluster.topics_by_id
        wanted = [
            (known[one.topic_id].name if one.topic_id in known else "", one.topic_id, one.partition_indexes)
            for one in topics]
    else:
        wanted = [(one.name, _id(call, one.name), one.partition_indexes) for one in topics]
    stable = call.version >= 7 and call.message.require_stable
    pending = set() if group is None or not stable else looked.pending(group, group_id)
    rows = []
    for name, topic_id, indexes in wanted:
        results = []
        for index in indexes:
            if topics is not None and not looked.is_new(group_id, name, topic_id, index):
                continue
            found = offsets.get((name, index))
            row = partition_row(partition_index=index, committed_offset=-1, committed_leader_epoch=-1, metadata="")
            if by_id and not name:
                row.error_code = ErrorCode.UNKNOWN_TOPIC_ID
            elif (name, index) in pending:
                row.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
            elif found is not None:
                row.committed_offset, row.metadata = found.offset, found.metadata
                row.committed_leader_epoch = found.leader_epoch
            results.append(row)
        more = {"topic_id": topic_id} if call.version >= 8 else {}
        rows.append(topic_row(name=name, partitions=results, **more))
    return rows


def _id(call: Call, name: str) -> uuid.UUID:
    topic = call.cluster.topics.get(name)
    return uuid.UUID(int=0) if topic is None else topic.id


@handles("OffsetDelete")
def offset_delete(call: Call) -> Any:
    """Forget committed offsets of topics that the group does not read."""
    message, response = call.message, messages.OffsetDeleteResponse
    try:
        check_group_id(message.group_id)
        call.cluster.check_coordinator(call.node, message.group_id)
        group = call.cluster.groups.group(message.group_id)
        if isinstance(group, Group) and group.members and group.protocol_type != _CONSUMER:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    except ApiError as error:
        return response(error_code=error.code)
    read, gone = _subscribed(group), list[TopicPartition]()

    def delete(topic: str, one: Any, _row: Any) -> None:
        call.cluster.partition(topic, one.partition_index)
        if topic in read:
            raise ApiError(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
        gone.append((topic, one.partition_index))

    rows = []
    for topic in message.topics:
        if not topic.partitions:
            continue
        once = {one.partition_index: one for one in topic.partitions}
        rows.append(response.OffsetDeleteResponseTopic(name=topic.name, partitions=answered(
            topic.partitions if call.node.offer.at_least(_KEEPS_WITHOUT_OFFSETS) else once.values(),
            lambda one: response.OffsetDeleteResponsePartition(partition_index=one.partition_index),
            partial(delete, topic.name))))
    try:
        group.forget(gone)
    except ApiError as error:
        return response(error_code=error.code)
    deleted = any(not row.error_code for topic in rows for row in topic.partitions)
    if deleted and not call.node.offer.at_least(_KEEPS_WITHOUT_OFFSETS) and (
            group.state == EMPTY and not group.offsets and not group.pending_offsets):
        call.cluster.groups.delete(group.id)
    return response(topics=rows)


def _subscribed(group: Group | ConsumerGroup) -> set[str]:
    """The topics that the members of a consumer group subscribed to."""
    topics: set[str] = set()
    if isinstance(group, ConsumerGroup):
        return topics.union(*map(group.subscribed, group.members.values()))
    for member in group.members.values():
        data = member.metadata(group.protocol or "")
        try:
            version = int.from_bytes(data[:2], "big")
            topics.update(decode(
                messages.ConsumerProtocolSubscription, min(version, 3), data[2:], lenient=True).topics)
        except KwireError:
            continue
    return topics


@handles("ListGroups")
def list_groups(call: Call) -> Any:
    """The groups that this node coordinates; by state from version 4 on, by type from 5 on."""
    response, states, types = messages.ListGroupsResponse, set(), set()
    any_case = call.node.offer.at_least(_FIRST_IN_ANY_CASE)
    if call.version >= 4:
        states = {state.lower() if any_case else state for state in call.message.states_filter}
    if call.version >= 5:
        types = {kind.lower() for kind in call.message.types_filter}
    rows = []
    for group in call.cluster.groups.groups.values():
        if call.cluster.coordinator_of(group.id) is not call.node:
            continue
        kind, protocol = ("classic", group.protocol_type or "") if isinstance(group, Group) else (_CONSUMER, _CONSUMER)
        state = group.state.lower() if any_case else group.state
        if (states and state not in states) or (types and kind not in types):
            continue
        rows.append(response.ListedGroup(
            group_id=group.id, protocol_type=protocol, group_state=group.state, group_type=kind))
    return response(groups=rows)


@handles("DescribeGroups")
def describe_groups(call: Call) -> Any:
    """State and members of groups."""
    response = messages.DescribeGroupsResponse
    rows = []
    for group_id in dict.fromkeys(call.message.groups):
        row = response.DescribedGroup(group_id=group_id)
        row.authorized_operations = operations.if_asked(call.node.offer, call.version >= 3, False, 0)
        try:
            call.cluster.check_coordinator(call.node, group_id)
            group = call.cluster.groups.classic(group_id)
            if group is None:
                row.group_state = DEAD
                if call.version >= 6:
                    there = group_id in call.cluster.groups.groups
                    raise ApiError(
                        ErrorCode.GROUP_ID_NOT_FOUND,
                        f"Group {group_id} {'is not a classic group' if there else 'not found'}.")
            else:
                _describe(
                    group, row, response.DescribedGroupMember, call.node.offer.at_least(_NEW_COORDINATOR))
            row.authorized_operations = operations.if_asked(
                call.node.offer, call.version >= 3, call.message.include_authorized_operations,
                operations.of_groups(call.node.offer))
        except ApiError as error:
            row.error_code = error.code
            if call.version >= 6:
                row.error_message = error.message
        rows.append(row)
    return response(groups=rows)


def _describe(group: Group, row: Any, member_row: Any, keeps: bool) -> None:
    """Fill a row. keeps: the last assignments are shown while the group rebalances, too."""
    row.group_state, row.protocol_type = group.state, group.protocol_type or ""
    stable = group.state == STABLE
    row.protocol_data = group.protocol or "" if stable else ""
    row.members = [
        member_row(
            member_id=one.id, group_instance_id=one.instance_id, client_id=one.client_id, client_host=one.client_host,
            member_metadata=one.metadata(group.protocol or "") if stable else b"",
            member_assignment=one.assignment if stable or keeps else b"")
        for one in group.members.values()]


@handles("DeleteGroups")
def delete_groups(call: Call) -> Any:
    """Delete groups without members."""
    response = messages.DeleteGroupsResponse
    rows = []
    for group_id in dict.fromkeys(call.message.groups_names):
        row = response.DeletableGroupResult(group_id=group_id)
        try:
            call.cluster.check_coordinator(call.node, group_id)
            call.cluster.groups.delete(group_id)
        except ApiError as error:
            row.error_code = error.code
        rows.append(row)
    return response(results=rows)

