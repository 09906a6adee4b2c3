"""CONTRIBUTING.md, docs/ and `make help` say what there is: targets, paths, names, and what each room may import."""

from __future__ import annotations

import re
import runpy
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import setuptools

from tests.docs.examples import blocks_of

pytestmark = [pytest.mark.quick, pytest.mark.checkout]

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = {name for line in re.findall(r"^\.PHONY:(.*)", MAKEFILE, re.M) for name in line.split()}

# What commands make, users give, or only other machines have
ELSEWHERE = {".venv/bin/activate", "~/.cache/kwire", "../kwire-before", "build/after", "build/before", "origin/main",
             "archive/logs", "__cluster_metadata-0/00000000000000000255-0000000001.checkpoint", "job.py", "OWNER/kwire",
             "wheelhouse/*.whl", "wheelhouse/*.tar.gz", "wheelhouse/manifest.json",
             "kwire-VERSION.dist-info/sboms/kwire.cdx.json"}  # fmt: skip
UNPACKED = "logs/data/kafka-4.3.0/data1"  # of the golden data, where examples find it

PATH = re.compile(r"(?:[\w.~-]+/)+[\w.*-]*|[\w-]+\.(?:py|pyx|pxd|h|md|toml)\b")


def code_of(page: Path) -> list[str]:
    """What is between backticks, and the lines of code blocks that are not run, without their comments."""
    text = page.read_text(encoding="utf-8")
    rest = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
    shown = [block for block in blocks_of(page) if "not run" in block.notes]
    lines = [line.split("  #")[0] for block in shown for line in block.lines]
    return [code for code in (*lines, *re.findall(r"`([^`]+)`", rest)) if not code.startswith("apt-get ")]


def table(title: str, width: int) -> list[list[str]]:
    """The rows of the table under a heading of architecture.md."""
    section = ARCHITECTURE.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")][2:]
    assert rows and {len(row) for row in rows} == {width}
    return [[cell.strip() for cell in row] for row in rows]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "SECURITY.md"], ids=lambda path: path.stem)
def test_make_targets(page: Path) -> None:
    named = {name for code in code_of(page) for name in re.findall(r"\bmake(?: -C \S+)? ([a-z0-9]+)\b", code)}
    assert named <= TARGETS


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_paths(page: Path) -> None:
    named = {path for code in code_of(page) for path in PATH.findall(code) if not path.startswith(UNPACKED)} - ELSEWHERE
    folders = [ROOT]
    if page.stem == "architecture":  # its journeys leave out kwire/ or kwire_c/, its table of rooms the room
        folders += [ROOT / "kwire", ROOT / "kwire_c", *(ROOT / room.replace(".", "/") for room in rooms())]
    assert not [name for name in named if not any(list(folder.glob(name)) for folder in folders)]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_links(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert all((page.parent / link).exists() for link in links), links


def test_names_with_dots() -> None:
    """`kwire_c.decode.decode`, `LogSegment.column_batches` and the like, where they begin with a package."""
    names = set(re.findall(r"`(kwire(?:_c)?(?:\.\w+)+)(?:\(.*?\))?`", ARCHITECTURE)) - {"kwire_c.core"}
    assert len(names) > 5
    for name in names:
        module, _, attribute = name.rpartition(".")
        try:
            import_module(name)
        except ModuleNotFoundError:
            assert hasattr(import_module(module), attribute), name


def rooms() -> dict[str, list[str]]:
    """Room as the import contract calls it -> its row."""
    return {row[0].strip("`").removesuffix(".py").replace("/", "."): row for row in table("Rooms", 4)}


def test_every_room_is_in_the_table() -> None:
    there = {f"kwire.{path.stem}" for path in (ROOT / "kwire").glob("*.py") if not path.stem.startswith("__")}
    there |= {f"kwire.{path.parent.name}" for path in (ROOT / "kwire").glob("*/__init__.py")}
    assert set(rooms()) == there | {"kwire_c", "kwire_c.core"}


def test_where_to_look_first() -> None:
    for room, row in rooms().items():
        folder = ROOT / room.replace(".", "/")
        for name in re.findall(r"`([\w.]+)`", row[2]):
            assert (folder / name).exists(), f"{room}: {name}"


def test_may_import() -> None:
    """The last column is what the layers of the import contract allow."""
    contracts: list[dict[str, Any]]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one["type"] == "layers" and "containers" not in one)
    allowed: dict[str, set[str]] = {"kwire_c.core": set()}
    for layer in reversed(layers):
        below = set(allowed)
        for room in layer.split(" | "):
            if not room.startswith("("):  # one that is still to come
                allowed[room] = below
    above: set[str] = set()
    for room, row in rooms().items():
        words, _, but = row[3].partition(" but ")
        named = {f"kwire.{name}" for name in re.findall(r"`([\w/]+)`", but)}
        few = {"nothing": set(), "`kwire_c/core`": {"kwire_c.core"}, "`kwire_c`": {"kwire_c.core", "kwire_c"}}
        assert (above - named if words == "all above" else few[words]) == allowed[room], room
        above.add(room)


def test_every_extension_is_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    monkeypatch.setattr("Cython.Build.cythonize", lambda *_, **__: [])
    there = set(runpy.run_path("setup.py")["EXTENSIONS"])
    named = [name for row in table("The extensions of kwire_c", 2) for name in re.findall(r"`(\w+)`", row[0])]
    assert sorted(named) == sorted(there)


def test_make_help() -> None:
    """Every target that is meant to be called has its line, and `make` alone prints them."""
    ran = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = ran.stdout.splitlines()
    assert len(lines) == len(TARGETS)
    assert {line.split()[1] for line in lines if len(line.split()) > 3} == TARGETS


@pytest.mark.parametrize("name", [
    ".pre-commit-config.yaml", ".editorconfig", ".github/pull_request_template.md", ".github/ISSUE_TEMPLATE/bug.md",
    ".github/ISSUE_TEMPLATE/wish.md",
])  # fmt: skip
def test_what_tools_and_hosts_look_for(name: str) -> None:
    assert (ROOT / name).stat().st_size


def test_no_line_is_too_long() -> None:
    for page in PAGES:
        lines = dict(enumerate(page.read_text(encoding="utf-8").splitlines()))
        for block in blocks_of(page):
            for number in range(block.first, block.last) if block.kind in ("console", "text") else ():
                del lines[number]  # what commands print
        for line in lines.values():
            assert len(line) <= 120 or line.startswith("|"), f"{page.name}: {line}"
