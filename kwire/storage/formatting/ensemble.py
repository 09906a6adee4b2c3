"""The directories of a node and their meta.properties (MetaPropertiesEnsemble)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from kwire.errors import KwireError
from kwire.java_semantics import java_path
from kwire.storage.formatting.errors import FormatterError
from kwire.storage.side_files.meta_properties import META_PROPERTIES, MetaProperties
from kwire.storage.side_files.uuids import is_reserved, uuid_text


class MetaPropertiesEnsemble(NamedTuple):
    """The directories of a node, sorted: those without meta.properties, those that cannot be read, and the others."""

    empty: tuple[str, ...]
    failed: tuple[str, ...]
    properties: Mapping[str, MetaProperties]

    @classmethod
    def load(cls, directories: Iterable[str]) -> MetaPropertiesEnsemble:
        """Read meta.properties of each directory; one that is no directory, or holds a malformed file, has failed."""
        empty, failed, found = [], [], {}
        for directory in sorted(directories):
            try:
                found[directory] = MetaProperties.read(directory)
            except FileNotFoundError:
                empty.append(directory)
            except (OSError, KwireError):
                failed.append(directory)
        return cls(tuple(empty), tuple(failed), found)

    def verify(self, cluster_id: str, node_id: int, reserved: str = "reserved") -> None:
        """Raise FormatterError if a directory is of another cluster or node, or two have the same id.

        reserved: the word for an id that is, which Kafka up to 4.0 spells otherwise.
        """
        seen: dict[UUID, str] = {}
        for directory, meta in self.properties.items():
            path = java_path(os.path.join(directory, META_PROPERTIES))
            if meta.cluster_id is not None and meta.cluster_id != cluster_id:
                expected = f"Expected {cluster_id}, but read {meta.cluster_id}"
                raise FormatterError(f"Invalid cluster.id in: {path}. {expected}")
            if meta.node_id is not None and meta.node_id != node_id:
                raise FormatterError(
                    f"Stored node id {meta.node_id} doesn't match previous node id {node_id} in {path}. If you moved "
                    "your data, make sure your configured node id matches. If you intend to create a new node, you "
                    "should remove all data in your data directories."
                )
            if meta.directory_id is None:
                continue
            text = uuid_text(meta.directory_id)
            if is_reserved(meta.directory_id):
                raise FormatterError(f"Invalid {reserved} directory ID {text} found in {directory}")
            if meta.directory_id in seen:
                raise FormatterError(
                    f"Duplicate directory ID Optional[{text}] found. It was the ID of {seen[meta.directory_id]}, but "
                    f"also of {directory}"
                )
            seen[meta.directory_id] = directory
