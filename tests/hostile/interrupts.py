"""Ctrl-C at any moment of a call: python -m tests.hostile.interrupts --seconds N [--seed S] [--only NAME].

A timer, set from microseconds up to longer than the call takes, raises KeyboardInterrupt once or again and again; a
tracer raises it, or MemoryError, at one line of Python after the other; and the stack ends (RecursionError) at each
depth of it. The call gives the right value, or that exception; never another one, never a wrong value. What it was done
to is used again, and gives the right value or says why it cannot.
"""

from __future__ import annotations

import faulthandler
import gc
import itertools
import linecache
import logging
import os
import random
import signal
import sys
import tempfile
import time
from _thread import _count
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow

import kwire
import kwire_c
from kwire import messages
from kwire.capture import FrameWriter, audit, read_capture
from kwire.capture.exchange import Connection, Frame
from kwire.compression import compress, decompress
from kwire.fleet import Fleet, Proxy
from kwire.net import connect_sync
from kwire.pages.site import write_site
from kwire.storage import ClusterImage, Formatter, LogDirectory, LogSegment, SegmentWriter, ServerConfig, salvage_log
from kwire.storage.tables.parquet import write_parquet
from tests.capture import making as captures
from tests.hostile.races import CODECS, ask, broker, is_busy, log, metadata, of_batch, partition, rows, same
from tests.hostile.rounds import seeded, watched
from tests.little_stack import with_frames_left
from tests.net import fake
from tests.storage import making
from tests.storage.metadata.records import Cluster as MetadataRecords
from tests.storage.metadata.records import write_log

HANG = 240.0  # seconds of one case
MOMENTS = 60  # of a round, at which the timer rings, and lines at which the tracer raises
BUDGET = 0.8  # seconds for both of them each: of a long call there are fewer
OURS = tuple(f"{Path(package.__file__).parent}{os.sep}" for package in (kwire, kwire_c))  # not a folder of that name


class Work:
    """A call and what is right.

    call(): its value is compared with that of the first, undisturbed call; again(): afterwards uses what the call has
    left, and checks that by itself. cleans_up: what it begins must be removed where it fails, for which it needs stack.
    """

    def __init__(
        self, call: Callable[[], Any], again: Callable[[], object] = lambda: None, cleans_up: bool = False
    ) -> None:
        self.call, self.again, self.cleans_up = call, again, cleans_up


Case = Callable[[random.Random, Path, ExitStack], Work]
CASES: dict[str, Case] = {}


def case(make: Case) -> Case:
    CASES[make.__name__] = make
    return make


def of(work: Callable[[], Any]) -> Work:
    """A call that leaves no state, or that can be repeated."""
    wanted = work()
    return Work(work, lambda: same(work(), wanted, "again"))




def message_of_a_mebibyte(dice: random.Random) -> Any:
    found = metadata(dice, 6000)
    for topic in found.topics[::3]:
        topic.unknown_tags = {9: dice.randbytes(5)}
    return found


@case
def encode(dice: random.Random, _: Path, __: ExitStack) -> Work:
    """Uuids, tags and texts on the way."""
    held = message_of_a_mebibyte(dice)
    dirs = messages.BrokerRegistrationRequest(log_dirs=[topic.topic_id for topic in held.topics])
    return of(lambda: (kwire.encode(held, 12), kwire.encode(dirs, 3), kwire.encode_response(held, 12)))


@case
def decode(dice: random.Random, _: Path, __: ExitStack) -> Work:
    data = kwire.encode(message_of_a_mebibyte(dice), 12)

    def call() -> Any:
        found = kwire.decode("MetadataResponse", 12, data)
        return len(found.topics), found.topics[-1].topic_id, found.topics[3].unknown_tags, found == found

    return of(call)


@case
def json(dice: random.Random, _: Path, __: ExitStack) -> Work:
    held = metadata(dice, 300)
    text = kwire.to_json(held, 12)
    return of(lambda: (kwire.to_json(held, 12), kwire.encode(kwire.from_json("MetadataResponse", 12, text), 12)))


