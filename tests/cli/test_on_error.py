"""--on-error: stop at a damaged batch, skip it, or report it; what was skipped is counted, and the exit code is 1."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kwire
from kwire.cli import main
from tests.cli.test_log import run
from tests.storage.making import batch, in_transaction, marker, write_segment

pytestmark = pytest.mark.quick
SIZE = len(batch(100))


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A segment of ten batches of three records, two of them damaged, and one without damage after it."""
    folder = tmp_path / "t-0"
    path = write_segment(folder, 100, [batch(100 + 3 * at) for at in range(10)], indexes=False)
    data = bytearray(path.read_bytes())
    for number in (2, 6):
        data[number * SIZE + 80] ^= 1
    path.write_bytes(data)
    write_segment(folder, 130, [batch(130)], indexes=False)
    return path


LEFT = [offset for offset in range(100, 133) if (offset - 100) // 3 not in (2, 6)]
COUNT = f"kwire: 2 damaged batches or regions skipped, {2 * SIZE:,} bytes\n"


def offsets(out: str) -> list[int]:
    return [json.loads(line)["offset"] for line in out.splitlines()]


def test_show(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show = ("log", "show", damaged.parent, "--json")
    for options in ((), ("--on-error", "stop")):
        code, out, err = run(capsys, *show, *options)
        assert (code, offsets(out), err.count("\n")) == (1, [*range(100, 106)], 1)
        assert err.startswith(f"kwire: {damaged}: batch at byte {2 * SIZE}, base offset 106: ")
    assert run(capsys, *show, "--on-error", "skip")[::2] == (1, COUNT)
    code, out, err = run(capsys, *show, "--on-error", "report")
    assert (code, offsets(out)) == (1, LEFT)
    first, second, last = err.splitlines(keepends=True)
    assert first.startswith(f"kwire: {damaged}: batch at byte {2 * SIZE}, base offset 106: ") and last == COUNT
    assert second.startswith(f"kwire: {damaged}: batch at byte {6 * SIZE}, base offset 118: ")


def test_show_of_a_range(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Damage outside of the range is none of it."""
    show = ("log", "show", damaged.parent, "--json", "--on-error", "skip")
    for options, code, wanted in (
        (("--end-offset", 106), 0, [*range(100, 106)]), (("--start-offset", 121), 0, [*range(121, 133)]),
        (("--start-offset", 104, "--end-offset", 110), 1, [104, 105, 109]), (("-n", 3), 0, [100, 101, 102]),
    ):
        found, out, _ = run(capsys, *show, *options)
        assert (found, offsets(out)) == (code, wanted), options


def test_show_of_batches(
    damaged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "log", "show", damaged.parent, "--batches", "--json", "--on-error", "skip")
    bases = [json.loads(line)["base_offset"] for line in out.splitlines()]
    assert (code, bases, err) == (1, [base for base in range(100, 133, 3) if base in LEFT], COUNT)


def test_arrow(damaged: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    code = main(["log", "show", str(damaged.parent), "--arrow", "--on-error", "skip"])
    out, err = capsysbinary.readouterr()
    assert (code, pa.ipc.open_stream(out).read_all()["offset"].to_pylist(), err.decode()) == (1, LEFT, COUNT)


def test_committed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged batch of a transaction that was aborted, and one of no transaction."""
    parts = [batch(0), in_transaction(3, 1), in_transaction(6, 1), marker(9, 1, False), batch(10), batch(13)]
    path = write_segment(tmp_path / "t-0", 0, parts, indexes=False)
    data = bytearray(path.read_bytes())
    data[sum(map(len, parts[:4])) + 80] ^= 1
    path.write_bytes(data)
    code, out, _ = run(capsys, "log", "show", path, "--json", "--committed", "--on-error", "skip")
    assert (code, offsets(out)) == (1, [0, 1, 2, 13, 14, 15])


def test_to_parquet(damaged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.parquet"
    convert = ("log", "to-parquet", damaged.parent, "-o", out)
    assert run(capsys, *convert)[0] == 1 and not out.exists()
    code, _, err = run(capsys, *convert, "--on-error", "report")
    assert code == 1 and err.endswith(COUNT) and err.count("\n") == 4
    assert pq.read_table(out)["offset"].to_pylist() == LEFT
    code, said, err = run(capsys, *convert, "--on-error", "skip", "--force", "--json")
    assert (code, json.loads(said)["rows"], err) == (1, len(LEFT), COUNT)


def test_stats(damaged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stats = ("log", "stats", damaged.parent, "--json")
    for options in ((), ("--on-error", "skip")):
        code, out, err = run(capsys, *stats, *options)
        assert (code, json.loads(out)["records"], json.loads(out)["bad_batches"], err) == (1, len(LEFT), 2, COUNT)
    code, _, err = run(capsys, *stats, "--on-error", "report")
    assert code == 1 and err.count("\n") == 3 and f"{damaged}: batch at byte {6 * SIZE}" in err
    code, out, err = run(capsys, *stats, "--on-error", "stop")
    assert (code, out, err.count("\n")) == (1, "", 1) and f"batch at byte {2 * SIZE}" in err


@pytest.mark.parametrize("command", ["show", "stats", "to-parquet"])
def test_a_partial_last_batch_is_noted(
    command: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """It is no damage of a log that is written to; zeros, as in a preallocated segment, are nothing to note."""
    path = write_segment(tmp_path / "t-0", 0, [batch(100), batch(103)], indexes=False)
    whole = path.read_bytes()
    more = ("-o", "-") if command == "to-parquet" else ()
    for data, noted, code in (
        (whole[:-7], f"byte {SIZE}: {SIZE - 7} bytes of an incomplete last batch", 0), (whole + bytes(500), "", 0),
        (whole[:40], "byte 0: 40 bytes of an incomplete last batch", 1), (whole, "", 0),
    ):
        path.write_bytes(data)
        found = main(["log", command, str(path), *more])
        err = capsysbinary.readouterr().err.decode()
        assert found == code and ("incomplete" in err) == bool(noted) and noted in err


def test_all_bytes_of_a_large_region_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a region of 70 MiB, of which only the first bytes are kept; and of a batch whose records are none."""
    path = write_segment(tmp_path / "t-0", 0, [batch(0)], indexes=False)
    path.write_bytes(path.read_bytes() + bytes(70 << 20) + b"x")
    wanted = f"kwire: 1 damaged batch or region skipped, {(70 << 20) + 1:,} bytes\n"
    for command in (("stats",), ("show", "--json"), ("show", "--batches")):
        code, _, err = run(capsys, "log", *command, path, "--on-error", "skip")
        assert (code, err) == (1, wanted), command
    data = bytearray(batch(0))
    data[61:63] = b"\xff\x7f"  # the length of the first record
    data[17:21] = kwire.crc32c(data[21:]).to_bytes(4, "big")
    path.write_bytes(batch(3) + data)
    assert run(capsys, "log", "stats", path)[2] == f"kwire: 1 damaged batch or region skipped, {len(data)} bytes\n"
