"""The signals that stop a command which runs until it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

import kwire.cli
from kwire.cli.signals import stopped

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def hang_up() -> Iterator[None]:
    """SIGHUP as it is where no nohup is."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


async def _is_stopped(number: int) -> bool:
    stop = stopped()
    os.kill(os.getpid(), number)
    for _ in range(10):
        await asyncio.sleep(0.01)
    return stop.is_set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_of_them(number: int) -> None:
    assert asyncio.run(_is_stopped(number))


def test_ctrl_c_before_the_command_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(kwire.cli, "_main", interrupted)
    assert kwire.cli.main(["log", "ls"]) == 130 and capsys.readouterr().err == "kwire: interrupted\n"


def test_nohup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert not asyncio.run(_is_stopped(signal.SIGHUP))
