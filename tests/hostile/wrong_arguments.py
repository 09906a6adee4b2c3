"""Every parameter of the public functions with wrong values: a value, or an error that says so.

python -m tests.hostile.wrong_arguments: all values; the tests call a share. A call may give a value, a KwireError, an
OSError, a ValueError, or a TypeError that names the parameter; anything else is a find, and so is a call that takes
more than ten seconds, or an error that a terminal would obey.
"""

from __future__ import annotations

import inspect
import io
import itertools
import math
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy

import kwire
from kwire import spark, storage
from kwire.errors import KwireError
from kwire.spark import options
from kwire.storage import LogDirectory, LogSegment, Partition, discover
from kwire.storage.reading.bounds import NO_BOUNDS
from kwire.storage.tables.record_tables import write_dataset, write_table
from tests.hostile import core_calls
from tests.storage.making import aborted_index, batch, in_transaction, marker, producer_snapshot, write_segment
from tests.storage.metadata.records import Cluster, write_log

ROOMS = ("storage", "core")
SECONDS = 10  # that a call may take
_MOST_ITEMS = 300_000  # of an iterator: one that has no end


class _Index:
    def __index__(self) -> int:
        return 3


class _Path:
    def __fspath__(self) -> Any:
        return 5


class Liar(int):
    """Says that it is whatever it is compared with."""

    __hash__ = int.__hash__

    def __eq__(self, _: object) -> bool:
        return True

    def __ne__(self, _: object) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __eq__


VALUES: tuple[Any, ...] = (
    None, 0, 1, -1, 7, True, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**30, 1.0,
    -0.5, math.nan, math.inf, "", "x", "0", "-1", "\0", "a\0b", "\x1b[31m", "\ud800", "\u202e", "é" * 300,
    "x" * 100_000, "..", ".", "/", "~", "*", "[", "{a,b}", "{", "[" * 5000, "memory://", "file://", "http://[::1",
    "://", "nosuch://x", "/dev/null/x", "/dev/zero", b"", b"x", b"\xff", bytearray(b"x"), memoryview(b"x"), [], [None],
    [1], ["x"], [""], [[]], (), ("x",), {}, {"a": 1}, {1: 2}, {"x"}, {1}, frozenset({2**40}), range(0), object(),
    lambda *_: None, _Index(), _Path(), Path("/tmp"), Path(), 3 + 4j, ..., NotImplemented, Exception("x"), sys,
    "latest", "keep", "raise", "4.4", "4.4.0", "3.9-IV0", "9" * 5000, "٣", "1_000", "0x10", "1e3", "null",
    '{"a": {"0": -5}}', '{"a": {"0": 1e400}}', "[" * 100_000, '{"a":' * 20_000, "1k", "-1k", "9" * 30 + "g", ",,",
    "1;2", numpy.array("offset"), numpy.timedelta64(5), memoryview(bytes(4)).cast("B", (2, 2)),
    Liar(77), Liar(-1),
)  # fmt: skip


_WRITES = ("ClusterImage.write_snapshot", "SegmentWriter", "salvage_log")
_WALKS = ("captures", "read_capture", "audit")  # folders, all that is in them
_OUTSIDE = ("/", "..", "/tmp", "/dev/zero", "/dev/null/x")  # of the folder
# what errors call a parameter that holds several, or whose name says what it is for
_CALLED = {
    "records": "record", "headers": "header", "payloads": "payload", "old": "release",
    "new": "release", "other": "release", "text": "release", "to": "release", "assume_release": "release",
    "start": "version", "end": "version", "wanted": "feature",
}  # fmt: skip


class Find(AssertionError):
    """A call that ended in another way than it may."""


class Call(NamedTuple):
    """A function and arguments with which it works."""

    function: Callable[..., Any]
    valid: dict[str, Any]


def defaults(function: Any, **valid: Any) -> dict[str, Any]:
    """What a function takes by name, with its own defaults and what is given."""
    found = {name: one.default for name, one in inspect.signature(function).parameters.items()
             if one.default is not one.empty}
    return found | valid


