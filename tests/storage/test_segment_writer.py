"""SegmentWriter: byte for byte what brokers left; rolls, refusals, and what a full disk leaves."""

from __future__ import annotations

import errno
import gc
import io
import os
import resource
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire.storage import LogDirectory, SegmentWriter, read_producer_snapshot
from kwire.storage.writing import index_writer, segment_writer
from tests.net.fake import in_a_child
from tests.storage.making import batch, in_transaction, marker

pytestmark = pytest.mark.quick

WRITTEN = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def rewritten(folder: Path, into: Path) -> dict[str, bytes]:
    """The files of a partition, written again batch by batch with the rolls that it had."""
    topic, _, number = folder.name.rpartition("-")
    segments = sorted(folder.glob("*.log"))
    before = segments[0].with_suffix(".snapshot")
    interval = 4096 if topic == "__cluster_metadata" else 1024  # log.index.interval.bytes of these brokers
    writer = SegmentWriter(
        into, topic, int(number), base_offset=int(segments[0].stem), index_interval_bytes=interval, sync=False,
        producers=read_producer_snapshot(before) if before.exists() else None)
    with writer:
        for at, segment in enumerate(segments):
            if at:
                writer.roll(int(segment.stem))
            for one in kwire.read_batches(segment.read_bytes()):
                writer.append(one.raw)
    return files(into / folder.name)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in WRITTEN}


@pytest.mark.parametrize("name", ["kafka-4.3.0/data1", *(f"kafka-4.3.0-3nodes/data{node}" for node in (1, 2, 3))])
def test_the_files_of_a_broker_byte_for_byte(name: str, golden: Path, tmp_path: Path) -> None:
    folders = [path.parent for path in (golden / "data" / name).glob("*/00000000000000000*.log")]
    assert len(folders) > 30
    for folder in sorted(set(folders)):
        mine, theirs = rewritten(folder, tmp_path), files(folder)
        if folder.name == "alpha-none-1" and name.endswith("data2"):  # a leader without the snapshot of its followers
            assert mine.pop("00000000000000000026.snapshot")
        assert mine == theirs, folder


@pytest.mark.parametrize("release", ["2.2.2", "2.8.2"])
def test_the_files_of_older_brokers(release: str, golden: Path, tmp_path: Path) -> None:
    """But for the order of a Scala map, missing empty indexes, times of markers, offsets of records in .timeindex."""
    compared = 0
    for folder in sorted({path.parent for path in (golden / "data" / f"kafka-{release}").glob("*/*/*.log")}):
        mine, theirs = rewritten(folder, tmp_path), files(folder)
        for name, content in theirs.items():
            compared += len(content)
            if name.endswith(".snapshot"):
                states = [read_producer_snapshot(place / name) for place in (tmp_path / folder.name, folder)]
                one, other = (sorted(state._replace(timestamp=0) for state in found) for found in states)
                assert one == other, (folder, name)
            elif name.endswith(".timeindex") and content != mine[name]:
                assert [content[at : at + 8] for at in range(0, len(content), 12)] == [
                    mine[name][at : at + 8] for at in range(0, len(mine[name]), 12)]
            else:
                assert mine[name] == content, (folder, name)
        assert not any(mine[name] for name in mine.keys() - theirs.keys())
    assert compared > 100_000


def test_what_it_writes_has_no_findings(golden: Path, tmp_path: Path) -> None:
    entries = 0
    for source in golden.glob("old-brokers/0.*"):  # magic 0 and 1
        for partition in LogDirectory(source):
            assert partition.topic is not None and partition.partition is not None
            folder = tmp_path / source.name
            with SegmentWriter(folder, partition.topic, partition.partition, index_interval_bytes=300) as writer:
                for one in partition.batches():
                    writer.append(one.raw)
            mine = LogDirectory(folder, topics=[partition.topic])
            assert mine.verify() == []
            assert list(mine.read()) == list(partition.read())
            entries += len(mine.segments[0].index.entries)  # type: ignore[union-attr]
    assert entries > 50


