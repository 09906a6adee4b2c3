"""Connections to fake brokers: pipelining, lost and closed connections, and peers that misbehave."""

from __future__ import annotations

import asyncio
import errno
import gc
import itertools
import math
import socket
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import trustme

import kwire
from kwire import messages, net, schema
from kwire.codec.frames import Request
from kwire.net import BrokerConnectionError, BrokerTimeoutError, Cluster, FrameSizeError, connect, connect_sync
from kwire.net.address import Address, address
from kwire.net.channel import Channel, Tolerated
from tests.net.fake import HOST, Broker, Server, cluster, cluster_answer, in_a_child, of_release, run, serving

pytestmark = pytest.mark.quick

METADATA = messages.MetadataRequest(topics=[])
LIMIT = {"timeout": 1.0, "probe_timeout": 0.3}


def metadata(request: Any) -> Any:
    """An answer that tells which request it is for."""
    return messages.MetadataResponse(cluster_id=str(request.correlation_id))


def test_asks_first_and_sends_the_newest_common_version() -> None:
    async def work() -> None:
        async with Broker(of_release("3.9"), metadata) as broker:
            async with connect(broker.address, client_id="me") as connection:
                assert connection.versions == {**of_release("3.9")}
                assert connection.assumed is None
                answer = await connection.send(METADATA)
            assert isinstance(answer, messages.MetadataResponse)
            asked = [(r.name, r.version, r.client_id) for r in broker.requests]
            assert asked == [("ApiVersions", 5, "me"), ("ApiVersions", 4, "me"), ("Metadata", 12, "me")]
            assert broker.requests[1].message.client_software_name == "kwire"

    run(work())


def test_answers_are_paired_by_correlation_id_in_whatever_order_they_come() -> None:
    held: list[Any] = []

    async def work() -> None:
        async with Broker(of_release("4.4"), lambda _: None) as broker:
            writers = broker._writers

            def late(request: Any) -> None:
                held.append(request)
                if len(held) == 20:
                    for r in reversed(held):
                        frame = kwire.encode_response(metadata(r), r.version, correlation_id=r.correlation_id)
                        next(iter(writers)).write(kwire.pack_frame(frame))

            broker.answer = late
            async with connect(broker.address) as connection:
                answers = await asyncio.gather(*(connection.send(METADATA) for _ in range(20)))
            assert [int(a.cluster_id) for a in answers] == [r.correlation_id for r in held]
            assert broker.connections == 1

    run(work())


def test_a_lost_connection_fails_what_is_in_flight_and_the_next_send_negotiates_anew() -> None:
    async def work() -> None:
        async with Broker(of_release("2.8")) as broker, connect(broker.address) as connection:
            flying = [asyncio.create_task(connection.send(METADATA)) for _ in range(3)]
            while sum(r.name == "Metadata" for r in broker.requests) < 3:
                await asyncio.sleep(0.01)
            broker.drop()
            for outcome in await asyncio.gather(*flying, return_exceptions=True):
                assert isinstance(outcome, BrokerConnectionError), outcome
                assert broker.address in str(outcome)
            broker.ranges, broker.answer, broker.requests = of_release("4.4"), metadata, []
            await connection.send(METADATA)
            assert connection.versions["Metadata"] == (0, 13)
            assert [r.name for r in broker.requests] == ["ApiVersions", "Metadata"]

    run(work())


def test_a_cancelled_send_leaves_the_connection_and_its_late_answer_is_dropped() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4")) as broker:
            async with connect(broker.address) as connection:
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(connection.send(METADATA), 0.05)
                late = broker.requests[-1]
                frame = kwire.encode_response(metadata(late), late.version, correlation_id=late.correlation_id)
                next(iter(broker._writers)).write(kwire.pack_frame(frame))
                broker.answer = metadata
                assert int((await connection.send(METADATA)).cluster_id) == late.correlation_id + 1
            assert broker.connections == 1

    run(work())


