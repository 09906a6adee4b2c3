"""Eight threads on each object that can be shared: python -m tests.hostile.races --seconds N [--seed S] [--only NAME].

Each case makes an object, has all threads use it at once, and compares with what one thread gets: every item once, none
twice, none lost, or a KwireError, or the error that says that another thread is at it. Anything else is raised.
"""

from __future__ import annotations

import copy
import faulthandler
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow

import kwire
from kwire import messages
from kwire.capture import FrameWriter, read_capture
from kwire.capture.exchange import Connection, Frame
from kwire.compression import compress, decompress
from kwire.net import connect_sync
from kwire.output import new_file
from kwire.storage import ClusterImage, LogDirectory, LogSegment, SegmentWriter, discover, salvage_log
from kwire.storage.isolation.planned_log import LogEnd
from kwire.storage.isolation.transactions import FirstMarkers
from kwire_c import arrow, containers
from tests.capture import making as captures
from tests.hostile.rounds import seeded, watched
from tests.hostile.sanitized import ROOT
from tests.net import fake
from tests.storage import making
from tests.storage.metadata.records import Cluster as MetadataRecords
from tests.storage.metadata.records import write_log

THREADS = 8
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
BUSY = ("already executing", "another thread")  # what an object says that takes one thread at a time
HANG = float(os.environ.get("KWIRE_PATIENCE", 240))  # seconds of one case after which the process ends, with stacks
Case = Callable[[random.Random, Path], None]
CASES: dict[str, Case] = {}


def case(work: Case) -> Case:
    CASES[work.__name__] = work
    return work


@contextmanager
def hasty() -> Iterator[None]:
    """The interpreter changes threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(work: Callable[[int], object], threads: int = THREADS) -> None:
    """Runs work(0), work(1), ... at the same moment, each in a thread; what one raises comes out."""
    start, raised = threading.Barrier(threads), []

    def body(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as error:
            raised.append(error)

    running = [threading.Thread(target=body, args=(number,), daemon=True) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(HANG + 60)
        assert not thread.is_alive(), "a thread hangs"
    if raised:
        raise raised[0]


def is_busy(error: BaseException) -> bool:
    return type(error) is ValueError and any(word in str(error) for word in BUSY)


def insist(work: Callable[[], Any]) -> Any:
    """The result, tried again for as long as another thread is at the object."""
    while True:
        try:
            return work()
        except ValueError as error:
            if not is_busy(error):
                raise


def drained(shared: Any, key: Callable[[Any], Any]) -> tuple[list[Any], list[str]]:
    """(items by key, errors), sorted, of all threads that take from one iterator until its end."""
    items: list[list[Any]] = [[] for _ in range(THREADS)]
    errors: list[str] = []

    def work(number: int) -> None:
        while True:
            try:
                items[number].append(key(insist(lambda: next(shared))))
            except StopIteration:
                return
            except kwire.KwireError as error:
                errors.append(str(error))

    together(work)
    return sorted(item for found in items for item in found), sorted(errors)


def alone(iterator: Any, key: Callable[[Any], Any]) -> tuple[list[Any], list[str]]:
    """The same, of one thread."""
    found, errors = [], []
    try:
        for item in iterator:
            found.append(key(item))
    except kwire.KwireError as error:
        errors.append(str(error))
    return sorted(found), errors


def same(found: Any, wanted: Any, what: str) -> None:
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], list):
        same(found[0], wanted[0], what)
        same(found[1], wanted[1], f"{what}: errors")
    elif found != wanted:
        difference = f"{found!r:.600}\n    wanted {wanted!r:.600}"
        if isinstance(found, list) and isinstance(wanted, list):
            extra, lost = Counter(map(repr, found)), Counter(map(repr, wanted))
            difference = f"too many: {list(extra - lost)[:5]!r:.300}; lost: {list(lost - extra)[:5]!r:.300}"
        raise AssertionError(f"{what}: {difference}")


def rows(dice: random.Random, count: int, size: int = 40) -> list[tuple[Any, ...]]:
    return [(1000 + n, b"k%d" % n, dice.randbytes(size // 2).hex().encode(), [("h", b"%d" % n)]) for n in range(count)]


def batch(dice: random.Random, magic: int, codec: str, base: int, count: int = 20, size: int = 400) -> bytes:
    """Large enough for the libraries to give up the interpreter's lock."""
    listed = rows(dice, count, size)
    if magic < 2:
        listed = [row[:3] for row in listed]
    return kwire.build_batch(listed, magic=magic, codec=codec, base_offset=base)


def log(dice: random.Random, damage: float = 0.0, batches: int = 60) -> bytes:
    """Batches of every magic and codec, in random order, some of them with a byte changed."""
    parts, base = [], 0
    kinds = [(magic, codec) for magic in (0, 1, 2) for codec in CODECS if magic == 2 or codec != "zstd"]
    for _ in range(batches):
        part = bytearray(batch(dice, *dice.choice(kinds), base))
        base += 20
        if dice.random() < damage:
            part[dice.randrange(62, len(part))] ^= 1 << dice.randrange(8)
        parts.append(part)
    return b"".join(parts)


