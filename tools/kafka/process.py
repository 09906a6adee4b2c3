"""A long-lived Java process that answers questions, one JSON object a line; see java/Oracle.java."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

from tools.kafka import maven

AT_ONCE = 200  # questions in one line


class JavaProcess:
    """The class `main` with Kafka's own classes of a release. An error of Kafka's is {"error": "class: text"}."""

    def __init__(self, release: str, main: str, classes: Path, jars: str, heap: str) -> None:
        self.release = release
        self._process = subprocess.Popen(
            [maven.java(), f"-Xmx{heap}", "-Xss8m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
             os.pathsep.join([str(classes), jars]), main],
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

    def many(self, asks: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Sends commands ({"do": ..., ...}), many in a line; their answers in order."""
        waiting = list(asks)
        for at in range(0, len(waiting), AT_ONCE):
            yield from self.ask("many", asks=waiting[at : at + AT_ONCE])["answers"]

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
