"""docs/exit-codes.md, held by every command: 0, 1, 2, 130, 141; a failure is one line."""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import kwire
from kwire.cli import main, storage
from kwire.cli.root import root
from tests.capture.making import Talk, hello, welcome, write_pcap
from tests.cli.test_output import nobody
from tests.storage.making import batch, write_segment

pytestmark = pytest.mark.quick
TOOLS = ("log dump", "features", "storage")  # which have the codes of Kafka's own

# command -> {code: arguments that give it}; names in capitals are files of `files`
CASES: dict[str, dict[int, str]] = {
    "apis": {0: "", 1: "--release 9.9", 2: "extra"},
    "audit": {0: "CAPTURE --to 4.4", 1: "EMPTY_CAPTURE --to 4.4", 2: "SEGMENT --to 4.4"},
    "decode": {0: "FindCoordinatorRequest 3 HEX", 1: "FindCoordinatorRequest 3 TEXT",
               2: "FindCoordinatorRequest 3 FOLDER"},
    "encode": {0: "FindCoordinatorRequest 3 JSON", 1: "FindCoordinatorRequest 3 TEXT",
               2: "FindCoordinatorRequest 3 NONE"},
    "features": {0: "version-mapping", 1: "nonsense"},
    "frame": {0: "FRAME", 1: "TEXT", 2: "FRAME --api 3"},
    "log dump": {0: "SEGMENT", 1: "NONE.log"},
    "log export": {0: "SEGMENT -o NEW --to csv", 1: "DAMAGED -o NEW --to csv", 2: "SEGMENT -o NEW"},
    "log ls": {0: "SEGMENT", 2: "NONE"},
    "log salvage": {0: "SEGMENT", 1: "DAMAGED", 2: "NONE"},
    "log show": {0: "SEGMENT", 1: "DAMAGED", 2: "TEXT"},
    "log stats": {0: "SEGMENT", 1: "DAMAGED", 2: "TEXT"},
    "log to-parquet": {0: "SEGMENT -o NEW", 1: "DAMAGED -o NEW", 2: "SEGMENT -o TEXT"},
    "log verify": {0: "SEGMENT", 1: "DAMAGED", 2: "FOLDER"},
    "log whatif": {0: "SEGMENT --codec lz4", 1: "DAMAGED --codec lz4", 2: "SEGMENT --codec x"},
    "messages": {0: "fetch", 1: "--release 9.9", 2: "a b"},
    "protocol": {0: "3.9", 1: "9.9", 2: "3.9 --version 1"},
    "protocol diff": {0: "4.3 4.4", 1: "4.3 9.9", 2: "4.3"},
    "protocol site": {2: "-"},
    "releases": {0: "", 2: "extra"},
    "snapshot diff": {0: "SNAPSHOT SNAPSHOT", 1: "SNAPSHOT DAMAGED", 2: "SNAPSHOT NONE"},
    "snapshot downgrade": {0: "SNAPSHOT NEW --metadata 4.1-IV0 --unsafe", 1: "SNAPSHOT NEW --metadata nonsense",
                           2: "SNAPSHOT --metadata 4.1-IV0"},
    "snapshot show": {0: "SNAPSHOT", 1: "DAMAGED", 2: "NONE"},
    "storage feature-dependencies": {0: "--feature kraft.version=1", 1: "--feature x"},
    "storage format": {1: "-t x"},
    "storage info": {1: "-c NONE"},
    "storage random-uuid": {0: "", 1: "extra"},
    "storage version-mapping": {0: "", 1: "--release-version x"},
    "tap": {1: "--listen TAKEN --target 127.0.0.1:1 --out NEW", 2: "--listen 127.0.0.1:0 --target 127.0.0.1:1 --out -"},
    "versions": {1: "--bootstrap-server 127.0.0.1:1 --timeout 5", 2: "--bootstrap-server h:0"},
}  # fmt: skip


