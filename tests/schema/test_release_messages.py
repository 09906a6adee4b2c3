"""Requests and responses as one release has them."""

from __future__ import annotations

import pytest

from kwire import schema
from kwire.errors import UnsupportedVersionError
from kwire.schema import Field, Versions
from tools.schema import older_fields, rehearsal, schemas

pytestmark = pytest.mark.quick


def paths(name: str, release: str) -> list[str]:
    return [path for path, _ in schema.message_of_release(name, release)[0].walk()]


def test_names_of_old_releases() -> None:
    message, today = schema.message_of_release("FetchRequest", "2.2")
    assert (message.name, message.valid_versions) == ("FetchRequest", Versions(0, 10))
    assert today["maxWait"] == "maxWaitMs" and today["topics.fetchPartitions.partitionIndex"] == "partition"
    assert "maxWait" in paths("FetchRequest", "2.2") and "maxWaitMs" not in paths("FetchRequest", "2.2")
    assert schema.message_of_release("FetchRequest", schema.releases()[-1])[1] == {}
    assert schema.message_of_release("ListOffsetsRequest", "2.7")[0].name == "ListOffsetRequest"
    assert schema.message_name("ListOffsetsRequest", "2.8") == "ListOffsetsRequest"
    assert schema.message_name("AlterPartitionResponse", "3.1.2") == "AlterIsrResponse"
    vote, names = schema.message_of_release("VoteRequest", "3.9")
    assert names["topics.partitions.candidateId"] == "replicaId"
    partition = dict(vote.walk())["topics.partitions.candidateDirectoryId"]
    assert partition.about and partition.versions == Versions(1, 1)
    heartbeat = dict(schema.message_of_release("ConsumerGroupHeartbeatRequest", "3.5")[0].walk())
    assert "clientAssignors" in heartbeat  # gone in 3.7


def test_what_a_release_lacks() -> None:
    for name, release, said in (
        ("VoteRequest", "2.6", "has no API key 52"), ("FetchRequest", "1.9.9.9", "unknown Kafka release"),
        ("NoSuchRequest", "3.9", "unknown message"),
    ):  # fmt: skip
        with pytest.raises(UnsupportedVersionError, match=said):
            schema.message_of_release(name, release)
    with pytest.raises(ValueError, match="TopicRecord is neither"):
        schema.message_of_release("TopicRecord", "3.9")


def layout(fields: tuple[Field, ...], version: int) -> list[object]:
    rows = [
        (field.tag if version in field.tagged_versions else -1, field.name, field.type,
         version in field.nullable_versions, layout(field.fields, version))
        for field in fields if version in field.versions
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row[0])


def test_the_fields_of_the_kept_releases_are_those_of_their_jars() -> None:
    for patch in rehearsal.patches():
        read = schemas.read_texts(rehearsal.read(patch)[1].texts)
        compared = 0
        for name, (folder, own) in read.items():
            if folder == "api":
                ours, _ = schema.message_of_release(name, patch)
                for version in Versions.parse(own["validVersions"]).all():
                    theirs = tuple(schema.definitions.field_of(row) for row in own["fields"])
                    assert layout(ours.fields, version) == layout(theirs, version), (patch, name, version)
                    compared += 1
        assert compared > 600


def test_fields_are_kept_for_the_releases_in_which_they_differ() -> None:
    def message(*names: str, release: str = "4.0") -> dict[str, object]:
        fields = [{"name": name, "type": "int32", "versions": "0+"} for name in names]
        return {"name": "PingRequest", "releases": ["4.0", release], "fields": fields}

    ranges = {release: Versions(0, high) for high, release in enumerate(("4.0", "4.1", "4.2"))}
    table: older_fields.Table = {}
    first, second, third = message("A"), message("A", release="4.1"), message("B", release="4.2")
    older_fields.put(table, ranges, (None, first, first), "4.0")
    older_fields.put(table, ranges, (first, second, second), "4.1")
    assert table == {}
    older_fields.put(table, ranges, (second, third, third), "4.2")  # renames A
    assert [(row["first"], row["last"]) for row in table["PingRequest"]] == [("4.0", "4.1")]
    assert table["PingRequest"][0]["fields"] == [{"name": "A", "type": "int32", "versions": "0+"}]
    kept = [dict(row) for row in table["PingRequest"]]
    older_fields.put(table, ranges, (third, second, third), "4.1")  # read again
    assert table["PingRequest"] == kept
    older_fields.put(table, ranges, (third, message("B"), third), "4.1")
    assert [(row["first"], row["last"]) for row in table["PingRequest"]] == [("4.0", "4.0")]