def of_batch(found: Any) -> Any:
    if isinstance(found, kwire.BadBatch):
        return found.position, len(found.raw), str(found.error)
    try:
        return found.position, found.size, str([(record.offset, record.value) for record in found])
    except kwire.KwireError as error:
        return found.position, found.size, str(error)


def of_record(record: Any) -> Any:
    return record.offset, record.key or b"", record.value or b"", str(record.headers)


# -- record batches


@case
def batches(dice: random.Random, _: Path) -> None:
    """One BatchIterator: whole, damaged, cut, with errors="raise" and "keep"."""
    for errors in ("raise", "keep"):
        for damage in (0.0, 0.3):
            data = log(dice, damage)
            if dice.random() < 0.5:
                data = data[: -dice.randrange(1, 300)]
            options: dict[str, Any] = {
                "errors": errors, "verify_crc": dice.random() < 0.7, "strict_tail": dice.random() < 0.3,
            }  # fmt: skip
            one, many = kwire.read_batches(data, **options), kwire.read_batches(data, **options)
            wanted = alone(one, of_batch)
            same(drained(many, of_batch), wanted, f"batches, {options}")
            same(many.tail, one.tail, f"the tail, {options}")


@case
def same_batches(dice: random.Random, _: Path) -> None:
    """Many alike batches, of which threads take one often at the same moment."""
    for codec in ("zstd", "gzip", "none"):
        for magic in (2, 1) if codec != "zstd" else (2,):
            one = batch(dice, magic, codec, 0, 8, 900)
            if magic == 1 and codec == "none":
                one = kwire.build_batch([(1, b"k", b"v" * 9000)], magic=1)
            data = one * 150
            for errors in ("keep", "raise"):
                taken = drained(kwire.read_batches(data, errors=errors), lambda found: (found.position, found.size))
                same(taken, ([(at, len(one)) for at in range(0, len(data), len(one))], []), f"{codec} {magic} {errors}")


@case
def records(dice: random.Random, _: Path) -> None:
    """One RecordIterator, and a batch that nobody has looked into yet."""
    for magic in (0, 1, 2):
        for codec in CODECS[: 5 if magic == 2 else 4]:
            count = dice.choice((3, 100, 700))
            data = batch(dice, magic, codec, 5, count, 60)
            for errors in ("raise", "keep"):
                (one,), (many,), (fresh,) = (kwire.read_batches(data, errors=errors) for _ in range(3)) \
                    if magic == 2 or codec != "none" else ([next(kwire.read_batches(data, errors=errors))],) * 3
                wanted = alone(iter(one), of_record)
                same(drained(iter(many), of_record), wanted, f"records, {magic} {codec} {errors}")
                expected = (len(one), one.extent(), one.plain_size, one.is_valid(), one.base_offset, one.raw)
                seen: list[Any] = [None] * THREADS

                def look(number: int, fresh: Any = fresh, seen: list[Any] = seen) -> None:
                    if number % 2:
                        listed = alone(iter(fresh), of_record)
                        same(listed, wanted, "records of a fresh batch")  # noqa: B023 (used before the next round)
                    seen[number] = (
                        len(fresh), fresh.extent(), fresh.plain_size, fresh.is_valid(), fresh.base_offset, fresh.raw)

                together(look)
                same(seen, [expected] * THREADS, f"a fresh batch, {magic} {codec} {errors}")
    damaged = bytearray(batch(dice, 2, "none", 0, 500))
    damaged[-3000:-2900] = bytes(100)
    (bad,) = kwire.read_batches(damaged, verify_crc=False)
    said: list[str] = []

    def fails(_: int) -> None:
        try:
            list(bad)
        except kwire.CorruptBatchError as error:
            said.append(str(error))

    together(fails)
    same(said, [said[0]] * THREADS, "a damaged batch")


# -- columns


def table(found: Any) -> Any:
    return pyarrow.table(found)


FIELDS = (
    "offset", "timestamp", "key", "value", "headers", "sequence", "batch_position", "source", "codec", "is_control",
)  # fmt: skip


@case
def columns(dice: random.Random, _: Path) -> None:
    """RecordColumns and each Column of it, read in every way at once."""
    inputs = [log(dice, 0.2, 20) for _ in range(3)]
    for views in (False, True):
        def make(views: bool = views) -> Any:
            return kwire.columns(inputs, FIELDS, views=views, errors="keep")

        shared, one = make(), make()
        wanted = table(one)
        numbers = {name: one[name].to_numpy().tolist() for name in FIELDS}
        expected = repr(one), len(one), one.nbytes, [str(bad.error) for bad in one.bad]
        mine = [one["offset"].to_numpy()] * 2

        def work(number: int, shared: Any = shared, views: bool = views) -> None:
            order = list(FIELDS)
            random.Random(number).shuffle(order)
            for name in order:
                column = shared[name]
                same(column.to_numpy().tolist(), numbers[name], f"column {name}")  # noqa: B023
                assert pyarrow.chunked_array(column).equals(wanted[name]), name  # noqa: B023
                if name in ("offset", "sequence", "source"):
                    same(memoryview(column).tolist(), numbers[name], name)  # noqa: B023
            assert table(shared).equals(wanted), "the table is another one"  # noqa: B023
            same((repr(shared), len(shared), shared.nbytes, [str(b.error) for b in shared.bad]), expected, "sizes")  # noqa: B023
            shared.tail = (number, 1)
            assert shared.tail[1] == 1

        together(work)
        del shared, one
        assert mine[0].tolist() == numbers["offset"]  # what was handed out outlives the table

    made: list[Any] = [None] * THREADS
    wanted = table(kwire.columns(inputs, FIELDS, errors="keep"))

    def fresh(number: int) -> None:
        made[number] = table(kwire.columns(inputs, FIELDS, errors="keep", views=number % 2 == 0)).select(["offset"])

    together(fresh)
    for found in made:
        assert found.equals(wanted.select(["offset"])), "columns made by many"


