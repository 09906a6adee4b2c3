"""The step for a new release, rehearsed: a tree without the release, and with it again by the step alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import archives
from tools.places import ROOT
from tools.schema import checklist, inputs, jars, layout, rehearsal
from tools.schema.__main__ import newer
from tools.schema.update import SchemaSet

KNOWN = rehearsal.patches()
ARCHIVE = rehearsal.ARCHIVE.relative_to(ROOT)
FOLDERS = ("kwire", "tools", "tests/data/schema")  # what the step reads and writes, with these:
FILES = ("docs/brokers.md", "docs/limits.md", "SECURITY.md", "pyproject.toml")

pytestmark = pytest.mark.checkout


def copied(folder: Path) -> Path:
    """A tree with what the step needs."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "docs").mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    (folder / "kwire_c").symlink_to(ROOT / "kwire_c")
    return folder


def run(tree: Path, *arguments: str) -> str:
    """Runs a module of the tree; what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=tree, capture_output=True, text=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(tree)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files(tree: Path) -> dict[str, bytes]:
    """All files of a tree, but for the archive and what is linked."""
    found = archives.folder(tree, ("__pycache__", "kwire_c/"))
    del found[str(ARCHIVE)]
    return found


def taken_out(patch: str, tree: Path) -> None:
    rehearsal.take_out(patch, tree)
    run(tree, "tools.schema.stub")
    run(tree, "tools.schema.derived")


def listed(printed: str) -> set[str]:
    """The files of the checklist."""
    return {name for line in re.findall(r"^\[ \] (.+)$", printed, re.M) for name in line.split(" and ")}


@pytest.mark.parametrize("patch", KNOWN)
def test_a_release_that_is_taken_out_comes_back_by_the_step(tmp_path: Path, patch: str) -> None:
    tree = copied(tmp_path / "tree")
    for newer_one in reversed(KNOWN[KNOWN.index(patch) + 1 :]):
        taken_out(newer_one, tree)
    whole = files(tree)
    taken_out(patch, tree)
    less = files(tree)
    release = patch.rpartition(".")[0]
    assert f'"{release}": "{patch}"' not in less["kwire/schema/releases.json"].decode()
    changed = {name for name in whole if less.get(name) != whole[name]}
    assert {"kwire/messages.pyi", "tests/data/schema/counts.json", *FILES[:3]} <= changed
    assert len(changed) > 100  # the files of all messages that the release has

    printed = run(tree, "tools.schema", "--stored", patch)
    again = files(tree)
    differing = {name for name in whole.keys() | again.keys() if again.get(name) != whole.get(name)}
    assert differing <= listed(printed), printed[-3000:]
    assert differing <= {"kwire/schema/renames.json"}
    rows = [json.loads(line) for line in re.findall(r"^    a field has another name: (.+)$", printed, re.M)]
    wanted = json.loads(whole["kwire/schema/renames.json"])["fields"]
    had = json.loads(again["kwire/schema/renames.json"])["fields"]
    assert [row for row in had + rows if row not in wanted] == [] and len(had + rows) == len(wanted)
    assert archives.read(tree / ARCHIVE) == archives.read(ROOT / ARCHIVE)
    assert "nothing changed" in run(tree, "tools.schema", "--stored", "--dry-run", patch)


@pytest.mark.java
def test_what_is_stored_is_what_the_jars_give() -> None:
    try:
        found = inputs.look(KNOWN[-1])
    except Exception as error:  # Maven or Java or the registry is missing: say which
        pytest.fail(str(error), pytrace=False)
    stored = rehearsal.read(KNOWN[-1])[1]
    lacking = {*found.missing, *stored.missing}  # a registry may get a module of a new release later than others

    def shared(given: inputs.Input) -> inputs.Input:
        texts = {module: files for module, files in given.texts.items() if module not in lacking}
        return given._replace(texts=texts, missing=[])

    assert lacking.isdisjoint(("kafka-clients", "kafka-metadata")) and shared(found) == shared(stored)


@pytest.mark.quick
def test_newer_releases_are_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []

    def newest(since: str, before: str = "") -> str:
        asked.append((since, before))
        return {"4.4.0": "4.5.1", "4.3.1": "4.3.2"}.get(since, since)

    monkeypatch.setattr(jars, "newest", newest)
    assert newer(["2.1.1", "4.2.2", "4.3.1", "4.4.0"], patches=True) == ["4.5.1", "4.3.2"]
    assert asked == [("4.4.0", ""), ("4.2.2", "4.3"), ("4.3.1", "4.4")]
    assert "4.5.1; the newest known is 4.4.0" in capsys.readouterr().out
    assert newer(["4.4.0"], patches=False) == ["4.5.1"]


def next_release(given: inputs.Input) -> inputs.Input:
    """A release that never was, 99.0.0: as the newest one, with an API, a version, an error code and more besides."""
    classes, texts = json.loads(json.dumps(given.classes)), json.loads(json.dumps(given.texts))
    last = classes["apis"]["1"]["max"]
    classes["apis"]["1"]["max"] = last + 1
    classes["apis"]["999"] = {"name": "Weather", "enum": "WEATHER", "min": 0, "max": 0}
    classes["errors"]["999"] = {"name": "RAIN", "message": "It rains.", "retriable": True, "invalidMetadata": False}
    classes["control"]["99"] = "SNOW"
    classes["features"]["weather.version"] = {
        "levels": [{"name": f"WV_{level}", "level": level, "bootstrapMetadataVersion": "4.4-IV2", "dependencies": {}}
                   for level in (0, 1)],
        "latestProduction": 1, "latestTesting": 1, "minimumProduction": 0,
    }
    *_, newest = classes["metadata_versions"].values()
    newest["can"]["isRainSupported"] = True
    clients = texts["kafka-clients"]
    for name in clients:
        if re.search(r"/Fetch(Request|Response)\.json$", name):
            clients[name] = re.sub(rf'("validVersions": "\d+)-{last}"', rf'\1-{last + 1}"', clients[name])
        if name.endswith("/VoteRequest.json"):
            clients[name] = clients[name].replace('"ReplicaEpoch"', '"Term"')
    for kind in ("Request", "Response"):
        clients[f"common/message/Weather{kind}.json"] = json.dumps({
            "apiKey": 999, "type": kind.lower(), "listeners": ["broker"], "name": f"Weather{kind}", "fields": [],
            "validVersions": "0", "flexibleVersions": "0+",
        })  # fmt: skip
    return given._replace(patch="99.0.0", classes=classes, texts=texts, missing=["kafka-tools"], others=["kafka-sky"])


@pytest.mark.quick
def test_the_checklist_names_what_differs_and_no_more() -> None:
    known = rehearsal.read(KNOWN[-1])[1]
    before, after = SchemaSet(layout.ROOT), SchemaSet(layout.ROOT)
    after.take(known.patch, known)
    assert checklist.items(before, after, known) == [] and checklist.text([]).startswith("nothing is left")

    given = next_release(known)
    after.take(given.patch, given)
    found = dict(checklist.items(before, after, given))
    last = given.classes["apis"]["1"]["max"]
    for file, words in {
        "kwire/schema/renames.json": '"old": "replicaEpoch", "new": "term"',
        "kwire/schema/record_type_ids.py": "control record 99 SNOW",
        "kwire/net/features.py":
            f"Fetch {last}, Weather (API 999, broker), weather.version 1, metadata.version (isRainSupported)",
        "kwire/schema/sections.json": "Weather",
        "kwire/net/required_versions.py":
            f"do not tell: Fetch {last} (a note in Kafka's schema); LEVEL_RULES, if Kafka's clients send some versions "
            "only at one of these levels: weather.version 1",
        "tools/schema/jars.py": "kafka-sky",
        "tools/kafka/releases.py": "no kafka-tools 99.0.0",
        "tests/data/vectors": "4 new (message, version): python -m tools.vectors --release 99.0.0",
        "tests/data/versions.tar.xz": "--clients 99.0.0",
        "tests/data/features.tar.xz": "python -m tools.features 99.0.0",
        "CHANGELOG.md": "a line: Kafka 99.0",
    }.items():
        assert words in found.pop(file), file
    assert found == {}
    printed = checklist.news(after.changes())
    assert 'errors.json: + "999": {"name": "RAIN"' in "\n".join(printed) and len(printed) < 60, "\n".join(printed)
