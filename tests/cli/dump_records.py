"""Segments with records of internal topics, valid and damaged, for what no golden has."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from struct import pack
from typing import Any

import kwire

SEGMENT = f"{0:020}.log"
TIME = 1700000000000
Row = tuple[bytes | None, bytes | None]
TOPIC_PARTITION = {"name": "tøpic", "id": "EjRWeJCrze8SNFZ4kKvN7w", "partition": 7}
SEGMENT_ID = {"topicIdPartition": TOPIC_PARTITION, "id": "AAAAAAAAAAAAAAAAAAAAAQ"}
BAD_FRAMES = [b"\0\1\0", b"\2\1\0", b"\1\x63\0", b"\1\0", b"", b"\1\0\0\5", b"\1\xff\xff\xff\xff\x0f\0",
              b"\1\xff\xff\7\0", b"\x81\x80\x80\x80\x80\x80\x80"]  # fmt: skip


def write(folder: Path, rows: list[Row], **options: Any) -> Path:
    """A segment of one batch."""
    folder.mkdir()
    records = [(TIME + at, key, value) for at, (key, value) in enumerate(rows)]
    (folder / SEGMENT).write_bytes(kwire.build_batch(records, **options))
    return folder / SEGMENT


def remote_log() -> list[Row]:
    """Records of __remote_log_metadata."""

    def made(name: str, **values: Any) -> bytes:
        return kwire.encode_remote_log_record(kwire.from_json(name, 0, values), 0)

    common = {
        "startOffset": 5, "endOffset": 99, "brokerId": 3, "maxTimestampMs": TIME, "eventTimestampMs": TIME + 1,
        "segmentLeaderEpochs": [{"leaderEpoch": 4, "offset": 50}, {"leaderEpoch": 1, "offset": 5}],
        "segmentSizeInBytes": 1000, "customMetadata": None, "remoteLogSegmentState": 0,
    }  # fmt: skip
    changes: list[dict[str, Any]] = [
        {}, {"customMetadata": "AAEC", "remoteLogSegmentState": 3, "txnIndexEmpty": True}, {"endOffset": 4},
        {"startOffset": -1}, {"segmentLeaderEpochs": []}, {"remoteLogSegmentState": 9},
    ]  # fmt: skip
    values = [made("RemoteLogSegmentMetadataRecord", remoteLogSegmentId=SEGMENT_ID, **common | one) for one in changes]
    values += [
        made("RemoteLogSegmentMetadataUpdateRecord", remoteLogSegmentId=SEGMENT_ID, brokerId=1, eventTimestampMs=TIME,
             customMetadata=custom, remoteLogSegmentState=state)
        for custom, state in ((None, 1), ("AAAA", 2), ("AAAA", -2))
    ]
    values += [
        made("RemotePartitionDeleteMetadataRecord", topicIdPartition=TOPIC_PARTITION, brokerId=1, epoch=0,
             eventTimestampMs=TIME, remotePartitionDeleteState=state)
        for state in range(4)
    ]
    own = {"segmentId": "AAAAAAAAAAAAAAAAAAAAAQ", "brokerLeaderEpoch": 2}
    values.append(made("RemoteLogSegmentMetadataSnapshotRecord", **common, **own))
    newer = b"\1\0\5" + values[0][3:]
    return [(None, value) for value in [*values, values[0] + b"xyz", newer, *BAD_FRAMES]]


def metadata() -> list[Row]:
    """Records of __cluster_metadata: every shape of a double, damage."""

    def made(message: str, values: dict[str, Any]) -> bytes:
        return kwire.encode_metadata_record(kwire.from_json(message, 0, values), 0)

    numbers = [0.1, 1.0, 1e7, 1.5e10, 123456789.123, 1e-3, 9.99e-4, 1e-5, -0.0, float("inf"), float("-inf"),
               float("nan"), 2.0**53, 1e21, 1.7976931348623157e308, 5e-324, 9999999.999999998, -2.5e-9]  # fmt: skip
    entity = [{"entityType": "user", "entityName": None}]
    rows = [
        made("ClientQuotaRecord", {"entity": entity, "key": 'a\x01\x1f"\\\u2028\x7f', "value": one, "remove": False})
        for one in numbers
    ]
    topic = made("TopicRecord", {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"})
    rows += [topic, topic + b"zz", topic[:-3], b"\1\2\7" + topic[3:], b"\1\2\0\5" + topic[4:], *BAD_FRAMES]
    return [(None, value) for value in rows] + [(None, None)]


def _prefixed(number: int, name: str, version: int, values: dict[str, Any]) -> bytes:
    return pack(">h", number) + kwire.encode(kwire.from_json(name, version, values), version)


def _text(data: bytes) -> str:
    return b64encode(data).decode()


def group_metadata(version: int, protocol_type: str = "consumer") -> bytes:
    """A GroupMetadataValue with subscriptions and assignments of each version, and bytes that are none."""
    subscribed = {"topics": ["a", "b"], "ownedPartitions": [{"topic": "a", "partitions": [0, 1]}], "generationId": 4,
                  "rackId": "r"}  # fmt: skip
    pairs = []
    for inner in range(4):
        data = None if inner % 2 else "AAAA"
        pairs.append((
            _prefixed(inner, "ConsumerProtocolSubscription", inner, subscribed | {"userData": data}),
            _prefixed(inner, "ConsumerProtocolAssignment", inner, {
                "assignedPartitions": [{"topic": "a", "partitions": [0, 1]}], "userData": data}),
        ))  # fmt: skip
    if protocol_type == "consumer":
        pairs += [(b"", b""), (b"\0", b"\0\7zz"), (b"\0\1junk", pairs[0][1] + b"more"),
                  (b"\0\x09" + pairs[3][0][2:], b"\xff\xfe" + pairs[3][1][2:])]  # fmt: skip
    members = [
        {"memberId": f"m{at}", "groupInstanceId": None, "clientId": "c", "clientHost": "/h", "rebalanceTimeout": 1,
         "sessionTimeout": 2, "subscription": _text(one), "assignment": _text(other)}
        for at, (one, other) in enumerate(pairs)
    ]  # fmt: skip
    return _prefixed(version, "GroupMetadataValue", version, {
        "protocolType": protocol_type, "generation": 3, "protocol": "range", "leader": "m",
        "currentStateTimestamp": TIME, "members": members})  # fmt: skip


def commits(newest: int = 4) -> list[Row]:
    """Commits of every version up to the newest, and a tombstone."""
    key = _prefixed(1, "OffsetCommitKey", 0, {"group": 'g\n"\\\0\x1f', "topic": "t", "partition": 3})
    values = {"leaderEpoch": -1, "metadata": "é\x7f", "commitTimestamp": TIME, "expireTimestamp": -1}
    rows: list[Row] = [
        (key, _prefixed(version, "OffsetCommitValue", version, {"offset": version} | values))
        for version in range(newest + 1)
    ]
    return [*rows, (key, None)]


def offsets() -> list[Row]:
    """Records of __consumer_offsets: every version of the common types, unknown types and versions."""
    rows = commits()
    key, value = rows[4]
    assert key is not None and value is not None
    group = _prefixed(2, "GroupMetadataKey", 0, {"group": "gg"})
    legacy = b"\0\0" + key[2:]
    rows += [(key, b""), (key, b"\0"), (key, b"\0\x09" + value[2:]), (key, b"\xff\xfd" + value[2:]), (b"\0", b"x"),
             (b"\0\x4dabc", b"x"), (b"\xff\xfbabc", b"x"), (key + b"more", value + b"more"), (legacy, None),
             (legacy, rows[0][1]), (legacy, rows[1][1])]  # fmt: skip
    rows += [(group, group_metadata(version)) for version in range(5)]
    return [*rows, (group, group_metadata(3, "connect")), (group, None)]


def transactions(version: int = 1) -> list[Row]:
    """Records of __transaction_state in each state, with many partitions."""
    key = _prefixed(0, "TransactionLogKey", 0, {"transactionalId": "id"})
    many = [{"topic": f"t{at}", "partitionIds": list(range(5 * at + 1))} for at in range(4)]
    rows: list[Row] = [
        (key, _prefixed(one, "TransactionLogValue", one, {
            "producerId": 9, "producerEpoch": 1, "transactionTimeoutMs": 1000, "transactionStatus": state,
            "transactionPartitions": many[: state + 1] if state else None, "transactionLastUpdateTimestampMs": TIME,
            "transactionStartTimestampMs": TIME - 1, "previousProducerId": 8, "nextProducerId": 10,
            "clientTransactionVersion": 2}))
        for one in range(version + 1) for state in range(8 if version else 7)
    ]  # fmt: skip
    return [*rows, (key, None)]


def text() -> list[Row]:
    """Keys and values that are not UTF-8, control characters, nulls."""
    odd = [b"\xed\xa0\x80x", b"\xff\xfe", b"\xf0\x9f\x98", b"\xc0\x80", b"\xe2\x82", b"ok\n\r\t\0\x1b[2J",
           b"\xf4\x90\x80\x80", b"\xed\xb0\x80\xed", b"\xf8\x88\x80\x80\x80", b"", None, "😀é".encode()]  # fmt: skip
    return [(key, value) for key in odd for value in odd]


def numbers() -> list[Row]:
    """Integers as keys, longs as values."""
    return [(b"\0\0\0\5", b"\xff" * 8), (b"\x80\0\0\0\1", bytes(9)), (None, None)]


def write_all(root: Path) -> None:
    """A folder for each of the above."""
    write(root / "remote", remote_log())
    write(root / "metadata", metadata())
    write(root / "offsets", offsets())
    write(root / "transactions", transactions())
    write(root / "text", text(), codec="gzip")
    write(root / "numbers", numbers())
    write(root / "old-offsets", [*commits(3), *(
        (_prefixed(2, "GroupMetadataKey", 0, {"group": "gg"}), group_metadata(3, kind)) for kind in ("connect", "other")
    )])  # fmt: skip
    write(root / "old-transactions", transactions(0))
