"""Output files of commands: written completely or not at all, and no file of the user is destroyed."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from resource import RLIMIT_FSIZE, setrlimit
from struct import pack
from typing import Any

import pytest

from kwire import output
from kwire.cli import main
from kwire.output import Access, give_access, new_file, new_folder, scratch_folder
from kwire.pages import site
from tests.capture.making import Talk, hello, welcome, write_pcap
from tests.capture.test_hostile import frame_files
from tests.cli.test_log import ROOT, process, run
from tests.storage.making import batch, producer_snapshot, write_segment

Files = dict[str, Path]
# what writes -> (the ending of its file, how that begins, what it reads, its arguments for an input and an output)
WRITERS: dict[str, tuple[str, bytes, str, Callable[[object, object], tuple[object, ...]]]] = {
    "parquet": ("parquet", b"PAR1", "segment", lambda source, out: ("log", "to-parquet", source, "-o", out)),
    "plot": ("svg", b"<?xml", "segment", lambda source, out: ("log", "stats", source, "--plot", out)),
    "whatif": ("svg", b"<?xml", "segment",
               lambda source, out: ("log", "whatif", source, "--codec", "none", "--plot", out)),
    "snapshot": ("checkpoint", bytes(8), "snapshot",
                 lambda source, out: ("snapshot", "downgrade", source, out, "--metadata", "4.1-IV0", "--unsafe")),
    "html": ("html", b"<!doctype", "capture", lambda source, out: ("audit", source, "--to", "4.4", "--html", out)),
}  # fmt: skip
each_writer = pytest.mark.parametrize("writer", WRITERS)


@pytest.fixture
def inputs(tmp_path: Path, golden: Path) -> Files:
    """A segment, a capture and a snapshot, each in a folder of its own."""
    (tmp_path / "captures").mkdir()
    (tmp_path / "snapshots").mkdir()
    snapshot = next(golden.glob("data/kafka-4.3.0/data1/__cluster_metadata-0/*255-*.checkpoint"))
    talk = Talk().open().exchange(hello(), welcome())
    return {
        "segment": write_segment(tmp_path / "t-0", 0, [batch(3 * at) for at in range(200)]),
        "capture": write_pcap(tmp_path / "captures" / "a.pcap", talk.bytes()),
        "snapshot": Path(shutil.copy(snapshot, tmp_path / "snapshots")),
    }


def partials(folder: Path) -> list[Path]:
    """What is half-written, below a folder."""
    return [path for path in folder.rglob("*") if "partial" in path.name]


@each_writer
@pytest.mark.parametrize("way", ["link", "symlink", "relative"])
def test_an_input_is_never_written_over(
    writer: str, way: str, inputs: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    ending, _, kind, arguments = WRITERS[writer]
    source = inputs[kind]
    source = source.rename(source.with_name(f"{source.stem}.log.{ending}"))
    content, out = source.read_bytes(), tmp_path / f"out.{ending}"
    if way == "link":
        os.link(source, out)
    elif way == "symlink":
        out.symlink_to(source)
    else:
        monkeypatch.chdir(tmp_path)
        out = Path(source.parent.name, "..", source.parent.name, source.name)
    for force, reason in (((), "kwire: "), (("--force",), "is an input of this command, not overwritten")):
        code, _, err = run(capsys, *arguments(source, out), *force)
        assert (code, err.count("\n")) == (2, 1) and reason in err and str(out) in err
        assert source.read_bytes() == content and not partials(tmp_path)
    assert out.is_symlink() == (way == "symlink") and os.path.samefile(out, source)


@pytest.mark.quick
def test_what_stands_beside_an_input_is_not_written_over(
    inputs: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The indexes of a segment, and the other file of a pair."""
    index = inputs["segment"].with_suffix(".index")
    content = index.read_bytes()
    code, _, err = run(capsys, "log", "to-parquet", inputs["segment"], "-o", index, "--force")
    assert (code, err) == (2, f"kwire: {index}: is an input of this command, not overwritten\n")
    assert content and index.read_bytes() == content
    frame_files(tmp_path)
    data = tmp_path / "made.bin.gz"
    content = data.read_bytes()
    code, _, err = run(capsys, "audit", tmp_path / "made.jsonl.gz", "--to", "4.4", "--html", data, "--force")
    assert (code, err) == (2, f"kwire: {data}: is an input of this command, not overwritten\n")
    assert data.read_bytes() == content


