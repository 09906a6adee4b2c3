"""The same requests to a fleet and to a real broker get the same answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kwire import messages
from kwire.fleet import Fleet
from kwire.net import connect_sync
from tests.fleet.dialogue import Dialogue, play, steps
from tests.fleet.dialogue_consumer_groups import consumer_groups
from tests.fleet.dialogue_more import more
from tools.kafka import broker
from tools.kafka.releases import version as release_of

PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0", "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1",
    # a group is assigned at once: else 4.3 and later do so a moment later
    "group.consumer.assignment.interval.ms": "0", "group.consumer.assignor.offload.enable": "false",
}
# release -> steps whose answers differ, and why
DIFFERENT = {
    "4.3.0": (), "4.4.0": (), "3.9.1": (), "3.3.2": (), "4.2.0": (), "4.1.1": (), "4.0.1": (), "3.7.2": (),
    # ZooKeeper's own error; a commit without a generation by a member that is not there is refused
    "3.0.2": ("IncrementalAlterConfigs 1 of 2 ", "commit as nobody to alone"),
    "2.8.2": ("IncrementalAlterConfigs 1 of 2 ",),  # ZooKeeper's own error: Path must not end with / character
    # a transaction that has just begun is still being written: CONCURRENT_TRANSACTIONS
    "2.2.2": ("end with a new epoch", "end"),
    "2.0.1": ("end with a new epoch", "end", "produce in a transaction of nobody"),  # its NullPointerException
    "2.1.1": ("end with a new epoch", "end"),
    "2.4.1": ("end with a new epoch", "end"),
    "1.1.1": ("add partition 9",), "1.0.2": ("add partition 9",),
    "0.11.0.3": ("add partition 9", "delete t0", "delete t1"),  # topics take time to be deleted
    # a single message is converted without its compression; topics take time
    "0.10.2.2": ("fetch 0 at 0", "fetch 0 at 3", "delete t0"),
}
# whose errors have the same texts; those of UpdateFeatures may differ
WITH_TEXTS = ("2.8.2", "3.7.2", "3.9.1", "4.0.1", "4.1.1", "4.2.0", "4.3.0")
QUICKEST = "4.3.0"


def both(release: str, dialogue: Dialogue = steps, texts: bool = True) -> tuple[list[Any], list[Any]]:
    """What a fleet answers, and what a real broker does."""
    with Fleet(release) as fleet:
        ours = play(fleet.bootstrap, release, 1, texts, dialogue)
        assert [event for event in fleet.events if event["event"] == "failed"] == []
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer" if release_of(release) >= (3, 3) else (
        "kafka.security.authorizer.AclAuthorizer" if release_of(release) >= (2, 4) else
        "kafka.security.auth.SimpleAclAuthorizer")
    properties = {**PROPERTIES, "authorizer.class.name": authorizer, "super.users": "User:ANONYMOUS"}
    options = broker.Options(release, properties=properties, heap="256m", c1=True)
    with broker.start(options) as state:
        address = f"127.0.0.1:{state.ports[0]}"
        with connect_sync(address) as connection:
            nodes: Any = connection.send(messages.MetadataRequest(topics=None))
        real = play(address, release, nodes.brokers[0].node_id, texts, dialogue)
    assert [step for step, _ in ours] == [step for step, _ in real]
    assert len(ours) > 100
    return ours, real


@pytest.mark.java
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "release", [pytest.param(name, marks=() if name == QUICKEST else pytest.mark.soak) for name in DIFFERENT])
def test_answers_are_those_of_a_real_broker(release: str) -> None:
    ours, real = both(release, texts=release in WITH_TEXTS)
    assert list(differing(ours, real, DIFFERENT[release])) == []


@pytest.mark.java
@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("release", ["4.4.0", "4.3.0", "4.2.0", "4.1.1", "4.0.1", "3.9.1"])
def test_consumer_groups_are_those_of_a_real_broker(release: str) -> None:
    ours, real = both(release, consumer_groups)
    assert list(differing(ours, real, ())) == []


@pytest.mark.java
@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("release", ["4.4.0", "4.3.0", "3.9.1", "2.8.2"])
def test_further_answers_are_those_of_a_real_broker(release: str) -> None:
    ours, real = both(release, more)
    assert list(differing(ours, real, ())) == []


def differing(ours: list[Any], real: list[Any], known: Iterable[str]) -> Iterable[tuple[str, Any, Any]]:
    for (step, mine), (_, theirs) in zip(ours, real, strict=True):
        if mine != theirs and step.rsplit(" v", 1)[0] not in known:
            yield step, mine, theirs
