"""`kwire log dump` on damaged files: no failure but one line, and the text of kafka-dump-log."""

from __future__ import annotations

import io
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.cli import main
from tests.cli import dump_records
from tools.kafka import maven, releases
from tools.places import ROOT
from tools.places import golden as unpacked

RELEASE = "4.3.0"
DECODERS = {
    "__consumer_offsets": "--offsets-decoder", "offsets": "--offsets-decoder", "transactions":
    "--transaction-log-decoder", "__transaction_state": "--transaction-log-decoder", "metadata":
    "--cluster-metadata-decoder", "__cluster_metadata": "--cluster-metadata-decoder", "remote":
    "--remote-log-metadata-decoder", "__share_group_state": "--share-group-state-decoder",
}  # fmt: skip
SIDES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
MORE = [["--json"], ["--verify-index-only"], ["--index-sanity-check"], ["--skip-record-metadata"], ["--as", "3.9"],
        ["--as", "3.3"], ["--max-bytes", "700"]]  # fmt: skip
# texts with numbers that only Java computes, or of damage that kwire sees earlier: magic bytes that Java reads as 2,
# sizes in entries of magic 0 and 1 that are not true, negative versions
ONLY_JAVA = (b"Varint is too long", b"newLimit > capacity", b"had invalid length", b"tagged fields exceed",
             b"LeaderChange", b" magic: ", b" isValid: false crc: ", b'KRaftVoters {"version":-')  # fmt: skip


def seeds(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    dump_records.write_all(folder)
    found = [path for path in (unpacked() / "data").glob("*/data1/*/*") if path.suffix in suffixes]
    return [path for path in sorted(found) if 0 < path.stat().st_size < 30_000] + sorted(folder.glob("[!o]*/*.log"))


def damaged(chance: random.Random, data: bytearray) -> bytearray:
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        at = chance.randrange(min(len(data), chance.choice([200, len(data)])) or 1)
        kind = chance.random()
        if kind < 0.6:
            data[at : at + 1] = bytes([chance.choice([0, 1, 2, 127, 128, 255, chance.randrange(256)])])
        elif kind < 0.7:
            del data[at : at + chance.randrange(1, 40)]
        elif kind < 0.8:
            data[at:at] = chance.randbytes(chance.randrange(1, 40))
        elif kind < 0.9:
            data[at : at + 4] = chance.choice([b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(4), b"\x80\0\0\0"])
        else:
            del data[at + 1 :]
    return data


def cases(chance: random.Random, folder: Path, suffixes: tuple[str, ...], count: int) -> Iterator[list[str]]:
    """Arguments for damaged files that are written into a folder each."""
    paths = seeds(folder / "seeds", suffixes)
    for number in range(count):
        path = chance.choice(paths)
        (folder / str(number)).mkdir()
        for beside in (path.with_suffix(suffix) for suffix in SIDES):
            if beside.exists() and path.suffix != ".log":
                (folder / str(number) / beside.name).write_bytes(beside.read_bytes())
        (folder / str(number) / path.name).write_bytes(damaged(chance, bytearray(path.read_bytes())))
        decoder = next((DECODERS[name] for name in DECODERS if path.parent.name.startswith(name)), "--print-data-log")
        yield ["--files", f"{number}/{path.name}", *chance.choice([[decoder], ["--deep-iteration"], []])]


def printed(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> tuple[int, bytes, str]:
    """(exit code, stdout, stderr)."""
    out, err = io.BytesIO(), io.StringIO()
    text = io.TextIOWrapper(out, encoding="utf-8")
    monkeypatch.setattr("sys.stdout", text)
    monkeypatch.setattr("sys.stderr", err)
    code = main(["log", "dump", *arguments])
    text.flush()
    return code, out.getvalue(), err.getvalue()


@pytest.mark.quick
def test_damage_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the file and the options: text and findings, or one line and exit code 1."""
    (tmp_path / "seeds").mkdir()
    monkeypatch.chdir(tmp_path)
    chance = random.Random(15)
    codes = []
    for arguments in cases(chance, tmp_path, SIDES, 200):
        code, _, err = printed(monkeypatch, arguments + chance.choice(MORE))
        assert code in (0, 1), (arguments, err)
        assert code == 0 or (err.startswith("kwire: ") and err.count("\n") == 1), (arguments, err)
        codes.append(code)
    assert 0.1 < sum(codes) / len(codes) < 0.5


@pytest.mark.java
@pytest.mark.parametrize("seed", [4300, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(30))])
def test_damage_beside_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """The tool's stdout and exit code; what it prints of the line in which it fails does not count."""
    (tmp_path / "seeds").mkdir()
    monkeypatch.chdir(tmp_path)
    asked = list(cases(random.Random(seed), tmp_path, (".log", ".checkpoint"), 300))
    jars = os.pathsep.join(releases.classpath(RELEASE))
    classes = maven.compiled([ROOT / "tools/kafka/java/DumpLog.java"], jars, f"dump-log-{RELEASE}")
    with tempfile.TemporaryDirectory() as folder:
        flags = releases.java_flags("256m", c1=True) + releases.log_flags(RELEASE, Path(folder), "OFF", "ERR")
        done = subprocess.run(
            [maven.java(), *flags, "-cp", f"{classes}{os.pathsep}{jars}", "DumpLog"],
            input="".join("\t".join(arguments) + "\n" for arguments in asked).encode(), cwd=tmp_path, check=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    answers, other = io.BytesIO(done.stdout), 0
    for arguments in asked:
        code, size = map(int, answers.readline().split())
        theirs = answers.read(size)
        mine_code, mine, _ = printed(monkeypatch, arguments)
        whole = theirs[: theirs.rfind(b"\n") + 1] if code else theirs
        if mine != whole and not (code and mine.startswith(whole)):
            lines = zip(mine.split(b"\n"), theirs.split(b"\n"), strict=False)
            first = next((pair for pair in lines if pair[0] != pair[1]), (b"", theirs[len(mine) :]))
            assert any(text in line for text in ONLY_JAVA for line in first), (arguments, *first)
            other += 1
        else:
            assert mine_code == code, arguments
    assert other < 6
