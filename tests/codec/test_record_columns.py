"""kwire.columns as its users have it: pyarrow, polars, duckdb, numpy, the buffer protocol; committed, control, bad."""

from __future__ import annotations

import gc
import itertools
import re
import struct
from datetime import UTC, datetime

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pytest

import kwire
from kwire import messages
from kwire_c.columns import gather

pytestmark = pytest.mark.quick

T = 1_700_000_000_000
RECORDS = [
    (T, b"k0", b"value of some length", [("h", b"1"), ("n", None)]),
    (T + 1, None, b"x"),
    (T + 5, b"", None, [("", b"")]),
]
FIXED = {
    "offset": ("q", "int64"), "timestamp": ("q", "datetime64[ms]"), "timestamp_type": ("b", "int8"),
    "sequence": ("i", "int32"), "producer_id": ("q", "int64"), "producer_epoch": ("h", "int16"),
    "partition_leader_epoch": ("i", "int32"), "batch_position": ("q", "int64"), "source": ("i", "int32"),
    "codec": ("b", "int8"), "is_control": ("?", "bool"),
}
ALL = (*FIXED, "key", "value", "headers")


@pytest.fixture(scope="module")
def data() -> bytes:
    plain = kwire.build_batch(RECORDS, base_offset=10, producer_id=7, producer_epoch=2, base_sequence=4,
                              partition_leader_epoch=3)  # fmt: skip
    return plain + kwire.build_batch(RECORDS, codec="zstd", base_offset=20, timestamp_type="log_append")


def test_every_field_as_arrow(data):
    table = pyarrow.table(kwire.columns([data, data], ALL))
    assert table.schema == pyarrow.schema([
        ("offset", pyarrow.int64()), ("timestamp", pyarrow.timestamp("ms", "UTC")), ("timestamp_type", pyarrow.int8()),
        ("sequence", pyarrow.int32()), ("producer_id", pyarrow.int64()), ("producer_epoch", pyarrow.int16()),
        ("partition_leader_epoch", pyarrow.int32()), ("batch_position", pyarrow.int64()), ("source", pyarrow.int32()),
        ("codec", pyarrow.dictionary(pyarrow.int8(), pyarrow.string())), ("is_control", pyarrow.bool_()),
        ("key", pyarrow.binary()), ("value", pyarrow.binary()),
        ("headers", pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))),
    ])  # fmt: skip
    first, last = table.to_pylist()[0], table.to_pylist()[-1]
    second = len(data) - kwire.read_batches(data).__next__().size
    assert first == {
        "offset": 10, "timestamp": datetime.fromtimestamp(T / 1000, UTC), "timestamp_type": 0, "sequence": 4,
        "producer_id": 7, "producer_epoch": 2, "partition_leader_epoch": 3, "batch_position": 0, "source": 0,
        "codec": "none", "is_control": False, "key": b"k0", "value": b"value of some length",
        "headers": [{"key": "h", "value": b"1"}, {"key": "n", "value": None}],
    }
    assert last == {
        "offset": 22, "timestamp": datetime.fromtimestamp((T + 5) / 1000, UTC), "timestamp_type": 1, "sequence": -1,
        "producer_id": -1, "producer_epoch": -1, "partition_leader_epoch": -1, "batch_position": len(data) - second,
        "source": 1, "codec": "zstd", "is_control": False, "key": b"", "value": None,
        "headers": [{"key": "", "value": b""}],
    }


@pytest.mark.parametrize("name", FIXED)
def test_fixed_width_columns_have_the_buffer_protocol_and_numpy(data, name):
    column = kwire.columns(data, [name])[name]
    code, kind = FIXED[name]
    view = memoryview(column)
    assert (view.format, view.shape, view.strides, view.readonly) == (code, (6,), (view.itemsize,), True)
    assert struct.calcsize(code) == view.itemsize
    array = column.to_numpy()
    assert array.dtype == kind and not array.flags.writeable and not array.flags.owndata
    listed = pyarrow.array(column)
    decoded = listed.indices if name == "codec" else listed
    assert view.tolist() == (decoded.cast(pyarrow.int64()) if name == "timestamp" else decoded).to_pylist()
    assert array.view("int64" if name == "timestamp" else kind).tolist() == view.tolist()
    del column
    gc.collect()
    assert len(view.tobytes()) == 6 * view.itemsize


