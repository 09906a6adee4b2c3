"""Brokers that do not answer: a call ends within its timeout, and the next broker is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from kwire import messages, net
from kwire.net import connect, waiting
from kwire.net.channel import Channel
from tests.net.fake import Broker, cluster, cluster_answer, of_release, run

pytestmark = pytest.mark.quick


def silence(_: Any) -> None:
    """No answer."""


async def timeouts(work: Awaitable[Any], seconds: float) -> float:
    """How many timeouts of so many seconds a call takes that fails because nobody answers."""
    begin = asyncio.get_running_loop().time()
    with pytest.raises(net.BrokerConnectionError):
        await work
    return (asyncio.get_running_loop().time() - begin) / seconds


def test_silent_brokers_take_the_time_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request after a failed one asks known brokers who is there: twenty that were silent took 21 timeouts."""
    monkeypatch.setattr(waiting, "_LONGEST_PAUSE", 0.01)

    async def work() -> None:
        brokers = cluster(*[of_release("4.4")] * 20)
        async with AsyncExitStack() as held:
            for broker in brokers:
                await held.enter_async_context(broker)
            made = net.Cluster(brokers[0].address, timeout=10)
            await made.open()
            made.timeout = 0.5
            for broker in brokers:
                broker.answer = silence
            for _ in range(2):
                assert await timeouts(made.send(messages.FindCoordinatorRequest(), timeout=0.5), 0.5) < 15
            assert await timeouts(made.refresh(), 0.5) < 15
            await made.close()

    run(work())


def test_a_request_after_silent_brokers_reaches_the_one_that_answers() -> None:
    async def work() -> None:
        brokers = cluster(*[of_release("4.4")] * 10)
        async with AsyncExitStack() as held:
            for broker in brokers:
                await held.enter_async_context(broker)
            made = net.Cluster(brokers[0].address, timeout=20)
            await made.open()
            for broker in brokers[:-1]:
                broker.answer = silence
            with pytest.raises(net.BrokerTimeoutError):
                await made.send(messages.MetadataRequest(topics=[]), to=1, timeout=0.2)
            for _ in range(100):
                with suppress(net.BrokerConnectionError):
                    await made.send(messages.MetadataRequest(topics=[]), to=len(brokers), timeout=0.25)
                    break
            else:
                raise AssertionError("it was not reached")
            await made.close()

    run(work())


def test_any_of_two_brokers_is_the_other_one_after_a_failure() -> None:
    async def work() -> None:
        brokers = cluster(of_release("4.4"), of_release("4.4"))
        async with brokers[0], brokers[1], net.Cluster(brokers[0].address, timeout=10) as made:
            brokers[0].answer = silence
            outcomes = []
            for _ in range(6):
                try:
                    await made.send(messages.MetadataRequest(topics=[]), timeout=1)
                    outcomes.append("answered")
                except net.BrokerTimeoutError:
                    outcomes.append("silent")
            assert outcomes.count("answered") >= 2, outcomes

    run(work())


def test_a_send_keeps_its_timeout_also_after_error_35() -> None:
    async def work() -> None:
        def refuse(request: Any) -> Any:
            return messages.EndTxnResponse(error_code=35)

        broker = Broker(of_release("4.3"), refuse)
        async with broker, connect(broker.address, probe_timeout=60) as connection:
            broker.negotiate = lambda _: None  # type: ignore[method-assign] # silent from now on
            begin = time.monotonic()
            answer = await connection.send(messages.EndTxnRequest(), timeout=0.3)
            assert answer.error_code == 35 and connection.is_open and time.monotonic() - begin < 10

    run(work())


def test_a_bootstrap_server_that_is_gone_does_not_keep_the_next_from_being_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Connecting to it takes as long as there is: nothing refuses, nothing answers."""
    monkeypatch.setattr(waiting, "_LONGEST_PAUSE", 0.01)
    plain = Channel.open

    async def opened(address: Any, **keywords: Any) -> Channel:
        if address.port == 1:
            await asyncio.sleep(1000)
        return await plain(address, **keywords)

    monkeypatch.setattr(Channel, "open", opened)

    async def work() -> None:
        (broker,) = cluster(of_release("4.4"))
        async with broker:
            async with net.Cluster(f"127.0.0.1:1,{broker.address}", timeout=20) as made:
                assert [one.id for one in made.brokers] == [1]
            listed = cluster_answer(broker, broker)  # as broker 2, at an address that is gone

            def answer(request: Any) -> Any:
                found = listed(request)
                if isinstance(found, messages.MetadataResponse):
                    found.brokers[1].port = 1
                return found

            broker.answer = answer
            async with net.Cluster(broker.address, timeout=2, partial=True) as made:
                assert isinstance(made.unreachable.pop(2), net.BrokerTimeoutError) and not made.unreachable

    run(work())
