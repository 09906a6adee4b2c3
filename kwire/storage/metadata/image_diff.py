"""What is different between two cluster images, record by record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire import messages
from kwire.storage.metadata.quorum import VERSION, VOTERS
from kwire.storage.metadata.record_json import shown
from kwire.storage.metadata.tables import Tables

if TYPE_CHECKING:
    from kwire.storage.metadata.image import ClusterImage
    from kwire_c.message_class import Message

# Kafka keeps these in maps and sets: a snapshot has them in another order than the log
_UNORDERED = frozenset(["cordoned_log_dirs", "end_points", "entity", "features", "log_dirs", "voters"])


class Change(NamedTuple):
    """One thing that was added (before is None), removed (after is None) or changed.

    record: the name of its record ("PartitionRecord"); key: what it is the record of: a feature's name, a broker's or
    controller's id, a topic's id, (topic id, partition), (resource type, name, config), (quota entity, quota), an ACL's
    id, (user, mechanism), a token's id, () where there is one at most; before, after: the records.
    """

    record: str
    key: object
    before: Message | None
    after: Message | None

    def __repr__(self) -> str:  # the records may hold secrets
        return f"Change({self.record!r}, {self.key!r}, before={shown(self.before)}, after={shown(self.after)})"

    @property
    def kind(self) -> str:
        """ "added", "removed" or "changed"."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"

    @property
    def fields(self) -> dict[str, tuple[object, object]]:
        """Name -> (value before, value after) of the fields that changed; {} where the thing was added or removed."""
        if self.before is None or self.after is None:
            return {}
        kind: Any = type(self.before)
        names = (*kind.__match_args__, "unknown_tags")
        pairs = {name: (getattr(self.before, name), getattr(self.after, name)) for name in names}
        return {name: (one, other) for name, (one, other) in pairs.items() if not _is_same(name, one, other)}


def changes(before: ClusterImage, after: ClusterImage) -> Iterator[Change]:
    """The changes from one image to another: those in both in the order of the first, then what was added."""
    for kind in (VERSION, VOTERS):
        one, other = before.quorum.records.get(kind), after.quorum.records.get(kind)
        change = Change(type(other if one is None else one).__name__, (), one, other)
        if one != other and (change.fields or change.kind != "changed"):
            yield change
    old, new = _by_key(before.tables), _by_key(after.tables)
    for key, record in old.items():
        change = Change(*key, record, new.get(key))
        if change.after is None or (_may_differ(record, change.after) and change.fields):
            yield change
    for key, record in new.items():
        if key not in old:
            yield Change(*key, None, record)


def _by_key(tables: Tables) -> dict[tuple[str, Any], Any]:
    """(name of the record, key) -> record; a feature at level 0 is none."""
    return {
        (type(record).__name__, key): record for key, record in tables
        if not isinstance(record, messages.FeatureLevelRecord) or record.feature_level
    }


def _may_differ(one: Any, other: Any) -> bool:
    return bool(one != other or one.unknown_tags != other.unknown_tags)


def _is_same(field: str, one: Any, other: Any) -> bool:
    if one == other:
        return True
    unordered = field in _UNORDERED and one is not None and other is not None
    return unordered and sorted(one, key=repr) == sorted(other, key=repr)
