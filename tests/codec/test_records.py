"""Records as objects, and what build_batch refuses: each refusal names the record or the argument."""

from __future__ import annotations

import copy
import gc
import mmap
import pickle
import struct
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

import kwire
from kwire import Record

pytestmark = pytest.mark.quick
FULL = Record(7, 1000, b"k", b"v", (("h", b"x"), ("n", None)), timestamp_type="log_append", sequence=3, attributes=1)


def test_a_record_made_by_hand_is_one_that_was_read() -> None:
    made = Record(5, 99, b"k", None, [("h", b"x")])
    (batch,) = kwire.read_batches(kwire.build_batch([made], base_offset=5))
    (read,) = batch
    assert (read, hash(read), repr(read)) == (made, hash(made), repr(made)) and read != FULL and made != 5
    assert repr(made) == "Record(offset=5, timestamp=99, key=b'k', value=None, headers=(('h', b'x'),))"
    assert repr(FULL).endswith("timestamp_type='log_append', sequence=3, attributes=1)")
    assert batch.is_valid() and bytes(batch.raw) == kwire.build_batch([read], base_offset=5)
    assert repr(batch).startswith("<RecordBatch magic=2 codec='none' offset=5..5 count=1 position=0")
    for record in (made, FULL, read, Record()):
        again = pickle.loads(pickle.dumps(record))
        assert (again, again.attributes, again.timestamp_type) == (record, record.attributes, record.timestamp_type)
    assert Record(timestamp_type="none").timestamp_type == "none"
    with pytest.raises(ValueError, match="not 'other'"):
        Record(timestamp_type="other")


@pytest.mark.parametrize("magic,codec", [(2, "none"), (2, "gzip"), (1, "gzip"), (0, "none")])
def test_the_size_without_compression(magic: int, codec: str) -> None:
    records = [(at, b"k", b"value" * 100) for at in range(20)][:20 if codec != "none" or magic == 2 else 1]
    packed, plain = (next(iter(kwire.read_batches(kwire.build_batch(records, magic=magic, codec=one))))
                     for one in (codec, "none"))  # fmt: skip
    entries = kwire.build_batch(records, magic=magic)
    assert packed.plain_size == len(entries) and plain.size <= packed.plain_size


def test_offsets_of_records_without_one_go_on() -> None:
    mixed = [(1, None, b"a"), Record(-1, 2, None, b"b"), [3, None, b"c"], Record(20, 4, None, b"d"), (5, None, b"e")]
    (batch,) = kwire.read_batches(kwire.build_batch(mixed, base_offset=10))
    assert [record.offset for record in batch] == [10, 11, 12, 20, 21] and batch.last_offset == 21
    headers: dict[str, Any] = {"a": b"1", "b": None}
    (batch,) = kwire.read_batches(kwire.build_batch([(0, None, None, headers)]))
    assert next(iter(batch)).headers == (("a", b"1"), ("b", None))


@pytest.mark.parametrize("records,options,path,reason", [
    ([(1 << 63, None, b"")], {}, "records[0].timestamp", "64 bits"),
    ([(0, None, b""), (0, b"")], {}, "records[1]", "got 2 values"),
    ([Record(5), Record(5)], {}, "records[1].offset", "following previous offset 5"),
    ([Record(1 << 40)], {"last_offset": 0}, "records[0].offset", "too far from the base offset"),
    ([(0, None, b"", [("\ud800", b"")])], {}, "records[0].headers", "cannot be encoded as UTF-8"),
    ([(0, None, b"", [("h", b"")])], {"magic": 1}, "records[0].headers", "magic 1 does not support record headers"),
    ([], {"magic": 0}, "records", "do not support empty batches"),
    ([], {"base_offset": 1 << 63}, "base_offset", "not between"),
    ([], {"producer_epoch": 32768}, "producer_epoch", "not between"),
    ([], {"base_sequence": -(1 << 31) - 1}, "base_sequence", "not between"),
    ([], {"last_offset": 1 << 40}, "last_offset", "too far from the base offset"),
    ([], {"delete_horizon": 5, "base_timestamp": 6}, "base_timestamp", "differs from delete_horizon"),
])
def test_what_no_batch_can_hold(records: Any, options: dict[str, Any], path: str, reason: str) -> None:
    with pytest.raises(kwire.EncodeError, match=reason) as caught:
        kwire.build_batch(records, **options)
    assert caught.value.path == path


