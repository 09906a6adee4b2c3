"""What kafka-storage of real releases printed and wrote (tests/data/storage.tar.xz), and kwire's runs beside it."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import kwire
from kwire.cli import main
from kwire_c.plan import message_of
from tools import archives
from tools.places import DATA

TIME = re.compile(r"(?m)^#\w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}$")
RANDOM_ID = re.compile(r"(?<=directory\.id=)[\w-]{22}")
SALTS = (b"1lv4pdnw4fwq7notcxm0yy1k7q", b"x")  # those that the runs give; others are random
SECRETS = re.compile(rf"salt=\[(?:({'|'.join(', '.join(map(str, salt)) for salt in SALTS)})|[^]]*)\], "
                     r"storedKey=\[[^]]*\], serverKey=\[[^]]*\]")  # fmt: skip


class Outcome(NamedTuple):
    """What a run left: stdout, stderr, the exit code, and the files with random ids and times taken out."""

    stdout: str
    stderr: str
    exit: int
    files: dict[str, Any]


@lru_cache(1)
def archive() -> dict[str, bytes]:
    return archives.read(DATA / "storage.tar.xz")


def releases() -> list[str]:
    names = (name.removesuffix(".jsonl") for name in archive())
    return sorted(names, key=lambda name: kwire.schema.releases().index(kwire.schema.release_name(name)))


def sequences(release: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The runs of a release, in the folders in which they followed each other."""
    rows = (json.loads(line) for line in archive()[f"{release}.jsonl"].splitlines())
    for name, group in groupby(rows, key=lambda row: row["sequence"]):
        yield name, list(group)


def run(arguments: list[str]) -> tuple[str, str, int]:
    """kwire in this process: stdout, stderr, exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["storage", *arguments])
    return out.getvalue(), err.getvalue(), code


def again(release: str, rows: list[dict[str, Any]], folder: Path) -> Iterator[tuple[dict[str, Any], Outcome, Outcome]]:
    """For each run of a sequence: its row, what the tool left, what kwire leaves."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in rows[0]["before"].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if rows[0]["config"]:
        (folder / "server.properties").write_text(rows[0]["config"])
    back = os.getcwd()
    os.chdir(folder)
    try:
        for row in rows:
            files = {name: base64.b64decode(data) for name, data in row["files"].items()}
            wanted = outcome(row["stdout"], row["stderr"], row["exit"], files)
            mine = run(["--as", release, *row["arguments"]])
            there = {
                str(path.relative_to(folder)): path.read_bytes()
                for path in folder.rglob("*") if path.is_file() and path.name != "server.properties"
            }  # fmt: skip
            yield row, wanted, outcome(*mine, there)
    finally:
        os.chdir(back)


def outcome(stdout: str, stderr: str, code: int, files: dict[str, bytes]) -> Outcome:
    text = SECRETS.sub(lambda match: match[0] if match[1] else "[...]", RANDOM_ID.sub("[...]", stdout))
    return Outcome(text, stderr, code, {name: content(name, files[name]) for name in sorted(files)})


def content(name: str, data: bytes) -> Any:
    """A file's content; of a snapshot its batches, field by field, and its size."""
    if name.endswith("meta.properties"):
        return RANDOM_ID.sub("[...]", TIME.sub("#TIME", data.decode("utf-8")))
    if not name.endswith(".checkpoint"):
        return data
    rows: list[Any] = []
    size: int | None = len(data)
    for batch in kwire.read_batches(data, strict_tail=True):
        head = (batch.base_offset, batch.last_offset, batch.partition_leader_epoch, batch.magic, batch.attributes,
                batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.count)  # fmt: skip
        assert batch.base_timestamp == batch.max_timestamp
        records = []
        for record in batch:
            if batch.is_control:
                message = record.control
                if record.control_type == "SNAPSHOT_HEADER":
                    assert (message.last_contained_log_timestamp > 0) is ("bootstrap" not in name)
                    message.last_contained_log_timestamp = 0
                if record.control_type == "KRAFT_VOTERS" and len(message.voters) == 1:
                    message.voters[0].voter_directory_id = UUID(int=0)
                records.append((record.key, str(kwire.to_json(message, message_of(message).last)), record.headers))
            else:
                message, version = kwire.decode_metadata_record(record.value)
                if hasattr(message, "salt") and message.salt not in SALTS:
                    size = None  # a random salt may be a digit shorter
                    message.salt, message.stored_key, message.server_key = b"", b"", b""
                records.append((record.key, str(kwire.to_json(message, version)), version, record.headers))
        rows.append((head, records))
    return size, rows
