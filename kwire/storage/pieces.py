"""Ranges of a segment as batches, and as columns piece by piece, with aborted transactions taken out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kwire.codec.records import BadBatch, read_batches
from kwire.storage.scan import Scanner, Window, parse_header
from kwire.storage.source import located
from kwire.storage.transactions import Transactions
from kwire_c.failure import CorruptBatchError, KwireError

if TYPE_CHECKING:
    from kwire.storage.segment import LogSegment

PIECE_BYTES = 4 << 20  # of a segment, in one piece of columns
FIELDS = ("offset", "timestamp", "key", "value")


class Range(NamedTuple):
    """Offsets and timestamps (ms) that are wanted, ends exclusive; None: no bound."""

    start_offset: int | None = None
    end_offset: int | None = None
    start_timestamp: int | None = None
    end_timestamp: int | None = None

    def is_behind(self, batch: Any) -> bool:
        """Does the batch, and all after it, stand behind the range?"""
        return self.end_offset is not None and batch.base_offset >= self.end_offset

    def misses(self, batch: Any) -> bool:
        """Has the batch, by its header, no record in the range?"""
        return (
            (self.start_offset is not None and batch.last_offset < self.start_offset)
            or (self.start_timestamp is not None and batch.max_timestamp < self.start_timestamp)
            or self.is_behind(batch)
        )

    def holds(self, batch: Any) -> bool:
        """Are all records of the batch in the range?"""
        if self.start_timestamp is not None or self.end_timestamp is not None:
            return False
        return (self.start_offset is None or batch.base_offset >= self.start_offset) and (
            self.end_offset is None or batch.last_offset < self.end_offset
        )

    def admits(self, record: Any) -> bool:
        """Is the record in the range?"""
        return (
            (self.start_offset is None or record.offset >= self.start_offset)
            and (self.end_offset is None or record.offset < self.end_offset)
            and (self.start_timestamp is None or record.timestamp >= self.start_timestamp)
            and (self.end_timestamp is None or record.timestamp < self.end_timestamp)
        )


class SegmentBatches:
    """The batches of a segment in order, window by window. After its end, tail is (position, bytes left) or None."""

    tail: tuple[int, int] | None

    def __init__(
        self,
        segment: LogSegment,
        start: int,
        end: int | None,
        *,
        verify_crc: bool,
        errors: str,
        max_batch_bytes: int,
        strict_tail: bool,
    ) -> None:
        if errors not in ("raise", "keep"):
            raise ValueError(f"errors is 'raise' or 'keep', not {errors!r}")
        self.tail = None
        self._segment, self._keep, self._strict_tail = segment, errors == "keep", strict_tail
        self._options: dict[str, Any] = {"verify_crc": verify_crc, "errors": errors, "max_batch_bytes": max_batch_bytes}
        self._scanner = Scanner(segment.source, start, end, search=self._keep)
        self._batches = self._read()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._batches)
        except KwireError as error:
            raise located(error, self._segment.path) from error.__cause__

    def _read(self) -> Iterator[Any]:
        source = self._segment.source
        for window in self._scanner:
            if window.bad is None:
                yield from read_batches(window.data, position=window.position, **self._options)
            else:
                error = bad_region(window)
                if not self._keep:
                    raise error
                limit = window.position + self._options["max_batch_bytes"]
                raw = source.read(window.position, min(window.end, limit))
                yield BadBatch(window.position, raw, located(error, source.path))
        self.tail = self._scanner.tail
        if self.tail is not None and self._strict_tail:
            position, left = self.tail
            error = CorruptBatchError(f"partial last batch: {left} bytes left", position=position)
            if not self._keep:
                raise error
            yield BadBatch(position, source.read(position, position + left), located(error, source.path))


def bad_region(window: Window) -> CorruptBatchError:
    """The error that tells of bytes that are no batches."""
    region = f"{window.end - window.position} bytes up to byte {window.end} are no batches that can be trusted"
    reason = f"{window.bad}; {region}"
    return CorruptBatchError(reason, position=window.position, offset=window.offset)


class Piece(NamedTuple):
    """Whole batches of one window as runs of bytes with their positions in the file, or one bad region."""

    data: list[memoryview]
    positions: list[int]
    bad: BadBatch | None = None


def find_pieces(
    segment: LogSegment,
    span: Range,
    scanner: Scanner,
    transactions: Transactions | None,
    *,
    keep: bool,
) -> Iterator[Piece]:
    """The windows of a scanner as pieces, hidden batches taken out; ends behind the range."""
    for window in scanner:
        if window.bad is not None:
            error = located(bad_region(window), segment.path)
            if not keep:
                raise error
            yield Piece([], [], BadBatch(window.position, bytes(window.data), error))
            continue
        if span.end_offset is not None:
            first = parse_header(window.data, 0, window.position)
            if first.magic == 2 and first.base_offset >= span.end_offset:
                return
        if transactions is None:
            yield Piece([window.data], [window.position])
            continue
        runs = list(transactions.visible(window))
        yield Piece([window.data[a:b] for a, b in runs], [window.position + a for a, _ in runs])


def gather(
    segments: Sequence[LogSegment],
    fields: Sequence[str],
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_timestamp: int | None = None,
    end_timestamp: int | None = None,
    committed: bool = False,
    errors: str = "raise",
    **options: Any,
) -> Any:
    """RecordColumns of a range of many segments, all in one."""
    from kwire.codec.columns import columns

    span = Range(start_offset, end_offset, start_timestamp, end_timestamp)
    data: list[memoryview] = []
    positions: list[int] = []
    bad: list[BadBatch] = []
    files: list[str] = []
    for segment in segments:
        start = segment.start_of(span)
        hidden = segment.transactions(start) if committed else None
        scanner = Scanner(segment.source, start, search=errors == "keep")
        for piece in find_pieces(segment, span, scanner, hidden, keep=errors == "keep"):
            data += piece.data
            positions += piece.positions
            files += [segment.path] * len(piece.data)
            if piece.bad is not None:
                bad.append(piece.bad)
    rows = columns(data, fields, committed=committed, errors=errors, positions=positions, files=files, **span._asdict(),
                   **options)
    rows.bad.extend(bad)
    return rows
