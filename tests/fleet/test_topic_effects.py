"""What configs of a topic change for producers and consumers, as brokers of 2.8.2, 3.6.2, 3.7.2 and 3.9.1 answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire import build_batch, read_batches
from kwire import messages as M
from kwire.fleet import Fleet, ManualClock
from kwire.net import connect
from kwire.schema.error_codes import ErrorCode as E
from tests.fleet.dialogue import Client

pytestmark = pytest.mark.quick


def produce(client: Client, codec: str = "none", acks: int = -1) -> Any:
    kind = M.ProduceRequest
    records = build_batch([(1_700_000_000_000, b"k", b"v" * 100)], codec=codec)
    [topic] = client.ask(kind(acks=acks, timeout_ms=1000, topic_data=[kind.TopicProduceData(
        name="t", partition_data=[kind.PartitionProduceData(index=0, records=records)])]), 7).message.responses
    [row] = topic.partition_responses
    return row.error_code, row.base_offset


def fetch(client: Client, version: int, offset: int = 0) -> Any:
    kind = M.FetchRequest
    more = {"max_bytes": 1 << 20} if version >= 3 else {}
    [topic] = client.ask(kind(max_wait_ms=1, min_bytes=0, **more, topics=[kind.FetchTopic(
        topic="t", partitions=[kind.FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)])]), version).message.responses
    [row] = topic.partitions
    return row.error_code, [record.offset for batch in read_batches(row.records or b"") for record in batch]


@pytest.fixture(params=["2.8", "3.9"])
def release(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def fleet(release: str) -> Iterator[Fleet]:
    with Fleet(release) as fleet:
        yield fleet


def create(fleet: Fleet, replicas: int = 1, **configs: str) -> None:
    fleet._in_loop(lambda: fleet.cluster.create_topic(
        "t", 1, replicas, {name.replace("_", "."): value for name, value in configs.items()}))


def test_old_fetches_where_nothing_is_converted(fleet: Fleet) -> None:
    create(fleet, message_downconversion_enable="false")
    client = Client(fleet.bootstrap)
    assert produce(client) == (0, 0)
    for version in range(4):
        assert fetch(client, version) == (E.UNSUPPORTED_VERSION, [])
    assert fetch(client, 4) == (0, [0])
    client.socket.close()


def test_old_fetches_get_what_is_before_a_batch_that_cannot_be_converted(fleet: Fleet) -> None:
    create(fleet)
    client = Client(fleet.bootstrap)
    produce(client, "gzip"), produce(client, "zstd"), produce(client)
    for version in range(4):
        assert fetch(client, version) == (0, [0])
        assert fetch(client, version, 1) == (E.UNSUPPORTED_COMPRESSION_TYPE, [])
        assert fetch(client, version, 2) == (0, [2])
    client.socket.close()


@pytest.mark.parametrize(("release", "code"), [
    ("2.4", E.NOT_ENOUGH_REPLICAS), ("3.6", E.NOT_ENOUGH_REPLICAS), ("3.7", 0), ("4.4", 0)])
def test_more_replicas_in_sync_than_there_are(fleet: Fleet, code: int) -> None:
    create(fleet, min_insync_replicas="2")
    client = Client(fleet.bootstrap)
    assert [produce(client), produce(client, acks=1)] == [(code, -1 if code else 0), (0, 0 if code else 1)]
    client.socket.close()


def test_too_few_replicas_in_sync(release: str) -> None:
    with Fleet(release, nodes=3) as fleet:
        create(fleet, 3, min_insync_replicas="2")
        leader = fleet._in_loop(lambda: fleet.cluster.topics["t"].partitions[0].leader)
        others = [node for node in fleet.nodes if node.id != leader]
        client = Client(fleet.nodes[leader - 1].address)
        others[0].stop()
        assert produce(client) == (0, 0)
        others[1].stop()
        assert produce(client) == (E.NOT_ENOUGH_REPLICAS, -1)
        assert produce(client, acks=1) == (0, 1)
        others[0].start()
        assert produce(client) == (0, 2)
        client.socket.close()


@pytest.mark.parametrize("data", [False, True], ids=["memory", "disk"])
def test_a_fetch_waits_for_a_topic_that_was_made_again(tmp_path: Path, data: bool) -> None:
    """Deleted and made again in one turn: the fetch waits for the new log, whose first record ends the wait."""
    async def run() -> Any:
        fleet = Fleet("4.3", data=tmp_path / "data" if data else None, topics={"t": 1}, clock=ManualClock())
        async with fleet, connect(fleet.bootstrap) as connection:
            kind = M.FetchRequest
            waits = asyncio.ensure_future(connection.send(kind(
                max_wait_ms=60_000, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[kind.FetchTopic(
                    topic="t", partitions=[kind.FetchPartition(
                        partition=0, fetch_offset=0, partition_max_bytes=1 << 20)])]), 12))
            while not fleet.cluster.partition("t", 0).log.watchers:
                await asyncio.sleep(0.001)
            fleet.cluster.delete_topic(fleet.cluster.topic("t"))
            log = fleet.cluster.create_topic("t", 1).partitions[0].log
            while not log.watchers and not waits.done():
                await asyncio.sleep(0.001)
            log.append(list(read_batches(build_batch([(1_700_000_000_000, b"k", b"v")]))), 0, 1_700_000_000_000)
            return await asyncio.wait_for(waits, 10)

    [row] = asyncio.run(asyncio.wait_for(run(), 30)).responses[0].partitions
    assert row.error_code == 0 and [one.value for batch in read_batches(row.records) for one in batch] == [b"v"]
