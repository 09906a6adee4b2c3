"""Threads that share an iterator of storage get each item once; one that is busy raises."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.shared_iterator import SharedIterator, shared
from kwire.storage import LogDirectory
from tests.hostile.races import hasty, together
from tests.storage.making import batch, write_segment

pytestmark = pytest.mark.quick


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for base in (0, 300):
        write_segment(tmp_path / "t-0", base, [batch(base + 3 * at, 3) for at in range(100)])
    return tmp_path


@pytest.mark.parametrize(("begin", "key", "count"), [
    (lambda one: one.segments[0].read(), lambda item: item.offset, 300),
    (lambda one: one.segments[0].batches(), lambda item: item.base_offset, 100),
    (lambda one: one.segments[0].headers(), lambda item: item.position, 100),
    (lambda one: one.segments[0].column_batches(rows=3), lambda item: item["offset"].to_numpy().tolist()[0], 100),
    (lambda one: one.read(), lambda item: item.offset, 600),
    (lambda one: one.batches(), lambda item: item.base_offset, 200),
    (lambda one: one["t", 0].read(), lambda item: item.offset, 600),
    (lambda one: one["t", 0].column_batches(rows=3), lambda item: item["offset"].to_numpy().tolist()[0], 200),
], ids=["read", "batches", "headers", "pieces", "all", "all batches", "partition", "partition's pieces"])  # fmt: skip
def test_eight_threads_get_each_item_once(
    begin: Callable[[LogDirectory], Iterator[Any]], key: Callable[[Any], int], count: int, folder: Path
) -> None:
    iterator = begin(LogDirectory(folder))
    taken: list[list[int]] = [[] for _ in range(8)]
    with hasty():
        together(lambda number: taken[number].extend(key(one) for one in iterator), 8)
    items = [one for part in taken for one in part]
    assert len(items) == count and len(set(items)) == count


def test_an_iterator_called_inside_itself_raises(folder: Path) -> None:
    iterator: Any = None
    with pytest.raises(RuntimeError, match="is making an item already"):
        iterator = LogDirectory(folder).segments[0].column_batches(rows=3, progress=lambda _: next(iterator))
        list(iterator)
    assert list(iterator) == []


def test_an_error_of_the_items_comes_through_and_ends_them() -> None:
    @shared
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("mine")

    iterator = items()
    assert next(iterator) == 1
    with pytest.raises(ValueError, match="mine"):
        next(iterator)
    assert list(iterator) == []


def test_an_iterator_that_is_closed_ends() -> None:
    ended: list[bool] = []

    @shared
    def items() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            ended.append(True)

    iterator = items()
    assert next(iterator) == 1
    iterator.close()
    assert list(iterator) == [] and ended == [True]


def test_a_child_of_fork_raises_where_another_thread_was_inside() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        inside.set()
        go_on.wait(30)
        yield 1

    iterator = SharedIterator(items())
    thread = threading.Thread(target=lambda: next(iterator), daemon=True)
    thread.start()
    assert inside.wait(30)
    child = os.fork()
    if not child:
        try:
            next(iterator)
        except RuntimeError:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    go_on.set()
    thread.join(30)


def test_one_that_was_made_without_items_raises() -> None:
    with pytest.raises(TypeError, match="without its items"):
        next(SharedIterator.__new__(SharedIterator))