@pytest.mark.parametrize("command", [
    "log export {} --to csv -o -", "log salvage {} -", "log show {}", "log show {} --batches", "log show {} --arrow",
    "log dump {}", "log ls {}", "log stats {}", "log verify {}", "log whatif {}", "frame {}",
    "decode FetchRequest 4 {}", "audit --to 4.4 {}", "snapshot show {}",
])  # fmt: skip
def test_an_input_is_not_appended_to_as_standard_output(command: str, inputs: Files) -> None:
    source = inputs["snapshot" if command.startswith("snapshot") else "segment"]
    content = source.read_bytes()
    words = [sys.executable, "-m", "kwire", *command.replace("{}", str(source)).split()]
    with source.open("ab") as out:
        done = subprocess.run(words, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (  # 1 as kafka-dump-log
        1 if "dump" in command else 2, "kwire: standard output: is an input of this command, not written to\n")
    assert source.read_bytes() == content


@pytest.mark.parametrize(("command", "target"), [
    *((f"log {command}", f"t-0/0.{kind}") for command in ("show t-0/0.log", "stats t-0", "verify t-0", "ls t-0")
      for kind in ("index", "timeindex", "snapshot")),
    ("log whatif t-0 --codec none", "t-0/0.index"), ("log export t-0 -o - --to csv", "t-0/0.index"),
    ("log show t-0/0.log --committed", "t-0/200.log"), ("log dump t-0/0.timeindex", "t-0/0.log"),
    ("log dump t-0/0.log u-0/0.log", "u-0/0.log"), ("log show t-0/0.index u-0", "u-0/0.log"),
    ("log show u-0 t-0/0.index", "t-0/0.index"), ("log salvage t-0/0.log", "t-0/0.log"),
    ("log salvage . --json", "t-0/0.log"), ("log salvage . --json", "v-0/0.log"),
    ("audit made.jsonl.gz --to 4.4", "made.bin.gz"),
    ("storage info -c node.properties", "node.properties"), ("storage @arguments", "arguments"),
    ("storage format -c node.properties -t AAAAAAAAAAAAAAAAAAAAAQ --json", "node.properties"),
    ("versions --bootstrap-server localhost:1 --command-config client.properties", "client.properties"),
    ("features --bootstrap-server localhost:1 --command-config client.properties describe", "client.properties"),
])  # fmt: skip
def test_what_is_read_beside_an_input_is_not_appended_to_as_standard_output(
    command: str, target: str, tmp_path: Path
) -> None:
    """Indexes, other segments, the next file of several, the other file of a pair, configurations."""
    for folder, base in (("t-0", 0), ("t-0", 200), ("u-0", 0)):
        write_segment(tmp_path / folder, base, [batch(base + 3 * at) for at in range(20)])
    producer_snapshot(tmp_path / "t-0", 0, {})
    (tmp_path / "v-0").symlink_to(tmp_path / "u-0")
    frame_files(tmp_path)
    (tmp_path / "node.properties").write_text(
        f"node.id=1\nprocess.roles=broker\nlog.dirs={tmp_path}/log\ncontroller.quorum.voters=2@localhost:1\n"
        "controller.listener.names=CONTROLLER\n")
    (tmp_path / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    (tmp_path / "arguments").write_text("info\n-c\nnode.properties\n")
    full = [re.sub(r"(?<=/)\d+(?=\.)", lambda found: found[0].zfill(20), text) for text in (target, *command.split())]
    path = tmp_path / full[0]
    content = path.read_bytes()
    with path.open("ab") as out:
        done = subprocess.run([sys.executable, "-m", "kwire", *full[1:]], stdout=out, stderr=subprocess.PIPE, text=True,
                              check=False, cwd=tmp_path)
    assert path.read_bytes() == content
    assert done.returncode in (1, 2)
    assert done.stderr.endswith("standard output: is an input of this command, not written to\n")


@pytest.mark.parametrize("name", ["out.log", "out.index", "out.snapshot"])
@pytest.mark.parametrize("command", ["log show {}.log", "log salvage .", "log dump {}.log", "log ls {}.log"])
def test_standard_output_may_be_another_file_of_the_folder_that_is_read(
    command: str, name: str, tmp_path: Path
) -> None:
    """out.log is no segment of a broker: its name is no offset."""
    write_segment(tmp_path, 0, [batch(0)])
    with (tmp_path / name).open("wb") as out:
        words = [sys.executable, "-m", "kwire", *command.replace("{}", "0".zfill(20)).split(), "--json"]
        done = subprocess.run(words, stdout=out, stderr=subprocess.PIPE, text=True, check=False, cwd=tmp_path)
    assert "not written to" not in done.stderr


@pytest.mark.quick
def test_a_producer_snapshot_is_not_written_over_by_committed_records(
    inputs: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = producer_snapshot(inputs["segment"].parent, 600, {})  # at the end of the log, where no segment begins
    content = snapshot.read_bytes()
    code, _, err = run(capsys, "log", "to-parquet", "--committed", inputs["segment"].parent, "-o", snapshot, "--force")
    assert (code, err) == (2, f"kwire: {snapshot}: is an input of this command, not overwritten\n")
    assert snapshot.read_bytes() == content


@each_writer
def test_a_file_that_is_there_is_kept_unless_forced(
    writer: str, inputs: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ending, begins, kind, arguments = WRITERS[writer]
    out = tmp_path / f"out.{ending}"
    out.write_bytes(b"mine")
    out.chmod(0o640)
    code, _, err = run(capsys, *arguments(inputs[kind], out))
    assert (code, err) == (2, f"kwire: {out}: File exists (--force replaces it)\n")
    assert out.read_bytes() == b"mine"
    assert run(capsys, *arguments(inputs[kind], out), "--force")[0] == 0
    assert out.read_bytes().startswith(begins) and stat.S_IMODE(out.stat().st_mode) == 0o640
    assert not partials(tmp_path)


@each_writer
def test_a_symbolic_link_is_followed(
    writer: str, inputs: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To a file that is not there yet, then to the same one, which is."""
    ending, begins, kind, arguments = WRITERS[writer]
    target, link = tmp_path / "far" / "target", tmp_path / f"link.{ending}"
    target.parent.mkdir()
    link.symlink_to(Path("far", "target"))
    assert run(capsys, *arguments(inputs[kind], link))[0] == 0
    assert link.is_symlink() and target.read_bytes().startswith(begins)
    target.write_bytes(b"old")
    assert run(capsys, *arguments(inputs[kind], link))[0] == 2
    assert target.read_bytes() == b"old"
    assert run(capsys, *arguments(inputs[kind], link), "--force")[0] == 0
    assert link.is_symlink() and target.read_bytes().startswith(begins)
    loop = tmp_path / f"loop.{ending}"
    loop.symlink_to(loop.name)
    assert run(capsys, *arguments(inputs[kind], loop), "--force")[0] == 2
    assert loop.is_symlink()


@each_writer
def test_a_device_and_a_pipe_stay_what_they_are(
    writer: str, inputs: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By links and in a folder of ours, so that a failure here breaks nothing."""
    ending, begins, kind, arguments = WRITERS[writer]
    null, full, pipe = (tmp_path / f"{name}.{ending}" for name in ("null", "full", "pipe"))
    null.symlink_to(os.devnull)
    full.symlink_to("/dev/full")
    os.mkfifo(pipe)
    for force in ((), ("--force",)) if writer == "html" else ((),):
        assert run(capsys, *arguments(inputs[kind], null), *force)[0] == 0
        assert null.is_symlink() and null.is_char_device()
        code, _, err = run(capsys, *arguments(inputs[kind], full), *force)
        assert (code, err) == (1, f"kwire: {full}: is a device or a socket, not written to\n")
        assert full.is_symlink() and full.is_char_device()
        read: list[bytes] = []
        reader = threading.Thread(target=lambda read=read: read.append(pipe.read_bytes()), daemon=True)
        reader.start()
        assert run(capsys, *arguments(inputs[kind], pipe), *force)[0] == 0
        reader.join(60)
        assert read and read[0].startswith(begins) and pipe.is_fifo()


def test_an_open_file_that_was_deleted_is_not_replaced(tmp_path: Path) -> None:
    """As /dev/stdout may be: its name leads to `a (deleted)`, which would be another file."""
    with open(tmp_path / "a", "w+b") as file:
        (tmp_path / "a").unlink()
        name = f"/proc/self/fd/{file.fileno()}"
        if not os.path.exists(name):
            pytest.skip("the system has no /proc")
        for force in (False, True):
            with pytest.raises(OSError, match="file that was deleted"), new_file(name, force=force):
                raise AssertionError
        assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", ["-", "stdout"])
def test_standard_output(name: str, inputs: Files, tmp_path: Path) -> None:
    """A pipe, and a file that the shell opened; by a link like /dev/stdout, but one of ours, so that it may break."""
    out = name if name == "-" else str(tmp_path / name)
    if name != "-":
        (tmp_path / name).symlink_to("/proc/self/fd/1")
    command = [sys.executable, "-m", "kwire", "log", "to-parquet", str(inputs["segment"]), "-o", out]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(b"PAR1") and ran.stdout.endswith(b"PAR1")
    with open(tmp_path / "redirected", "wb") as file:
        ran = subprocess.run([*command, "--force"], cwd=ROOT, stdout=file, stderr=subprocess.PIPE, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "redirected").read_bytes().endswith(b"PAR1")
    assert name == "-" or (tmp_path / name).is_symlink()


@each_writer
def test_a_dash_is_standard_output_alone(
    writer: str, inputs: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:  # fmt: skip
    """Nothing else is printed there; a terminal and --json are refused, as is a name that is a URL."""
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    _, begins, kind, arguments = WRITERS[writer]
    line = [str(one) for one in arguments(inputs[kind], "-")]
    begins, ends = (b"\x89PNG", b"IEND\xaeB`\x82") if "--plot" in line else (begins, b"")
    assert main(line) == 0
    out, err = capsysbinary.readouterr()
    assert out.startswith(begins) and out.endswith(ends) and err.count(b"\n") <= 3
    assert main([*line, "--json"]) == 2 and capsysbinary.readouterr().out == b""
    if writer != "html":  # which is text
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        assert main(line) == 2
        out, err = capsysbinary.readouterr()
        assert out == b"" and b"redirect standard output" in err and err.count(b"\n") == 1
    url = [str(one) for one in arguments(inputs[kind], "s3://user:secret@bucket/x.svg")]
    assert main(url) == 2
    err = capsysbinary.readouterr().err
    assert b"s3://bucket/x.svg" in err and b"secret" not in err and err.count(b"\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_salvage_to_standard_output_stopped_as_its_folder_is_made(
    number: int, code: int, inputs: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, make = tmp_path / "temporary", os.mkdir
    folder.mkdir()

    def stopped(path: str, *mode: int) -> None:
        make(path, *mode)
        if Path(path).parent == folder:
            signal.raise_signal(number)

    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(os, "mkdir", stopped)
    assert main(["log", "salvage", str(inputs["segment"]), "-"]) == code
    assert not list(folder.iterdir())


def test_salvage_to_standard_output(inputs: Files, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    source = inputs["segment"]
    content = source.read_bytes()
    with source.open("ab") as file:
        file.write(b"\0" * 7 + b"torn")
    assert main(["log", "salvage", str(source), "-"]) == 1
    out, err = capsysbinary.readouterr()
    assert out == content and b"11 bytes lost" in err
    for arguments in ((str(source), "-", "--json"), (str(source.parent), "-")):
        assert main(["log", "salvage", *arguments]) == 2
        assert capsysbinary.readouterr().out == b""


@pytest.mark.parametrize("line", [
    ("protocol", "site", "-"), ("tap", "--listen", "127.0.0.1:0", "--target", "127.0.0.1:1", "--out", "-"),
])  # fmt: skip
def test_what_cannot_be_standard_output(
    line: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *line)
    assert (code, out, err.count("\n")) == (2, "", 1) and "standard output" in err
    assert not [*tmp_path.iterdir()]


@pytest.mark.quick
def test_a_socket_and_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match="not written to"), new_file(tmp_path / "s", force=True):
            pass
        assert (tmp_path / "s").is_socket()
    with pytest.raises(IsADirectoryError), new_file(tmp_path / "folder", force=True):
        pass
    with pytest.raises(IsADirectoryError, match="name of a folder"), new_file(f"{tmp_path}/none/"):
        pass
    with pytest.raises(FileNotFoundError), new_file(tmp_path / "none" / "out"):
        pass
    for force in (False, True):
        with pytest.raises(FileNotFoundError, match="is empty"), new_file("", force=force):
            pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "s"]


@contextmanager
def nobody() -> Iterator[None]:
    """As a user whom permissions bind, which root is not."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(mine)


@pytest.mark.quick
def test_a_folder_that_is_read_only() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "old").write_bytes(b"mine")
        folder.chmod(0o555)
        try:
            for out in ("new", "old"):
                with nobody(), pytest.raises(PermissionError), new_file(folder / out, force=True):
                    pass
            assert [path.name for path in folder.iterdir()] == ["old"] and (folder / "old").read_bytes() == b"mine"
        finally:
            folder.chmod(0o755)


@each_writer
@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk(writer: str, there: bool, inputs: Files, tmp_path: Path) -> None:
    """What is half-written goes, what was there stays, and the line names what could not be written."""
    ending, _, kind, arguments = WRITERS[writer]
    out = tmp_path / f"out.{ending}"
    if there:
        out.write_bytes(b"mine")
    options: dict[str, Any] = {"preexec_fn": lambda: setrlimit(RLIMIT_FSIZE, (1500, 1500))}
    done = process(*arguments(inputs[kind], out), *["--force"] * there, **options)
    assert (done.returncode, done.stderr) == (1, f"kwire: {out}: File too large\n")
    assert out.read_bytes() == b"mine" if there else not out.exists()
    assert not partials(tmp_path)


def test_a_full_disk_below_a_dataset(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)])
    out = tmp_path / "lake"
    options: dict[str, Any] = {"preexec_fn": lambda: setrlimit(RLIMIT_FSIZE, (10, 10))}
    done = process("log", "export", path, "--to", "csv", "--partition-by", "topic", "-o", out, **options)
    assert (done.returncode, done.stderr) == (1, f"kwire: {out}: File too large\n")
    assert not out.exists() and not partials(tmp_path)


HELD = """
import signal, sys
from kwire.cli import main
from kwire.storage import LogSegment

inner = LogSegment.column_batches

def held(self, *fields, **options):
    for piece in inner(self, *fields, **options):
        yield piece
        print("begun", flush=True)
        signal.pause()

LogSegment.column_batches = held
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("number", "code", "word"), [
    (signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated"),
    (signal.SIGHUP, 129, "the terminal was closed"),
])  # fmt: skip
def test_a_signal_leaves_nothing_half_written(
    number: signal.Signals, code: int, word: str, inputs: Files, tmp_path: Path
) -> None:
    out = tmp_path / "out.parquet"
    arguments = ["log", "to-parquet", str(inputs["segment"]), "-o", str(out), "--rows", "30"]
    with subprocess.Popen([sys.executable, "-c", HELD, *arguments], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        assert len(partials(tmp_path)) == 1 and not out.exists()
        running.send_signal(number)
        _, err = running.communicate(timeout=60)
    assert (running.returncode, err.lstrip()) == (code, f"kwire: {word}\n")  # click starts a new line after ^C
    assert not partials(tmp_path) and not out.exists()


def test_several_signals_at_once(inputs: Files, tmp_path: Path) -> None:
    """A shell sends SIGHUP twice, a service manager SIGTERM and SIGHUP: the second comes as the file is removed."""
    script = HELD.replace("sys.exit(main", """
import os, kwire.output
remove = kwire.output.remove
def slowly(path):
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP):
        os.kill(os.getpid(), number)
    remove(path)
kwire.output.remove = slowly
signal.pause = lambda: os.kill(os.getpid(), signal.SIGTERM)
sys.exit(main""")
    arguments = ["log", "to-parquet", str(inputs["segment"]), "-o", str(tmp_path / "out.parquet"), "--rows", "30"]
    done = subprocess.run([sys.executable, "-c", script, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (143, "kwire: terminated\n") and not partials(tmp_path)


@pytest.mark.quick
def test_a_signal_that_becomes_another_error(
    inputs: Files, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the import of a C extension is ended."""
    def imported(*arguments: Any, **options: Any) -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except SystemExit as error:
            raise SystemError("initialization failed") from error

    monkeypatch.setattr("kwire.storage.tables.record_tables.write_table", imported)
    assert run(capsys, "log", "export", inputs["segment"], "-o", "x.csv", "--force") == (143, "", "kwire: terminated\n")


@pytest.mark.quick
def test_ctrl_c_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is half-written is removed first."""
    left = [3]

    def interrupted(work: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: Any, **options: Any) -> None:
            left[0] -= 1
            if left[0] >= 0:
                raise KeyboardInterrupt
            work(*arguments, **options)
        return call

    monkeypatch.setattr(os, "unlink", interrupted(os.unlink))
    monkeypatch.setattr(shutil, "rmtree", interrupted(shutil.rmtree))
    with pytest.raises(KeyboardInterrupt), new_file(tmp_path / "x"):
        raise KeyboardInterrupt
    left[0] = 3
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "y") as folder:
        Path(folder, "z").touch()
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


@pytest.mark.quick
def test_what_replaces_a_private_file_is_private_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen, inner = tmp_path / "x", list[int](), os.chmod
    path.touch(0o600)

    def noted(descriptor: int, mode: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        inner(descriptor, mode)

    monkeypatch.setattr(os, "chmod", noted)
    with new_file(path, force=True) as file:
        file.write(b"x")
    assert seen == [0o600] and stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.quick
def test_what_replaces_a_private_folder_is_private_from_the_start(tmp_path: Path) -> None:
    """An empty one, as `mkdir -m 700 out` makes it."""
    path = tmp_path / "x"
    for mode in (0o700, 0o750, 0o500):
        path.mkdir()
        path.chmod(mode)
        with new_folder(path) as folder:
            Path(folder, "y").touch()
            assert stat.S_IMODE(Path(folder).stat().st_mode) == mode | 0o700
        assert stat.S_IMODE(path.stat().st_mode) == mode | 0o700 and (path / "y").exists()
        shutil.rmtree(path)


@pytest.mark.quick
@pytest.mark.parametrize(("mode", "left"), [(0o640, 0o600), (0o660, 0o600), (0o644, 0o644), (0o664, 0o644)])
def test_what_replaces_a_file_of_another_group(
    mode: int, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the group too; where that is not allowed its own group has no more than all others."""
    path = tmp_path / "x"
    path.touch(0o600)
    owner, group, asked = os.geteuid() + 1, path.stat().st_gid + 1, list[tuple[int, int]]()

    def chown(place: int | str, uid: int, gid: int) -> None:
        asked.append((uid, gid))
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", chown)
    give_access(str(path), Access(mode, owner, group, {}))
    assert asked == [(-1, group), (owner, -1)] and stat.S_IMODE(path.stat().st_mode) == left


@pytest.mark.quick
def test_an_access_control_list_is_kept(tmp_path: Path) -> None:
    """One by which the file's own group may do nothing, though its mode shows the rights of the group that is named."""
    path, whoever = tmp_path / "x", (1 << 32) - 1
    path.write_bytes(b"old")
    rights = [(1, 6, whoever), (4, 0, whoever), (8, 4, os.getegid() + 1), (16, 4, whoever), (32, 0, whoever)]
    wanted = pack("<I", 2) + b"".join(pack("<HHI", *one) for one in rights)
    try:
        os.setxattr(path, "system.posix_acl_access", wanted)
    except (AttributeError, OSError):
        pytest.skip("a system or a file system without access control lists")
    with new_file(path, force=True) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new" and os.getxattr(path, "system.posix_acl_access") == wanted
    (tmp_path / "y").touch(0o640)
    os.setxattr(tmp_path, "system.posix_acl_default", wanted)
    with new_file(tmp_path / "y", force=True):
        pass
    assert not os.listxattr(tmp_path / "y") and stat.S_IMODE((tmp_path / "y").stat().st_mode) == 0o640


@pytest.mark.quick
def test_the_handler_of_the_caller_comes_back(inputs: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert run(capsys, "log", "verify", inputs["segment"])[0] == 0
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["log", "verify", str(inputs["segment"])])))
    thread.start()  # where no handler may be set
    thread.join()
    assert codes == [0]


@pytest.mark.quick
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exception_of_any_kind(kind: type[BaseException], tmp_path: Path) -> None:
    out = tmp_path / "out"
    for there in (False, True):
        with pytest.raises(kind), new_file(out, force=True) as file:
            file.write(b"half")
            raise kind
        assert out.exists() == there and not partials(tmp_path)
        out.write_bytes(b"mine")
    assert out.read_bytes() == b"mine"


@pytest.mark.quick
@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_comes_meanwhile_is_kept(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without hard links too."""
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    out = tmp_path / "out"
    with pytest.raises(FileExistsError), new_file(out) as file:
        file.write(b"mine")
        out.write_bytes(b"theirs")
    assert out.read_bytes() == b"theirs" and not partials(tmp_path)
    out.unlink()
    with new_file(out) as file:
        file.write(b"mine")
    assert out.read_bytes() == b"mine" and not partials(tmp_path)


@pytest.mark.quick
@pytest.mark.parametrize("force", [True, False])
def test_it_is_on_disk_before_it_has_its_name(force: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, steps = tmp_path / "out", []

    def noted(name: str) -> None:
        inner = getattr(os, name)

        def step(*arguments: Any) -> None:
            what = "folder" if name == "fsync" and stat.S_ISDIR(os.fstat(arguments[0]).st_mode) else name
            steps.append((what, out.exists()))
            inner(*arguments)

        monkeypatch.setattr(os, name, step)

    for name in ("fsync", "link", "replace"):
        noted(name)
    with new_file(out, force=force) as file:
        file.write(b"content")
        assert partials(tmp_path) and not out.exists()
    assert steps == [("fsync", False), ("replace" if force else "link", False), ("folder", True)]


@pytest.mark.quick
def test_nobody_can_guess_where_it_is_written(
    inputs: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link that somebody put there under the name that it had before is not followed."""
    victim, out = tmp_path / "victim", tmp_path / "out.parquet"
    victim.write_bytes(b"mine")
    out.with_name("out.parquet.partial").symlink_to(victim)
    assert run(capsys, "log", "to-parquet", inputs["segment"], "-o", out)[0] == 0
    assert victim.read_bytes() == b"mine" and not out.is_symlink()


@pytest.mark.quick
def test_a_long_name(tmp_path: Path) -> None:
    """As long as a file system takes, in bytes."""
    out = tmp_path / ("\N{CJK UNIFIED IDEOGRAPH-4E00}" * 85)
    with new_file(out) as file:
        file.write(b"content")
    assert out.read_bytes() == b"content"


@pytest.mark.quick
def test_the_site_goes_only_where_nothing_else_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = list(islice(site._pages(), 3))
    monkeypatch.setattr(site, "_pages", lambda: iter(pages))
    out = tmp_path / "out"
    assert run(capsys, "protocol", "site", out)[0] == 0
    assert run(capsys, "protocol", "site", out)[0] == 0  # its own
    mine = tmp_path / "mine"
    (mine / "assets").mkdir(parents=True)
    (mine / "index.html").write_text("mine")
    code, _, err = run(capsys, "protocol", "site", mine)
    assert (code, err) == (2, f"kwire: {mine}: the folder is not empty (--force writes into it)\n")
    assert (mine / "index.html").read_text() == "mine" and not any((mine / "assets").iterdir())
    (mine / "notes.txt").write_text("mine")
    assert run(capsys, "protocol", "site", mine, "--force")[0] == 0
    assert (mine / "notes.txt").read_text() == "mine" and (mine / pages[0][0]).is_file()
    assert not partials(tmp_path)


@pytest.mark.parametrize("command", [
    ("salvage", "IN", "URL"), ("export", "IN", "-o", "URL"), ("export", "IN", "-o", "URL", "--partition-by", "topic"),
    ("to-parquet", "IN", "-o", "URL"),
], ids=" ".join)  # fmt: skip
@pytest.mark.parametrize("ending", ["csv", "log"])
def test_a_url_is_refused_without_its_secrets(
    command: tuple[str, ...], ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_segment(tmp_path / "t-0", 0, [batch(0)])
    more = ("--to", "csv") if command[0] == "export" else ()
    for url in (f"https://u:hunter2@h/x.{ending}?sig=SECRET", f"https://u:hunter2@h/x.{ending}",
                f"https://h/x.{ending}?sig=a@SECRET", f"https://h/x.{ending}#a@SECRET", f"https://u:hunter2?@h/.{ending}",
                f"https://u:hunter2#@h/x.{ending}?sig=SECRET", f"https://u:hunter2/x@h/x.{ending}?sig=a@SECRET"):
        names = {"IN": str(path), "URL": url}
        code, out, err = run(capsys, "log", *(names.get(one, one) for one in command), *more)
        assert (code, out) == (2, "") and "is a URL" in err and "hunter2" not in err and "SECRET" not in err


@pytest.mark.parametrize("command", [
    ("decode", "ApiVersionsRequest", "3", "URL"), ("frame", "URL"), ("storage", "info", "-c", "URL"),
    ("storage", "format", "-t", "x", "-c", "URL"),
    ("features", "--bootstrap-server", "127.0.0.1:1", "--command-config", "URL", "describe"),
    ("log", "stats", "IN", "--plot", "URL"), ("log", "export", "IN", "-o", "URL"), ("URL",), ("releases", "URL"),
    ("apis", "--release", "URL"), ("storage", "@URL"), ("storage", "URL"),
], ids=" ".join)  # fmt: skip
def test_a_url_in_an_error_is_shown_without_its_secrets(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write_segment(tmp_path / "t-0", 0, [batch(0)])) if "IN" in command else ""
    line = [one.replace("URL", "https://u:hunter2@h/x?sig=SECRET").replace("IN", path) for one in command]
    code, out, err = run(capsys, *line)
    shown = "".join((out + err).split())
    assert code in (1, 2) and "//h/x" in shown and "hunter2" not in shown and "SECRET" not in shown


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("command", ["releases", "log"])
def test_a_stream_that_takes_no_more(command: str, stream: str, unbuffered: str) -> None:
    """The codes of docs/exit-codes.md: Python itself would end with 120 and a second error."""
    arguments = [command] if stream == "stdout" else [command, "--nonsense"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kwire", *arguments], env=os.environ | {"PYTHONUNBUFFERED": unbuffered}, cwd=ROOT,
            text=True, check=False, **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | {stream: full}))
    if stream == "stdout":
        assert (done.returncode, done.stderr) == (1, "kwire: standard output: No space left on device\n")
    else:
        assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_does_not_wait_is_not_lost_without_a_word(unbuffered: str, inputs: Files) -> None:
    """A pipe that is full and does not block, as some parents make it: all of the output, or an error."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = subprocess.Popen(
        [sys.executable, "-m", "kwire", "log", "show", "--batches", "--json", str(inputs["segment"])], stdout=writer,
        stderr=subprocess.PIPE, env=os.environ | {"PYTHONUNBUFFERED": unbuffered}, cwd=ROOT, text=True)
    os.close(writer)
    with process, open(reader, "rb") as output:
        _, error = process.communicate()
        assert len(output.read().splitlines()) < 200
    assert process.returncode == 1
    assert error == "kwire: standard output: write could not complete without blocking\n"


@pytest.mark.quick
def test_ctrl_c_while_a_partial_folder_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole, calls = shutil.rmtree, []

    def rmtree(path: str, **keywords: Any) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt
        whole(path, **keywords)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    with pytest.raises(KeyboardInterrupt), scratch_folder(tmp_path / "x"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.quick
def test_a_file_that_has_its_name_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unlink(path: str) -> None:
        raise OSError(5, "Input/output error", path)

    monkeypatch.setattr(output.os, "unlink", unlink)
    with new_file(tmp_path / "x") as file:
        file.write(b"whole")
    assert (tmp_path / "x").read_bytes() == b"whole"


@pytest.mark.quick
def test_an_error_without_a_number_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(io.UnsupportedOperation, match=r"^seek$"), new_file(tmp_path / "x"):
        raise io.UnsupportedOperation("seek")


@pytest.mark.quick
def test_the_site_is_not_written_to_a_url(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (("protocol", "site"), ("fleet", "--data")):
        code, _, err = run(capsys, *command, "https://u:hunter2@h/x?sig=SECRET")
        assert (code, err) == (2, "kwire: https://h/x: is a URL: files are written to local paths only\n")
    assert not list(tmp_path.iterdir())
