"""Everything of asyncio on uvloop's event loop, which web frameworks install; its sockets have fewer methods."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvloop

from kwire import encode_request, messages, pack_frame
from kwire.capture import Exchange, read_capture
from kwire.capture.tap import Tap
from kwire.fleet import Fleet, Proxy
from kwire.net import BrokerConnectionError, BrokerTimeoutError, Cluster, connect, connect_sync
from tests.net.fake import sockets

METADATA = messages.MetadataRequest(topics=None)


def on_uvloop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run work; it leaves no socket, and nothing was raised in a callback."""
    raised = []

    async def watched() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
        await work()

    before = sockets()
    uvloop.run(watched())
    assert sockets() <= before and not raised


def test_a_fleet() -> None:
    login = ("SCRAM-SHA-256", "alice", "secret")

    async def work() -> None:
        async with Fleet("4.4", nodes=2, topics={"t": 3}, sasl={"alice": "secret"}) as fleet:
            async with Cluster(fleet.bootstrap, sasl=login) as cluster:
                assert len((await cluster.send(METADATA, to="any")).brokers) == 2
            node = fleet.nodes[0]
            async with connect(node.address, timeout=20, sasl=login) as connection:
                answers = await asyncio.gather(*(connection.send(METADATA) for _ in range(50)))
                assert [len(answer.topics) for answer in answers] == [1] * 50
                fault = fleet.fault("Metadata", silent=True)
                with pytest.raises(BrokerTimeoutError):
                    await connection.send(METADATA, timeout=0.2)
                fault.remove()
                fleet.fault("Metadata", half=True, times=1)
                with pytest.raises(BrokerConnectionError):
                    await connection.send(METADATA)
                node.stop()
                with pytest.raises(BrokerConnectionError):
                    await connection.send(METADATA)
                node.start()
                assert len((await connection.send(METADATA)).topics) == 1

    on_uvloop(work)


def test_tls() -> None:
    authority, tls, trusting = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.configure_trust(trusting)

    async def serve() -> None:
        async with Fleet("4.4", tls=tls):
            raise AssertionError

    async def work() -> None:
        with pytest.raises(ValueError, match="tls= needs an event loop of asyncio here, not uvloop; or use `with`"):
            await serve()
        with Fleet("4.4", tls=tls) as fleet:
            async with connect(fleet.bootstrap, tls=trusting) as connection:
                assert len((await connection.send(METADATA)).brokers) == 1

    on_uvloop(work)


def test_a_proxy_and_a_tap(tmp_path: Path) -> None:
    name = str(tmp_path / "t")

    async def work() -> None:
        async with Fleet("4.4", topics={"t": 3}) as fleet, Proxy(fleet.bootstrap) as proxy:
            host, _, port = proxy.bootstrap.rpartition(":")
            async with Tap(("127.0.0.1", 0), (host, int(port)), name) as tap:
                async with connect(f"127.0.0.1:{tap.address[1]}") as connection:
                    assert len((await connection.send(METADATA)).topics) == 1
                left = await asyncio.open_connection(*tap.address)
            left[1].close()

    on_uvloop(work)
    names = [one.api for one in read_capture(f"{name}.jsonl.gz") if isinstance(one, Exchange)]
    assert names == ["ApiVersions", "Metadata"]


def test_what_has_a_thread_of_its_own_runs_asyncio_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio, "get_event_loop_policy", lambda: pytest.fail("the loop of the policy"))
    monkeypatch.setattr(asyncio, "new_event_loop", lambda: pytest.fail("the loop of the policy"))
    with Fleet("4.4", topics={"t": 3}) as fleet, connect_sync(fleet.bootstrap) as connection:
        assert len(connection.send(METADATA).topics) == 1


def test_a_connection_that_has_just_ended() -> None:
    """Between its end and the turn in which its reader is told: uvloop's write would raise RuntimeError."""
    async def work() -> None:
        async with Fleet("4.4") as fleet, connect(fleet.bootstrap) as connection:
            for request in (METADATA, messages.ProduceRequest(acks=0)):
                await connection.send(METADATA)
                channel = connection._channel
                assert channel is not None
                channel._writer.transport.abort()
                await asyncio.sleep(0)
                with pytest.raises(BrokerConnectionError, match=r"closed the connection|connection lost"):
                    await connection.send(request)
            assert len((await connection.send(METADATA)).brokers) == 1

    on_uvloop(work)


def resets(address: str, times: int) -> None:
    """Clients that ask and are gone, some before they are answered."""
    host, _, port = address.rpartition(":")
    frame = pack_frame(encode_request(METADATA, 9, correlation_id=1))
    for number in range(times):
        with contextlib.suppress(OSError), socket.create_connection((host, int(port))) as client:
            client.sendall(frame * (1 + number % 7))
            if number % 3 == 0:
                client.recv(1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_clients_that_reset(tmp_path: Path) -> None:
    """Of them uvloop does not know an address; and writing to them raises RuntimeError."""
    async def work() -> None:
        async with Fleet("4.4", topics={"t": 100}) as fleet:
            host, _, port = fleet.bootstrap.rpartition(":")
            tapping = Tap((host, 0), (host, int(port)), str(tmp_path / "t"))
            recording = Proxy(fleet.bootstrap, record=str(tmp_path / "p"))
            async with Proxy(fleet.bootstrap) as plain, recording, tapping:
                tapped = f"{host}:{tapping.address[1]}"
                for address in (fleet.bootstrap, plain.bootstrap, recording.bootstrap, tapped):
                    await asyncio.to_thread(resets, address, 100)

    on_uvloop(work)
