"""The offset after the last batch of a segment, found from the end."""

from __future__ import annotations

from pathlib import Path

import pytest

import kwire
from kwire.storage import LogDirectory, LogSegment
from kwire.storage.reading.segment_ends import end_offset
from tests.reads import Reads
from tests.storage.making import START, batch, write_segment

pytestmark = pytest.mark.quick


def end_of(path: Path) -> int | None:
    """By a segment that was listed, and by one that was named."""
    [listed] = LogDirectory(path.parent).segments
    assert end_offset(listed) == end_offset(LogSegment(path))
    return end_offset(listed)


def test_the_end_is_found_by_reading_little(tmp_path: Path, reads: Reads) -> None:
    pieces = [batch(base, 50) for base in range(0, 20_000, 50)]
    path = write_segment(tmp_path / "t-0", 0, pieces)
    assert path.stat().st_size > 500_000
    assert end_of(path) == 20_000
    assert reads.bytes < 2 * (64 << 10) and len(reads) < 20


def test_a_torn_tail_zeros_and_damage_do_not_hide_the_end(tmp_path: Path) -> None:
    pieces = [batch(base, 50) for base in range(0, 5_000, 50)]
    path = write_segment(tmp_path / "t-0", 0, pieces)
    whole = path.read_bytes()
    for after in (batch(5_000)[:-3], b"\0" * 100_000, b"\0" * 5):
        path.write_bytes(whole + after)
        assert end_of(path) == 5_000
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    path.write_bytes(damaged)
    assert end_of(path) == 5_000
    path.write_bytes(whole[: -len(pieces[-1])] + b"junk" * 50)
    assert end_of(path) == 4_950


def test_an_index_that_is_wrong_is_not_believed(tmp_path: Path) -> None:
    pieces = [batch(base, 50) for base in range(0, 5_000, 50)]
    path = write_segment(tmp_path / "t-0", 0, pieces)
    position = sum(map(len, pieces[:-1]))
    for entry in ((4_999, position + 7), (0, 0), (1, 1 << 30), (4_999, 0)):
        path.with_suffix(".index").write_bytes(b"".join(number.to_bytes(4, "big") for number in entry))
        assert end_of(path) == 5_000
    path.with_suffix(".index").write_bytes(b"1234567")
    assert end_of(path) == 5_000


def test_one_batch_that_is_larger_than_what_is_looked_at(tmp_path: Path) -> None:
    large = kwire.build_batch([(START, None, bytes(range(256)) * 4000)] * 3, base_offset=7)
    assert end_of(write_segment(tmp_path / "t-0", 7, [large])) == 10


def test_a_segment_without_batches_has_no_end(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    for content in (batch(0)[:-1], b"", bytes(100_000), b"junk" * 20_000):
        path.write_bytes(content)
        assert end_of(path) is None


@pytest.mark.parametrize("place", ["value", "header"])
def test_batches_in_a_record_are_not_of_the_log(place: str, tmp_path: Path) -> None:
    """The last header of a record ends where the file does."""
    inner = b"".join(batch(base, 50) for base in range(1_000_000, 1_005_000, 50))
    record = (START, None, inner) if place == "value" else (START, None, b"", [("h", inner)])
    path = write_segment(tmp_path / "t-0", 0, [batch(0, 5), kwire.build_batch([record], base_offset=5)])
    assert end_of(path) == 6


def test_damage_near_the_end_is_passed_over(tmp_path: Path) -> None:
    pieces = [batch(base, 5) for base in range(0, 5_000, 5)]
    path = write_segment(tmp_path / "t-0", 0, pieces, indexes=False)
    damaged = bytearray(path.read_bytes())
    damaged[sum(map(len, pieces[:-10])) + 16] = 9
    path.write_bytes(damaged)
    assert end_of(path) == 5_000
