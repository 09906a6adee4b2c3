"""What the step for a release reads: the schemas in its jars, and what its classes say. From Maven, or from files."""

from __future__ import annotations

import json
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tools.kafka.maven import java
from tools.schema import jars, schemas

PROBE = Path(__file__).with_name("Probe.java")


class Input(NamedTuple):
    """A patch release as its jars have it.

    texts: module -> file in its jar -> schema; classes: what Probe.java printed; missing: modules that Maven Central
    lacks, kafka-tools too; others: Kafka's own modules that the broker depends on and that jars.MODULES does not read.
    """

    patch: str
    texts: dict[str, dict[str, str]]
    classes: dict[str, Any]
    missing: list[str]
    others: list[str]

    def to_files(self) -> dict[str, bytes]:
        """File -> bytes, for an archive."""
        header = {"patch": self.patch, "missing": self.missing, "others": self.others, "classes": self.classes}
        files = {"input.json": json.dumps(header, ensure_ascii=False, indent=1).encode()}
        for module, texts in self.texts.items():
            files |= {f"jars/{module}/{name}": text.encode() for name, text in texts.items()}
        return files


def from_files(files: dict[str, bytes]) -> Input:
    """What to_files() gave."""
    header = json.loads(files["input.json"])
    texts: dict[str, dict[str, str]] = {}
    for name, data in files.items():
        if name.startswith("jars/"):
            module, _, inner = name.removeprefix("jars/").partition("/")
            texts.setdefault(module, {})[inner] = data.decode()
    return Input(header["patch"], texts, header["classes"], header["missing"], header["others"])


@lru_cache(4)
def look(patch: str) -> Input:
    """A release from Maven Central."""
    found, missing = jars.resolve(patch)
    lacking = [*missing, *jars.lacking(patch, "kafka-tools")]
    return Input(patch, schemas.texts_of(found), probe(found), lacking, jars.other_modules(patch, found))


def probe(found: dict[str, Path]) -> dict[str, Any]:
    """What the classes of these jars say of themselves (Probe.java)."""
    run = subprocess.run(
        [java(), "-Xmx512m", "-cp", ":".join(map(str, found.values())), str(PROBE)],
        capture_output=True, text=True, timeout=300,
    )
    if run.returncode:
        raise RuntimeError(f"Probe.java failed:\n{run.stderr[-2000:]}")
    told: dict[str, Any] = json.loads(run.stdout)
    return told
