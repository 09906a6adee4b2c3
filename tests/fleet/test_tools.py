"""Kafka's own command-line tools print the same for a fleet and for a real broker.

Not compared: kafka-configs --describe of a broker, whose defaults a fleet does not have.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kwire.fleet import Fleet
from tests.fleet.test_real import PROPERTIES
from tools.kafka import broker, tool

FILES = {  # what the tools read, as JSON
    "OFFSETS": {"version": 1, "partitions": [{"topic": "one", "partition": 0, "offset": 1}]},
    "BEYOND": {"version": 1, "partitions": [{"topic": "one", "partition": 0, "offset": 99}]},
    "ELECTION": {"partitions": [{"topic": "made", "partition": 0}]},
    "NO_ELECTION": {"partitions": [{"topic": "nobody", "partition": 0}]},
    "REASSIGNMENT": {"version": 1, "partitions": [{"topic": "made", "partition": 0, "replicas": [1]}]},
    "TO_NOBODY": {"version": 1, "partitions": [{"topic": "made", "partition": 0, "replicas": [9]}]},
    "TOPICS": {"version": 1, "topics": [{"topic": "made"}]},
}
IP_RATE = "connection_creation_rate=5"
SCRAM = "SCRAM-SHA-256=[iterations=8192,password=x]"
MADE = ("--entity-type", "topics", "--entity-name", "made")
GROUP = ("--group", "cg", "--topic", "one")
RUNS = [
    ("api-versions",), ("features", "describe"), ("features", "upgrade", "--feature", "no.such=1"),
    ("features", "downgrade", "--feature", "metadata.version=1"), ("cluster", "cluster-id"),
    ("topics", "--create", "--topic", "made", "--partitions", "2"),
    ("topics", "--create", "--topic", "made"), ("topics", "--describe", "--topic", "made"),
    ("topics", "--delete", "--topic", "nobody"), ("topics", "--create", "--topic", "gone"),
    ("topics", "--delete", "--topic", "gone"), ("topics", "--alter", "--topic", "made", "--partitions", "4"),
    ("topics", "--alter", "--topic", "made", "--partitions", "1"), ("topics", "--list"), ("topics", "--describe"),
    ("configs", *MADE, "--alter", "--add-config", "retention.ms=5"), ("configs", *MADE, "--describe"),
    ("configs", *MADE, "--alter", "--add-config", "no.such=5"), ("configs", *MADE, "--describe", "--all"),
    ("configs", *MADE, "--alter", "--delete-config", "retention.ms"), ("topics", "--describe", "--topic", "made"),
    ("configs", "--entity-type", "brokers", "--entity-name", "1", "--alter", "--add-config", "log.cleaner.threads=2"),
    ("configs", "--entity-type", "brokers", "--entity-default", "--describe"),
    ("configs", "--entity-type", "users", "--describe"), ("configs", "--entity-type", "clients", "--describe"),
    ("configs", "--entity-type", "users", "--entity-name", "a", "--alter", "--add-config", "producer_byte_rate=5"),
    ("configs", "--entity-type", "users", "--entity-name", "a", "--describe"),
    ("configs", "--entity-type", "ips", "--entity-name", "1.2.3.4", "--alter", "--add-config", IP_RATE),
    ("configs", "--entity-type", "ips", "--describe"), ("topics", "--create", "--topic", "one"),
    ("configs", "--entity-type", "users", "--entity-name", "u", "--alter", "--add-config", SCRAM),
    ("configs", "--entity-type", "users", "--entity-name", "u", "--describe"),
    ("producer", "--topic", "one"), ("get-offsets", "--topic", "one"),
    ("get-offsets", "--topic", "one", "--time", "-2"), ("get-offsets", "--topic", "one", "--time", "max-timestamp"),
    ("delete-records", "--offset-json-file", "OFFSETS"), ("delete-records", "--offset-json-file", "BEYOND"),
    ("consumer", "--topic", "one", "--from-beginning", "--max-messages", "2", "--group", "cg"),
    ("groups", "--list"), ("groups", "--list", "--state"), ("groups", "--describe", "--group", "nobody"),
    ("groups", "--describe", "--group", "cg"), ("groups", "--describe", "--group", "cg", "--state"),
    ("groups", "--describe", "--all-groups", "--members"),
    ("groups", "--reset-offsets", *GROUP, "--to-earliest", "--dry-run"),
    ("groups", "--reset-offsets", *GROUP, "--to-earliest", "--execute"),
    ("groups", "--delete-offsets", *GROUP), ("groups", "--delete", "--group", "cg"),
    ("groups", "--delete", "--group", "cg"), ("all-groups", "--list"), ("share-groups", "--list"),
    ("quorum", "describe", "--status"), ("quorum", "describe", "--replication"),
    ("txns", "list"), ("txns", "find-hanging", "--broker-id", "1"),
    ("txns", "describe-producers", "--topic", "one", "--partition", "0"),
    ("txns", "describe", "--transactional-id", "nobody"),
    ("acls", "--add", "--allow-principal", "User:a", "--topic", "made", "--operation", "read"), ("acls", "--list"),
    ("acls", "--remove", "--force", "--allow-principal", "User:a", "--topic", "made", "--operation", "read"),
    ("client-metrics", "--alter", "--name", "m", "--metrics", "org.apache", "--interval", "1000"),
    ("client-metrics", "--list"), ("client-metrics", "--describe", "--name", "m"),
    ("client-metrics", "--delete", "--name", "m"),
    ("log-dirs", "--describe", "--topic-list", "one"), ("log-dirs", "--describe", "--broker-list", "1,9"),
    ("leader-election", "--election-type", "preferred", "--path-to-json-file", "ELECTION"),
    ("leader-election", "--election-type", "unclean", "--topic", "made", "--partition", "1"),
    ("leader-election", "--election-type", "preferred", "--path-to-json-file", "NO_ELECTION"),
    ("reassign", "--list"), ("reassign", "--reassignment-json-file", "REASSIGNMENT", "--verify"),
    ("reassign", "--reassignment-json-file", "REASSIGNMENT", "--execute"),
    ("reassign", "--reassignment-json-file", "REASSIGNMENT", "--cancel"),
    ("reassign", "--reassignment-json-file", "TO_NOBODY", "--execute"),
    ("reassign", "--topics-to-move-json-file", "TOPICS", "--broker-list", "1", "--generate"),
    ("tokens", "--describe"),
]
BY_CHANCE = re.compile(
    r"TopicId: \S+|\(id: \d+ rack|Epoch: \d+|Cluster ID: \S+|ClusterId: +\S+|console-consumer-[0-9a-f-]{36}|\b\d{13}\b|"
    r"Current(Voters|Observers): .*|HighWatermark: .*|^\d+ +\t\S+\t\d+ +(?=\t)|\"logDir\":\"[^\"]*\"", re.MULTILINE)
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS", "offsets.topic.num.partitions": "50",
    "broker.session.timeout.ms": "60000"}  # a busy machine


def said(release: str, address: str, folder: Path) -> dict[str, tuple[int, str]]:
    """What was run -> (exit code, output without addresses and ids)."""
    files = {name: folder / name for name in FILES}
    for name, content in FILES.items():
        files[name].write_text(json.dumps(content))
    found = {}
    for number, (name, *arguments) in enumerate(RUNS):
        words = [str(files.get(word, word)) for word in arguments]
        words[name == "cluster":name == "cluster"] = ["--bootstrap-server", address]
        try:
            done = tool.run(release, name, *words, given=b"a\nb\nc\n" if name == "producer" else b"")
        except LookupError:  # not in this release
            continue
        text = (done.stdout + done.stderr).decode().replace(address, "ADDRESS").replace(address.split(":")[1], "PORT")
        found[f"{number} {name} {' '.join(arguments)}"] = done.returncode, BY_CHANCE.sub("X", text)
    return found


@pytest.mark.soak
@pytest.mark.java
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("release", ["3.9.1", "4.3.0"])
def test_tools_print_what_they_print_for_a_real_broker(release: str, tmp_path: Path) -> None:
    with Fleet(release) as fleet:
        ours = said(release, fleet.bootstrap, tmp_path)
    with broker.start(broker.Options(release, properties={**PROPERTIES, **AUTHORIZER}, heap="256m", c1=True)) as state:
        real = said(release, f"127.0.0.1:{state.ports[0]}", tmp_path)
    for run in ours:
        assert ours[run] == real[run], run
