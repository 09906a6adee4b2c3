"""Threads that share an iterator of storage get each item once; one that is busy raises."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from kwire import CorruptBatchError
from kwire.shared_iterator import SharedIterator, shared, shared_groups
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


def test_groups_are_taken_in_turn() -> None:
    @shared_groups
    def groups() -> Iterator[Iterator[int]]:
        yield iter((1, 2))
        yield iter(())
        yield iter((3,))

    iterator = groups()
    assert list(iterator) == [1, 2, 3] and list(iterator) == []


def test_eight_threads_get_each_item_of_a_group_once() -> None:
    def slowly(number: int) -> int:
        if number % 7 == 0:
            time.sleep(0.0001)  # lets other threads come to it, which find the group, or its end
        return number

    @shared_groups
    def groups() -> Iterator[Iterator[int]]:
        for first in range(0, 2000, 20):
            yield map(slowly, range(first, first + 20))

    iterator = groups()
    taken: list[list[int]] = [[] for _ in range(8)]
    with hasty():
        together(lambda number: taken[number].extend(iterator), 8)
    assert sorted(one for part in taken for one in part) == list(range(2000))


def test_the_generator_gets_what_an_iterator_of_it_raises() -> None:
    caught: list[BaseException] = []

    def failing(error: BaseException) -> Iterator[int]:
        yield 1
        raise error

    @shared_groups
    def groups(error: BaseException) -> Iterator[Iterator[int]]:
        try:
            yield failing(error)
        except ValueError as error:
            caught.append(error)
            raise RuntimeError("located") from error

    for error, comes in ((ValueError("mine"), RuntimeError), (KeyboardInterrupt(), KeyboardInterrupt)):
        iterator = groups(error)
        assert next(iterator) == 1
        with pytest.raises(comes) as found:
            next(iterator)
        assert list(iterator) == []
        assert found.value is error or found.value.__cause__ is error
    assert len(caught) == 1


def test_a_generator_that_goes_on_after_an_error_gives_its_next_group() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise ValueError("mine")

    @shared_groups
    def groups() -> Iterator[Iterator[int]]:
        try:
            yield failing()
        except ValueError:
            yield iter((7, 8))
        yield iter((9,))

    assert list(groups()) == [1, 7, 8, 9]


def test_a_record_that_is_damaged_is_an_error_with_its_file(tmp_path: Path) -> None:
    first = batch(0, 3)
    path = write_segment(tmp_path / "t-0", 0, [first, batch(3, 3)], indexes=False)
    with path.open("r+b") as file:
        file.seek(len(first) + 61)
        file.write(b"\x7e")  # the length of the first record: more than the batch has
    iterator = LogDirectory(tmp_path).read(verify_crc=False)
    assert [next(iterator).offset for _ in range(3)] == [0, 1, 2]
    with pytest.raises(CorruptBatchError) as error:
        next(iterator)
    assert error.value.file == str(path)


def test_groups_that_are_no_iterators_raise() -> None:
    with pytest.raises(TypeError, match="no iterators"):
        list(SharedIterator(iter([[1]]), grouped=True))  # type: ignore[list-item]


def test_a_finalizer_that_asks_for_the_next_item() -> None:
    """It comes when a group is dropped, before the next one is taken: none is lost."""
    class Asks:
        def __del__(self) -> None:
            got.extend(islice(items, 1))

    class Group:
        def __init__(self, asks: Any, *numbers: int) -> None:
            self.asks, self.numbers = asks, iter(numbers)

        def __iter__(self) -> Group:
            return self

        def __next__(self) -> int:
            return next(self.numbers)

    def groups() -> Iterator[Group]:
        yield Group(Asks(), 1, 2)
        yield Group(None, 3, 4, 5)
        yield Group(None, 6, 7)

    got: list[int] = []
    items: SharedIterator[int] = SharedIterator(groups(), grouped=True)
    for item in items:
        got.append(item)
    assert sorted(got) == [1, 2, 3, 4, 5, 6, 7]
