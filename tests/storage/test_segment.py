"""Seeking and ranges of offsets and times: by valid indexes, and by a scan where they are missing or wrong."""

from __future__ import annotations

import inspect
import os
import resource
from pathlib import Path
from random import Random
from struct import pack

import pyarrow as pa
import pytest

import kwire
from kwire.storage import LogDirectory, LogSegment, Partition
from kwire.storage.batches import scanner
from tests.reads import Reads
from tests.storage.making import START, batch, offsets, write_segment

pytestmark = pytest.mark.quick


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_segment(tmp_path / "t-3", 100, [batch(100 + 3 * at) for at in range(20)])


def test_topic_partition_and_indexes(path: Path) -> None:
    segment = LogSegment(path)
    assert (segment.topic, segment.partition, segment.base_offset) == ("t", 3, 100)
    assert len(segment.index.entries) == 9
    assert len(segment.time_index.entries) == 9
    assert segment.transaction_index is None
    assert segment.verify() == []


@pytest.mark.parametrize("indexed", [True, False])
def test_seek(path: Path, indexed: bool) -> None:
    if not indexed:
        path.with_suffix(".index").unlink()
        path.with_suffix(".timeindex").unlink()
    segment = LogSegment(path)
    positions = {offset: one.position for one in segment.batches() for offset in offsets(one)}
    for offset in range(100, 160):
        assert segment.seek(offset) == positions[offset]
        assert segment.seek_time(START + offset * 10) == positions[offset]
    assert segment.seek(0) == 0
    assert segment.seek(160) == segment.size
    assert segment.seek_time(0) == 0
    assert segment.seek_time(START + 1600) == segment.size


def test_valid_indexes_are_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = LogSegment(path)
    begins = []
    inner = scanner.Scanner.__init__

    def noted(self: scanner.Scanner, source: object, start: int = 0, *args: object, **options: object) -> None:
        begins.append(start)
        inner(self, source, start, *args, **options)

    monkeypatch.setattr(scanner.Scanner, "__init__", noted)
    far = segment.seek(155)
    assert min(begins) > segment.size // 2
    begins.clear()
    assert segment.seek_time(START + 1550) == far
    assert min(begins) > segment.size // 2


@pytest.mark.parametrize(
    "span", [(None, None), (0, 105), (104, 131), (131, None), (None, 107), (159, 160), (160, None)]
)
def test_offset_ranges(path: Path, span: tuple[int | None, int | None]) -> None:
    start, end = span
    segment = LogSegment(path)
    expected = [one for one in range(100, 160) if (start is None or one >= start) and (end is None or one < end)]
    assert offsets(segment.read(start_offset=start, end_offset=end)) == expected
    columns = segment.columns(("offset",), start_offset=start, end_offset=end)
    assert pa.table(columns)["offset"].to_pylist() == expected
    pieces = segment.column_batches(("offset",), rows=4, start_offset=start, end_offset=end)
    assert [one for piece in pieces for one in pa.table(piece)["offset"].to_pylist()] == expected


def test_ranges_past_64_bits(path: Path) -> None:
    segment = LogSegment(path)
    for low in (-1, -(2**63) - 1, -(10**30)):
        for high in (2**63 - 1, 2**63, 10**30):
            for unit in ("offset", "timestamp"):
                for span, rows in (((low, high), 60), ((high, None), 0), ((None, low), 0)):
                    options = dict(zip((f"start_{unit}", f"end_{unit}"), span, strict=True))
                    assert len(offsets(segment.read(**options))) == rows
                    assert len(segment.columns(("offset",), **options)) == rows
    for start in (-1, -(2**63) - 1, -(10**30)):
        for read in (segment.headers, segment.batches, segment.transactions):
            with pytest.raises(kwire.DecodeError, match=f"invalid file position {start}"):
                list(read(start))  # type: ignore[operator,call-overload,unused-ignore]
    for start in (2**63, 10**30):
        assert list(segment.headers(start)) == list(segment.batches(start)) == []


