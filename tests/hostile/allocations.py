"""Failing allocations: python -m tests.hostile.allocations --seconds N.

Each public call runs with one request for memory after another failing: Python's own (Cython's too), and those that the
C of kwire makes; a library that is loaded before Python (failing.c) does it. What comes must be the right value or
MemoryError, the call must then work as before, and of C's requests nothing may be leaked. Prints what broke, exit 1.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from operator import eq
from pathlib import Path
from typing import Any, NamedTuple

from tests.hostile.sanitized import ROOT, before
from tools import places

HERE = Path(__file__).parent
MOST = 1 << 40  # of requests, none has so high a number
KINDS = ("Python", "C")
ENOUGH = 0.5  # seconds for a call, of which there is time to look at what leaks
BURSTS = (2, 3, 4, 5)  # requests in a row that fail
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Call(NamedTuple):
    """What is called, and what makes its value comparable: both give the same each time."""

    work: Callable[[], Any]
    seen: Callable[[Any], Any] = repr


def library() -> Path:
    """failing.c compiled; kept by content."""
    source = HERE / "failing.c"
    target = places.cache() / f"failing-{places.digest(source.read_bytes())}.so"
    if not target.exists():
        fresh = target.with_suffix(f".{os.getpid()}")
        options = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread",
                   "-fno-optimize-sibling-calls"]  # a tail call would hide who called
        subprocess.run(["cc", *options, str(source), "-o", str(fresh)], check=True)
        fresh.rename(target)
    return target


def table(found: Any) -> Any:
    """The rows of columns, by pyarrow."""
    import pyarrow

    made = pyarrow.table(found)
    made.validate(full=True)
    return [column.cast("int64").to_pylist() if pyarrow.types.is_timestamp(column.type) else column.to_pylist()
            for column in made.columns]


def batches_of(found: Any) -> list[Any]:
    """Every batch as what it tells, with its records; bad ones by their place and reason."""
    from kwire import BadBatch

    return [(one.position, len(one.raw), str(one.error)) if isinstance(one, BadBatch) else
            (one.position, one.size, one.codec, one.is_valid(), len(one), one.plain_size, one.extent(),
             [(record.offset, record.timestamp, record.key, record.value, record.headers) for record in one])
            for one in found]  # fmt: skip


def message_calls() -> Iterator[tuple[str, Call]]:
    """decode, encode, JSON, frames and columns of messages."""
    import kwire
    from tests.hostile import samples

    for name, version in (("FetchResponse", 16), ("MetadataResponse", 12), ("ProduceRequest", 9), ("TopicRecord", 0),
                          ("LeaderAndIsrRequest", 5), ("ApiVersionsResponse", 3), ("OffsetFetchResponse", 8)):
        data = max((one for one in samples.samples((name, version)) if len(one) < 800), key=len)
        message = kwire.decode(name, version, data)
        read, value = partial(kwire.decode, name, version), kwire.to_json(message, version)
        for call, work in {
            "decode": partial(read, data),
            "decode, lenient": partial(read, data, lenient=True),
            "decode, views": partial(read, bytearray(data), views=True),
            "decode, cut": partial(refusal, read, data[:-1]),
            "decode_from": partial(kwire.decode_from, name, version, b"\0" + data, 1),
            "encode": partial(kwire.encode, message, version),
            "to_json": partial(kwire.to_json, message, version),
            "from_json": partial(kwire.from_json, name, version, value),
            "==": partial(eq, message, kwire.decode(name, version, data)),
        }.items():
            yield f"{call} {name}", Call(work)
        columns, three = partial(kwire.columns_of, name, version), [data] * 3
        for call, work in {
            "columns_of": partial(columns, three),
            "columns_of, lenient": partial(columns, three, lenient=True),
            "columns_of, keep": partial(columns, [*three, data[:-1]], errors="keep"),
        }.items():
            yield f"{call} {name}", Call(work, table)
    data = max((one for one in samples.samples(("MetadataResponse", 12)) if len(one) < 800), key=len)
    paths = ["topics.name", "topics.partitions.partition_index", "topics.partitions.leader_id"]
    yield "columns_of, paths", Call(lambda: kwire.columns_of("MetadataResponse", 12, [data] * 20, paths), table)
    yield "columns_of, no such path", Call(
        lambda: refusal(kwire.columns_of, "MetadataResponse", 12, [data], ["topics.nothing"]))
    request = kwire.encode_request(kwire.messages.MetadataRequest(), 12, correlation_id=7, client_id="me")
    known = kwire.decode_request(request)
    response = kwire.encode_response(kwire.decode("MetadataResponse", 12, data), 12, correlation_id=7)
    framed = kwire.pack_frame(request) * 4
    yield "encode_request", Call(lambda: kwire.encode_request(known.message, 12, correlation_id=7, client_id="me"))
    yield "decode_request", Call(lambda: kwire.decode_request(request))
    yield "decode_response", Call(lambda: kwire.decode_response(response, known))
    yield "to_bytes", Call(lambda: known.to_bytes())
    yield "FrameReader", Call(lambda: fed(framed, 7))
    key, content = kwire.encode_coordinator_record(
        "group", kwire.messages.OffsetCommitKey(group="g", topic="t"), kwire.messages.OffsetCommitValue(), 3)
    yield "decode_coordinator_record", Call(lambda: kwire.decode_coordinator_record("group", key, content))
    stored = kwire.encode_metadata_record(kwire.messages.TopicRecord(name="t"), 0)
    yield "decode_metadata_record", Call(lambda: kwire.decode_metadata_record(stored))
    yield "crc32c", Call(lambda: kwire.crc32c(stored))
    yield "build_info", Call(kwire.build_info)


def fed(data: bytes, step: int) -> list[bytes]:
    """The frames that a reader gives, fed piece by piece."""
    import kwire

    reader, found = kwire.FrameReader(), []
    for at in range(0, len(data), step):
        found += reader.feed(data[at : at + step])
    return found


def refusal(work: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """The error of kwire's that comes."""
    try:
        work(*arguments, **options)
    except MemoryError:
        raise
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return "taken"


