"""Jars from Maven Central and classes compiled against them, kept in the cache folder."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.places import cache, digest

JAVA_WANTED = 17
JDK = f"openjdk-{JAVA_WANTED}-jdk-headless"
DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"


class MissingTool(Exception):
    """Something that the tests need and the machine lacks; the text says how to install it."""


def need(command: str, package: str) -> str:
    """The path of a command, or MissingTool that names the Debian package that brings it."""
    found = shutil.which(command)
    if found is None:
        raise MissingTool(f"{command} is missing: apt-get install -y {package}")
    return found


def java() -> str:
    """The java to run ($JAVA, $JAVA_HOME or on the path), 17 or newer."""
    home = os.environ.get("JAVA_HOME")
    told = os.environ.get("JAVA") or (str(Path(home) / "bin" / "java") if home else "java")
    path = need(told, JDK)
    text = subprocess.run([path, "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    if found is None or int(found.group(1)) < JAVA_WANTED:
        raise MissingTool(f"{path} is older than Java {JAVA_WANTED}: apt-get install -y {JDK}")
    return path


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Holds other processes off while this one fills a cache folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def classpath(pom: Path) -> str:
    """Resolves a pom's run-time dependencies; the class path. Asks Maven once for each content of the pom."""
    folder = cache() / "jars"
    kept = folder / f"{pom.stem}-{digest(pom.read_bytes())}.classpath"
    with only_one(folder):
        if kept.exists():
            found = kept.read_text().strip()
            if all(Path(jar).exists() for jar in found.split(os.pathsep)):
                return found
        maven = need("mvn", "maven")
        java()
        fresh = kept.with_suffix(".tmp")
        done = subprocess.run(
            [maven, "-q", "-B", "-f", str(pom), f"{DEPENDENCY_PLUGIN}:build-classpath", "-DincludeScope=runtime",
             f"-Dmdep.outputFile={fresh}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if done.returncode:
            raise MissingTool(f"mvn could not resolve the jars of {pom.name} (is repo.maven.apache.org reachable?):\n"
                              + done.stdout[-3000:])  # fmt: skip
        found = fresh.read_text().strip()
        fresh.rename(kept)
    return found


def compiled(sources: Sequence[Path], jars: str, name: str) -> Path:
    """Compiles Java sources against a class path, once for each content; the folder of classes."""
    folder = cache() / "classes"
    kept = folder / f"{name}-{digest(jars.encode(), *(s.read_bytes() for s in sources))}"
    with only_one(folder):
        if not kept.exists():
            java()
            javac = need(str(Path(java()).resolve().parent / "javac"), JDK)
            fresh = Path(tempfile.mkdtemp(dir=folder))
            done = subprocess.run(
                [javac, "-nowarn", "-proc:none", "-cp", jars, "-d", str(fresh), *map(str, sources)],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            if done.returncode:
                shutil.rmtree(fresh)
                raise RuntimeError(f"javac failed for {name}:\n{done.stdout}")
            fresh.rename(kept)
    return kept
