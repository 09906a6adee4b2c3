"""Retention and compaction on request: what Kafka's LogManager and Cleaner keep; in memory and on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire.fleet import ApiError, Fleet, ManualClock
from kwire.net import SyncConnection, connect_sync
from kwire.schema.error_codes import ErrorCode
from kwire.storage import LogDirectory
from tests.fleet.test_apis import batch, fetch, produce, values
from tests.fleet.test_disk_storage import Producer

pytestmark = pytest.mark.quick
E = ErrorCode
NOW = 1_700_000_000_000
DAY = 86_400_000


@pytest.fixture(params=["memory", "disk"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    with Fleet("4.4", data=None if request.param == "memory" else tmp_path, clock=ManualClock()) as fleet:
        yield fleet
    if request.param == "disk":
        assert LogDirectory(tmp_path / "node-1").verify() == []


@pytest.fixture
def connection(fleet: Fleet) -> Iterator[SyncConnection]:
    with connect_sync(fleet.bootstrap) as connection:
        yield connection


def topic(fleet: Fleet, **configs: Any) -> Any:
    """A topic t of one partition; its log."""
    fleet.cluster.create_topic("t", 1, configs={name.replace("_", "."): str(value) for name, value in configs.items()})
    return fleet.cluster.partition("t", 0).log


def write(log: Any, *rows: tuple[str | None, str | None], time: int = NOW, **more: Any) -> None:
    """One batch with these (key, value)."""
    data = kwire.build_batch([
        (time, None if key is None else key.encode(), None if value is None else value.encode())
        for key, value in rows], **more)
    settings, log.settings = log.settings, log.settings._replace(compacts=False)  # it may have been so when written
    log.append(list(kwire.read_batches(data)), 0, NOW)
    log.settings = settings


def kept(fleet: Fleet) -> list[tuple[int, str | None, str | None]]:
    return [
        (one.offset, None if one.key is None else one.key.decode(), None if one.value is None else one.value.decode())
        for one in fleet.records("t")]


def heads(log: Any) -> list[tuple[int, int, int]]:
    """(base offset, last offset, records) of each batch, control batches too."""
    data = log.read(log.start_offset, 1 << 30, log.end_offset, True)
    return [(one.base_offset, one.last_offset, one.count) for one in kwire.read_batches(data)]


def test_retention_by_time(fleet: Fleet, connection: SyncConnection) -> None:
    log = topic(fleet, retention_ms=DAY, segment_bytes=100)
    for age in (3 * DAY, 2 * DAY, DAY, 0):
        write(log, ("k", "v"), time=NOW - age)
    assert fleet.retain() == 2  # what is a day old is not older than a day
    assert (log.start_offset, [one.base_offset for one in log.store.segments]) == (2, [2, 3])
    assert fetch(connection, 1).error_code == E.OFFSET_OUT_OF_RANGE
    assert fleet.retain("t") == 0
    fleet.advance(2 * DAY / 1000)
    assert fleet.retain("t") == 1  # both, and there is an empty one
    assert (log.start_offset, log.end_offset) == (4, 4)
    assert fetch(connection, 4).error_code == 0
    assert produce(connection, batch("new")).base_offset == 4
    assert values(fetch(connection, 4)) == [b"new"]


def test_retention_by_size(fleet: Fleet) -> None:
    log = topic(fleet, retention_bytes=200, retention_ms=-1, segment_bytes=100)
    for _ in range(5):
        write(log, ("k", "v"), time=1)  # 70 bytes
    assert fleet.retain() == 2
    assert sum(one.size for one in log.store.segments) == 3 * 70  # with one less there would be less than 200
    assert log.start_offset == 2


@pytest.mark.parametrize("configs", [{"retention_ms": DAY}, {"retention_bytes": 0, "retention_ms": -1}])
def test_retention_goes_past_what_compaction_has_emptied(fleet: Fleet, configs: dict[str, int]) -> None:
    log = topic(fleet, cleanup_policy="compact,delete", segment_bytes=100, **configs)
    for key in ("a", "a", "b"):
        write(log, (key, "v"))
    fleet.compact("t")
    assert [one.size > 0 for one in log.store.segments] == [False, True, True, False]
    fleet.advance(2 * DAY / 1000)
    assert fleet.retain() == 3
    assert log.start_offset == 3


def test_what_is_compacted_only_has_no_retention(fleet: Fleet) -> None:
    log = topic(fleet, cleanup_policy="compact", retention_ms=1, retention_bytes=1, segment_bytes=100)
    for _ in range(3):
        write(log, ("k", "v"), time=1)
    assert fleet.retain() == 0 and log.start_offset == 0
    log.delete_before(2)
    assert [one.base_offset for one in log.store.segments] == [2]


def test_compaction_keeps_the_newest_of_each_key(fleet: Fleet, connection: SyncConnection) -> None:
    log = topic(fleet, cleanup_policy="compact")
    write(log, ("a", "1"), ("b", "1"), codec="gzip")
    write(log, ("a", "2"), ("c", "1"))
    write(log, ("a", "3"))
    assert fleet.compact("t") > 0
    assert kept(fleet) == [(1, "b", "1"), (3, "c", "1"), (4, "a", "3")]
    assert heads(log) == [(0, 1, 1), (2, 3, 1), (4, 4, 1)]  # batches keep their offsets
    assert log.end_offset == 5 and log.start_offset == 0
    assert values(fetch(connection, 0)) == [b"1", b"1", b"3"]
    assert values(fetch(connection, 2)) == [b"1", b"3"]
    assert fleet.compact("t") == 0
    write(log, ("b", "2"), ("d", "1"))
    write(log, ("d", "2"), (None, "without a key"))
    fleet.compact("t")
    assert kept(fleet) == [(3, "c", "1"), (4, "a", "3"), (5, "b", "2"), (7, "d", "2")]
    assert produce(connection, kwire.build_batch([(NOW, b"e", b"new")])).base_offset == 9


def test_the_last_batch_stays_without_records(fleet: Fleet) -> None:
    log = topic(fleet, cleanup_policy="compact")
    write(log, ("a", "1"))
    write(log, (None, "x"))
    fleet.compact("t")
    assert heads(log) == [(0, 0, 1), (1, 1, 0)]  # so that the end of the log stays known


def test_the_last_batch_of_a_producer_stays_without_records(fleet: Fleet, connection: SyncConnection) -> None:
    log = topic(fleet, cleanup_policy="compact")
    for producer in (5, 6):
        for sequence in (0, 1):
            write(log, ("a", f"{producer}"), producer_id=producer, producer_epoch=0, base_sequence=sequence)
    write(log, ("b", "1"))
    fleet.compact("t")
    assert heads(log) == [(1, 1, 0), (3, 3, 1), (4, 4, 1)]
    again = kwire.build_batch([(NOW, b"a", b"5")], producer_id=5, producer_epoch=0, base_sequence=1)
    assert produce(connection, again).base_offset == 1


def test_an_empty_batch_goes_when_its_producer_has_another(fleet: Fleet) -> None:
    log = topic(fleet, cleanup_policy="compact")
    for sequence in range(3):
        write(log, ("a", "1"), producer_id=5, producer_epoch=0, base_sequence=sequence)
        write(log, ("a", "2"))
        fleet.compact("t")
        assert heads(log) == [(2 * sequence, 2 * sequence, 0), (2 * sequence + 1, 2 * sequence + 1, 1)]


def test_only_records_of_aborted_transactions_go(fleet: Fleet) -> None:
    log = topic(fleet, cleanup_policy="compact")
    commits = [number % 3 == 0 for number in range(20)]
    for number, commit in enumerate(commits):
        for part in (0, 1):
            write(log, (f"{number}-{part}", "v"), producer_id=5, producer_epoch=0, base_sequence=2 * number + part,
                  transactional=True)
        log.append_marker(5, 0, commit, 0, 0, NOW)
    fleet.compact("t")
    assert [key for _, key, _ in kept(fleet)] == [
        f"{number}-{part}" for number, commit in enumerate(commits) if commit for part in (0, 1)]


def test_a_record_is_not_lost_to_one_that_is_aborted_later(fleet: Fleet) -> None:
    """The marker of the transaction is in a segment that is not compacted: after it another transaction is open."""
    log = topic(fleet, cleanup_policy="compact")
    write(log, ("a", "committed"))
    write(log, ("a", "aborted"), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
    log.roll()
    log.append_marker(5, 0, False, 0, 0, NOW)
    write(log, ("a", "open"), producer_id=6, producer_epoch=0, base_sequence=0, transactional=True)
    fleet.compact("t")
    assert kept(fleet) == [(0, "a", "committed"), (3, "a", "open")]
    log.append_marker(6, 0, False, 0, 0, NOW)
    for _ in range(2):
        fleet.compact("t")
        assert kept(fleet) == [(0, "a", "committed")]


def test_a_topic_with_the_longest_name_is_compacted(fleet: Fleet) -> None:
    name = "t" * 249
    fleet.cluster.create_topic(name, 1, configs={"cleanup.policy": "compact"})
    log = fleet.cluster.partition(name, 0).log
    write(log, ("a", "1"))
    write(log, ("a", "2"))
    assert fleet.compact(name) > 0
    assert [one.value for one in fleet.records(name)] == [b"2"]


def test_tombstones_stay_for_their_time(fleet: Fleet) -> None:
    log = topic(fleet, cleanup_policy="compact", delete_retention_ms=1000)
    write(log, ("a", "1"), ("b", "1"))
    write(log, ("a", None))
    write(log, ("c", "1"))
    fleet.compact("t")
    assert kept(fleet) == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
    data = log.read(2, 1, 3, True)
    (tombstone,) = kwire.read_batches(data)
    assert tombstone.delete_horizon == NOW + 1000 and next(iter(tombstone)).timestamp == NOW
    fleet.advance(0.5)
    fleet.compact("t")  # the horizon does not move
    assert len(kept(fleet)) == 3
    fleet.advance(0.5)
    fleet.compact("t")
    assert kept(fleet) == [(1, "b", "1"), (3, "c", "1")]


def test_a_lag_is_left_alone(fleet: Fleet) -> None:
    log = topic(fleet, cleanup_policy="compact", min_compaction_lag_ms=1000, segment_bytes=100)
    write(log, ("a", "1"), time=NOW - 2000)
    write(log, ("a", "2"), time=NOW - 1500)
    write(log, ("a", "3"), time=NOW)
    fleet.compact("t")
    assert [value for _, _, value in kept(fleet)] == ["2", "3"]
    fleet.advance(5)
    fleet.compact("t")
    assert [value for _, _, value in kept(fleet)] == ["3"]


def test_transactions(fleet: Fleet, connection: SyncConnection) -> None:
    """Aborted records go, markers when nothing of their transaction is there and their time is over."""
    log = topic(fleet, cleanup_policy="compact", delete_retention_ms=1000, segment_bytes=200)
    write(log, ("a", "before"))
    log.settings = log.settings._replace(compacts=False)
    gone, done, going = (Producer(connection, name) for name in ("gone", "done", "going"))
    gone.write("1")
    done.write("2")
    gone.write("3")
    assert (gone.end(commit=False), done.end(commit=True)) == (0, 0)
    fleet.cluster.partition("t", 0)
    write(log, ("a", "after"))
    going.write("4")
    log.settings = log.settings._replace(compacts=True)
    fleet.compact("t")
    # records without keys go, those of an aborted transaction first; the last batch of each producer stays, empty
    rows = heads(log)
    assert (0, 0, 0) not in rows and [row for row in rows if row[2] == 0] == [(2, 2, 0), (3, 3, 0)]
    assert [row for row in rows if row[0] in (4, 5)] == [(4, 4, 1), (5, 5, 1)]  # the markers
    assert (7, 7, 1) in rows  # after the last stable offset nothing is touched
    row = fetch(connection, 0, isolation=1)
    assert [(one.producer_id, one.first_offset) for one in row.aborted_transactions] == [(gone.id, 1)]
    assert going.end(commit=True) == 0
    fleet.compact("t")
    assert [value for _, key, value in kept(fleet) if key] == ["after"]


def test_markers_go_when_their_transaction_is_gone(fleet: Fleet) -> None:
    log = topic(fleet, cleanup_policy="compact", delete_retention_ms=1000)
    for producer, commits in ((7, True), (8, False)):
        write(log, ("a", f"{producer}"), producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True)
        log.append_marker(producer, 0, commits, 0, 0, NOW)
        log.producers.producers.pop(producer)  # as producers expire
    write(log, ("a", "last"))
    assert heads(log) == [(at, at, 1) for at in range(5)]
    fleet.compact("t")
    assert heads(log) == [(1, 1, 1), (3, 3, 1), (4, 4, 1)]  # the markers of what was there in this round
    fleet.compact("t")  # now they have a horizon
    (marker, *_) = kwire.read_batches(log.read(1, 1, 2, True))
    assert marker.delete_horizon == NOW + 1000 and next(iter(marker)).control_type == "COMMIT"
    fleet.advance(2)
    fleet.compact("t")
    assert heads(log) == [(4, 4, 1)]
    assert log.aborted == []


def test_segments_are_joined(fleet: Fleet) -> None:
    log = topic(fleet, cleanup_policy="compact", segment_bytes=300)
    for at in range(20):
        write(log, (f"{at % 3}", f"{at}"))
    sizes = len(log.store.segments)
    fleet.compact("t")
    fleet.compact("t")
    assert [value for _, _, value in kept(fleet)] == ["17", "18", "19"]
    assert len(log.store.segments) < sizes / 2


def test_records_of_a_compacted_topic_have_keys(fleet: Fleet, connection: SyncConnection) -> None:
    topic(fleet, cleanup_policy="compact")
    row = produce(connection, batch("without"))
    assert row.error_code == E.INVALID_RECORD and "without key" in row.error_message
    assert produce(connection, kwire.build_batch([(NOW, b"", b"with")])).base_offset == 0


def test_a_policy_may_have_blanks(fleet: Fleet) -> None:
    log = topic(fleet, cleanup_policy=" delete , compact ")
    write(log, ("a", "1"), ("a", "2"))
    fleet.compact("t")
    assert kept(fleet) == [(1, "a", "2")]


def test_only_what_may_be_compacted(fleet: Fleet) -> None:
    topic(fleet)
    with pytest.raises(ApiError, match=r"cleanup\.policy of t is delete: expected one with compact") as caught:
        fleet.compact("t")
    assert caught.value.code == E.INVALID_CONFIG
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        fleet.compact("none")
