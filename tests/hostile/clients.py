"""Clients that lie, at a fleet and at a Proxy: python -m tests.hostile.clients --seconds N [--seed S].

Requests of every API and version with values at random, of which some bytes are changed, go to a broker or a
controller; and answers of a broker with such values go through a Proxy. Each request is answered, or its connection is
closed; no exception reaches the event loop, none becomes an answer UNKNOWN_SERVER_ERROR by itself, and no task, socket
or much memory is left. Each round has a seed; exit 0: nothing found.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import traceback
import uuid
from collections import Counter
from typing import Any

import kwire
from kwire import messages, schema
from kwire.codec.frames import FrameReader, encode_request, encode_response, pack_frame
from kwire.fleet import Fleet, Proxy
from kwire.fleet.apis import CONTROLLER_HANDLERS, HANDLERS
from kwire.net.address import Address, address
from tests.hostile.apart import fresh_peak, peak
from tests.hostile.rounds import numbers, run, seeded, watched
from tests.hostile.samples import number
from tests.net import fake

PATIENCE = 20.0  # seconds for the requests of one round, on a machine that does other work too
WAIT = 0.2  # seconds for an answer that may be long in coming: of a rebalance, or none at all
AT_ONCE = 25
MOST_MEMORY = 128 << 20  # bytes by which a round may grow
RELEASES = ("0.9.0", "0.10.2", "1.0", "2.1", "2.8", "3.3", "3.9", "4.0", "4.4")
NAMES = (
    "t", "t", "t", "u", "", "nope", "__consumer_offsets", "x" * 249, "x" * 32_767, "a/b", "\0", "g", "g", "é",
    "\x1b[31m", "consumer", "consumer", "range", "uniform", "group.version", "metadata.version", "max.message.bytes",
    "retention.ms", "message.timestamp.type", "LogAppendTime", "*", "(a*)*b", "User:a", "kafka-cluster", "PLAIN",
    "SCRAM-SHA-256", "(" * 400, "1", "-1", "9" * 30, "\N{SUPERSCRIPT TWO}",
)
HOSTS = ("127.0.0.1", "", "nul\0l", "x" * 300, "é" * 70, "[::1]", "\x1b[31m", "a..b", "xn--a")
PORTS = (1, 0, -1, 65_535, 65_536, 1 << 30)
SMALL = {"num_partitions", "count", "partition_index", "index"}  # fields whose large values cost what they ask for
BATCHES = [
    kwire.build_batch([(1, b"k", b"v")] * 3, magic=magic, codec=codec)
    for magic in (0, 1, 2) for codec in ("none", "gzip", "snappy", "lz4", "zstd") if magic == 2 or codec != "zstd"
] + [
    kwire.build_batch([(1, b"k", b"v")] * 3, producer_id=0, producer_epoch=0, base_sequence=0, transactional=True),
    kwire.build_batch([(1, b"k", b"v")] * 3, producer_id=1, producer_epoch=0, base_sequence=(1 << 31) - 1),
    kwire.build_batch([((1 << 63) - 1, b"k", b"v"), (-(1 << 63), None, None)]),
    kwire.build_batch([], base_offset=5, last_offset=1 << 31),
    kwire.build_batch([(1, bytes(4), bytes(6))], control=True, transactional=True, producer_id=3, producer_epoch=3),
]


class Maker:
    """Messages with values at random; ids: of topics that there are; members: ids that were given out."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.ids = [uuid.UUID(int=0), uuid.UUID(int=5)]
        self.members = [""]

    def records(self) -> bytes:
        """Batches, some with other bytes, of which some have the checksum of these."""
        data = bytearray(b"".join(self.dice.choices(BATCHES, k=self.dice.choice((1, 1, 2)))))
        if self.dice.random() < 0.5:
            for _ in range(self.dice.randrange(1, 4)):
                data[self.dice.randrange(len(data))] = self.dice.randrange(256)
            if self.dice.random() < 0.5 and len(data) > 61:
                data[17:21] = kwire.crc32c(data[21:]).to_bytes(4, "big")
        return bytes(data if self.dice.random() < 0.9 else data[: self.dice.randrange(len(data))])

    def value(self, message: str, kind: str, field: schema.Field, version: int) -> Any:
        """A value of one type, no array."""
        name, dice = field.snake_name, self.dice
        if field.fields:
            return self.filled(message, getattr(getattr(messages, message), kind), field.fields, version)
        if kind == "string":
            if "host" in name:
                return dice.choice(HOSTS)
            return dice.choice(self.members[-20:] if "member_id" in name and dice.random() < 0.8 else NAMES)
        if kind == "uuid":
            return dice.choice(self.ids)
        if kind == "bool":
            return dice.random() < 0.5
        if kind == "float64":
            return dice.choice((0.0, float("nan"), float("inf")))
        if kind in ("bytes", "records"):
            tokens = (b"", b"\0a\0b", b"n,,n=a,r=x", dice.randbytes(20))
            return self.records() if "record" in name else dice.choice(tokens)
        if name == "port" and kind == "int32":
            return dice.choice(PORTS)
        if name == "max_wait_ms":
            return dice.choice((-1, 0, 5))
        if "timeout" in name and dice.random() < 0.8:
            return dice.choice((6_000, 60_000))
        if (name in SMALL and dice.random() < 0.9) or dice.random() < 0.5:
            return dice.choice((0, 0, 1, 2, 5))
        return number(kind, dice)

    def filled(self, message: str, cls: Any, fields: tuple[schema.Field, ...], version: int) -> Any:
        """An instance with values in most fields that the version has."""
        values: dict[str, Any] = {}
        for field in fields:
            if version not in field.versions or (version in field.tagged_versions and self.dice.random() < 0.3):
                continue
            if version in field.nullable_versions and self.dice.random() < 0.25:
                values[field.snake_name] = None
            elif field.is_array:
                count = self.dice.choice((0, 1, 1, 2, 3))
                values[field.snake_name] = [self.value(message, field.element, field, version) for _ in range(count)]
            else:
                values[field.snake_name] = self.value(message, field.type, field, version)
        return cls(**values)

    def message(self, name: str, version: int) -> Any:
        """A message of the schema."""
        return self.filled(name, getattr(messages, name), schema.message(name).fields, version)

    def damaged(self, frame: bytes) -> bytes:
        """A frame, now and then with other bytes."""
        data = bytearray(frame)
        if self.dice.random() < 0.15:
            for _ in range(self.dice.randrange(1, 5)):
                data[self.dice.randrange(len(data))] = self.dice.randrange(256)
        return bytes(data)


