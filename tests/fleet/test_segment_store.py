"""The log of a partition in segments: where they end, how they are read, what is recovered; in memory and on disk."""

from __future__ import annotations

import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire.fleet import ApiError
from kwire.fleet.disk.segment_store import SegmentStore
from kwire.fleet.logs.batch_store import BatchStore
from kwire.fleet.logs.log_settings import LogSettings
from kwire.fleet.logs.partition_log import EARLIEST, LATEST, MAX_TIMESTAMP, PartitionLog
from kwire.fleet.logs.retention import retain
from kwire.schema.error_codes import ErrorCode
from kwire.storage import LogDirectory, OffsetIndex, SegmentWriter
from kwire.storage.writing import index_writer
from kwire.storage.writing.index_writer import IndexWriter

pytestmark = pytest.mark.quick
Make = Callable[..., PartitionLog]


def on_disk(folder: Path, **settings: int) -> PartitionLog:
    store = SegmentStore(str(folder), "t", 0, interval=settings.get("index_interval_bytes", 4096),
                         started=lambda offset: None, reopened=lambda: None)
    log = store.open() or PartitionLog(store)
    log.settings = LogSettings(**settings)
    return log


def in_memory(folder: Path, **settings: int) -> PartitionLog:
    log = PartitionLog(BatchStore())
    log.settings = LogSettings(**settings)
    return log


@pytest.fixture(params=[in_memory, on_disk])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def add(log: PartitionLog, count: int, size: int = 100, time: int = 1000, now: int = 1, epoch: int = 0) -> None:
    """Batches of one record each, at times one after the other."""
    for at in range(count):
        log.append(list(kwire.read_batches(kwire.build_batch([(time + at, b"k", bytes(size))]))), epoch, now)


def offsets(data: bytes) -> list[int]:
    return [record.offset for batch in kwire.read_batches(data) for record in batch]


def test_a_coordinators_batch_has_the_time_of_its_records(make: Make, tmp_path: Path) -> None:
    log = make(tmp_path)
    log.append_own([(7, b"a", b""), (5, b"b", b"")], 0, now=9, producer=(1, 0))
    assert log.find(MAX_TIMESTAMP) == (0, 7, 0)
    assert log.producers.producers[1].last_timestamp == 7


def test_segments_end_by_bytes_and_by_time(make: Make, tmp_path: Path) -> None:
    log = make(tmp_path, segment_bytes=400)
    add(log, 5)  # of 170 bytes or so each
    assert [one.base_offset for one in log.store.segments] == [0, 2, 4]
    log = make(tmp_path / "by-time", segment_ms=10)
    add(log, 5, time=1000)
    add(log, 1, time=1010)  # 10 ms after the first one are not more than 10
    add(log, 2, time=1011)
    assert [one.base_offset for one in log.store.segments] == [0, 6]
    log.roll()
    log.roll()  # an empty one is not ended
    assert [one.base_offset for one in log.store.segments] == [0, 6, 8]


def test_every_offset_is_found(make: Make, tmp_path: Path) -> None:
    log = make(tmp_path, segment_bytes=3000, index_interval_bytes=300)
    add(log, 100)
    for offset in range(100):
        assert offsets(log.read(offset, 1, 100, True)) == [offset]
        assert offsets(log.read(offset, 1, 100, False)) == []
        assert offsets(log.read(offset, 1 << 20, 100, True)) == list(range(offset, 100))
        assert log.find(1000 + offset) == (offset, 1000 + offset, 0)
    assert offsets(log.read(3, 600, 100, True)) == [3, 4, 5]
    assert offsets(log.read(3, 1 << 20, 7, True)) == [3, 4, 5, 6]
    assert log.read(100, 1 << 20, 100, True) == b""
    with pytest.raises(ApiError, match="OFFSET_OUT_OF_RANGE"):
        log.read(101, 1, 101, True)
    assert log.find(1100) == (-1, -1, -1) and log.find(0) == (0, 1000, 0)
    assert log.find(MAX_TIMESTAMP) == (99, 1099, 0)
    assert log.find(EARLIEST) == (0, -1, 0) and log.find(LATEST) == (100, -1, 0)


