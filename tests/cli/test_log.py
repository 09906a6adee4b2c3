"""`kwire log`: its output, its exit codes, its failures in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from struct import pack_into
from typing import Any

import pyarrow.parquet as pq
import pytest

from kwire.cli import main
from tests.storage.making import START, aborted_index, batch, in_transaction, marker, write_segment
from tools.places import ROOT

pytestmark = pytest.mark.quick


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "t-0"
    path = write_segment(folder, 0, [batch(0), in_transaction(3, 1), marker(6, 1, False), batch(7, codec="lz4")])
    aborted_index(path, [(1, 3, 6, 7)])
    write_segment(folder, 10, [batch(10 + 3 * at) for at in range(10)])
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(one) for one in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kwire", *map(str, arguments)],
        text=True,
        capture_output=True,
        cwd=ROOT,
        check=False,
        **options,
    )


def test_show_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "log", "show", folder, "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [row["offset"] for row in rows] == [*range(6), *range(7, 40)]
    assert rows[0] == {
        "topic": "t", "partition": 0, "offset": 0, "timestamp": START, "timestamp_type": "create", "key": "k0",
        "value": "v0".ljust(20, "."), "headers": [["h", "0"]],
        "producer_id": -1, "producer_epoch": -1, "sequence": -1, "transaction": None,
    }  # fmt: skip
    for arguments, expected in (
        (("--committed",), [0, 1, 2, *range(7, 40)]),
        (("--start-offset", 5, "--end-offset", 11), [5, 7, 8, 9, 10]),
        (("--start-timestamp", START + 380), [38, 39]),
        (("--end-timestamp", "2023-11-14T22:13:20.020Z"), [0, 1]),
        (("-n", 3), [0, 1, 2]),
        (("--topic", "t", "--partition", 0, "-n", 1), [0]),
    ):
        code, out, _ = run(capsys, "log", "show", folder, "--json", *arguments)
        assert [json.loads(line)["offset"] for line in out.splitlines()] == expected


def test_show_control_and_binary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "log", "show", folder, "--json", "--control")
    row = json.loads(out.splitlines()[6])
    assert (row["offset"], row["control_type"], row["key"]) == (6, "ABORT", "\0\0\0\0")
    write_segment(folder.parent / "b-0", 0, [batch(0, 1)])
    (folder.parent / "b-0" / f"{0:020}.log").write_bytes(
        __import__("kwire").build_batch([(START, b"\xff\xfe", None), (START, None, b"a\nb\x1b[31m")])
    )
    _, out, _ = run(capsys, "log", "show", folder.parent / "b-0", "--json")
    first, second = map(json.loads, out.splitlines())
    assert (first["key"], first["value"]) == ({"base64": "//4="}, None)
    assert second["value"] == "a\nb\x1b[31m"
    _, out, _ = run(capsys, "log", "show", folder.parent / "b-0")
    assert len(out.splitlines()) == 3
    assert "0xfffe" in out
    assert "\x1b" not in out


def test_show_batches(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "log", "show", folder, "--batches", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, len(rows)) == (0, 14)
    assert (rows[2]["base_offset"], rows[2]["is_control"], rows[2]["producer_id"]) == (6, True, 1)
    assert (rows[3]["codec"], rows[3]["position"]) == ("lz4", sum(row["size"] for row in rows[:3]))
    _, out, _ = run(capsys, "log", "show", folder, "--batches", "--start-offset", 8, "-n", 2)
    assert len(out.splitlines()) == 3
    assert "7..9" in out


def test_stats(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "log", "stats", folder, "--json")
    stats = json.loads(out)
    assert (code, stats["records"], stats["batches"], stats["segments"]) == (0, 39, 14, 2)
    assert [part["records"] for part in stats["parts"]] == [9, 30]
    assert stats["producers"] == [
        {"producer_id": 1, "epochs": [0], "batches": 2, "records": 3, "transactional_batches": 2}
    ]
    code, out, _ = run(capsys, "log", "stats", folder)
    assert code == 0
    for word in ("t-0", "0..39", "39", "lz4 none", "2023-11-14 22:13:20", "Producers", "Codecs", "Batch sizes"):
        assert word in out
    assert "1 control records in 1 batches" in out
    _, out, _ = run(capsys, "log", "stats", folder, "--segments")
    assert f"{10:020}.log" in out


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_plot(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    picture = tmp_path / f"picture.{kind}"
    code, _, err = run(capsys, "log", "stats", folder, "--plot", picture)
    assert (code, err) == (0, f"plot written to {picture}\n")
    data = picture.read_bytes()
    if kind == "png":
        assert data.startswith(b"\x89PNG")
        width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
        assert width > height > 500
    else:
        assert b"<svg" in data[:1000]
    empty = folder.parent / "e-0"
    write_segment(empty, 0, [])
    code, _, err = run(capsys, "log", "stats", empty, "--plot", picture)
    assert (code, err, picture.read_bytes()) == (2, f"kwire: {picture}: File exists (--force replaces it)\n", data)
    assert run(capsys, "log", "stats", empty, "--plot", picture, "--force")[0] == 0
    assert picture.read_bytes() != data
    code, _, err = run(capsys, "log", "stats", folder, "--plot", tmp_path / "x.doc")
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.parametrize(("arguments", "closed", "code"), [
    ("log stats {}", ">&-", 1), ("log stats {}", "2>&-", 0), ("log stats {}", ">&- 2>&-", 1),
    ("log show {} --json", ">&-", 1), ("log export {} --to csv -o -", ">&-", 1), ("log verify {}", ">&-", 0),
])  # fmt: skip
def test_a_closed_stream(arguments: str, closed: str, code: int, folder: Path) -> None:
    """What is written to a closed standard output is an error, as with coreutils; nothing is lost with code 0."""
    line = f"{sys.executable} -m kwire {arguments.format(folder)} {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == code
    if code and "2>&-" not in closed:
        assert done.stderr == "kwire: standard output: Bad file descriptor\n"


def test_a_selection_that_nothing_fits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, wanted in (
        (("--topic", "other"), 'no topic "other"; there is 1 topic: t'),
        (("--partition", 7), "no partition 7; there is 1 partition: 0"),
    ):
        assert run(capsys, "log", "show", folder, *arguments) == (2, "", f"kwire: {folder}: {wanted}\n")
    (folder.parent / "none").mkdir()
    assert "none: no log segments found; " in run(capsys, "log", "show", folder.parent / "none")[2]


def test_verify(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "log", "verify", folder) == (0, "", "2 segments, 0 findings\n")
    code, out, _ = run(capsys, "log", "verify", folder, "--json")
    assert (code, json.loads(out)) == (0, {"segments": 2, "findings": []})
    path = folder / f"{10:020}.log"
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data[:-5])
    code, out, err = run(capsys, "log", "verify", folder)
    assert (code, err) == (1, "2 segments, 2 findings\n")
    damage, tail = out.splitlines()
    assert damage.startswith(f"{path}, byte 0, offset 10: batch: ")
    assert tail.startswith(f"{path}, byte ")
    assert "tail" in tail
    code, out, _ = run(capsys, "log", "verify", folder, "--json")
    assert [finding["kind"] for finding in json.loads(out)["findings"]] == ["batch", "tail"]


def test_to_parquet(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.parquet"
    code, summary, _ = run(capsys, "log", "to-parquet", folder, "-o", out, "--json", "--rows", 10)
    assert code == 0
    assert json.loads(summary) == {"output": str(out), "rows": 39, "row_groups": 4, "size": out.stat().st_size}
    file = pq.ParquetFile(out)
    assert [file.metadata.row_group(at).num_rows for at in range(4)] == [10, 10, 10, 9]
    rows = file.read().to_pylist()
    assert [row["offset"] for row in rows] == [*range(6), *range(7, 40)]
    assert {(row["topic"], row["partition"], row["timestamp_type"]) for row in rows} == {("t", 0, "create")}
    assert (rows[1]["key"], rows[1]["headers"]) == (b"k1", [{"key": "h", "value": b"1"}])
    assert round(rows[1]["timestamp"].timestamp() * 1000) == START + 10
    again = ("log", "to-parquet", folder, "-o", out, "--committed", "--start-offset", 2)
    code, _, err = run(capsys, *again)
    assert (code, err) == (2, f"kwire: {out}: File exists (--force replaces it)\n")
    code, _, err = run(capsys, *again, "--force")
    assert (code, pq.read_table(out)["offset"].to_pylist()) == (0, [2, *range(7, 40)])
    assert err.startswith("34 rows, ")
    last, named = tmp_path / "last.parquet", Path("t-0.parquet")
    assert run(capsys, "log", "to-parquet", folder, last)[0] == 0
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "log", "to-parquet", folder)[0] == 0
    assert pq.read_table(last) == pq.read_table(named)
    log = folder / f"{10:020}.log"
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    broken = tmp_path / "broken.parquet"
    code, _, err = run(capsys, "log", "to-parquet", folder, "-o", broken)
    assert (code, err.count("\n")) == (1, 1)
    assert str(log) in err
    assert not broken.exists()
    assert list(tmp_path.glob("*.partial")) == []


LATE = (253_402_300_799_999, 253_402_300_800_000, 1 << 60, (1 << 63) - 1)  # the year 9999 ends, and times past it


@pytest.mark.parametrize("times", [LATE[:1], LATE[1:2], LATE, (START, *LATE), (0, (1 << 63) - 1)], ids=str)
def test_a_plot_of_times_that_no_calendar_has(
    times: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(3 * at, time=one - 40) for at, one in enumerate(times)])
    picture = tmp_path / "picture.svg"
    code, out, err = run(capsys, "log", "stats", path, "--plot", picture)
    assert (code, err) == (0, f"plot written to {picture}\n") and "t-0" in out
    assert picture.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize("name", ["t-99999999999", "t-4294967296", "t-2147483648", "t-00000000000000000001", "t--1"])
def test_a_folder_whose_number_is_none_of_a_partition(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A partition is a number of 31 bits."""
    path = write_segment(tmp_path / name, 0, [batch(0)])
    out = tmp_path / "out.parquet"
    assert run(capsys, "log", "to-parquet", path, "-o", out)[0] == 0
    assert pq.read_table(out)["partition"].to_pylist() == [1 if name == "t--1" else None] * 3
    assert run(capsys, "log", "stats", path)[0] == 0


