"""What the fifth attack found: links in globs, endless input, folders that may not be read, files beside a target."""

from __future__ import annotations

import inspect
import io
import os
import shutil
import struct
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import kwire.cli
from kwire import output
from kwire.capture import captures
from kwire.cli import input_file, salvage
from kwire.errors import CorruptBatchError, LimitError
from kwire.output import new_file, scratch_folder
from kwire.spark import options as spark_options
from kwire.storage import LogDirectory, LogSegment, Partition, SegmentWriter, discover, salvage_log
from kwire.storage.places.filesystem import LocalFolder, _OpenFile
from tests.storage.making import batch, write_segment

pytestmark = pytest.mark.quick


def run(*arguments: str) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = kwire.cli.main(arguments)
    return code, err.getvalue()


def with_links_back(folder: Path) -> Path:
    """Three links to the folder that they are in: 3^40 paths until the system says no."""
    for name in "abc":
        (folder / name).symlink_to(".")
    return folder


def test_a_glob_ends_where_links_lead_back(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    with_links_back(tmp_path)
    (found,) = discover(f"{tmp_path}/**/*.log")
    assert found.path == f"{tmp_path}/t-0/{0:020}.log"
    assert discover(f"{tmp_path}/" + "**/" * 1000 + "*.log") == [found]
    with pytest.raises(ValueError, match="4096 characters"):
        discover(f"{tmp_path}/" + "[" * 5000)


def test_a_glob_of_captures_ends_where_links_lead_back(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    path = tmp_path / "one" / "a.pcap"
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    with_links_back(tmp_path)
    assert captures(f"{tmp_path}/**/*.pcap") == [str(path)]


def test_a_link_to_the_same_folder_elsewhere_is_read_once(tmp_path: Path) -> None:
    write_segment(tmp_path / "x" / "t-0", 0, [batch(0)], indexes=False)
    (tmp_path / "y").symlink_to("x")
    assert len(discover(f"{tmp_path}/**/*.log")) == 1
    assert len(discover(f"{tmp_path}/y/**/*.log")) == 1  # a link that is named is followed


def test_what_may_not_be_looked_at_is_not_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = os.stat

    def stat(path: Any, *arguments: Any, **keywords: Any) -> os.stat_result:
        if "locked" in str(path):
            raise PermissionError(13, "Permission denied", path)
        return whole(path, *arguments, **keywords)

    monkeypatch.setattr(os, "stat", stat)
    path = str(tmp_path / "locked" / "x")
    with pytest.raises(PermissionError):
        LocalFolder().entry(path)
    for command in (["log", "ls", path], ["log", "salvage", path], ["snapshot", "show", path],
                    ["audit", path, "--to", "4.0"]):
        code, error = run(*command)
        assert code == 2 and "Permission denied" in error, command
    assert LocalFolder().entry("a" * 300) is None  # as a long comma list is looked at


def test_a_folder_of_captures_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.pcap").write_bytes(b"")
    whole = os.scandir

    def scandir(path: Any) -> Any:
        if str(path).endswith("inner"):
            raise PermissionError(13, "Permission denied", path)
        return whole(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PermissionError):
        captures(tmp_path)


@pytest.mark.parametrize("reader", [input_file.whole, lambda file: list(input_file.lines(file))])
def test_input_without_an_end(monkeypatch: pytest.MonkeyPatch, reader: Any) -> None:
    monkeypatch.setattr(input_file, "MOST_HELD", 3 << 20)
    with open("/dev/zero", "rb") as endless, pytest.raises(LimitError, match="limit 3145728"):
        reader(endless)


def test_ctrl_c_before_the_command_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(kwire.cli, "_main", interrupted)
    assert run("log", "ls") == (130, "kwire: interrupted\n")


def test_ctrl_c_while_a_partial_folder_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole, calls = shutil.rmtree, []

    def rmtree(path: str, **keywords: Any) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt
        whole(path, **keywords)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    with pytest.raises(KeyboardInterrupt), scratch_folder(tmp_path / "x"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_has_its_name_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unlink(path: str) -> None:
        raise OSError(5, "Input/output error", path)

    monkeypatch.setattr(output.os, "unlink", unlink)
    with new_file(tmp_path / "x") as file:
        file.write(b"whole")
    assert (tmp_path / "x").read_bytes() == b"whole"


def test_an_error_without_a_number_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(io.UnsupportedOperation, match=r"^seek$"), new_file(tmp_path / "x"):
        raise io.UnsupportedOperation("seek")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = write_segment(tmp_path / "in" / "t-0", 0, [batch(0), batch(3)], indexes=False)
    path.write_bytes(path.read_bytes()[:-5])
    return path


def test_salvage_keeps_an_index_that_is_there(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "out.index").write_bytes(b"of another segment")
    with pytest.raises(FileExistsError, match=r"out\.index"):
        salvage_log(damaged, tmp_path / "out.log")
    assert (tmp_path / "out.index").read_bytes() == b"of another segment" and not (tmp_path / "out.log").exists()
    salvage_log(damaged, tmp_path / "out.log", force=True)
    assert [record.offset for record in LogSegment(tmp_path / "out.log").read()] == [0, 1, 2]


def test_salvage_follows_a_link_and_replaces_no_pipe(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "link.log").symlink_to("real.log")
    salvage_log(damaged, tmp_path / "link.log")
    assert (tmp_path / "link.log").is_symlink() and (tmp_path / "real.log").is_file()
    os.mkfifo(tmp_path / "pipe.log")
    with pytest.raises(FileExistsError, match="not replaced"):
        salvage_log(damaged, tmp_path / "pipe.log", force=True)
    assert (tmp_path / "pipe.log").is_fifo()
    (tmp_path / "other.log").symlink_to("other.bin")
    with pytest.raises(FileExistsError, match=r"does not end in \.log"):
        salvage_log(damaged, tmp_path / "other.log", force=True)


def test_the_bar_of_salvage_looks_at_partitions_only(tmp_path: Path) -> None:
    size = write_segment(tmp_path / "t-0", 0, [batch(0)]).stat().st_size
    write_segment(tmp_path / "t-0" / "a" / "b", 0, [batch(0)])
    (tmp_path / "t-0" / "x.log").symlink_to("nowhere")
    assert salvage._size(str(tmp_path)) <= size


def test_classes_can_be_looked_at() -> None:
    for kind in (LogSegment, Partition, LogDirectory):
        assert dict(inspect.getmembers(kind))


def test_a_partition_without_segments() -> None:
    assert list(Partition([]).read()) == [] and len(Partition([]).columns(["offset"])) == 0


def test_a_writer_makes_no_folder_of_a_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="is a URL") as raised:
        SegmentWriter("s3://user:secret@bucket/logs", "t", 0)
    assert "secret" not in str(raised.value) and list(tmp_path.iterdir()) == []


def test_an_option_of_spark_without_a_value() -> None:
    given: Any = dict.fromkeys(spark_options.NAMES) | {"path": "/x"}
    assert spark_options.parse(given) == spark_options.parse({"path": "/x"})


def test_heads_of_batches_that_claim_much_are_read_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path, size = tmp_path / "t-0" / f"{0:020}.log", 200 << 20
    path.parent.mkdir()
    path.write_bytes(struct.pack(">qiib", 0, size - 12, 0, 2) + bytes(100))
    os.truncate(path, size)
    whole = _OpenFile.view

    def view(self: Any, start: int, end: int, before: Any = b"") -> memoryview:
        assert end - start < 64 << 20
        return whole(self, start, end, before)

    monkeypatch.setattr(_OpenFile, "view", view)
    assert [header.size for header in LogSegment(path).headers()] == [size]
    assert "checksum" in str(LogSegment(path).verify()[0])
    assert run("log", "ls", str(path.parent))[0] == 0
    with path.open("ab") as file:  # what follows is no batch, and the checksum does not hold
        file.write(b"\1" * 100)
    with pytest.raises(CorruptBatchError, match="no batch follows"):
        list(LogSegment(path).headers())
