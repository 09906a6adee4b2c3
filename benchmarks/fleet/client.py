"""One confluent-kafka client: produces records, reads them back, and prints what each took as a line of JSON, in
seconds.

python -m benchmarks.fleet.client BOOTSTRAP RECORDS BYTES PASSES
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition

TOPIC, PARTITIONS = "bench", 4
FEW = 10_000  # records at a time


def produce(producer: Producer, records: int, value: bytes) -> None:
    """Send records, a quarter of them to each partition, and wait for them."""
    for at in range(records):
        producer.produce(TOPIC, value, partition=at * PARTITIONS // records)
        if at % FEW == 0:
            producer.poll(0)
    if producer.flush(60):
        sys.exit("records are left")


def fetch(bootstrap: str, records: int, first: int) -> None:
    """Read so many records, from an offset of each partition on."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False, "queued.min.messages": 1_000_000,
        "log_level": 0})
    consumer.assign([TopicPartition(TOPIC, partition, first) for partition in range(PARTITIONS)])
    read = 0
    while read < records:
        got = consumer.consume(FEW, 30)
        if not got:
            sys.exit(f"{records - read} records are missing")
        read += len(got)
    consumer.close()


def main(bootstrap: str, records: int, size: int, passes: int) -> None:
    """Produce and fetch, in turn."""
    producer = Producer({
        "bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 2_000_000,
        "queue.buffering.max.kbytes": 2_000_000})
    producer.list_topics(TOPIC, 20)
    value = b"x" * size
    for at in range(passes):
        for work, do in (
            ("produce", lambda: produce(producer, records, value)),
            ("fetch", lambda first=at * records // PARTITIONS: fetch(bootstrap, records, first)),
        ):
            wall, cpu = time.perf_counter(), time.process_time()
            do()
            row = {"work": work, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
