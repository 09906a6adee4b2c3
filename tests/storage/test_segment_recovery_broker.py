"""A real broker that starts on torn partitions leaves the files that SegmentWriter leaves."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import pytest

from kwire.net import connect_sync
from kwire.storage import SegmentWriter
from tests.storage.restarts import start_on
from tests.storage.test_segment_writer import files

pytestmark = [pytest.mark.java, pytest.mark.soak, pytest.mark.timeout(300)]

RELEASE = "4.3.0"


def torn(golden: Path, folder: Path) -> list[str]:
    """A broker's folder whose data1 was not closed: torn segments, lost indexes. The names of the partitions."""
    chance, data = random.Random(5), folder / "data1"
    shutil.copytree(golden / "data" / f"kafka-{RELEASE}" / "data1", data)
    names = []
    for path in [data, *data.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    for path in sorted(data.glob("[!_]*-[0-9]*/")):
        names.append(path.name)
        last = max(path.glob("*.log"))
        content = last.read_bytes()
        kept = chance.randrange(100, len(content)) if len(content) > 200 else len(content)
        last.write_bytes(content[:kept] + chance.choice([b"", bytes(300), chance.randbytes(30)]))
        for index in path.glob("*index"):
            if chance.random() < 0.3:
                index.unlink()
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        (data / name).unlink(missing_ok=True)
    return names


def test_as_a_broker_recovers(golden: Path, tmp_path: Path) -> None:
    names = torn(golden, tmp_path / "broker")
    shutil.copytree(tmp_path / "broker", tmp_path / "mine")
    for name in names:
        topic, _, number = name.rpartition("-")
        SegmentWriter(tmp_path / "mine" / "data1", topic, int(number), index_interval_bytes=1024).close()
    folder = tmp_path / "broker"
    running = start_on(RELEASE, folder, log_index_interval_bytes="1024")
    with running, connect_sync(running.bootstrap) as connection:
        assert connection.versions
        time.sleep(1)
    assert len(names) > 25
    for name in names:
        theirs, mine = files(folder / "data1" / name), files(tmp_path / "mine" / "data1" / name)
        for file, content in theirs.items():
            if not file.endswith(".snapshot") and not (file.endswith(".txnindex") and not content):
                assert mine.get(file) == content, (name, file)
