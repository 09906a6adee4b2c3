"""The proxy, before a fleet: addresses are replaced, faults are as those of a fleet."""

from __future__ import annotations

from typing import Any

import kafka as kafka_python
import pytest

from kwire import messages
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
