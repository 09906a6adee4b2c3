"""readStream.format("kwire"): growing and rolling segments, restarts, limits, deletions."""

from __future__ import annotations

import gzip
import json
import struct
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import kwire
from kwire.errors import KwireError
from kwire.spark import stream
from kwire.spark.options import parse
from kwire.spark.schema import source_schema
from kwire.spark.stream import SegmentStreamReader, fair_shares
from kwire.spark.stream_offsets import StreamOffsets
from kwire.storage.reading.log_follower import LogFollower, LogOffset
from tests.reads import Reads
from tests.spark.logs import START, batch, damaged, marker, segment, transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZE = len(batch(0))


def filler(base: int) -> bytes:
    """A batch of ten records, 40 KiB."""
    return kwire.build_batch([(1, None, bytes(4096))] * 10, base_offset=base)


class Query:
    """The reader as Spark drives it: offsets through JSON, a new reader object after each restart."""

    def __init__(self, path: Path, **options: str) -> None:
        self.options = parse({"path": str(path), **options})
        self.at: Any = None
        self.restart()

    def restart(self) -> None:
        self.reader = SegmentStreamReader(self.options, source_schema(False, self.options.mode == "PERMISSIVE"))
        self.limit = self.reader.getDefaultReadLimit()

    def rows(self) -> list[Any]:
        start = self.reader.initialOffset() if self.at is None else self.at
        end = self.reader.latestOffset(start, self.limit)
        tasks = self.reader.partitions(start, end)
        if end == start:
            assert not tasks
        self.at = end
        return [row for task in tasks for part in self.reader.read(task) for row in part.to_pylist()]

    def offsets(self) -> list[int]:
        return [row["offset"] for row in self.rows()]


def append(path: Path, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


@pytest.mark.quick
@pytest.mark.parametrize("restart", [False, True])
def test_segments_grow_and_roll(tmp_path: Path, restart: bool) -> None:
    first = segment(tmp_path / "t-0", 0, batch(0))
    query = Query(tmp_path)
    seen = query.offsets()
    steps = [
        lambda: append(first, batch(3)),
        lambda: append(first, batch(6)[:50]),
        lambda: append(first, batch(6)[50:]),
        lambda: (append(first, batch(9)), segment(tmp_path / "t-0", 12, batch(12))),
        lambda: None,
        lambda: segment(tmp_path / "t-0", 15, batch(15)),
        lambda: segment(tmp_path / "t-0", 18),
        lambda: append(tmp_path / "t-0" / f"{18:020d}.log", batch(18)),
    ]
    counts = []
    for step in steps:
        step()
        if restart:
            query.restart()
        found = query.offsets()
        counts.append(len(found))
        seen += found
    assert seen == list(range(21))
    assert counts == [3, 0, 3, 6, 0, 3, 0, 3]


@pytest.mark.quick
def test_new_partitions_and_topics_appear(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, batch(0))
    query = Query(tmp_path)
    assert query.offsets() == [0, 1, 2]
    segment(tmp_path / "t-1", 0, batch(0, 1))
    segment(tmp_path / "u-0", 0, batch(0, 1))
    assert query.offsets() == [0, 0]
    assert query.offsets() == []


@pytest.mark.quick
def test_the_same_batch_again_after_a_crash(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0))
    query = Query(tmp_path)
    start = query.at or query.reader.initialOffset()
    end = query.reader.latestOffset(start)
    append(path, batch(3))
    segment(tmp_path / "t-0", 6, batch(6))
    query.restart()
    parts = [part for task in query.reader.partitions(start, end) for part in query.reader.read(task)]
    assert [row["offset"] for part in parts for row in part.to_pylist()] == [0, 1, 2]


@pytest.mark.quick
@pytest.mark.parametrize("committed", ["true", "false"])
def test_the_first_batch_again_after_the_logs_have_grown(tmp_path: Path, committed: str) -> None:
    """Spark keeps no start of the first micro-batch: it asks for the initial offset each time that it plans it."""
    path = segment(tmp_path / "t-0", 0, batch(0))
    options = {"startingOffsets": "latest", "readCommitted": committed}
    query = Query(tmp_path, **options)
    start = query.reader.initialOffset()
    append(path, batch(3))
    segment(tmp_path / "u-0", 0, batch(0, 2))
    end = query.reader.latestOffset(start, query.limit)
    append(path, batch(6))
    segment(tmp_path / "t-0", 9, batch(9))
    append(tmp_path / "u-0" / f"{0:020d}.log", batch(2))
    for reader in (query.reader, Query(tmp_path, **options).reader):
        parts = [part for task in reader.partitions(reader.initialOffset(), end) for part in reader.read(task)]
        assert [row["offset"] for part in parts for row in part.to_pylist()] == [3, 4, 5, 0, 1]
        assert reader.partitions(end, end) == []
    query.restart()
    query.at = end
    assert query.offsets() == [6, 7, 8, 9, 10, 11, 2, 3, 4]


