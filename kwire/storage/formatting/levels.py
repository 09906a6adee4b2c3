"""The levels that a formatted cluster begins with: metadata.version and the features of a release (KIP-1022)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kwire import messages
from kwire.java_semantics import java_int, java_trim
from kwire.schema import FeatureLevel, FeatureRange, MetadataVersion, features, metadata_bounds, metadata_versions
from kwire.schema.feature_levels import KRAFT_VERSION, METADATA_VERSION, unmet
from kwire.storage.formatting.errors import FormatterError
from kwire.storage.formatting.rules import Rules


class BootstrapMetadata(NamedTuple):
    """The records that a cluster's metadata begins with: (message, version) pairs (Kafka's class of that name)."""

    records: tuple[tuple[Any, int], ...]
    level: int
    source: str = "format command"

    def __str__(self) -> str:
        texts = (f"ApiMessageAndVersion({_java_text(record)} at version {version})" for record, version in self.records)
        return (
            f"BootstrapMetadata(records=[{', '.join(texts)}], metadataVersionLevel={self.level}, source={self.source})"
        )


def bootstrap_metadata(levels: Mapping[str, int], scram: list[Any]) -> BootstrapMetadata:
    """The records of these levels, kraft.version left out (it is no metadata record), and of SCRAM users.

    Source: BootstrapMetadata.fromVersions: metadata.version first, the others by name where they are above 0.
    """
    rest = sorted((name, level) for name, level in levels.items() if level > 0)
    named = [(METADATA_VERSION, levels[METADATA_VERSION])]
    named += [(name, level) for name, level in rest if name not in (METADATA_VERSION, KRAFT_VERSION)]
    records = [messages.FeatureLevelRecord(name=name, feature_level=level) for name, level in named]
    return BootstrapMetadata(tuple((record, 0) for record in [*records, *scram]), levels[METADATA_VERSION])


def _java_text(record: Any) -> str:
    """A record as Java's toString writes it."""
    if isinstance(record, messages.FeatureLevelRecord):
        return f"FeatureLevelRecord(name='{record.name}', featureLevel={record.feature_level})"
    arrays = ", ".join(
        f"{name}=[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in value)}]"
        for name, value in (("salt", record.salt), ("storedKey", record.stored_key), ("serverKey", record.server_key))
    )
    return (
        f"UserScramCredentialRecord(name='{record.name}', mechanism={record.mechanism}, {arrays}, "
        f"iterations={record.iterations})"
    )


def version_from_text(text: str, rules: Rules, unstable: bool) -> MetadataVersion:
    """The metadata version with this name: "4.0-IV3", or "4.0" or "4.0.1" for the last stable one of 4.0.

    unstable: whether one that the release does not run in production is accepted where Kafka checks that here (4.2).
    Raises FormatterError with the text of the release (MetadataVersion.fromVersionString).
    """
    parts = text.split(".")
    while len(parts) > 1 and not parts[-1]:  # as String.split
        parts.pop()
    wanted = 3 if text.startswith("0.") and not rules.kraft_only else 2
    key = text if wanted >= len(parts) else ".".join(parts[:wanted])
    bounds, known = metadata_bounds(rules.release), _known_versions(rules)
    names = [row.name for row in known]
    last = bounds.testing if unstable else bounds.default
    for row in known[::-1]:
        if key == row.name or (key == row.release and is_production(row, rules)):
            if not rules.shows_records or names.index(row.name) <= names.index(last):
                return row
            break
    if rules.shows_records:
        shown = ", ".join(names[names.index(bounds.minimum) : names.index(last) + 1])
        raise FormatterError(f"Unknown {METADATA_VERSION} '{text}'. Supported {METADATA_VERSION} are: {shown}")
    limits = f". The minimum version is {bounds.minimum} and the maximum version is {bounds.testing}"
    raise FormatterError(f"Version {text} is not a valid version{limits if rules.kraft_only else ''}")


def _known_versions(rules: Rules) -> tuple[MetadataVersion, ...]:
    """All metadata versions of a release; up to 3.9 also those before KRaft."""
    if rules.kraft_only:
        return metadata_versions(rules.release)
    old = tuple(row for row in metadata_versions(old=True) if row.level < 0)
    return old + metadata_versions(rules.release)


def version_of_level(level: int, rules: Rules) -> MetadataVersion:
    """The metadata version with this level. Raises FormatterError (MetadataVersion.fromFeatureLevel)."""
    known = metadata_versions(rules.release)
    for row in known:
        if row.level == level:
            return row
    limits = f". Valid feature levels are from {known[0].level} to {known[-1].level}."
    raise FormatterError(f"No MetadataVersion with feature level {level}{limits if rules.kraft_only else ''}")


def is_production(version: MetadataVersion, rules: Rules) -> bool:
    """Whether a release runs a metadata version in production."""
    names = [row.name for row in metadata_versions(rules.release)]
    default = metadata_bounds(rules.release).default
    return version.level < 0 or names.index(version.name) <= names.index(default)


