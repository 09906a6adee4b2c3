"""What Java's own classes do, where Kafka's tools show it: numbers, paths, the order of hash tables (Scala's too)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
Key = TypeVar("Key", str, int)

_INT = re.compile(r"[+-]?\d{1,400}")  # as Java, of any script
_DOUBLE = re.compile(r"[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_HEX_DOUBLE = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?", re.ASCII)
_LONGEST_DOUBLE = 400  # characters
_TRIMMED = "".join(map(chr, range(33)))  # what String.trim takes away
_FIRST_SIZE = 16
_SMALL_SET = 4  # items of the largest immutable set that is no hash table


def java_int(text: str, bits: int = 32) -> int:
    """The number that Integer.parseInt or Short.parseShort reads. Raises ValueError."""
    if not _INT.fullmatch(text):
        raise ValueError(f"not a number of {bits} bits")
    value = int(text)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"not a number of {bits} bits")
    return value


def java_double(text: str) -> float:
    """The number that Double.parseDouble reads. Raises ValueError."""
    if len(text) <= _LONGEST_DOUBLE and _DOUBLE.fullmatch(text):
        return float(text if text.endswith(("Infinity", "NaN")) else text.rstrip("fFdD"))
    if len(text) <= _LONGEST_DOUBLE and _HEX_DOUBLE.fullmatch(text):
        try:
            return float.fromhex(text.rstrip("fFdD"))
        except OverflowError:
            return float("-inf" if text.startswith("-") else "inf")
    raise ValueError("not a number")


def java_trim(text: str) -> str:
    """String.trim: without blanks and control characters at both ends."""
    return text.strip(_TRIMMED)


def java_path(text: str) -> str:
    """A path as java.nio.file.Path and java.io.File show it: no double slash, none at the end."""
    path = re.sub(r"/+", "/", text)
    return path if path == "/" else path.rstrip("/")


def java_hash(text: str) -> int:
    """String.hashCode, unsigned."""
    value = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def topic_partition_hash(topic: str, partition: int) -> int:
    """TopicPartition.hashCode, unsigned."""
    return (31 * (31 + partition) + java_hash(topic)) & 0xFFFFFFFF


def put_order(keys: Collection[Key]) -> list[Key]:
    """The order of a new HashMap (or a HashSet of at most 12) in which the keys were put one after another."""
    return _by_bucket(keys, _put_size(len(keys)))


def computed_order(keys: Iterable[Key]) -> list[Key]:
    """The order of a HashMap to which computeIfAbsent added the keys: it adds to the head of a bucket."""
    found = list(keys)[::-1]
    return _by_bucket(found, _put_size(len(found)))


def copy_order(keys: Collection[Key]) -> list[Key]:
    """The order of new HashMap(map), where map iterates over these keys in this order."""
    if not keys:
        return []
    size, wanted = 1, int(len(keys) / 0.75 + 1)
    while size < wanted:
        size *= 2
    return _by_bucket(keys, size)


def _put_size(count: int) -> int:
    size = _FIRST_SIZE
    while 4 * count > 3 * size:
        size *= 2
    return size


def _by_bucket(keys: Collection[Key], size: int) -> list[Key]:
    def bucket(key: Key) -> int:
        return _spread(key & 0xFFFFFFFF if isinstance(key, int) else java_hash(key)) & (size - 1)

    ordered: Callable[[Key], int] = bucket
    return sorted(keys, key=ordered)


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