@pytest.mark.quick
@pytest.mark.parametrize("committed", ["true", "false"])
def test_the_first_batch_again_where_nothing_came_after_it(tmp_path: Path, committed: str) -> None:
    """The initial offset that Spark asks for again is then the end of the micro-batch."""
    path = segment(tmp_path / "t-0", 0, batch(0))
    query = Query(tmp_path, startingOffsets="latest", readCommitted=committed)
    start = query.reader.initialOffset()
    append(path, batch(3))
    end = query.reader.latestOffset(start, query.limit)
    query.restart()
    tasks = query.reader.partitions(query.reader.initialOffset(), end)
    parts = [part for task in tasks for part in query.reader.read(task)]
    assert [row["offset"] for part in parts for row in part.to_pylist()] == [3, 4, 5]
    assert query.reader.latestOffset(end, query.limit) == end
    assert query.reader.partitions(end, end) == []


@pytest.mark.quick
def test_a_first_batch_without_rows_again_after_the_log_has_rolled(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, batch(0))
    segment(tmp_path / "t-0", 3, batch(3))
    options = {"startingOffsets": "latest", "readCommitted": "true"}
    query = Query(tmp_path, **options)
    start = query.reader.initialOffset()
    end = query.reader.latestOffset(start, query.limit)
    assert query.reader.latestOffset(end, query.limit) == end
    segment(tmp_path / "t-0", 6, batch(6))
    query.restart()
    assert query.reader.partitions(query.reader.initialOffset(), end) == []
    assert query.reader.latestOffset(end, query.limit) != end
    query.at = end
    assert query.offsets() == [6, 7, 8]


@pytest.mark.quick
def test_a_truncated_log_that_rolls_after_an_available_now_query_began(tmp_path: Path) -> None:
    for base in (0, 3, 6):
        segment(tmp_path / "t-0", base, batch(base))
    query = Query(tmp_path)
    assert query.offsets() == list(range(9))
    (tmp_path / "t-0" / f"{6:020d}.log").unlink()
    active = segment(tmp_path / "t-0", 3)
    query.restart()
    query.reader.prepareForTriggerAvailableNow()
    append(active, batch(3, 9, partition_leader_epoch=1))
    segment(tmp_path / "t-0", 12)
    with pytest.raises(kwire.KwireError, match="the log ends at offset 3; expected offset 9"):
        query.rows()


@pytest.mark.quick
def test_starting_offsets(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3))
    query = Query(tmp_path, startingOffsets="latest")
    assert query.offsets() == []
    append(path, batch(6))
    segment(tmp_path / "u-0", 0, batch(0, 1))  # a new partition is read from its beginning
    assert query.offsets() == [6, 7, 8, 0]
    assert Query(tmp_path, startingOffsets='{"t": {"0": 4}, "u": {"0": -1}}').offsets() == [4, 5, 6, 7, 8]


@pytest.mark.quick
def test_max_bytes_per_trigger(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, *(batch(n * 3) for n in range(10)))
    segment(tmp_path / "t-0", 30, batch(30))
    query = Query(tmp_path, maxBytesPerTrigger=str(3 * SIZE))
    counts = []
    while found := query.offsets():
        counts.append(len(found))
    assert sum(counts) == 33 and counts[:3] == [9, 9, 9]
    assert Query(tmp_path, maxBytesPerTrigger="1").offsets() == [0, 1, 2]


@pytest.mark.quick
def test_deleted_segments(tmp_path: Path) -> None:
    first = segment(tmp_path / "t-0", 0, batch(0))
    segment(tmp_path / "t-0", 3, batch(3))
    query = Query(tmp_path, maxBytesPerTrigger=str(SIZE))
    assert query.offsets() == [0, 1, 2]
    first.unlink()  # read to its end: nothing is lost
    assert query.offsets() == [3, 4, 5]
    (tmp_path / "t-0" / f"{3:020d}.log").unlink()
    segment(tmp_path / "t-0", 9, batch(9))
    lenient = Query(tmp_path, failOnDataLoss="false")
    lenient.at = query.at
    with pytest.raises(kwire.KwireError, match=r"t-0/0+3\.log was deleted.*offsets 6\.\.8 are lost.*failOnDataLoss"):
        query.offsets()
    with pytest.warns(RuntimeWarning, match=r"offsets 6\.\.8 are lost"):
        assert lenient.offsets() == [9, 10, 11]


@pytest.mark.quick
def test_the_cleaner_removes_what_was_read_last_before_an_empty_segment(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3), batch(6))
    query = Query(tmp_path)
    assert query.offsets() == list(range(9))
    path.write_bytes(batch(0))  # batches without an idempotent producer go whole
    active = segment(tmp_path / "t-0", 9)
    with pytest.warns(RuntimeWarning, match="rewritten by compaction"):
        assert query.offsets() == []
    append(active, batch(9))
    assert query.offsets() == [9, 10, 11]


@pytest.mark.quick
def test_a_topic_made_again_whose_segment_begins_at_the_offset_due(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 3, batch(3), batch(6))
    query = Query(tmp_path)
    assert query.offsets() == list(range(3, 9))
    (tmp_path / "t-0" / f"{3:020d}.log").unlink()
    segment(tmp_path / "t-0", 0, batch(0), batch(3, 6))
    segment(tmp_path / "t-0", 9, batch(9))
    with pytest.raises(kwire.KwireError, match="t-0 was deleted and made again: offset 8 is in another batch"):
        query.rows()


