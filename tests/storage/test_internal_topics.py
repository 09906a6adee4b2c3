"""Internal topics decoded: as kafka-dump-log's decoders print them, of old releases, damaged, of newer ones."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import kwire
from kwire import messages, schema
from kwire.codec.json import json_text
from kwire.schema import record_types
from kwire.storage import (
    CommittedOffset,
    LogDirectory,
    LogSegment,
    TransactionRow,
    committed_offset,
    decode_internal_record,
    internal_batches,
    internal_kind,
    read_internal_topic,
    transaction_row,
)
from kwire.storage.internal.internal_columns import offset_columns
from kwire.storage.internal.internal_topics import decode_parts
from tests.storage import internal
from tests.storage.making import START
from tools.kafka import tool
from tools.places import golden as unpacked

quick = pytest.mark.quick


def texts_of(segment: LogSegment) -> list[internal.DecodedText]:
    found = []
    for record in read_internal_topic(segment):
        key, value = record.key_json(), record.value_json()
        found.append(internal.DecodedText(
            record.offset, record.timestamp, None if key is None else json_text(key),
            "<DELETE>" if value is None else json_text(value)))
    return found


@quick
@pytest.mark.parametrize("path", internal.decoded_texts(), ids=lambda path: f"{path.parent.name}-{path.name[-15:]}")
def test_the_texts_of_kafka_dump_log(path: Path) -> None:
    assert texts_of(LogSegment(path)) == internal.decoded_texts()[path]


@quick
def test_there_are_enough_texts() -> None:
    texts = internal.decoded_texts()
    assert (len(texts), sum(map(len, texts.values()))) == (17, 740)
    assert {internal_kind(LogSegment(path)) for path in texts} == {"metadata", "group", "transaction", "share"}
    values = [text.value for found in texts.values() for text in found]
    assert any('"assignedPartitions":[{"topic":' in value for value in values)
    assert any('"previousProducerId"' in value for value in values)


@quick
@pytest.mark.parametrize(("release", "records"), [
    ("kafka-2.2.2", 116), ("kafka-2.8.2", 121), ("kafka-4.3.0-3nodes", 1725)])
def test_every_internal_record_of_every_release(golden: Path, release: str, records: int) -> None:
    found = [
        record for folder in sorted((golden / "data" / release).glob("data*"))
        for partition in LogDirectory(folder) if internal_kind(partition)
        for record in read_internal_topic(partition)
    ]
    assert len(found) == records
    for record in found:
        assert record.error is None and record.type is not None
        json.loads(json_text([record.key_json(), record.value_json()]))


@pytest.mark.soak
@pytest.mark.java
@pytest.mark.parametrize("release", ["kafka-2.2.2", "kafka-2.8.2", "kafka-4.3.0-3nodes"])
def test_the_tool_itself(release: str) -> None:
    """Old records as the 4.3 tool decodes them."""
    flags = {"__consumer_offsets": "--offsets-decoder", "__transaction_state": "--transaction-log-decoder",
             "__share_group_state": "--share-group-state-decoder", "__cluster_metadata": "--cluster-metadata-decoder"}
    compared = 0
    for topic, flag in flags.items():
        paths = sorted((unpacked() / "data" / release).glob(f"data*/{topic}-*/*.log"))
        if not paths:
            continue
        done = tool.run("4.3.0", "dump-log", flag, "--files", ",".join(map(str, paths)), cwd=unpacked())
        wanted = [match for match in map(internal._LINE.match, done.stdout.decode().splitlines()) if match]
        got = [text for path in paths for text in texts_of(LogSegment(path))]
        assert [(str(text.offset), text.key, text.value) for text in got] == [
            (match[1], match[3], match[4]) for match in wanted]
        compared += len(got)
    assert compared > 100


@quick
def test_old_commits_and_tombstones(tmp_path: Path) -> None:
    path = internal.write(tmp_path / "__consumer_offsets-7", [
        internal.commit(5, 0, type=0), internal.commit(6, 0), internal.commit(7, 1), internal.commit(8, 2),
        internal.commit(9, 3), internal.commit(None), internal.commit(None, type=0)])
    records = list(read_internal_topic(LogSegment(path)))
    assert [record.type for record in records] == [
        "LEGACY_OFFSET_COMMIT", *["OFFSET_COMMIT"] * 5, "LEGACY_OFFSET_COMMIT"]
    assert [record.version for record in records] == [0, 0, 1, 2, 3, None, None]
    rows = [committed_offset(record) for record in records]
    assert rows == [
        *[CommittedOffset("g", "t", 0, offset, -1, "m", START + offset) for offset in range(5, 10)],
        *[CommittedOffset("g", "t", 0, None, None, None, None)] * 2]
    assert records[2].value_json() == {"version": "1", "data": {
        "offset": 7, "metadata": "m", "commitTimestamp": START + 7, "expireTimestamp": -1}}
    assert records[5].value_json() is None and records[5].key_json() == {
        "type": "1", "data": {"group": "g", "topic": "t", "partition": 0}}
    assert transaction_row(records[0]) is None


@quick
def test_transactions(tmp_path: Path) -> None:
    names = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
             "PrepareEpochFence", "8", "-1"]
    path = internal.write(tmp_path / "__transaction_state-0", [
        *[internal.transaction("x", status, [("a", (0, 2)), ("b", (1,))]) for status in (*range(9), -1)],
        internal.transaction("x", 1, []), internal.transaction("x", 0, None), internal.transaction("x", None)])
    rows = [transaction_row(record) for record in read_internal_topic(LogSegment(path))]
    places = [("a", 0), ("a", 2), ("b", 1)]
    assert rows[:-3] == [TransactionRow("x", 7, 2, name, 60_000, places) for name in names]
    assert [row and row.partitions for row in rows[-3:]] == [[], None, None]
    assert rows[-1] == TransactionRow("x", None, None, None, None, None)


@quick
def test_a_file_elsewhere_is_known_by_its_first_records(golden: Path, tmp_path: Path) -> None:
    paths = [path for path in golden.glob("data/*/data*/*/*") if path.suffix in (".log", ".checkpoint")
             and path.stat().st_size]
    paths += golden.glob("old-brokers/**/*.log")
    found = set()
    for path in paths:
        copy = tmp_path / "copy"
        copy.write_bytes(path.read_bytes())
        kind = internal_kind(LogSegment(copy))
        assert kind == internal_kind(LogSegment(path)), path
        found.add(kind)
    assert found == {None, "metadata", "group", "transaction", "share"}
    others = internal.write(tmp_path / "x", [(b"k", None), (None, b"v")])
    for data in (b"", b"not\0a batch at all", others.read_bytes()):
        copy.write_bytes(data)
        assert internal_kind(LogSegment(copy)) is None
    damaged = bytearray(internal.write(tmp_path / "y", [internal.commit(1)]).read_bytes())
    damaged[-1] ^= 1
    copy.write_bytes(damaged)
    assert internal_kind(LogSegment(copy)) is None


@quick
def test_mutated_records() -> None:
    """Whatever the bytes are: a record or an error; the columns say the same as the record."""
    segments = [LogSegment(path) for path in internal.decoded_texts()]
    records = [(internal_kind(segment), record.key, record.value) for segment in segments for record in segment.read()]
    random, columns = Random(5), 0
    for _ in range(4000):
        kind, key, value = random.choice(records)
        key, value = (mutated(random, data) if random.random() < 0.5 else data for data in (key, value))
        record = decode_parts(kind or "", 1, 2, key, value)
        json.loads(json_text([record.key_json(), record.value_json()]))
        assert (record.error is None) or (record.key, record.value) == (key, value)
        commit = committed_offset(record)
        transaction_row(record)
        fast = offset_columns([key], [value]) if kind == "group" else None
        if fast is not None:
            columns += 1
            assert commit is not None
            assert [fast.column(name)[0].as_py() for name in commit._fields] == list(commit)
    assert columns > 30


def mutated(random: Random, data: bytes | None) -> bytes | None:
    if data is None:
        return random.choice([b"", b"\0", b"\0\0"])
    changed, at = bytearray(data), random.randrange(len(data) + 1)
    which = random.randrange(8)
    if which < 4 and at < len(data):
        changed[at] = random.choice([0, 1, 127, 128, 255])
    elif which < 6:
        del changed[at:]
    elif which == 6:
        changed[at:at] = random.randbytes(3)
    else:
        return None
    return bytes(changed)


def group_of(members: list[tuple[bytes, bytes]], protocol_type: str = "consumer") -> tuple[bytes, bytes | None]:
    value = messages.GroupMetadataValue(protocol_type=protocol_type, generation=1, members=[
        messages.GroupMetadataValue.MemberMetadata(subscription=subscription, assignment=assignment)
        for subscription, assignment in members])
    return kwire.encode_coordinator_record("group", messages.GroupMetadataKey(group="g"), value, 3)


@quick
def test_subscriptions_and_assignments(tmp_path: Path) -> None:
    subscription = b"\0\3" + kwire.encode(messages.ConsumerProtocolSubscription(topics=["t"], rack_id="r"), 3)
    assignment = b"\0\0" + kwire.encode(messages.ConsumerProtocolAssignment(user_data=b"\xff"), 0)
    newer = b"\0\x63" + subscription[2:]
    members = [(subscription, assignment), (newer, assignment + b"more"), (b"\0", b""), (subscription[:-1], b"\0\0")]
    path = internal.write(tmp_path / "__consumer_offsets-0", [
        group_of(members), group_of([(subscription, assignment)], "connect")])
    first, connect = (record.data() for record in read_internal_topic(LogSegment(path)))
    assert first is not None and connect is not None
    shown = {"topics": ["t"], "userData": None, "ownedPartitions": [], "generationId": -1, "rackId": "r"}
    assert [member["subscription"] for member in first["members"]] == [
        shown, shown, "AA==", "AAMAAAABAAF0/////wAAAAD/////AAE="]
    assert [member["assignment"] for member in first["members"]] == [
        {"assignedPartitions": [], "userData": "/w=="}, {"assignedPartitions": [], "userData": "/w=="}, "", "AAA="]
    assert isinstance(connect["members"][0]["subscription"], str)


@quick
def test_remote_log_metadata(tmp_path: Path) -> None:
    message = messages.RemotePartitionDeleteMetadataRecord(
        topic_id_partition=messages.RemotePartitionDeleteMetadataRecord.TopicIdPartitionEntry(
            name="t", id=UUID(int=5), partition=3),
        broker_id=1, event_timestamp_ms=START, remote_partition_delete_state=1)
    path = internal.write(tmp_path / "__remote_log_metadata-0", [(None, kwire.encode_remote_log_record(message, 0))])
    [record] = read_internal_topic(LogSegment(path))
    assert (record.type, record.version, record.key_json()) == ("REMOTE_PARTITION_DELETE_METADATA_RECORD", 0, None)
    value = record.value_json()
    assert value is not None and value["data"]["topicIdPartition"]["name"] == "t"


@quick
@pytest.mark.parametrize("kind", ["group", "transaction", "share", "remote_log", "metadata"])
def test_every_type_of_record(kind: str) -> None:
    for number, known in record_types(kind).items():
        value = getattr(messages, known.value)()
        for version in set(schema.message(known.value).valid_versions):
            if kind == "metadata":
                parts: tuple[Any, Any] = None, kwire.encode_metadata_record(value, version)
            elif kind == "remote_log":
                parts = None, kwire.encode_remote_log_record(value, version)
            else:
                parts = kwire.encode_coordinator_record(kind, getattr(messages, known.key or "")(), value, version)
            record = decode_parts(kind, 0, 0, *parts)
            assert (record.error, record.type_id, record.version, record.value) == (None, number, version, value)
            assert record.type is not None and record.type.replace("_", "").lower() in (
                known.name.lower(), known.value.lower())
            assert record.value_json() is not None and (record.key_json() is None) == (known.key is None)


BAD = [
    ("group", (None, b"\0\0"), False, None, "group record without a key"),
    ("group", (b"\0", None), False, None, "2 bytes needed, 1 remaining"),
    ("group", (b"\x7f\xff\1", b"x"), True, None, "unknown group record type 32767"),
    ("group", (internal.commit(1)[0][:-1], b"\0\0"), False, "OFFSET_COMMIT", "OffsetCommitKey v0 .partition"),
    ("group", (internal.commit(1)[0], (internal.commit(1)[1] or b"")[:-1]), False, "OFFSET_COMMIT", "8 bytes needed"),
    ("group", (internal.commit(1)[0], b"\0\x09abc"), True, "OFFSET_COMMIT", "supports versions 0-4, not 9"),
    ("group", (internal.commit(1)[0], b""), False, "OFFSET_COMMIT", "OffsetCommitValue"),
    ("transaction", (b"\0\5", b""), True, None, "unknown transaction record type 5"),
    ("share", (b"\0\1", b""), False, "SHARE_UPDATE", "ShareUpdateKey"),
    ("metadata", (None, None), False, None, "metadata record without a value"),
    ("metadata", (None, b""), False, None, "1 bytes needed"),
    ("metadata", (None, b"\1\xff\1\0"), True, None, "unknown metadata record type 255"),
    ("metadata", (None, b"\2\1\0"), True, None, "unknown frame version 2"),
    ("metadata", (None, b"\1\2\x63"), True, None, "TopicRecord supports versions 0, not 99"),
    ("remote_log", (None, b"\1\x09\0"), True, None, "unknown remote_log record type 9"),
]


@quick
@pytest.mark.parametrize(("kind", "record", "unknown", "type", "text"), BAD, ids=lambda value: str(value)[:30])
def test_what_cannot_be_decoded(
    tmp_path: Path, kind: str, record: tuple[bytes | None, bytes | None], unknown: bool, type: str | None, text: str
) -> None:
    path = internal.write(tmp_path / "x-0", [record], base=17)
    [kept] = read_internal_topic(LogSegment(path), kind=kind, errors="keep")
    assert text in str(kept.error) and kept.is_unknown == unknown
    assert (kept.type, kept.offset, kept.version, kept.key, kept.value) == (type, 17, None, *record)
    assert (kept.key_json(), kept.value_json(), committed_offset(kept), transaction_row(kept)) == (None,) * 4
    assert kept.error is not None and kept.error.__traceback__ is kept.error.__context__ is None  # no caller's frame
    with pytest.raises(kwire.KwireError) as caught:
        list(read_internal_topic(LogSegment(path), kind=kind))
    assert str(caught.value).startswith(f"{path}: record at offset 17: ") and text in str(caught.value)
    assert (caught.value.file, caught.value.record_offset) == (str(path), 17)  # type: ignore[attr-defined]


@quick
def test_what_is_no_internal_topic(tmp_path: Path) -> None:
    path = internal.write(tmp_path / "orders-0", [(b"k", b"v")])
    for log in (LogSegment(path), LogDirectory(path), LogDirectory(tmp_path)):
        with pytest.raises(ValueError, match="is of no internal topic: give the kind"):
            list(read_internal_topic(log))
    with pytest.raises(ValueError, match="errors must be 'raise' or 'keep'"):
        list(read_internal_topic(LogSegment(path), kind="group", errors="drop"))  # type: ignore[arg-type]
    with pytest.raises(kwire.UnsupportedVersionError, match="unknown kind of record 'offsets'"):
        decode_internal_record("offsets", next(iter(LogSegment(path).read())))
    internal.write(tmp_path / "__consumer_offsets-3", [internal.commit(1)])
    [record] = read_internal_topic(LogDirectory(tmp_path))
    assert record.type == "OFFSET_COMMIT"


@quick
def test_tables(tmp_path: Path) -> None:
    internal.write(tmp_path / "__consumer_offsets-3", [internal.commit(at) for at in range(5)] + [(b"\0\x63", b"x")])
    internal.write(tmp_path / "__transaction_state-1", [internal.transaction("x", 1, [("a", (2,))])])
    directory = LogDirectory(tmp_path)

    def table(name: str, **options: Any) -> Any:
        return pa.Table.from_batches(internal_batches(directory, name, errors="keep", **options))  # type: ignore[arg-type]

    offsets = table("offsets", rows=2)
    assert [len(batch) for batch in offsets.to_batches()] == [2, 2, 1]
    assert offsets["offset"].to_pylist() == list(range(5))
    assert offsets.schema.field("commit_timestamp").type == pa.timestamp("ms", "UTC")
    assert table("transactions").to_pylist() == [{
        "transactional_id": "x", "producer_id": 7, "producer_epoch": 2, "state": "Ongoing", "timeout_ms": 60_000,
        "partitions": [{"topic": "a", "partition": 2}]}]
    rows = table("records", start_offset=1).to_pylist()
    assert [row["type"] for row in rows] == [*["OFFSET_COMMIT"] * 4, None]
    assert (rows[0]["key"], rows[0]["partition"]) == ('{"group":"g","topic":"t","partition":0}', 3)
    assert rows[-1]["value"] is None and "unknown group record type 99" in rows[-1]["error"]
    with pytest.raises(ValueError, match="table must be one of records, offsets, transactions, not 'x'"):
        table("x")


@quick
def test_tables_of_long_records_have_fewer_rows(tmp_path: Path) -> None:
    """The JSON of a group may have a MiB, and be compressed to a few bytes."""
    member = messages.GroupMetadataValue.MemberMetadata(
        member_id="m", client_id="c", client_host="h", subscription=bytes(1_000_000))
    group = messages.GroupMetadataValue(protocol_type="x", members=[member])
    record = kwire.encode_coordinator_record("group", messages.GroupMetadataKey(group="g"), group, 3)
    internal.write(tmp_path / "__consumer_offsets-3", [record] * 30)
    batches = list(internal_batches(LogDirectory(tmp_path)))
    assert sum(map(len, batches)) == 30
    assert max(batch.nbytes for batch in batches) < 20 << 20


@quick
def test_a_control_batch_that_the_cleaner_has_emptied_says_nothing_of_a_file(tmp_path: Path) -> None:
    """It keeps the last batch of a producer without its records."""
    emptied = kwire.build_batch(
        [], base_offset=0, last_offset=0, producer_id=7, producer_epoch=0, transactional=True, control=True)
    path = internal.write(tmp_path / "__consumer_offsets-3", [internal.commit(1)])
    copy = tmp_path / "copy.log"
    copy.write_bytes(emptied + path.read_bytes())
    assert internal_kind(LogSegment(copy)) == "group"
