"""build_batches: the batches that build_batch makes of the same rows, from every Arrow type and library."""

from __future__ import annotations

import ctypes
import functools
import itertools
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import duckdb
import pandas
import polars
import pyarrow as pa
import pytest

import kwire
from tests.hostile import arrow_tables
from tests.signals import handled

pytestmark = pytest.mark.quick

T = 1_700_000_000_000
PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def some_rows(count: int, seed: int = 1) -> list[Row]:
    dice = random.Random(seed)

    def content(most: int) -> bytes | None:
        return dice.choice([None, b"", dice.randbytes(dice.randrange(most))])

    return [
        (T + dice.randrange(-(1 << 40), 1 << 40), content(60), content(400),
         [(f"é{i}" * dice.randrange(3), content(30)) for i in range(dice.choice([0, 0, 1, 3]))])
        for _ in range(count)
    ]  # fmt: skip


def table(rows: list[Any], binary: pa.DataType | None = None, pairs: pa.DataType = PAIRS) -> pa.Table:
    times, keys, values, headers = zip(*rows, strict=True) if rows else ([], [], [], [])
    return pa.table(
        {
            "timestamp": pa.array(times, pa.int64()),
            "key": pa.array(keys, binary or pa.binary()),
            "value": pa.array(values, binary or pa.binary()),
            "headers": pa.array(headers, pairs),
        }
    )


def check(made: list[tuple[bytes, int, int]], rows: list[Any], first_offset: int = 0, **options: Any) -> None:
    """Each batch is what build_batch makes of its rows; together they are all rows."""
    at = 0
    for batch, first, count in made:
        assert (first, count > 0) == (at, True)
        assert batch == kwire.build_batch(rows[at : at + count], base_offset=first_offset + at, **options)
        at += count
    assert at == len(rows)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("batch_bytes", [1, 700, 16 << 10, 2**31 - 65])
def test_batches_are_those_of_build_batch(codec, batch_bytes):
    rows = some_rows(300)
    made = kwire.build_batches(table(rows), codec=codec, batch_bytes=batch_bytes, base_offset=5)
    check(made, rows, 5, codec=codec)
    assert (len(made) == len(rows)) == (batch_bytes == 1)
    for batch, _, count in made:
        records = list(next(kwire.read_batches(batch)))
        plain = sum(len(kwire.build_batch([r])) - 61 for r in records)  # a little more than they take together
        assert count == 1 or plain < batch_bytes + 10 * count + 61


def test_a_batch_takes_rows_until_it_would_be_larger():
    rows = [(T, None, b"x" * 100, [])] * 1000
    made = kwire.build_batches(table(rows))
    sizes = [len(batch) for batch, _, _ in made]
    assert all(16384 - 110 < size <= 16384 for size in sizes[:-1]) and sizes[-1] <= 16384
    exactly = len(kwire.build_batch(rows[:10]))
    assert [count for _, _, count in kwire.build_batches(table(rows[:20]), batch_bytes=exactly)] == [10, 10]
    assert [count for _, _, count in kwire.build_batches(table(rows[:20]), batch_bytes=exactly - 1)] == [9, 9, 2]
    assert [count for _, _, count in kwire.build_batches(table(rows[:20]), batch_records=7)] == [7, 7, 6]


def test_one_row_always_fits():
    rows = [(T, b"k", b"v" * size, []) for size in (10, 50_000, 10, 3 << 20, 10)]
    check(kwire.build_batches(table(rows)), rows)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_magic_0_and_1(magic, codec):
    rows = [(stamp if magic else -1, key, value) for stamp, key, value, _ in some_rows(100)]
    source = pa.table({"timestamp": pa.array([r[0] for r in rows]), "key": pa.array([r[1] for r in rows], pa.binary()),
                       "value": pa.array([r[2] for r in rows], pa.binary())})  # fmt: skip
    made = kwire.build_batches(source, magic=magic, codec=codec, batch_bytes=900)
    assert len(made) > 5
    check(made, rows, magic=magic, codec=codec)
    with pytest.raises(kwire.EncodeError, match="does not support record headers"):
        kwire.build_batches(table([(T, None, None, [("a", b"")])]), magic=magic)


