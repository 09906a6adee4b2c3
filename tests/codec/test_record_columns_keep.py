"""errors="keep": columns and batches leave out the same bytes, also where a damaged payload has a valid checksum."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest

import kwire


@pytest.mark.quick
@pytest.mark.parametrize("fields", [("offset", "key"), ("value", "headers")])
@pytest.mark.parametrize("views", [False, True])
def test_a_wrong_byte_anywhere_in_a_long_batch(fields: tuple[str, ...], views: bool) -> None:
    """The checksum is what is wrong, whatever else a wrong byte does, and no row of the batch is left."""
    rows = [(i, b"k%d" % i if i % 7 else None, bytes(40), [("h", None if i % 5 else b"x")]) for i in range(400)]
    before, long, after = (kwire.build_batch(rows[:some], base_offset=base)
                            for base, some in ((0, 3), (3, 400), (403, 5)))
    expected = pa.concat_tables([pa.table(kwire.columns(one, fields, views=views)) for one in (before, after)])
    for at in [21, 57, 60, *range(61, len(long), 97), len(long) - 1]:
        damaged = bytearray(long)
        damaged[at] ^= 0x81
        with pytest.raises(kwire.CorruptBatchError, match="checksum does not match") as caught:
            kwire.columns(before + damaged + after, fields, views=views)
        assert (caught.value.position, caught.value.offset) == (len(before), 3)
        found = kwire.columns(before + damaged + after, fields, views=views, errors="keep")
        assert [(bad.position, len(bad.raw)) for bad in found.bad] == [(len(before), len(long))]
        assert pa.table(found).equals(expected)


@pytest.mark.quick
@pytest.mark.parametrize("tail", [b"", b"\0" * 5])
def test_the_same_bytes_are_bad(vectors: Path, tail: bytes) -> None:
    with gzip.open(vectors / "records-corrupt.jsonl.gz", "rt") as lines:
        for case in map(json.loads, lines):
            data = bytes.fromhex(case["hex"]) + tail
            found = kwire.read_batches(data, errors="keep")
            bad = [(batch.position, batch.raw) for batch in found if isinstance(batch, kwire.BadBatch)]
            columns = kwire.columns(data, errors="keep")
            assert [(batch.position, batch.raw) for batch in columns.bad] == bad, case["name"]
