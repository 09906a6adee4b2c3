"""Produce; sequences and epochs are checked where batches are written, in the partition's log."""

from __future__ import annotations

from typing import Any

from kwire import messages
from kwire.codec.records import read_batches
from kwire.errors import KwireError
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.cluster import INTERNAL_TOPICS, Partition
from kwire.fleet.errors import ApiError, InvalidRecordsError
from kwire.schema.error_codes import ErrorCode

_FIRST_WITH_BATCHES = 3  # versions 0 to 2 carry message sets of magic 0 and 1
_FIRST_WITH_ZSTD = 7
_ADMIN = "__admin_client"  # the client id that may write to internal topics (AdminUtils.ADMIN_CLIENT_ID)
_FIRST_WITH_PLACES = "2.4"  # KIP-467: INVALID_RECORD, and which records
_FIRST_IN_JAVA = "3.5"  # LogValidator in Java, which ends no text with a full stop
_FIRST_IMPLICIT = 12  # KIP-890: a partition joins the transaction with its first batch


@handles("Produce")
def produce(call: Call) -> Any:
    """Append one batch a partition (message sets before version 3). No answer with acks 0."""
    message, response = call.message, messages.ProduceResponse
    rows = []
    for topic in message.topic_data:
        results = []
        for one in topic.partition_data:
            row = response.PartitionProduceResponse(index=one.index, base_offset=-1)
            try:
                if message.acks not in (-1, 0, 1):
                    raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
                name = topic.name if call.version < 13 else call.cluster.topic_of_id(topic.topic_id).name
                _append(call, call.cluster.partition(name, one.index), name, one.records, row)
            except ApiError as error:
                row.error_code = error.code
                if isinstance(error, InvalidRecordsError):
                    _say_records(call, row, error, f"{name}-{one.index}")
                if call.version >= 10 and error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    _say_leader(call, row, call.cluster.partition(name, one.index))
            results.append(row)
        rows.append(response.TopicProduceResponse(
            name=topic.name, topic_id=topic.topic_id, partition_responses=results))
    if message.acks == 0:
        if any(row.error_code for topic in rows for row in topic.partition_responses):
            call.connection.close()  # Kafka's only way to say so
        return None
    answer = response(responses=rows)
    if call.version >= 10:
        answer.node_endpoints = endpoints(call, response.NodeEndpoint, (
            row.current_leader.leader_id for topic in rows for row in topic.partition_responses))
    return answer


def _append(call: Call, partition: Partition, topic: str, records: Any, row: Any) -> None:
    if topic in INTERNAL_TOPICS and call.request.client_id != _ADMIN:  # ReplicaManager.appendToLocalLog
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic}")
    call.cluster.leads(call.node, partition)
    try:
        _write(call, partition, topic, records, row)
    except ApiError as error:
        if isinstance(error, InvalidRecordsError) and not call.node.offer.at_least(_FIRST_WITH_PLACES):
            raise ApiError(ErrorCode.CORRUPT_MESSAGE) from None
        if error.code not in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE):
            row.log_start_offset = partition.log.start_offset
        raise


def _write(call: Call, partition: Partition, topic: str, records: Any, row: Any) -> None:
    if records is None or not len(records):
        raise ApiError(ErrorCode.INVALID_RECORD, "Produce requests must have at least one record batch")
    written = partition.log.append(
        _checked(call, partition, topic, records), partition.leader_epoch, call.cluster.clock.now_ms(),
        old=call.version < _FIRST_WITH_BATCHES)
    row.base_offset, row.log_append_time_ms = written
    row.log_start_offset = partition.log.start_offset


def _checked(call: Call, partition: Partition, topic: str, records: Any) -> list[Any]:
    """The batches, if the version and the transaction allow them (ProduceRequest.validateRecords, KIP-890)."""
    try:
        batches = list(read_batches(records, strict_tail=True))
    except KwireError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    for batch in batches:
        if batch.codec == "zstd" and call.version < _FIRST_WITH_ZSTD:
            raise ApiError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                "Produce requests with version less than 7 are not allowed to use ZStandard compression")
        if batch.is_transactional:
            call.cluster.transactions.check_member(
                call.message.transactional_id, batch.producer_id, batch.producer_epoch, (topic, partition.index),
                join=call.version >= _FIRST_IMPLICIT, checked=call.node.offer.at_least("3.6"))
    return batches


def _say_records(call: Call, row: Any, error: InvalidRecordsError, partition: str) -> None:
    """Say which records are invalid (KIP-467), in the words of the node's release. Other errors have no text."""
    kraft = call.node.offer.is_kraft
    reason = f"{error.message} in topic partition {partition}{'' if call.node.offer.at_least(_FIRST_IN_JAVA) else '.'}"
    kind = messages.ProduceResponse.BatchIndexAndErrorMessage
    row.record_errors = [kind(batch_index=place, batch_index_error_message=reason) for place in error.places]
    row.error_message = "One or more records have been rejected"
    if kraft:
        shown = ", ".join(f"RecordError(batchIndex={place}, message='{reason}')" for place in error.places[:3])
        row.error_message += (
            f" due to {len(error.places)} record errors in total, and only showing the first three errors at most: "
            f"[{shown}]")


def _say_leader(call: Call, row: Any, partition: Partition) -> None:
    row.current_leader.leader_id, row.current_leader.leader_epoch = partition.leader, partition.leader_epoch


def endpoints(call: Call, row: Any, leaders: Any) -> list[Any]:
    """Where the leaders listen that an answer names (KIP-951)."""
    nodes = (call.cluster.node(leader) for leader in sorted(set(leaders) - {-1}))
    return [row(node_id=node.id, host=node.host, port=node.port, rack=node.rack) for node in nodes if node is not None]
