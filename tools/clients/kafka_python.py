"""The workload of kafka-python: python -m tools.clients.kafka_python BOOTSTRAP PREFIX."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import kafka
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from tools.clients.steps import CODECS, HEADERS, attempt, records


def produce(producer: Any, topic: str, count: int) -> None:
    """Sends records and waits for them."""
    for key, value in records(count):
        producer.send(topic, key=key, value=value, headers=HEADERS if key else None)
    producer.flush()


def transaction(bootstrap: str, topic: str, commit: bool) -> None:
    """One transaction, committed or aborted."""
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-tx")
    producer.init_transactions()
    producer.begin_transaction()
    produce(producer, topic, 8)
    (producer.commit_transaction if commit else producer.abort_transaction)()
    producer.close()


def consume(bootstrap: str, topic: str, client: str) -> None:
    """Reads a topic as a group and commits."""
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=bootstrap, client_id=client, group_id=f"{topic}-group",
        auto_offset_reset="earliest", consumer_timeout_ms=4000, enable_auto_commit=False,
    )  # fmt: skip
    list(consumer)
    consumer.commit()
    consumer.close()


def main(bootstrap: str, prefix: str) -> None:
    """The whole workload."""
    topic, client = f"{prefix}-kafka-python", f"{prefix}-kp"
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap, client_id=client)
    attempt("create topic", lambda: admin.create_topics([NewTopic(topic, 2, 1)]))
    attempt("describe cluster", admin.describe_cluster)
    attempt("describe configs", lambda: admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)]))
    for codec in CODECS:
        kind = None if codec == "none" else codec

        def send(kind: str | None = kind) -> None:
            producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, client_id=client, compression_type=kind)
            produce(producer, topic, 20)
            producer.close()

        attempt(f"produce {codec}", send)
    for commit in (True, False):
        attempt(f"transaction {commit}", partial(transaction, bootstrap, topic, commit))
    attempt("consume", lambda: consume(bootstrap, topic, client))
    attempt(
        "list groups", lambda: admin.list_groups() if hasattr(admin, "list_groups") else admin.list_consumer_groups()
    )
    admin.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
