"""Formats the storage directories of a node, as kafka-storage of a release does (KIP-631, KIP-778, KIP-853)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import NoneType
from typing import NamedTuple
from uuid import UUID

from kwire.codec.arguments import check_each, check_int, check_type
from kwire.java_semantics import copy_order, put_order
from kwire.schema import MetadataVersion, metadata_bounds, metadata_versions
from kwire.schema.feature_levels import KRAFT_VERSION, METADATA_VERSION
from kwire.storage.formatting.directories import Staging
from kwire.storage.formatting.dynamic_voters import DynamicVoter, parse_voters, voters_record
from kwire.storage.formatting.ensemble import MetaPropertiesEnsemble
from kwire.storage.formatting.errors import FormatterError
from kwire.storage.formatting.levels import (
    BootstrapMetadata,
    bootstrap_metadata,
    check_dependencies,
    default_level,
    effective_levels,
    feature_level,
    is_production,
    other_features,
    version_from_text,
    version_of_level,
)
from kwire.storage.formatting.scram_parser import scram_records
from kwire.storage.formatting.server_config import BROKER, CONTROLLER, ServerConfig
from kwire.storage.formatting.snapshots import bootstrap_checkpoint, quorum_snapshot
from kwire.storage.side_files.meta_properties import META_PROPERTIES, MetaProperties
from kwire.storage.side_files.uuids import random_directory_id, random_uuid, uuid_from_text, uuid_text
from kwire_c.printable import brief

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
METADATA_SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
_LEGACY = (
    "The kafka configuration file appears to be for a legacy cluster. Formatting is only supported for clusters in "
    "KRaft mode."
)
_JAVA = {
    errno.EACCES: "java.nio.file.AccessDeniedException", errno.EPERM: "java.nio.file.FileSystemException",
    errno.EEXIST: "java.nio.file.FileAlreadyExistsException", errno.ENOENT: "java.nio.file.NoSuchFileException",
    errno.ENOTDIR: "java.nio.file.FileSystemException", errno.EROFS: "java.nio.file.FileSystemException",
    errno.ENAMETOOLONG: "java.nio.file.FileSystemException",
}  # fmt: skip


class Formatted(NamedTuple):
    """What a formatter did: the directories it formatted, the records that the metadata begins with, all levels."""

    directories: dict[str, MetaProperties]
    bootstrap: BootstrapMetadata
    levels: dict[str, int]


class Formatter:
    """Formats the directories of one node.

    config: the node's configuration, which also says of which release the files are; cluster_id: the cluster's id;
    release_version: the metadata.version to begin with, by name ("4.3-IV0", "4.3"), features: levels of features, by
    default those of the release; standalone, initial_controllers ("1@host:9093:DIRECTORY_ID,..."),
    no_initial_controllers: the first voters of a dynamic quorum (at most one of the three; KIP-853); scram: credentials
    as in --add-scram; ignore_formatted: leave directories alone that are formatted already; report: called with each
    line that Kafka's tool would print.

    Source: Kafka's Formatter and StorageTool; run() raises FormatterError with their texts. Files are written before
    any of them gets its name: if one directory cannot be written, none is formatted.
    """

    def __init__(
        self, config: ServerConfig, cluster_id: str, *, release_version: str | None = None,
        features: Mapping[str, int] | None = None, standalone: bool = False, initial_controllers: str | None = None,
        no_initial_controllers: bool = False, scram: Sequence[str] = (), ignore_formatted: bool = False,
        report: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        check_type(config, ServerConfig, "config", "a ServerConfig")
        check_type(cluster_id, str, "cluster_id", "a str")
        check_type(release_version, (str, NoneType), "release_version", "a str or None")
        check_type(features, (Mapping, NoneType), "features", "a mapping of str to int")
        levels = dict(features or {})
        for name, level in levels.items():
            check_type(name, str, "the name in features", "a str")
            levels[name] = check_int(level, f"features[{brief(name)}]")
        check_type(initial_controllers, (str, NoneType), "initial_controllers", "a str or None")
        check_each(scram, str, "scram", "str")
        if report is not None and not callable(report):
            raise TypeError(f"report must be a function, not {type(report).__name__}")
        if bool(standalone) + bool(no_initial_controllers) + (initial_controllers is not None) > 1:
            raise ValueError("standalone, initial_controllers, no_initial_controllers: expected at most one")
        try:
            cluster_id.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise FormatterError("the cluster id has a lone surrogate, which UTF-8 cannot encode") from None
        self.config, self.rules, self.cluster_id = config, config.rules, cluster_id
        self.release_version, self.features = release_version, levels
        self.standalone, self.no_initial_controllers = standalone, no_initial_controllers
        self.initial_controllers = initial_controllers
        self.scram, self.ignore_formatted = list(scram), ignore_formatted
        self.report = report or (lambda line: None)
        self.voters: dict[int, DynamicVoter] | None = None
        refused = {
            "features": self.features and not self.rules.features,
            "scram": self.scram and not self.rules.scram,
            "standalone, initial_controllers, no_initial_controllers": not self.rules.formatter
            and (standalone or no_initial_controllers or initial_controllers is not None),
        }
        for name, wrong in refused.items():
            if wrong:
                raise FormatterError(f"kafka-storage of Kafka {self.rules.release} has no {name}")

    def run(self) -> Formatted:
        """Format the directories. Raises FormatterError; then no directory has changed."""
        if self.rules.formatter:
            version, levels = self._levels()
            bootstrap = self._bootstrap(version, levels)
        else:
            version, bootstrap = self._before_3_9()
            levels = {METADATA_VERSION: version.level}
        ensemble = self._ensemble() if self.rules.ensemble else self._unformatted()
        if not ensemble.empty:
            self.report("All of the log directories are already formatted.")
            return Formatted({}, bootstrap, levels)
        if self.rules.shows_records:
            self.report(f"Bootstrap metadata: {bootstrap}")
        metas = self._new_properties(ensemble)
        self._write(metas, ensemble, version, levels, bootstrap)
        return Formatted(metas, bootstrap, levels)

    # --- levels

    def _levels(self) -> tuple[MetadataVersion, dict[str, int]]:
        """The metadata version and all levels (StorageTool.runFormatCommand and Formatter of 3.9 and later)."""
        config, rules = self.config, self.rules
        if not config.process_roles:
            raise FormatterError(_LEGACY)
        wanted = self.release_version
        if wanted is None and not rules.kraft_only:
            wanted = config.properties.get("inter.broker.protocol.version")
        version = None if wanted is None else version_from_text(wanted, rules, config.unstable)
        self._set_voters()
        asked = self.features.get(METADATA_VERSION)
        if asked is not None:
            if version is not None:
                text = "Use --release-version instead of --feature metadata.version=X to avoid ambiguity."
                raise FormatterError(text)
            version = version_of_level(asked, rules)
        if version is None:
            bounds = metadata_bounds(rules.release)
            version = version_from_text(bounds.testing if config.unstable else bounds.default, rules, True)
        else:
            if version.level < 0:
                raise FormatterError(f"metadata.version {version.name} is too old to be supported.")
            if not (config.unstable or is_production(version, rules)):
                raise FormatterError(f"metadata.version {version.name} is not yet stable.")
        return version, effective_levels(version, self.features, self._is_dynamic(), config.unstable, rules)

    def _is_dynamic(self) -> bool:
        if self.rules.checks_voters:
            return not self.config.quorum_voters
        return self.voters is not None or self.no_initial_controllers

    def _set_voters(self) -> None:
        config = self.config
        static = bool(config.quorum_voters)
        if self.rules.checks_voters and static and (self.standalone or self.initial_controllers is not None):
            raise FormatterError(
                "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
                "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
                "controller.quorum.bootstrap.servers instead."
            )
        if self.initial_controllers is not None:
            self.voters = parse_voters(self.initial_controllers)
        elif self.standalone:
            self.voters = self._only_voter()
        elif not self.no_initial_controllers and CONTROLLER in config.process_roles and not static:
            raise FormatterError(
                "Because controller.quorum.voters is not set on this controller, you must specify one of the "
                "following: --standalone, --initial-controllers, or --no-initial-controllers."
            )

    def _only_voter(self) -> dict[int, DynamicVoter]:
        if CONTROLLER not in self.config.process_roles:
            raise FormatterError("You can only use --standalone on a controller.")
        endpoints = self.config.controller_endpoints()
        if not endpoints:
            raise FormatterError("No controller listeners found.")
        host = "localhost" if endpoints[0].host is None else endpoints[0].host
        return parse_voters(f"{self.config.node_id}@{host}:{endpoints[0].port}:{uuid_text(random_uuid())}")

    def _bootstrap(self, version: MetadataVersion, levels: Mapping[str, int]) -> BootstrapMetadata:
        if self.scram and not version.can["isScramSupported"]:
            text = "metadata.version 3.5-IV2" if self.rules.features else "metadataVersion IBP_3_5_IV2"
            raise FormatterError(f"SCRAM is only supported in {text} or later.")
        self._check_bootstrap(version)
        return bootstrap_metadata(levels, scram_records(self.scram, self.rules))

    def _check_bootstrap(self, version: MetadataVersion) -> None:
        minimum = metadata_bounds(self.rules.release).bootstrap_minimum
        if version.level < next(row.level for row in metadata_versions() if row.name == minimum):
            what = "metadata.version" if self.rules.features else "metadata versions"
            raise FormatterError(
                f"Bootstrap {what} before {minimum} are not supported. Can't load metadata from format command"
            )

    def _before_3_9(self) -> tuple[MetadataVersion, BootstrapMetadata]:
        """The metadata version and the records as StorageTool of 3.3 to 3.8 finds them, its checks in their order."""
        config, rules = self.config, self.rules
        if self.release_version is not None and self.features:
            raise FormatterError("Both --release-version and --feature were set. Only one of the two flags can be set.")
        default = metadata_bounds(rules.release).default
        given = config.properties.get("inter.broker.protocol.version", default)
        asked = self.features.get(METADATA_VERSION)
        if asked is not None:
            version = version_of_level(asked, rules)
        else:
            version = version_from_text(given if self.release_version is None else self.release_version, rules, True)
        if version.level < 0:
            known = [row.name for row in metadata_versions(old=True) if row.level < 0][-1]  # so Kafka says: 3.0-IV0
            least = f"metadata.version of at least {known}" if rules.features else "metadata version of at least 3.0"
            raise FormatterError(f"Must specify a valid KRaft {least}.")
        if rules.ensemble:
            self._check_stable(version)
        else:
            self._check_ids()
        levels = {METADATA_VERSION: version.level}
        latest = version if self.release_version is not None else version_from_text(default, rules, True)
        for name, feature in other_features(rules).items():
            level = self.features.get(name, default_level(feature, latest, rules))
            levels[name] = level
            if level:
                check_dependencies(name, feature_level(feature, level, config.unstable), levels, rules)
        bootstrap = self._bootstrap(version, levels)
        if not config.process_roles:
            raise FormatterError(_LEGACY)
        return version, bootstrap

    def _check_stable(self, version: MetadataVersion) -> None:
        name, article = ("metadata.version", "The metadata.version") if self.rules.features else (
            "metadata version", "Metadata version")  # fmt: skip
        if not is_production(version, self.rules):
            if not self.config.unstable:
                raise FormatterError(f"{article} {version.name} is not ready for production use yet.")
            self.report(f"WARNING: using pre-production {name} {version.name}.")
        jbod = BROKER in self.config.process_roles and len(self.config.log_dirs) > 1
        if jbod and not version.can["isDirectoryAssignmentSupported"]:
            raise FormatterError(
                "Invalid configuration for metadata version: requirement failed: Multiple log directories (aka JBOD) "
                f"are not supported in the current MetadataVersion {version.name}. Need 3.7-IV2 or higher"
            )

    def _check_ids(self) -> None:
        try:
            self.cluster_id = uuid_text(uuid_from_text(self.cluster_id))
        except ValueError as error:
            raise FormatterError(
                f"Cluster ID string {self.cluster_id} does not appear to be a valid UUID: {error}"
            ) from None
        if self.config.node_id < 0:
            raise FormatterError(
                f"The node.id must be set to a non-negative integer. We saw {self.config.node_id}"
            )

    # --- directories

    def _unformatted(self) -> MetaPropertiesEnsemble:
        """Before 3.7 only the presence of meta.properties counts."""
        empty = []
        for directory in self.config.directories:
            if os.path.exists(os.path.join(directory, META_PROPERTIES)):
                self._refuse_formatted(directory)
            else:
                empty.append(directory)
        return MetaPropertiesEnsemble(tuple(empty), (), {})

    def _refuse_formatted(self, directory: str) -> None:
        if not self.ignore_formatted:
            raise FormatterError(
                f"Log directory {directory} is already formatted. Use --ignore-formatted to ignore this directory and "
                "format the others."
            )

    def _ensemble(self) -> MetaPropertiesEnsemble:
        ensemble = MetaPropertiesEnsemble.load(self.config.directories)
        spelling = "reserved" if self.rules.checks_voters else "res" + "rved"
        ensemble.verify(self.cluster_id, self.config.node_id, spelling)
        for directory in copy_order(list(ensemble.properties)):
            self._refuse_formatted(directory)
        if ensemble.failed:
            failed = put_order(ensemble.failed)
            if not self.rules.features:
                raise FormatterError(f"I/O error trying to read log directory {failed[0]}.")
            for directory in failed:
                self.report(f"I/O error trying to read log directory {directory}. Ignoring...")
            if not ensemble.empty and not ensemble.properties:
                raise FormatterError("No available log directories to format.")
        return ensemble

    def _new_properties(self, ensemble: MetaPropertiesEnsemble) -> dict[str, MetaProperties]:
        """meta.properties of each directory that is to be formatted."""
        same: dict[str, str] = {}
        for directory in self.config.directories:
            other = same.setdefault(os.path.realpath(directory), directory)
            if other != directory:
                raise FormatterError(f"log directories {other} and {directory} are the same directory")
        ids: set[UUID | None] = {meta.directory_id for meta in ensemble.properties.values()}
        metas = {}
        for directory in ensemble.empty:
            directory_id = None
            if self.rules.ensemble:
                voter = self._voter(directory)
                directory_id = random_directory_id(ids) if voter is None else voter.directory_id
                ids.add(directory_id)
            metas[directory] = MetaProperties(1, self.cluster_id, self.config.node_id, directory_id)
        return metas

    def _voter(self, directory: str) -> DynamicVoter | None:
        """This node among the first voters, if the directory is that of the metadata log."""
        if self.voters is None or directory != self.config.metadata_log_dir:
            return None
        return self.voters.get(self.config.node_id)

    def _description(self, directory: str) -> str:
        """What the directory is for (Formatter.DirectoryType)."""
        if directory != self.config.metadata_log_dir:
            return "data directory"
        if self.voters is None:
            return "metadata directory"
        return "dynamic metadata directory" if self._voter(directory) is None else "dynamic metadata voter directory"

    def _files(self, directory: str, levels: Mapping[str, int], bootstrap: BootstrapMetadata) -> dict[str, bytes]:
        """The files of a directory beside meta.properties, by name."""
        files = {}
        if not self.rules.one_checkpoint:
            files[BOOTSTRAP_CHECKPOINT] = bootstrap_checkpoint(bootstrap)
        if directory == self.config.metadata_log_dir:
            names = self.config.controller_listener_names
            voters = None if self.voters is None else voters_record(self.voters, names[0])
            kraft_version = levels.get(KRAFT_VERSION, 0)
            if self.rules.one_checkpoint:
                if CONTROLLER in self.config.process_roles:
                    files[METADATA_SNAPSHOT] = quorum_snapshot(kraft_version, voters, bootstrap)
            elif voters is not None:
                files[METADATA_SNAPSHOT] = quorum_snapshot(kraft_version, voters, None)
        return files

    def _write(
        self, metas: Mapping[str, MetaProperties], ensemble: MetaPropertiesEnsemble, version: MetadataVersion,
        levels: Mapping[str, int], bootstrap: BootstrapMetadata,
    ) -> None:  # fmt: skip
        """Write all directories, in the order in which Kafka does, then give them their names."""
        staged: set[str] = set()
        with self._staging(list(metas)) as staging:
            for directory in self._order(ensemble):
                words = f"{self._description(directory)} " if self.rules.formatter else ""
                line = f"Formatting {words}{directory} with metadata.version {version.name}."
                if self.rules.ensemble:
                    self.report(line)
                if directory not in staged:
                    files = self._files(directory, levels, bootstrap)
                    try:
                        staging.add(directory, {**files, META_PROPERTIES: metas[directory].to_bytes()})
                    except OSError as error:
                        raise FormatterError(self._failure(directory, error)) from None
                    staged.add(directory)
                if not self.rules.ensemble:
                    self.report(line)
            try:
                staging.commit()
            except OSError as error:
                raise FormatterError(self._failure(error.filename2 or error.filename or "", error)) from None

    @contextmanager
    def _staging(self, directories: list[str]) -> Iterator[Staging]:
        """A Staging of these directories. Raises FormatterError if another process formats them, and does not end."""
        with ExitStack() as stack:
            try:
                staging = stack.enter_context(Staging(directories))
            except OSError as error:
                raise FormatterError(self._failure(error.filename or "", error)) from None
            yield staging

    def _order(self, ensemble: MetaPropertiesEnsemble) -> list[str]:
        """The directories in the order in which Kafka's tool names them."""
        empty = list(ensemble.empty)
        if not self.rules.ensemble:
            return empty
        if not self.rules.features:  # 3.7 writes those before again for each directory
            return [name for number in range(len(empty)) for name in put_order(empty[: number + 1])]
        every = put_order([*copy_order(list(ensemble.properties)), *empty])
        return put_order([name for name in every if name in empty])

    def _failure(self, directory: str, error: OSError) -> str:
        """What Kafka's tool says when a directory cannot be written."""
        name = _JAVA.get(error.errno or 0, "java.io.IOException")
        where = "" if error.filename is None or name == "java.io.IOException" else os.fspath(error.filename)
        if os.path.basename(where) in (META_PROPERTIES, BOOTSTRAP_CHECKPOINT):
            where += ".tmp"  # the name under which Kafka writes it first
        reason = (error.strerror or "") if name.endswith((".IOException", ".FileSystemException")) else ""
        message = ": ".join(part for part in (where, reason) if part)
        if not self.rules.ensemble:
            return f"Unable to create storage directory {directory}: {message}"
        shown = f"{name}: {message}" if self.rules.formatter else message
        return f"Error while writing meta.properties file {directory}: {shown}"

