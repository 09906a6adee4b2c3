"""columns_of against the object path: every message of the vectors, paths, bad payloads, limits."""

from __future__ import annotations

import functools
import uuid
from typing import Any

import pyarrow as pa
import pytest

import kwire
from kwire import messages, schema
from kwire.codec import message_columns
from kwire_c import columns as engine
from tests.codec import vectors

pytestmark = pytest.mark.quick


def as_row(value: Any, fields: tuple[schema.Field, ...], version: int) -> dict[str, Any]:
    """What Arrow should show of an object."""
    row = {}
    for field in fields:
        if version in field.versions:
            row[field.snake_name] = as_value(getattr(value, field.snake_name), field, version)
    return row


def as_value(value: Any, field: schema.Field, version: int) -> Any:
    if isinstance(value, (list, tuple)):
        return [as_value(item, field, version) for item in value]
    if field.struct and value is not None:
        return as_row(value, field.fields, version)
    return value.bytes if isinstance(value, uuid.UUID) else value


@pytest.mark.parametrize("name", vectors.KINDS)
def test_whole_messages_are_the_objects(name: str) -> None:
    groups: dict[tuple[str, int], list[bytes]] = {}
    for vector in vectors.messages(name):
        if len(vector["hex"]) < 100_000:
            groups.setdefault((vector["message"], vector["version"]), []).append(bytes.fromhex(vector["hex"]))
    for (message, version), payloads in groups.items():
        fields = schema.message(message).fields
        expected = [as_row(kwire.decode(message, version, data), fields, version) for data in payloads]
        columns = kwire.columns_of(message, version, payloads)
        if not expected[0]:
            assert len(columns) == len(payloads)
            continue
        table = pa.table(columns)
        table.validate(full=True)
        seen = table.column("message").to_pylist()
        assert repr(ordered(seen)) == repr(ordered(expected)), (message, version)  # NaN too
        assert len(columns) == len(payloads) and columns.names == ("message",)


def test_message_columns_have_the_face_of_record_columns() -> None:
    payload = kwire.encode(messages.HeartbeatRequest(group_id="g", generation_id=7), 0)
    both = kwire.columns_of("HeartbeatRequest", 0, [payload] * 3, ["generation_id", "group_id"])
    numbers, texts = both["generation_id"], both["group_id"]
    assert type(numbers) is type(texts) is kwire.Column
    assert memoryview(numbers).format == "i" and numbers.to_numpy().tolist() == [7, 7, 7]
    assert texts.to_numpy().tolist() == ["g"] * 3
    with pytest.raises(BufferError, match="'group_id' is not a single fixed-width buffer"):
        memoryview(texts)
    assert repr(numbers) == "<Column 'generation_id': 3 rows in 1 chunks>"


