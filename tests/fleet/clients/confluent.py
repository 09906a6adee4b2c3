"""confluent-kafka (librdkafka): python -m tests.fleet.clients.confluent BOOTSTRAP RELEASE COMMAND ..."""

from __future__ import annotations

import sys
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from tests.fleet.clients.words import End, say, value


def send(producer: Any, topic: str, word: str, count: int) -> None:
    failed: list[Any] = []

    def done(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(error)

    for at in range(count):
        producer.produce(topic, value(word, at), b"key-%d" % at, on_delivery=done)
        producer.poll(0)
    assert producer.flush(60) == 0 and not failed, failed[:3]


def admin(bootstrap: str, release: str, topic: str, partitions: int) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    gone = f"{topic}-gone"
    for future in client.create_topics([NewTopic(topic, partitions, 1), NewTopic(gone, 1, 1)]).values():
        future.result(20)
    assert {topic, gone} <= set(client.list_topics(timeout=20).topics)
    if not release.startswith("0."):
        (configs,) = client.describe_configs([ConfigResource("topic", topic)]).values()
        assert configs.result(20)["cleanup.policy"].value == "delete"
        client.create_partitions([NewPartitions(gone, 3)])[gone].result(20)
    client.delete_topics([gone])[gone].result(20)
    try:
        client.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
        raise AssertionError("made twice")
    except KafkaException as error:
        assert error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS, error


def transactions(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-tx"})
    producer.init_transactions(20)
    for word in ("committed", "aborted"):
        producer.begin_transaction()
        send(producer, topic, word, count)
        (producer.commit_transaction if word == "committed" else producer.abort_transaction)(20)


def consume(bootstrap: str, topic: str, group: str) -> None:
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
        "enable.auto.commit": False, "session.timeout.ms": 10_000, "heartbeat.interval.ms": 500})
    consumer.subscribe([topic])
    end = End()
    while not end.is_set():
        records = consumer.consume(200, 0.1)
        for record in records:
            if record.error() is not None:
                raise KafkaException(record.error())
        say(record.value() for record in records)
        if records:
            try:
                consumer.commit(asynchronous=False)
            except KafkaException as error:
                print(error, file=sys.stderr)
    consumer.close()


def main(bootstrap: str, release: str, command: str, topic: str, *arguments: str) -> None:
    if command == "produce":
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": arguments[0], "linger.ms": 5})
        send(producer, topic, arguments[0], int(arguments[1]))
    elif command == "admin":
        admin(bootstrap, release, topic, int(arguments[0]))
    elif command == "transactions":
        transactions(bootstrap, topic, int(arguments[0]))
    else:
        consume(bootstrap, topic, arguments[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
