"""mypy and basedpyright on a script beside an editable checkout, and beside what a wheel holds."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.places import ROOT

pytestmark = pytest.mark.checkout

HERE = Path(__file__).parent
SCRIPTS = ["typed_script.py", "wrong_script.py"]  # without an error, and with one in each line that is marked
PACKAGES = ("kwire", "kwire_c", "pyspark_kwire")


def mypy(folder: Path) -> list[tuple[str, int]]:
    """(file, line) of each error that mypy finds in the scripts of a folder."""
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--python-executable",
         str(folder / "venv/bin/python"), "--cache-dir", str(folder / "cache"), *SCRIPTS],
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stdout + run.stderr
    print(run.stdout)
    lines = [re.match(r"([^:]+):(\d+): error: (.*)", line) for line in run.stdout.splitlines()]
    return sorted({(match[1], int(match[2])) for match in lines if match})


def basedpyright(folder: Path) -> list[tuple[str, int]]:
    """The same of basedpyright."""
    (folder / "pyrightconfig.json").write_text(json.dumps(
        {"typeCheckingMode": "standard", "pythonVersion": "3.11", "venvPath": str(folder), "venv": "venv",
         "include": SCRIPTS}))
    run = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(folder)],
        capture_output=True, text=True, cwd=folder,
    )
    errors = [item for item in json.loads(run.stdout)["generalDiagnostics"] if item["severity"] == "error"]
    print(json.dumps(errors, indent=1))
    return sorted({(Path(item["file"]).name, item["range"]["start"]["line"] + 1) for item in errors})


def environment(folder: Path, path: Path | None) -> Path:
    """A virtual environment in which kwire is installed: by a path (editable), or as the files that a wheel has."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    (site,) = (folder / "venv/lib").glob("python*/site-packages")
    libraries = next(part for part in sys.path if part.endswith("site-packages"))
    for name in ("pandas", "polars", "numpy", "pyspark", "pyarrow"):
        if Path(libraries, name).exists():
            (site / name).symlink_to(Path(libraries, name))
    if path is not None:
        (site / "__editable__.kwire.pth").write_text(f"{path}\n")
        return folder
    kept = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert all("py.typed" in kept[package] for package in PACKAGES)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, site / package, ignore=_unlike_a_wheel(kept[package]))
    return folder


def _unlike_a_wheel(kept: list[str]) -> Callable[[str, list[str]], set[str]]:
    assert ("*.pyi" in kept) is (kept != ["py.typed"])
    return lambda folder, names: {
        name for name in names
        if not os.path.isdir(os.path.join(folder, name)) and not name.endswith((".py", ".pyi", "py.typed"))
    }


def wrong_lines(name: str) -> list[tuple[str, int]]:
    lines = (HERE / name).read_text().splitlines()
    return [(name, number) for number, line in enumerate(lines, 1) if line.endswith("# wrong")]


@pytest.mark.parametrize("check", [mypy, basedpyright])
@pytest.mark.parametrize("installed", ["editable", "wheel"])
def test_scripts(tmp_path: Path, installed: str, check: Callable[[Path], list[tuple[str, int]]]) -> None:
    folder = environment(tmp_path, ROOT if installed == "editable" else None)
    for name in SCRIPTS:
        shutil.copy(HERE / name, tmp_path)
    assert check(folder) == [line for name in SCRIPTS for line in wrong_lines(name)]


@pytest.mark.quick
def test_an_editable_install_is_a_path() -> None:
    """setuptools' default is an import hook, which type checkers do not run."""
    assert '"editable_wheel": {"mode": "compat"}' in (ROOT / "setup.py").read_text()
