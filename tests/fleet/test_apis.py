"""The APIs, request by request: what Kafka answers, its errors included."""

from __future__ import annotations

import socket
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import kwire
from kwire import messages, schema
from kwire.fleet import ApiError, Fleet, ManualClock
from kwire.fleet.apis import HANDLERS
from kwire.fleet.cluster import partition_for
from kwire.net import SyncConnection, connect_sync
from kwire.schema.error_codes import ErrorCode

pytestmark = pytest.mark.quick
E = ErrorCode


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet("4.4", topics={"t": 2}, clock=ManualClock()) as fleet:
        yield fleet


@pytest.fixture
def connection(fleet: Fleet) -> Iterator[SyncConnection]:
    with connect_sync(fleet.bootstrap) as connection:
        yield connection


def produce(
    connection: Any, batch: bytes, topic: Any = "t", partition: int = 0, version: int = 12,
    timeout: float | None = None, **more: Any,
) -> Any:
    request = messages.ProduceRequest(acks=-1, timeout_ms=1000, **more)
    row = messages.ProduceRequest.TopicProduceData(
        partition_data=[messages.ProduceRequest.PartitionProduceData(index=partition, records=batch)])
    if version >= 13:
        row.topic_id = topic
    else:
        row.name = topic
    request.topic_data = [row]
    return connection.send(request, version, timeout=timeout).responses[0].partition_responses[0]


def fetch(
    connection: Any, offset: int, topic: str = "t", partition: int = 0, version: int = 12, isolation: int = 0,
    **more: Any,
) -> Any:
    request = messages.FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, isolation_level=isolation)
    part = messages.FetchRequest.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20, **more)
    request.topics = [messages.FetchRequest.FetchTopic(topic=topic, partitions=[part])]
    return connection.send(request, version).responses[0].partitions[0]


def values(row: Any) -> list[bytes | None]:
    return [record.value for batch in kwire.read_batches(row.records or b"") for record in batch]


def batch(*texts: str, **more: Any) -> bytes:
    return kwire.build_batch([(1000 + at, None, text.encode()) for at, text in enumerate(texts)], **more)


def test_a_client_that_looks_for_another_broker_begins_again(fleet: Fleet, connection: SyncConnection) -> None:
    """As brokers and controllers of 4.4.0 answer ApiVersions 5."""
    own, node = fleet.cluster.cluster_id, fleet.nodes[0].id
    with connect_sync(fleet.nodes[0].controller_address) as controller:
        for cluster, number, of_broker, of_controller in (
            (None, -1, 0, 0), (own, node, 0, 0), ("other", node, E.REBOOTSTRAP_REQUIRED, 0),
            (own, 2, E.REBOOTSTRAP_REQUIRED, 0), ("", node, E.REBOOTSTRAP_REQUIRED, 0),
            (own, -5, E.REBOOTSTRAP_REQUIRED, 0), (None, 2, E.INVALID_REQUEST, E.INVALID_REQUEST),
            ("other", -1, E.INVALID_REQUEST, E.INVALID_REQUEST),
        ):  # fmt: skip
            request = messages.ApiVersionsRequest(
                client_software_name="a", client_software_version="1", cluster_id=cluster, node_id=number)
            for one, expected in ((connection, of_broker), (controller, of_controller)):
                answer = one.send(request, 5)
                assert (answer.error_code, bool(answer.api_keys)) == (expected, not expected), (cluster, number)


def test_produce_and_fetch(fleet: Fleet, connection: SyncConnection) -> None:
    assert produce(connection, batch("a", "b")).base_offset == 0
    assert produce(connection, batch("c")).base_offset == 2
    row = fetch(connection, 0)
    assert values(row) == [b"a", b"b", b"c"]
    assert (row.high_watermark, row.last_stable_offset, row.log_start_offset) == (3, 3, 0)
    assert values(fetch(connection, 2)) == [b"c"]
    assert values(fetch(connection, 3)) == []  # the end is no error, and nothing
    assert fetch(connection, 4).error_code == E.OFFSET_OUT_OF_RANGE
    assert fetch(connection, 0, partition=7).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(connection, batch("a"), topic="none").error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(connection, batch("a"), topic=uuid.UUID(int=5), version=13).error_code == E.UNKNOWN_TOPIC_ID
    assert produce(connection, batch("a"), topic=fleet.cluster.topics["t"].id, version=13).base_offset == 3


