"""Iterators that threads may share: each item goes to one of them, once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import wraps
from threading import RLock
from typing import Any, Generic, ParamSpec, Self, TypeVar
from weakref import WeakSet

T = TypeVar("T")
P = ParamSpec("P")


class SharedIterator(Generic[T]):
    """The items of a generator, of which threads wait for each other.

    Raises RuntimeError where it is asked for an item while the same thread makes one (user code that it calls), and in
    a child of fork whose parent was making one in another thread.
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._items = items
        self._lock = RLock()
        _ALL.add(self)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        with self._lock:
            try:
                return next(self._items)
            except ValueError:
                if not getattr(self._items, "gi_running", False):
                    raise
        raise RuntimeError("this iterator is making an item already: it cannot make another one inside of that")

    def close(self) -> None:
        """End it, so that what it holds open is closed. Raises RuntimeError where it makes an item meanwhile."""
        with self._lock:
            if getattr(self._items, "gi_running", False):
                raise RuntimeError("this iterator is making an item: it cannot be closed inside of that")
            getattr(self._items, "close", int)()


def shared(make: Callable[P, Iterator[T]]) -> Callable[P, SharedIterator[T]]:
    """Have a generator function give a SharedIterator."""

    @wraps(make)
    def making(*args: P.args, **keywords: P.kwargs) -> SharedIterator[T]:
        return SharedIterator(make(*args, **keywords))

    return making


_ALL: WeakSet[SharedIterator[Any]] = WeakSet()


def _forget() -> None:
    """In a child of fork: nobody gives back what other threads of the parent held."""
    for one in list(_ALL):
        if not one._lock._is_owned():  # type: ignore[attr-defined]
            one._lock = RLock()


os.register_at_fork(after_in_child=_forget)
