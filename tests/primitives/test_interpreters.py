"""kwire belongs to the first interpreter of a process that imports it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.quick

CHILD = """
import sys
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
    other = interpreters.create("legacy")
else:
    import _xxsubinterpreters as interpreters
    other = interpreters.create(isolated=False)
import kwire
code = f"import sys; sys.path[:] = {sys.path}; import kwire; kwire.{sys.argv[1]}"
try:
    failed = interpreters.run_string(other, code)
except interpreters.RunFailedError as error:
    failed = error
print("ImportError" in str(failed))
batch = kwire.build_batch([(1, b"key", b"value")])
print(len(kwire.columns(batch)), len(list(kwire.read_batches(batch))), kwire.messages.FetchRequest())
"""


@pytest.mark.parametrize("name", ["crc32c", "build_batch", "decode", "messages.FetchRequest", "storage.LogSegment"])
def test_another_one_takes_nothing_from_it(name: str) -> None:
    """What the other one tried to load could not be loaded by the first one any more."""
    ran = subprocess.run([sys.executable, "-c", CHILD, name], capture_output=True, text=True, timeout=100)
    assert ran.stdout.split("\n")[:2] == ["True", "1 1 FetchRequest()"], ran.stdout + ran.stderr
