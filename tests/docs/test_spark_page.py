"""docs/spark-source.md: its table has every option as options.py knows it, and its examples are run."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kwire.spark.options import BATCH, NAMES, OPTIONS, STREAM, Options, parse
from tests.spark.conftest import prepare_environment
from tools.places import ROOT

PAGE = (ROOT / "docs" / "spark-source.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)`( \*)? \|\s*(.*?)\s*\| (\w+) \| (.+) \|$", PAGE, re.M)


@pytest.mark.quick
def test_the_table_has_every_option_once_in_order() -> None:
    assert tuple(row[0] for row in ROWS) == NAMES


@pytest.mark.quick
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_an_option_is_as_the_table_says(row: tuple[str, ...]) -> None:
    name, star, default, queries, _ = row
    known = OPTIONS[name]
    assert bool(star) == ("capture" in known.kinds)
    assert queries == {(BATCH, STREAM): "both", (BATCH,): BATCH, (STREAM,): STREAM}[known.queries]
    field = re.sub("[A-Z]", lambda sign: f"_{sign[0].lower()}", name)
    if default and default not in ("all", "the seven of Spark's Kafka source"):
        query = BATCH if BATCH in known.queries else STREAM
        given = parse({"path": "x", name: default}, query)
        assert given == parse({"path": "x"}), f"{name}: {default} is not the default"
    elif field in {field.name for field in dataclasses.fields(Options)}:
        assert name in ("paths",) or getattr(parse({"path": "x"}), field) is None


@pytest.mark.quick
def test_the_readme_names_only_options_that_are_known() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r'\.option\("(\w+)"', text + PAGE))
    assert named and named <= set(NAMES)


def test_the_examples(tmp_path: Path) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    unpack = "mkdir -p logs && tar -xJf tests/data/golden.tar.xz -C logs"
    subprocess.run(["bash", "-c", unpack], cwd=tmp_path, check=True)
    prepare_environment()
    (tmp_path / "examples.py").write_text("\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "examples.py"], cwd=tmp_path, env=environment, capture_output=True,
                          text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-4000:]
    counts, columns, committed = done.stdout.splitlines()
    assert re.fullmatch(r"\[Row\(topic='alpha-gzip', count=\d+\), Row\(topic='alpha-tx', count=\d+\)\]", counts)
    assert re.fullmatch(r"\['value', 'offset'\] [1-9]\d*", columns)
    assert re.fullmatch(r"\[Row\(partition=0, records=\d+\), Row\(partition=1, records=\d+\)\]", committed)
