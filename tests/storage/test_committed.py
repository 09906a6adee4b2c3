"""read_committed while a range is read: by its data, .txnindex, producer snapshots, and heads of what follows."""

from __future__ import annotations

import os
import pickle
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwire
from kwire.errors import LimitError
from kwire.storage import LogDirectory, LogSegment, discover
from kwire.storage.batches import scanner
from kwire.storage.isolation import committed, transactions
from kwire.storage.isolation.planned_log import LogEnd
from kwire.storage.places import filesystem
from tests.storage.making import (
    START,
    Log,
    aborted_index,
    batch,
    in_transaction,
    marker,
    producer_snapshot,
    write_segment,
)

pytestmark = pytest.mark.quick


def rows(segment: LogSegment, end: LogEnd | None, size: int) -> list[int]:
    """The offsets that read_committed gives, in ranges of about `size` bytes, each read as another task would."""
    found = []
    for one in segment.split(size):
        alone = LogSegment(segment.path)
        for piece in alone.column_batches(
            ("offset",), start=one.start, end=one.end, committed=True, transactions=end, rows=5
        ):
            found += pa.table(piece)["offset"].to_pylist()
    return found


def of_folder(folder: Path, size: int) -> list[int]:
    end: LogEnd = pickle.loads(pickle.dumps(LogEnd.of(discover(folder))))
    return [offset for path in sorted(folder.glob("*.log")) for offset in rows(LogSegment(path), end, size)]


def spoil(folder: Path, dice: random.Random) -> None:
    """Damage or delete some of the files beside the segments."""
    for path in sorted(folder.iterdir()):
        if path.suffix in (".txnindex", ".snapshot") and dice.random() < 0.4:
            data = bytearray(path.read_bytes())
            kind = dice.randrange(3)
            if kind == 0 and path.suffix == ".snapshot":
                path.unlink()
            elif kind == 0:  # without its .index, a missing .txnindex says nothing
                path.unlink()
                path.with_suffix(".index").unlink(missing_ok=True)
            elif kind == 1:  # in the middle of an entry
                path.write_bytes(data[: len(data) - dice.randrange(1, 8)])
            else:
                data[dice.randrange(2)] ^= 0x40  # the version
                path.write_bytes(data)


def check(folder: Path, seed: int) -> None:
    dice = random.Random(seed)
    log = Log(folder / "t-0", dice)
    whole = [offset for part in LogDirectory(folder)["t", 0].column_batches(("offset",), committed=True)
             for offset in pa.table(part)["offset"].to_pylist()]
    assert whole == log.visible
    assert [one.offset for one in LogDirectory(folder)["t", 0].read(committed=True)] == log.visible
    for size in (1, 200, 700, 1 << 20):
        assert of_folder(log.folder, size) == log.visible, size
    spoil(log.folder, dice)
    for size in (1, 300, 1 << 20):
        assert of_folder(log.folder, size) == log.visible, ("spoiled", size)
    for path in log.folder.iterdir():
        if path.suffix != ".log":
            path.unlink()
    for size in (1, 300, 1 << 20):
        assert of_folder(log.folder, size) == log.visible, ("heads", size)


@pytest.mark.parametrize("ahead", [0, 500, committed.AHEAD_BYTES])
@pytest.mark.parametrize("seed", range(8))
def test_indexes_snapshots_and_heads_give_the_same_rows(
    seed: int, ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed, "AHEAD_BYTES", ahead)
    check(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 500))
def test_many_logs_give_the_same_rows_every_way(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed, "AHEAD_BYTES", (0, 500, committed.AHEAD_BYTES)[seed % 3])
    check(tmp_path, seed)


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The bytes that are read from now on, by the file's name and by its end; "pieces": how many reads that were."""
    bytes_read: Counter[str] = Counter()
    inner = filesystem._OpenFile._piece

    def piece(self: Any, start: int, end: int, before: Any) -> memoryview:
        data = inner(self, start, end, before)
        bytes_read[Path(self.path).suffix] += len(data) - len(memoryview(before))
        bytes_read[Path(self.path).name] += len(data) - len(memoryview(before))
        bytes_read["pieces"] += 1
        return data

    monkeypatch.setattr(filesystem._OpenFile, "_piece", piece)
    return bytes_read


