"""Kafka clients that do the same work against a broker: run("aiokafka", "127.0.0.1:9092", "alpha")."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from tools.kafka import maven
from tools.kafka.classes import pom
from tools.kafka.maven import MissingTool
from tools.places import cache, digest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
JAVA_CLIENT = "4.3.0"  # kafka-clients
FRANZ = ("github.com/twmb/franz-go", "v1.22.2")
TIMEOUT = 300  # seconds for one client


def python_client(module: str, needs: str, package: str) -> Callable[[], list[str]]:
    """The command of a program in Python. needs: what it imports, which the package brings."""

    def command() -> list[str]:
        if find_spec(needs) is None:
            raise MissingTool(f"the client {package} is missing: pip install {package}")
        return [sys.executable, "-m", module]

    return command


def java_client(source: Path, release: str) -> Callable[[], list[str]]:
    """The command of a class in Java, in a file of its name, with kafka-clients of a release."""

    def command() -> list[str]:
        place = cache() / "poms" / f"clients-{release}.xml"
        place.parent.mkdir(exist_ok=True)
        place.write_text(pom(release, ["kafka-clients"]))
        jars = maven.classpath(place)
        classes = maven.compiled([source], jars, f"{source.stem.lower()}-{release}")
        path = os.pathsep.join([str(classes), jars])
        return [maven.java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", path, source.stem]

    return command


def franz_go() -> list[str]:
    """The workload in Go, built once."""
    go = shutil.which("go")
    if go is None:
        raise MissingTool("go is missing, which the client franz-go needs: https://go.dev/dl")
    source = (HERE / "franz_go" / "main.go").read_bytes()
    folder = cache() / f"franz-go-{digest(source, FRANZ[1].encode())}"
    if not (folder / "workload").exists():
        folder.mkdir(exist_ok=True)
        (folder / "main.go").write_bytes(source)
        (folder / "go.mod").write_text("module workload\n\ngo 1.24\n")
        for arguments in (["get", "@".join(FRANZ)], ["mod", "tidy"], ["build", "-o", "workload", "."]):
            done = subprocess.run([go, *arguments], cwd=folder, capture_output=True, text=True)
            if done.returncode:
                raise MissingTool(
                    f"franz-go could not be built (is proxy.golang.org reachable?):\n{done.stderr[-2000:]}"
                )
    return [str(folder / "workload")]


CLIENTS: dict[str, Callable[[], list[str]]] = {
    f"java-{JAVA_CLIENT}": java_client(HERE / "Workload.java", JAVA_CLIENT),
    "kafka-python": python_client("tools.clients.kafka_python", "kafka", "kafka-python"),
    "aiokafka": python_client("tools.clients.aio", "aiokafka", "aiokafka"),
    "librdkafka": python_client("tools.clients.librdkafka", "confluent_kafka", "confluent-kafka"),
    "franz-go": franz_go,
}


def commands(names: list[str]) -> dict[str, list[str]]:
    """Client -> command, MissingTool for the first that this machine lacks."""
    unknown = [name for name in names if name not in CLIENTS]
    if unknown:
        raise MissingTool(f"no client {', '.join(unknown)}; there are {', '.join(CLIENTS)}")
    return {name: CLIENTS[name]() for name in names}


def run(command: list[str], bootstrap: str, prefix: str) -> list[str]:
    """Runs a workload to its end; what failed in it, one a line (an old broker has not every API)."""
    done = subprocess.run([*command, bootstrap, prefix], cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT)
    failed = [line for line in done.stderr.splitlines() if line.startswith("failed ")]
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return failed
