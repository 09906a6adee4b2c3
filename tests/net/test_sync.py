"""A connection without async that threads share, that is interrupted, and that is carried into another process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from kwire import messages
from kwire.net import BrokerConnectionError, BrokerTimeoutError, connect_sync
from kwire.net.sync import SyncConnection
from tests.little_stack import with_frames_left
from tests.net.fake import Broker, cluster_answer, in_a_child, of_release, serving
from tests.net.test_sasl import Guarded

METADATA = messages.MetadataRequest(topics=[])
THREADS = 8


def metadata(request: Any) -> Any:
    """An answer that tells which request it is for."""
    return messages.MetadataResponse(cluster_id=str(request.correlation_id))


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker(of_release("4.4"), metadata)
    with serving(broker):
        yield broker


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def threads_of_kwire() -> int:
    return sum("SyncConnection" in thread.name for thread in threading.enumerate())


def wait_for(what: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end, "not within the time limit"
        time.sleep(0.005)


@pytest.mark.quick
def test_threads_share_it_before_it_is_open(broker: Broker, hasty: None) -> None:
    """Each opens it at its first send: there is one connection, and each gets its own answers."""
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(20):
            shared, start = connect_sync(broker.address, timeout=20), threading.Barrier(THREADS)

            def work(shared: SyncConnection = shared, start: threading.Barrier = start) -> list[int]:
                start.wait(20)
                return [int(shared.send(METADATA).cluster_id) for _ in range(3)]

            before = broker.connections
            found = [one.result(30) for one in [pool.submit(work) for _ in range(THREADS)]]
            assert sorted(number for own in found for number in own) == list(range(2, 2 + 3 * THREADS))
            assert all(own == sorted(own) for own in found)
            assert broker.connections == before + 1
            shared.close()
    assert threads_of_kwire() == 0


@pytest.mark.quick
def test_threads_close_it_while_others_send(broker: Broker, hasty: None) -> None:
    """An answer, or an error that says it was closed; it opens again; no thread is leaked."""
    shared, stop = connect_sync(broker.address, timeout=20), threading.Event()

    def send() -> int:
        sent = 0
        while not stop.is_set():
            try:
                shared.open()
                shared.send(METADATA)
                sent += 1
            except BrokerConnectionError as error:
                assert "closed" in str(error) or "not opened" in str(error), error
        return sent

    def close() -> int:
        for _ in range(40):
            shared.close()
        return 1

    with ThreadPoolExecutor(THREADS) as pool:
        sending = [pool.submit(send) for _ in range(THREADS - 2)]
        try:
            assert sum(one.result(60) for one in [pool.submit(close) for _ in range(2)]) == 2
        finally:
            stop.set()
        assert all(one.result(30) >= 0 for one in sending)
    shared.close()
    assert threads_of_kwire() == 0
    assert int(shared_answer(shared)) == 2


def shared_answer(connection: SyncConnection) -> str:
    """One answer of a connection that is opened again and closed."""
    with connection:
        return str(connection.send(METADATA).cluster_id)


@pytest.mark.quick
def test_an_interrupt_comes_through_and_the_connection_goes_on(broker: Broker) -> None:
    broker.answer = lambda _: None
    with connect_sync(broker.address) as connection:
        for _ in range(5):
            asked = len(broker.requests)

            def interrupt(asked: int = asked) -> None:
                wait_for(lambda: len(broker.requests) > asked)
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                connection.send(METADATA)
            thread.join()
        broker.answer = metadata
        assert int(connection.send(METADATA).cluster_id) == 7  # ApiVersions and five before it
        assert broker.connections == 1


@pytest.mark.quick
@pytest.mark.parametrize("kind", [MemoryError, KeyboardInterrupt])
def test_an_error_after_the_loop_has_a_call_ends_the_call_there(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """Its coroutine was closed in the thread that called, though the loop was at it: ValueError."""
    post, calls = SyncConnection._post, []

    def failing(connection: SyncConnection, call: Any) -> Any:
        post(connection, call)
        wait_for(lambda: call.has_begun)
        time.sleep(0.05)
        calls.append(call)
        raise kind

    broker.answer = lambda _: None
    with connect_sync(broker.address) as connection:
        monkeypatch.setattr(SyncConnection, "_post", failing)
        with pytest.raises(kind):
            connection.send(METADATA)
        wait_for(lambda: calls[0].task.done())
        assert calls[0].task.cancelled()
        monkeypatch.undo()
        broker.answer = metadata
        assert connection.send(METADATA).cluster_id


def test_a_child_opens_its_own(broker: Broker) -> None:
    """A child of fork neither writes to nor closes what its parent has open."""
    with connect_sync(broker.address) as connection:
        connection.send(METADATA)

        def child() -> bytes:
            assert not connection.is_open
            cluster_id = connection.send(METADATA).cluster_id
            connection.close()
            return str(cluster_id).encode()

        for number in range(3):
            assert in_a_child(child) == b"2"
            assert int(connection.send(METADATA).cluster_id) == 3 + number
        assert broker.connections == 4


def in_time(work: Any) -> None:
    """Run it in a thread: a deadlock fails the test."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive(), "a deadlock"


@pytest.mark.quick
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


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_callback_that_ends_the_thread_ends_one_call(error: type[BaseException]) -> None:
    """asyncio lets these out of its loop: each later call said that the connection was closed."""
    def callback() -> str:
        if errors:
            raise errors.pop()
        return "good.one."

    errors, broker = [error], Guarded("4.4", "OAUTHBEARER")
    with serving(broker):
        connection = connect_sync(broker.address, sasl=callback, timeout=20)
        with pytest.raises(error):
            connection.open()
        with connection:
            assert connection.send(METADATA) is not None