@pytest.mark.parametrize("views", [False, True])
def test_other_columns_give_numpy_objects_and_no_buffer(data, views):
    columns = kwire.columns(data, ["key", "value", "headers"], views=views)
    assert columns["key"].to_numpy().tolist() == [b"k0", None, b""] * 2
    assert columns["value"].to_numpy().tolist() == [b"value of some length", b"x", None] * 2
    assert columns["headers"].to_numpy().tolist() == [(("h", b"1"), ("n", None)), (), (("", b""),)] * 2
    with pytest.raises(BufferError, match="'value' is not a single fixed-width buffer"):
        memoryview(columns["value"])
    assert columns["value"].null_count == columns["key"].null_count == 2
    assert pyarrow.array(columns["value"]).type == (pyarrow.binary_view() if views else pyarrow.binary())


def test_numpy_and_pandas_take_a_column_for_an_array() -> None:
    """Also one without a buffer, which they took for one object."""
    data = kwire.build_batch([(1, b"k", b"v" * 20, [("h", b"x")]), (2, None, b"w" * 20)])
    columns = kwire.columns(data, ["key", "headers", "offset"])
    assert numpy.asarray(columns["key"]).tolist() == [b"k", None]
    assert numpy.asarray(columns["headers"]).tolist() == [(("h", b"x"),), ()]
    assert numpy.asarray(columns["offset"], dtype="float32").tolist() == [0.0, 1.0]
    assert pandas.Series(columns["key"]).tolist() == list(columns["key"]) == [b"k", None]
    assert pandas.DataFrame({name: columns[name] for name in ("key", "offset")}).shape == (2, 2)
    two = gather([data, data], ("timestamp", "value"), max_batch_bytes=1 << 20, chunk_bytes=60)["timestamp"]
    assert "2 chunks" in repr(two) and numpy.asarray(two).tolist() == [1, 2, 1, 2]
    named = kwire.columns_of("MetadataResponse", 1, [kwire.encode(messages.MetadataResponse(controller_id=7), 1)])
    assert numpy.asarray(named["message"]).tolist()[0]["controller_id"] == 7


def test_numpy_1_knows_no_copy_as_needed(monkeypatch):
    """Its array() refuses copy=None, the default of numpy 2, and asarray() passes no copy."""
    made = numpy.array

    def array(value, dtype=None, *, copy=True):
        if copy is None:
            raise ValueError("NoneType copy mode not allowed.")
        return made(value, dtype=dtype, copy=copy)

    columns = kwire.columns(kwire.build_batch([(1, b"k", b"v")]), ["key", "offset"])
    monkeypatch.setattr(numpy, "array", array)
    assert columns["key"].__array__().tolist() == [b"k"]
    assert columns["offset"].__array__("float32", copy=True).tolist() == [0.0]


def test_a_table_of_columns_reads_like_one(data):
    columns = kwire.columns(data, ["value", "offset"])
    assert (len(columns), columns.names, list(columns), "value" in columns, "key" in columns) == (
        6, ("value", "offset"), ["value", "offset"], True, False,
    )
    column = columns["offset"]
    assert (column.name, len(column), repr(column)) == ("offset", 6, "<Column 'offset': 6 rows in 1 chunks>")
    assert columns.nbytes >= 6 * 8 + 2 * len(b"value of some lengthx")
    assert pyarrow.schema(columns).names == ["value", "offset"]
    assert pyarrow.field(column).type == pyarrow.int64()
    assert pyarrow.chunked_array(column).to_pylist() == [10, 11, 12, 20, 21, 22]
    with pytest.raises(KeyError, match="key"):
        columns["key"]


