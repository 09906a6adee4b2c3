"""kwire's own cases: python -m pytest benchmarks. Compared with peers: python -m benchmarks.run."""

from __future__ import annotations

from typing import Any

import pytest

import kwire
from benchmarks.messages import M, MessageWorkload
from benchmarks.peers import python
from benchmarks.workloads import W1, W2, W3, Workload
from kwire import compression
from kwire_c import varint


@pytest.mark.parametrize("views", [False, True], ids=["copied", "views"])
@pytest.mark.parametrize("workload", [W1, W2, *W3], ids=lambda w: w.name)
def test_columns(benchmark: Any, workload: Workload, views: bool) -> None:
    data = workload.data()
    assert len(benchmark(kwire.columns, data, views=views)) == workload.records()


FIELDS = [("offset",), ("value",), ("offset", "timestamp", "key", "value", "headers")]


@pytest.mark.parametrize("fields", FIELDS, ids=",".join)
def test_columns_of_some_fields(benchmark: Any, fields: tuple[str, ...]) -> None:
    assert len(benchmark(kwire.columns, W2.data(), fields)) == W2.records()


@pytest.mark.parametrize("workload", [W1, W2], ids=lambda w: w.name)
def test_objects(benchmark: Any, workload: Workload) -> None:
    assert benchmark(python.objects(workload))[0] == workload.records()


@pytest.mark.parametrize("workload", [W1, W2, *W3], ids=lambda w: w.name)
def test_build_batch(benchmark: Any, workload: Workload) -> None:
    rows = workload.rows()[0]
    assert benchmark(kwire.build_batch, rows, codec=workload.codec)


@pytest.mark.parametrize("size", [16 << 10, 1 << 20], ids=["16 KiB", "1 MiB"])
def test_crc32c(benchmark: Any, size: int) -> None:
    benchmark(kwire.crc32c, W1.data()[:size])


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("size", [16 << 10, 1 << 20], ids=["16 KiB", "1 MiB"])
@pytest.mark.parametrize("way", ["compress", "decompress"])
def test_codecs(benchmark: Any, codec: str, size: int, way: str) -> None:
    data = W1.data()[:size]
    packed = compression.compress(codec, data)
    if way == "compress":
        benchmark(compression.compress, codec, data)
    else:
        assert len(benchmark(compression.decompress, codec, packed, limit=1 << 24)) == size


def test_varints_written(benchmark: Any) -> None:
    benchmark(python.varints(varint.write_varint)(W1))


@pytest.mark.parametrize("workload", M, ids=lambda w: w.name)
@pytest.mark.parametrize("way", ["decode", "encode"])
def test_messages(benchmark: Any, workload: MessageWorkload, way: str) -> None:
    name, version, data = workload.message, workload.version, workload.data()
    if way == "decode":
        benchmark(kwire.decode, name, version, data)
    else:
        assert len(benchmark(kwire.encode, kwire.decode(name, version, data), version)) == len(data)
