"""What lint-imports does not see: the imports and cimports of kwire_c's Cython, held to an order as the rooms are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.places import ROOT

pytestmark = [pytest.mark.quick, pytest.mark.checkout]

FOLDER = Path(__file__).parents[1] / "kwire_c"
LAYERS = (  # from the bottom up: a module imports from layers below its own
    ("core", "printable", "secrets"),
    ("buffers", "tables"),
    ("errors", "codecs", "hooks", "crc32c"),
    ("integers", "utf8"),
    ("message_class", "varint", "arrow", "shared_iterator"),
    ("plan", "record_batch"),
    ("decode", "encode", "json", "containers", "batch_builder"),
    ("columns",),
    ("log_scan", "record_text"),
)
IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+c?import[ \t]+([\w ,]*)|c?import[ \t]+([\w.]+))", re.M)


def imported() -> dict[str, set[str]]:
    """Module of kwire_c -> the modules of kwire and kwire_c that its sources name."""
    found: dict[str, set[str]] = {}
    for path in sorted((*FOLDER.glob("*.py"), *FOLDER.glob("*.pyx"), *FOLDER.glob("*.pxd"))):
        modules = found.setdefault(path.stem, set())
        for package, names, module in IMPORT.findall(path.read_text(encoding="utf-8")):
            if package == "kwire_c":
                modules.update(f"kwire_c.{name.strip().split(' ')[0]}" for name in names.split(","))
            modules.add(package or module)
    return {
        name: {module for module in modules if module.startswith(("kwire.", "kwire_c.")) or module == "kwire"}
        for name, modules in found.items()
        if name != "__init__"
    }


def test_no_module_imports_a_module_that_its_package_imports() -> None:
    """Of two threads one has the lock of the package, the other that of the module, and each waits for the other.

    (Python says "deadlock detected" in one of them. `from package import module` takes the package's lock first.)
    """
    text = "".join(path.read_text() for path in (ROOT / "kwire").rglob("*.py"))
    found = re.findall(r"^ *(?:from|import) (\w+)((?:\.\w+)+)", text, re.MULTILINE)
    inside = {package + rest for package, rest in found if package in sys.stdlib_module_names}
    assert "importlib.util" in inside
    code = ("import sys, importlib\nfor name in sys.argv[1:]:\n"
            "    package, before = name.rpartition('.')[0], name in sys.modules\n    importlib.import_module(package)\n"
            "    if name in sys.modules and not before:\n        print(name)\n")
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", code, *sorted(inside - {"collections.abc"})],
                         capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_kwire_c_imports_only_what_stands_below() -> None:
    level = {f"kwire_c.{name}": number for number, names in enumerate(LAYERS) for name in names}
    modules = imported()
    assert {f"kwire_c.{name}" for name in modules} == set(level)
    for name, others in modules.items():
        for other in others - {f"kwire_c.{name}"}:
            assert other in level, f"kwire_c.{name} imports {other}"
            assert level[other] < level[f"kwire_c.{name}"], f"kwire_c.{name} imports {other}, which is not below it"


def test_no_view_of_memory_that_it_does_not_keep() -> None:
    """The garbage collector shows it to whoever asks for all objects: it outlives the memory, and reading it crashes.
    """
    for path in (ROOT / "kwire_c").glob("*.pyx"):
        assert "PyMemoryView_FromMemory" not in path.read_text(), path.name
