"""One wheel by the recipe, for this Python: inspected, tried in a fresh environment; and what inspection must find."""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tomllib
from email.parser import HeaderParser
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from ruamel.yaml import YAML

from kwire import schema
from wheelhouse import __main__ as recipe
from wheelhouse import build, inspection, interpreters, manifest, trial
from wheelhouse.commands import RecipeError, need
from wheelhouse.targets import TARGETS, Target

HERE = Target("{}.{}".format(*sys.version_info[:2]), platform.machine())
OTHER = Target(HERE.version, "aarch64" if HERE.machine == "x86_64" else "x86_64")
Contents = dict[str, bytes]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the Python that runs the tests."""
    work = tmp_path_factory.mktemp("wheel")
    tree = build.unpacked(build.source_distribution(work), work / "source")
    return build.wheel(tree, interpreters.find(HERE), work / HERE.name)


@pytest.fixture(scope="module")
def contents(wheel: Path) -> Contents:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def test_a_wheel(wheel: Path, tmp_path: Path) -> None:
    """As it should be, it runs README's first example of the core in a fresh environment, with cramjam alone."""
    inspection.inspect(wheel, HERE, built_in=wheel.parents[2])
    trial.try_alone(wheel, interpreters.find(HERE), tmp_path)


def test_not_of_another_processor_or_python(wheel: Path, contents: Contents) -> None:
    assert inspection.label(wheel, HERE) == inspection.files(set(contents), HERE) == []
    assert inspection.label(wheel, OTHER)
    assert "kwire_c/record_batch" + OTHER.suffix + " is missing" in inspection.files(set(contents), OTHER)
    code = contents["kwire_c/record_batch" + HERE.suffix]
    assert inspection.machine_code(code, HERE) == []
    assert "processor" in inspection.machine_code(code, OTHER)[0]


@pytest.mark.parametrize(
    "name",
    ["kwire_c/core/batch.c", "kwire_c/core/batch.h", "kwire_c/record_batch.pyx", "kwire_c/core.pxd", "tests/a.py"],
)
def test_what_should_not_be_in_it(contents: Contents, name: str) -> None:
    assert inspection.files({*contents, name}, HERE) == [f"{name} should not be in it"]


@pytest.mark.parametrize("name", [
    "kwire/py.typed", "kwire_c/py.typed", "kwire/messages.pyi", "kwire/pages/site.py", "pyspark_kwire/__init__.py",
])  # fmt: skip
def test_what_should_be_in_it(contents: Contents, name: str) -> None:
    assert f"{name} is missing" in inspection.files(set(contents) - {name}, HERE)


def test_metadata(contents: Contents) -> None:
    name = next(name for name in contents if name.endswith("/METADATA"))
    more = contents[name].replace(b"Requires-Dist: cramjam", b"Requires-Dist: numpy\nRequires-Dist: cramjam", 1)
    assert inspection.metadata(contents) == []
    faults = inspection.metadata({**contents, name: more})
    assert faults == ["its dependencies are ['numpy', 'cramjam'], not ['cramjam']"]
    without = {name: content for name, content in contents.items() if not name.endswith("licenses/NOTICE")}
    assert inspection.metadata(without) == ["NOTICE is missing"]


def test_a_bill_of_materials_is_in_it(contents: Contents) -> None:
    name = next(name for name in contents if name.endswith(".dist-info/sboms/kwire.cdx.json"))
    bill = json.loads(contents[name])
    whole, (kafka, cython) = bill["metadata"]["component"], bill["components"]
    assert (whole["name"], whole["version"]) == ("kwire", recorded_version(contents))
    assert kafka["version"] == schema.patch_release(schema.releases()[-1])
    assert cython["version"] == version("Cython")
    references = [whole["bom-ref"], kafka["bom-ref"], cython["bom-ref"]]
    assert [row["ref"] for row in bill["dependencies"]] == references
    assert bill["dependencies"][0]["dependsOn"] == references[1:]
    assert inspection.bill_of_materials(contents) == []