@case
def half_looked_at(dice: random.Random, _: Path, __: ExitStack) -> Work:
    """One decoded message, whose parts are made while the interrupt comes."""
    data = kwire.encode(metadata(dice, 500), 12)
    found = kwire.decode("MetadataResponse", 12, data)
    wanted = repr(found)
    found = kwire.decode("MetadataResponse", 12, data)

    def call() -> Any:
        return repr(found), kwire.encode(found, 12), [topic.topic_id for topic in found.topics] != []

    def again() -> None:
        nonlocal found
        same(call(), (wanted, data, True), "a message looked at again")
        found = kwire.decode("MetadataResponse", 12, data)

    return Work(call, again)


def read(data: Any, **options: Any) -> Any:
    return [of_batch(one) for one in kwire.read_batches(data, **options)]


@case
def read_batches(dice: random.Random, _: Path, __: ExitStack) -> Work:
    data = log(dice, 0.2, 25)
    return of(lambda: read(data, errors="keep"))


@case
def one_iterator(dice: random.Random, _: Path, __: ExitStack) -> Work:
    """An iterator that was interrupted goes on, with the item that was lost on the way, or the next one."""
    data = log(dice, 0.2, 25)
    wanted = read(data, errors="keep")
    flow = kwire.read_batches(data, errors="keep")
    taken: list[Any] = []

    def call() -> Any:
        for one in flow:
            taken.append(of_batch(one))
        return list(taken)

    def again() -> None:
        nonlocal flow
        rest = [of_batch(one) for one in flow]
        same(taken, wanted[: len(taken)], "what came before")
        same(rest, wanted[len(wanted) - len(rest) :], "what comes after")
        assert len(taken) + len(rest) in (len(wanted), len(wanted) - 1), "a batch is lost"
        flow = kwire.read_batches(data, errors="keep")
        taken.clear()

    return Work(call, again)


@case
def one_batch(dice: random.Random, _: Path, __: ExitStack) -> Work:
    """A compressed batch that is unpacked at the first look."""
    parts = {codec: kwire.build_batch(rows(dice, 2000, 60), codec=codec) for codec in CODECS}
    wanted = {codec: read(data) for codec, data in parts.items()}
    held = {codec: next(kwire.read_batches(data)) for codec, data in parts.items()}

    def call() -> Any:
        return {codec: [of_batch(one)] for codec, one in held.items()}

    def again() -> None:
        same(call(), wanted, "batches looked into again")
        held.update({codec: next(kwire.read_batches(data)) for codec, data in parts.items()})

    return Work(call, again)


@case
def columns(dice: random.Random, _: Path, __: ExitStack) -> Work:
    data = [log(dice, 0.2, 25), log(dice, 0.0, 25)]
    held = kwire.columns(data, errors="keep")

    def call() -> Any:
        found = [pyarrow.table(kwire.columns(data, errors="keep", views=views)).to_pydict() for views in (False, True)]
        return found, pyarrow.table(held).to_pydict(), held["value"].to_numpy().tolist()

    return of(call)


@case
def columns_of(dice: random.Random, _: Path, __: ExitStack) -> Work:
    payloads = [kwire.encode(metadata(dice, 20), 12) for _ in range(60)]

    def flow() -> Iterator[bytes]:
        yield from payloads

    def call() -> Any:
        paths = ["topics.name", "topics.partitions.partition_index"]
        return [pyarrow.table(kwire.columns_of("MetadataResponse", 12, flow(), chosen, errors="keep")).num_rows
                for chosen in (None, paths)]

    return of(call)


@case
def build_batch(dice: random.Random, _: Path, __: ExitStack) -> Work:
    """Rows of all kinds: some of them are read by code of Python's."""
    plain = rows(dice, 1500)
    odd = [(Number(row[0]), bytearray(row[1]), memoryview(row[2]), dict(row[3])) for row in plain]
    listed: list[Any] = [*plain, *odd, *(kwire.Record(-1, *row) for row in plain)]

    def call() -> Any:
        made = [kwire.build_batch((row for row in listed), codec=codec) for codec in CODECS]
        legacy = [kwire.build_batch([row[:3] for row in plain], magic=magic, codec="gzip") for magic in (0, 1)]
        return made, legacy, listed[0]

    return of(call)


