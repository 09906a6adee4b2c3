"""A real broker that starts on a folder whose data1 is a log directory that was made or changed here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.kafka import broker
from tools.kafka.maven import MissingTool


def start_on(release: str, folder: Path, **properties: str) -> broker.Running:
    """The broker, started; a context manager that stops it. properties: of the broker, with _ for the dots."""
    free = broker.free_ports(3)
    state = broker.Running(release, str(folder), "kraft", [], free[:1], free[1:2], "", free[2])
    given = {name.replace("_", "."): value for name, value in properties.items()}
    options = broker.Options(release, folder, heap="256m", c1=True, restart=True, properties={
        "delegation.token.secret.key": "k", "log.retention.ms": "-1", **given})
    broker.configure(options, state, folder)
    state.save()
    try:
        return broker.start(options)
    except MissingTool as missing:
        pytest.fail(str(missing), pytrace=False)
