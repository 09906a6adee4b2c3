"""Kafka's own command-line tools of any release: python -m tools.kafka.tool RELEASE TOOL [ARGUMENT ...].

TOOL is an alias (a name of ALIASES, as features, dump-log, topics) or a full class name.
KAFKA_TOOL_LOG=WARN shows log lines on stderr (OFF by default, so stderr is the tool's own).
4.4.0 has storage only: its kafka-tools jar is not on Maven Central.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from functools import cache
from pathlib import Path

from tools.kafka import maven, releases

ALIASES = {
    "features": ("org/apache/kafka/tools/FeatureCommand", "kafka/admin/FeatureCommand"),
    "storage": ("kafka/tools/StorageTool",),
    "dump-log": ("org/apache/kafka/tools/DumpLogSegments", "kafka/tools/DumpLogSegments"),
    "api-versions": ("org/apache/kafka/tools/BrokerApiVersionsCommand", "kafka/admin/BrokerApiVersionsCommand"),
    "quorum": ("org/apache/kafka/tools/MetadataQuorumCommand", "kafka/admin/MetadataQuorumCommand"),
    "shell": ("org/apache/kafka/shell/MetadataShell",),
    "topics": ("org/apache/kafka/tools/TopicCommand", "kafka/admin/TopicCommand"),
    "configs": ("kafka/admin/ConfigCommand",),
    "acls": ("org/apache/kafka/tools/AclCommand", "kafka/admin/AclCommand"),
    "groups": ("org/apache/kafka/tools/consumer/group/ConsumerGroupCommand", "kafka/admin/ConsumerGroupCommand"),
    "share-groups": ("org/apache/kafka/tools/consumer/group/ShareGroupCommand",),
    "tokens": ("org/apache/kafka/tools/DelegationTokenCommand", "kafka/admin/DelegationTokenCommand"),
    "txns": ("org/apache/kafka/tools/TransactionsCommand",),
    "producer": ("org/apache/kafka/tools/ConsoleProducer", "kafka/tools/ConsoleProducer"),
    "consumer": ("org/apache/kafka/tools/consumer/ConsoleConsumer", "kafka/tools/ConsoleConsumer"),
    "get-offsets": ("org/apache/kafka/tools/GetOffsetShell", "kafka/tools/GetOffsetShell"),
    "delete-records": ("org/apache/kafka/tools/DeleteRecordsCommand", "kafka/admin/DeleteRecordsCommand"),
    "log-dirs": ("org/apache/kafka/tools/LogDirsCommand", "kafka/admin/LogDirsCommand"),
    "leader-election": ("org/apache/kafka/tools/LeaderElectionCommand", "kafka/admin/LeaderElectionCommand"),
    "reassign": (
        "org/apache/kafka/tools/reassign/ReassignPartitionsCommand", "kafka/admin/ReassignPartitionsCommand"),
    "client-metrics": ("org/apache/kafka/tools/ClientMetricsCommand",),
    "all-groups": ("org/apache/kafka/tools/GroupsCommand",),
    "cluster": ("org/apache/kafka/tools/ClusterTool", "kafka/tools/ClusterTool"),
}


@cache
def main_class(release: str, tool: str) -> str:
    """The class of a tool's alias in a release."""
    if tool not in ALIASES:
        return tool
    jars = [jar for jar in releases.classpath(release) if Path(jar).name.startswith("kafka")]
    there: set[str] = set()
    for jar in jars:
        with zipfile.ZipFile(jar) as names:
            there.update(names.namelist())
    for name in ALIASES[tool]:
        if f"{name}.class" in there:
            return name.replace("/", ".")
    why = "its kafka-tools jar is not on Maven Central" if release in releases.NO_TOOLS else "it came later"
    raise LookupError(f"Kafka {release} has no {tool}: {why}")


def run(
    release: str, tool: str, *arguments: str, cwd: Path | None = None, heap: str = "256m", given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Runs a tool to its end; stdout (UTF-8), stderr and exit code as they were. given: its standard input."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            command(release, tool, Path(folder), heap) + list(arguments),
            cwd=cwd, env={**os.environ, "LC_ALL": "C.UTF-8"}, capture_output=True, check=False,
            input=given,
        )  # fmt: skip


def command(release: str, tool: str, folder: Path, heap: str = "256m") -> list[str]:
    """The java command of a tool, without the tool's own arguments."""
    flags = releases.log_flags(release, folder, os.environ.get("KAFKA_TOOL_LOG", "OFF"), "ERR")
    jars = os.pathsep.join(releases.classpath(release))
    return [maven.java(), *releases.java_flags(heap, c1=True), *flags, "-cp", jars, main_class(release, tool)]


def main(arguments: list[str]) -> int:
    """Run the command; its exit code."""
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run([*command(arguments[0], arguments[1], Path(folder)), *arguments[2:]]).returncode
    except (LookupError, maven.MissingTool) as error:
        print(f"tool: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