def test_a_range_without_an_end_has_the_last_offset_and_time(tmp_path: Path) -> None:
    last = (1 << 63) - 1
    write_segment(tmp_path / "t-0", 0, [
        kwire.build_batch([(5, b"a", b"1"), (last, b"b", b"2")], codec=codec, base_offset=base)
        for base, codec in ((0, "none"), (2, "gzip"))])  # fmt: skip
    write_segment(tmp_path / "t-2", 0, [kwire.build_batch([(-last - 1, b"a", b"1"), (-last, b"b", b"2")])])
    at_the_end = kwire.build_batch([(5, b"a", b"1"), (5, b"b", b"2")], base_offset=last - 1)
    write_segment(tmp_path / "t-1", last - 1, [at_the_end])
    logs = LogDirectory(tmp_path)

    def found(partition: int, **span: int) -> list[int]:
        every = offsets(logs["t", partition].read(**span))
        assert logs["t", partition].columns(("offset",), **span)["offset"].to_numpy().tolist() == every
        assert [offset for piece in logs["t", partition].column_batches(("offset",), **span)
                for offset in piece["offset"].to_numpy().tolist()] == every
        return every

    assert found(0, start_timestamp=5) == found(0, start_offset=0) == found(0, end_timestamp=last + 1) == [0, 1, 2, 3]
    assert found(0, start_timestamp=last) == [1, 3]
    assert found(0, end_timestamp=last) == found(0, end_timestamp=6) == [0, 2]
    assert found(0, end_timestamp=-last - 1) == found(0, start_offset=last) == found(0, start_timestamp=last + 1) == []
    assert found(2, end_timestamp=-last - 1) == found(2, end_timestamp=-last - 2) == []
    assert found(2, end_timestamp=-last) == [0]
    assert found(2, start_timestamp=-last - 1) == found(2, start_timestamp=-last - 2) == [0, 1]
    assert found(1, start_timestamp=5) == found(1, end_offset=last + 1) == [last - 1, last]
    assert found(1, start_offset=last) == [last]
    assert found(1, end_offset=last) == [last - 1]


def test_more_segments_than_files_that_may_be_open(tmp_path: Path) -> None:
    count = 300
    for base in range(count):
        write_segment(tmp_path / "t-0", base, [batch(base, 1)], indexes=False)
    logs, limits = LogDirectory(tmp_path), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 60, limits[1]))
    try:
        assert logs.columns()["offset"].to_numpy().tolist() == list(range(count))
        assert logs.columns(start_offset=20, end_offset=280)["offset"].to_numpy().tolist() == list(range(20, 280))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("log_append", [False, True])