def long_log(folder: Path, snapshots: bool, segments: int = 6) -> int:
    """Segments of 1 MiB; a transaction spans each of their ends, and producer 99 begins one that never ends.

    Returns the bytes of all segments.
    """
    offset, total, known = 0, 0, {}
    for number in range(segments):
        base, parts = offset, []
        if number and snapshots:
            producer_snapshot(folder, base, known)
        if number == 0:
            known[99], offset = 0, 1
            parts.append(in_transaction(0, 99, 1))
        for turn in range(100):
            if turn == 10:
                parts.append(marker(offset, number, True))
                known[number] = -1
                offset += 1
            if 10 <= turn < 90:
                parts.append(batch(offset, 10, size=1000))
            else:
                producer = number + (turn >= 90)
                known[producer] = offset if known.get(producer, -1) < 0 else known[producer]
                parts.append(in_transaction(offset, producer, 10, size=1000))
            offset += 10
        total += write_segment(folder, base, parts, indexes=snapshots).stat().st_size
    return total


def test_a_range_reads_its_bytes_once_and_small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "t-0"
    total = long_log(folder, snapshots=True)
    end = LogEnd.of(discover(folder))
    found = counted(monkeypatch)
    for path in sorted(folder.glob("*.log"))[:-2]:
        rows(LogSegment(path), end, 1 << 30)
    ranges = sum(path.stat().st_size for path in sorted(folder.glob("*.log"))[:-2])
    last = sorted(folder.glob("*.log"))[-1]
    # the transaction that hangs: the newest snapshot says so, and only the last segment is looked through, once
    assert found[".log"] - found[last.name] <= 1.001 * ranges
    assert found[last.name] == last.stat().st_size
    assert found[".snapshot"] + found[".txnindex"] < 2000
    assert total > 4 << 20


