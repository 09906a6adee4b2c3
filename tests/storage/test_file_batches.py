"""FileBatches: batches as Kafka's FileLogInputStream finds them."""

from __future__ import annotations

from pathlib import Path

import pytest

import kwire
from kwire import RecordBatch
from kwire.errors import CorruptBatchError
from kwire.storage import BatchHeader
from kwire.storage.batches.file_batches import FileBatches, loaded
from kwire.storage.places.filesystem import File, open_file
from tests.cli.test_log import run
from tests.storage.making import batch

pytestmark = pytest.mark.quick
BATCHES = [batch(0), batch(3, codec="lz4"), batch(6)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "0.log"
    path.write_bytes(b"".join(BATCHES))
    return path


def read(file: File) -> list[RecordBatch]:
    return [loaded(one, file.path) for one in FileBatches(file)]


def test_all_batches(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the bytes read at a time."""
    for window in (1, 100, 1 << 20):
        monkeypatch.setattr("kwire.storage.batches.file_batches._WINDOW_BYTES", window)
        batches = FileBatches(open_file(path))
        assert [loaded(one, "").raw for one in batches] == BATCHES
        assert batches.position == batches.end == path.stat().st_size
        headers = list(FileBatches(open_file(path)).headers())
        assert [(one.base_offset, one.last_offset, one.size) for one in headers] == [
            (3 * at, 3 * at + 2, len(data)) for at, data in enumerate(BATCHES)]  # fmt: skip


def test_a_batch_that_goes_past_the_end_is_left_out(path: Path) -> None:
    first = len(BATCHES[0])
    for end, count in ((first, 1), (first - 1, 0), (first + 17, 1), (first + len(BATCHES[1]), 2), (0, 0), (1 << 40, 3)):
        batches = FileBatches(open_file(path), end)
        assert len(list(batches)) == count
        assert batches.position == sum(map(len, BATCHES[:count]))
    assert [one.base_offset for one in FileBatches(open_file(path), start=first)] == [3, 6]


def test_a_wrong_checksum_is_no_error(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(BATCHES[0]) - 1] ^= 1
    path.write_bytes(data)
    assert [one.is_valid() for one in read(open_file(path))] == [False, True, True]


@pytest.mark.parametrize(("at", "data", "error"), [
    (8, bytes(4), "Found record size 0 smaller than minimum record overhead (14) in file"),
    (8, b"\xff\xff\xff\xff", "Found record size -1 smaller"), (16, b"\5", "magic"),
    (8, b"\0\0\0\x20", "0.log: batch at"),
])  # fmt: skip
def test_what_is_no_batch_is_an_error(path: Path, at: int, data: bytes, error: str) -> None:
    """After the batches before it."""
    content, start = bytearray(path.read_bytes()), len(BATCHES[0])
    content[start + at : start + at + len(data)] = data
    path.write_bytes(content)
    found = []
    with pytest.raises(CorruptBatchError, match=error.replace("(", r"\(").replace(")", r"\)")):
        for one in FileBatches(open_file(path)):
            found.append(one.base_offset)
    assert found == [0]
    headers = FileBatches(open_file(path)).headers()
    assert next(headers).base_offset == 0
    with pytest.raises(CorruptBatchError):
        next(headers)


@pytest.mark.parametrize("valid", [True, False])
def test_a_large_batch_is_loaded_only_if_its_checksum_matches(
    valid: bool, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its length may be damaged; what is printed of the batch is the same."""
    large = bytearray(kwire.build_batch([(7, None, bytes(100_000))], base_offset=9))
    large[-5] ^= not valid
    path.write_bytes(b"".join(BATCHES) + large + batch(10))
    printed = [run(capsys, "log", "dump", path, *extra) for extra in ((), ("--json",))]
    monkeypatch.setattr("kwire.storage.batches.file_batches._WINDOW_BYTES", 1000)
    monkeypatch.setattr("kwire.storage.batches.file_batches.KEPT_BYTES", 50_000)
    kinds = [type(one) for one in FileBatches(open_file(path))]
    assert kinds == [RecordBatch] * 3 + [RecordBatch if valid else BatchHeader] + [RecordBatch]
    assert printed == [run(capsys, "log", "dump", path, *extra) for extra in ((), ("--json",))]
    code, out, err = run(capsys, "log", "dump", path, "--print-data-log")
    assert (code, "are too many to read records of a damaged batch" in err) == ((0, False) if valid else (1, True))
    assert ("payload: \0" in out) == valid


def test_a_file_that_is_truncated_meanwhile(path: Path) -> None:
    for way in (list, lambda batches: list(batches.headers())):
        batches = FileBatches(open_file(path))
        batches.end += 100
        with pytest.raises(CorruptBatchError, match="truncated"):
            way(batches)
