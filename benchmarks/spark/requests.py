"""Requests and bytes of the Spark source on an object store, by kind of job: the table in docs/spark.md.

Run it from the top folder: python -m benchmarks.spark.requests [--segments 4] [--mib 64]
A log of one partition is put into an S3 stand-in on this machine, in batches of 16 KiB with an index entry for each.
The reader is called as Spark calls it: its plan is what the driver asks the store for, its tasks what the executors do.
"""

from __future__ import annotations

import argparse
import json
import logging
import struct
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import kwire
from kwire.storage.places.filesystem import store_of

START = 1_700_000_000_000
RECORDS = 138  # of a batch: 16 KiB
BUCKET = "requests"


class Asked(NamedTuple):
    """What a store was asked for. bytes: of answers to GET."""

    lists: int
    heads: int
    gets: int
    bytes: int

    @property
    def requests(self) -> int:
        """All of them."""
        return self.lists + self.heads + self.gets


class ObjectStore:
    """An S3 stand-in on loopback that counts what it is asked for. A context manager."""

    def __enter__(self) -> ObjectStore:
        from threading import Thread

        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
        from werkzeug.serving import make_server

        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # else a line for each request
        self._counts: Counter[str] = Counter()
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, True, request_handler=MotoRequestHandler)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        host, port = self._server.server_address[:2]
        self.options = {"key": "k", "secret": "s", "client_kwargs": {
            "endpoint_url": f"http://{host!s}:{port}", "region_name": "eu-west-1"}}  # fmt: skip
        store_of(f"s3://{BUCKET}", self.options)[0].mkdir(BUCKET)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, environ: Any, start_response: Any) -> Any:
        kind = environ["REQUEST_METHOD"]
        if "list-type" in environ["QUERY_STRING"]:
            kind = "LIST"

        def started(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            self._counts[kind] += 1
            if kind == "GET" and status.startswith("2"):
                self._counts["bytes"] += sum(int(size) for name, size in headers if name.lower() == "content-length")
            return start_response(status, headers, *rest)

        return self._app(environ, started)

    def put(self, folder: Path) -> str:
        """Copy a folder into the store; its URL."""
        url = f"s3://{BUCKET}/{folder.name}"
        store_of(url, self.options)[0].put(f"{folder}/", f"{BUCKET}/{folder.name}/", recursive=True)
        return url

    @contextmanager
    def counting(self) -> Iterator[list[Asked]]:
        """A list that has what was asked for meanwhile once the block ends."""
        before, asked = Counter(self._counts), []
        yield asked
        since = self._counts - before
        asked.append(Asked(since["LIST"], since["HEAD"], since["GET"], since["bytes"]))


def write_log(folder: Path, segments: int, size: int, indexes: bool = True, every: int = 0) -> int:
    """Write a partition of segments of about `size` bytes; returns the offset after the last record.

    every: each so many batches a transaction ends, and every other one is aborted (0: no transactions).
    """
    place = folder / "t-0"
    place.mkdir(parents=True)
    records = [(START + i, b"key-%06d" % i, b"value %4d " % i + b"x" * 89) for i in range(RECORDS)]
    options: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True} if every else {}
    base = 0
    for _ in range(segments):
        path = place / f"{base:020d}.log"
        data, index, times, aborted = bytearray(), bytearray(), bytearray(), bytearray()
        first, begun, number = base, base, 0
        while len(data) < size:
            moved = [(time + base, key, value) for time, key, value in records]
            content = kwire.build_batch(moved, base_offset=base, **options)
            index += struct.pack(">ii", base + RECORDS - 1 - first, len(data))
            times += struct.pack(">qi", START + base + RECORDS - 1, base + RECORDS - 1 - first)
            data += content
            base += RECORDS
            number += 1
            if every and (number % every == 0 or len(data) >= size):
                commit = number // every % 2
                data += kwire.build_batch([(START + base, bytes([0, 0, 0, commit]), bytes(6))], base_offset=base,
                                          control=True, **options)  # fmt: skip
                if not commit:
                    aborted += struct.pack(">hqqqq", 0, 7, begun, base, base + 1)
                base += 1
                begun = base
        path.write_bytes(data)
        if indexes:
            path.with_suffix(".index").write_bytes(index)
            path.with_suffix(".timeindex").write_bytes(times)
        if aborted:
            path.with_suffix(".txnindex").write_bytes(aborted)
    return base


