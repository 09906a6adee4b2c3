"""meta.properties: whose directory it is, of which cluster (MetaProperties, MetaPropertiesEnsemble)."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from kwire.properties import properties_text
from kwire.storage.formatting.errors import FormatterError
from kwire.storage.formatting.java_semantics import java_int
from kwire.storage.formatting.properties import read_properties
from kwire.storage.side_files.uuids import is_reserved, uuid_from_text, uuid_text

META_PROPERTIES = "meta.properties"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class MetaProperties(NamedTuple):
    """The content of a meta.properties file.

    version: 0 (ZooKeeper) or 1 (KRaft); cluster_id: any text; directory_id: from Kafka 3.7 on (KIP-858). None: absent.
    """

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: UUID | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> MetaProperties:
        """The values in these properties. Raises FormatterError with Kafka's text (MetaProperties.Builder)."""
        text = properties.get("version", "0")
        try:
            version = java_int(text.strip())
        except ValueError:
            raise FormatterError(f"Invalid meta.properties version string '{text}'") from None
        if version not in (0, 1):
            raise FormatterError(f"Unknown meta.properties version number {version}")
        key = "node.id" if version else "broker.id"
        number = properties.get(key)
        if number is None and version:
            raise FormatterError(f"Failed to find {key}")
        try:
            node_id = None if number is None else java_int(number)
        except ValueError:
            raise FormatterError(f"Unable to read {key} as a base-10 number.") from None
        directory = properties.get("directory.id")
        try:
            directory_id = None if directory is None else uuid_from_text(directory)
        except ValueError as error:
            raise FormatterError(f"Unable to read directory.id as a Uuid: {error}") from None
        cluster_id = properties.get("cluster.id")
        if version and cluster_id is None:
            raise FormatterError("cluster.id was not found.")
        return cls(version, cluster_id, node_id, directory_id)

    @classmethod
    def read(cls, directory: str | os.PathLike[str]) -> MetaProperties:
        """The values in a directory's meta.properties. Raises OSError, FormatterError."""
        return cls.of(meta_properties_in(directory))

    def to_properties(self) -> dict[str, str]:
        """Key -> value, in the order in which Kafka (java.util.Properties) writes them."""
        values = {
            "node.id" if self.version else "broker.id": None if self.node_id is None else str(self.node_id),
            "directory.id": None if self.directory_id is None else uuid_text(self.directory_id),
            "version": str(self.version),
            "cluster.id": self.cluster_id,
        }
        return {key: value for key, value in values.items() if value is not None}

    def to_bytes(self, seconds: float | None = None) -> bytes:
        """The file as java.util.Properties writes it, with the time (UTC; by default now) in its second line."""
        now = time.gmtime(seconds)
        stamp = (
            f"#{_DAYS[now.tm_wday]} {_MONTHS[now.tm_mon - 1]} {now.tm_mday:02} {now.tm_hour:02}:{now.tm_min:02}:"
            f"{now.tm_sec:02} UTC {now.tm_year}"
        )
        return f"#\n{stamp}\n{properties_text(self.to_properties())}".encode("utf-8", "surrogateescape")


def meta_properties_in(directory: str | os.PathLike[str]) -> dict[str, str]:
    """The properties in a directory's meta.properties. Raises ConfigError, OSError (for a pipe too: it may not end)."""
    path = os.path.join(os.fspath(directory), META_PROPERTIES)
    if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        raise OSError(22, "is a pipe, not a file", path)
    return read_properties(path)


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
            except (OSError, FormatterError):
                failed.append(directory)
        return cls(tuple(empty), tuple(failed), found)

    def verify(self, cluster_id: str, node_id: int, reserved: str = "reserved") -> None:
        """Raise FormatterError if a directory is of another cluster or node, or two have the same id.

        reserved: the word for an id that is, which Kafka up to 4.0 spells otherwise.
        """
        seen: dict[UUID, str] = {}
        for directory, meta in self.properties.items():
            path = os.path.join(directory, META_PROPERTIES)
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