def test_bad_batches_are_refused(connection: SyncConnection) -> None:
    whole = bytearray(batch("a"))
    whole[-1] ^= 1
    assert produce(connection, bytes(whole)).error_code == E.CORRUPT_MESSAGE
    assert produce(connection, b"").error_code == E.INVALID_RECORD
    assert produce(connection, batch("a") + batch("b")).error_code == E.INVALID_RECORD
    assert produce(connection, batch("a")[:40]).error_code == E.INVALID_RECORD  # no whole batch
    assert produce(connection, batch("a" * 1_100_000)).error_code == E.MESSAGE_TOO_LARGE
    marker = kwire.build_batch([(1, b"\0\0\0\1", b"\0\0\0\0\0\0")], control=True, producer_id=1, producer_epoch=0)
    assert produce(connection, marker).error_code == E.INVALID_RECORD
    assert values(fetch(connection, 0)) == []


def test_idempotence(fleet: Fleet, connection: SyncConnection) -> None:
    producer: dict[str, int] = {"producer_id": 7, "producer_epoch": 1}
    assert produce(connection, batch("a", "b", base_sequence=0, **producer)).base_offset == 0
    assert produce(connection, batch("c", base_sequence=2, **producer)).base_offset == 2
    assert produce(connection, batch("a", "b", base_sequence=0, **producer)).base_offset == 0  # sent again
    assert produce(connection, batch("x", base_sequence=9, **producer)).error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    old = {"producer_id": 7, "producer_epoch": 0}
    assert produce(connection, batch("x", base_sequence=0, **old)).error_code == E.INVALID_PRODUCER_EPOCH
    new = {"producer_id": 7, "producer_epoch": 2}
    assert produce(connection, batch("x", base_sequence=4, **new)).error_code == E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(connection, batch("d", base_sequence=0, **new)).base_offset == 3
    assert [record.value for record in fleet.records("t", 0)] == [b"a", b"b", b"c", b"d"]


def test_sequences_wrap(connection: SyncConnection) -> None:
    last = (1 << 31) - 1
    producer = {"producer_id": 7, "producer_epoch": 1}
    assert produce(connection, batch("a", "b", base_sequence=last, **producer)).base_offset == 0  # last, 0
    assert produce(connection, batch("c", base_sequence=1, **producer)).base_offset == 2


def list_offsets(connection: SyncConnection, timestamp: int, isolation: int = 0) -> tuple[int, int, int]:
    part = messages.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request: Any = messages.ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[
        messages.ListOffsetsRequest.ListOffsetsTopic(name="t", partitions=[part])])
    answer: Any = connection.send(request)
    row = answer.topics[0].partitions[0]
    return row.error_code, row.offset, row.timestamp


def test_list_offsets_and_delete_records(connection: SyncConnection) -> None:
    produce(connection, batch("a", "b", "c"))  # at 1000, 1001, 1002
    assert list_offsets(connection, -1) == (0, 3, -1)
    assert list_offsets(connection, -2) == (0, 0, -1)
    assert list_offsets(connection, -3) == (0, 2, 1002)
    assert list_offsets(connection, 1001) == (0, 1, 1001)
    assert list_offsets(connection, 1003) == (0, -1, -1)
    part = messages.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=2)
    request: Any = messages.DeleteRecordsRequest(timeout_ms=1000, topics=[
        messages.DeleteRecordsRequest.DeleteRecordsTopic(name="t", partitions=[part])])
    answer: Any = connection.send(request)
    assert answer.topics[0].partitions[0].low_watermark == 2
    assert fetch(connection, 1).error_code == E.OFFSET_OUT_OF_RANGE
    assert list_offsets(connection, -2) == (0, 2, -1)


def test_topics(fleet: Fleet, connection: SyncConnection) -> None:
    def create(name: str, **more: Any) -> Any:
        topic = messages.CreateTopicsRequest.CreatableTopic(
            name=name, **{"num_partitions": 3, "replication_factor": 1, **more})
        answer: Any = connection.send(messages.CreateTopicsRequest(topics=[topic]))
        return answer.topics[0]

    made = create("made")
    assert (made.error_code, made.num_partitions, made.topic_id) == (0, 3, fleet.cluster.topics["made"].id)
    assert create("made").error_code == E.TOPIC_ALREADY_EXISTS
    assert create("no/name").error_code == E.INVALID_TOPIC_EXCEPTION
    assert create("many", replication_factor=2).error_code == E.INVALID_REPLICATION_FACTOR
    assert create("none", num_partitions=0).error_code == E.INVALID_PARTITIONS
    config = messages.CreateTopicsRequest.CreatableTopicConfig
    assert create("c", configs=[config(name="retention", value="1")]).error_code == E.INVALID_CONFIG
    assert create("c", configs=[config(name="retention.ms", value="x")]).error_code == E.INVALID_CONFIG
    assert create("c", configs=[config(name="retention.ms", value="1")]).error_code == 0
    delete: Any = messages.DeleteTopicsRequest(
        topics=[messages.DeleteTopicsRequest.DeleteTopicState(name="made")], timeout_ms=1000)
    assert connection.send(delete).responses[0].error_code == 0
    assert connection.send(delete).responses[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        fleet.records("made")


def transactional(epoch: int, sequence: int, *texts: str) -> bytes:
    return batch(*texts, producer_id=0, producer_epoch=epoch, base_sequence=sequence, transactional=True)


def end(connection: SyncConnection, epoch: int, committed: bool, version: int = 5) -> Any:
    request: Any = messages.EndTxnRequest(
        transactional_id="x", producer_id=0, producer_epoch=epoch, committed=committed)
    return connection.send(request, version)


def init(connection: SyncConnection, transactional_id: str | None = "x") -> Any:
    return connection.send(messages.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000))


