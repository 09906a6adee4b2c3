"""Processors that kwire does not support (docs/support.md): a build from source for them fails, and says why."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "kwire_c" / "core"

pytestmark = [pytest.mark.quick, pytest.mark.checkout]


@pytest.mark.parametrize(
    "processor",
    [
        ["-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__"],
        ["-U__SIZEOF_POINTER__", "-D__SIZEOF_POINTER__=4"],
    ],
    ids=["big-endian", "32-bit"],
)
def test_refused(processor: list[str]) -> None:
    check = ["cc", "-std=c11", "-fsyntax-only", str(CORE / "batch.c")]
    subprocess.run(check, check=True)
    found = subprocess.run([*check, *processor], capture_output=True, text=True)
    assert found.returncode
    assert "kwire needs a little-endian 64-bit processor" in found.stderr
