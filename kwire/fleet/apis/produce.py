"""Produce; sequences and epochs are checked where batches are written, in the partition's log."""

from __future__ import annotations

import asyncio
from typing import Any

from kwire import messages
from kwire.codec.records import read_batches
from kwire.errors import KwireError
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.apis.transactions import no_member
from kwire.fleet.cluster import INTERNAL_TOPICS, Partition
from kwire.fleet.errors import ApiError, InvalidRecordsError
from kwire.fleet.logs.partition_log import AppendRules
from kwire.schema.error_codes import ErrorCode
from kwire_c.record_batch import (
    ATTRIBUTES_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    SMALLEST_BATCHES,
    TRANSACTIONAL_FLAG,
)

_FIRST_WITH_BATCHES = 3  # versions 0 to 2 carry message sets of magic 0 and 1
_FIRST_WITH_ZSTD = 7
_ASKS_NO_MORE_THAN_THERE_ARE = "3.7"  # min.insync.replicas above the replicas of a partition
_FIRST_TO_WANT_ID = "2.1"  # a transactional.id with batches of a transaction
_ADMIN = "__admin_client"  # the client id that may write to internal topics (AdminUtils.ADMIN_CLIENT_ID)
_FIRST_AT_ZERO = "4.1"
_FIRST_IN_EPOCH, _FIRST_TO_FENCE_FIRST = "4.0", "4.1"
_ANSWERS_PARTS = "2.8"  # what is no whole batch is INVALID_RECORD; before, such a request ends the connection
_FIRST_WITH_REASONS = "2.5"  # each of these records has its own; before, the first one is that of the batch
_FIRST_WITH_PLACES = "2.4"  # KIP-467: INVALID_RECORD, and which records
_FIRST_WITH_TWO_LIMITS, _FIRST_WITHOUT_DIFFERENCE = "3.6", "4.0"  # KIP-937: before.max.ms, after.max.ms of timestamps
_FIRST_IN_JAVA = "3.5"  # LogValidator in Java, which ends no text with a full stop
_FIRST_ABORTABLE = 11  # KIP-890: TRANSACTION_ABORTABLE
_FIRST_WITH_IDS = 13
_FIRST_IMPLICIT = 12  # KIP-890: a partition joins the transaction with its first batch


@handles("Produce", finishes=True)
async def produce(call: Call) -> Any:
    """Append one batch a partition (message sets before version 3). No answer with acks 0.

    Others are answered between two partitions: a batch of 2 kB may have 60 MiB of records.
    """
    message, response = call.message, messages.ProduceResponse
    records = [one.records for topic in message.topic_data for one in topic.partition_data]
    if _closes_connection(call, records):
        call.connection.close()
        return None
    _join_at_once(call)
    unnamed = call.version >= _FIRST_WITH_BATCHES and message.transactional_id is None and (
        call.node.offer.at_least(_FIRST_TO_WANT_ID)) and any(map(_is_transactional, records))
    rows = list[Any]()
    for topic in message.topic_data:
        results = list[Any]()
        for one in topic.partition_data:
            if rows or results:
                await asyncio.sleep(0)
            row = response.PartitionProduceResponse(index=one.index, base_offset=-1)
            try:
                if unnamed:
                    raise ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
                name = _name(call, topic)
                _append(call, call.cluster.partition(name, one.index), name, one.records, row)
            except ApiError as error:
                row.error_code = error.code
                if isinstance(error, InvalidRecordsError):
                    _say_records(call, row, error, f"{name}-{one.index}")
                if call.version >= 10 and error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    _say_leader(call, row, call.cluster.partition(name, one.index))
                if error.code == ErrorCode.INVALID_TXN_STATE:
                    row.error_message = error.explanation
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


def _closes_connection(call: Call, records: list[Any]) -> bool:
    """Whether a broker cannot take the request apart, as there is no batch in it, or an invalid one, for a partition.

    Before 2.1 it looks from version 3 on, which has one batch of magic 2.
    """
    if call.node.offer.at_least(_ANSWERS_PARTS):
        return False
    if call.node.offer.at_least(_FIRST_TO_WANT_ID):
        return not all(map(_is_batch, records))
    return call.version >= _FIRST_WITH_BATCHES and not all(
        _is_batch(one) and one[MAGIC_OFFSET] == 2 and _is_partial(one[_size(one) :]) for one in records)


def _is_batch(records: Any) -> bool:
    """Whether there is a whole batch (ByteBufferLogInputStream)."""
    if records is None or len(records) <= MAGIC_OFFSET or records[MAGIC_OFFSET] > 2:
        return False
    return SMALLEST_BATCHES[records[MAGIC_OFFSET]] <= _size(records) <= len(records)


