"""What bounds a fleet: memory of events and answers, timers, clocks that are set back, what the disk refuses."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trustme

import kwire
from kwire import messages
from kwire.fleet import ApiError, Clock, Fleet, ManualClock, Proxy, fetch_sessions
from kwire.fleet import faults as fleet_faults
from kwire.fleet.apis import acls as acls_api
from kwire.fleet.apis import fetch as fetch_api
from kwire.fleet.apis import offsets as offsets_api
from kwire.fleet.apis import produce as produce_api
from kwire.fleet.clock import Timer
from kwire.net import BrokerConnectionError, BrokerTimeoutError, SyncConnection, connect, connect_sync
from kwire.schema.error_codes import ErrorCode
from tests.fleet.test_apis import batch, fetch, produce
from tests.fleet.test_faults import frames, raw

pytestmark = pytest.mark.quick
E = ErrorCode


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet("4.4", topics={"t": 1}, clock=ManualClock()) as made:
        yield made


@pytest.fixture
def connection(fleet: Fleet) -> Iterator[SyncConnection]:
    with connect_sync(fleet.bootstrap) as made:
        yield made


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until the loop has come to it."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def begin(connection: SyncConnection, name: str, timeout: int = 60_000) -> dict[str, int]:
    """A transaction of t-0; its producer id and epoch."""
    made = connection.send(messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout), 4)
    assert made.error_code == E.NONE
    topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])
    connection.send(messages.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name, v3_and_below_producer_id=made.producer_id,
        v3_and_below_producer_epoch=made.producer_epoch, v3_and_below_topics=[topic]), 3)
    return {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}


def end(connection: SyncConnection, name: str, commit: bool = True, **ours: int) -> ErrorCode:
    return ErrorCode(connection.send(
        messages.EndTxnRequest(transactional_id=name, committed=commit, **ours), 4).error_code)


def test_events_are_not_kept() -> None:
    """The rules count all the same."""
    with Fleet("4.4", keep_events=False) as fleet, Proxy(fleet.bootstrap, keep_events=False) as proxy:
        rules = [one.fault("Metadata", delay=0.001) for one in (fleet, proxy)]
        with connect_sync(proxy.bootstrap) as connection:
            connection.send(messages.MetadataRequest(topics=None))
        fleet.nodes[0].stop()
        assert fleet.events == proxy.events == [] and [rule.hits for rule in rules] == [1, 1]
    with pytest.raises(TypeError, match="keep_events must be True or False, not int"):
        Fleet("4.4", keep_events=0)  # type: ignore[arg-type]


def test_events_are_bound_by_what_clients_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_faults, "MOST_EVENT_TEXT", 100_000)
    with Fleet("4.4") as fleet:
        for _ in range(10):
            with connect_sync(fleet.bootstrap, client_id="x" * 30_000) as connection:
                connection.send(messages.MetadataRequest(topics=None))
        assert 2 <= sum(event.get("client_id") == "x" * 30_000 for event in fleet.events) <= 3


def test_an_answer_is_bound_whatever_the_client_asks_for(
    connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        produce(connection, batch("x" * 1000))
    monkeypatch.setattr(fetch_api, "MOST_BYTES", 2500)
    assert 2000 < len(fetch(connection, 0).records) <= 2500
    monkeypatch.setattr(fetch_api, "MOST_BYTES", 10)  # the first batch comes, or a consumer would stand still
    assert 1000 < len(fetch(connection, 0).records) < 1100


def test_a_shorter_transaction_is_aborted_in_its_own_time(fleet: Fleet, connection: SyncConnection) -> None:
    begin(connection, "long", 900_000)
    begin(connection, "short", 1_000)
    fleet.advance(2)
    eventually(lambda: {name: one.state for name, one in fleet.cluster.transactions.transactions.items()} == {
        "long": "Ongoing", "short": "CompleteAbort"})


def test_the_epoch_that_fences_begins_no_transaction(fleet: Fleet, connection: SyncConnection) -> None:
    """It has none after it: a transaction in it could not be aborted, nor those that are late with it."""
    ours = begin(connection, "last", 1_000)
    known = fleet.cluster.transactions.transactions
    known["last"] = replace(known["last"], epoch=(1 << 15) - 2)
    fleet.advance(2)
    eventually(lambda: known["last"].state == "CompleteAbort")
    assert known["last"].epoch == (1 << 15) - 1
    answer = connection.send(messages.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="last", v3_and_below_producer_id=ours["producer_id"],
        v3_and_below_producer_epoch=(1 << 15) - 1,
        v3_and_below_topics=[messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])]), 3)
    [topic] = answer.results_by_topic_v3_and_below
    assert topic.results_by_partition[0].partition_error_code in (E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH)
    begin(connection, "other", 1_000)
    fleet.advance(2)
    eventually(lambda: known["other"].state == "CompleteAbort")


def test_a_timer_goes_on_after_an_error(fleet: Fleet) -> None:
    rings, reported = list[int](), list[Any]()

    def ring() -> None:
        rings.append(1)
        if len(rings) == 1:
            raise KeyError("x")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        clock = ManualClock()
        timer = Timer(clock, ring)
        timer.within(1)
        while len(rings) < 2:
            await asyncio.sleep(0)
            clock.advance(1)
        timer.close()

    asyncio.run(asyncio.wait_for(main(), 20))
    assert [type(error) for error in reported] == [KeyError]


def fetched(connection: SyncConnection, session: int, epoch: int, *partitions: int) -> Any:
    request = messages.FetchRequest
    rows = [request.FetchPartition(partition=at, partition_max_bytes=1000) for at in partitions]
    return connection.send(request(
        max_wait_ms=0, session_id=session, session_epoch=epoch,
        topics=[request.FetchTopic(topic="nope", partitions=rows)] if rows else []), 12)


def test_fetch_sessions_are_bound_by_their_partitions(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_sessions, "MOST_OF_ONE", 10)
    monkeypatch.setattr(fetch_sessions, "MOST_PARTITIONS", 25)
    assert fetched(connection, 0, 0, *range(11)).session_id == 0  # answered, without a session
    first, second = (fetched(connection, 0, 0, *range(10)).session_id for _ in range(2))
    assert first and second and fetched(connection, 0, 0, *range(10)).session_id == 0
    assert fetched(connection, second, 1, 10).error_code == E.FETCH_SESSION_ID_NOT_FOUND  # it grew too large, and went
    fleet.advance(119)
    assert fetched(connection, first, 1).error_code == 0
    third = fetched(connection, 0, 0, *range(9)).session_id
    fleet.advance(2)
    assert third and fetched(connection, 0, 0, *range(10)).session_id == 0
    fleet.advance(121)
    assert fetched(connection, third, 1).error_code == 0
    assert fetched(connection, 0, 0, *range(10)).session_id  # in the place of the first one, which was idle
    assert fetched(connection, first, 2).error_code == E.FETCH_SESSION_ID_NOT_FOUND


def test_others_are_served_while_a_fetch_of_many_partitions_is_read(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = []
    inner = asyncio.sleep

    async def noted(seconds: float) -> None:
        turns.append(seconds)
        await inner(seconds)

    monkeypatch.setattr(fetch_api.asyncio, "sleep", noted)
    assert len(fetched(connection, 0, -1, *range(5000)).responses[0].partitions) == 5000
    assert turns.count(0) >= 5


def test_a_shorter_session_ends_in_its_own_time(fleet: Fleet, connection: SyncConnection) -> None:
    def expected(session: int) -> None:
        request = messages.JoinGroupRequest
        answer = connection.send(request(
            group_id="g", session_timeout_ms=session, rebalance_timeout_ms=1000, member_id="", protocol_type="consumer",
            protocols=[request.JoinGroupRequestProtocol(name="range", metadata=b"")]), 5)
        assert answer.error_code == E.MEMBER_ID_REQUIRED

    expected(1_800_000)
    expected(6_000)
    fleet.advance(7)
    eventually(lambda: len(fleet.cluster.groups.groups["g"].pending) == 1)  # type: ignore[union-attr]


def test_no_client_waits_for_more_than_an_answer_may_have(fleet: Fleet, connection: SyncConnection) -> None:
    """KafkaApis.handleFetchRequest: the clock of this fleet stands still."""
    produce(connection, batch("a" * 1000))
    request = messages.FetchRequest
    part = request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    answer = connection.send(request(
        max_wait_ms=60_000, min_bytes=(1 << 31) - 1, max_bytes=100,
        topics=[request.FetchTopic(topic="t", partitions=[part])]), 12, timeout=20)
    assert len(answer.responses[0].partitions[0].records) > 1000


def test_a_fetch_that_waits_keeps_no_records(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many clients may wait, each for another byte than there is."""
    read, answers = fetch_api._read, list[Any]()

    async def kept(*arguments: Any) -> Any:
        answers.append(await read(*arguments))
        return answers[-1]

    monkeypatch.setattr(fetch_api, "_read", kept)
    produce(connection, batch("a"))
    request = messages.FetchRequest
    part = request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    host, port = fleet.bootstrap.split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(kwire.pack_frame(kwire.encode_request(request(
            max_wait_ms=60_000, min_bytes=1000, max_bytes=1 << 20,
            topics=[request.FetchTopic(topic="t", partitions=[part])]), 12, correlation_id=1)))
        eventually(lambda: bool(answers))
        assert fleet._in_loop(lambda: list(answers[0])) == []


