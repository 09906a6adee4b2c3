"""Objects of compiled types made by hand, by __new__, by subclasses, by __setstate__: no crash, whatever is asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.hostile import sanitized
from tests.hostile.sanitized import ROOT


def made(output: str) -> int:
    """How many objects the script had at its end."""
    count, word = output.splitlines()[-1].split()
    assert word == "objects"
    return int(count)


def test_objects_made_by_hand() -> None:
    ran = subprocess.run([sys.executable, "-m", "tests.hostile.handmade"], cwd=ROOT, capture_output=True, text=True,
                         timeout=300)  # fmt: skip
    assert ran.returncode == 0, (ran.returncode, ran.stderr[-300:])
    assert made(ran.stdout) > 100 and "kwire_c.columns.RecordColumns" in ran.stderr


@pytest.mark.checkout
@pytest.mark.timeout(1800)
def test_objects_made_by_hand_under_the_sanitisers() -> None:
    ran = sanitized.run(sanitized.extensions(), "-m", "tests.hostile.handmade")
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert made(ran.stdout) > 100 and "runtime error" not in ran.stderr
