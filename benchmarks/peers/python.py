"""The contestants for records in this process: the ways of kwire, aiokafka, kafka-python, and the crc32c packages."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import kwire
from benchmarks.peers.contest import InProcess
from benchmarks.workloads import Workload

Pass = Callable[[], tuple[int, int]]


def columns(**options: Any) -> Callable[[Workload], Pass]:
    """Columns of offset, timestamp, key and value: one call over all batches."""

    def prepare(workload: Workload) -> Pass:
        data = workload.data()

        def one() -> tuple[int, int]:
            return len(kwire.columns(data, **options)), 0

        return one

    return prepare


def objects(workload: Workload) -> Pass:
    """A Python loop over records that reads offset, timestamp, key and value."""
    data = workload.data()

    def one() -> tuple[int, int]:
        count = check = 0
        for batch in kwire.read_batches(data):
            for record in batch:
                count += 1
                check += record.offset + record.timestamp + len(record.key) + len(record.value)
        return count, check

    return one


def build_batch(workload: Workload) -> Pass:
    """build_batch for the records of each batch."""
    rows = workload.rows()

    def one() -> tuple[int, int]:
        size = 0
        for batch in rows:
            size += len(kwire.build_batch(batch))
        return workload.records(), size

    return one


def build_batches(workload: Workload) -> Pass:
    """build_batches for all records in an Arrow table."""
    import pyarrow as pa

    times, keys, values, headers = zip(*(row for rows in workload.rows() for row in rows), strict=True)
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "timestamp": pa.array(times, pa.timestamp("ms")),
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.array(headers, pairs),
        }
    )

    def one() -> tuple[int, int]:
        batches = kwire.build_batches(table, batch_bytes=workload.batch)
        return len(table), sum(len(batch) for batch, _, _ in batches)

    return one


def checksum(function: Callable[[bytes], int], size: int) -> Callable[[Workload], Pass]:
    """The crc32c of each block of `size` bytes in 8 MiB."""

    def prepare(workload: Workload) -> Pass:
        data = workload.data()
        blocks = [data[at : at + size] for at in range(0, len(data) - size + 1, size)]

        def one() -> tuple[int, int]:
            check = 0
            for block in blocks:
                check += function(block)
            return len(blocks), check

        return one

    return prepare


def checksums(function: Callable[[bytes], int]) -> dict[str, Callable[[Workload], Pass]]:
    return {"crc32c_16k": checksum(function, 16 << 10), "crc32c_1m": checksum(function, 1 << 20)}


def varints(write: Callable[[int], Any]) -> Callable[[Workload], Pass]:
    """Write 10,000 zigzag varints of all lengths, one call each."""

    def prepare(workload: Workload) -> Pass:
        dice = random.Random(3)
        numbers = [dice.getrandbits(dice.randrange(1, 31)) for _ in range(10_000)]

        def one() -> tuple[int, int]:
            for number in numbers:
                write(number)
            return len(numbers), 0

        return one

    return prepare


def kwires() -> list[InProcess]:
    """The ways of kwire."""
    return [
        InProcess("kwire columns", decode=columns(), **checksums(kwire.crc32c)),
        InProcess("kwire columns, views", decode=columns(views=True)),
        InProcess("kwire objects", decode=objects),
        InProcess("kwire build_batch", encode=build_batch),
        InProcess("kwire build_batches", encode=build_batches),
    ]


def aiokafka() -> InProcess:
    """aiokafka's C extension: MemoryRecords, validate_crc, a loop over records; DefaultRecordBatchBuilder."""
    from aiokafka.record.default_records import DefaultRecordBatchBuilder
    from aiokafka.record.memory_records import MemoryRecords

    return of_records("aiokafka", MemoryRecords, DefaultRecordBatchBuilder)


def of_records(name: str, reader: Any, builder: Any) -> InProcess:
    """The passes of a reader and a batch builder, which have the same interface in aiokafka and kafka-python."""
    return InProcess(name, decode=lambda w: reader_pass(w, reader), encode=lambda w: builder_pass(w, builder))


def reader_pass(workload: Workload, kind: Any) -> Pass:
    """A pass of MemoryRecords: checksums, and a loop over the records."""
    data = workload.data()

    def one() -> tuple[int, int]:
        count = check = 0
        records = kind(data)
        while records.has_next():
            batch = records.next_batch()
            if not batch.validate_crc():
                raise ValueError("CRC")
            for record in batch:
                count += 1
                check += record.offset + record.timestamp + len(record.key) + len(record.value)
        return count, check

    return one


def builder_pass(workload: Workload, kind: Any) -> Pass:
    """A pass of DefaultRecordBatchBuilder."""
    rows = workload.rows()

    def one() -> tuple[int, int]:
        size = 0
        for batch in rows:
            builder = kind(magic=2, compression_type=0, is_transactional=0, producer_id=-1, producer_epoch=-1,
                           base_sequence=-1, batch_size=1 << 26)  # fmt: skip
            append = builder.append
            for offset, (timestamp, key, value, headers) in enumerate(batch):
                append(offset, timestamp, key, value, headers)
            size += len(builder.build())
        return workload.records(), size

    return one


def kafka_python() -> InProcess:
    """kafka-python: pure Python, except its checksum."""
    from kafka.record.default_records import DefaultRecordBatchBuilder
    from kafka.record.memory_records import MemoryRecords

    return of_records("kafka-python", MemoryRecords, DefaultRecordBatchBuilder)


def crc32c_package() -> InProcess:
    """The crc32c package from PyPI."""
    import crc32c

    return InProcess("crc32c (PyPI)", **checksums(crc32c.crc32c))


def google_crc32c_package() -> InProcess:
    """Google's package."""
    import google_crc32c

    return InProcess("google-crc32c", **checksums(google_crc32c.value))


CHECKSUMS = (crc32c_package, google_crc32c_package)
