"""Tables made by hand in the structs of the Arrow C interfaces, whole and with one thing wrong, for build_batches.

python -m tests.hostile.arrow_tables --seed N --count N. Of a whole table the batches have its rows, whatever its
layouts, slices, nulls and chunks; one that lies in a way that can be seen is a KwireError. Each array is released.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import struct
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import kwire


class Schema(ctypes.Structure):
    """ArrowSchema."""


class Array(ctypes.Structure):
    """ArrowArray."""


_POINTER, _LONG = ctypes.c_void_p, ctypes.c_int64
Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", _POINTER), ("flags", _LONG),
    ("n_children", _LONG), ("children", _POINTER), ("dictionary", _POINTER), ("release", _POINTER),
    ("private_data", _POINTER),
]  # fmt: skip
Array._fields_ = [
    ("length", _LONG), ("null_count", _LONG), ("offset", _LONG), ("n_buffers", _LONG), ("n_children", _LONG),
    ("buffers", _POINTER), ("children", _POINTER), ("dictionary", _POINTER), ("release", _POINTER),
    ("private_data", _POINTER),
]  # fmt: skip
_RELEASE = ctypes.CFUNCTYPE(None, _POINTER)
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [_POINTER, ctypes.c_char_p, _POINTER]

released = {"schema": 0, "array": 0}


@_RELEASE
def _release_schema(address: int) -> None:
    Schema.from_address(address).release = None
    released["schema"] += 1


@_RELEASE
def _release_array(address: int) -> None:
    Array.from_address(address).release = None
    released["array"] += 1
    kwire.build_batch([(1, b"k", b"v")])  # what releases memory may run Python


class Node:
    """An array and its type. A buffer is bytes, or None for NULL."""

    def __init__(self, form: bytes | None, name: bytes, length: int, offset: int,
                 buffers: Sequence[bytes | None], children: Sequence[Node] = ()) -> None:  # fmt: skip
        self.form, self.name, self.length, self.offset = form, name, length, offset
        self.buffers, self.children = list(buffers), list(children)
        self.wrong: dict[str, int | None] = {}  # members of ArrowArray
        self.is_released = self.has_dictionary = False
        self.kept: list[Any] = []

    def every(self) -> Iterator[Node]:
        """This node and those below."""
        yield self
        for child in self.children:
            yield from child.every()

    def _addresses(self, values: Sequence[int | None]) -> int:
        made = (_POINTER * max(len(values), 1))(*values)
        self.kept.append(made)
        return ctypes.addressof(made)

    def schema(self) -> int:
        """The address of its ArrowSchema."""
        made = Schema(self.form, self.name, None, 2, len(self.children))
        made.children = self._addresses([child.schema() for child in self.children])
        made.dictionary = Node(b"u", b"", 0, 0, [None] * 3).schema() if self.has_dictionary else None
        made.release = ctypes.cast(_release_schema, _POINTER).value
        self.kept.append(made)
        return ctypes.addressof(made)

    def array(self) -> int:
        """The address of its ArrowArray."""
        content = [None if data is None else ctypes.create_string_buffer(data, len(data) + 1) for data in self.buffers]
        made = Array(self.length, -1, self.offset, len(content), len(self.children))
        made.buffers = self._addresses([None if data is None else ctypes.addressof(data) for data in content])
        made.children = self._addresses([child.array() for child in self.children])
        made.release = None if self.is_released else ctypes.cast(_release_array, _POINTER).value
        for member, value in self.wrong.items():
            setattr(made, member, value)
        self.kept += [content, made]
        return ctypes.addressof(made)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return _capsule(self.schema(), b"arrow_schema", None), _capsule(self.array(), b"arrow_array", None)


class Maker:
    """Whole tables, by a seed."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def valid(self, values: Sequence[object], before: int) -> bytes | None:
        """The bits of validity of an array that begins with so many other rows."""
        if None not in values and self.dice.random() < 0.5:
            return None
        bits = [self.dice.random() < 0.5 for _ in range(before)] + [value is not None for value in values]
        return bytes(sum(bit << i for i, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits), 8))

    def data(self, name: bytes, values: Sequence[bytes | None], layouts: str = "zZvw") -> Node:
        """A column of bytes in one of the layouts; the texts of header keys too."""
        before, layout = self.dice.randrange(4), self.dice.choice(layouts)
        widths = {len(value) for value in values if value is not None}
        if layout == "w" and len(widths) != 1:
            layout = "z"
        valid = self.valid(values, before)
        if layout == "w":
            width = widths.pop()
            content = b"".join([b"p" * width] * before + [value or b"n" * width for value in values])
            return Node(b"w:%d" % width, name, len(values), before, [valid, content])
        cells = [b"p" * self.dice.randrange(9) for _ in range(before)] + [value or b"" for value in values]
        if layout == "v":
            block, views = b"", b""
            for cell in cells:
                views += struct.pack("<i12s", len(cell), cell) if len(cell) <= 12 else \
                    struct.pack("<i4sii", len(cell), cell[:4], 0, len(block))  # fmt: skip
                block += cell if len(cell) > 12 else b""
            return Node(b"vz", name, len(values), before, [valid, views, block, struct.pack("<q", len(block))])
        ends = [0]
        for cell in cells:
            ends.append(ends[-1] + len(cell))
        return Node(layout.encode(), name, len(values), before, [
            valid, struct.pack(f"<{len(ends)}{'i' if layout in 'zu' else 'q'}", *ends), b"".join(cells)])  # fmt: skip

    def numbers(self, name: bytes, values: Sequence[int | None]) -> Node:
        """A column of 64-bit integers."""
        before = self.dice.randrange(4)
        content = [self.dice.getrandbits(60) for _ in range(before)] + [value or 0 for value in values]
        return Node(b"l", name, len(values), before,
                    [self.valid(values, before), struct.pack(f"<{len(content)}q", *content)])  # fmt: skip

    def headers(self, lists: Sequence[list[tuple[bytes, bytes | None]]]) -> Node:
        """A column of lists of pairs, or of maps; the structs begin with other rows too."""
        before, form = self.dice.randrange(3), self.dice.choice([b"+l", b"+L", b"+m"])
        flat = [(b"?", b"?")] * before + [pair for pairs in lists for pair in pairs]
        ends = [before]
        for pairs in lists:
            ends.append(ends[-1] + len(pairs))
        slack = self.dice.randrange(3)
        rows = [(b"x", b"")] * slack + flat
        children = [self.data(b"key", [key for key, _ in rows], "uUv"), self.data(b"value", [data for _, data in rows])]
        if form != b"+m":
            self.dice.shuffle(children)
        entries = Node(b"+s", b"entries", len(flat), slack, [None], children)
        return Node(form, b"headers", len(lists), 0, [
            None, struct.pack(f"<{len(ends)}{'q' if form == b'+L' else 'i'}", *ends)], [entries])  # fmt: skip

    def bytes(self) -> bytes | None:
        """A key or value."""
        return self.dice.choice([None, b"", self.dice.randbytes(self.dice.choice([1, 12, 13, 40]))])

    def table(self) -> tuple[Node, list[tuple[Any, ...]]]:
        """A struct of columns, which may begin with other rows, and its rows."""
        slack, count = self.dice.randrange(3), self.dice.choice([0, 1, 5, 40])
        total = slack + count
        keys, values = [self.bytes() for _ in range(total)], [self.bytes() for _ in range(total)]
        stamps = [self.dice.choice([None, 0, -1, self.dice.randrange(-(2**40), 2**41)]) for _ in range(total)]
        heads = [[(self.dice.choice([b"", b"a", b"\xc3\xa9"]), self.bytes()) for _ in range(self.dice.randrange(4))]
                 for _ in range(total)]  # fmt: skip
        columns = [self.data(b"key", keys), self.data(b"value", values), self.numbers(b"timestamp", stamps),
                   self.headers(heads)]  # fmt: skip
        self.dice.shuffle(columns)
        rows = list(zip((-1 if stamp is None else stamp for stamp in stamps), keys, values,
                        (tuple((key.decode(), data) for key, data in pairs) for pairs in heads), strict=True))
        return Node(b"+s", b"", count, slack, [None], columns), rows[slack:]


