"""A partition opened again: what was closed stays, a torn tail goes, indexes and producers are as they were."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import kwire
from kwire.storage import LogDirectory, SegmentWriter, read_producer_snapshot
from kwire.storage.side_files import indexes
from kwire.storage.side_files.checkpoints import MOST_BYTES
from tests.storage.making import batch, in_transaction, marker
from tests.storage.test_salvage import calls_of, killed_at, points
from tests.storage.test_segment_writer import files

pytestmark = pytest.mark.quick


def written(folder: Path, batches: list[bytes], *, close: bool = True, **options: int) -> dict[str, bytes]:
    """The files after one session; close=False: the process ended without a close."""
    writer = SegmentWriter(folder, "t", 0, sync=False, index_interval_bytes=options.pop("interval", 200), **options)  # type: ignore[arg-type]
    for one in batches:
        writer.append(one)
    if close:
        writer.close()
    else:
        writer.flush()
        writer.__exit__(RuntimeError, None, None)
    return files(folder / "t-0")


def some_batches(count: int, seed: int = 1) -> list[bytes]:
    """Batches of two idempotent producers, of a transactional one, which aborts and commits, and of none."""
    random_ = random.Random(seed)
    found, offset, sequence, is_open = [], 0, 0, False
    for _ in range(count):
        kind = random_.randrange(5)
        records = random_.randrange(1, 5)
        if kind == 0:
            found.append(batch(offset, records, producer_id=7, producer_epoch=0, base_sequence=sequence, size=60))
            sequence += records
        elif kind == 1 and is_open:
            found.append(marker(offset, 9, commit=random_.random() < 0.5))
            records, is_open = 1, False
        elif kind in (1, 2):
            found.append(in_transaction(offset, 9, records))
            is_open = True
        else:
            found.append(batch(offset, records, size=random_.randrange(10, 300)))
        offset += records
    return found


@pytest.mark.parametrize("name", ["kafka-4.3.0/data1", "kafka-4.3.0-3nodes/data2"])
def test_what_a_broker_closed_stays_as_it_is(name: str, golden: Path, tmp_path: Path) -> None:
    folders = {path.parent for path in (golden / "data" / name).glob("*/00000000000000000*.log")}
    assert len(folders) > 30
    for source in sorted(folders):
        folder = tmp_path / source.name
        shutil.copytree(source, folder)
        before = files(folder)
        topic, _, number = source.name.rpartition("-")
        with SegmentWriter(tmp_path, topic, int(number), index_interval_bytes=1024) as writer:
            assert writer.next_offset == max(
                (one.last_offset + 1 for one in LogDirectory(folder).batches()), default=int(min(before)[:20])), source
        after = files(folder)
        assert {kind: after[kind] for kind in before if not kind.endswith(".snapshot")} == {
            kind: before[kind] for kind in before if not kind.endswith(".snapshot")}, source


@pytest.mark.parametrize("close", [True, False])
@pytest.mark.parametrize("segment_bytes", [1 << 30, 900])
def test_many_sessions_are_like_one(close: bool, segment_bytes: int, tmp_path: Path) -> None:
    batches = some_batches(60)
    whole = written(tmp_path / "one", batches, interval=0, segment_bytes=segment_bytes)
    for at in range(0, len(batches), 7):
        several = written(tmp_path / "several", batches[at : at + 7], interval=0, segment_bytes=segment_bytes,
                          close=close or at + 7 >= len(batches))  # fmt: skip
    # with an interval of 0 every batch but the first of a session has an entry: only Kafka's counter begins again
    for name, content in whole.items():
        if name.endswith((".log", ".txnindex")):
            assert several[name] == content, name
        elif name.endswith(".snapshot"):
            assert sorted(read_producer_snapshot(tmp_path / "several" / "t-0" / name)) == sorted(
                read_producer_snapshot(tmp_path / "one" / "t-0" / name)), name
    assert {name[20:] for name in several.keys() ^ whole.keys()} <= {".snapshot"}  # of the close before the last one
    assert LogDirectory(tmp_path / "several").verify() == []


@pytest.mark.parametrize("seed", range(40))
def test_torn_anywhere(seed: int, tmp_path: Path) -> None:
    """A session that ended at any byte: the whole batches stay, and the files become those of one session."""
    random_ = random.Random(seed)
    batches = some_batches(40, seed)
    segment_bytes = random_.choice([1 << 30, 1500])
    many = random_.randrange(1, 40)
    written(tmp_path, batches[:many], close=False, segment_bytes=segment_bytes)
    folder = tmp_path / "t-0"
    last = max(folder.glob("*.log"))
    size = last.stat().st_size
    kept = random_.randrange(0 if last.stem.strip("0") else len(batches[0]), size + 1)
    with last.open("r+b") as file:
        file.truncate(kept)
        if random_.random() < 0.3:
            file.truncate(kept + 4096)  # preallocated
        elif random_.random() < 0.3:
            file.seek(kept)
            file.write(random_.randbytes(random_.randrange(1, 40)))
    for path in (last.with_suffix(kind) for kind in (".index", ".timeindex", ".txnindex")):
        what = random_.choice(["whole", "gone", "preallocated", "torn"]) if path.exists() else "none"
        if what == "gone":
            path.unlink()
        elif what in ("preallocated", "torn"):
            data = path.read_bytes()
            path.write_bytes(data + bytes(340) if what == "preallocated" else data[: random_.randrange(8)])
    if random_.random() < 0.3:
        for path in folder.glob("*.snapshot"):
            path.unlink()
    with SegmentWriter(tmp_path, "t", 0, sync=False, index_interval_bytes=200, segment_bytes=segment_bytes) as writer:
        there = sum(path.stat().st_size for path in folder.glob("*.log"))
        whole = next(number for number in range(41) if sum(map(len, batches[:number])) == there)
        expected = next(number for number in range(40, -1, -1)
                        if sum(map(len, batches[:number])) <= there - last.stat().st_size + kept)
        assert whole == expected
        for one in batches[whole:]:
            writer.append(one)
    assert LogDirectory(tmp_path).verify() == []
    straight = tmp_path / "straight"
    wanted = written(straight, batches, segment_bytes=segment_bytes)
    found = files(folder)
    logs = {name for name in wanted if name.endswith((".log", ".txnindex"))}
    assert {name: found.get(name) for name in logs} == {name: wanted[name] for name in logs}
    end = max(name for name in wanted if name.endswith(".snapshot"))
    assert sorted(read_producer_snapshot(folder / end)) == sorted(read_producer_snapshot(straight / "t-0" / end))


def test_indexes_are_made_again_as_they_were(tmp_path: Path) -> None:
    before = written(tmp_path, some_batches(50), segment_bytes=1200)
    folder = tmp_path / "t-0"
    for path in folder.glob("*index"):
        path.unlink()
    SegmentWriter(tmp_path, "t", 0, index_interval_bytes=200).close()
    assert files(folder) == before
    for path in folder.glob("*.snapshot"):
        path.write_bytes(path.read_bytes()[:-1])
    SegmentWriter(tmp_path, "t", 0, index_interval_bytes=200).close()
    after = files(folder)
    assert {name for name in before.keys() - after.keys() if not name.endswith(".snapshot")} == set()
    assert after[max(after)] == before[max(before)]


def test_killed_while_it_recovers(tmp_path: Path) -> None:
    """The next writer recovers what is left, to the same files."""
    torn = tmp_path / "torn" / "t-0"
    written(torn.parent, some_batches(40), close=False, segment_bytes=1500)
    last = max(torn.glob("*.log"))
    last.write_bytes(last.read_bytes() + bytes(100))
    for path in torn.glob("*.snapshot"):
        path.write_bytes(b"damaged")
    for path in torn.glob("*.index"):
        path.unlink()

    def recover(folder: Path) -> None:
        SegmentWriter(folder, "t", 0, index_interval_bytes=200, sync=False).close()

    shutil.copytree(torn, tmp_path / "whole" / "t-0")
    recover(tmp_path / "whole")
    wanted = files(tmp_path / "whole" / "t-0")
    shutil.copytree(torn, tmp_path / "counted" / "t-0")
    total = calls_of(lambda: recover(tmp_path / "counted"))
    for point in points(total, 16):
        folder = tmp_path / str(point)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(torn, folder / "t-0")
        killed_at(point, lambda folder=folder: recover(folder))  # type: ignore[misc]
        recover(folder)
        assert files(folder / "t-0") == wanted
    assert len(wanted) > 8


def test_an_index_that_lags_is_made_again(tmp_path: Path) -> None:
    """Not closed: its entries are right, but the last ones were not on disk."""
    batches = some_batches(50)
    wanted = written(tmp_path / "closed", batches)
    written(tmp_path / "open", batches, close=False)
    index = tmp_path / "open" / "t-0" / f"{0:020}.index"
    index.write_bytes(index.read_bytes()[:-16])
    shutil.copy(tmp_path / "closed" / "t-0" / f"{0:020}.timeindex", index.with_suffix(".timeindex"))
    SegmentWriter(tmp_path / "open", "t", 0, index_interval_bytes=200).close()
    assert files(index.parent) == wanted


@pytest.mark.parametrize("spoil", [
    lambda entry: None, lambda entry: b"", lambda entry: entry[:17] + b"\1" + entry[18:],
], ids=["missing", "empty", "another first offset"])
def test_a_transaction_index_that_does_not_know_an_abort_is_made_again(
    spoil: Callable[[bytes], bytes | None], tmp_path: Path
) -> None:
    """Else read_committed would have the records of a transaction that was aborted."""
    wanted = written(tmp_path, [batch(0, 2), in_transaction(2, 9, 2), marker(4, 9, commit=False)])
    path = tmp_path / "t-0" / f"{0:020}.txnindex"
    spoiled = spoil(path.read_bytes())
    path.unlink() if spoiled is None else path.write_bytes(spoiled)
    assert written(tmp_path, []) == wanted


def test_producers_without_the_snapshot_at_the_last_segment(tmp_path: Path) -> None:
    batches = some_batches(60)
    wanted = written(tmp_path / "closed", batches, segment_bytes=1500)
    written(tmp_path / "open", batches[:20])  # its snapshot is in the middle of a segment
    written(tmp_path / "open", batches[20:], close=False, segment_bytes=1500)
    folder = tmp_path / "open" / "t-0"
    snapshots = sorted(path.name for path in folder.glob("*.snapshot"))
    assert len(snapshots) > 3
    for name in snapshots[1:]:
        (folder / name).write_bytes(b"damaged")
    SegmentWriter(tmp_path / "open", "t", 0, index_interval_bytes=200).close()
    found = files(folder)
    last = max(name for name in found if name.endswith(".log"))
    for name in (last.replace(".log", ".snapshot"), max(name for name in wanted if name.endswith(".snapshot"))):
        assert sorted(read_producer_snapshot(folder / name)) == sorted(
            read_producer_snapshot(tmp_path / "closed" / "t-0" / name)), name
    assert {name[20:]: content for name, content in found.items() if "txnindex" in name} == {
        name[20:]: content for name, content in wanted.items() if "txnindex" in name}


def test_snapshots_after_the_end_are_removed(tmp_path: Path) -> None:
    batches = [batch(base, 3) for base in range(0, 30, 3)]
    written(tmp_path, batches)
    folder = tmp_path / "t-0"
    log = folder / f"{0:020}.log"
    log.write_bytes(b"".join(batches[:5]))
    with SegmentWriter(tmp_path, "t", 0) as writer:
        assert writer.next_offset == 15
    assert [path.name for path in folder.glob("*.snapshot")] == [f"{15:020}.snapshot"]


@pytest.mark.parametrize("spoil, message", [
    (lambda data: data[:100] + b"\xff" + data[101:], "valid batches follow at byte"),
    (lambda data: b"no segment at all" * 9, "not a segment"),
    (lambda data: data[-80:] + data, "valid batches follow|not after|out of order"),
])  # fmt: skip
def test_damage_is_refused_and_nothing_changes(
    spoil: Callable[[bytes], bytes], message: str, tmp_path: Path
) -> None:
    written(tmp_path, [batch(base, 3) for base in range(0, 30, 3)])
    folder = tmp_path / "t-0"
    log = folder / f"{0:020}.log"
    log.write_bytes(spoil(log.read_bytes()))
    (folder / f"{0:020}.index").unlink()
    before = files(folder)
    for _ in range(2):  # the folder is free again
        with pytest.raises(kwire.CorruptBatchError, match=message) as caught:
            SegmentWriter(tmp_path, "t", 0)
        assert str(log) in str(caught.value)
    assert files(folder) == before


def test_damage_in_a_segment_before_the_last(tmp_path: Path) -> None:
    written(tmp_path, some_batches(50), segment_bytes=1200)
    first = min((tmp_path / "t-0").glob("*.log"))
    first.write_bytes(first.read_bytes()[:-1])
    SegmentWriter(tmp_path, "t", 0).close()  # not read, as in a broker
    first.with_suffix(".index").unlink()
    with pytest.raises(kwire.CorruptBatchError, match="ends inside a batch"):
        SegmentWriter(tmp_path, "t", 0)


def test_a_damaged_wrapper_of_magic_1(tmp_path: Path) -> None:
    """Its checksum holds, and what is in it does not fit: the file is named."""
    written(tmp_path, [batch(0, 3)])
    log = tmp_path / "t-0" / f"{0:020}.log"
    wrapper = bytearray(kwire.build_batch([(0, b"k", b"v" * 50)] * 3, magic=1, codec="gzip", base_offset=3))
    wrapper[:8] = (1).to_bytes(8, "big")  # its own offset, which no checksum protects, is below those inside
    log.write_bytes(log.read_bytes() + wrapper)
    with pytest.raises(kwire.CorruptBatchError) as caught:
        SegmentWriter(tmp_path, "t", 0)
    assert caught.value.file == str(log)  # type: ignore[attr-defined]


def test_offsets_go_on(tmp_path: Path) -> None:
    written(tmp_path, [batch(0, 3)])
    with SegmentWriter(tmp_path, "t", 0) as writer:
        assert writer.next_offset == 3 and writer.path is not None
        with pytest.raises(kwire.CorruptBatchError, match="not after offset 2"):
            writer.append(batch(0, 3))
        writer.append(batch(7))
    assert [record.offset for record in LogDirectory(tmp_path).read()] == [0, 1, 2, 7, 8, 9]


def test_an_empty_segment(tmp_path: Path) -> None:
    written(tmp_path, [])
    with SegmentWriter(tmp_path, "t", 0) as writer:
        assert writer.next_offset == 0
        writer.roll(50)
        writer.append(batch(50))
    assert [path.name for path in (tmp_path / "t-0").glob("*.log")] == [f"{50:020}.log"]


def test_an_open_transaction_goes_on(tmp_path: Path) -> None:
    written(tmp_path, [in_transaction(0, 9, 2)], close=False)
    with SegmentWriter(tmp_path, "t", 0) as writer:
        assert writer.open_transactions == [(0, 9)]
        writer.append(marker(2, 9, commit=False))
        assert writer.open_transactions == []
    assert LogDirectory(tmp_path).verify() == []
    assert (tmp_path / "t-0" / f"{0:020}.txnindex").stat().st_size == 34


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path, "t", 0)
    with pytest.raises(OSError, match="another SegmentWriter"):
        SegmentWriter(tmp_path, "t", 0)
    SegmentWriter(tmp_path, "t", 1).close()
    writer.close()
    forgotten = SegmentWriter(tmp_path, "t", 0)
    del forgotten
    SegmentWriter(tmp_path, "t", 0).close()


def test_not_beside_a_broker(tmp_path: Path) -> None:
    """A broker holds a POSIX lock of .lock, so that another process sees it."""
    import subprocess
    import sys

    written(tmp_path, [batch(0)])
    lock = tmp_path / ".lock"
    lock.touch()
    SegmentWriter(tmp_path, "t", 0).close()
    code = ("import fcntl, sys\nfile = open(sys.argv[1], 'r+b')\nfcntl.lockf(file, fcntl.LOCK_EX)\n"
            "print('locked', flush=True)\nsys.stdin.read()")
    with subprocess.Popen([sys.executable, "-c", code, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                          ) as process:  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == b"locked\n"
        for topic in ("t", "new"):
            with pytest.raises(OSError, match="a broker that runs"):
                SegmentWriter(tmp_path, topic, 0)
        process.communicate()
    assert not (tmp_path / "new-0").exists()


@pytest.mark.parametrize("kind", [".gz", ".swap"])
def test_no_new_log_beside_a_segment_that_is_not_read(kind: str, tmp_path: Path) -> None:
    written(tmp_path, [batch(0)])
    (log,) = (tmp_path / "t-0").glob("*.log")
    other = log.rename(f"{log}{kind}")
    before = sorted(log.parent.iterdir())
    with pytest.raises(FileExistsError, match="a new log may not begin beside it") as caught:
        SegmentWriter(tmp_path, "t", 0)
    assert caught.value.filename == str(other) and sorted(log.parent.iterdir()) == before


def test_a_name_that_is_no_offset(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "0.log").write_bytes(batch(0))
    with pytest.raises(kwire.DecodeError, match="base offset of 20 digits"):
        SegmentWriter(tmp_path, "t", 0)


@pytest.mark.parametrize("at", [0, 5, 10, 99])
def test_a_snapshot_that_is_too_large_is_no_damaged_one(at: int, tmp_path: Path) -> None:
    """It was deleted, and with it what it says of the producers."""
    written(tmp_path, [batch(5 * one, 5, producer_id=3, producer_epoch=0, base_sequence=5 * one) for one in range(2)])
    folder = tmp_path / "t-0"
    (folder / f"{0:020}.timeindex").unlink()  # else to be made again
    with (folder / f"{at:020}.snapshot").open("ab") as file:
        file.truncate(MOST_BYTES + 1)
    before = {path.name: path.stat().st_size for path in folder.iterdir()}
    with pytest.raises(kwire.LimitError) as caught:
        SegmentWriter(tmp_path, "t", 0)
    assert caught.value.file == str(folder / f"{at:020}.snapshot")
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", [f"{0:020}{kind}" for kind in (".index", ".timeindex", ".txnindex", ".snapshot")]
                         + [f"{2:020}.snapshot", f"{99:020}.snapshot", f"{2:020}.log"])
def test_what_is_no_file_is_neither_read_nor_replaced(name: str, tmp_path: Path) -> None:
    """A pipe: the writer waited for ever, with the folder locked."""
    written(tmp_path, [batch(0, 2)], close=False)
    path = tmp_path / "t-0" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    before = sorted(os.listdir(path.parent))
    code = ("import sys, kwire, kwire.storage\n"
            "try: kwire.storage.SegmentWriter(sys.argv[1], 't', 0)\n"
            "except (kwire.DecodeError, FileNotFoundError) as error: print(error)\n")
    found = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, timeout=20)
    assert name in found.stdout and " pipe" in found.stdout and not found.stderr
    assert path.is_fifo() and sorted(os.listdir(path.parent)) == before


@pytest.mark.parametrize("kind", [".index", ".timeindex", ".txnindex"])
def test_an_index_that_is_too_large_is_not_read(kind: str, tmp_path: Path) -> None:
    written(tmp_path, [batch(0, 2)])
    path = tmp_path / "t-0" / f"{0:020}{kind}"
    with path.open("ab") as file:
        file.truncate(indexes.MOST_BYTES + 12)
    with pytest.raises(kwire.LimitError) as caught:
        SegmentWriter(tmp_path, "t", 0)
    assert caught.value.file == str(path) and path.stat().st_size == indexes.MOST_BYTES + 12
