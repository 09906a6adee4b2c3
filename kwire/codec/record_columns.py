"""columns: record batches as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kwire.codec.arguments import can_iterate
from kwire.defaults import MAX_BATCH_BYTES, RECORD_FIELDS
from kwire.suggestions import did_you_mean
from kwire_c.columns import FIELDS, Column, RecordColumns, gather
from kwire_c.printable import brief

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Column", "RecordColumns", "columns", "gather_columns"]


def columns(
    data: Buffer | list[Buffer] | tuple[Buffer, ...],
    fields: Iterable[str] = RECORD_FIELDS,
    *,
    committed: bool = False,
    control: bool = False,
    views: bool = False,
    verify_crc: bool = True,
    errors: str = "raise",
    max_batch_bytes: int = MAX_BATCH_BYTES,
    strict_tail: bool = False,
) -> RecordColumns:
    """The records of all batches in data (a buffer, or a list of them) as Arrow columns, in order.

    fields: the columns, in the order wanted: offset int64; timestamp timestamp[ms, UTC]; timestamp_type int8 (-1 none,
    0 create, 1 log append); key, value binary; headers list<struct<key: string, value: binary>>; sequence int32;
    producer_id int64; producer_epoch int16; partition_leader_epoch int32; batch_position int64 (byte of the input);
    source int32 (index of the input); codec dictionary of strings; is_control bool. -1: the format lacks the field.
    committed: leave out aborted transactions, by the markers in the data taken in order (KIP-98); control: control
    batches as rows too; views: key and value as binary_view into the inputs and the decompressed blocks, which stay
    alive: no copy; errors="keep": bad batches give no rows and are in .bad; strict_tail: a partial last batch is an
    error, else it is reported in .tail; max_batch_bytes: the most bytes that one batch may decompress to.
    Raises CorruptBatchError, LimitError, MissingCodecError, ValueError for an unknown field.
    """
    return gather_columns(
        data if isinstance(data, (list, tuple)) else [data], fields, committed=committed, control=control, views=views,
        verify_crc=verify_crc, errors=errors, max_batch_bytes=max_batch_bytes, strict_tail=strict_tail,
    )


def gather_columns(inputs: Any, fields: Iterable[str], **options: Any) -> RecordColumns:
    """columns() with further options of kwire_c.columns.gather: ranges, transactions, positions of the inputs."""
    wanted = names_in(fields, "fields")
    for name in wanted:
        if name not in FIELDS:
            near = did_you_mean(name, FIELDS)
            raise ValueError(f"fields: unknown column {brief(name)}: expected one of {', '.join(FIELDS)}{near}")
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"fields: duplicate field in {', '.join(wanted)}")
    return gather(inputs, wanted, **options)


def names_in(names: Iterable[str], argument: str) -> tuple[str, ...]:
    """The names in an argument, each of type str: one of the caller's class may equal any.

    Raises TypeError for one str, what is no iterable, and a name that is no str.
    """
    if isinstance(names, str | bytes) or not can_iterate(names):
        raise TypeError(f"{argument} must be a list of str, not {type(names).__name__}")
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(f"{argument} must be a list of str, not of {type(name).__name__}")
    return tuple([str.__str__(name) for name in listed])