def leaves(group: click.Group, names: str = "") -> Iterator[str]:
    """The names of all commands that are no group."""
    with click.Context(group) as ctx:
        for name in group.list_commands(ctx):
            command = group.get_command(ctx, name)
            yield from leaves(command, f"{names}{name} ") if isinstance(command, click.Group) else [names + name]


@pytest.fixture
def files(tmp_path: Path, golden: Path) -> Iterator[dict[str, str]]:
    segment = write_segment(tmp_path / "t-0", 0, [batch(3 * at) for at in range(4)], indexes=False)
    data = bytearray(segment.read_bytes())
    data[80] ^= 1
    damaged = tmp_path / "damaged.log"
    damaged.write_bytes(data)
    request = kwire.messages.FindCoordinatorRequest(key="g", key_type=1)
    contents = {"HEX": kwire.encode(request, 3).hex(), "FRAME": kwire.encode_request(request, 3).hex(),
                "JSON": '{"key": "g", "keyType": 1}', "TEXT": "nonsense, and\nmore of it"}  # fmt: skip
    found = {"SEGMENT": str(segment), "DAMAGED": str(damaged), "FOLDER": str(tmp_path / "empty"),
             "NONE": str(tmp_path / "none"), "NEW": str(tmp_path / "new"),
             "SNAPSHOT": str(next(golden.glob("data/kafka-4.3.0/data1/__cluster_metadata-0/*255-*.checkpoint")))}
    (tmp_path / "empty").mkdir()
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
        found[name] = str(tmp_path / name)
    capture = write_pcap(tmp_path / "a.pcap", Talk().open().exchange(hello(), welcome()).bytes())
    found["CAPTURE"] = str(capture)
    found["EMPTY_CAPTURE"] = str(tmp_path / "b.pcap")
    (tmp_path / "b.pcap").write_bytes(capture.read_bytes()[:30])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found["TAKEN"] = f"127.0.0.1:{taken.getsockname()[1]}"
        yield found


def line(command: str, arguments: str, files: dict[str, str]) -> list[str]:
    words = arguments.split()
    return [*command.split(), *(re.sub(r"^[A-Z_]+(?=$|\.log$)", lambda name: files.get(name[0], name[0]), word)
                                for word in words)]


def test_every_command_is_here() -> None:
    of_storage = {f"storage {name}" for name in storage._COMMANDS}  # it reads its command line as Kafka's tool does
    assert set(CASES) <= set(leaves(root)) | {"protocol"} | of_storage
    page = (Path(__file__).parents[2] / "docs" / "exit-codes.md").read_text()
    assert re.findall(r"^\| (\d+) \|", page, re.M) == ["0", "1", "2", "129", "130", "141", "143"]


@pytest.mark.parametrize(("command", "code"), [(name, code) for name, codes in CASES.items() for code in codes])
def test_codes(command: str, code: int, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    found = main(line(command, CASES[command][code], files))
    out, err = capsys.readouterr()
    assert found == code, err
    assert "Traceback" not in err + out
    if code == 2:
        assert out == "" and err.startswith("kwire") and err.count("\n") == 1
    if code and not command.startswith(TOOLS):
        assert err.count("kwire") >= 1 or out  # it says what is wrong
    left = [path.name for path in Path(files["NEW"]).parent.iterdir() if "partial" in path.name]
    assert not left


@pytest.mark.parametrize("command", sorted({*leaves(root)}))
def test_an_unknown_option_and_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*command.split(), "--nonsense", "1"])
    out, err = capsys.readouterr()
    assert code == (1 if command.startswith(TOOLS) else 2) and "Traceback" not in err and "--nonsense" in out + err
    assert command.startswith(TOOLS) or err.count("\n") == 1
    assert main([*command.split(), "--help"]) == 0
    assert "usage:" in capsys.readouterr().out.lower()


