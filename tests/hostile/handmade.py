"""Makes objects of kwire's compiled types by hand and uses everything they have: python -m tests.hostile.handmade."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
import pkgutil
import random
import sys
from collections.abc import Iterator
from typing import Any

import kwire
import kwire_c

BATCH = kwire.build_batch([(1, b"k", b"v", [("h", b"x")])] * 3)
PACKED = kwire.build_batch([(1, b"k", b"v" * 100)] * 3, codec="gzip")
JUNK: list[Any] = [
    None, 0, -1, 1 << 40, 1 << 70, 1.5, "", "offset", "FetchRequest", b"", BATCH, bytearray(BATCH), [], [None], (), {},
    ("offset",), object(), object, True, float("nan"), memoryview(BATCH), print,
]


def types() -> Iterator[type]:
    """Every compiled type, and some message classes."""
    for info in pkgutil.iter_modules(kwire_c.__path__):
        module = importlib.import_module(f"kwire_c.{info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__.startswith("kwire") and not issubclass(value, Exception):
                yield value
    yield kwire.messages.FetchRequest
    yield kwire.messages.FetchRequest.FetchTopic


def attempt(work: Any, *arguments: Any, **named: Any) -> Any:
    """What it gives, None where it raises: a crash is what is looked for."""
    try:
        return work(*arguments, **named)
    except Exception:
        return None


def exercise(made: Any, dice: random.Random, depth: int = 0) -> None:
    """Uses every attribute and method of an object."""
    for name in dir(made):
        if name in ("__init_subclass__", "__subclasshook__", "__class__", "__dict__", "__doc__"):
            continue
        value = attempt(getattr, made, name)
        if callable(value):
            for _ in range(3):
                found = attempt(value, *dice.choices(JUNK, k=dice.randrange(4)))
                if depth < 1 and type(found).__module__.startswith("kwire"):
                    exercise(found, dice, depth + 1)
    for use in (repr, str, len, hash, iter, list, bytes, memoryview, bool, vars):
        attempt(use, made)
    for use in (copy.copy, copy.deepcopy, pickle.dumps):
        attempt(use, made)
    attempt(lambda: made == made)
    attempt(next, made)
    for state in JUNK:
        attempt(getattr(made, "__setstate__", print) if hasattr(made, "__setstate__") else repr, state)
    for export in ("__arrow_c_schema__", "__arrow_c_array__", "__arrow_c_stream__"):
        if hasattr(made, export):
            attempt(__import__("pyarrow").table, made)


def main() -> None:
    """Tries each type in many ways; the last line says how many."""
    dice, count = random.Random(1), 0
    sys.stdout = io.StringIO()  # print stands among the junk
    for kind in types():
        sys.stderr.write(f"{kind.__module__}.{kind.__qualname__}\n")
        ways = [kind, lambda *a, kind=kind: kind.__new__(kind, *a), lambda *_, kind=kind: object.__new__(kind)]
        derived = attempt(type, "Derived", (kind,), {})
        if derived is not None:
            ways += [derived, lambda *a, derived=derived: derived.__new__(derived, *a)]
            attempt(kwire.decode, derived, 0, b"")
            attempt(kwire.encode, derived, 0)
            attempt(kwire.columns_of, derived, 0, [b""])
        for way in ways:
            for size in range(7):
                for _ in range(6):
                    made = attempt(way, *dice.choices(JUNK, k=size))
                    if isinstance(made, kind):
                        count += 1
                        exercise(made, dice)
                        attempt(made.__init__, *dice.choices(JUNK, k=size))
                        exercise(made, dice)
    held = [*kwire.read_batches(BATCH), *kwire.read_batches(PACKED), kwire.columns(BATCH), kwire.columns(BATCH)["key"]]
    held += [*next(kwire.read_batches(BATCH)), kwire.read_batches(BATCH), iter(next(kwire.read_batches(BATCH)))]
    for made in held:
        count += 1
        exercise(made, dice)
    sys.stdout = sys.__stdout__
    print(f"{count} objects")


if __name__ == "__main__":
    main()
