"""docs/spark-source.md: its table has every option as options.py knows it."""

from __future__ import annotations

import dataclasses
import re

import pytest

from kwire.spark.options import BATCH, NAMES, OPTIONS, STREAM, Options, parse
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
