"""Seeded mutations of every message: a value or a KwireError, and in strict mode bytes that come back."""

from __future__ import annotations

import os
import random

import pytest

import kwire
from tests.messages import vectors

ODD = (0x00, 0x01, 0x7F, 0x80, 0xFF)


def mutated(dice: random.Random, data: bytes) -> bytes:
    """One to three changes: a byte set, bytes cut, doubled or put in."""
    out = bytearray(data)
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(out) + 1)
        kind = dice.randrange(5)
        if kind == 0 and at < len(out):
            out[at] = dice.choice(ODD) if dice.random() < 0.5 else dice.randrange(256)
        elif kind == 1:
            del out[at : at + dice.randint(1, 8)]
        elif kind == 2:
            out[at:at] = out[at : at + dice.randint(1, 20)]
        elif kind == 3:
            out[at:at] = bytes(dice.choice(ODD) for _ in range(dice.randint(1, 5)))
        else:
            del out[at:]
    return bytes(out)


def check(message: str, version: int, data: bytes, columns: bool) -> bool:
    try:
        value = kwire.decode(message, version, data)
    except kwire.KwireError:
        good = False
    else:
        good = True
        assert kwire.encode(value, version) == data, (message, version, data.hex())
        assert kwire.encode(kwire.from_json(message, version, kwire.to_json(value, version)), version) == data
    try:
        value = kwire.decode(message, version, data, lenient=True, views=True)
        assert value == value and repr(value)
        kwire.encode(value, version)
    except kwire.KwireError:
        pass
    if columns:
        table = kwire.columns_of(message, version, [data], errors="keep")
        assert (len(table), len(table.bad)) == ((1, 0) if good else (0, 1)), (message, version, data.hex())
    return good


def run(count: int, seed: int) -> int:
    pool = [
        (vector["message"], vector["version"], bytes.fromhex(vector["hex"]))
        for name in vectors.KINDS for vector in vectors.messages(name) if len(vector["hex"]) < 4000
    ]
    dice, accepted = random.Random(seed), 0
    for number in range(count):
        message, version, data = pool[number % len(pool)] if number < len(pool) else dice.choice(pool)
        accepted += check(message, version, mutated(dice, data), number % 4 == 0)
    return accepted


@pytest.mark.parametrize("seed", [1, 2])
def test_mutations(seed: int) -> None:
    accepted = run(15_000, seed)
    assert 0 < accepted < 15_000


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_million_mutations() -> None:
    assert run(int(os.environ.get("KWIRE_MUTATIONS", "1000000")), 3)
