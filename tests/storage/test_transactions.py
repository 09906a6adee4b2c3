"""read_committed: aborted and open transactions, by markers and by .txnindex, in later segments and byte ranges."""

from __future__ import annotations

import gc
import pickle
import weakref
from pathlib import Path
from struct import pack
from typing import Any

import pyarrow as pa
import pytest

from kwire import LimitError, Record
from kwire.storage import LogDirectory, LogSegment
from kwire.storage.batches import scanner
from kwire.storage.isolation import committed, transactions
from kwire.storage.isolation.transactions import FirstMarkers, Transactions
from kwire.storage.reading import segment_reader
from tests.storage.making import aborted_index, batch, in_transaction, marker, offsets, producer_snapshot, write_segment

pytestmark = pytest.mark.quick


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Producer 1 aborts 0-2 and 30-32 across a roll, commits 9-11; producer 2 commits 6-8; 3 never ends 40-42."""
    folder = tmp_path / "t-0"
    write_segment(
        folder,
        0,
        [
            in_transaction(0, 1),
            batch(3),
            in_transaction(6, 2),
            marker(12, 1, False),
            in_transaction(13, 1),
            marker(16, 2, True),
            marker(17, 1, True),
            batch(18),
        ],
        every=1,
    )
    write_segment(folder, 21, [batch(21), in_transaction(24, 1), batch(27), in_transaction(30, 1)], every=1)
    write_segment(
        folder,
        33,
        [
            batch(33),
            in_transaction(36, 3),
            marker(39, 1, False),
            batch(40),
            in_transaction(43, 3),
            in_transaction(46, 1),
            marker(49, 1, True),
        ],
        every=1,
    )
    aborted_index(folder / f"{0:020}.log", [(1, 0, 12, 13)])
    aborted_index(folder / f"{33:020}.log", [(1, 24, 39, 36)])
    return folder


VISIBLE = [*range(3, 9), *range(13, 16), *range(18, 24), *range(27, 30), *range(33, 36), *range(40, 43), *range(46, 49)]


@pytest.mark.parametrize("indexed", [True, False])
def test_committed(folder: Path, indexed: bool) -> None:
    if not indexed:
        for path in [*folder.glob("*index")]:
            path.unlink()
    partition = LogDirectory(folder)["t", 0]
    assert offsets(partition.read(committed=True)) == VISIBLE
    assert pa.table(partition.columns(("offset",), committed=True))["offset"].to_pylist() == VISIBLE
    for segment in partition:
        alone = LogSegment(segment.path)  # finds its later segments itself
        mine = [one for one in VISIBLE if one in offsets(alone.read())]
        assert offsets(alone.read(committed=True)) == mine
        for size in (1, 300):
            rows = []
            for one in alone.split(size):
                for piece in alone.column_batches(("offset",), start=one.start, end=one.end, committed=True):
                    rows += pa.table(piece)["offset"].to_pylist()
            assert rows == mine
            shared = pickle.loads(pickle.dumps(alone.transactions()))
            rows = []
            for one in alone.split(size):
                for piece in alone.column_batches(
                    ("offset",), start=one.start, end=one.end, committed=True, transactions=shared
                ):
                    rows += pa.table(piece)["offset"].to_pylist()
            assert rows == mine
    assert partition.verify() == []


def test_transactions(folder: Path) -> None:
    first, second, third = LogDirectory(folder)["t", 0].segments
    assert first.transactions() == Transactions([(1, 0, 12)], [])
    assert second.transactions() == Transactions([(1, 24, 39)], [])
    assert third.transactions() == Transactions([], [(3, 36)])


def test_without_the_later_segments_a_transaction_is_open(folder: Path) -> None:
    (folder / f"{33:020}.log").unlink()
    assert offsets(LogSegment(folder / f"{21:020}.log").read(committed=True)) == [21, 22, 23, 27, 28, 29]


def test_an_index_entry_counts_where_the_marker_is_lost(tmp_path: Path) -> None:
    path = write_segment(
        tmp_path / "t-0", 0, [in_transaction(0, 1), batch(4), in_transaction(7, 1), marker(10, 1, True)]
    )
    assert offsets(LogSegment(path).read(committed=True)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    aborted_index(path, [(1, 0, 3, 4)])
    assert offsets(LogSegment(path).read(committed=True)) == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("entries", [[(1, 0, 10, 11)], [(1, 5, 2, 3)], [(-1, 0, 9, 9)], [(2, 0, 9, 9)]])
def test_an_index_entry_against_the_data_does_not_count(tmp_path: Path, entries: list[tuple[int, ...]]) -> None:
    path = write_segment(
        tmp_path / "t-0", 0, [in_transaction(0, 1), batch(4), in_transaction(7, 1), marker(10, 1, True)]
    )
    aborted_index(path, entries)
    assert offsets(LogSegment(path).read(committed=True)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert {finding.kind for finding in LogSegment(path).verify()} == {"txnindex"}


def test_verify_reports_a_missing_entry(folder: Path) -> None:
    path = folder / f"{0:020}.log"
    aborted_index(path, [])
    (finding,) = LogSegment(path).verify()
    assert (finding.kind, finding.offset) == ("txnindex", 12)
    assert "producer 1" in finding.message


def test_epochs_and_a_damaged_marker(tmp_path: Path) -> None:
    # a marker of a later epoch ends the transaction too (KIP-890); a marker with a wrong checksum ends nothing
    bad = bytearray(marker(10, 5, True))
    bad[-1] ^= 1
    path = write_segment(
        tmp_path / "t-0",
        0,
        [
            in_transaction(0, 4),
            marker(3, 4, False, epoch=1),
            in_transaction(4, 4),
            marker(7, 4, True, epoch=2),
            in_transaction(8, 5, 1),
        ],
    )
    path.write_bytes(path.read_bytes() + bytes(bad))
    rows = [
        offset
        for piece in LogSegment(path).column_batches(("offset",), committed=True, errors="keep")
        for offset in pa.table(piece)["offset"].to_pylist()
    ]
    assert rows == [4, 5, 6]


@pytest.mark.parametrize("known", ["nothing", "snapshot", "aborted"])
def test_a_damaged_marker_is_the_same_to_all_ways_to_read(known: str, tmp_path: Path) -> None:
    """What .txnindex files and producer snapshots say of it counts; without them the transaction is open."""
    folder, bad = tmp_path / "t-0", bytearray(marker(3, 1, known != "aborted"))
    bad[-1] ^= 1
    path = write_segment(folder, 0, [in_transaction(0, 1)])
    path.write_bytes(path.read_bytes() + bad + batch(4))
    write_segment(folder, 7, [batch(7)])
    if known == "aborted":
        aborted_index(path, [(1, 0, 3, 4)])
    if known != "nothing":
        producer_snapshot(folder, 7, {1: -1})
    partition = LogDirectory(tmp_path)["t", 0]
    first = [0, 1, 2] if known == "snapshot" else []
    pieces = partition.column_batches(("offset",), committed=True, errors="keep")
    assert [offset for piece in pieces for offset in pa.table(piece)["offset"].to_pylist()] == [*first, *range(4, 10)]
    columns = partition.columns(("offset",), committed=True, errors="keep")
    assert pa.table(columns)["offset"].to_pylist() == [*first, *range(4, 10)]
    records = partition.read(committed=True, errors="keep")
    assert offsets(one for one in records if isinstance(one, Record)) == [*first, *range(4, 10)]
    found = partition.segments[0].transactions()
    assert found == Transactions(
        [(1, 0, 3)] if known == "aborted" else [], [(1, 0)] if known == "nothing" else [])


def test_the_next_marker_does_not_count_for_a_damaged_one_if_files_tell(tmp_path: Path) -> None:
    """The producer snapshot between them says that the transaction had ended, .txnindex files that it was committed."""
    folder, bad = tmp_path / "t-0", bytearray(marker(3, 1, True))
    bad[-1] ^= 1
    path = write_segment(folder, 0, [in_transaction(0, 1)])
    path.write_bytes(path.read_bytes() + bad + batch(4))
    aborted_index(write_segment(folder, 7, [in_transaction(7, 1), marker(10, 1, False)]), [(1, 7, 10, 11)])
    producer_snapshot(folder, 7, {1: -1})
    partition, wanted = LogDirectory(tmp_path)["t", 0], [*range(3), *range(4, 7)]
    records = partition.read(committed=True, errors="keep")
    assert offsets(one for one in records if isinstance(one, Record)) == wanted
    assert pa.table(partition.columns(("offset",), committed=True, errors="keep"))["offset"].to_pylist() == wanted
    pieces = partition.column_batches(("offset",), committed=True, errors="keep")
    assert [offset for piece in pieces for offset in pa.table(piece)["offset"].to_pylist()] == wanted


@pytest.mark.parametrize("commit", [True, False])
def test_an_open_transaction_after_a_damaged_marker_stays_open(commit: bool, tmp_path: Path) -> None:
    """What ended before the producer snapshot is the transaction before it, of the same producer."""
    bad = bytearray(marker(3, 7, commit))
    bad[-1] ^= 1
    path = write_segment(tmp_path / "t-0", 0, [in_transaction(0, 7)])
    path.write_bytes(path.read_bytes() + bad + in_transaction(4, 7))
    if not commit:
        aborted_index(path, [(7, 0, 3, 4)])
    producer_snapshot(tmp_path / "t-0", 7, {7: 4})
    write_segment(tmp_path / "t-0", 7, [batch(7)])
    partition = LogDirectory(tmp_path)["t", 0]
    records = partition.read(committed=True, errors="keep")
    assert offsets(one for one in records if isinstance(one, Record)) == [7, 8, 9]
    pieces = partition.column_batches(("offset",), committed=True, errors="keep")
    assert [offset for piece in pieces for offset in pa.table(piece)["offset"].to_pylist()] == [7, 8, 9]
    assert partition.segments[0].transactions().open == [(7, 0)]


def test_control_records_only_where_asked(folder: Path) -> None:
    segment = LogSegment(folder / f"{0:020}.log")
    assert 12 not in offsets(segment.read())
    control = [one for one in segment.read(control=True) if one.control_type]
    assert [(one.offset, one.control_type) for one in control] == [(12, "ABORT"), (16, "COMMIT"), (17, "COMMIT")]
    assert len(segment.columns(control=True)) == len(segment.columns()) + 3


def test_an_open_transaction_does_not_make_every_segment_read_all_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for base in range(0, 90, 3):
        write_segment(tmp_path / "t-0", base, [in_transaction(base, 1) if base < 60 else batch(base)])
    begun = []
    inner = scanner.Scanner.__init__

    def noted(self: scanner.Scanner, source: Any, *args: object, **options: object) -> None:
        begun.append(source.path)
        inner(self, source, *args, **options)

    monkeypatch.setattr(scanner.Scanner, "__init__", noted)
    partition = LogDirectory(tmp_path)["t", 0]
    assert [len(segment.transactions().open) for segment in partition] == [1] * 20 + [0] * 10
    assert max(map(begun.count, set(begun))) <= 2


def test_an_interrupted_look_for_markers_loses_none(tmp_path: Path) -> None:
    """Ctrl-C between two lines: a marker was noted by its producer, and never among those in order."""

    class Interrupted(list[Any]):
        rings = True

        def append(self, item: Any) -> None:
            if self.rings:
                self.rings = False
                raise KeyboardInterrupt
            super().append(item)

    path = write_segment(tmp_path / "t-0", 0, [marker(at, at, True) for at in range(3)])
    markers = FirstMarkers(LogSegment(path).file)
    markers.in_order = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        markers.of(2)
    assert markers.of(2) == (2, 1)
    assert [producer for producer, _ in markers.in_order] == [0, 1, 2]


@pytest.mark.quick
@pytest.mark.parametrize("preallocated", [False, True])
def test_what_is_appended_after_the_plan_is_made(
    tmp_path: Path, preallocated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is for the next read: nobody has looked whether it was aborted."""
    data = batch(0)
    path = tmp_path / f"{0:020}.log"
    held = LogSegment.held

    def then_appended(segment: LogSegment) -> LogSegment:
        more = data + in_transaction(3, 7) + marker(6, 7, commit=False)
        with path.open("r+b") as file:
            file.write(more)
        return held(segment)

    monkeypatch.setattr(LogSegment, "held", then_appended)
    path.write_bytes(data + bytes(10_000 if preallocated else 0))
    for _ in range(2):  # then it is judged
        assert offsets(LogSegment(path).read(committed=True)) == [0, 1, 2]
    for most_open in (32, 0):  # segments whose files are open at a time
        monkeypatch.setattr("kwire.storage.reading.segment_reader._MOST_OPEN", most_open)
        path.write_bytes(data + bytes(10_000 if preallocated else 0))
        for _ in range(2):
            assert len(LogSegment(path).columns(["offset"], committed=True)) == 3