def test_a_clock_that_is_set_back_does_not_stop_a_fetch() -> None:
    class Stopped(Clock):
        def now(self) -> float:
            return 1_700_000_000.0

    with Fleet("4.4", topics={"t": 1}, clock=Stopped()) as fleet, connect_sync(fleet.bootstrap, timeout=20) as one:
        request = messages.FetchRequest
        answer = one.send(request(max_wait_ms=10, min_bytes=1, max_bytes=1000, topics=[request.FetchTopic(
            topic="t", partitions=[request.FetchPartition(partition=0, partition_max_bytes=1000)])]), 11)
        assert answer.responses[0].partitions[0].error_code == E.NONE


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), 10**400, 1e300])
def test_a_clock_is_moved_to_no_strange_time(fleet: Fleet, seconds: float) -> None:
    with pytest.raises((ValueError, OverflowError)):
        fleet.advance(seconds)
    assert fleet.clock.now() == 1_700_000_000.0


def test_a_manual_clock_forgets_who_waits_no_more(fleet: Fleet, connection: SyncConnection) -> None:
    assert isinstance(fleet.clock, ManualClock)
    before = len(fleet.clock._sleepers)

    async def crowd() -> None:
        for _ in range(5000):
            await fleet.clock.wait(asyncio.Event(), 0)
            waiting = asyncio.ensure_future(fleet.clock.sleep(1000))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.sleep(0)

    asyncio.run(crowd())
    assert len(fleet.clock._sleepers) < before + 1100