def metadata(dice: random.Random, topics: int) -> Any:
    kind = messages.MetadataResponse
    return kind(topics=[
        kind.MetadataResponseTopic(name=f"topic-{n}", topic_id=uuid.UUID(int=dice.getrandbits(128)), partitions=[
            kind.MetadataResponseTopic.MetadataResponsePartition(partition_index=p, replica_nodes=[1, 2, p])
            if hasattr(kind.MetadataResponseTopic, "MetadataResponsePartition")
            else kind.MetadataResponsePartition(partition_index=p, replica_nodes=[1, 2, p])
            for p in range(3)
        ]) for n in range(topics)
    ])  # fmt: skip


@case
def message_columns(dice: random.Random, _: Path) -> None:
    """MessageColumns, and a generator of payloads that threads share."""
    payloads = [kwire.encode(metadata(dice, dice.randrange(4)), 12) for _ in range(60)]
    paths = ["topics.name", "topics.topic_id", "topics.partitions.partition_index"]
    for chosen in (None, paths[:2], paths):
        shared = kwire.columns_of("MetadataResponse", 12, [*payloads, b"bad"], chosen, errors="keep")
        wanted = table(kwire.columns_of("MetadataResponse", 12, payloads, chosen))

        def work(_: int, shared: Any = shared) -> None:
            for _ in range(3):
                assert table(shared).equals(wanted), "columns_of by many"  # noqa: B023
                for name in shared.names:
                    assert pyarrow.chunked_array(shared[name]).equals(wanted[name]), name  # noqa: B023
                same((len(shared), [bad.number for bad in shared.bad]), (len(wanted), [60]), "columns_of")  # noqa: B023

        together(work)
    # a generator gives each payload to one thread; a thread that comes while it runs gets an error and makes nothing
    flow = (payload for payload in payloads)
    counts = [0] * THREADS

    def take(number: int) -> None:
        with suppress(StopIteration):
            counts[number] = len(kwire.columns_of("MetadataResponse", 12, insist(lambda: [next(flow)])))

    while True:
        before = counts.copy()
        together(take)
        if before == counts and next(flow, None) is None:
            break
        counts[:] = [0] * THREADS


# -- messages


@case
def changing_message(dice: random.Random, _: Path) -> None:
    """Five threads encode, print, compare and copy a message while three change its lists, bytes and tags."""
    Request = messages.CreateTopicsRequest
    ids = [uuid.UUID(int=n << 96 | n) for n in range(200)]
    names = [f"name-{n}" * (1 + n % 5) for n in range(50)]
    contents = [b"%d" % n * 40 for n in range(20)]
    Describe, Sasl = messages.MetadataRequest, messages.SaslAuthenticateRequest

    def topic(n: int) -> Any:
        return Request.CreatableTopic(
            name=names[n % 50], num_partitions=n, unknown_tags={7: contents[n % 20]} if n % 3 == 0 else {},
            assignments=[Request.CreatableTopic.CreatableReplicaAssignment(partition_index=n, broker_ids=[n, n])]
            if hasattr(Request.CreatableTopic, "CreatableReplicaAssignment")
            else [Request.CreatableReplicaAssignment(partition_index=n, broker_ids=[n, n])],
        )  # fmt: skip

    shared = Request(topics=[topic(n) for n in range(10)])
    assigned = messages.AssignReplicasToDirsRequest(directories=[
        messages.AssignReplicasToDirsRequest.DirectoryData(id=ids[n], topics=[]) for n in range(30)])
    dirs = messages.BrokerRegistrationRequest(log_dirs=ids[:100])
    sasl = Sasl(auth_bytes=contents[0] * 500)
    wanted = Describe(topics=[Describe.MetadataRequestTopic(topic_id=one, name=None) for one in ids[:20]])
    stop = threading.Event()

    def change(number: int) -> None:
        mine = random.Random(number)
        while not stop.is_set():
            n = mine.randrange(200)
            if number == 0:
                dirs.log_dirs = ids[: mine.randrange(200)]
                shared.topics.append(topic(n))
                wanted.topics = [Describe.MetadataRequestTopic(topic_id=ids[n], name=None)] * mine.randrange(30)
            elif number == 1:
                del shared.topics[: len(shared.topics) // 2 if len(shared.topics) > 30 else mine.randrange(2)]
                with suppress(IndexError):
                    dirs.log_dirs.pop()
                assigned.directories.reverse()
            else:
                shared.unknown_tags = {n + 5: contents[n % 20]} if n % 2 else {}
                sasl.auth_bytes = contents[n % 20] * 500
                with suppress(IndexError):
                    shared.topics[0].assignments = [*shared.topics[0].assignments[-1:]]
                    shared.topics[-1].unknown_tags[n + 9] = b"x"

    def use(number: int) -> None:
        mine = random.Random(number)
        for _ in range(60):
            for message, version in ((shared, 7), (dirs, 3), (sasl, 2), (wanted, 12), (assigned, 0)):
                try:
                    data = kwire.encode(message, version)
                except kwire.EncodeError as error:
                    assert "changed" in str(error) or "tag" in str(error), error
                    continue
                right(message, kwire.decode(type(message), version, data))
                if mine.random() < 0.2:
                    with suppress(kwire.EncodeError):
                        kwire.to_json(message, version)
                    repr(message)
                    _ = message == kwire.decode(type(message), version, data)
                    right(message, mine.choice((copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))))
                          (message))

    def right(message: Any, found: Any) -> None:
        if message is shared:
            for one in found.topics:
                assert one.name == names[one.num_partitions % 50], one
                for row in one.assignments:
                    assert (row.partition_index,) * 2 == tuple(row.broker_ids), one
        elif message is dirs:
            assert set(found.log_dirs) <= set(ids)
        elif message is sasl:
            assert found.auth_bytes in {one * 500 for one in contents}, found.auth_bytes[:80]
        elif message is assigned:
            assert {one.id for one in found.directories} <= set(ids[:30])
        else:
            assert {one.topic_id for one in found.topics} <= set(ids)

    def work(number: int) -> None:
        if number < 3:
            change(number)
            return
        try:
            use(number)
        finally:
            done.append(number)
            if len(done) == THREADS - 3:
                stop.set()

    done: list[int] = []
    together(work)


