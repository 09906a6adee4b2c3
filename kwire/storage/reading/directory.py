"""LogDirectory and Partition: the segments of each partition, in order of offsets, read as one log."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from kwire.codec.arguments import check_each, check_type
from kwire.defaults import RECORD_FIELDS
from kwire.shared_iterator import SharedIterator, groups_of, shared, shared_groups, unshared
from kwire.storage.isolation.planned_log import LogEnd
from kwire.storage.places.discovery import SegmentFile, by_partition, discover, offset_in_name
from kwire.storage.places.filesystem import plain, shown
from kwire.storage.places.selection import Selection, choice_of
from kwire.storage.reading.bounds import bounds_of
from kwire.storage.reading.segment import LogSegment, PartitionSegments, open_listed
from kwire.storage.reading.segment_reader import gather_all
from kwire.storage.reading.verify import Finding, verify_partition
from kwire_c.printable import brief, printable

if TYPE_CHECKING:
    from kwire.codec.record_columns import RecordColumns
    from kwire.codec.records import BadBatch, Record, RecordBatch
    from kwire.storage.reading.read_options import (
        ColumnBatchOptions,
        ColumnBatchRange,
        ColumnOptions,
        ColumnRange,
        ReadOptions,
        ReadRange,
    )
    from kwire.storage.reading.read_plan import ReadPlan

@shared
def _batches(segments: list[LogSegment], options: dict[str, Any]) -> Iterator[Any]:
    """The batches of segments in order; options: the keywords of LogSegment.batches."""
    for segment in segments:
        yield from segment.batches(**options)


class Partition:
    """The segments of one partition in order of offsets, read as one log. topic, partition: None where unknown."""

    def __init__(self, files: Sequence[SegmentFile], options: dict[str, Any] | None = None) -> None:
        check_each(files, SegmentFile, "files", "SegmentFiles")
        self.topic, self.partition = (files[0].topic, files[0].partition) if files else (None, None)
        self.segments = [open_listed(file, options) for file in files]
        log = PartitionSegments(self.segments)
        for number, segment in enumerate(self.segments):
            segment.join(log, number)

    def __repr__(self) -> str:
        return f"<Partition {printable(str(self.topic))}-{self.partition}: {len(self.segments)} segments>"

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self.segments)

    @overload
    def batches(
        self, *, verify_crc: bool = ..., errors: Literal["raise"] = ..., max_batch_bytes: int = ...,
        strict_tail: bool = ...,
    ) -> SharedIterator[RecordBatch]: ...  # fmt: skip
    @overload
    def batches(
        self, *, verify_crc: bool = ..., errors: str, max_batch_bytes: int = ..., strict_tail: bool = ...
    ) -> SharedIterator[RecordBatch | BadBatch]: ...
    def batches(self, **options: Any) -> SharedIterator[RecordBatch] | SharedIterator[RecordBatch | BadBatch]:
        """The RecordBatches of all segments; keywords as LogSegment.batches (but not start and end)."""
        return _batches(self.segments, options)

    @overload
    def read(self, *, errors: Literal["raise"] = "raise", **options: Unpack[ReadRange]) -> SharedIterator[Record]: ...
    @overload
    def read(self, *, errors: str, **options: Unpack[ReadRange]) -> SharedIterator[Record | BadBatch]: ...
    @shared_groups
    def read(
        self, *, start_offset: int | None = None, end_offset: int | None = None, errors: str = "raise",
        **options: Unpack[ReadOptions],
    ) -> Iterator[Iterator[Record | BadBatch]]:
        """The Records of the range; keywords as LogSegment.read."""
        plan = self._plan(options)
        for segment in in_range(self.segments, start_offset, end_offset):
            yield from groups_of(segment.read(
                start_offset=start_offset, end_offset=end_offset, errors=errors, transactions=plan, **options))

    def columns(
        self,
        fields: Sequence[str] = RECORD_FIELDS,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        **options: Unpack[ColumnOptions],
    ) -> RecordColumns:
        """RecordColumns of the range, all segments together; keywords as LogSegment.columns."""
        selected = in_range(self.segments, start_offset, end_offset)
        return gather_all(selected, fields, start_offset=start_offset, end_offset=end_offset, **options)

    @shared
    def column_batches(
        self,
        fields: Sequence[str] = RECORD_FIELDS,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        **options: Unpack[ColumnBatchOptions],
    ) -> Iterator[RecordColumns]:
        """RecordColumns piece by piece in bounded memory; keywords as LogSegment.column_batches."""
        if options.get("transactions") is None:
            options["transactions"] = self._plan(options)
        for segment in in_range(self.segments, start_offset, end_offset):
            pieces = segment.column_batches(fields, start_offset=start_offset, end_offset=end_offset, **options)
            yield from unshared(pieces)

    def _plan(self, options: ReadOptions) -> ReadPlan | None:
        """The plan that all segments are read by, if only committed records are wanted."""
        committed = bool(options.get("committed"))
        if not self.segments or not (committed or options.get("states") is not None):
            return None
        return self.segments[0].plan_when_needed(committed)

    def ongoing_transactions(self, end: LogEnd | None = None) -> list[tuple[int, int]]:
        """(first offset, producer id) of the transactions without an end in the log, ascending; end: up to there.

        The offset of the first one is the last stable offset. By the newest producer snapshot, and the heads of the
        batches of the segments after it. Raises LimitError for more than 500,000.
        """
        check_type(end, (LogEnd, NoneType), "end", "a LogEnd")
        if not self.segments:
            return []
        log, _ = self.segments[-1].planned_log(end)
        return sorted((first, producer) for producer, first in log.ongoing().items())

    def verify(self) -> list[Finding]:
        """The findings in all segments and between them; empty when nothing is wrong."""
        return verify_partition(self.segments)


def in_range(segments: Sequence[LogSegment], start_offset: int | None, end_offset: int | None) -> list[LogSegment]:
    """The segments of a partition that may hold offsets of the range, by their file names."""
    return bounds_of(start_offset, end_offset).select(segments, lambda segment: offset_in_name(segment.path))


class LogDirectory:
    """A Kafka log directory (every topic-N folder in it, internal topics too), or one partition folder.

    path: a local folder or an fsspec URL, or whatever discover() takes. topics, partitions: read only these; each must
    be there, unless allow_empty or where there is no segment at all. selection: instead of them, as people type it.
    Iteration gives Partitions in order of topic and partition; directory["topic", 0] is one of them. Raises
    FileNotFoundError if the path, a topic or a partition is not there (it names the nearest, and what there is),
    and as discover() does.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        topics: Collection[str] | None = None,
        partitions: Collection[int] | None = None,
        selection: Selection | None = None,
        options: dict[str, Any] | None = None,
        allow_empty: bool = False,
    ) -> None:
        self.path = path
        chosen = choice_of(topics, partitions, selection, strict=not allow_empty)
        try:
            files = discover(path, selection=chosen, options=options)
        except LookupError as error:
            if selection is not None:
                raise
            raise FileNotFoundError(f"{self._where()}: {error.args[0]}") from None
        self.partitions = [Partition(group, options) for group in by_partition(files).values()]

    def __iter__(self) -> Iterator[Partition]:
        return iter(self.partitions)

    def __repr__(self) -> str:
        segments = sum(len(partition.segments) for partition in self.partitions)
        return f"<LogDirectory {self._where()}: {len(self.partitions)} partitions, {segments} segments>"

    def _where(self) -> str:
        paths = [self.path] if isinstance(self.path, str | os.PathLike) else list(self.path)
        return printable(", ".join(shown(plain(path)) for path in paths[:3]) + (", …" if len(paths) > 3 else ""))

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, key: tuple[str, int]) -> Partition:
        for partition in self.partitions:
            if (partition.topic, partition.partition) == key:
                return partition
        raise KeyError(f"no partition {brief(key)}: expected (topic, number) of one that is there")

    @property
    def segments(self) -> list[LogSegment]:
        """All segments, in order."""
        return [segment for partition in self.partitions for segment in partition]

    @overload
    def batches(
        self, *, verify_crc: bool = ..., errors: Literal["raise"] = ..., max_batch_bytes: int = ...,
        strict_tail: bool = ...,
    ) -> SharedIterator[RecordBatch]: ...  # fmt: skip
    @overload
    def batches(
        self, *, verify_crc: bool = ..., errors: str, max_batch_bytes: int = ..., strict_tail: bool = ...
    ) -> SharedIterator[RecordBatch | BadBatch]: ...
    def batches(self, **options: Any) -> SharedIterator[RecordBatch] | SharedIterator[RecordBatch | BadBatch]:
        """The RecordBatches of all partitions, one after the other; keywords as Partition.batches."""
        return _batches(self.segments, options)

    @overload
    def read(self, *, errors: Literal["raise"] = "raise", **options: Unpack[ReadRange]) -> SharedIterator[Record]: ...
    @overload
    def read(self, *, errors: str, **options: Unpack[ReadRange]) -> SharedIterator[Record | BadBatch]: ...
    @shared_groups
    def read(self, *, errors: str = "raise", **options: Unpack[ReadRange]) -> Iterator[Iterator[Record | BadBatch]]:
        """The Records of the range in every partition; keywords as LogSegment.read."""
        for partition in self.partitions:
            yield from groups_of(partition.read(errors=errors, **options))

    def columns(self, fields: Sequence[str] = RECORD_FIELDS, **options: Unpack[ColumnRange]) -> RecordColumns:
        """RecordColumns of the range in every partition, all together; keywords as LogSegment.columns."""
        start, end = options.get("start_offset"), options.get("end_offset")
        selected = [segment for partition in self.partitions for segment in in_range(partition.segments, start, end)]
        return gather_all(selected, fields, **options)

    @shared
    def column_batches(
        self, fields: Sequence[str] = RECORD_FIELDS, **options: Unpack[ColumnBatchRange]
    ) -> Iterator[RecordColumns]:
        """RecordColumns piece by piece in bounded memory; keywords as LogSegment.column_batches."""
        for partition in self.partitions:
            yield from unshared(partition.column_batches(fields, **options))

    def verify(self) -> list[Finding]:
        """The findings in all partitions; empty when nothing is wrong."""
        return [finding for partition in self.partitions for finding in partition.verify()]