def test_batches_larger_than_what_is_read_at_a_time(tmp_path: Path) -> None:
    log = on_disk(tmp_path, max_message_bytes=1 << 22)
    add(log, 2)
    add(log, 2, size=300_000)
    add(log, 2)
    for start in range(6):
        assert offsets(log.read(start, 1 << 30, 6, True)) == list(range(start, 6))
        assert offsets(log.read(start, 10, 6, True)) == [start]
    assert [entry.base_offset for entry in log.store.entries(0, 0)] == list(range(6))


def test_times_that_do_not_ascend(make: Make, tmp_path: Path) -> None:
    log = make(tmp_path, segment_bytes=3000, index_interval_bytes=300)
    times = [(at * 7919) % 1000 for at in range(200)]
    for time in times:
        add(log, 1, time=time)
    for wanted in (0, 1, 500, 998, 999):
        first = next((at for at, time in enumerate(times) if time >= wanted), -1)
        assert log.find(wanted)[0] == first
    assert log.find(MAX_TIMESTAMP)[:2] == (times.index(max(times)), max(times))


def test_the_start_moves(make: Make, tmp_path: Path) -> None:
    log = make(tmp_path, segment_bytes=400)
    add(log, 3, epoch=1)
    add(log, 4, time=500, epoch=4)
    assert log.delete_before(5) == 5
    assert log.store.segments[0].base_offset == 4  # which has offset 5 too
    assert offsets(log.read(5, 1 << 20, 7, True))[-1] == 6
    assert log.find(MAX_TIMESTAMP)[:2] == (6, 503)
    assert log.epochs == [(4, 5)]
    assert log.delete_before(-1) == 7
    assert log.read(7, 1 << 20, 7, True) == b"" and log.find(MAX_TIMESTAMP)[:2] == (6, 503)
    add(log, 1)
    assert offsets(log.read(7, 1 << 20, 8, True)) == [7]


def test_the_files_are_those_of_a_segment_writer(tmp_path: Path) -> None:
    log = on_disk(tmp_path / "log", segment_bytes=5000, index_interval_bytes=500)
    with SegmentWriter(tmp_path / "other", "t", 0, segment_bytes=5000, index_interval_bytes=500) as writer:
        for at in range(100):
            add(log, 1, time=1000 + at)
            writer.append(log.read(at, 1, at + 1, True))
    assert isinstance(log.store, SegmentStore)
    log.store.close()
    names = sorted(path.name for path in (tmp_path / "other" / "t-0").iterdir())
    assert names == sorted({path.name for path in (tmp_path / "log" / "t-0").iterdir()} - {"leader-epoch-checkpoint"})
    for name in names:
        assert (tmp_path / "log" / "t-0" / name).read_bytes() == (tmp_path / "other" / "t-0" / name).read_bytes()
    assert len(OffsetIndex((tmp_path / "log" / "t-0" / f"{0:020}.index").read_bytes(), 0).entries) > 5
    assert LogDirectory(tmp_path / "log").verify() == []


def test_what_is_opened_again_is_what_was_written(tmp_path: Path) -> None:
    log = on_disk(tmp_path, segment_bytes=3000, index_interval_bytes=300)
    add(log, 50, epoch=2)
    add(log, 50, time=1050, epoch=5)
    again = on_disk(shutil.copytree(tmp_path, tmp_path / "killed"), segment_bytes=3000, index_interval_bytes=300)
    assert isinstance(log.store, SegmentStore)
    log.store.close()
    closed = on_disk(tmp_path, segment_bytes=3000, index_interval_bytes=300)
    for one in (again, closed):
        assert (one.start_offset, one.end_offset, one.epochs) == (0, 100, [(2, 0), (5, 50)])
        assert [segment.base_offset for segment in one.store.segments] == [
            segment.base_offset for segment in log.store.segments]
        assert offsets(one.read(0, 1 << 20, 100, True)) == list(range(100))
        assert one.find(1077) == (77, 1077, 5) and one.find(MAX_TIMESTAMP)[0] == 99
        add(one, 3, time=2000, epoch=6)
        assert offsets(one.read(98, 1 << 20, 103, True)) == [98, 99, 100, 101, 102]


