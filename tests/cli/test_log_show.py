"""`kwire log show` of internal topics and of the files beside segments: text, JSON, Arrow, exit codes."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import kwire
from kwire.cli import main, show_records
from kwire.codec.json import json_text
from kwire.storage import LogDirectory
from kwire.storage.reading.log_follower import LogFollower, LogOffset
from tests.storage import internal
from tests.storage.making import START, batch, in_transaction, marker, producer_snapshot, write_segment
from tools.places import ROOT

pytestmark = pytest.mark.quick


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["log", "show", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def arrow(capture: pytest.CaptureFixture[bytes], *arguments: object) -> tuple[Any, str, int]:
    code = main(["log", "show", "--arrow", *map(str, arguments)])
    out, err = capture.readouterr()
    return pa.ipc.open_stream(out).read_all() if out else None, err.decode(), code


@pytest.mark.parametrize("path", internal.decoded_texts(), ids=lambda path: f"{path.parent.name}-{path.name[-15:]}")
def test_json_is_what_kafka_dump_log_prints(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, path, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, err == "") == (0, bool(rows))
    assert [
        internal.DecodedText(row["offset"], row["timestamp"], row["key"] and json_text(row["key"]),
                             json_text(row["value"]) if row["value"] else "<DELETE>") for row in rows
    ] == internal.decoded_texts()[path]


def test_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "__consumer_offsets-3"
    internal.write(folder, [internal.commit(4), internal.commit(None), internal.commit(6, topic="a\x1b[31m")])
    code, out, err = run(capsys, folder)
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", 4)
    key = 'OFFSET_COMMIT {"group":"g","topic":"t","partition":0}'
    assert lines[1] == (
        f"__consumer_offsets-3              0  2023-11-14 22:13:20.000  {key}  v3 {{\"offset\":4,\"leaderEpoch\":-1,"
        f'"metadata":"m","commitTimestamp":{START + 4}}}')
    assert lines[2].endswith(f"{key}  null")
    assert "\x1b" not in out and "\\u001B[31m" in lines[3]
    assert 'v3 {"offset…' in run(capsys, folder, "--width", 12)[1]
    assert run(capsys, folder, "-n", 1)[1].count("\n") == 2
    _, raw, _ = run(capsys, folder, "--raw")
    assert "OFFSET_COMMIT" not in raw and "0x0003" in raw
    assert "key" in json.loads(run(capsys, folder, "--raw", "--json")[1].splitlines()[0])


def test_the_topic_of_a_file_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = internal.write(tmp_path / "copy", [internal.commit(4)])
    assert "OFFSET_COMMIT" in run(capsys, path)[1]
    path = internal.write(tmp_path / "other", [(b"\0\x63", b"new"), internal.commit(4)])
    assert "OFFSET_COMMIT" not in run(capsys, path)[1]
    assert "OFFSET_COMMIT" in run(capsys, path, "--topic", "__consumer_offsets")[1]


def test_control_records_have_their_message(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = next(golden.glob("data/kafka-4.3.0/data1/__cluster_metadata-0/*255-*.checkpoint"))
    rows = [json.loads(line) for line in run(capsys, snapshot, "--json", "--control")[1].splitlines()]
    assert [row["control_type"] for row in rows if "control_type" in row] == [
        "SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS", "SNAPSHOT_FOOTER"]
    assert rows[1]["control"] == {"version": 0, "kRaftVersion": 1}
    out = run(capsys, snapshot, "--control", "-n", 2)[1]
    assert '[KRAFT_VERSION] {"version":0,"kRaftVersion":1}' in out
    bootstrap = golden / "data/kafka-4.3.0/data1/bootstrap.checkpoint"
    assert "FEATURE_LEVEL_RECORD" in run(capsys, bootstrap)[1]


def test_what_cannot_be_decoded_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, value = internal.commit(4)
    assert value is not None
    records = [(b"\0\x63xyz", b"new"), (key, b"\0\x63new"), (key, value)]
    path = internal.write(tmp_path / "__consumer_offsets-0", records)
    code, out, err = run(capsys, path, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and err == (
        f"kwire: {path}: 2 records not decoded, the first at offset 0: unknown group record type 99\n")
    assert (rows[0]["key"], rows[0]["value"], rows[0]["type"], rows[0]["type_id"]) == ("\0\x63xyz", "new", None, 99)
    assert (rows[1]["type"], rows[1]["value"]) == ("OFFSET_COMMIT", "\0\x63new") and "not 99" in rows[1]["error"]
    assert rows[2]["value"]["data"]["offset"] == 4
    path = internal.write(tmp_path / "__consumer_offsets-1", [(key, value[:-1]), (None, b"x"), (key, value)])
    code, out, err = run(capsys, path)
    assert (code, out.count("\n"), err.count("\n")) == (1, 4, 1)
    assert "[not decoded: group record without a key" in out and "2 records not decoded" in err


def test_arrow(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    key, value = internal.commit(4)
    path = internal.write(tmp_path / "copy" / "__consumer_offsets-1", [(key, b"\0\3"), (None, b"x"), (key, value)])
    table, err, code = arrow(capsysbinary, path)
    assert (code, len(table), err.count("\n")) == (1, 3, 1)
    assert table["error"].null_count == 1
    internal.write(tmp_path / "__consumer_offsets-0", [internal.commit(at) for at in range(30)])
    table, err, code = arrow(capsysbinary, tmp_path, "--topic", "__consumer_offsets", "--start-offset", 5, "-n", 7)
    assert (code, err, table["offset"].to_pylist()) == (0, "", list(range(5, 12)))
    assert json.loads(table["value"][0].as_py())["offset"] == 5 and table["type"][0].as_py() == "OFFSET_COMMIT"
    write_segment(tmp_path / "t-1", 0, [batch(0), batch(3)])
    write_segment(tmp_path / "t-1", 6, [batch(6)])
    table, _, code = arrow(capsysbinary, tmp_path / "t-1", "-n", 7)
    assert (code, table["offset"].to_pylist(), table["topic"][0].as_py()) == (0, list(range(7)), "t")
    table, _, code = arrow(capsysbinary, tmp_path / "t-1", "-n", 0)
    assert (code, len(table)) == (0, 0)
    table, err, code = arrow(capsysbinary, tmp_path)
    assert (code, table) == (2, None) and "choose internal topics or others by --topic, or use --raw" in err
    assert len(arrow(capsysbinary, tmp_path, "--raw")[0]) == 39
    index = tmp_path / "t-1" / f"{0:020}.index"
    for arguments in ((index, index.with_suffix(".timeindex")), (index, tmp_path), ("--json", index)):
        table, err, code = arrow(capsysbinary, *arguments)
        assert (code, table, err.count("\n")) == (2, None, 1)
    producer_snapshot(tmp_path, 5, {3: 4})
    producer_snapshot(tmp_path, 9, {3: -1, 8: 7})
    table, _, code = arrow(capsysbinary, *sorted(tmp_path.glob("*.snapshot")))
    assert (code, table["producer_id"].to_pylist()) == (0, [3, 3, 8])
    assert table["path"][0].as_py().endswith(f"{5:020}.snapshot")


def test_files_beside_segments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(3 * at) for at in range(9)])
    index, times = path.with_suffix(".index"), path.with_suffix(".timeindex")
    code, out, err = run(capsys, index)
    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == [f"{index}: offset index, 4 entries", "offset  position"]
    rows = [json.loads(line) for line in run(capsys, index, times, "--json", "--start-offset", 14)[1].splitlines()]
    assert [row["kind"] for row in rows] == [*["offset index"] * 3, *["time index"] * 3]
    assert rows[0] == {"path": str(index), "kind": "offset index", "offset": 14, "position": rows[0]["position"]}
    out = run(capsys, index, path, times, "-n", 6)[1]
    assert [line.split()[0] for line in out.splitlines()].count("t-0") == 2
    index.write_bytes(index.read_bytes()[:-3])
    code, out, err = run(capsys, index)
    assert (code, err) == (1, f"kwire: {index}: found 29 bytes, which is not a multiple of 8\n")
    assert "3 entries" in out
    code, _, err = run(capsys, index, "--batches")
    assert (code, err.count("\n")) == (2, 1)
    (tmp_path / "meta.properties").write_text("node.id=1\x1b[31m\n")
    code, out, _ = run(capsys, tmp_path / "meta.properties")
    assert code == 0 and "1\\x1b[31m" in out
    (tmp_path / "x-checkpoint").write_text("junk\n")
    code, out, err = run(capsys, tmp_path / "x-checkpoint")
    assert (code, out, err.count("\n")) == (1, "", 1) and err.startswith(f"kwire: {tmp_path}/x-checkpoint: ")


def test_aborted_commits_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    rows = [(START, *internal.commit(at)) for at in range(2)]
    data = kwire.build_batch(rows, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    (folder / f"{0:020}.log").write_bytes(data + marker(2, 5, False))
    assert run(capsys, folder, "--json")[1].count("\n") == 2
    assert run(capsys, folder, "--json", "--committed")[1] == ""


# which records


def shown_offsets(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[int]:
    code, out, err = run(capsys, *arguments, "--format", r"%o\n")
    assert code == 0 and (not err or (not out and err.startswith("kwire: no records found in ")))
    return [int(line) for line in out.splitlines()]


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Partitions t-0 (three segments, with gaps, compressed and control batches) and t-1."""
    folder = tmp_path / "t-0"
    write_segment(folder, 0, [batch(10 * at, 5, codec="lz4" if at % 2 else "none") for at in range(20)])
    write_segment(folder, 200, [in_transaction(200, 1), marker(203, 1, False), batch(204), in_transaction(207, 2)])
    write_segment(folder, 300, [])
    write_segment(tmp_path / "t-1", 0, [batch(0, 2)])
    return tmp_path