@case
def changing_uuids(dice: random.Random, _: Path) -> None:
    """A list of uuids is written while others put another in its place: to write one may run code of Python's."""
    shared, stop, done = messages.BrokerRegistrationRequest(), threading.Event(), list[int]()
    sizes = [dice.randrange(1, 60) for _ in range(3)]

    def work(number: int) -> None:
        if number < 3:
            while not stop.is_set():
                shared.log_dirs = [uuid.UUID(int=n << 64 | n) for n in range(sizes[number])]
            return
        try:
            for _ in range(80):
                found = kwire.decode("BrokerRegistrationRequest", 3, kwire.encode(shared, 3)).log_dirs
                same([one.int for one in found], [n << 64 | n for n in range(len(found))], "uuids")
        finally:
            done.append(number)
            if len(done) == THREADS - 3:
                stop.set()

    together(work)


@case
def decoded_message(dice: random.Random, __: Path) -> None:
    """A message fresh from decode, whose lists, structs and views are made when somebody looks."""
    found: list[Any]
    data = kwire.encode(metadata(dice, 30), 12)
    fetch = kwire.encode(messages.FetchSnapshotResponse(), 0)
    sasl = kwire.encode(messages.SaslAuthenticateRequest(auth_bytes=b"s" * 5000), 2)
    for _ in range(15):
        shared, empty = kwire.decode("MetadataResponse", 12, data), kwire.decode("FetchSnapshotResponse", 0, fetch)
        seen = kwire.decode("SaslAuthenticateRequest", 2, sasl, views=True)
        found = [None] * THREADS

        def work(number: int, shared: Any = shared, empty: Any = empty, seen: Any = seen,
                 found: list[Any] = found) -> None:
            view = seen.auth_bytes
            found[number] = (
                [(t.name, t.topic_id, [tuple(p.replica_nodes) for p in t.partitions]) for t in shared.topics],
                id(shared.topics), id(empty.topics), repr(empty), bytes(view), kwire.encode(shared, 12),
                kwire.encode(seen, 2), shared == kwire.decode("MetadataResponse", 12, data),
            )  # fmt: skip

        together(work)
        same(found, [found[0]] * THREADS, "a decoded message")
        assert found[0][5] == data and found[0][6] == sasl and found[0][7]


# -- writing


