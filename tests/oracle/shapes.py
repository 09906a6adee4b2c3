"""Random record batches as arguments: the same for Kafka's builder (the oracle's "build") and for kwire.build_batch."""

from __future__ import annotations

import random
from typing import Any

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NAMES = ("", "h", "trace-id", "ключ", "\U0001f600", "n" * 200)
NOW = 1_700_000_000_000


def blob(dice: random.Random) -> bytes | None:
    """A key or value: often short, sometimes at a varint's edge, empty or null."""
    kind = dice.randrange(12)
    if kind == 0:
        return None
    if kind == 1:
        return b""
    size = dice.choice((63, 64, 127, 128, 8191, 8192)) if kind == 2 else dice.randrange(1, 90)
    if kind < 7:
        return (b"kwire-" * (size // 6 + 1))[:size]
    return dice.randbytes(size)


def shape(dice: random.Random) -> dict[str, Any]:
    """One batch: arguments of the oracle's "build". Keys, values and header values are bytes or None here."""
    magic = dice.choice((0, 1, 2, 2, 2, 2))
    made: dict[str, Any] = {
        "magic": magic,
        "codec": dice.choice(CODECS[:4] if magic < 2 else CODECS),
        "timestamp_type": "none" if magic == 0 else dice.choice(("create", "create", "log_append")),
        "base_offset": dice.choice((0, 1, dice.randrange(1 << 20), dice.randrange(1 << 62))),
    }
    if made["timestamp_type"] == "log_append":
        made["append_time"] = NOW + dice.randrange(10**9)
    if magic == 2:
        v2(made, dice)
    if made.get("control"):
        offset, kind = made["base_offset"], dice.randrange(2)
        made["records"] = [row(offset, NOW, bytes((0, 0, 0, kind)), bytes(2) + dice.randbytes(4))]
        return made
    count = dice.choice((0, 1, 1, 2, 3, 10, 60)) if magic == 2 else dice.choice((1, 1, 2, 3, 10))
    offset = made["base_offset"]
    gaps = dice.random() < 0.25
    if gaps and magic == 2:
        offset += dice.randrange(3)
    now = dice.choice((0, NOW, -1)) if dice.random() < 0.2 else NOW
    rows = []
    for _ in range(count):
        headers = [(dice.choice(NAMES), blob(dice)) for _ in range(dice.randrange(4))] if magic == 2 else []
        rows.append(row(offset, -1 if magic == 0 else now, blob(dice), blob(dice), headers))
        offset += 1 + (dice.randrange(1, 200) if gaps and dice.random() < 0.5 else 0)
        if now >= 0:
            now = max(0, now + dice.choice((0, 1, 5, -3, 64, 70_000, 3_000_000_000)))
    made["records"] = rows
    if magic == 2 and not rows:  # as the log cleaner leaves it
        made["codec"], made["delete_horizon"] = "none", None
        made["last_offset"] = made["base_offset"] + dice.randrange(100)
        made["max_timestamp"] = made.get("append_time", dice.choice((-1, NOW)))
    elif magic == 2 and dice.random() < 0.1:
        made["last_offset"] = rows[-1]["offset"] + dice.randrange(1000)
    return made


def v2(made: dict[str, Any], dice: random.Random) -> None:
    made["partition_leader_epoch"] = dice.choice((-1, 0, 7, 2**31 - 1))
    kind = dice.randrange(6)
    if kind < 3:
        made["producer_id"] = dice.choice((0, 4242, 2**63 - 1))
        made["producer_epoch"] = dice.choice((0, 5, 32767))
        made["base_sequence"] = dice.choice((0, 106, 2**31 - 2, 2**31 - 1))
        made["transactional"] = kind > 0
        if kind == 2:
            made |= {"control": True, "base_sequence": -1, "codec": "none"}
    if dice.random() < 0.15:
        made["delete_horizon"] = NOW + dice.randrange(10**8)


def row(offset: int, timestamp: int, key: Any, value: Any, headers: Any = ()) -> dict[str, Any]:
    return {"offset": offset, "timestamp": timestamp, "key": key, "value": value, "headers": list(headers)}


def for_kafka(made: dict[str, Any]) -> dict[str, Any]:
    """The oracle's question: bytes as hex."""

    def text(data: bytes | None) -> str | None:
        return None if data is None else data.hex()

    rows = [
        {**r, "key": text(r["key"]), "value": text(r["value"]), "headers": [[k, text(v)] for k, v in r["headers"]]}
        for r in made["records"]
    ]
    return {"do": "build", **made, "records": rows}


def for_kwire(made: dict[str, Any]) -> tuple[list[tuple[Any, ...]], dict[str, Any]] | None:
    """Records and keywords of kwire.build_batch; None where tuples cannot say it (offsets with gaps)."""
    rows, base = made["records"], made["base_offset"]
    if [r["offset"] for r in rows] != list(range(base, base + len(rows))):
        return None
    arguments = {name: value for name, value in made.items() if name not in ("records", "append_time")}
    if "append_time" in made:
        arguments["max_timestamp"] = made["append_time"]
    if not rows:
        arguments["base_timestamp"] = -1
    append = made.get("append_time") if made["magic"] == 1 else None  # magic 1 keeps it in every entry
    times = [r["timestamp"] if append is None else append for r in rows]
    return [(t, r["key"], r["value"], r["headers"]) for t, r in zip(times, rows, strict=True)], arguments
