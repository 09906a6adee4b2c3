"""The properties files of a node: server.properties and meta.properties."""

from __future__ import annotations

import os

from kwire.errors import LimitError
from kwire.properties import Properties, configuration_bytes, parse_properties
from kwire.storage.formatting.errors import ConfigError


def read_properties(path: str | os.PathLike[str]) -> Properties:
    """The properties in a file (ISO 8859-1, as Kafka reads it).

    Raises OSError for a file that cannot be read, ConfigError for one that is malformed or larger than 16 MiB.
    """
    try:
        return parse_properties(configuration_bytes(path).decode("latin-1"))
    except LimitError as error:
        raise ConfigError(f"properties file exceeds {error.limit} bytes", os.fsdecode(path)) from None
    except ValueError as error:
        raise ConfigError(str(error), os.fsdecode(path)) from None