def test_producer_state_goes_on_from_batch_to_batch():
    rows, start = some_rows(50), 2**31 - 20
    made = kwire.build_batches(table(rows), batch_records=7, producer_id=9, producer_epoch=3, base_sequence=start,
                               transactional=True, partition_leader_epoch=4)  # fmt: skip
    for batch, first, _ in made:
        head = next(kwire.read_batches(batch))
        assert (head.producer_id, head.producer_epoch, head.is_transactional) == (9, 3, True)
        assert head.partition_leader_epoch == 4
        assert head.base_sequence == (start + first) % 2**31  # DefaultRecordBatch.incrementSequence
    plain = kwire.build_batches(table(rows), batch_records=7)
    assert {next(kwire.read_batches(batch)).base_sequence for batch, _, _ in plain} == {-1}
    horizon, *_ = kwire.build_batches(table(rows), delete_horizon=T)
    assert next(kwire.read_batches(horizon[0])).delete_horizon == T
    appended, *_ = kwire.build_batches(table(rows), timestamp_type="log_append")
    assert next(kwire.read_batches(appended[0])).timestamp_type == "log_append"


def test_what_columns_gives_comes_back():
    rows = some_rows(500)
    data = b"".join(batch for batch, _, _ in kwire.build_batches(table(rows), batch_bytes=3000))
    for views in (False, True):
        columns = kwire.columns(data, ("offset", "timestamp", "key", "value", "headers"), views=views)
        assert b"".join(batch for batch, _, _ in kwire.build_batches(columns, batch_bytes=3000)) == data


def test_offsets_of_a_column():
    offsets = [3, 4, 9, 9 + 2**31 - 1, 2**40, 2**63 - 1]
    source = pa.table({"value": pa.array([b"v"] * 6, pa.binary()), "offset": offsets})
    made = kwire.build_batches(source)
    assert [(first, count) for _, first, count in made] == [(0, 3), (3, 1), (4, 1), (5, 1)]
    assert [r.offset for batch, _, _ in made for r in next(kwire.read_batches(batch))] == offsets
    compacted, _, _ = kwire.build_batches(source.slice(0, 3), base_sequence=5, producer_id=1, producer_epoch=0)[0]
    assert compacted == kwire.build_batch(
        [kwire.Record(offset, -1, None, b"v") for offset in offsets[:3]], base_offset=3, base_sequence=5, producer_id=1,
        producer_epoch=0,
    )  # fmt: skip
    falling = pa.table({"value": pa.array([b"v"] * 3, pa.binary()), "offset": [5, 6, 6]})
    with pytest.raises(kwire.EncodeError, match=r"offset\[2\].*not ascending"):
        kwire.build_batches(falling)
    with pytest.raises(kwire.EncodeError, match=r"offset\[1\].*null"):
        kwire.build_batches(pa.table({"value": pa.array([b"v"] * 2, pa.binary()), "offset": [5, None]}))
    with pytest.raises(kwire.EncodeError, match="base_offset"):
        kwire.build_batches(falling, base_offset=1)
    with pytest.raises(kwire.EncodeError, match=r"offset\[2\].*no offset is left"):
        kwire.build_batches(pa.table({"value": pa.array([b"v"] * 3, pa.binary())}), base_offset=2**63 - 2)


TIMES = {
    pa.timestamp("ms", "UTC"): [5, -5, None], pa.timestamp("s"): [5, -5, None], pa.timestamp("us"): [5, -5, None],
    pa.timestamp("ns", "Europe/Berlin"): [1_500_000, -1, None], pa.int64(): [5, -5, None],
}  # fmt: skip


@pytest.mark.parametrize("kind", TIMES, ids=str)
def test_timestamps_of_every_unit_are_milliseconds(kind):
    numbers = TIMES[kind]
    unit = getattr(kind, "unit", "ms")
    wanted = [-1 if n is None else n * 1000 if unit == "s" else n // {"ms": 1, "us": 1000, "ns": 1_000_000}[unit]
              for n in numbers]  # fmt: skip
    times = pa.array(numbers, pa.int64()).cast(kind)
    source = pa.table({"value": pa.array([b""] * 3, pa.binary()), "timestamp": times})
    batch, _, _ = kwire.build_batches(source)[0]
    assert [r.timestamp for r in next(kwire.read_batches(batch))] == wanted


