"""The C core alone, built for gcov: the inputs of its fuzzers, with memory that falls short too, and its checks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.fuzz import targets
from tests.primitives import checks

WAYS = {"records": ("-DALONE", "-DSHORT", targets.NARROW), "containers": ("-DALONE",), "plans": ("-DALONE", "-DSHORT")}


def main(folder: Path) -> None:
    """Builds and runs the targets; what gcov counts goes to the folder."""
    shutil.rmtree(folder, ignore_errors=True)  # counters of older sources
    folder.mkdir(parents=True)
    for name in targets.TARGETS:
        cases = folder / f"{name}.cases"
        cases.write_bytes(targets.pack(targets.cases(name)))
        for number, way in enumerate(WAYS[name]):
            options = (way, *(() if way == "-DSHORT" else ("-DALONE",)), "-O0", "--coverage", "-w")
            command = targets.build(name, folder / f"{name}{number}", *options, compiler="cc")
            subprocess.run([*command, cases], check=True, stdout=subprocess.DEVNULL)
    for name in checks.SOURCES:
        checks.build(name, folder / name, "-O0", "--coverage")
        for lacks in {"": (), **checks.LESS} if name == "crc32c_check" else ("",):
            checks.run(folder / name, lacks)


if __name__ == "__main__":
    main(targets.ROOT / "build" / "core")
