"""What a message needs of its version: fields that hold something, uses whose meaning came later than their layout."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from kwire import schema
from kwire.schema import Field, Versions
from kwire.schema.facts import LAST_VERSION

_NO_UUID = 0


class Need(NamedTuple):
    """Versions that one part of a message needs. what: the part, for errors; droppable: may be left out (ignorable)."""

    what: str
    versions: Versions
    droppable: bool = False


def needs(message: Any, name: str) -> list[Need]:
    """All that a message (of that schema name) needs beyond being encoded; empty when every version will do."""
    facts = schema.message(name)
    found = {need: None for need in _fields(message, _partial(name), "")}
    rule = _RULES.get(facts.api_key if facts.api_key is not None else -1)
    if rule is not None and facts.type == "request":
        found |= dict.fromkeys(rule(message))
    return list(found)


@lru_cache(None)
def _partial(name: str) -> tuple[tuple[Field, Any], ...]:
    """(field, its partial fields) where the field, or one below it, is missing or not nullable in some version."""
    facts = schema.message(name)
    return _partial_fields(facts.fields, facts.valid_versions)


def _partial_fields(fields: tuple[Field, ...], within: Versions) -> tuple[tuple[Field, Any], ...]:
    found = []
    for field in fields:
        there = field.versions.overlap(within)
        below = _partial_fields(field.fields, there)
        nullable = field.nullable_versions.overlap(within)
        if there != within or below or (nullable and nullable != there):
            found.append((field, below))
    return tuple(found)


def _fields(value: Any, partial: tuple[tuple[Field, Any], ...], path: str) -> Iterator[Need]:
    for field, below in partial:
        held = getattr(value, field.snake_name)
        if _is_default(held, field):
            continue
        if held is None:
            yield Need(f"{path}.{field.snake_name}=None", field.nullable_versions)
            continue
        yield Need(f"{path}.{field.snake_name}", field.versions, field.ignorable)
        if below:
            for item in held if field.is_array else (held,):
                yield from _fields(item, below, f"{path}.{field.snake_name}")


def _is_default(held: Any, field: Field) -> bool:
    if field.is_array and field.default != "null":
        return held is not None and not len(held)
    if field.type == "uuid":
        return held is None or held.int == _NO_UUID
    if field.struct and not field.is_array and field.default != "null":
        return held is not None and held == type(held)()
    if field.type == "records":
        return held is None
    return bool(held == field.default_value)


def _list_offsets(message: Any) -> Iterator[Need]:
    lowest = {
        -3: (7, "the offset of the largest timestamp (KIP-734)"), -4: (8, "the earliest local offset (KIP-405)"),
        -5: (9, "the last tiered offset (KIP-1005)"), -6: (11, "the earliest offset to upload (KIP-1023)"),
    }  # fmt: skip
    for topic in message.topics:
        for partition in topic.partitions:
            if partition.timestamp >= 0:
                yield _from(1, "looking an offset up by its timestamp (KIP-79)")
            elif partition.timestamp in lowest:
                yield _from(*lowest[partition.timestamp])


def _produce(message: Any) -> Iterator[Need]:
    for topic in message.topic_data:
        for partition in topic.partition_data:
            head = bytes(memoryview(partition.records or b"")[:23])
            if len(head) < 18:
                continue
            magic = head[16]
            codec = (struct.unpack(">h", head[21:23])[0] if magic == 2 and len(head) == 23 else head[17]) & 7
            if magic == 2:
                yield Need("record batches of magic 2 (KIP-98)", Versions(3, LAST_VERSION))
            elif magic == 1:
                yield Need("messages of magic 1 (KIP-32)", Versions(2, 2))
            elif magic == 0:
                yield Need("messages of magic 0", Versions(0, 1))
            if codec == 4:
                yield _from(7, "zstd (KIP-110)")


def _create_topics(message: Any) -> Iterator[Need]:
    for topic in message.topics:
        if not topic.assignments and (topic.num_partitions == -1 or topic.replication_factor == -1):
            yield _from(4, "the broker's own partition count or replication factor (KIP-464)")


def _metadata(message: Any) -> Iterator[Need]:
    for topic in message.topics or ():
        if topic.name is None or (topic.topic_id is not None and topic.topic_id.int != _NO_UUID):
            yield _from(12, "asking by topic id (KIP-516)")


def _find_coordinator(message: Any) -> Iterator[Need]:
    if message.key_type == 2:
        yield _from(6, "the coordinator of share groups (KIP-932)")


def _acl_user_resource(message: Any) -> Iterator[Need]:
    for part in getattr(message, "creations", None) or getattr(message, "filters", None) or (message,):
        if getattr(part, "resource_type", getattr(part, "resource_type_filter", 0)) == 7:
            yield _from(3, "ACLs on users (KIP-373)")


def _from(low: int, what: str) -> Need:
    return Need(what, Versions(low, LAST_VERSION))


# API key -> what a request of it means beyond its layout, as in the schemas' own notes and Kafka's request builders
_RULES: dict[int, Callable[[Any], Iterator[Need]]] = {
    0: _produce, 2: _list_offsets, 3: _metadata, 10: _find_coordinator, 19: _create_topics,
    29: _acl_user_resource, 30: _acl_user_resource, 31: _acl_user_resource,
}  # fmt: skip
