"""Bytes made to hurt: a clean KwireError in every row, within 512 MiB on top of what the process has."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.hostile import attacks
from tests.hostile.sanitized import ROOT

# As Java reads it: the last of tags that are alike wins, and none takes memory.
TAKEN = {("20 million tags", "lenient")}
MOST = 160 << 20  # bytes that any row may cost: the 64 MiB of a batch, and small multiples of the input


def told_in_the_table() -> dict[str, str]:
    """{attack: what SECURITY.md says that kwire does}."""
    rows = [line.split(" | ") for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.count(" | ") == 4]
    return {row[0].removeprefix("| "): row[1] for row in rows[1:]}  # after the heading


@pytest.mark.parametrize("number", range(len(attacks.ATTACKS)), ids=[attack.name for attack in attacks.ATTACKS])
def test_a_clean_error(number: int) -> None:
    answer = attacks.run("kwire", number)
    assert "died" not in answer, answer["died"]
    name = attacks.ATTACKS[number].name
    for way, (kind, family, text) in answer["ways"].items():
        if (name, way) in TAKEN:
            assert kind == "accepted"
        else:
            assert family == "KwireError", (way, kind, text)
            assert text and "\n" not in text
    assert answer["grown"] < MOST
    assert attacks.shown(answer).split(" at ")[0] == told_in_the_table()[name].split(" at ")[0]


def test_what_asks_for_more_than_the_limit_is_told() -> None:
    """A reader that takes 600 MiB fails, one that dies is dead."""
    start = "from tests.hostile import attacks; attacks.LIBRARIES['kwire'] = lambda kind: "
    greedy = start + "{'greedy': lambda data: bytearray(600 << 20)}; attacks.child('kwire', 0)"
    ran = subprocess.run([sys.executable, "-c", greedy], cwd=ROOT, capture_output=True, text=True)
    assert json.loads(ran.stdout)["ways"]["greedy"][:2] == ["MemoryError", ""]


def test_dead_children_are_told() -> None:
    assert "KeyError: 'no such library'" in attacks.run("no such library", 0)["died"]


def test_the_table_in_the_security_page() -> None:
    """Each attack has its row."""
    assert list(told_in_the_table()) == [attack.name for attack in attacks.ATTACKS]
