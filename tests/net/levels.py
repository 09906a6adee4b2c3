"""What a cluster can do at its finalized levels, asked of the broker itself: a probe a feature, and a transaction."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from typing import Any

import kwire
from kwire import UnsupportedVersionError, messages
from kwire.net import FEATURES, Cluster
from kwire.net.api_versions import FinalizedLevels
from kwire.net.connection import Connection

WAIT = 30  # seconds
TRANSIENT = (3, 14, 15, 16, 51)  # a topic or coordinator is not ready yet, or the transaction before has not ended


def consumer_heartbeat() -> Any:
    return messages.ConsumerGroupHeartbeatRequest(
        group_id="levels-consumers", member_id=str(uuid.uuid4()), rebalance_timeout_ms=10000,
        subscribed_topic_names=["levels"], topic_partitions=[],
    )  # fmt: skip


def share_heartbeat() -> Any:
    return messages.ShareGroupHeartbeatRequest(
        group_id="levels-share", member_id=str(uuid.uuid4()), subscribed_topic_names=["levels"]
    )


def streams_heartbeat() -> Any:
    request = messages.StreamsGroupHeartbeatRequest
    topology = request.Topology(subtopologies=[request.Subtopology(subtopology_id="0", source_topics=["levels"])])
    return request(
        group_id="levels-streams", member_id=str(uuid.uuid4()), rebalance_timeout_ms=10000, topology=topology,
        active_tasks=[], standby_tasks=[], warmup_tasks=[], process_id="p", client_tags=[],
    )  # fmt: skip


def remove_an_unknown_voter() -> Any:
    return messages.RemoveRaftVoterRequest(cluster_id=None, voter_id=99, voter_directory_id=uuid.uuid4())


def scram_user() -> Any:
    request = messages.AlterUserScramCredentialsRequest
    return request(upsertions=[request.ScramCredentialUpsertion(
        name="levels", mechanism=1, iterations=4096, salt=b"s" * 16, salted_password=b"p" * 32)])  # fmt: skip


def cordoned() -> Any:
    request = messages.IncrementalAlterConfigsRequest
    config = request.AlterableConfig(name="cordoned.log.dirs", config_operation=0, value="*")
    return request(
        resources=[request.AlterConfigsResource(resource_type=4, resource_name="1", configs=[config])],
        validate_only=True,
    )


# feature -> a request that a broker refuses where the feature cannot be used
PROBES: dict[str, Callable[[], Any]] = {
    "consumer-groups": consumer_heartbeat,
    "server-side-regex": consumer_heartbeat,
    "share-groups": share_heartbeat,
    "streams-groups": streams_heartbeat,
    "raft-voters": remove_an_unknown_voter,
    "scram-users": scram_user,
    "cordoned-log-dirs": cordoned,
    "unregister-controllers": lambda: messages.UnregisterControllerRequest(controller_id=99),
}
REFUSALS = ("error_code=35", "requires metadata.version")  # the second: of a config


async def until(ask: Callable[[], Any], code: Callable[[Any], int]) -> Any:
    """The first answer whose error code is not a transient one."""
    end = time.monotonic() + WAIT
    while code(answer := await ask()) in TRANSIENT:
        assert time.monotonic() < end, answer
        await asyncio.sleep(0.1)
    return answer


async def broker_can(cluster: Cluster, name: str) -> bool:
    """Whether the broker answers the probe without refusing it."""
    try:
        answer = await cluster.send(PROBES[name]())
    except UnsupportedVersionError:  # the broker does not offer the API
        return False
    return not any(refusal in str(answer) for refusal in REFUSALS)


async def check(cluster: Cluster) -> dict[str, bool]:
    """Compare can() with the broker's answers, for each feature that has a probe; what can be done."""
    can = {name: cluster.can(name) for name in PROBES if not _is_unknown_config(cluster, name)}
    found = {name: await broker_can(cluster, name) for name in can}
    assert can == found, cluster.levels
    return can


def _is_unknown_config(cluster: Cluster, name: str) -> bool:
    """Whether the probe sets a config that the release does not know: brokers take any."""
    (node, *_) = cluster.api_versions.values()
    newest = node.features.get("metadata.version", (0, 0))[1]
    return name == "cordoned-log-dirs" and newest < FEATURES[name].levels["metadata.version"]


async def create_topic(cluster: Cluster, name: str = "levels") -> None:
    request = messages.CreateTopicsRequest
    topic = request.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    answer = await cluster.send(request(topics=[topic], timeout_ms=20000), to="controller")
    assert answer.topics[0].error_code in (0, 36), answer


def produce(transactional_id: str, producer_id: int, producer_epoch: int, topic: str = "levels") -> Any:
    request = messages.ProduceRequest
    batch = kwire.build_batch(
        [(1_700_000_000_000, b"k", b"v")], producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    rows = [request.TopicProduceData(name=topic, partition_data=[request.PartitionProduceData(records=batch)])]
    return request(transactional_id=transactional_id, acks=-1, timeout_ms=10000, topic_data=rows)


async def coordinator(cluster: Cluster, key_type: int, key: str) -> int:
    """The node that coordinates a transactional id (key_type 1) or a group (0)."""
    request = messages.FindCoordinatorRequest(key=key, key_type=key_type)
    if cluster.versions["FindCoordinator"][1] >= 4:
        request = messages.FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
    answer = await until(
        lambda: cluster.send(request), lambda answer: (answer.coordinators or [answer])[0].error_code
    )
    return int((answer.coordinators or [answer])[0].node_id)


async def leader(cluster: Cluster, topic: str) -> int:
    """The leader of a topic's partition 0."""
    asked = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name=topic)])

    def code(answer: Any) -> int:
        (found,) = answer.topics
        there = found.error_code == 0 and found.partitions and found.partitions[0].leader_id >= 0
        return 0 if there else 3

    return int((await until(lambda: cluster.send(asked), code)).topics[0].partitions[0].leader_id)


