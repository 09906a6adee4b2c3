"""Header keys and strings that are no UTF-8, beside what Java makes of them."""

from __future__ import annotations

import random

import pyarrow
import pytest

import kwire
from tools.kafka.oracle import Oracle

pytestmark = pytest.mark.java

_SIGNS = bytes.fromhex("41 7f 80 8f 90 9f a0 af bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 f7 f8 ff")
WIDTH = 8


def test_malformed_text(oracle: Oracle) -> None:
    dice = random.Random(4)
    keys = [bytes(dice.choices(_SIGNS, k=WIDTH)) for _ in range(5000)]
    keys += [bytes(dice.choices(_SIGNS, k=WIDTH - size)) + end for size in (1, 2, 3, 4) for end in (
        b"\xed\xa0\x80"[:size].ljust(size, b"A"), b"\xf0\x90\x80\x80"[:size], b"\xf4\x8f\xbf\xbf"[:size],
        b"\xe0\xa0\x80"[:size].rjust(size, b"A"),
    )]
    batch = kwire.build_batch([(0, None, None, [(f"{number:0{WIDTH}}", None) for number in range(len(keys))])])
    for number, key in enumerate(keys):
        batch = batch.replace(b"%0*d" % (WIDTH, number), key, 1)
    batch = bytearray(batch)
    batch[17:21] = kwire.crc32c(batch[21:]).to_bytes(4, "big")
    answer = oracle.ask("read", hex=batch.hex())
    wanted = [key for key, _ in answer["batches"][0]["records"][0]["headers"]]
    ((record,),) = kwire.read_batches(batch)
    assert [key for key, _ in record.headers] == wanted
    (headers,) = pyarrow.table(kwire.columns(batch, ["headers"]))["headers"].to_pylist()
    assert [header["key"] for header in headers] == wanted
    for key, text in zip(keys, wanted, strict=True):
        request = kwire.decode("SaslHandshakeRequest", 0, len(key).to_bytes(2, "big") + key, lenient=True)
        assert request.mechanism == text
