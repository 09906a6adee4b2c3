"""Layouts that Kafka changed under an unchanged version: docs/layouts.md, Kafka's schemas, and what kwire does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

import kwire
from kwire import schema
from tests.codec.layouts import sample
from tools.places import ROOT
from tools.schema import layouts

PAGE = ROOT / "docs" / "layouts.md"
SCHEMA = Path(schema.__file__).parent
KNOWN: dict[str, dict[str, layouts.Layout]] = json.loads(layouts.FILE.read_text())
OLDER = [(name, span) for name, spans in KNOWN.items() for span in list(spans)[:-1]]
PASS_BY_CHANCE = {("EndQuorumEpochRequest 0", "2.7"), ("FeatureLevelRecord 0", "3.0 to 3.2")}
SAMPLES = 500


def rows() -> list[tuple[str, str, str]]:
    """(message and version, releases, difference) of the page's table, one row per message."""
    found, names = [], ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("| ") and not line.startswith("| message"):
            named, span, text = (cell.strip() for cell in line.strip("|").split("|"))
            names = named or names
            found += [(f"{name} 0", span, text) for name in re.findall(r"`(\w+)`", names)]
    return found


def flat(fields: list[dict[str, Any]], before: str = "") -> dict[str, tuple[str, bool]]:
    """path -> (type, nullable) of all fields but tagged ones."""
    paths: dict[str, tuple[str, bool]] = {}
    for field in fields:
        if "tag" not in field:
            kind = "struct" if "fields" in field else field["type"].removeprefix("[]")
            paths[before + field["name"]] = ("[]" * field["type"].startswith("[]") + kind, "nullable" in field)
            paths |= flat(field.get("fields", []), f"{before}{field['name']}.")
    return paths


def differing(old: layouts.Layout, new: layouts.Layout) -> set[str]:
    """The names of fields that differ between two layouts, without those inside a new struct."""
    was, now = flat(old["fields"]), flat(new["fields"])
    both = {*was} & {*now} | {""}
    changed = {path for path in {**was, **now} if was.get(path) != now.get(path) and path.rpartition(".")[0] in both}
    return {path.rpartition(".")[2] for path in changed}


def newest(name: str) -> layouts.Layout:
    """The layout that kwire has of a "Message 0"."""
    message, _, version = name.partition(" ")
    file, part, *_ = json.loads((SCHEMA / "index.json").read_text())[schema.canonical(message)]
    return layouts.at(json.loads((SCHEMA / file).read_text())[part], int(version))


@pytest.mark.quick
@pytest.mark.checkout
def test_the_table_has_every_layout_that_changed_and_no_other() -> None:
    listed = [(name, span) for name, span, _ in rows()]
    assert sorted(listed) == sorted(OLDER)


@pytest.mark.quick
@pytest.mark.checkout
def test_the_table_names_the_fields_that_differ() -> None:
    texts = {(name, span): text for name, span, text in rows()}
    for name, span in OLDER:
        text = texts[name, span]
        if text.startswith("the same"):  # as in the row above it
            text += next(other for (named, _), other in texts.items() if named == name)
        new = list(KNOWN[name].values())[-1]
        assert set(re.findall(r"`(\w+)`", text)) == differing(KNOWN[name][span], new), (name, span)
        assert ("not flexible" in text) == (KNOWN[name][span]["flexible"] != new["flexible"]), (name, span)


@pytest.mark.quick
def test_kwire_has_the_newest_layout() -> None:
    for name, spans in KNOWN.items():
        assert layouts.bytes_of(newest(name)) == layouts.bytes_of(list(spans.values())[-1]), name


def test_bytes_of_the_newest_layout_are_read_and_those_of_older_ones_are_refused() -> None:
    passed = {}
    for name, spans in KNOWN.items():
        message, _, version = name.partition(" ")
        for span, layout in spans.items():
            random, taken = Random(12), 0
            for _ in range(SAMPLES):
                data = sample(layout, random)
                try:
                    kwire.decode(message, int(version), data)
                except kwire.DecodeError:
                    continue
                taken += 1
            passed[name, span] = taken
    by_chance = {place: taken for place, taken in passed.items() if place in OLDER and taken}
    assert set(by_chance) <= PASS_BY_CHANCE and max(by_chance.values()) <= SAMPLES // 20
    assert {taken for place, taken in passed.items() if place not in OLDER} == {SAMPLES}


@pytest.mark.checkout
def test_a_subscription_of_kafka_go(capsys: pytest.CaptureFixture[str]) -> None:
    """The page's lines: it says version 1 and is one of version 0."""
    (example,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    names: dict[str, Any] = {"kwire": kwire}
    exec(example, names)
    assert capsys.readouterr().out == "['orders']\n"
    assert names["metadata"][:2] == b"\0\1"
    with pytest.raises(kwire.DecodeError):
        kwire.decode("ConsumerProtocolSubscription", 1, names["metadata"][2:])


def same_as_told(release: str) -> None:
    """All layouts in the jars of a release are those listed for it, or else those that kwire has."""
    found = layouts.of_release(schema.patch_release(release))
    order = list(schema.releases())
    for name, layout in found.items():
        expected = newest(name) if name not in KNOWN else next(
            row for span, row in KNOWN[name].items()
            if order.index(span.partition(" to ")[0]) <= order.index(release) <= order.index(span.rpartition(" to ")[2])
        )  # fmt: skip
        assert layouts.bytes_of(layout) == layouts.bytes_of(expected), (release, name)


@pytest.mark.java
@pytest.mark.parametrize("release", ["2.8", "3.5"])
def test_the_layouts_are_those_of_kafkas_jars(release: str) -> None:
    same_as_told(release)


@pytest.mark.java
@pytest.mark.soak
def test_the_layouts_are_those_of_all_jars() -> None:
    """And the file is what the command would write."""
    known = schema.releases()
    releases = {name: layouts.of_release(schema.patch_release(name)) for name in known}
    assert layouts.changed(releases) == KNOWN


@pytest.mark.quick
def test_a_layout_that_changes_is_found() -> None:
    def ping(*fields: dict[str, Any]) -> dict[str, layouts.Layout]:
        return {"Ping 0": layouts.at({"flexibleVersions": "0+", "fields": list(fields)}, 0)}

    one, other = {"name": "A", "type": "int32", "versions": "0+"}, {"name": "B", "type": "string", "versions": "0+"}
    tagged = {"name": "C", "type": "int8", "versions": "0+", "taggedVersions": "0+", "tag": 0}
    assert layouts.changed({"1": ping(one, other), "2": ping({**one, "name": "Renamed"}, other, tagged)}) == {}
    for new in (ping(other, one), ping(one), ping(one, {**other, "nullableVersions": "0+"})):
        found = layouts.changed({"1": ping(one, other), "2": ping(one, other), "3": new})
        assert list(found["Ping 0"]) == ["1 to 2", "3"]
