"""The first answer of several brokers, of which some fail, some are silent and one may be wrong."""

from __future__ import annotations

import asyncio

import pytest

from kwire import net
from kwire.net import waiting
from tests.net.fake import run

pytestmark = pytest.mark.quick


def test_the_first_answer_of_several() -> None:
    async def work() -> None:
        asked = []

        async def ask(name: str) -> str:
            asked.append(name)
            if name == "silent":
                await asyncio.sleep(1000)
            if name == "wrong":
                raise ValueError(name)
            if name != "good":
                raise net.BrokerConnectionError(name)
            return name

        assert await waiting.first_answer(["bad", "silent", "good", "late"], ask, 0.01) == ("good", "good")
        assert asked == ["bad", "silent", "good"]
        with pytest.raises(waiting.NoneAnswered) as raised:
            await waiting.first_answer(["bad", "worse"], ask, 1000)
        assert [str(error) for _, error in raised.value.errors] == ["bad", "worse"]
        with pytest.raises(waiting.NoneAnswered):
            await waiting.first_answer([], ask, 1)
        with pytest.raises(net.BrokerConnectionError, match="worse"):
            await waiting.first_answer(["bad", "worse", "good"], ask, 1, lambda name, _: name == "worse")
        with pytest.raises(ValueError, match="wrong"):
            await waiting.first_answer(["silent", "wrong"], ask, 0.01)

    run(work())
