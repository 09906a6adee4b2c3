"""Inputs and numbers past 2 and 4 GiB: python -m tests.hostile.sizes --seconds N.

Files are sparse and memory is mapped but mostly untouched, so that little of either is used. Each case runs under an
alarm: it ends with a value or with an error of kwire's (or one that the call documents), in bounded memory; it neither
hangs nor dies. Prints what broke, exit 1.
"""

from __future__ import annotations

import argparse
import mmap
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, cast

import kwire
from kwire.compression import compress, decompress
from kwire.storage import LogDirectory, LogSegment
from kwire_c import varint
from tests.hostile import apart
from tests.hostile.apart import expect

GIB = 1 << 30
NUMBERS = [sign * ((1 << bits) + off) for bits in (31, 32, 62, 63, 64) for off in (-1, 0, 1) for sign in (1, -1)]
LENGTHS = (0x7FFFFFF3, 0x7FFFFFF4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF4, 0xFFFFFFFF)  # the first is the largest one
SMALL = kwire.build_batch([(1, b"k", b"v")] * 3)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Case(NamedTuple):
    """work is given an empty folder; short: it takes less than a second; most: bytes by which memory may grow."""

    work: Callable[[Path], Any]
    short: bool = True
    most: int = 256 << 20


def area(size: int, *pieces: tuple[int, bytes]) -> mmap.mmap:
    """Zeros, of which none are there before they are written, with some bytes at some places."""
    made = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at, piece in pieces:
        made[at : at + len(piece)] = piece
    return made


def sparse(path: Path, size: int, *pieces: tuple[int, bytes]) -> str:
    """The same as a file."""
    with path.open("wb") as file:
        file.truncate(size)
        for at, piece in pieces:
            file.seek(at)
            file.write(piece)
    return str(path)


def head(length: int, magic: int = 2, base: int = 0) -> bytes:
    """The header of a batch that says to be so long."""
    made = bytearray(SMALL[:61])
    struct.pack_into(">qI", made, 0, base, length)
    made[16] = magic
    return bytes(made)


def tries(*works: Callable[[], Any], also: tuple[type[Exception], ...] = ()) -> None:
    """Each gives a value or an error of kwire's."""
    for work in works:
        try:
            work()
        except kwire.KwireError:
            pass
        except Exception as error:
            if not isinstance(error, also):
                raise


def ascending(places: Iterable[tuple[int, int]]) -> int:
    """Where they end: (position, size) of pieces, each after the previous one, none of them empty."""
    end = 0
    for position, size in places:
        expect(position >= end and size > 0, f"{size} bytes at {position}, before {end}")
        end = position + size
    return end


def lengths(size: int, errors: str, magics: tuple[int, ...]) -> Callable[[Path], None]:
    """Batches that say to be about 2 GiB long, in more bytes than that."""

    def work(_: Path) -> None:
        data = area(size)
        for magic in magics:
            for length in LENGTHS:
                data[:61] = head(length, magic)
                options: dict[str, Any] = {"errors": errors, "verify_crc": False}
                tries(
                    lambda o=options: ascending((one.position, getattr(one, "size", 0) or len(one.raw))  # type: ignore[misc]
                                             for one in kwire.read_batches(data, **o)),
                    lambda o=options: kwire.columns(data, **o),  # type: ignore[misc]
                    lambda o=options: kwire.columns(data, committed=True, **o),  # type: ignore[misc]
                )

    return work


def behind_2_and_4_gib(_: Path) -> None:
    """Batches of 800 MiB, and small ones after them: headers are read, records are not."""
    huge = (800 << 20) + 123
    data = area(6 * huge + 3 * len(SMALL), *((at * huge, head(huge - 12)) for at in range(6)),
                *((6 * huge + at * len(SMALL), SMALL) for at in range(3)))
    found = [one.position for one in kwire.read_batches(data, verify_crc=False)]
    expect(found == [at * huge for at in range(7)] + [6 * huge + at * len(SMALL) for at in (1, 2)], found)
    reader = kwire.read_batches(memoryview(data)[: 6 * huge + 70], verify_crc=False)
    expect(len(list(reader)) == 6, "batches in front of the tail")
    expect(reader.tail == (6 * huge, 70), reader.tail)