@pytest.mark.parametrize("reads", [True, False])
def test_calls_that_are_given_less_time_than_the_connection_get_off_a_silent_broker(reads: bool) -> None:
    async def stuck(_: Request) -> None:
        await asyncio.Event().wait()

    async def work() -> None:
        topic = messages.MetadataRequest.MetadataRequestTopic(name="t" * 30_000)
        large = messages.MetadataRequest(topics=[topic] * 1000)  # more than the system takes
        requests = itertools.chain([METADATA if reads else large], itertools.repeat(METADATA))
        async with Broker(of_release("4.4")) as broker, connect(broker.address, timeout=0.5) as connection:
            if not reads:
                broker.answer = stuck
            async with asyncio.timeout(20):
                while broker.connections < 3:
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(connection.send(next(requests)), 0.05)
            broker.answer = metadata
            await asyncio.sleep(0.6)
            await connection.send(METADATA)

    run(work())


def test_a_cancelled_call_does_not_end_the_wait_of_an_earlier_one() -> None:
    held: list[Request] = []

    async def work() -> None:
        async with Broker(of_release("4.4"), held.append) as broker:
            async with connect(broker.address, timeout=0.5) as connection:
                patient = asyncio.create_task(connection.send(METADATA, timeout=20))
                await asyncio.sleep(0)  # it is sent first
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(connection.send(METADATA), 0.05)
                await asyncio.sleep(0.6)
                last = asyncio.create_task(connection.send(METADATA, timeout=20))
                while len(held) < 3:
                    await asyncio.sleep(0.01)
                for request in held:
                    frame = kwire.encode_response(metadata(request), request.version,
                                                  correlation_id=request.correlation_id)
                    next(iter(broker._writers)).write(kwire.pack_frame(frame))
                assert [int(one.cluster_id) for one in await asyncio.gather(patient, last)] == [
                    held[0].correlation_id, held[2].correlation_id]
            assert broker.connections == 1

    run(work())


def test_produce_without_acks_has_no_answer() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4"), lambda r: metadata(r) if r.name == "Metadata" else None) as broker:
            async with connect(broker.address) as connection:
                assert await connection.send(messages.ProduceRequest(acks=0)) is None
                await connection.send(METADATA)
            assert [r.name for r in broker.requests[1:]] == ["Produce", "Metadata"]

    run(work())


def test_what_was_sent_without_acks_is_not_lost_where_the_connection_is_closed() -> None:
    """The broker reads nothing until then."""
    closed = asyncio.Event()
    received: list[Request] = []

    async def answer(request: Request) -> None:
        received.append(request)
        await closed.wait()

    async def work() -> None:
        topic = messages.ProduceRequest.TopicProduceData(name="t" * 30_000)
        async with Broker(of_release("4.4"), answer) as broker:
            async with connect(broker.address) as connection:
                asking = asyncio.create_task(connection.send(METADATA))
                await asyncio.sleep(0)  # it is sent first
                sent = 0
                with pytest.raises(TimeoutError):
                    while True:
                        await asyncio.wait_for(connection.send(
                            messages.ProduceRequest(acks=0, topic_data=[topic]), 3), 0.3)
                        sent += 1
            with pytest.raises(BrokerConnectionError, match="was closed"):
                await asking
            closed.set()
            async with asyncio.timeout(20):
                while len(received) <= sent:
                    await asyncio.sleep(0.01)

    run(work())


def test_closed_means_closed() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4"), metadata) as broker:
            connection = connect(broker.address)
            await connection.send(METADATA)
            await connection.close()
            with pytest.raises(BrokerConnectionError, match="was closed"):
                await connection.send(METADATA)
            await connection.open()
            await connection.send(METADATA)
            await connection.close()
            assert broker.connections == 2

    run(work())


def test_closed_while_it_opens() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4")) as broker:
            for rounds in range(1, 12):
                connection = connect(broker.address)
                opening = asyncio.create_task(connection.open())
                for _ in range(rounds):
                    await asyncio.sleep(0)
                await connection.close()
                await asyncio.gather(opening, return_exceptions=True)
                assert not connection.is_open
            with pytest.raises(BrokerConnectionError, match="not opened yet"):
                assert connect(broker.address).versions

    run(work())


# --- peers that misbehave: one clear error each, in time, nothing leaked ---