def test_time_ranges_take_each_record_by_its_own_time(tmp_path: Path, log_append: bool) -> None:
    # times that go up and down, inside of batches too
    times = [START + step for step in (500, 100, 900, 300, 0, 800, 200, 700)]
    options = {"timestamp_type": "log_append", "max_timestamp": START + 450} if log_append else {}
    batches = [
        kwire.build_batch([(times[2 * at], None, b"a"), (times[2 * at + 1], None, b"b")], base_offset=2 * at, **options)
        for at in range(4)
    ]
    segment = LogSegment(write_segment(tmp_path / "t-0", 0, batches, every=1))
    if log_append:
        times = [START + 450] * 8
    for start in (None, START, START + 300, START + 901):
        for end in (None, START, START + 450, START + 700):
            expected = [
                at for at, time in enumerate(times) if (start is None or time >= start) and (end is None or time < end)
            ]
            assert offsets(segment.read(start_timestamp=start, end_timestamp=end)) == expected
            columns = segment.columns(("offset",), start_timestamp=start, end_timestamp=end)
            assert pa.table(columns)["offset"].to_pylist() == expected


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["zeros", "shifted", "garbage", "cut", "empty", "foreign"])
def test_wrong_indexes_do_not_mislead(path: Path, kind: str, damage: str) -> None:
    index = path.with_suffix(kind)
    data = bytearray(index.read_bytes())
    width = 8 if kind == ".index" else 12
    if damage == "zeros":
        data = bytearray(len(data))
    elif damage == "shifted":
        for at in range(width - 1, len(data), width):
            data[at] ^= 0x15
    elif damage == "garbage":
        data = bytearray(range(1, 1 + len(data) % 250))
    elif damage == "cut":
        data = data[:-3]
    elif damage == "empty":
        data = bytearray()
    else:
        data = bytearray(pack(">ii", 1, 7) * 9 if kind == ".index" else pack(">qi", 5, 7) * 9)
    index.write_bytes(data)
    segment = LogSegment(path)
    for offset in range(100, 160):
        assert offsets(segment.read(start_offset=offset)) == list(range(offset, 160))
        assert offsets(segment.read(start_timestamp=START + offset * 10)) == list(range(offset, 160))
    if damage in ("shifted", "garbage", "cut", "foreign"):
        assert any(finding.kind == kind[1:] for finding in segment.verify())
    elif damage == "empty":
        assert segment.verify() == []
    assert segment.split(150)[0].start == 0


def test_an_index_one_batch_off_is_found(path: Path) -> None:
    index = path.with_suffix(".index")
    entries = LogSegment(path).index.entries
    index.write_bytes(b"".join(pack(">ii", offset - 103, position) for offset, position in entries))
    segment = LogSegment(path)
    assert {finding.kind for finding in segment.verify()} == {"index"}
    assert offsets(segment.read(start_offset=130)) == list(range(130, 160))


def test_preallocated_indexes(path: Path) -> None:
    for kind in (".index", ".timeindex"):
        index = path.with_suffix(kind)
        index.write_bytes(index.read_bytes() + bytes(24 * 1000))
    segment = LogSegment(path)
    assert len(segment.index.entries) == 9
    assert segment.verify() == []
    assert segment.seek(155) > segment.size // 2


def test_split(path: Path) -> None:
    starts = {one.position: one.base_offset for one in LogSegment(path).batches()}
    whole = LogSegment(path).size
    for indexed in (True, False):
        if not indexed:
            path.with_suffix(".index").unlink()
        for size in (1, 100, 500, 1000, 5000, whole - 1, whole, 1 << 30):
            segment = LogSegment(path)
            ranges = segment.split(size)
            assert ranges[0].start == 0
            assert ranges[-1].end == whole
            assert [one.end for one in ranges[:-1]] == [one.start for one in ranges[1:]]
            assert all(starts[one.start] == one.first_offset for one in ranges)
            if not indexed:
                assert all(one.end - one.start <= max(size, 200) for one in ranges)
            read = [
                record.offset for one in ranges for piece in segment.batches(one.start, one.end) for record in piece
            ]
            assert read == list(range(100, 160))
            rows = [
                offset
                for one in ranges
                for piece in segment.column_batches(("offset",), start=one.start, end=one.end)
                for offset in pa.table(piece)["offset"].to_pylist()
            ]
            assert rows == read


def test_compaction_gaps(tmp_path: Path) -> None:
    gaps = [
        kwire.build_batch([(START, b"a", b"1")], base_offset=0, last_offset=4),
        kwire.build_batch([], base_offset=5, last_offset=9, producer_id=4, producer_epoch=0, base_sequence=0),
        kwire.build_batch([(START + 1, b"b", None)], base_offset=20, last_offset=29),
    ]
    segment = LogSegment(write_segment(tmp_path / "c-0", 0, gaps, every=1))
    assert offsets(segment.read()) == [0, 20]
    assert offsets(segment.read(start_offset=1)) == [20]
    assert offsets(segment.read(start_offset=3, end_offset=20)) == []
    assert [one.position for one in segment.batches()] == [one.position for one in segment.headers()]
    assert segment.seek(7) == len(gaps[0])
    assert segment.verify() == []