def test_a_bill_of_materials_that_is_not_right(contents: Contents) -> None:
    name = next(name for name in contents if name.endswith(".dist-info/sboms/kwire.cdx.json"))
    without = {other: content for other, content in contents.items() if other != name}
    assert inspection.bill_of_materials(without) == ["sboms/kwire.cdx.json is missing"]
    more = name.replace("kwire.cdx.json", "auditwheel.cdx.json")
    assert inspection.bill_of_materials({**contents, more: b"{}"}) == [f"{more}: auditwheel put a library into it"]
    for old, new, fault in (
        (b'"1.6"', b'"1.4"', "is not CycloneDX 1.6"),
        (b"pkg:pypi/kwire@", b"pkg:pypi/kwire@9", "is for pkg:pypi/kwire@9"),
        (b'"name": "cython"', b'"name": "zlib"', "has components ['kafka-clients', 'zlib']"),
        (b"Apache-2.0", b"MIT", "has the licence"),
    ):
        faults = inspection.bill_of_materials({**contents, name: contents[name].replace(old, new)})
        assert any(fault in line for line in faults), (fault, faults)


def recorded_version(contents: Contents) -> str:
    """The version that a wheel's metadata has."""
    name = next(name for name in contents if name.endswith(".dist-info/METADATA"))
    return str(HeaderParser().parsestr(contents[name].decode())["Version"])


def test_debug_information_foreign_libraries_and_new_symbols_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.c").write_text("int other(void) { return 1; }\n")
    calls = "int f(thrd_t thread) { return thrd_detach(thread) + other(); }"
    (tmp_path / "a.c").write_text(f"#include <threads.h>\nint other(void);\n{calls}\n")
    command = [need("cc", "gcc"), "-g", "-shared", "-fPIC", "-L."]
    subprocess.run([*command, "other.c", "-o", "libother.so"], cwd=tmp_path, check=True)
    subprocess.run([*command, "a.c", "-lother", "-Wl,-rpath,/opt", "-o", "a.so"], cwd=tmp_path, check=True)
    faults = inspection.machine_code((tmp_path / "a.so").read_bytes(), HERE)
    assert {"has the section .debug_info", "has the section .symtab", "links to libother.so"} <= set(faults)
    assert "has an rpath or runpath" in faults
    assert any(fault.startswith("needs GLIBC_2.") for fault in faults)
    assert "needs other, which is neither Python's nor in an old glibc" in faults


def test_the_manifest(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"a")
    (tmp_path / "b.tar.gz").write_bytes(b"bb")
    manifest.write(tmp_path, {"a.whl": {"tests": "1 passed"}}, {"cp312-x86_64": "no such Python"})
    told = json.loads((tmp_path / "manifest.json").read_text())
    assert [(row["file"], row["size"], row.get("tests")) for row in told["files"]] == [
        ("a.whl", 1, "1 passed"), ("b.tar.gz", 2, None)
    ]  # fmt: skip
    assert told["left_out"] == {"cp312-x86_64": "no such Python"}
    subprocess.run([need("sha256sum", "coreutils"), "--check", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True)


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RecipeError, match=r"apt-get is missing: apt-get install -y apt"):
        need("apt-get", "apt")
    with pytest.raises(RecipeError, match=r"CPython 3\.12 .*pyenv install 3\.12"):
        interpreters.find(Target("3.12", "aarch64"))


@pytest.mark.quick
def test_a_trial_installs_what_the_tests_of_the_core_import() -> None:
    brought = {re.split(r"[^\w-]", wanted)[0] for wanted in trial.NEEDED_BY_TESTS}
    assert set(cibuildwheel()["test-requires"]) == brought
    known = {"kwire", "kwire_c", "tests", "tools", "cramjam", "pyarrow", "isal", "zstandard", "lz4"}
    known |= sys.stdlib_module_names
    imports = re.compile(r"^\s*(?:import|from) ([^\W_]\w*)", re.M)  # what begins with _ is Python's own
    for folder in trial.FOLDERS:
        for path in (build.ROOT / "tests" / folder).glob("*.py"):
            lacking = set(imports.findall(path.read_text())) - known - brought
            assert not lacking, f"{path.name} imports {lacking}: write it into NEEDED_BY_TESTS of wheelhouse/trial.py"
            rooms = re.findall(r"^\s*(?:import|from) (kwire\.(?:cli|spark|capture|fleet)\b)", path.read_text(), re.M)
            assert not rooms, f"{path.name} imports {rooms}: a trial lacks the extra of that room"


