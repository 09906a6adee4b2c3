"""`kwire log show` of internal topics and of the files beside segments: text, JSON, Arrow, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwire
from kwire.cli import main
from kwire.codec.json import json_text
from tests.storage import internal
from tests.storage.making import START, batch, producer_snapshot, write_segment

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
    assert (code, err) == (0, "")
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
    from tests.storage.making import marker

    folder = tmp_path / "__consumer_offsets-0"
    folder.mkdir()
    rows = [(START, *internal.commit(at)) for at in range(2)]
    data = kwire.build_batch(rows, producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    (folder / f"{0:020}.log").write_bytes(data + marker(2, 5, False))
    assert run(capsys, folder, "--json")[1].count("\n") == 2
    assert run(capsys, folder, "--json", "--committed")[1] == ""
