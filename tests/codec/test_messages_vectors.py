"""Every message of the vectors: decode equals json, encode gives the bytes back, from JSON too."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

import kwire
from kwire import schema
from tests.codec import vectors
from tools.vectors.messages import without_tags


def test_all_vectors_are_there() -> None:
    """Every version of every API of the releases has a vector (3.9.1's are those that 4.3.0 has no more)."""
    there = {
        (schema.canonical(vector["message"]), vector["version"])
        for name in vectors.KINDS for vector in vectors.lines(name) if vector["kind"] == "default"
    }  # fmt: skip
    for release in vectors.RELEASES:
        rows = json.loads((vectors.FOLDER / f"versions-{release}.json").read_text())["messages"]
        wanted = {(schema.canonical(row["name"]), v) for row in rows for v in range(row["lowest"], row["highest"] + 1)}
        assert {(name, v) for name, v in wanted if name.endswith(("Request", "Response"))} <= there, release


@pytest.mark.quick
@pytest.mark.parametrize("name", vectors.KINDS)
def test_bytes_and_json_both_ways(name: str) -> None:
    count = 0
    for vector in vectors.messages(name):
        message, version, data = vector["message"], vector["version"], bytes.fromhex(vector["hex"])
        where = (message, version, vector["kind"], vector["idx"])
        value = kwire.decode(message, version, data)
        assert kwire.encode(value, version) == data, where
        seen = kwire.to_json(value, version)
        assert kwire.encode(kwire.from_json(message, version, seen), version) == data, where
        expected = vectors.newest(message, version, vector["json"])
        assert without_tags(seen) == expected, where
        if vector["kind"] == "unknown_tags":
            for row in vector["unknownTaggedFields"]:
                tags = {item["tag"]: bytes.fromhex(item["hex"]) for item in row["tags"]}
                assert struct_at(value, message, version, row["path"]).unknown_tags == tags, where
                assert "_unknownTags" in str(seen)
        else:
            assert kwire.encode(kwire.from_json(message, version, vector["json"]), version) == data, where
        count += 1
    assert count


@pytest.mark.quick
@pytest.mark.parametrize("name", vectors.KINDS)
def test_views_and_lenient_see_the_same(name: str) -> None:
    for vector in vectors.messages(name):
        message, version, data = vector["message"], vector["version"], bytearray.fromhex(vector["hex"])
        value = kwire.decode(message, version, data)
        seen = kwire.decode(message, version, data, views=True, lenient=True)
        assert seen == value and value == seen
        assert kwire.encode(seen, version) == data
        assert kwire.to_json(seen, version) == kwire.to_json(value, version)
        after = kwire.decode_from(message, version, b"12" + data + b"345", 2)
        assert after == (value, len(data) + 2)


def struct_at(value: Any, message: str, version: int, path: str) -> Any:
    """The struct at a path such as topics[0].partitions[1]."""
    fields = schema.message(message).fields
    for name, index in re.findall(r"(\w+)(?:\[(\d+)\])?", path):
        (field,) = [
            field for field in fields
            if field.json_name == name or any(old == name and version in versions for old, versions in field.old_names)
        ]
        value, fields = getattr(value, field.snake_name), field.fields
        if index:
            value = value[int(index)]
    return value


def test_unknown_tags_are_base64_in_json() -> None:
    value = kwire.messages.ApiVersionsRequest(unknown_tags={5: b"\x01\x02"})
    assert kwire.to_json(value, 3)["_unknownTags"] == {"5": base64.b64encode(b"\x01\x02").decode()}
    assert kwire.from_json("ApiVersionsRequest", 3, kwire.to_json(value, 3)) == value