class Refusing:
    """The storage's transaction_changed, or the log's markers, of which some are refused."""

    def __init__(self, fleet: Fleet, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.left, self._real = 0, getattr(owner, name)
        monkeypatch.setattr(owner, name, self)

    def __call__(self, *arguments: Any) -> Any:
        if self.left:
            self.left -= 1
            raise ApiError(E.KAFKA_STORAGE_ERROR)
        return self._real(*arguments)


def test_what_the_disk_refuses_has_not_changed_a_transaction(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = Refusing(fleet, monkeypatch, fleet.cluster.storage, "transaction_changed")
    known = fleet.cluster.transactions.transactions
    refusing.left = 1
    made = connection.send(messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), 4)
    assert made.error_code == E.KAFKA_STORAGE_ERROR and not known
    ours = begin(connection, "x")
    refusing.left = 1
    before = vars(known["x"]).copy()
    assert end(connection, "x", **ours) == E.KAFKA_STORAGE_ERROR
    assert vars(known["x"]) == before
    refusing.left = 1
    refused = connection.send(messages.EndTxnRequest(transactional_id="x", committed=True, **ours), 5)
    assert refused.error_code == E.KAFKA_STORAGE_ERROR and vars(known["x"]) == before
    assert end(connection, "x", **ours) == E.NONE
    before = vars(known["x"]).copy()
    refusing.left = 1
    topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=[0])
    connection.send(messages.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x", v3_and_below_producer_id=ours["producer_id"],
        v3_and_below_producer_epoch=ours["producer_epoch"], v3_and_below_topics=[topic]), 3)
    assert vars(known["x"]) == before


def test_an_end_that_is_decided_stays_so(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once PrepareCommit is kept, no other end is taken: the markers are written when the disk lets them."""
    ours = begin(connection, "x")
    refusing = Refusing(fleet, monkeypatch, fleet.cluster.topics["t"].partitions[0].log, "append_marker")
    refusing.left = 1
    assert end(connection, "x", **ours) == E.KAFKA_STORAGE_ERROR
    assert end(connection, "x", **ours) == E.CONCURRENT_TRANSACTIONS
    assert end(connection, "x", commit=False, **ours) == E.INVALID_TXN_STATE
    assert connection.send(messages.InitProducerIdRequest(
        transactional_id="x", transaction_timeout_ms=1000), 4).error_code == E.CONCURRENT_TRANSACTIONS
    fleet.advance(2)
    eventually(lambda: fleet.cluster.transactions.transactions["x"].state == "CompleteCommit")
    assert end(connection, "x", **ours) == E.NONE


def test_clients_that_never_end_a_handshake_are_let_go() -> None:
    """A TLS listener that closes leaves no connection, also of those that have not said what they want."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(server)
    raised = []

    async def run() -> int:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
        async with Fleet("4.4", tls=server) as fleet:
            clients = []
            for said in (b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\2\0" + b"\1" * 511):
                clients.append(await asyncio.open_connection("127.0.0.1", fleet.nodes[0].port))
                clients[-1][1].write(said)
            await asyncio.sleep(0.2)
        left = len(asyncio.all_tasks()) - 1
        for _, writer in clients:
            writer.transport.abort()
        return left

    assert asyncio.run(run()) == 0 and not raised


def test_a_tls_client_that_goes_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """One that ends TLS with the last bytes of its handshake."""
    authority, server, trusting = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(trusting)
    with Fleet("4.4", tls=server) as fleet, raw(fleet) as client:
        taken, given = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = trusting.wrap_bio(taken, given, server_hostname="127.0.0.1")
        for step in (tls.do_handshake, tls.unwrap):
            while True:
                try:
                    step()
                    break
                except ssl.SSLWantReadError:
                    client.sendall(given.read())
                    data = client.recv(1 << 16)
                    taken.write(data)
                    if not data:
                        taken.write_eof()
                except ssl.SSLError:  # the server has closed the connection
                    break
    assert not caplog.records


@pytest.mark.parametrize("value", ["1_000", "٣", "9" * 5000, str(1 << 63), "", "0x10", "1e3", "\x1b[31m"])
def test_a_number_is_one_of_java(connection: SyncConnection, value: str) -> None:
    request = messages.CreateTopicsRequest
    answer = connection.send(request(topics=[request.CreatableTopic(name="n", num_partitions=1, replication_factor=1,
        configs=[request.CreatableTopicConfig(name="retention.ms", value=value)])]), 7)  # fmt: skip
    assert answer.topics[0].error_code == E.INVALID_CONFIG


def test_a_password_in_a_config_is_not_shown(connection: SyncConnection) -> None:
    """DescribeConfigs says of a password that there is one."""
    request, asked = messages.IncrementalAlterConfigsRequest, messages.DescribeConfigsRequest
    changed = connection.send(request(resources=[request.AlterConfigsResource(
        resource_type=4, resource_name="1", configs=[
            request.AlterableConfig(name="ssl.key.password", config_operation=0, value="s3cret")])]), 1)
    assert changed.responses[0].error_code == E.NONE
    answer = connection.send(asked(include_synonyms=True, resources=[
        asked.DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)]), 4)
    (found,) = answer.results[0].configs
    assert (found.name, found.value, found.is_sensitive) == ("ssl.key.password", None, True)
    assert "s3cret" not in str(answer)


@pytest.mark.parametrize(("keywords", "error"), [
    ({"nodes": 10**9}, ValueError), ({"nodes": 0}, ValueError), ({"tls": True}, TypeError), ({"port": -1}, ValueError),
    ({"topics": {"t": 10**12}}, ValueError), ({"topics": {"t": "3"}}, TypeError), ({"topics": ["t"]}, TypeError),
    ({"levels": {"metadata.version": 0}}, ValueError), ({"levels": {"metadata.version": float("nan")}}, TypeError),
    ({"clock": 1.5}, TypeError), ({"nodes": "2"}, TypeError), ({"roles": [1]}, TypeError), ({"data": 5}, TypeError),
    ({"sasl": {"u": None}}, TypeError), ({"seed": "x"}, TypeError),
])  # fmt: skip
def test_wrong_arguments(keywords: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(keywords))):
        Fleet("4.4", **keywords)


