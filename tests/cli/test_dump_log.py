"""`kwire log dump` beside kafka-dump-log: kept texts, the tool itself, damage, JSON."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from struct import iter_unpack, pack
from typing import Any

import fsspec
import pytest

import kwire
from kwire.cli import main
from kwire.cli.dump_files import Output
from tests.cli import dump_records
from tests.cli.dump_records import SEGMENT
from tests.cli.test_log import run
from tools.kafka import tool
from tools.places import ROOT
from tools.places import golden as unpacked

RELEASE = "4.3.0"
SEGMENTS = (".log", ".checkpoint")


@cache
def kept() -> list[dict[str, Any]]:
    """The runs of the tool whose text is kept."""
    with open(unpacked() / "dump-log" / f"kafka-{RELEASE}.jsonl") as lines:
        return [json.loads(line) for line in lines]


def old_texts() -> list[Path]:
    return sorted((unpacked() / "old-brokers").glob("*/dump-*.txt"))


@cache
def content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@cache
def others() -> list[Path]:
    """The segments without a kept text, one for each content, relative to the golden folder."""
    root = unpacked()
    seen = {content(root / row["cwd"] / row["cmd"][2]) for row in kept() if "--print-data-log" in row["cmd"]}
    found = []
    for path in sorted(p for p in (root / "data").rglob("*") if p.suffix in SEGMENTS):
        if path.stat().st_size and content(path) not in seen:
            seen.add(content(path))
            found.append(path.relative_to(root))
    return found


def same(got: str, wanted: str) -> None:
    """Equal texts; the first line that differs is shown."""
    for mine, theirs in zip(got.split("\n"), wanted.split("\n"), strict=False):
        assert mine == theirs
    assert len(got) == len(wanted)


def dump(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from kwire.cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", program, "log", "dump", *map(str, arguments)],
                          cwd=cwd, capture_output=True, check=False)  # fmt: skip


def beside(release: str, cwd: Path, *arguments: str) -> None:
    """The tool and kwire say the same on stdout and stderr and end with the same code."""
    theirs = tool.run(release, "dump-log", *arguments, cwd=cwd)
    mine = dump(*arguments, "--as", release, cwd=cwd)
    same(mine.stdout.decode(), theirs.stdout.decode())
    same(mine.stderr.decode(), theirs.stderr.decode())
    assert mine.returncode == theirs.returncode


# kept texts


def test_there_are_enough() -> None:
    logs = {row["cmd"][2] for row in kept() if row["cmd"][2].endswith(".log")}
    assert (len(kept()), len(logs), len(old_texts())) == (105, 32, 8)
    assert len(others()) > 100


@pytest.mark.quick
@pytest.mark.parametrize("index", range(len(kept())), ids=lambda i: kept()[i]["stdout_file"][-7:-4])
def test_kept_texts(index: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    row = kept()[index]
    folder = unpacked() / row["cwd"]
    monkeypatch.chdir(folder)
    code, out, err = run(capsys, "log", "dump", *row["cmd"][1:])
    same(out, (unpacked() / "dump-log" / row["stdout_file"]).read_bytes().decode())
    there = row["stderr"].partition(" in /")[2].partition(f"/{row['cmd'][2]}")[0]
    assert err.replace(str(folder), f"/{there}") == row["stderr"]
    assert code == row["exit"]


@pytest.mark.quick
@pytest.mark.parametrize("text", old_texts(), ids=lambda path: f"{path.parent.name}-{path.stem.split('-', 2)[2]}")
def test_old_brokers(text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(text.parent)
    path = f"{text.stem.split('-', 2)[2]}/{SEGMENT}"
    code, out, _ = run(capsys, "log", "dump", "--files", path, "--print-data-log", "--deep-iteration")
    same(out, text.read_bytes().decode())
    assert code == 0


# the tool beside


def listed(suffixes: tuple[str, ...], paths: Iterable[Path]) -> str:
    return ",".join(str(path) for path in paths if path.suffix in suffixes)


@pytest.mark.java
@pytest.mark.parametrize(("release", "options"), [
    (RELEASE, ["--print-data-log"]), (RELEASE, ["--deep-iteration", "--max-bytes", "5000", "--skip-record-metadata"]),
    ("3.9.1", ["--print-data-log"]), ("3.3.2", ["--print-data-log", "--skip-record-metadata", "--max-bytes", "9000"]),
], ids=lambda given: given if isinstance(given, str) else given[-1].strip("-"))  # fmt: skip
def test_segments_beside_the_tool(release: str, options: list[str], golden: Path) -> None:
    beside(release, golden, *options, "--files", ",".join(map(str, others())))


@pytest.mark.java
def test_indexes_beside_the_tool(golden: Path) -> None:
    """Entries, findings; producer snapshots and aborted transactions of all releases."""
    paths = sorted(path.relative_to(golden) for path in (golden / "data").rglob("*") if path.is_file())
    filled = [path for path in paths if (golden / path).stat().st_size]
    beside(RELEASE, golden, "--files", listed((".index", ".timeindex", ".txnindex", ".snapshot"), filled))
    beside(RELEASE, golden, "--verify-index-only", "--files", listed((".index", ".timeindex"), filled))
    beside("3.9.1", golden, "--files", listed((".snapshot",), filled))
    beside("3.3.2", golden, "--files", listed((".snapshot", ".txnindex"), filled))


CLASSES = "org.apache.kafka.tools.api."


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("records")
    dump_records.write_all(root)
    return root


@pytest.mark.java
@pytest.mark.parametrize(("release", "folder", "options"), [
    (RELEASE, "remote", "--remote-log-metadata-decoder"), (RELEASE, "metadata", "--cluster-metadata-decoder"),
    (RELEASE, "offsets", "--offsets-decoder"), (RELEASE, "transactions", "--transaction-log-decoder"),
    (RELEASE, "text", "--value-decoder-class"),
    (RELEASE, "numbers",
     f"--key-decoder-class {CLASSES}IntegerDecoder --value-decoder-class {CLASSES}LongDecoder"),
    ("3.9.1", "old-transactions", "--transaction-log-decoder"), ("3.3.2", "old-offsets", "--offsets-decoder"),
    ("4.0.1", "remote", "--remote-log-metadata-decoder"),
])  # fmt: skip
def test_decoders_beside_the_tool(release: str, folder: str, options: str, records: Path) -> None:
    beside(release, records, "--files", f"{folder}/{SEGMENT}", *options.split())


# damage: texts and codes as of the tool (observed on 4.3.0)


@pytest.fixture
def segment(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a segment with its indexes; its .log has 54,766 bytes and begins with batches of 166 and 452."""
    for suffix in (".log", ".index", ".timeindex"):
        source = golden / f"data/kafka-4.3.0/data1/alpha-none-0/{0:020}{suffix}"
        (tmp_path / f"{0:020}{suffix}").write_bytes(source.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def change(folder: Path, suffix: str, at: int, data: bytes) -> str:
    """Bytes written into a file; its name."""
    path = folder / f"{0:020}{suffix}"
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)
    return path.name


