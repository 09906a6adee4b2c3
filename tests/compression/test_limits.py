"""Bombs and missing libraries, each in a child process: bounded memory, one family of errors."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import kwire
from kwire.compression import compress, decompress
from tests.compression.bombs import BOMBS, MIB, batch
from tools.places import ROOT

CHILD = """
import json, resource, sys
sys.modules.update(dict.fromkeys({blocked!r}))  # None there makes an import fail
from kwire import KwireError
from kwire.compression import compress, decompress, libraries

def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

def mapped():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[0]) * resource.getpagesize()

def outcome(work):
    try:
        return len(work())
    except KwireError as error:
        return [type(error).__name__, str(error), getattr(error, "limit", None), isinstance(error, ImportError)]

{work}
"""

BOMB = """
data = sys.stdin.buffer.read()
decompress({codec!r}, compress({codec!r}, b"warm" * 30_000), limit=1 << 20)  # the library is loaded
before, room = peak(), mapped() + (512 << 20)
resource.setrlimit(resource.RLIMIT_AS, (room, room))
result = outcome(lambda: decompress({codec!r}, data, limit={limit}))
print(json.dumps([result, peak() - before]))
"""

BATCH = """
import kwire
data = sys.stdin.buffer.read()
warm = kwire.build_batch([(0, b"key", b"warm" * 30_000)], codec={codec!r})
list(next(kwire.read_batches(warm)))
len(kwire.columns(warm))
before, room = peak(), mapped() + (512 << 20)
resource.setrlimit(resource.RLIMIT_AS, (room, room))
reads = {{
    "objects": lambda: [list(batch) for batch in kwire.read_batches(data, max_batch_bytes={limit})],
    "columns": lambda: kwire.columns(data, max_batch_bytes={limit}),
    "views": lambda: kwire.columns(data, views=True, max_batch_bytes={limit}),
}}
print(json.dumps([{{way: outcome(read) for way, read in reads.items()}}, peak() - before]))
"""

MISSING = """
good = json.loads(sys.stdin.read())
print(json.dumps([
    {{codec: outcome(lambda: decompress(codec, bytes.fromhex(data), limit=1 << 20)) for codec, data in good.items()}},
    {{codec: outcome(lambda: compress(codec, b"text")) for codec in good}},
    libraries(),
]))
"""


def child(work: str, data: bytes, blocked: tuple[str, ...] = ()) -> Any:
    script = CHILD.format(blocked=blocked, work=work)
    done = subprocess.run([sys.executable, "-c", script], input=data, capture_output=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return json.loads(done.stdout)


FAST = ("isal", "zstandard", "lz4", "lz4.block")


@pytest.mark.parametrize("blocked", [(), FAST], ids=["fast", "core"])
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_bounded_memory(name: str, blocked: tuple[str, ...]) -> None:
    """Growth under twice the cap, with 512 MiB of address space to spare."""
    codec, make, expected = BOMBS[name]
    limit = 64 * MIB
    (error, text, reported, _), growth = child(BOMB.format(codec=codec, limit=limit), make(), blocked)
    assert error == expected, text
    if error == "LimitError":
        assert reported == limit
    assert growth < 2 * limit, f"{growth / MIB:.0f} MiB"


@pytest.mark.quick
@pytest.mark.parametrize("name", ["gzip", "zstd-unstated", "lz4", "snappy-declared"])
def test_a_bomb_under_a_small_cap(name: str) -> None:
    codec, make, expected = BOMBS[name]
    (error, text, _, _), growth = child(BOMB.format(codec=codec, limit=16 * MIB), make())
    assert error == expected, text
    assert growth < 32 * MIB, f"{growth / MIB:.0f} MiB"


@pytest.mark.quick
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_any_number_is_a_limit(codec: str) -> None:
    """What passes 64 bits is no limit; below 0 nothing may come out."""
    data = kwire.build_batch([(0, b"k" * 100, b"v" * 1000)], codec=codec)
    for limit in (2**63 - 1, 2**63, 10**30, -1, -(2**62), -(2**63) - 1, -(10**30)):
        if limit > 0 or codec == "none":
            assert sum(len(list(batch)) for batch in kwire.read_batches(data, max_batch_bytes=limit)) == 1
            assert len(kwire.columns(data, max_batch_bytes=limit)) == 1
        else:
            with pytest.raises(kwire.LimitError, match="limit 0, "):
                [list(batch) for batch in kwire.read_batches(data, max_batch_bytes=limit)]
            with pytest.raises(kwire.LimitError, match="limit 0, "):
                kwire.columns(data, max_batch_bytes=limit)


@pytest.mark.quick
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_any_number_is_a_limit_of_one_call(codec: str) -> None:
    data = compress(codec, b"v" * 1000)
    for limit in (1000, 2**63 - 1, 2**63, 10**5000):
        assert bytes(decompress(codec, data, limit=limit)) == b"v" * 1000


@pytest.mark.parametrize("name", ["gzip", "zstd-unstated", "zstd-stated", "lz4", "snappy-declared", "snappy-raw"])
def test_a_batch_that_is_a_bomb(name: str) -> None:
    """The same through read_batches and columns."""
    codec, make, _ = BOMBS[name]
    limit = 64 * MIB
    small = kwire.build_batch([(0, None, b"x")])
    answers, growth = child(BATCH.format(codec=codec, limit=limit), small + batch(codec, make()))
    for way, (error, text, reported, _) in answers.items():
        assert (error, reported) == ("LimitError", limit), f"{way}: {text}"
        assert text.endswith(f"at byte {len(small)}")
    assert growth < 2 * limit, f"{growth / MIB:.0f} MiB"


def payloads() -> bytes:
    from kwire_c.codecs import CODECS as NAMES

    return json.dumps({codec: compress(codec, b"some text " * 9000).hex() for codec in NAMES[1:]}).encode()


@pytest.mark.quick
def test_cramjam_alone_does_for_every_codec() -> None:
    read, written, libraries = child(MISSING.format(), payloads(), FAST)
    assert read == dict.fromkeys(("gzip", "snappy", "lz4", "zstd"), 90_000)
    assert all(isinstance(size, int) for size in written.values())
    assert libraries["gzip"].startswith("zlib ")
    assert {codec: libraries[codec].split()[0] for codec in ("snappy", "lz4", "zstd")} == dict.fromkeys(
        ("snappy", "lz4", "zstd"), "cramjam"
    )


@pytest.mark.quick
def test_without_cramjam_the_fast_extra_does_all_but_snappy() -> None:
    read, written, libraries = child(MISSING.format(), payloads(), ("cramjam",))
    for answers in (read, written):
        error, text, _, is_import_error = answers.pop("snappy")
        assert error == "MissingCodecError" and is_import_error and "pip install cramjam" in text
        assert all(isinstance(size, int) for size in answers.values())
    assert libraries["snappy"] == "missing"


@pytest.mark.quick
def test_without_any_library() -> None:
    read, written, libraries = child(MISSING.format(), payloads(), ("cramjam", *FAST))
    for answers in (read, written):
        assert isinstance(answers.pop("gzip"), int)  # zlib is part of Python
        for codec, (error, text, _, is_import_error) in answers.items():
            assert error == "MissingCodecError" and is_import_error, codec
            assert "pip install cramjam" in text and (codec == "snappy" or "kwire[fast]" in text)
    assert [libraries[codec] for codec in ("snappy", "lz4", "zstd")] == ["missing"] * 3