def test_no_timestamp_is_minus_one():
    batch, _, _ = kwire.build_batches(pa.table({"value": pa.array([b"v"], pa.binary())}))[0]
    assert batch == kwire.build_batch([(-1, None, b"v")])
    nothing = pa.table({"value": pa.nulls(2), "key": pa.nulls(2), "timestamp": pa.nulls(2), "headers": pa.nulls(2)})
    assert kwire.build_batches(nothing) == [(kwire.build_batch([(-1, None, None)] * 2), 0, 2)]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)], ids=str)
def test_bytes_of_every_layout(kind):
    dice = random.Random(2)
    lengths = [3] if kind == pa.binary(3) else [0, 3, 12, 13, 40]
    values = [dice.choice([None, dice.randbytes(dice.choice(lengths))]) for _ in range(200)]
    rows = [(T, value, value, []) for value in values]
    whole = table(rows, kind)
    check(kwire.build_batches(whole, batch_bytes=500), rows)
    check(kwire.build_batches(whole.slice(31, 77), batch_bytes=500), rows[31:108])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_text_is_its_utf8(kind):
    texts = ["", None, "plain", "ünïcode that is longer than twelve bytes", "\U0001f600"]
    source = pa.table({"key": pa.array(texts, kind), "value": pa.array(texts, kind)})
    batch, _, _ = kwire.build_batches(source)[0]
    wanted = [None if text is None else text.encode() for text in texts]
    assert [(r.key, r.value) for r in next(kwire.read_batches(batch))] == [(w, w) for w in wanted]


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        pa.large_list(pa.struct([("value", pa.large_binary()), ("more", pa.int32()), ("key", pa.large_string())])),
        pa.map_(pa.string(), pa.binary()),
    ],
    ids=["list", "large list", "map"],
)
def test_headers_of_every_layout(pairs):
    rows = some_rows(120)
    headers = [[{"key": k, "value": v, "more": 1} for k, v in r[3]] if "more" in str(pairs) else r[3] for r in rows]
    source = table(rows).set_column(3, "headers", pa.array(headers, pairs))
    check(kwire.build_batches(source, batch_bytes=900), rows)
    check(kwire.build_batches(source.slice(17, 60), batch_bytes=900), rows[17:77])


def test_a_batch_goes_on_over_arrays_of_a_stream():
    rows = some_rows(97)
    pieces = [table(rows[a:b]) for a, b in itertools.pairwise([0, 1, 1, 30, 31, 90, 97])]
    check(kwire.build_batches(pa.concat_tables(pieces), batch_records=10), rows)
    reader = pa.RecordBatchReader.from_batches(pieces[0].schema, (b for p in pieces for b in p.to_batches()))
    check(kwire.build_batches(reader, batch_bytes=4000), rows)
    assert kwire.build_batches(table(rows).slice(0, 0)) == []


def test_one_array_alone():
    rows = some_rows(40)
    whole = table(rows).to_batches()[0]
    check(kwire.build_batches(whole), rows)
    struct = pa.StructArray.from_arrays(whole.columns, names=whole.schema.names)

    class Alone:
        def __arrow_c_array__(self, requested_schema=None):
            return struct.slice(3, 20).__arrow_c_array__()

    check(kwire.build_batches(Alone()), rows[3:23])


def test_tables_of_other_libraries():
    rows = [(T + i, b"k%d" % i, b"v%d" % i) for i in range(1000)]
    source = pa.table({"timestamp": pa.array([r[0] for r in rows], pa.timestamp("ms", "UTC")),
                       "key": [r[1] for r in rows], "value": [r[2] for r in rows]})  # fmt: skip
    relation = duckdb.sql("select * from source")
    for other in (polars.from_arrow(source), pandas.DataFrame(source.to_pandas()), relation):
        check(kwire.build_batches(other), rows)
    frame = pandas.DataFrame({"value": ["a", "b"], "timestamp": [datetime(2026, 1, 1, tzinfo=UTC)] * 2})
    batch, _, count = kwire.build_batches(frame)[0]
    assert count == 2 and {r.timestamp for r in next(kwire.read_batches(batch))} == {1_767_225_600_000}


def headed(headers: list[Any]) -> pa.Table:
    return pa.table({"value": [b"v"], "headers": pa.array([headers], PAIRS)})


