"""Kafka's own command-line tools print the same for a fleet and for a real broker."""

from __future__ import annotations

import re

import pytest

from kwire.fleet import Fleet
from tests.fleet.test_real import PROPERTIES
from tools.kafka import broker, tool

RUNS = [
    ("api-versions",), ("features", "describe"), ("topics", "--create", "--topic", "made", "--partitions", "2"),
    ("topics", "--create", "--topic", "made"), ("topics", "--describe", "--topic", "made"),
    ("topics", "--delete", "--topic", "nobody"), ("groups", "--describe", "--group", "nobody"),
    ("configs", "--entity-type", "topics", "--entity-name", "made", "--alter", "--add-config", "retention.ms=5"),
    ("configs", "--entity-type", "topics", "--entity-name", "made", "--describe"), ("txns", "list"),
]
BY_CHANCE = re.compile(r"TopicId: \S+|\(id: \d+ rack|Epoch: \d+")


def said(release: str, address: str) -> dict[str, tuple[int, str]]:
    """What was run -> (exit code, output without addresses and ids)."""
    found = {}
    for name, *arguments in RUNS:
        done = tool.run(release, name, "--bootstrap-server", address, *arguments)
        text = (done.stdout + done.stderr).decode().replace(address, "ADDRESS")
        found[f"{name} {' '.join(arguments)}"] = done.returncode, BY_CHANCE.sub("X", text)
    return found


@pytest.mark.soak
@pytest.mark.java
@pytest.mark.timeout(900)
@pytest.mark.parametrize("release", ["3.9.1", "4.3.0"])
def test_tools_print_what_they_print_for_a_real_broker(release: str) -> None:
    with Fleet(release) as fleet:
        ours = said(release, fleet.bootstrap)
    with broker.start(broker.Options(release, properties=PROPERTIES, heap="256m", c1=True)) as state:
        real = said(release, f"127.0.0.1:{state.ports[0]}")
    for run in ours:
        assert ours[run] == real[run], run