def test_a_torn_end_is_cut_off(tmp_path: Path) -> None:
    log = on_disk(tmp_path)
    add(log, 5)
    copy = shutil.copytree(tmp_path, tmp_path / "killed")
    path = copy / "t-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes()[:-10])
    again = on_disk(copy)
    assert again.end_offset == 4
    add(again, 1)
    assert offsets(again.read(0, 1 << 20, 5, True)) == [0, 1, 2, 3, 4]


def test_without_its_checkpoint_the_epochs_are_those_of_the_batches(tmp_path: Path) -> None:
    log = on_disk(tmp_path)
    add(log, 2, epoch=1)
    add(log, 2, epoch=3)
    (tmp_path / "t-0" / "leader-epoch-checkpoint").unlink()
    assert isinstance(log.store, SegmentStore)
    log.store.close()
    assert on_disk(tmp_path).epochs == [(1, 0), (3, 2)]


def test_damage_in_the_middle_is_a_storage_error(tmp_path: Path) -> None:
    log = on_disk(tmp_path)
    add(log, 5)
    path = tmp_path / "t-0" / f"{0:020}.log"
    data = path.read_bytes()
    for broken in (data[:300], data[:170] + bytes(len(data) - 170), data[:179] + b"\x7f" + data[180:]):
        path.write_bytes(broken)
        with pytest.raises(ApiError) as caught:
            log.read(0, 1 << 20, 5, True)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR and str(path) in caught.value.message
    path.unlink()
    with pytest.raises(ApiError, match="No such file"):
        log.read(0, 1 << 20, 5, True)


@pytest.mark.parametrize("failing", ["add", "add_time"])
def test_what_was_refused_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    """The batch is in the .log when its index entry does not fit on the disk, or when a roll is cut short."""
    log = on_disk(tmp_path, segment_bytes=600, index_interval_bytes=0)
    add(log, 3)
    with monkeypatch.context() as patch:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(IndexWriter, failing, full)
        for _ in range(2):
            with pytest.raises(ApiError, match="No space left on device") as caught:
                add(log, 2)
            assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    end = log.end_offset
    assert offsets(log.read(0, 1 << 20, end, True)) == list(range(end))
    add(log, 5)
    assert isinstance(log.store, SegmentStore)
    log.store.close()
    again = on_disk(tmp_path)
    assert offsets(again.read(0, 1 << 20, end + 5, True)) == list(range(end + 5))
    assert LogDirectory(tmp_path).verify() == []


def test_a_swap_that_was_cut_short_is_ended(tmp_path: Path) -> None:
    """A cleaner that is killed leaves .swap files: those that are whole replace the segments that they were made of."""
    log = on_disk(tmp_path, segment_bytes=400)
    add(log, 9)
    kept = [log.read(offset, 1, offset + 1, True) for offset in (1, 5)]
    folder = tmp_path / "t-0"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    log.store.replace(0, 3, kept, [])
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert isinstance(log.store, SegmentStore)
    log.store.close()
    shutil.rmtree(folder)
    folder.mkdir()
    for name, data in before.items():  # as if it was killed when it had written its files
        (folder / name).write_bytes(data)
    for kind in (".log", ".index", ".timeindex"):
        (folder / f"{0:020}{kind}.swap").write_bytes(after[f"{0:020}{kind}"])
    (folder / f"{8:020}.index.swap").write_bytes(b"of one that has no .log yet")
    (folder / "other.log.swap").write_bytes(b"?")
    again = on_disk(tmp_path, segment_bytes=400)
    assert [one.base_offset for one in again.store.segments] == [0, 6, 8]
    assert offsets(again.read(0, 1 << 20, 9, True)) == [1, 5, 6, 7, 8]
    assert not list(folder.glob("*.swap"))