WRONG: list[tuple[Any, type[Exception], str]] = [
    ([(1, b"k", b"v")], TypeError, "__arrow_c_stream__"),
    (pa.table({"key": [b"k"]}), kwire.EncodeError, "value: column is missing"),
    (pa.table({"value": [1]}), kwire.EncodeError, "value: expected binary or string, got Arrow type 'l'"),
    (pa.table({"value": pa.array(["a"]).dictionary_encode()}), kwire.EncodeError, "dictionary.*decode it"),
    (pa.table({"value": [b"v"], "timestamp": [1.5]}), kwire.EncodeError, "timestamp.*'g'"),
    (pa.table({"value": [b"v"], "offset": pa.array([1], pa.int32())}), kwire.EncodeError, "offset"),
    (pa.table({"value": [b"v"], "headers": [[1]]}), kwire.EncodeError, "list of structs"),
    (pa.table({"value": [b"v"], "headers": [[{"key": "a"}]]}), kwire.EncodeError, "without key or value"),
    (pa.table([[b"a"], [b"b"]], names=["value", "value"]), kwire.EncodeError, "duplicate column"),
    (pa.chunked_array([[b"v"]]), kwire.EncodeError, "a table or a struct"),
    (pa.table({"value": [b"v"], "timestamp": pa.array([2**61], pa.timestamp("s"))}), kwire.EncodeError, "64 bits"),
    (headed([(None, b"x")]), kwire.EncodeError, "header key is null"),
    (headed([None]), kwire.EncodeError, "a header is null"),
]


@pytest.mark.parametrize(("source", "error", "words"), WRONG, ids=[words for *_, words in WRONG])
def test_what_is_no_table_of_records(source, error, words):
    with pytest.raises(error, match=words):
        kwire.build_batches(source)


@pytest.mark.parametrize(
    "options",
    [{"batch_bytes": 0}, {"batch_bytes": 2**31}, {"batch_records": 0}, {"base_offset": 2**63}, {"codec": "lzma"},
     {"magic": 3}, {"magic": 1, "codec": "zstd"}, {"magic": 0, "producer_id": 1}, {"timestamp_type": "none"}],
    ids=str,
)  # fmt: skip
def test_options_that_no_batch_can_have(options):
    with pytest.raises(kwire.EncodeError):
        kwire.build_batches(pa.table({"value": [b"v"]}), **options)


def test_a_null_row():
    null = pa.StructArray.from_arrays([pa.array([b"a", b"b"])], ["value"], mask=pa.array([False, True]))

    class Alone:
        def __arrow_c_array__(self, requested_schema=None):
            return null.__arrow_c_array__()

    with pytest.raises(kwire.EncodeError, match=r"columns\[1\]: the row is null"):
        kwire.build_batches(Alone())


def test_errors_name_the_row_of_the_whole_table():
    good, bad = table([(T, None, b"v", [])] * 10), table([(T, None, b"v", [("x", b"")])] * 3)
    bad = bad.set_column(3, "headers", pa.array([[], [(None, b"x")], []], PAIRS))
    with pytest.raises(kwire.EncodeError, match=r"headers\[11\]"):
        kwire.build_batches(pa.concat_tables([good, bad]))


def test_streams_that_fail():
    def batches():
        yield from table(some_rows(5)).to_batches()
        raise OSError("the disk\x1b[2J is gone")

    reader = pa.RecordBatchReader.from_batches(table(some_rows(1)).schema, batches())
    with pytest.raises(kwire.EncodeError, match=r"the disk\\x1b\[2J is gone"):
        kwire.build_batches(reader)

    class Twice:
        def __init__(self):
            self.capsule = table(some_rows(3)).__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    twice = Twice()
    assert kwire.build_batches(twice)
    with pytest.raises(kwire.EncodeError, match="already read"):
        kwire.build_batches(twice)

    class NoCapsule:
        def __arrow_c_stream__(self, requested_schema=None):
            return b"stream"

    with pytest.raises(TypeError, match="capsule"):
        kwire.build_batches(NoCapsule())