async def begin(cluster: Cluster, name: str) -> tuple[int, int]:
    """A producer's id and epoch for a transactional id."""
    node = await coordinator(cluster, 1, name)
    request = messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=30000)
    started = await until(lambda: cluster.send(request, to=node), lambda answer: answer.error_code)
    assert started.error_code == 0, started
    return started.producer_id, started.producer_epoch


async def transaction(cluster: Cluster, topic: str = "levels") -> dict[str, int]:
    """A transaction with records and offsets, committed and read back; API -> the version that was sent."""
    name = f"transaction-{uuid.uuid4()}"
    group = f"group-of-{name}"
    producer_id, epoch = await begin(cluster, name)
    transactions, groups = await coordinator(cluster, 1, name), await coordinator(cluster, 0, group)
    sent: dict[str, int] = {}

    async def send(api: str, node: int, request: Any, code: Callable[[Any], int]) -> None:
        sent[api] = cluster.connection(node).version_for(request)
        answer = await until(lambda: cluster.send(request, to=node), code)
        assert code(answer) == 0, answer

    add = messages.AddPartitionsToTxnRequest
    await send(
        "AddPartitionsToTxn", transactions,
        add(v3_and_below_transactional_id=name, v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[add.AddPartitionsToTxnTopic(name=topic, partitions=(0,))]),
        lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
    )  # fmt: skip
    await send("Produce", await leader(cluster, topic), produce(name, producer_id, epoch, topic),
               lambda answer: answer.responses[0].partition_responses[0].error_code)  # fmt: skip
    await send("AddOffsetsToTxn", transactions,
               messages.AddOffsetsToTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch,
                                               group_id=group),
               lambda answer: answer.error_code)  # fmt: skip
    commit = messages.TxnOffsetCommitRequest
    partition = commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="m")
    await send(
        "TxnOffsetCommit", groups,
        commit(transactional_id=name, group_id=group, producer_id=producer_id, producer_epoch=epoch,
               topics=[commit.TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])]),
        lambda answer: answer.topics[0].partitions[0].error_code,
    )  # fmt: skip
    end = messages.EndTxnRequest(
        transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=True
    )
    await send("EndTxn", transactions, end, lambda answer: answer.error_code)
    assert await committed_offset(cluster, group, groups, topic) == 7
    return sent


async def committed_offset(cluster: Cluster, group: str, node: int, topic: str) -> int:
    """The committed offset of partition 0, once the transaction that has it is complete."""
    fetch = messages.OffsetFetchRequest
    row = fetch.OffsetFetchRequestTopics(name=topic, partition_indexes=(0,))
    request = fetch(groups=[fetch.OffsetFetchRequestGroup(group_id=group, topics=[row])], require_stable=True)
    if cluster.versions["OffsetFetch"][1] < 8:
        old = fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=(0,))
        request = fetch(group_id=group, topics=[old], require_stable=True)

    def partition(answer: Any) -> Any:
        return (answer.groups[0] if answer.groups else answer).topics[0].partitions[0]

    end = time.monotonic() + WAIT
    while True:
        found = partition(await cluster.send(request, to=node))
        if found.error_code in (88, *TRANSIENT) or found.committed_offset == -1:  # 88: UNSTABLE_OFFSET_COMMIT
            assert time.monotonic() < end, found
            await asyncio.sleep(0.1)
            continue
        assert found.error_code == 0, found
        return int(found.committed_offset)


async def takes_implicit_partitions(cluster: Cluster, where: str) -> bool:
    """Whether a transactional Produce v12 to a partition that nobody added to the transaction is taken (KIP-890)."""
    name = f"implicit-{uuid.uuid4()}"
    producer_id, epoch = await begin(cluster, name)
    pretended = Connection(where, cluster_levels=lambda: FinalizedLevels({"transaction.version": 2}, 1))
    async with pretended:
        answer = await until(
            lambda: pretended.send(produce(name, producer_id, epoch), 12),
            lambda answer: answer.responses[0].partition_responses[0].error_code,
        )
    return bool(answer.responses[0].partition_responses[0].error_code == 0)


async def update(cluster: Cluster, **levels: int) -> None:
    """Raise features to levels (names with _ for .), and wait until a broker tells of it."""
    request = messages.UpdateFeaturesRequest
    wanted = {name.replace("_", "."): level for name, level in levels.items()}
    rows = [request.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=1)
            for name, level in wanted.items()]  # fmt: skip
    answer = await cluster.send(request(feature_updates=rows, timeout_ms=20000), to="controller")
    assert answer.error_code == 0, answer
    end = time.monotonic() + WAIT
    while {name: cluster.levels.get(name) for name in wanted} != wanted:
        assert time.monotonic() < end, cluster.levels
        await asyncio.sleep(0.05)
        await cluster.refresh()
