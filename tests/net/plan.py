"""KIP-97's test plan: what every broker supports works, what an old one lacks is refused before anything is sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Any

import pytest

import kwire
from kwire import UnsupportedVersionError, messages, schema
from kwire.net import Cluster

WAIT = 30  # seconds


def since(release: str, first: str) -> bool:
    """Whether a release is that one or newer."""
    order = schema.releases(old=True)
    return order.index(schema.release_name(release)) >= order.index(first)


async def lacking(api: str, work: Awaitable[Any]) -> None:
    """The work fails locally, with an error that names the API and the versions needed and offered."""
    with pytest.raises(UnsupportedVersionError) as caught:
        await work
    assert caught.value.api == api and caught.value.needed is not None
    assert api in str(caught.value)


async def until(ask: Any) -> Any:
    """The first result of ask() that is not None."""
    end = time.monotonic() + WAIT
    while (result := await ask()) is None:
        assert time.monotonic() < end, "the broker did not get there"
        await asyncio.sleep(0.1)
    return result


async def whole_plan(cluster: Cluster, release: str, topic: str) -> None:
    """Everything, on one cluster of one broker of that release."""
    await create_topic(cluster, release, topic)
    timestamp = 1_600_000_000_000
    await produce_and_fetch(cluster, release, topic, timestamp)
    await offsets(cluster, release, topic, timestamp)
    await configs(cluster, release, topic)
    await group(cluster, release, topic)
    await newest_features(cluster, release)
    await delete_topic(cluster, release, topic)


async def create_topic(cluster: Cluster, release: str, topic: str) -> None:
    request = messages.CreateTopicsRequest
    create = request(
        topics=[request.CreatableTopic(name=topic, num_partitions=1, replication_factor=1)], timeout_ms=20000
    )
    if since(release, "0.10.1"):
        assert cluster.can("create-topics")
        (created,) = (await cluster.send(create, to="controller")).topics
        assert created.error_code == 0, created
    elif since(release, "0.10.0"):
        assert not cluster.can("create-topics")
        await lacking("CreateTopics", cluster.send(create, to="controller"))
    else:
        await lacking("Metadata", cluster.send(create, to="controller"))
        await lacking("CreateTopics", cluster.send(create))

    async def leader() -> Any:  # where topics cannot be created, asking for one does
        asked = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name=topic)])
        (found,) = (await cluster.send(asked)).topics
        there = found.error_code == 0 and found.partitions and found.partitions[0].leader_id >= 0
        return found if there else None

    await until(leader)


async def produce_and_fetch(cluster: Cluster, release: str, topic: str, timestamp: int) -> None:
    magic = 2 if since(release, "0.11.0") else 1 if since(release, "0.10.0") else 0
    records = [(timestamp + i, b"key%d" % i, b"value%d" % i) for i in range(5)]

    def request(magic: int, codec: str = "none") -> Any:
        kind = messages.ProduceRequest
        batch = kwire.build_batch(records, magic=magic, codec=codec)
        wanted = kind.TopicProduceData(name=topic, partition_data=[kind.PartitionProduceData(records=batch)])
        return kind(acks=1, timeout_ms=10000, topic_data=[wanted])

    async def produced() -> Any:
        (answer,) = (await cluster.send(request(magic))).responses[0].partition_responses
        return answer if answer.error_code == 0 else None

    assert (await until(produced)).base_offset == 0
    assert cluster.can("headers") == since(release, "0.11.0")
    if not since(release, "0.11.0"):
        await lacking("Produce", cluster.send(request(2)))
    if not since(release, "2.1"):
        assert not cluster.can("zstd")
    if since(release, "0.11.0") and not since(release, "2.1"):
        await lacking("Produce", cluster.send(request(2, "zstd")))

    kind = messages.FetchRequest
    wanted = kind.FetchTopic(topic=topic, partitions=[kind.FetchPartition(partition=0, partition_max_bytes=1 << 20)])
    fetch = kind(max_wait_ms=1000, min_bytes=1, max_bytes=1 << 20, topics=[wanted])
    (partition,) = (await cluster.send(fetch)).responses[0].partitions
    assert (partition.error_code, partition.high_watermark) == (0, 5)
    found = [(r.offset, r.key, r.value) for batch in kwire.read_batches(partition.records) for r in batch]
    assert found == [(i, key, value) for i, (_, key, value) in enumerate(records)]
    times = [r.timestamp for batch in kwire.read_batches(partition.records) for r in batch]
    assert times == ([row[0] for row in records] if magic else [-1] * 5)


async def offsets(cluster: Cluster, release: str, topic: str, timestamp: int) -> None:
    def request(when: int, **more: Any) -> Any:
        kind = messages.ListOffsetsRequest
        partition = kind.ListOffsetsPartition(partition_index=0, timestamp=when)
        return kind(topics=[kind.ListOffsetsTopic(name=topic, partitions=[partition])], **more)

    async def asked(when: int, **more: Any) -> int:
        (found,) = (await cluster.send(request(when, **more))).topics[0].partitions
        assert found.error_code == 0, found
        return int(found.old_style_offsets[0] if found.old_style_offsets else found.offset)

    assert await asked(-1) == 5 and await asked(-2) == 0
    if since(release, "0.10.1"):  # KIP-97's own case
        assert cluster.can("offsets-for-times")
        assert await asked(timestamp + 3) == 3
    else:
        assert not cluster.can("offsets-for-times")
        await lacking("ListOffsets", cluster.send(request(timestamp + 3)))
    if since(release, "0.11.0"):
        assert await asked(-1, isolation_level=1) == 5
    else:
        await lacking("ListOffsets", cluster.send(request(-1, isolation_level=1)))
    if since(release, "3.0"):
        assert await asked(-3) == 4
    else:
        await lacking("ListOffsets", cluster.send(request(-3)))


async def configs(cluster: Cluster, release: str, topic: str) -> None:
    kind = messages.DescribeConfigsRequest
    wanted = kind.DescribeConfigsResource(resource_type=2, resource_name=topic, configuration_keys=None)
    request = kind(resources=[wanted])
    assert cluster.can("describe-configs") == since(release, "0.11.0")
    if not since(release, "0.11.0"):
        await lacking("DescribeConfigs", cluster.send(request))
        return
    (found,) = (await cluster.send(request)).results
    values = {row.name: row.value for row in found.configs}
    assert found.error_code == 0 and values["cleanup.policy"] == "delete"


async def group(cluster: Cluster, release: str, topic: str) -> None:
    name = f"group-of-{topic}"

    async def coordinator() -> Any:
        found = await cluster.send(messages.FindCoordinatorRequest(key=name))
        return found if found.error_code == 0 else None

    node = (await until(coordinator)).node_id
    join = messages.JoinGroupRequest
    protocol = join.JoinGroupRequestProtocol(name="range", metadata=b"")
    request = join(group_id=name, session_timeout_ms=10000, protocol_type="consumer", protocols=[protocol])
    if since(release, "0.10.1"):
        request.rebalance_timeout_ms = 10000

    async def join_it() -> Any:
        found = await cluster.send(request, to=node)
        # 14 to 16: the coordinator is not ready yet; 79: here is your member id, join again
        assert found.error_code in (0, 14, 15, 16, 79), found
        request.member_id = found.member_id
        return found if found.error_code == 0 else None

    joined = await until(join_it)
    member = joined.member_id
    assert joined.leader == member
    sync = messages.SyncGroupRequest
    mine = sync.SyncGroupRequestAssignment(member_id=member, assignment=b"all")
    synced = await cluster.send(
        sync(group_id=name, generation_id=joined.generation_id, member_id=member, protocol_type="consumer",
             protocol_name="range", assignments=[mine]), to=node,
    )  # fmt: skip
    assert (synced.error_code, synced.assignment) == (0, b"all"), synced
    beat = messages.HeartbeatRequest(group_id=name, generation_id=joined.generation_id, member_id=member)
    assert (await cluster.send(beat, to=node)).error_code == 0

    commit = messages.OffsetCommitRequest
    partition = commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=3, committed_metadata="m")
    committed = await cluster.send(
        commit(group_id=name, generation_id_or_member_epoch=joined.generation_id, member_id=member,
               topics=[commit.OffsetCommitRequestTopic(name=topic, partitions=[partition])]), to=node,
    )  # fmt: skip
    assert committed.topics[0].partitions[0].error_code == 0
    fetch = messages.OffsetFetchRequest
    one = fetch(group_id=name, topics=[fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=(0,))])
    if since(release, "2.0"):
        one.require_stable = False
    (found,) = (await cluster.send(one, to=node)).topics[0].partitions
    assert (found.error_code, found.committed_offset, found.metadata) == (0, 3, "m")
    groups = await cluster.send(messages.ListGroupsRequest(), to=node)
    assert name in [row.group_id for row in groups.groups]
    left = await cluster.send(messages.LeaveGroupRequest(group_id=name, member_id=member), to=node)
    assert left.error_code == 0


async def newest_features(cluster: Cluster, release: str) -> None:
    beat = messages.ConsumerGroupHeartbeatRequest(group_id="g", member_id="AAAAAAAAAAAAAAAAAAAAAA", member_epoch=0)
    assert cluster.can("consumer-groups") == since(release, "4.0")
    assert cluster.can("share-groups") == since(release, "4.2")
    if not since(release, "3.7"):
        await lacking("ConsumerGroupHeartbeat", cluster.send(beat))
    if not since(release, "2.4"):
        await lacking("AlterPartitionReassignments", cluster.send(messages.AlterPartitionReassignmentsRequest()))
    if since(release, "2.8"):
        found = await cluster.send(messages.DescribeClusterRequest())
        assert [row.broker_id for row in found.brokers] == [broker.id for broker in cluster.brokers]
    else:
        await lacking("DescribeCluster", cluster.send(messages.DescribeClusterRequest()))


async def delete_topic(cluster: Cluster, release: str, topic: str) -> None:
    delete = messages.DeleteTopicsRequest(topic_names=[topic], timeout_ms=20000)
    if since(release, "0.10.1"):
        (deleted,) = (await cluster.send(delete, to="controller")).responses
        assert deleted.error_code == 0, deleted
    else:
        await lacking("DeleteTopics", cluster.send(delete))
