"""Every golden segment through kwire.storage: as batches, columns and ranges, the same as from its bytes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import kwire
from kwire.storage import LogDirectory, LogSegment
from kwire.storage.side_files.checkpoints import read_leader_epochs, read_partition_metadata, read_producer_snapshot

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def directories(golden: Path) -> list[Path]:
    return [*sorted(golden.glob("data/*/data*")), *sorted(golden.glob("old-brokers/0.*"))]


@pytest.fixture(scope="module")
def segments(directories: list[Path]) -> list[LogSegment]:
    segments = [segment for path in directories for segment in LogDirectory(path).segments]
    assert len(segments) > 200
    return segments


def test_records_are_those_of_the_bytes(segments: list[LogSegment]) -> None:
    for segment in segments:
        data = Path(segment.path).read_bytes()
        assert segment.tail is None
        assert [header.position for header in segment.headers()] == [one.position for one in kwire.read_batches(data)]
        assert list(segment.read(control=True)) == [record for one in kwire.read_batches(data) for record in one]


def test_headers_are_those_of_the_batches(segments: list[LogSegment]) -> None:
    names = (
        "position",
        "size",
        "magic",
        "last_offset",
        "partition_leader_epoch",
        "crc",
        "attributes",
        "base_timestamp",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "codec",
        "timestamp_type",
        "is_transactional",
        "is_control",
    )
    for segment in segments:
        for header, one in zip(segment.headers(), segment.batches(), strict=True):
            assert [getattr(header, name) for name in names] == [getattr(one, name) for name in names]
            if header.magic == 2:
                assert (header.base_offset, header.count) == (one.base_offset, one.count)


def test_columns_are_the_records(segments: list[LogSegment]) -> None:
    for segment in segments:
        for committed in (False, True):
            expected = [(one.offset, one.timestamp, one.key, one.value) for one in segment.read(committed=committed)]
            table = pa.table(segment.columns(committed=committed))
            assert list(zip(*(table[name].to_pylist() for name in ("offset", "key", "value")), strict=True)) == [
                (offset, key, value) for offset, _, key, value in expected
            ]
            assert table["timestamp"].cast(pa.int64()).to_pylist() == [time for _, time, _, _ in expected]
            pieces = list(segment.column_batches(committed=committed, rows=7))
            assert [offset for piece in pieces for offset in pa.table(piece)["offset"].to_pylist()] == [
                offset for offset, *_ in expected
            ]


def test_verify_finds_nothing(directories: list[Path]) -> None:
    for path in directories:
        assert LogDirectory(path).verify() == []


def test_transactions_end_with_their_markers(golden: Path) -> None:
    partition = LogDirectory(golden / "data/kafka-4.3.0/data1")["alpha-tx", 0]
    aborted = {entry[:4] for segment in partition for entry in (segment.transaction_index or _none).entries}
    assert len(aborted) == 7
    everything = list(partition.read())
    committed = list(partition.read(committed=True))
    hidden = {one.offset for one in everything} - {one.offset for one in committed}
    assert hidden
    spans = [(first, last) for _, _, first, last in aborted]
    assert all(any(first <= offset < last for first, last in spans) for offset in hidden)
    assert not any(
        first <= one.offset < last and one.sequence >= 0 and one.key == b""
        for one in committed
        for first, last in spans
    )


class _none:
    entries: tuple[()] = ()


def test_files_beside_segments(golden: Path) -> None:
    count = 0
    for path in golden.glob("data/*/data*/*-*/*.snapshot"):
        for state in read_producer_snapshot(path):
            assert state.producer_id >= 0
            assert state.last_offset >= -1
            count += 1
    assert count > 50
    for path in golden.glob("data/*/data*/*-*/leader-epoch-checkpoint"):
        assert all(one.start_offset >= 0 for one in read_leader_epochs(path))
    ids = {read_partition_metadata(path).topic_id for path in golden.glob("data/*/data*/*-*/partition.metadata")}
    assert len(ids) > 20


def test_names(golden: Path) -> None:
    directory = LogDirectory(golden / "data/kafka-4.3.0/data1")
    assert ("__cluster_metadata", 0) in [(one.topic, one.partition) for one in directory]
    seg = directory["alpha-seg", 0]
    assert [one.base_offset for one in seg] == [0, 5326, 10629]
    assert [one.offset for one in seg.read(start_offset=5320, end_offset=5330)] == list(range(5320, 5330))
    assert len(seg.columns(start_offset=5320, end_offset=10640)) == 5320
