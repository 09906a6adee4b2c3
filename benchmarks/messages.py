"""Messages to decode and encode: M1 to M6, made from a seed."""

from __future__ import annotations

import base64
import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import kwire
from benchmarks.workloads import W1

INNER = 20  # messages of one pass


@dataclass(frozen=True)
class MessageWorkload:
    """One message of a version; a pass decodes or encodes it INNER times."""

    name: str
    message: str
    version: int

    def value(self) -> dict[str, Any]:
        """The message in Kafka's JSON form."""
        value: dict[str, Any] = _value(self.name)
        return value

    def data(self) -> bytes:
        """The message's bytes."""
        return _data(self)

    def records(self) -> int:
        """Messages of one pass."""
        return INNER


@cache
def _data(work: MessageWorkload) -> bytes:
    return kwire.encode(kwire.from_json(work.message, work.version, work.value()), work.version)


def _value(name: str) -> dict[str, Any]:
    dice = random.Random(name)

    def uuid() -> str:
        return base64.urlsafe_b64encode(dice.randbytes(16)).decode().rstrip("=")

    batches = base64.b64encode(W1.batches()[0]).decode()
    if name == "M1":
        brokers = [{"nodeId": i, "host": f"broker-{i}.example.org", "port": 9092, "rack": f"r{i}"} for i in range(6)]
        partition = {"errorCode": 0, "leaderEpoch": 7, "replicaNodes": [1, 2, 3], "isrNodes": [1, 2, 3],
                     "offlineReplicas": []}  # fmt: skip
        topics = [
            {"errorCode": 0, "name": f"topic-number-{i}", "topicId": uuid(), "isInternal": False,
             "partitions": [{**partition, "partitionIndex": p, "leaderId": p % 6} for p in range(10)],
             "topicAuthorizedOperations": -2147483648}
            for i in range(100)
        ]  # fmt: skip
        return {"throttleTimeMs": 0, "brokers": brokers, "clusterId": uuid(), "controllerId": 1, "topics": topics}
    if name == "M2":
        topics = [
            {"topic": f"topic-number-{i}",
             "partitions": [{"partition": p, "currentLeaderEpoch": 7, "fetchOffset": dice.getrandbits(40),
                             "lastFetchedEpoch": -1, "logStartOffset": -1, "partitionMaxBytes": 1 << 20}
                            for p in range(10)]}
            for i in range(50)
        ]  # fmt: skip
        return {"replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 50 << 20, "isolationLevel": 0,
                "sessionId": 0, "sessionEpoch": 0, "topics": topics, "forgottenTopicsData": [],
                "rackId": ""}  # fmt: skip
    if name == "M3":
        return {"transactionalId": None, "acks": -1, "timeoutMs": 30000,
                "topicData": [{"name": "topic-number-1",
                               "partitionData": [{"index": 3, "records": batches}]}]}  # fmt: skip
    if name == "M4":
        keys = [{"apiKey": i, "minVersion": 0, "maxVersion": i % 13} for i in range(60)]
        return {"errorCode": 0, "apiKeys": keys, "throttleTimeMs": 0}
    if name == "M5":
        return {"groupId": "a-consumer-group", "generationId": 17, "memberId": "consumer-1-" + "0" * 36,
                "groupInstanceId": None}  # fmt: skip
    partitions = [
        {"partitionIndex": p, "errorCode": 0, "highWatermark": 1000, "lastStableOffset": 1000, "logStartOffset": 0,
         "abortedTransactions": None, "preferredReadReplica": -1, "records": batches}
        for p in range(20)
    ]  # fmt: skip
    return {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0,
            "responses": [{"topic": "topic-number-1", "partitions": partitions}]}  # fmt: skip


M = [
    MessageWorkload("M1", "MetadataResponse", 12),
    MessageWorkload("M2", "FetchRequest", 12),
    MessageWorkload("M3", "ProduceRequest", 9),
    MessageWorkload("M4", "ApiVersionsResponse", 3),
    MessageWorkload("M5", "HeartbeatRequest", 4),
    MessageWorkload("M6", "FetchResponse", 12),
]
