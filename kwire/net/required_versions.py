"""The versions that a message needs: for fields that are set, for values, and by the cluster's feature levels."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from kwire import messages, schema
from kwire.schema import Field, Versions, api_keys
from kwire.schema.definitions import LAST_VERSION
from kwire_c.record_batch import ATTRIBUTES_OFFSET, CODEC_MASK, LEGACY_ATTRIBUTES_OFFSET, MAGIC_OFFSET


class Need(NamedTuple):
    """The versions that one part of a message needs. what: the part, for errors; droppable: the field is ignorable."""

    what: str
    versions: Versions
    droppable: bool = False


def needs(message: Any, name: str) -> list[Need]:
    """What a message (of that schema name) needs of its version; empty if every version can carry it."""
    definition = schema.message(name)
    needed: dict[Need, None] = {}
    _collect(message, _parts(name), needed)
    rule = VALUE_RULES.get(definition.api_key if definition.api_key is not None else -1)
    if rule is not None and definition.type == "request":
        needed |= dict.fromkeys(rule(message))
    return list(needed)


class LevelRule(NamedTuple):
    """Versions of a request, from first on, that a broker takes only where a feature is finalized at a level.

    when: the requests that the rule is for; None: all of the API.
    """

    first: int
    feature: str
    level: int
    when: Callable[[Any], bool] | None = None

    def applies(self, message: Any) -> bool:
        """Whether the rule is for this request; message None: for every request of the API."""
        return self.when is None or (message is not None and self.when(message))


class _Part(NamedTuple):
    """A field that some version lacks, or that is not nullable in some version; or a struct with such fields."""

    name: str
    default: Any  # the value that needs nothing; _EMPTY: any empty array
    need: Need | None  # of any other value; None if every version has the field
    other: str | None  # the field that says the same in other versions: a topic's name for its id, its id for its name
    alone: Need | None  # in place of need where the other is not set
    null_need: Need | None  # of null
    array: bool
    below: tuple[_Part, ...]


_EMPTY = object()


@lru_cache(None)
def _parts(name: str) -> tuple[_Part, ...]:
    definition = schema.message(name)
    return _parts_of(definition.fields, definition.valid_versions, getattr(messages, name), "")


def _parts_of(fields: tuple[Field, ...], within: Versions, root: Any, path: str) -> tuple[_Part, ...]:
    parts = []
    for field in fields:
        present, where = field.versions.overlap(within), f"{path}.{field.snake_name}"
        below = _parts_of(field.fields, present, root, where)
        nullable = field.nullable_versions.overlap(within)
        need = None if present == within else Need(where, field.versions, field.ignorable)
        everywhere = nullable in (schema.NO_VERSIONS, present)
        null_need = None if everywhere else Need(f"{where}=None", field.nullable_versions)
        null_need = null_need or need
        if need or null_need or below:
            default = _default(field, root)
            other = _other(field, fields)
            alone = Need(f"a topic by its {'id' if field.type == 'uuid' else 'name'} alone (KIP-516)", field.versions)
            parts.append(_Part(
                field.snake_name, default, need, other, alone if other else None, null_need, field.is_array, below
            ))  # fmt: skip
    return tuple(parts)


def _other(field: Field, siblings: tuple[Field, ...]) -> str | None:
    """The topic id that newer versions have in place of this name, or the name for this id; None for other fields."""
    pair = [one for one in siblings if one.ignorable and one.name in ("TopicId", "Topic", "Name")]
    if len(pair) != 2 or field not in pair or pair[0].versions.overlap(pair[1].versions):
        return None
    return pair[1 - pair.index(field)].snake_name


def _default(field: Field, root: Any) -> Any:
    if field.default == "null" or field.type == "records":
        return None
    if field.is_array:
        return _EMPTY
    if field.type == "uuid":
        return uuid.UUID(int=0)
    return getattr(root, field.struct)() if field.struct else field.default_value


def _collect(value: Any, parts: tuple[_Part, ...], needed: dict[Need, None]) -> None:
    for name, default, need, other, alone, null_need, array, below in parts:
        content = getattr(value, name)
        if content == default or (default is _EMPTY and content is not None and not len(content)):
            continue
        if content is None:
            if null_need is not None:
                needed[null_need] = None
            continue
        if alone is not None and other is not None and not _set(getattr(value, other)):
            needed[alone] = None
        elif need is not None:
            needed[need] = None
        if below:
            for item in content if array else (content,):
                _collect(item, below, needed)


def _set(topic: Any) -> bool:
    """Whether a topic's name or id is given."""
    return bool(topic.int if isinstance(topic, uuid.UUID) else topic)


