"""What coordinators keep in __consumer_offsets and __transaction_state, in Kafka's records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kwire import messages
from kwire.codec.record_serdes import decode_coordinator_record, encode_coordinator_record
from kwire.codec.records import read_batches
from kwire.errors import KwireError
from kwire.fleet.coordinators.groups import COMMIT_ORDER, CommittedOffset, TopicPartition, newer
from kwire.fleet.coordinators.transactions import Transaction
from kwire.fleet.logs.partition_log import PartitionLog
from kwire.storage.internal.internal_topics import TRANSACTION_STATES

Row = tuple[int, bytes, bytes | None]
Commits = dict[str, dict[TopicPartition, CommittedOffset]]
_OFFSET_COMMITS, _CONSUMER_GROUP = ("OffsetCommit", "LegacyOffsetCommit"), "ConsumerGroupMetadata"


def offset_rows(
    group_id: str, offsets: Mapping[TopicPartition, CommittedOffset | None], with_epoch: bool, now: int
) -> list[Row]:
    """The records of a commit, a tombstone for None. with_epoch: in the version that has leader epochs; now: ms."""
    rows = []
    for (topic, partition), kept in offsets.items():
        key = messages.OffsetCommitKey(group=group_id, topic=topic, partition=partition)
        value = None if kept is None else messages.OffsetCommitValue(
            offset=kept.offset, metadata=kept.metadata, commit_timestamp=kept.timestamp, expire_timestamp=-1,
            leader_epoch=kept.leader_epoch if with_epoch else -1)
        version = None if kept is None else 3 if with_epoch else 1
        rows.append((now, *encode_coordinator_record("group", key, value, version)))
    return rows


def group_row(group_id: str, is_consumer: bool, now: int) -> Row:
    """The record of a group of KIP-848, a tombstone if it is none any more. now: milliseconds.

    Its members are not kept: after a restart they join again.
    """
    value = messages.ConsumerGroupMetadataValue(epoch=1) if is_consumer else None
    key = messages.ConsumerGroupMetadataKey(group_id=group_id)
    return (now, *encode_coordinator_record("group", key, value, 0 if is_consumer else None))


def transaction_row(known: Transaction, partitions: list[TopicPartition], flexible: bool, now: int) -> Row:
    """The record of a transactional id. flexible: of transaction.version 1 and later; now: milliseconds."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    schema = messages.TransactionLogValue.PartitionsSchema
    value = messages.TransactionLogValue(
        producer_id=known.producer_id, producer_epoch=known.epoch, transaction_timeout_ms=round(known.timeout * 1000),
        transaction_status=TRANSACTION_STATES.index(known.state), transaction_last_update_timestamp_ms=now,
        transaction_start_timestamp_ms=int(known.started * 1000) if partitions else -1,
        transaction_partitions=[schema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]
        if partitions else None if known.state == TRANSACTION_STATES[0] else [])
    if flexible:
        value.previous_producer_id = known.last_producer_id
    key = messages.TransactionLogKey(transactional_id=known.id)
    return (now, *encode_coordinator_record("transaction", key, value, int(flexible)))


def _records(log: PartitionLog, kind: str) -> Iterator[tuple[Any, Any, Any]]:
    """(batch, record of it, what it says; None for a marker) of a coordinator's partition, in order.

    Records that are none of a coordinator's are passed over, as Kafka does with types that it does not know.
    """
    for entry in log.store.entries(log.start_offset, 1 << 20):
        for batch in read_batches(entry.data):
            for record in batch:
                try:
                    known = None if batch.is_control else decode_coordinator_record(
                        kind, record.key or b"", record.value, lenient=True)
                except KwireError:  # an admin client may write anything there
                    continue
                yield batch, record, known


def read_offsets(log: PartitionLog) -> tuple[Commits, dict[int, Commits], set[str]]:
    """What a partition of __consumer_offsets has.

    (offsets by group, those of open transactions by producer id and group, groups of KIP-848). Raises KwireError for
    records that cannot be read. Source: OffsetMetadataManager.replay, GroupMetadataManager.replay.
    """
    commits: Commits = {}
    consumers: set[str] = set()
    pending: dict[int, Commits] = {}
    forgotten: dict[tuple[str, TopicPartition], int] = {}  # while transactions are open; the order of the tombstone

    def left(group: str, offsets: dict[TopicPartition, CommittedOffset]) -> dict[TopicPartition, CommittedOffset]:
        return {one: offset for one, offset in offsets.items() if forgotten.get((group, one), -1) < offset.order}

    for batch, record, known in _records(log, "group"):
        if known is None:
            ended = pending.pop(batch.producer_id, {})
            for group, offsets in ended.items() if record.control_type == "COMMIT" else ():
                counted = commits.setdefault(group, {})
                counted.update(newer(left(group, offsets), counted))
            continue
        if known.name == _CONSUMER_GROUP:
            (consumers.discard if known.value is None else consumers.add)(known.key.group_id)
        if known.name not in _OFFSET_COMMITS:
            continue
        key, value, one = known.key, known.value, (known.key.topic, known.key.partition)
        target = pending.setdefault(batch.producer_id, {}) if batch.is_transactional else commits
        offsets = target.setdefault(key.group, {})
        if value is None:
            commits.get(key.group, {}).pop(one, None)
            if pending:
                forgotten[key.group, one] = next(COMMIT_ORDER)
        else:
            offsets[one] = CommittedOffset(
                value.offset, getattr(value, "leader_epoch", -1), value.metadata, value.commit_timestamp,
                next(COMMIT_ORDER))
    waiting = {producer: {group: left(group, offsets) for group, offsets in groups.items()}
               for producer, groups in pending.items()}
    return commits, waiting, consumers


def read_transactions(log: PartitionLog) -> dict[str, Transaction]:
    """The transactional ids in a partition of __transaction_state. Raises KwireError.

    A transaction that was about to end (PrepareCommit, PrepareAbort) is as its name says, with its partitions.
    """
    found: dict[str, Transaction] = {}
    for _, _, known in _records(log, "transaction"):
        if known is None or known.name is None:
            continue
        name, value = known.key.transactional_id, known.value
        if value is None or not 0 <= value.transaction_status < len(TRANSACTION_STATES):
            found.pop(name, None)
            continue
        found[name] = Transaction(
            name, value.producer_id, value.producer_epoch, value.transaction_timeout_ms / 1000,
            TRANSACTION_STATES[value.transaction_status],
            frozenset((row.topic, index) for row in value.transaction_partitions or () for index in row.partition_ids),
            last_producer_id=value.previous_producer_id, started=value.transaction_start_timestamp_ms / 1000,
            is_restored=bool(value.transaction_partitions))
    return found
