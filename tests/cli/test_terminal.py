"""Output of commands on any terminal: names from the wire are escaped, and JSON keeps its value."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import kwire
from kwire.cli import main
from kwire.cli.terminal import console, counted, print_json, terminal_columns
from tests.storage.making import START, batch, write_segment

TEXT = "\x1b]0;x\x07\x1b[2J\x9b31m\u202e\u2066\x7f\r\n\t\u2028\U000e0041é日本"


def run(monkeypatch: pytest.MonkeyPatch, encoding: str, *arguments: object) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of a command whose streams have that encoding."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="") for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    code = main([str(one) for one in arguments])
    out.flush(), err.flush()
    said = [stream.buffer.getvalue().decode(encoding) for stream in (out, err)]  # type: ignore[attr-defined]
    monkeypatch.undo()
    return code, said[0], said[1]


def harmless(text: str) -> bool:
    return all(sign.isprintable() or sign in "\n\t" for sign in text)


@pytest.mark.quick
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "iso8859-1", "cp1252", "koi8-r"])
def test_records_on_any_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, encoding: str) -> None:
    """Keys, header keys and topics; as JSON they are what they were."""
    topic = TEXT.replace("\n", "")
    folder = tmp_path / f"{topic}-0"
    record = (START, TEXT.encode(), TEXT.encode(), [(TEXT, TEXT.encode()), (TEXT, None)])
    write_segment(folder, 0, [kwire.build_batch([record])])
    for command in (("show",), ("show", "--batches"), ("stats",), ("stats", "--segments"), ("verify",)):
        for more in ((), ("--json",)):
            code, out, err = run(monkeypatch, encoding, "log", *command, folder, *more)
            assert code == 0 and harmless(out + err), (command, out, err)
            if more:
                value = json.loads(out)
                first = value["parts"][0] if command[0] == "stats" else value
                assert first.get("topic", topic) == topic
                if command == ("show",):
                    assert [value["key"], value["value"]] == [TEXT, TEXT]
                    assert value["headers"] == [[TEXT, TEXT], [TEXT, None]]
    _, out, _ = run(monkeypatch, encoding, "log", "show", folder)
    assert "\\x1b]0;x\\x07" in out and "\\u202e" in out


@pytest.mark.quick
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_json_of_anything(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    value = {"".join(map(chr, range(0, 0x300))): ["\ud800", "\udfff", "\U0001f600", TEXT, None, 1.5], "plain": "é"}
    for indent in (None, 2):
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="")
        monkeypatch.setattr(sys, "stdout", out)
        print_json(value, indent=indent)
        out.flush()
        monkeypatch.undo()
        said = out.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
        assert json.loads(said) == value and harmless(said)


def test_a_file_whose_name_is_no_utf8(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its bytes are shown as Python holds them; what is written has them so, too."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/t\xff\x9b-0"))
    path = write_segment(folder, 0, [batch(0)])
    for command in ("show", "stats", "verify"):
        for more in ((), ("--json",)):
            code, out, err = run(monkeypatch, "utf-8", "log", command, path, *more)
            assert code == 0 and harmless(out + err), (command, out, err)
    code, out, err = run(monkeypatch, "utf-8", "log", "to-parquet", folder, "-o", tmp_path / "a.parquet")
    assert (code, out) == (0, "") and harmless(err)
    assert pq.read_table(tmp_path / "a.parquet")["topic"].to_pylist() == ["t\\udcff\\udc9b"] * 3


def test_times_that_no_calendar_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Drawn, or left out of the drawing and counted there; shown as milliseconds."""
    far = (253_370_764_799_999, 253_402_300_800_000, (1 << 62) + 5, (1 << 63) - 1)
    for number, times in enumerate(((far[0],), (far[3],), (START, *far), (-1, far[3]))):
        folder = tmp_path / f"t-{number}"
        records = [(time, b"k", b"v") for time in times]
        write_segment(folder, 0, [kwire.build_batch(records)], indexes=False)
        picture = tmp_path / f"{number}.svg"
        code, _, err = run(monkeypatch, "utf-8", "log", "stats", folder, "--plot", picture)
        assert code == 0 and picture.stat().st_size > 1000, (times, err)
        code, out, _ = run(monkeypatch, "utf-8", "log", "show", folder)
        assert code == 0 and (f"{far[3]} ms" in out) == (far[3] in times)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["t-99999999999", "t-2147483648", "t-4294967296"])
def test_a_folder_that_is_no_partition(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """Kafka's partitions are numbers of 31 bits: such a folder tells no topic."""
    path = write_segment(tmp_path / name, 0, [batch(0)])
    code, _, err = run(monkeypatch, "utf-8", "log", "to-parquet", path, "-o", tmp_path / "a.parquet")
    assert code == 0, err
    assert pq.read_table(tmp_path / "a.parquet")["partition"].to_pylist() == [None] * 3


def test_to_parquet_follows_no_link_that_stands_beside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever may write to the folder can guess the name of what is half-written."""
    folder, precious = tmp_path / "t-0", tmp_path / "precious"
    write_segment(folder, 0, [batch(0)])
    precious.write_text("mine")
    (tmp_path / "a.parquet.partial").symlink_to(precious)
    code, _, _ = run(monkeypatch, "utf-8", "log", "to-parquet", folder, "-o", tmp_path / "a.parquet")
    assert code == 0 and precious.read_text() == "mine" and pq.read_table(tmp_path / "a.parquet").num_rows == 3


@pytest.mark.quick
def test_numbers_of_things_as_text() -> None:
    assert [counted(number, "batch", "batches") for number in (0, 1, 2)] == ["0 batches", "1 batch", "2 batches"]
    assert counted(1_234, "segment") == "1,234 segments"


class Terminal(io.StringIO):
    """A stream that says that it is one."""

    def isatty(self) -> bool:
        """It is."""
        return True


@pytest.mark.parametrize("number", ["²", "9" * 5000, "-1", "x", "99999999999", ""])
def test_columns_and_lines_may_be_anything(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", number)
    monkeypatch.setenv("LINES", number)
    monkeypatch.setattr(sys, "stdout", Terminal())
    console().print("text")
    assert sys.stdout.getvalue() == "text\n"
    assert 0 < terminal_columns() <= 10_000
