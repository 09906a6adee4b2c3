"""Which files are segments, and which topic and partition they belong to."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest

from kwire.errors import WrongFileError
from kwire.storage import LogDirectory, LogSegment, SegmentFile, discover
from tests.storage.making import batch, offsets, write_segment

pytestmark = pytest.mark.quick


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for topic in ("a-0", "a-1", "b.c-x-12", "__consumer_offsets-3"):
        write_segment(tmp_path / topic, 0, [batch(0)])
    write_segment(tmp_path / "a-0", 3, [batch(3)])
    write_segment(tmp_path / "a-1.0123-delete", 0, [batch(0)])
    beside = tmp_path / "a-0"
    for name in (
        "00000000000000000003.log.deleted", "00000000000000000009.log.cleaned", "00000000000000000009.log.swap",
        "00000000000000000003.snapshot", "leader-epoch-checkpoint", "partition.metadata",
        "00000000000000000000-0000000000.checkpoint",
    ):  # fmt: skip
        (beside / name).write_bytes(b"x")
    (tmp_path / "meta.properties").write_text("x")
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n")
    (tmp_path / "loose").mkdir()
    write_segment(tmp_path / "loose", 0, [batch(0)]).rename(tmp_path / "loose/archived.bin")
    return tmp_path


def names(files: list[SegmentFile]) -> list[tuple[str | None, int | None, int]]:
    return [(file.topic, file.partition, file.base_offset) for file in files]


ALL = [("__consumer_offsets", 3, 0), ("a", 0, 0), ("a", 0, 3), ("a", 1, 0), ("b.c-x", 12, 0)]


def test_a_log_directory(root: Path) -> None:
    assert names(discover(root)) == ALL
    assert names(discover(str(root) + "/")) == ALL
    assert [file.size for file in discover(root)] == [os.path.getsize(file.path) for file in discover(root)]


@pytest.mark.parametrize("most", [0, 1, 2])
def test_where_threads_cannot_be_started(root: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """ulimit -u, or -v, as few threads fit."""
    start, started = threading.Thread.start, list[threading.Thread]()

    def refused(thread: threading.Thread) -> None:
        if len(started) >= most:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert names(discover(root)) == ALL
    assert len(started) == most


def test_selection(root: Path) -> None:
    assert names(discover(root, topics=["a"])) == ALL[1:4]
    assert names(discover(root, topics=["a", "b.c-x"], partitions=[0, 12])) == [ALL[1], ALL[2], ALL[4]]
    assert discover(root, topics=["none"]) == []


def test_a_partition_a_file_a_list_and_a_glob(root: Path) -> None:
    assert names(discover(root / "a-0")) == ALL[1:3]
    file = str(root / "a-1" / f"{0:020}.log")
    assert names(discover(file)) == [ALL[3]]
    assert names(discover(f"{file}, {root / 'a-0'}")) == ALL[1:4]
    assert names(discover([file, root / "a-0", file])) == ALL[1:4]
    assert names(discover(f"{root}/a-*/*")) == ALL[1:4]
    assert names(discover(f"{root}/*-0/0*.log")) == ALL[1:3]
    assert names(discover(f"{root}/a-?")) == ALL[1:4]


def test_files_named_otherwise(root: Path) -> None:
    loose = root / "loose" / "archived.bin"
    assert names(discover(loose)) == [(None, None, -1)]
    assert names(discover(loose, topics=["t"], partitions=[4])) == [("t", 4, -1)]
    assert names(discover(f"{root}/loose/*")) == [(None, None, -1)]
    assert discover(root / "loose") == []
    segment = LogSegment(loose, topic="t", partition=4)
    assert (segment.topic, segment.partition, segment.base_offset) == ("t", 4, 0)
    assert offsets(segment.read(committed=True)) == [0, 1, 2]
    comma = root / "loose" / "a,b.log"
    loose.rename(comma)
    assert len(discover(comma)) == 1


def test_relative_paths(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "a-0")
    assert names(discover(".")) == ALL[1:3]
    assert LogSegment(f"{0:020}.log").topic == "a"
    assert offsets(LogSegment(f"{0:020}.log").read(committed=True)) == [0, 1, 2]
    assert offsets(LogDirectory(".").read()) == list(range(6))


@pytest.mark.parametrize("path", ["nothing", "a-0/00.log", "none-*/x", "a-0,nothing"])
def test_paths_that_do_not_exist(root: Path, path: str) -> None:
    with pytest.raises(FileNotFoundError, match=path.split(",")[-1].replace("*", r"\*")):
        discover(",".join(f"{root}/{part}" for part in path.split(",")))
    with pytest.raises(FileNotFoundError):
        LogSegment(root / "nothing")


def test_a_topic_or_a_partition_that_is_not_there(root: Path) -> None:
    """An error as the commands have; allow_empty: the directory is empty."""
    for wanted, said in (
        ({"topics": ["a", "b.c-y"]}, 'no topic "b.c-y" (did you mean "b.c-x"?); there are 3 topics: __con'),
        ({"topics": ["a"], "partitions": [0, 12]}, "no partition 12; there are 2 partitions: 0, 1"),
        ({"topics": {"a*"}}, 'no topic matches "a*"'),
        ({"partitions": [7]}, "no partition 7; there are 4 partitions: 0, 1, 3, 12"),
    ):
        with pytest.raises(FileNotFoundError) as error:
            LogDirectory(root, **wanted)
        assert str(error.value).startswith(f"{root}: {said}")
        there = LogDirectory(root, **wanted, allow_empty=True)
        assert [file.path for file in discover(root, **wanted)] == [segment.path for segment in there.segments]
    assert not LogDirectory(root / "loose", topics=["t"]).segments  # an empty log directory
    assert len(LogDirectory(root / "loose" / "archived.bin", topics=["t"])) == 1  # the label of a file


def test_a_directory_gives_partitions(root: Path) -> None:
    directory = LogDirectory(root)
    assert [(one.topic, one.partition, len(one.segments)) for one in directory] == [
        ("__consumer_offsets", 3, 1), ("a", 0, 2), ("a", 1, 1), ("b.c-x", 12, 1),
    ]  # fmt: skip
    assert offsets(directory["a", 0].read()) == list(range(6))
    with pytest.raises(KeyError):
        directory["a", 9]
    assert sum(1 for _ in directory.batches()) == 5
    assert len(directory.columns()) == 15


def test_a_segment_that_is_there_twice_is_read_once(tmp_path: Path) -> None:
    """As .log and .log.gz, which gzip leaves beside each other while it works, or with -k."""
    folder = tmp_path / "t-0"
    first, second = (write_segment(folder, base, [batch(base)]) for base in (0, 3))
    first.with_suffix(".log.gz").write_bytes(gzip.compress(first.read_bytes())[:-10])
    second.with_suffix(".log.gz").write_bytes(gzip.compress(second.read_bytes()))
    for path in (tmp_path, folder, f"{folder}/*", [f"{folder}/*.log.gz", folder]):
        assert [file.path for file in discover(path)] == [str(first), str(second)]
        assert offsets(LogDirectory(path).read()) == list(range(6))
    assert [one.path for one in LogSegment(first).later] == [str(second)]
    second.unlink()
    assert offsets(LogDirectory(tmp_path).read()) == list(range(6))
    assert [one.path for one in LogSegment(first).later] == [f"{second}.gz"]


@pytest.mark.parametrize("kind", ["zst", "lz4", "bz2", "xz"])
def test_a_segment_that_cannot_be_read_is_not_passed_over(tmp_path: Path, kind: str) -> None:
    """What is read would lack its records. Beside its .log, or its .log.gz, it is a copy."""
    for topic in ("a-0", "b-0"):
        write_segment(tmp_path / topic, 3, [batch(3)])
    packed = tmp_path / "a-0" / f"{0:020}.log.{kind}"
    packed.write_bytes(b"x")
    for path in (tmp_path, tmp_path / "a-0"):
        with pytest.raises(WrongFileError, match=f"compressed as .{kind}: decompress it first") as caught:
            LogDirectory(path)
        assert getattr(caught.value, "file", None) == str(packed)
    assert len(discover(tmp_path, topics=["b"])) == len(discover(tmp_path / "a-0" / "*.log")) == 1
    (tmp_path / "a-0" / f"{0:020}.log.gz").write_bytes(gzip.compress(batch(0)))
    assert offsets(LogDirectory(tmp_path / "a-0").read()) == [*range(6)]
