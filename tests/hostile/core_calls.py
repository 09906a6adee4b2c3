"""Calls of the public functions of kwire, kwire.schema, kwire.net and kwire.capture, each with arguments that work."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import kwire
from kwire import capture, messages, net, schema
from kwire.fleet import Fleet

Calls = dict[str, tuple[Callable[..., Any], dict[str, Any]]]

_BATCH = kwire.build_batch([(i, b"k%d" % i, b"v" * 40, [("h", b"x"), ("i", None)]) for i in range(5)])
_MESSAGE = messages.FetchRequest(topics=[messages.FetchRequest.FetchTopic(
    topic="t", partitions=[messages.FetchRequest.FetchPartition(partition=i) for i in range(3)])])
_DATA, _FRAME = kwire.encode(_MESSAGE, 12), kwire.encode_request(_MESSAGE, 12, client_id="c")
_ANSWER = kwire.encode_response(messages.FetchResponse(), 12)
_HEADER = messages.RequestHeader(request_api_key=1, request_api_version=12)
_READ = {"verify_crc": True, "errors": "raise", "max_batch_bytes": 1 << 20, "strict_tail": False}
_FORM = {
    "magic": 2, "codec": "none", "level": None, "base_offset": 0, "timestamp_type": "create", "producer_id": -1,
    "producer_epoch": -1, "base_sequence": -1, "transactional": False, "control": False,
    "partition_leader_epoch": -1, "delete_horizon": None,
}  # fmt: skip


def of_codec() -> Calls:
    """Those of kwire itself; each function by its name, or with what of it is tried."""
    table = kwire.columns(_BATCH, fields=("offset", "timestamp", "key", "value", "headers"))
    record = messages.TopicRecord(name="t")
    deleted = messages.RemotePartitionDeleteMetadataRecord()
    committed = {"key": messages.OffsetCommitKey(), "value": messages.OffsetCommitValue(), "value_version": 1}
    return {
        "decode": (kwire.decode, {"message": "FetchRequest", "version": 12, "data": _DATA, "lenient": False,
                                  "views": False}),
        "decode_from": (kwire.decode_from, {"message": "FetchRequest", "version": 12, "data": _DATA, "position": 0}),
        "encode": (kwire.encode, {"message": _MESSAGE, "version": 12}),
        "to_json": (kwire.to_json, {"message": _MESSAGE, "version": 12}),
        "from_json": (kwire.from_json, {"message": "FetchRequest", "version": 12,
                                        "value": kwire.to_json(_MESSAGE, 12)}),
        "decode_request": (kwire.decode_request, {"frame": _FRAME, "lenient": False}),
        "decode_request_header": (kwire.decode_request_header, {"data": _FRAME, "lenient": False}),
        "decode_response": (kwire.decode_response, {"frame": _ANSWER, "request": None, "api": 1, "version": 12}),
        "encode_request": (kwire.encode_request, {"message": _MESSAGE, "version": 12, "correlation_id": 1,
                                                  "client_id": "c", "header_tags": {5: b"x"}}),
        "encode_response": (kwire.encode_response, {"message": messages.FetchResponse(), "version": 12,
                                                    "correlation_id": 1, "header_tags": None}),
        "Request.to_bytes": (lambda **given: kwire.Request(message=_MESSAGE, header_version=2, **given).to_bytes(),
                             {"header": _HEADER, "trailing": b""}),
        "FrameReader": (lambda max_size: kwire.FrameReader(max_size).feed(b"\0\0\0\1x"), {"max_size": 100}),
        "FrameReader.feed": (lambda data: kwire.FrameReader(100).feed(data), {"data": b"\0\0\0\1x"}),
        "pack_frame": (kwire.pack_frame, {"frame": _FRAME}),
        "crc32c": (kwire.crc32c, {"data": _BATCH, "value": 0}),
        "read_batches": (_records, {"data": _BATCH, **_READ}),
        "build_batch": (kwire.build_batch, {"records": [(1, b"k", b"v")], **_FORM, "base_timestamp": None,
                                            "max_timestamp": None, "last_offset": None}),
        "build_batch, magic 1": (kwire.build_batch, {"records": [(1, b"k", b"v")], **_FORM, "magic": 1,
                                                     "codec": "gzip"}),
        "build_batches": (kwire.build_batches, {"columns": table, "batch_bytes": 100, "batch_records": 3, **_FORM}),
        "a row": (lambda timestamp, key, value, header: kwire.build_batch([(timestamp, key, value, header)]),
                  {"timestamp": 5, "key": b"k", "value": b"v", "header": [("h", b"x")]}),
        "a header": (lambda key, value: kwire.build_batch([(5, b"k", b"v", [(key, value)])]),
                     {"key": "h", "value": b"x"}),
        "Record": (kwire.Record, {"offset": 1, "timestamp": 2, "key": b"k", "value": b"v", "headers": [("h", b"v")],
                                  "timestamp_type": "create", "sequence": 1, "attributes": 0}),
        "columns": (kwire.columns, {"data": _BATCH, "fields": ("offset", "value"), "committed": False,
                                    "control": False, "views": False, **_READ}),
        "columns, second": (lambda data: kwire.columns([_BATCH, data]), {"data": _BATCH}),
        "columns_of": (kwire.columns_of, {"message": "FetchRequest", "version": 12, "payloads": [_DATA],
                                          "lenient": False, "errors": "raise"}),
        "columns_of, flat": (lambda path: kwire.columns_of("FetchRequest", 12, [_DATA], path),
                             {"path": ["topics.partitions.partition"]}),
        "columns_of, second": (lambda payload: kwire.columns_of("FetchRequest", 12, [_DATA, payload]),
                               {"payload": _DATA}),
        "decode_metadata_record": (kwire.decode_metadata_record, {"data": kwire.encode_metadata_record(record, 0)}),
        "encode_metadata_record": (kwire.encode_metadata_record, {"message": record, "version": 0}),
        "decode_coordinator_record": (kwire.decode_coordinator_record, {
            "kind": "group", "key": b"\0\1\0\1g\0\1t\0\0\0\0", "value": None}),
        "encode_coordinator_record": (kwire.encode_coordinator_record, {"kind": "group", **committed}),
        "decode_remote_log_record": (kwire.decode_remote_log_record, {
            "data": kwire.encode_remote_log_record(deleted, 0)}),
        "encode_remote_log_record": (kwire.encode_remote_log_record, {"message": deleted, "version": 0}),
        **_fields(),
    }  # fmt: skip


def _records(**given: Any) -> Iterator[Any]:
    return itertools.chain.from_iterable(kwire.read_batches(**given))


def _fields() -> Calls:
    """Each kind of field of a message: set, then encoded and shown."""
    found: Calls = {}
    for made, version in ((messages.FetchRequest, 12), (messages.ApiVersionsResponse, 3),
                          (messages.SaslAuthenticateRequest, 2), (messages.DescribeQuorumResponse, 2),
                          (messages.DescribeClientQuotasResponse, 1)):  # fmt: skip
        for field in schema.message(made.__name__).fields:
            found[f"{made.__name__}.{field.snake_name}"] = (
                lambda made=made, version=version, **given: _used(made(**given), version),
                {field.snake_name: getattr(made(), field.snake_name)})  # fmt: skip
    return found


def _used(message: Any, version: int) -> None:
    repr(message)
    kwire.to_json(message, version)
    kwire.encode(message, version)


def of_schema() -> Calls:
    """Those of kwire.schema."""
    named: dict[str, dict[str, Any]] = {
        "version_notes": {"name": "Fetch", "release": "4.4"}, "canonical": {"name": "Fetch"},
        "message": {"name": "FetchRequest"}, "message_names": {"type": "request"},
        "difference": {"old": "3.9", "new": "4.4"}, "features": {"release": "4.4"},
        "metadata_bounds": {"release": "4.4"}, "metadata_version": {"wanted": 1},
        "metadata_versions": {"release": "4.4", "old": False}, "section": {"name": "Fetch"},
        "sections": {"release": "4.4"}, "record_type": {"kind": "metadata", "type": 3},
        "record_types": {"kind": "metadata"}, "api": {"name": "Fetch", "release": "4.4"}, "api_by_release": {"key": 1},
        "apis": {"release": "4.4"}, "is_at_least": {"release": "4.4", "other": "3.9"},
        "patch_release": {"release": "4.4"}, "release_after": {"release": "3.9"}, "release_name": {"text": "4.4"},
        "releases": {"old": False}, "message_name": {"name": "FetchRequest", "release": "4.4"},
        "message_of_release": {"name": "FetchRequest", "release": "3.9"},
        "field_changes": {"api": "Fetch", "name": "FetchRequest", "start": 4, "end": 12}, "ErrorCode": {"value": 35},
    }  # fmt: skip
    return {
        **{f"schema.{name}": (getattr(schema, name), valid) for name, valid in named.items()},
        "Message.check": (schema.message("FetchRequest").check, {"version": 4}),
        "Api.request_header_version": (schema.api(1).request_header_version, {"version": 4}),
    }


def of_net(bootstrap: str) -> Calls:
    """Those of kwire.net, with a broker at this address."""
    feature = net.Feature("x", {"Fetch": (0, 3)}, {"a": 1})
    cluster = net.Cluster(bootstrap)
    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": 'x required username="a" password="b";'}
    connecting = {"client_id": "x", "timeout": 3, "probe_timeout": 1, "tls": False, "sasl": None,
                  "assume_release": None, "deny": None, "unstable": False, "max_frame": 1 << 20, "strict": False}

    def opened(**given: Any) -> Any:
        with net.connect_sync(bootstrap, **{"timeout": 1} | given) as connection:
            return connection.versions

    def sent(**given: Any) -> Any:
        with net.connect_sync(bootstrap, timeout=3) as connection:
            return connection.send(**given)

    return {
        "connect_sync": (opened, connecting),
        "SyncConnection.send": (sent, {"message": messages.MetadataRequest(topics=[]), "version": None, "timeout": 3}),
        "Cluster": (lambda **given: net.Cluster(bootstrap, **given), {
            "partial": False, "lazy": False, "controllers": False, "timeout": 3, "client_id": "x"}),
        "Cluster, address": (lambda bootstrap: net.Cluster(bootstrap), {"bootstrap": "h:1"}),
        "Cluster.can": (cluster.can, {"wanted": "headers"}),
        "keywords_of": (net.keywords_of, {"properties": settings}),
        **{f"keywords_of, {name}": (
            lambda properties, name=name: net.keywords_of(settings | {name: properties}), {"properties": "PLAIN"})
           for name in ("sasl.mechanism", "sasl.jaas.config", "client.id", "request.timeout.ms")},
        "Feature": (net.Feature, {"name": "x", "needs": {"Fetch": (0, 3)}, "levels": {}, "since": "KIP"}),
        "Feature.usable": (feature.usable, {"versions": {"Fetch": (0, 3)}, "levels": {}}),
        "Feature.lacking": (feature.lacking, {"versions": {"Fetch": (0, 3)}}),
        "FeatureUpdate": (net.FeatureUpdate, {"level": 3, "downgrade": "NONE", "allow_downgrade": None}),
        "FeatureUpdate.level_of": (net.FeatureUpdate("4.0-IV3").level_of, {"feature": "metadata.version"}),
    }  # fmt: skip


def of_capture(folder: Path) -> Calls:
    """Those of kwire.capture, whose files are in this folder."""
    connection = capture.Connection("c", 0, "1.1.1.1:5", "2.2.2.2:9092")
    frame = capture.Frame("request", _FRAME, 5)
    made = str(folder / "made")
    with capture.FrameWriter(made) as writer:
        writer.write(connection, frame, None)
    number = itertools.count()

    def written(**given: Any) -> None:
        with capture.FrameWriter(str(folder / f"w{next(number)}")) as writer:
            writer.write(**{"connection": connection, "frame": frame, "exchange": None} | given)

    return {
        "captures": (capture.captures, {"paths": made + ".jsonl.gz"}),
        "read_capture": (capture.read_capture, {"path": made + ".jsonl.gz"}),
        "audit": (capture.audit, {"paths": made + ".jsonl.gz", "to": "4.4"}),
        "Audit": (capture.Audit, {"to": "4.4"}),
        "Audit.add": (lambda event: capture.Audit("4.4").add(event), {"event": capture.Lost("c", "r")}),
        "FrameWriter.write": (written, {"connection": connection, "frame": frame, "exchange": None}),
    }


@contextmanager
def calls(folder: Path) -> Iterator[Calls]:
    """All of them by name; the broker of kwire.net runs meanwhile."""
    with Fleet("4.4") as fleet:
        yield of_codec() | of_schema() | of_net(fleet.bootstrap) | of_capture(folder)
