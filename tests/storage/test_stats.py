"""Statistics of segments, alone and together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kwire.storage import LogDirectory, LogSegment
from kwire.storage.reading.stats import TimeBins, merged
from tests.storage.making import START, batch, in_transaction, marker, write_segment

pytestmark = pytest.mark.quick


def test_counts(tmp_path: Path) -> None:
    batches = [batch(0, 100, codec="zstd"), batch(100, 5), in_transaction(105, 9, 4), marker(109, 9, False, epoch=2)]
    path = write_segment(tmp_path / "t-1", 0, batches)
    with path.open("ab") as file:
        file.write(b"\0\0\0\0\0\0\0\1\0\0\1\0torn")
    stats = LogSegment(path).stats()
    plain = len(batch(0, 100))
    assert (stats.topic, stats.partition, stats.size) == ("t", 1, sum(map(len, batches)) + 16)
    assert (stats.batches, stats.records, stats.control_records, stats.transactional_batches) == (4, 109, 1, 2)
    assert (stats.first_offset, stats.last_offset, stats.tail, stats.bad) == (0, 109, 16, 0)
    assert (stats.min_timestamp, stats.max_timestamp) == (START, START + 1080)
    assert (stats.codecs["zstd"].batches, stats.codecs["zstd"].plain) == (1, plain)
    assert stats.codecs["none"].ratio == 1.0
    assert stats.ratio == pytest.approx((plain + sum(map(len, batches[1:]))) / sum(map(len, batches)))
    assert stats.producers[9].epochs == (0, 2)
    assert (stats.producers[9].records, stats.producers[9].batches) == (4, 2)
    assert (stats.smallest_batch, stats.largest_batch) == (min(map(len, batches)), max(map(len, batches)))
    assert sum(stats.sizes.values()) == 4
    assert sum(stats.times.bins.values()) == 109
    value = json.loads(json.dumps(stats.to_json()))
    assert (value["records"], value["codecs"]["zstd"]["records"], value["tail_bytes"]) == (109, 100, 16)


def test_segments_together(golden: Path) -> None:
    directory = LogDirectory(golden / "data/kafka-4.3.0/data1")
    parts = [segment.stats() for segment in directory.segments]
    total = merged(parts)
    assert total.segments == len(parts)
    assert total.size == sum(Path(segment.path).stat().st_size for segment in directory.segments)
    assert total.records == sum(1 for _ in directory.read())
    assert set(total.codecs) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert total.min_timestamp == min(record.timestamp for record in directory.read())
    assert sum(total.times.bins.values()) == total.records


@pytest.mark.parametrize("release", ["0.9.0.1", "0.10.2.2"])
def test_old_formats(golden: Path, release: str) -> None:
    for partition in LogDirectory(golden / "old-brokers" / release):
        stats = merged(segment.stats() for segment in partition)
        assert (stats.records, stats.control_records) == (120, 0)
        codec = partition.topic.removeprefix("old-")
        assert list(stats.codecs) == [codec]
        assert (stats.ratio > 1) == (codec != "none")


def test_damage_is_counted_and_left_out(tmp_path: Path) -> None:
    data = bytearray(batch(0) + batch(3) + batch(6))
    data[len(batch(0)) + 70] ^= 1
    path = tmp_path / "x.log"
    path.write_bytes(data)
    stats = LogSegment(path).stats()
    assert (stats.batches, stats.records, stats.bad) == (2, 6, 1)


def test_bins_widen() -> None:
    bins, other = TimeBins(), TimeBins()
    for at in range(5000):
        bins.add(at * 977, 1)
    for at in (5, 10_000_000):
        other.add(at, 1)
    assert len(bins.bins) <= 2048
    bins.merge(other)
    assert sum(bins.bins.values()) == 5002
