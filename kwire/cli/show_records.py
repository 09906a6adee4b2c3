"""The records of `kwire log show`: which are shown, read piece by piece, written in blocks; the last ones; new ones."""

from __future__ import annotations

import re
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from os import fsencode
from typing import TYPE_CHECKING, Any

import click

from kwire.cli.record_lines import Decode, DecodedRecord, Lines
from kwire.cli.terminal import counted
from kwire.codec.json import json_text
from kwire.defaults import BATCH_ROWS
from kwire.errors import DecodeError
from kwire_c.printable import printable
from kwire_c.record_text import values_of

if TYPE_CHECKING:
    from kwire.cli.damage import Damage
    from kwire.storage import InternalRecord, LogSegment, Partition, SegmentFile
    from kwire.storage.places.discovery import PartitionKey
    from kwire.storage.reading.bounds import Bounds
    from kwire.storage.reading.log_follower import LogFollower, LogOffset
    from kwire.storage.reading.read_plan import ReadPlan, ReadPlans

_TAIL_BYTES = 1 << 17, 16 << 20  # looked at at a time for the last records: at first, at most
_EVERY = 0.5  # seconds between two looks at a log that is followed


class Filter:
    """Which records are shown, by their content. All conditions must hold.

    keys: one of these, as text or 0x and hex digits; grep: a regular expression found in the key or the value; headers:
    NAME or NAME=VALUE, all of them. Raises click.BadParameter for an invalid expression.
    """

    def __init__(self, keys: Sequence[str], grep: str | None, headers: Sequence[str]) -> None:
        self._keys = {found for key in keys for found in _contents(key)}
        self._headers = [(fsencode(name), fsencode(value) if equals else None)
                         for name, equals, value in (header.partition("=") for header in headers)]
        try:
            self._found = None if grep is None else re.compile(fsencode(grep)).search
        except (re.error, RecursionError, OverflowError) as error:
            raise click.BadParameter(f"{printable(grep or '')!r}: {error}", param_hint="'--grep'") from None
        self.fields = (*(("key",) if keys or grep is not None else ()), *(("value",) if grep is not None else ()),
                       *(("headers",) if headers else ()))

    def __bool__(self) -> bool:
        return bool(self.fields)

    def rows(self, columns: Any) -> list[int] | None:
        """The numbers of the rows that are shown; None: all."""
        if not self.fields:
            return None
        rows = list(range(len(columns)))
        if self._keys:
            keys = values_of(columns, "key")
            rows = [row for row in rows if keys[row] in self._keys]
        found = self._found
        if found is not None:
            keys, values = values_of(columns, "key"), values_of(columns, "value")
            rows = [row for row in rows if found(values[row] or b"") or found(keys[row] or b"")]
        if self._headers:
            headers = values_of(columns, "headers")
            rows = [row for row in rows if all(_has(headers[row], name, value) for name, value in self._headers)]
        return rows


def _contents(key: str) -> Iterator[bytes]:
    yield fsencode(key)
    if key.startswith("0x"):
        try:
            yield bytes.fromhex(key[2:])
        except ValueError:
            return


def _has(headers: list[tuple[bytes, bytes | None]], name: bytes, value: bytes | None) -> bool:
    return any(name == header and value in (None, content) for header, content in headers)


