"""Torn tails, zeros at the end, wrong lengths and checksums: losses are reported, valid batches are read."""

from __future__ import annotations

import os
import pickle
import struct
from pathlib import Path
from struct import pack_into
from typing import Any

import pyarrow as pa
import pytest

import kwire
from kwire.cli import main
from kwire.errors import CorruptBatchError
from kwire.storage import LogSegment, resync
from kwire.storage.batches.scanner import Scanner
from kwire.storage.places.filesystem import LocalFile, _OpenFile
from tests.storage.making import batch, marker, offsets, write_segment

pytestmark = pytest.mark.quick


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_segment(tmp_path / "t-0", 0, [batch(3 * at) for at in range(10)], indexes=False)


def kept(segment: LogSegment) -> tuple[list[int], list[tuple[int, int]]]:
    """(offsets, (position, size) of bad batches), the same by batches and by columns."""
    rows: list[int] = []
    bad: list[tuple[int, int]] = []
    for one in segment.batches(errors="keep"):
        if isinstance(one, kwire.BadBatch):
            assert one.error.file == segment.path
            bad.append((one.position, len(one.raw)))
        else:
            rows += offsets(one)
    columns = segment.columns(("offset",), errors="keep")
    assert pa.table(columns)["offset"].to_pylist() == rows
    assert [one.position for one in columns.bad] == [position for position, _ in bad]
    pieces = list(segment.column_batches(("offset",), rows=1, errors="keep"))
    assert [offset for piece in pieces for offset in pa.table(piece)["offset"].to_pylist()] == rows
    assert [one.position for piece in pieces for one in piece.bad] == [position for position, _ in bad]
    for size in (1, 400):
        ranges = segment.split(size)
        assert [one.end for one in ranges] == [*(one.start for one in ranges[1:]), segment.size]
        cut = [
            offset
            for one in ranges
            for piece in segment.column_batches(("offset",), start=one.start, end=one.end, errors="keep")
            for offset in pa.table(piece)["offset"].to_pylist()
        ]
        assert cut == rows
    return rows, bad


def test_every_torn_tail(path: Path) -> None:
    data = path.read_bytes()
    starts = [one.position for one in LogSegment(path).batches()]
    for left in range(1, len(data) - starts[-1]):
        path.write_bytes(data[: starts[-1] + left])
        segment = LogSegment(path)
        iterator = segment.batches()
        assert sum(len(one) for one in iterator) == 27
        assert iterator.tail == segment.tail == (starts[-1], left)
        with pytest.raises(kwire.CorruptBatchError) as caught:
            list(segment.batches(strict_tail=True))
        assert caught.value.position == starts[-1]
        assert segment.columns().tail == (starts[-1], left)
        for read in (segment.columns, segment.column_batches):
            with pytest.raises(kwire.CorruptBatchError) as caught:
                list(read(strict_tail=True))
            assert (caught.value.position, caught.value.file) == (starts[-1], str(path))
    assert [one.position for one in segment.columns(strict_tail=True, errors="keep").bad] == [starts[-1]]
    assert kept(segment) == (list(range(27)), [])
    (finding,) = segment.verify()
    assert (finding.kind, finding.position) == ("tail", starts[-1])


@pytest.mark.parametrize("zeros", [1, 11, 16, 17, 100, 1 << 20])
def test_preallocated_zeros(path: Path, zeros: int) -> None:
    size = path.stat().st_size
    with path.open("ab") as file:
        file.truncate(size + zeros)
    segment = LogSegment(path)
    assert segment.tail == (size, zeros)
    assert kept(segment) == (list(range(30)), [])
    assert [finding.kind for finding in segment.verify()] == ["tail"]
    assert segment.seek(29) < size
    assert segment.seek(30) == segment.size


def test_an_empty_file_and_one_of_zeros(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [])
    segment = LogSegment(path)
    assert (list(segment.read()), segment.tail, segment.split(10), segment.verify()) == ([], None, [], [])
    path.write_bytes(bytes(5000))
    segment = LogSegment(path)
    assert (list(segment.read()), segment.tail) == ([], (0, 5000))


def test_a_file_truncated_while_it_is_read(path: Path) -> None:
    segment, size = LogSegment(path), path.stat().st_size
    started = segment.batches()
    with path.open("r+b") as file:
        file.truncate(size - 1)
    with pytest.raises(kwire.CorruptBatchError, match=f"truncated to {size - 1} bytes while it was read") as caught:
        list(started)
    assert caught.value.file == str(path)


