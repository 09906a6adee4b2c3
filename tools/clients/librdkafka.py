"""The workload of confluent-kafka (librdkafka): python -m tools.clients.librdkafka BOOTSTRAP PREFIX."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from tools.clients.steps import CODECS, HEADERS, attempt, records


def wait(futures: dict[Any, Any]) -> None:
    """Waits for what an admin call started."""
    for future in futures.values():
        future.result(20)


def produce(options: dict[str, Any], topic: str, count: int) -> None:
    """Sends records and waits for them."""
    producer = Producer(options)
    for key, value in records(count):
        producer.produce(topic, value, key, headers=HEADERS if key else None)
    producer.flush(20)


def transaction(options: dict[str, Any], topic: str, commit: bool) -> None:
    """One transaction, committed or aborted."""
    producer = Producer(options | {"transactional.id": f"{topic}-tx"})
    producer.init_transactions(20)
    producer.begin_transaction()
    for key, value in records(8):
        producer.produce(topic, value, key)
    (producer.commit_transaction if commit else producer.abort_transaction)(20)


def consume(options: dict[str, Any], topic: str, protocol: str) -> None:
    """Reads a topic as a group of the classic or the new protocol and commits."""
    group = {"group.id": f"{topic}-{protocol}", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer(options | group | {"group.protocol": protocol})
    consumer.subscribe([topic])
    while consumer.poll(4.0) is not None:
        pass
    consumer.commit(asynchronous=False)
    consumer.close()


def main(bootstrap: str, prefix: str) -> None:
    """The whole workload."""
    topic = f"{prefix}-librdkafka"
    options = {"bootstrap.servers": bootstrap, "client.id": f"{prefix}-rdkafka"}
    admin = AdminClient(options)
    attempt("create topic", lambda: wait(admin.create_topics([NewTopic(topic, 2, 1)])))
    attempt("describe configs", lambda: wait(admin.describe_configs([ConfigResource("topic", topic)])))
    attempt("create partitions", lambda: wait(admin.create_partitions([NewPartitions(topic, 3)])))
    for codec in CODECS:
        attempt(f"produce {codec}", partial(produce, options | {"compression.type": codec}, topic, 20))
    attempt("produce idempotent", lambda: produce(options | {"enable.idempotence": True}, topic, 20))
    for commit in (True, False):
        attempt(f"transaction {commit}", partial(transaction, options, topic, commit))
    for protocol in ("classic", "consumer"):
        attempt(f"consume {protocol}", partial(consume, options, topic, protocol))
    attempt("list groups", lambda: admin.list_consumer_groups().result(20))


if __name__ == "__main__":
    main(*sys.argv[1:])
