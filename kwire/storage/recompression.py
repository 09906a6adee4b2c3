"""What-if: the size that the batches of segments would have with each codec and level (KIP-640), measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import thread_time
from typing import Any, NamedTuple

from kwire.codec.arguments import check_each, check_ints, check_progress
from kwire.codec.records import BadBatch, build_batch, build_batches
from kwire.compression import compress, decompress
from kwire.errors import EncodeError, KwireError
from kwire.storage.reading.segment import LogSegment
from kwire.suggestions import did_you_mean
from kwire_c.codecs import CODECS
from kwire_c.record_batch import RECORD_BATCH_OVERHEAD

SAMPLE_BYTES = 16 << 20  # of larger input, by default
_CHUNK = 1 << 20  # bytes of the log that a sample takes at a time
_MOST_BYTES = (1 << 31) - 1

# the levels that Kafka's producer and topic configuration allow (KIP-390); of zstd without the negative ones
LEVELS: dict[str, range | None] = {
    "none": None, "gzip": range(1, 10), "snappy": None, "lz4": range(1, 18), "zstd": range(1, 23),
}  # fmt: skip
CHOSEN = {"gzip": (1, 6, 9), "lz4": (1, 9, 17), "zstd": (1, 3, 9, 19)}  # by default: fastest, Kafka's, smallest


class Setting(NamedTuple):
    """A codec and a level of it, None for one without levels."""

    codec: str
    level: int | None = None

    def __str__(self) -> str:
        return self.codec if self.level is None else f"{self.codec} {self.level}"


def settings(codecs: Sequence[str] = CODECS, levels: Sequence[int] | None = None) -> list[Setting]:
    """The settings of these codecs: with these levels where the codec has them, with CHOSEN if levels is None.

    Raises EncodeError for an unknown codec, and for levels that none of the codecs has.
    """
    found = []
    for codec in dict.fromkeys(codecs):
        if codec not in LEVELS:
            raise EncodeError(f"unknown compression codec {codec!r}, expected one of {', '.join(LEVELS)}"
                              f"{did_you_mean(codec, LEVELS)}", path="codec")
        known = LEVELS[codec]
        if known is None:
            found.append(Setting(codec))
        else:
            wanted = CHOSEN[codec] if levels is None else [level for level in dict.fromkeys(levels) if level in known]
            found += [Setting(codec, level) for level in wanted]
    if levels is not None and not any(setting.level in levels for setting in found):
        ranges = ", ".join(f"{codec} has {row[0]} to {row[-1]}" for codec in codecs if (row := LEVELS[codec]))
        raise EncodeError(f"no such level: {ranges or 'none has levels'}", path="level")
    return found


@dataclass
class Outcome:
    """What one setting gives. size: bytes of all batches, headers included; plain: without compression.

    The seconds are CPU time of this machine, in one thread; ratios: the sum over all batches of plain / size.
    """

    codec: str
    level: int | None
    size: int = 0
    batches: int = 0
    plain: int = 0
    ratios: float = 0.0
    compress_seconds: float = 0.0
    decompress_seconds: float = 0.0

    def __str__(self) -> str:
        return str(Setting(self.codec, self.level))

    @property
    def ratio(self) -> float:
        """The size without compression divided by this one; 0.0 without batches."""
        return self.plain / self.size if self.size else 0.0

    @property
    def mean_ratio(self) -> float:
        """The mean of the ratios of the single batches: low where batches are small."""
        return self.ratios / self.batches if self.batches else 0.0

    def speed(self, seconds: float) -> float:
        """Bytes without compression a second; 0.0 where nothing was timed."""
        return self.plain / seconds if seconds else 0.0

    def add(self, plain: memoryview, payload: memoryview) -> None:
        """Measure one batch: its bytes without compression, and the records in them."""
        size = len(plain)
        if self.codec != "none" and len(payload):  # compaction leaves batches without records, which are as they are
            start = thread_time()
            packed = compress(self.codec, payload, level=self.level)
            middle = thread_time()
            decompress(self.codec, packed, limit=len(payload))
            self.decompress_seconds += thread_time() - middle
            self.compress_seconds += middle - start
            size = RECORD_BATCH_OVERHEAD + len(packed)
        self.size += size
        self.plain += len(plain)
        self.batches += 1
        self.ratios += len(plain) / size


@dataclass
class WhatIf:
    """The outcome of whatif().

    total: bytes of all segments; stored: bytes, as they are, of the batches that were measured; plain: without
    compression; several: batches of more than one record; codecs: batches by the codec that they have now; control:
    bytes of control batches, which are never compressed and are in no other number; bad: damaged batches.
    """

    total: int = 0
    stored: int = 0
    plain: int = 0
    batches: int = 0
    records: int = 0
    several: int = 0
    control: int = 0
    bad: int = 0
    sampled: bool = False
    batch_bytes: int | None = None
    codecs: dict[str, int] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    def estimate(self, outcome: Outcome) -> int:
        """Bytes that all segments would have, in proportion to what was measured."""
        measured = self.stored + self.control
        return round(self.total * (outcome.size + self.control) / measured) if measured else 0

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON: sizes in bytes, speeds in bytes a second."""
        return {
            "total": self.total, "sampled": self.sampled, "stored": self.stored, "plain": self.plain,
            "batches": self.batches, "records": self.records, "batches_of_several_records": self.several,
            "control_bytes": self.control, "bad_batches": self.bad, "batch_bytes": self.batch_bytes,
            "codecs": dict(sorted(self.codecs.items())),
            "outcomes": [{
                "codec": one.codec, "level": one.level, "size": one.size, "batches": one.batches,
                "ratio": round(one.ratio, 4), "mean_ratio": round(one.mean_ratio, 4),
                "saved": round(1 - one.size / self.stored, 4) if self.stored else 0.0,
                "estimate": self.estimate(one), "compress_seconds": round(one.compress_seconds, 6),
                "decompress_seconds": round(one.decompress_seconds, 6),
                "compress_speed": round(one.speed(one.compress_seconds)),
                "decompress_speed": round(one.speed(one.decompress_seconds)),
            } for one in self.outcomes],
        }  # fmt: skip


