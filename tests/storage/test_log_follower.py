"""LogFollower: places in a log that grows, rolls, is compacted, deleted, truncated and made again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import kwire
from kwire.storage import LogSegment, SegmentFile, discover
from kwire.storage.reading.bounds import Bounds
from kwire.storage.reading.log_follower import LogFollower, LogOffset
from tests.spark.logs import batch, segment

pytestmark = pytest.mark.quick


class Log:
    """A partition folder, followed by a LogFollower that notes what it tells."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lost: list[str] = []
        self.warned: list[str] = []

    def follower(self) -> LogFollower:
        def opened(file: SegmentFile) -> LogSegment:
            return LogSegment(file.path)

        return LogFollower("t-0", discover(self.folder), open_segment=opened, lost=self.lost.append,
                           warn=self.warned.append)

    def read(self, at: LogOffset, most: int | None = None) -> tuple[list[int], LogOffset]:
        """The offsets from a place on, and the place after them."""
        end = self.follower().advance(at, most)
        return self.between(at, end), end

    def between(self, at: LogOffset, end: LogOffset) -> list[int]:
        read = []
        for file, first, last, bounds, _ in self.follower().ranges(at, end):
            for one in LogSegment(file.path).batches(first, last):
                read += [record.offset for record in one if bounds.admits(record)]
        return read


def path_of(folder: Path, base: int) -> Path:
    return folder / f"{base:020d}.log"


def without(data: bytes, chance: random.Random) -> bytes:
    """The batches after the cleaner: some are gone, some have lost records."""
    written = []
    for old in kwire.read_batches(data):
        records = list(old)
        kept = [record for record in records if chance.random() < 0.6]
        if len(kept) == len(records) or chance.random() < 0.5:
            written.append(bytes(old.raw))
        elif kept:
            written.append(kwire.build_batch(kept, base_offset=old.base_offset, last_offset=old.last_offset))
    return b"".join(written)


@pytest.mark.parametrize("seed", range(60))
def test_each_offset_comes_once_whatever_the_cleaner_does(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "t-0"
    log, bases, end = Log(folder), [0], 0
    segment(folder, 0)
    at, seen = log.follower().start(), []
    for _ in range(12):
        for _ in range(chance.randrange(6)):
            if chance.random() < 0.3 and end > bases[-1]:
                bases.append(end)
                segment(folder, end)
            count = chance.randrange(1, 8)
            with open(path_of(folder, bases[-1]), "ab") as file:
                file.write(batch(end, count))
            end += count
        read, at = log.read(at, chance.choice([None, 1, 200, 1000]))
        seen += read
        if chance.random() < 0.3 and len(bases) > 1:  # clean a closed segment, which is not merged with others
            path = path_of(folder, chance.choice(bases[:-1]))
            path.write_bytes(without(path.read_bytes(), chance))
        elif chance.random() < 0.3 and len(bases) > 2:  # merge the first two
            first, second = path_of(folder, bases[0]), path_of(folder, bases.pop(1))
            first.write_bytes(first.read_bytes() + second.read_bytes())
            second.unlink()
    cleaned = [record.offset for base in bases for one in LogSegment(path_of(folder, base)).batches() for record in one]
    for _ in range(200):
        read, following = log.read(at)
        seen += read
        if following == at:
            break
        at = following
    assert len(seen) == len(set(seen)) and seen == sorted(seen)
    assert set(cleaned) <= set(seen)
    for text in log.lost:  # a segment of which nothing shows that it was compacted: a gap may be a loss
        assert "are not there" in text, text


def test_a_place_in_the_future_waits_without_a_word(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    path = segment(log.folder, 0, batch(0, 5))
    read, at = log.read(log.follower().start(8))
    assert read == [] and at.offset == 8
    path.write_bytes(path.read_bytes() + batch(5, 2))
    read, at = log.read(at)
    assert read == []
    segment(log.folder, 7, batch(7, 5))
    for _ in range(3):
        more, at = log.read(at)
        read += more
    assert read == [8, 9, 10, 11]
    assert not log.lost and not log.warned


def test_a_place_before_the_log_is_lost(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    segment(log.folder, 10, batch(10, 5))
    assert log.read(log.follower().start(3))[0] == [*range(10, 15)]
    assert "offsets 3..9 are lost, the next segment begins at offset 10" in log.lost[0]


def test_a_segment_that_grew_since_it_was_listed_has_no_gap(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    path = segment(log.folder, 0, batch(0, 5))
    follower = log.follower()
    listed = follower.files[0]
    path.write_bytes(path.read_bytes() + batch(5, 5))
    segment(log.folder, 10, batch(10, 5))
    stale = log.follower()
    stale.files = [listed, *stale.files[1:]]
    at = stale.advance(stale.start())
    assert at.offset == 5 and stale.advance(at).offset == 5
    assert not log.lost and not log.warned
    assert log.read(at)[0] == [*range(5, 15)]


def test_records_that_two_segments_hold_come_once(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    segment(log.folder, 0, batch(0, 5), batch(5, 5))
    segment(log.folder, 5, batch(5, 5), batch(10, 5))
    at, seen = log.follower().start(), []
    for _ in range(4):
        read, at = log.read(at)
        seen += read
    assert seen == [*range(15)] and not log.lost
    assert "offsets 5..9 are read once" in log.warned[0]


def test_trailing_bytes_of_a_closed_segment_are_no_gap(tmp_path: Path) -> None:
    for number, trailing in enumerate((bytes(4096), batch(5, 5)[:-7])):  # preallocated zeros, a torn batch
        log = Log(tmp_path / str(number) / "t-0")
        segment(log.folder, 0, batch(0, 5), trailing)
        segment(log.folder, 5, batch(5, 5))
        read, at = log.read(log.follower().start())
        assert read == [*range(10)] and at.offset == 10
        assert not log.lost and not log.warned


def test_an_idle_partition_is_not_read(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    segment(log.folder, 0, batch(0, 5))
    _, at = log.read(log.follower().start())

    def refused(file: SegmentFile) -> LogSegment:
        raise AssertionError(f"{file.path} was opened")

    follower = LogFollower("t-0", discover(log.folder), open_segment=refused, lost=log.lost.append,
                           warn=log.warned.append)
    assert follower.advance(at) == at
    assert follower.bytes_after(at) == 0


def test_a_read_within_bounds_is_exact(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    segment(log.folder, 0, batch(0, 5), batch(5, 5))
    follower = log.follower()
    start, end = follower.start(7), follower.end()
    assert [bounds for *_, bounds, _ in follower.ranges(start, end)] == [Bounds(7, None)]
    assert log.between(start, end) == [7, 8, 9]
    assert end == follower.advance(follower.start())._replace(log_start=0)