class Records:
    """The records that are wanted, and what could not be decoded. failures: file -> what is wrong; damaged: is it data?

    span: keywords of column_batches for a range, and committed. left: records that may still be shown. damage: what is
    done at damaged batches.
    """

    def __init__(
        self, limit: int | None, control: bool, raw: bool, span: dict[str, Any], wanted: Filter, damage: Damage
    ) -> None:
        self.left = sys.maxsize if limit is None else limit
        self.control, self.raw, self.span, self.wanted = control, raw, span, wanted
        self.failures: dict[str, str] = {}
        self.damaged, self.damage = False, damage
        self._undecoded: dict[str, tuple[int, str]] = {}  # file -> records, the first one
        self._kinds: dict[str, str | None] = {}
        self._plans: ReadPlans | None = None

    def plan(self, segment: LogSegment) -> ReadPlan:
        """The plan of the partition of a segment, without an end where not only committed records are shown."""
        from kwire.storage.reading.read_plan import ReadPlans

        if self._plans is None:
            self._plans = ReadPlans(bounded=self.span["committed"])
        return self._plans.of(segment)

    def kind(self, segment: LogSegment) -> str | None:
        """The kind of the records of an internal topic; None where bytes are shown."""
        from kwire.storage import internal_kind

        if self.raw:
            return None
        if segment.path not in self._kinds:
            self._kinds[segment.path] = internal_kind(segment)
        return self._kinds[segment.path]

    def pieces(
        self, segment: LogSegment, fields: Sequence[str], skip: int = 0, **options: Any
    ) -> Iterator[tuple[Any, Sequence[int] | None]]:
        """(RecordColumns, numbers of the rows to show or None for all) of a segment, in order, up to the limit.

        skip: leave out so many records; options: further keywords of column_batches. Where damage stops the command,
        the error of the first damaged batch is raised after the records before it.
        """
        names = tuple(dict.fromkeys((*fields, *self.wanted.fields, "batch_position")))
        most = BATCH_ROWS if self.wanted else max(1, min(BATCH_ROWS, self.left + skip))
        options = {"rows": most, "control": self.control, **self.span, **options}
        if not self.left:
            return
        if "transactions" not in options and (options["committed"] or options.get("states") is not None):
            options["transactions"] = self.plan(segment)
        read = segment.column_batches(names, errors="keep", **options)
        for columns in read:
            rows: Sequence[int] | None = self.wanted.rows(columns)
            bad = None
            if self.damage.errors == "raise":
                bad = min(columns.bad, key=lambda batch: batch.position, default=None)
            else:
                for batch in columns.bad:
                    self.damage.take(batch)
            if bad is not None:
                before = bisect_left(values_of(columns, "batch_position"), bad.position)
                rows = range(before) if rows is None else rows[: bisect_left(rows, before)]
            count = len(columns) if rows is None else len(rows)
            if skip or count > self.left:
                part = (range(count) if rows is None else rows)[skip : skip + self.left]
                rows, skip, count = part, max(0, skip - count), len(part)
            self.left -= count
            if count:
                yield columns, None if rows is None else list(rows)
            if bad is not None:
                raise bad.error
            if not self.left:
                return
        self.damage.tail(segment, read.find_tail())

    def decoder(self, segment: LogSegment) -> tuple[Decode | None, bool]:
        """(what decodes records of a segment that are not shown as bytes, whether it is all of them)."""
        kind = self.kind(segment)
        if kind is None and not self.control:
            return None, False

        def decode(segment: LogSegment, offset: int, timestamp: int, key: Any, value: Any, control: bool) -> Any:
            return self._control(segment, offset, key, value) if control else self._internal(
                segment, kind, offset, timestamp, key, value)

        return decode, kind is not None

    def _control(self, segment: LogSegment, offset: int, key: bytes | None, value: bytes | None) -> DecodedRecord:
        from kwire.codec.control import control_json, decode_control

        try:
            kind, message = decode_control(key, value)
        except DecodeError as error:
            self.note(segment, offset, error, True)
            more = {"control_type": None, "error": str(error)}
            return DecodedRecord(None, None, f" [not decoded: {error}]", more=more)
        body = None if message is None else control_json(message, value or b"")
        text = f"[{kind}]" + ("" if body is None else f" {json_text(body)}")
        return DecodedRecord(None, text, more={"control_type": kind, "control": body})

    def _internal(
        self, segment: LogSegment, kind: str | None, offset: int, timestamp: int, key: Any, value: Any
    ) -> DecodedRecord | None:
        from kwire.storage.internal.internal_topics import decode_parts

        assert kind is not None
        record = decode_parts(kind, offset, timestamp, key, value)
        more: dict[str, Any] = {"type": record.type, "version": record.version}
        if record.error is not None:
            self.note(segment, offset, record.error, not record.is_unknown)
            more |= {"type_id": record.type_id, "error": str(record.error)}
            return DecodedRecord(None, None, f" [not decoded: {record.error}]", more=more)
        shown, data = record.key_json(), record.data()
        text = f"{record.type}" if shown is None else f"{record.type} {json_text(shown['data'])}"
        body = "null" if data is None else f"v{record.version} {json_text(data)}"
        return DecodedRecord(text, body, "", True, shown, record.value_json(), more)

    def decoded(self, segment: LogSegment) -> Iterator[InternalRecord]:
        """The records of a segment of an internal topic, decoded."""
        from kwire.storage.internal.internal_topics import decode_parts

        kind = self.kind(segment)
        assert kind is not None
        for columns, rows in self.pieces(segment, ("offset", "timestamp", "key", "value")):
            parts = list(zip(*(values_of(columns, name) for name in ("offset", "timestamp", "key", "value")),
                             strict=True))
            for row in range(len(parts)) if rows is None else rows:
                record = decode_parts(kind, *parts[row])
                if record.error is not None:
                    self.note(segment, record.offset, record.error, not record.is_unknown)
                yield record

    def note(self, segment: LogSegment, offset: int, error: Exception, is_damage: bool) -> None:
        """Count a record that cannot be decoded."""
        from kwire.storage.places.filesystem import shown

        name = printable(shown(segment.path))
        count, first = self._undecoded.get(name, (0, f"at offset {offset}: {error}"))
        self._undecoded[name] = count + 1, first
        self.failures[name] = f"{counted(count + 1, 'record')} not decoded, the first {first}"
        self.damaged = self.damaged or is_damage


