"""Kafka's own classes of one release in a long-lived Java process: ask() one question, or many() at once."""

from __future__ import annotations

from pathlib import Path

from kwire import schema
from tools.kafka import maven
from tools.kafka.classes import class_path
from tools.kafka.process import JavaProcess

JAVA = Path(__file__).parent / "java"
NEWEST = schema.patch_release(schema.releases()[-1])
OLD = schema.patch_release("3.9")  # for the versions that 4.0 removed
SOURCES = {NEWEST: ("Oracle", "Messages", "Batches"), OLD: ("Oracle", "Messages")}


class Oracle(JavaProcess):
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
        super().__init__(release, "Oracle", maven.compiled(sources, jars, f"oracle-{release}"), jars, heap="768m")
