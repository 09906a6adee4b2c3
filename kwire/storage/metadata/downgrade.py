"""Downgrades of a cluster image to a lower metadata.version (KIP-778)."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from kwire import messages
from kwire.errors import UnsupportedVersionError
from kwire.schema import MetadataVersion, metadata_version
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage.metadata.errors import DowngradeError
from kwire.storage.metadata.levels import (
    ELIGIBLE_REPLICAS,
    Loss,
    Writer,
    changed_between,
    known_level,
    lowered_features,
    written,
)
from kwire.storage.metadata.replay import Replay
from kwire.storage.metadata.tables import Tables
from kwire_c.printable import brief

if TYPE_CHECKING:
    from kwire.storage.metadata.image import ClusterImage


class Downgrade(tuple["ClusterImage", list[Loss]]):
    """(the new image, what was lost). lowered: feature -> (level, new level), where the target lacks what it needs."""

    lowered: dict[str, tuple[int, int]]

    @property
    def image(self) -> ClusterImage:
        """The image at the lower level."""
        return self[0]

    @property
    def losses(self) -> list[Loss]:
        """What was lost, in the order of the records."""
        return self[1]


def downgraded(image: ClusterImage, wanted: int | str, unsafe: bool) -> Downgrade:
    """The image at a lower metadata.version. Raises as ClusterImage.downgrade."""
    level, target = _levels(image, wanted)
    levels = {**image.features, METADATA_VERSION: target.level}
    lowered = {name: (levels[name], lower) for name, lower in lowered_features(levels).items()}
    tables, losses = _rewritten(image, target, lowered)
    changes = changed_between(level.level, target.level)
    if (changes or lowered) and not unsafe:
        raise DowngradeError(_refusal(level, target, changes, losses, lowered), losses, lowered)
    result = Downgrade((image.with_tables(tables), losses))
    result.lowered = lowered
    return result


def _levels(image: ClusterImage, wanted: int | str) -> tuple[MetadataVersion, MetadataVersion]:
    """(the image's level, the level to go to)."""
    target = metadata_version(wanted)
    if target.level < 1:
        raise UnsupportedVersionError(
            f"metadata.version {brief(wanted)} is before KRaft: expected {metadata_version(1).name} or later",
            needed=wanted)
    level = known_level(image.tables)
    if target.level > level.level:
        raise DowngradeError(
            f"metadata.version {target.level} ({target.name}) is not below the {level.level} ({level.name}) "
            f"of the image: no downgrade")
    return level, target


def _refusal(
    level: MetadataVersion, target: MetadataVersion, changes: list[MetadataVersion], losses: list[Loss],
    lowered: dict[str, tuple[int, int]],
) -> str:
    reasons = []
    if changes:
        reasons.append(f"{', '.join(row.name for row in changes)} changed the records, so it might lose metadata")
        count = sum(1 for loss in losses for _ in loss.each())
        plural = "s" * (count != 1)
        reasons.append(f"of this image {count:,} record{plural} or field{plural}" if count else "of this image nothing")
    for name, (old, new) in lowered.items():
        reasons.append(f"{name} {old} does not work with it and would be lowered to {new}")
    return (f"downgrade of metadata.version from {level.level} ({level.name}) to {target.level} ({target.name}) is "
            f"refused unless it is unsafe: {'; '.join(reasons)}")


def _rewritten(
    image: ClusterImage, target: MetadataVersion, lowered: dict[str, tuple[int, int]]
) -> tuple[Tables, list[Loss]]:
    """The tables as they are read back from a snapshot at the target, and what is lost: all is written and reloaded.

    A feature that is lowered to 0 keeps its record, with that level: it tells older software to remove the feature.
    """
    eligible = image.features.get(ELIGIBLE_REPLICAS, 0) > 0
    writer = Writer(target, eligible, ELIGIBLE_REPLICAS not in lowered)
    tables, losses = Tables(), list[Loss]()
    replay = Replay(tables)
    kept: dict[str, messages.FeatureLevelRecord] = {}
    for made in written(image.tables, writer):
        if isinstance(made, Loss):
            losses.append(made)
            continue
        record, _, lost = made
        losses += lost
        if isinstance(record, messages.FeatureLevelRecord):
            record = copy.copy(record)
            if record.name == METADATA_VERSION:
                record.feature_level = target.level
            elif record.name in lowered:
                record.feature_level = lowered[record.name][1]
            elif not record.feature_level:  # of an earlier downgrade
                continue
            kept[record.name] = record
        else:
            replay(record)
    tables.features.update(kept)
    return tables, _by_type(losses)


def _by_type(losses: list[Loss]) -> list[Loss]:
    """The losses with one for all the records of a type that are lost, where the first of them was."""
    whole: dict[str, list[Any]] = {}
    for loss in losses:
        if loss.field is None:
            whole.setdefault(type(loss.record).__name__, []).append(loss.record)
    result = []
    for loss in losses:
        if loss.field is not None:
            result.append(loss)
        elif records := whole.pop(type(loss.record).__name__, None):
            result.append(Loss(records[0], None, tuple(records)))
    return result
