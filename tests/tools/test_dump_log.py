"""Every golden segment as kwire reads it equals what kafka-dump-log tells of it: kept texts, and the tool itself."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.tools import dump_text
from tools.kafka import tool
from tools.places import golden as unpacked

RELEASE = "4.3.0"
SEGMENTS = (".log", ".checkpoint")


@cache
def kept() -> list[dict[str, Any]]:
    """The runs of the tool whose text is kept, over files of record batches."""
    with open(unpacked() / "dump-log" / f"kafka-{RELEASE}.jsonl") as lines:
        return [told for told in map(json.loads, lines) if told["cmd"][2].endswith(SEGMENTS)]


def old_texts() -> list[Path]:
    return sorted((unpacked() / "old-brokers").glob("*/dump-*.txt"))


@cache
def others() -> list[Path]:
    """The segments without a kept text, one for each content, relative to the golden folder."""
    root = unpacked()
    seen = set()
    for told in kept():
        if "--print-data-log" in told["cmd"] or "--deep-iteration" in told["cmd"]:
            seen.add(content(root / told["cwd"] / told["cmd"][2]))
    found = []
    for path in sorted(p for p in (root / "data").rglob("*") if p.suffix in SEGMENTS):
        if path.stat().st_size and content(path) not in seen:
            seen.add(content(path))
            found.append(path.relative_to(root))
    return found


@cache
def content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def same(got: list[str], wanted: list[str]) -> None:
    for mine, theirs in zip(got, wanted, strict=False):
        assert mine == theirs
    assert len(got) == len(wanted)


def told_of_metadata(line: str) -> str:
    """A record's line up to its headers: behind them a decoder's text stands, which is no matter of batches."""
    return re.sub(r"^(\| offset: .*? headerKeys: \[.*?\]).*", r"\1", line)


def test_there_are_enough() -> None:
    logs = {told["cmd"][2] for told in kept() if told["cmd"][2].endswith(".log")}
    assert (len(logs), len(old_texts())) == (32, 8)
    assert len(others()) > 100


@pytest.mark.quick
@pytest.mark.parametrize("index", range(len(kept())), ids=lambda i: kept()[i]["stdout_file"][-7:-4])
def test_kept_texts(index: int) -> None:
    told = kept()[index]
    path, flags = unpacked() / told["cwd"] / told["cmd"][2], told["cmd"][3:]
    wanted = (unpacked() / "dump-log" / told["stdout_file"]).read_bytes().decode()
    decoded = any(flag.endswith("-decoder") for flag in flags)
    records = bool(flags) and "--skip-record-metadata" not in flags
    got = list(dump_text.lines(path.read_bytes(), records=records, contents="--print-data-log" in flags))
    lines = wanted.removesuffix("\n").split("\n")
    assert lines[:2] == [f"Dumping {told['cmd'][2]}", dump_text.start_line(path)]
    if not decoded:
        same("\n".join(got).split("\n"), lines[2:])
        return
    starts = ("baseOffset: ", "| ") if records else ("baseOffset: ",)
    metadata = [line for line in lines[2:] if line.startswith(starts)]
    same([told_of_metadata(line) for line in got], [told_of_metadata(line) for line in metadata])


@pytest.mark.quick
@pytest.mark.parametrize("text", old_texts(), ids=lambda path: f"{path.parent.name}-{path.stem.split('-', 2)[2]}")
def test_old_brokers(text: Path) -> None:
    name = text.stem.split("-", 2)[2]
    path = text.parent / name / "00000000000000000000.log"
    wanted = dump_text.without_inner_crc(text.read_bytes().decode()).removesuffix("\n").split("\n")
    got = "\n".join(dump_text.lines(path.read_bytes(), records=True, contents=True)).split("\n")
    assert wanted[:2] == [f"Dumping {name}/{path.name}", dump_text.start_line(path)]
    same(got, wanted[2:])


@pytest.mark.java
def test_all_others_against_the_tool(golden: Path) -> None:
    """One run of the tool over every segment that has no kept text."""
    paths = others()
    done = tool.run(RELEASE, "dump-log", "--print-data-log", "--files", ",".join(map(str, paths)), cwd=golden)
    assert done.returncode == 0, done.stderr.decode()
    wanted = done.stdout.decode()
    for i, path in enumerate(paths):
        assert wanted.startswith(f"Dumping {path}\n{dump_text.start_line(golden / path)}\n")
        end = wanted.index(f"\nDumping {paths[i + 1]}\n") + 1 if i + 1 < len(paths) else len(wanted)
        mine, wanted = wanted[:end], wanted[end:]
        got = "\n".join(dump_text.lines((golden / path).read_bytes(), records=True, contents=True))
        same(got.split("\n"), mine.removesuffix("\n").split("\n")[2:])
