"""The lines of `kwire log show`: what C writes and what Python writes of any bytes; how a table fits a terminal."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import kwire
from kwire.cli import main
from kwire.cli.record_lines import Layout, fitted
from kwire.cli.terminal import as_json, as_text, shown_json, when
from kwire_c.columns import gather
from kwire_c.record_text import RecordText, values_of
from tests.storage.making import START, batch, write_segment
from tools.places import ROOT

pytestmark = pytest.mark.quick
SIGNS = [*map(chr, range(128)), "é", "日", "\u202e", "\u0301", "🎉", "\udc80"]


def contents(dice: random.Random) -> bytes | None:
    """Text, ASCII or not, binary, empty, null; long ones too."""
    kind = dice.randrange(8)
    if kind < 2:
        return [None, b""][kind]
    if kind == 2:
        return dice.randbytes(dice.randrange(1, 30))
    signs = SIGNS[32:127] if kind < 6 else SIGNS
    return "".join(dice.choices(signs, k=dice.choice((3, 20, 21, 80, 700)))).encode("utf-8", "surrogateescape")


def rows_of(dice: random.Random, count: int) -> list[tuple[Any, ...]]:
    times = (0, START, 1_709_164_799_999, 4_107_542_399_001, 253_402_300_799_999, 253_402_300_800_000, (1 << 63) - 1)
    rows = []
    for _ in range(count):
        headers = [(contents_text(dice), contents(dice)) for _ in range(dice.choice((0, 0, 1, 3)))]
        rows.append((dice.choice(times), contents(dice), contents(dice), headers))
    return rows


def contents_text(dice: random.Random) -> str:
    return "".join(dice.choices(SIGNS[:-1], k=dice.randrange(6)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    dice = random.Random(7)
    folder = tmp_path / "t-0"
    batches, base = [], 0
    for codec in ("none", "lz4", "none", "zstd", "gzip"):
        rows = rows_of(dice, 300)
        batches.append(kwire.build_batch(rows, codec=codec, base_offset=base))
        base += len(rows) + 5
    write_segment(folder, 0, batches)
    return folder


def out_of(monkeypatch: pytest.MonkeyPatch, *arguments: object, encoding: str = "utf-8") -> bytes:
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
    monkeypatch.setattr(sys, "stdout", out)
    assert main([str(one) for one in arguments]) == 0
    out.flush()
    monkeypatch.undo()
    return out.buffer.getvalue()  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_table_of_any_bytes(monkeypatch: pytest.MonkeyPatch, folder: Path, encoding: str) -> None:
    lines = []
    for record in kwire.storage.LogDirectory(folder).read():
        headers = " ".join(f"{as_text(name.encode())}={as_text(value)}" for name, value in record.headers)
        key = as_text(record.key)
        key += " " * (20 - cell_len(key))
        lines.append(f"{'t-0':24} {record.offset:>10}  {when(record.timestamp):23}  {key}  "
                     f"{as_text(record.value)}{' | ' * bool(record.headers)}{headers}")
    wanted = "\n".join(lines).encode(encoding, "backslashreplace").decode(encoding)
    shown = out_of(monkeypatch, "log", "show", folder, encoding=encoding).decode(encoding)
    header, rest = shown.split("\n", 1)
    assert header.split() == ["partition", "offset", "timestamp", "(UTC)", "key", "value"]
    assert rest == wanted + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_json_of_any_bytes(monkeypatch: pytest.MonkeyPatch, folder: Path, encoding: str) -> None:
    lines = out_of(monkeypatch, "log", "show", folder, "--json", encoding=encoding).decode(encoding).splitlines()
    records = list(kwire.storage.LogDirectory(folder).read())
    assert len(lines) == len(records)
    for line, record in zip(lines, records, strict=True):
        assert json.loads(line) == {
            "topic": "t", "partition": 0, "offset": record.offset, "timestamp": record.timestamp,
            "timestamp_type": "create", "key": as_json(record.key), "value": as_json(record.value),
            "headers": [[name, as_json(value)] for name, value in record.headers],
            "producer_id": -1, "producer_epoch": -1, "sequence": -1, "transaction": None,
        }  # fmt: skip
        assert line.isprintable() and (encoding == "utf-8" or line.isascii())
    # C's strings are Python's
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    written = [json.loads(line)["value"] for line in lines]
    expected = [shown_json(value) for value in written]
    monkeypatch.undo()
    assert all(f'"value": {text}, "headers"' in line for text, line in zip(expected, lines, strict=True))


def test_formats_are_those_of_kcat(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Bytes as they are: what format.c of kcat prints for the same records."""
    form = r"%t|%p|%o|%T|%k|%K|%s|%S|%R|%h|%%|\t\x41\101\n"
    wanted = b""
    for record in kwire.storage.LogDirectory(folder).read():
        key, value = record.key, record.value
        sizes = [-1 if data is None else len(data) for data in (key, value)]
        headers = b",".join(name.encode() + b"=" + (b"NULL" if data is None else data) for name, data in record.headers)
        wanted += b"|".join((
            b"t", b"0", b"%d" % record.offset, b"%d" % record.timestamp, key or b"", b"%d" % sizes[0], value or b"",
            b"%d" % sizes[1], sizes[1].to_bytes(4, "big", signed=True), headers, b"%", b"\tAA\n",
        ))  # fmt: skip
    assert out_of(monkeypatch, "log", "show", folder, "--format", form, encoding="ascii") == wanted


