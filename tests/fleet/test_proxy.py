"""The proxy, before a fleet: addresses are replaced, faults are as those of a fleet."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
import uuid
from pathlib import Path
from typing import Any

import kafka as kafka_python
import pytest
import trustme

import kwire
from kwire import messages, schema
from kwire.capture import read_capture
from kwire.fleet import Fleet, Proxy
from kwire.net import BrokerConnectionError, connect, connect_sync
from tests.fleet.test_apis import batch, fetch, produce
from tests.net import fake

pytestmark = pytest.mark.quick
RANGES = {"ApiVersions": (0, 3), "Metadata": (9, 9)}


@pytest.mark.parametrize("release", ["0.10.2", "2.8", "4.4"])
def test_a_client_never_sees_the_cluster_itself(release: str) -> None:
    with Fleet(release, 3, topics={"t": 6}) as fleet, Proxy(fleet.nodes[0].address) as proxy:
        producer = kafka_python.KafkaProducer(bootstrap_servers=proxy.bootstrap)
        for at in range(60):
            producer.send("t", key=b"%d" % at, value=b"v").get(20)
        producer.close()
        through = {event["node"] for event in proxy.events if event["api"] == "Produce"}
        assert through == {1, 2, 3}
        assert len([event for event in proxy.events if event["api"] == "Produce"]) == 60
        assert sum(len(fleet.records("t", at)) for at in range(6)) == 60
        here = {int(address.rpartition(":")[2]) for address in fleet.bootstrap.split(",")}
        with connect_sync(proxy.bootstrap) as connection:
            answer: Any = connection.send(messages.MetadataRequest(topics=None))
        assert len(answer.brokers) == 3 and not here & {broker.port for broker in answer.brokers}


def test_faults(kafka: Fleet) -> None:
    kafka.cluster.create_topic("t", 1)
    with Proxy(kafka.bootstrap) as proxy:
        refused = proxy.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", times=1, topic="t")
        with connect_sync(proxy.bootstrap, timeout=5) as connection:
            assert [produce(connection, batch("a")).error_code for _ in range(2)] == [6, 0]
            assert refused.hits == 1 and len(kafka.records("t")) == 1
            proxy.fault("Produce", close=True, times=1)
            with pytest.raises(BrokerConnectionError):
                produce(connection, batch("b"))
            assert len(kafka.records("t")) == 2
            assert fetch(connection, 0).high_watermark == 2


def test_answers_made_here_do_not_overtake(kafka: Fleet) -> None:
    with Proxy(kafka.bootstrap) as proxy:
        proxy.fault("ListGroups", delay=0.2)
        proxy.fault("DescribeGroups", error="COORDINATOR_LOAD_IN_PROGRESS")
        host, _, port = proxy.bootstrap.rpartition(":")
        with socket.create_connection((host, int(port)), 20) as client:
            for number, request in enumerate((messages.ListGroupsRequest(), messages.DescribeGroupsRequest())):
                client.sendall(kwire.pack_frame(kwire.encode_request(request, 0, correlation_id=number)))
            frames, answers = kwire.FrameReader(), []
            while len(answers) < 2:
                answers += frames.feed(client.recv(1000))
    assert [int.from_bytes(answer[:4], "big") for answer in answers] == [0, 1]


def test_a_cluster_that_is_not_there() -> None:
    with Fleet() as fleet:
        address = fleet.bootstrap
    with Proxy(address) as proxy, pytest.raises(BrokerConnectionError), connect_sync(proxy.bootstrap, timeout=2):
        pass
    for wrong in ("nowhere", "host:x", ":1", "host:70000", "host:0"):
        with pytest.raises(ValueError, match="expected HOST:PORT"):
            Proxy(wrong)


def test_it_records_what_clients_sent_and_got(tmp_path: Path) -> None:
    record = str(tmp_path / "taken")
    with Fleet("4.4", topics={"t": 1}) as fleet, Proxy(fleet.bootstrap, record=record) as proxy:
        proxy.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", times=1)
        with connect_sync(proxy.bootstrap, timeout=5) as connection:
            assert [produce(connection, batch("a")).error_code for _ in range(2)] == [6, 0]
    exchanges = list(read_capture(f"{record}.jsonl.gz"))
    assert [one.api for one in exchanges] == ["ApiVersions", "Produce", "Produce"]
    codes = [one.decode_response().message.responses[0].partition_responses[0].error_code for one in exchanges[1:]]
    assert codes == [6, 0]
    assert exchanges[0].connection.server == fleet.bootstrap


def test_acks_0_with_an_error_ends_the_connection(kafka: Fleet) -> None:
    kafka.cluster.create_topic("t", 1)
    kafka.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", node=1)
    rows = messages.ProduceRequest
    unacknowledged = rows(acks=0, timeout_ms=1000, topic_data=[rows.TopicProduceData(
        name="t", partition_data=[rows.PartitionProduceData(index=0, records=batch("a"))])])
    with Proxy(kafka.bootstrap) as proxy:
        proxy.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", times=1)
        for address in (proxy.bootstrap, kafka.bootstrap):
            host, _, port = address.rpartition(":")
            with socket.create_connection((host, int(port)), 20) as client:
                client.sendall(kwire.pack_frame(kwire.encode_request(unacknowledged, 12)))
                assert client.recv(100) == b""  # no answer that a client would take for that to its next request
        assert not kafka.records("t")


def test_tls_is_passed_on(tmp_path: Path) -> None:
    authority = trustme.CA()
    server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    with Fleet("4.4", tls=server) as fleet, Proxy(fleet.bootstrap, record=str(tmp_path / "t")) as proxy:
        host, _, port = proxy.bootstrap.rpartition(":")
        plain = socket.create_connection((host, int(port)), 5)
        with client.wrap_socket(plain, server_hostname=host) as secure:
            request = kwire.encode_request(messages.MetadataRequest(topics=[]), 8, correlation_id=7)
            secure.sendall(kwire.pack_frame(request))
            assert secure.recv(8)[4:] == b"\0\0\0\7"


def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, Proxy(f"127.0.0.1:{listener.getsockname()[1]}") as proxy:
        host, _, port = proxy.bootstrap.rpartition(":")
        with socket.create_connection((host, int(port)), 5) as client:
            broker, _ = listener.accept()
            with broker:
                broker.sendall(kwire.pack_frame(b"\0\0\0\7unasked"))
                assert client.recv(100) == b""


def test_versions_that_cannot_be_read_here_are_not_offered(kafka: Fleet) -> None:
    """Else a client of a later release would learn the brokers' own addresses."""
    node = kafka.nodes[0]
    ranges = {**node.offer.ranges, 3: (0, 99), 1: (4, 99)}
    node.offer = node.offer._replace(ranges=ranges)
    with Proxy(kafka.bootstrap) as proxy, connect_sync(proxy.bootstrap, timeout=5) as connection:
        answer: Any = connection.send(messages.ApiVersionsRequest(
            client_software_name="a", client_software_version="1"), 3)
    newest = {row.api_key: row.max_version for row in answer.api_keys}
    assert newest[3] == schema.message("MetadataRequest").valid_versions.high
    assert newest[1] == schema.message("FetchRequest").valid_versions.high


