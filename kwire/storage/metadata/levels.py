"""What metadata records look like at a metadata.version, and which downgrades lose nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from kwire import messages
from kwire.errors import UnsupportedVersionError
from kwire.schema import (
    MetadataVersion,
    features,
    message,
    metadata_bounds,
    metadata_version,
    metadata_versions,
    releases,
)
from kwire.schema.feature_levels import METADATA_VERSION, unmet
from kwire.storage.metadata.record_json import shown
from kwire.storage.metadata.tables import MIGRATING, Tables

if TYPE_CHECKING:
    from kwire_c.message_class import Message

ELIGIBLE_REPLICAS = "eligible.leader.replicas.version"
_ELIGIBLE_FIELDS = ("eligible_leader_replicas", "last_known_elr")

# record -> the method of Kafka's MetadataVersion that says whether a level has it; the others every level has
_SUPPORTED = {
    "UserScramCredentialRecord": "isScramSupported",
    "DelegationTokenRecord": "isDelegationTokenSupported",
    "RegisterControllerRecord": "isControllerRegistrationSupported",
    "ZkMigrationStateRecord": "isMigrationSupported",
}


class Level(Protocol):
    """A row of a table of levels: whether it changed the records."""

    @property
    def level(self) -> int:
        """The feature level."""

    @property
    def changed(self) -> bool:
        """Whether this level changed the metadata records in a way that older software cannot read."""


def is_lossless(level: int, target: int, table: Iterable[Level] | None = None) -> bool:
    """Whether a downgrade from a level to a lower one loses nothing: no level in (target, level] changed the records.

    table: the rows of levels; by default Kafka's metadata versions. The example of KIP-778, whose flag
    isBackwardsCompatible is the opposite of `changed`:

    >>> from typing import NamedTuple
    >>> class Version(NamedTuple):
    ...     level: int
    ...     changed: bool
    ...     description: str
    >>> versions = [
    ...     Version(1, False, "initial version"),
    ...     Version(2, False, "Adding new RPC X"),
    ...     Version(3, False, "Adding new optional field to Foo record"),
    ...     Version(4, True, "New metadata record type Bar"),
    ...     Version(5, False, "New optional field on Bar record"),
    ... ]
    >>> is_lossless(5, 4, versions)
    True
    >>> [is_lossless(3, target, versions) for target in (2, 1)]
    [True, True]
    >>> [is_lossless(level, target, versions) for level in (4, 5) for target in (3, 2, 1)]
    [False, False, False, False, False, False]

    Source: KIP-778, "Downgrades"; Kafka's MetadataVersion.checkIfMetadataChanged.
    """
    rows: Iterable[Level] = metadata_versions() if table is None else table
    return not any(row.changed for row in rows if target < row.level <= level)


def changed_between(level: int, target: int) -> list[MetadataVersion]:
    """The metadata versions in (target, level] that changed the records, ascending."""
    return [row for row in metadata_versions() if row.changed and target < row.level <= level]


class Loss(NamedTuple):
    """Something that a downgrade loses, one for each loss that Kafka's writer names.

    record: the record as it is in the image; field: the name of the field that is lost, None where the target does not
    have such records at all; value: the field's value, or all the records of that type, of which record is the first.
    """

    record: Message
    field: str | None
    value: object

    def each(self) -> Iterator[Message]:
        """The records that lose the field, or are lost as a whole."""
        yield from self._records() if self.field is None else [self.record]

    def _records(self) -> tuple[Message, ...]:
        return cast("tuple[Message, ...]", self.value)

    def __repr__(self) -> str:  # the records may hold secrets
        value = f"({', '.join(map(shown, self._records()))})" if self.field is None else repr(self.value)
        return f"Loss(record={shown(self.record)}, field={self.field!r}, value={value})"


class Writer:
    """Gives records as Kafka's MetadataImage.write does at a metadata.version.

    level: the metadata version; eligible: whether the image has eligible.leader.replicas.version, without which Kafka
    writes no such replicas; keeps_eligible: whether it still has it at that level.
    """

    def __init__(self, level: MetadataVersion, eligible: bool, keeps_eligible: bool = True) -> None:
        self.level, self._eligible, self._keeps_eligible = level, eligible, keeps_eligible
        self._writes_features = level.level >= _first_with_features()
        self._forms: dict[str, tuple[int, tuple[tuple[str, Any], ...]] | None] = {}

    def __call__(self, record: Any) -> tuple[Message, int, list[Loss]] | Loss | None:
        """(record, version, fields lost) to write; a Loss if the level has no such record; None: nothing, no loss.

        A record that loses fields is a copy. The ZooKeeper migration state "none" is no loss, and neither is the
        FeatureLevelRecord of metadata.version, or of a level 0, below 3.3-IV0, which has no such records.
        """
        name = type(record).__name__
        form = self._form(name)
        if form is None:
            if name == "ZkMigrationStateRecord":
                return Loss(record, None, (record,)) if record.zk_migration_state else None
            no_loss = name == "FeatureLevelRecord" and (record.name == METADATA_VERSION or not record.feature_level)
            return None if no_loss else Loss(record, None, (record,))
        version, absent = form
        if name == "PartitionRecord" and not self._eligible:
            record = _without_eligible(record)
        written, lost = record, []
        for field, default in absent:
            value = getattr(record, field)
            if value == default:
                continue
            if field != "directories" or any(directory != MIGRATING for directory in value):
                lost.append(Loss(record, field, value))
            if written is record:
                written = copy.copy(record)
            setattr(written, field, default)
        return written, version, lost

    def _form(self, name: str) -> tuple[int, tuple[tuple[str, Any], ...]] | None:
        """(version, fields that it lacks with their defaults) of a record, None if the level does not have it."""
        if name not in self._forms:
            self._forms[name] = self._make_form(name)
        return self._forms[name]

    def _make_form(self, name: str) -> tuple[int, tuple[tuple[str, Any], ...]] | None:
        can = self.level.can
        if name == "FeatureLevelRecord" and not self._writes_features:
            return None
        if name in _SUPPORTED and not can.get(_SUPPORTED[name]):
            return None
        known = message(name)
        version = can.get(f"{name[0].lower()}{name[1:]}Version") or 0
        blank = getattr(messages, name)()
        return version, tuple(
            (field.snake_name, getattr(blank, field.snake_name)) for field in known.fields
            if not field.versions.low <= version <= field.versions.high
            or (name == "PartitionRecord" and field.snake_name in _ELIGIBLE_FIELDS and not self._keeps_eligible)
        )


def _without_eligible(partition: Any) -> Any:
    """Kafka writes the eligible leader replicas only where their feature is enabled."""
    if all(getattr(partition, field) is None for field in _ELIGIBLE_FIELDS):
        return partition
    partition = copy.copy(partition)
    for field in _ELIGIBLE_FIELDS:
        setattr(partition, field, None)
    return partition


@lru_cache(None)
def _first_with_features() -> int:
    """The first level with FeatureLevelRecords in their present form: below it nothing says the level."""
    return metadata_version(metadata_bounds(metadata_versions()[0].first).bootstrap_minimum).level


def known_level(tables: Tables) -> MetadataVersion:
    """The metadata.version of an image. Without one it is the first, as KIP-778 says of preview clusters.

    Raises UnsupportedVersionError for a level that the schema does not have.
    """
    record = tables.features.get(METADATA_VERSION)
    if record is None:
        return metadata_versions()[0]
    last = metadata_versions()[-1]
    if record.feature_level > last.level:
        raise UnsupportedVersionError(
            f"unknown metadata.version {record.feature_level}: expected at most {last.level} ({last.name})",
            api=METADATA_VERSION, needed=record.feature_level, offered=(metadata_versions()[0].level, last.level),
        )  # fmt: skip
    return metadata_version(record.feature_level)


def eligible_replicas(tables: Tables) -> bool:
    """Whether the feature of eligible leader replicas is enabled (KIP-966)."""
    record = tables.features.get(ELIGIBLE_REPLICAS)
    return record is not None and record.feature_level > 0


def written(tables: Tables, writer: Writer) -> Iterator[tuple[Message, int, list[Loss]] | Loss]:
    """What the writer makes of each record of the tables, in order."""
    for _, record in tables:
        made = writer(record)
        if made is not None:
            yield made


def lowered_features(levels: Mapping[str, int]) -> dict[str, int]:
    """The levels that a set of feature levels cannot keep, because what they need is not there: feature -> new level.

    levels: the level of each feature, metadata.version too. A feature is lowered as little as possible, and others
    that need it are then lowered too. Source: Kafka's Feature.validateVersion.
    """
    result = dict(levels)
    while True:
        for name, level in result.items():
            needs = {} if name == METADATA_VERSION else _dependencies(name)
            if unmet(needs.get(level, {}), result):
                lower = (one for one in needs if one < level and not unmet(needs[one], result))
                result[name] = max(lower, default=0)
                break
        else:
            return {name: level for name, level in result.items() if level != levels[name]}


def _dependencies(feature: str) -> dict[int, dict[str, int]]:
    """Level -> the feature levels it needs, as the newest release that has the feature says; {} for an unknown one."""
    return _all_dependencies().get(feature, {})


@lru_cache(None)
def _all_dependencies() -> dict[str, dict[int, dict[str, int]]]:
    first = releases().index(metadata_versions()[0].first)
    return {
        name: {row.level: row.dependencies for row in known.levels}
        for release in releases()[first:] for name, known in features(release).items()
    }  # of the newest release
