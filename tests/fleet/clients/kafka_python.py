"""kafka-python: python -m tests.fleet.clients.kafka_python BOOTSTRAP RELEASE COMMAND ..."""

from __future__ import annotations

import sys

import kafka
import kafka.errors
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from tests.fleet.clients.words import End, say, value


def send(producer: kafka.KafkaProducer, topic: str, word: str, count: int) -> None:
    sent = [producer.send(topic, key=b"key-%d" % at, value=value(word, at)) for at in range(count)]
    producer.flush(60)
    for one in sent:
        one.get(20)


def admin(bootstrap: str, release: str, topic: str, partitions: int) -> None:
    client = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    gone = f"{topic}-gone"
    client.create_topics([NewTopic(topic, partitions, 1), NewTopic(gone, 1, 1)])
    assert {topic, gone} <= set(client.list_topics())
    if not release.startswith("0."):
        client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    client.delete_topics([gone])
    assert gone not in client.list_topics()
    try:
        client.create_topics([NewTopic(topic, 1, 1)])
        raise AssertionError("made twice")
    except kafka.errors.TopicAlreadyExistsError:
        pass
    client.close()


def transactions(bootstrap: str, topic: str, count: int) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-tx")
    producer.init_transactions()
    for word in ("committed", "aborted"):
        producer.begin_transaction()
        send(producer, topic, word, count)
        (producer.commit_transaction if word == "committed" else producer.abort_transaction)()
    producer.close()


def consume(bootstrap: str, topic: str, group: str, committed: bool) -> None:
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False,
        session_timeout_ms=10_000, heartbeat_interval_ms=500, max_poll_records=200,
        isolation_level="read_committed" if committed else "read_uncommitted")
    end = End()
    while not end.is_set():
        read = consumer.poll(1000)  # kafka-python 3.0.12 may never join if its first poll was too short
        if not read:
            continue
        say(record.value for records in read.values() for record in records)
        try:
            consumer.commit()
        except kafka.errors.KafkaError as error:
            print(repr(error), file=sys.stderr)
    consumer.close()


def main(bootstrap: str, release: str, command: str, topic: str, *arguments: str) -> None:
    if command == "produce":
        codec = None if arguments[0] == "none" else arguments[0]
        producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, compression_type=codec, linger_ms=5)
        send(producer, topic, arguments[0], int(arguments[1]))
        producer.close()
    elif command == "admin":
        admin(bootstrap, release, topic, int(arguments[0]))
    elif command == "transactions":
        transactions(bootstrap, topic, int(arguments[0]))
    else:
        consume(bootstrap, topic, arguments[0], not release.startswith("0.10"))


if __name__ == "__main__":
    main(*sys.argv[1:])