@pytest.mark.quick
def test_a_limit_does_not_hide_a_smaller_log(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3))
    other = segment(tmp_path / "t-1", 0, batch(0))
    query = Query(tmp_path, maxBytesPerTrigger="10k")
    assert query.offsets() == [*range(6), *range(3)]
    append(other, batch(3))
    path.write_bytes(batch(0, 2))
    with pytest.raises(kwire.KwireError, match="t-0 was deleted and made again: the log ends at offset 2"):
        query.rows()


@pytest.mark.quick
@pytest.mark.parametrize("fails", [True, False])
def test_a_segment_that_takes_in_later_ones_between_planning_and_reading(tmp_path: Path, fails: bool) -> None:
    """The cleaner merges segments: the task of the first one does not give records of those, nor of the next batch."""
    for base in (0, 5, 10):
        segment(tmp_path / "t-0", base, batch(base, 5))
    query = Query(tmp_path, failOnDataLoss=str(fails).lower())
    start = query.reader.initialOffset()
    query.at = query.reader.latestOffset(start, query.limit)
    tasks = query.reader.partitions(start, query.at)
    segment(tmp_path / "t-0", 0, batch(15, 5), batch(20, 5))
    segment(tmp_path / "t-0", 25, batch(25, 5))
    for base in (5, 10):
        (tmp_path / "t-0" / f"{base:020}.log").unlink()

    def read() -> list[int]:
        return [row["offset"] for task in tasks for part in query.reader.read(task) for row in part.to_pylist()]

    if fails:
        with pytest.raises(KwireError, match="compacted or written again"):
            read()
    else:
        assert read() == []
        assert query.offsets() == [*range(15, 30)]


@pytest.mark.parametrize("at", ["advance", "ranges"])
def test_a_segment_that_is_compacted_away_while_it_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """It was listed, and is not there when it is read: what is left of its records comes, and the query goes on."""
    segment(tmp_path / "t-0", 0, batch(0, 5))
    segment(tmp_path / "t-0", 5, batch(5, 5))
    segment(tmp_path / "t-0", 10, batch(10, 5))
    query, real, changed = Query(tmp_path, failOnDataLoss="false"), getattr(LogFollower, at), []

    def changing(self: LogFollower, *arguments: Any, **options: Any) -> Any:
        if not changed:
            changed.append(at)
            segment(tmp_path / "t-0", 0, batch(0, 5), batch(5, 5), batch(10, 5))
            segment(tmp_path / "t-0", 15)
            for base in (5, 10):
                (tmp_path / "t-0" / f"{base:020}.log").unlink()
        return real(self, *arguments, **options)

    monkeypatch.setattr(LogFollower, at, changing)
    read = [offset for _ in range(3) for offset in query.offsets()]
    assert changed and sorted(read) == [*range(15)]


def test_a_truncated_segment_is_reported(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3))
    query = Query(tmp_path)
    query.offsets()
    path.write_bytes(batch(0))
    with pytest.raises(kwire.KwireError, match=f"was truncated to {SIZE} bytes after {2 * SIZE} had been read"):
        query.offsets()


@pytest.mark.quick
def test_a_torn_segment_holds_its_partition(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3)[:-9])
    segment(tmp_path / "t-0", 6, batch(6))
    query = Query(tmp_path)
    with pytest.warns(RuntimeWarning, match=f"torn batch at byte {SIZE} .*waits"):
        assert query.offsets() == [0, 1, 2]
    append(path, batch(3)[-9:])
    assert query.offsets() == [3, 4, 5, 6, 7, 8]


@pytest.mark.quick
def test_committed_waits_for_open_transactions(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), transaction(3, 1), batch(5, 1))
    query = Query(tmp_path, readCommitted="true")
    assert query.offsets() == [0, 1, 2]
    append(path, transaction(6, 2) + marker(8, 2, False))
    assert query.offsets() == []
    segment(tmp_path / "t-0", 9, marker(9, 1, True), batch(10, 1))
    query.restart()
    assert query.offsets() == [3, 4, 5, 10]


@pytest.mark.quick
def test_damage_in_a_stream(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), damaged(batch(3), 75), batch(6))
    with pytest.raises(kwire.CorruptBatchError, match=f"at {path}, offset 3, byte {SIZE}"):
        Query(tmp_path).offsets()
    assert Query(tmp_path, mode="DROPMALFORMED").offsets() == [0, 1, 2, 6, 7, 8]
    path.write_bytes(batch(0) + b"\x7fjunk" * 100)
    query = Query(tmp_path, mode="PERMISSIVE")
    assert query.offsets() == [0, 1, 2]
    append(path, batch(3))
    found = query.rows()
    assert sum(row["_corrupt_record"] is not None for row in found) == 1
    assert sorted(row["offset"] for row in found if row["_corrupt_record"] is None) == [3, 4, 5]
    path.write_bytes(batch(0) + b"\x7fjunk" * 100)
    with pytest.raises(kwire.CorruptBatchError, match=f"byte {SIZE}"):
        Query(tmp_path).offsets()


