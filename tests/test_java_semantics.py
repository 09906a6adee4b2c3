"""The order of Java's and Scala's hash tables: as Kafka's tools printed them."""

from __future__ import annotations

import pytest

from kwire.java_semantics import computed_order, java_hash, scala_order, topic_partition_hash

pytestmark = pytest.mark.quick


def test_hashes() -> None:
    assert (java_hash(""), java_hash("a"), java_hash("hello")) == (0, 97, 99162322)
    assert java_hash("😀") == 31 * 0xD83D + 0xDE00
    assert java_hash("polygenelubricants") == 1 << 31
    assert topic_partition_hash("a", 0) == 1058


def test_computed_order() -> None:
    """Buckets in order; within one, what computeIfAbsent added last is first."""
    assert computed_order(["b", "a", "q", "A"]) == ["A", "q", "a", "b"]
    assert computed_order(["a", "q"]) == ["q", "a"] and computed_order(["q", "a"]) == ["a", "q"]
    many = [chr(ord("a") + at) for at in range(13)]
    assert computed_order([*many, "A"]) == ["A", *many]


def order(*sets: tuple[str, int]) -> str:
    """TransactionMetadata.topicPartitions after sets of partitions 0 to n - 1 were added to it."""
    items = [(topic, number) for topic, count in sets for number in range(count)]
    ordered = scala_order(items, lambda item: topic_partition_hash(*item), [count for _, count in sets])
    return " ".join(f"{topic}-{number}" for topic, number in ordered)


def test_scala_order() -> None:
    """As kafka-dump-log 4.0.1 and 3.9.1 printed them."""
    assert order(("a", 3), ("b", 1)) == "a-2 a-1 a-0 b-0"
    assert order(("t0", 1), ("t1", 6)) == "t1-5 t1-4 t1-3 t1-2 t0-0 t1-1 t1-0"
    assert order(("t0", 1), ("t1", 6), ("t2", 11)) == (
        "t2-10 t2-9 t2-8 t2-7 t1-5 t2-6 t1-4 t2-5 t1-3 t2-4 t1-2 t2-3 t0-0 t1-1 t2-2 t1-0 t2-1 t2-0"
    )
    assert order(("t0", 1), ("t1", 6), ("t2", 11), ("t3", 16)).startswith("t3-0 t3-15 t3-14 t3-13 t3-12 t2-10 ")
    assert scala_order([5, 3, 1], lambda item: item) == [1, 3, 5]
    assert scala_order(range(12), lambda item: item << 4) == list(range(0, 12, 2)) + list(range(1, 12, 2))
