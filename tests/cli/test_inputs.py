"""Every command that takes a file reads it from a pipe, standard input and gzip, or refuses it by what it is."""

from __future__ import annotations

import copy
import gzip
import io
import json
import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest

import kwire
from kwire.cli import input_file, main
from kwire.cli import messages as cli_messages
from kwire.errors import LimitError, WrongFileError
from tests.capture.making import Talk, hello, welcome, write_pcap
from tests.cli.test_log import ROOT, run
from tests.storage.making import batch, producer_snapshot, write_segment
from tests.storage.pipes import pipe

pytestmark = pytest.mark.quick
MESSAGE = kwire.encode(kwire.messages.FindCoordinatorRequest(key="grp", key_type=1), 3)
FRAME = kwire.encode_request(kwire.messages.FindCoordinatorRequest(key="grp", key_type=1), 3)

# what reads a file -> (what kind of file, its arguments; IN is the file)
READERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "show": ("segment", ("log", "show", "IN", "--json", "--topic", "t", "--partition", "0")),
    "batches": ("segment", ("log", "show", "IN", "--batches", "--json", "--topic", "t", "--partition", "0")),
    "stats": ("segment", ("log", "stats", "IN", "--topic", "t", "--partition", "0")),
    "verify": ("segment", ("log", "verify", "IN")),
    "to-parquet": ("segment", ("log", "to-parquet", "IN", "-o", "OUT", "--topic", "t", "--partition", "0")),
    "dump": ("segment", ("log", "dump", "IN", "--print-data-log")),
    "salvage": ("segment", ("log", "salvage", "IN", "-")),
    "whatif": ("segment", ("log", "whatif", "IN", "--codec", "none")),
    "snapshot": ("snapshot", ("snapshot", "show", "IN")),
    "snapshot diff": ("snapshot", ("snapshot", "diff", "BOOTSTRAP", "IN")),
    "decode": ("message", ("decode", "FindCoordinatorRequest", "3", "IN")),
    "decode raw": ("raw", ("decode", "FindCoordinatorRequest", "3", "IN", "--from", "raw")),
    "encode": ("json", ("encode", "FindCoordinatorRequest", "3", "IN")),
    "frame": ("frame", ("frame", "IN")),
    "frame raw": ("frames", ("frame", "IN", "--from", "raw")),
    "audit": ("capture", ("audit", "IN", "--to", "4.4")),
}  # fmt: skip


@pytest.fixture
def contents(tmp_path: Path, golden: Path) -> dict[str, bytes]:
    path = write_segment(tmp_path / "t-0", 0, [batch(3 * at) for at in range(20)], indexes=False)
    talk = Talk().open().exchange(hello(), welcome())
    snapshot = next(golden.glob("data/kafka-4.3.0/data1/__cluster_metadata-0/*255-*.checkpoint"))
    return {
        "segment": path.read_bytes(), "snapshot": snapshot.read_bytes(),
        "message": MESSAGE.hex().encode() + b"\n", "raw": MESSAGE, "json": b'{"key": "grp", "keyType": 1}\r\n',
        "frame": FRAME.hex().encode(), "frames": kwire.pack_frame(FRAME) * 2,
        "capture": write_pcap(tmp_path / "made.pcap", talk.bytes()).read_bytes(),
    }  # fmt: skip


NAMES = {"segment": f"{0:020}.log", "snapshot": "s.checkpoint", "capture": "a.pcap"}


def said(capfd: pytest.CaptureFixture[bytes], path: str, arguments: tuple[str, ...], out: Path) -> tuple[int, bytes]:
    """(exit code, what was printed, and written to OUT), but for the name of the file."""
    out.unlink(missing_ok=True)
    code = main([path if one == "IN" else str(out) if one == "OUT" else one for one in arguments])
    sys.stdout.flush()
    text, err = capfd.readouterr()
    text = re.sub(rb'"path": "[^"]*"', b"", text)
    text = b"\n".join(line for line in text.splitlines() if not line.startswith(b"Dumping "))
    assert code == 0, err
    return code, text + (out.read_bytes() if out.exists() else b"")


