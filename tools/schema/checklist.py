"""What a new release leaves to do by hand: the file, and why. Only what really differs in that release."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from kwire.net.required_versions import VALUE_RULES
from kwire.schema import Versions
from tools.kafka.releases import NO_TOOLS
from tools.schema import layout, layouts
from tools.schema.inputs import Input
from tools.schema.merge import shape
from tools.schema.update import Item, SchemaSet, minor

Message = dict[str, Any]


def items(before: SchemaSet, after: SchemaSet, given: Input) -> list[Item]:
    """The checklist of a release that has just been taken. before: without it."""
    release = minor(given.patch)
    found = list(after.checklist)
    found += _apis(before, after)
    found += _layouts(before, after)
    found += _maven(given)
    grown = _new_pairs(before, after)
    if grown:
        found.append(Item(
            "tests/data/vectors", f"{grown} new (message, version): python -m tools.vectors --release {given.patch}"
        ))  # fmt: skip
    if release not in before.releases["releases"]:
        found.append(Item(
            "tests/data/versions.tar.xz",
            f"what its clients say of brokers: python -m tools.api_versions --nothing {given.patch}, and "
            f"--clients {given.patch} --brokers {given.patch}; its patch release in ALL of tests/net/test_brokers.py",
        ))  # fmt: skip
        found.append(Item(
            "tests/data/features.tar.xz",
            f"what its kafka-features prints: python -m tools.features {given.patch}; where tests/cli/test_features.py "
            "then differs, kwire/cli/features_tool.py",
        ))  # fmt: skip
        found.append(Item("CHANGELOG.md", f"a line: Kafka {release}"))
    return found


def _apis(before: SchemaSet, after: SchemaSet) -> list[Item]:
    found, fresh, silent, ruled, homeless = [], [], [], [], []
    titled = {api for apis in json.loads((layout.ROOT / "sections.json").read_text()).values() for api in apis}
    for name, (folder, new) in sorted(after.messages.items()):
        if folder != "api" or new["type"] != "request":
            continue
        old = before.messages.get(name, ("", {}))[1]
        api = name.removesuffix("Request")
        if not old:
            fresh.append(f"{api} (API {new['apiKey']}, {' and '.join(new.get('listeners', []))})")
            homeless += [api] if api not in titled else []
            continue
        was, now = Versions.parse(old["validVersions"]), Versions.parse(new["validVersions"])
        for version in range(was.high + 1, now.high + 1):
            fresh.append(f"{api} {version}")
            if shape(new["fields"], version) == shape(new["fields"], version - 1):
                silent.append(f"{api} {version}")
            if new["apiKey"] in VALUE_RULES:
                ruled.append(f"{api} {version}")
    levels, allowed = _new_levels(before, after), _new_methods(before, after)
    if fresh or levels or allowed:
        named = ", ".join([*fresh, *levels, *(f"metadata.version ({name})" for name in allowed)])
        found.append(Item("kwire/net/features.py", f"a row, if one of these is a capability: {named}"))
    if homeless:
        found.append(Item("kwire/schema/sections.json", f"the section of the protocol guide: {', '.join(homeless)}"))
    reasons = []
    if silent or ruled:
        named = ", ".join(dict.fromkeys(silent + ruled))
        reasons.append(
            f"a rule, if a value is new in a version whose fields do not tell: {named} (a note in Kafka's schema)"
        )
    if levels:
        reasons.append(
            f"LEVEL_RULES, if Kafka's clients send some versions only at one of these levels: {', '.join(levels)}"
        )
    if reasons:
        found.append(Item("kwire/net/required_versions.py", "; ".join(reasons)))
    return found


def _new_levels(before: SchemaSet, after: SchemaSet) -> list[str]:
    """The levels of features other than metadata.version that no release had before: "share.version 2"."""
    def levels(known: SchemaSet) -> dict[str, None]:
        rows = [(name, row) for features in known.features.values() for name, row in features.items()]
        return dict.fromkeys(f"{name} {one['level']}" for name, row in rows for one in row["levels"] if one["level"])

    return [one for one in levels(after) if one not in levels(before)]


def _new_methods(before: SchemaSet, after: SchemaSet) -> list[str]:
    """The methods of Kafka's MetadataVersion that a new level of it sets, where no level did before."""
    def methods(known: SchemaSet) -> dict[str, None]:
        rows = known.metadata["levels"].values()
        return dict.fromkeys(name for row in rows for name, value in row["sets"].items() if value is True)

    return [one for one in methods(after) if one not in methods(before)]