def test_clients_do_not_write_to_internal_topics(fleet: Fleet, connection: SyncConnection) -> None:
    """What is there would be read at the next start as what a coordinator wrote."""
    request = messages.ProduceRequest
    fleet._in_loop(lambda: fleet.cluster.create_topic("__consumer_offsets", 1))
    answer = connection.send(request(acks=-1, topic_data=[request.TopicProduceData(
        name="__consumer_offsets", partition_data=[
            request.PartitionProduceData(index=0, records=batch("x"))])]), 12)
    assert answer.responses[0].partition_responses[0].error_code == E.INVALID_TOPIC_EXCEPTION
    assert not fleet.records("__consumer_offsets")


def test_what_is_asked_for_twice_is_answered_once(fleet: Fleet, connection: SyncConnection) -> None:
    """Else a small request would have an answer of any size: each of these rows is as long as what it describes."""
    configs, topics = messages.DescribeConfigsRequest, messages.MetadataRequest
    resource = configs.DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None)
    assert len(connection.send(configs(resources=[resource] * 9), 4).results) == 1
    assert len(connection.send(topics(topics=[topics.MetadataRequestTopic(name="t")] * 9), 12).topics) == 1
    assert len(connection.send(messages.DescribeGroupsRequest(groups=["g"] * 9), 5).groups) == 1
    assert len(connection.send(messages.ConsumerGroupDescribeRequest(group_ids=["g"] * 9), 1).groups) == 1
    assert len(connection.send(
        messages.DescribeTransactionsRequest(transactional_ids=["x"] * 9), 0).transaction_states) == 1
    groups = messages.OffsetFetchRequest
    whole, part = (groups.OffsetFetchRequestGroup(group_id="g", topics=topics) for topics in (None, []))
    assert len(connection.send(groups(groups=[part, whole, whole, part]), 8).groups) == 3
    indexes = groups.OffsetFetchRequestTopics(name="t", partition_indexes=[0] * 9)
    of_group = groups.OffsetFetchRequestGroup(group_id="g", topics=[indexes] * 2)
    answer = connection.send(groups(groups=[of_group] * 2), 8)
    assert [len(topic.partitions) for group in answer.groups for topic in group.topics] == [1, 0, 0, 0]
    rows = connection.send(groups(group_id="g", topics=[
        groups.OffsetFetchRequestTopic(name="t", partition_indexes=[0] * 9)] * 2), 7).topics
    assert [len(topic.partitions) for topic in rows] == [1, 0]
    assert len(connection.send(messages.FindCoordinatorRequest(coordinator_keys=["g"] * 9), 4).coordinators) == 1
    quorum = messages.DescribeQuorumRequest
    parts = [quorum.PartitionData(partition_index=0)] * 9
    (topic,) = connection.send(quorum(topics=[quorum.TopicData(topic_name="t", partitions=parts)]), 2).topics
    assert len(topic.partitions) == 1


def test_of_two_rows_of_a_transaction_the_last_one_counts(fleet: Fleet, connection: SyncConnection) -> None:
    """Each would copy, and write, all partitions that have joined before."""
    request, ours = messages.AddPartitionsToTxnRequest, begin(connection, "x")
    connection.send(messages.CreateTopicsRequest(topics=[messages.CreateTopicsRequest.CreatableTopic(
        name="u", num_partitions=9, replication_factor=1)]), 7)
    row = request.AddPartitionsToTxnTransaction
    (result,) = connection.send(request(transactions=[
        row(transactional_id="x", **ours, topics=[request.AddPartitionsToTxnTopic(name="u", partitions=[at])])
        for at in range(9)]), 5).results_by_transaction
    assert [(one.partition_index, one.partition_error_code)
            for topic in result.topic_results for one in topic.results_by_partition] == [(8, 0)]
    assert fleet.cluster.transactions.transactions["x"].participants == {("t", 0), ("u", 8)}


def test_a_name_of_any_length_is_not_in_the_text_of_each_row(connection: SyncConnection) -> None:
    """A name comes once in a question, and would come in each row of the answer."""
    name = "n" * 30_000
    move, elect, producers = (
        messages.AlterPartitionReassignmentsRequest, messages.ElectLeadersRequest, messages.DescribeProducersRequest)
    moves = [move.ReassignablePartition(partition_index=at, replicas=[]) for at in range(9)]
    (moved,) = connection.send(move(topics=[move.ReassignableTopic(name=name, partitions=moves)]), 0).responses
    (elected,) = connection.send(elect(topic_partitions=[
        elect.TopicPartitions(topic=name, partitions=list(range(9)))]), 2).replica_election_results
    (described,) = connection.send(
        producers(topics=[producers.TopicRequest(name=name, partition_indexes=list(range(9)))]), 0).topics
    for rows in (moved.partitions, elected.partition_result, described.partitions):
        assert len(rows) == 9 and all(0 < len(row.error_message) < 400 for row in rows)


