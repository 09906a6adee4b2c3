"""The order in which hash tables of Java and Scala give what is in them: Kafka's tools print sets and maps so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")

_FIRST_SIZE = 16
_SMALL_SET = 4  # items of the largest immutable set that is no hash table


def java_hash(text: str) -> int:
    """String.hashCode, unsigned."""
    value = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def topic_partition_hash(topic: str, partition: int) -> int:
    """TopicPartition.hashCode, unsigned."""
    return (31 * (31 + partition) + java_hash(topic)) & 0xFFFFFFFF


def java_order(keys: Iterable[str]) -> list[str]:
    """Different strings in the order of a java.util.HashMap to which computeIfAbsent added them one after the other."""
    found = list(keys)
    size = _FIRST_SIZE
    while 4 * len(found) > 3 * size:
        size *= 2
    return sorted(found[::-1], key=lambda key: _spread(java_hash(key)) & (size - 1))  # it adds to the head of a bucket


def scala_order(items: Iterable[T], hash_of: Callable[[T], int], groups: Sequence[int] = ()) -> list[T]:
    """Different items in the order of a scala.collection.mutable.HashSet or HashMap to which they were added.

    hash_of: hashCode, unsigned; groups: how many of them each were added as one set; the others came one by one.
    """
    found = list(items)
    size, count = _FIRST_SIZE, 0
    for number in [*groups, *[1] * (len(found) - sum(groups))]:
        while number > 1 and 4 * (number + 1) > 3 * size:
            size *= 2
        for _ in range(number if number <= _SMALL_SET else 0):  # a larger set is added without a look at the size
            count += 1
            if 4 * count >= 3 * size:
                size *= 2
        count += number if number > _SMALL_SET else 0
    hashes = [_spread(hash_of(item)) for item in found]
    order = sorted(range(len(found)), key=lambda at: (hashes[at] & (size - 1), (hashes[at] ^ 1 << 31)))
    return [found[at] for at in order]


def _spread(value: int) -> int:
    """The hash that the table uses."""
    return value ^ value >> 16
