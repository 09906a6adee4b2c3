"""Fetch: full and incremental sessions (KIP-227), long poll, isolation, leader epochs, down-conversion."""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import Any

from kwire import messages
from kwire.codec.records import build_batch, read_batches
from kwire.fleet.apis.produce import endpoints
from kwire.fleet.apis.registry import Call, handles
from kwire.fleet.cluster import Partition
from kwire.fleet.errors import ApiError
from kwire.fleet.fetch_sessions import FetchKey, FetchSession
from kwire.fleet.logs.partition_log import PartitionLog
from kwire.schema.error_codes import ErrorCode

READ_COMMITTED = 1
_FIRST_WITH_BATCHES, _FIRST_WITH_MAGIC_1, _FIRST_WITH_ZSTD = 4, 2, 10
_UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_FIRST_WITH_IDS, _FIRST_WITH_LEADERS = 13, 16
_ALWAYS_ZSTD = "4.0"
_CONVERTS_LAZILY = "2.0"  # KIP-283
_AT_ONCE = 1000  # partitions
MOST_BYTES = 55 << 20  # of an answer, but for a first batch that is larger: the broker's fetch.max.bytes (KIP-541)


@handles("Fetch")
async def fetch(call: Call) -> Any:
    """The batches from the offsets asked for on: when min_bytes are there, or after max_wait_ms."""
    message, response = call.message, messages.FetchResponse
    try:
        session = call.node.fetch_sessions.of(call)
    except ApiError as error:
        return response(error_code=error.code)
    clock, waited, most = call.cluster.clock, False, _most_bytes(call)
    deadline = clock.elapsed() + message.max_wait_ms / 1000
    changed = asyncio.Event()
    watched: set[PartitionLog] = set()
    try:
        while True:
            _watch(call, session, changed, watched)
            changed.clear()
            rows = await _read(call, session.partitions, most)
            enough = sum(len(row.records or b"") for _, row in rows) >= min(message.min_bytes, most)
            left = deadline - clock.elapsed()
            if enough or waited or left <= 0 or any(row.error_code for _, row in rows):
                break
            rows.clear()  # many clients may wait
            waited = not await clock.wait(changed, left)  # then it is over, whatever a clock says
    finally:
        for log in watched:
            log.watchers.pop(changed, None)
    rows = session.answered(rows)
    topics = [
        response.FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[row for _, row in of_topic])
        for (name, topic_id), of_topic in groupby(rows, key=lambda one: one[0][:2])]
    answer = response(session_id=session.id if call.version >= 7 else 0, responses=topics)
    if call.version >= _FIRST_WITH_LEADERS:
        answer.node_endpoints = endpoints(
            call, response.NodeEndpoint, (row.current_leader.leader_id for _, row in rows))
    return answer


def _watch(call: Call, session: FetchSession, changed: asyncio.Event, watched: set[PartitionLog]) -> None:
    """Let the logs of a session set the event: also that of a topic which was deleted, and is there again."""
    for key in session.partitions:
        log = _log(call, key)
        if log is not None:
            watched.add(log)
            log.watchers[changed] = None


def _log(call: Call, key: FetchKey) -> PartitionLog | None:
    try:
        return _partition(call, key).log
    except ApiError:
        return None


def _partition(call: Call, key: FetchKey) -> Partition:
    if call.version >= _FIRST_WITH_IDS:
        topic = call.cluster.topic_of_id(key.topic_id)
        return call.cluster.partition(topic.name, key.partition)
    return call.cluster.partition(key.topic, key.partition)


def _most_bytes(call: Call) -> int:
    """The bytes of an answer; no client waits for more (KafkaApis.handleFetchRequest: fetchMaxBytes)."""
    return min(call.message.max_bytes, MOST_BYTES) if call.version >= 3 else MOST_BYTES