def test_a_partition_goes_on_in_the_next_segment(tmp_path: Path) -> None:
    for base in (0, 30, 60):
        write_segment(tmp_path / "t-0", base, [batch(base + 3 * at) for at in range(10)])
    directory = LogDirectory(tmp_path)
    assert offsets(directory.read(start_offset=28, end_offset=62)) == list(range(28, 62))
    assert offsets(directory["t", 0].read(start_timestamp=START + 595)) == list(range(60, 90))
    columns = directory.columns(("offset", "source"), start_offset=28, end_offset=62)
    table = pa.table(columns)
    assert table["offset"].to_pylist() == list(range(28, 62))
    assert set(table["source"].to_pylist()) == {0, 1, 2}
    assert directory.verify() == []
    write_segment(tmp_path / "t-0", 80, [batch(70)])
    assert {finding.kind for finding in LogDirectory(tmp_path).verify()} >= {"offsets", "segments"}


@pytest.mark.parametrize("seed", range(6))
def test_a_segment_ends_before_a_time_only_if_all_its_records_do(tmp_path: Path, seed: int) -> None:
    """With the timestamps in any order; a .timeindex that ends before the log does, as one of a broker at work."""
    random = Random(seed)
    times = [START + 100 * at + random.randrange(-random.choice((1, 500)), 1) for at in range(30)]
    segment = LogSegment(write_segment(
        tmp_path / "t-0", 50, [batch(50 + 3 * at, time=time) for at, time in enumerate(times)],
        every=random.choice((1, 2, 7))))
    latest = max(header.max_timestamp for header in segment.headers())
    asked = sorted({*times, latest, latest + 1, latest + 1000})
    ends = [segment.ends_before(time) for time in asked]
    assert not any(ends[: asked.index(latest) + 1]) and len(set(ends[asked.index(latest) + 1 :])) == 1
    assert ends[-1], "its end is read"


def test_classes_can_be_looked_at() -> None:
    for kind in (LogSegment, Partition, LogDirectory):
        assert dict(inspect.getmembers(kind))


def test_a_partition_without_segments() -> None:
    assert list(Partition([]).read()) == [] and len(Partition([]).columns(["offset"])) == 0


def test_a_segment_whose_end_is_not_clear_does_not_end_before_a_time(tmp_path: Path, reads: Reads) -> None:
    far = START + 10**6
    path = write_segment(tmp_path / "t-0", 0, [batch(3 * at, size=900) for at in range(100)], every=1)
    whole = {kind: path.with_suffix(kind).read_bytes() for kind in (".log", ".index", ".timeindex")}
    reads.clear()
    assert LogSegment(path).ends_before(far) and reads.bytes < 64 << 10
    last = pack(">qi", START + 5, 299)  # smaller than the one that the log has
    changes = {
        "damage at the end": (".log", whole[".log"][:-20] + bytes(20)),
        "a torn tail": (".log", whole[".log"] + batch(300)[:50]),
        "a wrong time": (".timeindex", whole[".timeindex"][:-12] + last),
        "much of the log after the last entry": (".timeindex", whole[".timeindex"][: 12 * 20]),
        "no time": (".timeindex", bytes(1200)),
        "no position": (".index", bytes(800)),
        "a wrong position": (".index", whole[".index"][:-4] + pack(">i", 7)),
    }
    for what, (kind, content) in changes.items():
        path.with_suffix(kind).write_bytes(content)
        assert not LogSegment(path).ends_before(far), what
        path.with_suffix(kind).write_bytes(whole[kind])
    for kind in (".index", ".timeindex"):
        path.with_suffix(kind).unlink()
        assert not LogSegment(path).ends_before(far), kind
        path.with_suffix(kind).write_bytes(whole[kind])
