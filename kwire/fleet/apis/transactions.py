"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, and what lists and describes transactions."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

from kwire import messages
from kwire.fleet.apis.registry import Call, answered, handles
from kwire.fleet.cluster import OFFSETS_TOPIC, shortened
from kwire.fleet.coordinators.name_patterns import name_pattern
from kwire.fleet.coordinators.transactions import Participant
from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode

_CHECKS_NAMES = "3.0"  # DescribeProducers does
_FIRST_TO_LOOK, _FIRST_ABORTABLE = "3.6", "3.8"  # KIP-890: who writes is a member; TRANSACTION_ABORTABLE
_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "PrepareEpochFence", "Dead",
)


@handles("InitProducerId")
def init_producer_id(call: Call) -> Any:
    """A producer id and its epoch; of a transactional id the same id again, in the next epoch."""
    message, response = call.message, messages.InitProducerIdResponse
    transactions = call.cluster.transactions
    try:
        own = (message.producer_id, message.producer_epoch) if call.version >= 3 else (-1, -1)
        if (own[0] == -1) != (own[1] == -1):
            raise ApiError(ErrorCode.INVALID_REQUEST)
        if message.transactional_id is None:
            producer_id, epoch = transactions.new_producer_id(), 0
        else:
            if message.transactional_id:
                call.cluster.check_coordinator(call.node, message.transactional_id)
            producer_id, epoch = transactions.init(message.transactional_id, message.transaction_timeout_ms, *own)
        return response(producer_id=producer_id, producer_epoch=epoch)
    except ApiError as error:
        code = error.code
        if code == ErrorCode.PRODUCER_FENCED and call.version < 4:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        return response(error_code=code, producer_id=-1, producer_epoch=-1)


def no_member(call: Call, knows_abortable: bool) -> ErrorCode | None:
    """The error for who writes and is no member of the transaction, None: the release does not look (KIP-890).

    knows_abortable: whether the version of the request may be answered so.
    """
    if not call.node.offer.at_least(_FIRST_TO_LOOK):
        return None
    abortable = knows_abortable and call.node.offer.at_least(_FIRST_ABORTABLE)
    return ErrorCode.TRANSACTION_ABORTABLE if abortable else ErrorCode.INVALID_TXN_STATE


def _fenced(code: ErrorCode, old: bool) -> ErrorCode:
    """Versions before KIP-588 say INVALID_PRODUCER_EPOCH where later ones say PRODUCER_FENCED."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if old and code == ErrorCode.PRODUCER_FENCED else code


@handles("AddPartitionsToTxn")
def add_partitions_to_txn(call: Call) -> Any:
    """Partitions join a transaction; from version 4 on of many transactions at once, for brokers.

    Of two rows of one transaction the last one counts (AddPartitionsToTxnRequest.partitionsByTransaction).
    """
    message, response = call.message, messages.AddPartitionsToTxnResponse
    if call.version < 4:
        return response(results_by_topic_v3_and_below=_added(
            call, message.v3_and_below_transactional_id, message.v3_and_below_producer_id,
            message.v3_and_below_producer_epoch, message.v3_and_below_topics, False))
    results = [
        response.AddPartitionsToTxnResult(transactional_id=one.transactional_id, topic_results=_added(
            call, one.transactional_id, one.producer_id, one.producer_epoch, one.topics, one.verify_only))
        for one in {one.transactional_id: one for one in message.transactions}.values()]
    return response(results_by_transaction=results)


def _added(
    call: Call, transactional_id: str, producer_id: int, epoch: int, topics: Any, verify_only: bool
) -> list[Any]:
    response = messages.AddPartitionsToTxnResponse
    wanted: dict[tuple[str, int], ErrorCode] = {}
    for topic in topics:
        for index in topic.partitions:
            try:
                call.cluster.partition(topic.name, index)
                wanted[topic.name, index] = ErrorCode.NONE
            except ApiError as error:
                wanted[topic.name, index] = error.code
    refused = ErrorCode.NONE
    try:
        call.cluster.check_coordinator(call.node, transactional_id)
        if any(wanted.values()):
            refused = ErrorCode.OPERATION_NOT_ATTEMPTED
        elif verify_only:
            for partition in wanted:
                call.cluster.transactions.check_member(
                    transactional_id, producer_id, epoch, partition, join=False, refusal=no_member(call, True))
        else:
            members: set[Participant] = set(wanted)
            call.cluster.transactions.join(transactional_id, producer_id, epoch, members)
    except ApiError as error:
        refused = _fenced(error.code, call.version < 2)
        wanted = dict.fromkeys(wanted, refused)
    rows = []
    for topic in topics:
        parts = [
            response.AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=wanted[topic.name, index] or refused)
            for index in topic.partitions]
        rows.append(response.AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=parts))
    return rows


@handles("AddOffsetsToTxn")
def add_offsets_to_txn(call: Call) -> Any:
    """A group's offsets join a transaction."""
    message = call.message
    try:
        call.cluster.check_coordinator(call.node, message.transactional_id)
        call.cluster.transactions.join(
            message.transactional_id, message.producer_id, message.producer_epoch, {message.group_id})
        return messages.AddOffsetsToTxnResponse()
    except ApiError as error:
        return messages.AddOffsetsToTxnResponse(error_code=_fenced(error.code, call.version < 2))


