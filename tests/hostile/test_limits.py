"""Memory that fails, inputs past 2 and 4 GiB, inputs twice as large: short shares of the harnesses, and long ones."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import pytest

from kwire.storage import LogSegment
from tests.hostile import allocations, apart, growth, sizes
from tests.storage import making

SHORT = [name for name, case in sizes.CASES.items() if case.short]
LONG = [name for name, case in sizes.CASES.items() if not case.short]
LARGE = " (large)"


@cache
def short_sizes() -> dict[str, str | None]:
    """What broke of each; all of them share a process."""
    return apart.run("tests.hostile.sizes", SHORT, 300)


@cache
def short_growth() -> dict[str, str | None]:
    return apart.run("tests.hostile.growth", list(growth.CASES), 600)


@pytest.mark.checkout
def test_a_request_for_memory_that_fails_gives_the_right_value_or_a_memory_error() -> None:
    """A sample of them; the rest is in the long run."""
    broken, tried = allocations.run(6, 2026)
    assert broken == []
    assert tried > 1000


@pytest.mark.checkout
@pytest.mark.soak
def test_every_request_for_memory_may_fail() -> None:
    broken, tried = allocations.run(1200, 2026)
    assert broken == []
    assert tried > 100_000


@pytest.mark.parametrize("name", SHORT)
def test_what_is_past_2_gib_ends(name: str) -> None:
    assert short_sizes()[name] is None


@pytest.mark.soak
@pytest.mark.parametrize("name", LONG)
def test_what_is_far_past_2_gib_ends(name: str) -> None:
    assert apart.run("tests.hostile.sizes", [name], apart.PATIENCE) == {name: None}


@pytest.mark.parametrize("name", growth.CASES)
def test_twice_the_input_takes_about_twice_the_time(name: str) -> None:
    assert short_growth()[name] is None


@pytest.mark.soak
@pytest.mark.parametrize("name", growth.CASES)
def test_twice_a_large_input_takes_about_twice_the_time(name: str) -> None:
    assert apart.run("tests.hostile.growth", [name + LARGE], apart.PATIENCE) == {name + LARGE: None}


def test_a_child_that_hangs_or_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harnesses continue after it."""
    monkeypatch.setenv("KWIRE_PATIENCE", "2")
    assert apart.run("tests.hostile.apart", ["hangs"], 2) != {}  # also where the time is over as it is found
    found = apart.run("tests.hostile.apart", ["hangs", "dies", "fails", "works"], 60)
    assert found["hangs"] is not None and found["hangs"].startswith("hangs")
    assert found["dies"] is not None and found["dies"].startswith("died (-6)")
    assert found["fails"] is not None and found["fails"].startswith("Unexpected: so")
    assert found["works"] is None


def test_files_are_closed_without_a_warning(tmp_path: Path) -> None:
    path = making.write_segment(tmp_path / "t-0", 0, [making.batch(0)])
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        assert len(list(LogSegment(path).read())) == 3
        assert LogSegment(path).verify() == []
        gc.collect()
    assert [str(one.message) for one in issued] == []


_SHORT_OF_MEMORY = """
import os, resource
from kwire.compression import compress, decompress
compress("zstd", b"a"), decompress("zstd", compress("zstd", b"a"), limit=10)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
content = os.urandom(8 << 20)
resource.setrlimit(resource.RLIMIT_AS, (used + (24 << 20), resource.RLIM_INFINITY))
try:
    compress("zstd", content, level=22)
except MemoryError:
    print("MemoryError")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS and /proc are Linux's")
def test_zstd_without_memory_raises_memory_error() -> None:
    """It raised ZstdError; in a decoder that was a corrupt batch. Not a test of the core: QEMU has no RLIMIT_AS."""
    done = subprocess.run([sys.executable, "-c", _SHORT_OF_MEMORY], capture_output=True, text=True, check=True)
    assert done.stdout == "MemoryError\n"