def test_arrays_whose_offsets_lie():
    for first, last in ((-5, 3), (8, 4)):
        spans = (ctypes.c_int32 * 3)(0, first, last)
        lying = pa.Array.from_buffers(pa.binary(), 2, [None, pa.py_buffer(bytes(spans)), pa.py_buffer(b"x" * 9)])
        with pytest.raises(kwire.EncodeError, match=r"columns\[[01]\].*offsets"):
            kwire.build_batches(pa.table({"value": lying}))
    lists = (ctypes.c_int32 * 4)(0, 1, 2_000_000_000, 1)
    item = pa.array([{"key": "a", "value": b"b"}], PAIRS.value_type)
    lying = pa.Array.from_buffers(PAIRS, 3, [None, pa.py_buffer(bytes(lists))], children=[item])
    with pytest.raises(kwire.EncodeError, match=r"columns\[1\].*offsets"):
        kwire.build_batches(pa.table({"value": [b"a", b"b", b"c"], "headers": lying}))


@pytest.mark.parametrize("layout", [pa.binary(), pa.large_string(), pa.binary_view()])
def test_bytes_without_a_buffer(layout):
    """The array says that its values have bytes, and gives none."""
    value = "x" * 20 if layout == pa.large_string() else b"x" * 20
    lying = Capsules(pa.array([{"value": value}], pa.struct([("value", layout)])))
    lying.clear_buffer(0, 2)
    with pytest.raises(kwire.EncodeError, match="offsets"):
        kwire.build_batches(lying)


@pytest.mark.parametrize("of_child", [False, True])
def test_a_type_without_a_format(of_child):
    lying = Capsules(pa.array([{"value": b"x"}]))
    lying.clear_format(of_child)
    with pytest.raises(kwire.EncodeError, match="got Arrow type"):
        kwire.build_batches(lying)


def test_headers_that_another_thread_changes():
    """The lengths are written to while they are read: wrong batches or an EncodeError, never bytes past the end."""
    spans = (ctypes.c_int32 * 2001)(*range(0, 20010, 10))
    keys = pa.Array.from_buffers(
        pa.string(), 2000, [None, pa.foreign_buffer(ctypes.addressof(spans), 8004, spans), pa.py_buffer(b"x" * 40000)]
    )
    pairs = pa.StructArray.from_arrays([keys, pa.array([b"v"] * 2000)], ["key", "value"])
    headers = pa.ListArray.from_arrays(pa.array(range(2001), pa.int32()), pairs)
    source = pa.table({"value": [b"v"] * 2000, "headers": headers})
    ended = threading.Event()

    def write() -> None:
        while not ended.is_set():
            for i in range(1, 2000):
                spans[i] = i * 10 + i % 9
            for i in range(1, 2000):
                spans[i] = i * 10

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            try:
                kwire.build_batches(source, batch_bytes=1 << 20)
            except kwire.EncodeError as error:
                assert "changed" in str(error) or "offsets" in str(error)
    finally:
        ended.set()
        writer.join()


@pytest.mark.parametrize(("offsets", "codec"), [([-3, -2], "gzip"), ([-1, 0], "lz4"), ([-5, 4], "snappy")])
def test_negative_offsets_in_a_wrapper(offsets, codec):
    """Readers of magic 1 would take them for others, or refuse the batch."""
    source = pa.table({"value": [b"a", b"b"], "offset": offsets})
    records = [kwire.Record(offset=offset, value=b"a") for offset in offsets]
    with pytest.raises(kwire.EncodeError, match=f"cannot represent offsets from {offsets[0]} to {offsets[1]}"):
        kwire.build_batches(source, magic=1, codec=codec)
    with pytest.raises(kwire.EncodeError, match="cannot represent offsets"):
        kwire.build_batch(records, magic=1, codec=codec, base_offset=offsets[0])
    with pytest.raises(kwire.EncodeError, match="cannot represent offsets"):
        kwire.build_batch([kwire.Record(offset=0, value=b"a")], magic=1, codec=codec, base_offset=9)
    for form in ({"magic": 0, "codec": codec}, {"magic": 1}, {"magic": 2, "codec": codec}):
        batches = b"".join(batch for batch, _, _ in kwire.build_batches(source, **form))
        assert kwire.columns(batches)["offset"].to_numpy().tolist() == offsets


def test_two_threads():
    rows = some_rows(2000)
    source, wanted = table(rows), kwire.build_batches(table(rows), batch_bytes=1 << 20)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(kwire.build_batches(source, batch_bytes=1 << 20)))
               for _ in range(8)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 8