@pytest.mark.quick
def test_a_limit_is_shared_by_turns(tmp_path: Path) -> None:
    for partition in range(50):
        segment(tmp_path / f"t-{partition}", 0, *(batch(base) for base in range(0, 9, 3)))
    query = Query(tmp_path, maxBytesPerTrigger="1000")
    counts: dict[int, list[int]] = {partition: [] for partition in range(50)}
    sizes = []
    while rows := query.rows():
        sizes.append(len(rows) // 3 * SIZE)
        for partition, read in counts.items():
            read.append(sum(row["partition"] == partition for row in rows))
    assert all(sum(read) == 9 for read in counts.values())
    assert all(1000 <= size < 1000 + SIZE for size in sizes[:-1]), sizes
    firsts = [next(number for number, read in enumerate(counts[partition]) if read) for partition in range(50)]
    assert max(firsts) <= 50 * SIZE // 1000 + 1, "each partition has a turn before one has its second"


@pytest.mark.quick
def test_shares_are_fair() -> None:
    small, middle, large = ("t", "0"), ("t", "1"), ("t", "2")
    assert fair_shares({large: 5000, small: 10, middle: 400}, 1000) == {small: 10, middle: 400, large: 590}
    assert fair_shares({large: 5000, small: 10, middle: 4000}, 1000) == {small: 10, middle: 495, large: 495}
    assert fair_shares({}, 1000) == {}


@pytest.mark.quick
def test_one_batch_larger_than_the_limit_does_not_starve_others(tmp_path: Path) -> None:
    segment(tmp_path / "a-0", 0, *(batch(base, 100) for base in range(0, 1000, 100)))
    for topic in "bcd":
        segment(tmp_path / f"{topic}-0", 0, *(batch(base) for base in range(0, 9, 3)))
    query = Query(tmp_path, maxBytesPerTrigger="100")
    seen = []
    for _ in range(8):
        seen.append({row["topic"] for row in query.rows()})
    assert set().union(*seen[:4]) == set("abcd") and set().union(*seen[4:8]) == set("abcd"), seen


@pytest.mark.quick
def test_a_hanging_transaction_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = time.monotonic()
    clock = SimpleNamespace(monotonic=lambda: begun, time=time.time)
    monkeypatch.setattr(stream, "time", clock)
    segment(tmp_path / "t-0", 0, batch(0), transaction(3, 77), batch(5, 1))
    query = Query(tmp_path, readCommitted="true")
    with pytest.warns(RuntimeWarning, match=r"t-0 waits for the transaction of producer 77, open since offset 3 "):
        assert query.offsets() == [0, 1, 2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert query.offsets() == []
        clock.monotonic = lambda: begun + 200
        assert query.offsets() == []
    clock.monotonic = lambda: begun + 400
    with pytest.warns(RuntimeWarning, match=r"producer 77, open since offset 3 \(waited 400 s so far\)"):
        assert query.offsets() == []


@pytest.mark.quick
def test_a_young_transaction_is_not_reported(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    now = int(time.time() * 1000)
    young = kwire.build_batch([(now, b"k", b"v")], base_offset=3, producer_id=7, producer_epoch=0, base_sequence=0,
                              transactional=True)
    path = segment(tmp_path / "t-0", 0, batch(0), young)
    query = Query(tmp_path, readCommitted="true")
    assert query.offsets() == [0, 1, 2] and query.offsets() == []
    append(path, marker(4, 7, True))
    assert query.offsets() == [3]
    assert not recwarn.list


@pytest.mark.quick
def test_offsets_are_small(tmp_path: Path) -> None:
    for partition in range(1000):
        segment(tmp_path / f"orders-{partition}", 0, batch(0))
    query = Query(tmp_path)
    query.rows()
    assert len(json.dumps(query.at)) < 60_000
    assert str(tmp_path) not in json.dumps(query.at)
    largest = [2**63 - 1, 2**63 - 1, 2**31 - 1, 2**31 - 1, 2**32 - 1, 2**32 - 1, 2**63 - 1, 2**63 - 1, 2**31, 2**32 - 1]
    places = StreamOffsets({("orders", str(partition)): LogOffset(*largest) for partition in range(1000)})
    assert len(json.dumps(places.to_json())) < 170_000


@pytest.mark.quick
def test_offsets_come_back_as_they_were_written() -> None:
    offsets = StreamOffsets({
        ("t", "10"): LogOffset(7, 0, 100, 50, 4_000_000_000, 1),
        ("t", "9"): LogOffset(5),
        ("dump", ""): LogOffset(3, "part.log", 9, 0, 0, 0, 2),
        ("u", "0"): LogOffset(5, log_start=5),
        ("v", "0"): LogOffset(7, 5, 100, 50, 4_000_000_000, 1, 0, 300),
        ("w", "0"): LogOffset(7, 5, 100, 50, 4_000_000_000, 1, 0, 300, 5),
        ("x", "0"): LogOffset(7, 5, 100, 50, 4_000_000_000, 1, 0, 300, 5, 6),
    })
    tree = json.loads(json.dumps(offsets.to_json()))
    assert all(StreamOffsets.from_json({**tree, "v": version}) == offsets for version in (2, 3, 4))
    assert tree["v"] == 4 and list(tree["topics"]["t"]) == ["9", "10"] and tree["topics"]["t"]["9"] == [5]
    with pytest.raises(kwire.KwireError, match="checkpoint has offsets of version 5, this version of kwire reads 4"):
        StreamOffsets.from_json({**tree, "v": 5})
    for wrong in ({"v": 4}, {"v": 4, "topics": {"t": {"0": ["x"]}}}, {"v": 4, "topics": {"t": {"0": []}}},
                  {"/logs/t-0": 5}, {"/logs/t-0": {"segment": "0.log"}}):
        with pytest.raises(kwire.KwireError, match="checkpoint"):
            StreamOffsets.from_json(wrong)


@pytest.mark.quick
def test_the_end_of_the_logs_is_reported(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, *(batch(base) for base in range(0, 30, 3)))
    segment(tmp_path / "t-1", 0, batch(0))
    query = Query(tmp_path)
    assert query.reader.reportLatestOffset() is None
    query.rows()
    assert query.reader.reportLatestOffset() == {"v": 4, "topics": {"t": {"0": [30], "1": [3]}}}
    limited = Query(tmp_path, maxBytesPerTrigger="1")
    assert len(limited.rows()) == 3
    assert limited.reader.reportLatestOffset() == {"v": 4, "topics": {"t": {"0": [30], "1": [3]}}}


@pytest.mark.quick
def test_a_partition_in_two_folders(tmp_path: Path) -> None:
    segment(tmp_path / "a" / "t-0", 0, batch(0))
    segment(tmp_path / "b" / "t-0", 0, batch(0))
    segment(tmp_path / "c" / "t-0", 3, batch(3))
    with pytest.raises(kwire.KwireError, match=r"t-0 is in two folders, .*/a/t-0 and .*/b/t-0"):
        Query(Path(f"{tmp_path}/a,{tmp_path}/b")).offsets()
    assert Query(Path(f"{tmp_path}/c,{tmp_path}/a")).offsets() == [0, 1, 2, 3, 4, 5]


@pytest.mark.quick
def test_a_folder_without_a_topic_is_named_by_the_option_or_itself(tmp_path: Path) -> None:
    path = segment(tmp_path / "dump", 0, batch(0))
    query = Query(tmp_path / "dump")
    query.rows()
    assert list(query.at["topics"]) == ["dump"] and list(query.at["topics"]["dump"]) == [""]
    labelled = Query(tmp_path / "dump", topic="orders", partition="4")
    labelled.rows()
    assert list(labelled.at["topics"]["orders"]) == ["4"]
    path.rename(tmp_path / "dump" / "part-1.log")
    named = Query(tmp_path / "dump")
    assert named.offsets() == [0, 1, 2]
    segment(tmp_path / "dump", 0, batch(3)).rename(tmp_path / "dump" / "part-2.log")
    named.restart()
    assert named.offsets() == [3, 4, 5] and named.offsets() == []


@pytest.mark.quick
def test_a_replayed_batch_has_the_same_bytes_or_fails(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3))
    query = Query(tmp_path)
    start = query.reader.initialOffset()
    end = query.reader.latestOffset(start)
    path.write_bytes(batch(0) + batch(3, codec="gzip"))
    with pytest.raises(kwire.KwireError, match=r"t-0: the records before offset 6 are not those .*failOnDataLoss"):
        query.reader.partitions(start, end)
    append(path, batch(6))
    lenient = Query(tmp_path, failOnDataLoss="false").reader
    with pytest.warns(RuntimeWarning, match="before offset 6"):
        parts = [part for task in lenient.partitions(start, end) for part in lenient.read(task)]
    assert [row["offset"] for part in parts for row in part.to_pylist()] == list(range(6))


@pytest.mark.quick
@pytest.mark.parametrize("gone", [3, 6])
def test_a_replayed_batch_lacks_a_segment_of_its_middle(tmp_path: Path, gone: int) -> None:
    sizes = {base: segment(tmp_path / "t-0", base, batch(base)).stat().st_size for base in (0, 3, 6, 9)}
    whole = sum(sizes.values())
    query = Query(tmp_path)
    start = query.reader.initialOffset()
    end = query.reader.latestOffset(start)
    (tmp_path / "t-0" / f"{gone:020d}.log").unlink()
    query.restart()
    with pytest.raises(kwire.KwireError, match=f"before offset 12 .* {whole} bytes .*, found {whole - sizes[gone]}"):
        query.reader.partitions(start, end)
    lenient = Query(tmp_path, failOnDataLoss="false").reader
    with pytest.warns(RuntimeWarning, match="before offset 12"):
        parts = [part for task in lenient.partitions(start, end) for part in lenient.read(task)]
    assert len({row["offset"] for part in parts for row in part.to_pylist()}) == 9


@pytest.mark.quick
@pytest.mark.parametrize("most", [None, str(SIZE)])
def test_damage_at_the_end_of_a_segment_is_no_gap(tmp_path: Path, most: str | None) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), b"\x7fjunk" * 100)
    segment(tmp_path / "t-0", 6, batch(6))
    query = Query(tmp_path, mode="DROPMALFORMED", **({} if most is None else {"maxBytesPerTrigger": most}))
    seen = []
    for _ in range(4):
        seen += query.offsets()
    assert seen == [0, 1, 2, 6, 7, 8]
    assert path.exists()


