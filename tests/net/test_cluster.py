"""Clusters of fake brokers: common versions, features, and which broker gets a request."""

from __future__ import annotations

import asyncio
import doctest
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kwire import LimitError, UnsupportedVersionError, messages, schema
from kwire.net import FEATURES, BrokerConnectionError, BrokerTimeoutError, Cluster, Feature, features
from kwire.net.api_versions import release_table
from tests.net.fake import HOST, Broker, Server, cluster, cluster_answer, of_release, run

pytestmark = pytest.mark.quick

METADATA = messages.MetadataRequest(topics=[])


class Started:
    """Brokers that know each other, for `async with`."""

    def __init__(self, *releases: str) -> None:
        self.brokers = cluster(*(of_release(release) for release in releases))

    async def __aenter__(self) -> Any:
        for broker in self.brokers:
            await broker.__aenter__()
        return self.brokers

    async def __aexit__(self, *_: object) -> None:
        for broker in self.brokers:
            await broker.__aexit__()


def asked(broker: Any) -> list[str]:
    return [request.name for request in broker.requests]


def test_kip_35s_example() -> None:
    done = doctest.testmod(features)
    assert done.attempted >= 4 and not done.failed


def test_versions_are_the_intersection_and_follow_a_renegotiation() -> None:
    async def work() -> None:
        async with Started("4.4", "2.8", "3.9") as brokers, Cluster(brokers[0].address) as cluster:
            assert cluster.brokers == [(i, HOST, broker.port, None) for i, broker in enumerate(brokers, 1)]
            assert cluster.versions["Fetch"] == (4, 12)
            assert "LeaderAndIsr" not in cluster.versions and "ShareFetch" not in cluster.versions
            assert cluster.can("transactions") and not cluster.can("consumer-groups")
            assert cluster.can(Feature("mine", needs={"Fetch": (12, 15)}, since="KIP-0"))
            assert not cluster.can(Feature("mine", needs={"Fetch": (13, 15)}))
            assert not cluster.can(Feature("mine", needs={"Fetch": (4, 11), "ShareFetch": (0, 9)}))
            brokers[1].ranges = of_release("4.4")  # upgraded
            brokers[1].drop()
            while cluster.connection(2).is_open:
                await asyncio.sleep(0.01)
            await cluster.send(METADATA, to=2)
            assert cluster.versions["Fetch"] == (4, 17)
            with pytest.raises(KeyError, match="share-groups"):
                cluster.can("magic")

    run(work())


def test_sends_to_a_node_the_controller_or_any() -> None:
    async def work() -> None:
        async with Started("4.4", "4.4") as brokers:
            for broker in brokers:
                broker.answer = cluster_answer(*brokers, controller=2)
            async with Cluster(f"{brokers[0].address},{brokers[1].address}") as cluster:
                for broker in brokers:
                    broker.requests.clear()
                await cluster.send(METADATA, to=1)
                assert (asked(brokers[0]), asked(brokers[1])) == (["Metadata"], [])
                await cluster.send(METADATA, to="controller")
                assert (len(brokers[0].requests), len(brokers[1].requests)) == (1, 1)
                for _ in range(4):
                    await cluster.send(METADATA)
                assert (len(brokers[0].requests), len(brokers[1].requests)) == (3, 3)
                with pytest.raises(BrokerConnectionError, match="no broker 7 in the cluster, which has: 1, 2"):
                    await cluster.send(METADATA, to=7)
                with pytest.raises(ValueError, match="to must be a node id"):
                    await cluster.send(METADATA, to="nobody")
                with pytest.raises(ValueError, match=r"not 'x+…$"):  # not all of it
                    await cluster.send(METADATA, to="x" * 100_000)

    run(work())


def test_lazy() -> None:
    """No broker is connected before it is needed, but for the one that names the others."""

    async def work() -> None:
        async with Started("4.4", "2.8", "3.9") as brokers, Cluster(brokers[0].address, lazy=True) as cluster:
            assert [broker.connections for broker in brokers] == [1, 0, 0]
            assert set(cluster.api_versions) == {1} and cluster.versions["Fetch"] == (4, 18)
            await cluster.send(METADATA, to=2)
            await cluster.refresh()
            assert [broker.connections for broker in brokers] == [1, 1, 0]
            assert cluster.versions["Fetch"] == (4, 12)
            brokers[2].drop()
            await brokers[2].__aexit__()
            with pytest.raises(BrokerConnectionError, match="refused"):
                await cluster.send(METADATA, to=3)

    run(work())