async def asked(host: str, port: int, frame: bytes) -> str:
    """What comes of a request on a connection of its own: "answered", "closed" or "silent"."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        return "closed"
    try:
        writer.write(frame)
        frames = FrameReader()
        async with asyncio.timeout(WAIT):
            while data := await reader.read(1 << 16):
                if frames.feed(data):
                    return "answered"
        return "closed"
    except TimeoutError:
        return "silent"
    except OSError:
        return "closed"
    finally:
        writer.transport.abort()


async def at_a_fleet(maker: Maker, counts: Counter[str]) -> None:
    """Requests to the nodes of a fleet, in memory or in a folder; which has the same records afterwards."""
    release, dice = maker.dice.choice(RELEASES), maker.dice
    users = {"a": "b"} if dice.random() < 0.2 else None
    with tempfile.TemporaryDirectory(prefix="kwire-clients.") as folder:
        data = folder if dice.random() < 0.5 else None
        async with Fleet(
                release, nodes=2, topics={"t": 2, "u": 1}, sasl=users, seed=dice.randrange(99), data=data) as fleet:
            await asked_at_random(fleet, maker, counts)
            failed = [one for one in fleet.events if one["event"] == "failed" and "exceeds 32767" not in one["reason"]]
            assert not failed, f"{release}: {failed[0]}"
            levels, before = fleet.cluster.levels, kept(fleet)
        if data is not None:
            async with Fleet(release, nodes=2, data=data, sasl=users) as fleet:
                after = kept(fleet)
                assert after == before, f"{release}: {levels}, kept {difference(before, after)}"
                await answers(fleet)


def kept(fleet: Fleet) -> dict[Any, Any]:
    """What a fleet keeps in its folder: records, offsets, transactions that are not over."""
    found: dict[Any, Any] = {}
    for topic in fleet.cluster.topics.values():
        found[topic.name] = len(topic.partitions), topic.id, topic.configs
        for one in topic.partitions if not topic.name.startswith("__") else ():
            found[topic.name, one.index] = one.log.start_offset, one.log.end_offset, one.log.last_stable_offset
            found[topic.name, one.index, "records"] = fleet.records(topic.name, one.index)
    for name, group in fleet.cluster.groups.groups.items():
        if group.offsets:
            found["offsets", name] = {key: one[:3] for key, one in group.offsets.items()}
    for name, one in fleet.cluster.transactions.transactions.items():
        found["transaction", name] = one.producer_id, one.epoch, one.state
    return found


def difference(before: dict[Any, Any], after: dict[Any, Any]) -> str:
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return str([(key, before.get(key), after.get(key)) for key in keys[:3]])[:2000]


async def answers(fleet: Fleet) -> None:
    """Every broker that is up answers."""
    for node in fleet.nodes:
        if not node.offer.is_silent and node.alive:
            hello = encode_request(messages.ApiVersionsRequest(), 0)
            for _ in range(20):
                how = await asked(node.host, node.port, pack_frame(hello))
                if how == "answered":
                    break
            assert how == "answered", f"{node} is {how}"


async def asked_at_random(fleet: Fleet, maker: Maker, counts: Counter[str]) -> None:
    dice, given = maker.dice, fleet.cluster.groups.new_member_id

    def remembered(client_id: str, instance_id: str | None) -> str:
        member = given(client_id, instance_id)
        maker.members += [member] * (len(member) < 1000)  # longer ones do not fit into a request
        return member

    fleet.cluster.groups.new_member_id = remembered  # type: ignore[method-assign]
    for _ in range(4):
        for name, partitions in (("t", 2), ("u", 1)):
            if name not in fleet.cluster.topics and fleet.cluster.alive():  # deleted by a request
                fleet.cluster.create_topic(name, partitions)
        maker.ids[2:] = fleet.cluster.topics_by_id
        node = dice.choice(fleet.nodes)
        handlers, ranges, port = HANDLERS, node.offer.usable, node.port
        if node.is_controller and dice.random() < 0.25:
            handlers, ranges, port = CONTROLLER_HANDLERS, node.offer.controller_ranges, node.controller_port
        frames: list[bytes] = []
        while len(frames) < AT_ONCE:
            key = dice.choice(list(handlers))
            low, high = ranges.get(key, (0, -1))
            if high < low:
                continue
            version = dice.randint(low, high)
            request = maker.message(f"{schema.api(key).name}Request", version)
            if getattr(request, "cluster_id", None) is not None and dice.random() < 0.9:
                request.cluster_id = fleet.cluster.cluster_id
            frame = encode_request(request, version, correlation_id=7, client_id=dice.choice(NAMES))
            frames.append(pack_frame(maker.damaged(frame)))
        counts.update(await asyncio.gather(*(asked(node.host, port, frame) for frame in frames)))
    await answers(fleet)


async def at_a_proxy(maker: Maker, counts: Counter[str]) -> None:
    """Answers of a broker that lies, through a Proxy."""
    dice = maker.dice
    names = ("Metadata", "FindCoordinator", "DescribeCluster", "ApiVersions", "Produce", "Fetch")

    async def lie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        while data := await reader.read(1 << 16):
            for frame in frames.feed(data):
                try:
                    header = kwire.decode_request_header(frame)
                except kwire.KwireError:
                    writer.write(dice.randbytes(30))
                    continue
                name, version = schema.api(header.request_api_key).name, header.request_api_version
                answer = maker.message(f"{name}Response", version)
                answer = pack_frame(maker.damaged(
                    encode_response(answer, version, correlation_id=header.correlation_id)))
                writer.write(dice.choice((answer, answer, answer, answer * 2, answer[:-1], dice.randbytes(9), b"")))

    async with fake.Server(lie) as broker, Proxy(broker.address) as proxy:
        for _ in range(2):
            frames = []
            for _ in range(AT_ONCE):
                api = schema.api(dice.choice(names))
                version = dice.randint(api.min_version, api.max_version)
                request = maker.message(f"{api.name}Request", version)
                frames.append(pack_frame(maker.damaged(encode_request(request, version))))
            places = [address(proxy.bootstrap), *(Address(host, port) for (_, host), port in proxy._ports.items())]
            counts.update(await asyncio.gather(*(asked(*dice.choice(places), frame) for frame in frames)))


async def one(seed: int, counts: Counter[str]) -> None:
    """One round."""
    raised: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
    dice = random.Random(seed)
    async with asyncio.timeout(PATIENCE):
        await (at_a_proxy if seed % 4 == 3 else at_a_fleet)(Maker(dice), counts)
    for _ in range(100):
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if not left:
            break
        await asyncio.sleep(0.01)
    assert not left, f"tasks are left: {left}"
    for context in raised:
        error = context.get("exception")
        raise AssertionError(context["message"] + "".join(traceback.format_exception(error) if error else ""))


def rounds(seconds: float, seed: int, least: int = 1) -> Counter[str]:
    """Rounds until the time is over, at least so many; what came of the requests."""
    counts = Counter[str]()
    for at in numbers(seconds, least):
        with watched(5 * PATIENCE, f"--seed {seed + at} --seconds 0"):
            started = fresh_peak()
            asyncio.run(one(seed + at, counts))
            grown = peak() - started
            assert grown < MOST_MEMORY, f"grew by {grown >> 20} MiB"
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Rounds until the time is over."""
    return run(seeded(__doc__), arguments, lambda given: rounds(given.seconds, given.seed, given.least),
               "requests: nothing found")


if __name__ == "__main__":
    sys.exit(main())
