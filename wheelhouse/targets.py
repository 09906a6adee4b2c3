"""Which wheels there are: a version of CPython and a processor each."""

from __future__ import annotations

import platform
from dataclasses import dataclass

# the Debian suite that has each CPython; what stands nowhere must be on the path
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
        """Like cp311: the Python tag and the ABI tag."""
        return "cp" + self.version.replace(".", "")

    @property
    def name(self) -> str:
        """Like cp311-x86_64, as asked for on the command line."""
        return f"{self.tag}-{self.machine}"

    @property
    def triplet(self) -> str:
        """The machine's name for compilers and Debian's folders."""
        return f"{self.machine}-linux-gnu"

    @property
    def suffix(self) -> str:
        """How the extension modules of this CPython end."""
        return f".cpython-{self.tag.removeprefix('cp')}-{self.triplet}.so"

    @property
    def native(self) -> bool:
        """Whether this machine runs it without an emulator."""
        return self.machine == platform.machine()


# Debian has no CPython 3.12: the wheel for ARM comes from .github/workflows/wheels.yml alone
TARGETS = [
    Target(version, machine)
    for machine in DEBIAN_ARCHITECTURES
    for version in ("3.11", "3.12", "3.13", "3.14")
    if version in SUITES or machine == platform.machine()
]
