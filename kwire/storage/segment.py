"""LogSegment: one .log file and the indexes beside it, read by offset, time or byte range."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kwire.defaults import BATCH_ROWS, MAX_BATCH_BYTES, RECORD_FIELDS
from kwire.errors import KwireError
from kwire.shared_iterator import shared
from kwire.storage import indexes, scanner
from kwire.storage.batch_header import BatchHeader, examine
from kwire.storage.bounds import Bounds
from kwire.storage.discovery import beside, later_segments, offset_in_name, place_of
from kwire.storage.filesystem import SpooledFile, is_url, located, open_file, plain, shown
from kwire.storage.once import once
from kwire.storage.planned_log import LogEnd, PlannedLog, PlannedSegment, names_beside, planned_log
from kwire.storage.segment_reader import ColumnBatches, SegmentBatches, gather_all
from kwire.storage.splits import ByteRange, split
from kwire.storage.transactions import (
    AbortedByIndex,
    FirstMarkers,
    LaterMarkers,
    Transactions,
    find_transactions,
    listed_aborted,
    markers_after,
)

if TYPE_CHECKING:
    from kwire.storage.stats import SegmentStats
    from kwire.storage.verify import Finding

class PartitionSegments:
    """The segments of a partition in order, and their transaction markers and aborted transactions."""

    def __init__(self, segments: list[LogSegment]) -> None:
        self.segments = segments

    @once
    def markers(self) -> LaterMarkers:
        """The first marker of a producer after a segment."""
        return LaterMarkers(self.segments)

    @once
    def aborted(self) -> AbortedByIndex:
        """The aborted transactions in valid .txnindex files. Raises LimitError if they are too many."""
        return AbortedByIndex(listed_aborted(self.segments))

    @once
    def planned(self) -> PlannedLog:
        """The same segments as a planned log, whose end is wherever they end now."""
        names: dict[str, dict[str, int]] = {}
        segments = []
        for segment in self.segments:
            folder, at, _ = segment.path.rpartition("/")
            if folder + at not in names:
                names[folder + at] = names_beside(segment.path, segment.options)
            segments.append(PlannedSegment(
                segment.path, segment.base_offset, segment.file, names[folder + at], segment.options))
        first = segments[0].path
        return PlannedLog(segments, names[first[: first.rfind("/") + 1]], self.segments[0].options)


class LogSegment:
    """One segment of a partition. path: a local file or an fsspec URL (s3://bucket/topic-0/0000.log, memory://...).

    topic, partition: from the folder name `topic-N`, else None, unless given. Only the .log file is needed. Positions
    are bytes in the file, offsets Kafka offsets, timestamps milliseconds; all ends are exclusive. options: keywords
    for fsspec. Raises FileNotFoundError if the file does not exist.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        topic: str | None = None,
        partition: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.path = plain(path)
        self.options = options
        self.file = open_file(self.path, options)
        if isinstance(self.file, SpooledFile) and not self.file.once:
            os.stat(self.path)  # a .gz is decompressed when it is read
        else:
            self.file.size()
        place = place_of(self.path)
        self.topic = place[0] if topic is None else topic
        self.partition = place[1] if partition is None else partition
        self._tail: tuple[int, int] | bool | None = False
        self._number = 0

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
        return PartitionSegments([self, *(
            type(self)(path, topic=self.topic, partition=self.partition, options=self.options)
            for path in later_segments(self.path, self.options)
        )])  # fmt: skip

    def join(self, log: PartitionSegments, number: int) -> None:
        """Make this the segment of that number in a partition."""
        self.log, self._number = log, number

    @property
    def tail(self) -> tuple[int, int] | None:
        """(position, bytes left) of a partial last batch or of preallocated zeros, None if the file ends cleanly."""
        if self._tail is False:
            windows = scanner.Scanner(self.file)
            for _ in windows:
                pass
            self._tail = windows.tail
        return self._tail  # type: ignore[return-value]

    def note_tail(self, tail: tuple[int, int] | None) -> None:
        """Remember the tail that a scan to the end found."""
        self._tail = tail

    def _beside(self, kind: str) -> bytes | None:
        try:
            file = open_file(beside(self.path, kind), self.options)
            if isinstance(file, SpooledFile):  # a pipe, which the user did not name: it may never end
                return None
            file = file.held()
            return file.read(0, min(file.size(), indexes.MOST_BYTES + 1))
        except FileNotFoundError:
            return None

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
        return split(self.file, partition_bytes, self.index)

    def headers(self, start: int = 0, end: int | None = None) -> Iterator[BatchHeader]:
        """The headers of the batches in bytes [start, end), nothing decoded; start is a batch boundary.

        Raises CorruptBatchError (.file .position .offset .reason) at bytes that are not a batch.
        """
        return scanner.headers(self.file, start, end)

    def seek(self, offset: int) -> int:
        """Position of the batch that holds the first record at or after offset; .size if there is none."""
        return self._first(self._near(offset), lambda header: header.last_offset >= offset)

    def seek_time(self, timestamp: int) -> int:
        """Position of the first batch whose max timestamp is >= timestamp (ms); .size if there is none."""
        return self._first(self._near_time(timestamp), lambda header: header.max_timestamp >= timestamp)

    def _first(self, start: int, wanted: Any) -> int:
        for window in scanner.Scanner(self.file, start):
            if window.bad is None:
                for header in scanner.window_headers(window):
                    if wanted(header):
                        return header.position
        return self.size

    def _near(self, offset: int) -> int:
        """A batch boundary at or before the batch that holds offset: by the index if it is right, else 0."""
        entry = self.index.below(offset) if self.index else None
        if entry and self.index and self.index.points_to_batch(self.file, entry, self.size):
            return entry[1]
        return 0

    def _near_time(self, timestamp: int) -> int:
        """A batch boundary before which all timestamps are smaller: by both indexes if they are right, else 0."""
        index = self.time_index
        entry = index.before(timestamp) if index and index.damage is None else None
        if entry is None:
            return 0
        for window in scanner.Scanner(self.file, self._near(entry[1])):
            for header in scanner.window_headers(window) if window.bad is None else ():
                if header.last_offset >= entry[1]:
                    return header.position if header.max_timestamp == entry[0] else 0
        return 0

    def start_of(self, bounds: Bounds) -> int:
        """The position at which reading a range begins."""
        start = 0
        if bounds.start_offset is not None and bounds.start_offset > self.base_offset:
            start = self.seek(bounds.start_offset)
        if bounds.start_timestamp is not None:
            start = max(start, self.seek_time(bounds.start_timestamp))
        return start

    def transactions(self, start: int = 0, end: int | None = None) -> Transactions:
        """Aborted and open transactions of the batches in bytes [start, end); looks into later segments as needed."""
        log, number = self.log, self._number
        file = self.file.held()

        def after(pending: dict[int, int], position: int) -> Iterator[tuple[int, int, int]]:
            return markers_after(file, position, pending, lambda producer: log.markers.after(number, producer))

        return find_transactions(file, start, end, after, log.aborted)

    def planned_log(self, end: LogEnd | None) -> tuple[PlannedLog, int]:
        """The log of its partition up to a planned end (None: as it is now), and the number of this segment in it."""
        if end is None:
            return self.log.planned, self._number
        log = planned_log(self.path, end, self.options)
        number = log.number_of_file(self.path.rpartition("/")[2])
        if number is not None:
            return log, number
        names = names_beside(self.path, self.options)  # its name has no offset: it has no followers
        limit = None if end.size < 0 else end.size
        segment = PlannedSegment(self.path, self.base_offset, self.file, names, self.options, limit)
        return PlannedLog([segment], {}, self.options), 0

    @once
    def first_markers(self) -> FirstMarkers:
        """The first transaction marker of each producer in this segment, read as far as needed."""
        return FirstMarkers(self.file)

    def batches(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        verify_crc: bool = True,
        errors: str = "raise",
        max_batch_bytes: int = MAX_BATCH_BYTES,
        strict_tail: bool = False,
    ) -> SegmentBatches:
        """The RecordBatches in bytes [start, end), as kwire.read_batches; .position is the byte in the file.

        errors="keep" yields BadBatch for what is damaged and goes on at the next valid batch. The iterator's .tail is
        (position, bytes left) of a partial last batch or of zeros, after its end. Errors raised have .file.
        """
        return SegmentBatches(
            self, start, end, verify_crc=verify_crc, errors=errors, max_batch_bytes=max_batch_bytes,
            strict_tail=strict_tail,
        )

    @shared
    def read(
        self,
        *,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | None = None,
        end_timestamp: int | None = None,
        committed: bool = False,
        control: bool = False,
        verify_crc: bool = True,
        max_batch_bytes: int = MAX_BATCH_BYTES,
    ) -> Iterator[Any]:
        """The Records of the range, in order; control records only with control=True.

        committed=True leaves out aborted and still open transactions (and control records). Raises CorruptBatchError or
        LimitError (.file) at a damaged batch.
        """
        bounds = Bounds(start_offset, end_offset, start_timestamp, end_timestamp)
        start = self.start_of(bounds)
        hidden = self.transactions(start) if committed else Transactions()
        try:
            for batch in self.batches(start, verify_crc=verify_crc, max_batch_bytes=max_batch_bytes):
                if bounds.is_past(batch):
                    return
                if bounds.misses(batch) or (batch.is_control and (committed or not control)):
                    continue
                if committed and batch.is_transactional and hidden.hides(batch.producer_id, batch.base_offset):
                    continue
                yield from batch if bounds.holds(batch) else filter(bounds.admits, batch)
        except KwireError as error:
            raise located(error, self.path) from error.__cause__

    def columns(self, fields: Sequence[str] = RECORD_FIELDS, **options: Any) -> Any:
        """RecordColumns of the whole range at once, as kwire.columns; keywords as column_batches (but not rows)."""
        return gather_all([self], fields, **options)

    def column_batches(
        self,
        fields: Sequence[str] = RECORD_FIELDS,
        *,
        rows: int = BATCH_ROWS,
        start: int = 0,
        end: int | None = None,
        start_offset: int | None = None,
        end_offset: int | None = None,
        start_timestamp: int | None = None,
        end_timestamp: int | None = None,
        committed: bool = False,
        transactions: Transactions | LogEnd | None = None,
        control: bool = False,
        views: bool = False,
        verify_crc: bool = True,
        errors: str = "raise",
        max_batch_bytes: int = MAX_BATCH_BYTES,
        strict_tail: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> ColumnBatches:
        """RecordColumns piece by piece, in bounded memory: about `rows` rows each, split at batch boundaries.

        start, end: a byte range as split() gives it. committed=True leaves out aborted and open transactions: as the
        data of the range says, and where it leaves one open, the .txnindex files, producer snapshots and markers of
        the partition, up to its end now, or to the LogEnd that is given as transactions.
        errors="keep": bad batches give no rows; they are in each piece's .bad as BadBatch (position: byte in the
        file), and reading goes on at the next valid batch. progress: called with the bytes done since the last call.
        Errors raised name the file, the batch offset and the byte, and have .file.
        """
        return ColumnBatches(
            self, fields, Bounds(start_offset, end_offset, start_timestamp, end_timestamp), start=start, end=end,
            rows=rows, committed=committed, transactions=transactions, errors=errors, strict_tail=strict_tail,
            progress=progress, control=control, views=views, verify_crc=verify_crc, max_batch_bytes=max_batch_bytes,
        )

    def verify(self) -> list[Finding]:
        """The findings in the segment and its indexes; empty when nothing is wrong."""
        from kwire.storage.verify import verify_segment

        return verify_segment(self)

    def stats(self) -> SegmentStats:
        """Batches, records, codecs, sizes, ratio, producers, time range."""
        from kwire.storage.stats import segment_stats

        return segment_stats(self)
