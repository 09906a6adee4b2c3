"""Calls that are cancelled, interrupted or never ended leave no task, thread or socket."""

from __future__ import annotations

import asyncio
import gc
import linecache
import subprocess
import sys
import time
from _thread import _count
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from kwire import messages, net
from kwire.net import BrokerConnectionError, connect, sync
from kwire.net.channel import Channel
from kwire.net.connection import close_all
from tests.net.fake import Broker, cluster, of_release, run, serving, sockets
from tools.places import ROOT

pytestmark = pytest.mark.quick


def test_a_connection_that_nobody_refers_to_is_closed() -> None:
    broker = Broker(of_release("4.4"), lambda _: messages.MetadataResponse())
    with serving(broker):
        before = sockets()
        connection = net.connect_sync(broker.address, timeout=10)
        connection.open()
        assert len(sockets()) > len(before)
        del connection
        deadline = time.monotonic() + 20
        while len(sockets()) > len(before) and time.monotonic() < deadline:
            gc.collect()
            time.sleep(0.01)
        assert len(sockets()) <= len(before)


def lines_of(function: Callable[..., Any], stop: int) -> Callable[..., Any]:
    """A tracer that raises KeyboardInterrupt at the stop-th line of a function that is no `with` or `try`."""
    left = [stop]

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is not function.__code__:
            return None if event == "call" else trace
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
        if event == "line" and not text.startswith(("with ", "try:")):
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
        return trace

    return trace


@pytest.mark.filterwarnings("ignore:coroutine 'Connection.close' was never awaited")
def test_an_interrupt_in_a_close_leaves_no_thread() -> None:
    """At each line of it: what it had taken out of the connection is ended when that goes."""
    broker = Broker(of_release("4.4"), lambda _: None)
    with serving(broker):
        before, interrupted = _count(), 0
        for function in (sync.SyncConnection.close, sync.SyncConnection._end):
            for stop in range(1, 10):
                connection = sync.connect_sync(broker.address)
                connection.open()
                tracing = sys.gettrace()
                sys.settrace(lines_of(function, stop))
                try:
                    connection.close()
                except KeyboardInterrupt:
                    interrupted += 1
                finally:
                    sys.settrace(tracing)
                if stop % 2:
                    with suppress(RuntimeError):
                        connection.close()  # again, which has nothing to wait for
                del connection
                gc.collect()
                end = time.monotonic() + 20
                while _count() > before and time.monotonic() < end:
                    time.sleep(0.005)
                assert _count() == before, (function.__name__, stop)
        assert interrupted >= 8


AT_EXIT = """
import sys
from kwire import messages
from kwire.net import connect_sync

class Owner:
    def __init__(self, connection):
        self.connection, self.request = connection, messages.MetadataRequest(topics=[])
    def __del__(self):
        assert sys.is_finalizing()
        try:
            self.connection.send(self.request)
        except RuntimeError as error:
            print(error)
        self.connection.close()
        print("ended", flush=True)

connection = connect_sync(sys.argv[1])
connection.open()
sys.modules["owner"] = Owner(connection)  # so it lives until Python ends
"""


def test_a_finalizer_where_python_ends_does_not_wait_for_ever() -> None:
    """The thread of the connection does not run any more then."""
    broker = Broker(of_release("4.4"))
    with serving(broker):
        child = subprocess.run(
            [sys.executable, "-c", AT_EXIT, broker.address], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert child.stdout == "Python ends: the connection's thread does not run any more\nended\n", child.stderr


def test_a_cancelled_close_leaves_nothing_open() -> None:
    """At each turn of the loop, twice: what cleans up is cancelled as well."""

    async def use(brokers: list[Broker]) -> None:
        async with net.Cluster(brokers[0].address, timeout=5) as found:
            await found.send(messages.MetadataRequest(topics=[]))
            await found.refresh()

    async def work(turns: int) -> bool:
        brokers = cluster(of_release("4.4"), of_release("4.4"))
        async with brokers[0], brokers[1]:
            task = asyncio.create_task(use(brokers))
            for _ in range(turns):
                await asyncio.sleep(0)
            ended = task.done()
            for _ in range(2):
                task.cancel()
                await asyncio.sleep(0)
            await asyncio.wait([task])
            for _ in range(20):
                await asyncio.sleep(0)
            left = [one for one in asyncio.all_tasks() if one.get_name().startswith("kwire reads")]
            assert not left, f"cancelled after {turns} turns"  # before the brokers close their side
        return ended

    assert any(run(work(turns)) for turns in range(400))


def test_what_is_opened_while_closing_is_cancelled_does_not_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A close() that was cancelled before its first step: the connection was nobody's, and stayed open."""
    opened = Channel.open

    async def run() -> None:
        may_open = asyncio.Event()

        async def later(*args: Any, **keywords: Any) -> Channel:
            await may_open.wait()
            return await opened(*args, **keywords)

        monkeypatch.setattr(Channel, "open", later)
        async with Broker(of_release("4.4")) as broker:
            connection = connect(broker.address, timeout=10)
            opening = asyncio.create_task(connection.open())
            await asyncio.sleep(0)
            closing = asyncio.create_task(close_all([connection]))
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            may_open.set()
            with pytest.raises(BrokerConnectionError, match="the connection was closed"):
                await opening
            assert not connection.is_open

    asyncio.run(run())
