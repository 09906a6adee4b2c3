"""read_batches, build_batch and build_batches: record batches as objects and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from kwire.defaults import MAX_BATCH_BYTES
from kwire_c.batch_builder import build_batch, build_batches
from kwire_c.record_batch import BadBatch, BatchIterator, Record, RecordBatch

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "BadBatch",
    "BatchIterator",
    "Record",
    "RecordBatch",
    "build_batch",
    "build_batches",
    "read_batches",
]


@overload
def read_batches(
    data: Buffer,
    *,
    verify_crc: bool = True,
    errors: Literal["raise"] = "raise",
    max_batch_bytes: int = MAX_BATCH_BYTES,
    strict_tail: bool = False,
    position: int = 0,
) -> BatchIterator[RecordBatch]: ...
@overload
def read_batches(
    data: Buffer,
    *,
    verify_crc: bool = True,
    errors: str,
    max_batch_bytes: int = MAX_BATCH_BYTES,
    strict_tail: bool = False,
    position: int = 0,
) -> BatchIterator[RecordBatch | BadBatch]: ...
def read_batches(
    data: Buffer,
    *,
    verify_crc: bool = True,
    errors: str = "raise",
    max_batch_bytes: int = MAX_BATCH_BYTES,
    strict_tail: bool = False,
    position: int = 0,
) -> BatchIterator[RecordBatch] | BatchIterator[RecordBatch | BadBatch]:
    """The record batches in data (any contiguous buffer), in order, as an iterator of RecordBatch.

    verify_crc: check the CRC of each batch before it is returned; errors: "keep" yields a BadBatch where "raise"
    raises, and continues after it if its length can be trusted; max_batch_bytes: the most bytes that one batch may
    decompress to; strict_tail: a partial last batch is an error, else it ends the iteration and the iterator's .tail
    is (position, bytes left); position: the byte of the file at which data begins. A batch is decompressed when its
    records are first read (with errors="keep" at once).
    Raises CorruptBatchError and LimitError while iterating. Source: Kafka's ByteBufferLogInputStream, MemoryRecords.
    """
    return BatchIterator(data, verify_crc, errors, max_batch_bytes, strict_tail, position)
