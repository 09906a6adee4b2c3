"""What a release of Apache Kafka needs to run: its jars, its logging flags, its JVM flags."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tools.kafka import maven
from tools.places import cache

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>local.kwire</groupId><artifactId>kafka-{release}</artifactId><version>1</version>
<dependencies>
{dependencies}
</dependencies></project>
"""

# The tools run without Kafka Connect, and connect-*:4.0.1 was never published.
NO_CONNECT = [("org.apache.kafka", f"connect-{part}") for part in ("api", "json", "transforms", "runtime")]

# kafka-tools, kafka-tools-api and kafka-shell of these are not on Central: broker and StorageTool do without them.
NO_TOOLS = {"4.4.0"}

CLASHING = re.compile(r"/(slf4j-log4j12|log4j|slf4j-simple)-\d[^/]*\.jar$|/log4j/log4j/")


def version(release: str) -> tuple[int, ...]:
    """ "0.10.2.2" -> (0, 10, 2)."""
    return tuple(int(part) for part in re.findall(r"\d+", release)[:3])


def scala(release: str) -> str:
    """The Scala version in the name of the broker's jar."""
    return "2.11" if version(release) < (0, 10, 2) else "2.12" if version(release) < (2, 4) else "2.13"


def dependency(group: str, artifact: str, number: str, excluded: list[tuple[str, str]] | None = None) -> str:
    """One dependency of a pom."""
    out = "".join(
        f"<exclusion><groupId>{g}</groupId><artifactId>{a}</artifactId></exclusion>" for g, a in excluded or []
    )
    out = f"<exclusions>{out}</exclusions>" if out else ""
    names = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{number}</version>"
    return f"<dependency>{names}{out}</dependency>"


def pom(release: str) -> str:
    """A pom with the broker, its tools and a logger that works on Java 17."""
    kafka, wanted = "org.apache.kafka", version(release)
    tools = release not in NO_TOOLS
    found = [dependency(kafka, f"kafka_{scala(release)}", release, None if tools else [(kafka, "kafka-tools-api")])]
    if tools:
        found.append(dependency(kafka, "kafka-tools", release, NO_CONNECT))
    if tools and wanted >= (2, 8):
        found.append(dependency(kafka, "kafka-shell", release, NO_CONNECT))
    if wanted >= (4, 0):
        for artifact in ("log4j-slf4j-impl", "log4j-core", "log4j-1.2-api"):
            found.append(dependency("org.apache.logging.log4j", artifact, "2.24.3"))
    else:
        found.append(dependency("org.slf4j", "slf4j-reload4j", "1.7.36"))
        found.append(dependency("ch.qos.reload4j", "reload4j", "1.2.25"))
    if wanted < (2, 4):  # 3.4's client resolves no address on Java 14 and newer (ZOOKEEPER-3779)
        found.append(dependency("org.apache.zookeeper", "zookeeper", "3.5.9"))
    if (0, 10, 1) <= wanted < (1, 0):  # gone from Java 11 on
        found.append(dependency("javax.xml.bind", "jaxb-api", "2.3.1"))
    return POM.format(release=release, dependencies="\n".join(found))


def classpath(release: str) -> list[str]:
    """The jars of a release, downloaded when they are not there yet."""
    folder = cache() / "poms"
    folder.mkdir(exist_ok=True)
    place = folder / f"kafka-{release}.xml"
    place.write_text(pom(release))
    clashing = CLASHING if version(release) < (4, 0) else re.compile(r"/slf4j-simple-")
    return [jar for jar in maven.classpath(place).split(os.pathsep) if not clashing.search(jar)]


def log_flags(release: str, folder: Path, level: str = "INFO", to: str = "OUT") -> list[str]:
    """JVM flags for logging to stdout (to="OUT") or stderr ("ERR"), with their configuration written to a folder."""
    pattern = "[%d] %p %m (%c)%n"
    if version(release) >= (4, 0):
        place = folder / "log4j2.properties"
        place.write_text(
            f"status = error\nappender.c.type = Console\nappender.c.name = C\nappender.c.target = SYSTEM_{to}\n"
            f"appender.c.layout.type = PatternLayout\nappender.c.layout.pattern = {pattern}\n"
            f"rootLogger.level = {level}\nrootLogger.appenderRef.c.ref = C\n"
        )
        return [f"-Dlog4j2.configurationFile={place}"]
    place = folder / "log4j.properties"
    place.write_text(
        f"log4j.rootLogger={level}, C\nlog4j.appender.C=org.apache.log4j.ConsoleAppender\n"
        f"log4j.appender.C.Target=System.{to.lower()}\nlog4j.appender.C.layout=org.apache.log4j.PatternLayout\n"
        f"log4j.appender.C.layout.ConversionPattern={pattern}\n"
    )
    return [f"-Dlog4j.configuration=file:{place}"]


def java_flags(heap: str, c1: bool = False) -> list[str]:
    """JVM flags for a small machine. c1: the quick compiler only, for short runs."""
    compiler = "-XX:TieredStopAtLevel=1" if c1 else "-XX:+TieredCompilation"
    return [f"-Xmx{heap}", "-XX:+UseSerialGC", compiler, "-Djava.awt.headless=true"]
