"""ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any

from kwire import messages
from kwire.fleet.apis.fetch import READ_COMMITTED
from kwire.fleet.apis.registry import Call, answered, handles
from kwire.fleet.cluster import Partition
from kwire.fleet.errors import ApiError
from kwire.fleet.logs.partition_log import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    PartitionLog,
)
from kwire.schema import api_keys
from kwire.schema.error_codes import ErrorCode

_SPECIAL = {  # special timestamp -> first version
    LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
_DROPS_EMPTY_TOPICS = "4.0"
_REFUSES_TIMESTAMPS = "3.9"  # those below 0 that are not special in a version; before, what none has is as any other
_ONE_ROW = "4.0"  # for a partition that is asked for twice


@handles("ListOffsets")
async def list_offsets(call: Call) -> Any:
    """Offsets by timestamp, or of the ends (ListOffsetsRequest's special timestamps).

    Others are answered after each partition in which records are looked for: one batch may have 60 MiB of them.
    """
    response = messages.ListOffsetsResponse

    def row_of(one: Any) -> Any:
        return response.ListOffsetsPartitionResponse(partition_index=one.partition_index)

    times = Counter((topic.name, one.partition_index) for topic in call.message.topics for one in topic.partitions)

    async def partitions(topic: Any) -> list[Any]:
        def fill(one: Any, row: Any) -> None:
            if call.version and times[topic.name, one.partition_index] > 1:  # ListOffsetsRequest.duplicatePartitions
                raise ApiError(ErrorCode.INVALID_REQUEST)
            _list(call, topic.name, one, row)

        once = {one.partition_index: one for one in topic.partitions}
        if call.version == 0:  # which answers with many offsets each time: once in all rows of the topic
            once = {index: one for index, one in once.items() if times.pop((topic.name, index), 0)}
        only_once = call.version == 0 or call.node.offer.at_least(_ONE_ROW)
        rows = []
        for one in once.values() if only_once else topic.partitions:
            rows += answered([one], row_of, fill)
            if one.timestamp not in (LATEST, EARLIEST):
                await asyncio.sleep(0)
        return rows

    return response(topics=[
        response.ListOffsetsTopicResponse(name=topic.name, partitions=await partitions(topic))
        for topic in call.message.topics if topic.partitions or not call.node.offer.at_least(_DROPS_EMPTY_TOPICS)])


def _list(call: Call, topic: str, one: Any, row: Any) -> None:
    since, newest = _SPECIAL.get(one.timestamp), call.node.offer.usable[api_keys.LIST_OFFSETS][1]
    special = since is not None and since <= newest
    if call.node.offer.at_least(_REFUSES_TIMESTAMPS) and one.timestamp < 0 and (
            since is None or call.version < since):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    partition = call.cluster.partition(topic, one.partition_index)
    call.cluster.leads(call.node, partition, one.current_leader_epoch if call.version >= 4 else -1)
    if call.version == 0:
        row.old_style_offsets = tuple(_old_offsets(partition.log, one, call.cluster.clock.now_ms()))
        return
    row.offset, row.timestamp, epoch = _find(call, partition, one.timestamp, special)
    if call.version >= 4 and call.node.offer.at_least("2.2"):
        row.leader_epoch = epoch


def _find(call: Call, partition: Partition, timestamp: int, special: bool) -> tuple[int, int, int]:
    log = partition.log
    committed = call.version >= 2 and call.message.isolation_level == READ_COMMITTED
    if timestamp == LATEST:
        return log.last_stable_offset if committed else log.end_offset, -1, partition.leader_epoch
    offset, found, epoch = log.find(timestamp) if special else log.first_at(timestamp, log.start_offset)
    if special and timestamp in (EARLIEST, EARLIEST_LOCAL) and epoch < 0:
        epoch = partition.leader_epoch  # which began where the log did
    if committed and offset >= log.last_stable_offset and not (special and timestamp in (EARLIEST, EARLIEST_LOCAL)):
        return -1, -1, -1
    return offset, found, epoch


def _old_offsets(log: PartitionLog, one: Any, now: int) -> list[int]:
    """Version 0: offsets at which segments begin that are not younger than the time, newest first.

    All segments have the time of the last one. Source: UnifiedLog.legacyFetchOffsetsBefore.
    """
    bases = [max(segment.base_offset, log.start_offset) for segment in log.store.segments] or [log.start_offset]
    entries = [(base, log.changed_at if log.changed_at >= 0 else now) for base in bases]
    if log.end_offset > log.start_offset:
        entries.append((log.end_offset, now))
    if one.timestamp == EARLIEST:
        entries = entries[:1]
    elif one.timestamp != LATEST:
        entries = [entry for entry in entries if entry[1] <= one.timestamp]
    return [offset for offset, _ in reversed(entries)][: max(0, one.max_num_offsets)]


@handles("OffsetForLeaderEpoch")
def offset_for_leader_epoch(call: Call) -> Any:
    """Where leader epochs ended (KIP-101, KIP-320)."""
    response = messages.OffsetForLeaderEpochResponse

    def row_of(one: Any) -> Any:
        return response.EpochEndOffset(partition=one.partition)

    return response(topics=[
        response.OffsetForLeaderTopicResult(
            topic=topic.topic, partitions=answered(topic.partitions, row_of, partial(_end_of_epoch, call, topic.topic)))
        for topic in call.message.topics])


def _end_of_epoch(call: Call, topic: str, one: Any, row: Any) -> None:
    partition = call.cluster.partition(topic, one.partition)
    call.cluster.leads(call.node, partition, one.current_leader_epoch if call.version >= 2 else -1)
    epoch, row.end_offset = partition.log.end_of_epoch(one.leader_epoch, partition.leader_epoch)
    if call.version >= 1:
        row.leader_epoch = epoch