def test_ipv6() -> None:
    with Fleet("4.4", 2, topics={"t": 2}) as fleet, Proxy(fleet.nodes[0].address, "[::1]:0") as proxy:
        assert proxy.bootstrap.startswith("[::1]:")
        with connect_sync(proxy.bootstrap, timeout=5) as connection:
            answer: Any = connection.send(messages.MetadataRequest(topics=None))
        assert {broker.host for broker in answer.brokers} == {"::1"}
    with pytest.raises(TypeError, match="must be a str"):
        Proxy(9092)  # type: ignore[arg-type]


async def through(answers: Any, *requests: bytes, wait: float = 5) -> list[bytes]:
    """What a client gets of these frames from a Proxy before a broker with that conversation."""
    async with fake.Server(answers) as broker, Proxy(broker.address) as proxy:
        host, port = proxy.bootstrap.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"".join(map(kwire.pack_frame, requests)))
        frames, received = kwire.FrameReader(), []
        async with asyncio.timeout(wait):
            while data := await reader.read(1 << 16):
                received += frames.feed(data)
        writer.close()
        return received


def test_addresses_that_are_none() -> None:
    """Each gets a listener, and a connection to it is closed."""
    row = messages.MetadataResponse.MetadataResponseBroker
    hosts = [("127.0.0.1", 65_536), ("nul\0l", 1), ("x" * 300, 1), ("é" * 70, 1), ("", 1), ("127.0.0.1", 1)]
    metadata = messages.MetadataResponse(brokers=[
        row(node_id=node, host=host, port=port) for node, (host, port) in enumerate(hosts)])
    raised: list[Any] = []

    async def talk() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
        async with fake.Broker(RANGES, lambda _: metadata) as broker, Proxy(broker.address) as proxy:
            async with connect(proxy.bootstrap) as connection:
                answer = await connection.send(messages.MetadataRequest(topics=[]))
            for one in answer.brokers:
                with pytest.raises(BrokerConnectionError, match=r"closed the connection|reset by peer"):
                    await connect(f"{one.host}:{one.port}", timeout=10).open()

    asyncio.run(talk())
    assert not raised


