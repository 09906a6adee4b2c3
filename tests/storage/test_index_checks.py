"""Indexes beside the log: the indexes of golden segments agree, and each kind of damage is found."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from kwire.errors import CorruptBatchError, LimitError, UnsupportedVersionError
from kwire.storage import LogSegment
from kwire.storage.places.filesystem import open_file
from kwire.storage.side_files import index_checks
from kwire.storage.side_files.index_checks import (
    aborted_entries,
    index_bytes,
    offset_entries,
    offset_index_damage,
    time_entries,
    time_index_damage,
)
from tests.storage.making import batch, write_segment

pytestmark = pytest.mark.quick


def segments(golden: Path) -> list[Path]:
    return [path for path in sorted(golden.glob("data/*/data*/*/*.log"))
            if path.stat().st_size and path.with_suffix(".index").exists()]  # fmt: skip


def test_golden_indexes_agree(golden: Path) -> None:
    """But for offsets: an entry is of the last record appended, its position that of the append's first batch."""
    times = 0
    for path in segments(golden):
        base, log = int(path.stem), open_file(path)
        offsets = path.with_suffix(".index").read_bytes()
        assert offset_index_damage(offsets, base, "") is None
        for entry in offset_entries(offsets, base, log, 5 << 20):
            assert entry.log_offset <= entry.offset
        data = path.with_suffix(".timeindex").read_bytes()
        assert time_index_damage(data, base, "") is None
        for found in time_entries(data, offsets, base, log):
            times += found.log_timestamp == found.timestamp and found.previous < found.timestamp
    assert times > 100


def test_the_offset_index_only_shortens_the_way(golden: Path) -> None:
    path = golden / f"data/kafka-4.3.0/data1/alpha-seg-0/{0:020}.log"
    data, log = path.with_suffix(".timeindex").read_bytes(), open_file(path)
    found = list(time_entries(data, path.with_suffix(".index").read_bytes(), 0, log))
    assert len(found) > 10
    for offsets in (b"", bytes(80), b"abc"):
        assert list(time_entries(data, offsets, 0, log)) == found
    backwards = b"".join(data[at : at + 12] for at in range(len(data) - 12, -1, -12))
    assert sorted(one[:4] for one in time_entries(backwards, b"", 0, log)) == [one[:4] for one in found]
    with pytest.raises(CorruptBatchError, match="the index has position 2147483647"):
        list(time_entries(data, pack(">ii", 1, 2**31 - 1), 0, log))


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "0.index"
    path.write_bytes(bytes(100))
    monkeypatch.setattr(index_checks, "MOST_BYTES", 99)
    with pytest.raises(LimitError, match=r"0\.index: too large for an index \(limit 99, needed 100\)"):
        index_bytes(open_file(path))


def test_aborted_transactions(tmp_path: Path) -> None:
    """Kafka reads one byte of the version."""
    path = tmp_path / "0.txnindex"
    entry = pack(">hqqqq", 7, 1, 2, 3, 4)
    path.write_bytes(entry * 2 + b"part")
    assert aborted_entries(open_file(path)) == [(0, 1, 2, 3, 4)] * 2
    path.write_bytes(entry + pack(">hqqqq", 256, 1, 2, 3, 4))
    with pytest.raises(UnsupportedVersionError, match="Unexpected aborted transaction version 1, current version is 0"):
        aborted_entries(open_file(path))


@pytest.mark.parametrize("offsets", [
    [*range(0, 60, 3)], [*range(57, 0, -3)], [0, 57, 30, 2, 59, 1, 60, 61, 99, 4, 100], [59, 3] * 9, [100] * 5,
], ids=str)  # fmt: skip
@pytest.mark.parametrize("indexed", [False, True])
def test_time_entries_in_any_order(offsets: list[int], indexed: bool, tmp_path: Path) -> None:
    """Each finds the first batch from its place in the .index on that ends at or after its offset."""
    path = write_segment(tmp_path / "t-0", 0, [batch(base, 3, size=base) for base in range(0, 60, 3)], every=4)
    index = path.with_suffix(".index").read_bytes() if indexed else b""
    data = b"".join(pack(">qi", 1, offset) for offset in offsets)
    found = [(entry.offset, entry.log_offset) for entry in time_entries(data, index, 0, open_file(path))]
    assert found == [(offset, -1 if offset >= 60 else offset // 3 * 3 + 2) for offset in offsets]


def test_time_entries_that_lead_back_again_and_again(tmp_path: Path) -> None:
    """Each offset has a place of its own in the .index, far before its batch."""
    path = write_segment(tmp_path / "t-0", 0, [batch(base, 3) for base in range(0, 3000, 3)])
    places = [one.position for one in LogSegment(path).batches()]
    data = b"".join(pack(">qi", 1, 2900 + at) for at in range(100))
    index = b"".join(pack(">ii", 2900 + at, places[at]) for at in range(100))
    with pytest.raises(LimitError, match="again and again"):
        list(time_entries(data, index, 0, open_file(path)))


def test_time_entries_of_one_batch_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records are decoded for each."""
    monkeypatch.setattr(index_checks, "_SPARE_BYTES", 0)
    path = write_segment(tmp_path / "t-0", 0, [batch(0, 3)])
    entries = time_entries(b"".join(pack(">qi", at, 2) for at in range(1000)), b"", 0, open_file(path))
    largest = max(one.timestamp for one in LogSegment(path).read())
    assert [next(entries).log_timestamp for _ in range(4)] == [largest] * 4
    with pytest.raises(LimitError, match="again and again"):
        next(entries)
