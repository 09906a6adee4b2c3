"""decode_records in mapPartitions and records() over a binary column."""

from __future__ import annotations

import pickle
from pathlib import Path
from struct import pack_into
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kwire
from kwire_c.crc32c import crc32c
from tests.spark.logs import START, batch, damaged, marker, transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = ("offset", "timestamp", "key", "value")


def rows(*offsets: int) -> list[tuple[Any, ...]]:
    return [(n, START + n, b"k%d" % n, b"v%d" % n) for n in offsets]


@pytest.mark.quick
def test_tuples_in_order_of_fields() -> None:
    from kwire.spark import decode_records

    assert list(decode_records()([batch(0) + batch(3), None, batch(6, 1)])) == rows(*range(7))
    assert list(decode_records(("value", "offset"))([batch(5, 1)])) == [(b"v5", 5)]
    assert list(decode_records(["offset"])([batch(5, 2)])) == [(5,), (6,)]
    shared = ("producer_id", "offset", "is_control", "codec", "timestamp_type", "batch_position")
    data = batch(0, 1) + transaction(1, 7, 1) + marker(2, 7, True)
    assert list(decode_records(shared)([data])) == [
        (-1, 0, False, "none", 0, 0), (7, 1, False, "none", 0, len(batch(0, 1)))]
    assert [row[2] for row in decode_records(shared, control=True)([data])] == [False, False, True]
    assert list(decode_records(("producer_id", "codec"))([batch(0, 2, codec="gzip")])) == [(-1, "gzip")] * 2


@pytest.mark.quick
def test_rows_tuples_views_and_other_buffers_are_payloads() -> None:
    from pyspark.sql import Row

    from kwire.spark import decode_records

    data = batch(0, 1)
    for item in (data, bytearray(data), memoryview(data), pa.py_buffer(data), (data,), Row(data), Row(p=data)):
        assert list(decode_records()([item])) == rows(0)
    with pytest.raises(TypeError, match="2 columns"):
        list(decode_records()([(data, data)]))
    with pytest.raises(TypeError, match="str"):
        list(decode_records()(["text"]))


@pytest.mark.quick
@pytest.mark.parametrize("output", ["tuple", "row", "arrow"])
def test_it_pickles_and_refuses_unknown_names(output: str) -> None:
    from kwire.spark import decode_records

    decoder = pickle.loads(pickle.dumps(decode_records(output=output)))
    assert len(list(decoder([batch(0)]))) == (1 if output == "arrow" else 3)
    for wrong in ({"fields": ["ofset"]}, {"fields": "offset"}, {"fields": ["key", "key"]}, {"output": "rows"},
                  {"mode": "DROPMALFORMED"}):
        with pytest.raises(ValueError):
            decode_records(**wrong)


@pytest.mark.quick
def test_arrow_batches_of_about_ten_thousand_rows() -> None:
    from kwire.spark import decode_records

    small = [batch(n * 100, 100) for n in range(450)]
    found = list(decode_records(FIELDS, "arrow")(small))
    assert sum(part.num_rows for part in found) == 45_000
    assert all(8_000 <= part.num_rows <= 12_000 for part in found[:-1])
    assert found[0].schema.types == [pa.int64(), pa.timestamp("us", "UTC"), pa.binary(), pa.binary()]
    one_large = list(decode_records(FIELDS, "arrow")([b"".join(small)]))
    assert pa.Table.from_batches(one_large).equals(pa.Table.from_batches(found))
    assert all(8_000 <= part.num_rows <= 12_000 for part in one_large[:-1])
    assert pa.Table.from_batches(found)["key"][44_999].as_py() == b"k44999"


@pytest.mark.quick
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_arrow_equals_tuples(codec: str) -> None:
    from kwire.spark import decode_records
    from kwire.spark.schema import FIELD_TYPES

    data = [batch(0, 40, codec=codec), batch(40, 2, codec=codec, producer_id=9, producer_epoch=1, base_sequence=5)]
    fields = tuple(FIELD_TYPES)
    tables = pa.Table.from_batches(list(decode_records(fields, "arrow")(data)))
    columns = {name: tables[name].cast(pa.int64()) if name == "timestamp" else tables[name] for name in fields}
    found = [tuple(columns[name][at].as_py() for name in fields) for at in range(42)]
    where, when = fields.index("headers"), fields.index("timestamp")
    expected = []
    for row in decode_records(fields)(data):
        cells = list(row)
        cells[where] = list(cells[where])
        cells[when] *= 1000
        expected.append(tuple(cells))
    assert found == expected