def parse_features(arguments: Iterable[str]) -> dict[str, int]:
    """The levels that --feature NAME=LEVEL names. Raises FormatterError with Kafka's text."""
    return dict(map(name_and_level, arguments))


def name_and_level(argument: str) -> tuple[str, int]:
    """The feature and the level in NAME=LEVEL. Raises FormatterError (FeatureCommand.parseNameAndLevel)."""
    name, equals, level = map(java_trim, argument.partition("="))
    if not equals:
        raise FormatterError(f"Can't parse feature=level string {argument}: equals sign not found.")
    try:
        return name, java_int(level, 16)
    except ValueError:
        reason = f"unable to parse {level} as a short."
        raise FormatterError(f"Can't parse feature=level string {argument}: {reason}") from None


def default_level(feature: FeatureRange, version: MetadataVersion, rules: Rules) -> int:
    """The level of a feature that comes with a metadata version (Feature.defaultLevel)."""
    order = {row.name: at for at, row in enumerate(_known_versions(rules))}
    level = feature.levels[0].level
    for row in feature.levels:
        if order[row.bootstrap_metadata_version] > order[version.name]:
            break
        level = row.level
    return level


def other_features(rules: Rules) -> dict[str, FeatureRange]:
    """The features of a release beside metadata.version."""
    known = {name: row for name, row in features(rules.release).items() if name != METADATA_VERSION}
    if rules.kraft_needs_3_9:
        needs = {METADATA_VERSION: version_from_text("3.9", rules, False).level}
        feature = known[KRAFT_VERSION]
        levels = (row._replace(dependencies=needs) if row.level else row for row in feature.levels)
        known[KRAFT_VERSION] = feature._replace(levels=tuple(levels))
    return known


def effective_levels(
    version: MetadataVersion, asked: Mapping[str, int], dynamic_quorum: bool, unstable: bool, rules: Rules
) -> dict[str, int]:
    """Every feature's level, by name: as asked, else the one that comes with the metadata version.

    dynamic_quorum: whether the voters may change, which is kraft.version 1. Raises FormatterError.
    Source: Formatter.calculateEffectiveFeatureLevels.
    """
    known = other_features(rules)
    for name in sorted(asked):
        if name != METADATA_VERSION and name not in known:
            raise FormatterError(f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(known))}")
    levels = {**asked, METADATA_VERSION: version.level}
    for name, feature in known.items():
        if name == KRAFT_VERSION:
            levels[name] = _kraft_version(asked.get(name), dynamic_quorum, rules)
        elif name not in asked:
            levels[name] = default_level(feature, version, rules)
    for name in sorted(known):
        wanted = feature_level(known[name], levels[name], unstable)
        check_dependencies(name, wanted, levels, rules)
    return dict(sorted(levels.items()))


def _kraft_version(asked: int | None, dynamic_quorum: bool, rules: Rules) -> int:
    if asked is None:
        return int(dynamic_quorum)
    if (asked == 0) != dynamic_quorum:
        return asked
    flags = (
        "controller.quorum.voters is empty and one of the flags --standalone, --initial-controllers, or "
        "--no-initial-controllers is used."
    )
    if not rules.checks_voters:
        condition = f"{'if' if asked == 0 else 'unless'} KIP-853 configuration is present."
        advice = "Try removing the --feature flag for kraft.version."
    elif asked == 0:
        condition = f"if {flags}"
        advice = "For dynamic controllers support, try removing the --feature flag for kraft.version."
    else:
        condition = f"unless {flags}"
        advice = (
            "For dynamic controllers support, try using one of --standalone, --initial-controllers, or "
            "--no-initial-controllers and removing controller.quorum.voters."
        )
    raise FormatterError(f"Cannot set kraft.version to {asked} {condition} {advice}")


def feature_level(feature: FeatureRange, level: int, unstable: bool) -> FeatureLevel:
    """The level of a feature. Raises FormatterError if the release lacks it, or has it for tests only."""
    for row in feature.levels:
        if row.level == level and (unstable or level <= feature.maximum):
            return row
    raise FormatterError(f"No feature:{feature.name} with feature level {level}")


def check_dependencies(name: str, wanted: FeatureLevel, levels: Mapping[str, int], rules: Rules) -> None:
    """Raise FormatterError if a level needs another feature's level that is not there (Feature.validateVersion)."""
    refused = f"{name} could not be set to {wanted.level} because it depends on"
    minimum = metadata_bounds(rules.release).bootstrap_minimum
    least = next(row.level for row in metadata_versions(rules.release) if row.name == minimum)
    if wanted.level >= 1 and levels.get(METADATA_VERSION, 0) < least:
        raise FormatterError(f"{refused} {METADATA_VERSION}={least} ({minimum})")
    missing = unmet(wanted.dependencies, levels)
    if missing is not None:
        raise FormatterError(f"{refused} {missing[0]} level {missing[1]}")
