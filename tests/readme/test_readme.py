"""Every example of README.md is run: Python and console blocks here, the others where their test is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.conftest import prepare_environment
from tools.kafka import broker
from tools.places import ROOT

BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)

# commands of `sh` blocks -> what runs them
ELSEWHERE = {
    "pip install 'kwire[spark,cli]'": "the make file installs the checkout with these extras",
    "make demo": "tests/examples",
    "make test": "CI",
    "make wheels": "tests/wheels, by one of them",
    "kwire tap --listen 0.0.0.0:19092 --target broker:9092 --out tapped": "tests/capture/test_tap.py, test_broker.py",
    "pip install --target kwire-env kwire": "tests/spark/test_cluster.py",
    "tar -czf kwire-env.tar.gz -C kwire-env .": "tests/spark/test_cluster.py",
    "spark-submit --archives kwire-env.tar.gz#kwire-env --conf spark.executorEnv.PYTHONPATH=kwire-env job.py":
        "tests/spark/test_cluster.py",
}

BROKER = "localhost:9092"
SILENT = ("mkdir", "kwire log verify", "kwire log to-parquet", "kwire protocol site")  # say nothing on stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a checkout's, with the `kwire` command of this environment on its path."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "tests").symlink_to(ROOT / "tests")
    command = folder / "bin" / "kwire"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kwire "$@"\n')
    command.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real broker, in place of the localhost:9092 of the examples."""
    options = broker.Options("4.4.0", tmp_path_factory.mktemp("broker"), heap="256m", c1=True)
    with broker.start(options) as running:
        yield running.bootstrap


def environment(place: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}  # fmt: skip


def run(command: list[str], place: Path) -> str:
    done = subprocess.run(command, cwd=place, env=environment(place), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def test_commands_then_python(place: Path, bootstrap: str) -> None:
    for kind, block in BLOCKS:
        if kind == "console":
            lines = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
            assert lines
            for line in lines:
                out = run(["bash", "-c", line.replace(BROKER, bootstrap)], place)
                assert out or line.startswith(SILENT), line
    prepare_environment()
    script = place / "examples.py"
    script.write_text("\n".join(block for kind, block in BLOCKS if kind == "python").replace(BROKER, bootstrap))
    out = run([sys.executable, str(script)], place)
    assert "['BadBatch', 'RecordBatch']" in out
    assert "0 checksum does not match" in out
    assert "2000 ['offset', 'timestamp', 'key', 'value', 'headers']" in out
    assert "records are committed" in out
    assert "True {'topics': [{'" in out
    assert f"(4, 18) 18\nTrue\n{bootstrap}: cannot send StopReplica: needs versions 0 to 4, the broker does not" in out
    assert "Broker(id=1, host='127.0.0.1'" in out
    assert "False 24 {'answered': 112, 'unanswered': 6}" in out


@pytest.mark.quick
def test_other_commands_are_run_by_other_tests() -> None:
    commands = [line.split("  #")[0].strip() for kind, block in BLOCKS if kind == "sh" for line in block.splitlines()]
    assert commands and set(commands) == set(ELSEWHERE)


@pytest.mark.quick
def test_no_other_kinds_of_blocks() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sh", "console", "python"}
