"""What must be true of a wheel before anybody installs it: its label, its files, its metadata, its machine code."""

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

PACKAGES = ("kwire", "kwire_c")
SOURCES = {".c", ".h", ".pxd", ".pyx"}  # what stays out of a wheel
BROUGHT = ["cramjam"]  # what the core asks for
COMPILED_IN = {"kafka-clients", "cython"}  # what is others', and in it
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
LOCAL_OR_GLOBAL = ("VER_NDX_LOCAL", "VER_NDX_GLOBAL")  # a symbol of no version
ELF_MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}


def inspect(wheel: Path, target: Target, built_in: Path | None = None) -> None:
    """RecipeError with every fault of a target's wheel. built_in: a folder that must not be named in it."""
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
            faults.append(f"{name}: names the folder it was built in")
    if faults:
        raise RecipeError(f"{wheel.name} is not right:\n" + "\n".join(f"  {fault}" for fault in faults))


def tools(wheel: Path) -> list[str]:
    """What check-wheel-contents and twine say."""
    faults = []
    for command in (["check_wheel_contents", "--config", ROOT / "pyproject.toml"], ["twine", "check", "--strict"]):
        try:
            module(*map(str, command), wheel)
        except RecipeError as error:
            faults.append(str(error))
    return faults


def label(wheel: Path, target: Target) -> list[str]:
    """Whether the file's name says this CPython and manylinux2014, and auditwheel finds no more needed than that."""
    wanted = f"-{target.tag}-{target.tag}-manylinux2014_{target.machine}.manylinux_2_17_{target.machine}.whl"
    faults = [] if wheel.name.endswith(wanted) else [f"its name does not end with {wanted}"]
    said = re.sub(r"\s+", " ", module("auditwheel", "show", wheel))
    if f'is consistent with the following platform tag: "manylinux_2_17_{target.machine}"' not in said:
        faults.append(f"auditwheel says: {said}")
    return faults


def files(names: set[str], target: Target) -> list[str]:
    """Whether all files of the packages but C are in it, an extension for every .pyx, and nothing else."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file()]
    here = {path.relative_to(ROOT).as_posix() for path in paths if "__pycache__" not in path.parts}
    wanted = {
        name for name in here
        if Path(name).suffix not in SOURCES | {".md", ".so"} and not name.startswith("kwire_c/core/")
    } | {name.removesuffix(".pyx") + target.suffix for name in here if name.endswith(".pyx")}  # fmt: skip
    found = {name for name in names if ".dist-info/" not in name}
    faults = [f"{name} is missing" for name in sorted(wanted - found)]
    faults += [f"{name} should not be in it" for name in sorted(found - wanted)]
    return faults + [f"{package}/py.typed is missing" for package in PACKAGES if f"{package}/py.typed" not in found]


def metadata(contents: dict[str, bytes]) -> list[str]:
    """Whether an install without extras brings only what it may, and the licence is there."""
    name = next((name for name in contents if name.endswith(".dist-info/METADATA")), None)
    if name is None:
        return ["it has no METADATA"]
    asked = HeaderParser().parsestr(contents[name].decode()).get_all("Requires-Dist") or []
    brought = [re.split(r"[^\w.-]", line)[0] for line in asked if "extra ==" not in line]
    faults = [] if brought == BROUGHT else [f"it brings {brought}, not {BROUGHT}"]
    licences = {name.rpartition("/")[2] for name in contents if ".dist-info/licenses/" in name}
    return faults + [f"{name} is missing" for name in ("LICENSE", "NOTICE") if name not in licences]


def bill_of_materials(contents: dict[str, bytes]) -> list[str]:
    """Whether a bill of materials (PEP 770, CycloneDX 1.6) is there, of this version, and names all that is in it."""
    bills = {name: content for name, content in contents.items() if ".dist-info/sboms/" in name}
    name, content = next(((n, c) for n, c in bills.items() if n.endswith("/sboms/kwire.cdx.json")), ("", b""))
    if not name:
        return ["sboms/kwire.cdx.json is missing"]
    faults = [f"{other}: auditwheel put a library into it" for other in bills if other != name]
    bill = json.loads(content)
    if (bill["bomFormat"], bill["specVersion"]) != ("CycloneDX", "1.6"):
        faults.append(f"{name} is not of CycloneDX 1.6")
    whole, parts = bill["metadata"]["component"], bill["components"]
    version = name.partition(".dist-info/")[0].removeprefix("kwire-")
    if whole["purl"] != f"pkg:pypi/kwire@{version}":
        faults.append(f"{name} is of {whole['purl']}")
    if {part["name"] for part in parts} != COMPILED_IN:
        faults.append(f"{name} names {sorted(part['name'] for part in parts)}, not {sorted(COMPILED_IN)}")
    for part in (whole, *parts):
        if not part["purl"].endswith(f"{part['name']}@{part['version']}"):
            faults.append(f"{name}: {part['name']} {part['version']} has the address {part['purl']}")
        if part["licenses"] != [{"license": {"id": "Apache-2.0"}}]:
            faults.append(f"{name}: {part['name']} is under {part['licenses']}")
    return faults


def machine_code(content: bytes, target: Target) -> list[str]:
    """Whether an extension is of the target's processor, stripped, and links to old system libraries only."""
    elf: Any = ELFFile(BytesIO(content))
    faults = [] if elf["e_machine"] == ELF_MACHINES[target.machine] else [f"its processor is {elf['e_machine']}"]
    faults += [f"has the section {s.name}" for s in elf.iter_sections() if s.name.startswith((".debug", ".symtab"))]
    for tag in elf.get_section_by_name(".dynamic").iter_tags():
        if tag.entry.d_tag == "DT_NEEDED" and tag.needed not in LIBRARIES:
            faults.append(f"links to {tag.needed}")
        if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
            faults.append("looks for libraries in a folder of its own")
    needs = elf.get_section_by_name(".gnu.version_r")
    for _, versions in needs.iter_versions() if needs else ():
        for version in versions:
            number = version.name.removeprefix("GLIBC_")
            if tuple(map(int, number.split("."))) > tuple(map(int, OLDEST_GLIBC.split("."))):
                faults.append(f"wants {version.name}")
    versions_of = elf.get_section_by_name(".gnu.version")
    for number, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
        if symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL":
            versioned = versions_of is not None and versions_of.get_symbol(number)["ndx"] not in LOCAL_OR_GLOBAL
            if not versioned and not symbol.name.startswith(("Py", "_Py")):
                faults.append(f"wants {symbol.name}, which is neither Python's nor in an old C library")
    return faults