def _layouts(before: SchemaSet, after: SchemaSet) -> list[Item]:
    found = []
    changed, tagged = [], []
    for name, (_, new) in sorted(after.messages.items()):
        old = before.messages.get(name, ("", {}))[1]
        if not old:
            continue
        for version in Versions.parse(old["validVersions"]).all():
            was, now = layouts.at(old, version), layouts.at(new, version)
            if layouts.bytes_of(was) != layouts.bytes_of(now):
                changed.append(f"{name} {version}")
            tags = _tags(now["fields"]) - _tags(was["fields"])
            if tags:
                tagged.append(f"{name} {version} ({', '.join(sorted(tags))})")
    if changed:
        found.append(Item(
            "tests/data/schema/layouts.json and docs/layouts.md",
            f"another layout under the same version: {', '.join(changed)}; python -m tools.schema.layouts writes the "
            'file (it reads all releases), docs/layouts.md has a table of them',
        ))  # fmt: skip
    if tagged:
        found.append(Item(
            "tests/codec/vectors.py",
            f"NOW_KNOWN, if a vector has one of these tags as an unknown one: {', '.join(tagged)}",
        ))  # fmt: skip
    return found


def _tags(fields: list[Message], path: str = "") -> set[str]:
    found = set()
    for field in fields:
        if "tag" in field:
            found.add(f"{path}{field['name']}, tag {field['tag']}")
        found |= _tags(field.get("fields", []), f"{path}{field['name']}.")
    return found


def _maven(given: Input) -> list[Item]:
    found = []
    if given.others:
        found.append(Item(
            "tools/schema/jars.py", "MODULES or WITHOUT_SCHEMAS lacks what the broker depends on: "
            + ", ".join(given.others),
        ))  # fmt: skip
    if "kafka-tools" in given.missing and given.patch not in NO_TOOLS:
        found.append(Item("tools/kafka/releases.py", f"NO_TOOLS: Maven Central has no kafka-tools {given.patch}"))
    return found


def _new_pairs(before: SchemaSet, after: SchemaSet) -> int:
    return sum(
        len(Versions.parse(new["validVersions"]).all())
        - (len(Versions.parse(before.messages[name][1]["validVersions"]).all()) if name in before.messages else 0)
        for name, (_, new) in after.messages.items()
    )


def news(changes: list[str]) -> list[str]:
    """The changes, less the lines which say only that a release still has a message or a metadata version."""
    def plain(line: str) -> str:
        return re.sub(r'"last": "[^"]*"|,$', "", line.partition(": ")[2].lstrip("-+ "))

    tables = [line for line in changes if line.startswith(("errors.json: ", "metadata_versions.json: "))]
    twice = {row for row, number in Counter(map(plain, tables)).items() if number > 1}
    still = [line for line in changes if re.match(r"\w+: releases \[", line)]
    told = [line for line in changes if line not in still and not (line in tables and plain(line) in twice)]
    return [*told, f"{len(still)} messages are in this release as before"] if still else told or changes


def text(found: list[Item]) -> str:
    """The checklist as it is printed."""
    by_file: dict[str, list[str]] = {}
    for item in found:
        by_file.setdefault(item.file, []).append(item.reason)
    lines = ["left to do by hand:"] if by_file else ["nothing is left to do by hand"]
    for file, reasons in by_file.items():
        lines.append(f"[ ] {file}")
        lines += [f"    {reason}" for reason in reasons]
    return "\n".join([*lines, "then: make check, make test"])
