"""The proxy, before a fleet: addresses are replaced, faults are as those of a fleet."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any

import kafka as kafka_python
import pytest
import trustme

import kwire
from kwire import messages, schema
from kwire.capture import read_capture
from kwire.fleet import Fleet, Proxy
from kwire.net import BrokerConnectionError, connect_sync
from tests.fleet.test_apis import batch, fetch, produce

pytestmark = pytest.mark.quick


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
