"""What nodes of a release offer is what brokers of that release said to kafka-broker-api-versions and to a socket."""

from __future__ import annotations

import socket

import pytest

import kwire
from kwire import messages, schema
from kwire.fleet import Fleet
from kwire.fleet.releases import offer
from tests.net.texts import ranges, texts

pytestmark = pytest.mark.quick
NEWEST_TOOL = ("4.3.0", "4.4.0")  # older tools do not list what they do not know
BROKERS = {broker: text for (tool, broker), text in texts().items() if tool in NEWEST_TOOL and "zk" not in broker}


@pytest.mark.parametrize("broker", BROKERS)
def test_ranges_are_those_of_the_broker(broker: str) -> None:
    assert ranges(BROKERS[broker]) == offer(broker).ranges


def asked(address: str, version: int, patience: float = 60) -> bytes:
    """The frame that answers ApiVersions, b"silent" if none came. patience: seconds."""
    host, port = address.split(":")
    request = messages.ApiVersionsRequest(client_software_name="t", client_software_version="1")
    with socket.create_connection((host, int(port)), timeout=patience) as connection:
        frame = kwire.encode_request(request, version, correlation_id=7)
        connection.sendall(kwire.pack_frame(frame))
        try:
            data = connection.recv(1 << 16)
        except TimeoutError:
            return b"silent"
    return data[4:]


@pytest.mark.parametrize("release", schema.releases(old=True))
def test_api_versions_of_every_release(release: str) -> None:
    with Fleet(release) as fleet:
        newest = schema.api("ApiVersions").max_version
        if release == "0.9.0":
            assert asked(fleet.bootstrap, 0, patience=1) == b"silent"
            return
        answer = kwire.decode_response(asked(fleet.bootstrap, 0), api="ApiVersions", version=0).message
        assert {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys} == offer(release).ranges
        if offer(release).ranges[18][1] < newest:
            refused = kwire.decode_response(asked(fleet.bootstrap, newest), api="ApiVersions", version=newest)
            assert refused.message.error_code == 35
            assert [row.api_key for row in refused.message.api_keys] == ([18] if offer(release).at_least("2.4") else [])


def test_levels_are_those_of_the_release() -> None:
    # as a real 4.3.0 answered, formatted with its defaults
    assert offer("4.3").levels == {
        "eligible.leader.replicas.version": 1, "group.version": 1, "kraft.version": 1, "metadata.version": 30,
        "share.version": 1, "streams.version": 1, "transaction.version": 2}
    assert offer("4.3").features["metadata.version"] == (7, 30)
    assert offer("2.8").levels == {}


def test_a_version_that_the_release_lacks_ends_the_connection() -> None:
    with Fleet("2.8") as fleet:
        host, port = fleet.bootstrap.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as connection:
            frame = kwire.encode_request(messages.MetadataRequest(topics=None), 12)
            connection.sendall(kwire.pack_frame(frame))
            assert connection.recv(10) == b""