def test_large_batches_begin_new_segments(tmp_path: Path) -> None:
    batches = [batch(base, 3, size=100) for base in range(0, 30, 3)]
    with SegmentWriter(tmp_path, "t", 0, segment_bytes=3 * max(map(len, batches)), index_interval_bytes=0) as writer:
        for one in batches:
            writer.append(one)
        writer.append(batch(100, 1, size=5000))  # larger than a segment may be: one of its own
    names = sorted(path.name for path in tmp_path.glob("t-0/*.log"))
    assert names == [f"{base:020}.log" for base in (0, 9, 18, 27, 100)]
    assert LogDirectory(tmp_path).verify() == []
    assert b"".join(path.read_bytes() for path in sorted(tmp_path.glob("t-0/*.log"))).startswith(
        b"".join(batches))


def test_offsets_and_full_indexes_begin_new_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_writer, "INDEX_BYTES", 48)  # 6 entries of the .index, 3 of the .timeindex
    with SegmentWriter(tmp_path, "t", 0, index_interval_bytes=0) as writer:
        for base in range(8):
            writer.append(batch(base, 1))
        writer.append(batch(1 << 40, 1))
    assert sorted(path.name for path in tmp_path.glob("t-0/*.log")) == [
        f"{base:020}.log" for base in (0, 4, 1 << 40)]
    assert LogDirectory(tmp_path).verify() == []


def test_a_roll(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, "t", 0) as writer:
        assert (writer.path, writer.next_offset) == (None, 0)
        writer.roll()
        writer.append(in_transaction(5, 9, 2))
        assert writer.path == str(tmp_path / "t-0" / f"{5:020}.log")
        writer.roll()
        writer.roll()  # empty: nothing to end
        assert (writer.next_offset, writer.open_transactions) == (7, [(5, 9)])
        writer.append(marker(7, 9, commit=False))
        writer.flush()
        assert (tmp_path / "t-0" / f"{7:020}.txnindex").stat().st_size == 34
    folder = tmp_path / "t-0"
    assert [state.current_transaction_first_offset for state in read_producer_snapshot(folder / f"{7:020}.snapshot")
            ] == [5]
    assert [state[3:] for state in read_producer_snapshot(folder / f"{8:020}.snapshot")] == [
        (6, 1, 1_700_000_000_070, 7, -1)]
    assert LogDirectory(tmp_path).verify() == []


def test_in_the_partitions_own_folder(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path / "t-3", "t", 3):
        pass
    assert sorted(path.name for path in (tmp_path / "t-3").iterdir()) == [
        f"{0:020}.{kind}" for kind in ("index", "log", "timeindex")]
    for options in ({"base_offset": 0}, {"producers": []}):
        with pytest.raises(FileExistsError, match="has segments already"):
            SegmentWriter(tmp_path, "t", 3, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (batch(3), "offsets 3 to 5 are not after offset 4"),
        (batch(5)[:-1], "the input ends inside the batch"),
        (batch(5)[:-1] + b"!", "checksum"),
        (batch(5) + batch(7), "offsets 7 to 9 are not after offset 7"),
        (b"no batch", "the input ends inside the batch"),
    ],
)
def test_what_is_refused_leaves_the_files_as_they_were(data: bytes, message: str, tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, "t", 0) as writer:
        writer.append(batch(2))
        with pytest.raises(kwire.CorruptBatchError, match=message):
            writer.append(data)
        writer.append(memoryview(batch(5)))
    assert [record.offset for record in LogDirectory(tmp_path).read()] == [2, 3, 4, 5, 6, 7]