def test_a_partition_twice_is_refused(connection: SyncConnection) -> None:
    """ListOffsetsRequest.duplicatePartitions."""
    offsets, producers = messages.ListOffsetsRequest, messages.DescribeProducersRequest
    asked = offsets.ListOffsetsTopic(name="t", partitions=[
        offsets.ListOffsetsPartition(partition_index=0, timestamp=at) for at in (-1, -2)])
    answer = connection.send(offsets(replica_id=-1, topics=[asked]), 7)
    assert [one.error_code for one in answer.topics[0].partitions] == [E.INVALID_REQUEST]
    found = connection.send(producers(topics=[producers.TopicRequest(name="t", partition_indexes=[0, 0])]), 0)
    assert [one.error_code for one in found.topics[0].partitions] == [E.NONE, E.INVALID_REQUEST]


@pytest.mark.parametrize("rows", [[50], [1] * 50, [25, 25]], ids=["in a row", "of its own", "both"])
def test_many_offsets_of_a_partition_are_answered_once(rows: list[int]) -> None:
    """ListOffsets 0 names the segments of a partition, which may be thousands."""
    request = messages.ListOffsetsRequest
    part = request.ListOffsetsPartition(partition_index=0, timestamp=-1, max_num_offsets=1 << 30)
    other = request.ListOffsetsPartition(partition_index=1, timestamp=-1, max_num_offsets=1)
    with Fleet("3.9", topics={"t": 2}) as fleet, connect_sync(fleet.bootstrap) as connection:
        topics = [request.ListOffsetsTopic(name="t", partitions=[part] * count) for count in rows]
        topics[-1].partitions = [*topics[-1].partitions, other]
        answer = connection.send(request(replica_id=-1, topics=topics), 0)
        found = [(one.partition_index, one.error_code, list(one.old_style_offsets))
                 for topic in answer.topics for one in topic.partitions]
        assert found == [(0, E.NONE, [0]), (1, E.NONE, [0])]


def altered(connection: SyncConnection, *values: str, operation: int = 2) -> list[tuple[int, str | None]]:
    """What comes of these changes to a config of a broker in one request."""
    request = messages.IncrementalAlterConfigsRequest
    answer = connection.send(request(resources=[request.AlterConfigsResource(
        resource_type=4, resource_name="1", configs=[
            request.AlterableConfig(name="x", config_operation=operation, value=value)]) for value in values]), 1)
    return [(one.error_code, one.error_message) for one in answer.responses]


def test_a_config_grows_no_longer_than_a_record_has_it(fleet: Fleet, connection: SyncConnection) -> None:
    """A value of Kafka's has at most 32,767 bytes, also one that grows piece by piece."""
    piece = ",".join(f"{number:05}" for number in range(4000))
    assert altered(connection, piece) == [(E.NONE, None)]
    assert altered(connection, piece) == [(E.NONE, None)]  # nothing new
    ((code, text),) = altered(connection, piece.replace("0", "a"))
    assert code == E.INVALID_CONFIG and "exceeds the maximum value size of 32767 bytes" in str(text)
    assert fleet.cluster.configs_of(4, "1") == {"x": piece}
    assert altered(connection, piece, operation=3) == [(E.NONE, None)]
    assert fleet.cluster.configs_of(4, "1") == {"x": ""}


def test_a_resource_twice_is_refused(connection: SyncConnection) -> None:
    expected = (E.INVALID_REQUEST, "Each resource must appear at most once.")
    assert altered(connection, "a", "b") == [expected, expected]


@pytest.mark.parametrize("release", ["1.0", "4.4"])
def test_who_deletes_what_coordinators_keep_deletes_it(release: str, tmp_path: Path) -> None:
    """In memory as in the folder, so that the next start knows no more and no less."""
    commit, delete = messages.OffsetCommitRequest, messages.DeleteTopicsRequest
    rows = [commit.OffsetCommitRequestTopic(name="t", partitions=[
        commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)])]
    with Fleet(release, topics={"t": 1}, data=tmp_path) as fleet, connect_sync(fleet.bootstrap) as connection:
        answer = connection.send(commit(group_id="g", generation_id_or_member_epoch=-1, topics=rows), 2)
        assert answer.topics[0].partitions[0].error_code == E.NONE and fleet.cluster.groups.groups["g"].offsets
        begin(connection, "x") if release == "4.4" else None
        names = ["__consumer_offsets", "__transaction_state"][: 2 if release == "4.4" else 1]
        deleted = connection.send(delete(topic_names=names, timeout_ms=1000), 1)
        assert [one.error_code for one in deleted.responses] == [E.NONE] * len(names)
        assert not fleet.cluster.groups.groups["g"].offsets and not fleet.cluster.transactions.transactions


