"""Faults as kwire.net, kafka-python and Java's producer see them: on a fleet, and by a proxy before a real broker."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from typing import Any

import kafka as kafka_python
import kafka.errors
import pytest

from kwire.errors import KwireError
from kwire.fleet import Fleet, Proxy
from kwire.net import BrokerConnectionError, BrokerTimeoutError, connect_sync
from tests.fleet.clients import CLIENTS
from tests.fleet.test_apis import batch, produce
from tests.fleet.test_real import PROPERTIES
from tools.kafka import broker
from tools.kafka.maven import MissingTool
from tools.places import ROOT

REAL = "4.3.0"
LONG = 6  # seconds, longer than any client here waits
# what a fault of Produce does, what kwire.net raises, what kafka-python raises (in a tuple: what it may raise), the
# class that Java's producer gets
EXPECTED: list[tuple[dict[str, Any], Any, Any, str]] = [
    ({"error": "NOT_LEADER_OR_FOLLOWER"}, 6, kafka.errors.NotLeaderForPartitionError, "NotLeaderOrFollowerException"),
    ({"error": "UNKNOWN_TOPIC_OR_PARTITION"}, 3, kafka.errors.UnknownTopicOrPartitionError,
     "UnknownTopicOrPartitionException"),
    ({"error": "NOT_ENOUGH_REPLICAS"}, 19, kafka.errors.NotEnoughReplicasError, "NotEnoughReplicasException"),
    ({"error": "TOPIC_AUTHORIZATION_FAILED"}, 29, kafka.errors.TopicAuthorizationFailedError,
     "TopicAuthorizationException"),
    ({"error": "KAFKA_STORAGE_ERROR"}, 56, kafka.errors.KafkaStorageError, "KafkaStorageException"),
    ({"error": "INVALID_RECORD"}, 87, kafka.errors.InvalidRecordError, "InvalidRecordException"),
    ({"delay": 0.3}, 0, None, "ok"),
    ({"slow": 200}, 0, None, "ok"),
    ({"duplicate": True}, 0, (kafka.errors.CorrelationIdError,), "ok"),
    ({"delay": float(LONG)}, BrokerTimeoutError, kafka.errors.KafkaError, "TimeoutException"),
    ({"silent": True}, BrokerTimeoutError, kafka.errors.KafkaError, "TimeoutException"),
    ({"close": True}, BrokerConnectionError, kafka.errors.KafkaError, "NetworkException"),
    ({"half": True}, BrokerConnectionError, kafka.errors.KafkaError, "NetworkException"),
    ({"garbage": True}, KwireError, kafka.errors.KafkaError, "TimeoutException"),
    ({"correlation": 12345}, KwireError, kafka.errors.KafkaError, "TimeoutException"),
]


@pytest.fixture(scope="module")
def real() -> Iterator[str]:
    """The address of a real broker with the topic t."""
    with broker.start(broker.Options(REAL, properties=PROPERTIES, heap="256m", c1=True)) as state:
        address = f"127.0.0.1:{state.ports[0]}"
        kafka_python.KafkaAdminClient(bootstrap_servers=address).create_topics([
            kafka_python.admin.NewTopic("t", 1, 1)])
        yield address


@pytest.fixture(params=["fleet", "proxy"])
def place(request: pytest.FixtureRequest) -> Iterator[Fleet | Proxy]:
    """What has faults: a fleet, or a proxy before the real broker."""
    if request.param == "fleet":
        with Fleet(REAL, topics={"t": 1}) as fleet:
            yield fleet
    else:
        with Proxy(request.getfixturevalue("real")) as proxy:
            yield proxy


@pytest.mark.soak
@pytest.mark.java
@pytest.mark.parametrize(("effect", "expected"), [(row[0], row[1]) for row in EXPECTED], ids=str)
def test_kwire_net(place: Fleet | Proxy, effect: dict[str, Any], expected: Any) -> None:
    patience = 2 if expected is BrokerTimeoutError else 60
    with connect_sync(place.bootstrap, timeout=60, probe_timeout=30) as connection:
        fault = place.fault("Produce", times=1, **effect)
        if isinstance(expected, int):
            assert produce(connection, batch("a"), timeout=patience).error_code == expected
        else:
            with pytest.raises(expected):
                produce(connection, batch("a"), timeout=patience)
        assert fault.hits == 1
        assert produce(connection, batch("b")).error_code == 0  # and it goes on


@pytest.mark.soak
@pytest.mark.java
@pytest.mark.parametrize(("effect", "expected"), [(row[0], row[2]) for row in EXPECTED], ids=str)
def test_kafka_python(place: Fleet | Proxy, effect: dict[str, Any], expected: Any) -> None:
    producer = kafka_python.KafkaProducer(
        bootstrap_servers=place.bootstrap, retries=0, enable_idempotence=False, request_timeout_ms=2000,
        delivery_timeout_ms=2500)
    producer.partitions_for("t")
    fault = place.fault("Produce", times=1, **effect)
    sent = producer.send("t", b"a")
    if expected is None or isinstance(expected, tuple):
        with contextlib.suppress(*(expected or ())):
            sent.get(30)
    else:
        with pytest.raises(expected):
            sent.get(30)
    assert fault.hits == 1
    for _ in range(5):  # a response too many ends the connection, and what is sent then
        with contextlib.suppress(kafka.errors.KafkaError):
            producer.send("t", b"b").get(30)
            break
    else:
        pytest.fail("the producer does not go on")
    producer.close(1)


@pytest.mark.soak
@pytest.mark.java
def test_java(place: Fleet | Proxy) -> None:
    try:
        command = CLIENTS["java-4.3"].command()
    except MissingTool as missing:
        pytest.fail(str(missing), pytrace=False)
    with subprocess.Popen(
        [*command, place.bootstrap, REAL, "attempts", "t"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            seen = []
            for effect, _, _, _ in EXPECTED:
                fault = place.fault("Produce", times=1, **effect)
                process.stdin.write("\n")
                process.stdin.flush()
                seen.append((effect, process.stdout.readline().strip(), fault.hits))
            process.stdin.close()
            assert seen == [(effect, name, 1) for effect, _, _, name in EXPECTED]
        finally:
            process.kill()
