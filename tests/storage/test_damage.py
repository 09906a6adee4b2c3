"""What is damage does not depend on where reading begins and ends: cuts at any byte, start and end offsets."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from struct import pack_into
from typing import Any

import pytest

import kwire
from kwire.storage import LogDirectory, LogSegment, salvage_log
from kwire.storage.batches import scanner
from tests.reads import Reads
from tests.storage.making import START, batch, in_transaction, marker, write_segment

Read = tuple[list[int], list[tuple[int, int, str]]]


def carrier(base: int, *values: bytes, header: bool = False, **options: Any) -> bytes:
    """A batch whose records (offset base on) hold other bytes in their values, or in a header's value."""
    records = [
        (START, b"k", b"v", [("h", value)]) if header else (START, b"k", b"before" + value + b"after", [])
        for value in values
    ]
    return kwire.build_batch(records, base_offset=base, **options)


def segment_of(chance: random.Random) -> list[bytes]:
    """Batches of every kind: plain, compressed, transactional, of magic 0 and 1, and carriers of whole batches."""
    made: list[bytes] = []
    base = 0
    for _ in range(chance.randrange(12, 45)):
        kind, count = chance.randrange(12), chance.randrange(1, 9)
        near = [batch(max(0, base + chance.randrange(-9, 9)), chance.randrange(1, 3)) for _ in range(4)]
        if kind < 5:
            made.append(batch(base, count, size=chance.randrange(10, 60)))
        elif kind == 5:
            made.append(batch(base, count, codec=chance.choice(("gzip", "snappy", "lz4", "zstd"))))
        elif kind == 6:
            made.append(in_transaction(base, 7, count))
        elif kind == 7:
            count = 1
            made.append(marker(base, 7, True))
        elif kind == 8:
            entries = [(START, b"k", b"v%d" % at) for at in range(count)]
            magic, codec = chance.choice((0, 1)), chance.choice(("none", "gzip"))
            made.append(kwire.build_batch(entries, base_offset=base, magic=magic, codec=codec))
        elif kind == 9:  # unfitting offsets, several in a row
            count = 1
            made.append(carrier(base, b"".join(batch(offset) for offset in (0, 3, 500, 503))))
        elif kind == 10:  # offsets that may fit
            count = 2
            made.append(carrier(base, b"".join(near), batch(base), header=chance.random() < 0.5))
        else:
            count = 1
            value = (START, b"k", b"".join(near))
            made.append(kwire.build_batch([value], base_offset=base, magic=chance.choice((0, 1, 2))))
        base += count + (chance.randrange(5) if chance.random() < 0.1 else 0)  # compacted
    return made


def damaged(data: bytes, made: list[bytes], chance: random.Random) -> bytes:
    """The bytes with one to four damages of every kind."""
    changed = bytearray(data)
    edges = [sum(map(len, made[:at])) for at in range(len(made))]
    for _ in range(chance.choice((1, 1, 1, 2, 2, 4))):
        kind, at, size = chance.randrange(9), chance.randrange(len(changed)), chance.randrange(1, 700)
        edge = chance.choice(edges)
        if kind == 0:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del changed[at : at + size]
        elif kind == 2:
            changed[at:at] = chance.choice((chance.randbytes(size), bytes(size), b"\x02" * size))
        elif kind == 3:
            changed[at : at + size] = bytes(len(changed[at : at + size]))
        elif kind == 4:
            changed[at:at] = changed[edge : edge + size]
        elif kind == 5 and edge + 12 <= len(changed):
            pack_into(">i", changed, edge + 8, chance.choice((0, -1, 14, size, 4 * size, 1 << 30)))
        elif kind == 6 and edge + 12 <= len(changed):  # a length that jumps to another batch
            pack_into(">i", changed, edge + 8, max(0, chance.choice(edges) - edge - 12))
        elif kind == 7 and edge < len(changed):  # in a header
            changed[min(len(changed) - 1, edge + chance.randrange(61))] ^= 1 << chance.randrange(8)
        else:
            changed[edge:edge] = carrier(chance.randrange(60), batch(chance.randrange(60)) * 3)[chance.randrange(80) :]
    if chance.random() < 0.2:
        changed += bytes(chance.randrange(1, 400))
    return bytes(changed)


