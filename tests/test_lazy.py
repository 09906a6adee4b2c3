"""Packages that import at first use: what type checkers see is what there is."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import kwire

pytestmark = pytest.mark.quick

PACKAGES = ("kwire", "kwire.capture", "kwire.fleet", "kwire.net", "kwire.schema", "kwire.spark", "kwire.storage")


@pytest.mark.parametrize("name", PACKAGES)
def test_checkers_see_the_names_that_there_are(name: str) -> None:
    package = import_module(name)
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    others = ("__future__", "kwire", "kwire.lazy", "kwire.version", "kwire_c.hooks")
    seen: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module not in others:
            seen.setdefault(str(node.module), set()).update(alias.name for alias in node.names)
    assert seen == {module: set(names) for module, names in package._NAMES.items()}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_there(name: str) -> None:
    package = import_module(name)
    for public in package.__all__:
        value = getattr(package, public)
        assert value is getattr(package, public) and public in dir(package)


def test_no_module_hides_a_public_name() -> None:
    """A module of a package is an attribute of it once it is imported, so it must not be called as a public name is."""
    root = Path(str(kwire.__file__)).parent
    for name in PACKAGES:
        folder = root.joinpath(*name.split(".")[1:])
        below = [*folder.glob("*.py"), *(path.parent for path in folder.glob("*/__init__.py"))]
        modules = {path.stem for path in below}
        package = import_module(name)
        assert not modules & set(package.__all__), name


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"'kwire\.net' has no attribute 'nothing'"):
        kwire.net.nothing  # noqa: B018


def test_a_checkout_that_is_not_compiled(tmp_path: Path) -> None:
    """Python finds it before an installed kwire: a new checkout is the current folder."""
    root = Path(str(kwire.__file__)).parents[1]
    (tmp_path / "kwire").symlink_to(root / "kwire")
    (tmp_path / "kwire_c").mkdir()
    for path in root.glob("kwire_c/*.py"):
        shutil.copy(path, tmp_path / "kwire_c")
    said = f"{tmp_path / 'kwire_c'}: the C extensions are not compiled: make build compiles them"
    for line, code in (("import kwire; kwire.read_batches", 1), ("from kwire.storage import LogSegment", 1),
                       ("import kwire.cli; raise SystemExit(kwire.cli.main(['log', 'ls', '.']))", 2)):
        ran = subprocess.run([sys.executable, "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert ran.returncode == code and said in ran.stderr.splitlines()[-1], ran.stderr