def calls(folder: Path) -> dict[str, Call]:
    """The calls of storage and Spark by name; what they read is in the folder."""
    place = folder / "logs" / "t-0"
    path = write_segment(place, 0, [batch(0), in_transaction(3, 7), marker(6, 7, False), batch(7)])
    write_segment(place, 10, [batch(10), batch(13)])
    snapshot = producer_snapshot(place, 10, {7: -1})
    aborted_index(path, [(7, 3, 6, 7)])
    epochs, metadata = place / "leader-epoch-checkpoint", place / "partition.metadata"
    epochs.write_text("0\n1\n0 0\n")
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    logs, cluster = folder / "logs", write_log(folder / "meta", list(Cluster(1).records(60)))
    image, segment = storage.ClusterImage.read(cluster), LogSegment(path)
    record = next(iter(segment.read()))
    number = itertools.count()
    found: dict[str, Call] = {}

    def add(name: str, function: Callable[..., Any], **valid: Any) -> None:
        found[name] = Call(function, valid)

    span = {"start_offset": None, "end_offset": None, "start_timestamp": None, "end_timestamp": None,
            "committed": False, "verify_crc": True, "max_batch_bytes": 1 << 20}
    columns = span | {"fields": ("offset",), "control": False, "views": False, "errors": "raise", "strict_tail": False}
    pieces = columns | {"rows": 1000, "start": 0, "end": None, "guessed": False, "transactions": None,
                        "progress": None, "states": None}
    logs_of: dict[str, Callable[[], Any]] = {
        "LogSegment": lambda: LogSegment(path), "LogDirectory": lambda: LogDirectory(logs),
        "Partition": lambda: Partition(discover(logs)),
    }  # fmt: skip
    for name, made in logs_of.items():
        add(f"{name}.read", lambda made=made, **given: made().read(**given), **span, control=False, errors="raise")
        add(f"{name}.batches", lambda made=made, **given: made().batches(**given), verify_crc=True, errors="raise",
            max_batch_bytes=1 << 20, strict_tail=False, **({"start": 0, "end": None} if name == "LogSegment" else {}))
        add(f"{name}.columns", lambda made=made, **given: made().columns(**given), **columns)
        add(f"{name}.column_batches", lambda made=made, **given: made().column_batches(**given), **pieces)
    add("LogSegment", lambda **given: list(LogSegment(**given).read()), **defaults(LogSegment, path=path))
    add("LogDirectory", lambda **given: list(LogDirectory(**given).read()), **defaults(LogDirectory, path=logs))
    add("Partition", lambda **given: list(Partition(**given).read()), files=discover(logs), options=None)
    add("Partition.ongoing_transactions", Partition(discover(logs)).ongoing_transactions, end=None)
    add("discover", discover, **defaults(discover, paths=logs))
    methods: dict[str, dict[str, Any]] = {
        "seek": {"offset": 5}, "seek_time": {"timestamp": 5}, "ends_before": {"timestamp": 5}, "boundary": {"guess": 5},
        "split": {"partition_bytes": 100}, "headers": {"start": 0, "end": 9}, "transactions": {"start": 0, "end": None},
        "scan": {"bounds": NO_BOUNDS, "start": 0, "end": None, "guessed": False}, "start_of": {"bounds": NO_BOUNDS},
    }  # fmt: skip
    for method, valid in methods.items():
        add(f"LogSegment.{method}", lambda method=method, **given: getattr(LogSegment(path), method)(**given), **valid)
    for reader, source in ((storage.read_leader_epochs, epochs), (storage.read_partition_metadata, metadata),
                           (storage.read_producer_snapshot, snapshot), (storage.read_side_file, metadata),
                           (storage.side_file_kind, metadata)):
        add(reader.__name__, reader, path=source, options=None)
    add("OffsetIndex", storage.OffsetIndex, data=bytes(16), base_offset=0)
    add("OffsetIndex.below", storage.OffsetIndex(b"\0\0\0\1\0\0\0\1", 0).below, offset=1)
    add("OffsetIndex.below_position", storage.OffsetIndex(b"\0\0\0\1\0\0\0\1", 0).below_position, position=1)
    add("TimeIndex", storage.TimeIndex, data=bytes(24), base_offset=0)
    add("TimeIndex.before", storage.TimeIndex(bytes(12), 0).before, timestamp=1)
    add("TransactionIndex", storage.TransactionIndex, data=bytes(34))
    add("internal_batches", storage.internal_batches, log=segment, table="records", rows=1000, kind="group",
        errors="keep", **span)
    add("read_internal_topic", storage.read_internal_topic, log=segment, kind="group", errors="keep", **span)
    add("decode_internal_record", storage.decode_internal_record, kind="group", record=record)
    add("internal_kind", storage.internal_kind, log=segment)
    internal = storage.decode_internal_record("group", record)
    add("committed_offset", storage.committed_offset, record=internal)
    add("transaction_row", storage.transaction_row, record=internal)
    add("ClusterImage.read", storage.ClusterImage.read, **defaults(storage.ClusterImage.read, path=cluster))
    add("ClusterImage", lambda **given: repr(storage.ClusterImage(**given)),
        **defaults(storage.ClusterImage, quorum=image.quorum, tables=image.tables))
    add("ClusterImage.diff", image.diff, other=image)
    add("ClusterImage.downgrade", image.downgrade, metadata_version="4.0-IV3", unsafe=True)
    add("ClusterImage.write_snapshot", image.write_snapshot, path=folder / "out" / "a.checkpoint", force=True)
    add("whatif", storage.whatif, **defaults(storage.whatif, segments=[segment], wanted=[]))
    add("salvage_log", storage.salvage_log, **defaults(storage.salvage_log, source=logs))
    add("resync", storage.resync, file=segment.file, position=0, end=None)
    add("SegmentWriter", lambda folder, **given: written(folder, given),
        **defaults(storage.SegmentWriter, folder=folder / "out" / "w", topic="t", partition=0, sync=False))
    segments = list(LogDirectory(logs).segments)
    tables: dict[str, Any] = {"rows": 100, "compression": None, "bad": None,
              "progress": None}
    add("write_table", lambda **given: write_table(segments, str(folder / "out" / "x.csv"), **given), **tables,
        form="csv", force=True, partition_by=())
    add("write_dataset", lambda **given: write_dataset(segments, str(folder / "out" / f"d{next(number)}"), **given),
        **tables, form="csv", partition_by=("topic",))
    payload = kwire.encode(kwire.messages.ApiVersionsRequest(), 3)
    add("decode_records", lambda **given: list(spark.decode_records(**given)([batch(0)])),
        **defaults(spark.decode_records))
    add("decode_messages", lambda **given: list(spark.decode_messages(**given)([payload])),
        **defaults(spark.decode_messages, message="ApiVersionsRequest", version=3))
    add("decode_frames", lambda **given: list(spark.decode_frames(**given)([])), **defaults(spark.decode_frames))
    add("register", spark.register, spark=None)
    add("options of Spark", lambda **given: options.parse(
        {name: value for name, value in given.items() if isinstance(value, str)}),
        **{name: str(logs) if name == "path" else None for name in options.NAMES if name != "paths"})
    add("stream of Spark", lambda end: streamed(str(logs), end), end=streamed(str(logs), None))
    return found


