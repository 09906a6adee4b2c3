"""What kafka-features of each release reads and prints: its options, its checks before a request, its texts.

The source is FeatureCommand: Scala in 3.3 to 3.5 (core), Java from 3.6 on (tools). A release that has no tool here
behaves as the newest before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kwire import schema
from kwire.cli.argparse4j import ArgumentError, Parser
from kwire.java_semantics import java_int, java_trim
from kwire.net.feature_updates import FeatureMetadata, FeatureUpdate, FeatureUpdateError
from kwire.schema.feature_levels import METADATA_VERSION, MetadataVersion
from kwire.storage.formatting.errors import FormatterError
from kwire.storage.formatting.levels import default_level, name_and_level, other_features, version_from_text
from kwire.storage.formatting.mappings import (
    Dependencies,
    dependencies,
    dependencies_lines,
    mapping_lines,
    version_mapping,
)
from kwire.storage.formatting.rules import rules_of
from kwire_c.printable import printable

UPGRADE, DOWNGRADE, DISABLE = "upgrade", "downgrade", "disable"
_DEPRECATED = " `metadata` flag is deprecated and may be removed in a future release."


class Failure(Exception):
    """What the tool refuses, in its own words."""


class Tool:
    """kafka-features of a release (3.3 or newer). Raises UnsupportedVersionError for others.

    strict=False: it also reads what KIP-778 has and no tool: metadata.version=NAME, and --metadata in version-mapping.
    """

    def __init__(self, release: str, *, strict: bool = True) -> None:
        self.release, self.strict = schema.release_name(release), strict
        self.bounds = schema.metadata_bounds(self.release)
        self._rules = rules_of(release)
        self.levels = {row.level: row for row in schema.metadata_versions(self.release)}

    def since(self, release: str) -> bool:
        """Whether this is the tool of that release or of a later one."""
        return schema.is_at_least(self.release, release)

    @property
    def denied(self) -> dict[int | str, Sequence[int]]:
        """The versions of requests that clients of the release do not speak: API -> versions."""
        denied: dict[int | str, Sequence[int]] = {}
        for name in ("ApiVersions", "UpdateFeatures"):
            newest = schema.api(name, self.release).max_stable_version
            denied[name] = range(newest + 1, schema.api(name).max_version + 1)
        return denied

    # ---- the command line

    def parser(self, prog: str = "kafka-features") -> Parser:
        """The parser of its command line."""
        parser = Parser(prog, "This tool manages feature flags in Kafka.")
        servers = "A comma-separated list of host:port pairs to use for establishing the connection to the {}."
        if self.since("3.7"):
            group = parser.group(required=not self.since("4.3"))
            parser.add("--bootstrap-server", group=group, help=servers.format("Kafka cluster"))
            parser.add("--bootstrap-controller", group=group, help=servers.format("KRaft quorum"))
        else:
            parser.add("--bootstrap-server", required=True, help=servers.format("Kafka cluster"))
        parser.add("--command-config", help="Property file containing configs to be passed to Admin Client.")
        describe = parser.command("describe", "Describes the current active feature flags.")
        if self.since("4.2"):
            describe.add("--node-id", type=java_int, help=(
                "The node id to which the requests should be sent. If not specified, the requests will be sent to an "
                "arbitrary controller/broker."))  # fmt: skip
        self._changing(parser.command(UPGRADE, "Upgrade one or more feature flags."), UPGRADE, "update", "3.3-IV3")
        slip = self.since("3.6") and not self.since("4.2")
        downgrade = parser.command(DOWNGRADE, f"{'Upgrade' if slip else 'Downgrade'} one or more feature flags.")
        self._changing(downgrade, DOWNGRADE, DOWNGRADE, "3.3-IV0")
        disable = parser.command(
            DISABLE, "Disable one or more feature flags. This is the same as downgrading the version to zero."
        )
        disable.add("--feature", kind="append", help="A feature flag to disable.")
        disable.add("--unsafe", kind="flag",
                    help="Disable this feature flag even if it may irreversibly destroy metadata.")  # fmt: skip
        disable.add("--dry-run", kind="flag", help="Perform a dry-run of this disable operation.")
        if self.since("4.0"):
            self._looking_up(parser)
        return parser

    def _changing(self, parser: Parser, op: str, verb: str, example: str) -> None:
        """Add the options of upgrade and downgrade."""
        lead = "DEPRECATED -- The" if self.since("4.0") else "The"
        parser.add("--metadata",
                   help=f"{lead} level to which we should {op} the metadata. For example, {example}.")  # fmt: skip
        if self.since("4.0"):
            parser.add("--release-version", help=(
                f"The release version to {verb} all features to. For example, 3.9-IV0 will set metadata.version=21 and "
                "kraft.version=1. Use the version-mapping command to learn which features will be set for any given "
                "version."))  # fmt: skip
        parser.add("--feature", kind="append", help=(
            f"A feature {op} we should perform, in feature=level format. For example: `metadata.version=5`."
        ))  # fmt: skip
        if op == DOWNGRADE:
            parser.add("--unsafe", kind="flag",
                       help="Perform this downgrade even if it may irreversibly destroy metadata.")  # fmt: skip
        parser.add("--dry-run", kind="flag", help=f"Validate this {op}, but do not perform it.")

    def _looking_up(self, parser: Parser) -> None:
        """Add the commands that need no cluster."""
        mapping = parser.command("version-mapping", (
            "Look up the corresponding features for a given metadata version. Using the command with no "
            "--release-version  argument will return the mapping for the latest stable metadata version"
        ))  # fmt: skip
        mapping.add("--release-version", help=(
            f"The release version to use for the corresponding feature mapping. The minimum is {self.bounds.minimum}; "
            f"the default is {self.bounds.default}"))  # fmt: skip
        if not self.strict:
            mapping.add("--metadata", hidden=True, help="")
        dependencies = parser.command("feature-dependencies", (
            "Look up dependencies for a given feature version. If the feature is not known or the version not yet "
            "defined, an error is thrown. Multiple features can be specified."))  # fmt: skip
        dependencies.add("--feature", kind="append", required=True, help=(
            "The feature and version to look up dependencies for, in feature=version format. For example: "
            "`metadata.version=5`."))  # fmt: skip

    @property
    def help_code(self) -> int:
        """The exit code of --help: argparse4j's parseArgsOrFail (3.6 to 4.2) ends with 1."""
        return 1 if self._or_fail else 0

    @property
    def _or_fail(self) -> bool:
        return self.since("3.6") and not self.since("4.3")

    def usage_error(self, error: ArgumentError) -> str:
        """What it prints for a command line that it cannot read. From 4.3 on, no line end follows."""
        if self._or_fail:
            return error.usage_text()
        return f"Command line error: {error}. Type --help for help." + ("" if self.since("4.3") else "\n")

    # ---- before a request

    def updates(self, op: str, values: Mapping[str, Any]) -> tuple[list[str], dict[str, FeatureUpdate]]:
        """The lines that it prints first, and the updates that it asks for.

        Raises Failure, whose further arguments are these lines.
        """
        lines: list[str] = []
        updates: dict[str, FeatureUpdate] = {}
        kind = "NONE" if op == UPGRADE else "UNSAFE" if values["unsafe"] else "SAFE"
        metadata, release, features = values.get("metadata"), values.get("release_version"), values["feature"]
        try:
            if release is not None:
                if metadata is not None or features is not None:
                    raise Failure("Can not specify `release-version` with other feature flags.")
                updates = self._of_release(release, kind)
            if metadata is not None:
                if self.since("4.0"):
                    lines.append(_DEPRECATED)
                updates[METADATA_VERSION] = self._update(self._metadata_version(metadata).level, kind)
            for text in features or ():
                with _as_failure():
                    name, level = (text, 0) if op == DISABLE else self._name_and_level(text)
                update = self._update(level, kind)
                if name in updates:
                    raise Failure(f"Feature {name} was specified more than once.")
                updates[name] = update
            if not updates:
                raise Failure(f"You must specify at least one feature to {op}")
            if not all(java_trim(name) for name in updates):
                raise Failure("Provided feature can not be empty.")
        except Failure as failure:
            raise Failure(failure.args[0], *lines) from None
        return lines, updates

    def _of_release(self, text: str, kind: str) -> dict[str, FeatureUpdate]:
        """Every feature at its level of a metadata version. An upgrade leaves out those that would get level 0."""
        version = self._metadata_version(text)
        updates = {METADATA_VERSION: self._update(version.level, kind)}
        for name, level in self.default_levels(version).items():
            if level or kind != "NONE":
                updates[name] = self._update(level, kind)
        return updates

    def _update(self, level: int, kind: str) -> FeatureUpdate:
        """A FeatureUpdate, with the checks of its Java constructor."""
        if level == 0 and kind == "NONE":
            asked = "upgradeType flag should be set to SAFE_DOWNGRADE or UNSAFE_DOWNGRADE"
            if not self.since("3.9"):
                asked = "downgradeType flag should be set to SAFE or UNSAFE"
            raise Failure(f"The {asked} when the provided maxVersionLevel:{level} is < 1.")
        if level < 0:
            raise Failure("Cannot specify a negative version level.")
        return FeatureUpdate(level, kind)

    def default_levels(self, version: MetadataVersion) -> dict[str, int]:
        """The level that each feature but metadata.version gets by default with a metadata version."""
        return {name: default_level(row, version, self._rules) for name, row in other_features(self._rules).items()}

    def _metadata_version(self, text: str) -> MetadataVersion:
        """As MetadataVersion.fromVersionString: "3.7-IV4", "3.7" (its last stable one), or "3.7.anything"."""
        try:
            return version_from_text(text, self._rules, unstable=True)
        except FormatterError:
            raise Failure(self._unknown_version(text)) from None

    def _unknown_version(self, text: str) -> str:
        lowest = self.bounds.minimum if self.since("4.0") else self.bounds.bootstrap_minimum
        highest = self.bounds.testing if self.since("4.2") else self.bounds.default
        names = [row.name for row in self.levels.values()]
        known = ", ".join(names[names.index(lowest) : names.index(highest) + 1])
        if self.since("4.2"):
            return f"Unknown metadata.version '{text}'. Supported metadata.version are: {known}"
        if self.since("4.0"):
            return f"Unknown metadata.version {text}. Supported metadata.version are {known}"
        if self.since("3.8"):
            return f"Unsupported metadata.version {text}. Supported metadata.version are {known}"
        return f"Unsupported metadata version {text}. Supported metadata versions are {known}"

    # ---- look-ups

    def mapping(self, text: str | None) -> dict[str, int]:
        """The feature levels with the metadata version of a text (None: the default one). Raises Failure."""
        with _as_failure():
            return version_mapping(text, self._rules)

    def mapping_text(self, text: str | None) -> str:
        """The lines of version-mapping. Raises Failure."""
        return _printed(mapping_lines(self.mapping(text), text, self._rules))

    def dependencies(self, text: str) -> Dependencies:
        """What the level in "name=level" needs. Raises Failure."""
        with _as_failure():
            name, level = self._name_and_level(text)
            found = dependencies(name, level, self._rules)
        if found is None:
            raise Failure(f"No feature:{name} with feature level {level}")
        return found

    def dependencies_text(self, text: str) -> str:
        """The lines of feature-dependencies for one feature. Raises Failure."""
        return _printed(dependencies_lines(self.dependencies(text), self._rules))

    def _name_and_level(self, text: str) -> tuple[str, int]:
        """The feature and level in "name=level". Raises FormatterError."""
        name, _, wanted = map(java_trim, text.partition("="))
        if not self.strict and name == METADATA_VERSION:
            for row in self.levels.values():
                if row.name == wanted:
                    return name, row.level
        return name_and_level(text)

    def level_text(self, feature: str, level: int) -> str:
        """A level, of metadata.version by name."""
        if feature != METADATA_VERSION:
            return str(level)
        if level in self.levels:
            return self.levels[level].name
        return f"UNKNOWN {level}" if self.since("3.6") else f"UNKNOWN [{level}]"

    # ---- output

    def description(self, metadata: FeatureMetadata) -> str:
        """The lines of describe."""
        row = "Feature: {}\tSupportedMinVersion: {}\tSupportedMaxVersion: {}\tFinalizedVersionLevel: {}\tEpoch: {}\n"
        if self.since("4.3"):
            row = (
                "Feature: {:<40}  SupportedMinVersion: {:<15}  SupportedMaxVersion: {:<15}  "
                "FinalizedVersionLevel: {:<15}  Epoch: {}\n"
            )
        text = ""
        for name, (low, high) in sorted(metadata.supported.items()):
            levels = (self.level_text(name, level) for level in (low, high, metadata.finalized.get(name, 0)))
            text += row.format(printable(name), *levels, metadata.epoch if metadata.epoch >= 0 else "-")
        return text


