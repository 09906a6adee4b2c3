"""The peers of other languages: kafka-clients (Java), kafka-protocol (Rust), franz-go (Go)."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.peers.contest import Absent, Child, build, build_folder, tool
from tools.kafka import maven
from tools.kafka.classes import class_path
from tools.kafka.oracle import NEWEST

HERE = Path(__file__).parent
OTHERS = ("crc32c-16k", "crc32c-1m", "message-decode", "message-encode")


def java() -> Child:
    """Kafka's own client, by the calls that its consumer and producer make, warmed up."""
    try:
        jars = class_path(NEWEST)
        classes = maven.compiled([HERE / "java" / "Peer.java"], jars, "peer")
        classpath = os.pathsep.join([str(classes), jars])
        command = [maven.java(), "-Xms1g", "-Xmx1g", "-XX:+UseSerialGC", "-cp", classpath, "Peer"]
    except maven.MissingTool as missing:
        raise Absent(str(missing)) from None
    return Child("Java kafka-clients", ("decode", "encode", *OTHERS), command, warm_up=40)


def rust() -> Child:
    """The kafka-protocol crate, release profile with link-time optimisation."""
    folder = build_folder("rust")
    cargo = tool("cargo", "cargo")
    build([cargo, "build", "--release", "--quiet", "--locked"], HERE / "rust", CARGO_TARGET_DIR=str(folder))
    works = ("decode", "encode", *OTHERS)
    return Child("Rust kafka-protocol", works, [str(folder / "release" / "kwire-peer")], warm_up=1)


def go() -> Child:
    """franz-go's kgo.ProcessFetchPartition; it has no public encoder of record batches."""
    binary = build_folder("go") / "peer"
    build([tool("go", "golang"), "build", "-o", str(binary), "."], HERE / "go")
    return Child("Go franz-go", ("decode", *OTHERS), [str(binary)], warm_up=2)