async def says_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)


async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    await reader.read()


async def two_gib(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"\x7f\xff\xff\xff")
    await reader.read()


async def negative_size(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"\xff\xff\xff\xff")
    await reader.read()


async def never_sent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"\0\0\0\x06\0\0\x30\x39\0\0")
    await reader.read()


async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"\0\0\0\x06\0\0")
    await writer.drain()


async def garbled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    data = await reader.read(100)
    writer.write(b"\0\0\0\x07" + data[8:12] + b"\x7f\xff\xff")
    await reader.read()


async def empty_frames(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(bytes(400))
    await reader.read()


BAD = [
    (says_nothing, BrokerTimeoutError, "no answer to ApiVersions within 0.3 s"),
    (closes, BrokerConnectionError, "closed the connection on ApiVersions"),
    (http, BrokerConnectionError, "answers in HTTP"),
    (two_gib, FrameSizeError, "frame of 2147483647 bytes exceeds max_frame"),
    (negative_size, BrokerConnectionError, "invalid frame size -1"),
    (never_sent, BrokerConnectionError, "[0-9]: response with correlation id 12345"),
    (half, BrokerConnectionError, "closed the connection"),
    (garbled, BrokerConnectionError, "ApiVersions"),
    (empty_frames, BrokerConnectionError, "correlation id None"),
]


@pytest.mark.parametrize(("serve", "kind", "reason"), BAD, ids=[row[0].__name__ for row in BAD])
def test_bad_peers(serve: Any, kind: type[Exception], reason: str) -> None:
    async def work() -> None:
        async with Server(serve) as server:
            with pytest.raises(kind, match=reason) as caught:
                async with connect(server.address, **LIMIT):
                    pass
            assert str(caught.value).startswith(f"{server.address}: ")
            assert "\n" not in str(caught.value)
            assert isinstance(caught.value, kwire.KwireError)

    run(work())


@pytest.mark.parametrize(("serve", "kind", "reason"), BAD, ids=[row[0].__name__ for row in BAD])
def test_bad_peers_without_async(serve: Any, kind: type[Exception], reason: str) -> None:
    async def work() -> None:
        def blocking(address: str) -> None:
            with pytest.raises(kind, match=reason), connect_sync(address, **LIMIT):
                pass

        async with Server(serve) as server:
            await asyncio.to_thread(blocking, server.address)

    asyncio.run(work())


def test_a_host_that_cannot_be_reached_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio replaces the system's words by "Connect call failed" and the address."""
    async def unreachable(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EHOSTUNREACH, "Connect call failed ('10.0.0.1', 9092)")

    monkeypatch.setattr(asyncio, "open_connection", unreachable)
    with pytest.raises(BrokerConnectionError, match=r"^10\.0\.0\.1:9092: cannot connect: No route to host$"):
        run(connect("10.0.0.1:9092").open())


def test_refused() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]

    async def work() -> None:
        with pytest.raises(BrokerConnectionError, match=f"{HOST}:{port}: connection refused"):
            async with connect(f"{HOST}:{port}", **LIMIT):
                pass
        with pytest.raises(BrokerConnectionError, match=f"localhost:{port}: connection refused"):
            async with connect(f"localhost:{port}", **LIMIT):
                pass

    run(work())


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """(server's, a client's that trusts it)."""
    authority = trustme.CA()
    server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert(HOST).configure_cert(server)
    authority.configure_trust(client)
    return server, client


def test_tls() -> None:
    server, client = contexts()

    async def work() -> None:
        async with Broker(of_release("4.4"), metadata, tls=server) as broker:
            async with connect(broker.address, tls=client) as connection:
                await connection.send(METADATA)
            with pytest.raises(BrokerConnectionError, match="TLS: the certificate is not trusted"):
                async with connect(broker.address, tls=True):
                    pass
            with pytest.raises(BrokerConnectionError, match="TLS"):  # spoken to in plain
                async with connect(broker.address, **LIMIT):
                    pass
            await asyncio.sleep(0.05)

    run(work())


