"""Types of stored records."""

import pytest

from kwire import UnsupportedVersionError, schema

pytestmark = pytest.mark.quick


def test_every_stored_record_has_its_type():
    kinds = ("metadata", "group", "transaction", "share", "remote_log")
    for kind in kinds:
        for row in schema.record_types(kind).values():
            assert schema.message(row.value).type in ("metadata", "coordinator-value", "data")
            assert row.key is None or schema.message(row.key).api_key == row.type


def test_names_and_numbers():
    assert schema.record_type("metadata", 14) == (14, "ClientQuota", None, "ClientQuotaRecord")
    legacy = schema.record_type("group", 0)
    assert legacy == (0, "LegacyOffsetCommit", "LegacyOffsetCommitKey", "LegacyOffsetCommitValue")
    assert schema.record_type("group", 1).name == "OffsetCommit"
    assert schema.record_type("control", 1).name == "COMMIT"
    assert schema.record_type("group", 99) is None
    with pytest.raises(UnsupportedVersionError):
        schema.record_types("nothing")
