"""The same for kwire.storage, net and capture: an error of a wrong argument names it, and is no foreign one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire import capture, net, storage
from tests.types.test_wrong_arguments import BATCH, WRONG

pytestmark = [pytest.mark.quick, pytest.mark.checkout]

SPAN = {"start_offset": 0, "end_offset": 9, "start_timestamp": 0, "end_timestamp": 9, "max_batch_bytes": 99}
CONNECTION = {
    "where": "host:1", "client_id": "me", "timeout": 1, "probe_timeout": 1, "tls": False, "sasl": None,
    "assume_release": "0.9.0", "deny": {}, "max_frame": 10,
}  # fmt: skip
Call = tuple[Callable[..., Any], dict[str, Any]]
# words by which an error names an argument, beside its name
WORDS = {
    "paths": "path", "where": "address", "bootstrap": "address", "wanted": "feature",
    "assume_release": "release", "key": "partition", "metadata_version": "metadata.version", "to": "release",
}  # fmt: skip


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Call]:
    """Name -> (function, arguments with which it works)."""
    folder = tmp_path_factory.mktemp("log")
    path = folder / "orders-0" / f"{0:020}.log"
    path.parent.mkdir()
    path.write_bytes(BATCH)
    segment, directory = storage.LogSegment(path), storage.LogDirectory(folder)
    partition, image = directory["orders", 0], storage.ClusterImage()
    record = storage.decode_internal_record("group", kwire.Record(1, 1, b"", b""))
    bytes_range = {"start": 0, "end": 9}

    def whole(method: Callable[..., Any]) -> Callable[..., list[Any]]:
        return lambda **arguments: list(method(**arguments))

    return {
        "LogSegment": (storage.LogSegment, {"path": path, "partition": 0, "size": 1}),
        "LogSegment.batches": (whole(segment.batches), {**bytes_range, "errors": "raise", "max_batch_bytes": 99}),
        "LogSegment.read": (whole(segment.read), SPAN),
        "LogSegment.columns": (segment.columns, {**SPAN, "fields": ["key"], "errors": "raise"}),
        "LogSegment.column_batches": (whole(segment.column_batches), {
            **SPAN, **bytes_range, "fields": ["key"], "errors": "raise", "rows": 1, "progress": None}),
        "LogSegment.headers": (whole(segment.headers), bytes_range),
        "LogSegment.split": (segment.split, {"partition_bytes": 5}),
        "LogSegment.seek": (segment.seek, {"offset": 1}),
        "LogSegment.seek_time": (segment.seek_time, {"timestamp": 1}),
        "LogSegment.boundary": (segment.boundary, {"guess": 1}),
        "Partition.read": (whole(partition.read), SPAN),
        "Partition.columns": (partition.columns, {**SPAN, "fields": ["key"], "errors": "raise"}),
        "LogDirectory": (storage.LogDirectory, {"path": folder, "topics": ["orders"], "partitions": [0]}),
        "LogDirectory[]": (lambda key: directory[key], {"key": ("orders", 0)}),
        "LogDirectory.batches": (whole(directory.batches), {"errors": "raise", "max_batch_bytes": 99}),
        "LogDirectory.read": (whole(directory.read), SPAN),
        "LogDirectory.columns": (directory.columns, {**SPAN, "fields": ["key"], "errors": "raise"}),
        "discover": (storage.discover, {"paths": folder, "topics": ["orders"], "partitions": [0]}),
        "ClusterImage.diff": (image.diff, {"other": image}),
        "ClusterImage.downgrade": (image.downgrade, {"metadata_version": 7}),
        "SegmentWriter": (lambda **arguments: storage.SegmentWriter(**{"folder": _new(folder)} | arguments), {
            "topic": "orders", "partition": 1, "base_offset": 0, "segment_bytes": 9, "index_interval_bytes": 9}),
        "SegmentWriter.append": (lambda data: storage.SegmentWriter(_new(folder), "t", 0).append(data), {
            "data": BATCH}),
        "read_side_file": (storage.read_side_file, {"path": folder / "none.index"}),
        "read_internal_topic": (whole(storage.read_internal_topic), {
            "log": segment, "kind": "group", "errors": "keep", "start_offset": 0}),
        "internal_kind": (storage.internal_kind, {"log": segment}),
        "internal_batches": (whole(storage.internal_batches), {
            "log": segment, "table": "records", "rows": 9, "kind": "group", "errors": "keep"}),
        "decode_internal_record": (storage.decode_internal_record, {"kind": "group", "record": kwire.Record()}),
        "committed_offset": (storage.committed_offset, {"record": record}),
        "transaction_row": (storage.transaction_row, {"record": record}),
        "OffsetIndex": (storage.OffsetIndex, {"data": b"", "base_offset": 0}),
        "TimeIndex": (storage.TimeIndex, {"data": b"", "base_offset": 0}),
        "TransactionIndex": (storage.TransactionIndex, {"data": b""}),
        "connect": (net.connect, CONNECTION),
        "connect_sync": (net.connect_sync, CONNECTION),
        "Cluster": (net.Cluster, {"bootstrap": "host:1", "timeout": 1, "tls": False, "sasl": None}),
        "Cluster.can": (net.Cluster("host:1").can, {"wanted": "zstd"}),
        "Feature": (net.Feature, {"name": "f", "needs": {}, "levels": {}, "kraft_levels": {}}),
        "FeatureUpdate": (net.FeatureUpdate, {"level": 1, "downgrade": "NONE", "allow_downgrade": None}),
        "read_config": (net.read_config, {"path": folder / "none.properties"}),
        "captures": (capture.captures, {"paths": path}),
        "read_capture": (whole(capture.read_capture), {"path": path}),
        "audit": (capture.audit, {"paths": path, "to": "4.0"}),
    }  # fmt: skip


def _new(folder: Path) -> Path:
    return folder / os.urandom(8).hex()


def test_errors_name_the_argument(calls: dict[str, Call]) -> None:
    unnamed = []
    for name, (function, arguments) in calls.items():
        for argument in arguments:
            for wrong in WRONG:
                if argument in ("path", "paths", "topic", "folder") and isinstance(wrong, str):
                    continue
                try:
                    function(**arguments | {argument: wrong})
                except (TypeError, ValueError, OverflowError, OSError, KeyError) as error:
                    words = rf"\b{argument}\b|{WORDS.get(argument, argument)}"
                    if not re.search(words, str(error)) or "\u202e" in str(error) or isinstance(error, UnicodeError):
                        unnamed.append(f"{name} {argument}={wrong!r}: {error!r}")
    assert not unnamed, "\n".join(unnamed)