def test_sizes_that_no_length_can_tell() -> None:
    """2 GiB of pages that nobody touches."""
    with mmap.mmap(-1, 1 << 31) as pages, memoryview(pages) as view:
        rest = view[:(1 << 31) - (1 << 19)]
        for magic in (0, 1, 2):
            with pytest.raises(kwire.EncodeError, match="key, value or header exceeds 2 GiB"):
                kwire.build_batch([(0, view, None)], magic=magic)
            with pytest.raises(kwire.EncodeError, match="batch exceeds 2 GiB") as caught:
                kwire.build_batch([(0, None, bytes(1 << 20)), (0, rest, None)], magic=magic)
            assert caught.value.path == "records[1]"
        with pytest.raises(kwire.EncodeError, match="batch exceeds 2 GiB"):
            kwire.build_batch([(0, None, view[:-1])])
        with pytest.raises(kwire.EncodeError, match="key, value or header exceeds 2 GiB"):
            kwire.build_batch([(0, None, None, [("h", view)])])
        rest.release()


class Thief:
    """A number, a row and headers that empty the list containing them while they are read."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def __index__(self) -> int:
        self.rows.clear()
        return 7

    def __iter__(self) -> Iterator[Any]:
        self.rows.clear()
        return iter(("h", bytearray(b"of a pair")))


def taken(kind: str) -> list[Any]:
    """Rows of which the third takes all of them away, and nobody else holds them."""
    rows: list[Any] = [(i, b"key %d" % i, b"value %d" % i, [("h", b"%d" % i)]) for i in range(40)]
    thief = Thief(rows)
    rows[2] = (thief, b"k", b"v") if kind == "timestamp" else (7, b"k", b"v", [thief] if kind == "pair" else thief)
    return rows


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("kind", ["timestamp", "pair"])
def test_rows_that_go_while_they_are_read(kind: str, codec: str) -> None:
    (batch,) = kwire.read_batches(kwire.build_batch(taken(kind), codec=codec))
    read = list(batch)
    assert [record.key for record in read] == [b"k" if i == 2 else b"key %d" % i for i in range(40)]
    assert [record.value for record in read] == [b"v" if i == 2 else b"value %d" % i for i in range(40)]
    assert list(read[2].headers) == ([("h", b"of a pair")] if kind == "pair" else [])
    assert list(read[39].headers) == [("h", b"39")]


class Late:
    """Empties a list when the collector of garbage finds it."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows, self.itself = rows, self

    def __del__(self) -> None:
        self.rows.clear()


@pytest.mark.parametrize("value", [bytearray(b"v" * 600), [("h", b"x")]], ids=["buffer", "list"])
def test_rows_that_a_finalizer_takes(value: Any) -> None:
    """In the middle of the copy that is made before other code runs: an error, or the whole batch."""
    seen, enabled, thresholds = set(), gc.isenabled(), gc.get_threshold()
    for more in range(6):
        rows = [(5, bytes([65 + i]) * 600, value) for i in range(3)] if isinstance(value, bytearray) else [
            [5, bytes([65 + i]) * 600, b"v", value] for i in range(3)]  # fmt: skip
        whole = kwire.build_batch(list(rows))
        gc.collect()
        gc.disable()
        held = [[] for _ in range(200)]  # type: ignore[var-annotated]
        Late(rows)
        gc.set_threshold(gc.get_count()[0] + more)
        gc.enable()
        try:
            made: object = kwire.build_batch(rows)
        except kwire.EncodeError as error:
            made = error.reason
        finally:
            gc.set_threshold(*thresholds)
            (gc.enable if enabled else gc.disable)()
        del held
        assert made in (whole, kwire.build_batch([]), "records changed while they were read"), made
        seen.add(type(made))
    assert seen


def test_a_record_that_is_not_made_stays_as_it_was() -> None:
    record = Record(key=b"a")
    for wrong in ({"headers": 5}, {"headers": [("h", 7)]}, {"sequence": 1 << 40}, {"value": 5}):
        with pytest.raises((kwire.EncodeError, TypeError, AttributeError)):
            record.__init__(key=b"x" * 5000, **wrong)  # type: ignore[misc]
        assert record == Record(key=b"a")
    empty = Record.__new__(Record)
    with pytest.raises(kwire.EncodeError):
        empty.__init__(key=b"x" * 100, value=b"y" * 100, sequence=1 << 40)  # type: ignore[misc]
    assert not empty.value


def test_offsets_end() -> None:
    last = (1 << 63) - 1
    assert kwire.build_batch([Record(last)], base_offset=last)
    for rows in ([Record(last), Record(last)], [Record(last), Record(5)], [Record(last), (0, None, None)]):
        for magic in (1, 2):
            with pytest.raises(kwire.EncodeError, match="no offset is left"):
                kwire.build_batch(rows, magic=magic, base_offset=last)


@pytest.mark.parametrize("make", [tuple, iter, lambda rows: map(list, rows)], ids=["tuple", "iterator", "lists"])
def test_rows_of_any_form(make: Any) -> None:
    rows = [(i, b"k" * i, b"v" * 40 * i, {"a": b"1", "b": None} if i % 2 else None) for i in range(9)]
    same = [(t, k, v, list(h.items()) if h else []) for t, k, v, h in rows]
    assert kwire.build_batch(make(rows)) == kwire.build_batch(same)


