"""Builds, inspects and tests wheels, all or the given ones: python -m wheelhouse [cp311-x86_64 ...]."""

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
    """Print one line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {name}: {text}", flush=True)


def make(target: Target, tree: Path, work: Path) -> tuple[Path, dict[str, Any]]:
    """Build, inspect and test one wheel in a folder; return its path and its entry in the manifest."""
    interpreter = interpreters.find(target)
    wheel = build.wheel(tree, interpreter, work)
    say(target.name, f"built, {wheel.stat().st_size} bytes")
    inspection.inspect(wheel, target, built_in=work)
    python = trial.try_alone(wheel, interpreter, work)
    say(target.name, "inspected; README's first example of the core runs with cramjam alone")
    tests = trial.try_tests(wheel, target, python, work)
    say(target.name, tests)
    entry = {"python": target.version, "machine": target.machine, "emulated": not target.native, "tests": tests}
    if target.native:
        trial.try_spark(wheel, target, python, work)
        say(target.name, "README's first example of Spark runs")
    return wheel, entry


def make_all(targets: list[Target], work: Path, into: Path) -> dict[str, RecipeError]:
    """Make the source distribution and these wheels, a few at a time; they replace those in the folder.

    Returns the errors of targets without a wheel, by name.
    """
    archive = build.source_distribution(work)
    tree = build.unpacked(archive, work / "source")
    for old in (*into.glob("*.whl"), *into.glob("kwire-*.tar.gz")):
        old.unlink()
    shutil.copy(archive, into)
    entries: dict[str, dict[str, Any]] = {}
    failures: dict[str, RecipeError] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        source = pool.submit(trial.try_source, archive, work / "from-source")
        made = {target.name: pool.submit(make, target, tree, work / target.name) for target in targets}
        for name, future in {archive.name: source, **made}.items():
            try:
                wheel, entry = future.result()
            except RecipeError as error:
                failures[name] = error
                say(name, f"no wheel: {error}")
            else:
                entries[wheel.name] = entry
                shutil.copy(wheel, into)
    manifest.write(into, entries, {name: str(error) for name, error in failures.items()})
    return failures


def commit_time() -> str:
    """The time of the last commit in seconds since 1970, so that builds are reproducible."""
    try:
        time_text = run(["git", "log", "-1", "--format=%ct"], build.ROOT)
    except (OSError, RecipeError):  # git is missing, or this is not a clone
        return str(int(time.time()))
    return time_text.strip()


def main() -> int:
    """Make wheels in the given folder; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m wheelhouse", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=" ".join(target.name for target in TARGETS))
    parser.add_argument("--into", type=Path, default=build.ROOT / "wheelhouse", help="the folder to write them to")
    arguments = parser.parse_args()
    unknown = set(arguments.targets) - {target.name for target in TARGETS}
    if unknown:
        known = " ".join(target.name for target in TARGETS)
        parser.error(f"unknown target: {' '.join(sorted(unknown))}; the targets are {known}")
    wanted = [target for target in TARGETS if not arguments.targets or target.name in arguments.targets]
    try:  # fail before the work
        arguments.into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--into: {error}")
    os.environ.setdefault("SOURCE_DATE_EPOCH", commit_time())
    with tempfile.TemporaryDirectory(prefix="wheels-") as work:
        failures = make_all(wanted, Path(work), arguments.into.resolve())
    named = arguments.targets
    return int(any(name in named or not isinstance(error, NotHereError) for name, error in failures.items()))


if __name__ == "__main__":
    sys.exit(main())
