"""Seeded mutations of record batches: python -m tests.hostile.mutate --count 100000 --seed 1.

Every case follows from (seed, number) alone. A failure is reported with both and with its bytes; --only NUMBER runs one
case again, --truncations runs the truncations instead. --progress FILE holds the number that is running, for a parent
that finds the process dead.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import mmap
import random
import signal
import struct
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tests.hostile import inputs
from tests.hostile.exercise import exact, exercise, read

EDGES = (0, 1, 2, 7, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
VARINTS = (b"\xff\xff\xff\xff\x0f", b"\xfe\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x08", b"\xff\xff\xff\xff\xff\x01",
           b"\xff" * 9 + b"\x01", b"\x80\x00", b"\x01", b"\x03", b"\x00")  # fmt: skip


class Note:
    """Remembers the number that is running, in a file that outlives the process; and ends it when it hangs."""

    def __init__(self, path: Path | None, seconds: int = 60) -> None:
        self.area: mmap.mmap | None = None
        self.seconds = seconds
        if path:
            path.write_bytes(bytes(8))
            with open(path, "r+b") as file:
                self.area = mmap.mmap(file.fileno(), 8)
            faulthandler.register(signal.SIGVTALRM, chain=True)  # tells where it hangs, then the signal ends it

    def __call__(self, number: int) -> None:
        if self.area is None:
            return
        struct.pack_into("<q", self.area, 0, number)
        if number % 256 == 0:
            signal.setitimer(signal.ITIMER_VIRTUAL, self.seconds)  # of the process's own time: others may be busy

    def done(self) -> None:
        """Nothing more is watched."""
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def damage(data: bytearray, chance: random.Random) -> bytearray:
    """One change somewhere."""
    if not data:
        return bytearray(chance.randbytes(3))
    at, how = chance.randrange(len(data)), chance.randrange(11)
    if how == 0:
        data[at] ^= 1 << chance.randrange(8)
    elif how == 1:
        data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    elif how == 2:
        data[at] = (data[at] + chance.choice((-2, -1, 1, 2))) & 0xFF
    elif how == 3:
        data[at:at] = chance.randbytes(chance.randint(1, 9))
    elif how == 4:
        del data[at : at + chance.randint(1, 9)]
    elif how == 5:
        size = chance.randint(1, 40)
        data[at:at] = data[at : at + size]
    elif how == 6:
        del data[at:]
    elif how == 7 and len(data) >= 4:
        at = min(at, len(data) - 4)
        struct.pack_into(">I", data, at, chance.choice(EDGES))
    elif how == 8:
        varint = chance.choice(VARINTS)
        data[at : at + chance.choice((0, 1, len(varint)))] = varint
    elif how == 9:
        other = chance.choice(inputs.sources())
        cut = chance.randrange(len(other) + 1)
        data[at:] = other[cut : cut + 2000]
    elif len(data) > 61 and data[16] == 2:
        # the fields of the header, one of them; 57 is the count, whose small changes matter most
        at = chance.choice((8, 12, 16, 20, 21, 23, 27, 35, 43, 51, 53, 57, 57))
        value = struct.unpack_from(">i", data, at)[0] + chance.choice((-1, 1))
        struct.pack_into(">I", data, at, value & 0xFFFFFFFF if chance.random() < 0.5 else chance.choice(EDGES))
    return data


def case(seed: int, number: int) -> tuple[bytes, random.Random]:
    """The bytes of a case, and the chance that decides how they are read."""
    chance = random.Random((seed << 40) + number)
    start = chance.choice(inputs.sources())
    inner = inputs.unpacked(start) if chance.random() < 0.5 else None
    rounds = 1 if chance.random() < 0.6 else chance.randint(2, 5)
    if inner:
        codec, payload = inner
        body = bytearray(payload)
        for _ in range(rounds):
            body = damage(body, chance)
        data = inputs.packed(start, codec, bytes(body))
    else:
        data = bytearray(start)
        for _ in range(rounds):
            data = damage(data, chance)
    if chance.random() < 0.6:
        data = inputs.with_length(data)
    if chance.random() < 0.6:
        data = inputs.with_checksum(data)
    return bytes(data), chance


def cuts(size: int, everywhere: bool) -> Iterator[int]:
    """Lengths to cut a batch at: all, or those of its head and tail and some between."""
    if everywhere or size <= inputs.SMALL:
        yield from range(size)
    else:
        yield from range(512)
        yield from range(512, size - 512, max(1, size // 500))
        yield from range(size - 512, size)


def truncations(everywhere: bool) -> Iterator[tuple[bytes, bool]]:
    """Every truncation of every small file and of every batch; those of batches once with the length set right.

    A longer file cut anywhere is whole batches and one that is cut, which is what stands here.
    """
    for _, data in inputs.vectors():
        if len(data) <= 1024:
            for end in range(len(data)):
                yield data[:end], False
    for batch in inputs.batches():
        for end in cuts(len(batch), everywhere):
            yield batch[:end], False
            if end >= 12:
                yield bytes(inputs.with_length(batch[:end])), True


def run_truncations(everywhere: bool, note: Note) -> int:
    """How many were run; what comes out is a failure. All are read, a third of the patched ones in every way."""
    number = 0
    for number, (data, patched) in enumerate(truncations(everywhere), 1):
        note(number)
        try:
            if not patched:
                read(exact(data), errors="keep", strict_tail=number % 2 == 0)
            elif len(data) <= inputs.SMALL and (everywhere or number % 3 == 0):
                exercise(data, random.Random(number))
            else:
                read(exact(data), errors="keep", verify_crc=False)
        except BaseException:
            fail(f"truncation {number}", data)
            raise
    return number


def fail(what: str, data: bytes) -> None:
    traceback.print_exc()
    print(f"{what} failed: {data.hex()}", file=sys.stderr)


def form(data: bytes) -> str:
    """The format that a reader takes the first batch for."""
    if len(data) < 23 or data[16] > 2:
        return "none"
    codec = data[22] & 7 if data[16] == 2 else data[17] & 7
    return f"magic {data[16]} codec {codec}"


def options(about: str | None) -> argparse.ArgumentParser:
    """The command line of every run of mutations."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000, help="mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first case or group")
    parser.add_argument("--only", type=int)
    parser.add_argument("--progress", type=Path)
    parser.add_argument("--extensions", help="folder from which kwire_c must come")
    return parser