def ended(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str], str]:
    code, out, err = run(capsys, "log", "dump", *arguments)
    return code, out.splitlines(), err


@pytest.mark.quick
@pytest.mark.parametrize(("at", "data", "code", "last", "error"), [
    (54766, bytes(17), 0, "Found 17 invalid bytes at the end of", ""),
    (54766, bytes(18), 1, "| offset: 515 ", "Found record size 0 smaller than minimum record overhead (14) in file"),
    (8, pack(">i", 10), 1, "Log starting", "Found record size 10 smaller than minimum record overhead (14) in file"),
    (8, pack(">i", -7), 1, "Log starting", "Found record size -7 smaller than minimum record overhead (14) in file"),
    (8, pack(">i", 2**31 - 1), 0, "Found 54766 invalid bytes at the end of", ""),
    (16, b"\3", 1, "Log starting", "magic is not 0, 1 or 2"),
    (57, pack(">i", -9), 1, "baseOffset: 0 lastOffset: 0 count: -9 ", "negative number of records"),
    (166 + 23, pack(">i", -9), 0, "| offset: 515 ", ""),
    (22, b"\6", 1, "Log starting", "Unknown compression type id: 6"),
    (57, pack(">i", 999), 1, "| offset: 0 ", "number of records exceeds what the bytes can hold"),
], ids=str)  # fmt: skip
def test_a_damaged_segment(
    segment: Path, capsys: pytest.CaptureFixture[str], at: int, data: bytes, code: int, last: str, error: str
) -> None:
    name = change(segment, ".log", at, data)
    found, lines, err = ended(capsys, "--files", name, "--deep-iteration")
    assert (found, err.count("\n")) == (code, 1 if error else 0)
    assert lines[-1].startswith(last) and error in err


