"""columns_of against the object path: every message of the vectors, paths, bad payloads, limits."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

import kwire
from kwire import messages, schema
from tests.messages import vectors

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


def ordered(value: Any) -> Any:
    """With keys sorted: a struct used at several places has one order of fields."""
    if isinstance(value, list):
        return [ordered(item) for item in value]
    return {key: ordered(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def metadata(topics: int, partitions: int) -> bytes:
    R = messages.MetadataResponse
    return kwire.encode(R(cluster_id="c", topics=[
        R.MetadataResponseTopic(name=f"t{i}" if i else "é", topic_id=uuid.UUID(int=i), partitions=[
            R.MetadataResponsePartition(partition_index=j, error_code=i, isr_nodes=range(j)) for j in range(partitions)
        ]) for i in range(topics)
    ]), 12)


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