def test_a_cleaned_segment_is_one_whose_index_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two segments that ended as their indexes were full become one: nothing of it is left out."""
    monkeypatch.setattr(index_writer, "INDEX_BYTES", 600)
    log = on_disk(tmp_path, index_interval_bytes=0, compacts=True)
    add(log, 120)
    assert len(log.store.segments) > 2
    every = [log.read(offset, 1, offset + 1, True) for offset in range(log.store.segments[2].base_offset)]
    log.store.replace(0, 2, every, [])
    assert offsets(log.read(0, 1 << 20, 120, True)) == list(range(120))
    assert isinstance(log.store, SegmentStore)
    log.store.close()
    again = on_disk(tmp_path, index_interval_bytes=0)
    assert all(offsets(again.read(offset, 1, 120, True)) == [offset] for offset in range(120))
    assert LogDirectory(tmp_path).verify() == []


@pytest.mark.parametrize("call", ["unlink", "replace"])
@pytest.mark.parametrize("deletes_first", [False, True])
@pytest.mark.parametrize("number", range(1, 12))
def test_a_swap_that_the_disk_stopped_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int, deletes_first: bool
) -> None:
    """A disk that fails for a moment in the middle of a swap: the log can be read, and written, right after it."""
    log = on_disk(tmp_path, segment_bytes=400)
    add(log, 9)
    kept = [log.read(offset, 1, offset + 1, True) for offset in (1, 5)]
    real, calls = getattr(os, call), [0]

    def failing(*args: Any, **keywords: Any) -> None:
        calls[0] += 1
        if calls[0] == number:
            raise OSError(5, "Input/output error", args[0])
        real(*args, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing)
        try:
            log.store.replace(0, 3, kept, [])
        except ApiError as error:
            assert "Input/output error" in error.message
    if not deletes_first:
        found = offsets(log.read(0, 1 << 20, 9, True))
        assert found in ([1, 5, 6, 7, 8], list(range(9)))
        add(log, 1)
    log.delete_before(6)
    if deletes_first:  # it counted the segments of before the swap, and deleted others
        add(log, 1)
    assert offsets(log.read(6, 1 << 20, 10, True)) == [6, 7, 8, 9]
    assert isinstance(log.store, SegmentStore)
    log.store.close()
    assert offsets(on_disk(tmp_path).read(6, 1 << 20, 10, True)) == [6, 7, 8, 9]


def test_memory_does_not_grow_with_the_interval_of_an_index(tmp_path: Path) -> None:
    log = on_disk(tmp_path, index_interval_bytes=(1 << 31) - 1)
    add(log, 50, size=1_000_000)
    tracemalloc.start()
    try:
        assert offsets(log.read(40, 1, 50, True)) == [40]
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    log = on_disk(tmp_path, segment_bytes=4 << 20, max_message_bytes=1 << 22)
    batch = list(kwire.read_batches(kwire.build_batch([(1000, b"k", os.urandom(100_000))])))
    tracemalloc.start()
    try:
        for _ in range(300):  # 30 MB
            log.append(batch, 0, 1)
        assert len(log.read(150, 1 << 20, 300, True)) > 900_000
        used, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 1 << 20 and most < 6 << 20


def test_retention_and_compaction_count_the_segments_of_a_swap_that_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They counted those of before it: retention deleted the whole log."""
    log = on_disk(tmp_path, segment_bytes=400)
    add(log, 9)
    kept = [log.read(offset, 1, offset + 1, True) for offset in (1, 5)]
    before = len(log.store.segments)
    assert before > 4
    real = os.replace

    def full(source: str, target: str) -> None:
        if target.endswith(".log"):
            raise OSError(28, "No space left", target)
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(ApiError, match="No space left"):
            log.store.replace(0, 3, kept, [])
    assert len(log.store.segments) == before
    log.settings = log.settings._replace(retention_bytes=sum(segment.size for segment in log.store.segments[3:]))
    assert retain(log, 0) == 1
    assert offsets(log.read(log.start_offset, 1 << 20, 9, True)) == list(range(log.start_offset, 9))
    assert log.start_offset < 9
