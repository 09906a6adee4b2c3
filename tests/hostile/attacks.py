"""Attacks on readers, each in a child that may grow by 512 MiB: python -m tests.hostile.attacks prints the table.

A row each for lengths and counts that lie, varints without end, and payloads that unpack to 2 GiB; a column each for
kwire and its Python peers, where they read such bytes at all.
"""

from __future__ import annotations

import json
import resource
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from tests.hostile import bombs
from tests.hostile.sanitized import ROOT

GROWTH = 512 << 20  # bytes that a reader may take on top of what the process has
SIZE = 2 << 30  # bytes that a bomb unpacks to
ZEROS = bytes(1 << 20)
BIG = b"\xff\xff\xff\xff\x07"  # 2^31-1 as an unsigned varint
TAGS = b"\x80\xda\xc4\x09" + b"\x7f\0" * 20_000_000  # their count, then 20 million times tag 127, empty
ZSTD_DECLARED = b"\x28\xb5\x2f\xfd" + b"\xa0" + b"\xff" * 4 + b"\1\0\0"  # 2^32-1 bytes, and a last block of none
METADATA = bytes(4) + b"\1\0" + bytes(4) + b"\1"  # MetadataResponse v12 up to its tags


class Attack(NamedTuple):
    """What it is, the bytes, and what they are said to be: (message, version), "batches" or "frame"."""

    name: str
    make: Callable[[], bytes]
    kind: tuple[str, int] | str


