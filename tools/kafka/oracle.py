"""Kafka's own classes of one release in a long-lived Java process: ask() one question, or many() at once."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kwire import schema
from tools.kafka import maven
from tools.kafka.classes import class_path

JAVA = Path(__file__).parent / "java"
NEWEST = schema.patch_release(schema.releases()[-1])
OLD = schema.patch_release("3.9")  # for the versions that 4.0 removed
SOURCES = {NEWEST: ("Oracle", "Messages", "Batches"), OLD: ("Oracle", "Messages")}


class Oracle:
    """One Java process. Commands and answers are JSON objects; see java/Oracle.java, Messages.java and Batches.java.

    read: hex -> every field of every batch and record, and what Kafka says of it
    build: the arguments of kwire.build_batch (append_time for log-append time) -> hex
    compact: hex, keep=[offsets], horizon -> hex, as the log cleaner would leave it
    messages: name -> versions
    decode: message, version, hex -> json, remaining;  encode: message, version, json -> hex
    random: message, version, seed -> hex and json of a random message
    An error of Kafka's is the answer {"error": "class: text"}.
    """

    def __init__(self, release: str = NEWEST) -> None:
        jars = class_path(release)
        sources = [JAVA / f"{name}.java" for name in SOURCES[release]]
        classes = maven.compiled(sources, jars, f"oracle-{release}")
        self.release = release
        self._process = subprocess.Popen(
            [maven.java(), "-Xmx768m", "-Xss8m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
             os.pathsep.join([str(classes), jars]), "Oracle"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
        )  # fmt: skip

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Sends one command; its answer."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the Java process of Kafka {self.release} ended with {process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def many(self, asks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """Sends many commands ({"do": ..., ...}) in one line; their answers in order."""
        answers: list[dict[str, Any]] = self.ask("many", asks=list(asks))["answers"]
        return answers

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