def test_failures_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / f"{0:020}.log"
    data = bytearray(path.read_bytes())
    pack_into(">i", data, len(batch(0)) + 8, 3)
    path.write_bytes(data)
    code, out, err = run(capsys, "log", "show", folder, "--json")
    assert (code, len(out.splitlines()), err.count("\n")) == (1, 3, 1)
    assert err.startswith(f"kwire: {path}: batch at byte {len(batch(0))}, base offset 3: batch length 3 is below 14")
    for arguments, named in (
        (("log", "show", folder / "none"), "none"),
        (("log", "stats", folder, "--topic", "x"), "t-0"),
        (("log", "show"), "PATH"),
        (("log", "show", folder, "--limit", "x"), "--limit"),
        (("log", "show", folder, "--start-timestamp", "yesterday"), "yesterday"),
        (("log", "nothing", folder), "nothing"),
        (("nothing",), "nothing"),
    ):
        code, out, err = run(capsys, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), arguments
        assert named in err


def test_a_process(folder: Path) -> None:
    done = process("log", "show", folder, "--json", "-n", 2)
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 2, "")
    done = process("--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "kwire,")
    assert process("log", "verify", folder / "none").returncode == 2
    done = process()
    assert done.returncode in (0, 2)
    assert "log" in done.stdout + done.stderr


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(100 * at, 100) for at in range(200)])
    done = subprocess.run(
        f"{sys.executable} -m kwire log show {path} --json | head -n 1", shell=True, text=True, capture_output=True,
        cwd=ROOT, check=False)  # fmt: skip
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "")


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_its_libraries_it_names_the_extra(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None; from kwire.cli import main; sys.exit(main(['log', 'show', 'x']))"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "kwire[cli]" in done.stderr


def test_help_loads_no_command() -> None:
    code = (
        "import sys\nfrom kwire.cli import main\nmain(['--help'])\n"
        "loaded = {'kwire.cli.log', 'kwire.storage', 'kwire.codec', 'rich.table', 'matplotlib', 'pyarrow'}\n"
        "sys.exit(str(loaded & set(sys.modules)) if loaded & set(sys.modules) else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    assert "log" in done.stdout


def test_progress_on_a_terminal_only(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(1000 * at, 1000) for at in range(40)], indexes=False)
    assert path.stat().st_size > 1 << 20
    assert process("log", "verify", path).stderr == "1 segment, 0 findings\n"
    parent, child = os.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "kwire", "log", "verify", str(path)],
        stdout=subprocess.PIPE,
        stderr=child,
        cwd=ROOT,
        check=False,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
    )
    os.close(child)
    shown = os.read(parent, 1 << 16).decode()
    os.close(parent)
    assert (done.returncode, done.stdout) == (0, b"")
    assert "verifying" in shown