@pytest.mark.quick
def test_a_damaged_length_is_one_bad_row_wherever_a_group_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    from kwire.spark import decode_records

    monkeypatch.setattr("kwire.spark.payloads.BATCH_ROWS", 1)
    bad = bytearray(batch(3))
    bad[11] -= 5  # the end of the length: no header follows there
    data = [bytearray(batch(0) + bad + batch(6)), batch(9)]
    rows = list(decode_records(FIELDS, mode="PERMISSIVE")(data))
    parts = decode_records(FIELDS, "arrow", mode="PERMISSIVE")(data)
    found = [row for part in parts for row in part.to_pylist()]
    assert [row["offset"] for row in found] == [row[0] for row in rows] == [0, 1, 2, None, 9, 10, 11]


@pytest.mark.quick
def test_groups_are_small_however_much_their_payloads_compress() -> None:
    """Kept together by their own sizes they would take gigabytes, or more than a column can hold."""
    from kwire.spark import decode_records

    fields = ("offset", "batch_position", "value")
    small = [kwire.build_batch([(START, None, bytes(3 << 20))], codec="zstd", base_offset=at) for at in range(20)]
    data = [small[0], b"".join(small[1:9]), *small[9:], damaged(batch(20, 1), 70)]
    found = []
    with pytest.raises(kwire.CorruptBatchError, match=f"at payload {len(data) - 1}, offset 20, byte 0"):
        found.extend(decode_records(fields, "arrow")(data))
    assert len(found) == 8 and all(part["value"].nbytes < 12 << 20 for part in found)  # the last two one by one
    rows = [row for part in found for row in zip(*part.to_pydict().values(), strict=True)]
    assert rows == list(decode_records(fields)(data[:-1]))


@pytest.mark.quick
def test_headers_and_extreme_timestamps() -> None:
    from kwire.spark import decode_records

    data = kwire.build_batch([(2**63 - 1, b"k", None, [("h", b"1"), ("h", None)]), (START, None, b"", [])])
    [found] = decode_records(("timestamp", "headers", "value"), "arrow")([data])
    assert found["headers"].to_pylist() == [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], []]
    assert found["timestamp"].cast(pa.int64()).to_pylist() == [None, START * 1000]
    assert found["value"].to_pylist() == [None, b""]


@pytest.mark.quick
@pytest.mark.parametrize("output", ["tuple", "row", "arrow"])
def test_bad_batches(output: str) -> None:
    from kwire.spark import decode_records

    good, bad = batch(0, 2), damaged(batch(2, 2), 80)
    data = [good, good + bad + batch(4, 1), good]
    where = f"at payload 1, offset 2, byte {len(good)}"
    with pytest.raises(kwire.CorruptBatchError, match=f"checksum.* {where}") as caught:
        list(decode_records(output=output)(data))
    assert caught.value.position == len(good) and caught.value.offset == 2
    found = list(decode_records(output=output, mode="PERMISSIVE")(data))
    if output == "arrow":
        found = [tuple(row.values()) for part in found for row in part.to_pylist()]
    assert [row[0] for row in found] == [0, 1, 0, 1, None, 4, 0, 1]
    reasons = [row[-1] for row in found if row[-1] is not None]
    assert len(reasons) == 1 and reasons[0].endswith(where)
    assert all(len(row) == 5 for row in found)


@pytest.mark.quick
def test_a_payload_of_one_batch_is_as_one_that_is_walked_over() -> None:
    from kwire.spark import decode_records

    decode = decode_records(FIELDS, "arrow", mode="PERMISSIVE")
    for at in range(len(batch(3))):
        for bit in (1, 0x80):
            data = bytearray(batch(3))
            data[at] ^= bit
            one, walked = (
                [row for part in decode([batch(0), kind(data), batch(6)]) for row in part.to_pylist()]
                for kind in (bytes, memoryview)
            )
            assert one == walked and [row["offset"] for row in one[:3]] == [0, 1, 2], (at, bit)


