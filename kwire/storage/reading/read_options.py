"""The keywords with which segments, partitions and log directories are read; LogSegment's methods describe them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from kwire.storage.isolation.planned_log import LogEnd
    from kwire.storage.isolation.transactions import Transactions
    from kwire.storage.reading.read_plan import ReadPlan


class DataOptions(TypedDict, total=False):
    """The keywords of LogSegment.read() but for the offsets and control."""

    start_timestamp: int | None
    end_timestamp: int | None
    committed: bool
    verify_crc: bool
    max_batch_bytes: int


class ReadOptions(DataOptions, total=False):
    """The keywords of LogSegment.read() but for the offsets."""

    control: bool


class ColumnOptions(ReadOptions, total=False):
    """The keywords of LogSegment.columns() but for the offsets."""

    views: bool
    errors: str
    strict_tail: bool


class ColumnBatchOptions(ColumnOptions, total=False):
    """The keywords of LogSegment.column_batches() but for the offsets."""

    rows: int
    start: int
    end: int | None
    guessed: bool
    transactions: Transactions | LogEnd | ReadPlan | None
    progress: Callable[[int], None] | None


class Offsets(TypedDict, total=False):
    """The offsets of a range, the end exclusive; None: open."""

    start_offset: int | None
    end_offset: int | None


class Span(DataOptions, Offsets, total=False):
    """The keywords of LogSegment.read() but for control."""


class InternalOptions(Span, total=False):
    """The keywords of read_internal_topic()."""

    kind: str | None
    errors: str


class ReadRange(ReadOptions, Offsets, total=False):
    """The keywords of LogSegment.read()."""


class ColumnRange(ColumnOptions, Offsets, total=False):
    """The keywords of LogSegment.columns()."""


class ColumnBatchRange(ColumnBatchOptions, Offsets, total=False):
    """The keywords of LogSegment.column_batches()."""
