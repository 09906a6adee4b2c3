"""Records of internal topics for tests: what kafka-dump-log's decoders print of the golden files, and crafted ones."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import kwire
from kwire import messages
from tests.storage.making import START
from tools.places import golden

_LINE = re.compile(r"\| offset: (\d+) \w+: (-?\d+) .*? headerKeys: \[\](?: key: (\{.*?\}\}))? payload: (.*)")


class DecodedText(NamedTuple):
    """What the tool printed of a record: the texts of its key (None: it has none) and its value."""

    offset: int
    timestamp: int
    key: str | None
    value: str


@cache
def decoded_texts() -> dict[Path, list[DecodedText]]:
    """The segments and snapshots that the tool decoded -> its texts."""
    found = {}
    root = golden()
    for run in map(json.loads, (root / "dump-log" / "kafka-4.3.0.jsonl").read_text().splitlines()):
        flags = run["cmd"][3:]
        if any(flag.endswith("-decoder") for flag in flags) and "--skip-record-metadata" not in flags:
            lines = (root / "dump-log" / run["stdout_file"]).read_text(encoding="utf-8").splitlines()
            found[root / run["cwd"] / run["cmd"][2]] = [
                DecodedText(int(match[1]), int(match[2]), match[3], match[4]) for match in map(_LINE.match, lines)
                if match]
    return found


def commit(offset: int | None, version: int = 3, *, group: str = "g", topic: str = "t", partition: int = 0,
           type: int = 1) -> tuple[bytes, bytes | None]:
    """(key, value) of a committed offset; None: a tombstone. type 0 is the legacy one."""
    name = "LegacyOffsetCommit" if type == 0 else "OffsetCommit"
    key = getattr(messages, f"{name}Key")(group=group, topic=topic, partition=partition)
    value = None
    if offset is not None:
        value = getattr(messages, f"{name}Value")(offset=offset, metadata="m", commit_timestamp=START + offset)
    return kwire.encode_coordinator_record("group", key, value, None if value is None else version)


def transaction(name: str, status: int | None, partitions: Any = None) -> tuple[bytes, bytes | None]:
    """(key, value) of a transactional id's state; None: a tombstone."""
    value = None
    if status is not None:
        if partitions is not None:
            partitions = [messages.TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=numbers)
                          for topic, numbers in partitions]
        value = messages.TransactionLogValue(
            producer_id=7, producer_epoch=2, transaction_timeout_ms=60_000, transaction_status=status,
            transaction_partitions=partitions, transaction_last_update_timestamp_ms=START)
    return kwire.encode_coordinator_record(
        "transaction", messages.TransactionLogKey(transactional_id=name), value, None if value is None else 0)


def write(folder: Path, records: list[tuple[bytes | None, bytes | None]], base: int = 0, **options: Any) -> Path:
    """A segment of records (key, value) in a partition's folder; record N is at START + N ms."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base:020}.log"
    rows = [(START + base + at, key, value) for at, (key, value) in enumerate(records)]
    path.write_bytes(kwire.build_batch(rows, base_offset=base, **options))
    return path