class Job(NamedTuple):
    """What one read cost. ranges: bytes of the ranges of its tasks; rows: records read."""

    name: str
    driver: Asked
    executors: Asked
    tasks: int
    ranges: int
    rows: int


def run(store: ObjectStore, name: str, url: str, columns: str = "", **options: Any) -> Job:
    """Plan a read, and read it."""
    from pyspark.sql.types import StructType

    from kwire.spark.source import KwireDataSource

    given = {"path": url, "storageOptions": json.dumps(store.options), **{n: str(v) for n, v in options.items()}}
    source = KwireDataSource(given)
    schema = source.schema()
    if columns:
        schema = StructType([field for field in schema.fields if field.name in columns.split()])
    reader = source.reader(schema)
    with store.counting() as driver:
        tasks = reader.partitions()
    with store.counting() as executors:
        rows = sum(batch.num_rows for task in tasks for batch in reader.read(task))
    ranges = sum((part.end or 0) - part.start for task in tasks for part in getattr(task, "ranges", ()))
    return Job(name, driver[0], executors[0], len(tasks), ranges, rows)


def jobs(store: ObjectStore, folder: Path, segments: int, size: int) -> Iterator[Job]:
    """Each kind of job once."""
    end = write_log(folder / "indexed", segments, size)
    write_log(folder / "bare", segments, size, indexes=False)
    write_log(folder / "transactions", segments, size, every=10)
    indexed, bare, committed = (store.put(folder / name) for name in ("indexed", "bare", "transactions"))
    middle = end * 3 // 5
    point = {"startingOffsets": json.dumps({"t": {"0": middle}}),
             "endingOffsets": json.dumps({"t": {"0": middle + 100}})}
    last = {"startingTimestamp": START + end - 100}
    cut = {"partitionBytes": size * 2 // 3}  # two ranges a segment
    yield run(store, "count, all columns", indexed, **cut)
    yield run(store, "one column", indexed, "value", **cut)
    yield run(store, "count, no indexes", bare, **cut)
    yield run(store, "100 records by offset", indexed, **point, **cut)
    yield run(store, "100 records by offset, no indexes", bare, **point, **cut)
    yield run(store, "the last 100 records by timestamp", indexed, **last, **cut)
    yield run(store, "the last 100 by timestamp, no indexes", bare, **last, **cut)
    yield run(store, "from latest", indexed, startingOffsets="latest", **cut)
    yield run(store, "from latest, no indexes", bare, startingOffsets="latest", **cut)
    yield run(store, "describe()", indexed, kind="segments")
    yield run(store, "readCommitted", committed, readCommitted="true", **cut)


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--segments", type=int, default=4, help="segments of the partition")
    parser.add_argument("--mib", type=int, default=64, help="MiB of a segment")
    given = parser.parse_args()
    size = given.mib << 20
    print("| job | driver: requests | bytes | executors: requests | bytes | of the ranges | tasks |")
    print("|---|---|---|---|---|---|---|")
    with ObjectStore() as store, TemporaryDirectory() as folder, warnings.catch_warnings():
        for job in jobs(store, Path(folder), given.segments, size):
            share = f"{job.executors.bytes / job.ranges:.3f}" if job.ranges else "-"
            print(f"| {job.name} | {job.driver.requests} | {job.driver.bytes:,} | {job.executors.requests} "
                  f"| {job.executors.bytes:,} | {share} | {job.tasks} |", flush=True)


if __name__ == "__main__":
    main()