def test_the_last_records(mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = shown_offsets(capsys, mixed, "--topic", "t", "--partition", 0)
    assert len(every) == 109
    for count in (0, 1, 2, 6, 9, 10, 14, 50, 108, 109, 110, 1000):
        last = shown_offsets(capsys, mixed / "t-0", "--tail", count)
        assert last == (every[-count:] if count else [])
        assert shown_offsets(capsys, mixed, "--tail", count) == last + [0, 1][max(0, 2 - count):]
    assert shown_offsets(capsys, mixed / "t-0", "--tail", 5, "--committed") == [193, 194, 204, 205, 206]
    assert shown_offsets(capsys, mixed / "t-0", "--tail", 5, "--control") == [205, 206, 207, 208, 209]
    assert shown_offsets(capsys, mixed / "t-0", "--tail", 7, "--control")[0] == 203
    assert shown_offsets(capsys, mixed / "t-0", "--tail", 3, "--end-offset", 44) == [41, 42, 43]
    assert shown_offsets(capsys, mixed / "t-0", "--tail", 3, "--key", "k50", "--key", "k11") == [11, 50]
    assert shown_offsets(capsys, mixed / "t-0", "--tail", 6, "-n", 2) == [204, 205]


def test_the_last_records_of_a_large_segment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Looked for from the end on, in pieces that grow."""
    path = write_segment(tmp_path / "t-0", 0, [batch(50 * at, 50, size=400) for at in range(200)])
    assert path.stat().st_size > 4 << 20
    for count in (1, 700, 5000, 9999, 20_000):
        assert shown_offsets(capsys, path, "--tail", count) == list(range(max(0, 10_000 - count), 10_000))
    assert shown_offsets(capsys, path, "--tail", 2, "--key", "k17") == [17]


def test_by_content(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        (START, b"a", b"one error", [("trace", b"1")]), (START, b"\xff\x01", b"two", [("trace", b"2"), ("x", None)]),
        (START, None, None), (START, b"", b"three", [("x", b"")]), (START, b"0xff01", b"ERROR four", []),
    ]  # fmt: skip
    folder = tmp_path / "t-0"
    write_segment(folder, 0, [kwire.build_batch(rows)])
    for arguments, offsets in (
        (("--key", "a"), [0]), (("--key", "0xff01"), [1, 4]), (("--key", ""), [3]),
        (("--key", "a", "--key", ""), [0, 3]),
        (("--grep", "error"), [0]), (("--grep", "(?i)error"), [0, 4]), (("--grep", "^a$"), [0]), (("--grep", "z"), []),
        (("--grep", r"\xff"), [1]), (("--header", "x"), [1, 3]), (("--header", "x="), [3]),
        (("--header", "trace=2"), [1]), (("--header", "trace", "--header", "x"), [1]),
        (("--header", "trace", "--key", "a"), [0]), (("--grep", "e", "-n", 2), [0, 3]),
        (("--grep", "", "-n", 9), [0, 1, 2, 3, 4]),
    ):  # fmt: skip
        assert shown_offsets(capsys, folder, *arguments) == offsets, arguments
    assert "  null                  null" in run(capsys, folder)[1]
    for expression in ("(", "(" * 30_000, "a{99999999999}"):
        code, out, err = run(capsys, folder, "--grep", expression)
        assert (code, out, err.count("\n")) == (2, "", 1) and "--grep" in err
    table = [line.split()[1] for line in run(capsys, folder, "--header", "trace")[1].splitlines()[1:]]
    assert table == ["0", "1"]


def test_nothing_found(mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A note on stderr says what there is; asked for nothing, there is none."""
    times = "2023-11-14 22:13:20.000 to 2023-11-14 22:13:22.090 UTC"
    for arguments in (
        ("--start-offset", 300), ("--start-timestamp", "2100-01-01"), ("--key", "x"),
        ("--start-offset", 300, "--batches"), ("--start-offset", 209, "--tail", 3, "--committed"),
    ):
        what = "batches" if "--batches" in arguments else "records"
        code, out, err = run(capsys, mixed / "t-0", *arguments)
        assert (code, out.count("\n")) == (0, 1), "its columns"
        assert err.splitlines()[-1] == f"kwire: no {what} found in t-0 (offsets 0 to 299, {times})"
        assert run(capsys, mixed, *arguments)[2].splitlines()[-1].count(" (offsets ") == 2
    for arguments in (("--tail", 0), ("-n", 0), ("--start-offset", 1)):
        assert run(capsys, mixed, *arguments)[::2] == (0, "")
    empty, loose = mixed / "t-2" / f"{0:020}.log", mixed / "a.bin"
    write_segment(empty.parent, 0, [])
    assert run(capsys, empty)[::2] == (0, "kwire: no records found in t-2 (empty)\n")
    loose.write_bytes(batch(0))
    assert run(capsys, loose, "--key", "x")[2].startswith(f"kwire: no records found in {loose} (offsets 0 to 2, ")
    (mixed / "a.log.gz").write_bytes(gzip.compress(batch(0)))
    assert run(capsys, mixed / "a.log.gz", "--key", "x")[2] == f"kwire: no records found in {mixed / 'a.log.gz'}\n"
    (mixed / "a.log.gz").unlink()
    for number in range(3, 8):
        write_segment(mixed / f"t-{number}", 0, [])
    err = run(capsys, mixed, "--key", "x")[2]
    assert err.endswith(", t-4 (empty) and 3 more\n") and err.count("t-") == 5


def test_what_does_not_go_together(mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        (mixed, "--json", "--format", "%k"), (mixed, "--arrow", "--json"), (mixed, "--arrow", "--tail", 1),
        (mixed, "--batches", "--grep", "x"), (mixed, "--batches", "--follow"), (mixed, "--batches", "--format", "%k"),
        (mixed / "t-0" / f"{0:020}.index", "--tail", 1), (mixed, "--tail", -1),
    ):  # fmt: skip
        code, out, err = run(capsys, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), arguments


def test_arrow_takes_the_same_conditions(mixed: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    table, _, code = arrow(capsysbinary, mixed, "--grep", "^v20[0-9]", "--control", "-n", 4)
    assert (code, table["offset"].to_pylist()) == (0, [200, 201, 202, 204])


def test_the_state_of_each_transaction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "t-0"
    write_segment(folder, 0, [
        batch(0), in_transaction(3, 1), in_transaction(6, 2), marker(9, 1, True), in_transaction(10, 1),
        marker(13, 2, False)])
    write_segment(folder, 14, [in_transaction(14, 3), marker(17, 1, False), in_transaction(18, 2)])
    rows = {row["offset"]: row for row in map(json.loads, run(capsys, folder, "--json", "--control")[1].splitlines())}
    states = {offset: row["transaction"] for offset, row in rows.items()}
    assert [states[offset] for offset in (0, 3, 6, 9, 10, 13, 14, 17, 18)] == [
        None, "committed", "aborted", None, "aborted", None, "open", None, "open"]
    assert {key: rows[6][key] for key in ("producer_id", "producer_epoch", "sequence")} == {
        "producer_id": 2, "producer_epoch": 0, "sequence": 6}
    for start in (4, 6, 10, 14, 18):
        part = [json.loads(line) for line in run(capsys, folder, "--json", "--start-offset", start)[1].splitlines()]
        assert part and all(row["transaction"] == states[row["offset"]] for row in part)
    committed = [json.loads(line) for line in run(capsys, folder, "--json", "--committed")[1].splitlines()]
    assert [(row["offset"], row["transaction"]) for row in committed] == [
        *((at, None) for at in range(3)), *((at, "committed") for at in range(3, 6))]


def test_records_before_damage_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(3 * at) for at in range(6)])
    data = bytearray(path.read_bytes())
    data[len(data) // 2 + 80] ^= 1
    path.write_bytes(data)
    code, out, err = run(capsys, path, "--format", "%o ")
    assert (code, out, err.count("\n")) == (1, "0 1 2 3 4 5 6 7 8 ", 1) and "base offset 9" in err
    code, out, err = run(capsys, path, "--format", "%o ", "--on-error", "skip", "--grep", "v1")
    assert (code, out) == (1, "1 12 13 14 15 16 17 ") and "1 damaged batch" in err
    code, out, err = run(capsys, path, "--format", "%o ", "--tail", 5, "--on-error", "skip")
    assert (code, out) == (1, "13 14 15 16 17 ")


def test_records_before_a_bad_record_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The batch is whole and its checksum right, so that batches before and after it are read with it."""
    bad = bytearray(batch(3))
    bad[61] = 0x7F  # the length of the first record
    bad[17:21] = kwire.crc32c(bad[21:]).to_bytes(4, "big")
    path = write_segment(tmp_path / "t-0", 0, [batch(0), batch(6)])
    path.write_bytes(batch(0) + bad + batch(6))
    for arguments in ((), ("--grep", "v")):
        code, out, err = run(capsys, path, "--format", "%o ", *arguments)
        assert (code, out, err.count("\n")) == (1, "0 1 2 ", 1) and "base offset 3" in err
        code, out, err = run(capsys, path, "--format", "%o ", "--on-error", "skip", *arguments)
        assert (code, out) == (1, "0 1 2 6 7 8 ")


# what is appended


def follow(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kwire", "log", "show", *map(str, arguments), "--follow", "--format", r"%t-%p %o\n"],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)


def test_what_is_appended_is_shown(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    running = follow(tmp_path, "--tail", 1)
    assert running.stdout is not None and running.stdout.readline() == "t-0 2\n"
    with path.open("ab") as file:
        file.write(batch(3, 1) + batch(4, 2)[:40])
        file.flush()
        assert running.stdout.readline() == "t-0 3\n"
        file.write(batch(4, 2)[40:])
    assert [running.stdout.readline() for _ in range(2)] == ["t-0 4\n", "t-0 5\n"]
    write_segment(path.parent, 6, [batch(6, 1)], indexes=False)
    assert running.stdout.readline() == "t-0 6\n"
    write_segment(tmp_path / "u-7", 0, [batch(0, 1)])
    assert running.stdout.readline() == "u-7 0\n"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err.strip()) == (130, "", "kwire: interrupted")


@pytest.mark.parametrize("change", ["truncated", "compacted", "deleted"])
def test_a_log_that_changes_while_it_is_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Between the look at a log and its read, too: each record that is there comes once, and what is lost is told."""
    path = write_segment(tmp_path / "t-0", 0, [batch(0), batch(3), batch(6)], indexes=False)
    real, looks = LogFollower.advance, []

    def changed(self: LogFollower, at: LogOffset) -> LogOffset:
        reached = real(self, at)
        looks.append(reached)
        if len(looks) == 1:
            with path.open("ab") as file:
                file.write(batch(9, 1) + batch(10, 1))
        elif len(looks) == 2:
            new = path.with_suffix(".new")
            if change == "truncated":
                new.write_bytes(batch(0) + batch(3))
            elif change == "compacted":
                new.write_bytes(batch(6) + batch(9, 1) + batch(10, 1))
            if change == "deleted":
                path.unlink()
                write_segment(tmp_path / "t-0", 10, [batch(10, 1)], indexes=False)
            else:
                os.replace(new, path)
        elif len(looks) == 3:
            write_segment(tmp_path / "t-0", 11, [batch(11, 1)], indexes=False)
        return reached

    monkeypatch.setattr(LogFollower, "advance", changed)
    code, out, err = run(capsys, tmp_path, "--follow", "--format", "%o ", "--end-offset", 12)
    told = {"truncated": "was truncated to", "compacted": "", "deleted": "offsets 9..9 are lost"}[change]
    new_ones = {"truncated": "11", "compacted": "9 10 11", "deleted": "10 11"}[change]
    assert (code, out) == (0, f"0 1 2 3 4 5 6 7 8 {new_ones} ")
    assert told in err and all(err.count(line) == 1 for line in err.splitlines())


def test_what_is_appended_while_the_last_records_are_sought_comes_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False), LogFollower.end

    def appended(self: LogFollower) -> LogOffset:
        end = real(self)
        with path.open("ab") as file:
            file.write(batch(3))
        return end

    monkeypatch.setattr(LogFollower, "end", appended)
    code, out, err = run(capsys, path, "--follow", "--tail", 2, "--format", "%o ", "--end-offset", 6)
    assert (code, out, err) == (0, "1 2 3 4 5 ", "")


