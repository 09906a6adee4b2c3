"""Kafka clients of other people, as programs that all take the same commands.

PROGRAM BOOTSTRAP RELEASE COMMAND ...; RELEASE is that of the brokers. The commands:

admin TOPIC PARTITIONS          create the topic, and do with others what an administrator does
produce TOPIC CODEC COUNT       send records whose first words are CODEC-0, CODEC-1, ... and wait for all of them
transactions TOPIC COUNT        a transaction that commits records committed-0, ..., one that aborts aborted-0, ...
consume TOPIC GROUP             as a member of a group, read committed: print the first word of each record, one a line,
                                then commit; when standard input ends, leave the group
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tools.clients import java_client, python_client
from tools.kafka import maven
from tools.kafka.maven import MissingTool
from tools.kafka.releases import version
from tools.places import cache, digest

HERE = Path(__file__).parent
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Client(NamedTuple):
    """command: makes the program, and says how it is called; releases: the brokers it is for, first and last.

    transactions: whether it has them; zstd_from: the first release of brokers for which it sends zstd.
    """

    command: Callable[[], list[str]]
    first: str = "0.10.2"
    last: str = "4.4"
    transactions: bool = True

    def is_for(self, release: str) -> bool:
        """Whether the client supports brokers of a release."""
        return version(self.first) <= version(release) <= version(self.last)


def python(module: str, needs: str, package: str) -> Callable[[], list[str]]:
    """A program in Python."""
    return python_client(f"tests.fleet.clients.{module}", needs, package)


def java(release: str) -> Callable[[], list[str]]:
    """Kafka's own clients of a release."""
    return java_client(HERE / "Client.java", release)


def go(name: str) -> Callable[[], list[str]]:
    """A client in Go; all of them are one program."""

    def command() -> list[str]:
        folder = _folder("go", "client", lambda go: [go, "build", "-o", "client", "."], "go", "https://go.dev/dl")
        return [str(folder / "client"), name]

    return command


def node() -> list[str]:
    """The program of kafkajs, with the packages that it needs."""
    found = shutil.which("node")
    if found is None:
        raise MissingTool("node is missing, which the client kafkajs needs: https://nodejs.org")
    folder = _folder(
        "node", "node_modules/kafkajs", lambda npm: [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        "npm", "https://nodejs.org")
    return [found, str(folder / "client.js")]


def _folder(name: str, made: str, command: Callable[[str], list[str]], tool: str, where: str) -> Path:
    """A copy of a folder of sources in the cache, by content, in which the command was run once."""
    found = shutil.which(tool)
    if found is None:
        raise MissingTool(f"{tool} is missing, which the clients in {name} need: {where}")
    sources = sorted(HERE.joinpath(name).iterdir())
    folder = cache() / f"clients-{name}-{digest(*(one.read_bytes() for one in sources))}"
    with maven.only_one(folder):
        if not (folder / made).exists():
            for one in sources:
                shutil.copy(one, folder)
            done = subprocess.run(command(found), cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise MissingTool(
                    f"the clients in {name} could not be made (is their registry reachable?):\n{done.stderr[-2000:]}")
    return folder


CLIENTS = {
    "java-4.3": Client(java("4.3.0"), first="2.1"),
    "java-2.2": Client(java("2.2.2")),
    "librdkafka": Client(python("confluent", "confluent_kafka", "confluent-kafka")),
    "kafka-python": Client(python("kafka_python", "kafka", "kafka-python")),
    "aiokafka": Client(python("aio", "aiokafka", "aiokafka")),
    "franz-go": Client(go("franz-go")),
    "sarama": Client(go("sarama")),
    "kafka-go": Client(go("kafka-go"), transactions=False),
    "kafkajs": Client(node),
}