def test_sizes_of_all_lengths() -> None:
    """Every way in which bytes are copied."""
    rows = [(i * i * i, bytes(range(i % 256)), bytes([i % 256]) * i, [("n" * (i % 140), b"h" * (i % 70))])
            for i in range(300)]  # fmt: skip
    (batch,) = kwire.read_batches(kwire.build_batch(rows))
    assert [(r.timestamp, r.key, r.value, list(r.headers)) for r in batch] == rows


@pytest.mark.parametrize("position", [-1, 2**63 - 1, 2**63, -(2**63) - 1, 10**5000], ids=int.bit_length)
def test_positions_that_no_file_has(position: int) -> None:
    near = max(min(position, 2**63 - 1), -(2**63))  # Python refuses to write the longest
    with pytest.raises(kwire.DecodeError, match=f"invalid file position {near}"):
        kwire.read_batches(kwire.build_batch([(0, None, b"v")]), position=position)


def test_the_last_position_that_a_file_can_have() -> None:
    data = kwire.build_batch([(0, None, b"v")])
    (batch,) = kwire.read_batches(data, position=2**63 - 1 - len(data))
    assert batch.position == 2**63 - 1 - len(data)


@pytest.mark.parametrize(("name", "bits"), [("offset", 64), ("timestamp", 64), ("sequence", 32), ("attributes", 8)])
def test_numbers_that_no_record_can_carry(name: str, bits: int) -> None:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    for value in (low, high):
        expected = -1 if name == "sequence" and value < 0 else value  # none
        assert getattr(Record(**{name: value}), name) == expected
    for value in (low - 1, high + 1, 10**30, -(10**5000)):
        text = "a number past 64 bits" if value.bit_length() > 64 or bits == 64 else str(value)
        with pytest.raises(kwire.EncodeError, match=f"{name}: {text} is not between {low} and {high}"):
            Record(**{name: value})


def test_bad_batches_have_words() -> None:
    data = bytearray(kwire.build_batch([(0, None, b"v")]))
    data[-1] ^= 1
    (bad,) = kwire.read_batches(data, errors="keep")
    again = pickle.loads(pickle.dumps(bad))
    assert repr(bad) == repr(again) and repr(bad).startswith(f"<BadBatch position=0 size={len(data)}: ")
    assert (again.position, again.raw, again.source) == (0, bytes(data), 0)
    with pytest.raises(ValueError, match="errors must be 'raise' or 'keep', not 'skip'"):
        kwire.read_batches(data, errors="skip")  # type: ignore[call-overload,arg-type,unused-ignore]
    torn = kwire.build_batch([(0, None, b"v")])[:-3]
    (bad,) = kwire.read_batches(torn, errors="keep", strict_tail=True)
    assert bad.raw == torn and "the input ends inside the batch" in str(bad.error)
    with pytest.raises(kwire.CorruptBatchError, match="more needed"):
        list(kwire.read_batches(torn[:9], strict_tail=True))


@pytest.mark.parametrize("size", [12, 16, 17])
def test_a_length_that_no_batch_has_is_looked_at_after_the_magic(size: int) -> None:
    """As ByteBufferLogInputStream: before its 17 bytes are there a batch is a partial one, whatever its length."""
    data = struct.pack(">qi", 20, 2**31 - 1) + bytes(size - 12)
    batches = kwire.read_batches(data)
    if size == 17:
        with pytest.raises(kwire.CorruptBatchError, match="length"):
            list(batches)
    else:
        assert list(batches) == [] and batches.tail == (0, size)


def test_a_wrong_argument_of_any_depth() -> None:
    """Python's own repr of it raises RecursionError."""
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(ValueError, match="not <list>"):
        kwire.read_batches(b"", errors=nested)  # type: ignore[call-overload]
    with pytest.raises(kwire.EncodeError, match="got <list>"):
        kwire.build_batch([], magic=nested)  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_copy_of_a_record_keeps_its_own_bytes_alone(codec: str) -> None:
    """A record keeps its whole batch, as docs/records.md says."""
    data = kwire.build_batch([(1, b"k", b"v", [("h", b"x")]), (2, None, bytes(8 << 20))], codec=codec)
    tracemalloc.start()
    try:
        copies = [copy.copy(next(iter(next(kwire.read_batches(data[:]))))) for _ in range(4)]
        records = [next(iter(next(kwire.read_batches(bytearray(data))))) for _ in range(4)]
        assert tracemalloc.get_traced_memory()[0] > 4 * len(data)
        assert [(one.key, one.headers) for one in records] == [(b"k", (("h", b"x"),))] * 4
        assert copies == records
        del records
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
