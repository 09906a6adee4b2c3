"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords."""

from __future__ import annotations

import uuid
from collections import Counter
from functools import partial
from typing import Any

from kwire import messages
from kwire.fleet.apis.registry import Call, answered, handles
from kwire.fleet.cluster import Topic
from kwire.fleet.errors import ApiError
from kwire.fleet.topic_configs import check_topic_configs, topic_configs
from kwire.schema.error_codes import ErrorCode

ELR = "eligible.leader.replicas.version"
MOST_PARTITIONS = 10_000  # of a request: ReplicationControlManager.MAX_PARTITIONS_PER_BATCH, here of all releases
_EXCESSIVE = "Excessively large number of partitions per request."
_NO_ID = uuid.UUID(int=0)


@handles("CreateTopics")
def create_topics(call: Call) -> Any:
    """Create topics, or only check them (validate_only)."""
    message = call.message
    validate = call.version >= 1 and message.validate_only
    names = Counter(row.name for row in message.topics)
    partitions = sum(len(row.assignments) or max(row.num_partitions, 0) for row in message.topics)
    result = messages.CreateTopicsResponse.CreatableTopicResult
    rows = []
    for row in {row.name: row for row in message.topics}.values():
        try:
            if partitions > MOST_PARTITIONS:
                raise ApiError(ErrorCode.POLICY_VIOLATION, _EXCESSIVE)
            if names[row.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            topic = _create(call, row)
            rows.append(result(
                name=row.name, topic_id=topic.id if call.node.offer.is_kraft or not validate else _NO_ID,
                num_partitions=len(topic.partitions), replication_factor=topic.replication_factor,
                configs=_configs(call, topic) if call.version >= 5 else None))
        except ApiError as error:
            rows.append(result(name=row.name, error_code=error.code, error_message=error.message))
    return messages.CreateTopicsResponse(topics=rows)


def _create(call: Call, row: Any) -> Topic:
    assignments = {one.partition_index: list(one.broker_ids) for one in row.assignments}
    defaults = call.version >= 4 or row.num_partitions != -1 or assignments
    if not defaults:
        raise ApiError(ErrorCode.INVALID_PARTITIONS)
    if assignments and (row.num_partitions != -1 or row.replication_factor != -1):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Both numPartitions or replicationFactor and replicasAssignments were set.")
    configs = {one.name: one.value for one in row.configs if one.value is not None}
    try:
        check_topic_configs(configs, call.node.release)
    except ApiError as error:
        if not error.message.startswith("Unknown") and not call.node.offer.at_least("2.1"):
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message) from None
        raise
    return call.cluster.create_topic(
        row.name, row.num_partitions, row.replication_factor, configs, assignments,
        validate_only=call.version >= 1 and call.message.validate_only)


def _configs(call: Call, topic: Topic) -> list[Any]:
    row = messages.CreateTopicsResponse.CreatableTopicConfigs
    rows = []
    for name, known in topic_configs(call.node.release).items():
        source = 1 if name in topic.configs else 5
        if source == 5 and name == "min.insync.replicas" and call.cluster.levels.get(ELR, 0):
            source = 3  # the feature makes it a config of the cluster (KIP-966)
        rows.append(row(name=name, value=topic.configs.get(name, known.default), config_source=source))
    return rows


@handles("DeleteTopics")
def delete_topics(call: Call) -> Any:
    """Delete topics by name, or by id from version 6 on."""
    message, result = call.message, messages.DeleteTopicsResponse.DeletableTopicResult
    asked = message.topics if call.version >= 6 else [
        messages.DeleteTopicsRequest.DeleteTopicState(name=name) for name in message.topic_names]

    def delete(one: Any, row: Any) -> None:
        topic = call.cluster.topic(one.name) if one.name is not None else call.cluster.topic_of_id(one.topic_id)
        row.name = topic.name
        if call.node.offer.is_kraft or one.name is None:
            row.topic_id = topic.id
        call.cluster.delete_topic(topic)

    return messages.DeleteTopicsResponse(responses=answered(
        asked, lambda one: result(name=one.name, topic_id=one.topic_id), delete, message=True))


@handles("CreatePartitions")
def create_partitions(call: Call) -> Any:
    """Let topics have more partitions."""
    result = messages.CreatePartitionsResponse.CreatePartitionsTopicResult

    def add(asked: Any, row: Any) -> None:
        assignments = None if asked.assignments is None else [list(one.broker_ids) for one in asked.assignments]
        topic = call.cluster.topic(asked.name)
        if asked.count - len(topic.partitions) > MOST_PARTITIONS:
            raise ApiError(ErrorCode.POLICY_VIOLATION, _EXCESSIVE)
        call.cluster.add_partitions(topic, asked.count, assignments, call.message.validate_only)

    return messages.CreatePartitionsResponse(results=answered(
        call.message.topics, lambda asked: result(name=asked.name), add, message=True))


@handles("DeleteRecords")
def delete_records(call: Call) -> Any:
    """Move the starts of logs."""
    response = messages.DeleteRecordsResponse

    def row_of(one: Any) -> Any:
        return response.DeleteRecordsPartitionResult(partition_index=one.partition_index, low_watermark=-1)

    def delete(topic: str, one: Any, row: Any) -> None:
        partition = call.cluster.partition(topic, one.partition_index)
        call.cluster.leads(call.node, partition)
        row.low_watermark = partition.log.delete_before(one.offset)

    return response(topics=[
        response.DeleteRecordsTopicResult(
            name=topic.name, partitions=answered(topic.partitions, row_of, partial(delete, topic.name)))
        for topic in call.message.topics])