@pytest.mark.parametrize("way", ["fifo", "stdin", "/dev/stdin", "gz", "fifo of gz"])
@pytest.mark.parametrize("reader", READERS)
def test_a_file_is_read_whatever_it_comes_through(
    reader: str, way: str, contents: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes], golden: Path,
) -> None:  # fmt: skip
    kind, arguments = READERS[reader]
    bootstrap = str(golden / "data/kafka-4.3.0/data1/bootstrap.checkpoint")
    arguments = tuple(bootstrap if one == "BOOTSTRAP" else one for one in arguments)
    content, out = contents[kind], tmp_path / "out.parquet"
    plain = tmp_path / "in" / NAMES.get(kind, "plain")
    plain.parent.mkdir()
    plain.write_bytes(content)
    _, wanted = said(capfdbinary, str(plain), arguments, out)
    assert wanted or reader == "verify"
    path = tmp_path / "other"
    if way.startswith("fifo"):
        name = str(pipe(path, gzip.compress(content) if "gz" in way else content))
    elif way == "gz":
        path = path.with_name(f"{plain.name}.gz")
        path.write_bytes(gzip.compress(content))
        name = str(path)
    else:
        held = open(plain, "rb")  # noqa: SIM115 - the process keeps it as its standard input
        before = os.dup(0)
        os.dup2(held.fileno(), 0)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.FileIO(0, closefd=False)))
        name = "-" if way == "stdin" else way
    try:
        _, found = said(capfdbinary, name, arguments, out)
    finally:
        if way.endswith("stdin"):
            os.dup2(before, 0)
            os.close(before), held.close()
    for base in (plain.name, "plain", "other", f"{plain.name}.gz", "stdin"):
        wanted, found = (text.replace(base.encode(), b"NAME") for text in (wanted, found))
    if reader in ("snapshot", "snapshot diff", "stats", "to-parquet"):  # the name says the offset; columns are as wide
        assert len(found) > 0.8 * len(wanted)
    else:
        assert found == wanted


WRONG: dict[str, tuple[str, str]] = {
    f"{0:020}.timeindex": ("this is a time index: kwire log dump reads it", "index"),
    f"{0:020}.index": ("this is an offset index: kwire log dump reads it", "index"),
    f"{0:020}.txnindex": ("this is a transaction index: kwire log dump reads it", "index"),
    f"{3:020}.snapshot": ("this is a producer snapshot: kwire log dump reads it", "index"),
    f"{0:020}.timeindex.deleted": ("this is a time index: kwire log dump reads it", "index"),
    "leader-epoch-checkpoint": ("this is leader epochs: kwire log show reads it", "side"),
    "meta.properties": ("this is meta.properties: kwire log show reads it", "side"),
    "notes.txt": ("this is text, not a ", "other"), "x": ("this is text, not a ", "other"),
    "server.log": ("this is text, not a ", "other"), "utf16.txt": ("this is text, not a ", "other"),
    "x.parquet": ("this is a Parquet file, not a ", "other"),
    "x.zip": ("this is a zip archive: unpack it first", "other"),
    "x.zst": ("this is compressed with zstd: decompress it first", "other"),
    "x.gzipped": ("this is compressed with gzip: expected a name that ends in .gz", "packed"),
    "a.pcap": ("this is a packet capture: kwire audit reads it", "capture"),
}  # fmt: skip


