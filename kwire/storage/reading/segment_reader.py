"""Ranges of a segment as batches, and as columns piece by piece, without aborted transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from kwire.codec.arguments import check_choice, check_int, check_ints
from kwire.codec.record_columns import RecordColumns, gather_columns
from kwire.codec.records import BadBatch, RecordBatch, read_batches
from kwire.defaults import BATCH_ROWS, MAX_BATCH_BYTES
from kwire.errors import CorruptBatchError, KwireError
from kwire.shared_iterator import SharedIterator
from kwire.storage.batches.scanner import (
    KEPT_BYTES,
    OBJECT_BYTES,
    WINDOW_BYTES,
    Scanner,
    Window,
    window_headers,
)
from kwire.storage.isolation.committed import CommittedWindows
from kwire.storage.isolation.transactions import Transactions
from kwire.storage.places.filesystem import located
from kwire.storage.reading.bounds import Bounds, RangeEnd, bounds_of
from kwire.storage.reading.read_plan import ReadPlan, ReadPlans

if TYPE_CHECKING:
    from kwire.storage.isolation.planned_log import LogEnd
    from kwire.storage.reading.segment import LogSegment

_PIECE_BYTES = 16 << 20  # of a segment in one piece of columns; the same limit holds for decompressed bytes
_MOST_OPEN = 32  # segments that are open at a time; where there are more, the start of a range is sought twice


B = TypeVar("B", bound=RecordBatch | BadBatch)


class SegmentBatches(Generic[B]):
    """The batches of a segment in order, window by window.

    size: bytes of the file that are of the log, None: all. plan: by which committed batches are known to is_hidden().
    """

    def __init__(
        self,
        segment: LogSegment,
        start: int = 0,
        end: int | None = None,
        *,
        verify_crc: bool = True,
        errors: str = "raise",
        max_batch_bytes: int = MAX_BATCH_BYTES,
        strict_tail: bool = False,
        size: int | None = None,
        plan: ReadPlan | None = None,
    ) -> None:
        check_choice(errors, ("raise", "keep"), "errors")
        start = check_int(start, "start")
        check_ints(end=end)
        self._segment = segment
        options = _scan_options(errors == "keep", verify_crc)
        scan = partial(Scanner, segment.file, end=end, size=size, **options)
        self._scanner = Scanner(segment.file, start, end, size=size, read_bytes=OBJECT_BYTES, **options)
        self._committed = None if plan is None else CommittedWindows(
            segment.file, partial(segment.planned_log, plan), scan)
        self._batches = SharedIterator(_batches_of(
            segment, self._scanner, self._committed, strict_tail, verify_crc=verify_crc, errors=errors,
            max_batch_bytes=max_batch_bytes))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> B:
        try:
            return cast(B, next(self._batches))
        except KwireError as error:
            raise located(error, self._segment.path) from error.__cause__

    @property
    def tail(self) -> tuple[int, int] | None:
        """(position, bytes left) of a partial last batch, or None; known when all batches were read."""
        return self._scanner.tail

    def is_hidden(self, batch: RecordBatch) -> bool:
        """Is the batch that was given last of an aborted or open transaction?"""
        return self._committed is not None and batch.is_transactional and (
            self._committed.state(batch.producer_id, batch.position) != "committed")


def _batches_of(
    segment: LogSegment, scanner: Scanner, committed: CommittedWindows | None, strict_tail: bool, **options: Any
) -> Iterator[RecordBatch | BadBatch]:
    """The batches of SegmentBatches. It holds no reference to these: once they are dropped, so are the windows."""
    keep, path = options["errors"] == "keep", segment.file.path
    for window in scanner if committed is None else committed.decided(scanner):
        if window.bad is None:
            for batch in read_batches(window.data, position=window.position, **options):
                if isinstance(batch, BadBatch):
                    located(batch.error, path)
                yield batch
        else:
            error = bad_region(window)
            if not keep:
                raise error
            limit = window.position + options["max_batch_bytes"]
            raw = segment.file.read(window.position, min(window.end, limit))
            yield BadBatch(window.position, raw, located(error, path))
    if scanner.tail is not None and strict_tail:
        bad = _torn(segment, scanner.tail)
        if not keep:
            raise bad.error
        yield bad


def _torn(segment: LogSegment, tail: tuple[int, int], number: int = 0) -> BadBatch:
    """The partial last batch as a bad one."""
    position, left = tail
    reason = f"partial last batch: {left} bytes left are not a whole batch"
    error = CorruptBatchError(reason, position=position, size=left)
    raw = segment.file.read(position, position + min(left, MAX_BATCH_BYTES))
    return BadBatch(position, raw, located(error, segment.path), number)


def bad_region(window: Window) -> CorruptBatchError:
    """The error for a region without valid batches."""
    size = window.end - window.position
    reason = f"{window.bad}; {size} bytes up to byte {window.end} hold no valid batch"
    return CorruptBatchError(reason, position=window.position, offset=window.offset, size=size)


def bytes_of(batch: RecordBatch | BadBatch) -> int:
    """The bytes of a batch, or of a bad region, of which a BadBatch holds the first."""
    if isinstance(batch, BadBatch):
        return max(len(batch.raw), getattr(batch.error, "size", -1))
    return batch.size


class ColumnBatches(SharedIterator[RecordColumns]):
    """RecordColumns of a range of a segment in order, piece by piece; keywords as _Range has them.

    Threads may share it. A piece has about `rows` rows and at most 16 MiB of the file; it ends early after more than
    16 MiB were decompressed. committed: the aborted and open transactions are left out: by transactions, or
    as the data is read, by CommittedWindows.
    """

    def __init__(self, segment: LogSegment, fields: Sequence[str], bounds: Bounds, **options: Any) -> None:
        self._range = _Range(segment, fields, bounds, **options)
        super().__init__(self._range.read())

    def find_tail(self) -> tuple[int, int] | None:
        """(position, bytes left) of a partial last batch that begins in the range, or None; nothing is read for it.

        Known when all pieces were read. None too if reading ended before it, at the end offset.
        """
        return self._range.tail

    def find_torn_tail(self) -> tuple[int, int] | None:
        """As find_tail, but None for zeros, which a broker preallocates: nothing is lost there."""
        return None if self._range.tail_is_zeros else self._range.tail


class _Range:
    """The reading side of ColumnBatches. It holds no reference to them: once they are dropped, the file is closed."""

    def __init__(
        self,
        segment: LogSegment,
        fields: Sequence[str],
        bounds: Bounds,
        *,
        start: int = 0,
        end: int | None = None,
        guessed: bool = False,
        rows: int = BATCH_ROWS,
        committed: bool = False,
        transactions: Transactions | LogEnd | ReadPlan | None = None,
        errors: str = "raise",
        strict_tail: bool = False,
        progress: Callable[[int], None] | None = None,
        states: dict[int, str] | None = None,
        **options: Any,
    ) -> None:
        self._segment, self._fields, self._bounds = segment, fields, bounds
        self._start, self._end, self._guessed, self._rows = start, end, guessed, rows
        self._committed, self._transactions = committed, transactions
        self._errors, self._strict_tail, self._options = errors, strict_tail, options
        self._progress, self._states = progress, states
        self._plan_end: int | None = None  # where the log ended when it was planned, if the range goes to it
        self.tail: tuple[int, int] | None = None
        self.tail_is_zeros = False

    def read(self) -> Iterator[RecordColumns]:
        """The pieces."""
        segment = self._segment.held()
        hidden: Transactions | CommittedWindows | None = None
        if self._committed or self._states is not None:
            given = self._transactions
            if given is None:
                given = self._segment.plan_when_needed(bool(self._committed))
            if isinstance(given, ReadPlan) and self._end is None:
                self._end = self._plan_end = given.end_of(segment)
            hidden = given if isinstance(given, Transactions) else CommittedWindows(
                segment.file, partial(segment.planned_log, given), partial(self._scan, segment))
        done = self._start
        for columns, position in self._positioned(segment, hidden):
            yield columns
            if self._progress is not None:
                self._progress(position - done)
                done = position

    def _scan(self, segment: LogSegment, start: int) -> Scanner:
        """The windows of the range from the beginning of one on."""
        options = _scan_options(self._errors == "keep", self._options.get("verify_crc", True))
        return Scanner(segment.file, start, self._end, size=self._plan_end, **options)

    def _positioned(
        self, segment: LogSegment, hidden: Transactions | CommittedWindows | None
    ) -> Iterator[tuple[RecordColumns, int]]:
        """(RecordColumns, position after them) for each window in turn. segment: held."""
        fields, bounds = self._fields, self._bounds
        keep = self._errors == "keep"
        verify = self._options.get("verify_crc", True)
        options = self._options | {"verify_crc": verify and not keep}  # the scanner has checked it
        scanner = segment.scan(
            bounds, self._start, self._end, size=self._plan_end, guessed=self._guessed, window_bytes=_PIECE_BYTES,
            rows=self._rows, **_scan_options(keep, verify))
        for window in _decided(scanner, bounds, hidden if isinstance(hidden, CommittedWindows) else None):
            if window.bad is not None:
                yield _bad_columns(segment, window, fields, keep), window.end
                continue
            left: Window | None = window
            while left is not None:
                place = iter([(left.data, 0, left.position)])
                if self._states is not None:
                    self._states.clear()
                columns = _gathered(
                    [segment], place, fields, bounds, [hidden], committed=self._committed, states=self._states,
                    origin=partial(int, left.position), errors=self._errors, budget=_PIECE_BYTES,
                    total=len(left.data), **options,
                )
                del place
                stopped = columns.stopped
                yield columns, left.end if stopped is None else stopped
                if stopped is not None and stopped < left.end:
                    left = Window(stopped, left.end, left.data[stopped - left.position :])
                else:
                    left = None
                del columns
            del window
        if bounds.reaches(scanner.last):
            self.tail, self.tail_is_zeros = scanner.tail, scanner.tail_is_zeros
        if scanner.ended and (self._end is None or self._plan_end == segment.size):
            self._segment.note_tail(scanner.tail)
        if self.tail is not None and self._strict_tail:
            yield _tail_columns(segment, self.tail, fields, keep), segment.size


def _scan_options(keep: bool, verify: bool) -> dict[str, Any]:
    """Of a Scanner: after damage it searches where bad batches are kept; only there it computes the checksums itself.

    verify: they are computed at all, there or when the batches are read.
    """
    return {"search": keep, "verify": keep and verify, "checked": verify}


def _decided(scanner: Scanner, bounds: Bounds, deciding: CommittedWindows | None) -> Iterator[Window]:
    """The windows of _within(), of a committed read each once all its batches are decided."""
    if deciding is None:
        return _within(scanner, bounds)
    return deciding.decided(_within(scanner, bounds, deciding.look))


def _within(scanner: Scanner, bounds: Bounds, look: Callable[[Window], None] | None = None) -> Iterator[Window]:
    """The windows of a scanner that may have records in a range, and the bad regions that may have had some.

    Damage before the first batch of the range is reported if that batch does not begin the range. It ends as RangeEnd
    tells. Batches of magic 2 past the end are left out, but the first one where offsets of the range are missing before
    it: damage after it is none of the range. look: called with each window of which something is left out, though the
    range may go on after it.
    """
    scanner.begin()
    search, verify = scanner.search, scanner.verify
    before = bounds.start_offset is not None or bounds.start_timestamp is not None
    if before:
        scanner.search = scanner.verify = True
    past = RangeEnd()
    last = -1  # offset of the batch before
    for window in scanner:
        if window.bad is not None:
            if bounds.touches(window):
                yield window
            elif look is not None and not before:
                look(window)
            continue
        if before:
            begin = next((header.position for header in window_headers(window) if bounds.may_begin(header)), None)
            if begin is None:
                continue
            before, scanner.search, scanner.verify = False, search, verify
            window = Window(begin, window.end, window.data[begin - window.position :])
        end = bounds.end_offset
        if end is not None and (not 0 <= scanner.last < end or bounds.is_past_header(window)):
            ended, stop = False, window.position
            for header in window_headers(window):
                # the offset of a wrapper of magic 0 or 1 is its last one: it begins after the batch before it
                is_past = header.base_offset >= end and (header.magic == 2 or last >= end - 1)
                ended = past.is_reached(is_past, header.size)
                if not is_past or header.magic < 2 or (past.count == 1 and bounds.reaches(last)):
                    stop = header.position + header.size
                last = header.last_offset
                if ended:
                    break
            scanner.last = last  # it does not know it where it does not verify
            if look is not None and not ended:
                look(window)
            if stop > window.position:
                yield Window(window.position, stop, window.data[: stop - window.position])
            if ended:
                return
            continue
        past, last = RangeEnd(), scanner.last
        yield window
        del window


def gather_all(
    segments: Sequence[LogSegment],
    fields: Sequence[str],
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
    start_timestamp: int | None = None,
    end_timestamp: int | None = None,
    committed: bool = False,
    errors: str = "raise",
    strict_tail: bool = False,
    **options: Any,
) -> RecordColumns:
    """RecordColumns of a range of many segments together; column "source" is the number of the segment."""
    bounds = bounds_of(start_offset, end_offset, start_timestamp, end_timestamp)
    read_bytes = KEPT_BYTES if options.get("views") else WINDOW_BYTES
    keep, verify = errors == "keep", options.get("verify_crc", True)
    scan_options = _scan_options(keep, verify)

    def opened(segment: LogSegment, end: int | None) -> tuple[LogSegment, Scanner]:
        held = segment.held()
        return held, held.scan(bounds, end=end, size=end, read_bytes=read_bytes, **scan_options)

    first: list[tuple[LogSegment, Scanner]] = []  # segments, with their files open
    ends: list[int | None] = []  # of all
    hidden: list[CommittedWindows | None] = [None] * len(segments)
    plans, total = ReadPlans(), 0
    for segment in segments:
        end = plans.of(segment).end_of(segment) if committed else None
        held, scanner = opened(segment, end)
        total += max(0, (held.size if end is None else end) - scanner.begin())
        if len(first) < _MOST_OPEN:
            first.append((held, scanner))
        ends.append(end)
    options["verify_crc"] = verify and not keep  # the scanners have checked it
    bad: list[BadBatch] = []
    tail = None
    origin = 0  # of the window that is gathered

    def windows() -> Iterator[tuple[memoryview, int, int]]:
        nonlocal tail, origin
        for number, segment in enumerate(segments):
            end = ends[number]
            held, scanner = first[number] if number < len(first) else opened(segment, end)
            deciding = None
            if committed:
                deciding = hidden[number] = CommittedWindows(
                    held.file, partial(held.planned_log, plans.of(segment)),
                    partial(Scanner, held.file, end=end, size=end, **scan_options))
            for window in _decided(scanner, bounds, deciding):
                if window.bad is not None:
                    bad.extend(_bad_columns(held, window, fields, keep, number).bad)
                    continue
                origin = window.position
                yield window.data, number, origin
                del window
            hidden[number] = None
            found = scanner.tail if bounds.reaches(scanner.last) else None
            tail = found or tail
            if found is not None and strict_tail:
                bad.extend(_tail_columns(held, found, fields, keep, number).bad)

    columns = _gathered(
        segments, windows(), fields, bounds, hidden, committed=committed, errors=errors, total=total,
        origin=lambda: origin, **options)
    columns.tail = tail
    columns.bad[:] = sorted([*columns.bad, *bad], key=lambda batch: (batch.source, batch.position))
    return columns


def _gathered(
    segments: Sequence[LogSegment],
    windows: Iterable[tuple[memoryview, int, int]],
    fields: Sequence[str],
    bounds: Bounds,
    hidden: Sequence[Transactions | CommittedWindows | None],
    *,
    committed: bool = False,
    states: dict[int, str] | None = None,
    origin: Callable[[], int],
    control: bool = False,
    **options: Any,
) -> RecordColumns:
    """RecordColumns of (bytes, number of the segment, position in it); hidden: for each segment, what to leave out.

    origin: gives the position of the bytes that are gathered. committed: it is left out; states: filled with the
    position of each batch of a transaction -> its state, where the bytes are those of one segment.
    """

    def decide(producer_id: int, base_offset: int, number: int, position: int) -> bool:
        transactions = hidden[number]
        if transactions is None:
            return True
        position += origin()
        by_offset = isinstance(transactions, Transactions)
        state = transactions.state(producer_id, base_offset if by_offset else position)
        if states is not None:
            states[position] = state
        return not committed or state == "committed"

    try:
        columns = gather_columns(
            windows,
            fields,
            control=control and not committed,
            decide=decide if committed or states is not None else None,
            offsets=(bounds.start_offset, bounds.end_offset) if bounds[:2] != (None, None) else None,
            timestamps=(bounds.start_timestamp, bounds.end_timestamp) if bounds[2:] != (None, None) else None,
            **{"max_batch_bytes": MAX_BATCH_BYTES, **options},
        )
    except KwireError as error:
        raise located(error, segments[getattr(error, "source", 0)].path) from error.__cause__
    for batch in columns.bad:
        located(batch.error, segments[batch.source].path)
    return columns


def _bad_columns(
    segment: LogSegment, window: Window, fields: Sequence[str], keep: bool, number: int = 0
) -> RecordColumns:
    """RecordColumns without rows, the bad region in .bad; raises its error unless keep."""
    error = located(bad_region(window), segment.path)
    if not keep:
        raise error
    columns = gather_columns([], fields, max_batch_bytes=MAX_BATCH_BYTES)
    columns.bad.append(BadBatch(window.position, bytes(window.data), error, number))
    return columns


def _tail_columns(
    segment: LogSegment, tail: tuple[int, int], fields: Sequence[str], keep: bool, number: int = 0
) -> RecordColumns:
    """RecordColumns without rows, the partial last batch in .bad; raises its error unless keep."""
    bad = _torn(segment, tail, number)
    if not keep:
        raise bad.error
    columns = gather_columns([], fields, max_batch_bytes=MAX_BATCH_BYTES)
    columns.bad.append(bad)
    return columns