def _is_partial(records: Any) -> bool:
    """Whether they end before their first batch does."""
    return len(records) < LOG_OVERHEAD or _size(records) > len(records)


def _size(records: Any) -> int:
    """The bytes of the first batch, as it says."""
    return LOG_OVERHEAD + int.from_bytes(records[8:LOG_OVERHEAD], "big")


def _is_transactional(records: Any) -> bool:
    """Whether the first batch, a whole one, belongs to a transaction (RequestUtils.hasTransactionalRecords)."""
    return (
        _is_batch(records)
        and records[MAGIC_OFFSET] == 2
        and bool(records[ATTRIBUTES_OFFSET + 1] & TRANSACTIONAL_FLAG)
    )


def _name(call: Call, topic: Any) -> str:
    """The name of a topic of the request. Raises ApiError, UNKNOWN_TOPIC_ID."""
    return topic.name if call.version < _FIRST_WITH_IDS else call.cluster.topic_of_id(topic.topic_id).name


def _join_at_once(call: Call) -> None:
    """Let the partitions that are to join the transaction do so in one change of it.

    One by one, each change would write all that have joined before. Whatever is refused here is refused again, and
    answered, where the batch is to be written.
    """
    if call.version < _FIRST_IMPLICIT or not call.message.transactional_id:
        return
    named = [(topic, one) for topic in call.message.topic_data for one in topic.partition_data]
    joining: dict[tuple[int, int], set[tuple[str, int]]] = {}
    for topic, one in named if len(named) > 1 else ():
        try:
            name = _name(call, topic)
            partition = call.cluster.partition(name, one.index)
            call.cluster.leads(call.node, partition)
            for batch in _checked(call, one.records):
                if batch.is_transactional:
                    asked = batch.producer_id, batch.producer_epoch
                    partition.log.producers.check_epoch(*asked)
                    joining.setdefault(asked, set()).add((name, one.index))
        except ApiError:
            continue
    for asked, partitions in joining.items():
        try:
            call.cluster.transactions.join(call.message.transactional_id, *asked, partitions)
        except ApiError:
            continue


def _append(call: Call, partition: Partition, topic: str, records: Any, row: Any) -> None:
    batches = _checked(call, records)
    _join_transactions(call, partition, topic, batches)
    if call.message.acks not in (-1, 0, 1):
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
    if topic in INTERNAL_TOPICS and call.request.client_id != _ADMIN:  # ReplicaManager.appendToLocalLog
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic}")
    call.cluster.leads(call.node, partition)
    if not batches:
        return
    if call.message.acks == -1 and not _is_in_sync(call, partition):
        row.log_start_offset = partition.log.start_offset
        raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS)
    try:
        row.base_offset, row.log_append_time_ms = partition.log.append(
            batches, partition.leader_epoch, call.cluster.clock.now_ms(), _rules(call, partition))
    except ApiError as error:
        if not call.node.offer.at_least(_FIRST_WITH_PLACES) and (
                error.reasons[0][1] is None if isinstance(error, InvalidRecordsError) else
                error.code == ErrorCode.INVALID_RECORD):
            raise ApiError(ErrorCode.CORRUPT_MESSAGE) from None
        if error.code not in (
                ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE) and (
                error.code != ErrorCode.INVALID_TIMESTAMP or call.node.offer.at_least(_FIRST_WITH_PLACES)):
            row.log_start_offset = partition.log.start_offset
        raise
    row.log_start_offset = partition.log.start_offset


def _is_in_sync(call: Call, partition: Partition) -> bool:
    """Whether enough replicas are in sync: those whose nodes are up (Partition.appendRecordsToLeader)."""
    least, replicas = partition.log.settings.min_insync_replicas, len(partition.replicas)
    if call.node.offer.at_least(_ASKS_NO_MORE_THAN_THERE_ARE):
        least = min(least, replicas)
    return least <= 1 or sum(node.id in partition.replicas for node in call.cluster.alive()) >= least


def _rules(call: Call, partition: Partition) -> AppendRules:
    """What the release of the node and the version of the request ask of batches."""
    in_two = call.node.offer.at_least(_FIRST_WITH_TWO_LIMITS)
    before, after = partition.log.settings.timestamp_limits(
        in_two=in_two, with_difference=not call.node.offer.at_least(_FIRST_WITHOUT_DIFFERENCE))
    clock = call.cluster.clock
    after += clock.latest_ms() - clock.now_ms()  # a ManualClock in the past refuses no client
    return AppendRules(
        before, after, takes_stamped=in_two, begins_at_zero=call.node.offer.at_least(_FIRST_AT_ZERO),
        refuses_unknown=not call.node.offer.at_least(_FIRST_WITH_REASONS))


