"""What a broker asks of the batches that it appends, and what it makes of them, as its release does it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import kwire
from kwire import messages
from kwire.fleet import Fleet, ManualClock
from kwire.fleet.logs.partition_log import MOST_REASONS
from kwire.fleet.logs.producer_state import MOST_UNVERIFIED, ProducerStates
from kwire.net import SyncConnection, connect_sync
from kwire.schema.error_codes import ErrorCode as E
from tests.fleet.test_apis import fetch, produce, values

pytestmark = pytest.mark.quick
NOW = 4_000_000_000_000  # of a ManualClock that is after the system's
HOUR = 3_600_000


@contextmanager
def fleet(release: str, **configs: str) -> Iterator[Fleet]:
    """A fleet with a topic t, and one of these configs, u."""
    config = messages.CreateTopicsRequest.CreatableTopicConfig
    clock = ManualClock(NOW / 1000)
    with Fleet(release, topics={"t": 1}, clock=clock) as made, connect_sync(made.bootstrap) as connection:
        answer: Any = connection.send(messages.CreateTopicsRequest(timeout_ms=1000, topics=[
            messages.CreateTopicsRequest.CreatableTopic(
                name="u", num_partitions=1, replication_factor=1,
                configs=[config(name=name.replace("_", "."), value=value) for name, value in configs.items()])]))
        assert answer.topics[0].error_code == 0
        yield made


def at(*times: int, **more: Any) -> bytes:
    return kwire.build_batch([(NOW + time, b"k", b"v") for time in times], **more)


def test_a_clock_in_the_past_refuses_no_time_of_the_system() -> None:
    system = int(time.time() * 1000)
    with Fleet("4.4", topics={"u": 1}, clock=ManualClock()) as made, connect_sync(made.bootstrap) as connection:
        assert produce(connection, at(system - NOW), topic="u").error_code == 0
        assert produce(connection, at(system + 2 * HOUR - NOW), topic="u").error_code == E.INVALID_TIMESTAMP


@pytest.mark.parametrize(("release", "configs", "taken", "refused"), [
    ("4.4", {}, (-10**12, HOUR), (HOUR + 1,)),  # an hour, by default from 4.0 on
    ("3.9", {}, (-10**12, 10**12), ()),
    ("4.4", {"message_timestamp_after_max_ms": "5"}, (-10**12, 5), (6,)),
    ("3.9", {"message_timestamp_before_max_ms": "5"}, (-5, 10**12), (-6,)),
    ("3.9", {"message_timestamp_difference_max_ms": "5"}, (-5, 5), (-6, 6)),
    ("3.9", {"message_timestamp_difference_max_ms": "5", "message_timestamp_after_max_ms": "9"}, (-5, 9), (-6, 10)),
    ("2.8", {"message_timestamp_difference_max_ms": "5"}, (-5, 5), (-6, 6)),
    ("1.1", {"message_timestamp_difference_max_ms": "5"}, (-5, 5), (-6, 6)),
    ("4.4", {"message_timestamp_before_max_ms": "0", "message_timestamp_type": "LogAppendTime"}, (-10**12, 10**12), ()),
])
def test_times_beyond_the_limits_are_refused(
    release: str, configs: dict[str, str], taken: tuple[int, ...], refused: tuple[int, ...]
) -> None:
    version = 5 if release == "1.1" else 9
    with fleet(release, **configs) as made, connect_sync(made.bootstrap) as connection:
        for late in taken:
            assert produce(connection, at(0, late), topic="u", version=version).error_code == 0
        assert produce(connection, at(-NOW - 1), topic="u", version=version).error_code == 0  # no time at all
        for late in refused:
            row = produce(connection, at(0, late), topic="u", version=version)
            assert (row.error_code, row.base_offset) == (E.INVALID_TIMESTAMP, -1)
        assert len(made.records("u")) == 2 * len(taken) + 1


def test_a_wrong_time_is_named() -> None:
    with fleet("4.4", message_timestamp_before_max_ms="5") as made, connect_sync(made.bootstrap) as connection:
        row = produce(connection, at(0, -9, -6), topic="u")
    assert row.error_message == "One or more records have been rejected due to invalid timestamp"
    assert [(one.batch_index, one.batch_index_error_message) for one in row.record_errors] == [
        (place, f"Timestamp {NOW + time} of message with offset {place} is out of range. "
                f"The timestamp should be within [{NOW - 5}, {NOW + HOUR}]") for place, time in ((1, -9), (2, -6))]


def test_of_many_refused_records_the_first_are_named() -> None:
    with fleet("4.4", cleanup_policy="compact") as made, connect_sync(made.bootstrap) as connection:
        data = kwire.build_batch([(NOW, None, b"")] * (MOST_REASONS + 5), codec="gzip")
        row = produce(connection, data, topic="u")
    assert [error.batch_index for error in row.record_errors] == list(range(MOST_REASONS))
    assert f"due to {MOST_REASONS + 5} record errors in total" in row.error_message


def test_a_message_set_has_the_times_of_its_messages() -> None:
    with fleet("3.9", message_timestamp_before_max_ms="5") as made, connect_sync(made.bootstrap) as connection:
        assert produce(connection, at(-6, magic=1), topic="u", version=2).error_code == E.INVALID_TIMESTAMP
        assert produce(connection, at(-5, magic=1), topic="u", version=2).error_code == 0
        assert produce(connection, at(-6, magic=0), topic="u", version=1).error_code == 0  # it has no time


@pytest.mark.parametrize(("release", "taken"), [("4.4", True), ("3.9", True), ("2.8", False)])
def test_the_append_time_of_a_producer(release: str, taken: bool) -> None:
    """From 3.6 on (KIP-937) one within the limits is taken, as the create time."""
    with fleet(release) as made, connect_sync(made.bootstrap) as connection:
        row = produce(connection, at(-1, timestamp_type="log_append", max_timestamp=NOW), version=9)
        assert row.error_code == (0 if taken else E.INVALID_TIMESTAMP)
        assert [record.timestamp_type for record in made.records("t")] == ["create"] * taken


def test_a_topic_has_its_codec() -> None:
    with fleet("4.4", compression_type="gzip") as made, connect_sync(made.bootstrap) as connection:
        for codec in ("none", "snappy", "gzip"):
            assert produce(connection, at(0, codec=codec), topic="u").error_code == 0
            assert produce(connection, at(0, codec=codec)).error_code == 0
        codecs = {topic: [batch.codec for batch in kwire.read_batches(fetch(connection, 0, topic=topic).records)]
                  for topic in "tu"}
    assert codecs == {"t": ["none", "snappy", "gzip"], "u": ["gzip"] * 3}


def test_what_a_codec_makes_too_large_is_refused() -> None:
    with fleet("4.4", compression_type="uncompressed", max_message_bytes="200") as made, (
            connect_sync(made.bootstrap)) as connection:
        large = kwire.build_batch([(NOW, b"k", b"v" * 300)], codec="gzip")
        assert len(large) < 200
        assert produce(connection, large, topic="u").error_code == E.MESSAGE_TOO_LARGE
        assert made.records("u") == []


def test_a_largest_time_that_lies_is_mended() -> None:
    with fleet("4.4") as made, connect_sync(made.bootstrap) as connection:
        assert produce(connection, at(-3, -1, max_timestamp=NOW - 100)).error_code == 0
        (batch,) = kwire.read_batches(fetch(connection, 0).records)
    assert batch.max_timestamp == NOW - 1


def test_a_marker_has_the_append_time() -> None:
    with fleet("4.4", message_timestamp_type="LogAppendTime") as made, connect_sync(made.bootstrap) as connection:
        begin(connection)
        assert produce(connection, of(0, 0), topic="u", transactional_id="x").error_code == 0
        assert end(connection, 0) == 0
        assert [batch.timestamp_type for batch in kwire.read_batches(fetch(connection, 0, topic="u").records)] == [
            "log_append", "log_append"]


def begin(connection: SyncConnection, producer: tuple[int, int] = (-1, -1)) -> tuple[int, int, int]:
    answer: Any = connection.send(messages.InitProducerIdRequest(
        transactional_id="x", transaction_timeout_ms=60_000, producer_id=producer[0], producer_epoch=producer[1]), 4)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def end(connection: SyncConnection, epoch: int, version: int = 5) -> int:
    answer: Any = connection.send(messages.EndTxnRequest(
        transactional_id="x", producer_id=0, producer_epoch=epoch, committed=True), version)
    return int(answer.error_code)


def of(epoch: int, sequence: int, *, transactional: bool = True) -> bytes:
    return at(0, producer_id=0, producer_epoch=epoch, base_sequence=sequence, transactional=transactional)


@pytest.mark.parametrize(("release", "error"), [("4.4", E.OUT_OF_ORDER_SEQUENCE_NUMBER), ("4.0", 0)])
def test_a_transaction_begins_with_the_first_sequence(release: str, error: int) -> None:
    """Of version 12 on, from 4.1 on: of a producer of which no batch is known, in its epoch."""
    with fleet(release) as made, connect_sync(made.bootstrap) as connection:
        begin(connection)
        assert produce(connection, of(0, 1), transactional_id="x").error_code == error


def test_a_producer_in_a_transaction_writes_in_it() -> None:
    with fleet("4.4") as made, connect_sync(made.bootstrap) as connection:
        begin(connection)
        assert produce(connection, of(0, 0), transactional_id="x").error_code == 0
        assert produce(connection, of(0, 1, transactional=False)).error_code == E.INVALID_TXN_STATE
        assert end(connection, 0) == 0
        assert produce(connection, of(1, 1, transactional=False)).error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert produce(connection, of(1, 0, transactional=False)).error_code == 0


def joined(connection: SyncConnection, version: int = 3) -> None:
    added = messages.AddPartitionsToTxnRequest
    connection.send(added(
        v3_and_below_transactional_id="x", v3_and_below_producer_id=0, v3_and_below_producer_epoch=0,
        v3_and_below_topics=[added.AddPartitionsToTxnTopic(name="t", partitions=[0])]), version)


@pytest.mark.parametrize(("release", "error"), [("3.9", E.OUT_OF_ORDER_SEQUENCE_NUMBER), ("3.5", 0)])
def test_no_batch_goes_before_those_that_were_not_in_the_transaction(release: str, error: int) -> None:
    """Until one of the transaction is written (VerificationStateEntry); brokers of 3.9.1 and 4.4.0 answer so."""
    with fleet(release) as made, connect_sync(made.bootstrap) as connection:
        version = connection.versions["Produce"][1]
        begin(connection)
        refused = produce(connection, of(0, 0), transactional_id="x", version=version).error_code
        assert refused == (E.TRANSACTION_ABORTABLE if error else 0)
        assert produce(connection, of(0, 1, transactional=False), version=version).error_code == (
            error or E.INVALID_TXN_STATE)
        joined(connection)
        assert produce(connection, of(0, 0), transactional_id="x", version=version).error_code == 0
        assert end(connection, 0, version=3) == 0
        assert produce(connection, of(0, 1, transactional=False), version=version).error_code == 0


def test_producers_that_never_go_on_are_forgotten() -> None:
    producers = ProducerStates()
    for number in range(2 * MOST_UNVERIFIED):
        assert producers.must_verify(number, 0, 0, bumps_epoch=False, in_epoch=True)
    assert len(producers.unverified) == MOST_UNVERIFIED and min(producers.unverified) == MOST_UNVERIFIED


def test_a_marker_leaves_the_batches_of_the_next_epoch() -> None:
    with fleet("4.4") as made, connect_sync(made.bootstrap) as connection:
        begin(connection)
        assert produce(connection, of(0, 0), transactional_id="x").error_code == 0
        assert produce(connection, of(1, 0), transactional_id="x").error_code == E.INVALID_PRODUCER_EPOCH
        assert end(connection, 0) == 0
        assert produce(connection, of(1, 1), transactional_id="x").error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert produce(connection, of(1, 0, transactional=False)).error_code == 0
        assert produce(connection, of(1, 1, transactional=False)).error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("release", ["3.5", "3.9", "4.4"])
def test_a_transaction_that_goes_on_is_not_looked_up_again(release: str) -> None:
    """So its next batch may name another transactional id."""
    with fleet(release) as made, connect_sync(made.bootstrap) as connection:
        version = min(11, connection.versions["Produce"][1])
        begin(connection)
        joined(connection)
        assert produce(connection, of(0, 0), transactional_id="x", version=version).error_code == 0
        assert produce(connection, of(0, 1), transactional_id="y", version=version).error_code == 0


def test_a_write_outside_of_its_transaction_has_no_text() -> None:
    with fleet("4.4") as made, connect_sync(made.bootstrap) as connection:
        begin(connection)
        assert produce(connection, of(0, 0), transactional_id="x").error_code == 0
        row = produce(connection, of(0, 1, transactional=False))
        assert (row.error_code, row.error_message) == (E.INVALID_TXN_STATE, None)


@pytest.mark.parametrize(("release", "error"), [("1.1", E.UNKNOWN_PRODUCER_ID), ("2.8", 0)])
def test_a_producer_that_is_not_known(release: str, error: int) -> None:
    """It may go on with any sequence from 2.5 on (KIP-360)."""
    with fleet(release) as made, connect_sync(made.bootstrap) as connection:
        assert produce(connection, of(0, 5, transactional=False), version=5).error_code == error


@pytest.mark.parametrize(("release", "error"), [
    ("2.4", E.UNKNOWN_PRODUCER_ID), ("2.5", E.OUT_OF_ORDER_SEQUENCE_NUMBER)])
def test_a_producer_of_which_a_marker_is_known(release: str, error: int) -> None:
    """It begins with sequence 0: else brokers before 2.5 do not know it."""
    with fleet(release) as made, connect_sync(made.bootstrap) as connection:
        begun: Any = connection.send(messages.InitProducerIdRequest(
            transactional_id="x", transaction_timeout_ms=60_000), 1)
        assert begun.error_code == 0
        joined(connection, version=1)
        assert end(connection, 0, version=1) == 0
        assert produce(connection, of(0, 5, transactional=False), version=7).error_code == error
        assert produce(connection, of(0, 0, transactional=False), version=7).error_code == 0


def test_who_asks_again_gets_the_same_epoch() -> None:
    """As the answer was lost (KIP-360); not after another producer came."""
    with fleet("3.9") as made, connect_sync(made.bootstrap) as connection:
        assert begin(connection) == (0, 0, 0)
        assert [begin(connection, (0, 0)) for _ in range(3)] == [(0, 0, 1)] * 3
        assert begin(connection, (0, 1)) == (0, 0, 2)
        assert begin(connection) == (0, 0, 3)  # another one
        assert begin(connection, (0, 2)) == (E.PRODUCER_FENCED, -1, -1)


@pytest.mark.parametrize(("release", "version", "after"), [
    ("4.4", 12, (0, 0, 1)), ("3.9", 11, (E.PRODUCER_FENCED, -1, -1))])
def test_who_begins_in_its_own_transaction(release: str, version: int, after: tuple[int, int, int]) -> None:
    """It is aborted; with transaction.version 2 its end gives the next epoch, before it the epoch is fenced."""
    with fleet(release) as made, connect_sync(made.bootstrap) as connection:
        begin(connection)
        joined(connection)
        assert produce(connection, of(0, 0), transactional_id="x", version=version).error_code == 0
        assert begin(connection, (0, 0)) == after


def deleted(connection: SyncConnection, topic: str, offset: int) -> int:
    part = messages.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset)
    answer: Any = connection.send(messages.DeleteRecordsRequest(timeout_ms=1000, topics=[
        messages.DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[part])]))
    return int(answer.topics[0].partitions[0].error_code)


def test_records_of_a_compacted_topic_are_not_deleted() -> None:
    with fleet("4.4", cleanup_policy="compact") as made, connect_sync(made.bootstrap) as connection:
        assert produce(connection, at(0, 1), topic="u").error_code == 0
        assert deleted(connection, "u", 1) == E.POLICY_VIOLATION
        assert len(made.records("u")) == 2


def test_the_stable_offset_is_not_before_the_start() -> None:
    with fleet("4.4") as made, connect_sync(made.bootstrap) as connection:
        begin(connection)
        assert produce(connection, of(0, 0), transactional_id="x").error_code == 0
        assert produce(connection, at(0, 0)).error_code == 0
        assert deleted(connection, "t", 2) == 0
        row = fetch(connection, 2, isolation=1)
    assert (row.log_start_offset, row.last_stable_offset, values(row)) == (2, 2, [])


def test_the_largest_time_is_that_of_a_stable_record() -> None:
    with fleet("4.4") as made, connect_sync(made.bootstrap) as connection:
        begin(connection)
        assert produce(connection, of(0, 0), transactional_id="x").error_code == 0
        part = messages.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-3)
        rows = []
        for isolation in (0, 1):
            answer: Any = connection.send(messages.ListOffsetsRequest(
                replica_id=-1, isolation_level=isolation,
                topics=[messages.ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[part])]))
            rows.append(answer.topics[0].partitions[0].offset)
    assert rows == [0, -1]


def test_the_last_batch_is_cut_at_the_limit() -> None:
    """As a broker sends it; a first batch comes whole, or not at all where it is not the first of the answer."""
    one = at(0)
    with fleet("4.4") as made, connect_sync(made.bootstrap) as connection:
        for _ in range(3):
            assert produce(connection, one).error_code == produce(connection, one, topic="u").error_code == 0
        for most, of_t, of_u in ((1, len(one), 0), (len(one) + 9, len(one) + 9, 0), (9999, 3 * len(one), 3 * len(one))):
            part = messages.FetchRequest.FetchPartition(fetch_offset=0, partition_max_bytes=1 << 20)
            topics = [messages.FetchRequest.FetchTopic(topic=name, partitions=[part]) for name in "tu"]
            answer: Any = connection.send(messages.FetchRequest(
                max_wait_ms=0, max_bytes=most, isolation_level=1, topics=topics), 12)
            rows = [topic.partitions[0] for topic in answer.responses]
            assert [len(row.records) for row in rows] == [of_t, of_u]


@pytest.mark.parametrize(("release", "version", "codecs", "error"), [
    ("4.4", 9, ["zstd"], 0), ("3.9", 9, None, E.UNSUPPORTED_COMPRESSION_TYPE), ("3.9", 10, ["zstd"], 0)])
def test_zstd_for_old_consumers(release: str, version: int, codecs: Any, error: int) -> None:
    """Before 4.0 they get nothing of a topic that has this codec; what a producer has compressed so they do get."""
    with fleet(release, compression_type="zstd") as made, connect_sync(made.bootstrap) as connection:
        assert produce(connection, at(0, codec="zstd"), topic="u", version=9).error_code == 0
        assert produce(connection, at(0, codec="zstd"), version=9).error_code == 0
        row = fetch(connection, 0, topic="u", version=version)
        assert row.error_code == error
        assert codecs is None or [batch.codec for batch in kwire.read_batches(row.records)] == codecs
        row = fetch(connection, 0, version=version)
        assert [batch.codec for batch in kwire.read_batches(row.records)] == ["zstd"]


@pytest.mark.parametrize(("release", "every"), [("4.4", True), ("2.8", False)])
def test_a_deleted_acl_is_given_to_the_filters_that_match_it(release: str, every: bool) -> None:
    """To each of them by KRaft's controller, to the first one by ZooKeeper's authorizer."""
    kind = messages.DeleteAclsRequest.DeleteAclsFilter
    users = [None, "User:a", None, "User:b"]
    with fleet(release) as made, connect_sync(made.bootstrap) as connection:
        connection.send(messages.CreateAclsRequest(creations=[
            messages.CreateAclsRequest.AclCreation(
                resource_type=2, resource_name="n", principal=user, host="*", operation=3, permission_type=3)
            for user in ("User:a", "User:b")]))
        answer: Any = connection.send(messages.DeleteAclsRequest(filters=[
            kind(resource_type_filter=2, resource_name_filter=None, principal_filter=user, host_filter=None,
                 operation=1, permission_type=1) for user in users]))
        assert made.cluster.controller.log.acls == {}
    found = [{acl.principal for acl in row.matching_acls} for row in answer.filter_results]
    both = {"User:a", "User:b"}
    assert found == ([both, {"User:a"}, both, {"User:b"}] if every else [both, set(), set(), set()])