@pytest.mark.parametrize(("form", "words"), [
    ("%q", "unknown token %q"), ("100%", "% at the end"), ("%\x1b", "%\\x1b"), ("", "empty"),
])  # fmt: skip
def test_an_unknown_token(folder: Path, capsys: pytest.CaptureFixture[str], form: str, words: str) -> None:
    assert main(["log", "show", str(folder), "--format", form]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and words in err and "\x1b" not in err
    assert not form or "%t %p %o" in err


# on a terminal


def on_terminal(cells: int, *arguments: object) -> str:
    """What a command shows on a terminal of so many cells."""
    parent, child = os.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "kwire", *map(str, arguments)], stdout=child, stderr=child, cwd=ROOT,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": str(cells), "PYTHONIOENCODING": "utf-8"})
    os.close(child)
    shown = b""
    while True:
        try:
            piece = os.read(parent, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(parent)
    assert running.wait() == 0, shown
    return shown.decode().replace("\r\n", "\n")


def test_what_is_left_out_first() -> None:
    layouts: list[Layout] = []
    for cells in range(200, 5, -1):
        layout = fitted(cells, 9, 10)
        if not layouts or layout._replace(total=0) != layouts[-1]:
            layouts.append(layout._replace(total=0))
        assert layout.value >= 16 or layout[:4] == (0, 10, 0, 0)
    assert [layout[:4] for layout in layouts] == [
        (9, 10, 23, 20), (9, 10, 19, 20), (9, 10, 19, 10), (0, 10, 19, 10), (0, 10, 8, 10), (0, 10, 0, 10),
        (0, 10, 0, 0)]


def test_a_table_fits_its_terminal(folder: Path) -> None:
    write_segment(folder.parent / "a.longer.topic-13", 0, [batch(0)])
    for cells in (20, 40, 80, 137):
        lines = on_terminal(cells, "log", "show", folder.parent, "--control").splitlines()
        assert max(map(cell_len, lines)) <= cells and all(line.isprintable() for line in lines)
        places = [line for line in lines if line.startswith("t-0")]
        assert len(places) == (1500 if cells > 70 else 1), cells
        assert len(lines) == 1 + 1503 + (0 if cells > 70 else 2)


def test_a_terminal_gets_no_raw_bytes(folder: Path) -> None:
    shown = on_terminal(80, "log", "show", folder, "--format", r"%s\n", "-n", 300)
    assert all(line.isprintable() for line in shown.splitlines()) and "\\x1b" in shown


# RecordText


def test_rows_of_several_chunks() -> None:
    data = b"".join(kwire.build_batch([(1, b"k", b"x" * 900)], base_offset=at) for at in range(20))
    columns = gather([data], ("offset", "value"), max_batch_bytes=1 << 20, chunk_bytes=2000)
    text = RecordText([("number", "offset", {"width": 3}), ("literal", "", {"texts": (b";",)})])
    assert b"".join(text.write(columns)) == b"".join(b"%3d;" % at for at in range(20))
    for rows in ([], [0], [19], [3, 4, 11, 19], list(range(20))):
        assert b"".join(text.write(columns, rows)) == b"".join(b"%3d;" % at for at in rows)
    assert values_of(columns, "offset") == list(range(20))


def test_blocks_are_bounded() -> None:
    columns = gather([kwire.build_batch([(1, b"", b"\x01" * 1000)] * 5000)], ("value",), max_batch_bytes=1 << 30)
    text = RecordText([("plain", "value", {}), ("literal", "", {"texts": (b"\n",)})])
    blocks = list(text.write(columns))
    assert sum(map(len, blocks)) == 5000 * 4001 and max(map(len, blocks)) < (1 << 18) + 5000


def test_what_is_missing_is_refused() -> None:
    columns = gather([batch(0)], ("offset",), max_batch_bytes=1 << 20)
    views = gather([batch(0)], ("value",), max_batch_bytes=1 << 20, views=True)
    for pieces, given in (([("plain", "value", {})], columns), ([("plain", "value", {})], views)):
        with pytest.raises(ValueError, match="lack"):
            list(RecordText(pieces).write(given))
    with pytest.raises(ValueError, match="lack"):
        values_of(columns, "key")
    with pytest.raises(ValueError):
        RecordText([("nothing", "", {})])
    with pytest.raises(ValueError, match="three"):
        RecordText([("literal", "", {"texts": (b"",) * 4})])


def test_an_error_in_between_is_passed_on() -> None:
    columns = gather([kwire.build_batch([(1, b"", b"ok"), (1, b"", b"\xff"), (1, b"", b"z")])], ("value",),
                     max_batch_bytes=1 << 20)

    def call(data: bytes) -> bytes:
        raise KeyError(data)

    text = RecordText([("plain", "value", {"call": call})])
    with pytest.raises(KeyError):
        list(text.write(columns))
    assert list(text.write(columns, [0])) == [b"ok"]  # nothing of before is left
