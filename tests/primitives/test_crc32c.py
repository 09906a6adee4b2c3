"""CRC-32C: every variant of this processor against Kafka's values, the table, and pure Python."""

from __future__ import annotations

import array
import json
import mmap
import random
import shutil
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kwire
from kwire_c.crc32c import crc32c, crc32c_with, variants
from tests.primitives import checks
from tools.places import ROOT

CORE = checks.CORE
SOURCES = [str(CORE / name) for name in checks.SOURCES["crc32c_check"]]
CHECK = str(checks.HERE / "crc32c_check.c")


@pytest.fixture(scope="module")
def primitives(vectors: Path) -> dict[str, Any]:
    with open(vectors / "primitives.json") as lines:
        value: dict[str, Any] = json.load(lines)
    return value


def pattern(length: int) -> bytes:
    return bytes((i * 31 + (i >> 8)) & 0xFF for i in range(length))


@pytest.mark.quick
def test_vectors(primitives: dict[str, Any]) -> None:
    cases = [(bytes.fromhex(case["hex"]), case) for case in primitives["crc"]]
    cases += [(pattern(case["length"]), case) for case in primitives["crcPattern"]]
    assert len(cases) == 41
    for data, case in cases:
        assert kwire.crc32c(data) == case["crc32c"]
        assert zlib.crc32(data) == case["crc32"]
        for variant in variants():
            assert crc32c_with(variant, data) == case["crc32c"], (variant, len(data))


@pytest.mark.quick
def test_every_variant_at_every_small_size() -> None:
    assert variants()[-1] == "table"
    data = random.Random(1).randbytes(1300)
    for size in range(1200):
        piece = memoryview(data)[size % 67 : size % 67 + size]
        expected = crc32c_with("table", piece, size * 7919)
        assert {crc32c_with(variant, piece, size * 7919) for variant in variants()} == {expected}
        assert crc32c(piece, size * 7919) == expected


@pytest.mark.quick
@pytest.mark.parametrize("size", [4095, 4096, 4097, 16383, 16384, 32767, 32768, 100_003, 1 << 20])
def test_every_variant_at_large_sizes(size: int) -> None:
    data = random.Random(size).randbytes(size + 9)
    for start in (0, 1, 9):
        piece = memoryview(data)[start : start + size]
        expected = crc32c_with("table", piece, 5)
        assert {crc32c_with(variant, piece, 5) for variant in variants()} == {expected}
        assert crc32c(piece, 5) == expected


@given(st.binary(max_size=3000), st.data())
def test_parts_continue(data: bytes, draw: st.DataObject) -> None:
    cut = draw.draw(st.integers(0, len(data)))
    for variant in variants():
        assert crc32c_with(variant, data[cut:], crc32c_with(variant, data[:cut])) == crc32c(data)


@pytest.mark.quick
@pytest.mark.parametrize("size", [9, 40_000])
def test_any_contiguous_buffer(size: int) -> None:
    data = (b"123456789" * size)[:size]
    expected = crc32c(data)
    numbers = array.array("I", range(size))
    area = mmap.mmap(-1, size)
    area[:] = data
    read_only = numpy.frombuffer(data, dtype=numpy.uint8)
    assert not read_only.flags.writeable
    views: list[Any] = [bytearray(data), memoryview(data), memoryview(bytearray(data)), area]
    for other in [*views, pyarrow.py_buffer(data), read_only]:
        assert crc32c(other) == expected
        assert crc32c_with("table", other) == expected
    assert crc32c(numbers) == crc32c(memoryview(numbers)) == crc32c(numbers.tobytes())
    area.close()


@pytest.mark.quick
def test_what_is_no_buffer_or_no_value() -> None:
    with pytest.raises(TypeError):
        crc32c("text")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        crc32c(b"", "1")  # type: ignore[arg-type]
    with pytest.raises(BufferError):
        crc32c(memoryview(b"123456")[::2])
    for value in (-1, 1 << 32):
        with pytest.raises(OverflowError):
            crc32c(b"", value)
    with pytest.raises(KeyError):
        crc32c_with("abacus", b"")
    assert crc32c(b"", 0xFFFFFFFF) == 0xFFFFFFFF
    assert crc32c(b"6789", numpy.uint32(crc32c(b"12345"))) == crc32c(data=b"123456789", value=0) == 0xE3069283


