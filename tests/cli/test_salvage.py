"""`kwire log salvage` and `kwire log whatif`: their output, exit codes, and failures in one line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from kwire.cli import main, salvage
from kwire.storage import LogDirectory, SegmentWriter
from tests.cli.test_log import ROOT
from tests.storage.making import batch, in_transaction, marker, write_segment

pytestmark = pytest.mark.quick


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A partition with one damaged batch (offsets 3 to 5), and a transaction without a marker."""
    made = [batch(0), batch(3), in_transaction(6, 7), batch(9), marker(12, 8, True), batch(13, codec="gzip")]
    with SegmentWriter(tmp_path / "logs", "t", 0) as writer:
        for one in made:
            writer.append(one)
    (path,) = (tmp_path / "logs" / "t-0").glob("*.log")
    data = bytearray(path.read_bytes())
    data[len(made[0]) + 80] ^= 1
    path.write_bytes(data)
    return path.parent


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(one) for one in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_salvage(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "log", "salvage", folder, tmp_path / "clean")
    lines = out.splitlines()
    (path,) = folder.glob("*.log")
    assert code == 1
    assert lines[0].startswith(f"{path}, byte ") and lines[0].endswith(
        "bytes lost, offsets 3 to 5: checksum does not match")
    assert lines[1:] == ["t-0: the transaction of producer 7 from offset 6 on has no end marker"]
    assert err.startswith("5 batches, ") and "; 1 region, " in err
    assert err.endswith(f"written to {tmp_path / 'clean'}\n")
    assert LogDirectory(tmp_path / "clean").verify() == []
    code, out, err = run(capsys, "log", "salvage", tmp_path / "clean", tmp_path / "again")
    assert (code, out) == (0, "the transaction of producer 7 from offset 6 on has no end marker\n")


def test_salvage_json(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "log", "salvage", "--json", folder.parent, tmp_path / "clean")
    found = json.loads(out)
    assert (code, err) == (1, "")
    assert {name: found[name] for name in ("batches", "regions_lost", "offsets_lost", "files_lost", "not_copied")} == {
        "batches": 5, "regions_lost": 1, "offsets_lost": 3, "files_lost": [], "not_copied": []}
    (partition,) = found["partitions"]
    assert (partition["topic"], partition["partition"], partition["next_offset"]) == ("t", 0, 16)
    assert partition["open_transactions"] == [{"producer_id": 7, "first_offset": 6}]
    (loss,) = partition["lost"]
    assert (loss["first_offset"], loss["last_offset"], loss["size"]) == (3, 5, found["bytes_lost"])


