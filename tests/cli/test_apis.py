"""`kwire apis` and `kwire releases`."""

import json

import pytest

from kwire import schema
from kwire.cli import main

pytestmark = pytest.mark.quick


def run(capsys, *arguments):
    code = main(arguments)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_apis_as_json(capsys):
    code, out, err = run(capsys, "apis", "--json")
    rows = json.loads(out)
    assert (code, err, len(rows)) == (0, "", len(schema.apis()))
    assert {key: rows[1][key] for key in ("key", "name", "min_version", "max_version", "flexible_from")} == {
        "key": 1, "name": "Fetch", "min_version": 0, "max_version": schema.api("Fetch").max_version,
        "flexible_from": 12,
    }
    _, out, _ = run(capsys, "apis", "--release", "3.8.1", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert len(rows) == len(schema.apis("3.8"))
    assert rows["Produce"]["deprecated"] == "0-6"


def test_apis_for_people(capsys):
    code, out, _ = run(capsys, "apis", "--release", "4.3")
    lines = out.splitlines()
    assert code == 0 and len(lines) == 1 + len(schema.apis("4.3"))
    assert any(line.split()[:4] == ["1", "Fetch", "4-18", "12+"] for line in lines)
    assert any("InitProducerId" in line and "6 is unstable" in line for line in lines)


def test_an_unknown_release_is_one_line_and_exit_1(capsys):
    code, out, err = run(capsys, "apis", "--release", "9.9")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "9.9" in err


def test_releases(capsys):
    code, out, _ = run(capsys, "releases", "--json")
    rows = json.loads(out)
    assert (code, [row["release"] for row in rows]) == (0, list(schema.releases()))
    assert next(row for row in rows if row["release"] == "4.4") == {
        "release": "4.4", "read_from": "4.4.0", "apis": 91, "metadata_version": "4.4-IV2", "metadata_level": 33,
    }
    _, out, _ = run(capsys, "releases", "--old")
    assert out.splitlines()[1].split() == ["0.9.0", "0.9.0.1", "17", "-"]
