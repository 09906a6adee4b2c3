"""ApiVersions, Metadata, DescribeCluster, DescribeTopicPartitions, FindCoordinator."""

from __future__ import annotations

import uuid
from typing import Any

from kwire import messages
from kwire.fleet import operations
from kwire.fleet.apis.controllers import BROKERS, check_endpoint_type
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.cluster import (
    INTERNAL_PARTITIONS,
    INTERNAL_TOPICS,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    NewPartitions,
    Partition,
    Topic,
    check_topic_name,
    is_internal,
)
from kwire.fleet.errors import ApiError
from kwire.fleet.refusals import refusal
from kwire.schema.error_codes import ErrorCode
from kwire.storage.places.discovery import is_topic_name

_FINALIZES = "2.7"  # the first release with finalized features (KIP-584)
_CONTROLLERS_SAY_LEVELS = "3.6"  # the first release whose controllers say finalized levels
_FIRST_WITH_IDENTITY = 5  # version of ApiVersions: the client says which broker of which cluster it looks for
_NO_ID = uuid.UUID(int=0)
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2  # CoordinatorType


@handles("ApiVersions")
def api_versions(call: Call) -> Any:
    """The ranges that a broker has now, and the finalized levels of the cluster (KIP-35, KIP-584, KIP-778).

    A client that looks for another broker, or another cluster, gets REBOOTSTRAP_REQUIRED; not before it has logged in
    (KafkaApis.handleApiVersionsRequest).
    """
    message, is_let_in = call.message, call.node.users is None or call.connection.principal is not None
    if _is_valid(call) and is_let_in and call.version >= _FIRST_WITH_IDENTITY and message.cluster_id is not None and (
            message.cluster_id != call.cluster.cluster_id or message.node_id != call.node.id):
        return messages.ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    return _api_versions(call, call.node.ranges, call.node.offer.at_least(_FINALIZES))


@handles("ApiVersions", broker=False, controller=True)
def api_versions_of_controller(call: Call) -> Any:
    """The ranges of a controller, and the finalized levels of the cluster."""
    return _api_versions(call, call.node.offer.controller_ranges, call.node.offer.at_least(_CONTROLLERS_SAY_LEVELS))


def _api_versions(call: Call, offered: dict[int, tuple[int, int]], says_levels: bool) -> Any:
    node = call.node
    if not _is_valid(call):
        return messages.ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    call.connection.said_versions = True
    answer = ranges(offered)
    if call.version >= 3:
        row = messages.ApiVersionsResponse.SupportedFeatureKey
        # before version 4 a minimum of 0 is hidden: older clients refuse it (KIP-1022, KAFKA-17011)
        answer.supported_features = [
            row(name=name, min_version=low, max_version=high) for name, (low, high) in node.offer.features.items()
            if low > 0 or call.version >= 4]
    if call.version >= 3 and says_levels:
        final = messages.ApiVersionsResponse.FinalizedFeatureKey
        answer.finalized_features = [
            final(name=name, min_version_level=level, max_version_level=level)
            for name, level in node.levels.items()]
        answer.finalized_features_epoch = call.cluster.controller.levels_epoch
    return answer


def ranges(offered: dict[int, tuple[int, int]]) -> Any:
    """The ApiVersions response with these ranges."""
    row = messages.ApiVersionsResponse.ApiVersion
    return messages.ApiVersionsResponse(api_keys=[
        row(api_key=key, min_version=low, max_version=high) for key, (low, high) in sorted(offered.items())])


def _is_valid(call: Call) -> bool:
    """ApiVersionsRequest.isValid: the names of the software; a cluster and a node, or neither."""
    message = call.message
    if call.version >= _FIRST_WITH_IDENTITY and (message.cluster_id is None) != (message.node_id == -1):
        return False
    return call.version < 3 or (_is_name(message.client_software_name) and _is_name(message.client_software_version))


def _is_name(text: str) -> bool:
    """[a-zA-Z0-9](?:[a-zA-Z0-9\\-.]*[a-zA-Z0-9])?"""
    bare = text.replace("-", "a").replace(".", "a")
    return bare.isascii() and bare.isalnum() and text[0] not in "-." and text[-1] not in "-."


