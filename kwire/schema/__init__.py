"""The facts of the Kafka protocol and the only reader of them. Each file is read at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.lazy import attach

if TYPE_CHECKING:
    from kwire.schema.codes import ErrorCode
    from kwire.schema.compare import Difference, FieldChange, VersionChange, difference, field_changes
    from kwire.schema.facts import NO_VERSIONS, Field, Message, Versions, canonical, message, message_names
    from kwire.schema.history import (
        Api,
        api,
        api_by_release,
        apis,
        patch_release,
        release_after,
        release_name,
        releases,
    )
    from kwire.schema.kinds import RecordType, record_type, record_types
    from kwire.schema.levels import (
        FeatureLevel,
        FeatureRange,
        MetadataBounds,
        MetadataVersion,
        features,
        metadata_bounds,
        metadata_version,
        metadata_versions,
    )

__all__ = [
    "NO_VERSIONS",
    "Api",
    "Difference",
    "ErrorCode",
    "FeatureLevel",
    "FeatureRange",
    "Field",
    "FieldChange",
    "Message",
    "MetadataBounds",
    "MetadataVersion",
    "RecordType",
    "VersionChange",
    "Versions",
    "api",
    "api_by_release",
    "apis",
    "canonical",
    "difference",
    "features",
    "field_changes",
    "message",
    "message_names",
    "metadata_bounds",
    "metadata_version",
    "metadata_versions",
    "patch_release",
    "record_type",
    "record_types",
    "release_after",
    "release_name",
    "releases",
]

_PLACES = {
    "facts": ("NO_VERSIONS", "Field", "Message", "Versions", "canonical", "message", "message_names"),
    "history": ("Api", "api", "api_by_release", "apis", "patch_release", "release_after", "release_name", "releases"),
    "kinds": ("RecordType", "record_type", "record_types"),
    "levels": (
        "FeatureLevel", "FeatureRange", "MetadataBounds", "MetadataVersion", "features", "metadata_bounds",
        "metadata_version", "metadata_versions",
    ),
    "codes": ("ErrorCode",),
    "compare": ("Difference", "FieldChange", "VersionChange", "difference", "field_changes"),
}
_HOME = {name: f"kwire.schema.{place}" for place, names in _PLACES.items() for name in names}

__getattr__, __dir__ = attach(__name__, _HOME)
