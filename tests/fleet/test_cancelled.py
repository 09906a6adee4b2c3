"""A fleet and a proxy in a task that is cancelled at its steps: nothing is left, and nothing is logged."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path
from typing import Any

import pytest

from kwire import messages
from kwire.fleet import Fleet, Proxy
from kwire.net import connect

pytestmark = pytest.mark.quick


async def use(folder: Path) -> None:
    async with (
        Fleet("4.4", nodes=2, data=folder, topics={"t": 1}) as fleet,
        Proxy(fleet.nodes[0].address) as proxy,
        connect(proxy.bootstrap) as connection,
    ):
        await connection.send(messages.MetadataRequest(topics=None))
        fleet.nodes[1].stop()
        fleet.nodes[1].start()
        await asyncio.sleep(0)


async def cancelled_at(step: int, folder: Path, raised: list[Any]) -> bool:
    """Whether it had ended before."""
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
    task = asyncio.ensure_future(use(folder))
    for _ in range(step):
        await asyncio.sleep(0)
    ended = task.done()
    task.cancel()
    await asyncio.wait([task])
    for _ in range(100):
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if not left:
            break
        await asyncio.sleep(0.01)
    assert not left, f"tasks are left at step {step}: {left}"
    return ended


@pytest.mark.parametrize("apart", [5, pytest.param(1, marks=pytest.mark.soak)])
def test_nothing_is_left(tmp_path: Path, apart: int) -> None:
    raised: list[Any] = []
    before = len(os.listdir("/proc/self/fd"))
    for step in range(0, 1000, apart):
        ended = asyncio.run(cancelled_at(step, tmp_path / "data", raised))
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) <= before, f"files are left open at step {step}"
        assert not raised, raised[0]
        if ended:
            break
    assert 20 < step < 990


def test_a_listener_that_is_cancelled_while_it_opens_is_closed() -> None:
    """As by the end of asyncio.run, which cancels all tasks."""
    async def begun() -> None:
        fleet = await Fleet("4.4").__aenter__()
        node = fleet.nodes[0]
        listeners = [one._listener for one in (node._clients, node._controllers)]
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0.01)
        assert [one.fileno() for one in listeners] == [-1, -1]

    asyncio.run(begun())
