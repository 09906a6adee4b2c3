"""The list of wheels: a version of CPython and a processor each."""

from __future__ import annotations

import platform
from dataclasses import dataclass

# the Debian suite that has each CPython; others must be on the path
SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "sid"}
DEBIAN_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
OLDEST_GLIBC = "2.17"  # that of manylinux2014


@dataclass(frozen=True)
class Target:
    """One wheel to build: version like 3.11, machine x86_64 or aarch64."""

    version: str
    machine: str

    @property
    def tag(self) -> str:
        """The Python tag and the ABI tag, like cp311."""
        return "cp" + self.version.replace(".", "")

    @property
    def name(self) -> str:
        """The name on the command line, like cp311-x86_64."""
        return f"{self.tag}-{self.machine}"

    @property
    def triplet(self) -> str:
        """The machine's name for compilers and Debian's folders."""
        return f"{self.machine}-linux-gnu"

    @property
    def suffix(self) -> str:
        """The file name suffix of extension modules of this CPython."""
        return f".cpython-{self.tag.removeprefix('cp')}-{self.triplet}.so"

    @property
    def native(self) -> bool:
        """Can this machine run it without an emulator?"""
        return self.machine == platform.machine()


# Debian has no CPython 3.12: the wheel for ARM is built only by .github/workflows/wheels.yml
TARGETS = [
    Target(version, machine)
    for machine in DEBIAN_ARCHITECTURES
    for version in ("3.11", "3.12", "3.13", "3.14")
    if version in SUITES or machine == platform.machine()
]
