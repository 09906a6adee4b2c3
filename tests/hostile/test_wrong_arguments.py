"""Wrong values for the parameters of the public functions: a share of them, and a fault that is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.hostile import wrong_arguments

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a call writes under a name goes into the folder of the test."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("room", wrong_arguments.ROOMS)
def test_a_share_of_all_values(room: str, tmp_path: Path) -> None:
    count, errors = wrong_arguments.tried(tmp_path, room, 6, seed=5)
    assert count > 2000 and errors > count / 3


@pytest.mark.soak
@pytest.mark.parametrize("room", wrong_arguments.ROOMS)
def test_all_values(room: str, tmp_path: Path) -> None:
    assert wrong_arguments.tried(tmp_path, room, 1, seed=0)[0] > 15_000


@pytest.mark.parametrize(
    "fault",
    [
        lambda value: value.missing,
        lambda value: (_ for _ in ()).throw(TypeError("an integer is required")),
        lambda value: iter(int, 1),
        lambda value: (_ for _ in ()).throw(ValueError("\x1b[31m")),
    ],
    ids=["a foreign error", "an error without the name", "no end", "a terminal obeys it"],
)
def test_a_fault_is_found(fault: Any) -> None:
    def call(number: Any) -> Any:
        found = fault(number)
        return next(found) if hasattr(found, "gi_frame") else found

    with pytest.raises(wrong_arguments.Find):
        wrong_arguments.judged(wrong_arguments.Call(call, {"number": 1}), "call", "number", "x")
