"""Segments that change while they are read: an error that names the file, or the old content; never a signal."""

from __future__ import annotations

import fcntl
import gzip
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire import CorruptBatchError
from kwire.cli import main
from kwire.storage import LogDirectory, LogSegment, discover, resync
from kwire.storage.batches.batch_header import examine
from kwire.storage.batches.scanner import Scanner
from kwire.storage.isolation import planned_log
from kwire.storage.places import filesystem
from kwire.storage.places.discovery import by_partition
from kwire.storage.places.filesystem import LocalFile
from kwire.storage.reading import read_plan
from kwire.storage.reading import stats as stats_module
from kwire.storage.reading import verify as verify_module
from kwire.storage.reading.segment import as_written
from kwire.storage.reading.segment_summaries import following, summarize_partitions, summarize_segments
from kwire.storage.reading.verify import verify_partition
from tests.storage.changing import COUNT, STEPS, WAYS, change, content
from tests.storage.making import aborted_index, batch, in_transaction, marker, producer_snapshot, write_segment
from tools.places import ROOT

MODULE = (sys.executable, "-m", "tests.storage.changing")
WHOLE = [*range(COUNT)]


def read(folder: Path, how: str, zeros: int = 0) -> dict[str, tuple[str, str | None, str]]:
    """The outcomes of a process that reads a file of 3 MiB in each way, and changes it after the first step."""
    path = folder / "a.log"
    done = subprocess.run([*MODULE, "step", str(path), how, str(zeros)], cwd=ROOT, capture_output=True, text=True,
                          check=False, timeout=60)  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stdout[-200:], done.stderr[-2000:])
    outcomes = {}
    for line in done.stdout.splitlines():
        way, outcome = line.split(" ", 1)
        offsets, kind, text = json.loads(outcome)
        wanted = WHOLE[::5] if way == "headers" else WHOLE  # of each batch the first
        assert offsets == wanted[: len(offsets)] and offsets, (way, offsets)
        assert kind in (None, "CorruptBatchError") and (kind is None or f"{path}: " in text), (way, kind, text)
        outcomes[way] = ("whole" if offsets == wanted else "cut", kind, text)
    assert list(outcomes) == list(STEPS)
    return outcomes


@pytest.mark.parametrize("how", ["cut", "emptied"])
def test_a_file_that_is_truncated(how: str, tmp_path: Path) -> None:
    """What was read before comes, then an error that names the file (or a torn tail, if the end is inside a batch)."""
    for way, (came, kind, text) in read(tmp_path, how).items():
        assert came == "cut", way
        assert kind is None or "was truncated to" in text or "needed" in text, (way, text)


@pytest.mark.parametrize("how", ["grown", "replaced", "deleted"])
def test_a_file_that_goes_on_as_it_was(how: str, tmp_path: Path) -> None:
    """The end of a pass is where the file ended when it began; another file of that name is another file."""
    assert {(came, kind) for came, kind, _ in read(tmp_path, how).values()} == {("whole", None)}


@pytest.mark.parametrize("zeros", [1000, 5 << 20])
def test_a_preallocated_file_that_is_closed(zeros: int, tmp_path: Path) -> None:
    """As a broker does when it rolls or stops: all batches come, or the error names the file and its new size."""
    for way, (came, kind, text) in read(tmp_path, "closed", zeros).items():
        assert came == "whole" or (kind == "CorruptBatchError" and "was truncated to" in text), (way, text)


