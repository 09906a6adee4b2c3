"""meta.properties: whose directory it is, of which cluster (MetaProperties)."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from kwire.errors import KwireError, LimitError
from kwire.java_semantics import java_int, java_trim
from kwire.properties import Properties, configuration_bytes, parse_properties, properties_text
from kwire.storage.side_files.uuids import uuid_from_text, uuid_text

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
        """The values in these properties. Raises KwireError with Kafka's text (MetaProperties.Builder)."""
        text = properties.get("version", "0")
        try:
            version = java_int(java_trim(text))
        except ValueError:
            raise KwireError(f"Invalid meta.properties version string '{text}'") from None
        if version not in (0, 1):
            raise KwireError(f"Unknown meta.properties version number {version}")
        key = "node.id" if version else "broker.id"
        number = properties.get(key)
        if number is None and version:
            raise KwireError(f"Failed to find {key}")
        try:
            node_id = None if number is None else java_int(number)
        except ValueError:
            raise KwireError(f"Unable to read {key} as a base-10 number.") from None
        directory = properties.get("directory.id")
        try:
            directory_id = None if directory is None else uuid_from_text(directory)
        except ValueError as error:
            raise KwireError(f"Unable to read directory.id as a Uuid: {error}") from None
        cluster_id = properties.get("cluster.id")
        if version and cluster_id is None:
            raise KwireError("cluster.id was not found.")
        return cls(version, cluster_id, node_id, directory_id)

    @classmethod
    def read(cls, directory: str | os.PathLike[str]) -> MetaProperties:
        """The values in a directory's meta.properties. Raises OSError, KwireError."""
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


def meta_properties_in(directory: str | os.PathLike[str]) -> Properties:
    """The properties in a directory's meta.properties. Raises KwireError, OSError (for a pipe too: it may not end)."""
    path = os.path.join(os.fspath(directory), META_PROPERTIES)
    if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        raise OSError(22, "is a pipe, not a file", path)
    try:
        return parse_properties(configuration_bytes(path).decode("latin-1"))
    except LimitError:
        raise
    except ValueError as error:
        raise KwireError(f"{path}: {error}") from None
