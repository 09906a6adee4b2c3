"""Eight threads on shared inputs, classes, iterators and columns: every answer is the one that a single thread gets."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import kwire
from tests.hostile import inputs, races
from tests.hostile.races import THREADS, together
from tests.hostile.samples import pairs, samples

ROUNDS = 12


@pytest.fixture(autouse=True)
def changing() -> Iterator[None]:
    with races.hasty():
        yield


def records_of(batch: Any) -> list[tuple[Any, ...]]:
    return [(r.offset, r.timestamp, bytes(r.key or b""), bytes(r.value or b""), r.headers) for r in batch]


def read(data: bytes) -> list[Any]:
    found: list[Any] = []
    for batch in kwire.read_batches(data, errors="keep", verify_crc=False):
        found.append(str(batch.error) if isinstance(batch, kwire.BadBatch) else records_of(batch))
    return found


def table(data: Any, views: bool = False) -> Any:
    import pyarrow

    fields = ("offset", "timestamp", "key", "value", "headers")
    made = pyarrow.table(kwire.columns(data, fields, errors="keep", verify_crc=False, views=views))
    return made.set_column(1, "timestamp", made["timestamp"].cast("int64")).to_pylist()


def test_messages() -> None:
    """Plans and classes are made at first use: all threads come to each pair at once, damaged bytes among them."""
    dice = random.Random(8)
    chosen = dice.sample(pairs(), 250)
    cases = [(pair, data) for pair in chosen for data in (samples(pair)[0], samples(pair)[-1], samples(pair)[0][:-1])]

    def outcome(pair: tuple[str, int], data: bytes) -> Any:
        try:
            message = kwire.decode(*pair, data)
        except kwire.KwireError as error:
            return str(error)
        assert kwire.encode(message, pair[1]) == data
        return kwire.to_json(message, pair[1])

    wanted: dict[int, Any] = {}

    def work(number: int) -> None:
        order = list(range(len(cases)))
        random.Random(number // 2).shuffle(order)  # two threads each in the same order
        for at in order:
            found = outcome(*cases[at])
            assert wanted.setdefault(at, found) == found

    together(work)
    assert len(wanted) == len(cases)


def test_batches_and_columns() -> None:
    """Shared bytes; the codecs' contexts and the buffers that columns keep are shared too."""
    chosen = [data for _, data in inputs.vectors() if len(data) <= inputs.SMALL][::3]
    wanted = [(read(data), table(data)) for data in chosen]

    def work(number: int) -> None:
        for turn in range(ROUNDS // 4):
            for at in range(number, len(chosen), 2):
                if (turn + at) % 2:
                    assert read(chosen[at]) == wanted[at][0]
                else:
                    assert table(chosen[at], views=at % 3 == 0) == wanted[at][1]

    together(work)


def test_one_iterator() -> None:
    """Threads that share an iterator of batches, or of records, get each item once."""
    one = kwire.build_batch([(n, b"k%d" % n, b"v" * 50) for n in range(40)])
    for _ in range(ROUNDS):
        data = one * 100
        batches, taken = kwire.read_batches(data), Counter[int]()
        lists: list[list[int]] = [[] for _ in range(THREADS)]

        def work(number: int, batches: Any = batches, lists: list[list[int]] = lists) -> None:
            lists[number] += [batch.position for batch in batches]

        together(work)
        for found in lists:
            taken.update(found)
        assert taken == Counter(range(0, len(data), len(one)))
    for _ in range(ROUNDS):
        (batch,) = kwire.read_batches(kwire.build_batch([(n, None, b"%d" % n) for n in range(5000)], codec="gzip"))
        lists = [[] for _ in range(THREADS)]
        records = iter(batch)

        def take(number: int, records: Any = records, lists: list[list[int]] = lists) -> None:
            lists[number] += [record.offset for record in records]

        together(take)
        assert sorted(offset for found in lists for offset in found) == list(range(5000))


def test_one_batch() -> None:
    """Heads of records are read at first use: all threads come to a fresh batch at once."""
    rows = [(n, b"key", b"value %d" % n, [("h", b"x")]) for n in range(300)]
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        data = kwire.build_batch(rows, codec=codec)
        (wanted,) = read(data)
        for _ in range(ROUNDS):
            (batch,) = kwire.read_batches(data)
            found: list[Any] = [None] * THREADS

            def work(number: int, batch: Any = batch, found: list[Any] = found) -> None:
                found[number] = (len(batch), records_of(batch))

            together(work)
            assert found == [(300, wanted)] * THREADS


def test_one_record_and_one_message() -> None:
    """Keys, values, headers and views are made when first looked at, whoever looks."""
    data = kwire.build_batch([(0, b"k" * 100, b"v" * 100_000, [("h", b"x" * 100)])])
    response = kwire.encode(kwire.messages.FetchSnapshotResponse(), 0)
    for _ in range(ROUNDS * 20):
        ((record,),) = kwire.read_batches(data)
        message = kwire.decode("FetchSnapshotResponse", 0, response)
        found: list[Any] = [None] * THREADS

        def work(number: int, record: Any = record, message: Any = message, found: list[Any] = found) -> None:
            found[number] = (record.key, record.value, record.headers, repr(message), record == record)

        together(work)
        assert found == [found[0]] * THREADS


def test_building() -> None:
    rows = [(n, b"key %d" % n, b"value" * 20, [("h", None)]) for n in range(200)]
    wanted = {codec: kwire.build_batch(rows, codec=codec) for codec in ("none", "gzip", "snappy", "lz4", "zstd")}

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            for codec, data in wanted.items():
                assert kwire.build_batch(rows, codec=codec) == data
                assert kwire.crc32c(data) == kwire.crc32c(memoryview(data))

    together(work)


def test_an_input_that_changes_meanwhile() -> None:
    """Bytes that another thread writes to may give anything but a crash: columns run without the interpreter's lock."""
    batch = kwire.build_batch([(n, b"k%d" % n, b"v" * 40, [("h", b"x")]) for n in range(200)])
    area = bytearray(batch * 50)
    size, stop = len(area), threading.Event()

    def spoil() -> None:
        dice = random.Random(1)
        while not stop.is_set():
            at = dice.randrange(size)
            kept = area[at]
            area[at] = dice.randrange(256)
            area[at] = kept

    def work(number: int) -> None:
        for turn in range(ROUNDS):
            try:
                if (number + turn) % 2:
                    table = kwire.columns(area, ("offset", "key", "value", "headers"), errors="keep", verify_crc=False)
                    len(table)
                else:
                    read(area)  # type: ignore[arg-type]
            except kwire.KwireError:
                pass

    spoiler = threading.Thread(target=spoil)
    spoiler.start()
    try:
        together(work)
    finally:
        stop.set()
        spoiler.join()