def all_of(read: Callable[[bytes], Any], data: bytes) -> list[Any]:
    return batches_of(read(data))


def controls(data: bytes) -> list[Any]:
    """What the control records say."""
    import kwire

    return [(one.control_type, one.control) for batch in kwire.read_batches(data) for one in batch if batch.is_control]


def batch_calls() -> Iterator[tuple[str, Call]]:
    """Reading and writing batches, as objects and as columns."""
    import kwire
    from kwire.compression import compress, decompress
    from tests.storage import making

    fields = ("offset", "timestamp", "key", "value", "headers", "timestamp_type", "sequence", "producer_id", "source",
              "batch_position", "codec", "is_control")
    rows = [(1_700_000_000_000 + at, b"k%d" % at if at % 3 else None, b"value %d" % at * 9, [("h", b"x"), ("n", None)])
            for at in range(12)]
    plain = b"some of this and some of that, " * 20
    for magic, codec in [*((2, codec) for codec in CODECS), (0, "gzip"), (1, "gzip"), (1, "lz4"), (0, "none")]:
        given = rows if magic == 2 else [(row[0] if magic else -1, *row[1:3]) for row in rows]
        data = kwire.build_batch(given, magic=magic, codec=codec) * 2
        broken = data[: len(data) // 2 + 20] + b"\xff\0\xff" + data[len(data) // 2 + 23 :] + data
        kind = f"magic {magic}, {codec}"
        keep: Any = partial(kwire.read_batches, errors="keep")
        yield f"build_batch, {kind}", Call(partial(kwire.build_batch, given, magic=magic, codec=codec))
        yield f"read_batches, {kind}", Call(partial(all_of, kwire.read_batches, data))
        yield f"read_batches, keep, {kind}", Call(partial(all_of, keep, broken))
        columns: Any = partial(kwire.columns, fields=fields)
        for call, work in {
            "columns": partial(columns, [data, data]),
            "columns, views": partial(columns, [data, data], views=True),
            "columns, committed": partial(columns, [data, data], committed=True),
            "columns, keep": partial(columns, [broken, data], errors="keep"),
        }.items():
            yield f"{call}, {kind}", Call(work, table)
        yield f"columns, damaged, {kind}", Call(partial(refusal, kwire.columns, broken))
        if magic == 2:
            packed = compress(codec, plain)
            yield f"compress, {kind}", Call(partial(compress, codec, plain))
            yield f"decompress, {kind}", Call(partial(decompress, codec, packed, limit=1 << 20), bytes)
            yield f"decompress, limit, {kind}", Call(partial(refusal, decompress, codec, packed, limit=9))
            aborted = making.in_transaction(0, 5, codec=codec) + making.marker(3, 5, False)
            yield f"columns, aborted, {kind}", Call(partial(kwire.columns, aborted, committed=True), table)
            yield f"control records, {kind}", Call(partial(controls, aborted))
    held = kwire.columns([kwire.build_batch(rows) * 3], fields=("timestamp", "key", "value", "headers"))
    for codec in ("none", "zstd"):
        yield f"build_batches, {codec}", Call(partial(kwire.build_batches, held, codec=codec, batch_bytes=600))
    yield "__arrow_c_stream__", Call(lambda: held.__arrow_c_stream__(), lambda capsule: "capsule" in repr(capsule))
    yield "__arrow_c_array__", Call(lambda: held["value"].__arrow_c_array__(), len)
    yield "to_numpy", Call(lambda: held["timestamp"].to_numpy(), lambda found: found.tolist())
    large = kwire.build_batch([(at, None, bytes(500_000)) for at in range(16)], codec="zstd")
    yield "columns, large", Call(lambda: kwire.columns([large] * 2, fields=("offset", "value")), len)


def using(work: Callable[[Any], Any], path: str) -> Any:
    from kwire.storage import LogSegment

    return work(LogSegment(path))


def shown(lines: Any, segment: Any) -> bytes:
    """The lines of `kwire log show`, without their texts for control records."""
    columns = segment.columns(lines.fields)
    return b"".join(lines.writer(segment, {}, None, False).write(columns))


def file_calls(folder: Path) -> Iterator[tuple[str, Call]]:
    """Segments and captures."""
    from kwire.capture import audit, read_capture
    from kwire.cli.record_lines import Format, JsonLines, Table, table_layout
    from kwire.storage import LogDirectory, LogSegment
    from tests.capture import making as talks
    from tests.storage import making

    topic = folder / "t-0"
    path = making.write_segment(topic, 0, [
        making.batch(0), making.batch(3, codec="gzip"), making.in_transaction(6, 1), making.marker(9, 1, False),
        making.batch(10, codec="zstd"), making.in_transaction(13, 2)])
    making.aborted_index(path, [(1, 6, 9, 10)])
    damaged = folder / "damaged.log"
    damaged.write_bytes(path.read_bytes()[:300] + bytes(40) + path.read_bytes() + b"\1\2\3")
    # paths as texts: of a Path, os.fspath itself says TypeError where memory is short
    log, names = str(path), {"valid": str(path), "damaged": str(damaged)}
    for name, one in names.items():
        for call, work in {
            "batches": lambda opened: batches_of(opened.batches(errors="keep")),
            "verify": lambda opened: opened.verify(),
            "stats": lambda opened: opened.stats().to_json(),
        }.items():
            yield f"segment {call}, {name}", Call(partial(using, work, one))
        yield f"segment columns, {name}", Call(
            partial(using, lambda opened: list(opened.column_batches(errors="keep")), one),
            lambda found: [table(one) for one in found])
    yield "segment read", Call(lambda: list(LogSegment(log).read(start_offset=4, committed=True)))
    yield "segment columns, committed", Call(lambda: LogSegment(log).columns(committed=True), table)
    for lines in (Table(table_layout([LogSegment(log)]), 60), JsonLines(), Format("%t %p %o %k %s %h %T %K %S %R")):
        yield f"lines, {type(lines).__name__}", Call(partial(using, partial(shown, lines), log))
    yield "segment cut", Call(lambda: LogSegment(log).split(100))
    yield "directory", Call(lambda: [list(part.read()) for part in LogDirectory(str(topic))])
    talk = talks.Talk().open().exchange(talks.hello(), talks.welcome()).exchange(*talks.metadata(1, 3)).close()
    pcap = str(talks.write_pcap(folder / "talk.pcap", talk.bytes()))
    yield "read_capture", Call(lambda: list(read_capture(pcap)))
    yield "audit", Call(lambda: audit(pcap, "4.0").to_json())


def calls(folder: Path) -> Iterator[tuple[str, Call]]:
    """Every call by its name."""
    yield from message_calls()
    yield from batch_calls()
    yield from file_calls(folder)


class Broken(Exception):
    """What came is neither the right value nor MemoryError."""


def preloaded() -> Any:
    """The functions of failing.c, in a process that was started with it."""
    import kwire_c

    c = ctypes.CDLL(None)
    c.failing_begin.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long]
    c.failing_end.restype = c.failing_held.restype = ctypes.c_long
    for name in Path(kwire_c.__file__).parent.glob("*.so"):
        __import__(f"kwire_c.{name.name.partition('.')[0]}")
    if not c.failing_watch(b"/kwire_c/"):
        raise SystemExit("no library of kwire_c is watched")
    c.failing_python()
    return c


