"""Damaged batches give a value or a KwireError: truncations, seeded mutations, and the same under sanitisers."""

from __future__ import annotations

import resource
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import inputs, mutate, sanitized

RUNNER = ("-m", "tests.hostile.mutate")


def report(
    ran: subprocess.CompletedProcess[str], progress: Path, *arguments: str, runner: tuple[str, ...] = RUNNER
) -> str:
    """What a failed run left: its last words, and how to run the case again."""
    (number,) = struct.unpack("<q", progress.read_bytes()) if progress.exists() else (-1,)
    again = " ".join((*runner, *arguments, "--only", str(number)))
    return f"exit {ran.returncode} at case {number}; again: python {again}\n{ran.stdout[-1000:]}{ran.stderr[-6000:]}"


def capped() -> None:
    """At most 3 GiB of address space: what asks for more than a small multiple of its input fails."""
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


def plain(progress: Path, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, *RUNNER, *arguments, "--progress", str(progress)],
        cwd=sanitized.ROOT, capture_output=True, text=True, preexec_fn=capped,
    )  # fmt: skip
    assert ran.returncode == 0, report(ran, progress, *arguments)
    return ran.stdout


def watched(folder: Path, progress: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return sanitized.run(
        folder, *RUNNER, *arguments, "--progress", str(progress), "--extensions", str(folder), timeout=7200
    )


@pytest.mark.quick
def test_the_cases_follow_from_seed_and_number() -> None:
    first = [mutate.case(5, number)[0] for number in range(200)]
    assert first == [mutate.case(5, number)[0] for number in range(200)]
    assert len(set(first)) > 190
    assert first != [mutate.case(6, number)[0] for number in range(200)]


@pytest.mark.quick
def test_the_sources_are_all_vectors() -> None:
    assert len(inputs.vectors()) == 430
    whole = b"".join(data for _, data in inputs.vectors())
    known = set(inputs.batches())
    parts = [data[at : at + size] for _, data in inputs.vectors() for at, size in inputs.spans(data)]
    assert sum(map(len, parts)) == len(whole) and set(parts) <= known
    assert len(known) > len(set(parts))  # the golden segments came on top
    assert {batch[16] for batch in inputs.sources() if len(batch) > 61} >= {0, 1, 2}


@pytest.mark.quick
def test_some_mutations() -> None:
    assert mutate.main(["--count", "3000", "--seed", "7"]) == 0


def test_a_wrong_reader_is_told_with_its_bytes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no KwireError fails the run, with seed, number and bytes."""

    def wrong(data: bytes, chance: object) -> None:
        raise IndexError("out of range")

    monkeypatch.setattr(mutate, "exercise", wrong)
    assert mutate.main(["--count", "3", "--seed", "7", "--first", "40"]) == 1
    assert f"seed 7, case 40 failed: {mutate.case(7, 40)[0].hex()}" in capsys.readouterr().err


def test_every_truncation(tmp_path: Path) -> None:
    assert int(plain(tmp_path / "at", "--truncations").split()[0]) > 500_000


@pytest.mark.timeout(1200)
def test_a_share_of_the_mutations(tmp_path: Path) -> None:
    assert plain(tmp_path / "at", "--count", "100000", "--seed", "1").startswith("100000 ")


@pytest.mark.timeout(1800)
def test_sanitised(tmp_path: Path) -> None:
    """Mutations under the sanitisers. The build is made once and kept."""
    folder = sanitized.extensions()
    ran = watched(folder, tmp_path / "at", "--count", "40000", "--seed", "2")
    assert ran.returncode == 0, report(ran, tmp_path / "at", "--seed", "2")
    assert "40000 mutations" in ran.stdout


@pytest.mark.timeout(1800)
def test_a_planted_read_out_of_bounds_is_found(tmp_path: Path) -> None:
    """The same run, on a build that reads one byte too many for nothing, ends with the sanitiser's report."""
    folder = sanitized.extensions(plant=True)
    ran = watched(folder, tmp_path / "at", "--count", "40000", "--seed", "2")
    assert ran.returncode != 0, "the planted read was not found"
    assert "ERROR: AddressSanitizer: heap-buffer-overflow" in ran.stderr, report(ran, tmp_path / "at", "--seed", "2")
    assert "READ of size" in ran.stderr


@pytest.mark.soak
@pytest.mark.timeout(14400)
def test_all_mutations(tmp_path: Path) -> None:
    assert plain(tmp_path / "at", "--count", "1000000", "--seed", "11").startswith("1000000 ")


@pytest.mark.soak
@pytest.mark.timeout(14400)
def test_every_truncation_at_every_byte(tmp_path: Path) -> None:
    assert int(plain(tmp_path / "at", "--truncations", "--everywhere").split()[0]) > 4_500_000


@pytest.mark.soak
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("arguments", [("--count", "1000000", "--seed", "12"), ("--truncations",)])
def test_all_sanitised(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ran = watched(sanitized.extensions(), tmp_path / "at", *arguments)
    assert ran.returncode == 0, report(ran, tmp_path / "at", *arguments)


def test_a_hang_is_told(tmp_path: Path) -> None:
    """A case that takes too much of its own time ends the process, which tells where it was."""
    code = "import sys; from pathlib import Path; from tests.hostile import mutate\n"
    code += "note = mutate.Note(Path(sys.argv[1]), 1); note(512)\nwhile True: pass"
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "at")], cwd=sanitized.ROOT, capture_output=True, text=True
    )
    assert ran.returncode < 0 and 'File "<string>", line 3' in ran.stderr
    assert struct.unpack("<q", (tmp_path / "at").read_bytes()) == (512,)
