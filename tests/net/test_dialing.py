"""Names with several addresses, names whose lookup is slow or fails, and the process that asked for them."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kwire.capture.tap import connected
from kwire.fleet import Fleet
from kwire.net import BrokerTimeoutError, connect, connect_sync, dialing
from kwire.net.address import Address
from kwire.net.channel import Channel
from kwire.net.errors import BrokerConnectionError
from tests.net.fake import run, sockets

pytestmark = pytest.mark.quick

_LOOPBACK = "127.0.0.1"


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Name -> addresses, for the resolver."""
    table: dict[str, list[str]] = {}
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *rest: Any, **options: Any) -> Any:
        if host not in table:
            return real(host, port, *rest, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port or 0)) for address in table[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return table


@pytest.fixture
def silent() -> Iterator[tuple[str, int]]:
    """An address that says nothing to those that connect: its queue is full."""
    with socket.socket() as hole:
        hole.bind(("127.0.0.9", 0))
        hole.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(hole.getsockname())
        yield hole.getsockname()
        for one in waiting:
            one.close()


@pytest.mark.skipif(sys.platform != "linux", reason="an address of its own, and a queue that drops")
def test_an_address_that_says_nothing_is_not_the_last_one(names: dict[str, list[str]], silent: tuple[str, int]) -> None:
    names["several"] = [silent[0], "127.0.0.8", _LOOPBACK]
    with Fleet(port=silent[1]) as fleet:
        assert fleet.bootstrap == f"{_LOOPBACK}:{silent[1]}"
        with connect_sync(f"several:{silent[1]}", timeout=4) as connection:
            assert connection.versions

        async def tapped() -> None:
            _, writer = await asyncio.wait_for(connected("several", silent[1]), 20)
            writer.close()
            await writer.wait_closed()

        asyncio.run(tapped())


def test_all_addresses_fail(names: dict[str, list[str]]) -> None:
    names["dead"], names["none"] = ["127.0.0.7", "127.0.0.8"], []
    for name, reason in (("dead", "connection refused"), ("none", "has no address")):
        with pytest.raises(BrokerConnectionError, match=reason), connect_sync(f"{name}:1", timeout=4):
            pass


def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(dialing, "start_new_thread", refuse)
    with pytest.raises(OSError) as caught:
        asyncio.run(dialing.dial("localhost", 1, 1))
    assert caught.value.errno == errno.EAGAIN


def test_an_address_of_one_interface_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    row = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", 0, 0, 7))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [row])
    assert asyncio.run(dialing._addresses("printer.local")) == ["fe80::1%7"]


def test_a_slow_resolver_is_not_waited_for_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(30) and [])

    async def ask() -> None:
        async with asyncio.timeout(0.05):
            await dialing.dial("slow.example", 9092, 1)

    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(ask())
    with pytest.raises(BrokerTimeoutError), connect_sync("slow.example:9092", timeout=0.05):
        pass
    assert time.monotonic() - begin < 15
    answered.set()


def test_a_process_ends_while_the_resolver_is_slow() -> None:
    program = (
        "import socket, sys, threading; socket.getaddrinfo = lambda *a, **k: threading.Event().wait(60)\n"
        "from kwire.cli import main\n"
        "sys.exit(main(['versions', '--bootstrap-server', 'slow.example:9092', '--timeout', '0.1']))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (1, "kwire: slow.example:9092: no answer within 0.1 s\n")


@pytest.mark.parametrize("tls", [None, True])
def test_a_host_with_a_nul_is_not_asked_for(tls: bool | None) -> None:
    """What is before it was connected to, or TLS raised a TypeError."""
    async def work() -> None:
        with pytest.raises(BrokerConnectionError, match="invalid broker address"):
            connect("localhost\0.evil:9092", tls=tls)
        before = sockets()
        with pytest.raises(BrokerConnectionError, match="invalid host name or port"):
            await Channel.open(Address("localhost\0.evil", 9092), tls=ssl.create_default_context() if tls else None)
        assert sockets() == before

    run(work())
