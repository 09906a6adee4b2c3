"""readStream.format("kwire"): follows logs whose segments grow, roll and are deleted, by topic, partition, offset."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from kwire.errors import CorruptBatchError, KwireError
from kwire.spark.options import EARLIEST, LATEST, Options
from kwire.spark.packing import Portion, SegmentRange, cuts, packed
from kwire.spark.partitions import opened
from kwire.spark.reader import read_task
from kwire.spark.selection import check_chosen, segments
from kwire.spark.stream_offsets import Key, StreamOffsets, key_of, partition_name, real_folder
from kwire.spark.worker import SentToWorkers, in_one_line
from kwire.storage import Partition, SegmentFile, Transactions
from kwire.storage.batches.preallocated import ends_in_zeros
from kwire.storage.isolation.planned_log import LogEnd
from kwire.storage.places.discovery import THREADS, by_partition, in_threads, place_of
from kwire.storage.places.filesystem import File, is_url, open_file, shown
from kwire.storage.reading.bounds import Bounds
from kwire.storage.reading.log_follower import LogFollower, LogOffset, Planned, is_of_change
from kwire.storage.reading.open_transactions import OpenTransaction, OpenTransactions
from kwire.storage.reading.read_plan import ReadPlan
from kwire.storage.reading.segment import as_written
from kwire_c.printable import printable

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, SupportsTriggerAvailableNow
except ImportError:  # Spark 4.0 and 4.1

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Placeholder for the interface that this Spark lacks."""

    class ReadAllAvailable:  # type: ignore[no-redef]
        """Placeholder for the read limit that this Spark lacks."""

    @dataclass
    class ReadMaxBytes:  # type: ignore[no-redef]
        """Placeholder for the read limit that this Spark lacks."""

        max_bytes: int

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

WAITING_SECONDS = 60  # an open transaction is reported when it is so old (transaction.timeout.ms of a producer)
REPEAT_SECONDS = 300  # and again after so long
_MOST_PLANS = 10  # of a micro-batch whose files are deleted or compacted while it is planned
_MOST_WARNED = 10_000  # texts that are remembered, to give each of them once