def test_salvage_without_a_place_to_write_to(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = folder.glob("*.log")
    (folder / "partition.metadata").write_text("nonsense")
    os.mkfifo(folder / "quorum-state")  # not opened: it would never end
    before = sorted(tmp_path.rglob("*"))
    for source in (path, folder, folder.parent):
        code, out, err = run(capsys, "log", "salvage", source)
        assert sorted(tmp_path.rglob("*")) == before
        written = run(capsys, "log", "salvage", source, "--output", tmp_path / f"of-{source.name}")
        assert (code, out) == written[:2] and code == 1 and out.count("\n") == (2 if source == path else 4)
        assert err.endswith("lost; nothing written (no OUT)\n")
        assert err.rpartition("; ")[0] == written[2].rpartition("; ")[0]
        json_out = json.loads(run(capsys, "log", "salvage", source, "--json")[1])
        assert json_out["target"] is None and json_out["regions_lost"] == 1
        before = sorted(tmp_path.rglob("*"))


def test_salvage_of_zeros_and_other_files(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = folder.glob("*.log")
    (folder / "x\n.txt").write_text("")
    path.write_bytes(path.read_bytes() + bytes(5000))
    code, out, _ = run(capsys, "log", "salvage", folder, tmp_path / "clean")
    assert code == 1
    assert "t-0: 5000 zeros after the last batch left out, as in a preallocated segment\n" in out
    assert f"{folder}/x\\x0a.txt: not copied\n" in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "Missing argument 'IN'"),
        (("IN", "OUT", "--output", "OTHER"), 2, "give one of them"),
        (("missing", "OUT"), 2, "missing: No such file or directory"),
        (("IN", "IN"), 2, "is in the folder that is read"),
        (("IN", "FULL"), 2, "exists and is not an empty folder"),
        (("IN", "no/such/OUT"), 2, "No such file or directory"),
        (("s3://bucket/x", "OUT"), 2, "salvage reads local files"),
        (("IN", "OUT", "--partition", "-1"), 2, "--partition"),
        (("IN", "OUT", "--index-interval-bytes", "x"), 2, "not a whole number"),
        (("FULL", "OUT"), 2, "no log segments found\n"),
        (("FULL", "OUT", "--topic", "t"), 2, "no log segments found\n"),
        (("IN", "OUT", "--topic", "other"), 2, 'no topic "other"; there is 1 topic: t'),
        (("IN", ""), 2, "kwire: the name of the output folder is empty"),
    ],
)
def test_salvage_failures(
    arguments: tuple[str, ...], code: int, message: str, folder: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FULL").mkdir()
    (tmp_path / "FULL" / "x").write_text("")
    given = [str(folder) if one == "IN" else one for one in arguments]
    found, out, err = run(capsys, "log", "salvage", *given)
    assert (found, out) == (code, "") and message in err and err.count("\n") == 1
    assert not (tmp_path / "OUT").exists()


def test_whatif(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "log", "whatif", folder)
    assert (code, err) == (1, "")  # of the damaged batch
    lines = out.splitlines()
    assert lines[0].startswith("12 records in 4 batches (1 gzip, 3 none), 4 of more than one record; ")
    table = [line.split()[:2] for line in lines if "iB" in line or " B " in line][1:]
    assert [name if name in ("none", "snappy") else f"{name} {level}" for name, level in table] == [
        "none", "gzip 1", "gzip 6", "gzip 9", "snappy", "lz4 1", "lz4 9", "lz4 17", "zstd 1", "zstd 3", "zstd 9",
        "zstd 19"]
    assert "1 damaged batch left out: see kwire log verify." in lines
    assert any(line.endswith("bytes of control batches, which are not compressed, are left out.") for line in lines)


def test_whatif_options(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, wanted in (
        (("--codec", "snappy"), [("snappy", None)]),
        (("--codec", "zstd", "--level", "2"), [("zstd", 2)]),
        (("--codec", "gzip", "--codec", "lz4", "--level", "8-10"),
         [("gzip", 8), ("gzip", 9), ("lz4", 8), ("lz4", 9), ("lz4", 10)]),
        (("--level", "all"), [("none", None), *(("gzip", at) for at in range(1, 10)), ("snappy", None),
                              *(("lz4", at) for at in range(1, 18)), *(("zstd", at) for at in range(1, 23))]),
        (("--codec", "none", "--batch-bytes", "1k", "--all"), [("none", None)]),
        (("--codec", "none", "--sample", "100"), [("none", None)]),
    ):
        code, out, err = run(capsys, "log", "whatif", folder, "--json", *arguments)
        found = json.loads(out)
        assert (code, err) == (1 if found["bad_batches"] else 0, "")
        assert [(one["codec"], one["level"]) for one in found["outcomes"]] == wanted
        assert found["sampled"] == ("--sample" in arguments)
        assert found["batch_bytes"] == (1024 if "--batch-bytes" in arguments else None)
    code, out, err = run(capsys, "log", "whatif", folder, "--sample", "100", "--batch-bytes", "1KiB")
    assert "put into batches of 1.0 KiB before compression" in out and "--all reads all." in out
    assert "estimate of all" in out


def test_whatif_plot(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, codec in (("a.png", "zstd"), ("b.svg", "none"), ("c.pdf", "gzip")):
        code, _, err = run(capsys, "log", "whatif", folder, "--codec", codec, "--plot", tmp_path / name)
        assert (code, err) == (1, f"plot written to {tmp_path / name}\n")
        assert (tmp_path / name).stat().st_size > 5000
    empty = tmp_path / "e-0" / f"{0:020}.log"
    empty.parent.mkdir()
    empty.write_bytes(b"")
    assert run(capsys, "log", "whatif", empty, "--plot", tmp_path / "d.png")[0] == 0
    code, _, err = run(capsys, "log", "whatif", folder, "--plot", tmp_path / "a.png")
    assert code == 2 and "--force" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--codec", "brotli"), "brotli"),
        (("--level", "0"), "no such level: gzip has 1 to 9, lz4 has 1 to 17, zstd has 1 to 22"),
        (("--codec", "snappy", "--level", "1"), "no such level: none has levels"),
        (("--level", "9-3"), "empty range"),
        (("--level", "x"), "neither a level"),
        (("--level", "-1"), "neither a level"),
        (("--batch-bytes", "0"), "not a number of bytes"),
        (("--batch-bytes", "1e6"), "not a number of bytes"),
        (("--sample", "-5"), "not a number of bytes"),
    ],
)
def test_whatif_failures(
    arguments: tuple[str, ...], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "log", "whatif", folder, *arguments)
    assert (code, out) == (2, "") and message in err and err.count("\n") == 1


def test_the_group_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "log", "--help")
    assert code == 0
    for name in ("salvage", "show", "stats", "to-parquet", "verify", "whatif"):
        assert f"\n  {name} " in out


@pytest.mark.quick
def test_ctrl_c_again_and_again_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, left, inner = tmp_path / "x.log", [3], shutil.rmtree
    path.write_bytes(batch(0))
    (tmp_path / "tmp").mkdir()

    def interrupted(*arguments: Any, **options: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise KeyboardInterrupt
        inner(*arguments, **options)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(shutil, "rmtree", interrupted)
    assert main(["log", "salvage", str(path), "-"]) == 130
    assert left[0] < 0 and not list((tmp_path / "tmp").iterdir())


def test_the_bar_of_salvage_looks_at_partitions_only(tmp_path: Path) -> None:
    size = write_segment(tmp_path / "t-0", 0, [batch(0)]).stat().st_size
    write_segment(tmp_path / "t-0" / "a" / "b", 0, [batch(0)])
    (tmp_path / "t-0" / "x.log").symlink_to("nowhere")
    assert salvage._size(str(tmp_path)) <= size


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_not_written_over(name: str, tmp_path: Path) -> None:
    """salvage - x.log --force < x.log replaced what was to be saved."""
    path = tmp_path / "x.log"
    path.write_bytes(batch(0) + b"damaged" * 20 + batch(3))
    before = path.read_bytes()
    with path.open("rb") as file:
        done = subprocess.run([sys.executable, "-m", "kwire", "log", "salvage", name, str(path), "--force"], stdin=file,
                              cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, path.read_bytes()) == (2, before) and "is the segment that is read" in done.stderr
