"""A committed read of a log that a broker writes to: each transaction is given whole, or not at all."""

from __future__ import annotations

import json
import os
import pickle
import random
from collections.abc import Callable
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwire
from kwire.cli import main
from kwire.storage import LogDirectory, LogSegment, discover
from kwire.storage.batches.scanner import Scanner
from kwire.storage.isolation.planned_log import LogEnd
from kwire.storage.places import filesystem
from kwire.storage.tables.parquet import write_parquet
from tests.storage.making import aborted_index, batch, in_transaction, marker, write_segment

pytestmark = pytest.mark.quick

SEGMENTS = {
    0: [batch(0), in_transaction(3, 1)],
    10: [batch(10), in_transaction(13, 1)],
    20: [in_transaction(20, 1), batch(23)],
}
ALONE = [*range(3), *range(10, 13), *range(23, 26)]
WHOLE = sorted([*ALONE, *range(3, 6), *range(13, 16), *range(20, 23)])


def written(folder: Path, zeros: int) -> Callable[[bool | None], None]:
    """Write the log; return what ends its transaction. zeros: after the last batch, as in a preallocated segment.

    None: it does not end, but the zeros are cut off, as by a broker that goes on in another segment.
    """
    for base, parts in SEGMENTS.items():
        path = write_segment(folder / "t-0", base, parts, indexes=False)
    data = path.read_bytes()
    path.write_bytes(data + bytes(zeros))

    def end(commit: bool | None) -> None:
        if commit is None:
            os.truncate(path, len(data))
            return
        more = marker(26, 1, commit)
        with path.open("r+b") as file:
            file.seek(len(data))
            file.write(more)
        if not commit:
            aborted_index(path, [(1, 3, 26, 3)])

    return end


def of_columns(columns: Any) -> list[int]:
    return pa.table(columns)["offset"].to_pylist()


def of_pieces(pieces: Any) -> list[int]:
    return [offset for piece in pieces for offset in of_columns(piece)]


def of_parquet(folder: Path, **options: Any) -> list[int]:
    place = folder / "out"
    write_parquet(LogDirectory(folder).segments, place, committed=True, **options)
    return sorted(pq.read_table(place, partitioning=None)["offset"].to_pylist())


def of_command(folder: Path, *words: str) -> list[int]:
    shown = TextIOWrapper(BytesIO(), "utf-8")
    with redirect_stdout(shown):
        assert main(["log", "show", str(folder / "t-0"), "--committed", "--json", *words]) == 0
    return [json.loads(line)["offset"] for line in shown.buffer.getvalue().splitlines()]


WAYS: dict[str, Callable[[Path], list[int]]] = {
    "read": lambda folder: [one.offset for one in LogDirectory(folder).read(committed=True)],
    "columns": lambda folder: of_columns(LogDirectory(folder).columns(("offset",), committed=True)),
    "column_batches": lambda folder: of_pieces(LogDirectory(folder).column_batches(
        ("offset",), committed=True, rows=1)),
    "write_parquet": of_parquet,
    "dataset": lambda folder: of_parquet(folder, partition_by=["topic"]),
    "log show": of_command,
    "log show --tail": lambda folder: of_command(folder, "--tail", "1000"),
}