@pytest.mark.parametrize("errors", ["raise", "keep"])
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("offset", [-5, 0, 2, 9, 1 << 40])
def test_a_marker_with_a_wrong_offset_ends_its_own_transaction(
    offset: int, commit: bool, errors: str, tmp_path: Path
) -> None:
    """No checksum covers base offsets: where a marker is in the file counts."""
    first = in_transaction(0, 7)
    content = bytearray(b"".join([
        first, marker(3, 7, commit), in_transaction(4, 7), marker(7, 7, True), in_transaction(8, 7),
        marker(11, 7, True)]))
    content[len(first) : len(first) + 8] = pack(">q", offset)
    path = write_segment(tmp_path / "t-0", 0, [first], indexes=False)
    path.write_bytes(content)
    wanted = [*(range(3) if commit else ()), *range(4, 7), *range(8, 11)]
    segment = LogSegment(path)
    records = segment.read(committed=True, errors=errors)
    assert offsets(one for one in records if isinstance(one, Record)) == wanted
    columns = segment.columns(("offset",), committed=True, errors=errors)
    assert pa.table(columns)["offset"].to_pylist() == wanted
    pieces = segment.column_batches(("offset",), committed=True, errors=errors)
    assert [one for piece in pieces for one in pa.table(piece)["offset"].to_pylist()] == wanted


