"""The Python face under atheris: python tests/fuzz/face.py CORPUS... with libFuzzer's own options.

The first bytes of an input say what is done with the rest: a message of some version, a frame, batches, columns, JSON.
What comes out is a value or a KwireError; what strict reading takes comes back byte for byte.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from contextlib import suppress
from typing import Any

import atheris

with atheris.instrument_imports(include=["kwire", "kwire_c"]):
    import kwire
    from kwire import schema

    for name in kwire.__all__:  # what is loaded before the start is what coverage counts
        getattr(kwire, name)

PAIRS = tuple(
    (one.name, version)
    for one in (schema.message(name) for name in sorted(schema.message_names()))
    for version in one.valid_versions.all()
)
LIMIT = 1 << 20  # most bytes that a batch may decompress to


def message(pair: tuple[str, int], data: Any) -> None:
    name, version = pair
    try:
        value = kwire.decode(name, version, data)
    except kwire.KwireError:
        value = None
    if value is not None:
        assert kwire.encode(value, version) == bytes(data)
        again = kwire.from_json(name, version, kwire.to_json(value, version))
        assert again == value and repr(value)
    with suppress(kwire.KwireError):
        value, end = kwire.decode_from(name, version, data, lenient=True, views=True)
        assert end <= len(data)
        kwire.encode(value, version)
    table = kwire.columns_of(name, version, [data, data], errors="keep")
    assert len(table) + len(table.bad) == 2


def frame(data: Any) -> None:
    whole: list[Any] = []
    with suppress(kwire.KwireError):
        whole = kwire.FrameReader(max_size=1 << 16).feed(data)
    for one in whole:
        with suppress(kwire.KwireError):
            request = kwire.decode_request(one)
            assert request.to_bytes() == bytes(one)
            kwire.decode_response(one, request)
    with suppress(kwire.KwireError):
        assert kwire.decode_request(data).to_bytes() == bytes(data)


def stored(data: Any) -> None:
    with suppress(kwire.KwireError):
        value, version = kwire.decode_metadata_record(data)
        assert kwire.encode_metadata_record(value, version) == bytes(data)
    cut = len(data) // 2
    for kind in ("group", "transaction", "share"):
        with suppress(kwire.KwireError):
            kwire.decode_coordinator_record(kind, data[:cut], data[cut:])


def batches(data: Any) -> None:
    rows = 0
    for batch in kwire.read_batches(data, verify_crc=False, errors="keep", max_batch_bytes=LIMIT):
        if not isinstance(batch, kwire.BadBatch):
            found = [(r.offset, r.timestamp, r.key, r.value, r.headers, r.sequence) for r in batch]
            assert len(found) == len(batch)
            rows += len(found)
    for views in (False, True):
        fields = ("offset", "timestamp", "key", "value", "headers", "batch_position")
        table = kwire.columns(
            data, fields, verify_crc=False, errors="keep", control=True, views=views, max_batch_bytes=LIMIT
        )
        assert len(table) == rows


def from_json(pair: tuple[str, int], data: Any) -> None:
    name, version = pair
    try:
        value = json.loads(bytes(data))
    except (ValueError, RecursionError):
        return
    with suppress(kwire.KwireError, TypeError):
        made = kwire.from_json(name, version, value)
        assert kwire.decode(name, version, kwire.encode(made, version)) == made


def one_input(data: bytes) -> None:
    if len(data) < 3:
        return
    pair = PAIRS[int.from_bytes(data[1:3], "big") % len(PAIRS)]
    rest = (ctypes.c_char * (len(data) - 3)).from_buffer_copy(data, 3)
    area = memoryview(rest).cast("B")
    what = data[0] % 8
    if what < 4:
        message(pair, area)
    elif what == 4:
        frame(area)
    elif what == 5:
        stored(area)
    elif what == 6:
        batches(area)
    else:
        from_json(pair, area)


if __name__ == "__main__":
    built = os.environ.get("KWIRE_EXTENSIONS", "")
    import kwire_c.decode

    assert str(kwire_c.decode.__file__).startswith(built), f"{kwire_c.decode.__file__} is not the build under test"
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