def check_build(extensions: str | None, module: str) -> None:
    """Is it the build under test that was imported?"""
    if extensions:
        place = str(import_module(module).__file__)
        assert place.startswith(extensions), f"{place} is not the build under test"


def main(arguments: list[str] | None = None) -> int:
    parser = options(__doc__)
    parser.add_argument("--truncations", action="store_true")
    parser.add_argument("--everywhere", action="store_true", help="large batches are cut at every byte too")
    chosen = parser.parse_args(arguments)
    check_build(chosen.extensions, "kwire_c.record_batch")
    note = Note(chosen.progress)
    if chosen.truncations:
        print(run_truncations(chosen.everywhere, note), "truncations", flush=True)
        note.done()
        return 0
    formats = Counter[str]()
    numbers = range(chosen.first, chosen.first + chosen.count)
    if chosen.only is not None:
        numbers = range(chosen.only, chosen.only + 1)
    for number in numbers:
        note(number)
        data, chance = case(chosen.seed, number)
        if chosen.only is not None:
            print(data.hex(), flush=True)
        try:
            exercise(data, chance)
        except BaseException:
            fail(f"seed {chosen.seed}, case {number}", data)
            return 1
        formats[form(data)] += 1
    print(len(numbers), "mutations", flush=True)
    print(json.dumps({"mutations": len(numbers), "formats": dict(sorted(formats.items()))}), flush=True)
    note.done()
    return 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