def test_an_array_of_no_rows_gives_no_batches() -> None:
    assert kwire.build_batches(pa.array([], type=pa.struct([("value", pa.binary())]))) == []


def test_an_interrupt_in_the_callers_generator_stays_one() -> None:
    """pyarrow makes a failed stream of it, which says it in its text: a program that goes on after errors went on."""
    schema = pa.schema([("value", pa.binary())])

    def batches(error: BaseException, before: BaseException | None = None) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([b"x"])], schema=schema)
        if before is None:
            raise error
        try:
            raise before
        except BaseException:
            raise error  # noqa: B904

    for error, expected in ((KeyboardInterrupt(), KeyboardInterrupt), (KeyboardInterrupt("by user"), KeyboardInterrupt),
                            (MemoryError(), MemoryError), (ValueError("no KeyboardInterrupt"), kwire.EncodeError),
                            (ValueError("x\nKeyboardInterrupt"), kwire.EncodeError)):
        with pytest.raises(expected):
            kwire.build_batches(pa.RecordBatchReader.from_batches(schema, batches(error)))
    for error, before, kind in ((KeyboardInterrupt(), ValueError("x"), KeyboardInterrupt),
                                (ValueError("x"), KeyboardInterrupt(), kwire.EncodeError)):
        with pytest.raises(kind):
            kwire.build_batches(pa.RecordBatchReader.from_batches(schema, batches(error, before)))


def test_a_first_chunk_of_no_rows_and_no_buffers() -> None:
    """It was taken for one without offsets: base_offset was ignored without a word, and offsets below 0 refused."""
    empty, offsets = pa.Array.from_buffers(pa.int64(), 0, [None, None]), pa.array([-5, -4])
    source = pa.table({"offset": pa.chunked_array([empty, offsets]),
                       "value": pa.chunked_array([pa.array([], pa.binary()), pa.array([b"x", b"y"])])})
    [(batch, first, count)] = kwire.build_batches(source)
    assert (first, count) == (0, 2) and kwire.columns(batch)["offset"].to_pylist() == [-5, -4]
    with pytest.raises(kwire.EncodeError, match="base_offset cannot be given with a column of offsets"):
        kwire.build_batches(source, base_offset=3)


@pytest.mark.parametrize(("name", "kind"), [
    ("value", pa.int32()), ("key", pa.float64()), ("timestamp", pa.string()), ("offset", pa.int32()),
    ("headers", pa.list_(pa.binary())), ("headers", pa.list_(pa.struct([("key", pa.string())]))),
    ("headers", pa.map_(pa.string(), pa.int8()))])
def test_types_of_a_table_without_rows_are_checked(name: str, kind: pa.DataType) -> None:
    columns = {"value": pa.binary(), name: kind}
    for empty in (pa.schema(columns).empty_table(), pa.RecordBatchReader.from_batches(pa.schema(columns), [])):
        with pytest.raises(kwire.EncodeError, match=name):
            kwire.build_batches(empty)


def test_lists_of_headers_that_are_all_empty() -> None:
    """Made of Python objects, as pandas does, they have no type."""
    lists = pa.table({"value": [b"a", b"b"], "headers": pa.array([[], None], pa.list_(pa.null()))})
    assert kwire.build_batches(lists) == kwire.build_batches(lists.drop_columns("headers"))
    with pytest.raises(kwire.EncodeError, match="headers: expected a list of structs"):
        kwire.build_batches(pa.table({"value": [b"a"], "headers": pa.array([[None]], pa.list_(pa.null()))}))


def test_a_table_without_rows_lacks_a_column() -> None:
    with pytest.raises(kwire.EncodeError, match="value: column is missing"):
        kwire.build_batches(pa.table({"key": pa.array([], pa.binary())}))
    untyped = pa.table({name: pa.nulls(0) for name in ("offset", "timestamp", "key", "value", "headers")})
    assert kwire.build_batches(untyped) == []  # what an empty table of pandas is