@pytest.mark.quick
def test_a_wrong_checksum_is_shown(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = change(segment, ".log", 90, b"?")
    _, lines, _ = ended(capsys, "--files", name)
    assert [line.rpartition(" ")[2] for line in lines[2:5]] == ["false", "true", "true"]


@pytest.mark.quick
@pytest.mark.parametrize(("suffix", "data", "code", "out", "error"), [
    (".index", pack(">4i", 7, 0, 33, 3556), 0, ["offset: 7 position: 0", "offset: 33 position: 3556"],
     "Mismatches in :%s\n  Index offset: 7, log offset: 0\n"),
    (".index", pack(">6i", 5, 0, 9, 0, 5, 166), 0,
     ["offset: 5 position: 0", "offset: 9 position: 0", "offset: 5 position: 166"],
     "Mismatches in :%s\n  Index offset: 9, log offset: 0\n  Index offset: 5, log offset: 4\n"),
    (".index", pack(">2i", 0, 0) + bytes(80), 0, ["offset: 0 position: 0"], ""),
    (".index", b"abc", 0, [f"{0:020}.index is empty."], ""),
    (".index", pack(">2i", 32, 1 << 30), 1, [], "the index has position 1073741824, the log 54766 bytes"),
    (".index", pack(">2i", 32, -5), 1, [], "the index has position -5"),
    (".index", pack(">2i", 32, 54766), 1, [], "there is no whole batch in the 0 bytes from there on"),
    (".timeindex", pack(">qiqi", 5, 32, 7, 33), 0, ["timestamp: 5 offset: 32", "timestamp: 7 offset: 33"],
     "Found timestamp mismatch in :%s\n  Index timestamp: 5, log timestamp: 1700001101672\n"
     "  Index timestamp: 7, log timestamp: 1700001101693\n"),
    (".timeindex", pack(">qiqi", 1700001101672, 32, 1700001101672, 32), 0,
     ["timestamp: 1700001101672 offset: 32"] * 2, "Found out of order timestamp in :%s\n"
     "  Index timestamp: 1700001101672, Previously indexed timestamp: 1700001101672\n"),
    (".timeindex", pack(">qiqi", 5, 31, 6, 99999), 0, ["timestamp: 5 offset: 31", "timestamp: 6 offset: 99999"],
     "The following indexed offsets are not found in :%s\nIndexed offset: 31, found log offset: 32\n"
     "Indexed offset: 99999, found log offset: -1\n"),
])  # fmt: skip
def test_a_damaged_index(
    segment: Path, capsys: pytest.CaptureFixture[str], suffix: str, data: bytes, code: int, out: list[str], error: str
) -> None:
    name = f"{0:020}{suffix}"
    (segment / name).write_bytes(data)
    found, lines, err = ended(capsys, "--files", name)
    assert (found, lines) == (code, [f"Dumping {name}", *out])
    if code:
        assert error in err and err.count("\n") == 1
    else:
        assert err == error.replace("%s", f"{segment}/{name}")
    again, lines, other = ended(capsys, "--files", name, "--verify-index-only")
    assert (again, lines[1:], other) == (code, [line for line in out if "empty" in line], err)


@pytest.mark.quick
@pytest.mark.parametrize(("suffix", "data", "error"), [
    (".index", bytes(11), "Index file %s is corrupt, found 11 bytes which is neither positive nor a multiple of 8"),
    (".index", pack(">2i", -5, 9), "Corrupt index found, index file %s has non-zero size but the last offset is -5 "
     "which is less than the base offset 0"),
    (".timeindex", bytes(13),
     "Time index file %s is corrupt, found 13 bytes which is neither positive nor a multiple of 12"),
    (".timeindex", pack(">qiqi", 9, 1, 8, 2), "Corrupt time index found, time index file (%s) has non-zero size but "
     "the last timestamp is 8 which is less than the first timestamp 9"),
    (".timeindex", pack(">qi", 9, -90), "Corrupt time index found, time index file (%s) has non-zero size but the "
     "last offset is -90 which is less than the first offset 0"),
])  # fmt: skip
def test_a_failed_sanity_check(
    segment: Path, capsys: pytest.CaptureFixture[str], suffix: str, data: bytes, error: str
) -> None:
    name = f"{0:020}{suffix}"
    (segment / name).write_bytes(data)
    code, lines, err = ended(capsys, "--files", name, "--index-sanity-check")
    assert (code, lines, err) == (1, [f"Dumping {name}"], f"kwire: {error % f'{segment}/{name}'}\n")


@pytest.mark.quick
@pytest.mark.parametrize(("at", "data", "size", "error"), [
    (30, b"\xff", 56, "Snapshot is corrupt (CRC is no longer valid). Stored crc: "),
    (1, b"\2", 56, "Snapshot failed schema validation: Snapshot contained an unknown file version 2\n"),
    (0, b"", 50, "Snapshot failed schema validation: expected 1 entries of 46 bytes after the header of 10 bytes, "),
    (0, b"", 7, "Snapshot failed schema validation: "),
    (56, b"abc", 59, "Snapshot is corrupt (CRC is no longer valid). Stored crc: "),
])  # fmt: skip
def test_a_damaged_producer_snapshot(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], at: int, data: bytes, size: int, error: str
) -> None:
    """The tool goes on with the next file."""
    source = golden / f"data/kafka-4.3.0/data1/alpha-tx-0/{3:020}.snapshot"
    whole, path = source.read_bytes(), tmp_path / source.name
    assert len(whole) == 56
    path.write_bytes((whole[:at] + data + whole[at + len(data) :])[:size])
    code, lines, err = ended(capsys, "--files", f"{path},{source}")
    assert (code, lines[:2]) == (0, [f"Dumping {path}", f"Dumping {source}"])
    assert lines[2].startswith("producerId: ") and err.startswith(error) and err.count("\n") == 1