def test_wrong_arguments(tmp_path: Path) -> None:
    for topic, partition, options in chain(
        ((topic, 0, {}) for topic in ("", ".", "..", "a/b", "ä", "x" * 250)),
        [("t", -1, {}), ("t", 1 << 31, {}), ("t", 0, {"base_offset": -1}), ("t", 0, {"segment_bytes": 0}),
         ("t", 0, {"index_interval_bytes": -1})],
    ):
        with pytest.raises(ValueError, match=r"invalid|must"):
            SegmentWriter(tmp_path, topic, partition, **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    writer = SegmentWriter(tmp_path, "t", 0)
    for wrong, kind in ((1.5, TypeError), ("5", TypeError), (1 << 63, ValueError)):
        with pytest.raises(kind, match="base_offset must be"):
            writer.roll(wrong)  # type: ignore[arg-type]
        with pytest.raises(kind, match="base_offset must be"):
            SegmentWriter(tmp_path, "u", 0, base_offset=wrong)  # type: ignore[arg-type]
    writer.close()
    writer.close()
    assert [one.name for one in (tmp_path / "t-0").iterdir() if one.suffix == ".log"] == [f"{0:020}.log"]
    for use in (lambda: writer.append(batch(0)), writer.roll, writer.flush):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_a_full_disk_leaves_whole_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = SegmentWriter(tmp_path, "t", 0)
    writer.append(batch(0))

    class Full:
        name = str(tmp_path / "t-0" / f"{0:020}.log")
        left = 50

        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, data: memoryview) -> int:
            if not self.left:
                raise OSError(28, "No space left on device")
            count = self.file.write(data[: self.left])
            self.left -= count
            return int(count)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    assert writer._active is not None
    log = writer._active._log
    monkeypatch.setattr(writer._active, "_log", Full(log))
    with pytest.raises(OSError, match="No space") as full:
        writer.append(batch(3))
    assert full.value.filename == Full.name
    monkeypatch.setattr(writer._active, "_log", log)
    writer.append(batch(3))
    writer.close()
    assert [record.offset for record in LogDirectory(tmp_path).read()] == list(range(6))


@pytest.mark.parametrize("use", ["flush", "roll"])
def test_the_error_of_a_full_disk_names_the_file(tmp_path: Path, use: str) -> None:
    """Not only where a batch is written: buffers that failed must not fail again without the name."""
    writer = SegmentWriter(tmp_path, "t", 0, index_interval_bytes=0)
    for base in range(3):
        writer.append(in_transaction(base, 1, 1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10 if use == "flush" else 40, hard))  # no file may become larger
    try:
        with pytest.raises(OSError, match="too large") as full:
            writer.roll() if use == "roll" else writer.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    name = f"{0:020}.index" if use == "flush" else f"{3:020}.snapshot"
    assert full.value.filename == str(tmp_path / "t-0" / name)


def test_an_exception_closes_the_files(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, "t", 0)
    with pytest.raises(RuntimeError), writer:
        writer.append(batch(0))
        raise RuntimeError
    assert not list(tmp_path.glob("t-0/*.snapshot"))
    with pytest.raises(ValueError, match="closed"):
        writer.append(batch(3))


def test_too_many_producers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kwire.storage.writing import producer_states

    monkeypatch.setattr(producer_states, "MOST_PRODUCERS", 2)
    with SegmentWriter(tmp_path, "t", 0) as writer:
        for producer in (7, 8, 7):
            writer.append(batch(writer.next_offset, producer_id=producer, producer_epoch=0, base_sequence=0))
        with pytest.raises(kwire.LimitError, match="too many producers"):
            writer.append(batch(writer.next_offset, producer_id=9, producer_epoch=0, base_sequence=0))


def test_a_writer_makes_no_folder_of_a_url(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="is a URL") as raised:
        SegmentWriter("s3://user:secret@bucket/logs", "t", 0)
    assert "secret" not in str(raised.value) and list(tmp_path.iterdir()) == []


def test_sequences_wrap(tmp_path: Path) -> None:
    with SegmentWriter(tmp_path, "t", 0) as writer:
        writer.append(batch(0, 3, producer_id=7, producer_epoch=0, base_sequence=(1 << 31) - 2))
        writer.append(batch(3, 1, producer_id=8, producer_epoch=0, base_sequence=(1 << 31) - 1))
    states = read_producer_snapshot(tmp_path / "t-0" / f"{4:020}.snapshot")
    assert [state.last_sequence for state in states] == [0, (1 << 31) - 1]


@pytest.mark.parametrize("ends", ["forgets", "leaves", "writes"])
def test_a_child_of_fork_does_not_write_to_a_segment(tmp_path: Path, ends: str) -> None:
    """Index entries that were buffered at the fork are written once, by the parent."""
    writers = [SegmentWriter(tmp_path, "t", 0, index_interval_bytes=0)]
    for base in range(20):
        writers[0].append(in_transaction(base, 1, 1))
    writers[0].append(marker(20, 1, False))  # an aborted transaction: an entry of the .txnindex

    def child() -> bytes:
        if ends == "leaves":
            with pytest.raises(KeyError), writers[0]:
                raise KeyError
        elif ends == "writes":
            with pytest.raises(ValueError, match="belongs to the process that forked"), writers[0]:
                writers[0].append(batch(21))
        writers.clear()
        gc.collect()
        return b"ended"

    assert in_a_child(child) == b"ended"
    writers[0].append(batch(21))
    with pytest.raises(OSError, match="another SegmentWriter"):
        SegmentWriter(tmp_path, "t", 0)
    writers[0].close()
    entries = (tmp_path / "t-0" / f"{0:020}.index").read_bytes()
    assert len(entries) == 21 * 8 and (tmp_path / "t-0" / f"{0:020}.txnindex").stat().st_size == 34
    assert LogDirectory(tmp_path).verify() == []