def positions(_: Path) -> None:
    """decode_from and varints after 2 and 4 GiB; positions outside memory."""
    message = kwire.messages.ApiVersionsRequest(client_software_name="me", client_software_version="1")
    payload = kwire.encode(message, 3)
    data = area((4 << 30) + 4096)
    for at in (2 * GIB - 2, 2 * GIB + 1, 4 * GIB - 2, 4 * GIB + 1):
        data[at : at + len(payload)] = payload
        expect(kwire.decode_from("ApiVersionsRequest", 3, data, at) == (message, at + len(payload)), at)
        data[at : at + 2] = b"\xac\x02"
        expect(varint.read_unsigned_varint(data, at) == (300, at + 2), at)
        data[at : at + len(payload)] = bytes(len(payload))
    for at in NUMBERS:
        tries(lambda at=at: kwire.decode_from("ApiVersionsRequest", 3, payload, at),  # type: ignore[misc]
              lambda at=at: varint.read_unsigned_varint(payload, at),  # type: ignore[misc]
              lambda at=at: list(kwire.read_batches(SMALL, position=at)))  # type: ignore[misc]


def large_messages(_: Path) -> None:
    """A message in front of zeros, or with a field of 2 GiB: refused, or views of it."""
    data = area((4 << 30) + 4096)
    payload = kwire.encode(kwire.messages.ApiVersionsRequest(client_software_name="me"), 3)
    data[: len(payload)] = payload
    tries(lambda: kwire.decode("ApiVersionsRequest", 3, data),
          lambda: kwire.columns_of("ApiVersionsRequest", 3, [data]),
          lambda: kwire.decode_metadata_record(data), lambda: kwire.decode_request(data))
    kwire.decode("ApiVersionsRequest", 3, data, lenient=True)
    # SaslAuthenticateRequest v0: auth_bytes with a length of 32 bits
    for length in (1 << 31) - 1, 1 << 31, (1 << 32) - 1:
        data[:4] = struct.pack(">I", length)
        tries(lambda n=length: expect(  # type: ignore[misc]
            len(kwire.decode_from("SaslAuthenticateRequest", 0, data, views=True)[0].auth_bytes) == n, n))
    # v2: a compact length, 2^32 - 1 is one more than it can hold
    for length in (1 << 31) - 1, 1 << 31, (1 << 32) - 2:
        data[:5] = varint.write_unsigned_varint(length + 1)
        tries(lambda: kwire.decode_from("SaslAuthenticateRequest", 2, data, views=True))


def too_large_to_write(_: Path) -> None:
    """Fields, frames and batches of more bytes than their lengths can say."""
    kind = kwire.messages.SaslAuthenticateRequest
    data = area((4 << 30) + 16)
    for size in (1 << 31, (1 << 31) + 1, 1 << 32, (1 << 32) + 1):
        for version in (0, 2):
            expect(apart.refused(lambda s=size, v=version: kwire.encode(  # type: ignore[misc]
                kind(auth_bytes=cast(bytes, memoryview(data)[:s])), v)), f"{size} bytes in v{version}")
        expect(apart.refused(lambda s=size: kwire.pack_frame(memoryview(data)[:s])), f"a frame of {size}")  # type: ignore[misc]
        for magic in (0, 1, 2):
            value = memoryview(data)[:size]
            expect(apart.refused(lambda m=magic, v=value: kwire.build_batch([(0, None, v)], magic=m)), (size, magic))  # type: ignore[misc]
    several = [(0, None, memoryview(data)[:GIB])] * 4
    expect(apart.refused(lambda: kwire.build_batch(several)), "four values of 1 GiB")