# arguments


@pytest.mark.quick
def test_a_glob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b-0", "a-0", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / SEGMENT).write_bytes(kwire.build_batch([(0, None, b"x")]))
    code, out, _ = ended(capsys, "[ab]-*")
    assert code == 0
    assert [line for line in out if line.startswith("Dumping")] == [
        f"Dumping {name}/{SEGMENT}" for name in ("a-0", "b-0")]


@pytest.mark.quick
@pytest.mark.parametrize(("arguments", "error"), [
    ([], 'Missing required argument "[files]"'), (["--files", ""], "Missing required argument"),
    (["--files", f"{9:020}.log"], "No such file or directory"), (["--files", "x.log"], "expected a base offset before"),
    (["--files", f"{0:020}.index", "--max-message-size", "-1"], "--max-message-size"),
    (["--no-such"], "kwire: No such option '--no-such'. (see kwire log dump --help)"),
    (["--files", SEGMENT, "--as", "2.8"], "the text of kafka-dump-log 2.8 is not known: expected 3.3 to"),
    (["--files", SEGMENT, "--as", "3.3", "--share-group-state-decoder"], "is not an option of kafka-dump-log 3.3"),
    (["--files", SEGMENT, "--value-decoder-class", "no.Such"], "unknown decoder class 'no.Such'"),
    (["--files", SEGMENT, "--key-decoder-class", "json:nothing"], "cannot be loaded"),
    (["--files", SEGMENT, "--value-decoder-class", "json:loads"], "decoder json:loads failed"),
    (["--files", SEGMENT, "--key-decoder-class", "json:decoder"], "is not callable"),
    (["--files", SEGMENT, "--value-decoder-class", f"{CLASSES}LongDecoder"], "expected 8 bytes of an integer, found 3"),
    (["--files", "leader-epoch-checkpoint"], "expected a name that ends in .log"),
    (["--files", "1-2.checkpoint"], "expected the name OFFSET-EPOCH.checkpoint"),
    (["nothing"], "nothing: No such file or directory"), (["nothing.log"], "nothing.log: No such file or directory"),
    (["x*.index"], "x*.index: matches no file"),
], ids=lambda given: "-".join(given)[-40:] if isinstance(given, list) else None)  # fmt: skip
def test_wrong_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str],
    error: str,
) -> None:  # fmt: skip
    """The tool's exit code for all of these is 1."""
    monkeypatch.chdir(tmp_path)
    Path(SEGMENT).write_bytes(kwire.build_batch([(0, None, b"\xff{}")]))
    for name in (f"{0:020}.index", "x.log", "leader-epoch-checkpoint"):
        Path(name).write_bytes(bytes(8))
    code, _, err = ended(capsys, *arguments)
    assert code == 1 and error in err and err.startswith("kwire") and err.count("\n") == 1