@pytest.mark.quick
def test_the_targets() -> None:
    names = {target.name for target in TARGETS}
    assert {f"cp3{minor}-{platform.machine()}" for minor in (11, 12, 13, 14)} <= names
    assert {f"cp3{minor}-{machine}" for minor in (11, 13, 14) for machine in ("x86_64", "aarch64")} <= names


@pytest.mark.quick
def test_the_workflows() -> None:
    """Against the schema of GitHub's workflows."""
    workflows = sorted((build.ROOT / ".github" / "workflows").glob("*.yml"))
    assert [path.name for path in workflows] == ["ci.yml", "releases.yml", "wheels.yml"]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*command, *map(str, workflows)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.quick
def test_no_wheels_for_free_threaded_pythons_and_those_of_the_newest_and_of_musl() -> None:
    """By the identifiers of cibuildwheel 4.3: a wheel that takes the GIL back is none for an interpreter without it."""
    options = cibuildwheel()
    assert "enable" not in options
    for system in ("manylinux_x86_64", "manylinux_aarch64", "musllinux_x86_64", "musllinux_aarch64", "macosx_arm64"):
        chosen = {
            minor for minor in ("310", "311", "312", "313", "313t", "314", "314t", "315", "315t")
            if any(fnmatchcase(f"cp{minor}-{system}", pattern) for pattern in options["build"])
            and not any(fnmatchcase(f"cp{minor}-{system}", pattern) for pattern in options["skip"])
        }  # fmt: skip
        assert chosen == {"311", "312", "313", "314", "315"}, system
    assert not any(target.tag.endswith("t") for target in TARGETS)


@pytest.mark.quick
def test_wheels_are_attested_and_have_the_time_of_the_commit() -> None:
    jobs = YAML(typ="safe").load((build.ROOT / ".github" / "workflows" / "wheels.yml").read_text())["jobs"]
    publish, steps = jobs["publish"], jobs["build"]["steps"]
    assert publish["permissions"] == {"id-token": "write", "attestations": "write"}
    used = {step["uses"].partition("@")[0]: step.get("with", {}) for step in publish["steps"]}
    assert used["actions/attest-build-provenance"] == {"subject-path": "dist/*"}
    assert used["pypa/gh-action-pypi-publish"] == {"attestations": True}
    assert any("SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)" in step.get("run", "") for step in steps)
    assert cibuildwheel()["linux"]["environment-pass"] == ["SOURCE_DATE_EPOCH"]  # into the containers


def test_how_a_wheel_is_tried_outside_where_the_tests_packages_are_missing() -> None:
    command: str = cibuildwheel()["overrides"][0]["test-command"]
    subprocess.run(["sh", "-c", command.replace("python", f'"{sys.executable}"', 1)], cwd=build.ROOT, check=True)
    wrong = command.replace("b'value'] * 5", "b'value'] * 6").replace("python", f'"{sys.executable}"', 1)
    assert subprocess.run(["sh", "-c", wrong], cwd=build.ROOT, stderr=subprocess.DEVNULL).returncode == 1


def cibuildwheel() -> dict[str, Any]:
    """The options of the wheels that the workflow builds."""
    options: dict[str, Any] = tomllib.loads((build.ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    return options


def test_a_folder_that_is_not_there_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is made before anything is built; what cannot be one is told."""
    asked: list[Path] = []

    def make_all(wanted: list[Target], work: Path, into: Path) -> dict[str, RecipeError]:
        asked.append(into)
        return {}

    monkeypatch.setattr(recipe, "make_all", make_all)
    monkeypatch.setattr("sys.argv", ["wheelhouse", "--into", str(tmp_path / "new" / "folder")])
    assert recipe.main() == 0
    assert asked == [tmp_path / "new" / "folder"] and asked[0].is_dir()
    (tmp_path / "file").touch()
    monkeypatch.setattr("sys.argv", ["wheelhouse", "--into", str(tmp_path / "file")])
    with pytest.raises(SystemExit):
        recipe.main()
    assert len(asked) == 1
