"""Builds, inspects and tries wheels, all of them or those asked for: python -m wheelhouse [cp311-x86_64 ...]."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from wheelhouse import build, inspection, interpreters, manifest, trial
from wheelhouse.commands import NotHereError, RecipeError, run
from wheelhouse.targets import TARGETS, Target


def say(name: str, text: str) -> None:
    """One line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {name}: {text}", flush=True)


def make(target: Target, tree: Path, work: Path) -> tuple[Path, dict[str, Any]]:
    """Builds, inspects and tries one wheel inside a folder; its path, and what the manifest is to say of it."""
    interpreter = interpreters.find(target)
    wheel = build.wheel(tree, interpreter, work)
    say(target.name, f"built, {wheel.stat().st_size} bytes")
    inspection.inspect(wheel, target, built_in=work)
    python = trial.try_alone(wheel, interpreter, work)
    say(target.name, "inspected; runs README's first example of the core with cramjam alone")
    tests = trial.try_tests(wheel, target, python, work)
    say(target.name, tests)
    facts = {"python": target.version, "machine": target.machine, "emulated": not target.native, "tests": tests}
    if target.native:
        trial.try_spark(wheel, target, python, work)
        say(target.name, "runs README's first example, of Spark")
    return wheel, facts


def make_all(targets: list[Target], work: Path, into: Path) -> dict[str, RecipeError]:
    """Makes the source distribution and these wheels, a few at a time; they replace what stands in the folder.

    Returns why a target has no wheel, by its name.
    """
    archive = build.source_distribution(work)
    tree = build.unpacked(archive, work / "source")
    for old in (*into.glob("*.whl"), *into.glob("kwire-*.tar.gz")):
        old.unlink()
    shutil.copy(archive, into)
    facts: dict[str, dict[str, Any]] = {}
    failures: dict[str, RecipeError] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        source = pool.submit(trial.try_source, archive, work / "from-source")
        made = {target.name: pool.submit(make, target, tree, work / target.name) for target in targets}
        for name, future in {archive.name: source, **made}.items():
            try:
                wheel, facts_of_one = future.result()
            except RecipeError as error:
                failures[name] = error
                say(name, f"no wheel: {error}")
            else:
                facts[wheel.name] = facts_of_one
                shutil.copy(wheel, into)
    manifest.write(into, facts, {name: str(error) for name, error in failures.items()})
    return failures


def commit_time() -> str:
    """When the last commit was made, in seconds since 1970: the same sources give the same bytes."""
    try:
        told = run(["git", "log", "-1", "--format=%ct"], build.ROOT)
    except (OSError, RecipeError):  # no git, or no clone
        return str(int(time.time()))
    return told.strip()


def main() -> int:
    """Makes wheels into the folder told; 1 if one of them is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m wheelhouse", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=" ".join(target.name for target in TARGETS))
    parser.add_argument("--into", type=Path, default=build.ROOT / "wheelhouse", help="where they land")
    chosen = parser.parse_args()
    unknown = set(chosen.targets) - {target.name for target in TARGETS}
    if unknown:
        parser.error(f"no such target: {' '.join(sorted(unknown))}; there are {' '.join(t.name for t in TARGETS)}")
    wanted = [target for target in TARGETS if not chosen.targets or target.name in chosen.targets]
    try:  # before all the work
        chosen.into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--into: {error}")
    os.environ.setdefault("SOURCE_DATE_EPOCH", commit_time())
    with tempfile.TemporaryDirectory(prefix="wheels-") as work:
        failures = make_all(wanted, Path(work), chosen.into.resolve())
    return int(any(name in chosen.targets or not isinstance(error, NotHereError) for name, error in failures.items()))


if __name__ == "__main__":
    sys.exit(main())