@pytest.mark.quick
@pytest.mark.parametrize("fields", [("producer_id",), ("codec", "is_control"), ("producer_id", "offset")])
@pytest.mark.parametrize("output", ["tuple", "row", "arrow"])
def test_fields_of_the_batch_alone_do_not_trust_its_header(output: str, fields: tuple[str, ...]) -> None:
    """A batch of 97 bytes may say that it has two billion records, with a checksum that is right."""
    from kwire.spark import decode_records

    data = bytearray(kwire.build_batch([(START, b"k", b"v")] * 3, codec="gzip"))
    pack_into(">i", data, 23, 2**31 - 2)
    pack_into(">i", data, 57, 2**31 - 1)
    pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    with pytest.raises(kwire.CorruptBatchError, match="number of records"):
        next(decode_records(fields, output)([bytes(data)]))
    large = kwire.build_batch([(START, None, bytes(99))], codec="lz4")
    with pytest.raises(kwire.LimitError):
        next(decode_records(fields, output, max_batch_bytes=10)([large]))


@pytest.mark.quick
def test_a_bomb_is_a_limit_error() -> None:
    from kwire.spark import decode_records

    data = kwire.build_batch([(START, None, bytes(1 << 20))], codec="zstd")
    for output in ("tuple", "arrow"):
        with pytest.raises(kwire.LimitError, match="at payload 0, byte 0"):
            list(decode_records(output=output, max_batch_bytes=1 << 16)([data]))
        assert len(list(decode_records(output=output, mode="PERMISSIVE", max_batch_bytes=1 << 16)([data]))) == 1


def test_rdd_of_bytes(spark: SparkSession) -> None:
    from kwire.spark import decode_records

    rdd = spark.sparkContext.parallelize([batch(n * 3) for n in range(20)], 3)
    assert rdd.mapPartitions(decode_records()).collect() == rows(*range(60))
    assert rdd.mapPartitions(decode_records(output="row")).first().value == b"v0"
    parts = rdd.mapPartitions(decode_records(output="arrow")).collect()
    assert len(parts) == 3 and sum(part.num_rows for part in parts) == 60


def test_rdd_of_rows(spark: SparkSession) -> None:
    from kwire.spark import decode_records

    frame = spark.createDataFrame([(batch(0),), (None,), (batch(3),)], "payload binary")
    assert sorted(frame.rdd.mapPartitions(decode_records()).collect()) == rows(*range(6))


def test_a_failing_rdd_job_names_the_place(spark: SparkSession) -> None:
    from kwire.spark import decode_records

    rdd = spark.sparkContext.parallelize([batch(0), damaged(batch(3), 75)], 1)
    with pytest.raises(Exception, match="checksum does not match at payload 1, offset 3, byte 0"):
        rdd.mapPartitions(decode_records()).collect()


def test_records_of_a_dataframe(spark: SparkSession) -> None:
    from kwire.spark import records

    frame = spark.createDataFrame([("a", batch(0)), ("b", None), ("c", b""), ("d", batch(3, 2))],
                                  "path string, payload binary")
    found = records(frame, "payload", fields=["offset", "timestamp", "value"], keep=("path",))
    assert found.schema.simpleString() == "struct<path:string,offset:bigint,timestamp:timestamp,value:binary>"
    assert [(row.path, row.offset, bytes(row.value)) for row in found.orderBy("offset").collect()] == [
        ("a", 0, b"v0"), ("a", 1, b"v1"), ("a", 2, b"v2"), ("d", 3, b"v3"), ("d", 4, b"v4")]
    assert found.selectExpr("unix_millis(min(timestamp)) as t").first().t == START
    assert records(frame, "payload").columns == list(FIELDS)


def test_records_keeps_bad_rows_beside_their_columns(spark: SparkSession) -> None:
    from kwire.spark import records

    frame = spark.createDataFrame([("a", batch(0, 1)), ("b", damaged(batch(1, 1), 70))], "path string, payload binary")
    found = records(frame, "payload", mode="PERMISSIVE", keep=["path"]).collect()
    bad = [row for row in found if row._corrupt_record is not None]
    assert len(found) == 2 and [row.path for row in bad] == ["b"] and "checksum" in bad[0]._corrupt_record
    with pytest.raises(Exception, match="checksum does not match"):
        records(frame, "payload").collect()


def test_records_with_arrow_types_that_spark_may_send(spark: SparkSession) -> None:
    from kwire.spark import records

    for name in ("spark.sql.execution.arrow.useLargeVarTypes",):
        spark.conf.set(name, "true")
        try:
            frame = spark.createDataFrame([(batch(0),)], "payload binary")
            assert records(frame, "payload", keep="payload").count() == 3
        finally:
            spark.conf.unset(name)


