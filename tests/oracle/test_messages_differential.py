"""Random messages of every pair (message, version) that Kafka 4.4.0 and 3.9.2 have: bytes and JSON agree, both ways."""

from __future__ import annotations

import random
from typing import Any

import pytest

import kwire
from kwire import schema
from tools.kafka.oracle import OLD, Oracle

pytestmark = pytest.mark.java

EACH = 5  # random messages of each pair

# Early access in 3.9, whose version 0 got another layout before it was released for good (release, name).
OTHER_LAYOUT = {
    (OLD, "ReadShareGroupStateSummaryResponse"), (OLD, "ShareGroupMetadataValue"),
    (OLD, "ShareGroupPartitionMetadataValue"),
}  # fmt: skip


def name_of(java_class: str) -> str:
    """The schema's name: requests, responses and headers have "Data" behind it as Java classes."""
    names = schema.message_names()
    stripped = java_class.removesuffix("Data")
    return java_class if java_class in names else schema.canonical(stripped)


def pairs(oracle: Oracle) -> list[tuple[str, str, int]]:
    found = []
    for java_class, facts in sorted(oracle.ask("messages").items()):
        name = name_of(java_class)
        if (oracle.release, name) not in OTHER_LAYOUT:
            found += [(java_class, name, v) for v in range(facts["min"], facts["max"] + 1)]
    return found


def our_version(name: str, version: int) -> int:
    """Up to 4.0 the record type of a coordinator's key was its version; the layout is that of version 0."""
    is_key = name.endswith("Key") and schema.message(name).api_key is not None
    return 0 if is_key else version


def agree(oracle: Oracle, name: str, java_class: str, java_version: int, made: dict[str, Any]) -> None:
    where = f"{name} v{java_version} of {oracle.release}"
    version = our_version(name, java_version)
    data = bytes.fromhex(made["hex"])
    message = kwire.decode(name, version, data)
    assert kwire.encode(message, version) == data, where
    from_java = kwire.from_json(name, version, made["json"])  # takes the names of older releases too
    assert kwire.encode(from_java, version) == data, where
    assert from_java == message, where
    told = kwire.to_json(message, version)
    if told != made["json"]:  # written with the newest names: Kafka must read its own bytes from kwire's
        assert renamed(name), (where, told, made["json"])
        return
    back = oracle.ask("encode", message=java_class, version=java_version, json=told)
    assert back == {"hex": made["hex"]}, where


def renamed(name: str) -> bool:
    """Whether a later release renamed a field of the message."""
    return any(rename["message"].split(".")[0] == name for rename in schema.files.renames()["fields"])


def run(oracle: Oracle, each: int, seed: int) -> None:
    dice = random.Random(seed)
    for java_class, name, version in pairs(oracle):
        asks = [
            {"do": "random", "message": java_class, "version": version, "seed": dice.getrandbits(48),
             "nulls": dice.choice((0, 0.2, 0.6)), "tags": dice.choice((0, 0.1, 0.5))}
            for _ in range(each)
        ]  # fmt: skip
        for made in oracle.many(asks):
            assert "error" not in made, (name, version, made)
            agree(oracle, name, java_class, version, made)


def test_there_are_enough(oracle: Oracle, old_oracle: Oracle) -> None:
    assert len(pairs(oracle)) >= 744
    assert len(pairs(old_oracle)) >= 737


def test_newest(oracle: Oracle) -> None:
    run(oracle, EACH, seed=1)


def test_old(old_oracle: Oracle) -> None:
    run(old_oracle, EACH, seed=2)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_long(oracle: Oracle, old_oracle: Oracle) -> None:
    run(oracle, 200, seed=3)
    run(old_oracle, 200, seed=4)
