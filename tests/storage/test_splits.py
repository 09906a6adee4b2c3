"""Boundaries: from any byte the next batch of the log, by few reads; nested batches are none."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest

import kwire
from kwire.storage import LogSegment
from kwire.storage.batches import scanner
from tests.reads import Reads
from tests.storage.making import START, batch, write_segment
from tests.storage.test_damage import carrier, read, read_in_cuts

pytestmark = pytest.mark.quick

NESTED = b"".join(batch(offset) for offset in (3, 4, 7, 500, 503))


def entry(base: int, value: bytes, magic: int, codec: str = "none") -> bytes:
    return kwire.build_batch([(START, b"k", value)], base_offset=base, magic=magic, codec=codec)


KINDS: dict[str, Callable[[], list[bytes]]] = {
    "plain": lambda: [batch(3 * at) for at in range(12)],
    "compressed": lambda: [batch(3 * at, codec="zstd") for at in range(12)],
    "a row of batches in a value": lambda: [
        batch(0), carrier(3, NESTED), batch(4), carrier(7, NESTED, NESTED), batch(9)],
    "the batch's own offsets": lambda: [batch(0), carrier(3, batch(3, 1)), batch(4), carrier(7, batch(6), batch(8, 1))],
    "in a header, at the end": lambda: [batch(0), carrier(3, batch(3, 1), header=True), batch(4), batch(7)],
    "in the last batch": lambda: [batch(0), batch(3), carrier(6, NESTED)],
    "magic 0": lambda: [batch(0), entry(3, batch(3, 1), 0), entry(4, NESTED, 0), batch(5)],
    "magic 1": lambda: [entry(at, batch(at, 1), 1) for at in range(6)],
    "entries in entries": lambda: [entry(at, entry(at, entry(at, b"v", 0), 1), 1) for at in range(6)],
    "wrapped": lambda: [entry(at, b"v" * 50, 1, "gzip") for at in range(8)],
}


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["", "zeros", "torn"])
def test_every_byte_as_a_guess(tmp_path: Path, kind: str, end: str, indexed: bool) -> None:
    made = KINDS[kind]()
    path = write_segment(tmp_path / "t-0", 0, made, indexes=indexed)
    with path.open("ab") as file:
        file.write({"": b"", "zeros": bytes(300), "torn": batch(900)[:70]}[end])
    segment = LogSegment(path)
    starts = [sum(map(len, made[:at])) for at in range(len(made))]
    places = starts if not end else [*starts, sum(map(len, made))]
    for guess in range(segment.size):
        assert segment.boundary(guess) == next((place for place in places if place >= guess), segment.size), guess
    whole = read(segment)
    for size in (90, 333):
        assert read_in_cuts(segment, list(range(size, segment.size, size))) == whole


@pytest.mark.parametrize("kind", KINDS)
def test_a_nested_batch_is_not_of_the_log_when_its_carrier_is_damaged(tmp_path: Path, kind: str) -> None:
    made = KINDS[kind]()
    starts = [sum(map(len, made[:at])) for at in range(len(made))]
    rows = read(LogSegment(write_segment(tmp_path / "t-0", 0, made, indexes=False)))[0]
    for at, start in enumerate(starts):
        if len(made) - at == 1:  # nothing comes after it that could tell
            continue
        lost = [row for one in kwire.read_batches(made[at]) for row in (record.offset for record in one)]
        for byte in (8, 11, 17, 60, len(made[at]) - 30):
            data = bytearray(b"".join(made))
            data[start + min(byte, len(made[at]) - 1)] ^= 0x55
            path = write_segment(tmp_path / f"{at}_{byte}-0", 0, [], indexes=False)
            path.write_bytes(data)
            segment = LogSegment(path)
            found, bad = read(segment)
            assert found == [row for row in rows if row not in lost], (at, byte, bad)
            assert [position for position, _, _ in bad] == [start]
            assert read_in_cuts(segment, list(range(70, segment.size, 70))) == (found, bad)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 MiB of batches of 16 KiB, with the indexes of Kafka, preallocated to 10 MiB."""
    batches = [batch(16 * at, 16, size=1000) for at in range(1500)]
    path = write_segment(tmp_path_factory.mktemp("large") / "t-0", 0, batches, every=1)
    for kind in (".index", ".timeindex"):
        with path.with_suffix(kind).open("ab") as file:
            file.truncate(10 << 20)
    return path


