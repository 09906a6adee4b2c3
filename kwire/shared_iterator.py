"""Iterators that threads may share: each item goes to one of them, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import ParamSpec, TypeVar

from kwire_c.shared_iterator import SharedIterator, groups_of, unshared

__all__ = ["SharedIterator", "groups_of", "shared", "shared_groups", "unshared"]

T = TypeVar("T")
P = ParamSpec("P")


def shared(make: Callable[P, Iterator[T]]) -> Callable[P, SharedIterator[T]]:
    """Have a generator function give a SharedIterator."""

    @wraps(make)
    def making(*args: P.args, **keywords: P.kwargs) -> SharedIterator[T]:
        return SharedIterator(make(*args, **keywords))

    return making


def shared_groups(make: Callable[P, Iterator[Iterator[T]]]) -> Callable[P, SharedIterator[T]]:
    """Have a generator function that gives iterators, as those of batches, give a SharedIterator of their items."""

    @wraps(make)
    def making(*args: P.args, **keywords: P.kwargs) -> SharedIterator[T]:
        return SharedIterator(make(*args, **keywords), grouped=True)

    return making