def test_old_brokers_do_not_tell_who_their_controller_is() -> None:
    async def work() -> None:
        async with Started("0.10.0") as brokers:
            brokers[0].ranges["Metadata"] = (0, 0)
            async with Cluster(brokers[0].address) as cluster:
                with pytest.raises(UnsupportedVersionError, match="Metadata version 1"):
                    await cluster.send(METADATA, to="controller")

    run(work())


def test_finds_the_brokers_that_came_when_one_has_gone() -> None:
    async def work() -> None:
        async with Started("4.4", "4.4", "4.4") as brokers:
            for broker in brokers:
                broker.answer = cluster_answer(*brokers[:2])
            async with Cluster(brokers[0].address) as cluster:
                for broker in brokers:
                    broker.answer = cluster_answer(brokers[0], brokers[2], controller=2)
                await brokers[1].__aexit__()
                while cluster.connection(2).is_open:
                    await asyncio.sleep(0.01)
                with pytest.raises(BrokerConnectionError, match="refused"):
                    await cluster.send(METADATA, to=2)
                await cluster.send(METADATA, to=2)  # which is another one now
                assert cluster.brokers[1].port == brokers[2].port
                assert asked(brokers[2]) == ["ApiVersions", "Metadata"]

    run(work())


def test_a_cluster_that_was_closed_stays_closed() -> None:
    async def work() -> None:
        async with Started("4.4", "4.4") as brokers:
            for broker in brokers:
                broker.answer = cluster_answer(*brokers)
            async with Cluster(brokers[0].address) as cluster:
                cluster._stale = True  # as after a request that failed
            with pytest.raises(BrokerConnectionError, match="the cluster was closed"):
                await cluster.send(METADATA)
            async with cluster:
                await cluster.send(METADATA)

    run(work())


def test_bootstrap_servers_are_tried_in_turn() -> None:
    with socket.create_server((HOST, 0)) as closed:
        dead = f"{HOST}:{closed.getsockname()[1]}"

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def work() -> None:
        async with Started("4.4") as brokers, Server(silent) as mute:
            async with Cluster(f"{dead},{brokers[0].address}") as cluster:
                assert len(cluster.brokers) == 1 and asked(brokers[0]) == ["ApiVersions", "Metadata"]
            with pytest.raises(BrokerConnectionError, match=f"{dead}.*refused.*{mute.address}"):
                async with Cluster(f"{dead},{mute.address}", timeout=2, probe_timeout=0.2):
                    pass
            with pytest.raises(BrokerConnectionError, match="no answer"):
                async with Cluster(f"{mute.address},{mute.address}", timeout=0.3, probe_timeout=0.2):
                    pass
            brokers[0].answer = lambda r: r.correlation_id.to_bytes(4, "big") + b"\0\x7f"
            with pytest.raises(BrokerConnectionError, match=f"{brokers[0].address}: invalid Metadata response"):
                async with Cluster(brokers[0].address):
                    pass
            row = messages.MetadataResponse.MetadataResponseBroker
            for host, port in (("a" * 300, 1), (HOST, -1), (HOST, 1 << 20), ("a\0b", 9092)):
                made_up = messages.MetadataResponse(brokers=[row(node_id=1, host=host, port=port)])
                brokers[0].answer = lambda _, made_up=made_up: made_up
                with pytest.raises(BrokerConnectionError):
                    async with Cluster(brokers[0].address, timeout=3):
                        pass
            brokers[0].answer = lambda _: messages.MetadataResponse()
            with pytest.raises(BrokerConnectionError, match="Metadata response without brokers"):
                async with Cluster(brokers[0].address):
                    pass

    run(work())


