"""Iterators that threads may share: each item goes to one of them, once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from functools import wraps
from time import sleep
from types import FrameType
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

T = TypeVar("T")
P = ParamSpec("P")

_PAUSE = 0.0002  # seconds between two looks whether another thread has left the generator
_MISSES = 20  # looks at which no thread was in a generator that says it is executing


class SharedIterator(Generic[T]):
    """The items of a generator, of which threads wait for each other.

    Raises RuntimeError where it is asked for an item while the same thread makes one (user code that it calls), and in
    a child of fork whose parent was making one in another thread. There is no lock: Python lets one thread at a time
    into a generator, and nothing is paid for where nobody waits.
    """

    __slots__ = ("_items", "_next", "_process")

    def __init__(self, items: Iterator[T]) -> None:
        self._items = cast(Generator[T, None, None], items)
        self._next = self._items.__next__
        self._process = os.getpid()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        try:
            return self._next()
        except ValueError as error:
            if not _says_busy(error):
                raise
        found: T = self._waited(self._next)
        return found

    def close(self) -> None:
        """End it, so that what it holds open is closed."""
        self._waited(self._items.close)

    def _waited(self, work: Callable[[], Any]) -> Any:
        """What work gives when no other thread is in the generator any more."""
        misses = 0
        while True:
            try:
                return work()
            except ValueError as error:
                if not _says_busy(error):
                    raise
            frame = self._items.gi_frame  # type: ignore[attr-defined]
            if _stands_in(sys._getframe(), frame):
                raise RuntimeError("this iterator is making an item already: it cannot be used inside of that")
            if os.getpid() != self._process:  # in a child of fork the thread that was in it is not there
                there = any(_stands_in(one, frame) for one in sys._current_frames().values())
                misses = 0 if there else misses + 1
                if misses > _MISSES:
                    raise RuntimeError("this iterator was making an item when the process forked: it cannot go on here")
            sleep(_PAUSE)


def _says_busy(error: ValueError) -> bool:
    """Is it Python's own for a generator that is executing, and none from inside of it?"""
    trace = error.__traceback__
    return error.args == ("generator already executing",) and trace is not None and trace.tb_next is None


def _stands_in(inner: FrameType | None, wanted: FrameType | None) -> bool:
    """Does a frame stand in the calls that lead to another?"""
    while inner is not None:
        if inner is wanted:
            return True
        inner = inner.f_back
    return False


def shared(make: Callable[P, Iterator[T]]) -> Callable[P, SharedIterator[T]]:
    """Have a generator function give a SharedIterator."""

    @wraps(make)
    def making(*args: P.args, **keywords: P.kwargs) -> SharedIterator[T]:
        return SharedIterator(make(*args, **keywords))

    return making


def unshared(items: Iterator[T]) -> Iterator[T]:
    """The generator in a SharedIterator, for another one that goes through it alone."""
    return items._items if isinstance(items, SharedIterator) else items
