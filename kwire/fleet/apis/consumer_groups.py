"""ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848)."""

from __future__ import annotations

from typing import Any

from kwire import messages
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.consumer_groups import (
    ASSIGNORS,
    HEARTBEAT_MS,
    LEAVE,
    LEAVE_STATIC,
    ConsumerGroup,
    ConsumerMember,
)
from kwire.fleet.errors import ApiError
from kwire.fleet.group_coordinator import check_group_id
from kwire.fleet.groups import TopicPartition
from kwire.fleet.name_patterns import name_pattern
from kwire.schema.error_codes import ErrorCode

GROUP_VERSION = "group.version"


@handles("ConsumerGroupHeartbeat")
def consumer_group_heartbeat(call: Call) -> Any:
    """Join, go on or leave; what the member may read comes in the answer when it changed."""
    response = messages.ConsumerGroupHeartbeatResponse
    try:
        if call.cluster.levels.get(GROUP_VERSION, 0) < 1:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        call.cluster.check_coordinator(call.node, call.message.group_id)
        _check(call)
        member, full = _beat(call)
        if member is None:
            return response(member_id=call.message.member_id, member_epoch=call.message.member_epoch)
        answer = response(
            member_id=member.id, member_epoch=member.epoch, heartbeat_interval_ms=HEARTBEAT_MS)
        if full or member.sent != member.assigned:
            member.sent = set(member.assigned)
            answer.assignment = response.Assignment(topic_partitions=_by_topic(
                call, member.assigned, response.TopicPartitions))
        return answer
    except ApiError as error:
        return response(error_code=error.code, error_message=error.message)


def _check(call: Call) -> None:
    """Is the request one (GroupMetadataManager.throwIfConsumerGroupHeartbeatRequestIsInvalid)? Raises ApiError."""
    message = call.message

    def invalid(reason: str) -> ApiError:
        return ApiError(ErrorCode.INVALID_REQUEST, reason)

    if not message.group_id.strip():
        raise invalid("GroupId can't be empty.")
    if message.instance_id is not None and not message.instance_id.strip():
        raise invalid("InstanceId can't be empty.")
    if (message.member_epoch > 0 or message.member_epoch == LEAVE or call.version >= 1) and (
            not message.member_id.strip()):
        raise invalid("MemberId can't be empty.")
    if message.member_epoch == 0:
        if message.rebalance_timeout_ms == -1:
            raise invalid("RebalanceTimeoutMs must be provided in first request.")
        if message.topic_partitions is None or message.topic_partitions:
            raise invalid("TopicPartitions must be empty when (re-)joining.")
        regex = message.subscribed_topic_regex if call.version >= 1 else None
        if message.subscribed_topic_names is None and regex is None:
            raise invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be set in first request.")
    if message.member_epoch < LEAVE_STATIC:
        raise invalid("MemberEpoch is invalid.")
    if message.member_epoch == LEAVE_STATIC and message.instance_id is None:
        raise invalid("InstanceId can't be null.")
    if message.server_assignor is not None and message.server_assignor not in ASSIGNORS:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {message.server_assignor} is not supported. Supported assignors: {', '.join(ASSIGNORS)}.")
    if call.version >= 1 and message.subscribed_topic_regex:
        try:
            name_pattern(message.subscribed_topic_regex)
        except ApiError as error:
            raise ApiError(error.code, f"SubscribedTopicRegex `{message.subscribed_topic_regex}` is not a valid "
                           f"regular expression: {error.message}.") from None


def _beat(call: Call) -> tuple[ConsumerMember | None, bool]:
    """(the member, None if it left; whether its whole assignment is due)."""
    message = call.message
    joining = message.member_epoch == 0
    group = call.cluster.groups.consumer(message.group_id, make=joining)
    static = None if message.instance_id is None else group.instances.get(message.instance_id)
    if message.member_epoch in (LEAVE, LEAVE_STATIC):
        member = group.member(message.member_id) if static is None else static
        if static is not None and static.id != message.member_id:
            raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        if message.member_epoch == LEAVE_STATIC:
            member.is_static_away = True
        else:
            group.remove(member)
        return None, False
    if joining:
        member = _join(call, group, static)
    else:
        member = group.member(message.member_id)
        owned = _owned(call)
        known = message.member_epoch == member.epoch or (
            message.member_epoch == member.previous_epoch and owned is not None and owned <= member.assigned)
        if not known:
            raise ApiError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"The consumer group member has {'a smaller' if message.member_epoch < member.epoch else 'a greater'} "
                f"member epoch ({message.member_epoch}) than the one known by the group coordinator ({member.epoch}). "
                "The member must abandon all its partitions and rejoin.")
    group.touch(member)
    if _subscribe(call, member):
        group.changed()
    else:
        group.follow_topics()
    full = joining or (message.rebalance_timeout_ms != -1 and message.topic_partitions is not None)
    group.reconcile(member, set() if joining else _owned(call))
    return member, full


