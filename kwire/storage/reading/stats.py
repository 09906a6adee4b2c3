"""Statistics of segments: batches, records, codecs, sizes, ratio, producers, offsets and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from kwire.codec.records import BadBatch
from kwire.errors import KwireError
from kwire.storage.places.filesystem import located, shown
from kwire.storage.reading.segment_reader import bytes_of
from kwire_c.errors import alone

if TYPE_CHECKING:
    from kwire.storage.reading.segment import LogSegment

MOST_PRODUCERS, MOST_EPOCHS = 100_000, 1000  # that are listed one by one; producers after them are counted together
OTHERS = -2  # the producer id under which they are
_MOST_BINS = 2048
_Key = TypeVar("_Key", int, str)


@dataclass
class CodecStats:
    """Batches of one codec. stored: bytes in the file; plain: bytes without compression."""

    batches: int = 0
    records: int = 0
    stored: int = 0
    plain: int = 0

    @property
    def ratio(self) -> float:
        """The compression ratio, plain / stored; 0.0 without batches."""
        return self.plain / self.stored if self.stored else 0.0


@dataclass
class ProducerStats:
    """The batches and records of one producer id."""

    batches: int = 0
    records: int = 0
    transactional: int = 0
    _epochs: set[int] = field(default_factory=set)

    @property
    def epochs(self) -> tuple[int, ...]:
        """The producer epochs seen, sorted; MOST_EPOCHS at most."""
        return tuple(sorted(self._epochs))

    def add_epoch(self, epoch: int) -> None:
        """Note a producer epoch."""
        if len(self._epochs) < MOST_EPOCHS:
            self._epochs.add(epoch)


@dataclass
class TimeBins:
    """Records by time, in bins of `width` milliseconds that widen as needed. bins: start / width -> records."""

    width: int = 1
    bins: dict[int, int] = field(default_factory=dict)

    def add(self, timestamp: int, records: int) -> None:
        """Count records at a time (ms)."""
        at = timestamp // self.width
        self.bins[at] = self.bins.get(at, 0) + records
        if len(self.bins) > _MOST_BINS:
            self.widen()

    def add_span(self, earliest: int, latest: int, records: int) -> None:
        """Count records of one batch between two times (ms), spread evenly over at most 16 bins."""
        if earliest < 0 or not records:
            return
        parts = min(16, records, latest // self.width - earliest // self.width + 1)
        for at in range(parts):
            share = records * (at + 1) // parts - records * at // parts
            self.add(earliest + (latest - earliest) * at // parts, share)

    def widen(self) -> None:
        """Join pairs of bins."""
        joined: dict[int, int] = {}
        for at, count in self.bins.items():
            joined[at // 2] = joined.get(at // 2, 0) + count
        self.width, self.bins = self.width * 2, joined

    def merge(self, other: TimeBins) -> None:
        """Add the counts of another one."""
        while self.width < other.width:
            self.widen()
        for at, count in other.bins.items():
            self.add(at * other.width, count)


@dataclass
class SegmentStats:
    """Statistics of a segment, or of several together. Sizes in bytes, times in milliseconds; -1: none.

    batches, codecs and sizes count all batches, control_batches those of transaction markers and other control records,
    with their records and bytes; records (of codecs and producers too) and times are those of the other batches.
    sizes: next power of two -> batches; bad: damaged batches or regions; tail: bytes after the last whole batch;
    producers: by id, those past MOST_PRODUCERS together as OTHERS.
    """

    path: str = ""
    topic: str | None = None
    partition: int | None = None
    segments: int = 1
    size: int = 0
    batches: int = 0
    records: int = 0
    control_batches: int = 0
    control_records: int = 0
    control_size: int = 0
    transactional_batches: int = 0
    bad: int = 0
    tail: int = 0
    first_offset: int = -1
    last_offset: int = -1
    min_timestamp: int = -1
    max_timestamp: int = -1
    smallest_batch: int = -1
    largest_batch: int = -1
    magics: dict[int, int] = field(default_factory=dict)
    timestamp_types: dict[str, int] = field(default_factory=dict)
    codecs: dict[str, CodecStats] = field(default_factory=dict)
    producers: dict[int, ProducerStats] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    times: TimeBins = field(default_factory=TimeBins)

    @property
    def plain(self) -> int:
        """Bytes that the batches would have without compression."""
        return sum(codec.plain for codec in self.codecs.values())

    @property
    def data_codecs(self) -> list[str]:
        """The codecs of batches with data, sorted: markers are never compressed, which says nothing of a topic."""
        return sorted(name for name, codec in self.codecs.items() if codec.records or not self.control_batches)

    @property
    def ratio(self) -> float:
        """The compression ratio, plain / stored; 0.0 without batches."""
        stored = sum(codec.stored for codec in self.codecs.values())
        return self.plain / stored if stored else 0.0

    def add_batch(self, batch: Any) -> None:
        """Count one RecordBatch; reads its records. Raises CorruptBatchError or LimitError if it is damaged."""
        count = len(batch)
        plain = batch.plain_size
        earliest, latest, _ = batch.extent()
        self.batches += 1
        self.transactional_batches += batch.is_transactional
        if self.first_offset < 0 or batch.base_offset < self.first_offset:
            self.first_offset = batch.base_offset
        self.last_offset = max(self.last_offset, batch.last_offset)
        self.magics[batch.magic] = self.magics.get(batch.magic, 0) + 1
        if batch.producer_id >= 0:
            producer = self._producer(batch.producer_id)
            producer.batches += 1
            producer.transactional += batch.is_transactional
            producer.records += 0 if batch.is_control else count
            producer.add_epoch(batch.producer_epoch)
        if batch.is_control:
            self.control_batches += 1
            self.control_records += count
            self.control_size += batch.size
            count = 0
        else:
            self._widen(earliest, latest)
            self.times.add_span(earliest, latest, count)
        self.records += count
        self._sizes(batch.size, batch.size)
        bucket = 1 << (batch.size - 1).bit_length()
        self.sizes[bucket] = self.sizes.get(bucket, 0) + 1
        self.timestamp_types[batch.timestamp_type] = self.timestamp_types.get(batch.timestamp_type, 0) + 1
        codec = self.codecs.setdefault(batch.codec, CodecStats())
        codec.batches += 1
        codec.records += count
        codec.stored += batch.size
        codec.plain += plain

    def _producer(self, number: int) -> ProducerStats:
        producer = self.producers.get(number)
        if producer is None:
            number = number if len(self.producers) < MOST_PRODUCERS else OTHERS
            producer = self.producers.setdefault(number, ProducerStats())
        return producer

    def _widen(self, earliest: int, latest: int) -> None:
        if earliest >= 0 and (self.min_timestamp < 0 or earliest < self.min_timestamp):
            self.min_timestamp = earliest
        self.max_timestamp = max(self.max_timestamp, latest)

    def _sizes(self, smallest: int, largest: int) -> None:
        if smallest >= 0 and (self.smallest_batch < 0 or smallest < self.smallest_batch):
            self.smallest_batch = smallest
        self.largest_batch = max(self.largest_batch, largest)

    def merge(self, other: SegmentStats) -> None:
        """Add the statistics of another segment."""
        for name in ("segments", "size", "batches", "records", "control_batches", "control_records",
                     "control_size", "transactional_batches", "bad", "tail"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.first_offset >= 0 and (self.first_offset < 0 or other.first_offset < self.first_offset):
            self.first_offset = other.first_offset
        self.last_offset = max(self.last_offset, other.last_offset)
        self._widen(other.min_timestamp, other.max_timestamp)
        self._sizes(other.smallest_batch, other.largest_batch)
        _count(self.magics, other.magics)
        _count(self.sizes, other.sizes)
        _count(self.timestamp_types, other.timestamp_types)
        for name, codec in other.codecs.items():
            into = self.codecs.setdefault(name, CodecStats())
            into.batches, into.records = into.batches + codec.batches, into.records + codec.records
            into.stored, into.plain = into.stored + codec.stored, into.plain + codec.plain
        for number, producer in other.producers.items():
            mine = self._producer(number)
            mine.batches, mine.records = mine.batches + producer.batches, mine.records + producer.records
            mine.transactional += producer.transactional
            for epoch in producer.epochs:
                mine.add_epoch(epoch)
        self.times.merge(other.times)

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON; times in milliseconds, None if there are none."""
        stored = sum(codec.stored for codec in self.codecs.values())
        return {
            "path": self.path,
            "topic": self.topic,
            "partition": self.partition,
            "segments": self.segments,
            "size": self.size,
            "batches": self.batches,
            "records": self.records,
            "control_batches": self.control_batches,
            "control_records": self.control_records,
            "control_size": self.control_size,
            "transactional_batches": self.transactional_batches,
            "bad_batches": self.bad,
            "tail_bytes": self.tail,
            "first_offset": None if self.first_offset < 0 else self.first_offset,
            "last_offset": None if self.last_offset < 0 else self.last_offset,
            "min_timestamp": None if self.min_timestamp < 0 else self.min_timestamp,
            "max_timestamp": None if self.max_timestamp < 0 else self.max_timestamp,
            "plain_size": self.plain,
            "ratio": round(self.ratio, 4),
            "batch_size": {
                "min": None if self.smallest_batch < 0 else self.smallest_batch,
                "mean": round(stored / self.batches) if self.batches else None,
                "max": None if self.largest_batch < 0 else self.largest_batch,
                "histogram": {str(key): self.sizes[key] for key in sorted(self.sizes)},
            },
            "magics": {str(key): self.magics[key] for key in sorted(self.magics)},
            "timestamp_types": dict(sorted(self.timestamp_types.items())),
            "codecs": {
                name: {"batches": codec.batches, "records": codec.records, "size": codec.stored,
                       "plain_size": codec.plain, "ratio": round(codec.ratio, 4)}
                for name, codec in sorted(self.codecs.items())
            },
            "producers": [
                {"producer_id": number, "epochs": list(producer.epochs), "batches": producer.batches,
                 "records": producer.records, "transactional_batches": producer.transactional}
                for number, producer in sorted(self.producers.items())
            ],
        }


