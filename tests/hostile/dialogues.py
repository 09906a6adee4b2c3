"""Dialogues with a broker that lies: python -m tests.hostile.dialogues --seconds N [--seed S] [--only NAME].

A server on loopback answers as a broker or a controller would, but at any place something else: other bytes, other
lengths, other correlation ids, answers of other APIs, answers that say what cannot be, twice, late, in pieces, never.
The client's call gives a value or an error of kwire's, in bounded time, and leaves no task and no socket. Each round
has a seed; exit 0: nothing found.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
import struct
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import kwire
from kwire import messages, schema
from kwire.cli import main as command
from kwire.codec.frames import FrameReader, Request
from kwire.net import Cluster, FeatureUpdate, connect, connect_sync
from tests.hostile.apart import fresh_peak, peak
from tests.hostile.mutate_messages import damage
from tests.hostile.rounds import numbers, run, seeded, watched
from tests.net import fake

TIMEOUT = 0.6  # seconds that a client waits
PATIENCE = 12.0  # seconds after which a call hangs: some make several requests, on a machine that does other work too
MOST_MEMORY = 192 << 20  # bytes by which a round may grow
RELEASES = ("0.10.0", "1.1", "2.3", "2.7", "2.8", "3.3", "3.9", "4.0", "4.3", "4.4")
NUMBERS = (-(1 << 31), -2, -1, 0, 1, 2, 5, 77, (1 << 15) - 1, (1 << 31) - 1)
NAMES = ("metadata.version", "kraft.version", "group.version", "x", "", "\x1b[31m", "a" * 5000, "\u202eb", "é" * 300)
HOSTS = ("", " ", "127.0.0.1", "::1", "[", "a" * 4000, "x..y", "\x1b]0;h\x07", "nul\0l", "http://u:p@h", "1", "-")
LENGTHS = (-1, -(1 << 31), 0, 1, 3, 4, 100 << 20, (100 << 20) + 1, (1 << 31) - 1, 0x48545450)


class Liar(fake.Server):
    """A node whose answers are those of the dice. lies: how often, from 0 to 1; secrets: bytes that must not leave."""

    def __init__(self, dice: random.Random, *, lies: float, controller: bool) -> None:
        super().__init__(self.talk)
        self.dice, self.lies, self.controller = dice, lies, controller
        self.ranges = fake.of_release(dice.choice(RELEASES))
        if controller:
            self.ranges.pop("Metadata", None)
            self.ranges |= {"DescribeCluster": (0, dice.randrange(3)), "UpdateFeatures": (0, dice.randrange(3)),
                            "ApiVersions": (0, 4)}
        elif dice.random() < 0.5:
            self.ranges["UpdateFeatures"] = (0, dice.randrange(3))
        self.peers: list[int] = []
        self.told = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: reads requests, answers each."""
        frames = FrameReader()
        while data := await reader.read(1 << 16):
            for frame in frames.feed(data):
                try:
                    request = kwire.decode_request(frame)
                except kwire.KwireError:  # a token of an old login
                    await self.send(writer, struct.pack(">i", self.dice.choice(LENGTHS)) + self.dice.randbytes(9))
                    continue
                await self.answer(writer, request)

    async def send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        """The bytes, whole or in pieces."""
        if writer.is_closing():
            return
        if self.dice.random() < 0.1:
            for at in range(0, min(len(data), 300), 1 + self.dice.randrange(7)):
                writer.write(data[at : at + 7][: 1 + self.dice.randrange(7)])
                await asyncio.sleep(0)
        else:
            writer.write(data)
        await writer.drain()

    async def answer(self, writer: asyncio.StreamWriter, request: Request) -> None:
        """An answer, or a lie."""
        dice = self.dice
        body = self.honest(request)
        if dice.random() >= self.lies:
            await self.send(writer, kwire.pack_frame(body))
            return
        self.told += 1
        kind = dice.randrange(16)
        if kind == 0:
            await self.send(writer, struct.pack(">i", dice.choice(LENGTHS)) + body[: dice.randrange(len(body) + 1)])
        elif kind == 1:
            number = (request.correlation_id + dice.choice((-1, 1, 2, 1 << 30)) + (1 << 31)) % (1 << 32) - (1 << 31)
            await self.send(writer, kwire.pack_frame(struct.pack(">i", number) + body[4:]))
        elif kind == 2:
            await self.send(writer, kwire.pack_frame(body) * dice.choice((2, 3, 200)))
        elif kind == 3:
            writer.transport.abort()
        elif kind == 4:
            await self.send(writer, kwire.pack_frame(body)[: dice.randrange(len(body) + 4)])
            writer.close()
        elif kind == 5:
            pass  # never
        elif kind == 6:
            await asyncio.sleep(TIMEOUT * dice.random() * 1.5)
            await self.send(writer, kwire.pack_frame(body))
        elif kind == 7:
            await self.send(writer, dice.choice((b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\0\2\2\x28" * 3,
                                                 dice.randbytes(dice.randrange(200)), bytes(400))))
        elif kind in (8, 9, 10):
            changed = bytearray(body)
            for _ in range(dice.choice((1, 1, 2, 5))):
                damage(changed, dice, body)
            await self.send(writer, kwire.pack_frame(bytes(changed)))
        else:
            await self.send(writer, kwire.pack_frame(self.lie(request)))

    # what it says

    def honest(self, request: Request) -> bytes:
        """The bytes of an answer that may be believed."""
        return self.encoded(request, self.message(request, lambda plain, *_: plain))

    def lie(self, request: Request) -> bytes:
        """The bytes of a well-formed answer whose values cannot be."""
        dice = self.dice

        def odd(plain: Any, choices: Any = NUMBERS) -> Any:
            return dice.choice(choices) if dice.random() < 0.5 else plain

        made = self.message(request, odd)
        if hasattr(made, "error_code") and dice.random() < 0.4:
            made.error_code = dice.choice((-1, 1, 3, 7, 22, 31, 35, 35, 41, 41, 58, 96, 99, 115, 32767, -32768))
        if getattr(type(made), "error_message", None) is not None and dice.random() < 0.5:
            made.error_message = dice.choice((*NAMES, None))
        try:
            return self.encoded(request, made)
        except kwire.KwireError:  # what this version cannot say
            return self.honest(request)

    def encoded(self, request: Request, message: Any) -> bytes:
        version = request.version
        if request.name == "ApiVersions" and getattr(message, "error_code", 0) == 35:
            version = 0
        try:
            return kwire.encode_response(message, version, correlation_id=request.correlation_id)
        except kwire.KwireError:
            if isinstance(message, messages.ApiVersionsResponse):
                return kwire.encode_response(messages.ApiVersionsResponse(api_keys=message.api_keys), version,
                                             correlation_id=request.correlation_id)
            blank = getattr(messages, request.name + "Response")()
            return kwire.encode_response(blank, version, correlation_id=request.correlation_id)

    def message(self, request: Request, odd: Callable[..., Any]) -> Any:
        """The answer to a request; odd(value, other values): what is said of it."""
        dice = self.dice
        ports = [*self.peers, self.port]
        match request.name:
            case "ApiVersions":
                return self.versions(request, odd)
            case "Metadata":
                kind = messages.MetadataResponse
                rows = [kind.MetadataResponseBroker(node_id=odd(n), host=odd(fake.HOST, HOSTS),
                                                    port=odd(port, (*NUMBERS, 65535, 65536)))
                        for n, port in enumerate(ports, 1)]
                return kind(brokers=rows * odd(1, (0, 1, 2, 300)), controller_id=odd(1))
            case "DescribeCluster":
                answer = messages.DescribeClusterResponse
                listed = [answer.DescribeClusterBroker(broker_id=odd(n), host=odd(fake.HOST, HOSTS),
                                                       port=odd(port, (*NUMBERS, 65536)))
                          for n, port in enumerate(ports, 1)]
                made = answer(cluster_id=odd("c", NAMES), controller_id=odd(1), brokers=listed * odd(1, (0, 1, 2, 300)))
                made.endpoint_type = odd(request.message.endpoint_type if request.version else 1, (0, 1, 2, 3, -1))
                return made
            case "UpdateFeatures":
                kind = messages.UpdateFeaturesResponse
                names = [update.feature for update in request.message.feature_updates] if request.message else []
                rows = [kind.UpdatableFeatureResult(feature=odd(name, NAMES), error_code=odd(0, (0, 1, 41, -1, 96)),
                                                    error_message=odd(None, NAMES)) for name in names]
                return kind(results=rows * odd(1, (0, 1, 2, 500)), error_message=odd(None, NAMES))
            case "SaslHandshake":
                return messages.SaslHandshakeResponse(mechanisms=[odd("PLAIN", NAMES), odd("SCRAM-SHA-256", NAMES)])
            case "SaslAuthenticate":
                said = dice.choice((b"", b"r=x,s=eA==,i=4096", b"r=,s=,i=0", b"v=eA==", b"e=other", b"r=" + b"n" * 4000,
                                    b'{"status":"x"}', dice.randbytes(20), b"r=a,s=YQ==,i=2147483647"))
                return messages.SaslAuthenticateResponse(auth_bytes=odd(b"", (said,)), session_lifetime_ms=odd(
                    0, (0, 1, -1, (1 << 63) - 1, 1000)))
            case _:
                return getattr(messages, request.name + "Response")()

    def versions(self, request: Request, odd: Callable[..., Any]) -> Any:
        low, high = self.ranges["ApiVersions"]
        if not low <= request.version <= high:
            return fake.api_versions({"ApiVersions": (low, high)}, error_code=35)
        kind, dice = messages.ApiVersionsResponse, self.dice
        rows = [kind.ApiVersion(api_key=schema.api(name).key, min_version=odd(span[0], (-1, 0, 3, 32767, -32768)),
                                max_version=odd(span[1], (-1, 0, 1, 9, 32767, -32768)))
                for name, span in self.ranges.items()]
        if odd(1, (0,)) == 0:
            rows = rows[: dice.randrange(len(rows))] if dice.random() < 0.5 else rows * dice.choice((2, 40))
            rows.append(kind.ApiVersion(api_key=dice.choice((-1, 97, 32767)), min_version=0, max_version=9))
        made = kind(api_keys=rows)
        if request.version >= 3:
            names = ("metadata.version", "group.version", "transaction.version")
            made.supported_features = [
                kind.SupportedFeatureKey(name=odd(name, NAMES), min_version=odd(1, (0, 2, -1, 32767)),
                                         max_version=odd(30, (0, -1, 32767))) for name in names] * odd(1, (0, 2, 300))
            made.finalized_features = [
                kind.FinalizedFeatureKey(name=odd(name, NAMES), max_version_level=odd(1, (0, -1, 25, 32767)),
                                         min_version_level=odd(1, (0, -1, 9)))
                for name in names] * odd(1, (0, 2, 300))
            made.finalized_features_epoch = odd(5, (-1, -2, 0, (1 << 63) - 1, -(1 << 63)))
        return made


