"""The order in which a java.util.HashMap iterates: some of Kafka's texts and one of its records show it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

Key = TypeVar("Key", str, int)


def put_order(keys: Collection[Key]) -> list[Key]:
    """The order of a new HashMap (or a HashSet of at most 12) in which the keys were put one after another."""
    size = 16
    while len(keys) > size * 3 // 4:
        size *= 2
    return _by_bucket(keys, size)


def copy_order(keys: Collection[Key]) -> list[Key]:
    """The order of new HashMap(map), where map iterates over these keys in this order."""
    if not keys:
        return []
    size, wanted = 1, int(len(keys) / 0.75 + 1)
    while size < wanted:
        size *= 2
    return _by_bucket(keys, size)


def _by_bucket(keys: Collection[Key], size: int) -> list[Key]:
    def bucket(key: Key) -> int:
        hashed = key & 0xFFFFFFFF if isinstance(key, int) else string_hash(key)
        return (hashed ^ hashed >> 16) & (size - 1)

    ordered: Callable[[Key], int] = bucket
    return sorted(keys, key=ordered)


def string_hash(text: str) -> int:
    """String.hashCode, as an unsigned number."""
    hashed = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        hashed = (31 * hashed + int.from_bytes(data[at : at + 2], "big")) & 0xFFFFFFFF
    return hashed