def test_a_wrong_checksum(path: Path) -> None:
    data = bytearray(path.read_bytes())
    positions = [one.position for one in LogSegment(path).batches()]
    data[positions[4] + 80] ^= 0xFF
    path.write_bytes(data)
    segment = LogSegment(path)
    assert kept(segment) == ([*range(12), *range(15, 30)], [(positions[4], positions[5] - positions[4])])
    for read in (segment.read, segment.columns, lambda: list(segment.column_batches())):
        with pytest.raises(kwire.CorruptBatchError) as caught:
            list(read())
        error = caught.value
        assert (error.position, error.offset, error.file) == (positions[4], 12, str(path))
        assert str(error).startswith(f"{path}: batch at byte {positions[4]}, base offset 12: ")
        assert pickle.loads(pickle.dumps(error)).args == error.args
    (finding,) = segment.verify()
    assert (finding.kind, finding.position, finding.offset) == ("batch", positions[4], 12)
    assert offsets(segment.read(start_offset=15)) == list(range(15, 30))
    assert len(segment.columns(verify_crc=False)) >= 27


@pytest.mark.parametrize("length", [0, 5, 13, 14, 60, 77, 150, 2_000, 1 << 30, -1, -(1 << 31)])
@pytest.mark.parametrize("at", [0, 4, 9])
def test_a_wrong_length(path: Path, length: int, at: int) -> None:
    data = bytearray(path.read_bytes())
    positions = [one.position for one in LogSegment(path).batches()] + [len(data)]
    pack_into(">i", data, positions[at] + 8, length)
    path.write_bytes(data)
    segment = LogSegment(path)
    rows, bad = kept(segment)
    lost = [one for one in range(30) if one not in rows]
    if at == 9 and length > len(data):  # cannot be told from a torn tail
        assert segment.tail == (positions[9], len(data) - positions[9])
        assert (rows, bad) == (list(range(27)), [])
    else:
        assert lost == [3 * at, 3 * at + 1, 3 * at + 2]
        assert bad == [(positions[at], positions[at + 1] - positions[at])]
        with pytest.raises(kwire.CorruptBatchError) as caught:
            list(segment.batches())
        assert caught.value.position == positions[at]


def test_garbage_between_batches_is_one_region(path: Path) -> None:
    data = path.read_bytes()
    positions = [one.position for one in LogSegment(path).batches()]
    for garbage in (b"x", b"\x00" * 40, bytes(range(256)) * 40, b"\x02" * 5000, data[3:150]):
        path.write_bytes(data[: positions[5]] + garbage + data[positions[5] :])
        segment = LogSegment(path)
        assert kept(segment) == (list(range(30)), [(positions[5], len(garbage))])
        assert [(one.kind, one.position) for one in segment.verify()] == [("batch", positions[5])]
        assert resync(segment.file, positions[5] + 1) == positions[5] + len(garbage)


def test_garbage_to_the_end(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data + b"\xff" * 1000)
    segment = LogSegment(path)
    assert kept(segment) == (list(range(30)), [(len(data), 1000)])


def test_a_batch_in_a_record_is_not_a_batch_of_the_log(tmp_path: Path) -> None:
    # the value holds a valid batch: the search must not take it for one of the log when the outer length is wrong
    inner = batch(500)
    carrier = kwire.build_batch([(1, None, b"before"), (2, None, inner + b"after")], base_offset=3)
    path = write_segment(tmp_path / "t-0", 0, [batch(0), carrier, batch(5)], indexes=False)
    data = bytearray(path.read_bytes())
    pack_into(">i", data, len(batch(0)) + 8, 7)
    path.write_bytes(data)
    assert kept(LogSegment(path))[0] == [0, 1, 2, 5, 6, 7]


def test_offsets_out_of_order_and_wrong_timestamps(tmp_path: Path) -> None:
    path = write_segment(
        tmp_path / "t-0",
        10,
        [batch(5), batch(10), batch(13), batch(11), batch(16, max_timestamp=5), marker(19, 4, True)],
        indexes=False,
    )
    findings = LogSegment(path).verify()
    assert [(one.kind, one.offset) for one in findings] == [("offsets", 5), ("offsets", 11), ("timestamps", 16)]
    assert all(str(path) in str(one) for one in findings)


def test_a_region_of_many_candidates_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(batch(0) + b"\x01" * (1 << 20) + batch(3))
    segment = LogSegment(path)
    assert [isinstance(one, kwire.BadBatch) for one in segment.batches(errors="keep")][:2] == [False, True]