def written(folder: Any, given: dict[str, Any]) -> None:
    """Two batches by a SegmentWriter."""
    with storage.SegmentWriter(folder, **given) as writer:
        for base in (0, 3):
            writer.append(batch(writer.next_offset or base) if hasattr(writer, "next_offset") else batch(base))


def streamed(path: str, end: Any) -> Any:
    """Where a stream over a path is; with an end the records up to there are read."""
    source = spark.KwireDataSource({"path": path})
    reader: Any = source.streamReader(source.schema())
    if end is None:
        return reader.latestOffset()
    return [list(reader.read(part)) for part in reader.partitions(reader.initialOffset(), end)]


def judged(call: Call, name: str, parameter: str, value: object) -> str:
    """How a call with one wrong value ended. Raises Find."""
    where = f"{name}({parameter}={ascii(value)[:60]})"

    def ended(*_: Any) -> None:
        raise Find(f"{where}: takes more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(SECONDS)
    try:
        consumed(call.function(**call.valid | {parameter: value}), where)
        return "value"
    except Find:
        raise
    except (KwireError, OSError, ValueError) as error:
        text = str(error)
    except (TypeError, OverflowError, KeyError) as error:
        text = str(error)
        is_named = parameter in text or _CALLED.get(parameter, parameter) in text or "path must be" in text
        if not is_named and not isinstance(value, _Path | numpy.ndarray):  # these two raise errors of their own
            raise Find(f"{where}: the error does not name the parameter: {text[:200]}") from error
    except Exception as error:
        raise Find(f"{where}: {type(error).__name__}: {error}") from error
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    for sign in text:
        if not sign.isprintable() and sign != "\n":
            raise Find(f"{where}: {sign!r} is raw in the error: {text[:200]!r}")
    return "error"


def consumed(made: Any, where: str) -> None:
    """Read what is an iterator to its end."""
    if hasattr(made, "__next__"):
        for count, _ in enumerate(made):
            if count > _MOST_ITEMS:
                raise Find(f"{where}: an iterator without an end")


def cases(folder: Path, room: str) -> Iterator[tuple[str, Call, str]]:
    """(name, call, parameter) of "storage" (and Spark) or "core" (kwire, schema, net and capture)."""
    (folder / "out").mkdir()
    with nullcontext(calls(folder)) if room == "storage" else core_calls.calls(folder) as found:
        for name, (function, valid) in found.items():
            for parameter in valid:
                yield name, Call(function, valid), parameter


def tried(folder: Path, room: str, share: int, seed: int) -> tuple[int, int]:
    """(calls, those that raised) with 1 of `share` values each. Raises Find."""
    dice, count, errors, finds = random.Random(seed), 0, 0, []
    os.chdir(folder)  # where the functions write that take a name
    for name, call, parameter in cases(folder, room):
        for value in dice.sample(VALUES, len(VALUES) // share):
            if name in _WRITES + _WALKS and isinstance(value, str | Path) and str(value) in _OUTSIDE:
                continue
            count += 1
            try:
                errors += judged(call, name, parameter, value) == "error"
            except Find as find:
                finds.append(str(find))
    if finds:
        kinds = {find.partition("=")[0]: find for find in finds}
        raise Find(f"{len(finds)} of {count} calls: " + "\n".join(kinds.values()))
    return count, errors


def main() -> int:
    """All values for all parameters."""
    for room in ROOMS:
        with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
            count, errors = tried(Path(folder), room, 1, 0)
        print(f"{room}: {count} calls, {errors} errors, each of a kind that it may be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