class Output:
    """Writes records to standard output in blocks of whole lines."""

    def __init__(self, lines: Lines, records: Records) -> None:
        self._lines, self._records = lines, records
        self._with_states = "producer_id" in lines.fields
        self._titled: str | None = None
        if lines.raw or (sys.stdout.encoding or "").lower().replace("-", "").replace("_", "") == "utf8":
            sys.stdout.flush()
            self.write: Callable[[bytes], Any] = sys.stdout.buffer.write
        else:  # in the encoding of the terminal, characters that it lacks escaped
            self.write = lambda block: sys.stdout.write(block.decode("utf-8", "surrogateescape"))
        self.write(lines.header().encode())

    def show(self, segment: LogSegment, **options: Any) -> None:
        """Write the records of a segment; options: as Records.pieces."""
        decode, every = self._records.decoder(segment)
        states: dict[int, str] | None = {} if self._with_states else None
        writers: dict[bool, Any] = {}
        for columns, rows in self._records.pieces(segment, self._lines.fields, states=states, **options):
            if segment.path != self._titled:
                self._titled = segment.path
                self.write(self._lines.title(segment).encode())
            has_states = bool(states)
            if has_states not in writers:
                writers[has_states] = self._lines.writer(segment, states or {}, decode, every)
            for block in writers[has_states].write(columns, rows):
                self.write(block)

    def show_last(self, partitions: Iterable[Partition], count: int, until: int | None = None) -> None:
        """Write the last records of each partition; until: the byte of its last segment before which they are."""
        for partition in partitions:
            for segment, start, end, skip in self._last(partition.segments, count, until):
                self.show(segment, start=start, end=end, guessed=start > 0, skip=skip)

    def _last(
        self, segments: Sequence[LogSegment], count: int, until: int | None
    ) -> list[tuple[LogSegment, int, int, int]]:
        """(segment, first byte, byte after, records to skip) of ranges that hold the last records, in order."""
        from kwire.storage.batches.batch_header import end_of_data

        ranges: list[tuple[LogSegment, int, int, int]] = []
        if not count:
            return ranges
        for segment in reversed(segments):
            end, span = end_of_data(segment.file), _TAIL_BYTES[0]
            end, until = end if until is None else min(end, until), None
            while end:
                start = max(0, end - span)
                found = self._count(segment, start, end)
                count -= found
                if found:
                    ranges.append((segment, start, end, max(0, -count)))
                if count <= 0:
                    return ranges[::-1]
                # where no record is, damage may go far back
                end, span = start, min(2 * span, _TAIL_BYTES[1]) if found else 16 * span
        return ranges[::-1]

    def _count(self, segment: LogSegment, start: int, end: int) -> int:
        wanted, count, span = self._records.wanted, 0, self._records.span
        plan = self._records.plan(segment) if span["committed"] else None
        pieces = segment.column_batches(
            ("offset", *wanted.fields), start=start, end=end, guessed=start > 0, errors="keep",
            control=self._records.control, transactions=plan, **span)
        for columns in pieces:
            rows = wanted.rows(columns)
            count += len(columns) if rows is None else len(rows)
        return count

    def follow(self, find: Callable[[], Sequence[SegmentFile]], last: int | None) -> None:
        """Write the records of the partitions as they are appended, until there are enough.

        find: lists the segments, now; last: begin with so many of the last records that are there, None: with all.
        """
        followed = Followed(self, self._records, find)
        followed.begin(last)
        while self._records.left and not followed.is_past_end():
            sys.stdout.flush()
            time.sleep(_EVERY)
            followed.go_on()