class Number(int):
    def __index__(self) -> int:
        return int.__add__(self, 0)

    __int__ = __index__


@case
def build_batches(dice: random.Random, _: Path, __: ExitStack) -> Work:
    table = pyarrow.table(kwire.columns(kwire.build_batch(rows(dice, 9000)), ("timestamp", "key", "value", "headers")))
    return of(lambda: [kwire.build_batches(table, codec=codec) for codec in CODECS])


@case
def codecs(dice: random.Random, _: Path, __: ExitStack) -> Work:
    plain = dice.randbytes(500_000) + bytes(3_000_000)
    packed = {codec: compress(codec, plain) for codec in CODECS}

    def call() -> Any:
        for codec, data in packed.items():
            assert bytes(decompress(codec, data, limit=1 << 24)) == plain, codec
            assert bytes(decompress(codec, compress(codec, plain[:800_000]), limit=1 << 24)) == plain[:800_000], codec
        return [len(decompress(codec, packed[codec] * 3, limit=1 << 26)) for codec in ("zstd", "gzip")]

    return of(call)


@case
def frame_reader(dice: random.Random, _: Path, __: ExitStack) -> Work:
    """The reader that an interrupt caught gives whole frames still, or says that it cannot."""
    sent = [b"%d" % n + dice.randbytes(20) for n in range(2000)]
    data = b"".join(map(kwire.pack_frame, sent))
    reader = kwire.FrameReader()

    def call() -> Any:
        nonlocal reader
        reader = kwire.FrameReader()
        return [frame for at in range(0, len(data), 9000) for frame in reader.feed(data[at : at + 9000])]

    def again() -> None:
        try:
            found = reader.feed(b"")
        except ValueError as error:
            assert is_busy(error), error
        else:
            assert all(frame in sent for frame in found)

    return Work(call, again)


@case
def storage(dice: random.Random, folder: Path, _: ExitStack) -> Work:
    paths = partition(dice, folder / "t-0")
    held = LogSegment(paths[0])

    def use(one: Any) -> Any:
        return (
            len(one.columns(committed=True)), [r.offset for r in one.read(committed=True)],
            [pyarrow.table(c).num_rows for c in one.column_batches(rows=50)], [of_batch(b) for b in one.batches()],
            str(one.verify()), one.stats().records, one.tail,
        )  # fmt: skip

    def call() -> Any:
        (found,) = LogDirectory(folder).partitions
        return use(held), [r.offset for r in found.read(committed=True)]

    wanted = call()

    def again() -> None:
        nonlocal held
        same(call(), wanted, "a segment again")
        held = LogSegment(paths[0])

    return Work(call, again)


@case
def markers(dice: random.Random, folder: Path, _: ExitStack) -> Work:
    """Transactions over several segments: what an interrupted look-up has noted serves the next one."""
    making.Log(folder / "t-0", dice, segments=3, batches=12)
    held = LogDirectory(folder)

    def use() -> Any:
        found = [record.offset for record in held.read(committed=True)]
        pieces = held.column_batches(("offset",), committed=True)
        return found, [pyarrow.table(one)["offset"].to_pylist() for one in pieces], [
            segment.transactions() for segment in held.segments], held.partitions[0].ongoing_transactions()

    def call() -> Any:
        nonlocal held
        held = LogDirectory(folder)
        return use()

    wanted = call()
    return Work(call, lambda: same(use(), wanted, "the same objects again"))


