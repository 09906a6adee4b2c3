"""Limits of time, and the first answer of several brokers of which some may be silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from kwire.net.errors import BrokerConnectionError, BrokerTimeoutError

T = TypeVar("T")
C = TypeVar("C")

_SHARE, _LONGEST_PAUSE = 1 / 8, 5.0  # of the time for all, and seconds: after that the next one is asked as well


def turn(seconds: float) -> float:
    """The seconds after which the next candidate is asked as well. seconds: for all."""
    return min(seconds * _SHARE, _LONGEST_PAUSE)


class NoneAnswered(Exception):
    """None of the candidates answered. errors: (candidate, error) of each."""

    def __init__(self, errors: list[tuple[Any, BrokerConnectionError]]) -> None:
        self.errors = errors


@asynccontextmanager
async def within(seconds: float, where: object) -> AsyncIterator[float]:
    """The loop's time at which it ends. Raises BrokerTimeoutError after so many seconds; where: the address in it."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield asyncio.get_running_loop().time() + seconds
    except TimeoutError:
        if not limit.expired():
            raise
        raise BrokerTimeoutError(f"no answer within {seconds:g} s", address=str(where)) from None


async def first_answer(
    candidates: Sequence[C], ask: Callable[[C], Coroutine[Any, Any, T]], seconds: float,
    is_final: Callable[[C, BrokerConnectionError], bool] = lambda candidate, error: False,
) -> tuple[C, T]:  # fmt: skip
    """(candidate, its answer) of the first candidate that answers; the others are cancelled.

    They are asked in order: the next one when one has failed, or beside those that have not answered in an eighth of
    the seconds, which are what there is for all. Raises NoneAnswered if all fail, and at once what is no
    BrokerConnectionError or is_final.
    """
    errors: list[tuple[C, BrokerConnectionError]] = []
    asking: dict[asyncio.Task[T], C] = {}
    left = list(reversed(candidates))
    try:
        while left or asking:
            if left:
                candidate = left.pop()
                asking[asyncio.create_task(ask(candidate))] = candidate
            pause = turn(seconds) if left else None
            done, _ = await asyncio.wait(asking, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                candidate = asking.pop(task)
                try:
                    return candidate, task.result()
                except BrokerConnectionError as error:
                    if is_final(candidate, error):
                        raise
                    errors.append((candidate, error))
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    raise NoneAnswered(errors)