async def _read(call: Call, wanted: dict[FetchKey, Any], left: int) -> list[tuple[FetchKey, Any]]:
    """The rows of partitions as they are asked for, those of unknown ones last. left: bytes of an answer."""
    rows, unknown = list[tuple[FetchKey, Any]](), list[tuple[FetchKey, Any]]()
    anything, size = False, 0
    for number, (key, one) in enumerate([*wanted.items()]):
        if number % _AT_ONCE == _AT_ONCE - 1 or size:
            await asyncio.sleep(0)  # others are served meanwhile
        row = messages.FetchResponse.PartitionData(partition_index=key.partition, high_watermark=-1)
        try:
            await _read_partition(
                call, _partition(call, key), one, row, min(left, one.partition_max_bytes), not anything)
        except ApiError as error:
            row = messages.FetchResponse.PartitionData(
                partition_index=key.partition, error_code=_code(call, key, error), high_watermark=-1, records=b"")
            if call.version >= 4 and not (error.code in _UNKNOWN and call.node.offer.at_least("3.0")):
                row.aborted_transactions = None
            if error.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE and call.node.offer.at_least("3.0"):
                row.records, row.aborted_transactions = None, []
            if call.version >= _FIRST_WITH_LEADERS and error.code in (
                    ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
                partition = _partition(call, key)
                row.current_leader.leader_id, row.current_leader.leader_epoch = partition.leader, partition.leader_epoch
        size = len(row.records or b"")
        left -= size
        anything = anything or size > 0
        (unknown if row.error_code in _UNKNOWN else rows).append((key, row))
    return rows + unknown


def _code(call: Call, key: FetchKey, error: ApiError) -> ErrorCode:
    """The code of an error; 2.1 takes a partition that it does not have for one with zstd (KAFKA-7535)."""
    if call.version < _FIRST_WITH_ZSTD and call.node.offer.at_least("2.1") and not call.node.offer.at_least("2.2"):
        here = call.cluster.topics.get(key.topic)
        if here is None or not any(
                key.partition == one.index and call.node.id in one.replicas for one in here.partitions):
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return error.code


def _may_follow(call: Call) -> bool:
    """Whether any replica serves the fetch, and not only the leader (KIP-392, FetchParams.fetchOnlyLeader)."""
    return call.version >= 11 and call.node.offer.at_least("2.4")


async def _read_partition(
    call: Call, partition: Partition, one: Any, row: Any, max_bytes: int, at_least_one: bool
) -> None:
    log = partition.log
    if log.settings.codec == "zstd" and call.version < _FIRST_WITH_ZSTD and not call.node.offer.at_least(_ALWAYS_ZSTD):
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if call.version < _FIRST_WITH_BATCHES and not log.settings.converts:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    serves = call.cluster.has_replica if _may_follow(call) else call.cluster.leads
    serves(call.node, partition, max(one.current_leader_epoch, -1) if call.version >= 9 else -1)
    committed = call.version >= 4 and call.message.isolation_level == READ_COMMITTED
    row.high_watermark, row.last_stable_offset, row.log_start_offset = (
        log.end_offset, log.last_stable_offset, log.start_offset)
    if not committed and not call.node.offer.at_least("2.1"):
        row.last_stable_offset = -1
    if call.version >= 12 and one.last_fetched_epoch >= 0:
        epoch, end = log.end_of_epoch(one.last_fetched_epoch, partition.leader_epoch)
        if epoch < 0:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < one.last_fetched_epoch or end < one.fetch_offset:
            row.diverging_epoch.epoch, row.diverging_epoch.end_offset = epoch, end
            row.records, row.aborted_transactions = b"", None
            return
    limit = log.last_stable_offset if committed else log.end_offset
    records = log.read(one.fetch_offset, max(0, max_bytes), limit, at_least_one and call.version >= 3,
                       cut=call.version >= _FIRST_WITH_BATCHES)
    if committed and records:
        aborted = messages.FetchResponse.AbortedTransaction
        last = list(read_batches(records))[-1].last_offset
        row.aborted_transactions = [
            aborted(producer_id=gone.producer_id, first_offset=gone.first_offset)
            for gone in log.aborted_in(one.fetch_offset, last + 1)]
    elif call.version >= 4:
        cut = max_bytes > 0 and one.fetch_offset < limit  # FetchDataInfo.firstEntryIncomplete: nothing is said
        row.aborted_transactions = [] if committed and not cut else None
    row.records = await _for_version(
        call.version, records, one.fetch_offset, call.node.offer.at_least(_CONVERTS_LAZILY))


async def _for_version(version: int, records: bytes, offset: int, lazily: bool) -> bytes:
    """The batches in the format that a version of Fetch carries (KafkaApis.maybeConvertFetchedData).

    offset: what was asked for; of batches that are converted and not compressed records before it are left out.
    lazily: no more bytes than there were before, but for a first batch that is larger (LazyDownConversionRecords).
    Others are answered between two batches that are converted.
    """
    if not records:
        return records
    if version >= _FIRST_WITH_BATCHES:
        return records
    magic = 1 if version >= _FIRST_WITH_MAGIC_1 else 0
    parts: list[bytes] = []
    for batch in read_batches(records):
        if batch.is_control:
            continue
        if parts:
            await asyncio.sleep(0)
        if batch.codec == "zstd" and parts and lazily:  # the next Fetch begins with it
            break
        if batch.codec == "zstd":
            raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        kept = [record for record in batch if batch.codec != "none" or record.offset >= offset]
        rows = [(record.timestamp, record.key, record.value) for record in kept]
        stamped = magic > 0 and batch.timestamp_type == "log_append"
        if rows:
            parts.append(build_batch(rows, magic=magic, codec=batch.codec, base_offset=kept[0].offset,
                                     timestamp_type="log_append" if stamped else "create"))
    converted = b"".join(parts)
    return converted[: max(len(records), len(parts[0]))] if lazily and parts else converted


