"""UpdateFeatures, valid and invalid, to a fleet with the released rules and to a real broker: equal answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire import messages
from kwire.errors import KwireError
from kwire.fleet import Fleet
from kwire.net import connect_sync
from kwire.schema import features, metadata_bounds, metadata_version
from tests.cli.features_cases import without_epoch
from tests.fleet.test_features import formatted
from tools.kafka import broker, tool

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(900)]

Update = tuple[str, int, int]  # feature, level, upgrade type
# release -> the level that it is formatted with
FORMATTED = {"3.3.2": "3.3-IV0", "3.6.2": "3.5-IV2", "3.9.1": "3.9-IV0", "4.0.1": "3.9-IV0", "4.3.0": "3.9-IV0",
             "4.4.0": "4.0-IV3"}  # fmt: skip


def updates(release: str) -> Iterator[list[Update]]:
    """Requests, one after the other: of each feature levels that there are and are not, by each way."""
    known = {name: (row.minimum, row.testing) for name, row in features(release).items()}
    for name, (low, high) in known.items():
        for kind in (1, 2, 3, 0, 4):
            for level in sorted({-1, 0, low, low + 1, max(high - 1, 0), high, high + 1, 999}):
                yield [(name, level, kind)]
    for kind in (1, 2, 3):
        for level in (-1, 0, 1):
            yield [("no.such.version", level, kind)]
    yield [("metadata.version", 999, 1), ("no.such.version", 1, 1)]
    newest = metadata_version(metadata_bounds(release).default).level
    yield [("metadata.version", newest, 1), ("no.such.version", 1, 1)]
    yield [("metadata.version", newest, 1)]
    for level in range(newest, newest - 9, -1):
        for kind in (2, 3):
            yield [("metadata.version", level, kind)]
    yield [("metadata.version", newest, 1)]
    for name, (low, high) in known.items():
        yield [(name, high, 1)]
        yield [(name, low, 2), ("metadata.version", newest, 1)]
        yield [(name, low, 3)]


def answers(address: str, release: str) -> list[tuple[Any, ...]]:
    """(version, validate only, updates, answer, finalized levels) of each request."""
    request, got = messages.UpdateFeaturesRequest, []
    with connect_sync(address) as connection:
        low, high = connection.versions["UpdateFeatures"]
        for version in range(low, high + 1):
            for validate_only in (True, False) if version else (False,):
                for rows in updates(release):
                    keys = [
                        request.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
                        if version else
                        request.FeatureUpdateKey(feature=name, max_version_level=level, allow_downgrade=kind > 1)
                        for name, level, kind in rows]
                    message = request(feature_updates=keys, timeout_ms=20_000)
                    if version:
                        message.validate_only = validate_only
                    try:
                        answer: Any = connection.send(message, version)
                        shown: Any = (
                            answer.error_code, without_id(answer.error_message),
                            sorted((row.feature, row.error_code, without_id(row.error_message))
                                   for row in answer.results))
                    except KwireError as error:
                        shown = (type(error).__name__,)
                    got.append((version, validate_only, rows, shown))
    return got


def without_id(text: str | None) -> str:
    return re.sub(r"(controller|Broker|broker) \d+", r"\1 N", text or "")


@pytest.mark.parametrize("release", FORMATTED)
def test_answers_are_those_of_a_real_broker(release: str, tmp_path: Path) -> None:
    level = FORMATTED[release]
    with Fleet(release, levels=formatted(release, level)) as fleet:
        ours = answers(fleet.bootstrap, release)
        ours_printed = printed(release, fleet.bootstrap)
    options = broker.Options(
        release, tmp_path, heap="256m", c1=True, format_arguments=["--release-version", level])
    with broker.start(options) as state:
        real = answers(state.bootstrap, release)
        real_printed = printed(release, state.bootstrap)
    assert len(ours) > 100
    assert [(mine, theirs) for mine, theirs in zip(ours, real, strict=True) if mine != theirs] == []
    assert ours_printed == real_printed


def printed(release: str, bootstrap: str) -> list[tuple[int, str, str]]:
    """What the tools of the release print of it; of 4.4.0 those of 4.3.0: its own are not on Maven Central."""
    lines = (
        ("features", "describe"), ("features", "upgrade", "--feature", "metadata.version=999"),
        ("features", "downgrade", "--feature", "metadata.version=1", "--unsafe"),
        ("features", "disable", "--feature", "no.such.version"), ("quorum", "describe", "--status"))
    made = []
    for name, *line in lines:
        done = tool.run("4.3.0" if release == "4.4.0" else release, name, "--bootstrap-server", bootstrap, *line)
        out = re.sub(r"(?m)^(ClusterId|LeaderEpoch|HighWatermark|MaxFollowerLag\w*): .*", r"\1", done.stdout.decode())
        out = re.sub(r'"(directoryId|endpoints)": [^}]*', "", out)
        made.append((done.returncode, without_id(without_epoch(out)), done.stderr.decode()))
    return made
