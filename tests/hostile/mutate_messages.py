"""Seeded mutations of every (message, version): python -m tests.hostile.mutate_messages --count 100000 --seed 1.

Mutants come in groups of 16 of one pair; the pairs take turns. A group follows from (seed, number) alone; a failure is
reported with both and with its bytes; --only NUMBER runs one group again. --progress FILE holds the number of the
running group, for a parent that finds the process dead.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import random
import struct
import sys
import traceback
from collections import Counter
from collections.abc import Iterator

import kwire
from tests.hostile.exercise import Wrong, look
from tests.hostile.mutate import EDGES, VARINTS, Note, check_build, options
from tests.hostile.samples import Pair, pairs, samples

GROUP = 16
ODD = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFE, 0xFF)
_room = (ctypes.c_char * (1 << 17))()  # each mutant ends where it ends: a sanitizer sees a read past it
_area = memoryview(_room).cast("B")


def placed(data: bytes) -> memoryview:
    """The bytes at the very end of an allocation; until the next call."""
    start = len(_area) - len(data)
    _area[start:] = data
    return _area[start:]


def damage(out: bytearray, dice: random.Random, other: bytes) -> None:
    """One change somewhere."""
    at, kind = dice.randrange(len(out) + 1), dice.randrange(9)
    if kind == 0 and at < len(out):
        out[at] = dice.choice(ODD)
    elif kind == 1 and at < len(out):
        out[at] ^= 1 << dice.randrange(8)
    elif kind == 2 and at < len(out):
        out[at] = (out[at] + dice.choice((-2, -1, 1, 2))) & 0xFF
    elif kind == 3:
        del out[at : at + dice.randint(1, 8)]
    elif kind == 4:
        out[at:at] = out[at : at + dice.randint(1, 20)]
    elif kind == 5 and len(out) >= 4:
        struct.pack_into(">I", out, min(at, len(out) - 4), dice.choice(EDGES))
    elif kind == 6:
        varint = dice.choice(VARINTS)
        out[at : at + dice.choice((0, 1, len(varint)))] = varint
    elif kind == 7:
        cut = dice.randrange(len(other) + 1)
        out[at:] = other[cut : cut + 500]
    else:
        out[at:] = bytes(dice.choice(ODD) for _ in range(dice.choice((0, 0, 1, 5))))


def group(seed: int, number: int) -> tuple[Pair, list[bytes]]:
    """The pair and the mutants of a group."""
    dice = random.Random((seed << 40) + number)
    pair = pairs()[number % len(pairs())]
    known = samples(pair)
    mutants = []
    for _ in range(GROUP):
        out = bytearray(dice.choice(known))
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            damage(out, dice, dice.choice(known))
        mutants.append(bytes(out))
    return pair, mutants


def strict(pair: Pair, data: bytes, thorough: bool) -> bool:
    """Reads it; what is taken must come back byte for byte, by the message and by its JSON."""
    name, version = pair
    try:
        message = kwire.decode(name, version, placed(data))
    except kwire.KwireError:
        return False
    if kwire.encode(message, version) != data:
        raise Wrong(f"{name} v{version}: other bytes came back for {data.hex()}")
    if thorough:
        again = kwire.from_json(name, version, kwire.to_json(message, version))
        if again != message or kwire.encode(again, version) != data:
            raise Wrong(f"{name} v{version}: JSON lost something of {data.hex()}")
        repr(message)
    return True


def lenient(pair: Pair, data: bytes, good: bool) -> None:
    """Takes at least what strict takes; what it read is written again, or refused."""
    name, version = pair
    try:
        message, end = kwire.decode_from(name, version, placed(data), lenient=True, views=True)
        if end > len(data) or message != message:
            raise Wrong(f"{name} v{version}: read to {end} of {len(data)}: {data.hex()}")
        repr(message)
        kwire.encode(message, version)
    except kwire.KwireError:
        if good:
            raise Wrong(f"{name} v{version}: lenient refuses what strict takes: {data.hex()}") from None


def exercise(pair: Pair, mutants: list[bytes], number: int) -> int:
    """Reads a group in every way; returns how many were valid. KwireErrors are expected, anything else is raised."""
    valid = [strict(pair, data, thorough=(number + at) % 4 == 0) for at, data in enumerate(mutants)]
    for at in range(number % 4, GROUP, 4):
        lenient(pair, mutants[at], valid[at])
    passed: Iterator[memoryview] = map(placed, mutants)
    table = kwire.columns_of(*pair, passed, errors="keep")
    bad = {one.number for one in table.bad}
    if bad != {at for at, good in enumerate(valid) if not good} or len(table) != sum(valid):
        raise Wrong(f"{pair}: columns_of took {len(table)}, decode {sum(valid)}")
    if number % 64 == 0:
        look(table)
    return sum(valid)


def main(arguments: list[str] | None = None) -> int:
    chosen = options(__doc__).parse_args(arguments)
    check_build(chosen.extensions, "kwire_c.decode")
    note = Note(chosen.progress)
    numbers = range(chosen.first, chosen.first + -(-chosen.count // GROUP))
    if chosen.only is not None:
        numbers = range(chosen.only, chosen.only + 1)
    accepted, taken = 0, Counter[Pair]()
    for number in numbers:
        note(number)
        pair, mutants = group(chosen.seed, number)
        try:
            accepted += exercise(pair, mutants, number)
        except BaseException:
            traceback.print_exc()
            print(f"seed {chosen.seed}, group {number} of {pair} failed: {[m.hex() for m in mutants]}", file=sys.stderr)
            return 1
        taken[pair] += len(mutants)
    summary = {"mutations": taken.total(), "accepted": accepted, "pairs": len(taken), "fewest": min(taken.values())}
    print(json.dumps(summary), flush=True)
    note.done()
    return 0


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(main())