class Capsules:
    """What hands out an array whose structs in C were changed."""

    def __init__(self, array: pa.Array, given: int = 2) -> None:
        self.capsules = (*array.__arrow_c_array__(), None)[:given]

    def __arrow_c_array__(self, requested: Any = None) -> Any:
        return self.capsules

    def pointer(self, number: int, name: bytes) -> int:
        """The address of one of the structs."""
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        return pointer(self.capsules[number], name)

    def clear_format(self, of_child: bool) -> None:
        """Make the format of ArrowSchema, or of that of its first child, NULL."""
        struct = self.pointer(0, b"arrow_schema")
        if of_child:
            struct = ctypes.c_void_p.from_address(ctypes.c_void_p.from_address(struct + 40).value).value
        ctypes.c_void_p.from_address(struct).value = None

    def array(self, *path: int | None) -> int:
        """The address of ArrowArray, or of that of a child, of its child and so on."""
        struct = self.pointer(1, b"arrow_array")
        for child in path:
            if child is not None:
                children = ctypes.c_void_p.from_address(struct + CHILDREN).value
                struct = ctypes.c_void_p.from_address(children + 8 * child).value
        return struct

    def clear_buffer(self, child: int, number: int) -> None:
        """Make the pointer to a buffer of a child NULL."""
        buffers = ctypes.c_void_p.from_address(self.array(child) + 40).value
        ctypes.c_void_p.from_address(buffers + 8 * number).value = None

    def change(self, at: int, value: int, *path: int | None) -> None:
        """Write a 64-bit number into ArrowArray, or into that of a child."""
        ctypes.c_int64.from_address(self.array(*path) + at).value = value


LENGTH, NULL_COUNT, OFFSET, CHILDREN, RELEASE = 0, 8, 16, 48, 64  # of ArrowArray


@pytest.mark.parametrize(
    ("offset", "child"), [(1, None), (2**62, None), (2**63 - 1, None), (-1, None), (1, 0), (2**63 - 1, 0), (-1, 0)]
)
def test_offsets_past_the_end_of_an_array_are_refused(offset: int, child: int | None) -> None:
    source = Capsules(pa.array([{"value": b"v"}, {"value": b"w"}]))
    source.change(OFFSET, offset, child)
    if (offset, child) == (1, 0):
        source.change(LENGTH, 1, 0)
    with pytest.raises(kwire.EncodeError, match="the Arrow array has"):
        kwire.build_batches(source)


def test_a_released_child_is_refused() -> None:
    source = Capsules(pa.array([{"value": b"v"}]))
    source.change(RELEASE, 0, 0)
    with pytest.raises(kwire.EncodeError, match="was released"):
        kwire.build_batches(source)


def one_row() -> arrow_tables.Node:
    """A table of values and headers, which releases itself whatever its structs say."""
    ends = bytes(4) + b"\1\0\0\0"
    key, data, value = (
        arrow_tables.Node(form, name, 1, 0, [None, ends, b"v"])
        for form, name in ((b"u", b"key"), (b"z", b"value"), (b"z", b"value"))
    )
    pairs = arrow_tables.Node(b"+s", b"item", 1, 0, [None], [key, data])
    headers = arrow_tables.Node(b"+l", b"headers", 1, 0, [None, ends], [pairs])
    return arrow_tables.Node(b"+s", b"", 1, 0, [None], [value, headers])


@pytest.mark.parametrize("member", ["buffers", "children"])
@pytest.mark.parametrize("number", range(6))
def test_missing_lists_of_buffers_and_children_are_refused(number: int, member: str) -> None:
    table = one_row()
    node = list(table.every())[number]
    if member == "children" and not node.children:
        assert kwire.build_batches(table)
        return
    node.wrong[member] = None
    with pytest.raises(kwire.EncodeError, match=r"lacks its buffers|children that do not match"):
        kwire.build_batches(table)


@pytest.mark.parametrize("kind", ["schema", "array"])
@pytest.mark.parametrize("number", [0, 2, 3])
@pytest.mark.parametrize("only_one", [False, True])
def test_missing_children_are_refused(number: int, kind: str, only_one: bool) -> None:
    """The list of children, or the last one of them."""
    table = one_row()
    node = list(table.every())[number]
    make = getattr(node, kind)

    def lacking() -> int:
        address: int = make()
        place = address + (40 if kind == "schema" else CHILDREN)
        if only_one:
            place = ctypes.c_void_p.from_address(place).value + 8 * (len(node.children) - 1)
        ctypes.c_void_p.from_address(place).value = None
        return address

    setattr(node, kind, lacking)
    with pytest.raises(kwire.EncodeError, match="children that do not match"):
        kwire.build_batches(table)


