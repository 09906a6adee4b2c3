"""A fleet in a thread of its own: forks, threads, what is asked of one that has ended."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kwire import messages
from kwire.fleet import Fleet, Proxy
from kwire.fleet.loop_thread import LoopThread
from kwire.net import BrokerConnectionError, connect_sync
from tests.hostile.forks import forked
from tests.little_stack import with_frames_left
from tools.places import ROOT

pytestmark = pytest.mark.quick


@contextmanager
def a_child() -> Iterator[None]:
    """A child of fork that does nothing, and ends at the end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    os.close(read)
    yield
    os.close(write)
    os.waitpid(child, 0)


def test_a_child_of_fork_keeps_nothing_open(tmp_path: Path) -> None:
    with Fleet("4.4", nodes=2, data=tmp_path, topics={"t": 1}) as fleet, a_child():
        node = fleet.nodes[1]
        with connect_sync(node.address) as connection:
            node.stop()
            with pytest.raises(BrokerConnectionError):
                connection.send(messages.MetadataRequest(topics=None), timeout=5)
        node.start()
        with connect_sync(node.address) as connection:
            assert len(connection.send(messages.MetadataRequest(topics=None)).brokers) == 2
    with Fleet("4.4", nodes=2, data=tmp_path) as first, a_child():
        first.__exit__(None, None, None)
        with Fleet("4.4", nodes=2, data=tmp_path) as fleet:
            assert fleet.records("t") == []
        first.__enter__()


def test_where_the_stack_ends() -> None:
    """Python's RecursionError, and no wait for what the thread was never asked; it ends when it is asked again."""
    refused = 0
    for frames in range(2, 30):
        proxy = Proxy("127.0.0.1:1").__enter__()
        try:
            with_frames_left(frames, partial(proxy.__exit__, None, None, None))
        except RecursionError:
            refused += 1
        if proxy._thread is not None:
            proxy.__exit__(None, None, None)
        assert proxy._thread is None
    assert 0 < refused < 28


def test_a_child_of_fork_leaves_the_fleet_alone() -> None:
    with Fleet("4.4", topics={"t": 1}) as fleet:
        def child() -> None:
            with pytest.raises(ValueError, match="fork"):
                fleet.records("t")
            with pytest.raises(ValueError, match="fork"):
                fleet.nodes[0].stop()
            fleet.__exit__(None, None, None)

        forked(child)
        assert fleet.records("t") == [] and fleet.nodes[0].alive


def test_what_is_asked_while_it_ends() -> None:
    """An answer always comes: of the loop, or of what it has left."""
    for _ in range(10):
        answers: list[Any] = []
        begun = threading.Barrier(5)

        def ask(fleet: Fleet, answers: list[Any] = answers, begun: threading.Barrier = begun) -> None:
            begun.wait()
            for _ in range(30):
                answers.append(fleet.records("t"))

        with Fleet("4.4", topics={"t": 1}) as fleet:
            threads = [threading.Thread(target=ask, args=(fleet,), daemon=True) for _ in range(4)]
            for thread in threads:
                thread.start()
            begun.wait()
        for thread in threads:
            thread.join(30)
        assert answers == [[]] * 120


@pytest.mark.parametrize("through", ["a fleet", "a proxy"])
def test_one_that_ends_while_clients_arrive_leaves_no_socket(through: str) -> None:
    before = set(os.listdir("/proc/self/fd"))
    gc.disable()  # it would close what was left
    try:
        for _ in range(5):
            with ExitStack() as all_of_it:
                fleet = all_of_it.enter_context(Fleet("4.4"))
                where = fleet if through == "a fleet" else all_of_it.enter_context(Proxy(fleet.bootstrap))
                host, _, port = where.bootstrap.rpartition(":")
                clients = [socket.create_connection((host, int(port))) for _ in range(100)]
            for client in clients:
                client.close()
        assert set(os.listdir("/proc/self/fd")) <= before
    finally:
        gc.enable()


def test_a_thread_that_was_interrupted_before_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing() -> None:
        raise AssertionError("begun")

    monkeypatch.setattr("kwire.fleet.loop_thread._UNBORN", 0.01)
    thread = LoopThread(nothing, nothing)
    thread.end()
    thread.end()
    with pytest.raises(RuntimeError, match="ended"):
        thread.start()


def test_the_end_of_the_data_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be written at the end is the error of the block; the fleet has ended."""
    fleet = Fleet("4.4", data=tmp_path, topics={"t": 1})
    with pytest.raises(OSError, match="full"), fleet:
        def full(*_: object) -> None:
            raise OSError(28, "full")

        monkeypatch.setattr("kwire.fleet.disk.node_folder.NodeFolder.end", full)
    assert not fleet.nodes[0].alive
    with pytest.raises(ValueError, match="does not run"):
        fleet.__exit__(None, None, None)
    monkeypatch.undo()
    with Fleet("4.4", data=tmp_path) as again:
        assert again.records("t") == []


def test_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """ulimit -u, or -v: the fleet has not begun, and may begin later."""
    def refused(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    fleet = Fleet("4.4", data=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("kwire.fleet.loop_thread.start_new_thread", refused)
        with pytest.raises(OSError, match="no thread can be started"), fleet:
            pass
    with fleet:
        assert fleet.nodes[0].alive


AT_EXIT = """
import sys
from kwire.fleet import Fleet, Proxy

class Owner:
    def __init__(self, fleet):
        self.fleet = fleet
    def __del__(self):
        assert sys.is_finalizing()
        try:
            self.fleet.records("none")
        except ValueError as error:
            print(error)
        self.fleet.__exit__(None, None, None)
        print("ended", flush=True)

fleet = Fleet("4.4")
fleet.__enter__()
sys.modules["owner"] = Owner(fleet)  # so it lives until Python ends
"""


def test_a_finalizer_where_python_ends_does_not_wait_for_ever() -> None:
    """The thread of the fleet does not run any more then."""
    child = subprocess.run([sys.executable, "-c", AT_EXIT], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert child.stdout.endswith("ended\n") and child.stdout.count("\n") == 2, child.stderr
