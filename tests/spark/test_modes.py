"""Damaged segments in each mode of the data source, and the error of a failing job."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kwire
from tests.capture.making import Talk, hello, welcome, write_pcap
from tests.spark.logs import START, batch, damaged, segment, without_length
from tests.spark.test_source import offsets, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZE = len(batch(0))


def rows_of(path: Any, **options: str) -> list[dict[str, Any]]:
    """The rows of a read without a session: the reader called as Spark calls it."""
    from kwire.spark.source import KwireDataSource

    source = KwireDataSource({"path": str(path), **options})
    reader = source.reader(source.schema())
    return [row for task in reader.partitions() for part in reader.read(task) for row in part.to_pylist()]


CASES = {
    # content of the file -> offsets that are left, (byte, offset in the text) of each bad row
    "checksum": ([batch(0), damaged(batch(3), 75), batch(6)], [0, 1, 2, 6, 7, 8], [(SIZE, 3)]),
    "two in a row": ([damaged(batch(0), 75), damaged(batch(3), 75), batch(6)], [6, 7, 8], [(0, 0), (SIZE, 3)]),
    "length": ([batch(0), without_length(batch(3)), batch(6)], [0, 1, 2, 6, 7, 8], [(SIZE, 3)]),
    "length too long": (
        [batch(0), batch(3)[:8] + (SIZE + 30).to_bytes(4, "big") + batch(3)[12:], batch(6), batch(9)],
        [0, 1, 2, 6, 7, 8, 9, 10, 11], [(SIZE, 3)]),
    "length past the end": (
        [batch(0), batch(3)[:8] + (1 << 30).to_bytes(4, "big") + batch(3)[12:], batch(6)],
        [0, 1, 2, 6, 7, 8], [(SIZE, 3)]),
    "junk": ([batch(0), b"\x7fjunk" * 400, batch(3)], [0, 1, 2, 3, 4, 5], [(SIZE, None)]),
    "magic": ([batch(0), batch(3)[:16] + b"\x09" + batch(3)[17:], batch(6)], [0, 1, 2, 6, 7, 8], [(SIZE, 3)]),
    "all": ([b"\x7fjunk" * 400], [], [(0, None)]),
}


@pytest.mark.quick
def test_reasons_are_escaped(tmp_path: Path) -> None:
    """df.show() prints them as they are: a path in them, as in an error, sends nothing to a terminal."""
    segment(tmp_path / "t\x1b[31m-0", 0, damaged(batch(0), 75), batch(3)[:40])
    segment(tmp_path / "\x1b[31m" / "__cluster_metadata-0", 0, batch(0))
    write_pcap(tmp_path / "\x1b[31m.pcap", Talk().open().exchange(hello(), welcome()[:-3]).close().bytes())
    kinds = {"records": "t\x1b[31m-0", "metadata": "\x1b[31m", "capture": "\x1b[31m.pcap"}
    for kind, name in kinds.items():
        texts = [row["_corrupt_record"] for row in rows_of(tmp_path / name, kind=kind, mode="PERMISSIVE")]
        reasons = [text for text in texts if text is not None]
        assert reasons and all("\\x1b[31m" in text and text.isprintable() for text in reasons)


@pytest.mark.quick
@pytest.mark.parametrize("name", CASES)
def test_damage(tmp_path: Path, name: str) -> None:
    pieces, left, places = CASES[name]
    path = segment(tmp_path / "t-0", 0, *pieces)
    byte, offset = places[0]
    with pytest.raises(kwire.CorruptBatchError) as caught:
        rows_of(path)
    text = str(caught.value)
    assert f" at {path}, offset " in text and text.endswith(f", byte {byte}")
    assert offset is None or f", offset {offset}, " in text
    assert [row["offset"] for row in rows_of(path, mode="DROPMALFORMED")] == left
    rows = rows_of(path, mode="PERMISSIVE")
    assert [row["offset"] for row in rows if row["_corrupt_record"] is None] == left
    bad = [row for row in rows if row["_corrupt_record"] is not None]
    assert len(bad) == len(places)
    for row, (byte, offset) in zip(bad, places, strict=True):
        assert row["key"] is None and row["value"] is None and row["topic"] == "t" and row["partition"] == 0
        assert row["_corrupt_record"].endswith(f", byte {byte}") and f" at {path}, offset " in row["_corrupt_record"]
        assert offset is None or row["offset"] == offset
    for cut in ("1", str(SIZE), str(2 * SIZE + 1)):
        assert [row["offset"] for row in rows_of(path, mode="DROPMALFORMED", partitionBytes=cut)] == left
        assert len(rows_of(path, mode="PERMISSIVE", partitionBytes=cut)) == len(rows)


@pytest.mark.quick
def test_a_torn_tail_is_a_warning(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3)[:-5])
    for mode in ("FAILFAST", "DROPMALFORMED", "PERMISSIVE"):
        with pytest.warns(RuntimeWarning, match=f"torn tail.*{path}.*byte {SIZE}"):
            rows = rows_of(path, mode=mode)
        assert [row["offset"] for row in rows][:3] == [0, 1, 2]
        assert len(rows) == (4 if mode == "PERMISSIVE" else 3)
    assert rows[3]["_corrupt_record"].endswith(f"byte {SIZE}") and str(path) in rows[3]["_corrupt_record"]


@pytest.mark.quick
def test_preallocated_zeros_are_no_torn_tail(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), bytes(4096))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for mode in ("FAILFAST", "DROPMALFORMED", "PERMISSIVE"):
            assert [row["offset"] for row in rows_of(path, mode=mode)] == [0, 1, 2]


@pytest.mark.quick
def test_max_batch_bytes(tmp_path: Path) -> None:
    bomb = kwire.build_batch([(START, None, bytes(1 << 20))], base_offset=3, codec="gzip")
    path = segment(tmp_path / "t-0", 0, batch(0), bomb, batch(4))
    with pytest.raises(kwire.LimitError, match=f" at {path}, byte {SIZE}$"):
        rows_of(path, maxBatchBytes="100k")
    rows = rows_of(path, maxBatchBytes="100k", mode="PERMISSIVE")
    assert [row["offset"] for row in rows if row["_corrupt_record"] is None] == [0, 1, 2, 4, 5, 6]
    [bad] = [row for row in rows if row["_corrupt_record"] is not None]
    assert bad["offset"] == 3 and bad["_corrupt_record"].endswith(f" at {path}, offset 3, byte {SIZE}")
    assert len(rows_of(path)) == 7


def test_modes_in_a_session(spark: SparkSession, tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), damaged(batch(3), 75), batch(6))
    assert offsets(read(spark, path, mode="DROPMALFORMED")) == [0, 1, 2, 6, 7, 8]
    frame = read(spark, path, mode="PERMISSIVE")
    assert frame.columns[-1] == "_corrupt_record"
    [bad] = frame.where("_corrupt_record is not null").collect()
    assert bad._corrupt_record.endswith(f" at {path}, offset 3, byte {SIZE}")
    only = read(spark, path, "offset long, _corrupt_record string", mode="PERMISSIVE")
    assert only.count() == 7


def test_the_last_line_of_a_failing_job_has_file_offset_byte_and_reason(spark: SparkSession, tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), damaged(batch(3), 75), batch(6))
    with pytest.raises(Exception) as caught:
        read(spark, path).collect()
    last = str(caught.value).strip().splitlines()[-1]
    assert last == f"kwire.CorruptBatchError: checksum does not match at {path}, offset 3, byte {SIZE}"
