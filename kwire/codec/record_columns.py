"""Record batches as Arrow columns: columns, over kwire_c."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from kwire.defaults import MAX_BATCH_BYTES, RECORD_FIELDS
from kwire_c.columns import FIELDS, Column, RecordColumns, gather

__all__ = ["Column", "RecordColumns", "columns", "gather_columns"]


def columns(
    data: Any,
    fields: Iterable[str] = RECORD_FIELDS,
    *,
    committed: bool = False,
    control: bool = False,
    views: bool = False,
    verify_crc: bool = True,
    errors: Literal["raise", "keep"] = "raise",
    max_batch_bytes: int = MAX_BATCH_BYTES,
    strict_tail: bool = False,
) -> RecordColumns:
    """The records of all batches in data (a buffer, or a list of them) as Arrow columns, in order.

    fields: what to make, in this order: offset int64; timestamp timestamp[ms, UTC]; timestamp_type int8 (-1 none,
    0 create, 1 log append); key, value binary; headers list<struct<key: string, value: binary>>; sequence int32;
    producer_id int64; producer_epoch int16; partition_leader_epoch int32; batch_position int64 (byte of the input);
    source int32 (number of the input); codec dictionary of strings; is_control bool. What a format lacks is -1.
    committed: leave out aborted transactions, by the markers in the data taken in order (KIP-98); control: control
    batches as rows too; views: key and value as binary_view into the inputs and the decompressed blocks, which stay
    alive: no copy; errors="keep": batches that are bad give no rows and stand in .bad; strict_tail: a partial last
    batch is an error, else it stands in .tail; max_batch_bytes: the most one batch may decompress to.
    Raises CorruptBatchError, LimitError, MissingCodecError, ValueError for a field there is not.
    """
    return gather_columns(
        data if isinstance(data, (list, tuple)) else [data], fields, committed=committed, control=control, views=views,
        verify_crc=verify_crc, errors=errors, max_batch_bytes=max_batch_bytes, strict_tail=strict_tail,
    )


def gather_columns(inputs: Any, fields: Iterable[str], **options: Any) -> RecordColumns:
    """columns() for those who know more of the data: ranges, transactions and places as kwire_c.columns takes them."""
    wanted = tuple(fields)
    for name in wanted:
        if name not in FIELDS:
            raise ValueError(f"no column {name!r}: there are {', '.join(FIELDS)}")
    if len(set(wanted)) != len(wanted):
        raise ValueError(f"a field is named twice: {', '.join(wanted)}")
    return gather(inputs, wanted, **options)  # type: ignore[no-any-return,unused-ignore]
