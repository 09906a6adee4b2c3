"""LogFollower: places in a log that grows, rolls, is compacted, deleted, truncated and made again."""

from __future__ import annotations

import os
import random
from pathlib import Path
from uuid import UUID

import pytest

import kwire
from kwire.storage import LogSegment, SegmentFile, discover
from kwire.storage.reading.bounds import Bounds
from kwire.storage.reading.log_follower import LogFollower, LogOffset
from kwire.storage.reading.open_transactions import OpenTransaction
from kwire.storage.side_files.checkpoints import partition_metadata
from tests.spark.logs import batch, segment
from tests.storage import making
from tests.storage.making import write_segment

pytestmark = pytest.mark.quick


class Log:
    """A partition folder, followed by a LogFollower that notes what it tells."""

    def __init__(self, folder: Path, strict: bool = True) -> None:
        self.folder, self.strict = folder, strict
        self.lost: list[str] = []
        self.warned: list[str] = []

    def follower(self) -> LogFollower:
        def opened(file: SegmentFile) -> LogSegment:
            return LogSegment(file.path)

        return LogFollower("t-0", discover(self.folder), open_segment=opened, lost=self.lost.append,
                           warn=self.warned.append, strict=self.strict)

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


@pytest.mark.parametrize("seed", range(40))
def test_a_place_in_the_future_waits_whatever_the_cleaner_does(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    log, bases, end = Log(tmp_path / "t-0"), [0], 0
    segment(log.folder, 0)
    first = chance.randrange(10, 60)
    at, seen = log.follower().start(first), []
    while end < first + 20:
        if chance.random() < 0.4 and end > bases[-1]:
            bases.append(end)
            segment(log.folder, end)
        count = chance.randrange(1, 8)
        with open(path_of(log.folder, bases[-1]), "ab") as file:
            file.write(batch(end, count))
        end += count
        if end > first or chance.random() < 0.5:
            read, at = log.read(at)
            seen += read
        if chance.random() < 0.5 and at.offset <= first and len(bases) > 1:  # before anything is read
            path = path_of(log.folder, chance.choice(bases[:-1]))
            path.write_bytes(without(path.read_bytes(), chance))
        if chance.random() < 0.3 and at.offset <= first and len(bases) > 1:  # its retention
            path_of(log.folder, bases.pop(0)).unlink()
    assert seen == list(range(first, end)) and log.lost == []


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


def test_a_place_in_the_future_is_found_batch_by_batch(tmp_path: Path) -> None:
    """In a segment that began meanwhile, with a limit: a batch before the offset is not read as if it was due."""
    log = Log(tmp_path / "t-0")
    segment(tmp_path / "t-0", 0, batch(0, 2))
    path = segment(tmp_path / "t-0", 2)
    at, read = LogOffset(5), []
    for data in (b"", batch(2, 1) + batch(3, 4), batch(7, 2)):
        path.write_bytes(path.read_bytes() + data)
        for _ in range(3):
            new, at = log.read(at, 1)
            read += new
    assert read == [5, 6, 7, 8] and not log.lost


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


def of_epoch(epoch: int, *bases: int) -> bytes:
    return b"".join(batch(base, partition_leader_epoch=epoch) for base in bases)


def test_a_log_that_is_written_again_but_not_as_far_as_it_was_read(tmp_path: Path) -> None:
    """Reading goes on at its end: what comes later below the offset that was due is new."""
    log, path = Log(tmp_path / "t-0"), segment(tmp_path / "t-0", 0, of_epoch(0, 0, 3, 6, 9))
    _, at = log.read(LogOffset(0))
    path.write_bytes(of_epoch(0, 0) + of_epoch(1, 3, 6))
    read, at = log.read(at)
    assert read == [] and at.offset == 9 and all("goes on at offset 9" in text for text in log.lost)
    log.lost.clear()
    path.write_bytes(of_epoch(0, 0) + of_epoch(1, 3, 6, 9, 12))
    read, at = log.read(at)
    assert read == [*range(9, 15)] and not log.lost


def test_a_log_that_is_written_again_twice(tmp_path: Path) -> None:
    """It is known after the first time, too: it is not taken for another log."""
    log, path = Log(tmp_path / "t-0"), segment(tmp_path / "t-0", 0, of_epoch(0, 0, 3, 6, 9))
    _, at = log.read(LogOffset(0))
    path.write_bytes(of_epoch(0, 0) + of_epoch(1, 3, 6))
    _, at = log.read(at)
    path.write_bytes(of_epoch(0, 0) + of_epoch(2, 3))
    read, at = log.read(at)
    assert read == [] and at.offset == 6 and "goes on at offset 6" in log.lost[-1]
    path.write_bytes(of_epoch(0, 0))
    read, at = log.read(at)
    assert read == [] and at.offset == 3 and "truncated to" in log.lost[-1]


@pytest.mark.parametrize("later", [(), (6, 9), (6, 9, 12, 15)])
def test_a_log_that_was_truncated_and_rolled_is_not_another_one(tmp_path: Path, later: tuple[int, ...]) -> None:
    log, path = Log(tmp_path / "t-0"), segment(tmp_path / "t-0", 0, of_epoch(-1, 0, 3, 6, 9))
    _, at = log.read(LogOffset(0))
    path.write_bytes(of_epoch(-1, 0, 3))
    segment(tmp_path / "t-0", 6, b"".join(batch(base, 3, codec="lz4") for base in later))
    read, at = log.read(at)
    [lost] = set(log.lost)
    assert "truncated" in lost and "made again" not in lost
    assert read == [offset for offset in range(12, 18) if offset < (later or (0,))[-1] + 3]
    assert at.offset == {(): 6, (6, 9): 12, (6, 9, 12, 15): 18}[later]


def test_a_micro_batch_of_a_log_that_was_made_again_since(tmp_path: Path) -> None:
    """The records of the new log come with the next one, which begins at its beginning, and not twice."""
    log, path = Log(tmp_path / "t-0"), segment(tmp_path / "t-0", 0, batch(0), batch(3))
    _, at = log.read(LogOffset(0))
    path.write_bytes(batch(0) + batch(3) + batch(6) + batch(9))
    end = log.follower().advance(at)
    path.write_bytes(batch(0, 5, codec="lz4") + batch(5, 3))
    assert log.between(at, end) == [] and log.lost
    assert log.read(end)[0] == [*range(8)]


def test_a_transaction_that_begins_while_a_preallocated_segment_is_read(tmp_path: Path) -> None:
    """The size of the file, which stays, does not bound what is read: a place past an open transaction loses it."""
    path = write_segment(tmp_path / "t-0", 0, [making.batch(0)], indexes=False)
    written = path.stat().st_size
    path.write_bytes(path.read_bytes() + bytes(10_000))
    begun = False

    def first_open(number: int) -> OpenTransaction | None:
        nonlocal begun
        found = LogSegment(path).transactions().open
        if not begun:
            begun = True
            with path.open("r+b") as file:
                file.seek(written)
                file.write(making.in_transaction(3, 7))
        return OpenTransaction(*found[0]) if found else None

    def follower() -> LogFollower:
        return LogFollower("t-0", discover(tmp_path / "t-0"), open_segment=lambda file: LogSegment(file.path),
                           lost=pytest.fail, warn=pytest.fail, strict=False, first_open=first_open)

    first = follower().advance(follower().start())
    assert begun and (first.offset, first.position) == (3, written)
    waiting = follower()
    assert waiting.advance(first) == first
    assert waiting.waits_for is not None and waiting.waits_for.first_offset == 3
    with path.open("r+b") as file:
        file.seek(written + len(making.in_transaction(3, 7)))
        file.write(making.marker(6, 7, commit=True))
    assert follower().advance(first).offset == 7


@pytest.mark.parametrize("strict", [True, False])
def test_a_batch_that_is_half_written_into_a_preallocated_segment(strict: bool, tmp_path: Path) -> None:
    """It is waited for: what is there may be a broker's write that goes on."""
    log = Log(tmp_path / "t-0", strict)
    first, second, zeros = batch(0, 5), batch(5, 5), bytes(1 << 13)
    path = path_of(log.folder, 0)
    segment(log.folder, 0, first, second[:-9], bytes(9), zeros)
    read, at = log.read(log.follower().start())
    assert (read, at.offset, at.position) == ([*range(5)], 5, len(first))
    path.write_bytes(first + second + zeros)
    read, at = log.read(at)
    assert (read, at.offset) == ([*range(5, 10)], 10)
    assert not log.lost and not log.warned


@pytest.mark.parametrize("same", [(0, 3), (0,)])
def test_a_log_written_again_to_the_same_size_is_reported_at_once(same: tuple[int, ...], tmp_path: Path) -> None:
    """By the head of the batch that was read last; not only once the log grows."""
    log, path = Log(tmp_path / "t-0"), segment(tmp_path / "t-0", 0, of_epoch(0, 0, 3, 6))
    with_id(log.folder, 1)
    _, at = log.read(log.follower().start())
    kept, base = of_epoch(0, *same), same[-1] + 3
    size = path.stat().st_size - len(kept)
    path.write_bytes(kept + next(
        one for key in (b"k", b"kk") for count in range(size)
        if len(one := kwire.build_batch([(0, key, bytes(count))], base_offset=base, partition_leader_epoch=1)) == size))
    read, following = log.read(at)
    assert len(log.lost) >= 1 and "truncated and written again" in log.lost[0]
    assert read == [] and following.offset == base + 1
    assert log.read(following) == ([], following)


def test_a_log_that_has_nothing_new_and_is_gone_is_left_to_the_next_listing(tmp_path: Path) -> None:
    log, path = Log(tmp_path / "t-0"), segment(tmp_path / "t-0", 0, of_epoch(0, 0, 3))
    with_id(log.folder, 1)
    _, at = log.read(log.follower().start())
    assert log.follower().is_at_end(at)
    follower = log.follower()
    path.unlink()
    assert not follower.is_at_end(at)
    with pytest.raises(FileNotFoundError):
        follower.advance(at)


def test_a_log_truncated_to_the_beginning_of_its_last_segment(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    segment(log.folder, 0, batch(0, 5))
    segment(log.folder, 5, batch(5, 5))
    read, at = log.read(log.follower().start())
    assert read == [*range(10)]
    path_of(log.folder, 5).write_bytes(b"")
    read, at = log.read(at)
    assert read == [] and at.offset == 5
    assert len(log.lost) == 1 and "was truncated to 0 bytes" in log.lost[0]
    path_of(log.folder, 5).write_bytes(batch(5, 3))
    read, at = log.read(at)
    assert read == [5, 6, 7] and len(log.lost) == 1


@pytest.mark.parametrize("later", [(0,), (0, 3, 6, 9)])
def test_a_log_that_was_made_again_in_a_later_epoch(tmp_path: Path, later: tuple[int, ...]) -> None:
    """Nothing is left of the first segment of the log: it is read from its beginning, whatever its epochs."""
    log, path = Log(tmp_path / "t-0"), segment(tmp_path / "t-0", 0, of_epoch(0, 0, 3))
    _, at = log.read(LogOffset(0))
    path.write_bytes(of_epoch(4, *later))
    read, at = log.read(at)
    assert read == [*range(later[-1] + 3)] and "made again" in log.lost[0]


def test_a_log_that_was_written_again_and_compacted_at_both_ends(tmp_path: Path) -> None:
    """Its head is another one, but of the old epoch: it was not made again, and what was lost is reported."""
    log = Log(tmp_path / "t-0")
    segment(log.folder, 0, of_epoch(3, *range(0, 30, 3)))
    _, at = log.read(LogOffset(0))
    path_of(log.folder, 0).write_bytes(of_epoch(3, *range(3, 21, 3)) + of_epoch(5, 21, 24))
    segment(log.folder, 30, of_epoch(5, 30))
    log.read(at)
    assert log.lost and all("was truncated and written again" in text for text in log.lost)


def with_id(folder: Path, number: int) -> None:
    (folder / "partition.metadata").write_bytes(partition_metadata(UUID(int=number)))


def test_a_log_truncated_to_before_the_segment_that_was_read_last(tmp_path: Path) -> None:
    """It is the log of the same topic id: what is left of it is not read again."""
    log = Log(tmp_path / "t-0")
    segment(log.folder, 0, batch(0, 5))
    segment(log.folder, 5, batch(5, 5))
    with_id(log.folder, 1)
    _, at = log.read(log.follower().start())
    path_of(log.folder, 5).unlink()
    path_of(log.folder, 0).write_bytes(batch(0, 3))
    read, at = log.read(at)
    assert read == [] and at.offset == 3
    assert set(log.lost) == {"t-0: the log was truncated, 00000000000000000005.log is gone: the log ends at offset 3, "
                             "expected offset 10 next"}
    log.lost.clear()
    path_of(log.folder, 0).write_bytes(batch(0, 3) + batch(3, 4))
    assert log.read(at)[0] == [*range(3, 7)] and not log.lost


@pytest.mark.parametrize("epochs", [(0, 4), (-1, -1)])
@pytest.mark.parametrize("later", [(0,), (0, 3, 6, 9)])
def test_a_log_truncated_whole_and_written_again(
    later: tuple[int, ...], epochs: tuple[int, int], tmp_path: Path
) -> None:
    log, path = Log(tmp_path / "t-0"), segment(tmp_path / "t-0", 0, of_epoch(epochs[0], 0, 3))
    with_id(log.folder, 1)
    _, at = log.read(LogOffset(0))
    path.write_bytes(b"".join(batch(base, codec="lz4", partition_leader_epoch=epochs[1]) for base in later))
    read, at = log.read(at)
    assert read == [*range(6, later[-1] + 3)] and at.offset == later[-1] + 3
    assert log.lost and all("was truncated" in text for text in log.lost)


@pytest.mark.parametrize(("base", "end"), [(0, 6), (0, 9), (6, 9)])
def test_a_log_of_another_topic_id_is_another_one(base: int, end: int, tmp_path: Path) -> None:
    """Whatever is in it: here the same batches, and more, or a segment that begins at the offset due."""
    log, path = Log(tmp_path / "t-0"), segment(tmp_path / "t-0", 0, batch(0), batch(3))
    with_id(log.folder, 1)
    _, at = log.read(LogOffset(0))
    path.unlink()
    segment(log.folder, base, *(batch(later) for later in range(base, end, 3)))
    with_id(log.folder, 2)
    read, at = log.read(at)
    assert read == [*range(base, end)]
    assert log.lost[0].startswith("t-0 was deleted and made again: it has another topic id; expected offset 6")


def test_a_topic_id_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = segment(tmp_path / "t-0", 0, batch(0))
    with_id(path.parent, 1)
    monkeypatch.chdir(path.parent)
    files = discover(path.name)
    at = LogFollower("t-0", files, open_segment=lambda file: LogSegment(file.path), lost=pytest.fail, warn=pytest.fail)
    assert files[0].path == path.name and at.advance(at.start()).topic


def test_a_topic_id_that_is_not_known_yet_or_any_more(tmp_path: Path) -> None:
    """As on the way from ZooKeeper to KRaft: then the batches alone say what became of the log."""
    log, path = Log(tmp_path / "t-0"), segment(tmp_path / "t-0", 0, batch(0))
    read, at = log.read(LogOffset(0))
    with_id(log.folder, 1)
    for base, text in ((3, None), (6, ""), (9, "version: 7"), (12, None)):
        if text is not None:
            (log.folder / "partition.metadata").write_text(text)
        with path.open("ab") as file:
            file.write(batch(base))
        more, at = log.read(at)
        read += more
    assert read == [*range(15)] and at.topic and not log.lost


@pytest.mark.parametrize("ids", [True, False])
def test_a_batch_whose_tombstones_got_a_time_to_be_deleted(ids: bool, tmp_path: Path) -> None:
    """The cleaner writes it again for that (KIP-534), with all its records: the log is the same."""
    log, records = Log(tmp_path / "t-0"), [(1, b"a", b"1"), (1, b"b", None)]
    path = segment(log.folder, 0, kwire.build_batch(records))
    if ids:
        with_id(log.folder, 1)
    read, at = log.read(log.follower().start())
    path.write_bytes(kwire.build_batch(records, delete_horizon=1_700_000_000_000))
    segment(log.folder, 2, batch(2))
    more, at = log.read(at)
    assert (read, more) == ([0, 1], [2, 3, 4])
    assert not log.lost and log.warned and all("rewritten by compaction" in text for text in log.warned)


def test_a_pipe_in_the_place_of_the_topic_id(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0")
    segment(log.folder, 0, batch(0))
    os.mkfifo(log.folder / "partition.metadata")
    assert log.read(log.follower().start())[0] == [0, 1, 2]