def wrong_file(folder: Path, name: str) -> Path:
    content = {
        "leader-epoch-checkpoint": b"0\n1\n0 0\n", "meta.properties": b"#\nversion=1\nnode.id=1\n",
        "notes.txt": "Some notes, näch\n".encode() * 9, "x": b"hi\n",
        "server.log": b"[2026-01-01] INFO started\n" * 90, "utf16.txt": "notes".encode("utf-16"),
        "x.parquet": b"PAR1" + bytes(40) + b"PAR1", "x.zip": b"PK\x03\x04" + bytes(40),
        "x.zst": b"\x28\xb5\x2f\xfd" + bytes(40), "x.gzipped": gzip.compress(batch(0)),
    }.get(name, bytes(24))  # fmt: skip
    path = folder / name
    if name == "a.pcap":
        return write_pcap(path, Talk().open().exchange(hello(), welcome()).bytes())
    if name.endswith(".snapshot"):
        return producer_snapshot(folder, 3, {1: -1})
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("command", ["show", "stats", "verify", "to-parquet", "salvage", "whatif", "audit", "snapshot"])
def test_what_is_no_segment_is_refused_by_what_it_is(
    command: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reason, kind = WRONG[name]
    wrong_file(tmp_path, name)
    if (command == "show" and kind in ("index", "side")) or (command == "audit" and kind in ("packed", "capture")):
        return  # which reads it
    arguments = ("audit", name, "--to", "4.4") if command == "audit" else (
        ("snapshot", "show", name) if command == "snapshot" else ("log", command, name))
    code, out, err = run(capsys, *arguments)
    said = f"not a capture: {reason.removesuffix(', not a ')}" if command == "audit" else reason
    assert (code, out, err.count("\n")) == (2, "", 1) and err.startswith(f"kwire: {name}: {said}")
    assert os.listdir(tmp_path) == [name]


def test_a_segment_given_to_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)])
    code, out, err = run(capsys, "audit", path, "--to", "4.4")
    assert (code, out, err) == (
        2, "", f"kwire: {path}: not a capture: this is a log segment: kwire log show reads it\n")


