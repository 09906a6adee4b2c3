"""LogSegment: one .log file and the indexes beside it, read by offset, time or byte range."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from kwire.codec.arguments import check_int, check_ints, check_progress, check_type
from kwire.codec.records import BadBatch
from kwire.defaults import BATCH_ROWS, MAX_BATCH_BYTES, RECORD_FIELDS
from kwire.errors import KwireError
from kwire.shared_iterator import SharedIterator, shared_groups
from kwire.storage.batches import scanner
from kwire.storage.batches.batch_header import BatchHeader, examine
from kwire.storage.computed_once import once
from kwire.storage.isolation.planned_log import LogEnd, PlannedLog, PlannedSegment, names_beside, planned_log
from kwire.storage.isolation.transactions import ABORT, Transactions, find_transactions, markers_after
from kwire.storage.places.discovery import SideFiles, beside, later_segments, offset_in_name, place_of
from kwire.storage.places.file_kinds import check_segment
from kwire.storage.places.filesystem import SpooledFile, is_url, located, open_file, open_unnamed, plain, shown
from kwire.storage.reading.bounds import NO_BOUNDS, Bounds, RangeEnd, bounds_of
from kwire.storage.reading.read_plan import ReadPlan, is_preallocated, written
from kwire.storage.reading.segment_reader import ColumnBatches, SegmentBatches, gather_all
from kwire.storage.reading.splits import ByteRange, split
from kwire.storage.side_files import indexes

if TYPE_CHECKING:
    from kwire.codec.record_columns import RecordColumns
    from kwire.codec.records import Record, RecordBatch
    from kwire.storage.places.discovery import SegmentFile
    from kwire.storage.places.filesystem import File
    from kwire.storage.reading.read_options import ColumnRange, ReadRange
    from kwire.storage.reading.stats import SegmentStats
    from kwire.storage.reading.verify import Finding

_END_BYTES = 32 << 10  # of a segment that are read to see that all its timestamps are below one
_LEFT_TO_SCAN = 4 << 20  # bytes in which a search for an offset ends: fewer are read as fast as they are halved


class PartitionSegments:
    """The segments of a partition in order, and the plan of its committed reads."""

    def __init__(self, segments: list[LogSegment]) -> None:
        self.segments = segments
        self._plans: dict[bool, tuple[int | None, int | None, ReadPlan]] = {}  # bounded -> size and end of the log then

    def __getstate__(self) -> dict[str, Any]:
        return {"segments": self.segments, "_plans": {}}  # what was read for it is read again

    def plan(self, bounded: bool = True) -> ReadPlan:
        """A plan of the partition as it is now: the same object while its end is where it was."""
        if not bounded and is_preallocated(self.segments[-1]):  # where it ends would have to be searched for
            return ReadPlan(lambda: self.segments, None)
        known = self._plans.get(bounded)
        size, end = written(self.segments[-1], None if known is None else known[:2])
        if known is None or known[:2] != (size, end):
            known = self._plans[bounded] = size, end, ReadPlan(lambda: self.segments, end if bounded else None)
        return known[2]


class LogSegment:
    """One segment of a partition. path: a local file or an fsspec URL (s3://bucket/topic-0/0000.log, memory://...).

    topic, partition: from the folder name `topic-N`, else None, unless given. Only the .log file is needed. Positions
    are bytes in the file, offsets Kafka offsets, timestamps milliseconds; all ends are exclusive. options: keywords
    for fsspec. size, beside: what a listing said (SegmentFile), so that the file system is not asked again; a file
    that is gone is then an error of the first read. Raises FileNotFoundError if the file does not exist,
    IsADirectoryError for a folder, WrongFileError (.file) for another kind of file (an index, a text, a capture).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        topic: str | None = None,
        partition: int | None = None,
        options: dict[str, Any] | None = None,
        size: int = -1,
        beside: SideFiles | None = None,
    ) -> None:
        check_ints(partition=partition)
        size = check_int(size, "size")
        self.path = plain(path)
        self.options = options
        self.beside = beside
        try:
            self.file = open_file(self.path, options, size)
        except IsADirectoryError:
            raise IsADirectoryError(21, "is a folder, not a segment: LogDirectory reads it", self.path) from None
        if isinstance(self.file, SpooledFile) and not self.file.once:
            os.stat(self.path)  # a .gz is decompressed when it is read
        elif size < 0 or beside is None:  # named, not found in a folder
            self.file.size()
            check_segment(self.path, self.file)
        place = place_of(self.path)
        self.topic = place[0] if topic is None else topic
        self.partition = place[1] if partition is None else partition
        self._tail: tuple[int, int] | bool | None = False
        self.partition_segments: PartitionSegments | None = None  # that join() has set
        self._plan: tuple[tuple[int | None, int | None], ReadPlan] | None = None  # without them: size and end then
        self._number = 0

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_plan": None}  # what was read for it is read again

    def __repr__(self) -> str:
        return f"{type(self).__name__}({shown(self.path)!r})"

    @property
    def files(self) -> list[str]:
        """The local files that it is read from, even if they do not exist: the .log and the indexes beside it."""
        if is_url(self.path):
            return []
        return [self.path, *(beside(self.path, kind) for kind in (".index", ".timeindex", ".txnindex"))]

    @property
    def size(self) -> int:
        """Bytes of the .log file as it is now."""
        return self.file.size()

    @property
    def named_offset(self) -> int | None:
        """The base offset in the file's name, None if there is none."""
        offset = offset_in_name(self.path)
        return None if offset < 0 else offset

    @once
    def base_offset(self) -> int:
        """The base offset in the file's name, else that of the first batch (0 if there is none)."""
        named = offset_in_name(self.path)
        if named >= 0:
            return named
        place = examine(self.file, 0, self.size)
        return place.offset if place.kind == "batch" else 0

    @property
    def later(self) -> list[LogSegment]:
        """The segments of the same partition after this one, in order."""
        return self.log.segments[self._number + 1 :]

    @once
    def log(self) -> PartitionSegments:
        """The partition from this segment on, or the whole one if a Partition has set it: see join."""
        return self.partition_segments or self._from_here()

    def _from_here(self) -> PartitionSegments:
        return PartitionSegments([self, *(
            open_listed(file._replace(topic=self.topic, partition=self.partition), self.options)
            for file in later_segments(self.path, self.options)
        )])  # fmt: skip

    def join(self, log: PartitionSegments, number: int) -> None:
        """Make this the segment of that number in a partition."""
        self.log = self.partition_segments = log
        self._number = number

    def plan(self) -> ReadPlan:
        """The end of its partition as it is now, for committed reads that have to agree: `transactions` of each.

        A last segment that a broker has preallocated is read to find the end of what is written. In a store the later
        segments are found when the first transaction is met.
        """
        plan = self.plan_when_needed()
        if not is_url(self.path):
            plan.find_end()
        return plan

    def plan_when_needed(self, bounded: bool = True) -> ReadPlan:
        """As plan(), for this segment alone: the later ones are found when the first transaction is met.

        bounded=False: without an end, to say of each transaction what becomes of it.
        """
        if self.partition_segments is not None:
            return self.partition_segments.plan(bounded)
        if not bounded:
            return ReadPlan(self._segments_now, None)
        known = self._plan
        ends = written(self, None if known is None else known[0])
        if known is None or known[0] != ends or not (is_url(self.path) or known[1].knows_no_more_than(
                self._segments_now)):
            known = self._plan = ends, ReadPlan(self._segments_now, ends[1], self.path)
        return known[1]

    def _segments_now(self) -> list[LogSegment]:
        return self._from_here().segments

    @property
    def tail(self) -> tuple[int, int] | None:
        """(position, bytes left) of a partial last batch or of preallocated zeros, None if the file ends cleanly."""
        if self._tail is False:
            windows = scanner.Scanner(self.file, verify=True)
            for _ in windows:
                pass
            self._tail = windows.tail
        return self._tail  # type: ignore[return-value]

    @property
    def known_tail(self) -> tuple[int, int] | None:
        """As tail, if the segment was read to its end; else None."""
        return None if isinstance(self._tail, bool) else self._tail

    def note_tail(self, tail: tuple[int, int] | None) -> None:
        """Remember the tail that a scan to the end found."""
        self._tail = tail

    def held(self) -> LogSegment:
        """The same segment with its file open, for one pass: all of one log, though compaction puts another file there.

        Else what a cleaned file says of transactions would be taken for that of the file that is read.
        """
        held = copy(self)
        held.file = self.file.held()
        return held

    def _beside(self, kind: str) -> bytes | None:
        file = self._opened_beside(kind)
        if file is None:
            return None
        size = min(file.size(), indexes.MOST_BYTES + 1)
        data = file.read(0, size)
        return data if len(data) == size else None  # not a part of it: it would be taken for all

    def _opened_beside(self, kind: str) -> File | None:
        listed = -1 if self.beside is None else self.beside.of(kind)
        if listed < 0 and self.beside is not None:
            return None
        try:
            file = open_unnamed(beside(self.path, kind), self.options, listed).held()
            file.size()
            return file
        except FileNotFoundError:
            return None

    def _entry_below(self, position: int) -> tuple[int, int] | None:
        """(position, offset) of the last entry of the .index whose position is below that one."""
        file = self._opened_beside(".index")
        return None if file is None else self._entry_of(file, 1, position)

    def _batch_below(self, offset: int, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
        """(position, offset) of a batch at or before the one that holds offset, as is_append takes it.

        The last entry of the .index below it; without an index by bisection of bytes [start, end). None for the first.
        """
        file = self._opened_beside(".index")
        if file is None:
            return self._bisected(offset, start, end)
        return self._entry_of(file, 0, offset - self.base_offset)

    def _entry_of(self, file: File, column: int, value: int) -> tuple[int, int] | None:
        entry = indexes.last_below(file, indexes.OFFSET_ENTRY, column, value, self.size)
        return entry and (entry[1], entry[0] + self.base_offset)

    def scan(
        self, bounds: Bounds = NO_BOUNDS, start: int = 0, end: int | None = None, guessed: bool = False, **options: Any
    ) -> scanner.Scanner:
        """A Scanner of bytes [start, end) that begins near the start of a range, as far as the indexes tell.

        A segment of at most FIRST_BYTES is read from its beginning, and its indexes are not asked. guessed: start and
        end are any bytes (see Scanner), and an entry of the .index before start is used.
        """
        check_type(bounds, Bounds, "bounds", "Bounds")
        start = check_int(start, "start")
        check_ints(end=end)
        anchor: tuple[int, int, int] | None = None
        if bounds != NO_BOUNDS and (  # less than FIRST_BYTES is read at once
                start or (self.size if end is None else min(end, self.size)) > scanner.FIRST_BYTES):
            anchor = self._anchor(bounds, start, end)
        if anchor is None or anchor[0] < start:
            anchor = _entry(self._entry_below(start), 0) if guessed and start else None
        if bounds != NO_BOUNDS:
            options["first_bytes"] = scanner.FIRST_BYTES
        return scanner.Scanner(self.file, start, end, guessed=guessed and start > 0, anchor=anchor, **options)

    def _anchor(self, bounds: Bounds, start: int, end: int | None) -> tuple[int, int, int] | None:
        """Where reading a range in bytes [start, end) may begin, as Scanner takes it; None: at start."""
        anchor: tuple[int, int, int] | None = None
        if bounds.start_offset is not None and bounds.start_offset > self.base_offset:
            anchor = _entry(self._batch_below(bounds.start_offset, start, end), bounds.start_offset)
        if bounds.start_timestamp is not None:
            position = self._near_time(bounds.start_timestamp)
            if position and (anchor is None or position > anchor[0]):
                anchor = (position, -1, 0)
        return anchor

    def _bisected(self, offset: int, start: int, end: int | None) -> tuple[int, int] | None:
        """(position, -1) of a batch in bytes [start, end) before which all offsets are smaller; None for the first one.

        Each step reads about 1 MiB; it stops at a few MiB, or near damage.
        """
        low, high, found = start, self.size if end is None else min(end, self.size), None
        while high - low > _LEFT_TO_SCAN and not isinstance(self.file, SpooledFile):
            guess = (low + high) // 2
            windows = scanner.Scanner(self.file, guess, guess, guessed=True, read_bytes=scanner.CHAIN_BYTES)
            position = windows.begin()
            if windows.looked_far or windows.last < 0:
                break
            if windows.last < offset:
                low, found = max(guess, position), (position, -1)
            else:
                high = guess
        return found

    def boundary(self, guess: int) -> int:
        """The byte of the first batch or bad region at or after any byte of the segment; .size if there is none.

        By an entry of the .index near it, else by a search that begins some 600 KiB before it (further back where there
        is damage). Which batches are of the log, and what is a bad region: see kwire.storage.batches.scanner. Raises
        DecodeError for a byte below 0.
        """
        guess, size = check_int(guess, "guess"), self.size
        return size if guess >= size else self.scan(start=guess, end=guess, guessed=True).begin()

    @once
    def index(self) -> indexes.OffsetIndex | None:
        """The .index beside the segment, None if missing."""
        data = self._beside(".index")
        return None if data is None else indexes.OffsetIndex(data, self.base_offset)

    @once
    def time_index(self) -> indexes.TimeIndex | None:
        """The .timeindex beside the segment, None if missing."""
        data = self._beside(".timeindex")
        return None if data is None else indexes.TimeIndex(data, self.base_offset)

    @once
    def transaction_index(self) -> indexes.TransactionIndex | None:
        """The .txnindex beside the segment, None if missing."""
        data = self._beside(".txnindex")
        return None if data is None else indexes.TransactionIndex(data)

    def split(self, partition_bytes: int) -> list[ByteRange]:
        """Byte ranges at batch boundaries that together cover the segment, each about partition_bytes."""
        return split(self.file, check_int(partition_bytes, "partition_bytes"), self.index)

    def headers(self, start: int = 0, end: int | None = None) -> Iterator[BatchHeader]:
        """The headers of the batches in bytes [start, end), nothing decoded; start is a batch boundary.

        Raises CorruptBatchError (.file .position .offset .reason) at bytes that are not a batch.
        """
        check_ints(end=end)
        return scanner.headers(self.file, check_int(start, "start"), end)

    def seek(self, offset: int) -> int:
        """Position of the batch that holds the first record at or after offset; .size if there is none."""
        offset = check_int(offset, "offset")
        return self._first(self._scanner_near(offset), lambda header: header.last_offset >= offset)

    def seek_time(self, timestamp: int) -> int:
        """Position of the first batch whose max timestamp is >= timestamp (ms); .size if there is none."""
        timestamp = check_int(timestamp, "timestamp")
        start = self._near_time(timestamp)
        windows = scanner.Scanner(self.file, start, verify=True, first_bytes=scanner.FIRST_BYTES)
        return self._first(windows, lambda header: header.max_timestamp >= timestamp)

    def _first(self, windows: scanner.Scanner, wanted: Callable[[BatchHeader], bool]) -> int:
        for window in windows:
            if window.bad is None:
                for header in scanner.window_headers(window):
                    if wanted(header):
                        return header.position
        return self.size

    def _scanner_near(self, offset: int) -> scanner.Scanner:
        """A Scanner from a batch before the one that holds offset: by the index if it is right; else from byte 0."""
        entry = self._batch_below(offset) if offset > self.base_offset else None
        if entry is not None:
            near = scanner.Scanner(self.file, entry[0], verify=True, first_bytes=scanner.FIRST_BYTES)
            if near.is_append(*entry, until=offset):
                return near
        return scanner.Scanner(self.file, verify=True, first_bytes=scanner.FIRST_BYTES)

    def ends_before(self, timestamp: int) -> bool:
        """Are all timestamps of the segment below that one (ms)? False too where little reading does not tell.

        Its indexes are asked, and the log from the last entry of the .timeindex on, at most 32 KiB of it: there the
        entry must be right, and whole batches must go on to the end. Of an index a block or two of 12 KiB are read.
        """
        timestamp = check_int(timestamp, "timestamp")
        times, offsets = self._time_below(timestamp), self._opened_beside(".index")
        if times is None or offsets is None:
            return False
        time, offset = times
        entry = self._entry_of(offsets, 0, offset - self.base_offset + 1)
        if entry is None or self.size - entry[0] > _END_BYTES:
            return False
        windows = scanner.Scanner(self.file, entry[0], verify=True, search=False, first_bytes=_END_BYTES)
        if not windows.is_append(*entry, until=offset):
            return False
        largest = None  # of the batch that the .timeindex means
        for window in windows:
            if window.bad is not None:
                return False
            for header in scanner.window_headers(window):
                if header.max_timestamp >= timestamp:
                    return False
                if largest is None and header.last_offset >= offset:
                    largest = header.max_timestamp
        return largest == time and windows.tail is None

    def _time_below(self, timestamp: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the last entry of the .timeindex below that timestamp."""
        file = self._opened_beside(".timeindex")
        entry = None if file is None else indexes.last_below(file, indexes.TIME_ENTRY, 0, timestamp, self.size)
        return entry and (entry[0], entry[1] + self.base_offset)

    def _near_time(self, timestamp: int) -> int:
        """A batch boundary before which all timestamps are smaller: by both indexes if they are right, else 0."""
        entry = self._time_below(timestamp)
        if entry is None:
            return 0
        time, offset = entry
        for window in self._scanner_near(offset):
            for header in scanner.window_headers(window) if window.bad is None else ():
                if header.last_offset >= offset:
                    return header.position if header.max_timestamp == time else 0
        return 0

    def start_of(self, bounds: Bounds) -> int:
        """The position at which reading a range begins: its first batch.

        If there is damage before that which may have held records of it, the batch before the damage: what is damage
        depends on it.
        """
        check_type(bounds, Bounds, "bounds", "Bounds")
        offset = bounds.start_offset
        if bounds.start_timestamp is None and (offset is None or offset <= self.base_offset):
            return 0
        windows = self.scan(bounds, search=False)
        windows.begin()
        windows.search = windows.verify = True
        before: int | None = None
        for window in windows:
            if window.bad is not None:
                if bounds.touches(window):
                    return window.position if before is None else before
                continue
            for header in scanner.window_headers(window):
                if bounds.may_begin(header):
                    return header.position
                before = header.position
        return self.size

    def transactions(self, start: int = 0, end: int | None = None, plan: ReadPlan | None = None) -> Transactions:
        """Aborted and open transactions of the batches in bytes [start, end); looks into later segments as needed.

        plan: what is written after its end does not count; by default that is the end of the partition now.
        """
        start = check_int(start, "start")
        check_ints(end=end)
        plan = self.plan_when_needed() if plan is None else plan
        file, limit = self.file.held(), plan.end_of(self)

        def later(producer: int) -> tuple[int, int] | None:
            return plan.log.marker_after(plan.number_of(self), producer)

        def after(
            pending: dict[int, int], newest: dict[int, int], position: int
        ) -> Iterator[tuple[int, int, int]]:
            for producer in list(pending):  # first by files: the next marker is another's where its own is damaged
                offset = newest[producer]
                kind, _ = plan.log.by_files(plan.number_of(self), producer, offset)
                if kind == ABORT and plan.log.aborted().at(producer, offset):  # the entries tell which batches
                    del pending[producer]
                elif kind is not None:
                    yield producer, -1, kind
            yield from markers_after(file, position, pending, later, limit)

        return find_transactions(
            file, start, limit if end is None else end, after, lambda: plan.log.aborted(), limit,
            size=limit if end in (None, limit) else None)

    def planned_log(self, end: ReadPlan | LogEnd | None) -> tuple[PlannedLog, int]:
        """The log of its partition up to a planned end (None: as it is now), and the number of this segment in it."""
        if not isinstance(end, LogEnd):
            plan = self.plan_when_needed() if end is None else end
            return plan.log, plan.number_of(self)
        log = planned_log(self.path, end, self.options)
        number = log.number_of_file(self.path.rpartition("/")[2])
        if number is not None:
            return log, number
        names = names_beside(self.path, self.options)  # its name has no offset: it has no followers
        limit = None if end.size < 0 else end.size
        segment = PlannedSegment(self.path, self.base_offset, self.file, names, self.options, limit)
        return PlannedLog([segment], {}, self.options), 0

    @overload
    def batches(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        verify_crc: bool = True,
        errors: Literal["raise"] = "raise",
        max_batch_bytes: int = MAX_BATCH_BYTES,
        strict_tail: bool = False,
    ) -> SegmentBatches[RecordBatch]: ...
    @overload
    def batches(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        verify_crc: bool = True,
        errors: str,
        max_batch_bytes: int = MAX_BATCH_BYTES,
        strict_tail: bool = False,
    ) -> SegmentBatches[RecordBatch | BadBatch]: ...
    def batches(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        verify_crc: bool = True,
        errors: str = "raise",
        max_batch_bytes: int = MAX_BATCH_BYTES,
        strict_tail: bool = False,
    ) -> SegmentBatches[RecordBatch] | SegmentBatches[RecordBatch | BadBatch]:
        """The RecordBatches in bytes [start, end), as kwire.read_batches; .position is the byte in the file.

        errors="keep" yields BadBatch for what is damaged and goes on at the next valid batch. The iterator's .tail is
        (position, bytes left) of a partial last batch or of zeros, after its end. Errors raised have .file.
        """
        return SegmentBatches(
            self, start, end, verify_crc=verify_crc, errors=errors, max_batch_bytes=max_batch_bytes,
            strict_tail=strict_tail,
        )

    @overload
    def read(
        self, *, errors: Literal["raise"] = "raise", transactions: ReadPlan | None = ..., **options: Unpack[ReadRange],
    ) -> SharedIterator[Record]: ...  # fmt: skip
    @overload
    def read(
        self, *, errors: str, transactions: ReadPlan | None = ..., **options: Unpack[ReadRange],
    ) -> SharedIterator[Record | BadBatch]: ...  # fmt: skip
    @shared_groups
    def read(
        self,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | None = None,
        end_timestamp: int | None = None,
        committed: bool = False,
        transactions: ReadPlan | None = None,
        control: bool = False,
        verify_crc: bool = True,
        errors: str = "raise",
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> Iterator[Iterator[Record | BadBatch]]:
        """The Records of the range, in order; control records only with control=True.

        committed=True leaves out aborted and still open transactions (and control records), as they are when the first
        record is asked for, or by a plan() that reads of several segments share. Raises CorruptBatchError or LimitError
        (.file) at a damaged batch; errors="keep" yields a BadBatch for it, and goes on at the next valid one.
        """
        check_type(transactions, (ReadPlan, NoneType), "transactions", "a plan")
        bounds = bounds_of(start_offset, end_offset, start_timestamp, end_timestamp)
        plan = self.plan_when_needed() if committed and transactions is None else transactions
        held = self.held()
        start = held.start_of(bounds)
        end = plan.end_of(self) if committed and plan is not None else None
        batches: SegmentBatches[RecordBatch | BadBatch] = SegmentBatches(
            held, start, end, size=end, verify_crc=verify_crc, errors=errors, max_batch_bytes=max_batch_bytes,
            plan=plan if committed else None)
        last, past = -1, RangeEnd()
        try:
            for batch in batches:
                if isinstance(batch, BadBatch):
                    if bounds.reaches(last):
                        yield iter((batch,))
                    continue
                last = batch.last_offset
                if past.is_reached(bounds.is_past(batch), batch.size):
                    return
                if bounds.misses(batch) or (batch.is_control and (committed or not control)):
                    continue
                if batches.is_hidden(batch):
                    continue
                yield iter(batch) if bounds.holds(batch) else filter(bounds.admits, batch)
        except KwireError as error:
            if not bounds.reaches(last):  # what is damaged comes after the range
                return
            raise located(error, self.path) from error.__cause__
        if not past.count and (end is None or end == self.size):
            self.note_tail(batches.tail)

    def columns(self, fields: Sequence[str] = RECORD_FIELDS, **options: Unpack[ColumnRange]) -> RecordColumns:
        """RecordColumns of the whole range at once, as kwire.columns; keywords as column_batches (but not rows)."""
        return gather_all([self], fields, **options)

    def column_batches(
        self,
        fields: Sequence[str] = RECORD_FIELDS,
        *,
        rows: int = BATCH_ROWS,
        start: int = 0,
        end: int | None = None,
        guessed: bool = False,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | None = None,
        end_timestamp: int | None = None,
        committed: bool = False,
        transactions: Transactions | LogEnd | ReadPlan | None = None,
        control: bool = False,
        views: bool = False,
        verify_crc: bool = True,
        errors: str = "raise",
        max_batch_bytes: int = MAX_BATCH_BYTES,
        strict_tail: bool = False,
        progress: Callable[[int], None] | None = None,
        states: dict[int, str] | None = None,
    ) -> ColumnBatches:
        """RecordColumns piece by piece, in bounded memory: about `rows` rows each, split at batch boundaries.

        start, end: a byte range as split() gives it; with guessed=True any bytes: what begins in [start, end) is read,
        batches and bad regions, so that ranges side by side give everything once. committed=True leaves out aborted and
        open transactions: as the data of the range says, and where it leaves one open, the .txnindex files, producer
        snapshots and markers of the partition, up to its end now, or to that of the LogEnd or the plan that is given
        as transactions: reads of its segments have to share one where a broker writes to it.
        errors="keep": bad batches give no rows; they are in each piece's .bad as BadBatch (position: byte in the file),
        and reading goes on at the next valid batch. progress: called with the bytes done since the last call. Errors
        raised name the file, the batch offset and the byte, and have .file. states: a dict that is filled for each
        piece with the position of each transactional batch in it -> "committed", "aborted" or "open".
        """
        start, rows = check_int(start, "start"), check_int(rows, "rows")
        check_ints(end=end)
        check_progress(progress)
        check_type(states, (dict, NoneType), "states", "a dict")
        check_type(transactions, (Transactions, LogEnd, ReadPlan, NoneType), "transactions",
                   "Transactions, a LogEnd or a plan")
        return ColumnBatches(
            self, fields, bounds_of(start_offset, end_offset, start_timestamp, end_timestamp), start=start, end=end,
            guessed=guessed, rows=rows, committed=committed, transactions=transactions, errors=errors,
            strict_tail=strict_tail, progress=progress, states=states, control=control, views=views,
            verify_crc=verify_crc, max_batch_bytes=max_batch_bytes,
        )

    def verify(self) -> list[Finding]:
        """The findings in the segment and its indexes; empty when nothing is wrong."""
        from kwire.storage.reading.verify import verify_segment

        return verify_segment(self)

    def stats(self) -> SegmentStats:
        """Batches, records, codecs, sizes, ratio, producers, time range."""
        from kwire.storage.reading.stats import segment_stats

        return segment_stats(self)


def _entry(entry: tuple[int, int] | None, until: int) -> tuple[int, int, int] | None:
    return entry and (*entry, until)


def open_listed(file: SegmentFile, options: dict[str, Any] | None = None) -> LogSegment:
    """The segment of a file that was listed: what the listing said is not asked again. Raises as LogSegment."""
    return LogSegment(file.path, topic=file.topic, partition=file.partition, options=options, size=file.size,
                      beside=file.beside)


def as_written(files: Sequence[SegmentFile]) -> Sequence[SegmentFile]:
    """The segments of a partition as they were listed, the last one without the zeros that a broker will write over."""
    last = files[-1]
    if last.size < 0 or is_url(last.path):
        return files
    try:
        end = written(open_listed(last), listed=last.size)[1]
    except OSError:  # deleted since it was listed, or may not be read: who reads it says so
        return files
    return files if end is None else [*files[:-1], last._replace(size=end)]