@pytest.mark.parametrize("offset", [0, 3, 1 << 40])
def test_a_batch_with_a_wrong_offset_does_not_hide_those_of_other_transactions(offset: int, tmp_path: Path) -> None:
    before = [in_transaction(1, 7), marker(4, 7, True)]
    aborted = [in_transaction(5, 7), in_transaction(8, 7), in_transaction(11, 7), marker(14, 7, False)]
    path = write_segment(tmp_path / "t-0", 0, [
        *before, *aborted, in_transaction(15, 7), marker(18, 7, True)], indexes=False)
    content, position = bytearray(path.read_bytes()), sum(map(len, [*before, *aborted[:1]]))
    content[position : position + 8] = pack(">q", offset)
    path.write_bytes(content)
    segment, wanted = LogSegment(path), [*range(1, 4), *range(15, 18)]
    assert offsets(segment.read(committed=True)) == wanted
    assert pa.table(segment.columns(("offset",), committed=True))["offset"].to_pylist() == wanted


def read_each_way(folder: Path, errors: str, **span: int) -> list[list[int]]:
    """The offsets of the committed records, by read, columns, and column_batches in small and in large pieces."""
    segment = LogDirectory(folder)["t", 0].segments[0]
    records = segment.read(committed=True, errors=errors, **span)
    columns = segment.columns(("offset",), committed=True, errors=errors, **span)
    pieces = [
        segment.column_batches(("offset",), committed=True, errors=errors, **span, rows=rows) for rows in (1, 1000)]
    return [
        offsets(one for one in records if isinstance(one, Record)), pa.table(columns)["offset"].to_pylist(),
        *([one for piece in given for one in pa.table(piece)["offset"].to_pylist()] for given in pieces)]