def test_a_response_that_nobody_asked_for() -> None:
    raised: list[Any] = []

    async def answers(reader: Any, writer: Any) -> None:
        writer.write(kwire.pack_frame(b"\0\0\0\1abc"))
        await reader.read()

    async def talk() -> list[bytes]:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
        return await through(answers)

    assert asyncio.run(talk()) == [] and not raised


def test_the_addresses_of_applications_stay() -> None:
    """Those of Kafka Streams (KIP-1071) are no brokers, and clients choose them: nothing is opened for them."""
    answer = messages.StreamsGroupHeartbeatResponse
    endpoint = answer.EndpointToPartitions(user_endpoint=answer.Endpoint(host="10.1.2.3", port=8080))
    ranges = {**RANGES, "StreamsGroupHeartbeat": (0, 0)}

    async def talk() -> None:
        async with fake.Broker(ranges, lambda _: answer(partitions_by_user_endpoint=[endpoint])) as broker, (
                Proxy(broker.address)) as proxy, connect(proxy.bootstrap) as connection:
            got = await connection.send(messages.StreamsGroupHeartbeatRequest(group_id="g", member_id="m"))
            [row] = got.partitions_by_user_endpoint
            assert (row.user_endpoint.host, row.user_endpoint.port) == ("10.1.2.3", 8080)
            assert len(proxy._servers) == 1

    asyncio.run(talk())


def test_a_cluster_of_too_many_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.fleet.proxy.MOST_LISTENERS", 4)
    row = messages.MetadataResponse.MetadataResponseBroker
    metadata = messages.MetadataResponse(brokers=[row(node_id=at, host="127.0.0.1", port=1 + at) for at in range(9)])

    async def talk() -> None:
        said = list[str]()
        async with fake.Broker(RANGES, lambda _: metadata) as broker, Proxy(broker.address, say=said.append) as proxy:
            with pytest.raises(BrokerConnectionError, match="closed the connection"):
                async with connect(proxy.bootstrap) as connection:
                    await connection.send(messages.MetadataRequest(topics=[]))
            assert len(proxy._servers) == 4
        assert any("too many brokers for a Proxy" in line for line in said)

    asyncio.run(talk())


def test_requests_that_are_not_answered_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.fleet.proxy.MOST_WAITING", 10_000)
    request = kwire.encode_request(messages.MetadataRequest(topics=None), 9, client_id="c" * 1000)
    came: list[bytes] = []

    async def swallow(reader: Any, writer: Any) -> None:
        frames = kwire.FrameReader()
        while data := await reader.read(1 << 16):
            came.extend(frames.feed(data))

    async def talk() -> None:
        with pytest.raises(TimeoutError):
            await through(swallow, *[request] * 100, wait=0.5)

    asyncio.run(talk())
    assert len(came) == 4  # each counts for a KiB more, and is kept without its message


def test_clients_that_ask_at_once_get_the_same_listeners() -> None:
    """Each that was answered in one turn had its own: 400 clients and 3 brokers were "too many brokers"."""
    row = messages.MetadataResponse.MetadataResponseBroker
    metadata = messages.MetadataResponse(brokers=[row(node_id=at, host="127.0.0.1", port=1 + at) for at in range(3)])

    async def talk() -> None:
        together = asyncio.Barrier(20)

        async def answer(_: Any) -> Any:
            await together.wait()
            return metadata

        async def ask(where: str) -> set[int]:
            async with connect(where) as connection:
                return {one.port for one in (await connection.send(messages.MetadataRequest(topics=[]))).brokers}

        async with fake.Broker(RANGES, answer) as broker, Proxy(broker.address) as proxy:
            ports = await asyncio.gather(*(ask(proxy.bootstrap) for _ in range(20)))
            assert len(proxy._servers) == 4 and all(one == ports[0] for one in ports)

    asyncio.run(talk())


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_broker_that_names_the_proxy_is_reached_through_one_listener(name: str) -> None:
    """advertised.listeners says so: each Metadata led through one listener more, until there were too many."""
    row = messages.MetadataResponse.MetadataResponseBroker

    async def talk() -> None:
        def named(_: Any) -> Any:
            return messages.MetadataResponse(brokers=[row(node_id=1, host=name, port=proxy._listen.port)])

        async with fake.Broker(RANGES, named) as broker, Proxy(broker.address) as proxy:
            where = proxy.bootstrap
            for _ in range(5):
                async with connect(where) as connection:
                    [one] = (await connection.send(messages.MetadataRequest(topics=[]))).brokers
                    assert len(proxy._tasks) == 1
                    where = f"{one.host}:{one.port}"
            assert len(proxy._servers) == 2

    asyncio.run(talk())


