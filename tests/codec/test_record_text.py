"""Rows of columns as text: lines that are cut, what a decoder gives, values as Python has them."""

from __future__ import annotations

from typing import Any

import pytest

import kwire
from kwire_c.columns import gather
from kwire_c.record_text import RecordText, values_of

pytestmark = pytest.mark.quick
FIELDS = ("offset", "timestamp", "key", "value", "headers", "is_control")
ROWS = [(1, b"k", b"abcdefgh", [("h", None)]), (2, None, "éééééééé".encode(), [])]
COLUMNS = gather([kwire.build_batch(ROWS, base_offset=5)], FIELDS, max_batch_bytes=1 << 20)
END = ("literal", "", {"texts": (b"\n",)})


def test_a_line_is_cut_to_its_signs() -> None:
    seen = []

    def fit(line: bytes) -> bytes:
        seen.append(line)
        return b"cut\n"

    text = RecordText([("plain", "value", {"call": bytes}), END], cells=5, fit=fit)
    assert b"".join(text.write(COLUMNS)).decode() == "abcd…\ncut\n"
    assert seen == ["éééééééé\n".encode()]
    assert b"".join(RecordText([("plain", "value", {}), END], cells=8).write(COLUMNS, [0])) == b"abcdefgh\n"


def test_a_decoder_is_given_the_row_and_gives_pieces() -> None:
    asked = []

    def decode(*row: object) -> tuple[bytes, ...] | None:
        asked.append(row)
        return (b"no", b"decoded") if row[2] else None

    pieces: list[tuple[str, str, dict[str, Any]]] = [
        ("raw", "value", {"decoded": 1}), ("call", "", {"call": lambda _: b"!"}), END,
    ]  # fmt: skip
    text = RecordText(pieces, decode=decode, every=True)
    assert b"".join(text.write(COLUMNS)).decode() == "decoded!\néééééééé!\n"
    assert asked == [(5, 1, b"k", b"abcdefgh", False), (6, 2, None, "éééééééé".encode(), False)]
    asked.clear()
    assert b"".join(RecordText(pieces, decode=decode).write(COLUMNS, [0])) == b"abcdefgh!\n" and not asked


def test_rows_are_ascending() -> None:
    with pytest.raises(IndexError, match="rows must be ascending"):
        list(RecordText([END]).write(COLUMNS, [-1]))


def test_values_of_a_column() -> None:
    assert values_of(COLUMNS, "headers") == [[(b"h", None)], []]
    assert values_of(COLUMNS, "key") == [b"k", None] and values_of(COLUMNS, "offset") == [5, 6]