class Sweep:
    """Calls with requests for memory that fail. progress: where what is tried now is written, for who finds it dead."""

    def __init__(self, progress: int) -> None:
        self.progress, self.tried = progress, 0
        self.c = preloaded()

    def attempt(self, call: Call, expected: Any, where: str, start: int, stop: int) -> int:
        """Runs a call with requests [start, stop) failing; how many it made. Raises Broken."""
        os.pwrite(self.progress, f"{where}, requests {start} to {stop}".ljust(200).encode(), 0)
        error = value = None
        begin, end = self.c.failing_begin, self.c.failing_end
        kind = KINDS.index(where.partition(":")[0]) + 1
        begin(kind, start, stop)
        try:
            value = call.work()
        except BaseException as raised:
            error = raised
        finally:
            asked = end()
        self.tried += 1
        if error is None:
            found = call.seen(value)
            if found != expected:
                raise Broken(f"{where}, requests {start} to {stop}: {found!r:.300}, not {expected!r:.300}")
        elif type(error) is not MemoryError:
            raise Broken(f"{where}, requests {start} to {stop}: {type(error).__name__}: {error}")
        return int(asked)

    def held(self) -> int:
        """Pieces of memory that are there: Python's, and those of kwire's C."""
        gc.collect()
        return sys.getallocatedblocks() + int(self.c.failing_held())

    def sweep(self, name: str, call: Call, dice: random.Random, until: float) -> list[str]:
        """All that broke of one call, until the time is up."""
        broken = []
        expected = call.seen(call.work())
        call.seen(call.work())
        for kind in KINDS:
            where = f"{kind}: {name}"
            try:
                count = self.attempt(call, expected, where, MOST, MOST)
                broken += self.positions(call, expected, where, count, dice, until)
            except Broken as one:
                broken.append(str(one))
        return broken

    def positions(
        self, call: Call, expected: Any, where: str, count: int, dice: random.Random, until: float
    ) -> list[str]:
        """The sweep over all requests of a kind, or as many of them as the time allows; again, to find what leaks."""
        broken: list[str] = []
        order = list(range(count))
        dice.shuffle(order)
        done: list[int] = []
        began = time.monotonic()
        first = began + (until - began) / 3
        for at in order:
            if time.monotonic() > first:
                break
            done.append(at)
            try:
                self.attempt(call, expected, where, at, at + 1)
                self.attempt(call, expected, where, at, at + dice.choice(BURSTS))
                self.attempt(call, expected, where, MOST, MOST)  # afterwards it is as before
            except Broken as one:
                broken.append(str(one))
        if until - began < ENOUGH or not where.startswith("C"):
            return broken  # where its own memory is short CPython itself loses a piece here and there (as of 3.11)
        held = array("q", bytes(32))
        for at_pass in range(4):
            for at in done:
                try:
                    self.attempt(call, expected, where, at, at + 1)
                except Broken:
                    continue
            held[at_pass] = self.held()
        if held[0] < held[1] < held[2] < held[3]:
            broken.append(f"{where}: pieces of memory that stay: {list(held)}")
        return broken


