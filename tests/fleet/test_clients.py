"""Unmodified clients on fleets of many releases: kafka-python, and kwire.net's own."""

from __future__ import annotations

import asyncio
from typing import Any

import kafka as kafka_python
import pytest

from kwire import messages
from kwire.fleet import Fleet
from kwire.net import Cluster, connect_sync

RELEASES = ("0.10.0", "0.10.2", "0.11.0", "1.1", "2.2", "2.8", "3.9", "4.4")


@pytest.mark.parametrize("release", RELEASES)
def test_kafka_python_produces_and_reads_in_a_group(release: str) -> None:
    with Fleet(release, 2, topics={"t": 3}) as fleet:
        producer = kafka_python.KafkaProducer(bootstrap_servers=fleet.bootstrap, compression_type="gzip")
        sent = {(b"k%d" % at, b"v%d" % at) for at in range(500)}
        for key, value in sorted(sent):
            producer.send("t", key=key, value=value)
        producer.flush(20)
        producer.close()
        read = consumed(fleet, 250) | consumed(fleet, 250)  # the second one goes on where the first one committed
        assert read == sent
        assert {(one.key, one.value) for at in range(3) for one in fleet.records("t", at)} == sent


def consumed(fleet: Fleet, most: int) -> set[tuple[bytes, bytes]]:
    consumer = kafka_python.KafkaConsumer(
        "t", bootstrap_servers=fleet.bootstrap, group_id="g", auto_offset_reset="earliest", enable_auto_commit=False,
        consumer_timeout_ms=20_000, max_poll_records=10)
    read = set()
    for record in consumer:
        read.add((record.key, record.value))
        if len(read) == most:
            break
    consumer.commit()
    consumer.close()
    return read


@pytest.mark.quick
@pytest.mark.kafka(release="3.9", nodes=3)
def test_the_fixture_and_its_marker(kafka: Fleet) -> None:
    assert [node.release for node in kafka.nodes] == ["3.9"] * 3
    with connect_sync(kafka.nodes[0].address) as connection:
        answer: Any = connection.send(messages.MetadataRequest(topics=None))
        assert [broker.node_id for broker in answer.brokers] == [1, 2, 3]


@pytest.mark.quick
def test_the_fixture_without_a_marker(kafka: Fleet) -> None:
    assert len(kafka.nodes) == 1 and kafka.nodes[0].release == "4.4"


@pytest.mark.quick
def test_an_async_fleet_of_mixed_releases() -> None:
    async def work() -> None:
        async with Fleet(releases=["2.2", "4.4"]) as fleet, Cluster(fleet.bootstrap) as cluster:
            assert cluster.versions["Fetch"] == (4, 10)
            assert not cluster.can("transactions-v2")

    asyncio.run(work())


@pytest.mark.quick
def test_levels_count_in_what_a_cluster_can() -> None:
    async def can(levels: dict[str, int]) -> bool:
        async with Fleet("4.4", levels=levels) as fleet, Cluster(fleet.bootstrap) as cluster:
            return bool(cluster.can("transactions-v2"))

    assert asyncio.run(can({})) and not asyncio.run(can({"transaction.version": 0}))
