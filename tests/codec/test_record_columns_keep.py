"""errors="keep": columns and batches leave out the same bytes, also where a damaged payload has a valid checksum."""

from __future__ import annotations

import gzip
import json
import mmap
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kwire
from tests.hostile import inputs


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


def refused(data: bytes) -> kwire.KwireError:
    with pytest.raises(kwire.CorruptBatchError) as caught:
        kwire.columns(data)
    return caught.value.with_traceback(None)


@pytest.mark.quick
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("read", [
    lambda data: list(kwire.read_batches(data * 20, errors="keep")),
    lambda data: kwire.columns(data * 20, errors="keep"),
    lambda data: [refused(data) for _ in range(20)],
])  # fmt: skip
def test_an_error_keeps_nothing_of_what_was_decompressed(codec: str, read: Callable[[bytes], object]) -> None:
    """Its context kept the codec's frames: 16 MiB for each 8 KiB of gzip."""
    for at in (-6, 65):  # in the last block or trailer; in the first header
        data = bytearray(kwire.build_batch([(0, None, bytes(1 << 20))], codec=codec))
        data[at] ^= 0xFF
        bad = bytes(inputs.with_checksum(data))
        if kwire.columns(bad, errors="keep").bad == []:
            continue  # lz4 and snappy: another value of the record
        read(bad)  # what is kept for the next call
        tracemalloc.start()
        try:
            kept = read(bad), tracemalloc.get_traced_memory()[0]
            assert kept[1] < 20 * (len(bad) + 1024) + (256 << 10)
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("what", ["limit", "damage"])
@pytest.mark.parametrize("control", [False, True])
def test_a_marker_that_cannot_be_read_is_said(what: str, control: bool) -> None:
    """It may abort its transaction: the records of that were given as if they were committed, without a word."""
    ids: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    data = kwire.build_batch([(1, b"k", b"v")], **ids)
    filler = b"\0\0" + bytes(3000)
    marker = bytearray(kwire.build_batch([(2, bytes(4), filler)], base_offset=1, control=True,
                                         codec="gzip" if what == "limit" else "none", **ids))
    if what == "damage":
        marker[61] = 2  # the record's length
        marker[17:21] = kwire.crc32c(marker[21:]).to_bytes(4, "big")
    options: dict[str, Any] = {"committed": True, "control": control, "max_batch_bytes": 1000}
    with pytest.raises(kwire.KwireError):
        kwire.columns([b"", data + marker], **options)
    found = kwire.columns([b"", data + marker + data[:-1] + b"?"], errors="keep", **options)
    assert found["value"].to_pylist() == [b"v"]
    assert [(bad.source, bad.position, bytes(bad.raw)) for bad in found.bad] == [
        (1, len(data), bytes(marker)), (1, len(data) + len(marker), data[:-1] + b"?")]


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_a_damaged_marker_is_bad_once(codec: str) -> None:
    """A compressed one was there twice: by its checksum, and as what its bytes cannot be decompressed to."""
    marker = bytearray(kwire.build_batch([(2, bytes(4), bytes(6))], control=True, producer_id=7, producer_epoch=0,
                                         transactional=True, codec=codec))  # fmt: skip
    marker[61] ^= 0xFF
    for control in (False, True):
        (bad,) = kwire.columns(bytes(marker), errors="keep", committed=True, control=control).bad
        assert "checksum does not match" in str(bad.error)
    with pytest.raises(kwire.CorruptBatchError, match="checksum does not match"):
        kwire.columns(bytes(marker), committed=True)


@pytest.mark.parametrize("verify_crc", [False, True])
def test_a_compressed_control_batch_without_records_is_valid(verify_crc: bool) -> None:
    """As in DefaultRecordBatch.iterator: its payload, here no gzip stream, is not looked at."""
    empty = bytearray(kwire.build_batch([(2, bytes(4), bytes(6))], control=True, producer_id=7, producer_epoch=0,
                                        transactional=True, codec="gzip")[:61] + b"none")  # fmt: skip
    empty[8:12] = (len(empty) - 12).to_bytes(4, "big")
    empty[57:61] = bytes(4)
    data = bytes(inputs.with_checksum(empty)) + kwire.build_batch([(0, b"k", b"v")])
    assert [batch.count for batch in kwire.read_batches(data)] == [0, 1]
    for committed in (False, True):
        assert kwire.columns(data, committed=committed, verify_crc=verify_crc)["value"].to_pylist() == [b"v"]


def test_views_keep_nothing_of_a_batch_without_rows() -> None:
    """What a bad batch was decompressed to stayed alive with the columns: 16 MiB for each 16 KiB of gzip."""
    good = kwire.build_batch([(0, None, bytes(100)), (1, b"k", b"v" * 50)], codec="gzip")
    bad = bytearray(kwire.build_batch([(0, None, b"v")], codec="gzip")[:61] + gzip.compress(bytes(1 << 20)))
    bad[8:12] = (len(bad) - 12).to_bytes(4, "big")
    data = good + bytes(inputs.with_checksum(bad)) * 20 + good
    found = kwire.columns(data, errors="keep", views=True)
    assert len(found.bad) == 20 and found.nbytes < len(data) + 10_000
    assert found["value"].to_pylist() == [bytes(100), b"v" * 50] * 2
    assert pa.table(found)["value"].to_pylist() == found["value"].to_pylist()


def test_columns_without_views_keep_no_blocks() -> None:
    """Offsets and headers kept all that was decompressed: 16 MiB for 16 KiB of gzip."""
    data = kwire.build_batch([(0, None, bytes(1 << 20), [("h", b"x")])], codec="gzip") * 16
    for fields in (("offset",), ("headers", "codec")):
        found = kwire.columns(data, fields, views=True)
        assert len(found) == 16 and found.nbytes < 1000
        assert pa.table(found) == pa.table(kwire.columns(data, fields))
    assert kwire.columns(data, ("value",), views=True).nbytes > 16 << 20


def test_inputs_above_1_gib_count_once_in_nbytes() -> None:
    """Views have a buffer from each 2^30th byte to the end of the input."""
    size = (1 << 31) - 1
    data = mmap.mmap(-1, size)  # none of its pages is read
    data[:61] = kwire.build_batch([(0, None, b"v")])[:57] + bytes(4)
    data[8:12] = (size - 12).to_bytes(4, "big")
    assert kwire.columns(data, ["value"], views=True, verify_crc=False).nbytes == size