def child(chosen: list[str], seconds: float, seed: int, progress: int) -> None:
    """Prints a line for each call that was tried: its name, and what broke."""
    with tempfile.TemporaryDirectory() as folder:
        known = dict(calls(Path(folder)))
        sweep = Sweep(progress)
        began = time.monotonic()
        for number, name in enumerate(chosen, 1):
            os.pwrite(progress, name.ljust(200).encode(), 0)
            signal.alarm(60 + int(2 * seconds / len(chosen)))  # whose default action ends the process
            broken = sweep.sweep(name, known[name], random.Random(f"{seed} {name}"),
                                 began + seconds * number / len(chosen))
            print(json.dumps([name, broken, sweep.tried]), flush=True)


def run(seconds: float, seed: int, only: str = "") -> tuple[list[str], int]:
    """(what broke, how often a call ran) of all calls, or those whose name holds a text."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as progress:
        left = [name for name, _ in calls(Path(folder)) if only in name]
        broken, tried, share = [], 0, seconds / max(1, len(left))
        environment = os.environ | {"LD_PRELOAD": before(library()), "PYTHONFAULTHANDLER": "1"}
        while left:
            command = [sys.executable, "-m", "tests.hostile.allocations", "--seconds", str(share * len(left)), "--seed",
                       str(seed), "--progress", str(progress.fileno()), "--child", *left]
            ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True,
                                 pass_fds=[progress.fileno()])
            lines = [json.loads(line) for line in ran.stdout.splitlines()]
            for _, found, _ in lines:
                broken += found
            tried += lines[-1][2] if lines else 0
            if ran.returncode:
                at = os.pread(progress.fileno(), 200, 0).decode().strip()
                how = "hangs" if ran.returncode == -signal.SIGALRM else f"died ({ran.returncode})"
                broken.append(f"{how} at {at}: {ran.stderr[-1500:]}")
            left = left[len(lines) + bool(ran.returncode) :]
    return broken, tried


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", default="", help="of the calls, those with that in their names")
    parser.add_argument("--progress", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.child:
        child(chosen.child, chosen.seconds, chosen.seed, chosen.progress)
        return 0
    broken, tried = run(chosen.seconds, chosen.seed, chosen.only)
    for one in broken:
        print(one)
    print(f"{tried} calls, seed {chosen.seed}: {len(broken)} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
