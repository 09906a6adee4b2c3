"""errors="keep": columns and batches leave out the same bytes, also where a damaged payload has a sound checksum."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import kwire


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