def _list_offsets(message: Any) -> Iterator[Need]:
    lowest = {
        -3: (7, "the offset of the largest timestamp (KIP-734)"), -4: (8, "the earliest local offset (KIP-405)"),
        -5: (9, "the last tiered offset (KIP-1005)"), -6: (11, "the earliest offset to upload (KIP-1023)"),
    }  # fmt: skip
    for topic in message.topics:
        for partition in topic.partitions:
            if partition.timestamp >= 0:
                yield _from(1, "an offset lookup by timestamp (KIP-79)")
            elif partition.timestamp in lowest:
                yield _from(*lowest[partition.timestamp])


def _produce(message: Any) -> Iterator[Need]:
    for topic in message.topic_data:
        for partition in topic.partition_data:
            head = bytes(memoryview(partition.records or b"")[: ATTRIBUTES_OFFSET + 2])
            if len(head) <= LEGACY_ATTRIBUTES_OFFSET:
                continue
            magic = head[MAGIC_OFFSET]
            is_v2 = magic == 2 and len(head) == ATTRIBUTES_OFFSET + 2
            codec = head[ATTRIBUTES_OFFSET + 1 if is_v2 else LEGACY_ATTRIBUTES_OFFSET] & CODEC_MASK
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
        if topic.name is None or (topic.topic_id is not None and topic.topic_id.int):
            yield _from(12, "a topic id (KIP-516)")


def _find_coordinator(message: Any) -> Iterator[Need]:
    if message.key_type == 2:
        yield _from(6, "the coordinator of share groups (KIP-932)")


def _acl_user_resource(message: Any) -> Iterator[Need]:
    for part in getattr(message, "creations", None) or getattr(message, "filters", None) or (message,):
        if getattr(part, "resource_type", getattr(part, "resource_type_filter", 0)) == 7:
            yield _from(3, "ACLs on users (KIP-373)")


def _from(low: int, what: str) -> Need:
    return Need(what, Versions(low, LAST_VERSION))


# API key -> the needs of a request's values beyond its fields, as in the schemas' comments and Kafka's request builders
VALUE_RULES: dict[int, Callable[[Any], Iterator[Need]]] = {
    api_keys.PRODUCE: _produce, api_keys.LIST_OFFSETS: _list_offsets, api_keys.METADATA: _metadata,
    api_keys.FIND_COORDINATOR: _find_coordinator, api_keys.CREATE_TOPICS: _create_topics,
    api_keys.DESCRIBE_ACLS: _acl_user_resource, api_keys.CREATE_ACLS: _acl_user_resource,
    api_keys.DELETE_ACLS: _acl_user_resource,
}  # fmt: skip

# API key -> the versions that need a finalized level, as in Kafka's EndTxnRequest, TxnOffsetCommitRequest and
# ProduceRequest (LAST_STABLE_VERSION_BEFORE_TRANSACTION_V2) and in the notes of their schemas (KIP-890)
LEVEL_RULES: dict[int, LevelRule] = {
    api_keys.PRODUCE: LevelRule(12, "transaction.version", 2, lambda message: message.transactional_id is not None),
    api_keys.END_TXN: LevelRule(5, "transaction.version", 2),
    api_keys.TXN_OFFSET_COMMIT: LevelRule(5, "transaction.version", 2),
}