@pytest.mark.parametrize("serve", [says_nothing, closes, http])
def test_tls_to_a_port_without(serve: Any) -> None:
    _, client = contexts()

    async def work() -> None:
        async with Server(serve) as server:
            with pytest.raises(BrokerConnectionError, match=r"TLS|no answer within 1 s"):
                async with connect(server.address, tls=client, **LIMIT):
                    pass

    run(work())


@pytest.mark.parametrize("text", ["host", "host:", ":9092", "host:port", "host:99999", "::1:9092", ""])
def test_no_addresses(text: str) -> None:
    with pytest.raises(BrokerConnectionError, match="invalid broker address"):
        connect(text)


def test_an_address_is_not_shown_by_the_megabyte() -> None:
    with pytest.raises(BrokerConnectionError, match=r"invalid broker address .x+…: expected HOST:PORT"):
        connect("x" * 1_000_000)


def test_port_0_is_for_listeners() -> None:
    assert address("[::1]:0", any_port=True) == ("::1", 0)
    for text, any_port in (("host:0", False), ("host:", True), ("host:-0", True)):
        with pytest.raises(BrokerConnectionError, match="invalid broker address"):
            address(text, any_port=any_port)


def test_a_silent_request_fails_within_its_timeout_and_the_next_opens_again() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4")) as broker:
            async with connect(broker.address, **LIMIT) as connection:
                with pytest.raises(BrokerTimeoutError, match=f"{broker.address}: no answer within 0.1 s"):
                    await connection.send(METADATA, timeout=0.1)
                broker.answer = metadata
                await connection.send(METADATA)
            assert broker.connections == 2

    run(work())


def test_without_async_threads_share_one_connection() -> None:
    async def work() -> None:
        def blocking(address: str) -> list[str]:
            with connect_sync(address) as connection:
                assert connection.versions["Fetch"] == (4, 18)
                assert "open" in repr(connection)
                return [connection.send(METADATA).cluster_id for _ in range(3)]

        async with Broker(of_release("4.4"), metadata) as broker:
            assert await asyncio.to_thread(blocking, broker.address) == ["2", "3", "4"]
            assert broker.connections == 1

    asyncio.run(work())


def test_a_broker_that_was_lost_while_idle_is_opened_anew_without_async() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4"), metadata) as broker:
            connection = connect_sync(broker.address)
            await asyncio.to_thread(connection.send, METADATA)
            broker.drop()
            while connection.is_open:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(connection.send, METADATA)
            await asyncio.to_thread(connection.close)
            assert broker.connections == 2

    asyncio.run(work())


# --- answers that Kafka does not write, and its clients read ---


class Generous(Broker):
    """As the Tansu broker does: it writes tagged fields that equal their default, which Kafka never writes."""

    tags = b"\x01\x01\x08" + b"\xff" * 8  # finalized_features_epoch: -1

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = kwire.FrameReader()
        while data := await reader.read(1 << 16):
            for frame in frames.feed(data):
                request = kwire.decode_request(frame)
                answer = self.negotiate(request) if request.name == "ApiVersions" else self.answer(request)
                version = 0 if request.name == "ApiVersions" and answer.error_code else request.version
                made = kwire.encode_response(answer, version, correlation_id=request.correlation_id)
                flexible = version in schema.message(f"{request.name}Response").flexible_versions
                writer.write(kwire.pack_frame(made[:-1] + self.tags if flexible else made))


def generous(tags: bytes = Generous.tags) -> Generous:
    broker = Generous(of_release("3.9"))
    broker.tags = tags
    broker.answer = lambda _: messages.HeartbeatResponse()
    return broker


def test_answers_are_read_leniently_and_what_was_tolerated_is_counted() -> None:
    async def work() -> None:
        async with generous() as broker, connect(broker.address) as connection:
            ((what, count),) = connection.tolerated.items()
            assert what.startswith("ApiVersionsResponse v4 .finalized_features_epoch: ") and count == 1
            for _ in range(3):
                answer = await connection.send(messages.HeartbeatRequest(), 4)
                assert answer.unknown_tags == {1: b"\xff" * 8}
            assert connection.tolerated == {what: 1}  # an unknown tag is nothing strange
            broker.drop()
            await asyncio.gather(connection.send(messages.HeartbeatRequest(), 4), return_exceptions=True)
            await connection.open()
            assert connection.tolerated == {what: 2}

    run(work())