def test_polars_and_duckdb(data):
    frame = polars.DataFrame(kwire.columns(data))
    assert frame["offset"].to_list() == [10, 11, 12, 20, 21, 22]
    assert polars.Series(kwire.columns(data)["value"]).to_list()[:3] == [b"value of some length", b"x", None]
    relation = duckdb.arrow(pyarrow.table(kwire.columns(data, views=True)))
    assert relation.aggregate("sum(octet_length(value))").fetchall() == [(2 * 21,)]


def test_no_rows():
    columns = kwire.columns(b"", ALL)
    assert len(columns) == 0 and pyarrow.table(columns).num_rows == 0
    assert columns["offset"].to_numpy().tolist() == columns["headers"].to_numpy().tolist() == []
    assert memoryview(columns["is_control"]).shape == (0,)
    assert len(kwire.columns([], views=True)) == 0


def test_wrong_fields(data):
    with pytest.raises(ValueError, match="unknown column 'nope': expected one of offset, timestamp"):
        kwire.columns(data, ["nope"])
    with pytest.raises(ValueError, match="duplicate field"):
        kwire.columns(data, ["key", "key"])
    with pytest.raises(TypeError):
        kwire.columns("text")


def test_inputs_of_every_kind_of_buffer(data):
    for form in (data, bytearray(data), memoryview(data), pyarrow.py_buffer(data), numpy.frombuffer(data, numpy.uint8)):
        for views in (False, True):
            columns = kwire.columns([form, form], views=views)
            table = pyarrow.table(columns)
            del columns
            gc.collect()
            assert table["value"].to_pylist() == [b"value of some length", b"x", None] * 4


def transaction(producer, offset, *values):
    records = [(T, None, value) for value in values]
    return kwire.build_batch(records, base_offset=offset, transactional=True, producer_id=producer, producer_epoch=0)


def marker(producer, offset, kind, codec="none"):
    key = struct.pack(">hh", 0, {"ABORT": 0, "COMMIT": 1}[kind])
    return kwire.build_batch([(T, key, struct.pack(">hi", 0, 0))], base_offset=offset, transactional=True, control=True,
                             producer_id=producer, producer_epoch=0, codec=codec)  # fmt: skip


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_committed_leaves_out_aborted_transactions(views, codec):
    log = [
        transaction(1, 0, b"aborted"), transaction(2, 1, b"kept"), marker(1, 2, "ABORT", codec),
        transaction(1, 3, b"kept too"), marker(2, 4, "COMMIT", codec), marker(1, 5, "COMMIT", codec),
        kwire.build_batch([(T, None, b"plain")], base_offset=6), transaction(1, 7, b"gone"), marker(1, 8, "ABORT"),
        transaction(2, 9, b"open"),
    ]

    def values(data, **options):
        return pyarrow.table(kwire.columns(data, ["value"], views=views, **options))["value"].to_pylist()

    for data in (b"".join(log), log, [b"".join(log[:4]), b"".join(log[4:])]):
        assert values(data, committed=True) == [b"kept", b"kept too", b"plain", b"open"]
        assert len(values(data)) == 6
        assert len(values(data, control=True)) == 10
        markers = [value for value in values(data, committed=True, control=True) if value == struct.pack(">hi", 0, 0)]
        assert len(markers) == 4
    control = kwire.columns(log, ["offset", "is_control"], control=True)
    found = zip(control["offset"].to_numpy().tolist(), control["is_control"].to_numpy().tolist(), strict=True)
    assert [offset for offset, yes in found if yes] == [2, 4, 5, 8]
    damaged = bytearray(b"".join(log))
    damaged[len(log[0]) + len(log[1]) + 70] ^= 1  # the first abort marker: a bad batch tells nothing
    assert values(damaged, committed=True, errors="keep") == [b"aborted", b"kept", b"kept too", b"plain", b"open"]