def test_transactions(fleet: Fleet, connection: SyncConnection) -> None:
    first = init(connection)
    assert (first.producer_id, first.producer_epoch) == (0, 0)
    assert produce(connection, transactional(0, 0, "a"), transactional_id="x").base_offset == 0
    assert list_offsets(connection, -1, isolation=1)[1] == 0  # the last stable offset waits
    assert values(fetch(connection, 0, isolation=1)) == []
    assert end(connection, 0, True).producer_epoch == 1  # KIP-890: the next transaction's epoch
    assert produce(connection, transactional(1, 0, "b"), transactional_id="x").base_offset == 2
    assert end(connection, 1, False).producer_epoch == 2
    row = fetch(connection, 0, isolation=1)
    assert [(one.producer_id, one.first_offset) for one in row.aborted_transactions] == [(0, 2)]
    assert row.last_stable_offset == 4
    second = init(connection)
    assert second.producer_epoch == 3
    assert end(connection, 1, True).error_code == E.PRODUCER_FENCED
    assert produce(connection, transactional(1, 1, "z"), transactional_id="x").error_code in (
        E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH)


def test_a_request_without_partitions_begins_a_transaction(connection: SyncConnection) -> None:
    init(connection)
    added: Any = connection.send(messages.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x", v3_and_below_producer_id=0, v3_and_below_producer_epoch=0,
        v3_and_below_topics=[]), 3)
    assert added.results_by_topic_v3_and_below == []
    assert end(connection, 0, True, version=3).error_code == 0


@pytest.mark.parametrize(("version", "error"), [(10, E.INVALID_TXN_STATE), (11, E.TRANSACTION_ABORTABLE)])
def test_a_transaction_without_its_partition_is_refused(connection: SyncConnection, version: int, error: int) -> None:
    init(connection)
    refused = produce(connection, transactional(0, 0, "a"), version=version, transactional_id="x")
    assert refused.error_code == error


def test_a_late_transaction_is_aborted_by_the_clock(fleet: Fleet, connection: SyncConnection) -> None:
    init(connection)
    produce(connection, transactional(0, 0, "a"), transactional_id="x")
    fleet.advance(61)
    assert list_offsets(connection, -1, isolation=1)[1] == 2
    assert end(connection, 0, True, version=3).error_code == E.PRODUCER_FENCED
    assert end(connection, 0, True).error_code == E.INVALID_TXN_STATE  # as brokers of 4.0.1 and 4.4.0
    aborted = end(connection, 0, False)
    assert (aborted.error_code, aborted.producer_epoch) == (0, 1)


def test_end_txn_5_needs_its_level() -> None:
    request = messages.EndTxnRequest(transactional_id="x", producer_id=0, producer_epoch=0, committed=True)
    codes = {}
    for level in (1, 2):
        with Fleet("4.4", levels={"transaction.version": level}) as fleet, connect_sync(fleet.bootstrap) as connection:
            init(connection)
            host, port = fleet.bootstrap.split(":")
            with socket.create_connection((host, int(port)), timeout=5) as plain:
                plain.sendall(kwire.pack_frame(kwire.encode_request(request, 5)))
                frame = plain.recv(1000)[4:]
            codes[level] = kwire.decode_response(frame, api="EndTxn", version=5).message.error_code
    assert codes == {1: E.UNSUPPORTED_VERSION, 2: E.INVALID_TXN_STATE}  # nothing is ongoing


