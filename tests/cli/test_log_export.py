"""`kwire log export` and `to-parquet --partition-by`: what other readers make of the files; whole or not there."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwire
from kwire.cli import main
from kwire.storage import LogDirectory
from kwire.storage.tables import record_tables
from kwire.storage.tables.record_tables import MOST_FOLDERS, write_dataset, write_table
from tests.cli.test_record_lines import on_terminal
from tests.storage.making import START, batch, in_transaction, marker, write_segment

pytestmark = pytest.mark.quick
DAY = 86_400_000
ROWS: list[tuple[Any, ...]] = [
    (START, b"k", b'{"a": "b,c"}', [("h", b"1"), ("h", None)]), (START + 1, None, b""), (START + 2, b"", None),
    (START + 3, b"\xff\xfe", "ü\n\"日".encode()), (START + DAY, b"x", b"y", [("b", b"\xff")]),
    (253_402_300_800_000, b"late", b"v"),
]  # fmt: skip


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    write_segment(logs / "one-0", 0, [kwire.build_batch(ROWS)])
    write_segment(logs / "two-3", 0, [batch(0), in_transaction(3, 1), marker(6, 1, False), batch(7)])
    write_segment(logs / "two-3", 10, [batch(10, 4)])
    return logs


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["log", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def export(capsys: pytest.CaptureFixture[str], logs: Path, output: Path, *arguments: object) -> dict[str, Any]:
    code, out, err = run(capsys, "export", logs, "-o", output, "--json", *arguments)
    assert (code, err) == (0, ""), err
    return json.loads(out)  # type: ignore[no-any-return]


def wanted(logs: Path) -> list[dict[str, Any]]:
    """The records as pyarrow gives them."""
    found = []
    for partition in LogDirectory(logs):
        for record in partition.read():
            found.append({
                "topic": partition.topic, "partition": partition.partition, "offset": record.offset,
                "key": record.key, "value": record.value,
                "headers": [{"key": name, "value": value} for name, value in record.headers],
            })  # fmt: skip
    return found


def without_times(table: pa.Table) -> list[dict[str, Any]]:
    return table.drop_columns(["timestamp", "timestamp_type"]).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("compression", ["none", "zstd", "lz4"])
@pytest.mark.parametrize("form", ["arrow", "arrows", "parquet"])
def test_arrow_and_parquet(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str, compression: str
) -> None:
    path = tmp_path / f"out.{form}"
    written = export(capsys, logs, path, "--compression", compression)
    assert (written["rows"], written["size"]) == (19, path.stat().st_size)
    read = {"arrow": lambda: pa.ipc.open_file(path).read_all(), "parquet": lambda: pq.read_table(path),
            "arrows": lambda: pa.ipc.open_stream(path).read_all()}  # fmt: skip
    assert without_times(read[form]()) == wanted(logs)


def test_polars_and_duckdb_read_them(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    for name in ("a.arrow", "a.csv", "a.csv.gz", "a.parquet"):
        export(capsys, logs, tmp_path / name)
    offsets = [row["offset"] for row in wanted(logs)]
    assert polars.read_ipc(tmp_path / "a.arrow")["offset"].to_list() == offsets
    assert polars.read_parquet(tmp_path / "a.parquet")["offset"].to_list() == offsets
    for name in ("a.csv", "a.csv.gz"):
        table = polars.read_csv(tmp_path / name)
        assert table["offset"].to_list() == offsets and table["value"][0] == '{"a": "b,c"}'
        found = duckdb.sql(f"select count(*), count(value), max(epoch_ms(\"timestamp\")) from '{tmp_path / name}' "
                           "where topic = 'two'").fetchall()
        assert found == [(13, 13, START + 130)]


def test_csv_loses_nothing(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.csv"
    export(capsys, logs / "one-0", path)
    lines = path.read_bytes().decode().split("\n", 1)
    assert lines[0] == ('"topic","partition","offset","timestamp","timestamp_type","key","value","headers",'
                        '"key_base64","value_base64"')
    assert lines[1].split("\n")[:3] == [
        '"one",0,0,2023-11-14 22:13:20.000Z,"create","k","{""a"": ""b,c""}","[[""h"", ""1""], [""h"", null]]",,',
        '"one",0,1,2023-11-14 22:13:20.001Z,"create",,"",,,', '"one",0,2,2023-11-14 22:13:20.002Z,"create","",,,,',
    ]  # fmt: skip
    assert '20.003Z,"create",,"ü\n""日",,"//4=",\n' in lines[1]
    assert '"[[""b"", {""base64"": ""/w==""}]]"' in lines[1]
    export(capsys, logs / "one-0", tmp_path / "out.csv.gz")
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()) == path.read_bytes()


def test_a_time_that_csv_cannot_have_is_an_empty_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Arrow writes a wrong year for those."""
    last = 971_890_963_199_999
    times = [last, last + 1, -last, -last - 1, 2**63 - 1, -(2**63), -1]
    data = [kwire.build_batch([(time, None, b"v")], base_offset=at) for at, time in enumerate(times)]
    write_segment(tmp_path / "t-0", 0, data)
    export(capsys, tmp_path / "t-0", tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text().splitlines()[1:]
    assert [line.split(",")[3] for line in lines] == [
        "32767-12-31 23:59:59.999Z", "", "-28828-01-02 00:00:00.001Z", "", "", "", "1969-12-31 23:59:59.999Z"]


def test_standard_output(logs: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["log", "export", str(logs), "-o", "-", "--to", "arrows"]) == 0
    sys.stdout.flush()
    assert len(pa.ipc.open_stream(capfdbinary.readouterr().out).read_all()) == 19


def test_a_dataset(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    written = export(capsys, logs, out, "--to", "parquet", "--partition-by", "topic,date")
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert files == [
        "topic=one/date=2023-11-14/part-00000.parquet", "topic=one/date=2023-11-15/part-00000.parquet",
        "topic=one/date=__HIVE_DEFAULT_PARTITION__/part-00000.parquet", "topic=two/date=2023-11-14/part-00000.parquet",
    ]  # fmt: skip
    assert (written["rows"], written["files"]) == (19, 4)
    assert written["size"] == sum((out / name).stat().st_size for name in files)
    assert pq.ParquetFile(out / files[0]).schema_arrow.names == [
        "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"]
    table = pq.read_table(out, partitioning="hive")
    rows = without_times(table)
    assert sorted((row["topic"], row["offset"]) for row in rows) == sorted(
        (row["topic"], row["offset"]) for row in wanted(logs))
    assert {row["date"] for row in rows if row["offset"] == 5 and row["topic"] == "one"} == {None}
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql(f"select topic, date, count(*) from read_parquet('{out}/**/*.parquet', hive_partitioning=true) "
                      "where date is not null group by all order by all").fetchall() == [
        ("one", date(2023, 11, 14), 4), ("one", date(2023, 11, 15), 1), ("two", date(2023, 11, 14), 13)]  # fmt: skip


def test_hours_and_to_parquet(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.parquet"
    code, said, err = run(capsys, "to-parquet", logs, "-o", out, "--partition-by", "date,hour,partition", "--json")
    assert (code, err, json.loads(said)["files"]) == (0, "", 4)
    assert (out / "date=2023-11-14" / "hour=22" / "partition=3" / "part-00000.parquet").is_file()


def test_rows_that_wait_for_their_hour_keep_no_others_in_memory(tmp_path: Path) -> None:
    """A slice of 150 KB kept its whole batch of 6 MB."""
    schema = pa.schema([("timestamp", pa.timestamp("ms", "UTC")), ("value", pa.binary())])
    times = [0] * 5850 + [3_600_000] * 150
    rows = pa.RecordBatch.from_arrays([pa.array(times, schema[0].type), [b"v" * 1000] * 6000], schema=schema)
    files = record_tables._Dataset(str(tmp_path), ["hour"], "parquet", None, 131072, schema)
    before = pa.total_allocated_bytes()
    for _ in range(30):
        files.add(rows, {})
    assert pa.total_allocated_bytes() - before < 2 * files._waiting + (8 << 20)
    files.abandon()


def test_hours_alone_are_24_folders_however_many_days_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of 1,000 hours was written in 1,000 pieces, each at the cost of a search through the whole batch."""
    pieces: list[int] = []
    inner = record_tables._kept

    def kept(batch: Any) -> Any:
        pieces.append(len(batch))
        return inner(batch)

    monkeypatch.setattr(record_tables, "_kept", kept)
    hours = [(START + at * 3_600_000, None, b"v") for at in range(1000)] + [(-1, None, b"none")]
    write_segment(tmp_path / "t-0", 0, [kwire.build_batch(hours)])
    out = tmp_path / "out"
    assert write_dataset(LogDirectory(tmp_path / "t-0").segments, str(out), ["hour"])["rows"] == 1001
    assert sorted(folder.name for folder in out.iterdir()) == [
        *(f"hour={hour:02}" for hour in range(24)), f"hour={record_tables.NULL_PARTITION}"]
    found = pq.read_table(out / "hour=07" / "part-00000.parquet")["timestamp"].to_pylist()
    assert len(found) in (41, 42) and {one.hour for one in found} == {7}
    assert len(pieces) < 60


def test_csv_in_a_dataset(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    export(capsys, logs, out, "--to", "csv", "--partition-by", "topic")
    header, *lines = (out / "topic=two" / "part-00000.csv").read_text().splitlines()
    assert header.startswith('"partition","offset"') and len(lines) == 13


def test_a_topic_that_no_folder_can_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Escaped as Hive and Spark do; pyarrow reads it back."""
    topic = 'a=b%c"d:*?'
    write_segment(tmp_path / "logs" / f"{topic}-0", 0, [batch(0)])
    out = tmp_path / "out"
    export(capsys, tmp_path / "logs", out, "--to", "parquet", "--partition-by", "topic")
    assert [path.name for path in out.iterdir()] == ["topic=a%3Db%25c%22d%3A%2A%3F"]
    assert set(pq.read_table(out, partitioning="hive")["topic"].to_pylist()) == {topic}


def test_a_dataset_is_whole_or_not_there(logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    path = logs / "two-3" / f"{10:020}.log"
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    by = ("--to", "parquet", "--partition-by", "topic,date")
    code, _, err = run(capsys, "export", logs, "-o", out, *by)
    assert (code, err.count("\n")) == (1, 1) and str(path) in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs"]
    code, _, err = run(capsys, "export", logs, "-o", out, *by, "--on-error", "skip")
    assert code == 1 and "15 rows" in err and "1 damaged" in err and out.is_dir()
    code, _, err = run(capsys, "export", logs, "-o", out, *by, "--on-error", "skip")
    assert (code, err.count("\n")) == (2, 1) and "not an empty folder" in err


def test_late_records_go_to_files_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few files are open and few bytes wait at a time, whatever the order of the timestamps."""
    from kwire.storage.tables import record_tables

    monkeypatch.setattr(record_tables, "_OPEN_FILES", 2)
    monkeypatch.setattr(record_tables, "_GROUP_BYTES", 1000)
    rows = [(START + DAY * (at % 5), b"k", b"v" * 50) for at in range(500)]
    write_segment(tmp_path / "t-0", 0, [kwire.build_batch(rows[at : at + 20], base_offset=at)
                                        for at in range(0, 500, 20)])
    out = tmp_path / "out"
    segments = LogDirectory(tmp_path / "t-0").segments
    written = write_dataset(segments, str(out), ("date",), rows=20)
    assert written["rows"] == 500 and written["files"] > 5
    table = pq.read_table(out, partitioning="hive")
    assert sorted(table["offset"].to_pylist()) == list(range(500))
    assert len({path.parent.name for path in out.rglob("*.parquet")}) == 5


@pytest.mark.parametrize("by", [(), ("topic",)], ids=["file", "dataset"])
def test_the_records_of_many_small_segments_take_little_memory(tmp_path: Path, by: tuple[str, ...]) -> None:
    """What is kept for a row group is as large as its records: each segment took 60 KiB until it was written."""
    record = kwire.build_batch([(DAY, b"k", b"v")])
    for partition in range(1000):
        write_segment(tmp_path / "logs" / f"t-{partition}", 0, [record], indexes=False)
    code = f"""if True:
        from pathlib import Path
        from kwire.storage import LogDirectory
        from kwire.storage.tables.record_tables import write_table
        def written(segments, name):
            return write_table(segments, name, "parquet", partition_by={by!r})["rows"]
        def most():  # not ru_maxrss: it begins with that of the process that started this one
            lines = Path("/proc/self/status").read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
        segments = LogDirectory({str(tmp_path / "logs")!r}).segments
        assert written(segments[:100], {str(tmp_path / "few")!r}) == 100
        before = most()
        assert written(segments, {str(tmp_path / "all")!r}) == 1000
        assert most() - before < 40 << 10, most() - before
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_too_many_folders(tmp_path: Path) -> None:
    rows = [(DAY * at, None, b"") for at in range(MOST_FOLDERS + 1)]
    write_segment(tmp_path / "t-0", 0, [kwire.build_batch(rows)])
    with pytest.raises(kwire.LimitError, match=r"^too many folders by date \(limit \d+, needed \d+\)$"):
        write_dataset(LogDirectory(tmp_path / "t-0").segments, str(tmp_path / "out"), ("date",))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("arguments", "words"), [
    (("-o", "x.txt"), "give --to"), (("-o", "x.csv", "--compression", "zstd"), "none, gzip"),
    (("-o", "x", "--to", "parquet", "--partition-by", "topik"), "topic"),
    (("-o", "-", "--to", "csv", "--json"), "--json"),
    (("-o", "x", "--to", "parquet", "--partition-by", "topic,topic"), "once"),
    (("-o", "-", "--to", "parquet", "--partition-by", "topic"), "folder"),
    (("-o", "x.parquet", "--partition-by", "topic", "--force"), "--force"), ((), "--output"),
])  # fmt: skip
def test_usage(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...], words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "export", logs, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1) and words in err
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_errors_of_wrong_arguments(logs: Path, tmp_path: Path) -> None:
    segments = LogDirectory(logs).segments
    for options, words in (({"form": "xml"}, "form must be"), ({"form": "csv", "compression": "lz4"}, "none, gzip"),
                           ({"form": "csv", "partition_by": ("x",)}, "partition_by must be"),
                           ({"form": "csv", "rows": 0}, "rows must be")):
        with pytest.raises(ValueError, match=words):
            write_table(segments, str(tmp_path / "x"), **options)


def test_not_to_a_terminal(logs: Path) -> None:
    with pytest.raises(AssertionError, match="redirect standard output"):
        on_terminal(200, "log", "export", logs, "-o", "-", "--to", "csv")


def test_segments_outside_of_the_range_are_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By their names, as show does, whatever they hold; but none of them is written over."""
    logs = tmp_path / "logs"
    for base in (0, 6, 12):
        write_segment(logs / "t-0", base, [batch(base), batch(base + 3)], indexes=False)
    first = logs / "t-0" / f"{0:020}.log"
    for path in (first, logs / "t-0" / f"{12:020}.log"):
        path.write_bytes(b"x" * path.stat().st_size)
    span = ("--start-offset", 7, "--end-offset", 11)
    export(capsys, logs, tmp_path / "t.parquet", *span)
    assert pq.read_table(tmp_path / "t.parquet").column("offset").to_pylist() == [7, 8, 9, 10]
    assert export(capsys, logs, tmp_path / "set", "--to", "csv", "--partition-by", "topic", *span)["rows"] == 4
    code, _, err = run(capsys, "export", logs, "-o", first, "--to", "csv", "--force", *span)
    assert code == 2 and "is an input" in err

    done: list[int] = []
    segments = LogDirectory(logs).segments
    write_table(segments, str(tmp_path / "u.csv"), "csv", start_offset=7, end_offset=11, progress=done.append)
    assert sum(done) == sum(segment.size for segment in segments)
    show = [sys.executable, "-m", "kwire", "log", "show", str(logs), "--arrow", *map(str, span)]
    table = pa.ipc.open_stream(subprocess.run(show, capture_output=True, check=True).stdout).read_all()
    assert table.column("offset").to_pylist() == [7, 8, 9, 10]


def test_large_records_as_csv(
    logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Base64 of 1.6 GiB is more than a column holds: records go one by one, and one of that size is a plain error."""
    export(capsys, logs, tmp_path / "whole.csv")
    monkeypatch.setattr("kwire.storage.tables.record_tables._GROUP_BYTES", 1)
    texts, sizes = record_tables._texts, list[int]()

    def noted(column: Any) -> Any:
        sizes.append(len(column))
        return texts(column)

    monkeypatch.setattr(record_tables, "_texts", noted)
    export(capsys, logs, tmp_path / "parts.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert set(sizes) == {1}

    def overflow(column: Any) -> Any:
        raise pa.ArrowCapacityError("array cannot contain more than 2147483646 bytes")

    monkeypatch.setattr(record_tables, "_texts", overflow)
    code, _, err = run(capsys, "export", logs, "-o", tmp_path / "not.csv")
    assert code == 1 and "the record at offset 0 has too many bytes for CSV" in err and "unexpected" not in err
    assert not (tmp_path / "not.csv").exists()