def whatif(
    segments: Sequence[LogSegment],
    wanted: Sequence[Setting] | None = None,
    *,
    batch_bytes: int | None = None,
    sample_bytes: int | None = SAMPLE_BYTES,
    progress: Callable[[int], None] | None = None,
) -> WhatIf:
    """Compress the batches of segments with each setting; sizes are those of what build_batch writes (magic 2).

    wanted: settings() by default. batch_bytes: put the records into new batches of about so many bytes before
    compression, as a producer with that batch.size and enough records does; None: the batches as they are.
    sample_bytes: of larger input only about so many bytes are read, in pieces spread over all segments, or more until
    a batch with records is among them; None: all. Damaged batches are counted and left out. progress: called with the
    bytes read. One batch (with batch_bytes: 16 MiB of the log) is in memory at a time. Raises EncodeError,
    MissingCodecError, LimitError.
    """
    check_ints(batch_bytes=batch_bytes, sample_bytes=sample_bytes)
    check_progress(progress)
    check_each(segments, LogSegment, "segments", "LogSegments")
    chosen = settings() if wanted is None else wanted
    check_each(chosen, Setting, "wanted", "Settings, as settings() gives them")
    for setting in chosen:
        compress(setting.codec, b"", level=setting.level)  # a level or library that is missing: an error before reading
    if batch_bytes is not None and not 1 <= batch_bytes <= _MOST_BYTES:
        raise ValueError(f"batch_bytes must be 1 to {_MOST_BYTES}, got {batch_bytes}")
    total, sample = sum(segment.size for segment in segments), sample_bytes
    while True:
        sample = None if sample is None or total <= sample else max(1, sample)
        result = WhatIf(total=total, sampled=sample is not None, batch_bytes=batch_bytes)
        result.outcomes = [Outcome(*setting) for setting in chosen]
        _measure(segments, result, sample, progress or (lambda _: None))
        if sample is None or result.batches:
            return result
        sample *= 16