def read(segment: LogSegment, **options: Any) -> Read:
    """(offsets, (position, offset, reason) of each bad row), the tail among them."""
    pieces = segment.column_batches(("offset",), errors="keep", rows=7, **options)
    rows: list[int] = []
    bad: list[tuple[int, int, str]] = []
    for piece in pieces:
        rows += piece["offset"].to_numpy().tolist()
        bad += [
            (one.position, getattr(one.error, "offset", -1), getattr(one.error, "reason", "")) for one in piece.bad
        ]
    tail = pieces.find_tail()
    return rows, bad if tail is None else [*bad, (*tail, "tail")]


def read_in_cuts(segment: LogSegment, cuts: list[int], **options: Any) -> Read:
    rows: list[int] = []
    bad: list[tuple[int, int, str]] = []
    for start, end in pairwise([0, *cuts, segment.size]):
        more = read(segment, start=start, end=end, guessed=True, **options)
        rows, bad = rows + more[0], bad + more[1]
    return rows, bad


def check(folder: Path, seed: int) -> int:
    """One seed: five cuts, and ranges of offsets. Returns the number of bad rows."""
    chance = random.Random(seed)
    made = segment_of(chance)
    indexed = chance.choice((None, made, segment_of(chance)))  # none, right before the damage, of another segment
    path = write_segment(folder / f"{seed}-0", 0, indexed or made, indexes=indexed is not None)
    path.write_bytes(damaged(b"".join(made), made, chance))
    segment = LogSegment(path)
    whole = read(segment)
    for each in (1000, 400, 2500, 137, 6000):
        cuts = list(range(chance.randrange(1, each), segment.size, each))
        assert read_in_cuts(segment, cuts) == whole, (seed, cuts)
    if whole[0] == sorted(set(whole[0])):  # a copied piece comes twice: a range may end before it
        for _ in range(3):
            start, end = sorted(chance.choices(range(-2, 260), k=2))
            bounds = {"start_offset": start, "end_offset": chance.choice((end, None))}
            bounded = read(segment, **bounds)
            stop = bounds["end_offset"]
            wanted = [one for one in whole[0] if one >= start and (stop is None or one < stop)]
            assert bounded[0] == wanted, (seed, bounds)
            assert set(bounded[1]) <= set(whole[1])
            cuts = list(range(chance.randrange(1, 900), segment.size, 900))
            assert read_in_cuts(segment, cuts, **bounds) == bounded, (seed, bounds, cuts)
    return len(whole[1])


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_rows_and_bad_rows_do_not_depend_on_cuts(tmp_path: Path, first: int) -> None:
    assert sum(check(tmp_path, seed) for seed in range(first, first + 25)) > 10


def test_they_do_not_where_a_reader_looks_back_only_a_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "CHAIN_BYTES", 1500)  # more than any value here
    monkeypatch.setattr(scanner, "_BACK_BYTES", 1700)
    monkeypatch.setattr(scanner, "_REPEATED_BYTES", 100)  # less than most
    for seed in range(200, 230):
        check(tmp_path, seed)


