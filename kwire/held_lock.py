"""A lock that is held while something runs, and let go of wherever Ctrl-C comes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def holding(lock: Any, work: Callable[[], T]) -> T:
    """Do work while this thread holds an RLock that it does not hold yet; return its result.

    `with` is not enough: in Python 3.14 an interrupt between taking the lock and the block leaves it taken for ever.
    Here every moment after the lock is taken is inside `try`, and nothing else is called before it is released.
    """
    try:
        lock.acquire()
        return work()
    finally:
        try:  # noqa: SIM105
            lock.release()  # before it no signal can come: nothing was called since
        except RuntimeError:  # interrupted before it was taken
            pass
