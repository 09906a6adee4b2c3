"""Checks of a wheel before it is installed: its tag, files, metadata and machine code."""

from __future__ import annotations

import json
import re
from email.parser import HeaderParser
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from elftools.elf.elffile import ELFFile

from wheelhouse.build import ROOT
from wheelhouse.commands import RecipeError, module
from wheelhouse.targets import OLDEST_GLIBC, Target

PACKAGES = ("kwire", "kwire_c", "pyspark_kwire")
SOURCES = {".c", ".h", ".pxd", ".pyx"}  # not in a wheel
BROUGHT = ["cramjam"]  # the dependencies of the core
COMPILED_IN = {"kafka-clients", "cython"}  # work of others that is in it
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
LOCAL_OR_GLOBAL = ("VER_NDX_LOCAL", "VER_NDX_GLOBAL")  # of a symbol without a version
ELF_MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}


def inspect(wheel: Path, target: Target, built_in: Path | None = None) -> None:
    """Raise RecipeError with all faults of a target's wheel. built_in: a folder whose path must not be in it."""
    faults = [*tools(wheel), *label(wheel, target)]
    with ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    faults += files(set(contents), target)
    faults += metadata(contents)
    faults += bill_of_materials(contents)
    for name, content in contents.items():
        if name.endswith(".so"):
            faults += [f"{name}: {fault}" for fault in machine_code(content, target)]
        if built_in is not None and str(built_in).encode() in content:
            faults.append(f"{name}: contains the path of the folder it was built in")
    if faults:
        raise RecipeError(f"{wheel.name} is invalid:\n" + "\n".join(f"  {fault}" for fault in faults))


def tools(wheel: Path) -> list[str]:
    """The errors of check-wheel-contents and twine."""
    faults = []
    for command in (["check_wheel_contents", "--config", ROOT / "pyproject.toml"], ["twine", "check", "--strict"]):
        try:
            module(*map(str, command), wheel)
        except RecipeError as error:
            faults.append(str(error))
    return faults


def label(wheel: Path, target: Target) -> list[str]:
    """Check that the file name has the tags of this CPython and manylinux2014, and that auditwheel agrees."""
    wanted = f"-{target.tag}-{target.tag}-manylinux2014_{target.machine}.manylinux_2_17_{target.machine}.whl"
    faults = [] if wheel.name.endswith(wanted) else [f"its file name does not end with {wanted}"]
    output = re.sub(r"\s+", " ", module("auditwheel", "show", wheel))
    if f'is consistent with the following platform tag: "manylinux_2_17_{target.machine}"' not in output:
        faults.append(f"auditwheel: {output}")
    return faults


def files(names: set[str], target: Target) -> list[str]:
    """Check that it holds all files of the packages except C, an extension for every .pyx, and nothing else."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file()]
    here = {path.relative_to(ROOT).as_posix() for path in paths if "__pycache__" not in path.parts}
    wanted = {
        name for name in here
        if Path(name).suffix not in SOURCES | {".md", ".so"} and not name.startswith("kwire_c/core/")
    } | {name.removesuffix(".pyx") + target.suffix for name in here if name.endswith(".pyx")}  # fmt: skip
    present = {name for name in names if ".dist-info/" not in name}
    faults = [f"{name} is missing" for name in sorted(wanted - present)]
    faults += [f"{name} should not be in it" for name in sorted(present - wanted)]
    return faults + [f"{package}/py.typed is missing" for package in PACKAGES if f"{package}/py.typed" not in present]


def metadata(contents: dict[str, bytes]) -> list[str]:
    """Check the dependencies of an install without extras, and the licence files."""
    name = next((name for name in contents if name.endswith(".dist-info/METADATA")), None)
    if name is None:
        return ["it has no METADATA"]
    required = HeaderParser().parsestr(contents[name].decode()).get_all("Requires-Dist") or []
    brought = [re.split(r"[^\w.-]", line)[0] for line in required if "extra ==" not in line]
    faults = [] if brought == BROUGHT else [f"its dependencies are {brought}, not {BROUGHT}"]
    licences = {name.rpartition("/")[2] for name in contents if ".dist-info/licenses/" in name}
    return faults + [f"{name} is missing" for name in ("LICENSE", "NOTICE") if name not in licences]


def bill_of_materials(contents: dict[str, bytes]) -> list[str]:
    """Check that it has a bill of materials (PEP 770, CycloneDX 1.6) of this version with all components."""
    bills = {name: content for name, content in contents.items() if ".dist-info/sboms/" in name}
    name, content = next(((n, c) for n, c in bills.items() if n.endswith("/sboms/kwire.cdx.json")), ("", b""))
    if not name:
        return ["sboms/kwire.cdx.json is missing"]
    faults = [f"{other}: auditwheel put a library into it" for other in bills if other != name]
    bill = json.loads(content)
    if (bill["bomFormat"], bill["specVersion"]) != ("CycloneDX", "1.6"):
        faults.append(f"{name} is not CycloneDX 1.6")
    whole, parts = bill["metadata"]["component"], bill["components"]
    version = name.partition(".dist-info/")[0].removeprefix("kwire-")
    if whole["purl"] != f"pkg:pypi/kwire@{version}":
        faults.append(f"{name} is for {whole['purl']}")
    if {part["name"] for part in parts} != COMPILED_IN:
        faults.append(f"{name} has components {sorted(part['name'] for part in parts)}, not {sorted(COMPILED_IN)}")
    for part in (whole, *parts):
        if not part["purl"].endswith(f"{part['name']}@{part['version']}"):
            faults.append(f"{name}: {part['name']} {part['version']} has the purl {part['purl']}")
        if part["licenses"] != [{"license": {"id": "Apache-2.0"}}]:
            faults.append(f"{name}: {part['name']} has the licence {part['licenses']}")
    return faults


def machine_code(content: bytes, target: Target) -> list[str]:
    """Check that an extension is for the target's processor, stripped, and links only to old system libraries."""
    elf: Any = ELFFile(BytesIO(content))
    faults = [] if elf["e_machine"] == ELF_MACHINES[target.machine] else [f"it is for processor {elf['e_machine']}"]
    faults += [f"has the section {s.name}" for s in elf.iter_sections() if s.name.startswith((".debug", ".symtab"))]
    for tag in elf.get_section_by_name(".dynamic").iter_tags():
        if tag.entry.d_tag == "DT_NEEDED" and tag.needed not in LIBRARIES:
            faults.append(f"links to {tag.needed}")
        if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
            faults.append("has an rpath or runpath")
    needs = elf.get_section_by_name(".gnu.version_r")
    for _, versions in needs.iter_versions() if needs else ():
        for version in versions:
            number = version.name.removeprefix("GLIBC_")
            if tuple(map(int, number.split("."))) > tuple(map(int, OLDEST_GLIBC.split("."))):
                faults.append(f"needs {version.name}")
    versions_of = elf.get_section_by_name(".gnu.version")
    for number, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
        if symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL":
            versioned = versions_of is not None and versions_of.get_symbol(number)["ndx"] not in LOCAL_OR_GLOBAL
            if not versioned and not symbol.name.startswith(("Py", "_Py")):
                faults.append(f"needs {symbol.name}, which is neither Python's nor in an old glibc")
    return faults
