"""What kafka-storage info says of a node's directories."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from kwire.codec.arguments import check_type
from kwire.errors import KwireError
from kwire.java_semantics import java_int, java_path
from kwire.storage.formatting.errors import FormatterError
from kwire.storage.formatting.server_config import ServerConfig
from kwire.storage.side_files.meta_properties import META_PROPERTIES, MetaProperties, meta_properties_in

_IN_KRAFT = (
    "The kafka configuration file appears to be for a cluster in KRaft mode, but the directories are formatted for "
    "legacy mode."
)
_LEGACY = (
    "The kafka configuration file appears to be for a legacy cluster, but the directories are formatted for a cluster "
    "in KRaft mode."
)


class StorageInfo(NamedTuple):
    """The directories that are there, the metadata of the first formatted one, and what is wrong with them.

    metadata: key -> value of its meta.properties, sorted; None if no directory is formatted.
    """

    directories: tuple[str, ...]
    metadata: Mapping[str, str] | None
    problems: tuple[str, ...]

    def lines(self) -> list[str]:
        """The lines that kafka-storage info prints."""
        lines = []
        if self.directories:
            lines += [f"Found log director{'y' if len(self.directories) == 1 else 'ies'}:"]
            lines += [*(f"  {name}" for name in self.directories), ""]
        if self.metadata is not None:
            lines += [f"Found metadata: {_map_text(self.metadata)}", ""]
        if self.problems:
            lines += ["Found problem:" if len(self.problems) == 1 else "Found problems:"]
            lines += [*(f"  {problem}" for problem in self.problems), ""]
        return lines


def storage_info(config: ServerConfig) -> StorageInfo:
    """Look at the directories of a node (StorageTool.infoCommand).

    Raises OSError, FormatterError for a meta.properties that cannot be read.
    """
    check_type(config, ServerConfig, "config", "a ServerConfig")
    found: list[str] = []
    problems: list[str] = []
    first: tuple[MetaProperties, dict[str, str]] | None = None
    for directory in config.directories:
        path = java_path(directory)
        if not os.path.isdir(path):
            problems.append(f"{path} {'is not a directory' if os.path.exists(path) else 'does not exist'}")
            continue
        found.append(path)
        meta_path = os.path.join(path, META_PROPERTIES)
        if not os.path.exists(meta_path):
            problems.append(f"{path} is not formatted.")
            continue
        try:
            properties = meta_properties_in(path)
        except KwireError as error:
            raise FormatterError(str(error)) from None
        try:
            meta = MetaProperties.of(properties) if config.rules.ensemble else _before_3_7(meta_path, properties)
        except KwireError as error:
            if not config.rules.ensemble and error.args[0].startswith("Failed to parse"):
                raise
            problems.append(f"Error loading {meta_path}: {error}" if config.rules.ensemble else str(error))
            continue
        if first is None:
            first = meta, properties
        else:
            problems += _differences(meta_path, (meta, properties), first, config)
    if first is not None:
        if config.process_roles and first[0].version == 0:
            problems.append(_IN_KRAFT)
        elif not config.process_roles and first[0].version == 1:
            problems.append(_LEGACY)
    shown = None if first is None else dict(sorted(_shown(*first, config).items()))
    return StorageInfo(tuple(found), shown, tuple(problems))


def _shown(meta: MetaProperties, properties: dict[str, str], config: ServerConfig) -> dict[str, str]:
    """From 3.7 on the properties that Kafka knows, before all of them."""
    return meta.to_properties() if config.rules.ensemble else properties


def _before_3_7(path: str, properties: dict[str, str]) -> MetaProperties:
    """Before 3.7 only the version is looked at; the other properties are shown as they are (RawMetaProperties)."""
    text = properties.get("version", "0")
    try:
        version = java_int(text)
    except ValueError:
        raise FormatterError(f'Failed to parse version property as an int: For input string: "{text}"') from None
    if version not in (0, 1):
        raise FormatterError(f"Unsupported version for {path}: {version}")
    return MetaProperties(version, None, None)


def _differences(
    path: str, one: tuple[MetaProperties, dict[str, str]], first: tuple[MetaProperties, dict[str, str]],
    config: ServerConfig,
) -> list[str]:  # fmt: skip
    if not config.rules.ensemble:
        if one[1] == first[1]:
            return []
        return [f"Metadata for {path} was {_map_text(one[1])}, but other directories featured {_map_text(first[1])}"]
    if one[0].cluster_id != first[0].cluster_id:
        return ["Mismatched cluster IDs between storage directories."]
    if one[0].node_id != first[0].node_id:
        return ["Mismatched node IDs between storage directories."]
    return []


def _map_text(values: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{key}={value}' for key, value in sorted(values.items()))}}}"