@handles("Metadata")
def metadata(call: Call) -> Any:
    """The nodes, and the topics that were asked for (all: null, or an empty list in version 0)."""
    cluster, message = call.cluster, call.message
    if 10 <= call.version < 12 and any(
            one.name is None or one.topic_id != _NO_ID for one in message.topics or ()):
        return refusal(call.request, ErrorCode.INVALID_REQUEST)
    everything = message.topics is None or (call.version == 0 and not message.topics)
    if everything:
        topics = [_topic(call, topic) for topic in cluster.topics.values()]
    else:  # each once, and no names where there is an id, as in KafkaApis
        ids = dict.fromkeys(one.topic_id for one in message.topics if call.version >= 12 and one.topic_id != _NO_ID)
        names = dict.fromkeys(one.name for one in message.topics if not ids)
        if None in names:  # a NullPointerException
            answer = refusal(call.request, ErrorCode.UNKNOWN_SERVER_ERROR)
            for row in answer.topics:
                row.name = row.name or ""
            return answer
        new = NewPartitions()
        topics = [*(_of_id(call, one) for one in ids), *(_of_name(call, one, new) for one in names)]
    row = messages.MetadataResponse.MetadataResponseBroker
    return messages.MetadataResponse(
        brokers=[row(node_id=node.id, host=node.host, port=node.port, rack=node.rack) for node in cluster.alive()],
        cluster_id=cluster.cluster_id, controller_id=cluster.controller_id, topics=topics,
        cluster_authorized_operations=operations.if_asked(
            call.node.offer, 8 <= call.version <= 10, message.include_cluster_authorized_operations,
            operations.CLUSTER))


def _of_id(call: Call, topic_id: uuid.UUID) -> Any:
    try:
        return _topic(call, call.cluster.topic_of_id(topic_id))
    except ApiError as error:
        return messages.MetadataResponse.MetadataResponseTopic(error_code=error.code, name=None, topic_id=topic_id)


def _of_name(call: Call, name: str, new: NewPartitions) -> Any:
    """The topic of a name, which is created if it may be."""
    cluster = call.cluster
    try:
        if name not in cluster.topics:
            allowed = cluster.auto_create and (call.version < 4 or call.message.allow_auto_topic_creation)
            if allowed or call.node.offer.at_least("2.8"):
                check_topic_name(name)
            if not allowed:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            count = INTERNAL_PARTITIONS if name in INTERNAL_TOPICS else cluster.default_partitions
            new.take(count)
            _create(call, name, count)
        return _topic(call, cluster.topics[name])
    except ApiError as error:
        return messages.MetadataResponse.MetadataResponseTopic(
            error_code=error.code, name=name, is_internal=is_internal(name, call.node.release),
            topic_authorized_operations=_operations(call))


def _create(call: Call, name: str, partitions: int) -> None:
    """Create the requested topic. Raises ApiError; for a name that collides KRaft only says that it is unknown."""
    try:
        call.cluster.create_topic(name, partitions)
    except ApiError as error:
        collides = error.code == ErrorCode.INVALID_TOPIC_EXCEPTION and call.node.offer.is_kraft
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) if collides else error from None


def _operations(call: Call) -> int:
    """What may be done with a topic, if it is asked for."""
    return operations.if_asked(
        call.node.offer, call.version >= 8, call.message.include_topic_authorized_operations, operations.TOPIC)


def _topic(call: Call, topic: Topic) -> Any:
    return messages.MetadataResponse.MetadataResponseTopic(
        name=topic.name, topic_id=topic.id, is_internal=is_internal(topic.name, call.node.release),
        partitions=_partitions(call, topic.partitions), topic_authorized_operations=_operations(call))


def _partitions(call: Call, partitions: list[Partition]) -> list[Any]:
    up = {node.id for node in call.cluster.alive()}
    return [_partition(one, up) for one in partitions]


def _partition(partition: Partition, up: set[int]) -> Any:
    alive = [node for node in partition.replicas if node in up]
    return messages.MetadataResponse.MetadataResponsePartition(
        error_code=ErrorCode.NONE if partition.leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=partition.index, leader_id=partition.leader, leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas, isr_nodes=alive,
        offline_replicas=[node for node in partition.replicas if node not in up])