@pytest.mark.parametrize("path", [(), (0,), (1,), (1, 0), (1, 0, 0)])
def test_nulls_without_a_validity_buffer_are_refused(path: tuple[int, ...]) -> None:
    """Which rows are null nobody can say; pyarrow refuses such an array too."""
    rows = pa.struct([("value", pa.binary()), ("headers", PAIRS)])
    source = Capsules(pa.array([{"value": b"v", "headers": [{"key": "k", "value": b"h"}]}], rows))
    source.change(NULL_COUNT, 1, *path)
    with pytest.raises(kwire.EncodeError, match="1 nulls, but no validity buffer"):
        kwire.build_batches(source)


@pytest.mark.parametrize("at", [0, 8, 16])  # get_schema, get_next, get_last_error
def test_a_stream_that_lacks_a_function_is_refused(at: int) -> None:
    capsule = pa.table({"value": [b"v"]}).__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    ctypes.c_void_p.from_address(pointer(capsule, b"arrow_array_stream") + at).value = None

    class Lacking:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return capsule

    with pytest.raises(kwire.EncodeError, match="lacks a function"):
        kwire.build_batches(Lacking())


def test_an_array_is_two_capsules() -> None:
    with pytest.raises(TypeError, match="two Arrow capsules"):
        kwire.build_batches(Capsules(pa.array([{"value": b"v"}]), given=3))


def test_views_past_their_buffer_are_refused() -> None:
    values = pa.array([b"v" * 20, b"w" * 20], pa.binary_view())
    views = bytearray(values.buffers()[1])
    views[12:16] = (25).to_bytes(4, "little")
    broken = pa.Array.from_buffers(pa.binary_view(), 2, [None, pa.py_buffer(bytes(views)), *values.buffers()[2:]])
    with pytest.raises(kwire.EncodeError, match="point outside"):
        kwire.build_batches(pa.table({"value": broken}))


def test_a_header_key_that_there_is_no_memory_for() -> None:
    """Its UTF-8 is made when it is written: no memory for that was said to be a lone surrogate."""
    script = """
import importlib
import kwire
_testcapi = importlib.import_module("_testcapi")
keys = ["\u00e9" * 1000 + str(n) for n in range(20)]
kwire.build_batch([(1, b"k", b"v", [(keys[0], b"x")])])
for n in range(1, 20):
    _testcapi.set_nomemory(n, n + 1)
    try:
        kwire.build_batch([(1, b"k", b"v", [(keys[n], b"x")])])
    except MemoryError:
        pass
    finally:
        _testcapi.remove_mem_hooks()
"""
    pytest.importorskip("_testcapi")
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_smallest_base_offset(magic: int) -> None:
    """It was taken for the one after 2^63 - 1."""
    made = kwire.build_batches(pa.table({"value": [b"a", b"b"]}), base_offset=-(2**63), magic=magic)
    rows: list[Any] = [(-1, None, b"a"), (-1, None, b"b")]
    assert made == [(kwire.build_batch(rows, base_offset=-(2**63), magic=magic), 0, 2)]
    assert kwire.build_batches(pa.table({"value": [b"a"]}), base_offset=2**63 - 1, magic=magic)
    with pytest.raises(kwire.EncodeError, match="no offset is left"):
        kwire.build_batches(pa.table({"value": [b"a", b"b"]}), base_offset=2**63 - 1, magic=magic)


@pytest.mark.parametrize(("magic", "rows"), [(1, 3_000_000), (2, 20_000_000)])
@pytest.mark.parametrize("from_table", [False, True])
def test_signals_are_handled_while_one_batch_is_written(magic: int, rows: int, from_table: bool) -> None:
    """They waited for its end, where the many become one: six seconds in a batch of 1.7 GB."""
    if from_table:
        write = functools.partial(
            kwire.build_batches, pa.table({"value": pa.nulls(rows)}), batch_bytes=1 << 30, magic=magic)
    else:
        write = functools.partial(kwire.build_batch, [(1, None, None)] * rows, magic=magic)
    assert handled(write) > 5  # at most 3 without it