def bytes_of(reads: Reads) -> int:
    total = reads.bytes
    reads.clear()
    return total


@pytest.mark.parametrize("errors", ["raise", "keep"])
def test_bytes_are_read_once(large: Path, reads: Reads, errors: str) -> None:
    segment = LogSegment(large)
    batches = segment.column_batches(("offset",), errors=errors)
    assert sum(map(len, batches)) == 24_000 and batches.find_tail() is None
    assert bytes_of(reads) <= 1.001 * segment.size


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("errors", ["raise", "keep"])
def test_guessed_ranges_read_little_more(
    large: Path, tmp_path: Path, reads: Reads, errors: str, indexed: bool
) -> None:
    path = large
    if not indexed:
        path = tmp_path / "00000000000000000000.log"
        path.symlink_to(large)
    segment = LogSegment(path)
    rows = 0
    for start in range(0, segment.size, 12 << 20):
        end = min(segment.size, start + (12 << 20))
        rows += sum(map(len, segment.column_batches(("offset",), start=start, end=end, guessed=True, errors=errors)))
        assert bytes_of(reads) <= 1.05 * (end - start) + (0 if indexed else scanner._BACK_BYTES)
    assert rows == 24_000


def test_a_guess_in_a_file_of_many_gib_reads_little(tmp_path: Path, reads: Reads) -> None:
    """In such a file nearly every length fits: what only looks like a header may claim 2 GiB."""
    chance = random.Random(7)
    words = [chance.randbytes(20) for _ in range(50)]
    values = [b"".join(chance.choices(words, k=5)) for _ in range(9_000)]
    large = bytearray(kwire.build_batch([(START, b"key", value) for value in values]))
    path = tmp_path / f"{0:020}.log"
    with path.open("wb") as file:
        for at in range(20):
            large[:8] = pack(">q", 9_000 * at)
            file.write(large)
    os.truncate(path, 8 << 30)
    segment = LogSegment(path)
    for guess in range(10 * len(large), 16 * len(large), len(large) // 3 * 2):
        reads.clear()
        assert scanner.Scanner(segment.file, guess, guessed=True).begin() == -(-guess // len(large)) * len(large)
        assert bytes_of(reads) < 8 * len(large)


def test_a_point_read_without_an_index_reads_a_few_mib(large: Path, tmp_path: Path, reads: Reads) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.symlink_to(large)
    segment = LogSegment(path)
    positions = [header.position for header in segment.headers()]
    reads.clear()
    for offset in (0, 5, 9_000, 15_999, 16_000, 23_999):
        for errors in ("raise", "keep"):
            found = segment.column_batches(("offset",), start_offset=offset, end_offset=offset + 1, errors=errors)
            assert [row for piece in found for row in piece["offset"].to_numpy().tolist()] == [offset]
            assert bytes_of(reads) < 9 << 20
        assert next(iter(segment.read(start_offset=offset))).offset == offset
        assert bytes_of(reads) < 9 << 20
        assert segment.seek(offset) == positions[offset // 16]
        assert bytes_of(reads) < 9 << 20
    assert segment.seek(24_000) == segment.size
    reads.clear()
    half, total = segment.size // 2, 0
    for start, end in ((0, half), (half, segment.size)):  # two tasks, of which only one has rows
        total += sum(map(len, segment.column_batches(("offset",), start=start, end=end, guessed=True,
                                                     start_offset=20_000)))
    assert total == 4_000 and bytes_of(reads) < 14 << 20


@pytest.mark.parametrize("seed", range(4))
def test_a_search_by_offset_comes_to_what_reading_from_the_start_does(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nested batches and damage everywhere: the same rows and the same bad regions."""
    dice = random.Random(seed)
    made = [KINDS["plain"]()[0]]
    for at in range(1, 3000):
        nested = carrier(3 * at, *(batch(dice.randrange(9000)) for _ in range(4)))
        made.append(dice.choice((batch(3 * at, 1, size=dice.randrange(3000)), nested)))
    data = bytearray(b"".join(made))
    for _ in range(seed):
        data[dice.randrange(len(data))] ^= 0xFF
    path = write_segment(tmp_path / "t-0", 0, [], indexes=False)
    path.write_bytes(data)
    segment = LogSegment(path)
    monkeypatch.setattr("kwire.storage.reading.segment._LEFT_TO_SCAN", 1 << 12)
    offsets = [dice.randrange(9000) for _ in range(12)]
    searched = [read(segment, start_offset=offset) for offset in offsets]
    monkeypatch.setattr("kwire.storage.reading.segment._LEFT_TO_SCAN", 1 << 40)
    assert searched == [read(segment, start_offset=offset) for offset in offsets]


def test_a_point_read_reads_little(large: Path, reads: Reads) -> None:
    segment = LogSegment(large)
    for offset in (0, 5, 100, 11_111, 23_999):
        found = segment.column_batches(("offset",), start_offset=offset, end_offset=offset + 1)
        assert [row for piece in found for row in piece["offset"].to_numpy().tolist()] == [offset]
        assert len(reads) < 40 and bytes_of(reads) < 256 << 10
        assert next(iter(segment.read(start_offset=offset, end_offset=offset + 1))).offset == offset
        assert bytes_of(reads) < 768 << 10
        found = segment.column_batches(("offset",), start_offset=offset, end_offset=offset + 1, errors="keep")
        assert [row for piece in found for row in piece["offset"].to_numpy().tolist()] == [offset]
        assert bytes_of(reads) < 5 << 18  # it looks whether damage follows
        time = START + offset * 10
        found = segment.column_batches(("offset",), start_timestamp=time, end_timestamp=time + 1, end_offset=offset + 1)
        assert [row for piece in found for row in piece["offset"].to_numpy().tolist()] == [offset]
        assert len(reads) < 80 and bytes_of(reads) < 512 << 10


def test_an_index_that_is_wrong_is_not_used(tmp_path: Path) -> None:
    made = [batch(0), carrier(3, batch(2, 1), batch(3, 1)), batch(5), batch(8)]
    path = write_segment(tmp_path / "t-0", 0, made)
    nested = len(made[0]) + made[1].index(batch(2, 1))
    for index in (pack(">ii", 2, nested), pack(">iiii", 1, nested, 2, nested + 1), b"\xff" * 64, bytes(80), b"abc"):
        path.with_suffix(".index").write_bytes(index)
        segment = LogSegment(path)
        for guess in range(segment.size):
            assert segment.boundary(guess) in (0, len(made[0]), len(made[0] + made[1]), segment.size - len(made[3]),
                                               segment.size)  # fmt: skip
        assert [one.offset for one in segment.read(start_offset=4)] == list(range(4, 11))
        assert read(segment, start_offset=4)[0] == list(range(4, 11))


def test_progress_of_a_range_counts_its_own_bytes(tmp_path: Path) -> None:
    segment = LogSegment(write_segment(tmp_path / "t-0", 0, [batch(base) for base in range(0, 30, 3)]))
    done: list[int] = []
    for one in segment.split(300):
        for _ in segment.column_batches(("offset",), start=one.start, end=one.end, rows=4, progress=done.append):
            pass
    assert sum(done) == segment.size
