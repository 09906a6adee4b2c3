"""What kafka-storage of each release knows: broker configurations and help texts for kwire/schema, runs for the tests.

    python -m tools.storage configs 4.5.0 ...     kwire/schema/broker_configs.json: type, default and validator of each
    python -m tools.storage help 4.5.0 ...        kwire/schema/storage_help.json: the texts of --help
    python -m tools.storage runs 4.5.0 ...        tests/data/storage.tar.xz: what the tool printed and wrote

A release stands for its minor: 4.5.0 for 4.5. Each replaces what the file has of that minor; the rest stays.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from kwire import schema
from tools.kafka import maven, releases, tool
from tools.places import ROOT

SOURCE = Path(__file__).parent / "java" / "BrokerConfigs.java"
CONFIGS = ROOT / "kwire" / "schema" / "broker_configs.json"
HELP = ROOT / "kwire" / "schema" / "storage_help.json"
COMMANDS = ("", "info", "format", "version-mapping", "feature-dependencies", "random-uuid")


def configs(release: str) -> dict[str, Any]:
    """Name -> [type, default, validator] of the broker's configurations ("?": it must be given)."""
    jars = os.pathsep.join(releases.classpath(release))
    path = os.pathsep.join([str(maven.compiled([SOURCE], jars, f"broker-configs-{release}")), jars])
    done = subprocess.run([maven.java(), "-Xmx256m", "-cp", path, SOURCE.stem], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"configurations of {release}:\n{done.stderr[-2000:]}")
    rows = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    return {name: rest for name, *rest in rows}


def by_change(table: dict[str, dict[str, Any]], name: str, found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The table {key: {first release: value}} with a release's values put in; None: the release lacks the key.

    The keys are in the order of the newest release, then those that it lacks.
    """
    order = schema.releases()
    minors = {minor for rows in table.values() for minor in rows} | {name}
    whole = {minor: found if minor == name else value_of(table, minor) for minor in minors}
    merged: dict[str, dict[str, Any]] = {}
    keys = [key for minor in sorted(minors, key=order.index, reverse=True) for key in whole[minor]]
    for key in dict.fromkeys(keys):
        rows: dict[str, Any] = {}
        last: Any = None
        for minor in sorted(minors, key=order.index):
            value = whole[minor].get(key)
            if value != last:
                rows[minor] = last = value
        merged[key] = rows
    return merged


def value_of(table: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """Key -> value of a release, from a table of changes."""
    order = schema.releases()
    at, values = order.index(name), {}
    for key, rows in table.items():
        known = [value for minor, value in rows.items() if order.index(minor) <= at]
        if known and known[-1] is not None:
            values[key] = known[-1]
    return values


def helps(release: str) -> dict[str, Any]:
    """Command -> the text of its --help ("": of the tool itself)."""
    texts = {}
    for command in COMMANDS:
        done = tool.run(release, "storage", *([command] if command else []), "--help")
        text = done.stdout.decode()
        if text.startswith("usage: kafka-storage"):
            texts[command] = text
    return texts


def write(path: Path, table: dict[str, dict[str, Any]]) -> None:
    """A table as JSON, one key a line."""
    lines = (f" {json.dumps(key)}: {json.dumps(rows, ensure_ascii=False)}" for key, rows in table.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main(given_arguments: list[str] | None = None) -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(
        "python -m tools.storage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("configs", "help", "runs"))
    parser.add_argument("releases", nargs="+", metavar="RELEASE")
    given = parser.parse_args(given_arguments)
    try:
        if given.what == "runs":
            from tools import storage_runs

            storage_runs.record(given.releases)
            return 0
        path, ask = (CONFIGS, configs) if given.what == "configs" else (HELP, helps)
        table = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for release in given.releases:
            table = by_change(table, schema.release_name(release), ask(release))
            write(path, table)
    except (maven.MissingTool, LookupError, RuntimeError) as error:
        print(f"storage: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
