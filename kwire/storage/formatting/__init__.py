"""Formatting the storage directories of KRaft brokers and controllers: what kafka-storage does, without a JVM."""

from __future__ import annotations

from kwire.lazy import attach

TYPE_CHECKING = False  # typing's, without importing it
if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire.storage.formatting.dynamic_voters import DynamicVoter as DynamicVoter
    from kwire.storage.formatting.dynamic_voters import parse_voters as parse_voters
    from kwire.storage.formatting.errors import ConfigError as ConfigError
    from kwire.storage.formatting.errors import FormatterError as FormatterError
    from kwire.storage.formatting.formatter import Formatted as Formatted
    from kwire.storage.formatting.formatter import Formatter as Formatter
    from kwire.storage.formatting.info import StorageInfo as StorageInfo
    from kwire.storage.formatting.info import storage_info as storage_info
    from kwire.storage.formatting.levels import BootstrapMetadata as BootstrapMetadata
    from kwire.storage.formatting.mappings import feature_dependencies as feature_dependencies
    from kwire.storage.formatting.mappings import version_mapping as version_mapping
    from kwire.storage.formatting.server_config import ServerConfig as ServerConfig
    from kwire.storage.side_files.meta_properties import MetaProperties as MetaProperties
    from kwire.storage.side_files.uuids import random_uuid as random_uuid
    from kwire.storage.side_files.uuids import uuid_from_text as uuid_from_text
    from kwire.storage.side_files.uuids import uuid_text as uuid_text

# module -> the public names that it defines
_NAMES = {
    "kwire.storage.formatting.dynamic_voters": ("DynamicVoter", "parse_voters"),
    "kwire.storage.formatting.errors": ("ConfigError", "FormatterError"),
    "kwire.storage.formatting.formatter": ("Formatted", "Formatter"),
    "kwire.storage.formatting.info": ("StorageInfo", "storage_info"),
    "kwire.storage.formatting.levels": ("BootstrapMetadata",),
    "kwire.storage.formatting.mappings": ("feature_dependencies", "version_mapping"),
    "kwire.storage.side_files.meta_properties": ("MetaProperties",),
    "kwire.storage.formatting.server_config": ("ServerConfig",),
    "kwire.storage.side_files.uuids": ("random_uuid", "uuid_from_text", "uuid_text"),
}

__getattr__, __dir__, __all__ = attach(__name__, _NAMES)
