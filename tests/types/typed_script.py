"""What type checkers know of kwire: checked by mypy and basedpyright, not run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_type
from uuid import UUID

import polars

import kwire
from kwire import messages, net, schema, storage
from kwire.shared_iterator import SharedIterator
from kwire.storage.reading.segment_reader import ColumnBatches, SegmentBatches


def of_messages(data: bytes, name: str) -> None:
    answer = kwire.decode(messages.FetchResponse, 12, data)
    assert_type(answer, messages.FetchResponse)
    assert_type(answer.responses[0].partitions[0].records, bytes | None)
    assert_type(kwire.decode("FetchResponse", 12, data), kwire.Message)
    assert_type(kwire.decode(name, 12, data), kwire.Message)
    assert_type(kwire.decode_from(messages.MetadataRequest, 9, data), tuple[messages.MetadataRequest, int])
    assert_type(kwire.decode_from(name, 9, data, 4), tuple[kwire.Message, int])
    assert_type(kwire.encode(answer, 12), bytes)
    assert_type(kwire.to_json(answer, 12), dict[str, Any])
    assert_type(kwire.from_json(messages.TopicRecord, 0, {}), messages.TopicRecord)
    assert_type(kwire.from_json(name, 0, {}), kwire.Message)
    assert_type(kwire.decode_metadata_record(data), tuple[kwire.Message, int])
    record, _ = kwire.decode_metadata_record(data)
    if isinstance(record, messages.TopicRecord):
        assert_type(record.topic_id, UUID)
    offset = kwire.decode_coordinator_record("group", data, None)
    assert_type(offset.key, kwire.Message | bytes)
    assert_type(offset.value, kwire.Message | bytes | None)
    table = kwire.columns_of(messages.FetchRequest, 4, [data])
    assert_type(table, kwire.MessageColumns)
    assert_type(table["message"], kwire.Column)


def of_fields() -> None:
    partition = messages.FetchRequest.FetchPartition(partition=1)
    topic = messages.FetchRequest.FetchTopic(topic="a", partitions=[partition])
    request = messages.FetchRequest(topics=(topic,), forgotten_topics_data=[])
    assert_type(request.topics[0].partitions[0].fetch_offset, int)
    assert_type(request.cluster_id, str | None)
    assert_type(request.replica_state, messages.FetchRequest.ReplicaState)
    assert_type(request.topics[0].topic_id, UUID)
    assert_type(messages.MetadataResponse().topics[0].partitions[0].isr_nodes, tuple[int, ...])
    assert_type(messages.OffsetCommitKey(group="g").unknown_tags, dict[int, bytes])


def of_frames(frame: bytes) -> None:
    request = kwire.decode_request(frame)
    assert_type(request, kwire.Request)
    assert_type(request.header, messages.RequestHeader)
    assert_type(request.message, kwire.Message)
    assert_type(kwire.decode_request_header(frame).client_id, str | None)
    assert_type(kwire.decode_response(frame, request).header, messages.ResponseHeader)
    assert_type(kwire.FrameReader().feed(frame), list[bytes])


def of_records(data: bytes, errors: str) -> None:
    for batch in kwire.read_batches(data):
        assert_type(batch, kwire.RecordBatch)
        for record in batch:
            assert_type(record, kwire.Record)
            assert_type(record.value, bytes | None)
            assert_type(record.headers, tuple[tuple[str, bytes | None], ...])
            assert_type(record.control, kwire.Message | None)
    for kept in kwire.read_batches(data, errors="keep"):
        assert_type(kept, kwire.RecordBatch | kwire.BadBatch)
        if isinstance(kept, kwire.BadBatch):
            assert_type(kept.error, kwire.KwireError)
    for either in kwire.read_batches(data, errors=errors):
        assert_type(either, kwire.RecordBatch | kwire.BadBatch)
    assert_type(kwire.build_batch([(1, b"k", None), (2, None, b"v", [("h", b"x")])]), bytes)
    columns = kwire.columns([data, memoryview(data)], ["offset", "value"])
    assert_type(columns, kwire.RecordColumns)
    assert_type(columns.bad, list[kwire.BadBatch])
    assert_type(columns.to_polars(), polars.DataFrame)
    assert_type(columns.to_pylist(), list[dict[str, Any]])
    assert_type(kwire.build_batches(columns), list[tuple[bytes, int, int]])
    assert_type(kwire.crc32c(data), int)


def of_the_schema() -> None:
    assert_type(schema.releases(), tuple[str, ...])
    assert_type(schema.apis("3.9")[0].versions, schema.Versions)
    assert_type(schema.message("FetchRequest"), schema.Message)
    assert_type(schema.ErrorCode(35).retriable, bool)
    assert_type(schema.ErrorCode.NONE, schema.ErrorCode)
    assert_type(schema.metadata_versions(), tuple[schema.MetadataVersion, ...])


def of_storage(path: str, errors: str) -> None:
    segment = storage.LogSegment(path)
    for record in segment.read(start_offset=3, committed=True):
        assert_type(record, kwire.Record)
    assert_type(segment.batches(), SegmentBatches[kwire.RecordBatch])
    assert_type(next(segment.batches(errors="keep")), kwire.RecordBatch | kwire.BadBatch)
    assert_type(segment.columns(["key"], end_offset=9), kwire.RecordColumns)
    assert_type(segment.column_batches(rows=10), ColumnBatches)
    assert_type(next(segment.column_batches()), kwire.RecordColumns)
    assert_type(segment.verify(), list[storage.Finding])
    directory = storage.LogDirectory(path)
    assert_type(directory["orders", 0], storage.Partition)
    assert_type(directory.read(start_offset=3), SharedIterator[kwire.Record])
    assert_type(next(directory.batches()), kwire.RecordBatch)
    assert_type(next(directory["orders", 0].batches(errors=errors)), kwire.RecordBatch | kwire.BadBatch)
    assert_type(next(directory.column_batches(rows=3)), kwire.RecordColumns)
    assert_type(directory.columns(), kwire.RecordColumns)
    image = storage.ClusterImage.read(path, release="4.0")
    assert_type(image.topics["orders"].record, messages.TopicRecord)
    assert_type(image.topics["orders"].partitions[0].isr, tuple[int, ...])
    assert_type(image.brokers[1], messages.RegisterBrokerRecord)
    assert_type(image.records(), Iterator[tuple[kwire.Message, int]])
    lower, losses = image.downgrade("3.9-IV0")
    assert_type(lower, storage.ClusterImage)
    assert_type(losses, list[storage.Loss])


async def of_brokers(where: str, request: kwire.RequestMessage[messages.VoteResponse]) -> None:
    async with net.connect(where) as connection:
        assert_type(connection, net.Connection)
        assert_type(await connection.send(messages.MetadataRequest(topics=None)), messages.MetadataResponse)
        assert_type(await connection.send(messages.ProduceRequest(acks=0)), messages.ProduceResponse | None)
        assert_type(await connection.send(request, 1, timeout=3), messages.VoteResponse)
        assert_type(connection.versions, dict[str, tuple[int, int]])
    async with net.Cluster(where, partial=True) as cluster:
        assert_type(cluster.brokers[0].rack, str | None)
        groups = await cluster.send(messages.ListGroupsRequest(), to="any")
        assert_type(groups, messages.ListGroupsResponse)
        assert_type(await cluster.describe_features(), net.FeatureMetadata)
        assert_type(cluster.can(net.Feature("f", needs={"Fetch": (4, 11)})), bool)
    with net.connect_sync(where, client_id=None) as plain:
        assert_type(plain.send(messages.ApiVersionsRequest()).api_keys[0].max_version, int)


def of_captures(path: str) -> None:
    for event in kwire.capture.read_capture(path):
        assert_type(event, kwire.capture.Exchange | kwire.capture.Lost)
        if isinstance(event, kwire.capture.Exchange):
            assert_type(event.decode_request(), kwire.Request)
            assert_type(event.decode_response(), kwire.Response | None)
    assert_type(kwire.capture.audit([path], "4.0"), kwire.capture.Audit)
    assert_type(kwire.pages.__name__, str)
    assert_type(kwire.spark.register.__name__, str)
