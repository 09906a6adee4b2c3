"""Kafka's own classes of any release since 2.8 in one Java process: KafkaClasses("3.3.2").ask("decode", ...)."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tools import places
from tools.kafka import maven, releases
from tools.kafka.process import JavaProcess
from tools.places import cache
from tools.schema import jars, schemas

JAVA = Path(__file__).parent / "java"
VECTORS = places.ROOT / "tools" / "vectors" / "java" / "Vectors.java"
HEAP = "512m"
NO_LOGGER = releases.dependency("org.slf4j", "slf4j-nop", "1.7.36")


def modules(release: str) -> list[str]:
    """The modules with messages: all but Streams, and the broker, whose messages have no JSON converter."""
    number = release_number(release)
    return [name for name, since in jars.MODULES.items() if number >= since and name != "kafka-streams"]


def class_path(release: str) -> str:
    """The jars of a release and what they need."""
    place = cache() / "poms" / f"classes-{release}.xml"
    place.parent.mkdir(exist_ok=True)
    place.write_text(pom(release, modules(release)))
    try:
        return maven.classpath(place)
    except maven.MissingTool:
        found, missing = jars.resolve(release)  # names the release that is not there
        if not missing:
            raise
        place.write_text(pom(release, [name for name in modules(release) if name in found]))
        return maven.classpath(place)


def own_jars(release: str, path: str) -> dict[str, Path]:
    """Module -> jar of the release's own among a class path."""
    found = (Path(jar) for jar in path.split(os.pathsep))
    own = ((jar.name.removesuffix(f"-{release}.jar"), jar) for jar in found if jar.name.endswith(f"-{release}.jar"))
    return {name: jar for name, jar in own if name.startswith("kafka-") and name != "kafka-streams"}


def pom(release: str, names: Iterable[str]) -> str:
    """A pom with modules of a release and what they need."""
    rows = [releases.dependency("org.apache.kafka", name, release) for name in sorted(names)]
    return releases.POM.format(release=f"classes-{release}", dependencies="\n".join([*rows, NO_LOGGER]))


def for_release(source: str, classes: set[str]) -> str:
    """Java source with each import of Kafka's that the release lacks taken from the package it was in before."""

    def older(match: re.Match[str]) -> str:
        name = match[1]
        before = name.replace(".internal.", ".").replace(".internals.", ".")
        lacks = name.replace(".", "/") + ".class" not in classes and before.replace(".", "/") + ".class" in classes
        return match[0].replace(name, before) if lacks else match[0]

    return re.sub(r"^import (org\.apache\.kafka\.[\w.]+);", older, source, flags=re.MULTILINE)


class KafkaClasses(JavaProcess):
    """One Java process of a release. Commands: those of tools/kafka/java and of tools/vectors/java/Vectors.java.

    schemas: message name -> its schema in the form of kwire/schema, as the release's own jars have it;
    folders: message name -> the folder of kwire/schema it belongs to; has_batches: whether batches can be asked too.
    """

    def __init__(self, release: str) -> None:
        path = class_path(release)
        read = schemas.read_jars(own_jars(release, path))
        self.folders = {name: folder for name, (folder, _) in read.items()}
        self.schemas = {name: schema for name, (_, schema) in read.items()}
        self.has_batches = release_number(release) >= (3, 9)
        java = [JAVA / "Oracle.java", JAVA / "Messages.java", VECTORS]
        if self.has_batches:
            java.append(JAVA / "Batches.java")
        with zipfile.ZipFile(own_jars(release, path)["kafka-clients"]) as jar:
            there = set(jar.namelist())
        sources = [source_for(release, file, there) for file in java]
        classes = maven.compiled(sources, path, f"vectors-{release}")
        super().__init__(release, "Vectors", classes, path, HEAP)


def source_for(release: str, file: Path, there: set[str]) -> Path:
    """A Java source, written for the newest release, as this one needs it."""
    folder = cache() / "sources" / release
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / file.name
    place.write_text(for_release(file.read_text(), there))
    return place


def release_number(release: str) -> tuple[int, ...]:
    """ "3.3.2" -> (3, 3, 2)."""
    return tuple(int(part) for part in re.findall(r"\d+", release))