def _count(into: dict[_Key, int], more: dict[_Key, int]) -> None:
    for key, count in more.items():
        into[key] = into.get(key, 0) + count


def segment_stats(
    segment: LogSegment,
    progress: Callable[[int], None] | None = None,
    *,
    errors: str = "keep",
    bad: Callable[[BadBatch], None] | None = None,
) -> SegmentStats:
    """Statistics of one segment; damaged batches are counted as bad, with errors="raise" the first one is raised.

    progress: called with the bytes of each batch; bad: with each BadBatch.
    """
    stats = SegmentStats(shown(segment.path), segment.topic, segment.partition, size=segment.size)
    batches = segment.batches(errors=errors)
    for batch in batches:
        damaged = batch if isinstance(batch, BadBatch) else None
        if damaged is None:
            try:
                stats.add_batch(batch)
            except KwireError as error:
                if errors == "raise":
                    raise located(error, segment.path) from error.__cause__
                damaged = BadBatch(batch.position, batch.raw, alone(located(error, segment.path)))
        if damaged is not None:
            stats.bad += 1
            if bad is not None:
                bad(damaged)
        if progress is not None:
            progress(bytes_of(batch))
    stats.tail = batches.tail[1] if batches.tail else 0
    segment.note_tail(batches.tail)
    return stats


def merged(parts: Iterable[SegmentStats], **labels: Any) -> SegmentStats:
    """The statistics of several segments as one. labels: path, topic, partition of the whole."""
    total = SegmentStats(segments=0, **labels)
    for part in parts:
        total.merge(part)
    return total
