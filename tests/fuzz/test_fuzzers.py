"""The fuzzers: kept corpora and seeded mutations on the C core alone, 20 seconds of each fuzzer, planted bugs found."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fuzz import targets
from tests.hostile import inputs, mutate

ALL = (*targets.TARGETS, targets.FACE)
SECONDS = int(os.environ.get("KWIRE_FUZZ_SECONDS", "20"))


def test_corpora_are_small_and_whole() -> None:
    for name in ALL:
        found = list(targets.corpus(name))
        assert len(found) > 50
        assert targets.pack(found) and max(map(len, found)) <= 2048
        assert (targets.KEPT / f"{name}.xz").stat().st_size < 400_000


@pytest.mark.parametrize("name", targets.TARGETS)
def test_alone(name: str, tmp_path: Path) -> None:
    """The C core needs no clang for its corpus and seeded mutations; with the planted read they end with a report."""
    cases = list(targets.corpus(name))
    if name == "records":
        cases += [*inputs.sources(), *(mutate.case(3, number)[0] for number in range(20_000))]
    (tmp_path / "cases").write_bytes(targets.pack(cases))
    sound = targets.build(name, tmp_path / "alone", "-DALONE", "-fsanitize=address,undefined", compiler="cc")
    ran = subprocess.run([*sound, tmp_path / "cases"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert ran.stdout.startswith(f"{len(cases)} inputs, ")
    planted = targets.build(
        name, tmp_path / "planted", "-DALONE", "-DKWIRE_PLANT", "-fsanitize=address,undefined", compiler="cc"
    )
    ran = subprocess.run([*planted, tmp_path / "cases"], capture_output=True, text=True)
    assert ran.returncode != 0
    assert "ERROR: AddressSanitizer: heap-buffer-overflow" in ran.stderr


@pytest.mark.parametrize("name", targets.ALLOCATING)
def test_memory_that_falls_short(name: str, tmp_path: Path) -> None:
    """Each allocation of the C core fails: it is told, nothing leaks, and what is made afterwards is the same."""
    cases = list(targets.cases(name))
    (tmp_path / "cases").write_bytes(targets.pack(cases))
    short = targets.build(name, tmp_path / "short", "-DSHORT", "-fsanitize=address,undefined", compiler="cc")
    ran = subprocess.run([*short, tmp_path / "cases"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert ran.stdout.startswith(f"{len(cases)} inputs, ")


def test_a_processor_without_wide_copies_makes_the_same(tmp_path: Path) -> None:
    (tmp_path / "cases").write_bytes(targets.pack([*targets.cases("records"), *inputs.sources()]))
    told = set()
    for program, options in (("wide", ()), ("narrow", (targets.NARROW,))):
        built = targets.build("records", tmp_path / program, "-DALONE", *options, compiler="cc")
        told.add(subprocess.run([*built, tmp_path / "cases"], capture_output=True, text=True, check=True).stdout)
    assert len(told) == 1 and "digest 00000000" not in str(told)


@pytest.mark.timeout(1800)
def test_a_while_of_each() -> None:
    """Two at a time. KWIRE_FUZZ_SECONDS asks for another time."""
    targets.clang()
    with ThreadPoolExecutor(2) as pool:
        runs = dict(zip(ALL, pool.map(lambda name: targets.run(name, SECONDS), ALL), strict=True))
    for name, ran in runs.items():
        assert ran.returncode == 0, f"{name}: {ran.stderr[-6000:]}"
        done = re.search(r"Done (\d+) runs in (\d+) second", ran.stderr)
        assert done and int(done[1]) > 1000, f"{name}: {ran.stderr[-2000:]}"


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ALL)
def test_a_planted_bug_is_found(name: str) -> None:
    ran = targets.run(name, 60, plant=True)
    assert ran.returncode != 0, "the planted read was not found"
    assert "ERROR: AddressSanitizer: heap-buffer-overflow" in ran.stderr, ran.stderr[-3000:]
    assert "Uncaught Python exception" not in ran.stdout, ran.stdout[-3000:]


def test_coverage_of_native_code_leads_the_face() -> None:
    """libFuzzer must count the counters of the extensions, not of Python alone."""
    ran = targets.run(targets.FACE, 1)
    loaded = re.search(r"Loaded (\d+) modules +\((\d+) inline 8-bit counters\)", ran.stderr)
    assert loaded and int(loaded[1]) >= 10 and int(loaded[2]) > 30_000, ran.stderr[:2000]


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(targets.MissingTool, match="clang is missing: apt-get install -y clang"):
        targets.clang()
    with pytest.raises(targets.MissingTool, match="clang is missing"):
        targets.command(targets.FACE, tmp_path)