def test_a_copy_that_was_resumed_too_early_is_read_the_same_with_every_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes to the middle of a batch, and then again from before it on: few of them are left out, many read again."""
    monkeypatch.setattr(scanner, "CHAIN_BYTES", 1500)
    monkeypatch.setattr(scanner, "_BACK_BYTES", 1700)
    monkeypatch.setattr(scanner, "_REPEATED_BYTES", 200)
    made = [batch(3 * at) for at in range(150)]
    data, size = b"".join(made), len(made[40])
    path = write_segment(tmp_path / "t-0", 0, [], indexes=False)
    stop = 60 * size + 40
    for again in (1, 150, 200 + size, 300, 700, 1200, 1400, 1600, 3000):
        path.write_bytes(data[:stop] + data[stop - again :])
        segment = LogSegment(path)
        whole = read(segment)
        repeated = again - again % size if again > 200 + 2 * size else 0
        assert abs(len(whole[0]) - 450 - 3 * repeated / size) <= 6, again
        for goal in range(stop - 50, stop + again + 300, 41):
            cuts = [goal - 4000, goal, goal + 4000]
            assert read_in_cuts(segment, cuts) == whole, (again, goal)


@pytest.mark.parametrize("followed", [False, True])
def test_ranges_in_zeros_read_no_more_than_themselves(tmp_path: Path, reads: Reads, followed: bool) -> None:
    """A preallocated segment, and one with a hole that batches follow."""
    made = [batch(16 * at, 16, size=1000) for at in range(100)]
    path = write_segment(tmp_path / "t-0", 0, made[:50], indexes=False)
    with path.open("ab") as file:
        file.truncate(36 << 20)
        file.seek(36 << 20)
        file.write(b"".join(made[50:]) if followed else b"")
    segment = LogSegment(path)
    whole = read(segment)
    assert len(whole[0]) == (1600 if followed else 800) and len(whole[1]) == 1
    for size in (2 << 20, 12 << 20):
        cuts = list(range(size, segment.size, size))
        assert read_in_cuts(segment, cuts) == whole
        for start in cuts:
            end = start + size
            if start >= 4 << 20 and end <= 36 << 20:
                reads.clear()
                assert read(segment, start=start, end=end, guessed=True) == ([], [])
                assert reads.bytes <= 1.05 * size


def test_a_piece_between_two_damages_is_read(tmp_path: Path) -> None:
    made = [batch(3 * at) for at in range(12)]
    starts = [sum(map(len, made[:at])) for at in range(12)]
    for first in range(9):
        for second in range(first + 2, 12):
            data = bytearray(b"".join(made))
            for at in (first, second):
                data[starts[at] : starts[at] + 61] = bytes(61)
            path = write_segment(tmp_path / f"{first}_{second}-0", 0, [], indexes=False)
            path.write_bytes(data)
            lost = [*range(3 * first, 3 * first + 3), *range(3 * second, 3 * second + 3)]
            assert read(LogSegment(path))[0] == [row for row in range(36) if row not in lost]


def test_nested_batches_are_not_read_where_the_header_of_their_batch_is_lost(tmp_path: Path) -> None:
    for offsets in ((0, 3, 500), (500, 503), (3, 500, 503), (4, 4, 4), (2,), (5, 6)):
        made = [batch(0), carrier(3, b"".join(batch(offset, 1) for offset in offsets), b""), batch(5), batch(8)]
        start = len(made[0])
        data = bytearray(b"".join(made))
        data[start : start + 61] = bytes(61)
        path = write_segment(tmp_path / f"{'_'.join(map(str, offsets))}-0", 0, [], indexes=False)
        path.write_bytes(data)
        rows, bad = read(LogSegment(path))
        assert (rows, [position for position, _, _ in bad]) == ([0, 1, 2, *range(5, 11)], [start]), offsets


def damaged_log(path: Path, made: list[bytes], *places: tuple[int, int]) -> bytes:
    """A log in which a bit is wrong at these (number of the batch, byte in it)."""
    data = bytearray(b"".join(made))
    for number, byte in places:
        data[sum(map(len, made[:number])) + byte] ^= 1
    path.write_bytes(data)
    return bytes(data)


def kept(path: Path, data: bytes) -> tuple[list[int], list[int]]:
    """The offsets that a reader with errors="keep" gives, and those that salvage keeps, which tells of every byte."""
    offsets = [one.base_offset for one in LogSegment(path).batches(errors="keep") if isinstance(one, kwire.RecordBatch)]
    done = salvage_log(path, path.parent / "out")
    (report,) = done.partitions
    assert report.size + report.bytes_lost + report.zeros == len(data)
    return offsets, [one.base_offset for one in LogSegment(path.parent / "out" / path.name).batches()]


@pytest.mark.parametrize("magic", [1, 2])
def test_what_follows_damage_may_begin_with_copies_of_what_was_before(tmp_path: Path, magic: int) -> None:
    """At the end of a value, in magic 0 and 1; the batches between two damages were judged by these copies' offsets."""
    made = [kwire.build_batch([(START, None, bytes([at]) * 600)], base_offset=at, magic=magic) for at in range(12)]
    made[7] = kwire.build_batch([(START, None, b"x" * 900 + made[1] + made[2])], base_offset=7, magic=magic)
    path = tmp_path / f"{0:020}.log"
    data = damaged_log(path, made, (4, 300), (7, 300))
    wanted = [at for at in range(12) if at not in (4, 7)]
    assert kept(path, data) == (wanted, wanted)


def test_a_damaged_last_batch_may_end_with_copies(tmp_path: Path) -> None:
    """Then nothing of the log follows: what is before was judged by the offsets of the copies, and lost."""
    made = [kwire.build_batch([(START, None, bytes([at]) * 600)], base_offset=at, magic=1) for at in range(11)]
    made.append(kwire.build_batch([(START, None, b"x" * 900 + made[1] + made[2])], base_offset=11, magic=1))
    path = tmp_path / f"{0:020}.log"
    data = damaged_log(path, made, (4, 8), (4, 300), (11, 8), (11, 300))
    wanted = [at for at in range(11) if at != 4]
    offsets, salvaged = kept(path, data)
    assert (offsets[: len(wanted)], salvaged) == (wanted, wanted)