@pytest.mark.quick
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(len(batch(0)))])
def test_every_binary_layout_of_arrow(kind: pa.DataType) -> None:
    from kwire.spark.functions import RecordDecoder, _ColumnDecoder

    decoder = RecordDecoder(("offset", "key"), "arrow", "FAILFAST", False, 1 << 20)
    decode = _ColumnDecoder(decoder, ["p", "n"], "p", ("n",))
    values = pa.array([batch(0), None, batch(3)], pa.binary()).cast(kind) if not pa.types.is_binary_view(kind) else (
        pa.array([batch(0), None, batch(3)], kind))
    table = pa.RecordBatch.from_arrays([values, pa.array([10, 11, 12])], names=["p", "n"]).slice(0, 3)
    [found] = decode([table])
    assert found["n"].to_pylist() == [10] * 3 + [12] * 3 and found["offset"].to_pylist() == list(range(6))
    with pytest.raises(TypeError, match="binary column"):
        list(decode([pa.RecordBatch.from_arrays([pa.array(["x"]), pa.array([1])], names=["p", "n"])]))


@pytest.mark.quick
@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.list_(pa.string())])
def test_large_kept_values_are_repeated_in_small_batches(kind: pa.DataType) -> None:
    """All together they would take gigabytes, or more than a column can hold."""
    from kwire.spark.functions import RecordDecoder, _ColumnDecoder

    text: Any = "x" * (1 << 20)
    kept = [text, None, "y"] if not pa.types.is_list(kind) else [[text], None, ["y"]]
    payloads = pa.array([batch(0, 200), batch(200, 2), batch(202, 5_000)])
    decode = _ColumnDecoder(RecordDecoder(("offset",), "arrow", "FAILFAST", False, 1 << 20), ["p", "k", "n"], "p",
                            ("k", "n"))
    rows, at = pa.array(kept, kind), 0
    for part in decode([pa.RecordBatch.from_arrays([payloads, rows, pa.array([7, 8, 9])], names=["p", "k", "n"])]):
        assert part.num_rows and part["k"].nbytes < 34 << 20
        of = [0 if offset < 200 else 1 if offset < 202 else 2 for offset in range(at, at + part.num_rows)]
        assert part["offset"].to_pylist() == list(range(at, at + part.num_rows))
        assert part["k"].equals(rows.take(pa.array(of))) and part["n"].to_pylist() == [7 + number for number in of]
        at += part.num_rows
    assert at == 5_202


def test_records_refuses_wrong_columns(spark: SparkSession) -> None:
    from kwire.spark import records

    frame = spark.createDataFrame([("a", batch(0))], "offset string, payload binary")
    with pytest.raises(ValueError, match="not in the DataFrame"):
        records(frame, "paylod")
    with pytest.raises(TypeError, match="string"):
        records(frame, "offset")
    with pytest.raises(ValueError, match="both name offset"):
        records(frame, "payload", keep=["offset"])
    with pytest.raises(ValueError, match="duplicate column in keep: offset, offset"):
        records(frame, "payload", fields=["value"], keep=["offset", "offset"])


def test_records_of_columns_with_any_name(spark: SparkSession) -> None:
    from kwire.spark import records

    frame = spark.createDataFrame([("a", batch(0))], ["kafka.path", "kafka.`value`"])
    found = records(frame, "kafka.`value`", ["offset"], keep=["kafka.path", "kafka.`value`"])
    assert [tuple(row) for row in found.collect()] == [("a", batch(0), offset) for offset in range(3)]


def test_records_without_fields_are_counted(spark: SparkSession) -> None:
    from kwire.spark import decode_records, records

    assert sum(rows.num_rows for rows in decode_records((), "arrow")([batch(0), batch(3, 2)])) == 5
    frame = spark.createDataFrame([("a", batch(0)), ("b", batch(3, 2))], "path string, payload binary")
    assert sorted(row.path for row in records(frame, "payload", (), keep=["path"]).collect()) == [*"aaabb"]
    assert records(frame, "payload", ()).count() == 5


def test_records_in_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    from kwire.spark import records

    (tmp_path / "in").mkdir()
    for name in range(3):
        (tmp_path / "in" / f"{name}.bin").write_bytes(batch(name * 3))
    schema = "path string, modificationTime timestamp, length long, content binary"
    files = spark.readStream.format("binaryFile").schema(schema)
    found = records(files.load(str(tmp_path / "in")), "content", keep=["path"])
    query = found.writeStream.format("memory").queryName("of_files").trigger(availableNow=True).option(
        "checkpointLocation", str(tmp_path / "state")).start()
    query.awaitTermination(120)
    assert sorted(row.offset for row in spark.table("of_files").collect()) == list(range(9))
