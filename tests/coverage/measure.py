"""Line coverage of kwire_c's .pyx (Cython's linetrace) and branch coverage of its C (gcov), each at least 95 %.

python -m tests.coverage.measure [PYTEST ARGUMENTS]: in a copy of the tree under build/coverage, so that the checkout's
own extensions stay as they are. make coverage calls it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.places import ROOT

COPY = ROOT / "build" / "coverage"
LEAST = 95
# what touches kwire_c; the others run the same code through Spark, brokers and commands
TESTS = [
    "tests/codec", "tests/compression", "tests/primitives",
    *(f"tests/storage/test_{name}.py" for name in (
        "scanner", "segment", "transactions", "damage", "splits", "shared_iterators")),
    "tests/hostile/test_user_code.py", "tests/spark/test_modes.py", "tests/cli/test_record_lines.py",
    "tests/hostile/test_limits.py::test_a_request_for_memory_that_fails_gives_the_right_value_or_a_memory_error",
    "--deselect=tests/hostile/test_user_code.py::test_a_record_made_again",  # the tracer holds on to what it looks for
    "--deselect=tests/storage/test_shared_iterators.py::test_eight_threads",  # the tracer lets threads in at each line
    # traced functions ask for the interpreter, which has ended
    "--deselect=tests/codec/test_record_columns_arrow.py::test_releases_after_python_has_ended",
    "--deselect=tests/codec/test_messages_memory.py",  # 15 minutes under tracing, of code that the others run too
]
SETTINGS = r"""
[run]
plugins = Cython.Coverage
include = kwire_c/*
# Cython's plugin cannot report a .pxd without a .pyx of its name
omit = kwire_c/*.pxd
parallel = true
sigterm = true
[report]
# what only a failed allocation of Python's own comes to; those of the C core fail in tests/fuzz/short.c
exclude_lines =
    raise MemoryError
    return MemoryError\(\)
    raw_no_memory\(\)
    raise_set\(\)
    KW_PYTHON, 0\)
    except MemoryError:
    return ENOMEM
"""


def run(*command: str, check: bool = True) -> int:
    environment = {**os.environ, "PYTHONPATH": str(COPY), "KWIRE_COVERAGE": "1"}
    return subprocess.run(command, cwd=COPY, env=environment, check=check).returncode


def copy_tree() -> None:
    """The files that git knows, and those built before: only what has changed is built again."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        source, target = ROOT / name, COPY / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


def main(arguments: list[str]) -> int:
    copy_tree()
    (COPY / ".coveragerc").write_text(SETTINGS)
    for old in [*COPY.rglob("*.gcda"), *COPY.glob(".coverage.*")]:
        old.unlink()
    run(sys.executable, "setup.py", "-q", "build_ext", "--inplace")
    for made in (COPY / "build" / "cython" / "kwire_c").glob("*.c"):  # the tracer looks for them beside the .pyx
        shutil.copy2(made, COPY / "kwire_c" / made.name)
    run(sys.executable, "-m", "coverage", "run", "-m", "pytest", "-q", "-m", "not soak", *(arguments or TESTS))
    run(sys.executable, "-m", "tests.coverage.core")
    run(sys.executable, "-m", "coverage", "combine", "-q")
    lines = run(sys.executable, "-m", "coverage", "report", "-m", "--include=kwire_c/*.pyx", f"--fail-under={LEAST}",
                check=False)  # fmt: skip
    branches = run(
        str(Path(sys.executable).with_name("gcovr")), "--root", ".", "--object-directory", "build",
        "--filter", "kwire_c/core/", "--exclude", ".*crc32c_arm.*", "--txt-metric", "branch",
        "--exclude-throw-branches", "--exclude-unreachable-branches", "--fail-under-branch", str(LEAST), check=False,
    )
    for what, failed in (("lines of .pyx", lines), ("branches of C", branches)):
        print(f"{what}: {LEAST} % {'NOT met' if failed else 'met'}")
    return int(bool(lines or branches))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