class SegmentStreamReader(SentToWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a streaming query. Its offsets name, for every partition, the offset due and what was read last.

    Only whole batches are read: a torn batch waits for its rest. The reader goes on to the next segment when one ends
    at its base offset. With readCommitted nothing is read past the first open transaction. Records that are lost are
    reported by failOnDataLoss as by Spark's Kafka source: a KwireError, or a warning.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options, self.schema = options, schema
        self.frozen: dict[str, int | None] | None = None  # by _name; None: closed, compaction may rewrite it
        self.initial: StreamOffsets | None = None  # of a new query
        self.reached = StreamOffsets()
        self.turn: Key | None = None  # the partition that is read first under a limit
        self.limited = False
        self.warned: dict[str, None] = {}
        self.waiting: dict[Key, tuple[OpenTransaction, float, float]] = {}  # since, warned at
        self.unpacked: dict[str, int] = {}
        self.stable: dict[str, tuple[tuple[Any, ...], OpenTransaction | None]] = {}

    @in_one_line
    def initialOffset(self) -> dict[str, Any]:
        """Return where a new query starts: at the beginning of each partition, at its end, or at an offset."""
        files = self._listed()
        check_chosen(files, self.options)
        logs = self._logs(files=files)

        def begun(key: Key) -> LogOffset:
            log = logs[key]
            offset = self.options.start_of(log.files[0].topic, log.files[0].partition)
            if offset == LATEST:
                return log.advance(log.start()) if self.options.read_committed else log.end()
            return log.start(None if offset == EARLIEST else offset)

        self.initial = _places(begun, logs)
        return self.initial.to_json()

    @in_one_line
    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:
        """Return the end of the whole batches, at most the limit's bytes after start, but at least one batch.

        Spark 4.0 and 4.1 pass neither start nor limit, and with availableNow take one result as the end of all data:
        maxBytesPerTrigger is not applied with them. Raises KwireError for data that was lost, with failOnDataLoss.
        """
        before = self.reached if start is None else StreamOffsets.from_json(start)
        logs = self._logs_after(before)
        end = StreamOffsets(before)
        places = {key: self._place(key, log, before) for key, log in logs.items()}
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        self.limited = most is not None
        with ThreadPoolExecutor(THREADS) as pool:
            if most is None:
                end.update(_places(lambda key: self._advance(key, logs[key], places[key], pool=pool), places))
            else:
                end.update(self._advance_fairly(logs, places, most, pool))
        if before == self.initial and before.begun is None:
            end.begun = before
        elif end == before:  # the same text, or Spark takes it for another place
            end.begun = before.begun
        self.reached = end
        return end.to_json()

    def getDefaultReadLimit(self) -> Any:
        """Return maxBytesPerTrigger as Spark's read limit (Spark 4.2 and newer)."""
        most = self.options.max_bytes_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxBytes(most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the segments and their sizes of this moment as the end of the query (Spark 4.2 and newer)."""
        files = self._listed()
        last = {group[-1].path: as_written(group)[-1].size for group in by_partition(files).values()}
        self.frozen = {_name(file): last[file.path] if last.get(file.path, -1) >= 0 else None for file in files}

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return the end of each log for the query's progress (Spark 4.2 and newer): the lag is what is due before it.

        Reads nothing, unless a limit left records unread: then the last segment, from the last entry of its index on.
        """
        latest = StreamOffsets({key: LogOffset(place.offset) for key, place in self.reached.items()})
        if self.limited:
            logs = self._logs()
            latest = _places(lambda key: self._end(logs[key], self.reached.get(key, LogOffset(0))), logs)
        return latest.to_json() if latest else None

    @in_one_line
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the tasks of one micro-batch: byte ranges between two offsets.

        Of the first one Spark does not keep the start: it asks for the initial offset again, which may be another now.
        Raises KwireError, with failOnDataLoss, if the bytes between them are not those that were planned.
        """
        before, until = StreamOffsets.from_json(start), StreamOffsets.from_json(end)
        if until.begun is not None and before.begun is None:  # else the place that was reached, and nothing after it
            before = until.begun
        self.reached = until
        for left in reversed(range(_MOST_PLANS)):
            try:
                return list(packed(self._planned(before, until), self.options))
            except (FileNotFoundError, CorruptBatchError) as error:
                if not left or not is_of_change(error):
                    raise
        raise AssertionError

    def _planned(self, before: StreamOffsets, until: StreamOffsets) -> Iterator[Portion]:
        """The byte ranges between two offsets. Raises FileNotFoundError, CorruptBatchError if one changes."""
        logs = self._logs_after(before, frozen=False)

        def portions(key: Key) -> list[Portion]:
            if key in logs:
                return list(self._portions(logs[key], self._place(key, logs[key], before), until[key]))
            if key not in before:
                self._lost(f"{partition_name(key)} is gone, and with it its records before offset {until[key].offset}")
            return []

        moved = [key for key, place in until.items() if place != before.get(key)]
        return chain.from_iterable(in_threads(portions, moved))

    @in_one_line
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task. Runs in a worker.

        A file that was deleted or truncated since the plan is data loss: KwireError, or a warning and the rows left.
        """
        return read_task(partition, self.options, self.schema, self._guarded)

    def _guarded(
        self, part: SegmentRange, read: Callable[[SegmentRange], Iterator[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        """Yield what is read of a range; what is lost of it is reported."""
        path, bytes_ = shown(part.file.path), f"bytes {part.start}..{part.end} of it were to be read"
        rewritten = f"{path} was compacted or written again since the micro-batch was planned: {bytes_}"
        planned = part.planned or Planned(part.bounds, None, None)
        try:
            file = open_file(part.file.path, self.options.storage_options)
            size = file.size()
            if not planned.begins(file, size):
                self._lost(rewritten)
                if not part.exact:  # other tasks read pieces of the range, some perhaps before the change
                    return
                part = _by_offset(part, 0, size)
            elif part.end is not None and size < max(part.end, 0 if planned.until is None else planned.until.position):
                self._lost(f"{path} was truncated to {size} bytes: {bytes_}")
                if size <= part.start:
                    return
                part = _by_offset(part, part.start, min(size, part.end))
            elif not planned.ends(file, size):
                self._lost(rewritten)
                if not part.exact:
                    return
                part = _by_offset(part, part.start, size)
            else:
                yield from read(part)
                if not is_url(part.file.path) and _has_changed(planned, file):
                    self._lost(rewritten)
                return
            yield from read(part)
        except FileNotFoundError:
            self._lost(f"{path} was deleted: {bytes_}")
        except CorruptBatchError as error:
            if "truncated" in error.reason:
                self._lost(f"{getattr(error, 'file', None) or path} was truncated while it was read: {bytes_}")
            elif _has_changed(planned, file, gone=True):
                self._lost(rewritten)
            else:
                raise

    def _end(self, log: LogFollower, reached: LogOffset) -> LogOffset:
        """The end offset of a log, for the query's progress; that which was reached, if a file is gone now."""
        try:
            return LogOffset(max(log.end().offset, reached.offset))
        except (FileNotFoundError, CorruptBatchError) as error:
            if not is_of_change(error):
                raise
            return LogOffset(reached.offset)

    # logs

    def _listed(self) -> list[SegmentFile]:
        """The segments, with the sizes of those that a store lists without one."""
        def sized(file: SegmentFile) -> SegmentFile:
            if file.size < 0 and is_url(file.path) and not file.path.endswith(".gz"):
                return file._replace(size=open_file(file.path, self.options.storage_options).size())
            return file

        return in_threads(sized, segments(self.options))

    def _logs(self, frozen: bool = True, files: list[SegmentFile] | None = None) -> dict[Key, LogFollower]:
        """The logs that the options choose, as they are now; files: as they were listed a moment ago."""
        found: dict[Key, dict[int | str, SegmentFile]] = {}
        folders: dict[Key, str] = {}
        files = self._listed() if files is None else files
        self._forget_all_but({file.path for file in files})
        for file in files:
            if frozen and self.frozen is not None:
                most = self.frozen.get(_name(file), 0)  # one that came later says only where the log goes on
                if most is not None and (file.size >= 0 or not most):
                    file = file._replace(size=min(max(file.size, 0), most))
            folder = real_folder(file)
            if file.topic is None and file.partition is None and not is_url(file.path):
                topic, number = place_of(f"{folder}/0.log")  # a symbolic link to a topic-N folder
                file = file._replace(topic=topic, partition=number)
            key = key_of((file.topic, file.partition), folder)
            name = file.base_offset if file.base_offset >= 0 else file.path.rpartition("/")[2]
            known = found.setdefault(key, {}).setdefault(name, file)
            other = real_folder(known)
            if other == folder and known.path.endswith(".gz"):  # beside the .log that it was made of
                found[key][name] = file
            if folders.setdefault(key, folder) != folder and (other != folder or not key[1]):
                raise KwireError(printable(
                    f"{partition_name(key)} is in two folders, {shown(other)} and {shown(folder)}: a stream reads each "
                    "partition once. Name one of them, or begin two streams"))
        if frozen and self.frozen is not None:
            found = {key: group for key, group in found.items()
                     if any(_name(file) in self.frozen for file in group.values())}
        return {key: self._log(key, group) for key, group in sorted(found.items())}

    def _forget_all_but(self, paths: Set[str]) -> None:
        """Drop what is remembered of segments that were deleted: a query may run for months."""
        for memo in (self.stable, self.unpacked):
            for path in memo.keys() - paths:
                del memo[path]

    def _logs_after(self, before: StreamOffsets, frozen: bool = True) -> dict[Key, LogFollower]:
        """The logs as they are now; those that were read and are gone are reported."""
        try:
            logs = self._logs(frozen)
        except FileNotFoundError:
            if not before:
                raise
            logs = {}
        self._report_gone(before, logs)
        return logs

    def _log(self, key: Key, found: Mapping[int | str, SegmentFile]) -> LogFollower:
        files = sorted(found.values(), key=lambda file: (file.base_offset, file.path))
        transactions = OpenTransactions(files, self.options.storage_options)
        return LogFollower(
            partition_name(key), files, open_segment=lambda file: opened(file, self.options), lost=self._lost,
            warn=self._warn, strict=self.options.mode == "FAILFAST",
            first_open=(lambda number: self._first_open(transactions, number)) if self.options.read_committed else None,
            unpacked=self.unpacked,
        )  # fmt: skip

    def _first_open(self, transactions: OpenTransactions, number: int) -> OpenTransaction | None:
        """The oldest transaction that is open in a segment, remembered while the files that it depends on stay.

        As far as the files were listed: the tasks know no more of the log, either.
        """
        first, last = transactions.files[number], transactions.files[-1]
        state = first.size, last.path, last.size
        known = self.stable.get(first.path)
        if known is None or (known[0] != state and not (known[1] is None and known[0][0] == first.size)) or (
            (first is last or known[1] is not None) and ends_in_zeros(transactions.segments[-1].file, last.size)
        ):
            known = self.stable[first.path] = state, transactions.oldest(number)
        return known[1]

    # places

    def _place(self, key: Key, log: LogFollower, before: StreamOffsets) -> LogOffset:
        """Where a partition is to be read on, or begun."""
        place = before.get(key)
        if place is None:
            place = log.start()
            if before.complete and place.offset > 0:
                self._lost(f"{partition_name(key)} was added since the query began, and begins at offset "
                           f"{place.offset} instead of 0")
        return place

    def _report_gone(self, before: StreamOffsets, logs: Mapping[Key, LogFollower]) -> None:
        """Report the partitions that were read and are not there any more; not those that the options leave out."""
        topics, partitions = self.options.topics, self.options.partitions
        for key, place in before.items():
            if key in logs or (topics is not None and key[0] not in topics) or (
                partitions is not None and key[1].isdigit() and int(key[1]) not in partitions
            ) or (self.frozen is not None and self._is_there(key)):  # fmt: skip
                continue
            there = ", ".join(partition_name(other) for other in list(logs)[:5]) or "nothing"
            more = f" and {len(logs) - 5} more" if len(logs) > 5 else ""
            self._lost(f"{partition_name(key)} is gone: its records from offset {place.offset} on cannot be read; "
                       f"found {there}{more}")

    def _is_there(self, key: Key) -> bool:
        return key in self._logs(frozen=False)

    def _advance(
        self, key: Key, log: LogFollower, place: LogOffset, most: int | None = None, pool: Executor | None = None
    ) -> LogOffset:
        try:
            reached = log.advance(place, most, pool)
        except (FileNotFoundError, CorruptBatchError) as error:  # the next listing shows what is left
            if not is_of_change(error):
                raise
            return place
        self._report_waiting(key, log.waits_for)
        return reached

    def _advance_fairly(
        self, logs: Mapping[Key, LogFollower], places: Mapping[Key, LogOffset], most: int, pool: Executor
    ) -> dict[Key, LogOffset]:
        """Advance by about `most` bytes in all, by turns: the next time begins with a partition that got nothing.

        Each has a fair share. A batch may be larger: then those after it wait until their shares make up for it.
        """
        waiting = {key: log.bytes_after(places[key]) for key, log in logs.items()}
        shares = fair_shares({key: size for key, size in waiting.items() if size > 0}, most)
        order = sorted(shares)
        first = next((number for number, key in enumerate(order) if self.turn is None or key >= self.turn), 0)
        order = order[first:] + order[:first]
        reached, carried, took = dict(places), 0, False
        for key, size in waiting.items():
            if size <= 0 and not logs[key].is_at_end(places[key]):  # fewer bytes than were read: to be reported
                reached[key] = self._advance(key, logs[key], places[key], 1, pool)
        following: Key | None = None
        for key in order:
            carried += shares[key]
            if took and carried <= 0:
                following = key if following is None else following
                continue
            reached[key] = self._advance(key, logs[key], places[key], max(carried, 1), pool)
            taken = waiting[key] - logs[key].bytes_after(reached[key])
            carried -= taken
            if took and not taken and following is None:
                following = key
            took = took or taken > 0
        self.turn = following if following is not None or len(order) < 2 else order[1]
        return reached

    # tasks

    def _portions(self, log: LogFollower, start: LogOffset, end: LogOffset) -> Iterator[Portion]:
        bounds = self._bounds(log.files[0])
        log_end = LogEnd.of(log.files) if self.options.read_committed else None
        files = list(log.files)
        for file, first, last, kept, planned in log.ranges(start, end):
            known: LogEnd | Transactions | None = log_end
            if log_end is not None and file.base_offset < 0:  # no LogEnd can name it
                after = files[files.index(file) :]
                opened_after = Partition(after, self.options.storage_options).segments
                known = opened_after[0].transactions(first, last, ReadPlan.as_listed(opened_after, after))
            part = SegmentRange(file, first, last, False, bounds.narrowed(kept), known, exact=True,
                                planned=planned)
            yield from cuts(Portion(last - first, part), self.options.partition_bytes)

    def _bounds(self, file: SegmentFile) -> Bounds:
        end = self.options.end_of(file.topic, file.partition)
        return Bounds(
            None,
            end if end >= 0 else (-1 if end == EARLIEST else None),
            self.options.starting_timestamp,
            self.options.ending_timestamp,
        )

    # texts

    def _lost(self, text: str) -> None:
        if self.options.fail_on_data_loss:
            raise KwireError(printable(f'{text} (set option failOnDataLoss to "false" to go on after the lost data)'))
        self._warn(text)

    def _warn(self, text: str) -> None:
        if text in self.warned:
            return
        if len(self.warned) >= _MOST_WARNED:
            self.warned.clear()
        self.warned[text] = None
        warnings.warn(printable(text), RuntimeWarning, stacklevel=2)

    def _report_waiting(self, key: Key, transaction: OpenTransaction | None) -> None:
        """Warn of a transaction that has been open for long, and of every one at the end of an availableNow query."""
        if transaction is None:
            self.waiting.pop(key, None)
            return
        now = time.monotonic()
        known, since, warned = self.waiting.get(key, (None, now, -REPEAT_SECONDS - 1.0))
        if known != transaction:
            since = now
        age = max(now - since, time.time() - transaction.timestamp / 1000 if transaction.timestamp >= 0 else 0)
        if now - warned > REPEAT_SECONDS and (age > WAITING_SECONDS or self.frozen is not None):
            warned = now
            self._warn(f"{partition_name(key)} waits for the transaction of producer {transaction.producer_id}, open "
                       f"since offset {transaction.first_offset} (waited {now - since:.0f} s so far): readCommitted "
                       "reads nothing after it")
        self.waiting[key] = transaction, since, warned


def _places(place_of_key: Callable[[Key], LogOffset], keys: Iterable[Key]) -> StreamOffsets:
    """The place of each key, many at a time, as each waits for a file system."""
    keys = list(keys)
    return StreamOffsets(zip(keys, in_threads(place_of_key, keys), strict=True))


def _name(file: SegmentFile) -> str:
    """The path of a segment, whether it is compressed or not: that may change while a query runs."""
    return file.path.removesuffix(".gz")


def _has_changed(planned: Planned, file: File, gone: bool = False) -> bool:
    """Are the bytes at the ends of a range other ones than those that were planned? gone: the answer if it is deleted.
    """
    try:
        size = file.size()
        return not (planned.begins(file, size) and planned.ends(file, size))
    except FileNotFoundError:
        return gone
    except CorruptBatchError:  # truncated meanwhile
        return True


def _by_offset(part: SegmentRange, start: int, end: int) -> SegmentRange:
    """The records of a range in bytes [start, end) of a file that has changed."""
    bounds = part.bounds if part.planned is None else part.bounds.narrowed(part.planned.offsets)
    return part._replace(file=part.file._replace(size=end), start=start, end=end, bounds=bounds)


def fair_shares(waiting: Mapping[Key, int], most: int) -> dict[Key, int]:
    """Divide `most` bytes among partitions by what waits in each: what a small one does not need goes to the others."""
    shares: dict[Key, int] = {}
    left = most
    for number, (key, size) in enumerate(sorted(waiting.items(), key=lambda item: item[1])):
        shares[key] = min(size, left // (len(waiting) - number))
        left -= shares[key]
    return shares