@handles("EndTxn")
def end_txn(call: Call) -> Any:
    """Commit or abort. Version 5 gives the producer its next epoch (KIP-890); it needs transaction.version 2."""
    message, response = call.message, messages.EndTxnResponse
    try:
        call.cluster.check_coordinator(call.node, message.transactional_id)
        if call.version >= 5 and call.cluster.levels.get("transaction.version", 0) < 2:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        producer_id, epoch = call.cluster.transactions.end(
            message.transactional_id, message.producer_id, message.producer_epoch, message.committed,
            bump=call.version >= 5)
        return response(producer_id=producer_id, producer_epoch=epoch) if call.version >= 5 else response()
    except ApiError as error:
        return response(error_code=_fenced(error.code, call.version < 2))


@handles("ListTransactions")
def list_transactions(call: Call) -> Any:
    """The transactional ids that this node coordinates (KIP-664)."""
    message, response = call.message, messages.ListTransactionsResponse
    now, pattern, producers = call.cluster.clock.now_ms(), None, set(message.producer_id_filters)
    if call.version >= 2 and message.transactional_id_pattern:
        try:
            pattern = name_pattern(message.transactional_id_pattern)
        except ApiError as error:
            return response(error_code=error.code)
    rows, states = [], set(message.state_filters)
    for one in call.cluster.transactions.transactions.values():
        if call.cluster.coordinator_of(one.id) is not call.node:
            continue
        if states and one.state not in states:
            continue
        if producers and one.producer_id not in producers:
            continue
        begun = int(one.started * 1000) if one.started else -1  # txnStartTimestamp
        if call.version >= 1 and message.duration_filter >= 0 and now - begun <= message.duration_filter:
            continue
        if pattern is not None and not pattern.fullmatch(one.id):
            continue
        rows.append(response.TransactionState(
            transactional_id=one.id, producer_id=one.producer_id, transaction_state=one.state))
    return response(
        transaction_states=rows, unknown_state_filters=[s for s in message.state_filters if s not in _STATES])


@handles("DescribeTransactions")
def describe_transactions(call: Call) -> Any:
    """State, start and partitions of transactions (KIP-664)."""
    response = messages.DescribeTransactionsResponse
    rows = []
    for name in dict.fromkeys(call.message.transactional_ids):
        row = response.TransactionState(transactional_id=name)
        known = call.cluster.transactions.transactions.get(name)
        try:
            if not name:
                raise ApiError(ErrorCode.INVALID_REQUEST)
            call.cluster.check_coordinator(call.node, name)
            if known is None:
                raise ApiError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
            row.transaction_state, row.transaction_timeout_ms = known.state, round(known.timeout * 1000)
            row.producer_id, row.producer_epoch = known.producer_id, known.epoch
            row.transaction_start_time_ms = int(known.started * 1000) if known.started else -1
            topics: dict[str, list[int]] = {}
            for topic, index in sorted(set(map(call.cluster.partition_of, known.participants))):
                topics.setdefault(topic, []).append(index)
            row.topics = [response.TopicData(topic=topic, partitions=parts) for topic, parts in topics.items()]
        except ApiError as error:
            row.error_code = error.code
        rows.append(row)
    return response(transaction_states=rows)


