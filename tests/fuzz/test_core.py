"""The C core alone: every source and seeded mutations under the sanitisers, and libFuzzer in make soak."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.hostile import inputs, mutate
from tests.hostile.sanitized import ROOT

CORE = ROOT / "kwire_c" / "core"
TARGET = str(Path(__file__).with_name("core.c"))
SANITIZERS = ["-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]


def build(program: Path, compiler: str, *options: str) -> None:
    sources = [str(path) for path in sorted(CORE.glob("*.c"))]
    subprocess.run(
        [compiler, "-std=c11", "-O1", "-g", "-Wall", "-Wextra", *SANITIZERS, *options, f"-I{CORE}", TARGET, *sources,
         "-o", str(program)],
        check=True,
    )  # fmt: skip


def corpus(path: Path, mutations: int) -> int:
    """Sources and mutations in one file of (length, bytes); how many."""
    cases = [*inputs.sources(), *(mutate.case(3, number)[0] for number in range(mutations))]
    path.write_bytes(b"".join(struct.pack("<I", len(case)) + case for case in cases))
    return len(cases)


def test_alone(tmp_path: Path) -> None:
    """Sound builds read all of it; with the planted read out of bounds the same run ends with a report."""
    count = corpus(tmp_path / "cases", 20_000)
    build(tmp_path / "alone", "cc", "-DALONE", "-fsanitize=address,undefined")
    ran = subprocess.run([tmp_path / "alone", tmp_path / "cases"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert ran.stdout == f"{count} inputs\n"
    build(tmp_path / "planted", "cc", "-DALONE", "-DKWIRE_PLANT", "-fsanitize=address,undefined")
    ran = subprocess.run([tmp_path / "planted", tmp_path / "cases"], capture_output=True, text=True)
    assert ran.returncode != 0
    assert "ERROR: AddressSanitizer: heap-buffer-overflow" in ran.stderr


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_fuzz(tmp_path: Path) -> None:
    """A million runs of libFuzzer from the sources on; KWIRE_FUZZ_RUNS asks for another number."""
    clang = shutil.which("clang")
    assert clang, "clang is missing: apt-get install clang"
    build(tmp_path / "fuzz", clang, "-fsanitize=fuzzer,address,undefined")
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    for number, data in enumerate(inputs.sources()):
        (seeds / str(number)).write_bytes(data)
    runs = os.environ.get("KWIRE_FUZZ_RUNS", "1000000")
    ran = subprocess.run(
        [tmp_path / "fuzz", f"-runs={runs}", "-seed=1", "-max_len=4096", "-rss_limit_mb=2048", "-timeout=10", seeds],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-6000:]
    assert f"Done {runs} runs" in ran.stderr
