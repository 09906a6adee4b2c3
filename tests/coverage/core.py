"""The kept inputs of the fuzzers on the C core, built for gcov: as they are, and with memory that falls short."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.fuzz import targets


def main(folder: Path) -> None:
    """Builds and runs the targets; what gcov counts goes to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in targets.TARGETS:
        cases = folder / f"{name}.cases"
        cases.write_bytes(targets.pack(targets.corpus(name)))
        for way in ("-DALONE", "-DSHORT") if name in targets.ALLOCATING else ("-DALONE",):
            program = folder / f"{name}{way}"
            command = targets.build(name, program, way, "-O0", "--coverage", "-w", compiler="cc")
            subprocess.run([*command, cases], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(targets.ROOT / "build" / "core")
