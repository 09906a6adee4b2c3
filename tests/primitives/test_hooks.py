"""What kwire hands down to kwire_c: nothing is imported before it is needed, and without kwire it says so."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.quick


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_without_kwire() -> None:
    ran = run("from kwire_c.decode import decode; decode('HeartbeatRequest', 0, b'')")
    assert ran.returncode and ran.stderr.endswith("RuntimeError: kwire_c is internal to kwire: import kwire first\n")


def test_what_is_handed_down_is_imported_at_its_first_use() -> None:
    ran = run(
        "import sys, kwire; batch = kwire.build_batch([(0, b'k', b'v')]); list(kwire.read_batches(batch))\n"
        "assert not any('compression' in name or 'schema' in name for name in sys.modules if 'kwire' in name)\n"
        "batch = kwire.build_batch([(0, b'k', b'v')], codec='gzip')\n"
        "assert [record.value for batch in kwire.read_batches(batch) for record in batch] == [b'v']\n"
    )
    assert ran.returncode == 0, ran.stderr