@case
def pipe(dice: random.Random, folder: Path, _: ExitStack) -> Work:
    """What was taken of a pipe does not come again: the rest is never taken for the whole."""
    data = b"".join(making.batch(base, 3, size=9000) for base in range(0, 900, 3))
    (folder / "t-0").mkdir()
    numbers = itertools.count()
    path = folder
    source: Any = None

    def call() -> Any:
        nonlocal path, source
        from kwire.storage.places.filesystem import SpooledFile

        path = folder / "t-0" / f"{next(numbers)}.log"  # what a lost child writes comes to no other call
        os.mkfifo(path)
        source = None  # not that of the call before: its child has ended
        child = os.fork()
        if child == 0:  # writes, and ends with the reader, or alone where an interrupt came just after the fork
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(30)
            with suppress(OSError):
                path.write_bytes(data)
            os._exit(0)
        try:
            source = SpooledFile(str(path), True)
            return source.size()
        finally:
            with suppress(ProcessLookupError):
                if source is None or source._kept is None:
                    os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    def again() -> None:
        if source is None or "_turns" in vars(source):  # nothing was taken of it
            return
        child = os.fork()
        if child == 0:  # what is left, for who opens it again: nobody may take it for the whole
            path.write_bytes(data[:5000])
            os._exit(0)
        try:
            same(source.size(), len(data), "the size of a pipe")
        except ValueError as error:
            assert is_busy(error), error
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

    return Work(call, again, cleans_up=True)


@case
def parquet(dice: random.Random, folder: Path, _: ExitStack) -> Work:
    """The file is there as a whole or not at all, and nothing half-written beside it."""
    from pyarrow.parquet import read_table

    (path,) = partition(dice, folder / "t-0")[:1]
    target = folder / "out" / "x.parquet"
    target.parent.mkdir()
    records = sum(1 for _ in LogSegment(path).read())

    def call() -> Any:
        target.unlink(missing_ok=True)
        return write_parquet([LogSegment(path)], str(target))["rows"]

    def again() -> None:
        gc.collect()
        left = os.listdir(target.parent)
        assert left in ([], [target.name]), left
        if left:
            same(read_table(target).num_rows, records, "rows of a file that is there")
        same(call(), records, "rows")

    return Work(call, again)


