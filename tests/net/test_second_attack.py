"""Regression tests: faults that a second attack on the connections showed, one test each."""

from __future__ import annotations

import asyncio
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest

from kwire import LimitError, messages
from kwire.codec.frames import FrameReader, pack_frame
from kwire.net import AuthenticationError, BrokerConnectionError, Cluster, connect, connect_sync, keywords_of
from kwire.net.address import address
from kwire.net.config import jaas_options
from tests.limits import processor_time
from tests.net.fake import HOST, Broker, cluster_answer, of_release, run, serving
from tests.net.test_sasl import PASSWORD, USER, Guarded

pytestmark = pytest.mark.quick

METADATA = messages.MetadataRequest(topics=[])
ROW = messages.MetadataResponse.MetadataResponseBroker


def naming(broker: Broker, *rows: Any) -> Any:
    """Metadata that names the broker and these."""
    return lambda _: messages.MetadataResponse(brokers=[ROW(node_id=0, host=HOST, port=broker.port), *rows])


def test_a_cluster_makes_one_tls_context(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    create = ssl.create_default_context
    monkeypatch.setattr("ssl.create_default_context", lambda: made.append(1) or create())
    cluster = Cluster("a:1", tls=True)
    other = cluster._keywords["tls"]
    assert len(made) == 1 and isinstance(other, ssl.SSLContext)


def test_a_cluster_refuses_metadata_of_too_many_brokers() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4")) as broker:
            broker.answer = naming(broker, *(ROW(node_id=n, host=HOST, port=1) for n in range(1, 10_001)))
            with pytest.raises(LimitError, match="too many brokers"):
                async with Cluster(broker.address, partial=True):
                    pass

    run(work())


def test_a_cluster_opens_a_few_brokers_at_a_time() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4")) as broker:
            broker.answer = naming(broker, *(ROW(node_id=n, host=HOST, port=1) for n in range(1, 300)))
            most = 0
            cluster = Cluster(broker.address, partial=True)
            opening = asyncio.create_task(cluster.open())
            while not opening.done():
                most = max(most, len(asyncio.all_tasks()))
                await asyncio.sleep(0)
            await opening
            assert most < 100 and len(cluster.unreachable) == 299
            await cluster.close()

    run(work())


def test_a_cluster_sorts_brokers_of_one_id_with_and_without_a_rack() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4")) as broker:
            more = [ROW(node_id=0, host=HOST, port=broker.port, rack=rack) for rack in ("a", None)]
            broker.answer = naming(broker, *more)
            async with Cluster(broker.address) as cluster:
                assert [one.rack for one in cluster.brokers] == [None, None, "a"]

    run(work())


def test_a_refresh_closes_the_connection_to_a_broker_that_names_only_others() -> None:
    async def work() -> None:
        async with Broker(of_release("4.4")) as first, Broker(of_release("4.4")) as second:
            first.answer = cluster_answer(first)
            second.answer = cluster_answer(second)
            async with Cluster(first.address) as cluster:
                old = cluster.connection(cluster.brokers[0].id)
                first.answer = cluster_answer(second)
                await cluster.refresh()
                assert not old.is_open

    run(work())


@pytest.mark.parametrize("words", ["&#" + "9" * 5000 + ";", "h u n t e r", "+" * 32_000])
def test_any_words_of_a_broker_are_an_authentication_error(words: str) -> None:
    async def work() -> None:
        async with Guarded("4.4", "PLAIN", echo=lambda _: words) as broker:
            with pytest.raises(AuthenticationError, match=r"_AUTHENTICATION_FAILED: .the broker's error text is not"):
                async with connect(broker.address, sasl=("PLAIN", USER, "hunter"), timeout=2):
                    pass

    run(work())


def test_a_long_refusal_of_a_token_takes_no_time() -> None:
    async def work() -> None:
        async with Guarded("4.4", "OAUTHBEARER", echo=lambda _: "{" + "+" * (1 << 20)) as broker:
            with processor_time(10), pytest.raises(AuthenticationError):
                async with connect(broker.address, sasl=lambda: "".join(f"{n:04x}" for n in range(250)), timeout=5):
                    pass

    run(work())


def test_a_broker_cannot_have_a_client_authenticate_all_the_time() -> None:
    async def work() -> None:
        async with Guarded("4.4", "PLAIN", lifetime=1) as broker:
            async with connect(broker.address, sasl=("PLAIN", USER, PASSWORD)):
                await asyncio.sleep(0.3)
            assert broker.logins <= 3

    run(work())


def test_what_utf_8_cannot_carry_is_refused_without_the_secret() -> None:
    with pytest.raises(AuthenticationError) as caught:
        connect("b:1", sasl=("PLAIN", USER, "hunter\ud800"))
    assert caught.value.__context__ is None and "hunter" not in str(caught.value)

    async def work() -> None:
        async with Guarded("4.4", "OAUTHBEARER") as broker:
            with pytest.raises(AuthenticationError, match="invalid SASL extensions") as caught:
                async with connect(broker.address, sasl=lambda: ("good.one.", {"a": "hunter\ud800"})):
                    pass
            assert not any(isinstance(one, UnicodeError) for one in (caught.value, caught.value.__context__))

    run(work())


@pytest.mark.parametrize("token", [("tok", None), 5, (b"tok", {}), ("tok", {1: "a"}), ("tok", 5), None])
def test_a_callback_that_returns_no_token_is_an_authentication_error(token: Any) -> None:
    async def work() -> None:
        async with Guarded("4.4", "OAUTHBEARER") as broker:
            with pytest.raises(AuthenticationError, match="callback"):
                async with connect(broker.address, sasl=lambda: token):
                    pass

    run(work())


def test_a_truststore_may_have_comments_in_any_language(tmp_path: Path) -> None:
    import trustme

    pem = trustme.CA().cert_pem.bytes()
    file = tmp_path / "ca.pem"
    file.write_bytes("# Müller\n".encode() + pem)
    tls = keywords_of({"security.protocol": "SSL", "ssl.truststore.location": str(file)})["tls"]
    assert isinstance(tls, ssl.SSLContext) and len(tls.get_ca_certs()) == 1


@pytest.mark.parametrize("more", [
    {"ssl.truststore.certificates": ""}, {"ssl.truststore.location": "a\0b"}, {"request.timeout.ms": "9" * 5000},
    {"request.timeout.ms": "9" * 400}, {"ssl.keystore.key": "key\ud800", "ssl.keystore.certificate.chain": "c"},
])  # fmt: skip
def test_properties_that_cannot_be_used_are_errors_of_the_family(more: dict[str, str]) -> None:
    with pytest.raises(BrokerConnectionError) as caught:
        keywords_of({"security.protocol": "SSL", **more})
    assert not isinstance(caught.value.__context__, UnicodeError)


def test_a_port_of_many_digits_is_no_address() -> None:
    with pytest.raises(BrokerConnectionError):
        address("h:" + "9" * 5000)


@pytest.mark.parametrize("text", ["a.B required " + "a" * 200_000, " " * 200_000 + "x", "a.B required " + "a " * 99_999,
                                  "a.B" + " " * 200_000, 'a.B required a="' + "\\" * 200_001])
def test_jaas_takes_linear_time(text: str) -> None:
    with processor_time(10), pytest.raises(AuthenticationError):
        jaas_options(text)


def in_time(work: Any) -> None:
    """Run it in a thread: a deadlock fails the test."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive(), "a deadlock"


def test_a_callback_that_calls_its_own_connection_is_refused() -> None:
    errors: list[str] = []
    broker = Guarded("4.4", "OAUTHBEARER")
    with serving(broker):
        def work() -> None:
            def callback() -> str:
                for call in (connection.close, lambda: connection.send(METADATA)):
                    try:
                        call()
                    except RuntimeError as error:
                        errors.append(str(error))
                return "good.one."

            connection = connect_sync(broker.address, sasl=callback, timeout=2)
            with connection:
                connection.send(METADATA)

        in_time(work)
    assert len(errors) == 2 and "waits for it" in errors[0]


def test_a_finalizer_inside_a_call_of_the_connection_is_refused() -> None:
    errors: list[str] = []
    broker = Broker(of_release("4.4"))
    broker.answer = cluster_answer(broker)
    with serving(broker):
        def work() -> None:
            with connect_sync(broker.address, timeout=2) as connection:
                for lock in (connection._guard, connection._ending):
                    with lock:  # as a finalizer finds it that the garbage collector runs there
                        for call in (connection.close, lambda: connection.send(METADATA)):
                            try:
                                call()
                            except RuntimeError as error:
                                errors.append(str(error))

        in_time(work)
    assert len(errors) == 4 and "finalizer" in errors[0]


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


def test_a_frame_reader_gives_whole_frames_first_and_keeps_nothing_after_an_error() -> None:
    import copy

    stream = pack_frame(b"one") + pack_frame(b"two") + b"\x7f\xff\xff\xff"
    for size in (1, 3, 7, 100):
        reader, frames = FrameReader(10), []
        with pytest.raises(LimitError):
            for at in range(0, 200, size):
                frames += reader.feed(stream[at : at + size])
        assert frames == [b"one", b"two"], size
        for _ in range(3):
            with pytest.raises(LimitError):
                reader.feed(bytes(1 << 20))
        assert reader.pending == 4
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(FrameReader())