# what clients do

Call = Callable[[str, random.Random], Awaitable[object]]
CALLS: dict[str, Callable[..., Any]] = {}


def call(work: Callable[..., Any]) -> Callable[..., Any]:
    """A call that is given the address of the first node and dice; a coroutine runs in a loop of its own."""
    CALLS[work.__name__] = work
    return work


def login(dice: random.Random) -> Any:
    """A login, or none."""
    return dice.choice((None, None, None, ("PLAIN", "alice", "mark-of-a-secret-1"),
                        ("SCRAM-SHA-256", "alice", "mark-of-a-secret-2"), lambda: "mark-of-a-secret-3"))


def requests(dice: random.Random) -> list[Any]:
    """Some requests."""
    topic = messages.MetadataRequest.MetadataRequestTopic
    every = [
        messages.MetadataRequest(topics=None), messages.MetadataRequest(topics=[topic(name="t")]),
        messages.ApiVersionsRequest(), messages.ListGroupsRequest(), messages.FindCoordinatorRequest(key="g"),
        messages.DescribeClusterRequest(), messages.FetchRequest(max_wait_ms=1, min_bytes=1, topics=[]),
        messages.EndTxnRequest(transactional_id="x"), messages.ListOffsetsRequest(),
        messages.UpdateFeaturesRequest(timeout_ms=10),
    ]  # fmt: skip
    return dice.sample(every, 3)