def unpacking(_: Path) -> None:
    """Packed bytes in front of zeros, and limits of every size."""
    plain = b"some bytes " * 100
    for codec in CODECS:
        packed = compress(codec, plain)
        for limit in NUMBERS:
            try:
                expect(bytes(decompress(codec, packed, limit=limit)) == plain, (codec, limit))
            except kwire.LimitError:
                expect(limit < len(plain), (codec, limit))
        batch = kwire.build_batch([(0, None, plain)], codec=codec)
        for limit in NUMBERS:
            tries(lambda b=batch, n=limit: [list(one) for one in kwire.read_batches(b, max_batch_bytes=n)],  # type: ignore[misc]
                  lambda b=batch, n=limit: kwire.columns(b, max_batch_bytes=n))  # type: ignore[misc]


def packed_area(codec: str, size: int) -> Callable[[Path], None]:
    """What is packed goes on with zeros."""

    def work(_: Path) -> None:
        packed = compress(codec, b"some bytes " * 100)
        data = area(size, (0, packed))
        for limit in (100, 1 << 20, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 64):
            tries(lambda n=limit: decompress(codec, data, limit=n))  # type: ignore[misc]

    return work


def frames(_: Path) -> None:
    """Frame readers of any limit, and sizes that they are given."""
    frame = kwire.pack_frame(kwire.encode_request(kwire.messages.MetadataRequest(), 12))
    for most in NUMBERS:
        def read(most: int = most) -> None:
            reader = kwire.FrameReader(max_size=most)
            for size in (0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
                tries(lambda: reader.feed(struct.pack(">I", size)), also=(ValueError,))  # noqa: B023
                reader = kwire.FrameReader(max_size=most)
            reader.feed(frame)

        tries(read)


def one_feed(_: Path) -> None:
    """4 GiB at once, which begin a frame of 2 GiB."""
    data = area(4 * GIB + 9, (0, b"\x7f\xff\xff\xff"))
    expect(apart.refused(lambda: kwire.FrameReader().feed(data)), "a frame of 2 GiB")


def checksums(size: int) -> Callable[[Path], None]:
    """The checksum of more bytes than 32 bits count is that of its parts."""

    def work(_: Path) -> None:
        data = area(size, (size - 3, b"abc"))
        view, value = memoryview(data), 0
        for at in range(0, size, GIB):
            value = kwire.crc32c(view[at : at + GIB], value)
        expect(kwire.crc32c(data) == value, hex(value))

    return work


def unknown_tag(_: Path) -> None:
    """Its size is an int32 to Kafka."""
    with area(2 * GIB) as room:
        message = kwire.messages.SaslAuthenticateRequest(unknown_tags={5: memoryview(room)})
        expect(apart.refused(lambda: kwire.encode(message, 2)), "written")
        message.unknown_tags.clear()


def known_tag(_: Path) -> None:
    """The same, of a field: past 4 GiB the size that was written was another one."""
    kind = kwire.messages.FetchResponse
    message = kind(node_endpoints=[kind.NodeEndpoint(host="x" * 32767)] * 66_000)
    expect(apart.refused(lambda: kwire.encode(message, 16)), "written")


def one_record(size: int) -> Callable[[Path], None]:
    """A valid batch of one record of this many bytes: read as an object, refused or read as columns."""

    def work(_: Path) -> None:
        room = area(size + 100)
        for extra in range(40):  # until the whole has the size
            value = size - 61 - 40 + extra
            body = b"\0\0\0\1" + varint.write_varint(value)
            record = varint.write_varint(len(body) + value + 1) + body
            if 61 + len(record) + value + 1 == size:
                break
        else:
            raise apart.Unexpected(f"no record makes a batch of {size} bytes")
        top = bytearray(head(size - 12))
        struct.pack_into(">i", top, 23, 0)
        struct.pack_into(">i", top, 57, 1)
        room[: 61 + len(record)] = bytes(top) + record
        view = memoryview(room)[:size]
        struct.pack_into(">I", room, 17, kwire.crc32c(view[21:]))
        (batch,) = kwire.read_batches(view)
        expect(batch.is_valid() and len(batch) == 1, "one valid batch")
        tries(lambda: expect(len(kwire.columns(view, fields=("value",), views=True)) == 1, "views"),
              lambda: expect(len(kwire.columns(view, fields=("offset",))) == 1, "offsets"))

    return work


def preallocated(size: int) -> Callable[[Path], None]:
    """A segment whose end is zeros, as brokers leave them: each way to read it tells so."""

    def work(folder: Path) -> None:
        segment = LogSegment(sparse(folder / f"{0:020}.log", size, (0, SMALL)))
        expect(len(list(segment.batches())) == 1, "one batch")
        expect(segment.tail == (len(SMALL), size - len(SMALL)), segment.tail)
        expect(segment.stats().tail == size - len(SMALL), "its tail")
        expect([one.kind for one in segment.verify()] == ["tail"], "one finding")
        expect(len(segment.columns()) == 3, "three rows")
        expect(segment.seek(1 << 40) == size, "no such offset")

    return work


def segment_lengths(size: int, chosen: tuple[int, ...] = LENGTHS) -> Callable[[Path], None]:
    """A segment whose first batch declares about 2 GiB, with a valid one at its end."""

    def work(folder: Path) -> None:
        for number, length in enumerate(chosen):
            path = folder / f"{number:020}.log"
            segment = LogSegment(sparse(path, size, (0, head(length)), (size - len(SMALL), SMALL)))
            found = [(one.position, len(one.raw) if isinstance(one, kwire.BadBatch) else one.size)
                     for one in segment.batches(errors="keep", verify_crc=False, max_batch_bytes=1 << 20)]
            ascending(found)
            expect(found[-1] == (size - len(SMALL), len(SMALL)), found)
            tries(lambda s=segment: [None for _ in s.column_batches(committed=True)])  # type: ignore[misc]
            os.unlink(segment.path)

    return work


def segment_statistics(size: int) -> Callable[[Path], None]:
    """stats, verify and cut of a segment of a batch that is too long, and zeros."""

    def work(folder: Path) -> None:
        path = sparse(folder / f"{0:020}.log", size, (0, head(0x7FFFFFF4)))
        expect(LogSegment(path).stats().bad == 1, "one bad region")
        expect(len(LogSegment(path).verify()) >= 1, "a finding")
        tries(lambda: LogSegment(path).split(1 << 20))
        tries(lambda: LogDirectory(str(folder)).verify() if hasattr(LogDirectory, "verify") else None)

    return work


def indexes(folder: Path) -> None:
    """Index files of 2, 4 and 10 GiB are not indexes: reported, and the segment is read without them."""
    path = folder / f"{0:020}.log"
    for size in (2 * GIB + 8, 4 * GIB + 8, 10 * GIB):
        path.write_bytes(SMALL)
        for kind in (".index", ".timeindex", ".txnindex"):
            sparse(path.with_suffix(kind), size)
        segment = LogSegment(str(path))
        expect({one.kind for one in segment.verify()} == {"index", "timeindex", "txnindex"}, "a finding of each")
        expect(len(list(segment.read(start_offset=1, start_timestamp=1, committed=True))) == 2, "two records")


def small_files(folder: Path) -> None:
    """Checkpoints and snapshots of 4 GiB."""
    from kwire.storage import read_leader_epochs, read_partition_metadata, read_producer_snapshot

    path = sparse(folder / "checkpoint", 4 * GIB + 9)
    for read in (read_leader_epochs, read_partition_metadata, read_producer_snapshot):
        expect(apart.refused(lambda r=read: r(path)), read.__name__)  # type: ignore[misc]


def captures(folder: Path) -> None:
    """Captures of 4 GiB, with packets that say to be as large."""
    from kwire.capture import read_capture

    size = 4 * GIB + 99
    pcap = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, 1)
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    for length in (0x7FFFFFFC, 0x80000000, 0xFFFFFFFC):
        for name, top in (("a.pcap", pcap + struct.pack("<IIII", 1, 1, length, length)),
                          ("a.pcapng", section + struct.pack("<II", 6, length))):
            path = sparse(folder / name, size, (0, top))
            tries(lambda p=path: list(read_capture(p)))  # type: ignore[misc]
    bytes_file = sparse(folder / "f.bin", size)
    for off, length in ((0, 0x7FFFFFFF), (0, 1 << 63), (1 << 31, 0), (-1, 4)):
        (folder / "f.jsonl").write_text(f'{{"conn": 1, "dir": "c2s", "off": {off}, "len": {length}}}\n')
        tries(lambda: list(read_capture(bytes_file)))
    sparse(folder / "f.jsonl", size)
    expect(apart.refused(lambda: list(read_capture(bytes_file))), "lines that are zeros")