def _join(call: Call, group: ConsumerGroup, static: ConsumerMember | None) -> ConsumerMember:
    message = call.message
    if static is not None:
        if not static.is_static_away:
            raise ApiError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {static.id} with instance id {message.instance_id} cannot join the group because the "
                "instance id is owned by another member.")
        assigned, target = static.assigned, group.target.get(static.id, set())
        group.drop(static)
    member_id = message.member_id or str(call.cluster.new_id())
    known = group.members.get(member_id)
    if known is not None:
        known.assigned, known.revoking, known.sent = set(), set(), None
        return known
    member = ConsumerMember(
        member_id, message.instance_id, call.request.client_id or "", f"/{call.connection.host}",
        rack_id=message.rack_id)
    _subscribe(call, member)
    if static is not None:
        member.assigned, group.target[member_id] = assigned, target
    group.join(member)
    return member


def _subscribe(call: Call, member: ConsumerMember) -> bool:
    """Take over what the request says of the member; whether that changes what it reads."""
    message, changed = call.message, False
    if message.rebalance_timeout_ms != -1:
        member.rebalance_timeout = message.rebalance_timeout_ms / 1000
    if message.subscribed_topic_names is not None and member.topics != set(message.subscribed_topic_names):
        member.topics, changed = set(message.subscribed_topic_names), True
    if call.version >= 1 and message.subscribed_topic_regex is not None:
        regex = message.subscribed_topic_regex or None
        changed, member.regex = changed or regex != member.regex, regex
    if message.server_assignor is not None and message.server_assignor != member.assignor:
        member.assignor, changed = message.server_assignor, True
    return changed


def _owned(call: Call) -> set[TopicPartition] | None:
    if call.message.topic_partitions is None:
        return None
    known = call.cluster.topics_by_id
    return {
        (known[row.topic_id].name, index) for row in call.message.topic_partitions if row.topic_id in known
        for index in row.partitions}


def _by_topic(call: Call, partitions: set[TopicPartition], row: Any, named: bool = False) -> list[Any]:
    topics: dict[str, list[int]] = {}
    for name, index in sorted(partitions):
        if name in call.cluster.topics:
            topics.setdefault(name, []).append(index)
    return [
        row(topic_id=call.cluster.topics[name].id, partitions=indexes, **({"topic_name": name} if named else {}))
        for name, indexes in topics.items()]


@handles("ConsumerGroupDescribe")
def consumer_group_describe(call: Call) -> Any:
    """State, members and assignments of groups."""
    response = messages.ConsumerGroupDescribeResponse
    rows = []
    for group_id in dict.fromkeys(call.message.group_ids):
        row = response.DescribedGroup(group_id=group_id)
        try:
            if call.cluster.levels.get(GROUP_VERSION, 0) < 1:
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
            check_group_id(group_id)
            call.cluster.check_coordinator(call.node, group_id)
            group = call.cluster.groups.consumer(group_id, make=False)
            row.group_state, row.group_epoch, row.assignment_epoch = group.state, group.epoch, group.epoch
            row.assignor_name = group.assignor
            row.members = [_described(call, group, member) for member in group.members.values()]
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.explanation
        rows.append(row)
    return response(groups=rows)


def _described(call: Call, group: ConsumerGroup, member: ConsumerMember) -> Any:
    response = messages.ConsumerGroupDescribeResponse

    def assignment(partitions: set[TopicPartition]) -> Any:
        return response.Assignment(topic_partitions=_by_topic(call, partitions, response.TopicPartitions, named=True))

    row = response.Member(
        member_id=member.id, instance_id=member.instance_id, rack_id=member.rack_id, member_epoch=member.epoch,
        client_id=member.client_id, client_host=member.client_host, subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex or "", assignment=assignment(member.assigned),
        target_assignment=assignment(group.target.get(member.id, set())))
    if call.version >= 1:
        row.member_type = 1
    return row