@pytest.mark.parametrize("last", [0, 2, 10])
def test_a_transaction_that_is_open_at_first_is_shown_whole(
    last: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0), in_transaction(3, 1)], indexes=False)
    path = write_segment(tmp_path / "t-0", 6, [batch(6, 1), in_transaction(7, 1)], indexes=False)

    def sleep(_: float) -> None:
        with path.open("ab") as file:
            file.write(in_transaction(10, 1) + marker(13, 1, True) + batch(14))

    monkeypatch.setattr(show_records, "time", SimpleNamespace(sleep=sleep))
    code, out, err = run(capsys, tmp_path, "--committed", "--follow", "--tail", last, "--format", "%o ",
                         "--end-offset", 17)
    offsets = [int(offset) for offset in out.split()]
    assert (code, err) == (0, "") and offsets == [*range(3 - min(last, 3), 13), *range(14, 17)]


def test_following_ends_at_the_limit_and_the_end_offset(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    for arguments, last in ((("-n", 4), 3), (("--end-offset", 5), 4)):
        path.write_bytes(batch(0))
        running = follow(tmp_path, *arguments)
        assert running.stdout is not None and running.stdout.readline() == "t-0 0\n"
        with path.open("ab") as file:
            file.write(batch(3))
        out, err = running.communicate(timeout=60)
        assert (running.returncode, err, out.split()[-1]) == (0, "", str(last))


def test_a_topic_that_is_deleted_and_made_again_while_it_is_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are followed on; a topic that comes with the same name is another log."""
    write_segment(tmp_path / "t-0", 0, [batch(0), batch(3)], indexes=False)
    other = write_segment(tmp_path / "u-0", 0, [batch(0, 1)], indexes=False)
    looks = []

    def look(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 1:
            (tmp_path / "t-0").rename(tmp_path / f"t-0.{'0' * 32}-delete")
            other.write_bytes(other.read_bytes() + batch(1, 1))
        elif len(looks) == 3:
            write_segment(tmp_path / "t-0", 0, [batch(0, 2)], indexes=False)
        elif len(looks) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", look)
    code, out, err = run(capsys, tmp_path, "--topic", "t,u", "--follow", "--format", "%t%o ")
    assert (code, out) == (130, "t0 t1 t2 t3 t4 t5 u0 u1 t0 t1 ")
    lines = err.splitlines()
    assert len(lines) == 4 and "t-0 is gone: expected offset 6" in lines[0] and "made again" in lines[1]


@pytest.mark.parametrize("replica", [False, True])
def test_a_partition_that_is_moved_to_another_disk_while_it_is_followed(
    replica: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a moment it is in both: each record comes once. Where it stays in both, these are two replicas."""
    path = write_segment(tmp_path / "d1" / "t-0", 0, [batch(0)], indexes=False)
    (tmp_path / "d2").mkdir()
    looks = []

    def look(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 1:
            write_segment(tmp_path / "d2" / "t-0", 0, [batch(0), batch(3, 1)], indexes=False)
        elif len(looks) == 2 and not replica:
            path.parent.rename(tmp_path / "d1" / f"t-0.{'0' * 32}-delete")
        elif len(looks) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", look)
    code, out, err = run(capsys, tmp_path / "d1", tmp_path / "d2", "--follow", "--format", "%o ")
    assert (code, out) == (130, "0 1 2 0 1 2 3 " if replica else "0 1 2 3 ")
    assert err.strip() == "kwire: interrupted"


def test_a_partition_that_is_moved_to_and_fro_while_it_is_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each move it is in both folders for a moment."""
    write_segment(tmp_path / "d1" / "t-0", 0, [batch(0)], indexes=False)
    (tmp_path / "d2").mkdir()
    looks = []

    def look(seconds: float) -> None:
        looks.append(seconds)
        source, target = ("d1", "d2") if len(looks) % 4 in (1, 2) else ("d2", "d1")
        if len(looks) == 7:
            raise KeyboardInterrupt
        if len(looks) % 2:
            shutil.copytree(tmp_path / source / "t-0", tmp_path / target / "t-0")
        else:
            shutil.rmtree(tmp_path / source / "t-0")

    monkeypatch.setattr(time, "sleep", look)
    code, out, err = run(capsys, tmp_path / "d1", tmp_path / "d2", "--follow", "--format", "%o ")
    assert (code, out, err.strip()) == (130, "0 1 2 ", "kwire: interrupted")


def test_committed_records_are_shown_when_they_are(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0, 1), in_transaction(1, 5)], indexes=False)
    running = follow(tmp_path, "--committed", "-n", 7)
    assert running.stdout is not None and running.stdout.readline() == "t-0 0\n"
    with path.open("ab") as file:
        file.write(batch(4, 2))
        file.flush()
        time.sleep(1.5)
        assert running.poll() is None
        file.write(marker(6, 5, True) + batch(7, 1))
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out.split()[1::2], err) == (0, ["1", "2", "3", "4", "5", "7"], "")


def test_a_pipe_is_not_followed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kwire", "log", "show", "-", "--follow"], input=batch(0), capture_output=True, cwd=ROOT,
        timeout=60, check=False)
    assert (done.returncode, done.stdout.count(b"\n")) == (2, 0) and b"is a pipe" in done.stderr


def test_the_last_records_of_a_preallocated_segment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is zeros is not looked at piece by piece, each time back to the records."""
    path = write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    os.truncate(path, 200 << 20)
    looked: list[int] = []
    real = show_records.Output._count
    monkeypatch.setattr(show_records.Output, "_count", lambda *args: looked.append(args[2]) or real(*args))
    assert shown_offsets(capsys, path, "--tail", 2) == [1, 2]
    assert looked == [0]


def test_segments_outside_of_the_range_are_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By their names, as Partition.read does: without indexes each would be read to its end."""
    for base in (0, 6, 12):
        write_segment(tmp_path / "t-0", base, [batch(base), batch(base + 3)], indexes=False)
    log = tmp_path / "t-0" / f"{0:020}.log"
    log.write_bytes(b"x" * log.stat().st_size)
    (tmp_path / "t-0" / f"{12:020}.log").write_bytes(b"x" * 200)
    span = ("--start-offset", 7, "--end-offset", 11)
    assert shown_offsets(capsys, tmp_path, *span) == [7, 8, 9, 10]
    code, out, err = run(capsys, tmp_path, "--batches", *span)
    assert code == 0 and len(out.splitlines()) == 3 and "damage" not in err
    assert len(LogDirectory(tmp_path).columns(start_offset=7, end_offset=11)) == 4


def test_arrow_of_texts_that_are_no_unicode(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """UnicodeEncodeError."""
    path = tmp_path / os.fsdecode(b"\xff") / "meta.properties"
    path.parent.mkdir()
    path.write_text("a=b\n")
    table, err, code = arrow(capsysbinary, path)
    assert (err, code) == ("", 0)
    assert table.to_pylist() == [{"path": f"{tmp_path}/\\udcff/meta.properties", "name": "a", "value": "b"}]
