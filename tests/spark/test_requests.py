"""What the source asks an object store for: the driver only listings, the executors their ranges and little more."""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Iterator
from datetime import datetime

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import kwire
from benchmarks.spark.requests import RECORDS, START, Job, ObjectStore, run, write_log
from kwire.spark.source import KwireDataSource
from kwire.storage.places.filesystem import store_of
from tests.storage.making import START as LOG_START
from tests.storage.making import batch, write_segment

SIZE = 3 << 20  # of a segment
SEGMENTS = 3
CUT = {"partitionBytes": SIZE * 2 // 3}  # two ranges a segment
SEARCHED = 65 << 10  # bytes before a cut that are searched for a batch where there is no index


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with ObjectStore() as store:
        yield store


@pytest.fixture(scope="module")
def indexed(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """(URL, offset after the last record) of a log with indexes."""
    folder = tmp_path_factory.mktemp("store") / "indexed"
    end = write_log(folder, SEGMENTS, SIZE)
    return store.put(folder), end


@pytest.fixture(scope="module")
def bare(store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, int]:
    """The same without indexes."""
    folder = tmp_path_factory.mktemp("store") / "bare"
    end = write_log(folder, SEGMENTS, SIZE, indexes=False)
    return store.put(folder), end


def driver_lists_only(job: Job) -> None:
    assert job.driver.gets == 0 and job.driver.requests <= 4, job


@pytest.mark.parametrize("columns", ["", "value"])
def test_each_byte_is_read_once(store: ObjectStore, indexed: tuple[str, int], columns: str) -> None:
    job = run(store, "count", indexed[0], columns, **CUT)
    driver_lists_only(job)
    assert job.rows == indexed[1] and job.tasks == 2 * SEGMENTS
    assert job.executors.bytes <= 1.05 * job.ranges
    assert job.executors.heads == job.executors.lists == 0
    whole = run(store, "count", indexed[0], columns)
    assert whole.tasks == 1 and whole.executors.bytes <= 1.01 * whole.ranges


def test_without_indexes_some_bytes_before_each_cut_are_searched(store: ObjectStore, bare: tuple[str, int]) -> None:
    job = run(store, "count", bare[0], **CUT)
    driver_lists_only(job)
    assert job.rows == bare[1]
    assert job.executors.bytes <= job.ranges + SEGMENTS * SEARCHED
    assert run(store, "count", bare[0]).executors.bytes <= 1.01 * job.ranges


def test_records_by_offset_read_an_index_interval_and_a_window(store: ObjectStore, indexed: tuple[str, int]) -> None:
    url, end = indexed
    first = end * 3 // 5
    job = run(store, "offset", url, startingOffsets=json.dumps({"t": {"0": first}}),
              endingOffsets=json.dumps({"t": {"0": first + 100}}), **CUT)
    driver_lists_only(job)
    assert (job.rows, job.tasks) == (100, 1)
    assert job.executors.requests <= 6 and job.executors.bytes <= 256 << 10


def test_records_of_the_end_are_found_by_the_index_where_a_torn_batch_follows(
    store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("store") / "torn"
    end = write_log(folder, 1, SIZE)
    path = folder / "t-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + kwire.build_batch([(START, None, b"v" * 999)], base_offset=end)[:700])
    with pytest.warns(RuntimeWarning, match="torn tail"):
        job = run(store, "offset", store.put(folder), startingOffsets=json.dumps({"t": {"0": end - 100}}), **CUT)
    assert (job.rows, job.tasks) == (100, 2) and job.executors.bytes <= 256 << 10


@pytest.mark.parametrize("magic", [0, 1])
def test_records_by_offset_of_old_formats_end_at_their_end(
    store: ObjectStore, tmp_path_factory: pytest.TempPathFactory, magic: int
) -> None:
    folder = tmp_path_factory.mktemp("store") / f"magic{magic}"
    (folder / "t-0").mkdir(parents=True)
    batches = [kwire.build_batch([(START, None, b"v" * 99)] * 10, base_offset=base, magic=magic,
                                 codec="gzip" if magic else "none") for base in range(0, 20_000, 10)]  # fmt: skip
    (folder / "t-0" / f"{0:020}.log").write_bytes(b"".join(batches))
    job = run(store, "offset", store.put(folder), endingOffsets=json.dumps({"t": {"0": 95}}))
    assert job.rows == 95 and job.executors.bytes <= 64 << 10 < job.ranges


def test_zeros_of_a_preallocated_segment_are_few_requests(
    store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("store") / "preallocated"
    end = write_log(folder, 1, 1 << 20)
    path = folder / "t-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes() + bytes(8 << 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # they are no torn batch
        job = run(store, "count", store.put(folder))
    assert job.rows == end and job.executors.requests <= 12 and job.executors.bytes <= 1.05 * job.ranges


def test_records_by_timestamp_read_indexes_and_a_window(store: ObjectStore, indexed: tuple[str, int]) -> None:
    url, end = indexed
    job = run(store, "timestamp", url, startingTimestamp=START + end - RECORDS, **CUT)
    assert job.driver.bytes <= SEGMENTS * (64 << 10) and job.driver.gets <= 3 * SEGMENTS
    assert job.driver.lists + job.driver.heads <= 4
    assert (job.rows, job.tasks) == (RECORDS, 2) and job.executors.bytes <= 1 << 18
    assert job.executors.heads == job.executors.lists == 0


@pytest.mark.parametrize("start", [{"startingTimestamp": LOG_START + 500},
                                   {"startingOffsets": json.dumps({"t": {"0": 50}})}])
def test_small_segments_are_read_with_one_request(
    store: ObjectStore, tmp_path_factory: pytest.TempPathFactory, start: dict[str, str]
) -> None:
    folder = tmp_path_factory.mktemp("store") / f"small-{next(iter(start))}"
    for base in range(0, 90, 9):
        write_segment(folder / "t-0", base, [batch(at) for at in range(base, base + 9, 3)])
    job = run(store, "small", store.put(folder), **start)
    driver_lists_only(job)
    assert job.rows == 40
    assert job.executors.requests <= 10 and job.executors.bytes == job.ranges


def test_a_read_from_latest_asks_for_nothing(store: ObjectStore, bare: tuple[str, int]) -> None:
    job = run(store, "latest", bare[0], startingOffsets="latest")
    driver_lists_only(job)
    assert (job.rows, job.tasks, job.executors.requests) == (0, 0, 0)


def test_describe_reads_a_head_and_an_entry_of_each_segment(store: ObjectStore, indexed: tuple[str, int]) -> None:
    job = run(store, "describe", indexed[0], kind="segments")
    assert job.driver.gets == 0 and job.driver.requests <= 4
    assert job.rows == SEGMENTS
    assert job.executors.requests <= 2 * SEGMENTS + 3 and job.executors.bytes <= 64 << 10
    assert job.executors.heads == job.executors.lists == 0


def test_a_driver_asks_nothing_for_the_segments_of_readcommitted(
    store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("store") / "transactions"
    end = write_log(folder, 2, 1 << 20, every=5)
    job = run(store, "readCommitted", store.put(folder), readCommitted="true")
    driver_lists_only(job)
    assert 0 < job.rows < end and job.executors.lists == 1
    assert job.executors.heads <= 1  # has the last segment grown since the plan?
    assert job.executors.bytes <= 1.05 * job.ranges


def test_listings_of_s3_have_dates_as_text_and_only_here(store: ObjectStore, bare: tuple[str, int]) -> None:
    """To read them takes more time than all else of a listing."""
    own, folder = store_of(f"{bare[0]}/t-0", store.options)
    assert {type(entry["LastModified"]) for entry in own.ls(folder, detail=True)} == {str}
    users = fsspec.filesystem("s3", **store.options)
    assert {type(entry["LastModified"]) for entry in users.ls(folder, detail=True)} == {datetime}
    with pytest.raises(OSError, match="profil"):  # an option that is unknown is not passed over
        store_of(f"{bare[0]}/t-0", {**store.options, "profil": "p"})[0].ls(folder)


class AtOnce:
    """How many reads of a memory store are on their way at the same time: each waits a moment for others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most = self.now = 0
        self.lock = threading.Lock()
        real = MemoryFileSystem.cat_file

        def cat_file(store: MemoryFileSystem, path: str, *arguments: object, **keywords: object) -> bytes:
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            time.sleep(0.1)
            with self.lock:
                self.now -= 1
            return bytes(real(store, path, *arguments, **keywords))

        monkeypatch.setattr(MemoryFileSystem, "cat_file", cat_file)


@pytest.mark.parametrize("options", [{}, {"readCommitted": "true"}, {"maxBytesPerTrigger": "1m"}])
@pytest.mark.parametrize(("partitions", "segments"), [(8, 1), (1, 9)])
def test_a_stream_plans_with_many_requests_at_a_time(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], partitions: int, segments: int
) -> None:
    store = MemoryFileSystem()
    for partition in range(partitions):
        for base in range(0, 3 * segments, 3):
            store.pipe(f"/{partitions}/t-{partition}/{base:020}.log", batch(base))
    source = KwireDataSource({"path": f"memory://{partitions}", **options})
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    reads = AtOnce(monkeypatch)
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    store.rm(f"/{partitions}", recursive=True)
    assert [end["topics"]["t"][str(partition)][0] for partition in range(partitions)] == [3 * segments] * partitions
    # with a limit the share of each partition depends on those before it
    assert reads.most >= (1 if partitions > 1 and "maxBytesPerTrigger" in options else 4)
