"""The schema of the Kafka protocol, of all releases. Each file is read at its first use."""

from __future__ import annotations

from kwire.lazy import attach

TYPE_CHECKING = False  # typing.TYPE_CHECKING without importing typing
if TYPE_CHECKING:  # what type checkers and editors see; at run time __getattr__ imports at first use
    from kwire.schema.comments import Note as Note
    from kwire.schema.comments import version_notes as version_notes
    from kwire.schema.definitions import NO_VERSIONS as NO_VERSIONS
    from kwire.schema.definitions import Field as Field
    from kwire.schema.definitions import Message as Message
    from kwire.schema.definitions import Versions as Versions
    from kwire.schema.definitions import canonical as canonical
    from kwire.schema.definitions import message as message
    from kwire.schema.definitions import message_names as message_names
    from kwire.schema.diff import Difference as Difference
    from kwire.schema.diff import FieldChange as FieldChange
    from kwire.schema.diff import VersionChange as VersionChange
    from kwire.schema.diff import difference as difference
    from kwire.schema.diff import field_changes as field_changes
    from kwire.schema.error_codes import ErrorCode as ErrorCode
    from kwire.schema.feature_levels import FeatureLevel as FeatureLevel
    from kwire.schema.feature_levels import FeatureRange as FeatureRange
    from kwire.schema.feature_levels import MetadataBounds as MetadataBounds
    from kwire.schema.feature_levels import MetadataVersion as MetadataVersion
    from kwire.schema.feature_levels import features as features
    from kwire.schema.feature_levels import metadata_bounds as metadata_bounds
    from kwire.schema.feature_levels import metadata_version as metadata_version
    from kwire.schema.feature_levels import metadata_versions as metadata_versions
    from kwire.schema.guide import Section as Section
    from kwire.schema.guide import section as section
    from kwire.schema.guide import sections as sections
    from kwire.schema.record_type_ids import RecordType as RecordType
    from kwire.schema.record_type_ids import record_type as record_type
    from kwire.schema.record_type_ids import record_types as record_types
    from kwire.schema.release_apis import Api as Api
    from kwire.schema.release_apis import api as api
    from kwire.schema.release_apis import api_by_release as api_by_release
    from kwire.schema.release_apis import apis as apis
    from kwire.schema.release_apis import is_at_least as is_at_least
    from kwire.schema.release_apis import patch_release as patch_release
    from kwire.schema.release_apis import release_after as release_after
    from kwire.schema.release_apis import release_name as release_name
    from kwire.schema.release_apis import releases as releases
    from kwire.schema.release_messages import message_name as message_name
    from kwire.schema.release_messages import message_of_release as message_of_release

# module -> the public names that it defines
_NAMES = {
    "kwire.schema.comments": ("Note", "version_notes"),
    "kwire.schema.definitions": (
        "NO_VERSIONS", "Field", "Message", "Versions", "canonical", "message", "message_names",
    ),
    "kwire.schema.diff": ("Difference", "FieldChange", "VersionChange", "difference", "field_changes"),
    "kwire.schema.error_codes": ("ErrorCode",),
    "kwire.schema.feature_levels": (
        "FeatureLevel", "FeatureRange", "MetadataBounds", "MetadataVersion", "features", "metadata_bounds",
        "metadata_version", "metadata_versions",
    ),
    "kwire.schema.guide": ("Section", "section", "sections"),
    "kwire.schema.record_type_ids": ("RecordType", "record_type", "record_types"),
    "kwire.schema.release_apis": (
        "Api", "api", "api_by_release", "apis", "is_at_least", "patch_release", "release_after", "release_name",
        "releases",
    ),
    "kwire.schema.release_messages": ("message_name", "message_of_release"),
}

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = attach(__name__, _NAMES)