@pytest.mark.parametrize(("zeros", "commit"), [(0, True), (5000, True), (5000, None)])
@pytest.mark.parametrize("way", WAYS)
def test_a_transaction_that_ends_meanwhile_is_given_whole_or_not(
    way: str, zeros: int, commit: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends as the read looks into a file for the first time, the second time, and so on."""
    begin, whole = Scanner.__init__, 0
    looks, at, end = 0, 0, written(tmp_path / "0", zeros)

    def counting(*given: Any, **options: Any) -> None:
        nonlocal looks
        looks += 1
        if looks == at:
            end(commit)
        begin(*given, **options)

    monkeypatch.setattr(Scanner, "__init__", counting)
    while looks >= at:
        looks, at, folder = 0, at + 1, tmp_path / str(at + 1)
        end = written(folder, zeros)
        found = WAYS[way](folder)
        assert found == ALONE or (commit and found == WHOLE), at
        whole += found == WHOLE
    assert at > 4 and whole < at


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("zeros", [0, 5000])
def test_each_read_of_the_same_object_sees_the_log_as_it_is(zeros: int, commit: bool, tmp_path: Path) -> None:
    end = written(tmp_path, zeros)
    log = LogDirectory(tmp_path)
    alone = [LogSegment(path) for path in sorted((tmp_path / "t-0").glob("*.log"))]
    for wanted in (ALONE, WHOLE if commit else ALONE):
        for _ in range(2):
            assert [one.offset for one in log.read(committed=True)] == wanted
            assert of_columns(log.columns(("offset",), committed=True)) == wanted
            assert of_pieces(log.column_batches(("offset",), committed=True)) == wanted
            assert [one.offset for segment in alone for one in segment.read(committed=True)] == wanted
            assert of_pieces(piece for segment in alone for piece in segment.column_batches(
                ("offset",), committed=True)) == wanted
            open_ones = [bool(segment.transactions().open) for segment in log.segments]
            assert open_ones == [wanted == ALONE and not any(segment.transactions().aborted for segment in alone)] * 3
        end(commit)


def test_a_lone_segment_sees_the_segments_that_were_added(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, SEGMENTS[0], indexes=False)
    segment = LogSegment(path)
    assert [one.offset for one in segment.read(committed=True)] == [0, 1, 2]
    write_segment(tmp_path / "t-0", 6, [marker(6, 1, True)], indexes=False)
    assert [one.offset for one in segment.read(committed=True)] == [*range(6)]
    assert of_pieces(segment.column_batches(("offset",), committed=True)) == [*range(6)]


def test_a_plan_of_another_partition_is_refused(tmp_path: Path) -> None:
    path, other = (write_segment(tmp_path / name, 0, SEGMENTS[0], indexes=False) for name in ("t-0", "t-1"))
    segment, plan = LogSegment(path), LogSegment(other).plan()
    for read in (segment.read, segment.column_batches):
        with pytest.raises(ValueError, match=r"t-0/.* is not a segment of the plan's partition"):
            list(read(committed=True, transactions=plan))  # type: ignore[operator]
    assert [one.offset for one in segment.read(committed=True, transactions=LogSegment(path).plan())] == [0, 1, 2]


def test_what_was_read_and_its_plan_pickle(tmp_path: Path) -> None:
    """For reads of the segments of a partition in other processes."""
    end = written(tmp_path, 0)
    log = LogDirectory(tmp_path)
    assert [one.offset for one in log.read(committed=True)] == ALONE
    segments, plan = pickle.loads(pickle.dumps((log.segments, log.segments[0].plan())))
    lone = LogSegment(log.segments[0].path)
    assert len(list(lone.read(committed=True))) == len(list(pickle.loads(pickle.dumps(lone)).read(committed=True)))
    end(True)
    assert [one.offset for one in pickle.loads(pickle.dumps(log)).read(committed=True)] == WHOLE
    found = [one.offset for segment in segments for one in segment.read(committed=True, transactions=plan)]
    assert found == ALONE


def test_a_segment_of_a_store_pickles_after_a_committed_read(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    path = write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    fsspec.filesystem("memory").put(str(path), f"/pickled/t-0/{path.name}")
    segment = LogSegment(f"memory://pickled/t-0/{path.name}")
    assert of_pieces(segment.column_batches(("offset",), committed=True)) == [0, 1, 2]
    assert of_pieces(pickle.loads(pickle.dumps(segment)).column_batches(("offset",), committed=True)) == [0, 1, 2]


@pytest.mark.parametrize("options", [{"committed": True}, {"states": {}}])
def test_a_folder_is_listed_once_for_all_segments(
    options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        write_segment(tmp_path / "t-0", 3 * number, [in_transaction(3 * number, 1)], indexes=False)
    listed, entries = [], filesystem.LocalFolder.entries

    def counting(folder: Any, path: str) -> Any:
        listed.append(path)
        return entries(folder, path)

    [partition] = LogDirectory(tmp_path)
    monkeypatch.setattr(filesystem.LocalFolder, "entries", counting)
    of_pieces(partition.column_batches(("offset",), **options))
    for segment in partition:
        of_pieces(segment.column_batches(("offset",), **options))
    assert len(listed) == 1


def test_no_folder_is_listed_for_segments_without_transactions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write_segment(tmp_path / "t-0", 3 * number, [batch(3 * number)], indexes=False) for number in range(20)]
    monkeypatch.setattr(filesystem.LocalFolder, "entries", lambda folder, path: pytest.fail(f"{path} was listed"))
    for path in paths:
        assert len(of_pieces(LogSegment(path).column_batches(("offset",), committed=True))) == 3
        assert len(list(LogSegment(path).read(committed=True))) == 3


def test_a_preallocated_segment_is_not_read_again_while_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = written(tmp_path, 5000)
    [partition] = LogDirectory(tmp_path)
    plan, begin, looks = partition.segments[0].plan(), Scanner.__init__, 0

    def counting(*given: Any, **options: Any) -> None:
        nonlocal looks
        looks += 1
        begin(*given, **options)

    monkeypatch.setattr(Scanner, "__init__", counting)
    assert partition.segments[1].plan() is plan and looks == 0
    end(True)
    assert partition.segments[0].plan() is not plan and looks == 1


def test_a_torn_batch_that_ends_in_zeros_is_no_preallocated_segment(tmp_path: Path) -> None:
    torn = kwire.build_batch([(1, None, bytes(4000))], base_offset=3)[:-100]
    path = write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    path.write_bytes(batch(0) + torn)
    pieces = LogSegment(path).column_batches(("offset",), committed=True, strict_tail=True)
    with pytest.raises(kwire.CorruptBatchError, match="partial last batch"):
        of_pieces(pieces)
    pieces = LogSegment(path).column_batches(("offset",), committed=True)
    assert of_pieces(pieces) == [0, 1, 2] and pieces.find_torn_tail() == (len(batch(0)), len(torn))


def test_a_plan_that_is_given_counts(tmp_path: Path) -> None:
    end = written(tmp_path, 0)
    segments = LogDirectory(tmp_path).segments
    plan = segments[0].plan()
    end(True)
    assert of_parquet(tmp_path) == WHOLE
    write_parquet(segments, tmp_path / "planned", committed=True, transactions=plan)
    assert pq.read_table(tmp_path / "planned")["offset"].to_pylist() == ALONE


@pytest.mark.parametrize("zeros", [0, 5000])
@pytest.mark.parametrize("way", ["read", "column_batches"])
def test_a_lone_segment_that_ends_meanwhile(
    way: str, zeros: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More of the transaction is written to it, and its end to the next one: it is given whole or not at all."""
    begin, looks, at = Scanner.__init__, 0, 0
    path = tmp_path / "none"

    def counting(*given: Any, **options: Any) -> None:
        nonlocal looks
        looks += 1
        if looks == at:
            path.write_bytes(batch(0) + in_transaction(3, 1) + in_transaction(6, 1))
            write_segment(path.parent, 9, [marker(9, 1, True)], indexes=False)
        begin(*given, **options)

    monkeypatch.setattr(Scanner, "__init__", counting)
    while looks >= at:
        at += 1
        path = write_segment(tmp_path / str(at) / "t-0", 0, [batch(0), in_transaction(3, 1)], indexes=False)
        path.write_bytes(path.read_bytes() + bytes(zeros))
        segment, looks = LogSegment(path), 0
        found = [one.offset for one in segment.read(committed=True)] if way == "read" else of_pieces(
            segment.column_batches(("offset",), committed=True))
        assert found in ([0, 1, 2], [*range(9)]), at
    assert at > 1


def test_each_plan_has_a_number_of_its_own(tmp_path: Path) -> None:
    """Also where a program seeds random before each read; and its numbers stay what they were."""
    files = discover(write_segment(tmp_path / "t-0", 0, [batch(0)]))
    ends, numbers = set(), set()
    for _ in range(2):
        random.seed(7)
        ends.add(LogEnd.of(files))
        numbers.add(random.random())
    assert len(ends) == 2 and len(numbers) == 1


@pytest.mark.parametrize("segments", [1, 40])
@pytest.mark.parametrize("way", ["read", "columns", "column_batches"])
def test_a_segment_that_is_compacted_meanwhile(
    way: str, segments: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the cleaned file says of transactions is not taken for that of the file that is read."""
    cleaned = {}
    for base in range(0, 10 * segments, 10):
        path = write_segment(
            tmp_path / "t-0", base, [in_transaction(base, 7), marker(base + 3, 7, False), batch(base + 4)],
            indexes=False)
        cleaned[str(path)] = path.with_suffix(".cleaned")
        cleaned[str(path)].write_bytes(batch(base + 4))

    def clean(inner: Any, segment: LogSegment, *arguments: Any) -> Any:
        if (other := cleaned.pop(segment.path, None)) is not None:
            os.replace(other, segment.path)
        return inner(segment, *arguments)

    for name in ("transactions", "planned_log"):
        inner = getattr(LogSegment, name)
        monkeypatch.setattr(LogSegment, name, lambda *arguments, inner=inner: clean(inner, *arguments))
    partition = LogDirectory(tmp_path)["t", 0]
    if way == "read":
        found = [record.offset for record in partition.read(committed=True)]
    elif way == "columns":
        found = pa.table(partition.columns(("offset",), committed=True))["offset"].to_pylist()
    else:
        pieces = partition.column_batches(("offset",), committed=True)
        found = [offset for piece in pieces for offset in pa.table(piece)["offset"].to_pylist()]
    assert found == [base + at for base in range(0, 10 * segments, 10) for at in (4, 5, 6)]
    assert not cleaned