AHEAD = pytest.mark.parametrize("ahead", [0, committed.AHEAD_BYTES])


@AHEAD
@pytest.mark.parametrize("errors", ["raise", "keep"])
@pytest.mark.parametrize("wrong", [{3: 12, 6: 13}, {3: 1000, 6: 1100}, {4: 0}, {4: 12}, {2: 12, 3: 12, 8: 14}])
def test_wrong_offsets_in_an_aborted_transaction_hide_no_others(
    wrong: dict[int, int], errors: str, ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they are: also those of batches of other transactions of the producer."""
    monkeypatch.setattr(committed, "AHEAD_BYTES", ahead)
    parts = [
        in_transaction(0, 7, 1), marker(1, 7, True), *(in_transaction(base, 7, 1) for base in range(2, 9)),
        marker(9, 7, False), *(in_transaction(base, 7, 1) for base in range(10, 15)), marker(15, 7, True)]
    path = write_segment(tmp_path / "t-0", 0, parts, indexes=False)
    for number, offset in wrong.items():
        parts[number] = pack(">q", offset) + parts[number][8:]
    path.write_bytes(b"".join(parts))
    assert read_each_way(tmp_path, errors) == [[0, *range(10, 15)]] * 4


@AHEAD
def test_an_aborted_batch_after_one_with_a_wrong_length_is_left_out(
    ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The length goes to the end of the aborted one: only who looks at the checksum finds it."""
    monkeypatch.setattr(committed, "AHEAD_BYTES", ahead)
    parts = [batch(0), in_transaction(3, 7), batch(6), batch(9), marker(12, 7, False), batch(13), batch(16)]
    path = write_segment(tmp_path / "t-0", 0, parts, indexes=False)
    data = bytearray(path.read_bytes())
    data[8:12] = pack(">i", len(parts[0]) + len(parts[1]) - 12)
    path.write_bytes(data)
    assert read_each_way(tmp_path, "keep") == [[*range(6, 12), *range(13, 19)]] * 4


@AHEAD
@pytest.mark.parametrize("rolled", [True, False])
def test_the_entry_of_the_next_transaction_tells_where_it_begins(
    rolled: bool, ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one before it, whose marker is damaged, is in no entry: it was committed. Without damage markers tell."""
    monkeypatch.setattr(committed, "AHEAD_BYTES", ahead)
    folder, bad = tmp_path / "t-0", bytearray(marker(3, 1, True))
    bad[-1] ^= 1
    path = write_segment(folder, 0, [batch(0)])
    first, second, last = in_transaction(0, 1), in_transaction(7, 1), marker(10, 1, False)
    path.write_bytes(first + bad + batch(4) + second + (b"" if rolled else last))
    ends = write_segment(folder, 10, [last, batch(11)]) if rolled else path
    aborted_index(ends, [(1, 7, 10, 11)])
    assert read_each_way(tmp_path, "keep") == [[*range(3), *range(4, 7)]] * 4
    path.write_bytes(first + in_transaction(3, 1, 1) + batch(4) + second + (b"" if rolled else last))
    assert read_each_way(tmp_path, "keep") == [[*range(4, 7)]] * 4


@AHEAD
def test_the_entry_of_the_next_transaction_tells_nothing_of_one_whose_index_is_damaged(
    ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one before it may have been aborted."""
    monkeypatch.setattr(committed, "AHEAD_BYTES", ahead)
    folder, bad = tmp_path / "t-0", bytearray(marker(3, 1, False))
    bad[-1] ^= 1
    path = write_segment(folder, 0, [batch(0)])
    path.write_bytes(in_transaction(0, 1) + bad + batch(4) + in_transaction(7, 1))
    path.with_suffix(".txnindex").write_bytes(b"\0" * 20)
    aborted_index(write_segment(folder, 10, [marker(10, 1, False), batch(11)]), [(1, 7, 10, 11)])
    assert read_each_way(tmp_path, "keep") == [[*range(4, 7)]] * 4


@AHEAD
@pytest.mark.parametrize("errors", ["raise", "keep"])
@pytest.mark.parametrize("at, damage", [(8, pack(">i", 1)), (16, b"\x09"), (60, b"?????")])
def test_damage_after_a_range_hides_no_transaction_that_ends_after_it(
    at: int, damage: bytes, errors: str, ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where errors are raised, and nothing is searched for after the damage."""
    monkeypatch.setattr(committed, "AHEAD_BYTES", ahead)
    parts = [batch(0), in_transaction(3, 7), batch(6), batch(9), batch(12), marker(15, 7, True), batch(16)]
    parts[4] = parts[4][:at] + damage + parts[4][at + len(damage) :]
    path = write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    path.write_bytes(b"".join(parts))
    for end in (6, 10, 12):
        assert read_each_way(tmp_path, errors, end_offset=end) == [[*range(end)]] * 4


@AHEAD
@pytest.mark.parametrize("damage", ["", "checksum"])
@pytest.mark.parametrize("commit", [False, True])
def test_markers_past_the_end_of_a_range_count_though_it_goes_on_after_them(
    commit: bool, damage: str, ahead: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a batch with a wrong base offset follows, in another window."""
    monkeypatch.setattr(committed, "AHEAD_BYTES", ahead)
    wrong = pack(">q", 1) + in_transaction(4, 7, 1)[8:]
    bad = batch(3, 1)[:-1] + b"?" if damage else b""
    path = write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    path.write_bytes(b"".join([
        batch(0, 1), in_transaction(1, 7, 1), marker(2, 7, commit), bad, wrong, marker(5, 7, not commit)]))
    pieces = LogSegment(path).column_batches(
        ("offset", "value"), rows=1, committed=True, end_offset=2, errors="keep" if damage else "raise")
    found = [value.rstrip(b".") for piece in pieces for value in pa.table(piece)["value"].to_pylist()]
    assert found == [b"v0", b"v1" if commit else b"v4"]


@pytest.mark.parametrize("by", ["read", "column_batches"])
def test_what_waits_is_freed_with_the_iterator(by: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: up to 16 MiB, and the file, would stay until the garbage collector looks at all that there is."""
    made: list[weakref.ref[committed.CommittedWindows]] = []

    class Noted(committed.CommittedWindows):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(weakref.ref(self))

    monkeypatch.setattr(segment_reader, "CommittedWindows", Noted)
    segment = LogDirectory(folder)["t", 0].segments[0]
    gc.disable()
    try:
        records = iter(getattr(segment, by)(committed=True))
        next(records)
        assert made[-1]() is not None
        del records
        assert made[-1]() is None
    finally:
        gc.enable()


def test_runs_that_are_past_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many transactions a segment has, those of the windows that wait are in memory."""
    monkeypatch.setattr(transactions, "MOST_ABORTED", 1500)
    for size in ("_PIECE_BYTES", "OBJECT_BYTES", "WINDOW_BYTES"):
        monkeypatch.setattr(f"kwire.storage.reading.segment_reader.{size}", 10_000)
    write_segment(tmp_path / "t-0", 0, [
        part for at in range(0, 9000, 3)
        for part in (in_transaction(at, 7, 1), marker(at + 1, 7, False), batch(at + 2, 1))], indexes=False)
    assert read_each_way(tmp_path, "keep") == [[*range(2, 9000, 3)]] * 4


def test_batches_out_of_order_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is noted alone, unlike those of a transaction whose offsets ascend."""
    monkeypatch.setattr(transactions, "MOST_ABORTED", 20)
    made = [in_transaction(base, 7, 1) for base in (1000, 1001, *[5] * 30)]
    path = write_segment(tmp_path / "t-0", 0, made[:22], indexes=False)
    assert LogSegment(path).transactions().open == [(7, 1000)]
    path.write_bytes(b"".join(made))
    with pytest.raises(LimitError, match="too many aborted transactions in one segment"):
        LogSegment(path).transactions()
