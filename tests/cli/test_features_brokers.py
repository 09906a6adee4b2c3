"""`kwire features` on real clusters: text, exit code and effect as with kafka-features; the effect is in the log."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kwire.net import Cluster, FeatureUpdate
from tests.cli.features_cases import files, kwire_features, rows, without_epoch
from tools import features as recorder
from tools.features import levels_of
from tools.kafka import broker, maven

pytestmark = [pytest.mark.java, pytest.mark.checkout, pytest.mark.timeout(600)]

COMMANDS = ["describe", "upgrade", "downgrade", "disable", "version-mapping", "feature-dependencies"]
WORDS = [
    "--bootstrap-server", "--bootstrap-controller", "--command-config", "localhost:1", "--feature", "--release-version",
    "--metadata", "--dry-run", "--unsafe", "--node-id", "-h", "--help", "--", "group.version=1", "x=0", "x=", "a b",
    "metadata.version=7", "metadata.version=99", "4.0", "3.9-IV0", "3.3", "nope", "-1", "1", "--bootstrap-", "--feat",
    "--rel", "--un", "--d", "--bootstrap-server=localhost:1", "--feature=a=1", "--dry-run=1", "-x", "-hx", "-", "", "d",
    "up", "dis", "v", "f", "--node-id=2", "--node-id=x", "---", "--=", "-=", "é=1", "--feature=", "desxribe", "(a).b",
]  # fmt: skip
APPLIED = 20  # seconds until a broker has applied what the controller has written

@contextmanager
def started(release: str, folder: Path, *, nodes: int = 1, level: str | None = None) -> Iterator[broker.Running]:
    try:
        maven.java()
    except maven.MissingTool as missing:
        pytest.fail(str(missing), pytrace=False)
    formatting = ["--release-version", level] if level else []
    with broker.start(
        broker.Options(release, folder, nodes, heap="256m", c1=True, format_arguments=formatting)
    ) as state:
        yield state


def until_same(call: Callable[[], Any], wanted: Any) -> Any:
    """What a call returns, called again until it is what is wanted, or until a broker must have applied it."""
    end = time.monotonic() + APPLIED
    while (got := call()) != wanted and time.monotonic() < end:
        time.sleep(0.1)
    return got


def replay(release: str, name: str, state: broker.Running, exempt: tuple[int, ...] = ()) -> None:
    for row in rows(name):
        port = (state.controller_ports if "--bootstrap-controller" in row["cmd"] else state.ports)[0]
        command = [re.sub(r"(?<=127\.0\.0\.1:)\d+", str(port), part) for part in row["cmd"][1:]]

        def ask(command: list[str] = command) -> tuple[int, str, str]:
            code, out, err = kwire_features("--as", release, *command)
            return code, without_epoch(out), err

        wanted = (row["exit"], without_epoch(row["stdout"]), row["stderr"])
        if row["n"] in exempt:  # of 3.3.2: it upgraded, and said so
            changed = wanted[1].replace("was upgraded to", "can be upgraded to").replace("Could not", "Can not")
            wanted = (wanted[0], changed, wanted[2])
        got = until_same(ask, wanted) if "describe" in command else ask()
        assert got == wanted, row


def test_the_recorded_session_of_4_3(tmp_path: Path) -> None:
    with started("4.3.0", tmp_path / "broker", level="3.5-IV2") as state:
        controller = ("--bootstrap-controller", f"{broker.HOST}:{state.controller_ports[0]}")
        reason = "Direct-to-controller communication is not supported with the current MetadataVersion."
        unsupported = f"org.apache.kafka.common.errors.UnsupportedVersionException: {reason}\n"
        assert kwire_features(*controller, "describe") == (1, "", unsupported)  # before 3.7-IV0
        replay("4.3", "cluster/features-4.3.0.jsonl", state)
        wanted = recorder.levels_in(files()["cluster/metadata-log-4.3.0/00000000000000000000.log"])
        assert until_same(lambda: levels_of(state), wanted) == wanted
        assert len(wanted) > 20


def test_the_recorded_session_of_3_3(tmp_path: Path) -> None:
    with started("3.3.2", tmp_path / "broker", level="3.3-IV0") as state:
        replay("3.3", "cluster/features-3.3.2.jsonl", state, exempt=(2, 12))
        wanted = [["metadata.version", level] for level in (4, 5, 5, 7)]  # a dry run leaves nothing
        assert until_same(lambda: levels_of(state), wanted) == wanted


def check_three_nodes(state: broker.Running, recorded: list[dict[str, Any]], levels: list[list[Any]]) -> None:
    """That kwire prints what the tool did, and leaves the same levels in the log."""
    lines = recorder.three_nodes(state)
    assert len(recorded) == len(lines) > 30
    for line, row in zip(lines, recorded, strict=True):
        wanted = (row["exit"], without_epoch(row["stdout"]), row["stderr"])

        def ask(line: list[str] = line) -> tuple[int, str, str]:
            code, out, err = kwire_features("--as", "4.3", *line)
            return code, without_epoch(out), err

        got = until_same(ask, wanted) if "describe" in line else ask()
        assert got == wanted, line
    assert ["transaction.version", 0] in levels
    assert until_same(lambda: levels_of(state, 3), levels) == levels


def test_three_nodes(tmp_path: Path) -> None:
    *recorded, last = rows("cluster/three-nodes-4.3.0.jsonl")
    with started("4.3.0", tmp_path / "kwire", nodes=3, level=recorder.THREE_NODES_LEVEL) as state:
        check_three_nodes(state, recorded, last["levels"])


@pytest.mark.soak
def test_three_nodes_beside_the_tool(tmp_path: Path) -> None:
    """The tool works on the second cluster in the meantime."""
    level = recorder.THREE_NODES_LEVEL
    with started("4.3.0", tmp_path / "tool", nodes=3, level=level) as other, ThreadPoolExecutor(1) as pool:
        recorded = pool.submit(recorder.run, "4.3.0", recorder.three_nodes(other))
        with started("4.3.0", tmp_path / "kwire", nodes=3, level=level) as state:
            rows_of_the_tool = recorded.result()
            check_three_nodes(state, rows_of_the_tool, levels_of(other))


def test_zookeeper(tmp_path: Path) -> None:
    """2.8 has UpdateFeatures v0 alone, and knows no feature."""
    with started("2.8.2", tmp_path / "broker") as state:
        at = ("--bootstrap-server", state.bootstrap)
        assert kwire_features(*at, "describe") == (0, "", "")
        failed = "1 out of 1 operation(s) failed.\n"
        unsupported = "Could not apply finalized feature update because the provided feature is not supported.\n"
        assert kwire_features(*at, "upgrade", "--feature", "x=1") == (
            1, f"Could not upgrade x to 1. {unsupported}", failed,
        )  # fmt: skip
        assert kwire_features(*at, "downgrade", "--feature", "x=1") == (
            1, f"Could not downgrade x to 1. {unsupported}", failed,
        )  # fmt: skip
        assert kwire_features(*at, "disable", "--feature", "x") == (
            1, "Could not disable x. Can not delete non-existing finalized feature.\n", failed,
        )  # fmt: skip
        code, out, err = kwire_features(*at, "upgrade", "--feature", "x=1", "--dry-run")
        assert (code, out) == (1, "") and "a dry run needs UpdateFeatures version 1 or newer" in err


@pytest.mark.soak
@pytest.mark.parametrize("release", ["3.3.2", "3.6.2", "3.9.2", "4.0.1", "4.2.0", "4.3.1"])
def test_random_command_lines(release: str) -> None:
    """Whatever the line, as long as it ends before a request: the tool's text."""
    random, lines, printed = Random(release), [], []
    while len(lines) < 2_000:
        line = ["--bootstrap-server", "localhost:1"] if random.random() < 0.6 else []
        line += [random.choice(COMMANDS)] if random.random() < 0.7 else []
        line += random.choices(WORDS + COMMANDS, k=random.randrange(5))
        got = kwire_features("--as", release, "--timeout", "1", *line)
        # not: a request, and what kwire words better; "" alone would be no argument at all
        if line != [""] and not any(text in got[2] for text in ("localhost", "No such file", "invalid broker address")):
            lines.append(line)
            printed.append(got)
    for line, got, row in zip(lines, printed, recorder.run(release, lines), strict=True):
        wanted = row["stderr"] if row["uncaught"] is None else row["uncaught"].partition(": ")[2] + "\n"
        if "does not exists" not in wanted:
            assert got == (row["exit"], row["stdout"], wanted), line