def test_internal_topics_keep_their_records_and_partitions(connection: SyncConnection, fleet: Fleet) -> None:
    """By their number of partitions each group has its own: those added later would not be found again."""
    fleet._in_loop(lambda: fleet.cluster.create_topic("__consumer_offsets", 2))
    records, more = messages.DeleteRecordsRequest, messages.CreatePartitionsRequest
    answer = connection.send(records(timeout_ms=1, topics=[records.DeleteRecordsTopic(
        name="__consumer_offsets", partitions=[records.DeleteRecordsPartition(partition_index=0, offset=0)])]), 2)
    assert answer.topics[0].partitions[0].error_code == E.INVALID_TOPIC_EXCEPTION
    added = connection.send(more(timeout_ms=1, topics=[
        more.CreatePartitionsTopic(name="__consumer_offsets", count=9, assignments=None)]), 3)
    assert added.results[0].error_code == E.INVALID_REQUEST


def test_a_client_that_goes_before_a_late_answer_keeps_nothing(fleet: Fleet) -> None:
    """A rule may delay an answer for years."""
    fleet.fault("Metadata", delay=2e9)
    with connect_sync(fleet.bootstrap, timeout=0.3) as connection, pytest.raises(BrokerTimeoutError):
        connection.send(messages.MetadataRequest(topics=None), 8)
    eventually(lambda: not fleet.nodes[0]._clients._connections)


def test_answers_that_are_all_to_come_later_come_in_pairs(fleet: Fleet) -> None:
    fleet.fault("Metadata", reorder=True)
    requests = [kwire.pack_frame(kwire.encode_request(messages.MetadataRequest(topics=[]), 8, correlation_id=at))
                for at in range(4)]
    with raw(fleet) as connection:
        connection.sendall(b"".join(requests))
        assert [int.from_bytes(frame[:4], "big") for frame in frames(connection, 4)] == [1, 0, 3, 2]


class Short:
    """A call that has no memory the first time."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self.work, self.times = work, 0

    def __call__(self, *arguments: Any) -> Any:
        self.times += 1
        if self.times == 1:
            raise MemoryError
        return self.work(*arguments)


def test_what_is_in_the_metadata_log_is_in_the_fleet(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if memory is short for a moment when a record is written."""
    log, request = fleet.cluster.controller.log, messages.CreateTopicsRequest
    monkeypatch.setattr(log, "_replay", Short(log._replay))
    answer = connection.send(request(timeout_ms=1, topics=[
        request.CreatableTopic(name="n", num_partitions=2, replication_factor=1)]), 7)
    assert answer.topics[0].error_code == E.NONE
    assert [len(one.partitions) for one in log.topics.values() if one.name == "n"] == [2]


