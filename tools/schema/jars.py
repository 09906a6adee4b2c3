"""Finds Kafka's published jars with Maven, by release."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from tools.kafka.maven import DEPENDENCY_PLUGIN, need

# module -> the release that it came with (asking for it below that costs a run of Maven, no more)
MODULES = {
    "kafka-clients": (0, 9), "kafka-metadata": (2, 8), "kafka-raft": (2, 7), "kafka-server-common": (3, 0),
    "kafka-storage": (3, 0), "kafka-storage-api": (3, 0), "kafka-group-coordinator": (3, 4),
    "kafka-transaction-coordinator": (3, 8), "kafka-share-coordinator": (4, 0), "kafka-coordinator-common": (4, 0),
    "kafka-streams": (2, 4),
}
# Kafka's own modules that the broker needs and that have no schemas
WITHOUT_SCHEMAS = {"kafka-group-coordinator-api", "kafka-server", "kafka-tools-api", "kafka-log4j-appender"}
# what the classes that we ask need besides
_LOGGER = ("org.slf4j", "slf4j-api", "1.7.36")


class NoSuchRelease(Exception):
    """Maven Central has no kafka-clients of that release."""


def core(release: str) -> str:
    """The module with the broker itself: its name says which Scala it was built with."""
    number = tuple(int(part) for part in release.split("."))
    return f"kafka_{'2.11' if number < (0, 10, 2) else '2.12' if number < (2, 4) else '2.13'}"


def resolve(release: str) -> tuple[dict[str, Path], list[str]]:
    """(module -> jar, modules that Maven Central lacks) of a patch release such as "4.4.0"."""
    number = tuple(int(part) for part in release.split("."))
    wanted = [module for module, since in MODULES.items() if number >= since] + [core(release)]
    missing: list[str] = []
    while True:
        found, text = _classpath([("org.apache.kafka", module, release) for module in wanted] + [_LOGGER])
        if found:
            jars = {re.sub(r"-[\d.]+\.jar$", "", path.name): path for path in found}
            return jars, missing
        lacking = {name for name in re.findall(r"org\.apache\.kafka:([\w.-]+):(?:jar|pom):", text) if name in wanted}
        if "kafka-clients" in lacking:
            raise NoSuchRelease(f"Maven Central has no kafka-clients {release}")
        if not lacking:
            raise RuntimeError(f"mvn failed for Kafka {release}:\n{text[-2000:]}")
        missing += sorted(lacking)
        wanted = [name for name in wanted if name not in lacking]


def other_modules(release: str, found: dict[str, Path]) -> list[str]:
    """Kafka's own modules that the broker of a release depends on, and that nobody has looked at yet."""
    path = found.get(core(release).removesuffix(f"-{release}"))
    pom = path.with_suffix(".pom").read_text() if path and path.with_suffix(".pom").exists() else ""
    named = re.findall(r"<groupId>org\.apache\.kafka</groupId>\s*<artifactId>([\w.-]+)</artifactId>", pom)
    return sorted(set(named) - MODULES.keys() - WITHOUT_SCHEMAS - {core(release)})


def lacking(release: str, *modules: str) -> list[str]:
    """Those of some modules that Maven Central lacks at a release."""
    found, text = _classpath([("org.apache.kafka", module, release) for module in modules])
    return [] if found else [name for name in modules if f"org.apache.kafka:{name}:" in text]


def newest(since: str, before: str = "") -> str:
    """The newest release of kafka-clients on Maven Central from one on, as Maven itself chooses it from a range.

    Without an end the list of releases is asked for again (-U); with one the list that Maven has will do.
    """
    wanted = [("org.apache.kafka", "kafka-clients", f"[{since},{before})")]
    found, text = _classpath(wanted, *([] if before else ["-U"]))
    if not found:
        raise RuntimeError(f"mvn failed:\n{text[-2000:]}")
    return found[0].parent.name


def _classpath(modules: list[tuple[str, str, str]], *flags: str) -> tuple[list[Path], str]:
    alone = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    rows = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>{alone}"
        "</dependency>"
        for group, name, version in modules
    )
    mvn = need("mvn", "maven")
    with tempfile.TemporaryDirectory() as folder:
        pom, out = Path(folder, "pom.xml"), Path(folder, "classpath.txt")
        pom.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>kwire</groupId><artifactId>schema</artifactId><version>1</version>"
            f"<dependencies>{rows}</dependencies></project>"
        )
        run = subprocess.run(
            [
                mvn, "-q", "-B", *flags, "-f", str(pom),
                f"{DEPENDENCY_PLUGIN}:build-classpath", f"-Dmdep.outputFile={out}",
            ],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900,
        )
        if run.returncode:
            return [], run.stdout
        return [Path(item) for item in out.read_text().strip().split(os.pathsep)], run.stdout