@pytest.mark.soak
@pytest.mark.parametrize(("release", "level", "safe"), [("4.4.0", "4.0", 25), ("3.9.1", "3.9-IV0", 20)])
def test_in_python(release: str, level: str, safe: int, tmp_path: Path) -> None:
    async def work(state: broker.Running) -> None:
        async with Cluster(state.bootstrap) as cluster:
            before = await cluster.describe_features()
            low, high = before.supported["metadata.version"]
            assert low <= before.finalized["metadata.version"] <= high and before.epoch > 0
            update = {"metadata.version": FeatureUpdate(high)}
            assert await cluster.update_features(update, dry_run=True) == {"metadata.version": None}
            assert (await cluster.describe_features()).finalized == before.finalized
            (error,) = (await cluster.update_features({"metadata.version": FeatureUpdate(high + 1)})).values()
            assert error is not None and error.code.name == "INVALID_UPDATE_VERSION"
        async with Cluster(f"{broker.HOST}:{state.controller_ports[0]}", controllers=True) as cluster:
            down = {"metadata.version": FeatureUpdate(safe, "SAFE")}
            assert await cluster.update_features(down) == {"metadata.version": None}
            assert await cluster.update_features(update) == {"metadata.version": None}

    with started(release, tmp_path / "broker", level=level) as state:
        asyncio.run(work(state))
        assert until_same(lambda: ["metadata.version", safe] in levels_of(state), True)
