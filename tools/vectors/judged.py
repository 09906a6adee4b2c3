"""Hand-made inputs, asked again: quirks, primitives and damaged records keep their bytes in the data files themselves.

A new case is a new line with its name, note and bytes; the generator fills in what Kafka's classes say of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.kafka.classes import KafkaClasses
from tools.vectors import files, messages

Row = dict[str, Any]

PATTERN = "byte i = (i*31 + (i>>8)) & 0xff"


def quirks(kafka: KafkaClasses, old: list[Row]) -> Iterator[Row]:
    """Each line with the release's outcome. Lines without bytes are calls of Kafka's API: they stay as they are."""
    for row in old:
        if "hex" not in row or "message" not in row:
            yield row
            continue
        data = bytes.fromhex(row["hex"])
        (found,) = messages.outcomes(kafka, row["message"], row["version"], [data], json=True)
        yield {key: row[key] for key in ("name", "message", "version", "note", "hex")} | found


def inputs_of(primitives: Row) -> Row:
    """The questions in a primitives.json: its values without the answers."""
    return {
        "int32": [row["value"] for row in primitives["int32"]],
        "int64": [row["value"] for row in primitives["int64"]],
        "decode": [row["hex"] for row in primitives["decode"]],
        "crc": [row["hex"] for row in primitives["crc"]],
        "crcPattern": [row["length"] for row in primitives["crcPattern"]],
        "float64": [row["bitsIn"] for row in primitives["float64"]],
        "uuid": [[row["msb"], row["lsb"]] for row in primitives["uuid"]],
        "utf8Encode": [row["utf16"] for row in primitives["utf8Encode"]],
        "utf8Decode": [row["hex"] for row in primitives["utf8Decode"]],
    }


def write_primitives(kafka: KafkaClasses, old: Path, new: Path) -> None:
    """primitives.json with the release's answers."""
    answer = kafka.ask("primitives", **inputs_of(json.loads(old.read_text())))
    for row in answer["crcPattern"]:
        row["pattern"] = PATTERN
    files.write_json(new, answer)


def corrupt(kafka: KafkaClasses, old: list[Row]) -> Iterator[Row]:
    """records-corrupt: each line's bytes, read by the release."""
    for row in old:
        answer = kafka.ask("read", hex=row["hex"])
        batches = [verdict(batch) for batch in answer["batches"]]
        yield {"name": row["name"], "note": row["note"], "hex": row["hex"], "batches": batches,
               "batchIteration": answer["batchIteration"]}  # fmt: skip


def verdict(batch: Row) -> Row:
    """What the file tells of a batch that may be damaged: the stages of reading it, not its header."""
    names = ("magic", "sizeInBytes", "isValid", "ensureValid", "records", "iterate", "streaming", "streamingRecords")
    row = {name: batch[name] for name in names if name in batch}
    if "control" in batch:
        row["control"] = batch["control"]
    return row
