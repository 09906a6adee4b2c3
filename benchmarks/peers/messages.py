"""The contestants for messages in this process: kwire, kio, kafka-python."""

from __future__ import annotations

import io
from collections.abc import Callable
from importlib import import_module
from typing import Any

import kwire
from benchmarks.messages import INNER, MessageWorkload
from benchmarks.peers.contest import Absent, InProcess

PARTITION_FIELDS = ("partition_index", "leader_id", "error_code")
MANY = 10_000  # payloads to columns
Pass = Callable[[], tuple[int, int]]


def decoder(function: Callable[[], Any]) -> Pass:
    """A pass that decodes INNER times."""

    def one() -> tuple[int, int]:
        for _ in range(INNER):
            function()
        return INNER, 0

    return one


def encoder(function: Callable[[], bytes]) -> Pass:
    """A pass that encodes INNER times; its check is the bytes written."""

    def one() -> tuple[int, int]:
        size = 0
        for _ in range(INNER):
            size += len(function())
        return INNER, size

    return one


def kwire_messages() -> InProcess:
    """kwire.decode and kwire.encode."""

    def decode(work: Any) -> Pass:
        name, version, data = work.message, work.version, work.data()
        return decoder(lambda: kwire.decode(name, version, data))

    def encode(work: Any) -> Pass:
        message, version = kwire.decode(work.message, work.version, work.data()), work.version
        return encoder(lambda: kwire.encode(message, version))

    return InProcess("kwire", message_decode=decode, message_encode=encode)


def columns_of() -> InProcess:
    """kwire.columns_of: three fields of every partition in many metadata responses."""

    def prepare(work: Any) -> Pass:
        paths = [f"topics.partitions.{name}" for name in PARTITION_FIELDS]
        payloads = [work.data()] * MANY
        return lambda: (MANY, len(kwire.columns_of(work.message, work.version, payloads, paths)))

    return InProcess("kwire columns_of", message_columns=prepare)


def whole_columns_of() -> InProcess:
    """kwire.columns_of without paths: every field. A tenth of the payloads, 55 MB of columns: with more, each pass
    would get new memory, and page faults would cost up to twice as much as the writing."""

    def prepare(work: Any) -> Pass:
        payloads = [work.data()] * (MANY // 10)
        return lambda: (len(payloads), len(kwire.columns_of(work.message, work.version, payloads)))

    return InProcess("kwire columns_of, whole", message_columns=prepare)


def object_loop() -> InProcess:
    """The same fields by kwire.decode of each payload, read in a loop."""

    def prepare(work: Any) -> Pass:
        name, version, payloads = work.message, work.version, [work.data()] * MANY

        def one() -> tuple[int, int]:
            for payload in payloads:
                for topic in kwire.decode(name, version, payload).topics:
                    for partition in topic.partitions:
                        _ = partition.partition_index, partition.leader_id, partition.error_code
            return MANY, 0

        return one

    return InProcess("kwire object loop", message_columns=prepare)


def kwires() -> list[InProcess]:
    """The ways of kwire."""
    return [kwire_messages(), columns_of(), whole_columns_of(), object_loop()]


KIO = {
    "ApiVersions": "api_versions", "Metadata": "metadata", "Fetch": "fetch", "Produce": "produce",
    "Heartbeat": "heartbeat",
}  # fmt: skip


def kio() -> InProcess:
    """kio: a class for each version, a native reader, writers in Python."""
    from kio.serial import entity_reader, entity_writer

    def kind(work: MessageWorkload) -> Any:
        side = "request" if work.message.endswith("Request") else "response"
        module = import_module(f"kio.schema.{KIO[work.message.removesuffix(side.title())]}.v{work.version}.{side}")
        return getattr(module, work.message)

    def decode(work: Any) -> Pass:
        read, data = entity_reader(kind(work)), work.data()
        return decoder(lambda: read(data, 0))

    def encode(work: Any) -> Pass:
        message = entity_reader(kind(work))(work.data(), 0)[0]
        write = entity_writer(kind(work))

        def once() -> bytes:
            out = io.BytesIO()
            write(out, message)
            return out.getvalue()

        return encoder(once)

    return InProcess("kio", message_decode=decode, message_encode=encode)


PLACES = {
    "Metadata": "metadata.metadata", "ApiVersions": "metadata.api_versions", "Fetch": "consumer.fetch",
    "Heartbeat": "consumer.group", "Produce": "producer.produce",
}  # fmt: skip


def kafka_python() -> InProcess:
    """kafka-python 3: classes with compiled decoders."""

    def kind(work: MessageWorkload) -> Any:
        api = work.message.removesuffix("Request").removesuffix("Response")
        return getattr(import_module(f"kafka.protocol.{PLACES[api]}"), work.message)

    try:
        import_module("kafka.protocol.consumer.fetch")
    except ImportError as why:
        raise Absent(f"kafka-python 3 is missing ({why}): pip install kafka-python") from None

    def decode(work: Any) -> Pass:
        message_class, version, data = kind(work), work.version, work.data()
        return decoder(lambda: message_class.decode(data, version=version))

    def encode(work: Any) -> Pass:
        message, version = kind(work).decode(work.data(), version=work.version), work.version
        message._header = message._version = None  # its decode does not set them, and its encode needs them
        return encoder(lambda: message.encode(version=version))

    return InProcess("kafka-python", message_decode=decode, message_encode=encode)
