"""Feature levels with the released rules: what kafka-features printed for real clusters it prints for a fleet."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from kwire import schema
from kwire.fleet import Fleet
from kwire.storage.formatting.levels import effective_levels
from kwire.storage.formatting.rules import rules_of
from tests.cli.features_cases import kwire_features, rows, without_epoch
from tools import features as recorder

pytestmark = [pytest.mark.quick, pytest.mark.checkout]


def formatted(release: str, version: str) -> dict[str, int]:
    """The levels that kafka-storage format --release-version makes."""
    rules = rules_of(release)
    return effective_levels(schema.metadata_version(version), {}, rules.formatter, False, rules)


def printed(release: str, line: list[str]) -> tuple[int, str, str]:
    code, out, err = kwire_features("--as", release, *line)
    return code, without_epoch(out), err


def wanted(row: dict[str, str], dry_run: bool = False) -> tuple[object, str, str]:
    out = without_epoch(row["stdout"])
    if dry_run:  # of 3.3.2: its tool upgraded, and said so
        out = out.replace("was upgraded to", "can be upgraded to").replace("Could not", "Can not")
    return row["exit"], out, row["stderr"]


@pytest.mark.parametrize(("release", "version", "session", "dry_runs"), [
    ("4.3", "3.5-IV2", "cluster/features-4.3.0.jsonl", ()),
    ("3.3", "3.3-IV0", "cluster/features-3.3.2.jsonl", (2, 12)),
])
def test_recorded_sessions(release: str, version: str, session: str, dry_runs: tuple[int, ...]) -> None:
    with Fleet(release, levels=formatted(release, version)) as fleet:
        for row in rows(session):
            if "77" in row["cmd"]:  # a node that is not there: the tool waits for it for a minute
                continue
            address = fleet.bootstrap_controllers if "--bootstrap-controller" in row["cmd"] else fleet.bootstrap
            line = [re.sub(r"127\.0\.0\.1:\d+", address, part) for part in row["cmd"][1:]]
            assert printed(release, line) == wanted(row, row["n"] in dry_runs), row


def test_recorded_session_of_three_nodes() -> None:
    *recorded, last = rows("cluster/three-nodes-4.3.0.jsonl")
    with Fleet("4.3", 3, levels=formatted("4.3", recorder.THREE_NODES_LEVEL)) as fleet:
        state = SimpleNamespace(
            bootstrap=fleet.bootstrap, controller_ports=[node.controller_port for node in fleet.nodes])
        lines = recorder.three_nodes(state)  # type: ignore[arg-type]
        for line, row in zip(lines, recorded, strict=True):
            assert printed("4.3", line) == wanted(row), line
        final = dict(last["levels"])  # of a feature the last level that the log says
        assert {name: level for name, level in final.items() if level} == {
            name: level for name, level in fleet.nodes[0].image.features.items()}