@case
def building(dice: random.Random, _: Path) -> None:
    """build_batch of one generator: each row goes into one batch; of one list that others change: whole rows only."""
    listed = rows(dice, 400, 100)
    known = {row[1]: row[2] for row in listed}
    for codec in CODECS:
        flow, found = (row for row in listed), list[bytes]()

        def work(_: int, flow: Any = flow, codec: str = codec, found: list[bytes] = found) -> None:
            some: list[Any] = []
            with suppress(StopIteration):
                for _ in range(len(listed)):
                    some.append(insist(lambda: next(flow)))
            for start in range(0, len(some), 7):
                (made,) = kwire.read_batches(kwire.build_batch(some[start : start + 7], codec=codec))
                found.extend(record.key for record in made)

        together(work)
        same(sorted(found), sorted(known), "rows of a generator")
    whole: list[Any] = []
    flow = (row for row in listed)

    def eat(_: int) -> None:
        try:
            (made,) = kwire.read_batches(kwire.build_batch(flow))
        except ValueError as error:
            assert is_busy(error), error
            return
        whole.extend(record.key for record in made)

    together(eat)
    assert len(whole) == len(set(whole)) and set(whole) <= set(known)
    changing: list[Any] = [*listed, *(kwire.Record(-1, *row) for row in listed[:50])]
    stop = threading.Event()

    def change(number: int) -> None:
        if number >= 2:
            try:
                for turn in range(25):
                    build(number, turn)
            finally:
                done.append(number)
                if len(done) == THREADS - 2:
                    stop.set()
            return
        mine = random.Random(number)
        while not stop.is_set():
            if number:
                del changing[mine.randrange(len(changing) or 1) :][:]
                changing[:] = mine.sample(changing, len(changing) // 2)
            changing.extend(mine.choices(listed, k=mine.randrange(100)))
            del changing[600:]

    def build(number: int, turn: int) -> None:
        magic = turn % 3
        source = [row[:3] for row in changing if type(row) is tuple] if magic < 2 and number % 2 else changing
        try:
            data = kwire.build_batch(source, magic=magic, codec=CODECS[number % 4])
        except kwire.EncodeError as error:
            assert any(word in str(error) for word in ("changed", "headers", "empty", "is not larger")), error
            return
        for made in kwire.read_batches(data):
            for record in made:
                assert known[record.key] == record.value, record

    done: list[int] = []
    together(change)


@case
def building_batches(dice: random.Random, _: Path) -> None:
    """build_batches of one Arrow table, and of what kwire.columns gave."""
    listed = rows(dice, 3000, 60)
    data = kwire.build_batch(listed)
    shared = kwire.columns(data, ("offset", "timestamp", "key", "value", "headers"))
    arrow = table(shared)
    for codec in CODECS:
        wanted = kwire.build_batches(arrow, codec=codec)
        found: list[Any] = [None] * THREADS

        def work(number: int, codec: str = codec, found: list[Any] = found) -> None:
            found[number] = kwire.build_batches(shared if number % 2 else arrow, codec=codec)

        together(work)
        same(found, [wanted] * THREADS, f"build_batches, {codec}")


# -- the rest of kwire_c, containers, codecs


@case
def compiled(dice: random.Random, _: Path) -> None:
    """Casts, spans, iterators over containers, rooms, checksums, stateless functions."""
    times = pyarrow.array([dice.randrange(1 << 62) for _ in range(2000)], "int64")
    cast, wide = arrow.microseconds(times.buffers()[1]), arrow.widened(bytes(range(256)))
    wanted = [pyarrow.array(one).to_pylist() for one in (wide,)], pyarrow.array(cast)
    plain = dice.randbytes(600_000)
    packed = {codec: compress(codec, plain) for codec in CODECS[1:]}
    several = packed["zstd"] * 20

    def work(_: int) -> None:
        assert pyarrow.array(wide).to_pylist() == wanted[0][0] and pyarrow.array(cast).equals(wanted[1])
        assert len(cast) == 2000

    together(work)
    for make in (lambda: containers.Lz4Blocks(packed["lz4"], 2), lambda: containers.ZstdFrames(several)):
        same(drained(make(), tuple), alone(make(), tuple), "blocks of a container")
    room, parts = containers.Room(1 << 16), []

    def fill(number: int) -> None:
        room.part(number * 8192, number * 8192 + 8192)[:] = bytes([number]) * 8192

    together(fill)

    def take(_: int) -> None:
        with suppress(ValueError, BufferError):
            parts.append(room.take(1 << 16))

    together(take)
    same(parts, [b"".join(bytes([n]) * 8192 for n in range(8))], "what was taken of a room")

    def codecs(number: int) -> None:
        for codec, data in packed.items():
            assert bytes(decompress(codec, data, limit=1 << 20)) == plain, codec
            assert bytes(decompress(codec, compress(codec, plain), limit=1 << 20)) == plain, codec
            assert kwire.crc32c(data) == kwire.crc32c(memoryview(data))
            with suppress(kwire.KwireError):
                decompress(codec, data[: -1 - number], limit=1 << 20)

    together(codecs)


@case
def frame_reader(dice: random.Random, _: Path) -> None:
    """One FrameReader, fed whole frames by all."""
    for size in (20, 3000):
        reader, found = kwire.FrameReader(), [[] for _ in range(THREADS)]  # type: ignore[var-annotated]

        def work(number: int, reader: Any = reader, found: Any = found, size: int = size) -> None:
            for turn in range(100):
                several = b"".join(kwire.pack_frame(b"%d %d %d" % (number, turn, k) + bytes(size)) for k in range(3))
                found[number] += insist(lambda: reader.feed(several))  # noqa: B023

        together(work)
        wanted = [b"%d %d %d" % (a, b, c) + bytes(size) for a in range(THREADS) for b in range(100) for c in range(3)]
        same(sorted(one for part in found for one in part), sorted(wanted), "frames")
        same(reader.pending, 0, "pending")


# -- storage


def partition(dice: random.Random, folder: Path) -> list[Path]:
    """Three segments of transactions and plain batches, with indexes."""
    made, base = [], 0
    for _ in range(3):
        parts, first = [], base
        for _ in range(40):
            producer, kind = dice.randrange(5), dice.random()
            if kind < 0.4:
                parts.append(making.in_transaction(base, producer))
                base += 3
            elif kind < 0.6:
                parts.append(making.marker(base, producer, dice.random() < 0.5))
                base += 1
            else:
                parts.append(making.batch(base, 3, size=400, codec=dice.choice(CODECS)))
                base += 3
        made.append(making.write_segment(folder, first, parts))
    return made


def offsets(found: Any) -> Any:
    return table(found)["offset"].to_pylist()


@case
def storage(dice: random.Random, folder: Path) -> None:
    """Segments, partitions and directories whose indexes and transactions are read when first asked for."""
    paths = partition(dice, folder / "t-0")

    def contents(one: Any) -> Any:
        segments = [one] if isinstance(one, LogSegment) else one.segments
        found = (
            [of_record(record) for record in one.read(committed=True)], [of_record(record) for record in one.read()],
            table(one.columns(committed=True)).to_pylist(),
            [offset for part in one.column_batches(("offset",), committed=True) for offset in offsets(part)],
            [of_record(r) for r in one.read(start_offset=segments[0].base_offset + 40)],
            [(s.seek(s.base_offset + 60), s.tail, s.index and s.index.damage, len(s.later)) for s in segments],
        )  # fmt: skip
        return repr(found)

    def part() -> Any:
        (found,) = LogDirectory(folder).partitions
        return found

    makers: list[Callable[[], Any]] = [lambda: LogSegment(paths[0]), part]
    for make in makers:
        wanted, shared = contents(make()), make()
        found: list[Any] = [None] * THREADS

        def work(number: int, shared: Any = shared, found: list[Any] = found) -> None:
            found[number] = contents(shared)

        together(work)
        same(found, [wanted] * THREADS, f"{make()!r}")
    middle = bytearray(paths[1].read_bytes())
    middle[len(middle) // 2] ^= 0xFF
    paths[1].write_bytes(middle)
    for number, path in enumerate(paths):
        for errors in ("keep", "raise"):
            one, many = LogSegment(path).batches(errors=errors), LogSegment(path).batches(errors=errors)
            same(drained(many, of_batch), alone(one, of_batch), f"batches of segment {number}, {errors}")
            same(many.tail, one.tail, "tail")
            flow, other = (LogSegment(path).column_batches(rows=7, errors=errors) for _ in range(2))
            same(drained(flow, offsets), alone(other, offsets), f"pieces of segment {number}, {errors}")
        flow = LogSegment(path).read(committed=True)
        same(drained(flow, of_record), alone(LogSegment(path).read(committed=True), of_record), "read")


@case
def first_markers(dice: random.Random, folder: Path) -> None:
    """What a segment remembers of its markers, read on by whoever asks for one that was not met yet."""
    parts = [making.marker(n, n, n % 2 == 0) for n in range(60)]
    asked = dice.sample([*range(70), 99], 71)
    path = making.write_segment(folder / "t-0", 0, parts)
    for _ in range(40):
        shared = FirstMarkers(LogSegment(path).file)

        def work(number: int, shared: Any = shared) -> None:
            for producer in (*asked[number::THREADS], 99):
                same(shared.of(producer), (producer, int(producer % 2 == 0)) if producer < 60 else None, "a marker")

        together(work)


@case
def planned_logs(dice: random.Random, folder: Path) -> None:
    """Ranges of one log, cut anywhere, read as Spark's tasks do, with one plan and without, from the same objects."""
    made = making.Log(folder / "t-0", dice, segments=4, batches=30)
    for path in made.paths[1:]:
        for kinds in ((".snapshot",), (".index",), (".index", ".txnindex")):
            for kind in kinds if dice.random() < 0.3 else ():
                path.with_suffix(kind).unlink(missing_ok=True)
    places = {
        path: [(one.position, range(one.base_offset, one.last_offset + 1)) for one in LogSegment(path).batches()]
        for path in made.paths
    }
    visible = set(made.visible)
    for _ in range(3):
        shared, end = LogDirectory(folder), LogEnd.of(discover(folder))
        seeds = [dice.randrange(1 << 32) for _ in range(THREADS)]

        def work(number: int, shared: Any = shared, end: Any = end, seeds: Any = seeds) -> None:
            mine = random.Random(seeds[number])
            for _ in range(6):
                segment = mine.choice(shared.segments)
                first = mine.randrange(segment.size)
                last = mine.randrange(first, segment.size + 1)
                flow = segment.column_batches(("offset",), start=first, end=last, committed=True, guessed=True,
                                              transactions=end if mine.random() < 0.8 else None)
                found = [offset for part in flow for offset in part["offset"].to_numpy().tolist()]
                wanted = [offset for position, offsets in places[Path(segment.path)] if first <= position < last
                          for offset in offsets if offset in visible]
                same(found, wanted, f"{segment.path} {first}..{last}")

        together(work)


@case
def committed_windows(dice: random.Random, folder: Path) -> None:
    """One read of committed records, whose windows wait for markers: threads get each piece once."""
    made = making.Log(folder / "t-0", dice, segments=3, batches=60)
    for path in made.paths:
        for rows in (None, 3):
            options = {} if rows is None else {"rows": rows}

            def flow(path: Path = path, options: Any = options) -> Any:
                return LogSegment(path).column_batches(("offset", "producer_id"), committed=True, **options)

            same(drained(flow(), offsets), alone(flow(), offsets), f"{path.name}, rows {rows}")
    shared = LogDirectory(folder)
    same(drained(shared.read(committed=True), lambda record: record.offset)[0], made.visible, "records")


@case
def segment_writer(dice: random.Random, folder: Path) -> None:
    """One SegmentWriter: what it took is there, whole and in order, and its indexes fit; who came too late was told."""
    for turn in range(4):
        writer = SegmentWriter(folder / str(turn), "t", 0, segment_bytes=dice.choice((2000, 1 << 30)), sync=False,
                               index_interval_bytes=dice.choice((0, 300, 4096)))
        taken: list[int] = []
        turns = iter(range(1 << 30))

        def work(number: int, writer: Any = writer, taken: Any = taken, turns: Any = turns) -> None:
            mine = random.Random(number)
            for _ in range(40):
                base = 3 * next(turns)
                kind = mine.random()
                data = (making.batch(base, 3, size=60) if kind < 0.5 else making.in_transaction(base, mine.randrange(4))
                        if kind < 0.8 else making.marker(base, mine.randrange(4), mine.random() < 0.5))
                try:
                    if mine.random() < 0.1:
                        mine.choice((writer.roll, writer.flush))()
                    insist(lambda: writer.append(data))  # noqa: B023
                except kwire.CorruptBatchError as error:
                    assert "are not after offset" in str(error), error
                except ValueError as error:
                    if not is_busy(error):
                        raise
                else:
                    taken.append(base)
                _ = writer.next_offset, writer.path, writer.open_transactions, repr(writer)

        together(work)
        insist(writer.close)
        (found,) = LogDirectory(folder / str(turn)).partitions
        same([batch.base_offset for batch in found.batches()], sorted(taken), "batches that were taken")
        assert not list(found.verify()), list(found.verify())[:3]


@case
def cluster_image(dice: random.Random, folder: Path) -> None:
    """One image of a metadata log: nothing that is made of it changes it."""
    write_log(folder, [*MetadataRecords(dice.randrange(1000)).records(150)])
    shared = ClusterImage.read(folder)

    def contents(image: Any, number: int) -> Any:
        lower, losses = image.downgrade(dice.choice((21, 14, 7)) if number < 0 else 14, unsafe=True)
        target = folder / f"{number}.checkpoint"
        image.write_snapshot(target, force=True)
        again = ClusterImage.read(target)
        assert again == image and not image.diff(again)
        return (str(image.to_json()), [kwire.encode_metadata_record(*row) for row in image.records()], len(losses),
                str(lower.to_json()), str(lower.downgrade(7, unsafe=True).image.to_json()), target.read_bytes())

    wanted, found = contents(shared, 99), [None] * THREADS

    def work(number: int) -> None:
        found[number] = contents(shared, number)

    together(work)
    same(found, [wanted] * THREADS, "an image")


@case
def outputs(dice: random.Random, folder: Path) -> None:
    """Files and folders that several write at the same time: one of them wins, whole, and nothing is left beside it."""
    making.Log(folder / "t-0", dice, segments=2, batches=20)
    wanted = {path.name: path.read_bytes() for path in (folder / "t-0").glob("*.log")}
    out = folder / "out"
    out.mkdir()
    for turn in range(3):
        won: list[str] = []

        def work(number: int, turn: int = turn, won: Any = won) -> None:
            try:
                with new_file(out / f"f{turn}", sync=False) as file:
                    file.write(b"%d" % number * 5000)
                won.append("file")
            except FileExistsError:
                pass
            try:
                salvage_log(folder / "t-0", out / f"t{turn}-0")
                won.append("folder")
            except FileExistsError:
                pass

        together(work)
        same(sorted(won), ["file", "folder"], "who wrote it")
        assert len(set((out / f"f{turn}").read_bytes())) == 1
        same({path.name: path.read_bytes() for path in (out / f"t{turn}-0").glob("*.log")}, wanted, "a folder")
    same(sorted(os.listdir(out)), sorted(f"{kind}{turn}{end}" for kind, end in (("f", ""), ("t", "-0"))
                                         for turn in range(3)), "what is left")


# -- capture


@case
def capture(dice: random.Random, folder: Path) -> None:
    """One read_capture, and one FrameWriter."""
    talks = []
    for number in range(6):
        talk = captures.Talk(client=("10.0.0.7", 50_000 + number), first=dice.randrange(1 << 32)).open()
        talk.exchange(captures.hello(0), captures.welcome(0))
        for turn in range(1, 12):
            talk.exchange(*captures.metadata(turn, 5))
        talks.append(talk.close().bytes())
    mixed = [packet for packets in zip(*talks, strict=True) for packet in packets]
    path = captures.write_pcap(folder / "x.pcap", mixed)

    def key(event: Any) -> str:
        return repr((event.connection.client, getattr(event, "correlation_id", None), str(event)))

    same(drained(read_capture(path), key), alone(read_capture(path), key), "exchanges")
    connections = [Connection(str(folder / "w"), n, f"10.0.0.1:{n}", "10.0.0.2:9092") for n in range(THREADS)]
    with FrameWriter(str(folder / "w")) as writer:
        def work(number: int) -> None:
            writer.write(connections[number], Frame("request", captures.hello(0), 1), None)
            for turn in range(1, 20):
                request, response = captures.metadata(turn, 40)
                writer.write(connections[number], Frame("request", request, 1), None)
                writer.write(connections[number], Frame("response", response, 1), None)
                if turn % 5 == 0:
                    writer.flush()

        together(work)
    events = list(read_capture(folder / "w.jsonl.gz"))
    outcomes = Counter(getattr(event, "outcome", str(event)) for event in events)
    same(outcomes, Counter({"answered": 19 * THREADS, "unanswered": THREADS}), "frames that many wrote")


# -- connections


def broker() -> fake.Broker:
    """Answers Metadata with the names that were asked for."""
    def answer(request: Any) -> Any:
        kind = messages.MetadataResponse
        return kind(topics=[kind.MetadataResponseTopic(name=one.name) for one in request.message.topics])

    return fake.Broker(fake.of_release("3.9"), answer)


def ask(connection: Any, name: str) -> None:
    kind = messages.MetadataRequest
    found = connection.send(kind(topics=[kind.MetadataRequestTopic(name=name)]), 9)
    same([topic.name for topic in found.topics], [name], "an answer")


@case
def connection(_: random.Random, __: Path) -> None:
    """connect_sync, opened by whoever comes first, and closed while others send."""
    server = broker()
    with fake.serving(server):
        for closes in (False, False, True, True):
            shared = connect_sync(server.address, timeout=60)

            def work(number: int, shared: Any = shared, closes: bool = closes) -> None:
                for turn in range(5):
                    try:
                        ask(shared, f"t-{number}-{turn}")
                        _ = shared.versions, shared.is_open, repr(shared), shared.tolerated
                    except kwire.net.BrokerConnectionError as error:
                        if not closes or "closed" not in str(error):
                            raise
                    if closes and number < 2 and turn == 2:
                        shared.close()

            try:
                together(work)
                if closes:
                    shared.close()
                    shared.open()
                ask(shared, "after")
            finally:
                shared.close()


# -- what is made at first use


FIRST_USE = """
import sys, threading
sys.setswitchinterval(1e-6)
gate, raised = threading.Barrier(8), []
def work(number):
    import kwire
    gate.wait()
    from kwire import messages, schema
    rows = [(1, b"k", b"v" * 500)]
    jobs = [
        lambda: schema.releases() and schema.apis("3.9") and schema.message("FetchRequest").fields,
        lambda: [list(b)[0].value for c in ("gzip", "lz4", "zstd", "snappy")
                 for b in kwire.read_batches(kwire.build_batch(rows, codec=c))],
        lambda: kwire.decode("MetadataRequest", 12, kwire.encode(messages.MetadataRequest(topics=[]), 12)),
        lambda: kwire.to_json(messages.FetchRequest(), 12),
        lambda: len(kwire.columns(kwire.build_batch(rows))) + kwire.crc32c(b"x"),
        lambda: kwire.storage.LogSegment and kwire.net.connect_sync and schema.metadata_versions(),
        lambda: kwire.columns_of("ApiVersionsRequest", 3, [kwire.encode(messages.ApiVersionsRequest(), 3)]),
        lambda: kwire.decode_request(kwire.encode_request(messages.ApiVersionsRequest(), 3)).name,
    ]
    try:
        for at in range(len(jobs)):
            jobs[(at + number * SHIFT) % len(jobs)]()
        seen.append((messages.FetchRequest, messages.FetchRequest.FetchTopic, type(kwire.decode("FetchRequest", 12,
            kwire.encode(messages.FetchRequest(), 12))), kwire.columns, schema.message("FetchRequest").name))
    except BaseException as error:
        raised.append(error)
seen = []
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
if raised:
    raise raised[0]
assert len(seen) == 8 and len(set(seen)) == 1, set(seen)
"""


@case
def first_use(dice: random.Random, _: Path) -> None:
    """In a process of its own: everything that is imported, compiled or read at first use, by all at once."""
    code = FIRST_USE.replace("SHIFT", str(dice.randrange(3)))
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=HANG)
    assert ran.returncode == 0, f"exit {ran.returncode}: {ran.stderr[-3000:]}"


def run(seconds: float, seed: int, only: list[str]) -> Counter[str]:
    """Each case once, then at random until the time is over; how often each ran."""
    dice, counts = random.Random(seed), Counter[str]()
    names, end = only or sorted(CASES), time.monotonic() + seconds
    left = dice.sample(names, len(names))
    with hasty():
        while left or time.monotonic() < end:
            name = left.pop() if left else dice.choice(names)
            number = dice.randrange(1 << 32)
            with (watched(HANG, f"in {name}, round {sum(counts.values())} of seed {seed}"),
                  tempfile.TemporaryDirectory(prefix="kwire-races.") as folder):
                CASES[name](random.Random(number), Path(folder))
            counts[name] += 1
    return counts


def main(arguments: list[str] | None = None) -> int:
    parser = seeded(__doc__)
    parser.add_argument("--only", action="append", choices=sorted(CASES), default=[])
    chosen = parser.parse_args(arguments)
    faulthandler.enable()
    counts = run(chosen.seconds, chosen.seed, chosen.only)
    print(f"{sum(counts.values())} rounds of {len(counts)} cases in process {os.getpid()}: all right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