def test_records_outside_their_batch(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0, last_offset=1), batch(3)], indexes=False)
    (finding,) = LogSegment(path).verify()
    assert (finding.kind, finding.position, finding.offset) == ("offsets", 0, 0)
    assert "record 2 has offset 2" in finding.message


def test_heads_of_batches_that_claim_much_are_read_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path, size = tmp_path / "t-0" / f"{0:020}.log", 200 << 20
    path.parent.mkdir()
    path.write_bytes(struct.pack(">qiib", 0, size - 12, 0, 2) + bytes(100))
    os.truncate(path, size)
    whole = _OpenFile.view

    def view(self: Any, start: int, end: int, before: Any = b"") -> memoryview:
        assert end - start < 64 << 20
        return whole(self, start, end, before)

    monkeypatch.setattr(_OpenFile, "view", view)
    assert [header.size for header in LogSegment(path).headers()] == [size]
    assert "checksum" in str(LogSegment(path).verify()[0])
    assert main(["log", "ls", str(path.parent)]) == 0
    with path.open("ab") as file:  # what follows is no batch, and the checksum does not hold
        file.write(b"\1" * 100)
    with pytest.raises(CorruptBatchError, match="no batch follows"):
        list(LogSegment(path).headers())


@pytest.mark.parametrize("count", [0, 1 << 30])
def test_a_last_offset_that_cannot_be_right_does_not_hide_batches(count: int, tmp_path: Path) -> None:
    """Bytes were lost in a header: what is now its last offset delta is not believed."""
    made = [bytearray(batch(at, 1)) for at in range(20)]
    del made[3][30:34]
    made[3][23:27], made[3][57:61] = (9).to_bytes(4, "big"), count.to_bytes(4, "big")
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"".join(made))
    found = [one for one in LogSegment(path).batches(errors="keep") if not isinstance(one, kwire.BadBatch)]
    assert [one.base_offset for one in found] == [0, 1, 2, *range(4, 20)]


class WrittenMeanwhile:
    """A file of which a read gives zeros where a broker writes a batch at that moment; changes: so many times."""

    def __init__(self, path: Path, seen: bytes, changes: int) -> None:
        self.path, self._held, self._seen, self._changes = str(path), LocalFile(str(path)).held(), seen, changes

    def size(self) -> int:
        return self._held.size()

    def view(self, start: int, end: int, before: bytes | memoryview = b"") -> memoryview:
        if self._changes <= 0:
            return self._held.view(start, end, before)
        self._changes -= 1
        return memoryview(bytes(before) + self._seen[start:end])

    def read(self, start: int, end: int) -> bytes:
        return self._held.read(start, end)

    def after_hole(self, position: int) -> int:
        return position

    def held(self) -> WrittenMeanwhile:
        return self


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("written", [0, 0.5])
def test_a_batch_that_is_written_while_it_is_read(written: float, verify: bool, tmp_path: Path) -> None:
    """Into a preallocated segment: what was in memory were zeros, or half of it."""
    batches = [batch(3 * at, size=100) for at in range(6)]
    whole, zeros = b"".join(batches), bytes(1 << 12)
    path = write_segment(tmp_path / "t-0", 0, [whole], indexes=False)
    path.write_bytes(whole + zeros)
    at = len(b"".join(batches[:4]))
    half = whole[: at + int(len(batches[4]) * written)]
    seen = half + bytes(len(whole) + len(zeros) - len(half))

    file = WrittenMeanwhile(path, seen, 1)
    scanner = Scanner(file, verify=verify)
    windows = list(scanner)
    assert [window.bad for window in windows] == [None] * len(windows)
    assert b"".join(bytes(window.data) for window in windows) == whole
    assert scanner.tail == (len(whole), len(zeros))

    restless = list(Scanner(WrittenMeanwhile(path, seen, 1000), verify=verify))  # other bytes at each read: damage
    assert next(window.position for window in restless if window.bad) == at


def test_damage_in_a_preallocated_segment(tmp_path: Path) -> None:
    whole = bytearray(b"".join(batch(3 * at) for at in range(4)))
    whole[-20] ^= 1
    path = write_segment(tmp_path / "t-0", 0, [bytes(batch(0))], indexes=False)
    path.write_bytes(bytes(whole) + bytes(1 << 12))
    with pytest.raises(CorruptBatchError, match="checksum does not match"):
        list(LogSegment(path).read())
    rows, bad = kept(LogSegment(path))
    assert rows == [*range(9)] and [position for position, _ in bad] == [len(whole) // 4 * 3]