def test_strict_connections_refuse_them() -> None:
    async def work() -> None:
        async with generous() as broker:
            with pytest.raises(BrokerConnectionError, match=r"ApiVersionsResponse v4 \.finalized_features_epoch"):
                async with connect(broker.address, strict=True):
                    pass
            strict = connect(broker.address, strict=True)
            assert strict.tolerated == {}

    run(work())


def test_bytes_after_a_response_are_tolerated_and_an_invalid_response_is_not() -> None:
    async def work() -> None:
        async with generous(b"\0\0\0\0") as broker:
            async with connect(broker.address) as connection:
                await connection.send(messages.HeartbeatRequest(), 4)
                assert [(what.split(" ")[0], count) for what, count in connection.tolerated.items()] == [
                    ("ApiVersionsResponse", 1), ("HeartbeatResponse", 1)]
                broker.tags = b"\x05"
                with pytest.raises(kwire.DecodeError, match="HeartbeatResponse v4"):
                    await connection.send(messages.HeartbeatRequest(), 4)
                broker.tags = b"\0"
                await connection.send(messages.HeartbeatRequest(), 4)
            assert broker.connections == 1

    run(work())


def test_a_cluster_tells_what_all_its_brokers_were_tolerated() -> None:
    async def work() -> None:
        async with generous() as one, generous() as other:
            rows = cluster(of_release("3.9"), of_release("3.9"))
            for row, broker in zip(rows, (one, other), strict=True):
                row.port = broker.port
            for broker in (one, other):
                broker.answer = rows[0].answer
                broker.tags = b"\0\0"
            async with Cluster(one.address) as both:
                assert set(both.tolerated.values()) == {1, 2} and len(both.tolerated) == 2
            with pytest.raises(BrokerConnectionError):
                async with Cluster(one.address, strict=True):
                    pass

    run(work())


def test_kinds_of_what_is_tolerated_are_bounded() -> None:
    tolerated = Tolerated()
    for number in range(3000):
        tolerated.add(f"a kind of its own: {number}")
        tolerated.add(f".topics[{number}].partitions[{number * 7}]: alike")
    assert tolerated.counts[".topics[].partitions[]: alike"] == 3000
    assert len(tolerated.counts) == 1001 and sum(tolerated.counts.values()) == 6000


# --- other event loops, other processes ---


def in_a_thread(work: Any) -> Any:
    """The result of a coroutine function in an event loop of another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work()).result(20)


def test_another_event_loop_is_refused_and_its_own_goes_on() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4"), metadata) as broker, connect(broker.address) as connection:
            async def other() -> list[str]:
                errors = []
                for use in (connection.send(METADATA), connection.open(), connection.close()):
                    with pytest.raises(BrokerConnectionError) as caught:
                        await use
                    errors.append(str(caught.value))
                return errors

            errors = await asyncio.to_thread(in_a_thread, other)
            assert errors == [f"{broker.address}: the connection belongs to another event loop"] * 3
            assert connection.is_open and int((await connection.send(METADATA)).cluster_id) == 2
            assert broker.connections == 1

    run(work())


def test_an_event_loop_that_has_ended_is_forgotten() -> None:
    broker = Broker(of_release("4.4"), metadata)
    with serving(broker):
        connection = connect(broker.address)

        async def use() -> str:
            return str((await connection.send(METADATA)).cluster_id)

        assert [asyncio.run(use()) for _ in range(3)] == ["2"] * 3
        assert broker.connections == 3

        async def close() -> None:
            await connection.close()

        asyncio.run(close())
    gc.collect()


def test_a_child_process_opens_its_own() -> None:
    """And what it closes is its own: the parent's goes on."""
    async def work() -> None:
        async with Broker(of_release("4.4"), metadata) as broker, connect(broker.address) as connection:
            await connection.send(METADATA)

            async def child_sends() -> bytes:
                cluster_id = (await connection.send(METADATA)).cluster_id
                await connection.close()
                return str(cluster_id).encode()

            def child() -> bytes:
                assert not connection.is_open
                answer = asyncio.run(child_sends())
                gc.collect()
                return answer

            for number in range(3):
                assert await asyncio.to_thread(in_a_child, child) == b"2"
                assert int((await connection.send(METADATA)).cluster_id) == 3 + number
            assert broker.connections == 4

    run(work())


