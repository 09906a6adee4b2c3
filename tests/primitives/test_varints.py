"""Varints: every vector of Kafka's ByteUtils, every odd input, round trips."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire import DecodeError
from kwire_c import varint

KINDS = ("unsigned_varint", "varint", "unsigned_varlong", "varlong")
RANGES = {
    "unsigned_varint": (0, 2**32 - 1), "varint": (-(2**31), 2**31 - 1),
    "unsigned_varlong": (0, 2**64 - 1), "varlong": (-(2**63), 2**63 - 1),
}


@pytest.fixture(scope="module")
def primitives(vectors: Path) -> dict[str, Any]:
    with open(vectors / "primitives.json") as lines:
        value: dict[str, Any] = json.load(lines)
    return value


def function(verb: str, kind: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(varint, f"{verb}_{kind}")
    return found


def check(kind: str, value: int, data: bytes) -> None:
    assert function("write", kind)(value) == data
    assert function("size_of", kind)(value) == len(data)
    assert function("read", kind)(data) == (value, len(data))
    assert function("read", kind)(b"\xff" + data + b"\x00", 1) == (value, 1 + len(data))
    if kind == "unsigned_varint":
        assert varint.read_unsigned_varint(data, strict=True) == (value, len(data))


@pytest.mark.quick
def test_vectors(primitives: dict[str, Any]) -> None:
    assert (len(primitives["int32"]), len(primitives["int64"])) == (483, 861)
    for case in primitives["int32"]:
        check("unsigned_varint", case["value"] & 0xFFFFFFFF, bytes.fromhex(case["unsignedVarint"]))
        check("varint", case["value"], bytes.fromhex(case["varint"]))
    for case in primitives["int64"]:
        check("unsigned_varlong", case["value"] & 0xFFFFFFFFFFFFFFFF, bytes.fromhex(case["unsignedVarlong"]))
        check("varlong", case["value"], bytes.fromhex(case["varlong"]))


@pytest.mark.quick
def test_odd_inputs(primitives: dict[str, Any]) -> None:
    """The same value and length, or an error, as Kafka's readers of a buffer."""
    seen = {"value": 0, "error": 0}
    for case in primitives["decode"]:
        data = bytes.fromhex(case["hex"])
        for kind, name in (("unsigned_varint", "unsignedVarint"), ("varint", "varint"), ("varlong", "varlong")):
            expected = case[name]
            if "error" in expected:
                seen["error"] += 1
                with pytest.raises(DecodeError) as caught:
                    function("read", kind)(data)
                assert caught.value.offset == 0
            else:
                seen["value"] += 1
                value = expected["value"] & 0xFFFFFFFF if kind == "unsigned_varint" else expected["value"]
                assert function("read", kind)(data) == (value, expected["consumed"])
        # Kafka has no public reader of unsigned longs: it must agree with the signed one
        if "error" in case["varlong"]:
            with pytest.raises(DecodeError):
                varint.read_unsigned_varlong(data)
        else:
            signed, end = case["varlong"]["value"], case["varlong"]["consumed"]
            assert varint.read_unsigned_varlong(data) == ((signed << 1 ^ signed >> 63) & 2**64 - 1, end)
    assert min(seen.values()) > 100


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_edges(kind: str) -> None:
    low, high = RANGES[kind]
    for value in (low, high):
        check(kind, value, function("write", kind)(value))
    for value in (low - 1, high + 1):
        for verb in ("write", "size_of"):
            with pytest.raises(OverflowError):
                function(verb, kind)(value)
    for position in (-1, 3, 2**62, 2**63, 10**30, -(2**63) - 1):
        with pytest.raises(DecodeError):
            function("read", kind)(b"\x01\x02", position)
    with pytest.raises(DecodeError, match="ends inside"):
        function("read", kind)(b"\x01\x02", 2)
    for data in (bytearray(b"\x06"), memoryview(b"\x06")):
        assert function("read", kind)(data)[1] == 1
    with pytest.raises(TypeError):
        function("read", kind)("text")


@pytest.mark.quick
@pytest.mark.parametrize("data", ["8000", "ff00", "8080808000", "ffffffff1f", "808080801f", "ffffffff7f"])
def test_strict_takes_the_shortest_form_only(data: str) -> None:
    varint.read_unsigned_varint(bytes.fromhex(data))
    with pytest.raises(DecodeError, match="overlong"):
        varint.read_unsigned_varint(bytes.fromhex(data), strict=True)


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind: str) -> None:
    @given(st.integers(*RANGES[kind]), st.binary(max_size=3), st.binary(max_size=3))
    def run(value: int, before: bytes, after: bytes) -> None:
        data = function("write", kind)(value)
        assert len(data) == function("size_of", kind)(value)
        assert function("read", kind)(before + data + after, len(before)) == (value, len(before) + len(data))
        for end in range(len(data)):
            with pytest.raises(DecodeError):
                function("read", kind)(data[:end])

    run()


@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_give_a_value_or_a_decode_error(kind: str) -> None:
    low, high = RANGES[kind]

    @given(st.binary(max_size=12), st.integers(-2, 14))
    def run(data: bytes, position: int) -> None:
        try:
            value, end = function("read", kind)(data, position)
        except DecodeError:
            return
        assert low <= value <= high and position < end <= len(data)

    run()


@pytest.mark.quick
def test_float64(primitives: dict[str, Any]) -> None:
    """Doubles are big-endian IEEE 754, a NaN's bits too, as Python's own struct writes them."""
    for case in primitives["float64"]:
        bits = bytes.fromhex(case["hex"])
        assert struct.pack(">d", struct.unpack(">d", bits)[0]) == bits