def _measure(
    segments: Sequence[LogSegment], result: WhatIf, sample: int | None, progress: Callable[[int], None]
) -> None:
    """Add the batches of a sample (None: all) to a result."""
    at = _Boundaries()
    for segment, start, end in _ranges(segments, result.total, sample):
        for plain in _plain_batches(segment, at(segment, start), at(segment, end), result, result.batch_bytes):
            view = memoryview(plain)
            for outcome in result.outcomes:
                outcome.add(view, view[RECORD_BATCH_OVERHEAD:])
        progress(end - start)


class _Boundaries:
    """LogSegment.boundary of ascending bytes: what was found for one is not searched for again (it may be far off)."""

    def __init__(self) -> None:
        self._last: tuple[LogSegment | None, int, int] = None, 0, 0  # a byte of a segment, its boundary

    def __call__(self, segment: LogSegment, guess: int) -> int:
        known, first, found = self._last
        if known is not segment or not first <= guess <= found:
            found = segment.boundary(guess)
            self._last = segment, guess, found
        return found


def _ranges(
    segments: Sequence[LogSegment], total: int, sample: int | None
) -> Iterator[tuple[LogSegment, int, int]]:
    """The byte ranges that are read, which begin with a batch or a bad region; all of them if sample is None."""
    if sample is None:
        for segment in segments:
            size = segment.size
            for start in range(0, size, 16 * _CHUNK):
                yield segment, start, min(size, start + 16 * _CHUNK)
        return
    count = max(1, sample // _CHUNK)
    width, step, begin = min(sample, _CHUNK), total / count, 0
    places = [int(number * step) for number in range(count)]
    for segment in segments:
        size = segment.size
        while places and places[0] < begin + size:
            start = places.pop(0) - begin
            yield segment, start, min(size, start + width)
        begin += size


def _plain_batches(
    segment: LogSegment, start: int, end: int, result: WhatIf, batch_bytes: int | None
) -> Iterator[bytes]:
    """The batches in a range between boundaries, uncompressed and of magic 2."""
    if batch_bytes is not None:
        yield from _repacked(segment, start, end, result, batch_bytes)
        return
    batches = segment.batches(start, end, errors="keep")
    for batch in batches:
        if _counted(batch, result):
            try:
                plain = uncompressed(batch)
            except KwireError:
                result.bad += 1
                continue
            result.plain += len(plain)
            yield plain


def _counted(batch: Any, result: WhatIf) -> bool:
    """Count a batch; is it one with data?"""
    if isinstance(batch, BadBatch):
        result.bad += 1
        return False
    if batch.is_control:
        result.control += batch.size
        return False
    result.stored += batch.size
    result.batches += 1
    result.codecs[batch.codec] = result.codecs.get(batch.codec, 0) + 1
    count = len(batch)
    result.records += count
    result.several += count > 1
    return True


def uncompressed(batch: Any) -> bytes:
    """The same batch in magic 2 without compression."""
    options: dict[str, Any] = {}
    if batch.magic == 2:
        options = {
            "producer_id": batch.producer_id, "producer_epoch": batch.producer_epoch,
            "base_sequence": batch.base_sequence, "transactional": batch.is_transactional,
            "partition_leader_epoch": batch.partition_leader_epoch, "base_timestamp": batch.base_timestamp,
            "delete_horizon": batch.delete_horizon, "last_offset": batch.last_offset,
        }  # fmt: skip
    timestamp_type = "log_append" if batch.timestamp_type == "log_append" else "create"
    return build_batch(
        batch, base_offset=batch.base_offset, max_timestamp=batch.max_timestamp, timestamp_type=timestamp_type,
        **options)


def _repacked(segment: LogSegment, start: int, end: int, result: WhatIf, batch_bytes: int) -> Iterator[bytes]:
    """The records of a range in new batches."""
    for batch in segment.batches(start, end, errors="keep"):
        _counted(batch, result)
    fields = ("offset", "timestamp", "key", "value", "headers")
    for columns in segment.column_batches(fields, start=start, end=end, errors="keep", rows=0):
        for plain, _, _ in build_batches(columns, batch_bytes=batch_bytes):
            result.plain += len(plain)
            yield plain
