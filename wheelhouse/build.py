"""Wheels from the checkout: one source distribution, built for an old glibc, labelled by auditwheel."""

from __future__ import annotations

import shlex
import shutil
import sys
import tarfile
from pathlib import Path

from wheelhouse.commands import RecipeError, module, need, run
from wheelhouse.interpreters import Interpreter
from wheelhouse.targets import OLDEST_GLIBC, Target

ROOT = Path(__file__).resolve().parents[1]


def source_distribution(folder: Path) -> Path:
    """Write kwire-VERSION.tar.gz of this checkout into a folder; return its path."""
    module("build", "--sdist", "--no-isolation", "--outdir", folder, ROOT)
    return next(folder.glob("kwire-*.tar.gz"))


def unpacked(archive: Path, folder: Path) -> Path:
    """The tree of a source distribution, with the C that Cython makes, which is the same for all targets."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    tree = folder / archive.name.removesuffix(".tar.gz")
    run([sys.executable, "setup.py", "-q", "--version"], tree)  # setup.py runs Cython before any command
    return tree


def zig(target: Target, folder: Path) -> Path:
    """A script that compiles and links for a target: setuptools needs a compiler of one word."""
    script = folder / "cc"
    triplet = f"{target.triplet}.{OLDEST_GLIBC}"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ziglang cc -target {triplet} "$@"\n')
    script.chmod(0o755)
    return script


def wheel(tree: Path, interpreter: Interpreter, folder: Path) -> Path:
    """Build a target's wheel from an unpacked source distribution in an empty folder; return the path of the wheel.

    The Python that runs this recipe runs setuptools for every target: headers, the suffix of the modules and the
    platform are the target's, and the tag of the wheel is corrected afterwards. zig links for the old glibc; it also
    compiles where gcc would have to be a cross-compiler (gcc's code decodes messages a fifth faster than zig's clang).
    """
    target = interpreter.target
    folder.mkdir(parents=True)
    copy = Path(shutil.copytree(tree, folder / "tree"))
    headers = interpreter.copy_headers(folder / "headers")
    linker = zig(target, folder)
    compiler = need("gcc", "gcc") if target.native else str(linker)
    flags = f"-DNDEBUG -fwrapv -g0 -I{shlex.quote(str(headers))}"
    module(
        "build", "--wheel", "--no-isolation", "--outdir", folder / "plain", copy,
        CC=compiler, LDSHARED=f"{linker} -shared", CFLAGS=flags, LDFLAGS="-Wl,-s",
        SETUPTOOLS_EXT_SUFFIX=target.suffix, _PYTHON_HOST_PLATFORM=f"linux-{target.machine}",
    )  # fmt: skip
    plain = only(folder / "plain")
    module("wheel", "tags", "--remove", f"--python-tag={target.tag}", f"--abi-tag={target.tag}", plain)
    label = [f"--plat=manylinux2014_{target.machine}", "--only-plat"] if target.native else []
    module("auditwheel", "repair", *label, "--wheel-dir", folder / "repaired", only(folder / "plain"))
    return only(folder / "repaired")


def only(folder: Path) -> Path:
    """The path of the only wheel in a folder."""
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise RecipeError(f"expected one wheel in {folder}, found {sorted(path.name for path in wheels)}")
    return wheels[0]