@pytest.mark.parametrize("command", ["show", "stats", "verify", "to-parquet", "whatif", "dump"])
def test_an_empty_pipe_is_refused(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = pipe(tmp_path / "p", b"")
    code, _, err = run(capsys, "log", command, path)
    assert code == (1 if command == "dump" else 2) and err == f"kwire: {path}: empty, expected a log segment\n"
    active = tmp_path / f"{0:020}.log"  # which has no batch yet
    active.write_bytes(b"")
    assert run(capsys, "log", command, active, *(("-o", tmp_path / "o") if command == "to-parquet" else ()))[0] == 0


def test_a_folder_where_a_file_is_expected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "t-0"
    write_segment(folder, 0, [batch(0)])
    with pytest.raises(IsADirectoryError, match="is a folder, not a segment: LogDirectory reads it"):
        kwire.storage.LogSegment(folder)
    with pytest.raises(kwire.errors.WrongFileError, match="this is a time index: kwire log dump reads it"):
        kwire.storage.LogSegment(next(folder.glob("*.timeindex")))
    (tmp_path / "x").write_text("notes")
    with pytest.raises(kwire.DecodeError, match="this is text, not a log segment"):
        kwire.storage.LogSegment(tmp_path / "x")
    with pytest.raises(kwire.DecodeError, match="this is text, not a log segment"):
        kwire.storage.LogDirectory(tmp_path / "x")
    for arguments in (("decode", "MetadataRequest", "0", folder), ("frame", folder),
                      ("versions", "--bootstrap-server", "h:1", "--command-config", folder)):
        code, _, err = run(capsys, *arguments)
        assert code == 2 and err.count("\n") == 1 and "irectory" in err


def test_damaged_gzip_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = gzip.compress(MESSAGE.hex().encode() * 1000)
    for name, data in (("m.gz", packed[:-20]), ("n.gz", packed[:30] + b"\0\1\2" + packed[33:])):
        (tmp_path / name).write_bytes(data)
        code, _, err = run(capsys, "decode", "FindCoordinatorRequest", "3", tmp_path / name, "--from", "raw")
        assert code == 1 and err.count("\n") == 1 and "the gzip stream is damaged" in err and name in err


def test_gzip_of_too_many_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.cli.input_file.MOST_UNPACKED", 1 << 20)
    path = tmp_path / "m.gz"
    path.write_bytes(gzip.compress(bytes(8 << 20)))
    raw = ("decode", "FindCoordinatorRequest", "3", path, "--from", "raw")
    for line in (raw, ("frame", path), ("encode", "MetadataRequest", "1", path)):
        code, out, err = run(capsys, *line)
        assert (code, out, err.count("\n")) == (1, "", 1) and "the gzip stream holds too many bytes" in err


def test_what_windows_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A byte order mark and line ends."""
    path = tmp_path / "m.txt"
    path.write_bytes(b"\xef\xbb\xbf" + MESSAGE.hex().encode() + b"\r\n")
    assert json.loads(run(capsys, "decode", "FindCoordinatorRequest", "3", path)[1]) == {"key": "grp", "keyType": 1}
    path.write_bytes(b'\xef\xbb\xbf{"key": "grp",\r\n "keyType": 1}\r\n')
    assert run(capsys, "encode", "FindCoordinatorRequest", "3", path)[1] == MESSAGE.hex() + "\n"


def test_a_closed_standard_input(tmp_path: Path) -> None:
    for arguments in (("decode", "MetadataRequest", "0"), ("log", "verify", "-"), ("frame",)):
        line = f"{sys.executable} -m kwire {' '.join(arguments)} <&-"
        done: Any = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=ROOT, check=False)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr


def json_lines(count: int) -> bytes:
    return b"".join(b'{\n "unionName": "u%d",\n\n "x": [1,\n  2]} {"unionName": "v"}\n' % at for at in range(count))


def test_json_values_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """However the input is cut, the values and their lines are the same."""
    data = b"\xef\xbb\xbf" + json_lines(20) + b" 5\n\n 6"
    whole = list(cli_messages._values(io.BytesIO(data)))
    assert len(whole) == 42 and whole[2][0] == "-, line 6" and whole[-2:] == [("-, line 101", 5), ("-, line 103", 6)]
    for size in (1, 7, 40, 100):
        monkeypatch.setattr(cli_messages, "_FIRST_READ", size)
        assert list(cli_messages._values(io.BytesIO(data))) == whole
        with pytest.raises(click.ClickException, match="line 101: invalid JSON"):
            list(cli_messages._values(io.BytesIO(data.replace(b" 5", b"]5"))))
        with pytest.raises(click.ClickException, match="line 101: invalid JSON"):
            list(cli_messages._values(io.BytesIO(data.replace(b" 5", b"{5"))))


@pytest.mark.parametrize(("arguments", "reason"), [
    ("decode MetadataRequest 12 --from raw", "the input holds too many bytes for one message"),
    ("decode MetadataRequest 12", "a line holds too many bytes"),
    ("decode MetadataRequest 12 --from base64", "a line holds too many bytes"),
    ("encode MetadataRequest 12", "a line holds too many bytes"), ("frame --from hex", "a line holds too many bytes"),
    ("frame --from raw", "4 bytes needed"),
])  # fmt: skip
def test_an_input_that_never_ends(
    arguments: str, reason: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.cli.input_file.MOST_HELD", 1 << 20)
    code, out, err = run(capsys, *arguments.split(), "/dev/zero")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert reason in err


@pytest.mark.parametrize("reader", [input_file.whole, lambda file: list(input_file.lines(file))])
def test_input_without_an_end(monkeypatch: pytest.MonkeyPatch, reader: Any) -> None:
    monkeypatch.setattr(input_file, "MOST_HELD", 3 << 20)
    with open("/dev/zero", "rb") as endless, pytest.raises(LimitError, match="limit 3145728"):
        reader(endless)


def test_a_wrong_file_can_be_pickled() -> None:
    error = WrongFileError("an index")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), str(other)) == (WrongFileError, "an index")


@pytest.mark.parametrize("arguments", [("decode", "FindCoordinatorRequest", "3"), ("frame",)], ids=" ".join)
def test_standard_input_that_does_not_wait(arguments: tuple[str, ...]) -> None:
    """A pipe without bytes yet, which its maker does not let wait (O_NONBLOCK), is not at its end."""
    line = (MESSAGE if arguments[0] == "decode" else FRAME).hex().encode() + b"\n"
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    process = subprocess.Popen(
        [sys.executable, "-m", "kwire", *arguments], stdin=reader, stdout=subprocess.PIPE, cwd=ROOT)
    os.write(writer, line)
    assert process.stdout is not None
    with process, process.stdout as output:
        while not os.get_blocking(reader) and process.poll() is None:  # until it reads
            time.sleep(0.01)
        os.close(reader)
        os.write(writer, line)
        os.close(writer)
        assert len(output.readlines()) == 2
    assert process.returncode == 0
