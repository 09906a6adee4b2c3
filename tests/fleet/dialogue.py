"""The same requests to a fleet and to a real broker: of every API and version, valid and not.

In their answers what differs by chance (ids, ports, times) is made equal.
"""

from __future__ import annotations

import base64
import re
import socket
import time
import uuid
from collections.abc import Callable, Generator
from typing import Any

import kwire
from kwire import messages
from kwire.errors import KwireError
from kwire.fleet.releases import offer
from kwire_c.crc32c import crc32c

Step = tuple[str, Any, int]
Has = dict[str, range]
Dialogue = Callable[[str], Generator[Step, Any, None]]  # of a release
OWN_IDS = range(500, 1000)  # of producers that no broker gave
NOW = 1_750_000_000_000  # milliseconds; timestamps of records are before it, those of brokers after it
EXEMPT = {"throttleTimeMs", "clusterId", "sessionId", "logDir", "totalBytes", "usableBytes"}
TEXT = "errorMessage"
UNORDERED = {
    "topics", "apiKeys", "resources", "acls", "matchingAcls", "results", "groups", "supportedFeatures",
    "finalizedFeatures", "configs", "responses",
    "partitions", "entries", "entity", "values", "credentialInfos", "activeProducers", "members", "topicPartitions",
    "subscribedTopicNames",
}
NODES = {"nodeId", "leaderId", "replicaNodes", "isrNodes", "controllerId", "brokerId"}
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MEMBER = re.compile(r"[\w-]{22}")  # an id that a coordinator gave
M = messages


