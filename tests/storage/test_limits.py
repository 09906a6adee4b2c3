"""The memory of storage is bounded, whatever a segment, an index or a folder holds; results stay right."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from struct import pack
from typing import Any

import pytest

import kwire
from kwire.storage import LogDirectory, LogSegment, read_leader_epochs, read_partition_metadata, read_producer_snapshot
from kwire.storage.isolation import transactions
from kwire.storage.isolation.transactions import AbortedByIndex, LaterMarkers, Transactions
from kwire.storage.reading import stats, verify
from kwire.storage.side_files.indexes import AbortedTransaction
from tests.cli.test_log import run
from tests.storage.making import aborted_index, batch, in_transaction, marker, offsets, write_segment

pytestmark = pytest.mark.quick


def many(count: int, first: int = 0, ends: bool = False) -> list[bytes]:
    """Batches of `count` producers, each with a transaction; ends: each is aborted at once."""
    batches = []
    for at in range(count):
        batches.append(in_transaction(first + 2 * at, 10 + at, 1))
        if ends:
            batches.append(marker(first + 2 * at + 1, 10 + at, False))
    return batches


# transactions


@pytest.mark.parametrize("read", [
    lambda segment: list(segment.read(committed=True)),
    lambda segment: segment.columns(committed=True),
    lambda segment: list(segment.column_batches(committed=True, errors="keep")),
    lambda segment: segment.transactions(),
], ids=["read", "columns", "pieces", "transactions"])  # fmt: skip
def test_too_many_producers_are_refused(
    read: Callable[[LogSegment], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "MOST_PRODUCERS", 50)
    read(LogSegment(write_segment(tmp_path / "a-0", 0, many(50))))
    path = write_segment(tmp_path / "b-0", 0, many(51))
    with pytest.raises(kwire.LimitError, match="too many producers with transactions in one segment") as caught:
        read(LogSegment(path))
    assert (getattr(caught.value, "file", None), caught.value.limit, caught.value.needed) == (str(path), 50, 51)


def test_too_many_aborted_transactions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MOST_ABORTED", 20)
    one = [part for at in range(21) for part in (in_transaction(2 * at, 9, 1), marker(2 * at + 1, 9, False))]
    assert offsets(LogSegment(write_segment(tmp_path / "a-0", 0, one[:40])).read(committed=True)) == []
    path = write_segment(tmp_path / "b-0", 0, one)
    with pytest.raises(kwire.LimitError, match="too many aborted transactions") as caught:
        list(LogSegment(path).read(committed=True))
    assert (getattr(caught.value, "file", None), caught.value.needed) == (str(path), 21)


def test_too_many_markers_in_a_later_segment_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MOST_PRODUCERS", 30)
    write_segment(tmp_path / "t-0", 0, [in_transaction(0, 5, 1)])
    later = write_segment(tmp_path / "t-0", 10, many(31, 10, ends=True))
    with pytest.raises(kwire.LimitError) as caught:
        list(LogDirectory(tmp_path)["t", 0].segments[0].read(committed=True))
    assert getattr(caught.value, "file", None) == str(later)


@pytest.mark.parametrize("seed", range(20))
def test_hides_agrees_with_a_plain_search(seed: int) -> None:
    chance = random.Random(seed)
    aborted: list[tuple[int, int, int]] = []
    for producer in range(8):
        at = 0
        for _ in range(chance.randrange(6)):
            first = at + chance.randrange(5)
            at = first + 1 + chance.randrange(5)
            aborted.append((producer, first, at - 1))
    unfinished = sorted((producer, chance.randrange(60)) for producer in chance.sample(range(8), chance.randrange(8)))
    hidden = Transactions(sorted(aborted), unfinished)
    for producer in range(-1, 9):
        for offset in range(-1, 70):
            wanted = any(one[0] == producer and one[1] <= offset <= one[2] for one in aborted) or any(
                one[0] == producer and one[1] <= offset for one in unfinished
            )
            assert hidden.hides(producer, offset) == wanted, (producer, offset)


@pytest.mark.parametrize("seed", range(20))
def test_entries_of_an_index_are_found_by_producer_and_offsets(seed: int) -> None:
    """Overlapping ones, which no broker writes, count as the range that they cover together."""
    chance = random.Random(seed)
    entries = []
    for _ in range(chance.randrange(40)):
        first = chance.randrange(100)
        entries.append(AbortedTransaction(0, chance.randrange(4), first, first + chance.randrange(8), 0))
    listed = AbortedByIndex(entries)
    for producer in range(5):
        mine = [one for one in entries if one.producer_id == producer]
        assert (producer in listed) == bool(mine)
        covered = {offset for one in mine for offset in range(one.first_offset, one.last_offset + 1)}
        for first in range(0, 110, 7):
            last = first + chance.randrange(30)
            entry_of = {offset: listed.at(producer, offset) for offset in range(first, last + 1)}
            assert all(one is None or one[0] <= offset <= one[1] for offset, one in entry_of.items())
            assert {offset for offset, one in entry_of.items() if one} == covered & {*entry_of}


class Asked:
    """A segment with given first markers, which counts how often it is asked for one."""

    def __init__(self, markers: dict[int, tuple[int, int]]) -> None:
        self.markers, self.count = markers, 0

    @property
    def in_order(self) -> list[tuple[int, tuple[int, int]]]:
        """All markers."""
        return list(self.markers.items())

    @property
    def first_markers(self) -> Any:
        """Itself."""
        return self

    def of(self, producer: int) -> tuple[int, int] | None:
        """The marker."""
        self.count += 1
        return self.markers.get(producer)


@pytest.mark.parametrize("ends", [True, False])
def test_later_segments_are_read_once(ends: bool) -> None:
    """However many segments ask for the marker of a transaction that spans all of them."""
    segments = [Asked({3: (at, 0)} if at % 50 == 0 else {}) for at in range(300)]
    if ends:
        segments[299].markers[7] = (299, 1)
    later = LaterMarkers(segments)
    for number in range(300):
        assert later.after(number, 7) == ((299, 1) if ends and number < 299 else None)
        following = number - number % 50 + 50
        assert later.after(number, 3) == ((following, 0) if following < 300 else None)
    assert sum(segment.count for segment in segments) < 4 * 300


def test_a_commit_in_the_data_contradicts_an_index_among_many(tmp_path: Path) -> None:
    """Each of many transactions is looked up by its offsets, not among all markers."""
    parts, entries = [], []
    for at in range(0, 600, 2):
        committed = at % 6 == 0
        parts += [in_transaction(at, 1, 1), marker(at + 1, 1, committed)]
        entries.append((1, at, at + 1, at + 2))  # in the index each is aborted
    path = write_segment(tmp_path / "t-0", 0, parts)
    aborted_index(path, entries)
    assert offsets(LogSegment(path).read(committed=True)) == [*range(0, 600, 6)]


# statistics


def test_producers_past_the_limit_are_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stats, "MOST_PRODUCERS", 5)
    paths = [write_segment(tmp_path / "t-0", 0, many(8)), write_segment(tmp_path / "t-0", 16, many(6, 16))]
    whole = LogDirectory(tmp_path)["t", 0]
    first, second = (segment.stats() for segment in whole)
    assert [*first.producers] == [10, 11, 12, 13, 14, stats.OTHERS]
    assert (first.producers[stats.OTHERS].batches, first.producers[stats.OTHERS].records) == (3, 3)
    total = stats.merged([first, second])
    assert len(total.producers) == 6 and sum(one.records for one in total.producers.values()) == 14
    assert total.producers[stats.OTHERS].transactional == 3 + 1
    code, out, _ = run(capsys, "log", "stats", *paths)
    assert code == 0 and "others" in out and " -2 " not in out


def test_epochs_past_the_limit_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "MOST_EPOCHS", 4)
    parts = [batch(at, 1, producer_id=1, producer_epoch=90 - at, base_sequence=0) for at in range(10)]
    one = LogSegment(write_segment(tmp_path / "t-0", 0, parts)).stats()
    assert (one.producers[1].epochs, one.producers[1].batches) == ((87, 88, 89, 90), 10)
    other = LogSegment(write_segment(tmp_path / "u-0", 0, parts[::-1])).stats()
    assert stats.merged([other, one]).producers[1].epochs == (81, 82, 83, 84)


# verify


def test_findings_past_the_limit_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "MOST_FINDINGS", 30)
    path = write_segment(tmp_path / "t-0", 0, [batch(0)] * 40, indexes=False)  # each but the first is out of order
    path.with_suffix(".txnindex").write_bytes(b"".join(pack(">hqqqq", 0, 1, at, at, 0) for at in range(100, 160)))
    findings = LogSegment(path).verify()
    assert len(findings) == 31 and {finding.kind for finding in findings[:30]} == {"offsets"}
    assert findings[30].message == "69 more findings, not listed"  # 9 of the batches, 60 of the index
    assert LogDirectory(tmp_path)["t", 0].verify()[:31] == findings


def test_the_limit_of_findings_is_ten_thousand(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(kwire.build_batch([(1, None, b"")], base_offset=0) * 10_011)
    findings = LogSegment(path).verify()
    assert len(findings) == 10_001 and findings[-1].message == "10 more findings, not listed"


# small files, and many of them


@pytest.mark.parametrize("size", [(64 << 20) + 24, 3 << 30])
@pytest.mark.parametrize("kind", [".index", ".timeindex", ".txnindex"])
def test_a_file_too_large_for_an_index_is_not_read(kind: str, size: int, tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(3 * at) for at in range(20)])
    with path.with_suffix(kind).open("wb") as file:
        file.truncate(size)
    tracemalloc.start()
    try:
        segment = LogSegment(path)
        assert offsets(segment.read(start_offset=31, committed=True)) == [*range(31, 60)]
        (finding,) = segment.verify()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (finding.kind, finding.message) == (kind[1:], f"larger than {64 << 20} bytes: not a Kafka index")
    assert finding.path == str(path.with_suffix(kind)) and peak < 140 << 20


@pytest.mark.parametrize("read", [read_producer_snapshot, read_leader_epochs, read_partition_metadata])
@pytest.mark.parametrize("size", [(64 << 20) + 1, 10 << 30])
def test_a_checkpoint_that_is_too_large_is_refused(read: Callable[[Path], object], size: int, tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(size)
    with pytest.raises(kwire.LimitError, match="large: too large for a checkpoint file") as caught:
        read(path)
    limit = 64 << 20 if read is read_producer_snapshot else 1 << 20
    assert (getattr(caught.value, "file", None), caught.value.limit, caught.value.needed) == (str(path), limit, size)


def test_a_folder_of_many_empty_segments_takes_little_memory(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"{number:020}.log").touch()
    gc.collect()
    tracemalloc.start()
    try:
        (partition,) = LogDirectory(tmp_path)
        assert len(partition.segments) == 3000 and len(partition.segments[5].later) == 2994
        assert len(partition.columns(committed=True)) == 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20
