"""The CPython of each target, from the path or from Debian: its headers, and fresh environments to test a wheel."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from wheelhouse import debian
from wheelhouse.commands import NotHereError, environment, run
from wheelhouse.targets import DEBIAN_ARCHITECTURES, SUITES, Target

ASK = (
    "import json, sys, sysconfig; print(json.dumps(['%d.%d' % sys.version_info[:2], sys.executable, "
    "sysconfig.get_path('include'), sysconfig.get_config_h_filename()]))"
)


@dataclass(frozen=True)
class Interpreter:
    """A CPython: the command that runs it, and its headers."""

    target: Target
    command: tuple[str, ...]  # preceded by an emulator (other processor) or a loader (other glibc)
    headers: Path
    configuration: Path  # the pyconfig.h of its processor

    def copy_headers(self, folder: Path) -> Path:
        """Copy all headers into one folder, so that the machine's own are not used; return the folder."""
        shutil.copytree(self.headers, folder)
        shutil.copyfile(self.configuration, folder / "pyconfig.h")
        return folder

    def new_environment(self, folder: Path) -> Path:
        """Make a virtual environment without pip; return the path of its python."""
        if len(self.command) == 1:
            run([*self.command, "-m", "venv", "--without-pip", folder])
            return folder / "bin" / "python"
        python = folder / "bin" / "python"
        python.parent.mkdir(parents=True)
        (folder / "lib" / f"python{self.target.version}" / "site-packages").mkdir(parents=True)
        home = Path(self.command[-1]).parent
        (folder / "pyvenv.cfg").write_text(f"home = {home}\ninclude-system-site-packages = false\n")
        *before, command = self.command
        python.write_text("#!/bin/sh\nexec " + " ".join(before) + f' "$0" {command} "$@"\n')
        python.chmod(0o755)
        return python


def find(target: Target) -> Interpreter:
    """The CPython of a target. NotHereError with what to install if there is none."""
    interpreter = on_path(target) if target.native else None
    if interpreter is None and target.version in SUITES:
        interpreter = from_debian(target)
    if interpreter is None:
        raise NotHereError(
            f"CPython {target.version} for {target.machine} is missing: put python{target.version} with its headers on "
            f"the path (pyenv install {target.version})"
        )
    return interpreter


def on_path(target: Target) -> Interpreter | None:
    """The Python that runs this recipe or python3.X on the path, if it has this version and its headers."""
    variables = environment({"PYENV_VERSION": target.version})  # a shim of pyenv runs only the chosen version
    for command in (sys.executable, f"python{target.version}"):
        try:
            asked = subprocess.run([command, "-c", ASK], env=variables, capture_output=True, text=True)
        except OSError:
            continue
        if asked.returncode == 0:
            version, path, headers, configuration = json.loads(asked.stdout)
            if version == target.version and Path(headers, "Python.h").exists() and Path(configuration).exists():
                return Interpreter(target, (path,), Path(headers), Path(configuration))
    return None


def from_debian(target: Target) -> Interpreter:
    """python3.X of the Debian suite that has it, with the glibc that it needs."""
    name = f"python{target.version}"
    architecture = DEBIAN_ARCHITECTURES[target.machine]
    root = debian.unpack(SUITES[target.version], architecture, [name, f"lib{name}-dev", "libstdc++6"])
    headers = root / "usr" / "include"
    before = loader(root, target) if target.native else [emulator(target), "-L", str(root), "-0"]
    return Interpreter(
        target, (*before, str(root / "usr" / "bin" / name)), headers / name,
        headers / target.triplet / name / "pyconfig.h",
    )  # fmt: skip


def loader(root: Path, target: Target) -> list[str]:
    """The dynamic loader of an unpacked Debian with the path of its libraries; the program's name must follow."""
    libraries = root / "usr" / "lib" / target.triplet
    return [str(next(libraries.glob("ld-linux-*.so.*"))), "--library-path", str(libraries), "--argv0"]


def emulator(target: Target) -> str:
    """QEMU's user-mode emulator of a processor: this machine's own, else Debian's, unpacked."""
    name = f"qemu-{target.machine}-static"
    host = next(DEBIAN_ARCHITECTURES[machine] for machine in DEBIAN_ARCHITECTURES if Target("", machine).native)
    return shutil.which(name) or str(debian.unpack("bookworm", host, ["qemu-user-static"]) / "usr" / "bin" / name)
