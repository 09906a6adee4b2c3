"""Forks in the midst of other threads' work: python -m tests.hostile.forks --seconds N [--seed S] [--only NAME].

Four threads use an object without an end while the main one forks. The child, which an alarm ends where it hangs, does
the same from the beginning, and uses what it has of the parent: a right value, or an error that says why not. The
parent's threads go on and must be right all the while.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import kwire
from kwire import messages
from kwire.capture import FrameWriter, read_capture
from kwire.capture.exchange import Connection, Frame
from kwire.compression import compress, decompress
from kwire.fleet import Fleet
from kwire.net import connect_sync
from kwire.storage import LogSegment
from tests.capture import making as captures
from tests.hostile.races import CODECS, ask, broker, hasty, is_busy, log, metadata, of_batch, of_record, partition, same
from tests.hostile.rounds import seeded
from tests.net import fake
from tests.storage import making

HANG = 20  # seconds that a child may take
THREADS, FORKS = 4, 12


class Work:
    """What is forked in the midst of: keep(number) is repeated in threads, child() is done in each child.

    times: how often more than others, where the moment that matters is short.
    """

    def __init__(self, keep: Callable[[int], object], child: Callable[[], object], times: int = 1) -> None:
        self.keep, self.child, self.times = keep, child, times


Case = Callable[[random.Random, Path, ExitStack], Work]
CASES: dict[str, Case] = {}


def case(make: Case) -> Case:
    CASES[make.__name__] = make
    return make


def numbers(found: Any) -> list[Any]:
    """Offsets and values of columns, without pyarrow, whose own threads are not forked."""
    return [found["offset"].to_numpy().tolist(), found["value"].to_numpy().tolist()]


@case
def columns(dice: random.Random, _: Path, __: ExitStack) -> Work:
    """Buffers come from a pool that all share; columns read without the interpreter's lock."""
    data = kwire.build_batch([(n, b"k", b"v" * 100) for n in range(700)]) * 3
    mixed = log(dice, 0.2, 20)
    held, wanted = kwire.columns(data), numbers(kwire.columns(mixed, errors="keep"))
    before = numbers(held)

    def keep(_: int) -> None:
        for _ in range(20):
            kwire.columns(data)

    def child() -> None:
        same(numbers(held), before, "columns of the parent")
        for _ in range(20):
            same(numbers(kwire.columns(mixed, errors="keep")), wanted, "columns")

    return Work(keep, child)


@case
def pool(dice: random.Random, _: Path, __: ExitStack) -> Work:
    """The moments in which the pool of buffers is looked into."""
    data = kwire.build_batch([(n, b"k" * 30, b"v" * 30) for n in range(9000)])
    fields = ("offset", "timestamp", "key", "value", "producer_id", "batch_position")

    def use(_: int = 0) -> None:
        assert len(kwire.columns(data, fields, verify_crc=False)) == 9000

    return Work(use, use, times=25)


@case
def codecs(dice: random.Random, _: Path, __: ExitStack) -> Work:
    """Contexts of compression libraries, in use by others."""
    plain = dice.randbytes(300_000)
    packed = {codec: compress(codec, plain) for codec in CODECS}

    def use() -> None:
        for codec, data in packed.items():
            assert bytes(decompress(codec, data, limit=1 << 20)) == plain, codec
            assert bytes(decompress(codec, compress(codec, plain), limit=1 << 20)) == plain, codec
        assert [next(iter(b)).value for b in kwire.read_batches(kwire.build_batch([(0, b"", plain)]))] == [plain]

    return Work(lambda _: use(), use)


@case
def iterators(dice: random.Random, _: Path, __: ExitStack) -> Work:
    """Batches and records of which the half is read; the child goes on where they are, as the parent does."""
    data = log(dice, 0.2, 30)
    whole = [of_batch(one) for one in kwire.read_batches(data, errors="keep")]
    many = kwire.build_batch([(n, b"k%d" % n, b"v" * 50) for n in range(2000)], codec="zstd")
    flow, (one,) = kwire.read_batches(data, errors="keep"), kwire.read_batches(many)
    taken = iter(one)

    def keep(number: int) -> None:
        nonlocal flow
        if number:
            if next(flow, None) is None:
                flow = kwire.read_batches(data, errors="keep")
        else:
            whole_batch = [of_record(record) for record in one]
            same(whole_batch, [(n, b"k%d" % n, b"v" * 50, "()") for n in range(2000)], "records")
            next(taken, None)

    def child() -> None:
        left = [of_batch(one) for one in flow]
        same(left, whole[len(whole) - len(left) :], "the parent's batches, gone on with")
        rest = [record.offset for record in taken]
        same(rest, list(range(2000 - len(rest), 2000)), "the parent's records, gone on with")
        same([of_batch(one) for one in kwire.read_batches(data, errors="keep")], whole, "batches")

    return Work(keep, child)