@pytest.mark.parametrize("group", ["", "log", "snapshot", "protocol"])
def test_a_group_alone_prints_its_help(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(group.split()) == 0
    alone, err = capsys.readouterr()
    assert err == "" and alone.startswith("Usage: kwire") and alone.count("\n") > 5
    assert main([*group.split(), "--help"]) == 0
    assert capsys.readouterr().out == alone


@pytest.mark.parametrize(("arguments", "said"), [
    ("lgo", 'No such command \'lgo\' (did you mean "log"?)'), ("show x", '(did you mean "log show"?)'),
    ("shwo x", '(did you mean "log show"?)'), ("to_parquet x", '(did you mean "log to-parquet"?)'),
    ("log shoow x", '(did you mean "show"?)'), ("log to_parquet x", '(did you mean "to-parquet"?)'),
    ("log show x --jsno", "--json"), ("snapshot shw", "show"), ("protocol dif", '(did you mean "diff"?)'),
])  # fmt: skip
def test_a_slip_of_the_hand(arguments: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments.split()) in (1, 2)
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1


@pytest.mark.parametrize("command", [name for name in CASES if 0 in CASES[name]])
def test_an_interrupt(
    command: str, files: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    arguments = line(command, CASES[command][0], files)
    monkeypatch.setattr(click.Context, "invoke", interrupted)
    assert main(arguments) == 130
    out, err = capsys.readouterr()
    assert (out, err.strip()) == ("", "kwire: interrupted")


@pytest.mark.parametrize("command", [name for name in CASES if 0 in CASES[name]])
def test_a_reader_that_has_closed_the_output(
    command: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = line(command, CASES[command][0], files)
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8", closefd=False) as out:
        monkeypatch.setattr(sys, "stdout", out)
        code = main(arguments)
        monkeypatch.undo()
    os.close(writing)
    err = capfd.readouterr().err
    assert "Traceback" not in err and "Exception" not in err
    silent = ("log verify", "log salvage", "log to-parquet", "log export", "snapshot diff")
    assert code == (0 if command in silent else 141)


def test_what_no_one_expected(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """One line; with KWIRE_DEBUG the traceback."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("of a library\n\x1b[31m")

    monkeypatch.setattr("kwire.storage.reading.verify.verify_partition", broken)
    monkeypatch.delenv("KWIRE_DEBUG", raising=False)
    assert main(["log", "verify", files["SEGMENT"]]) == 1
    said = "kwire: unexpected RuntimeError: of a library \\x1b[31m (KWIRE_DEBUG=1 shows where)\n"
    assert capsys.readouterr().err == said
    monkeypatch.setenv("KWIRE_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(["log", "verify", files["SEGMENT"]])


READING = (
    "log show IN", "log stats IN", "log verify IN", "log to-parquet IN -o NEW", "log salvage IN", "log whatif IN",
    "audit IN --to 4.4", "snapshot show IN", "decode MetadataRequest 1 IN", "encode MetadataRequest 1 IN", "frame IN",
    "versions --bootstrap-server h:1 --command-config IN",
)  # fmt: skip


@pytest.mark.parametrize("arguments", READING)
def test_input_that_cannot_be_read(arguments: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No permission, a name that is too long, a loop of links."""
    import javaproperties  # noqa: F401 - which a user without permissions may not import

    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        locked = Path(folder, "locked.log")
        locked.write_bytes(batch(0))
        locked.chmod(0)
        loop = Path(folder, "loop.log")
        loop.symlink_to(loop)
        for path in (str(locked), "x" * 300 + ".log", str(loop)):
            with nobody():
                code = main([path if word == "IN" else str(tmp_path / "new") if word == "NEW" else word
                             for word in arguments.split()])
            out, err = capsys.readouterr()
            assert (code, err.count("\n")) == (2, 1) and path[-8:] in err and "Traceback" not in err, (path, err)
            assert out == "" or arguments == "log show IN"  # which has printed its columns


@pytest.mark.parametrize("command", ["show", "stats", "verify", "salvage", "whatif"])
def test_a_device(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", command, "/dev/zero"]) == 2
    assert capsys.readouterr() == ("", "kwire: /dev/zero: is a device, not a file of record batches\n")