def tree(folder: Path) -> dict[str, bytes]:
    """Path -> bytes of all files in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@case
def segment_writer(dice: random.Random, folder: Path, _: ExitStack) -> Work:
    """What an interrupted writer left is whole batches, and its indexes fit; it goes on, or says that it cannot."""
    parts = [making.in_transaction(base, base % 4, 3, size=dice.choice((5, 300))) if base % 4 else
             making.batch(base, 3, size=200) for base in range(0, 120, 3)]
    parts[7::9] = [making.marker(3 * at, 3 * (at - 1) % 4, at % 2 == 0) for at in range(7, len(parts), 9)]
    turns = iter(range(1 << 30))
    made: Any = None

    def call() -> Any:
        nonlocal made
        made = None
        where = folder / str(next(turns))
        writer = made = SegmentWriter(where, "t", 0, segment_bytes=3000, index_interval_bytes=200, sync=False)
        for part in parts:
            writer.append(part)
        writer.close()
        return tree(where)

    def again() -> None:
        if made is None:
            return
        closed = False
        try:
            if made.next_offset < 600:
                made.append(making.batch(600, 2))
            made.close()
        except ValueError as error:
            assert "closed" in str(error) or is_busy(error), error
            closed = True
        found = LogDirectory(os.path.dirname(made.folder))
        held = [batch.base_offset for batch in found.batches()]
        assert held == sorted(set(held)), held
        findings = [one for one in found.verify() if one.kind != "txnindex" or one.offset != held[-1] or not closed]
        assert not findings, findings[:3]

    return Work(call, again)


@case
def salvage(dice: random.Random, folder: Path, _: ExitStack) -> Work:
    """The result is there as a whole, or nothing is."""
    made = making.Log(folder / "in" / "t-0", dice, segments=3, batches=8)
    damaged = bytearray(made.paths[1].read_bytes())
    damaged[len(damaged) // 2] ^= 0xFF
    made.paths[1].write_bytes(damaged)
    turns, out = iter(range(1 << 30)), folder
    wanted: Any = None

    def call() -> Any:
        nonlocal out
        out = folder / f"out{next(turns)}"
        out.mkdir()
        report = salvage_log(folder / "in", out / "logs").to_json() | {"target": ""}
        salvage_log(made.paths[0], out / "x.log")
        return str(report).replace(str(folder), ""), tree(out)

    def again() -> None:
        nonlocal wanted
        gc.collect()
        left, names = ({}, []) if out == folder or not out.exists() else (tree(out), os.listdir(out))
        wanted = wanted or call()
        for name in names:
            if name == "logs":
                same({one: data for one, data in left.items() if one[:5] == "logs/"},
                     {one: data for one, data in wanted[1].items() if one[:5] == "logs/"}, "a folder")
            else:
                same(left[name], wanted[1].get(name), name)
        same(call(), wanted, "again")

    return Work(call, again, cleans_up=True)


@case
def image(dice: random.Random, folder: Path, _: ExitStack) -> Work:
    """An image of a metadata log, what is made of it, and the snapshot that is written."""
    write_log(folder, [*MetadataRecords(dice.randrange(1000)).records(60)])
    out = folder / "out"
    out.mkdir()
    held = ClusterImage.read(folder)
    wanted = held.to_json()

    def call() -> Any:
        for path in out.iterdir():
            path.unlink()
        found = ClusterImage.read(folder)
        lower = found.downgrade(14, unsafe=True)
        name = lower.image.write_snapshot(out)
        images = found.to_json(), lower.image.to_json()
        return images, len(lower.losses), len(held.diff(lower.image)), Path(name).read_bytes()

    def again() -> None:
        gc.collect()
        assert len(os.listdir(out)) <= 1 and not list(out.glob("*.partial")), os.listdir(out)
        for path in out.iterdir():
            ClusterImage.read(path)
        same(held.to_json(), wanted, "an image that others are made of")

    return Work(call, again)


@case
def formatting(_: random.Random, folder: Path, __: ExitStack) -> Work:
    """Directories are formatted, all of them, or none is."""
    turns, where = iter(range(1 << 30)), folder
    config = {
        "process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "C",
        "listeners": "P://localhost:9092,C://localhost:9093", "advertised.listeners": "P://localhost:9092",
        "listener.security.protocol.map": "P:PLAINTEXT,C:PLAINTEXT", "inter.broker.listener.name": "P",
        "controller.quorum.voters": "1@localhost:9093",
    }  # fmt: skip

    def places() -> list[Path]:
        return [where / name for name in ("a", "b", "deep/c")]

    def call() -> Any:
        nonlocal where
        where = folder / str(next(turns))
        (where / "a").mkdir(parents=True)
        dirs = {"log.dirs": ",".join(map(str, places()))}
        Formatter(ServerConfig(config | dirs), "AAAAAAAAAAAAAAAAAAAAAQ").run()
        return [sorted(tree(place)) for place in places()]

    def again() -> None:
        done = [(place / "meta.properties").exists() for place in places()]
        assert len(set(done)) == 1, done
        left = [str(path) for path in where.rglob("*.partial")]
        assert not left, left

    return Work(call, again)


@case
def capture(_: random.Random, folder: Path, __: ExitStack) -> Work:
    talk = captures.Talk().open()
    for turn in range(40):
        talk.exchange(*captures.metadata(turn, 10))
    path = captures.write_pcap(folder / "x.pcap", talk.close().bytes())
    return of(lambda: ([str(event) for event in read_capture(path)], str(audit([str(path)], "4.0"))))


@case
def record(_: random.Random, folder: Path, __: ExitStack) -> Work:
    """What a FrameWriter wrote is right up to its end; it does not continue after a frame written in part."""
    request, response = captures.metadata(1, 30)
    by = Connection("w", 0, "10.0.0.1:1", "10.0.0.2:9092")
    turns = iter(range(1 << 30))
    name = ""

    def call() -> Any:
        nonlocal name
        name = ""
        fresh = str(folder / f"w{next(turns)}")
        with FrameWriter(fresh) as writer:
            name = fresh
            for _ in range(30):
                try:
                    put(writer, "request", request)
                    put(writer, "response", response)
                except KeyboardInterrupt:
                    with suppress(OSError):
                        put(writer, "response", response)
                    raise
        return sum(1 for _ in read_capture(name + ".jsonl.gz"))

    def put(writer: Any, direction: Any, data: bytes) -> None:
        writer.write(by, Frame(direction, data, 1), None)
        writer.flush()

    def again() -> None:
        if name and os.path.exists(name + ".jsonl.gz") and os.path.getsize(name + ".jsonl.gz"):
            events = [str(event) for event in read_capture(name + ".jsonl.gz")]
            assert events is not None
        for path in folder.glob("w*"):
            path.unlink()

    return Work(call, again)


@case
def pages(_: random.Random, folder: Path, __: ExitStack) -> Work:
    turns = iter(range(1 << 30))

    def call() -> Any:
        out = folder / f"site{next(turns)}"
        write_site(out)
        return sorted(os.listdir(out))

    return Work(call)


@case
def connection(_: random.Random, __: Path, held: ExitStack) -> Work:
    """A connection goes on with the next call: no answer of the interrupted one comes to it."""
    server = broker()
    held.enter_context(fake.serving(server))
    shared = connect_sync(server.address, timeout=30)
    held.callback(shared.close)
    turns = iter(range(1 << 30))

    def call() -> Any:
        with connect_sync(server.address, timeout=30) as fresh:
            ask(fresh, "fresh")
        for _ in range(5):
            ask(shared, f"t-{next(turns)}")
        return None

    def again() -> None:
        for _ in range(3):
            ask(shared, f"again-{next(turns)}")

    return Work(call, again)


def nothing_left(before: set[str], threads: int) -> None:
    """Of a Fleet or Proxy that has ended, or was interrupted, nothing is left: no thread, socket or lock."""
    end = time.monotonic() + 10
    while (left := open_files() - before) or _count() > threads:
        assert time.monotonic() < end, f"left behind: {left}, {_count() - threads} threads"
        time.sleep(0.01)


def open_files() -> set[str]:
    """What this process has open: "/NUMBER TARGET"."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.add(f"/{number} {os.readlink(f'/proc/self/fd/{number}')}")
    return found