class Client:
    """One plain connection, opened again after the broker closed it."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self.address = host, int(port)
        self._open()

    def _open(self) -> None:
        self.socket = socket.create_connection(self.address, timeout=30)
        self.frames = kwire.FrameReader()

    def ask(self, message: Any, version: int) -> Any:
        """The response, "closed" if the broker closed the connection."""
        request = kwire.encode_request(message, version, correlation_id=1, client_id="c")
        header = kwire.decode_request_header(request)
        try:
            self.socket.sendall(kwire.pack_frame(request))
            while True:
                data = self.socket.recv(1 << 20)
                if not data:
                    raise ConnectionError
                for frame in self.frames.feed(data):
                    return kwire.decode_response(frame, header, lenient=True)
        except ConnectionError:
            self.socket.close()
            self._open()
            return "closed"


class Normal:
    """Makes what differs by chance equal: ids are numbered in the order in which they come."""

    def __init__(self, node_id: int, port: int) -> None:
        self.node_id, self.port = node_id, port
        self.exempt = EXEMPT
        self.names: dict[str, str] = {}

    def of(self, response: Any) -> Any:
        if isinstance(response, str):
            return response
        return self._value("", kwire.to_json(response.message, response.version))

    def _named(self, kind: str, value: Any) -> str:
        return self.names.setdefault(f"{kind} {value}", f"{kind} {sum(n.startswith(kind) for n in self.names)}")

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._value(name, inner) for name, inner in value.items() if name not in self.exempt}
        if isinstance(value, list):
            rows = [self._value(key, inner) for inner in (_merged(value) if key == "responses" else value)]
            return sorted(rows, key=repr) if key in UNORDERED else rows
        if key == "records" and isinstance(value, str):
            return _rows_of(base64.b64decode(value))
        if key == "port":
            return 0 if value == self.port else value
        if key in NODES:
            return "node" if value == self.node_id else value
        if key == "topicId" and value != "AAAAAAAAAAAAAAAAAAAAAA":
            return self._named("topic", value)
        if key == "producerId" and value >= 0 and value not in OWN_IDS:
            return self._named("producer", value)
        if key == "timestamp" and value > NOW:
            return "time"
        if key in ("finalizedFeaturesEpoch", "logAppendTimeMs", "lastTimestamp", "transactionStartTimeMs"):
            return value if value < 0 else "time"
        if key == "memberId" and isinstance(value, str) and len(set(value)) > 5 and _MEMBER.fullmatch(value):
            return self._named("member", value)
        if isinstance(value, str):
            return _UUID.sub(lambda found: self._named("uuid", found[0]), value)
        return value


def _merged(topics: list[Any]) -> list[Any]:
    """Fetched topics, each once: those of sessions come in the order in which partitions had data."""
    found: dict[Any, Any] = {}
    for topic in topics:
        if "partitions" not in topic:
            return topics
        known = found.setdefault((topic.get("topic"), topic.get("topicId")), {**topic, "partitions": []})
        known["partitions"].extend(topic["partitions"])
    return list(found.values())


def _rows_of(data: bytes) -> Any:
    """What is in batches: compressed and converted ones may differ in their bytes."""
    return [
        (batch.magic, batch.codec, batch.base_offset, batch.last_offset, batch.base_timestamp, batch.max_timestamp,
         batch.attributes, batch.producer_epoch, batch.base_sequence, batch.partition_leader_epoch,
         [(record.offset, record.timestamp, record.key, record.value, record.headers) for record in batch])
        for batch in kwire.read_batches(data)]


def play(
    address: str, release: str, node_id: int, texts: bool = False, dialogue: Dialogue | None = None
) -> list[tuple[str, Any]]:
    """(what was asked, the normal form of the answer), of all steps. texts: with the texts of errors."""
    client, normal = Client(address), Normal(node_id, int(address.split(":")[1]))
    talk, answers = (dialogue or steps)(release), []
    step = next(talk)
    while True:
        label, message, version = step
        without = isinstance(message, M.UpdateFeaturesRequest) or not texts
        normal.exempt = {*EXEMPT, TEXT} if without else EXEMPT
        try:
            response = client.ask(message, version)
        except KwireError as error:
            response = f"{type(error).__name__}"
        if label.startswith("wait"):
            time.sleep(0.1)
        else:
            answers.append((f"{label} v{version}", normal.of(response)))
        try:
            step = talk.send(None if isinstance(response, str) else response.message)
        except StopIteration:
            return answers


def steps(release: str) -> Generator[Step, Any, None]:
    """The requests, each in every version of the release."""
    has = versions_of(release)
    yield from _topics(has)
    yield from _records(has)
    yield from _transactions(has)
    yield from _groups(has)
    yield from _admin(has)
    yield from _refused(has)
    yield from _refused_configs(has)
    yield from _emptied(has)
    yield from _replicas(has)
    yield from _quotas(has)
    if offer(release).is_kraft:  # with ZooKeeper a fleet keeps none
        yield from _users(has)


def versions_of(release: str) -> Has:
    """The versions of each API that a broker of a release has."""
    ranges = offer(release).usable
    key = {row: kwire.schema.api(row).key for row in NAMES}
    return {name: range(ranges[key[name]][0], ranges[key[name]][1] + 1) if key[name] in ranges else range(0)
            for name in NAMES}


NAMES = (
    "ApiVersions", "Metadata", "DescribeCluster", "CreateTopics", "DeleteTopics", "CreatePartitions", "DeleteRecords",
    "Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat",
    "LeaveGroup", "OffsetCommit", "OffsetFetch", "OffsetDelete", "ListGroups", "DescribeGroups", "DeleteGroups",
    "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn", "DescribeTopicPartitions",
    "ListTransactions", "DescribeTransactions", "DescribeProducers", "DescribeConfigs", "AlterConfigs",
    "IncrementalAlterConfigs", "SaslHandshake", "UpdateFeatures",
    "DescribeAcls", "CreateAcls", "DeleteAcls", "GetTelemetrySubscriptions", "PushTelemetry", "ConsumerGroupDescribe",
    "ElectLeaders", "AlterPartitionReassignments", "ListPartitionReassignments", "DescribeLogDirs",
    "DescribeClientQuotas", "AlterClientQuotas", "DescribeUserScramCredentials", "AlterUserScramCredentials",
    "ConsumerGroupHeartbeat", "WriteTxnMarkers",
)


def create(name: str, version: int, partitions: int = 2, replication: int = 1, configs: Any = (), **more: Any) -> Any:
    config = M.CreateTopicsRequest.CreatableTopicConfig
    request = M.CreateTopicsRequest(timeout_ms=10_000, topics=[M.CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replication,
        configs=[config(name=key, value=value) for key, value in configs])])
    if version >= 1:
        request.validate_only = more.get("validate_only", False)
    return request


def _topics(has: Has) -> Generator[Step, Any, None]:
    for version in has["CreateTopics"]:
        yield "create", create(f"t{version}", version), version
        yield "create again", create(f"t{version}", version), version
        yield "create an invalid name", create("no/name", version), version
        yield "create with too many replicas", create("many", version, replication=9), version
        yield "create with no partitions", create("none", version, partitions=0), version
        yield "create with default partitions", create(f"d{version}", version, partitions=-1), version
        yield "create with default replicas", create(f"e{version}", version, replication=-1), version
        yield "create with an unknown config", create("c", version, configs=[("no.such", "1")]), version
        yield "create with a bad config", create("c", version, configs=[("retention.ms", "x")]), version
        if version >= 1:
            yield "validate", create("only", version, validate_only=True), version
    newest = has["CreateTopics"][-1]
    yield "create", create("kept", newest, 2), newest
    yield from id_of_topic(has, "kept")  # until it is there
    ids = {}
    for version in has["Metadata"]:
        row = M.MetadataRequest.MetadataRequestTopic
        more = {"allow_auto_topic_creation": False} if version >= 4 else {}
        answer = yield "metadata of one", M.MetadataRequest(topics=[row(name="kept")], **more), version
        if version >= 10:
            ids["kept"] = answer.topics[0].topic_id
        if version >= 8:
            asked = {"include_topic_authorized_operations": True}
            if version <= 10:
                asked["include_cluster_authorized_operations"] = True
            yield "metadata with operations", M.MetadataRequest(topics=[row(name="kept")], **more, **asked), version
        if version >= 4:
            yield "metadata of an unknown one", M.MetadataRequest(topics=[row(name="nobody")], **more), version
            yield "metadata of an invalid one", M.MetadataRequest(topics=[row(name="no/name")], **more), version
        if version >= 12:
            yield "metadata by id", M.MetadataRequest(topics=[row(name=None, topic_id=ids["kept"])], **more), version
            yield "metadata by an unknown id", M.MetadataRequest(
                topics=[row(name=None, topic_id=uuid.UUID(int=7))], **more), version
        if version:
            yield "metadata of none", M.MetadataRequest(topics=[], **more), version
    for version in has["CreatePartitions"]:
        row = M.CreatePartitionsRequest.CreatePartitionsTopic
        for label, name, count in (
            ("more", f"t{newest}", 3 + version), ("as many", f"t{newest}", 3 + version), ("fewer", f"t{newest}", 1),
            ("of an unknown topic", "nobody", 5),
        ):
            yield f"partitions: {label}", M.CreatePartitionsRequest(
                timeout_ms=10_000, topics=[row(name=name, count=count, assignments=None)]), version
    for version in has["DeleteTopics"]:
        for name in (f"t{version if version < len(has['CreateTopics']) else 0}", "nobody"):
            if version >= 6:
                request = M.DeleteTopicsRequest(
                    timeout_ms=10_000, topics=[M.DeleteTopicsRequest.DeleteTopicState(name=name)])
            else:
                request = M.DeleteTopicsRequest(timeout_ms=10_000, topic_names=[name])
            yield f"delete {name}", request, version
    for version in has["DescribeTopicPartitions"]:
        for names in (["kept"], ["nobody"], ["kept", "nobody"]):
            yield f"describe {names}", M.DescribeTopicPartitionsRequest(
                topics=[M.DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names]), version


def records_of(*texts: str, **more: Any) -> bytes:
    return kwire.build_batch(
        [(1_700_000_000_000 + at, b"k", text.encode()) for at, text in enumerate(texts)], **more)


def _broken(codec: str) -> bytes:
    """A batch whose checksum holds, and whose records cannot be read."""
    batch = bytearray(records_of("a" * 100, "b" * 100, codec=codec))
    batch[61:-1] = b"\x7f" * (len(batch) - 62)
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


def produce(records: bytes, version: int, topic: str, topic_id: Any, partition: int = 0, **more: Any) -> Any:
    row = M.ProduceRequest.TopicProduceData(partition_data=[
        M.ProduceRequest.PartitionProduceData(index=partition, records=records)])
    if version >= 13:
        row.topic_id = topic_id
    else:
        row.name = topic
    return M.ProduceRequest(acks=more.pop("acks", -1), timeout_ms=10_000, topic_data=[row], **more)


def id_of_topic(has: Has, name: str) -> Generator[Step, Any, Any]:
    version = has["Metadata"][-1]
    row = M.MetadataRequest.MetadataRequestTopic(name=name)
    for _ in range(100):
        answer = yield "wait for a topic", M.MetadataRequest(topics=[row]), version
        if answer.topics[0].error_code == 0:
            break
    answer = yield "metadata", M.MetadataRequest(topics=[row]), version
    return answer.topics[0].topic_id


def _records(has: Has) -> Generator[Step, Any, None]:
    topic_id = yield from id_of_topic(has, "kept")
    newest = has["CreateTopics"][-1]
    yield "create", create("compact", newest, 1, configs=[("cleanup.policy", "compact")]), newest
    compact_id = yield from id_of_topic(has, "compact")
    for version in has["Produce"]:
        magic = 2 if version >= 3 else 1 if version == 2 else 0
        good = records_of("a", "b", magic=magic)
        yield "produce", produce(good, version, "kept", topic_id), version
        packed = records_of("a" * 100, codec="gzip", magic=magic)
        yield "produce gzip", produce(packed, version, "kept", topic_id), version
        bad = bytearray(good)
        bad[-1] ^= 1
        yield "produce damaged", produce(bytes(bad), version, "kept", topic_id), version
        yield "produce to no partition", produce(good, version, "kept", topic_id, 9), version
        yield "produce to no topic", produce(good, version, "no/body", uuid.UUID(int=9)), version
        if version >= 3:
            for codec in ("none", "gzip", "snappy", "lz4") + (("zstd",) if version >= 7 else ()):
                yield f"produce broken {codec}", produce(_broken(codec), version, "compact", compact_id), version
            yield "produce without keys", produce(
                kwire.build_batch([(1_700_000_000_000, None, b"a")]), version, "compact", compact_id), version
            numbered = {"producer_id": 77, "producer_epoch": version}
            for label, sequence in (("first", 0), ("again", 0), ("gap", 7), ("next", 1)):
                records = records_of(label, base_sequence=sequence, **numbered)
                yield f"produce {label}", produce(records, version, "kept", topic_id, 1), version
            old = records_of("old", base_sequence=0, producer_id=77, producer_epoch=0)
            yield "produce with an old epoch", produce(old, version, "kept", topic_id, 1), version
    for version in has["Fetch"]:
        for offset, partition in ((0, 0), (3, 0), (99, 0), (0, 1), (0, 9)):
            part = M.FetchRequest.FetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20, log_start_offset=-1)
            row = M.FetchRequest.FetchTopic(partitions=[part])
            if version >= 13:
                row.topic_id = topic_id
            else:
                row.topic = "kept"
            yield f"fetch {partition} at {offset}", M.FetchRequest(
                max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, topics=[row],
                isolation_level=version % 2 if version >= 4 else 0), version
    for version in has["ListOffsets"]:
        for timestamp in (-1, -2, -3, -4, 1_700_000_000_001, 1_800_000_000_000):
            if (timestamp == -3 and version < 7) or (timestamp == -4 and version < 8):
                continue
            part = M.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            missing = M.ListOffsetsRequest.ListOffsetsPartition(partition_index=9, timestamp=timestamp)
            yield f"offsets at {timestamp}", M.ListOffsetsRequest(replica_id=-1, topics=[
                M.ListOffsetsRequest.ListOffsetsTopic(name="kept", partitions=[part, missing])]), version
    for version in has["OffsetForLeaderEpoch"]:
        for epoch in (0, 1, 5, -1):
            part = M.OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
            yield f"end of epoch {epoch}", M.OffsetForLeaderEpochRequest(
                **({"replica_id": -1} if version >= 3 else {}), topics=[
                    M.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic="kept", partitions=[part])]), version
    for version in has["DeleteRecords"]:
        for offset, partition in ((1 + version, 0), (999, 0), (0, 9), (0, 0)):
            part = M.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition, offset=offset)
            yield f"delete records to {offset} of {partition}", M.DeleteRecordsRequest(timeout_ms=10_000, topics=[
                M.DeleteRecordsRequest.DeleteRecordsTopic(name="kept", partitions=[part])]), version
    for version in has["DescribeProducers"]:
        row = M.DescribeProducersRequest.TopicRequest(name="kept", partition_indexes=[1, 9])
        yield "producers", M.DescribeProducersRequest(topics=[row]), version


SUBSCRIPTION = b"\0\1\0\0\0\1\0\4kept\0\0\0\0\0\0\0\0"
LOADING = (14, 15, 16)  # what a coordinator says until its partition of the internal topic is there


def wait_for_groups(has: Has, *names: str) -> Generator[Step, Any, None]:
    version = min(has["DescribeGroups"][-1], 4)
    while True:
        answer = yield "wait", M.DescribeGroupsRequest(groups=list(names)), version
        if not any(row.error_code in LOADING for row in answer.groups):
            return


def wait_for_coordinator(has: Has, key: str, kind: int) -> Generator[Step, Any, None]:
    newest = has["FindCoordinator"][-1]
    while newest >= 1 or not kind:
        more = {"key_type": kind} if newest >= 1 else {}
        wanted = {"coordinator_keys": [key]} if newest >= 4 else {"key": key}
        answer = yield "wait", M.FindCoordinatorRequest(**wanted, **more), newest
        if not (answer.coordinators[0] if newest >= 4 else answer).error_code:
            break


def _find(has: Has, key: str, kind: int) -> Generator[Step, Any, None]:
    yield from wait_for_coordinator(has, key, kind)
    for version in has["FindCoordinator"]:
        if kind and version < 1:
            continue
        more = {"key_type": kind} if version >= 1 else {}
        request = (
            M.FindCoordinatorRequest(coordinator_keys=[key], **more) if version >= 4 else
            M.FindCoordinatorRequest(key=key, **more))
        yield "coordinator", request, version


def _transactions(has: Has) -> Generator[Step, Any, None]:
    yield from _find(has, "x", 1)
    yield from _find(has, "g", 0)
    yield from wait_for_groups(has, "g")
    while has["InitProducerId"]:
        answer = yield "wait", M.InitProducerIdRequest(
            transactional_id="x", transaction_timeout_ms=60_000), has["InitProducerId"][0]
        if answer.error_code not in LOADING:
            break
    own = (-1, -1)
    for version in has["InitProducerId"]:
        for name, timeout in (("", 1000), ("x", 0), ("x", 10_000_000)):
            yield f"init {name!r} {timeout}", M.InitProducerIdRequest(
                transactional_id=name, transaction_timeout_ms=timeout), version
        answer = yield "init x", M.InitProducerIdRequest(
            transactional_id="x", transaction_timeout_ms=60_000), version
        own = (answer.producer_id, answer.producer_epoch)
        if version >= 3:
            again = {"producer_id": own[0], "producer_epoch": own[1]}
            answer = yield "init x again", M.InitProducerIdRequest(
                transactional_id="x", transaction_timeout_ms=60_000, **again), version
            own = (answer.producer_id, answer.producer_epoch)
            old = {"producer_id": own[0], "producer_epoch": 0}
            yield "init x with an old epoch", M.InitProducerIdRequest(
                transactional_id="x", transaction_timeout_ms=60_000, **old), version
    for version in has["AddPartitionsToTxn"]:
        if version >= 4:
            break  # between brokers
        for producer, epoch, partition in ((*own, 9), (own[0] + 1000, own[1], 0), (own[0], own[1] + 9, 0), (*own, 0)):
            yield f"add partition {partition}", M.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="x", v3_and_below_producer_id=producer,
                v3_and_below_producer_epoch=epoch, v3_and_below_topics=[
                    M.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="kept", partitions=[partition])]), version
    for version in has["AddOffsetsToTxn"]:
        yield "add offsets", M.AddOffsetsToTxnRequest(
            transactional_id="x", producer_id=own[0], producer_epoch=own[1], group_id="g"), version
    for version in has["TxnOffsetCommit"]:
        if version >= 5:
            break  # transaction.version 2
        part = M.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=5, committed_metadata="m")
        yield "txn offsets", M.TxnOffsetCommitRequest(
            transactional_id="x", group_id="g", producer_id=own[0], producer_epoch=own[1], topics=[
                M.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name="kept", partitions=[part])]), version
    for version in has["DescribeTransactions"]:
        yield "describe transactions", M.DescribeTransactionsRequest(transactional_ids=["x", "nobody"]), version
    for version in has["ListTransactions"]:
        yield "list transactions", M.ListTransactionsRequest(), version
        yield "list transactions in a state", M.ListTransactionsRequest(state_filters=["Empty", "Bad"]), version
    for version in has["EndTxn"]:
        if version >= 5:
            break
        yield "end with a new epoch", M.EndTxnRequest(
            transactional_id="x", producer_id=own[0], producer_epoch=own[1] + 5, committed=True), version
        yield "end of nobody", M.EndTxnRequest(
            transactional_id="nobody", producer_id=own[0], producer_epoch=own[1], committed=True), version
    if has["EndTxn"]:
        yield "end", M.EndTxnRequest(
            transactional_id="x", producer_id=own[0], producer_epoch=own[1], committed=True), 1


def _groups(has: Has) -> Generator[Step, Any, None]:
    yield from _find(has, "g", 0)
    yield from wait_for_groups(has, "nobody", *(f"g{version}" for version in has["JoinGroup"]))
    for version in has["JoinGroup"]:
        member, generation = "", -1
        group = f"g{version}"
        rebalance = {"rebalance_timeout_ms": 10_000} if version >= 1 else {}

        def join(member_id: str, session: int = 10_000, group: str = group, kind: str = "consumer",
                 rebalance: Any = rebalance) -> Any:
            protocol = M.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
            return M.JoinGroupRequest(
                group_id=group, session_timeout_ms=session, member_id=member_id, protocol_type=kind,
                protocols=[protocol], **rebalance)

        yield "join no group", join("", group=""), version
        yield "join with a short session", join("", session=10), version
        yield "join with an unknown member", join("nobody"), version
        answer = yield "join", join(""), version
        if answer.error_code == 79:
            member = answer.member_id
            answer = yield "join with the id", join(member), version
        member, generation = answer.member_id, answer.generation_id
        sync = min(version, has["SyncGroup"][-1])
        assignment = M.SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=b"\0\0\0\0\0\0\0\0\0\0")
        named = {"protocol_type": "consumer", "protocol_name": "range"} if sync >= 5 else {}
        yield "sync as a stranger", M.SyncGroupRequest(
            group_id=group, generation_id=generation, member_id="nobody", **named), sync
        yield "sync in another generation", M.SyncGroupRequest(
            group_id=group, generation_id=generation + 1, member_id=member, **named), sync
        if sync >= 5:
            yield "sync without a protocol", M.SyncGroupRequest(
                group_id=group, generation_id=generation, member_id=member, assignments=[assignment]), sync
        yield "sync", M.SyncGroupRequest(
            group_id=group, generation_id=generation, member_id=member, assignments=[assignment], **named), sync
        beat = min(version, has["Heartbeat"][-1])
        for label, at, who in (("", 0, member), (" late", 1, member), (" strange", 0, "nobody")):
            yield f"heartbeat{label}", M.HeartbeatRequest(
                group_id=group, generation_id=generation + at, member_id=who), beat
        for commit in has["OffsetCommit"]:
            if commit >= 10:
                break
            for label, at, who in (("", 0, member), (" late", 1, member), (" alone", -1 - generation, "")):
                more = {"generation_id_or_member_epoch": generation + at, "member_id": who} if commit >= 1 else {}
                part = M.OffsetCommitRequest.OffsetCommitRequestPartition
                parts = [part(partition_index=index, committed_offset=5, committed_metadata="m") for index in (0, 9)]
                yield f"commit{label}", M.OffsetCommitRequest(group_id=group, topics=[
                    M.OffsetCommitRequest.OffsetCommitRequestTopic(name="kept", partitions=parts)], **more), commit
        for describe in has["DescribeGroups"]:
            yield "describe", M.DescribeGroupsRequest(groups=[group, "nobody"]), describe
            if describe >= 3:
                yield "describe with operations", M.DescribeGroupsRequest(
                    groups=[group, "nobody"], include_authorized_operations=True), describe
        for delete in has["DeleteGroups"]:
            yield "delete a group that is not empty", M.DeleteGroupsRequest(groups_names=[group, "nobody"]), delete
        leave = min(version, has["LeaveGroup"][-1])
        for who in ("nobody", member):
            request = (
                M.LeaveGroupRequest(group_id=group, members=[M.LeaveGroupRequest.MemberIdentity(member_id=who)])
                if leave >= 3 else M.LeaveGroupRequest(group_id=group, member_id=who))
            yield "leave", request, leave
    group = f"g{has['JoinGroup'][-1]}"
    for version in has["OffsetFetch"]:
        if version >= 10:
            break
        for name, indexes in (("kept", [0, 1]), ("nobody", [0])):
            if version >= 8:
                rows = [M.OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)]
                request = M.OffsetFetchRequest(
                    groups=[M.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=rows)])
            else:
                rows = [M.OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=indexes)]
                request = M.OffsetFetchRequest(group_id=group, topics=rows)
            yield f"fetch offsets of {name}", request, version
        if 2 <= version < 8:
            yield "fetch all offsets", M.OffsetFetchRequest(group_id=group, topics=None), version
    for version in has["ListGroups"]:
        yield "list groups", M.ListGroupsRequest(), version
    for version in has["OffsetDelete"]:
        part = M.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)
        rows = [M.OffsetDeleteRequest.OffsetDeleteRequestTopic(name="kept", partitions=[part])]
        for name in (group, "nobody"):
            yield f"delete offsets of {name}", M.OffsetDeleteRequest(group_id=name, topics=rows), version
    for version in has["DeleteGroups"]:
        yield "delete groups", M.DeleteGroupsRequest(groups_names=[f"g{version}", "nobody"]), version


def _acls(has: Has) -> Generator[Step, Any, None]:
    for version in has["CreateAcls"]:
        more = {"resource_pattern_type": 3 + version % 2} if version >= 1 else {}
        for kind, name, principal, operation in (
            (2, "kept", "User:a", 3), (2, "kept", "User:a", 3), (3, "g", "User:b", 3),
            (4, "kafka-cluster", "User:a", 4),
            (4, "other", "User:a", 4), (2, "", "User:a", 3), (2, "kept", "nobody", 3), (2, "kept", "User:a", 1),
        ):
            row = M.CreateAclsRequest.AclCreation(
                resource_type=kind, resource_name=name, principal=principal, host="*", operation=operation,
                permission_type=3, **more)
            yield f"create acl {kind} {name} {principal} {operation}", M.CreateAclsRequest(creations=[row]), version
    filters = (
        (1, None, 1, None, 1), (2, "kept", 3, None, 1), (2, "kept-and-more", 2, None, 1), (1, None, 1, "User:b", 1),
        (2, None, 1, None, 4), (0, None, 1, None, 1),
    )
    for version in has["DescribeAcls"]:
        for kind, name, pattern, principal, operation in filters:
            more = {"pattern_type_filter": pattern} if version >= 1 else {}
            yield f"acls {kind} {name} {pattern} {principal} {operation}", M.DescribeAclsRequest(
                resource_type_filter=kind, resource_name_filter=name, principal_filter=principal, host_filter=None,
                operation=operation, permission_type=1, **more), version
    for version in has["DeleteAcls"]:
        for kind, name, pattern, principal, operation in filters[1:]:
            more = {"pattern_type_filter": pattern} if version >= 1 else {}
            row = M.DeleteAclsRequest.DeleteAclsFilter(
                resource_type_filter=kind, resource_name_filter=name, principal_filter=principal, host_filter=None,
                operation=operation, permission_type=1, **more)
            label = f"delete acls {kind} {name} {pattern} {principal} {operation}"
            yield label, M.DeleteAclsRequest(filters=[row]), version


def _admin(has: Has) -> Generator[Step, Any, None]:
    for version in has["ApiVersions"]:
        more = {"client_software_name": "c", "client_software_version": "1"} if version >= 3 else {}
        yield "api versions", M.ApiVersionsRequest(**more), version
        if version >= 3:
            yield "api versions of a bad name", M.ApiVersionsRequest(client_software_name="a b"), version
        if version >= 5:
            for cluster, node in (("other", 1), ("other", -1), (None, 7)):
                yield f"api versions of {cluster} {node}", M.ApiVersionsRequest(
                    cluster_id=cluster, node_id=node, **more), version
    for version in has["DescribeCluster"]:
        yield "cluster", M.DescribeClusterRequest(), version
        yield "cluster with operations", M.DescribeClusterRequest(include_cluster_authorized_operations=True), version
    for name, request in (("AlterConfigs", M.AlterConfigsRequest), ("IncrementalAlterConfigs",
                                                                 M.IncrementalAlterConfigsRequest)):
        for version in has[name]:
            for key, value in (("retention.ms", "9000000000000"), ("no.such", "1"), ("retention.ms", "x")):
                for topic in ("kept", "nobody"):
                    config = request.AlterableConfig(name=key, value=value)
                    yield f"set {key} to {value} of {topic}", request(resources=[request.AlterConfigsResource(
                        resource_type=2, resource_name=topic, configs=[config])]), version
    for version in has["DescribeConfigs"]:
        row = M.DescribeConfigsRequest.DescribeConfigsResource
        yield "configs", M.DescribeConfigsRequest(resources=[row(
            resource_type=2, resource_name="kept", configuration_keys=["retention.ms", "cleanup.policy"])]), version
        yield "configs of nobody", M.DescribeConfigsRequest(resources=[row(
            resource_type=2, resource_name="nobody", configuration_keys=None)]), version
    yield from _acls(has)
    for version in has["SaslHandshake"]:
        yield "sasl", M.SaslHandshakeRequest(mechanism="PLAIN"), version
    for version in has["UpdateFeatures"]:
        row = M.UpdateFeaturesRequest.FeatureUpdateKey
        for name, level in (("no.such", 1), ("metadata.version", 999), ("metadata.version", 1)):
            yield f"update {name} to {level}", M.UpdateFeaturesRequest(
                feature_updates=[row(feature=name, max_version_level=level)]), version


def _refused(has: Has) -> Generator[Step, Any, None]:
    """Requests that are wrong in what they say: half an identity, two names of one thing, nothing at all."""
    topic_id = yield from id_of_topic(has, "kept")
    good = records_of("a", "b")
    for version in has["Produce"]:
        if version < 3:
            continue
        cut = kwire.build_batch([(1, b"k", b"v")], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)
        yield "produce a part of a batch", produce(good[:-3], version, "kept", topic_id), version
        yield "produce no batch", produce(b"", version, "kept", topic_id), version
        yield "produce two batches", produce(good + good, version, "kept", topic_id), version
        yield "produce in a transaction of nobody", produce(cut, version, "kept", topic_id), version
        yield "produce with bad acks", produce(good, version, "kept", topic_id, acks=5), version
        yield "produce with bad acks to nobody", produce(
            good, version, "nobody-at-all", uuid.UUID(int=9), acks=5), version
    session = 0
    for version in has["Fetch"]:
        if version < 7:
            continue
        more = {"replica_id": -1} if version < 15 else {}
        answer = yield "fetch nothing", M.FetchRequest(**more, max_wait_ms=0, session_epoch=0, topics=[]), version
        made, session = session, answer.session_id
        for label, of, epoch in (("again", session, 1), ("late", session, 1), ("of before", made, 1)):
            yield f"fetch nothing {label}", M.FetchRequest(
                **more, max_wait_ms=0, min_bytes=0, session_id=of, session_epoch=epoch, topics=[]), version
    for version in has["ListOffsets"]:
        row = M.ListOffsetsRequest.ListOffsetsPartition
        for timestamp in (-2, -6) if has["ConsumerGroupDescribe"] else (-2,):
            rows = [row(partition_index=index, timestamp=timestamp) for index in (0, 9)]
            if version >= 4:
                rows.append(row(partition_index=1, timestamp=timestamp, current_leader_epoch=-2))
            yield f"offsets at {timestamp} without a topic", M.ListOffsetsRequest(replica_id=-1, topics=[
                M.ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=rows)
                for name in ("kept", "nobody-at-all")]), version
    for version in has["DeleteTopics"]:
        if version < 6:
            for name in ("", "no/name"):
                yield f"delete the topic {name!r}", M.DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), version
            continue
        state = M.DeleteTopicsRequest.DeleteTopicState
        for named in ({"name": ""}, {"name": "no/name"}, {"name": "kept", "topic_id": topic_id}, {"name": None}):
            yield f"delete {len(named)} {named['name']!r}", M.DeleteTopicsRequest(
                topics=[state(**named)], timeout_ms=1000), version
    for version in has["DescribeTopicPartitions"]:
        row = M.DescribeTopicPartitionsRequest.TopicRequest
        for name, index, names in (
            ("kept", 1, ["kept"]), ("kept", -1, ["kept"]), ("kept", 0, []), ("a", 0, ["kept"]), ("z", 0, ["kept"]),
        ):
            cursor = M.DescribeTopicPartitionsRequest.Cursor(topic_name=name, partition_index=index)
            if names:
                yield f"describe from {name} {index}", M.DescribeTopicPartitionsRequest(
                    topics=[row(name=one) for one in names], cursor=cursor, response_partition_limit=1), version
    for version in has["InitProducerId"]:
        if version < 3:
            continue
        for name in (None, "x-of-nobody"):
            for own in ((7, -1), (-1, 7)):
                yield f"init {name} {own}", M.InitProducerIdRequest(
                    transactional_id=name, transaction_timeout_ms=1000, producer_id=own[0], producer_epoch=own[1]
                ), version
    for version in has["DescribeTransactions"]:
        yield "describe no transaction", M.DescribeTransactionsRequest(transactional_ids=[""]), version
    for version in has["DescribeProducers"]:
        yield "producers of nobody", M.DescribeProducersRequest(topics=[
            M.DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0])
            for name in ("nobody-at-all", "no/name")]), version
    for version in has["LeaveGroup"]:
        yield "leave no group", M.LeaveGroupRequest(members=[M.LeaveGroupRequest.MemberIdentity(
            member_id="nobody")]) if version >= 3 else M.LeaveGroupRequest(member_id="nobody"), version
    for version in has["OffsetDelete"]:
        yield "delete offsets of no group", M.OffsetDeleteRequest(), version
    for version in has["ConsumerGroupDescribe"]:
        yield "describe no consumer group", M.ConsumerGroupDescribeRequest(group_ids=["", "nobody"]), version
    for version in has["OffsetCommit"]:
        if not version:
            continue
        part = M.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        for label, group, generation, member, name in (
            ("as nobody", "alone", -1, "nobody", "kept"), ("of nobody", "never-made", -1, "", "nobody-at-all"),
            ("late", "never-made", 3, "nobody", "kept"), ("late", "alone", 3, "nobody", "kept"),
        ):
            named: dict[str, Any] = {"name": name} if version < 10 else {
                "topic_id": topic_id if name == "kept" else uuid.UUID(int=9)}
            yield f"commit {label} to {group}", M.OffsetCommitRequest(
                group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=[
                    M.OffsetCommitRequest.OffsetCommitRequestTopic(**named, partitions=[part])]), version
    for version in has["DeleteGroups"]:
        yield "delete a group that was never made", M.DeleteGroupsRequest(groups_names=["never-made"]), version
    telemetry = has["GetTelemetrySubscriptions"]
    for version in telemetry:
        client = uuid.UUID(int=version + 77)
        for label in ("", " again"):
            answer = yield f"subscriptions{label}", M.GetTelemetrySubscriptionsRequest(
                client_instance_id=client), version
            subscription = answer.subscription_id
        yield "push without an id", M.PushTelemetryRequest(), version
        yield "push to another subscription", M.PushTelemetryRequest(
            client_instance_id=client, subscription_id=subscription + 1), version
        yield "push at once", M.PushTelemetryRequest(client_instance_id=client, subscription_id=subscription), version
        yield "push the last", M.PushTelemetryRequest(
            client_instance_id=client, subscription_id=subscription, terminating=True), version
        yield "push after the last", M.PushTelemetryRequest(client_instance_id=client), version


def _refused_configs(has: Has) -> Generator[Step, Any, None]:
    for version in has["CreateTopics"]:
        row, config = M.CreateTopicsRequest.CreatableTopic, M.CreateTopicsRequest.CreatableTopicConfig
        replicas = M.CreateTopicsRequest.CreatableReplicaAssignment
        if version < 4:
            continue
        for label, topic in (
            ("also with replicas", row(name="a", num_partitions=1, replication_factor=-1, assignments=[
                replicas(broker_ids=[1])])),
            ("that is there, and has a bad config", row(name="kept", num_partitions=1, replication_factor=1, configs=[
                config(name="retention.ms", value="x")])),
        ):
            yield f"create a topic {label}", M.CreateTopicsRequest(topics=[topic], timeout_ms=1000), version
    resources = ((2, ""), (4, "77"), (4, "x"), (16, "m"), (16, ""), (32, ""), (0, "x"))
    if not has["DescribeCluster"]:  # what has configs differs from release to release
        return
    for version in has["DescribeConfigs"]:
        row = M.DescribeConfigsRequest.DescribeConfigsResource
        for kind, name in (*resources[1:], (2, "kept")):
            yield f"configs of {kind} {name}, all of []", M.DescribeConfigsRequest(resources=[
                row(resource_type=kind, resource_name=name, configuration_keys=[])]), version
    for api, request in (("AlterConfigs", M.AlterConfigsRequest), ("IncrementalAlterConfigs",
                                                                M.IncrementalAlterConfigsRequest)):
        for version in has[api]:
            for kind, name in resources:
                for value in ("1", None):
                    one = request.AlterableConfig(name="no.such", value=value)
                    yield f"{api} {value} of {kind} {name}", request(resources=[request.AlterConfigsResource(
                        resource_type=kind, resource_name=name, configs=[one])], validate_only=True), version


def _emptied(has: Has) -> Generator[Step, Any, None]:
    """A group whose offsets are all deleted: up to 3.9 it is gone with them."""
    for version in has["OffsetDelete"]:
        for name in ("kept", "sparse"):
            part = M.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
            yield f"commit to be emptied of {name}", M.OffsetCommitRequest(
                group_id=f"emptied-{name}", generation_id_or_member_epoch=-1, member_id="", topics=[
                    M.OffsetCommitRequest.OffsetCommitRequestTopic(name="kept", partitions=[part])]), 8
        for index in (1, 0):
            row = M.OffsetDeleteRequest.OffsetDeleteRequestTopic(name="kept", partitions=[
                M.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index)])
            yield f"delete offset {index}", M.OffsetDeleteRequest(group_id="emptied-kept", topics=[row]), version
            yield "describe the emptied", M.DescribeGroupsRequest(groups=["emptied-kept"]), 4
        for name in ("kept", "sparse", "kept"):
            yield f"delete the emptied of {name}", M.DeleteGroupsRequest(groups_names=[f"emptied-{name}"]), 2


def _replicas(has: Has) -> Generator[Step, Any, None]:
    """Elections and reassignments of one broker: it leads what it has, and there is none to move anything to."""
    yield from id_of_topic(has, "kept")
    answer = yield "metadata of all", M.MetadataRequest(topics=[]), has["Metadata"][-1]
    node = answer.brokers[0].node_id
    places = (("kept", 0), ("kept", 9), ("nobody", 0))
    for version in has["ElectLeaders"]:
        row = M.ElectLeadersRequest.TopicPartitions
        for kind in (0, 1, 7) if version else (0,):
            more = {"election_type": kind} if version else {}
            for name, index in places:
                yield f"elect {kind} {name}-{index}", M.ElectLeadersRequest(
                    topic_partitions=[row(topic=name, partitions=[index])], timeout_ms=10_000, **more), version
            yield f"elect {kind} nothing", M.ElectLeadersRequest(
                topic_partitions=[], timeout_ms=10_000, **more), version
    for version in has["AlterPartitionReassignments"]:
        request = M.AlterPartitionReassignmentsRequest
        for name, index in places:
            for replicas in ([node], [], [node, node], [77], [-1], [node, 77], None):
                one = request.ReassignablePartition(partition_index=index, replicas=replicas)
                for allow in (True, False) if version else (True,):
                    more = {"allow_replication_factor_change": allow} if version else {}
                    what = replicas and [{node: "own"}.get(each, each) for each in replicas]
                    yield f"reassign {name}-{index} to {what} {allow}", request(
                        topics=[request.ReassignableTopic(name=name, partitions=[one])], timeout_ms=10_000, **more
                    ), version
    for version in has["ListPartitionReassignments"]:
        row = M.ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
        for names in (None, ["kept"], ["nobody"], []):
            yield f"reassignments of {names}", M.ListPartitionReassignmentsRequest(
                topics=None if names is None else [row(name=name, partition_indexes=[0, 9]) for name in names],
                timeout_ms=10_000), version
    if not has["DescribeLogDirs"]:
        return
    newest = has["CreateTopics"][-1]
    yield "create", create("sized", newest, 1), newest
    topic_id = yield from id_of_topic(has, "sized")
    version = has["Produce"][-1]
    yield "produce", produce(records_of("a", "b"), version, "sized", topic_id), version
    for version in has["DescribeLogDirs"]:
        row = M.DescribeLogDirsRequest.DescribableLogDirTopic
        for names, indexes in ((["sized"], [0]), (["sized"], [9]), (["nobody"], [0]), (["sized"], []), ([], [])):
            yield f"log dirs of {names} {indexes}", M.DescribeLogDirsRequest(
                topics=[row(topic=name, partitions=indexes) for name in names]), version


def _quotas(has: Has) -> Generator[Step, Any, None]:
    """Quotas of users, client ids and addresses, which are kept; then what they cannot be."""
    request = M.AlterClientQuotasRequest

    def alter(entity: Any, *ops: tuple[str, float | None], times: int = 1, **more: Any) -> Any:
        parts = [request.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        rows = [request.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                for key, value in ops]
        return request(entries=[request.EntryData(entity=parts, ops=rows)] * times, validate_only=False, **more)

    def describe(*components: tuple[str, int, str | None], strict: bool = False) -> Any:
        row = M.DescribeClientQuotasRequest.ComponentData
        return M.DescribeClientQuotasRequest(strict=strict, components=[
            row(entity_type=kind, match_type=how, match=match) for kind, how, match in components])

    entities = (
        (("user", "a"),), (("user", None),), (("client-id", "c"),), (("user", "a"), ("client-id", "c")),
        (("user", "a"), ("client-id", None)), (("ip", "127.0.0.1"),), (("ip", None),))
    for version in has["AlterClientQuotas"]:
        for entity in entities:
            key = "connection_creation_rate" if entity[0][0] == "ip" else "producer_byte_rate"
            yield f"set {key} of {entity}", alter(entity, (key, 1000.0 + version)), version
        for key, value in (
            ("request_percentage", 1.5), ("consumer_byte_rate", 1.5), ("controller_mutation_rate", 0.5),
            ("no.such", 1.0), ("consumer_byte_rate", 0.0), ("consumer_byte_rate", -1.0), ("consumer_byte_rate", 1e19),
            ("connection_creation_rate", 5.0), ("no.such", None), ("consumer_byte_rate", None),
        ):
            yield f"set {key} to {value}", alter((("user", "b"),), (key, value)), version
        for value in (1.5, 3e9, 0.0):
            yield f"set an address's rate to {value}", alter(
                (("ip", "127.0.0.1"),), ("connection_creation_rate", value)), version
        for entity in (
            (), (("no", "a"),), (("user", ""),), (("ip", "1.2.3.4"), ("user", "a")), (("ip", "1.2.3.4.5.6"),),
            (("client-id", ""), ("user", "a")),
        ):
            yield f"set of {entity}", alter(entity, ("consumer_byte_rate", 5.0)), version
        two = (("consumer_byte_rate", 5.0), ("consumer_byte_rate", 6.0))
        yield "set twice", alter((("user", "d"), ("client-id", "e")), *two), version
        yield "set twice in a request", alter((("user", "f"),), two[0], times=2), version
        yield "change nothing", alter((("user", "g"),)), version
        only = alter((("user", "h"),), two[0])
        only.validate_only = True
        yield "only validate", only, version
    for version in has["DescribeClientQuotas"]:
        for strict in (True, False):
            for components in (
                (), (("user", 0, "a"),), (("user", 1, None),), (("user", 2, None),), (("client-id", 0, "c"),),
                (("user", 0, "a"), ("client-id", 1, None)), (("user", 2, None), ("client-id", 2, None)),
                (("ip", 2, None),), (("ip", 0, "127.0.0.1"),), (("user", 0, "nobody"),),
            ):
                yield f"quotas of {components} {strict}", describe(*components, strict=strict), version
        for components in (
            (("", 0, "a"),), (("no", 0, "a"),), (("user", 7, None),), (("user", 0, "a"), ("user", 2, None)),
            (("ip", 2, None), ("user", 2, None)),
        ):
            yield f"quotas of {components}", describe(*components), version
        if has["ConsumerGroupDescribe"]:  # with ZooKeeper another error
            for component in (("user", 0, None), ("user", 1, "a"), ("user", 2, "a")):
                yield f"quotas of {component}", describe(component), version


def _users(has: Has) -> Generator[Step, Any, None]:
    """SCRAM credentials: set, described, deleted, and those that are refused."""
    request, described = M.AlterUserScramCredentialsRequest, M.DescribeUserScramCredentialsRequest

    def alter(deletions: Any = (), upsertions: Any = ()) -> Any:
        return request(
            deletions=[request.ScramCredentialDeletion(name=name, mechanism=how) for name, how in deletions],
            upsertions=[request.ScramCredentialUpsertion(
                name=name, mechanism=how, iterations=times, salt=b"salt", salted_password=b"p" * 32)
                for name, how, times in upsertions])

    for version in has["AlterUserScramCredentials"]:
        for label, message in (
            ("set", alter(upsertions=[("u", 1, 4096), ("v", 2, 16384)])), ("again", alter(upsertions=[("u", 2, 8192)])),
            ("too few", alter(upsertions=[("u", 1, 4095)])), ("too many", alter(upsertions=[("u", 1, 16385)])),
            ("no name", alter(upsertions=[("", 1, 4096)])), ("no mechanism", alter(upsertions=[("u", 9, 4096)])),
            ("delete", alter(deletions=[("v", 2)])), ("delete again", alter(deletions=[("v", 2)])),
            ("delete and set", alter([("u", 1)], [("u", 1, 4096)])),
            ("set twice", alter(upsertions=[("w", 1, 4096)] * 2)),
            ("delete nobody, and set", alter([("w", 1)], [("w", 1, 4096)])), ("nothing", alter()),
            ("delete unknown", alter(deletions=[("u", 9)])), ("delete unnamed", alter(deletions=[("", 1)])),
        ):
            yield f"users: {label}", message, version
    for version in has["DescribeUserScramCredentials"]:
        for names in (None, [], ["u"], ["nobody"], ["u", "u"], [""]):
            yield f"users {names}", described(
                users=None if names is None else [described.UserName(name=name) for name in names]), version
