"""Requests to a fleet, n and 2n of a kind, for tests.hostile.growth: none takes longer because of what was before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import kwire
from kwire import messages, schema
from kwire.fleet import Fleet
from kwire.fleet.apis import HANDLERS, Call
from kwire.fleet.coordinators.groups import CommittedOffset
from kwire.fleet.disk.coordinator_records import offset_rows, read_offsets
from kwire.fleet.logs.partition_log import PartitionLog

Ask = Callable[[str, int, Any], Any]


def asked(work: Callable[[Ask, int], Any]) -> Callable[[Path, int], Callable[[], Any]]:
    """A case: work(ask, n) at a fleet in memory; ask(api, version, message) is what the handler answers."""
    def make(_: Path, n: int) -> Callable[[], Any]:
        async def run() -> None:
            async with Fleet("4.4", topics={f"t{number}": 1 for number in range(4)}) as fleet:
                connection: Any = SimpleNamespace(host="h", close=lambda: None)

                def ask(name: str, version: int, message: Any) -> Any:
                    key = schema.api(name).key
                    request: Any = SimpleNamespace(
                        message=message, version=version, client_id="c", name=name, api_key=key)
                    return HANDLERS[key](Call(fleet.nodes[0], connection, request))

                found = work(ask, n)
                if found is not None:
                    await found

        return lambda: asyncio.run(run())

    return make


async def joins(ask: Ask, n: int) -> None:
    """Members of one classic group that all wait for each other."""
    request = messages.JoinGroupRequest
    protocols = [request.JoinGroupRequestProtocol(name="range", metadata=b"")]
    tasks = [asyncio.ensure_future(ask("JoinGroup", 3, request(
        group_id="g", session_timeout_ms=60_000, rebalance_timeout_ms=60_000, member_id="", protocol_type="consumer",
        protocols=protocols))) for _ in range(n)]  # fmt: skip
    for _ in range(4):
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def begin(ask: Ask, name: str) -> dict[str, int]:
    made = ask("InitProducerId", 4, messages.InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=60_000))
    request = messages.AddPartitionsToTxnRequest
    ask("AddPartitionsToTxn", 3, request(
        v3_and_below_transactional_id=name, v3_and_below_producer_id=made.producer_id,
        v3_and_below_producer_epoch=made.producer_epoch,
        v3_and_below_topics=[request.AddPartitionsToTxnTopic(name="t0", partitions=[0])]))
    return {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}


def end(ask: Ask, name: str, ours: dict[str, int]) -> None:
    ask("EndTxn", 3, messages.EndTxnRequest(transactional_id=name, committed=False, **ours))


def many_groups(ask: Ask, n: int) -> None:
    """As many groups with offsets, and transactions that have nothing to do with them."""
    request = messages.OffsetCommitRequest
    for number in range(n):
        ask("OffsetCommit", 8, request(group_id=f"g{number}", topics=[request.OffsetCommitRequestTopic(
            name="t0", partitions=[request.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)])]))
        end(ask, "x", begin(ask, "x"))


async def producers(ask: Ask, n: int) -> None:
    """As many producers, half of whose transactions stay open; what they wrote is fetched again, offset by offset."""
    request, wanted, listed = messages.ProduceRequest, messages.FetchRequest, messages.ListOffsetsRequest
    for number in range(n):
        ours = begin(ask, f"x{number}")
        data = kwire.build_batch([(number, b"k", b"v")], base_sequence=0, transactional=True, **ours)
        await ask("Produce", 11, request(transactional_id=f"x{number}", acks=-1, topic_data=[request.TopicProduceData(
            name="t0", partition_data=[request.PartitionProduceData(index=0, records=data)])]))
        if number % 2:
            end(ask, f"x{number}", ours)
    for number in range(n):
        await ask("Fetch", 11, wanted(max_wait_ms=0, max_bytes=100, isolation_level=1, session_epoch=-1, topics=[
            wanted.FetchTopic(topic="t0", partitions=[wanted.FetchPartition(
                partition=0, fetch_offset=number, partition_max_bytes=100)])]))
        await ask("ListOffsets", 5, listed(topics=[listed.ListOffsetsTopic(name="t0", partitions=[
            listed.ListOffsetsPartition(partition_index=0, timestamp=number)])]))


async def heartbeats(ask: Ask, n: int) -> None:
    """Members of one group of KIP-848 that is at rest, each of which is heard of as often."""
    request = messages.ConsumerGroupHeartbeatRequest
    epochs = {}
    for turn in range(2):
        for number in range(20):
            answer = await ask("ConsumerGroupHeartbeat", 0, request(
                group_id="g", member_id=f"m{number}", member_epoch=epochs.get(number, 0), rebalance_timeout_ms=1000,
                subscribed_topic_names=[f"t{one}" for one in range(4)], topic_partitions=[] if not turn else None))
            epochs[number] = answer.member_epoch
    for number in range(20 * n):
        await ask("ConsumerGroupHeartbeat", 0, request(
            group_id="g", member_id=f"m{number % 20}", member_epoch=epochs[number % 20], rebalance_timeout_ms=-1))


def topics(ask: Ask, n: int) -> None:
    """As many topics, created, asked for, with an offset of a group, and deleted one by one."""
    made, named, gone = messages.CreateTopicsRequest, messages.MetadataRequest, messages.DeleteTopicsRequest
    commit = messages.OffsetCommitRequest
    for number in range(n):
        ask("CreateTopics", 7, made(topics=[
            made.CreatableTopic(name=f"n{number}", num_partitions=1, replication_factor=1)]))
        ask("Metadata", 12, named(topics=[named.MetadataRequestTopic(name=f"n{number}")]))
        ask("OffsetCommit", 8, commit(group_id="g", topics=[commit.OffsetCommitRequestTopic(
            name=f"n{number}", partitions=[commit.OffsetCommitRequestPartition(partition_index=0)])]))
    for number in range(n):
        ask("DeleteTopics", 6, gone(topics=[gone.DeleteTopicState(name=f"n{number}")]))


def offsets_read(_: Path, n: int) -> Callable[[], Any]:
    """As many open transactions with an offset each, and tombstones: what a coordinator that starts has to read."""
    log = PartitionLog()
    for number in range(n):
        rows = offset_rows(f"g{number}", {("t", 0): CommittedOffset(1, -1, "", 0, 0)}, True, 0)
        log.append_own(rows, 0, 0, (number, 0))
        log.append_own(offset_rows(f"h{number}", {("t", 0): None}, True, 0), 0, 0)
    return lambda: read_offsets(log)


CASES = {
    "a fleet: members that join": (asked(joins), 2000), "a fleet: groups and transactions": (asked(many_groups), 1500),
    "a fleet: producers, fetched": (asked(producers), 1200), "a fleet: heartbeats": (asked(heartbeats), 200),
    "a fleet: topics": (asked(topics), 1000), "a fleet: offsets read": (offsets_read, 1500),
}  # fmt: skip