def test_a_range_that_begins_in_damage_is_read_as_the_whole(tmp_path: Path) -> None:
    """It was read from the first damaged byte on, without the offset before it."""
    made = [kwire.build_batch([(START, None, bytes([at]) * 600)], base_offset=at, magic=1) for at in range(12)]
    made[7] = kwire.build_batch([(START, None, b"x" * 900 + made[1] + made[2])], base_offset=7, magic=1)
    path = tmp_path / f"{0:020}.log"
    damaged_log(path, made, (4, 8), (4, 300), (7, 300))
    segment = LogSegment(path)
    whole = [one.offset for one in segment.read(errors="keep") if isinstance(one, kwire.Record)]
    assert whole == [at for at in range(12) if at not in (4, 7)]
    for start in range(1, 12):
        found = [one.offset for one in segment.read(errors="keep", start_offset=start) if isinstance(one, kwire.Record)]
        assert found == [at for at in whole if at >= start], start


@pytest.mark.parametrize("magic", [1, 2])
def test_a_batch_inside_an_intact_one_is_none_of_the_log(tmp_path: Path, magic: int) -> None:
    """Not even where the offset of the intact one is wrong, and that of the one inside fits."""
    made = [kwire.build_batch([(START, None, bytes([at]) * 600)], base_offset=at, magic=magic) for at in range(12)]
    inside = kwire.build_batch([(START, None, b"inside")], base_offset=5, magic=magic)
    made[5] = kwire.build_batch([(START, None, b"x" * 100 + inside + b"y")], base_offset=1000, magic=magic)
    path = tmp_path / f"{0:020}.log"
    data = damaged_log(path, made, (4, 300), (4, 10), (8, 300))
    wanted = [at for at in range(12) if at not in (4, 5, 8)]
    assert kept(path, data) == (wanted, wanted)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_two_thousand_damages(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + 100):
        check(tmp_path, seed)


@pytest.mark.parametrize("start", [0, 2, 5])
def test_damage_is_not_passed_over_where_a_range_has_a_start_offset(tmp_path: Path, start: int) -> None:
    """errors="raise": a piece, or a segment, that begins with damage raises, if the damage is in the range."""
    good = [batch(0), batch(3), batch(6), batch(9)]
    for broken in (0, 1, 2):
        data = [bytearray(one) for one in good]
        data[broken][40] ^= 1
        path = write_segment(tmp_path / f"{start}_{broken}-0", 0, [], indexes=False)
        path.write_bytes(b"".join(data))
        edges = [0, *(sum(map(len, good[: at + 1])) for at in range(4))]
        segment = LogSegment(path)

        def pieces(at: int, segment: LogSegment = segment, edges: list[int] = edges) -> list[Any]:
            return list(segment.column_batches(start=edges[at], end=edges[at + 1], guessed=True, start_offset=start))

        inside = start < 3 * broken + 3  # the batch after it does not begin the range
        for at in range(4):
            if at == broken and inside:
                with pytest.raises(kwire.CorruptBatchError):
                    pieces(at)
            else:
                pieces(at)


@pytest.mark.parametrize("way", ["read", "columns", "column_batches"])
@pytest.mark.parametrize("bound", ["start_offset", "start_timestamp"])
def test_a_range_that_begins_in_a_damaged_batch_raises(tmp_path: Path, bound: str, way: str) -> None:
    data = [bytearray(kwire.build_batch([(base + at, None, b"v") for at in range(10)], base_offset=base))
            for base in range(0, 60, 10)]
    data[2][70] ^= 1
    path = write_segment(tmp_path / "t-0", 0, [], indexes=False)
    path.write_bytes(b"".join(data))
    for start in (0, 19, 20, 29):
        with pytest.raises(kwire.CorruptBatchError, match="checksum"):
            list(getattr(LogSegment(path), way)(**{bound: start}))
    if bound == "start_offset":
        rows = list(getattr(LogSegment(path), way)(start_offset=30))
        assert sum(map(len, rows)) if way == "column_batches" else len(rows)


