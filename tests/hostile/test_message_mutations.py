"""Damaged messages of every pair give a value or a KwireError, and what strict reading takes comes back the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import kwire
from tests.hostile import mutate_messages, samples, sanitized, soak
from tests.hostile.test_mutations import report
from tools.schema import derived

RUNNER = ("-m", "tests.hostile.mutate_messages")


def watched(folder: Path, progress: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    extra = ("--progress", str(progress), "--extensions", str(folder))
    return sanitized.run(folder, *RUNNER, *arguments, *extra, timeout=7200)


def test_every_pair_has_samples() -> None:
    assert len(samples.pairs()) == derived.read()["pairs"]
    for name, version in samples.pairs():
        found = samples.samples((name, version))
        for data in found:
            assert kwire.encode(kwire.decode(name, version, data), version) == data
        assert found


@pytest.mark.quick
def test_the_groups_follow_from_seed_and_number() -> None:
    first = [mutate_messages.group(5, number) for number in range(50)]
    assert first == [mutate_messages.group(5, number) for number in range(50)]
    assert len({pair for pair, _ in first}) == 50
    assert first != [mutate_messages.group(6, number) for number in range(50)]


def test_some(capsys: pytest.CaptureFixture[str]) -> None:
    assert mutate_messages.main(["--count", "30000", "--seed", "7"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["pairs"] == len(samples.pairs())
    assert 0 < answer["accepted"] < answer["mutations"]


@pytest.mark.parametrize("name", ["encode", "columns_of", "decode_from", "from_json"])
def test_a_wrong_reader_is_report(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other bytes, other verdicts and other exceptions fail the run, with seed, number and bytes."""
    right = getattr(kwire, name)

    def wrong(*arguments: object, **options: object) -> object:
        if name == "encode":
            return right(*arguments) + b"\0"
        if name == "columns_of":
            message, version, _ = arguments
            return right(message, version, [], **options)
        raise IndexError("out of range")

    monkeypatch.setattr(kwire, name, wrong)
    assert mutate_messages.main(["--count", "1600", "--seed", "7", "--first", "40"]) == 1
    assert "seed 7, group 4" in capsys.readouterr().err


@pytest.mark.timeout(1800)
def test_sanitised(tmp_path: Path) -> None:
    ran = watched(sanitized.extensions(), tmp_path / "at", "--count", "60000", "--seed", "2")
    assert ran.returncode == 0, report(ran, tmp_path / "at", "--seed", "2", runner=RUNNER)
    assert json.loads(ran.stdout)["mutations"] == 60_000


@pytest.mark.timeout(1800)
def test_a_planted_read_out_of_bounds_is_found(tmp_path: Path) -> None:
    ran = watched(sanitized.extensions(plant=True), tmp_path / "at", "--count", "60000", "--seed", "2")
    assert ran.returncode != 0, "the planted read was not found"
    assert "ERROR: AddressSanitizer: heap-buffer-overflow" in ran.stderr and "READ of size" in ran.stderr


@pytest.mark.timeout(1800)
def test_the_long_run_logs_its_shards_and_goes_on_from_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    arguments = ["--messages", "3200", "--batches", "500", "--seed", "3", "--log", str(log)]
    assert soak.main(arguments) == 0
    assert "3200 mutations of messages, 500 of batches, 0 shards failed" in capsys.readouterr().out
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["kind"], line["seed"], line["first"], line["mutations"]) for line in lines] == [
        ("messages", 3, 0, 3200), ("batches", 3, 0, 500)
    ]  # fmt: skip
    assert soak.main([*arguments[:1], "3216", *arguments[2:]]) == 0  # one shard is another
    assert len(log.read_text().splitlines()) == 3


def test_shards_cover_all_and_none_twice() -> None:
    found = list(soak.shards(1, {"messages": 400_000, "batches": 90_000}))
    numbers = [n for kind, _, first, count in found if kind == "messages" for n in range(first, first + count // 16)]
    assert numbers == list(range(25_000))
    numbers = [n for kind, _, first, count in found if kind == "batches" for n in range(first, first + count)]
    assert numbers == list(range(90_000))