def test_without_indexes_what_follows_is_read_once_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ranges ask: the first one has a transaction that hangs, all of them others."""
    folder = tmp_path / "t-0"
    total = long_log(folder, snapshots=False)
    end = LogEnd.of(discover(folder))
    first = sorted(folder.glob("*.log"))[0]
    first.write_bytes(b"".join(in_transaction(at, 99, 1, size=5000) for at in range(200)) + first.read_bytes())
    total += first.stat().st_size
    segment = LogSegment(first)
    spans = segment.split(60_000)
    assert len(spans) > 20
    found = counted(monkeypatch)
    for one in spans:
        for _ in LogSegment(first).column_batches(
            ("offset",), start=one.start, end=one.end, committed=True, transactions=end
        ):
            pass
    assert found[".log"] < 3.2 * total


def plan_of(folder: Path) -> tuple[LogEnd, list[tuple[Path, int, int]]]:
    files = discover(folder)
    return LogEnd.of(files), [
        (Path(file.path), one.start, one.end) for file in files for one in LogSegment(file.path).split(1)]


def planned(plan: tuple[LogEnd, list[tuple[Path, int, int]]]) -> list[int]:
    found = []
    for path, start, stop in plan[1]:
        end = plan[0]._replace(plan=random.getrandbits(60))  # as in a process that remembers nothing
        for piece in LogSegment(path).column_batches(
            ("offset",), start=start, end=stop, committed=True, transactions=end
        ):
            found += pa.table(piece)["offset"].to_pylist()
    return found


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("rolled", [True, False])
@pytest.mark.parametrize("shutdown", [True, False])
def test_what_is_written_after_the_plan_does_not_count(
    listed: bool, commit: bool, rolled: bool, shutdown: bool, tmp_path: Path
) -> None:
    """Producers 1 and 2 are in transactions when the read is planned; then they end, with all that a broker writes."""
    folder = tmp_path / "t-0"
    write_segment(folder, 0, [in_transaction(0, 1), in_transaction(3, 3), marker(6, 3, True), batch(7)])
    producer_snapshot(folder, 10, {1: 0, 3: -1})
    fourth = [in_transaction(16, 4), marker(19, 4, not listed)]
    path = write_segment(folder, 10, [in_transaction(10, 2), batch(13), *fourth])
    before = [(4, 16, 19, 0)] if listed else []
    if listed:
        aborted_index(path, before)
    plan = plan_of(folder)
    visible = [3, 4, 5, 7, 8, 9, 13, 14, 15, *(() if listed else (16, 17, 18))]
    assert planned(plan) == visible
    if shutdown:
        producer_snapshot(folder, 20, {1: 0, 2: 10, 3: -1, 4: -1})
        assert planned(plan) == visible
    ends = [marker(20, 1, commit), marker(21, 2, commit)]
    entries = [(1, 0, 20, 10), (2, 10, 21, 22)]
    if rolled:
        producer_snapshot(folder, 20, {1: 0, 2: 10, 3: -1, 4: -1})
        later = write_segment(folder, 20, ends)
        producer_snapshot(folder, 22, {1: -1, 2: -1, 3: -1, 4: -1})
        write_segment(folder, 22, [batch(22)])
        if not commit:
            aborted_index(later, entries)
    else:
        path.write_bytes(path.read_bytes() + b"".join(ends))
        if listed or not commit:
            aborted_index(path, [*before, *([] if commit else entries)])
        producer_snapshot(folder, 22, {1: -1, 2: -1, 3: -1, 4: -1})
    assert planned(plan) == visible
    assert planned(plan_of(folder)) == sorted(
        [*visible, *((0, 1, 2, 10, 11, 12) if commit else ()), *((22, 23, 24) if rolled else ())])


@pytest.mark.parametrize("odd", ["folder", "pipe", "link"])
def test_what_is_no_file_in_the_place_of_an_index_says_nothing(odd: str, tmp_path: Path) -> None:
    """It is not missing, which beside an .index says that nothing was aborted."""
    log = Log(tmp_path / "t-0", random.Random(7), segments=3)
    indexes = list(log.folder.glob("*.txnindex"))
    assert indexes
    for path in indexes:
        path.unlink()
        if odd == "folder":
            path.mkdir()
        elif odd == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("nowhere")
    assert of_folder(log.folder, 1000) == log.visible


def test_a_snapshot_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    write_segment(folder, 0, [in_transaction(0, 1), batch(3)])
    write_segment(folder, 6, [marker(6, 1, True)])
    with open(folder / f"{6:020}.snapshot", "wb") as file:
        file.truncate(10 << 30)
    assert planned(plan_of(folder)) == [0, 1, 2, 3, 4, 5]
    aborted_index(folder / f"{0:020}.log", [(1, 0, 3, 4)])
    with open(folder / f"{0:020}.txnindex", "wb") as file:
        file.truncate(10 << 30)
    assert planned(plan_of(folder)) == [0, 1, 2, 3, 4, 5]


def test_a_snapshot_of_too_many_producers_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "t-0"
    write_segment(folder, 0, [in_transaction(0, 1), batch(3)])
    write_segment(folder, 6, [batch(6)])
    producer_snapshot(folder, 6, {producer: 0 for producer in range(2, 40)})  # 1 has ended, it says
    assert planned(plan_of(folder)) == list(range(9))
    monkeypatch.setattr(transactions, "MOST_PRODUCERS", 30)
    assert planned(plan_of(folder)) == [3, 4, 5, 6, 7, 8]


def test_a_marker_in_the_range_wins_over_the_index(tmp_path: Path) -> None:
    parts = [in_transaction(0, 1), marker(3, 1, True), in_transaction(4, 2), batch(7)]
    path = write_segment(tmp_path / "t-0", 0, parts)
    aborted_index(path, [(1, 0, 3, 4), (2, 4, 9, 4)])
    assert rows(LogSegment(path), None, 1 << 20) == [0, 1, 2, 7, 8, 9]


def test_ongoing_transactions_are_those_without_an_end(tmp_path: Path) -> None:
    for seed in range(30):
        log = Log(tmp_path / str(seed) / "t-0", random.Random(seed))
        partition = LogDirectory(tmp_path / str(seed))["t", 0]
        wanted = sorted((first, producer) for producer, first in log.open.items())
        assert partition.ongoing_transactions() == wanted
        end = LogEnd.of(discover(log.folder))
        assert partition.ongoing_transactions(end) == wanted
        log.paths[-1].write_bytes(log.paths[-1].read_bytes() + in_transaction(log.end, 77))
        assert partition.ongoing_transactions(end) == wanted
        if log.open:
            assert min(one[1] for one in partition.segments[-1].transactions().open) >= wanted[0][0]


def test_ongoing_transactions_are_read_from_the_newest_snapshot_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_log(tmp_path / "t-0", snapshots=True)
    found = counted(monkeypatch)
    partition = LogDirectory(tmp_path)["t", 0]
    assert partition.ongoing_transactions()[0] == (0, 99)
    assert found[".log"] == partition.segments[-1].size + 64  # are these zeros that a broker has preallocated?


def check_logs_in(store: Any, name: str, folder: Path) -> None:
    """Drawn logs, read from a store of memory, have the rows that are visible."""
    for seed in range(4):
        log = Log(folder / str(seed) / "t-0", random.Random(seed))
        store.put(str(log.folder), f"/{name}-{seed}/t-0", recursive=True)
        url = f"memory://{name}-{seed}"
        end = LogEnd.of(discover(url))
        assert [offset for file in discover(url) for offset in rows(LogSegment(file.path), end, 300)] == log.visible


def test_ranges_of_a_store_are_read_as_those_of_files(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    check_logs_in(fsspec.filesystem("memory"), "committed", tmp_path)


def test_a_part_of_an_index_is_not_taken_for_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a store that gives fewer bytes than it was asked for."""
    fsspec = pytest.importorskip("fsspec")
    store, real = fsspec.filesystem("memory"), fsspec.get_filesystem_class("memory").cat_file

    def cat_file(self: Any, path: str, *args: Any, **options: Any) -> Any:
        data = real(self, path, *args, **options)
        return data[:-34] if path.endswith(".txnindex") else data

    monkeypatch.setattr(type(store), "cat_file", cat_file)
    check_logs_in(store, "short", tmp_path)


