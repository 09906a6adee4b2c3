"""Threads on shared objects, Ctrl-C at any moment, forks in the midst: short shares, long ones, planted faults."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

import kwire
from tests.hostile import all_sanitized, arrow_tables, clients, dialogues, forks, interrupts, plants, races, sanitized

SHORT = sorted(set(interrupts.CASES) - {"pages"})  # a site takes seconds


def harness(name: str, *arguments: str, timeout: int = 600) -> str:
    """What python -m tests.hostile.NAME prints, in a process of its own: a crash is reported too."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"tests.hostile.{name}", *arguments],
        cwd=sanitized.ROOT, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip
    assert ran.returncode == 0, f"exit {ran.returncode}: {ran.stdout[-500:]}{ran.stderr[-6000:]}"
    return ran.stdout


def test_shared_objects() -> None:
    assert f" {len(races.CASES)} cases" in harness("races", "--seconds", "0")


def test_forks_in_the_midst_of_work() -> None:
    assert f" {len(forks.CASES)} cases" in harness("forks", "--seconds", "0", "--forks", "2")


def test_dialogues_with_a_liar() -> None:
    told = harness("dialogues", "--seconds", "0", "--least", "2")
    assert f"{2 * len(dialogues.CALLS)} dialogues: nothing found" in told


def test_clients_that_lie() -> None:
    assert "requests: nothing found" in harness("clients", "--seconds", "0", "--least", "8")


def test_a_fleet_on_a_disk_that_fails() -> None:
    assert "nothing lost" in harness("fleet_disk", "--share", "320")


def test_a_fleet_whose_memory_fails() -> None:
    assert "nothing half done" in harness("fleet_allocations", "--seconds", "0")


def test_a_lossy_downgrade_on_a_disk_that_fails() -> None:
    assert "whole at one level" in harness("fleet_levels", "--share", "120")


def test_a_log_directory_that_changes() -> None:
    assert "changes of folders: nothing found" in harness("changing_folders", "--seconds", "0", "--least", "12")


def test_a_fleets_folder_that_is_damaged() -> None:
    assert "damaged folders: nothing found" in harness("fleet_folders", "--seconds", "0", "--least", "8")


def test_a_fleets_log_that_is_compacted() -> None:
    assert "nothing lost" in harness("fleet_compactions", "--seconds", "0", "--least", "8")


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_fleet_at_each_call_to_a_disk() -> None:
    assert "nothing lost" in harness("fleet_disk", timeout=7200)
    assert "whole at one level" in harness("fleet_levels", timeout=7200)


@pytest.mark.parametrize(("seed", "place", "fault"), [
    (24, "kwire.fleet.apis.topics.check_topic_configs", lambda configs, release: 1 // (len(configs) - 1)),
    (3, "kwire.fleet.proxy.connected", asyncio.open_connection),
], ids=["fleet", "proxy"])  # fmt: skip
def test_a_fault_is_found_by_clients(monkeypatch: pytest.MonkeyPatch, seed: int, place: str, fault: Any) -> None:
    monkeypatch.setattr(place, fault)
    with pytest.raises(AssertionError):
        clients.rounds(0, seed, 40)


@pytest.mark.parametrize(("name", "seed", "place", "fault"), [
    ("features", 34, "kwire.net.feature_updates._results", lambda updates, *_: {} if updates else None),
    ("connection", 1, "kwire.net.negotiation.node_api_versions", lambda answer: answer.api_keys[0] and 1 // 0),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_a_fault_is_found_in_dialogues(
    monkeypatch: pytest.MonkeyPatch, name: str, seed: int, place: str, fault: Any
) -> None:
    monkeypatch.setattr(place, fault)
    with pytest.raises((AssertionError, ArithmeticError)):
        dialogues.rounds(0, seed, [name], 60)


def test_tables_that_lie() -> None:
    assert "nothing found" in harness("arrow_tables", "--seed", "3", "--count", "3000")


@pytest.mark.soak
def test_many_tables_that_lie() -> None:
    assert "nothing found" in harness("arrow_tables", "--seed", "4", "--count", "300000")


@pytest.mark.quick
def test_a_fault_is_found_by_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    build = kwire.build_batches
    monkeypatch.setattr(kwire, "build_batches", lambda table, **form: build(table, **form)[1:])
    with pytest.raises(AssertionError, match="are not"):
        for seed in range(40):
            arrow_tables.tried(seed)


def test_interrupted_calls() -> None:
    only = [word for name in SHORT for word in ("--only", name)]
    assert "interrupts came through" in harness("interrupts", "--seconds", "0", "--moments", "4", *only)


def test_calls_to_the_system_fail() -> None:
    only = [word for name in ("csv", "forced", "dataset", "format") for word in ("--only", name)]
    assert "nothing half-written" in harness("failing_calls", "--share", "9", *only)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_each_call_to_the_system_fails() -> None:
    assert "nothing half-written" in harness("failing_calls", timeout=1800)


@pytest.mark.quick
def test_exceptions_of_the_users_code_come_out() -> None:
    interrupts.theirs()


@pytest.mark.quick
@pytest.mark.checkout
@pytest.mark.parametrize("plant", plants.PLANTS, ids=lambda plant: plant.name)
def test_a_plant_has_its_place(plant: plants.Plant) -> None:
    assert (sanitized.ROOT / plant.file).read_text().count(plant.old) == 1


@pytest.mark.checkout
@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("plant", plants.PLANTS, ids=lambda plant: plant.name)
def test_a_planted_fault_is_found(plant: plants.Plant) -> None:
    found = plants.tried(plant)
    assert found.returncode != 0, f"{plant.harness} finds nothing\n{found.stdout}{found.stderr}"
    assert plant.report in found.stdout + found.stderr, found.stdout[-2000:] + found.stderr[-4000:]


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "name", ["races", "interrupts", "forks", "dialogues", "clients", "fleet_folders", "fleet_allocations",
             "fleet_compactions", "changing_folders"])
def test_for_ten_minutes(name: str) -> None:
    harness(name, "--seconds", "600", "--seed", "7", timeout=3000)


@pytest.mark.checkout
@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", all_sanitized.RUNS)
def test_sanitised(name: str) -> None:
    ran = all_sanitized.ran(name)
    assert ran.returncode == 0, f"exit {ran.returncode}: {ran.stdout[-500:]}{ran.stderr[-6000:]}"