@call
async def connection(where: str, dice: random.Random) -> None:
    """Several requests at the same time, then a new negotiation."""
    async with connect(where, timeout=TIMEOUT, probe_timeout=TIMEOUT, sasl=login(dice), client_id="c",
                       strict=dice.random() < 0.3) as node:
        found = await asyncio.gather(*(node.send(one) for one in requests(dice)), return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, kwire.KwireError):
                raise one
            repr(one)
        await node.refresh()
        repr((node.versions, node.levels, node.levels_epoch, node.tolerated, node.assumed, node.api_versions, node))


@call
def one_at_a_time(where: str, dice: random.Random) -> None:
    """connect_sync."""
    with connect_sync(where, timeout=TIMEOUT, probe_timeout=TIMEOUT, sasl=login(dice)) as node:
        for one in requests(dice):
            with contextlib.suppress(kwire.KwireError):
                node.send(one)
        node.refresh()
        repr((node.versions, node.levels, node.levels_epoch, node.tolerated, node.api_versions, node))


def cluster_of(where: str, dice: random.Random, controllers: bool) -> Cluster:
    return Cluster(where, timeout=TIMEOUT, probe_timeout=TIMEOUT, partial=dice.random() < 0.5,
                   lazy=dice.random() < 0.5, controllers=controllers, sasl=login(dice))


