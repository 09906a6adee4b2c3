"""ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kwire import messages
from kwire.fleet import operations
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.coordinators.assignors import ASSIGNORS, Partition
from kwire.fleet.coordinators.consumer_groups import (
    HEARTBEAT_MS,
    LEAVE,
    LEAVE_STATIC,
    ConsumerGroup,
    ConsumerMember,
    Said,
)
from kwire.fleet.coordinators.group_coordinator import check_group_id
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode
from kwire.storage.side_files.uuids import uuid_text

GROUP_VERSION = "group.version"
_FIRST_WITH_MEMBER_IDS, _FIRST_WITH_REGEX = 1, 1  # versions of the heartbeat
_CONSUMER_TYPE = 1


@handles("ConsumerGroupHeartbeat")
async def consumer_group_heartbeat(call: Call) -> Any:
    """Join, go on or leave; what the member may read comes in the answer when it changed."""
    message, response = call.message, messages.ConsumerGroupHeartbeatResponse
    try:
        if call.cluster.levels.get(GROUP_VERSION, 0) < 1:
            return response(error_code=ErrorCode.UNSUPPORTED_VERSION)
        _check(call)
        call.cluster.check_coordinator(call.node, message.group_id)
        if message.member_epoch in (LEAVE, LEAVE_STATIC):
            return _leave(call)
        return await _beat(call)
    except ApiError as error:
        return response(error_code=error.code, error_message=error.message)


def _check(call: Call) -> None:
    """Is the request one (GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid)? Raises ApiError."""
    message = call.message

    def invalid(reason: str) -> ApiError:
        return ApiError(ErrorCode.INVALID_REQUEST, reason)

    must_be_named = call.version >= _FIRST_WITH_MEMBER_IDS or message.member_epoch > 0 or message.member_epoch == LEAVE
    for name, value in (
        ("MemberId", message.member_id if must_be_named else None), ("GroupId", message.group_id),
        ("InstanceId", message.instance_id), ("RackId", message.rack_id),
    ):
        if value is not None and not value.strip():
            raise invalid(f"{name} can't be empty.")
    if message.member_epoch == 0:
        if message.rebalance_timeout_ms == -1:
            raise invalid("RebalanceTimeoutMs must be provided in first request.")
        if message.topic_partitions is None or message.topic_partitions:
            raise invalid("TopicPartitions must be empty when (re-)joining.")
        if message.subscribed_topic_names is None and _regex(call) is None:
            raise invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    if message.member_epoch == LEAVE_STATIC and message.instance_id is None:
        raise invalid("InstanceId can't be null.")
    if message.member_epoch < LEAVE_STATIC:
        raise invalid("MemberEpoch is invalid.")
    if message.server_assignor is not None and message.server_assignor not in ASSIGNORS:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {message.server_assignor} is not supported. Supported assignors: {', '.join(ASSIGNORS)}.")


def _regex(call: Call) -> str | None:
    value: str | None = call.message.subscribed_topic_regex if call.version >= _FIRST_WITH_REGEX else None
    return value


def _leave(call: Call) -> Any:
    """A member leaves for good, or a static one for a while (GroupMetadataManager.consumerGroupLeave)."""
    message = call.message
    group = call.cluster.groups.consumer(message.group_id)
    member = group.member(message.member_id) if message.instance_id is None else (
        group.member_of_instance(message.instance_id, message.member_id))
    if message.member_epoch == LEAVE_STATIC:
        group.leave_for_a_while(member)
    else:
        group.remove([member])
    return messages.ConsumerGroupHeartbeatResponse(member_id=member.id, member_epoch=message.member_epoch)


async def _beat(call: Call) -> Any:
    """A member joins or goes on (GroupMetadataManager.consumerGroupHeartbeat)."""
    message, groups, response = call.message, call.cluster.groups, messages.ConsumerGroupHeartbeatResponse
    joins = message.member_epoch == 0
    if joins:
        group = groups.joined(message.group_id)
    elif message.group_id in groups.groups:
        group = groups.consumer(message.group_id)
    else:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {message.group_id} not found.")
    owned = _owned(call)
    member = _member(call, group, owned)
    topics, regex = message.subscribed_topic_names, _regex(call)
    if regex is not None and regex != member.regex:
        group.check_regex(regex)
    groups.keep(group)
    member.client_id, member.client_host = call.request.client_id or "", f"/{call.connection.host}"
    member.instance_id = message.instance_id or member.instance_id
    member.rack_id = message.rack_id or member.rack_id
    if message.rebalance_timeout_ms != -1:
        member.rebalance_timeout = message.rebalance_timeout_ms / 1000
    before = member.assigned.keys()
    said = Said(None if topics is None else frozenset(topics), regex, message.server_assignor, owned)
    group.beat(member, said)
    answer = response(member_id=member.id, member_epoch=member.epoch, heartbeat_interval_ms=HEARTBEAT_MS)
    full = message.rebalance_timeout_ms != -1 and owned is not None and (topics is not None or regex is not None)
    if joins or full or member.assigned.keys() != before:
        answer.assignment = response.Assignment(
            topic_partitions=_by_topic(member.assigned, response.TopicPartitions))
    await group.resolve()
    return answer


def _member(call: Call, group: ConsumerGroup, owned: set[Partition] | None) -> ConsumerMember:
    """The member of a heartbeat, which is in the group or joins it. Raises ApiError."""
    message = call.message
    member_id = message.member_id or uuid_text(call.cluster.new_id())
    joins = message.member_epoch == 0
    if message.instance_id is not None and not joins:
        member = group.member_of_instance(message.instance_id, member_id)
    elif message.instance_id is not None and (old := group.static_member(message.instance_id)) is not None:
        if old.epoch != LEAVE_STATIC:
            raise ApiError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {message.instance_id} cannot join the group because the "
                f"instance id is owned by {old.id} member.")
        return group.returned(old, member_id)
    elif joins:
        if message.instance_id is not None or member_id not in group.members:
            return group.members.get(member_id) or ConsumerMember(member_id, message.instance_id, "", "")
        member = group.members[member_id]
    else:
        member = group.member(member_id)
    member.check_epoch(message.member_epoch, owned, group.rules)
    return member


def _owned(call: Call) -> set[Partition] | None:
    rows = call.message.topic_partitions
    return None if rows is None else {(row.topic_id, index) for row in rows for index in row.partitions}


def _by_topic(partitions: Iterable[Partition], row: Any) -> list[Any]:
    topics: dict[Any, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    return [row(topic_id=topic_id, partitions=indexes) for topic_id, indexes in topics.items()]


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
            group = call.cluster.groups.consumer(group_id)
            row.group_state, row.group_epoch, row.assignment_epoch = group.state, group.epoch, group.assignment_epoch
            row.assignor_name = group.assignor
            shows_revoking = group.rules.shows_revoking
            row.members = [_described(call, group, member, shows_revoking) for member in group.members.values()]
            row.authorized_operations = operations.if_asked(
                call.node.offer, True, call.message.include_authorized_operations,
                operations.of_groups(call.node.offer))
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.explanation
        rows.append(row)
    return response(groups=rows)


def _described(call: Call, group: ConsumerGroup, member: ConsumerMember, shows_revoking: bool) -> Any:
    response, known = messages.ConsumerGroupDescribeResponse, call.cluster.topics_by_id

    def assignment(partitions: Iterable[Partition]) -> Any:
        rows = _by_topic([one for one in partitions if one[0] in known], response.TopicPartitions)
        for row in rows:
            row.topic_name = known[row.topic_id].name
        return response.Assignment(topic_partitions=rows)

    row = response.Member(
        member_id=member.id, instance_id=member.instance_id, rack_id=member.rack_id, member_epoch=member.epoch,
        client_id=member.client_id, client_host=member.client_host, subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex, assignment=assignment(
            {**member.assigned, **(member.revoking if shows_revoking else {})}),
        target_assignment=assignment(group.target.get(member.id, ())))
    if call.version >= 1:
        row.member_type = _CONSUMER_TYPE
    return row
