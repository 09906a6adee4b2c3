"""version-mapping and feature-dependencies of kafka-storage and kafka-features (KIP-1022, Kafka 4.0 and later)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kwire.java_semantics import java_int
from kwire.schema import metadata_bounds
from kwire.schema.feature_levels import METADATA_VERSION
from kwire.storage.formatting.errors import FormatterError
from kwire.storage.formatting.levels import default_level, other_features, version_from_text, version_of_level
from kwire.storage.formatting.rules import Rules


class Dependencies(NamedTuple):
    """The levels that one level of a feature needs. version: of metadata.version its name."""

    feature: str
    level: int
    version: str | None
    needs: dict[str, int]


def version_mapping(release_version: str | None, rules: Rules) -> dict[str, int]:
    """The level of each feature that comes with a metadata version, metadata.version first.

    release_version: by default the release's own. Raises FormatterError for an unknown one
    (StorageTool.runVersionMappingCommand).
    """
    bounds = metadata_bounds(rules.release)
    wanted = bounds.default if release_version is None else release_version
    try:
        version = version_from_text(wanted, rules, True)
    except FormatterError:
        if rules.shows_records:
            raise
        raise FormatterError(
            f"Unknown release version '{wanted}'. Supported versions are: {bounds.minimum} to {bounds.default}"
        ) from None
    levels = {name: default_level(feature, version, rules) for name, feature in other_features(rules).items()}
    return {METADATA_VERSION: version.level, **levels}


def mapping_lines(levels: Mapping[str, int], release_version: str | None, rules: Rules) -> list[str]:
    """What the tools print of a version mapping; the version is shown as it was given."""
    shown = metadata_bounds(rules.release).default if release_version is None else release_version
    lines = (f"{name}={level}" for name, level in levels.items())
    return [f"{next(lines)} ({shown})", *lines]


def feature_dependencies(argument: str, rules: Rules) -> Dependencies:
    """What a level needs; argument: feature=level.

    Raises FormatterError for an unknown one (StorageTool.runFeatureDependenciesCommand).
    """
    name, equals, text = argument.partition("=")
    if not equals or (not rules.shows_records and "=" in text.rstrip("=")):
        raise FormatterError(
            f"Invalid feature format: {argument}. Expected format: 'feature=version' (e.g. 'group.version=1')"
        )
    if rules.shows_records:
        name, text = name.strip(), text.strip()
    try:
        level = java_int(text, 16)
    except ValueError:
        raise FormatterError(f"Invalid version format: {text} for feature {name}") from None
    found = dependencies(name, level, rules)
    if found is None:
        raise FormatterError(f"Feature level {level} is not supported for feature {name}")
    return found


def dependencies(name: str, level: int, rules: Rules) -> Dependencies | None:
    """What a feature's level needs; None for a level that the release lacks. Raises FormatterError for a feature."""
    if name == METADATA_VERSION:
        try:
            return Dependencies(name, level, version_of_level(level, rules).name, {})
        except FormatterError:
            raise FormatterError(f"Unknown {METADATA_VERSION} {level}") from None
    feature = other_features(rules).get(name)
    if feature is None:
        raise FormatterError(f"Unknown feature: {name}")
    needs = {row.level: row.dependencies for row in feature.levels}
    return Dependencies(name, level, None, needs[level]) if level in needs else None


def dependencies_lines(found: Dependencies, rules: Rules) -> list[str]:
    """What the tools print of one feature's level."""
    shown = f"{found.feature}={found.level}" + (f" ({found.version})" if found.version else "")
    if not found.needs:
        return [f"{shown} has no dependencies."]
    lines = [f"{shown} requires:"]
    for name, level in found.needs.items():
        version = f" ({version_of_level(level, rules).name})" if name == METADATA_VERSION else ""
        lines.append(f"    {name}={level}{version}")
    return lines