def test_header_keys_that_are_no_utf8():
    """As Python replaces what is malformed, but one U+FFFD for a surrogate, also for a cut one, as Java.

    (tests/oracle asks Java itself.)
    """
    starts = bytes.fromhex("41 80 c1 c2 df e0 e1 ed ef f0 f1 f4 f5")
    seconds = bytes.fromhex("6f 7f 80 8f 90 9f a0 af bf cf ff")
    keys = [bytes(key) for key in itertools.product(starts, seconds, b"A\x80\xbf", b"\x80\xc3")]
    batch = kwire.build_batch([(0, None, None, [(f"{number:04}", None) for number in range(len(keys))])])
    for number, key in enumerate(keys):  # a length of 4, the key, a null
        batch = batch.replace(b"\x08%04d\x01" % number, b"\x08" + key + b"\x01")
    surrogate = re.compile(rb"(?<![\xc2-\xf4])\xed[\xa0-\xbf][\x80-\xbf]?")
    expected = [surrogate.sub(b"\xff", key).decode("utf-8", "replace") for key in keys]
    (headers,) = pyarrow.table(kwire.columns(batch, ["headers"], verify_crc=False))["headers"].to_pylist()
    assert [header["key"] for header in headers] == expected
    ((record,),) = kwire.read_batches(batch, verify_crc=False)
    assert [key for key, _ in record.headers] == expected


def test_partial_last_batches_and_bad_ones(data):
    torn = data[:-5]
    size = next(iter(kwire.read_batches(data))).size
    columns = kwire.columns([data, torn])
    assert (len(columns), columns.tail) == (9, (size, len(torn) - size))
    assert kwire.columns(data).tail is None
    for inputs in (torn, [data, torn]):
        with pytest.raises(kwire.CorruptBatchError):
            kwire.columns(inputs, strict_tail=True)
    damaged = bytearray(data)
    damaged[70] ^= 1
    with pytest.raises(kwire.CorruptBatchError) as raised:
        kwire.columns(damaged)
    assert (raised.value.position, raised.value.offset) == (0, 10)
    kept = kwire.columns(damaged, errors="keep")
    assert len(kept) == 3 and [(bad.position, bytes(bad.raw)) for bad in kept.bad] == [(0, bytes(damaged[:size]))]
    assert len(kwire.columns(damaged, verify_crc=False)) == 6


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_old_formats(codec):
    for magic in (0, 1):
        records = [(T + index, None, b"%d" % index) for index in range(10)]
        log = b"".join(kwire.build_batch([record], magic=magic, base_offset=i) for i, record in enumerate(records))
        log += kwire.build_batch(records, magic=magic, codec=codec, base_offset=10)
        for views in (False, True):
            fields = ["offset", "timestamp_type", "value", "headers", "is_control"]
            table = pyarrow.table(kwire.columns(log, fields, views=views))
            assert set(table["is_control"].to_pylist()) == {False}
            assert table["offset"].to_pylist() == list(range(20))
            assert set(table["timestamp_type"].to_pylist()) == {(-1, 0)[magic]}
            assert table["value"].to_pylist() == [b"%d" % index for index in range(10)] * 2


def test_sequences_where_offsets_wrap() -> None:
    """A base offset of 2^63 - 1, which no checksum covers: found by the fuzzers as signed overflow."""
    data = bytearray(kwire.build_batch([(0, None, b"v")] * 3, base_sequence=(1 << 31) - 2))
    data[:8] = ((1 << 63) - 1).to_bytes(8, "big")
    wanted = [(1 << 31) - 2, (1 << 31) - 1, 0]
    assert kwire.columns(data, ("sequence",))["sequence"].to_numpy().tolist() == wanted
    assert [record.sequence for batch in kwire.read_batches(data) for record in batch] == wanted


@pytest.mark.parametrize("places", [(), [(0, 0)], [(0, 0)] * 3])
def test_a_place_for_each_input(places: list[tuple[int, int]]) -> None:
    """Of too few, others were read out of bounds."""
    with pytest.raises(ValueError, match="expected a place for each of 2 inputs"):
        gather([b"", b""], ("offset",), max_batch_bytes=1 << 20, places=places)
