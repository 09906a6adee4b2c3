"""Releases, their APIs, metadata versions, features and error codes."""

import pickle
import re

import pytest

from kwire import UnsupportedVersionError, schema
from tools.schema import derived

pytestmark = pytest.mark.quick


def test_releases():
    assert schema.releases()[0] == "2.2" and schema.releases()[-1] == derived.read()["newest"]
    assert schema.releases(old=True)[:9] == (
        "0.9.0",
        "0.10.0",
        "0.10.1",
        "0.10.2",
        "0.11.0",
        "1.0",
        "1.1",
        "2.0",
        "2.1",
    )
    assert schema.releases(old=True)[9:] == schema.releases()


def test_a_patch_release_selects_its_minor():
    assert [schema.release_name(name) for name in ("3.9", "3.9.1", "0.10.2.2", "0.9.0")] == [
        "3.9",
        "3.9",
        "0.10.2",
        "0.9.0",
    ]
    assert schema.apis("3.9.1") == schema.apis("3.9")
    for unknown in ("5.0", "1.9", "0.9", "3", "latest", "", "3.9.1.1", "v3.9", "4.4-IV0"):
        with pytest.raises(UnsupportedVersionError):
            schema.apis(unknown)


def test_apis_of_all_releases_and_of_one():
    assert (len(schema.apis("4.4")), len(schema.apis("2.2"))) == (91, 44) and len(schema.apis()) >= 95
    fetch = schema.api("Fetch")
    assert (fetch.key, fetch.min_version, fetch.flexible_from) == (1, 0, 12) and fetch.max_version >= 18
    assert schema.api(1, "4.4").min_version == 4 and schema.api(1, "2.2").flexible_from is None
    assert schema.api("Produce", "3.8").deprecated == (0, 6)
    assert schema.api("AlterIsr", "3.0").name == "AlterPartition"
    assert schema.api("InitProducerId", "4.3").unstable and schema.api("InitProducerId", "4.3").max_stable_version == 5
    with pytest.raises(UnsupportedVersionError, match=r"Kafka 4\.4 has no API 'LeaderAndIsr'"):
        schema.api("LeaderAndIsr", "4.4")
    with pytest.raises(UnsupportedVersionError, match="unknown API key 999"):
        schema.api(999)


def test_header_versions_of_an_api():
    assert schema.api("ControlledShutdown").request_header_version(0) == 0
    assert schema.api("ApiVersions").response_header_version(4) == 0
    assert schema.api("Metadata").request_header_version(9) == 2


def test_error_codes():
    code = schema.ErrorCode(35)
    assert (code.name, code.message, code.retriable) == (
        "UNSUPPORTED_VERSION",
        "The version of API is not supported.",
        False,
    )
    assert all(item.message for item in schema.ErrorCode if item != 0)
    assert (
        schema.ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
        and schema.ErrorCode["NOT_LEADER_OR_FOLLOWER"].invalid_metadata
    )
    assert pickle.loads(pickle.dumps(code)) is code
    unknown = schema.ErrorCode(999)
    assert not unknown.known and unknown == 999 and unknown.message == "" and schema.ErrorCode(999) is unknown
    with pytest.raises(ValueError):
        schema.ErrorCode(40000)


def test_metadata_versions():
    levels = schema.metadata_versions()
    assert [row.level for row in levels] == list(range(1, len(levels) + 1))
    newest = schema.metadata_version(33)
    assert (newest.name, newest.release, newest.changed) == ("4.4-IV2", "4.4", True)
    assert schema.metadata_version("3.9").level == 21
    assert schema.metadata_bounds("3.9") == ("3.0-IV1", "3.3-IV0", "3.9-IV0", "4.0-IV1")
    assert [row.level for row in schema.metadata_versions("4.3")] == list(range(7, 32))
    assert schema.metadata_version(7).can["partitionChangeRecordVersion"] == 0
    with pytest.raises(UnsupportedVersionError):
        schema.metadata_version(99)
    with pytest.raises(UnsupportedVersionError):
        schema.metadata_bounds("3.2")


def test_features():
    features = schema.features("4.4")
    assert {name: (row.minimum, row.maximum) for name, row in features.items()} == {
        "metadata.version": (7, 33),
        "kraft.version": (0, 1),
        "transaction.version": (0, 2),
        "group.version": (0, 1),
        "eligible.leader.replicas.version": (0, 1),
        "share.version": (0, 2),
        "streams.version": (0, 1),
    }
    assert features["eligible.leader.replicas.version"].levels[1].dependencies == {"metadata.version": 23}
    assert features["metadata.version"].testing == 34
    assert list(schema.features("3.5")) == ["metadata.version"]
    with pytest.raises(UnsupportedVersionError):
        schema.features("3.2")


def test_old_is_named():
    with pytest.raises(TypeError):
        schema.releases("4.4")


@pytest.mark.parametrize(("name", "near"), [
    ("4", "(did you mean one of 4.0, 4.1, 4.2, 4.3, "), ("v4.3", '(did you mean "4.3"?)'),
    ("kafka-3.9", '(did you mean "3.9"?)'), ("trunk", "to "),
])
def test_near_releases(name, near):
    with pytest.raises(UnsupportedVersionError, match=re.escape(near)):
        schema.apis(name)
