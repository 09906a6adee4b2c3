"""From the checkout to wheels: one source distribution, built for an old C library, labelled by auditwheel."""

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
    """Writes kwire-VERSION.tar.gz of this checkout into a folder; its path."""
    module("build", "--sdist", "--no-isolation", "--outdir", folder, ROOT)
    return next(folder.glob("kwire-*.tar.gz"))


def unpacked(archive: Path, folder: Path) -> Path:
    """The tree of a source distribution, with Cython's work, which is the same for all targets, done."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    tree = folder / archive.name.removesuffix(".tar.gz")
    run([sys.executable, "setup.py", "-q", "--version"], tree)  # setup.py has Cython write its C before any command
    return tree


def zig(target: Target, folder: Path) -> Path:
    """A program that compiles and links for a target: the compilers of setuptools are commands of one word."""
    script = folder / "cc"
    triplet = f"{target.triplet}.{OLDEST_GLIBC}"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ziglang cc -target {triplet} "$@"\n')
    script.chmod(0o755)
    return script


def wheel(tree: Path, interpreter: Interpreter, folder: Path) -> Path:
    """Builds a target's wheel from an unpacked source distribution inside an empty folder; the path of the wheel.

    The Python that runs this recipe drives setuptools for every target: headers, the suffix of the modules and the
    platform are the target's, and the label of the wheel is mended behind. zig links for the old C library; it compiles
    too where gcc would be a cross-compiler (gcc's code decodes messages a fifth faster than that of zig's clang).
    """
    target = interpreter.target
    folder.mkdir(parents=True)
    own = Path(shutil.copytree(tree, folder / "tree"))
    headers = interpreter.copy_headers(folder / "headers")
    linker = zig(target, folder)
    compiler = need("gcc", "gcc") if target.native else str(linker)
    flags = f"-DNDEBUG -fwrapv -g0 -I{shlex.quote(str(headers))}"
    module(
        "build", "--wheel", "--no-isolation", "--outdir", folder / "plain", own,
        CC=compiler, LDSHARED=f"{linker} -shared", CFLAGS=flags, LDFLAGS="-Wl,-s",
        SETUPTOOLS_EXT_SUFFIX=target.suffix, _PYTHON_HOST_PLATFORM=f"linux-{target.machine}",
    )  # fmt: skip
    plain = only(folder / "plain")
    module("wheel", "tags", "--remove", f"--python-tag={target.tag}", f"--abi-tag={target.tag}", plain)
    label = [f"--plat=manylinux2014_{target.machine}", "--only-plat"] if target.native else []
    module("auditwheel", "repair", *label, "--wheel-dir", folder / "repaired", only(folder / "plain"))
    return only(folder / "repaired")


def only(folder: Path) -> Path:
    """The one wheel in a folder."""
    found = list(folder.glob("*.whl"))
    if len(found) != 1:
        raise RecipeError(f"{folder} has {len(found)} wheels: {sorted(path.name for path in found)}")
    return found[0]