def entered(manager: Any, use: Callable[[Any], Any]) -> Any:
    """What use(manager) gives inside `with`.

    A signal that comes at the door, as __exit__ is called and has done nothing, is no fault of it: nothing in Python
    can help that, and it is called again.
    """
    try:
        with manager:
            return use(manager)
    except BaseException as error:
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        if last is not None and last.tb_frame.f_code.co_name == "__exit__" and (
                last.tb_lineno == last.tb_frame.f_code.co_firstlineno):
            manager.__exit__(None, None, None)
        raise


@case
def fleet(_: random.Random, folder: Path, __: ExitStack) -> Work:
    """With its data in a folder, which the next one can have at once."""
    before, threads = open_files(), _count()

    def use(nodes: Fleet) -> Any:
        nodes.fault("Fetch", error="UNKNOWN_SERVER_ERROR").remove()
        nodes.nodes[1].stop()
        nodes.nodes[1].start()
        return nodes.records("t"), len(nodes.image.topics), nodes.retain()

    def call() -> Any:
        return entered(Fleet("4.4", nodes=2, data=folder / "data", topics={"t": 1}), use)

    def again() -> None:
        nothing_left(before, threads)
        same(call(), ([], 1, 0), "the next fleet")
        nothing_left(before, threads)

    return Work(call, again, cleans_up=True)


@case
def proxy(_: random.Random, __: Path, held: ExitStack) -> Work:
    server = broker()
    held.enter_context(fake.serving(server))
    before, threads = open_files(), _count()

    def use(between: Proxy) -> Any:
        between.fault("Fetch", close=True).remove()
        return between.bootstrap.split(":")[0]

    return Work(lambda: entered(Proxy(server.address), use), lambda: nothing_left(before, threads),
                cleans_up=True)


class Alarm:
    """Raises KeyboardInterrupt in the main thread when the time has come."""

    def __init__(self) -> None:
        self.left = 0
        log = logging.getLogger("asyncio")  # where Ctrl-C may leave a lock, but for levels that were asked before
        for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
            log.isEnabledFor(level)
        self.before = signal.signal(signal.SIGALRM, self.ring)

    def ring(self, *_: object) -> None:
        if self.left > 0:
            self.left -= 1
            raise KeyboardInterrupt

    def during(self, call: Callable[[], Any], delay: float, times: int) -> tuple[str, Any]:
        """("value", what it gave) or ("interrupt", None); times: at most three."""
        try:
            return self._ringing(call, delay, times)
        except KeyboardInterrupt:
            return "interrupt", None
        finally:  # it may ring here too, as often as it has not rung yet
            try:
                self.left = 0
            except KeyboardInterrupt:
                try:
                    self.left = 0
                except KeyboardInterrupt:
                    self.left = 0

    def _ringing(self, call: Callable[[], Any], delay: float, times: int) -> tuple[str, Any]:
        self.left = times
        # not so often that a busy machine does nothing but enter the handler
        signal.setitimer(signal.ITIMER_REAL, delay, delay / 3 + 5e-5 if times > 1 else 0)
        return "value", call()

    def close(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)