@pytest.mark.quick
def test_the_driver_reads_by_the_index(tmp_path: Path, reads: Reads) -> None:
    """Of 8 MiB the driver reads less than one: it looks for the end, or for the limit, from an index entry on."""
    size = len(filler(0))
    count = (8 << 20) // size
    path = segment(tmp_path / "t-0", 0, *(filler(10 * number) for number in range(count)))
    entries = [struct.pack(">ii", 10 * number + 9, number * size) for number in range(1, count)]
    path.with_suffix(".index").write_bytes(b"".join(entries))
    for most in (None, 4 << 20):
        reads.clear()
        query = Query(tmp_path, **({} if most is None else {"maxBytesPerTrigger": str(most)}))
        start = query.reader.initialOffset()
        end = query.reader.latestOffset(start, query.limit)
        due, _, position, *_ = end["topics"]["t"]["0"]
        assert due == position // size * 10 and (8 << 20 if most is None else most) - position < size
        assert reads.bytes < 1 << 20


@pytest.mark.quick
def test_a_compressed_segment_is_read_once(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0))
    (tmp_path / "t-0" / f"{0:020d}.log.gz").write_bytes(gzip.compress(path.read_bytes()))
    query = Query(tmp_path)
    assert query.offsets() == [0, 1, 2]
    path.unlink()
    (tmp_path / "t-0" / f"{3:020d}.log.gz").write_bytes(gzip.compress(batch(3)))
    query.restart()
    assert query.offsets() == [3, 4, 5] and query.offsets() == []