def test_golden_logs_give_the_same_rows_every_way(golden: Path, tmp_path: Path) -> None:
    """With all that brokers wrote, and by the segments alone."""
    seen = 0
    for path in sorted(golden.glob("data/*/data*")):
        for partition in LogDirectory(path):
            wanted = [one.offset for one in partition.read(committed=True)]
            seen += len(wanted) < sum(1 for _ in partition.read())
            files = discover(str(Path(partition.segments[0].path).parent))
            bare = tmp_path / path.parent.name / path.name / f"{partition.topic}-{partition.partition}"
            bare.mkdir(parents=True)
            for file in files:
                (bare / Path(file.path).name).write_bytes(Path(file.path).read_bytes())
            for size in (300, 1 << 20):
                for folder in (Path(files[0].path).parent, bare):
                    assert of_folder(folder, size) == wanted, (folder, size)
    assert seen > 5


def test_windows_wait_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a transaction that hangs, of which the snapshot tells."""
    folder = tmp_path / "t-0"
    parts = [in_transaction(0, 99, 1), *(batch(at, 100, size=2000) for at in range(1, 4000, 100))]
    first = write_segment(folder, 0, parts)
    producer_snapshot(folder, 4001, {99: 0})
    write_segment(folder, 4001, [batch(4001)])
    assert first.stat().st_size > 7 << 20
    monkeypatch.setattr(committed, "AHEAD_BYTES", 100_000)
    found = counted(monkeypatch)
    pieces = LogSegment(first).column_batches(("offset",), committed=True)
    assert pa.table(next(pieces))["offset"].to_pylist()[0] == 1
    assert found[".log"] < 3 << 20
    assert sum(len(piece) for piece in pieces) > 2000
    assert found[first.name] < 1.001 * first.stat().st_size


@pytest.mark.parametrize("end", [None, 50])
def test_the_rest_of_a_range_is_read_in_large_pieces(
    end: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not again what waits: each piece is a request to a store."""
    first = write_segment(
        tmp_path / "t-0", 0, [*(in_transaction(at, 7, 100, size=2000) for at in range(0, 4000, 100)),
                              marker(4000, 7, True)], indexes=False)
    monkeypatch.setattr(committed, "AHEAD_BYTES", 4 << 20)
    found = counted(monkeypatch)
    assert next(LogSegment(first).read(committed=True, end_offset=end)).offset == 0
    size = first.stat().st_size
    assert size > 7 << 20
    assert found[first.name] < size + (1 << 20)
    assert found["pieces"] < (4 << 20) / scanner.OBJECT_BYTES + size / scanner.WINDOW_BYTES + 5


