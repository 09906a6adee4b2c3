"""Random record batches: each side reads what the other writes, and uncompressed ones are equal byte for byte."""

from __future__ import annotations

import random
from typing import Any

import pytest

import kwire
from tests.codec import as_kafka
from tests.codec.rebuild import rebuilt
from tests.oracle import shapes
from tools.kafka.oracle import Oracle

pytestmark = pytest.mark.java

TOGETHER = 50  # batches a question, and batches joined into one input
UNLIKE = ("position", "sizeInBytes", "crc", "length")  # differ where a compression library differs


def told_of(data: bytes, oracle: Oracle) -> list[dict[str, Any]]:
    answer = oracle.ask("read", hex=data.hex())
    assert answer["batchIteration"] == "ok" and answer["validBytes"] == len(data), answer
    for told in answer["batches"]:
        assert as_kafka.accepted(told), told
    batches: list[dict[str, Any]] = answer["batches"]
    return batches


def alike(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in UNLIKE}


def run(oracle: Oracle, count: int, seed: int) -> None:
    for start in range(0, count, TOGETHER):
        dice = random.Random(f"{seed}/{start}")
        made = [shapes.shape(dice) for _ in range(TOGETHER)]
        answers = oracle.many(shapes.for_kafka(one) for one in made)
        written = []
        for one, answer in zip(made, answers, strict=True):
            assert "hex" in answer, (one, answer)
            written.append(bytes.fromhex(answer["hex"]))
        read_what_kafka_wrote(written, oracle)
        write_for_kafka(made, written, oracle)


def read_what_kafka_wrote(written: list[bytes], oracle: Oracle) -> None:
    data = b"".join(written)
    wanted = told_of(data, oracle)
    got = list(kwire.read_batches(data))
    for batch, told in zip(got, wanted, strict=True):
        as_kafka.check(batch, told)
    again = [rebuilt(batch) for batch in got]
    for batch, told, mine, theirs in zip(got, wanted, again, told_of(b"".join(again), oracle), strict=True):
        if batch.codec == "none":
            assert mine == data[batch.position : batch.position + batch.size]
        assert alike(theirs) == alike(told)


def write_for_kafka(made: list[dict[str, Any]], written: list[bytes], oracle: Oracle) -> None:
    for one, theirs in zip(made, written, strict=True):
        said = shapes.for_kwire(one)
        if said is None:
            continue
        records, arguments = said
        mine = kwire.build_batch(records, **arguments)
        if one["codec"] == "none":
            assert mine == theirs, (one, mine.hex(), theirs.hex())
            continue
        told, wanted = told_of(mine, oracle), told_of(theirs, oracle)
        for ours, kafkas in zip(told, wanted, strict=True):
            assert alike(ours) == alike(kafkas)


def test_both_directions(oracle: Oracle) -> None:
    run(oracle, 1_000, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_both_directions_long(oracle: Oracle) -> None:
    run(oracle, 10_000, seed=2)


def test_what_the_log_cleaner_leaves(oracle: Oracle) -> None:
    """Batches with records taken out by Kafka's own filter, with and without a delete horizon."""
    dice = random.Random(7)
    for _ in range(100):
        one = shapes.shape(dice)
        if one.get("control"):
            continue
        one["delete_horizon"] = None
        data = oracle.ask(**shapes.for_kafka(one))["hex"]
        keep = [r["offset"] for r in one["records"] if dice.random() < 0.6]
        horizon = shapes.NOW if one["magic"] == 2 and dice.random() < 0.5 else -1
        left = bytes.fromhex(oracle.ask("compact", hex=data, keep=keep, horizon=horizon)["hex"])
        read_what_kafka_wrote([left], oracle)