def ordered(value: Any) -> Any:
    """With keys sorted: a struct used at several places has one order of fields."""
    if isinstance(value, list):
        return [ordered(item) for item in value]
    return {key: ordered(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


@pytest.mark.parametrize("name", vectors.KINDS)
def test_each_field_alone_is_as_in_the_whole(name: str) -> None:
    """Unselected fields are skipped without an effect on the others: arrays of any length, nulls, strings, structs."""
    groups: dict[tuple[str, int], list[bytes]] = {}
    for vector in vectors.messages(name):
        if len(vector["hex"]) < 4000:
            groups.setdefault((vector["message"], vector["version"]), []).append(bytes.fromhex(vector["hex"]))
    for (message, version), payloads in groups.items():
        whole = pa.array(kwire.columns_of(message, version, payloads)["message"])
        for field in schema.message(message).fields:
            if version in field.versions:
                alone = kwire.columns_of(message, version, payloads, [field.snake_name])[field.snake_name]
                wanted = pa.array(whole.field(field.snake_name))
                assert repr(pa.array(alone).to_pylist()) == repr(wanted.to_pylist()), (message, version, field.name)
                assert repr(alone.to_numpy().tolist()) == repr(wanted.to_pylist()), (message, version, field.name)


def test_a_number_inside_a_null_struct_is_null() -> None:
    """It was 0, as if it had been in the message."""
    R = messages.DescribeTopicPartitionsRequest
    cursors = [None, R.Cursor(topic_name="t", partition_index=7), None, R.Cursor(topic_name="u")]
    asked = [R.TopicRequest(name="a"), R.TopicRequest(name="b")]
    for tags in ({}, {100: b""}):  # read without objects, and with them
        payloads = [kwire.encode(R(topics=asked, cursor=cursor, unknown_tags=tags), 0) for cursor in cursors]
        alone = kwire.columns_of("DescribeTopicPartitionsRequest", 0, payloads, ["cursor.partition_index"])
        column = alone["cursor.partition_index"]
        assert column.to_pylist() == pa.array(column).to_pylist() == [None, 7, None, 0]
        assert column.null_count == 2 and column.to_numpy().tolist() == [None, 7, None, 0]
        paths = ["cursor.topic_name", "cursor.partition_index", "topics.name"]
        rows = kwire.columns_of("DescribeTopicPartitionsRequest", 0, payloads, paths).to_pylist()
        wanted = [(None, None), ("t", 7), (None, None), ("u", 0)]
        assert [tuple(row.values()) for row in rows] == [(*pair, name) for pair in wanted for name in "ab"]


def metadata(topics: int, partitions: int) -> bytes:
    R = messages.MetadataResponse
    return kwire.encode(R(cluster_id="c", topics=[
        R.MetadataResponseTopic(name=f"t{i}" if i else "é", topic_id=uuid.UUID(int=i), partitions=[
            R.MetadataResponsePartition(partition_index=j, error_code=i, isr_nodes=range(j)) for j in range(partitions)
        ]) for i in range(topics)
    ]), 12)


def test_plain_messages_are_read_without_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    R = messages.MetadataResponse
    parts = [R.MetadataResponsePartition(partition_index=i, isr_nodes=range(size), replica_nodes=range(size // 3))
             for i, size in enumerate((3, 3, 0, 1, 200, 2, 2, 200, 3))]
    response = R(topics=[R.MetadataResponseTopic(name="t", partitions=parts) for _ in range(2)])
    data = [kwire.encode(response, version) for version in (8, 12)]
    monkeypatch.setattr(engine, "decode", None)
    for version, payload in zip((8, 12), data, strict=True):
        columns = kwire.columns_of("MetadataResponse", version, [payload], ["topics.partitions.partition_index"])
        assert pa.array(columns["topics.partitions.partition_index"]).to_pylist() == list(range(9)) * 2
        whole = pa.table(kwire.columns_of("MetadataResponse", version, [payload])).column("message").to_pylist()
        seen = [len(part["isr_nodes"]) for part in whole[0]["topics"][1]["partitions"]]
        assert seen == [3, 3, 0, 1, 200, 2, 2, 200, 3]


def test_paths() -> None:
    payloads = [metadata(3, 2), metadata(0, 0), metadata(2, 0), metadata(2, 1)]
    paths = ["cluster_id", "topics.name", "topics.topic_id", "topics.partitions.error_code",
             "topics.partitions.isr_nodes"]
    table = pa.table(kwire.columns_of("MetadataResponse", 12, payloads, paths))
    table.validate(full=True)
    rows = [
        [message.cluster_id, topic.name, topic.topic_id.bytes, part.error_code, list(part.isr_nodes)]
        for message in (kwire.decode("MetadataResponse", 12, data) for data in payloads)
        for topic in message.topics for part in topic.partitions
    ]
    assert [list(row.values()) for row in table.to_pylist()] == rows and len(rows) == 8
    assert table.column_names == paths
    outer = kwire.columns_of("MetadataResponse", 12, payloads, ["topics.partitions", "topics.name"])
    assert len(outer) == 7 and len(outer["topics.partitions"]) == 7
    top = kwire.columns_of("MetadataResponse", 12, payloads, ["controller_id"])
    assert pa.array(top["controller_id"]).to_pylist() == [-1] * 4 and "controller_id" in top
    lists = pa.table(kwire.columns_of("MetadataResponse", 12, payloads, ["brokers", "topics.name"]))
    assert lists.num_rows == 7


@pytest.mark.parametrize("paths", [
    ["brokers.host", "topics.name"], ["nothing"], ["topics.nothing"], ["topics.name.deeper"], [],
    ["cluster_id", "cluster_id"], ["replica_id"],
])
def test_paths_there_are_not(paths: list[str]) -> None:
    with pytest.raises(ValueError):
        kwire.columns_of("MetadataResponse", 12, [metadata(1, 1)], paths)


def test_bad_payloads() -> None:
    good, bad = metadata(2, 2), metadata(2, 2)[:-1]
    with pytest.raises(kwire.DecodeError):
        kwire.columns_of("MetadataResponse", 12, [good, bad])
    for paths in (None, ["topics.partitions.error_code"]):
        clean = pa.table(kwire.columns_of("MetadataResponse", 12, [good, good], paths))
        columns = kwire.columns_of("MetadataResponse", 12, [good, bad, good, good + b"\0"], paths, errors="keep")
        assert pa.table(columns) == clean
        assert [(row.number, bytes(row.raw)) for row in columns.bad] == [(1, bad), (3, good + b"\0")]
        assert isinstance(columns.bad[0].error, kwire.DecodeError)
        assert columns.bad[0].error.__traceback__ is None  # which would hold the columns and all payloads
    lenient = kwire.columns_of("MetadataResponse", 12, [good + b"\0"], lenient=True)
    assert pa.table(lenient) == pa.table(kwire.columns_of("MetadataResponse", 12, [good]))
    with pytest.raises(kwire.UnsupportedVersionError):
        kwire.columns_of("MetadataResponse", 99, [])
    assert len(kwire.columns_of("MetadataResponse", 12, [])) == 0
    assert pa.table(kwire.columns_of("MetadataResponse", 12, [])).num_rows == 0


def test_every_cut_gives_what_decode_gives() -> None:
    data = metadata(2, 2)
    for size in range(len(data)):
        columns = kwire.columns_of("MetadataResponse", 12, [data, data[:size], data], errors="keep")
        assert len(columns) == 2 and len(columns.bad) == 1


def test_columns_outlive_their_input() -> None:
    payload = bytearray(metadata(3, 3))
    column = kwire.columns_of("MetadataResponse", 12, [payload], ["topics.name"])["topics.name"]
    payload[:] = bytes(len(payload))
    array = pa.array(column)
    del column
    assert array.to_pylist() == ["é", "t1", "t2"]


def test_a_full_column_begins_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full at 24 here, at 2 GiB else: columns of messages, and outer values that repeat beside the rows below."""
    payloads = [metadata(topics, topics % 3) for topics in (3, 1, 0, 5, 2, 2, 4) * 4]
    paths = ["cluster_id", "topics.name", "topics.is_internal", "topics.partitions.error_code",
             "topics.partitions.isr_nodes"]
    for names in (None, paths, paths[:3]):
        whole = pa.table(kwire.columns_of("MetadataResponse", 12, payloads, names))
        with monkeypatch.context() as patch:
            patch.setattr(message_columns, "MessageGatherer", functools.partial(engine.MessageGatherer, most=24))
            columns = kwire.columns_of("MetadataResponse", 12, payloads, names)
            cut = pa.table(columns)
            cut.validate(full=True)
            assert cut == whole and len(columns) == whole.num_rows
            assert cut.column(0).num_chunks > 2
            name = columns.names[0]
            assert len(columns[name]) == len(columns) and columns[name].null_count == whole[name].null_count
            with pytest.raises(ValueError, match="chunks"):
                pa.array(columns[name])
            few, some = payloads[:2], [payloads[0], metadata(25, 0), payloads[1]]
            with pytest.raises(kwire.LimitError):
                kwire.columns_of("MetadataResponse", 12, some, names)
            kept = kwire.columns_of("MetadataResponse", 12, some, names, errors="keep")
            assert pa.table(kept) == pa.table(kwire.columns_of("MetadataResponse", 12, few, names))
            assert [(bad.number, type(bad.error)) for bad in kept.bad] == [(1, kwire.LimitError)]


def test_a_path_that_no_message_has_is_escaped_and_cut() -> None:
    for path in ("x" * 20_000, "topics.\x1b[31m" * 1000, "\x1b]0;x\x07"):
        with pytest.raises(ValueError, match="FetchRequest v12 has no field") as raised:
            kwire.columns_of("FetchRequest", 12, [], [path])
        assert str(raised.value).isprintable() and len(str(raised.value)) < 200


def test_wrong_arguments() -> None:
    data = metadata(1, 1)
    for wrong in ("topics", [None], [5], 5):
        with pytest.raises(TypeError):
            kwire.columns_of("MetadataResponse", 12, [data], wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no field"):
        kwire.columns_of("MetadataResponse", 12, [data], [""])
    with pytest.raises(ValueError, match="errors"):
        kwire.columns_of("MetadataResponse", 12, [data], errors="drop")  # type: ignore[arg-type]
    for payload in (None, 5, "text"):
        with pytest.raises(TypeError):
            kwire.columns_of("MetadataResponse", 12, [payload], errors="keep")