@pytest.mark.parametrize("name", ["timeout", "probe_timeout"])
def test_seconds_of_any_size(name: str) -> None:
    keywords: Any = {name: 10**400}
    assert getattr(net.connect("h:1", **keywords), name) == math.inf
    keywords = {name: math.nan}
    with pytest.raises(ValueError, match=f"{name} must be a number of seconds, not nan"):
        net.connect("h:1", **keywords)
    with pytest.raises(ValueError, match=name):
        net.Cluster("h:1", **keywords)


def test_a_request_waits_for_ever_so_long() -> None:
    async def work() -> None:
        request = messages.MetadataRequest()
        async with (
            Broker(of_release("4.4"), lambda _: messages.MetadataResponse(cluster_id="c")) as broker,
            net.connect(broker.address, timeout=10**400) as connection,
        ):
            assert (await connection.send(request, timeout=10**400)).cluster_id == "c"
            with pytest.raises(ValueError, match="timeout must be"):
                await connection.send(request, timeout=math.nan)

    run(work())


def test_memory_that_falls_short_comes_through_to_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: Any, **__: Any) -> Any:
        raise MemoryError

    async def work() -> None:
        async with Broker(of_release("4.4")) as broker:
            broker.answer = cluster_answer(broker)
            async with connect(broker.address, timeout=2) as connection:
                with monkeypatch.context() as patch:
                    patch.setattr("kwire.net.channel.decode_response", short)
                    with pytest.raises(MemoryError):
                        await connection.send(METADATA)
                assert connection._channel is not None
                connection._channel._frames.feed = short  # type: ignore[method-assign]
                with pytest.raises(MemoryError):
                    await connection.send(METADATA)
                assert not connection.is_open

    run(work())


def test_closed_and_opened_while_it_opens() -> None:
    """Whoever waits gets the connection, or an error that it was closed."""
    async def work() -> None:
        async with Broker(of_release("4.4"), metadata) as broker:
            for rounds in range(1, 25):
                connection = connect(broker.address)
                opening = [asyncio.create_task(connection.open()) for _ in range(3)]
                for _ in range(rounds):
                    await asyncio.sleep(0)
                await connection.close()
                again = asyncio.create_task(connection.open())
                for outcome in await asyncio.gather(*opening, again, return_exceptions=True):
                    assert outcome is None or "closed" in str(outcome), repr(outcome)
                await connection.close()

    run(work())


def test_a_connection_that_failed_waits_for_nothing() -> None:
    """Callers that run out of time in one turn fail it one after the other: 20,000 took a quarter of a minute."""
    async def work() -> None:
        async with Broker(of_release("4.4")) as broker, connect(broker.address) as connection:
            channel = connection._channel
            assert channel is not None
            answers = [channel.send(METADATA, 9) for _ in range(10)]
            channel.fail(BrokerTimeoutError("first"))
            assert not channel._waiting
            channel.fail(BrokerTimeoutError("second"))
            assert {str(one.exception()) for one in answers if one is not None} == {"first"}

    run(work())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_a_task_factory_of_the_user_does_not_read_before_the_channel_is_made() -> None:
    """Bytes that came with the end of the TLS handshake are there when the channel is made."""
    async def work() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)  # type: ignore[attr-defined,unused-ignore]

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with Server(serve) as broker:
            reader, writer = await asyncio.open_connection(HOST, broker.port)
            reader.feed_data(b"HTTP/1.1 400 Bad Request")
            channel = Channel(Address(HOST, broker.port), reader, writer, client_id=None, max_frame=1 << 20)
            with pytest.raises(BrokerConnectionError, match="answers in HTTP"):
                await channel.request(messages.HeartbeatRequest(), 0)
            await channel.close()
            assert channel._task.cancelled() or channel._task.exception() is None

    run(work())