def frame_files(folder: Path) -> None:
    """Frames after 2 and 4 GiB of a file, at its end and past it."""
    from kwire.capture import Exchange, read_capture

    frame = kwire.pack_frame(kwire.encode_request(kwire.messages.MetadataRequest(), 12))
    places = (2 * GIB - 1, 2 * GIB + 100, 4 * GIB - 1, 4 * GIB + 100)
    size = places[-1] + len(frame)
    path = sparse(folder / "f.bin", size, *((at, frame) for at in places))
    (folder / "f.jsonl").write_text("".join(
        f'{{"conn": 1, "dir": "c2s", "off": {at}, "len": {len(frame)}}}\n' for at in (*places, size, 1 << 64)))
    found = [one for one in read_capture(path) if isinstance(one, Exchange)]
    expect(len(found) == len(places), found)


def numbers(folder: Path) -> None:
    """Options of segments at every edge."""
    path = folder / f"{0:020}.log"
    path.write_bytes(SMALL * 5)
    segment = LogSegment(str(path))
    wrong = (ValueError, OverflowError)
    held = kwire.columns(SMALL)
    for number in NUMBERS:
        for name in ("start_offset", "end_offset", "start_timestamp", "end_timestamp"):
            some: dict[str, Any] = {name: number}
            tries(lambda o=some: list(segment.read(**o)), lambda o=some: segment.columns(**o), also=wrong)  # type: ignore[misc]
        for name in ("rows", "start", "end", "max_batch_bytes"):
            some = {name: number}
            tries(lambda o=some: list(segment.column_batches(**o)), also=wrong)  # type: ignore[misc]
        tries(lambda n=number: segment.split(n), lambda n=number: list(segment.batches(n)),  # type: ignore[misc]
              lambda n=number: list(segment.headers(0, n)), lambda n=number: segment.seek(n),  # type: ignore[misc]
              lambda n=number: segment.seek_time(n), also=wrong)  # type: ignore[misc]
        for name in ("batch_bytes", "batch_records", "base_offset", "producer_id", "producer_epoch", "base_sequence",
                     "partition_leader_epoch", "delete_horizon"):
            some = {name: number}
            tries(lambda o=some: kwire.build_batches(held, **o), also=wrong)  # type: ignore[misc]
            if not name.startswith("batch"):
                tries(lambda o=some: kwire.build_batch([(0, None, b"v")], **o), also=wrong)  # type: ignore[misc]
        tries(lambda n=number: kwire.build_batch([(n, None, b"v")]), lambda n=number: kwire.encode(  # type: ignore[misc]
            kwire.messages.MetadataRequest(), n), lambda n=number: kwire.decode("MetadataRequest", n, b""),  # type: ignore[misc]
            lambda n=number: kwire.crc32c(b"abc", n), also=(*wrong, TypeError))  # type: ignore[misc]


