"""A fleet that is killed while records are written to it goes on without loss."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import kwire
from kwire.fleet import Fleet
from kwire.net import connect_sync
from kwire.schema.error_codes import ErrorCode
from kwire.storage import LogDirectory
from tests.fleet.test_apis import batch, fetch, produce

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]
E = ErrorCode
KILLED = """
import sys
from kwire.fleet import Fleet
with Fleet("4.4", data=sys.argv[1], topics={"t": 1}) as fleet:
    print(fleet.bootstrap, flush=True)
    sys.stdin.read()
"""


def test_a_kill_loses_nothing(tmp_path: Path) -> None:
    """SIGKILL between, and in the middle of, appends: every record that was acknowledged is there, once."""
    chance, acknowledged = random.Random(7), 0
    for _ in range(8):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path / "data")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            timer = threading.Timer(chance.uniform(0.05, 1.0), process.kill)
            timer.start()
            try:
                with connect_sync(address) as connection:
                    row = fetch(connection, max(0, acknowledged - 1))
                    acknowledged = max(acknowledged, row.high_watermark)  # one that was written, but not answered
                    while True:
                        data = batch(f"{acknowledged}", producer_id=1, producer_epoch=0, base_sequence=acknowledged)
                        row = produce(connection, data)
                        assert (row.error_code, row.base_offset) == (E.NONE, acknowledged)
                        acknowledged += 1
            except (OSError, kwire.KwireError):
                pass
            timer.join()
    assert acknowledged > 100
    with Fleet("4.4", data=tmp_path / "data") as fleet:
        found = [int(record.value) for record in fleet.records("t")]
        assert found == list(range(len(found))) and len(found) - acknowledged in (0, 1)
    assert LogDirectory(tmp_path / "data" / "node-1").verify() == []
