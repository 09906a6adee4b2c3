"""docs/internal-topics.md: its examples are run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.spark.conftest import prepare_environment
from tools.places import ROOT

PAGE = (ROOT / "docs" / "internal-topics.md").read_text(encoding="utf-8")


def test_the_examples(tmp_path: Path, golden: Path) -> None:
    (tmp_path / "logs").symlink_to(golden)
    prepare_environment()
    python = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S))
    console = re.findall(r"^\$ kwire (.*)", PAGE, re.M)
    (tmp_path / "examples.py").write_text(python)
    segment = golden / "data/kafka-4.3.0/data1/__consumer_offsets-0" / f"{0:020}.log"
    (tmp_path / segment.name).write_bytes(segment.read_bytes())
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}

    def run(command: str) -> str:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True,
                              timeout=280, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    assert len(console) == 6
    for command in console:
        out = run(f"{sys.executable} -m kwire {command}")
        assert (">" in command) == (not out)
    assert "OFFSET_COMMIT" in run(f"{sys.executable} -m kwire {console[-2]}")
    commits, record, rows, index, newest = run(f"{sys.executable} examples.py").splitlines()
    assert (int(commits), int(rows)) == (34, 36) and record.startswith("{'version': '4', 'data': {'offset': 3, ")
    assert index == "offset index ('offset', 'position') 20"
    assert newest.startswith("[Row(group='alpha-") and newest.count("Row(") == 3