@pytest.mark.quick
def test_a_loop_without_memory_fails_what_runs_and_goes_on(broker: Broker) -> None:
    """It ended, and who waited for it waited for ever."""
    with connect_sync(broker.address, timeout=20) as connection:
        loop = connection._loop
        assert loop is not None
        selector = loop._loop._selector  # type: ignore[attr-defined]
        select, failures = selector.select, [MemoryError, MemoryError]

        def short(timeout: float | None = None) -> Any:
            if failures:
                raise failures.pop()
            return select(timeout)

        broker.answer = lambda _: None
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(connection.send, METADATA)
            while not loop._calls:
                time.sleep(0.01)
            selector.select = short
            loop.post(lambda: None)
            with pytest.raises(MemoryError):
                sent.result(20)
        assert not failures
        broker.answer = cluster_answer(broker)
        assert connection.send(METADATA).brokers


@pytest.mark.parametrize("lost", [1, 2])
def test_what_a_loop_has_lost_is_asked_again(broker: Broker, lost: int) -> None:
    """asyncio loses a callback for which it finds no memory."""
    with connect_sync(broker.address, timeout=20) as connection:
        loop = connection._loop
        assert loop is not None
        post, dropped = loop.post, []

        def losing(callback: Callable[[], object]) -> bool:
            if len(dropped) < lost:
                dropped.append(callback)
                return True
            return post(callback)

        loop.post = losing  # type: ignore[assignment]
        connection.send(METADATA)
        assert len(dropped) == lost
        dropped.clear()
    assert len(dropped) == lost and loop.has_ended  # of close


def test_a_task_that_never_ends_keeps_nobody(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio loses the wake-up of a task for which it finds no memory; its timeout does not come through then."""
    async def never(*_: Any, **__: Any) -> Any:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1000)

    monkeypatch.setattr("kwire.net.sync._PATIENCE", 0.5)
    connection = connect_sync(broker.address, timeout=0.1)
    for name in ("send", "close"):
        monkeypatch.setattr(connection._connection, name, never)
    with pytest.raises(BrokerTimeoutError, match=r"no end within 0\.1 s"):
        connection.send(METADATA)
    loop = connection._loop
    connection.close()
    assert loop is not None and loop.has_ended


def test_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """ulimit -u, or -v: nothing is left, and the next call tries again."""
    def refused(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    broker = Broker(of_release("4.4"))
    broker.answer = cluster_answer(broker)
    with serving(broker):
        connection, before = connect_sync(broker.address, timeout=20), os.listdir("/proc/self/fd")
        with monkeypatch.context() as patch:
            patch.setattr("kwire.net.sync.start_new_thread", refused)
            with pytest.raises(BrokerConnectionError, match=f"{broker.address}: no thread can be started"):
                connection.open()
        assert os.listdir("/proc/self/fd") == before
        with connection:
            assert connection.send(METADATA).brokers


@pytest.mark.filterwarnings("ignore:coroutine 'Connection.close' was never awaited")
def test_where_the_stack_ends(broker: Broker) -> None:
    """close() is refused by Python's RecursionError, and does not wait for what its thread was never asked."""
    refused = 0
    for frames in range(2, 40):
        connection = connect_sync(broker.address)
        connection.open()
        try:
            with_frames_left(frames, connection.close)
        except RecursionError:
            refused += 1
        connection.close()
        assert not connection.is_open
    assert 0 < refused < 38


def test_where_threads_are_greenlets(monkeypatch: pytest.MonkeyPatch) -> None:
    """gevent and eventlet make "threads" that share one running loop: said at once, not a timeout later."""
    def where_a_loop_runs(serve: Callable[[], None], arguments: tuple[()]) -> None:
        async def begin() -> None:
            serve(*arguments)

        threading.Thread(target=asyncio.run, args=(begin(),)).start()

    broker = Broker(of_release("4.4"))
    broker.answer = cluster_answer(broker)
    with serving(broker):
        connection, before = connect_sync(broker.address, timeout=200), os.listdir("/proc/self/fd")
        with monkeypatch.context() as patch:
            patch.setattr("kwire.net.sync.start_new_thread", where_a_loop_runs)
            for _ in range(2):
                with pytest.raises(BrokerConnectionError, match=f"{broker.address}: .* cannot run its event loop: .*"):
                    connection.open()
        wait_for(lambda: os.listdir("/proc/self/fd") == before)
        with connection:
            assert connection.send(METADATA).brokers


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


def test_a_child_of_a_process_whose_threads_are_sending(broker: Broker, hasty: None) -> None:
    """Whatever the threads held when it was forked."""
    shared, stop = connect_sync(broker.address, timeout=20), threading.Event()

    def send() -> int:
        sent = 0
        while not stop.is_set():
            shared.send(METADATA)
            sent += 1
        return sent

    with ThreadPoolExecutor(4) as pool:
        sending = [pool.submit(send) for _ in range(4)]
        try:
            for _ in range(20):
                assert in_a_child(lambda: str(shared.send(METADATA).cluster_id).encode()) == b"2"
        finally:
            stop.set()
        assert all(one.result(30) > 0 for one in sending)
    shared.close()
    assert broker.connections == 21


def test_a_connection_that_outlives_its_module_ends_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Python ends, it may set the names of a module to None before the last objects go."""
    connection = connect_sync("localhost:1")
    seen: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    with monkeypatch.context() as patch:
        patch.setattr("kwire.net.sync.sys", None)
        del connection
    assert seen == []
