"""Harnesses under ThreadSanitizer: python -m tests.hostile.thread_sanitizer Python-3.13.5.tar.xz [HARNESS ARGUMENTS].

The source of a CPython (of python.org, or `apt-get source python3.13`) is built without its lock and with the sanitiser
(clang, ten minutes), and kwire_c for it: both are kept in the cache. The harness (races) runs twice: with the lock,
which kwire_c makes Python turn on, and without it (PYTHON_GIL=0).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.hostile.sanitized import ROOT, content
from tools import places

CONFIGURED = ("--disable-gil", "--with-thread-sanitizer", "--disable-test-modules")
# the harnesses need the first; of the others those that are there for such a Python, from their sources too
PACKAGES = ("pyarrow", "numpy", "setuptools>=77", "Cython>=3.1", "click", "rich", "dpkt", "scramp", "pytest")
MORE = ("lz4", "zstandard", "cramjam", "isal")
# beside what CPython's developers know of it: libraries that are built without the sanitiser, which sees half of them
FOREIGN = """
race:libarrow
race:libstdc++
"""
# where cramjam (Rust) is not to be had: what kwire asks of it
CRAMJAM = """
import pyarrow
from lz4 import block

__version__ = "that is made of pyarrow and lz4"


class DecompressionError(Exception):
    pass


def _into(plain, data, room):
    try:
        made = plain(bytes(data))
    except (OSError, ValueError, RuntimeError) as error:
        raise DecompressionError(str(error)) from None
    memoryview(room)[: len(made)] = made
    return len(made)


class snappy:
    def compress_raw(data):
        return pyarrow.compress(bytes(data), "snappy", asbytes=True)

    def decompress_raw_into(data, room):
        return _into(lambda data: pyarrow.decompress(data, len(room), "snappy", asbytes=True), data, room)


class lz4:
    def decompress_block_into(data, room):
        return _into(lambda data: block.decompress(data, uncompressed_size=len(room)), data, room)
"""
SILENT = {"TSAN_OPTIONS": "report_bugs=0"}


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    subprocess.run(["nice", *command], cwd=cwd, env=os.environ | SILENT | environment, check=True, stdout=sys.stderr)


def interpreter(source: Path) -> Path:
    """The python that was built from that archive, with the packages that the harnesses import."""
    home = places.cache() / f"tsan-{places.digest(source.read_bytes(), repr(CONFIGURED).encode())}"
    python = home / "bin" / "python3"
    if not python.exists():
        with tempfile.TemporaryDirectory(dir=places.cache()) as scratch, tarfile.open(source) as archive:
            archive.extractall(scratch, filter="data")
            (folder,) = Path(scratch).iterdir()
            run(folder / "configure", f"--prefix={home}", *CONFIGURED, cwd=folder, CC="clang", CXX="clang++")
            run("make", "-s", f"-j{os.cpu_count()}", cwd=folder)
            run("make", "-s", "install", "COMPILEALL_OPTS=-q -x .", cwd=folder)  # none of its modules
            known = (folder / "Tools/tsan/suppressions_free_threading.txt").read_text()
            (home / "suppressions.txt").write_text(known + FOREIGN)
    if not (home / "packages").exists():
        pip = (python, "-m", "pip", "install", "-q", "--prefer-binary", "--root-user-action", "ignore")
        run(*pip, "--only-binary", ":all:", *PACKAGES)
        for package in MORE:
            try:
                run(*pip, package)
            except subprocess.CalledProcessError:
                print(f"{package}: there is none for this Python", file=sys.stderr)
        (packages,) = home.glob("lib/*/site-packages")
        if not (packages / "cramjam").exists():
            (packages / "cramjam.py").write_text(CRAMJAM)
        (home / "packages").touch()
    return python


def extensions(python: Path) -> Path:
    """A folder with the package kwire_c, built by that Python, whose own flags bring the sanitiser."""
    target = places.cache() / f"tsan-{places.digest(content(), str(python).encode())}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=places.cache()) as scratch:
            tree = Path(scratch)
            for name in ("setup.py", "pyproject.toml", "kwire_c", "kwire"):
                copied = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
                copied(ROOT / name, tree / name)
            for builder in (sys.executable, python):  # Cython is quicker in this Python, and writes the same C
                run(builder, "setup.py", "-q", "build_ext", "--inplace", "-j2", cwd=tree, KWIRE_DEBUG="1")
            target.mkdir()
            (tree / "kwire_c").rename(target / "kwire_c")
    return target


def main(arguments: list[str]) -> int:
    source, harness, *rest = *arguments, *(["races"] if len(arguments) == 1 else [])
    python = interpreter(Path(source))
    folder = extensions(python)
    suppressed = python.parents[1] / "suppressions.txt"
    options = f"suppressions={suppressed}:exitcode=66:history_size=4"
    environment = {
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "PYTHONSAFEPATH": "1", "TSAN_OPTIONS": options,
        "KWIRE_PATIENCE": "900",
    }  # fmt: skip
    codes = []
    for lock in ("", "0"):
        print(f"{harness} {'with' if not lock else 'without'} the lock", flush=True)
        ran = subprocess.run(
            [python, "-W", "ignore", "-m", f"tests.hostile.{harness}", *rest], cwd=ROOT,
            env=os.environ | environment | ({"PYTHON_GIL": lock} if lock else {}),
        )  # fmt: skip
        codes.append(ran.returncode)
        print(f"exit {ran.returncode}", flush=True)
    return max(map(abs, codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
