"""Record batches: read_batches and build_batch, over kwire_c."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from kwire.codec import compression
from kwire_c import build, heads, records
from kwire_c.batches import BadBatch, BatchIterator
from kwire_c.codecs import CODECS
from kwire_c.failure import EncodeError
from kwire_c.records import Record, RecordBatch

__all__ = ["MAX_BATCH_BYTES", "BadBatch", "BatchIterator", "Record", "RecordBatch", "build_batch", "read_batches"]

MAX_BATCH_BYTES = 64 << 20
_CODEC_NUMBERS = {name: number for number, name in enumerate(CODECS)}
_TIMESTAMP_TYPES = ("create", "log_append", "none")


def _decode_control(key: bytes | None, value: bytes | None) -> tuple[str | int, Any]:
    from kwire.codec.control import decode_control

    return decode_control(key, value)


heads.set_decompressor(compression.decompress)
records.set_control_decoder(_decode_control)
build.set_compressor(compression.compress)


def read_batches(
    data: Any,
    *,
    verify_crc: bool = True,
    errors: Literal["raise", "keep"] = "raise",
    max_batch_bytes: int = MAX_BATCH_BYTES,
    strict_tail: bool = False,
    position: int = 0,
) -> BatchIterator:
    """The record batches in data (any contiguous buffer), in order, as an iterator of RecordBatch.

    verify_crc: check each batch's checksum before it is given; errors: "keep" yields BadBatch where "raise" raises,
    and goes on behind it when its length can be trusted; max_batch_bytes: the most one batch may decompress to;
    strict_tail: a partial last batch is an error, else it ends the iteration and stands in the iterator's .tail as
    (position, bytes left); position: the byte of the file at which data begins. Nothing is decompressed before
    records are read (errors="keep" reads them at once).
    Raises CorruptBatchError and LimitError while iterating. Source: Kafka's ByteBufferLogInputStream, MemoryRecords.
    """
    return BatchIterator(data, verify_crc, errors, max_batch_bytes, strict_tail, position)


def build_batch(
    records: Iterable[Record | tuple[Any, ...]],
    *,
    magic: int = 2,
    codec: str = "none",
    level: int | None = None,
    base_offset: int = 0,
    timestamp_type: str = "create",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    partition_leader_epoch: int = -1,
    delete_horizon: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    last_offset: int | None = None,
) -> bytes:
    """One record batch of these records (magic 0 and 1: entries, in one wrapper where there is a codec).

    records: Record objects, or tuples (timestamp in milliseconds, key, value[, headers]) that get rising offsets from
    base_offset on; key and value are any buffer or None, headers pairs of (str, buffer or None). base_timestamp,
    max_timestamp and last_offset rebuild what others wrote: compacted and empty batches too. With
    timestamp_type="log_append", max_timestamp is the append time, and Records keep the times of their own.
    Raises EncodeError for what the format cannot carry. Source: Kafka's MemoryRecordsBuilder.
    """
    number = _CODEC_NUMBERS.get(codec)
    if number is None:
        raise EncodeError(f"unknown compression codec {codec!r}", path="codec")
    if timestamp_type not in _TIMESTAMP_TYPES or (timestamp_type == "none" and magic != 0):
        raise EncodeError(f"magic {magic} has no timestamp type {timestamp_type!r}", path="timestamp_type")
    listed = records if type(records) is list else list(records)
    if magic == 2:
        return build.build_v2(
            listed, number, level, base_offset, timestamp_type == "log_append", producer_id, producer_epoch,
            base_sequence, transactional, control, partition_leader_epoch, delete_horizon, base_timestamp,
            max_timestamp, last_offset,
        )
    if magic not in (0, 1):
        raise EncodeError(f"magic is 0, 1 or 2, not {magic!r}", path="magic")
    if (producer_id, producer_epoch, base_sequence, partition_leader_epoch) != (-1, -1, -1, -1) or (
        transactional or control or delete_horizon is not None
    ):
        raise EncodeError(f"magic {magic} has no producers, transactions, control batches, leader epochs or horizons")
    if codec == "zstd":
        raise EncodeError(f"magic {magic} has no codec zstd", path="codec")
    return build.build_legacy(
        listed, magic=magic, codec=number, level=level, base_offset=base_offset,
        log_append=timestamp_type == "log_append", max_timestamp=max_timestamp, last_offset=last_offset,
    )
