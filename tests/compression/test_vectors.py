"""Every compressed batch among the vectors: the verdict of Kafka's own iterators."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kwire import KwireError
from kwire.compression import decompress

pytestmark = pytest.mark.quick


class Payload(NamedTuple):
    magic: int
    codec: int
    count: int  # records in it, -1 where the format does not say
    data: bytes


def payloads(log: bytes) -> Iterator[Payload]:
    """The compressed payloads of whole batches one after the other."""
    at = 0
    while len(log) - at >= 17:
        end = at + 12 + int.from_bytes(log[at + 8 : at + 12], "big", signed=True)
        batch, magic = log[at:end], log[at + 16]
        if end > len(log):
            return
        if magic == 2:
            codec, start, size, count = batch[22] & 7, 61, len(batch), int.from_bytes(batch[57:61], "big")
        else:
            codec, start, count = batch[17] & 7, 18 + 8 * magic, -1
            start += 4 + max(0, int.from_bytes(batch[start : start + 4], "big", signed=True))  # the key
            size = start + 4 + int.from_bytes(batch[start : start + 4], "big", signed=True)
            start += 4
        if codec:
            yield Payload(magic, codec, count, batch[start:size])
        at = end


def records(plain: bytes) -> int:
    """How many length-prefixed records fill the bytes exactly, -1 if they do not."""
    at = count = 0
    while at < len(plain):
        size = shift = 0
        while True:
            size |= (plain[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if plain[at - 1] < 128:
                break
        if size & 1:
            return -1
        at, count = at + (size >> 1), count + 1
    return count if at == len(plain) else -1


def test_compressed_files(vectors: Path) -> None:
    """records.zip: all of Kafka's writers' batches decompress, to the records that they say they hold."""
    seen = set()
    with zipfile.ZipFile(vectors / "records.zip") as archive:
        for name in archive.namelist():
            for payload in payloads(archive.read(name)):
                plain = bytes(decompress(payload.codec, payload.data, limit=64 << 20, magic=payload.magic))
                seen.add((payload.magic, payload.codec))
                assert payload.magic < 2 or payload.count == records(plain), name
    assert seen == {(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (2, 4)}


CASES = ("variant-", "-lz4-", "-empty-payload", "zstd-trailing", "-gzip-ok", "-gzip-empty-value", "v2-codec-")


def test_variants(vectors: Path) -> None:
    """records-corrupt: what other clients may write, and damage; trailing bytes show as a wrong count, as in Java."""
    wrong, seen = [], 0
    with gzip.open(vectors / "records-corrupt.jsonl.gz", "rt") as lines:
        for case in map(json.loads, lines):
            if not any(part in case["name"] for part in CASES):
                continue
            seen += 1
            (payload,) = payloads(bytes.fromhex(case["hex"]))
            try:
                plain = bytes(decompress(payload.codec, payload.data, limit=64 << 20, magic=payload.magic))
                accepted = payload.magic < 2 or payload.count == records(plain)
            except KwireError:
                accepted = False
            if accepted != (case["batches"][0]["iterate"] == "ok"):
                wrong.append(case["name"])
    assert not wrong
    assert seen > 45
