"""The fuzzers: three of the C core (libFuzzer) and one of the Python face (atheris), with their kept corpora."""

from __future__ import annotations

import lzma
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import kwire
from tests.hostile import sanitized
from tests.hostile.sanitized import ROOT
from tools import places
from tools.kafka.maven import MissingTool, need

HERE = Path(__file__).parent
CORE = ROOT / "kwire_c" / "core"
KEPT = places.DATA / "fuzz"  # NAME.xz: inputs, minimised
TARGETS = ("records", "containers", "plans")
ALLOCATING = ("records", "plans")
FACE = "face"
NARROW = "-D__builtin_cpu_supports(name)=0"  # a processor without AVX2, to columns.c
SANITIZERS = ["-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
LIMITS = ["-max_len=2048", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"]


def clang() -> str:
    """The path of clang, which has libFuzzer."""
    return need("clang", "clang")


def build(name: str, program: Path, *options: str, compiler: str = "") -> list[str]:
    """The command that runs a target of the C core, built from source. options: of the compiler."""
    sources = [str(HERE / f"{name}_target.c"), *(str(path) for path in sorted(CORE.glob("*.c")))]
    if "-DALONE" in options or "-DSHORT" in options:
        sources.append(str(HERE / "alone.c"))
    if "-DSHORT" in options:
        sources.append(str(HERE / "short.c"))
        options += tuple(f"-D{function}=short_{function}" for function in ("realloc", "mmap", "mremap"))
    flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", *SANITIZERS, *options, f"-I{CORE}", f"-I{HERE}"]
    subprocess.run([compiler or clang(), *flags, *sources, "-o", str(program)], check=True)
    return [str(program)]


def command(name: str, scratch: Path, plant: bool = False) -> tuple[list[str], dict[str, str]]:
    """(command, environment) of a fuzzer; with plant an out-of-bounds read stands in what it runs."""
    if name != FACE:
        planted = ["-DKWIRE_PLANT"] if plant else []
        return build(name, scratch / name, "-fsanitize=fuzzer,address,undefined", *planted), dict(os.environ)
    clang()
    try:
        import atheris
    except ImportError:
        raise MissingTool("atheris is missing: pip install atheris") from None
    folder = sanitized.extensions("fuzzed", plant)
    environment = os.environ | {
        "LD_PRELOAD": str(Path(atheris.path(), "asan_with_fuzzer.so")),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "KWIRE_EXTENSIONS": str(folder),
    }
    return [sys.executable, "-P", str(HERE / "face.py")], environment


def pack(inputs: Iterable[bytes]) -> bytes:
    """The form in which alone.c reads inputs too: (4 bytes little-endian length, bytes)."""
    return b"".join(struct.pack("<I", len(data)) + data for data in inputs)


def corpus(name: str) -> Iterator[bytes]:
    """The kept inputs of a fuzzer."""
    data, at = lzma.decompress((KEPT / f"{name}.xz").read_bytes()), 0
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        at += 4 + size
        yield data[at - size : at]


def cases(name: str) -> Iterator[bytes]:
    """The kept inputs, and one too large to keep: bitmaps of nulls that outgrow their first room, 32,768 rows."""
    yield from corpus(name)
    if name == "records":
        long = (0, b"k" * 1500, b"v" * 1500)
        yield kwire.build_batch([long, (0, None, None, [("", None)]), *[(0, b"", b"", [("", b"")])] * 33_000])


def keep(name: str, inputs: Iterable[bytes]) -> None:
    """Writes the kept inputs of a fuzzer, the short ones first."""
    chosen = sorted(set(inputs), key=lambda data: (len(data), data))
    (KEPT / f"{name}.xz").write_bytes(lzma.compress(pack(chosen), preset=9))


def run(name: str, seconds: int, plant: bool = False, kept: bool = False) -> subprocess.CompletedProcess[str]:
    """Fuzzes for so long, from the kept corpus on. kept: what is new stays in the corpus, minimised."""
    with tempfile.TemporaryDirectory() as scratch:
        at = Path(scratch)
        arguments, environment = command(name, at, plant)
        found = at / "corpus"
        found.mkdir()
        for number, data in enumerate(corpus(name)):
            (found / f"{number:05}").write_bytes(data)
        ran = subprocess.run(
            [*arguments, f"-max_total_time={seconds}", *LIMITS, str(found)],
            cwd=at, env=environment, capture_output=True, text=True, timeout=seconds + 600,
        )  # fmt: skip
        if kept and ran.returncode == 0:
            if name != FACE:  # libFuzzer cannot start Python again, so the face keeps all it found
                (at / "least").mkdir()
                subprocess.run(
                    [*arguments, "-merge=1", *LIMITS, str(at / "least"), str(found)],
                    cwd=at, env=environment, capture_output=True, check=True,
                )  # fmt: skip
                found = at / "least"
            keep(name, (path.read_bytes() for path in found.iterdir()))
    return ran