@handles("DescribeCluster")
def describe_cluster(call: Call) -> Any:
    """The nodes, once more (KIP-700). endpoint_type: brokers only; controllers listen elsewhere."""
    try:
        check_endpoint_type(call, BROKERS)
    except ApiError as error:
        return messages.DescribeClusterResponse(error_code=error.code, error_message=error.message)
    row = messages.DescribeClusterResponse.DescribeClusterBroker
    return messages.DescribeClusterResponse(
        cluster_id=call.cluster.cluster_id, controller_id=call.cluster.controller_id, endpoint_type=BROKERS,
        cluster_authorized_operations=operations.if_asked(
            call.node.offer, True, call.message.include_cluster_authorized_operations, operations.CLUSTER),
        brokers=[row(broker_id=node.id, host=node.host, port=node.port, rack=node.rack)
                 for node in call.cluster.alive()])


@handles("DescribeTopicPartitions")
def describe_topic_partitions(call: Call) -> Any:
    """Topics by name, page by page (KIP-966)."""
    cluster, message = call.cluster, call.message
    if any(not row.name for row in message.topics):
        return refusal(call.request, ErrorCode.UNKNOWN_SERVER_ERROR)
    wanted = sorted({row.name for row in message.topics}) or sorted(cluster.topics)
    cursor = message.cursor
    if cursor is not None:
        if cursor.partition_index < 0 or (message.topics and cursor.topic_name not in wanted):
            return refusal(call.request, ErrorCode.INVALID_REQUEST)
        wanted = [name for name in wanted if name >= cursor.topic_name]
    left = min(max(message.response_partition_limit, 1), 2000)
    response = messages.DescribeTopicPartitionsResponse
    answer = response()
    for name in wanted:
        topic = cluster.topics.get(name)
        if topic is None and left:
            known = is_topic_name(name)
            answer.topics.append(response.DescribeTopicPartitionsResponseTopic(
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.INVALID_TOPIC_EXCEPTION,
                name=name, is_internal=is_internal(name, call.node.release),
                topic_authorized_operations=operations.TOPIC))
            continue
        start = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        if topic is None or not left:
            answer.next_cursor = response.Cursor(topic_name=name, partition_index=0)
            break
        chosen = topic.partitions[start : start + left]
        left -= len(chosen)
        answer.topics.append(response.DescribeTopicPartitionsResponseTopic(
            name=name, topic_id=topic.id, is_internal=is_internal(name, call.node.release),
            topic_authorized_operations=operations.TOPIC,
            partitions=list(map(_described, _partitions(call, chosen)))))
        if start + len(chosen) < len(topic.partitions):
            answer.next_cursor = response.Cursor(topic_name=name, partition_index=start + len(chosen))
            break
    return answer


def _described(plain: Any) -> Any:
    return messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
        error_code=plain.error_code, partition_index=plain.partition_index, leader_id=plain.leader_id,
        leader_epoch=plain.leader_epoch, replica_nodes=plain.replica_nodes, isr_nodes=plain.isr_nodes,
        offline_replicas=plain.offline_replicas, eligible_leader_replicas=[], last_known_elr=[])


@handles("FindCoordinator")
def find_coordinator(call: Call) -> Any:
    """The coordinator of groups or transactional ids; several at once from version 4 on (KIP-699)."""
    message, response = call.message, messages.FindCoordinatorResponse
    kind = message.key_type if call.version >= 1 else _GROUP
    rows = []
    for key in dict.fromkeys(message.coordinator_keys) if call.version >= 4 else [message.key]:
        row = response.Coordinator(key=key, node_id=-1, host="", port=-1)
        try:
            if kind not in (_GROUP, _TRANSACTION):
                raise ApiError(ErrorCode.INVALID_REQUEST, "" if kind == _SHARE and call.version >= 4 else None)
            internal = OFFSETS_TOPIC if kind == _GROUP else TRANSACTIONS_TOPIC
            if internal not in call.cluster.topics:
                call.cluster.create_topic(internal, INTERNAL_PARTITIONS)
            node = call.cluster.coordinator_of(key)
            row.node_id, row.host, row.port = node.id, node.host, node.port
        except ApiError as error:
            row.error_code, row.error_message = error.code, error.message
        rows.append(row)
    if call.version >= 4:
        return response(coordinators=rows)
    (row,) = rows
    text = row.error_message or ("NONE" if call.node.offer.at_least("2.3") else None)  # Errors.NONE.message()
    return response(
        error_code=row.error_code, error_message=text, node_id=row.node_id, host=row.host, port=row.port)