def _checked(call: Call, records: Any) -> list[Any]:
    """The batches, if the version allows them (ProduceRequest.validateRecords); bytes of a cut one are ignored."""
    try:
        batches = list(read_batches(records or b""))
    except KwireError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if not batches and call.version >= _FIRST_WITH_BATCHES:
        raise ApiError(ErrorCode.INVALID_RECORD, "Produce requests must have at least one record batch")
    if call.version >= _FIRST_WITH_BATCHES and (len(batches) > 1 or batches[0].magic < 2):
        code = ErrorCode.INVALID_RECORD if call.node.offer.at_least(_FIRST_WITH_PLACES) else ErrorCode.CORRUPT_MESSAGE
        raise ApiError(code, "Produce requests with version 3 or later must have one record batch of magic 2")
    if len(batches) > 1 and call.node.offer.at_least(_FIRST_WITH_PLACES) and not _is_message_set(batches):
        raise ApiError(ErrorCode.INVALID_RECORD, "Compressed outer record has more than one batch")
    if call.version < _FIRST_WITH_ZSTD and any(batch.codec == "zstd" for batch in batches):
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            "Produce requests with version less than 7 are not allowed to use ZStandard compression")
    return batches


def _is_message_set(batches: list[Any]) -> bool:
    """Whether they are the entries of an uncompressed message set, of one magic (LogValidator since 2.4)."""
    return batches[0].magic < 2 and all(one.magic == batches[0].magic and one.codec == "none" for one in batches)


def _join_transactions(call: Call, partition: Partition, topic: str, batches: list[Any]) -> None:
    """Do the batches belong to the transaction of the request (KIP-890)? Raises ApiError."""
    refusal, join = no_member(call, call.version >= _FIRST_ABORTABLE), call.version >= _FIRST_IMPLICIT
    if refusal is None or not call.message.transactional_id:
        return
    for batch in batches:
        if not batch.is_transactional:
            continue
        call.cluster.leads(call.node, partition)
        producers, asked = partition.log.producers, (batch.producer_id, batch.producer_epoch)
        if call.node.offer.at_least(_FIRST_TO_FENCE_FIRST):
            producers.check_epoch(*asked)
        if not producers.must_verify(
                *asked, batch.base_sequence, bumps_epoch=join,
                in_epoch=call.node.offer.at_least(_FIRST_IN_EPOCH)):
            continue
        try:
            call.cluster.transactions.verify(
                call.message.transactional_id, *asked, (topic, partition.index), join=join, refusal=refusal)
        except ApiError as error:
            if error.code == ErrorCode.INVALID_TXN_STATE:
                raise ApiError(error.code, "Partition was not added to the transaction") from None
            raise


def _say_records(call: Call, row: Any, error: InvalidRecordsError, partition: str) -> None:
    """Say which records are invalid (KIP-467), in the words of the node's release. Other errors have no text."""
    kraft = call.node.offer.is_kraft
    keyless = (
        f"Compacted topic cannot accept message without key in topic partition {partition}"
        f"{'' if call.node.offer.at_least(_FIRST_IN_JAVA) else '.'}")
    reasons = [(place, keyless if reason is None else reason) for place, reason in error.reasons]
    kind = messages.ProduceResponse.BatchIndexAndErrorMessage
    if not call.node.offer.at_least(_FIRST_WITH_REASONS):
        row.record_errors = [kind(batch_index=place) for place, _ in reasons]
        row.error_message = reasons[0][1]
        return
    row.record_errors = [kind(batch_index=place, batch_index_error_message=reason) for place, reason in reasons]
    row.error_message = "One or more records have been rejected"
    if error.code == ErrorCode.INVALID_TIMESTAMP:
        row.error_message += " due to invalid timestamp"
    elif kraft:
        shown = ", ".join(f"RecordError(batchIndex={place}, message='{reason}')" for place, reason in reasons[:3])
        row.error_message += (
            f" due to {error.count} record errors in total, and only showing the first three errors at most: "
            f"[{shown}]")


def _say_leader(call: Call, row: Any, partition: Partition) -> None:
    row.current_leader.leader_id, row.current_leader.leader_epoch = partition.leader, partition.leader_epoch


def endpoints(call: Call, row: Any, leaders: Any) -> list[Any]:
    """Where the leaders listen that an answer names (KIP-951)."""
    nodes = (call.cluster.node(leader) for leader in sorted(set(leaders) - {-1}))
    return [row(node_id=node.id, host=node.host, port=node.port, rack=node.rack) for node in nodes if node is not None]
