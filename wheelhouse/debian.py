"""Packages of any Debian suite and architecture, unpacked into the cache folder; nothing is installed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tools.kafka.maven import only_one
from tools.places import cache, digest
from wheelhouse.commands import RecipeError, need, run

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITE_NAMES = {"bullseye", "bookworm", "trixie", "forky", "sid", "oldstable", "stable", "testing", "unstable"}


def mirror() -> str:
    """The address of a Debian mirror in this machine's apt configuration."""
    need("apt-get", "apt")
    listed = run(["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)"])
    for line in listed.splitlines():
        release, component, address = line.split(maxsplit=2)
        if release in SUITE_NAMES and component == "main":
            return address
    raise RecipeError("apt has no Debian mirror: add one to /etc/apt/sources.list")


def configuration(folder: Path, suite: str, architecture: str) -> Path:
    """Write an apt configuration with its own lists, status and cache, and this machine's Acquire settings."""
    if not KEYRING.exists():
        raise RecipeError(f"{KEYRING} is missing: apt-get install -y debian-archive-keyring")
    for name in ("lists/partial", "archives/partial", "parts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    sources = folder / "debian.sources"
    sources.write_text(f"Types: deb\nURIs: {mirror()}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n")
    fetching = [line for line in run(["apt-config", "dump"]).splitlines() if line.startswith("Acquire")]
    own = {
        "Dir::State": folder, "Dir::State::lists": folder / "lists", "Dir::State::status": folder / "status",
        "Dir::Cache": folder, "Dir::Cache::archives": folder / "archives", "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": folder / "parts", "Dir::Etc::parts": folder / "parts",
        "Dir::Etc::preferences": folder / "preferences", "Dir::Etc::preferencesparts": folder / "parts",
        "APT::Architecture": architecture, "APT::Architectures": architecture, "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root", "Acquire::Languages": "none", "Debug::NoLocking": "true",
    }  # fmt: skip
    file = folder / "apt.conf"
    file.write_text("\n".join([*fetching, *(f'{name} "{value}";' for name, value in own.items())]) + "\n")
    return file


def merge(root: Path) -> None:
    """Make /lib and /lib64 links into /usr, as on an installed Debian."""
    for name in ("lib", "lib64"):
        if (root / name).is_dir():
            shutil.copytree(root / name, root / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(root / name)
        (root / name).symlink_to(Path("usr", name))


def unpack(suite: str, architecture: str, packages: Sequence[str]) -> Path:
    """A root folder with these packages and their dependencies, from the cache or downloaded."""
    root = cache() / f"debian-{suite}-{architecture}-{digest(*(name.encode() for name in packages))}"
    with only_one(cache() / "debian"):
        if not root.exists():
            need("dpkg", "dpkg")
            work = cache() / "debian" / root.name
            shutil.rmtree(work, ignore_errors=True)
            apt = {"APT_CONFIG": str(configuration(work / "apt", suite, architecture))}
            run(["apt-get", "-q", "update"], **apt)
            run(["apt-get", "-q", "-y", "install", "--download-only", *packages], **apt)
            for package in sorted((work / "apt" / "archives").glob("*.deb")):
                run(["dpkg", "-x", package, work / "root"])
            merge(work / "root")
            (work / "root").rename(root)
            shutil.rmtree(work)
    return root


