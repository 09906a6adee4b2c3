"""Malformed bytes: lenient decoding agrees with Kafka's classes, strict decoding accepts only what it re-encodes."""

from __future__ import annotations

from typing import Any

import pytest

import kwire
from tests.codec import vectors
from tools.vectors.messages import without_tags

pytestmark = pytest.mark.quick


def negative_tag_count(error: kwire.DecodeError) -> bool:
    """Accepted up to 4.3, refused from 4.4 on and by kwire."""
    return "tagged fields exceed" in error.reason and int(error.reason.split()[0]) >= 1 << 31


def check_lenient(name: str, version: int, data: bytes, outcome: dict[str, Any]) -> bool:
    where = (name, version, data.hex(), outcome)
    try:
        message, end = kwire.decode_from(name, version, data, lenient=True)
    except kwire.DecodeError as error:
        assert not outcome.get("ok") or negative_tag_count(error), where
        assert 0 <= error.offset <= len(data), where
        return not outcome.get("ok")
    assert outcome.get("ok"), where
    assert len(data) - end == outcome.get("remaining", 0), where
    if "reencodeError" in outcome:
        with pytest.raises(kwire.EncodeError):
            kwire.encode(message, version)
    else:
        expected = bytes.fromhex(outcome["reencoded"]) if "reencoded" in outcome else data[:end]
        assert kwire.encode(message, version) == expected, where
    return True


def check_strict(name: str, version: int, data: bytes, outcome: dict[str, Any]) -> bool:
    try:
        message = kwire.decode(name, version, data)
    except kwire.DecodeError as error:
        assert 0 <= error.offset <= len(data)
        return False
    assert kwire.encode(message, version) == data and outcome.get("ok"), (name, version, data.hex())
    return True


def cases(file: str) -> Any:
    for vector in vectors.with_this_layout(file):
        name, version, data = vector["message"], vector["version"], bytes.fromhex(vector["hex"])
        yield name, version, data + b"\0\0\0", vector["trailing"]
        for cut in vector["truncated"]:
            yield name, version, data[: cut["len"]], cut
        for change in vector["mutated"]:
            at = change["pos"]
            yield name, version, data[:at] + bytes.fromhex(change["sub"]) + data[at + 1 :], change


@pytest.mark.parametrize("file", vectors.of_releases("malformed"))
def test_malformed(file: str) -> None:
    count, known, accepted = 0, 0, 0
    for case in cases(file):
        count += 1
        known += not check_lenient(*case)
        accepted += check_strict(*case)
    assert count > 1000
    assert known < count // 50  # the negative tag counts
    assert count // 5 < accepted < count // 2


@pytest.mark.parametrize("file", vectors.of_releases("unsupported"))
def test_unsupported(file: str) -> None:
    for vector in vectors.with_this_layout(file):
        where = (vector["message"], vector["path"], vector["version"])
        message = kwire.from_json(vector["message"], vector["fromVersion"], vector["json"])
        if "error" in vector:
            with pytest.raises(kwire.EncodeError) as caught:
                kwire.encode(message, vector["version"])
            assert caught.value.path, where
        else:
            assert kwire.encode(message, vector["version"]).hex() == vector["hex"], where


def test_quirks() -> None:
    count = 0
    for quirk in vectors.lines("quirks.jsonl.gz"):
        if "hex" not in quirk or "message" not in quirk:
            continue  # calls, not bytes: test_written_quirks
        count += 1
        name, version, data = quirk["message"], quirk["version"], bytes.fromhex(quirk["hex"])
        if check_lenient(name, version, data, quirk) and quirk.get("ok"):
            message, _ = kwire.decode_from(name, version, data, lenient=True)
            assert without_tags(kwire.to_json(message, version)) == quirk["json"]
        check_strict(name, version, data, quirk)
    assert count > 50


def test_written_quirks() -> None:
    """What Kafka's own writers refuse. It writes lone surrogates as "?", kwire refuses what it cannot read back."""
    m = kwire.messages
    long = m.FindCoordinatorRequest(key="k" * 32768)
    for version in (0, 3):
        with pytest.raises(kwire.EncodeError, match="32768 bytes"):
            kwire.encode(long, version)
    assert len(kwire.encode(m.FindCoordinatorRequest(key="k" * 32767), 0)) == 32769
    with pytest.raises(kwire.EncodeError):
        m.FindCoordinatorRequest(key=None)
    with pytest.raises(kwire.EncodeError, match="surrogate"):
        kwire.encode(m.FindCoordinatorRequest(key="\ud800"), 0)
    with pytest.raises(kwire.EncodeError, match="unknown tags"):
        kwire.encode(m.ApiVersionsRequest(unknown_tags={5: b""}), 0)
    ordered = kwire.encode(m.ApiVersionsRequest(unknown_tags={5: b"", 1: b""}), 3)
    assert ordered == kwire.encode(m.ApiVersionsRequest(unknown_tags={1: b"", 5: b""}), 3)
    with pytest.raises(kwire.EncodeError, match="known one"):
        kwire.encode(m.ApiVersionsResponse(unknown_tags={1: b"\0" * 8}), 3)
    with pytest.raises(kwire.EncodeError, match="tag number"):
        kwire.encode(m.ApiVersionsRequest(unknown_tags={0x7FFFFFFF: b""}), 3)
    with pytest.raises(kwire.UnsupportedVersionError):
        kwire.encode(m.ApiVersionsRequest(), 9)


def test_the_path_of_an_error() -> None:
    m = kwire.messages
    response = m.FetchResponse(responses=[
        m.FetchResponse.FetchableTopicResponse(topic=f"t{i}", partitions=[
            m.FetchResponse.PartitionData(partition_index=j, records=b"x" * 812) for j in range(3)
        ]) for i in range(2)
    ])
    data = kwire.encode(response, 12)
    with pytest.raises(kwire.DecodeError) as caught:
        kwire.decode("FetchResponse", 12, data[:-103])
    error = caught.value
    assert error.path == ".responses[1].partitions[2].records"
    assert error.reason == "812 bytes needed, 712 remaining"
    assert str(error) == f"FetchResponse v12 {error.path}: {error.reason}, at byte {error.offset}"
    assert error.offset == len(data) - 103 - 712
