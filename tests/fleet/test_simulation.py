"""Simulated schedules: repeatable, quick, and nothing acknowledged is lost or doubled in them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kwire import messages
from kwire.fleet import Fleet, Simulation, SimulationError, simulate, simulate_all
from kwire.fleet.disk.segment_store import SegmentStore
from kwire.fleet.logs.partition_log import PartitionLog
from kwire.net import BrokerTimeoutError, connect
from tests.fleet.schedules import (
    idempotent_producers,
    idempotent_producers_on_disk,
    transactions,
    transactions_on_disk,
)

pytestmark = pytest.mark.quick
SHARE, SHARE_ON_DISK = 40, 12


async def hours(simulation: Simulation) -> float:
    async with Fleet(clock=simulation.clock) as fleet:
        fleet.fault("Metadata", silent=True)
        async with connect(fleet.bootstrap, timeout=3600) as connection:
            with pytest.raises(BrokerTimeoutError):
                await connection.send(messages.MetadataRequest(topics=None))
    return simulation.loop.time()


def test_hours_pass_in_milliseconds() -> None:
    assert 3600 < simulate(hours) < 3601


async def told(simulation: Simulation) -> list[Any]:
    async with Fleet(nodes=2, clock=simulation.clock, seed=simulation.seed, topics={"t": 1}) as fleet:
        fleet.fault("Metadata", error="UNKNOWN_SERVER_ERROR", probability=0.5)

        async def ask() -> None:
            async with connect(fleet.bootstrap.split(",")[0]) as connection:
                for _ in range(5):
                    await connection.send(messages.MetadataRequest(topics=None))

        await asyncio.gather(ask(), ask(), ask())
        return [(event["time"], event.get("api"), event.get("faults")) for event in fleet.events]


def test_a_seed_is_a_schedule() -> None:
    assert simulate(told, seed=5) == simulate(told, seed=5) != simulate(told, seed=6)


async def forever(simulation: Simulation) -> None:
    await asyncio.Event().wait()


def test_what_waits_for_ever_is_an_error() -> None:
    with pytest.raises(SimulationError, match="all tasks wait"):
        simulate(forever)


def test_idempotent_producers() -> None:
    assert simulate_all(idempotent_producers, range(SHARE)) == SHARE


def test_transactions() -> None:
    assert simulate_all(transactions, range(SHARE)) == SHARE


@pytest.mark.parametrize("work", [idempotent_producers_on_disk, transactions_on_disk])
def test_fleets_that_end_and_are_killed(work: Any) -> None:
    assert simulate_all(work, range(SHARE_ON_DISK)) == SHARE_ON_DISK


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("work", "count"), [
    (idempotent_producers, 5000), (transactions, 5000), (idempotent_producers_on_disk, 1000),
    (transactions_on_disk, 1000)])
def test_ten_thousand_schedules(work: Any, count: int) -> None:
    assert simulate_all(work, range(SHARE, SHARE + count)) == count


def test_a_broken_broker_is_found_and_the_schedule_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = PartitionLog._append

    def twice(self: Any, batch: Any, *more: Any) -> Any:
        self.producers.producers.clear()  # forgets what was written: retries are written twice
        return real(self, batch, *more)

    monkeypatch.setattr(PartitionLog, "_append", twice)
    with pytest.raises(SimulationError) as caught:
        simulate_all(idempotent_producers, range(SHARE))
    assert f"simulate(idempotent_producers, seed={caught.value.seed}" in str(caught.value)


def test_a_fleet_that_forgets_at_its_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = SegmentStore._restored

    def forgetful(self: Any, writer: Any) -> Any:
        log = real(self, writer)
        log.producers.producers.clear()
        return log

    monkeypatch.setattr(SegmentStore, "_restored", forgetful)
    with pytest.raises(SimulationError, match="failed"):
        simulate_all(idempotent_producers_on_disk, range(SHARE_ON_DISK))
