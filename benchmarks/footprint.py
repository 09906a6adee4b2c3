"""Size on disk and import time of kwire and its Python peers."""

from __future__ import annotations

import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from rich.table import Table

# name -> its packages, and the imports of a program that reads messages and records
PACKAGES = {
    "kwire": (("kwire", "kwire_c"), "import kwire; kwire.decode, kwire.read_batches"),
    "kio": (("kio",), "import kio.serial, kio.schema.fetch.v12.request"),
    "kafka-python": (("kafka",), "import kafka"),
    "aiokafka": (("aiokafka",), "import aiokafka"),
}
TIMED = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def size(package: str) -> int | None:
    """Bytes of a package's files, without caches and C sources; None if it is not installed."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    files = [path for path in Path(spec.origin).parent.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sum(path.stat().st_size for path in files if path.suffix not in (".c", ".h", ".pyx", ".pxd"))


def import_time(code: str, rounds: int) -> float:
    """Seconds of the import in a new Python process: the median of the rounds."""
    command = [sys.executable, "-c", TIMED.format(code)]
    return statistics.median(
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(rounds)
    )


def table(rounds: int = 7) -> Table:
    """A table with one line for each package."""
    output = Table(title="size and import")
    for head in ("package", "MB on disk", "ms to import"):
        output.add_column(head, justify="left" if head == "package" else "right")
    for name, (packages, code) in PACKAGES.items():
        sizes = [size(package) for package in packages]
        if None not in sizes:
            total = sum(part for part in sizes if part is not None)
            output.add_row(name, f"{total / 1e6:.1f}", f"{import_time(code, rounds) * 1e3:.0f}")
    return output
