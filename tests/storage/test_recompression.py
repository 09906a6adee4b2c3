"""whatif: its sizes are those of what build_batch writes, on golden segments of every codec and format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire.storage import LogDirectory, LogSegment, whatif
from kwire.storage.recompression import LEVELS, Setting, settings, uncompressed
from tests.storage.making import batch, in_transaction, marker, write_segment

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def segments(golden: Path) -> list[LogSegment]:
    found = LogDirectory([golden / "data" / "kafka-4.3.0" / "data1", *sorted(golden.glob("old-brokers/0.*"))])
    return [segment for segment in found.segments if 0 < segment.size < 200_000]


def built(segments: list[LogSegment], setting: Setting) -> Iterator[int]:
    """The sizes of the data batches as build_batch writes them with a setting."""
    for segment in segments:
        for one in segment.batches():
            if not one.is_control:
                options: Any = {} if one.magic < 2 else {
                    "base_timestamp": one.base_timestamp, "last_offset": one.last_offset}
                yield len(kwire.build_batch(
                    list(one), codec=setting.codec, level=setting.level, base_offset=one.base_offset,
                    timestamp_type="log_append" if one.timestamp_type == "log_append" else "create",
                    max_timestamp=one.max_timestamp, producer_id=one.producer_id, producer_epoch=one.producer_epoch,
                    base_sequence=one.base_sequence, transactional=one.is_transactional,
                    delete_horizon=one.delete_horizon, **options))


def test_sizes_are_those_of_build_batch(segments: list[LogSegment]) -> None:
    wanted = settings()
    result = whatif(segments, wanted)
    assert [(one.codec, one.level) for one in result.outcomes] == [tuple(setting) for setting in wanted]
    for setting, outcome in zip(wanted, result.outcomes, strict=True):
        sizes = list(built(segments, setting))
        assert (outcome.size, outcome.batches) == (sum(sizes), len(sizes)), setting
        assert outcome.plain == result.plain
        assert (outcome.compress_seconds > 0) == (outcome.decompress_seconds > 0) == (outcome.codec != "none")
    none = result.outcomes[0]
    assert (none.codec, none.size, none.ratio, none.mean_ratio) == ("none", result.plain, 1, 1)
    assert result.batches == len(sizes) and not result.bad and not result.sampled
    assert result.total == sum(segment.size for segment in segments) == result.stored + result.control
    assert result.codecs == Counter(one.codec for each in segments for one in each.batches() if not one.is_control)
    smallest = min(result.outcomes, key=lambda one: one.size)
    assert (smallest.codec, smallest.level) == ("zstd", 19)
    assert smallest.ratio == result.plain / smallest.size > 2


def test_every_level(segments: list[LogSegment]) -> None:
    small = [segment for segment in segments if segment.topic in ("alpha-mixed", "alpha-tx")]
    wanted = settings(levels=range(1, 23))
    assert len(wanted) == 1 + 9 + 1 + 17 + 22
    for setting, outcome in zip(wanted, whatif(small, wanted).outcomes, strict=True):
        assert outcome.size == sum(built(small, setting)), setting


def test_uncompressed_batches_are_those_of_the_log(golden: Path) -> None:
    """Where they were not compressed, byte for byte."""
    compared = 0
    for segment in LogDirectory(golden / "data" / "kafka-4.3.0" / "data1").segments:
        for one in segment.batches():
            if one.codec == "none" and not one.is_control:
                assert uncompressed(one) == one.raw
                compared += 1
    assert compared > 500


def test_settings() -> None:
    assert settings(["snappy"]) == [Setting("snappy", None)]
    assert settings(["gzip", "gzip"], [3, 3, 12]) == [Setting("gzip", 3)]
    assert [str(one) for one in settings(["none", "lz4"], [12])] == ["none", "lz4 12"]
    assert {name for name, levels in LEVELS.items() if levels} == {"gzip", "lz4", "zstd"}
    for codecs, levels, message in (
        (["brotli"], None, "unknown compression codec 'brotli'"),
        (["gzip", "lz4"], [22], "no such level: gzip has 1 to 9, lz4 has 1 to 17"),
        (["snappy"], [1], "no such level: none has levels"),
    ):
        with pytest.raises(kwire.EncodeError, match=message):
            settings(codecs, levels)


def test_new_batches(tmp_path: Path) -> None:
    made = [batch(3 * at, 3, size=50) for at in range(200)]
    segment = LogSegment(write_segment(tmp_path / "t-0", 0, made))
    as_it_is = whatif([segment], [Setting("none"), Setting("zstd", 3)])
    for batch_bytes in (1, 2000, 1 << 20):
        result = whatif([segment], [Setting("none"), Setting("zstd", 3)], batch_bytes=batch_bytes)
        none, zstd = result.outcomes
        columns = segment.columns(("timestamp", "key", "value", "headers"))
        plain = kwire.build_batches(columns, batch_bytes=batch_bytes)
        assert (none.size, none.batches) == (sum(len(one) for one, _, _ in plain), len(plain))
        packed = kwire.build_batches(columns, batch_bytes=batch_bytes, codec="zstd", level=3)
        assert zstd.size == sum(len(one) for one, _, _ in packed)
        assert (result.batches, result.records, result.stored) == (200, 600, segment.size)
    assert zstd.size < as_it_is.outcomes[1].size / 4
    for wrong in (0, -1, 1 << 31):
        with pytest.raises(ValueError, match="batch_bytes"):
            whatif([segment], batch_bytes=wrong)


def test_control_and_damaged_batches_are_left_out(tmp_path: Path) -> None:
    made = [in_transaction(0, 1), marker(3, 1, True), batch(4), batch(7, codec="gzip"), batch(10)]
    path = write_segment(tmp_path / "t-0", 0, made)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    result = whatif([LogSegment(path)], [Setting("none")])
    assert (result.batches, result.records, result.bad, result.control) == (3, 9, 1, len(made[1]))
    assert result.codecs == {"none": 2, "gzip": 1}
    assert result.outcomes[0].size == len(made[0]) + len(made[2]) + len(batch(7))
    assert whatif([LogSegment(path)], [Setting("none")], batch_bytes=100).outcomes[0].batches > 3


def test_a_sample(tmp_path: Path) -> None:
    made = [batch(3 * at, 3, size=1000) for at in range(2000)]  # 6 MB
    one = LogSegment(write_segment(tmp_path / "t-0", 0, made[:700]))
    other = LogSegment(write_segment(tmp_path / "t-0", 2100, made[700:]))
    done: list[int] = []
    result = whatif([one, other], [Setting("none"), Setting("gzip", 1)], sample_bytes=2 << 20, progress=done.append)
    assert result.sampled and 1.9 < result.stored / (1 << 20) < 2.1
    assert sum(done) == 2 << 20
    none, gzip = result.outcomes
    assert abs(result.estimate(none) / result.total - 1) < 0.01
    whole = whatif([one, other], [Setting("gzip", 1)], sample_bytes=None).outcomes[0]
    assert abs(result.estimate(gzip) / whole.size - 1) < 0.05
    assert not whatif([one, other], [], sample_bytes=result.total).sampled
    least = whatif([one, other], [Setting("none")], sample_bytes=0)  # but never nothing
    assert least.sampled and least.batches and least.estimate(least.outcomes[0]) > 0
    tiny = whatif([one, other], [Setting("none")], sample_bytes=1000)
    assert 0 < tiny.batches < 5


def test_nothing_to_measure(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(b"")
    result = whatif([LogSegment(path)])
    none = result.outcomes[0]
    assert (result.batches, none.size, none.ratio, none.mean_ratio) == (0, 0, 0, 0)
    assert result.estimate(result.outcomes[0]) == 0
    assert result.to_json()["outcomes"][3]["saved"] == 0
    path.write_bytes(b"no batch" * 50)
    assert whatif([LogSegment(path)]).bad == 1


def test_a_wrong_level_is_an_error_before_reading(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020}.log"
    path.write_bytes(batch(0))
    segment = LogSegment(path)
    path.unlink()
    for setting in (Setting("gzip", 10), Setting("none", 1), Setting("brotli")):
        with pytest.raises(kwire.EncodeError):
            whatif([segment], [setting])


def test_zeros_are_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A preallocated segment: each of the pieces of a sample would search all zeros after it."""
    path = write_segment(tmp_path / "t-0", 0, [batch(0)])
    with path.open("r+b") as file:
        file.truncate(64 << 20)
    asked: list[int] = []
    boundary = LogSegment.boundary
    monkeypatch.setattr(LogSegment, "boundary", lambda self, guess: asked.append(guess) or boundary(self, guess))
    for batch_bytes in (None, 1000):
        result = whatif([LogSegment(path), LogSegment(path)], batch_bytes=batch_bytes)
        assert result.sampled and result.batches == 2
    assert len(asked) <= 12