def test_too_many_entries_in_the_indexes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MOST_ABORTED", 20)
    for base in (0, 100, 200):
        path = write_segment(tmp_path / "t-0", base, [in_transaction(base, 7, 1)])
        aborted_index(path, [(8, base + 2 * at, base + 2 * at + 1, 0) for at in range(15)])
    with pytest.raises(LimitError, match="too many aborted transactions in one partition") as caught:
        rows(LogSegment(tmp_path / "t-0" / f"{0:020}.log"), None, 1 << 20)
    assert (caught.value.limit, caught.value.needed) == (20, 30)


@pytest.mark.parametrize("ahead", [0, committed.AHEAD_BYTES])
def test_a_range_may_end_inside_a_batch(ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch belongs to the range in which it begins: what follows is looked for after it, not in its values."""
    monkeypatch.setattr(committed, "AHEAD_BYTES", ahead)
    records = [(START, b"k", marker(7, 1, False) * 2)] * 3
    second = kwire.build_batch(records, base_offset=3, producer_id=2, producer_epoch=0, base_sequence=0,
                               transactional=True)
    parts = [in_transaction(0, 1), second, marker(6, 2, True), marker(7, 1, True), batch(8)]
    path = write_segment(tmp_path / "t-0", 0, parts, indexes=False)
    for end in range(len(parts[0]) + 1, len(parts[0] + second) + 1):
        pieces = LogSegment(path).column_batches(("offset",), start=0, end=end, committed=True)
        assert [offset for piece in pieces for offset in pa.table(piece)["offset"].to_pylist()] == [0, 1, 2, 3, 4, 5]
        assert LogSegment(path).transactions(0, end) == ([], [])


@pytest.mark.parametrize("ahead", [0, committed.AHEAD_BYTES])
def test_transactions_at_the_last_offsets(ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The marker is after the range, and above every offset of it."""
    monkeypatch.setattr(committed, "AHEAD_BYTES", ahead)
    base = (1 << 63) - 100
    parts = [batch(base + 3 * at, time=START, producer_id=7, producer_epoch=0, base_sequence=3 * at, transactional=True)
             for at in range(4)]
    parts.append(marker(base + 12, 7, commit=False, time=START))
    path = write_segment(tmp_path / "t-0", base, parts, indexes=False)
    for size in (1, 300, 1 << 20):
        assert rows(LogSegment(path), None, size) == [], size


@pytest.mark.parametrize("zeros", [0, 5000])
@pytest.mark.parametrize("written", [0, 30])
def test_what_is_written_after_the_plan_is_open(
    zeros: int, written: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a transaction goes on for longer than windows wait, and where the plan ends in the middle of a batch.
    """
    monkeypatch.setattr(committed, "AHEAD_BYTES", 100)
    parts = [batch(0), in_transaction(3, 1), batch(6), batch(9), batch(12), marker(15, 1, True)]
    path = write_segment(tmp_path / "t-0", 0, parts, indexes=False)
    data, more = path.read_bytes(), in_transaction(16, 2) + in_transaction(19, 3) + marker(22, 3, False)
    path.write_bytes(data + more[:written] + bytes(zeros))
    files = discover(tmp_path)
    plan = LogEnd.of([files[0]._replace(size=len(data) + written)])
    path.write_bytes(data + more + bytes(zeros))
    for end in (None, files[0].size):
        pieces = LogSegment(path).column_batches(("offset",), committed=True, transactions=plan, rows=1, end=end)
        assert [offset for piece in pieces for offset in pa.table(piece)["offset"].to_pylist()] == [*range(15)]