def test_a_broker_that_cannot_be_reached() -> None:
    async def work() -> None:
        async with Started("4.4", "4.4") as brokers:
            await brokers[1].__aexit__()
            with pytest.raises(BrokerConnectionError, match=f"{brokers[1].address}: connection refused"):
                async with Cluster(brokers[0].address):
                    pass
            async with Cluster(brokers[0].address, partial=True) as cluster:
                assert list(cluster.unreachable) == [2] and list(cluster.api_versions) == [1]
                await cluster.send(METADATA)
                await cluster.send(METADATA)

    run(work())


@asynccontextmanager
async def behind_another_address() -> AsyncIterator[tuple[Broker, Broker]]:
    """A bootstrap server that is not the broker's own address, as a load balancer's, and the one broker."""
    async with Broker(of_release("4.4")) as bootstrap, Broker(of_release("4.4")) as broker:
        bootstrap.answer = broker.answer = lambda _: messages.MetadataResponse(
            brokers=[ROW(node_id=1, host=HOST, port=broker.port)])
        yield bootstrap, broker


@pytest.mark.parametrize("partial", [False, True])
def test_brokers_that_are_back_are_found_again_where_none_could_be_reached(partial: bool) -> None:
    """A bootstrap server that is not a broker's own address, as a load balancer's, answers all the while."""
    async def work() -> None:
        async with (
            behind_another_address() as (bootstrap, broker), Cluster(bootstrap.address, partial=partial) as cluster
        ):
            await broker.__aexit__()
            for _ in range(3):
                with pytest.raises(BrokerConnectionError, match=broker.address):
                    await cluster.send(METADATA)
            await broker.__aenter__()
            await cluster.send(METADATA)
            assert not cluster.unreachable

    run(work())


@pytest.mark.parametrize("cancelled", [False, True])
def test_of_many_requests_one_looks_for_the_brokers_again(cancelled: bool) -> None:
    """Each had a connection to the bootstrap server. One that is cancelled while it looks leaves that to the next."""
    async def work() -> None:
        async with behind_another_address() as (bootstrap, broker), Cluster(bootstrap.address) as cluster:
            await broker.__aexit__()
            with pytest.raises(BrokerConnectionError):
                await cluster.send(METADATA)
            before = bootstrap.connections
            calls = [asyncio.create_task(cluster.send(METADATA)) for _ in range(50)]
            if cancelled:
                while bootstrap.connections == before:
                    await asyncio.sleep(0)
                calls[0].cancel()
            errors = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(error, BrokerConnectionError) for error in errors[cancelled:])
            assert bootstrap.connections - before == 1 + cancelled
            await broker.__aenter__()
            await asyncio.gather(*(cluster.send(METADATA) for _ in range(50)))
            assert bootstrap.connections - before <= 2 + cancelled

    run(work())


ROW = messages.MetadataResponse.MetadataResponseBroker


def naming(broker: Broker, *rows: Any) -> Any:
    """Metadata that names the broker and these."""
    return lambda _: messages.MetadataResponse(brokers=[ROW(node_id=0, host=HOST, port=broker.port), *rows])


def test_a_broker_that_throttles_does_not_stop_requests_to_others() -> None:
    """What is not sent says nothing of the brokers: they are not asked for again, which costs the quota more."""
    async def work() -> None:
        brokers = cluster(of_release("4.4"), of_release("4.4"))
        async with brokers[0], brokers[1]:
            plain = brokers[0].answer = brokers[1].answer = cluster_answer(*brokers)

            def throttling(request: Any) -> Any:
                answer = plain(request)
                if answer is not None:
                    answer.throttle_time_ms = 60_000
                return answer

            async with Cluster(str(brokers[1].address), timeout=5) as connected:
                first, second = (broker.id for broker in connected.brokers)
                brokers[0].answer = throttling
                message = messages.MetadataRequest(topics=[])
                await connected.send(message, first)
                waiting = asyncio.create_task(connected.send(message, first, timeout=60))
                await asyncio.sleep(0.01)
                before = [len(broker.requests) for broker in brokers]
                for _ in range(3):
                    with pytest.raises(BrokerTimeoutError, match="not sent within"):
                        await connected.send(message, first, timeout=0.05)
                    assert isinstance(await connected.send(message, second), messages.MetadataResponse)
                assert [len(broker.requests) for broker in brokers] == [before[0], before[1] + 3]
                assert not waiting.done()
                waiting.cancel()

    run(work())