@pytest.mark.parametrize(("listen", "target"), [
    ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "localhost"), ("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "0.0.0.0"),
    ("127.0.0.1", "[::ffff:127.0.0.1]")])
def test_a_proxy_of_itself_ends(listen: str, target: str) -> None:
    """It connected to itself until no descriptor was left."""
    async def talk() -> None:
        said = list[str]()
        with socket.create_server((listen, 0)) as free:
            port = free.getsockname()[1]
        async with Proxy(f"{target}:{port}", f"{listen}:{port}", say=said.append) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()
            await asyncio.sleep(0.1)
            assert not proxy._tasks
        assert said == [f"{target}:{port}: it is where the proxy itself listens"]

    asyncio.run(talk())


def test_a_proxy_of_itself_ends_in_a_loop_that_looks_names_up_by_itself() -> None:
    """As uvloop's: the addresses were not seen before it had connected."""
    class Loop(asyncio.SelectorEventLoop):
        async def getaddrinfo(self, *arguments: Any, **options: Any) -> Any:
            return await super().getaddrinfo(*arguments, **options)

    async def talk() -> None:
        said = list[str]()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        async with Proxy(f"localhost:{port}", f"127.0.0.1:{port}", say=said.append):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 10) == b""
            writer.close()
            await asyncio.sleep(0.2)
        assert 0 < len(said) < 5 and said[0] == f"localhost:{port}: it is where the proxy itself listens"

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(talk())


def test_names_of_many_topics_are_forgotten_in_linear_time() -> None:
    """Of 260,000 topic ids 160,000 were forgotten in 15 seconds, in which no one else was served."""
    row = messages.MetadataResponse.MetadataResponseTopic
    topics = [row(name="t", topic_id=uuid.UUID(int=1 + at)) for at in range(260_000)]
    ranges = {**RANGES, "Metadata": (12, 12)}

    async def talk() -> None:
        async with fake.Broker(ranges, lambda _: messages.MetadataResponse(topics=topics)) as broker, (
                Proxy(broker.address)) as proxy, connect(proxy.bootstrap) as connection:
            await connection.send(messages.MetadataRequest(topics=[]))
            assert len(proxy._names) == 100_000 and uuid.UUID(int=1) not in proxy._names

    before = time.process_time()
    asyncio.run(talk())
    assert time.process_time() - before < 9


def test_a_proxy_runs_once_at_a_time() -> None:
    with Fleet() as fleet:
        proxy = Proxy(fleet.bootstrap)
        with pytest.raises(ValueError, match="does not run"):
            proxy.__exit__(None, None, None)
        for _ in range(2):
            with proxy:
                with pytest.raises(ValueError, match="runs already"):
                    proxy.__enter__()
                with connect_sync(proxy.bootstrap, timeout=5) as connection:
                    assert connection.versions


def test_it_ends_while_a_client_does_not_read() -> None:
    raised: list[Any] = []

    async def answer(reader: Any, writer: Any) -> None:
        await reader.read(1 << 16)
        writer.write(kwire.pack_frame(bytes(32 << 20)))
        await reader.read()

    async def talk() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
        async with fake.Server(answer) as broker:
            async with Proxy(broker.address) as proxy:
                host, port = proxy.bootstrap.split(":")
                reader, writer = await asyncio.open_connection(host, int(port), limit=1)
                writer.write(kwire.pack_frame(kwire.encode_request(messages.ListGroupsRequest(), 0)))
                await reader.readexactly(2)
                writer.write_eof()  # the conversation ends: what is written already is waited for
                await asyncio.sleep(0.2)
                assert proxy._tasks
            assert not proxy._tasks
            writer.transport.abort()

    fake.run(talk())
    assert not raised


@pytest.mark.parametrize("ends", ["proxy", "client"])
def test_a_client_that_does_not_read_keeps_nothing(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.fleet.proxy._LAST_BYTES", 0.1)

    async def answer(reader: Any, writer: Any) -> None:
        await reader.read(1 << 16)
        writer.write(kwire.pack_frame(bytes(32 << 20)))
        await reader.read()

    async def talk() -> int:
        async with fake.Server(answer) as broker, Proxy(broker.address) as proxy:
            host, port = proxy.bootstrap.split(":")
            reader, writer = await asyncio.open_connection(host, int(port), limit=1)
            writer.write(kwire.pack_frame(kwire.encode_request(messages.ListGroupsRequest(), 0)))
            got = len(await reader.readexactly(2))
            if ends == "proxy":
                await proxy._close()
            else:
                writer.write_eof()
                await asyncio.wait(proxy._tasks)
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(1 << 20):
                    got += len(data)
            writer.transport.abort()
            return got

    assert fake.run(talk()) < 32 << 20