def test_zeros_that_are_truncated_meanwhile_are_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the buffer, but no more in the file: no damage."""
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(batch(0) + bytes(1 << 20))
    inner = filesystem._OpenFile.read

    def cutting(self: Any, start: int, end: int) -> bytes:
        os.truncate(path, len(batch(0)))
        return inner(self, start, end)

    monkeypatch.setattr(filesystem._OpenFile, "read", cutting)
    segment = LogSegment(path)
    batches = segment.batches()
    assert [found.base_offset for found in batches] == [0]
    assert batches.tail == (len(batch(0)), 1 << 20)


@pytest.mark.quick
@pytest.mark.parametrize("left", [0, 100, len(batch(0)) * 2])
def test_a_range_that_begins_past_the_end_is_empty(left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of a task is if the segment was truncated since the read was planned: once it never ended."""
    path = write_segment(tmp_path / "t-0", 0, [batch(3 * n) for n in range(4)], indexes=False)
    os.truncate(path, left)
    steps = itertools.count()

    def counted(*arguments: Any, **options: Any) -> Any:
        assert next(steps) < 1000, "no end"
        return examine(*arguments, **options)

    monkeypatch.setattr("kwire.storage.batches.scanner.examine", counted)
    segment = LogSegment(path)
    for guessed in (False, True):
        assert list(segment.column_batches(start=left + 50, end=left + 500, guessed=guessed)) == []
    assert Scanner(segment.file, left + 50, guessed=True).begin() == left
    assert segment.boundary(left + 50) == left