@case
def message(dice: random.Random, _: Path, __: ExitStack) -> Work:
    """Messages, and classes and plans at first use."""
    held = metadata(dice, 20)
    data = kwire.encode(held, 12)
    assert len(kwire.columns_of("MetadataResponse", 12, [data])) == 1  # imported: see storage
    names = [name for name in kwire.schema.message_names() if name.endswith("Request")]

    def keep(number: int) -> None:
        if number == 0:
            name = names.pop() if names else "FetchRequest"
            kwire.encode(getattr(messages, name)(), 0 if name in ("ApiVersionsRequest", "MetadataRequest") else
                         kwire.schema.message(name).valid_versions.all()[-1])
        assert kwire.encode(kwire.decode("MetadataResponse", 12, data), 12) == data
        assert len(kwire.columns_of("MetadataResponse", 12, [data] * 5, ["topics.name"])) == 100

    def child() -> None:
        assert kwire.encode(held, 12) == data
        keep(1)
        for name in ("FetchResponse", "JoinGroupRequest", "LeaderAndIsrRequest"):
            assert kwire.to_json(getattr(messages, name)(), 1) is not None

    return Work(keep, child)


@case
def storage(dice: random.Random, folder: Path, _: ExitStack) -> Work:
    """Segments, whose indexes and transactions are looked up at first use."""
    paths = partition(dice, folder / "t-0")
    shared = LogSegment(paths[0])
    wanted = [numbers(LogSegment(paths[0]).columns(committed=True)), [r.offset for r in LogSegment(paths[0]).read()]]
    flow = shared.batches()
    assert shared.verify() is not None and shared.stats()  # who forks while another imports, waits for ever: Python's

    def use(segment: Any) -> None:
        same([numbers(segment.columns(committed=True)), [r.offset for r in segment.read()]], wanted, "a segment")
        assert segment.verify() is not None and segment.stats().batches == 40

    def keep(number: int) -> None:
        nonlocal flow
        use(LogSegment(paths[0]) if number % 2 else shared)
        try:
            if next(flow, None) is None:
                flow = shared.batches()
        except ValueError as error:
            if not is_busy(error):
                raise

    def child() -> None:
        use(LogSegment(paths[0]))
        use(shared)
        try:
            for one in flow:
                assert isinstance(one, kwire.RecordBatch)
        except RuntimeError as error:  # another thread, which is not here, was in it
            assert "when the process forked" in str(error)

    return Work(keep, child)


@case
def pipe(dice: random.Random, folder: Path, _: ExitStack) -> Work:
    """What can be read once only: its copy is the child's too."""
    data = b"".join(making.batch(base, 3, size=3000) for base in range(0, 300, 3))
    path = folder / "t-0"
    path.mkdir()
    os.mkfifo(path / "0.log")
    feeder = threading.Thread(target=lambda: (path / "0.log").write_bytes(data))
    feeder.start()
    shared = LogSegment(path / "0.log")
    feeder.join()

    def use() -> None:
        same([r.offset for r in shared.read()], list(range(300)), "what came through a pipe")

    return Work(lambda _: use(), use)


@case
def connection(_: random.Random, __: Path, held: ExitStack) -> Work:
    """A connection in use: the child opens one of its own and leaves the parent's alone."""
    server = broker()
    held.enter_context(fake.serving(server))
    shared = connect_sync(server.address, timeout=15)
    held.callback(shared.close)
    ask(shared, "first")  # imported: see storage
    turns = iter(range(1 << 60))

    def keep(number: int) -> None:
        ask(shared, f"t-{number}-{next(turns)}")

    def child() -> None:
        with connect_sync(server.address, timeout=15) as fresh:
            ask(fresh, "new")
        for turn in range(3):
            ask(shared, f"child-{turn}")
        shared.close()

    return Work(keep, child)


