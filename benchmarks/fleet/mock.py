"""librdkafka's mock cluster, in a process of its own: prints the address of its broker, ends with standard input."""

from __future__ import annotations

import sys

from confluent_kafka import Producer

producer = Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1})
(broker,) = producer.list_topics("bench", 20).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
sys.stdin.read()