@pytest.mark.quick
@pytest.mark.parametrize("tree", [
    {"v": 4}, {"v": 4, "topics": {"a": {"0": []}}}, {"v": 4, "topics": {"a": {"0": [10**400]}}}, [1], 5, None, "v",
    {"v": 4, "topics": {"a": {"0": [1, [2]]}}}, {"v": 4, "topics": {"a": {"0": [1, 0, -7]}}},
    {"v": 4, "topics": {"a": {"0": [1.5]}}}, {"f": {"segment": "0.log", "position": "x", "offset": 1}},
    {"f": {"segment": "0.log", "position": 1, "offset": float("inf")}}, {"f": 5}, {"\x1b[2J": 5},
    {"v": 3, "topics": {"a": {"0": [3, 0, 72, 73, 5]}}},
])  # fmt: skip
def test_a_damaged_checkpoint_is_refused(tree: Any) -> None:
    with pytest.raises(kwire.KwireError, match="does not hold offsets of kwire") as caught:
        StreamOffsets.from_json(tree)
    assert str(caught.value).isprintable()


@pytest.mark.quick
def test_open_transactions_of_many_segments_are_looked_up_in_one_pass(tmp_path: Path, reads: Reads) -> None:
    """Each segment has a transaction that ends in the last one: the markers there are read once, not for each."""
    costs = []
    for count in (20, 40):
        folder = tmp_path / str(count) / "t-0"
        for number in range(count):
            segment(folder, 3 * number, transaction(3 * number, number), batch(3 * number + 2, 1))
        segment(folder, 3 * count, *(marker(3 * count + number, number, True) for number in range(count)))
        reads.clear()
        reader = Query(folder.parent, readCommitted="true").reader
        end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
        assert end["topics"]["t"]["0"][0] == 4 * count
        costs.append(len(reads))
    assert costs[1] < 2.5 * costs[0]


@pytest.mark.quick
def test_transactions_in_a_preallocated_segment(tmp_path: Path) -> None:
    """Its size stays while a broker writes: what was known of open transactions by sizes is not known any more."""
    query, path, data = Query(tmp_path, readCommitted="true"), tmp_path / "t-0" / f"{0:020d}.log", b""
    path.parent.mkdir()
    for more, offsets in (
        (batch(0), [0, 1, 2]), (transaction(3, 7), []), (batch(5, 1), []), (marker(6, 7, True), [3, 4, 5]),
        (transaction(7, 8), []), (marker(9, 8, False), []), (batch(10, 1), [10]),
    ):
        data += more
        path.write_bytes(data.ljust(4000, b"\0"))
        assert query.offsets() == offsets, len(data)


@pytest.mark.quick
def test_segments_that_were_deleted_are_forgotten(tmp_path: Path) -> None:
    query = Query(tmp_path, readCommitted="true")
    for number in range(5):
        path = segment(tmp_path / "t-0", 3 * number, batch(3 * number))
        packed = tmp_path / "t-1" / f"{3 * number:020d}.log.gz"
        packed.parent.mkdir(exist_ok=True)
        packed.write_bytes(gzip.compress(batch(3 * number)))
        assert len(query.offsets()) == 6
        assert set(query.reader.stable) == {str(path), str(packed)} and set(query.reader.unpacked) == {str(packed)}
        path.unlink()
        packed.unlink()


