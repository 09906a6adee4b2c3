"""Kafka's own metadata images of a release: ImageOracle("4.3.0").write(records, level)."""

from __future__ import annotations

from typing import NamedTuple

from tools.kafka import maven
from tools.kafka.classes import class_path
from tools.kafka.oracle import JAVA
from tools.kafka.process import JavaProcess


class Written(NamedTuple):
    """What Kafka's MetadataImage.write gives: the records as they are framed in a snapshot, and the losses it names."""

    records: list[bytes]
    losses: list[str]


class ImageOracle(JavaProcess):
    """One Java process of a release that has the image classes as 3.7 and later have them."""

    def __init__(self, release: str) -> None:
        jars = class_path(release)
        sources = [JAVA / f"{name}.java" for name in ("Oracle", "Messages", "Images")]
        super().__init__(release, "Oracle", maven.compiled(sources, jars, f"images-{release}"), jars, heap="512m")

    def write(self, records: list[bytes], level: int, eligible: bool = False, each: bool = False) -> Written:
        """Replays framed records and writes the image at a metadata.version.

        eligible: whether the image's eligible leader replicas are written; each: whether an image is made after each
        record, as from a log, not one of all, as from a snapshot. Raises RuntimeError with Kafka's error.
        """
        hexes = [record.hex() for record in records]
        answer = self.ask("image", records=hexes, level=level, eligible=eligible, each=each)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return Written([bytes.fromhex(record) for record in answer["records"]], answer["losses"])
