"""Commands where the system starts no more threads, neither kwire's nor those of a library (ulimit -u)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_log import ROOT
from tests.storage.making import batch, write_segment

REFUSED = """
#include <errno.h>
int pthread_create(void *thread, const void *attributes, void *(*run)(void *), void *argument) { return EAGAIN; }
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that refuses every thread."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "a C compiler is missing: install gcc"
    source = tmp_path_factory.mktemp("threads") / "refused.c"
    source.write_text(REFUSED)
    library = source.with_suffix(".so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


@pytest.mark.parametrize("command", [
    "log ls logs", "log show logs/t-0", "log stats logs", "log verify logs", "log stats logs --plot out.png",
    "log to-parquet logs -o out.parquet", "log export logs/t-0/00000000000000000000.log -o out.csv",
])  # fmt: skip
def test_a_command_ends_as_with_threads(command: str, refused: Path, tmp_path: Path) -> None:
    for partition in range(3):
        write_segment(tmp_path / "logs" / f"t-{partition}", 0, [batch(0)])
    environment = {name: text for name, text in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    ran = subprocess.run(
        [sys.executable, "-m", "kwire", *command.split()], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**environment, "PYTHONPATH": str(ROOT), "LD_PRELOAD": str(refused)},
    )
    assert (ran.returncode, "interrupted" in ran.stderr) == (0, False), ran.stderr
    assert all(out.stat().st_size for out in tmp_path.glob("out.*"))
    assert len([*tmp_path.iterdir()]) == 1 + ("out." in command)
