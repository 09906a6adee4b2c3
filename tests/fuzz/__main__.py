"""Fuzzes for long: python -m tests.fuzz [TARGET...] --seconds 1800 --keep (make fuzz)."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.fuzz import targets

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("targets", nargs="*", default=[*targets.TARGETS, targets.FACE])
parser.add_argument("--seconds", type=int, default=1800)
parser.add_argument("--keep", action="store_true", help="write what is new, minimised, to tests/data/fuzz")
chosen = parser.parse_args()
failed = False
with ThreadPoolExecutor(2) as pool:
    runs = pool.map(lambda name: targets.run(name, chosen.seconds, kept=chosen.keep), chosen.targets)
    for name, ran in zip(chosen.targets, runs, strict=True):
        failed |= ran.returncode != 0
        print(name, "\n".join(ran.stderr.splitlines()[-40 if ran.returncode else -8 :]), sep="\n", flush=True)
sys.exit(failed)
