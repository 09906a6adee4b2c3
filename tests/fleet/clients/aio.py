"""aiokafka: python -m tests.fleet.clients.aio BOOTSTRAP RELEASE COMMAND ..."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from tests.fleet.clients.words import End, say, value


async def send(producer: Any, topic: str, word: str, count: int) -> None:
    sent = [await producer.send(topic, value(word, at), key=b"key-%d" % at) for at in range(count)]
    await producer.flush()
    for one in sent:
        await one


async def admin(bootstrap: str, topic: str, partitions: int) -> None:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    gone = f"{topic}-gone"
    await client.create_topics([NewTopic(topic, partitions, 1), NewTopic(gone, 1, 1)])
    assert {topic, gone} <= set(await client.list_topics())
    await client.delete_topics([gone])
    assert gone not in await client.list_topics()
    await client.close()


async def transactions(bootstrap: str, topic: str, count: int) -> None:
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-tx") as producer:
        for word in ("committed", "aborted"):
            await producer.begin_transaction()
            await send(producer, topic, word, count)
            await (producer.commit_transaction if word == "committed" else producer.abort_transaction)()


async def consume(bootstrap: str, topic: str, group: str, committed: bool) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False,
        session_timeout_ms=10_000, heartbeat_interval_ms=500,
        isolation_level="read_committed" if committed else "read_uncommitted")
    end = End()
    async with consumer:
        while not end.is_set():
            read = await consumer.getmany(timeout_ms=100, max_records=200)
            if not read:
                continue
            say(record.value for records in read.values() for record in records)
            try:
                await consumer.commit()
            except KafkaError as error:
                print(repr(error), file=sys.stderr)


async def main(bootstrap: str, release: str, command: str, topic: str, *arguments: str) -> None:
    if command == "produce":
        codec = None if arguments[0] == "none" else arguments[0]
        async with aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap, compression_type=codec, linger_ms=5) as producer:
            await send(producer, topic, arguments[0], int(arguments[1]))
    elif command == "admin":
        await admin(bootstrap, topic, int(arguments[0]))
    elif command == "transactions":
        await transactions(bootstrap, topic, int(arguments[0]))
    else:
        await consume(bootstrap, topic, arguments[0], not release.startswith("0.10"))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