@pytest.mark.quick
def test_a_buffer_is_given_back() -> None:
    for size in (10, 40_000):
        data = bytearray(size)
        crc32c(data)
        crc32c_with("table", data)
        data.append(1)  # BufferError if somebody still held it


@pytest.mark.quick
def test_threads_choose_alike() -> None:
    """In a process of its own: the first checksums of all come from many threads at once."""
    code = (
        "import threading\nfrom kwire_c.crc32c import crc32c\n"
        "gate, seen = threading.Barrier(8), []\n"
        "def run():\n gate.wait()\n seen.append({crc32c(b'123456789') for _ in range(1000)})\n"
        "threads = [threading.Thread(target=run) for _ in range(8)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "assert seen == [{0xe3069283}] * 8, seen\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_lock_is_given_up_for_large_data() -> None:
    """Another thread goes on while a checksum runs; its steps are counted, nothing is timed."""
    data, steps, done = bytes(1 << 26), [0], threading.Event()

    def walk() -> None:
        while not done.is_set():
            steps[0] += 1
            time.sleep(0)  # gives the lock back

    before = sys.getswitchinterval()
    other = threading.Thread(target=walk)
    other.start()
    sys.setswitchinterval(1000)  # nobody is made to give the lock up: it must be given
    try:
        seen, rounds = steps[0], 0
        while steps[0] == seen and rounds < 1000:
            crc32c(data)
            rounds += 1
        assert steps[0] > seen
        seen = steps[0]
        crc32c(b"small")
        assert steps[0] == seen
    finally:
        sys.setswitchinterval(before)
        done.set()
        other.join()


@pytest.mark.quick
@pytest.mark.parametrize("size", [0, 1, 6, 7, 8, 9, 15, 100, 5_000, 70_001])
@pytest.mark.parametrize("magic", [0, 1])
def test_the_checksum_of_magic_0_and_1_is_that_of_zlib(size: int, magic: int) -> None:
    batch = bytearray(kwire.build_batch([(1, b"k" * (size % 7), random.Random(size).randbytes(size))], magic=magic))
    assert int.from_bytes(batch[12:16], "big") == zlib.crc32(batch[16:])
    assert len(list(kwire.read_batches(batch))) == 1
    batch[-1] ^= 1
    with pytest.raises(kwire.CorruptBatchError, match="checksum"):
        list(kwire.read_batches(batch))


@pytest.mark.quick
@pytest.mark.checkout
def test_the_constants_are_fresh() -> None:
    script = CORE / "crc32c_constants.py"
    text = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True).stdout
    assert text == (CORE / "crc32c_constants.h").read_text(), f"run: python {script.name} > crc32c_constants.h"


@pytest.mark.checkout
def test_the_c_alone(tmp_path: Path) -> None:
    """The C without Python, against the definition, with the sanitisers awake."""
    program = tmp_path / "check"
    checks.build("crc32c_check", program, "-O2", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
    assert tuple(checks.run(program)) == variants()


@pytest.mark.checkout
def test_processors_that_have_less(tmp_path: Path) -> None:
    """Only what the processor and the system have is used, best first."""
    checks.build("crc32c_check", tmp_path / "check", "-O2")
    for lacks, left in checks.LESS.items():
        assert checks.run(tmp_path / "check", lacks) == [name for name in left if name in variants()], lacks


@pytest.mark.soak
@pytest.mark.checkout
def test_arm(tmp_path: Path) -> None:
    """The ARM variants, cross-compiled, under the emulator."""
    emulator = shutil.which("qemu-aarch64-static")
    assert emulator, "qemu-aarch64-static is missing: apt-get install qemu-user-static"
    compiler, link = ["aarch64-linux-gnu-gcc"], ["-static"]
    if not shutil.which(compiler[0]):
        compiler = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl"]
        probe = subprocess.run([*compiler, "--version"], capture_output=True)
        assert probe.returncode == 0, (
            "no compiler for ARM: apt-get install gcc-aarch64-linux-gnu, or pip install ziglang"
        )
    program = str(tmp_path / "check")
    subprocess.run([*compiler, "-std=c11", "-O2", *link, f"-I{CORE}", CHECK, *SOURCES, "-o", program], check=True)
    ran = subprocess.run([emulator, program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["armv8-crc-pmull", "armv8-crc", "table"]
