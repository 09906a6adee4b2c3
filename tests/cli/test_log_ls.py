"""`kwire log ls`: topics, partitions and segments by names, indexes and a few bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwire.cli import main
from kwire.storage import discover
from kwire.storage.reading.segment_summaries import following, summarize_partitions, summarize_segments
from tests.cli.test_record_lines import on_terminal
from tests.reads import Reads
from tests.storage.making import START, batch, write_segment

pytestmark = pytest.mark.quick


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["log", "ls", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def rows(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    code, out, err = run(capsys, *arguments, "--json")
    assert (code, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_segment(tmp_path / "b.topic-0", 0, [batch(3 * at, codec="lz4") for at in range(9)])
    write_segment(tmp_path / "b.topic-0", 27, [batch(27)])
    write_segment(tmp_path / "b.topic-0", 30, [])
    write_segment(tmp_path / "b.topic-1", 5, [batch(5, 2)], indexes=False)
    write_segment(tmp_path / "a-3", 0, [batch(0, 40)])
    (tmp_path / "not-a-partition").mkdir()
    return tmp_path


def test_partitions(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, other = rows(capsys, logs)
    sizes = [file.stat().st_size for file in (logs / "b.topic-0").glob("*.log")]
    assert b == {
        "topic": "b.topic", "partition": 0, "path": str(logs / "b.topic-0"), "segments": 3, "base_offset": 0,
        "next_offset": 30, "bytes": sum(sizes), "records": 30, "first_timestamp": START, "last_timestamp": START + 290,
    }  # fmt: skip
    assert [(row["topic"], row["partition"], row["base_offset"], row["next_offset"]) for row in (a, other)] == [
        ("a", 3, 0, 40), ("b.topic", 1, 5, 7)]
    code, out, err = run(capsys, logs)
    assert code == 0 and err.startswith("2 topics, 3 partitions, 5 segments, ")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0][:5] == ["partition", "segments", "offsets", "records", "size"]
    assert lines[2][:6] == ["b.topic-0", "3", "0..29", "30", *lines[2][4:6]] and lines[2][-1] == "22:13:20"
    assert lines[3][2] == "5..6"


def test_topics_and_segments(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topics = rows(capsys, logs, "--topics")
    assert [(row["topic"], row["partitions"], row["segments"], row["records"]) for row in topics] == [
        ("a", 1, 1, 40), ("b.topic", 2, 4, 32)]
    segments = rows(capsys, logs, "--segments", "--topic", "b.*", "--partition", 0)
    assert [(row["base_offset"], row["next_offset"], row["records"], row["codec"]) for row in segments] == [
        (0, 27, 27, "lz4"), (27, 30, 3, "none"), (30, None, None, None)]
    assert [row["has_index"] for row in rows(capsys, logs, "--segments")] == [True, True, True, True, False]
    out = run(capsys, logs, "--segments")[1]
    assert [line.split()[2] for line in out.splitlines() if f"{27:020}.log" in line] == ["27..29"]
    assert out.splitlines()[-1].startswith("b.topic-1")
    code, out, err = run(capsys, logs, "--segments", "--topics")
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_the_order(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_size = [row["bytes"] for row in rows(capsys, logs, "--sort", "size")]
    assert by_size == sorted(by_size, reverse=True)
    assert [row["topic"] for row in rows(capsys, logs, "--sort", "time")] == ["a", "b.topic", "b.topic"]


def test_what_is_not_there(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (((logs / "none",), "none"), ((logs, "--topic", "b.topik"), "b.topic"),
                             ((logs / "not-a-partition",), "no log segments"), ((), "PATH"), (("-",), "no listing")):
        code, out, err = run(capsys, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1) and words in err


def test_no_segment_is_read(
    logs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the header of the first batch, and a few KiB at the end of a partition."""
    from kwire.storage.places import filesystem

    read_bytes: list[int] = []
    real = filesystem.read_piece

    def counted(descriptor: int, start: int, end: int, before: Any) -> Any:
        read_bytes.append(end - start)
        return real(descriptor, start, end, before)

    monkeypatch.setattr(filesystem, "read_piece", counted)
    path = write_segment(logs / "big-0", 0, [batch(100 * at, 100, size=900) for at in range(40)], every=1)
    last = write_segment(logs / "big-0", 4000, [batch(4000 + 100 * at, 100, size=900) for at in range(40)], every=1)
    [row] = rows(capsys, logs, "--topic", "big")
    assert (row["base_offset"], row["next_offset"], row["bytes"]) == (
        0, 8000, path.stat().st_size + last.stat().st_size)
    assert row["last_timestamp"] == START + 79_990
    assert sum(read_bytes) < path.stat().st_size / 10


def test_damage_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_segment(tmp_path / "t-0", 3, [batch(3)])
    path.write_bytes(b"\xff" * 100)
    [row] = rows(capsys, tmp_path)
    assert (row["base_offset"], row["next_offset"], row["records"], row["first_timestamp"]) == (3, None, None, None)
    packed = tmp_path / "u-0" / f"{7:020}.log.gz"
    packed.parent.mkdir()
    packed.write_bytes(b"not read")
    assert [(row["base_offset"], row["bytes"]) for row in rows(capsys, tmp_path)] == [(3, 100), (7, 8)]


def test_on_a_narrow_terminal(logs: Path) -> None:
    for cells, names in (
        (120, ["partition", "segments", "offsets", "records", "size", "first", "last"]),
        (80, ["partition", "segments", "offsets", "records", "size", "last"]), (30, ["partition", "offsets", "size"]),
    ):  # fmt: skip
        lines = on_terminal(cells, "log", "ls", logs).splitlines()
        assert [word for word in lines[0].split() if word not in ("time", "(UTC)")] == names
        assert max(map(len, lines[:-1])) <= cells


def test_the_only_segment_of_a_partition_is_read_once(logs: Path, reads: Reads) -> None:
    """In a store each read is a request."""
    [*files] = discover(logs / "a-3")
    summarize_segments(following(files))
    once = len(reads)
    [row] = summarize_partitions([files])
    assert len(reads) == 2 * once > 0
    assert (row.base_offset, row.next_offset, row.first_timestamp) == (0, 40, START)
