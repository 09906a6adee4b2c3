"""kwire.spark.describe(): a row for each segment, by listings, heads and the ends of indexes."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kwire
import kwire.spark
from tests.storage.making import START, aborted_index, batch, write_segment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def described(path: Any, **options: str) -> list[dict[str, Any]]:
    """The rows without a session: the reader called as Spark calls it."""
    from kwire.spark.source import KwireDataSource

    source = KwireDataSource({"path": str(path), "kind": "segments", **options})
    reader = source.reader(source.schema())
    return [row for task in reader.partitions() for part in reader.read(task) for row in part.to_pylist()]


def at(offset: int) -> datetime:
    """When the record of an offset was made: see batch()."""
    return datetime.fromtimestamp(START / 1000, UTC) + timedelta(milliseconds=10 * offset)


@pytest.mark.quick
def test_a_row_for_each_segment(tmp_path: Path) -> None:
    first = write_segment(tmp_path / "t-3", 0, [batch(3 * n, codec="zstd") for n in range(4)], every=1)
    second = write_segment(tmp_path / "t-3", 20, [batch(20), batch(23), batch(26)[:]], indexes=False)
    aborted_index(first, [(1, 3, 6, 7)])
    second.write_bytes(second.read_bytes() + batch(29)[:-1])
    [one, two] = described(tmp_path)
    assert one == {
        "topic": "t", "partition": 3, "path": str(first), "base_offset": 0, "next_offset": 20,
        "bytes": first.stat().st_size, "records": 20, "first_timestamp": at(0), "last_timestamp": at(11),
        "codec": "zstd", "magic": 2, "has_index": True, "has_timeindex": True, "has_txnindex": True,
    }  # fmt: skip
    assert two == {
        "topic": "t", "partition": 3, "path": str(second), "base_offset": 20, "next_offset": 29,
        "bytes": second.stat().st_size, "records": 9, "first_timestamp": at(20), "last_timestamp": None,
        "codec": "none", "magic": 2, "has_index": False, "has_timeindex": False, "has_txnindex": False,
    }  # fmt: skip


@pytest.mark.quick
def test_what_matches_nothing_is_an_error(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-3", 0, [batch(0)])
    (tmp_path / "nothing").mkdir()
    for error, options, text in (
        (ValueError, {"topic": "ordrs"}, 'no topic "ordrs" in .*; did you mean "orders"'),
        (ValueError, {"partition": "1"}, 'no partition "1" in .*; there is 1 partition: 3'),
        (FileNotFoundError, {"path": str(tmp_path / "nothing")}, "nothing: no segments"),
        (FileNotFoundError, {"path": str(tmp_path / "gone")}, "gone: no such file or folder"),
    ):
        with pytest.raises(error, match=text):
            described(**{"path": str(tmp_path), **options})
        assert described(**{"path": str(tmp_path), **options}, allowEmpty="true") == []


@pytest.mark.quick
@pytest.mark.parametrize("delta", [0, 2**31 - 1])
def test_offsets_past_63_bits_are_not_known(delta: int, tmp_path: Path) -> None:
    """In a header and in the name of a file: once an OverflowError."""
    data = bytearray(batch(0, 1))
    data[:8], data[23:27] = (2**63 - 1).to_bytes(8, "big"), delta.to_bytes(4, "big")
    for name in ("t-0", "u-0"):
        (tmp_path / name).mkdir()
    (tmp_path / "t-0" / f"{0:020d}.log").write_bytes(data)
    (tmp_path / "u-0" / f"{2**63:020d}.log").write_bytes(batch(7))
    (tmp_path / "u-0" / f"{2**63 - 1:020d}.log").write_bytes(b"")
    [last, most, past] = described(tmp_path)
    assert (last["base_offset"], last["next_offset"], last["records"]) == (0, None, None)
    assert sorted([most["base_offset"], past["base_offset"]]) == [7, 2**63 - 1]


@pytest.mark.quick
def test_what_is_not_known_is_null(tmp_path: Path) -> None:
    packed = write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    packed.with_name(f"{packed.name}.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    junk = write_segment(tmp_path / "t-0", 7, [batch(7)])
    junk.write_bytes(b"\x7fjunk" * 5000)
    junk.with_suffix(".timeindex").write_bytes(bytes(24))
    (tmp_path / "t-0" / f"{9:020}.log").write_bytes(b"")
    lone = tmp_path / "lone.bin"
    lone.write_bytes(batch(30))
    rows = described(f"{tmp_path}/t-0,{lone}")
    facts = ("topic", "base_offset", "next_offset", "records", "last_timestamp", "codec", "magic")
    assert [tuple(row[name] for name in facts) for row in rows] == [
        (None, 30, 33, 3, None, "none", 2),
        ("t", 0, 7, 7, None, None, None),
        ("t", 7, 9, 2, None, None, None),
        ("t", 9, None, None, None, None, None),
    ]
    assert rows[1]["bytes"] == (tmp_path / "t-0" / f"{0:020}.log.gz").stat().st_size


@pytest.mark.quick
def test_first_timestamps_are_those_of_records(tmp_path: Path) -> None:
    log_append = kwire.build_batch([(START, None, b"a")], base_offset=0, timestamp_type="log_append",
                                   max_timestamp=START + 7)
    old = kwire.build_batch([(START, None, b"a")], base_offset=5, magic=1)
    wrapped = kwire.build_batch([(START, None, b"a")], base_offset=6, magic=1, codec="gzip")
    oldest = kwire.build_batch([(-1, None, b"a")], base_offset=7, magic=0)
    times = []
    for base, content in ((0, log_append), (5, old), (6, wrapped), (7, oldest)):
        folder = tmp_path / f"t-{base}"
        folder.mkdir()
        (folder / f"{base:020}.log").write_bytes(content)
        [row] = described(folder)
        times.append((row["magic"], row["first_timestamp"]))
    start = datetime.fromtimestamp(START / 1000, UTC)
    assert times == [(2, start + timedelta(milliseconds=7)), (1, start), (1, None), (0, None)]


@pytest.mark.quick
def test_many_segments_are_few_tasks_and_other_options_are_refused(tmp_path: Path) -> None:
    from kwire.spark.source import KwireDataSource

    for base in range(0, 3600, 3):
        write_segment(tmp_path / "t-0", base, [batch(base)], indexes=False)
    source = KwireDataSource({"path": str(tmp_path), "kind": "segments", "topic": "t", "partition": "0"})
    tasks = source.reader(source.schema()).partitions()
    assert len(tasks) == 3 and repr(tasks[0]) == "DescribeTask(500 segments)"
    assert [row["base_offset"] for row in described(tmp_path)] == list(range(0, 3600, 3))
    with pytest.raises(ValueError, match=r'option readCommitted applies to .* only, not to "segments"'):
        described(tmp_path, readCommitted="true")
    with pytest.raises(FileNotFoundError, match="no such file"):
        described(tmp_path / "none")


@pytest.mark.quick
def test_a_segment_that_is_deleted_meanwhile_is_left_out(tmp_path: Path) -> None:
    from kwire.spark.source import KwireDataSource

    for base in (0, 3):
        write_segment(tmp_path / "t-0", base, [batch(base)], indexes=False)
    source = KwireDataSource({"path": str(tmp_path), "kind": "segments"})
    reader = source.reader(source.schema())
    [task] = reader.partitions()
    (tmp_path / "t-0" / f"{0:020}.log").unlink()
    assert [row["base_offset"] for rows in reader.read(task) for row in rows.to_pylist()] == [3]


def test_in_a_session(spark: SparkSession, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0, codec="lz4")])
    write_segment(tmp_path / "u-1", 5, [batch(5)])
    frame = kwire.spark.describe(spark, str(tmp_path))
    assert [tuple(row) for row in frame.select("topic", "partition", "base_offset", "next_offset", "codec")
            .orderBy("topic").collect()] == [("t", 0, 0, 3, "lz4"), ("u", 1, 5, 8, "none")]
    assert kwire.spark.describe(spark, str(tmp_path), topic="u").count() == 1
    assert frame.agg({"bytes": "sum"}).first()[0] > 0