@pytest.mark.quick
def test_a_folder_without_segments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / f"{0:020}.index").write_bytes(bytes(8))
    assert ended(capsys, tmp_path) == (1, [], f"kwire: {tmp_path}: no log segments found\n")


@pytest.mark.quick
def test_options_as_kafka_parses_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = b'{"a": 1}'
    path = dump_records.write(tmp_path / "t-0", [(b"key", value)])
    wanted = ended(capsys, "--files", path, "--print-data-log")
    assert wanted[0] == 0 and wanted[1][-1].endswith('key: key payload: {"a": 1}')
    doubled = str(path).replace("/", "//")
    for arguments in (["-files", path, "-print-data-log"], [f"--files={doubled}", "--print"],
                      [path, "--offs", "--print"], [path.parent, "--print-data-log"], [path, "--value-decoder-class"],
                      [path, "--key-decoder-class", "kafka.serializer.StringDecoder"]):  # fmt: skip
        found = ended(capsys, *arguments)
        assert found[0] == 0 and found[1][:2] == wanted[1][:2]
        assert found == wanted or "--offs" in arguments
    assert ended(capsys, path, "--value-decoder-class", "json:loads")[1][-1].endswith("payload: {'a': 1}")
    default = ended(capsys, path, "--value-decoder-class", f"{CLASSES}DefaultDecoder")[1][-1]
    assert default.endswith(f"payload: 0x{value.hex()}")
    assert "--offsets-decoder" in run(capsys, "log", "dump", "--help")[1]


@pytest.mark.quick
def test_urls(capsys: pytest.CaptureFixture[str]) -> None:
    store = fsspec.filesystem("memory")
    folder = "memory://dump/t-0"
    data = b"".join(kwire.build_batch([(0, None, b"v")], base_offset=at) for at in (0, 5))
    store.pipe_file(f"{folder}/{SEGMENT}", data)
    store.pipe_file(f"{folder}/{0:020}.index", pack(">ii", 5, 0))
    wanted = ended(capsys, "--files", f"{folder}/{SEGMENT}", "--deep-iteration")
    assert wanted[0] == 0 and len(wanted[1]) == 6 and f" in {folder}/{SEGMENT}\n" in wanted[2]
    assert ended(capsys, folder, "--deep-iteration") == wanted
    assert ended(capsys, f"{folder}/{0:020}.index") == (
        0, [f"Dumping {folder}/{0:020}.index", "offset: 5 position: 0"],
        f"Mismatches in :{folder}/{0:020}.index\n  Index offset: 5, log offset: 0\n")  # fmt: skip
    code, _, err = ended(capsys, f"{folder}/{9:020}.log")
    assert code == 1 and err.startswith("kwire: ") and err.count("\n") == 1


@pytest.mark.quick
def test_unknown_files_are_ignored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, path = tmp_path / "partition.metadata", dump_records.write(tmp_path / "t-0", [(b"k", b"v")])
    code, lines, err = ended(capsys, "--files", f"{other},{path}")
    assert (code, err) == (0, f"Ignoring unknown file {other}\n")
    assert lines[:3] == [f"Dumping {other}", f"Dumping {path}", "Log starting offset: 0"]


