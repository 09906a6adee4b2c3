"""Logging in: PLAIN and SCRAM, as kwire.net and kafka-python do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kafka as kafka_python
import pytest

from kwire import messages
from kwire.fleet import Fleet
from kwire.net import AuthenticationError, BrokerConnectionError, connect_sync

pytestmark = pytest.mark.quick
SECRET = "marker-secret-7"


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet("3.9", sasl={"user": SECRET}, topics={"t": 1}) as fleet:
        yield fleet


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_logs_in(fleet: Fleet, mechanism: str) -> None:
    with connect_sync(fleet.bootstrap, sasl=(mechanism, "user", SECRET)) as connection:
        answer: Any = connection.send(messages.MetadataRequest(topics=None))
        assert [topic.name for topic in answer.topics] == ["t"]
    for user, password in (("user", "wrong"), ("nobody", SECRET)):
        with pytest.raises(AuthenticationError), connect_sync(fleet.bootstrap, sasl=(mechanism, user, password)):
            pass
    assert SECRET not in repr(fleet) + repr(fleet.events) + repr(fleet.nodes[0].users)


def test_nobody_gets_in_without(fleet: Fleet) -> None:
    with pytest.raises(BrokerConnectionError), connect_sync(fleet.bootstrap) as connection:
        connection.send(messages.MetadataRequest(topics=None))


def test_tokens_without_headers_of_old_releases() -> None:
    with Fleet("0.10.2", sasl={"user": SECRET}, topics={"t": 1}) as fleet:
        producer = kafka_python.KafkaProducer(
            bootstrap_servers=fleet.bootstrap, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
            sasl_plain_username="user", sasl_plain_password=SECRET)
        producer.send("t", b"a").get(20)
        producer.close()
        assert [record.value for record in fleet.records("t")] == [b"a"]