class Followed:
    """The partitions that are followed, each with the place that was reached."""

    def __init__(self, output: Output, records: Records, find: Callable[[], Sequence[SegmentFile]]) -> None:
        self._output, self._records, self._find = output, records, find
        self._places: dict[PartitionKey, LogOffset] = {}
        self._gone: set[PartitionKey] = set()
        self._twice: set[PartitionKey] = set()  # folders that were there beside another one of their partition

    def begin(self, last: int | None) -> None:
        """Write what is there: the last so many records of each partition, None: all."""
        from kwire.storage.places.discovery import by_partition
        from kwire.storage.reading.directory import Partition

        if last is not None:
            for key, files in by_partition(self._find()).items():
                log, partition = self._log(files), Partition(files)
                place = log.end()
                if self._records.span["committed"]:  # what is open now is shown whole, once it is committed
                    first = min(partition.ongoing_transactions(), default=(place.offset, 0))[0]
                    if first < place.offset:
                        place = log.resume(log.start(first))
                        count = sum(file.base_offset <= first for file in files)
                        partition.segments = partition.segments[:max(1, count)]
                self._places[key] = place
                self._output.show_last([partition], last, place.position)
        self.go_on()

    def go_on(self) -> None:
        """Write what was appended since."""
        from kwire.storage.isolation.planned_log import LogEnd
        from kwire.storage.reading.bounds import bounds_of

        span = bounds_of(self._records.span["start_offset"], self._records.span["end_offset"])
        for key, files in self._listed().items():
            log_end = LogEnd.of(files)
            for segment, start, end, bounds in self._planned(key, files):
                both = bounds.narrowed(span)
                self._output.show(
                    segment, start=start, end=end, start_offset=both.start_offset, end_offset=both.end_offset,
                    transactions=log_end if segment.named_offset is not None else None)

    def _listed(self) -> dict[PartitionKey, list[SegmentFile]]:
        """The segments of each partition, now. What is gone is reported once.

        A partition that is in another folder now goes on there: a broker has moved it to another disk. While it does,
        it is in both for a moment; where it stays in both, these are two replicas.
        """
        from kwire.storage.places.discovery import by_partition

        found = by_partition(self._find())
        self._twice.intersection_update(found)
        for key in [key for key in found if key not in self._places and key[0] is not None]:
            same = [other for other in self._places if other[:2] == key[:2]]
            moved = next((other for other in same if other not in found), None)
            if moved is not None:
                self._places[key] = self._places.pop(moved)
                self._gone.discard(moved)
            elif same and key not in self._twice:
                self._twice.add(key)
                del found[key]
        gone = {key for key in self._places if key not in found}
        for key in sorted(gone - self._gone, key=str):
            _warn(f"{_named(key)} is gone: expected offset {self._places[key].offset} in it next")
        self._gone = gone
        return found

    def _planned(
        self, key: PartitionKey, files: Sequence[SegmentFile]
    ) -> list[tuple[LogSegment, int, int, Bounds]]:
        """(segment, first byte, byte after, offsets to keep) of what is new in a partition.

        Nothing if a file is not the one that was listed any more: the next look finds what became of it.
        """
        from kwire.errors import CorruptBatchError
        from kwire.storage.reading.log_follower import is_of_change
        from kwire.storage.reading.segment import open_listed

        log, pieces = self._log(files), []
        place = self._places.get(key) or log.start()
        if log.is_at_end(place):
            return []
        try:
            self._places[key] = place = log.resume(place)  # what was lost is reported once
            reached = log.advance(place)
            for listed, start, end, bounds, planned in log.ranges(place, reached):
                segment = open_listed(listed)
                if planned.before or planned.until:  # held open, so that it stays the one that is compared
                    segment.file = segment.file.held()
                if planned.before or planned.until or planned.size is not None:
                    size = segment.file.size()
                    if size < end or not (planned.begins(segment.file, size) and planned.ends(segment.file, size)):
                        return []
                pieces.append((segment, start, end, bounds))
        except (FileNotFoundError, CorruptBatchError) as error:
            if not is_of_change(error):
                raise
            return []
        self._places[key] = reached
        return pieces

    def is_past_end(self) -> bool:
        """Has every partition reached the end of the range?"""
        end = self._records.span["end_offset"]
        return end is not None and all(place.offset >= end for place in self._places.values())

    def _log(self, files: Sequence[SegmentFile]) -> LogFollower:
        from kwire.storage.reading.log_follower import LogFollower
        from kwire.storage.reading.open_transactions import OpenTransactions
        from kwire.storage.reading.segment import open_listed

        place = files[0].topic, files[0].partition, files[0].path
        return LogFollower(
            _named(place), files, open_segment=open_listed, lost=_warn, warn=_warn, strict=False,
            first_open=OpenTransactions(files).oldest if self._records.span["committed"] else None)


def _named(key: PartitionKey) -> str:
    """The name of a partition, for texts."""
    from kwire.storage.places.filesystem import shown

    topic, partition, path = key
    return printable(shown(path) if topic is None else f"{topic}-{partition}")


def _warn(text: str) -> None:
    sys.stdout.flush()
    print(f"kwire: {printable(text)}", file=sys.stderr)