def test_a_cluster_makes_one_tls_context(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    create = ssl.create_default_context
    monkeypatch.setattr("ssl.create_default_context", lambda: made.append(1) or create())
    cluster = Cluster("a:1", tls=True)
    other = cluster._keywords["tls"]
    assert len(made) == 1 and isinstance(other, ssl.SSLContext)


def test_a_cluster_refuses_metadata_of_too_many_brokers() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4")) as broker:
            broker.answer = naming(broker, *(ROW(node_id=n, host=HOST, port=1) for n in range(1, 10_001)))
            with pytest.raises(LimitError, match="too many brokers"):
                async with Cluster(broker.address, partial=True):
                    pass

    run(work())


def test_a_cluster_opens_a_few_brokers_at_a_time() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4")) as broker:
            broker.answer = naming(broker, *(ROW(node_id=n, host=HOST, port=1) for n in range(1, 300)))
            most = 0
            cluster = Cluster(broker.address, partial=True)
            opening = asyncio.create_task(cluster.open())
            while not opening.done():
                most = max(most, len(asyncio.all_tasks()))
                await asyncio.sleep(0)
            await opening
            assert most < 100 and len(cluster.unreachable) == 299
            await cluster.close()

    run(work())


def test_a_cluster_sorts_brokers_of_one_id_with_and_without_a_rack() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4")) as broker:
            more = [ROW(node_id=0, host=HOST, port=broker.port, rack=rack) for rack in ("a", None)]
            broker.answer = naming(broker, *more)
            async with Cluster(broker.address) as cluster:
                assert [one.rack for one in cluster.brokers] == [None, None, "a"]

    run(work())


def test_a_refresh_closes_the_connection_to_a_broker_that_names_only_others() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4")) as first, Broker(of_release("4.4")) as second:
            first.answer = cluster_answer(first)
            second.answer = cluster_answer(second)
            async with Cluster(first.address) as cluster:
                old = cluster.connection(cluster.brokers[0].id)
                first.answer = cluster_answer(second)
                await cluster.refresh()
                assert not old.is_open

    run(work())


@pytest.mark.parametrize("lazy", [False, True])
def test_of_two_nodes_at_one_address_one_moves(lazy: bool) -> None:
    """Each has a connection of its own: a lazy cluster could never send to the one that stayed."""
    async def work() -> None:
        async with Started("4.4", "4.4") as (there, elsewhere):
            row = messages.MetadataResponse.MetadataResponseBroker
            ports = {1: there.port, 2: there.port, 3: elsewhere.port}

            def answer(_: Any) -> Any:
                return messages.MetadataResponse(brokers=[
                    row(node_id=node, host=HOST, port=port) for node, port in ports.items()])

            there.answer = elsewhere.answer = answer
            async with Cluster(there.address, lazy=lazy) as cluster:
                for port in (there.port, elsewhere.port):
                    ports[2] = port
                    await cluster.refresh()  # the second time the third node is asked
                    for node in ports:
                        await cluster.send(METADATA, to=node)

    run(work())


def test_built_in_features_came_when_their_kips_did() -> None:
    first = {}
    for name, feature in FEATURES.items():
        assert feature.since and feature.since.startswith("KIP-") and feature.name == name
        for release in schema.releases(old=True):
            for kind in ("zkBroker", "broker"):
                table = {key: (span.low, span.high) for key, span in release_table(release, kind).items()}
                if name not in first and feature.usable(table):
                    first[name] = release
    came = {
        "timestamps": "0.10.0", "offsets-for-times": "0.10.1", "create-topics": "0.10.1", "headers": "0.11.0",
        "transactions": "0.11.0", "describe-configs": "0.11.0", "zstd": "2.1", "static-membership": "2.3",
        "fetch-from-followers": "2.3", "incremental-alter-configs": "2.3", "scram-users": "2.7", "topic-ids": "3.1",
        "feature-downgrades": "3.3", "consumer-groups": "3.8", "transactions-v2": "4.0", "share-groups": "4.1",
    }  # fmt: skip
    assert {name: first.get(name) for name in came} == came
    assert set(FEATURES) - set(first) == {"client-telemetry"}  # only brokers with a plugin offer it