@case
def capture(_: random.Random, folder: Path, held: ExitStack) -> Work:
    """The parent's record is not written to by the child; captures are read."""
    writer = held.enter_context(FrameWriter(str(folder / "w")))
    talk = captures.Talk().open().exchange(captures.hello(0), captures.welcome(0)).exchange(*captures.metadata(1, 5))
    path = captures.write_pcap(folder / "x.pcap", talk.close().bytes())
    wanted = [str(event) for event in read_capture(path)]
    by = [Connection(writer.name, n, f"10.0.0.1:{n}", "10.0.0.2:9092") for n in range(THREADS)]
    turns = iter(range(1 << 30))

    def keep(number: int) -> None:
        request, response = captures.metadata(next(turns), 20)
        writer.write(by[number], Frame("request", request, 1), None)
        writer.write(by[number], Frame("response", response, 1), None)

    def child() -> None:
        same([str(event) for event in read_capture(path)], wanted, "a capture")
        try:
            writer.write(by[0], Frame("request", captures.hello(0), 1), None)
        except OSError as error:
            assert "another process" in str(error), error
        else:
            raise AssertionError("the child writes to the parent's record")

    def check() -> None:
        writer.close()
        outcomes = Counter(getattr(event, "outcome", str(event)) for event in read_capture(folder / "w.jsonl.gz"))
        assert set(outcomes) == {"answered"}, outcomes

    held.callback(check)
    return Work(keep, child)


@case
def fleet(_: random.Random, folder: Path, held: ExitStack) -> Work:
    """A child has no loop: it says so, and leaves its parent's fleet alone, also where it ends the block."""
    outer = Fleet("4.4", data=folder / "data", topics={"t": 1})
    held.enter_context(outer)

    def keep(_: int) -> None:
        assert outer.records("t") == [] and len(outer.image.topics) == 1

    def child() -> None:
        for call in (lambda: outer.records("t"), outer.nodes[0].stop):
            try:
                call()
            except ValueError as error:
                assert "fork" in str(error), error
            else:
                raise AssertionError("the child uses the parent's fleet")
        outer.__exit__(None, None, None)
        with Fleet("4.4") as own:
            same(own.records("__consumer_offsets") if own.cluster.topics else [], [], "a fleet of its own")

    return Work(keep, child)


def forked(work: Callable[[], object]) -> None:
    """Does the work in a child; AssertionError where it fails there, or hangs."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # never leaves here
        status = 1
        try:
            os.close(read)
            faulthandler.dump_traceback_later(HANG - 1, file=write)
            signal.alarm(HANG)
            work()
            status = 0
        except BaseException:
            os.write(write, traceback.format_exc()[-3000:].encode())
        finally:
            os._exit(status)
    os.close(write)
    with open(read, "rb") as report:
        said = report.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if status:
        how = f"hangs: {signal.Signals(status).name}" if os.WIFSIGNALED(status) else "fails"
        raise AssertionError(f"the child {how}\n{said}")


def in_the_midst(work: Work, forks: int, dice: random.Random) -> None:
    """Forks that often while threads are at work."""
    stop, raised = threading.Event(), []
    begun = threading.Barrier(THREADS + 1)

    def body(number: int) -> None:
        begun.wait()
        try:
            while not stop.is_set():
                work.keep(number)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=body, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    begun.wait()
    try:
        for _ in range(forks * work.times):
            stop.wait(dice.random() * 0.01 / work.times)  # the threads come to another place
            forked(work.child)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a thread of the parent hangs"
    if raised:
        raise raised[0]


def rounds(seconds: float, seed: int, only: list[str], forks: int) -> Iterator[str]:
    """Each case once, then at random until the time is over."""
    dice = random.Random(seed)
    names, end = only or sorted(CASES), time.monotonic() + seconds
    left = dice.sample(names, len(names))
    while left or time.monotonic() < end:
        name = left.pop() if left else dice.choice(names)
        mine = random.Random(dice.randrange(1 << 32))
        try:
            with tempfile.TemporaryDirectory(prefix="kwire-forks.") as folder, ExitStack() as held, hasty():
                in_the_midst(CASES[name](mine, Path(folder), held), forks, mine)
        except BaseException as error:
            error.add_note(f"in {name}, of seed {seed}")
            raise
        yield name


def main(arguments: list[str] | None = None) -> int:
    parser = seeded(__doc__)
    parser.add_argument("--forks", type=int, default=FORKS)
    parser.add_argument("--only", action="append", choices=sorted(CASES), default=[])
    chosen = parser.parse_args(arguments)
    faulthandler.enable()
    counts = Counter(rounds(chosen.seconds, chosen.seed, chosen.only, chosen.forks))
    print(f"{sum(counts.values())} rounds of {len(counts)} cases: all right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