@pytest.mark.quick
def test_a_segment_that_was_truncated_after_the_plan(tmp_path: Path) -> None:
    """No range of it is read as if nothing were missing, and none that begins after its end is read for ever."""
    for fails in ("true", "false"):
        path = segment(tmp_path / fails / "t-0", 0, *(batch(3 * number) for number in range(8)))
        query = Query(path.parent, failOnDataLoss=fails, partitionBytes=str(SIZE), openCostBytes="0")
        start = query.reader.initialOffset()
        tasks = query.reader.partitions(start, query.reader.latestOffset(start, None))
        path.write_bytes(batch(0) + batch(3)[:-5])
        offsets, lost = [], 0
        for task in tasks:
            try:
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    offsets += [row["offset"] for part in query.reader.read(task) for row in part.to_pylist()]
                lost += any("was truncated to" in str(one.message) for one in caught)
            except kwire.KwireError as error:
                assert "was truncated to" in str(error)
                lost += 1
        assert lost == len(tasks) > 5  # a task whose bytes are there cannot know that they are those of the plan
        assert offsets == ([0, 1, 2] if fails == "false" else [])


def even(base: int, count: int = 3) -> bytes:
    """A batch whose size does not depend on its offsets."""
    return kwire.build_batch([(START, b"%08d" % n, None) for n in range(base, base + count)], base_offset=base)


@pytest.mark.quick
@pytest.mark.parametrize("limit", [None, "1"])
def test_a_segment_that_was_compacted_after_the_plan(tmp_path: Path, limit: str | None) -> None:
    """Batches of one size: other records are where those of the plan were."""
    for fails in ("true", "false"):
        path = segment(tmp_path / fails / "t-0", 0, *(even(3 * number) for number in range(12)))
        segment(path.parent, 36, even(36))
        query = Query(path.parent, failOnDataLoss=fails)
        start = query.reader.initialOffset()
        if limit:
            start = query.reader.latestOffset(start, stream.ReadMaxBytes(3 * len(even(0))))
        end = query.reader.latestOffset(start, stream.ReadMaxBytes(3 * len(even(0))))
        [task] = query.reader.partitions(start, end)
        path.write_bytes(b"".join(even(3 * number) for number in range(12) if number not in (0, 4)))
        read = query.reader.read(task)
        if fails == "true":
            with pytest.raises(kwire.KwireError, match="was compacted or written again since the micro-batch was plan"):
                list(read)
            continue
        with pytest.warns(RuntimeWarning, match="was compacted or written again"):
            offsets = [row["offset"] for part in read for row in part.to_pylist()]
        assert offsets == ([9, 10, 11, 15, 16, 17] if limit else [*range(3, 9)])
        query.at = end
        due = 18 if limit else 9
        assert query.offsets() == [offset for offset in range(due, 39) if offset not in (12, 13, 14)]


@pytest.mark.quick
def test_available_now_while_the_cleaner_merges_segments(tmp_path: Path) -> None:
    """A segment that holds others now is not cut at its old size, as if the log had been made again."""
    path = segment(tmp_path / "t-0", 0, batch(0))
    last = segment(tmp_path / "t-0", 3, batch(3))
    query = Query(tmp_path)
    query.reader.prepareForTriggerAvailableNow()
    assert query.offsets() == [*range(6)]
    path.write_bytes(batch(0) + batch(3))
    last.unlink()
    segment(tmp_path / "t-0", 6, batch(6))
    assert query.offsets() == []


@pytest.mark.quick
@pytest.mark.filterwarnings("ignore:.*compaction")
def test_available_now_while_the_cleaner_shortens_the_last_segment(tmp_path: Path) -> None:
    """It rolls, and the cleaner removes its end: the segment after it shows that this is not another log."""
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3), batch(6))
    query = Query(tmp_path)
    query.reader.prepareForTriggerAvailableNow()
    assert query.offsets() == [*range(9)]
    [old] = kwire.read_batches(batch(3))
    path.write_bytes(kwire.build_batch(list(old)[:1], base_offset=3, last_offset=5))
    segment(tmp_path / "t-0", 9, batch(9))
    segment(tmp_path / "u-0", 0, batch(0))
    assert query.offsets() == []
    query.restart()
    assert query.offsets() == [9, 10, 11, 0, 1, 2]


