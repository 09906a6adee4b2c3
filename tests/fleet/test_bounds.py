"""What bounds a fleet: memory of events and answers, timers, clocks that are set back, what the disk refuses."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trustme

from kwire import messages
from kwire.fleet import ApiError, Clock, Fleet, ManualClock
from kwire.fleet import faults as fleet_faults
from kwire.fleet.apis import fetch as fetch_api
from kwire.net import SyncConnection, connect_sync
from kwire.schema.error_codes import ErrorCode
from tests.fleet.test_apis import batch, fetch, produce

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
