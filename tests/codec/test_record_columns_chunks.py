"""Columns in several chunks, as where one would pass 2 GiB: here after a few bytes."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest

import kwire
from kwire.codec.record_columns import gather_columns

pytestmark = pytest.mark.quick
FIELDS = ("offset", "timestamp", "key", "value", "headers", "codec")


def log(magic: int, codec: str) -> bytes:
    """Batches of ten records with nulls among them, every other one compressed."""
    made = []
    for number in range(6):
        first = number * 10
        records: list[Any] = [(at, None if at % 3 else b"k", b"v%d" % at) for at in range(first, first + 10)]
        if magic == 2:
            records[4] = (4, b"key", None, [("h", b"x"), ("n", None)])
        used = codec if number % 2 else "none"
        if magic < 2 and used == "none":
            made += [kwire.build_batch([one], magic=magic, base_offset=one[0]) for one in records]
        else:
            made.append(kwire.build_batch(records, magic=magic, codec=used, base_offset=first))
    return b"".join(made)


def read(data: bytes, chunk_bytes: int, **options: Any) -> Any:
    return gather_columns([data], FIELDS, max_batch_bytes=1 << 20, chunk_bytes=chunk_bytes, **options)


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_chunks_hold_what_one_chunk_holds(magic: int, codec: str) -> None:
    data = log(magic, codec)
    whole = pyarrow.table(read(data, 1 << 20))
    assert whole.num_rows == 60 and whole["value"].num_chunks == 1
    least = 200 if magic == 2 else 400  # what a compressed batch comes to, and more
    cut = pyarrow.table(read(data, least))
    cut.validate(full=True)
    assert cut["value"].num_chunks > 1 and cut.to_pylist() == whole.to_pylist()
    with pytest.raises(ValueError, match="chunks: use __arrow_c_stream__"):
        read(data, least)["value"].__arrow_c_array__()


@pytest.mark.parametrize(("part", "chunks"), [("key", 5), ("value", 10)])
def test_headers_alone_fill_chunks(part: str, chunks: int) -> None:
    """A key counts three times: so long it may get when its bytes are no UTF-8."""
    headers = [("k" * 30, b"")] if part == "key" else [("", b"v" * 90)]
    data = b"".join(kwire.build_batch([(0, b"key", b"value", headers)] * 3, base_offset=at) for at in range(0, 30, 3))
    options: dict[str, Any] = {"max_batch_bytes": 1 << 20}
    whole = pyarrow.table(gather_columns([data], ("headers",), chunk_bytes=1 << 20, **options))
    cut = pyarrow.table(gather_columns([data], ("headers",), chunk_bytes=300, **options))
    assert whole["headers"].num_chunks == 1 and cut["headers"].num_chunks == chunks
    assert cut.to_pylist() == whole.to_pylist() and len(cut.to_pylist()[29]["headers"]) == 1
    with pytest.raises(kwire.LimitError):
        gather_columns([data], ("headers",), chunk_bytes=100, **options)


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("errors", ["raise", "keep"])
def test_a_batch_that_fills_more_than_a_chunk(codec: str, errors: str) -> None:
    small = kwire.build_batch([(0, b"k", b"v")])
    large = kwire.build_batch([(0, b"k", b"v" * 1000)], codec=codec, base_offset=1)
    with pytest.raises(kwire.LimitError) as caught:
        read(small + large, 400, errors="raise")
    assert (caught.value.limit, caught.value.offset) == (400, len(small))
    assert pyarrow.table(read(small + large, 4000, errors=errors)).num_rows == 2


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("views", [False, True])
def test_a_batch_that_fills_more_than_a_chunk_is_kept_as_a_bad_one(codec: str, views: bool) -> None:
    """It ended the read, where it is not compressed."""
    before, after = (kwire.build_batch([(0, b"k", b"v")], base_offset=at) for at in (0, 2))
    large = kwire.build_batch([(0, b"k", b"v", [("k" * 400, b"")])], codec=codec, base_offset=1)
    found = read(before + large + after, 1000, errors="keep", views=views)
    assert found["offset"].to_pylist() == [0, 2]
    (bad,) = found.bad
    assert (bad.position, bad.raw) == (len(before), large)
    assert isinstance(bad.error, kwire.LimitError)
