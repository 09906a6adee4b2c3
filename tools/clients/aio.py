"""The workload of aiokafka: python -m tools.clients.aio BOOTSTRAP PREFIX."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tools.clients.steps import CODECS, HEADERS, records


async def attempt(name: str, step: Coroutine[Any, Any, Any]) -> None:
    """As steps.attempt, for coroutines."""
    try:
        await step
    except Exception as error:  # whatever the client raises
        print(f"failed {name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)


async def produce(bootstrap: str, client: str, topic: str, **options: Any) -> None:
    """Sends records and waits for them."""
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, client_id=client, **options) as producer:
        for key, value in records(20):
            await producer.send_and_wait(topic, value, key=key, headers=HEADERS if key else None)


async def transactions(bootstrap: str, client: str, topic: str) -> None:
    """A transaction that commits and one that aborts."""
    options = {"bootstrap_servers": bootstrap, "client_id": client, "transactional_id": f"{topic}-tx"}
    async with aiokafka.AIOKafkaProducer(**options) as producer:
        for abort in (False, True):
            await producer.begin_transaction()
            for key, value in records(8):
                await producer.send_and_wait(topic, value, key=key)
            await (producer.abort_transaction if abort else producer.commit_transaction)()


async def consume(bootstrap: str, client: str, topic: str) -> None:
    """Reads a topic as a group and commits."""
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, client_id=client, group_id=f"{topic}-group",
        auto_offset_reset="earliest", enable_auto_commit=False,
    )  # fmt: skip
    async with consumer:
        while await consumer.getmany(timeout_ms=3000):
            pass
        await consumer.commit()


async def workload(bootstrap: str, prefix: str) -> None:
    """The whole workload."""
    topic, client = f"{prefix}-aiokafka", f"{prefix}-aio"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap, client_id=client)
    await admin.start()
    await attempt("create topic", admin.create_topics([NewTopic(topic, 2, 1)]))
    for codec in CODECS:
        kind = None if codec == "none" else codec
        await attempt(f"produce {codec}", produce(bootstrap, client, topic, compression_type=kind))
    await attempt("produce idempotent", produce(bootstrap, client, topic, enable_idempotence=True))
    await attempt("transactions", transactions(bootstrap, client, topic))
    await attempt("consume", consume(bootstrap, client, topic))
    await attempt("list groups", admin.list_consumer_groups())
    await admin.close()


if __name__ == "__main__":
    asyncio.run(workload(*sys.argv[1:]))
