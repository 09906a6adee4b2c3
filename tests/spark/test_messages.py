"""Messages and frames in Spark: decode_messages, decode_frames, from_wire."""

from __future__ import annotations

import json
import pickle
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kwire
from kwire import messages
from kwire.spark import decode_frames, decode_messages, from_wire
from kwire.spark.messages import StructReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

R = messages.FetchRequest
BAD = b"\0\1"


def request(wait: int) -> Any:
    return R(max_wait_ms=wait, topics=[
        R.FetchTopic(topic_id=uuid.UUID(int=wait), partitions=[R.FetchPartition(partition=p) for p in range(2)])
    ])


PAYLOADS = [kwire.encode(request(wait), 15) for wait in range(5)]


@pytest.mark.quick
def test_functions_without_spark() -> None:
    decoder = pickle.loads(pickle.dumps(decode_messages("FetchRequest", 15)))
    rows = list(decoder([*PAYLOADS, None, (PAYLOADS[0],), bytearray(PAYLOADS[1])]))
    assert [json.loads(row)["maxWaitMs"] for row in rows] == [0, 1, 2, 3, 4, 0, 1]
    assert json.loads(rows[2]) == kwire.to_json(request(2), 15)
    with pytest.raises(kwire.DecodeError, match="payload 1"):
        list(decoder([PAYLOADS[0], BAD]))
    permissive = decode_messages("FetchRequest", 15, mode="PERMISSIVE")
    good, bad = permissive([PAYLOADS[0], BAD])
    assert json.loads(good[0])["maxWaitMs"] == 0 and good[1] is None
    assert bad[0] is None and "payload 1" in bad[1] and "FetchRequest v15" in bad[1]
    for wrong in ({"output": "xml"}, {"mode": "DROP"}):
        with pytest.raises(ValueError):
            decode_messages("FetchRequest", 15, **wrong)
    with pytest.raises(kwire.UnsupportedVersionError):
        decode_messages("FetchRequest", 99)


@pytest.mark.quick
def test_rows_without_spark() -> None:
    (row,) = decode_messages("FetchRequest", 15, output="row")([PAYLOADS[3]])
    assert row.max_wait_ms == 3 and row.topics[0].topic_id == "AAAAAAAAAAAAAAAAAAAAAw"
    assert [part.partition for part in row.topics[0].partitions] == [0, 1]
    good, bad = decode_messages("FetchRequest", 15, output="row", mode="PERMISSIVE")([PAYLOADS[0], BAD])
    assert good._corrupt_record is None and bad.max_wait_ms is None and "payload 1" in bad._corrupt_record


@pytest.mark.quick
def test_frames_without_spark() -> None:
    frame = kwire.encode_request(request(7), 15, correlation_id=3, client_id="c")
    decoder = pickle.loads(pickle.dumps(decode_frames()))
    (row,) = decoder([frame])
    assert row[:4] == (1, 15, 3, "c") and json.loads(row[4]) == kwire.to_json(request(7), 15)
    answer = kwire.encode_response(messages.FetchResponse(error_code=5), 15, correlation_id=3)
    for head in (frame, frame[:12]):
        (row,) = decode_frames("response")([(answer, head)])
        assert row[:4] == (1, 15, 3, "c") and json.loads(row[4])["errorCode"] == 5
    (row,) = decode_frames("response", api="Fetch", version=15)([answer])
    assert row[:4] == (1, 15, 3, None)
    unknown = b"\x03\xe7\0\0\0\0\0\1\xff\xff"
    assert list(decode_frames(mode="PERMISSIVE")([frame, unknown]))[1][:5] == (None,) * 5
    with pytest.raises(kwire.UnsupportedVersionError, match="payload 0"):
        list(decode_frames()([unknown]))
    with pytest.raises(ValueError):
        decode_frames("answer")


def test_in_an_rdd(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize(PAYLOADS, 2)
    seen = rdd.mapPartitions(decode_messages("FetchRequest", 15)).map(lambda text: json.loads(text)["maxWaitMs"])
    assert sorted(seen.collect()) == [0, 1, 2, 3, 4]
    frames = [kwire.encode_request(request(wait), 15, correlation_id=wait) for wait in range(4)]
    rows = spark.sparkContext.parallelize(frames, 2).mapPartitions(decode_frames()).collect()
    assert sorted(row[2] for row in rows) == [0, 1, 2, 3]


@pytest.mark.parametrize("by", ["arrow", "pandas"])
def test_from_wire(spark: SparkSession, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if by == "pandas":  # as before Spark 4.1
        from pyspark.sql import functions

        monkeypatch.delattr(functions, "arrow_udf", raising=False)
    frame = spark.createDataFrame([(1, PAYLOADS[1]), (2, None), (3, BAD), (4, PAYLOADS[4])], "id int, payload binary")
    table = frame.select("id", from_wire("payload", message="FetchRequest", version=15, mode="PERMISSIVE").alias("m"))
    kind = table.schema["m"].dataType
    assert kind["max_wait_ms"].dataType.simpleString() == "int"
    assert kind["isolation_level"].dataType.simpleString() == "tinyint"
    rows = {row.id: row.m for row in table.collect()}
    assert rows[2] is None and rows[3] is None
    assert rows[1].max_wait_ms == 1 and rows[1].topics[0].topic_id == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert [part.partition for part in rows[4].topics[0].partitions] == [0, 1]
    good = frame.where("id <> 3").select(from_wire(frame["payload"], "FetchRequest", 15).alias("m"))
    assert good.where("m is not null").count() == 2
    with pytest.raises(Exception, match="FetchRequest v15"):
        frame.select(from_wire("payload", "FetchRequest", 15)).collect()


@pytest.mark.quick
def test_a_message_without_fields_is_a_struct_without_fields() -> None:
    reader = StructReader("ApiVersionsRequest", 0, permissive=True, lenient=False)
    rows = reader(pa.array([b"", None, b"x", b""], pa.binary()))
    assert rows.to_pylist() == [{}, None, None, {}]


@pytest.mark.quick
@pytest.mark.parametrize("column", [pa.array([1, None]), pa.array(["a"]), pa.array([[b"a"]])])
def test_messages_need_a_binary_column(column: pa.Array) -> None:
    reader = StructReader("ApiVersionsRequest", 3, permissive=True, lenient=False)
    with pytest.raises(TypeError, match="from_wire: the column has type"):
        reader(column)
    assert reader(pa.nulls(2)).to_pylist() == [None, None]