@contextmanager
def _as_failure() -> Iterator[None]:
    """Let a FormatterError be what the tool refuses: the two tools have these texts in common."""
    try:
        yield
    except FormatterError as error:
        raise Failure(str(error)) from None


def _printed(lines: Iterable[str]) -> str:
    return "".join(f"{printable(line)}\n" for line in lines)


def java_exception(code: schema.ErrorCode, text: str) -> str:
    """An error as the text of a Java exception: "org.apache.kafka.common.errors.UnsupportedVersionException: ..."."""
    name = code.name.removesuffix("_FAILED").title().replace("_", "")
    return f"org.apache.kafka.common.errors.{name}Exception: {text}"


def results_text(
    op: str, dry_run: bool, updates: Mapping[str, FeatureUpdate], results: Mapping[str, FeatureUpdateError | None]
) -> str:
    """The lines on the outcome of each feature."""
    lines = []
    for name, error in sorted(results.items()):
        shown = printable(name)
        to = "" if op == DISABLE else f" to {updates[name].level}"
        if error is None:
            done = "disabled" if op == DISABLE else f"{op}d"
            lines.append(f"{shown} {'can be' if dry_run else 'was'} {done}{to}.\n")
        else:
            lines.append(f"{'Can' if dry_run else 'Could'} not {op} {shown}{to}. {error.reason}\n")
    return "".join(lines)