def throttling(milliseconds: int) -> Any:
    """Answers Metadata with a throttle time, and with the correlation id of its request."""
    return lambda request: messages.MetadataResponse(
        throttle_time_ms=milliseconds, cluster_id=str(request.correlation_id))


def test_a_throttled_client_sends_nothing_and_stays_connected() -> None:
    """The broker reads nothing more for so long (KIP-219): what is written meanwhile may be done after the timeout."""
    async def work() -> None:
        async with Broker(of_release("4.4"), throttling(60_000)) as broker, connect(broker.address) as connection:
            await connection.send(METADATA)
            channel = connection._channel
            for _ in range(2):
                with pytest.raises(BrokerTimeoutError, match=r"not sent within 0\.05 s: the broker throttles .* quota"):
                    await connection.send(METADATA, timeout=0.05)
            await connection.open()
            assert connection._channel is channel and connection.is_open
            assert [request.name for request in broker.requests].count("Metadata") == 1
            waiting = asyncio.create_task(connection.send(METADATA, timeout=60))
            await asyncio.sleep(0)
            await connection.close()
            with pytest.raises(BrokerConnectionError, match="the connection was closed"):
                await waiting

    run(work())


def test_after_the_throttle_time_requests_go_out_in_their_order() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4"), throttling(50)) as broker, connect(broker.address) as connection:
            await connection.send(METADATA)
            numbers = [asyncio.create_task(connection.send(
                messages.MetadataRequest(topics=[messages.MetadataRequest.MetadataRequestTopic(name=f"t{number}")])))
                for number in range(5)]
            await asyncio.gather(*numbers)
            asked = [request.message.topics for request in broker.requests if request.name == "Metadata"]
            assert [topics[0].name for topics in asked[1:]] == [f"t{number}" for number in range(5)]

    run(work())


def test_a_broker_that_throttles_a_client_that_left_is_asked_again() -> None:
    """Its connection is lost while the client waits: a new one is not throttled."""
    async def work() -> None:
        async with Broker(of_release("4.4"), throttling(60_000)) as broker, connect(broker.address) as connection:
            await connection.send(METADATA)
            waiting = asyncio.create_task(connection.send(METADATA))
            await asyncio.sleep(0.01)
            broker.drop()
            assert isinstance(await waiting, messages.MetadataResponse) and broker.connections == 2

    run(work())


def test_a_connection_is_open_while_a_request_waits_for_the_throttle_time() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4"), throttling(60_000)) as broker, connect(broker.address) as connection:
            await connection.send(METADATA)
            waiting = asyncio.create_task(connection.send(METADATA, timeout=60))
            await asyncio.sleep(0.01)
            await asyncio.wait_for(connection.open(), 10)
            assert connection.is_open and not waiting.done()
            waiting.cancel()

    run(work())


def test_an_answer_whose_caller_was_cancelled_throttles_too() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4"), throttling(60_000)) as broker, connect(broker.address) as connection:
            channel = connection._channel
            assert channel is not None
            gone = asyncio.create_task(connection.send(METADATA))
            while not channel._waiting:
                await asyncio.sleep(0)
            gone.cancel()
            while channel._cancelled or not gone.done():
                await asyncio.sleep(0.001)
            assert channel.throttled > 50
            with pytest.raises(BrokerTimeoutError, match="not sent within") as caught:
                await connection.send(METADATA, timeout=0.05)
            assert caught.value.throttled > 50

    run(work())


@pytest.mark.parametrize(("version", "waits"), [(5, False), (6, True)])
def test_an_answer_that_was_delayed_for_a_quota_delays_nothing_after_it(version: int, waits: bool) -> None:
    """Versions before KIP-219 are answered after the throttle time."""
    async def work() -> None:
        async with Broker(of_release("3.9"), throttling(60_000)) as broker, connect(broker.address) as connection:
            await connection.send(METADATA, version)
            assert connection._channel is not None and bool(connection._channel.throttled) == waits

    run(work())