def gzip_bomb() -> bytes:
    """One member: a block that refers to nothing before it, again and again."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(ZEROS) + packer.flush(zlib.Z_FULL_FLUSH)
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    return head + block * (SIZE >> 20) + packer.flush() + struct.pack("<II", 0x4DBDF21C, SIZE & 0xFFFFFFFF)


def zstd_bomb() -> bytes:
    """Blocks of one byte, repeated 128 KiB times each (RFC 8878, 3.1.1.2)."""
    block = 1 << 17
    run = (block << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
    last = (block << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"\0"
    return b"\x28\xb5\x2f\xfd" + b"\0" + bytes([7 << 3]) + run * (SIZE // block - 1) + last


def lz4_bomb() -> bytes:
    whole = bombs.BOMBS["lz4"][1]()
    head, block, end = whole[:7], whole[7 : 7 + 4 + struct.unpack_from("<I", whole, 7)[0]], whole[-4:]
    return head + block * (SIZE >> 16) + end


def record(body: bytes) -> bytes:
    """A batch with one record that has these bytes after its length."""
    length = b""
    size = len(body) << 1
    while size >= 0x80:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bombs.batch(0, length + bytes([size]) + body, 2)


def nested() -> bytes:
    """FetchResponse v4: every count is the highest that so many bytes allow, three levels deep."""
    size = 16 << 20
    topics = struct.pack(">iih", 0, size // 8, 0)
    partitions = struct.pack(">iihqqi", size // 40, 0, 0, 0, 0, size // 16 - 16)
    return (topics + partitions).ljust(size, b"\0")


ATTACKS = (
    Attack("array of 2^31-1, 20 bytes", lambda: b"\x7f\xff\xff\xff" + bytes(16), ("MetadataResponse", 1)),
    Attack("compact array of 2^31-2", lambda: bytes(4) + BIG + bytes(16), ("MetadataResponse", 12)),
    Attack("compact array of 2^32-2", lambda: bytes(4) + b"\xff" * 4 + b"\x0f" + bytes(16), ("MetadataResponse", 12)),
    Attack("array of -2", lambda: b"\xff\xff\xff\xfe" + bytes(16), ("MetadataResponse", 1)),
    Attack("string of 2^31-1", lambda: bytes(4) + b"\1" + BIG + bytes(16), ("MetadataResponse", 12)),
    Attack("varint of 11 bytes", lambda: bytes(4) + b"\xff" * 10 + b"\1" + bytes(16), ("MetadataResponse", 12)),
    Attack("2^31-1 tags", lambda: METADATA + BIG + bytes(16), ("MetadataResponse", 12)),
    Attack("20 million tags", lambda: METADATA + TAGS, ("MetadataResponse", 12)),
    Attack("a tag of 2^31-1 bytes", lambda: METADATA + b"\1\x7f" + BIG + bytes(16), ("MetadataResponse", 12)),
    Attack("nested counts", nested, ("FetchResponse", 4)),
    Attack("frame of 2^31-1", lambda: b"\x7f\xff\xff\xff" + bytes(16), "frame"),
    Attack("frame of -1", lambda: b"\xff\xff\xff\xff" + bytes(16), "frame"),
    Attack("2^31-1 records", lambda: bombs.batch(0, bytes(20), 2, count=2**31 - 1), "batches"),
    Attack("2^31-1 records, gzip", lambda: bombs.batch(1, zlib.compress(bytes(20), wbits=31), 2, 2**31 - 1), "batches"),
    Attack("record of 11-byte varints", lambda: record(b"\0" + b"\xff" * 10 + b"\1" + bytes(8)), "batches"),
    Attack("2^31-1 headers", lambda: record(b"\0\0\0\1\1" + b"\xfe\xff\xff\xff\x0f"), "batches"),
    Attack("gzip bomb", lambda: bombs.batch(1, gzip_bomb(), 2), "batches"),
    Attack("gzip bomb, magic 1", lambda: bombs.batch(1, gzip_bomb(), 1), "batches"),
    Attack("zstd bomb", lambda: bombs.batch(4, zstd_bomb(), 2), "batches"),
    Attack("lz4 bomb", lambda: bombs.batch(3, lz4_bomb(), 2), "batches"),
    Attack("xerial snappy bomb", lambda: bombs.batch(2, bombs.BOMBS["snappy blocks"][1](), 2), "batches"),
    Attack("zstd, declared 4 GiB", lambda: bombs.batch(4, ZSTD_DECLARED, 2), "batches"),
    Attack("snappy, declared 4 GiB", lambda: bombs.batch(2, bombs.BOMBS["snappy declared"][1](), 2), "batches"),
)  # fmt: skip


def kwire_ways(kind: Any) -> dict[str, Callable[[bytes], Any]]:
    """Every way in which kwire reads such bytes."""
    import kwire

    if kind == "batches":
        return {way: read for way, read in bombs.READERS.items() if "keep" not in way}  # those that raise
    if kind == "frame":
        return {"FrameReader": lambda data: kwire.FrameReader().feed(data)}
    name, version = kind
    return {
        "decode": lambda data: kwire.decode(name, version, data),
        "views": lambda data: kwire.decode(name, version, data, views=True),
        "lenient": lambda data: kwire.decode(name, version, data, lenient=True),
        "columns_of": lambda data: kwire.columns_of(name, version, [data]),
    }


def iterate(module: str) -> Callable[[bytes], None]:
    """The loop that kafka-python and aiokafka share in form."""
    kind = import_module(module).MemoryRecords

    def read(data: bytes) -> None:
        records = kind(data)
        while records.has_next():
            for _ in records.next_batch():
                pass

    return read


def aiokafka_ways(kind: Any) -> dict[str, Callable[[bytes], Any]]:
    if kind == "batches":
        return {"records": iterate("aiokafka.record.memory_records")}
    module = {"MetadataResponse": "metadata", "FetchResponse": "fetch"}.get(kind[0])
    known = getattr(import_module(f"aiokafka.protocol.{module}"), f"{kind[0]}_v{kind[1]}", None) if module else None
    return {"decode": known.decode} if known else {}


def kafka_python_ways(kind: Any) -> dict[str, Callable[[bytes], Any]]:
    if kind == "batches":
        return {"records": iterate("kafka.record.memory_records")}
    module = {"MetadataResponse": "metadata.metadata", "FetchResponse": "consumer.fetch"}.get(kind[0])
    if not module:
        return {}
    known = getattr(import_module(f"kafka.protocol.{module}"), kind[0])
    return {"decode": lambda data: known.decode(data, version=kind[1])}


def kio_ways(kind: Any) -> dict[str, Callable[[bytes], Any]]:
    module = {"MetadataResponse": "metadata", "FetchResponse": "fetch"}.get(kind[0])
    if not module:
        return {}
    read = import_module("kio.serial").entity_reader(
        getattr(import_module(f"kio.schema.{module}.v{kind[1]}.response"), kind[0])
    )
    return {"decode": lambda data: read(data, 0)}


LIBRARIES = {"kwire": kwire_ways, "kafka-python": kafka_python_ways, "aiokafka": aiokafka_ways, "kio": kio_ways}


def memory(what: str) -> int:
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(what))


def child(library: str, number: int) -> None:
    """Runs an attack under the limit; prints {way: [class, family, text]} and by how much the memory grew at most."""
    attack = ATTACKS[number]
    data, ways = attack.make(), LIBRARIES[library](attack.kind)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak counts from here
    before, limit = memory("VmRSS"), memory("VmSize") + GROWTH
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    answers: dict[str, Any] = {}
    for way, read in ways.items():
        try:
            read(data)
            answers[way] = ["accepted", "", ""]
        except BaseException as error:
            family = [base.__name__ for base in type(error).__mro__]
            kind = "struct.error" if isinstance(error, struct.error) else type(error).__name__
            answers[way] = [kind, "KwireError" if "KwireError" in family else "", str(error)[:300]]
    print(json.dumps({"ways": answers, "grown": memory("VmHWM") - before, "bytes": len(data)}))


def run(library: str, number: int) -> dict[str, Any]:
    """What came of an attack: the child's words, or {"died": how}."""
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "tests.hostile.attacks", library, str(number)],
            cwd=ROOT, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"died": "hangs"}
    if ran.returncode:
        return {"died": "abort" if ran.returncode < 0 else ran.stderr[-2000:]}
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


def shown(answer: dict[str, Any]) -> str:
    """A cell of the table."""
    if "died" in answer:
        return str(answer["died"]).strip().splitlines()[-1][:60]
    if not answer["ways"]:
        return "-"
    kinds = {way: result[0] for way, result in answer["ways"].items()}
    first = next(iter(kinds.values()))
    others = ", ".join(f"{way}: {kind}" for way, kind in kinds.items() if kind != first)
    grown = f" at {answer['grown'] >> 20} MiB" if answer["grown"] >> 20 > 64 else ""
    return first + (f" ({others})" if others else "") + grown


def main() -> None:
    print("| attack | " + " | ".join(LIBRARIES) + " |")
    print("|---" * (len(LIBRARIES) + 1) + "|")
    for number, attack in enumerate(ATTACKS):
        cells = [shown(run(library, number)) for library in LIBRARIES]
        print(f"| {attack.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:]:
        child(sys.argv[1], int(sys.argv[2]))
    else:
        main()
