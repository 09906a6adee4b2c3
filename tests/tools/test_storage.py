"""The tables that tools.storage writes: a release's values go in, and come out again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.storage import CONFIGS, HELP, by_change, value_of, write

pytestmark = [pytest.mark.quick, pytest.mark.checkout]


@pytest.mark.parametrize("path", [CONFIGS, HELP], ids=lambda path: path.stem)
def test_the_same_values_change_nothing(path: Path, tmp_path: Path) -> None:
    table = json.loads(path.read_text(encoding="utf-8"))
    for release in ("3.3", "3.9", "4.4"):
        assert by_change(table, release, value_of(table, release)) == table
    write(tmp_path / "again.json", table)
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_a_release_between_others() -> None:
    table = by_change({}, "4.0", {"a": 1, "b": 2})
    table = by_change(table, "4.2", {"a": 1, "c": 3})
    assert table == {"a": {"4.0": 1}, "c": {"4.2": 3}, "b": {"4.0": 2, "4.2": None}}
    table = by_change(table, "4.1", {"a": 5, "b": 2})
    assert table["a"] == {"4.0": 1, "4.1": 5, "4.2": 1} and table["b"] == {"4.0": 2, "4.2": None}
    assert value_of(table, "4.2") == {"a": 1, "c": 3} and value_of(table, "4.4") == value_of(table, "4.2")
