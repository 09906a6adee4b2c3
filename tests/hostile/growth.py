"""Time and memory of each reader, writer and command on its worst input: python -m tests.hostile.growth --seconds N.

Each case is made at n and at 2n: twice the input may cost at most 2.5 times the processor's time, and no more memory
than the case says. Where it costs more, 2n and 4n decide: what grows faster than its input does so at each doubling, a
busy machine does not. Prints what broke, exit 1.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import gzip
import io
import json
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import kwire
from kwire.capture import audit, read_capture
from kwire.compression import compress, decompress
from kwire.storage import ClusterImage, LogDirectory, LogSegment, salvage_log, whatif
from kwire.storage.formatting import ServerConfig
from kwire.storage.formatting.errors import ConfigError
from tests.capture import making as talks
from tests.hostile import apart, fleet_growth
from tests.hostile.apart import expect
from tests.storage import making
from tests.storage.metadata.records import write_log

MIB = 1 << 20
TIMES = 2.5  # as long, for twice the input
TRIES = 12  # of the measure, where others use the processor too
PAUSE = 0.2  # seconds before each try but the first: what disturbs a measure lasts that long
LEAST = 0.04  # seconds: less than that says little


class Case(NamedTuple):
    """make(folder, n): what reads or writes the input of size n, which is made before; most: MiB that memory may grow.

    soak: n in the long run is so many times as large.
    """

    make: Callable[[Path, int], Callable[[], Any]]
    n: int
    most: int = 64
    soak: int = 4


def segment(folder: Path, batches: list[bytes], name: int = 0) -> str:
    """A segment of these batches, without indexes."""
    return str(making.write_segment(folder / "t-0", name, batches, indexes=False))


def plain_batch(base: int = 0, **options: Any) -> bytes:
    return kwire.build_batch([(making.START, None, b"v")], base_offset=base, **options)


def written(folder: Path, data: bytes) -> str:
    """A segment of these bytes, whatever they are."""
    (folder / "t-0").mkdir()
    path = folder / "t-0" / f"{0:020}.log"
    path.write_bytes(data)
    return str(path)


def one_by_one(base: int, producer: int, epoch: int = 0, **options: Any) -> bytes:
    return plain_batch(base, producer_id=producer, producer_epoch=epoch, base_sequence=0, **options)


def committed(path: str) -> Callable[[], Any]:
    def work() -> None:
        for _ in LogSegment(path).read(committed=True):
            pass
        len(LogSegment(path).columns(("offset",), committed=True))
        for _ in LogSegment(path).column_batches(("offset",), committed=True):
            pass

    return work


def open_transactions(folder: Path, n: int) -> Callable[[], Any]:
    """Producers that never end what they begin."""
    return committed(written(folder, b"".join(one_by_one(at, at, transactional=True) for at in range(n))))


def aborted(folder: Path, n: int, indexed: bool = False) -> Callable[[], Any]:
    """Transactions begun one after the other, all aborted at the end."""
    data = [one_by_one(at, at, transactional=True) for at in range(n)]
    data += [making.marker(n + at, at, False) for at in range(n)]
    path = Path(written(folder, b"".join(data)))
    if indexed:
        making.aborted_index(path, [(at, at, n + at, n + at + 1) for at in range(n)])
    return committed(str(path))


def row_by_row(folder: Path, n: int) -> Callable[[], Any]:
    """Transactions begun one after the other, all committed at the end in that order; in pieces of one row."""
    data = [one_by_one(at, at, transactional=True) for at in range(n)]
    path = written(folder, b"".join([*data, *(making.marker(n + at, at, True) for at in range(n))]))

    def work() -> None:
        rows = sum(map(len, LogSegment(path).column_batches(("offset",), committed=True, rows=1)))
        expect(rows == n, "rows")

    return work


def one_producer_aborts(folder: Path, n: int) -> Callable[[], Any]:
    """One producer whose every transaction is aborted."""
    data = b"".join(one_by_one(2 * at, 7, transactional=True) + making.marker(2 * at + 1, 7, False) for at in range(n))
    path = Path(written(folder, data))
    making.aborted_index(path, [(7, 2 * at, 2 * at + 1, 2 * at + 2) for at in range(n)])
    work = committed(str(path))
    return lambda: (work(), kwire.columns(data, committed=True))


def epochs(folder: Path, n: int) -> Callable[[], Any]:
    """stats of one producer with as many epochs."""
    path = written(folder, b"".join(one_by_one(at, 7, at % 32768) for at in range(n)))
    return lambda: LogSegment(path).stats().to_json()


def producers(folder: Path, n: int) -> Callable[[], Any]:
    """stats of as many producers."""
    path = written(folder, b"".join(one_by_one(at, at) for at in range(n)))
    return lambda: LogSegment(path).stats().to_json()


def findings(folder: Path, n: int) -> Callable[[], Any]:
    """verify of batches that all stand where they must not, with indexes that point to none of them."""
    path = Path(written(folder, b"".join(one_by_one(n - at, 7, transactional=True) for at in range(n))))
    path.with_suffix(".index").write_bytes(b"".join(struct.pack(">ii", at, at * 50 + 1) for at in range(1, n)))
    path.with_suffix(".timeindex").write_bytes(b"".join(struct.pack(">qi", at, at) for at in range(1, n)))
    making.aborted_index(path, [(9, at, at, at) for at in range(n)])
    return lambda: LogSegment(str(path)).verify()


def damaged_batches(folder: Path, n: int) -> Callable[[], Any]:
    """Batches of which every other has a wrong checksum."""
    good = plain_batch()
    bad = bytearray(good)
    bad[-1] ^= 1
    data = (good + bytes(bad)) * n
    path = written(folder, data)
    return lambda: (len(list(kwire.read_batches(data, errors="keep"))), kwire.columns(data, errors="keep"),
                    LogSegment(path).stats(), len(list(LogSegment(path).batches(errors="keep"))))


def false_headers(folder: Path, n: int) -> Callable[[], Any]:
    """Bytes that look like headers everywhere, and are none."""
    piece = bytearray(plain_batch()[:61])
    struct.pack_into(">i", piece, 8, 49)  # as long as the header: another follows
    path = written(folder, b"\xff" * 20 + bytes(piece) * n)
    return lambda: LogSegment(path).stats()


def long_false_headers(folder: Path, n: int) -> Callable[[], Any]:
    """The same, but each says to go to the end."""
    top, pieces = plain_batch()[:61], []
    for at in range(n):
        piece = bytearray(top)
        struct.pack_into(">i", piece, 8, (n - at) * 61 - 12)
        pieces.append(bytes(piece))
    path = written(folder, b"\xff" * 20 + b"".join(pieces))
    return lambda: LogSegment(path).stats()


def islands(folder: Path, n: int) -> Callable[[], Any]:
    """Pairs of valid batches with bytes between them that are not a batch."""
    path = written(folder, b"".join(plain_batch(at) * 2 + b"\xff" * 20 for at in range(n)))
    return lambda: (LogSegment(path).stats(), [None for _ in LogSegment(path).column_batches(errors="keep")])


def islands_before_false_headers(folder: Path, n: int) -> Callable[[], Any]:
    """The same, and between them headers that say to go to where the last batch begins."""
    pairs = [plain_batch(at) * 2 for at in range(n)]
    between = 20 + 61
    left = sum(map(len, pairs)) + n * between
    parts = []
    for pair in pairs:
        left -= len(pair) + between
        false = bytearray(plain_batch()[:61])
        struct.pack_into(">i", false, 8, left + 61 - 12)
        parts.append(pair + b"\xff" * 20 + bytes(false))
    path = written(folder, b"".join(parts) + plain_batch(n))
    return lambda: LogSegment(path).stats()


def bad_batches_over_all(filler: bytes) -> Callable[[Path, int], Callable[[], Any]]:
    """Bad batches that all end at the same byte, by their lengths, and a valid one after each."""

    def prepare(folder: Path, n: int) -> Callable[[], Any]:
        good, parts = plain_batch(), []
        left = n * (2 * 61 + 2 * len(good))
        for at in range(n):
            bad = bytearray(plain_batch(10 * at + 2)[:61])
            struct.pack_into(">i", bad, 8, left - 12)
            parts.append(bytes(bad) + plain_batch(10 * at + 10))
            left -= len(parts[-1])
        path = written(folder, b"".join(parts) + filler * left + b"\1" * 100)
        return lambda: (LogSegment(path).stats(), LogSegment(path).columns(("offset",), errors="keep"))

    return prepare


def salvaged(batches: Callable[[int, int], bytes]) -> Callable[[Path, int], Callable[[], Any]]:
    """salvage of what batches(number, n) gives for each number below n."""

    def prepare(folder: Path, n: int) -> Callable[[], Any]:
        path = written(folder, b"".join(batches(at, n) for at in range(n)))

        def work() -> None:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                salvage_log(path, Path(place, "out"))

        return work

    return prepare


def aborting(at: int, n: int) -> bytes:
    """Producers that all begin, then all abort, in the same order."""
    if at < n // 2:
        return one_by_one(at, at, transactional=True)
    return making.marker(at, at - n // 2, False)


def recompressed(folder: Path, n: int) -> Callable[[], Any]:
    """whatif of as many batches, as they are and put into new ones."""
    segment = LogSegment(written(folder, b"".join(plain_batch(at) for at in range(n))))
    return lambda: (whatif([segment]), whatif([segment], batch_bytes=1 << 20))


def dumped_times(order: Callable[[int], list[int]]) -> Callable[[Path, int], Callable[[], Any]]:
    """The dump of a .timeindex with these offsets, without an .index that would lead to them."""

    def prepare(folder: Path, n: int) -> Callable[[], Any]:
        path = Path(written(folder, b"".join(plain_batch(at) for at in range(n))))
        path.with_suffix(".index").touch()
        times = path.with_suffix(".timeindex")
        times.write_bytes(b"".join(struct.pack(">qi", at + 1, offset) for at, offset in enumerate(order(n))))
        from kwire.cli import main

        def work() -> None:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                main(["log", "dump", str(times)])

        return work

    return prepare


def many_files(folder: Path, n: int) -> Callable[[], Any]:
    """A partition of as many empty segments."""
    (folder / "t-0").mkdir()
    for at in range(n):
        (folder / "t-0" / f"{at:020}.log").touch()

    def work() -> None:
        for partition in LogDirectory(str(folder)):
            expect(len(list(partition)) == n, "segments")
            expect(list(partition.read(committed=True)) == [], "records")

    return work


def packets(make: Callable[[talks.Talk, int], Any], link: str = "ethernet") -> Callable[[Path, int], Callable[[], Any]]:
    """A capture of one connection."""

    def prepare(folder: Path, n: int) -> Callable[[], Any]:
        talk = talks.Talk().open()
        make(talk, n)
        path = talks.write_pcap(folder / "a.pcap", talk.bytes(link), link)
        return lambda: [None for _ in read_capture(str(path))]

    return prepare


def one_byte_segments(talk: talks.Talk, n: int) -> None:
    talk.say(True, kwire.pack_frame(bytes(n)), 1)


def backwards(talk: talks.Talk, n: int) -> None:
    """Segments in the wrong order."""
    begun = len(talk.packets)
    talk.say(True, kwire.pack_frame(bytes(n)), 1)
    talk.packets[begun:] = reversed(talk.packets[begun:])


def repeated(talk: talks.Talk, n: int) -> None:
    """A gap, and after it the same segment again and again."""
    talk.seq[True] += 10
    talk.say(True, b"x" * 20)
    talk.packets += talk.packets[-2:] * n


def connections(folder: Path, n: int) -> Callable[[], Any]:
    """As many connections, a request each, which nobody ends."""
    found = []
    request = kwire.pack_frame(talks.hello())
    for at in range(n):
        talk = talks.Talk(client=(f"10.{at >> 16 & 255}.{at >> 8 & 255}.{at & 255}", 50_000))
        found += talk.open().say(True, request).bytes()
    path = talks.write_pcap(folder / "a.pcap", found)
    return lambda: audit(str(path), "4.0").to_json()


def tags(folder: Path, n: int) -> Callable[[], Any]:
    """A packet of VLAN tags."""
    packet = struct.pack(">HHH8sH", 0, 1, 6, bytes(8), 0x8100) + b"\0\7\x81\0" * n
    path = talks.write_pcap(folder / "a.pcap", [packet], "cooked")
    return lambda: [None for _ in read_capture(str(path))]


def extension_headers(folder: Path, n: int) -> Callable[[], Any]:
    """A packet of IPv6 extension headers."""
    packet = struct.pack(">IHBB", 6 << 28, 0, 60, 9) + bytes(32) + (b"\x3c\0" + bytes(6)) * n
    path = talks.write_pcap(folder / "a.pcap", [packet], "raw")
    return lambda: [None for _ in read_capture(str(path))]


def interfaces(folder: Path, n: int) -> Callable[[], Any]:
    """A pcapng file of interfaces."""
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    with gzip.open(folder / "a.pcapng.gz", "wb") as file:
        file.write(section + struct.pack("<IIHHII", 1, 20, 1, 0, 0, 20) * n)
    return lambda: [None for _ in read_capture(str(folder / "a.pcapng.gz"))]


def frame_lines(folder: Path, frames: list[tuple[int, bytes]]) -> str:
    """Frame files of requests: (connection, frame)."""
    at = 0
    with gzip.open(folder / "f.jsonl.gz", "wt", 1) as lines, gzip.open(folder / "f.bin.gz", "wb", 1) as data:
        for connection, frame in frames:
            packed = kwire.pack_frame(frame)
            row = {"conn": connection, "dir": "c2s", "off": at, "len": len(packed)}
            lines.write(json.dumps(row) + "\n")
            data.write(packed)
            at += len(packed)
    return str(folder / "f.jsonl.gz")


def waiting_requests(folder: Path, n: int) -> Callable[[], Any]:
    """Frame files of large requests that nobody answers."""
    request = talks.produce(1, 1, bytes(200_000))
    path = frame_lines(folder, [(1, request)] * n)
    return lambda: [None for _ in read_capture(path)]


def clients(folder: Path, n: int) -> Callable[[], Any]:
    """The audit of as many client ids, all of them long, whose requests wait for no response."""
    request = kwire.messages.ProduceRequest(acks=0)
    path = frame_lines(folder, [(1, kwire.encode_request(request, 7, client_id=f"{at} " + "x" * 20_000))
                                for at in range(n)])
    return lambda: audit(path, "4.0").to_json()


def byte_by_byte(folder: Path, n: int) -> Callable[[], Any]:
    data = kwire.pack_frame(bytes(n))

    def work() -> None:
        reader, found = kwire.FrameReader(), 0
        for at in range(len(data)):
            found += len(reader.feed(data[at : at + 1]))
        expect(found == 1, found)

    return work


def small_frames(folder: Path, n: int) -> Callable[[], Any]:
    """Many frames at once."""
    data = kwire.pack_frame(b"ab") * n
    return lambda: kwire.FrameReader().feed(data)


def empty_strings(folder: Path, n: int) -> Callable[[], Any]:
    """Outer values beside as many rows: refused where they are many times the payloads, or made of that size."""
    kind = kwire.messages.MetadataResponse
    parts = [kind.MetadataResponsePartition()] * n
    data = kwire.encode(kind(topics=[kind.MetadataResponseTopic(name="", topic_authorized_operations=1,
                                                                partitions=parts)]), 12)
    outer = ["topics.name", "topics.topic_id", "topics.is_internal", "topics.topic_authorized_operations",
             "cluster_id", "controller_id", "throttle_time_ms", "topics.partitions.partition_index"]

    def work() -> None:
        kwire.columns_of("MetadataResponse", 12, [data])
        apart.refused(lambda: kwire.columns_of("MetadataResponse", 12, [data], outer))

    return work


def lists_beside(folder: Path, n: int) -> Callable[[], Any]:
    """An outer list of empty strings, repeated beside as many rows."""
    kind = kwire.messages.MetadataResponse
    brokers = [kind.MetadataResponseBroker(host="")] * n
    topics = [kind.MetadataResponseTopic(name="")] * (4 * n)
    data = kwire.encode(kind(brokers=brokers, topics=topics), 12)
    return lambda: apart.refused(
        lambda: kwire.columns_of("MetadataResponse", 12, [data], ["brokers", "topics.error_code"]))


def arrays_beside(folder: Path, n: int) -> Callable[[], Any]:
    """An outer array of numbers, repeated beside as many rows."""
    kind = kwire.messages.LeaderAndIsrRequest
    state = kind.LeaderAndIsrPartitionState
    topic = kind.LeaderAndIsrTopicState(partition_states=[state(replicas=(1,) * n)] + [state(replicas=(1,))] * n)
    data = kwire.encode(kind(topic_states=[topic]), 5)
    paths = ["topic_states.partition_states.isr", "topic_states.partition_states.replicas"]
    return lambda: apart.refused(lambda: kwire.columns_of("LeaderAndIsrRequest", 5, [data], paths))


def bad_payloads(folder: Path, n: int) -> Callable[[], Any]:
    """columns_of of payloads that are bad, call by call: nothing stays."""

    def work() -> None:
        for at in range(n):
            kwire.columns_of("MetadataResponse", 12, [b"\1"], errors="keep")
            if at % 100 == 0:
                gc.collect()

    return work


def bad_among_good(folder: Path, n: int) -> Callable[[], Any]:
    """As many bad payloads after good ones, each with the first null of several columns."""
    kind = kwire.messages.StreamsGroupHeartbeatRequest
    good = kwire.encode(kind(instance_id="", rack_id="", topology=kind.Topology(), active_tasks=[], standby_tasks=[],
                             warmup_tasks=[], process_id="", user_endpoint=kind.Endpoint(), client_tags=[],
                             task_offsets=[], task_end_offsets=[]), 0)
    payloads = [good] * n + [kwire.encode(kind(), 0) + b"\1"] * n
    return lambda: kwire.columns_of("StreamsGroupHeartbeatRequest", 0, payloads, errors="keep")


def tagged(folder: Path, n: int) -> Callable[[], Any]:
    """Unknown tags, many in one struct."""
    message = kwire.messages.ApiVersionsRequest(unknown_tags={at: b"x" for at in range(30, 30 + n)})
    data = kwire.encode(message, 3)

    def work() -> None:
        found = kwire.decode("ApiVersionsRequest", 3, data)
        expect(len(found.unknown_tags) == n, "tags")
        kwire.encode(found, 3)
        kwire.from_json("ApiVersionsRequest", 3, kwire.to_json(found, 3))
        kwire.decode("ApiVersionsRequest", 3, data, lenient=True)

    return work


def nested(folder: Path, n: int) -> Callable[[], Any]:
    """A large nested message, every way."""
    kind = kwire.messages.MetadataResponse
    topic = kind.MetadataResponseTopic(name="t", partitions=[kind.MetadataResponsePartition(
        replica_nodes=[1, 2, 3], unknown_tags={99: b"x"})] * 10, unknown_tags={99: b""})
    data = kwire.encode(kind(topics=[topic] * n), 12)

    def work() -> None:
        message = kwire.decode("MetadataResponse", 12, data)
        expect(kwire.encode(message, 12) == data, "the same bytes")
        expect(kwire.from_json("MetadataResponse", 12, kwire.to_json(message, 12)) == message, "the same message")

    return work


def build(folder: Path, n: int, codec: str = "none", magic: int = 2) -> Callable[[], Any]:
    """Writing batches of as many records, by objects and from columns."""
    rows = [(making.START + at, b"k", b"v" * 20, [("h", b"x")]) for at in range(n)]
    given = rows if magic == 2 else [row[:3] for row in rows]
    held = kwire.columns(kwire.build_batch(rows), ("timestamp", "key", "value", "headers"))

    def work() -> None:
        kwire.build_batch(given, codec=codec, magic=magic)
        kwire.build_batches(held, codec=codec)
        kwire.build_batches(held, codec=codec, batch_records=1)

    return work


def headers(folder: Path, n: int) -> Callable[[], Any]:
    """One record of as many headers."""
    row = (making.START, None, None, [("", None)] * n)

    def work() -> None:
        data = kwire.build_batch([row])
        (batch,) = kwire.read_batches(data)
        expect(len(next(iter(batch)).headers) == n, "headers")
        kwire.columns(data, ("headers",))
        kwire.build_batches(kwire.columns(data, ("value", "headers")))

    return work


def small_batches(folder: Path, n: int) -> Callable[[], Any]:
    """As many batches, read as objects and as columns."""
    data = b"".join(plain_batch(at, codec=("none", "zstd", "lz4")[at % 3]) for at in range(n))
    path = written(folder, data)
    fields = ("headers", "value", "key")
    return lambda: (sum(len(one) for one in kwire.read_batches(data)), kwire.columns(data, fields),
                    kwire.columns([data[:-1]] * 2, views=True), LogSegment(path).split(1000),
                    LogSegment(path).seek(n - 1))


def empty_parts(codec: str, times: int) -> Callable[[Path, int], Callable[[], Any]]:
    """Frames or members of a codec that hold nothing, and one that does."""

    def prepare(folder: Path, n: int) -> Callable[[], Any]:
        empty, last = compress(codec, b""), compress(codec, b"x" * 100)
        data = empty * (n * times) + last
        return lambda: apart.refused(lambda: decompress(codec, data, limit=1 << 20))

    return prepare


def command(name: str, version: int, line: str, verb: str) -> Callable[[Path, int], Callable[[], Any]]:
    """kwire encode and decode of as many values, a line each."""

    def prepare(folder: Path, n: int) -> Callable[[], Any]:
        from kwire.cli import main

        (folder / "lines").write_text(line * n)
        arguments = [verb, name, str(version), str(folder / "lines")]

        def work() -> None:
            with contextlib.redirect_stdout(io.StringIO()) as output:
                expect(main(arguments) == 0, "no error")
            expect(output.getvalue().count("\n") == n, "lines")

        return work

    return prepare


def metadata_image(folder: Path, n: int) -> Callable[[], Any]:
    """A log that creates n partitions with last known replicas, clears those of all n times, and changes each."""
    topic, m = UUID(int=9), kwire.messages
    partitions = [m.PartitionRecord(partition_id=at, topic_id=topic, replicas=(1,), isr=(1,), last_known_elr=(1,))
                  for at in range(n)]
    changes = [m.PartitionChangeRecord(partition_id=at, topic_id=topic, leader=1) for at in range(n)]
    write_log(folder, [m.TopicRecord(name="t", topic_id=topic)], partitions, [m.ClearElrRecord()] * n, changes)

    def work() -> None:
        image = ClusterImage.read(folder)
        image.downgrade(1, unsafe=True)
        image.to_json()
        image.write_snapshot(folder / "snapshot", force=True)
        expect(not image.diff(ClusterImage.read(folder / "snapshot")), "the snapshot is not the image")

    return work


def server_properties(folder: Path, n: int) -> Callable[[], Any]:
    """n listeners of controllers that are not among the listeners."""
    names = ",".join(f"C{at}" for at in range(n))
    (folder / "server.properties").write_text(
        f"process.roles=controller\nnode.id=1\nlog.dirs=/d\nlisteners=C0://:9093\n"
        f"controller.listener.names={names}\ncontroller.quorum.voters=1@host:9093\n")

    def work() -> None:
        try:
            ServerConfig.read(folder / "server.properties")
        except ConfigError as error:
            expect("controller.listener.names" in str(error), "another error")

    return work


CASES: dict[str, Case] = {
    **{name: Case(make, n) for name, (make, n) in fleet_growth.CASES.items()},
    "server.properties": Case(server_properties, 10_000),
    "metadata image": Case(metadata_image, 2000),
    "open transactions": Case(open_transactions, 3000),
    "aborted transactions": Case(aborted, 3000),
    "aborted transactions, indexed": Case(lambda folder, n: aborted(folder, n, True), 3000),
    "committed row by row": Case(row_by_row, 20_000, 96, 2),
    "one producer aborts": Case(one_producer_aborts, 1500),
    "epochs of a producer": Case(epochs, 4000),
    "producers": Case(producers, 4000, 128),
    "findings": Case(findings, 4000),
    "damaged batches": Case(damaged_batches, 3000, 96),
    "false headers": Case(false_headers, 20_000),
    "long false headers": Case(long_false_headers, 4000, 64, 2),
    "islands": Case(islands, 600),
    "bad batches over all": Case(bad_batches_over_all(b"\xff"), 15_000, 64, 2),
    "bad batches up to zeros": Case(bad_batches_over_all(b"\0"), 15_000, 64, 2),
    "islands before false headers": Case(islands_before_false_headers, 400),
    "salvage, descending offsets": Case(salvaged(lambda at, n: plain_batch(n - at)), 4000),
    "salvage, alternating offsets": Case(salvaged(lambda at, n: plain_batch(at if at % 2 else n - at)), 4000),
    "salvage, damaged batches": Case(salvaged(lambda at, n: plain_batch(at)[:-1] + b"!v"[at % 2 :][:1]), 2000),
    "salvage, leader epochs": Case(salvaged(
        lambda at, n: plain_batch(at, partition_leader_epoch=at if at % 3 else n)), 4000),
    "salvage, aborts": Case(salvaged(aborting), 4000, 96),
    "recompression": Case(recompressed, 400, 96, 4),
    "dump of times, descending": Case(dumped_times(lambda n: [*range(n, 0, -1)]), 1500),
    "dump of times past the end": Case(dumped_times(lambda n: [n + 5] * n), 1500),
    "dump of times, alternating": Case(dumped_times(lambda n: [n - 1 if at % 2 else 1 for at in range(n)]), 1500),
    "many files": Case(many_files, 800, 48, 8),
    "one-byte segments": Case(packets(one_byte_segments), 1500),
    "segments backwards": Case(packets(backwards), 1500),
    "repeated segments": Case(packets(repeated), 1000),
    "connections": Case(connections, 300, 96),
    "VLAN tags": Case(tags, 60_000),
    "extension headers": Case(extension_headers, 12_000),
    "interfaces": Case(interfaces, 200_000, 12, 4),
    "waiting requests": Case(waiting_requests, 500, 110, 4),
    "clients": Case(clients, 1500, 24, 12),
    "byte by byte": Case(byte_by_byte, 50_000),
    "small frames": Case(small_frames, 50_000),
    "empty strings": Case(empty_strings, 100_000, 200),
    "lists beside rows": Case(lists_beside, 1500, 64, 2),
    "arrays beside rows": Case(arrays_beside, 2000, 64, 2),
    "bad payloads": Case(bad_payloads, 2400, 8, 4),
    "bad payloads among good ones": Case(bad_among_good, 40_000, 128),
    "unknown tags": Case(tagged, 10_000),
    "nested messages": Case(nested, 600),
    "building": Case(build, 20_000),
    "building, packed": Case(lambda folder, n: build(folder, n, "gzip"), 2000),
    "building, magic 1": Case(lambda folder, n: build(folder, n, "none", 1), 20_000),
    "headers": Case(headers, 100_000),
    "small batches": Case(small_batches, 3000),
    "empty zstd frames": Case(empty_parts("zstd", 10), 20_000),
    "empty gzip members": Case(empty_parts("gzip", 1), 5000),
    "encode, values": Case(command("ApiVersionsRequest", 0, "{}\n", "encode"), 10_000),
    "decode, values": Case(command("MetadataRequest", 0, "00000000\n", "decode"), 5_000),
}  # fmt: skip


def best(works: list[Callable[[], Any]], most: int) -> tuple[list[float], int]:
    """The least processor time of each, and by how many bytes memory grew at most."""
    times, grown = [1e9] * len(works), 0
    for tried in range(TRIES):
        time.sleep(PAUSE if tried else 0)
        for at, work in enumerate(works):
            before = apart.fresh_peak()
            gc.disable()  # it looks at all that there is, now and then
            began = time.process_time()
            work()
            times[at] = min(times[at], time.process_time() - began)
            gc.enable()
            grown = max(grown, apart.peak() - before)
        if is_level(times) or grown > most:
            break
    return times, grown


def is_level(times: list[float]) -> bool:
    return times[1] <= TIMES * max(times[0], LEAST)


def one(name: str, scale: bool) -> None:
    """Runs a case in this process."""
    case = CASES[name]
    n = case.n * (case.soak if scale else 1)
    most = (case.most << 20) * (case.soak if scale else 1)
    with tempfile.TemporaryDirectory(prefix="kwire-growth-") as folder:

        def made(size: int) -> Callable[[], Any]:
            place = Path(folder, str(size))
            place.mkdir()
            return case.make(place, size)

        works = [made(n), made(2 * n)]
        times, grown = best(works, most)
        how = f"{n}: {times[0]:.3f} s, {2 * n}: {times[1]:.3f} s, {grown / MIB:.0f} MiB"
        if grown <= most and not is_level(times):
            times, _ = best([works[1], made(4 * n)], sys.maxsize)
            how += f"; {2 * n}: {times[0]:.3f} s, {4 * n}: {times[1]:.3f} s"
    apart.note(how)
    expect(is_level(times), f"it grows faster than its input: {how}")
    expect(grown <= most, f"more memory than {most >> 20} MiB: {how}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1800, help="for all of it: none begins after them")
    parser.add_argument("--large", action="store_true", help="the sizes of the long run")
    parser.add_argument("--only", default="", help="those with that in their names")
    chosen = parser.parse_args(arguments)
    names = [name + " (large)" * chosen.large for name in CASES if chosen.only in name]
    return apart.report(apart.run("tests.hostile.growth", names, chosen.seconds))


def case(name: str) -> None:
    """Runs the case of that name, with the sizes of the long run where it says so."""
    one(name.removesuffix(" (large)"), name.endswith(" (large)"))


if __name__ == "__main__":
    sys.exit(apart.child(case) if sys.argv[1:2] == ["--child"] else main())
