"""A second build of a wheel gives the same bytes: in another folder, time zone, at another time, by another user."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from wheelhouse import build, interpreters
from wheelhouse.targets import Target

pytestmark = pytest.mark.checkout
HERE = Target("{}.{}".format(*sys.version_info[:2]), platform.machine())
COMMITTED = "1700000000"  # what the recipe takes from git: 2023-11-14T22:13:20Z


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of this checkout."""
    return build.source_distribution(tmp_path_factory.mktemp("source"))


def built(source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, unpacked_at: int, **changes: str) -> Path:
    """The wheel that the recipe builds of a source distribution, inside a folder, in a changed environment."""
    with monkeypatch.context() as patch:
        for name, value in {"SOURCE_DATE_EPOCH": COMMITTED, **changes}.items():
            patch.setenv(name, value)
        folder.mkdir(parents=True)
        tree = build.unpacked(source, folder / "source")
        for path in tree.rglob("*"):
            os.utime(path, (unpacked_at, unpacked_at))
        return build.wheel(tree, interpreters.find(HERE), folder / "work")


def differences(first: Path, second: Path) -> list[str]:
    """What two wheels have otherwise, a member a line; of the order, times and modes of members too."""
    with ZipFile(first) as one, ZipFile(second) as other:
        names, others = one.namelist(), other.namelist()
        found = [] if names == others else [f"members: {sorted({*names} ^ {*others}) or 'their order'}"]
        for name in sorted({*names} & {*others}):
            was, now = one.getinfo(name), other.getinfo(name)
            found += [
                f"{name}: {what} {before} and {after}"
                for what, before, after in (
                    ("content", hash(one.read(name)), hash(other.read(name))),
                    ("time", was.date_time, now.date_time),
                    ("mode", oct(was.external_attr >> 16), oct(now.external_attr >> 16)),
                )
                if before != after
            ]
    return found or ([] if first.read_bytes() == second.read_bytes() else ["the archive itself"])


def twice(source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two wheels of one source, between them everything changed that a builder may have otherwise."""
    mask = os.umask(0o077)
    try:
        first = built(source, folder / "a", monkeypatch, 1_700_000_001, TZ="UTC", PYTHONHASHSEED="1", LC_ALL="C")
        os.umask(0o002)
        second = built(
            source, folder / "another" / "deeper-one", monkeypatch, 1_731_000_001,
            TZ="Pacific/Auckland", PYTHONHASHSEED="2", LC_ALL="C.UTF-8",
        )  # fmt: skip
    finally:
        os.umask(mask)
    return first, second


def test_two_builds_give_the_same_bytes(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two of the extensions; the whole wheel is for make soak."""
    monkeypatch.setenv("KWIRE_ONLY", "crc32c,log_scan")
    first, second = twice(source, tmp_path, monkeypatch)
    assert first.name == second.name
    assert differences(first, second) == []
    with ZipFile(first) as archive:
        built_code = [name for name in archive.namelist() if name.endswith(".so")]
        assert len(built_code) == 2
        assert {archive.getinfo(name).date_time for name in archive.namelist()} == {(2023, 11, 14, 22, 13, 20)}


@pytest.mark.soak
def test_two_builds_of_the_whole_wheel_give_the_same_bytes(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = twice(source, tmp_path, monkeypatch)
    assert differences(first, second) == []


def test_differences_are_told(tmp_path: Path) -> None:
    for name, content, mode in (("one", b"a", 0o644), ("other", b"b", 0o600)):
        path = tmp_path / name
        path.write_bytes(content)
        path.chmod(mode)
        with ZipFile(tmp_path / f"{name}.whl", "w") as archive:
            archive.write(path, "member")
            if name == "other":
                archive.writestr("more", b"")
    told = differences(tmp_path / "one.whl", tmp_path / "other.whl")
    assert told[0] == "members: ['more']"
    assert [line.split(" ")[1] for line in told[1:] if " time " not in line] == ["content", "mode"]


def test_what_is_compiled_names_no_folder(tmp_path: Path) -> None:
    """setup.py alone as well, which pip runs: the same object code in two folders, whose names are not in it."""
    code = []
    for name in ("a", "a-longer-name"):
        folder = tmp_path / name
        folder.mkdir()
        for part in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "NOTICE", "kwire_c", "kwire"):
            (folder / part).symlink_to(build.ROOT / part)
        (folder / "build").mkdir()
        subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", "lib"],
            cwd=folder, env={**os.environ, "KWIRE_ONLY": "log_scan"}, check=True,
        )  # fmt: skip
        code.append({path.name: path.read_bytes() for path in sorted((folder / "lib").rglob("*.so"))})
    assert len(code[0]) == 1 and code[0] == code[1]
    assert not any(str(tmp_path).encode() in content for content in code[0].values())