def spoil(table: Node, dice: random.Random) -> str:
    """Make one thing of a table wrong that can be seen without reading past its memory; what it was."""
    node = dice.choice(list(table.every()))
    kind = dice.choice(["member", "buffer", "form", "name", "released", "dictionary", "children", "offsets", "view"])
    if kind == "member":
        members: list[tuple[str, list[int | None]]] = [
            ("length", [-1, -(2**63), 2**62, 2**63 - 1]), ("offset", [-1, -(2**63), 2**63 - 1]),
            ("n_buffers", [-1, 0, -(2**63)]), ("n_children", [-1, 0, -(2**63)]), ("null_count", [5, -(2**63)]),
            ("buffers", [None]), ("children", [None])]  # fmt: skip
        member, values = dice.choice(members)
        node.wrong[member] = dice.choice(values)
        return f"{kind} {member}"
    if kind == "buffer" and len(node.buffers) > 1:
        node.buffers[dice.randrange(1, len(node.buffers))] = None
    elif kind == "form":
        node.form = dice.choice([None, b"", b"+r", b"+vl", b"w:-1", b"w:", b"w:1x", b"\xff", b"+s", b"l", b"tsX:"])
    elif kind == "name":
        node.name = dice.choice([b"\xff", b"", b"value", b"offset"])
    elif kind == "released":
        node.is_released = True
    elif kind == "dictionary":
        node.has_dictionary = True
    elif kind == "children" and node.children:
        node.children.pop()
    elif kind in ("offsets", "view") and node.form in (b"z", b"u", b"Z", b"U", b"+l", b"+L", b"+m", b"vz"):
        size = {b"vz": 16, b"z": 4, b"u": 4, b"+l": 4, b"+m": 4}.get(node.form, 8)
        at = dice.randrange(len(node.buffers[1] or b"") // size or 1) * size
        lies = {4: struct.pack("<i", dice.choice([-1, -(2**31)])), 8: struct.pack("<q", dice.choice([-1, -(2**63)])),
                16: struct.pack("<4i", dice.choice([13, -1, 2**31 - 1]), 0, dice.choice([-1, 0, 99]),
                                dice.choice([-1, 2**31 - 1]))}  # fmt: skip
        whole = node.buffers[1] or b""
        node.buffers[1] = whole[:at] + lies[size] + whole[at + size :]
    return kind


def tried(seed: int) -> str:
    """One table. Raises AssertionError for what may not be, returns "whole", or what was wrong."""
    dice = random.Random(seed)
    table, rows = Maker(dice).table()
    wrong = spoil(table, dice) if dice.random() < 0.6 else "whole"
    nodes = sum(1 for _ in table.every())
    released.update(schema=0, array=0)
    try:
        batches = kwire.build_batches(table, batch_bytes=dice.choice([1, 200, 16384]))
    except kwire.KwireError as error:
        assert wrong != "whole", error
        assert str(error).isprintable(), error
        return wrong
    if wrong == "whole":
        assert released == {"schema": 1, "array": 1}, f"released {released} of {nodes}"
        found = [(record.timestamp, record.key, record.value, record.headers)
                 for data, _, _ in batches for batch in kwire.read_batches(data) for record in batch]
        assert found == rows, f"{found} are not {rows}"
    return wrong


def main() -> int:
    """Count tables; the last line says how many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    asked = parser.parse_args()
    whole = 0
    for number in range(asked.count):
        seed = asked.seed * 10_000_000 + number
        try:
            whole += tried(seed) == "whole"
        except Exception as error:
            raise AssertionError(f"table of seed {seed}") from error
    print(f"{asked.count} tables, {whole} of them whole: nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
