"""Everything that reads batches, on one damaged input: a value or a KwireError, and nothing else."""

from __future__ import annotations

import ctypes
import random
from contextlib import suppress
from typing import Any

import kwire
from tests.codec.rebuild import rebuilt

LIMIT = 1 << 20  # most bytes that a batch may decompress to here

FIELDS = (
    "offset", "timestamp", "key", "value", "timestamp_type", "headers", "sequence", "producer_id", "producer_epoch",
    "partition_leader_epoch", "batch_position", "source", "codec", "is_control",
)  # fmt: skip
HEADER = (
    "position", "size", "magic", "codec", "base_offset", "last_offset", "partition_leader_epoch", "crc", "attributes",
    "timestamp_type", "base_timestamp", "max_timestamp", "is_transactional", "is_control", "delete_horizon",
    "producer_id", "producer_epoch", "base_sequence", "count",
)  # fmt: skip


class Wrong(Exception):
    """The readers contradict each other."""


def exact(data: bytes | bytearray) -> Any:
    """The bytes in memory that ends where they end, so that AddressSanitizer sees a read past their end."""
    return (ctypes.c_char * len(data)).from_buffer_copy(data)


def records_of(batch: Any) -> list[tuple[Any, ...]]:
    """Every field of every record."""
    found = []
    for record in batch:
        row = (
            record.offset, record.timestamp, record.timestamp_type, record.key, record.value, record.headers,
            record.sequence, record.attributes,
        )  # fmt: skip
        if batch.is_control:
            with suppress(kwire.KwireError):
                _ = (record.control_type, record.control)
        repr(record)
        found.append(row)
    return found


def read(data: Any, **options: Any) -> tuple[int, int]:
    """All batches and records; how many records are no control records, and how many batches are bad."""
    rows = bad = 0
    reader = kwire.read_batches(data, max_batch_bytes=LIMIT, **options)
    for batch in reader:
        if isinstance(batch, kwire.BadBatch):
            bad += 1
            if not isinstance(batch.error, kwire.KwireError):
                raise Wrong(f"a bad batch holds {batch.error!r}")
            continue
        for name in HEADER:
            getattr(batch, name)
        batch.is_valid()
        try:
            found = records_of(batch)
        except kwire.KwireError:
            if options.get("errors") == "keep":
                raise Wrong("a kept batch has a bad record") from None
            raise
        if len(found) != len(batch):
            raise Wrong(f"{len(batch)} records declared, {len(found)} read")
        rows += 0 if batch.is_control else len(found)
    _ = reader.tail
    return rows, bad


def write(data: Any, **options: Any) -> None:
    """What was read is written again and read back equal, or refused."""
    for batch in kwire.read_batches(data, max_batch_bytes=LIMIT, **options):
        before = records_of(batch)
        if any(row[0] < 0 for row in before):  # build_batch gives such records offsets of its own
            continue
        (again,) = kwire.read_batches(rebuilt(batch, codec="none") if batch.magic == 2 else rebuilt(batch))
        after = records_of(again)
        if batch.magic < 2:  # reserved attribute bits, and entries of another magic in a wrapper, are not kept
            before, after = ([(row[0], row[3], row[4]) for row in rows] for rows in (before, after))
        if before != after:
            raise Wrong(f"read {before!r}, wrote and read {after!r}")


def columns(data: Any, chance: random.Random, expected: int | None, **options: Any) -> None:
    """Columns of some of the fields; expected: rows, if it is known."""
    fields = chance.sample(FIELDS, chance.randint(1, len(FIELDS)))
    committed, control = chance.random() < 0.3, chance.random() < 0.3
    table = kwire.columns(
        data, fields=fields, committed=committed, control=control, views=chance.random() < 0.5, max_batch_bytes=LIMIT,
        **options,
    )  # fmt: skip
    if expected is not None and not committed and not control and len(table) != expected:
        raise Wrong(f"{expected} records, but {len(table)} rows of {fields}")
    if chance.random() < 0.25:
        look(table)


def look(table: Any) -> None:
    """Reads every value of the table through pyarrow, which checks offsets and lengths too."""
    import pyarrow

    found = pyarrow.table(table)
    found.validate(full=True)
    for column in found.columns:
        for chunk in column.chunks:
            if pyarrow.types.is_timestamp(chunk.type):
                chunk = chunk.cast("int64")  # Python's datetime ends at year 9999
            chunk.to_pylist()


def exercise(data: bytes | bytearray, chance: random.Random) -> None:
    """Reads the damaged bytes in every way; KwireErrors are what is expected. Anything else comes out."""
    area = exact(data)
    verify = chance.random() < 0.4
    strict = chance.random() < 0.2
    rows: int | None = None
    try:
        rows, bad = read(area, errors="keep", verify_crc=verify, strict_tail=strict)
    except kwire.KwireError as error:
        raise Wrong(f"errors='keep' raised {error!r}") from error
    way = chance.random()
    try:
        if way < 0.3:
            read(area, verify_crc=verify, strict_tail=strict)
            if bad:
                raise Wrong("bad batches, but nothing was raised")
        elif way < 0.5:
            write(area, verify_crc=verify)
        elif way < 0.75:
            columns(area, chance, None if bad else rows, verify_crc=verify)
        else:
            columns(area, chance, rows, verify_crc=verify, errors="keep")
    except kwire.KwireError as error:
        if not isinstance(str(error), str) or way >= 0.75:
            raise Wrong(f"errors='keep' raised {error!r}") from error