def test_fetch_sessions(connection: SyncConnection) -> None:
    produce(connection, batch("a"))

    def ask(session: int, epoch: int, offsets: dict[int, int]) -> Any:
        parts = [
            messages.FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in offsets.items()]
        request: Any = messages.FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_id=session, session_epoch=epoch,
            topics=[messages.FetchRequest.FetchTopic(topic="t", partitions=parts)] if parts else [])
        return connection.send(request, 12)

    full = ask(0, 0, {0: 0, 1: 0})
    assert full.session_id > 0 and [len(topic.partitions) for topic in full.responses] == [2]
    news = ask(full.session_id, 1, {0: 1})
    assert news.responses == [] or not news.responses
    produce(connection, batch("b"), partition=1)
    (topic,) = ask(full.session_id, 2, {}).responses
    assert [row.partition_index for row in topic.partitions] == [1] and values(topic.partitions[0]) == [b"b"]
    assert ask(full.session_id, 9, {}).error_code == E.INVALID_FETCH_SESSION_EPOCH
    assert ask(999, 1, {}).error_code == E.FETCH_SESSION_ID_NOT_FOUND


def test_an_api_without_a_handler_answers_an_error(connection: SyncConnection) -> None:
    answer: Any = connection.send(messages.DescribeDelegationTokenRequest(owners=None))
    assert answer.error_code == E.UNSUPPORTED_VERSION


def test_leaders_move_when_a_node_stops() -> None:
    with Fleet("4.4", 2) as fleet:
        fleet.cluster.create_topic("t", 1, 2)
        partition = fleet.cluster.partition("t", 0)
        assert (partition.leader, partition.leader_epoch) == (1, 0)
        fleet.nodes[0].stop()
        assert (partition.leader, partition.leader_epoch) == (2, 1)
        with connect_sync(fleet.nodes[1].address) as connection:
            assert produce(connection, batch("a")).base_offset == 0
            assert fetch(connection, 0, current_leader_epoch=0).error_code == E.FENCED_LEADER_EPOCH
            assert fetch(connection, 0, current_leader_epoch=2).error_code == E.UNKNOWN_LEADER_EPOCH
        address = fleet.nodes[0].address
        fleet.nodes[0].start()
        assert fleet.nodes[0].address == address and fleet.nodes[0].alive
        with connect_sync(address) as connection:
            assert produce(connection, batch("a")).error_code == E.NOT_LEADER_OR_FOLLOWER


def test_a_fleet_that_cannot_begin_leaves_nothing() -> None:
    fleet = Fleet("4.4", topics={"no/name": 1})
    with pytest.raises(ApiError, match="INVALID_TOPIC"), fleet:
        pass
    assert not fleet.nodes[0].alive


def test_a_request_for_more_partitions_than_memory_has(fleet: Fleet, connection: SyncConnection) -> None:
    """Kafka's limit (ReplicationControlManager.MAX_PARTITIONS_PER_BATCH), of all topics of a request together."""
    topic, more = messages.CreateTopicsRequest.CreatableTopic, messages.CreatePartitionsRequest.CreatePartitionsTopic
    for counts in ([(1 << 31) - 1], [5_001, 5_000]):
        answer = connection.send(messages.CreateTopicsRequest(topics=[
            topic(name=f"n{at}", num_partitions=count, replication_factor=1) for at, count in enumerate(counts)]))
        assert {row.error_code for row in answer.topics} == {E.POLICY_VIOLATION}
    grown = connection.send(messages.CreatePartitionsRequest(topics=[more(name="t", count=(1 << 31) - 1)]))
    assert grown.results[0].error_code == E.POLICY_VIOLATION
    assert set(fleet.cluster.topics) == {"t"} and len(fleet.cluster.topics["t"].partitions) == 2


def test_replicas_of_new_partitions(fleet: Fleet, connection: SyncConnection) -> None:
    row, place = messages.CreatePartitionsRequest.CreatePartitionsTopic, (
        messages.CreatePartitionsRequest.CreatePartitionsAssignment)
    for wrong in ([], [7], [1, 1]):
        answer = connection.send(messages.CreatePartitionsRequest(topics=[
            row(name="t", count=4, assignments=[place(broker_ids=[1]), place(broker_ids=wrong)])]))
        assert answer.results[0].error_code == E.INVALID_REPLICA_ASSIGNMENT
    assert len(fleet.cluster.topics["t"].partitions) == 2