@call
async def cluster(where: str, dice: random.Random, controllers: bool = False) -> None:
    """All that a cluster can be asked."""
    async with cluster_of(where, dice, controllers) as found:
        repr((found, found.brokers, found.unreachable, found.versions, found.levels, found.api_versions))
        for name in kwire.net.FEATURES:
            found.can(name)
        works: list[Callable[[], Awaitable[Any]]] = [
            lambda: found.send(dice.choice(requests(dice)), to=dice.choice(("any", "controller", 1, -1, 77))),
            found.refresh, found.describe_features, lambda: found.describe_features(dice.choice((1, 2, 77, -1))),
        ]  # fmt: skip
        for work in dice.choices(works, k=5):
            with contextlib.suppress(kwire.KwireError):
                repr(await work())
        repr((found.versions, found.levels, found.levels_epoch, found.tolerated))


@call
async def controllers(where: str, dice: random.Random) -> None:
    """The same of a quorum's controllers (DescribeCluster, endpoint type 2)."""
    await cluster(where, dice, True)


@call
async def features(where: str, dice: random.Random) -> None:
    """Levels changed, and asked for."""
    async with cluster_of(where, dice, dice.random() < 0.5) as found:
        names = dice.sample(("metadata.version", "group.version", "kraft.version", "x"), 2)
        updates = {name: FeatureUpdate(dice.randrange(1, 9), dice.choice(("NONE", "SAFE", "UNSAFE"))) for name in names}
        results = await found.update_features(updates, dry_run=dice.random() < 0.5)
        assert set(results) == set(updates), results
        for error in results.values():
            visible(str(error), "the error of a feature")
            assert error is None or isinstance(error, kwire.KwireError)
        repr(await found.describe_features())