def gzip_of_zeros(folder: Path) -> None:
    """A .gz of 5 GiB of zeros after a batch: read to its end through a temporary file, or refused."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    block = bytes(64 << 20)
    with (folder / "a.log.gz").open("wb") as file:
        file.write(packer.compress(SMALL))
        for _ in range(5 * 16):
            file.write(packer.compress(block))
        file.write(packer.flush())
    segment = LogSegment(str(folder / "a.log.gz"))
    expect(len(list(segment.batches())) == 1, "one batch")
    expect(segment.tail == (len(SMALL), 5 * GIB), segment.tail)


CASES: dict[str, Case] = {
    "lengths, 2 GiB": Case(lengths(2 * GIB + 100, "raise", (0, 1, 2))),
    "lengths, 4 GiB": Case(lengths(4 * GIB + 100, "raise", (0, 1, 2))),
    "lengths, 2 GiB, keep": Case(lengths(2 * GIB + 100, "keep", (2,)), False, 9 * GIB),
    "lengths, 4 GiB, keep": Case(lengths(4 * GIB + 100, "keep", (2,)), False, 9 * GIB),
    "positions of batches": Case(behind_2_and_4_gib),
    "positions in messages": Case(positions),
    "large messages": Case(large_messages),
    "too large to write": Case(too_large_to_write, False, 7 * GIB),
    "limits of codecs": Case(unpacking),
    **{f"{codec} and zeros": Case(packed_area(codec, 2 * GIB + 100), False, 5 * GIB) for codec in CODECS},
    "frames": Case(frames),
    "a feed of 4 GiB": Case(one_feed, False, 5 * GIB),
    "checksums, 2 GiB": Case(checksums(2 * GIB + 5), False),
    "checksums, 4 GiB": Case(checksums(4 * GIB + 5), False),
    "one record, 1 GiB": Case(one_record(GIB), False, 4 * GIB),
    "one record, 2 GiB": Case(one_record((1 << 31) - 1), False, 9 * GIB),
    "an unknown tag, 2 GiB": Case(unknown_tag, False, 5 * GIB),
    "a known tag, 2 GiB": Case(known_tag, False, 5 * GIB),
    "zeros at the end, 2 GiB": Case(preallocated(2 * GIB + 100), False),
    "zeros at the end, 4 GiB": Case(preallocated(4 * GIB + 100), False),
    "zeros at the end, 10 GiB": Case(preallocated(10 * GIB), False),
    "lengths in a segment, 2 GiB": Case(segment_lengths(2 * GIB + 4096, (0x7FFFFFF4,)), False),
    "lengths in a segment, 4 GiB": Case(segment_lengths(4 * GIB + 4096), False, 3 * GIB),  # the first is a batch
    "lengths in a segment, 10 GiB": Case(segment_lengths(10 * GIB, (0x7FFFFFF4, 0x80000000)), False),
    "statistics, 2 GiB": Case(segment_statistics(2 * GIB + 100), False),
    "statistics, 10 GiB": Case(segment_statistics(10 * GIB), False),
    "indexes": Case(indexes),
    "small files": Case(small_files),
    "captures": Case(captures),
    "frame files": Case(frame_files, False),
    "numbers": Case(numbers),
    "a .gz of 5 GiB": Case(gzip_of_zeros, False),
}  # fmt: skip


def one(name: str) -> None:
    """Runs a case in this process."""
    with tempfile.TemporaryDirectory(prefix="kwire-sizes-") as folder:
        before = apart.fresh_peak()
        CASES[name].work(Path(folder))
        grown = apart.peak() - before
    expect(grown <= CASES[name].most, f"{grown >> 20} MiB more memory")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1800, help="for all of it: none begins after them")
    parser.add_argument("--short", action="store_true", help="only the short ones")
    parser.add_argument("--only", default="", help="those with that in their names")
    chosen = parser.parse_args(arguments)
    names = [name for name, case in CASES.items() if chosen.only in name and (case.short or not chosen.short)]
    return apart.report(apart.run("tests.hostile.sizes", names, chosen.seconds))


if __name__ == "__main__":
    sys.exit(apart.child(one) if sys.argv[1:2] == ["--child"] else main())
