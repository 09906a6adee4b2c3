"""One confluent-kafka client: produces records, reads them back, and prints what that took as a line of JSON.

python -m benchmarks.fleet.client BOOTSTRAP RECORDS BYTES
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition

TOPIC, PARTITIONS = "bench", 4
FEW = 10_000  # records at a time


def measured(work: str, records: int, wall: float, cpu: float) -> None:
    """Print a rate a second of the clock, and the client's CPU seconds."""
    print(json.dumps({"work": work, "wall": records / wall, "cpu": cpu}), flush=True)


def main(bootstrap: str, records: int, size: int) -> None:
    """Produce, then fetch."""
    producer = Producer({
        "bootstrap.servers": bootstrap, "linger.ms": 5, "queue.buffering.max.messages": 2_000_000,
        "queue.buffering.max.kbytes": 2_000_000})
    producer.list_topics(TOPIC, 20)
    value = b"x" * size
    wall, cpu = time.perf_counter(), time.process_time()
    for at in range(records):
        producer.produce(TOPIC, value, partition=at * PARTITIONS // records)
        if at % FEW == 0:
            producer.poll(0)
    if producer.flush(300):
        sys.exit("records are left")
    measured("produce", records, time.perf_counter() - wall, time.process_time() - cpu)
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False, "queued.min.messages": 1_000_000})
    wall, cpu = time.perf_counter(), time.process_time()
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    read = 0
    while read < records:
        read += len(consumer.consume(FEW, 1.0))
    measured("fetch", records, time.perf_counter() - wall, time.process_time() - cpu)
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