@call
def commands(where: str, dice: random.Random) -> None:
    """kwire versions and kwire features."""
    line = dice.choice((
        ["versions", "--bootstrap-server", where], ["versions", "--bootstrap-server", where, "--json"],
        ["versions", "--bootstrap-server", where, "--against", "3.9"],
        ["features", "--bootstrap-server", where, "describe"],
        ["features", "--bootstrap-controller", where, "describe", "--json"],
        ["features", "--bootstrap-server", where, "upgrade", "--feature", "group.version=1"],
        ["features", "--bootstrap-controller", where, "downgrade", "--feature", "x=1", "--unsafe", "--json"],
        ["features", "--bootstrap-server", where, "upgrade", "--release-version", "4.0", "--dry-run"],
    ))  # fmt: skip
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    kept, sys.stdout, sys.stderr = (sys.stdout, sys.stderr), out, err
    try:
        code = command([*line, "--timeout", str(TIMEOUT)])
    finally:
        sys.stdout, sys.stderr = kept
    out.flush(), err.flush()
    said = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    assert code in (0, 1, 2), (line, code)
    assert "Traceback" not in said[1], said[1]
    for text in said:
        visible(text, " ".join(line))


def visible(text: str, what: str) -> None:
    """AssertionError where a terminal would do more than show it, or where it has a secret."""
    assert all(sign.isprintable() or sign in "\n\t" for sign in text), f"{what}: {text!r:.500}"
    assert "mark-of-a-secret" not in text, f"{what}: {text!r:.500}"


async def talk(work: Callable[..., Any], where: str, dice: random.Random) -> None:
    """A call in a loop of its own. AssertionError where it leaves a task or a socket."""
    before, tasks = fake.sockets(), asyncio.all_tasks()
    try:
        await work(where, dice)
    finally:
        for _ in range(200):
            left, leaked = asyncio.all_tasks() - tasks, fake.sockets() - before
            if not left and not leaked:
                break
            await asyncio.sleep(0.005)
        assert not left, f"tasks are left: {left}"


def one(name: str, seed: int) -> str:
    """One dialogue; how it went."""
    dice = random.Random(seed)
    count, most = dice.choice((1, 1, 2, 3)), dice.choice((0.05, 0.2, 0.5, 1.0))
    nodes = [Liar(random.Random(dice.random()), lies=most, controller=dice.random() < 0.4) for _ in range(count)]
    work = CALLS[name]
    threads, started = threading.active_count(), fresh_peak()
    with fake.serving(*nodes):
        for node in nodes:
            node.peers = [other.port for other in nodes if other is not node]
        began, outcome = time.monotonic(), "a value"
        try:
            if asyncio.iscoroutinefunction(work):
                asyncio.run(talk(work, nodes[0].address, dice))
            else:
                work(nodes[0].address, dice)
        except kwire.KwireError as error:
            outcome = type(error).__name__
            visible(str(error), name)
            visible("".join(traceback.format_exception(error)), name)
        took = time.monotonic() - began
    assert took < PATIENCE, f"took {took:.1f} s"
    grown = peak() - started
    assert grown < MOST_MEMORY, f"grew by {grown >> 20} MiB"
    for _ in range(100):
        if threading.active_count() <= threads:
            break
        time.sleep(0.01)
    assert threading.active_count() <= threads, f"threads are left: {threading.enumerate()}"
    return outcome


def rounds(seconds: float, seed: int, only: list[str], least: int = 1) -> Counter[str]:
    """Dialogues until the time is over, at least so many of each; how they went. Raises with a note what one raises."""
    counts, names = Counter[str](), only or [*CALLS]
    for number in numbers(seconds, least * len(names)):
        name, at = names[number % len(names)], seed + number // len(names)
        with watched(5 * PATIENCE, f"--only {name} --seed {at} --seconds 0"):
            counts[one(name, at)] += 1
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Dialogues until the time is over."""
    parser = seeded(__doc__)
    parser.add_argument("--only", action="append", choices=sorted(CALLS), default=[])
    return run(parser, arguments, lambda given: rounds(given.seconds, given.seed, given.only, given.least),
               "dialogues: nothing found")


if __name__ == "__main__":
    sys.exit(main())