class Tracer:
    """Counts the lines of kwire's own Python that run, and raises at one of them.

    Lines of "with" and "try" do not count: a tracer is asked there between the end of a block and what it does at its
    end, and before the block is entered in which it stands, where no signal can come. Nor do those that say so.
    """

    def __init__(self, at: int = -1, kind: type[BaseException] = KeyboardInterrupt) -> None:
        self.at, self.kind, self.seen = at, kind, 0

    def __call__(self, frame: Any, event: str, _: object) -> Any:
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno) if event == "line" else "try:"
        if not line.lstrip().startswith(("with ", "async with ", "try:")) and "no signal can come" not in line:
            self.seen += 1
            if self.seen == self.at:
                raise self.kind
        return self

    def during(self, call: Callable[[], Any]) -> tuple[str, Any]:
        outcome: tuple[str, Any] = ("interrupt", None)
        sys.settrace(self)
        try:
            outcome = ("value", call())
        except self.kind:
            pass
        finally:
            sys.settrace(None)
        return outcome


def disturb(make: Callable[[], Work], dice: random.Random, moments: int) -> Counter[str]:
    """One case: timers at moments spread over the call, then lines; how it went."""
    work = make()
    wanted = work.call()
    work.again()
    began = time.perf_counter()
    work.call()
    took = time.perf_counter() - began
    work.again()
    counts, alarm = Counter[str](), Alarm()
    spread = max(4, min(moments, int(BUDGET / took)))
    try:
        for turn in range(spread):
            part = 1.1 * (turn + dice.random()) / spread if turn % 3 else dice.random() ** 4
            delay = 1e-6 + took * part
            kind, value = alarm.during(work.call, delay, 1)
            check(work, kind, value, wanted, counts, f"after {delay * 1e6:.0f} us")
        for _ in range(spread // 6):  # on the way out as well: what is left then can only be thrown away
            work = make()
            expected = work.call()  # with the names of its own files
            kind, value = alarm.during(work.call, 1e-6 + took * dice.random(), 3)
            if kind == "value":
                same(value, expected, "of a call that was interrupted again and again")
            counts["again and again"] += 1
            time.sleep(0.1)  # what is left may be beginning still, and is not to be taken for what comes after it
    finally:
        alarm.close()
    work, tracer = make(), Tracer()
    wanted = tracer.during(work.call)[1]
    work.again()
    for turn in range(min(tracer.seen, spread)):
        error = (KeyboardInterrupt, MemoryError)[turn % 2]
        at = dice.randrange(tracer.seen) + 1
        kind, value = Tracer(at, error).during(work.call)
        check(work, kind, value, wanted, counts, f"{error.__name__} at line {at} of {tracer.seen}")
    return counts + on_little_stack(make)


def on_little_stack(make: Callable[[], Work]) -> Counter[str]:
    """One case with so few frames left that it fails, then with one more, until there are enough; how it went."""
    work, counts, left = make(), Counter[str](), 2
    wanted = work.call()
    work.again()
    while not work.cleans_up and counts["value"] < 3:
        kind, value = "value", None
        try:
            value = with_frames_left(left, work.call)
        except RecursionError:
            kind = "interrupt"
        check(work, kind, value, wanted, counts, f"with {left} frames of the stack left")
        left += 1 + left // 8
    return counts


def check(work: Work, kind: str, value: Any, wanted: Any, counts: Counter[str], where: str) -> None:
    try:
        if kind == "value":
            same(value, wanted, "of an interrupted call")
        work.again()
    except BaseException as error:
        error.add_note(f"{kind} {where}")
        raise
    counts[kind] += 1


def theirs() -> None:
    """What code of the user's raises in the middle of a call comes out as it is."""
    for kind in (KeyboardInterrupt, MemoryError, SystemExit, RuntimeError):
        for name, call in calls_with(kind("theirs")).items():
            try:
                call()
            except BaseException as error:
                assert type(error) is kind and str(error) == "theirs", (name, error)
            else:
                raise AssertionError(f"{name} swallowed {kind.__name__}")


def calls_with(error: BaseException) -> dict[str, Callable[[], object]]:
    """Calls in which the user's code raises this."""
    def raises(*_: object) -> Any:
        raise error

    def flow(first: Any) -> Iterator[Any]:
        yield first
        raise error

    odd = type("Odd", (), {"__index__": raises, "__int__": raises})()
    data = type("Data", (bytes,), {"__bytes__": raises})(b"x")
    listed = type("Listed", (), {"__iter__": raises, "__len__": lambda _: 2})()
    text = type("Text", (str,), {"__eq__": raises, "__hash__": str.__hash__})("x")
    table = type("Table", (), {"__arrow_c_stream__": raises})()
    topic, texts = messages.MetadataRequest.MetadataRequestTopic, messages.DeleteTopicsRequest
    payload = kwire.encode(messages.ApiVersionsRequest(), 3)
    tagged = messages.MetadataRequest(topics=[topic(name="a", unknown_tags={9: data})])
    return {
        "build_batch of an iterator": lambda: kwire.build_batch(flow((1, b"k", b"v"))),
        "build_batch of headers": lambda: kwire.build_batch([(1, b"k", b"v", listed)]),
        "build_batches": lambda: kwire.build_batches(table),
        "columns_of": lambda: kwire.columns_of("ApiVersionsRequest", 3, flow(payload)),
        "columns_of, kept": lambda: kwire.columns_of("ApiVersionsRequest", 3, flow(payload), errors="keep"),
        "encode": lambda: kwire.encode(tagged, 12),
        "to_json": lambda: kwire.encode_request(tagged, 12),
        "a number": lambda: kwire.build_batch([(odd, b"k", b"v")]),
        "==": lambda: texts(topic_names=[text]) == texts(topic_names=["y"]),
        "Record": lambda: kwire.Record(headers=flow(("k", b"v"))),
        "columns": lambda: kwire.columns(b"", flow("offset")),
    }


def fresh(name: str, seed: int, folder: str, held: ExitStack) -> Work:
    """The work of a case, the same each time, in a folder of its own."""
    return CASES[name](random.Random(seed), Path(tempfile.mkdtemp(dir=folder)), held)


def rounds(seconds: float, seed: int, only: list[str], moments: int) -> Iterator[Counter[str]]:
    """Each case once, then at random until the time is over."""
    dice = random.Random(seed)
    names, end = only or sorted(CASES), time.monotonic() + seconds
    left = dice.sample(names, len(names))
    while left or time.monotonic() < end:
        name = left.pop() if left else dice.choice(names)
        number = dice.randrange(1 << 32)
        with (watched(HANG, f"in {name}, of seed {seed}"),
              tempfile.TemporaryDirectory(prefix="kwire-interrupts.") as folder, ExitStack() as held):
            make = partial(fresh, name, number, folder, held)
            counts = disturb(make, random.Random(number), moments)
        yield Counter({f"{name}: {kind}": count for kind, count in counts.items()})


def main(arguments: list[str] | None = None) -> int:
    parser = seeded(__doc__)
    parser.add_argument("--only", action="append", choices=sorted(CASES), default=[])
    parser.add_argument("--moments", type=int, default=MOMENTS)
    chosen = parser.parse_args(arguments)
    faulthandler.enable()
    theirs()
    counts = Counter[str]()
    for found in rounds(chosen.seconds, chosen.seed, chosen.only, chosen.moments):
        counts += found
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
    print(f"{sum(count for name, count in counts.items() if name.endswith(' interrupt'))} interrupts came through")
    return 0


if __name__ == "__main__":
    sys.exit(main())
