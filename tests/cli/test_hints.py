"""Commands as people type them who know Kafka's tools and kcat: refused in one line that says what to type."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kwire.cli import main
from tests.cli.test_log import run
from tests.storage.making import batch, write_segment

pytestmark = pytest.mark.quick

OPTIONS = [
    ("log show . --files x", "name files and folders without an option"),
    ("log show . --print-data-log", "use kwire log dump"), ("log stats . --deep-iteration", "use kwire log dump"),
    ("log show --bootstrap-server localhost:9092", "files are read here, not brokers"),
    ("log show -C -b localhost:9092", "files are read here, not brokers"),
    ("log show . -t orders", "use --topic"), ("log verify . -p 0", "use --partition"),
    ("log show . --topics orders", "Did you mean '--topic'?"),
    ("log show . --start_offset 3", "'--start-offset'"),
    ("log show . -o beginning", "use --start-offset N"), ("log export . --offset 5", "use --start-offset N"),
    ("log show . --from-beginning", "not needed: all is read"), ("log show . -e", "not needed: all is read"),
    ("log show . --max-messages 3", "use -n N"), ("log show . -c 3", "use -n N"), ("log show . -J", "use --json"),
    ("log show . --isolation-level read_committed", "use --committed"), ("log show . --since 1h", "-timestamp -1h"),
    ("log show . --output x.csv", "use kwire log export -o FILE"), ("log show . --value x", "use --grep REGEX"),
    ("log export . -o x.csv --format csv", "use --to FORMAT"), ("log to-parquet . --overwrite", "use --force"),
    ("versions -b localhost:9092", "use --bootstrap-server HOST:PORT"),
    ("versions --broker-list localhost:9092", "use --bootstrap-server HOST:PORT"),
    ("versions --bootstrap-server a:1, b:1", "HOST:PORT,HOST:PORT without spaces"),
    ("log show -?", "use --help"), ("-v", "use --version"),
    ("log show . -n all", "'all' is not a whole number"), ("decode MetadataRequest v12", "'v12' is not a whole number"),
    ("apis Fetch", "use kwire protocol RELEASE --api Fetch"), ("protocol 4.4 Fetch", "use --api Fetch"),
    ("protocol 3.9 4.4.0", "use kwire protocol diff 3.9 4.4"),
]
COMMANDS = [
    ("cat x.log", "log show"), ("log tail x.log", "log show --tail 10"), ("help log", "--help"),
    ("log help", "log --help"), ("kafka-dump-log.sh --files x", "log dump"), ("ls .", "log ls"),
    ("logs/orders-0", "log show logs/orders-0"), ("log 00000000000000000000.log", "log show 00000000000000000000.log"),
    ("broker-api-versions", "versions"), ("log list", "log ls"), ("log convert", "log export"),
]


@pytest.mark.parametrize(("typed", "said"), OPTIONS, ids=[typed for typed, _ in OPTIONS])
def test_an_option_of_another_tool(typed: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *typed.split())
    assert (code, out, err.count("\n")) == (2, "", 1) and said in err


@pytest.mark.parametrize("typed", [("apis", ""), ("apis", " "), ("protocol", "3.9", "")])
def test_a_blank_argument(typed: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *typed)
    assert (code, out, err.count("\n")) == (2, "", 1) and "Got unexpected extra argument" in err


@pytest.mark.parametrize(("typed", "meant"), COMMANDS, ids=[typed for typed, _ in COMMANDS])
def test_a_command_of_another_tool(typed: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *typed.split())
    assert (code, out, err.count("\n")) == (2, "", 1) and f'(did you mean "{meant}"?)' in err


def test_every_hint_of_a_command_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    from kwire.cli.hints import _COMMANDS

    for meant in dict.fromkeys(_COMMANDS.values()):
        words = [word for word in meant.split() if not word.startswith("-") and not word.isdigit()]
        assert run(capsys, *words, "--help")[0] == 0, meant


RELEASES = [
    ("4", "(did you mean one of 4.0, 4.1, 4.2, 4.3, "), ("v4.3", '(did you mean "4.3"?)'),
    ("kafka-3.9", '(did you mean "3.9"?)'), ("9.9", '(did you mean "3.9"?)'),
]


@pytest.mark.parametrize(("typed", "said"), RELEASES, ids=[typed for typed, _ in RELEASES])
def test_a_release_that_is_not_known(typed: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["apis", "--release", typed], ["protocol", typed]):
        code, out, err = run(capsys, *command)
        assert (code, out) == (1, "") and said in err and err.count("did you mean") == 1


def test_an_api_where_a_release_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    assert "kwire protocol RELEASE --api Fetch" in run(capsys, "protocol", "Fetch")[2]
    assert '(did you mean "diff"?)' in run(capsys, "protocol", "dif")[2]


@pytest.mark.parametrize("typed", ["Fecth", "Metadatta", "OffsetCommitKy"])
def test_a_message_that_is_not_known(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "messages", typed)
    assert code == 1 and "did you mean" in err


def test_bytes_in_the_place_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    for typed in ("01000000", "01:00:00:00", "0x01 0x00", "AQAAAA==", '{"topics": null}'):
        code, _, err = run(capsys, "decode", "MetadataRequest", "12", typed)
        assert code == 2 and "they go to standard input" in err
    assert "standard input" not in run(capsys, "decode", "MetadataRequest", "12", "payload.bin")[2]



def test_base64_without_its_option(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"AQAAAA==\n")))
    code, _, err = run(capsys, "decode", "MetadataRequest", "12")
    assert code == 1 and "(base64? --from base64)" in err


def test_a_frame_with_its_size(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    frame = bytes.fromhex("0012000300000007ffff00066b77697265023100")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((len(frame).to_bytes(4) + frame).hex().encode())))
    code, _, err = run(capsys, "frame")
    assert code == 1 and "its first 4 bytes are its size: leave them out, or use --from raw" in err


def test_a_format_without_a_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_segment(tmp_path, 0, [batch(0)])
    code, out, err = run(capsys, "log", "show", path, "--format", "json")
    assert (code, out) == (2, "") and "--json prints JSON" in err
    assert run(capsys, "log", "show", path, "-n", 1, "--format", "\\n")[:2] == (0, "\n")


@pytest.mark.parametrize("typed", ["1700001251000000", "1700001251000000000"])
def test_microseconds_are_no_milliseconds(typed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_segment(tmp_path, 0, [batch(0)])
    code, out, err = run(capsys, "log", "show", path, "--start-timestamp", typed)
    assert (code, out) == (2, "") and "not micro- or nanoseconds" in err
    assert run(capsys, "log", "show", path, "--start-timestamp", f"{typed}ms")[0] == 0  # as some producers write


def test_a_variable_that_is_not_set(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("show", "stats", "verify", "ls", "export", "to-parquet"):
        code, _, err = run(capsys, "log", command, "", *(["-o", "-", "--to", "csv"] if command == "export" else []))
        assert code == 2 and "a PATH is empty" in err, command


def test_a_listing_of_what_is_no_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_segment(tmp_path / "logs", 0, [batch(0)])
    Path("notes.txt").write_text("hello\n")
    code, out, err = run(capsys, "log", "ls", "notes.txt")
    assert (code, out, err) == (2, "", "kwire: notes.txt: this is text, not a log segment\n")
    os.mkfifo("pipe")
    code, out, err = run(capsys, "log", "ls", "pipe")
    assert (code, out) == (2, "") and "pipe is a pipe, which has no listing" in err
    with open(path, "rb") as source, gzip.open("any.log.gz", "wb") as target:
        shutil.copyfileobj(source, target)
    code, out, _ = run(capsys, "log", "ls", "any.log.gz")
    assert code == 0 and out.splitlines()[1].split()[:2] == ["-", "1"]


def test_parquet_to_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_segment(tmp_path, 0, [batch(0)])
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["log", "to-parquet", str(path), "-"]) == 0
    assert out.buffer.getvalue()[:4] == b"PAR1"


def test_a_full_disk_names_standard_output(tmp_path: Path) -> None:
    path = write_segment(tmp_path, 0, [batch(0)])
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", "kwire", "log", "show", path], stdout=full, stderr=subprocess.PIPE,
                              check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (1, b"kwire: standard output: No space left on device\n")
