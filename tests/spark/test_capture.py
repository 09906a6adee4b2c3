"""kind = capture: exchanges as rows, in each mode, and through a session."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kwire
from tests.capture.making import Talk, hello, metadata, produce, welcome, write_pcap
from tests.spark.test_modes import rows_of
from tools.places import DATA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = [
    "capture", "connection", "client", "server", "client_id", "software", "timestamp", "response_timestamp", "api_key",
    "api_name", "version", "correlation_id", "outcome", "request_bytes", "response_bytes", "request", "response",
]  # fmt: skip


def made(path: Path, broken: bool = False) -> Path:
    """Four exchanges, one of them one-way, one damaged when asked for; and a TLS connection."""
    talk = Talk().open().exchange(hello(), welcome()).exchange(*metadata(1)).exchange(produce(2, 0), None)
    request, response = metadata(3)
    talk.exchange(request, response[:-20] if broken else response)
    tls = Talk(client=("10.0.0.9", 1)).open().say(True, b"\x16\x03\x01\x02\x00\x01" + bytes(500))
    return write_pcap(path, talk.close().bytes() + tls.bytes())


def capture_rows(path: Path, **options: str) -> list[dict[str, Any]]:
    return rows_of(path, kind="capture", **options)


def test_an_exchange_is_a_row(tmp_path: Path) -> None:
    path = made(tmp_path / "a.pcap")
    with pytest.warns(RuntimeWarning, match=r"TLS: not readable .* at .*a\.pcap, connection 1 of 10\.0\.0\.9:1"):
        rows = capture_rows(path)
    assert list(rows[0]) == COLUMNS and len(rows) == 4
    row = rows[1]
    assert (row["capture"], row["connection"], row["client"], row["server"]) == (
        str(path), 0, "10.0.0.7:51234", "10.0.0.1:9092")
    assert (row["client_id"], row["software"], row["api_key"], row["api_name"], row["version"]) == (
        "me", "made 1.0", 3, "Metadata", 9)
    assert (row["correlation_id"], row["outcome"]) == (1, "answered") and row["timestamp"] < row["response_timestamp"]
    assert (row["request_bytes"], row["response_bytes"]) == tuple(map(len, metadata(1)))
    assert json.loads(row["request"])["topics"][0]["name"] == json.loads(row["response"])["topics"][0]["name"]
    one_way = rows[2]
    assert (one_way["outcome"], one_way["response"], one_way["response_bytes"]) == ("one-way", None, None)


def test_modes(tmp_path: Path) -> None:
    path = made(tmp_path / "a.pcap", broken=True)
    with pytest.raises(kwire.KwireError, match=r"Metadata v9, correlation id 3: .* at .*a\.pcap, connection 0"):
        capture_rows(path)
    with pytest.warns(RuntimeWarning, match="TLS"):
        assert [row["correlation_id"] for row in capture_rows(path, mode="DROPMALFORMED")] == [0, 1, 2]
    rows = capture_rows(path, mode="PERMISSIVE")
    assert [row["correlation_id"] for row in rows] == [0, 1, 2, 3, None]
    assert [row["_corrupt_record"] is None for row in rows] == [True, True, True, False, False]
    assert rows[3]["api_name"] == "Metadata" and rows[3]["response"] is None and rows[3]["request"] is not None
    assert rows[4]["_corrupt_record"].startswith("TLS: not readable") and rows[4]["client"] == "10.0.0.9:1"


def test_wrong_uses_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such capture"):
        capture_rows(tmp_path / "gone")
    with pytest.raises(ValueError, match="local files"):
        rows_of("s3://bucket/a.pcap", kind="capture")
    (tmp_path / "a.pcap").write_bytes(b"junk")
    with pytest.raises(kwire.KwireError, match=r"a\.pcap: not a capture"):
        capture_rows(tmp_path / "a.pcap")


def test_through_a_session(spark: SparkSession, tmp_path: Path) -> None:
    """A folder of frame files: every frame of its clients, one task each; only requested columns are decoded."""
    with tarfile.open(DATA / "wire.tar.xz") as archive:
        inside = [item for item in archive.getmembers() if item.name.startswith("broker-2.2.2/")]
        archive.extractall(tmp_path, members=inside, filter="data")
    reader = spark.read.format("kwire").option("kind", "capture")
    found = reader.load(str(tmp_path))
    assert found.columns == COLUMNS and found.rdd.getNumPartitions() == 5
    rows = {tuple(row) for row in found.groupBy("outcome").count().collect()}
    lines = [json.loads(line) for path in tmp_path.rglob("*.jsonl") for line in path.read_text().splitlines()]
    requests, responses = (sum(row["dir"] == way for row in lines) for way in ("c2s", "s2c"))
    assert ("answered", responses) in rows and sum(count for _, count in rows) == requests
    names = found.where("api_name = 'ApiVersions'").selectExpr("get_json_object(response, '$.errorCode') as code")
    assert {row.code for row in names.distinct().collect()} == {"0", "35"}
    some = reader.schema("api_key int, capture string").load(f"{tmp_path}/broker-2.2.2/aiokafka.jsonl").distinct()
    assert {row.capture for row in some.collect()} == {f"{tmp_path}/broker-2.2.2/aiokafka.jsonl"}
    with pytest.raises(Exception, match='unknown column "topic"'):
        reader.schema("topic string").load(str(tmp_path)).collect()
    with pytest.raises(Exception, match='streams support records, metadata, offsets, transactions only, not "capture"'):
        spark.readStream.format("kwire").option("kind", "capture").load(str(tmp_path)).writeStream.format(
            "noop").start().processAllAvailable()