def test_a_handler_that_fails(fleet: Fleet, connection: SyncConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    """KafkaApis.handleError: the client gets UNKNOWN_SERVER_ERROR, the connection stays."""
    monkeypatch.setitem(HANDLERS, schema.api("ListGroups").key, lambda call: 1 // 0)
    assert connection.send(messages.ListGroupsRequest()).error_code == E.UNKNOWN_SERVER_ERROR
    assert connection.send(messages.MetadataRequest(topics=[])).controller_id == 1
    failed = [event for event in fleet.events if event["event"] == "failed"]
    assert [(event["api"], event["reason"][:17]) for event in failed] == [("ListGroups", "ZeroDivisionError")]


def test_an_answer_too_long_to_write(fleet: Fleet, connection: SyncConnection) -> None:
    """Its text has the name, which alone fits."""
    group = connection.send(messages.DescribeGroupsRequest(groups=["g" * 32_767]), 6).groups[0]
    assert (group.error_code, group.group_id) == (E.UNKNOWN_SERVER_ERROR, "g" * 32_767)


def test_a_client_that_goes_while_it_waits(fleet: Fleet, connection: SyncConnection) -> None:
    """The connection and the fetch end with it, however long the fetch may wait."""
    request = messages.FetchRequest(max_wait_ms=(1 << 31) - 1, min_bytes=1, max_bytes=1, topics=[
        messages.FetchRequest.FetchTopic(topic="t", partitions=[messages.FetchRequest.FetchPartition()])])
    log, host, port = fleet.cluster.partition("t", 0).log, *fleet.bootstrap.split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(kwire.pack_frame(kwire.encode_request(request, 11)))
        while not log.watchers:
            pass
    for _ in range(2000):
        if not log.watchers and len(fleet.nodes[0]._clients._connections) == 1:
            return
        time.sleep(0.01)
    raise AssertionError("the fetch goes on")


def test_a_coordinator_of_before_writes_no_marker(fleet: Fleet, connection: SyncConnection) -> None:
    """ProducerAppendInfo.checkCoordinatorEpoch, after the producer's own epoch."""
    kind = messages.WriteTxnMarkersRequest

    def write(coordinator: int, epoch: int = 0, producer: int = 7) -> int:
        answer = connection.send(kind(markers=[kind.WritableTxnMarker(
            producer_id=producer, producer_epoch=epoch, transaction_result=False, coordinator_epoch=coordinator,
            topics=[kind.WritableTxnMarkerTopic(name="t", partition_indexes=[0])])]), 1)
        return int(answer.markers[0].topics[0].partitions[0].error_code)

    log = fleet.cluster.partition("t", 0).log
    assert [write(3, epoch=1), write(3, epoch=1), write(4, epoch=1)] == [0, 0, 0]
    assert [write(3, epoch=1), write(3, epoch=2)] == [E.TRANSACTION_COORDINATOR_FENCED] * 2
    assert write(3, epoch=0) == E.INVALID_PRODUCER_EPOCH
    assert write(0, producer=8) == 0  # of each producer
    assert log.end_offset == 4
    assert log.producers.producers[7].coordinator_epoch == 4


def test_a_marker_ends_what_waits_in_a_group(fleet: Fleet, connection: SyncConnection) -> None:
    """In memory, where no partition has the offsets."""
    kind, offsets = messages.WriteTxnMarkersRequest, messages.TxnOffsetCommitRequest
    fleet._in_loop(lambda: fleet.cluster.create_topic("__consumer_offsets", 50))
    init(connection)
    ours: dict[str, Any] = {"transactional_id": "x", "producer_id": 0, "producer_epoch": 0, "group_id": "g"}
    connection.send(messages.AddOffsetsToTxnRequest(**ours), 3)
    row = offsets.TxnOffsetCommitRequestPartition(partition_index=1, committed_offset=7)
    connection.send(offsets(**ours, topics=[offsets.TxnOffsetCommitRequestTopic(name="t", partitions=[row])]), 3)
    group = fleet.cluster.groups.groups["g"]
    assert group.pending_partitions() == {("t", 1)} and not group.offsets
    connection.send(kind(markers=[kind.WritableTxnMarker(
        producer_id=0, producer_epoch=0, transaction_result=True, topics=[
            kind.WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=[partition_for("g")])])]), 1)
    assert not group.pending_partitions() and group.offsets["t", 1].offset == 7


def test_a_timeout_is_described_to_the_millisecond(connection: SyncConnection) -> None:
    """1.001 seconds are a little less than 1001 milliseconds."""
    for timeout in (1001, 1009, 4035, 60_000):
        name = f"x{timeout}"
        connection.send(messages.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout), 4)
        answer = connection.send(messages.DescribeTransactionsRequest(transactional_ids=[name]), 0)
        assert answer.transaction_states[0].transaction_timeout_ms == timeout
