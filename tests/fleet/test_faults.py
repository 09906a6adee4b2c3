"""Faults by rule, as kwire.net and a plain socket see them."""

from __future__ import annotations

import socket
from typing import Any

import pytest

import kwire
from kwire import messages
from kwire.errors import KwireError, UnsupportedVersionError
from kwire.fleet import Fleet
from kwire.net import BrokerConnectionError, BrokerTimeoutError, connect_sync
from kwire.schema.error_codes import ErrorCode
from tests.fleet.test_apis import batch, fetch, produce

pytestmark = pytest.mark.quick
METADATA = messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name="t")])


def test_an_error_so_often(kafka: Fleet) -> None:
    kafka.cluster.create_topic("t", 1)
    fault = kafka.fault("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)
    with connect_sync(kafka.bootstrap) as connection:
        codes = [produce(connection, batch("a")).error_code for _ in range(4)]
    assert codes == [6, 6, 0, 0] and fault.hits == 2
    assert len(kafka.records("t")) == 2
    told = [event["faults"] for event in kafka.events if event.get("faults")]
    assert told == [[{"error": "NOT_LEADER_OR_FOLLOWER"}]] * 2


def test_by_topic_version_and_node(kafka: Fleet) -> None:
    kafka.cluster.create_topic("t", 1)
    kafka.cluster.create_topic("u", 1)
    kafka.fault("Fetch", error=ErrorCode.KAFKA_STORAGE_ERROR, topic="u")
    kafka.fault("Metadata", error="LEADER_NOT_AVAILABLE", version=9)
    kafka.fault("Metadata", error="LEADER_NOT_AVAILABLE", node=5)
    with connect_sync(kafka.bootstrap) as connection:
        assert fetch(connection, 0, topic="t").error_code == 0
        assert fetch(connection, 0, topic="u").error_code == 56
        codes = [connection.send(METADATA, version).topics[0].error_code for version in (8, 9)]
    assert codes == [0, 5]


def test_a_removed_rule_is_over(kafka: Fleet) -> None:
    fault = kafka.fault("Metadata", error="UNKNOWN_SERVER_ERROR")
    fault.remove()
    fault.remove()
    with connect_sync(kafka.bootstrap) as connection:
        assert connection.send(METADATA, 8).topics[0].error_code == 0
    assert fault.hits == 0


@pytest.mark.parametrize(("effect", "expected"), [
    ({"close": True}, BrokerConnectionError), ({"half": True}, BrokerConnectionError),
    ({"garbage": True}, KwireError), ({"silent": True}, BrokerTimeoutError),
    ({"correlation": 12345}, KwireError), ({"delay": 5.0}, BrokerTimeoutError),
])
def test_what_kwire_net_sees(kafka: Fleet, effect: dict[str, Any], expected: type[Exception]) -> None:
    kafka.cluster.create_topic("t", 1)
    kafka.fault("Produce", times=1, **effect)
    with connect_sync(kafka.bootstrap, timeout=0.5) as connection:
        with pytest.raises(expected):
            produce(connection, batch("a"))
        assert len(kafka.records("t")) == 1  # it was carried out
        assert produce(connection, batch("b")).base_offset == 1  # and the client goes on


def frames(connection: socket.socket, count: int) -> list[bytes]:
    reader, got = kwire.FrameReader(), []
    while len(got) < count:
        got += reader.feed(connection.recv(1 << 16))
    return got


def raw(kafka: Fleet) -> socket.socket:
    host, port = kafka.bootstrap.split(":")
    return socket.create_connection((host, int(port)), timeout=5)


def test_duplicate_and_reorder(kafka: Fleet) -> None:
    kafka.fault("Metadata", duplicate=True, times=1)
    request = [kwire.pack_frame(kwire.encode_request(METADATA, 8, correlation_id=at)) for at in range(4)]
    with raw(kafka) as connection:
        connection.sendall(request[0])
        assert [int.from_bytes(frame[:4], "big") for frame in frames(connection, 2)] == [0, 0]
        kafka.fault("Metadata", reorder=True, times=1)
        connection.sendall(request[1] + request[2])
        assert [int.from_bytes(frame[:4], "big") for frame in frames(connection, 2)] == [2, 1]


def test_probability_follows_the_seed() -> None:
    def outcomes(seed: int) -> list[int]:
        with Fleet("4.4", seed=seed) as fleet:
            fleet.fault("Metadata", error="UNKNOWN_SERVER_ERROR", probability=0.5)
            with connect_sync(fleet.bootstrap) as connection:
                return [connection.send(METADATA, 8).topics[0].error_code for _ in range(40)]

    assert outcomes(1) == outcomes(1)
    assert {-1, 0} == set(outcomes(1)) and outcomes(1) != outcomes(2)


def test_what_is_no_rule(kafka: Fleet) -> None:
    with pytest.raises(UnsupportedVersionError, match="Produze"):
        kafka.fault("Produze")
    with pytest.raises(ValueError, match="NOT_A_CODE"):
        kafka.fault("Produce", error="NOT_A_CODE")
    with pytest.raises(ValueError, match="often"):
        kafka.fault("Produce", often=3)
    with pytest.raises(ValueError, match="probability"):
        kafka.fault("Produce", probability=2.0)


def test_an_error_has_rows_for_every_api(kafka: Fleet) -> None:
    """A fault on any API, in each version of the newest release, is a response that can be encoded and has the code."""
    from kwire import schema
    from kwire.codec.frames import Request
    from kwire.fleet.refusals import refusal

    for row in schema.apis("4.4"):
        for version in range(row.min_version, row.max_version + 1):
            message = getattr(messages, row.request)()
            header = messages.RequestHeader(request_api_key=row.key, request_api_version=version)
            answer = refusal(Request(header, message, 2), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            frame = kwire.encode_response(answer, version)
            assert kwire.decode_response(frame, api=row.key, version=version).message == answer


@pytest.mark.parametrize("what", [
    {"times": "3"}, {"times": -1}, {"delay": "1"}, {"delay": -1}, {"delay": float("nan")}, {"slow": 0}, {"slow": 0.5},
    {"correlation": 1 << 40}, {"correlation": "1"}, {"probability": "x"}, {"probability": float("nan")}, {"silent": 1},
    {"version": "3"}, {"node": "1"}, {"client_id": 5}, {"topic": 5}, {"hits": 3}, {"_rules": []}, {"delay": None},
], ids=str)  # fmt: skip
def test_what_no_request_can_be_answered_by(kafka: Fleet, what: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        kafka.fault("Metadata", **what)
    with connect_sync(kafka.bootstrap) as connection:
        assert connection.send(METADATA)


@pytest.mark.parametrize(("port", "nodes"), [(-1, 1), (65_536, 1), (65_535, 2)])
def test_ports_that_are_none(port: int, nodes: int) -> None:
    with pytest.raises(ValueError, match="port must be 0 to"):
        Fleet("4.4", nodes, port=port)
