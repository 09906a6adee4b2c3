"""The cost of a Python worker of Spark besides decoding: imports, garbage collection."""

from __future__ import annotations

import gc
import gzip
import os
import pickle
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kwire
from kwire.spark import decode_records, worker
from kwire.spark.options import parse
from kwire.spark.reader import SegmentReader
from kwire.spark.schema import as_spark_array, repeated, source_schema
from kwire.spark.stream import SegmentStreamReader
from tests.spark.logs import START, batch, segment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READ = """
import sys
import tempfile
from kwire.spark import decode_records
from kwire.spark.options import parse
from kwire.spark.partitions import Pushed, tasks
from kwire.spark.reader import read_task
from kwire.spark.schema import DEFAULT_COLUMNS, SOURCE_COLUMNS, source_schema

options = parse({"path": sys.argv[1]})
[task] = tasks(options, Pushed())
rows = [batch.num_rows for batch in read_task(task, options, source_schema(False, True))]
data = open(task.ranges[0].file.path, "rb").read()
rows += [batch.num_rows for batch in decode_records(output="arrow")([data])]
print(sum(rows), *({"pandas", "pyarrow.compute", "numpy.ma", "fsspec", "cramjam"} & set(sys.modules)))
"""


def test_reading_imports_no_library_that_it_can_do_without(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, batch(0, 5))
    done = subprocess.run([sys.executable, "-c", READ, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["10"]


def _frozen(rows: Iterator[Any]) -> Iterator[tuple[int, int]]:
    yield sum(1 for _ in rows), gc.get_freeze_count()


def test_workers_do_not_collect_modules_after_every_task(spark: SparkSession) -> None:
    payloads = spark.sparkContext.parallelize([batch(0, 3)], 1)
    [(rows, frozen)] = payloads.mapPartitions(decode_records()).mapPartitions(_frozen).collect()
    assert rows == 3 and frozen > 10_000
    list(decode_records()([batch(0, 3)]))
    assert gc.get_freeze_count() == 0, "this process is not a worker"


def _connections(rows: Iterator[Any]) -> Iterator[tuple[int, list[int]]]:
    count = sum(1 for _ in rows)
    from kwire.spark import worker

    found = []
    for descriptor in worker._connections():
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            found.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
    yield count, found


def test_workers_send_at_once(spark: SparkSession) -> None:
    """What a task has to say would wait 40 ms for the JVM's acknowledgement of its beginning."""
    payloads = spark.sparkContext.parallelize([batch(0, 3)], 1)
    [(rows, found)] = payloads.mapPartitions(decode_records()).mapPartitions(_connections).collect()
    assert rows == 3 and found and all(found)


@pytest.mark.skipif(sys.platform != "linux", reason="acknowledgements can be asked for on Linux only")
@pytest.mark.parametrize("Reader", [SegmentReader, SegmentStreamReader])
def test_a_reader_that_has_come_to_a_worker_is_acknowledged(
    Reader: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM sends what a task is to read only then."""
    import fcntl
    import termios

    options = parse({"path": str(tmp_path)})
    sent = pickle.dumps(Reader(options, source_schema(False, False)))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as jvm:
        ours, _ = server.accept()
        with ours:
            for _ in range(20):  # after these the system delays acknowledgements, to send them with an answer
                jvm.sendall(b"question")
                assert ours.recv(100)
                ours.sendall(b"answer")
                assert jvm.recv(100)
            jvm.sendall(sent)
            received = ours.recv(1 << 16)
            monkeypatch.setattr(worker, "_program", lambda: worker.DAEMON)
            worker._connections.cache_clear()
            assert pickle.loads(received).options == options
            worker._connections.cache_clear()
            unacknowledged = fcntl.ioctl(jvm, termios.TIOCOUTQ, bytes(4))
            assert int.from_bytes(unacknowledged, sys.byteorder) == 0


@pytest.mark.parametrize(("value", "kind"), [
    ("orders", pa.string()), ("größer", pa.string()), ("", pa.string()), (7, pa.int32()), (-1, pa.int32()),
    (None, pa.string()), (None, pa.int32()),
])
def test_a_value_repeated(value: Any, kind: pa.DataType) -> None:
    found = repeated(value, kind, 3)
    found.validate(full=True)
    assert found.equals(pa.array([value] * 3, kind))
    assert repeated(value, kind, 0).to_pylist() == []


def test_types_of_spark() -> None:
    times = [START, -1, 2**63 // 1000, -(2**63) // 1000, 2**63 - 1, -(2**63), 0, 5, -1000, (2**63 - 1) // 1000]
    data = b"".join(kwire.build_batch([(time, None, b"v")]) for time in times)
    columns = kwire.columns(data, ["timestamp", "timestamp_type"])
    found = as_spark_array(columns["timestamp"], pa.timestamp("us", "UTC"))
    found.validate(full=True)
    assert found.cast(pa.int64()).to_pylist() == [
        time * 1000 if -(2**63) <= time * 1000 < 2**63 else None for time in times]
    assert found.null_count == 3
    kinds = as_spark_array(columns["timestamp_type"], pa.int32())
    assert kinds.type == pa.int32() and kinds.to_pylist() == [0] * len(times)
    legacy = kwire.build_batch([(-1, b"k", b"v")], magic=0)
    assert as_spark_array(kwire.columns(legacy, ["timestamp_type"])["timestamp_type"], pa.int32()).to_pylist() == [-1]


@pytest.mark.quick
@pytest.mark.skipif(sys.platform != "linux", reason="lists /proc/self/fd")
def test_an_abandoned_task_keeps_nothing_and_the_next_attempt_gives_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a task of take(1), a cancelled one, or one of two that run at a time; also of a .gz, which is spooled."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    data = b"".join(batch(base, 9_000) for base in range(0, 45_000, 9_000))
    segment(tmp_path / "logs" / "t-0", 0, data)
    segment(tmp_path / "logs" / "t-1", 0).with_suffix(".log.gz").write_bytes(gzip.compress(data, 1))
    (tmp_path / "logs" / "t-1" / f"{0:020d}.log").unlink()
    options, schema = parse({"path": str(tmp_path / "logs"), "openCostBytes": "128m"}), source_schema(False, False)
    batch_reader, stream = SegmentReader(options, schema), SegmentStreamReader(options, schema)
    start = stream.initialOffset()
    plans = [(batch_reader, batch_reader.partitions()), (stream, stream.partitions(start, stream.latestOffset(start)))]
    for reader, tasks in plans:
        assert len(tasks) == 2
        for task in tasks:
            sent = pickle.dumps((reader, task))
            gc.collect()  # of other tests: what they left open
            open_before, whole = len(os.listdir("/proc/self/fd")), None
            for attempt in range(3):
                one, part = pickle.loads(sent)
                rows = one.read(part)
                first = next(rows)
                if attempt:  # two at a time
                    rest = pa.Table.from_batches([first, *rows])
                    assert rest.num_rows == 45_000 and (whole is None or rest.equals(whole))
                    whole = rest
                del rows, first, one, part
            gc.collect()
            assert len(os.listdir("/proc/self/fd")) == open_before and not os.listdir(tmp_path / "tmp")