def test_a_race_of_all_changes(tmp_path: Path) -> None:
    """Another process that changes the file as often as it can, for each way of reading."""
    path, whole = tmp_path / "a.log", content(0, COUNT)
    path.write_bytes(whole)
    with subprocess.Popen([*MODULE, "race", str(path)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        for number, how in enumerate(itertools.cycle(["cut", "grown", "emptied", "replaced", "deleted", "closed"])):
            path.write_bytes(whole)
            change(str(path), how, number)
            if running.poll() is not None:
                break
        out, err = running.communicate()
    assert running.returncode == 0, (running.returncode, Path(f"{path}.way").read_text(), err[-2000:])
    kinds = json.loads(out)
    assert sum(kinds.values()) >= len(WAYS) and set(kinds) <= {"None", "CorruptBatchError", "FileNotFoundError"}


class Shrinking:
    """A file that gets shorter at some read; size() is what it was at first."""

    def __init__(self, inner: filesystem.File, path: Path, part: int) -> None:
        self.inner, self.file, self.path, self.part = inner, path, str(path), part
        self.whole = inner.size()
        self.left = 1 << 30

    def size(self) -> int:
        """The size at first."""
        return self.whole

    def _cut(self) -> None:
        if self.left <= 0:
            os.truncate(self.file, self.file.stat().st_size // self.part)
        self.left -= 1

    def view(self, start: int, end: int, before: Any = b"") -> memoryview:
        """The bytes of the file, after it was truncated."""
        self._cut()
        return self.inner.view(start, end, before)

    def read(self, start: int, end: int) -> bytes:
        """The bytes of the file, after it was truncated."""
        self._cut()
        return self.inner.read(start, end)

    def after_hole(self, position: int) -> int:
        """The end of the hole, after the file was truncated."""
        self._cut()
        return self.inner.after_hole(position)

    def held(self) -> filesystem.File:
        """The file itself."""
        return self


def scanned(shrinking: Shrinking) -> object:
    return [window.bad for window in Scanner(shrinking)]


def searched(shrinking: Shrinking) -> object:
    return resync(shrinking, 1)


def examined(shrinking: Shrinking) -> object:
    return [examine(shrinking, at, shrinking.whole) for at in (0, 100, shrinking.whole - 5)]


@pytest.mark.parametrize("work", [scanned, searched, examined])
@pytest.mark.parametrize("part", [3, 1 << 30])
def test_any_read_may_be_the_first_short_one(
    work: Callable[[Shrinking], object], part: int, tmp_path: Path
) -> None:
    """A batch larger than a window, damage to skip, zeros at the end: the n-th read is short."""
    large = kwire.build_batch([(0, None, b"v" * (2 << 20))], base_offset=3)
    data = batch(0) + large + b"\1" * 3000 + batch(4) + large + bytes(5000)
    for number in range(100):
        path = write_segment(tmp_path, number, [])
        path.write_bytes(data)
        shrinking = Shrinking(LogSegment(path).file.held(), path, part)
        shrinking.left = number
        try:
            work(shrinking)
        except kwire.CorruptBatchError as error:
            assert getattr(error, "file", None) == str(path)
        if shrinking.left >= 0:  # there is no n-th read
            assert number > (2 if work is examined else 3)
            return
    raise AssertionError("it does not stop reading")


@pytest.mark.parametrize("name", [f"{0:020}.log", f"{0:020}.log.gz"])
def test_a_pipe_that_comes_in_the_place_of_a_file_is_not_waited_for(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(batch(0) if name.endswith(".log") else gzip.compress(batch(0)))
    found, segment = discover(tmp_path)[0], LogSegment(path)
    path.unlink()
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)  # so that a failing test ends
    ended = threading.Timer(5, os.close, [writer])
    ended.start()
    with pytest.raises(OSError, match="is no file any more"):
        list(segment.batches())
    if name.endswith(".log"):
        with pytest.raises(OSError, match="is no file any more"):
            list(LogSegment(found.path, size=found.size, beside=found.beside).batches())
    ended.cancel()
    os.close(writer)


@pytest.mark.quick
def test_a_file_with_a_lease_is_waited_for(tmp_path: Path) -> None:
    """Another process has a write lease (F_SETLEASE): the open did not wait until it is given back."""
    path = tmp_path / "file"
    path.write_bytes(b"data")
    descriptor = os.open(path, os.O_RDWR)
    before = signal.signal(signal.SIGIO, lambda *_: fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK))
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        assert LocalFile(str(path)).read(0, 4) == b"data"
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)


def test_what_a_broker_compacts_meanwhile_is_verified_as_it_is_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log and its indexes are of one time: those that were read with another log's are read again."""
    folder, compacted = tmp_path / "topic-0", tmp_path / "compacted-0"
    path = write_segment(folder, 0, [batch(3 * at, size=300) for at in range(20)])
    write_segment(compacted, 0, [batch(3 * at, size=310) for at in range(0, 20, 2)])
    assert LogSegment(path).verify() == []
    read_batches, left = LogSegment.batches, [*compacted.iterdir()]

    def replacing(self: LogSegment, **options: Any) -> Any:
        while left:  # the indexes have been read
            file = left.pop()
            file.rename(folder / file.name)
        return read_batches(self, **options)

    monkeypatch.setattr(LogSegment, "batches", replacing)
    assert LogSegment(path).verify() == []
    index = path.with_suffix(".index")
    index.write_bytes(index.read_bytes()[:-4] + b"\0\0\0\1")
    assert {finding.kind for finding in LogSegment(path).verify()} == {"index"}


def test_segments_that_are_deleted_meanwhile_are_no_findings(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    paths = [write_segment(folder, base, [batch(base)]) for base in (0, 3, 6)]
    partition = LogDirectory(tmp_path)["__cluster_metadata", 0]
    paths[1].unlink()
    with pytest.raises(FileNotFoundError, match="deleted since its folder was listed") as error:
        partition.verify()
    assert error.value.filename == str(paths[1])
    gone: list[LogSegment] = []
    assert verify_partition(partition.segments, None, gone.append) == []  # no gap between the first and the third
    assert gone == partition.segments[1:2]
    shutil.rmtree(folder)
    assert verify_partition(partition.segments, None, gone.append) == []


def test_summaries_leave_out_what_is_deleted_meanwhile(tmp_path: Path) -> None:
    paths = [write_segment(tmp_path / "topic-0", base, [batch(base)]) for base in (0, 3, 6)]
    write_segment(tmp_path / "topic-1", 0, [batch(0)])
    groups = [*by_partition(discover(tmp_path)).values()]
    for at, first in ((0, 3), (1, 6)):
        paths[at].unlink()
        assert [row.base_offset for row in summarize_segments(following(groups[0]))] == [0, 3, 6][at + 1 :]
        one, other = summarize_partitions(groups)
        assert (one.segments, one.base_offset, one.next_offset, other.next_offset) == (2 - at, first, 9, 3)
    paths[2].unlink()
    assert summarize_segments(following(groups[0])) == []
    assert [row.partition for row in summarize_partitions(groups)] == [1]


def test_a_compaction_that_ends_meanwhile_was_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_segment(tmp_path / "topic-0", 0, [batch(0)])
    swap = write_segment(path.parent, 3, [batch(3)], indexes=False).rename(path.parent / f"{3:020}.log.swap")
    assert [finding.kind for finding in LogDirectory(tmp_path).verify()] == ["segments"]
    monkeypatch.setattr("time.sleep", lambda _: swap.rename(swap.with_suffix("")))
    assert LogDirectory(tmp_path).verify() == []


def test_verify_of_a_segment_that_is_truncated_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its findings, and those of the other segments, are not lost."""
    path = write_segment(tmp_path / "t-0", 0, [batch(0), batch(3)])
    inner, cut = verify_module._findings, []

    def truncating(segment: LogSegment, progress: Any) -> Any:
        if not cut:
            cut.append(1)
            path.write_bytes(path.read_bytes()[:-1])
            raise CorruptBatchError("the file was truncated while it was read", position=0, offset=-1)
        return inner(segment, progress)

    monkeypatch.setattr(verify_module, "_findings", truncating)
    found = LogDirectory(tmp_path)["t", 0].verify()
    assert [finding.kind for finding in found if finding.kind == "tail"] == ["tail"]


def test_verify_of_a_segment_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    path = write_segment(folder, 0, [batch(0)])
    (folder / f"{3:020}-{0:010}.checkpoint").write_bytes(b"x" * 100)
    monkeypatch.chdir(folder)
    assert [finding.kind for finding in LogDirectory(path.name).verify()] == ["snapshot"]


def test_stats_of_a_segment_that_is_deleted_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is noted, and what was counted of the others is not lost."""
    paths = [write_segment(tmp_path / "t-0", base, [batch(base)]) for base in (0, 3, 6)]
    inner = stats_module.segment_stats

    def deleting(segment: LogSegment, *arguments: Any, **options: Any) -> Any:
        paths[1].unlink(missing_ok=True)
        return inner(segment, *arguments, **options)

    monkeypatch.setattr(stats_module, "segment_stats", deleting)
    assert main(["log", "stats", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["records"] == 6
    assert err == f"kwire: {paths[1]}: deleted since its folder was listed\n"


@pytest.mark.parametrize("kind", [".txnindex", ".snapshot"])
def test_a_pipe_that_takes_the_place_of_a_listed_side_file_is_not_waited_for(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "t-0"
    path = write_segment(folder, 0, [in_transaction(0, 7)])
    aborted_index(path, [(7, 0, 3, 4)])
    write_segment(folder, 3, [batch(3)])
    side = path.with_suffix(kind) if kind == ".txnindex" else producer_snapshot(folder, 3, {7: 0})
    inner = planned_log.names_beside

    def listed(*arguments: Any) -> Any:
        found = inner(*arguments)
        if side.is_file():
            side.unlink()
            os.mkfifo(side)
        return found

    monkeypatch.setattr(read_plan, "names_beside", listed)
    signal.alarm(20)  # else it would wait for ever
    try:
        with pytest.raises(OSError, match="is no file any more, but a pipe or a device"):
            list(LogDirectory(tmp_path)["t", 0].read(committed=True))
    finally:
        signal.alarm(0)


def test_a_transaction_that_goes_past_the_range_ends_in_the_file_that_is_read(tmp_path: Path) -> None:
    """Its marker was looked for at the same byte of a cleaned file: the next transaction's end counted as its own."""
    before = [batch(base, size=300) for base in range(0, 1200, 3)]
    aborted = [in_transaction(1200, 1, size=300), in_transaction(1203, 1, size=300), marker(1206, 1, False)]
    after = [batch(1207, size=300), batch(1210, size=300)]
    path = write_segment(tmp_path / "t-0", 0, [*before, *aborted, *after], indexes=False)
    write_segment(tmp_path / "t-0", 1213, [in_transaction(1213, 1), marker(1216, 1, True)], indexes=False)
    found = list[int]()
    for columns in LogSegment(path).column_batches(["offset"], committed=True, rows=300, end_offset=1204):
        found += columns["offset"].to_pylist()
        cleaned = path.with_suffix(".swap")
        cleaned.write_bytes(b"".join([*before[300:], *aborted, *after]))
        os.replace(cleaned, path)
    assert found == list(range(1200))


def test_the_last_segment_may_be_gone_where_its_written_end_is_asked_for(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)])
    files = [file._replace(beside=None) for file in discover(str(path))]
    assert files[0].size > 0
    path.unlink()
    assert as_written(files) == files
