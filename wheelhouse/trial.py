"""Tests of a wheel as shipped: installed into a fresh environment, with the tests copied out of the checkout."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from wheelhouse.build import ROOT
from wheelhouse.commands import RecipeError, module, need, run
from wheelhouse.interpreters import Interpreter
from wheelhouse.targets import Target

FOLDERS = ("codec", "compression", "primitives")  # the core, with all vectors
NEEDED_BY_TESTS = ["pytest>=8", "pytest-timeout", "hypothesis", "numpy", "pandas", "polars", "duckdb"]
EXAMPLE_PRINTS = "42 1700000000000 b'key' b'value'"

ALONE = """
import importlib.metadata, kwire, kwire_c, sys
from kwire_c.crc32c import variants
for package in (kwire, kwire_c):
    assert package.__file__.startswith(sys.prefix), package.__file__
print(*sorted(package.name for package in importlib.metadata.distributions()), variants()[0])
"""


def try_alone(wheel: Path, interpreter: Interpreter, folder: Path) -> Path:
    """Install a wheel into a fresh environment in folder, run README's first example of the core; return its python.

    RecipeError if it installs more than cramjam, or does not use the processor's crc32c on ARM.
    """
    python = interpreter.new_environment(folder / "environment")
    install(interpreter.target, python, wheel)
    *packages, crc32c = run([python, "-c", ALONE], folder).split()
    if packages != ["cramjam", "kwire"]:
        raise RecipeError(f"{wheel.name} installs {packages}")
    if interpreter.target.machine == "aarch64" and crc32c != "armv8-crc-pmull":
        raise RecipeError(f"{wheel.name} uses the crc32c {crc32c}")
    printed = run([python, "-c", core_example()], folder)
    if EXAMPLE_PRINTS not in printed:
        raise RecipeError(f"{wheel.name}: README's example prints {printed}")
    return python


def try_tests(wheel: Path, target: Target, python: Path, folder: Path) -> str:
    """Run the core's tests from folder, which is not a checkout, with the wheel installed; return pytest's summary."""
    install(target, python, f"kwire[arrow,fast] @ {wheel.as_uri()}", *NEEDED_BY_TESTS)
    for name in ("tests", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    shutil.copy(ROOT / "pyproject.toml", folder)  # for pytest's settings
    output = run(
        [python, "-m", "pytest", "-q", "-m", "not soak and not java and not checkout", "--timeout=3600", "-p",
         "no:cacheprovider", *(f"tests/{name}" for name in FOLDERS)],
        folder,
    )  # fmt: skip
    summary = output.strip().splitlines()[-1]
    if "passed" not in summary or "skipped" in summary:
        raise RecipeError(f"{wheel.name}: {summary}")
    return summary


def try_spark(wheel: Path, target: Target, python: Path, folder: Path) -> None:
    """Run README's first example, Spark over a folder of segments, with the wheel installed."""
    install(target, python, f"kwire[spark,cli] @ {wheel.as_uri()}")
    commands, examples = blocks("console")[0], blocks("python")[0]
    (folder / "example.py").write_text(f"{examples}\nspark.stop()\n")
    unpack = commands.splitlines()[0].removeprefix("$ ")
    run(["sh", "-c", unpack], folder)
    printed = run([python, "example.py"], folder, PYSPARK_PYTHON=str(python), SPARK_LOCAL_IP="127.0.0.1")
    if "|alpha-gzip|" not in printed:
        raise RecipeError(f"{wheel.name}: README's example of Spark prints {printed[-3000:]}")


def try_source(archive: Path, folder: Path) -> tuple[Path, dict[str, Any]]:
    """Install the source distribution with pip and this machine's compiler; return the archive and an empty entry."""
    need("cc", "gcc")
    module("twine", "check", "--strict", archive)
    environment = folder / "environment"
    run([sys.executable, "-m", "venv", "--without-pip", environment])
    module("pip", "--python", environment / "bin" / "python", "install", "-q", archive)
    run([environment / "bin" / "python", "-c", core_example()], folder)
    return archive, {}


def install(target: Target, python: Path, *wanted: str | Path) -> None:
    """Install packages into an environment of a target, with the pip of the Python that runs this recipe.

    pip is run by the environment's own Python, so that the target's tags decide. Under an emulator it does not download
    the wheels: this machine does so first.
    """
    pip: list[str | Path] = ["--python", python, "install", "-q", "--no-warn-script-location"]
    if not target.native:
        brought = python.parents[1] / "brought"
        platforms = [f"manylinux_2_{minor}_{target.machine}" for minor in range(17, 37)]
        module(
            "pip", "download", "-q", "--dest", brought, "--only-binary=:all:", "--python-version", target.version,
            *(f"--platform={platform}" for platform in [*platforms, f"manylinux2014_{target.machine}"]), *wanted,
        )  # fmt: skip
        pip += ["--no-index", "--find-links", brought]
    module("pip", *pip, *wanted)


def blocks(language: str) -> list[str]:
    """The code blocks of a language in README.md."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)


def core_example() -> str:
    """README's first example that needs nothing but the wheel."""
    return next(block for block in blocks("python") if "pyspark" not in block and "import kwire\n" in block)
