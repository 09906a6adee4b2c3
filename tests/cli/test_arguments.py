"""Arguments out of range are refused in one line, never by a traceback."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from tests.cli.test_log import run
from tests.storage.making import batch, write_segment

pytestmark = pytest.mark.quick
LARGE = "9" * 24


@pytest.mark.parametrize("arguments", [
    ("log", "show", "FILE", "-n", LARGE), ("log", "show", "FILE", "--batches", "-n", LARGE),
    ("log", "show", "FILE", "--width", LARGE), ("log", "show", "FILE", "--start-offset", LARGE),
    ("log", "show", "FILE", "--end-timestamp", LARGE), ("log", "show", "FILE", "--start-timestamp", "9" * 5000),
    ("log", "to-parquet", "FILE", "-o", "OUT", "--rows", LARGE),
    ("log", "to-parquet", "FILE", "-o", "OUT", "--partition", "99999999999"),
    ("protocol", "3.9", "--api", "²"), ("protocol", "3.9", "--api", "9" * 5000), ("protocol", "3.9", "--api", LARGE),
    ("protocol", "3.9", "--api", "3", "--version", LARGE), ("frame", "HEX", "--api", "²", "--version", "1"),
    ("frame", "HEX", "--api", "9" * 5000, "--version", "1"), ("frame", "HEX", "--api", "3", "--version", LARGE),
    ("decode", "Metadata", LARGE, "HEX"), ("encode", "Metadata", LARGE, "HEX"),
], ids=lambda arguments: " ".join(arguments)[:40])  # fmt: skip
def test_arguments_out_of_range_are_refused_in_one_line(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hexed = tmp_path / "hex"
    hexed.write_text("00 00 00 01 00\n")
    names = {"FILE": write_segment(tmp_path, 0, [batch(0)]), "OUT": tmp_path / "out.parquet", "HEX": hexed}
    code, _, err = run(capsys, *(names.get(one, one) for one in arguments))
    assert code in (1, 2) and err.startswith("kwire") and err.count("\n") == 1
    assert not names["OUT"].exists()


def test_a_long_line_of_hex_takes_a_few_times_its_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hex"
    path.write_bytes(b"00 " * (1 << 20))
    tracemalloc.start()
    try:
        run(capsys, "decode", "MetadataRequest", "1", path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * path.stat().st_size


@pytest.mark.parametrize("command", [
    ("show",), ("ls",), ("verify",), ("stats",), ("export", "-o", "OUT"), ("to-parquet",), ("whatif",),
], ids=lambda command: command[0])  # fmt: skip
@pytest.mark.parametrize(("pattern", "reason"), [("*" * 5000, "has more than 4096 characters"),
                                                 ("{a,b}" * 30, "stand for too many paths")], ids=["glob", "braces"])
def test_a_pattern_that_is_too_long_is_a_usage_error(
    command: tuple[str, ...], pattern: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"OUT": str(tmp_path / "out.csv")}
    code, out, err = run(capsys, "log", *(names.get(one, one) for one in command), pattern)
    assert (code, out) == (2, "") and reason in err and "unexpected" not in err and err.count("\n") == 1