def test_a_topic_that_the_log_has_no_memory_for_is_not_there(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, request = fleet.cluster.controller.log, messages.CreateTopicsRequest
    asked = request(timeout_ms=1, topics=[request.CreatableTopic(name="n", num_partitions=2, replication_factor=1)])
    monkeypatch.setattr(log, "append", Short(log.append))
    with pytest.raises(BrokerConnectionError):
        connection.send(asked, 7)
    assert "n" not in fleet.cluster.topics
    assert [one["reason"] for one in fleet.events if one["event"] == "failed"] == ["MemoryError: "]
    assert [one.error_code for one in connection.send(asked, 7).topics] == [E.NONE]


def test_a_transaction_that_ends_without_memory_is_completed_later(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = begin(connection, "x")
    groups = fleet.cluster.groups
    monkeypatch.setattr(groups, "end_transaction", Short(groups.end_transaction))
    with pytest.raises(BrokerConnectionError):
        end(connection, "x", **ours)
    fleet.advance(2)
    eventually(lambda: fleet.cluster.transactions.transactions["x"].state == "CompleteCommit")


def test_members_that_are_late_together_cost_one_assignment(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat = messages.ConsumerGroupHeartbeatRequest
    for number in range(5):
        connection.send(beat(
            group_id="g", member_id=f"m{number}", member_epoch=0, rebalance_timeout_ms=1000,
            subscribed_topic_names=["t"], topic_partitions=[]), 1)
    group: Any = fleet.cluster.groups.groups["g"]
    before = group.epoch
    fleet.advance(60)
    eventually(lambda: not group.members)
    assert group.epoch == before + 1


def test_a_start_passes_over_what_an_admin_wrote(tmp_path: Path) -> None:
    """The client id __admin_client may write to internal topics, as with Kafka, and anything."""
    request = messages.ProduceRequest
    rows = [(1, key, b"\xff") for key in (b"", b"\0\1", b"\x7f\xff", b"\0\1\0\1g\0\1t\0\0\0\0")]
    for _ in range(2):
        with Fleet("4.4", data=tmp_path) as fleet, connect_sync(
                fleet.bootstrap, client_id="__admin_client") as connection:
            connection.send(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            answer = connection.send(request(acks=-1, topic_data=[request.TopicProduceData(
                name="__consumer_offsets", partition_data=[
                    request.PartitionProduceData(index=0, records=kwire.build_batch(rows))])]), 12)
            assert answer.responses[0].partition_responses[0].error_code == E.NONE
            assert not fleet.cluster.groups.groups


def acl(name: str, **other: Any) -> Any:
    known = {"resource_type": 2, "resource_pattern_type": 3, "operation": 3, "permission_type": 3}
    return messages.CreateAclsRequest.AclCreation(**known | other, resource_name=name, principal="User:a", host="*")


@pytest.mark.parametrize("name", ["resource_type", "resource_pattern_type", "operation", "permission_type"])
def test_an_acl_of_the_kind_unknown_ends_the_connection(fleet: Fleet, name: str) -> None:
    """As in Kafka, whose request checks for this code."""
    with connect_sync(fleet.bootstrap) as connection, pytest.raises(BrokerConnectionError):
        connection.send(messages.CreateAclsRequest(creations=[acl("n", **{name: 0})]), 3)
    assert not fleet.cluster.controller.log.acls


@pytest.mark.parametrize(("code", "problem", "of_filter"), [
    ({"resource_type": 8}, "resourceType", "pattern"), ({"resource_type": -1}, "resourceType", "pattern"),
    ({"resource_pattern_type": 5}, "patternType", "pattern"), ({"operation": 16}, "operation", "entry"),
    ({"permission_type": 4, "operation": 99}, "operation", "entry"),
    ({"permission_type": 4}, "permissionType", "entry"),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("release", ["4.4", "2.8"])
def test_acl_codes_that_no_enumeration_has(release: str, code: dict[str, int], problem: str, of_filter: str) -> None:
    """They are UNKNOWN (AclOperation.fromCode): no ACL is made of them, and none is found by them."""
    version = 3 if release == "4.4" else 2
    one = acl("n", **code)
    found = {"resource_type_filter": one.resource_type, "pattern_type_filter": one.resource_pattern_type,
             "operation": one.operation, "permission_type": one.permission_type}
    of_one = messages.DeleteAclsRequest.DeleteAclsFilter
    with Fleet(release) as fleet, connect_sync(fleet.bootstrap) as connection:
        made = connection.send(messages.CreateAclsRequest(creations=[one, acl("m")]), version).results
        expected = f"Invalid {problem} UNKNOWN" if release == "4.4" else "Failed to create ACL"
        assert [(row.error_code, row.error_message) for row in made] == [(E.INVALID_REQUEST, expected), (0, "")]
        answer = connection.send(messages.DescribeAclsRequest(**found), version)
        assert (answer.error_code, answer.resources) == (0, [])
        rows = connection.send(messages.DeleteAclsRequest(filters=[of_one(**found)]), version).filter_results
        refused = (E.INVALID_REQUEST, f"Unknown {of_filter}Filter.") if release == "4.4" else (0, None)
        assert [(row.error_code, row.error_message, row.matching_acls) for row in rows] == [(*refused, [])]


def test_many_filters_and_many_acls_let_others_be_answered(
    fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = messages.DeleteAclsRequest
    connection.send(messages.CreateAclsRequest(creations=[acl(f"n{at}") for at in range(2000)]), 3)
    filters = [request.DeleteAclsFilter(
        resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, principal_filter=f"User:{at}",
        host_filter=None, operation=1, permission_type=1) for at in range(400)]
    turns = 0

    async def turn(seconds: float) -> None:
        nonlocal turns
        turns += 1
        await asyncio.sleep(seconds)

    monkeypatch.setattr(acls_api, "asyncio", SimpleNamespace(sleep=turn))
    assert not any(one.error_code for one in connection.send(request(filters=filters), 3).filter_results)
    assert turns >= 2000 * 400 // 12_000  # others are let in after each 10,000 comparisons, and those of one filter
    assert len(fleet.cluster.controller.log.acls) == 2000


def turns_of(module: Any, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The turns in which this module lets others be answered, as they come."""
    turns = list[float]()

    async def turn(seconds: float) -> None:
        turns.append(seconds)
        await asyncio.sleep(seconds)

    monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=turn, Event=asyncio.Event))
    return turns


def produce_request(records: bytes, *partitions: int, acks: int = 1) -> Any:
    request = messages.ProduceRequest
    rows = [request.PartitionProduceData(index=at, records=records) for at in partitions]
    return request(acks=acks, timeout_ms=1000, topic_data=[
        request.TopicProduceData(name="t", partition_data=rows[:1]),
        request.TopicProduceData(name="t", partition_data=rows[1:])])


def test_others_are_answered_between_batches_that_are_decompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 2 kB may have 60 MiB of records."""
    with Fleet("3.9", topics={"t": 3}) as fleet, connect_sync(fleet.bootstrap) as connection:
        turns = turns_of(produce_api, monkeypatch)
        records = kwire.build_batch([(at, None, b"x") for at in (1000, 3000)], codec="gzip")
        answer = connection.send(produce_request(records, 0, 1, 2, 0), 9)
        rows = [row for topic in answer.responses for row in topic.partition_responses]
        assert [(row.index, row.base_offset, row.error_code) for row in rows] == [
            (0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 2, 0)]
        assert len(turns) == 3
        turns = turns_of(fetch_api, monkeypatch)
        row = fetch(connection, 0, version=3)
        assert [record.value for one in kwire.read_batches(row.records) for record in one] == [b"x"] * 4
        assert len(turns) == 1
        turns, request = turns_of(offsets_api, monkeypatch), messages.ListOffsetsRequest
        asked = [request.ListOffsetsPartition(partition_index=at, timestamp=when)
                 for at, when in enumerate((2000, 2000, -1))]
        answer = connection.send(request(topics=[request.ListOffsetsTopic(name="t", partitions=asked)]), 5)
        assert [one.offset for one in answer.topics[0].partitions] == [1, 1, 2]
        assert len(turns) == 2


def test_what_a_client_sent_before_it_went_is_appended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer with acks 0 may go at once."""
    gone = threading.Event()

    async def turn(seconds: float) -> None:
        while not gone.is_set():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)

    monkeypatch.setattr(produce_api, "asyncio", SimpleNamespace(sleep=turn))
    with Fleet("4.4", topics={"t": 2}) as fleet:
        host, port = fleet.bootstrap.split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(kwire.pack_frame(kwire.encode_request(
                produce_request(batch("a"), 0, 1, acks=0), 9, correlation_id=1)))
            eventually(lambda: len(fleet.records("t", 0)) == 1)
        gone.set()
        eventually(lambda: len(fleet.records("t", 1)) == 1)


def test_others_are_answered_between_the_requests_that_a_client_sends_at_once(
    fleet: Fleet, connection: SyncConnection
) -> None:
    request = kwire.pack_frame(kwire.encode_request(
        messages.MetadataRequest(topics=None), 12, correlation_id=1, client_id="many"))
    host, port = fleet.bootstrap.split(":")
    with socket.create_connection((host, int(port))) as many:
        many.sendall(request * 2000)
        assert many.recv(1)
        connection.send(messages.ListGroupsRequest(), 0)
        many.shutdown(socket.SHUT_WR)
        while many.recv(1 << 20):
            pass
    asked = [event["api"] for event in fleet.events if "api" in event]
    assert asked.count("Metadata") >= 2000 and "Metadata" in asked[asked.index("ListGroups"):]


def test_without_a_controller_no_acl_is_made_or_deleted() -> None:
    """As no config or topic: nobody is there to write it."""
    kept, more = acl("kept"), acl("more")
    of_any = messages.DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, principal_filter=None,
        host_filter=None, operation=1, permission_type=1)
    with Fleet("4.4", 2, roles=["broker", "controller"]) as fleet, connect_sync(fleet.bootstrap) as connection:
        connection.send(messages.CreateAclsRequest(creations=[kept]), 3)
        fleet.nodes[1].stop()
        for answer in (
            connection.send(messages.CreateAclsRequest(creations=[more]), 3).results,
            connection.send(messages.DeleteAclsRequest(filters=[of_any]), 3).filter_results,
        ):
            assert [row.error_code for row in answer] == [E.NOT_CONTROLLER]
        assert len(fleet.cluster.controller.log.acls) == 1


def test_of_two_requests_that_delete_an_acl_one_says_so(fleet: Fleet, connection: SyncConnection) -> None:
    request = messages.DeleteAclsRequest
    connection.send(messages.CreateAclsRequest(creations=[acl(f"n{at}") for at in range(2000)]), 3)
    filters = [request.DeleteAclsFilter(
        resource_type_filter=1, resource_name_filter=name, pattern_type_filter=1, principal_filter=None,
        host_filter=None, operation=1, permission_type=1) for name in ["n7", *["none"] * 200]]

    async def both() -> list[int]:
        async with connect(fleet.bootstrap) as one, connect(fleet.bootstrap) as other:
            answers = await asyncio.gather(*(client.send(request(filters=filters), 3) for client in (one, other)))
        return [len(answer.filter_results[0].matching_acls) for answer in answers]

    assert sorted(asyncio.run(both())) == [0, 1]


MOST = 10_000  # partitions of a request


def test_partitions_that_one_request_makes_are_counted_together(fleet: Fleet, connection: SyncConnection) -> None:
    create, grow, ask = messages.CreateTopicsRequest, messages.CreatePartitionsRequest, messages.MetadataRequest
    answer = connection.send(create(timeout_ms=1, validate_only=True, topics=[
        create.CreatableTopic(name=f"n{at}", num_partitions=-1, replication_factor=-1) for at in range(MOST + 1)]), 7)
    assert {one.error_code for one in answer.topics} == {E.POLICY_VIOLATION}
    fleet.cluster.create_topic("other", 1)
    answer = connection.send(grow(timeout_ms=1, validate_only=True, topics=[
        grow.CreatePartitionsTopic(name=name, count=6001, assignments=None) for name in ("t", "other")]), 3)
    assert {one.error_code for one in answer.results} == {E.POLICY_VIOLATION}
    fleet.cluster.default_partitions = 6000
    answer = connection.send(ask(allow_auto_topic_creation=True, topics=[
        ask.MetadataRequestTopic(name=name) for name in ("a", "b")]), 8)
    assert sorted(one.error_code for one in answer.topics) == [E.NONE, E.POLICY_VIOLATION]


CROWD = """
import socket, sys
clients = [socket.create_connection((sys.argv[1], int(sys.argv[2]))) for _ in range(200)]
print("there", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("before", [nullcontext, lambda one: Proxy(one.bootstrap)], ids=["fleet", "proxy"])
def test_more_clients_than_files_leave_others_their_answers(before: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Also those that come when the crowd has gone."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Fleet("4.4") as fleet, before(fleet) as place:
        host, port = place.bootstrap.split(":")
        with connect_sync(place.bootstrap, timeout=20) as connection, subprocess.Popen(
                [sys.executable, "-c", CROWD, host, port], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as crowd:
            resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 20, limits[1]))
            try:
                assert crowd.stdout is not None and crowd.stdout.readline()
                connection.send(messages.ApiVersionsRequest(), 0)
            finally:
                crowd.kill()
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        with connect_sync(place.bootstrap, timeout=20) as connection:
            connection.send(messages.ApiVersionsRequest(), 0)
    assert len(caplog.records) < 100
