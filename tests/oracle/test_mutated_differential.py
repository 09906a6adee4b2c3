"""Damaged messages and batches: Kafka's classes and kwire give the same verdict and the same values."""

from __future__ import annotations

import math
from typing import Any

import pytest

import kwire
from tests.codec import verdicts
from tests.codec.test_messages_malformed import check_lenient, check_strict
from tests.hostile import mutate, mutate_messages
from tests.hostile.samples import Pair, pairs
from tests.oracle import test_messages_differential as sound
from tools.kafka.oracle import Oracle

pytestmark = pytest.mark.java

TOGETHER = 200  # questions a line


def known_to(oracle: Oracle) -> dict[Pair, tuple[str, int]]:
    """Our pairs as the release knows them: Java class and version."""
    found = sound.pairs(oracle)
    return {(name, sound.our_version(name, version)): (java, version) for java, name, version in found}


def damaged(oracle: Oracle, groups: int, seed: int, newer: Oracle | None = None) -> tuple[int, int]:
    """Compares the mutants of so many groups; how many there were, and how many Kafka took. newer: not what it has."""
    kafkas, ours = known_to(oracle), pairs()
    for pair in known_to(newer) if newer else ():
        kafkas.pop(pair, None)  # its tags have grown
    numbers = [number for number in range(groups) if ours[number % len(ours)] in kafkas]
    count = taken = 0
    for at in range(0, len(numbers), TOGETHER // mutate_messages.GROUP):
        asks: list[tuple[Pair, bytes]] = []
        for number in numbers[at : at + TOGETHER // mutate_messages.GROUP]:
            pair, mutants = mutate_messages.group(seed, number)
            asks += [(pair, data) for data in mutants]
        answers = oracle.many(
            {"do": "decode", "message": kafkas[pair][0], "version": kafkas[pair][1], "hex": data.hex()}
            for pair, data in asks
        )
        for (pair, data), answer in zip(asks, answers, strict=True):
            taken += agree(pair, data, answer)
            count += 1
    return count, taken


def agree(pair: Pair, data: bytes, answer: dict[str, Any]) -> bool:
    """Lenient reading agrees in verdict, value, what is left and what is written again; strict takes no more."""
    name, version = pair
    good = "error" not in answer
    outcome = {"ok": good, **answer}
    agreed = check_lenient(name, version, data, outcome)  # False: a negative tag count, which 3.9 takes
    check_strict(name, version, data, outcome)
    if good and agreed and not sound.renamed(name):
        message, _ = kwire.decode_from(name, version, data, lenient=True)
        assert in_java(kwire.to_json(message, version)) == answer["json"], (pair, data.hex())
    return good


def in_java(value: Any) -> Any:
    """JSON in the oracle's words: texts for numbers that JSON lacks, and tags from 2^31 on are negative."""
    if isinstance(value, list):
        return [in_java(item) for item in value]
    if isinstance(value, dict):
        return {
            key: {str(int(tag) - (int(tag) >> 31 << 32)): data for tag, data in item.items()}
            if key == "_unknownTags" else in_java(item)
            for key, item in value.items()
        }  # fmt: skip
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def test_damaged_messages(oracle: Oracle) -> None:
    count, taken = damaged(oracle, 2 * len(pairs()), seed=41)
    assert count > 20_000 and 0 < taken < count


def test_damaged_messages_of_removed_versions(oracle: Oracle, old_oracle: Oracle) -> None:
    count, taken = damaged(old_oracle, 4 * len(pairs()), seed=42, newer=oracle)
    assert count > 6000 and 0 < taken < count


def batches(oracle: Oracle, count: int, seed: int) -> int:
    """Compares so many damaged batches; how many Kafka took."""
    taken = 0
    for first in range(0, count, TOGETHER):
        cases = [mutate.case(seed, number)[0] for number in range(first, first + TOGETHER)]
        for data, answer in zip(cases, oracle.many({"do": "read", "hex": d.hex()} for d in cases), strict=True):
            taken += verdicts.agree(data, answer)
            verdicts.agree_without_checksum(data, answer)
    return taken


def test_damaged_batches(oracle: Oracle) -> None:
    assert 0 < batches(oracle, 10_000, seed=43) < 10_000


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_long(oracle: Oracle, old_oracle: Oracle) -> None:
    damaged(oracle, 100 * len(pairs()), seed=44)
    damaged(old_oracle, 100 * len(pairs()), seed=45, newer=oracle)
    batches(oracle, 400_000, seed=46)
