"""`kwire features` on real clusters: text, exit code and effect as with kafka-features; the effect is in the log."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kwire
from kwire.net import Cluster, FeatureUpdate
from tests.cli.features_cases import files, kwire_features, rows, without_epoch
from tools import features as recorder
from tools.kafka import broker, maven

pytestmark = [pytest.mark.java, pytest.mark.checkout, pytest.mark.timeout(600)]

APPLIED = 20  # seconds until a broker has applied what the controller has written

# B: the brokers, C1 to C3: a controller each, C: C1 and C2
BESIDE = """\
--bootstrap-server B describe
--bootstrap-controller C describe
--bootstrap-controller B describe
--bootstrap-server C1 describe
--bootstrap-controller B upgrade --feature group.version=1
--bootstrap-server C2 upgrade --feature group.version=1
--bootstrap-server B describe --node-id 3
--bootstrap-controller C describe --node-id 2
--bootstrap-server B describe --node-id 4
--bootstrap-server B upgrade --feature eligible.leader.replicas.version=1
--bootstrap-server B upgrade --feature eligible.leader.replicas.version=1 --feature metadata.version=22
--bootstrap-server B upgrade --feature eligible.leader.replicas.version=1 --feature metadata.version=23 --dry-run
--bootstrap-server B upgrade --feature transaction.version=2 --feature group.version=1 --feature share.version=1
--bootstrap-controller C1 upgrade --metadata 3.8
--bootstrap-controller C2 upgrade --metadata 3.9 --dry-run
--bootstrap-controller C3 upgrade --feature streams.version=1
--bootstrap-controller C upgrade --release-version 4.1
--bootstrap-controller C2 downgrade --release-version 4.0
--bootstrap-controller C3 downgrade --release-version 3.9 --unsafe --dry-run
--bootstrap-server B downgrade --feature eligible.leader.replicas.version=0 --feature metadata.version=25
--bootstrap-server B downgrade --feature metadata.version=25 --unsafe
--bootstrap-server B downgrade --feature metadata.version=22
--bootstrap-server B downgrade --feature metadata.version=22 --unsafe
--bootstrap-server B downgrade --feature transaction.version=2
--bootstrap-server B downgrade --feature transaction.version=1 --feature nope=1
--bootstrap-server B disable --feature transaction.version --feature share.version
--bootstrap-server B disable --feature transaction.version --feature nope --dry-run
--bootstrap-server B disable --feature streams.version
--bootstrap-server B upgrade --feature metadata.version=31
--bootstrap-server B upgrade --feature metadata.version=30 --feature kraft.version=2
--bootstrap-server B upgrade --feature metadata.version=30 --feature streams.version=1
--bootstrap-server B upgrade --feature kraft.version=1 --dry-run
--bootstrap-server B disable --feature kraft.version --unsafe
--bootstrap-server B downgrade --feature metadata.version=29
--bootstrap-server B describe
"""


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


def levels_in(log: bytes) -> list[tuple[str, int]]:
    """The FeatureLevelRecords of a metadata log."""
    batches = (batch for batch in kwire.read_batches(log) if not batch.is_control)
    messages = (kwire.decode_metadata_record(record.value)[0] for batch in batches for record in batch)
    return [(m.name, m.feature_level) for m in messages if type(m).__name__ == "FeatureLevelRecord"]


def metadata_log(state: broker.Running, node: int = 1) -> bytes:
    return (Path(state.dir) / f"data{node}" / "__cluster_metadata-0" / f"{0:020}.log").read_bytes()


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
        replay("4.3", "cluster/features-4.3.0.jsonl", state)
        wanted = levels_in(files()["cluster/metadata-log-4.3.0/00000000000000000000.log"])
        assert until_same(lambda: levels_in(metadata_log(state)), wanted) == wanted
        assert len(wanted) > 20


def test_the_recorded_session_of_3_3(tmp_path: Path) -> None:
    with started("3.3.2", tmp_path / "broker", level="3.3-IV0") as state:
        replay("3.3", "cluster/features-3.3.2.jsonl", state, exempt=(2, 12))
        wanted = [("metadata.version", level) for level in (4, 5, 5, 7)]  # a dry run leaves nothing
        assert until_same(lambda: levels_in(metadata_log(state)), wanted) == wanted


def test_three_nodes_beside_the_tool(tmp_path: Path) -> None:
    """The tool works on the second cluster in the meantime: both print the same and leave the same levels."""

    def lines(state: broker.Running) -> list[list[str]]:
        controllers = [f"{broker.HOST}:{port}" for port in state.controller_ports]
        names = {"B": state.bootstrap, "C": ",".join(controllers[:2])}
        names |= {f"C{number}": address for number, address in enumerate(controllers, 1)}
        return [[names.get(word, word) for word in line.split()] for line in BESIDE.splitlines()]

    with started("4.3.0", tmp_path / "tool", nodes=3, level="3.7-IV4") as other:
        told: list[dict[str, Any]] = []
        thread = threading.Thread(target=lambda: told.extend(recorder.run("4.3.0", lines(other))))
        thread.start()
        with started("4.3.0", tmp_path / "kwire", nodes=3, level="3.7-IV4") as state:
            thread.join()
            assert len(told) == len(BESIDE.splitlines())
            for line, row in zip(lines(state), told, strict=True):
                wanted = (row["exit"], without_epoch(row["stdout"]), row["stderr"])

                def ask(line: list[str] = line) -> tuple[int, str, str]:
                    code, out, err = kwire_features("--as", "4.3", *line)
                    return code, without_epoch(out), err

                got = until_same(ask, wanted) if "describe" in line else ask()
                assert got == wanted, line
            wanted_levels = levels_in(metadata_log(other))
            assert until_same(lambda: levels_in(metadata_log(state, 3)), wanted_levels) == wanted_levels
            assert ("transaction.version", 0) in wanted_levels


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
        wanted = ("metadata.version", safe)
        assert until_same(lambda: wanted in levels_in(metadata_log(state)), True)