@pytest.mark.parametrize("broken", range(5))
def test_damage_may_hide_records_of_any_time(tmp_path: Path, broken: int) -> None:
    """Timestamps need not ascend: what follows the damage does not say that it was too early."""
    times = (900, 100, 950, 100, 100)
    data = [bytearray(kwire.build_batch([(time, None, b"v")] * 3, base_offset=3 * at)) for at, time in enumerate(times)]
    data[broken][70] ^= 1
    path = write_segment(tmp_path / "t-0", 0, [], indexes=False)
    path.write_bytes(b"".join(data))
    segment = LogSegment(path)
    with pytest.raises(kwire.CorruptBatchError, match="checksum"):
        list(segment.read(start_timestamp=800))
    whole = read(segment, start_timestamp=800)
    assert whole[0] == [row for at, row in ((0, 0), (0, 1), (0, 2), (2, 6), (2, 7), (2, 8)) if at != broken]
    assert [offset for _, offset, _ in whole[1]] == [3 * broken]
    for each in (1, 50, 90, 200):
        cuts = list(range(each, segment.size, each))
        assert read_in_cuts(segment, cuts, start_timestamp=800) == whole
        with pytest.raises(kwire.CorruptBatchError, match="checksum"):
            for start, end in pairwise([0, *cuts, segment.size]):
                list(segment.column_batches(("offset",), start=start, end=end, guessed=True, start_timestamp=800))


def test_one_wrong_base_offset_does_not_end_a_range(tmp_path: Path) -> None:
    """No checksum protects it; columns went on, read() ended with nothing."""
    made = [(1 << 60).to_bytes(8, "big") + batch(0)[8:], batch(3), batch(6), batch(9)]
    path = write_segment(tmp_path / "t-0", 0, [], indexes=False)
    path.write_bytes(b"".join(made))
    segment = LogSegment(path)
    for errors in ("raise", "keep"):
        rows = [one.offset for one in segment.read(end_offset=7, errors=errors) if isinstance(one, kwire.Record)]
        assert rows == [3, 4, 5, 6]
        assert segment.columns(("offset",), end_offset=7, errors=errors)["offset"].to_numpy().tolist() == rows


def test_damage_after_a_range_is_none_of_it(tmp_path: Path) -> None:
    made = [batch(0), batch(3), bytearray(batch(6))]
    made[2][70] ^= 1
    path = write_segment(tmp_path / "t-0", 0, [], indexes=False)
    path.write_bytes(b"".join(made))
    assert [one.offset for one in LogSegment(path).read(end_offset=3)] == [0, 1, 2]
    assert [one.offset for one in LogSegment(path).read(end_offset=5, errors="keep")] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("way", ["read", "columns", "column_batches"])
@pytest.mark.parametrize("byte", [16, 70])
@pytest.mark.parametrize("broken", [4, 5, 6])
def test_damage_is_raised_where_it_may_have_held_records_of_a_range(
    broken: int, byte: int, way: str, tmp_path: Path
) -> None:
    """The range ends at offset 15, with which batch 5 begins. Byte 16 of a batch is its magic."""
    pieces = [batch(base, 3) for base in range(0, 30, 3)]
    path = write_segment(tmp_path / "t-0", 0, pieces, indexes=False)
    damaged = bytearray(path.read_bytes())
    damaged[sum(map(len, pieces[:broken])) + byte] ^= 5
    path.write_bytes(damaged)
    segment = LogSegment(path)

    def read() -> int:
        if way == "read":
            return len(list(segment.read(end_offset=15)))
        if way == "columns":
            return len(segment.columns(("offset",), end_offset=15))
        return sum(map(len, segment.column_batches(("offset",), end_offset=15)))

    if broken == 4:
        with pytest.raises(kwire.CorruptBatchError):
            read()
    else:
        assert read() == 15


@pytest.mark.quick
@pytest.mark.parametrize("topic", ["__cluster_metadata", "t"])
def test_a_metadata_log_misses_no_offsets(topic: str, tmp_path: Path) -> None:
    """It is never compacted: a broker goes on after a gap in silence, without the records of it."""
    whole, broken = tmp_path / "whole" / f"{topic}-0", tmp_path / "broken" / f"{topic}-0"
    for name, bases in (6, (6, 9, 12)), (15, (15, 18)):
        write_segment(whole, name, [batch(base) for base in bases], indexes=False)
    for name, bases in (6, (9, 15)), (21, (24,)), (27, (27,)):
        write_segment(broken, name, [batch(base) for base in bases], indexes=False)
    assert LogDirectory(whole).verify() == [] and not salvage_log(whole).lost
    found, lost = LogDirectory(broken).verify(), salvage_log(broken).lost
    if topic == "t":
        assert not found and not lost
        return
    assert [(one.kind, one.offset) for one in found] == [
        ("offsets", 9), ("offsets", 15), ("offsets", 24), ("segments", 21)]
    assert "offsets 12 to 14 are missing, and a metadata log is never compacted" in str(found[1])
    assert [(one.first_offset, one.last_offset) for one in lost] == [(6, 8), (12, 14), (18, 20), (21, 23)]