@handles("DescribeProducers")
def describe_producers(call: Call) -> Any:
    """The producers that wrote to partitions (KIP-664)."""
    response = messages.DescribeProducersResponse

    def row_of(index: int) -> Any:
        return response.PartitionResponse(partition_index=index)

    seen = set[tuple[str, int]]()

    def describe(topic: str, index: int, row: Any) -> None:
        if (topic, index) in seen:  # once: its producers may be many
            raise ApiError(ErrorCode.INVALID_REQUEST)
        seen.add((topic, index))
        if call.node.offer.at_least(_CHECKS_NAMES):
            try:
                call.cluster.topic(shortened(topic))
            except ApiError as error:
                raise ApiError(error.code, error.message) from None
        partition = call.cluster.partition(topic, index)
        call.cluster.has_replica(call.node, partition)
        row.active_producers = [
            response.ProducerState(
                producer_id=producer, producer_epoch=state.epoch, last_sequence=state.last_sequence,
                last_timestamp=state.last_timestamp, coordinator_epoch=state.coordinator_epoch,
                current_txn_start_offset=-1 if state.first_offset is None else state.first_offset)
            for producer, state in partition.log.producers.producers.items()]

    return response(topics=[
        response.TopicResponse(name=topic.name, partitions=answered(
            topic.partition_indexes, row_of, partial(describe, topic.name), attrgetter("explanation")))
        for topic in call.message.topics])


@handles("WriteTxnMarkers")
def write_txn_markers(call: Call) -> Any:
    """End transactions in partitions: what a coordinator, or kafka-transactions abort, asks of leaders."""
    response = messages.WriteTxnMarkersResponse
    ends_offsets = any(topic.name == OFFSETS_TOPIC for marker in call.message.markers for topic in marker.topics)
    waiting = _waiting_groups(call) if ends_offsets else {}

    def row_of(index: int) -> Any:
        return response.WritableTxnMarkerPartitionResult(partition_index=index)

    def end(marker: Any, topic: str, index: int, row: Any) -> None:
        partition = call.cluster.partition(topic, index)
        call.cluster.leads(call.node, partition)
        if marker.producer_epoch < 0:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        partition.log.producers.check_epoch(marker.producer_id, marker.producer_epoch, marker.coordinator_epoch)
        partition.log.append_marker(
            marker.producer_id, marker.producer_epoch, marker.transaction_result, marker.coordinator_epoch,
            partition.leader_epoch, call.cluster.clock.now_ms())
        if topic == OFFSETS_TOPIC:  # GroupCoordinator.onTransactionCompleted
            call.cluster.groups.end_transaction(
                marker.producer_id, marker.transaction_result, waiting.pop((marker.producer_id, index), []))

    return response(markers=[
        response.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[
            response.WritableTxnMarkerTopicResult(name=topic.name, partitions=answered(
                topic.partition_indexes, row_of, partial(end, marker, topic.name)))
            for topic in marker.topics if topic.partition_indexes])
        for marker in call.message.markers if any(topic.partition_indexes for topic in marker.topics)])


def _waiting_groups(call: Call) -> dict[tuple[int, int], list[str]]:
    """The groups that have offsets of ongoing transactions, by the producer's id and by the partition that has them."""
    waiting: dict[tuple[int, int], list[str]] = {}
    for name, group in call.cluster.groups.groups.items():
        _, index = call.cluster.partition_of(name)
        for producer_id in group.pending_offsets:
            waiting.setdefault((producer_id, index), []).append(name)
    return waiting
