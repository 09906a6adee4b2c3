"""Extensions built with address and undefined-behaviour sanitisers, apart from those in use, and runs under them."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from tools import places
from tools.places import ROOT

KINDS = {
    "sanitized": {"KWIRE_SANITIZE": "1"},
    "fuzzed": {"KWIRE_FUZZ": "1", "CC": "clang", "LDSHARED": "clang -shared"},  # for tests/fuzz/face.py
}
PLANTED = "record_batch,decode"  # the extensions that read the heads of records, and messages


def _compiler() -> str:
    return os.environ.get("CC", sysconfig.get_config_var("CC") or "cc").split()[0]


def runtime() -> str:
    """The paths of what must be loaded before Python: the compiler's address sanitiser, and C++ for its exceptions."""
    compiler, paths = _compiler(), []
    for name in ("libasan.so", "libstdc++.so.6"):
        ran = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True)
        paths.append(ran.stdout.strip())
        if ran.returncode or not os.path.isabs(paths[-1]):
            raise RuntimeError(f"{compiler} has no {name}: apt-get install gcc g++")
    return " ".join(paths)


def content() -> bytes:
    """All that the extensions are built from."""
    files = [ROOT / "setup.py", *sorted((ROOT / "kwire_c").rglob("*.py"))]
    for ending in ("pyx", "pxd", "h", "c"):
        files += sorted((ROOT / "kwire_c").rglob(f"*.{ending}"))
    version = subprocess.run([_compiler(), "--version"], capture_output=True).stdout
    return b"\0".join(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() for path in files) + version


def extensions(kind: str = "sanitized", plant: bool = False) -> Path:
    """A folder with the package kwire_c, built in one of KINDS; with plant it has an out-of-bounds read.

    Kept by content.
    """
    name = f"planted-{kind}" if plant else kind
    target = places.cache() / f"{name}-{places.digest(content(), sys.version.encode())}"
    if target.exists():  # nobody waits for the build of another checkout
        return target
    with open(places.cache() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            for old in places.cache().glob(f"{name}-*"):
                if old.is_dir() and old.stat().st_mtime < time.time() - 86400:  # another checkout may use a younger one
                    shutil.rmtree(old)
            fresh = Path(tempfile.mkdtemp(dir=places.cache(), prefix=f"{name}."))
            try:
                _build(fresh, kind, plant)
                fresh.rename(target)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
    return target


def _build(fresh: Path, kind: str, plant: bool) -> None:
    switches = KINDS[kind]
    if plant:
        shutil.copytree(extensions(kind), fresh, dirs_exist_ok=True)
        switches = switches | {"KWIRE_PLANT": "1", "KWIRE_ONLY": PLANTED}
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "setup.py", "-q", "build_ext", "-f", "-j2", "--build-lib", str(fresh)]
        built = subprocess.run(
            [*command, "--build-temp", scratch], cwd=ROOT, env=os.environ | switches, capture_output=True, text=True
        )
    if built.returncode:
        raise RuntimeError(f"the {kind} build failed:\n{built.stderr[-4000:]}")
    for path in (ROOT / "kwire_c").glob("*.py"):
        shutil.copy(path, fresh / "kwire_c")


PYTEST = """
import sys, kwire_c, pytest
assert kwire_c.__file__.startswith(sys.argv[1]), kwire_c.__file__
sys.exit(pytest.main(sys.argv[2:]))
"""


def tests(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest ARGUMENTS with the extensions of that folder, under the sanitisers."""
    quiet = ("-q", "-p", "no:cacheprovider", "--import-mode=append")  # append: the checkout's own build comes last
    return run(folder, "-c", PYTEST, str(folder), *quiet, *arguments)


def before(library: Path) -> str:
    """LD_PRELOAD with a library that comes before all others, the sanitiser's too."""
    return " ".join([str(library), *os.environ.get("LD_PRELOAD", "").split()])


def run(folder: Path, *arguments: str, timeout: int = 900) -> subprocess.CompletedProcess[str]:
    """python ARGUMENTS with the extensions of that folder, under the sanitisers."""
    environment = os.environ | {
        "LD_PRELOAD": runtime(),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "PYTHONSAFEPATH": "1",  # in the processes that a harness starts too
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1024:"
        "verify_asan_link_order=0:"  # see before()
        "quarantine_size_mb=4",  # of freed memory: less than any bound of a harness on what is resident
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=timeout
    )