def test_names_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the folders that are made, and those of the files at a roll: else a power loss takes all of it away."""
    synced, fsync = list[int](), os.fsync

    def noted(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    writer = SegmentWriter(tmp_path / "deep" / "down", "t", 0)
    above = [tmp_path, tmp_path / "deep", tmp_path / "deep" / "down"]
    assert synced == [path.stat().st_ino for path in reversed(above)]
    writer.append(batch(0))
    del synced[:]
    writer.roll()
    files = {path.stat().st_ino for path in Path(writer.folder).glob(f"{0:020}.*")}
    assert synced[-1] == os.stat(writer.folder).st_ino and files < set(synced)
    writer.close()


@pytest.mark.parametrize("sync", [False, True])
def test_a_file_system_that_writes_only_when_a_file_is_closed(
    sync: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NFS and FUSE may: what is lost then is an error that names the file."""
    class Unwritten(io.FileIO):
        def close(self) -> None:
            was_open = not self.closed
            super().close()
            if was_open and str(self.name).endswith(".log"):
                raise OSError(errno.EDQUOT, "Disk quota exceeded")

    def opened(path: str, mode: str, buffering: int = -1) -> Any:
        file = Unwritten(path, mode.replace("b", ""))
        return io.BufferedWriter(file) if buffering else file

    monkeypatch.setattr(segment_writer, "open", opened, raising=False)
    writer = SegmentWriter(tmp_path, "t", 0, sync=sync)
    writer.append(batch(0))
    with pytest.raises(OSError, match=r"quota exceeded: .*t-0/0{20}\.log"):
        writer.close()
    assert not list((tmp_path / "t-0").glob("*.snapshot"))


def test_a_batch_that_spans_too_many_offsets_is_refused_before_those_before_it_are_written(tmp_path: Path) -> None:
    """They were written, and an empty segment was begun after them."""
    far = kwire.build_batch([kwire.Record(5, 1, b"k", b"v"), kwire.Record(5 + (1 << 31), 1, b"k", b"v")], magic=0,
                            codec="gzip", base_offset=5)
    near = kwire.build_batch([kwire.Record(5, 1, b"k", b"v"), kwire.Record(4 + (1 << 31), 1, b"k", b"v")], magic=0,
                             codec="gzip", base_offset=5)
    with SegmentWriter(tmp_path, "t", 0) as writer:
        with pytest.raises(kwire.CorruptBatchError, match="more than 2147483647 after the first one") as caught:
            writer.append(batch(0) + far)
        assert (caught.value.position, caught.value.offset) == (len(batch(0)), 5)
        assert (writer.next_offset, list(tmp_path.glob("t-0/*.log"))) == (0, [])
        writer.append(batch(0) + near)
        assert writer.next_offset == 5 + (1 << 31)
    assert [len(list(segment.batches())) for segment in LogDirectory(tmp_path)["t", 0].segments] == [1, 1]


def test_the_last_offset_that_there_is_is_refused(tmp_path: Path) -> None:
    """The writer took it, and no other one opened the partition again."""
    with SegmentWriter(tmp_path, "t", 0) as writer:
        writer.append(kwire.build_batch([(1, b"k", b"v")] * 3, base_offset=(1 << 63) - 4))
        with pytest.raises(kwire.CorruptBatchError, match=f"no offset is left after {(1 << 63) - 1}"):
            writer.append(kwire.build_batch([(1, b"k", b"v")], base_offset=(1 << 63) - 1))
    with SegmentWriter(tmp_path, "t", 0) as writer:
        assert writer.next_offset == (1 << 63) - 1