# output


def rows(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    code, out, err = run(capsys, "log", "dump", "--json", *arguments)
    assert (code, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.quick
def test_json_of_a_segment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{5:020}.log"
    path.write_bytes(kwire.build_batch([(7, b"k", b"\xff", [("h", b"x")]), (8, None, None)], base_offset=5) + b"torn")
    batch, first, *more = rows(capsys, path, "--print-data-log")
    assert batch | {"crc": 0} == {
        "kind": "batch", "file": str(path), "position": 0, "size": 81, "magic": 2, "codec": "none", "base_offset": 5,
        "last_offset": 6, "count": 2, "partition_leader_epoch": -1, "crc": 0, "timestamp_type": "create",
        "attributes": 0, "base_timestamp": 7, "max_timestamp": 8,
        "is_transactional": False, "is_control": False, "delete_horizon": None, "producer_id": -1,
        "producer_epoch": -1, "base_sequence": -1, "last_sequence": -1, "is_valid": True,
    }  # fmt: skip
    assert first == {"kind": "finding", "file": str(path), "finding": "non_consecutive_offsets", "previous": -1,
                     "offset": 5}  # fmt: skip
    assert more[0] == {
        "kind": "record", "file": str(path), "offset": 5, "timestamp_type": "create", "timestamp": 7, "key_size": 1,
        "value_size": 1, "sequence": -1, "header_keys": ["h"], "key": "k", "payload": {"base64": "/w=="},
    }  # fmt: skip
    assert more[1]["payload"] is None
    assert more[2] == {"kind": "finding", "file": str(path), "finding": "invalid_bytes", "position": 81, "size": 4}


@pytest.mark.quick
def test_json_has_the_values_of_the_text(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object for each line; decoded records are the JSON that the text has."""
    data = golden / "data/kafka-4.3.0/data1"
    for name, option in (("__consumer_offsets-0", "--offsets-decoder"),
                         ("__transaction_state-1", "--transaction-log-decoder"),
                         ("__cluster_metadata-0", "--cluster-metadata-decoder")):  # fmt: skip
        path = data / name / SEGMENT
        _, lines, _ = ended(capsys, path, option)
        values = [row for row in rows(capsys, path, option) if row["kind"] != "finding"]
        assert len(values) == len(lines) - 2 > 10
        for row, line in zip(values, lines[2:], strict=True):
            if row["kind"] == "record" and "payload" in row:
                payload = line.partition(" payload: ")[2]
                assert row["payload"] == (payload if payload == "<DELETE>" else json.loads(payload))
            elif row["kind"] == "batch":
                assert f"position: {row['position']} " in line and f"crc: {row['crc']} " in line


@pytest.mark.quick
def test_json_of_the_other_files(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = golden / "data/kafka-4.3.0/data1"
    index = data / f"alpha-none-0/{0:020}.index"
    assert rows(capsys, index)[0] == {"kind": "offset_index_entry", "file": str(index), "offset": 32, "position": 1984}
    times = index.with_suffix(".timeindex")
    assert rows(capsys, times)[0] == {"kind": "time_index_entry", "file": str(times), "timestamp": 1700001101672,
                                      "offset": 32}  # fmt: skip
    assert rows(capsys, times, "--verify-index-only") == []
    assert rows(capsys, times, "--index-sanity-check") == [{"kind": "sanity_check", "file": str(times), "passed": True}]
    [producer, *_] = rows(capsys, data / f"alpha-tx-0/{3:020}.snapshot")
    assert producer["kind"] == "producer" and producer["producer_epoch"] >= 0
    [aborted, *_] = rows(capsys, data / f"alpha-tx-0/{3:020}.txnindex")
    assert aborted["kind"] == "aborted_transaction" and aborted["last_offset"] == 7


@pytest.mark.quick
def test_json_of_integers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dump_records.write(tmp_path / "n-0", dump_records.numbers())
    options = ["--key-decoder-class", f"{CLASSES}IntegerDecoder", "--value-decoder-class", f"{CLASSES}LongDecoder"]
    found = [(row["key"], row["payload"]) for row in rows(capsys, path, *options) if row["kind"] == "record"]
    assert found == [(5, -1), (-(2**31), 0), (None, None)]


@pytest.mark.quick
def test_findings_past_the_limit_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kwire.cli.dump_files._MOST_FINDINGS", 2)
    path = tmp_path / SEGMENT
    path.write_bytes(b"".join(kwire.build_batch([(0, None, None)], base_offset=at) for at in (5, 9, 3, 7, 1)))
    code, _, err = ended(capsys, path, "--deep-iteration")
    wanted = "-1 is followed by 5\n  5 is followed by 9\n  and 3 more\n"
    assert (code, err) == (0, f"Non-consecutive offsets in {path}\n  {wanted}")
    monkeypatch.setattr("kwire.cli.dump_files._MOST_FINDINGS", 9)
    listed = ended(capsys, path, "--deep-iteration")[2].splitlines()[1:]
    assert [line.split()[0] for line in listed] == ["-1", "3", "5", "7", "9"]
    old = ended(capsys, path, "--deep-iteration", "--as", "4.2")[2].splitlines()[1:]
    assert [line.split()[0] for line in old] == ["7", "3", "9", "5"]


@pytest.mark.quick
def test_json_of_odd_numbers_and_unknown_control_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dump_records.write(tmp_path / "m-0", dump_records.metadata())
    values = {row["payload"]["data"].get("value") for row in rows(capsys, path, "--cluster-metadata-decoder")
              if row["kind"] == "record" and isinstance(row["payload"], dict)}  # fmt: skip
    assert {"NaN", "Infinity", "-Infinity", 1e7} <= values
    control = dump_records.write(tmp_path / "c-0", [(pack(">hh", 0, 77), b"\0\0")], control=True)
    assert rows(capsys, control, "--deep-iteration")[1]["control_type"] == 77
    assert ended(capsys, control, "--deep-iteration")[1][-1].endswith(" headerKeys: [] controlType: UNKNOWN(77)")
    bad = dump_records.write(tmp_path / "b-0", [(b"\0", b"\0\0")], control=True)
    code, _, err = ended(capsys, bad, "--deep-iteration")
    assert code == 1 and "control record key: expected at least 4 bytes, got 1" in err and err.count("\n") == 1


@pytest.mark.quick
def test_a_terminal_gets_no_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for screen, wanted in ((Terminal(), "a\\x1b[2Jé\n"), (io.StringIO(), "a\x1b[2Jé\n")):
        monkeypatch.setattr(sys, "stdout", screen)
        with Output(False) as out:
            out.line("a\x1b[2Jé")
        assert screen.getvalue() == wanted


@pytest.mark.quick
def test_memory_does_not_grow_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, batch = tmp_path / SEGMENT, 16 << 10
    with open(path, "wb") as file:
        for at in range(600):
            file.write(kwire.build_batch([(at, None, bytes(batch))], base_offset=7 * at))
    errors = io.StringIO()
    monkeypatch.setattr(sys, "stderr", errors)
    with open("/dev/null", "w") as nothing:
        monkeypatch.setattr(sys, "stdout", nothing)
        tracemalloc.start()
        try:
            assert main(["log", "dump", str(path), "--print-data-log"]) == 0
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < path.stat().st_size // 2
    assert errors.getvalue().count(" is followed by ") == 599


@pytest.mark.quick
def test_a_closed_pipe(tmp_path: Path) -> None:
    path = dump_records.write(tmp_path / "t-0", [(None, b"x" * 100)] * 5000)
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from kwire.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "log", "dump", str(path), "--print-data-log"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline().startswith(b"Dumping ")
    process.stdout.close()
    assert (process.stderr.read(), process.wait()) == (b"", 141)
    process.stderr.close()


def test_entries_are_whole() -> None:
    """The golden index that the damage tests begin with."""
    data = (unpacked() / f"data/kafka-4.3.0/data1/alpha-none-0/{0:020}.index").read_bytes()
    assert next(iter_unpack(">ii", data)) == (32, 1984)