@pytest.mark.parametrize("limit", [None, "1"])
def test_available_now_while_a_segment_is_compressed(tmp_path: Path, limit: str | None) -> None:
    """An archive's job replaces closed segments by .gz, those that were read and those that are due."""
    for base in (0, 3, 6, 9):
        segment(tmp_path / "t-0", base, batch(base))
    query = Query(tmp_path, **({"maxBytesPerTrigger": limit} if limit else {}))
    query.reader.prepareForTriggerAvailableNow()
    read = query.offsets()
    for base in (0, 3, 6, 9):
        path = tmp_path / "t-0" / f"{base:020d}.log"
        path.with_suffix(".log.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    segment(tmp_path / "t-0", 12, batch(12))
    for _ in range(4):
        read += query.offsets()
    assert read == [*range(12)]


def run(spark: SparkSession, path: Path, state: Path, name: str, **options: str) -> list[int]:
    """A query over all data, from its checkpoint on; returns the offsets that all runs wrote."""
    stream = spark.readStream.format("kwire").options(**options).load(str(path))
    query = (
        stream.writeStream.format("parquet").option("path", str(state / name)).trigger(availableNow=True)
        .option("checkpointLocation", str(state / f"{name}.checkpoint")).start()
    )
    assert query.awaitTermination(180)
    return sorted(row.offset for row in spark.read.parquet(str(state / name)).select("offset").collect())


def test_a_query_restarts_from_its_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    first = segment(logs / "t-0", 0, batch(0))
    assert run(spark, logs, tmp_path, "out") == [0, 1, 2]
    append(first, batch(3) + batch(6)[:40])
    assert run(spark, logs, tmp_path, "out") == list(range(6))
    append(first, batch(6)[40:])
    segment(logs / "t-0", 9, batch(9))
    assert run(spark, logs, tmp_path, "out") == list(range(12))
    assert run(spark, logs, tmp_path, "out") == list(range(12))
    few = {"maxBytesPerTrigger": str(SIZE)} if find_spec("pyspark.sql.streaming.datasource") else {}  # since 4.2
    assert run(spark, logs, tmp_path, "few", **few) == list(range(12))


def test_a_running_query_follows_a_growing_segment(spark: SparkSession, tmp_path: Path) -> None:
    path = segment(tmp_path / "logs" / "t-0", 0, batch(0))
    stream = spark.readStream.format("kwire").load(str(tmp_path / "logs"))
    query = stream.writeStream.format("memory").queryName("growing").start()
    try:
        query.processAllAvailable()
        append(path, batch(3))
        segment(tmp_path / "logs" / "t-0", 6, batch(6))
        query.processAllAvailable()
        assert sorted(row.offset for row in spark.table("growing").collect()) == list(range(9))
    finally:
        query.stop()


def test_an_old_checkpoint_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """Offsets of kwire before version 2: the folder as it was spelled, a file's name and a byte."""
    logs, written = tmp_path / "logs", tmp_path / "out.checkpoint" / "offsets" / "0"
    first = segment(logs / "t-0", 0, batch(0))
    second = segment(logs / "u-0", 5, batch(5))
    assert run(spark, logs, tmp_path, "out") == [0, 1, 2, 5, 6, 7]
    head = written.read_text().splitlines()[:2]
    old = {
        f"{logs}/{folder}-0": {"segment": path.name, "position": path.stat().st_size, "offset": due}
        for folder, path, due in (("t", first, 3), ("u", second, 8))
    }
    written.write_text("\n".join([*head, json.dumps(old)]))
    written.with_name(".0.crc").unlink()
    append(first, batch(3))
    segment(logs / "u-0", 8, batch(8))
    assert run(spark, logs, tmp_path, "out") == sorted([*range(6), *range(5, 11)])
    assert json.loads(written.with_name("1").read_text().splitlines()[2])["v"] == 4


@pytest.mark.quick
@pytest.mark.parametrize("fails", [True, False])
def test_a_segment_that_is_written_again_while_a_task_reads_it(tmp_path: Path, fails: bool) -> None:
    """The rows are those of another leader then, though no batch of them is damaged: the query must not go on."""
    path = segment(tmp_path / "t-0", 0, *(batch(base) for base in range(0, 3000, 3)))
    query = Query(tmp_path, failOnDataLoss=str(fails).lower())
    start = query.reader.initialOffset()
    task: Any
    (task,) = query.reader.partitions(start, query.reader.latestOffset(start, query.limit))
    whole, length = path.read_bytes(), len(batch(0))

    def rewriting(part: Any) -> Any:
        path.write_bytes(whole[: 900 * length] + b"".join(batch(base, partition_leader_epoch=5)
                                                           for base in range(2700, 3000, 3)))
        yield from ()

    guarded = query.reader._guarded(task.ranges[0], rewriting)
    if fails:
        with pytest.raises(kwire.KwireError, match="written again since the micro-batch was planned"):
            list(guarded)
    else:
        with pytest.warns(RuntimeWarning, match="written again since the micro-batch was planned"):
            list(guarded)


@pytest.mark.quick
def test_a_damaged_segment_that_is_deleted_before_it_is_looked_at_again(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0))
    query = Query(tmp_path, failOnDataLoss="false")
    start = query.reader.initialOffset()
    task: Any
    (task,) = query.reader.partitions(start, query.reader.latestOffset(start, query.limit))

    def deleting(part: Any) -> Any:
        path.unlink()
        raise kwire.CorruptBatchError("x", position=0, offset=0)
        yield

    with pytest.warns(RuntimeWarning, match="was compacted or written again"):
        assert list(query.reader._guarded(task.ranges[0], deleting)) == []


@pytest.mark.quick
def test_available_now_ends_where_a_preallocated_segment_was_written(tmp_path: Path) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0), batch(3), bytes(100_000))
    query = Query(tmp_path)
    query.reader.prepareForTriggerAvailableNow()
    written = len(batch(0)) * 2
    for base in (6, 9):
        with path.open("r+b") as file:
            file.seek(written)
            file.write(batch(base))
        written += len(batch(base))
        assert query.offsets() == ([*range(6)] if base == 6 else [])
