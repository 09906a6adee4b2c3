"""Record batches built by Kafka's own builder and log cleaner: records.zip, and what Kafka reads from each file."""

from __future__ import annotations

import gzip
import hashlib
import random
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from kwire import crc32c
from tools.kafka.classes import KafkaClasses

Row = dict[str, Any]

NOW = 1_700_000_000_000
HORIZON = 1_720_086_400_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LONG = 4096  # values over this many bytes are told as {"len", "sha256"}
NAMES = ("h", "", "ключ", "trace-id")
BATCH_OVERHEAD, PAYLOAD_AT = 12, 61
LZ4_HEADER = 7  # magic, flags, block size, checksum: without a content size
NOTE = "accepted by the reference"

# control records of KRaft: (file, [(control type, message, version, JSON)])
VOTER = {"kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1}}
CONTROL: tuple[tuple[str, tuple[tuple[int, str, int, Row], ...]], ...] = (
    ("leader-change-v0", ((2, "LeaderChangeMessage", 0, {
        "version": 0, "leaderId": 3, "voters": [{"voterId": i} for i in (1, 2, 3)],
        "grantingVoters": [{"voterId": i} for i in (1, 2)]}),)),
    ("leader-change-v1", ((2, "LeaderChangeMessage", 1, {
        "version": 1, "leaderId": 4,
        "voters": [{"voterId": i, "voterDirectoryId": "AAAAAAAAA-gAAAAAAAAAAA"} for i in (1, 2, 3)],
        "grantingVoters": [{"voterId": i, "voterDirectoryId": "AAAAAAAAA-gAAAAAAAAAAA"} for i in (1, 2)]}),)),
    ("snapshot-header", ((3, "SnapshotHeaderRecord", 0, {"version": 0, "lastContainedLogTimestamp": NOW - 1}),)),
    ("snapshot-footer", ((4, "SnapshotFooterRecord", 0, {"version": 0}),)),
    ("kraft-version", ((5, "KRaftVersionRecord", 0, {"version": 0, "kRaftVersion": 1}),)),
    ("voters", ((6, "VotersRecord", 0, {"version": 0, "voters": [
        {"voterId": i, "voterDirectoryId": "AAAAAAAAAAEAAAAAAAAAAA",
         "endpoints": [{"name": "CONTROLLER", "host": f"host-{i}", "port": 65535 - i}], **VOTER} for i in (0, 1)]}),)),
    ("kraft-bootstrap-3-records", (
        (3, "SnapshotHeaderRecord", 0, {"version": 0, "lastContainedLogTimestamp": 5}),
        (5, "KRaftVersionRecord", 0, {"version": 0, "kRaftVersion": 1}),
        (6, "VotersRecord", 0, {"version": 0, "voters": []}))),
)  # fmt: skip


class File(NamedTuple):
    """One file of the zip."""

    name: str
    group: str
    data: bytes
    note: str = ""


def text(size: int, start: int = 0) -> bytes:
    """Printable bytes that compress a little."""
    return bytes(33 + (start + i * (7 + start % 5)) % 90 for i in range(size))


def rows(dice: random.Random, count: int, base: int, magic: int, gaps: bool = False) -> list[Row]:
    """Records for the builder."""
    offset, time, made = base, NOW + dice.randrange(1_000_000), []
    for _ in range(count):
        key = dice.choice((None, b"", *(b"key-%d" % i for i in range(20))))
        value = dice.choice((None, b"", text(dice.randrange(120), dice.randrange(90)), text(dice.randrange(60), 5)))
        headers = [(dice.choice(NAMES), dice.choice((None, b"", text(dice.randrange(20), 30))))
                   for _ in range(dice.choice((0, 0, 1, 2, 3)))]  # fmt: skip
        made.append(row(offset, -1 if magic == 0 else time, key, value, headers if magic == 2 else ()))
        offset += dice.choice((1, 2, 5, 40)) if gaps else 1
        time += dice.choice((0, 1, 25, 700, -300))
    return made


def row(offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Any = ()) -> Row:
    """One record for the builder."""

    def hexed(data: bytes | None) -> str | None:
        return None if data is None else data.hex()

    return {"offset": offset, "timestamp": timestamp, "key": hexed(key), "value": hexed(value),
            "headers": [[name, hexed(data)] for name, data in headers]}  # fmt: skip


class Builder:
    """Asks a release for batches."""

    def __init__(self, kafka: KafkaClasses) -> None:
        self.kafka = kafka

    def build(self, records: list[Row], **options: Any) -> bytes:
        """One batch (old magics: one set)."""
        options.setdefault("base_offset", records[0]["offset"] if records else 0)
        return self._bytes("build", records=records, **options)

    def compact(self, data: bytes, keep: list[int], **options: Any) -> bytes:
        """As the log cleaner leaves it."""
        return self._bytes("compact", hex=data.hex(), keep=keep, **options)

    def encode(self, message: str, version: int, json: Row) -> bytes:
        """The body of a message."""
        return self._bytes("encode", message=message, version=version, json=json)

    def _bytes(self, do: str, **asked: Any) -> bytes:
        answer = self.kafka.ask(do, **asked)
        if "error" in answer:
            raise RuntimeError(f"{do}: {answer['error']}: {str(asked)[:300]}")
        return bytes.fromhex(answer["hex"])

    def files(self) -> Iterator[File]:
        """Every file, group by group."""
        yield from self.matrix()
        yield from self.producers()
        yield from self.edges()
        yield from self.big()
        yield from self.empty()
        yield from self.control()
        yield from self.compacted()
        yield from self.multi()
        yield from self.variants()

    def matrix(self) -> Iterator[File]:
        """Every magic, codec and timestamp type with 1, 10 and 1000 records, and with gaps between offsets."""
        for magic in (0, 1, 2):
            for codec in CODECS if magic == 2 else CODECS[:4]:
                for stamp in ("notime",) if magic == 0 else ("create", "append"):
                    name = f"m{magic}-{codec}-{stamp}"
                    options: Row = {"magic": magic, "codec": codec}
                    options["timestamp_type"] = {"notime": "none", "create": "create", "append": "log_append"}[stamp]
                    if stamp == "append":
                        options["append_time"] = NOW + 5000
                    for count in (1, 10, 1000):
                        dice = random.Random(f"{name}-{count}")
                        made = rows(dice, count, dice.randrange(1_000_000), magic)
                        yield File(f"{name}-{count}", "matrix", self.build(made, **options))
                    dice = random.Random(f"gaps-{name}")
                    yield File(f"gaps-{name}", "gaps", self.build(rows(dice, 6, 100, magic, gaps=True), **options))

    def producers(self) -> Iterator[File]:
        """Idempotent and transactional batches, sequences that wrap, the largest values."""
        top = 2**31 - 1
        shapes: dict[str, tuple[int, int, Row]] = {
            "idempotent": (488, 4, {"producer_id": 1000, "producer_epoch": 0, "base_sequence": 106}),
            "txn": (239, 4, {"producer_id": 4242, "producer_epoch": 5, "base_sequence": 10, "transactional": True}),
            "idempotent-seqwrap": (3, 4, {"producer_id": 7, "producer_epoch": 1, "base_sequence": top - 1}),
            "txn-maxvalues": (2**63 - 5001, 1, {"producer_id": 2**63 - 1, "producer_epoch": 32767,
                                                "base_sequence": top, "transactional": True,
                                                "partition_leader_epoch": top}),
        }  # fmt: skip
        for codec in CODECS:
            for name, (base, count, options) in shapes.items():
                made = rows(random.Random(f"{name}-{codec}"), count, base, 2)
                options = {"partition_leader_epoch": 3, **options, "codec": codec}
                yield File(f"{name}-{codec}", "producer", self.build(made, **options))

    def edges(self) -> Iterator[File]:
        """Nulls, empty values, many and long headers, odd timestamps and offsets, sizes at the edges of a varint."""
        some = rows(random.Random("edge"), 3, 100, 2)
        sizes = [size for edge in (1, 64, 128, 8192, 16384) for size in (edge - 1, edge, edge + 1)]
        dup = [("a", b"1"), ("a", b"2"), ("a", None), ("", b""), ("ü日😀", b"x")]
        many = [(f"h{i}", None if i % 3 == 0 else text(i, i)) for i in range(200)]
        decreasing = [row(10 + i, t, b"%d" % i, None) for i, t in enumerate((5000, 4000, 9000, 0, 2**40 + 5000, 5001))]
        shapes: dict[str, tuple[list[Row], Row]] = {
            "null-key-null-value": ([row(0, 1, None, None)], {}),
            "empty-key-empty-value": ([row(0, 1, b"", b"")], {}),
            "headers-dup-null-empty-unicode": ([row(0, 0, b"k", b"v", dup)], {}),
            "headers-200": ([row(0, 5, None, b"v", many)], {}),
            "header-long-key-value": ([row(0, 5, None, b"v", [("b" * 20_000, text(70_000))])], {}),
            "timestamps-decreasing-and-large-delta": (decreasing, {}),
            "timestamp-minus-one": ([row(0, -1, b"k", b"v"), row(1, -1, b"k", b"v")], {}),
            "value-sizes-at-varint-edges": ([row(i, NOW, None, text(size, i)) for i, size in enumerate(sizes)], {}),
            "offset-delta-max": ([row(100, 7, None, b"v"), row(100 + 2**31 - 1, 8, None, b"w")], {}),
            "last-offset-overridden": (some, {"last_offset": 150}),
            "first-record-delta-nonzero": ([{**r, "offset": r["offset"] + 5} for r in some], {"base_offset": 100}),
        }  # fmt: skip
        for name, (made, options) in shapes.items():
            yield File(name, "edge", self.build(made, **options))

    def big(self) -> Iterator[File]:
        """Values of 1 MiB, and 70,000 random bytes."""
        large, noise = [row(0, NOW, b"big", text(1 << 20))], random.Random(70_000).randbytes(70_000)
        for codec in CODECS:
            yield File(f"big-1MiB-{codec}", "big", self.build(large, codec=codec))
        for magic in (0, 1):
            yield File(f"big-1MiB-m{magic}-none", "big", self.build(large, magic=magic))
        for codec in CODECS:
            yield File(f"incompressible-70000-{codec}", "big", self.build([row(0, 1, None, noise)], codec=codec))

    def empty(self) -> Iterator[File]:
        """Batches without records, as the log cleaner keeps them for their producer's sequence."""
        shapes: tuple[Row, ...] = (
            {}, {"producer_id": 15, "producer_epoch": 3, "base_sequence": 40}, {"transactional": True},
            {"transactional": True, "control": True}, {"timestamp_type": "log_append"}, {"last_offset": 35},
        )  # fmt: skip
        for i, options in enumerate(shapes):
            common = {"base_offset": 30 + i, "last_offset": 39 + i, "partition_leader_epoch": i}
            common["max_timestamp"] = -1 if i == 0 else NOW + i
            yield File(f"empty-batch-{i}", "empty", self.build([], **(common | options)))
        yield File("empty-records", "empty", b"")

    def control(self) -> Iterator[File]:
        """Markers of transactions, and KRaft's control records."""
        for name, kind in (("commit", 1), ("abort", 0)):
            for i, epoch in enumerate((0, 77)):
                value = bytes(2) + epoch.to_bytes(4, "big")
                record = row(0, NOW, bytes((0, 0, 0, kind)), value)
                options = {"producer_id": 55, "producer_epoch": 0, "transactional": True, "control": True}
                yield File(f"control-{name}-{i}", "control", self.build([record], **options))
        for name, parts in CONTROL:
            records = [
                row(at, NOW, bytes((0, 0, 0, kind)), self.encode(message, version, json))
                for at, (kind, message, version, json) in enumerate(parts)
            ]
            data = self.build(records, control=True, partition_leader_epoch=2)
            yield File(f"control-{name}", "control", data)

    def compacted(self) -> Iterator[File]:
        """What the log cleaner leaves: gaps, tombstones with a delete horizon, nothing at all."""
        for codec in CODECS:
            for name, keep_all in (("compacted-horizon", False), ("compacted-horizon-keep-tombstones", True)):
                dice = random.Random(f"{name}-{codec}")
                made = rows(dice, 12, 15, 2)
                made[3] |= {"key": b"tomb".hex(), "value": None}
                keep = [r["offset"] for r in made if (keep_all and r["value"] is None) or dice.random() < 0.5]
                before = self.build(made, codec=codec, producer_id=9, producer_epoch=0, base_sequence=0)
                yield File(f"{name}-{codec}", "compacted", self.compact(before, keep, horizon=HORIZON))
        before = self.build(rows(random.Random("empty"), 4, 60, 2), producer_id=9, producer_epoch=0, base_sequence=7)
        yield File("compacted-to-empty", "compacted", self.compact(before, []))
        for magic in (0, 1):
            for codec in CODECS[:4]:
                made = rows(random.Random(f"compacted-m{magic}-{codec}"), 8, 40, magic)
                before = self.build(made, magic=magic, codec=codec, timestamp_type="none" if magic == 0 else "create")
                keep = [r["offset"] for r in made[1::2]]
                yield File(f"compacted-m{magic}-{codec}", "compacted", self.compact(before, keep))

    def multi(self) -> Iterator[File]:
        """Several batches in a file, whole and cut."""
        parts, offset = [], 0
        for magic in (0, 1, 2):
            for codec in CODECS if magic == 2 else CODECS[:4]:
                made = rows(random.Random(f"multi-{magic}-{codec}"), 3, offset, magic)
                stamp = "none" if magic == 0 else "create"
                parts.append(self.build(made, magic=magic, codec=codec, timestamp_type=stamp))
                offset += 3
        yield File("multi-all-magics", "multi", b"".join(parts))
        newest = [self.build(rows(random.Random(f"multi-{i}"), 2, 10 * i, 2)) for i in range(4)]
        yield File("multi-v2", "multi", b"".join(newest))
        yield File("multi-v2-partial-last-batch", "multi", b"".join(newest)[:-10], "cut inside the last batch")
        yield File("multi-v2-partial-5-bytes", "multi", newest[0] + newest[1][:5], "5 bytes of the next batch")

    def variants(self) -> Iterator[File]:
        """Compressed payloads as other clients may write them, and the batch that records-corrupt is damaged from."""
        plain = self.build(rows(random.Random("variant"), 6, 20, 2))
        for name, (codec, payload) in payloads(plain[PAYLOAD_AT:]).items():
            yield File(f"variant-{name}", "compression-variant", with_payload(plain, codec, payload), NOTE)
        base = [row(7 + i, NOW + i, b"k%d" % i, b"value-%d" % i, [("h", b"x")]) for i in range(3)]
        yield File("corrupt-base", "edge", self.build(base, partition_leader_epoch=1), "the base of records-corrupt")


def payloads(plain: bytes) -> dict[str, tuple[int, bytes]]:
    """name -> (codec, compressed bytes) in forms that Kafka reads and does not write."""
    import cramjam
    import lz4.frame
    import zstandard

    first, second = plain[: len(plain) // 2], plain[len(plain) // 2 :]
    blocks = (plain[at : at + 1024] for at in range(0, len(plain), 1024))
    raw = [bytes(cramjam.snappy.compress_raw(block)) for block in blocks]
    xerial = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + b"".join(struct.pack(">i", len(one)) + one for one in raw)
    zstd, summed = zstandard.ZstdCompressor(), zstandard.ZstdCompressor(write_checksum=True)
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 4) + b"skip"

    def lz4_frame(**options: bool) -> bytes:
        made: bytes = lz4.frame.compress(plain, block_linked=False, **({"store_size": False} | options))
        return made

    stored = lz4_frame()[:LZ4_HEADER] + struct.pack("<I", len(plain) | 1 << 31) + plain + bytes(4)
    return {
        "snappy-raw-block": (2, bytes(cramjam.snappy.compress_raw(plain))),
        "gzip-two-members": (1, gzip.compress(first, mtime=0) + gzip.compress(second, mtime=0)),
        "zstd-two-frames": (4, zstd.compress(first) + zstd.compress(second)),
        "zstd-skippable-frame": (4, skippable + zstd.compress(plain)),
        "zstd-checksum": (4, summed.compress(plain)),
        "snappy-xerial-1k-blocks": (2, xerial),
        "lz4-stored-block": (3, stored),
        "lz4-block-checksum": (3, lz4_frame(block_checksum=True)),
        "lz4-content-checksum": (3, lz4_frame(content_checksum=True)),
        "lz4-content-size": (3, lz4_frame(store_size=True)),
    }


def with_payload(batch: bytes, codec: int, payload: bytes) -> bytes:
    """A batch of magic 2 with another payload, its codec, length and checksum set."""
    out = bytearray(batch[:PAYLOAD_AT] + payload)
    out[22] = out[22] & ~7 | codec
    out[8:12] = (len(out) - BATCH_OVERHEAD).to_bytes(4, "big")
    out[17:21] = crc32c(bytes(out[21:])).to_bytes(4, "big")
    return bytes(out)


def make(kafka: KafkaClasses) -> tuple[list[Row], dict[str, bytes]]:
    """The rows of records.jsonl.gz and the files of records.zip."""
    found, archive = [], {}
    for file in Builder(kafka).files():
        name = f"{file.name}.bin"
        archive[name] = file.data
        found.append(told(kafka, file, name))
    return found, archive


def told(kafka: KafkaClasses, file: File, name: str) -> Row:
    """What Kafka reads from a file."""
    answer = kafka.ask("read", hex=file.data.hex(), stream=False)
    row: Row = {"name": file.name, "group": file.group, "file": name, "size": len(file.data)}
    row["sha256"] = hashlib.sha256(file.data).hexdigest()
    if file.note:
        row["note"] = file.note
    return row | {"batches": [batch(one) for one in answer["batches"]], "validBytes": answer["validBytes"]}


def batch(answer: Row) -> Row:
    """A batch as the file tells it."""
    if answer["iterate"] != "ok" or "headerError" in answer:
        raise RuntimeError(f"Kafka does not read its own batch: {answer}")
    left_out = ("position", "ensureValid", "iterate", "records", "control")
    row = {key: value for key, value in answer.items() if key not in left_out}
    if "rawBaseTimestamp" in row:
        row["baseTimestamp"] = row["rawBaseTimestamp"]
    row["records"] = [record(one) for one in answer["records"]]
    if isinstance(answer.get("control"), list):
        pairs = zip(answer["control"], answer["records"], strict=True)
        row["control"] = [control(one, its_record["key"]) for one, its_record in pairs]
    return row


def record(answer: Row) -> Row:
    """A record, its long values as size and digest."""
    row = answer | {"key": short(answer["key"]), "value": short(answer["value"])}
    return row | {"headers": [[name, short(value)] for name, value in answer["headers"]]}


def short(hexed: str | None) -> Any:
    """A value in hex, or {"len", "sha256"} when it is long."""
    if hexed is None or len(hexed) <= 2 * LONG:
        return hexed
    data = bytes.fromhex(hexed)
    return {"len": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def control(answer: Row, key: str) -> Row:
    """A control record: its type and what its value says."""
    row: Row = {"typeId": answer["typeId"], "type": answer["type"], "keyVersion": int(key[:4], 16)}
    if "coordinatorEpoch" in answer:
        return row | {"coordinatorEpoch": answer["coordinatorEpoch"], "valueVersion": 0}
    return row | ({"json": answer["message"]} if "message" in answer else {})
